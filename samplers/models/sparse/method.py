"""The common part of all methods for sparse regression: their state, their score, and what the views see."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.models.average import LaterAverage
from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.sparse import textbook
from sgmcmc_lab.samplers.models.sparse.conditionals import sweeps
from sgmcmc_lab.samplers.models.sparse.model import Sparse
from sgmcmc_lab.samplers.models.sparse.reference import first_latents
from sgmcmc_lab.samplers.parameters import Value
from sgmcmc_lab.samplers.targets.base import Array


@dataclass
class State:
    """The state of a method."""

    z: Array
    """The response that is regressed on x, (N,)."""
    linear: Array
    """Xᵀz, (d,)."""
    w: Array
    """The coefficients, (d,)."""
    precisions: Array
    """1/τ², (d,)."""
    scales: Array
    """σ² and zᵀz, (2,)."""
    order: NDArray[np.int64]
    """A permutation of the latent variables."""
    average: LaterAverage
    """The average of w."""
    extra: dict[str, Any] = field(default_factory=dict)
    """The further state of one method."""


class SparseMethod(Method):
    """A Gibbs sampler for :class:`Sparse`."""

    model = "sparse"
    collapsed: ClassVar[bool] = False
    """Whether the scale is drawn with w integrated out."""
    compiled = (sweeps,)

    def start(self, model: Sparse, rng: Generator) -> State:
        """w = 0, and z what it is then on average."""
        state = State(*first_latents(model), np.arange(model.n_data), LaterAverage(model.x.shape[1]))
        state.average.next()
        return state

    def sweep(self, model: Sparse, state: State, size: int, n: int, rng: Generator) -> Array:
        """``n`` sweeps with ``size`` latent variables; the w of each, (n, d), which are one step."""
        out = np.empty((n, len(state.w)))
        sweeps(
            rng, model.x, model.gram, model.shrinkage, model.probit, self.collapsed, model.noise_prior, state.z,
            state.order, state.linear, state.w, state.precisions, state.scales, size, out,
        )  # fmt: skip
        state.average.next()[:] += out.mean(axis=0)
        return out

    def advance(self, model: Sparse, state: State, rng: Generator) -> int:
        """One sweep."""
        self.sweep(model, state, model.n_data, 1, rng)
        return model.n_data

    def score(self, model: Sparse, state: State) -> float:
        """The score of the average over the later sweeps."""
        return model.score(state.average.mean())

    def follow(self, model: Sparse, state: State) -> Array:
        return model.followed_of(state.w)

    def snapshot(self, model: Sparse, state: State) -> Snapshot:
        """``w`` (d,): the present draw; ``means`` (d,): the average over the later ones."""
        return {"w": state.w.copy(), "means": state.average.mean()}

    tried_at: ClassVar[tuple[dict[str, Value], ...]] = ({},)

    def textbook_step(self, rng, model, state):
        draws = [textbook.sweep(rng, model, state, model.n_data, self.collapsed)]
        return textbook.finish(state, draws, model.n_data)

    def textbook_unknowns(self, model, state):
        return state.w
