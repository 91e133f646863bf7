// Steps in their parts. What takes a step apart is Python; the file has the first steps as app/live_page/slow.py recorded them.

import { make } from "./elements.js"
import { grown, put } from "./feeds.js"

const RECORDED = "Recorded steps with the file's own settings, from the experiment's start; the run waits."
/** Seconds in which a part is drawn. */
const EACH = 0.9
/** Feeds that show where the run is; they give way to those of the recorded chain. */
const RUNS = /^(heads|path|trail|velocity|frames|full|used)\b/

/** Arrays of a step in a view, by the feed. @typedef {{feeds: Record<string, number[][]>, note: string}} Drawn */
/** @typedef {{said: string[], kinds: number[], views: Record<string, Drawn>}} Step */
/** @typedef {import("./feeds.js").Feed} Feed */
/** A figure that shows the steps: its view, its feeds, and where its words are. @typedef {{key: string, feeds: Record<string, Feed>, words: HTMLElement}} Figure */

/** A source without rows. @param {any} model */
const clear = (model) => model?.setv({ data: Object.fromEntries(Object.keys(model.data).map((name) => [name, new Float64Array(0)])) }, { sync: false })

export class Slow {
  /** @param {(id: string) => any} find a model by its id */
  constructor(find) {
    this.find = find
    /** @type {Figure[]} */
    this.figures = []
    /** @type {Step[]} */
    this.steps = []
    this.step = this.part = 0
    this.parts = { names: [""], light: [""], dark: [""] }
    this.title = ""
    /** The words of a step. */
    this.words = make("div")
    /** What the run has drawn and draws meanwhile, by the model's id. @type {Map<string, any>} */
    this.kept = new Map()
  }

  get on() { return this.figures.length > 0 }

  /** What comes next, as a button says it. */
  get next() {
    if (this.part < this.steps[this.step].said.length - 1) return "Next part"
    return this.step < this.steps.length - 1 ? "Next step" : "First step"
  }

  /** Show the first part of the first step. @param {Step[]} steps @param {Figure[]} figures
   * @param {{names: string[], light: string[], dark: string[]}} parts @param {string} title of the chain */
  begin(steps, figures, parts, title) {
    Object.assign(this, { steps, figures, parts, title, step: 0, part: 0 })
    for (const { feeds } of figures) {
      for (const [name, feed] of Object.entries(feeds)) {
        const model = this.find(feed.id)
        if (!model || !RUNS.test(name)) continue
        this.kept.set(feed.id, { data: model.data, setv(/** @type {any} */ { data }) { this.data = data } })
        clear(model)
      }
    }
    this.words = make("div")
    figures[0].words.append(make("p", {}, RECORDED), this.words)
    this.draw()
  }

  /** Take arrays of the run, which are seen again at the end. @param {Feed} feed @param {Float64Array[]} arrays */
  take(feed, arrays) {
    const kept = this.kept.get(feed.id)
    if (kept) put(kept, feed, arrays)
    return kept !== undefined
  }

  /** The next part; after the last one of a step, the first of the next. */
  go() {
    this.part += 1
    if (this.part >= this.steps[this.step].said.length) {
      this.part = 0
      this.step = (this.step + 1) % this.steps.length
    }
    this.draw()
  }

  /** The figures are the run's again. */
  end() {
    for (const { key, feeds, words } of this.figures) {
      words.replaceChildren()
      for (const name of Object.keys(this.steps[0].views[key].feeds)) clear(this.find(feeds[name].id))
    }
    for (const [id, { data }] of this.kept) this.find(id)?.setv({ data }, { sync: false })
    this.kept.clear()
    this.figures = []
  }

  draw() {
    const step = this.steps[this.step]
    for (const { key, feeds } of this.figures) {
      for (const [name, arrays] of Object.entries(step.views[key].feeds)) {
        if (name !== "parts") put(this.find(feeds[name].id), { ...feeds[name], operation: "replace" }, arrays.map((column) => Float64Array.from(column)))
      }
    }
    this.write(step)
    const { part, figures } = this
    const began = performance.now()
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches
    const grow = () => {
      if (this.figures !== figures || this.steps[this.step] !== step || this.part !== part) return
      const share = still ? 1 : Math.min((performance.now() - began) / 1000 / EACH, 1)
      for (const { key, feeds: { parts } } of figures) {
        const rows = Object.fromEntries(parts.columns.map((name, i) => [name, step.views[key].feeds.parts[i]]))
        this.find(parts.id).setv({ data: grown(rows, this.parts.names, part + share).data }, { sync: false })
      }
      if (share < 1) requestAnimationFrame(grow)
    }
    grow()
  }

  /** The words of the part, below those of the parts before it: a reader of the screen speaks what is new. @param {Step} step */
  write(step) {
    const [first, ...others] = this.figures.map(({ key, words }) => ({ note: step.views[key].note, words }))
    if (this.part === 0) {
      const heading = `${this.title}: step ${this.step + 1} of ${this.steps.length}`
      this.words.replaceChildren(make("p", {}, make("b", {}, heading), first.note && `, ${first.note}`), make("ol"))
      for (const { note, words } of others) words.textContent = note
    }
    const kind = step.kinds[this.part]
    const mark = make("i")
    mark.style.setProperty("--light", this.parts.light[kind])
    mark.style.setProperty("--dark", this.parts.dark[kind])
    this.words.lastChild?.appendChild(make("li", {}, mark, step.said[this.part]))
  }
}
