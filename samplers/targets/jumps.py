"""Runs of a density with several modes: Hamiltonian Monte Carlo within them, and jumps between them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.mixture import Mixture

CHAINS = 64
_GROUPS = 4
"""The most components in whose coordinates paths are followed."""
_TRIES, _SHRINKS, _WARM_UP = 20, 1.4, 10
"""Step sizes that are tried at most, each so much smaller than the one before, and the steps at each."""
_ACCEPTED = 0.7

Paths = Callable[[np.random.Generator, Array, Array, Array, float], tuple[Array, int]]
"""One path of each chain: its ends (chains, dim), and how many were accepted, from θ (chains, dim), a centre and L of
the coordinates that it is followed in, and its step size there."""


class Group(NamedTuple):
    """Chains whose paths are followed in the coordinates of one component of the mixture."""

    chains: slice
    component: int
    step_size: float


class Jumps:
    """Chains that follow a path of Hamiltonian Monte Carlo, and then are offered a draw of the mixture instead.

    The draw θ′ is accepted with probability min(1, e^{−U(θ′)} q(θ) / (e^{−U(θ)} q(θ′))) (Tierney 1994, an independence
    chain), so that every mode has its weight by the density itself, however well q has it. The chains begin at the
    components in turn: where the weights were not yet right R̂ would say so.
    """

    def __init__(
        self, energies: Callable[[Array], Array], paths: Paths, mixture: Mixture, rng: np.random.Generator
    ) -> None:
        self._energies, self._paths, self._mixture, self._rng = energies, paths, mixture, rng
        n = len(mixture.weights)
        self.theta = mixture.centres[np.arange(CHAINS) % n].copy()
        heaviest = np.argsort(-mixture.weights)[:_GROUPS]
        edges = np.linspace(0, CHAINS, len(heaviest) + 1).astype(int)
        self._groups = [
            self._tuned(slice(first, last), int(k))
            for first, last, k in zip(edges[:-1], edges[1:], heaviest, strict=True)
        ]

    def _tuned(self, chains: slice, component: int) -> Group:
        """The group with the first of the step sizes at which enough paths are accepted, or with the least of them."""
        group = Group(chains, component, self.theta.shape[1] ** -0.25)
        for _ in range(_TRIES):
            accepted = sum(self._follow(group) for _ in range(_WARM_UP))
            if accepted >= _ACCEPTED * _WARM_UP * len(self.theta[chains]):
                break
            group = group._replace(step_size=group.step_size / _SHRINKS)
        return group

    def _follow(self, group: Group) -> int:
        centre, factor = self._mixture.centres[group.component], self._mixture.factors[group.component]
        ends, accepted = self._paths(self._rng, self.theta[group.chains], centre, factor, group.step_size)
        self.theta[group.chains] = ends
        return accepted

    def step(self) -> None:
        """One path of each chain, and one jump that is offered to it."""
        for group in self._groups:
            self._follow(group)
        offered = self._mixture.draw(self._rng, CHAINS)
        both = np.concatenate([self.theta, offered])
        worth = (-self._energies(both) - self._mixture.log_density(both)).reshape(2, CHAINS)
        taken = np.log(self._rng.random(CHAINS)) < worth[1] - worth[0]
        self.theta[taken] = offered[taken]

    @property
    def step_size(self) -> float:
        """The smallest of any group: its paths have the most steps."""
        return min(group.step_size for group in self._groups)
