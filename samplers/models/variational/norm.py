"""Stochastic gradient variational Bayes with normals on transformed unknowns (Knowles 2015, section 4.1)."""

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import stats

from sgmcmc_lab.samplers.models.variational.optimisers import Ascent, AscentMethod
from sgmcmc_lab.samplers.models.variational.positive import log_softplus, softplus, softplus_inverse
from sgmcmc_lab.samplers.parameters import Option
from sgmcmc_lab.samplers.targets.base import Array

LOG_2PI = float(np.log(2 * np.pi))
FIRST_SPREAD = 0.5
"""The standard deviation of q at the start."""


def log_positive(theta: Array, transform: str) -> Array:
    """log x of θ."""
    return theta if transform == "log" else log_softplus(theta)


def log_jacobian(theta: Array, x: Array, transform: str) -> tuple[float, Array, Array]:
    """log |dx/dθ|, its gradient in θ, and d log x/dθ, for x = e^θ or log(1 + e^θ)."""
    if transform == "log":
        ones = np.ones_like(theta)
        return float(theta.sum()), ones, ones
    # The slope of softplus is 1 − e^{−x}; relative to x it goes to one.
    slope = -np.expm1(-x)
    relative = np.divide(slope, x, out=np.ones_like(x), where=x > 0)
    return float((theta - x).sum()), np.exp(-x), relative


def path_gradient(slope: Array, noise: Array, spread: Array) -> tuple[Array, Array]:
    """The ELBO's gradient at one draw θ = m + s·noise, in m and s.

    ``slope`` is that of log f in θ. Only the path through the draw counts, as for the gammas.
    """
    both = slope + noise / spread
    return both, both * noise


@dataclass
class NormState:
    """q, the optimiser's memory and the ELBO's trace."""

    transform: str
    """The meaning of θ here."""
    centre: Array
    """The means of θ, (unknowns,)."""
    raw_spread: Array
    """Softplus of it is the standard deviation of θ, (unknowns,)."""
    ascent: Ascent
    elbo: array


class NormAscent(AscentMethod):
    """A product of normals on θ_d with x_d = log(1 + e^{θ_d}), or x_d = e^{θ_d}: then q is a product of log-normals.

    The first is the paper's, the second that of automatic differentiation variational inference. θ = m + s ξ with
    ξ ~ N(0, 1) and s = softplus(σ). The gradient is unbiased, by the path only, as that of
    :mod:`~samplers.models.variational.gamma` is.
    """

    title = "NormSGVB"
    update = (
        r"\begin{aligned}\theta_d &= m_d + s_d\,\xi_d,\quad \xi_d\sim\mathcal N(0,1),\quad x_d = \log(1+e^{\theta_d})\\"
        r"g &= \nabla_\theta\Bigl[\log p(Y, x) + \log\Bigl|\tfrac{dx}{d\theta}\Bigr| - \log q(\theta)\Bigr],\quad "
        r"m \leftarrow m + \gamma\, g,\quad \sigma_d \leftarrow \sigma_d + \gamma\, \frac{g_d\,\xi_d}{1+e^{-\sigma_d}}\end{aligned}"
    )
    source = "Knowles 2015, section 4.1; Kucukelbir et al. 2015"
    has_elbo = True

    transform = Option(
        default="softplus",
        objects=["softplus", "log"],
        label="Transform",
        doc="How a number on the whole line becomes positive: log(1 + e^θ), as in the paper, or e^θ.",
    )

    def around(self, x: Array) -> NormState:
        """Normals with these medians of the unknowns."""
        centre = np.log(x) if self.transform == "log" else softplus_inverse(x)
        raw = softplus_inverse(np.full_like(x, FIRST_SPREAD))
        return NormState(self.transform, centre, raw, Ascent(2 * x.size), array("d"))

    def _carry_over(self, state: NormState) -> None:
        """Go on with the other transform: the same medians of x, and to first order the same spread."""
        log_x = log_positive(state.centre, state.transform)
        x = np.exp(log_x)
        before = log_jacobian(state.centre, x, state.transform)[2]
        state.transform = self.transform
        if self.transform == "log":
            state.centre = log_x
        else:
            state.centre = np.where(log_x < -30, log_x, softplus_inverse(np.exp(np.maximum(log_x, -30))))
        after = log_jacobian(state.centre, x, self.transform)[2]
        state.raw_spread = softplus_inverse(softplus(state.raw_spread) * before / after)
        state.ascent = Ascent(2 * x.size)

    @np.errstate(all="ignore")  # what is no longer finite is found below
    def advance(self, model: Any, state: NormState, rng: Generator) -> int:
        """One draw, one step."""
        if state.transform != self.transform:
            self._carry_over(state)
        spread = softplus(state.raw_spread)
        noise = rng.standard_normal(spread.size)
        theta = state.centre + spread * noise
        log_x, grad = log_positive(theta, state.transform), np.empty_like(theta)
        value = model.log_joint(log_x, grad)
        jacobian, jacobian_slope, relative = log_jacobian(theta, np.exp(log_x), state.transform)
        entropy = float((noise**2 / 2 + np.log(spread)).sum() + theta.size * LOG_2PI / 2)
        state.elbo.append(value + jacobian + entropy)
        g_centre, g_spread = path_gradient(grad * relative + jacobian_slope, noise, spread)
        g = np.concatenate([g_centre, g_spread * -np.expm1(-spread)])
        change = self.change(state.ascent, g)
        state.centre += change[: theta.size]
        state.raw_spread += change[theta.size :]
        if not (np.isfinite(state.centre).all() and np.isfinite(state.raw_spread).all()):
            raise FloatingPointError("A parameter of q is no longer finite: the step size is too large.")
        return model.n_data

    tried_at = ({},)

    def textbook_step(self, rng, model, state):
        spread = np.log(1 + np.exp(state.raw_spread))
        noise = rng.standard_normal(len(spread))
        theta = state.centre + spread * noise
        x, slope = np.log(1 + np.exp(theta)), 1 / (1 + np.exp(-theta))
        grad = np.empty_like(x)
        value = model.log_joint(np.log(x), grad) + np.log(slope).sum()
        state.elbo.append(value - stats.norm.logpdf(theta, state.centre, spread).sum())
        g = grad / x * slope + (1 - slope) + noise / spread
        change = self.textbook_change(state.ascent, np.concatenate([g, g * noise / (1 + np.exp(-state.raw_spread))]))
        state.centre += change[: len(g)]
        state.raw_spread += change[len(g) :]
        return model.n_data

    def textbook_unknowns(self, model, state):
        return np.log(1 + np.exp(state.centre))
