"""The data, and what the draws say of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import bands

EXACT_DRAWS, DRAWS = 2000, 400
"""Behind the exact band, and of each lane's behind its own."""
SHOWN_CHAINS = 4
SHARE = (0.05, 0.95)


class Fit(View):
    """The band that holds nine tenths of the draws' curves, beside that of exact draws, and the chains' curves now."""

    key = "fit"
    reads = (bands,)
    title = "Fit"
    hint = "grey: 90 % band, exact; lines: chains now"
    every = 2

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return experiment.make_target().fit() is not None

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        self._fit = fit = scene.target.fit()
        p = plot(colours, fit.axes[0], fit.axes[1], (fit.grid[0], fit.grid[-1]), fit.shown)
        low, high = bands.quantiles(fit.curves(scene.target.sample(7, EXACT_DRAWS)), SHARE)
        p.varea(x=fit.grid, y1=low, y2=high, fill_color=colours.faint, fill_alpha=0.3)
        for i, _ in enumerate(scene.lanes):
            band = self.feed(f"band {i}", "x", "low", "high")
            # Bokeh cannot fill between two empty lines.
            band.data = {"x": fit.grid, "low": np.zeros_like(fit.grid), "high": np.zeros_like(fit.grid)}
            p.varea(x="x", y1="low", y2="high", source=band, fill_color=colours.lanes[i], fill_alpha=0.22)
            for side in ("low", "high"):
                p.line("x", side, source=band, line_color=colours.lanes[i], line_dash=DASHES[i])
            now = self.feed(f"now {i}", "x0", "y0", "x1", "y1")
            p.segment("x0", "y0", "x1", "y1", source=now, line_color=colours.lanes[i], line_width=1.5)
        for kind in np.unique(fit.kinds):
            x, y = fit.data[fit.kinds == kind].T
            p.scatter(x, y, marker=MARKERS[int(kind)], size=5, line_color=colours.exact, fill_alpha=0.0)
        return p

    def live_data(self) -> dict[str, Any] | None:
        return (
            None if self._fit.formula is None else {"grid": self._fit.grid.tolist(), "formula": dict(self._fit.formula)}
        )

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        grid = self._fit.grid
        for i, lane in enumerate(lanes):
            statistics = lane.run.statistics
            latest = statistics.tail(1)
            if len(latest):
                curves = self._fit.curves(latest[0, :SHOWN_CHAINS])
                starts, ends = np.tile(grid[:-1], len(curves)), np.tile(grid[1:], len(curves))
                out[f"now {i}"] = (starts, curves[:, :-1].ravel(), ends, curves[:, 1:].ravel())
            band = self._band(statistics.equal_draws(DRAWS))
            if band is not None:
                out[f"band {i}"] = (grid, *band)
        return out

    def _band(self, draws: Array) -> Array | None:
        """The curve below which a twentieth of the draws' is at each place, and that above which one is."""
        if len(draws) == 0:
            return None
        followed, grid = self._fit.followed, self._fit.grid
        if followed is None:
            return bands.quantiles(self._fit.curves(draws), SHARE)
        # Smooth between the points that are followed, and level beyond them.
        return bands.smooth(followed, bands.quantiles(draws, SHARE), grid)

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return f"{len(self._fit.data)} data; " + self.means(lanes, range(self.scene.target.n_values))
