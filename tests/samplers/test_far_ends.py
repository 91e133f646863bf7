"""Samplers at the far ends: starts a million standard deviations away, energies of 10³⁰⁰, and energies that are none.

The results are finite, or the engine says that the chain diverged; the same spec gives the same draws; and the step in
plain Python, which a page plays as one watches, raises nothing.
"""

from math import exp

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.rwm import RWM
from sgmcmc_lab.samplers.step_terms import Play, TooLongError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import MANIFOLD, POSITIVE, SIMPLEX
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import FEW_DATA, OFFERED, worked_out_once
from tests.helpers.statistics import put_sampler

N_STEPS, FAR = 6, 1e6


def estimators():
    """The estimators that are tried with each pair of target and sampler: the full gradient, or the first, and for one
    pair in three the last with minibatches, such that each sampler is with several targets and each target with several
    samplers.
    """
    out = {}
    for s, t, g in OFFERED:
        out.setdefault(t, {}).setdefault(s, []).append(g)
    return {
        t: {
            s: dict.fromkeys(["full" if "full" in gs else gs[0], *gs[-1:] * ((k + turn) % 3 == 0)])
            for turn, (s, gs) in enumerate(of.items())
        }
        for k, (t, of) in enumerate(out.items())
    }


PAIRS = estimators()


def far_places(target):
    """Places to start from, (dim,), a million standard deviations away; of a manifold or a simplex its ends."""
    if target.support == MANIFOLD:
        start = target.start()
        return [start, -start]
    if target.support == SIMPLEX:
        return [np.full(target.dim, FAR), np.r_[FAR, np.full(target.dim - 1, 1e-300)]]
    if not target.of_coordinates:
        return [np.full(target.dim, FAR), np.full(target.dim, -FAR)]
    far = np.array([c.mean + FAR * np.sqrt(c.variance) for c in target.columns[: target.dim]])
    return [far, np.full(target.dim, 1e-300)] if target.support == POSITIVE else [far, -far]


def started(spec, place):
    """A run that stands there."""
    run = engine.Run(spec, keep_draws=True)
    if run.target.manifold.defect(place, np.zeros(run.target.dim)) < 1e-9:
        run.position = place
    return run


def outcome(run):
    """The draws of a run's steps, where it ended, and what it says."""
    run.advance(N_STEPS)
    return run.trace().draws.copy(), run.position.copy(), run.steps, run.divergence


def same(one, other):
    """Whether two outcomes are equal to the last bit."""
    return (
        np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1], equal_nan=True) and one[2:] == other[2:]
    )


def sound(found):
    """Whether all draws are finite, and a chain that left is said to have left."""
    draws, position, _, divergence = found
    return bool(np.isfinite(draws).all() and (np.isfinite(position).all() or divergence is not None))


def litter():
    """Leave other numbers than before in the memory that is free."""
    for n in (1, 2, 4, 8, 16, 64, 256, 1024):
        np.full(n, np.random.default_rng().random())


def play(run, steps=2):
    """Steps in plain Python from where the run is."""
    played = Play(run)
    try:
        with worked_out_once(played.target):
            for _ in range(steps):
                played.step()
    except TooLongError:
        pass
    return played


@pytest.mark.slow
@pytest.mark.parametrize("t", PAIRS)
def test_far_starts(t):
    """For every sampler on this target two runs of one spec in one process, from far away, have the same draws to the
    last bit; these are finite, or a divergence is said; the step in plain Python raises nothing, from there and from a
    chain that is no number.

    Planted faults: a draw that is another one by its last bit; one that is no number, with nothing said.
    """
    few = FEW_DATA.get(t)
    for place in far_places(TARGETS[t](**(few or {}))):
        for s, gs in PAIRS[t].items():
            for g in gs:
                # The smallest batch: the plain step goes through it one by one.
                spec = RunSpec.of(t, s, g, target_params=few, n_steps=N_STEPS, n_chains=2, seed=1)
                found = [outcome(started(spec, place))]
                litter()
                found.append(outcome(started(spec, place)))
                assert sound(found[0]), (s, g, found[0])
                assert same(*found), (s, g)
                play(started(spec, place))
                lost = started(spec, place)
                lost.coordinates[0], lost.momentum[0] = np.nan, np.inf
                play(lost, 1)
    draws, *rest = found[0]
    if draws.size:
        assert not same(found[0], (np.nextafter(draws, np.inf), *rest))
        assert not sound((draws * np.nan, *rest))


# --- energies ----------------------------------------------------------------------------------------------------


@jit.helper
def bowl(x, support):
    """θ²/2 on the line, θ − log θ on (0, ∞), x₁ on a sphere; and its slope."""
    if support == 0:
        return x * x / 2, x
    return (x - np.log(x), 1 - 1 / x) if support == 1 else (x, 1.0)


def _potential(theta, out, params):
    scale, offset, beyond, support = params[0], params[1], params[2], int(params[3])
    for c in range(theta.shape[0]):
        out[c] = offset + scale * bowl(theta[c, 0], support)[0]
        # The energy where there is none.
        if beyond != 0 and theta[c, 0] > 1.5:
            out[c] = beyond


def _gradient(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = 0.0
        out[c, 0] = params[0] * bowl(theta[c, 0], int(params[3]))[1]


POTENTIAL, GRADIENT = jit.potential(_potential), jit.gradient(_gradient)
BASES = {"gaussian": 0, "gamma": 1, "fisher": 2}


def with_energy(s, base, scale, offset=0.0, beyond=0.0, **params):
    """A run of a sampler on offset + scale·U, which beyond 1.5 is ``beyond``."""
    params = np.array([scale, offset, beyond, BASES[base]])

    def log_density(self, theta):
        return -self.energies_at(np.ascontiguousarray(theta).reshape(-1, self.dim)).reshape(theta.shape[:-1])

    members = {
        "potential": staticmethod(POTENTIAL),
        "gradient": staticmethod(GRADIENT),
        "packed": lambda self: params,
        "log_density": log_density,
    }
    run = engine.Run(RunSpec.of(base, s, n_chains=3, n_steps=30, seed=2), keep_draws=True)
    jit.prepare([POTENTIAL, GRADIENT])
    run.target = type("Extreme", (TARGETS[base],), members)()
    run.target_params = run.target.packed()
    return run


FREE = [
    (s, base)
    for base in BASES
    for s, cls in SAMPLERS.items()
    if cls.fits(TARGETS[base]) and cls.process is None and s != "exact" and "full" in cls.gradients_for(TARGETS[base])
]
"""Samplers that see nothing of a target but its energy and gradient."""
ENERGIES = [(1e300, 0.0), (-1e300, 0.0), (1.0, 1e300), (1.0, -1e300), (1e-300, 0.0), (1e300, -1e300), (1e150, 0.0)]


@pytest.mark.slow
@for_each(("s", "base"), FREE, apart=lambda s, base: base)
def test_energies_of_any_size(s, base):
    """Energies of ±10³⁰⁰, and slopes as steep: draws are finite or a divergence is said, and the plain step raises
    nothing."""
    for scale, offset in ENERGIES:
        run = with_energy(s, base, scale, offset)
        play(run)
        assert sound(outcome(run)), (scale, offset)


ADJUSTED = [
    s for s, _ in FREE if s in ("hmc", "nuts", "mala", "barker", "rwm", "gmc", "chmc", "rmhmc", "parallel_tempering")
]
ADJUSTED_ON = [(s, base) for s, base in FREE if s in ADJUSTED]


@jit.kernel
def trusting(rng, state, model, source, params, out, n, info):
    """Random-walk Metropolis that accepts an energy of −∞."""
    theta, energy, proposed = state.position, np.zeros(len(state.position)), np.zeros(len(state.position))
    proposal = np.zeros_like(theta)
    for t in range(n):
        model.potential(theta, energy, model.params)
        for c in range(len(theta)):
            proposal[c, 0] = theta[c, 0] + params[0] * rng.standard_normal()
        model.potential(proposal, proposed, model.params)
        for c in range(len(theta)):
            if rng.random() < exp(energy[c] - proposed[c]):
                theta[c] = proposal[c]
            out[t, c, 0] = theta[c, 0]


def farthest(run):
    """The largest first coordinate of 30 draws and of 5 plain steps of three chains."""
    played = play(run, 5)
    run.advance(30)
    return max(run.trace().draws[..., 0].max(), played.theta[:, 0].max())


@pytest.mark.slow
@for_each(("s", "base"), [pair for pair in ADJUSTED_ON if pair[1] != "fisher"])
@for_each("beyond", [np.nan, np.inf, -np.inf])
def test_no_chain_goes_where_the_energy_is_not_finite(s, base, beyond):
    """Beyond 1.5 the energy is NaN, ∞ or −∞: no compiled step and no plain step of a sampler with an accept step ends
    there. Fault: without one they do; and random-walk Metropolis that takes −∞ for a good energy does."""
    assert farthest(with_energy(s, base, 0.3, beyond=beyond)) <= 1.5
    assert farthest(with_energy("sgld" if base == "gaussian" else "sgrld", base, 0.3, beyond=beyond)) > -np.inf
    if s == "rwm" and beyond == -np.inf:
        wrong = with_energy(s, base, 0.3, beyond=beyond)
        put_sampler(wrong, type("Trusting", (RWM,), {"advance": staticmethod(trusting)})())
        wrong.advance(30)
        assert wrong.trace().draws.max() > 1.5


def test_a_start_without_a_density_is_said():
    """Fails where a run begins where U is ∞ or NaN and says nothing. Fault: a start where U is finite."""
    far, near = (engine.Run(RunSpec.of("funnel", "rwm", start=(x, x), seed=1)) for x in (-1e6, 1.0))
    assert "U is inf at the start (-1e+06, -1e+06) of" in far.divergence.message
    assert near.divergence is None


# --- single places ----------------------------------------------------------------------------------------------


def test_nuts_from_a_hundred_standard_deviations_away():
    """Draws of a trajectory whose energy falls by 5000: each is a point of it, and |θ| ≤ 100 + 8 σ. Fault: none of the
    first draws would be the start, nor near 0, as what the memory held."""
    spec = RunSpec.of(
        "gaussian",
        "nuts",
        target_params={"sd": 1.0},
        sampler_params={"step_size": 1.0},
        n_steps=50,
        n_chains=4,
        start=(100.0,),
        seed=1,
    )
    first = engine.run(spec).draws
    for _ in range(2):
        litter()
        assert np.array_equal(engine.run(spec).draws, first)
    assert np.abs(first).max() < 108
    assert np.abs(first[:, 0]).min() > 1
    played = play(engine.Run(spec), 1)
    np.testing.assert_allclose(played.theta[:, 0], first[:, 0, 0], rtol=1e-9)


@pytest.mark.slow
def test_vectors_whose_squares_overflow_are_normalised():
    """Fails where a kick of 10²⁰⁰ leaves a point that is not on the sphere. Fault: its norm by squares, ∞."""
    run = with_energy("normalised_sgld", "fisher", 1e200)
    run.advance(5)
    assert run.divergence is None
    np.testing.assert_allclose(np.linalg.norm(run.trace().draws, axis=-1), 1.0, atol=1e-12)
    with np.errstate(over="ignore"):
        assert not np.sqrt((np.full(3, 1e200) ** 2).sum()) < np.inf


def test_particles_in_one_place_stay_there():
    """SVGD has no push where the median distance is 0, all follow the gradient. Fault: particles apart, pushed."""
    run = engine.Run(RunSpec.of("gaussian", "svgd", n_chains=5, seed=1), keep_draws=True)
    run.position = 2.0
    run.advance(1)
    assert (run.position == 2.0 - run.sampler.step_size * 2.0).all()
    run.position[:, 0] = [1.9, 1.95, 2.0, 2.05, 2.1]
    run.advance(1)
    assert np.ptp(run.position) > 0.2


@for_each("s", ["cir", "sgrld", "root_sgld", "rmhmc"])
def test_gamma_of_the_smallest_shape(s):
    """Gamma(0.01, 1), whose quantiles of 5 % are below the smallest double: draws are finite and not negative."""
    run = engine.Run(
        RunSpec.of("gamma", s, target_params={"shape": 0.01}, n_chains=50, n_steps=200, seed=3), keep_draws=True
    )
    run.advance(200)
    draws = run.trace().draws
    assert np.isfinite(draws).all()
    assert (draws >= 0).all()
    assert draws.shape[1] == 200 or run.divergence is not None
