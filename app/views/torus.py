"""Two angles as a map of the torus: exact contours, chains over them, the marginals on its sides."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, LinearColorMapper
from bokeh.palettes import interp_palette
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data, Frame, LaneFrame, View
from sgmcmc_lab.app.views.drags import take_drags
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.planes import heights
from sgmcmc_lab.app.views.state import notes
from sgmcmc_lab.app.views.steps import add_arrows, rows
from sgmcmc_lab.app.views.theme import DASHES, FINE, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import histogram
from sgmcmc_lab.samplers.manifolds import Spheres
from sgmcmc_lab.samplers.running_statistics import bin_edges

GRID = 160
SIDE = 0.3
"""The room of a marginal, as a share of the map's side."""
BARS = 48
ROOM, MOST = 1.25, 3.0
"""The room for a marginal, in relation to the highest one, and how often as high as the exact one it is at most."""
PATH = 400
SHOWN_CHAINS = 4


class Torus(View):
    """The joint distribution of two angles. Paths join draws; where a frame makes many steps, it draws some of them."""

    key = "torus"
    title = "Torus map"
    hint = "contours hold 50, 90, 99 %"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        # Two circles, in the four coordinates of the planes that they lie in.
        return experiment.make_target().manifold == Spheres(2, 2)

    def build(self) -> Any:
        scene, target, colours = self.scene, self.scene.target, self.scene.colours
        self._axes = [column.axis for column in target.columns[:2]]
        self._widths = [b - a for a, b in self._axes]
        ranges = [(a, b + (SIDE + 0.02) * (b - a)) for a, b in self._axes]
        first, second = (f"angle of {column.name}" for column in target.columns[:2])
        p = plot(colours, first, second, *ranges)
        p.grid.grid_line_color = None
        for axis, (a, b) in zip((p.xaxis, p.yaxis), self._axes, strict=True):
            step = tick_step(b - a)
            axis.ticker = FixedTicker(ticks=[step * k for k in range(int(np.ceil(a / step)), int(b // step) + 1)])
        x, y = (np.linspace(a, b, GRID + 1)[:-1] + (b - a) / GRID / 2 for a, b in self._axes)
        density = np.exp(target.log_column_density(np.stack(np.meshgrid(x, y), axis=-1)))
        mapper = LinearColorMapper(
            palette=interp_palette(list(colours.density), 64), low=0.0, high=float(np.sqrt(density.max()))
        )
        (x0, x1), (y0, y1) = self._axes
        # The square root lets the tails be seen.
        p.image(
            [np.sqrt(density).astype(np.float32)],
            x=x0,
            y=y0,
            dw=x1 - x0,
            dh=y1 - y0,
            color_mapper=mapper,
            level="image",
        )
        p.contour(x, y, density, levels=heights(density), line_color=colours.exact, line_alpha=0.6, line_width=1)
        self._build_sides(p)
        for i, _ in enumerate(scene.lanes):
            colour, one = colours.lanes[i], len(scene.lanes) == 1
            path = self.feed(f"path {i}", "x0", "y0", "x1", "y1", rollover=PATH)
            p.segment(
                "x0", "y0", "x1", "y1", source=path, line_color=colour, line_width=FINE, line_alpha=0.65 if one else 0.4
            )
            heads = self.feed(f"heads {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=heads,
                size=11,
                marker=MARKERS[i],
                fill_color=colour,
                line_color=colours.surface,
                line_width=1.5,
            )
        self._last: list[Array | None] = [None] * len(scene.lanes)
        add_arrows(self, p)
        self._label = self.caption_above(p, scene.noted)
        self.take_touches(p)
        take_drags(self, p)
        self._turn = -1
        return p

    def _build_sides(self, p: Any) -> None:
        """The exact marginals, and a feed for each lane's."""
        colours = self.scene.colours
        self._groups: list[tuple[NDArray[np.int64], Array]] = []
        self._tops: list[float] = []
        self._highest: list[float] = []
        self._curves: list[tuple[Array, Array]] = []
        for k, (column, (low, high)) in enumerate(zip(self.scene.target.columns[:2], self._axes, strict=True)):
            # Bars are whole groups of the fine bins, so that counts are exact.
            edges = bin_edges(column)
            first, last = np.searchsorted(edges, low), np.searchsorted(edges, high, side="right") - 1
            cuts = np.unique(np.linspace(first, last, BARS + 1).round().astype(int))
            ends = edges[cuts]
            exact = np.diff(column.cdf(ends)) / np.diff(ends)
            self._groups.append((cuts, ends))
            self._highest.append(float(exact.max()))
            self._tops.append(0.0)
            fine = np.linspace(low, high, 241)
            self._curves.append(((fine[1:] + fine[:-1]) / 2, np.diff(column.cdf(fine)) / np.diff(fine)))
            source = self.feed(f"exact {k}", "x", "floor", "rise")
            if k == 0:
                p.varea("x", "floor", "rise", source=source, fill_color=colours.density[1], fill_alpha=0.4)
                p.line("x", "rise", source=source, line_color=colours.exact, line_width=1.5)
            else:
                p.harea("floor", "rise", "x", source=source, fill_color=colours.density[1], fill_alpha=0.4)
                p.line("rise", "x", source=source, line_color=colours.exact, line_width=1.5)
            for i, _ in enumerate(self.scene.lanes):
                source = self.feed(f"side {k} {i}", "x", "y")
                p.line("x", "y", source=source, line_color=colours.lanes[i], line_width=1.5, line_dash=DASHES[i])

    def _on_side(self, k: int, density: Array) -> Array:
        """The position of a marginal density of angle ``k`` beside the map; cut at the end of its room."""
        end, width = self._axes[1 - k][1], self._widths[1 - k]
        return end + width * (0.02 + SIDE * np.minimum(density / self._tops[k], 1.0))

    def live_data(self) -> dict[str, Any]:
        return {
            "axes": [list(axis) for axis in self._axes],
            "highest": self._highest,
            "cuts": [cuts.tolist() for cuts, _ in self._groups],
            "ends": [ends.tolist() for _, ends in self._groups],
            "curves": [[part.tolist() for part in curve] for curve in self._curves],
        }

    def live_tap(self) -> dict[str, Any] | None:
        return {"figure": self.figure.id, "kind": "torus", "axes": [list(axis) for axis in self._axes]}

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        if len(point) != 2 or not self._inside(np.array([point]))[0]:
            return None
        return np.array([turn for angle in point for turn in (np.cos(angle), np.sin(angle))])

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """In one unit of time it turns the angles as far as the drag went."""
        turns = np.repeat(np.array(end) - np.array(point), 2)
        # A quarter of a turn from (cos a, sin a) is (−sin a, cos a).
        along = start.reshape(-1, 2)[:, ::-1] * [-1, 1]
        return None if not turns.any() else np.asarray(turns * along.ravel())

    def compute(self, lanes: Frame) -> Data:
        target = self.scene.target
        out: Data = {"parts": rows(lanes.playing, self.scene.parts, lambda x: unrolled(target.values(x)[:, :2]))}
        self._turn += 1
        chains = SHOWN_CHAINS if len(lanes) == 1 else 1
        for i, lane in enumerate(lanes):
            position = lane.run.position[:chains]
            heads = target.values(position[np.isfinite(position).all(axis=1)])
            heads = heads[self._inside(heads)]
            out[f"heads {i}"] = heads[:, 0], heads[:, 1]
            if len(lane.fresh):
                values = target.values(lane.fresh[:, 0])
                values = values[np.isfinite(values).all(axis=1)]
                out[f"path {i}"] = self._path(i, values)
        if self._turn % 3 == 0:
            for k in (0, 1):
                out |= self._sides(k, lanes)
        return out

    def _inside(self, values: Array) -> Any:
        """The points on the map; beside it the marginals would hide them."""
        return np.all([(values[:, k] >= a) & (values[:, k] <= b) for k, (a, b) in enumerate(self._axes)], axis=0)

    def _path(self, i: int, values: Array) -> tuple[Array, ...]:
        """Segments from draw to draw; none across the seam at ±π, where neighbours are at opposite ends."""
        last = self._last[i]
        points = values if last is None else np.concatenate([last[None], values])
        if len(points):
            self._last[i] = points[-1]
        starts, ends = points[:-1], points[1:]
        seen = (np.abs(ends - starts) < np.pi).all(axis=1) & self._inside(starts) & self._inside(ends)
        return starts[seen, 0], starts[seen, 1], ends[seen, 0], ends[seen, 1]

    def _sides(self, k: int, lanes: Frame) -> Data:
        """The marginals of angle ``k``; the exact one anew where the others need more room, or less."""
        cuts, ends = self._groups[k]
        each = [lane.run.statistics for lane in lanes]
        densities = [histogram.densities(one, k, cuts[:-1], cuts[1:], np.diff(ends)) for one in each]
        needed = ROOM * min(max(float(np.max(densities)), self._highest[k]), MOST * self._highest[k])
        out: Data = {}
        if not needed <= self._tops[k] <= ROOM * needed:
            self._tops[k] = needed
            x, curve = self._curves[k]
            out[f"exact {k}"] = (x, self._on_side(k, np.zeros_like(curve)), self._on_side(k, curve))
        along = np.repeat(ends, 2)[1:-1]
        for i, density in enumerate(densities):
            rise = self._on_side(k, np.repeat(density, 2))
            out[f"side {k} {i}"] = (along, rise) if k == 0 else (rise, along)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {self._label.id: notes(lanes)}


def unrolled(angles: Array) -> Array:
    """A path of angles (n, 2) without its jumps from one end of the map to the other."""
    return angles[:1] + np.concatenate([0 * angles[:1], np.cumsum(turn(np.diff(angles, axis=0)), axis=0)])


def turn(angles: Array) -> Array:
    """The same angles from −π to π."""
    return np.asarray((angles + np.pi) % (2 * np.pi) - np.pi)


def tick_step(width: float) -> float:
    """A round number that is about a quarter of the width."""
    power = 10.0 ** np.floor(np.log10(width / 4))
    return float(next(power * m for m in (10, 5, 2, 1) if power * m <= width / 3))
