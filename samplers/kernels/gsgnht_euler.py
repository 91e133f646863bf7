"""The first-order form of the geodesic thermostat, to compare ABOBA with."""

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import MovingByEuler, batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import MANIFOLD


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    flow, project, shape = model.flow, model.project, model.shape
    gradient, target_params = model.gradient, model.params
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    freedom = shape[0]
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    heat = 2 * friction * step_size
    scale, noise_scale, clipped = scales(source, step_size, heat)
    total = xi = 0.0
    for t in range(n):
        if source.batch_size == 0:
            increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
        # Across the sphere the old gradient would be a part of the new one, and the step half implicit.
        project(x, increment, shape)
        flow(x, v, step_size, shape)
        for c in range(n_chains):
            square, damping = 0.0, 1 - v[c, dim] * step_size
            for i in range(dim):
                square += v[c, i] * v[c, i]
                v[c, i] = damping * v[c, i] + increment[c, i]
                out[t, c, i] = x[c, i]
            v[c, dim] += (square / freedom - 1) * step_size
        project(x, v, shape)
        for c in range(n_chains):
            for i in range(dim):
                total += v[c, i] * v[c, i]
            xi += v[c, dim]
    info.counts[jit.SQUARE] += total
    info.counts[jit.THERMOSTAT] += xi
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class GSGNHTEuler(MovingByEuler):
    """gSGNHT by explicit Euler: every part of the step from the state before it.

    SDE and invariant distribution as in :class:`~samplers.kernels.gsgnht.GSGNHT`. Euler–Maruyama: x moves along the
    geodesic of the old v for ε, v ← (1 − ξε)v + Λ(x_old)(−ε∇Ũ(x_old) + N(0, 2Cε − Vε²)), projected at the new x, and
    ξ ← ξ + ε(‖v_old‖²/m − 1). The bias is O(ε). Shapes: x (chains, d), momentum (chains, d + 1) with ξ last.
    """

    key = "gsgnht_euler"
    title = "gSGNHT, Euler"
    update = (
        r"\begin{aligned}(x_{t+1}, v') &= \text{geodesic}_{\epsilon}(x_t, v_t),\quad \xi_{t+1} = \xi_t + \epsilon\bigl(\lVert v_t\rVert^2/m - 1\bigr)\\"
        r"v_{t+1} &= \Lambda(x_{t+1})\Bigl((1 - \xi_t\epsilon)\,v' + \Lambda(x_t)\bigl[-\epsilon\nabla\tilde U(x_t) + \mathcal N(0,\ 2C\epsilon - V\epsilon^2)\bigr]\Bigr)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0&0\\0&CG&0\\0&0&0\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I&0\\I&0&p/m\\0&-p^\top/m&0\end{pmatrix}"
    integrator = "Explicit Euler along geodesics, with a thermostat"
    source = "Liu, Zhu & Song 2016, section 3.2, at first order"
    supports = frozenset({MANIFOLD})
    accepts = STOCHASTIC
    thermostat = True
    advance = advance

    step_size = Real(
        0.005,
        bounds=(1e-5, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. The bias is in proportion to it.",
    )
    friction = Real(
        2.5,
        bounds=(0.01, 1000.0),
        log=True,
        tex="C",
        label="Injected heat C",
        doc="The injected noise is that of friction C. The thermostat ξ starts at C and settles at the friction that balances all noise.",
    )

    bias_order = 1
    parts = {
        "geodesic": r"\text{geodesic}_{\epsilon}(x_t, v_t)",
        "thermostat": r"\epsilon\bigl(\lVert v_t\rVert^2/m - 1\bigr)",
        "friction": r"(1 - \xi_t\epsilon)\,v'",
        "gradient": r"-\epsilon\nabla\tilde U(x_t)",
        "gradient noise": r"-\epsilon\nabla\tilde U(x_t)",
        "injected noise": r"\mathcal N(0,\ 2C\epsilon - V\epsilon^2)",
    }
    textbook_step = textbook.geodesic_euler
