"""Stochastic gradient Langevin dynamics."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_increments, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC


@jit.helper
def sgld_step(x, grad, step_size, scale, normal):
    """Euler–Maruyama of one coordinate, with the scale of the noise that is injected."""
    return x - step_size * grad + scale * normal


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    gradient, target_params = model.gradient, model.params
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # The coordinates of all chains in a row: one loop, not one in another.
    x, slope, drawn = theta.reshape(-1), grad.reshape(-1), out.reshape(out.shape[0], -1)
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    injected = step_size * (2 - step_size * source.correction)
    scale, noise_scale = sqrt(max(injected, 0.0)), sqrt(source.variance)
    clipped = source.batch_size == 0 and injected < 0
    for t in range(n):
        if source.batch_size == 0:
            gradient(theta, grad, target_params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
            for j in range(x.size):
                # By itself: what is read before a call must be put aside during it.
                normal = rng.standard_normal()
                x[j] = sgld_step(x[j], slope[j], step_size, scale, normal)
                drawn[t, j] = x[j]
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, 2 * step_size, grad, work, increment
            )
            for c in range(n_chains):
                for i in range(dim):
                    theta[c, i] += increment[c, i]
                    out[t, c, i] = theta[c, i]
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics (Welling & Teh 2011).

    SDE: dθ = −∇U dt + √2 dW, the recipe with D = I, Q = 0.
    Euler–Maruyama: θ ← θ − ε∇Ũ(θ) + N(0, ε(2 − εB̂)), recipe paper eq (13) with D = I.
    Invariant distribution: e^{−U} as ε → 0. On a Gaussian N(0, σ²) with the full gradient the chain's own distribution
    is N(0, σ²/(1 − ε/2σ²)), and it blows up for ε ≥ 2σ².
    """

    key = "sgld"
    title = "SGLD"
    update = r"\theta_{t+1} = \theta_t - \epsilon\,\nabla\tilde U(\theta_t) + \mathcal N\bigl(0,\ \epsilon(2 - \epsilon\hat B)\bigr)"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama"
    accepts = STOCHASTIC
    source = "Welling & Teh 2011; Ma, Chen & Fox 2015, eq (13)"
    first_stride = 2.0
    advance = advance

    step_size = Real(
        0.02,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. Small steps are accurate and slow; large ones are fast, biased, and may blow up.",
    )

    bias_order = 1
    steps_to_test = 1000

    parts = {
        "gradient": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "gradient noise": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "injected noise": r"\mathcal N\bigl(0,\ \epsilon(2 - \epsilon\hat B)\bigr)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * self.step_size, self.step_size)
        for c in range(len(theta)):
            textbook.descend(run, c, theta[c], self.step_size, theta[c], gradient[c])
            textbook.inject(run, c, theta[c], noise[c])
