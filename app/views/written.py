"""What writes a drift: its Q by Theorem 2, or the other distribution that it leaves invariant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import BasicTickFormatter, LinearColorMapper
from bokeh.palettes import interp_palette
from scipy.interpolate import RegularGridInterpolator

from app.theme import plot
from app.views.base import Array, Data, LaneFrame
from app.views.planes import (
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
    stack,
)
from app.views.recipes import RecipeView
from samplers.recipe import theorem2
from samplers.recipe.flow import Flow
from samplers.recipe.recipe import Layout

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
    """What was found for one process, at the points of the image or curve."""

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
    """Q₁₂(z) of the first recipe's drift and D, or the density that the drift leaves invariant in place of e^{−H}."""

    key = "written"
    title = "Q of the drift"
    hint = "the Q that writes it, or what it leaves invariant"
    every = 3
    most = 1

    def build(self) -> Any:
        scene = self.scene
        self._lane = next(iter(self.recipes), None)
        self._process: Process | None = None
        self._found: Answer | str = ""
        self._sent: Answer | None = None
        self._plane: Plane | None = None
        self._text = box(scene, 3)
        kind = scene.layouts[self._lane] if self._lane is not None else ""
        n = len(Layout(kind, scene.target.dim).names) if kind else 0
        if n not in CELLS:
            figure = plot(scene.colours, "", "", (0, 1), (0, 1))
            figure.axis.visible = figure.grid.visible = False
            return stack([figure], self._text)
        self._plane = plane = Plane(self, kind, "density")
        colours = scene.colours
        if n == 2:
            signed = [
                *interp_palette([colours.lanes[0], colours.surface], 32),
                *interp_palette([colours.surface, colours.lanes[1]], 32),
            ]
            mapper = LinearColorMapper(palette=signed, low=-1.0, high=1.0)
            self._image = LiveImage(self, plane.figure, "image", mapper, (SIDE, SIDE), plane.x, plane.y, level="image")
            plane.contours(scene)
        else:
            p = plane.figure
            p.yaxis.formatter = BasicTickFormatter(precision=2)
            (x,) = plane.centres(POINTS)
            wanted = density(plane.layout, scene.target, [x])
            p.line(x, wanted, line_color=colours.text, line_width=1.5, line_dash="dashed")
            curve = self.feed("curve", "x", "y")
            p.line("x", "y", source=curve, line_color=colours.lanes[self._lane or 0], line_width=2.5)
            self._top = 1.25 * float(np.nanmax(wanted))
            self.moving_range("y", p.y_range)
        return stack([plane.figure], self._text)

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        if self._lane is None or self._plane is None:
            return False
        process = process_of(lanes[self._lane])
        if process is None or process == self._process or process.recipe.layout != self._plane.layout:
            return False
        try:
            self._found = answer(process, self._plane)
        except FAILURES as error:
            self._found = sentence(error)
        self._process = process
        return True

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        found, plane = self._found, self._plane
        if plane is None or not isinstance(found, Answer) or found is self._sent or self._process is None:
            return {}
        self._sent = found
        if plane.ndim == 1:
            (x,) = plane.centres(POINTS)
            top = max(self._top, 1.25 * float(np.nanmax(found.values)))
            return {"curve": (x, found.values), "y": (np.array([0.0, top]),)}
        return self._image.data(np.clip(found.values / self._scale(found), -1.0, 1.0))

    def _scale(self, found: Answer) -> float:
        """The value that has the full colour: the largest one where there is mass."""
        assert self._plane is not None and self._process is not None
        p = density(self._plane.layout, self.scene.target, self._plane.centres(SIDE), self._process.recipe.friction)
        seen = p > TAIL * np.nanmax(p) if found.invariant else np.ones_like(p, dtype=bool)
        return float(np.abs(found.values[seen]).max()) or 1.0

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        return {self._text.id: self._caption()}

    def _caption(self) -> str:
        if self._lane is None:
            return "No sampler here is a recipe."
        who = sign(self.scene, self._lane)
        if self._plane is None:
            names = ", ".join(SYMBOLS[n] for n in Layout(self.scene.layouts[self._lane], self.scene.target.dim).names)
            return f"{who}z = ({names}): drawn with one or two coordinates. Find Q, in the workbench, takes up to five."
        found = self._found
        if not isinstance(found, Answer):
            return who + (found or "computing…")
        if not found.invariant:
            drawn = "colours" if self._plane.ndim == 2 else "line"
            of_target = "contours" if self._plane.ndim == 2 else "dashed"
            return f"{who}<b>{sentence(ValueError(found.formula))}</b> It leaves another distribution invariant: {drawn}; e⁻ᴴ: {of_target}."
        if self._plane.ndim == 1:
            return f"{who}<b>Q = 0</b>: in one dimension f = −D H′ + D′ is the only drift, and this is it."
        scale, colours = self._scale(found), self.scene.colours
        text = found.formula or "no formula was found; by quadrature"
        text = text if len(text) <= LONGEST else "a long formula; Find Q writes it into the workbench"
        return (
            f"{who}<b>Q₁₂ = {sentence(ValueError(text))}</b>, colours "
            f'<span style="color:{colours.lanes[0]}">−</span>/<span style="color:{colours.lanes[1]}">+</span>{scale:.2g}'
        )
