"""The browser's work for a frame, beside drawing."""

from sgmcmc_lab.app.server.light_page import LightPage
from tests.benchmarks.page import COME, COUNT_DRAWN, DRAWN, count_coming
from tests.browser import open_app

COUNT = """() => {
  window.style_reads = window.style_writes = 0
  const style = CSSStyleDeclaration.prototype, read = style.getPropertyValue
  style.getPropertyValue = function (name) { window.style_reads += 1; return read.call(this, name) }
  const text = Object.getOwnPropertyDescriptor(Node.prototype, "textContent")
  Object.defineProperty(HTMLStyleElement.prototype, "textContent", {
    configurable: true,
    get: text.get,
    set(value) { window.style_writes += 1; text.set.call(this, value) },
  })
}"""
FAULT = """() => {
  const { InlineStyleSheet } = Bokeh.require("core/dom")
  const { VisualProperties } = Bokeh.require("core/visuals/visual")
  InlineStyleSheet.prototype._update = function (text) { this.el.textContent = text }
  VisualProperties.prototype._get_css_value = function (name) { return getComputedStyle(this.obj.el).getPropertyValue(name) }
}"""
"""Bokeh by itself: some 40 writes and 900 readings of three figures."""
FRAMES, TRIES = 10, 4


def asked(page):
    """Readings and writings of styles in some frames, of one frame; what is laid out anew has its styles written."""
    return min(counted(page) for _ in range(TRIES))


def counted(page):
    page.evaluate("window.frames_drawn = window.style_reads = window.style_writes = 0")
    page.wait_for_function(f"{DRAWN} >= {FRAMES}")
    drawn, reads, writes = page.evaluate(f"[{DRAWN}, style_reads, style_writes]")
    return writes / drawn, reads / drawn


def test_a_frame_leaves_the_styles_of_the_page_alone(new_page, server):
    """No colour and no width is read. Only a new caption is written, now and then.

    A style that is written has those of the whole page computed again at the next reading; the planted fault is Bokeh's
    own way, which took a quarter of a frame's time in the browser.
    """
    page = new_page(often=True)
    page.add_init_script(count_coming(LightPage))
    open_app(page, server, "?lane=sgld&lane=hmc&views=state,ks,trace")
    page.wait_for_function(f"{COME} > 5")
    page.evaluate(COUNT_DRAWN)
    page.evaluate(COUNT)
    writes, reads = asked(page)
    assert reads <= 1 and writes < 5
    page.evaluate(FAULT)
    writes, reads = asked(page)
    assert reads > 300 and writes > 20
