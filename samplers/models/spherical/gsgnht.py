"""Geodesic stochastic gradient thermostats for topics on a sphere."""

from math import exp

import numpy as np

from sgmcmc_lab.samplers.models.spherical.method import State, StochasticSpherical
from sgmcmc_lab.samplers.models.spherical.model import Spherical

FARTHEST = 300.0
"""A thermostat whose damper is e to more than this, up or down, has gone astray."""


class SphericalGSGNHT(StochasticSpherical):
    """gSGNHT of all topics, with one thermostat ξ (Liu, Zhu & Song 2016, section 3.3 and Algorithm 3).

    As SGGMC, with e^{−ξh/2} for the damper, and ξ ← ξ + (‖v‖²/m − 1)h/2 with each half of the great circles; ‖v‖² is
    over all topics, and m = K(V − 1) the dimension of their spheres together. ξ starts at C.
    Invariant distribution: p(β|v) as h → 0; the noise of a minibatch, where it is the same in all directions, only
    moves the mean of ξ.
    """

    key = "spherical_gsgnht"
    title = "gSGNHT"
    update = (
        r"\begin{aligned}(\beta, v) &\leftarrow \text{geodesic}_{h\tau/2}(\beta, v),\quad \xi \leftarrow \xi + \tfrac h2\bigl(\lVert v\rVert^2/m - 1\bigr)\\"
        r"v &\leftarrow e^{-\xi h/2}\Bigl(e^{-\xi h/2} v - h\tau\,\Lambda\nabla\tilde U(\beta) + \Lambda\,\mathcal N(0,\ 2Ch)\Bigr)\\"
        r"(\beta, v) &\leftarrow \text{geodesic}_{h\tau/2}(\beta, v),\quad \xi \leftarrow \xi + \tfrac h2\bigl(\lVert v\rVert^2/m - 1\bigr)\end{aligned}"
    )
    source = "Liu, Zhu & Song 2016, section 3.3 and Algorithm 3, the signs of Q corrected"

    def start(self, model, rng):
        state = super().start(model, rng)
        state.extra["xi"] = np.array([self.friction])
        return state

    def damping(self, model, state):
        power = -float(state.extra["xi"][0]) * self.step_size / 2
        if not abs(power) < FARTHEST:
            raise self.left(state)
        return exp(power)

    def warm(self, model: Spherical, state: State) -> None:
        freedom = model.n_topics * (model.n_words - 1)
        state.extra["xi"] += (float((state.velocity**2).sum()) / freedom - 1) * self.step_size / 2

    tried_at = ({"batch_size": 3, "theta_draws": 2, "theta_leapfrog": 2}, {"batch_size": 100, "step_size": 0.3})
