"""The Metropolis-adjusted Langevin algorithm."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    step_size, theta, grad = params[0], state.position, info.gradient
    n_chains, dim = theta.shape
    scale = sqrt(2 * step_size)
    before, slope = np.empty_like(theta), np.empty_like(theta)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    model.gradient(theta, grad, model.params)
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                before[c, i] = theta[c, i]
                theta[c, i] = theta[c, i] - step_size * grad[c, i] + scale * rng.standard_normal()
        model.potential(theta, proposed, model.params)
        model.gradient(theta, slope, model.params)
        for c in range(n_chains):
            there = back = 0.0
            for i in range(dim):
                moved = theta[c, i] - before[c, i]
                there += (moved + step_size * grad[c, i]) ** 2
                back += (moved - step_size * slope[c, i]) ** 2
            ratio = energy[c] - proposed[c] + (there - back) / (4 * step_size)
            if accept(rng, c, theta, before, ratio, proposed[c], info.counts, False):
                grad[c] = slope[c]
                energy[c] = proposed[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class MALA(Sampler):
    """The Metropolis-adjusted Langevin algorithm (Roberts & Tweedie 1996).

    Proposal: an Euler–Maruyama step of dθ = −∇U dt + √2 dW, θ' = θ − ε∇U(θ) + N(0, 2ε), as SGLD makes it; accepted
    with probability min(1, e^{U(θ) − U(θ')} q(θ | θ')/q(θ' | θ)), q(θ' | θ) ∝ e^{−‖θ' − θ + ε∇U(θ)‖²/4ε}.
    Invariant distribution: e^{−U}, exactly, for every ε: SGLD without its bias, for the price of the energy of all
    data.
    """

    key = "mala"
    title = "MALA"
    update = (
        r"\begin{aligned}\theta' &= \theta_t - \epsilon\,\nabla U(\theta_t) + \mathcal N(0, 2\epsilon)\\"
        r"&\text{accept with probability } \min\Bigl(1,\ e^{U(\theta_t) - U(\theta')}\,\frac{q(\theta_t \mid \theta')}{q(\theta' \mid \theta_t)}\Bigr)\end{aligned}"
    )
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama with an accept step"
    source = "Roberts & Tweedie 1996"
    accepts = frozenset({FULL})
    gradient_age = 0
    first_stride = 4.0
    advance = advance

    step_size = Real(
        0.1,
        bounds=(1e-6, 10.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that a proposal advances. Too large, and all are rejected.",
    )

    bias_order = None
    steps_to_test = 400

    parts = {
        "gradient": r"- \epsilon\,\nabla U(\theta_t)",
        "injected noise": r"\mathcal N(0, 2\epsilon)",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, target, before = self.step_size, run.target, theta.copy()
        gradient = target.gradient_at(theta)
        for c in range(len(theta)):
            textbook.descend(run, c, theta[c], eps, theta[c], gradient[c])
            textbook.inject(run, c, theta[c], [sqrt(2 * eps) * rng.standard_normal() for _ in theta[c]])

        def log_q(to, start):
            return -((to - start + eps * target.gradient_at(start)) ** 2).sum(axis=1) / (4 * eps)

        energy = -target.log_density(theta)
        ratio = -target.log_density(before) - energy
        ratio += log_q(before, theta) - log_q(theta, before)
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
