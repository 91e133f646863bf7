"""Replica exchange SGLD: rungs at several temperatures, swapped by noisy energies."""

from math import exp, log

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import batch_increments, increments, scales, workspace
from sgmcmc_lab.samplers.kernels.tempering import Tempered, put_rungs, swap, take_rungs, temperatures
from sgmcmc_lab.samplers.parameters import Flag, Real
from sgmcmc_lab.samplers.requirements import MEMORY, STOCHASTIC
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, n_rungs, sd, corrected = params[0], int(params[1]), params[3], params[4] != 0
    n_chains, dim = state.position.shape
    grad, heat = info.gradient, temperatures(n_rungs, params[2])
    rungs = np.empty((n_rungs, n_chains, dim))
    take_rungs(state, rungs)
    increment, work = np.empty((n_chains, dim)), workspace(source, dim)
    colder, hotter, lower = np.empty((n_chains, dim)), np.empty((n_chains, dim)), np.empty(n_chains, np.int64)
    energy, above = np.empty(n_chains), np.empty(n_chains)
    for t in range(n):
        # The coldest rung last: its gradient is the one that is reported.
        for k in range(n_rungs - 1, -1, -1):
            x = rungs[k]
            if source.batch_size == 0:
                scale, noise_scale, clipped = scales(source, step_size, 2 * step_size * heat[k])
                increments(rng, model.gradient, x, model.params, grad, noise_scale, step_size, scale, increment)
                if clipped:
                    info.counts[jit.CLIPPED] += n_chains
            else:
                at_rung = jit.State(x, state.momentum, state.data, state.memory)
                info.counts[jit.CLIPPED] += batch_increments(
                    rng, at_rung, model, source, step_size, 2 * step_size * heat[k], grad, work, increment
                )
            for c in range(n_chains):
                for i in range(dim):
                    x[c, i] += increment[c, i]
        for c in range(n_chains):
            lower[c] = int(rng.random() * (n_rungs - 1))
            for i in range(dim):
                colder[c, i] = rungs[lower[c], c, i]
                hotter[c, i] = rungs[lower[c] + 1, c, i]
        model.potential(colder, energy, model.params)
        model.potential(hotter, above, model.params)
        for c in range(n_chains):
            gap = 1 / heat[lower[c]] - 1 / heat[lower[c] + 1]
            difference = energy[c] - above[c]
            if sd > 0:
                difference += sd * rng.standard_normal()
                difference -= sd * rng.standard_normal()
                if corrected:
                    difference -= gap * sd * sd
            if swap(rng, state, rungs, c, lower[c], gap * difference):
                info.counts[jit.ACCEPTED] += 1
            for i in range(dim):
                out[t, c, i] = rungs[0, c, i]
    put_rungs(state, rungs)


class ReplicaExchangeSGLD(Tempered):
    """Replica exchange SGLD (Deng et al. 2020), with and without the correction for the noise of the energies.

    SDE of rung k: dθ = −∇U dt + √(2T_k) dW, the recipe with D = T_k I for H = U/T_k. Euler–Maruyama with one ε for all
    rungs: θ_k ← θ_k − ε∇Ũ(θ_k) + N(0, ε(2T_k − εB̂)). Then a pair of neighbours, each with the same probability, swaps
    with probability min(1, S̃), S̃ = exp(a(Ũ(θ_k) − Ũ(θ_{k+1}) − aσ²)), a = 1/T_k − 1/T_{k+1}. The sign of the energies:
    the colder rung takes the lower one. Each Ũ is U with noise N(0, σ²), drawn afresh at every swap, the stand-in for
    the energy of a minibatch; the draws are those of rung 1.

    The correction: log S̃ has variance s² = 2a²σ², for it has the noise of two energies, and E S̃ = S needs its mean
    to be s²/2 = a²σ² lower; where σ² is the variance of one energy the factor of a²σ² is one, and where it is that of
    the difference it is one half. The paper argues from E S̃ = S, which does not suffice for E min(1, S̃). For Gaussian
    noise the same number is the penalty of Ceperley & Dewing (1999): with A(x) = E min(1, e^{x + sZ − s²/2}),
    Z ~ N(0, 1), A(x) = Φ(x/s − s/2) + eˣΦ(−x/s − s/2) = eˣA(−x), so that swaps are reversible exactly, and the price
    is that 2Φ(−s/2) of the swaps between equal energies are left. Without it A(x)/A(−x) is nearer to 1 than eˣ is:
    rung 1 takes the weights of modes from the hotter ones.
    Invariant distribution of rung 1: e^{−U} as ε → 0 with the correction, whatever σ.
    """

    key = "resgld"
    title = "Replica exchange SGLD"
    update = (
        r"\begin{aligned}\theta_k &\leftarrow \theta_k - \epsilon\,\nabla\tilde U(\theta_k) + \mathcal N\bigl(0,\ \epsilon(2T_k - \epsilon\hat B)\bigr),\quad k = K, \dots, 1\\"
        r"&\text{swap } \theta_k, \theta_{k+1} \text{ with probability } \min\bigl(1,\ e^{a_k(\tilde U(\theta_k) - \tilde U(\theta_{k+1}) - a_k\sigma^2)}\bigr)\\"
        r"a_k &= 1/T_k - 1/T_{k+1},\quad \tilde U = U + \mathcal N(0, \sigma^2)\end{aligned}"
    )
    optional = {"correction": (r" - a_k\sigma^2",)}
    diffusion = r"D = T_k I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama, and swaps of neighbours"
    source = "Deng, Feng, Gao, Liang & Lin 2020; the exact penalty: Ceperley & Dewing 1999"
    # A table of gradients would have to be kept for each rung.
    accepts = STOCHASTIC - {MEMORY}
    first_stride = 2.0
    advance = advance

    step_size = Real(
        0.02,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step of every rung advances. Small steps are accurate and slow.",
    )
    energy_noise = Real(
        1.0,
        bounds=(0.0, 100.0),
        tex=r"\sigma",
        label="Noise σ of an energy",
        doc="The standard deviation of the noise in each energy that a swap compares. A minibatch has such noise; here you choose its size.",
    )
    correction = Flag(
        True,
        label="Correct swaps",
        doc="Subtract the penalty that makes swaps by noisy energies reversible. Without it modes get wrong weights.",
    )

    @property
    def full_gradients_per_step(self) -> int:
        """Two energies of all data, which are counted as gradients."""
        return 2

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.array([self.step_size, self.rungs, self.hottest, self.energy_noise, self.correction], dtype=float)

    bias_order = 1

    parts = {
        "hotter rungs": r"k = K, \dots, 1",
        "gradient": r"- \epsilon\,\nabla\tilde U(\theta_k)",
        "gradient noise": r"- \epsilon\,\nabla\tilde U(\theta_k)",
        "injected noise": r"\mathcal N\bigl(0,\ \epsilon(2T_k - \epsilon\hat B)\bigr)",
        "swap": r"\text{swap } \theta_k, \theta_{k+1} \text{ with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, k_max, (n, dim) = self.step_size, self.rungs, theta.shape
        # Views: the rungs of all chains, coldest first.
        rungs = [theta, *(r[:, k * (dim + 2) : k * (dim + 2) + dim] for k in range(k_max - 1))]
        heat = [exp(log(self.hottest) * k / (k_max - 1)) for k in range(k_max)]
        for k in reversed(range(k_max)):
            gradient, noise = textbook.gradient_and_noise(rng, run, rungs[k].copy(), data, 2 * eps * heat[k], eps)
            for c in range(n):
                if k == 0:
                    textbook.add_increment(run, c, theta[c], eps, theta[c], gradient[c], noise[c])
                else:
                    with run.part("hotter rungs", c):
                        rungs[k][c] += -eps * gradient[c] + noise[c]
        pairs = [int(rng.random() * (k_max - 1)) for _ in range(n)]
        for c, k in enumerate(pairs):
            cold, hot = -run.target.log_density(np.array([rungs[k][c], rungs[k + 1][c]]))
            a, sigma = 1 / heat[k] - 1 / heat[k + 1], self.energy_noise
            exponent = a * (cold - hot)
            if sigma > 0:
                exponent = a * (cold + sigma * rng.standard_normal() - hot - sigma * rng.standard_normal())
                exponent -= a * a * sigma * sigma * self.correction
            textbook.swap(rng, run, c, r[c, k * (dim + 2) + dim :], rungs[k][c], rungs[k + 1][c], exponent)
