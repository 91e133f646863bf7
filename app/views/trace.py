"""One coordinate as it moves."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation

from sgmcmc_lab.app.views.auto_range import Reach
from sgmcmc_lab.app.views.base import COLUMNS, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import SIGNS, diverged, lane_labels, number_axis, run_window
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import convergence
from sgmcmc_lab.samplers.diagnostics.ks import edges_and_cdf
from sgmcmc_lab.samplers.targets.base import Array

WINDOW = 600
"""Draws of a chain that stay visible."""
SHOWN_CHAINS = 4
"""The most chains shown of a single lane; with several lanes, the first chain of each is shown."""
JOINED = 0.25
"""The opacity of lines of several lanes, whose draws are dots: an opaque line that jumps would cover all others."""
SHOWN_MARKS = 20
BAND = (0.05, 0.95)


def exact_quantiles(scale: Scale, edges: Array, cdf: Array, levels: Sequence[float]) -> Array:
    """Quantiles as positions on the axis, from the exact CDF at the edges of the histogram."""
    return np.interp(levels, cdf, scale.forward(edges))


class TraceView(View):
    """The latest draws of one coordinate, at most sixteen a frame, evenly spaced."""

    key = "trace"
    title = "Trace"
    requires = COLUMNS
    hint = "grey band: the exact 5–95 %"
    aims = True

    def build(self) -> Any:
        scene = self.scene
        column, colours = scene.column, scene.colours
        scale = Scale.of(column)
        p = plot(colours, scene.axis_label, scale.label(column.name), (0, 1), scale.range)
        scale.apply(p.yaxis)
        number_axis(p.xaxis)
        self._values = p.y_range
        self.moving_range("y", self._values)
        if column.exact:
            self._band = BoxAnnotation(fill_color=colours.faint, fill_alpha=0.16, line_color=None, level="underlay")
            p.add_layout(self._band)
        else:
            self.hint = "the target is not known: do the chains agree?"
        one = len(scene.lanes) == 1
        for i, _ in enumerate(scene.lanes):
            # The first chain is drawn last, on top.
            for c in range(SHOWN_CHAINS if one else 1)[::-1]:
                source = self.feed(f"lane {i} chain {c}", "x", "y", rollover=WINDOW)
                p.line(
                    "x",
                    "y",
                    source=source,
                    line_color=colours.lanes[i],
                    line_join="bevel",
                    line_width=FINE,
                    line_alpha=(0.35 if c else 0.9) if one else JOINED,
                )
                if not one:
                    p.scatter("x", "y", source=source, size=2, fill_color=colours.lanes[i], line_color=None)
        for i, _ in enumerate(scene.lanes):
            marks = self.feed(f"marks {i}", "x")
            p.vspan(
                x="x",
                source=marks,
                line_color=colours.exact if one else colours.lanes[i],
                line_width=2,
                line_dash="dashed",
            )
        self.moving_range("x", p.x_range)
        self._shown: list[deque[float]] = [deque(maxlen=WINDOW) for _ in scene.lanes]
        self._ends: list[Array] = [np.zeros((0, 2)) for _ in scene.lanes]
        if scene.diverges:
            self.hint += "; red: divergent transitions"
        for i, _ in enumerate(scene.lanes if scene.diverges else ()):
            rug = self.feed(f"rug {i}", "x", "y")
            p.scatter("x", "y", source=rug, marker="dash", angle=np.pi / 2, size=20, line_color=colours.bad)
        self._labels = lane_labels(self, p, more=1 + scene.diverges)
        self._kept = self.caption_above(p, len(scene.lanes) + 1 + scene.diverges, len(scene.lanes))
        self.aim()
        return p

    def aim(self) -> None:
        column = self.scene.column
        self._scale = scale = Scale.of(column)
        self._low, high = scale.range
        self.put(self._values, start=self._low, end=high)
        self._reach = Reach(self._low, high) if column.exact else None
        if column.exact:
            bottom, top = exact_quantiles(scale, *edges_and_cdf(column), BAND)
            self.put(self._band, bottom=bottom, top=top)

    def live_data(self) -> dict[str, Any]:
        return {"scale": {"log": self._scale.log, "range": list(self._scale.range)}}

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            fresh = lane.fresh[:, : SHOWN_CHAINS if len(lanes) == 1 else 1]
            if not len(fresh):
                continue
            with np.errstate(invalid="ignore"):
                y = self._scale.forward(self.scene.values(fresh)[..., self.scene.coordinate])
            good = np.isfinite(y).all(axis=1) & np.isfinite(lane.fresh_x)
            x, y = lane.fresh_x[good], y[good]
            for c in range(y.shape[1]):
                out[f"lane {i} chain {c}"] = (x, y[:, c])
            self._shown[i].extend(x.tolist())
            ends = np.column_stack([y.min(axis=1), y.max(axis=1)])
            self._ends[i] = np.concatenate([self._ends[i], ends])[-WINDOW:]
        first = [x[0] for x in self._shown if x]
        if out:
            start, end = min(first), max(x[-1] for x in self._shown if x)
            out["x"] = (np.array(run_window(start, end, self.scene.axis)),)
            if self._reach is None:
                ends = np.concatenate(self._ends)
                low, high = ends.min(), ends.max()
                room = max(0.05 * (high - low), 1e-3 * abs(high), 1e-9)
                out["y"] = (np.array([low - room, high + room]),)
            elif self._reach.follow(self._ends):
                out["y"] = (self._reach.ends,)
        if "y" in out:
            self._low = float(out["y"][0][0])
        for i, lane in enumerate(lanes):
            marks = np.array([x for x in lane.marks if first and x >= min(first)][-SHOWN_MARKS:], dtype=float)
            out[f"marks {i}"] = (marks,)
            if f"rug {i}" in self.feeds:
                out[f"rug {i}"] = self._rug(lane, len(lanes), min(first, default=0.0))
        return out

    def _rug(self, lane: LaneFrame, lanes: int, start: float) -> tuple[Array, Array]:
        """The steps of the drawn chains whose transitions diverged, at the lower end of the axis."""
        found = lane.run.divergent
        x = lane.x * found.steps[found.chains < (SHOWN_CHAINS if lanes == 1 else 1)] / max(lane.run.steps, 1)
        x = x[x >= start]
        return x, np.full_like(x, self._low)

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        out, kept = {}, []
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            if lane.run.interacting:
                out[label.id] = f"{name}  interacting particles: no R̂, no ESS"
                continue
            history = lane.run.statistics.history()
            why_weighted = lane.run.statistics.why_weighted
            if not why_weighted:
                kept.append(history.shape[:2])
            out[label.id] = f"{name}  {self._summary(history, why_weighted)}"
        out[self._kept.id] = (
            "" if not any(draws for _, draws in kept) else f"ESS bulk / tail, of {_sizes(kept)} kept draws"
        )
        if any(f"rug {i}" in self.feeds for i in range(len(lanes))):
            several = len(lanes) > 1
            said = [f"{sign} {text}" if several else text for sign, text in _diverged(lanes)]
            out[self._kept.id] = "\n".join(filter(None, [out[self._kept.id], ", ".join(said)]))
        return out

    def _summary(self, history: Array, why_weighted: str) -> str:
        chains, draws = history.shape[:2]
        if why := convergence.refusal(history, self.scene.coordinate):
            return why if draws < convergence.FEWEST else f"R̂ –  ESS –  {why}"
        found = convergence.summary(history, self.scene.coordinate)
        rhat = "R̂ needs 2 chains" if chains < 2 else f"R̂ {found.rhat:.3f}" if np.isfinite(found.rhat) else "R̂ unknown"
        if why_weighted:
            return f"{rhat}  {why_weighted}: no ESS"
        tail = f"{found.ess_tail:,.0f}" if np.isfinite(found.ess_tail) else "unknown"
        return f"{rhat}  ESS {found.ess_bulk:,.0f} / {tail}"


def _diverged(lanes: Sequence[LaneFrame]) -> list[tuple[str, str]]:
    """The sign of each lane with divergent transitions, and their number in words."""
    said = [(sign, diverged(lane.run)) for sign, lane in zip(SIGNS, lanes, strict=False)]
    return [(sign, text) for sign, text in said if text]


def _sizes(kept: Sequence[tuple[int, int]]) -> str:
    chains, draws = kept[0][0], sorted({n for _, n in kept})
    return f"{chains} × {draws[0]:,}" if len(draws) == 1 else f"{chains} × {draws[0]:,} to {draws[-1]:,}"
