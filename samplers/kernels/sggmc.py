"""Stochastic gradient geodesic Monte Carlo, by ABOBA splitting."""

from math import exp

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving, batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import LINE, MANIFOLD


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    flow, project, shape = model.flow, model.project, model.shape
    gradient, target_params = model.gradient, model.params
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    damping, heat = exp(-friction * step_size / 2), 2 * friction * step_size
    scale, noise_scale, clipped = scales(source, step_size, heat)
    square = 0.0
    for t in range(n):
        flow(x, v, step_size / 2, shape)
        if source.batch_size == 0:
            increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
        for c in range(n_chains):
            for i in range(dim):
                v[c, i] = damping * (damping * v[c, i] + increment[c, i])
        project(x, v, shape)
        flow(x, v, step_size / 2, shape)
        for c in range(n_chains):
            for i in range(dim):
                out[t, c, i] = x[c, i]
                square += v[c, i] * v[c, i]
    info.counts[jit.SQUARE] += square
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class SGGMC(Moving):
    """Stochastic gradient geodesic Monte Carlo (Liu, Zhu & Song 2016, section 3.3).

    SDE on the embedded manifold: dx = v dt, dv = −Λ∇U dt − Cv dt + Λ√(2C) dW, with the geodesics' own acceleration: the
    recipe in local coordinates with D = diag(0, MᵀCM), Q = [[0, −I], [I, 0]], whose printed form lost a minus sign.
    ABOBA: A, the geodesic flow for ε/2; B, v ← e^{−Cε/2}v; O, v ← v − εΛ∇Ũ + ΛN(0, 2Cε − Vε²); B; A. V is the known or
    estimated variance of the gradient's noise; where 2Cε < Vε² nothing is injected, and the step is counted as clipped.
    Invariant distribution: e^{−U} on the manifold as ε → 0, with a bias O(ε²); noise V that is not subtracted makes
    E‖v‖²/m the temperature 1 + Vε/2C. On ℝᵈ it is the ABOBA scheme of Langevin dynamics (relative of BAOAB).
    Shapes: x, v (chains, d), d the dimension of the space around the manifold.
    """

    key = "sggmc"
    title = "SGGMC"
    update = (
        r"\begin{aligned}(x, v) &\leftarrow \text{geodesic}_{\epsilon/2}(x, v)\\"
        r"v &\leftarrow e^{-C\epsilon/2}\Bigl(e^{-C\epsilon/2} v - \epsilon\Lambda\nabla\tilde U(x) + \Lambda\,\mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)\Bigr)\\"
        r"(x, v) &\leftarrow \text{geodesic}_{\epsilon/2}(x, v)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0\\0&M^\top C M\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "ABOBA splitting along geodesics"
    source = "Liu, Zhu & Song 2016, eqs (5)–(8)"
    supports = frozenset({LINE, MANIFOLD})
    accepts = STOCHASTIC
    gradient_age = None
    advance = advance

    step_size = Real(
        0.05,
        bounds=(1e-5, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. The bias of this splitting falls with its square.",
    )
    friction = Real(
        2.5,
        bounds=(0.01, 1000.0),
        log=True,
        tex="C",
        label="Friction C",
        doc="The rate at which the velocity decays. It must outweigh the gradient's noise: 2C ≥ Vε. With large friction the chain mixes slowly.",
    )

    bias_order = 2
    steps_to_test = 500
    parts = {
        "geodesic": r"\text{geodesic}_{\epsilon/2}(x, v)",
        "friction, first half": r"e^{-C\epsilon/2} v",
        "gradient": r"- \epsilon\Lambda\nabla\tilde U(x)",
        "gradient noise": r"- \epsilon\Lambda\nabla\tilde U(x)",
        "injected noise": r"\Lambda\,\mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)",
        "friction, second half": r"e^{-C\epsilon/2}",
    }
    textbook_step = textbook.aboba
