// One coordinate as it moves; its figure is app/views/trace.py's.

import { forward } from "../marks.js"
import { Reach } from "../reach.js"

const WINDOW = 600
const SHOWN_CHAINS = 4
const SHOWN_MARKS = 20

/** @type {import("../views.js").LiveView} */
export const trace = {
  ofLanes: true,
  compute({ data, coordinate }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.shown ??= lanes.map(() => [])
    data.ends ??= lanes.map(() => [])
    data.reach ??= new Reach(data.scale.range)
    lanes.forEach(({ fresh, freshX }, i) => {
      const chains = Math.min(fresh.chains, lanes.length === 1 ? SHOWN_CHAINS : 1)
      if (!fresh.n) return
      const y = (/** @type {number} */ c, /** @type {number} */ t) =>
        forward(data.scale, fresh.values[(coordinate * fresh.chains + c) * fresh.n + t])
      const each = [...Array(chains).keys()]
      const good = [...freshX.keys()].filter((t) => Number.isFinite(freshX[t]) && each.every((c) => Number.isFinite(y(c, t))))
      const x = good.map((t) => freshX[t])
      for (const c of each) out[`lane ${i} chain ${c}`] = [x, good.map((t) => y(c, t))]
      data.shown[i] = [...data.shown[i], ...x].slice(-WINDOW)
      const ends = good.map((t) => [Math.min, Math.max].map((end) => end(...each.map((c) => y(c, t)))))
      data.ends[i] = [...data.ends[i], ...ends].slice(-WINDOW)
    })
    const shown = data.shown.filter((/** @type {number[]} */ x) => x.length)
    const start = Math.min(...shown.map((/** @type {number[]} */ x) => x[0]))
    if (Object.keys(out).length && shown.length) {
      const end = Math.max(...shown.map((/** @type {number[]} */ x) => x[x.length - 1]))
      out.x = [[start, end + (end > start ? 0.03 * (end - start) : 1e-3)]]
      if (data.reach.follow(data.ends)) out.y = [data.reach.ends]
    }
    lanes.forEach(({ marks }, i) => { out[`marks ${i}`] = [marks.filter((x) => x >= start).slice(-SHOWN_MARKS)] })
    return out
  },
  captions: ({ names }) => names,
}
