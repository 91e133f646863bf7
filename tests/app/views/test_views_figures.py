"""The contents of a figure before a frame: axes, lines at fixed places, what is drawn once. Against a record,
and where images are, against the axes.

Numbers that only set a look (widths, opacities, colours) are left out.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import ColumnDataSource, GlyphRenderer, Image, Line, Model, Plot, Segment, VArea

from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import Scene
from sgmcmc_lab.app.views.recipes import layouts_of
from sgmcmc_lab.app.views.state import BEYOND
from sgmcmc_lab.app.views.theme import FINE
from sgmcmc_lab.samplers import Experiment, Run
from tests.helpers.cases import for_each
from tests.helpers.stages import NAMES, STAGES, experiment_of, summary

RECORDS = Path(__file__).with_name("views_figures.json")
"""Deleted, it is written anew, and Git says what differs."""
LOOK = re.compile(
    r"alpha|color|colour|font|dash|width$|pattern|palette|padding|margin|standoff|spacing|size|border|style|css|"
    r"outline|offset|radius|baseline|sizing|tags|^name$|^tools?|toolbar|logo|html|desc|height$|lod|backend|data$|source"
)
"""Properties that only set a look, or are said elsewhere."""
LONG = 80
"""Points from which on a line is a long one."""
SKIPPED = ("muted_glyph", "nonselection_glyph", "hover_glyph", "selected", "view", "title")
"""Models that these properties name are copies of the glyph, or say nothing."""


def plain(value):
    """A property's value as JSON has it; None for a model, which is said where it is met."""
    if isinstance(value, Field):
        return f"field {value.field}"
    if isinstance(value, Value):
        return plain(value.value)
    if isinstance(value, list | tuple | np.ndarray):
        column = [one for one in value if not isinstance(one, Model)]
        long = len(column) > 12 and not isinstance(column[0], str)
        # An image has no number outside of its disc.
        return summary(np.nan_to_num(np.ravel(column))) if long else [plain(one) for one in column] or None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return float(value) if isinstance(value, float) else value if isinstance(value, str | int | bool) else None


def said(root):
    """The figure's models in the order in which they were made, each by its kind and what is set of it."""
    models = sorted(root.references(), key=lambda one: int(re.sub(r"\D", "", one.id) or 0))
    left_out = {getattr(model, name, None) for model in models for name in SKIPPED}
    out = []
    for model in models:
        if model in left_out or type(model).__name__ in ("Selection", "CDSView", "Grid"):
            continue
        if isinstance(model, ColumnDataSource):
            kept = {name: plain(column) for name, column in model.data.items() if len(column)}
        else:
            values = model.properties_with_values(include_defaults=False, include_undefined=False)
            kept = {name: plain(value) for name, value in sorted(values.items()) if not LOOK.search(name)}
        kept = {name: value for name, value in kept.items() if value not in (None, "", "field x", "field y")}
        if kept:
            out.append([type(model).__name__, kept])
    return out


def same(a, b):
    """Whether two records are, to 1e-7 of their numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float | int) and isinstance(b, float | int):
        return a == pytest.approx(b, rel=1e-7, abs=1e-9)
    return a == b


def figures(name):
    """The figures of all views of a stage."""
    *_, axis, coordinate = STAGES[name]
    experiment = experiment_of(name)
    scene = Scene(Run(experiment.runs()[0]).target, NAMES, coordinate, axis, False, layouts_of(experiment))
    return {key: said(VIEWS[key](scene).figure) for key in fitting(experiment)}


def staged(target, samplers):
    """An experiment with these lanes, keys of samplers or parameters of recipes, and what its views are built for."""
    lanes = [{"sampler": s if isinstance(s, str) else {"key": "recipe", "params": s}} for s in samplers]
    experiment = Experiment.from_dict({"target": target, "lanes": lanes})
    return experiment, Scene(experiment.make_target(), NAMES[: len(lanes)], 0, "steps", False, layouts_of(experiment))


MOMENTUM = {"layout": "theta_r", "diffusion_entries": ("0", "0", "1"), "curl_entries": ("-1",)}
# The target, the samplers, and the views that have an image.
PICTURES = {
    "recipes": ("quartic", [{"layout": "theta"}] * 2, {"state", "stationarity", "written", "evolution", "modes"}),
    "a momentum": ("double_well", [MOMENTUM], {"stationarity", "written", "evolution", "modes"}),
    "a sphere": ("fisher", ["gsgnht"], {"globe"}),
    "a torus": ("mises_posterior", ["gsgnht"], {"torus"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_an_image_is_where_its_axes_say(name):
    """From end to end: what is seen at a place is what was computed for it."""
    target, samplers, keys = PICTURES[name]
    experiment, scene = staged(target, samplers)
    with_images = set()
    for cls in [VIEWS[key] for key in fitting(experiment)]:
        for plot in cls(scene).figure.select({"type": Plot}):
            frame = (plot.x_range.start, plot.x_range.end), (plot.y_range.start, plot.y_range.end)
            if cls.key == "torus":
                # Beside the map are the marginals.
                frame = [column.axis for column in scene.target.columns[:2]]
            elif plot.match_aspect:
                # Both axes have the same scale, and may show more.
                frame = [column.axis for column in scene.target.columns[:2]]
            elif cls.key == "globe":
                frame = [(-1, 1)] * 2
            for glyph in (r.glyph for r in plot.select({"type": GlyphRenderer}) if isinstance(r.glyph, Image)):
                with_images.add(cls.key)
                corner, size = np.array([glyph.x, glyph.y]), np.array([glyph.dw, glyph.dh])
                low, high = np.transpose(frame)
                if cls.key == "evolution":
                    # Its cells are whole blocks of a grid: it may begin and end beyond. They have a test of their own.
                    assert (corner <= low + 1e-9).all() and (corner + size >= high - 1e-9).all()
                    continue
                # The density is shaded beyond its axes, too.
                beyond = BEYOND * (high - low) if cls.key == "state" else 0.0
                np.testing.assert_allclose(
                    [corner, corner + size], [low - beyond, high + beyond], atol=1e-9, err_msg=cls.key
                )
    assert with_images == keys


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("target", ["correlated_gaussian", "gaussian_mixture"])
def test_a_density_is_shaded_to_where_it_has_no_colour(target, temperature):
    """At every temperature: a window with equal scales is wider than the axes, and no edge is seen in it.

    The colour at 3.6 standard deviations, at the ends of the axes, is the third of 64. The picture is the density at
    its places, to float32.
    """
    tempered = Experiment.from_dict(
        {"target": target, "lanes": [{"sampler": "sgld"}], "temperature": temperature}
    ).make_target()
    figure = VIEWS["state"](Scene(tempered, NAMES[:1], 0, "steps", False)).figure
    (glyph, source), *_ = (
        (r.glyph, r.data_source) for r in figure.select({"type": GlyphRenderer}) if isinstance(r.glyph, Image)
    )
    (picture,) = source.data["image"]
    n, shades = len(picture), picture / glyph.color_mapper.high * len(glyph.color_mapper.palette)
    assert max(part.max() for part in (shades[0], shades[-1], shades[:, 0], shades[:, -1])) < 1 < shades.max() / 60
    x, y = glyph.x + glyph.dw * np.arange(n) / (n - 1), glyph.y + glyph.dh * np.arange(n) / (n - 1)
    expected = np.exp(tempered.log_density(np.stack(np.meshgrid(x, y), axis=-1)) / 2)
    np.testing.assert_allclose(picture, expected, rtol=1e-5, atol=1e-30)


SMOOTH = {"bought", "ks", "ksd", "kl", "temperature"}
"""Views of means and distances, whose long lines turn seldom: they have less of an outline, and are to be seen."""


@pytest.mark.slow
def test_long_paths_are_fine_lines():
    """A browser without a graphics processor draws them in a fifth of the time. At widths of 1.2 and 1.6 it failed."""
    widths = {}
    for target, samplers in (
        ("double_well", [MOMENTUM]),
        ("mises_posterior", ["gsgnht"]),
        ("quartic", ["msgnht", "sgld"]),
    ):
        experiment, scene = staged(target, samplers)
        for key in {*fitting(experiment)} - SMOOTH:
            view = VIEWS[key](scene)
            long = {feed.model for feed in view.feeds.values() if feed.rollover >= LONG}
            for one in view.figure.select({"type": GlyphRenderer}):
                if one.data_source in long and isinstance(one.glyph, Line | Segment):
                    widths.setdefault(key, set()).add(one.glyph.line_width)
    assert widths == {key: {FINE} for key in ("state", "trace", "phase", "drift", "thermostat", "torus")}


@for_each("key", ["ks", "ksd", "kl"])
@for_each("lanes", [1, 3])
def test_noise_has_the_colour_of_its_lane(key, lanes):
    """With one lane it is grey; of several, a reader finds the band of a curve by its colour."""
    _, scene = staged("gaussian", ["sgld"] * lanes)
    view, colours = VIEWS[key](scene), scene.colours
    for i in range(lanes):
        glyphs = [one.glyph for one in view.figure.renderers if one.data_source is view.feeds[f"noise {i}"].model]
        found = {getattr(each, "fill_color" if isinstance(each, VArea) else "line_color") for each in glyphs}
        assert found <= ({colours.lanes[i]} if lanes > 1 else {colours.faint, colours.exact}) and found
    assert ("grey" in view.hint) == (lanes == 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_figure_has_what_it_had(name):
    """Fails where a place, a text or a number that is drawn once is another one."""
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    shown = json.loads(json.dumps(figures(name)))
    recorded = records.get(name, {})
    if new := shown.keys() - recorded.keys():
        text = json.dumps({**records, name: {**shown, **recorded}}, ensure_ascii=False, sort_keys=True)
        RECORDS.write_text(re.sub(r'(\], |: \[)(?=\["[A-Z])', r"\1\n", text) + "\n", encoding="utf-8")
        pytest.fail(f"nothing was recorded of {', '.join(sorted(new))} on the {name}; it is now")
    assert shown.keys() == recorded.keys()
    for key, models in shown.items():
        was = recorded[key]
        assert [kind for kind, _ in models] == [kind for kind, _ in was], key
        assert [pair for pair in zip(models, was, strict=True) if not same(*pair)] == [], key
