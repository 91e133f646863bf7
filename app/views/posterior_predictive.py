"""Data that the model makes with the chains' draws, beside the data."""

import numpy as np

from sgmcmc_lab.app.views.base import Array, Frame
from sgmcmc_lab.app.views.predictive import Predictive
from sgmcmc_lab.samplers.diagnostics.predictive import named


class PosteriorPredictive(Predictive):
    """Data sets made of the draws after the burn-in, beside those of exact draws, and the data."""

    key = "posterior_predictive"
    title = "Posterior predictive"
    hint = "90 % of replicated data; grey: exact; p: T ≥ the data's"

    def behind(self) -> Array | None:
        if self.problem:
            return None
        return self.simulated(
            np.random.default_rng(7), named(self.scene.target, self.scene.target.sample(7, self.n_made))
        )

    def background(self, lanes: Frame) -> bool:
        """New data sets of each lane's draws."""
        if self.problem:
            return False
        for i, lane in enumerate(lanes):
            statistics = lane.run.statistics
            draws = statistics.equal_draws(self.n_made)
            if len(draws):
                seed = [i, statistics.history_weights().size]
                made = self.simulated(np.random.default_rng(seed), named(self.scene.target, draws))
                self.take(i, made)
                self._said[i] = self.said(made)
        return self._fresh

    def build(self) -> object:
        self._said: dict[int, str] = {}
        return super().build()

    def captions(self, lanes: Frame) -> dict[str, str]:
        """Each lane's p, or why there are none."""
        if self.problem:
            return {self._labels[0].id: self._why}
        return {
            label.id: f"{name}  {self._said.get(i, 'no draws yet')}"
            for i, (label, name) in enumerate(zip(self._labels, self.scene.lanes, strict=True))
        }
