"""A logistic regression on as many data as one likes: what a minibatch is for."""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError
from sgmcmc_lab.samplers.targets import logistic
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, FirstSteps, Normals, Tell, subscript
from sgmcmc_lab.samplers.targets.logistic import Logistic

MAX_NUMBERS = 10**7
"""The most that N·d may be: 80 MB."""
LEAST_ITEMS = 50
"""The fewest data for each coefficient, at a temperature T of N/T data: with fewer the expansion is less exact."""
MAX_HELD = 5 * 10**7
"""The numbers that all runs together may hold."""
_SIGNAL = 2.0
"""The standard deviation of θ·x for the θ that the data are made with: three of four are classified rightly."""
_HELD: "WeakValueDictionary[tuple[int, int, int, float, float], Array]" = WeakValueDictionary()
"""The packed parameters of every target that a run holds; each target's are there once, however many run on it."""


@jit.draw
def draw(rng, out, params):
    n_chains, dim = out.shape
    mean = logistic.FIRST + int(params[1]) * dim
    factor = mean + dim
    normals = np.empty(dim)
    for c in range(n_chains):
        for i in range(dim):
            normals[i] = rng.standard_normal()
            out[c, i] = params[mean + i]
            for j in range(i + 1):
                out[c, i] += params[factor + i * dim + j] * normals[j]


@jit.loop(types.void(jit.rng_type, jit.vector))
def draw_normals(rng, out):
    """Standard normal random numbers, as NumPy draws them."""
    for i in range(out.size):
        out[i] = rng.standard_normal()


class _Answers(NamedTuple):
    """The results of a pass through all data."""

    mode: Array
    mean: Array
    covariance: Array
    skewness: Array
    """The skewness of each coordinate, to the order that is known."""


class LargeLogistic(Logistic):
    """P(s_i = 1) = 1/(1 + e^{−θ·x_i}) with the prior θ ~ N(0, τ²I), on N data with x_i ~ N(0, I) that are made here.

    With so large an N the distribution is nearly Gaussian. Its answers are those of N(m, U″(θ̂)⁻¹), θ̂ the mode, with
    m = θ̂ − ½U″(θ̂)⁻¹ Σ_i u‴_i x_i (x_iᵀU″(θ̂)⁻¹x_i), the mean up to O(N^{−3/2}) of a standard deviation. Variances are
    right up to O(d/N) of themselves; the marginals are skewed by O(N^{−1/2}), which is known, and :attr:`uncertainty`
    is what that makes of a KS distance.
    """

    key = "logistic_large"
    title = "Logistic regression, large data set"
    tex = r"U(\theta) = \sum_{i=1}^{N}\log\bigl(1 + e^{-s_i\,\theta\cdot x_i}\bigr) + \frac{\lVert\theta\rVert^2}{2\tau^2},\quad x_i \sim N(0, I_d)"
    source = "Baker et al. 2019, section 6.1"
    exact_law = False
    draw = draw

    items = Count(
        10_000,
        bounds=(100, 1_000_000),
        log=True,
        tex="N",
        label="Data N",
        doc="How many data there are. The posterior is narrow as 1/√N.",
    )
    features = Count(
        10,
        bounds=(2, 100),
        log=True,
        tex="d",
        label="Coefficients d",
        doc="How many numbers there are of each data point; allowed is N·d up to 10,000,000, and d up to N/50.",
    )
    prior_sd = Real(
        3.0,
        bounds=(0.1, 10.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of each coefficient before there are data.",
    )
    data_seed = Count(
        1, bounds=(0, 10_000), tex="s", label="Seed of the data", doc="Another seed makes other data of the same kind."
    )

    def check(self) -> None:
        most = min(MAX_NUMBERS // self.items, self.items // LEAST_ITEMS)
        if self.features > most:
            raise SpecError("target.features", self.features, f"allowed with N = {self.items:,} is at most {most}")

    def family_at(self, temperature: float) -> "TemperedLargeLogistic":
        hottest = self.items / (LEAST_ITEMS * self.features)
        if temperature > hottest:
            raise SpecError(
                "temperature",
                temperature,
                f"{self.title} is as wide there as with {self.items / temperature:,.0f} data points, which are too few for d = {self.features}; allowed are temperatures up to {hottest:.3g}",
            )
        return TemperedLargeLogistic.made(self, temperature)

    @property
    def first_steps(self) -> FirstSteps:
        """U″ is about N/8 of such data, and ten of them make noise of V ≈ N²/60. No step is allowed below 1e-6."""
        curvature = self.items / 8
        return FirstSteps(
            moving=float(f"{0.3 * curvature**-0.5:.1g}"),
            batch=float(f"{0.03 * curvature**-0.5:.1g}"),
            friction=float(f"{0.3 * curvature**0.5:.1g}"),
            other=max(float(f"{0.1 / curvature:.1g}"), 1e-6),
        )

    @property
    def dim(self) -> int:
        return self.features

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def packed(self) -> Array:
        identity = self.items, self.features, self.data_seed, self.prior_sd, self.temperature
        found = _HELD.get(identity)
        if found is None:
            size = logistic.FIRST + self.features * (self.items + 1 + self.features)
            free = MAX_HELD - sum(each.size for each in list(_HELD.values()))
            if size > free:
                allowed = f"all pages together may hold {MAX_HELD:,} numbers, and these data are {size:,}; allowed now are {max(free, 0):,}: take a smaller N, or wait until other pages with large data sets are closed"
                raise SpecError("target.items", self.items, allowed)
            found = _HELD[identity] = self._pack()
        return found

    @property
    def rows(self) -> Array:
        return self._rows(self.packed())

    def _rows(self, params: Array) -> Array:
        return params[logistic.FIRST : logistic.FIRST + self.items * self.features].reshape(self.items, self.features)

    @property
    def normals(self) -> Normals:
        return Normals(self.data_seed, self.features, logistic.FIRST, self.items * self.features)

    def _pack(self) -> Array:
        # At a temperature other than 1 that is the last one.
        hot = self.temperature != 1
        params = np.empty(logistic.FIRST + self.features * (self.items + 1 + self.features) + hot)
        params[: logistic.FIRST] = self.prior_sd**-2, self.items
        rows = self._rows(params)
        rng = np.random.Generator(np.random.SFC64(self.data_seed))
        theta = rng.standard_normal(self.features)
        theta *= _SIGNAL / np.linalg.norm(theta)
        rng.standard_normal(out=rows)
        rows *= np.where(rng.random(self.items) < special.expit(rows @ theta), 1.0, -1.0)[:, None]
        # Of the rows that are being packed here, not of those that would be packed once more.
        if not self.ready:
            self.__dict__["_answers"] = self._answer(rows)
        answers = self._answers
        rest = params[logistic.FIRST + rows.size :]
        rest[: self.features] = answers.mean
        factor = np.linalg.cholesky(answers.covariance).ravel()
        rest[self.features : self.features + len(factor)] = factor
        if hot:
            rest[-1] = self.temperature
        return params

    @cached_property
    def _answers(self) -> _Answers:
        return self._answer(self.rows)

    def _answer(self, rows: Array) -> _Answers:
        mode, curvature = logistic.newton(rows, self.prior_sd)
        covariance = np.asarray(np.linalg.inv(curvature))
        right = special.expit(rows @ mode)
        # u = log(1 + e^{−m}) of the margin m has u″ = p(1 − p) and u‴ = p(1 − p)(1 − 2p), p = 1/(1 + e^{−m}).
        third = right * (1 - right) * (1 - 2 * right)
        spread = rows @ covariance
        leverage = (spread * rows).sum(axis=1)
        mean = mode - covariance @ (rows.T @ (third * leverage)) / 2
        skewness = -(third @ (spread * spread * spread)) / np.diag(covariance) ** 1.5
        return _Answers(mode, mean, covariance, np.asarray(skewness))

    @property
    def ready(self) -> bool:
        return "_answers" in self.__dict__

    def prepare(self, tell: Tell) -> None:
        tell("Looking at all data for the exact answer", None)
        _ = self._answers

    @property
    def mode(self) -> Array:
        return self._answers.mode

    @property
    def uncertainty(self) -> float:
        # The first term of Edgeworth's series, γ(z² − 1)φ(z)/6, is largest at z = 0.
        return float(np.abs(self._answers.skewness).max() / 6 / np.sqrt(2 * np.pi))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        made = []
        for name, mean, variance in zip(
            self.column_names, self._answers.mean, np.diag(self._answers.covariance), strict=True
        ):
            made.append(Column.gaussian(name, float(mean), float(variance)))
        return tuple(made)

    def facts(self) -> Mapping[str, str]:
        return {"Exact answers": f"an expansion at the mode, right up to a KS distance of {self.uncertainty:.2g}"}

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(f"θ{subscript(k + 1)}" for k in range(self.features))

    def log_density(self, theta: Array) -> Array:
        rows, (mode, _, covariance, _) = self.rows, self._answers
        constant = (np.linalg.slogdet(covariance)[1] + self.dim * np.log(2 * np.pi)) / 2
        lowest = logistic.energies(rows, self.prior_sd, mode)
        flat = theta.reshape(-1, self.dim)
        # One at a time: N margins of many θ would be more than memory holds.
        found = [(lowest - logistic.energies(rows, self.prior_sd, one)) / self.temperature - constant for one in flat]
        return np.array(found).reshape(theta.shape[:-1])

    tried_at = (
        {"items": 1000, "features": 2, "prior_sd": 0.1, "data_seed": 2},
        {"items": 1000, "features": 20, "prior_sd": 10.0, "data_seed": 3},
    )
    drawn_at = {"items": 500, "features": 5, "prior_sd": 1.0, "data_seed": 4}

    def textbook_draw(self, rng: np.random.Generator) -> Array:
        normals = np.array([rng.standard_normal() for _ in range(self.dim)])
        return np.asarray(self._answers.mean + np.linalg.cholesky(self._answers.covariance) @ normals)


class TemperedLargeLogistic(Divided, LargeLogistic):  # type: ignore[misc]
    """e^{−U/T} of the posterior, whose expansion at the mode is the same one in powers of T/N.

    The covariance is TU″(θ̂)⁻¹, the mean is T times as far from the mode, and the skewness is √T times as large.
    """

    potential, gradient, batch = divided(LargeLogistic)

    def _answer(self, rows: Array) -> _Answers:
        mode, mean, covariance, skewness = super()._answer(rows)
        heat = self.temperature
        return _Answers(mode, mode + heat * (mean - mode), heat * covariance, heat**0.5 * skewness)

    # Not those of the other target, whose data would be made once more.

    @property
    def lipschitz(self) -> Array:
        return logistic.lipschitz(self.rows, self.prior_sd) / self.temperature

    @property
    def lipschitz_of_each(self) -> Array:
        return logistic.lipschitz_of_each(self.rows, self.prior_sd) / self.temperature
