"""Gamma SGVB's fit q, a product of gammas, beside the draws, with KL(q‖p) and the KS distances of both."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import Label

from sgmcmc_lab.app.views.base import EXACT, Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marginal import HIGHEST, Marginal
from sgmcmc_lab.app.views.marks import LONG, brief, lane_labels, no_draws
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.models.variational.of_target import GammaFit, known
from sgmcmc_lab.samplers.running_statistics import bin_edges
from sgmcmc_lab.samplers.targets.base import SIMPLEX

MOST_STEPS = 20_000
"""The most steps of q, at a tenth of a millisecond each."""
CHUNK = 200
"""Steps of q at a time."""
Q = 4
"""Its colour is that of a fifth lane, which no density has."""
GROWTH = 1.1
"""q is read again after a tenth more steps."""
LEAST = 1e-9
"""Smaller distances are rounding errors."""


class Found(NamedTuple):
    """q as the picture shows it."""

    steps: int
    shares: Array
    """The probabilities of the bars."""
    divergence: float
    """KL(q‖p)."""
    distance: float
    """sup |F_q − F| of the coordinate."""
    falls: bool
    """Whether KL(q‖p) has become smaller by a hundredth in the last tenth of the steps."""


class Variational(Marginal):
    """The exact density, the density of q, which climbs its ELBO by as many steps as a chain makes, and histograms."""

    key = "variational"
    requires = EXACT
    title = "Gamma SGVB beside draws"
    hint = "solid: the target; dashed: q"
    help = (
        "Gamma SGVB fits q, a product of gamma distributions, to the target (Knowles 2015). It makes one step per step of a chain, up to 20,000, each with all data. "
        "KL(q‖p) is the log evidence minus the ELBO. If the target is itself a product of gammas, KL(q‖p) and the KS distance of q fall to 0. "
        "Otherwise the best q keeps a positive distance, while exact chains converge. "
        "Shape parameters in the hundreds need more than 20,000 steps."
    )
    follows_axis = False

    def __init__(self, scene: Any, before: View | None = None):
        self._fit: GammaFit | None = None
        if isinstance(before, Variational) and before.scene.target is scene.target:
            self._fit = before._fit
        self._found: Found | str | None = None
        self._readings: list[tuple[int, float]] = []
        super().__init__(scene, before)

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return known(experiment.make_target())

    def build(self) -> Any:
        p = super().build()
        source = self.feed("q", "x", "y")
        p.line("x", "y", source=source, line_color=self.scene.colours.lanes[Q], line_width=3, line_dash="dashed")
        column, edges = self.scene.column, bin_edges(self.scene.column)
        # The CDF of a share costs a millisecond a point.
        shares = self.scene.target.support == SIMPLEX
        self._edges = edges[np.append(self._starts, self._ends[-1])] if shares else edges
        self._bars = np.searchsorted(self._edges, edges[np.append(self._starts, self._ends[-1])])
        self._below = np.asarray(column.cdf(self._edges))
        return p

    def _label(self, figure: Any) -> list[Label]:
        n = len(self.scene.lanes)
        self._of_q = self.caption_above(figure, n + 1, n)
        return lane_labels(self, figure, more=1)

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        """Let q make some of the steps by which the chains are ahead."""
        steps, seed = min(max(lane.run.steps for lane in lanes), MOST_STEPS), lanes[0].run.spec.seed
        fit = self._fit
        if fit is None or fit.steps > steps or fit.seed != seed:
            self._fit = fit = GammaFit(self.scene.target, seed)
            self._found, self._readings = None, []
        elif isinstance(self._found, str):
            return False
        behind = steps - fit.steps
        try:
            fit.advance(min(behind, CHUNK))
        except FloatingPointError:
            self._found = f"q diverged at step {fit.steps + 1:,}"
            return True
        found = self._found if isinstance(self._found, Found) else None
        due = found is None or fit.steps >= GROWTH * found.steps or behind <= CHUNK
        if due and (found is None or fit.steps > found.steps):
            self._found = self._read(fit)
        return behind > 0 or self._found is not found

    def _read(self, fit: GammaFit) -> Found:
        below = fit.cdf(self.scene.coordinate, self._edges)
        shares = np.diff(below[self._bars])
        kl = fit.divergence
        self._readings.append((fit.steps, kl))
        early = [value for steps, value in self._readings if GROWTH * steps <= fit.steps]
        self._readings = self._readings[max(len(early) - 1, 0) :]
        falls = bool(early) and LEAST < kl < 0.99 * early[-1]
        return Found(fit.steps, shares, kl, float(np.abs(below - self._below).max()), falls)

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out, found = super().compute(lanes), self._found
        heights = found.shares / self._widths if isinstance(found, Found) else np.zeros(0)
        out["q"] = (self._centres[: len(heights)], heights)
        low, top = out.get("y", (np.array([0.0, self._above(self._exact)]),))[0]
        highest = min(float(heights.max(initial=0.0)), HIGHEST * self._exact)
        out["y"] = (np.array([low, max(top, self._above(highest))]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """KL(q‖p), and the KS distances of the coordinate, of q and of the lanes' draws."""
        out = {}
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            counted = lane.run.statistics
            said = no_draws(lane.run) or f"KS {ks.distance(counted, self.scene.coordinate):.2g}"
            out[label.id] = f"{brief(name, LONG - len(said) - 2)}  {said}"
        found = self._found
        if isinstance(found, Found):
            kl = f"KL(q‖p) {_small(found.divergence)}{', falling' if found.falls else ''}"
            out[self._of_q.id] = f"q  {kl}, KS {_small(found.distance)}, steps {found.steps:,}"
        else:
            out[self._of_q.id] = found or ""
        return out


def _small(distance: float) -> str:
    return f"{distance:.2g}" if distance >= LEAST else "under 1e-9"
