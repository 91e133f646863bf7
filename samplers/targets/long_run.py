"""Distributions of many coordinates whose exact answers are the draws of a long run that is exact but for its
length.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numba import types
from numpy.random import SFC64, Generator
from scipy import special
from scipy.interpolate import CubicSpline, PchipInterpolator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.convergence import summary
from sgmcmc_lab.samplers.kolmogorov import baseline
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array, Column, Target, Tell
from sgmcmc_lab.samplers.targets.newton import inverse_factor
from sgmcmc_lab.samplers.targets.quadrature import rule

CHAINS = 4
ESS, RHAT = 10_000, 1.005
"""The accuracy for which the run continues: effective draws of centre and tails of every column, and the largest
R-hat."""
MAX_DRAWS, MAX_NUMBERS = 80_000, 6 * 10**9
"""The most draws of all chains, and the most numbers of data that their gradients look at, some 10 to 30 seconds. A run
that is not done by then gives the answers that it has, and :attr:`uncertainty` says how good they are."""
_OUTSIDE = 0.01
"""The largest share of a column outside of the bins of early answers that are kept."""
_FIRST_DRAWS = 1000
"""A chain; twice as many each time that the run is not long enough yet."""
MAX_WARM_UP = 5 * 10**10
"""Numbers of data that the gradients of a warm-up may look at: where its steps must be so short is no exact answer."""


class _Effort(NamedTuple):
    """How long a run is."""

    warm_up: int
    """Steps of a chain at each step size that is tried, not kept."""
    shrinks: float
    """By what each of these is smaller than the one before."""
    part: int
    """Draws of a chain between two looks at who waits."""
    least: int
    most: int
    """Draws of all chains: more than the least where their gradients look at no more than so many numbers of data."""
    numbers: int


_EXACT = _Effort(200, 1.4, _FIRST_DRAWS // 4, 4 * _FIRST_DRAWS, MAX_DRAWS, MAX_NUMBERS)
_ROUGH = _Effort(20, 2.0, 100, 400, 4000, 2 * 10**7)
"""A page waits for it."""
_TRIES = 20
"""Step sizes that are tried at most: the last one is 1/1.4¹⁹ = 1/600 of the first."""
_HALVINGS = 60
"""Times that a chain's start is moved half of its way to the mode, at most."""
TIME = np.pi / 2
"""How long a path is, where standard deviations are 1: of a Gaussian its end does not depend on where it began."""
_LEVELS = np.linspace(-3.0, 3.0, 25)
"""The quantiles, as normal scores, that a marginal's CDF goes through. Beyond, its tails are Gaussian."""

OFF, _GAPS = 0.005, 60
"""The largest distance of a CDF from the share of values below, half of what the draws themselves leave unknown; and
the most gaps between them that are looked at."""

_SLICE = 200_000
"""The numbers of data that one call of a compiled energy looks at: about a millisecond."""

_CLAIMING = threading.Lock()
"""Held while a thread looks whether another one makes a target's long run, and claims it otherwise."""
_TELL_SECONDS = 0.1
"""The time between two calls of ``tell``, which may cancel, while another thread makes the long run."""

_HMC = types.int64(
    jit.rng_type,
    jit.matrix,
    types.FunctionType(jit.POTENTIAL),
    types.FunctionType(jit.GRADIENT),
    jit.vector,
    jit.vector,
    jit.matrix,
    types.float64,
    types.int64,
    jit.cube,
)


@jit.helper
def _place(q, mode, factor, theta):
    """Write θ̂ + Lq of one chain."""
    for i in range(q.size):
        theta[i] = mode[i]
        for j in range(i + 1):
            theta[i] += factor[i, j] * q[j]


@jit.loop(_HMC)
def hmc(rng, position, potential, gradient, params, mode, factor, step_size, n_leapfrog, kept):
    """Hamiltonian Monte Carlo of q in θ = θ̂ + Lq, with an accept step; ``kept`` (draws, chains, dim) takes every θ.

    ``position`` (chains, dim) is q, changed in place. The steps of a path are of one length, between .8 and 1.2 of
    ``step_size``, so that no path comes back to where it began. Returns how many proposals were accepted.
    """
    n_chains, dim = position.shape
    momentum, proposal, slope = np.empty((n_chains, dim)), np.empty((n_chains, dim)), np.empty((n_chains, dim))
    theta, at_theta = np.empty((n_chains, dim)), np.empty((n_chains, dim))
    height, energy, before = np.empty(n_chains), np.empty(n_chains), np.empty(n_chains)

    for c in range(n_chains):
        _place(position[c], mode, factor, theta[c])
    potential(theta, height, params)
    accepted = 0
    for t in range(kept.shape[0]):
        eps = step_size * (0.8 + 0.4 * rng.random())
        for c in range(n_chains):
            before[c] = height[c]
            for i in range(dim):
                momentum[c, i] = rng.standard_normal()
                before[c] += momentum[c, i] ** 2 / 2
                proposal[c, i] = position[c, i]
        for leap in range(n_leapfrog + 1):
            for c in range(n_chains):
                _place(proposal[c], mode, factor, theta[c])
            gradient(theta, at_theta, params)
            # Half a kick at both ends of the path.
            kick = eps / 2 if leap in (0, n_leapfrog) else eps
            for c in range(n_chains):
                for j in range(dim):
                    slope[c, j] = 0.0
                    for i in range(j, dim):
                        slope[c, j] += factor[i, j] * at_theta[c, i]
                    momentum[c, j] -= kick * slope[c, j]
                    if leap < n_leapfrog:
                        proposal[c, j] += eps * momentum[c, j]
        potential(theta, energy, params)
        for c in range(n_chains):
            after = energy[c]
            for i in range(dim):
                after += momentum[c, i] ** 2 / 2
            if rng.random() < np.exp(min(before[c] - after, 0.0)):
                accepted += 1
                height[c] = energy[c]
                for i in range(dim):
                    position[c, i] = proposal[c, i]
            _place(position[c], mode, factor, kept[t, c])
    return accepted


class Reference(NamedTuple):
    """The draws of a long run, and how good they are."""

    draws: Array
    """θ, (chains, draws, dim)."""
    rhat: float
    """The largest of any column."""
    ess: float
    """The smallest of any column, of centre and tails."""

    @classmethod
    def of(cls, draws: Array, values: Array) -> "Reference":
        """The reference of θ (chains, draws, dim) and the columns there (chains, draws, columns)."""
        found = [summary(values, k) for k in range(values.shape[2])]
        return cls(draws, max(c.rhat for c in found), min(min(c.ess_bulk, c.ess_tail) for c in found))


class LongRun(Target):
    """A distribution whose columns have the marginals of a long run of Hamiltonian Monte Carlo with the accept step.

    The run is in coordinates in which the distribution is like N(0, I) at its mode. Four chains begin away from it, and
    go on until R-hat of every column is below 1.005 and every ESS, of centre and tails, above 10,000. An exact draw is
    one of the run's. The log density lacks a constant: it is normalised as if the distribution were the Gaussian that
    is alike at the mode.
    """

    exact_law = False
    _early: "Self | None" = None
    _run_ends: threading.Event | None = None
    """Set when the thread that makes the long run ends; None while none makes it."""

    @cached_property
    def _peak(self) -> tuple[Array, Array]:
        """The mode and U″ there, where they are found together."""
        raise NotImplementedError(f"{self.title} says its mode and its curvature one by one")

    @cached_property
    def mode(self) -> Array:
        return self._peak[0]

    @property
    def curvature(self) -> Array:
        """U″ at the mode, (dim, dim)."""
        return self._peak[1]

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @abstractmethod
    def without_draws(self) -> Array:
        """The numbers that the compiled potential and gradient read, (n,)."""

    @property
    def gradient_work(self) -> int:
        """The cost of a gradient: how many numbers of data it looks at."""
        return max(len(self.data()), 1) * self.dim

    def _found(self, tell: Tell, rough: bool = False) -> Reference:
        jit.prepare([hmc, self.potential, self.gradient])
        warm_up, shrinks, part, least, limit, numbers = _ROUGH if rough else _EXACT
        factor = inverse_factor(self.curvature)
        rng, params = Generator(SFC64(1)), self.without_draws()
        position, height = 2 * rng.standard_normal((CHAINS, self.dim)), np.full(CHAINS, np.inf)
        # Nearer to the mode where the density is 0 or has no value: from there no path is accepted.
        for _ in range(_HALVINGS):
            self.potential(np.ascontiguousarray(self.mode + position @ factor.T), height, params)
            if np.isfinite(height).all():
                break
            position[~np.isfinite(height)] /= 2

        def go_on(n: int, step_size: float) -> tuple[Array, float]:
            leaps = max(round(TIME / step_size), 1)
            if CHAINS * warm_up * (leaps + 1) * self.gradient_work > MAX_WARM_UP:
                raise SpecError(
                    "target",
                    self.key,
                    f"there is no exact answer: Hamiltonian Monte Carlo, which finds it, would need paths of {leaps:,} steps or more; a smoother density, or less data, is needed",
                )
            kept = np.empty((n, CHAINS, self.dim))
            accepted = hmc(
                rng, position, self.potential, self.gradient, params, self.mode, factor, step_size, leaps, kept
            )
            return kept.transpose(1, 0, 2), accepted / (n * CHAINS)

        tell("The exact answer by a long run: finding its step size", None)
        step_size = self.dim**-0.25
        go_on(warm_up, step_size / 4)
        # Shorter until most paths are accepted: longer steps cost less, but for the draws that are refused.
        for _ in range(_TRIES):
            if go_on(warm_up, step_size)[1] >= 0.8:
                break
            step_size /= shrinks
            tell("The exact answer by a long run: finding its step size", None)
        else:
            raise SpecError(
                "target",
                self.key,
                f"there is no exact answer: Hamiltonian Monte Carlo, which finds it, rejects its paths at {_TRIES} step sizes, the last one {step_size:.2g} standard deviations; a density without edges or kinks is needed",
            )
        parts: list[Array] = []
        each = (max(round(TIME / step_size), 1) + 1) * self.gradient_work
        most = min(limit, max(numbers // each, least))
        made, n, found = 0, _FIRST_DRAWS, None
        while found is None or ((found.ess < ESS or found.rhat > RHAT) and made < most):
            for _ in range(0, min(n, (most - made) // CHAINS), part):
                share = min((found.ess / ESS) if found else 0.0, 1.0)
                tell(f"The exact answer by a long run: {made:,} draws", share)
                parts.append(go_on(part, step_size)[0])
                made += CHAINS * part
            draws = np.concatenate(parts, axis=1)
            found, n = Reference.of(draws, self.values(draws)), made // CHAINS
        return found

    @property
    def reference(self) -> Reference:
        """The long run, which is made where it is not there."""
        # Rough answers do not wait for the run that finds the exact ones.
        if not self.ready:
            self.prepare(lambda what, share: None)
        return self._reference

    @property
    def ready(self) -> bool:
        return "_reference" in self.__dict__

    def prepare(self, tell: Tell) -> None:
        # No lock is held during the run: its tell may wait for the event loop, which must not wait for the lock.
        while not self.ready:
            with _CLAIMING:
                # Another thread may have made it since.
                if self.ready:
                    return
                first, ends = self._run_ends is None, self._run_ends or threading.Event()
                self._run_ends = ends
            if first:
                try:
                    self._reference = self._found(tell)
                finally:
                    self._run_ends = None
                    ends.set()
            # Where the first caller is cancelled, the next one makes the run.
            while not ends.wait(_TELL_SECONDS):
                tell("The exact answer by a long run, which another page has begun", None)

    def early(self) -> "Self":
        if self._early is None:
            found = self._copy("_reference", "_packed", "columns", "sampled")
            found._reference = found._found(lambda what, share: None, rough=True)
            self._early = found
        return self._early

    def counted_like(self, early: Target) -> "Self | None":
        """The same, with histograms of the same bins as the early one's: what was counted in them goes on.

        None where its mass is elsewhere, as with a mode that the early answers do not know.
        """
        inside = [
            float(np.diff(exact.cdf(np.array([rough.low, rough.high])))[0])
            for exact, rough in zip(self.columns, early.columns, strict=True)
        ]
        if min(inside) < 1 - _OUTSIDE:
            return None
        other = self._copy()
        other.__dict__["columns"] = tuple(
            replace(exact, low=rough.low, high=rough.high, shown=rough.shown)
            for exact, rough in zip(self.columns, early.columns, strict=True)
        )
        return other

    def _copy(self, *without: str) -> "Self":
        """All that is known of it but these. A copy by Param would set what has been computed, which no one may."""
        other = object.__new__(type(self))
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name not in without})
        return other

    @property
    def uncertainty(self) -> float:
        return baseline(self.reference.ess)

    def facts(self) -> Mapping[str, str]:
        chains, draws, _ = self.reference.draws.shape
        return {
            "Exact answers": f"{chains * draws:,} draws of Hamiltonian Monte Carlo, R̂ at most {self.reference.rhat:.4f}, ESS at least {self.reference.ess:,.0f}: known up to a KS distance of {self.uncertainty:.2g}"
        }

    @cached_property
    def _packed(self) -> Array:
        draws = self.reference.draws.reshape(-1, self.dim)
        return np.concatenate([self.without_draws(), [len(draws)], draws.ravel()])

    def packed(self) -> Array:
        return self._packed

    @property
    def n_columns(self) -> int:
        return len(self.column_names)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        values = self.values(self.reference.draws).reshape(-1, self.n_columns)
        return tuple(column_of(name, values[:, k]) for k, name in enumerate(self.column_names))

    def log_density(self, theta: Array) -> Array:
        out = self._potentials(np.ascontiguousarray(theta.reshape(-1, self.dim)))
        lowest = self._potentials(self.mode[None])
        constant = (np.linalg.slogdet(self.curvature)[1] - self.dim * np.log(2 * np.pi)) / 2
        return (lowest[0] - out + constant).reshape(theta.shape[:-1])

    def _potentials(self, theta: Array) -> Array:
        """The compiled energy at each of these points (n, dim), a slice after the other.

        A compiled call keeps the interpreter's lock, for which the event loop of a server would wait.
        """
        jit.prepare([self.potential])
        out, params = np.empty(len(theta)), self.without_draws()
        each = max(_SLICE // max(self.gradient_work, 1), 1)
        for begin in range(0, len(theta), each):
            self.potential(theta[begin : begin + each], out[begin : begin + each], params)
        return out

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        draws = self.reference.draws.reshape(-1, self.dim)
        return np.asarray(draws[int(rng.random() * len(draws))])


@jit.inlined
def draw_kept(rng, out, params, first):
    """Write one of the kept draws for every chain; their number is ``params[first]``, and they follow it."""
    n_chains, dim = out.shape
    for c in range(n_chains):
        at = first + 1 + int(rng.random() * params[first]) * dim
        for i in range(dim):
            out[c, i] = params[at + i]


def column_of(name: str, values: Array) -> Column:
    """A column of many draws, whose CDF goes through the quantiles of the values, and is smooth between them.

    Where it would be too far from the share of values below, as in the gap between two modes, it goes through the
    quantiles on both sides, too.
    """
    values = np.sort(values)
    shares = (np.arange(len(values)) + 0.5) / len(values)
    # Draws that were refused are there twice, and so may be quantiles.
    points, kept = np.unique(np.quantile(values, special.ndtr(_LEVELS)), return_index=True)
    levels = _LEVELS[kept]
    score: CubicSpline | PchipInterpolator = CubicSpline(points, levels, bc_type="natural")
    smooth = score.derivative()(np.linspace(points[0], points[-1], 1001)).min() > 0
    inside = (values > points[0]) & (values < points[-1])
    for _ in range(_GAPS):
        if not smooth:
            score = PchipInterpolator(points, levels)
        off = np.abs(special.ndtr(score(values[inside])) - shares[inside])
        if off.max(initial=0.0) < OFF:
            break
        at = int(np.flatnonzero(inside)[off.argmax()])
        # The wider one of the gaps on either side, where the CDF is level.
        first = at if values[at + 1] - values[at] > values[at] - values[at - 1] else at - 1
        added = np.append(points, values[[first, first + 1]])
        points, order = np.unique(added, return_index=True)
        levels = np.append(levels, special.ndtri(shares[[first, first + 1]]))[order]
        smooth = False
    # Not the spline's own slopes at its ends, which may be 0.
    low_slope, high_slope = (float(slope) for slope in (np.diff(levels) / np.diff(points))[[0, -1]])

    def scores(x: Array) -> Array:
        x = np.asarray(x, dtype=float)
        inside = score(np.clip(x, points[0], points[-1]))
        return inside + low_slope * np.minimum(x - points[0], 0.0) + high_slope * np.maximum(x - points[-1], 0.0)

    cdf: Callable[[Array], Array] = lambda x: special.ndtr(scores(x))  # noqa: E731
    ends = points[0] - 6.0 / low_slope, points[-1] + 6.0 / high_slope
    edges = np.concatenate([[ends[0]], points, [ends[1]]])
    x, w = (part.ravel() for part in rule(edges[:-1], edges[1:], 2))
    slopes = np.where(x < points[0], low_slope, np.where(x > points[-1], high_slope, score.derivative()(x)))
    mass = w * slopes * np.exp(-(scores(x) ** 2) / 2) / np.sqrt(2 * np.pi)
    mean = float(mass @ x)
    variance = float(mass @ (x - mean) ** 2)
    sd = variance**0.5
    shown = max(ends[0], mean - 3.6 * sd), min(ends[1], mean + 3.6 * sd)
    return Column(name, *ends, cdf, mean, variance, shown=shown)
