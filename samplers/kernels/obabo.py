"""Underdamped Langevin dynamics by the OBABO splitting, with an accept step."""

from math import exp, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.amortised import Amortised, accept_or_turn
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Count, Flag, Real


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, inner, sure = params[0], int(params[2]), params[3] == 0
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, first, gained = np.empty_like(theta), np.empty_like(theta), np.empty(n_chains)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    each, noise_scale = np.empty((source.batch_size, dim)), sqrt(source.variance)
    decay = exp(-params[1] * step_size / 2)
    heat = sqrt(1 - decay * decay)
    model.potential(theta, energy, model.params)
    for t in range(n):
        for c in range(n_chains):
            gained[c] = 0.0
            for i in range(dim):
                before[c, i], first[c, i] = theta[c, i], r[c, i]
        for k in range(inner + 1):
            if source.batch_size == 0:
                model.gradient(theta, grad, model.params)
                if noise_scale > 0:
                    add_noise(rng, grad, noise_scale)
            else:
                batch_gradients(rng, state, model, source, each, grad)
            for c in range(n_chains):
                for i in range(dim):
                    # The second kick of the update before, with this gradient.
                    if k > 0:
                        pushed = r[c, i] - step_size / 2 * grad[c, i]
                        gained[c] += (pushed * pushed - r[c, i] * r[c, i]) / 2
                        r[c, i] = decay * pushed + heat * rng.standard_normal()
                    if k < inner:
                        r[c, i] = decay * r[c, i] + heat * rng.standard_normal()
                        pushed = r[c, i] - step_size / 2 * grad[c, i]
                        gained[c] += (pushed * pushed - r[c, i] * r[c, i]) / 2
                        r[c, i] = pushed
                        theta[c, i] += step_size * pushed
        model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            ratio = energy[c] - proposed[c] - gained[c]
            accept_or_turn(rng, c, theta, before, r, first, ratio, energy, proposed, info.counts, sure)
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class OBABO(Amortised):
    """Underdamped Langevin dynamics by OBABO (Bussi & Parrinello 2007), with one accept step for L updates.

    SDE: dθ = r dt, dr = −∇U dt − Cr dt + √(2C) dW: the recipe with H = U + ‖r‖²/2, D = diag(0, C),
    Q = [[0, −I], [I, 0]].
    L times O: r ← e^{−Cε/2}r + √(1 − e^{−Cε}) N(0, I); B: r ← r − (ε/2)∇Ũ(θ); A: θ ← θ + εr; B; O. The first B takes
    the gradient of the last one again. Accepted with probability min(1, e^{U(θ) − U(θ') − K}), K what the kicks B added
    to ‖r‖²/2: what O adds is heat, and leaves N(0, I) as it is. A rejection turns the momentum around.
    Invariant distribution: e^{−U − ‖r‖²/2}, exactly, for every ε and L, with fresh minibatches, too. With L = 1 and the
    full gradient it is GGMC of Garriga-Alonso & Fortuin (2021), arXiv:2102.01691; what they call SGGMC is this with
    minibatches, L updates to an epoch, and not the SGGMC of Liu, Zhu & Song (2016), which follows geodesics. Without
    the accept step the bias is O(ε²).
    Shapes: θ and momentum (chains, d).
    """

    key = "obabo"
    title = "OBABO with an accept step"
    update = (
        r"\begin{aligned}\text{L times: } r &\leftarrow e^{-C\epsilon/2} r + \sqrt{1 - e^{-C\epsilon}}\;\mathcal N(0, I),\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta),\quad \theta \leftarrow \theta + \epsilon\, r\\"
        r"r &\leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta),\quad r \leftarrow e^{-C\epsilon/2} r + \sqrt{1 - e^{-C\epsilon}}\;\mathcal N(0, I)"
        + ACCEPT
        + r"\end{aligned}"
    )
    optional = {"accept": (ACCEPT,)}
    diffusion = r"D = \begin{pmatrix}0&0\\0&C\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "OBABO splitting, accept step optional"
    source = "Bussi & Parrinello 2007; Garriga-Alonso & Fortuin 2021, section 3"
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-5, 5.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one update. Large steps are rejected or, without the accept step, biased.",
    )
    friction = Real(
        1.0,
        bounds=(0.01, 100.0),
        log=True,
        tex="C",
        label="Friction C",
        doc="The rate at which the momentum decays. Small friction gives long moves; large friction resembles SGLD.",
    )
    n_leapfrog = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Updates L",
        doc="Updates between two accept steps. Each takes one minibatch, and the accept step all of the data.",
    )
    accept = Flag(
        True,
        label="Accept step",
        doc="The Metropolis test, with which the target is exactly invariant. It takes the energy of all data, with minibatches too.",
    )

    @property
    def gradients_per_step(self) -> int:
        return self.n_leapfrog + 1

    steps_to_test = 100

    parts = {
        "updates": r"\theta + \epsilon\, r",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, decay, n = self.step_size, exp(-self.friction * self.step_size / 2), self.n_leapfrog
        before, first, gained = theta.copy(), r.copy(), np.zeros(len(theta))
        energy = -run.target.log_density(theta)

        def new_heat(c, i):
            r[c, i] = decay * r[c, i] + sqrt(1 - decay * decay) * rng.standard_normal()

        def kick(c, i, gradient):
            gained[c] -= r[c, i] ** 2 / 2
            r[c, i] -= eps / 2 * gradient[c, i]
            gained[c] += r[c, i] ** 2 / 2

        with run.part("updates") as through:
            for k in range(n + 1):
                gradient = textbook.gradients(rng, run, theta, data)
                for c, i in np.ndindex(theta.shape):
                    if k > 0:
                        kick(c, i, gradient)
                        new_heat(c, i)
                    if k < n:
                        new_heat(c, i)
                        kick(c, i, gradient)
                        theta[c, i] += eps * r[c, i]
                through()
        proposed = -run.target.log_density(theta)
        for c in range(len(theta)):
            sure, ratio = self.accept is not True, energy - gained - proposed
            textbook.accept(rng, run, c, theta, before, ratio, proposed, sure, turned=(r, first))
