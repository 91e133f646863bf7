// The measures of claims, from a run's running statistics, as in lessons/measures.

import { counts } from "./lane.js"
import { KEPT } from "./run.js"

/** The fewest chains for a standard error from their spread. */
const FEWEST = 8

/** A measured number, with its standard error where that is known.
 * @typedef {{value: number, error: number | null}} Found */
/** A measure by its key, with the values of its parameters.
 * @typedef {{key: string, values: Record<string, any>}} Measure */
/** A lane's data for measures: the run, its target's exact answers, the time of a step, and the cells of the
 * KL divergence of single columns.
 * @typedef {{run: import("./run.js").Run, truth: import("./truth.js").Truth, time: number, cells: Record<number, any>, poisson: any}} Lane */

/** @param {ArrayLike<number>} values */
const total = (values) => {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += values[i]
  return sum
}

/** The mean of the chains' numbers, and its standard error. @param {Float64Array} values @returns {Found} */
export const overChains = (values) => {
  const n = values.length
  const value = total(values) / n
  const error = n < FEWEST ? null : Math.sqrt(total(values.map((x) => (x - value) ** 2)) / (n - 1)) / Math.sqrt(n)
  return { value, error }
}

/** Centre and scale of a column's z. @param {import("./run.js").Run} run @param {number} k */
const unitsOf = ({ engine, sums }, k) => {
  const [, , , centre, perUnit] = engine.view(sums.scales).subarray(5 * k, 5 * k + 5)
  return { centre, scale: 1 / perUnit }
}

const BINOMIAL = [[1], [1, 1], [1, 2, 1], [1, 3, 3, 1], [1, 4, 6, 4, 1]]

/** The mean of (x − about)ᵖ in every chain. @param {import("./run.js").Run} run @param {number} k @param {number} about @param {number} p */
const centralPower = (run, k, about, p) => {
  const { engine, sums } = run
  const { centre, scale } = unitsOf(run, k)
  const n = sums.powers.shape[1]
  const powers = engine.view(sums.powers).slice(4 * n * k, 4 * n * (k + 1))
  const weights = run.chainWeights
  const shift = (centre - about) / scale
  return Float64Array.from({ length: n }, (_, c) => {
    let sum = 0
    for (let q = 0; q <= p; q++) sum += BINOMIAL[p][q] * shift ** (p - q) * (q ? powers[4 * c + q - 1] / Math.max(weights[c], 1) : 1)
    return scale ** p * sum
  })
}

/** The mean of a column in each chain. @param {import("./run.js").Run} run @param {number} k */
const chainMeans = (run, k) => {
  const { engine, sums } = run
  const [out, weights] = [engine.zeros([sums.powers.shape[1]]), engine.array(run.chainWeights, [sums.powers.shape[1]])]
  engine.call("chain_means", { ...sums, chain_weights: weights, k, out })
  const found = engine.view(out).slice()
  engine.free(out, weights)
  return found
}

/** τ and its standard error, nan where the run is too short. @param {import("./run.js").Run} run @param {number} k */
const integratedTime = (run, k) => {
  const { engine, sums, constants } = run
  // Draws with weights have no autocorrelation time.
  if (run.whyWeighted) return { tau: NaN, error: NaN }
  const [out, found] = [engine.zeros([2, constants.MOST_LAGS]), engine.zeros([3])]
  const n = engine.call("correlations", { ...sums, steps: run.nSteps, k, out })
  engine.call("sokal", { correlations: out, n, steps: run.nSteps * sums.lag_sums.shape[1], out: found })
  const [tau, error] = engine.view(found)
  engine.free(out, found)
  return { tau, error }
}

/** The edges of a column's histogram: the number of bins, whether the axis is logarithmic, and each edge by its
 * number. @param {import("./run.js").Run} run @param {number} k */
const edgesOf = ({ engine, sums, constants }, k) => {
  const [log, low, perUnit] = engine.view(sums.scales).subarray(5 * k, 5 * k + 3)
  const n = constants.N_BINS
  const width = 1 / perUnit
  // On a log axis, bins have equal widths in a double's bits, read as an integer.
  const bits = new BigInt64Array(1)
  const double = new Float64Array(bits.buffer)
  const at = (/** @type {number} */ i) => {
    if (!log) return low + i * width
    bits[0] = BigInt(Math.round((low + i * width) * 2 ** 52))
    return double[0]
  }
  return { n, log: log > 0, at }
}

/** The share of all draws below each edge, (N_BINS + 1). @param {import("./run.js").Run} run @param {number} k */
const below = (run, k) => {
  const found = counts(run, k)
  let sum = 0
  return found.subarray(0, found.length - 1).map((count) => (sum += count)).map((count) => count / run.total)
}

/** The first of n + 1 ascending numbers that is not below x. @param {(i: number) => number} at @param {number} n @param {number} x */
const search = (at, n, x) => {
  let [low, high] = [0, n + 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (at(middle) < x) low = middle + 1
    else high = middle
  }
  return low
}

/** The empirical CDF at x, linear within a bin, of the logarithm on a log axis.
 * @param {import("./run.js").Run} run @param {number} k @param {number} x */
const empirical = (run, k, x) => {
  const { n, log, at } = edgesOf(run, k)
  const [low, high] = [at(0), at(n)]
  // An end computed from the width of a bin has a rounding error.
  const slack = 1e-12 * (high - low)
  if (x < low - slack || x > high + slack) return x < low ? 0 : 1
  const found = below(run, k)
  const after = Math.min(Math.max(search(at, n, x), 1), n)
  const place = log ? Math.log : (/** @type {number} */ value) => value
  const [left, right] = [place(at(after - 1)), place(at(after))]
  const share = Math.min(Math.max((place(x) - left) / (right - left), 0), 1)
  return found[after - 1] + share * (found[after] - found[after - 1])
}

/** @param {import("./run.js").Run} run @param {number} k @param {number} p */
const quantile = (run, k, p) => {
  const { n, log, at } = edgesOf(run, k)
  const cdf = below(run, k)
  if (!(cdf[0] <= p && p <= cdf[n])) return p < cdf[0] ? at(0) : at(n)
  const after = search((i) => cdf[i], n, p)
  const low = Math.max(after - 1, 0)
  const share = cdf[after] === cdf[low] ? 0 : (p - cdf[low]) / (cdf[after] - cdf[low])
  const place = log ? Math.log : (/** @type {number} */ value) => value
  const x = place(at(low)) + share * (place(at(after)) - place(at(low)))
  return log ? Math.exp(x) : x
}

/** The excess of a divergence over that of independent exact draws.
 * @param {import("./run.js").Run} run @param {string} reading @param {Record<string, any>} values */
const divergence = ({ engine }, reading, values) => {
  const out = engine.zeros([2])
  engine.call(reading, { ...values, out })
  const [value, bias] = engine.view(out)
  engine.free(out)
  return value - bias
}

/** @param {number} value @returns {Found} */
const alone = (value) => ({ value, error: null })

/** The sums that the run makes for its claims. @param {import("./run.js").Run} run */
const followedBy = ({ followed }) => /** @type {import("./followed.js").Followed} */ (followed)

/** The mean over chains; NaN without numbers. @param {Float64Array | null} values */
const ofSnapshots = (values) => (values ? overChains(values) : alone(NaN))

/** @param {number} x */
const known = (x) => (Number.isFinite(x) ? x : null)

/** @type {Record<string, (lane: Lane, values: Record<string, any>) => Found>} */
export const MEASURES = {
  mean: ({ run }, { column }) => overChains(chainMeans(run, column - 1)),
  variance({ run }, { column }) {
    const k = column - 1
    return overChains(centralPower(run, k, run.engine.call("mean", { ...run.sums, total: run.total, k }), 2))
  },
  power: ({ run }, { column, order }) => overChains(centralPower(run, column - 1, 0, order)),
  probability({ run }, { column, low, high }) {
    const k = column - 1
    const p = empirical(run, k, high) - empirical(run, k, low)
    // If all draws are on one side, p is below about one effective draw.
    const n = run.nEffective / Math.max(integratedTime(run, k).tau, 1)
    return { value: p, error: n > 0 && Number.isFinite(n) ? Math.sqrt(Math.max(p * (1 - p), 1 / n) / n) : null }
  },
  quantile: ({ run }, { column, p }) => alone(quantile(run, column - 1, p)),
  ks({ run, truth }, { column }) {
    const columns = column ? [column - 1] : truth.columns
    const gaps = columns.map((/** @type {number} */ k) => run.engine.call("largest_gap", { bins: run.sums.bins, k, cdf: truth.cdf[k], total: run.total }))
    return alone(total(gaps) / gaps.length)
  },
  chain_ks: ({ run }) => ofSnapshots(followedBy(run).gaps()),
  kl({ run, cells, poisson }, { column }) {
    return alone(divergence(run, "column_divergence", { bins: run.sums.bins, k: column - 1, ...cells[column], ...poisson, weight: run.meanWeight }))
  },
  joint_kl: ({ run, truth }) => alone(divergence(run, "joint_divergence", { joint: run.sums.joint, total_weight: run.total, weight: run.meanWeight, ...truth.divergence })),
  tau({ run, time }, { column, unit }) {
    const { tau, error } = integratedTime(run, column - 1)
    const scale = unit === "time" ? time : 1
    return { value: tau * scale, error: known(error * scale) }
  },
  cost({ run, time }, values) {
    const { value, error } = MEASURES.tau({ run, time, truth: /** @type {any} */ (null), cells: {}, poisson: null }, values)
    const scale = run.gradient.data_per_gradient * values.per_datum + values.per_step
    return { value: value * scale, error: error === null ? null : error * scale }
  },
  rhat({ run }, { column }) {
    const { engine, constants, sums } = run
    const [chains, kept] = [sums.history.shape[0], Number(engine.integers(sums.clock)[KEPT])]
    const [work, order, out] = [engine.zeros([constants.WORK, chains * kept]), engine.zeros([2, chains * kept], "i8"), engine.zeros([3])]
    engine.call("summarise", { history: sums.history, kept, k: column - 1, work, order, out })
    const [rhat] = engine.view(out)
    engine.free(work, order, out)
    return alone(rhat)
  },
  acceptance: ({ run }) => alone(run.acceptance),
  data: ({ run }) => alone(run.dataSeen / Math.max(run.steps, 1) / run.description.n_chains),
  clipped: ({ run }) => alone(run.clipped),
  temperature: ({ run }) => ofSnapshots(followedBy(run).temperature()),
  auxiliary: ({ run }, { component, order }) => ofSnapshots(followedBy(run).auxiliary(component, order)),
  expectation: ({ run }, { number }) => overChains(followedBy(run).expectation(number)),
  diverged: ({ run }) => alone(Number(run.divergence !== null)),
}

/** The measure of a lane; null where the lane has diverged, or has no counted steps. @param {Measure} measure @param {Lane} lane @returns {Found | null} */
export const measured = ({ key, values }, lane) =>
  lane.run.nSteps && (key === "diverged" || !lane.run.divergence) ? MEASURES[key](lane, values) : null
