"""The no-U-turn sampler: Hamiltonian Monte Carlo that finds the length of its trajectories."""

from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive
from sgmcmc_lab.samplers.kernels.adaptation import (
    ADAPT,
    ADAPTED,
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
from sgmcmc_lab.samplers.kernels.leapfrog import TOO_FAR, mark
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import Target

_WANTED = WANTED["nuts"]


@jit.helper
def _turned(x, r, first, last):
    """Whether a trajectory from one row to the other, in the order of time, has turned back at either end."""
    at_first = at_last = 0.0
    for i in range(x.shape[1]):
        across = x[last, i] - x[first, i]
        at_first += across * r[first, i]
        at_last += across * r[last, i]
    return at_first < 0 or at_last < 0


@jit.helper
def _drift_besides(x, r, time, inverse_mass):
    """θ ← θ + ε(M⁻¹ − I)r: the difference of a drift with masses from one without."""
    for i in range(x.shape[1]):
        x[0, i] += time * (inverse_mass[i] - 1) * r[0, i]


@jit.helper
def _energy_besides(r, inverse_mass):
    """rᵀ(M⁻¹ − I)r/2."""
    energy = 0.0
    for i in range(r.shape[1]):
        energy += (inverse_mass[i] - 1) * r[0, i] * r[0, i] / 2
    return energy


@jit.inlined
def _half_turned(leaves, leaf_r, k, side):
    """Whether a subtree of the new half that ends with leaf k has turned back."""
    turned, size = False, 2
    while not turned and (k + 1) % size == 0:
        first, last = (k + 1 - size, k) if side == 1 else (k, k + 1 - size)
        turned = _turned(leaves, leaf_r, first, last)
        size *= 2
    return turned


@jit.helper
def _workspace(max_depth, dim):
    """Every leaf of the new half of the tree, and both ends of the whole, the left at 0; then the current leaf."""
    half, two, one = (2 ** (max_depth - 1), dim), (2, dim), (1, dim)
    of_tree = np.empty(half), np.empty(half), np.empty(two), np.empty(two), np.empty(two)
    return of_tree, (np.empty(one), np.empty(one), np.empty(one), np.empty(1), np.empty(dim), np.empty(dim))


@jit.inlined
def _draw_momentum(rng, r, energy, memory, params, inverse_mass):
    """Draw r ~ N(0, M) for one chain; returns ε and the energy H at the start."""
    dim, eps = r.shape[1], params[0]
    for i in range(dim):
        r[0, i] = rng.standard_normal()
        energy += r[0, i] * r[0, i] / 2
    if params[2] > 0:
        eps = begin_step(memory[dim:], params[0], int(params[2]))
        inverse_mass[:] = inverse_mass_of(memory, dim)
        for i in range(dim):
            r[0, i] /= sqrt(inverse_mass[i])
    return eps, energy


@jit.inlined
def _leapfrog(model, x, r, slope, energy, start, time, inverse_mass, adapting):
    """Make one leapfrog step, with U and its gradient at the new point; returns H there above that of the start."""
    dim = x.shape[1]
    for i in range(dim):
        r[0, i] -= time / 2 * slope[0, i]
        x[0, i] += time * r[0, i]
    if adapting > 0:
        _drift_besides(x, r, time, inverse_mass)
    model.gradient(x, slope, model.params)
    model.potential(x, energy, model.params)
    above = energy[0] - start
    for i in range(dim):
        r[0, i] -= time / 2 * slope[0, i]
        above += r[0, i] * r[0, i] / 2
    if adapting > 0:
        above += _energy_besides(r, inverse_mass)
    return above


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    max_depth, adapting = int(params[1]), int(params[2])
    theta, grad, memory = state.position, info.gradient, state.momentum
    n_chains, dim = theta.shape
    of_tree, of_leaf = _workspace(max_depth, dim)
    leaves, leaf_r, ends, end_r, end_grad = borrowed(of_tree)
    x, r, slope, energy, picked, picked_grad = borrowed(of_leaf)
    unit = np.ones(dim)
    (inverse_mass,) = borrowed((unit,))
    model.gradient(theta, grad, model.params)
    for t in range(n):
        for c in range(n_chains):
            model.potential(theta[c : c + 1], energy, model.params)
            eps, start = _draw_momentum(rng, r, energy[0], memory[c], params, inverse_mass)
            total, points = 0.0, 0
            for side in range(2):
                ends[side], end_r[side], end_grad[side] = theta[c], r[0], grad[c]
            # Weights e^{H₀ − H} by their logs, for H may be far below the H₀ of a start in a tail.
            log_weight, moved = 0.0, False
            for depth in range(max_depth):
                side = 1 if rng.random() < 0.5 else 0
                time = eps if side == 1 else -eps
                x[0], r[0], slope[0] = ends[side], end_r[side], end_grad[side]
                log_new, sound = -inf, True
                for k in range(2**depth):
                    above = _leapfrog(model, x, r, slope, energy, start, time, inverse_mass, adapting)
                    info.counts[jit.GRADIENTS] += 1
                    if adapting > 0:
                        total += probability(-above)
                        points += 1
                    # A NaN energy compares false, and so ends the trajectory.
                    if not -inf < above < TOO_FAR:
                        mark(info.counts, t, c, n_chains)
                        sound = False
                        break
                    leaves[k], leaf_r[k] = x[0], r[0]
                    log_new = np.logaddexp(log_new, -above)
                    # The share of the first leaf is 1.
                    if rng.random() < exp(-above - log_new):
                        picked[:], picked_grad[:] = x[0], slope[0]
                    if _half_turned(leaves, leaf_r, k, side):
                        sound = False
                        break
                if not sound:
                    break
                if rng.random() < exp(log_new - log_weight):
                    theta[c], grad[c], moved = picked, picked_grad, True
                log_weight = np.logaddexp(log_weight, log_new)
                ends[side], end_r[side], end_grad[side] = x[0], r[0], slope[0]
                if _turned(ends, end_r, 0, 1):
                    break
            info.counts[jit.ACCEPTED] += moved
            if adapting > 0:
                learn(memory[c, dim:], theta[c], total / points, _WANTED, adapting)
            for i in range(dim):
                out[t, c, i] = theta[c, i]
    keep_alive((of_tree, of_leaf, unit))


class NUTS(Sampler):
    """The no-U-turn sampler (Hoffman & Gelman 2014), with multinomial draws from the trajectory (Betancourt 2017).

    Dynamics as in HMC, r ~ N(0, I) and leapfrog steps. The trajectory is doubled, forwards or backwards by a coin,
    until it turns back on itself, (θ₊ − θ₋)·r₊ < 0 or (θ₊ − θ₋)·r₋ < 0, as a whole or within the new half, or has 2^J
    points. The next state is a point of it with probability ∝ e^{−H}, those of the new half preferred.
    Invariant distribution: e^{−H}, exactly, for every ε. No length has to be chosen; the cost of a step varies and is
    counted.
    In the first ``adapt_steps`` steps ε and a diagonal mass matrix M adapt, as in ``samplers/kernels/adaptation.py``:
    r ~ N(0, M), θ ← θ + εM⁻¹r, H = U + rᵀM⁻¹r/2, and α is the mean of min(1, e^{H₀ − H}) over the points computed.
    """

    key = "nuts"
    title = "NUTS"
    update = (
        r"\begin{aligned}r &\sim \mathcal N(0, I);\quad \text{double the trajectory until } (\theta_+ - \theta_-)\cdot r_\pm < 0\\"
        r"\theta_{t+1} &\sim \text{a point of it, with probability} \propto e^{-H}" + ADAPT + r"\end{aligned}"
    )
    optional = {"adapt_steps": (ADAPT,)}
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Leapfrog, a trajectory without a turn"
    source = "Hoffman & Gelman 2014; Betancourt 2017, appendix A"
    accepts = frozenset({FULL})
    gradient_age = 0
    moving = True
    diverges = True
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-4, 5.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one leapfrog step. If it is too large, trajectories diverge at once; with a small one they take long to compute.",
    )
    max_depth = Count(
        8,
        bounds=(1, 10),
        tex="J",
        label="Doublings at most J",
        doc="A trajectory has at most 2^J points; each costs one gradient.",
    )
    adapt_steps = adapt_steps(_WANTED)
    adaptation = Tuning("acceptance", _WANTED)

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return auxiliary(target, self.adapt_steps)

    @property
    def gradients_per_step(self) -> int:
        """None besides those that the kernel counts."""
        return 0

    def most_gradients(self, batch_size: int = 0) -> int:
        return 2**self.max_depth

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 100

    parts = {
        "new momentum": r"\mathcal N(0, I)",
        "trajectory": r"\text{double the trajectory until } (\theta_+ - \theta_-)\cdot r_\pm < 0",
        "draw": r"\text{a point of it, with probability} \propto e^{-H}",
        "adaptation": ADAPTED,
    }

    def textbook_step(self, rng, run, theta, r, data):
        target, known = run.target, r[:, theta.shape[1] :]
        step_size, masses = textbook.adapted(run, known, theta, self.step_size, self.adapt_steps)

        def leapfrog(end, side):
            x, p = end
            run.spend(3)
            p = p - side * eps / 2 * target.gradient_at(x[None])[0]
            x = x + side * eps * inverse_mass * p
            return x, p - side * eps / 2 * target.gradient_at(x[None])[0]

        def energy(x, p):
            return -float(target.log_density(x)) + p @ (inverse_mass * p) / 2

        def turned(left, right):
            across = right[0] - left[0]
            return across @ left[1] < 0 or across @ right[1] < 0

        def half(end, side, size, start, leaves):
            """The last leaf of the new half, a draw from it, the log of its weight; None where it turns or diverges."""
            logs, drawn = [], end[0]
            for k in range(size):
                leaves.append(leapfrog(leaves[-1] if leaves else end, side))
                above = energy(*leaves[-1]) - start
                statistics.append(np.exp(min(-above, 0.0)) if not np.isnan(above) else 0.0)
                if not -inf < above < TOO_FAR:
                    return None
                logs.append(-above)
                if rng.random() < np.exp(-above - np.logaddexp.reduce(logs)):
                    drawn = leaves[-1][0]
                blocks = [leaves[k + 1 - 2**j : k + 1] for j in range(1, 12) if (k + 1) % 2**j == 0]
                if any(turned(*((b[0], b[-1]) if side > 0 else (b[-1], b[0]))) for b in blocks):
                    return None
            return leaves[-1], drawn, np.logaddexp.reduce(logs)

        for c in range(len(theta)):
            eps, inverse_mass = step_size[c], masses[c]
            statistics: list[float] = []
            momentum = np.array([rng.standard_normal() for _ in theta[c]]) / np.sqrt(inverse_mass)
            run.aside("new momentum", c, [theta[c], theta[c] + eps * inverse_mass * momentum], momentum=momentum)
            ends = {-1: (theta[c].copy(), momentum), 1: (theta[c].copy(), momentum)}
            start, weight = energy(theta[c], momentum), 0.0
            drawn = theta[c].copy()
            for depth in range(self.max_depth):
                side = 1 if rng.random() < 0.5 else -1
                leaves: list[Any] = []
                made = half(ends[side], side, 2**depth, start, leaves)
                run.aside("trajectory", c, [ends[side][0], *(x for x, _ in leaves)], sound=made is not None)
                if made is None:
                    break
                ends[side], candidate, total = made
                if rng.random() < np.exp(min(total - weight, 0.0)):
                    drawn = candidate
                weight = np.logaddexp(weight, total)
                if turned(ends[-1], ends[1]):
                    break
            with run.part("draw", c):
                theta[c] = drawn
            textbook.adapt(run, c, known, theta, np.log(max(float(np.mean(statistics)), 1e-300)), 0.8, self.adapt_steps)
