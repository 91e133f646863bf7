// Chains on the circle, and their histogram around it; its figure is app/views/circle.py's.

import { counts } from "../lane.js"
import { noDraws } from "../marks.js"
import { notes } from "./state.js"

const [RING, HEIGHT, HIGHEST] = [1.1, 0.48, 0.66]
const SHOWN_CHAINS = 4
const [ARROW, LONGEST] = [0.3, 0.9]

/** Rows (x, y, …) of the first chains. @param {Float64Array} flat @param {number} width @param {number} n */
const rows = (flat, width, n) => Array.from({ length: n }, (_, i) => flat.slice(i * width, i * width + 2))

/** Velocities as segments of at most a readable length. @param {any[][]} pairs */
const arrows = (pairs) => {
  /** @type {number[][]} */
  const out = [[], [], [], []]
  for (const [x, v] of pairs) {
    const length = ARROW * Math.hypot(v[0], v[1])
    if (!(length > 1e-9)) continue
    const scale = (ARROW * Math.min(length, LONGEST)) / length
    ;[x[0], x[1], x[0] + scale * v[0], x[1] + scale * v[1]].forEach((value, k) => out[k].push(value))
  }
  return out
}

/** The steps of the histogram around the ring. @param {any} data @param {any} run */
const histogram = ({ cuts, bars, top }, run) => {
  let total = 0
  const below = counts(run, 0).map((n) => (total += n))
  const heights = bars.slice(1).map((/** @type {number} */ end, /** @type {number} */ j) =>
    (below[cuts[j + 1]] - below[cuts[j]]) / (Math.max(run.total, 1) * (end - bars[j]) * top))
  // Each bar has two corners; the last one is closed with the first, on the other side of ±π.
  const corners = heights.flatMap((/** @type {number} */ h, /** @type {number} */ j) => [[bars[j], h], [bars[j + 1], h]])
  corners.push([bars[0], heights[0]])
  const radius = (/** @type {number} */ h) => RING + Math.min(HEIGHT * h, HIGHEST)
  return [Math.cos, Math.sin].map((turn) => corners.map((/** @type {[number, number]} */ [angle, h]) => radius(h) * turn(angle)))
}

/** @type {import("../views.js").LiveView} */
export const circle = {
  compute({ data }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    lanes.forEach(({ run, fresh }, i) => {
      const [all, width] = run.arrays.momentum.shape
      const chains = Math.min(lanes.length === 1 ? SHOWN_CHAINS : 1, all)
      const [x, v] = [rows(run.theta(), 2, chains), rows(run.engine.view(run.arrays.momentum), width, chains)]
      const pairs = x.map((one, c) => [one, v[c]]).filter((pair) => pair.every((one) => one.every(Number.isFinite)))
      out[`heads ${i}`] = [0, 1].map((k) => pairs.map(([one]) => one[k]))
      out[`velocity ${i}`] = arrows(pairs)
      if (fresh.n) {
        const trail = rows(fresh.theta, 2, fresh.n * fresh.chains).filter((one, t) => t % fresh.chains === 0 && one.every(Number.isFinite))
        out[`trail ${i}`] = [0, 1].map((k) => trail.map((one) => one[k]))
      }
      out[`bars ${i}`] = histogram(data, run)
    })
    return out
  },
  captions(_, lanes) {
    const empty = lanes.map(({ run }) => noDraws(run)).sort()
    return [...notes(lanes), ...(empty.every(Boolean) ? [empty[0]] : [])]
  },
}
