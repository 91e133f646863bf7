"""The engine: the same spec is the same draws, and what is counted while running is what was drawn."""

import importlib
import pkgutil
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine, kernels
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.kernels.recipe import parameters_of
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.parameters import Count, CountVector, Flag, Option, SpecError, declared
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.running_statistics import (
    HISTORY,
    LAG_RATIO,
    N_BINS,
    N_JOINT,
    N_LAGS,
    N_LEVELS,
    TAIL,
    WATCHED,
    bin_edges,
)
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.own import Table, keep
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import OFFERED, SMALL, SOON, check_card, dim_of, small_tables, soon_known
from tests.helpers.statistics import put_sampler


def one_target_a_sampler():
    """Every sampler and estimator once, on a target with two or more coordinates where there is one."""
    chosen = {}
    for s, t, g in OFFERED:
        if (s, g) not in chosen or dim_of(chosen[s, g]) == 1 < dim_of(t):
            chosen[s, g] = t
    return [(s, t, g) for (s, g), t in chosen.items()]


EACH = one_target_a_sampler()


def collect(spec, chunks):
    """All draws and the run, advanced in chunks whose sizes go round in ``chunks``."""
    run = engine.Run(spec, keep_draws=True)
    total, k = spec.burn_in + spec.n_steps, 0
    while run.steps < total:
        run.advance(min(chunks[k % len(chunks)], total - run.steps))
        k += 1
    return run


def sums_of(run):
    return run.statistics.sums._asdict()


# --- the same draws -----------------------------------------------------------------------------


@pytest.mark.slow
@for_each(("s", "t", "g"), EACH, apart=lambda s, *rest: s)
def test_chunks_do_not_change_the_draws(s, t, g):
    """Fails where a kernel keeps state outside ``State``, or uses random numbers at the start or end of a chunk.

    Draws, the last state and all counts must be the same to the bit; sums of squares and products, whose order of
    addition differs, to 1e-9.
    """
    spec = RunSpec.of(t, s, g, sampler_params=SOON.get(s, {}), n_steps=1050, burn_in=37, thin=2, n_chains=3, seed=5)
    whole = collect(spec, [10_000])
    # Chunks of one step through the end of the burn-in and on: all of them would take ten times as long.
    for chunks in ([1] * 150 + [10_000], [300], [1, 7, 300, 2, 64]):
        parts = collect(spec, chunks)
        np.testing.assert_array_equal(parts.kept, whole.kept)
        np.testing.assert_array_equal(parts.position, whole.position)
        np.testing.assert_array_equal(parts.momentum, whole.momentum)
        np.testing.assert_array_equal(parts.memory, whole.memory)
        np.testing.assert_array_equal(parts.counts[:2], whole.counts[:2])
        np.testing.assert_allclose(parts.counts[2:], whole.counts[2:], rtol=1e-9)
        assert (parts.gradients, parts.data_seen, parts.counted_from) == (
            whole.gradients,
            whole.data_seen,
            whole.counted_from,
        )
        for name, value in sums_of(whole).items():
            other = sums_of(parts)[name]
            if value.dtype == np.int64 or name in ("history", "tail", "lag_recent", "lag_first"):
                np.testing.assert_array_equal(other, value, err_msg=name)
            else:
                np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-9 * np.abs(value).max(initial=1.0))


def test_the_draws_differ_with_the_seed_and_between_chains():
    """Fails where the seed is not used, or where chains share their random numbers."""
    a = engine.run(RunSpec.of("gaussian", "sgld", n_steps=50, seed=1)).draws
    b = engine.run(RunSpec.of("gaussian", "sgld", n_steps=50, seed=2)).draws
    again = engine.run(RunSpec.of("gaussian", "sgld", n_steps=50, seed=1)).draws
    np.testing.assert_array_equal(a, again)
    assert not np.any(a == b)
    assert not np.any(a[0] == a[1])


@for_each(("s", "t", "g"), EACH)
def test_run_gives_what_advance_gives(s, t, g):
    """Fails where ``run`` loses or repeats steps when it adapts its chunks to the clock."""
    spec = RunSpec.of(t, s, g, sampler_params=SOON.get(s, {}), n_steps=700, burn_in=11, n_chains=2, seed=3)
    trace = engine.run(spec, chunk_seconds=1e-5)
    np.testing.assert_array_equal(trace.draws, collect(spec, [10_000]).kept)
    assert trace.steps == 711


# --- what is counted -----------------------------------------------------------------------------


def full_trace(t, s, g="", **settings):
    run = collect(RunSpec.of(t, s, g, **settings), [977, 13, 1, 400])
    return run, run.target.values(run.kept)  # (chains, steps, columns)


COUNTED = [
    ("quartic", "sgld", "full", {"n_steps": 5000, "n_chains": 3, "burn_in": 100}),
    ("sparse_dirichlet", "scir", "minibatch", {"n_steps": 2500, "n_chains": 10, "burn_in": 5}),
    ("gamma", "exact", "full", {"n_steps": 40_000, "n_chains": 2, "burn_in": 0}),
]


@for_each(("t", "s", "g", "settings"), COUNTED)
def test_histograms_count_every_draw(t, s, g, settings):
    """Fails where a draw is counted twice, not at all, or in the wrong bin; the outer bins count what is outside.

    The bins of numpy's ``searchsorted`` on the edges must hold the same counts exactly.
    """
    run, values = full_trace(t, s, g, **settings)
    for k, column in enumerate(run.target.columns):
        edges = bin_edges(column)
        assert np.all(np.diff(edges) > 0)
        places = np.searchsorted(edges, values[..., k].ravel(), side="right")
        expected = np.bincount(places, minlength=N_BINS + 2)
        np.testing.assert_array_equal(run.statistics.counts(k), expected, err_msg=column.name)
    assert run.statistics.counts(0).sum() == run.statistics.n_draws == values[..., 0].size


def test_values_outside_the_histogram_are_counted_in_its_outer_bins():
    """Fails where the under- or overflow is dropped: a chain far outside [low, high] must fill the outer bins."""
    run = engine.Run(RunSpec.of("gaussian", "sgld", n_chains=2, n_steps=10, sampler_params={"step_size": 1e-6}))
    column = run.target.columns[0]
    run.position[:, 0] = column.low - 1, column.high + 1
    run.advance(10)
    counts = run.statistics.counts(0)
    assert (counts[0], counts[-1], counts[1:-1].sum()) == (10, 10, 0)


@for_each(("t", "s", "g", "settings"), COUNTED)
def test_moments_are_those_of_the_draws(t, s, g, settings):
    """Fails where a power sum misses draws, or where mean and variance are scaled back wrongly."""
    run, values = full_trace(t, s, g, **settings)
    stats = run.statistics
    for k, column in enumerate(run.target.columns):
        if k >= run.target.n_values:
            continue  # the odds have no moments
        x = values[..., k]
        z = (x - column.mean) / np.sqrt(column.variance)
        np.testing.assert_allclose(stats.chain_means(k), x.mean(axis=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stats.mean(k), x.mean(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stats.variance(k), x.var(), rtol=1e-7)
        for power in (1, 2, 3, 4):
            np.testing.assert_allclose(stats.raw_moment(k, power), (z**power).mean(), rtol=1e-9, atol=1e-12)


def test_joint_histogram_counts_pairs():
    """Fails where x and y are exchanged, a scale is wrong, or a draw outside the axes is put into an edge cell."""
    run, values = full_trace("quartic", "sgld", n_steps=6000, n_chains=3)
    x, y = (column.axis for column in run.target.columns)
    expected, *_ = np.histogram2d(values[..., 0].ravel(), values[..., 1].ravel(), bins=N_JOINT, range=[x, y])
    difference = np.abs(run.statistics.sums.joint - expected).sum()
    assert difference <= 2  # numpy's last bin is closed, and an edge may round to the other side
    assert expected.sum() > 17_000


@for_each(("t", "s", "g", "settings"), COUNTED)
def test_autocovariance_sums_at_every_level(t, s, g, settings):
    """Fails where a level starts at the wrong step, forgets values between chunks, or pairs the wrong lags.

    Level k is the products at lags 0…15 of every 4ᵏ-th counted step, from the first one on.
    """
    run, values = full_trace(t, s, g, **settings)
    sums = run.statistics.sums
    for k in range(run.target.n_values):
        column = run.target.columns[k]
        z = (values[:WATCHED, :, k] - column.mean) * (1 / np.sqrt(column.variance))
        for level in range(N_LEVELS):
            sub = z[:, :: LAG_RATIO**level]
            first = sub[:, :N_LAGS]
            at = level * N_LAGS
            np.testing.assert_allclose(sums.lag_first[k, :, at : at + first.shape[1]], first, rtol=1e-12)
            np.testing.assert_allclose(
                sums.level_sums[k, :, level], sub.sum(axis=1), rtol=1e-9, atol=1e-9 * np.abs(sub).sum()
            )
            for lag in range(N_LAGS):
                expected = (sub[:, lag:] * sub[:, : sub.shape[1] - lag]).sum(axis=1) if lag < sub.shape[1] else 0.0
                np.testing.assert_allclose(
                    sums.lag_sums[k, :, level * N_LAGS + lag],
                    expected,
                    rtol=1e-9,
                    atol=1e-9 * np.abs(sub).max() ** 2 * sub.shape[1],
                    err_msg=f"level {level} lag {lag}",
                )


@for_each(("t", "s", "g", "settings"), COUNTED)
def test_history_and_tail_are_the_draws(t, s, g, settings):
    """Fails where the thinned history is not every ``stride``-th counted step from the first, or the tail has a gap."""
    run, values = full_trace(t, s, g, **settings)
    stats = run.statistics
    expected = values[:WATCHED, :: stats.history_stride]
    assert HISTORY // 2 <= expected.shape[1] <= HISTORY
    np.testing.assert_array_equal(stats.history(), expected)
    for n in (1, 700, 5000):
        tail = stats.tail(n)
        np.testing.assert_array_equal(tail, run.kept[:WATCHED].transpose(1, 0, 2)[-min(n, TAIL) :])


def test_history_before_it_is_full_is_every_step():
    """Fails where the history is thinned too early, or where the step that fills it is lost."""
    for n in (1, HISTORY - 1, HISTORY, HISTORY + 1, 2 * HISTORY, 2 * HISTORY + 1):
        run, values = full_trace("gaussian", "sgld", n_steps=n, n_chains=1)
        stride = 1 if n <= HISTORY else 2 if n <= 2 * HISTORY else 4
        assert run.statistics.history_stride == stride
        np.testing.assert_array_equal(run.statistics.history(), values[:, ::stride])


def test_burn_in_is_not_counted():
    """Fails where burn-in steps reach the statistics or the kept draws, or where burn-in changes the chain."""
    with_burn_in = collect(RunSpec.of("quartic", "sgld", n_steps=400, burn_in=100, seed=9), [33])
    without = collect(RunSpec.of("quartic", "sgld", n_steps=500, seed=9), [500])
    np.testing.assert_array_equal(with_burn_in.kept, without.kept[:, 100:])
    assert with_burn_in.statistics.n_steps == 400
    assert with_burn_in.counted_from == 100
    np.testing.assert_allclose(with_burn_in.statistics.mean(0), without.kept[:, 100:, 0].mean(), rtol=1e-9)


def test_a_restart_counts_from_nothing():
    """Fails where restarted statistics keep anything of what was counted, or lose the tail of draws."""
    spec = RunSpec.of("quartic", "sgld", n_steps=3 * HISTORY, n_chains=2)
    run, empty = collect(spec, [5000]), sums_of(engine.Run(spec))
    stats, tail = run.statistics, run.statistics.tail(TAIL)
    counted = empty.keys() - {"scales", "joint_scales"}
    assert not any(np.array_equal(sums_of(run)[name], empty[name]) for name in counted)
    stats.restart()
    assert sums_of(run)["clock"].tolist() == [0, 0, 1, 3 * HISTORY, 0]
    np.testing.assert_array_equal(stats.tail(TAIL), tail)
    for name in empty.keys() - {"clock", "tail"}:
        np.testing.assert_array_equal(sums_of(run)[name], empty[name], err_msg=name)


@for_each("thin", [1, 2, 3, 7, 400, 401])
def test_thin_keeps_every_thin_th_step(thin):
    """Fails where another draw is kept than those of steps thin, 2·thin, … after the burn-in, or their number is not
    n_steps // thin; and where thinning touches the statistics, which count every step."""
    settings = {"n_steps": 401, "burn_in": 20, "seed": 4}
    every = collect(RunSpec.of("quartic", "sgld", **settings), [50])
    some = collect(RunSpec.of("quartic", "sgld", **settings, thin=thin), [50])
    assert some.trace().draws.shape[1] == 401 // thin
    np.testing.assert_array_equal(some.trace().draws, every.kept[:, thin - 1 :: thin])
    np.testing.assert_array_equal(some.statistics.sums.bins, every.statistics.sums.bins)
    assert some.statistics.n_steps == 401


# --- changes, divergence, interrupts ---------------------------------------------------------------


def test_a_spec_with_changes_repeats_a_live_run():
    """Fails where a change is made a step early or late, or where it touches the random numbers or the momentum."""
    start = RunSpec.of("quartic", "sghmc", n_steps=600, burn_in=50, seed=8)
    other = RunSpec.of("quartic", "sghmc", "gaussian", sampler_params={"step_size": 0.03, "friction": 4.0})
    third = RunSpec.of("quartic", "sghmc", sampler_params={"step_size": 0.05})
    live = engine.Run(start, keep_draws=True)
    for until, spec in ((20, other), (333, third), (500, other)):
        live.advance(until - live.steps)
        live.change(Change(0, spec.sampler, spec.gradient))
    live.advance(650 - live.steps)
    repeated = RunSpec.from_json(replace(start, changes=tuple(live.changes)).to_json())
    assert [x.step for x in repeated.changes] == [20, 333, 500]
    for chunks in ([1000], [7]):
        again = collect(repeated, chunks)
        np.testing.assert_array_equal(again.kept, live.kept)
        np.testing.assert_array_equal(again.statistics.sums.bins, live.statistics.sums.bins)
        assert again.counted_from == live.counted_from == 500
        assert again.statistics.n_steps == 150
    unchanged = collect(start, [1000])
    assert not np.array_equal(unchanged.kept, live.kept)


def twin(run):
    """A fresh run of what moves ``run`` now, from where its chains and its generator are: fed the later draws alone."""
    fresh = engine.Run(replace(run.now, burn_in=0))
    for name in ("position", "momentum", "data"):
        getattr(fresh, name)[:] = getattr(run, name)
    fresh.rng.bit_generator.state = run.rng.bit_generator.state
    return fresh


def differing(run, fresh):
    """The fields of statistics and counts in which a run is not the fresh one."""
    own, other = sums_of(run), sums_of(fresh)
    clocks = [x.pop("clock")[:3] for x in (own, other)]
    out = [name for name in own if name != "tail" and not np.array_equal(own[name], other[name])]
    if not np.array_equal(*clocks):
        out.append("clock")
    if not np.array_equal(run.statistics.tail(TAIL), fresh.statistics.tail(TAIL)):
        out.append("tail")
    counted = ("counts", "temperature", "thermostat")
    return out + [name for name in counted if not np.array_equal(getattr(run, name), getattr(fresh, name))]


CHANGED = [
    # Target, sampler, gradient, chains, and the parameters after the change. Twelve chains are more than the watched.
    ("quartic", "sgld", "full", 12, {"step_size": 0.02}, {}),
    ("gaussian", "sgld", "gaussian", 1, {"step_size": 0.3}, {}),
    ("sparse_dirichlet", "scir", "minibatch", 3, {"step_size": 0.3}, {}),
    ("circle_mixture", "gsgnht", "gaussian", 9, {"step_size": 0.02}, {}),
    ("quartic", "hmc", "full", 2, {"step_size": 0.4}, {}),
    ("typed", "sghmc", "full", 10, {"friction": 3.0}, {"energy": "theta^2"}),
]


@for_each(("t", "s", "g", "n_chains", "params", "target_params"), CHANGED)
@for_each("burn_in", [0, 5 * HISTORY])
def test_statistics_after_a_change_are_a_fresh_ones(t, s, g, n_chains, params, target_params, burn_in):
    """Fails where a field of the statistics, or a count, keeps something of what was before a change.

    After it each must be, to the bit, that of a fresh run that was fed the later draws alone. Before the change more
    than 4·HISTORY steps were counted, or were burn-in.

    Planted fault: each field as it was before the change, which must be seen. That of the sums of a level left τ nan.
    """
    run = engine.Run(RunSpec.of(t, s, g, n_chains=n_chains, burn_in=burn_in, n_steps=10, seed=3))
    run.advance(4 * HISTORY + 37)
    before = {name: array.copy() for name, array in sums_of(run).items()}
    to = RunSpec.of(t, s, g, sampler_params=params, target_params=target_params)
    run.change(Change(0, to.sampler, to.gradient, to.target if target_params else None))
    fresh = twin(run)
    if burn_in:
        for each in (run, fresh):
            each.advance(burn_in - run.steps if each is run else burn_in - 4 * HISTORY - 37)
        fresh.restart_statistics()
    for n in (3 * HISTORY, 50):
        run.advance(n)
        fresh.advance(n)
    assert run.statistics.n_steps == 3 * HISTORY + 50
    assert not differing(run, fresh)
    assert np.array_equal(run.position, fresh.position)
    if burn_in:
        return
    # The scales follow from the target alone, and a change of the target makes new ones.
    for name in before.keys() - {"scales", "joint_scales"}:
        array = sums_of(run)[name]
        if before[name].any():
            kept = array.copy()
            array[:] = kept + before[name]
            assert name in differing(run, fresh)
            array[:] = kept


LANES = ["sgld", "sghmc(friction:2)", "sgld(step_size:0.02)", "hmc"]


def test_a_lanes_draws_are_those_of_a_run_of_it_alone():
    """Fails where what a lane draws depends on its place or on the lanes beside it: the same seed goes to all, and all
    are advanced in turns. Planted fault: seeds counted from the first lane on, which the second lane shows."""
    experiment = Experiment.from_query(
        "target=quartic&seed=7&" + "&".join(f"lane={lane}~full" for lane in LANES),
        Experiment.from_dict({"target": "quartic", "lanes": [{"sampler": "sgld"}]}),
    )[0]
    runs = [engine.Run(spec) for spec in experiment.runs()]
    for _ in range(3):
        for each in runs:
            each.advance(20)
    for k, (each, lane) in enumerate(zip(runs, experiment.lanes, strict=True)):
        alone = RunSpec.of("quartic", lane.sampler.key, lane.gradient.key, sampler_params=lane.sampler.values(), seed=7)
        assert each.spec == alone
        np.testing.assert_array_equal(each.position, collect(replace(alone, n_steps=60), [60]).position)
        off = collect(replace(alone, n_steps=60, seed=7 + k), [60])
        assert np.array_equal(each.position, off.position) == (k == 0)


def test_a_chain_goes_on_where_its_target_changes():
    """Fails where the chain starts again, where its draws or statistics are still of the law before, or where the JSON
    loses the change. The typed energies have mean 0 and 3 and standard deviation 1."""
    before, after = ("theta^2/2", "(theta-3)^2/2")
    start = RunSpec.of("typed", "sghmc", target_params={"energy": before, "extent": 10.0}, n_steps=20_000, seed=3)
    other = RunSpec.of("typed", "sghmc", target_params={"energy": after, "extent": 10.0})
    live = engine.Run(start, keep_draws=True)
    live.advance(5000)
    place = live.position.copy()
    live.change(Change(0, other.sampler, other.gradient, other.target))
    np.testing.assert_array_equal(live.position, place)
    assert live.now.target == other.target
    assert live.statistics.n_draws == 0
    live.advance(15_000)
    repeated = RunSpec.from_json(replace(start, changes=tuple(live.changes)).to_json())
    again = collect(repeated, [777])
    np.testing.assert_array_equal(again.kept, live.kept)
    # 60,000 draws with τ of about 40: an SE of .026; five of them, and the way from 0.
    assert abs(live.statistics.mean(0) - 3.0) < 0.15
    np.testing.assert_array_equal(again.statistics.sums.bins, live.statistics.sums.bins)
    # Planted fault: without the new target the law is the old one.
    wrong = collect(replace(repeated, changes=(repeated.changes[0]._replace(target=None),)), [777])
    assert abs(wrong.statistics.mean(0)) < 0.15


COUPLED = {"layout": "theta_r", "curl_entries": ("-1",)}
DRAGGED = {
    "a step size": ("gaussian", "sgld", {}, [({"step_size": 0.1 + k / 1e4}, None) for k in range(2000)], 1),
    "a target, then a step size": ("gaussian", "sgld", {}, [({}, {"sd": 2.0}), ({"step_size": 0.3}, None)], 1),
    "a layout and back": ("double_well", "recipe", COUPLED, [({"layout": "theta"}, None), (COUPLED, None)], 2),
}
"""The target, the sampler and its first parameters; the changes; and how many are recorded."""


@pytest.mark.slow
@pytest.mark.parametrize("what", DRAGGED)
def test_of_several_changes_at_one_step_the_last_is_recorded_and_gives_the_same_draws(what):
    """A slider that is dragged on a paused page leaves one change; one that gives chains other variables stays."""
    target, sampler, first, dragged, kept = DRAGGED[what]
    live = engine.Run(RunSpec.of(target, sampler, sampler_params=first, n_chains=3, n_steps=40))
    live.advance(20)
    for params, target_params in dragged:
        spec = RunSpec.of(target, sampler, sampler_params=params, target_params=target_params)
        live.change(Change(0, spec.sampler, spec.gradient, spec.target if target_params else None))
    live.advance(20)
    assert len(live.changes) == kept
    whole = engine.run(replace(live.spec, changes=tuple(live.changes)))
    np.testing.assert_array_equal(whole.draws[:, -1], live.position)
    # Planted fault: only the last of what differs in more than its values.
    lost = [change._replace(target=None) for change in live.changes[-1:]]
    if (lost, kept) != (live.changes, 1):
        assert not np.array_equal(engine.run(replace(live.spec, changes=tuple(lost))).draws[:, -1], live.position)


@pytest.mark.parametrize(
    "target", [{"key": "quartic"}, {"key": "typed", "params": {"energy": "theta1^2+theta2^2", "extent": 8.0}}]
)
def test_a_change_of_the_target_keeps_its_name_and_dimension(target):
    spec = RunSpec.of("typed", "sgld", target_params={"energy": "theta^2/2", "extent": 8.0}).to_dict()
    spec["changes"] = [{"step": 5, "sampler": spec["sampler"], "gradient": spec["gradient"], "target": target}]
    with pytest.raises(SpecError, match=r"changes\.target .*typed.*dimension, 1"):
        RunSpec.from_dict(spec)


def finite(run):
    """Whether all that a run has summed is finite; odds have no moments: their sums may be infinite, not NaN."""
    sums = run.statistics.sums
    odds = np.array([column.odds_of is not None for column in run.target.columns])
    moments = sums.powers, sums.lag_sums
    parts = [*(part[~odds] for part in moments), sums.lag_recent, run.statistics.history(), run.statistics.tail(TAIL)]
    unset = any(np.isnan(part).any() for part in moments)
    return not unset and all(np.isfinite(part).all() for part in parts) and np.isfinite(run.trace().draws).all()


@for_each("chunk", [1, 100_000])
@for_each(
    ("s", "params"),
    [("sgld", {"step_size": 0.5}), ("sghmc", {"step_size": 1.5}), ("hmc", {"step_size": 2.0, "accept": False})],
)
def test_a_step_too_large_stops_with_a_sentence(s, params, chunk):
    """Fails where a diverged chain leaves NaN or infinity in what is shown, or where the message does not say who
    diverged on what and at which step size; and where the run goes on afterwards."""
    spec = RunSpec.of("quartic", s, "full", sampler_params=params, n_steps=5000, n_chains=4)
    run = engine.Run(spec, keep_draws=True)
    while run.steps < 5000 and run.divergence is None:
        run.advance(chunk)
    message = run.divergence.message
    for part in (SAMPLERS[s].title, TARGETS["quartic"].title, f"{params['step_size']:g}", f"step {run.steps + 1:,}"):
        assert part in message
    assert finite(run)
    assert run.trace().draws.shape[1] == run.steps == run.statistics.n_steps < 5000
    before = run.trace().draws
    run.advance(10)
    assert run.steps == len(before[0])
    trace = engine.run(spec)
    np.testing.assert_array_equal(trace.draws, before)
    assert trace.divergence == run.divergence


def test_the_burn_in_is_not_among_the_accepted():
    """Fails where accepted proposals of the burn-in are counted over the draws after it: a share of nearly six."""
    spec = RunSpec.of("quartic", "hmc", sampler_params={"step_size": 0.01}, n_steps=100, burn_in=500)
    assert 0.99 < engine.run(spec).acceptance <= 1.0


def test_hmc_rejects_a_proposal_that_overflows():
    """Fails where a NaN energy is accepted: with the accept step, a leapfrog that blows up must leave θ where it was.

    At ε = 5 on the quartic the proposal overflows to NaN within its ten leapfrog steps.
    """
    spec = RunSpec.of("quartic", "hmc", sampler_params={"step_size": 5.0, "n_leapfrog": 10}, n_steps=200)
    trace = engine.run(spec)
    assert trace.divergence is None
    assert trace.accepted < 8
    assert np.isfinite(trace.draws).all()


@pytest.mark.slow
@pytest.mark.parametrize("t", TARGETS)
def test_every_target_refuses_a_wild_step_or_survives_it(t):
    """Fails where the largest step size leads to NaN in the statistics instead of a divergence with a message."""
    for s, sampler in SAMPLERS.items():
        if not (sampler.fits(TARGETS[t]) and sampler.takes(dim_of(t))):
            continue
        params = {"step_size": dict(declared(sampler))["step_size"].bounds[1]} if s != "exact" else {}
        run = collect_until(
            RunSpec.of(t, s, target_params=soon_known(t), sampler_params=params, n_steps=300, n_chains=2)
        )
        assert finite(run), s


def collect_until(spec):
    run = engine.Run(spec, keep_draws=True)
    run.advance(spec.n_steps)
    return run


def test_interrupt_keeps_the_draws_so_far():
    """Fails where Ctrl-C loses what was drawn, or where it is raised past ``run``."""
    calls = []

    def progress(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    spec = RunSpec.of("quartic", "sgld", n_steps=10_000_000, thin=100)
    trace = engine.run(spec, progress=progress, chunk_seconds=0.001)
    assert len(calls) == 3
    assert calls[-1] == (trace.steps, 10_000_000)
    assert trace.draws.shape[1] == trace.steps // 100 > 0
    again = engine.run(replace(spec, n_steps=trace.steps))
    np.testing.assert_array_equal(trace.draws, again.draws)


# --- size, threads -----------------------------------------------------------------------------------


def test_ten_thousand_chains():
    """Fails where the chains of a large ensemble are not all moved and counted, or share random numbers."""
    spec = RunSpec.of("quartic", "sgld", n_chains=10_000, n_steps=6)
    run = collect(spec, [4, 2])
    assert run.statistics.n_draws == 60_000 == run.statistics.counts(0).sum()
    assert len(np.unique(run.position[:, 0])) == 10_000
    assert run.statistics.history().shape[0] == WATCHED


FIRST_IN_A_PROCESS = """
from numba import types
from sgmcmc_lab.samplers import Run, RunSpec, engine
from sgmcmc_lab.samplers.compile import jit
{fault}
Run(RunSpec.of("gaussian", "sgld", n_steps=100)).advance(100)
(signature,) = engine.advance_all.signatures
assert not any(isinstance(one, types.Dispatcher) for one in signature)
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", "jit.prepare = lambda functions: None"])
def test_the_first_run_of_a_process_leaves_the_loop_to_all_others(fault):
    """The loop is compiled for function pointers. The planted fault: a run calls it before that, and the call compiles
    it for this run's target; where later runs are prepared, they then fail on functions that are no pointers."""
    script = FIRST_IN_A_PROCESS.format(fault=fault)
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert (process.returncode == 0) == (not fault), process.stderr
    assert not fault or "AssertionError" in process.stderr


def test_statistics_do_not_grow_with_the_run():
    """Fails where a statistic keeps something for every step."""

    def size(run):
        return sum(part.nbytes for part in run.statistics.sums)

    spec = RunSpec.of("quartic", "sgld", n_steps=1_000_000_000, thin=1_000_000)
    run = engine.Run(spec)
    run.advance(10)
    before = size(run)
    run.advance(300_000)
    assert size(run) == before < 4_000_000
    assert run.kept.size == 0


@pytest.mark.slow
def test_advance_releases_the_lock_and_runs_do_not_disturb_each_other():
    """Fails where two runs in threads share state, or where a long ``advance`` stops all other Python threads.

    With the interpreter's lock held, the main thread could not wake between the start and the end of ``advance``.
    """
    specs = [RunSpec.of("quartic", "sgld", seed=seed, n_steps=2_000_000, n_chains=4) for seed in (1, 2)]
    alone = [engine.Run(spec) for spec in specs]
    for run in alone:
        run.advance(2_000_000)
    together = [engine.Run(spec) for spec in specs]
    threads = [threading.Thread(target=run.advance, args=(2_000_000,)) for run in together]
    ticks = 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.002)
        ticks += 1
    assert ticks > 10
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a.position, b.position)
        np.testing.assert_array_equal(a.statistics.sums.bins, b.statistics.sums.bins)


def anchored_change(run, values):
    """A change to SVRG with these values."""
    return Change(
        run.steps, run.now.sampler, Choice("minibatch_svrg", tuple({**run.now.gradient.values(), **values}.items()))
    )


def test_a_gradient_remembers_while_it_is_the_same():
    """Fails where another step size makes a chain forget its anchor, or another period, batch size or law does not."""

    def changed(**what):
        run = engine.Run(
            RunSpec.of("linear_regression", "sgld", "minibatch_svrg", target_params={"items": 100}, n_chains=3, seed=4)
        )
        run.advance(5)
        assert (run.memory[:, 0] == 45).all()
        before = run.memory.copy()
        now = run.now
        fields = {"sampler": now.sampler, "gradient": now.gradient, "target": None}
        for name, values in what.items():
            choice = getattr(now, name)
            fields[name] = Choice(choice.key, tuple({**choice.values(), **values}.items()))
        run.change(Change(run.steps, **fields))
        return before, run

    before, run = changed(sampler={"step_size": 1e-4})
    np.testing.assert_array_equal(run.memory, before)
    for what in ({"gradient": {"period": 7}}, {"gradient": {"batch_size": 3}}, {"target": {"prior_sd": 0.5}}):
        _, run = changed(**what)
        assert not run.memory.any()
        np.testing.assert_array_equal(run.target.gradient_at(run.position), anchors(run))


def anchors(run):
    """The stored full gradient at each chain's anchor, which is the chain's own position."""
    run.advance(1)
    return run.memory[:, 3:]


def test_work_is_counted():
    """Fails where gradients or data are not counted as they are used: n_leapfrog + 1 for HMC, none for exact draws,
    the minibatch's size and not N."""
    hmc = collect(RunSpec.of("quartic", "hmc", n_steps=30, n_chains=2, sampler_params={"n_leapfrog": 4}), [7])
    assert hmc.gradients == 30 * 2 * 5
    scir = collect(
        RunSpec.of(
            "sparse_dirichlet", "scir", gradient="minibatch", gradient_params={"batch_size": 25}, n_steps=10, n_chains=3
        ),
        [7],
    )
    assert (scir.gradients, scir.data_seen) == (30, 750)
    # A trajectory of NUTS with at most two doublings has one or three points besides its start.
    nuts = collect(
        RunSpec.of("gaussian", "nuts", n_steps=200, n_chains=3, sampler_params={"max_depth": 2, "step_size": 0.01}), [7]
    )
    # Once in many a momentum is so small that the first doubling already turns.
    assert 0.98 * 200 * 3 * 3 < nuts.gradients <= 200 * 3 * 3
    svrg = {"batch_size": 10, "period": 3}
    anchored = engine.Run(
        RunSpec.of(
            "linear_regression",
            "sgld",
            "minibatch_svrg",
            target_params={"items": 100},
            gradient_params=svrg,
            n_steps=9,
            n_chains=2,
        )
    )
    anchored.advance(9)
    # A tenth of the data at each gradient, and all of them at every third.
    assert anchored.data_seen == 2 * (9 * 10 + 3 * 100)
    anchored.change(anchored_change(anchored, {**svrg, "period": 100}))
    anchored.advance(100)
    assert anchored.data_seen == 2 * (9 * 10 + 3 * 100 + 100 * 10 + 100)
    full = collect(RunSpec.of("sparse_dirichlet", "sgrld", "full", n_steps=10, n_chains=1), [7])
    assert full.data_seen == 10_000
    assert collect(RunSpec.of("quartic", "exact", n_steps=10), [7]).gradients == 0


# --- the registries -------------------------------------------------------------------------------------


def test_every_sampler_file_is_registered():
    """Fails for a file in ``samplers/kernels`` whose sampler no menu shows."""
    found = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        for value in vars(importlib.import_module(f"sgmcmc_lab.samplers.kernels.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Sampler) and "key" in vars(value):
                found[value.key] = value
    assert found == dict(SAMPLERS)


@for_each("s", SAMPLERS)
def test_every_sampler_has_its_card(s):
    """Fails where a card would have an empty line, two samplers share a title, or a parameter has no help."""
    check_card(SAMPLERS[s])


def moved(parameter, value):
    """Another allowed value."""
    if isinstance(parameter, Flag):
        return not value
    if isinstance(parameter, Option):
        return next(x for x in parameter.objects if x != value)
    if isinstance(parameter, CountVector):
        return (*value[:-1], value[-1] + 50)
    low, high = parameter.bounds
    if isinstance(parameter, Count):
        return value + (1 if value < high else -1)
    near = value * 1.1 if value else 0.1 * high
    return near if low <= near <= high else value * 0.9


def preset(key):
    """The parameters of a preset in two dimensions."""
    return parameters_of(PRESETS[key].recipe(2))


OTHER_TABLES = small_tables(21)
# Formulas, to which no step can be added, and tables, of which another shape would be other draws: another one.
COUNTS = keep(Table(("x",), np.arange(12.0)[:, None] / 6, "y", np.arange(12.0) % 5))
OTHERS = {
    ("typed", "energy"): "theta^4 - theta",
    ("gaussian_mixture", "positions"): (1.0, 2.0),
    ("recipe", "diffusion_entries"): ("2", "0.5", "1"),
    ("recipe", "curl_entries"): ("1",),
    ("recipe", "drift_entries"): ("", "-theta2"),
    ("linear_table", "table"): OTHER_TABLES[0].key,
    ("logistic_table", "table"): OTHER_TABLES[1].key,
    ("posterior", "table"): COUNTS.key,
    ("posterior", "parameters"): "b, a",
    ("posterior", "prior"): "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 3)",
    ("posterior", "row"): "poisson_log_lpmf(y, a + b*x^2)",
}
# Knobs that turn nothing at the defaults, or cannot be turned there: what must be beside them.
BESIDE = {
    # So that the second doubling is made.
    ("nuts", "max_depth"): {"step_size": 0.001},
    ("recipe", "scheme"): preset("sghmc"),
    ("recipe", "thermostat"): preset("sgnht"),
    ("recipe", "refresh"): preset("sghmc"),
    ("matrix_langevin", "vectors"): {"rows": 5},
    ("linear_table", "table"): {"table": SMALL.key},
    ("recipe", "gamma"): {"diffusion_entries": ("1 + theta1^2", "0", "1")},
}


def knobs():
    for s, cls in SAMPLERS.items():
        t, g = next((t, g) for s_, t, g in EACH if s_ == s)
        # In the plane the manifold is all of the space around it.
        yield from (
            (s, "circle_mixture" if name == "embedding" else t, g, "sampler", name) for name, _ in declared(cls)
        )
    for t, cls in TARGETS.items():
        for name, _ in declared(cls):
            # The curve of a typed posterior is drawn, and the box of a typed energy is that of its exact answers.
            if name == "curve":
                continue
            s, g = next((s, g) for s, t_, g in OFFERED if t_ == t and (s == "exact" or name != "extent"))
            yield s, t, g, "target", name
    for g, cls in GRADIENTS.items():
        for s, t in ((s, t) for s, t, g_ in EACH if g_ == g):
            yield from ((s, t, g, "gradient", name) for name, _ in declared(cls))


@pytest.mark.slow
@for_each(("s", "t", "g", "owner", "name"), list(knobs()), apart=lambda s, *rest: s)
def test_every_parameter_has_an_effect(s, t, g, owner, name):
    """Fails where a knob turns nothing: from the same start and seed, another value must give other draws."""
    cls = {"sampler": SAMPLERS[s], "target": TARGETS[t], "gradient": GRADIENTS[g]}[owner]
    beside = BESIDE.get((cls.key, name), soon_known(t) if owner == "target" else {})
    parameter = dict(declared(cls))[name]
    value = OTHERS.get((cls.key, name)) or moved(parameter, beside.get(name, parameter.default))
    pair = []
    for params in (beside, {**beside, name: value}):
        run = engine.Run(RunSpec.of(t, s, g, **{f"{owner}_params": params}, seed=2))
        if pair and pair[0].position.shape == run.position.shape:
            run.position = pair[0].target.start()
        run.advance(60)
        assert run.divergence is None
        pair.append(run)
    if np.array_equal(pair[0].position, pair[1].position):
        # Where a gradient decides on signs alone, a small difference takes longer to show.
        for run in pair:
            run.advance(5000)
    assert not np.array_equal(pair[0].position, pair[1].position)


def test_a_swapped_sampler_would_be_seen():
    """The planted fault of the registry tests: another sampler's kernel behind a name changes the draws to the bit."""
    spec = RunSpec.of("quartic", "sgld", sampler_params={"step_size": 0.05})
    run = engine.Run(spec)
    run.advance(50)
    swapped = engine.Run(spec)
    put_sampler(swapped, SAMPLERS["sghmc"](step_size=0.05))
    swapped.advance(50)
    assert not np.array_equal(run.position, swapped.position)
    choice = Choice("sgld", (("step_size", 0.05),))
    assert spec.sampler == choice


def test_a_run_that_only_adapts_is_refused_and_one_step_more_keeps_a_draw():
    """Fails where it ends without a draw, and nothing is said. The planted fault: thinning is forgotten."""
    values = {"sampler_params": {"adapt_steps": 50}, "n_chains": 2, "burn_in": 10, "thin": 4}
    with pytest.raises(SpecError, match=r"adapt_steps.*50.*run of 53 steps .* allowed are at most 49"):
        engine.run(RunSpec.of("gaussian", "hmc", n_steps=43, **values))
    assert engine.run(RunSpec.of("gaussian", "hmc", n_steps=44, **values)).draws.shape[1] == 1
