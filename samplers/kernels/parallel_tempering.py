"""Parallel tempering: MALA at several temperatures, swapped by exact energies."""

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.kernels.tempering import Tempered, put_rungs, swap, take_rungs, temperatures
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, n_rungs = params[0], int(params[1])
    n_chains, dim = state.position.shape
    heat = temperatures(n_rungs, params[2])
    rungs, grad = np.empty((n_rungs, n_chains, dim)), np.empty((n_rungs, n_chains, dim))
    before, slope = np.empty((n_chains, dim)), np.empty((n_chains, dim))
    energy, proposed = np.empty((n_rungs, n_chains)), np.empty(n_chains)
    # Nothing is counted for the hotter rungs.
    beside = np.zeros(info.counts.size)
    take_rungs(state, rungs)
    for k in range(n_rungs):
        model.potential(rungs[k], energy[k], model.params)
        model.gradient(rungs[k], grad[k], model.params)
    for t in range(n):
        for k in range(n_rungs - 1, -1, -1):
            x, scale = rungs[k], sqrt(2 * step_size * heat[k])
            for c in range(n_chains):
                for i in range(dim):
                    before[c, i] = x[c, i]
                    x[c, i] = x[c, i] - step_size * grad[k, c, i] + scale * rng.standard_normal()
            model.potential(x, proposed, model.params)
            model.gradient(x, slope, model.params)
            counts = info.counts if k == 0 else beside
            for c in range(n_chains):
                there = back = 0.0
                for i in range(dim):
                    moved = x[c, i] - before[c, i]
                    there += (moved + step_size * grad[k, c, i]) ** 2
                    back += (moved - step_size * slope[c, i]) ** 2
                ratio = (energy[k, c] - proposed[c] + (there - back) / (4 * step_size)) / heat[k]
                if accept(rng, c, x, before, ratio, proposed[c], counts, False):
                    energy[k, c] = proposed[c]
                    for i in range(dim):
                        grad[k, c, i] = slope[c, i]
        for c in range(n_chains):
            low = int(rng.random() * (n_rungs - 1))
            gap = 1 / heat[low] - 1 / heat[low + 1]
            if swap(rng, state, rungs, c, low, gap * (energy[low, c] - energy[low + 1, c])):
                kept = energy[low, c]
                energy[low, c] = energy[low + 1, c]
                energy[low + 1, c] = kept
                for i in range(dim):
                    kept = grad[low, c, i]
                    grad[low, c, i] = grad[low + 1, c, i]
                    grad[low + 1, c, i] = kept
            for i in range(dim):
                out[t, c, i] = rungs[0, c, i]
                info.gradient[c, i] = grad[0, c, i]
    put_rungs(state, rungs)


class ParallelTempering(Tempered):
    """Parallel tempering (Swendsen & Wang 1986; Geyer 1991) with rungs that move by MALA.

    Rung k has the distribution e^{−U/T_k}. Its proposal is an Euler–Maruyama step of dθ = −∇U dt + √(2T_k) dW,
    θ' = θ − ε∇U(θ) + N(0, 2εT_k), accepted with probability min(1, e^{(U(θ) − U(θ'))/T_k} q_k(θ | θ')/q_k(θ' | θ)),
    q_k(θ' | θ) ∝ e^{−‖θ' − θ + ε∇U(θ)‖²/4εT_k}. Then a pair of neighbours, each with the same probability, swaps
    with probability min(1, e^{(1/T_k − 1/T_{k+1})(U(θ_k) − U(θ_{k+1}))}).
    Invariant distribution: the product of the rungs', exactly, for every ε; the draws are those of rung 1, T₁ = 1.
    """

    key = "parallel_tempering"
    title = "Parallel tempering"
    update = (
        r"\begin{aligned}\theta' &= \theta_k - \epsilon\,\nabla U(\theta_k) + \mathcal N(0, 2\epsilon T_k),\quad k = K, \dots, 1\\"
        r"&\text{accept with probability } \min\Bigl(1,\ e^{(U(\theta_k) - U(\theta'))/T_k}\,\frac{q_k(\theta_k \mid \theta')}{q_k(\theta' \mid \theta_k)}\Bigr)\\"
        r"&\text{swap } \theta_k, \theta_{k+1} \text{ with probability } \min\bigl(1,\ e^{(1/T_k - 1/T_{k+1})(U(\theta_k) - U(\theta_{k+1}))}\bigr)\end{aligned}"
    )
    diffusion = "D = T_k I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama with an accept step, and swaps of neighbours"
    source = "Swendsen & Wang 1986; Geyer 1991; Roberts & Tweedie 1996"
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
        doc="The time that a proposal of every rung advances. If it is too large, all proposals are rejected.",
    )

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.array([self.step_size, self.rungs, self.hottest])

    bias_order = None

    parts = {
        "hotter rungs": r"k = K, \dots, 1",
        "gradient": r"- \epsilon\,\nabla U(\theta_k)",
        "injected noise": r"\mathcal N(0, 2\epsilon T_k)",
        "accept": r"\text{accept with probability }",
        "swap": r"\text{swap } \theta_k, \theta_{k+1} \text{ with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, k_max, target, (n, dim) = self.step_size, self.rungs, run.target, theta.shape
        # Views: the rungs of all chains, coldest first.
        rungs = [theta, *(r[:, k * (dim + 2) : k * (dim + 2) + dim] for k in range(k_max - 1))]
        heat = [exp(log(self.hottest) * k / (k_max - 1)) for k in range(k_max)]
        for k in reversed(range(k_max)):
            before = rungs[k].copy()
            gradient = target.gradient_at(before)
            normals = [[sqrt(2 * eps * heat[k]) * rng.standard_normal() for _ in range(dim)] for _ in range(n)]
            after = before - eps * gradient + normals

            def log_q(to, start, k=k):
                return -((to - start + eps * target.gradient_at(start)) ** 2).sum(axis=1) / (4 * eps * heat[k])

            energy = -target.log_density(after)
            ratio = (-target.log_density(before) - energy) / heat[k]
            ratio += log_q(before, after) - log_q(after, before)
            for c in range(n):
                if k == 0:
                    textbook.descend(run, c, theta[c], eps, theta[c], gradient[c])
                    textbook.inject(run, c, theta[c], normals[c])
                    textbook.accept(rng, run, c, theta, before, ratio, energy)
                else:
                    with run.part("hotter rungs", c):
                        if textbook.coin(rng, ratio[c], energy[c])[2]:
                            rungs[k][c] = after[c]
        for c in range(n):
            k = int(rng.random() * (k_max - 1))
            cold, hot = -target.log_density(np.array([rungs[k][c], rungs[k + 1][c]]))
            exponent = (1 / heat[k] - 1 / heat[k + 1]) * (cold - hot)
            textbook.swap(rng, run, c, r[c, k * (dim + 2) + dim :], rungs[k][c], rungs[k + 1][c], exponent)
