// Bias and variance of many chains as they leave the start; its figures are app/views/moments.py's.

import { bars, columnOf, Ensemble, keyOf, LAW, lawOf, renewed, startOf } from "../ensembles.js"
import { numbersOf } from "../engine.js"
import { grouped } from "../format.js"
import { roundUp } from "../marks.js"

const STEPS = 50
const WHAT = ["mean", "variance"]
const GEOMETRIC = "geometric_ou"
/** Numbers that the gradients of a batch may keep. */
const MOST_MEMORY = 2 ** 22

/** @typedef {import("../run.js").Run} Run */

/** The sums of the batches so far, of one coordinate, after 0…STEPS steps. */
class MomentsEnsemble extends Ensemble {
  /** @param {Run} run @param {import("../ensembles.js").Key} key */
  constructor(run, key) {
    super(run, key, STEPS)
    /** Of batch means, their squared standard errors, batch variances, their squared standard errors. */
    this.sums = new Float64Array(4 * (STEPS + 1))
    /** The lines of theory, made with the first batch; null where there are none. @type {Float64Array[] | null} */
    this.theory = null
  }

  /** @param {Run} run @returns {Generator<undefined, boolean, unknown>} */
  *_batch(run) {
    const { engine, key } = this
    const table = new Float64Array(4 * (STEPS + 1))
    for (let step = 0; step <= STEPS; step++) {
      if (step) run.advance(1)
      if (run.divergence) return false
      const values = columnOf(run, key)
      const out = engine.zeros([4, 1])
      engine.call("spread_of_chains", { values, out })
      // At the start all chains are at one point.
      const found = step || key.share ? engine.view(out).slice() : [engine.view(values)[0], 0, 0, 0]
      engine.free(values, out)
      found.forEach((/** @type {number} */ x, /** @type {number} */ i) => { table[i * (STEPS + 1) + step] = x })
      yield
    }
    if (!table.every(Number.isFinite)) return false
    const [rows, sums] = [engine.array(table, [4, STEPS + 1]), engine.array(this.sums, [4, STEPS + 1])]
    engine.call("add_batch", { rows, sums })
    this.sums = engine.view(sums).slice()
    engine.free(rows, sums)
    if (!this.batches) this.theory = theory(this)
    return true
  }

  /** Mean, its standard error, variance, its standard error. @returns {Float64Array[]} */
  table() {
    const { engine, batches } = this
    const [sums, out] = [engine.array(this.sums, [4, STEPS + 1]), engine.zeros([4, STEPS + 1])]
    engine.call("mean_of_batches", { sums, batches, out })
    const found = engine.view(out).slice()
    engine.free(sums, out)
    return [0, 1, 2, 3].map((i) => found.subarray(i * (STEPS + 1), (i + 1) * (STEPS + 1)))
  }
}

/** Var â_j of a minibatch. @param {{count: number, total: number, heat: number, batch_size: number, replacement: number}} law */
const varianceOfShape = ({ count, total, heat, batch_size: n, replacement }) => {
  const p = count / total
  const variance = ((total / heat) ** 2 * p * (1 - p)) / n
  return replacement ? variance : (variance * (total - n)) / Math.max(total - 1, 1)
}

/** Mean and variance of θ_j after each step, where they are known. @param {MomentsEnsemble} ensemble */
const theory = (ensemble) => {
  const { engine, key: { sampler, gradient, target, share } } = ensemble
  if (share || ![LAW, GEOMETRIC].includes(sampler.process)) return null
  const theta0 = startOf(ensemble.key)
  const length = STEPS + 1
  const steps = engine.array(Float64Array.from({ length }, (_, i) => i))
  const law = sampler.process === LAW ? lawOf(ensemble, theta0) : null
  const { h, unit } = law ?? { h: sampler.step_size, unit: 1 }
  const t = engine.array(Float64Array.from({ length }, (_, i) => h * i))
  const out = engine.zeros([2, length])
  const [mean, variance] = [0, 1].map((i) => ({ ...out, pointer: out.pointer + 8 * length * i, shape: [length] }))
  if (!law) {
    const [mu, sigma] = numbersOf(target.params)
    engine.call("geometric_ou_moments", { mu, sigma, theta0, t, out })
  } else {
    const noise = law.batch_size ? varianceOfShape(law) : 0
    engine.call("cir_means", { ...law, t, out: mean })
    if (gradient.control_variates) engine.call("scir_variances_cv", { ...law, var_n_hat: noise, out: variance })
    else engine.call("scir_variances", { ...law, steps, var_a_hat: noise, out: variance })
  }
  const found = engine.view(out).slice()
  engine.free(steps, t, out)
  return [found.subarray(0, length).map((x) => unit * x), found.subarray(length).map((x) => unit ** 2 * x)]
}

/** A range that holds both, at whole steps; the one there is `now`, unless it is too narrow or much too wide.
 * @param {number} low @param {number} high @param {number[]} now */
const fit = (low, high, now) => {
  if (now[0] <= low && high <= now[1] && high - low > 0.55 * (now[1] - now[0])) return now
  const span = Math.max(high - low, 1e-6 * Math.max(Math.abs(low), Math.abs(high)), 1e-300)
  const step = roundUp(span / 10)
  return [Math.floor(low / step) * step, Math.ceil(high / step + 0.5) * step]
}

/** Whether a run has θ_j ~ Gamma(a_j) on the simplex. @param {Run} run */
const isLaw = ({ sampler }) => sampler.process === LAW || sampler.key === "exact"

/** Why a lane is not shown; empty where it is. @param {Run} run @param {any} data @param {boolean} share */
const omission = (run, { simplex, batch }, share) => {
  // A thousand particles are not a thousand times one.
  if (run.sampler.interacting) return "not shown: its chains move each other"
  if (simplex && !share && !isLaw(run)) return "not shown: its Σθ has another scale"
  return batch * run.gradient.memory.shape[0] > MOST_MEMORY ? "not shown: its gradients keep too many numbers" : ""
}

/** On the simplex only the CIR samplers have θ_j ~ Gamma(a_j); ω is what all can be compared by.
 * @param {any} data @param {Array<{run: Run}>} lanes */
const sharing = ({ simplex }, lanes) => simplex && !lanes.some(({ run }) => run.sampler.process === LAW)

/** @type {import("../views.js").LiveView} */
export const moments = {
  ofLanes: true,
  background({ data, coordinate, ensembles }, lanes) {
    const share = sharing(data, lanes)
    const keys = lanes.map(({ run }) => (omission(run, data, share) ? null : keyOf(run, data.batch, coordinate, share)))
    return renewed(ensembles, keys, (key, lane) => new MomentsEnsemble(lanes[lane].run, key))
  },
  compute({ data, ensembles }, lanes) {
    const found = /** @type {Array<MomentsEnsemble | null>} */ (ensembles)
    const version = found.map((one) => one?.version).join()
    if (found.every((one) => !one || !(one.batches || one.diverged)) || version === data.sent) return {}
    data.sent = version
    data.ranges ??= { mean: [0, 1], variance: [0, 1] }
    const share = sharing(data, lanes)
    const [exactMean, exactVariance] = WHAT.map((what) => data.exact[what][Number(share)])
    /** @type {import("../views.js").Data} */
    const out = { exact: [[-1, STEPS + 1], [exactMean, exactMean], [exactVariance, exactVariance]] }
    const held = { mean: [exactMean], variance: [exactVariance] }
    // Lanes show different steps, so that their bars stand beside each other.
    const stride = found.length <= 2 ? 2 : 4
    found.forEach((one, i) => {
      out[`lane ${i}`] = Array(7).fill([])
      out[`theory ${i}`] = Array(3).fill([])
      if (!one || one.diverged || !one.batches) return
      const at = [...Array(STEPS + 1).keys()].filter((step) => step >= i && (step - i) % stride === 0)
      const [mean, meanError, variance, varianceError] = one.table()
      const both = { mean: bars(at, mean, meanError), variance: bars(at, variance, varianceError) }
      out[`lane ${i}`] = [at, ...both.mean, ...both.variance]
      held.mean.push(...both.mean.flat())
      held.variance.push(...both.variance.flat())
      if (!one.theory) return
      out[`theory ${i}`] = [[...Array(STEPS + 1).keys()], ...one.theory]
      held.mean.push(...one.theory[0])
      held.variance.push(...one.theory[1])
    })
    for (const [what, values] of Object.entries(held)) {
      data.ranges[what] = fit(Math.min(...values), Math.max(...values), data.ranges[what])
      out[`${what} range`] = [data.ranges[what]]
      out[`${what} title`] = [[Number(share)]]
    }
    return out
  },
  captions({ data, names, ensembles }, lanes) {
    const share = sharing(data, lanes)
    /** @type {boolean[]} */
    const known = []
    const lines = lanes.map(({ run }, i) => {
      const one = /** @type {MomentsEnsemble | null} */ (ensembles[i] ?? null)
      const omitted = omission(run, data, share)
      if (omitted) return `${names[i]} ${omitted}`
      if (!one) return `${names[i]} starting`
      if (one.diverged) return `${names[i]} diverged, not shown`
      if (one.theory) known.push(one.key.sampler.process === LAW && !one.key.gradient.control_variates)
      return `${names[i]} ${grouped(one.chains)} chains`
    })
    const theories = known.length ? [known.every(Boolean) ? "line: theory" : "line: the discretised chain's"] : []
    return [...lines, [...theories, "dashed: target", "bars ±2 standard errors"].join(" · ")]
  },
}
