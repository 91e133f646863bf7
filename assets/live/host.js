// The live loop without a server: it runs the lanes, and answers with arrays for the figures. It has no access to the
// page: it receives and sends messages, in a worker or not.

import { Claims } from "./claims.js"
import { Engine, unzipped } from "./engine.js"
import { fill } from "./ensembles.js"
import { Lane } from "./lane.js"
import { Run } from "./run.js"
import { SeparateRuns } from "./separate.js"
import { Sweep } from "./sweeps.js"
import { VIEWS } from "./views.js"

/** Milliseconds for the steps of all lanes between two frames. */
const WORK = 12
/** Of these, the time of ensembles while lanes move. */
const SHARE = 4
/** Steps of the first chunk, before the time of a step is known. */
const FIRST = 16
const UNANSWERED = 2
const CAPTIONS_MS = 500
/** Milliseconds between two reports of a sweep, or of separate runs. */
const SWEEP_MS = 250

export class Host {
  /** @param {(message: any, transfer?: Transferable[]) => void} post */
  constructor(post) {
    /** Each message carries the sequence number of the page's last message before it. @param {any} message @param {Transferable[]} [transfer] */
    this.post = (message, transfer) => post({ ...message, sequence: this.sequence }, transfer)
    /** @type {Lane[]} */
    this.records = []
    /** @type {Record<string, any>} */
    this.views = {}
    /** @type {string[]} */
    this.shown = []
    this.playing = this.hidden = false
    this.speed = 1
    this.single = 0
    this.sent = this.answered = 0
    /** The sequence number of the page's last message. */
    this.sequence = 0
    this.ticking = false
    /** The scene of the views; null until the page has figures for the lanes. @type {Omit<import("./views.js").Scene, "data" | "ensembles"> | null} */
    this.scene = null
    this.saidAt = -Infinity
    /** The ensembles of the lanes, by the key of their view. @type {Record<string, Array<import("./ensembles.js").Ensemble | null>>} */
    this.ensembles = {}
    /** Whether an ensemble of a shown view is incomplete. */
    this.filling = false
    /** Milliseconds that ensembles may use; negative after a step that took longer. */
    this.credit = 0
    /** @type {Set<number>} Lanes whose divergence was reported. */
    this.stopped = new Set()
    this.refused = false
    /** Messages are processed in order, because loading the compiled functions takes a while. @type {Promise<void>} */
    this.taken = Promise.resolve()
  }

  /** @param {any} message */
  receive(message) {
    this.taken = this.taken.then(async () => {
      try {
        this.sequence = message.sequence ?? this.sequence
        if (!this.refused) await this[/** @type {"load"} */ (message.type)](message)
      } catch (error) {
        this.post({ type: "failed", message: String(error instanceof Error ? error.message : error) })
      }
    })
  }

  /** The compiled functions, compressed and in base64. @param {{module: string}} message */
  async load({ module }) {
    try {
      this.instance = (await WebAssembly.instantiate(await unzipped(module).arrayBuffer(), {})).instance
    } catch (error) {
      this.refused = true
      this.post({ type: "refused", message: String(error instanceof Error ? error.message : error) })
    }
  }

  /** The signatures of the compiled functions, and constants. @param {{signatures: any, constants: any}} message */
  prepare({ signatures, constants }) {
    this.engine = new Engine(/** @type {WebAssembly.Instance} */ (this.instance), signatures)
    this.constants = constants
  }

  /** Begin these lanes. @param {{lanes: any[]}} message */
  open({ lanes }) {
    // Figures for another number of lanes are gone; the next look brings those for these lanes.
    if (lanes.length !== this.records.length) this.scene = null
    for (const record of this.records) record.free()
    this.records = []
    lanes.forEach((lane, i) => {
      // @ts-ignore
      const run = new Run(this.engine, this.constants, lane)
      this.claims?.follow(i, run)
      this.records.push(new Lane(run))
    })
    this.stopped.clear()
    this.renew()
  }

  /** The figures made for these lanes, and the keys of the visible ones.
   * @param {{views: any, shown: string[], coordinate: number, axis: keyof import("./lane.js").Position, names: string[]}} message */
  look({ views, shown, coordinate, axis, names }) {
    this.views = views
    this.shown = shown
    this.scene = { coordinate, axis, names }
    for (const [key, found] of Object.entries(this.ensembles)) if (!shown.includes(key)) for (const one of found) one?.rest()
    this.renew()
  }

  /** The claims of a new step, whose lanes are opened next; those on separate runs need its target.
   * @param {{claims: any[], separate: any[], target: any, poisson: any, step: number}} message */
  claim({ claims, separate, target, poisson, step }) {
    for (const record of this.records) record.free()
    this.records = []
    for (const one of Object.values(this.ensembles).flat()) one?.rest()
    this.ensembles = {}
    this.cancel()
    this.claims?.free()
    // @ts-ignore
    this.claims = new Claims(this.engine, { claims, poisson, step })
    this.separate?.end()
    // @ts-ignore
    this.separate = separate.length ? new SeparateRuns(this.engine, this.constants, target, separate) : undefined
  }

  /** Whether the run from now on is that of the claims. @param {{same: import("./claims.js").Same}} message */
  compare({ same }) { if (this.claims) this.claims.same = same }

  /** Measure the step's sweep. @param {{given: any, target: any}} message */
  sweep({ given, target }) {
    this.cancel()
    const { engine, constants } = /** @type {any} */ (this)
    this.sweeping = new Sweep(engine, constants, target, this.claims?.poisson, given)
    this.sweptAt = -Infinity
    this.goOn(this.sweeping)
  }

  /** End a sweep. */
  cancel() {
    this.sweeping?.end()
    this.sweeping = undefined
  }

  /** @param {Sweep} sweep */
  goOn(sweep) {
    setTimeout(() => {
      if (this.sweeping !== sweep) return
      try {
        const more = sweep.go()
        if (!more || performance.now() - (this.sweptAt ?? 0) > SWEEP_MS) {
          this.sweptAt = performance.now()
          this.post({ type: "swept", far: sweep.far, ended: !more, lanes: sweep.drawn(), marks: sweep.marks(), step: this.claims?.step })
        }
        if (more) this.goOn(sweep)
        else this.cancel()
      } catch (error) {
        this.cancel()
        this.post({ type: "failed", message: String(error instanceof Error ? error.message : error) })
      }
    }, 0)
  }

  /** Make the separate runs of the step's claims, once its lanes move. */
  makeSeparateRuns() {
    const { separate, claims } = this
    if (!separate || separate.begun) return
    separate.begun = true
    let said = -Infinity
    const goOn = () => setTimeout(() => {
      if (this.separate !== separate) return
      try {
        const more = separate.go()
        if (!more || performance.now() - said > SWEEP_MS) {
          said = performance.now()
          this.post({ type: "marks", marks: separate.marks(), step: claims?.step })
        }
        if (more) goOn()
      } catch (error) {
        this.post({ type: "failed", message: String(error instanceof Error ? error.message : error) })
      }
    }, 0)
    goOn()
  }

  /** Draw everything anew. */
  renew() {
    for (const view of Object.values(this.views)) view.data = structuredClone(view.first)
    for (const record of this.records) record.forgetSent()
    this.sent = this.answered = 0
    this.saidAt = -Infinity
    this.drawOnce = true
    this.ask()
  }

  /** @param {{playing?: boolean, speed?: number, hidden?: boolean}} message */
  pace({ playing = this.playing, speed = this.speed, hidden = this.hidden }) {
    Object.assign(this, { playing, speed, hidden })
    if (playing) this.makeSeparateRuns()
    // The captions must belong to the frame that stays.
    this.saidAt = -Infinity
    this.drawOnce = true
    this.ask()
  }

  step() {
    this.single = 1
    this.makeSeparateRuns()
    this.saidAt = -Infinity
    this.ask()
  }

  /** @param {{lane: number, change: any}} message */
  change({ lane, change }) {
    this.records[lane].change(change)
    this.stopped.delete(lane)
    this.saidAt = -Infinity
    this.drawOnce = true
    this.ask()
  }

  /** The kept draws of every lane, for a file. */
  draws() {
    const lanes = this.records.map(({ run }) => {
      const { history } = run.sums
      const kept = Number(run.engine.integers(run.sums.clock)[1])
      return { shape: history.shape, kept, stride: Number(run.engine.integers(run.sums.clock)[2]), values: run.engine.view(history).slice() }
    })
    this.post({ type: "draws", lanes })
  }

  /** A frame is on the screen. @param {{number: number}} message */
  answer({ number }) {
    // Frames of earlier figures have other numbers.
    this.answered = Math.min(Math.max(this.answered, number), this.sent)
    this.ask()
  }

  /** Whether the next frame has more to draw than the results of ensembles. */
  get moves() { return this.drawOnce || ((this.playing || this.single > 0) && this.records.some(({ run }) => !run.divergence)) }

  get active() { return !this.hidden && (this.filling || this.moves) }

  ask() {
    if (this.ticking || !this.active || this.sent - this.answered >= UNANSWERED) return
    this.ticking = true
    setTimeout(() => {
      this.ticking = false
      try {
        this.tick()
      } catch (error) {
        this.playing = this.filling = false
        this.post({ type: "failed", message: String(error instanceof Error ? error.message : error) })
      }
      this.ask()
    }, 0)
  }

  tick() {
    if (!this.scene || !this.records.length || !this.active || this.sent - this.answered >= UNANSWERED) return
    const began = performance.now()
    const { moves } = this
    this.move(this.playing ? this.speed : this.single)
    this.single = 0
    this.drawOnce = false
    for (const record of this.records) record.record(!this.playing)
    this.send(began, moves)
  }

  /** Give the ensembles of the shown views some time. @param {import("./views.js").LaneFrame[]} lanes */
  fill(lanes) {
    const { scene, playing } = this
    /** @type {Array<import("./ensembles.js").Ensemble | null>} */
    const all = []
    for (const key of this.shown) {
      const { background } = VIEWS[key]
      if (!background || !scene) continue
      const before = this.ensembles[key] ?? []
      const now = background({ ...scene, data: this.views[key].data, ensembles: before }, lanes)
      for (const one of before) if (one && !now.includes(one)) one.rest()
      this.ensembles[key] = now
      all.push(...now)
    }
    this.credit = Math.min(this.credit, 0) + (playing ? SHARE : WORK)
    const began = performance.now()
    const filling = fill(all, began + this.credit)
    this.credit -= performance.now() - began
    // The last captions are of all chains.
    if (this.filling && !filling) this.saidAt = -Infinity
    this.filling = filling
  }

  /** Make n steps of every lane, or fewer if the time is short. @param {number} n */
  move(n) {
    const began = performance.now()
    const work = this.filling ? WORK - SHARE : WORK
    let [done, chunk] = [0, FIRST]
    while (done < n && performance.now() - began < work) {
      const m = Math.min(chunk, n - done)
      const before = performance.now()
      for (const record of this.records) if (!record.run.divergence) record.advance(m)
      done += m
      chunk = Math.max(1, Math.min(n, Math.round((m * (WORK / 4)) / Math.max(performance.now() - before, 0.01))))
    }
    this.records.forEach(({ run }, lane) => {
      if (run.changed) this.post({ type: "changed", lane, chosen: run.changed.chosen })
      run.changed = null
      if (!run.divergence || this.stopped.has(lane)) return
      this.stopped.add(lane)
      // If this is the last lane, this is the last frame.
      this.saidAt = -Infinity
      this.post({ type: "diverged", lane, message: run.divergence.message })
    })
  }

  /** @param {number} began @param {boolean} moves whether there is more to draw than what ensembles have found */
  send(began, moves) {
    const { scene: drawn } = this
    if (!drawn) return
    const lanes = this.records.map((record) => record.frame(drawn.axis))
    this.fill(lanes)
    const feeds = []
    /** @type {Transferable[]} */
    const transfer = []
    const say = performance.now() - this.saidAt > CAPTIONS_MS
    const texts = []
    for (const key of this.shown) {
      if (!moves && !VIEWS[key].background) continue
      const { data, feeds: targets } = this.views[key]
      const scene = { ...drawn, data, ensembles: this.ensembles[key] ?? [] }
      for (const [name, columns] of Object.entries(VIEWS[key].compute(scene, lanes))) {
        const arrays = columns.map((column) => Float64Array.from(column))
        transfer.push(...arrays.map((array) => array.buffer))
        if (targets[name]) feeds.push([targets[name], arrays])
      }
      if (say) texts.push([key, VIEWS[key].captions(scene, lanes), VIEWS[key].ofLanes && lanes.length > 1])
    }
    this.sent += 1
    this.post({ type: "frame", number: this.sent, feeds, steps: Math.max(...this.records.map(({ run }) => run.steps)), burnIn: Math.max(...this.records.map(({ run }) => run.burnIn)), took: performance.now() - began, seconds: this.records.reduce((sum, { seconds }) => sum + seconds, 0) }, transfer)
    if (say) {
      this.saidAt = performance.now()
      // @ts-ignore
      this.post({ type: "text", items: texts, marks: this.claims?.marks(this.records) ?? [], step: this.claims?.step })
    }
  }
}
