"""The drift of a recipe and its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import GlyphRenderer, Legend, LegendItem
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame
from sgmcmc_lab.app.views.marks import MARKERS, round_up
from sgmcmc_lab.app.views.planes import SYMBOLS, density, shown_ranges
from sgmcmc_lab.app.views.recipes import RecipeView, recipe_of
from sgmcmc_lab.app.views.theme import DASHES, FINE, plot
from sgmcmc_lab.samplers.expressions import ZERO, Expression
from sgmcmc_lab.samplers.recipe.flow import on_points
from sgmcmc_lab.samplers.recipe.recipe import THETA, Layout, Recipe
from sgmcmc_lab.samplers.targets.base import Target

CUT = " cut"
"""Ends the name of the feed of the arrows that are cut."""
SIDE = 17
"""Arrows a side."""
POINTS = 241
"""Points of a curve."""
DOTS = 100
"""Chains of a lane that are shown."""
PATH = 80
"""Frames that the path of a lane's first chain goes back."""
LONGEST = 0.95
"""The longest arrow, in distances between two arrows; a longer one is cut to it and drawn faint."""
USUAL = 0.7
"""Where three quarters of the mass of the distribution are, arrows are no longer than this."""
KEPT = (0.25, LONGEST)
"""An edit keeps the scale while their length stays within these, so that a drift twice as strong looks it."""
HEAD, HALF_ANGLE = 0.3, 0.45
"""The longest head of an arrow, and the angle between its two halves and the shaft."""
CONTOURS = (0.5, 2.0, 4.5)
"""H less its least value on the contours: one, two and three standard deviations of a Gaussian."""
PARTS = {
    "dissipation": ("−D∇H", "#8c510a", "#d8b365"),
    "circulation": ("−Q∇H", "#01796f", "#5ab4ac"),
    "gamma": ("Γ", "#111827", "#f5f7fa"),
}
"""The label of each part, and its colour, light and dark: brown, teal and black are no lane's."""
LOWERED = "₁₂₃₄"


@dataclass(frozen=True)
class Arrows:
    """Vectors on the grid, in distances between two arrows."""

    x: Array
    y: Array

    @property
    def length(self) -> Array:
        return np.hypot(self.x, self.y)


def drift_terms(recipe: Recipe) -> dict[str, tuple[Expression, ...]]:
    """The actual parts of the drift, and the drift itself as ``sum``.

    A part that is left out is 0, and so are the parts of a component that is typed by hand.
    """
    none = (ZERO,) * len(recipe.layout.names)
    found = {
        "dissipation": none if recipe.dissipation_dropped else recipe.dissipation,
        "circulation": recipe.circulation,
        "gamma": none if recipe.gamma_dropped else recipe.gamma,
    }
    if recipe.edited:
        found = {
            name: tuple(e if own is None else ZERO for e, own in zip(part, recipe.edited, strict=True))
            for name, part in found.items()
        }
    return {"sum": recipe.drift, **found}


class Drift(RecipeView):
    """The drift of the first lane in its parts; of other lanes their sum."""

    key = "drift"
    title = "Drift"
    hint = "f and Γ; a click on a name shows or hides it"
    of_first = (*PARTS, *(name + CUT for name in PARTS))

    def build(self) -> Any:
        target = self.scene.target.sampled
        if len(self.recipes) > 1:
            self.hint = "f, and parts of the first; click a name to show or hide"
        self._layout = Layout(next(filter(None, self.scene.layouts), THETA), target.dim)
        self._recipes: list[Recipe | None] | None = None
        self._targets: list[Target] = []
        self._scale = 0.0
        names = self._layout.names
        self._legend: list[LegendItem] = []
        if len(names) == 1:
            p = self._build_line()
        elif len(names) == 2:
            p = self._build_plane()
        else:
            p = plot(self.scene.colours, "", "", (0, 1), (0, 1))
            p.axis.visible = p.grid.visible = False
            self.caption(p, y=40).text = (
                f"z = ({', '.join(SYMBOLS[name] for name in names)})\n"
                "has too many coordinates for arrows:\nthe drift is drawn for one or two."
            )
            return p
        for i in self._shown_lanes:
            dots = self.feed(f"dots {i}", "x", "y")
            p.scatter(
                "x",
                "y",
                source=dots,
                marker=MARKERS[i],
                size=7,
                fill_color=self.scene.colours.lanes[i],
                line_color=self.scene.colours.surface,
            )
        self._label = self.caption(p)
        self._add_legend(p)
        return p

    @property
    def _shown_lanes(self) -> list[int]:
        return [i for i, kind in enumerate(self.scene.layouts) if kind == self._layout.kind]

    @property
    def _curves(self) -> list[tuple[str, str, str, str]]:
        """The drawn parts, from below: the feed, its label, its colour and its dash."""
        dark, colours = self.scene.dark, self.scene.colours
        own = [(name, label, d if dark else light, "solid") for name, (label, light, d) in PARTS.items()]
        lanes = [
            (f"sum {i}", "f" if len(self.scene.lanes) == 1 else f"f{LOWERED[i]}", colours.lanes[i], DASHES[i])
            for i in self._shown_lanes
        ]
        return [*own, *lanes]

    def _add(self, renderers: list[GlyphRenderer], name: str, label: str) -> None:
        for renderer in renderers:
            renderer.visible = name == "gamma" or name.startswith("sum")
        self._legend.append(LegendItem(label=label, renderers=renderers))

    def _add_legend(self, p: Any) -> None:
        colours = self.scene.colours
        # f first, then its parts.
        items = [*self._legend[len(PARTS) :], *self._legend[: len(PARTS)]]
        p.add_layout(
            Legend(
                items=items, orientation="horizontal", nrows=-(-len(items) // 5), click_policy="hide", location="top_left",
                label_text_font_size="13px", label_text_color=colours.text, background_fill_color=colours.surface,
                inactive_fill_color=colours.surface, inactive_fill_alpha=0.65, border_line_color=None, padding=0, margin=0,
                spacing=6, glyph_width=16, glyph_height=16, label_standoff=3, label_height=16,
            ),
            "above",
        )  # fmt: skip

    def _density(self, points: Sequence[Array]) -> Array:
        """e^{−H}; 0 where it is infinite, at an end of the line."""
        found = density(self._layout, self.scene.target.sampled, points)
        return np.where(np.isfinite(found), found, 0.0)

    def _usual(self, sizes: Array, share: float) -> float:
        """The bound on sizes on the grid in this share of the mass of e^{−H}."""
        good = np.isfinite(sizes)
        order = np.argsort(sizes[good])
        mass = np.cumsum(self._weights[good][order])
        return float(sizes[good][order][np.searchsorted(mass, share * mass[-1])]) if len(mass) else 0.0

    # ------------------------------------------------------------ two coordinates: arrows

    def _build_plane(self) -> Any:
        target, colours = self.scene.target.sampled, self.scene.colours
        ranges = shown_ranges(self._layout, target)
        first, second = ("momentum r" if name == "r" else SYMBOLS[name] for name in self._layout.names)
        p = plot(colours, first, second, *ranges)
        p.grid.grid_line_color = None
        x, y = (np.linspace(a, b, 121) for a, b in ranges)
        with np.errstate(divide="ignore"):
            logs = np.log(self._density(np.meshgrid(x, y)))
        p.contour(
            x,
            y,
            np.maximum(logs - logs.max(), -99.0),
            levels=[*(-c for c in CONTOURS[::-1]), 1.0],
            fill_color=colours.density[1],
            fill_alpha=[0.12, 0.24, 0.36],
            line_color=colours.faint,
            line_alpha=0.5,
        )
        for i in self._shown_lanes:
            path = self.feed(f"path {i}", "x", "y", rollover=PATH)
            p.line(
                "x", "y", source=path, line_color=colours.lanes[i], line_width=FINE, line_alpha=0.6, line_dash=DASHES[i]
            )
        cells = [(b - a) / SIDE for a, b in ranges]
        centres = [a + cell * (np.arange(SIDE) + 0.5) for (a, _), cell in zip(ranges, cells, strict=True)]
        self._cells = cells
        self._grid = tuple(axis.ravel() for axis in np.meshgrid(*centres))
        self._weights = self._density(self._grid)
        first = f"sum {next(iter(self._shown_lanes), 0)}"
        for name, label, colour, _ in self._curves:
            # Equal arrows of two lanes are both visible: those of later lanes are thinner, and drawn over the first.
            width = 2.2 if name == first else 1.4
            # Segments without data have no sign in the legend: a line has one.
            nowhere = [np.nan, np.nan]
            renderers = [p.line(nowhere, nowhere, line_color=colour, line_width=width)]
            for kind, alpha in (("", 1.0), (CUT, 0.35)):
                source = self.feed(name + kind, "x0", "y0", "x1", "y1")
                renderers.append(
                    p.segment(
                        "x0", "y0", "x1", "y1", source=source, line_color=colour, line_alpha=alpha, line_width=width
                    )
                )
            self._add(renderers, name, label)
        return p

    def _arrows(self, values: dict[str, list[Array]]) -> Data:
        arrows = {name: Arrows(x / self._cells[0], y / self._cells[1]) for name, (x, y) in values.items()}
        usual = max((self._usual(arrow.length, 0.75) for arrow in arrows.values()), default=0.0)
        if usual > 0 and not KEPT[0] <= usual * self._scale <= KEPT[1]:
            self._scale = USUAL / usual
        out: Data = {}
        for name, arrow in arrows.items():
            length = arrow.length * self._scale
            # A line shorter than a hair is no arrow.
            out[name] = self._segments(arrow, (length > 0.02) & (length <= LONGEST))
            out[name + CUT] = self._segments(arrow, length > LONGEST)
        return out

    def _segments(self, arrows: Arrows, seen: NDArray[np.bool_]) -> tuple[Array, ...]:
        """The shafts and the two halves of the heads; drawn in the figure's units, so that they turn with its shape."""
        seen = seen & np.isfinite(arrows.length)
        length = arrows.length[seen] * self._scale
        drawn = np.minimum(length, LONGEST)
        factor = self._scale * drawn / length
        dx, dy = arrows.x[seen] * factor, arrows.y[seen] * factor
        # The middle of an arrow is at its point of the grid, so that neighbours do not meet.
        (x, y), (cx, cy) = (axis[seen] for axis in self._grid), self._cells
        tip_x, tip_y = x + cx * dx / 2, y + cy * dy / 2
        head = -np.minimum(0.45, HEAD / drawn)
        starts_x, starts_y = [x - cx * dx / 2], [y - cy * dy / 2]
        for angle in (-HALF_ANGLE, HALF_ANGLE):
            c, s = head * np.cos(angle), head * np.sin(angle)
            starts_x.append(tip_x + cx * (c * dx - s * dy))
            starts_y.append(tip_y + cy * (s * dx + c * dy))
        return (
            np.concatenate(starts_x),
            np.concatenate(starts_y),
            np.tile(tip_x, 3),
            np.tile(tip_y, 3),
        )

    # ------------------------------------------------------------ one coordinate: curves

    def _build_line(self) -> Any:
        target, colours = self.scene.target.sampled, self.scene.colours
        ((low, high),) = shown_ranges(self._layout, target)
        p = plot(colours, "θ", "drift", (low, high), (-1, 1))
        x = np.linspace(low, high, POINTS)
        self._grid = (x,)
        self._weights = self._density(self._grid)
        # The distribution has the lower half of the figure, whatever the range of the drift.
        law = self.feed("density", "x", "low", "high")
        p.varea(x="x", y1="low", y2="high", source=law, fill_color=colours.density[1], fill_alpha=0.35)
        p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
        for name, label, colour, dash in self._curves:
            source = self.feed(name, "x", "y")
            width = 2.5 if name.startswith("sum") else 2
            self._add(
                [p.line("x", "y", source=source, line_color=colour, line_width=width, line_dash=dash)], name, label
            )
        self.moving_range("y", p.y_range)
        self._end = 0.0
        return p

    def _lines(self, values: dict[str, list[Array]]) -> Data:
        out: Data = {}
        x = self._grid[0]
        highest = 0.0
        for name, (y,) in values.items():
            good = np.isfinite(y) & (np.abs(y) < 1e12)
            out[name] = (x[good], y[good])
            highest = max(highest, self._usual(np.abs(y), 0.98))
        if highest > self._end or highest < self._end / 4:
            self._end = round_up(1.1 * highest) if highest > 0 else 1.0
            out["y"] = (np.array([-self._end, self._end]),)
            out["density"] = (x, np.full(POINTS, -self._end), self._end * (self._weights / self._weights.max() - 1))
        return out

    # ------------------------------------------------------------ frames

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        if len(self._layout.names) > 2:
            return {}
        out: Data = {}
        recipes = [self._fitting(lane) if i in self._shown_lanes else None for i, lane in enumerate(lanes)]
        targets = [lane.run.sampled for lane in lanes]
        # An edit that changes nothing leaves the very objects, which are cached: the rest of a frame is the dots.
        before = [*(self._recipes or ()), *self._targets]
        if self._recipes is None or any(a is not b for a, b in zip([*recipes, *targets], before, strict=True)):
            self._recipes, self._targets = recipes, targets
            out = self._pictures(recipes, targets)
        for i in self._shown_lanes:
            if recipes[i] is not None:
                x, y = out[f"dots {i}"] = self._dots(i, lanes[i])
                if f"path {i}" in self.feeds:
                    out[f"path {i}"] = x[:1], y[:1]
        return out

    def _fitting(self, lane: LaneFrame) -> Recipe | None:
        recipe = recipe_of(lane)
        return recipe if recipe is not None and recipe.layout == self._layout else None

    def _pictures(self, recipes: Sequence[Recipe | None], targets: Sequence[Target]) -> Data:
        n = len(self._layout.names)
        values: dict[str, list[Array]] = {}
        first = True
        for i, (recipe, target) in enumerate(zip(recipes, targets, strict=True)):
            if recipe is None:
                continue
            found = drift_terms(recipe) if first else {"sum": recipe.drift}
            flat = on_points(recipe, target, [e for part in found.values() for e in part], self._grid)
            for k, name in enumerate(found):
                values[f"sum {i}" if name == "sum" else name] = flat[k * n : (k + 1) * n]
            first = False
        out = self._lines(values) if n == 1 else self._arrows(values)
        empty = {
            name + kind: (np.zeros(0),) * len(self.feeds[name].columns)
            for name, *_ in self._curves
            for kind in ("", CUT)
            if name + kind in self.feeds and name + kind not in out
        }
        self._sums = {name: columns for name, columns in out.items() if name.startswith("sum")}
        return {**out, **empty}

    def _dots(self, i: int, lane: LaneFrame) -> tuple[Array, Array]:
        run = lane.run
        z = np.concatenate([run.coordinates[:DOTS], run.momentum[:DOTS]], axis=1)[:, : len(self._layout.names)]
        z = z[np.isfinite(z).all(axis=1) & (np.abs(z) < 1e12).all(axis=1)]
        if z.shape[1] == 2:
            return z[:, 0], z[:, 1]
        x, y = self._sums[f"sum {i}"]
        # On its curve a dot is where it is pushed, and how hard.
        return (z[:, 0], np.interp(z[:, 0], x, y)) if len(x) else (np.zeros(0),) * 2

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The differences of the process from its D and Q: parts that were left out or typed by hand."""
        if len(self._layout.names) > 2:
            return {}
        lines = []
        for name, lane in zip(self.scene.lanes, lanes, strict=True):
            recipe = self._fitting(lane)
            if recipe is None:
                continue
            said = []
            if recipe.gamma_dropped and any(not e.is_zero for e in recipe.gamma):
                said.append("Γ ≠ 0 is left out")
            if recipe.dissipation_dropped:
                said.append("−D∇H is left out")
            if any(own is not None for own in recipe.edited):
                typed = [
                    SYMBOLS[n] for n, own in zip(recipe.layout.names, recipe.edited, strict=True) if own is not None
                ]
                said.append(f"f of {', '.join(typed)} is typed by hand")
            if said:
                lines.append((f"{name}: " if len(lanes) > 1 else "") + "; ".join(said))
        return {self._label.id: "\n".join(lines)}
