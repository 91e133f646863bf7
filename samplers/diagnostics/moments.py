"""The moments of SCIR: theory (Baker et al. 2018, section 3) and an ensemble of many chains to hold against it.

CIR is dθ = (a − θ)dt + √(2θ)dW. SCIR replaces a in each step of length h by an unbiased estimate â.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from samplers.engine import Run
from samplers.spec import RunSpec
from samplers.targets.base import Array


def cir_mean(a: float, theta0: float, t: float | Array) -> Array:
    """E θ_t = θ₀e^{−t} + a(1 − e^{−t}): of CIR, and of SCIR too (Theorem 3.1)."""
    return theta0 * np.exp(-t) - a * np.expm1(-t)


def cir_variance(a: float, theta0: float, t: float | Array) -> Array:
    """Var θ_t = 2θ₀(e^{−t} − e^{−2t}) + a(1 − e^{−t})²."""
    gone = -np.expm1(-t)
    return 2 * theta0 * np.exp(-t) * gone + a * gone**2


def var_a_hat(n_data: int, count: int, batch_size: int, replacement: bool) -> float:
    """Var â_j = N²p(1 − p)/n with p = N_j/N; without replacement times (N − n)/(N − 1)."""
    p = count / n_data
    variance = n_data**2 * p * (1 - p) / batch_size
    return variance if replacement else variance * (n_data - batch_size) / max(n_data - 1, 1)


def scir_variance(a: float, theta0: float, h: float, steps: int | Array, var_a_hat: float) -> Array:
    """Var θ after M steps: CIR's at t = Mh, plus (1 − e^{−2Mh})·(1 − e^{−h})/(1 + e^{−h})·Var â (Corollary 3.2)."""
    t = h * np.asarray(steps, dtype=float)
    return cir_variance(a, theta0, t) - np.expm1(-2 * t) * np.tanh(h / 2) * var_a_hat


def scir_variance_cv(a: float, theta0: float, h: float, steps: int, var_n_hat: float) -> Array:
    """Var θ after 0, 1, … steps with control variates at a, where no â is clipped, (steps + 1,).

    â has the mean a and, given θ, the variance (1 − θ/a)²·Var N̂, so that one step makes of the variance v about the
    mean m: e^{−2h}v + CIR's own from m + (1 − e^{−h})²·Var N̂·(v + (m − a)²)/a². At rest v = a/(1 − tanh(h/2)·Var N̂/a²).
    """
    out = np.zeros(steps + 1)
    for k, mean in enumerate(cir_mean(a, theta0, h * np.arange(steps, dtype=np.float64))):
        noise = np.expm1(-h) ** 2 * var_n_hat * (out[k] + (mean - a) ** 2) / a**2
        out[k + 1] = np.exp(-2 * h) * out[k] + cir_variance(a, float(mean), h) + noise
    return out


def cir_mgf(s: float, a: float, theta0: float, t: float) -> float:
    """E e^{sθ_t} = (1 − s(1 − e^{−t}))^{−a}·exp(θ₀se^{−t}/(1 − s(1 − e^{−t}))), for s < 1/(1 − e^{−t})."""
    base = 1 + s * np.expm1(-t)
    return float(base**-a * np.exp(theta0 * s * np.exp(-t) / base))


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
    s: float, alpha: float, theta0: float, h: float, steps: int, n_data: int, count: int, batch_size: int, replacement: bool,
) -> float:  # fmt: skip
    """E e^{sθ} after M steps over the minibatches too: exp(θ₀s_M)·Π_m E[r_m^{−â}], â = α + (N/n)B.

    B ~ Binomial(n, N_j/N), or hypergeometric without replacement: a finite sum, hence exact. s_M = se^{−Mh}/(1 −
    s(1 − e^{−Mh})).
    """
    b = np.arange(batch_size + 1)
    if replacement:
        log_weight = stats.binom.logpmf(b, batch_size, count / n_data)
    else:
        log_weight = stats.hypergeom.logpmf(b, n_data, count, batch_size)
    a_hat = alpha + n_data / batch_size * b
    log_ratio = np.log(_ratios(s, h, steps))
    log_factors = special.logsumexp(log_weight - log_ratio[:, None] * a_hat, axis=1)
    t = h * steps
    return float(np.exp(theta0 * s * np.exp(-t) / (1 + s * np.expm1(-t)) + log_factors.sum()))


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


def ensemble(spec: RunSpec, steps: int, theta0: Array | float | None = None) -> Ensemble:
    """``spec.n_chains`` chains of θ, all from ``theta0`` or else the spec's start, summed up after each step.

    The standard errors are √(v/n) and √((m₄ − v²(n − 3)/(n − 1))/n), with m₄ the fourth central moment.
    """
    # Steps of a burn-in are not counted, and so cost nothing but themselves.
    state = Run(replace(spec, burn_in=steps))
    if theta0 is not None:
        state.position = theta0
    n = spec.n_chains
    rows = []
    for _ in range(steps):
        state.advance(1)
        if state.divergence is not None:
            break
        mean = state.position.mean(axis=0)
        square = (state.position - mean) ** 2
        variance = square.sum(axis=0) / max(n - 1, 1)
        spread = (square**2).mean(axis=0) - variance**2 * (n - 3) / max(n - 1, 1)
        rows.append((mean, np.sqrt(variance / n), variance, np.sqrt(np.maximum(spread, 0) / n)))
    table = np.array(rows).reshape(len(rows), 4, state.target.dim)
    return Ensemble(np.arange(1, len(rows) + 1), *table.transpose(1, 0, 2))
