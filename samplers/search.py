"""The search of D and Q: the spectral gap per gradient, climbed over a family of recipes.

Ma, Chen & Fox (2015) propose new samplers by "exploring the space of D(z) and Q(z)". Here an optimiser explores it.

**The normalisation.** The gap itself has no maximum: cD and cQ have c times the gap, and the same chain with a step of
ε/c. So the gap is counted per gradient, of which a step takes one: gap · ε, with the *stable step* ε of D and Q. For
z ~ e^{−H} let a step lead to z'. Its second-order part in ε changes the energy by

    e(z) = 2 (E[H(z'_ε) | z] − 2 E[H(z'_{ε/2}) | z] + H(z)),

and the stable step has E|e| = d·TOLERANCE, d the dimension of θ. It is ε = 0.05 for D = 1 on the normal distribution,
since e = ε²θ²/2 there. The rule has no unit of time, sees the noise that depends on z, and is the same for every
recipe with a step of the same scheme. Noise of the gradient is not in it.

**The family.** D is a constant positive definite matrix times a positive function, Q a constant skew-symmetric matrix
times another, and each function is e^{c b(θ)} with the bounded b = 1/(1 + Σ((θ_i − m_i)/s_i)²), m and s the mean and
the standard deviation of θ. The logarithm of D's constant matrix is a symmetric matrix, so D cannot leave the positive
definite ones; the mean trace of D stays, as it only sets the unit of time. With a momentum and no D in θ's own block,
as in SGHMC, that block stays 0, and the mean of Q stays.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from sgmcmc_lab.samplers.choices import Choice, make_target
from sgmcmc_lab.samplers.diagnostics.autocorrelation import IntegratedTime, integrated_time
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.expressions import Array
from sgmcmc_lab.samplers.kernels.recipe import EULER, SEMI_IMPLICIT, parameters_of
from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.flow import Flow, on_points, shown
from sgmcmc_lab.samplers.recipe.recipe import THETA, Recipe
from sgmcmc_lab.samplers.targets.base import LINE, Target

TOLERANCE = 1 / 800
"""The second-order part of the change of the energy in a stable step, for each coordinate of θ."""
CURL, CONSTANT, VARYING = "curl", "constant", "varying"
FAMILIES = {CURL: "Q alone, constant", CONSTANT: "D and Q, constant", VARYING: "D(z) and Q(z)"}
"""The families, with their titles."""
CELLS, CELLS_LINE = 48, 400
"""Cells a side of the grid on which the search looks: on 48 × 48 the gaps of the presets are within .5 %."""
CELLS_END = 120
"""And on which the result is looked at again: where modes meet, as at an optimum, 48 × 48 cells are off by 10 %."""
MODES = 10
"""Eigenvalues next to zero that are looked at; the slowest of them has the gap."""
EVALUATIONS = 100
"""Recipes that each stage of a search tries, at most."""
LARGEST = 5.0
"""The largest logarithm of a ratio of entries, and the largest |c| of a function e^{cb}."""
MOST_CURL = 50.0
FIRST = 0.4
"""The first change of each coefficient."""
ENOUGH = 1e-4
"""The search ends where the simplex has become as small."""
DIGITS = 5
"""Significant digits of what is typed into D and Q; the search scores what is typed."""
_SIDE, _SIDE_OF_DATA = (401, 49, 25), (101, 31, 15)
"""Points a side for the stable step, by the number of coordinates; fewer where each costs all data."""
_NODES = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)]), np.array([1.0, 4.0, 1.0]) / 6
"""Gauss–Hermite's three points: exact for energies of degree up to 5."""
_SHARE = 1e-7
"""Points with a density below this share of the highest are left out."""
_FAILURES = (ValueError, RuntimeError, ArithmeticError)


class SearchError(ValueError):
    """Nothing can be searched, in a sentence."""


@dataclass(frozen=True)
class Score:
    """How fast a recipe mixes for its cost."""

    gap: float
    """The spectral gap, in units of the process's time."""
    step_size: float
    """The stable step, for one gradient."""

    @property
    def per_gradient(self) -> float:
        """The decay of the slowest mode in one step."""
        return self.gap * self.step_size


class Found(NamedTuple):
    """How far a search is."""

    recipe: Recipe
    """The best recipe so far."""
    score: Score
    tried: int
    """Recipes that were scored."""
    most: int
    """Recipes that the search scores at most."""
    improved: bool
    """Whether this one is better than the one before."""


def scheme_of(recipe: Recipe) -> str:
    """The scheme of a recipe's steps: semi-implicit where θ is moved by the momentum alone."""
    d, n = recipe.layout.dim, len(recipe.layout.names)
    own = any(not recipe.D[i][j].is_zero or not recipe.Q[i][k].is_zero for i in range(d) for j in range(n) for k in range(d))  # fmt: skip
    return EULER if own or recipe.layout.kind == THETA or recipe.edited else SEMI_IMPLICIT


def gap_of(modes: fokker_planck.Spectrum) -> float:
    """The spectral gap: the slowest decay of all modes, whether or not they rotate."""
    return float((-modes.values.real).min())


def stable_step(recipe: Recipe, target: Target, guess: float = 0.05) -> float:
    """The step size whose second-order part changes the energy by TOLERANCE for each coordinate of θ, in the mean.

    For up to three coordinates of z. Raises :class:`SearchError` where there is none.
    """
    defect = _Defect(recipe, target)
    step, wanted = guess, TOLERANCE * recipe.layout.dim
    for _ in range(40):
        with np.errstate(all="ignore"):
            ratio = defect.mean(step) / wanted
        ratio = ratio if np.isfinite(ratio) else 1e4
        factor = float(np.clip(ratio, 1e-4, 1e4)) ** -0.5
        step *= factor
        if abs(factor - 1) < 1e-6:
            return step
        if not 1e-9 < step < 1e9:
            break
    raise SearchError("There is no stable step: with it the energy must change, and by a finite amount.")


class _Defect:
    """The second-order part of a step's change of the energy, over e^{−H}."""

    def __init__(self, recipe: Recipe, target: Target):
        self.recipe, self.target = recipe, target
        n = len(recipe.layout.names)
        if n > len(_SIDE):
            raise SearchError(f"z has {n} coordinates; the stable step is found for up to {len(_SIDE)}.")
        side = (_SIDE_OF_DATA if len(target.data()) else _SIDE)[n - 1]
        axes = [np.linspace(low, high, side + 2)[1:-1] for low, high in shown(recipe, target)]
        points = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
        H = self._values([recipe.hamiltonian], points)[0]
        weight = np.exp(-(H - np.nanmin(H)))
        kept = np.nan_to_num(weight) > _SHARE
        self.z = np.array(points)[:, kept]
        self.H, self.weight = H[kept], weight[kept] / weight[kept].sum()
        self.first = recipe.layout.dim if scheme_of(recipe) == SEMI_IMPLICIT else 0
        self.noise = self._noise()

    def _values(self, expressions: Sequence[Any], points: Sequence[Array]) -> Array:
        return np.array([np.broadcast_to(v, points[0].shape) for v in on_points(self.recipe, self.target, expressions, points)])  # fmt: skip

    def _noise(self) -> list[tuple[float, Array]]:
        """Weights, and √(2D)·ξ at the points for each node ξ."""
        n = len(self.z)
        D = self._values([e for row in self.recipe.D for e in row], list(self.z)).reshape(n, n, -1).transpose(2, 0, 1)
        values, vectors = np.linalg.eigh(D)
        roots = (vectors * np.sqrt(2 * np.maximum(values, 0))[:, None, :]).transpose(1, 2, 0)
        rank = [k for k in range(n) if values[:, k].max() > 0]
        out = [(1.0, np.zeros_like(self.z))]
        for k in rank:
            out = [(w * v, z + x * roots[:, k]) for w, z in out for x, v in zip(*_NODES, strict=True)]
        return out

    def mean(self, step: float) -> float:
        """E|e| for this step size."""
        parts = 2 * (self._energy(step) - 2 * self._energy(step / 2) + self.H)
        return float((np.abs(parts) * self.weight).sum())

    def _energy(self, step: float) -> Array:
        """E[H(z') | z] at the points."""
        z, d = self.z.copy(), self.first
        if d:
            z[:d] += step * self._values(self.recipe.drift[:d], list(z))
        z[d:] = self.z[d:] + step * self._values(self.recipe.drift[d:], list(z))
        out = np.zeros_like(self.H)
        for weight, kick in self.noise:
            out += weight * self._values([self.recipe.hamiltonian], list(z + np.sqrt(step) * kick))[0]
        return out


def flow_of(recipe: Recipe, target: Target, cells: int = CELLS) -> Flow:
    """The recipe's process on the grid of the search."""
    return Flow(recipe, target, CELLS_LINE if len(recipe.layout.names) == 1 else cells)


def score(recipe: Recipe, target: Target, guess: float = 0.05, cells: int = CELLS) -> Score:
    """The gap and the stable step of a recipe. Raises ValueError, in a sentence, where it has none."""
    refuse(recipe, target)
    flow = flow_of(recipe, target, cells)
    modes = fokker_planck.spectrum(flow.matrix, flow.grid, flow.law, MODES, resolvent=flow.resolvent)
    gap = gap_of(modes)
    if not (np.isfinite(gap) and gap > 1e-9):
        raise SearchError("On the grid nothing decays: the gap is 0.")
    return Score(gap, stable_step(recipe, target, guess))


def refuse(recipe: Recipe, target: Target) -> None:
    """Raise :class:`SearchError` for a recipe whose gap is not found from a grid, or means nothing."""
    n = len(recipe.layout.names)
    if n > 2:
        raise SearchError(
            f"z has {n} coordinates. The gap is read from a grid, for two at most: θ₁ and θ₂, or θ and its momentum."
        )
    if target.support != LINE:
        raise SearchError(f"θ of {target.title} is bounded. D must vanish at the bound, and the family has no such D.")
    if recipe.refresh and recipe.layout.momenta:
        raise SearchError(f"The momentum is redrawn: the grid has no jumps. Set λ from {recipe.refresh:g} to 0.")
    if any(not (own - due).is_zero for own, due in zip(recipe.drift, recipe.due, strict=True)):
        raise SearchError(
            "The drift is not −(D + Q)∇H + Γ: a part is left out or typed by hand, and the gap is that of another density."
        )


# --- The family


@dataclass(frozen=True)
class Family:
    """Recipes with the same target and layout, by a few coefficients."""

    start: Recipe
    """The recipe that was typed."""
    target: Target
    kind: str = VARYING

    def __post_init__(self) -> None:
        if self.kind not in FAMILIES:
            raise SearchError(f"There is no family {self.kind}; there are: {', '.join(FAMILIES)}.")
        refuse(self.start, self.target)
        if self._n == 1 and self.kind == CURL:
            raise SearchError("With one coordinate Q is 0: there is no other to search.")
        if self._n == 1 and self.kind == CONSTANT:
            raise SearchError("With one coordinate a constant D only sets the unit of time: choose D(z) and Q(z).")

    @property
    def _n(self) -> int:
        return len(self.start.layout.names)

    @cached_property
    def _flow(self) -> Flow:
        return flow_of(self.start, self.target)

    @cached_property
    def _means(self) -> tuple[Array, Array]:
        """D and Q in the mean over e^{−H}: the constant matrices that the search begins with."""
        weight = self._flow.wanted * self._flow.grid.volume
        points = self._flow.grid.mesh()
        n = self._n
        flat = [entry for matrix in (self.start.D, self.start.Q) for row in matrix for entry in row]
        means = [float((value * weight).sum()) for value in on_points(self.start, self.target, flat, points)]
        D, Q = np.array(means).reshape(2, n, n)
        if not (np.isfinite(D).all() and np.isfinite(Q).all()):
            raise SearchError("D or Q is not finite on the grid.")
        return D, Q

    @property
    def hypoelliptic(self) -> bool:
        """Whether θ is moved by its momentum alone."""
        return self.start.layout.kind != THETA and not self._means[0][0, 0] > 0

    @cached_property
    def _bump(self) -> tuple[str, Array]:
        """The text of b, and its values on the grid."""
        grid, d = self._flow.grid, self.start.layout.dim
        weight = self._flow.wanted * grid.volume
        total, terms = np.zeros(grid.cells), []
        for label, x in zip(self.start.layout.thetas, grid.mesh()[:d], strict=True):
            mean = float((x * weight).sum())
            sd = float(np.sqrt(((x - mean) ** 2 * weight).sum()))
            mean = 0.0 if abs(mean) < 1e-3 * sd else float(f"{mean:.3g}")
            precision = float(f"{sd**-2:.3g}")
            centred = f"({label} {'-' if mean > 0 else '+'} {abs(mean):g})" if mean else label
            terms.append(f"{centred}^2" if precision == 1 else f"{precision:g}*{centred}^2")
            total += precision * (x - mean) ** 2
        return f"1/(1 + {' + '.join(terms)})", 1 / (1 + total)

    def _factor(self, c: float) -> tuple[float, str]:
        """The number and the rest of the text of a function e^{cb} of mean 1."""
        c = _rounded(c)
        if c == 0:
            return 1.0, ""
        text, values = self._bump
        mean = float((np.exp(c * values) * self._flow.wanted).sum() * self._flow.grid.volume)
        return 1 / mean, f"*exp({c:.10g}{text[1:]})"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The coefficients: D's ratio and correlation, Q's strength, and c of both functions."""
        constants = [] if self._n == 1 else ["ratio"] if self.hypoelliptic else ["D diagonal", "D off", "q"]
        if self.kind == CURL:
            return (constants[-1],)
        varying = ["c of D"] if self._n == 1 else ["c of D", "c of Q"]
        return (*constants, *(varying if self.kind == VARYING else []))

    @property
    def stages(self) -> list[tuple[str, ...]]:
        """The coefficients of each stage: three of constant matrices are searched before all, since a simplex of five
        needs more recipes to find as good ones.
        """
        constants = self.names[:3]
        return [constants, self.names] if len(self.names) > len(constants) else [self.names]

    def first(self) -> Array:
        """The coefficients of the constant matrices nearest to what was typed."""
        return np.array([self._known[label] for label in self.names])

    @cached_property
    def _known(self) -> dict[str, float]:
        D, Q = self._means
        out = {"c of D": 0.0, "c of Q": 0.0}
        if self._n == 1:
            return out
        if self.hypoelliptic:
            curl = abs(Q[1, 0]) or 1.0
            return out | {"ratio": float(np.log((D[1, 1] or curl) / curl))}
        values, vectors = np.linalg.eigh(D / np.trace(D) * 2)
        log = vectors @ np.diag(np.log(np.maximum(values, 1e-3))) @ vectors.T
        return out | {
            "D diagonal": float(log[0, 0] - log[1, 1]) / 2,
            "D off": float(log[0, 1]),
            "q": float(Q[0, 1] / (np.trace(D) / 2)),
        }

    def inside(self, x: Array) -> bool:
        """Whether these coefficients are allowed."""
        most = [MOST_CURL if label == "q" else LARGEST for label in self.names]
        return bool((np.abs(x) <= most).all())

    def recipe(self, x: Array) -> Recipe:
        """The recipe with these coefficients, as it is typed."""
        given = self._known | dict(zip(self.names, map(float, x), strict=True))
        D, Q = self.matrices(given)
        d_scale, d_text = self._factor(given["c of D"])
        q_scale, q_text = self._factor(given["c of Q"])
        n = self._n
        start = self.start
        return Recipe.from_text(
            start.layout,
            dict(start.typed).get("recipe.U", str(start.potential)),
            {f"{i + 1},{j + 1}": _text(D[i, j] * d_scale, d_text) for i in range(n) for j in range(i, n) if D[i, j]},
            {
                f"{i + 1},{j + 1}": _text(Q[i, j] * q_scale, q_text)
                for i in range(n)
                for j in range(i + 1, n)
                if Q[i, j]
            },
            friction=start.friction,
        )

    def matrices(self, given: dict[str, float]) -> tuple[Array, Array]:
        """The constant D, positive semidefinite with the trace that was typed, and the skew-symmetric Q."""
        D, Q = self._means
        if self._n == 1:
            return D, Q
        if self.hypoelliptic:
            curl = Q[1, 0] or 1.0
            if self.kind == CURL:
                curl = float(np.copysign((D[1, 1] or 1.0) * np.exp(-given["ratio"]), curl))
                return np.diag([0.0, D[1, 1] or 1.0]), _skew(-curl)
            return np.diag([0.0, abs(curl) * np.exp(given["ratio"])]), _skew(-curl)
        size = np.trace(D) / 2
        if self.kind == CURL:
            return D, _skew(given["q"] * size)
        a, b = given["D diagonal"], given["D off"]
        values, vectors = np.linalg.eigh(np.array([[a, b], [b, -a]]))
        made = (vectors * np.exp(values)) @ vectors.T
        return made * (2 * size / np.trace(made)), _skew(given["q"] * size)


def _skew(q: float) -> Array:
    return np.array([[0.0, q], [-q, 0.0]])


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _text(value: float, rest: str) -> str:
    return f"{_rounded(value):.10g}{rest}"


# --- The search


def climb(
    recipe: Recipe, target: Target, kind: str = VARYING, each: int = EVALUATIONS, seconds: float = np.inf
) -> Iterator[Found]:
    """The best recipe so far, after each one or two that are tried, by Nelder and Mead's simplex.

    It begins with the recipe itself, and never yields a worse one. ``each`` is the most recipes of a stage. Close the
    generator to end the search; after so many ``seconds`` it ends by itself. Raises :class:`SearchError` at the first
    one where there is nothing to search.
    """
    end = time.perf_counter() + seconds
    family = Family(recipe, target, kind)
    search = _Search(family, each)
    yield search.begin()
    x = family.first()
    for names in family.stages:
        free, size = [family.names.index(label) for label in names], FIRST
        while size > ENOUGH and search.tried < search.limit:
            simplex = np.tile(x[free], (len(free) + 1, 1))
            simplex[1:] += size * np.diag(np.maximum(1.0, np.abs(x[free])))
            while search.tried < search.limit:
                before = search.tried
                found = minimize(
                    lambda y, x=x, free=free: search(_with(x, free, y)),
                    simplex[0],
                    method="Nelder-Mead",
                    options={"initial_simplex": simplex, "maxiter": 2},
                )
                simplex, heights = found.final_simplex
                yield search.found()
                if time.perf_counter() > end:
                    return
                spread = np.abs(simplex - simplex[0]).max()
                if spread < ENOUGH or (search.tried == before and np.ptp(heights) < 1e-6):
                    break
            # Once more around the best, in case that the simplex has become flat.
            x, size = _with(x, free, simplex[0]), size / 4 if search.take_news() else 0.0
        search.limit = search.tried + each


def _with(x: Array, places: Sequence[int], values: Array) -> Array:
    out = np.array(x)
    out[list(places)] = values
    return out


class _Search:
    """The function that is minimised, which remembers its values and the best of them."""

    def __init__(self, family: Family, each: int):
        self.family, self.limit = family, each
        self.most = each * len(family.stages)
        self.tried = 0
        self._known: dict[tuple[float, ...], float] = {}
        self._best: tuple[Recipe, Score] | None = None
        self._yielded: Any = None
        self._last: Any = None
        self._why = ""

    def begin(self) -> Found:
        """The recipe that was typed; where it has no gap, such as with no friction, the first of the family."""
        try:
            self._take(self.family.start)
        except _FAILURES as error:
            self._why = str(error)
        self(self.family.first())
        if self._best is None:
            raise SearchError(self._why)
        return self.found()

    def __call__(self, x: Array) -> float:
        key = tuple(map(float, x))
        if key not in self._known:
            self._known[key] = self._value(np.asarray(x))
        return self._known[key]

    def _value(self, x: Array) -> float:
        if self.tried >= self.limit or not self.family.inside(x):
            return np.inf
        try:
            return -float(np.log(self._take(self.family.recipe(x)).per_gradient))
        except _FAILURES as error:
            self._why = str(error)
            return np.inf

    def _take(self, recipe: Recipe) -> Score:
        self.tried += 1
        guess = self._best[1].step_size if self._best else 0.05
        found = score(recipe, self.family.target, guess)
        if self._best is None or found.per_gradient > self._best[1].per_gradient:
            self._best = recipe, found
        return found

    def found(self) -> Found:
        """How far it is."""
        assert self._best is not None
        improved, self._yielded = self._best is not self._yielded, self._best
        return Found(*self._best, self.tried, self.most, improved)

    def take_news(self) -> bool:
        """Whether it has become better since this was last asked."""
        news, self._last = self._best is not self._last, self._best
        return news


def improve(
    recipe: Recipe, target: Target, kind: str = VARYING, each: int = EVALUATIONS,
    progress: Callable[[Found], None] | None = None,
) -> Found:  # fmt: skip
    """The best recipe of the family, after all of the search."""
    found = None
    for found in climb(recipe, target, kind, each):
        if progress is not None:
            progress(found)
    assert found is not None
    return found


# --- Its check by chains


CHAINS, MEMORIES, MOST_STEPS = 8, 12_000, 8_000_000
"""Chains of a check, of so many autocorrelation times together that the standard error is about 4 %; steps at most."""
CHUNK = 2_000
"""Steps of each chain between two looks at the clock."""


@dataclass(frozen=True)
class Check:
    """A recipe on the finer grid, and the autocorrelation time of the first coordinate of θ at its step, in steps."""

    score: Score
    predicted: float
    """From the generator: 2∫ρ dt over ε."""
    measured: IntegratedTime
    """From chains with the exact gradient; nan where they diverge or have no time."""


def parameters(recipe: Recipe, step_size: float) -> dict[str, Any]:
    """The parameters of the recipe's sampler with this step, to three digits, and the scheme that fits."""
    return {**parameters_of(recipe), "step_size": float(f"{step_size:.3g}"), "scheme": scheme_of(recipe)}


def check(
    recipe: Recipe,
    target: Choice,
    step_size: float,
    *,
    temperature: float = 1.0,
    seed: int = 0,
    seconds: float = 10.0,
) -> Check:
    """τ predicted and τ measured. Chains run for so many seconds at most."""
    values = parameters(recipe, step_size)
    step = float(values["step_size"])
    made = make_target(target, temperature)
    found = Score(score(recipe, made, step_size, CELLS_END).gap, step)
    flow = flow_of(recipe, made, CELLS_END)
    own = flow.grid.mesh()[0]
    time_of = fokker_planck.integrated_time(flow.matrix, flow.grid, flow.law, own, resolvent=flow.resolvent)
    predicted = time_of / step
    n_steps = int(np.clip(MEMORIES * predicted, 10 * CHUNK, MOST_STEPS)) // CHAINS
    spec = RunSpec.of(
        target.key, "recipe", "full", target_params=target.values(), sampler_params=values,
        n_steps=n_steps, n_chains=CHAINS, seed=seed, temperature=temperature,
    )  # fmt: skip
    return Check(found, predicted, measured_time(spec, seconds))


def measured_time(spec: RunSpec, seconds: float = np.inf) -> IntegratedTime:
    """The τ of a run's first column, in steps, with its standard error; nan of chains that diverge or are too short."""
    run, began = Run(spec, False), time.perf_counter()
    end = spec.burn_in + spec.n_steps
    while run.steps < end and run.divergence is None and time.perf_counter() - began < seconds:
        run.advance(min(CHUNK, end - run.steps))
    return integrated_time(run.statistics, 0) if run.divergence is None else IntegratedTime(np.nan, np.nan, np.nan)
