"""Adaptive Langevin dynamics by the BADODAB splitting."""

from math import exp, expm1, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import Target


@jit.helper
def _heat(friction, time, xi):
    """The variance that r gains in this time: 2C·(1 − e^{−2ξt})/2ξ, which is 2Ct at ξ = 0."""
    return -friction * expm1(-2 * xi * time) / xi if xi != 0 else 2 * friction * time


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction, mass = params[0], params[1], params[2]
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # Behind the momentum are the gradient of the last half kick, which the next one takes again, and ξ.
    r, last, xi = state.momentum[:, :dim], state.momentum[:, dim : 2 * dim], state.momentum[:, 2 * dim]
    noise_scale, each = sqrt(source.variance), np.empty((source.batch_size, dim))
    square = mean = 0.0
    for t in range(n):
        for c in range(n_chains):
            kinetic = 0.0
            for i in range(dim):
                r[c, i] -= step_size / 2 * last[c, i]
                theta[c, i] += step_size / 2 * r[c, i]
                kinetic += r[c, i] * r[c, i]
            xi[c] += step_size / 2 * (kinetic / dim - 1) / mass
            decay, scale = exp(-step_size * xi[c]), sqrt(_heat(friction, step_size, xi[c]))
            kinetic = 0.0
            for i in range(dim):
                r[c, i] = decay * r[c, i] + scale * rng.standard_normal()
                kinetic += r[c, i] * r[c, i]
            xi[c] += step_size / 2 * (kinetic / dim - 1) / mass
            for i in range(dim):
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
                square += r[c, i] * r[c, i]
            mean += xi[c]
    info.counts[jit.SQUARE] += square
    info.counts[jit.THERMOSTAT] += mean


@jit.start
def start(rng, position, auxiliary, model, params):
    """The momentum r ~ N(0, I), and the whole gradient at the start; ξ stays."""
    n_chains, dim = position.shape
    grad = np.empty((n_chains, dim))
    model.gradient(position, grad, model.params)
    for c in range(n_chains):
        for i in range(dim):
            auxiliary[c, i], auxiliary[c, dim + i] = rng.standard_normal(), grad[c, i]


class BADODAB(Sampler):
    """Adaptive Langevin dynamics by BADODAB (Leimkuhler & Shang 2016).

    SDE: dθ = r dt, dr = −∇U dt − ξr dt + √(2C) dW, dξ = (‖r‖²/d − 1)/μ dt: the recipe with
    H = U + ‖r‖²/2 + (μd/2)(ξ − C)², D = diag(0, C, 0), Q = [[0, −I, 0], [I, 0, r/(μd)], [0, −rᵀ/(μd), 0]].
    B: r ← r − (ε/2)∇Ũ; A: θ ← θ + (ε/2)r; D: ξ ← ξ + (ε/2)(‖r‖²/d − 1)/μ; O: r ← e^{−ξε}r + √(C(1 − e^{−2ξε})/ξ)
    N(0, I), exact at fixed ξ; D; A; B, with the gradient at the new θ, which the next step's first B takes again. The
    paper divides the force on ξ by its own μ and not by d: its μ is μd here. ξ starts at C.
    Invariant distribution: e^{−H} as ε → 0, with a bias O(ε²) of θ. Unknown noise of the gradient, N(0, V), only moves
    the mean of ξ, to C + Vε/2.
    Shapes: θ (chains, d), momentum (chains, 2d + 1) with the last gradient and ξ behind r.
    """

    key = "badodab"
    title = "BADODAB"
    update = (
        r"\begin{aligned}r &\leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta),\quad \theta \leftarrow \theta + \tfrac{\epsilon}{2} r,\quad \xi \leftarrow \xi + \tfrac{\epsilon}{2\mu}\bigl(\lVert r\rVert^2/d - 1\bigr)\\"
        r"r &\leftarrow e^{-\xi\epsilon} r + \sqrt{C\,(1 - e^{-2\xi\epsilon})/\xi}\;\mathcal N(0, I)\\"
        r"\xi &\leftarrow \xi + \tfrac{\epsilon}{2\mu}\bigl(\lVert r\rVert^2/d - 1\bigr),\quad \theta \leftarrow \theta + \tfrac{\epsilon}{2} r,\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0&0\\0&CI&0\\0&0&0\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I&0\\I&0&r/(\mu d)\\0&-r^\top/(\mu d)&0\end{pmatrix}"
    integrator = "BADODAB splitting, with a thermostat"
    source = "Leimkuhler & Shang 2016, section 3.2"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    gradient_age = 0
    moving = True
    momentum = KEPT
    advance, start = advance, start

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
    thermal_mass = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex=r"\mu",
        label="Thermal mass μ",
        doc="The inertia of the thermostat ξ. A large μ averages the kinetic energy over a longer time.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.append(np.zeros(2 * target.dim), self.friction)

    def thermostats(self, target: Target) -> int:
        return 1

    bias_order = 2
    steps_to_test = 500

    parts = {
        "gradient": r"- \tfrac{\epsilon}{2}\nabla\tilde U(\theta)",
        "gradient noise": r"- \tfrac{\epsilon}{2}\nabla\tilde U(\theta)",
        "drift": r"\theta + \tfrac{\epsilon}{2} r",
        "thermostat": r"\xi + \tfrac{\epsilon}{2\mu}\bigl(\lVert r\rVert^2/d - 1\bigr)",
        "friction": r"e^{-\xi\epsilon} r",
        "injected noise": r"\sqrt{C\,(1 - e^{-2\xi\epsilon})/\xi}\;\mathcal N(0, I)",
        "new gradient": r"\nabla\tilde U(\theta)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, d, mu = self.step_size, theta.shape[1], self.thermal_mass

        def drift(c):
            with run.part("drift", c):
                theta[c] += eps / 2 * r[c, :d]

        def thermostat(c):
            with run.part("thermostat", c):
                r[c, 2 * d] += eps / 2 * ((r[c, :d] ** 2).sum() / d - 1) / mu

        for c in range(len(theta)):
            textbook.descend(run, c, r[c, :d], eps / 2, theta[c], r[c, d : 2 * d])
            drift(c)
            thermostat(c)
            xi = r[c, 2 * d]
            with run.part("friction", c):
                r[c, :d] *= textbook.exponential(-xi * eps)
            variance = -self.friction * expm1(-2 * xi * eps) / xi if xi else 2 * self.friction * eps
            textbook.inject(run, c, r[c, :d], [sqrt(variance) * rng.standard_normal() for _ in range(d)])
            thermostat(c)
            drift(c)
        with run.part("new gradient"):
            r[:, d : 2 * d] = textbook.gradients(rng, run, theta, data)
        for c in range(len(theta)):
            textbook.descend(run, c, r[c, :d], eps / 2, theta[c], r[c, d : 2 * d])
