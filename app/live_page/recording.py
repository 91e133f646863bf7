"""A step on a model of data in a live page: its run at reduced length, recorded when the file is made."""

import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTransform, GlyphRenderer, Label, Model, Plot, Widget

from app.embedding import standalone
from app.lanes import Progress
from app.lanes.models import ModelLanes
from app.live_page.recorded import show, told_apart
from app.live_page.sweeping import dressed
from app.state import AppState
from app.views import VIEWS, fitting
from app.views.base import View
from lessons.lesson import Lesson, Step
from samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

FRAMES = 12
MOST_BYTES = 400_000
"""Bytes of a step's frames as JSON; views beyond this limit are left out."""
DIGITS = 4
"""Significant digits of a number in a picture."""


SAYS = "A recording: the step's run at its reduced length, made with this file. Models of data need Python to run."


def html(step: Step) -> str:
    """The part of a step in which the script shows the recording."""
    name = f"recorded-{step.number}"
    return (
        f"<section class='recording' data-of='{step.number}' aria-label='Recording' hidden><p class='small'>{SAYS}</p>"
        f"<span class='control'><label for='{name}'>Recorded at</label><output for='{name}'></output>"
        f"<input type='range' id='{name}' min='0' max='1' step='1'></span><div class='pictures'></div></section>"
    )


def described(lesson: Lesson, step: Step) -> dict[str, Any] | None:
    """The figures of a step's views, and their contents at each recorded step of the run; None without figures."""
    spec = step.quick_spec
    if spec is None or not spec.of_model:
        return None
    state = AppState(experiment=spec)
    state.place.open(lesson, step.number)
    state.dark = False
    try:
        lanes = ModelLanes.prepare(Progress(), spec, None)
    except SpecError as error:
        log.warning("Step %d of %s is not recorded: %s", step.number, lesson.title, error)
        return None
    scene = replace(lanes.scene(state), live=True)
    built = {key: VIEWS[key](scene) for key in step.views if key in fitting(spec)}
    told = {key: _without_transforms(view) for key, view in built.items()}
    views = {key: view for key, view in built.items() if not _has_code(view)}
    frames: list[dict[str, Any]] = []
    steps = []
    for k in range(FRAMES + 1):
        for run in lanes.runs:
            run.advance(round(run.spec.n_steps * k / FRAMES) - run.steps)
        frame = lanes.frame(state)
        made = {}
        for key, view in list(views.items()):
            view.background(frame)
            with warnings.catch_warnings():
                # The columns of colours and texts are updated below.
                warnings.simplefilter("ignore")
                show(view, view.compute(frame))
            _tell(told[key])
            found = _moment(view, view.captions(frame))
            if found is None:
                del views[key]
            else:
                made[key] = found
        frames.append(made)
        steps.append(max(run.steps for run in lanes.runs))
    left, figures = MOST_BYTES, []
    for key, view in views.items():
        moments = [frame[key] for frame in frames]
        size = len(json.dumps(moments))
        if size > left:
            continue
        left -= size
        for plot in view.figure.select({"type": Plot}):
            # A live page writes captions as text.
            plot.min_border_top = 8
        item = standalone(view.figure)
        light, dark = dressed(view.figure)
        figures.append(
            {"title": view.title, "hint": view.hint, "figure": item, "moments": moments, "light": light, "dark": dark}
        )
    widgets = any(isinstance(model, Widget) for view in views.values() for model in view.figure.references())
    return {"steps": steps, "figures": figures, "widgets": widgets} if figures else None


GLYPHS = ("glyph", "hover_glyph", "muted_glyph", "nonselection_glyph", "selection_glyph")
Told = tuple[ColumnDataSource, str, str, Callable[[Any], str]]
"""A source, one of its columns, the column of colours or texts, and the function from one to the other."""


def _without_transforms(view: View) -> list[Told]:
    """Let glyphs read colours and texts from columns instead of code."""
    out: list[Told] = []
    for renderer in view.figure.select({"type": GlyphRenderer}):
        source = renderer.data_source
        glyphs = [getattr(renderer, name) for name in GLYPHS]
        for glyph in (one for one in glyphs if isinstance(one, Model)):
            for name, value in glyph.properties_with_values(include_defaults=False).items():
                transform = getattr(value, "transform", None)
                told = _told(transform) if isinstance(transform, CustomJSTransform) else None
                if told is not None:
                    column = f"{value.field} {name}"
                    source.data = {**source.data, column: [told(x) for x in source.data[value.field]]}
                    setattr(glyph, name, column)
                    out.append((source, value.field, column, told))
    return out


def _tell(told: list[Told]) -> None:
    """Fill the columns of colours and texts, all those of a source at once, because they must have the same length."""
    fresh: dict[str, tuple[ColumnDataSource, dict[str, list[str]]]] = {}
    for source, column, name, value in told:
        fresh.setdefault(source.id, (source, {}))[1][name] = [value(x) for x in source.data[column]]
    for source, columns in fresh.values():
        source.data = {**source.data, **columns}


def _told(transform: CustomJSTransform) -> Callable[[Any], str] | None:
    """The function of a transform in a model's view: from a number to a text of a list, or to a colour of a palette."""
    if "texts" in transform.args:
        texts = list(transform.args["texts"])
        return lambda x: texts[int(x)] if 0 <= x < len(texts) else ""
    if "mapper" in transform.args:
        palette = list(transform.args["mapper"].palette)
        return lambda x: palette[int(x) % len(palette)]
    return None


def _has_code(view: View) -> bool:
    """Whether a figure contains code as text, which a live page's policy refuses."""
    return any(type(model).__name__.startswith("CustomJS") for model in view.figure.references())


def _moment(view: View, captions: Any) -> dict[str, Any] | None:
    """The present contents of a figure: columns, properties and captions; None for a picture of cells."""
    data: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for feed in view.feeds.values():
        if feed.operation == "range":
            properties[feed.model.id] = {"start": _rounded(feed.model.start), "end": _rounded(feed.model.end)}
        elif isinstance(feed.model, ColumnDataSource):
            columns = {name: [_rounded(x) for x in column] for name, column in feed.model.data.items()}
            if any(isinstance(x, (list, np.ndarray)) for column in columns.values() for x in column):
                return None
            data[feed.model.id] = columns
    for label in view.figure.select({"type": Label}):
        label.visible = label.visible and label.id not in captions
    said, texts = told_apart(view, captions)
    properties |= {model.id: {"text": text} for model, text in texts.items()}
    return {"data": data, "properties": properties, "captions": said}


def _rounded(x: Any) -> Any:
    """A number that JSON can hold, rounded to the digits of a picture."""
    if isinstance(x, (float, np.floating)):
        return float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None
    return x.item() if isinstance(x, np.generic) else x
