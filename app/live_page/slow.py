"""Steps in their parts in a live page: recorded when the file is made, for what takes a step apart is plain Python."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Frame, LaneFrame, Playing, View
from sgmcmc_lab.app.views.steps import colours_of, numbers_of
from sgmcmc_lab.app.views.theme import DARK, LIGHT
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.step_terms import ChainStep, Part, Play, TooLongError

STEPS = 12
"""Recorded steps of the first chain, from the experiment's start, if they fit."""
MOST_BYTES = 20_000
"""The most bytes of the steps of a kind of lane, as JSON."""
POINTS = 17
"""The most points of the path of a part, with both of its ends."""
DIGITS = 4
"""Significant digits of a number in a picture."""
RECORDED = ("parts", "here", "heads 0", "heads 0 0", "heads 1 0", "frames 0", "velocity 0")
"""The feeds that show a step and the chains before it."""


def names_of(alone: Sequence[Experiment]) -> tuple[str, ...]:
    """The parts of the steps of these experiments' first lanes, each once."""
    return tuple(dict.fromkeys(name for one in alone for name in SAMPLERS[one.lanes[0].sampler.key].parts))


def palette(names: tuple[str, ...]) -> dict[str, Any]:
    """The page's data about parts, besides the steps: their names, and the colour of each in both themes."""
    return {"names": names, "light": colours_of(names, LIGHT), "dark": colours_of(names, DARK)}


def described(
    alone: Experiment, names: tuple[str, ...], views: Sequence[View], coordinate: int
) -> list[dict[str, Any]]:
    """The first steps of the first chain of an experiment's first lane, each in words and in these views.

    The parts of step k are drawn from the second k to k + 1. The list is empty where a step is too long to be recorded.
    """
    run = Run(alone.runs()[0])
    reach = getattr(run.sampler, "step_size", 0.0)
    out: list[dict[str, Any]] = []
    left = MOST_BYTES
    try:
        play = Play(run)
        while len(out) < STEPS:
            run.coordinates[:], run.momentum[:] = play.theta, play.momentum
            step = play.step()
            if not np.isfinite(step.end).all():
                break
            frame = Frame([LaneFrame(run, 0.0, np.zeros((0, 1, step.dim)), np.zeros(0))])
            windows = tuple((float(k), k + 1.0) for k in range(len(step.parts)))
            frame.playing = Playing(_thinned(step), windows, reach)
            said = [f"{part.name} {numbers_of(part, step, coordinate)}".strip() for part in step.parts]
            kinds = [names.index(part.name) for part in step.parts]
            found = {"said": said, "kinds": kinds, "views": {view.key: _drawn(view, frame) for view in views}}
            left -= len(json.dumps(found))
            if left < 0:
                break
            out.append(found)
    except TooLongError:
        # Steps that were recorded before a long one stay.
        pass
    shown = {key for step in out for key, drawn in step["views"].items() if drawn["feeds"]["parts"][0]}
    for one in out:
        one["views"] = {key: drawn for key, drawn in one["views"].items() if key in shown}
    return out if shown else []


def _thinned(step: ChainStep) -> ChainStep:
    """The same step with fewer points on its paths."""

    def thinned(part: Part) -> Part:
        places = np.linspace(0, len(part.path) - 1, min(POINTS, len(part.path))).round().astype(int)
        return part._replace(path=part.path[places])

    return step._replace(parts=tuple(map(thinned, step.parts)))


def _drawn(view: View, frame: Frame) -> dict[str, Any]:
    """The arrays of a step in a view, and how much longer than the step its arrows are, where they are."""
    data = view.compute(frame)
    feeds = {name: [[_rounded(x) for x in column] for column in data[name]] for name in RECORDED if name in data}
    lines = [line for text in view.captions(frame).values() for line in text.split("\n")]
    return {"feeds": feeds, "note": next((line for line in lines if line.startswith("arrows ")), "")}


def _rounded(x: float) -> float:
    return float(f"{x:.{DIGITS}g}")
