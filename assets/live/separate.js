// The claims of a step whose measures make runs of their own, at reduced length, as in lessons/measures/ensemble.py and
// scan.py.

import { judged, quantity, separateMark } from "./claims.js"
import { NO_ROOM } from "./ensembles.js"
import { overChains } from "./measures.js"
import { Run } from "./run.js"

/** Milliseconds of work before it yields. */
const SLICE = 12

/** @typedef {import("./claims.js").Estimate} Estimate */
/** @typedef {import("./measures.js").Found} Found */
/** @typedef {import("./engine.js").Engine} Engine */
/** A claim; of each lane the run at reduced length, and the exact value.
 * @typedef {{place: number, measure: import("./measures.js").Measure, lanes: Array<{run: any, exact: number | null}>, quantity: string,
 *   seeds: number} & import("./claims.js").Goals} SeparateClaim */
/** The memory, the sizes of arrays, and the step's target. @typedef {{engine: Engine, constants: Record<string, number>, target: any}} Host */
/** @typedef {Generator<undefined, Found, unknown>} Work */

const NONE = { value: NaN, error: null }

/** A number of θ_j of many chains after some steps from one start, by `read`.
 * @param {Host} host @param {any} described @param {Record<string, any>} values @param {(column: Float64Array, engine: Engine) => Found} read @returns {Work} */
function* ensemble({ engine, constants, target }, described, { component, steps, start }, read) {
  const theta = Array(target.dim).fill(start)
  const run = new Run(engine, { ...constants, ...NO_ROOM }, { ...described, target, theta, burn_in: steps })
  try {
    while (run.steps < steps && !run.divergence) {
      run.advance(1)
      yield
    }
    return run.divergence ? NONE : read(run.theta().filter((_, i) => i % target.dim === component - 1), engine)
  } finally {
    run.free()
  }
}

/** Mean, its standard error, variance and its standard error. @param {Float64Array} column @param {Engine} engine */
const spreadOf = (column, engine) => {
  const [values, out] = [engine.array(column, [column.length, 1]), engine.zeros([4, 1])]
  engine.call("spread_of_chains", { values, out })
  const found = engine.view(out).slice()
  engine.free(values, out)
  return found
}

/** τ of θ in minibatch Gibbs on Gaussian data, a chain at a time, each with a seed of its own.
 * @param {Host} host @param {any} described @param {Record<string, any>} values @returns {Work} */
function* scan({ engine }, { n_chains: chains, n_steps: steps, seed }, { n_data: n, batch_size, sd }) {
  const [x, z, out, work, rho] = [n, n, steps, steps, steps].map((size) => engine.zeros([size]))
  try {
    const taus = new Float64Array(chains)
    for (let c = 0; c < chains; c++) {
      const rng = engine.spawned(seed, c)
      engine.call("scan_chain", { rng, variance: sd ** 2, batch_size, x, z, out })
      engine.exports.free(rng)
      yield
      taus[c] = engine.call("mean_tau", { draws: out, work, rho })
      yield
    }
    return overChains(taus)
  } finally {
    engine.free(x, z, out, work, rho)
  }
}

/** @type {Record<string, (host: Host, described: any, values: Record<string, any>) => Work>} */
const SEPARATE = {
  ensemble_mean: (host, described, values) => ensemble(host, described, values, (column, engine) => {
    const [value, error] = spreadOf(column, engine)
    return { value, error }
  }),
  ensemble_variance: (host, described, values) => ensemble(host, described, values, (column, engine) => {
    const [, , value, error] = spreadOf(column, engine)
    return { value, error }
  }),
  ensemble_mgf: (host, described, values) => ensemble(host, described, values, (column) => overChains(column.map((x) => Math.exp(values.s * x)))),
  scan_tau: scan,
  *scan_cost(host, described, values) {
    const { value, error } = yield* scan(host, described, values)
    const scale = values.batch_size * values.local + values.overall
    return { value: value * scale, error: error === null ? null : error * scale }
  },
}

export class SeparateRuns {
  /** @param {Engine} engine @param {Record<string, number>} constants @param {any} target @param {SeparateClaim[]} claims */
  constructor(engine, constants, target, claims) {
    this.host = { engine, constants, target }
    this.claims = claims
    this.total = claims.reduce((sum, { lanes, seeds }) => sum + lanes.length * seeds, 0)
    this.done = 0
    /** By the claim's place in the step. @type {Map<number, import("./claims.js").Result>} */
    this.results = new Map()
    this.works = this._work()
    this.begun = false
  }

  /** Continue for a while. @returns {boolean} whether work remains */
  go() {
    const until = performance.now() + SLICE
    while (performance.now() < until) if (this.works.next().done) return false
    return true
  }

  /** Give back the memory of a run that is not complete. */
  end() { this.works.return(undefined) }

  /** @returns {Generator<undefined, void, unknown>} */
  *_work() {
    for (const claim of this.claims) {
      const { place, measure, lanes, quantity: name, seeds } = claim
      /** @type {Estimate[][]} */
      const found = lanes.map(() => [])
      for (const [k, { run, exact }] of lanes.entries())
        for (let i = 0; i < seeds; i++) {
          const described = { ...run, seed: (run.seed + i) % 2 ** 32 }
          found[k].push({ ...(yield* SEPARATE[measure.key](this.host, described, measure.values)), exact })
          this.done += 1
          yield
        }
      const [lane, other] = found
      this.results.set(place, judged(claim, lane.map((one, i) => quantity(name, one, other ? other[i] : null)), ""))
    }
  }

  /** A mark for each claim. @returns {Array<import("./claims.js").Mark & {place: number}>} */
  marks() {
    return this.claims.map(({ place }) => {
      const result = this.results.get(place)
      return result ? { place, ...separateMark(result) } : { place, state: "running", detail: `${Math.round((100 * this.done) / this.total)}% of the step's own runs` }
    })
  }
}
