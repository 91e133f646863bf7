"""The common part of all methods for clusters: their state, their score, and what the views see."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.models.average import LaterLogAverage
from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.clusters.model import ClusterModel
from sgmcmc_lab.samplers.parameters import Count
from sgmcmc_lab.samplers.targets.base import Array


@dataclass
class State:
    """The state of a method. Clusters have slots, of which some may be empty."""

    z: NDArray[np.int64]
    """The slot of every point, (N,)."""
    known: Array
    """The statistics of the cluster in each slot, (slots, …): for Gaussians 6."""
    drawn: Array
    """The parameters of each, where the method draws them, (slots, …): for Gaussians μ and Σ⁻¹, 5 numbers."""
    alpha: Array
    """The concentration α, (1,)."""
    together: Array
    """In how many steps two of the points that are shown were in one cluster, (shown, shown)."""
    average: LaterLogAverage
    steps: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """The further state of one method."""


class ClusterMethod(Method):
    """A method for a :class:`ClusterModel`."""

    model = "clusters"

    start_clusters = Count(
        1,
        bounds=(1, 100),
        label="Clusters at the start",
        doc="The number of random clusters in which the points begin. It affects only the start of a run.",
    )
    split_merge = Count(
        10,
        bounds=(0, 100),
        label="Splits and merges",
        doc="The number of proposals, per sweep over all points, to split a cluster or to merge two. Without them a chain may keep two groups in one cluster, or one group in two, for a long time.",
    )

    def n_slots(self, model: ClusterModel) -> int:
        """How many clusters there may be."""
        return model.n_data + 1

    def first_state(self, model: ClusterModel, rng: Generator) -> State:
        """Points in random clusters, and α = 1."""
        n_slots = self.n_slots(model)
        z = rng.integers(self.start_clusters, size=model.n_data)
        known, shown = model.sums(z, n_slots), len(model.shown)
        drawn, together = np.zeros((n_slots, model.n_drawn)), np.zeros((shown, shown))
        return State(z, known, drawn, np.ones(1), together, LaterLogAverage(len(model.held)))

    def proposals(self, model: ClusterModel, n_drawn: int, rng: Generator) -> int:
        """How many splits and merges are proposed in a step that draws ``n_drawn`` of the z: at random, so that their
        share is the same on average.
        """
        return int(self.split_merge * n_drawn / model.n_data + rng.random())

    @abstractmethod
    def density(self, model: ClusterModel, state: State, out: Array) -> None:
        """Add, in logs, the density of each held-out point, given the state, to ``out``, which begins at −∞."""

    def score(self, model: ClusterModel, state: State) -> float:
        """The score of the running average over the later of the scored states."""
        logs = np.full(len(model.held), -np.inf)
        self.density(model, state, logs)
        state.average.add(logs)
        return model.score(state.average.mean())

    def follow(self, model: ClusterModel, state: State) -> Array:
        return model.followed_of(state.known[:, 0], float(state.alpha[0]))

    def snapshot(self, model: ClusterModel, state: State) -> Snapshot:
        """``z`` (N,): the cluster of every point, counted from the largest on. ``sizes`` (K,): the number of points of
        each cluster in that order; with it the model's own description of them. ``alpha`` (1,). ``together``: the share
        of the steps in which two of the points that are shown were in one cluster.
        """
        order = np.argsort(-state.known[:, 0], kind="stable")
        order = order[: np.count_nonzero(state.known[:, 0])]
        rank = np.zeros(len(state.known), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return {
            "z": rank[state.z],
            "sizes": state.known[order, 0].copy(),
            "alpha": state.alpha.copy(),
            "together": state.together / max(state.steps, 1),
            **model.described(state.known[order]),
        }

    def textbook_unknowns(self, model, state):
        return state.z.astype(float)
