"""From a drift to its Q: Theorem 2 of Ma, Chen & Fox (2015), made into a search.

Theorem 2: a process dz = f dt + √(2D) dW that leaves e^{−H} invariant, and decays, is a recipe. With
Γ^D_i = Σ_j ∂_j D_ij, what is left of its drift, g = f + D∇H − Γ^D, is then written by a skew-symmetric Q:

    g_i e^{−H} = Σ_j ∂_j (Q_ij e^{−H}),   that is   g_i = Σ_j (∂_j Q_ij − Q_ij ∂_j H),

and for that ∇·(g e^{−H}) must be 0, which is the residual of the Fokker–Planck equation. In one dimension Q is 0, so
g must be. In two, ψ = Q₁₂ e^{−H} is the stream function of g e^{−H}: ∂₂ψ = g₁ e^{−H}, ∂₁ψ = −g₂ e^{−H}, and there is
exactly one that vanishes far out. In more dimensions there are many, and the one with the fewest and smallest terms is
taken.

The equations are linear in Q whatever H is. So a Q that is a sum of given functions is found by linear algebra,
and then put into the recipe, whose own drift must be the one that was given.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from operator import mul

import numpy as np
from scipy.optimize import linprog

from sgmcmc_lab.samplers import expressions
from sgmcmc_lab.samplers.expressions import ONE, ZERO, Array, Expression, constant, work_limit
from sgmcmc_lab.samplers.expressions.nodes import Kind
from sgmcmc_lab.samplers.expressions.values import is_whole
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.recipe.flow import Flow, on_points, shown
from sgmcmc_lab.samplers.recipe.recipe import ENERGY, GRID, RECIPE_WORK, Recipe
from sgmcmc_lab.samplers.targets.base import Target

DEGREE = 4
"""The largest degree of a polynomial in Q."""
UNKNOWNS = 220
"""Coefficients that are looked for: with three coordinates the degree goes to 4, with five to 2."""
OTHERS = 4
"""Factors of the drift that are no polynomials, which polynomials are multiplied by."""
ROUNDING = 1e-8
"""A residual below this share of its terms is rounding: they are sums of some hundred numbers, solved for once."""
SHORT = 1000
"""A coefficient that is a fraction with a denominator up to this, to ROUNDING, is taken for it."""


class NoCurlError(ValueError):
    """There is no Q, or none of those that were looked for; the sentence says which."""

    def __init__(self, sentence: str, invariant: bool):
        super().__init__(sentence)
        self.invariant = invariant
        """Whether the drift leaves e^{−H} invariant all the same, as far as is known."""


def rest(recipe: Recipe) -> tuple[Expression, ...]:
    """g = f + D∇H − Γ^D, the part of the drift that Q has to write."""
    n = len(recipe.layout.names)
    without = replace(recipe, curl=((ZERO,) * n,) * n, typed=())
    with work_limit(RECIPE_WORK):
        return tuple((f - due).expanded() for f, due in zip(recipe.drift, without.due, strict=True))


def find(recipe: Recipe, target: Target) -> Recipe:
    """The recipe that has this drift by its D and a Q, with nothing left out or typed by hand.

    Entries of Q are looked for among polynomials in z, and among these times what else stands in the drift, such as
    √|U|. Raises :class:`NoCurlError` where the drift does not leave e^{−H} invariant, and where none of these writes
    it.
    """
    names = recipe.layout.names
    n = len(names)
    if n > GRID:
        raise NoCurlError(f"Q is looked for with up to {GRID} coordinates of z; here there are {n}.", True)
    g = rest(recipe)
    if all(entry.is_zero for entry in g):
        return _with(recipe, {})
    points = _points(recipe, target)
    values = np.array(on_points(recipe, target, g, points))
    slopes = np.array(on_points(recipe, target, recipe.gradient, points))
    if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
        raise NoCurlError("The drift or the slope of H is not a number at some points of what is shown.", True)
    known = True
    try:
        worst = stray(recipe, target, g, points)
    except SpecError:
        # The second derivatives of a compiled energy: whether there is a Q only a Q can tell.
        worst, known = 0.0, False
    if worst > ROUNDING:
        why = "in one dimension Q is 0, and f must be −D H′ + D′" if n == 1 else "∇·(g e⁻ᴴ) is not 0"
        raise NoCurlError(f"This drift with this D does not leave e⁻ᴴ invariant: {why}.", False)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    others = _others(recipe, g)
    tried = 0
    for degree, factors in product(range(DEGREE + 1), ((ONE,), (ONE, *others))):
        basis = [monomial * other for monomial in _monomials(names, degree) for other in factors]
        unknowns = len(pairs) * len(basis)
        if unknowns > UNKNOWNS:
            continue
        tried = degree
        # Twice as many equations as unknowns.
        few = slice(0, 2 * unknowns // n + 2)
        columns = _columns(recipe, target, pairs, basis, [z[few] for z in points], slopes[:, few])
        found = _solved(columns, values[:, few].ravel())
        if found is None:
            continue
        entries = {
            pair: _combination(basis, own) for pair, own in zip(pairs, found.reshape(len(pairs), -1), strict=True)
        }
        out = _with(recipe, entries)
        if _same(out, recipe, target, points):
            return out
    there_is = "This drift leaves e⁻ᴴ invariant, so there is a Q" if known else "No Q was found"
    raise NoCurlError(
        f"{there_is}; it is no polynomial of degree {tried} or less, nor one times what stands in the drift.", True
    )


def stray(recipe: Recipe, target: Target, g: Sequence[Expression], points: Sequence[Array]) -> float:
    """The largest share that Σ (g_i H_i − ∂_i g_i), which must be 0, has of its terms at these points.

    In one dimension g itself must be 0, and the share is 1 where it is not.
    """
    names = recipe.layout.names
    if len(names) == 1:
        return float(not g[0].is_zero and np.abs(on_points(recipe, target, g, points)[0]).max() > ROUNDING)
    with work_limit(RECIPE_WORK):
        terms = [entry * slope for entry, slope in zip(g, recipe.gradient, strict=True)]
        terms += [-recipe.slope(entry, label) for entry, label in zip(g, names, strict=True)]
    at = np.array(on_points(recipe, target, terms, points))
    size = np.abs(at).sum(axis=0)
    return float((np.abs(at.sum(axis=0)) / np.where(size > 0, size, 1.0)).max())


def stream(flow: Flow) -> Array:
    """Q₁₂ on the cells of a process with two coordinates that leaves e^{−H} invariant, by quadrature.

    Q₁₂ = e^{H} ∫ g₁ e^{−H} dz₂ along each column of cells, from below in its lower half and from above in its upper
    one, so that e^{H} enlarges no error; O(h²) in the cells' side h.
    """
    recipe, grid = flow.recipe, flow.grid
    energy = grid.evaluate(flow.field(recipe.hamiltonian))
    g = grid.evaluate(flow.field(rest(recipe)[0]))
    h = grid.steps[1]

    def upward(energy: Array, g: Array) -> Array:
        out = np.zeros_like(g)
        for k in range(1, g.shape[1]):
            # The trapezium between two cells, at the weight of the later one.
            fall = np.exp(np.clip(energy[:, k] - energy[:, k - 1], -700, 50))
            out[:, k] = fall * (out[:, k - 1] + h / 2 * g[:, k - 1]) + h / 2 * g[:, k]
        return out

    below = upward(energy, g)
    above = -upward(energy[:, ::-1], g[:, ::-1])[:, ::-1]
    mass = np.cumsum(np.exp(-(energy - energy.min(axis=1, keepdims=True))), axis=1)
    return np.where(mass < mass[:, -1:] / 2, below, above)


def _with(recipe: Recipe, entries: dict[tuple[int, int], Expression]) -> Recipe:
    """The recipe with these entries of Q, all of its drift by D and Q."""
    n = len(recipe.layout.names)
    curl = [[ZERO] * n for _ in range(n)]
    for (i, j), entry in entries.items():
        curl[i][j], curl[j][i] = entry, -entry
    kept = tuple((what, text) for what, text in recipe.typed if what.startswith(("recipe.D", "recipe.U")))
    return replace(
        recipe, curl=tuple(map(tuple, curl)), gamma_dropped=False, dissipation_dropped=False, edited=(), typed=kept
    )


def _points(recipe: Recipe, target: Target) -> list[Array]:
    """Points in general position within what is shown of z, the same ones each time."""
    draws = np.random.default_rng(1).random((len(recipe.layout.names), 3 * UNKNOWNS))
    return [low + (high - low) * u for (low, high), u in zip(shown(recipe, target), draws, strict=True)]


def _monomials(names: Sequence[str], degree: int) -> list[Expression]:
    """All products of up to so many names, 1 among them."""
    return [
        reduce(mul, map(expressions.name, chosen), ONE)
        for total in range(degree + 1)
        for chosen in combinations_with_replacement(names, total)
    ]


def _others(recipe: Recipe, g: Sequence[Expression]) -> list[Expression]:
    """The factors of g's terms that are no whole powers of names, the shortest ones, each once."""
    found: dict[Expression, None] = {}
    for entry in g:
        for term in [part for _, part in entry.parts] if entry.kind == Kind.SUM else [entry]:
            factors = term.parts if term.kind == Kind.PRODUCT else ((1.0, term),)
            kept = [b**e for e, b in factors if not (b.kind == Kind.NAME and e >= 0 and is_whole(e))]
            found[reduce(mul, kept, ONE)] = None
    # ∂U/∂θ in a factor would need U″.
    typed = {*recipe.layout.names, ENERGY}
    fit = [other for other in found if other.constant is None and other.names <= typed]
    return sorted(fit, key=lambda other: other.size)[:OTHERS]


def _columns(
    recipe: Recipe,
    target: Target,
    pairs: Sequence[tuple[int, int]],
    basis: Sequence[Expression],
    points: Sequence[Array],
    slopes: Array,
) -> Array:
    """The contribution of each basis function in each entry of Q to g at the points: ∂_jφ − φ H_j in row i, its
    negative in j.
    """
    names = recipe.layout.names
    with work_limit(RECIPE_WORK):
        derivatives = [recipe.slope(phi, label) for phi in basis for label in names]
    phis = np.array(on_points(recipe, target, basis, points))
    d = np.array(on_points(recipe, target, derivatives, points)).reshape(len(basis), len(names), -1)
    columns = np.zeros((len(pairs), *d.shape))
    for p, (i, j) in enumerate(pairs):
        columns[p, :, i] = d[:, j] - phis * slopes[j]
        columns[p, :, j] = phis * slopes[i] - d[:, i]
    # An expression that is not a number somewhere is no entry.
    flat = columns.reshape(len(pairs) * len(basis), -1)
    flat[~np.isfinite(flat).all(axis=1)] = 0.0
    return flat.T


def _solved(columns: Array, values: Array) -> Array | None:
    """The solution with the least sum of absolute coefficients, None where there is none."""
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0] = 1.0
    scaled = columns / scale
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    rank = int((s > 1e-10 * s[0]).sum())
    within = u[:, :rank].T @ values
    if np.abs(values - u[:, :rank] @ within).max() > ROUNDING * np.abs(values).max():
        return None
    least: Array = vt[:rank].T @ (within / s[:rank]) / scale
    if rank == len(s):
        return least
    equal = s[:rank, None] * vt[:rank] * scale
    m = len(s)
    found = linprog(np.ones(2 * m), A_eq=np.hstack((equal, -equal)), b_eq=within, bounds=(0, None))
    if found.status != 0:
        return least
    few = found.x[:m] - found.x[m:]
    kept = np.abs(few) > 1e-6 * np.abs(few).max()
    out = np.zeros(m)
    out[kept] = np.linalg.lstsq(columns[:, kept], values, rcond=None)[0]
    return out


def _combination(basis: Sequence[Expression], coefficients: Array) -> Expression:
    total: Expression = ZERO
    for phi, value in zip(basis, map(float, coefficients), strict=True):
        short = float(Fraction(value).limit_denominator(SHORT))
        near = abs(short - value) <= ROUNDING * max(1.0, abs(value))
        total = total + constant(short if near else float(f"{value:.12g}")) * phi
    return total


def _same(found: Recipe, recipe: Recipe, target: Target, points: Sequence[Array]) -> bool:
    """Whether what was found has the drift that was given: by its formulas, or to rounding."""
    apart = [(own - other).expanded() for own, other in zip(found.drift, recipe.drift, strict=True)]
    if all(entry.is_zero for entry in apart):
        return True
    off, size = (np.array(on_points(recipe, target, each, points)) for each in (apart, recipe.drift))
    return bool(np.abs(off).max() <= ROUNDING * np.abs(size).max())
