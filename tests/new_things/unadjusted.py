"""The unadjusted Langevin algorithm."""

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    heat = 2 * step_size
    scale, noise_scale, _ = scales(source, step_size, heat)
    for t in range(n):
        if source.batch_size == 0:
            increments(rng, model.gradient, theta, model.params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
        for c in range(n_chains):
            for i in range(dim):
                theta[c, i] += increment[c, i]
                out[t, c, i] = theta[c, i]


class Unadjusted(Sampler):
    """Euler's steps of dθ = −∇U dt + √2 dW: θ ← θ − ε∇Ũ(θ) + √(2ε) ξ, with no accept step."""

    key = "unadjusted"
    title = "Unadjusted Langevin"
    update = r"\theta_{t+1} = \theta_t - \epsilon\,\nabla\tilde U(\theta_t) + \sqrt{2\epsilon}\;\xi_t"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama"
    source = "Roberts & Tweedie 1996"
    accepts = STOCHASTIC
    advance = advance

    step_size = Real(
        0.02, bounds=(1e-6, 2.0), log=True, tex=r"\epsilon", label="Step size ε", doc="The time that one step advances."
    )

    bias_order = 1
    steps_to_test = 1000

    parts = {
        "gradient": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "gradient noise": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "injected noise": r"\sqrt{2\epsilon}\;\xi_t",
    }

    def textbook_step(self, rng, run, theta, r, data):
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * self.step_size, self.step_size)
        for c in range(len(theta)):
            textbook.add_increment(run, c, theta[c], self.step_size, theta[c], gradient[c], noise[c])
