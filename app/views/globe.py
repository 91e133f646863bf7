"""S² as a globe: the exact density on it, draws in front and behind. It is turned in the page, without the server."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from bokeh.core.properties import Float
from bokeh.events import Pan, PanEnd, PanStart
from bokeh.layouts import column, row
from bokeh.model import DataModel
from bokeh.models import ColumnDataSource, CustomJS, LinearColorMapper, Slider
from bokeh.palettes import interp_palette

from sgmcmc_lab.app.views.base import Array, Data, Frame, View
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.state import notes
from sgmcmc_lab.app.views.steps import add_arrows, draw_arrows, rows
from sgmcmc_lab.app.views.theme import even_plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.manifolds import Simplex, Sphere

EXTENT = 1.08
"""Half the width of the figure; the globe has radius 1."""
PIXELS = 160
"""Cells a side of the globe's picture."""
LATITUDES, LONGITUDES = 91, 181
"""The table of the density that the page draws the picture from, its ends included."""
DRAWS = 400
"""Draws that stay visible."""
SHOWN_CHAINS = 4
ARROW = 0.3
"""How long the arrow of a velocity 1 is while a step is taken apart."""
FRONT, BEHIND = 0.8, 0.16
"""How solid draws are."""

# The page's projection of a point (x, y, z): to the right, up, and towards the eye. The same as `turned` below.
_AXES = """
const a = turn.value * Math.PI / 180, b = tilt.value * Math.PI / 180
const right = [-Math.sin(a), Math.cos(a), 0]
const up = [-Math.sin(b) * Math.cos(a), -Math.sin(b) * Math.sin(a), Math.cos(b)]
const eye = [Math.cos(b) * Math.cos(a), Math.cos(b) * Math.sin(a), Math.sin(b)]
const place = (points, shown, alphas) => {
  const {x, y, z} = points.data
  const n = x.length
  const px = new Float64Array(n), py = new Float64Array(n), alpha = new Float64Array(n)
  for (let i = 0; i < n; i++) {
    px[i] = right[0] * x[i] + right[1] * y[i]
    py[i] = up[0] * x[i] + up[1] * y[i] + up[2] * z[i]
    const seen = eye[0] * x[i] + eye[1] * y[i] + eye[2] * z[i] >= 0
    alpha[i] = seen ? alphas[0] : alphas[1]
    if (alphas[1] === 0 && !seen) px[i] = NaN
  }
  shown.setv({data: {...shown.data, px, py, alpha}}, {sync: false})
}
"""
_PLACE = _AXES + "place(points, shown, alphas)"
# Arrows have two ends, and are in front of the globe.
_ARROWS = """
const {x0, y0, z0, x1, y1, z1, ...rest} = parts.data
const flat = (axis, x, y, z) => Float64Array.from(x, (_, i) => axis[0] * x[i] + axis[1] * y[i] + axis[2] * z[i])
arrows.setv({data: {...rest, x0: flat(right, x0, y0, z0), y0: flat(up, x0, y0, z0), x1: flat(right, x1, y1, z1), y1: flat(up, x1, y1, z1)}}, {sync: false})
"""
_TURN = (
    _AXES
    + """
for (const [points, shown, alphas] of all) place(points, shown, alphas)
const values = table.data.value
const image = picture.data.image[0]
for (let j = 0; j < side; j++) {
  for (let i = 0; i < side; i++) {
    const u = (2 * i + 1) / side - 1, v = (2 * j + 1) / side - 1
    const left = 1 - u * u - v * v
    if (left < 0) { image[j * side + i] = NaN; continue }
    const w = Math.sqrt(left)
    const x = u * right[0] + v * up[0] + w * eye[0], y = u * right[1] + v * up[1] + w * eye[1], z = v * up[2] + w * eye[2]
    const s = (Math.asin(Math.max(-1, Math.min(1, z))) / Math.PI + 0.5) * (rows - 1)
    const t = (Math.atan2(y, x) / (2 * Math.PI) + 0.5) * (columns - 1)
    const k = Math.min(Math.floor(s), rows - 2), l = Math.min(Math.floor(t), columns - 2)
    const f = s - k, g = t - l, at = k * columns + l
    image[j * side + i] = (1 - f) * ((1 - g) * values[at] + g * values[at + 1])
      + f * ((1 - g) * values[at + columns] + g * values[at + columns + 1])
  }
}
picture.change.emit()
"""
)
# A drag turns the globe under the pointer: its radius is a radian. The sliders follow, and do the drawing.
_GRAB = "turn.tags = [turn.value, tilt.value]"
_DRAG = """
const radius = Math.min(figure.inner_width, figure.inner_height) / 2.2
const [from, height] = turn.tags
const angle = from - cb_obj.delta_x / radius * 180 / Math.PI
turn.setv({value: Math.round(((angle + 180) % 360 + 360) % 360 - 180)}, {sync: false})
tilt.setv({value: Math.round(Math.max(-90, Math.min(90, height - cb_obj.delta_y / radius * 180 / Math.PI)))}, {sync: false})
"""
# The point of the globe that is nearest to the eye where it was clicked; none beside it.
_HIT = (
    _AXES
    + """
const w = Math.sqrt(1 - cb_obj.x ** 2 - cb_obj.y ** 2)
if (!(w >= 0)) return
const point = right.map((_, i) => cb_obj.x * right[i] + cb_obj.y * up[i] + w * eye[i])
"""
)
# The server is told where a drag ends, so that the next globe is turned as this one was.
_DROP = """
for (const slider of [turn, tilt]) slider.setv({value: slider.value}, {check_eq: false})
"""


def turned(points: Array, turn: float, tilt: float) -> Array:
    """Points (n, 3) as the eye above longitude ``turn`` and latitude ``tilt`` (degrees) has them: right, up, near."""
    a, b = np.deg2rad([turn, tilt])
    axes = np.array(
        [
            [-np.sin(a), np.cos(a), 0.0],
            [-np.sin(b) * np.cos(a), -np.sin(b) * np.sin(a), np.cos(b)],
            [np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)],
        ]
    )
    return np.asarray(points @ axes.T)


def graticule() -> Array:
    """Meridians and parallels, every 30°, as points on lines with a gap (nan) between them, (n, 3)."""
    lines = []
    along, across = np.deg2rad(np.linspace(-180, 180, 121)), np.deg2rad(np.linspace(-90, 90, 61))
    gap = np.full((1, 3), np.nan)
    for latitude in np.deg2rad(np.arange(-60, 61, 30)):
        c, s = np.cos(latitude), np.full_like(along, np.sin(latitude))
        lines += [np.stack([c * np.cos(along), c * np.sin(along), s], axis=1), gap]
    for longitude in np.deg2rad(np.arange(-180, 180, 30)):
        c, s = np.cos(across), np.sin(across)
        lines += [np.stack([c * np.cos(longitude), c * np.sin(longitude), s], axis=1), gap]
    return np.concatenate(lines[:-1])


Layer = tuple[str, tuple[float, float], Callable[..., Any]]
"""A feed of points, how solid they are in front and behind, and what adds their glyph."""


class Angle(DataModel):
    """An angle of the eye in a live page, whose own sliders move it: Bokeh's need a second part of BokehJS."""

    value = Float(help="Degrees.")


class Globe(View):
    """The hemisphere that faces the eye. Every draw is sent as a point in space; the page places it."""

    key = "globe"
    title = "Globe"
    hint = "drag or slide to turn it; faint dots are behind"
    axis_names: tuple[str, str, str] = ("x", "y", "z")
    """The labels at the ends of the three axes."""

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return experiment.make_target().manifold in (Sphere(3), Simplex(3))

    above: ClassVar[int] = 0
    """Lines of its caption that are above the globe, where they are too long for its corner."""

    def folds(self) -> bool:
        """Whether the whole globe stands for its part where all coordinates are positive."""
        return isinstance(self.scene.target.manifold, Simplex)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        self._folds = self.folds()
        self._table = self._density_table()
        turn, tilt = self._first_view()
        self.turn, self.tilt = (
            Angle(value=value) if scene.live else self._slider(title, most, value)
            for title, most, value in (("turn", 180, turn), ("tilt", 90, tilt))
        )
        p = even_plot(colours, (-EXTENT, EXTENT), (-EXTENT, EXTENT))
        p.min_height = 140
        picture = ColumnDataSource({"image": [self.picture(turn, tilt)]})
        mapper = LinearColorMapper(
            palette=interp_palette(list(colours.density), 64),
            low=0.0,
            high=float(self._table.max()),
            nan_color="rgba(0, 0, 0, 0)",
        )
        p.image(image="image", source=picture, x=-1, y=-1, dw=2, dh=2, color_mapper=mapper, level="image")
        around = np.linspace(0, 2 * np.pi, 181)
        p.line(np.cos(around), np.sin(around), line_color=colours.faint, line_width=1.5)
        net, net_shown = self._points(graticule(), turn, tilt, (1.0, 0.0))
        p.line("px", "py", source=net_shown, line_color=colours.faint, line_alpha=0.35, line_width=1)
        axes, axes_shown = self._points(np.eye(3), turn, tilt, (1.0, 0.15))
        names = ("√ω₁", "√ω₂", "√ω₃") if self._folds else self.axis_names
        axes_shown.data["name"] = np.array(names)
        everything: list[tuple[Any, Any, tuple[float, float]]] = [
            (net, net_shown, (1.0, 0.0)),
            (axes, axes_shown, (1.0, 0.15)),
        ]
        both = {"turn": self.turn, "tilt": self.tilt}
        for i, _ in enumerate(scene.lanes):
            for name, alphas, add in self.layers(p, i):
                points = self.feed(name, "x", "y", "z", rollover=DRAWS if name.startswith("draws") else 0)
                shown = ColumnDataSource({key: np.zeros(0) for key in ("px", "py", "alpha")})
                add("px", "py", source=shown)
                place = CustomJS(args={**both, "points": points, "shown": shown, "alphas": alphas}, code=_PLACE)
                points.js_on_change("data", place)
                everything.append((points, shown, alphas))
        parts = add_arrows(self, p, "xyz")
        arrows = ColumnDataSource(
            {key: np.zeros(0) for key in ("x0", "y0", "x1", "y1", "head", "kind", "after", "before")}
        )
        turn_arrows = CustomJS(args={**both, "parts": parts, "arrows": arrows}, code=_AXES + _ARROWS)
        parts.js_on_change("data", turn_arrows)
        draw_arrows(self, p, arrows)
        # The names of the axes are where the axes leave the globe.
        p.text(
            "px",
            "py",
            text="name",
            source=axes_shown,
            alpha="alpha",
            text_color=colours.exact,
            text_alpha="alpha",
            text_font_size="14px",
            text_align="center",
            text_baseline="middle",
        )
        table = ColumnDataSource({"value": self._table.ravel()})
        draw = CustomJS(
            args={
                **both,
                "all": everything,
                "table": table,
                "picture": picture,
                "side": PIXELS,
                "rows": LATITUDES,
                "columns": LONGITUDES,
            },
            code=_TURN,
        )
        for slider in (self.turn, self.tilt):
            slider.js_on_change("value", draw)
            slider.js_on_change("value", turn_arrows)
        p.js_on_event(PanStart, CustomJS(args=both, code=_GRAB))
        p.js_on_event(Pan, CustomJS(args={**both, "figure": p}, code=_DRAG))
        p.js_on_event(PanEnd, CustomJS(args=both, code=_DROP))
        self.take_touches(p, _HIT, **both)
        self.turn.tags = [turn, tilt]
        self._plot = p
        self._label = self.caption_above(p, self.above)
        if scene.live:
            return p
        # The sliders are for keyboards and for fingers, whose drags scroll the page.
        return column(p, row(self.turn, self.tilt, sizing_mode="stretch_width"), sizing_mode="stretch_both")

    def _slider(self, title: str, most: int, value: float) -> Slider:
        """A slider from −most to most degrees."""
        return Slider(
            start=-most,
            end=most,
            step=1,
            value=value,
            title=title,
            name=title,
            show_value=False,
            min_width=60,
            margin=(0, 10, 0, 10),
            sizing_mode="stretch_width",
            stylesheets=[f".bk-slider-title {{ color: {self.scene.colours.text}; }}"],
        )

    def live_tap(self) -> dict[str, Any] | None:
        turned = {"turn": self.turn.id, "tilt": self.tilt.id}
        return {"figure": self._plot.id, "kind": "globe", "folds": self._folds, **turned}

    def layers(self, p: Any, i: int) -> list[Layer]:
        """The picture of a lane."""
        marks = {"marker": MARKERS[i], "fill_color": self.scene.colours.lanes[i]}
        return [
            (f"draws {i}", (FRONT, BEHIND), self.dots(p, 4, line_color=None, **marks)),
            (f"heads {i}", (1.0, 0.3), self.dots(p, 11, line_color=self.scene.colours.surface, **marks)),
        ]

    @staticmethod
    def dots(p: Any, size: int, **marks: Any) -> Callable[..., Any]:
        """A function that adds points, which are fainter behind the globe."""
        return partial(p.scatter, alpha="alpha", size=size, **marks)

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        length = float(np.linalg.norm(point))
        if len(point) != 3 or length == 0:
            return None
        # Every point of the other parts of the sphere is the reflection of one of the simplex.
        start = np.array(point) / length
        return np.abs(start) if self._folds else start

    def _points(
        self, points: Array, turn: float, tilt: float, alphas: tuple[float, float]
    ) -> tuple[ColumnDataSource, ColumnDataSource]:
        """A source of points in space, and one of where they are in the figure."""
        right, up, near = turned(points, turn, tilt).T
        alpha = np.where(near >= 0, *alphas)
        shown = np.where(alpha > 0, right, np.nan)
        x, y, z = points.T
        return ColumnDataSource({"x": x, "y": y, "z": z}), ColumnDataSource({"px": shown, "py": up, "alpha": alpha})

    def log_density(self, points: Array) -> Array:
        """The values that colour the globe, at points (..., 3) of it."""
        return np.asarray(self.scene.target.log_density(points))

    def _density_table(self) -> Array:
        """The square root of the density, which lets the tails be seen, by latitude and longitude."""
        latitude = np.linspace(-np.pi / 2, np.pi / 2, LATITUDES)[:, None]
        longitude = np.linspace(-np.pi, np.pi, LONGITUDES)
        across = np.cos(latitude)
        points = np.stack(
            [across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude) + 0 * longitude], axis=-1
        )
        return np.sqrt(np.exp(self.log_density(points)))

    def _first_view(self) -> tuple[float, float]:
        """The first position of the eye: above the densest part, a little to the side."""
        k, m = np.unravel_index(np.argmax(self._table), self._table.shape)
        latitude = -90 + 180 * k / (LATITUDES - 1)
        longitude = -180 + 360 * m / (LONGITUDES - 1)
        turn = (longitude - 20 + 180) % 360 - 180
        return float(round(turn)), float(np.clip(round(0.6 * latitude + 8), -75, 75))

    def picture(self, turn: float, tilt: float) -> Array:
        """The density on the hemisphere, (PIXELS, PIXELS), nan beside it: what the page computes when it is turned."""
        middle = (2 * np.arange(PIXELS) + 1) / PIXELS - 1
        u, v = np.meshgrid(middle, middle)
        left = 1 - u**2 - v**2
        eye = np.stack([u, v, np.sqrt(np.maximum(left, 0))], axis=-1)
        # The axes are orthonormal: turning back is multiplying by them.
        x, y, z = np.moveaxis(eye @ turned(np.eye(3), turn, tilt).T, -1, 0)
        s = (np.arcsin(np.clip(z, -1, 1)) / np.pi + 0.5) * (LATITUDES - 1)
        t = (np.arctan2(y, x) / (2 * np.pi) + 0.5) * (LONGITUDES - 1)
        k, m = np.minimum(s.astype(int), LATITUDES - 2), np.minimum(t.astype(int), LONGITUDES - 2)
        f, g, table = s - k, t - m, self._table
        found = (1 - f) * ((1 - g) * table[k, m] + g * table[k, m + 1]) + f * (
            (1 - g) * table[k + 1, m] + g * table[k + 1, m + 1]
        )
        return np.where(left >= 0, found, np.nan).astype(np.float32)

    def compute(self, lanes: Frame) -> Data:
        playing = lanes.playing and lanes.playing._replace(reach=ARROW)
        out: Data = {"parts": rows(playing, self.scene.parts, lambda x: x, width=3)}
        chains = SHOWN_CHAINS if len(lanes) == 1 else 1
        for i, lane in enumerate(lanes):
            heads = lane.run.position[:chains]
            out[f"heads {i}"] = columns(heads)
            if len(lane.fresh):
                out[f"draws {i}"] = columns(lane.fresh[:, :chains].reshape(-1, 3))
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        return {self._label.id: notes(lanes)}

    def words(self, lanes: Frame) -> str:
        return self.means(lanes, range(self.scene.target.n_values))


def columns(points: Array) -> tuple[Array, ...]:
    """The coordinates of points (n, 3), of those that are numbers."""
    points = points[np.isfinite(points).all(axis=1)]
    return points[:, 0], points[:, 1], points[:, 2]
