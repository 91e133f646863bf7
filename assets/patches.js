// The page's changes to BokehJS: the only script with its private names. Without them the page works, but captions are
// cut off at the frame of their figure, and a frame costs the browser half as much again.

// A caption stands above its figure's frame; Bokeh would draw only the part inside.
const freeLabels = () => {
  const label = Bokeh.Models.get("Label").prototype.default_view.prototype
  Object.defineProperty(label, "needs_clip", { configurable: true, get: () => false })
}

// Bokeh keeps an element for each renderer. At every paint it writes the positions of all elements into style sheets,
// and looks up every colour and width in their styles. The browser then computes the styles of the whole page again,
// some ten times per frame: 4.5 of its 14.3 s, in 15 s of five moving figures. The page styles none of these elements;
// those of glyphs are empty, and nothing is placed beside them.
const keepStyles = () => {
  const { InlineStyleSheet } = Bokeh.require("core/dom")
  const { VisualProperties } = Bokeh.require("core/visuals/visual")
  InlineStyleSheet.prototype._update = function (text) {
    if (this.css !== text) this.el.textContent = text
  }
  VisualProperties.prototype._get_css_value = () => ""
  Bokeh.Models.get("GlyphRenderer").prototype.default_view.prototype.update_position = () => {}
}

// Each change by itself: if one fails in another version of BokehJS, the others stay.
export const patchBokeh = () => {
  for (const change of [freeLabels, keepStyles]) {
    try {
      change()
    } catch (error) {
      console.warn(`The page does not know this version of BokehJS: ${error}`)
    }
  }
}
