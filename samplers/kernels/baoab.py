"""Underdamped Langevin dynamics by the BAOAB splitting."""

from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # Behind the momentum is the gradient of the last half kick, which the next one takes again.
    r, last = state.momentum[:, :dim], state.momentum[:, dim:]
    noise_scale, each = sqrt(source.variance), np.empty((source.batch_size, dim))
    decay = exp(-friction * step_size)
    heat = sqrt(1 - decay * decay)
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                r[c, i] -= step_size / 2 * last[c, i]
                theta[c, i] += step_size / 2 * r[c, i]
                r[c, i] = decay * r[c, i] + heat * rng.standard_normal()
                theta[c, i] += step_size / 2 * r[c, i]
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        for c in range(n_chains):
            for i in range(dim):
                last[c, i] = grad[c, i]
                r[c, i] -= step_size / 2 * grad[c, i]
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """The momentum r ~ N(0, I), and the whole gradient at the start."""
    n_chains, dim = position.shape
    grad = np.empty((n_chains, dim))
    model.gradient(position, grad, model.params)
    for c in range(n_chains):
        for i in range(dim):
            auxiliary[c, i], auxiliary[c, dim + i] = rng.standard_normal(), grad[c, i]


class BAOAB(Sampler):
    """Underdamped Langevin dynamics by BAOAB (Leimkuhler & Matthews 2013).

    SDE: dθ = r dt, dr = −∇U dt − Cr dt + √(2C) dW: the recipe with H = U + r²/2, D = diag(0, C), Q = [[0, −I], [I, 0]].
    B: r ← r − (ε/2)∇Ũ; A: θ ← θ + (ε/2)r; O: r ← e^{−Cε}r + √(1 − e^{−2Cε}) N(0, I), the exact transition; A; B, with
    the gradient at the new θ, which the next step's first B takes again: one gradient a step.
    Invariant distribution: e^{−H} as ε → 0. The bias of θ is O(ε²), on Gaussians there is none as long as the step is
    stable, ε < 2σ. The noise of a gradient is not subtracted, and heats the chain by about Vε/2C.
    """

    key = "baoab"
    title = "BAOAB"
    update = (
        r"\begin{aligned}r &\leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta),\quad \theta \leftarrow \theta + \tfrac{\epsilon}{2} r\\"
        r"r &\leftarrow e^{-C\epsilon} r + \sqrt{1 - e^{-2C\epsilon}}\;\mathcal N(0, I)\\"
        r"\theta &\leftarrow \theta + \tfrac{\epsilon}{2} r,\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0\\0&C\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "BAOAB splitting"
    source = "Leimkuhler & Matthews 2013"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    gradient_age = 0
    moving = True
    momentum = KEPT
    advance, start = advance, start

    step_size = Real(
        0.1,
        bounds=(1e-5, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. The bias of this splitting falls with its square.",
    )
    friction = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex="C",
        label="Friction C",
        doc="The rate at which the momentum decays. Small friction gives long moves; large friction resembles SGLD.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(2 * target.dim)

    bias_order = 2
    steps_to_test = 500

    parts = {
        "gradient": r"- \tfrac{\epsilon}{2}\nabla\tilde U(\theta)",
        "gradient noise": r"- \tfrac{\epsilon}{2}\nabla\tilde U(\theta)",
        "drift": r"\theta + \tfrac{\epsilon}{2} r",
        "friction": r"e^{-C\epsilon} r",
        "injected noise": r"\sqrt{1 - e^{-2C\epsilon}}\;\mathcal N(0, I)",
        "new gradient": r"\nabla\tilde U(\theta)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, dim, decay = self.step_size, theta.shape[1], exp(-self.friction * self.step_size)
        for c in range(len(theta)):
            textbook.descend(run, c, r[c, :dim], eps / 2, theta[c], r[c, dim:])
        with run.part("drift"):
            theta += eps / 2 * r[:, :dim]
        with run.part("friction"):
            r[:, :dim] *= decay
        with run.part("injected noise"):
            for c, i in np.ndindex(theta.shape):
                r[c, i] += sqrt(1 - decay * decay) * rng.standard_normal()
        with run.part("drift"):
            theta += eps / 2 * r[:, :dim]
        with run.part("new gradient"):
            r[:, dim:] = textbook.gradients(rng, run, theta, data)
        for c in range(len(theta)):
            textbook.descend(run, c, r[c, :dim], eps / 2, theta[c], r[c, dim:])
