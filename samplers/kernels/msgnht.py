"""Stochastic gradient Nosé–Hoover thermostats, one for each coordinate."""

from math import exp

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving, batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import STOCHASTIC
from sgmcmc_lab.samplers.targets.base import Target


@jit.helper
def _drift(theta, r, time):
    """θ ← θ + r·time and ξ ← ξ + (r² − 1)·time, coordinate by coordinate; ξ is behind the momentum."""
    dim = theta.shape[1]
    for c in range(theta.shape[0]):
        for i in range(dim):
            theta[c, i] += time * r[c, i]
            r[c, dim + i] += (r[c, i] * r[c, i] - 1) * time


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, friction = params[0], params[1]
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    heat = 2 * friction * step_size
    scale, noise_scale, clipped = scales(source, step_size, heat)
    square = xi = 0.0
    for t in range(n):
        _drift(theta, r, step_size / 2)
        if source.batch_size == 0:
            increments(rng, model.gradient, theta, model.params, grad, noise_scale, step_size, scale, increment)
        else:
            info.counts[jit.CLIPPED] += batch_increments(
                rng, state, model, source, step_size, heat, grad, work, increment
            )
        for c in range(n_chains):
            for i in range(dim):
                damping = exp(-r[c, dim + i] * step_size / 2)
                r[c, i] = damping * (damping * r[c, i] + increment[c, i])
        _drift(theta, r, step_size / 2)
        for c in range(n_chains):
            for i in range(dim):
                out[t, c, i] = theta[c, i]
                square += r[c, i] * r[c, i]
                xi += r[c, dim + i] / dim
    info.counts[jit.SQUARE] += square
    info.counts[jit.THERMOSTAT] += xi
    if clipped:
        info.counts[jit.CLIPPED] += n * n_chains


class MSGNHT(Moving):
    """Stochastic gradient Nosé–Hoover thermostats with one ξ a coordinate (Ding et al. 2014, section 3; mSGNHT).

    SDE: dθ = r dt, dr = −∇U dt − ξ∘r dt + √(2C) dW, dξ_i = (r_i² − 1) dt: the recipe with
    H = U + ‖r‖²/2 + Σ(ξ_i − C)²/2, D = diag(0, C, 0), Q_{r_i ξ_i} = r_i.
    ABOBA: A, θ ← θ + rε/2 and ξ_i ← ξ_i + (r_i² − 1)ε/2; B, r_i ← e^{−ξ_iε/2}r_i; O, r ← r − ε∇Ũ + N(0, 2Cε − Vε²);
    B; A (Chen et al. 2015). ξ starts at C.
    Invariant distribution: e^{−U} as ε → 0, with a bias O(ε²). Noise of the gradient whose variance V_i differs from
    coordinate to coordinate only moves the means of ξ, to C + V_iε/2, where a single thermostat has one mean for all.
    No ξ absorbs a correlation between coordinates.
    Shapes: θ (chains, d), momentum (chains, 2d) with ξ behind r.
    """

    key = "msgnht"
    title = "mSGNHT"
    update = (
        r"\begin{aligned}\theta &\leftarrow \theta + \tfrac{\epsilon}{2} r,\quad \xi_i \leftarrow \xi_i + \tfrac{\epsilon}{2}(r_i^2 - 1)\\"
        r"r_i &\leftarrow e^{-\xi_i\epsilon/2}\Bigl(e^{-\xi_i\epsilon/2} r_i - \epsilon\,\partial_i\tilde U(\theta) + \mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)\Bigr)\\"
        r"\theta &\leftarrow \theta + \tfrac{\epsilon}{2} r,\quad \xi_i \leftarrow \xi_i + \tfrac{\epsilon}{2}(r_i^2 - 1)\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0&0\\0&CI&0\\0&0&0\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I&0\\I&0&\operatorname{diag} r\\0&-\operatorname{diag} r&0\end{pmatrix}"
    integrator = "ABOBA splitting, a thermostat for each coordinate"
    source = "Ding et al. 2014, section 3; Chen, Ding & Carin 2015"
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
        doc="The injected noise is that of friction C. Each ξ starts at C and settles at the friction that balances the noise of its coordinate.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.repeat([0.0, self.friction], target.dim)

    def thermostats(self, target: Target) -> int:
        return target.dim

    bias_order = 2
    steps_to_test = 500

    parts = {
        "drift": r"\theta + \tfrac{\epsilon}{2} r",
        "thermostat": r"\xi_i + \tfrac{\epsilon}{2}(r_i^2 - 1)",
        "friction, first half": r"e^{-\xi_i\epsilon/2} r_i",
        "gradient": r"- \epsilon\,\partial_i\tilde U(\theta)",
        "gradient noise": r"- \epsilon\,\partial_i\tilde U(\theta)",
        "injected noise": r"\mathcal N\bigl(0,\ 2C\epsilon - V\epsilon^2\bigr)",
        "friction, second half": r"e^{-\xi_i\epsilon/2}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, dim = self.step_size, theta.shape[1]

        def half():
            with run.part("drift"):
                theta[:] += eps / 2 * r[:, :dim]
            with run.part("thermostat"):
                r[:, dim:] += eps / 2 * (r[:, :dim] ** 2 - 1)

        half()
        gradient, noise = textbook.gradient_and_noise(rng, run, theta, data, 2 * self.friction * eps, eps)
        for c in range(len(theta)):
            damping = [textbook.exponential(-xi * eps / 2) for xi in r[c, dim:]]
            with run.part("friction, first half", c):
                r[c, :dim] *= damping
            textbook.add_increment(run, c, r[c, :dim], eps, theta[c], gradient[c], noise[c])
            with run.part("friction, second half", c):
                r[c, :dim] *= damping
        half()
