"""The places at which e^{−H} is not stationary: the residual of the drift as it is, and where D is no diffusion."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import Legend, LegendItem, LinearColorMapper
from bokeh.palettes import interp_palette
from numpy.typing import NDArray

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
from sgmcmc_lab.samplers.recipe.flow import on_points, values_at

SIDE = 56
"""Cells a side of an image."""
POINTS = 240
"""Points of a curve."""
ROUNDING = 1e-9
"""A residual below this share of the terms that it is the sum of is zero."""
UNKNOWN = 9.0
"""A value above all that are drawn, for which an image has a colour of its own."""
RED, RED_ON_DARK = "#c81e1e", "#ff8a80"


@dataclass(frozen=True)
class Look:
    """The picture of one process, at the points of the image or curve."""

    residual: Array
    """∂p/∂t at p = e^{−H}/Z; exactly 0 where it is nothing but rounding."""
    eigenvalue: Array
    """The smallest one of D."""
    bad: NDArray[np.bool_]
    """Whether D is not positive semidefinite there."""
    refused: str
    """The worst point of D, in a sentence; empty where D is right."""
    shown: tuple[Array, ...]
    """The coordinates of these points."""
    slice: str = ""
    """The values of the coordinates that are not shown."""

    @property
    def top(self) -> float:
        """The largest residual."""
        return float(np.abs(self.residual).max())


def evaluate(process: Process, plane: Plane) -> Look:
    """Evaluate the residual and the smallest eigenvalue of D on what the plane shows. Raises ValueError."""
    recipe = process.effective
    shown = plane.centres(SIDE if plane.ndim == 2 else POINTS)
    A = process.recipe.friction
    residual, spread = np.zeros(shown[0].shape), 0.0
    if not recipe.residual.is_zero:
        # A residual that is odd in the momentum vanishes at its mean; it is seen one standard deviation from there.
        for spread in (0.0, 1.0) if len(recipe.layout.names) > plane.ndim else (0.0,):
            residual = _residual(process, plane.points(shown, A, spread))
            if residual.any():
                break
        else:
            spread = 0.0
    points = plane.points(shown, A, spread)
    at = values_at(recipe.layout, process.target, [entry for row in process.recipe.D for entry in row], points)
    eigenvalue = process.recipe.smallest_eigenvalue(**at)
    bad = np.isnan(eigenvalue) | (eigenvalue < -1e-12 * max(float(np.nanmax(np.abs(eigenvalue), initial=0.0)), 1e-300))
    refused = ""
    try:
        process.recipe.check_on(**at)
    except ValueError as error:
        refused = str(error)
    hidden = recipe.layout.names[plane.ndim :]
    where = ", ".join(
        f"{SYMBOLS[n]} = {float(x.flat[0]):.3g}" for n, x in zip(hidden, points[plane.ndim :], strict=True)
    )
    return Look(residual, np.nan_to_num(eigenvalue), bad, refused, tuple(shown), where)


def _residual(process: Process, points: list[Array]) -> Array:
    """∂p/∂t at p = e^{−H}/Z, with what is not more than rounding set to zero."""
    recipe = process.effective
    n = len(recipe.layout.names)
    entries = [recipe.D[i][j] for i in range(n) for j in range(n)]
    first, *rest = on_points(
        recipe, process.target, [recipe.residual, *recipe.drift, *recipe.gradient, *entries], points
    )
    p = density(recipe.layout, process.target, points, recipe.friction)
    drift, slope, D = rest[:n], rest[n : 2 * n], rest[2 * n :]
    with np.errstate(all="ignore"):
        terms = sum(np.abs(f * h) for f, h in zip(drift, slope, strict=True))
        terms = terms + sum(
            np.abs(D[i * n + j]) * (1 + np.abs(slope[i] * slope[j])) for i in range(n) for j in range(n)
        )
        out, scale = first * p, terms * p
    out, scale = (np.where(np.isfinite(x), x, 0.0) for x in (out, scale))
    return out if np.abs(out).max() > ROUNDING * max(float(scale.max()), 1e-300) else np.zeros_like(out)


class Stationarity(RecipeView):
    """∂p/∂t at p = e^{−H}: zero everywhere, or e^{−H} is not invariant."""

    key = "stationarity"
    title = "Stationarity"
    hint = "∂p/∂t at p = e⁻ᴴ: 0 where e⁻ᴴ is stationary"
    every = 3
    most = 2

    def build(self) -> Any:
        scene = self.scene
        self._lanes = self.recipes
        self._processes: list[Process | None] = [None] * len(self._lanes)
        self._looks: list[Look | str] = [""] * len(self._lanes)
        self._sent: list[Any] = [None] * len(self._lanes)
        self._images: list[tuple[LiveImage, ...]] = []
        self._planes: list[Plane] = []
        for n, i in enumerate(self._lanes):
            title = scene.lanes[i] if len(self._lanes) > 1 else ""
            plane = Plane(self, scene.layouts[i], "∂p/∂t", title)
            (self._build_image if plane.ndim == 2 else self._build_line)(n, plane)
            plane.contours(scene)
            self._planes.append(plane)
        self._text = box(scene, 1 + max(len(self._lanes), 1))
        figures = [plane.figure for plane in self._planes]
        return stack(figures or [plot(scene.colours, "", "", (0, 1), (0, 1))], self._text)

    def _build_image(self, n: int, plane: Plane) -> None:
        colours = self.scene.colours
        below_and_above = signed(colours)
        cells = (SIDE, SIDE)
        mappers = (
            LinearColorMapper(palette=below_and_above, low=-1.0, high=1.0, high_color=colours.grid),
            LinearColorMapper(
                palette=interp_palette([colours.surface, colours.lanes[2]], 64),
                low=0.0,
                high=1.0,
                high_color=colours.grid,
            ),
            LinearColorMapper(
                palette=["#00000000", f"{RED}50", f"{RED}c0"], low=-0.5, high=2.5, high_color="#00000000"
            ),
        )
        self._images.append(
            tuple(
                LiveImage(self, plane.figure, f"{name} {n}", mapper, cells, plane.x, plane.y, level="image")
                for name, mapper in zip(("residual", "eigenvalue", "bad"), mappers, strict=True)
            )
        )
        residual, eigenvalue, _ = (image.renderer for image in self._images[-1])
        self._add_legend(plane, residual, eigenvalue, None)

    def _build_line(self, n: int, plane: Plane) -> None:
        colours, p = self.scene.colours, plane.figure
        self._images.append(())
        curve = self.feed(f"curve {n}", "x", "residual", "eigenvalue")
        bad = self.feed(f"bad {n}", "x", "bottom", "top")
        p.hspan(y=[0.0], line_color=colours.faint, line_width=1)
        area = p.varea("x", 0, "residual", source=curve, fill_color=colours.lanes[1], fill_alpha=0.35)
        line = p.line("x", "residual", source=curve, line_color=colours.lanes[1], line_width=2.5)
        eigenvalue = p.line(
            "x", "eigenvalue", source=curve, line_color=colours.lanes[2], line_width=2, line_dash="dashed"
        )
        p.vbar(
            "x",
            (plane.x[1] - plane.x[0]) / POINTS,
            "top",
            "bottom",
            source=bad,
            fill_color=RED,
            fill_alpha=0.15,
            hatch_pattern="right_diagonal_line",
            hatch_color=RED,
            hatch_alpha=0.6,
            line_color=None,
        )
        self.moving_range(f"y {n}", p.y_range)
        self._add_legend(plane, line, eigenvalue, area)

    def _add_legend(self, plane: Plane, residual: Any, eigenvalue: Any, area: Any) -> None:
        """Names that show and hide their layers."""
        colours, p = self.scene.colours, plane.figure
        items = []
        for label, layer, more, colour in (
            ("∂p/∂t", residual, area, colours.lanes[1]),
            ("min λ(D)", eigenvalue, None, colours.lanes[2]),
        ):
            # An image has no sign of its own in a legend.
            mark = p.scatter([1e9], [1e9], marker="square", size=10, color=colour)
            shown = [mark, layer, *([more] if more is not None else [])]
            for each in shown:
                each.visible = layer is residual
            items.append(LegendItem(label=label, renderers=shown))
        p.add_layout(Legend(
            items=items, orientation="horizontal", click_policy="hide", location="top_left", padding=0, margin=0, spacing=8,
            label_text_font_size="13px", label_text_color=colours.text, background_fill_color=colours.surface,
            inactive_fill_color=colours.surface, inactive_fill_alpha=0.6, border_line_color=None,
            glyph_width=14, glyph_height=14, label_standoff=2, label_height=14,
        ), "above")  # fmt: skip

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        changed = False
        for n, i in enumerate(self._lanes):
            process, plane = process_of(lanes[i]), self._planes[n]
            if process == self._processes[n] or process is None or process.recipe.layout != plane.layout:
                continue
            try:
                found: Look | str = evaluate(process, plane)
            except FAILURES as error:
                found = sentence(error)
            self._processes[n], self._looks[n], changed = process, found, True
        return changed

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for n, plane in enumerate(self._planes):
            found = self._looks[n]
            if found is self._sent[n] or found == "":
                continue
            self._sent[n] = found
            if not isinstance(found, Look):
                out |= self._nothing(n, plane)
                continue
            top, most = found.top, float(np.abs(found.eigenvalue).max()) or 1.0
            if plane.ndim == 2:
                stripes = np.add.outer(np.arange(SIDE), np.arange(SIDE)) % 4 < 2
                values = (found.residual / (top or 1.0), found.eigenvalue / most, found.bad * (1.0 + stripes))
                for image, each in zip(self._images[n], values, strict=True):
                    out |= image.data(each)
            else:
                reach = 1.25 * top or 1.0
                x = found.shown[0]
                out[f"curve {n}"] = (x, found.residual, found.eigenvalue / most * reach / 1.25)
                out[f"bad {n}"] = (x[found.bad], np.full(found.bad.sum(), -reach), np.full(found.bad.sum(), reach))
                out[f"y {n}"] = (np.array([-reach, 1.5 * reach]),)
        return out

    def _nothing(self, n: int, plane: Plane) -> Data:
        """A picture without a result: grey all over, or no curve."""
        if plane.ndim == 2:
            unknown = np.full((SIDE, SIDE), UNKNOWN)
            return {name: data for image in self._images[n] for name, data in image.data(unknown).items()}
        none = np.zeros(0)
        return {f"curve {n}": (none,) * 3, f"bad {n}": (none,) * 3}

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        lines = [f"{sign(self.scene, i)}{self._caption(n, lanes[i])}" for n, i in enumerate(self._lanes)]
        if not lines:
            lines = ["No sampler here is a recipe."]
        elif len(self._lanes) < sum(map(bool, self.scene.layouts)):
            lines.append(f"The first {len(self._lanes)} recipes are shown.")
        return {self._text.id: "<br>".join(lines)}

    def _caption(self, n: int, lane: LaneFrame) -> str:
        found, divergence = self._looks[n], lane.run.divergence
        if not isinstance(found, Look):
            return found or "computing…"
        parts = []
        colours = self.scene.colours
        where = f" (at {found.slice})" if found.slice else ""
        refused = found.refused or (divergence.message if divergence is not None and divergence.refused else "")
        if refused:
            worst = refused[refused.rfind("D must be") :] if "D must be" in refused else refused
            red = RED_ON_DARK if self.scene.dark else RED
            return f'<span style="color:{red}">{sentence(ValueError(worst))}</span> There is no such process.'
        if found.top == 0:
            parts.append("<b>0: e⁻ᴴ is stationary</b>")
        else:
            k = int(np.abs(found.residual).argmax())
            names = self._planes[n].layout.names
            at = ", ".join(f"{SYMBOLS[label]} = {x.flat[k]:.2f}" for label, x in zip(names, found.shown, strict=False))
            rise = f'<span style="color:{colours.lanes[1]}">+</span>' if self._planes[n].ndim == 2 else ""
            fall = f'<span style="color:{colours.lanes[0]}">−</span>' if self._planes[n].ndim == 2 else ""
            scale = f", colours {fall}/{rise}" if rise else ""
            parts.append(f"<b>not stationary</b>: |∂p/∂t| up to {found.top:.2g} at {at}{where}{scale}")
        low, high = float(found.eigenvalue.min()), float(found.eigenvalue.max())
        same = high - low < 1e-9 * max(abs(high), 1.0)
        parts.append(f"min λ(D) = {low:.3g}" if same else f"min λ(D) from {low:.2g} to {high:.2g}")
        return " · ".join(parts)
