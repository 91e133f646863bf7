"""Stochastic gradient variational Bayes with gamma approximating distributions (Knowles 2015)."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, log1p
from typing import Any

import numpy as np
from numba import types
from numpy.random import Generator
from scipy import special, stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.variational.gamma_gradient import log_draw, log_slope
from sgmcmc_lab.samplers.models.variational.optimisers import Ascent, AscentMethod
from sgmcmc_lab.samplers.models.variational.positive import softplus, softplus_inverse
from sgmcmc_lab.samplers.targets.base import Array


@jit.loop(types.float64(jit.rng_type, jit.vector, jit.vector, jit.vector, jit.vector))
def draw(rng, shape, rate, log_x, slope):
    """Draw x from q; write log x and ∂log x/∂shape; return −log q(x), q a density in x."""
    total = 0.0
    for d in range(shape.size):
        a, log_b = shape[d], log(rate[d])
        log_y = log_draw(rng, a)
        slope[d] = log_slope(log_y, a)
        log_x[d] = log_y - log_b
        total -= a * log_b - lgamma(a) + (a - 1) * log_x[d] - exp(log_y)
    return total


def path_gradient(grad: Array, log_x: Array, slope: Array, shape: Array, rate: Array) -> tuple[Array, Array]:
    """The ELBO's gradient at one draw in shape and rate (Knowles 2015, Algorithm 1).

    ``grad`` is that of log f in log x. Only the path through the draw counts, since E ∂log q/∂shape = 0; so where q
    is proportional to f, every draw gives zero.
    """
    both = grad - (shape - 1) + rate * np.exp(log_x)
    return both * slope, -both / rate


@dataclass
class GammaState:
    """q, the optimiser's memory and the ELBO's trace."""

    theta: Array
    """(2, unknowns): softplus of it is the shape and the rate of each unknown."""
    ascent: Ascent
    elbo: array
    """log f − log q of every step's draw: noisy, with the ELBO as its mean."""


def around(mean: Array) -> GammaState:
    """Gammas of shape 1 with these means."""
    theta = softplus_inverse(np.stack([np.ones_like(mean), 1 / mean]))
    return GammaState(theta, Ascent(theta.size), array("d"))


@np.errstate(all="ignore")  # what is no longer finite is found below
def climb(model: Any, state: GammaState, rng: Generator, change: Callable[[Ascent, Array], Array]) -> None:
    """One draw from q and one step of its shapes and rates; ``change`` is the optimiser's, of a gradient."""
    shape, rate = softplus(state.theta)
    log_x, slope, grad = np.empty_like(shape), np.empty_like(shape), np.empty_like(shape)
    entropy = draw(rng, shape, rate, log_x, slope)
    state.elbo.append(model.log_joint(log_x, grad) + entropy)
    g = np.stack(path_gradient(grad, log_x, slope, shape, rate)) * -np.expm1(-np.stack([shape, rate]))
    state.theta += change(state.ascent, g.ravel()).reshape(state.theta.shape)
    if not np.isfinite(state.theta).all():
        raise FloatingPointError("A parameter of q is no longer finite: the step size is too large.")


class GammaAscent(AscentMethod):
    """A product of gammas fitted by stochastic gradients of the ELBO (Knowles 2015, Algorithm 1).

    x_d ~ Gamma(a_d, b_d); ∂x/∂a is the implicit derivative of :mod:`~samplers.models.variational.gamma_gradient`, and
    ∂x/∂b = −x/b. a and b are softplus(α) and softplus(β). A step takes one draw; its gradient is unbiased, and is
    zero for every draw where q is the posterior.
    """

    title = "Gamma SGVB"
    update = (
        r"\begin{aligned}x_d &\sim \mathrm{Gamma}(a_d, b_d),\quad g = \nabla_x\bigl[\log p(Y, x) - \log q(x)\bigr]\\"
        r"g^\alpha_d &= g_d\,\frac{-\partial_a F_{a_d}(b_d x_d)}{b_d f_{a_d}(b_d x_d)}\,\frac{1}{1+e^{-\alpha_d}},\quad "
        r"g^\beta_d = -g_d\,\frac{x_d}{b_d}\,\frac{1}{1+e^{-\beta_d}}\\"
        r"\alpha &\leftarrow \alpha + \gamma g^\alpha,\quad \beta \leftarrow \beta + \gamma g^\beta\end{aligned}"
    )
    source = "Knowles 2015, Algorithm 1"
    has_elbo = True

    def advance(self, model: Any, state: GammaState, rng: Generator) -> int:
        """One draw, one step."""
        climb(model, state, rng, self.change)
        return model.n_data

    tried_at = ({},)

    def textbook_step(self, rng, model, state):
        a, b = np.log(1 + np.exp(state.theta))
        log_y, grad = np.empty_like(a), np.empty_like(a)
        for d, shape in enumerate(a):
            # A gamma of shape below 1 is one of shape + 1 times U^(1/shape).
            log_y[d] = log(rng.standard_gamma(shape + (shape < 1)))
            log_y[d] += log1p(-rng.random()) / shape if shape < 1 else 0
        y = np.exp(log_y)
        state.elbo.append(model.log_joint(np.log(y / b), grad) - stats.gamma.logpdf(y / b, a, scale=1 / b).sum())
        # ∂ log y/∂a at a fixed quantile, by a central difference of the CDF.
        moved = (special.gammainc(a + 1e-5, y) - special.gammainc(a - 1e-5, y)) / 2e-5
        slope = -moved / (y * stats.gamma.pdf(y, a))
        both = grad - (a - 1) + y
        g = np.stack([both * slope, -both / b]) / (1 + np.exp(-state.theta))
        state.theta += self.textbook_change(state.ascent, g.ravel()).reshape(2, -1)
        return model.n_data

    def textbook_unknowns(self, model, state):
        a, b = np.log(1 + np.exp(state.theta))
        return a / b
