"""Every registered target: its energy, gradient, density, CDF, moments and exact draws agree with each other.

A check is a function that returns its worst error over its tolerance, so that at most 1 passes. The same function
must return more than 1 for each planted fault.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import special

from samplers import jit, targets
from samplers.parameters import declared
from samplers.targets import TARGETS, Target
from samplers.targets.base import LINE, MANIFOLD, SIMPLEX, Array, Column, Moment
from samplers.targets.quadrature import rule
from samplers.targets.ranges import TINY

# Beside the defaults: the ends of what is allowed.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "gaussian": [{"mean": -10.0, "sd": 0.05}, {"mean": 3.0, "sd": 20.0}],
    "double_well": [],
    "skew_normal": [{"slant": -20.0}, {"slant": 0.0}],
    "correlated_gaussian": [{"rho": 0.99, "sd1": 0.1, "sd2": 10.0}, {"rho": -0.99, "sd1": 2.0, "sd2": 0.5}],
    "quartic": [],
    "banana": [{"scale": 0.5, "bend": 0.05}, {"scale": 3.0, "bend": 1.0}],
    "ring": [{"radius": 0.0, "width": 2.0}, {"radius": 5.0, "width": 0.1}, {"radius": 0.5, "width": 0.5}],
    "gaussian_mixture": [
        {"modes": 2, "radius": 6.0, "sd": 0.1, "weight": 0.99},
        {"modes": 8, "radius": 1.0, "sd": 2.0, "weight": 0.01},
    ],
    "funnel": [{"scale": 0.5}, {"scale": 4.0}],
    "gamma": [{"shape": 0.01}, {"shape": 1000.0}],
    "lognormal": [{"mu": -5.0, "sigma": 0.05}, {"mu": 5.0, "sigma": 2.0}],
    "typed": [
        {"energy": "cosh(3*theta) - sin(theta)", "extent": 2.0},
        {"energy": "(theta1^2 + theta2^2)^2/8 - exp(-(theta1 - 1)^2)*theta2", "extent": 4.0},
    ],
    "sparse_dirichlet": [
        {"alpha": 0.005, "dimension": 100},
        {"alpha": 0.005, "dimension": 2, "observed": (1_000_000,)},
    ],
    "dense_dirichlet": [
        {"alpha": 0.005, "dimension": 100, "items": 1_000_000},
        {"alpha": 100.0, "dimension": 100, "items": 1},
    ],
    "linear_regression": [
        {"items": 10, "noise_sd": 5.0, "prior_sd": 0.1, "data_seed": 3},
        {"items": 1000, "noise_sd": 0.2, "prior_sd": 100.0},
    ],
    "von_mises": [{"angle": -np.pi, "concentration": 100.0}, {"angle": 3.0, "concentration": 0.1}],
    "circle_mixture": [
        {"weight": 0.99, "angle1": np.pi, "angle2": 0.2, "concentration1": 0.1, "concentration2": 100.0},
        {"weight": 0.01, "angle1": -2.0, "angle2": 2.0, "concentration1": 100.0, "concentration2": 1.0},
    ],
    "fisher": [{"colatitude": 0.0, "concentration": 100.0}, {"colatitude": np.pi / 2, "concentration": 0.1}],
    "sphere_mixture": [
        {"modes": 2, "colatitude": np.pi / 2, "weight": 0.99, "concentration": 100.0},
        {"modes": 8, "colatitude": 0.0, "weight": 0.01, "concentration": 0.1},
    ],
    "bingham": [{"concentration": -50.0, "asymmetry": 0.0}, {"concentration": 50.0, "asymmetry": 20.0}],
    "mises_posterior": [
        {"items": 1000, "concentration": 50.0, "data_seed": 5},
        {"items": 10, "concentration": 10.0, "data_seed": 2},
    ],
}
CASES = [(key, tuple(values.items())) for key in TARGETS for values in ({}, *SETTINGS.get(key, []))]
DEFAULTS = [(key, ()) for key in TARGETS]
Case = tuple[str, tuple[tuple[str, Any], ...]]

SEED = 20
N_DRAWS = 100_000
FALSE_ALARM = 1e-3


def name_of(case: Case) -> str:
    return "-".join([case[0], *(f"{name}={value}" for name, value in case[1])])


@lru_cache
def make(case: Case) -> Target:
    return TARGETS[case[0]](**dict(case[1]))


all_cases = pytest.mark.parametrize("case", CASES, ids=name_of)
default_cases = pytest.mark.parametrize("case", DEFAULTS, ids=name_of)


@lru_cache(maxsize=2)
def draws(case: Case) -> tuple[Array, Array]:
    """10⁵ exact draws of θ, and their columns."""
    target = make(case)
    theta = target.sample(SEED, N_DRAWS)
    return theta, target.values(theta)


def few_draws(target: Target, n: int) -> Array:
    """Draws of θ at which to evaluate; the components that have underflowed to 0 are lifted from it."""
    theta = target.sample(SEED, n)
    return theta if target.support in (LINE, MANIFOLD) else np.maximum(theta, 1e-200)


def potential_at(target: Target, theta: Array) -> Array:
    jit.prepare([target.potential])
    out = np.empty(len(theta))
    target.potential(np.ascontiguousarray(theta), out, target.packed())
    return out


# ---------------------------------------------------------------- registration


def target_classes() -> dict[str, type[Target]]:
    """The subclasses of Target with a key of their own in the modules of the package, by module and name."""
    found = {}
    for module in pkgutil.iter_modules(targets.__path__):
        loaded = importlib.import_module(f"samplers.targets.{module.name}")
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


def test_the_cases_cover_the_registry():
    assert set(SETTINGS) == set(TARGETS), "a new target needs a line in SETTINGS"
    for key, cls in TARGETS.items():
        assert len(SETTINGS[key]) >= (2 if list(declared(cls)) else 0), key


@pytest.mark.parametrize("key", TARGETS)
def test_a_target_says_what_a_card_and_a_slider_need(key: str):
    cls = TARGETS[key]
    assert cls.key == key
    assert cls.title
    assert "U(\\theta)" in cls().tex
    assert cls.source
    assert cls.__doc__
    for name, parameter in declared(cls):
        assert parameter.label, name
        assert parameter.doc.endswith("."), name
        assert parameter.tex, name


def test_compiled_functions_are_declared_in_the_targets_own_file():
    for cls in TARGETS.values():
        for what in ("potential", "gradient", "draw"):
            module = getattr(cls, what).py_func.__module__
            assert any(module == base.__module__ for base in cls.__mro__), (cls.key, what)


def test_packed_parameters_are_contiguous_doubles():
    for case in CASES:
        packed = make(case).packed()
        assert packed.dtype == np.float64
        assert packed.flags.c_contiguous
        assert np.isfinite(packed).all()


@all_cases
def test_start_is_a_point_of_the_support(case: Case):
    target = make(case)
    start = target.start()
    assert start.shape == (target.dim,)
    assert start.dtype == np.float64
    assert np.isfinite(target.log_density(start))
    assert np.isfinite(target.gradient_at(start[None])).all()
    assert target.support in (LINE, MANIFOLD) or (start > 0).all()
    assert target.manifold.ambient == target.dim
    assert target.manifold.defect(start, np.zeros_like(start)) < 1e-14


# ---------------------------------------------------------------- energy and gradient


def potential_error(target: Target, potential: Callable[[Array], Array]) -> float:
    """H + log density is one constant, over a tolerance of 1e-11 of the terms that make up H."""
    theta = few_draws(target, 300)
    log_density = target.log_density(theta)
    total = potential(theta) + log_density
    size = np.abs(log_density) + np.abs(total[0]) + 1
    if target.support == SIMPLEX:
        size += np.abs(target.packed()).sum() * 10
    return float((np.abs(total - np.median(total)) / (1e-11 * size)).max())


@all_cases
def test_potential_is_minus_log_density(case: Case):
    target = make(case)
    assert potential_error(target, lambda theta: potential_at(target, theta)) <= 1


@default_cases
def test_fault_potential_with_a_small_term_more(case: Case):
    target = make(case)
    assert potential_error(target, lambda theta: potential_at(target, theta) + 1e-6 * theta[:, 0]) > 1


def scale_of(target: Target, theta: Array, i: int) -> Array:
    """The spread of a column, a tenth of a unit vector, or θ_i itself, (n,)."""
    if target.support == MANIFOLD:
        return np.full(len(theta), 0.1)
    return np.full(len(theta), np.sqrt(target.columns[i].variance)) if target.support == LINE else np.abs(theta[:, i])


def differences(target: Target, theta: Array, i: int) -> Array:
    """∂H/∂θ_i by fourth-order central differences, with the step that agrees best with its neighbour."""
    # The range of steps spans the scales of all targets: a share of θ_i itself, or of the column's spread.
    scale = scale_of(target, theta, i)
    estimates = []
    for power in range(2, 16):
        h = scale * 2.0**-power
        values = []
        for factor in (-2, -1, 1, 2):
            moved = theta.copy()
            moved[:, i] += factor * h
            values.append(potential_at(target, moved))
        estimates.append((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h))
    table = np.array(estimates)
    best = np.abs(np.diff(table, axis=0)).argmin(axis=0)
    return table[best, np.arange(len(theta))]


def gradient_error(target: Target, gradient: Callable[[Array], Array]) -> float:
    """Gradient against central differences, over a tolerance of 1e-6 of it or of 1/scale."""
    theta = few_draws(target, 40)
    exact = gradient(theta)
    worst = 0.0
    for i in {0, 1, target.dim // 2, target.dim - 1} & set(range(target.dim)):
        scale = scale_of(target, theta, i)
        size = np.maximum(np.abs(exact[:, i]), 1 / scale)
        worst = max(worst, float((np.abs(exact[:, i] - differences(target, theta, i)) / (1e-6 * size)).max()))
    return worst


@all_cases
def test_gradient_is_the_derivative_of_the_potential(case: Case):
    target = make(case)
    assert gradient_error(target, target.gradient_at) <= 1


@pytest.mark.parametrize(("case", "i"), [(case, i) for case in DEFAULTS for i in {0, make(case).dim - 1}], ids=str)
def test_fault_gradient_with_one_sign_flipped(case: Case, i: int):
    target = make(case)
    sign = np.where(np.arange(target.dim) == i, -1.0, 1.0)
    assert gradient_error(target, lambda theta: target.gradient_at(theta) * sign) > 1


@default_cases
def test_fault_gradient_off_by_one_in_a_hundred_thousand(case: Case):
    target = make(case)
    assert gradient_error(target, lambda theta: target.gradient_at(theta) * (1 + 1e-5)) > 1


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


def edges_and_rule(target: Target, i: int, panels: int) -> tuple[Array, Array, Array]:
    """Edges that bracket the mass of coordinate i, and the points and weights between them, panel by panel."""
    column = target.columns[i]
    if target.key == "funnel" and i == 1:
        # The neck is narrower than the mouth by a factor of millions: the logarithm on both sides of 0.
        edges = np.linspace(-26.0, 17.0, panels // 2 + 1)
        u, w = rule(edges[:-1], edges[1:], 1)
        x, w = np.exp(u), w * np.exp(u)
        return (
            np.concatenate([-np.exp(edges[::-1]), np.exp(edges)]),
            np.concatenate([-x[::-1], x]),
            np.concatenate([w[::-1], w]),
        )
    if target.support in (LINE, MANIFOLD):
        low, high = column.low, column.high
        if target.planar and target.support == MANIFOLD:
            # The circle is far wider than the law on it.
            (low, high), panels = column.axis, panels // 2
            low, high = low - (high - low) / 2, high + (high - low) / 2
        edges = np.linspace(low, high, panels + 1)
        return edges, *rule(edges[:-1], edges[1:], 1)
    edges = np.linspace(np.log(column.low), np.log(column.high), panels + 1)
    u, w = rule(edges[:-1], edges[1:], 1)
    return np.exp(edges), np.exp(u), w * np.exp(u)


def mass_error(target: Target, columns: tuple[Column, ...], scale: float = 1.0) -> float:
    """The mass of the density in each of many slices against the difference of the CDF there, over 2e-8."""
    n = len(target.columns)
    panels = 2000 if n == 1 else 96 if target.key == "banana" else 64
    axes = [edges_and_rule(target, i, panels) for i in range(n)]
    grid = np.stack(np.meshgrid(*(x.ravel() for _, x, _ in axes), indexing="ij"), axis=-1)
    with np.errstate(over="ignore", under="ignore"):
        density = scale * np.exp(target.log_column_density(grid))
    worst = 0.0
    for i, (edges, _, weights) in enumerate(axes):
        if n == 2:
            _, _, other = axes[1 - i]
            marginal = density @ other.ravel() if i == 0 else other.ravel() @ density
        else:
            marginal = density
        masses = (marginal.reshape(weights.shape) * weights).sum(axis=1)
        expected = np.diff(columns[i].cdf(edges))
        if len(expected) > len(masses):  # the funnel's gap around 0
            expected = np.delete(expected, len(masses) // 2)
        worst = max(worst, float(np.abs(masses - expected).max()), abs(float(masses.sum() - expected.sum())))
    return worst / 2e-8


low_dimensional = pytest.mark.parametrize(
    "case", [x for x in CASES if make(x).support != SIMPLEX and len(make(x).columns) <= 2], ids=name_of
)
low_dimensional_defaults = pytest.mark.parametrize(
    "case", [x for x in DEFAULTS if make(x).support != SIMPLEX and len(make(x).columns) <= 2], ids=name_of
)


@pytest.mark.slow
@low_dimensional
def test_cdf_is_the_integral_of_the_density(case: Case):
    target = make(case)
    assert mass_error(target, target.columns) <= 1
    for column in target.columns:
        inside = np.diff(column.cdf(np.array([column.low, column.high])))[0]
        # Of the funnel's heavy tail, and of the smallest gammas, part lies outside by design.
        lost = 5e-4 if case[0] == "funnel" else float(column.cdf(np.array(TINY * 1.01))) if column.log else 0.0
        assert inside > 1 - lost - 2e-6


@low_dimensional_defaults
def test_fault_density_not_normalised(case: Case):
    target = make(case)
    assert mass_error(target, target.columns, scale=1 + 1e-6) > 1


@low_dimensional_defaults
def test_fault_cdf_shifted(case: Case):
    target = make(case)
    assert mass_error(target, tuple(shifted(column, 1e-4) for column in target.columns)) > 1


def shifted(column: Column, by: float) -> Column:
    """The column with its CDF moved by a share of its spread, or of the value on a log scale."""
    if column.log:
        return dataclasses.replace(column, cdf=lambda x: column.cdf(x * (1 + by)))
    return dataclasses.replace(column, cdf=lambda x: column.cdf(x + by * np.sqrt(column.variance)))


def test_dirichlet_density_integrates_to_one():
    target = make(("sparse_dirichlet", (("dimension", 2), ("alpha", 1.0), ("observed", (3, 2)))))
    u, w = (part.ravel() for part in rule(np.linspace(-40, 5, 61)[:-1], np.linspace(-40, 5, 61)[1:], 1))
    grid = np.exp(np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1))
    inside = np.exp(target.log_density(grid) + np.log(grid).sum(axis=-1))
    assert w @ inside @ w == pytest.approx(1, abs=1e-9)


@all_cases
def test_columns_are_sound(case: Case):
    target = make(case)
    assert len({column.name for column in target.columns}) == len(target.columns)
    for column in target.columns:
        low, high = column.axis
        assert 0 < column.high - column.low < np.inf
        assert column.low <= low < high <= column.high
        assert np.isfinite([column.mean, column.variance]).all()
        assert column.variance > 0
        if column.log:
            assert column.low >= TINY * 0.99
            assert 1 / column.low < np.inf
            edges = np.exp(np.linspace(np.log(column.low), np.log(column.high), 2049))
        else:
            edges = np.linspace(column.low, column.high, 2049)
        values = column.cdf(edges)
        assert values.shape == edges.shape
        assert (np.diff(edges) > 0).all()
        assert (np.diff(values) >= -1e-14).all()
        # With α = 0.005 a fifth of the odds lies below 1e-145, where components that underflow blur them.
        assert 0 <= values[0] < 0.2
        assert values[-1] > 0.8
        ends = column.cdf(np.array([0.0, np.inf] if column.log else [-np.inf, np.inf]))
        np.testing.assert_allclose(ends, [0, 1], atol=1e-12)


# Where the CDF can be trusted in both tails, mean and variance follow from it without a false alarm.
def moment_errors(column: Column, funnel: bool) -> tuple[float, float]:
    """Mean and variance from the CDF: their errors in standard deviations, and in shares of the variance."""
    sd = np.sqrt(column.variance)
    with np.errstate(over="ignore"):
        if column.log and column.mean < 3 * sd:
            # E θ = ∫ (1 − F) dx and E θ² = ∫ 2x(1 − F) dx, in u = log x.
            top = np.log(4 * column.high) if column.high > 10 * column.mean else 0.0
            edges = np.linspace(np.log(column.mean) - 40, max(top, np.log(column.high)), 161)
            u, w = (part.ravel() for part in rule(edges[:-1], edges[1:], 1))
            x = np.exp(u)
            above = 1 - column.cdf(x)
            mean = float((above * x * w).sum())
            return abs(mean - column.mean) / sd, abs(float((2 * above * x**2 * w).sum()) - mean**2 - sd**2) / sd**2
        # From the mean outwards, t = distance: E (θ − m)₊ = ∫ (1 − F(m + t)) dt, and so on.
        furthest = np.log(1e9) if funnel else np.log(2 * (column.high - column.low) / sd)
        # A law that ends in mid-slope, as a coordinate of a sphere does at 1, has kinks in its CDF there.
        ends = np.log(np.array([column.high - column.mean, column.mean - column.low]) / sd)
        edges = np.union1d(np.linspace(-20.0, furthest, 801), ends)
        u, w = (part.ravel() for part in rule(edges[:-1], edges[1:], 1))
        t = sd * np.exp(u)
        below = column.cdf(column.mean - t if not column.log else np.maximum(column.mean - t, 0.0))
        # The funnel is symmetric, and only its lower tail has digits far out.
        above = below if funnel else 1 - column.cdf(column.mean + t)
    mean = float(((above - below) * t * w).sum())
    return abs(mean) / sd, abs(float((2 * (above + below) * t * t * w).sum()) - sd**2) / sd**2


def tolerance(case: Case) -> float:
    # Beyond 8.2 standard deviations, where 1 − F ends in rounding, lie 1e-5 of the variance of LogNormal(5, 2²).
    # A share of 1 − 5e-9 has few digits left for its spread; its odds are tested with the draws.
    return 1e-4 if ("sigma", 2.0) in case[1] else 1e-3 if ("observed", (1_000_000,)) in case[1] else 2e-6


def checked(items: range) -> list[int]:
    """The first and the last four of many that are alike."""
    return sorted({*items[:4], *items[-4:]})


@all_cases
def test_mean_and_variance_follow_from_the_cdf(case: Case):
    target = make(case)
    for k in checked(range(target.n_values)):
        errors = moment_errors(target.columns[k], funnel=case[0] == "funnel" and k == 1)
        assert max(errors) <= tolerance(case), target.columns[k].name


@default_cases
@pytest.mark.parametrize("fault", ["mean", "variance"])
def test_fault_wrong_exact_answer(case: Case, fault: str):
    column = make(case).columns[0 if make(case).support == SIMPLEX else -1]
    sd = np.sqrt(column.variance)
    wrong = {"mean": column.mean + 1e-4 * sd} if fault == "mean" else {"variance": column.variance * (1 + 1e-4)}
    errors = moment_errors(dataclasses.replace(column, **wrong), funnel=case[0] == "funnel")
    assert max(errors) > 2e-6


# ---------------------------------------------------------------- draws

# E θ of LogNormal(5, 2²) has skewness 414: an average of 10⁵ is far from Gaussian. Its logarithm's moments are tested.
NOT_GAUSSIAN = {(("lognormal", (("mu", 5.0), ("sigma", 2.0))), "E θ")}


def columns_to_test(target: Target) -> list[int]:
    groups = checked(range(target.n_values)) + checked(range(target.n_values, len(target.columns)))
    return sorted(set(groups))


def moments_to_test(case: Case) -> list[Moment]:
    moments = make(case).moments
    return [moments[k] for k in checked(range(len(moments))) if (case, moments[k].name) not in NOT_GAUSSIAN]


def number_of_tests() -> int:
    return sum(len(columns_to_test(make(case))) + len(moments_to_test(case)) for case in CASES)


def ks_error(columns: list[Column], values: Array) -> float:
    """The largest KS statistic over its threshold x, P(D > x) ≤ 2 exp(−2 n x²) = false-alarm rate of one test.

    That is the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart. F is compared at every 50th draw, which can
    only lower D, and inside the histogram's range but not next to 1, which leaves out the draws that underflowed to 0
    and the shares that rounded to 1. (Only the odds, which are tested too, resolve those.)
    """
    n = len(values)
    threshold = np.sqrt(np.log(2 * number_of_tests() / FALSE_ALARM) / (2 * n))
    worst = 0.0
    for k, column in enumerate(columns):
        ranks = np.arange(50, n, 50)
        x = np.sort(values[:, k])[ranks - 1]
        inside = (x > column.low) & (x < column.high) & (np.abs(x - 1) > 1e-12)
        exact = column.cdf(x[inside])
        worst = max(worst, float(np.maximum(ranks[inside] / n - exact, exact - (ranks[inside] - 1) / n).max()))
    return worst / threshold


def moment_error(moments: list[Moment], values: Array) -> float:
    """The largest |z| of the averages over the normal quantile z(1 − α/2), α = false-alarm rate of one test.

    The standard error is that of the draws. Averages of skewed values are not yet Gaussian that far out: Hall's
    cubic (1992), T = w + γw²/3 + γ²w³/27 + γ/(6n) with w = (mean − exact)/sd and the skewness γ, removes the skew,
    and z = √n T.
    """
    threshold = special.ndtri(1 - FALSE_ALARM / number_of_tests() / 2)
    worst = 0.0
    for moment in moments:
        x = moment.function(values)
        n, sd = len(x), x.std()
        error = (x.mean() - moment.exact) / sd
        skew = float((((x - x.mean()) / sd) ** 3).mean())
        z = np.sqrt(n) * (error + skew * error**2 / 3 + skew**2 * error**3 / 27 + skew / (6 * n))
        worst = max(worst, abs(z))
    return worst / float(threshold)


def columns_and_values(case: Case, theta_values: Array) -> tuple[list[Column], Array]:
    target = make(case)
    k = columns_to_test(target)
    return [target.columns[i] for i in k], theta_values[:, k]


@pytest.mark.slow
@all_cases
def test_draws_follow_the_cdf_and_the_moments(case: Case):
    """10⁵ draws: KS of each column and z of each moment. All cases together raise a false alarm once in 1000 seeds.

    With N tests over all cases each has the rate α = 0.001/N: KS threshold √(log(2/α)/2n), z threshold Φ⁻¹(1 − α/2).
    """
    theta, values = draws(case)
    assert np.isfinite(theta).all()
    assert not np.isnan(values).any()
    assert ks_error(*columns_and_values(case, values)) <= 1
    assert moment_error(moments_to_test(case), values) <= 1


@default_cases
def test_fault_cdf_shifted_by_a_twentieth(case: Case):
    columns, values = columns_and_values(case, draws(case)[1])
    by = 0.05 if not columns[0].log else 0.5 if make(case).dim == 1 else 0.05
    assert ks_error([shifted(column, by) for column in columns], values) > 1


@default_cases
def test_fault_draws_too_wide(case: Case):
    """Draws with a standard deviation 3 % too large, from a Dirichlet with 6 % fewer data, or with a smaller κ."""
    target = make(case)
    if target.support == SIMPLEX:
        fewer = {"observed": (752, 94, 94)} if "observed" in dict(declared(type(target))) else {"items": 940}
        values = draws((case[0], tuple(fewer.items())))[1]
    elif target.support == MANIFOLD:
        less = {k: 0.8 * getattr(target, k) for k, _ in declared(type(target)) if k.startswith("concentration")}
        values = draws((case[0], tuple(less.items())))[1]
    else:
        theta = draws(case)[0]
        values = target.values(1.03 * theta)
    assert moment_error(moments_to_test(case), values) > 1


@pytest.mark.parametrize("case", [x for x in DEFAULTS if make(x).planar and make(x).support != SIMPLEX], ids=name_of)
def test_fault_draws_not_dependent(case: Case):
    """The right marginals, with a coordinate from other draws: only a joint moment can tell.

    The funnel, the quartic, the banana, the ring and the correlated Gaussian each have one.
    """
    values = draws(case)[1].copy()
    values[:, 1] = np.roll(values[:, 1], 1)
    cross = [m for m in moments_to_test(case) if "Cov" in m.name or "|θ|" in m.name]
    assert cross
    if case[0] != "gaussian_mixture":  # four modes of one weight are uncorrelated, though not independent
        assert moment_error(cross, values) > 1


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
    """PAPERS.md section 2: sparse Dirichlet, median ω₅ = 6.5e-7."""
    column = make(("sparse_dirichlet", ())).columns[4]
    assert column.cdf(np.array(6.5e-7)) == pytest.approx(0.5, abs=0.005)


# ---------------------------------------------------------------- Dirichlet at the ends


@pytest.mark.parametrize(("a", "b"), [(0.005, 0.005), (0.005, 1e6), (0.1, 1000.0), (1e6, 0.005), (0.005, 0.495)])
def test_odds_have_accurate_tails(a: float, b: float):
    """Both tails of BetaPrime(a, b) against x^a/(a B(a, b)) and its mirror image, to the series' next term."""
    from samplers.targets.dirichlet import _odds

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
        spec = importlib.util.find_spec(f"samplers.targets.{module.name}")
        with open(spec.origin, encoding="utf-8") as file:
            assert ast.get_docstring(ast.parse(file.read())), module.name
