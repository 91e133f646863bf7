"""Geodesic stochastic gradient Nosé–Hoover thermostats, by ABOBA splitting."""

from math import exp

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving, batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Flag, Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import LINE, MANIFOLD


@jit.helper
def _warm(v, dim, time, freedom):
    """ξ ← ξ + (‖v‖²/m − 1)·time; ξ is behind the velocity, and the flow leaves ‖v‖ as it is."""
    for c in range(v.shape[0]):
        square = 0.0
        for i in range(dim):
            square += v[c, i] * v[c, i]
        v[c, dim] += (square / freedom - 1) * time


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    flow, project, shape = model.flow, model.project, model.shape
    gradient, target_params = model.gradient, model.params
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    freedom = dim if params[2] > 0 else shape[0]
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    heat = 2 * friction * step_size
    scale, noise_scale, clipped = scales(source, step_size, heat)
    square = xi = 0.0
    for t in range(n):
        flow(x, v, step_size / 2, shape)
        _warm(v, dim, step_size / 2, freedom)
        if source.batch_size == 0:
            increments(rng, gradient, x, target_params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
        for c in range(n_chains):
            damping = exp(-v[c, dim] * step_size / 2)
            for i in range(dim):
                v[c, i] = damping * (damping * v[c, i] + increment[c, i])
        project(x, v, shape)
        flow(x, v, step_size / 2, shape)
        _warm(v, dim, step_size / 2, freedom)
        for c in range(n_chains):
            for i in range(dim):
                out[t, c, i] = x[c, i]
                square += v[c, i] * v[c, i]
            xi += v[c, dim]
    info.counts[jit.SQUARE] += square
    info.counts[jit.THERMOSTAT] += xi
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class GSGNHT(Moving):
    """Geodesic stochastic gradient Nosé–Hoover thermostats (Liu, Zhu & Song 2016, section 3).

    SDE: dx = v dt, dv = −Λ∇U dt − ξv dt + Λ√(2C) dW, dξ = (‖v‖²/m − 1) dt: the recipe with
    H = U + ‖v‖²/2 + (m/2)(ξ − C)², D = diag(0, CG, 0), Q = [[0, −I, 0], [I, 0, p/m], [0, −pᵀ/m, 0]] (corrects the
    printed Q, which lost its minus signs).
    m is the dimension of the *manifold*: with that of the space around it, d, the temperature becomes d/m, and the
    stationary distribution e^{−mU/d}. So it is with ``embedding``, and in the authors' released code.
    ABOBA: as in SGGMC with the damper e^{−ξε/2}, and ξ ← ξ + (‖v‖²/m − 1)ε/2 in each half A. ξ starts at C.
    Invariant distribution: e^{−U} on the manifold as ε → 0, with a bias O(ε²). Unknown noise of the gradient, N(0, V),
    only moves the mean of ξ, to C + Vε/2. Shapes: x (chains, d), momentum (chains, d + 1) with ξ last.
    """

    key = "gsgnht"
    title = "gSGNHT"
    update = (
        r"\begin{aligned}(x, v) &\leftarrow \text{geodesic}_{\epsilon/2}(x, v),\quad \xi \leftarrow \xi + \tfrac{\epsilon}{2}\bigl(\lVert v\rVert^2/m - 1\bigr)\\"
        r"v &\leftarrow e^{-\xi\epsilon/2}\Bigl(e^{-\xi\epsilon/2} v - \epsilon\Lambda\nabla\tilde U(x) + \Lambda\,\mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)\Bigr)\\"
        r"(x, v) &\leftarrow \text{geodesic}_{\epsilon/2}(x, v),\quad \xi \leftarrow \xi + \tfrac{\epsilon}{2}\bigl(\lVert v\rVert^2/m - 1\bigr)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0&0\\0&CG&0\\0&0&0\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I&0\\I&0&p/m\\0&-p^\top/m&0\end{pmatrix}"
    integrator = "ABOBA splitting along geodesics, with a thermostat"
    source = "Liu, Zhu & Song 2016, section 3.2, the signs of Q corrected"
    supports = frozenset({LINE, MANIFOLD})
    accepts = STOCHASTIC
    gradient_age = None
    thermostat = True
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
        label="Injected heat C",
        doc="The injected noise is that of friction C. The thermostat ξ starts at C and settles at the friction that balances all noise.",
    )
    embedding = Flag(
        False,
        label="Thermostat counts the embedding's dimension",
        doc="On: the thermostat takes the dimension of the space around the manifold for the manifold's own, a fault of the authors' released code. The chain is then too hot; on a circle twice as hot as it should be.",
    )

    bias_order = 2
    steps_to_test = 500
    parts = {
        "geodesic": r"\text{geodesic}_{\epsilon/2}(x, v)",
        "thermostat": r"\xi + \tfrac{\epsilon}{2}\bigl(\lVert v\rVert^2/m - 1\bigr)",
        "friction, first half": r"e^{-\xi\epsilon/2} v",
        "gradient": r"- \epsilon\Lambda\nabla\tilde U(x)",
        "gradient noise": r"- \epsilon\Lambda\nabla\tilde U(x)",
        "injected noise": r"\Lambda\,\mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)",
        "friction, second half": r"e^{-\xi\epsilon/2}",
    }
    textbook_step = textbook.aboba
