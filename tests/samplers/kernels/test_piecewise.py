"""Zig-zag and the bouncy particle: the bounds of their rates, and their law with batches of one data point."""

from math import sqrt

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.live.description import of_run
from sgmcmc_lab.samplers.requirements import BATCH, LIPSCHITZ
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import FEW_DATA
from tests.helpers.edited import faulty
from tests.helpers.statistics import draws_of, exact_start, failures, fast_cdf, ks_verdict, mean_verdict, start_with

# --- Lipschitz constants ----------------------------------------------------------------------------------------

BOUNDED = [
    (key, dict(values))
    for key, target in TARGETS.items()
    if LIPSCHITZ in target.provides
    for values in ({}, FEW_DATA.get(key, {}), *target.tried_at)
]


def largest_ratio(target, slopes, lipschitz):
    """The largest |∂_iU(θ) − ∂_iU(θ′)|/C_i‖θ − θ′‖ of pairs that are near and far, at many places of many scales."""
    rng = np.random.default_rng(4)
    centre = np.asarray(target.mode if BATCH in target.provides else target.start(), dtype=float)
    largest = 0.0
    for k in range(40):
        scale = 10 ** rng.uniform(-3, 1.5)
        here = (centre if k % 2 else 0.0) + scale * rng.standard_normal(target.dim)
        there = here + 10 ** rng.uniform(-4, 1) * scale * rng.standard_normal(target.dim)
        apart = np.abs(slopes(here) - slopes(there)) / np.linalg.norm(here - there)
        largest = max(largest, float((apart / lipschitz).max()))
    return largest


@pytest.mark.slow
@for_each(("t", "values"), BOUNDED, apart=lambda t, values: t)
def test_lipschitz_constants(t, values):
    """Fails where a partial derivative, of all data or of one data point, changes faster than its constant says.

    Planted fault: constants a twentieth as large. How far they are from the smallest that are valid costs time, and no
    law: in 31 coordinates, of random pairs, it is an eighth.
    """
    target = TARGETS[t](**values)
    found = [largest_ratio(target, lambda x: target.gradient_at(x[None])[0], target.lipschitz)]
    if BATCH in target.provides:
        found.append(largest_ratio(target, target.slopes_at, target.lipschitz_of_each))
    assert max(found) < 1 + 1e-6
    assert min(found) > 1 / 20, found


def test_only_targets_with_constants_are_offered():
    """A double well has none that is valid everywhere. Each sampler names the word for what it requires."""
    for key in ("zigzag", "bps"):
        cls = SAMPLERS[key]
        assert {t for t in TARGETS if cls.fits(TARGETS[t])} == {t for t in TARGETS if LIPSCHITZ in TARGETS[t].provides}
        assert not cls.fits(TARGETS["double_well"]) and not cls.fits(TARGETS["linear_table"])
        assert cls.gradients_for(TARGETS["logistic_regression"]) == {"full", "minibatch", "minibatch_cv"}


# --- the law, with batches of one ---------------------------------------------------------------------------------

CASES = [(s, g, n) for s in ("zigzag", "bps") for g in ("minibatch", "minibatch_cv") for n in (1, 3)]
FALSE_ALARM = 1e-4
DATA = {"logistic_regression": {"items": 25}, "student_mean": {}}
"""Posteriors that are skewed or have several modes, with exact answers by quadrature."""


def spec_of(s, g, t="logistic_regression", n=1, step_size=0.5):
    return RunSpec.of(
        t,
        s,
        g,
        target_params=DATA[t],
        sampler_params={"step_size": step_size},
        gradient_params={"batch_size": n},
        n_chains=1000,
        seed=8,
    )


def verdicts(spec, kernel=None, steps=60):
    """Means, variances, the covariance, and marginals against quadrature, of 1000 chains from exact draws, the first
    half of whose time is not looked at."""
    sampler = spec.make_sampler()
    if kernel is not None:
        cls = type("Faulty", (type(sampler),), {"advance": staticmethod(kernel)})
        sampler = cls(**spec.sampler.values())
    run = start_with(spec, sampler)
    exact_start(run)
    draws_of(run, 1, steps)
    values = run.target.values(draws_of(run, steps // 2, 2))
    moments, columns = run.target.moments, run.target.ks_columns
    n_tests = len(CASES) * len(DATA) * (len(moments) + len(columns))
    out = [mean_verdict(m.name, m.function(values), m.exact, FALSE_ALARM, n_tests) for m in moments]
    for k in columns:
        column = run.target.columns[k]
        out.append(ks_verdict(column.name, fast_cdf(column)(values[..., k]), FALSE_ALARM, n_tests))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("t", DATA)
@pytest.mark.parametrize(("s", "g", "n"), CASES)
def test_minibatches_leave_the_law_exact(s, g, n, t):
    """Fails where a moment or a marginal is off by more than its Monte Carlo error; no bias is allowed for (false
    alarms: 1e-4 in all)."""
    assert not failures(verdicts(spec_of(s, g, t, n)))


_zigzag, _bps = SAMPLERS["zigzag"].advance, SAMPLERS["bps"].advance


@jit.kernel
def zigzag_bound_too_low(rng, state, model, source, params, out, n, info):
    """Lipschitz constants a tenth as large."""
    less, dim = params.copy(), state.position.shape[1]
    for i in range(2 * dim):
        less[1 + 2 * dim + i] /= 10
    _zigzag(rng, state, model, source, less, out, n, info)


@jit.kernel
def bps_bound_too_low(rng, state, model, source, params, out, n, info):
    """Lipschitz constants a tenth as large."""
    less, dim = params.copy(), state.position.shape[1]
    for i in range(2 * dim):
        less[2 + 2 * dim + i] /= 10
    _bps(rng, state, model, source, less, out, n, info)


@jit.kernel
def zigzag_mode_forgotten(rng, state, model, source, params, out, n, info):
    """Minibatches without control variates, with the bound of those with them."""
    less, dim = params.copy(), state.position.shape[1]
    for i in range(dim):
        less[1 + dim + i] = 0.0
    _zigzag(rng, state, model, source, less, out, n, info)


@jit.kernel
def bps_mode_forgotten(rng, state, model, source, params, out, n, info):
    """Minibatches without control variates, with the bound of those with them."""
    less, dim = params.copy(), state.position.shape[1]
    for i in range(dim):
        less[2 + dim + i] = 0.0
    _bps(rng, state, model, source, less, out, n, info)


@jit.helper
def _thinned(rng, state, model, source, c, rate, left, each):
    """Fly until an event is proposed at this rate, and estimate the gradient there; returns the time that is left."""
    theta, v, grad = state.position, state.momentum, np.empty((1, state.position.shape[1]))
    time = min(rng.standard_exponential() / rate, left)
    for i in range(theta.shape[1]):
        theta[c, i] += time * v[c, i]
    if time < left:
        source.estimate(rng, theta[c : c + 1], grad, each, model, state.data, source.params, state.memory[c])
    return left - time, grad


RATE = 200.0
"""Above every rate in the bulk of the posterior, with control variates."""


@jit.kernel
def zigzag_without_positive_part(rng, state, model, source, params, out, n, info):
    """v_i changes its sign at the rate |v_i ∂_iŨ|."""
    theta, v, each = state.position, state.momentum, np.empty((source.batch_size, state.position.shape[1]))
    for t in range(n):
        for c in range(theta.shape[0]):
            left = params[0]
            while left > 0:
                left, grad = _thinned(rng, state, model, source, c, RATE, left, each)
                if left > 0:
                    for i in range(theta.shape[1]):
                        if rng.random() * RATE < abs(v[c, i] * grad[0, i]):
                            v[c, i] = -v[c, i]
            out[t, c] = theta[c]


@jit.kernel
def bps_half_a_bounce(rng, state, model, source, params, out, n, info):
    """A bounce takes the part of v along the gradient away, and does not turn it round."""
    theta, v, each = state.position, state.momentum, np.empty((source.batch_size, state.position.shape[1]))
    for t in range(n):
        for c in range(theta.shape[0]):
            left = params[0]
            while left > 0:
                left, grad = _thinned(rng, state, model, source, c, RATE, left, each)
                if left > 0:
                    along, square = (v[c] * grad[0]).sum(), (grad[0] * grad[0]).sum()
                    if rng.random() * RATE < params[1]:
                        for i in range(theta.shape[1]):
                            v[c, i] = rng.standard_normal()
                    elif rng.random() * RATE < along:
                        for i in range(theta.shape[1]):
                            v[c, i] -= along / square * grad[0, i]
            out[t, c] = theta[c]


FAULTS = [
    ("zigzag", "minibatch_cv", zigzag_without_positive_part),
    ("bps", "minibatch_cv", bps_half_a_bounce),
]


@pytest.mark.slow
@pytest.mark.parametrize(("s", "g", "kernel"), FAULTS)
def test_faults_are_seen(s, g, kernel):
    assert failures(verdicts(spec_of(s, g), kernel))


# --- rates above their bound ------------------------------------------------------------------------------------

TOO_LOW = [
    ("zigzag", "minibatch_cv", zigzag_bound_too_low),
    ("zigzag", "minibatch", zigzag_mode_forgotten),
    ("bps", "minibatch_cv", bps_bound_too_low),
    ("bps", "minibatch", bps_mode_forgotten),
]


@for_each(("s", "g", "kernel"), TOO_LOW)
def test_a_bound_that_is_too_low_ends_the_run(s, g, kernel):
    """Fails where a kernel goes on with the rate of a minibatch above its bound."""
    sampler = spec_of(s, g).make_sampler()
    run = start_with(spec_of(s, g), faulty(sampler, kernel))
    run.advance(30)
    assert run.divergence is not None and "a rate of events was above its bound" in run.divergence.message


@pytest.mark.parametrize("s", ["zigzag", "bps"])
@pytest.mark.parametrize("burn_in", [0, 1000])
def test_a_lipschitz_constant_half_as_large_is_named(s, burn_in, monkeypatch):
    """Fails where a run with half of the right constant goes on, or is blamed on its step size. With the right one, of
    a gradient that is linear, no rate is above its bound by more than rounding, from far away either."""
    far = {"target_params": {"mean": 10.0, "sd": 0.07}, "start": (1e4,), "n_chains": 20, "burn_in": burn_in}
    run = engine.Run(RunSpec.of("gaussian", s, **far))
    run.advance(3000)
    assert run.divergence is None
    right = TARGETS["gaussian"].lipschitz
    monkeypatch.setattr(TARGETS["gaussian"], "lipschitz", property(lambda self: right.fget(self) / 2))
    run = engine.Run(RunSpec.of("gaussian", s, n_chains=2, burn_in=burn_in))
    run.advance(100)
    assert run.divergence is not None and run.steps < 100
    assert run.divergence.message == (
        f"{run.sampler.title} stopped on Gaussian at step {run.steps + 1}: a rate of events was above its bound. The target's "
        "lipschitz, 0.5 at most, is too small; allowed are C_i with |∂_iU(θ) − ∂_iU(θ′)| ≤ C_i‖θ − θ′‖ for all θ and θ′."
    )
    described = of_run(run.spec)["sampler"]["above"]
    assert described.replace("{step}", str(run.steps + 1)) == run.divergence.message


# --- paths ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("s", "g"), [("zigzag", "full"), ("bps", "full"), ("zigzag", "minibatch_cv")])
def test_the_time_between_draws_changes_no_law(s, g):
    """Fails where draws after a time of .05, or of 2, are of another distribution: ten times the time, ten times fewer
    steps. A Gaussian's variance to 4.9 standard errors; the planted fault is a variance larger by a twentieth."""
    for step_size, every in ((0.05, 40), (2.0, 1)):
        run = engine.Run(
            RunSpec.of(
                "linear_regression",
                s,
                g,
                target_params={"items": 10, "noise_sd": 3.0, "prior_sd": 1.0},
                sampler_params={"step_size": step_size},
                gradient_params={} if g == "full" else {"batch_size": 1},
                n_chains=1000,
                seed=6,
            )
        )
        exact_start(run)
        apart = draws_of(run, 50, every) - run.target.mean
        for k in range(2):
            exact = run.target.covariance[k, k]
            assert mean_verdict("Var", apart[..., k] ** 2, exact, 1e-6).ok
            assert not mean_verdict("Var", apart[..., k] ** 2, 1.1 * exact, 1e-6).ok


def test_a_path_is_straight_between_events():
    """Fails where θ moves faster or slower than v, or a velocity of zig-zag is no sign: on N(0, 1) from the tail, with
    v = −1, nothing happens before the mode, as the energy falls."""
    spec = RunSpec.of("gaussian", "zigzag", sampler_params={"step_size": 0.5}, n_chains=200, start=(5.0,), seed=2)
    run = engine.Run(spec)
    inward = run.momentum[:, 0] < 0
    run.advance(10)
    np.testing.assert_allclose(run.position[inward, 0], 0.0, atol=1e-12)
    assert (np.abs(run.momentum) == 1).all()
    # Those that began outwards turned back after a time T with 5T + T²/2 ~ Exp(1).
    e = 5 * (run.position[~inward, 0] / 2) + (run.position[~inward, 0] / 2) ** 2 / 2
    assert abs(e.mean() - 1) < 5 / sqrt(e.size)


def test_too_many_events_end_the_run_with_a_reason():
    spec = RunSpec.of(
        "linear_regression", "zigzag", "minibatch_cv", sampler_params={"step_size": 10.0}, n_chains=1, start=(1e6, 1e6)
    )
    run = engine.Run(spec)
    run.advance(2)
    assert run.divergence is not None and "more events were proposed" in run.divergence.message
    assert run.gradients <= run.sampler.most_gradients(10)


def test_control_variates_look_at_fewer_data_the_more_there_are():
    """The data that zig-zag looks at in the time of a standard deviation, over N: with control variates they fall as
    N grows, without them they do not (Bierkens, Fearnhead & Roberts 2019, section 4.4)."""
    seen = {}
    for n in (1000, 16_000):
        sd = sqrt(8 / n)
        for g in ("minibatch", "minibatch_cv"):
            spec = RunSpec.of(
                "logistic_large",
                "zigzag",
                g,
                target_params={"items": n, "features": 2},
                sampler_params={"step_size": sd},
                gradient_params={"batch_size": 1},
                n_chains=4,
                seed=3,
            )
            run = engine.Run(spec)
            exact_start(run)
            run.advance(20)
            seen[n, g] = run.data_seen / 80 / n
    # A rate that goes with √N on the scale of a standard deviation, and one that goes with N.
    assert seen[1000, "minibatch_cv"] > 8 * seen[16_000, "minibatch_cv"]
    assert seen[1000, "minibatch"] < 6 * seen[16_000, "minibatch"]
    assert seen[16_000, "minibatch_cv"] < seen[16_000, "minibatch"] / 10
