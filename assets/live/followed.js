// Sums over a run's counted draws, and over snapshots of its auxiliary variables, for claims that the running statistics
// do not determine.

/** The largest number of draws of a chain between two sums. */
const MOST_DRAWS = 64
/** The largest number of coordinates in all these draws. */
const MOST_NUMBERS = 2 ** 18

/** A run's sums: steps between two snapshots, 0 for none, expectations by their numbers, each with its compiled function,
 * and the columns whose draws the KS distance of a chain needs, each with its constants, up to a number of draws of a chain.
 * @typedef {{every: number, moments: Record<string, {sums: string, constants: number[]}>, gaps: {most: number, columns: Array<{k: number, constants: number[]}>} | null}} Follows */
/** @typedef {import("./engine.js").NDArray} NDArray */

export class Followed {
  /** @param {import("./run.js").Run} run @param {Follows} follows */
  constructor(run, { every, moments, gaps }) {
    this.run = run
    this.every = every
    this.moments = Object.entries(moments).map(([number, { sums, constants }]) => ({
      number, sums, constants: run.engine.array(constants), out: run.engine.zeros([run.description.n_chains]),
    }))
    const { n_chains: n } = run.description
    const { dim } = run.target
    this.columns = gaps?.columns ?? []
    /** The draws of a chain that are held, [column][chain][draw], and their largest number. */
    this.mostHeld = gaps?.most ?? 0
    this.heldDraws = this.columns.map(() => new Float64Array(n * this.mostHeld))
    this.most = this.moments.length + this.columns.length ? Math.max(1, Math.min(MOST_DRAWS, Math.floor(MOST_NUMBERS / (n * dim)))) : 0
    this.snapshots = this.draws = this.held = 0
    /** The distances of so many draws of each chain. @type {{n: number, found: Float64Array | null}} */
    this.distances = { n: 0, found: null }
    /** The step of the last snapshot. */
    this.seen = -1
    /** Σa and Σa² of the auxiliary variables a, [chain][variable]. @type {Float64Array[]} */
    this.powers = []
    run.keep(this.most)
    this.restart()
  }

  free() { this.run.engine.free(...this.moments.flatMap(({ constants, out }) => [constants, out])) }

  /** Forget all draws and snapshots. */
  restart() {
    const { run } = this
    const { engine, arrays, description } = run
    const [n, width] = arrays.momentum.shape
    this.snapshots = this.draws = this.held = 0
    this.distances = { n: 0, found: null }
    this.seen = -1
    this.powers = [1, 2].map(() => new Float64Array(n * width))
    engine.integers(arrays.kept_clock).set([0n, BigInt(description.thin), 1n])
    for (const { out } of this.moments) engine.view(out).fill(0)
  }

  get _kept() { return Number(this.run.engine.integers(this.run.arrays.kept_clock)[0]) }

  /** The last step that a counting run may go to before a look. */
  get next() {
    const { steps, countedFrom, description: { thin } } = this.run
    return Math.min(
      this.every ? steps + this.every - ((steps - countedFrom) % this.every) : Infinity,
      this.most ? steps + (this.most - this._kept) * thin : Infinity,
    )
  }

  /** Look at the run where it is. */
  look() {
    const { steps, countedFrom, divergence } = this.run
    const counted = steps - countedFrom
    if (divergence || counted <= 0) return
    if (this.every && counted % this.every === 0) this.snapshot()
    if (this.most && this._kept === this.most) this._add()
  }

  /** Count the auxiliary variables as they are, once at a step. */
  snapshot() {
    const { engine, arrays, steps, countedFrom, divergence } = this.run
    if (!this.every || divergence || steps === this.seen || steps === countedFrom) return
    this.seen = steps
    this.snapshots += 1
    const [first, second] = this.powers
    engine.view(arrays.momentum).forEach((a, i) => {
      first[i] += a
      second[i] += a * a
    })
  }

  /** Add up the kept draws, and make room for others. */
  _add() {
    const n = this._kept
    if (!n) return
    const { engine, arrays, sums: { bins }, target } = this.run
    const chains = arrays.kept.shape[0]
    // The kept draws are [chain][draw], where a step has [draw][chain].
    const values = engine.zeros([bins.shape[0], this.most, chains])
    engine.call("observe", { draws: arrays.kept, n: chains, out: values }, target.functions.observe)
    for (const { sums, constants, out } of this.moments) engine.call(sums, { values, n, constants, out })
    const fresh = engine.view(values)
    const added = Math.min(n, this.mostHeld - this.held)
    this.columns.forEach(({ k }, i) => {
      for (let c = 0; c < chains; c++)
        for (let t = 0; t < added; t++) this.heldDraws[i][c * this.mostHeld + this.held + t] = fresh[(k * this.most + t) * chains + c]
    })
    this.held += added
    engine.free(values)
    this.draws += n
    engine.integers(arrays.kept_clock)[0] = 0n
  }

  /** The mean of the p-th power of an auxiliary variable in each chain; null without snapshots.
   * @param {number} component from 1 @param {number} order 1 or 2 */
  auxiliary(component, order) {
    const [n, width] = this.run.arrays.momentum.shape
    const power = (/** @type {number} */ c) => (component <= width ? this.powers[order - 1][c * width + component - 1] : NaN)
    return this.snapshots ? Float64Array.from({ length: n }, (_, c) => power(c) / this.snapshots) : null
  }

  /** The mean of ‖v‖²/m in each chain; null without snapshots. */
  temperature() {
    const { target: { dim, manifold_dim: m }, arrays: { momentum: { shape: [n] } } } = this.run
    const squares = Array.from({ length: dim }, (_, i) => this.auxiliary(i + 1, 2))
    return this.snapshots ? Float64Array.from({ length: n }, (_, c) => squares.reduce((sum, one) => sum + /** @type {Float64Array} */ (one)[c], 0) / m) : null
  }

  /** The KS distance of each chain's first draws, the mean over columns; null without draws. */
  gaps() {
    this._add()
    const { run: { engine, description: { n_chains: chains } }, held: n, columns, heldDraws, mostHeld } = this
    if (n === this.distances.n) return this.distances.found
    const values = engine.zeros([n])
    const found = Float64Array.from({ length: chains }, (_, c) => {
      const each = columns.map(({ constants: [a, b, log_beta] }, i) => {
        engine.view(values).set(heldDraws[i].slice(c * mostHeld, c * mostHeld + n).sort())
        return engine.call("odds_gap", { values, a, b, log_beta })
      })
      return each.reduce((sum, gap) => sum + gap, 0) / each.length
    })
    engine.free(values)
    this.distances = { n, found }
    return found
  }

  /** The mean of a function in each chain; NaN without draws. @param {number} number */
  expectation(number) {
    this._add()
    const { out } = /** @type {{out: NDArray}} */ (this.moments.find((one) => one.number === String(number)))
    return this.run.engine.view(out).map((sum) => sum / this.draws)
  }
}
