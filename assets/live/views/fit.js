// Data, and the curves of the draws; its figure is app/views/fit.py's.

import { latest } from "../lane.js"
import { KEPT } from "../run.js"

const DRAWS = 400
const SHOWN_CHAINS = 4
const SHARE = [0.05, 0.95]

/** A curve at x for a draw, by the kind of its formula.
 * @type {Record<string, (formula: any, theta: ArrayLike<number>, x: number) => number>} */
export const CURVES = {
  line: ({ slope }, theta, x) => slope.reduce((/** @type {number} */ sum, /** @type {number} */ a, /** @type {number} */ k) => sum + a * theta[k], 0) * x,
  boundary: (_, theta, x) => (-theta[0] / (theta[1] === 0 ? 1e-12 : theta[1])) * x,
  exponential: (_, theta, x) => Math.exp(theta[0] + theta[1] * x),
  student: ({ highest, freedom, scale }, theta, x) => highest * (1 + ((x - theta[0]) / scale) ** 2 / freedom) ** (-(freedom + 1) / 2),
  pair: ({ highest, variance }, theta, x) =>
    (highest / 2) * (Math.exp(-((x - theta[0]) ** 2) / (2 * variance)) + Math.exp(-((x - theta[0] - theta[1]) ** 2) / (2 * variance))),
}

/** @param {Float64Array} sorted @param {number} share */
const quantile = (sorted, share) => {
  const at = share * (sorted.length - 1)
  const i = Math.min(Math.floor(at), Math.max(sorted.length - 2, 0))
  return sorted[i] + (at - i) * ((sorted[i + 1] ?? sorted[i]) - sorted[i])
}

/** Draws of equal weight: evenly spaced in the sum of the history's weights. @param {any} run */
const some = (run) => {
  const [watched, length, columns] = run.sums.history.shape
  const kept = Number(run.engine.integers(run.sums.clock)[KEPT])
  const n = watched * kept
  const history = run.engine.view(run.sums.history)
  const m = Math.min(DRAWS, n)
  const at = (/** @type {number} */ i) => (Math.floor(i / kept) * length + (i % kept)) * columns
  let sum = 0
  const sums = Float64Array.from({ length: n }, (_, i) => (sum += history[at(i) + columns - 1]))
  let i = 0
  return Array.from({ length: sum > 0 ? m : 0 }, (_, t) => {
    while (sums[i] <= ((t + 0.5) * sum) / m) i += 1
    return history.subarray(at(i), at(i) + columns - 1)
  })
}

/** @type {import("../views.js").LiveView} */
export const fit = {
  compute({ data: { grid, formula } }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    const curve = (/** @type {ArrayLike<number>} */ theta) => grid.map((/** @type {number} */ x) => CURVES[formula.kind](formula, theta, x))
    lanes.forEach(({ run }, i) => {
      const { dim } = run.target
      const { n, chains, theta } = latest(run, 1)
      if (n) {
        const now = Array.from({ length: Math.min(chains, SHOWN_CHAINS) }, (_, c) => curve(theta.subarray(c * dim, (c + 1) * dim)))
        const flat = (/** @type {(one: number[]) => number[]} */ part) => now.flatMap(part)
        out[`now ${i}`] = [flat(() => grid.slice(0, -1)), flat((one) => one.slice(0, -1)), flat(() => grid.slice(1)), flat((one) => one.slice(1))]
      }
      const drawn = some(run)
      if (!drawn.length) return
      const curves = drawn.map(curve)
      const sorted = grid.map((/** @type {number} */ _, /** @type {number} */ j) => Float64Array.from(curves, (one) => one[j]).sort())
      out[`band ${i}`] = [grid, ...SHARE.map((share) => sorted.map((/** @type {Float64Array} */ one) => quantile(one, share)))]
    })
    return out
  },
  captions: () => [],
}
