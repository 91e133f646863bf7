"""The naive way onto a sphere: a step of SGLD in the space around it, then normalise."""

from math import sqrt

import numpy as np

from samplers import jit
from samplers.kernels.base import Sampler
from samplers.kernels.splitting import kicks, workspace
from samplers.parameters import Real
from samplers.targets.base import SPHERE


@jit.kernel
def advance(rng, state, model, noise, params, out, n, info):
    step_size = params[0]
    x = state.position
    n_chains, dim = x.shape
    size = model.shape[1]
    kick, work = np.empty((n_chains, dim)), workspace(model, noise, dim)
    for t in range(n):
        info.counts[jit.CLIPPED] += kicks(rng, state, model, noise, step_size, 2 * step_size, info.gradient, work, kick)
        for c in range(n_chains):
            for first in range(0, dim, size):
                square = 0.0
                for i in range(first, first + size):
                    x[c, i] += kick[c, i]
                    square += x[c, i] * x[c, i]
                for i in range(first, first + size):
                    x[c, i] /= sqrt(square)
                    out[t, c, i] = x[c, i]


class NormalisedSGLD(Sampler):
    """SGLD in ℝᵈ, pulled back to the sphere after each step: what one would try first.

    x ← y/‖y‖ with y = x − ε∇Ũ(x) + N(0, 2ε − Vε²), without projection. To first order the tangent part is the right one, so that the
    law is e^{−U} as ε → 0. But the part across the sphere, which a geodesic step does not have, shrinks or stretches the rest by
    1/‖y‖: the bias is O(ε) with a larger constant, and noise V in the gradient, once ε²V is not small, spoils the step.
    """

    key = "normalised_sgld"
    title = "SGLD, then normalise"
    update = r"x_{t+1} = \frac{y}{\lVert y\rVert},\quad y = x_t - \epsilon\nabla\tilde U(x_t) + \mathcal N\bigl(0,\ 2\epsilon - V\epsilon^2\bigr)"
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama, then normalise"
    source = "The naive comparison"
    supports = frozenset({SPHERE})
    estimators = frozenset({"full", "gaussian", "gaussian_corrected", "minibatch", "minibatch_fisher"})
    advance = advance

    step_size = Real(0.01, bounds=(1e-6, 2.0), log=True, tex=r"\epsilon", label="Step size ε",
                     doc="The time that one step advances. The bias is in proportion to it.")  # fmt: skip
