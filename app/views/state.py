"""The state space: the exact density, the chains on it, and the gradient that moves them."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from bokeh.models import ColumnDataSource, LinearColorMapper
from bokeh.palettes import interp_palette
from numpy.typing import NDArray

from sgmcmc_lab.app.views.adaptation import covariance
from sgmcmc_lab.app.views.base import CLICK, Data, Frame, LaneFrame, Playing, View
from sgmcmc_lab.app.views.drags import OF_A_MOUSE, take_drags
from sgmcmc_lab.app.views.marks import MARKERS, SIGNS, diverged, share
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.steps import add_arrows, longer, rows
from sgmcmc_lab.app.views.theme import FINE, UNEVEN, comparable, even_scales, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.live.description import smooth
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import MANIFOLD, SIMPLEX, Array, Target

PATH = 400
"""Points of a path that stay visible."""
SHOWN_CHAINS = 4
GRID = 160
"""Cells a side of the density's picture."""
BEYOND = 0.1
"""The density's picture goes beyond each end of an axis by this share of it: with equal scales the window is wider.

A Gaussian has a colour up to 4 standard deviations, and an axis ends at 3.6.
"""
LEVELS = (0.5, 0.9, 0.99)
"""Contours enclose these shares of the exact mass."""
LONGEST = 0.2
"""The longest arrow of −∇U, as a share of the figure: at the median slope under the target, and above it."""
NOTHING = 0.002
"""The shortest visible arrow, as a share of the figure."""
LINES = tuple(0.88 - 0.085 * k for k in range(9))
"""How high the arrows of a step's parts are in a picture of one coordinate, as shares of it."""
TINY = np.finfo(float).tiny
SLOPES = 41
"""Points a side at which the slope of U is looked at."""
OUTLINE = 72
"""Points of an ellipse."""
CLOUD = 600
"""Exact draws in the background where the density has no picture."""


class State(View):
    """The positions of the chains. Paths join draws; where a frame makes many steps, it draws some of them."""

    key = "state"
    title = "State space"
    help = (
        "Each dot is a chain, drawn on the target's density; its last draws follow it. "
        "The dark arrow of the first chain is the gradient −∇U, and the coloured one is the estimate that the sampler uses. A click starts all chains at that place."
    )
    hint = "arrows: −∇U; colour: its estimate"
    of_first = ("full", "used")
    _margin = 0.0

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        # A manifold has pictures of its own.
        return TARGETS[experiment.target.key].support != MANIFOLD

    def build(self) -> Any:
        target = self.scene.target
        if target.support == SIMPLEX or target.dim > 2:
            return self._build_pair()
        return self._build_plane() if target.dim == 2 else self._build_line()

    def _build_plane(self) -> Any:
        target, colours = self.scene.target, self.scene.colours
        (x0, x1), (y0, y1) = (column.axis for column in target.columns)
        first, second = (column.name for column in target.columns)
        p = plot(colours, first, second, (x0, x1), (y0, y1))
        if comparable((x0, x1), (y0, y1)):
            even_scales(p, (x0, x1), (y0, y1))
            self._margin = UNEVEN * max(x1 - x0, y1 - y0)
        x, y, density, picture = _picture(target)
        # The square root lets the tails be seen.
        mapper = LinearColorMapper(
            palette=interp_palette(list(colours.density), 64), low=0.0, high=float(picture.max())
        )
        (left, right), (bottom, top) = map(_wider, ((x0, x1), (y0, y1)))
        p.image(
            [picture],
            x=left,
            y=bottom,
            dw=right - left,
            dh=top - bottom,
            color_mapper=mapper,
            level="image",
        )
        p.contour(x, y, density, levels=_levels(density), line_color=colours.faint, line_alpha=0.8, line_width=1)
        p.grid.grid_line_color = None
        self._span = np.array([x1 - x0, y1 - y0])
        self._coordinates: tuple[int, ...] = (0, 1)
        self._scales = tuple(Scale(False, column.axis) for column in target.columns)
        self._add_paths(p)
        self._add_arrows(p)
        self._touches(p, self._add_handles(p))
        return p

    def _build_line(self) -> Any:
        target, colours = self.scene.target, self.scene.colours
        column = target.columns[0]
        scale = Scale.of(column)
        low, high = scale.range
        positions = np.linspace(low, high, 400)
        density = self._density_on(scale, positions)
        top = float(density.max()) * 1.15
        p = plot(colours, scale.label(column.name), "density", (low, high), (-0.12 * top, top))
        scale.apply(p.xaxis)
        p.varea(positions, 0, density, fill_color=colours.density[1], fill_alpha=0.35)
        p.line(positions, density, line_color=colours.exact, line_width=1.5)
        self._span = np.array([high - low, top])
        self._coordinates = (0,)
        self._scales = (scale,)
        self._add_paths(p)
        self._add_arrows(p)
        self._touches(p)
        return p

    def _build_pair(self) -> Any:
        """Two of many coordinates, the chosen one and the next, with exact draws behind them."""
        self.hint = "two components; grey: exact draws"
        target, colours = self.scene.target, self.scene.colours
        i = self.scene.coordinate
        j = (i + 1) % target.n_values
        self._coordinates = (i, j)
        self._scales = (Scale.of(target.columns[i]), Scale.of(target.columns[j]))
        first, second = (s.label(target.columns[k].name) for k, s in zip((i, j), self._scales, strict=True))
        p = plot(colours, first, second, *(s.range for s in self._scales))
        self._span = np.array([high - low for low, high in (s.range for s in self._scales)])
        for scale, axis in zip(self._scales, (p.xaxis, p.yaxis), strict=True):
            scale.apply(axis)
        cloud = self.feed("cloud", "x", "y")
        p.scatter("x", "y", source=cloud, size=3, color=colours.faint, alpha=0.45, line_color=None)
        self._cloud_sent = False
        self._add_paths(p)
        self._touches(p)
        return p

    def _add_handles(self, p: Any) -> ColumnDataSource | None:
        """The draggable parts of the target, as crosses: of rings it would not be known whether they are contours."""
        handles, colours = self.scene.target.handles, self.scene.colours
        if not len(handles):
            return None
        source = ColumnDataSource({"x": handles[:, 0], "y": handles[:, 1]})
        for width, colour in ((7, colours.surface), (3, colours.text)):
            p.scatter("x", "y", source=source, size=20, marker="cross", line_color=colour, line_width=width)
        return source

    def _touches(self, p: Any, handles: ColumnDataSource | None = None) -> None:
        target = self.scene.target
        # For other columns the θ behind a point is unknown.
        if target.of_coordinates or target.support == SIMPLEX:
            self.take_touches(p)
        if target.of_coordinates and target.support != SIMPLEX:
            take_drags(self, p, handles, flat=target.dim == 1)
        if handles is not None:
            self.click += OF_A_MOUSE.format(", drag a cross: move that well")

    def live_data(self) -> dict[str, Any]:
        return {
            "coordinates": list(self._coordinates),
            "scales": [{"log": scale.log, "range": list(scale.range)} for scale in self._scales],
            "span": self._span.tolist(),
            "curve": smooth(self._curve[1]) if len(self._coordinates) == 1 else None,
            "ends": self._curve[0][[0, -1]].tolist() if len(self._coordinates) == 1 else None,
            "usual": getattr(self, "_usual", 0.0),
            "arrows": "full" in self.feeds,
            "cloud": [part.tolist() for part in self._cloud()] if "cloud" in self.feeds else None,
        }

    def _cloud(self) -> tuple[Array, ...]:
        """The positions of exact draws, to five digits: no picture shows more, and a page's file has few of them."""
        found = self._positions(self.scene.target.sample(0, CLOUD))
        return tuple(np.array([float(f"{x:.5g}") for x in part]) for part in found)

    def live_tap(self) -> dict[str, Any] | None:
        if CLICK not in self.gestures or self.scene.target.support == SIMPLEX:
            return None
        tap = {"figure": self.figure.id, "kind": "axes", "arrow": self.thrown_along, "flat": len(self._scales) == 1}
        edges = [list(edges) for edges in self._edges]
        return tap | {name: self.live_data()[name] for name in ("coordinates", "scales")} | {"edges": edges}

    @property
    def _edges(self) -> list[tuple[float, float]]:
        """The positions between which a click is a start: equal scales leave margins beside the axes' ranges."""
        return [(low - self._margin, high + self._margin) for low, high in (scale.range for scale in self._scales)]

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        target, (first, *second) = self.scene.target, self._coordinates
        if len(point) != 2 or not all(a <= x <= b for x, (a, b) in zip(point, self._edges, strict=False)):
            return None
        values = [scale.back(x) for scale, x in zip(self._scales, point, strict=False)]
        start = before.copy()
        if target.support != SIMPLEX:
            start[[first, *second]] = values
            return start
        # The shares of the other components keep their proportions, and Σθ is what it was.
        rest = np.delete(before, self._coordinates)
        left = 1 - sum(values)
        if len(rest) and left <= 0:
            raise SpecError("start", values, "allowed are two shares that are together less than 1")
        start[list(self._coordinates)] = values
        start[[k for k in range(target.dim) if k not in self._coordinates]] = rest / max(rest.sum(), TINY) * left
        return np.asarray(start / start.sum() * before.sum())

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """In one unit of time it takes a chain as far as the drag went."""
        if list(point) == list(end):
            return None
        momentum = np.zeros_like(start)
        for k, scale, a, b in zip(self._coordinates, self._scales, point, end, strict=False):
            momentum[k] = scale.between(a, b)
        return momentum

    def _density_on(self, scale: Scale, positions: Array) -> Array:
        """The exact density per unit of the axis."""
        x = 10.0**positions if scale.log else positions
        density = np.exp(self.scene.target.log_density(x[:, None]))
        return density * x * np.log(10) if scale.log else density

    def _add_paths(self, p: Any) -> None:
        colours = self.scene.colours
        self._label = self.caption_above(p, self.scene.noted + 1 + bool(self.scene.adapts))
        for i, _ in enumerate(self.scene.lanes):
            path = self.feed(f"path {i}", "x", "y", rollover=PATH)
            if self.scene.target.dim == 1:
                p.scatter(
                    "x", "y", source=path, marker="dash", angle=np.pi / 2, size=11, color=colours.lanes[i], alpha=0.35
                )
            else:
                p.line(
                    "x",
                    "y",
                    source=path,
                    line_color=colours.lanes[i],
                    line_width=FINE,
                    line_alpha=0.65 if len(self.scene.lanes) == 1 else 0.4,
                    line_join="bevel",
                )
            heads = self.feed(f"heads {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=heads,
                size=11,
                marker=("circle", "square", "triangle", "diamond")[i],
                fill_color=colours.lanes[i],
                line_color=colours.surface,
                line_width=1.5,
            )
        self._sent = [(0, 0)] * len(self.scene.lanes)
        for i, _ in enumerate(self.scene.lanes if self.scene.diverges else ()):
            found: ColumnDataSource = self.feed(f"diverged {i}", "x", "y")
            p.scatter(
                "x", "y", source=found, size=6, marker=MARKERS[i], fill_color=colours.bad, line_color=colours.surface
            )
        self._ellipses = False
        # A live page has no such ellipse.
        if self.scene.adapts and not self.scene.live and self.scene.target.of_coordinates:
            self._ellipses = not any(scale.log for scale in self._scales)
        for i, _ in enumerate(self.scene.lanes if self._ellipses else ()):
            mass: ColumnDataSource = self.feed(f"mass {i}", "x", "y")
            p.line("x", "y", source=mass, line_color=colours.lanes[i], line_width=2, line_dash="dashed")
        self._scale = 1.0
        here = self.feed("here", "x", "y")
        p.scatter("x", "y", source=here, size=15, fill_color=None, line_color=colours.text, line_width=2)
        add_arrows(self, p)

    def _add_arrows(self, p: Any) -> None:
        """−∇U at the first lane's first chain: exact, and as the last step used it."""
        colours = self.scene.colours
        self._usual = self._usual_slope()
        self._flat = False
        if len(self.scene.lanes) > 1:
            self.hint = "arrows of the first: −∇U; colour: its estimate"
        for name, colour, width in (("full", colours.exact, 3), ("used", colours.lanes[0], 2)):
            source: ColumnDataSource = self.feed(name, "x0", "y0", "x1", "y1")
            p.segment("x0", "y0", "x1", "y1", source=source, line_color=colour, line_width=width, line_cap="round")
            p.scatter("x1", "y1", source=source, size=7, marker="circle", color=colour)

    def _usual_slope(self) -> float:
        """The median of ∇U under the target, in figures a unit of its length, along its longer coordinate.

        0 on a log axis, where slopes differ by hundreds of powers of ten and none is usual.
        """
        target = self.scene.target
        if any(scale.log for scale in self._scales):
            return 0.0
        axes = [np.linspace(*scale.range, SLOPES) for scale in self._scales]
        theta = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, target.dim)
        with np.errstate(all="ignore"):
            weights = np.exp(target.log_density(theta))
            slopes = (np.abs(target.gradient_at(theta)) / self._span[: target.dim]).max(axis=1)
        good = np.isfinite(weights) & np.isfinite(slopes)
        order = np.argsort(slopes[good])
        mass = np.cumsum(weights[good][order])
        return float(slopes[good][order][np.searchsorted(mass, mass[-1] / 2)]) if len(mass) else 0.0

    def compute(self, lanes: Frame) -> Data:
        out = self._step(lanes.playing)
        if "cloud" in self.feeds and not self._cloud_sent:
            self._cloud_sent = True
            out["cloud"] = self._cloud()
        chains = SHOWN_CHAINS if len(lanes) == 1 else 1
        for i, lane in enumerate(lanes):
            # Particles are what they are together.
            together = lane.run.interacting
            heads = lane.run.statistics.tail(1)[:, :chains]
            if together or not lane.run.statistics.n_steps:
                heads = lane.run.position[: None if together else chains]
            out[f"heads {i}"] = self._positions(heads.reshape(-1, heads.shape[-1]))
            if len(lane.fresh):
                x, y = self._positions(lane.fresh[:, 0])
                out[f"path {i}"] = (
                    (x, np.full_like(x, -0.06 * self._span[1])) if len(self._coordinates) == 1 else (x, y)
                )
            if self.scene.diverges:
                out.update(self._diverged(i, lane))
            if self._ellipses:
                out[f"mass {i}"] = self._ellipse(lane)
        if "full" in self.feeds:
            out.update(self._arrows(lanes[0], shown=lanes.playing is None))
        return out

    def _diverged(self, i: int, lane: LaneFrame) -> Data:
        """Where divergent transitions ended, if there are more than in the frame before, or the count began again."""
        run = lane.run
        now = run.counted_from, int(run.counts[jit.DIVERGED])
        if now == self._sent[i]:
            return {}
        self._sent[i] = now
        x, y = self._positions(run.divergent.theta)
        good = np.isfinite(x) & np.isfinite(y)
        return {f"diverged {i}": (x[good], y[good])}

    def _ellipse(self, lane: LaneFrame) -> tuple[Array, Array]:
        """One standard deviation by M⁻¹ around the first chain; on a line its two ends, at the height of the chain."""
        found = None if lane.run.divergence is not None else covariance(lane.run)
        if found is None:
            return np.zeros(0), np.zeros(0)
        shown = list(self._coordinates)
        root = np.linalg.cholesky(found[np.ix_(shown, shown)])
        here = [float(x[0]) for x in self._positions(lane.run.position[:1])]
        if len(shown) == 1:
            return here[0] + root[0, 0] * np.array([-1.0, 1.0]), np.full(2, here[1])
        turns = np.linspace(0, 2 * np.pi, OUTLINE + 1)
        x, y = np.array(here)[:, None] + root @ np.array([np.cos(turns), np.sin(turns)])
        return x, y

    def _masses(self, lanes: Frame) -> str:
        """The standard deviations of the ellipses along the figure's axes."""
        said = []
        for sign, lane in zip(SIGNS, lanes, strict=False):
            found = covariance(lane.run)
            if found is not None:
                each = " × ".join(f"{np.sqrt(found[k, k]):.3g}" for k in self._coordinates)
                said.append(f"{sign} {each}" if len(lanes) > 1 else each)
        return f"dashed: one standard deviation by M⁻¹, {', '.join(said)}" if said else ""

    def _step(self, playing: Playing | None) -> Data:
        """The parts of a step that is taken apart, and where the chain is before it."""
        line, scale = len(self._coordinates) == 1, longer(playing, self._place, self._span[: len(self._coordinates)])
        heights = [self._span[1] * height for height in LINES] if line else ()
        here = playing.step.start[None, : playing.step.dim] if playing else np.zeros((0, self.scene.target.dim))
        self._scale = scale
        return {
            "parts": rows(playing, self.scene.parts, self._place, scale, heights, ends=self._scales[0].range),
            "here": self._positions(here),
        }

    def _place(self, theta: Array) -> Array:
        """Where θ (n, dim) is along the figure's coordinates."""
        return np.column_stack(self._positions(theta)[: len(self._coordinates)])

    def captions(self, lanes: Frame) -> dict[str, str]:
        said = [notes(lanes)]
        if lanes.playing is not None and self._scale > 1:
            said.append(f"arrows {self._scale:g} times as long")
        if lanes.playing is None and "full" in self.feeds and self._flat:
            said.append("−∇U is 0 here: its arrow has no length")
        if self._ellipses:
            said.append(self._masses(lanes))
        return {self._label.id: "\n".join(filter(None, said))}

    def words(self, lanes: Sequence[LaneFrame]) -> str:
        return self.means(lanes, self._coordinates)

    def _positions(self, theta: Array) -> tuple[Array, Array]:
        """Where θ (n, dim) is in the figure."""
        if not len(theta):
            return np.zeros(0), np.zeros(0)
        values = self.scene.target.values(theta)
        x = self._scales[0].forward(values[:, self._coordinates[0]])
        if len(self._coordinates) == 1:
            return x, np.interp(x, *self._curve)
        return x, self._scales[1].forward(values[:, self._coordinates[1]])

    @property
    def _curve(self) -> tuple[Array, Array]:
        if not hasattr(self, "_curve_points"):
            low, high = self._scales[0].range
            positions = np.linspace(low, high, 400)
            self._curve_points = (positions, self._density_on(self._scales[0], positions))
        return self._curve_points

    def _arrows(self, lane: LaneFrame, shown: bool) -> Data:
        age, noise = lane.run.sampler.gradient_age, lane.run.gradient.noise()
        tail = lane.run.statistics.tail(2)
        if not shown or age is None or len(tail) < 2 or lane.run.divergence is not None:
            return {name: (np.zeros(0),) * 4 for name in ("full", "used")}
        # An estimate belongs to where it was made; without one the arrow is where the chain is now.
        estimated = noise.variance > 0 or noise.batch_size > 0
        theta = tail[-1 - age if estimated else -1, :1]
        start = np.array([x[0] for x in self._positions(theta)])
        full = -self.scene.target.gradient_at(theta)[0]
        used = -lane.run.last_gradient[0] if estimated else full
        # Both have one scale, so that they can be compared.
        longest = max(np.max(np.abs(arrow) / self._span[: len(arrow)]) for arrow in (full, used))
        scale = LONGEST / max(longest, self._usual, TINY)
        self._flat = bool(scale * longest < NOTHING)
        out: Data = {}
        for name, arrow in (("full", full), ("used", used)):
            end = start.copy()
            end[: len(arrow)] += scale * arrow
            out[name] = tuple(np.array([v]) for v in (*start, *end))
        return out


def notes(lanes: Sequence[LaneFrame]) -> str:
    """Facts that a picture does not show: refused proposals, divergent transitions, noise that could not be corrected
    for, and trajectories that turned back. A line a lane.
    """
    lines = []
    for sign, lane in zip(SIGNS, lanes, strict=False):
        who = f"{sign} " if len(lanes) > 1 else ""
        clipped = lane.run.share(jit.CLIPPED)
        accepts = bool(getattr(lane.run.sampler, "accept", False)) and lane.run.steps > 0
        said = [f"accepts {lane.run.share(jit.ACCEPTED):.0%}"] if accepts else []
        if said := [*said, *filter(None, [diverged(lane.run)])]:
            lines.append(f"{who}{'; '.join(said)}")
        if clipped > 0:
            # On a manifold V is what recipes call B̂, and of a minibatch's V only some directions may be too large.
            support = lane.run.target.support
            what = "â" if support == SIMPLEX else "injected noise"
            why = {MANIFOLD: "Vε² > 2Cε", SIMPLEX: "it was below 0"}.get(support, "B̂ is too large")
            lines.append(f"{who}{what} set to 0 in {share(clipped)} of steps: {why}")
        if (turned := lane.run.share(jit.TURNED)) > 0:
            lines.append(f"{who}{share(turned)} of trajectories turn back: an implicit step has no solution")
    return "\n".join(lines)


_PICTURES: WeakKeyDictionary[Target, tuple[Array, Array, Array, NDArray[np.float32]]] = WeakKeyDictionary()


def _picture(target: Target) -> tuple[Array, Array, Array, NDArray[np.float32]]:
    """The grid of each axis, the density on it, and the square root of the density on wider axes, which is drawn.

    None may be changed. Many pages share a target, and this with it.
    """
    found = _PICTURES.get(target)
    if found is None:
        x, y = (np.linspace(*column.axis, GRID) for column in target.columns)
        cells = round(GRID * (1 + 2 * BEYOND))
        wider = [np.linspace(*_wider(column.axis), cells) for column in target.columns]
        density, drawn = (np.exp(target.log_density(np.stack(np.meshgrid(*axes), axis=-1))) for axes in ((x, y), wider))
        found = _PICTURES[target] = x, y, density, np.sqrt(drawn).astype(np.float32)
        for array in found:
            array.flags.writeable = False
    return found


def _wider(axis: tuple[float, float]) -> tuple[float, float]:
    low, high = axis
    return low - BEYOND * (high - low), high + BEYOND * (high - low)


def _levels(density: Array) -> list[float]:
    """The heights whose superlevel sets hold the shares LEVELS of the mass, ascending and distinct."""
    heights = np.sort(density.ravel())[::-1]
    mass = np.cumsum(heights) / heights.sum()
    return sorted({float(heights[np.searchsorted(mass, share)]) for share in LEVELS})
