"""The base of the views of functions of z: the process of a lane, planes with live images, and a text below them."""

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from bokeh.events import Reset
from bokeh.layouts import column, row
from bokeh.models import BasicTicker, ColumnDataSource, CustomJS, Div, LinearColorMapper
from bokeh.palettes import interp_palette

from sgmcmc_lab.app.views.base import LINE, Array, Data, Feed, LaneFrame, Scene, View
from sgmcmc_lab.app.views.marks import SIGNS
from sgmcmc_lab.app.views.recipes import recipe_of
from sgmcmc_lab.app.views.theme import LARGE, Theme, comparable, even_scales, plot
from sgmcmc_lab.samplers.compile.jit import Noise
from sgmcmc_lab.samplers.expressions import ZERO
from sgmcmc_lab.samplers.recipe.flow import SHOWN_MOMENTUM, Flow, effective
from sgmcmc_lab.samplers.recipe.recipe import MAX_DIM, Layout, Recipe
from sgmcmc_lab.samplers.targets.base import Target, subscript

SHARES = (0.5, 0.9, 0.99)
"""Contours enclose these shares of the mass of e^{−H}."""
SHARP = 120
"""Points a side that the contours are drawn from."""
CELLS, CELLS_WRONG, CELLS_LINE = 120, 96, 400
"""Cells a side of the grid in two dimensions, fewer where the drift is not the recipe's own, and cells in one."""
SYMBOLS = {"theta": "θ", "r": "r", "xi": "ξ"} | {
    f"{name}{i}": f"{symbol}{subscript(i)}"
    for name, symbol in (("theta", "θ"), ("r", "r"))
    for i in range(1, MAX_DIM + 1)
}
FAILURES = (ValueError, RuntimeError, ArithmeticError)
"""The exceptions of a grid for a recipe without an answer: no stationary distribution, D not positive semidefinite, no
convergence."""


UNKNOWN = "The noise of a minibatch depends on θ and on the data, so its contribution to D is not predicted."


class Process(NamedTuple):
    """The actual process of a lane's chain; views start their work again where it changes."""

    recipe: Recipe
    """As it is typed."""
    step_size: float
    excess: float | None
    """By how much the variance of the gradient's noise is above B̂; None where that is no number."""
    target: Target

    @property
    def effective(self) -> Recipe:
        """With what the gradient's noise adds to D. Raises ValueError where that is not known."""
        if self.excess is None:
            raise ValueError(UNKNOWN)
        return _effective(self.recipe, self.step_size, self.excess)

    @property
    def flow(self) -> Flow:
        """The process on the grid. Raises ValueError where z has too many coordinates for one, or jumps."""
        n = len(self.recipe.layout.names)
        if n > 2:
            raise ValueError(f"z has {n} coordinates; a grid is made for one or two.")
        if self.recipe.refresh and self.recipe.layout.momenta:
            raise ValueError(
                f"The momentum is redrawn {self.recipe.refresh:g} times in a unit of time: the grid has no jumps."
            )
        flow = Flow(self.effective, self.target, CELLS_LINE if n == 1 else CELLS)
        # The distribution of another drift has to be solved for, with pivots.
        return flow if flow.right or n == 1 else replace(flow, cells=CELLS_WRONG)

    @property
    def without_curl(self) -> "Process":
        """The same with Q = 0."""
        n = len(self.recipe.layout.names)
        return self._replace(recipe=replace(self.recipe, curl=((ZERO,) * n,) * n, typed=()))


@lru_cache(maxsize=64)
def _effective(recipe: Recipe, step_size: float, excess: float) -> Recipe:
    return effective(recipe, step_size, excess)


def excess(noise: Noise) -> float | None:
    """By how much the variance of the gradient's noise is above B̂: 0 where B̂ is its estimate, None of other batches."""
    if noise.batch_size:
        return 0.0 if noise.estimated else None
    return float(noise.variance - noise.correction)


def process_of(lane: LaneFrame) -> Process | None:
    """The process of a lane, None for other samplers than recipes."""
    recipe = recipe_of(lane)
    if recipe is None:
        return None
    run = lane.run
    return Process(recipe, run.sampler.time_per_step, excess(run.gradient.noise()), run.sampled)


def shown_ranges(layout: Layout, target: Target) -> list[tuple[float, float]]:
    """The picture of the first one or two coordinates of z."""
    # Where columns say nothing of coordinates, those are of scale 1.
    own = (
        [c.axis for c in target.columns[: target.dim]] if target.of_coordinates else [(-SHOWN_MOMENTUM, SHOWN_MOMENTUM)]
    )
    found = own + [(-SHOWN_MOMENTUM, SHOWN_MOMENTUM)] * len(layout.momenta)
    return [(float(a), float(b)) for a, b in found[:2]]


def density(layout: Layout, target: Target, points: Sequence[Array], friction: float = 0.0) -> Array:
    """e^{−H}/Z at points, one array for each coordinate of z."""
    d = layout.dim
    with np.errstate(all="ignore"):
        log = target.log_density(np.stack(np.broadcast_arrays(*points[:d]), axis=-1))
    for k, label in enumerate(layout.names[d:], start=d):
        mean, precision = (friction, d) if label in layout.thermostats else (0.0, 1)
        log = log - precision * (points[k] - mean) ** 2 / 2 + np.log(precision / (2 * np.pi)) / 2
    return np.exp(log)


def heights(values: Array) -> list[float]:
    """The heights whose superlevel sets hold SHARES of the mass, ascending and distinct."""
    order = np.sort(values.ravel())[::-1]
    mass = np.cumsum(order) / order.sum()
    return sorted({float(order[np.searchsorted(mass, share)]) for share in SHARES})


def signed(colours: Theme) -> list[str]:
    """Colours of numbers from −1 to 1: the first lane's below 0, the second's above."""
    return [
        *interp_palette([colours.lanes[0], colours.surface], 32),
        *interp_palette([colours.surface, colours.lanes[1]], 32),
    ]


class LiveImage:
    """An image whose values frames send.

    A feed holds plain numbers, an image a matrix: the page copies the one into the other.
    """

    def __init__(
        self,
        view: View,
        figure: Any,
        name: str,
        mapper: LinearColorMapper,
        cells: tuple[int, int],
        x: tuple[float, float],
        y: tuple[float, float],
        **options: Any,
    ):
        self.name, self.cells = name, cells
        self._page = np.zeros(cells[0] * cells[1])
        self._shown = shown = ColumnDataSource({"image": [np.zeros(cells[::-1], dtype=np.float32)]})
        numbers = ColumnDataSource({"value": np.zeros(0)})
        write = CustomJS(
            args={"numbers": numbers, "shown": shown},
            code="""
            const image = shown.data.image[0]
            if (numbers.data.value.length === image.length) { image.set(numbers.data.value); shown.change.emit() }
        """,
        )
        numbers.js_on_change("data", write)
        # A model that nothing on the page refers to would not be sent; there is no button for this event.
        figure.js_on_event(Reset, write)
        view.feeds[name] = Feed(numbers, ("value",))
        view.fills.append(self._fill)
        self.renderer = figure.image(
            image="image", source=shown, x=x[0], y=y[0], dw=x[1] - x[0], dh=y[1] - y[0], color_mapper=mapper, **options
        )

    def data(self, values: Array) -> Data:
        """The frame's data for values (first coordinate, second coordinate); nothing where the page has them."""
        flat = np.ascontiguousarray(values.T, dtype=float).ravel()
        if np.array_equal(flat, self._page):
            return {}
        self._page = flat
        return {self.name: (flat,)}

    def _fill(self) -> None:
        self._shown.data = {"image": [self._page.reshape(self.cells[::-1]).astype(np.float32)]}


class Plane:
    """A figure over the first one or two coordinates of z, with the contours of e^{−H} where there are two."""

    def __init__(self, view: View, kind: str, y_label: str = "", title: str = ""):
        scene = view.scene
        colours, target = scene.colours, scene.target.sampled
        self.layout = layout = Layout(kind, target.dim)
        self.ndim = min(2, len(layout.names))
        self.ranges = shown_ranges(layout, target)
        self.x, self.y = self.ranges[0], self.ranges[1] if self.ndim == 2 else (0.0, 1.0)
        labels = [SYMBOLS[n] for n in layout.names[:2]]
        self.figure = p = plot(
            colours, labels[0], labels[1] if self.ndim == 2 else y_label, self.x, self.y, title=title
        )
        quiet_title(p, scene)
        p.min_width = 140
        p.yaxis.ticker = BasicTicker(desired_num_ticks=4, num_minor_ticks=0)
        if self.ndim == 2:
            p.grid.grid_line_color = None
        # A momentum has another unit than a place.
        if self.ndim == 2 and layout.dim == 2 and comparable(self.x, self.y):
            even_scales(p, self.x, self.y)

    def contours(self, scene: Scene) -> None:
        """Draw e^{−H} over what is there."""
        axes = [np.linspace(a, b, SHARP + 1) for a, b in self.ranges]
        middle = [(axis[1:] + axis[:-1]) / 2 for axis in axes]
        values = density(self.layout, scene.target.sampled, self.points(np.meshgrid(*middle, indexing="ij")))
        if self.ndim == 2:
            self.figure.contour(
                *middle, values.T, levels=heights(values), line_color=scene.colours.text, line_alpha=0.55, line_width=1
            )

    def points(self, shown: Sequence[Array], friction: float = 0.0, spread: float = 0.0) -> list[Array]:
        """All coordinates of z where the first ones are given: the others are ``spread`` sd above their means."""
        out = list(shown)
        for label in self.layout.names[len(out) :]:
            thermostat = label in self.layout.thermostats
            sd = 1 / np.sqrt(self.layout.dim) if thermostat else 1.0
            out.append(np.full_like(shown[0], (friction if thermostat else 0.0) + spread * sd))
        return out

    def centres(self, cells: int) -> list[Array]:
        """The middles of so many cells a side of what is shown."""
        edges = [np.linspace(a, b, cells + 1) for a, b in self.ranges]
        return list(np.meshgrid(*((e[1:] + e[:-1]) / 2 for e in edges), indexing="ij"))


def quiet_title(figure: Any, scene: Scene) -> None:
    """Small and grey."""
    figure.title.text_font_size, figure.title.text_font_style, figure.title.text_color = (
        "13px",
        "normal",
        scene.colours.faint,
    )


def box(scene: Scene, lines: int) -> Div:
    """A text that wraps, below the figures. Its height is fixed: it must not change when the text comes.

    Large type has fewer letters in a line, and so more lines.
    """
    lines = ceil(LARGE * lines) if scene.large else lines
    return Div(
        text="",
        height=LINE * lines,
        sizing_mode="stretch_width",
        margin=(0, 8, 0, 8),
        styles={"font-size": "13px", "line-height": f"{LINE}px", "color": scene.colours.text, "overflow": "auto"},
    )


LOWEST = 100
"""The least height of a figure above a text, in pixels: on a phone both are in a low card."""


def stack(figures: Sequence[Any], text: Div) -> Any:
    """Figures side by side above a text."""
    for figure in figures:
        figure.min_height = LOWEST
    return column(row(*figures, sizing_mode="stretch_both"), text, sizing_mode="stretch_both")


def sign(scene: Scene, lane: int) -> str:
    """The lane's sign and name, as HTML, where there are several lanes."""
    if len(scene.lanes) == 1:
        return ""
    return (
        f'<span style="color:{scene.colours.lanes[lane]}">{SIGNS[lane]}</span>&nbsp;{html.escape(scene.lanes[lane])}: '
    )


def sentence(error: Exception) -> str:
    """An error as HTML."""
    return html.escape(str(error))
