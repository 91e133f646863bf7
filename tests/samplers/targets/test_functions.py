"""Targets of functions: their law, their data, and what is wrong with them in a sentence."""

import numba
import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers import RunSpec, SpecError, run
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.functions import of_functions
from sgmcmc_lab.samplers.targets.quadrature import rule
from tests.helpers.checks_samplers import check_formula

DATA = np.random.Generator(np.random.SFC64(3)).gamma(2.0, size=12)


def energy(theta, y):
    """Two coordinates: a log rate and a mean of its own."""
    return 3 * theta[0] ** 2 / 2 + theta[1] ** 2 / 2 + (np.exp(theta[0]) * y - theta[0]).sum() + theta[0] * theta[1]


def gradient(theta, y, out):
    out[0] = 3 * theta[0] + (np.exp(theta[0]) * y - 1).sum() + theta[1]
    out[1] = theta[1] + theta[0]


def of_one(theta, y, i, out):
    out[0] = 3 * theta[0] + len(y) * (np.exp(theta[0]) * y[i] - 1) + theta[1]
    out[1] = theta[1] + theta[0]


def gradient_a_little_off(theta, y, out):
    gradient_of(theta, y, out)
    out[1] = theta[1] + 1.02 * theta[0]


def one_with_its_prior_left_out(theta, y, i, out):
    out[0] = len(y) * (np.exp(theta[0]) * y[i] - 1) + theta[1]
    out[1] = theta[1] + theta[0]


def saddle(theta, y):
    return (theta[0] ** 2 - theta[1] ** 2) / 2


def of_saddle(theta, y, out):
    out[0], out[1] = theta[0], -theta[1]


gradient_of = numba.njit(gradient)


@pytest.fixture
def made():
    yield of_functions("made", energy, gradient, of_one, dim=2, params=DATA, n_data=len(DATA))
    TARGETS.remove("made")


@pytest.mark.slow
def test_the_law_is_that_of_the_energy(made):
    """Fails where mean, variance or CDF of either coordinate is off by more than four standard errors of the long run,
    whose ESS is above 10,000, from quadrature; the law without one of the data points must be off."""

    def answers(data):
        x, wx = rule(-3.0, 2.0, 128)
        y, wy = rule(-9.0, 9.0, 64)
        density = (
            np.exp(
                -(
                    3 * x[:, None] ** 2 / 2
                    + y**2 / 2
                    + (np.exp(x) * data.sum() - len(data) * x)[:, None]
                    + x[:, None] * y
                )
            )
            * wx[:, None]
            * wy
        )
        density /= density.sum()
        for z, p in ((x, density.sum(axis=1)), (y, density.sum(axis=0))):
            mean = z @ p
            yield mean, (z - mean) ** 2 @ p, p[z < mean].sum()

    def far(data):
        columns = made().columns
        for column, (mean, variance, below) in zip(columns, answers(data), strict=True):
            sd, kurtosis = variance**0.5, 3.0
            yield abs(column.mean - mean) / sd > 4 / 100
            yield abs(column.variance / variance - 1) > 4 * (kurtosis - 1) ** 0.5 / 100
            yield abs(column.cdf(mean) - below) > 4 * 0.5 / 100 + 0.003

    assert not any(far(DATA))
    assert any(far(DATA[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("g", ["full", "minibatch", "minibatch_cv", "minibatch_fisher"])
def test_a_run_on_it_is_the_textbooks(made, g):
    """Draw for draw, with the functions' own parameters and not the draws behind them."""
    made.textbook_slope = lambda self, theta, datum: self.slopes_at(theta)[datum]
    check_formula("sgld", "made", g, {"step_size": 1e-3}, {"batch_size": 4} if g != "full" else {})


@pytest.mark.slow
def test_a_sampler_finds_it(made):
    trace = run(
        RunSpec.of(
            "made",
            "sghmc",
            "minibatch_cv",
            sampler_params={"step_size": 0.02, "friction": 3.0},
            gradient_params={"batch_size": 6},
            n_chains=100,
            n_steps=20_000,
            burn_in=1000,
        )
    )
    draws = trace.draws[:, ::50]
    for k, column in enumerate(made().columns):
        of_chains = draws[..., k].mean(axis=1)
        assert abs(of_chains.mean() - column.mean) < 4 * (stats.sem(of_chains) + column.variance**0.5 / 100)


@pytest.mark.slow
def test_a_cell_that_runs_again_makes_it_anew(made):
    before = TARGETS["made"]
    again = of_functions("made", energy, gradient, dim=2, params=DATA)
    assert TARGETS["made"] is again is not before
    assert again().data().size == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"gradient": gradient_a_little_off, "of_one": None, "n_data": 0}, SpecError, "differences of the energy"),
        ({"of_one": one_with_its_prior_left_out}, SpecError, "the mean of what of_one says"),
        (
            {"energy": saddle, "gradient": of_saddle, "of_one": None, "n_data": 0, "start": [1.0, 0.0]},
            SpecError,
            "no minimum",
        ),
        ({"start": [0.0]}, ValueError, "start has the shape (1,); allowed is (2,)"),
        ({"n_data": 0}, ValueError, "n_data is 0; allowed is the number of data"),
        ({"key": "gaussian"}, ValueError, "two targets are called gaussian"),
    ],
)
def test_what_is_wrong_is_a_sentence_and_registers_nothing(given, error, says):
    before = dict(TARGETS)
    sound = {
        "key": "made",
        "energy": energy,
        "gradient": gradient,
        "of_one": of_one,
        "dim": 2,
        "params": DATA,
        "n_data": len(DATA),
    }
    with pytest.raises(error) as found:
        of_functions(**(sound | given))
    assert says in str(found.value)
    assert dict(TARGETS) == before
