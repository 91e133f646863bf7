"""The figures of a live page: differences for other lanes, another target and the dark, and recorded views."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from bokeh.models import LinearColorMapper
from bokeh.palettes import Category20_20, interp_palette

from sgmcmc_lab.app.live_page import document, figures, recorded, recording
from sgmcmc_lab.app.live_page.figures import Difference, Drawn
from sgmcmc_lab.app.live_page.still import still
from sgmcmc_lab.app.live_page.sweeping import dressed
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import View
from sgmcmc_lab.app.views.models.adjacency import shades
from sgmcmc_lab.app.views.planes import LiveImage, signed
from sgmcmc_lab.app.views.theme import DARK, LIGHT, in_dark, palette_in
from sgmcmc_lab.lessons.library import load_all
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each

CASES = {
    "quartic": ("sgld", {}),
    "gaussian": ("sghmc", {"sd": 2.0}),
    "mises_posterior": ("sggmc", {}),
    "fisher": ("sggmc", {}),
    "sparse_dirichlet": ("scir", {}),
    "linear_regression": ("sgld", {}),
}
FULL = ("quartic", "gaussian")
"""The targets with all their views: the four others share those that both of these have."""


def pair_of(target):
    """The experiment of a case."""
    return Experiment.from_dict({"target": target, "lanes": [{"sampler": CASES[target][0]}] * 2})


def scenes(target, sampler, base=2, temperature=1.0):
    """An experiment's scene of two lanes, and the same of one and three; the views that a live page has."""
    lanes = [{"sampler": sampler}] * base
    experiment = Experiment.from_dict({"target": target, "lanes": lanes, "temperature": temperature})
    scene = replace(document._scene(AppState(experiment=experiment)), throws=1, noted=0, parts=())
    keys = [key for key in document.LIVE if key in fitting(experiment)]
    return experiment, keys, {n: replace(scene, lanes=document.NAMES[:n]) for n in (1, base, 3)}


def looked_at(target, keys):
    """All views of the first two targets, and of another one its own, with a share of those that both have."""
    if target in FULL:
        return keys
    of_both = [key for key in document.LIVE if all(key in fitting(pair_of(one)) for one in FULL)]
    share = of_both[list(CASES).index(target) % 4 :: 4]
    return [key for key in keys if key not in of_both or key in share]


def apart(target, fault):
    """The views whose differences are not those of a figure that is built anew, and the number that were compared: in
    the dark theme, and for one and three lanes carried to the case's other target.
    """
    sampler, values = CASES[target]
    experiment, keys, made = scenes(target, sampler)
    data = {"key": target, "params": {**experiment.target.values(), **values}}
    other = Experiment.from_dict({**experiment.to_dict(), "target": data}).make_target()
    out, compared = [], 0
    for key in looked_at(target, keys):
        drawn = {n: Drawn.of(key, scene) for n, scene in made.items()}
        if drawn[2] is None:
            continue
        pairs = [(n, {"dark": True}, Difference.by_colour(one, in_dark())) for n, one in drawn.items()]
        if values:
            base = Difference.between(drawn[2], Drawn.of(key, replace(made[2], target=other)))
            pairs += [(n, {"target": other}, base.carried(drawn[2], drawn[n])) for n in (1, 3)]
        for n, change, difference in pairs:
            if difference is not None:
                compared += 1
                if fault(difference) != Difference.between(drawn[n], Drawn.of(key, replace(made[n], **change))):
                    out.append((key, n, *change))
    return out, compared


@pytest.mark.slow
@pytest.mark.parametrize("target", CASES)
def test_differences_are_those_of_figures_that_are_built_anew(target):
    """Fails where a figure of one to three lanes keeps a colour or a curve of another theme or target."""
    wrong, compared = apart(target, lambda difference: difference)
    assert not wrong
    assert compared > 5


@pytest.mark.slow
@pytest.mark.parametrize("target", FULL)
def test_a_difference_that_forgets_a_property_is_seen(target):
    """The planted fault: one property of each difference stays as it was."""

    def forgetful(difference):
        for model, values in difference.after.items():
            left = dict(list(values.items())[1:])
            return Difference(difference.before, {**difference.after, model: left})
        return difference

    wrong, compared = apart(target, forgetful)
    assert len({n for _, n, _ in wrong}) == 3
    assert {change for *_, change in wrong} == ({"dark", "target"} if CASES[target][1] else {"dark"})
    assert len(wrong) > compared / 2


TURNED = {
    "a line": ("gaussian", "sghmc", 1.0, {"target": {"key": "gaussian", "params": {"sd": 2.0}}}),
    "a logarithmic line": ("gamma", "sgrld", 1.0, {"target": {"key": "gamma", "params": {"shape": 3.0}}}),
    "a line at another temperature": ("double_well", "sghmc", 2.0, {"temperature": 4.0}),
    "shares": ("dense_dirichlet", "scir", 1.0, {"temperature": 2.0}),
    "answers of a long run": ("logistic_regression", "sgld", 2.0, {"temperature": 4.0}),
}
"""A target with a sampler and a temperature, and the change to another target."""


def turned_apart(case):
    """The figures that turn to the other target, and those of them that a figure built anew is not like."""
    target, sampler, temperature, to = TURNED[case]
    experiment, keys, made = scenes(target, sampler, temperature=temperature)
    other = Experiment.from_dict({**experiment.to_dict(), **to}).make_target()
    other.prepare(lambda *_: None)
    found, wrong = [], []
    for key in (key for key in keys if VIEWS[key].aims):
        for n, scene in made.items():
            one, then = Drawn.of(key, scene), replace(scene, target=other)
            data, turned, twin = one.view.live_data(), one.turned(other), Drawn.of(key, then)
            assert one.view.live_data() == data, "the figure is its own target's again"
            if turned is None:
                continue
            found.append(key)
            same = turned.data == twin.view.live_data() and turned.change == Difference.between(one, twin)
            ids = {"figure", "arrow"}
            taps = (
                {k: v for k, v in (tap or {}).items() if k not in ids} for tap in (turned.tap, twin.view.live_tap())
            )
            if not same or len({json.dumps(tap) for tap in taps}) > 1:
                wrong.append((key, n))
    return found, wrong


@pytest.mark.slow
@pytest.mark.parametrize("case", TURNED)
def test_a_figure_that_turns_to_another_target_is_like_one_built_anew(case):
    found, wrong = turned_apart(case)
    assert not wrong
    assert len({*found}) > 4


@pytest.mark.slow
def test_a_property_that_does_not_turn_is_seen(monkeypatch):
    """The planted fault: of what follows the target a view tells all but one property."""

    def put(self, model, **values):
        model.update(**values)
        self.aimed |= {(model.id, name): (model, name) for name in list(values)[1:]}

    monkeypatch.setattr(View, "put", put)
    wrong = {key for key, _ in turned_apart("a line")[1]}
    assert wrong == {"energy", "marginal", "trace"}


@pytest.mark.slow
def test_figures_that_are_built_otherwise_are_told():
    """A plane's figure and a line's have no difference in values alone."""
    found = [Drawn.of("state", scenes(target, "sgld")[2][2]) for target in ("quartic", "gaussian")]
    with pytest.raises(figures.StructureError):
        Difference.between(*found)


def recorded_views(frames, monkeypatch, keys=("evolution", "stationarity", "moments", "order")):
    monkeypatch.setattr(recorded, "FRAMES", frames)
    experiment = Experiment.from_dict({"target": "double_well", "lanes": [{"sampler": "recipe"}], "n_steps": 300})
    state = AppState(experiment=experiment)
    found = recorded.recorded(state, document._scene(state), list(keys))
    return {drawn.view.key: (drawn, said) for drawn, said in found}


@pytest.mark.slow
def test_views_that_need_python_are_recorded(monkeypatch):
    """Their pictures are of the end of a run, and follow it; a planted fault, a run of one frame, is seen."""
    found = recorded_views(40, monkeypatch)
    assert set(found) == {"evolution", "stationarity", "moments", "order"}
    assert any("slope" in line for line in found["order"][1])
    kl = [found["evolution"][0].view.feeds[name].model.data["x"] for name in ("KL exact", "KL chains")]
    assert all(len(x) > 10 and np.ptp(x) > 1 for x in kl)
    short = recorded_views(1, monkeypatch, ["evolution"])["evolution"][0].view.feeds["KL exact"].model.data["x"]
    assert len(short) < 10


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_recorded_images_hold_their_colours(fault, monkeypatch):
    """A live page runs no callback that would put numbers into an image. Fault: nothing does."""
    if fault:
        monkeypatch.setattr(LiveImage, "_fill", lambda _: None)
    monkeypatch.setattr(recorded, "FRAMES", 1)
    state = AppState(experiment=load_all([]).lessons["gamma"].steps[0].quick_spec)
    ((drawn, _),) = recorded.recorded(state, document._scene(state), ["stationarity"])
    images = [
        model.data["image"][0] for model in drawn.view.figure.references() if "image" in getattr(model, "data", {})
    ]
    assert images and any(np.ptp(image) > 0 for image in images) == (not fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_recorded_views_are_dark_in_the_dark(fault, monkeypatch):
    """White, the light theme's ground, is Bokeh's default, which no document says. Fault: defaults are passed over."""
    found, _ = recorded_views(1, monkeypatch, ["stationarity"])["stationarity"]
    if fault:
        monkeypatch.setattr(figures, "_colours", lambda _: frozenset())
    change = Difference.by_colour(found, in_dark())
    plots = [model for model, kind, _ in found.attributes if kind == "Figure"]
    grounds = {change.after.get(plot, {}).get("background_fill_color") for plot in plots}
    assert plots and (grounds == {DARK.surface}) == (not fault)
    assert fault or all(change.before[plot]["background_fill_color"] == LIGHT.surface for plot in plots)


@pytest.mark.parametrize("fault", [False, True])
def test_a_colour_is_replaced_once(fault, monkeypatch):
    """Light lines have the colour of dark texts. Fault: one colour is replaced after the other."""
    if fault:
        chained = lambda text, known: reduce(lambda so_far, pair: so_far.replace(*pair), known.items(), text)  # noqa: E731
        monkeypatch.setattr(figures, "_recoloured", chained)
    light, dark = ([theme.text, f"<b style='color:{theme.lanes[1]}'>", theme.grid] for theme in (LIGHT, DARK))
    assert (figures._recoloured(json.dumps(light), in_dark()) == json.dumps(dark)) == (not fault)


def rgb(palette):
    return np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in palette])


PALETTES = {
    "lane": lambda theme: shades(theme.surface, theme.lanes[0]),
    "grid": lambda theme: shades(theme.grid, theme.lanes[0]),
    "signed": signed,
    "density": lambda theme: interp_palette(list(theme.density), 64),
}


@for_each("name", PALETTES)
def test_a_palette_in_the_dark_is_the_dark_themes(name):
    """Fails where only the ends of a palette are dark, or its middle is not that of the dark theme."""
    np.testing.assert_allclose(rgb(palette_in(PALETTES[name](LIGHT), in_dark())), rgb(PALETTES[name](DARK)), atol=1.01)
    assert palette_in(Category20_20, in_dark()) == list(Category20_20)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mises_posterior", "fisher", "quartic"])
def test_a_recorded_ground_is_dark_in_the_dark(target):
    """The image under the chains. Fails where a recording keeps the light theme's palette."""
    scene = scenes(target, "sggmc" if target != "quartic" else "sgld", 1)[2][1]
    key = {"mises_posterior": "torus", "fisher": "globe", "quartic": "state"}[target]
    light, dark = dressed(VIEWS[key](scene).figure)
    twin = VIEWS[key](replace(scene, dark=True)).figure
    (wanted,) = {tuple(one.palette) for one in twin.select({"type": LinearColorMapper}) if len(one.palette) == 64}
    (found,) = {tuple(one["palette"]) for one in dark.values() if len(one.get("palette", ())) == 64}
    np.testing.assert_allclose(rgb(found), rgb(wanted), atol=1.01)
    assert found[0] == DARK.density[0] and any(
        one.get("palette", [""])[0] == LIGHT.density[0] for one in light.values()
    )


READY = [key for key, target in TARGETS.items() if key not in ("typed", "posterior") and target().ready]


def squares(key):
    target = TARGETS[key]()
    return [path for path in re.findall('<path d="([^"]*)"', still(target, 0)) if path]


@for_each("key", READY)
def test_each_target_has_a_still_picture(key):
    """It has numbers alone, and is small."""
    drawn = "".join(squares(key))
    assert 100 < len(drawn) < 60_000
    assert not re.search("nan|inf", drawn)


def test_the_still_picture_is_the_density():
    """The darkest squares are where the quartic's density is largest; a planted fault, axes exchanged, is seen."""
    corners = re.findall(r"M([\d.]+) ([\d.]+)h", squares("quartic")[-1])
    x, y = np.array(corners, dtype=float).T
    (low, high), (bottom, top) = (column.axis for column in TARGETS["quartic"]().columns)
    theta = np.column_stack([low + (high - low) * (x / 320 + 1 / 96), top - (top - bottom) * (y / 200 + 1 / 96)])
    darkest = TARGETS["quartic"]().log_density(theta)
    everywhere = TARGETS["quartic"]().log_density(TARGETS["quartic"]().sample(0, 4000))
    assert darkest.min() > everywhere.max() - 0.35
    assert TARGETS["quartic"]().log_density(theta[:, ::-1]).min() < everywhere.max() - 0.35


def test_a_long_column_is_packed_to_a_level_and_a_short_one_to_four_digits():
    """Marks such as −1, 0 and 1 stay exact, and NaN stays absent. Planted fault: another level for absent numbers."""
    x = np.random.default_rng(3).uniform(-1, 1, recording.LONG)
    x[:4] = -1, 0, 1, np.nan
    packed = recording._column(x)
    levels = np.frombuffer(b64decode(packed["levels"]), dtype="<u2")
    found = np.where(
        levels == recording.ABSENT, np.nan, packed["low"] + (packed["high"] - packed["low"]) * levels / recording.LEVELS
    )
    np.testing.assert_array_equal(found[:4], x[:4])
    np.testing.assert_allclose(found[4:], x[4:], atol=2 / recording.LEVELS)
    assert recording._column(x[1:8]) == [0, 1, None, *(float(f"{one:.4g}") for one in x[4:8])]
    assert (
        recording._column(np.full(recording.LONG, np.nan))["levels"] == b64encode(b"\xff" * 2 * recording.LONG).decode()
    )
