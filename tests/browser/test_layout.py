"""Nothing on the page covers a curve, is cut off, or is too small to read: from the page's own layout boxes."""

from lessons.layout import faults
from tests.browser.lab import Lab, wait_until

CROWDED = (
    "?target=gaussian&lane=hmc(step_size:0.3)~full&lane=sghmc(step_size:0.1)~gaussian_corrected(variance:4)&lane=sgld(step_size:0.1)~full"
    "&views=state,marginal,ks,trace,autocorrelation,phase&speed=400"
)
"""Captions of three lanes in low pictures, curves that go everywhere, and the longest formulas."""
PHONE = {"width": 390, "height": 844}
FIND = """
const figures = []
const visit = (view) => { if (view.model.type === "Figure" && view.el?.isConnected) figures.push(view); for (const child of view.children()) visit(child) }
for (const root of Bokeh.index.roots) visit(root)
const trace = figures.find((one) => one.model.html_attributes["aria-label"].startsWith("Trace"))
"""
PLANTED = {
    "lies on a curve": "const label = [...trace.renderer_views.keys()].find((one) => one.type === 'Label' && one.text.includes('ESS')); label.y = trace.frame.bbox.height / 2; label.y_units = 'screen'",
    "lies on another text": "for (const one of trace.renderer_views.keys()) if (one.type === 'Label' && one.text.includes('ESS')) { one.y = 500; one.x = 8 }",
    "is cut off": "for (const one of trace.renderer_views.keys()) if (one.type === 'Label') one.x = -60",
    "it is wider than the screen": "trace.model.min_width = 2000",
    "its frame is": "trace.model.min_border_left = trace.canvas.bbox.width - 60",
    "a formula with letters of": "document.body.style.zoom = 0.5",
}
"""What is done to the page, by what is then found."""


def test_nothing_covers_a_curve_and_nothing_is_cut_off(page, server):
    """At 1280 × 720 and 390 × 844, at rest.

    Planted faults: captions on a curve, on each other and beyond their figure; a figure wider than the screen, one with
    hardly any room, and formulas that are shrunk.
    """
    lab = Lab(page, server).open(CROWDED)
    wait_until(lambda: len(lab.glyphs("Autocorrelation", "Line")[0]["x"]) > 5 and lab.steps() > 1000, "curves")
    wait_until(lambda: page.locator("mjx-container svg").count() >= 4, "formulas")
    lab.press("Pause")
    lab.settled()
    assert faults(page) == []
    page.set_viewport_size(PHONE)
    lab.until(lambda: faults(page) == [], lambda: str(faults(page)))
    for what, plant in PLANTED.items():
        page.evaluate(f"() => {{ {FIND} {plant} }}")
        lab.until(lambda what=what: any(what in fault for fault in faults(page)), what)
