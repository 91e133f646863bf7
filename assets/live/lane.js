// A lane as its pictures see it: the run, the draws since the last frame, and the curve of its distance from the target.

import { WRITTEN } from "./run.js"

const FRESH = 16
const CURVE_SPACING = 1.03

/** @typedef {{steps: number, gradients: number, data: number, seconds: number}} Position */
/** @typedef {{position: Position, draws: number, ks: number, kl: number, exactKl: number}} CurvePoint */
/** Draws since the last frame: θ [draw][chain][coordinate] and columns [column][chain][draw], flat.
 * @typedef {{n: number, chains: number, theta: Float64Array, values: Float64Array}} Fresh */

export class Lane {
  /** @param {import("./run.js").Run} run @param {import("./truth.js").Truth} truth */
  constructor(run, truth) {
    this.run = run
    this.truth = truth
    this.seconds = 0
    this.seen = 0
    /** @type {CurvePoint[]} */
    this.curve = []
    /** @type {Position[]} */
    this.marks = []
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
  }

  /** Add a point to the curve if the run has become enough longer, or longer at all where it rests. @param {boolean} rests */
  record(rests) {
    const { run } = this
    const last = this.curve.length ? this.curve[this.curve.length - 1].position.steps : 0
    if (run.nDraws && run.steps > last && (rests || run.steps >= last * CURVE_SPACING))
      this.curve.push({ position: this.position, draws: run.nDraws, ...this.truth.distance(run) })
  }

  /** Go on with other parameters from here. @param {any} change */
  change(change) {
    this.run.change(change)
    if (this.marks[this.marks.length - 1]?.steps !== this.run.steps) this.marks.push(this.position)
  }

  /** New figures know nothing of what was sent before. */
  forgetSent() { this.seen = Math.max(0, this.run.steps - this.run.constants.TAIL) }

  /** The lane for a frame; draws that an earlier frame had are not in it. @param {keyof Position} axis */
  frame(axis) {
    const { run } = this
    const { engine, constants } = run
    const watched = run.sums.tail.shape[1]
    const { dim } = run.target
    const written = Number(engine.integers(run.sums.clock)[WRITTEN])
    const available = Math.min(run.steps - this.seen, constants.TAIL, written)
    const stride = Math.max(1, Math.ceil(available / FRESH))
    const picked = []
    for (let i = available - 1; i >= 0; i -= stride) picked.unshift(i)
    const row = watched * dim
    const tail = engine.view(run.sums.tail)
    const theta = new Float64Array(picked.length * row)
    picked.forEach((i, m) => {
      const at = (written - available + i) % constants.TAIL
      theta.set(tail.subarray(at * row, (at + 1) * row), m * row)
    })
    const here = this.position
    const freshX = Float64Array.from(picked, (i) => (here[axis] * (run.steps - available + 1 + i)) / Math.max(run.steps, 1))
    this.seen = run.steps
    const fresh = { n: picked.length, chains: watched, theta, values: run.values(theta, picked.length, watched) }
    return { run, x: here[axis], fresh, freshX, curve: this.curve, marks: this.marks.map((mark) => mark[axis]) }
  }
}

/** The latest draws of θ, at most n, oldest first, [draw][chain][coordinate] flat. @param {import("./run.js").Run} run @param {number} n */
export const latest = (run, n) => {
  const { engine, constants } = run
  const [, watched, dim] = run.sums.tail.shape
  const written = Number(engine.integers(run.sums.clock)[WRITTEN])
  const row = watched * dim
  const tail = engine.view(run.sums.tail)
  const found = Math.min(n, written, constants.TAIL)
  const out = new Float64Array(found * row)
  for (let i = 0; i < found; i++) {
    const at = (written - found + i) % constants.TAIL
    out.set(tail.subarray(at * row, (at + 1) * row), i * row)
  }
  return { n: found, chains: watched, theta: out }
}

/** The histogram of a column, the outer two being what fell outside. @param {import("./run.js").Run} run @param {number} k */
export const counts = (run, k) => {
  const { bins } = run.sums
  const n = bins.shape[1]
  const words = new Uint32Array(run.engine.memory, bins.pointer + 8 * n * k, 2 * n)
  return Float64Array.from({ length: n }, (_, i) => words[2 * i] + 4294967296 * words[2 * i + 1])
}

