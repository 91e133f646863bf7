"""Gates for random numbers: z-tests with stated false-alarm rates, and the Monte Carlo errors they need.

A test fails where a measured mean is further from the expected one than chance explains. How far that is follows from
the rate of false alarms that the test states, shared among all its comparisons (Bonferroni). The seeds are fixed, so
a test that passes goes on passing; the rate says how likely it was that a right sampler failed when it was written.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SFC64, Generator
from numpy.typing import NDArray
from scipy import optimize, stats

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import first_state
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import Sampler
from sgmcmc_lab.samplers.kernels.base import KEPT, NO_MOMENTUM
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.targets.base import Column, Target

Array = NDArray[np.float64]

LEVELS = np.arange(1, 32) / 32
"""The levels at which :func:`ks_verdict` compares an empirical CDF with the exact one."""


class Verdict(NamedTuple):
    """The outcome of a test: ``ok`` is what it asserts, the rest is for the message."""

    name: str
    measured: float
    expected: float
    error: float
    allowance: float
    z: float
    limit: float

    @property
    def ok(self) -> bool:
        return bool(np.isfinite(self.measured)) and self.z <= self.limit

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.measured:.6g}, expected {self.expected:.6g} ± {self.error:.2g}"
            f"{f' + bias {self.allowance:.2g}' if self.allowance else ''} (z = {self.z:.2f}, limit {self.limit:.2f})"
        )


def critical(false_alarm: float, n_tests: int = 1, freedom: float = np.inf) -> float:
    """The two-sided limit of |z| at which ``n_tests`` tests together raise a false alarm at most this often.

    With ``freedom`` the limit is Student's, for an error that was estimated from that many chains less one.
    """
    return float(stats.t.isf(false_alarm / n_tests / 2, freedom))


def z_verdict(
    name: str,
    measured: float,
    expected: float,
    error: float,
    false_alarm: float = 1e-4,
    n_tests: int = 1,
    allowance: float = 0.0,
    freedom: float = np.inf,
) -> Verdict:
    """|measured − expected|, less an allowance for a known bias, in units of its standard error."""
    z = max(abs(measured - expected) - allowance, 0.0) / max(error, 1e-300)
    return Verdict(name, measured, expected, error, allowance, z, critical(false_alarm, n_tests, freedom))


def mean_and_error(values: Array) -> tuple[float, float]:
    """The mean of ``values`` (chains, draws) and its standard error, from the spread of the chains' means.

    Right for any autocorrelation, as long as the chains are independent.
    """
    means = np.asarray(values).reshape(len(values), -1).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def batch_mean_and_error(values: Array, n_batches: int = 32) -> tuple[float, float]:
    """As :func:`mean_and_error` where there are few chains: each is cut into batches longer than its memory."""
    length = values.shape[1] // n_batches
    cut = values[:, : length * n_batches].reshape(values.shape[0] * n_batches, length)
    return mean_and_error(cut)


def mean_verdict(
    name: str,
    values: Array,
    expected: float,
    false_alarm: float = 1e-4,
    n_tests: int = 1,
    allowance: float = 0.0,
) -> Verdict:
    """Whether ``values`` (chains, draws) have the expected mean; the error is that across chains."""
    mean, error = mean_and_error(values)
    return z_verdict(name, mean, expected, error, false_alarm, n_tests, allowance, len(values) - 1)


def ks_verdict(
    name: str,
    uniforms: Array,
    false_alarm: float = 1e-4,
    n_tests: int = 1,
    allowance: Array | float = 0.0,
) -> Verdict:
    """Whether ``uniforms`` = F(values) (chains, draws) are uniform: the KS comparison with errors of dependent draws.

    At each of 31 levels u the share of draws below it is compared with u. Its error is that across chains, and at
    least that of independent draws. The worst level decides, at a false-alarm rate shared among the levels.
    """
    n_chains, n_draws = uniforms.shape
    places = np.searchsorted(LEVELS, uniforms, side="left") + np.arange(n_chains)[:, None] * (len(LEVELS) + 1)
    counts = np.bincount(places.ravel(), minlength=n_chains * (len(LEVELS) + 1)).reshape(n_chains, -1)
    shares = counts.cumsum(axis=1)[:, :-1] / n_draws
    measured = shares.mean(axis=0)
    error = np.maximum(shares.std(axis=0, ddof=1), np.sqrt(LEVELS * (1 - LEVELS) / n_draws)) / np.sqrt(n_chains)
    allowed = np.broadcast_to(allowance, LEVELS.shape)
    z = np.maximum(np.abs(measured - LEVELS) - allowed, 0.0) / error
    k = int(z.argmax())
    limit = critical(false_alarm, n_tests * len(LEVELS), n_chains - 1)
    bad = float("nan") if np.isnan(uniforms).any() else float(measured[k])
    return Verdict(f"{name} at level {LEVELS[k]:.3f}", bad, LEVELS[k], error[k], float(allowed[k]), float(z[k]), limit)


def fast_cdf(column: Column) -> Callable[[Array], Array]:
    """The CDF of a column by interpolation in a table, for 1e5 draws.

    The table is dense about the mean; that of values over many powers of ten has, of 4001 of the draws themselves, the
    two on either side of each of :data:`LEVELS`: what is compared there is the same as with all, and a tenth as dear.
    """
    if column.log:

        def between(x: Array) -> Array:
            knots = np.unique(np.quantile(x, np.linspace(0, 1, 4001), method="nearest"))
            low, high = np.zeros(len(LEVELS), dtype=int), np.full(len(LEVELS), len(knots) - 1)
            while (high - low > 1).any():
                middle = (low + high) // 2
                below = column.cdf(knots[middle]) <= LEVELS
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            near = knots[np.unique(np.concatenate([[0, len(knots) - 1], low, high]))]
            return np.interp(x, near, column.cdf(near))

        return between
    grid, table = _table(column)
    return lambda x: np.interp(x, grid, table)


@lru_cache(maxsize=64)
def _table(column: Column) -> tuple[Array, Array]:
    """Places dense about the mean and the CDF there, which all samplers on a target share."""
    reach = max(column.high - column.mean, column.mean - column.low)
    grid = column.mean + reach * np.sinh(np.linspace(-7, 7, 4001)) / np.sinh(7)
    return grid, column.cdf(grid)


def failures(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts that are not ok, as sentences: a test asserts that there are none, for a fault, some."""
    return [str(v) for v in verdicts if not v.ok]


def power_of(x: Array, y: Array, errors: Array) -> tuple[float, float]:
    """The p of y = c xᵖ by weighted least squares, and its standard error. No single y needs to be significant."""
    log_x, sign = np.log(x), np.sign(y[np.argmax(np.abs(y) / errors)])
    start = np.polyfit(log_x, np.log(np.maximum(sign * y, errors)), 1)
    (p, _), covariance = optimize.curve_fit(
        lambda u, p, log_c: sign * np.exp(p * u + log_c), log_x, y, start, errors, absolute_sigma=True
    )
    return float(p), float(np.sqrt(covariance[0, 0]))


def exact_start(run: engine.Run, seed: int = 12345) -> None:
    """Put every chain of a fresh run at an exact draw of its target, with a fresh momentum.

    A sampler with the right invariant law then stays in it from the first step on, however slowly it mixes.
    """
    run.position = _starts(run.target, seed, len(run.position)).copy()
    rng = Generator(SFC64(seed))
    dim, sampler = run.target.dim, run.sampler
    normals = rng.standard_normal(run.momentum.shape)
    run.momentum[:] = first_state(sampler, run.target, run.position, rng)[1]
    # Where the first values are no momentum but a count, or known from θ, they are already those of the exact draw.
    known = sampler.momentum == NO_MOMENTUM and (run.momentum.any() or not sampler.stationary_start)
    if not known and (not run.momentum[:, :dim].any() or (sampler.moving and sampler.momentum == KEPT)):
        run.momentum[:, :dim] = normals[:, :dim]
    if getattr(sampler, "thermostat", False) is True:
        # H has (m/2)(ξ − C)², or with a ξ for each coordinate half of each of the squares. Unknown noise of variance V
        # in the gradient moves the mean by Vε/2.
        noise, behind = run.gradient.noise(), normals[:, dim:]
        mean = sampler.friction + (noise.variance - noise.correction) * sampler.step_size / 2
        run.momentum[:, dim:] = mean + behind / np.sqrt(run.manifold.dim / behind.shape[1])


@lru_cache(maxsize=4)
def _starts(target: Target, seed: int, n: int) -> Array:
    """Exact draws, which all runs on one target object start from."""
    return target.sample(seed, n)


def uncounted(run: engine.Run) -> None:
    """From here on the run keeps no statistics: they take a third of the time where a test takes the draws itself."""
    run.spec = replace(run.spec, burn_in=10**9)


def draws_of(run: engine.Run, n_kept: int, every: int) -> Array:
    """The next draws of θ: (chains, n_kept, dim), of every ``every``-th step."""
    uncounted(run)
    out = np.empty((len(run.position), n_kept, run.target.dim))
    for k in range(n_kept):
        run.advance(every)
        out[:, k] = run.position
        if run.divergence is not None:
            raise AssertionError(run.divergence.message)
    return out


def put_sampler(run: engine.Run, sampler: Sampler) -> None:
    """A sampler object of the test's own in place of the run's: a planted fault."""
    jit.prepare([sampler.advance])
    run.sampler = sampler
    run.sampler_params = sampler.packed(run.target)


def start_with(spec: RunSpec, sampler: Sampler | None = None) -> engine.Run:
    """A run of ``spec``, where one is given with another sampler object."""
    run = engine.Run(spec)
    if sampler is not None:
        put_sampler(run, sampler)
    return run


def at_rest_in_its_law(spec: RunSpec, seed: int = 7) -> engine.Run:
    """A run whose chains start from exact draws, with velocities of their law."""
    run = engine.Run(spec)
    run.position = run.target.sample(seed, len(run.position))
    run.momentum = first_state(run.sampler, run.target, run.position, Generator(SFC64(seed)))[1]
    return run


def followed(run: engine.Run, burn_in: int, kept: int, every: int) -> tuple[Array, Array, Array]:
    """The columns (chains, kept, columns), ‖v‖²/m and what is behind v, of every ``every``-th step."""
    d, m = run.target.dim, run.manifold.dim
    run.advance(burn_in)
    x, temperature, rest = [], [], []
    for _ in range(kept):
        run.advance(every)
        x.append(run.position.copy())
        temperature.append((run.momentum[:, :d] ** 2).sum(axis=1) / m)
        rest.append(run.momentum[:, d:].copy())
    assert run.divergence is None
    return run.target.values(np.stack(x, axis=1)), np.stack(temperature, axis=1), np.stack(rest, axis=1)


@lru_cache(maxsize=4)
def _backward_error(cls: type[Target], values: tuple[tuple[str, Any], ...], n: int, seed: int) -> tuple[Array, ...]:
    """Exact draws θ (n, dim), and there |∇H|²/4 − ΔH/2 and H/2, each less its mean; kept for the next sampler."""
    target = cls(**dict(values))
    theta = target.sample(seed, n)
    f = (target.gradient_at(theta) ** 2).sum(axis=1) / 4
    width = 1e-4
    for i in range(target.dim):
        step = np.zeros(target.dim)
        step[i] = width
        f -= (target.gradient_at(theta + step) - target.gradient_at(theta - step))[:, i] / (2 * width) / 2
    energy = -target.log_density(theta) / 2
    return theta, f - f.mean(), energy - energy.mean()


def first_order_bias(target: Target, noise: float = 0.0, n: int = 20_000, seed: int = 99) -> Callable[[Array], float]:
    """The bias per ε of Euler–Maruyama's invariant law, as a function that takes g(draws) and returns d E g/dε.

    Weak backward error analysis of θ ← θ − ε∇H + √(2ε) ξ: the invariant density is π(1 + ε f + O(ε²)) with
    f = |∇H|²/4 − ΔH/2 (+ (V/2)(H − E H) where noise of variance V in the gradient heats the chain), so the bias is
    ε Cov(g, f). On N(0, σ²) that is Var θ = σ²(1 + ε/2σ²), as it must be. The covariance is taken over exact draws.
    """
    values = tuple((name, getattr(target, name)) for name, _ in declared(type(target)))
    theta, without, energy = _backward_error(type(target), values, n, seed)
    f = without + noise * energy

    def bias(g: Array, rows: slice = slice(None)) -> float:
        return float((g * f[rows]).mean())

    bias.theta = theta  # type: ignore[attr-defined]
    return bias


def apart(target: Target, theta: Array, known: float) -> float:
    """The largest |z| of means and variances, and of the CDF at the quartiles, of independent draws (n, dim).

    The answers have an error of their own, of so many ``known`` draws.
    """
    values = []
    for k, column in enumerate(target.columns):
        x = theta[:, k]
        values += [(x - column.mean), (x - column.mean) ** 2 - column.variance]
        u = column.cdf(x)
        values += [(u < level) - level for level in (0.25, 0.5, 0.75)]
    error = np.sqrt(1 / len(theta) + 1 / known)
    return max(float(abs(v.mean()) / (max(v.std(), 1e-9) * error)) for v in values)
