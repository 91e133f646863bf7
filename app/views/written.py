"""The matrices that express a drift: its Q by Theorem 2, or the other distribution that it leaves invariant."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import LinearColorMapper
from scipy.interpolate import RegularGridInterpolator

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame
from sgmcmc_lab.app.views.planes import (
    FAILURES,
    SYMBOLS,
    LiveImage,
    Plane,
    Process,
    box,
    density,
    process_of,
    sentence,
    sign,
    signed,
    stack,
)
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers.recipe import theorem2
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.recipe import Layout

SIDE = 56
"""Cells a side of the image."""
POINTS = 240
"""Points of a curve."""
CELLS = {1: 400, 2: 96}
"""Cells a side of the grid that a distribution is solved for on, by the number of coordinates of z."""
FINE = 192
"""Cells a side of the grid that Q₁₂ is integrated on."""
LONGEST = 60
"""Characters of a formula in the caption."""
TAIL = 1e-3
"""The scale of the colours of Q is that of cells whose density is at least this share of the highest."""


@dataclass(frozen=True)
class Answer:
    """The result for one process, at the points of the image or curve."""

    values: Array
    """Q₁₂, or the density that the drift leaves invariant."""
    invariant: bool
    """Whether e^{−H} is that density."""
    formula: str
    """Q₁₂ as a formula, or why there is none."""


def answer(process: Process, plane: Plane) -> Answer:
    """Search and quadrature for the process of a recipe. Raises ValueError where nothing can be drawn."""
    recipe, target = process.recipe, process.target
    n = len(recipe.layout.names)
    flow = Flow(recipe, target, CELLS[n])
    shown = plane.centres(SIDE if n == 2 else POINTS)
    formula, invariant = "", True
    try:
        found = theorem2.find(recipe, target)
        formula = str(found.Q[0][1]) if n == 2 else "0"
    except theorem2.NoCurlError as error:
        formula, invariant = "", error.invariant
        if not invariant:
            formula = str(error)
    if invariant and n == 2:
        flow = Flow(recipe, target, FINE)
        values = theorem2.stream(flow)
    else:
        values = flow.law
    at = RegularGridInterpolator(flow.grid.centres, values, bounds_error=False, fill_value=None)
    return Answer(at(np.stack(shown, axis=-1)), invariant, formula)


class Written(RecipeView):
    """Q₁₂(z) of a drift with its D, or the density that the drift leaves invariant in place of e^{−H}."""

    key = "written"
    title = "Q of the drift"
    hint = "the Q that expresses it, or its invariant density"
    every = 3
    most = 2

    def build(self) -> Any:
        scene = self.scene
        self._lanes = self.recipes
        self._planes: list[Plane | None] = []
        self._images: list[LiveImage | None] = []
        self._processes: list[Process | None] = [None] * len(self._lanes)
        self._found: list[Answer | str] = [""] * len(self._lanes)
        self._sent: list[Answer | None] = [None] * len(self._lanes)
        self._text = box(scene, 1 + 2 * max(len(self._lanes), 1))
        for n, i in enumerate(self._lanes):
            drawn = len(Layout(scene.layouts[i], scene.target.dim).names) in CELLS
            title = scene.lanes[i] if len(self._lanes) > 1 else ""
            self._planes.append(Plane(self, scene.layouts[i], "density", title) if drawn else None)
            self._images.append(self._build(n, i))
        figures = [plane.figure for plane in self._planes if plane is not None]
        if not figures:
            figures = [plot(scene.colours, "", "", (0, 1), (0, 1))]
            figures[0].axis.visible = figures[0].grid.visible = False
        return stack(figures, self._text)

    def _build(self, n: int, lane: int) -> LiveImage | None:
        scene, plane, colours = self.scene, self._planes[n], self.scene.colours
        if plane is None:
            return None
        if plane.ndim == 2:
            mapper = LinearColorMapper(palette=signed(colours), low=-1.0, high=1.0)
            image = LiveImage(self, plane.figure, f"image {n}", mapper, (SIDE, SIDE), plane.x, plane.y, level="image")
            plane.contours(scene)
            return image
        p = plane.figure
        (x,) = plane.centres(POINTS)
        p.line(x, density(plane.layout, scene.target, [x]), line_color=colours.text, line_width=1.5, line_dash="dashed")
        curve = self.feed(f"curve {n}", "x", "y")
        p.line("x", "y", source=curve, line_color=colours.lanes[lane], line_width=2.5)
        self.moving_range(f"y {n}", p.y_range)
        return None

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        changed = False
        for n, (i, plane) in enumerate(zip(self._lanes, self._planes, strict=True)):
            process = process_of(lanes[i])
            if plane is None or process is None or process == self._processes[n]:
                continue
            if process.recipe.layout != plane.layout:
                continue
            try:
                self._found[n] = answer(process, plane)
            except FAILURES as error:
                self._found[n] = sentence(error)
            self._processes[n], changed = process, True
        return changed

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for n, (plane, found, image) in enumerate(zip(self._planes, self._found, self._images, strict=True)):
            if plane is None or not isinstance(found, Answer) or found is self._sent[n]:
                continue
            self._sent[n] = found
            if image is not None:
                out |= image.data(np.clip(found.values / self._scale(n), -1.0, 1.0))
                continue
            (x,) = plane.centres(POINTS)
            tops = [float(np.nanmax(each)) for each in (found.values, density(plane.layout, self.scene.target, [x]))]
            out |= {f"curve {n}": (x, found.values), f"y {n}": (np.array([0.0, 1.25 * max(tops)]),)}
        return out

    def _scale(self, n: int) -> float:
        """The value that has the full colour: the largest one, of Q where there is mass."""
        plane, process, found = self._planes[n], self._processes[n], self._found[n]
        assert plane is not None and process is not None and isinstance(found, Answer)
        p = density(plane.layout, self.scene.target, plane.centres(SIDE), process.recipe.friction)
        seen = p > TAIL * np.nanmax(p) if found.invariant else np.ones_like(p, dtype=bool)
        return float(np.abs(found.values[seen]).max()) or 1.0

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        lines = [f"{sign(self.scene, i)}{self._caption(n)}" for n, i in enumerate(self._lanes)]
        if not lines:
            lines = ["No sampler here is a recipe."]
        elif len(self._lanes) < sum(map(bool, self.scene.layouts)):
            lines.append(f"The first {len(self._lanes)} recipes are shown.")
        return {self._text.id: "<br>".join(lines)}

    def _caption(self, n: int) -> str:
        plane, found, colours = self._planes[n], self._found[n], self.scene.colours
        if plane is None:
            names = Layout(self.scene.layouts[self._lanes[n]], self.scene.target.dim).names
            z = ", ".join(SYMBOLS[name] for name in names)
            return f"z = ({z}): drawn with one or two coordinates. Find Q, in the workbench, takes up to five."
        if not isinstance(found, Answer):
            return found or "computing…"
        if not found.invariant:
            drawn, of_target = ("colours", "contours") if plane.ndim == 2 else ("line", "dashed")
            return f"<b>no Q</b>: {html.escape(found.formula)} It has another stationary distribution ({drawn}; e⁻ᴴ: {of_target})."
        if plane.ndim == 1:
            return "<b>Q = 0</b>: in one dimension f = −D H′ + D′ is the only drift, and this is it."
        text = found.formula or "no formula was found, so by quadrature"
        text = text if len(text) <= LONGEST else "a long formula, which Find Q writes into the workbench"
        return (
            f"<b>Q₁₂ = {html.escape(text)}</b>, colours "
            f'<span style="color:{colours.lanes[0]}">−</span>/<span style="color:{colours.lanes[1]}">+</span>'
            f" up to {self._scale(n):.2g}"
        )
