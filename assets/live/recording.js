// The recording of a run on a model of data: pictures at some of its steps, made with the file.

import { bytesOf } from "./engine.js"
import { find } from "./feeds.js"

/** A figure's contents at a recorded step: columns and properties by the model's id, and captions.
 * @typedef {{data: Record<string, any>, properties: Record<string, any>, captions: Array<[string, number | null]>}} Moment */
/** @typedef {{key: string, title: string, hint: string, figure: any, fixed: Record<string, any>, moments: Moment[], light: Record<string, any>, dark: Record<string, any>}} Picture */
/** @typedef {{steps: number[], figures: Picture[]}} Recording */

/** Milliseconds for which playback shows each recorded step. */
const MOMENT = 500

/** The levels of a packed number above the smallest, and the level of an absent one, as app/live_page/recording.py has them. */
const [LEVELS, ABSENT] = [65_534, 65_535]

/** @param {{levels: string, low: number, high: number}} packed */
const unpacked = ({ levels, low, high }) =>
  Float64Array.from(new Uint16Array(bytesOf(levels).buffer), (level) => (level === ABSENT ? NaN : low + ((high - low) * level) / LEVELS))

/** @param {any} column a list, or a packed column */
const numbers = (column) => {
  if (!Array.isArray(column)) return unpacked(column)
  return column.some((x) => x === null) && column.every((x) => x === null || typeof x === "number") ? column.map((x) => x ?? NaN) : column
}

/** Set the colours of a figure before it is made: a redrawn edge keeps a trace of its first colour.
 * @param {any} node @param {Record<string, any>} colours by the model's id */
const colour = (node, colours) => {
  if (node === null || typeof node !== "object" || ArrayBuffer.isView(node)) return
  if (node.attributes && Object.hasOwn(colours, node.id)) Object.assign(node.attributes, colours[node.id])
  for (const part of Object.values(node)) colour(part, colours)
}

export class RecordingPart {
  /** @param {HTMLElement} part @param {Recording} recording @param {() => boolean} dark @param {Promise<void>} bokeh resolves when BokehJS is loaded
   * @param {boolean} moves whether it is played when it is first shown; else it shows the last moment */
  constructor(part, recording, dark, bokeh, moves) {
    this.part = part
    this.recording = recording
    this.dark = dark
    this.bokeh = bokeh
    this.moves = moves
    this.embedded = false
    this.timer = 0
    const slider = this._slider
    slider.max = String(recording.steps.length - 1)
    slider.value = moves ? "0" : slider.max
    slider.oninput = () => {
      this._pause()
      this._draw()
    }
    this._button.onclick = () => (this.timer ? this._pause() : this._play())
  }

  /** @returns {HTMLInputElement} */
  get _slider() { return /** @type {HTMLInputElement} */ (this.part.querySelector("input")) }

  /** @returns {HTMLButtonElement} */
  get _button() { return /** @type {HTMLButtonElement} */ (this.part.querySelector(".recorded-play")) }

  /** Play from the moment shown to the last one, or from the beginning if it is the last. */
  _play() {
    const slider = this._slider
    if (slider.value === slider.max) slider.value = "0"
    this._draw()
    this._button.textContent = "Pause"
    this.timer = window.setInterval(() => {
      slider.value = String(Number(slider.value) + 1)
      this._draw()
      if (slider.value === slider.max) this._pause()
    }, MOMENT)
  }

  _pause() {
    window.clearInterval(this.timer)
    this.timer = 0
    this._button.textContent = "Play"
  }

  /** Show it, or hide it. @param {boolean} on */
  async show(on) {
    this.part.hidden = !on
    if (!on) this._pause()
    if (!on || this.embedded) return
    this.embedded = true
    await this.bokeh
    const holder = /** @type {HTMLElement} */ (this.part.querySelector(".pictures"))
    for (const [i, { title, hint, figure, fixed, light, dark }] of this.recording.figures.entries()) {
      const view = holder.appendChild(document.createElement("figure"))
      view.className = "view"
      const caption = view.appendChild(document.createElement("figcaption"))
      caption.append(Object.assign(document.createElement("b"), { textContent: title }), " ", Object.assign(document.createElement("span"), { className: "hint", textContent: hint }))
      view.append(Object.assign(document.createElement("ul"), { className: "caption" }))
      const plot = view.appendChild(Object.assign(document.createElement("div"), { className: "plot", id: `recording-${this.part.dataset.of}-${i}` }))
      colour(figure, this.dark() ? dark : light)
      // @ts-ignore
      await Bokeh.embed.embed_item(figure, plot)
      this._write(fixed)
    }
    this.dress()
    this._draw()
    if (this.moves && !matchMedia("(prefers-reduced-motion: reduce)").matches) this._play()
  }

  dress() {
    if (!this.embedded) return
    for (const { light, dark } of this.recording.figures)
      for (const [id, properties] of Object.entries(this.dark() ? dark : light)) find(id)?.setv(properties)
  }

  /** @param {Record<string, any>} data columns by the model's id */
  _write(data) {
    for (const [id, columns] of Object.entries(data))
      find(id)?.setv({ data: Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, numbers(column)])) }, { sync: false })
  }

  _draw() {
    const k = Number(this._slider.value)
    const said = `step ${this.recording.steps[k].toLocaleString("en-US")}`
    this._slider.setAttribute("aria-valuetext", said)
    const shown = this.part.querySelector("output")
    if (shown) shown.textContent = said
    this.recording.figures.forEach(({ moments }, i) => {
      const { data, properties, captions } = moments[k]
      this._write(data)
      for (const [id, values] of Object.entries(properties)) find(id)?.setv(values)
      const list = this.part.querySelectorAll("ul.caption")[i]
      list.replaceChildren(...captions.map(([text, lane]) => {
        const line = Object.assign(document.createElement("li"), { textContent: text })
        if (lane !== null) Object.assign(line.dataset, { lane: String(lane), sign: "●" })
        return line
      }))
    })
  }
}
