"""The naive way onto a sphere: a step of SGLD in the space around it, then normalise."""

from math import inf, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.manifolds import Sphere, Spheres
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import MANIFOLD


@jit.helper
def normalise(x, c, first, size):
    """x ← x/‖x‖, for the part of chain ``c`` that lies on a sphere of its own."""
    square = 0.0
    for i in range(first, first + size):
        square += x[c, i] * x[c, i]
    if not 0 < square < inf:
        # The squares over- or underflow where the numbers do not; of 0, or of no number, NaN is left.
        largest, square = 0.0, 0.0
        for i in range(first, first + size):
            largest = max(largest, abs(x[c, i]))
        for i in range(first, first + size):
            x[c, i] /= largest
            square += x[c, i] * x[c, i]
    for i in range(first, first + size):
        x[c, i] /= sqrt(square)


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    gradient, target_params = model.gradient, model.params
    x, grad = state.position, info.gradient
    n_chains, dim = x.shape
    size = model.shape[1]
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    scale, noise_scale, clipped = scales(source, step_size, 2 * step_size)
    for t in range(n):
        if source.batch_size == 0:
            increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, 2 * step_size, grad, work, increment
            )
        for c in range(n_chains):
            for first in range(0, dim, size):
                for i in range(first, first + size):
                    x[c, i] += increment[c, i]
                normalise(x, c, first, size)
                for i in range(first, first + size):
                    out[t, c, i] = x[c, i]
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class NormalisedSGLD(Sampler):
    """SGLD in ℝᵈ, pulled back to the sphere after each step: what one would try first.

    x ← y/‖y‖ with y = x − ε∇Ũ(x) + N(0, 2ε − Vε²), without projection. To first order the tangent part is the right
    one, so that the distribution is e^{−U} as ε → 0. But the part normal to the sphere, which a geodesic step does not
    have, rescales the rest by 1/‖y‖: a bias O(ε) of its own, and noise V in the gradient spoils the step once ε²V is
    not small.
    """

    key = "normalised_sgld"
    title = "SGLD, then normalise"
    update = r"x_{t+1} = \frac{y}{\lVert y\rVert},\quad y = x_t - \epsilon\nabla\tilde U(x_t) + \mathcal N\bigl(0,\ 2\epsilon - V\epsilon^2\bigr)"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama, then normalise"
    source = "The naive comparison"
    supports, geometries = frozenset({MANIFOLD}), (Sphere, Spheres)
    accepts = STOCHASTIC
    advance = advance

    step_size = Real(
        0.01,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. The bias is in proportion to it.",
    )

    bias_order = 1

    parts = {
        "gradient": r"- \epsilon\nabla\tilde U(x_t)",
        "gradient noise": r"- \epsilon\nabla\tilde U(x_t)",
        "injected noise": r"\mathcal N\bigl(0,\ 2\epsilon - V\epsilon^2\bigr)",
        "normalise": r"\frac{y}{\lVert y\rVert}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * self.step_size, self.step_size)
        for c, x in enumerate(theta):
            textbook.add_increment(run, c, x, self.step_size, x, gradient[c], noise[c])
            with run.part("normalise", c):
                each = x.reshape(-1, run.shape[1])
                # Over the largest first: the squares may overflow where the numbers do not.
                each /= abs(each).max(axis=1, keepdims=True)
                each /= np.linalg.norm(each, axis=1, keepdims=True)
