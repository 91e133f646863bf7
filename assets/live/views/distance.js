// The distance of each lane's draws from the target during the run; its figures are app/views/ks.py's and kl.py's.

import { brief, LONG, noDraws } from "../marks.js"
import { general } from "../format.js"

const FLOOR = 1e-6
const DECADES = 1e3

/** @param {(point: import("../lane.js").CurvePoint) => number} distance
 * @param {(data: any, point: import("../lane.js").CurvePoint) => number[]} noise
 * @param {(data: any, point: import("../lane.js").CurvePoint) => string} words
 * @returns {import("../views.js").LiveView} */
export const distanceView = (distance, noise, words) => ({
  ofLanes: true,
  compute({ data, axis }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.sent ??= []
    data.ends ??= { left: Infinity, right: 0, bottom: data.top, top: 0 }
    let { left, right } = data.ends
    let bottom = data.top / 100
    let highest = 0
    lanes.forEach(({ curve }, i) => {
      const points = curve.slice(data.sent[i] ?? 0).filter((point) => point.position[axis] > 0)
      data.sent[i] = curve.length
      if (!points.length) return
      const x = points.map((point) => point.position[axis])
      const y = points.map((point) => Math.max(distance(point), FLOOR))
      const columns = points.map((point) => noise(data, point))
      out[`lane ${i}`] = [x, y]
      out[`noise ${i}`] = [x, ...columns[0].map((_, k) => columns.map((row) => row[k]))]
      left = Math.min(left, x[0])
      right = Math.max(right, x[x.length - 1])
      bottom = Math.min(bottom, ...y, ...columns.map((row) => row[0]))
      highest = Math.max(highest, ...y, ...columns.map((row) => row[row.length - 1]))
    })
    bottom = 10 ** Math.floor(Math.log10(bottom))
    if (right > data.ends.right || left < data.ends.left) {
      data.ends.left = 10 ** Math.floor(Math.log10(left) + 1e-9)
      data.ends.right = Math.max(10 ** Math.ceil(Math.log10(right)), data.ends.left * DECADES)
      out.x = [[data.ends.left, data.ends.right]]
    }
    const top = Math.min(10 ** Math.ceil(Math.log10(Math.max(highest, 10 * bottom))), data.top)
    if (highest && (bottom < data.ends.bottom || top > data.ends.top)) {
      data.ends.bottom = Math.min(bottom, data.ends.bottom)
      data.ends.top = Math.max(top, data.ends.top)
      out.y = [[data.ends.bottom, data.ends.top]]
    }
    return out
  },
  captions: ({ data, names }, lanes) =>
    lanes.map(({ curve, run }, i) => {
      const last = curve[curve.length - 1]
      const empty = noDraws(run)
      const said = last ? `  ${data.short ? `${data.label} ${general(distance(last), 2)}` : words(data, last)}` : empty && `  ${empty}`
      return brief(names[i], LONG - said.length) + said
    }),
})
