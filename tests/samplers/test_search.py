"""The search of D and Q, held against closed forms and chains. Seeds are fixed."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from sgmcmc_lab.samplers import RunSpec, search
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.presets import PRESETS, preset
from sgmcmc_lab.samplers.recipe.recipe import Layout, Recipe
from sgmcmc_lab.samplers.search import CONSTANT, CURL, TOLERANCE, VARYING, Family, SearchError
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.statistics import critical

RIDGE = np.array([[1.0, 0.9], [0.9, 1.0]])
WELL = "theta^4 - 2*theta^2"
NAIVE = ("naive_sghmc", "naive_sgrhmc")


def numbers(recipe):
    """The constant matrices D and Q of a recipe."""
    return (np.array([[float(e.constant) for e in row] for row in matrix]) for matrix in (recipe.D, recipe.Q))


def best_curl():
    """Whether the search finds the Q with the largest gap for D = 1, the least |q| that has it, and that gap."""
    target = TARGETS["correlated_gaussian"]()
    try:
        found = search.improve(preset("sgld", 2, target.formula()), target, CURL, each=40)
    except ValueError:
        return False
    D, Q = numbers(found.recipe)
    best, least = fokker_planck.optimal_curl_gap(RIDGE), fokker_planck.optimal_curl(RIDGE)
    gap = fokker_planck.gaussian_gap(RIDGE, D, Q)
    return bool(
        np.array_equal(D, np.eye(2))
        and gap > 0.98 * best
        and abs(found.score.gap / gap - 1) < 0.02
        and abs(abs(Q[0, 1]) / least - 1) < 0.02
    )


def symmetric(self, given):
    D, _ = self._means
    return D + given["q"] * np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2))


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "skew part symmetric": lambda patch: patch.setattr(Family, "matrices", symmetric),
    "another eigenvalue": lambda patch: patch.setattr(search, "gap_of", lambda m: float(np.sort(-m.values.real)[2])),
    "normalisation dropped": lambda patch: patch.setattr(search, "stable_step", lambda *_: 1.0),
}


@pytest.mark.slow
def test_the_best_constant_curl_of_the_correlated_gaussian():
    """The closed form of Lelièvre, Nier & Pavliotis (2013): tr(Σ⁻¹)/d, and the least |q|, within 2 %."""
    assert best_curl()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_search_does_not_find_the_best_curl(fault, monkeypatch):
    """Planted faults of the test above."""
    FAULTS[fault](monkeypatch)
    assert not best_curl()


@pytest.mark.slow
def test_constant_matrices_do_at_least_as_well_as_the_best_curl():
    """With D free too the gap per gradient is at least that of the best Q. Planted fault: D = 1 and Q = 0."""
    target = TARGETS["correlated_gaussian"]()
    start = preset("sgld", 2, target.formula())
    found = search.improve(start, target, CONSTANT, each=90)
    strength = fokker_planck.optimal_curl(RIDGE)
    curl = preset("curl_sgld", 2, target.formula(), curl_strength=strength)
    step = search.stable_step(curl, target)
    best = fokker_planck.optimal_curl_gap(RIDGE) * step
    assert found.score.per_gradient > 0.98 * best
    assert search.score(start, target).per_gradient < 0.5 * best
    D, _ = numbers(found.recipe)
    assert np.linalg.eigvalsh(D)[0] > 0 and np.trace(D) == pytest.approx(2, rel=1e-3)


@pytest.mark.slow
def test_functions_of_theta_do_at_least_as_well_as_constant_matrices(monkeypatch):
    """Planted fault: all five coefficients are searched from the first recipe on, with the recipes of one stage."""
    target = TARGETS["correlated_gaussian"]()
    start = preset("sgld", 2, target.formula())
    constant = search.improve(start, target, CONSTANT)
    varying = search.improve(start, target, VARYING)
    assert constant.tried <= constant.most < varying.tried <= varying.most
    assert varying.score.per_gradient >= constant.score.per_gradient
    monkeypatch.setattr(search.Family, "stages", property(lambda family: [family.names]))
    assert search.improve(start, target, VARYING, each=100).score.per_gradient < 0.95 * constant.score.per_gradient


@for_each("q", [0.0, 2.0])
@for_each("unit", [1.0, 30.0])
def test_the_stable_step_of_a_gaussian(q, unit):
    """For constant D and Q E|e| = ε²/2·‖Σ^{−1/2}(D + Q)Σ^{−1/2}‖²; another unit of time changes nothing.

    Planted fault: the norm without Q.
    """
    target = TARGETS["correlated_gaussian"]()
    recipe = preset("curl_sgld", 2, target.formula(), diffusion_strength=unit, curl_strength=unit * q)
    root = np.linalg.inv(np.linalg.cholesky(RIDGE))

    def expected(q):
        both = unit * np.array([[1.0, q], [-q, 1.0]])
        return np.sqrt(2 * 2 * TOLERANCE / np.sum((root @ both @ root.T) ** 2))

    step = search.stable_step(recipe, target)
    assert step == pytest.approx(expected(q), rel=0.01)
    if q:
        assert step != pytest.approx(expected(0.0), rel=0.1)


def test_the_gap_per_gradient_has_no_unit_of_time():
    """Planted fault: the gap, which has one."""
    target = TARGETS["double_well"]()
    slow, fast = (
        search.score(
            Recipe.from_text(Layout("theta_r", 1), WELL, {"2,2": f"{unit}*(1 + theta^2)"}, {"1,2": f"-{unit}"}), target
        )
        for unit in (1, 5)
    )
    assert fast.per_gradient == pytest.approx(slow.per_gradient, rel=1e-4)
    assert fast.gap == pytest.approx(5 * slow.gap, rel=1e-4)


def chains(recipe, steps=400_000):
    """Measured τ in steps, each of one gradient, and its standard error, at the recipe's stable step."""
    step = search.stable_step(recipe, TARGETS["double_well"]())
    spec = RunSpec.of(
        "double_well", "recipe", sampler_params=search.parameters(recipe, step), n_steps=steps, n_chains=8, seed=2
    )
    return search.measured_time(spec)


@pytest.mark.slow
def test_the_search_beats_every_preset_on_the_double_well():
    """By τ from chains, with a false-alarm rate of 10⁻³. The prediction is of the process, so the steps may add 5 %.

    Planted fault: SGHMC, where the search began, in place of what it found.
    """
    target = TARGETS["double_well"]()
    start = preset("sghmc", 1, WELL)
    found = search.improve(start, target, VARYING, each=60)
    fits = [cls for key, cls in PRESETS.items() if key not in NAIVE and not cls.positive and 1 in cls.dims]
    assert {cls.key for cls in fits} >= {"sgld", "hmc", "sghmc", "sgnht", "gsgrhmc"}
    others = [chains(cls.recipe(1, WELL)) for cls in fits]
    limit = critical(2e-3, len(others))

    def beats(own):
        return all(other.tau - own.tau > limit * np.hypot(own.standard_error, other.standard_error) for other in others)

    made = search.check(found.recipe, RunSpec.of("double_well", "sgld").target, found.score.step_size, seconds=60.0)
    assert beats(made.measured), (made, others)
    assert not beats(chains(start))
    error = made.measured.standard_error
    assert abs(made.measured.tau - made.predicted) < critical(1e-3) * error + 0.05 * made.predicted
    # The coarse grid of the search flatters what it has chosen.
    assert 0.8 * found.score.gap < made.score.gap
    assert made.score.per_gradient > 3 * search.score(start, target).per_gradient


@for_each("heat", [0.25, 4.0])
def test_a_check_is_of_the_temperature(heat):
    """On N(0, T) SGLD is an AR(1) with the coefficient 1 − ε/T: the gap is 1/T, and of a step of T/5 both τ are known.

    Planted faults: the gap and τ of N(0, 1).
    """
    spec = RunSpec.of("gaussian", "sgld", temperature=heat)
    recipe = preset("sgld", 1, spec.make_target().formula())
    found = search.check(recipe, spec.target, heat / 5, temperature=heat, seconds=60.0)
    assert found.score.gap == pytest.approx(1 / heat, rel=1e-3)
    assert found.predicted == pytest.approx(2 * heat / (heat / 5), rel=1e-3)
    # (1 + a)/(1 − a) = 9; the standard error is 4 % of it.
    assert abs(found.measured.tau - 9) < 4 * found.measured.standard_error < 2


@pytest.mark.slow
def test_the_law_of_the_found_recipe():
    """Its D depends on θ: without Γ the variance would be another. Planted fault: Γ left out."""
    found = {"2,2": "3.4169*exp(-0.98274/(1 + 1.2*theta^2))"}, {"1,2": "-0.41709*exp(1.4353/(1 + 1.2*theta^2))"}

    def variance(**switches):
        recipe = Recipe.from_text(Layout("theta_r", 1), WELL, *found, **switches)
        step = search.stable_step(recipe, TARGETS["double_well"]())
        values = search.parameters(recipe, step)
        spec = RunSpec.of("double_well", "recipe", sampler_params=values, n_steps=400_000, n_chains=8, seed=3)
        run = search.Run(spec, False)
        run.advance(spec.n_steps)
        return run.statistics.variance(0)

    exact = TARGETS["double_well"]().columns[0].variance
    assert variance() == pytest.approx(exact, rel=0.03)
    assert variance(gamma_dropped=True) != pytest.approx(exact, rel=0.03)


@pytest.mark.slow
def test_a_search_never_gets_worse_and_ends_when_it_is_told():
    target = TARGETS["double_well"]()
    steps = list(search.climb(preset("sgld", 1, WELL), target, each=25))
    heights = [one.score.per_gradient for one in steps]
    assert heights == sorted(heights) and heights[-1] > heights[0]
    assert steps[-1].tried <= 25
    assert [one.improved for one in steps[1:]] == [b > a for a, b in pairwise(heights)]
    going = search.climb(preset("sgld", 1, WELL), target)
    first = next(going)
    going.close()
    assert first.recipe == preset("sgld", 1, WELL)
    assert next(going, None) is None


def test_a_process_without_a_gap_begins_with_friction():
    """HMC without redraws has D = 0: the search begins with D = 1 in the momentum's block."""
    target = TARGETS["double_well"]()
    found = next(search.climb(preset("hmc", 1, WELL, refresh=0.0), target))
    assert str(found.recipe.D[1][1]) == "1" and found.score.gap > 0.1


def long(key, name, **values):
    target = TARGETS[key]()
    return PRESETS[name].recipe(target.dim, target.formula(), **values), target


@for_each(
    ("made", "kind", "sentence"),
    [
        (lambda: long("logistic_large", "sgld"), CONSTANT, "z has 10 coordinates"),
        (lambda: long("correlated_gaussian", "sghmc"), VARYING, "z has 4 coordinates"),
        (lambda: long("double_well", "sgnht"), VARYING, "z has 3 coordinates"),
        (lambda: long("double_well", "hmc"), VARYING, "Set λ from 1 to 0"),
        (lambda: long("double_well", "naive_sgrhmc"), VARYING, "left out or typed by hand"),
        (lambda: long("gamma", "sgrld"), VARYING, "D must vanish at the bound"),
        (lambda: long("double_well", "sgld"), CURL, "With one coordinate Q is 0"),
        (lambda: long("double_well", "sgld"), CONSTANT, "only sets the unit of time"),
        (lambda: long("double_well", "sghmc"), "all", "There is no family all"),
    ],
)
def test_what_cannot_be_searched_is_said(made, kind, sentence):
    with pytest.raises(SearchError, match=sentence):
        next(search.climb(*made(), kind))
