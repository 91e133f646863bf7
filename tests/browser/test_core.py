"""The duties of every installation: both hosts open and move; the lab obeys, shows a lesson, and exports its contents.

The marker ``core`` is for every run, and for a second one on another Python with other releases of the libraries.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from sgmcmc_lab.app.live_page import live_page
from sgmcmc_lab.app.server.patches import PATCHES
from sgmcmc_lab.samplers import Experiment, run
from tests.browser import serve
from tests.browser.lab import Lab, check_finite
from tests.browser.live import MOVES, few_figures, paused, same_as_python

UNPATCHED = [sys.executable, str(Path(__file__).parent / "unpatched.py")]
GONE = "panel.viewable:Viewable._server_destroy"
INSTALLED = "as installed"
SERVERS = {INSTALLED: (), "unpatched": UNPATCHED, "one place unknown": [*UNPATCHED, GONE]}
OFF = re.compile(r"(.+) is unknown \(")


@pytest.fixture(scope="module", params=[pytest.param(INSTALLED, marks=pytest.mark.core), *list(SERVERS)[1:]])
def core(request, tmp_path_factory):
    with serve(tmp_path_factory.mktemp("core"), command=SERVERS[request.param]) as running:
        running.kind = request.param
        yield running


def test_a_visitor_is_served(core, new_page):
    """Fails where a release of a library, or a place in one that is another, keeps a page from what it is for."""
    lab = Lab(new_page(accept_downloads=True), core).open()
    assert lab.titles() == ["State space", "Marginal histogram", "KS distance"]
    lab.moves()
    lab.until(lambda: len(lab.glyphs("KS distance", "Line")[-1]["x"]) > 3, "a curve")
    lab.until(lambda: sum(lab.glyphs("Marginal histogram", "VAreaStep")[0].get("y", [])) > 0, "bars")

    lab.page.get_by_role("slider", name="Step size ε").press("ArrowRight")
    lab.until(lambda: "(step_size:0.025)" in lab.lanes()[0], "the slider's next place in the link")
    lab.moves()
    lab.press("Pause")
    steps = lab.settled()
    with lab.page.expect_download() as found:
        lab.button(re.compile("Export|export")).click()
        lab.page.get_by_role("menuitem", name="Experiment (JSON)").click()
    experiment = Experiment.from_json(found.value.path().read_text(encoding="utf-8"))
    (spec,) = experiment.runs()
    assert spec.n_steps == steps and len(spec.changes) == 1
    np.testing.assert_array_equal(run(spec).draws[:, -1, 0], lab.heads()[0][:, 0])
    check_finite(lab.figures())

    lab.page.get_by_role("link", name="Start the first lesson").click()
    lesson = lab.page.locator(".lesson")
    lesson.get_by_role("heading", level=2).first.wait_for()
    first = lesson.get_by_role("heading", level=2).first.inner_text()
    lab.button(re.compile("^Skip")).click()
    lab.moves()
    lab.press("Next")
    lab.until(lambda: lesson.get_by_role("heading", level=2).first.inner_text() != first, "the next step")
    assert core.crashes() == []


def test_a_patch_that_is_off_is_a_line_of_the_log(core):
    """Fails where a release in the range that is declared switches a patch off, or where one goes off in silence."""
    off = OFF.findall(core.log)
    if core.kind == INSTALLED:
        assert off == []
    elif core.kind == "unpatched":
        assert len(off) == len(PATCHES)
    else:
        assert off == [line for line in off if GONE in line] and len(off) == 1


@pytest.mark.core
def test_a_live_page_makes_the_draws_of_the_engine(opened):
    """Fails where the compiler's WebAssembly, the page's script or the browser do not fit each other."""
    experiment = Experiment.from_dict({"target": "quartic", "lanes": [{"sampler": "sgld"}], "seed": 3})
    with few_figures("state", "trace", "marginal", "ks"):
        page = opened(live_page(experiment))
    page.wait_for_function(MOVES)
    paused(page)
    assert same_as_python(experiment, page) == []
