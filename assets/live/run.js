// A run of one lane in the WebAssembly host: the same order of operations as in samplers/engine.py, and so the same draws.

import { numbersOf } from "./engine.js"
import { Followed } from "./followed.js"
import { general } from "./format.js"

export const [ACCEPTED, CLIPPED, SQUARE, THERMOSTAT, GRADIENTS, TURNED, DIVERGED, ABOVE] = [0, 1, 2, 3, 4, 5, 6, 8]
export const [STEPS, KEPT, STRIDE, WRITTEN, WEIGHT] = [0, 1, 2, 3, 4]
/** The `momentum` of samplers that keep it from step to step. */
const KEPT_MOMENTUM = "kept"
/** Places in the weights, as in samplers/running_statistics.py. */
const [SQUARES, , CHAINS] = [0, 1, 2]
const SUMS = ["clock", "scales", "bins", "joint_scales", "joint", "powers", "lag_sums", "lag_recent", "lag_first", "level_sums", "history", "tail", "weights"]

/** An estimator's description without the first values of its memory, which do not affect a running chain. @param {any} gradient */
const identity = (gradient) => JSON.stringify({ ...gradient, memory: null })

/** @param {ArrayLike<number>} row @param {number} length */
const tile = (row, length) => Float64Array.from({ length }, (_, i) => row[i % row.length])

export class Run {
  /** @param {import("./engine.js").Engine} engine @param {Record<string, number>} constants @param {any} description */
  constructor(engine, constants, description) {
    this.engine = engine
    this.constants = constants
    this.description = description
    this.steps = 0
    this.countedFrom = 0
    /** @type {{step: number, message: string, refused: boolean} | null} */
    this.divergence = null
    this.touchedBefore = 0
    this.gradientsBefore = 0
    this.counted = 0
    this.gradientsPerStep = 0
    this.countsOfGradient = 1
    this.dataPerGradient = 0
    this.pricedFrom = 0
    /** The run's arrays in the memory, under the compiled loop's names.
     * @type {Record<string, import("./engine.js").NDArray>} */
    this.arrays = {}
    /** The running statistics. @type {Record<string, import("./engine.js").NDArray>} */
    this.sums = {}
    this.sampler = description.sampler
    /** Future changes of parameters, each at its step. @type {any[]} */
    this.pending = [...(description.changes ?? [])]
    /** The last of them that was made. @type {any} */
    this.changed = null
    /** The step since which the chains have had these auxiliary variables. */
    this.adaptingFrom = 0
    /** Sums that claims need. @type {Followed | null} */
    this.followed = null
    const { n_chains: n, start, momentum, seed, keep = 0 } = description
    this._aim(description.target)
    this._estimateBy(description.gradient)
    const { dim } = this.target
    this.rng = engine.seeded(seed)
    this._put("params", engine.unpack(this.sampler.params))
    this._put("schedule", engine.unpack(description.schedule))
    this._put("position", engine.array(tile(numbersOf(start), n * dim), [n, dim]))
    this._begin(this.arrays.position)
    if (description.theta) this._place(tile(description.theta, n * dim))
    if (momentum) this._throw(numbersOf(momentum))
    if (description.velocity && this.sampler.momentum === KEPT_MOMENTUM) this._throw(this._white(Float64Array.from(description.velocity)))
    this._put("last_gradient", engine.zeros([n, dim]))
    // Behind the counts are the places of the last divergent transitions, and where these ended.
    this._put("counts", engine.zeros([constants.COUNTS + constants.MARKS * (1 + dim)]))
    this.keep(keep)
    this._put("kept_clock", engine.zeros([3], "i8"))
    engine.integers(this.arrays.kept_clock).set([0n, BigInt(description.thin), 1n])
    this._refuse()
    this._lookAtStart()
  }

  /** Let the compiled loop keep this many draws of each chain, each with its own weight behind it if it has one. @param {number} most */
  keep(most) { this._put("kept", this.engine.zeros([this.description.n_chains, most, this.target.dim + this.sampler.weighs])) }

  /** From now on, make these sums too. @param {import("./followed.js").Follows} follows */
  follow(follows) { this.followed = new Followed(this, follows) }

  free() {
    this.followed?.free()
    this.engine.free(...Object.values(this.arrays), ...Object.values(this.sums))
    this.engine.exports.free(this.rng)
    this.arrays = this.sums = {}
  }

  /** @param {string} name @param {import("./engine.js").NDArray} array */
  _put(name, array) {
    if (this.arrays[name]) this.engine.free(this.arrays[name])
    this.arrays[name] = array
  }

  /** Draw the chains' first auxiliary variables, and the random part of their first position.
   * @param {import("./engine.js").NDArray} position */
  _begin(position) {
    const n = this.description.n_chains
    const auxiliary = numbersOf(this.sampler.auxiliary)
    this._put("momentum", this.engine.array(tile(auxiliary, n * auxiliary.length), [n, auxiliary.length]))
    this._call("begin", { position, auxiliary: this.arrays.momentum, start: this.sampler.start })
  }

  /** Where the new sampler has other auxiliary variables, keep the shared ones; the rest starts anew. */
  _beginAgain() {
    const { engine, arrays } = this
    const [n, before] = arrays.momentum.shape
    const after = this.sampler.auxiliary.shape[0]
    if (after === before) return
    this.adaptingFrom = this.steps
    const old = engine.view(arrays.momentum).slice()
    const position = engine.array(engine.view(arrays.position).slice(), arrays.position.shape)
    this._begin(position)
    engine.free(position)
    const now = engine.view(arrays.momentum)
    for (let c = 0; c < n; c++) now.set(old.subarray(c * before, c * before + Math.min(before, after)), c * after)
  }

  /** Call a compiled function that takes the run's own arrays. @param {string} key @param {Record<string, any>} more */
  _call(key, more) {
    return this.engine.call(key, { rng: this.rng, sums: this.sums, ...this.target.functions, ...this.arrays, ...more })
  }

  /** Take this target, with new statistics. @param {any} target */
  _aim(target) {
    const { engine, constants: k } = this
    const n = this.description.n_chains
    this.target = target
    this._put("target_params", engine.unpack(target.params))
    for (const name of ["data", "shape", "centre", "factor", "limits"]) this._put(name, engine.unpack(target[name]))
    const columns = target.scales.shape[0]
    const watched = Math.min(n, k.WATCHED)
    const side = target.planar ? k.N_JOINT : 0
    const lags = [columns, watched, k.N_LEVELS * k.N_LAGS]
    engine.free(...Object.values(this.sums))
    this.sums = {
      clock: engine.zeros([5], "i8"), scales: engine.unpack(target.scales), bins: engine.zeros([columns, k.N_BINS + 2], "i8"),
      joint_scales: engine.unpack(target.joint_scales), joint: engine.zeros([side, side], "i8"), powers: engine.zeros([columns, n, 4]),
      lag_sums: engine.zeros(lags), lag_recent: engine.zeros(lags), lag_first: engine.zeros(lags),
      level_sums: engine.zeros([columns, watched, k.N_LEVELS]), history: engine.zeros([watched, k.HISTORY, columns + 1]),
      tail: engine.zeros([k.TAIL, watched, target.dim]), weights: engine.zeros([this.sampler.weighs ? CHAINS + 2 * n : CHAINS]),
    }
    engine.integers(this.sums.clock)[STRIDE] = 1n
  }

  /** Take gradients by this estimator, whose memory has its first values. @param {any} gradient */
  _estimateBy(gradient) {
    const memory = numbersOf(gradient.memory)
    const n = this.description.n_chains
    this.gradient = gradient
    this._price()
    this._put("estimate_params", this.engine.unpack(gradient.params))
    this._put("memory", this.engine.array(tile(memory, n * memory.length), [n, memory.length]))
  }

  /** Give every chain this momentum, projected. @param {Float64Array} momentum */
  _throw(momentum) {
    const auxiliary = this.engine.view(this.arrays.momentum)
    const width = this.arrays.momentum.shape[1]
    for (let c = 0; c < this.description.n_chains; c++) auxiliary.set(momentum, c * width)
    this.engine.call("project", this.arrays, this.target.functions.project)
  }

  /** From here on, count the gradients of each step, and the data that the step touches. */
  _price() {
    const since = this._gradientsSince()
    this.touchedBefore += since * this.dataPerGradient
    this.gradientsBefore += since
    this.pricedFrom = this.steps
    this.counted = 0
    const { gradient, sampler, target } = this
    const data = Math.max(target.data.shape[0], 1)
    const full = (sampler.full_gradients_per_step * data) / gradient.data_per_gradient
    this.gradientsPerStep = sampler.gradients_per_step + full
    this.dataPerGradient = gradient.data_per_gradient + sampler.data_beside / Math.max(this.gradientsPerStep, 1)
    this.countsOfGradient = sampler.counts_data ? gradient.data_per_gradient : 1
  }

  _gradientsSince() {
    const made = (this.steps - this.pricedFrom) * this.description.n_chains
    return made * this.gradientsPerStep + this.counted / this.countsOfGradient
  }

  /** Gradient evaluations so far, of all chains. */
  get gradients() { return Math.round(this.gradientsBefore + this._gradientsSince()) }

  /** Data touched by gradients so far, of all chains. */
  get dataSeen() { return Math.round(this.touchedBefore + this._gradientsSince() * this.dataPerGradient) }

  /** Steps counted by the running statistics, for each chain. */
  get nSteps() { return Number(this.engine.integers(this.sums.clock)[STEPS]) }

  get nDraws() { return this.nSteps * this.description.n_chains }

  /** Whether each draw of each chain has a weight of its own. */
  get ownWeights() { return this.sampler.weighs }

  /** The weight of all counted steps of each chain: their number where draws have no weights. @returns {Float64Array} */
  get chainWeights() {
    const n = this.description.n_chains
    if (this.ownWeights) return this.engine.view(this.sums.weights).slice(CHAINS, CHAINS + n)
    return new Float64Array(n).fill(this._weight)
  }

  get _weight() { return Number(this.engine.integers(this.sums.clock)[WEIGHT]) }

  /** The weight of all draws: what the histogram adds up to. */
  get total() { return this.ownWeights ? this._weight : this._weight * this.description.n_chains }

  /** Why the draws have weights, which have no autocorrelation time; empty where they have none. */
  get whyWeighted() { return this.ownWeights ? "its draws have weights" : this._weight !== this.nSteps ? "the step size falls" : "" }

  /** Σw²/Σw of the weights w of the draws; 1 where they have none. */
  get meanWeight() {
    const squares = this.engine.view(this.sums.weights)[SQUARES]
    // In whole units a draw's weight may be 0.
    if (this.ownWeights) return this.total ? squares / this.total : 1
    return this.whyWeighted ? squares / this._weight : 1
  }

  /** How many draws of equal weight have the same variance of a mean, were the draws independent. */
  get nEffective() { return this.total / this.meanWeight }

  /** U at positions [row][coordinate], z for chains in whitened coordinates; by default at every chain. @param {Float64Array} [at] @returns {Float64Array} */
  energies(at) {
    const { engine, arrays, target } = this
    const theta = at ? engine.array(at, [at.length / target.dim, target.dim]) : arrays.position
    const [n] = theta.shape
    const out = engine.zeros([n])
    if (n) engine.call("potential", { theta, out, params: arrays.target_params }, target.functions.potential)
    const found = engine.view(out).slice()
    engine.free(out, ...(at ? [theta] : []))
    return found
  }

  /** The columns of draws θ [draw][chain][coordinate], as [column][chain][draw].
   * @param {Float64Array} theta @param {number} n @param {number} chains @returns {Float64Array} */
  values(theta, n, chains) {
    const { engine, target } = this
    const draws = engine.array(theta, [n, chains, target.dim])
    const out = engine.zeros([this.sums.bins.shape[0], chains, n])
    if (n) engine.call("observe", { draws, n, out }, target.functions.observe)
    const found = engine.view(out).slice()
    engine.free(draws, out)
    return found
  }

  /** ∂U/∂θ at one θ. @param {Float64Array} at @returns {Float64Array} */
  slope(at) {
    const { engine, target } = this
    const theta = engine.array(at, [1, target.dim])
    const out = engine.zeros([1, target.dim])
    engine.call("gradient", { theta, out, params: this.arrays.target_params }, target.functions.gradient)
    const found = engine.view(out).slice()
    engine.free(theta, out)
    return found
  }

  /** θ of every chain: centre + factor z for chains in whitened coordinates. @returns {Float64Array} */
  theta() {
    const z = this.engine.view(this.arrays.position).slice()
    if (!this.arrays.factor.shape[0]) return z
    const { dim } = this.target
    const [centre, factor] = [this.engine.view(this.arrays.centre), this.engine.view(this.arrays.factor)]
    return z.map((_, k) => {
      const i = k % dim
      let moved = 0
      for (let j = 0; j <= i; j++) moved += factor[i * dim + j] * z[k - i + j]
      return centre[i] + moved
    })
  }

  /** Move every chain to θ, the inverse of theta(). @param {Float64Array} theta */
  _place(theta) {
    const { engine, arrays, target: { dim } } = this
    const centre = engine.view(arrays.centre)
    engine.view(arrays.position).set(this._white(theta.map((x, k) => (arrays.factor.shape[0] ? x - centre[k % dim] : x))))
  }

  /** Differences of θ in whitened coordinates, row by row: factor⁻¹ times each. @param {Float64Array} rows */
  _white(rows) {
    const { engine, arrays, target: { dim } } = this
    if (!arrays.factor.shape[0]) return rows
    const factor = engine.view(arrays.factor)
    const z = new Float64Array(rows.length)
    for (let k = 0; k < z.length; k++) {
      const i = k % dim
      let rest = rows[k]
      for (let j = 0; j < i; j++) rest -= factor[i * dim + j] * z[k - i + j]
      z[k] = rest / factor[i * dim + i]
    }
    return z
  }

  /** Stop at a start where U is not finite: accept steps cannot leave it, and its drift is meaningless. */
  _lookAtStart() {
    if (this.divergence) return
    const energy = this.energies()[0]
    if (Number.isFinite(energy)) return
    const { dim, no_start: sentence } = this.target
    const place = [...this.theta().subarray(0, Math.min(dim, 4))].map((x) => general(x)).join(", ") + (dim > 4 ? ", …" : "")
    this._stop(sentence.replace("{energy}", general(energy)).replace("{start}", place))
  }

  _refuse() { if (this.sampler.refusal && !this.divergence) this._stop(this.sampler.refusal, true) }

  /** @param {string} message @param {boolean} [refused] */
  _stop(message, refused = false) {
    const filled = message
      .replace("{step}", (this.steps + 1).toLocaleString("en-US"))
      .replace("{step_size}", general(this.sampler.step_size, 6))
    this.divergence = { step: this.steps, message: filled, refused }
  }

  /** The steps before the statistics begin: those of the description, and those in which the sampler adapts. */
  get burnIn() {
    const adapting = this.sampler.steps_that_adapt
    return Math.max(this.description.burn_in, adapting ? this.adaptingFrom + adapting : 0)
  }

  /** Make more steps of every chain, or fewer where one diverges. @param {number} n */
  advance(n) {
    const goal = this.steps + n
    while (this.steps < goal && !this.divergence) {
      while (this.pending.length && this.pending[0].step <= this.steps) {
        this.changed = this.pending.shift()
        this.change(this.changed)
      }
      const stops = [goal, ...this.pending.slice(0, 1).map(({ step }) => step)]
      if (this.steps < this.burnIn) stops.push(this.burnIn)
      else if (this.followed) stops.push(this.followed.next)
      this._advance(Math.min(...stops) - this.steps)
      this.followed?.look()
    }
  }

  /** @param {number} n */
  _advance(n) {
    const { noise, estimate } = this.gradient
    const counting = this.steps >= this.burnIn
    const done = this._call("loop", { kernel: this.sampler.kernel, noise, estimate, counting, first: this.steps, n })
    this.steps += done
    const counts = this.engine.view(this.arrays.counts)
    this.counted += counts[GRADIENTS]
    counts[GRADIENTS] = 0
    const above = counts[ABOVE] > 0
    if (this.steps <= this.burnIn) {
      this.countedFrom = this.steps
      this._restartCounts()
    }
    if (done < n) this._stop(above ? this.sampler.above : this.sampler.divergence)
    else if (this.target.watched && this.energies().some((u) => u === -Infinity)) this._stop(this.target.unbounded)
  }

  /** Without divergent transitions, none of their marks is read. */
  _restartCounts() { this.engine.view(this.arrays.counts).fill(0, 0, this.constants.COUNTS) }

  /** Reset the statistics, but not the chains. */
  restartStatistics() {
    const { engine, sums } = this
    const clock = engine.integers(sums.clock)
    const written = clock[WRITTEN]
    for (const name of SUMS) if (!["scales", "joint_scales", "tail"].includes(name)) engine.integers(sums[name]).fill(0n)
    clock.set([0n, 0n, 1n, written, 0n])
    this._restartCounts()
    this.countedFrom = this.steps
    this.followed?.restart()
  }

  /** Continue from here with new parameters of the sampler or the gradient, or with a new target, whose new chains begin at
   * `start`.
   * @param {{sampler?: any, gradient?: any, target?: any, start?: any}} change */
  change({ sampler = this.sampler, gradient = this.gradient, target, start }) {
    if (start) this.description = { ...this.description, start }
    if (target) {
      const theta = this.theta()
      this._aim(target)
      this._place(theta)
    }
    this.sampler = sampler
    this._put("params", this.engine.unpack(sampler.params))
    this._beginAgain()
    if (target || identity(gradient) !== identity(this.gradient)) this._estimateBy(gradient)
    else this._price()
    this.restartStatistics()
    if (this.divergence?.refused) this.divergence = null
    this._refuse()
  }

  /** A count divided by the number of draws. @param {number} index */
  share(index) { return this.engine.view(this.arrays.counts)[index] / Math.max(this.nDraws, 1) }

  /** The number of divergent transitions of the counted steps. */
  get diverged() { return this.engine.view(this.arrays.counts)[DIVERGED] }

  /** The last divergent transitions of the counted steps, oldest first: the numbers of their steps, from 1, their chains,
   * and where they ended, θ [transition][coordinate] flat. */
  get divergent() {
    const { diverged, constants: { COUNTS, MARKS }, description: { n_chains: n }, target: { dim } } = this
    const counts = this.engine.view(this.arrays.counts)
    const found = Array.from({ length: Math.min(diverged, MARKS) }, (_, i) => (Math.max(0, diverged - MARKS) + i) % MARKS)
      .map((slot) => ({ slot, step: Math.floor(counts[COUNTS + slot] / n), chain: counts[COUNTS + slot] % n }))
      // Of a chunk that ended early, some steps were not made.
      .filter(({ step }) => step < this.steps)
    const theta = new Float64Array(found.length * dim)
    found.forEach(({ slot }, k) => {
      const at = COUNTS + MARKS + slot * dim
      theta.set(counts.subarray(at, at + dim), k * dim)
    })
    return { steps: found.map(({ step }) => step + 1), chains: found.map(({ chain }) => chain), theta }
  }

  get acceptance() { return this.share(ACCEPTED) }
  get clipped() { return this.share(CLIPPED) }

  /** The mean of ‖v‖²/m over all chains and counted steps; null without a velocity. */
  get temperature() {
    const square = this.engine.view(this.arrays.counts)[SQUARE]
    const made = (this.steps - this.countedFrom) * this.description.n_chains
    return made && square > 0 ? square / made / this.target.manifold_dim : null
  }

  /** The mean of ξ over all chains and counted steps; null without one. */
  get thermostat() {
    const made = (this.steps - this.countedFrom) * this.description.n_chains
    return made && this.sampler.thermostat ? this.engine.view(this.arrays.counts)[THERMOSTAT] / made : null
  }
}
