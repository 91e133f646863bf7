"""Dirichlet posteriors of categorical data, sparse and dense."""

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, CountVector, Real, SpecError
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MODE
from sgmcmc_lab.samplers.targets.at_temperature import AtTemperature, tempered_shape
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Array, Column, Target, subscript
from sgmcmc_lab.samplers.targets.ranges import TINY, log_range


@jit.potential
def potential(theta, out, params):
    d = theta.shape[1]
    for c in range(theta.shape[0]):
        total = theta[c].sum()
        h = total
        for j in range(d):
            alpha, count = params[j], params[d + j]
            h -= (alpha - 1) * np.log(theta[c, j])
            if count > 0:
                h -= count * (np.log(theta[c, j]) - np.log(total))
        out[c] = h


@jit.gradient
def gradient(theta, out, params):
    d = theta.shape[1]
    n = params[d : 2 * d].sum()
    for c in range(theta.shape[0]):
        total = theta[c].sum()
        for j in range(d):
            out[c, j] = 1 + n / total - (params[j] - 1 + params[d + j]) / theta[c, j]


@jit.draw
def draw(rng, out, params):
    d = out.shape[1]
    for c in range(out.shape[0]):
        for j in range(d):
            out[c, j] = rng.standard_gamma(params[j] + params[d + j])


@jit.observe
def observe_simplex(draws, n, out):
    """ω_j = θ_j / Σθ, then the odds v_j / (1 − v_j) = θ_j / Σ_{l>j} θ_l of the Rosenblatt transform.

    The remainders are reversed sums of θ: 1 − Σ_{l≤j} ω_l would cancel. Where a component and its remainder
    have both underflowed to 0, their odds are set to 1, in the middle.
    """
    d = draws.shape[2]
    for c in range(draws.shape[1]):
        for t in range(n):
            rest = 0.0
            for j in range(d - 1, -1, -1):
                x = draws[t, c, j]
                if j < d - 1:
                    out[d + j, c, t] = x / rest if rest > 0 else np.inf if x > 0 else 1.0
                rest += x
            scale = 1 / rest
            for j in range(d):
                out[j, c, t] = draws[t, c, j] * scale


class Dirichlet(Target):
    """ω | z ~ Dir(α + N) for categorical data with N_j items in category j.

    The state is θ ∈ (0, ∞)ᵈ with ω_j = θ_j / Σθ. The energy is that of the expanded-mean
    parameterisation of Patterson & Teh, which SGRLD steps: U(θ) = Σ θ_j − (α−1) log θ_j − N_j log ω_j.
    The CIR samplers make θ_j ~ Gamma(α + N_j, 1) instead. Only the scale Σθ differs; ω has the same distribution.
    """

    tex = r"U(\theta) = \sum_j \bigl(\theta_j - (\alpha-1)\log\theta_j - N_j \log\omega_j\bigr),\quad \omega_j = \theta_j / \textstyle\sum_l\theta_l"
    support = SIMPLEX
    provides = frozenset({FULL, BATCH, MODE})
    process = "cir"
    potential, gradient, draw, observe = potential, gradient, draw, observe_simplex

    dimension = Count(
        10,
        bounds=(2, 100),
        tex="d",
        label="Categories d",
        doc="The dimension of the simplex: how many categories the data may fall in.",
    )
    alpha = Real(
        0.1,
        bounds=(0.005, 100.0),
        log=True,
        tex=r"\alpha",
        label="Prior α",
        doc="The parameter of the symmetric Dirichlet prior. Small values make categories without data very small.",
    )

    @property
    def dim(self) -> int:
        return self.dimension

    def counts(self) -> NDArray[np.int64]:
        """N, (d,)."""
        raise NotImplementedError

    @property
    def n_data(self) -> int:
        """N = Σ N_j."""
        return int(self.counts().sum())

    def packed(self) -> Array:
        return np.concatenate([np.full(self.dim, self.alpha), self.counts()])

    def data(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.dim), self.counts())

    def family_at(self, temperature: float) -> "TemperedDirichlet":
        # The shape of Σθ, too, is that of d categories without data.
        tempered_shape(self, self.alpha, "α", temperature, 1e6)
        kind: Any = type(self)
        made: TemperedDirichlet = _tempered(kind).made(self, temperature)
        return made

    def start(self) -> Array:
        return np.ones(self.dim)

    @property
    def shapes(self) -> Array:
        """a = α + N, (d,)."""
        return np.asarray(self.alpha + self.counts(), dtype=float)

    @property
    def mode(self) -> Array:
        """The mean of θ_j ~ Gamma(a_j, 1), for whose density rises to infinity at 0 where a_j < 1."""
        return self.shapes

    def log_density(self, theta: Array) -> Array:
        """The density of θ under U, whose scale Σθ is Gamma(dα, 1)."""
        a, d = self.shapes, self.dim
        omega = theta / theta.sum(axis=-1, keepdims=True)
        log_dirichlet = special.gammaln(a.sum()) - special.gammaln(a).sum() + special.xlogy(a - 1, omega).sum(axis=-1)
        total = theta.sum(axis=-1)
        return log_dirichlet + stats.gamma.logpdf(total, self.packed()[:d].sum()) - (d - 1) * np.log(total)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        a = self.shapes
        rest = np.concatenate([np.cumsum(a[::-1])[::-1][1:], [0.0]])
        return tuple(share(j, float(a[j]), float(a.sum() - a[j])) for j in range(self.dim)) + tuple(
            _odds(j, float(a[j]), float(rest[j])) for j in range(self.dim - 1)
        )

    @property
    def n_values(self) -> int:
        return self.dim


def share(j: int, a: float, b: float) -> Column:
    """ω_j ~ Beta(a, b)."""
    mean = a / (a + b)
    # The smallest quantiles of a small shape are below the smallest double; log_range and max() lift them.
    lowest, low = (float(special.betaincinv(a, b, p)) for p in (1e-6, 2e-3))
    high, highest = (float(special.betainccinv(a, b, p)) for p in (1e-4, 1e-6))
    edge_low, edge_high = log_range(lowest, mean, highest)
    # The last bin ends beyond 1, so that it holds the shares that round to 1; a thousandth of the range is enough.
    edge_high = min(edge_high, edge_low**-0.001)
    return Column(
        f"ω{subscript(j + 1)}",
        edge_low,
        edge_high,
        lambda x: special.betainc(a, b, np.minimum(x, 1.0)),
        mean,
        mean * (1 - mean) / (a + b + 1),
        log=True,
        shown=(max(low, TINY), high),
    )


def _odds(j: int, a: float, b: float) -> Column:
    """ω_j / Σ_{l>j} ω_l, the odds of a Beta(a, b) share: BetaPrime(a, b), whose moments need not exist."""

    def cdf(x: Array) -> Array:
        # The share is x/(1 + x) and its complement 1/(1 + x): the smaller of the two has all its digits.
        x = np.asarray(x, dtype=float)
        small = np.minimum(x, 1.0)
        below = special.betainc(a, b, small / (1 + small))
        return np.where(x < 1, below, special.betaincc(b, a, 1 / (1 + np.maximum(x, 1.0))))

    low = max(_odds_quantile(a, b, 1e-6), _smallest_odds(b))
    high = min(1 / _odds_quantile(b, a, 1e-6), 1 / _smallest_odds(a))
    low, high = log_range(low, a / b, high)
    return Column(f"odds {j + 1}", low, high, cdf, 0.0, 1.0, log=True, odds_of=(a, b))


def _odds_quantile(a: float, b: float, p: float) -> float:
    """The quantile of BetaPrime(a, b) at a small p, at least TINY. That of the upper tail is 1/quantile(b, a, p)."""
    share = float(special.betaincinv(a, b, p))
    rest = float(special.betainccinv(b, a, p))
    return max(share / rest, TINY)


def _smallest_odds(rest: float) -> float:
    """The smallest odds of a component to a remainder ~ Gamma(rest) that doubles resolve.

    A component below TINY may have underflowed. With it go the odds above TINY/remainder: all but 1e-3 of them, or,
    where the remainder underflows too, those above √TINY. (Both shapes 0.005: 2e-3 of the odds are then misplaced.)
    """
    remainder = float(special.gammaincinv(rest, 1e-3))
    return min(TINY / max(remainder, TINY), TINY**0.5)


class SparseDirichlet(Dirichlet):
    """The SCIR paper's running example: 800, 100 and 100 data points in three of ten categories, α = 0.1."""

    key = "sparse_dirichlet"
    title = "Sparse Dirichlet"
    source = "Baker et al. 2018, section 1.3, Fig 1 and 2a"

    observed = CountVector(
        (800, 100, 100),
        max_length=100,
        max_value=1_000_000,
        tex="N",
        label="Counts N",
        doc="How many data fall in each category; the categories not named have none.",
    )

    def check(self) -> None:
        if len(self.observed) > self.dimension:
            raise SpecError("target.observed", self.observed, f"allowed are at most d = {self.dimension} counts")
        if not 1 <= sum(self.observed) <= 1_000_000:
            raise SpecError("target.observed", self.observed, "allowed is a total from 1 to 1,000,000")

    def counts(self) -> NDArray[np.int64]:
        out = np.zeros(self.dim, dtype=np.int64)
        out[: len(self.observed)] = self.observed
        return out

    tried_at = (
        {"alpha": 0.005, "dimension": 100},
        {"alpha": 0.005, "dimension": 2, "observed": (1_000_000,)},
    )
    drawn_at = {"dimension": 5, "alpha": 0.3, "observed": (4, 2)}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        counts = [*self.observed, *[0] * (self.dimension - len(self.observed))]
        return [rng.standard_gamma(self.alpha + n) for n in counts]

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": [*self.observed, *[0] * (self.dimension - len(self.observed))]}


class DenseDirichlet(Dirichlet):
    """The SCIR paper's dense example: 1000 data spread evenly over ten categories, α = 0.1."""

    key = "dense_dirichlet"
    title = "Dense Dirichlet"
    source = "Baker et al. 2018, section 2.2, Fig 2b"

    items = Count(
        1000,
        bounds=(1, 1_000_000),
        log=True,
        tex="N",
        label="Data N",
        doc="How many data there are; they are spread evenly over the categories.",
    )

    def counts(self) -> NDArray[np.int64]:
        each, more = divmod(self.items, self.dim)
        return np.full(self.dim, each, dtype=np.int64) + (np.arange(self.dim) < more)

    tried_at = (
        {"alpha": 0.005, "dimension": 100, "items": 1_000_000},
        {"alpha": 100.0, "dimension": 100, "items": 1},
    )
    drawn_at = {"dimension": 4, "alpha": 0.7, "items": 10}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        counts = [self.items // self.dimension + (j < self.items % self.dimension) for j in range(self.dimension)]
        return [rng.standard_gamma(self.alpha + n) for n in counts]

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        n, d = self.items, self.dimension
        return {"N": [n // d + (j < n % d) for j in range(d)]}


class TemperedDirichlet(AtTemperature, Dirichlet):
    """e^{−U/T} of a Dirichlet posterior, of φ = θ/T: ω ~ Dir(α′ + N/T) with α′ = 1 + (α − 1)/T, where that is positive.

    In φ the energy U/T is that of the prior α′ and of N_j/T data in category j, up to a constant; ω is the same. A
    minibatch estimates the N_j/T. CIR makes φ_j ~ Gamma(α′ + N_j/T, 1): its transition takes any shape above 0, so that
    it is exact here, too. SCIR's shape is α′ + N̂_j/T, whose mean is right and whose variance is 1/T² of that at T = 1.
    """

    def packed(self) -> Array:
        """α′ and N/T."""
        alpha = 1 + (self.alpha - 1) / self.temperature
        return np.concatenate([np.full(self.dim, alpha), self.counts() / self.temperature])

    @property
    def shapes(self) -> Array:
        """α′ + N/T, (d,)."""
        return np.asarray(self.packed().reshape(2, -1).sum(axis=0))

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        return [rng.standard_gamma(a) for a in self.shapes]


@cache
def _tempered(kind: Any) -> Any:
    """The class of such a target at any temperature other than 1."""
    return type(f"Tempered{kind.__name__}", (TemperedDirichlet, kind), {"__doc__": TemperedDirichlet.__doc__})
