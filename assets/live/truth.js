// The distance of a run's draws from the target, by the compiled readings and the target's exact answers.

export class Truth {
  /** @param {import("./engine.js").Engine} engine @param {any} truth */
  constructor(engine, { cdf, ks_columns: columns, divergence }) {
    this.engine = engine
    this.columns = columns
    this.cdf = cdf.map((/** @type {any} */ packed) => packed && engine.unpack(packed))
    this.out = engine.zeros([2])
    this.divergence = divergence && {
      ...divergence,
      ...Object.fromEntries(["grid", "terms", "masses", "cuts"].filter((name) => divergence[name]).map((name) => [name, engine.unpack(divergence[name])])),
    }
  }

  free() {
    const { grid, terms, masses, cuts } = this.divergence ?? {}
    this.engine.free(this.out, ...[...this.cdf, grid, terms, masses, cuts].filter(Boolean))
  }

  /** The KS distance, the KL divergence and its value for as many independent draws; the last two are NaN where undefined.
   * @param {import("./run.js").Run} run */
  distance({ sums, total, meanWeight: weight }) {
    const { engine, columns, cdf, divergence, out } = this
    const gaps = columns.map((/** @type {number} */ k) => engine.call("largest_gap", { bins: sums.bins, k, cdf: cdf[k], total }))
    const ks = gaps.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0) / gaps.length
    if (!divergence) return { ks, kl: NaN, exactKl: NaN }
    if (divergence.cuts) engine.call("column_divergence", { bins: sums.bins, k: 0, ...divergence, weight, out })
    else engine.call("joint_divergence", { joint: sums.joint, total_weight: total, ...divergence, weight, out })
    const [kl, exactKl] = engine.view(out)
    return { ks, kl, exactKl }
  }
}
