// The moment-generating function of many chains after a few steps; its figures are app/views/mgf.py's.

import { bars, columnOf, Ensemble, keyOf, LAW, lawOf, renewed, startOf } from "../ensembles.js"
import { grouped } from "../format.js"

/** @typedef {import("../run.js").Run} Run */

/** The sums of e^{sθ} over the chains so far, after each of some steps. */
class MGFEnsemble extends Ensemble {
  /** @param {Run} run @param {import("../ensembles.js").Key} key @param {number[]} after @param {number[]} s */
  constructor(run, key, after, s) {
    super(run, key, after[after.length - 1])
    this.after = after
    this.s = s
    this.shape = [2, after.length, s.length]
    /** Of the values, and of their squares. */
    this.sums = new Float64Array(2 * after.length * s.length)
    /** The lines of theory, made with the first batch; null where there are none. @type {number[][] | null} */
    this.theory = null
  }

  /** @param {Run} run @returns {Generator<undefined, boolean, unknown>} */
  *_batch(run) {
    if (!this.batches && !this.theory) yield* this._theory()
    const { engine } = this
    const [s, sums] = [engine.array(this.s), engine.array(this.sums, this.shape)]
    try {
      for (const [row, steps] of this.after.entries()) {
        while (run.steps < steps && !run.divergence) {
          run.advance(1)
          yield
        }
        if (run.divergence) return false
        const position = columnOf(run, this.key)
        engine.call("add_exponentials", { s, position, j: 0, row, sums })
        engine.free(position)
        yield
      }
      this.sums = engine.view(sums).slice()
      return true
    } finally {
      engine.free(s, sums)
    }
  }

  /** E e^{sθ_j} where it is known, over the minibatches too: one value at a time, for large batches take long.
   * @returns {Generator<undefined, void, unknown>} */
  *_theory() {
    const { engine, key: { gradient } } = this
    if (gradient.control_variates) return
    const law = lawOf(this, startOf(this.key))
    const { prior: alpha, total: n_data, count, batch_size, replacement, h, unit } = law
    const reading = batch_size ? "scir_mgfs_expected" : "cir_mgfs"
    const lines = this.after.map(() => /** @type {number[]} */ ([]))
    for (const [k, steps] of this.after.entries())
      for (const value of this.s) {
        const [s, weights, out] = [engine.array([unit * value]), engine.zeros([batch_size + 1]), engine.zeros([1])]
        engine.call(reading, { ...law, s, alpha, t: h * steps, steps, n_data, count, batch_size, replacement, weights, out })
        lines[k].push(engine.view(out)[0])
        engine.free(s, weights, out)
        yield
      }
    this.theory = lines
  }

  /** The means and their standard errors, [steps][s] each. */
  table() {
    const { engine, chains, after, s: { length } } = this
    const [sums, out] = [engine.array(this.sums, this.shape), engine.zeros(this.shape)]
    engine.call("mean_of_exponentials", { sums, chains, out })
    const found = engine.view(out).slice()
    engine.free(sums, out)
    const rows = (/** @type {number} */ from) => after.map((_, k) => found.subarray((from + k) * length, (from + k + 1) * length))
    return { mean: rows(0), error: rows(after.length) }
  }
}

/** @type {import("../views.js").LiveView} */
export const mgf = {
  ofLanes: true,
  background({ data, coordinate, ensembles }, lanes) {
    const keys = lanes.map(({ run }) => (run.sampler.process === LAW ? keyOf(run, data.batch, coordinate) : null))
    return renewed(ensembles, keys, (key, lane) => new MGFEnsemble(lanes[lane].run, key, data.after, data.s))
  },
  compute({ data, ensembles }) {
    const found = /** @type {Array<MGFEnsemble | null>} */ (ensembles)
    const version = found.map((one) => one?.version).join()
    if (version === data.sent) return {}
    data.sent = version
    /** @type {import("../views.js").Data} */
    const out = {}
    // Lanes show different s, so that their marks stand beside each other.
    const stride = 2 * found.length
    found.forEach((one, i) => {
      const shown = one && !one.diverged && one.batches ? one : null
      const table = shown?.table()
      const at = [...data.s.keys()].filter((k) => k >= 2 * i && (k - 2 * i) % stride === 0)
      data.after.forEach((/** @type {number} */ _, /** @type {number} */ k) => {
        out[`theory ${k} ${i}`] = shown?.theory ? [data.s, shown.theory[k]] : [[], []]
        out[`lane ${k} ${i}`] = table
          ? [at.map((place) => data.s[place]), ...bars(at, table.mean[k], table.error[k])]
          : [[], [], [], []]
      })
    })
    return out
  },
  captions({ names, ensembles }) {
    const lines = names.map((name, i) => {
      const one = /** @type {MGFEnsemble | null} */ (ensembles[i] ?? null)
      if (!one) return `${name} not shown: its transition is not the process's`
      if (one.diverged) return `${name} diverged, not shown`
      return `${name} ${grouped(one.chains)} chains${one.batches && !one.theory ? ", no line: control variates" : ""}`
    })
    return [...lines, "dashed: target · bars ±2 standard errors"]
  },
}
