"""The probit lasso: the posterior of a probit regression's coefficients under a Laplace prior."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import DATA, MODE
from sgmcmc_lab.samplers.targets.base import Array, FirstSteps, subscript
from sgmcmc_lab.samplers.targets.lasso import coordinate_descent
from sgmcmc_lab.samplers.targets.long_run import LongRun, draw_kept
from sgmcmc_lab.samplers.targets.normal_tail import log_phi, slope_of_log_phi

MADE_WITH = (1.0, -0.5, 0.2, 0.0)
"""The coefficients that the data are made with."""
MOST = 5000
"""The data that there are; a posterior is of the first N."""

# The packed parameters: λ, the number of data points, and the row s_i x_i of each.
_RATE, _ITEMS, _FIRST = 0, 1, 2


@jit.helper
def _margin(theta, k, params):
    """s_i x_i·θ of one chain."""
    dim, m = theta.size, 0.0
    for i in range(dim):
        m += params[_FIRST + k * dim + i] * theta[i]
    return m


@jit.potential
def potential(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        total = 0.0
        for i in range(dim):
            total += params[_RATE] * abs(theta[c, i])
        for k in range(int(params[_ITEMS])):
            total -= log_phi(_margin(theta[c], k, params))
        out[c] = total


@jit.gradient
def gradient(theta, out, params):
    n_chains, dim = theta.shape
    for c in range(n_chains):
        for i in range(dim):
            out[c, i] = params[_RATE] * np.sign(theta[c, i])
        for k in range(int(params[_ITEMS])):
            pull = slope_of_log_phi(_margin(theta[c], k, params))
            for i in range(dim):
                out[c, i] -= pull * params[_FIRST + k * dim + i]


@jit.batch
def batch(theta, data, each, params):
    dim = theta.shape[1]
    for k in range(data.size):
        pull = params[_ITEMS] * slope_of_log_phi(_margin(theta[0], data[k], params))
        for i in range(dim):
            each[k, i] = params[_RATE] * np.sign(theta[0, i]) - pull * params[_FIRST + data[k] * dim + i]


@jit.draw
def draw(rng, out, params):
    draw_kept(rng, out, params, _FIRST + int(params[_ITEMS]) * out.shape[1])


class ProbitLasso(LongRun):
    """P(s_i = 1) = Φ(θ·x_i) with the prior θ_j ~ Laplace(λ): U(θ) = −Σ log Φ(s_i θ·x_i) + λ‖θ‖₁.

    The data are made here, by the model, with x_i ~ N(0, I) and θ = (1, −.5, .2, 0). The z_i ~ N(θ·x_i, 1) whose signs
    the data are, and the scales of the prior, θ_j ~ N(0, τ_j²), τ_j² ~ Exp(λ²/2), would make a Gibbs sampler; here all
    of them are integrated out, which leaves the four coefficients. At θ_j = 0, where |θ_j| has a kink, the gradient
    takes its subgradient 0.

    The answers are those of a long run of Hamiltonian Monte Carlo with the accept step, which no kink makes wrong.
    """

    key = "probit_lasso"
    title = "Probit lasso"
    tex = r"U(\theta) = -\sum_{i=1}^{N}\log\Phi\bigl(s_i\,\theta\cdot x_i\bigr) + \lambda\sum_{j=1}^{4}|\theta_j|"
    source = "Smolyakov et al., section 3.1; Albert & Chib 1993; Park & Casella 2008"
    provides = DATA | {MODE}
    potential, gradient, batch, draw = potential, gradient, batch, draw
    tempers = True
    dim = len(MADE_WITH)

    items = Count(
        1200,
        bounds=(50, MOST),
        log=True,
        tex="N",
        label="Data N",
        doc="The number of data points: the first of the synthetic ones.",
    )
    shrinkage = Real(
        10.0,
        bounds=(0.1, 100.0),
        log=True,
        tex=r"\lambda",
        label="Shrinkage λ",
        doc="The strength with which the prior pulls every coefficient to 0. Coefficients about which the data are uninformative shrink to 0.",
    )

    @cached_property
    def rows(self) -> Array:
        """s_i x_i, (N, 4)."""
        return made()[: self.items]

    def data(self) -> NDArray[np.int64]:
        return np.arange(self.items)

    def start(self) -> Array:
        return np.zeros(self.dim)

    @property
    def first_steps(self) -> FirstSteps:
        """U″ is at most about N/2 of such data, and ten of them make noise of V ≈ N²/25."""
        return FirstSteps.of(self.items / 2, self.items**2 / 25)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(f"θ{subscript(k + 1)}" for k in range(self.dim))

    def without_draws(self) -> Array:
        return np.concatenate([[self.shrinkage, self.items], self.rows.ravel()])

    def energy(self, theta: Array) -> float:
        """U at θ (4,)."""
        return float(self.shrinkage * np.abs(theta).sum() - special.log_ndtr(self.rows @ theta).sum())

    def _expansion(self, theta: Array) -> tuple[Array, Array]:
        """The slope and the curvature of −Σ log Φ(s_i θ·x_i)."""
        margins = self.rows @ theta
        # φ/Φ = −(log Φ)′ is h, and h′ = −h(m + h).
        pull = np.exp(-(margins**2) / 2 - special.log_ndtr(margins)) / np.sqrt(2 * np.pi)
        return -self.rows.T @ pull, (self.rows.T * (pull * (margins + pull))) @ self.rows

    @cached_property
    def mode(self) -> Array:
        """By Newton's method, each of whose steps is a lasso, halved until U falls."""
        theta, gain = np.zeros(self.dim), np.inf
        while gain > 1e-12:
            slope, curvature = self._expansion(theta)
            step = coordinate_descent(curvature, curvature @ theta - slope, self.shrinkage) - theta
            while (gain := self.energy(theta) - self.energy(theta + step)) < 0:
                step /= 2
            theta = theta + step
        return theta

    @property
    def curvature(self) -> Array:
        """U″; at a kink the prior counts with the inverse of its variance, λ²/2."""
        return self._expansion(self.mode)[1] + np.diag(np.where(self.mode == 0, self.shrinkage**2 / 2, 0.0))

    tried_at = ({"items": 50, "shrinkage": 0.1}, {"items": 50, "shrinkage": 100.0})
    drawn_at = {"items": 60, "shrinkage": 3.0}

    def textbook_slope(self, theta: Array, datum: int) -> Array:
        row = self.rows[datum]
        m = row @ theta
        pull = np.exp(-m * m / 2) / np.sqrt(2 * np.pi) / special.ndtr(m)
        return np.asarray(self.shrinkage * np.sign(theta) - self.items * pull * row)

    def textbook_symbols(self, theta: Array) -> dict[str, Any]:
        return {"s": np.ones(len(self.rows)), "x": self.rows}


@lru_cache(maxsize=4)
def made(strength: float = 1.0) -> Array:
    """s_i x_i of all data, (MOST, 4), with coefficients so many times MADE_WITH."""
    rng = np.random.Generator(np.random.SFC64(1))
    x = rng.standard_normal((MOST, len(MADE_WITH)))
    z = x @ (strength * np.array(MADE_WITH)) + rng.standard_normal(MOST)
    return np.asarray(np.sign(z)[:, None] * x)
