"""Stochastic gradient Langevin dynamics."""

from math import sqrt

from samplers import jit
from samplers.kernels.base import Sampler
from samplers.parameters import Real


@jit.kernel
def advance(rng, state, model, noise, params, out, n, info):
    step_size = params[0]
    gradient, target_params = model.gradient, model.params
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    injected = step_size * (2 - step_size * noise.correction)
    clipped = injected < 0
    scale = sqrt(max(injected, 0.0))
    noise_scale = sqrt(noise.variance)
    for t in range(n):
        gradient(theta, grad, target_params)
        if noise_scale > 0:
            for c in range(n_chains):
                for i in range(dim):
                    grad[c, i] += noise_scale * rng.standard_normal()
        for c in range(n_chains):
            for i in range(dim):
                x = theta[c, i] - step_size * grad[c, i] + scale * rng.standard_normal()
                theta[c, i] = x
                out[t, c, i] = x
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class SGLD(Sampler):
    """Stochastic gradient Langevin dynamics (Welling & Teh 2011).

    SDE: dθ = −∇U dt + √2 dW, the recipe with D = I, Q = 0.
    Euler–Maruyama: θ ← θ − ε∇Ũ(θ) + N(0, ε(2 − εB̂)), recipe paper eq (13) with D = I.
    Invariant law: e^{−U} as ε → 0. On a Gaussian N(0, σ²) with the full gradient the chain's own law is
    N(0, σ²/(1 − ε/2σ²)), and it blows up for ε ≥ 2σ².
    """

    key = "sgld"
    title = "SGLD"
    update = r"\theta_{t+1} = \theta_t - \epsilon\,\nabla\tilde U(\theta_t) + \mathcal N\bigl(0,\ \epsilon(2 - \epsilon\hat B)\bigr)"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama"
    source = "Welling & Teh 2011; Ma, Chen & Fox 2015, eq (13)"
    advance = advance

    step_size = Real(0.02, bounds=(1e-6, 2.0), log=True, tex=r"\epsilon", label="Step size ε",
                     doc="The time that one step advances. Small steps are accurate and slow; large ones are fast, biased, and may blow up.")  # fmt: skip
