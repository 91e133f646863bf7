"""Riemannian manifold Hamiltonian Monte Carlo on positive coordinates, by the generalised leapfrog."""

from math import nan, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive
from sgmcmc_lab.samplers.kernels.base import AFRESH, Sampler
from sgmcmc_lab.samplers.kernels.leapfrog import draw_momenta, leapfrog, mark_divergent
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT, accept
from sgmcmc_lab.samplers.parameters import Count, Flag, Real
from sgmcmc_lab.samplers.targets.base import POSITIVE


@jit.helper
def half_kick(p, theta, slope, step_size):
    """The y with y = p − (ε/2)(∂U − 1/2θ + y²/2) that goes to p as ε → 0, or NaN where no root is real."""
    start = p - step_size / 2 * (slope - 1 / (2 * theta))
    return 2 * start / (1 + sqrt(1 + step_size * start))


@jit.helper
def drift(theta, p, step_size):
    """The y > 0 with y = θ + (ε/2)(θ + y)p, or NaN where there is none."""
    half = step_size / 2 * p
    return theta * (1 + half) / (1 - half) if abs(half) < 1 else nan


@jit.helper
def _energy(model, theta, p, out):
    """H = U − ½ Σ log θ_i + ½ Σ θ_i p_i² of every chain."""
    model.potential(theta, out, model.params)
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c] += (theta[c, i] * p[c, i] ** 2 - np.log(theta[c, i])) / 2


@jit.inlined
def _begin(model, theta, p, grad, step_size, more):
    """The implicit half kick and drift, of chains for which both have a solution."""
    half, end, solved, _ = more
    for c in range(theta.shape[0]):
        found = True
        for i in range(theta.shape[1]):
            y = half_kick(p[c, i], theta[c, i], grad[c, i], step_size)
            half[c, i], end[c, i] = y, drift(theta[c, i], y, step_size)
            # A NaN compares false.
            found &= end[c, i] > 0
        solved[c] = found
        if found:
            theta[c] = end[c]


@jit.inlined
def _end(model, theta, p, grad, step_size, more):
    """The explicit half kick, or p turned around where there was no solution."""
    half, _, solved, turned = more
    for c in range(theta.shape[0]):
        turned[c] |= not solved[c]
        for i in range(theta.shape[1]):
            y = half[c, i]
            if solved[c]:
                p[c, i] = y - step_size / 2 * (grad[c, i] - 1 / (2 * theta[c, i]) + y * y / 2)
            else:
                p[c, i] = -p[c, i]


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, source, params, out, info = borrowed((state, model, source, params, out, info))
    step_size, n_leapfrog, sure = params[0], int(params[1]), params[2] == 0
    theta, p, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, half, end, each = np.empty_like(theta), np.empty_like(theta), np.empty_like(theta), np.empty((0, dim))
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    solved, turned = np.empty(n_chains, np.bool_), np.empty(n_chains, np.bool_)
    more = borrowed((half, end, solved, turned))
    for t in range(n):
        turned[:] = False
        draw_momenta(rng, theta, p, before)
        for c in range(n_chains):
            for i in range(dim):
                p[c, i] /= sqrt(theta[c, i])
        _energy(model, theta, p, energy)
        leapfrog(_begin, _end, more, rng, state, model, source, each, grad, step_size, n_leapfrog)
        _energy(model, theta, p, proposed)
        for c in range(n_chains):
            info.counts[jit.TURNED] += turned[c]
            accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, sure)
            mark_divergent(info.counts, t, c, n_chains, energy[c], proposed[c])
            for i in range(dim):
                out[t, c, i] = theta[c, i]
    keep_alive((half, end, solved, turned))


ENERGY = r",\\H &= U(\theta) - \tfrac12\textstyle\sum_i\log\theta_i + \tfrac12\sum_i\theta_i\,p_i^2"
"""The energy of the accept step."""


class RMHMC(Sampler):
    """Riemannian manifold Hamiltonian Monte Carlo (Girolami & Calderhead 2011) with the metric G = diag(1/θ).

    Dynamics: dθ = ∂H/∂p dt, dp = −∂H/∂θ dt with H(θ, p) = U(θ) + ½ log det G + ½ pᵀG⁻¹p, here
    U − ½ Σ log θ_i + ½ Σ θ_i p_i²: the recipe with D = 0, Q = [[0, −I], [I, 0]] and this H, and the momentum drawn
    afresh, p ~ N(0, G), at the start of each step. G⁻¹ = diag(θ) is the D of SGRLD, so that gamma distributions of all
    shapes are about as wide. Integrator: L steps of the generalised leapfrog, whose first two parts are implicit; with
    this metric the first is a quadratic equation for each coordinate, and the second a linear one. A step has a
    solution where ε|p'| < 2, and then comes back when p is turned around; where a step has none p is turned around
    instead, and the trajectory goes back. Both maps preserve volume and are reversible, and so is the trajectory: with
    the accept step e^{−U} is exactly invariant for every ε; without it the bias is O(ε²).
    Trajectories that turned are counted. Where θ is far below ε²(a − ½)²/8, a the shape of a gamma distribution, the
    first step has next to no chance of a solution: chains seldom come there and seldom leave, so that from a start in
    the bulk the mean of Gamma(1, 1) was 2 % too large in 4000 steps of ε = 2, and of Gamma(0.3, 1) 12 % in 10,000 of
    ε = .6. For some ε and L nearly all trajectories that turn end where they began. It is not offered on simplices,
    where the likelihood ties all θ by their sum, which no diagonal metric sees. Shapes: θ, p (chains, d), θ > 0.
    """

    key = "rmhmc"
    title = "RMHMC"
    update = (
        r"\begin{aligned}p &\sim \mathcal N\bigl(0, \operatorname{diag}(1/\theta)\bigr);\quad \text{then } L \text{ times:}\\"
        r"p' &= p - \tfrac{\epsilon}{2}\bigl(\nabla U(\theta) - \tfrac{1}{2\theta} + \tfrac{p'^2}{2}\bigr),\quad"
        r" \theta' = \theta + \tfrac{\epsilon}{2}(\theta + \theta')\,p'\\"
        r"p &\leftarrow p' - \tfrac{\epsilon}{2}\bigl(\nabla U(\theta') - \tfrac{1}{2\theta'} + \tfrac{p'^2}{2}\bigr),\quad \theta \leftarrow \theta'"
        + ACCEPT
        + ENERGY
        + r"\end{aligned}"
    )
    optional = {"accept": (ACCEPT, ENERGY)}
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Generalised leapfrog, accept step optional"
    source = "Girolami & Calderhead 2011; Liu, Zhu & Song 2016, Table 1"
    supports = frozenset({POSITIVE})
    gradient_age = None
    moving = True
    momentum = AFRESH
    diverges = True
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-4, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one leapfrog step. If it is too large, its implicit equations have no solution and trajectories turn back, or proposals are rejected.",
    )
    n_leapfrog = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal; each costs one gradient.",
    )
    accept = Flag(
        True,
        label="Accept step",
        doc="The Metropolis test, with which the target is exactly invariant.",
    )

    @property
    def gradients_per_step(self) -> int:
        return self.n_leapfrog + 1

    @property
    def time_per_step(self) -> float:
        return self.step_size * self.n_leapfrog

    bias_order = None
    steps_to_test = 100

    parts = {
        "new momentum": r"\mathcal N\bigl(0, \operatorname{diag}(1/\theta)\bigr)",
        "leapfrog": r"\theta' = \theta + \tfrac{\epsilon}{2}(\theta + \theta')\,p'",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, p = self.step_size, r
        with run.part("new momentum"):
            for c, i in np.ndindex(theta.shape):
                p[c, i] = rng.standard_normal() / sqrt(theta[c, i])

        def energy():
            return -run.target.log_density(theta) + (theta * p**2 - np.log(theta)).sum(axis=1) / 2

        def force():
            run.spend(len(theta))
            return run.target.gradient_at(theta) - 1 / (2 * theta)

        before, start = theta.copy(), energy()
        with run.part("leapfrog") as through:
            for _ in range(self.n_leapfrog):
                # The larger root of (ε/4)y² + y = p − (ε/2)(∂U − 1/2θ).
                half = (np.sqrt(1 + eps * (p - eps / 2 * force())) - 1) * 2 / eps
                solved = (abs(eps * half) < 2).all(axis=1)
                # y(1 − εp'/2) = θ(1 + εp'/2).
                theta[solved] *= ((2 + eps * half) / (2 - eps * half))[solved]
                p[:] = np.where(solved[:, None], half - eps / 2 * (force() + half**2 / 2), -p)
                through()
        end = energy()
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, start - end, end, sure=self.accept is not True)
