"""A run that needs Python, in a live page: pictures at some of its steps, recorded when the file is made."""

import json
import logging
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Label, Plot, Widget

from sgmcmc_lab.app.live.lanes import Progress
from sgmcmc_lab.app.live.lanes.densities import DensityLanes
from sgmcmc_lab.app.live.lanes.models import ModelLanes
from sgmcmc_lab.app.live_page.figures import smaller
from sgmcmc_lab.app.live_page.recorded import show, told_apart
from sgmcmc_lab.app.live_page.sweeping import dressed
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import View
from sgmcmc_lab.app.views.embedding import standalone
from sgmcmc_lab.app.views.theme import LIGHT
from sgmcmc_lab.lessons.lesson import Lesson, Step
from sgmcmc_lab.samplers.parameters import SpecError

log = logging.getLogger("sgmcmc-lab")

FRAMES = 12
MOST_BYTES = 700_000
"""Bytes of a step's frames as JSON; views beyond this limit are left out."""
DIGITS = 4
"""Significant digits of a number in a picture."""
LONG = 500
"""A column with at least this many numbers is packed."""
LEVELS, ABSENT = 65_534, 65_535
"""A packed number is one of this many levels above the smallest, or absent. Halves and quarters are exact."""
MOST_FRAMES = 600
"""A page's recording has at most the steps of this many frames, which the page makes in 20 seconds."""
LONGEST_SECONDS = 8.0
"""A page's recording ends after this computing time, because a class waits for it."""
OF_STEP = "A recording: the step's run at its reduced length, made with this file. Play shows it from its beginning."
OF_PAGE = "A recording of the first {steps:,} steps; a model of data does not run in this page."


def html(number: int, says: str) -> str:
    """The section of step ``number`` in which the script shows the recording."""
    name = f"recorded-{number}"
    return (
        f"<section class='recording' data-of='{number}' aria-label='Recording' hidden><p class='small'>{says}</p>"
        f"<button type='button' class='recorded-play'>Play</button> "
        f"<span class='control'><label for='{name}'>Recorded at</label><output for='{name}'></output>"
        f"<input type='range' id='{name}' min='0' max='1' step='1'></span><div class='pictures'></div></section>"
    )


def of_step(lesson: Lesson, step: Step) -> dict[str, Any] | None:
    """The recording of a lesson's step at its reduced length; None without figures."""
    spec = step.quick_spec
    if spec is None:
        return None
    state = AppState(experiment=spec)
    state.position.open(lesson, step.number)
    state.follow(replace(step, spec=spec))
    try:
        lanes = ModelLanes.prepare(Progress(), spec, None) if spec.of_model else DensityLanes.prepare(Progress(), spec)
    except SpecError as error:
        log.warning("Step %d of %s is not recorded: %s", step.number, lesson.title, error)
        return None
    return _recorded(state, lanes, step.views, [run.spec.burn_in + run.spec.n_steps for run in lanes.runs])


def of_page(state: AppState) -> dict[str, Any]:
    """The recording of a page's experiment in its views, from its start. Raises :class:`SpecError`."""
    lanes = ModelLanes.prepare(Progress(), state.experiment, state.own_data)
    n_steps = [MOST_FRAMES * state.speed] * len(lanes.runs)
    found = _recorded(state, lanes, state.shown_views(), n_steps, LONGEST_SECONDS)
    if found is None:
        raise SpecError("views", ", ".join(state.shown_views()), "none of them can be recorded")
    return found


def _recorded(
    state: AppState, lanes: ModelLanes | DensityLanes, keys: Sequence[str], n_steps: Sequence[int], seconds: float = inf
) -> dict[str, Any] | None:
    """The figures of these views, and their contents at some steps of the runs; None without figures.

    Run k makes ``n_steps[k]`` steps, or fewer if all runs together take longer than ``seconds``.
    """
    state.dark = False
    scene = lanes.scene(state)
    assert scene is not None
    scene = replace(scene, live=True)
    views = {key: VIEWS[key](scene) for key in keys if key in fitting(state.experiment)}
    frames: list[dict[str, Any]] = []
    steps = []
    began = time.thread_time()
    for k in range(FRAMES + 1):
        goals = [round(n * k / FRAMES) for n in n_steps]
        _advance(lanes, goals, began + seconds * max(k, 1) / FRAMES)
        frame = lanes.frame(state)
        made = {}
        for key, view in views.items():
            view.background(frame)
            show(view, view.compute(frame))
            made[key] = _moment(view, view.captions(frame))
        frames.append(made)
        steps.append(max(run.steps for run in lanes.runs))
    left, figures = MOST_BYTES, []
    for key, view in views.items():
        moments = [frame[key] for frame in frames]
        fixed = {
            id_: data for id_, data in moments[0]["data"].items() if all(one["data"][id_] == data for one in moments)
        }
        for moment in moments:
            moment["data"] = {id_: data for id_, data in moment["data"].items() if id_ not in fixed}
        size = len(json.dumps([moments, fixed]))
        if size > left:
            continue
        left -= size
        for plot in view.figure.select({"type": Plot}):
            # A live page writes captions outside the figure, which needs no room for them.
            plot.min_border_top = 8
        for feed in view.feeds.values():
            if isinstance(feed.model, ColumnDataSource):
                # The script writes every moment, also the last one: it would not see a change to what is there already.
                # BokehJS draws an area of steps without a point for ever, so one point of many stays.
                feed.model.data = {name: x[:1] if len(x) > 1 else [] for name, x in feed.model.data.items()}
        item = smaller(standalone(view.figure))
        light, dark = dressed(view.figure)
        figures.append(
            {
                "key": key,
                "title": view.title,
                "hint": view.hint,
                "figure": item,
                "fixed": fixed,
                "moments": moments,
                "light": light,
                "dark": dark,
            }
        )
    widgets = any(isinstance(model, Widget) for view in views.values() for model in view.figure.references())
    return {"steps": steps, "figures": figures, "widgets": widgets} if figures else None


def _advance(lanes: ModelLanes | DensityLanes, goals: Sequence[int], end: float) -> None:
    """Advance the runs to their goals; of a model in turns of one step, until ``end`` but by one turn at least."""
    if isinstance(lanes, DensityLanes):
        for run, goal in zip(lanes.runs, goals, strict=True):
            run.advance(goal - run.steps)
        return
    while left := [run for run, goal in zip(lanes.runs, goals, strict=True) if run.steps < goal and run.next]:
        for run in left:
            run.advance(1)
        if time.thread_time() >= end:
            break


def _moment(view: View, captions: Any) -> dict[str, Any]:
    """The current contents of a figure: columns, properties and captions."""
    data: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for feed in view.feeds.values():
        if feed.operation == "range":
            properties[feed.model.id] = {"start": _rounded(feed.model.start), "end": _rounded(feed.model.end)}
        elif isinstance(feed.model, ColumnDataSource):
            data[feed.model.id] = {name: _column(column) for name, column in feed.model.data.items()}
    for label in view.figure.select({"type": Label}):
        label.visible = label.visible and label.id not in captions
    said, texts = told_apart(view, captions)
    properties |= {model.id: {"text": text} for model, text in texts.items()}
    return {
        "data": data,
        "properties": properties,
        "captions": [(line, _lane(line, colour, view.scene.lanes)) for line, colour in said],
    }


def _lane(line: str, colour: Any, names: Sequence[str]) -> int | None:
    """The lane whose colour in the light theme this is, or, among several, whose name begins the line."""
    if colour in LIGHT.lanes:
        return LIGHT.lanes.index(colour)
    named = [i for i, name in enumerate(names) if line.startswith(name)]
    return max(named, key=lambda i: len(names[i])) if named and len(names) > 1 else None


def _column(column: Any) -> Any:
    """A column as JSON: a list, or where it is long the levels of its numbers as two bytes each, in base64."""
    x = np.asarray(column)
    if len(x) < LONG or x.dtype.kind != "f":
        return [_rounded(one) for one in column]
    good = np.isfinite(x)
    low, high = (float(x[good].min()), float(x[good].max())) if good.any() else (0.0, 0.0)
    levels = np.full(len(x), ABSENT, dtype="<u2")
    levels[good] = np.rint((x[good].astype(float) - low) / ((high - low) or 1.0) * LEVELS)
    return {"levels": b64encode(levels.tobytes()).decode(), "low": low, "high": high}


def _rounded(x: Any) -> Any:
    """A number that JSON can hold, rounded to the digits of a picture."""
    if isinstance(x, (float, np.floating)):
        return float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None
    return x.item() if isinstance(x, np.generic) else x
