"""The figures of a live page: those that a view builds, as BokehJS reads them, in both themes, and smaller."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.models import Axis, ColumnDataSource, GlyphRenderer, Image, Label, LinearColorMapper, Model, Plot, Widget

from app.views import VIEWS
from app.views.base import AXIS_LABELS, Scene, View


def built(key: str, scene: Scene) -> View:
    """A view of the scene, with pictures in so few bytes as they have colours."""
    view = VIEWS[key](scene)
    # Captions are text of the page there, which wraps and is read aloud.
    for label in view.figure.select({"type": Label}):
        label.visible = False
    for plot in _plots(view):
        plot.min_border_top = 8
    for renderer in view.figure.select({"type": GlyphRenderer}):
        # What is turned has numbers of its own.
        if isinstance(renderer.glyph, Image) and not need_widgets([view]):
            _reduce(renderer.data_source, renderer.glyph.color_mapper)
    return view


def _reduce(source: ColumnDataSource, mapper: Any) -> None:
    """Replace a picture's numbers by those of their colours."""
    if not isinstance(mapper, LinearColorMapper):
        return
    n, (name,) = len(mapper.palette), [name for name in source.data if name == "image"]
    pictures = [np.asarray(picture, dtype=float) for picture in source.data[name]]
    share = [(picture - mapper.low) / (mapper.high - mapper.low) * n for picture in pictures]
    source.data = {**source.data, name: [np.clip(np.floor(one), 0, n - 1).astype(np.uint8) for one in share]}
    # A colour is that of half a step above its number, whatever is rounded on the way.
    mapper.low, mapper.high = -0.5, n - 0.5


def need_widgets(views: Sequence[View]) -> bool:
    """Whether a figure has sliders, which are a part of BokehJS of their own."""
    return any(isinstance(model, Widget) for view in views for model in view.figure.references())


def _plots(view: View) -> list[Plot]:
    return [model for model in _models(view.figure) if isinstance(model, Plot)]


def described(view: View) -> dict[str, Any]:
    """What the page needs of a view beside its code: the figure, its feeds, and constants."""
    feeds = {
        name: {"id": feed.model.id, "columns": feed.columns, "operation": feed.operation, "rollover": feed.rollover}
        for name, feed in view.feeds.items()
        if feed.operation != "play"
    }
    item = json_item(view.figure)
    # Definitions of models of every library that this process has loaded; none is in a figure.
    item["doc"]["defs"] = []
    return {
        "title": view.title,
        "hint": view.hint,
        "figure": item,
        "feeds": feeds,
        "data": view.live_data(),
    }


def theme_changes(
    light: Sequence[View], dark: Sequence[View]
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Every property that differs between the same figures in both themes, by the id of the light one's model."""
    to_light: dict[str, dict[str, Any]] = {}
    to_dark: dict[str, dict[str, Any]] = {}
    for one, other in zip(light, dark, strict=True):
        for model, twin in zip(_models(one.figure), _models(other.figure), strict=True):
            # One of the two may have the colour that is a default.
            changed = set().union(*(part.properties_with_values(include_defaults=False) for part in (model, twin)))
            for name in sorted(changed):
                now, then = (_plain(getattr(part, name)) for part in (model, twin))
                if now is not None and now != then:
                    to_light.setdefault(model.id, {})[name] = now
                    to_dark.setdefault(model.id, {})[name] = then
    return to_light, to_dark


def axis_labels(views: Sequence[View]) -> list[tuple[str, str]]:
    """The models and properties that hold the name of the axis that curves are drawn against."""
    names = set(AXIS_LABELS.values())
    return [
        (part.id, "axis_label")
        for view in views
        if view.follows_axis
        for part in _models(view.figure)
        if isinstance(part, Axis) and part.axis_label in names
    ]


def _plain(value: Any) -> Any:
    """A colour, a palette, or a number, as JSON; None for anything else."""
    if isinstance(value, dict) and set(value) <= {"type", "value"}:
        return _plain(value.get("value"))
    if isinstance(value, (str, float, int)):
        return value
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
        return list(value)
    return None


def _models(figure: Model) -> Iterator[Model]:
    """All models of a figure, in an order that only its making decides."""
    return iter(sorted(figure.references(), key=lambda model: int(model.id.removeprefix("p"))))
