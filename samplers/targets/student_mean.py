"""The mean of a heavy-tailed sample: a posterior that outliers do not move, and may split."""

from functools import cached_property
from math import exp, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import DATA, ENERGIES, LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets.at_temperature import Divided, divided
from sgmcmc_lab.samplers.targets.base import Array, Column, Fit, Target
from sgmcmc_lab.samplers.targets.quadrature import rule, rule_cdf

DIFFERENCES = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]) / 8
"""By how many inches the crossed plant of each of Darwin's pairs outgrew the self-fertilised one."""

# The packed parameters: ν, s², 1/τ², the number of data points, the number of bins, their start, their width,
# the lowest U/T, and T; then the data, the bins' shares of the envelope, summed up, and how far U/T − lowest is at
# least in each.
_FREEDOM, _SQUARE, _RATE, _ITEMS, _BINS, _LOW, _WIDTH, _LOWEST, _HEAT, _FIRST = range(10)
_N_BINS = 400
_PANELS = 256
_MOST_BINS, _FINE = 2**16, 4096
"""Bins at most, and panels, at other temperatures: where T is high, tails are far from the data, whose kinks remain."""
_LEFT_OUT = 36.0
"""A bin in which U exceeds its lowest value by this much has a probability below 1e-15."""


@jit.helper
def _loss(x, y, params):
    """One data point's −log likelihood."""
    apart = x - y
    return (params[_FREEDOM] + 1) / 2 * log1p(apart * apart / (params[_FREEDOM] * params[_SQUARE]))


@jit.helper
def _energy(x, params):
    """U(θ)."""
    total = x * x * params[_RATE] / 2
    for k in range(int(params[_ITEMS])):
        total += _loss(x, params[_FIRST + k], params)
    return total


@jit.helper
def _pull(x, y, params):
    """The derivative of one data point's −log likelihood."""
    return (params[_FREEDOM] + 1) * (x - y) / (params[_FREEDOM] * params[_SQUARE] + (x - y) ** 2)


@jit.potential
def potential(theta, out, params):
    for c in range(theta.shape[0]):
        out[c] = _energy(theta[c, 0], params)


@jit.gradient
def gradient(theta, out, params):
    for c in range(theta.shape[0]):
        out[c, 0] = theta[c, 0] * params[_RATE]
        for k in range(int(params[_ITEMS])):
            out[c, 0] += _pull(theta[c, 0], params[_FIRST + k], params)


@jit.batch
def batch(theta, data, each, params):
    x = theta[0, 0]
    for k in range(data.size):
        y = params[_FIRST + data[k]]
        each[k, 0] = x * params[_RATE] + params[_ITEMS] * _pull(x, y, params)
        if each.shape[1] > 1:
            each[k, 1] = x * x * params[_RATE] / 2 + params[_ITEMS] * _loss(x, y, params)


@jit.draw
def draw(rng, out, params):
    n = int(params[_BINS])
    shares = params[_FIRST + int(params[_ITEMS]) :]
    for c in range(out.shape[0]):
        accepted = False
        while not accepted:
            k = min(np.searchsorted(shares[:n], rng.random(), side="right"), n - 1)
            out[c, 0] = params[_LOW] + (k + rng.random()) * params[_WIDTH]
            above = _energy(out[c, 0], params) / params[_HEAT]
            accepted = rng.random() < exp(params[_LOWEST] + shares[n + k] - above)


class StudentMean(Target):
    """y_i ~ θ + s·t_ν with the prior θ ~ N(0, τ²): U(θ) = (ν+1)/2 Σ log(1 + (y_i − θ)²/νs²) + θ²/2τ².

    The data are the 15 differences in height between crossed and self-fertilised maize plants of Darwin (1876), in
    inches, of which two are far below the others. With many degrees of freedom ν they pull the mean down; with few they
    are passed over, and with a small s the distribution has several modes.

    Exact draws are by rejection from a histogram that is nowhere below the density; the CDF is by quadrature.
    """

    key = "student_mean"
    title = "Mean of a heavy-tailed sample"
    tex = r"U(\theta) = \frac{\nu+1}{2}\sum_{i=1}^{N}\log\Bigl(1 + \frac{(y_i - \theta)^2}{\nu s^2}\Bigr) + \frac{\theta^2}{2\tau^2}"
    source = "Box & Tiao 1973, section 3.2; data of Darwin 1876"
    provides = DATA | {MODE, LIPSCHITZ, ENERGIES}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    dim = 1

    freedom = Real(
        3.0,
        bounds=(0.5, 50.0),
        log=True,
        tex=r"\nu",
        label="Degrees of freedom ν",
        doc="Few of them leave room for outliers; with many the sample is nearly Gaussian.",
    )
    scale = Real(
        2.5,
        bounds=(0.5, 20.0),
        log=True,
        tex="s",
        label="Scale s",
        doc="How far data usually are from their mean, in inches.",
    )
    prior_sd = Real(
        10.0,
        bounds=(1.0, 100.0),
        log=True,
        tex=r"\tau",
        label="Prior τ",
        doc="The standard deviation of the mean before there are data, in inches.",
    )

    def family_at(self, temperature: float) -> "TemperedStudentMean":
        return TemperedStudentMean.made(self, temperature)

    def data(self) -> NDArray[np.int64]:
        return np.arange(len(DIFFERENCES))

    def fit(self) -> Fit:
        """The sample, and the density s·t_ν about θ."""
        data = np.column_stack([DIFFERENCES, np.zeros(len(DIFFERENCES))])
        highest = float(stats.t.pdf(0.0, self.freedom)) / self.scale
        formula = {"kind": "student", "highest": highest, "freedom": float(self.freedom), "scale": float(self.scale)}
        return Fit.of(
            data,
            ("difference in inches", "density"),
            self._density,
            shown=(-0.06 * highest, 1.1 * highest),
            points=121,
            formula=formula,
        )

    def _density(self, theta: Array, y: Array) -> Array:
        return np.asarray(stats.t.pdf((y - theta[..., 0]) / self.scale, self.freedom) / self.scale)

    def _energies(self, x: Array) -> Array:
        """U/T."""
        square = (x[..., None] - DIFFERENCES) ** 2 / (self.freedom * self.scale**2)
        energy = (self.freedom + 1) / 2 * np.log1p(square).sum(axis=-1) + x**2 / (2 * self.prior_sd**2)
        return np.asarray(energy / self.temperature)

    @cached_property
    def mode(self) -> Array:
        grid = np.linspace(DIFFERENCES.min(), DIFFERENCES.max(), 2001)
        best = int(self._energies(grid).argmin())
        ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(
            lambda x: float(self._energies(np.array(x))), bounds=ends, method="bounded", options={"xatol": 1e-12}
        )
        return np.array([found.x])

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Beyond which there is nothing of the distribution."""
        lowest, centre = float(self._energies(self.mode)[0]), float(self.mode[0])
        reach = []
        for side in (-1.0, 1.0):
            far = float(self.scale)
            while float(self._energies(np.array(centre + side * far))) < lowest + _LEFT_OUT:
                far *= 1.1
            reach.append(centre + side * far)
        return min(reach[0], DIFFERENCES.min()), max(reach[1], DIFFERENCES.max())

    @property
    def _steepest(self) -> float:
        """No data point of U/T pulls harder than (ν + 1)/2√ν s, over T."""
        return len(DIFFERENCES) * (self.freedom + 1) / (2 * np.sqrt(self.freedom) * self.scale) / self.temperature

    n_bins = _N_BINS
    n_panels = _PANELS

    @cached_property
    def histogram(self) -> tuple[Array, Array]:
        """The share of each bin in an envelope of the density, summed up, and how far above its lowest U is there."""
        low, high = self._ends
        width = (high - low) / self.n_bins
        middle = np.asarray(low + (np.arange(self.n_bins) + 0.5) * width, dtype=float)
        # The prior pulls no harder than at the end of a bin.
        steepest = self._steepest + (np.abs(middle) + width / 2) / self.prior_sd**2 / self.temperature
        floor = self._energies(middle) - float(self._energies(self.mode)[0]) - steepest * width / 2
        weights = np.exp(-floor)
        return np.cumsum(weights) / weights.sum(), floor

    def packed(self) -> Array:
        (low, high), (shares, floor) = self._ends, self.histogram
        header = [
            self.freedom,
            self.scale**2,
            self.prior_sd**-2,
            len(DIFFERENCES),
            self.n_bins,
            low,
            (high - low) / self.n_bins,
            float(self._energies(self.mode)[0]),
            self.temperature,
        ]
        return np.concatenate([header, DIFFERENCES, shares, floor])

    @property
    def lipschitz(self) -> Array:
        """The second derivative of (ν + 1)/2 · log(1 + x²/νs²) is largest at x = 0, and −⅛ of that at its lowest."""
        largest = (self.freedom + 1) / (self.freedom * self.scale**2)
        return np.array([len(DIFFERENCES) * largest + self.prior_sd**-2])

    @property
    def lipschitz_of_each(self) -> Array:
        return self.lipschitz

    def start(self) -> Array:
        return np.zeros(1)

    @cached_property
    def _mass(self) -> tuple[float, Array, Array]:
        """log ∫ e^{−U/T}, and points and weights of probability."""
        points, weights = rule(*self._ends, self.n_panels)
        lowest = float(self._energies(self.mode)[0])
        heights = weights * np.exp(lowest - self._energies(points))
        return log(heights.sum()) - lowest, points, heights / heights.sum()

    def log_density(self, theta: Array) -> Array:
        return -self._energies(theta[..., 0]) - self._mass[0]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        low, high = self._ends
        _, points, weights = self._mass
        mean = float(weights @ points)
        variance = float(weights @ (points - mean) ** 2)
        sd = variance**0.5
        cdf = rule_cdf(low, high, np.exp(self.log_density(rule(low, high, self.n_panels)[0][:, None])))
        return (Column("θ", low, high, cdf, mean, variance, shown=(mean - 4 * sd, mean + 4 * sd)),)

    tried_at = ({"freedom": 0.5, "scale": 0.5, "prior_sd": 3.0}, {"freedom": 50.0, "scale": 20.0, "prior_sd": 100.0})
    drawn_at = {"freedom": 1.0, "scale": 1.0, "prior_sd": 5.0}

    def textbook_draw(self, rng: np.random.Generator) -> list[float]:
        (low, high), (shares, floor) = self._ends, self.histogram
        while True:
            k = int((rng.random() >= shares).sum())
            x = low + (k + rng.random()) * (high - low) / len(shares)
            above = float(self._energies(np.array(x)) - self._energies(self.mode)[0])
            if rng.random() < exp(floor[k] - above):
                return [x]

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        apart = theta - DIFFERENCES[datum]
        pull = (self.freedom + 1) * apart / (self.freedom * self.scale**2 + apart**2)
        return np.asarray(theta / self.prior_sd**2 + len(DIFFERENCES) * pull)

    def textbook_energy(self, theta: Array, datum: int) -> float:
        square = (theta[0] - DIFFERENCES[datum]) ** 2 / (self.freedom * self.scale**2)
        loss = (self.freedom + 1) / 2 * np.log1p(square)
        return float(theta[0] ** 2 / (2 * self.prior_sd**2) + len(DIFFERENCES) * loss)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"N": len(DIFFERENCES), "y": DIFFERENCES}


class TemperedStudentMean(Divided, StudentMean):
    """e^{−U/T} of the posterior, by quadrature; its histogram is as fine as U/T is steep."""

    potential, gradient, batch = divided(StudentMean)
    n_panels = _FINE

    @property
    def mode(self) -> Array:
        return self.base.mode

    @cached_property
    def n_bins(self) -> int:  # type: ignore[override]
        low, high = self._ends
        return int(np.clip(np.ceil((high - low) * self._steepest), _N_BINS, _MOST_BINS))

    def packed(self) -> Array:
        return np.append(super().packed(), self.temperature)
