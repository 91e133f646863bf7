"""Coupled chains and unbiased estimates: ``python -m sgmcmc_lab.samplers.diagnostics.coupling``.

Two chains X and Y of the same kernel make a pair: X is L steps ahead, and each further step draws both from one
coupling of their transitions, so that X_t and Y_{t−L} meet at a time τ and stay together. Then

    H_{k:m} = 1/(m−k+1) [Σ_{t=k}^m h(X_t) + Σ_{t=k+L}^{τ−1} v_t (h(X_t) − h(Y_{t−L}))],
    v_t = ⌊(t − k)/L⌋ − ⌈max(L, t − m)/L⌉ + 1,

has the mean E h exactly, however short the chains are (Jacob, O'Leary & Atchadé 2020, section 2; v_t for a lag L:
Biswas, Jacob & Vanetti 2019). For L = 1 it is v_t = min(t − k, m − k + 1), the weight min(1, (t − k)/(m − k + 1)) of
the paper times m − k + 1. It is the mean over l from k to m of
H_l = h(X_l) + Σ_{j≥1} (h(X_{l+jL}) − h(Y_{l+(j−1)L})), a telescoping sum of expectations.

The proposals N(a, s²I) and N(b, s²I) of a pair come from the reflection-maximal coupling (Bou-Rabee, Eberle & Zimmer
2020): with z = (a − b)/s and ξ ~ N(0, I) they are the same point a + sξ with probability min(1, φ(ξ + z)/φ(ξ)), and
else b + s(ξ − 2(eᵀξ)e), e = z/‖z‖. One uniform decides on both acceptances: chains that have met stay together.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import LINE, Array, Target

KERNELS = ("rwm", "mala")
"""The samplers whose chains are coupled here."""
SPREAD = 2.0
"""Chains begin at N(start, (2 sd)²), with the standard deviations of the target's coordinates."""
MOST_STEPS = 100_000
"""The most steps of a pair: chains that have not met by then are too far apart for the kernel."""
PATH = 400
"""Steps of the pairs that are kept for a picture."""


def refusal(target: Target, sampler: Sampler) -> str:
    """Why chains are not coupled here; empty where they are."""
    if sampler.key not in KERNELS:
        return f"chains of {SAMPLERS[KERNELS[0]].title} or {SAMPLERS[KERNELS[1]].title} are coupled"
    if target.support != LINE or target.whitening is not None or not target.of_coordinates:
        return "chains are coupled where θ is any vector of numbers"
    return ""


def first_states(target: Target, rng: Generator, n: int) -> Array:
    """Draws of the distribution from which every chain begins, (n, dim)."""
    sd = np.sqrt([column.variance for column in target.columns[: target.dim]])
    return np.asarray(target.start() + SPREAD * sd * rng.standard_normal((n, target.dim)))


@dataclass
class Pairs:
    """A batch of pairs, some steps at a time. All of them are counted when all are over: a batch that left out the slow
    ones would be biased.
    """

    target: Target
    sampler: Sampler
    """A sampler of :data:`KERNELS`."""
    n: int
    lag: int = 1
    k: int = 0
    m: int = 0
    seed: int = 1
    t: int = 0
    """Steps that the chains X have made."""

    def __post_init__(self) -> None:
        self.rng = Generator(SFC64(self.seed))
        self.x, self.y = (first_states(self.target, self.rng, self.n) for _ in range(2))
        self._begin()

    def _begin(self) -> None:
        self.meeting: NDArray[np.int64] = np.zeros(self.n, dtype=np.int64)
        """τ of each pair; 0 before it has met."""
        self.sums = np.zeros((self.n, len(self.target.moments)))
        """(m − k + 1)H_{k:m} of each moment, as far as the chains are."""
        self.paths: list[Array] = []
        """X and Y after each of the first steps, (2, n, dim); Y is ``lag`` steps behind."""
        self._count()

    @property
    def done(self) -> bool:
        """Whether all pairs have met, and made m steps."""
        return bool(self.t >= self.m and (self.meeting > 0).all())

    @property
    def estimates(self) -> Array:
        """H_{k:m} of each moment, (n, moments)."""
        return self.sums / (self.m - self.k + 1)

    def advance(self, steps: int) -> bool:
        """At most so many steps; whether the batch is over. Raises :class:`SpecError` where chains do not meet."""
        for _ in range(steps):
            if self.done:
                break
            if self.t >= MOST_STEPS:
                left = int((self.meeting == 0).sum())
                raise SpecError(
                    "step_size", self.scale, f"{left} of {self.n} pairs do not meet in {MOST_STEPS:,} steps"
                )
            self.step()
        return self.done

    def step(self) -> None:
        """X_{t+1} and, from the lag on, Y_{t+1−L} from one coupling."""
        if self.t < self.lag:
            self.x, _ = self._moved(self.x, self.x)
        else:
            self.x, self.y = self._moved(self.x, self.y)
        self.t += 1
        self._count()

    @property
    def scale(self) -> float:
        """The kernel's step."""
        return float(getattr(self.sampler, "step_size"))  # noqa: B009

    def _count(self) -> None:
        t, k, m, lag = self.t, self.k, self.m, self.lag
        if len(self.paths) < PATH:
            self.paths.append(np.stack([self.x, self.y]))
        if t >= lag:
            met = (self.meeting == 0) & (self.x == self.y).all(axis=1)
            self.meeting[met] = t
        apart = self.meeting == 0
        if k <= t <= m:
            self.sums += self._moments(self.x)
        if t >= k + lag and apart.any():
            weight = (t - k) // lag - ceil(max(lag, t - m) / lag) + 1
            self.sums[apart] += weight * (self._moments(self.x[apart]) - self._moments(self.y[apart]))

    def _moments(self, theta: Array) -> Array:
        values = self.target.values(theta)
        return np.stack([moment.function(values) for moment in self.target.moments], axis=-1)

    def _moved(self, x: Array, y: Array) -> tuple[Array, Array]:
        """A step of both chains by the kernel: each by itself moves as a chain alone."""
        langevin = self.sampler.key == "mala"
        s = sqrt(2 * self.scale) if langevin else self.scale
        centres = self._centre(x), self._centre(y)
        proposed = self.proposals(centres[0], centres[1], s)
        coins = self.coins()
        out = []
        for theta, centre, new, u in zip((x, y), centres, proposed, coins, strict=True):
            energy = self.target.energies_at(new)
            ratio = self.target.energies_at(theta) - energy
            if langevin:
                ratio += (((new - centre) ** 2).sum(axis=1) - ((theta - self._centre(new)) ** 2).sum(axis=1)) / (
                    2 * s * s
                )
            with np.errstate(over="ignore", invalid="ignore"):
                accepted = (u < np.exp(ratio)) & np.isfinite(energy)
            out.append(np.where(accepted[:, None], new, theta))
        return out[0], out[1]

    def _centre(self, theta: Array) -> Array:
        """The mean of a proposal."""
        return theta - self.scale * self.target.gradient_at(theta) if self.sampler.key == "mala" else theta

    def proposals(self, a: Array, b: Array, s: float) -> tuple[Array, Array]:
        """From N(a, s²I) and N(b, s²I), the same point as often as possible."""
        z = (a - b) / s
        normal, u = self.rng.standard_normal(a.shape), self.rng.random(len(a))
        length = np.sqrt((z**2).sum(axis=1))
        same = np.log(u) < -((normal * z).sum(axis=1) + length**2 / 2)
        e = z / np.where(length > 0, length, 1.0)[:, None]
        reflected = normal - 2 * (e * normal).sum(axis=1)[:, None] * e
        first = a + s * normal
        # Where the means are the same, so are the proposals, to the last bit.
        return first, np.where((same | (length == 0))[:, None], first, b + s * reflected)

    def coins(self) -> tuple[Array, Array]:
        """The uniforms that accept: the same for both."""
        u = self.rng.random(self.n)
        return u, u


PILOT = 50
"""Pairs whose meeting times choose k and m."""


@dataclass
class Coupling:
    """Meeting times and unbiased estimates of a target's moments, batch by batch.

    A first batch of pairs tells how long chains take to meet: k is the largest of its meeting times, and m = 5k. Pairs
    that meet after k have large estimates: at a smaller k these few have most of the variance. The first batch gives
    meeting times and no estimate, so that k and m do not depend on those that do.
    """

    target: Target
    sampler: Sampler
    batch: int = PILOT
    lag: int = 1
    seed: int = 1
    meeting: list[NDArray[np.int64]] = field(default_factory=list)
    """τ − L of each batch: the steps that both chains made until they met."""
    estimates: list[Array] = field(default_factory=list)
    """H_{k:m} of each batch but the first, (pairs, moments)."""
    paths: Array = field(default_factory=lambda: np.zeros((0, 2, 0, 1)))
    """The first steps of the last batch, (steps, 2, pairs, dim)."""
    lasted: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Their meeting times τ."""

    def __post_init__(self) -> None:
        self.k = self.m = 0
        self._pairs = Pairs(self.target, self.sampler, self.batch, self.lag, seed=self.seed)

    @property
    def n(self) -> int:
        """Estimates."""
        return sum(map(len, self.estimates))

    def advance(self, steps: int) -> bool:
        """Some steps of the batch that is going on; whether it is over then. Raises :class:`SpecError`."""
        now = self._pairs
        if not now.advance(steps):
            return False
        if self.meeting:
            self.estimates.append(now.estimates)
        else:
            self.k = int(now.meeting.max())
            self.m = 5 * self.k
        self.meeting.append(now.meeting - self.lag)
        self.paths, self.lasted = np.array(now.paths), now.meeting
        seed = self.seed + len(self.meeting) * 1_000_003
        self._pairs = Pairs(self.target, self.sampler, self.batch, self.lag, self.k, self.m, seed)
        return True

    def found(self) -> list[tuple[str, float, float, float]]:
        """The name of each moment, the mean of its estimates, the standard error, and the exact value."""
        each = np.concatenate(self.estimates)
        errors = each.std(axis=0, ddof=1) / sqrt(len(each))
        rows = zip(self.target.moments, each.mean(axis=0), errors, strict=True)
        return [(moment.name, float(mean), float(error), moment.exact) for moment, mean, error in rows]


def couple(spec: RunSpec, pairs: int, lag: int = 1, seed: int = 1) -> Coupling:
    """At least so many estimates with the target and the sampler of ``spec``. Raises :class:`SpecError`."""
    target, sampler = spec.make_target(), spec.make_sampler()
    why = refusal(target, sampler)
    if why:
        raise SpecError("sampler", spec.sampler.key, why)
    made = Coupling(target, sampler, lag=lag, seed=seed)
    while made.n < pairs:
        made.advance(MOST_STEPS + 1)
    return made


def as_text(found: Coupling) -> str:
    """The meeting times and a line for each moment."""
    times = np.concatenate(found.meeting)
    middle, late = np.quantile(times, [0.5, 0.95], method="higher")
    lines = [f"{found.n:,} pairs, k = {found.k}, m = {found.m}; they meet after {middle} steps (median), {late} (95 %)"]
    lines += [
        f"{name:<20} {mean:10.4f} ± {error:.4f}, exactly {exact:.4f}" for name, mean, error, exact in found.found()
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print meeting times and unbiased estimates of a target's moments."""
    parser = Parser(prog="python -m sgmcmc_lab.samplers.diagnostics.coupling", description=__doc__)
    parser.add_argument("target", help="a target as in a link, double_well or gaussian(mean:1)")
    parser.add_argument("--by", default="mala", metavar="HOW", help="a sampler as in a link, rwm(step_size:0.5)")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--lag", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        for name in ("pairs", "lag"):
            if getattr(options, name) < 1:
                raise SpecError(name, getattr(options, name), "allowed are 1 or more")
        first = Experiment.of("gaussian", {"mala": {}})
        experiment, messages = Experiment.from_query(f"target={options.target}&lane={options.by}", first)
        if messages:
            raise SpecError("target", options.target, messages[0])
        print(as_text(couple(experiment.runs()[0], options.pairs, options.lag, options.seed)))
    except SpecError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
