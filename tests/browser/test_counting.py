"""The benches count the frames that a page draws: not its paints, and of either kind of page the same."""

import numpy as np
import pytest

from sgmcmc_lab.app.server.light_page import LightPage
from tests.benchmarks.control import BarePage, Fed, bare
from tests.benchmarks.page import COME, COUNT_DRAWN, DRAWN, count_coming
from tests.browser import open_app

# A connection to nobody, and two figures that count their paints.
NOBODY = "window.WebSocket = class extends EventTarget {}"
FIGURES = """() => {
  window.paints = 0
  class Plot { _actual_paint() { window.paints += 1 } }
  class Figure extends Plot {}
  window.plots = [new Figure(), new Figure()]
  window.Bokeh = { index: { roots: [{}, { child_views: [{ child_views: window.plots }] }] } }
  window.socket = new WebSocket()
}"""
# The messages that arrive, with an "x" for a paint of the first figure and a "y" for one of the second.
PLAY = """(messages) => {
  for (const one of messages) {
    if (one === "x" || one === "y") window.plots[one === "x" ? 0 : 1]._actual_paint()
    else window.socket.dispatchEvent(new MessageEvent("message", {
      data: typeof one === "string" ? one : Float64Array.from(one).buffer,
    }))
  }
}"""
RANGE = '{"events":[{"kind":"ModelChanged","attr":"start","new":1}]}'
COLUMN = '{"events":[{"kind":"ColumnDataChanged","data":{"type":"map","entries":[["x",[1]]]}}]}'
LAST = '{"events":[{"kind":"ColumnDataChanged","data":{"type":"map","entries":[["frame",[7]]]}}]}'
LIVE = '{"events":[{"kind":"MessageSent","msg_type":"bokeh_event","msg_data":{"name":"esm_event"}}]}'


@pytest.mark.parametrize(
    ("kind", "messages", "come", "drawn", "paints"),
    [
        # The bare page's frame is many messages, its columns' numbers among them, and may be painted between them.
        (BarePage, 10 * [RANGE, "x", COLUMN, [1.0, 2.0], "x", "y", LAST, "x", "y"], 10, 10, 50),
        (BarePage, [LAST, LAST, "x"], 2, 1, 1),
        (BarePage, [LAST, RANGE, COLUMN], 1, 0, 0),
        # The lab's is one message, which is drawn in any of its figures; it is told from their arrays.
        (LightPage, 10 * [LIVE, '{"id":"p1"}', [1.0, 2.0], "y", LAST, [1.0, 2.0], "x"], 10, 10, 20),
        (LightPage, [LIVE, [1.0, 2.0], LIVE, [1.0, 3.0], "x", "x", RANGE, [], "x"], 2, 1, 3),
    ],
)
def test_a_frame_is_drawn_once(kind, messages, come, drawn, paints, new_page):
    """Fails where paints are counted: the planted fault, whose number is beside it. Frames of before do not count."""
    page = new_page()
    page.add_init_script(NOBODY)
    page.add_init_script(count_coming(kind))
    page.goto("about:blank")
    page.evaluate(FIGURES)
    page.evaluate(PLAY, [LAST, LIVE, [1.0, 2.0]])
    page.evaluate(COUNT_DRAWN)
    page.evaluate(PLAY, messages)
    assert [page.evaluate(one) for one in (COME, DRAWN, "window.paints")] == [come, drawn, paints]


def counted(page, goto):
    """Whether frames come and are drawn, once it is counted."""
    goto()
    page.locator(".bk-Figure").first.wait_for()
    page.wait_for_function(f"{COME} > 0")
    assert page.evaluate(DRAWN) == 0
    page.evaluate(COUNT_DRAWN)
    page.wait_for_function(f"{DRAWN} > 2")
    assert page.evaluate(f"{COME} >= {DRAWN}")


def test_frames_of_the_lab_are_counted(new_page, server):
    """Fails where what Bokeh paints with, or what a frame is, has another name than the bench knows."""
    page = new_page(often=True)
    page.add_init_script(count_coming(LightPage))
    counted(page, lambda: open_app(page, server))


def test_frames_of_the_bare_page_are_counted(new_page):
    """Fails as above, or where the bare page is not fed what it is given."""
    feeds = [[["x", "y"], "stream", 9], [["x"], "replace", 0], [["ends"], "range", 0]]
    frames = [np.array([1.0, k, 0, 1, k, k * k, 1, 2, 3, k, 2, 2, 0, k + 1]) for k in range(1, 9)]
    with bare("--page", Fed(feeds, frames), 10.0) as serving:
        page = new_page(often=True)
        page.add_init_script(count_coming(BarePage))
        counted(page, lambda: page.goto(serving.url))
        page.wait_for_function(
            "Bokeh.documents[0]._all_models.values().some((one) => one.data?.x?.length === 9 && one.data.y[8] === one.data.x[8] ** 2)"
        )
        # Before its server ends.
        page.goto("about:blank")
