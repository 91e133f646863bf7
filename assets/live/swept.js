// The part of a lesson's page for a sweep: a button, the progress, and the figure.

import { find } from "./feeds.js"

const SIGNS = "●■▲◆"

/** A sweep's data in the file: those for the host, the figure, the sources of each lane's bars, line and markers, and
 * the colours of each theme.
 * @typedef {{given: any, figure: any, sources: string[][], light: Record<string, any>, dark: Record<string, any>}} SweepGiven */

export class SweepPart {
  /** @param {HTMLElement} part @param {SweepGiven} sweep @param {{begin: () => void, cancel: () => void, dark: () => boolean}} hooks */
  constructor(part, sweep, { begin, cancel, dark }) {
    this.part = part
    this.sweep = sweep
    this.dark = dark
    this.embedded = false
    this.part.hidden = false
    this._element("run").onclick = async () => {
      await this._embed()
      this._show(true)
      begin()
    }
    this._element("cancel").onclick = () => {
      cancel()
      this.stop()
    }
  }

  /** @param {string} name @returns {HTMLElement} */
  _element(name) { return /** @type {HTMLElement} */ (this.part.querySelector(`.sweep-${name}`)) }

  async _embed() {
    if (this.embedded) return
    this.embedded = true
    this._element("plot").hidden = false
    // @ts-ignore
    await Bokeh.embed.embed_item(this.sweep.figure, this._element("plot"))
    this.dress()
  }

  /** @param {boolean} running */
  _show(running) {
    const [run, cancel] = [this._element("run"), this._element("cancel")]
    // If one of them had the keyboard's focus, the other one takes it.
    const focused = [run, cancel].includes(/** @type {HTMLElement} */ (document.activeElement))
    run.hidden = running
    cancel.hidden = !running
    if (focused) (running ? cancel : run).focus()
  }

  /** After a cancellation, or for another step. */
  stop() {
    this._show(false)
    this._element("far").textContent = ""
  }

  dress() {
    if (!this.embedded) return
    for (const [id, properties] of Object.entries(this.dark() ? this.sweep.dark : this.sweep.light)) find(id)?.setv(properties)
  }

  /** Draw what the host has measured. @param {{far: number, ended: boolean, lanes: Array<{label: string, x: number[], y: number[], low: number[], high: number[]}>}} message */
  draw({ far, ended, lanes }) {
    lanes.forEach(({ label, x, y, low, high }, i) => {
      const layers = [{ x, low, x1: x, high }, { x, y }, { x, y }]
      this.sweep.sources[i].forEach((id, k) => {
        const source = find(id)
        if (source) source.data = layers[k]
      })
      const caption = this._element("caption")
      const line = caption.children[i] ?? caption.appendChild(document.createElement("li"))
      if (line.textContent !== label) line.textContent = label
      if (lanes.length > 1) Object.assign(/** @type {HTMLElement} */ (line).dataset, { lane: String(i), sign: SIGNS[i] })
    })
    // A screen reader would read every percent aloud.
    const said = ended ? "Measured." : `${10 * Math.floor(10 * far)}% measured`
    if (this._element("far").textContent !== said) this._element("far").textContent = said
    if (ended) this._show(false)
  }
}
