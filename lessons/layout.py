"""Faults in the layout of a page of the app, from the page's own boxes: captions that lie on curves or on each
other, and whatever is cut off, too small, or wider than its place.
"""

from typing import Any

SHARP = 13
"""Letters of a formula are at least so high, in thousandths of an em of its font and pixels."""
LINE = 10
"""Words below each other are at least so many pixels apart."""

FAULTS = """() => {
  const walk = function* (root) { for (const one of root.querySelectorAll("*")) { yield one; if (one.shadowRoot) yield* walk(one.shadowRoot) } }
  const faults = [], plots = [], texts = []
  const visit = (view) => {
    if (view.model.type === "Figure" && view.el?.isConnected) plots.push(view)
    if (view.model.type === "Div" && view.el?.isConnected) texts.push(view.el)
    for (const child of view.children()) visit(child)
  }
  for (const root of Bokeh.index.roots) visit(root)
  const pen = document.createElement("canvas").getContext("2d")
  // Whether the line between two points meets a box.
  const meets = ([x0, y0], [x1, y1], box) => {
    let from = 0, to = 1
    for (const [slope, room] of [[x0 - x1, x0 - box.left], [x1 - x0, box.right - x0], [y0 - y1, y0 - box.top], [y1 - y0, box.bottom - y0]]) {
      if (slope === 0 && room < 0) return false
      if (slope < 0) from = Math.max(from, room / slope)
      if (slope > 0) to = Math.min(to, room / slope)
    }
    return from <= to
  }
  const common = (one, two) => [Math.min(one.right, two.right) - Math.max(one.left, two.left), Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top)]
  const lines = ({ glyph }) => {
    const { sx = [], sy = [], sx0 = [], sy0, sx1, sy1 } = glyph
    if (glyph.model.type === "Segment") return Array.from(sx0, (x, i) => [[x, sy0[i]], [sx1[i], sy1[i]]])
    const at = Array.from(sx, (x, i) => [x, sy[i]])
    if (glyph.model.type === "Scatter") return at.map((point) => [point, point])
    const corners = glyph.model.type === "Step" ? at.flatMap(([x, y], i) => (i ? [[x, at[i - 1][1]], [x, y]] : [[x, y]])) : at
    return corners.slice(1).map((point, i) => [corners[i], point])
  }
  const paper = (one) => {
    while (one && !one.matches?.(".card")) one = one.parentElement ?? one.getRootNode().host
    return one
  }
  for (const plot of new Set(plots)) {
    const name = plot.model.html_attributes["aria-label"].split(/[,.]/)[0], { width, height } = plot.canvas.bbox, frame = plot.frame.bbox
    const fault = (text) => faults.push(`${name}: ${text}`)
    const parts = [...plot.renderer_views.values()].filter((part) => part.model.visible)
    const boxes = parts.filter(({ model, angle, _rect }) => model.type === "Label" && model.text && !angle && _rect?.width > 2).map(({ model, _rect }) => {
      const { sx, sy, anchor } = _rect, left = sx - anchor.x * _rect.width, top = sy - anchor.y * _rect.height
      return { text: `“${model.text}”`, left, top, right: left + _rect.width, bottom: top + _rect.height }
    })
    for (const { model } of parts.filter((part) => part.model.type.endsWith("Axis") && part.model.axis_label)) {
      pen.font = `${model.axis_label_text_font_size} sans-serif`
      const length = Math.max(...model.axis_label.split("\\n").map((line) => pen.measureText(line).width)), across = plot.model.below.includes(model)
      const [room, middle] = across ? [width, (frame.left + frame.right) / 2] : [height, (frame.top + frame.bottom) / 2]
      if (middle - length / 2 < -2 || middle + length / 2 > room + 2) fault(`the axis “${model.axis_label}” is cut off`)
      if (!across) boxes.push({ text: `the axis “${model.axis_label}”`, left: 0, right: 16, top: middle - length / 2 + 2, bottom: middle + length / 2 - 2 })
    }
    const curves = parts.filter((part) => ["Line", "Step", "Scatter", "Segment"].includes(part.glyph?.model.type)).flatMap(lines)
      .filter((ends) => ends.flat().every(Number.isFinite))
    for (const box of boxes) {
      if (box.left < -1 || box.top < -3 || box.right > width + 1 || box.bottom > height + 3) fault(`${box.text} is cut off`)
      // Of curves only what is in the frame is drawn.
      const inside = { left: Math.max(box.left, frame.left), top: Math.max(box.top + 2, frame.top), right: Math.min(box.right, frame.right), bottom: Math.min(box.bottom - 2, frame.bottom) }
      if (inside.left < inside.right && inside.top < inside.bottom && curves.some(([one, two]) => meets(one, two, inside))) fault(`${box.text} lies on a curve`)
      if (boxes.some((other) => other !== box && common(box, other)[0] > 2 && common(box, other)[1] > 4)) fault(`${box.text} lies on another text`)
    }
    // Words in columns have a line each, but for a few that change their places.
    for (const { glyph } of parts.filter((part) => part.glyph?.model.type === "Text")) {
      const words = Array.from(glyph.sx, (x, i) => [x, glyph.sy[i], glyph.text.get(i)]).filter(([x, y, word]) => word && Number.isFinite(x + y))
      const close = words.filter(([x, y], i) => words.some(([u, v], k) => k > i && Math.abs(u - x) < 2 && Math.abs(v - y) < LINE))
      if (close.length > words.length / 3) fault(`“${close[0][2]}” lies on another word`)
    }
    if (frame.width < 100 || frame.height < 40) fault(`its frame is ${Math.round(frame.width)} x ${Math.round(frame.height)}`)
    const own = plot.el.getBoundingClientRect(), place = paper(plot.el)?.getBoundingClientRect()
    if (own.left < -1 || own.right > innerWidth + 1) fault("it is wider than the screen")
    else if (place && (own.left < place.left - 1 || own.right > place.right + 1 || own.bottom > place.bottom + 1)) fault("it is larger than its card")
  }
  for (const text of texts.filter(paper)) {
    const own = text.getBoundingClientRect(), card = paper(text), place = card.getBoundingClientRect()
    const name = card.querySelector(".view-title").textContent, said = `“${text.shadowRoot.querySelector(".bk-clearfix").textContent.slice(0, 20)}”`
    if (own.bottom > place.bottom + 1) faults.push(`${name}: ${said} is larger than its card`)
    if ([...new Set(plots)].some(({ el }) => paper(el) === card && common(el.getBoundingClientRect(), own).every((size) => size > 2))) faults.push(`${name}: ${said} lies on a figure`)
  }
  for (const one of walk(document)) {
    const box = one.getBoundingClientRect()
    if (!box.width || one.tagName !== "svg" || one.parentElement?.tagName !== "MJX-CONTAINER") continue
    const letter = (1000 * box.width) / one.viewBox.baseVal.width
    if (letter < SHARP) faults.push(`a formula with letters of ${letter.toFixed(1)} px`)
  }
  return faults
}""".replace("SHARP", str(SHARP)).replace("LINE", str(LINE))


def faults(page: Any) -> list[str]:
    """A sentence for each, of an open page of Playwright's."""
    found: list[str] = page.evaluate(FAULTS)
    return found
