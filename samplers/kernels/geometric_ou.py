"""The exact transition of the geometric Ornstein–Uhlenbeck process."""

from math import exp, log, sqrt

import numpy as np

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import POSITIVE


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    decay = exp(-params[0])
    theta = state.position
    mu, sigma = model.params[0], model.params[1]
    scale = sigma * sqrt(1 - decay * decay)
    for t in range(n):
        for c in range(theta.shape[0]):
            theta[c, 0] = exp(mu + (log(theta[c, 0]) - mu) * decay + scale * rng.standard_normal())
            out[t, c, 0] = theta[c, 0]


class GeometricOU(Sampler):
    """The exponential of an Ornstein–Uhlenbeck process, simulated without discretisation error.

    SDE of x = log θ: dx = (μ − x) dt + √2 σ dW, the recipe with D = σ²θ² in θ, Q = 0.
    Exact transition: log θ' ~ N(μ + (log θ − μ)e^{−h}, σ²(1 − e^{−2h})); LogNormal(μ, σ²) is invariant for every h.
    Corrects section 2.3 of Baker et al., which names geometric Brownian motion: that has no stationary distribution.
    """

    key = "geometric_ou"
    title = "Geometric OU"
    update = r"\log\theta_{t+h} \sim \mathcal N\bigl(\mu + (\log\theta_t - \mu)e^{-h},\ \sigma^2(1 - e^{-2h})\bigr)"
    diffusion = r"D = \sigma^2\theta^2"
    curl = "Q = 0"
    integrator = "Exact transition"
    source = "Baker et al. 2018, section 2.3, corrected"
    supports = frozenset({POSITIVE})
    accepts = frozenset({FULL})
    process = "geometric_ou"
    gradient_age = None
    advance = advance

    step_size = Real(
        0.2,
        bounds=(1e-4, 10.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time that one step advances. The transition is exact for every h.",
    )

    bias_order = None
    steps_to_test = 100

    parts = {
        "mean": r"\mu + (\log\theta_t - \mu)e^{-h}",
        "injected noise": r"\sigma^2(1 - e^{-2h})",
    }

    def textbook_step(self, rng, run, theta, r, data):
        h, mu, sigma = self.step_size, run.target.mu, run.target.sigma
        for c in range(len(theta)):
            mean = mu + (np.log(theta[c, 0]) - mu) * exp(-h)
            with run.part("mean", c):
                theta[c, 0] = np.exp(mean)
            with run.part("injected noise", c):
                theta[c, 0] = np.exp(mean + sigma * sqrt(1 - exp(-2 * h)) * rng.standard_normal())
