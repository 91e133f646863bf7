// The chains in the state space; its figure is app/views/state.py's.

import { SIGNS, TINY, diverged, forward, share } from "../marks.js"
import { numbersOf } from "../engine.js"
import { latest } from "../lane.js"
import { CLIPPED, TURNED } from "../run.js"

const SHOWN_CHAINS = 4
const LONGEST = 0.2
const NOTHING = 0.002
const TOO_MUCH = { manifold: "Vε² > 2Cε", simplex: "it was below 0" }

/** A curve of evenly spaced points at x, linear between them. @param {any} data @param {number} x */
const interpolated = (data, x) => {
  const ys = (data.heights ??= numbersOf(data.curve))
  const [first, last] = data.ends
  const at = Math.min(Math.max(((x - first) / (last - first)) * (ys.length - 1), 0), ys.length - 1)
  const i = Math.min(Math.floor(at), ys.length - 2)
  return ys[i] + (at - i) * (ys[i + 1] - ys[i])
}

/** The positions of θ [row][coordinate] in the figure. @param {any} data @param {any} run @param {Float64Array} theta @param {number} n */
const positions = (data, run, theta, n) => {
  const { scales, coordinates } = data
  const values = run.values(theta, n, 1)
  const along = (/** @type {number} */ k) => Array.from({ length: n }, (_, t) => forward(scales[k], values[coordinates[k] * n + t]))
  const x = along(0)
  return [x, coordinates.length === 1 ? x.map((one) => interpolated(data, one)) : along(1)]
}

/** −∇U at the point of the last step, exact and estimated, on one scale. @param {any} data @param {any} run */
const arrows = (data, run) => {
  const none = [[], [], [], []]
  const { gradient_age: age } = run.sampler
  const { noise } = run.gradient
  const { n, chains, theta } = latest(run, 2)
  if (age === null || n < 2 || run.divergence) return { full: none, used: none }
  const { dim } = run.target
  const estimated = noise.variance > 0 || noise.batch_size > 0
  const row = n - 1 - (estimated ? age : 0)
  const at = theta.slice(row * chains * dim, row * chains * dim + dim)
  const start = positions(data, run, at, 1).map(([one]) => one)
  const full = run.slope(at).map((/** @type {number} */ g) => -g)
  const used = estimated ? run.engine.view(run.arrays.last_gradient).slice(0, dim).map((/** @type {number} */ g) => -g) : full
  const longest = Math.max(...[full, used].flatMap((arrow) => [...arrow].map((v, i) => Math.abs(v) / data.span[i])))
  const scale = LONGEST / Math.max(longest, data.usual, TINY)
  data.flat = scale * longest < NOTHING
  const drawn = (/** @type {Float64Array} */ arrow) => [...start, ...start.map((x, i) => x + (i < dim ? scale * arrow[i] : 0))].map((v) => [v])
  return { full: drawn(full), used: drawn(used) }
}

/** Notes on events that a picture does not show: rejected proposals, noise that was too large. @param {any[]} lanes */
export const notes = (lanes) =>
  lanes.flatMap(({ run }, i) => {
    const sign = lanes.length > 1 ? `${SIGNS[i]} ` : ""
    const { support } = run.target
    const out = []
    const said = run.sampler.accept && run.steps ? [`accepts ${Math.round(100 * run.acceptance)}%`] : []
    if (diverged(run)) said.push(diverged(run))
    if (said.length) out.push(`${sign}${said.join("; ")}`)
    if (run.share(CLIPPED) > 0) {
      // @ts-ignore
      out.push(`${sign}${support === "simplex" ? "â" : "injected noise"} set to 0 in ${share(run.share(CLIPPED))} of steps: ${TOO_MUCH[support] ?? "B̂ is too large"}`)
    }
    if (run.share(TURNED) > 0) out.push(`${sign}${share(run.share(TURNED))} of trajectories turn back: an implicit step has no solution`)
    return out
  })

/** Where divergent transitions ended, if there are more than in the frame before, or the count began again.
 * @param {any} data @param {any} run @param {number} i the lane */
const marked = (data, run, i) => {
  data.marked ??= []
  const now = `${run.countedFrom} ${run.diverged}`
  if (now === data.marked[i]) return {}
  data.marked[i] = now
  const { steps, theta } = run.divergent
  const [x, y] = positions(data, run, theta, steps.length)
  const good = [...x.keys()].filter((k) => Number.isFinite(x[k]) && Number.isFinite(y[k]))
  return { [`diverged ${i}`]: [x, y].map((column) => good.map((k) => column[k])) }
}

/** @type {import("../views.js").LiveView} */
export const state = {
  compute({ data }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    if (data.cloud && !data.sent) out.cloud = data.cloud
    data.sent = true
    lanes.forEach(({ run, fresh }, i) => {
      const { dim } = run.target
      const all = run.sampler.interacting
      const shown = all ? run.description.n_chains : Math.min(lanes.length === 1 ? SHOWN_CHAINS : 1, fresh.chains)
      const now = all || run.steps <= run.countedFrom ? run.theta() : latest(run, 1).theta
      out[`heads ${i}`] = positions(data, run, now.slice(0, Math.min(shown, now.length / dim) * dim), Math.min(shown, now.length / dim))
      if (fresh.n) {
        const first = new Float64Array(fresh.n * dim)
        for (let t = 0; t < fresh.n; t++) first.set(fresh.theta.subarray(t * fresh.chains * dim, t * fresh.chains * dim + dim), t * dim)
        const [x, y] = positions(data, run, first, fresh.n)
        out[`path ${i}`] = [x, data.coordinates.length === 1 ? y.map(() => -0.06 * data.span[1]) : y]
      }
      Object.assign(out, marked(data, run, i))
    })
    return data.arrows ? { ...out, ...arrows(data, lanes[0].run) } : out
  },
  captions: ({ data }, lanes) => [...notes(lanes), ...(data.flat ? ["−∇U is 0 here: its arrow has no length"] : [])],
}
