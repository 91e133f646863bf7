"""Every registered target: its energy, gradient, density, CDF, moments and exact draws agree with each other.

The checks and their measures are those of ``checks_targets``; here they run over the registry, beside planted faults.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_lab.samplers import targets
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.requirements import ENERGIES
from sgmcmc_lab.samplers.targets import TARGETS, Target
from sgmcmc_lab.samplers.targets.base import MANIFOLD, SIMPLEX
from sgmcmc_lab.samplers.targets.quadrature import rule
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_targets import (
    CASES,
    Case,
    cases_of,
    check_cdf,
    check_columns,
    check_draws,
    check_functions,
    check_gradient,
    check_moments,
    check_packed,
    check_potential,
    check_start,
    check_words,
    columns_and_values,
    draws,
    energies_at,
    energies_error,
    gradient_error,
    ks_error,
    low_dimensional,
    make,
    mass_error,
    missing,
    moment_error,
    moment_errors,
    moments_to_test,
    potential_at,
    potential_error,
    shifted,
)

FIRST = [cases_of(key)[0] for key in TARGETS]
"""The settings of the planted faults: each target's defaults, or settings whose law needs no long run."""


def name_of(case: Case) -> str:
    return "-".join([case[0], *(f"{name}={value}" for name, value in case[1])])


all_cases = for_each("case", CASES, ids=name_of, slow=lambda case: of_a_long_run(name_of(case)))
of_one_target = for_each("case", CASES, ids=name_of, apart=lambda case: case[0])
"""For what takes seconds, or draws that the tests of a target share."""


# ---------------------------------------------------------------- registration


def target_classes() -> dict[str, type[Target]]:
    """The subclasses of Target with a key of their own in the modules of the package, by module and name."""
    found = {}
    for module in pkgutil.iter_modules(targets.__path__):
        loaded = importlib.import_module(f"sgmcmc_lab.samplers.targets.{module.name}")
        for name, cls in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(cls, Target) and "key" in vars(cls) and cls.__module__ == loaded.__name__:
                found[f"{module.name}.{name}"] = cls
    return found


def unregistered(registry: Iterable[type[Target]]) -> list[str]:
    registered = set(registry)
    return [name for name, cls in target_classes().items() if cls not in registered]


def test_every_target_of_the_package_is_registered():
    assert target_classes()
    assert unregistered(TARGETS.values()) == []


def test_fault_a_file_that_nothing_registers():
    assert unregistered(cls for cls in TARGETS.values() if cls.key != "ring") == ["ring.Ring"]


def test_every_target_declares_what_its_tests_need():
    assert [line for cls in TARGETS.values() for line in missing(cls)] == []


@for_each("key", TARGETS, slow=of_a_long_run)
def test_a_target_says_what_a_card_and_a_slider_need(key: str):
    assert TARGETS[key].key == key
    check_words(TARGETS[key])


def test_compiled_functions_are_declared_in_the_targets_own_file():
    for cls in TARGETS.values():
        check_functions(cls)


@all_cases
def test_packed_parameters_are_contiguous_doubles(case: Case):
    check_packed(case)


@all_cases
def test_start_is_a_point_of_the_support(case: Case):
    check_start(case)


# ---------------------------------------------------------------- energy and gradient


@all_cases
def test_potential_is_minus_log_density(case: Case):
    """Planted fault: a small term more."""
    check_potential(case)
    if case in FIRST:
        target = make(case)
        assert potential_error(target, lambda theta: potential_at(target, theta) + 1e-6 * theta[:, 0]) > 1


@all_cases
def test_gradient_is_the_derivative_of_the_potential(case: Case):
    """Planted faults: another sign of the first or of the last coordinate that the energy depends on, and a gradient
    off by one in a hundred thousand."""
    check_gradient(case)
    if case not in FIRST:
        return
    target = make(case)
    depends = np.flatnonzero(target.gradient_at(target.sample(1, 10)).any(axis=0))
    for i in depends[[0, -1]]:
        sign = np.where(np.arange(target.dim) == i, -1.0, 1.0)
        assert gradient_error(target, lambda theta, sign=sign: target.gradient_at(theta) * sign) > 1
    assert gradient_error(target, lambda theta: target.gradient_at(theta) * (1 + 1e-5)) > 1


@for_each(
    "case",
    [case for case in CASES if ENERGIES in TARGETS[case[0]].provides],
    ids=name_of,
    slow=lambda case: of_a_long_run(name_of(case)),
)
def test_energies_of_the_data_are_those_of_their_gradients(case: Case):
    """Their mean is U up to a constant. Planted faults: a share of the prior too much, and energies exchanged between
    two data points, which their mean does not show."""
    target = make(case)
    assert energies_error(target, lambda theta: energies_at(target, theta)) <= 1
    if case not in FIRST:
        return

    def prior_twice(theta):
        return energies_at(target, theta) + np.append(np.zeros(target.dim), theta @ theta / 1e4)

    def exchanged(theta):
        out = energies_at(target, theta)
        out[[0, 1], -1] = out[[1, 0], -1]
        return out

    assert energies_error(target, prior_twice) > 1
    assert energies_error(target, exchanged) > 1


def test_skew_normal_is_stable_in_its_far_tail():
    target = make(("skew_normal", (("slant", 20.0),)))
    theta = np.array([[-1e6], [-50.0], [-1.6], [-1.5001], [-1.4999], [0.0], [50.0]])
    total = potential_at(target, theta) + target.log_density(theta)
    np.testing.assert_allclose(total[1:], total[5], atol=1e-9)
    # Φ(t)/φ(t) = √(π/2) erfcx(−t/√2), from a function that the target does not use.
    mills = np.sqrt(np.pi / 2) * special.erfcx(-20 * theta[:, 0] * np.sqrt(0.5))
    np.testing.assert_allclose(target.gradient_at(theta)[:, 0], theta[:, 0] - 20 / mills, rtol=1e-12)


def test_mixture_is_stable_far_from_every_mode():
    target = make(("gaussian_mixture", (("modes", 8), ("radius", 6.0), ("sd", 0.1))))
    theta = np.array([[1e4, -3e3], [0.0, 0.0], [-200.0, 7.0]])
    np.testing.assert_allclose(np.diff(potential_at(target, theta) + target.log_density(theta)), 0, atol=1e-3)
    assert np.isfinite(target.gradient_at(theta)).all()


def test_ring_has_a_gradient_at_its_centre():
    assert (make(("ring", ())).gradient_at(np.zeros((1, 2))) == 0).all()


# ---------------------------------------------------------------- density and CDF


@pytest.mark.slow
@for_each("case", [x for x in CASES if low_dimensional(x)], ids=name_of, apart=lambda case: case[0])
def test_cdf_is_the_integral_of_the_density(case: Case):
    """Planted faults: a density that is not normalised, and a CDF shifted."""
    check_cdf(case)
    if case in FIRST:
        target = make(case)
        assert mass_error(target, target.columns, scale=1 + 1e-6) > 1
        assert mass_error(target, tuple(shifted(column, 1e-4) for column in target.columns)) > 1


@pytest.mark.slow
def test_dirichlet_density_integrates_to_one():
    target = make(("sparse_dirichlet", (("dimension", 2), ("alpha", 1.0), ("observed", (3, 2)))))
    u, w = (part.ravel() for part in rule(np.linspace(-40, 5, 61)[:-1], np.linspace(-40, 5, 61)[1:], 1))
    grid = np.exp(np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1))
    inside = np.exp(target.log_density(grid) + np.log(grid).sum(axis=-1))
    assert w @ inside @ w == pytest.approx(1, abs=1e-9)


@pytest.mark.slow
@all_cases
def test_columns_are_sound(case: Case):
    check_columns(case)


@pytest.mark.slow
@of_one_target
def test_mean_and_variance_follow_from_the_cdf(case: Case):
    """Planted faults: another mean, another variance."""
    check_moments(case)
    if case not in FIRST:
        return
    column = make(case).columns[0 if make(case).support == SIMPLEX else -1]
    sd = np.sqrt(column.variance)
    for wrong in ({"mean": column.mean + 1e-4 * sd}, {"variance": column.variance * (1 + 1e-4)}):
        errors = moment_errors(dataclasses.replace(column, **wrong), funnel=case[0] == "funnel")
        assert max(errors) > 2e-6


# ---------------------------------------------------------------- draws


@pytest.mark.slow
@of_one_target
def test_draws_follow_the_cdf_and_the_moments(case: Case):
    """Planted faults: a CDF shifted by a twentieth, draws that are too wide, and in a plane draws that have the right
    marginals and a coordinate from other draws."""
    check_draws(case)
    if case not in FIRST:
        return
    columns, values = columns_and_values(case, draws(case)[1])
    by = 0.05 if not columns[0].log else 0.5 if make(case).dim == 1 else 0.05
    assert ks_error([shifted(column, by) for column in columns], values) > 1
    if make(case).planar and make(case).support != SIMPLEX:
        # The funnel, the quartic, the banana, the ring and the correlated Gaussian each have a joint moment, which
        # alone can tell.
        values = draws(case)[1].copy()
        values[:, 1] = np.roll(values[:, 1], 1)
        cross = [m for m in moments_to_test(case) if "Cov" in m.name or "|θ|" in m.name]
        joint = f"{case[0]} needs a moment of both coordinates, with Cov or |θ| in its name"
        assert cross or case[1], joint
        if cross and case[0] != "gaussian_mixture":  # four modes of one weight are uncorrelated, though not independent
            assert moment_error(cross, values) > 1, f"{joint}, that coordinates drawn apart change"
    assert moment_error(moments_to_test(case), wider(case)) > 1


def wider(case: Case) -> np.ndarray:
    """Draws with a standard deviation 3 % too large; of a Dirichlet with fewer data or another α; with a smaller κ."""
    target = make(case)
    if target.support == SIMPLEX:
        fewer = {"observed": (752, 94, 94)} if "observed" in dict(declared(type(target))) else {"items": 940}
        return draws((case[0], tuple(fewer.items())))[1]
    if target.support == MANIFOLD:
        less = {k: 0.8 * getattr(target, k) for k, _ in declared(type(target)) if k.startswith("concentration")}
        less = less or {"alpha": 1.1 * target.alpha}
        return draws((case[0], tuple(less.items())))[1]
    return target.values(1.03 * draws(case)[0])


def test_seeds():
    target = make(("double_well", ()))
    np.testing.assert_array_equal(target.sample(1, 50), target.sample(1, 50))
    assert (target.sample(1, 50) != target.sample(2, 50)).all()


# ---------------------------------------------------------------- numbers of the papers


def test_numbers_of_the_recipe_paper():
    """PAPERS.md section 1: normalisers and moments of the double well and the correlated quartic."""
    well, quartic = make(("double_well", ())), make(("quartic", ()))
    well_moments = {m.name: m.exact for m in well.moments}
    assert np.exp(-well.log_density(np.zeros(1))) == pytest.approx(5.365160, abs=5e-7)
    assert well_moments["E θ²"] == pytest.approx(0.832745, abs=5e-7)
    assert well_moments["E θ⁴"] == pytest.approx(1.082745, abs=5e-7)
    exact = {m.name: m.exact for m in quartic.moments}
    assert np.exp(-quartic.log_density(np.array([0.0, -1.2]))) == pytest.approx(2.020138, abs=5e-7)
    assert exact["E θ₁²"] == pytest.approx(1.068815, abs=5e-7)
    assert exact["E θ₁⁴"] == pytest.approx(2.5, abs=1e-12)
    assert exact["E θ₂"] == pytest.approx(-0.932796, abs=5e-7)
    assert exact["Var θ₂"] == pytest.approx(0.147352, abs=5e-7)
    assert exact["Cov(θ₁², θ₂)"] == pytest.approx(0.339408, abs=5e-7)


def test_median_of_the_rarest_category():
    """Sparse Dirichlet, α = .1, 1000 counts: ω₅ ~ Beta(.1, 1000.9). The paper has 6.5e-7 from 1000 draws."""
    column = make(("sparse_dirichlet", ())).columns[4]
    median = stats.beta(0.1, 1000.9).ppf(0.5)
    assert float(column.cdf(np.array(median))) == pytest.approx(0.5, abs=1e-9)
    assert f"{median:.3g}" == "5.93e-07"
    # Planted fault: the median of some draws.
    assert abs(float(column.cdf(np.array(5.99e-7))) - 0.5) > 1e-4


# ---------------------------------------------------------------- Dirichlet at the ends


@for_each(("a", "b"), [(0.005, 0.005), (0.005, 1e6), (0.1, 1000.0), (1e6, 0.005), (0.005, 0.495)])
def test_odds_have_accurate_tails(a: float, b: float):
    """Both tails of BetaPrime(a, b) against x^a/(a B(a, b)) and its mirror image, to the series' next term."""
    from sgmcmc_lab.samplers.targets.dirichlet import _odds

    log_beta = special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)
    column = _odds(0, a, b)
    small = np.exp(np.linspace(np.log(1e-280), np.log(1e-5 / max(a + b, 1)), 40))
    np.testing.assert_allclose(column.cdf(small), np.exp(a * np.log(small) - log_beta) / a, rtol=3e-5)
    large = 1 / small
    np.testing.assert_allclose(1 - column.cdf(large), np.exp(b * np.log(small) - log_beta) / b, rtol=3e-5, atol=1e-15)


def test_odds_of_underflowed_components():
    """θ_j and its remainder both 0: odds 1. Only θ_j 0: odds 0. Only the remainder 0: infinite odds."""
    target = make(("sparse_dirichlet", (("dimension", 3), ("observed", (1,)))))
    values = target.values(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]))
    np.testing.assert_array_equal(values[:, 4], [1.0, 0.0, np.inf])
    np.testing.assert_array_equal(values[:, 3], [np.inf, 0.5, 0.5])


def test_a_share_that_rounds_to_one_is_inside_the_histogram():
    column = make(("sparse_dirichlet", (("alpha", 0.005), ("dimension", 2), ("observed", (1_000_000,))))).columns[0]
    assert column.low < 1.0 < column.high


def test_every_file_says_the_law_in_its_docstring():
    for module in pkgutil.iter_modules(targets.__path__):
        spec = importlib.util.find_spec(f"sgmcmc_lab.samplers.targets.{module.name}")
        with open(spec.origin, encoding="utf-8") as file:
            assert ast.get_docstring(ast.parse(file.read())), module.name
