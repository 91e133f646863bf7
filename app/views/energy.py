"""The energy of a target on a line as a landscape, and the chains as balls in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.layouts import column as stacked
from bokeh.models import ColumnDataSource
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.drags import take_curve, take_drags
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.state import notes
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.targets.typed import Typed

POINTS = 400
"""The points of the curve."""
HIGHEST = 8.0
"""How far above the lowest energy the figure goes: there the density is e⁻⁸ of its maximum."""
TRAIL = 8
"""The last positions of a lane's first chain."""
SHOWN_CHAINS = 4


class Energy(View):
    """U(θ) = −log density. Faint dots are the last positions of the first chain. A typed one can be drawn."""

    key = "energy"
    title = "Energy"
    hint = "U(θ), the chains, the last steps of one"
    aims = True

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        return target.dim == 1 and target.of_coordinates

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        column = scene.target.columns[0]
        scale = Scale.of(column)
        p = plot(colours, scale.label(column.name), "U", scale.range, (0.0, 1.0))
        scale.apply(p.xaxis)
        self._ranges = p.x_range, p.y_range
        self._curve = ColumnDataSource({"x": [], "y": [], "bottom": []})
        p.varea("x", "bottom", "y", source=self._curve, fill_color=colours.density[1], fill_alpha=0.25)
        p.line("x", "y", source=self._curve, line_color=colours.exact, line_width=1.5)
        for i, _ in enumerate(scene.lanes):
            trail = self.feed(f"trail {i}", "x", "y", "alpha")
            p.scatter(
                "x",
                "y",
                source=trail,
                size=8,
                marker=MARKERS[i],
                alpha="alpha",
                color=colours.lanes[i],
                line_color=None,
            )
            ball = self.feed(f"ball {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=ball,
                size=14,
                marker=MARKERS[i],
                fill_color=colours.lanes[i],
                line_color=colours.surface,
                line_width=1.5,
            )
        self._label = self.caption_above(p, scene.noted)
        self.aim()
        if scene.live or not isinstance(scene.target, Typed):
            self.take_touches(p)
            take_drags(self, p, flat=True)
            return p
        draw = take_curve(self, p, "Draw another U")
        self.take_touches(p, "if (mode.active) return\nconst point = [cb_obj.x, cb_obj.y]", mode=draw)
        take_drags(self, p, flat=True, modes=[draw])
        draw.styles = {"position": "absolute", "top": "2px", "right": "26px"}
        return stacked(p, draw, sizing_mode="stretch_both")

    def aim(self) -> None:
        self._scale = scale = Scale.of(self.scene.target.columns[0])
        positions = np.linspace(*scale.range, POINTS)
        energy = self._energy(np.array([scale.back(x) for x in positions]))
        self._low = float(energy.min())
        bottom, seen = self._low - 0.08 * HIGHEST, energy < self._low + HIGHEST
        for moved, (start, end) in zip(self._ranges, (scale.range, (bottom, self._low + HIGHEST)), strict=True):
            self.put(moved, start=start, end=end)
        floor = np.full(np.count_nonzero(seen), bottom)
        self.put(self._curve, data={"x": positions[seen], "y": energy[seen], "bottom": floor})

    def live_data(self) -> dict[str, Any]:
        column = self.scene.target.columns[0]
        x = np.array([self._scale.back(x) for x in np.linspace(*self._scale.range, POINTS)])
        lowest = x[[np.argmin(self._energy(x))]]
        # The engine's U is the energy up to a constant.
        above = float((self._energy(lowest) - self.scene.target.energies_at(lowest[:, None]))[0])
        return {"scale": {"log": column.log, "range": list(self._scale.range)}, "above": above}

    def live_tap(self) -> dict[str, Any] | None:
        edges = list(self._scale.range)
        scale = {"log": self._scale.log, "range": edges}
        tap = {"figure": self.figure.id, "kind": "axes", "coordinates": [0], "scales": [scale], "edges": [edges]}
        return tap | {"arrow": self.thrown_along, "flat": True}

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        low, high = self._scale.range
        return np.array([self._scale.back(point[0])]) if len(point) == 2 and low <= point[0] <= high else None

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """In one unit of time it takes a chain as far to the side as the drag went."""
        return None if list(point) == list(end) else np.array([self._scale.between(point[0], end[0])])

    def _energy(self, theta: Array) -> Array:
        return np.asarray(-self.scene.target.log_density(theta[:, None]))

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            # Particles are what they are together.
            chains = None if lane.run.interacting else SHOWN_CHAINS if len(lanes) == 1 else 1
            out[f"ball {i}"] = self._on_curve(lane.run.position[:chains, 0])[:2]
            x, y, kept = self._on_curve(lane.run.statistics.tail(TRAIL + 1)[:-1, 0, 0])
            out[f"trail {i}"] = x, y, np.linspace(0.1, 0.6, len(kept))[kept]
        return out

    def _on_curve(self, theta: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Where θ is in the figure, and which of them are there: a chain that blows up has no energy."""
        with np.errstate(all="ignore"):
            x, y = self._scale.forward(theta), self._energy(theta)
        good = np.isfinite(x) & np.isfinite(y)
        return x[good], y[good], good

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {self._label.id: notes(lanes)}

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, [0])
