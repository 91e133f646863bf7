"""Stochastic gradient Hamiltonian Monte Carlo."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_increments, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC


@jit.helper
def sghmc_kick(r, grad, damping, step_size, scale, normal):
    """One momentum after friction, gradient and noise; the damping is 1 − εC."""
    return damping * r - step_size * grad + scale * normal


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    gradient, target_params = model.gradient, model.params
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    damping, heat = 1 - step_size * friction, 2 * friction * step_size
    injected = step_size * (2 * friction - step_size * source.correction)
    scale, noise_scale = sqrt(max(injected, 0.0)), sqrt(source.variance)
    clipped = source.batch_size == 0 and injected < 0
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                theta[c, i] += step_size * r[c, i]
        if source.batch_size == 0:
            gradient(theta, grad, target_params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
            for c in range(n_chains):
                for i in range(dim):
                    r[c, i] = sghmc_kick(r[c, i], grad[c, i], damping, step_size, scale, rng.standard_normal())
                    out[t, c, i] = theta[c, i]
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
            for c in range(n_chains):
                for i in range(dim):
                    r[c, i] = damping * r[c, i] + increment[c, i]
                    out[t, c, i] = theta[c, i]
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class SGHMC(Sampler):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin 2014, Algorithm 2).

    SDE: dθ = r dt, dr = −∇U dt − C r dt + √(2C) dW, the recipe with H = U + r²/2, D = diag(0, C),
    Q = [[0, −I], [I, 0]].
    Semi-implicit Euler: θ ← θ + εr, then r ← r − ε∇Ũ(θ) − εCr + N(0, ε(2C − εB̂)): recipe paper
    eq (12) with the gradient taken at the new θ, as in Chen et al.
    Invariant distribution: e^{−H} as ε → 0.
    """

    key = "sghmc"
    title = "SGHMC"
    update = (
        r"\begin{aligned}\theta_{t+1} &= \theta_t + \epsilon\, r_t\\"
        r"r_{t+1} &= (1 - \epsilon C)\, r_t - \epsilon\,\nabla\tilde U(\theta_{t+1}) + \mathcal N\bigl(0,\ \epsilon(2C - \epsilon\hat B)\bigr)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0\\0&C\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Semi-implicit Euler"
    accepts = STOCHASTIC
    gradient_age = 0
    source = "Chen, Fox & Guestrin 2014; Ma, Chen & Fox 2015, eq (12)"
    moving = True
    momentum = KEPT
    advance = advance

    step_size = Real(
        0.1,
        bounds=(1e-5, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. The momentum lets it be larger than in SGLD for the same bias.",
    )
    friction = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex="C",
        label="Friction C",
        doc="The rate at which the momentum decays. Small friction gives long moves; large friction resembles SGLD. It must outweigh the gradient's noise: 2C ≥ εB̂.",
    )

    bias_order = 2
    steps_to_test = 500

    parts = {
        "drift": r"\epsilon\, r_t",
        "friction": r"(1 - \epsilon C)\, r_t",
        "gradient": r"- \epsilon\,\nabla\tilde U(\theta_{t+1})",
        "gradient noise": r"- \epsilon\,\nabla\tilde U(\theta_{t+1})",
        "injected noise": r"\mathcal N\bigl(0,\ \epsilon(2C - \epsilon\hat B)\bigr)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, damping = self.step_size, 1 - self.step_size * self.friction
        with run.part("drift"):
            theta += eps * r
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * self.friction * eps, eps)
        with run.part("friction"):
            r *= damping
        for c in range(len(theta)):
            textbook.descend(run, c, r[c], eps, theta[c], gradient[c])
            textbook.inject(run, c, r[c], noise[c])
