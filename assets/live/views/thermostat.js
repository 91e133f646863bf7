// The trace of ξ of the first chain; its figure is app/views/thermostat.py's.

import { numbersOf } from "../engine.js"
import { general } from "../format.js"
import { runWindow } from "../marks.js"

const WINDOW = 600

/** ξ of the first chain, or ξ of this coordinate if each has its own; null without ξ. @param {any} run @param {number} coordinate */
const xi = ({ engine, arrays, sampler }, coordinate) => {
  const n = sampler.thermostats
  return n ? engine.view(arrays.momentum)[arrays.momentum.shape[1] - n + Math.min(coordinate, n - 1)] : null
}

/** @type {import("../views.js").LiveView} */
export const thermostat = {
  ofLanes: true,
  compute({ data, coordinate, axis }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.steps ??= lanes.map(() => -1)
    data.shown ??= []
    lanes.forEach(({ run, x }, i) => {
      const value = xi(run, coordinate)
      // A frame without a step shows nothing new, and a chain that diverges has no finite ξ.
      if (value === null || run.steps === data.steps[i] || !Number.isFinite(value)) return
      data.steps[i] = run.steps
      const first = numbersOf(run.sampler.auxiliary).at(-1) ?? 0
      out[`lane ${i}`] = [[x], [value]]
      out[`first ${i}`] = [[first]]
      data.shown.push([x, value], [x, first])
    })
    if (!Object.keys(out).length) return out
    data.shown = data.shown.slice(-2 * WINDOW * lanes.length)
    const ends = (/** @type {number} */ k) => {
      const along = data.shown.map((/** @type {number[]} */ point) => point[k])
      return [Math.min(...along), Math.max(...along)]
    }
    const [[left, right], [low, high]] = [ends(0), ends(1)]
    const room = 0.1 * Math.max(high - low, 0.1)
    out.x = [runWindow(left, right, axis)]
    out.y = [[low - room, high + room]]
    return out
  },
  captions: ({ names, coordinate }, lanes) =>
    lanes.map(({ run }, i) => {
      const value = xi(run, coordinate)
      return value === null ? `${names[i]}  no ξ` : `${names[i]}  ξ = ${general(value, 3)}`
    }),
}
