"""A neural network with one hidden layer on a curve with a gap: what its posterior knows where there are no data."""

from functools import cached_property
from math import sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import DATA, MODE
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, Fit
from sgmcmc_lab.samplers.targets.long_run import LongRun, draw_kept

SLOPE, HEIGHT = 2.0, 1.5
"""The prior's scales: of the weights and biases of the hidden units, and of all units together at the output."""
LOOKED_AT = np.array([-2.0, -1.4, -0.8, -0.3, 0.1, 0.5, 1.0, 1.5, 2.0])
"""The points at which the curve is followed: the third to the sixth of them are in the gap or at its edges."""
GAP = -0.8, 0.8
ENDS = -2.0, 2.0

# θ is the weights w, the biases b and the heights v of the hidden units, and the level c, all with the prior N(0, 1).
# The packed parameters: 1/σ², the number of data points, and x and y of each.
_RATE, _ITEMS, _FIRST = 0, 1, 2


@jit.helper
def _curve(theta, x):
    """f(x) = c + (1.5/√H) Σ_h v_h tanh(2(w_h x + b_h)) of one chain."""
    hidden = theta.size // 3
    total = 0.0
    for h in range(hidden):
        total += theta[2 * hidden + h] * tanh(SLOPE * (theta[h] * x + theta[hidden + h]))
    return theta[3 * hidden] + HEIGHT / sqrt(hidden) * total


@jit.helper
def _add_slope(theta, x, weight, out):
    """Add the weight times ∂f(x)/∂θ to ``out`` (dim,)."""
    hidden = theta.size // 3
    scale = weight * HEIGHT / sqrt(hidden)
    for h in range(hidden):
        unit = tanh(SLOPE * (theta[h] * x + theta[hidden + h]))
        inner = scale * theta[2 * hidden + h] * (1 - unit * unit) * SLOPE
        out[h] += inner * x
        out[hidden + h] += inner
        out[2 * hidden + h] += scale * unit
    out[3 * hidden] += weight


@jit.potential
def potential(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        total = 0.0
        for i in range(dim):
            total += theta[c, i] * theta[c, i] / 2
        for k in range(int(params[_ITEMS])):
            residual = _curve(theta[c], params[_FIRST + 2 * k]) - params[_FIRST + 2 * k + 1]
            total += residual * residual * params[_RATE] / 2
        out[c] = total


@jit.gradient
def gradient(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        for i in range(dim):
            out[c, i] = theta[c, i]
        for k in range(int(params[_ITEMS])):
            x = params[_FIRST + 2 * k]
            residual = _curve(theta[c], x) - params[_FIRST + 2 * k + 1]
            _add_slope(theta[c], x, residual * params[_RATE], out[c])


@jit.batch
def batch(theta, data, each, params):
    dim = theta.shape[1]
    for k in range(data.size):
        for i in range(dim):
            each[k, i] = theta[0, i]
        x = params[_FIRST + 2 * data[k]]
        residual = _curve(theta[0], x) - params[_FIRST + 2 * data[k] + 1]
        _add_slope(theta[0], x, params[_ITEMS] * residual * params[_RATE], each[k])


@jit.draw
def draw(rng, out, params):
    draw_kept(rng, out, params, _FIRST + 2 * int(params[_ITEMS]))


@jit.observe
def observe(draws, n, out):
    """The curve at the points that are looked at."""
    for k in range(out.shape[0]):
        for c in range(draws.shape[1]):
            for t in range(n):
                out[k, c, t] = _curve(draws[t, c], LOOKED_AT[k])


class CurveNetwork(LongRun):
    """y_i ~ N(f(x_i), σ²) with f(x) = c + (1.5/√H) Σ_h v_h tanh(2(w_h x + b_h)) and the prior N(0, 1) for all of θ.

    The data are made here: sin(2x) + x/4 with noise, left and right of a gap without any. θ itself says little, for
    hidden units may change places and signs; what is followed is the curve f at nine points. Where there are data the
    posterior knows it, and in the gap it says how little it does.

    The answers are those of a long run of Hamiltonian Monte Carlo with the accept step. Whether it has seen all of the
    distribution is judged, by R-hat and ESS, of the curve.
    """

    key = "curve_network"
    title = "Neural network on a curve with a gap"
    tex = r"U(\theta) = \frac{1}{2\sigma^2}\sum_{i=1}^{N}\Bigl(y_i - c - \tfrac{1.5}{\sqrt H}\sum_{h=1}^{H} v_h\tanh\bigl(2(w_h x_i + b_h)\bigr)\Bigr)^2 + \tfrac12\lVert\theta\rVert^2"
    source = "Neal 1996, Bayesian Learning for Neural Networks, chapter 2"
    provides = DATA | {MODE}
    potential, gradient, batch, draw, observe = potential, gradient, batch, draw, observe
    tempers = True

    hidden = Count(
        10, bounds=(2, 20), tex="H", label="Hidden units H", doc="How many there are: θ has 3H + 1 coordinates."
    )
    items = Count(
        30,
        bounds=(10, 100),
        log=True,
        tex="N",
        label="Data N",
        doc="How many data there are, half of them on either side of the gap.",
    )
    noise_sd = Real(
        0.25,
        bounds=(0.1, 1.0),
        log=True,
        tex=r"\sigma",
        label="Noise σ",
        doc="The standard deviation of y about the curve, taken as known.",
    )
    data_seed = Count(
        1, bounds=(0, 10_000), tex="s", label="Seed of the data", doc="Another seed makes other data of the same kind."
    )

    # U″ goes up to twice N/σ² = 480, and ten of the 30 data make noise of V ≈ 1000.
    first_steps = FirstSteps(moving=0.02, batch=0.002, friction=50.0, other=1e-4)

    @property
    def dim(self) -> int:
        return 3 * self.hidden + 1

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(f"f({x:g})".replace("-", "−") for x in LOOKED_AT)

    @cached_property
    def observations(self) -> Array:
        """(x, y), (N, 2)."""
        rng = np.random.Generator(np.random.SFC64(self.data_seed))
        left = rng.uniform(ENDS[0], GAP[0], self.items // 2)
        right = rng.uniform(GAP[1], ENDS[1], self.items - self.items // 2)
        x = np.concatenate([left, right])
        return np.column_stack([x, np.sin(2 * x) + x / 4 + self.noise_sd * rng.standard_normal(self.items)])

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def fit(self) -> Fit:
        """The data, and the curve."""
        return Fit.of(self.observations, ("x", "y"), _curves, shown=(-2.6, 2.6), points=61, followed=LOOKED_AT)

    def without_draws(self) -> Array:
        return np.concatenate([[self.noise_sd**-2, self.items], self.observations.ravel()])

    @cached_property
    def mode(self) -> Array:
        jit.prepare([self.potential, self.gradient])
        params, rng = self.without_draws(), np.random.Generator(np.random.SFC64(1))

        def height(theta: Array) -> tuple[float, Array]:
            out, slope = np.empty(1), np.empty((1, self.dim))
            self.potential(theta[None], out, params)
            self.gradient(theta[None], slope, params)
            return float(out[0]), slope[0]

        # There are many modes; the best of a few is as good as any.
        found = [
            minimize(height, rng.standard_normal(self.dim), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
            for _ in range(5)
        ]
        return np.asarray(min(found, key=lambda one: float(one.fun)).x)

    @property
    def curvature(self) -> Array:
        """The prior's: what the data add differs from mode to mode, and at none of them is it that of the whole
        distribution.
        """
        return np.eye(self.dim)

    def start(self) -> Array:
        # All units alike would stay so with the full gradient.
        return np.asarray(0.5 * np.sin(np.arange(1.0, self.dim + 1)))

    tried_at = (
        {"hidden": 2, "items": 10, "noise_sd": 0.5, "data_seed": 2},
        {"hidden": 5, "items": 12, "noise_sd": 1.0, "data_seed": 3},
    )
    drawn_at = {"hidden": 2, "items": 12, "noise_sd": 0.4}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        x, y = self.observations[datum]
        w, b, v = np.split(theta[:-1], 3)
        height, units = 1.5 / np.sqrt(len(w)), np.tanh(2 * (w * x + b))
        residual = theta[-1] + height * (v * units).sum() - y
        inner = 2 * height * v * (1 - units**2)
        slope = np.concatenate([inner * x, inner, height * units, [1.0]])
        return np.asarray(theta + self.items * residual / self.noise_sd**2 * slope)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        w, b, v = np.split(theta[:-1], 3)
        data = {"x": self.observations[:, 0], "y": self.observations[:, 1]}
        return {**data, "w": w, "b": b, "v": v, "c": theta[-1]}


def _curves(theta: Array, x: Array) -> Array:
    """f at the points x of each θ (n, 1, dim), (n, points)."""
    w, b, v = np.split(theta[..., :-1], 3, axis=-1)
    units = np.tanh(SLOPE * (w * x[:, None] + b))
    return np.asarray(theta[..., -1] + HEIGHT / np.sqrt(w.shape[-1]) * (v * units).sum(axis=-1))
