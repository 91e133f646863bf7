// A step on a model of data: the pictures of a run made with the file, at some of its steps.

import { find } from "./feeds.js"

/** A figure's contents at a recorded step: columns and properties by the model's id, and captions.
 * @typedef {{data: Record<string, any>, properties: Record<string, any>, captions: string[]}} Moment */
/** @typedef {{title: string, hint: string, figure: any, moments: Moment[], light: Record<string, any>, dark: Record<string, any>}} Picture */
/** @typedef {{steps: number[], figures: Picture[]}} Recording */

/** @param {any[]} column */
const numbers = (column) => (column.some((x) => x === null) && column.every((x) => x === null || typeof x === "number") ? column.map((x) => x ?? NaN) : column)

export class RecordingPart {
  /** @param {HTMLElement} part @param {Recording} recording @param {() => boolean} dark */
  constructor(part, recording, dark) {
    this.part = part
    this.recording = recording
    this.dark = dark
    this.embedded = false
    const slider = this._slider
    slider.max = String(recording.steps.length - 1)
    slider.value = slider.max
    slider.oninput = () => this._draw()
  }

  /** @returns {HTMLInputElement} */
  get _slider() { return /** @type {HTMLInputElement} */ (this.part.querySelector("input")) }

  /** Show it, or hide it. @param {boolean} on */
  async show(on) {
    this.part.hidden = !on
    if (!on || this.embedded) return
    this.embedded = true
    const holder = /** @type {HTMLElement} */ (this.part.querySelector(".pictures"))
    for (const [i, { title, hint, figure }] of this.recording.figures.entries()) {
      const view = holder.appendChild(document.createElement("figure"))
      view.className = "view"
      const caption = view.appendChild(document.createElement("figcaption"))
      caption.append(Object.assign(document.createElement("b"), { textContent: title }), " ", Object.assign(document.createElement("span"), { className: "hint", textContent: hint }))
      view.append(Object.assign(document.createElement("ul"), { className: "caption" }))
      const plot = view.appendChild(Object.assign(document.createElement("div"), { className: "plot", id: `recording-${this.part.dataset.of}-${i}` }))
      // @ts-ignore
      await Bokeh.embed.embed_item(figure, plot)
    }
    this.dress()
    this._draw()
  }

  dress() {
    if (!this.embedded) return
    for (const { light, dark } of this.recording.figures)
      for (const [id, properties] of Object.entries(this.dark() ? dark : light)) find(id)?.setv(properties)
  }

  _draw() {
    const k = Number(this._slider.value)
    const said = `step ${this.recording.steps[k].toLocaleString("en-US")}`
    this._slider.setAttribute("aria-valuetext", said)
    const shown = this.part.querySelector("output")
    if (shown) shown.textContent = said
    this.recording.figures.forEach(({ moments }, i) => {
      const { data, properties, captions } = moments[k]
      for (const [id, columns] of Object.entries(data))
        find(id)?.setv({ data: Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, numbers(column)])) }, { sync: false })
      for (const [id, values] of Object.entries(properties)) find(id)?.setv(values)
      const list = this.part.querySelectorAll("ul.caption")[i]
      list.replaceChildren(...captions.map((text) => Object.assign(document.createElement("li"), { textContent: text })))
    })
  }
}
