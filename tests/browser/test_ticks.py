"""The labels of ticks as a browser writes them: no two neighbours are equal, no zero has a sign, an axis has powers
of ten or other numbers, not both, and the labels of a sweep have room.
"""

import json
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from bokeh.models import Axis, BasicTicker, BasicTickFormatter, LinearAxis, NumeralTickFormatter, Plot, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from sgmcmc_lab.app.lesson.sweeping import SweepPicture
from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import Frame, Scene
from sgmcmc_lab.app.views.embedding import standalone
from sgmcmc_lab.app.views.recipes import layouts_of
from sgmcmc_lab.app.views.scales import Scale
from sgmcmc_lab.app.views.theme import LIGHT
from sgmcmc_lab.lessons import figures as figures_of_lessons
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.lessons.sweep import Row
from sgmcmc_lab.samplers import Experiment, Run
from tests.browser import IDLE, new_context
from tests.helpers.course import LESSONS

LABELS = """() => {
  const out = []
  const visit = (view) => {
    for (const axis of view.axis_views ?? []) if (axis.model.visible) {
      const items = axis.compute_labels(axis.tick_coords.major[axis.dimension]).items
      const words = items.map((one) => one.base ? `${one.base.text}^${one.expo.text}` : one.text)
      out.push([view.model.tags[0], axis.model.id, words])
    }
    for (const child of view.children()) visit(child)
  }
  for (const root of Bokeh.index.roots) visit(root)
  return out
}"""
DRAW = """async (figures) => {
  for (const one of Bokeh.documents) one.clear()
  Bokeh.documents.length = 0
  Bokeh.index.clear()
  document.body.replaceChildren()
  for (const figure of figures) {
    const place = document.body.appendChild(document.createElement("div"))
    place.id = `place-${document.body.children.length}`
    await Bokeh.embed.embed_item(JSON.parse(figure), place.id)
  }
}"""
"""Instead of the figures that are there; a page keeps BokehJS, most of the time of a drawing."""
MOMENTUM = {"layout": "theta_r", "diffusion_entries": ("0", "0", "1"), "curl_entries": ("-1",)}
EXPERIMENTS = {
    "line": ("double_well", [{"layout": "theta"}, "sghmc"]),
    "momentum": ("double_well", [MOMENTUM]),
    "plane": ("quartic", ["msgnht", "hmc"]),
    "simplex": ("sparse_dirichlet", ["scir", "sgrld"]),
    "inside the simplex": ("dense_dirichlet", ["scir"]),
    "positive": ("lognormal", ["geometric_ou"]),
    "circle": ("circle_mixture", ["sggmc", "gmc"]),
    "torus": ("mises_posterior", ["gsgnht"]),
    "data": ("linear_regression", ["sgld", "hmc"]),
}
SLOW = ("order", "moments", "mgf")
"""Views whose work in the background takes seconds; their axes are shown as they are at first."""
HEIGHTS = (6e-6, 0.01, 1.0, 4e6)
"""Heights of vertical axes that frames move: each may become as short or as long."""


@pytest.fixture(scope="module")
def with_bokeh(chromium):
    context = new_context(chromium)
    made = context.new_page()
    for script in Resources(mode="inline", components=["bokeh", "bokeh-widgets"]).js_raw:
        made.add_script_tag(content=script)
    yield made
    context.close()


@pytest.fixture
def page(with_bokeh, page_log):
    """A page with BokehJS, which tests have one after the other."""
    page_log.watch(with_bokeh)
    yield with_bokeh
    page_log.forget(with_bokeh)


def figures(name, axis):
    """The views of an experiment at its start, after a step, and after hundreds of them, with their data."""
    target, samplers = EXPERIMENTS[name]
    lanes = [{"sampler": s if isinstance(s, str) else {"key": "recipe", "params": s}} for s in samplers]
    experiment = Experiment.from_dict({"target": target, "lanes": lanes, "n_chains": 4, "seed": 3})
    records = [LaneRecord(Run(spec)) for spec in experiment.runs()]
    titles = tuple(record.run.sampler.title for record in records)
    scene = Scene(records[0].run.target, titles, 0, axis, False, layouts_of(experiment))
    views = [VIEWS[key](scene) for key in fitting(experiment)]
    for i, record in enumerate(records):
        record.run.advance(1)
        # The same clock in every run.
        record.run.seconds = 2e-5 * (i + 1)
        record.record(rests=True)
    yield views
    frame = Frame(record.frame(axis) for record in records)
    yield [shown(view, frame) for view in views]
    for i, record in enumerate(records):
        record.run.advance(600)
        record.run.seconds = 1e-3 * (i + 1)
        record.record(rests=True)
    frame = Frame(record.frame(axis) for record in records)
    yield [shown(view, frame) for view in views]


def shown(view, frame):
    """The view with what it computes of a frame."""
    if view.key not in SLOW:
        view.background(frame)
    for name, columns in view.compute(frame).items():
        feed = view.feeds[name]
        if feed.operation == "range":
            feed.model.start, feed.model.end = map(float, columns[0])
        elif feed.operation != "play":
            feed.model.data = dict(zip(feed.columns, columns, strict=True))
    return view


def faults(page, views):
    """The axes with a tick that reads as its neighbour, or as −0, or with two kinds of labels: (view, labels)."""
    for view in views:
        for plot in plots_of(view):
            plot.update(tags=[view.key], sizing_mode="fixed", width=420, height=220)
        view.figure.sizing_mode = "fixed"
    page.evaluate(DRAW, [json.dumps(standalone(view.figure)) for view in views])
    page.wait_for_function(IDLE)
    found = page.evaluate(LABELS)
    drawn = {view.key for view in views if any(axis.visible for axis in view.figure.select({"type": Axis}))}
    assert {key for key, *_ in found} == drawn
    return [
        (key, labels)
        for key, _, labels in found
        if any(a == b for a, b in pairwise(labels))
        or any(one.strip("-−0.") == "" and one[0] in "-−" for one in labels)
        or len({any(c in "⁰¹²³⁴⁵⁶⁷⁸⁹" for c in one) for one in labels}) > 1
    ]


@pytest.mark.parametrize("axis", ["steps", "seconds"])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_two_neighbours_read_alike(page, name, axis):
    """From the first step on, on the axis of steps, and those with an axis of seconds on that. A view is drawn again
    where its ranges have changed.
    """
    before = {}
    for views in figures(name, axis):
        some = [view for view in views if axis == "steps" or has_seconds(view)]
        assert some
        other = [view for view in some if ranges(view) is None or before.get(view.key) != ranges(view)]
        assert other == some or before
        assert not other or faults(page, other) == []
        before = {view.key: ranges(view) for view in some}


def plots_of(view):
    return [one for one in {view.figure, *view.figure.references()} if isinstance(one, Plot)]


def ranges(view):
    """The ranges of its plots, by which ticks and their labels go; None where data make one."""
    found = {
        one
        for plot in plots_of(view)
        for one in (plot.x_range, plot.y_range, *plot.extra_x_ranges.values(), *plot.extra_y_ranges.values())
    }
    fixed = all(type(one) is Range1d for one in found)
    return {one.id: (one.start, one.end) for one in found} if fixed else None


def has_seconds(view):
    """Whether an axis of the view is labelled with seconds."""
    return any("seconds" in str(one.axis_label) for one in view.figure.select({"type": Axis}))


def stretched(views, height):
    """The views with their moving vertical axes so long."""
    for view in views:
        moving = {feed.model for feed in view.feeds.values() if feed.operation == "range"}
        for plot in plots_of(view):
            if plot.y_range in moving and isinstance(plot.yaxis[0], LinearAxis):
                plot.y_range.update(start=-0.4 * height, end=0.6 * height)
    return views


@pytest.mark.parametrize("height", HEIGHTS)
def test_short_and_long_axes_have_the_digits_that_they_need(page, height):
    views = line()
    heights = [ranges(view) for view in views]
    pairs = zip(stretched(views, height), heights, strict=True)
    moved = [view for view, before in pairs if before is None or ranges(view) != before]
    assert len(moved) > 1 and faults(page, moved) == []


@cache
def line():
    """The views of a line after hundreds of steps, for axes of any length."""
    *_, views = figures("line", "steps")
    return views


def test_ticks_that_read_alike_are_seen(page):
    """The planted fault: two digits, whatever the axis needs; and the form of numbers without its digits."""
    *_, views = figures("line", "steps")
    for view in views:
        for axis in view.figure.select({"type": Axis}):
            if type(axis.formatter) is BasicTickFormatter:
                axis.formatter = BasicTickFormatter(precision=2)
    found = faults(page, stretched(views, 0.01))
    assert {"stationarity", "marginal"} <= {key for key, _ in found}
    assert any("−0" in labels for _, labels in found)
    _, views, _ = figures("torus", "seconds")
    for view in views:
        for axis in view.figure.select({"type": Axis}):
            if type(axis.formatter) is NumeralTickFormatter:
                axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    assert {key for key, _ in faults(page, views)} >= {"trace", "thermostat"}


BOXES = """() => {
  const out = [], pen = document.createElement("canvas").getContext("2d")
  pen.font = "12px helvetica"
  const visit = (view) => {
    for (const axis of view.axis_views ?? []) {
      const k = axis.dimension, coords = axis.tick_coords.major[k]
      const scale = k === 0 ? axis.coordinates.x_scale : axis.coordinates.y_scale
      const labels = axis.compute_labels(coords).items.map((one, i) => [scale.compute(coords[i]), one.text]).filter(([, text]) => text)
      out.push(labels.map(([at, text]) => [at, k === 0 ? pen.measureText(text).width : 12, text]).sort((a, b) => a[0] - b[0]))
    }
    for (const child of view.children()) visit(child)
  }
  for (const root of Bokeh.index.roots) visit(root)
  return out
}"""


def crowded(page, figure):
    """The neighbouring labels of a figure that overlap on a phone, and how many labels each axis has."""
    figure.update(sizing_mode="fixed", width=366, height=270)
    page.evaluate(DRAW, [json.dumps(standalone(figure))])
    page.wait_for_function(IDLE)
    found = page.evaluate(BOXES)
    pairs = [pair for boxes in found for pair in pairwise(boxes)]
    close = [(a[2], b[2]) for a, b in pairs if b[0] - a[0] < (a[1] + b[1]) / 2 + 2]
    return close, [len(boxes) for boxes in found]


def swept(key, low, high, live=False):
    """The picture of a lesson's first sweep whose results are between two numbers."""
    figures_of_lessons.prepare("bokeh")
    step = next(step for step in LESSONS[key].steps if step.sweep is not None)
    points = step.sweep.points(step.spec, False)
    sizes = np.geomspace(low, high, len(points))
    rows = [Row(point, (Estimate(float(size)),)) for point, size in zip(points, sizes, strict=True)]
    figure = SweepPicture(step, rows, step.names, LIGHT).figure
    if live:
        # A live page has no captions in the figure.
        figure.y_range.range_padding = figure.x_range.range_padding
    return figure


SWEPT = ["control-variates", "step-size", "boundary", "bias-variance"]


@pytest.mark.parametrize(("low", "high"), [(1e-7, 0.3), (0.01, 0.6), (0.3, 0.6), (12.0, 4500.0)])
@pytest.mark.parametrize("key", SWEPT)
def test_the_labels_of_a_sweep_have_room_on_a_phone(page, key, low, high):
    """On log axes of few and of many powers of ten; each axis has two labels at least."""
    for live in (False, True):
        close, counts = crowded(page, swept(key, low, high, live))
        assert close == [] and min(counts) >= 2


def test_crowded_labels_are_seen(page, monkeypatch):
    """Planted faults: all values of the swept parameter have labels; the vertical axis has Bokeh's own."""
    monkeypatch.setattr(figures_of_lessons, "_apart", lambda values: [(value, f"{value:g}") for value in values])
    monkeypatch.setattr(figures_of_lessons, "thin_labels", lambda _: None)
    assert ("0.4", "0.45") in crowded(page, swept("step-size", 0.01, 0.6))[0]
    assert ("0.3", "0.25") in crowded(page, swept("bias-variance", 0.01, 0.6, live=True))[0]


SPANS = [(1e-290, 100.0), (1e-3, 1e3), (0.2, 400.0), (0.2, 30.0), (0.3, 11.0), (0.8, 1.3), (2.0, 2.01), (0.02, 0.06)]
"""The ends of axes of positive values, from three hundred decades to a five-hundredth of one."""


def log_axes(span):
    """An empty plot with a log axis at its bottom and at its left."""
    made = figure(x_range=Range1d(*np.log10(span)), y_range=Range1d(*np.log10(span)))
    for axis in (made.xaxis, made.yaxis):
        Scale(True, span).apply(axis)
    return made


def not_round(page):
    """The labels of the drawn log axes with more digits than one that are not zero."""
    found = {text for _, _, labels in page.evaluate(LABELS) for text in labels if text[:2] != "10"}
    return sorted(text for text in found if len(text.replace(".", "").strip("0")) > 1)


@pytest.mark.parametrize("span", SPANS, ids=str)
def test_a_log_axis_has_round_numbers_with_room_on_a_phone(page, span):
    """From the longest axis to a short part of a decade, where the numbers differ in their last digit."""
    close, counts = crowded(page, log_axes(span))
    assert close == [] and min(counts) >= 3
    (_, _, first), (_, _, second) = page.evaluate(LABELS)
    assert first == second and len(set(first)) == len(first)
    if span[1] > 2 * span[0]:
        assert not_round(page) == []


def test_odd_numbers_on_a_log_axis_are_seen(page):
    """Planted fault: the ticks of a linear axis, which reads 0.32, 1, 3.2 on less than two decades."""
    made = log_axes((0.2, 30.0))
    for axis in made.select({"type": Axis}):
        axis.ticker = BasicTicker()
    crowded(page, made)
    assert "3.16228" in not_round(page)
