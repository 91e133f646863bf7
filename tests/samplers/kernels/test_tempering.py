"""Replica exchange SGLD and parallel tempering: the laws of their cold rungs, and how often rungs swap.

Each is measured against exact answers; false alarms are 1e-4 a test unless it says another rate. Beside each stand
planted faults.
"""

from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.lanes import Change
from tests.helpers.cases import for_each
from tests.helpers.statistics import critical, draws_of, failures, ks_verdict, mean_verdict, put_sampler

# --- a kernel with faults -------------------------------------------------------------------------------------------

NONE, SIGN, HEAT, SIDE = 0.0, 1.0, 2.0, 3.0
"""Nothing wrong; a swap accepted with the wrong sign; rungs that all move at temperature 1; a swap that only the colder
rung's energy decides."""


@jit.kernel
def planted(rng, state, model, noise, params, out, n, info):
    """Two rungs, by random-walk Metropolis of scale params[0]√T or, where params[3] is 1, by Langevin steps of that
    size, the hotter at the temperature params[2]; params[1] is the fault."""
    theta, fault, hot, langevin = state.position, params[1], params[2], params[3] == 1
    n_chains, dim = theta.shape
    x, y, slope = np.empty((n_chains, dim)), np.empty((n_chains, dim)), np.empty((n_chains, dim))
    energy, proposed = np.empty((2, n_chains)), np.empty(n_chains)
    for t in range(n):
        for k in range(2):
            heat = hot if k == 1 and fault != HEAT else 1.0
            for c in range(n_chains):
                for i in range(dim):
                    x[c, i] = state.momentum[c, i] if k == 1 else theta[c, i]
            model.potential(x, energy[k], model.params)
            model.gradient(x, slope, model.params)
            for c in range(n_chains):
                for i in range(dim):
                    if langevin:
                        y[c, i] = x[c, i] - params[0] * slope[c, i] + sqrt(2 * params[0] * heat) * rng.standard_normal()
                    else:
                        y[c, i] = x[c, i] + params[0] * sqrt(heat) * rng.standard_normal()
            model.potential(y, proposed, model.params)
            for c in range(n_chains):
                if langevin or rng.random() < exp(min(0.0, (energy[k, c] - proposed[c]) / heat)):
                    energy[k, c] = proposed[c]
                    for i in range(dim):
                        if k == 1:
                            state.momentum[c, i] = y[c, i]
                        else:
                            theta[c, i] = y[c, i]
        for c in range(n_chains):
            ratio = (1 - 1 / hot) * (energy[0, c] - energy[1, c])
            if fault == SIGN:
                ratio = -ratio
            if fault == SIDE:
                ratio = energy[0, c] - energy[1, c]
            if rng.random() < exp(min(0.0, ratio)):
                for i in range(dim):
                    kept = theta[c, i]
                    theta[c, i] = state.momentum[c, i]
                    state.momentum[c, i] = kept
            for i in range(dim):
                out[t, c, i] = theta[c, i]


def with_fault(spec, fault, step_size, hot, langevin=False):
    """A run by the kernel above, on the state of a run with two rungs."""
    run = Run(spec)
    numbers = np.array([step_size, fault, hot, float(langevin)])
    cls = type("Planted", (type(run.sampler),), {"advance": planted, "packed": lambda self, target: numbers})
    put_sampler(run, cls(**spec.sampler.values()))
    return run


# --- parallel tempering: its exact law ------------------------------------------------------------------------------

BIMODAL = {
    "gaussian_mixture": {"modes": 2, "weight": 0.3, "radius": 2.0, "sd": 0.5},
    "double_well": {},
}


def bimodal(t, **params):
    return RunSpec.of(t, "parallel_tempering", target_params=BIMODAL[t], sampler_params=params, n_chains=500, seed=4)


def laws(run, burn_in=600, kept=60, every=20):
    """Moments and KS of the cold rung after a burn-in from the start that all chains share."""
    run.advance(burn_in)
    values = run.target.values(draws_of(run, kept, every))
    n_tests = len(run.target.moments) + 1
    out = [mean_verdict(m.name, m.function(values), m.exact, 1e-4, n_tests) for m in run.target.moments]
    column = run.target.columns[0]
    return [*out, ks_verdict("KS", column.cdf(values[..., 0]), 1e-4, n_tests)]


@pytest.mark.slow
@pytest.mark.parametrize("t", BIMODAL)
def test_parallel_tempering_has_the_exact_law_of_two_modes(t):
    """Moments and KS of 3e4 draws of 500 chains that all began in one mode, without any allowance, at a large step."""
    run = Run(bimodal(t, rungs=3, hottest=8.0, step_size=0.15))
    assert not failures(laws(run))


@pytest.mark.slow
def test_without_hotter_rungs_the_second_mode_is_not_found():
    """The fault that the sampler mends: MALA alone, in as many steps, fails the test above."""
    spec = RunSpec.of(
        "gaussian_mixture",
        "mala",
        target_params={**BIMODAL["gaussian_mixture"], "radius": 3.0},
        sampler_params={"step_size": 0.15},
        n_chains=500,
        seed=4,
    )
    assert failures(laws(Run(spec)))


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "wrong"), [(NONE, False), (SIGN, True), (HEAT, True), (SIDE, True)])
def test_faults_of_swaps_and_temperatures_are_caught(fault, wrong):
    """Two rungs by random-walk Metropolis: right as they are, caught with the sign of a swap flipped, with rungs that
    move at one temperature, and with the weights of a swap left out."""
    run = with_fault(bimodal("gaussian_mixture", rungs=2), fault, 0.6, 8.0)
    assert bool(failures(laws(run))) == wrong


@pytest.mark.slow
def test_hotter_rungs_have_their_own_law():
    """On N(0, 1) rung k has N(0, T_k): variances of 1000 chains within their errors. Fault: the cold rung's."""
    spec = RunSpec.of(
        "gaussian",
        "parallel_tempering",
        target_params={"mean": 0.0, "sd": 1.0},
        sampler_params={"rungs": 3, "hottest": 9.0, "step_size": 0.5},
        n_chains=1000,
        seed=8,
    )
    run = Run(spec)
    run.advance(200)
    squares = []
    for _ in range(40):
        run.advance(10)
        squares.append(run.momentum.reshape(1000, 2, 3)[..., 0] ** 2)
    found = np.mean(squares, axis=0)
    for k, heat in enumerate((3.0, 9.0)):
        z = (found[:, k].mean() - heat) / (found[:, k].std(ddof=1) / sqrt(1000))
        assert abs(z) < critical(1e-4, 2)
        assert abs(z + (heat - 1) / (found[:, k].std(ddof=1) / sqrt(1000))) > critical(1e-4, 2)


# --- replica exchange: how often noisy energies swap ----------------------------------------------------------------

COLD, HOT, TOP, SD = 1.8, 0.6, 4.0, 1.5
"""Places of the two rungs on N(0, 1), the hotter one's temperature, and the noise of an energy."""


def swapped(cold, hot, corrected, repeats=6, sd=SD):
    """The share of 10,000 chains a time that swap from these places in one step, which hardly moves them."""
    params = {"rungs": 2, "hottest": TOP, "energy_noise": sd, "correction": corrected, "step_size": 1e-6}
    spec = RunSpec.of(
        "gaussian", "resgld", target_params={"mean": 0.0, "sd": 1.0}, sampler_params=params, n_chains=10_000, seed=6
    )
    run = Run(spec)
    for _ in range(repeats):
        run.position, run.momentum[:, 0] = cold, hot
        run.advance(1)
    proposed, made = run.momentum[:, 1:].sum(axis=0)
    assert proposed == repeats * 10_000
    return made / proposed, sqrt(0.25 / proposed)


def expected(cold, hot, penalty, sd=SD):
    """E min(1, e^{x + sZ − penalty·s²/2}), x = a(U(cold) − U(hot)), s² = 2a²σ², in closed form."""
    a = 1 - 1 / TOP
    s = sqrt(2) * a * sd
    x = a * (cold**2 - hot**2) / 2 - penalty * s * s / 2
    return stats.norm.cdf(x / s) + exp(x + s * s / 2) * stats.norm.cdf(-x / s - s)


@for_each(("cold", "hot"), [(COLD, HOT), (HOT, COLD), (1.0, -1.0)])
def test_noisy_swaps_are_as_often_as_their_formula_says(cold, hot):
    """With and without the correction, at four standard errors of 60,000 swaps. Faults: a correction of half and of
    twice the size, and the other sign of the energies."""
    for corrected in (True, False):
        share, error = swapped(cold, hot, corrected)
        penalty = float(corrected)
        assert abs(share - expected(cold, hot, penalty)) < 4 * error
        for wrong in (penalty + 1, penalty + 0.5, penalty - 0.5):
            assert abs(share - expected(cold, hot, wrong)) > 4 * error
        if abs(cold) != abs(hot):
            assert abs(share - expected(hot, cold, penalty)) > 4 * error


def test_the_correction_makes_swaps_reversible_exactly():
    """A(x)/A(−x) = eˣ, of the closed form to rounding, for the penalty s²/2 of half the variance of the exponent alone.
    E S̃ = S holds with it, too, but min(1, S̃) needs more. Faults: none, half and twice of it."""
    x = (1 - 1 / TOP) * (COLD**2 - HOT**2) / 2
    ratios = {p: expected(COLD, HOT, p) / expected(HOT, COLD, p) for p in (0.0, 0.5, 1.0, 2.0)}
    assert ratios[1.0] == pytest.approx(exp(x), rel=1e-12)
    assert all(abs(ratios[p] / exp(x) - 1) > 0.1 for p in (0.0, 0.5, 2.0))
    assert ratios[0.0] < exp(x)


def test_exact_energies_need_no_correction():
    share, error = swapped(HOT, COLD, True, sd=0.0)
    assert abs(share - exp((1 - 1 / TOP) * (HOT**2 - COLD**2) / 2)) < 4 * error


# --- replica exchange: the weights of four modes --------------------------------------------------------------------

MODES = {"modes": 4, "weight": 0.55, "radius": 2.5, "sd": 0.5}
WEIGHTS = np.array([0.55, 0.15, 0.15, 0.15])
WITHIN = 0.02


def weights(run, burn_in=3000, kept=120, every=50):
    """The shares of four modes in the draws, and their standard errors across chains."""
    run.advance(burn_in)
    draws = draws_of(run, kept, every)
    nearest = ((draws[..., None, :] - run.target.centres) ** 2).sum(axis=-1).argmin(axis=-1)
    each = np.stack([(nearest == j).mean(axis=1) for j in range(4)], axis=1)
    return each.mean(axis=0), each.std(axis=0, ddof=1) / sqrt(len(each))


def four_modes(correction, gradient="full", **params):
    return RunSpec.of(
        "gaussian_mixture",
        "resgld",
        gradient,
        target_params=MODES,
        sampler_params={"energy_noise": 2.0, "correction": correction, **params},
        n_chains=400,
        seed=12,
    )


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["full", "gaussian_corrected"])
def test_the_weights_of_four_modes_are_right_with_the_correction(gradient):
    """Within .02, with energies of noise 2 and a noisy gradient, too. Standard errors are below a quarter of that."""
    found, errors = weights(Run(four_modes(True, gradient)))
    assert errors.max() < WITHIN / 4
    assert np.abs(found - WEIGHTS).max() < WITHIN, found


@pytest.mark.slow
def test_without_the_correction_they_are_wrong():
    """By more than .05, towards the weights of the hotter rungs, which are nearly equal."""
    found, errors = weights(Run(four_modes(False)))
    assert errors.max() < WITHIN / 4
    assert found[0] < WEIGHTS[0] - 0.05, found
    assert (found[1:] > WEIGHTS[1:] + 0.015).all()


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "wrong"), [(NONE, False), (SIGN, True), (HEAT, True)])
def test_faults_of_langevin_rungs_are_caught(fault, wrong):
    """Two rungs that swap by exact energies: a wrong sign, and rungs of one temperature, make other weights."""
    run = with_fault(four_modes(True, rungs=2), fault, 0.02, 6.0, langevin=True)
    found, _ = weights(run)
    assert (np.abs(found - WEIGHTS).max() > WITHIN) == wrong, found


# --- changes on the way ---------------------------------------------------------------------------------------------


def test_with_more_rungs_those_that_there_were_go_on():
    """Each rung's block begins where it did; the new one begins at θ. Fault: blocks that are mixed up."""
    run = Run(RunSpec.of("quartic", "parallel_tempering", n_chains=3, seed=2))
    run.advance(50)
    before = run.momentum.copy()
    values = {**run.spec.sampler.values(), "rungs": 5}
    run.change(Change(run.steps, Choice(run.spec.sampler.key, tuple(values.items())), run.spec.gradient))
    assert run.momentum.shape == (3, 4 * 4)
    np.testing.assert_array_equal(run.momentum[:, :12], before)
    np.testing.assert_array_equal(run.momentum[:, 12:14], run.position)
    assert not run.momentum[:, 14:].any()
