// Kinetic temperature and thermostat against their expected values; their figure is app/views/temperature.py's.

import { fixed, general } from "../format.js"
import { roundUp, runWindow, share } from "../marks.js"
import { CLIPPED } from "../run.js"

const WINDOW = 600
const RECENT = 25
const TOO_HOT = 1e50

/** The ratio of the heat added to the heat removed by friction; null where it is unknown. @param {any} run */
const expected = ({ gradient: { noise }, sampler: { moving, friction, step_size: step } }) => {
  if (noise.batch_size || !moving) return null
  const heat = 2 * friction * step
  return (Math.max(heat - step ** 2 * noise.correction, 0) + step ** 2 * noise.variance) / heat
}

/** The engine's mean over all steps, and the mean over the latest frames.
 * @typedef {{mean: number, recent: number, since: number, totals: number[][]}} Means */

/** @param {Means} means @param {number} mean @param {number} steps @param {number} since */
const put = (means, mean, steps, since) => {
  if (since !== means.since) Object.assign(means, { since, totals: [[0, 0]] })
  const [before, total] = means.totals[0]
  means.mean = mean
  means.recent = (mean * steps - total) / (steps - before)
  means.totals = [...means.totals, [steps, mean * steps]].slice(-RECENT)
}

/** @type {import("../views.js").LiveView} */
export const temperature = {
  compute({ data, axis }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.means ??= lanes.map(() => [0, 1].map(() => ({ mean: 0, recent: 0, since: -1, totals: [] })))
    data.steps ??= lanes.map(() => -1)
    data.shown ??= []
    data.top ??= 2
    let highest = 0
    lanes.forEach(({ run, x }, i) => {
      // A frame without a step shows nothing new, and in a step that diverges a velocity may overflow.
      if (!run.sampler.moving || run.steps === 0 || run.steps === data.steps[i] || run.temperature === null || !(run.temperature < TOO_HOT)) return
      data.steps[i] = run.steps
      const values = [run.temperature, ...(run.thermostat === null ? [] : [run.thermostat / run.sampler.friction])]
      values.forEach((value, k) => {
        const means = data.means[i][k]
        put(means, value, run.steps - run.countedFrom, run.countedFrom)
        out[`${["temperature", "thermostat"][k]} ${i}`] = [[x], [means.mean], [means.recent]]
        highest = Math.max(highest, means.mean, means.recent)
      })
    })
    if (!Object.keys(out).length) return out
    data.shown = [...data.shown, [lanes[0].x, highest]].slice(-WINDOW)
    const [start, end] = [data.shown[0][0], Math.max(...lanes.map(({ x }) => x))]
    out.x = [runWindow(start, end, axis)]
    const top = Math.max(...data.shown.map((/** @type {number[]} */ point) => point[1]))
    // The axis ends at a round number, so that it seldom changes.
    if (top > data.top || top < data.top / 3) {
      data.top = Math.max(2, roundUp(1.1 * top))
      out.y = [[0, data.top]]
    }
    return out
  },
  captions({ data, names }, lanes) {
    /** @type {string[]} */
    const clipped = []
    const lines = lanes.map(({ run }, i) => {
      const [hot, friction] = data.means?.[i] ?? [{ mean: 0 }, { mean: 0 }]
      if (!run.sampler.moving || !hot.mean) return names[i]
      const [ratio, { thermostat, friction: c }] = [expected(run), run.sampler]
      let text = `${names[i]}  ‖v‖²/m ${fixed(hot.mean, 2)}`
      if (ratio !== null && !thermostat) text += ` (expected ${fixed(ratio, 2)})`
      if (thermostat) {
        text += `  dashed ξ/C: ξ ${general(friction.mean * c, 3)}, C ${general(c, 3)}`
        if (ratio !== null) text += ` (expected ${general(ratio * c, 3)})`
      }
      if (run.share(CLIPPED) > 0) clipped.push(share(run.share(CLIPPED)))
      return text
    })
    return clipped.length ? [...lines, `injected noise set to 0 in ${clipped.join(" and ")} of steps: V is too large`] : lines
  },
  ofLanes: true,
}
