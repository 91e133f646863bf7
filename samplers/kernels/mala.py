"""The Metropolis-adjusted Langevin algorithm."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.adaptation import (
    ADAPT,
    ADAPTED,
    STEP_SIZE,
    WANTED,
    Tuning,
    adapt_steps,
    auxiliary,
    begin_step,
    inverse_mass_of,
    learn,
    probability,
)
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import Target

_WANTED = WANTED["mala"]


@jit.helper
def _propose(rng, theta, before, grad, memory, step_size, n):
    """θ ← θ − εM⁻¹∇U + N(0, 2εM⁻¹) of every chain, with its own ε and M; ``before`` takes the old θ."""
    dim = theta.shape[1]
    for c in range(theta.shape[0]):
        eps, inverse_mass = begin_step(memory[c, dim:], step_size, n), inverse_mass_of(memory[c], dim)
        for i in range(dim):
            time = eps * inverse_mass[i]
            before[c, i] = theta[c, i]
            theta[c, i] = theta[c, i] - time * grad[c, i] + sqrt(2 * time) * rng.standard_normal()


@jit.helper
def _log_ratio(theta, before, grad, slope, row):
    """log q(θ | θ')/q(θ' | θ) of that proposal of a chain."""
    ratio, dim = 0.0, theta.size
    eps, inverse_mass = row[dim + STEP_SIZE], inverse_mass_of(row, dim)
    for i in range(dim):
        time, moved = eps * inverse_mass[i], theta[i] - before[i]
        ratio += ((moved + time * grad[i]) ** 2 - (moved - time * slope[i]) ** 2) / (4 * time)
    return ratio


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    step_size, adapting, theta, grad, memory = params[0], int(params[1]), state.position, info.gradient, state.momentum
    n_chains, dim = theta.shape
    scale = sqrt(2 * step_size)
    before, slope = np.empty_like(theta), np.empty_like(theta)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    model.gradient(theta, grad, model.params)
    for t in range(n):
        if adapting > 0:
            _propose(rng, theta, before, grad, memory, step_size, adapting)
        for c in range(n_chains if adapting == 0 else 0):
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
            if adapting > 0:
                ratio = energy[c] - proposed[c] + _log_ratio(theta[c], before[c], grad[c], slope[c], memory[c])
            if accept(rng, c, theta, before, ratio, proposed[c], info.counts, False):
                grad[c] = slope[c]
                energy[c] = proposed[c]
            if adapting > 0:
                learn(memory[c, dim:], theta[c], probability(ratio), _WANTED, adapting)
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class MALA(Sampler):
    """The Metropolis-adjusted Langevin algorithm (Roberts & Tweedie 1996).

    Proposal: an Euler–Maruyama step of dθ = −∇U dt + √2 dW, θ' = θ − ε∇U(θ) + N(0, 2ε), as SGLD makes it; accepted
    with probability min(1, e^{U(θ) − U(θ')} q(θ | θ')/q(θ' | θ)), q(θ' | θ) ∝ e^{−‖θ' − θ + ε∇U(θ)‖²/4ε}.
    Invariant distribution: e^{−U}, exactly, for every ε: SGLD without its bias, for the price of the energy of all
    data.
    In the first ``adapt_steps`` steps ε and a diagonal mass matrix M, the preconditioner, adapt, as in
    ``samplers/kernels/adaptation.py``: θ' = θ − εM⁻¹∇U(θ) + N(0, 2εM⁻¹).
    """

    key = "mala"
    title = "MALA"
    update = (
        r"\begin{aligned}\theta' &= \theta_t - \epsilon\,\nabla U(\theta_t) + \mathcal N(0, 2\epsilon)\\"
        r"&\text{accept with probability } \min\Bigl(1,\ e^{U(\theta_t) - U(\theta')}\,\frac{q(\theta_t \mid \theta')}{q(\theta' \mid \theta_t)}\Bigr)"
        + ADAPT
        + r"\end{aligned}"
    )
    optional = {"adapt_steps": (ADAPT,)}
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
        doc="The time that a proposal advances. If it is too large, all proposals are rejected.",
    )
    adapt_steps = adapt_steps(_WANTED)
    adaptation = Tuning("acceptance", _WANTED)

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return auxiliary(target, self.adapt_steps)

    @property
    def time_per_step(self) -> float:
        return 0.0 if self.steps_that_adapt else self.step_size

    bias_order = None
    steps_to_test = 400

    parts = {
        "gradient": r"- \epsilon\,\nabla U(\theta_t)",
        "injected noise": r"\mathcal N(0, 2\epsilon)",
        "accept": r"\text{accept with probability }",
        "adaptation": ADAPTED,
    }

    def textbook_step(self, rng, run, theta, r, data):
        target, before, known = run.target, theta.copy(), r[:, theta.shape[1] :]
        eps, inverse_mass = textbook.adapted(run, known, theta, self.step_size, self.adapt_steps)
        eps = eps[:, None] * inverse_mass
        gradient = target.gradient_at(theta)
        for c in range(len(theta)):
            textbook.descend(run, c, theta[c], eps[c], theta[c], gradient[c])
            textbook.inject(run, c, theta[c], [sqrt(2 * each) * rng.standard_normal() for each in eps[c]])

        def log_q(to, start):
            return -((to - start + eps * target.gradient_at(start)) ** 2 / (4 * eps)).sum(axis=1)

        energy = -target.log_density(theta)
        ratio = -target.log_density(before) - energy
        ratio += log_q(before, theta) - log_q(theta, before)
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
            textbook.adapt(run, c, known, theta, ratio[c], 0.574, self.adapt_steps)
