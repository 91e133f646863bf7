"""Nothing on the page covers a curve, is cut off, or is too small to read: from the page's own layout boxes."""

import pytest

from tests.browser.lab import WALK, Lab, wait_until

# What is amiss: captions on curves, on each other or beyond their figure; formulas that are small or too wide.
FAULTS = f"""
() => {{
  {WALK}
  const faults = [], views = []
  const visit = (view) => {{ views.push(view); for (const child of view.children()) visit(child) }}
  for (const root of Bokeh.index.roots) visit(root)
  const meets = ([x0, y0], [x1, y1], box) => {{
    let from = 0, to = 1
    const sides = [[x0 - x1, x0 - box.left], [x1 - x0, box.right - x0], [y0 - y1, y0 - box.top], [y1 - y0, box.bottom - y0]]
    for (const [slope, room] of sides) {{
      if (slope === 0 && room < 0) return false
      if (slope < 0) from = Math.max(from, room / slope)
      if (slope > 0) to = Math.min(to, room / slope)
    }}
    return from <= to
  }}
  const lines = ({{ glyph }}) => {{
    const {{ sx = [], sy = [], sx0 = [], sy0, sx1, sy1 }} = glyph
    if (glyph.model.type === "Segment") return Array.from(sx0, (x, i) => [[x, sy0[i]], [sx1[i], sy1[i]]])
    const at = Array.from(sx, (x, i) => [x, sy[i]])
    if (glyph.model.type === "Scatter") return at.map((point) => [point, point])
    const corners = glyph.model.type === "Step" ? at.flatMap(([x, y], i) => i ? [[x, at[i - 1][1]], [x, y]] : [[x, y]]) : at
    return corners.slice(1).map((point, i) => [corners[i], point])
  }}
  for (const plot of new Set(views.filter((view) => view.model.type === "Figure" && view.el?.isConnected))) {{
    const name = plot.model.html_attributes["aria-label"], {{ width, height }} = plot.canvas.bbox, frame = plot.frame.bbox
    const parts = [...plot.renderer_views.values()]
    const boxes = parts.filter((part) => part.model.type === "Label" && part.model.visible && part.model.text && part._rect?.width > 2 && !part.angle).map((part) => {{
      const {{ sx, sy, anchor, width, height }} = part._rect, left = sx - anchor.x * width, top = sy - anchor.y * height
      const right = left + width, bottom = top + height
      // Of curves only what is in the frame is drawn.
      const inside = {{ left: Math.max(left, frame.left), top: Math.max(top, frame.top), right: Math.min(right, frame.right), bottom: Math.min(bottom, frame.bottom) }}
      return {{ text: part.model.text, left, top, right, bottom, inside }}
    }})
    const curves = parts.filter((part) => part.glyph && part.model.visible && ["Line", "Step", "Scatter", "Segment"].includes(part.glyph.model.type)).flatMap(lines)
      .filter((ends) => ends.flat().every(Number.isFinite))
    for (const box of boxes) {{
      if (box.left < -1 || box.top < -1 || box.right > width + 1 || box.bottom > height + 1) faults.push(`${{name}}: “${{box.text}}” is cut off`)
      if (box.inside.left < box.inside.right && box.inside.top < box.inside.bottom && curves.some(([one, two]) => meets(one, two, box.inside))) faults.push(`${{name}}: “${{box.text}}” lies on a curve`)
      if (boxes.some((other) => other !== box && Math.min(box.right, other.right) - Math.max(box.left, other.left) > 2 && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 4))
        faults.push(`${{name}}: “${{box.text}}” lies on another caption`)
    }}
    if (plot.frame.bbox.width < 100 || plot.frame.bbox.height < 60) faults.push(`${{name}}: its frame is ${{plot.frame.bbox.width}} x ${{plot.frame.bbox.height}}`)
  }}
  for (const one of walk(document)) {{
    const box = one.getBoundingClientRect()
    if (!box.width || one.tagName !== "svg" || one.parentElement?.tagName !== "MJX-CONTAINER") continue
    const letter = 1000 * box.width / one.viewBox.baseVal.width, place = one.parentElement.parentElement.getBoundingClientRect()
    if (letter < 13) faults.push(`a formula with letters of ${{letter.toFixed(1)}} px`)
    if (box.right > place.right + 1) faults.push(`a formula of ${{Math.round(box.width)}} px in a place of ${{Math.round(place.width)}}`)
  }}
  return faults
}}
"""


@pytest.fixture
def lab(page, server):
    """The app in an empty page."""
    return Lab(page, server)


# Captions of three lanes in low pictures, curves that go everywhere, and the longest formulas.
CROWDED = (
    "?target=gaussian&lane=hmc(step_size:0.3)~full&lane=sghmc(step_size:0.1)~gaussian_corrected(variance:4)&lane=sgld(step_size:0.1)~full"
    "&views=state,marginal,ks,kl,trace,autocorrelation,phase,energy&speed=20"
)


def test_nothing_covers_a_curve_and_nothing_is_cut_off(lab):
    """Planted faults: a caption among the curves, one beyond its figure, and formulas that are shrunk."""
    page = lab.open(CROWDED).page
    wait_until(lambda: len(lab.glyphs("Autocorrelation", "Line")[0]["x"]) > 5 and lab.steps() > 2000, "curves")
    wait_until(lambda: page.locator("mjx-container svg").count() >= 4, "formulas")
    lab.press("Pause")
    lab.settled()
    assert page.evaluate(FAULTS) == []
    move = """(offset) => {
      const labels = Bokeh.documents.flatMap((doc) => [...doc._all_models.values()]).filter((one) => one.type === "Label" && one.text.includes("ESS"))
      for (const label of labels) label.y.offset = offset
    }"""
    page.evaluate(move, 20)
    wait_until(lambda: any("lies on a curve" in fault for fault in page.evaluate(FAULTS)), "a caption on the traces")
    page.evaluate(move, -500)
    wait_until(lambda: any("is cut off" in fault for fault in page.evaluate(FAULTS)), "a caption beyond its figure")
    scale = "(factor) => { const drawn = document.createElement('style'); drawn.textContent = ''; document.body.style.zoom = factor }"
    page.evaluate(scale, 0.5)
    assert any("letters of" in fault for fault in page.evaluate(FAULTS))
