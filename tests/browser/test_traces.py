"""Traces of several lanes as a browser draws them: none of them covers another."""

import io
import json

import numpy as np
import pytest
from bokeh.models import Line
from bokeh.resources import Resources
from PIL import Image

from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Scene
from sgmcmc_lab.app.views.embedding import standalone
from sgmcmc_lab.app.views.theme import LIGHT
from sgmcmc_lab.samplers.targets import TARGETS
from tests.browser import IDLE

DRAW = """async (figure) => {
  const place = document.body.appendChild(document.createElement("div"))
  place.id = "place"
  await Bokeh.embed.embed_item(JSON.parse(figure), place.id)
}"""
N = 600
"""Draws of a trace."""


def seen(page, rough, opaque=False):
    """The pixels in each lane's colour, of three lanes of which one jumps over the whole figure at each step."""
    view = VIEWS["trace"](Scene(TARGETS["gaussian"](), ("a", "b", "c"), 0, "steps", False))
    rng, x = np.random.default_rng(3), np.arange(N, dtype=float)
    for i in range(3):
        y = rng.normal(0, 1.3, N) if i == rough else np.sin(x / 90 + i) + rng.normal(0, 0.02, N)
        view.feeds[f"lane {i} chain 0"].model.data = {"x": x, "y": y}
    view.feeds["x"].model.update(start=0.0, end=float(N))
    if opaque:
        for renderer in view.figure.renderers:
            renderer.visible = isinstance(renderer.glyph, Line)
            if renderer.visible:
                renderer.glyph.line_alpha = 0.9
    view.figure.update(sizing_mode="fixed", width=366, height=260)
    page.goto("about:blank")
    for script in Resources(mode="inline", components=["bokeh"]).js_raw:
        page.add_script_tag(content=script)
    page.evaluate(DRAW, json.dumps(standalone(view.figure)))
    page.wait_for_function(IDLE)
    pixels = np.asarray(Image.open(io.BytesIO(page.locator("#place").screenshot())).convert("RGB"), dtype=float)
    colours = [[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in LIGHT.lanes[:3]]
    return [int((np.abs(pixels - colour).max(axis=-1) < 60).sum()) for colour in colours]


@pytest.mark.parametrize("rough", [0, 1, 2])
def test_no_trace_covers_another(page, rough):
    """Whichever lane jumps. A trace that is drawn alone has about 600 pixels."""
    assert min(seen(page, rough)) > 250


def test_a_covering_trace_is_seen(page):
    """Planted fault: opaque lines without dots."""
    assert min(seen(page, 2, opaque=True)) < 125
