// The sweep of a step: its points at reduced length, one after the other, and the claims about them, as in
// lessons/sweep.py.

import { judged, mean, quantity, separateMark } from "./claims.js"
import { measured } from "./measures.js"
import { Run } from "./run.js"
import { Truth } from "./truth.js"

/** Milliseconds of a sweep's work before it yields. */
const SLICE = 25
/** Steps of a run's first part, before the time of a step is known. */
const FIRST = 16
/** The fewest points for a label with a slope. */
const FEWEST = 3
const TROUBLE = "Some of the sweep's runs do not determine this number: they blew up, or are too short."

/** @typedef {import("./claims.js").Estimate} Estimate */
/** One lane with values on the sweep's axes. `time` is the time of a step.
 * @typedef {{lane: number, values: Record<string, any>, run: any, exact: number | null, follows: import("./followed.js").Follows | null, time: number}} Point */
/** @typedef {{place: number, lanes: number[], quantity: string, reduction: string, where: Record<string, any>} & import("./claims.js").Goals} SweptClaim */
/** `log` and `numeric` describe the drawn axis; with `sizes`, the absolute value of a bias is drawn.
 * @typedef {{points: Point[], seeds: number, measure: import("./measures.js").Measure, quantity: string, perRoot: number | null, cells: Record<number, any>,
 *   claims: SweptClaim[], axis: string, values: any[], numeric: boolean, log: boolean, sizes: boolean, names: string[]}} Given */
/** One point of the sweep with its seeds. @typedef {{lane: number, values: Record<string, any>, seeds: Estimate[]}} Row */
/** The numbers of a lane along one axis. @typedef {{at: any, middle: Estimate, low: number, high: number}} Place */

const NONE = { value: NaN, error: null, exact: null }

export class Sweep {
  /** @param {import("./engine.js").Engine} engine @param {Record<string, number>} constants @param {any} target
   * @param {any} poisson @param {Given} given */
  constructor(engine, constants, target, poisson, given) {
    this.engine = engine
    this.constants = constants
    this.target = target
    this.truth = new Truth(engine, target.truth)
    this.poisson = poisson
    this.given = given
    this.total = given.points.length * given.seeds
    this.done = 0
    /** The completed share of the present run. */
    this.share = 0
    /** @type {Row[]} */
    this.rows = given.points.map(({ lane, values }) => ({ lane, values, seeds: [] }))
    this.works = this._work()
    this.ended = false
  }

  /** Continue for a while. @returns {boolean} whether work remains */
  go() {
    const until = performance.now() + SLICE
    while (!this.ended && performance.now() < until) this.ended = Boolean(this.works.next().done)
    return !this.ended
  }

  /** End the sweep, and free its memory. */
  end() {
    this.works.return(undefined)
    this.ended = true
    this.truth.free()
  }

  /** @returns {Generator<undefined, void, unknown>} */
  *_work() {
    const { points, seeds } = this.given
    for (const [k, point] of points.entries())
      for (let i = 0; i < seeds; i++) {
        this.rows[k].seeds.push(yield* this._measure(point, i))
        this.done += 1
        this.share = 0
        yield
      }
  }

  /** @param {Point} point @param {number} i which of the seeds @returns {Generator<undefined, Estimate, unknown>} */
  *_measure(point, i) {
    const { measure, quantity: name, perRoot, cells } = this.given
    const { engine, constants, target, truth, poisson } = this
    const run = new Run(engine, constants, { ...point.run, target, seed: (point.run.seed + i) % 2 ** 32 })
    try {
      if (point.follows) run.follow(point.follows)
      const { burn_in: burnIn, n_steps: steps } = point.run
      let chunk = FIRST
      while (run.steps < burnIn + steps && !run.divergence) {
        const began = performance.now()
        const made = Math.min(chunk, (run.steps >= burnIn ? burnIn + steps : burnIn) - run.steps)
        run.advance(made)
        chunk = Math.max(FIRST, Math.min(2 * chunk, Math.round((made * SLICE) / 4 / Math.max(performance.now() - began, 0.01))))
        this.share = run.steps / (burnIn + steps)
        yield
      }
      run.followed?.snapshot()
      const unpacked = Object.fromEntries(Object.entries(cells).map(([column, arrays]) =>
        [column, Object.fromEntries(Object.entries(arrays).map(([key, packed]) => [key, engine.unpack(/** @type {any} */ (packed))]))]))
      const found = measured(measure, { run, truth, time: point.time, cells: unpacked, poisson })
      for (const arrays of Object.values(unpacked)) engine.free(...Object.values(arrays))
      if (!found) return NONE
      const exact = perRoot === null ? point.exact : perRoot / Math.sqrt(run.nEffective)
      const { value, error, exact: known } = quantity(name, { ...found, exact }, null)
      return Number.isFinite(value) ? { value, error: error !== null && Number.isFinite(error) ? error : null, exact: known } : NONE
    } finally {
      run.free()
    }
  }

  /** The completed share of the sweep, from 0 to 1. */
  get far() { return (this.done + this.share) / Math.max(this.total, 1) }

  /** The marks of the sweep's claims once it is measured; before that, its progress. */
  marks() {
    return this.given.claims.map((claim) => {
      if (!this.ended || this.done < this.total) return { place: claim.place, state: "running", detail: `${Math.round(100 * this.far)}% of the step's own runs` }
      const [lane, other] = claim.lanes.map((number) => reduced(claim, this.rows, number))
      const seeds = lane.map((estimate, i) => quantity(claim.quantity, estimate, other ? other[i] : null))
      return { place: claim.place, ...separateMark(judged(claim, seeds, TROUBLE)) }
    })
  }

  /** The drawing of each lane: label, bars, line and markers. */
  drawn() {
    const { axis, values, numeric, log, sizes, names } = this.given
    return names.map((name, lane) => {
      const places = curve(axis, this.rows, lane)
      const x = places.map(({ at }) => (numeric ? at : values.indexOf(at)))
      const size = sizes ? Math.abs : (/** @type {number} */ y) => y
      const y = places.map(({ middle }) => size(middle.value))
      const ends = places.map(({ low, high }) => [size(low), size(high)].sort((a, b) => a - b))
      const told = log && places.length >= FEWEST ? slope(places.map(({ at }) => at), places.map(({ middle }) => middle)).value : NaN
      return { label: Number.isFinite(told) ? `${name}, slope ${told.toFixed(2)}` : name, x, y, low: ends.map(([low]) => low), high: ends.map(([, high]) => high) }
    })
  }
}

/** @param {Record<string, any>} part @param {Record<string, any>} whole */
const agrees = (part, whole) => Object.entries(part).every(([name, value]) => whole[name] === value)

/** A lane along one axis, with the best mean over the other axes. @param {string} axis @param {Row[]} rows @param {number} lane @returns {Place[]} */
export const curve = (axis, rows, lane) => {
  /** @type {Map<any, Row>} */
  const best = new Map()
  for (const row of rows) {
    const at = row.values[axis]
    if (row.lane !== lane || at === undefined || !row.seeds.length || !Number.isFinite(mean(row.seeds).value)) continue
    const before = best.get(at)
    if (!before || mean(row.seeds).value < mean(before.seeds).value) best.set(at, row)
  }
  const sorted = [...best.keys()].sort((a, b) => (a < b ? -1 : 1))
  return sorted.map((at) => {
    const { seeds } = /** @type {Row} */ (best.get(at))
    const values = seeds.map(({ value }) => value)
    return { at, middle: mean(seeds), low: Math.min(...values), high: Math.max(...values) }
  })
}

/** The sweep as a claim's number: one estimate for every seed, or a single one.
 * @param {SweptClaim} claim @param {Row[]} rows @param {number} lane @returns {Estimate[]} */
export const reduced = ({ where, reduction }, rows, lane) => {
  const found = rows.filter((row) => row.lane === lane && agrees(where, row.values))
  if (reduction === "at") return found[0].seeds
  const free = Object.keys(found[0].values).find((name) => !(name in where)) ?? ""
  if (reduction === "slope") return [slope(found.map(({ values }) => values[free]), found.map(({ seeds }) => mean(seeds)))]
  const size = (/** @type {Row} */ { seeds }) => {
    const { value } = mean(seeds)
    return Number.isFinite(value) ? value : Infinity
  }
  const best = found.reduce((a, b) => (size(b) < size(a) ? b : a))
  return reduction === "best" ? best.seeds : [{ value: Number(best.values[free]), error: null, exact: null }]
}

/** The slope of log |y| against log x, by least squares: weighted where the errors of y are known.
 * @param {number[]} x @param {Estimate[]} y @returns {Estimate} */
export const slope = (x, y) => {
  const values = y.map(({ value }) => value)
  if (values.some((value) => !Number.isFinite(value) || value === 0)) return NONE
  const known = y.every(({ error }) => error)
  const weight = y.map(({ value, error }) => (known ? (value / /** @type {number} */ (error)) ** 2 : 1))
  const sum = (/** @type {(i: number) => number} */ term) => x.reduce((total, _, i) => total + term(i), 0)
  const whole = sum((i) => weight[i])
  const centre = sum((i) => weight[i] * Math.log(x[i])) / whole
  const at = x.map((one) => Math.log(one) - centre)
  const log = values.map((value) => Math.log(Math.abs(value)))
  const spread = sum((i) => weight[i] * at[i] ** 2)
  const value = sum((i) => weight[i] * at[i] * log[i]) / spread
  if (known) return { value, error: 1 / Math.sqrt(spread), exact: null }
  const level = sum((i) => weight[i] * log[i]) / whole
  const rest = sum((i) => (log[i] - level - value * at[i]) ** 2)
  return { value, error: Math.sqrt(rest / Math.max(y.length - 2, 1) / spread), exact: null }
}
