"""Data that the model makes before there are any, beside the data."""

import numpy as np

from sgmcmc_lab.app.views.base import Array, Frame
from sgmcmc_lab.app.views.predictive import Predictive
from sgmcmc_lab.samplers.parameters import SpecError


class PriorPredictive(Predictive):
    """Data sets of parameters drawn from the prior: what the model takes for possible before it has seen data."""

    key = "prior_predictive"
    title = "Prior predictive"
    hint = "90 % of data drawn from the prior; p: T ≥ the data's"

    @property
    def lanes_drawn(self) -> int:
        # The prior is the same beside every sampler.
        return min(1, len(self.scene.lanes))

    def behind(self) -> Array | None:
        self._rng = np.random.default_rng(8)
        if self.problem:
            return None
        try:
            self._made = self.simulated(self._rng, self.model.parameters(self._rng, self.n_made))
        except SpecError as error:
            self.problem = error.allowed
            return None
        return self._made

    def background(self, lanes: Frame) -> bool:
        """Another data set: as long as the chains move each is shown for a moment."""
        if self.problem or not (lanes.moving or not self._found):
            return False
        new = self.simulated(self._rng, self.model.parameters(self._rng, 1))
        self._made = np.concatenate([self._made, new])[-self.n_made :]
        self.take(0, self._made)
        return self._fresh

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The p, or why there are none."""
        return {self._labels[0].id: self._why or self.said(self._made)}

    def words(self, lanes: Frame) -> str:
        """The range of data that the prior generates."""
        if self.problem or not len(self._made):
            return ""
        low, high = np.quantile(self._made, (0.05, 0.95))
        return f"nine tenths of {self.outcome} lie from {low:.3g} to {high:.3g}; those of the data from {self.y.min():.3g} to {self.y.max():.3g}"
