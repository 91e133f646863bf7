"""The energies of draws: against the law of U, for chains in their target's law and for chains that are too hot."""

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.app.views.energies import BARS, DRAWS, WORK, Energies, exact_energies
from sgmcmc_lab.samplers import Change
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_views import experiment_of, fitting, frames, records, scene_of
from tests.helpers.statistics import critical


def told(target, sampler, n_frames=100, steps=40, **params):
    """A view of one lane, after so many frames; of 40 steps a frame has 14 draws of 4 chains."""
    made = records(target, [(sampler, params)])
    view = Energies(scene_of(made))
    for _ in range(n_frames):
        made[0].run.advance(steps)
        view.compute(frames(made))
    return view, made


def test_the_exact_energies_of_a_gaussian_are_exponential():
    """U of two Gaussian coordinates is U_min + an exponential of mean 1: every bar within 4.9 standard errors, which
    forty of them exceed once in 25,000 times. Planted fault: the energies of three coordinates, Γ(3/2)."""
    target = TARGETS["correlated_gaussian"]()
    found = exact_energies(target)
    lowest = float(target.energies_at(np.array([[c.mean for c in target.columns]]))[0])
    widths = np.diff(found.edges)

    def worst(law):
        shares = np.diff(law.cdf(found.edges - lowest))
        return np.max(np.abs(found.density * widths - shares) / np.sqrt(shares * (1 - shares) / DRAWS))

    assert worst(stats.expon) < critical(4e-5, BARS)
    assert worst(stats.gamma(1.5)) > critical(4e-5, BARS)
    assert abs(found.mean - lowest - 1) < 4 * found.error
    np.testing.assert_allclose(found.error, 1 / np.sqrt(DRAWS), rtol=0.05)


@for_each("target", ["quartic", "lasso", "funnel"])
def test_exact_draws_have_the_exact_energies(target):
    """The mean of 5,600 independent draws of U is within 4.5 standard errors of the exact one; all but a few are in the
    picture or to its right."""
    view, _ = told(target, "exact")
    counted, exact = view._counted[0], view._exact
    assert counted.n == 5600
    rows = max(len(TARGETS[target]().data()), 1)
    spread = exact.error * np.sqrt(min(DRAWS, WORK // rows))
    error = np.hypot(spread / np.sqrt(counted.n), exact.error)
    assert abs(counted.total / counted.n - exact.mean) < 4.5 * error
    assert 0 <= counted.n - counted.counts.sum() - counted.above < 0.005 * counted.n


@pytest.mark.slow
def test_a_chain_that_is_too_hot_and_one_that_is_too_cold_are_seen():
    """SGLD with a large step on the quartic, and MSGLD with a = 3, whose temperature is near 1/4: means of U that are
    off by more than .2, some ten standard errors."""
    hot, _ = told("quartic", "sgld", step_size=0.05)
    cold, _ = told("correlated_gaussian", "asgld", bias=3.0, scaled=False, step_size=0.02)
    for view, sign in ((hot, 1), (cold, -1)):
        counted, exact = view._counted[0], view._exact
        assert sign * (counted.total / counted.n - exact.mean) > 0.2


def test_a_change_starts_the_count_again():
    view, made = told("quartic", "sgld")
    run = made[0].run
    assert view._counted[0].n == 5600
    run.change(Change(0, Choice("sgld", (("step_size", 0.01),)), run.spec.gradient))
    run.advance(40)
    view.compute(frames(made))
    assert view._counted[0].n <= 64


def test_it_is_offered_for_several_coordinates_on_the_line():
    for target, sampler, there in (
        ("quartic", "sgld", True),
        ("lasso", "hmc", True),
        ("gaussian", "sgld", False),
        ("sparse_dirichlet", "scir", False),
        ("fisher", "sggmc", False),
    ):
        made = records(target, [sampler])
        assert (Energies in fitting(made)) is there, target
        assert Energies.fits(experiment_of(made)) is there, target
