"""Views that need Python, as pictures of a run made with the file: on a live page they do not move."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Label

from sgmcmc_lab.app.live.lanes import Progress
from sgmcmc_lab.app.live.lanes.densities import DensityLanes
from sgmcmc_lab.app.live_page.figures import Drawn
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Scene, View

FRAMES = 40
"""Frames of the run, so that a view that follows a run shows its course."""
MOST_STEPS = 4_000
"""Steps of the run in each lane."""
MOST_TURNS = 400
"""Rounds of a view's slow work, which in most views ends earlier."""


def recorded(state: AppState, scene: Scene, keys: Sequence[str]) -> list[tuple[Drawn, list[str]]]:
    """These views of an experiment, in the light theme, each with its captions."""
    if not keys:
        return []
    views = {key: VIEWS[key](scene) for key in keys}
    lanes = DensityLanes.prepare(Progress(), state.experiment)
    steps = min(state.experiment.n_steps, MOST_STEPS)
    for part in np.diff(np.linspace(0, steps, FRAMES + 1).astype(int)):
        for record in lanes.records:
            record.run.advance(int(part))
        frame, now = lanes.frame(state), lanes.whole(state)
        for view in views.values():
            view.background(now)
            show(view, view.compute(frame))
    now, out = lanes.whole(state), []
    for view in views.values():
        for _ in range(MOST_TURNS):
            if not view.background(now):
                break
        show(view, view.compute(now))
        for fill in view.fills:
            fill()
        said, texts = told_apart(view, view.captions(now))
        for model, text in texts.items():
            model.text = text
        out.append((Drawn.of_view(view), [line for line, _ in said]))
    return out


def told_apart(view: View, captions: Mapping[str, str]) -> tuple[list[tuple[str, Any]], dict[Any, str]]:
    """The captions' lines with their colours, which a live page writes above the figure, and the texts inside it."""
    models = {model.id: model for model in view.figure.references()}
    there = [(models[key], text) for key, text in captions.items() if key in models]
    labels = [(model, text) for model, text in there if isinstance(model, Label)]
    said = [(line, model.text_color) for model, text in labels for line in text.split("\n") if line]
    return said, {model: text for model, text in there if not isinstance(model, Label)}


def show(view: View, data: Any) -> None:
    """Write a frame into the figure, as the page does."""
    for name, columns in data.items():
        feed = view.feeds[name]
        if feed.operation == "range":
            feed.model.update(start=float(columns[0][0]), end=float(columns[0][1]))
        elif feed.operation != "play":
            source = feed.model
            assert isinstance(source, ColumnDataSource)
            fresh = dict(zip(feed.columns, columns, strict=True))
            if feed.operation == "stream":
                fresh = {
                    key: np.concatenate([np.asarray(source.data[key]), np.asarray(part)])[-feed.rollover :]
                    for key, part in fresh.items()
                }
            source.data = {**source.data, **{key: np.asarray(part) for key, part in fresh.items()}}
