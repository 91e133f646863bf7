// The trace of one coordinate; its figure is app/views/trace.py's.

import { fixed, grouped } from "../format.js"
import { SIGNS, diverged, forward, runWindow } from "../marks.js"
import { Reach } from "../reach.js"
import { KEPT } from "../run.js"

const WINDOW = 600
const SHOWN_CHAINS = 4
const SHOWN_MARKS = 20

const FEWEST = 4
const REASONS = ["", "no draws yet", "too few draws yet", "draws are not finite", "the chains stand still", "all chains are the same"]

/** R̂ and ESS of one column of the kept draws. @param {import("../run.js").Run} run @param {number} k @param {number} kept */
const summary = (run, k, kept) => {
  const { engine, constants, sums } = run
  const chains = sums.history.shape[0]
  const [work, order, out] = [engine.zeros([constants.WORK, chains * kept]), engine.zeros([2, chains * kept], "i8"), engine.zeros([3])]
  const reason = REASONS[engine.call("summarise", { history: sums.history, kept, k, work, order, out })]
  const [rhat, bulk, tail] = engine.view(out)
  engine.free(work, order, out)
  if (reason) return kept < FEWEST ? reason : `R̂ –  ESS –  ${reason}`
  const agree = chains < 2 ? "R̂ needs 2 chains" : Number.isFinite(rhat) ? `R̂ ${fixed(rhat, 3)}` : "R̂ unknown"
  if (run.whyWeighted) return `${agree}  ${run.whyWeighted}: no ESS`
  return `${agree}  ESS ${fixed(bulk, 0, true)} / ${Number.isFinite(tail) ? fixed(tail, 0, true) : "unknown"}`
}

/** The steps of the drawn chains whose transitions diverged, at the lower end of the axis.
 * @param {import("../views.js").LaneFrame} lane @param {number} drawn @param {number} start @param {number} low */
const rug = ({ run, x: end }, drawn, start, low) => {
  const { steps, chains } = run.divergent
  const x = steps.filter((_, k) => chains[k] < drawn).map((step) => (end * step) / Math.max(run.steps, 1)).filter((at) => at >= start)
  return [x, x.map(() => low)]
}

/** @type {import("../views.js").LiveView} */
export const trace = {
  ofLanes: true,
  compute({ data, coordinate, axis }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.shown ??= lanes.map(() => [])
    data.ends ??= lanes.map(() => [])
    data.reach ??= new Reach(data.scale.range)
    data.low ??= data.scale.range[0]
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
      out.x = [runWindow(start, end, axis)]
      if (data.reach.follow(data.ends)) {
        out.y = [data.reach.ends]
        data.low = data.reach.ends[0]
      }
    }
    lanes.forEach((lane, i) => {
      out[`marks ${i}`] = [lane.marks.filter((x) => x >= start).slice(-SHOWN_MARKS)]
      out[`rug ${i}`] = rug(lane, lanes.length === 1 ? SHOWN_CHAINS : 1, start, data.low)
    })
    return out
  },
  captions({ coordinate, names }, lanes) {
    /** @type {number[]} */
    const kept = []
    const lines = lanes.map(({ run }, i) => {
      if (run.sampler.interacting) return `${names[i]}  interacting particles: no R̂, no ESS`
      const draws = Number(run.engine.integers(run.sums.clock)[KEPT])
      if (!run.whyWeighted) kept.push(draws)
      return `${names[i]}  ${summary(run, coordinate, draws)}`
    })
    if (kept.some(Boolean)) {
      const [least, most] = [Math.min(...kept), Math.max(...kept)]
      const range = least === most ? grouped(least) : `${grouped(least)} to ${grouped(most)}`
      lines.push(`ESS bulk / tail, of ${lanes[0].run.sums.history.shape[0]} × ${range} kept draws`)
    }
    const said = lanes.flatMap(({ run }, i) => (diverged(run) ? [lanes.length > 1 ? `${SIGNS[i]} ${diverged(run)}` : diverged(run)] : []))
    if (said.length) lines.push(said.join(", "))
    return lines
  },
}
