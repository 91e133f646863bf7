"""Stochastic gradient Barker dynamics: a noisy gradient that chooses directions, not distances."""

from math import exp, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import FirstSteps


@jit.helper
def _share(x):
    """1/(1 + eˣ). No exponential overflows."""
    small = exp(-abs(x))
    return (small if x > 0 else 1.0) / (1 + small)


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    scale, theta, grad = params[0], state.position, info.gradient
    n_chains, dim = theta.shape
    each, noise_scale = np.empty((source.batch_size, dim)), sqrt(source.variance)
    for t in range(n):
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        for c in range(n_chains):
            for i in range(dim):
                z = scale * rng.standard_normal()
                theta[c, i] += z if rng.random() < _share(z * grad[c, i]) else -z
                out[t, c, i] = theta[c, i]


class StochasticBarker(Sampler):
    """Stochastic gradient Barker dynamics (Mauri & Zanella 2024).

    The Barker proposal without its accept step, each coordinate by itself: z ~ N(0, s²), and θ_i ← θ_i + z with
    probability 1/(1 + e^{z ∂̃_iU(θ)}), else θ_i − z. As s → 0 its drift is −s²∇U/2 and its noise N(0, s²I): Langevin
    dynamics for the time ε = s²/2.
    Invariant distribution: e^{−U} as s → 0. Where coordinates are independent its density is e^{−U}(1 + εf + O(ε²))
    with f = ¾Σ(∂_iU)² − ½ΔU + const, and noise of variance V in the gradient heats by 3εV/2: both more than in SGLD,
    whose terms are ¼, ½ and εV/2. On N(0, 1) that is the variance 1 + (3/2)ε(1 + V). But a step is never longer than
    its noise would have it, however steep or noisy the gradient: where SGLD leaves the distribution for good, this one
    comes back.
    """

    key = "sg_barker"
    title = "SG Barker"
    update = r"z_i \sim \mathcal N(0, s^2),\quad \theta_{t+1,i} = \theta_{t,i} \pm z_i,\quad P(+) = \frac{1}{1 + e^{z_i\,\partial_i\tilde U(\theta_t)}}"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "A skewed move, without an accept step"
    source = "Mauri & Zanella 2024"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    first_stride = 2.0
    advance = advance

    step_size = Real(
        0.2,
        bounds=(1e-4, 10.0),
        log=True,
        tex="s",
        label="Scale s of a move",
        doc="The standard deviation of a move's length in each coordinate. The bias is proportional to its square.",
    )

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        # For the time of SGLD's first step.
        if first is None:
            return {}
        time = cls.stride_with(gradient) * first.other
        return {"step_size": min(cls.param.step_size.default, sqrt(2 * time))}

    @property
    def time_per_step(self) -> float:
        return self.step_size**2 / 2

    bias_order = 2
    steps_to_test = 400

    parts = {
        "length": r"\mathcal N(0, s^2)",
        "direction": r"P(+) = \frac{1}{1 + e^{z_i\,\partial_i\tilde U(\theta_t)}}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        gradient = textbook.gradients(rng, run, theta, data)
        for c in range(len(theta)):
            textbook.barker(rng, run, c, theta[c], self.step_size, gradient[c])
