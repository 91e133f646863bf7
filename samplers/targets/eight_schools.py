"""The eight schools: a hierarchical posterior between its centrings (Rubin 1981)."""

from functools import cached_property
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, SpecError
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, Target, subscript
from sgmcmc_lab.samplers.targets.quadrature import in_blocks, rule, rule_cdf

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
"""The effects of coaching in schools A to H, in points of the SAT."""
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
"""Their standard errors."""
N = len(EFFECTS)
PRIOR_VARIANCE = 25.0
"""The prior variance of the mean effect μ: its prior is N(0, 5²)."""

# The packed parameters: the centring, the scale of τ's prior, the log of the bound of the integrated likelihood; then
# the effects and their variances.
_CENTRING, _SCALE, _BOUND, _FIRST = 0, 1, 2, 3
_LOWEST, _HIGHEST = -32.0, 9.0
"""The range of log τ: its density falls as τ to the left, and at least as fast as τ⁻⁹ far to the right."""
_PANELS = 40
_LEAST_POWER = 0.1
"""The smallest power of τ with which the density of log τ may fall where τ → 0."""
_FEWEST_BINS, _MOST_BINS, _LEFT_OUT = 400, 2**15, 40.0
"""Bins of the histogram at another temperature, which leaves out log densities so far below the largest."""
_SLACK = 1e-3
"""The highest value of a log likelihood on a grid of 640 points is nearer than this to its maximum."""


@jit.helper
def _of_mean(tau, params):
    """The precision and the mean of μ given τ, and the log likelihood of τ, with μ and all effects integrated out."""
    precision, pull, total = 1 / PRIOR_VARIANCE, 0.0, 0.0
    for j in range(N):
        y, variance = params[_FIRST + j], params[_FIRST + N + j] + tau * tau
        precision += 1 / variance
        pull += y / variance
        total -= (y * y / variance + log(variance)) / 2
    return precision, pull / precision, total + (pull * pull / precision - log(precision)) / 2


@jit.helper
def _draw_tau(rng, params):
    """τ from its posterior, by rejection from its prior, and the precision and the mean of μ given τ."""
    while True:
        tau = params[_SCALE] * abs(rng.standard_normal() / rng.standard_normal())
        precision, mean, likelihood = _of_mean(tau, params)
        if rng.random() < np.exp(likelihood - params[_BOUND]):
            return tau, precision, mean


@jit.potential
def potential(theta, out, params):
    centring = params[_CENTRING]
    for c in range(theta.shape[0]):
        log_tau, mu = theta[c, 0], theta[c, N + 1]
        tau, width = np.exp(log_tau), np.exp(centring * log_tau)
        total = mu * mu / (2 * PRIOR_VARIANCE) + np.log1p((tau / params[_SCALE]) ** 2) - log_tau
        for j in range(N):
            z = (theta[c, 1 + j] - centring * mu) / width
            rest = params[_FIRST + j] - mu - tau * z
            total += z * z / 2 + centring * log_tau + rest * rest / (2 * params[_FIRST + N + j])
        out[c] = total


@jit.gradient
def gradient(theta, out, params):
    centring = params[_CENTRING]
    for c in range(theta.shape[0]):
        log_tau, mu = theta[c, 0], theta[c, N + 1]
        tau, width = np.exp(log_tau), np.exp(centring * log_tau)
        ratio = (tau / params[_SCALE]) ** 2
        of_tau, of_mu = 2 * ratio / (1 + ratio) - 1, mu / PRIOR_VARIANCE
        for j in range(N):
            z = (theta[c, 1 + j] - centring * mu) / width
            pull = (params[_FIRST + j] - mu - tau * z) / params[_FIRST + N + j]
            slope = z - tau * pull
            out[c, 1 + j] = slope / width
            of_mu -= centring * slope / width + pull
            of_tau += centring * (1 - z * slope) - pull * tau * z
        out[c, 0], out[c, N + 1] = of_tau, of_mu


@jit.draw
def draw(rng, out, params):
    centring = params[_CENTRING]
    for c in range(out.shape[0]):
        tau, precision, mean = _draw_tau(rng, params)
        mu = mean + rng.standard_normal() / sqrt(precision)
        out[c, 0], out[c, N + 1] = np.log(tau), mu
        for j in range(N):
            error = params[_FIRST + N + j]
            share = error / (error + tau * tau)
            z = tau * (params[_FIRST + j] - mu) / (error + tau * tau) + sqrt(share) * rng.standard_normal()
            out[c, 1 + j] = centring * mu + np.exp(centring * np.log(tau)) * z


# At another temperature the packed parameters go on with a histogram of log τ that is nowhere below its density: the
# number of bins, their start, their width; their shares, summed up, and the log of the height of each; then T.
_BINS, _LOW, _WIDTH, _SHARES = range(_FIRST + 2 * N, _FIRST + 2 * N + 4)


@jit.helper
def _tempered_of_mean(log_tau, params):
    """The precision and the mean of μ given τ over T, and the log density of log τ, up to a constant."""
    square, heat = np.exp(2 * log_tau), params[params.size - 1]
    precision, pull, squares, logs = 1 / PRIOR_VARIANCE, 0.0, 0.0, 0.0
    for j in range(N):
        y, variance = params[_FIRST + j], params[_FIRST + N + j] + square
        precision += 1 / variance
        pull += y / variance
        squares += y * y / variance
        logs += log(variance)
    alone = N * params[_CENTRING] * log_tau
    energy = alone - log_tau + np.log1p(square / params[_SCALE] ** 2) + (squares - pull * pull / precision) / 2
    return precision / heat, pull / precision, alone - energy / heat - (logs + log(precision)) / 2


@jit.draw
def tempered_draw(rng, out, params):
    centring, heat, n = params[_CENTRING], params[params.size - 1], int(params[_BINS])
    shares, heights = params[_SHARES : _SHARES + n], params[_SHARES + n : _SHARES + 2 * n]
    for c in range(out.shape[0]):
        log_tau, precision, mean, accepted = 0.0, 0.0, 0.0, False
        while not accepted:
            k = min(np.searchsorted(shares, rng.random(), side="right"), n - 1)
            log_tau = params[_LOW] + (k + rng.random()) * params[_WIDTH]
            precision, mean, height = _tempered_of_mean(log_tau, params)
            accepted = rng.random() < np.exp(height - heights[k])
        tau = np.exp(log_tau)
        mu = mean + rng.standard_normal() / sqrt(precision)
        out[c, 0], out[c, N + 1] = log_tau, mu
        for j in range(N):
            error = params[_FIRST + N + j]
            share = heat * error / (error + tau * tau)
            z = tau * (params[_FIRST + j] - mu) / (error + tau * tau) + sqrt(share) * rng.standard_normal()
            out[c, 1 + j] = centring * mu + np.exp(centring * log_tau) * z


class _GivenTau(NamedTuple):
    """The points of a quadrature over log τ: their weights in the posterior, and the distributions given τ."""

    log_tau: Array
    weights: Array
    density: Array
    """The density of log τ."""
    mean: Array
    """The mean of μ."""
    variance: Array
    """The variance of μ."""
    log_evidence: float
    """log ∫e^{−U/T}."""


class EightSchools(Target):
    """y_j ~ N(μ + τz_j, σ_j²) with z_j ~ N(0, 1), μ ~ N(0, 5²) and τ half-Cauchy: eight effects of coaching.

    θ = (log τ, x_1, …, x_8, μ), and the chains move in x_j = cμ + τ^c z_j. At c = 1, centred, x_j is the effect of
    school j, and log τ and x_j form a funnel with its neck at small τ. At c = 0, not centred, x_j = z_j, whose
    scale depends on τ only through the data. The data say little about τ, so the posterior is near the prior's funnel.

    Given τ, all other coordinates are Gaussian. Exact draws come from rejection sampling with the prior of τ, and the
    marginals from quadrature over log τ.
    """

    key = "eight_schools"
    title = "Eight schools"
    tex = r"\begin{aligned}U(\theta) = {}&\frac{\mu^2}{50} + \log\Bigl(1 + \frac{\tau^2}{s^2}\Bigr) - \log\tau\\&+ \sum_{j=1}^{8}\Bigl(\frac{z_j^2}{2} + c\log\tau + \frac{(y_j - \mu - \tau z_j)^2}{2\sigma_j^2}\Bigr),\quad z_j = \frac{x_j - c\mu}{\tau^c}\end{aligned}"
    source = "Rubin 1981; Papaspiliopoulos, Roberts & Sköld 2007 for c; priors of Stan's posterior database"
    potential, gradient, draw = potential, gradient, draw
    dim = N + 2

    centring = Real(
        0.0,
        bounds=(0.0, 1.0),
        tex="c",
        label="Centring c",
        doc="At 1 the chains move in the effects themselves, whose spread is τ: a funnel. At 0 they move in standardised effects, which hardly depend on τ.",
    )
    prior_scale = Real(
        5.0,
        bounds=(0.5, 50.0),
        log=True,
        tex="s",
        label="Scale of τ's prior s",
        doc="The prior median of τ, the spread of the effects among schools.",
    )

    def family_at(self, temperature: float) -> "TemperedEightSchools":
        # The density of log τ falls as τ to the power 1/T + 8c(1 − 1/T) for τ → 0.
        lowest = (N * self.centring - 1) / (N * self.centring - _LEAST_POWER)
        if N * self.centring > 1 and temperature < lowest:
            raise SpecError(
                "temperature",
                temperature,
                f"e^(−U/T) of {self.title} has no finite integral at τ = 0, or hardly any; allowed with c = {self.centring:g} are temperatures from {lowest:.3g}",
            )
        return TemperedEightSchools.made(self, temperature)

    def packed(self) -> Array:
        return np.concatenate([[self.centring, self.prior_scale, self._bound], EFFECTS, ERRORS**2])

    def _integrated(self, log_tau: Array) -> tuple[Array, Array, Array]:
        """The mean and the variance of μ given τ, and the log likelihood of τ."""
        variances = ERRORS**2 + np.exp(2 * log_tau)[:, None]
        precision = 1 / PRIOR_VARIANCE + (1 / variances).sum(axis=1)
        pull = (EFFECTS / variances).sum(axis=1)
        squares = (EFFECTS**2 / variances + np.log(variances)).sum(axis=1)
        return pull / precision, 1 / precision, (pull**2 / precision - np.log(precision) - squares) / 2

    @cached_property
    def _bound(self) -> float:
        return float(self._integrated(rule(_LOWEST, _HIGHEST, _PANELS)[0])[2].max()) + _SLACK

    _reach: tuple[float, float, int] = (_LOWEST, _HIGHEST, _PANELS)
    """The range of log τ with all of the distribution, and the panels of its quadrature."""

    @cached_property
    def _given_tau(self) -> _GivenTau:
        log_tau, weights = rule(_LOWEST, _HIGHEST, _PANELS)
        mean, variance, likelihood = self._integrated(log_tau)
        log_prior = log_tau - np.logaddexp(0.0, 2 * (log_tau - log(self.prior_scale)))
        density = np.exp(log_prior + likelihood)
        total = float((density * weights).sum())
        # ∫e^{−U} has a factor √(2π)σ_j of each school's effect, and √(2π) of μ.
        constant = (N + 1) * log(2 * np.pi) / 2 + float(np.log(ERRORS).sum())
        return _GivenTau(log_tau, density * weights / total, density / total, mean, variance, log(total) + constant)

    def start(self) -> Array:
        return np.zeros(self.dim)

    def log_density(self, theta: Array) -> Array:
        log_tau, x, mu = theta[..., 0], theta[..., 1:-1], theta[..., -1]
        z = (x - self.centring * mu[..., None]) * np.exp(-self.centring * log_tau)[..., None]
        rest = EFFECTS - mu[..., None] - np.exp(log_tau)[..., None] * z
        of_tau = np.logaddexp(0.0, 2 * (log_tau - log(self.prior_scale))) + (N * self.centring - 1) * log_tau
        of_schools = (z**2 + (rest / ERRORS) ** 2).sum(axis=-1) / 2
        energy = mu**2 / (2 * PRIOR_VARIANCE) + of_tau + of_schools
        return -energy / self.temperature - self._given_tau.log_evidence

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        given = self._given_tau
        mean = float((given.weights * given.log_tau).sum())
        variance = float((given.weights * (given.log_tau - mean) ** 2).sum())
        low, high, _ = self._reach
        first, last, shown = self._shown
        law_of_tau = rule_cdf(low, high, given.density)
        return (
            Column("log τ", first, last, law_of_tau, mean, variance, shown=shown),
            *(self._mixture(f"x{subscript(j + 1)}", *self._given(j)) for j in range(N)),
            self._mixture("μ", given.mean, given.variance),
        )

    @property
    def _shown(self) -> tuple[float, float, tuple[float, float]]:
        """The range of the histogram of log τ, and that of an axis."""
        return -20.0, 6.0, (-3.5, 4.0)

    def _given(self, j: int) -> tuple[Array, Array]:
        """The mean and the variance of x_j given τ, with μ integrated out: x_j is Gaussian and linear in μ."""
        given, error, c = self._given_tau, ERRORS[j] ** 2, self.centring
        tau = np.exp(given.log_tau)
        share = tau ** (1 + c) / (error + tau**2)
        return (
            share * EFFECTS[j] + (c - share) * given.mean,
            self.temperature * tau ** (2 * c) * error / (error + tau**2) + (c - share) ** 2 * given.variance,
        )

    def _mixture(self, name: str, means: Array, variances: Array) -> Column:
        """A mixture of Gaussians with the weights of log τ."""
        weights, sds = self._given_tau.weights, np.sqrt(variances)
        mean = float((weights * means).sum())
        variance = float((weights * (variances + (means - mean) ** 2)).sum())
        kept = weights > 1e-14
        low, high = float((means - 8 * sds)[kept].min()), float((means + 8 * sds)[kept].max())
        cdf = in_blocks(lambda x: np.asarray(special.ndtr((x[:, None] - means) / sds) @ weights))
        sd = sqrt(variance)
        reach = (max(low, mean - 9 * sd), min(high, mean + 9 * sd))
        return Column(name, *reach, cdf, mean, variance, shown=(mean - 3.6 * sd, mean + 3.6 * sd))

    tried_at = ({"centring": 1.0}, {"centring": 0.5, "prior_scale": 50.0}, {"prior_scale": 0.5})
    drawn_at = {"centring": 0.7, "prior_scale": 2.0}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        variances = ERRORS**2
        while True:
            tau = self.prior_scale * abs(rng.standard_normal() / rng.standard_normal())
            precision = 1 / 25 + sum(1 / (v + tau**2) for v in variances)
            mean = sum(y / (v + tau**2) for y, v in zip(EFFECTS, variances, strict=True)) / precision
            # log p(y | τ) by the prior over the posterior of μ, at its mean.
            likelihood = -(mean**2) / 50 - log(precision) / 2
            for y, v in zip(EFFECTS, variances, strict=True):
                likelihood -= ((y - mean) ** 2 / (v + tau**2) + log(v + tau**2)) / 2
            if rng.random() < exp(likelihood - self._bound):
                break
        mu = mean + rng.standard_normal() / sqrt(precision)
        c, effects = self.centring, []
        for y, v in zip(EFFECTS, variances, strict=True):
            sd = sqrt(v / (v + tau**2))
            z = tau * (y - mu) / (v + tau**2) + sd * rng.standard_normal()
            effects.append(c * mu + tau**c * z)
        return [log(tau), *effects, mu]

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {r"\tau": exp(theta[0]), "x": theta[1:9], r"\mu": theta[9], "y": EFFECTS, r"\sigma": ERRORS}


class TemperedEightSchools(Divided, EightSchools):
    """e^{−U/T} of the posterior: given τ the effects and μ are Gaussian, with T times the covariance.

    Their integral has a factor of τ^c for each effect, of 1/√(σ_j² + τ²) and of the standard deviation of μ given τ, of
    which T divides no logarithm. Exact draws of log τ are by rejection from a histogram.
    """

    potential, gradient, _ = divided(EightSchools)
    draw = tempered_draw

    @property
    def _powers(self) -> tuple[float, float]:
        """The powers with which the density of log τ falls: of τ for τ → 0, of 1/τ for τ → ∞."""
        alone = N * self.centring
        return (1 - alone) / self.temperature + alone, (1 + alone) / self.temperature + N - alone

    @cached_property
    def _reach(self) -> tuple[float, float, int]:  # type: ignore[override]
        left, right = self._powers
        # The data's errors end near log τ = 3, and the prior's scale at most near 4.
        low, high = _LOWEST / min(left, 1.0), 4 + 46 / min(right, 9.0)
        return low, high, int(np.clip(4 * (high - low), 4 * _PANELS, 10 * _PANELS))

    @property
    def _shown(self) -> tuple[float, float, tuple[float, float]]:
        given, (left, right) = self._given_tau, self._powers
        shares = np.cumsum(given.weights)
        first, last = (float(np.interp(share, shares, given.log_tau)) for share in (0.01, 0.999))
        return -20 / min(left, 1.0), 4 + 18 / min(right, 9.0), (first, last)

    def _heights(self, log_tau: Array) -> tuple[Array, Array, Array]:
        """The mean and the variance of μ given τ, and the log density of log τ, up to a constant."""
        mean, variance, likelihood = self._integrated(log_tau)
        volume = (np.log(variance) - np.log(ERRORS**2 + np.exp(2 * log_tau)[:, None]).sum(axis=1)) / 2
        alone = N * self.centring * log_tau
        log_prior = log_tau - alone - np.logaddexp(0.0, 2 * (log_tau - log(self.prior_scale)))
        height = (log_prior + likelihood - volume) / self.temperature + alone + volume
        return mean, self.temperature * variance, height

    @cached_property
    def _given_tau(self) -> _GivenTau:
        log_tau, weights = rule(*self._reach)
        mean, variance, height = self._heights(log_tau)
        density = np.exp(height - height.max())
        total = float((density * weights).sum())
        # ∫e^{−U/T} has a factor √(2πT)σ_j of each school's effect, and √(2πT) of μ.
        constant = (N + 1) * log(2 * np.pi * self.temperature) / 2 + float(np.log(ERRORS).sum() + height.max())
        return _GivenTau(log_tau, density * weights / total, density / total, mean, variance, log(total) + constant)

    @cached_property
    def histogram(self) -> tuple[float, float, Array, Array]:
        """The start and the width of the bins, their shares, summed up, and the log of the height of each."""
        low, high, _ = self._reach
        grid = np.linspace(low, high, 20_001)
        height = self._heights(grid)[2]
        inside = np.flatnonzero(height > height.max() - _LEFT_OUT)
        low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, len(grid) - 1)]
        steepest = 1.1 * np.abs(np.diff(height[inside])).max() / (grid[1] - grid[0])
        n = int(np.clip(np.ceil((high - low) * steepest), _FEWEST_BINS, _MOST_BINS))
        ends, width = self._heights(np.linspace(low, high, n + 1))[2], float(high - low) / n
        heights = (ends[:-1] + ends[1:] + steepest * width) / 2
        weights = np.exp(heights - heights.max())
        return float(low), width, np.cumsum(weights) / weights.sum(), heights

    def packed(self) -> Array:
        low, width, shares, heights = self.histogram
        return np.concatenate(
            [self.without_draws()[:_BINS], [len(shares), low, width], shares, heights, [self.temperature]]
        )

    def without_draws(self) -> Array:
        return np.concatenate([[self.centring, self.prior_scale, 0.0], EFFECTS, ERRORS**2, [self.temperature]])

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        low, width, shares, heights = self.histogram
        heat, c = self.temperature, self.centring
        while True:
            k = int((rng.random() >= shares).sum())
            log_tau = low + (k + rng.random()) * width
            mean, variance, height = (float(x[0]) for x in self._heights(np.array([log_tau])))
            if rng.random() < exp(height - heights[k]):
                break
        tau, mu, effects = exp(log_tau), mean + rng.standard_normal() * sqrt(variance), []
        for y, v in zip(EFFECTS, ERRORS**2, strict=True):
            z = tau * (y - mu) / (v + tau**2) + sqrt(heat * v / (v + tau**2)) * rng.standard_normal()
            effects.append(c * mu + tau**c * z)
        return [log_tau, *effects, mu]
