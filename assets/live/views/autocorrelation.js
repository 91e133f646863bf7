// The autocorrelation of a coordinate; its figure is app/views/autocorrelation.py's.

import { fixed } from "../format.js"
import { FEWEST_LAGS, roundUp } from "../marks.js"

const SEEN = 4
const ROOM = 1.25

/** Lags, ρ, and τ with its standard error and window. @param {import("../run.js").Run} run @param {number} k */
const read = (run, k) => {
  if (run.whyWeighted) return { lags: [], rho: [], tau: NaN, error: NaN, weighted: run.whyWeighted }
  const { engine, sums, constants } = run
  const out = engine.zeros([2, constants.MOST_LAGS])
  const found = engine.zeros([3])
  const watched = sums.lag_sums.shape[1]
  const n = engine.call("correlations", { ...sums, steps: run.nSteps, k, out })
  engine.call("sokal", { correlations: out, n, steps: run.nSteps * watched, out: found })
  const rows = engine.view(out).slice()
  const [tau, error] = engine.view(found)
  engine.free(out, found)
  return { lags: [...rows.subarray(0, n)], rho: [...rows.subarray(constants.MOST_LAGS, constants.MOST_LAGS + n)], tau, error, weighted: "" }
}

/** @param {{tau: number, error: number, weighted: string}} found */
const words = ({ tau, error, weighted }) => {
  if (weighted) return `${weighted}: no τ`
  if (!Number.isFinite(tau)) return "τ needs more steps"
  const least = Math.max(error, 1e-9)
  const digits = least < 10 ? Math.min(Math.max(0, 1 - Math.floor(Math.log10(least))), 3) : 0
  return `τ = ${fixed(tau, digits, true)} ± ${fixed(least, digits, true)}`
}

/** @type {import("../views.js").LiveView} */
export const autocorrelation = {
  ofLanes: true,
  compute({ data, coordinate }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    data.end ??= FEWEST_LAGS
    data.bottom ??= -0.25
    let [needed, known] = [FEWEST_LAGS, true]
    data.found = lanes.map(({ run }) => (run.sampler.interacting ? null : read(run, coordinate)))
    const curves = data.found.map((/** @type {any} */ found) => {
      if (!found) return { lags: [], rho: [] }
      const good = [...found.lags.keys()].filter((i) => Number.isFinite(found.rho[i]))
      if (Number.isFinite(found.tau)) needed = Math.max(needed, SEEN * found.tau)
      else {
        known = false
        needed = Math.max(needed, found.lags[found.lags.length - 1] ?? 0)
      }
      return { lags: good.map((i) => found.lags[i]), rho: good.map((i) => found.rho[i]) }
    })
    const enough = roundUp(ROOM * needed)
    if (needed > data.end || (known && enough < data.end)) {
      data.end = enough
      out.x = [[0, data.end]]
    }
    const least = Math.min(0, ...curves.flatMap((/** @type {any} */ curve) => curve.rho))
    const bottom = least < -0.25 ? -1.05 : least > -0.15 ? -0.25 : data.bottom
    if (bottom !== data.bottom) {
      data.bottom = bottom
      out.y = [[bottom, 1.05]]
    }
    curves.forEach((/** @type {{lags: number[], rho: number[]}} */ { lags, rho }, /** @type {number} */ i) => {
      const first = lags.findIndex((/** @type {number} */ lag) => lag >= data.end)
      const shown = (first < 0 ? lags.length : first) + 1
      out[`lane ${i}`] = [lags.slice(0, shown), rho.slice(0, shown)]
    })
    return out
  },
  captions: ({ data, names }) =>
    names.map((name, i) => `${name}  ${data.found?.[i] ? words(data.found[i]) : "interacting particles: no τ"}`),
}
