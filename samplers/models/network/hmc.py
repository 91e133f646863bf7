"""Hamiltonian Monte Carlo on the logarithms of all unknowns."""

from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.network.joint import add_probabilities, log_joint
from sgmcmc_lab.samplers.models.network.method import NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network
from sgmcmc_lab.samplers.parameters import Count, Real


@dataclass
class HMCState:
    """The last draw, and the average over draws."""

    log_x: Array
    potential: float
    grad: Array
    """∂U/∂log x."""
    average: LaterAverage
    accepted: int = 0
    proposed: int = 0


def potential(model: Network, log_x: Array, grad: Array) -> float:
    """U = −log p(Y, log x), a density in log x; writes ∂U/∂log x."""
    value = model.log_joint(log_x, grad)
    # x = e^θ has dx = x dθ, so the density in θ is that in x times x.
    np.subtract(-1.0, grad, out=grad)
    return -value - float(log_x.sum())


class NetworkHMC(NetworkMethod):
    """Hamiltonian Monte Carlo with the leapfrog and the accept step (Duane et al. 1987; Neal 2011) on θ = log x.

    e^{−U} with U(θ) = −log p(Y, e^θ) − Σ θ_d is invariant for every step size. A step is one trajectory of L leapfrog
    steps of a length drawn afresh from 0.8 to 1.2 times ε, so that no orbit closes on itself; it costs L gradients.
    """

    key = "network_hmc"
    title = "HMC"
    update = (
        r"\begin{aligned}p &\sim \mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"p &\leftarrow p - \tfrac{\epsilon}{2}\nabla U(\theta),\quad \theta \leftarrow \theta + \epsilon\, p,\quad "
        r"p \leftarrow p - \tfrac{\epsilon}{2}\nabla U(\theta),\quad x = e^\theta\\"
        r"&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)\end{aligned}"
    )
    source = "Neal 2011; Knowles 2015, section 4.1"
    compiled = (log_joint, add_probabilities)

    step_size = Real(
        0.05,
        bounds=(1e-4, 1.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one leapfrog step. If it is too large, all proposals are rejected.",
    )
    n_leapfrog = Count(
        20,
        bounds=(1, 200),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal; each costs one gradient of all observed pairs.",
    )

    def start(self, model: Network, rng: Generator) -> HMCState:
        """Random weights that give the graph's density."""
        log_x = np.log(model.first_guess(rng))
        grad = np.empty_like(log_x)
        state = HMCState(log_x, potential(model, log_x, grad), grad, LaterAverage(len(model.held)))
        model.add_held_out(*model.weights(np.exp(log_x)), state.average.next())
        return state

    @np.errstate(all="ignore")  # what is no longer finite is found below
    def advance(self, model: Network, state: HMCState, rng: Generator) -> int:
        """One trajectory."""
        step = self.step_size * rng.uniform(0.8, 1.2)
        log_x, grad, momentum = state.log_x.copy(), state.grad.copy(), rng.standard_normal(state.log_x.size)
        kinetic = float(momentum @ momentum) / 2
        proposed = state.potential
        for _ in range(self.n_leapfrog):
            momentum -= step / 2 * grad
            log_x += step * momentum
            proposed = potential(model, log_x, grad)
            momentum -= step / 2 * grad
            if not np.isfinite(proposed):
                break
        change = proposed + float(momentum @ momentum) / 2 - state.potential - kinetic
        state.proposed += 1
        if np.isfinite(change) and (change <= 0 or rng.random() < exp(-change)):
            state.accepted += 1
            state.log_x, state.potential, state.grad = log_x, proposed, grad
        model.add_held_out(*model.weights(np.exp(state.log_x)), state.average.next())
        return self.n_leapfrog * model.n_data

    def score(self, model: Network, state: HMCState) -> float:
        """AUC of the running average."""
        return model.score(state.average.mean())

    def weights(self, model: Network, state: HMCState) -> tuple[Array, Array]:
        """The weights of the last draw."""
        return model.weights(np.exp(state.log_x))

    def snapshot(self, model: Network, state: HMCState) -> Snapshot:
        """The last draw, and the share of accepted proposals."""
        share = state.accepted / max(state.proposed, 1)
        return {**super().snapshot(model, state), "accepted": np.array(share)}

    tried_at = ({"n_leapfrog": 3},)

    def textbook_step(self, rng, model, state):
        def energy(log_x):
            grad = np.empty_like(log_x)
            return -model.log_joint(log_x, grad) - log_x.sum(), -grad - 1

        step, theta = self.step_size * rng.uniform(0.8, 1.2), state.log_x
        r = rng.standard_normal(len(theta))
        potential, slope = energy(theta)
        before = potential + (r**2).sum() / 2
        for _ in range(self.n_leapfrog):
            r = r - step / 2 * slope
            theta = theta + step * r
            potential, slope = energy(theta)
            r = r - step / 2 * slope
        change = potential + (r**2).sum() / 2 - before
        state.proposed += 1
        if change <= 0 or rng.random() < exp(-change):
            state.accepted += 1
            state.log_x, state.potential, state.grad = theta, potential, slope
        model.add_held_out(*model.weights(np.exp(state.log_x)), state.average.next())
        return self.n_leapfrog * model.n_data

    def textbook_unknowns(self, model, state):
        return np.exp(state.log_x)
