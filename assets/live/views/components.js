// Box plots of all coordinates; their figure is app/views/components.py's.

import { numbersOf } from "../engine.js"
import { counts } from "../lane.js"

const LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]

/** Quantiles within bins as positions on the axis, and the smallest bin with a draw.
 * @param {(b: number) => number} position @param {Float64Array} found */
const quantiles = (position, found) => {
  const inner = found.length - 2
  let total = 0
  const below = found.map((n) => (total += n))
  const each = LEVELS.map((level) => {
    const goal = level * total
    const b = below.findIndex((n) => n >= goal)
    const before = b > 0 ? below[b - 1] : 0
    // Inner bin b lies between the edges b − 1 and b; the outer two bins are drawn at the ends.
    const [left, right] = [position(Math.max(b - 1, 0)), position(Math.min(b, inner))]
    return left + ((goal - before) / (below[b] - before)) * (right - left)
  })
  const first = below.findIndex((n) => n >= 1)
  return [...each, position(Math.min(Math.max(first - 1, 0), inner))]
}

/** @type {import("../views.js").LiveView} */
export const components = {
  compute({ data }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.each ??= data.positions.map((/** @type {any} */ { log, first, last, all }, /** @type {number} */ k) => {
      const found = log ? numbersOf(all) : null
      const n = lanes[0].run.sums.bins.shape[1] - 2
      return (/** @type {number} */ b) => (found ? found[b] : b === n ? last : first + (b * (last - first)) / n)
    })
    lanes.forEach(({ run }, i) => {
      const rows = run.nDraws ? data.each.map((/** @type {any} */ position, /** @type {number} */ k) => quantiles(position, counts(run, k))) : []
      const x = data.x[i].slice(0, rows.length)
      out[`lane ${i}`] = [x, ...[...LEVELS.keys(), LEVELS.length].map((q) => rows.map((/** @type {number[]} */ row) => row[q]))]
      const below = x.filter((/** @type {number} */ _, /** @type {number} */ k) => rows[k][LEVELS.length] < data.bottom)
      out[`beyond ${i}`] = [below, below.map(() => data.beyond)]
    })
    return out
  },
  captions: () => [],
}
