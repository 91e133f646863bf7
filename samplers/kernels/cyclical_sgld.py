"""SGLD whose step size goes round in cycles."""

from math import cos, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import batch_increments, increments, workspace
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    largest, period = params[0], params[1]
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    noise_scale = sqrt(source.variance)
    # Behind what would be a momentum is the number of the step in its cycle, the same in every chain.
    place = state.momentum[0, dim] % period
    for t in range(n):
        step_size = largest / 2 * (cos(pi * place / period) + 1)
        if source.batch_size == 0:
            injected = step_size * (2 - step_size * source.correction)
            scale = sqrt(max(injected, 0.0))
            if injected < 0:
                info.counts[jit.CLIPPED] += n_chains
            increments(rng, model.gradient, theta, model.params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, 2 * step_size, grad, work, increment
            )
        for c in range(n_chains):
            for i in range(dim):
                theta[c, i] += increment[c, i]
                out[t, c, i] = theta[c, i]
        place = place + 1 if place + 1 < period else 0.0
    for c in range(n_chains):
        state.momentum[c, dim] = place


class CyclicalSGLD(Sampler):
    """Cyclical SGLD (Zhang et al. 2020).

    SDE and step are SGLD's, θ ← θ − ε_k∇Ũ(θ) + N(0, ε_k(2 − ε_kB̂)), with ε_k = (ε/2)(1 + cos(πk/M)) in the k-th of
    each M steps: large at first, to leave a mode, then small, to draw from it with little bias.
    Invariant distribution: e^{−U} as ε → 0; the bias follows the cycle. All draws are counted, also those of
    large steps.
    """

    key = "cyclical_sgld"
    title = "Cyclical SGLD"
    update = (
        r"\begin{aligned}\epsilon_k &= \tfrac{\epsilon}{2}\bigl(1 + \cos(\pi k/M)\bigr),\quad k = t \bmod M\\"
        r"\theta_{t+1} &= \theta_t - \epsilon_k\,\nabla\tilde U(\theta_t) + \mathcal N\bigl(0,\ \epsilon_k(2 - \epsilon_k\hat B)\bigr)\end{aligned}"
    )
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama with a cyclical step size"
    source = "Zhang et al. 2020"
    accepts = STOCHASTIC
    # The mean step is a half of the largest.
    first_stride = 4.0
    advance = advance

    step_size = Real(
        0.02,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Largest step size ε",
        doc="The time that the first step of a cycle advances; from there it falls to nearly nothing.",
    )
    period = Count(
        100,
        bounds=(2, 100_000),
        log=True,
        tex="M",
        label="Steps in a cycle M",
        doc="The number of steps after which the step size is at its largest again.",
    )

    @property
    def time_per_step(self) -> float:
        return self.step_size / 2

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(target.dim + 1)

    bias_order = 1
    steps_to_test = 1000

    parts = {
        "gradient": r"- \epsilon_k\,\nabla\tilde U(\theta_t)",
        "gradient noise": r"- \epsilon_k\,\nabla\tilde U(\theta_t)",
        "injected noise": r"\mathcal N\bigl(0,\ \epsilon_k(2 - \epsilon_k\hat B)\bigr)",
        "cycle": r"k = t \bmod M",
    }

    def textbook_step(self, rng, run, theta, r, data):
        place = r[0, -1] % self.period
        eps = self.step_size / 2 * (1 + cos(pi * place / self.period))
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * eps, eps)
        for c in range(len(theta)):
            textbook.add_increment(run, c, theta[c], eps, theta[c], gradient[c], noise[c])
        with run.part("cycle", step_size=eps):
            r[:, -1] = (place + 1) % self.period
