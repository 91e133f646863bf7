"""The common part of the stochastic-gradient methods: the expanded mean, the minibatch of documents, the schedule.

The state is θ (words, columns) with φ_kw = θ_kw/Σ_w θ_kw and the prior θ_kw ~ Gamma(β, 1), so that φ_k ~ Dir(β). With
the proportions integrated out, Fisher's identity gives the gradient as an expectation over the topics z of the words:

    ∂ log p(θ | x)/∂θ_kw = (β − 1)/θ_kw − 1 + E[N_kw]/θ_kw − E[N_k·]/θ_k·

with the counts N_kw of the topics z given φ and x. The counts are estimated by (D/n) B_kw, with B_kw the mean over
some Gibbs sweeps of how often word w has topic k in the n documents of a minibatch, out of D. The topics of a document
are kept from one visit to the next, so that the sweeps go on from where they were. A document of a stream is seen once:
its topics begin at random, and as many sweeps as are counted go before.
"""

from typing import Any, ClassVar

import numpy as np
from numba import types
from numpy.random import Generator
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.topics.local import BLOCK, columns, ids, sweep
from sgmcmc_lab.samplers.models.topics.method import COMPILED, State, TopicMethod
from sgmcmc_lab.samplers.models.topics.model import Topics
from sgmcmc_lab.samplers.parameters import Count, Real

Array = NDArray[np.float64]

STEP = types.float64(
    jit.rng_type,
    jit.matrix,
    jit.matrix,
    jit.vector,
    jit.matrix,
    jit.vector,
    types.float64,
    types.float64,
    types.int64,
    jit.vector,
)
"""step(rng, theta, momentum, totals, counts, pull, factor, prior, n_topics, params): one step of θ.

``counts`` are B (words, columns), ``pull`` is 1 + (D/n)B_k·/θ_k· (topics,), which all words share in the gradient,
``factor`` D/n, ``prior`` β. It writes θ, the momentum and the new totals θ_k·, and returns the sum of θ, which is not
finite where a θ is not.
"""


@jit.helper
def reflected(x, r):
    """A position and its momentum, both with their signs changed where the position is below 0."""
    return (-x, -r) if x < 0 else (x, r)


@jit.loop(
    types.void(jit.rng_type, jit.integers, jit.integers, ids, ids, jit.matrix, jit.matrix, jit.vector, types.float64,
               types.int64, types.int64, types.int64, jit.matrix, jit.vector)
)  # fmt: skip
def count_topics(
    rng, documents, offsets, words, topics, counts, weights, scale, alpha, n_topics, n_first, n_sweeps, out, out_totals
):
    """B (words, columns) and B_k· (columns,) of these documents, the mean over Gibbs sweeps given φ = weights·scale;
    ``n_first`` sweeps before these are not counted.
    """
    p = np.zeros(len(scale))
    ends = np.zeros(len(scale) // BLOCK)
    each = 1 / n_sweeps
    out[:] = 0
    out_totals[:] = 0
    for d in documents:
        begin, end = offsets[d], offsets[d + 1]
        for s in range(n_first + n_sweeps):
            sweep(rng, words[begin:end], topics[begin:end], counts[d], weights, 0.0, scale, alpha, n_topics, p, ends)
            if s < n_first:
                continue
            for i in range(begin, end):
                out[words[i], topics[i]] += each
                out_totals[topics[i]] += each


class StochasticGradient(TopicMethod):
    """A sampler of θ over minibatches of documents."""

    takes_streams = True
    step: ClassVar[Any]
    """The compiled step, of type :data:`STEP`."""
    compiled: ClassVar[tuple[Any, ...]] = (*COMPILED, count_topics)

    step_size = Real(
        0.01,
        bounds=(1e-12, 10.0),
        log=True,
        tex="h",
        label="First step size",
        doc="The time that the first step advances.",
    )
    decay_steps = Real(
        1000.0,
        bounds=(1.0, 1e6),
        log=True,
        tex=r"\tau",
        label="Steps before decay τ",
        doc="In the schedule h(1 + m/τ)^−κ of the step sizes: after how many steps they begin to fall.",
    )
    decay_power = Real(
        0.6,
        bounds=(0.0, 1.0),
        tex=r"\kappa",
        label="Decay κ",
        doc="In the schedule h(1 + m/τ)^−κ of the step sizes: how fast they fall; 0 keeps them constant.",
    )
    sweeps = Count(
        5,
        bounds=(1, 100),
        log=True,
        label="Sweeps",
        doc="How often the topics of a document are drawn anew at each visit; their mean is the gradient.",
    )

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        jit.keep_plain(cls, "step")
        if "compiled" not in vars(cls):
            cls.compiled = (*StochasticGradient.compiled, cls.step)

    has_momentum: ClassVar[bool] = False

    def packed(self, step_size: float) -> Array:
        """The numbers that the compiled step reads."""
        return np.array([step_size])

    def compiled_step(self) -> Any:
        """The step of these values of the parameters."""
        return self.step

    def start(self, model: Topics, rng: Generator) -> State:
        """θ ~ Gamma(1, 1), the momentum 0."""
        theta = np.zeros((model.n_words, columns(model.n_topics)))
        theta[:, : model.n_topics] = rng.standard_gamma(1.0, size=(model.n_words, model.n_topics))
        state = self.first_state(model, rng, theta)
        state.extra["counts"] = np.zeros_like(theta)
        state.extra["count_totals"] = np.zeros(theta.shape[1])
        state.extra["momentum"] = np.zeros_like(theta if self.has_momentum else theta[:0])
        return state

    def advance(self, model: Topics, state: State, rng: Generator) -> int:
        self.choose(model, state, rng)
        data, n_topics, size = state.data, model.n_topics, len(state.batch)
        n_first = self.sweeps if model.stream else 0
        counts, count_totals = state.extra["counts"], state.extra["count_totals"]
        count_topics(
            rng,
            state.batch,
            data.offsets,
            data.words,
            state.topics,
            state.counts,
            state.weights,
            self.scale(model, state),
            model.alpha,
            n_topics,
            n_first,
            self.sweeps,
            counts,
            count_totals,
        )
        step_size = self.step_size * (1 + state.steps / self.decay_steps) ** -self.decay_power
        factor = model.n_data / size
        pull = 1 + factor * count_totals[:n_topics] / state.totals[:n_topics]
        total = self.compiled_step()(
            rng,
            state.weights,
            state.extra["momentum"],
            state.totals,
            counts,
            pull,
            factor,
            model.beta,
            n_topics,
            self.packed(step_size),
        )
        state.steps += 1
        if not np.isfinite(total):
            raise FloatingPointError(
                f"{self.title} left the numbers at step {state.steps:,}: its step size is too large."
            )
        return size
