"""The common part of all methods for topics on a sphere: their state, θ of a batch, the score, and what the views see.

Time is counted in units of τ = √(K/(κN)), so that the same step size suits every corpus: the curvature of U in β is of
the size 1/τ². In the paper's units a step is ε = hτ and the friction C/τ.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.manifolds import sphere
from sgmcmc_lab.samplers.models.average import LaterLogAverage
from sgmcmc_lab.samplers.models.base import Method, Snapshot
from sgmcmc_lab.samplers.models.spherical import textbook
from sgmcmc_lab.samplers.models.spherical.model import Spherical
from sgmcmc_lab.samplers.models.spherical.proportions import COMPILED, draw_theta, packed
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Array

N_TOP = 10
"""Words that a topic is shown by."""
SHAPE = np.zeros(0, dtype=np.int64)
"""A sphere's functions read its size off its points."""


@dataclass
class State:
    """The state of a method."""

    beta: Array
    """The topics, unit vectors (topics, words)."""
    velocity: Array
    """Tangent to them, (topics, words); zero for methods without one."""
    roots: Array
    """√θ of every document, (documents, topics), as of the last time that it was drawn."""
    batch: Any
    """The documents of the last step."""
    average: LaterLogAverage
    steps: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """The further state of one method."""


class SphericalMethod(Method):
    """A method for :class:`Spherical`."""

    model = "spherical"
    compiled = (sphere.project, sphere.flow, *COMPILED)

    def start(self, model: Spherical, rng: Generator) -> State:
        """Topics at documents drawn at random, half way to the mean; θ = 1/K; velocities from N(0, I)."""
        some = rng.choice(model.n_data, model.n_topics, replace=model.n_data < model.n_topics)
        beta = model.training[some] + model.mean
        beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        velocity = rng.standard_normal(beta.shape)
        sphere.project(beta, velocity, SHAPE)
        roots = np.full((model.n_data, model.n_topics), model.n_topics**-0.5)
        return State(beta, velocity, roots, np.arange(0), LaterLogAverage(len(model.held)))

    def scored(self, model: Spherical, state: State) -> Array:
        """log p of each held-out document, in the mean over the later states at which it was asked for."""
        state.average.add(model.log_density(state.beta))
        return state.average.mean()

    def score(self, model: Spherical, state: State) -> float:
        """−log p in the mean over the held-out documents."""
        return -float(self.scored(model, state).mean())

    def theta(self, model: Spherical, state: State) -> Array:
        """θ of every document as it was last drawn, (documents, topics)."""
        return state.roots**2

    def follow(self, model: Spherical, state: State) -> Array:
        """How well the documents of the last step fit; the length of the topics' mean; θ's largest mean."""
        theta = self.theta(model, state)
        fit = model.cosines(state.beta, model.training[state.batch], theta[state.batch]).mean()
        return np.array([fit, np.linalg.norm(state.beta.mean(axis=0)), theta.mean(axis=0).max()])

    def snapshot(self, model: Spherical, state: State) -> Snapshot:
        """``beta`` (K, V). ``top_words``, ``top_probabilities`` (K, 10): the words with the largest weight β, and β²,
        which sum to 1 over all words. ``topic_shares`` (K,): the mean of θ over the documents. ``arrows`` (K, 3): the
        topics in the globe's three directions. ``heat`` (1,): ‖v‖²/m, which is 1 on average at the right temperature,
        and 0 where there is no velocity.
        """
        n_top = min(N_TOP, model.n_words)
        words = np.argsort(-state.beta, axis=1, kind="stable")[:, :n_top]
        return {
            "beta": state.beta.copy(),
            "top_words": words,
            "top_probabilities": np.maximum(np.take_along_axis(state.beta, words, axis=1), 0.0) ** 2,
            "topic_shares": self.theta(model, state).mean(axis=0),
            "arrows": state.beta @ model.axes.T,
            "heat": np.array([(state.velocity**2).sum() / (model.n_topics * (model.n_words - 1))]),
        }

    def check_finite(self, state: State) -> None:
        """Raises FloatingPointError where the topics are no numbers."""
        if not np.isfinite(state.beta).all():
            raise self.left(state)

    def left(self, state: State) -> FloatingPointError:
        """Why it cannot go on."""
        return FloatingPointError(
            f"{self.title} left the numbers at step {state.steps + 1:,}: its step size is too large."
        )

    def textbook_unknowns(self, model, state):
        return state.beta


class SphericalSampler(SphericalMethod):
    """A method that draws β, and θ by geodesic Monte Carlo on the simplex."""

    theta_draws: Any = Count(
        3,
        bounds=(1, 100),
        log=True,
        tex="N",
        label="Draws of θ",
        doc="How many draws of each document's proportions one gradient averages over.",
    )
    theta_step: Any = Real(
        0.4,
        bounds=(0.001, 5.0),
        log=True,
        tex=r"\eta",
        label="Step size η of θ",
        doc="The step of the geodesic Monte Carlo that draws the proportions, in units of 1/√κ.",
    )
    theta_leapfrog: Any = Count(
        5,
        bounds=(1, 100),
        log=True,
        tex="L",
        label="Leapfrog steps of θ",
        doc="Leapfrog steps in one proposal of the proportions.",
    )

    def unit(self, model: Spherical) -> float:
        """τ, the unit of time."""
        return float(np.sqrt(model.n_topics / (model.k * model.n_data)))

    def draw_theta(self, model: Spherical, state: State, rng: Generator, batch: Array, n_draws: int) -> Array:
        """θ of these documents given β, (draws, documents, topics); each goes on from where it was."""
        y = state.roots[batch]
        target = packed(state.beta, model.training[batch], model.k, model.alpha)
        out = draw_theta(rng, y, target, self.theta_step / np.sqrt(model.k), int(self.theta_leapfrog), n_draws)
        state.roots[batch] = y
        return out

    def gradient(self, model: Spherical, state: State, theta: Array, batch: Array) -> Array:
        """The estimate of ∂U/∂β from these documents and their θ, eq (10); (topics, words)."""
        factor = model.n_data / len(batch)
        return model.prior_gradient(state.beta) + factor * model.data_gradient(state.beta, model.training[batch], theta)


class StochasticSpherical(SphericalSampler):
    """The geodesic integrator with minibatches; its friction is left open."""

    step_size = Real(
        0.1,
        bounds=(1e-4, 5.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time that one step advances, in units of τ = √(K/(κN)).",
    )
    friction = Real(
        2.0,
        bounds=(0.01, 1000.0),
        log=True,
        tex="C",
        label="Friction C",
        doc="How fast the velocity is forgotten, a unit τ of time. The injected noise belongs to it.",
    )
    batch_size = Count(
        50,
        bounds=(1, 100_000),
        log=True,
        tex="S",
        label="Documents in a step",
        doc="How many documents one gradient looks at.",
    )

    @abstractmethod
    def damping(self, model: Spherical, state: State) -> float:
        """The factor that half a step's friction takes the velocity by."""

    def warm(self, model: Spherical, state: State) -> None:
        """The further updates of half a step of the free flow, besides the move of the topics."""

    def advance(self, model: Spherical, state: State, rng: Generator) -> int:
        """ABOBA, with the batch's θ drawn at the middle."""
        h, time = self.step_size, self.step_size * self.unit(model) / 2
        beta, v = state.beta, state.velocity
        state.batch = rng.choice(model.n_data, min(int(self.batch_size), model.n_data), replace=False, shuffle=False)
        sphere.flow(beta, v, time, SHAPE)
        self.warm(model, state)
        theta = self.draw_theta(model, state, rng, state.batch, int(self.theta_draws))
        damping = self.damping(model, state)
        v *= damping
        v -= 2 * time * self.gradient(model, state, theta, state.batch)
        v += np.sqrt(2 * self.friction * h) * rng.standard_normal(v.shape)
        v *= damping
        sphere.project(beta, v, SHAPE)
        sphere.flow(beta, v, time, SHAPE)
        self.warm(model, state)
        self.check_finite(state)
        state.steps += 1
        return len(state.batch)

    def textbook_step(self, rng, model, state):
        return textbook.aboba(self, rng, model, state)
