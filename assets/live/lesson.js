// A lesson's step on the page: its question, whose answer starts the run, the marks of its claims, and the progress.

import { note, progress, read } from "../progress.js"
import { SIGNS, summary, WORDS } from "./claims.js"
import { evaluated, shown, valuesAt } from "./numbers.js"
import { RecordingPart } from "./recording.js"
import { SweepPart } from "./swept.js"

const SKIPPED = 0

/** @typedef {{claims: any[], values: Record<string, number>, separate: import("./separate.js").SeparateClaim[], question: {answer: number, options: number} | null, sweep: import("./swept.js").SweepGiven | null, recording: import("./recording.js").Recording | null}} LessonStep */
/** @typedef {{key: string, steps: LessonStep[], poisson: any}} Given */

/** @param {HTMLElement} line @param {import("./claims.js").Mark} mark */
const mark = (line, { state, detail }) => {
  const [sign, rest] = line.children.length ? line.children : [document.createElement("b"), document.createElement("span")]
  if (!line.children.length) line.replaceChildren(sign, " ", rest)
  line.dataset.state = state
  const said = `${SIGNS[state]} ${WORDS[state]}`
  if (sign.textContent !== said) sign.textContent = said
  if (rest.textContent !== detail) rest.textContent = detail
}

export class LessonPage {
  /** Without a lesson, the page has only an experiment. `run` is called after an answer, `changed` after a change of the
   * link; `target` returns the step's target, `dark` whether the dark theme is on, and `bokeh` ends when BokehJS is there.
   * @param {Given | undefined} given @param {{run: () => void, changed: () => void, tell: (message: any) => void, target: () => any, dark: () => boolean, bokeh: Promise<void>}} page */
  constructor(given, page) {
    this.given = given
    this.page = page
    this.number = 0
    /** The answers by the number of the step, from 1. @type {Map<number, number>} */
    this.answers = new Map()
    /** By the claim's place in the step. @type {Map<number, import("./claims.js").Mark>} */
    this.marks = new Map()
    /** By the step. @type {Map<number, SweepPart>} */
    this.sweeps = new Map()
    /** By the step. @type {Map<number, RecordingPart>} */
    this.recordings = new Map()
    this.noted = ""
    for (const part of document.querySelectorAll("[data-step]")) this._listen(/** @type {HTMLElement} */ (part))
  }

  /** @returns {LessonStep | null} */
  get step() { return this.given?.steps[this.number - 1] ?? null }

  /** The part of the page with the step. @returns {HTMLElement | null} */
  get part() { return document.querySelector(`[data-step="${this.number}"]`) }

  /** Whether the run waits for an answer. */
  get waiting() { return Boolean(this.step?.question) && !this.answers.has(this.number) }

  /** The step's claims as the host needs them. */
  get claims() { return { claims: this.step?.claims ?? [], separate: this.step?.separate ?? [], poisson: this.given?.poisson ?? null, step: this.number } }

  /** @param {HTMLElement} part */
  _listen(part) {
    for (const button of part.querySelectorAll(".option"))
      button.addEventListener("click", () => this.reply(Number(/** @type {HTMLElement} */ (button).dataset.option)))
    part.querySelector(".skip")?.addEventListener("click", () => this.reply(SKIPPED))
    const number = Number(part.dataset.step)
    const sweep = this.given?.steps[number - 1].sweep
    const { tell, target, dark, bokeh } = this.page
    const recording = this.given?.steps[number - 1].recording
    const place = /** @type {HTMLElement | null} */ (part.querySelector(".recording"))
    if (recording && place) {
      this.recordings.set(number, new RecordingPart(place, recording, dark, bokeh, !this.given?.key))
    }
    if (sweep)
      this.sweeps.set(number, new SweepPart(/** @type {HTMLElement} */ (part.querySelector(".sweep")), sweep, {
        begin: () => tell({ type: "sweep", given: sweep.given, target: target() }),
        cancel: () => {
          tell({ type: "cancel" })
          this._forgetSweep()
        },
        dark,
      }))
  }

  /** Open a step. @param {number} number from 1 */
  show(number) {
    this.number = number
    this.marks = new Map()
    for (const sweep of this.sweeps.values()) sweep.stop()
    this._dress()
    this._forgetSweep()
    this._await(this.step?.separate ?? [])
    this._note()
  }

  /** Write the numbers of the step's text for these settings. @param {Array<Record<string, any>>} lanes the values of each @param {Record<string, any>} target */
  follow(lanes, target) {
    const known = valuesAt(this.step?.values ?? {}, lanes, target)
    for (const one of this.part?.querySelectorAll("[data-formula]") ?? [])
      one.textContent = shown(evaluated(JSON.parse(/** @type {HTMLElement} */ (one).dataset.formula ?? ""), known))
  }

  /** Mark the sweep's claims as not measured. */
  _forgetSweep() { this._await(this.step?.sweep?.given.claims ?? []) }

  /** Mark claims as not measured. @param {Array<{place: number}>} claims */
  _await(claims) { this.write(claims.map(({ place }) => ({ place, state: "elsewhere", detail: "" })), this.number) }

  /** Draw what the host has measured of a sweep. @param {any} message */
  swept(message) {
    if (message.step !== this.number) return
    this.sweeps.get(this.number)?.draw(message)
    this.write(message.marks, message.step)
  }

  /** Take the page's theme. */
  dress() { for (const part of [...this.sweeps.values(), ...this.recordings.values()]) part.dress() }

  /** Answer the question, or skip it, and let the experiment run. @param {number} answer */
  reply(answer) {
    if (!this.waiting) return
    this.answers.set(this.number, answer)
    this.show(this.number)
    this.page.changed()
    this.page.run()
  }

  /** Move the focus to the question. */
  remind() {
    const option = /** @type {HTMLElement | null | undefined} */ (this.part?.querySelector(".option"))
    option?.scrollIntoView({ block: "center" })
    option?.focus()
  }

  _dress() {
    const { part, step, waiting } = this
    for (const [number, recording] of this.recordings) recording.show(number === this.number && !waiting)
    if (!part || !step) return
    for (const after of part.querySelectorAll(".after")) /** @type {HTMLElement} */ (after).hidden = waiting
    if (!step.question) return
    const answer = this.answers.get(this.number)
    const right = step.question.answer
    for (const one of part.querySelectorAll(".option")) {
      const button = /** @type {HTMLElement} */ (one)
      const number = Number(button.dataset.option)
      button.dataset.state = waiting ? "open" : number === right ? "right" : number === answer ? "wrong" : "other"
      // A disabled button would lose the keyboard's focus.
      button.setAttribute("aria-disabled", String(!waiting))
      button.setAttribute("aria-pressed", String(number === answer))
    }
    for (const one of part.querySelectorAll("[data-reply]")) {
      const line = /** @type {HTMLElement} */ (one)
      line.hidden = waiting || Number(line.dataset.reply) !== answer
    }
    /** @type {HTMLElement} */ (part.querySelector(".wait")).hidden = !waiting
    const why = /** @type {HTMLDetailsElement} */ (part.querySelector(".why"))
    why.hidden = waiting
    why.open = !waiting
    const verdict = /** @type {HTMLElement} */ (part.querySelector(".verdict"))
    verdict.textContent = waiting || !answer ? "" : answer === right ? "Right." : "Not quite."
  }

  /** Show the check marks from the host. @param {Array<import("./claims.js").Mark & {place: number}>} found @param {number} step whose claims they are */
  write(found, step) {
    const { part } = this
    // A mark of the previous step may arrive late.
    if (!part || this.waiting || !this.step || step !== this.number) return
    for (const one of found) {
      this.marks.set(one.place, one)
      const line = part.querySelector(`[data-claim="${one.place}"]`)
      if (line) mark(/** @type {HTMLElement} */ (line), one)
    }
    const standing = part.querySelector(".standing")
    const said = summary([...this.marks.values()])
    if (standing && standing.textContent !== said) standing.textContent = said
    this._note()
  }

  /** Store the progress in the browser, and show it. */
  _note() {
    const { given, step } = this
    // A recording outside of a lesson has no key.
    if (!given?.key || !step) return
    const steps = { [this.number]: [this._outcome(), [...this.marks.values()].filter(({ state }) => state === "holds").length] }
    const text = this.waiting ? "" : JSON.stringify({ lesson: given.key, steps })
    if (text !== this.noted) note(text)
    this.noted = text
    const done = document.getElementById("done")
    const listed = given.steps.map(({ question, claims }) => ({ question: Boolean(question), claims: claims.length }))
    const { said } = progress(read(), { key: given.key, steps: listed })
    if (done && done.textContent !== said) done.textContent = said
  }

  _outcome() {
    const answer = this.answers.get(this.number)
    if (!this.step?.question || answer === undefined) return "none"
    return answer === SKIPPED ? "skipped" : answer === this.step.question.answer ? "right" : "wrong"
  }

  /** The settings of a link that are the lesson's. */
  get keys() { return ["answers"] }

  /** Put the answers into the page's link. @param {URLSearchParams} words */
  writeTo(words) {
    if (this.answers.size) words.set("answers", [...this.answers].map(([step, answer]) => `${step}.${answer}`).join(","))
  }

  /** Take the answers from a link. @param {URLSearchParams} words @returns {boolean} whether all of them are valid */
  readFrom(words) {
    let good = true
    for (const text of (words.get("answers") ?? "").slice(0, 500).split(",").filter(Boolean)) {
      const whole = /^([0-9]{1,3})\.([0-9])$/.exec(text)
      const question = whole && this.given?.steps[Number(whole[1]) - 1]?.question
      if (question && Number(whole[2]) <= question.options) this.answers.set(Number(whole[1]), Number(whole[2]))
      else good = false
    }
    return good
  }
}
