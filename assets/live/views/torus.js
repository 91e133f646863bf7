// Two angles as a map of the torus, with the marginals at its sides; its figure is app/views/torus.py's.

import { counts } from "../lane.js"
import { notes } from "./state.js"

const SIDE = 0.3
const [ROOM, MOST] = [1.25, 3]
const SHOWN_CHAINS = 4

/** The two angles of draws of one chain. @param {any} run @param {Float64Array} theta @param {number} n @returns {number[][]} */
const angles = (run, theta, n) => {
  const values = run.values(theta, n, 1)
  return Array.from({ length: n }, (_, t) => [values[t], values[n + t]]).filter((pair) => pair.every(Number.isFinite))
}

/** @param {any} data @param {number[]} pair */
const inside = ({ axes }, pair) => pair.every((x, k) => x >= axes[k][0] && x <= axes[k][1])

/** Segments from draw to draw; none across the seam at ±π. @param {any} data @param {number} i @param {number[][]} pairs */
const path = (data, i, pairs) => {
  const points = data.last[i] ? [data.last[i], ...pairs] : pairs
  if (points.length) data.last[i] = points[points.length - 1]
  const seen = [...points.keys()].slice(1).filter((t) =>
    points[t].every((/** @type {number} */ x, /** @type {number} */ k) => Math.abs(x - points[t - 1][k]) < Math.PI) && inside(data, points[t]) && inside(data, points[t - 1]))
  return [-1, 0].flatMap((from) => [0, 1].map((k) => seen.map((t) => points[t + from][k])))
}

/** The marginals of an angle; the exact one is redrawn when the others need more room, or less.
 * @param {any} data @param {number} k @param {any[]} lanes @param {import("../views.js").Data} out */
const sides = (data, k, lanes, out) => {
  const [cuts, ends, highest] = [data.cuts[k], data.ends[k], data.highest[k]]
  const [low, high] = data.axes[1 - k]
  const densities = lanes.map(({ run }) => {
    let total = 0
    const below = counts(run, k).map((n) => (total += n))
    return cuts.slice(1).map((/** @type {number} */ cut, /** @type {number} */ j) =>
      (below[cut] - below[cuts[j]]) / (Math.max(run.total, 1) * (ends[j + 1] - ends[j])))
  })
  const needed = ROOM * Math.min(Math.max(...densities.flat(), highest), MOST * highest)
  const onSide = (/** @type {number} */ density) => high + (high - low) * (0.02 + SIDE * Math.min(density / data.tops[k], 1))
  if (!(needed <= data.tops[k] && data.tops[k] <= ROOM * needed)) {
    data.tops[k] = needed
    const [x, curve] = data.curves[k]
    out[`exact ${k}`] = [x, curve.map(() => onSide(0)), curve.map(onSide)]
  }
  const along = densities[0].flatMap((/** @type {number} */ _, /** @type {number} */ j) => [ends[j], ends[j + 1]])
  densities.forEach((density, i) => {
    const rise = density.flatMap((/** @type {number} */ one) => [onSide(one), onSide(one)])
    out[`side ${k} ${i}`] = k === 0 ? [along, rise] : [rise, along]
  })
}

/** @type {import("../views.js").LiveView} */
export const torus = {
  compute({ data }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.last ??= lanes.map(() => null)
    data.tops ??= [0, 0]
    lanes.forEach(({ run, fresh }, i) => {
      const { dim } = run.target
      const chains = Math.min(lanes.length === 1 ? SHOWN_CHAINS : 1, run.description.n_chains)
      const heads = angles(run, run.theta().slice(0, chains * dim), chains).filter((pair) => inside(data, pair))
      out[`heads ${i}`] = [0, 1].map((k) => heads.map((pair) => pair[k]))
      if (!fresh.n) return
      const first = new Float64Array(fresh.n * dim)
      for (let t = 0; t < fresh.n; t++) first.set(fresh.theta.subarray(t * fresh.chains * dim, t * fresh.chains * dim + dim), t * dim)
      out[`path ${i}`] = path(data, i, angles(run, first, fresh.n))
    })
    for (const k of [0, 1]) sides(data, k, lanes, out)
    return out
  },
  captions: (_, lanes) => notes(lanes),
}
