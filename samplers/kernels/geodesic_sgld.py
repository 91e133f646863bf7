"""Langevin dynamics along geodesics; on the circle that is SGLD in the angle."""

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import MANIFOLD


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    flow, project, shape = model.flow, model.project, model.shape
    gradient, target_params = model.gradient, model.params
    x, grad = state.position, info.gradient
    n_chains, dim = x.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    scale, noise_scale, clipped = scales(source, step_size, 2 * step_size)
    for t in range(n):
        if source.batch_size == 0:
            increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, 2 * step_size, grad, work, increment
            )
        project(x, increment, shape)
        flow(x, increment, 1.0, shape)
        for c in range(n_chains):
            for i in range(dim):
                out[t, c, i] = x[c, i]
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class GeodesicSGLD(Sampler):
    """SGLD along geodesics: the exponential map takes the place of the straight line.

    SDE: dx = −Λ∇U dt + √2 dB with B the manifold's Brownian motion: the recipe in local coordinates, D = G⁻¹, Q = 0.
    Euler–Maruyama: x ← exp_x(Λ(−ε∇Ũ + N(0, 2ε − Vε²))), the end of a geodesic of that velocity after time 1.
    On the circle, in its angle: φ ← φ − ε∂U/∂φ + N(0, 2ε − Vε²), which is SGLD in a flat coordinate.
    Invariant distribution: e^{−U} on the manifold as ε → 0, with a bias O(ε).
    """

    key = "geodesic_sgld"
    title = "SGLD along geodesics"
    update = r"x_{t+1} = \exp_{x_t}\Bigl(-\epsilon\Lambda\nabla\tilde U(x_t) + \Lambda\,\mathcal N\bigl(0,\ 2\epsilon - V\epsilon^2\bigr)\Bigr)"
    diffusion = "D = G^{-1}"
    curl = "Q = 0"
    integrator = "Euler–Maruyama along geodesics"
    source = "Welling & Teh 2011, in the angle; compared with in Liu, Zhu & Song 2016, section 5.1"
    supports = frozenset({MANIFOLD})
    accepts = STOCHASTIC
    first_stride = 2.0
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
        "gradient": r"-\epsilon\Lambda\nabla\tilde U(x_t)",
        "gradient noise": r"-\epsilon\Lambda\nabla\tilde U(x_t)",
        "injected noise": r"\Lambda\,\mathcal N\bigl(0,\ 2\epsilon - V\epsilon^2\bigr)",
        "geodesic": r"\exp_{x_t}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, tangent = self.step_size, run.manifold.textbook_tangent
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * eps, eps)
        for c, x in enumerate(theta):
            # The terms are vectors of the tangent space at x; only the geodesic moves the chain.
            ends = [x, *(x - eps * tangent(x, g) for _, g in textbook.of_gradient(run, c, x, gradient[c]))]
            increment = tangent(x, noise[c] - eps * gradient[c])
            names = [name for name, _ in textbook.of_gradient(run, c, x, gradient[c])]
            for name, *path in zip([*names, "injected noise"], ends, [*ends[1:], x + increment], strict=True):
                run.aside(name, c, path)
            textbook.geodesic(run, c, theta, increment, 1.0)
