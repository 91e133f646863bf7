"""Barker proposals: a gradient that chooses directions, not distances."""

from math import exp, log1p

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL


@jit.helper
def _log_one_plus_exp(x):
    """log(1 + eˣ), which does not overflow."""
    return log1p(exp(x)) if x < 0 else x + log1p(exp(-x))


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    scale, theta, grad = params[0], state.position, info.gradient
    n_chains, dim = theta.shape
    before, slope = np.empty_like(theta), np.empty_like(theta)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    model.gradient(theta, grad, model.params)
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                z = scale * rng.standard_normal()
                kept = rng.random() < exp(-_log_one_plus_exp(z * grad[c, i]))
                before[c, i] = theta[c, i]
                theta[c, i] += z if kept else -z
        model.potential(theta, proposed, model.params)
        model.gradient(theta, slope, model.params)
        for c in range(n_chains):
            ratio = energy[c] - proposed[c]
            for i in range(dim):
                moved = theta[c, i] - before[c, i]
                ratio += _log_one_plus_exp(moved * grad[c, i]) - _log_one_plus_exp(-moved * slope[c, i])
            if accept(rng, c, theta, before, ratio, proposed[c], info.counts, False):
                grad[c] = slope[c]
                energy[c] = proposed[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class Barker(Sampler):
    """The Barker proposal with its accept step (Livingstone & Zanella 2022).

    Proposal, for each coordinate: z ~ N(0, s²), and θ'_i = θ_i + z with probability 1/(1 + e^{z ∂_iU(θ)}), else
    θ_i − z: the gradient says which way, never how far. Its density is 2N(δ; 0, s²)/(1 + e^{δ ∂_iU}), δ = θ'_i − θ_i,
    and the accept step has the ratio of these.
    Invariant distribution: e^{−U}, exactly, for every s. Where a gradient is so steep that a Langevin step of the same
    scale leaves the distribution at once, it still proposes within s.
    """

    key = "barker"
    title = "Barker"
    update = (
        r"\begin{aligned}z_i &\sim \mathcal N(0, s^2),\quad \theta'_i = \theta_i \pm z_i,\quad P(+) = \frac{1}{1 + e^{z_i\,\partial_i U(\theta_t)}}\\"
        r"&\text{accept with probability } \min\Bigl(1,\ e^{U(\theta_t) - U(\theta')}\prod_i \frac{1 + e^{(\theta'_i - \theta_i)\,\partial_i U(\theta_t)}}{1 + e^{(\theta_i - \theta'_i)\,\partial_i U(\theta')}}\Bigr)\end{aligned}"
    )
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "None: a skewed proposal and an accept step"
    source = "Livingstone & Zanella 2022"
    accepts = frozenset({FULL})
    moving = True
    gradient_age = 0
    first_stride = 2.0
    advance = advance

    step_size = Real(
        0.7,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="Proposal's scale s",
        doc="The standard deviation of a proposal's length in each coordinate.",
    )

    @property
    def time_per_step(self) -> float:
        return self.step_size**2 / 2

    bias_order = None
    steps_to_test = 400

    parts = {
        "length": r"\mathcal N(0, s^2)",
        "direction": r"P(+) = \frac{1}{1 + e^{z_i\,\partial_i U(\theta_t)}}",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        target, before = run.target, theta.copy()
        gradient = target.gradient_at(theta)
        for c in range(len(theta)):
            textbook.barker(rng, run, c, theta[c], self.step_size, gradient[c])
        moved, slope = theta - before, target.gradient_at(theta)
        skew = np.logaddexp(0, moved * gradient) - np.logaddexp(0, -moved * slope)
        energy = -target.log_density(theta)
        ratio = -target.log_density(before) - energy + skew.sum(axis=1)
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
