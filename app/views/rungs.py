"""The rungs of tempered samplers: where each is, and how often neighbours swap."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.auto_range import Reach
from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS, lane_labels
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.tempering import Tempered

SHOWN_CHAINS = 8
"""Chains of a lane whose rungs are drawn."""
APART = 0.12
"""Between the points of two lanes on one rung."""


def blocks(run: Run) -> Array:
    """θ, and the swaps with the rung below that were proposed and made, of the rungs above the first,
    (chains, K − 1, dim + 2).
    """
    out = run.momentum.reshape(len(run.momentum), -1, run.target.dim + 2).copy()
    if run.whitening is not None:
        out[..., :-2] = run.whitening.theta(out[..., :-2])
    return out


class Rungs(View):
    """The rungs of some chains of each lane: a coordinate of θ at each temperature, the coldest below.

    A thin line joins the rungs of the first chain that have swapped since the frame before. The share of proposed swaps
    that were made counts from the last change of a parameter.
    """

    key = "rungs"
    title = "Rungs"
    hint = "θ at each temperature; lines: swaps of one chain"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return any(isinstance(make_sampler(lane.sampler), Tempered) for lane in experiment.lanes)

    def build(self) -> Any:
        scene, colours, column = self.scene, self.scene.colours, self.scene.column
        self._scale = Scale.of(column)
        p = plot(colours, self._scale.label(column.name), "rung", self._scale.range, (0.5, 4.5))
        self._scale.apply(p.xaxis)
        p.ygrid.grid_line_color = None
        for i, _ in enumerate(scene.lanes):
            swaps = self.feed(f"swaps {i}", "x0", "y0", "x1", "y1")
            p.segment("x0", "y0", "x1", "y1", source=swaps, line_color=colours.lanes[i], line_width=1.5)
            heads = self.feed(f"lane {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=heads,
                size=9,
                marker=MARKERS[i],
                fill_color=colours.lanes[i],
                fill_alpha=0.7,
                line_color=colours.surface,
            )
        self.moving_range("x range", p.x_range)
        self.moving_range("y range", p.y_range)
        self._reach, self._top = Reach(*self._scale.range), 4
        self._before: list[Array | None] = [None] * len(scene.lanes)
        self._base: list[Array | float] = [0.0] * len(scene.lanes)
        self._changes = [0] * len(scene.lanes)
        self._labels = lane_labels(self, p)
        return p

    def live_data(self) -> None:
        """A live page has no such view."""

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        most = 2
        places: list[Array] = []
        for i, lane in enumerate(lanes):
            run = lane.run
            if not isinstance(run.sampler, Tempered):
                continue
            found = blocks(run)
            values = np.concatenate([run.position[:, None], found[..., :-2]], axis=1)[:SHOWN_CHAINS]
            x = self._scale.forward(self.scene.values(values)[..., self.scene.coordinate])
            y = np.tile(1.0 + np.arange(x.shape[1]) + APART * (i - (len(lanes) - 1) / 2), (len(x), 1))
            good = np.isfinite(x)
            out[f"lane {i}"] = x[good], y[good]
            made, before = found[0, :, -1], self._before[i]
            known = before is not None and before.shape == found.shape
            lower = np.flatnonzero(made > before[0, :, -1]) if known and before is not None else np.zeros(0, dtype=int)
            lower = lower[good[0, lower] & good[0, lower + 1]]
            out[f"swaps {i}"] = x[0, lower], y[0, lower], x[0, lower + 1], y[0, lower + 1]
            self._count(i, run, found)
            most, places = max(most, x.shape[1]), [*places, x[good]]
        if self._reach.hold(places):
            out["x range"] = (self._reach.ends,)
        if most != self._top:
            self._top = most
            out["y range"] = (np.array([0.5, most + 0.5]),)
        return out

    def _count(self, i: int, run: Run, found: Array) -> None:
        before, changes = self._before[i], len(run.changes)
        if before is None or before.shape != found.shape:
            self._base[i] = 0.0
        elif changes != self._changes[i]:
            self._base[i] = before[..., -2:].sum(axis=0)
        self._before[i], self._changes[i] = found, changes

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        out = {}
        for i, (label, name, lane) in enumerate(zip(self._labels, self.scene.lanes, lanes, strict=True)):
            out[label.id] = f"{name}  {self._said(i, lane.run)}"
        return out

    def _said(self, i: int, run: Run) -> str:
        if not isinstance(run.sampler, Tempered):
            return "no rungs"
        heat = ", ".join(f"{t:.3g}" for t in run.sampler.ladder)
        before = self._before[i]
        proposed, made = (before[..., -2:].sum(axis=0) - self._base[i]).T if before is not None else np.zeros((2, 1))
        if not proposed.all():
            return f"T {heat}"
        return f"T {heat}; swaps {', '.join(f'{share:.0%}' for share in made / proposed)}"
