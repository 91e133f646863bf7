"""The posterior's mode by gradient ascent: a single point."""

from array import array
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.models.base import Snapshot
from sgmcmc_lab.samplers.models.network.joint import add_probabilities, log_joint
from sgmcmc_lab.samplers.models.network.method import NetworkMethod
from sgmcmc_lab.samplers.models.network.model import Array, Network
from sgmcmc_lab.samplers.models.variational.optimisers import Ascent, AscentMethod
from sgmcmc_lab.samplers.models.variational.positive import log_softplus, softplus, softplus_inverse, trace
from sgmcmc_lab.samplers.parameters import Option


@dataclass
class PointState:
    """The point and the optimiser's memory."""

    theta: Array
    """Softplus of it is x, (unknowns,)."""
    ascent: Ascent
    log_joint: array
    """log p(Y, x) after each step."""


class NetworkMAP(AscentMethod, NetworkMethod):
    """Gradient ascent on log p(Y, x), x = log(1 + e^θ): the paper's MAP, with the exact gradient.

    A mode belongs to coordinates. The density in x has none: where a shape is below 1 it grows without bound as the
    unknown goes to 0, so the climb goes on and on and leaves the posterior's bulk. The density in log x has one, but
    there the shapes a_i are so large that the weights of a node are all alike, and no community is left.
    """

    key = "network_map"
    title = "MAP"
    update = (
        r"\theta_d \leftarrow \theta_d + \gamma\,\frac{\partial}{\partial x_d}\log p(Y, x)\,\frac{1}{1+e^{-\theta_d}},"
        r"\quad x_d = \log(1+e^{\theta_d})"
    )
    source = "Knowles 2015, section 4.1"
    compiled = (log_joint, add_probabilities)

    density = Option(
        default="x",
        objects=["x", "log x"],
        label="Density in",
        doc="A mode depends on the coordinates of the density. In x the density is unbounded; in log x its mode has no communities.",
    )

    def start(self, model: Network, rng: Generator) -> PointState:
        """Random weights that give the graph's density."""
        theta = softplus_inverse(model.first_guess(rng))
        return PointState(theta, Ascent(theta.size), array("d"))

    @np.errstate(all="ignore")  # what is no longer finite is found below
    def advance(self, model: Network, state: PointState, rng: Generator) -> int:
        """One step."""
        x, grad = softplus(state.theta), np.empty_like(state.theta)
        log_x = log_softplus(state.theta)
        value = model.log_joint(log_x, grad)
        if self.density == "log x":
            value += float(log_x.sum())
            grad += 1.0
        state.log_joint.append(value)
        # grad is x ∂/∂x, and dx/dθ is 1 − e^{−x}.
        g = grad * np.divide(-np.expm1(-x), x, out=np.ones_like(x), where=x > 0)
        state.theta += self.change(state.ascent, g)
        if not np.isfinite(state.theta).all():
            raise FloatingPointError("An unknown is no longer finite: the step size is too large.")
        return model.n_data

    def score(self, model: Network, state: PointState) -> float:
        """AUC of the present point: an average of points on the way is no draw of anything."""
        total = np.zeros(len(model.held))
        model.add_held_out(*model.weights(softplus(state.theta)), total)
        return model.score(total)

    def weights(self, model: Network, state: PointState) -> tuple[Array, Array]:
        """The weights at the point."""
        return model.weights(softplus(state.theta))

    def snapshot(self, model: Network, state: PointState) -> Snapshot:
        """The point, and log p(Y, x) on the way to it."""
        return {**super().snapshot(model, state), **trace(state.log_joint, "log_joint")}

    tried_at = ({}, {"density": "log x"})

    def textbook_step(self, rng, model, state):
        x = self.textbook_unknowns(model, state)
        grad = np.empty_like(x)
        in_log = self.density == "log x"
        state.log_joint.append(model.log_joint(np.log(x), grad) + np.log(x).sum() * in_log)
        state.theta += self.textbook_change(state.ascent, (grad + in_log) / x / (1 + np.exp(-state.theta)))
        return model.n_data

    def textbook_unknowns(self, model, state):
        return np.log(1 + np.exp(state.theta))
