// Many chains of a lane beside it, all from its start, a batch at a time; app/views/moments.py has the same.

import { numbersOf } from "./engine.js"
import { Run } from "./run.js"

/** Chains of the whole ensemble. */
const CHAINS = 20_000
/** The process whose moments Corollary 3.2 gives, and whose transform Theorem 3.1 gives. */
export const LAW = "cir"
/** Nothing is counted while a batch runs, so that its statistics need no room. */
export const NO_ROOM = { HISTORY: 0, TAIL: 0, N_LEVELS: 0, N_BINS: 0, N_JOINT: 0, MARKS: 0 }

/** What an ensemble is of; with another key it starts again.
 * @typedef {{description: any, sampler: any, gradient: any, target: any, coordinate: number, share: boolean}} Key */

/** @param {import("./run.js").Run} run @param {number} chains @param {number} coordinate @param {boolean} [share] @returns {Key} */
export const keyOf = ({ description, sampler, gradient, target }, chains, coordinate, share = false) => {
  const { seed, start, theta = null, momentum, velocity = null, schedule } = description
  return { description: { seed, start, theta, momentum, velocity, schedule, n_chains: chains, thin: 1 }, sampler, gradient, target, coordinate, share }
}

/** Whether two descriptions say the same. @param {any} a @param {any} b @returns {boolean} */
const same = (a, b) => {
  if (a === b) return true
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false
  if (ArrayBuffer.isView(a)) return a instanceof Uint8Array && b instanceof Uint8Array && a.length === b.length && a.every((x, i) => x === b[i])
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => same(a[name], b[name]))
}

let made = 0

export class Ensemble {
  /** @param {import("./run.js").Run} run of the lane @param {Key} key @param {number} steps that its chains make */
  constructor({ engine, constants }, key, steps) {
    this.id = made++
    this.engine = engine
    this.constants = constants
    this.key = key
    this.steps = steps
    this.batches = 0
    this.chains = 0
    this.diverged = false
    /** The batch that is being made. @type {Generator<undefined, void, unknown> | null} */
    this.work = null
  }

  /** What changes with every batch. */
  get version() { return `${this.id}:${this.batches}:${this.diverged}` }

  /** Whether there is more to run. */
  get wanted() { return !this.diverged && this.chains < CHAINS }

  /** One more part of a batch, of about a step. */
  go() {
    this.work ??= this._work()
    if (this.work.next().done) this.work = null
  }

  /** Give back the memory of a batch that is not complete: it begins again with its seed. */
  rest() {
    this.work?.return(undefined)
    this.work = null
  }

  /** @returns {Generator<undefined, void, unknown>} */
  *_work() {
    const { description, sampler, gradient, target } = this.key
    const seed = (description.seed * 1000 + this.batches) % 2 ** 32
    const run = new Run(this.engine, { ...this.constants, ...NO_ROOM }, { ...description, seed, sampler, gradient, target, burn_in: this.steps })
    try {
      yield
      if (yield* this._batch(run)) {
        this.batches += 1
        this.chains += description.n_chains
      } else this.diverged = true
    } finally {
      run.free()
    }
  }

  /** Make the steps of a batch, and add it to the sums: each view has its own. @abstract @param {import("./run.js").Run} run
   * @returns {Generator<undefined, boolean, unknown>} whether no chain diverged */
  *_batch(run) { return !run.divergence }
}

/** An estimate at some places, and the ends of its bar of ±2 standard errors.
 * @param {number[]} at @param {ArrayLike<number>} y @param {ArrayLike<number>} error */
export const bars = (at, y, error) => [0, -2, 2].map((times) => at.map((place) => y[place] + times * error[place]))

/** θ_j, or ω_j, of every chain of a batch, as a column in the engine's memory.
 * @param {import("./run.js").Run} run @param {Key} key */
export const columnOf = (run, { coordinate: j, share, description: { n_chains: n } }) => {
  const theta = run.theta()
  const { dim } = run.target
  const values = share ? run.values(theta, 1, n).subarray(j * n, (j + 1) * n) : Float64Array.from({ length: n }, (_, c) => theta[c * dim + j])
  return run.engine.array(values, [n, 1])
}

/** What theory needs of an ensemble on a target of the CIR process: a_j, its parts, the start, the step, and the batches.
 * At a temperature each data point has the weight 1/T, and start and step are in the unit of the process.
 * @param {Ensemble} ensemble @param {number} first */
export const lawOf = ({ key: { target, sampler, gradient, coordinate: j } }, first) => {
  const params = numbersOf(target.params)
  const d = target.dim
  const counts = params.slice(d, 2 * d)
  const unit = params[2 * d] ?? 1
  const weight = counts.reduce((sum, n) => sum + n, 0)
  const total = numbersOf(target.data).length
  const heat = total ? total / weight : 1
  const count = Math.round(counts[j] * heat)
  return { prior: params[j], count, a: params[j] + counts[j], total, heat, unit, theta0: first / unit, h: sampler.step_size / unit, ...gradient.noise }
}

/** θ_j at the start, which moves no coordinate of what has a theory. @param {Key} key */
export const startOf = ({ description: { start, theta }, coordinate }) => (theta ?? numbersOf(start))[coordinate]

/** Those of some lanes: where a lane is as it was its ensemble goes on, and elsewhere another begins.
 * @template {Ensemble} T @param {Array<T | null>} before @param {Array<Key | null>} keys of the lanes that have one
 * @param {(key: Key, lane: number) => T} begin @returns {Array<T | null>} */
export const renewed = (before, keys, begin) =>
  keys.map((key, lane) => {
    const one = before[lane]
    if (!key) return null
    if (!one || !same(one.key, key)) return begin(key, lane)
    // The next look finds the same objects.
    one.key = key
    return one
  })

/** Give ensembles that want more their turns for some time, the one with the fewest chains first.
 * @param {Array<Ensemble | null>} results @param {number} until @returns {boolean} whether more is wanted */
export const fill = (results, until) => {
  const least = () => results.reduce((found, one) => (one?.wanted && (!found || one.chains < found.chains) ? one : found), null)
  let next = least()
  while (next && performance.now() < until) {
    next.go()
    next = least()
  }
  return next !== null
}
