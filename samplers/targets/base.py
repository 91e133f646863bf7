"""The declarations of every target.

A target is a distribution with an energy U(θ) = −log density + constant, its gradient, and the *exact*
answer: CDF, moments and an i.i.d. sampler. A new target is one file with a subclass of
:class:`Target` and one line in ``samplers/targets/__init__.py``.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import param
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import solve_triangular

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.expressions.native import Loop
from sgmcmc_lab.samplers.manifolds import Euclidean, Manifold
from sgmcmc_lab.samplers.parameters import SpecError, Value, check_all, declared
from sgmcmc_lab.samplers.requirements import ADDED

Array = NDArray[np.float64]
Key = TypeVar("Key")
Found = TypeVar("Found")

LINE = "line"
POSITIVE = "positive"
SIMPLEX = "simplex"
MANIFOLD = "manifold"
"""A curved one, in the coordinates of the space around it."""


_ON_MANIFOLD = 1e-6
"""How far from its manifold a start may be."""

Tell = Callable[[str, float | None], None]
"""``tell(what, share)``: says what is being computed, and how much of it is done, where that is known. It may raise."""


def subscript(j: int) -> str:
    """As in ``θ₁``."""
    return str(j).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def unknown(x: Array) -> Array:
    """The CDF of a column whose distribution is not known."""
    return np.full(np.shape(x), np.nan)


class Normals(NamedTuple):
    """Packed parameters that are standard normal random numbers of a seed, up to their signs."""

    seed: int
    """The seed of NumPy's generator SFC64."""
    skipped: int
    """Random numbers of the seed before the first of these."""
    first: int
    """The place of the first in the packed parameters."""
    n: int


@dataclass(frozen=True)
class Column:
    """One coordinate that the engine accumulates: a histogram, moments and autocovariances.

    ``low`` and ``high`` bound the histogram; what falls outside is counted in two outer bins, so the
    KS distance stays exact at every edge. ``log`` bins the logarithm. Where the distribution is :func:`unknown`,
    ``mean`` and ``variance`` are no more than the scale that sums are taken on.
    """

    name: str
    """On screen, in plain text: ``θ₁``."""
    low: float
    high: float
    cdf: Callable[[Array], Array]
    """The exact marginal CDF."""
    mean: float
    variance: float
    log: bool = False
    shown: tuple[float, float] = (0.0, 0.0)
    """The range of an axis that shows the bulk of the distribution; ``(low, high)`` where it is not given."""
    odds_of: tuple[float, float] | None = None
    """The shapes of a Beta distribution whose odds x/(1 − x) the coordinate is."""

    @classmethod
    def gaussian(cls, name: str, mean: float, variance: float) -> "Column":
        """The column of the distribution N(mean, variance)."""
        sd = float(np.sqrt(variance))
        return cls(
            name,
            mean - 7.5 * sd,
            mean + 7.5 * sd,
            lambda x: special.ndtr((x - mean) / sd),
            mean,
            variance,
            shown=(mean - 3.6 * sd, mean + 3.6 * sd),
        )

    @property
    def exact(self) -> bool:
        """Whether the distribution is known."""
        return self.cdf is not unknown

    @property
    def axis(self) -> tuple[float, float]:
        """The range to draw."""
        return self.shown if self.shown != (0.0, 0.0) else (self.low, self.high)


class Whitening(NamedTuple):
    """Coordinates z with θ = θ̂ + Lz, in which a distribution on ℝᵈ is like N(0, I) near its mode θ̂."""

    centre: Array
    """θ̂, (dim,)."""
    factor: Array
    """L, lower triangular, (dim, dim)."""

    def theta(self, z: Array) -> Array:
        """θ at z (..., dim). Every row is computed by itself, so that it is the same in every batch."""
        return np.asarray(self.centre + (self.factor * z[..., None, :]).sum(axis=-1))

    def z(self, theta: Array) -> Array:
        """z at θ (..., dim)."""
        return self.velocity(theta - self.centre)

    def velocity(self, velocity: Array) -> Array:
        """dz/dt where θ moves with this velocity (..., dim)."""
        flat = np.reshape(velocity, (-1, len(self.centre)))
        return solve_triangular(self.factor, flat.T, lower=True, check_finite=False).T.reshape(np.shape(velocity))


@dataclass(frozen=True)
class FirstSteps:
    """The first step sizes of samplers on a steep target, on which their declared step size would be unstable."""

    moving: float
    """The largest step size of a sampler with a velocity."""
    batch: float
    """The same with minibatches, whose noise needs friction, too."""
    friction: float
    """The least friction with minibatches."""
    other: float
    """The largest step size of any other sampler."""
    heated: float = np.inf
    """The largest one at which the heat of a minibatch is small, for a sampler without a velocity."""

    def largest(self, moving: bool, batch: bool) -> float:
        """The largest first step of a sampler with or without a velocity, with or without minibatches."""
        if moving:
            return self.batch if batch else self.moving
        return min(self.other, self.heated) if batch else self.other

    @classmethod
    def of(cls, curvature: float, noise: float) -> "FirstSteps":
        """For U″ of at most this, and the variance of the noise of a minibatch of ten.

        A step with a velocity moves a third of what would be stable, one with minibatches a thirtieth, and friction
        takes up all but a tenth of their heat. Where that friction would stop half of the velocity in a step, or more,
        the step is shorter. Without a velocity a step adds at most a twentieth of heat. No sampler has a step below
        1e-6, or more friction than 100 by itself.
        """
        batch = 0.03 * curvature**-0.5
        if min(10 * batch**2 * noise, 100 * batch) > 0.5:
            batch = max(0.05 / noise, 2.5e-5) ** 0.5
        friction = min(max(10 * batch * noise, 5.0), 100.0)
        found = (0.3 * curvature**-0.5, batch, friction, 0.1 / curvature, 0.1 / max(curvature, noise))
        return cls(*(max(float(f"{value:.1g}"), 1e-6) for value in found))


@dataclass(frozen=True)
class Moment:
    """An expectation under the target, known exactly."""

    name: str
    function: Callable[[Array], Array]
    """Takes values (..., columns) and returns (...)."""
    exact: float
    sums: Any = None
    """The function in :mod:`samplers.targets.expectations`, with its constants; None where it is not compiled."""
    constants: tuple[float, ...] = ()

    @classmethod
    def compiled(cls, name: str, sums: Any, constants: tuple[float, ...], exact: float) -> "Moment":
        """The expectation of a compiled function."""
        return cls(name, partial(_values_of, sums, constants), exact, sums, constants)


@dataclass(frozen=True)
class Fit:
    """Data in a plane, and the curve that a draw of θ is there."""

    data: Array
    """(N, 2)."""
    axes: tuple[str, str]
    grid: Array
    """Where the curves are computed, from one end of the axis to the other."""
    curves: Callable[[Array], Array]
    """Takes θ (n, dim) and returns (n, len(grid))."""
    shown: tuple[float, float]
    """The range of the other axis."""
    kinds: NDArray[np.int64]
    """The kind of each data point, (N,)."""
    followed: Array | None = None
    """The points at which the columns are the curve itself; None where they are the coordinates, of which ``curves``
    makes it."""
    formula: Mapping[str, Any] | None = None
    """The kind and the constants of the curve's formula, for a page without Python; None where it has none."""

    @classmethod
    def of(
        cls,
        data: Array,
        axes: tuple[str, str],
        function: Callable[[Array, Array], Array],
        kinds: Array | None = None,
        shown: tuple[float, float] | None = None,
        points: int = 41,
        followed: Array | None = None,
        formula: Mapping[str, Any] | None = None,
    ) -> "Fit":
        """From ``function(theta (n, 1, dim), x (points,))``, on axes a little longer than the data are wide."""
        (x0, x1), (y0, y1) = ((float(v.min()), float(v.max())) for v in data.T)
        x_room, y_room = 0.06 * (x1 - x0), 0.06 * (y1 - y0)
        grid = np.linspace(x0 - x_room, x1 + x_room, points)
        return cls(
            data,
            axes,
            grid,
            lambda theta: function(theta[:, None, :], grid),
            shown or (y0 - y_room, y1 + y_room),
            np.zeros(len(data), dtype=np.int64) if kinds is None else np.asarray(kinds, dtype=np.int64),
            followed,
            formula,
        )


@jit.observe
def observe_coordinates(draws, n, out):
    """The coordinates themselves."""
    for k in range(draws.shape[2]):
        for c in range(draws.shape[1]):
            for t in range(n):
                out[k, c, t] = draws[t, c, k]


@jit.batch
def no_data(theta, data, each, params):
    """No gradients of data points: a target without data has no minibatch, and none is asked for."""


class Target(param.ParameterizedABC):
    """A distribution on ℝᵈ, (0, ∞)ᵈ, the simplex or a manifold. Instances are never changed after they are made."""

    key: ClassVar[str]
    """The name in specs and links."""
    title: ClassVar[str]
    tex: ClassVar[str]
    """U(θ) in LaTeX."""
    source: str = ""
    """Where the target comes from, for its card."""
    support: ClassVar[str] = LINE
    geometry: ClassVar[type[Manifold]] = Euclidean
    """The kind of manifold on which θ moves; :attr:`manifold` is the one itself."""
    provides: ClassVar[frozenset[str]] = ADDED
    """The words of :mod:`samplers.requirements` that hold for it."""
    exact_law: ClassVar[bool] = True
    """Whether the answers are exact but for rounding; else :attr:`uncertainty` says how far off they may be."""
    watched: ClassVar[bool] = False
    """Whether a run looks for an infinite density where its chains are, for a person typed the energy."""
    dragged: ClassVar[str] = ""
    """The parameter that says where its :attr:`handles` are; empty where there are none."""
    tempers: ClassVar[bool] = False
    """Whether e^{−U/T} is a distribution on ℝᵈ for every T, with answers from quadrature or a long run."""
    temperature: float = 1.0
    """T of e^{−U/T}; other than 1 of :class:`~samplers.targets.at_temperature.AtTemperature` alone."""
    process: ClassVar[str | None] = None
    """The process with this stationary distribution whose transition is known exactly: ``cir`` or ``geometric_ou``."""
    process_scale: float = 1.0
    """c, where θ/c is the CIR process with the rate 1, in time t/c."""

    potential: ClassVar[Any]
    gradient: ClassVar[Any]
    batch: ClassVar[Any] = staticmethod(no_data)
    draw: ClassVar[Any]
    observe: ClassVar[Any] = staticmethod(observe_coordinates)

    # Declarations for the tests: every target declares it at the end of its class, and a test names what is missing.
    tried_at: ClassVar[tuple[dict[str, Value], ...]]
    """The settings at which tests try the target beside its defaults: two or more, at the ends of what is allowed;
    none where there are no parameters."""
    drawn_at: ClassVar[dict[str, Value]]
    """The settings, other than the defaults, at which ``draw`` is compared with ``textbook_draw``."""
    textbook_draw: ClassVar[Any]
    """``textbook_draw(rng)``: one draw of θ, (dim,), in plain Python, from the random numbers that ``draw`` takes."""
    textbook_slope: ClassVar[Any]
    """``textbook_slope(theta (dim,), datum)``: ∂U/∂θ where one data point stands for all, in plain Python; only of a
    target with a ``batch``."""
    textbook_energy: ClassVar[Any]
    """``textbook_energy(theta (dim,), datum)``: U where one data point stands for all, up to a constant, in plain
    Python; only of a target that provides energies."""

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "potential", "gradient", "batch", "draw", "observe")

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "target", values)))
        self.check()

    def check(self) -> None:
        """Raise :class:`SpecError` where the parameters do not fit each other."""

    def at_temperature(self, temperature: float) -> dict[str, Value] | None:
        """The changed parameters that make the distribution e^{−U/T}; None if there are none."""
        return None

    def family_at(self, temperature: float) -> "Target | None":
        """The distribution e^{−U/T} where it is of a class of its own; None where it is not.

        Raises :class:`SpecError` at a temperature that it does not have.
        """
        return None

    @classmethod
    def has_temperatures(cls) -> bool:
        """Whether e^{−U/T} has known answers at some T ≠ 1."""
        own = (cls.at_temperature, cls.family_at) != (Target.at_temperature, Target.family_at)
        return cls.tempers or own

    @classmethod
    def completed(cls, values: Mapping[str, Value], changed: Mapping[str, Value]) -> dict[str, Value]:
        """All parameters where a person changes some: others may have to go with them."""
        return {**values, **changed}

    @property
    def first_steps(self) -> FirstSteps | None:
        """Set where the samplers' own step sizes would be too large."""
        return None

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of coordinates of θ."""

    @property
    def whitening(self) -> Whitening | None:
        """The coordinates that samplers move in; None where those are θ."""
        return None

    @property
    def sampled(self) -> "Target":
        """The distribution in the coordinates that samplers move in: with a :attr:`whitening` that of z."""
        return self

    def succeeds(self, other: "Target") -> bool:
        """Whether a chain of the other target can go on here: the same one with other parameters, in the same space."""
        return type(self) is type(other) and self.dim == other.dim

    @cached_property
    def mode(self) -> Array:
        """Where the density is largest, or nearly, (dim,): control variates are taken there. Few targets say it."""
        raise NotImplementedError(f"{self.title} has no mode")

    @property
    def lipschitz(self) -> Array:
        """C_i with |∂_iU(θ) − ∂_iU(θ′)| ≤ C_i‖θ − θ′‖ for all θ and θ′, (dim,), where the target provides them."""
        raise NotImplementedError(f"{self.title} has no Lipschitz constants")

    @property
    def lipschitz_of_each(self) -> Array:
        """The same for the gradients of all data points, each of which stands for all, (dim,)."""
        raise NotImplementedError(f"{self.title} has no Lipschitz constants of its data")

    def packed(self) -> Array:
        """The parameters as the compiled functions read them."""
        return np.array([getattr(self, name) for name, _ in declared(type(self))], dtype=float)

    def without_draws(self) -> Array:
        """The packed parameters without those that only ``draw`` reads."""
        return self.packed()

    @property
    def normals(self) -> Normals | None:
        """The random numbers among :meth:`without_draws`; None where there are none."""
        return None

    def data(self) -> NDArray[np.int64]:
        """The category of every data point, for minibatches; empty where there are no data."""
        return np.zeros(0, dtype=np.int64)

    @cached_property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns that the engine accumulates; ``observe`` writes the columns in this order."""

    @property
    def ready(self) -> bool:
        """Whether the exact answers are known, or can be computed in less than a frame."""
        return True

    def prepare(self, tell: Tell) -> None:
        """Find the exact answers where that takes longer, once for all who ask for this very target.

        A caller that needs them earlier waits for them. An exception of ``tell`` cancels the computation.
        """

    def early(self) -> "Target | None":
        """The same distribution with rough answers, which take a second, for the time in which :meth:`prepare` runs.

        None where there are none.
        """
        return None

    @property
    def uncertainty(self) -> float:
        """How far the marginal CDFs may be off, as a KS distance; 0 where they are exact."""
        return 0.0

    def facts(self) -> Mapping[str, str]:
        """Facts about the exact answers once they are known, for the target's card."""
        return {}

    @property
    def of_coordinates(self) -> bool:
        """Whether the columns are the coordinates of θ."""
        return self.observe is observe_coordinates

    @property
    def n_columns(self) -> int:
        """How many columns there are, which is known before they are."""
        return self.dim if self.of_coordinates else len(self.columns)

    @property
    def n_values(self) -> int:
        """How many of the first columns a person looks at; the KS distance reads the rest, or these without a rest."""
        return self.n_columns

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns that a person looks at; known before the exact answers are."""
        return tuple(column.name for column in self.columns[: self.n_values])

    @property
    def ks_columns(self) -> range:
        """The columns whose KS distances are averaged."""
        return range(self.n_values, self.n_columns) or range(self.n_columns)

    def fit(self) -> Fit | None:
        """The data and a draw's curve beside them; None where there is no such picture."""
        return None

    def held_out(self, theta: Array) -> Array | None:
        """The log density of each held-out observation given each draw θ (n, dim), (n, observations), or None."""
        return None

    @cached_property
    def manifold(self) -> Manifold:
        """The manifold on which θ moves."""
        return Euclidean(self.dim)

    @property
    def planar(self) -> bool:
        """Whether the two columns have a joint histogram and a joint density."""
        return self.n_columns == 2

    def log_column_density(self, values: Array) -> Array:
        """The normalised log density of the columns (..., columns), where they are coordinates of the whole
        distribution.
        """
        return self.log_density(values)

    @property
    def handles(self) -> Array:
        """Points of the plane that a person may drag, (n, 2)."""
        return np.zeros((0, 2))

    def with_handle(self, number: float, point: Sequence[float]) -> tuple[float, ...]:
        """The parameter :attr:`dragged` with one handle, by its number, moved to this point.

        Raises :class:`SpecError` for a number that no handle has.
        """
        raise SpecError("handle", number, f"{self.title} has none")

    def log_vector_density(self, points: Array) -> Array | None:
        """The log density of the first vector of frames at points (..., n) of its sphere, where it is known."""
        return None

    def formula(self) -> str:
        """U(θ) as a typed expression of ``theta``, or of ``theta1``, ``theta2`` …, for recipes that use it.

        ``U`` itself where it is none: recipes then take the compiled energy and its gradient.
        """
        return "U"

    @abstractmethod
    def log_density(self, theta: Array) -> Array:
        """The normalised log density at θ (..., dim)."""

    @abstractmethod
    def start(self) -> Array:
        """Where the first chain starts, (dim,)."""

    def starts(self) -> Array:
        """Where chains start, (k, dim): chain c at the point c mod k.

        The only point is :meth:`start`, unless several modes are known that few chains leave.
        """
        return self.start()[None]

    @property
    def numbers_needed(self) -> str:
        """How many numbers a start has, or a momentum, as the end of a sentence."""
        allowed = "is one number" if self.dim == 1 else f"are {self.dim} numbers"
        return f"allowed {allowed}, for {self.title}, or none"

    def check_start(self, theta: Sequence[float]) -> None:
        """Raise :class:`SpecError` where no chain can start at θ."""
        shown = list(theta)
        if len(shown) != self.dim:
            raise SpecError("start", shown, self.numbers_needed)
        if self.support in (POSITIVE, SIMPLEX) and min(shown) <= 0:
            raise SpecError("start", shown, f"allowed are numbers above 0, where {self.title} is")
        if self.manifold.defect(np.array(shown), np.zeros(self.dim)) > _ON_MANIFOLD:
            allowed = f"allowed is a point of the manifold that {self.title} is on, to within {_ON_MANIFOLD:g}"
            raise SpecError("start", shown, allowed)

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Exact expectations; the mean and the variance of every shown column unless overridden."""
        entries: list[Moment] = []
        for k, column in enumerate(self.columns[: self.n_values]):
            entries.append(Moment(f"E {column.name}", _power(k, 0.0, 1), column.mean))
            entries.append(Moment(f"Var {column.name}", _power(k, column.mean, 2), column.variance))
        return tuple(entries)

    native: ClassVar[Callable[[Any], dict[int, Loop]] | None] = None
    """Native code of targets whose functions run formulas, by the index of the packed parameters that takes its
    address."""

    def functions(self) -> tuple[Any, ...]:
        """The compiled functions that a run on this target needs."""
        return (
            self.potential,
            self.gradient,
            self.batch,
            self.draw,
            self.observe,
            self.manifold.project,
            self.manifold.flow,
        )

    def sample(self, seed: int, n: int) -> Array:
        """``n`` exact i.i.d. draws of θ, (n, dim)."""
        jit.prepare([self.draw])
        out = np.empty((n, self.dim))
        self.draw(np.random.Generator(np.random.SFC64(seed)), out, self.packed())
        return out

    def values(self, theta: Array) -> Array:
        """The columns (..., columns) of draws θ (..., dim)."""
        # A compiled function takes no view that may not be written.
        flat = np.array(theta.reshape(-1, 1, self.dim), dtype=np.float64, order="C")
        out = np.empty((self.n_columns, 1, len(flat)))
        jit.prepare([self.observe])
        self.observe(flat, len(flat), out)
        return out[:, 0, :].T.reshape(*theta.shape[:-1], self.n_columns)

    def slopes_at(self, theta: Array) -> Array:
        """∂U/∂θ at θ (dim,) with each data point in place of all, (N, dim)."""
        jit.prepare([self.batch])
        out = np.empty((len(self.data()), self.dim))
        self.batch(np.array(theta, dtype=float)[None], np.arange(len(out)), out, self.packed())
        return out

    def energies_at(self, theta: Array) -> Array:
        """U at θ (n, dim), (n,)."""
        jit.prepare([self.potential])
        out = np.empty(len(theta))
        # A compiled function takes no view that may not be written.
        self.potential(np.array(theta, dtype=np.float64, order="C"), out, self.packed())
        return out

    def unbounded_at(self, theta: Array) -> str:
        """The message about an infinite density at θ (dim,), for targets that are ``watched``."""
        raise NotImplementedError

    def gradient_at(self, theta: Array) -> Array:
        """∂U/∂θ at θ (n, dim), (n, dim)."""
        jit.prepare([self.gradient])
        out = np.empty_like(theta)
        self.gradient(np.ascontiguousarray(theta), out, self.packed())
        return out


class ByTarget(Generic[Key, Found]):
    """Results by target, each kept for as long as its target exists: somebody's own data go with their page."""

    MOST = 32
    """Answers that are kept of one target."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Target, dict[Key, Found]] = WeakKeyDictionary()

    def of(self, target: Target, key: Key, find: Callable[[], Found]) -> Found:
        """The stored result of this target under this key, or the result of ``find``."""
        kept = self._kept.setdefault(target, {})
        if key not in kept:
            found = find()
            if len(kept) >= self.MOST:
                kept.clear()
            kept[key] = found
            return found
        return kept[key]


def _values_of(sums: Any, constants: tuple[float, ...], values: Array) -> Array:
    """A compiled function at values (..., columns): the sum over one draw of each of so many chains."""
    jit.prepare([sums])
    columns = np.array(np.moveaxis(values, -1, 0), dtype=np.float64, order="C").reshape(values.shape[-1], 1, -1)
    out = np.zeros(columns.shape[2])
    sums(columns, 1, np.array(constants, dtype=np.float64), out)
    return out.reshape(values.shape[:-1])


def _power(k: int, centre: float, order: int) -> Callable[[Array], Array]:
    return lambda values: (values[..., k] - centre) ** order
