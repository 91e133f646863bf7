// The energy as a curve, and the chains as balls on it; its figure is app/views/energy.py's.

import { forward } from "../marks.js"
import { latest } from "../lane.js"
import { notes } from "./state.js"

const TRAIL = 8
const SHOWN_CHAINS = 4

/** The positions of θ in the figure, and the indices of the finite ones. @param {any} data @param {any} run @param {Float64Array} theta */
const onCurve = ({ scale, above }, run, theta) => {
  const x = [...theta].map((one) => forward(scale, one))
  const y = [...run.energies(theta)].map((u) => u + above)
  const good = [...x.keys()].filter((i) => Number.isFinite(x[i]) && Number.isFinite(y[i]))
  return { x: good.map((i) => x[i]), y: good.map((i) => y[i]), good, n: x.length }
}

/** @type {import("../views.js").LiveView} */
export const energy = {
  compute({ data }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    lanes.forEach(({ run }, i) => {
      const ball = onCurve(data, run, run.theta().slice(0, run.sampler.interacting ? undefined : lanes.length === 1 ? SHOWN_CHAINS : 1))
      out[`ball ${i}`] = [ball.x, ball.y]
      const { n, chains, theta } = latest(run, TRAIL + 1)
      const first = Float64Array.from({ length: Math.max(n - 1, 0) }, (_, t) => theta[t * chains])
      const trail = onCurve(data, run, first)
      out[`trail ${i}`] = [trail.x, trail.y, trail.good.map((t) => 0.1 + (0.5 * t) / Math.max(trail.n - 1, 1))]
    })
    return out
  },
  captions: (_, lanes) => notes(lanes),
}
