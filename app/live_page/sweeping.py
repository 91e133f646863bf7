"""The sweep of a lesson's step on a live page: its points at reduced length, its claims, and its figure."""

import json
from collections.abc import Sequence
from typing import Any

from bokeh.models import Model

from sgmcmc_lab.app.lesson.sweeping import SweepPicture
from sgmcmc_lab.app.live_page.claims import can_measure, cells, described_measure, exact, follows, goals, per_root
from sgmcmc_lab.app.live_page.figures import smaller
from sgmcmc_lab.app.views.embedding import standalone
from sgmcmc_lab.app.views.theme import LIGHT, in_dark, palette_in
from sgmcmc_lab.lessons import sweep as sweeps
from sgmcmc_lab.lessons.figures import axis_values, prepare
from sgmcmc_lab.lessons.lesson import VALUE, Claim, Point, Step
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import Measure
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.live import description

MOST_BYTES = 200_000
"""Bytes of a sweep's points, as JSON."""


def is_possible(step: Step) -> bool:
    """Whether a live page can make the runs of a step's sweep, which must all be on the step's own target."""
    sweep = step.sweep
    if sweep is None or any(axis.name == "temperature" or axis.name.startswith("target.") for axis in sweep.axes):
        return False
    points, measure = _points(step), MEASURES[sweep.measure.key](**sweep.measure.values())
    if not can_measure(measure, points[0].spec):
        return False
    one = _point(points[0], measure)
    return len(points) * len(json.dumps(one)) <= MOST_BYTES


def specs(step: Step) -> list[RunSpec]:
    """The runs of a sweep, whose functions the page needs."""
    return [point.spec for point in _points(step)] if is_possible(step) else []


def _points(step: Step) -> tuple[Point, ...]:
    assert step.sweep is not None and step.quick_spec is not None
    return step.sweep.points(step.quick_spec, True)


def claims_of(step: Step) -> list[int]:
    """The places of the claims about the sweep, if the page can make it."""
    return [i for i, claim in enumerate(step.claims) if claim.reduction is not None] if is_possible(step) else []


def described(step: Step, names: Sequence[str]) -> dict[str, Any]:
    """A sweep's data for the page's script: those for the host, and the figure with its sources."""
    assert step.sweep is not None
    measure = MEASURES[step.sweep.measure.key](**step.sweep.measure.values())
    points = _points(step)
    axis = sweeps.axis_of(step)
    values, numeric, log = axis_values(step, axis)
    prepare("bokeh")
    picture = SweepPicture(step, [], names, LIGHT)
    # A live page writes captions as text.
    for caption in picture.captions:
        caption.visible = False
    picture.figure.y_range.range_padding = picture.figure.x_range.range_padding
    figure = smaller(standalone(picture.figure))
    light, dark = dressed(picture.figure)
    sources = [source.id for source in picture.sources]
    return {
        "given": {
            "points": [_point(point, measure) for point in points],
            "seeds": step.quick_seeds,
            "measure": described_measure(measure),
            "quantity": step.sweep.quantity,
            "perRoot": per_root(measure, points[0].spec),
            "cells": cells(measure, points[0].spec),
            "claims": [_claim(step.claims[i], i) for i in claims_of(step)],
            "axis": axis,
            "values": values,
            "numeric": numeric,
            "log": log,
            "sizes": step.sweep.quantity != VALUE,
            "names": list(names),
        },
        "figure": figure,
        "sources": [sources[k : k + 3] for k in range(0, len(sources), 3)],
        "light": light,
        "dark": dark,
    }


def dressed(figure: Model) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The colours of a figure that differ between the themes, in the light one and in the dark one, by the model's id.

    The figure keeps the dark colours.
    """
    before = _colours(figure)
    _darken(figure)
    after = _colours(figure)
    changed = {
        key: [name for name, colour in listed.items() if before[key].get(name, colour) != colour]
        for key, listed in after.items()
    }
    light, dark = (
        {key: {name: of[key][name] for name in names} for key, names in changed.items() if names}
        for of in (before, after)
    )
    return light, dark


def _colours(figure: Model) -> dict[str, dict[str, Any]]:
    """The texts of all models of a figure, including colours, and the palettes, by the model's id."""
    return {
        model.id: {
            name: list(plain) if name == "palette" else plain
            for name, value in model.properties_with_values().items()
            if isinstance(plain := getattr(value, "value", value), str) or name == "palette"
        }
        for model in figure.references()
    }


def _darken(figure: Model) -> None:
    """Give a figure of the light theme the colours of the dark one."""
    known = in_dark()
    for model in figure.references():
        for name, value in model.properties_with_values().items():
            colour = getattr(value, "value", value)
            if name == "palette":
                model.palette = palette_in(colour, known)
            elif isinstance(colour, str) and colour in known:
                setattr(model, name, known[colour])


def _point(point: Point, measure: Measure) -> dict[str, Any]:
    run = description.of_run(point.spec)
    del run["target"]
    return {
        "lane": point.lane - 1,
        "values": dict(point.values),
        "run": run,
        "exact": exact(measure, point.spec),
        "follows": follows(measure, point.spec, point.spec),
        "time": float(point.spec.make_sampler().time_per_step),
    }


def _claim(claim: Claim, place: int) -> dict[str, Any]:
    return {
        "place": place,
        "lanes": [number - 1 for number in claim.lanes],
        "quantity": claim.quantity,
        "reduction": claim.reduction,
        "where": dict(claim.where),
        **goals(claim),
    }
