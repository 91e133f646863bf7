// A lane's data for its pictures: the run, the draws since the last frame, and the curve of its distance from the target.

import { WRITTEN } from "./run.js"
import { Truth } from "./truth.js"

const FRESH = 16
const CURVE_SPACING = 1.03

/** @typedef {{steps: number, gradients: number, data: number, seconds: number}} Position */
/** @typedef {{position: Position, draws: number, ks: number, kl: number, exactKl: number}} CurvePoint */
/** Draws since the last frame: θ [draw][chain][coordinate] and columns [column][chain][draw], flat.
 * @typedef {{n: number, chains: number, theta: Float64Array, values: Float64Array}} Fresh */

export class Lane {
  /** @param {import("./run.js").Run} run */
  constructor(run) {
    this.run = run
    this.truth = new Truth(run.engine, run.target.truth)
    this.aimed = run.target
    this.seconds = 0
    this.seen = 0
    /** @type {CurvePoint[]} */
    this.curve = []
    /** @type {Position[]} */
    this.marks = []
  }

  free() {
    this.run.free()
    this.truth.free()
  }

  /** Take the exact answers of the run's present target. */
  _lookAtTarget() {
    if (this.aimed === this.run.target) return
    this.aimed = this.run.target
    this.truth.free()
    this.truth = new Truth(this.run.engine, this.aimed.truth)
  }

  /** @returns {Position} */
  get position() {
    const { run } = this
    const chains = run.description.n_chains
    return { steps: run.steps, gradients: run.gradients / chains, data: run.dataSeen / chains, seconds: this.seconds }
  }

  /** @param {number} n */
  advance(n) {
    const began = performance.now()
    this.run.advance(n)
    this.seconds += (performance.now() - began) / 1000
    this._lookAtTarget()
  }

  /** Add a point to the curve if the run is sufficiently longer, or, where it rests, longer at all. @param {boolean} rests */
  record(rests) {
    const { run } = this
    const last = this.curve.length ? this.curve[this.curve.length - 1].position.steps : 0
    if (run.nDraws && run.steps > last && (rests || run.steps >= last * CURVE_SPACING))
      this.curve.push({ position: this.position, draws: run.nEffective, ...this.truth.distance(run) })
  }

  /** Continue from here with other parameters. @param {any} change */
  change(change) {
    this.run.change(change)
    this._lookAtTarget()
    if (this.marks[this.marks.length - 1]?.steps !== this.run.steps) this.marks.push(this.position)
  }

  /** New figures have none of the draws sent before. */
  forgetSent() { this.seen = Math.max(0, this.run.steps - this.run.constants.TAIL) }

  /** The lane for a frame, without draws of earlier frames. @param {keyof Position} axis */
  frame(axis) {
    const { run } = this
    const { engine, sums } = run
    const out = engine.zeros([2, FRESH], "i8")
    const written = writtenTo(run)
    const n = engine.call("pick", { tail: sums.tail, written, seen: written - (run.steps - this.seen), most: FRESH, out })
    const picked = [...engine.integers(out)].map(Number)
    engine.free(out)
    const [rows, ages] = [picked.slice(0, n), picked.slice(FRESH, FRESH + n)]
    const chains = sums.tail.shape[1]
    const theta = drawsAt(run, rows)
    const here = this.position
    const freshX = Float64Array.from(ages, (age) => (here[axis] * (run.steps - age)) / Math.max(run.steps, 1))
    this.seen = run.steps
    const fresh = { n, chains, theta, values: run.values(theta, n, chains) }
    return { run, x: here[axis], fresh, freshX, curve: this.curve, marks: this.marks.map((mark) => mark[axis]) }
  }
}

/** The number of draws written to the ring of the latest draws. @param {import("./run.js").Run} run */
const writtenTo = (run) => Number(run.engine.integers(run.sums.clock)[WRITTEN])

/** The draws in these rows of the ring, [draw][chain][coordinate] flat. @param {import("./run.js").Run} run @param {number[]} rows */
const drawsAt = (run, rows) => {
  const [, chains, dim] = run.sums.tail.shape
  const size = chains * dim
  const tail = run.engine.view(run.sums.tail)
  const out = new Float64Array(rows.length * size)
  rows.forEach((row, m) => out.set(tail.subarray(row * size, (row + 1) * size), m * size))
  return out
}

/** The latest draws of θ, at most n, oldest first, [draw][chain][coordinate] flat. @param {import("./run.js").Run} run @param {number} n */
export const latest = (run, n) => {
  const written = writtenTo(run)
  const found = Math.min(n, written, run.constants.TAIL)
  const rows = Array.from({ length: found }, (_, i) => (written - found + i) % run.constants.TAIL)
  return { n: found, chains: run.sums.tail.shape[1], theta: drawsAt(run, rows) }
}

/** The histogram of a column; its outer two counts are of draws outside the bins. @param {import("./run.js").Run} run @param {number} k */
export const counts = (run, k) => {
  const { bins } = run.sums
  const n = bins.shape[1]
  const words = new Uint32Array(run.engine.memory, bins.pointer + 8 * n * k, 2 * n)
  return Float64Array.from({ length: n }, (_, i) => words[2 * i] + 4294967296 * words[2 * i + 1])
}

