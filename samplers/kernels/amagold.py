"""AMAGOLD: stochastic gradient Hamiltonian Monte Carlo with an accept step now and then."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.amortised import Amortised, accept_or_turn
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Count, Real


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, damping, inner = params[0], params[0] * params[1] / 2, int(params[2])
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, first, work = np.empty_like(theta), np.empty_like(theta), np.empty(n_chains)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    each, noise_scale, scale = np.empty((source.batch_size, dim)), sqrt(source.variance), 2 * sqrt(damping)
    model.potential(theta, energy, model.params)
    for t in range(n):
        for c in range(n_chains):
            work[c] = 0.0
            for i in range(dim):
                before[c, i], first[c, i] = theta[c, i], r[c, i]
                theta[c, i] += step_size / 2 * r[c, i]
        for k in range(inner):
            if source.batch_size == 0:
                model.gradient(theta, grad, model.params)
                if noise_scale > 0:
                    add_noise(rng, grad, noise_scale)
            else:
                batch_gradients(rng, state, model, source, each, grad)
            time = step_size if k < inner - 1 else step_size / 2
            for c in range(n_chains):
                for i in range(dim):
                    old = r[c, i]
                    pushed = (1 - damping) * old - step_size * grad[c, i]
                    r[c, i] = (pushed + scale * rng.standard_normal()) / (1 + damping)
                    work[c] += step_size / 2 * grad[c, i] * (old + r[c, i])
                    theta[c, i] += time * r[c, i]
        model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            ratio = energy[c] - proposed[c] + work[c]
            accept_or_turn(rng, c, theta, before, r, first, ratio, energy, proposed, info.counts, False)
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class AMAGOLD(Amortised):
    """AMAGOLD (Zhang, Cooper & De Sa 2020): SGHMC whose trajectory is reversible, with one accept step for L updates.

    SDE: that of SGHMC, dθ = r dt, dr = −∇U dt − Cr dt + √(2C) dW.
    θ moves half a step; L times r ← ((1 − β)r − ε∇Ũ(θ) + 2√β N(0, I))/(1 + β), β = εC/2, and between them θ ← θ + εr;
    θ moves half a step. The work W = (ε/2)Σ∇Ũ·(r_k + r_{k+1}) is what the noisy gradients add to −U along the way, and
    the trajectory is accepted with probability min(1, e^{U(θ) − U(θ') + W}). A rejection turns the momentum around.
    Invariant distribution: e^{−U − ‖r‖²/2}, exactly, for every ε and L, with minibatches, too: an update with the
    friction implicit in both its ends is, given the minibatch, reversible but for the factor e^{W}, and a fresh batch
    is as probable on the way back. An estimator with a memory would not be.
    The energy of all data is taken once in L updates: that is what the accept step costs, beside L minibatches.
    Shapes: θ and momentum (chains, d).
    """

    key = "amagold"
    title = "AMAGOLD"
    update = (
        r"\begin{aligned}\theta &\leftarrow \theta + \tfrac{\epsilon}{2} r;\quad \text{then } L \text{ times, the last } \theta \text{ by } \tfrac{\epsilon}{2}:\\"
        r"r' &= \bigl((1 - \beta)\,r - \epsilon\,\nabla\tilde U(\theta) + 2\sqrt\beta\;\mathcal N(0, I)\bigr)/(1 + \beta),\quad \theta \leftarrow \theta + \epsilon\, r',\quad \beta = \epsilon C/2\\"
        r"&\text{accept with probability } \min\bigl(1, e^{U(\theta_t) - U(\theta) + W}\bigr),\quad W = \tfrac{\epsilon}{2}\textstyle\sum\nabla\tilde U \cdot (r + r')\end{aligned}"
    )
    diffusion = r"D = \begin{pmatrix}0&0\\0&C\end{pmatrix}"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Leapfrog with symmetric friction, and an accept step for L updates"
    source = "Zhang, Cooper & De Sa 2020, Algorithm 1"
    # Positions are half a step behind: at the first fall from afar the error of the energy has the wrong sign.
    first_stride = 0.25
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-5, 5.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one update. Large steps are rejected; the distribution is exact for every step size.",
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

    @property
    def gradients_per_step(self) -> int:
        return self.n_leapfrog

    steps_to_test = 100

    parts = {
        "updates": r"\theta + \epsilon\, r'",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, beta = self.step_size, self.step_size * self.friction / 2
        before, first, work = theta.copy(), r.copy(), np.zeros(len(theta))
        energy = -run.target.log_density(theta)
        with run.part("updates") as through:
            theta += eps / 2 * r
            for k in range(self.n_leapfrog):
                gradient = textbook.gradients(rng, run, theta, data)
                z = np.array([[rng.standard_normal() for _ in row] for row in theta])
                old = r.copy()
                r[:] = ((1 - beta) * old - eps * gradient + 2 * sqrt(beta) * z) / (1 + beta)
                work += eps / 2 * (gradient * (old + r)).sum(axis=1)
                theta += (eps if k < self.n_leapfrog - 1 else eps / 2) * r
                through()
        proposed = -run.target.log_density(theta)
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, energy - proposed + work, proposed, turned=(r, first))
