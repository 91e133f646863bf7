// A coordinate and its momentum; its figure is app/views/phase.py's.

import { forward } from "../marks.js"
import { Reach } from "../reach.js"
import { notes } from "./state.js"

const PATH = 160
const SHOWN_CHAINS = 4
const KEPT = "kept"

/** @type {import("../views.js").LiveView} */
export const phase = {
  compute({ data, coordinate }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.reaches ??= data.ranges.map((/** @type {[number, number]} */ ends) => new Reach(ends))
    data.steps ??= lanes.map(() => -1)
    data.latest ??= lanes.map(() => [])
    lanes.forEach(({ run }, i) => {
      if (!run.sampler.momentum) return
      const kept = run.sampler.momentum === KEPT
      const { dim } = run.target
      const [all, width] = run.arrays.momentum.shape
      const chains = Math.min(lanes.length === 1 ? SHOWN_CHAINS : 1, all)
      const [theta, r] = [run.theta(), run.engine.view(run.arrays.momentum)]
      // A momentum drawn at every step is 0 between steps.
      const places = Array.from({ length: chains }, (_, c) => [forward(data.scale, theta[c * dim + coordinate]), kept ? r[c * width + coordinate] : 0])
      const good = places.filter((place) => place.every(Number.isFinite))
      out[`heads ${i}`] = [0, 1].map((k) => good.map((place) => place[k]))
      if (kept && run.steps !== data.steps[i] && good[0] === places[0]) {
        data.steps[i] = run.steps
        out[`path ${i}`] = places[0].map((x) => [x])
        data.latest[i] = [...data.latest[i], places[0]].slice(-PATH)
      }
    })
    const along = (/** @type {number} */ k) => data.latest.map((/** @type {number[][]} */ places) => places.map((place) => place[k]))
    if (data.reaches.some((/** @type {Reach} */ reach, /** @type {number} */ k) => reach.hold(along(k)))) {
      // Both axes grow alike, so that an orbit keeps its shape.
      const times = [0, 1].map((end) => Math.max(...data.reaches.map((/** @type {Reach} */ reach) => reach.times[end])))
      data.reaches.forEach((/** @type {Reach} */ reach, /** @type {number} */ k) => {
        reach.times = times
        out[`${"xy"[k]} range`] = [reach.ends]
      })
    }
    return out
  },
  captions({ names }, lanes) {
    const without = lanes.flatMap(({ run }, i) =>
      run.sampler.momentum === KEPT ? [] : [`${names[i]} ${run.sampler.momentum ? "draws its momentum at every step" : "has no momentum"}`])
    return [...notes(lanes), ...without]
  },
}
