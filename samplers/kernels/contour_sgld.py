"""SGLD on a density that is flattened along the energy, with an importance weight for each draw."""

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Count, Real, Value
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: ε, ζ, the lowest energy of the bins, Δu, the number of bins, a, b, the steps that learn.
_STEP_SIZE, _ZETA, _LOWEST, _WIDTH, _BINS, _RATE, _DELAY, _LEARNING = range(8)
# The numbers of a chain beside θ: steps that have learnt, bins, whether learning has ended; log Ψ at the upper ends of
# the bins, and the weight of the last draw.
_LEARNT, _MADE_FOR, _FIXED, _LEVELS = range(4)
_STEEPEST = 2.0
"""d log Ψ/du is at most as steep as this, so that the gradient is multiplied by at most 1 + 2ζ. Between a bin that was
visited and one that was not, the difference of the learnt logarithms has no bound."""
_EXPONENT = 0.6


@jit.helper
def _place(energy, lowest, width, bins):
    """The bin of an energy, and how far into it the energy is, as a share of Δu.

    log Ψ is constant in the first bin and below, and above the last one: these places are at the bin's upper end.
    """
    x = (energy - lowest) / width
    # An infinite energy, or NaN, is in the last one.
    if x < 1:
        return 0, 1.0
    return (int(x), x - int(x)) if x < bins else (bins - 1, 1.0)


@jit.helper
def _rise(levels, j, steepest):
    """log Ψ at the upper end of a bin, less that at its lower end, as far as that is allowed."""
    return min(max(levels[j] - levels[j - 1], -steepest), steepest)


@jit.helper
def _fix(levels, steepest):
    """End the learning: no rise is steeper than allowed from here on, and the largest Ψ is 1."""
    before, highest = levels[0], levels[0]
    for j in range(1, levels.size):
        learnt = levels[j]
        rise = min(max(learnt - before, -steepest), steepest)
        before = learnt
        levels[j] = levels[j - 1] + rise
        highest = max(highest, levels[j])
    for j in range(levels.size):
        levels[j] -= highest


@jit.helper
def _learn(levels, j, step, zeta):
    """p ← p + ω p_jᶻ (1_j − p), of the logarithms of p."""
    share = step * exp(zeta * levels[j])
    visited = exp(levels[j])
    left = log(1 - share)
    for k in range(levels.size):
        levels[k] += left
    levels[j] = log(visited + share * (1 - visited))


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    step_size, zeta, lowest, width = params[_STEP_SIZE], params[_ZETA], params[_LOWEST], params[_WIDTH]
    bins, rate, delay, learning = int(params[_BINS]), params[_RATE], params[_DELAY], params[_LEARNING]
    theta, grad, memory = state.position, info.gradient, state.momentum
    n_chains, dim = theta.shape
    energy, scale, steepest = np.empty(n_chains), sqrt(2 * step_size), _STEEPEST * width
    for c in range(n_chains):
        if memory[c, _MADE_FOR] != bins:
            memory[c, _LEARNT], memory[c, _MADE_FOR], memory[c, _FIXED] = 0.0, bins, 0.0
            for j in range(bins):
                memory[c, _LEVELS + j] = -log(bins)
    model.potential(theta, energy, model.params)
    for t in range(n):
        model.gradient(theta, grad, model.params)
        for c in range(n_chains):
            levels = memory[c, _LEVELS : _LEVELS + bins]
            if memory[c, _LEARNT] >= learning and memory[c, _FIXED] == 0:
                _fix(levels, steepest)
                memory[c, _FIXED] = 1.0
            j, inside = _place(energy[c], lowest, width, bins)
            slope = _rise(levels, j, steepest) / width if inside < 1 else 0.0
            factor = 1 + zeta * slope
            for i in range(dim):
                theta[c, i] = theta[c, i] - step_size * (factor * grad[c, i]) + scale * rng.standard_normal()
        model.potential(theta, energy, model.params)
        for c in range(n_chains):
            levels = memory[c, _LEVELS : _LEVELS + bins]
            j, inside = _place(energy[c], lowest, width, bins)
            if memory[c, _LEARNT] < learning:
                _learn(levels, j, rate / (memory[c, _LEARNT] ** _EXPONENT + delay), zeta)
                memory[c, _LEARNT] += 1
                memory[c, _FIXED] = 0.0
            level = levels[j] if inside == 1 else levels[j - 1] + inside * _rise(levels, j, steepest)
            memory[c, _LEVELS + bins] = exp(zeta * level)
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class ContourSGLD(Sampler):
    """Contour SGLD (Deng, Lin & Liang 2020): chains learn the probabilities p of bins of energies first, then keep p.

    SDE: dθ = −(1 + ζ (log Ψ)'(U)) ∇U dt + √2 dW, that is −∇(U + ζ log Ψ(U)): the recipe with D = I, Q = 0 and another
    energy. The energies from u₀ on are in m bins of the width Δu. In each bin log Ψ is linear, with log p_j at the
    upper end of bin j; in the first bin and below, and above the last one, it is constant.
    Euler–Maruyama: θ ← θ − ε(1 + ζ(log p_J − log p_{J−1})/Δu)∇U(θ) + N(0, 2ε), J the bin of U(θ).
    In the first ``adapt_steps`` steps each chain learns p by p_j ← p_j + ω p_J^ζ (1_{j=J} − p_j), J the bin of the new
    draw, ω = a/(t^0.6 + b). For small Δu p_j converges to P(U in bin j) under e^{−U}. These draws are discarded. Then p
    is fixed, and with it the distribution; the paper continues to adapt it.
    Invariant distribution: e^{−U}/Ψ(U)^ζ as ε → 0, whatever p was learnt; at ζ = 1 all bins are equally probable.
    Each draw has the weight Ψ(U)^ζ, relative to the maximum; the weighted draws have the distribution e^{−U}. The paper
    has the weight p_J^ζ, the limit as Δu → 0; within a bin the drift is that of Ψ.
    (log Ψ)' is kept between −2 and 2: where a bin was never visited its p says nothing, and a step may overshoot. Ψ has
    the same bound, so that the weights stay exact.
    The sampler uses the energy of all data. A noisy energy of variance s² would bias the weights by O(s²).
    Chains learn by themselves. In the interacting version (Deng, Liang, Hao & Lin 2022) they share p, which all of them
    learn; here they stay independent, and their spread measures the error.
    Shapes: θ (chains, d), auxiliary variables (chains, 4 + m): steps that have learnt, m, whether p is fixed, log Ψ at
    the bins' upper ends, the weight of the last draw.
    """

    key = "contour_sgld"
    title = "Contour SGLD"
    update = (
        r"\begin{aligned}\theta_{t+1} &= \theta_t - \epsilon\Bigl(1 + \zeta\,\frac{\log p_J - \log p_{J-1}}{\Delta u}\Bigr)\nabla U(\theta_t) + \mathcal N(0, 2\epsilon),\quad U(\theta_t) \in \text{bin } J\\"
        r"p_j &\leftarrow p_j + \omega_t\, p_J^{\zeta}\,(1_{j=J} - p_j),\quad \omega_t = \tfrac{a}{t^{0.6} + b}\\"
        r"w_{t+1} &= \Psi\bigl(U(\theta_{t+1})\bigr)^{\zeta},\quad \log\Psi \text{ linear between the } \log p_j\end{aligned}"
    )
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama, on a flattened density"
    source = "Deng, Lin & Liang 2020, Algorithm 1"
    accepts = frozenset({FULL})
    weighs = True
    known_bias = "Unequal weights reduce the number of effective draws."
    advance = advance

    step_size = Real(
        0.03,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The duration of one step. Flattening multiplies the gradient by up to 1 + 2ζ, so use smaller steps than in SGLD.",
    )
    zeta = Real(
        0.75,
        bounds=(0.0, 1.5),
        tex=r"\zeta",
        label="Flattening ζ",
        doc="ζ = 1 visits all bins equally often; ζ = 0 is SGLD. Stronger flattening gives more moves between modes and fewer effective draws.",
    )
    lowest = Real(
        0.0,
        bounds=(-1e6, 1e6),
        tex="u_0",
        label="Lowest energy u₀",
        doc="The lower end of the bins, relative to the energy at the target's start. Below the second bin the chain is SGLD.",
    )
    width = Real(
        0.5,
        bounds=(1e-3, 1e4),
        log=True,
        tex=r"\Delta u",
        label="Width Δu",
        doc="The width of a bin. Above u₀ + mΔu the chain is SGLD and drifts back.",
    )
    n_bins = Count(
        40,
        bounds=(2, 1000),
        log=True,
        tex="m",
        label="Bins m",
        doc="The number of bins. Their range should exceed the barriers between modes.",
    )
    rate = Real(
        1.0,
        bounds=(1e-3, 10.0),
        log=True,
        tex="a",
        label="Learning rate a",
        doc="How fast a chain learns p.",
    )
    delay = Real(
        100.0,
        bounds=(20.0, 1e6),
        log=True,
        tex="b",
        label="Delay b",
        doc="A larger delay makes the first learning steps smaller and more equal.",
    )
    adapt_steps = Count(
        2000,
        bounds=(0, 10_000_000),
        label="Learning steps",
        doc="During these first steps the chain learns p. Their draws are discarded.",
    )

    @staticmethod
    def learnt(memory: NDArray[np.float64]) -> NDArray[np.float64]:
        """p of each chain, (chains, m), from its auxiliary variables. After learning these are values of Ψ at the upper
        ends of the bins, as shares of their sum.
        """
        levels = memory[:, _LEVELS:-1]
        p = np.exp(levels - levels.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        m = self.n_bins
        return np.concatenate([[0.0, m, 0.0], np.full(m, -log(m)), [1.0]])

    def packed(self, target: Target) -> NDArray[np.float64]:
        (energy,) = target.energies_at(target.start()[None])
        lowest = float(energy) + self.lowest
        return np.array(
            [self.step_size, self.zeta, lowest, self.width, self.n_bins, self.rate, self.delay, self.adapt_steps],
            dtype=float,
        )

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        """Without flattening all weights are 1. The flattened distribution has a test of its own."""
        return {"step_size": step_size, "zeta": 0.0}

    bias_order = 1
    steps_to_test = 1000

    parts = {
        "gradient": r"\nabla U(\theta_t)",
        "injected noise": r"\mathcal N(0, 2\epsilon)",
        "learning": r"p_j",
        "weight": r"w_{t+1}",
    }

    def textbook_step(self, rng, run, theta, r, data):
        m, target = self.n_bins, run.target
        first = float(target.log_density(target.start()[None])[0])

        def log_psi(c, u):
            """log Ψ at the energy u, and its slope there."""
            knots = r[c, 3 : 3 + m]
            slopes = np.clip(np.diff(knots) / self.width, -2, 2)
            j = m - 1 if not u < m * self.width else max(int(np.floor(u / self.width)), 0)
            if j == 0 or not u < m * self.width:
                return knots[j], 0.0, j
            return knots[j - 1] + (u - j * self.width) * slopes[j - 1], slopes[j - 1], j

        def energies():
            return first - target.log_density(theta) - self.lowest

        gradient, u = target.gradient_at(theta), energies()
        for c in range(len(theta)):
            if r[c, 0] >= self.adapt_steps and r[c, 2] == 0:
                with run.part("learning", c):
                    rises = np.clip(np.diff(r[c, 3 : 3 + m]), -2 * self.width, 2 * self.width)
                    r[c, 3 : 3 + m] = np.append(0, np.cumsum(rises))
                    r[c, 3 : 3 + m] -= r[c, 3 : 3 + m].max()
                    r[c, 2] = 1
            _, slope, _ = log_psi(c, u[c])
            textbook.descend(run, c, theta[c], self.step_size, theta[c], (1 + self.zeta * slope) * gradient[c])
            textbook.inject(run, c, theta[c], [sqrt(2 * self.step_size) * rng.standard_normal() for _ in theta[c]])
        u = energies()
        for c in range(len(theta)):
            if r[c, 0] < self.adapt_steps:
                p, (*_, j) = np.exp(r[c, 3 : 3 + m]), log_psi(c, u[c])
                omega = self.rate / (r[c, 0] ** 0.6 + self.delay)
                p = p + omega * p[j] ** self.zeta * ((np.arange(m) == j) - p)
                with run.part("learning", c, p=p[j]):
                    r[c, 3 : 3 + m] = np.log(p)
                    r[c, 0] += 1
            weight = exp(self.zeta * log_psi(c, u[c])[0])
            with run.part("weight", c, weight=weight):
                r[c, -1] = weight
