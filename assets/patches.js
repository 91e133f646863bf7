// What the page changes in BokehJS: the only script with private names of it. Without these changes the page works, its
// captions are cut off at their figure's frame, and a frame costs the browser half as much again.

// A caption stands above its figure's frame; Bokeh would draw only what of it is inside.
const freeLabels = () => {
  const label = Bokeh.Models.get("Label").prototype.default_view.prototype
  Object.defineProperty(label, "needs_clip", { configurable: true, get: () => false })
}

// Bokeh keeps an element for each renderer. At every paint it writes their places into style sheets of their own, looks
// for every colour and width in the styles of those elements, and so has the styles of the whole page computed again,
// some ten times a frame: 4.5 of 14.3 s of the browser, in 15 s of five moving figures. The page styles none of them; the
// elements of data are empty, and nothing is beside them.
const keepStyles = () => {
  const { InlineStyleSheet } = Bokeh.require("core/dom")
  const { VisualProperties } = Bokeh.require("core/visuals/visual")
  InlineStyleSheet.prototype._update = function (text) {
    if (this.css !== text) this.el.textContent = text
  }
  VisualProperties.prototype._get_css_value = () => ""
  Bokeh.Models.get("GlyphRenderer").prototype.default_view.prototype.update_position = () => {}
}

// Each change by itself: where BokehJS is another, the others stay.
export const patchBokeh = () => {
  for (const change of [freeLabels, keepStyles]) {
    try {
      change()
    } catch (error) {
      console.warn(`BokehJS is another than the page knows: ${error}`)
    }
  }
}
