"""The circle drawn as a circle: the exact density as a ring, the histogram wrapped around it, and the chains on it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, Frame, LaneFrame, View
from sgmcmc_lab.app.views.drags import take_drags
from sgmcmc_lab.app.views.marks import MARKERS, no_draws
from sgmcmc_lab.app.views.state import notes
from sgmcmc_lab.app.views.steps import add_arrows, rows
from sgmcmc_lab.app.views.theme import DASHES, even_plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.manifolds import Sphere
from sgmcmc_lab.samplers.running_statistics import bin_edges

EXTENT = 1.8
"""Half the width of the figure; the circle has radius 1."""
RING, HEIGHT, HIGHEST = 1.1, 0.48, 0.66
"""Where the ring begins, how far above that the exact density rises, and where a histogram that is higher is cut."""
BARS = 64
TRAIL = 60
SHOWN_CHAINS = 4
ARROW, LONGEST = 0.3, 0.9
"""The length of the arrow of a velocity 1, and that of the longest one."""
POINTS = 720


def ring(angles: Array, heights: Array) -> tuple[Array, Array]:
    """The points around the circle at these heights (the exact density's highest is 1)."""
    radius = RING + np.minimum(HEIGHT * heights, HIGHEST)
    return radius * np.cos(angles), radius * np.sin(angles)


class Circle(View):
    """Chains on the circle with their velocities, inside a ring that is as high as the density."""

    key = "circle"
    title = "On the circle"
    hint = "ring: exact, and wrapped histogram; arrows: velocity"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return experiment.make_target().manifold == Sphere(2)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        column = scene.target.columns[0]
        p = even_plot(colours, (-EXTENT, EXTENT), (-EXTENT, EXTENT))
        angles = np.linspace(-np.pi, np.pi, POINTS + 1)
        density = np.exp(scene.target.log_column_density(angles[:, None]))
        self._top = float(density.max())
        x, y = ring(angles, density / self._top)
        inner_x, inner_y = ring(angles[::-1], np.zeros(POINTS + 1))
        p.patch(
            np.concatenate([x, inner_x]),
            np.concatenate([y, inner_y]),
            fill_color=colours.density[1],
            fill_alpha=0.4,
            line_color=None,
        )
        p.line(inner_x, inner_y, line_color=colours.faint, line_alpha=0.5)
        p.line(np.cos(angles), np.sin(angles), line_color=colours.faint, line_width=1.5)
        p.line(x, y, line_color=colours.exact, line_width=2)
        at = np.array([0, np.pi / 2, np.pi, -np.pi / 2])
        # Each ends at the circle and not across it, however small the circle is.
        p.text(
            0.92 * np.cos(at),
            0.92 * np.sin(at),
            text=["0", "π/2", "±π", "−π/2"],
            text_color=colours.faint,
            text_font_size="12px",
            text_align=["right", "center", "left", "center"],
            text_baseline=["middle", "top", "middle", "bottom"],
        )
        # Bars are whole groups of the fine bins, so that counts are exact.
        edges = bin_edges(column)
        self._cuts = np.linspace(0, len(edges) - 1, BARS + 1).round().astype(int)
        self._bars = edges[self._cuts]
        for i, _ in enumerate(scene.lanes):
            colour = colours.lanes[i]
            bars = self.feed(f"bars {i}", "x", "y")
            p.line("x", "y", source=bars, line_color=colour, line_width=2, line_dash=DASHES[i])
            trail = self.feed(f"trail {i}", "x", "y", rollover=TRAIL)
            p.scatter("x", "y", source=trail, size=4, color=colour, alpha=0.35, line_color=None)
            arrows = self.feed(f"velocity {i}", "x0", "y0", "x1", "y1")
            p.segment("x0", "y0", "x1", "y1", source=arrows, line_color=colour, line_width=2.5, line_cap="round")
            heads = self.feed(f"heads {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=heads,
                size=12,
                marker=MARKERS[i],
                fill_color=colour,
                line_color=colours.surface,
                line_width=1.5,
            )
        add_arrows(self, p)
        self._label = self.caption(p)
        self.take_touches(p)
        take_drags(self, p)
        self._turn = -1
        return p

    def live_data(self) -> dict[str, Any]:
        return {"top": self._top, "cuts": self._cuts.tolist(), "bars": self._bars.tolist()}

    def live_tap(self) -> dict[str, Any] | None:
        return {"figure": self.figure.id, "kind": "circle", "arrow": self.thrown_along, "length": ARROW}

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        length = float(np.linalg.norm(point))
        return None if len(point) != 2 or length == 0 else np.array(point) / length

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """The part of the drag along the circle, as long as the arrow of that velocity."""
        drag = (np.array(end) - np.array(point)) / ARROW
        return None if not drag.any() else np.asarray(drag - (drag @ start) * start)

    def compute(self, lanes: Frame) -> Data:
        # A momentum has the length of the other arrows, ARROW for 1.
        playing = lanes.playing and lanes.playing._replace(reach=ARROW)
        out: Data = {"parts": rows(playing, self.scene.parts, lambda x: x)}
        self._turn += 1
        chains = SHOWN_CHAINS if len(lanes) == 1 else 1
        for i, lane in enumerate(lanes):
            run = lane.run
            x, v = run.position[:chains], run.momentum[:chains, :2]
            good = np.isfinite(x).all(axis=1) & np.isfinite(v).all(axis=1)
            x, v = x[good], v[good]
            out[f"heads {i}"] = x[:, 0], x[:, 1]
            out[f"velocity {i}"] = arrows(x, v)
            if len(lane.fresh):
                # The trail is that of the first chain; the dots of others would hide it.
                trail = lane.fresh[:, 0]
                trail = trail[np.isfinite(trail).all(axis=1)]
                out[f"trail {i}"] = trail[:, 0], trail[:, 1]
            if self._turn % 3 == 0:
                out[f"bars {i}"] = self._histogram(lane)
        return out

    def _histogram(self, lane: LaneFrame) -> tuple[Array, Array]:
        """The steps of the histogram around the ring."""
        statistics = lane.run.statistics
        below = np.cumsum(statistics.counts(0))
        counts = np.diff(below[self._cuts])
        heights = counts / (max(statistics.total, 1) * np.diff(self._bars) * self._top)
        # Each bar has two corners; the last one is closed with the first, on the other side of ±π.
        angles = np.append(np.repeat(self._bars, 2)[1:-1], self._bars[0])
        return ring(angles, np.append(np.repeat(heights, 2), heights[0]))

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        empty = {no_draws(lane.run) for lane in lanes}
        return {self._label.id: "\n".join(filter(None, [notes(lanes), *([min(empty)] if all(empty) else [])]))}

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, range(self.scene.target.n_values))


def arrows(x: Array, v: Array) -> tuple[Array, ...]:
    """Velocities v at x (n, 2), as segments of at most a readable length; none where nothing moves."""
    length = ARROW * np.linalg.norm(v, axis=1)
    seen = length > 1e-9
    x, v, length = x[seen], v[seen], length[seen]
    tip = x + ARROW * v * (np.minimum(length, LONGEST) / length)[:, None]
    return x[:, 0], x[:, 1], tip[:, 0], tip[:, 1]
