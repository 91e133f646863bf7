"""A step taken apart on the page: its arrows, its words, and the ways on and back."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sgmcmc_lab.app.live import step_player as walk_module
from sgmcmc_lab.app.live.step_player import MAX_STEPS, StepPlayer
from sgmcmc_lab.app.page.step_bar import StepBar
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, steps
from sgmcmc_lab.app.views.base import Playing
from sgmcmc_lab.app.views.steps import colours_of, lit_equation, longer, numbers_of, under
from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS, base
from sgmcmc_lab.samplers.step_terms import take_apart
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_views import check, frames, records, scene_of

SHOWN = [
    # A view, a target, a sampler and a gradient.
    ("state", "quartic", ("sgld", {}), "gaussian"),
    ("state", "double_well", ("sghmc", {}), "full"),
    ("state", "sparse_dirichlet", ("scir", {}), "minibatch"),
    ("state", "lasso", ("hmc", {"step_size": 0.02}), "full"),
    ("circle", "von_mises", ("sggmc", {}), "full"),
    ("circle", "circle_mixture", ("gmc", {}), "full"),
    ("torus", "mises_posterior", ("geodesic_sgld", {"step_size": 1e-4}), "full"),
    ("globe", "fisher", ("geodesic_sgld", {}), "full"),
]


def shown(key, target, sampler, gradient):
    """A view, its lanes with a step taken apart, all of it at rest, and the run."""
    made = records(target, [sampler], gradients=[{"key": gradient}])
    run = made[0].run
    run.advance(3)
    view = VIEWS[key](replace(scene_of(made), parts=tuple(run.sampler.parts)))
    lanes, at = frames(made), StepPlayer()
    assert at.look(run)
    lanes.playing = at.playing()
    return view, lanes, run


def at(view, x):
    """Where θ (dim,) is in the picture."""
    if view.key == "state":
        return np.array([c[0] for c in view._positions(x[None])])[: len(view._coordinates)]
    return view.scene.target.values(x[None])[0, :2] if view.key == "torus" else x


@pytest.mark.slow
@pytest.mark.parametrize(("key", "target", "sampler", "gradient"), SHOWN)
def test_arrows_lead_from_where_the_chain_is_to_where_it_goes(key, target, sampler, gradient):
    """Fails where the arrows of θ do not begin at the chain, are not tip to tail, or do not end at its next state."""
    view, lanes, run = shown(key, target, sampler, gradient)
    data = view.compute(lanes)
    check(view, data)
    feed = dict(zip(view.feeds["parts"].columns, data["parts"], strict=True))
    letters = "xyz" if key == "globe" else "x" if target == "double_well" else "xy"
    starts, ends = (np.column_stack([feed[f"{letter}{end}"] for letter in letters]) for end in "01")
    names = [view.scene.parts[int(kind)] for kind in feed["kind"]]
    moved = {
        part.name
        for part in lanes.playing.step.parts
        if not part.aside and (part.path[:, : run.target.dim] != part.start[: run.target.dim]).any()
    }
    rows = [k for k, name in enumerate(names) if name in moved]
    before = at(view, run.position[0].copy())
    scale = longer(lanes.playing, view._place, view._span[: len(before)]) if key == "state" else 1.0
    run.advance(1)
    after = before + scale * (at(view, run.position[0]) - before)
    np.testing.assert_allclose(starts[rows[0]], before, atol=1e-9)
    np.testing.assert_allclose(starts[rows[1:]], ends[rows[:-1]], atol=1e-9)
    np.testing.assert_allclose(ends[rows[-1]], after, atol=1e-9)
    assert {names[k] for k in np.flatnonzero(feed["head"])} == set(names)


@pytest.mark.slow
def test_names_do_not_lie_on_their_arrows():
    """A name stands where its arrow points to; near an end of the picture, away from it.

    Fails where it depends on the half of the picture alone, or on the direction alone.
    """
    view, lanes, _ = shown("state", "quartic", ("sgld", {}), "gaussian")
    spans = {"inside": (-10.0, 10.0), "at the left": (0.0, 1.0), "at the right": (0.0, 1.0)}
    starts = {"inside": 1.0, "at the left": 0.1, "at the right": 0.9}
    for where, ends in spans.items():
        shift = starts[where] - lanes.playing.step.start[0]
        feed = steps.rows(
            lanes.playing, view.scene.parts, lambda theta, shift=shift: theta[:, :2] + [shift, 0.0], 1e-3, ends=ends
        )
        x0, x1, head, left = feed[0], feed[1], feed[4], feed[6]
        expected = {"inside": x1 < x0, "at the left": x0 < 0, "at the right": x0 > 0}[where]
        assert (left == expected)[head > 0].all(), where


def test_a_part_is_lit_in_the_colour_of_its_arrow():
    """Fails where the words and the term of a part have another colour than its arrow."""
    state = AppState()
    state.set_sampler(0, "sggmc")
    bar, at = StepBar(state, lambda way: None), StepPlayer()
    assert at.look(Run(state.experiment.runs()[0]))
    (equation, words), lit = bar.texts(at), bar.lit(at)
    names = [part.name for part in at.step.parts]
    assert lit == [dict(zip(names, colours_of(tuple(names), state.colours), strict=True))[name] for name in names]
    assert len(set(lit)) > 2
    for k, colour in enumerate(lit):
        assert f"part-{k}" in equation[1]
        assert re.search(f"<span class='part-{k}'[^>]*><i style='background:{colour}'>", words[1])
    # Its lines may stand beside each other.
    assert equation[1].count("class='line'") == 3


PLANES = [
    # A target and a sampler, its parts that move the momentum, and those that move θ, in the plane of coordinate 1.
    (
        "correlated_gaussian",
        ("sghmc", {}),
        "gaussian",
        {"friction", "gradient", "gradient noise", "injected noise"},
        {"drift"},
    ),
    ("quartic", ("baoab", {}), "full", {"friction", "gradient", "injected noise"}, {"drift"}),
    ("quartic", ("hmc", {"step_size": 0.4}), "full", {"new momentum"}, {"accept"}),
]


@for_each(("target", "sampler", "gradient", "upright", "level"), PLANES)
def test_in_the_phase_plane_kicks_are_upright_and_drifts_level(target, sampler, gradient, upright, level):
    """Tip to tail from (θ, r) to the next (θ, r). Fails where a part moves the other coordinate, or another chain's."""
    made = records(target, [sampler], gradients=[{"key": gradient}], seed=3)
    run = made[0].run
    run.advance(3)
    view = VIEWS["phase"](replace(scene_of(made, 1), parts=tuple(run.sampler.parts)))
    lanes, player = frames(made), StepPlayer()
    assert player.look(run)
    lanes.playing = player.playing()
    data = view.compute(lanes)
    check(view, data)
    feed = dict(zip(view.feeds["parts"].columns, data["parts"], strict=True))
    moves = {axis: feed[f"{axis}1"] - feed[f"{axis}0"] for axis in "xy"}
    names = np.array([view.scene.parts[int(kind)] for kind in feed["kind"]])
    for name in set(names) & upright:
        assert (moves["x"][names == name] == 0).all() and moves["y"][names == name].any()
    for name in set(names) & level:
        assert (moves["y"][names == name] == 0).all() and moves["x"][names == name].any()
    assert set(names) <= upright | level | {"leapfrog"} and upright <= set(names)
    starts, ends = (np.column_stack([feed[f"x{end}"], feed[f"y{end}"]]) for end in "01")
    np.testing.assert_allclose(starts[1:], ends[:-1], atol=1e-9)
    before = np.array([run.position[0, 1], run.momentum[0, 1] if run.sampler.momentum == base.KEPT else 0.0])
    np.testing.assert_allclose(starts[0], before, atol=1e-12)
    np.testing.assert_allclose(np.ravel(data["here"]), before, atol=1e-12)
    scale = view._larger
    run.advance(1)
    after = np.array([run.position[0, 1], run.momentum[0, 1]])
    np.testing.assert_allclose(ends[-1], before + scale * (after - before), atol=1e-9)
    lanes.playing = None
    assert all(len(column) == 0 for column in (*view.compute(lanes)["parts"], *view.compute(lanes)["here"]))


@pytest.mark.slow
def test_no_arrow_is_there_without_a_step():
    view, lanes, _ = shown("state", "quartic", ("sgld", {}), "full")
    lanes.playing = None
    data = view.compute(lanes)
    assert all(len(column) == 0 for column in (*data["parts"], *data["here"]))


@for_each("s", list(SAMPLERS))
def test_every_part_is_lit_in_the_equation(s):
    """Fails where a part has no place in the formula of its sampler, or the formula is not the sampler's any more."""
    target = next(key for key, each in TARGETS.items() if SAMPLERS[s].fits(each))
    run = records(target, [s])[0].run
    step = take_apart(run)
    below = [under(part, step.dim, 0) for part in step.parts]
    sampler = type(run.sampler)
    made = lit_equation(sampler.update, sampler.parts, step.parts, below)
    for k, part in enumerate(step.parts):
        assert re.search(rf"\\class{{[^}}]*\bpart-{k}\b", made), part.name
    # The space before a minus is no part of the formula.
    made = re.sub(r"\\ (\\underset{[^}]*}{\\class{[^}]*}{)(?=-)", r"\1", made)
    plain = re.sub(r"\\underset{[^}]*}{\\class{[^}]*}{", "⟦", made)
    assert made.count("{") == made.count("}")
    assert plain.replace("⟦", "").replace("}", "") == sampler.update.replace("}", "")


OFF = {
    # A sampler, its flag, the part that is then missing, and whether the step still has it, without a move.
    "hmc": ("quartic", "accept", "accept", False),
    "gmc": ("fisher", "accept", "accept", False),
    "chmc": ("fisher", "accept", "accept", False),
    "rmhmc": ("gamma", "accept", "accept", False),
    "psgld": ("quartic", "gamma", "Γ", False),
    "recipe": ("quartic", "gamma", "εΓ", True),
}


@for_each("s", OFF)
def test_a_term_that_is_switched_off_is_not_in_the_equation(s):
    """Fails where the equation of the step bar has it, or is cut at a term that it lacks."""
    target, flag, part, there = OFF[s]
    run = records(target, [(s, {flag: False})])[0].run
    step, sampler = take_apart(run), type(run.sampler)
    values = run.spec.sampler.values()
    update = sampler.update_by(GRADIENTS[run.spec.gradient.key], values)
    whole = sampler.update_by(GRADIENTS[run.spec.gradient.key], values | {flag: True})
    assert sampler.parts[part] in whole and sampler.parts[part] not in update
    assert (part in {one.name for one in step.parts}) == there
    made = lit_equation(update, sampler.parts, step.parts, [""] * len(step.parts))
    assert made.count("{") == made.count("}")
    plain = re.sub(r"\\ (\\underset{[^}]*}{\\class{[^}]*}{)(?=-)", r"\1", made)
    plain = re.sub(r"\\underset{[^}]*}{\\class{[^}]*}{", "", plain)
    assert plain.replace("}", "") == update.replace("}", "")


def test_a_part_that_is_made_again_lights_the_next_place_of_its_term():
    run = records("quartic", ["baoab"])[0].run
    parts = take_apart(run).parts
    sampler = type(run.sampler)
    made = lit_equation(sampler.update, sampler.parts, parts, [""] * len(parts))
    drifts = [k for k, part in enumerate(parts) if part.name == "drift"]
    assert len(drifts) == 2 and made.index(f"part-{drifts[0]}") < made.index(f"part-{drifts[1]}")


def test_words_have_the_numbers_of_the_step():
    run = records("quartic", [("hmc", {"step_size": 0.4})])[0].run
    step = take_apart(run)
    coin = step.parts[-1]
    said = numbers_of(coin, step, 0)
    assert f"{coin.numbers['u']:.3g}" in said and ("accepted" if coin.numbers["accepted"] else "refused") in said


@pytest.fixture
def played():
    """A run on which three steps were looked at."""
    run, player = records("quartic", ["sgld"])[0].run, StepPlayer()
    for _ in range(3):
        player.look(run)
        run.advance(1)
    assert player.look(run)
    return run, player


def test_one_goes_back_to_what_was_and_forward_again(played):
    """Fails where a step back shows another step than the one that was, or moves the run."""
    run, player = played
    steps = [player.step]
    for _ in range(3):
        player.step_back()
        steps.append(player.step)
    assert run.steps == 3 and player.number == 1 and player.behind == 3
    for later, earlier in pairwise(steps):
        np.testing.assert_array_equal(earlier.end, later.start)
    player.step_back()
    assert player.number == 1
    assert not player.step_forward() and player.number == 2
    player.part_back()
    assert player.shown == len(player.step.parts) - 1 and len(player.playing().windows) == player.shown
    assert not player.part_forward() and player.whole
    assert not player.part_forward() and player.number == 3 and player.shown == 0


def test_the_chain_has_to_move_after_the_last_part(played):
    _, player = played
    assert player.whole and player.part_forward() and player.step_forward()


def test_parts_are_drawn_one_after_the_other(played, monkeypatch):
    _, player = played
    now = [100.0]
    monkeypatch.setattr(walk_module.time, "perf_counter", lambda: now[0])
    player.play(4.0)
    first = player.playing().windows
    assert first[0][0] == 0 and first[-1][1] < 4.0
    assert all(a[1] == b[0] for a, b in pairwise(first))
    # A frame that comes later finds them further on.
    now[0] += 1.5
    np.testing.assert_allclose(np.array(player.playing().windows), np.array(first) - 1.5)


def test_no_more_steps_are_kept_than_one_can_go_back():
    run, player = records("gaussian", ["sgld"])[0].run, StepPlayer()
    for _ in range(MAX_STEPS + 5):
        player.look(run)
        run.advance(1)
    for _ in range(2 * MAX_STEPS):
        player.step_back()
    assert player.number == 6


def test_a_step_that_is_too_long_is_said_in_place_of_arrows():
    run, player = records("gaussian", ["sgld"], n_chains=10_000)[0].run, StepPlayer()
    assert not player.look(run) and player.playing() is None and "10,000 chains" in player.problem


@for_each(
    ("sampler", "thermostat"),
    [("hmc", False), ("nuts", False), ("mclmc", False), ("asgld", False), ("msgnht", True), ("badodab", True)],
)
def test_a_thermostat_alone_is_called_xi(sampler, thermostat):
    """Numbers that a sampler adapts stand behind its momentum, too. A step of more thermostats is the planted fault."""
    params = {"adapt_steps": 100} if "adapt_steps" in SAMPLERS[sampler].param else {}
    run = records("quartic", [(sampler, params)])[0].run
    step = take_apart(run)
    assert any("ξ" in numbers_of(part, step, 0) for part in step.parts) == thermostat
    if params:
        wrong = step._replace(thermostats=len(step.end) - 2 * step.dim)
        assert any("ξ" in numbers_of(part, wrong, 0) for part in step.parts)


def test_rounding_has_no_arrow_and_says_so():
    """At its end gradient descent moves in the last digit, which 1e17 times as long would be an arrow."""
    view, lanes, _ = shown("state", "quartic", ("sgld", {}), "full")
    step = lanes.playing.step
    parts = [part._replace(path=step.start + np.array([[0.0], [1e-16]]) * step.start) for part in step.parts]
    lanes.playing = lanes.playing._replace(step=step._replace(parts=tuple(parts)))
    assert all(len(column) == 0 for column in view.compute(lanes)["parts"])
    assert "times" not in view.captions(lanes)[view._label.id]
    assert numbers_of(parts[0]._replace(numbers={}), step, 0) == "0, no arrow"


@pytest.mark.slow
def test_a_small_step_is_drawn_longer():
    view, lanes, _ = shown("state", "quartic", ("sgld", {"step_size": 1e-6}), "full")
    scale = longer(lanes.playing, view._place, view._span)
    assert scale >= 10
    assert isinstance(lanes.playing, Playing)
    view.compute(lanes)
    assert f"{scale:g} times" in view.captions(lanes)[view._label.id]
