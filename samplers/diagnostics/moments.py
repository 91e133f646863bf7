"""The moments of SCIR: theory (Baker et al. 2018, section 3) and an ensemble of many chains to hold against it.

CIR is dθ = (a − θ)dt + √(2θ)dW. SCIR replaces a in each step of length h by an unbiased estimate â.
"""

from dataclasses import dataclass, replace
from math import exp, expm1, log, sqrt, tanh
from typing import Any

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.targets.base import Array


@jit.helper
def cir_mean_at(a, theta0, t):
    return theta0 * exp(-t) - a * expm1(-t)


@jit.helper
def cir_variance_at(a, theta0, t):
    gone = -expm1(-t)
    return 2 * theta0 * exp(-t) * gone + a * gone**2


@jit.reading(types.void(jit.float64, jit.float64, jit.vector, jit.vector))
def cir_means(a, theta0, t, out):
    """:func:`cir_mean` at times ``t`` (n,), out (n,)."""
    for i in range(t.shape[0]):
        out[i] = cir_mean_at(a, theta0, t[i])


@jit.reading(types.void(jit.float64, jit.float64, jit.float64, jit.vector, jit.float64, jit.vector))
def scir_variances(a, theta0, h, steps, var_a_hat, out):
    """:func:`scir_variance` after ``steps`` (n,) steps, out (n,)."""
    for i in range(steps.shape[0]):
        t = h * steps[i]
        out[i] = cir_variance_at(a, theta0, t) - expm1(-2 * t) * tanh(h / 2) * var_a_hat


@jit.reading(types.void(jit.float64, jit.float64, jit.float64, jit.float64, jit.vector))
def scir_variances_cv(a, theta0, h, var_n_hat, out):
    """:func:`scir_variance_cv`, out (steps + 1,)."""
    out[0] = 0.0
    for k in range(out.shape[0] - 1):
        mean = cir_mean_at(a, theta0, h * k)
        noise = expm1(-h) ** 2 * var_n_hat * (out[k] + (mean - a) ** 2) / a**2
        out[k + 1] = exp(-2 * h) * out[k] + cir_variance_at(a, mean, h) + noise


@jit.reading(types.void(jit.float64, jit.float64, jit.float64, jit.vector, jit.matrix))
def geometric_ou_moments(mu, sigma, theta0, t, out):
    """:func:`geometric_ou` at times ``t`` (n,), out (2, n)."""
    for i in range(t.shape[0]):
        spread = -(sigma**2) * expm1(-2 * t[i])
        out[0, i] = exp(mu + (log(theta0) - mu) * exp(-t[i]) + spread / 2)
        out[1, i] = out[0, i] ** 2 * expm1(spread)


@jit.reading(types.void(jit.vector, jit.float64, jit.float64, jit.float64, jit.vector))
def cir_mgfs(s, a, theta0, t, out):
    """:func:`cir_mgf` at each s (n,), out (n,)."""
    for i in range(s.shape[0]):
        base = 1 + s[i] * expm1(-t)
        out[i] = base**-a * exp(theta0 * s[i] * exp(-t) / base)


@jit.helper
def log_weights(n_data, count, batch_size, replacement, out):
    """log P(B = b) of b = 0 … batch_size, up to a constant, from the likeliest b to either side; returns log Σ e^out.

    B ~ Binomial(batch_size, count/n_data), or hypergeometric without replacement.
    """
    n, rest = batch_size, n_data - count
    if replacement:
        low, high = (0 if rest > 0 else n), (n if count > 0 else 0)
    else:
        low, high = max(0, n - rest), min(n, count)
    likeliest = min(max(int((n + 1.0) * count / n_data), low), high)
    out[:] = -np.inf
    out[likeliest] = 0.0
    for side in range(2):
        value = 0.0
        for step in range(high - likeliest if side == 0 else likeliest - low):
            # The ratio of the weights of b + 1 and b.
            b = likeliest + step if side == 0 else likeliest - step - 1
            ratio = (n - b) / (b + 1.0) * (count / rest if replacement else (count - b) / (rest - n + b + 1.0))
            value += log(ratio) if side == 0 else -log(ratio)
            out[b + 1 if side == 0 else b] = value
    total = 0.0
    for b in range(n + 1):
        total += exp(out[b])
    return log(total)


@jit.reading(
    types.void(
        jit.vector,
        jit.float64,
        jit.float64,
        jit.float64,
        jit.int64,
        jit.int64,
        jit.int64,
        jit.int64,
        jit.int64,
        jit.float64,
        jit.vector,
        jit.vector,
    )
)
def scir_mgfs_expected(s, alpha, theta0, h, steps, n_data, count, batch_size, replacement, heat, weights, out):
    """:func:`scir_mgf_expected` at each s (n,), out (n,); weights (batch_size + 1,) is overwritten."""
    norm = log_weights(n_data, count, batch_size, replacement != 0, weights)
    t, each = h * steps, n_data / batch_size / heat
    for i in range(s.shape[0]):
        total = theta0 * s[i] * exp(-t) / (1 + s[i] * expm1(-t))
        for m in range(1, steps + 1):
            slope = log((1 + s[i] * expm1(-h * m)) / (1 + s[i] * expm1(-h * (m - 1))))
            highest, terms = -np.inf, 0.0
            for b in range(batch_size + 1):
                highest = max(highest, weights[b] - slope * (alpha + each * b))
            for b in range(batch_size + 1):
                terms += exp(weights[b] - slope * (alpha + each * b) - highest)
            total += highest + log(terms) - norm
        out[i] = exp(total)


@jit.reading(types.void(jit.matrix, jit.matrix))
def spread_of_chains(values, out):
    """Mean, its standard error, variance and its standard error over chains (n, dim), out (4, dim)."""
    n, dim = values.shape
    out[:] = 0.0
    for c in range(n):
        for j in range(dim):
            out[0, j] += values[c, j]
    for j in range(dim):
        out[0, j] /= n
    for c in range(n):
        for j in range(dim):
            square = (values[c, j] - out[0, j]) ** 2
            out[2, j] += square
            out[3, j] += square**2
    for j in range(dim):
        out[2, j] /= max(n - 1, 1)
        left = out[3, j] / n - out[2, j] ** 2 * (n - 3) / max(n - 1, 1)
        out[1, j], out[3, j] = sqrt(out[2, j] / n), sqrt((0.0 if left < 0 else left) / n)


@jit.reading(types.void(jit.matrix, jit.matrix))
def add_batch(rows, sums):
    """Add a batch of chains to sums (4, n): its means, their squared errors, its variances, their squared errors."""
    for i in range(rows.shape[1]):
        sums[0, i] += rows[0, i]
        sums[1, i] += rows[1, i] ** 2
        sums[2, i] += rows[2, i]
        sums[3, i] += rows[3, i] ** 2


@jit.reading(types.void(jit.matrix, jit.int64, jit.matrix))
def mean_of_batches(sums, batches, out):
    """Mean, its standard error, variance and its standard error, out (4, n), of the sums of :func:`add_batch`."""
    for i in range(sums.shape[1]):
        out[0, i], out[1, i] = sums[0, i] / batches, sqrt(sums[1, i]) / batches
        out[2, i], out[3, i] = sums[2, i] / batches, sqrt(sums[3, i]) / batches


@jit.reading(types.void(jit.vector, jit.matrix, jit.int64, jit.int64, jit.cube))
def add_exponentials(s, position, j, row, sums):
    """Add Σ e^{sθ_j} and Σ e^{2sθ_j} over chains (n, dim) to row ``row`` of sums (2, rows, values of s)."""
    for i in range(s.shape[0]):
        once = twice = 0.0
        for c in range(position.shape[0]):
            value = exp(s[i] * position[c, j])
            once += value
            twice += value * value
        sums[0, row, i] += once
        sums[1, row, i] += twice


@jit.reading(types.void(jit.cube, jit.int64, jit.cube))
def mean_of_exponentials(sums, chains, out):
    """Means and their standard errors, out (2, rows, values of s), of the sums of :func:`add_exponentials`."""
    for row in range(sums.shape[1]):
        for i in range(sums.shape[2]):
            mean, square = sums[0, row, i] / chains, sums[1, row, i] / chains
            left = square - mean**2
            out[0, row, i], out[1, row, i] = mean, sqrt((0.0 if left < 0 else left) / chains)


def _along(reading: Any, x: ArrayLike, *before: float, after: tuple[Any, ...] = ()) -> Array:
    """The values of a reading at each x, in the shape of x."""
    jit.prepare([reading])
    at = np.array(x, dtype=np.float64)
    out = np.empty(at.size)
    reading(*before, at.ravel(), *after, out)
    return out.reshape(at.shape)[()]


def cir_mean(a: float, theta0: float, t: float | Array) -> Array:
    """E θ_t = θ₀e^{−t} + a(1 − e^{−t}): of CIR, and of SCIR too (Theorem 3.1)."""
    return _along(cir_means, t, a, theta0)


def cir_variance(a: float, theta0: float, t: float | Array) -> Array:
    """Var θ_t = 2θ₀(e^{−t} − e^{−2t}) + a(1 − e^{−t})²."""
    return _along(scir_variances, t, a, theta0, 1.0, after=(0.0,))


def geometric_ou(mu: float, sigma: float, theta0: float, t: Array) -> tuple[Array, Array]:
    """Mean and variance of log-normal θ_t (n,) each, of dX = −(X − μ)dt + √2σdW of X = log θ."""
    jit.prepare([geometric_ou_moments])
    out = np.empty((2, len(t)))
    geometric_ou_moments(mu, sigma, theta0, np.array(t, dtype=np.float64), out)
    return out[0], out[1]


def var_a_hat(n_data: int, count: int, batch_size: int, replacement: bool) -> float:
    """Var â_j = N²p(1 − p)/n with p = N_j/N; without replacement times (N − n)/(N − 1)."""
    p = count / n_data
    variance = n_data**2 * p * (1 - p) / batch_size
    return variance if replacement else variance * (n_data - batch_size) / max(n_data - 1, 1)


def scir_variance(a: float, theta0: float, h: float, steps: int | Array, var_a_hat: float) -> Array:
    """Var θ after M steps: CIR's at t = Mh, plus (1 − e^{−2Mh})·(1 − e^{−h})/(1 + e^{−h})·Var â (Corollary 3.2)."""
    return _along(scir_variances, steps, a, theta0, h, after=(var_a_hat,))


def scir_variance_cv(a: float, theta0: float, h: float, steps: int, var_n_hat: float) -> Array:
    """Var θ after 0, 1, … steps with control variates at a, where no â is clipped, (steps + 1,).

    â has the mean a and, given θ, the variance (1 − θ/a)²·Var N̂, so that one step makes of the variance v about the
    mean m: e^{−2h}v + CIR's own from m + (1 − e^{−h})²·Var N̂·(v + (m − a)²)/a². At rest v = a/(1 − tanh(h/2)·Var N̂/a²).
    """
    jit.prepare([scir_variances_cv])
    out = np.empty(steps + 1)
    scir_variances_cv(a, theta0, h, var_n_hat, out)
    return out


def cir_mgf(s: float, a: float, theta0: float, t: float) -> float:
    """E e^{sθ_t} = (1 − s(1 − e^{−t}))^{−a}·exp(θ₀se^{−t}/(1 − s(1 − e^{−t}))), for s < 1/(1 − e^{−t})."""
    return float(cir_mgf_curve(np.array([s]), a, theta0, t)[0])


def cir_mgf_curve(s: Array, a: float, theta0: float, t: float) -> Array:
    """:func:`cir_mgf` at each s, (n,)."""
    return _along(cir_mgfs, s, after=(a, theta0, t))


def scir_mgf(s: float, a: float, theta0: float, h: float, steps: int, a_hats: Array) -> float:
    """E e^{sθ} after M steps, given â_1…â_M: CIR's at t = Mh times Π_m r_m^{−(â_{M−m+1} − a)} (Theorem 3.1).

    r_m = (1 − s(1 − e^{−mh}))/(1 − s(1 − e^{−(m−1)h})). Corrects the printed eq (3.1): it holds given the â's, and
    factor m belongs to â_{M−m+1}, because the last step's â has had no time to be forgotten.
    """
    a_hats = np.asarray(a_hats, dtype=float)
    if a_hats.shape != (steps,):
        raise ValueError(f"a_hats has the shape {a_hats.shape}; needed is one for each of the {steps} steps")
    correction = -(np.log(_ratios(s, h, steps)) * (a_hats[::-1] - a)).sum()
    return float(cir_mgf(s, a, theta0, h * steps) * np.exp(correction))


def scir_mgf_expected(
    s: float,
    alpha: float,
    theta0: float,
    h: float,
    steps: int,
    n_data: int,
    count: int,
    batch_size: int,
    replacement: bool,
) -> float:
    """E e^{sθ} after M steps over the minibatches too: exp(θ₀s_M)·Π_m E[r_m^{−â}], â = α + (N/n)B.

    B ~ Binomial(n, N_j/N), or hypergeometric without replacement: a finite sum, hence exact. s_M = se^{−Mh}/(1 −
    s(1 − e^{−Mh})).
    """
    found = scir_mgf_expected_curve(np.array([s]), alpha, theta0, h, steps, n_data, count, batch_size, replacement)
    return float(found[0])


def scir_mgf_expected_curve(
    s: Array,
    alpha: float,
    theta0: float,
    h: float,
    steps: int,
    n_data: int,
    count: int,
    batch_size: int,
    replacement: bool,
    temperature: float = 1.0,
) -> Array:
    """:func:`scir_mgf_expected` at each s, (n,). At a temperature T each data point counts for 1/T, and α is α′."""
    room = np.empty(batch_size + 1)
    after = (alpha, theta0, h, steps, n_data, count, batch_size, int(replacement), temperature, room)
    return _along(scir_mgfs_expected, s, after=after)


def _ratios(s: float, h: float, steps: int) -> Array:
    base = 1 + s * np.expm1(-h * np.arange(steps + 1))
    return base[1:] / base[:-1]


@dataclass(frozen=True)
class Ensemble:
    """Mean and variance over many chains after each step, (steps, dim), with their standard errors."""

    step: NDArray[np.int64]
    """1…M, fewer where a chain diverged."""
    mean: Array
    mean_error: Array
    variance: Array
    variance_error: Array


def spread(values: Array) -> Array:
    """Mean, its standard error, variance and its standard error over chains (n, dim), (4, dim).

    The standard errors are √(v/n) and √((m₄ − v²(n − 3)/(n − 1))/n), with m₄ the fourth central moment.
    """
    jit.prepare([spread_of_chains])
    out = np.empty((4, values.shape[1]))
    spread_of_chains(np.ascontiguousarray(values, dtype=np.float64), out)
    return out


def with_batch(sums: Array, rows: Array) -> Array:
    """The sums of batches (4, n) with one more, of which ``rows`` (4, n) are as of :func:`spread`."""
    jit.prepare([add_batch])
    out = sums.copy()
    add_batch(np.ascontiguousarray(rows), out)
    return out


def of_batches(sums: Array, batches: int) -> Array:
    """Mean, its standard error, variance and its standard error (4, n) of so many batches with these sums."""
    jit.prepare([mean_of_batches])
    out = np.empty_like(sums)
    mean_of_batches(sums, batches, out)
    return out


def add_to_mgf(sums: Array, row: int, s: Array, theta: Array, j: int) -> None:
    """Add Σ e^{sθ_j} and Σ e^{2sθ_j} over chains θ (n, dim) to row ``row`` of sums (2, rows, values of s)."""
    jit.prepare([add_exponentials])
    add_exponentials(s, np.ascontiguousarray(theta), j, row, sums)


def of_mgf(sums: Array, chains: int) -> tuple[Array, Array]:
    """The means of e^{sθ} and their standard errors, (rows, values of s) each, of so many chains with these sums."""
    jit.prepare([mean_of_exponentials])
    out = np.empty_like(sums)
    mean_of_exponentials(sums, chains, out)
    return out[0], out[1]


def ensemble(spec: RunSpec, steps: int, theta0: Array | float | None = None) -> Ensemble:
    """``spec.n_chains`` chains of θ, all from ``theta0`` or else the spec's start, summed up after each step by
    :func:`spread`.
    """
    # Steps of a burn-in are not counted, and so cost nothing but themselves.
    state = Run(replace(spec, burn_in=steps))
    if theta0 is not None:
        state.position = theta0
    rows = []
    for _ in range(steps):
        state.advance(1)
        if state.divergence is not None:
            break
        rows.append(spread(state.position))
    table = np.array(rows).reshape(len(rows), 4, state.target.dim)
    return Ensemble(np.arange(1, len(rows) + 1), *table.transpose(1, 0, 2))
