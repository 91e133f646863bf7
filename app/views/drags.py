"""Drags in figures: a chain is thrown, a well of the target is moved, an energy is drawn.

The page itself shows what a drag does; the server is told at its end, as :mod:`app.page.pointer_events` says.
"""

from collections.abc import Sequence
from typing import Any

from bokeh.events import Pan, PanEnd, PanStart
from bokeh.models import Arrow, ColumnDataSource, CustomJS, Model, Toggle, VeeHead

from sgmcmc_lab.app.views.base import CURVE, HANDLE, MOST, THROW, View

NEAR = 16
"""A drag that begins so many pixels from a handle, or nearer, moves it."""
STALE = 1500
"""Milliseconds after which a figure that is still there shows again what is true: the drag was refused."""

OF_A_MOUSE = "<span class='of-a-mouse'>{}</span>"
"""Words that are not there where there is but a finger, whose drag scrolls the page."""

# The arrow's tags hold the dragged object: -1 for a chain. A finger's drag scrolls the page.
_BEGIN = """
if (matchMedia("(pointer: coarse)").matches || modes.some((mode) => mode.active)) return
const {x, y} = cb_obj
const wide = figure.inner_width / (figure.x_range.end - figure.x_range.start)
const high = figure.inner_height / (figure.y_range.end - figure.y_range.start)
let held = -1
for (const {data} of handles) {
  const far = Array.from(data.x, (_, i) => Math.hypot((data.x[i] - x) * wide, (data.y[i] - y) * high))
  const nearest = far.indexOf(Math.min(...far))
  if (far[nearest] <= near) held = nearest
}
arrow.setv({tags: [held]}, {sync: false})
if (held >= 0 || throws) arrow.setv({data: {x0: [x], y0: [y], x1: [x], y1: [y]}}, {sync: false})
"""
# An object dragged beyond the figure stays at its edge.
_INSIDE = "const inside = (at, {start, end}) => Math.min(Math.max(at, start), end)"
_GO_ON = (
    _INSIDE
    + """
const {x0, y0} = arrow.data
if (!x0.length) return
const [held] = arrow.tags, {x, y} = cb_obj
if (held < 0) {
  arrow.setv({data: {x0, y0, x1: [x], y1: [flat ? y0[0] : y]}}, {sync: false})
} else {
  const xs = [...handles[0].data.x], ys = [...handles[0].data.y]
  xs[held] = inside(x, figure.x_range)
  ys[held] = inside(y, figure.y_range)
  handles[0].setv({data: {x: xs, y: ys}}, {sync: false})
}
"""
)
_END = (
    _INSIDE
    + """
const {x0, y0} = arrow.data
if (!x0.length) return
const [held] = arrow.tags, {x, y} = cb_obj
arrow.setv({data: {x0: [], y0: [], x1: [], y1: []}}, {sync: false})
const tell = (...detail) => document.dispatchEvent(new CustomEvent("lab-touch", {detail}))
if (held < 0) {
  tell("throw", key, x0[0], y0[0], x, y)
} else {
  setTimeout(() => handles[0].setv({data: {x: [...first_x], y: [...first_y]}}, {sync: false}), stale)
  tell("handle", key, held, inside(x, figure.x_range), inside(y, figure.y_range))
}
"""
)


def take_drags(
    view: View,
    figure: Any,
    handles: ColumnDataSource | None = None,
    flat: bool = False,
    modes: Sequence[Model] = (),
) -> None:
    """Let a drag in the figure throw the chains, where one carries a momentum, or move one of the ``handles`` (x, y).

    ``flat``: only how far to the right it goes counts. Meanwhile none of ``modes`` may be active.
    """
    throws, colours = view.scene.throws > 0, view.scene.colours
    if (view.scene.live and not throws) or (not throws and handles is None):
        return
    arrow = ColumnDataSource({name: [] for name in ("x0", "y0", "x1", "y1")}, tags=[-1])
    if throws:
        figure.add_layout(
            Arrow(
                end=VeeHead(size=11, fill_color=colours.text, line_color=colours.text),
                source=arrow,
                x_start={"field": "x0"},
                y_start={"field": "y0"},
                x_end={"field": "x1"},
                y_end={"field": "y1"},
                line_color=colours.text,
                line_width=3,
                level="annotation",
            )
        )
        view.gestures.add(THROW)
        view.thrown_along = arrow.id
        if view.scene.live:
            return
        view.click = view.click.removesuffix(" there") + OF_A_MOUSE.format(", drag: throw")
    if handles is not None:
        view.gestures.add(HANDLE)
    held = [] if handles is None else [handles]
    first = {f"first_{name}": [] if handles is None else list(handles.data[name]) for name in "xy"}
    args = {"key": view.key, "figure": figure, "arrow": arrow, "handles": held, "modes": list(modes)}
    figure.js_on_event(PanStart, CustomJS(args={**args, "near": NEAR, "throws": throws}, code=_BEGIN))
    figure.js_on_event(Pan, CustomJS(args={**args, "flat": flat}, code=_GO_ON))
    figure.js_on_event(PanEnd, CustomJS(args={**args, **first, "stale": STALE}, code=_END))


_DRAW = """
if (!mode.active) return
const {x, y} = cb_obj.event_name === "panstart" ? {x: [], y: []} : ink.data
ink.setv({data: {x: [...x, cb_obj.x], y: [...y, cb_obj.y]}}, {sync: false})
"""
_DRAWN = """
if (!mode.active) return
const {x, y} = ink.data
const n = Math.min(x.length, most)
const kept = Array.from({length: n}, (_, i) => Math.round(i * (x.length - 1) / Math.max(n - 1, 1)))
mode.active = false
setTimeout(() => ink.setv({data: {x: [], y: []}}, {sync: false}), stale)
document.dispatchEvent(new CustomEvent("lab-touch", {detail: ["curve", key, ...kept.flatMap((i) => [x[i], y[i]])]}))
"""
# While it draws, a finger does not scroll the page.
_MODE = """
figure.setv({styles: {"touch-action": mode.active ? "none" : "auto"}}, {sync: false})
mode.setv({label: mode.active ? "Draw from left to right" : label}, {sync: false})
"""


def take_curve(view: View, figure: Any, label: str) -> Toggle:
    """A button after which a drag in the figure draws a curve."""
    colours = view.scene.colours
    ink = ColumnDataSource({"x": [], "y": []})
    figure.line("x", "y", source=ink, line_color=colours.lanes[2], line_width=3, line_cap="round", line_join="round")
    # Thrice, to outdo what Bokeh says of a button that is pressed or has the pointer on it: white, also on a dark page.
    look = f".bk-btn.bk-btn.bk-btn {{ background: {colours.surface}; color: {colours.text}; "
    look += f"border: 1px solid {colours.faint}; padding: 1px 8px; font-size: 13px; }}"
    mode = Toggle(label=label, width_policy="min", height=26, margin=0, stylesheets=[look])
    args = {"key": view.key, "figure": figure, "ink": ink, "mode": mode}
    for event in (PanStart, Pan):
        figure.js_on_event(event, CustomJS(args=args, code=_DRAW))
    figure.js_on_event(PanEnd, CustomJS(args={**args, "most": MOST[CURVE] // 2, "stale": STALE}, code=_DRAWN))
    mode.js_on_change("active", CustomJS(args={**args, "label": label}, code=_MODE))
    view.gestures.add(CURVE)
    return mode
