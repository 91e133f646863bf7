"""Riemannian manifold Hamiltonian Monte Carlo on positive coordinates, by the generalised leapfrog."""

from math import exp, nan, sqrt

import numpy as np

from samplers import jit, textbook
from samplers.kernels.base import AFRESH, Sampler
from samplers.parameters import Count, Flag, Real
from samplers.targets.base import POSITIVE

ITERATIONS = 100
"""The most of a fixed point. An error shrinks by the factor ε|p|/2 in each: 100 suffice up to .75: .75¹⁰⁰ < 10⁻¹²."""
FIXED = 1e-12
"""A fixed point is found when an iteration moves by less than this share: some thousand roundings of a double."""
BACK = 1e-8
"""A step comes back when it ends within this share of its start: FIXED, with room for its error to grow."""


@jit.helper
def half_kick(p, theta, slope, step_size):
    """The y near p with y = p − (ε/2)(∂U − 1/2θ + y²/2), or NaN where the iteration ends without it."""
    start = p - step_size / 2 * (slope - 1 / (2 * theta))
    y = p
    for _ in range(ITERATIONS):
        old, y = y, start - step_size / 4 * y * y
        if abs(y - old) < FIXED * (abs(p) + abs(y)):
            return y
    return nan


@jit.helper
def drift(theta, p, step_size):
    """The y > 0 with y = θ + (ε/2)(θp + yp), or NaN where the iteration ends without it."""
    start = theta + step_size / 2 * theta * p
    y = theta
    for _ in range(ITERATIONS):
        old, y = y, start + step_size / 2 * y * p
        if abs(y - old) < FIXED * abs(y):
            return y if y > 0 else nan
    return nan


@jit.helper
def comes_back(theta, p, end, end_p, slope, step_size):
    """Whether from (end, −end_p) the first two parts of a step lead to (θ, −p); the third is explicit."""
    back = half_kick(-end_p, end, slope, step_size)
    return abs(back + p) <= BACK * (abs(p) + abs(end_p)) and abs(drift(end, back, step_size) - theta) <= BACK * theta


@jit.helper
def _energy(model, theta, p, out):
    """H = U − ½ Σ log θ_i + ½ Σ θ_i p_i² of every chain."""
    model.potential(theta, out, model.params)
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c] += (theta[c, i] * p[c, i] ** 2 - np.log(theta[c, i])) / 2


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, n_leapfrog, accept = params[0], int(params[1]), params[2] > 0
    theta, p, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, here, half = np.empty_like(theta), np.empty_like(theta), np.empty_like(theta)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    possible = np.empty(n_chains, np.bool_)
    for t in range(n):
        for c in range(n_chains):
            possible[c] = True
            for i in range(dim):
                before[c, i] = theta[c, i]
                p[c, i] = rng.standard_normal() / sqrt(theta[c, i])
        _energy(model, theta, p, energy)
        model.gradient(theta, grad, model.params)
        for _ in range(n_leapfrog):
            for c in range(n_chains):
                for i in range(dim):
                    here[c, i] = theta[c, i]
                    half[c, i] = half_kick(p[c, i], theta[c, i], grad[c, i], step_size)
                    theta[c, i] = drift(theta[c, i], half[c, i], step_size)
            model.gradient(theta, grad, model.params)
            for c in range(n_chains):
                for i in range(dim):
                    y = half[c, i]
                    p[c, i] = y - step_size / 2 * (grad[c, i] - 1 / (2 * theta[c, i]) + y * y / 2)
                    # A NaN compares false: what has no fixed point does not come back either.
                    possible[c] &= comes_back(here[c, i], y, theta[c, i], p[c, i], grad[c, i], step_size)
        _energy(model, theta, p, proposed)
        for c in range(n_chains):
            ratio = exp(energy[c] - proposed[c]) if possible[c] else 0.0
            if (possible[c] and not accept) or rng.random() < ratio:
                info.counts[jit.ACCEPTED] += 1
            else:
                theta[c] = before[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class RMHMC(Sampler):
    """Riemannian manifold Hamiltonian Monte Carlo (Girolami & Calderhead 2011) with the metric G = diag(1/θ).

    Dynamics: dθ = ∂H/∂p dt, dp = −∂H/∂θ dt with H(θ, p) = U(θ) + ½ log det G + ½ pᵀG⁻¹p, here
    U − ½ Σ log θ_i + ½ Σ θ_i p_i²: the recipe with D = 0, Q = [[0, −I], [I, 0]] and this H, and the momentum drawn
    afresh, p ~ N(0, G), at the start of each step. G⁻¹ = diag(θ) is the D of SGRLD, so that gamma distributions of all
    shapes are about as wide. Integrator: L steps of the generalised leapfrog, whose first two parts
    are implicit and found by at most 100 iterations of a fixed point. It preserves volume and is reversible where the
    fixed points are; a step that has none, or that does not come back when p is turned around, is rejected. So with
    the accept step e^{−U} is exactly invariant for every ε; without it the bias is O(ε²).
    No fixed point is found where ε|p| ≥ 2, which is likely where θ is below ε²/4: chains of a density that is infinite
    at 0 are stuck there. It is not offered on simplices, where the likelihood ties all θ by their sum, which no
    diagonal metric sees. Shapes: θ, p (chains, d), θ > 0.
    """

    key = "rmhmc"
    title = "RMHMC"
    update = (
        r"\begin{aligned}p &\sim \mathcal N\bigl(0, \operatorname{diag}(1/\theta)\bigr);\quad \text{then } L \text{ times:}\\"
        r"p' &= p - \tfrac{\epsilon}{2}\bigl(\nabla U(\theta) - \tfrac{1}{2\theta} + \tfrac{p'^2}{2}\bigr),\quad"
        r" \theta' = \theta + \tfrac{\epsilon}{2}(\theta + \theta')\,p'\\"
        r"p &\leftarrow p' - \tfrac{\epsilon}{2}\bigl(\nabla U(\theta') - \tfrac{1}{2\theta'} + \tfrac{p'^2}{2}\bigr),\quad \theta \leftarrow \theta'\\"
        r"&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr),\\"
        r"H &= U(\theta) - \tfrac12\textstyle\sum_i\log\theta_i + \tfrac12\sum_i\theta_i\,p_i^2\end{aligned}"
    )
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Generalised leapfrog by fixed points, accept step optional"
    source = "Girolami & Calderhead 2011; Liu, Zhu & Song 2016, Table 1"
    supports = frozenset({POSITIVE})
    gradient_age = None
    moving = True
    momentum = AFRESH
    advance = advance

    step_size = Real(0.15, bounds=(1e-4, 2.0), log=True, tex=r"\epsilon", label="Step size ε",
                     doc="The time of one leapfrog step. Too large, and its implicit equations have no solution near by, or proposals are rejected.")  # fmt: skip
    n_leapfrog = Count(10, bounds=(1, 1000), log=True, tex="L", label="Leapfrog steps L",
                       doc="Leapfrog steps in one proposal; each costs one gradient.")  # fmt: skip
    accept = Flag(
        True,
        label="Accept step",
        doc="The Metropolis test, with which the target is exactly invariant. Without it only steps that do not come back are rejected.",
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
        # A step that has its fixed points comes back, and so nothing else is looked at here.
        eps, p = self.step_size, r
        with run.part("new momentum"):
            for c, i in np.ndindex(theta.shape):
                p[c, i] = rng.standard_normal() / sqrt(theta[c, i])

        def energy():
            return -run.target.log_density(theta) + (theta * p**2 - np.log(theta)).sum(axis=1) / 2

        def force():
            run.spend(len(theta))
            return run.target.gradient_at(theta) - 1 / (2 * theta)

        def fixed(f, x, beside):
            """The fixed points of f near x, NaN where a hundred iterations do not find one."""
            found = np.full_like(x, np.nan)
            for _ in range(ITERATIONS):
                x, old = f(x), x
                near = np.isnan(found) & (abs(x - old) < FIXED * (beside + abs(x)))
                found[near] = x[near]
            return found

        before, start = theta.copy(), energy()
        with run.part("leapfrog") as through:
            for _ in range(self.n_leapfrog):
                pushed = p - eps / 2 * force()
                half = fixed(lambda y, pushed=pushed: pushed - eps / 4 * y**2, p.copy(), abs(p))
                moved = theta + eps / 2 * theta * half
                end = fixed(lambda y, moved=moved, half=half: moved + eps / 2 * y * half, theta.copy(), 0.0)
                theta[:] = np.where(end > 0, end, np.nan)
                p[:] = half - eps / 2 * (force() + half**2 / 2)
                through()
        change = energy() - start
        for c in range(len(theta)):
            sure = self.accept is not True and bool(np.isfinite(theta[c]).all())
            textbook.accept(rng, run, c, theta, before, -change, sure=sure)
