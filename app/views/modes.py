"""The slowest modes: the slowest eigenfunctions of a recipe."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import LinearColorMapper

from sgmcmc_lab.app.views.base import Data, LaneFrame
from sgmcmc_lab.app.views.planes import (
    FAILURES,
    LiveImage,
    Plane,
    Process,
    box,
    process_of,
    sentence,
    sign,
    signed,
    stack,
)
from sgmcmc_lab.app.views.recipes import RecipeView
from sgmcmc_lab.app.views.spectrum import SIDE, Mixing, mixing
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers.recipe.recipe import Layout


class Modes(RecipeView):
    """The two slowest eigenfunctions of the first recipe: how the density differs from its distribution in the end."""

    key = "modes"
    title = "Slowest modes"
    hint = "the parts of p(z, t) that decay last"
    every = 3
    most = 1
    of_first = ("mode 0", "mode 1")

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        self._lane = next(iter(self.recipes), None)
        self._process: Process | None = None
        self._found: Mixing | str | None = None
        self._sent: Any = None
        self._text = box(scene, 2)
        kind = scene.layouts[self._lane] if self._lane is not None else ""
        self._images: list[LiveImage] = []
        self._titles: list[Any] = []
        self._n = len(Layout(kind, scene.target.dim).names) if kind else 0
        if self._n not in {1, 2}:
            figure = plot(colours, "", "", (0, 1), (0, 1))
            figure.axis.visible = figure.grid.visible = False
            return stack([figure], self._text)
        below_and_above = signed(colours)
        figures = []
        for m in range(2):
            plane = Plane(self, kind, title=("slowest", "next")[m])
            p = plane.figure
            if plane.ndim == 2:
                self._images.append(
                    LiveImage(
                        self,
                        p,
                        f"mode {m}",
                        LinearColorMapper(palette=below_and_above, low=-1.0, high=1.0),
                        (SIDE, SIDE),
                        plane.x,
                        plane.y,
                        level="image",
                    )
                )
                plane.contours(scene)
            else:
                p.y_range.start, p.y_range.end = -1.1, 1.1
                p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
                source = self.feed(f"mode {m}", "x", "y")
                p.varea("x", 0, "y", source=source, fill_color=colours.lanes[1], fill_alpha=0.3)
                p.line("x", "y", source=source, line_color=colours.lanes[1], line_width=2.5)
            self._titles.append(p.title)
            figures.append(p)
        return stack(figures, self._text)

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        if self._lane is None or self._n not in {1, 2}:
            return False
        lane = lanes[self._lane]
        process = process_of(lane)
        if process is None or process == self._process:
            return False
        self._process = process
        try:
            refused = lane.run.sampler.refusal(lane.run.sampled)
            self._found = refused or mixing(process, self.scene.coordinate)
        except FAILURES as error:
            self._found = str(error)
        return True

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        found = self._found
        if found is None or found is self._sent:
            return {}
        self._sent = found
        out: Data = {}
        for m in range(2):
            if isinstance(found, Mixing) and found.modes:
                values = found.modes[m] / (float(np.abs(found.modes[m]).max()) or 1.0)
                out |= self._images[m].data(values) if self._n == 2 else {f"mode {m}": (found.points, values)}
            elif self._n == 2:
                out |= self._images[m].data(np.zeros((SIDE, SIDE)))
            else:
                out[f"mode {m}"] = (np.zeros(0), np.zeros(0))
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        if self._lane is None:
            return {self._text.id: "No sampler here is a recipe."}
        who, found = sign(self.scene, self._lane), self._found
        if self._n > 2:
            return {self._text.id: f"{who}z has {self._n} coordinates; a grid is made for one or two."}
        if not isinstance(found, Mixing):
            return {self._text.id: who + (sentence(ValueError(found)) if found else "computing…")}
        first, second = found.values[:2]
        turning = abs(first.imag) > 1e-9 * abs(first)
        rates = [f"e^(−{-value.real:.3g} t)" for value in (first, second)]
        texts = {self._titles[0].id: f"slowest, {rates[0]}", self._titles[1].id: f"next, {rates[1]}"}
        if turning:
            period = 2 * np.pi / abs(first.imag)
            texts = {self._titles[0].id: f"slowest, {rates[0]}", self._titles[1].id: "a quarter turn later"}
            note = f"The slowest mode turns with period {period:.3g} as it decays."
        else:
            note = f"Half of the slowest mode is gone after t = {np.log(2) / -first.real:.3g}."
        return {**texts, self._text.id: f"{who}{note}"}
