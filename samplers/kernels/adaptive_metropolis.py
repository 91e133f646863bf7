"""Adaptive Metropolis: random walks whose proposals learn the covariance."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import Target

_OPTIMAL = 2.38
"""The best scale of proposals on a Gaussian is 2.38/√d standard deviations, as d → ∞ (Roberts, Gelman & Gilks 1997)."""
_FIXED = 0.05
"""The share of proposals that do not adapt, as in the paper."""
_WAIT = 2
"""All proposals are fixed for so many steps a coordinate, until the covariance can have full rank."""


@jit.helper
def _update(memory, x):
    """Add a draw to the memory (number, mean (d,), factor of the scatter in rows): a rank-one update of Cholesky's.

    The scatter of k draws is Σ(x − x̄)(x − x̄)ᵀ = LLᵀ, and that of one more has k/(k + 1)·vvᵀ beside it, v = x − x̄.
    """
    d = x.size
    count, mean, factor = memory[0], memory[1 : 1 + d], memory[1 + d : 1 + d + d * d]
    v = np.empty(d)
    for i in range(d):
        v[i] = (x[i] - mean[i]) * sqrt(count / (count + 1))
        mean[i] += (x[i] - mean[i]) / (count + 1)
    memory[0] = count + 1
    for k in range(d):
        pivot = factor[k * d + k]
        length = sqrt(pivot * pivot + v[k] * v[k])
        if length == 0:
            continue
        cosine, sine = pivot / length, v[k] / length
        factor[k * d + k] = length
        for i in range(k + 1, d):
            old = factor[i * d + k]
            factor[i * d + k] = cosine * old + sine * v[i]
            v[i] = cosine * v[i] - sine * old


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, theta, memory = params[0], state.position, state.momentum
    n_chains, dim = theta.shape
    before, z = np.empty_like(theta), np.empty(dim)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    for t in range(n):
        for c in range(n_chains):
            count = memory[c, 0]
            adapted = count >= _WAIT * dim and rng.random() >= _FIXED
            scale = _OPTIMAL / sqrt(dim * max(count - 1, 1.0)) if adapted else step_size / sqrt(dim)
            for i in range(dim):
                before[c, i] = theta[c, i]
                z[i] = rng.standard_normal()
            for i in range(dim):
                moved = z[i]
                if adapted:
                    moved = 0.0
                    for j in range(i + 1):
                        moved += memory[c, 1 + dim + i * dim + j] * z[j]
                theta[c, i] += scale * moved
        model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            if accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, False):
                energy[c] = proposed[c]
            _update(memory[c], theta[c])
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class AdaptiveMetropolis(Sampler):
    """Adaptive Metropolis (Haario, Saksman & Tamminen 2001), as Roberts & Rosenthal (2009) have it. A short run is
    biased, as its proposals are small until the chain has found the tails: on the banana, where E θ₂² is 3.53, the mean
    of θ₂² is 3.04 ± 0.01 over the first 2,500 steps and 3.38 ± 0.01 over the first 20,000.

    Proposal: θ' = θ + N(0, (2.38²/d) Σ_t) with probability 0.95, Σ_t the covariance of the chain's own draws so far,
    and θ' = θ + N(0, (s²/d) I) with probability 0.05 and in the first 2d steps; accepted with probability
    min(1, e^{U(θ) − U(θ')}).
    Invariant distribution: e^{−U} as t → ∞. Each kernel alone leaves it invariant, and Σ_t changes by O(1/t), so that
    the adaptation vanishes; a chain with a fixed share of it would keep a bias. The energy of all data at each step is
    counted as a gradient. Burn-in that is dropped from the statistics stays in Σ_t.
    Shapes: θ (chains, d), auxiliary variables (chains, 1 + d + d²): the number of draws, their mean, and Cholesky's
    factor of their scatter, updated by one rank a step.
    """

    key = "adaptive_metropolis"
    title = "Adaptive Metropolis"
    update = (
        r"\begin{aligned}\theta' &= \theta_t + \begin{cases}\tfrac{2.38}{\sqrt d}\,\mathcal N(0, \Sigma_t) & \text{with probability } .95\\ \tfrac{s}{\sqrt d}\,\mathcal N(0, I) & \text{else}\end{cases}\\"
        r"&\text{accept with probability } \min\bigl(1, e^{U(\theta_t) - U(\theta')}\bigr),\quad \Sigma_{t+1} = \operatorname{Cov}(\theta_0, \ldots, \theta_{t+1})\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: an adapted proposal and an accept step"
    source = "Haario, Saksman & Tamminen 2001; Roberts & Rosenthal 2009, section 2"
    accepts = frozenset({FULL})
    moving = True
    gradient_age = None
    first_stride = 2.0
    most_coordinates = 100
    advance = advance

    step_size = Real(
        0.5,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="First scale s",
        doc="The scale of the first proposals, and of one in twenty later. The other proposals adapt their scale.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(1 + target.dim + target.dim**2)

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    # Each kernel leaves the target invariant, but the next one depends on where the chain is.
    stationary_start = False

    parts = {
        "proposal": r"\mathcal N(0, \Sigma_t)",
        "accept": r"\text{accept with probability }",
        "covariance": r"\operatorname{Cov}(\theta_0, \ldots, \theta_{t+1})",
    }

    def textbook_step(self, rng, run, theta, r, data):
        before, d = theta.copy(), theta.shape[1]
        for c in range(len(theta)):
            count, scatter = r[c, 0], r[c, 1 + d :].reshape(d, d)
            root = self.step_size * np.eye(d)
            if count >= _WAIT * d and rng.random() >= _FIXED:
                root = 2.38 * scatter / np.sqrt(count - 1)
            with run.part("proposal", c):
                theta[c] += root @ [rng.standard_normal() for _ in range(d)] / np.sqrt(d)
        energy = -run.target.log_density(theta)
        ratio = -run.target.log_density(before) - energy
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
            with run.part("covariance", c):
                count, mean, factor = r[c, 0], r[c, 1 : 1 + d].copy(), r[c, 1 + d :].reshape(d, d)
                scatter = factor @ factor.T + count / (count + 1) * np.outer(theta[c] - mean, theta[c] - mean)
                r[c, 0], r[c, 1 : 1 + d] = count + 1, mean + (theta[c] - mean) / (count + 1)
                # While the scatter has no full rank its Cholesky factor is not unique; by QR, as it is.
                factor = np.linalg.qr(np.column_stack([factor, np.sqrt(count / (count + 1)) * (theta[c] - mean)]).T)[
                    1
                ].T
                r[c, 1 + d :] = (factor * np.where(np.diag(factor) < 0, -1.0, 1.0)).ravel()
