// One coordinate's histogram against the target's; its figure is app/views/marginal.py's.

import { counts } from "../lane.js"
import { noDraws } from "../marks.js"

const HIGHEST = 4
const FEW = 20 * 64

/** @type {import("../views.js").LiveView} */
export const marginal = {
  ofLanes: true,
  compute({ data, coordinate }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    let highest = 0
    data.cut = []
    lanes.forEach(({ run }, i) => {
      const found = counts(run, coordinate)
      let total = 0
      const below = found.map((n) => (total += n))
      const density = data.starts.map((/** @type {number} */ from, /** @type {number} */ j) =>
        (below[data.ends[j]] - below[from]) / (Math.max(run.total, 1) * data.widths[j]))
      out[`lane ${i}`] = [data.centres, density]
      const top = Math.max(...density)
      data.cut[i] = top > 1.1 * HIGHEST * data.exact
      if (run.nDraws >= FEW) highest = Math.max(highest, top)
    })
    if (highest > 0) out.y = [[0, 1.1 * Math.max(data.exact, Math.min(highest, HIGHEST * data.exact))]]
    return out
  },
  captions: ({ data, names }, lanes) => lanes.map(({ run }, i) => {
    // Beside a name there is room for a word.
    const waits = run.steps > 0 && !run.nDraws
    const note = waits ? (lanes.length > 1 ? "(burn-in)" : noDraws(run)) : data.cut?.[i] ? "(cut off)" : ""
    return `${names[i]} ${note}`.trimEnd()
  }),
}
