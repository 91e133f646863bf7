"""Differential evolution Markov chain with an archive of past states."""

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
"""A difference of two independent draws has twice their covariance: 2.38/√(2d) is the best scale on a Gaussian."""
_JUMPS = 0.1
"""The share of proposals by a whole difference, which lead from mode to mode."""
_FIRST, _MOST = 10, 100
"""States of a chain in the archive at the start, and at most."""
_JITTER = 1e-3
"""The scale of the jitter, as a share of the first scale; it lets a chain reach every point, whatever the archive."""


@jit.helper
def _archive(memory, x):
    """Put every k-th state into the archive; a full one keeps each second of them, and k is doubled."""
    d = x.size
    memory[0] += 1
    kept, every = int(memory[1]), int(memory[2])
    if int(memory[0]) % every > 0:
        return
    if kept == _MOST:
        for k in range(_MOST // 2):
            for i in range(d):
                memory[3 + k * d + i] = memory[3 + (2 * k + 1) * d + i]
        kept = _MOST // 2
        memory[2] = 2 * every
    for i in range(d):
        memory[3 + kept * d + i] = x[i]
    memory[1] = kept + 1


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    jitter, theta, memory = _JITTER * params[0], state.position, state.momentum
    n_chains, dim = theta.shape
    before, energy, proposed = np.empty_like(theta), np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    for t in range(n):
        for c in range(n_chains):
            kept = int(memory[c, 1])
            first = int(rng.random() * n_chains * kept)
            second = int(rng.random() * (n_chains * kept - 1))
            second += second >= first
            scale = 1.0 if rng.random() < _JUMPS else _OPTIMAL / sqrt(2 * dim)
            for i in range(dim):
                before[c, i] = theta[c, i]
                a = memory[first // kept, 3 + first % kept * dim + i]
                b = memory[second // kept, 3 + second % kept * dim + i]
                theta[c, i] += scale * (a - b) + jitter * rng.standard_normal()
        model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            if accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, False):
                energy[c] = proposed[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]
        for c in range(n_chains):
            _archive(memory[c], theta[c])


@jit.start
def start(rng, position, auxiliary, model, params):
    """The archive's first states are N(start, s²I)."""
    n_chains, dim = position.shape
    for c in range(n_chains):
        auxiliary[c, 1], auxiliary[c, 2] = _FIRST, 10
        for k in range(_FIRST):
            for i in range(dim):
                auxiliary[c, 3 + k * dim + i] = position[c, i] + params[0] * rng.standard_normal()


class DEMCZ(Sampler):
    """DE-MC-Z (ter Braak & Vrugt 2008): proposals by differences of past states, of all chains.

    Proposal: θ' = θ + γ(z_a − z_b) + N(0, (10⁻³s)²I), z_a and z_b two states of an archive Z; γ = 2.38/√(2d), or 1 with
    probability 0.1, so that a chain jumps between modes that the archive has seen. Accepted with probability
    min(1, e^{U(θ) − U(θ')}).
    Z begins with ten states N(θ₀, s²I) a chain. Every tenth step adds a state of each chain; when there are 100 of a
    chain, every second one is dropped and the interval doubles.
    Invariant distribution: e^{−U} as t → ∞. For a fixed archive the proposal is symmetric, and the archive changes by
    O(1/t). Chains share it, and depend on each other by their past alone. The energy of all data at each step is
    counted as a gradient.
    Shapes: θ (chains, d), auxiliary variables (chains, 3 + 100d): steps, states in the archive, interval, states.
    """

    key = "demcz"
    title = "DE-MC-Z"
    update = (
        r"\begin{aligned}\theta' &= \theta_t + \gamma\,(z_a - z_b) + \mathcal N(0, 10^{-6} s^2 I),\quad z_a, z_b \in Z\\"
        r"&\text{accept with probability } \min\bigl(1, e^{U(\theta_t) - U(\theta')}\bigr),\quad Z \leftarrow Z \cup \{\theta_{t+1}\} \text{ every tenth step}\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a proposal from past states and an accept step"
    source = "ter Braak & Vrugt 2008"
    accepts = frozenset({FULL})
    moving = True
    gradient_age = None
    most_coordinates = 100
    first_chains = 3
    advance, start = advance, start

    step_size = Real(
        1.0,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="First scale s",
        doc="The spread of the archive's first states around the start. Later the chains' own states replace it.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(3 + _MOST * target.dim)

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 1000

    parts = {
        "proposal": r"\gamma\,(z_a - z_b)",
        "accept": r"\text{accept with probability }",
        "archive": r"Z \cup \{\theta_{t+1}\}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        before, d = theta.copy(), theta.shape[1]
        # The clock is the same for all chains.
        kept = int(r[-1, 1])
        states = r[:, 3 : 3 + kept * d].reshape(-1, d).copy()
        for c in range(len(theta)):
            a = int(rng.random() * len(states))
            b = int(rng.random() * (len(states) - 1))
            b += b >= a
            gamma = 1.0 if rng.random() < 0.1 else 2.38 / sqrt(2 * d)
            with run.part("proposal", c):
                for i in range(d):
                    theta[c, i] += gamma * (states[a, i] - states[b, i]) + 1e-3 * self.step_size * rng.standard_normal()
        energy = -run.target.log_density(theta)
        ratio = -run.target.log_density(before) - energy
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
        with run.part("archive"):
            r[:, 0] += 1
            if r[-1, 0] % r[-1, 2] == 0:
                for row, x in zip(r, theta, strict=True):
                    past = list(row[3 : 3 + kept * d].reshape(-1, d))
                    if kept == 100:
                        past, row[2] = past[1::2], 2 * row[2]
                    row[1] = len(past) + 1
                    row[3 : 3 + (len(past) + 1) * d] = np.ravel([*past, x])
