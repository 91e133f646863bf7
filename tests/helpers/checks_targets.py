"""The checks that every target has to pass, of one target; ``test_targets`` runs them over the registry.

A measure is a function that returns its worst error over its tolerance, so that at most 1 passes. The same function
must return more than 1 for each planted fault.
"""

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Flag, Option, declared
from sgmcmc_lab.samplers.requirements import ENERGIES
from sgmcmc_lab.samplers.targets import TARGETS, Target
from sgmcmc_lab.samplers.targets.base import LINE, MANIFOLD, SIMPLEX, Array, Column, Moment, no_data
from sgmcmc_lab.samplers.targets.quadrature import rule
from sgmcmc_lab.samplers.targets.ranges import TINY

Case = tuple[str, tuple[tuple[str, Any], ...]]
"""A target's key and its parameters."""


def cases_of(key: str) -> list[Case]:
    """The defaults, where no long run is needed for them, and the settings that the target declares."""
    return [
        *([(key, ())] if TARGETS[key].exact_law else []),
        *((key, tuple(values.items())) for values in getattr(TARGETS[key], "tried_at", ())),
    ]


CASES = [case for key in TARGETS for case in cases_of(key)]

SEED = 20
N_DRAWS = 100_000
FALSE_ALARM = 1e-3


@lru_cache
def make(case: Case) -> Target:
    return TARGETS[case[0]](**dict(case[1]))


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


def potential_at(target: Target, theta: Array, params: Array | None = None) -> Array:
    jit.prepare([target.potential])
    out = np.empty(len(theta))
    target.potential(np.ascontiguousarray(theta), out, target.packed() if params is None else params)
    return out


# ---------------------------------------------------------------- what a target says


def missing(cls: type[Target]) -> list[str]:
    """The missing declarations of a target's class, as sentences."""
    needed = ["tried_at", "drawn_at", "textbook_draw"] + ["textbook_slope"] * (cls.batch is not no_data)
    needed += ["textbook_energy"] * (ENERGIES in cls.provides)
    out = [f"{cls.__name__} declares no {name}" for name in needed if not hasattr(cls, name)]
    if len(getattr(cls, "tried_at", (0, 0))) < (2 if list(declared(cls)) else 0):
        out.append(f"{cls.__name__} declares fewer than two settings in tried_at")
    return out


def check_words(cls: type[Target]) -> None:
    """The texts and bounds for a card and a slider."""
    assert cls.title
    assert "U(\\theta)" in cls().tex
    assert cls.source
    assert cls.__doc__
    for name, parameter in declared(cls):
        assert parameter.label, name
        assert parameter.doc.endswith("."), name
        # A choice among names has no symbol.
        assert isinstance(parameter, (Flag, Option)) or parameter.tex, name


def check_functions(cls: type[Target]) -> None:
    """The compiled functions are in the target's own file, its family's, or one that is named after these."""
    for what in ("potential", "gradient", "draw"):
        module = getattr(cls, what).py_func.__module__
        assert any(module == base.__module__ or module.startswith(base.__module__ + "_") for base in cls.__mro__), (
            cls.key,
            what,
        )


def check_packed(case: Case) -> None:
    """The packed parameters are contiguous doubles; without those of the draws, U and its gradient are the same."""
    target = make(case)
    packed, alone = target.packed(), target.without_draws()
    theta = np.ascontiguousarray(target.starts())
    slopes = [np.empty_like(theta), np.empty_like(theta)]
    jit.prepare([target.gradient])
    for params, out in zip((packed, alone), slopes, strict=True):
        target.gradient(theta, out, params.copy())
    assert np.array_equal(*slopes)
    assert np.array_equal(potential_at(target, theta), potential_at(target, theta, alone))
    assert packed.dtype == np.float64
    assert packed.flags.c_contiguous
    assert np.isfinite(packed).all()


def check_start(case: Case) -> None:
    """Every start is a point of the support; the first one is the only one that clicks and views know."""
    target = make(case)
    starts = target.starts()
    assert starts.shape == (len(starts), target.dim)
    assert starts.dtype == np.float64
    np.testing.assert_array_equal(starts[0], target.start())
    assert np.isfinite(target.log_density(starts)).all()
    assert np.isfinite(target.gradient_at(starts)).all()
    assert target.support in (LINE, MANIFOLD) or (starts > 0).all()
    assert target.manifold.ambient == target.dim
    for start in starts:
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


def check_potential(case: Case) -> None:
    """The energy is minus the log density."""
    target = make(case)
    assert potential_error(target, lambda theta: potential_at(target, theta)) <= 1, "U is not −log_density"


def scale_of(target: Target, theta: Array, i: int) -> Array:
    """The spread of a column, a tenth of a unit vector, or θ_i itself, (n,)."""
    if target.support == MANIFOLD:
        return np.full(len(theta), 0.1)
    if target.support == LINE and not target.of_coordinates:
        return np.full(len(theta), 0.3)
    return np.full(len(theta), np.sqrt(target.columns[i].variance)) if target.support == LINE else np.abs(theta[:, i])


@lru_cache(maxsize=8)
def differences(target: Target, i: int) -> Array:
    """∂H/∂θ_i by fourth-order central differences, with the step that agrees best with its neighbour, at 40 draws."""
    theta = few_draws(target, 40)
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
        worst = max(worst, float((np.abs(exact[:, i] - differences(target, i)) / (1e-6 * size)).max()))
    return worst


def energies_at(target: Target, theta: Array) -> Array:
    """The gradients at θ (dim,) with each data point in place of all, and behind each its energy, (N, dim + 1)."""
    jit.prepare([target.batch])
    out = np.empty((len(target.data()), target.dim + 1))
    target.batch(theta[None].copy(), np.arange(len(out)), out, target.packed())
    return out


def energies_error(target: Target, energies: Callable[[Array], Array]) -> float:
    """How far the data's energies are from U in the mean, from their gradients in differences, and from plain Python in
    their changes, over tolerances of 1e-10, 1e-6 and 1e-10 of their size."""
    theta, worst = few_draws(target, 4), 0.0
    exact, first = potential_at(target, theta), energies(theta[0])
    data = range(0, len(first), max(1, len(first) // 20))
    textbook = np.array([[target.textbook_energy(x, k) for k in data] for x in theta])
    for n, x in enumerate(theta):
        here = energies(x)
        assert np.array_equal(here[:, :-1], target.slopes_at(x))
        size = np.abs(here[:, -1]).max() + np.abs(first[:, -1]).max()
        moved = here[:, -1] - first[:, -1]
        worst = max(worst, abs(moved.mean() - (exact[n] - exact[0])) / (1e-10 * size))
        worst = max(worst, float(np.abs(moved[data] - (textbook[n] - textbook[0])).max()) / (1e-10 * size))
        for i in range(target.dim):
            h = 1e-4 * np.sqrt(target.columns[i].variance) * (np.arange(target.dim) == i)
            slope = (energies(x + h) - energies(x - h))[:, -1] / (2 * h[i])
            worst = max(worst, float(np.abs(slope - here[:, i]).max()) / (1e-6 * (np.abs(here[:, i]).max() + size)))
    return worst


def check_gradient(case: Case) -> None:
    """The gradient is the derivative of the energy."""
    target = make(case)
    assert gradient_error(target, target.gradient_at) <= 1, "the gradient is not that of U"


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


@lru_cache(maxsize=2)
def densities(target: Target) -> tuple[list[tuple[Array, Array, Array]], Array]:
    """The edges, points and weights of each column, and the density at all points."""
    n = len(target.columns)
    panels = 2000 if n == 1 else 96 if target.key == "banana" else 64
    axes = [edges_and_rule(target, i, panels) for i in range(n)]
    grid = np.stack(np.meshgrid(*(x.ravel() for _, x, _ in axes), indexing="ij"), axis=-1)
    with np.errstate(over="ignore", under="ignore"):
        return axes, np.exp(target.log_column_density(grid))


def mass_error(target: Target, columns: tuple[Column, ...], scale: float = 1.0) -> float:
    """The mass of the density in each of many slices against the difference of the CDF there, over 2e-8."""
    axes, density = densities(target)
    worst = 0.0
    for i, (edges, _, weights) in enumerate(axes):
        if len(axes) == 2:
            _, _, other = axes[1 - i]
            marginal = density @ other.ravel() if i == 0 else other.ravel() @ density
        else:
            marginal = density
        masses = scale * (marginal.reshape(weights.shape) * weights).sum(axis=1)
        expected = np.diff(columns[i].cdf(edges))
        if len(expected) > len(masses):  # the funnel's gap around 0
            expected = np.delete(expected, len(masses) // 2)
        worst = max(worst, float(np.abs(masses - expected).max()), abs(float(masses.sum() - expected.sum())))
    return worst / 2e-8


def low_dimensional(case: Case) -> bool:
    """Whether the density can be integrated over all columns, and its integral is what the columns say."""
    target = make(case)
    return target.exact_law and target.support != SIMPLEX and (target.n_columns == 1 or target.planar)


def check_cdf(case: Case) -> None:
    """The CDF is the integral of the density."""
    target = make(case)
    assert mass_error(target, target.columns) <= 1, (
        "the CDFs are not the integrals of log_density to 2e-8; with an edge across both axes quadrature is less exact"
    )
    for column in target.columns:
        inside = np.diff(column.cdf(np.array([column.low, column.high])))[0]
        # Of the funnel's heavy tail, and of the smallest gammas, part lies outside by design.
        lost = 5e-4 if case[0] == "funnel" else float(column.cdf(np.array(TINY * 1.01))) if column.log else 0.0
        assert inside > 1 - lost - 2e-6


def shifted(column: Column, by: float) -> Column:
    """The column with its CDF moved by a share of its spread, or of the value on a log scale."""
    if column.log:
        return dataclasses.replace(column, cdf=lambda x: column.cdf(x * (1 + by)))
    return dataclasses.replace(column, cdf=lambda x: column.cdf(x + by * np.sqrt(column.variance)))


def check_columns(case: Case) -> None:
    """The columns are sound."""
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


def check_moments(case: Case) -> None:
    """Mean and variance follow from the CDF."""
    target = make(case)
    for k in checked(range(target.n_values)):
        errors = moment_errors(target.columns[k], funnel=case[0] == "funnel" and k == 1)
        assert max(errors) <= tolerance(case), target.columns[k].name


# ---------------------------------------------------------------- draws

# E θ of LogNormal(5, 2²) has skewness 414: an average of 10⁵ is far from Gaussian. Its logarithm's moments are tested.
NOT_GAUSSIAN = {(("lognormal", (("mu", 5.0), ("sigma", 2.0))), "E θ")}


def columns_to_test(target: Target) -> list[int]:
    groups = checked(range(target.n_values)) + checked(range(target.n_values, len(target.columns)))
    return sorted(set(groups))


def moments_to_test(case: Case) -> list[Moment]:
    moments = make(case).moments
    return [moments[k] for k in checked(range(len(moments))) if (case, moments[k].name) not in NOT_GAUSSIAN]


@lru_cache
def number_of_tests() -> int:
    # Inexact answers are not tested: to count its columns each process would find its law.
    exact = [case for case in CASES if make(case).exact_law]
    others = sum(
        len(checked(range(n)))
        for case in CASES
        if not make(case).exact_law
        for n in (make(case).dim, 2 * make(case).dim)
    )
    return others + sum(len(columns_to_test(make(case))) + len(moments_to_test(case)) for case in exact)


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


def check_draws(case: Case) -> None:
    """10⁵ draws: KS of each column and z of each moment. All cases together raise a false alarm once in 1000 seeds.

    With N tests over all cases each has the rate α = 0.001/N: KS threshold √(log(2/α)/2n), z threshold Φ⁻¹(1 − α/2).
    """
    theta, values = draws(case)
    assert np.isfinite(theta).all()
    assert not np.isnan(values).any()
    assert ks_error(*columns_and_values(case, values)) <= 1, "the exact draws do not have the CDFs"
    assert moment_error(moments_to_test(case), values) <= 1, "the exact draws do not have the moments"


def draw_error(target: Target, draw: Callable[[Generator], Any], n: int = 60) -> float:
    """How far a compiled draw is from that in plain Python, at most."""
    rng = Generator(SFC64(17))
    return float(np.abs(target.sample(17, n) - np.array([draw(rng) for _ in range(n)])).max())


def check_textbook_draw(key: str) -> None:
    """The compiled draws are their formula, number for number."""
    target = TARGETS[key](**TARGETS[key].drawn_at)
    assert draw_error(target, target.textbook_draw) < 1e-9, "textbook_draw is not draw, on the same random numbers"
    # Planted fault: half a per cent.
    assert draw_error(target, lambda rng: 1.005 * np.array(target.textbook_draw(rng))) > 1e-4


def check_target(key: str) -> None:
    """All of it, of one target."""
    check_words(TARGETS[key])
    check_functions(TARGETS[key])
    for case in cases_of(key):
        for check in (
            check_packed,
            check_start,
            check_potential,
            check_gradient,
            check_columns,
            check_moments,
            check_draws,
        ):
            check(case)
        if low_dimensional(case):
            check_cdf(case)
    check_textbook_draw(key)
