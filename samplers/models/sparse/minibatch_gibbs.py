"""Minibatch Gibbs sampling of a sparse regression, with the batch size chosen by its cost."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.batch_size import ONCE, RULES, Adaptation
from sgmcmc_lab.samplers.models.sparse import textbook
from sgmcmc_lab.samplers.models.sparse.method import SparseMethod, State
from sgmcmc_lab.samplers.models.sparse.model import Sparse
from sgmcmc_lab.samplers.parameters import Count, Option, Real

PAPERS_SIZES = (251, 63, 16, 4, 1)


def sizes_of(n_data: int) -> NDArray[np.int64]:
    """All, and those of the paper's M = {1, 4, 16, 63, 251} that are fewer: falling."""
    return np.array([n_data, *(m for m in PAPERS_SIZES if m < n_data)])


class MinibatchGibbs(SparseMethod):
    """Minibatch Gibbs sampling (Smolyakov, Liu & Fisher, Algorithm 2), its batch size by their Algorithm 1.

    Update: m random latent variables, the z of a probit lasso or the τ of a lasso; then all the rest given *all* latent
    variables, of which the sums are kept. A step is as many such sweeps as cost about as much as one with all, so that
    methods are compared at equal cost at equal steps.
    Invariant distribution: that of w and all latent variables given the data, exactly, for every fixed m. With m = 0
    the first steps try one size after another and keep that with the smallest f(m) = (m w_z + w_θ) τ_int(m), of w₁.
    Only w_θ/w_z is needed; it is a parameter, so that the clock decides no draw. A ``rule`` other than once chooses m
    again after every round of the run. With ``always`` the invariant distribution is another, for m depends on the
    last states; with ``fading`` the averages have the right limit, and with ``burn-in`` all later draws are exact.
    """

    key = "sparse_minibatch"
    title = "Minibatch Gibbs"
    update = (
        r"\begin{aligned}z_i &\sim \mathcal N(w\cdot x_i, 1)\text{ on } y_i\text{'s side of } 0, \quad\text{for } m \text{ data } i\\"
        r"w &\sim \mathcal N(A^{-1}X^\top z, \sigma^2 A^{-1}),\quad \tau \sim p(\tau\mid w)\end{aligned}"
    )
    source = "Smolyakov, Liu & Fisher, Algorithms 1 and 2"
    chooses_batch_size = True

    batch_size = Count(
        0,
        bounds=(0, 100_000),
        tex="m",
        label="Batch size",
        doc="The number of latent variables drawn before the coefficients; 0 tries several sizes and keeps the best.",
    )
    cost_ratio = Real(
        16.0,
        bounds=(0.1, 1e4),
        log=True,
        tex=r"w_\theta/w_z",
        label="Cost of the global half",
        doc="The number of latent variables that can be drawn in the time of all the rest. A step is the number of sweeps that costs as much as one with all.",
    )
    trial = Count(
        1500,
        bounds=(10, 100_000),
        log=True,
        label="Trial of a size",
        doc="The trial of one batch size costs as much as this many sweeps with all. A size with fewer than 50 effective draws in its trial is not judged; if no size is judged, all are used.",
    )

    rule = Option(
        default=ONCE,
        objects=list(RULES),
        label="Choice of m",
        doc="Once: after the trials, then m stays. Always: m is chosen again after every round, by the last round of each size, which biases the draws. Fading: so, but each round counts less than the one before, and the bias vanishes. Burn-in: as always, until the adapting steps end. With strong effects a round shorter than τ tells sizes hardly apart: with N = 200 and rounds of 20 sweeps, 14 of 20 runs kept 16 or fewer.",
    )
    round = Count(
        20,
        bounds=(1, 100_000),
        log=True,
        label="Length of a round",
        doc="A round costs as much as this many sweeps with all. The bias of a choice that never ends is larger with shorter rounds.",
    )
    adapting = Count(
        2000,
        bounds=(0, 1_000_000),
        label="Adapting steps",
        doc="With the choice burn-in, m stays after this many steps, or after the trials if they take longer.",
    )

    def start(self, model: Sparse, rng: Generator) -> State:
        """As of every method."""
        state = super().start(model, rng)
        if self.batch_size == 0:
            self.adaptation(model, state)
        return state

    def adaptation(self, model: Sparse, state: State) -> Adaptation:
        """The trials of this run; they begin anew where their parameters were changed."""
        sweep = model.n_data + self.cost_ratio
        cost = self.trial * sweep
        known = state.extra.get("adaptation")
        if known is None or (known.cost, known.overall, known.rule) != (cost, self.cost_ratio, self.rule):
            known = Adaptation(sizes_of(model.n_data), 1.0, self.cost_ratio, cost, self.trial // 10, rule=self.rule)
            state.extra["adaptation"] = known
        known.round_cost, known.adapting = self.round * sweep, self.adapting
        return known

    def sweeps_in_step(self, model: Sparse, size: int) -> int:
        """How many with ``size`` latent variables cost as much as one with all; at least 1."""
        return max(round((model.n_data + self.cost_ratio) / (size + self.cost_ratio)), 1)

    def advance(self, model: Sparse, state: State, rng: Generator) -> int:
        size = min(int(self.batch_size), model.n_data) or self.adaptation(model, state).size
        draws = self.sweep(model, state, size, self.sweeps_in_step(model, size), rng)
        if self.batch_size == 0:
            adaptation = self.adaptation(model, state)
            for value in draws[:, 0]:
                # A trial may end within a step; the rest of it is of the old size.
                if adaptation.size == size:
                    adaptation.record(float(value), state.average.draws - 1)
        return size * len(draws)

    def snapshot(self, model: Sparse, state: State) -> Snapshot:
        """As of every method; where the method chooses its batch size, also what its trials found."""
        seen = super().snapshot(model, state)
        return seen | self.adaptation(model, state).snapshot() if self.batch_size == 0 else seen

    tried_at = ({"batch_size": 3, "cost_ratio": 2.0},)

    def textbook_step(self, rng, model, state):
        # The time of a sweep with all is (N + w_θ/w_z)w_z, that of one with m is (m + w_θ/w_z)w_z.
        n = max(round((model.n_data + self.cost_ratio) / (self.batch_size + self.cost_ratio)), 1)
        draws = [textbook.sweep(rng, model, state, self.batch_size, False) for _ in range(n)]
        return textbook.finish(state, draws, self.batch_size * n)
