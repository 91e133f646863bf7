// Claims compared with measured values, as in lessons/claims.py and app/lesson/marks.py.

import { general, grouped } from "./format.js"
import { measured } from "./measures.js"

/** A goal's expectation where it is the target's own value, which is not known. */
const EXACT = "exact"
/** The largest error that allows a check mark, as a share of the effect. */
const SHARE = 0.1
/** The tolerance for chance in standard errors, where a claim names none. */
const ERRORS = 4
/** Identical chains have only the rounding error of their sums, below this share of the number. */
const ROUNDING = 1e-9

/** @typedef {{value: number, error: number | null, exact: number | null}} Estimate */
/** @typedef {{equals: number | null, exact: boolean, above: number | null, below: number | null, tolerance: number | null, relative: number | null, errors: number | null}} Goal */
/** The result of a claim. `chance` is the possible effect of chance, where it is too large for a judgement.
 * `later` is the expectation at full length, where the goal is that of the reduced length; else empty.
 * @typedef {{measured: number, error: number | null, expected: string, allowed: number | null, passed: boolean, reason: string, chance: number | null, later: string}} Result */
/** The goal of a claim's sentence, and that of the reduced length, where it is another one.
 * @typedef {{goal: Goal, quick: Goal | null}} Goals */
/** A claim; its lanes are counted from 0, each with its exact value, the sums that it needs, and the time of its step.
 * @typedef {{place: number, measure: import("./measures.js").Measure, lanes: number[], quantity: string, exact: Array<number | null>,
 *   follows: Array<import("./followed.js").Follows | null>, perRoot: number | null, times: number[],
 *   cells: Record<number, any>, first: number, full: number} & Goals} Claim */
/** The lanes that run. @typedef {Array<{run: import("./run.js").Run, truth: import("./truth.js").Truth}>} Lanes */
/** The result of a claim so far, in runs that continue.
 * @typedef {{counted: number, settled: boolean, result: Result | null}} LiveResult */
/** Whether the running target and lanes are those of the claims. @typedef {{target: boolean, lanes: boolean}} Same */
/** The state and text of a claim's check mark. @typedef {{state: string, detail: string}} Mark */

/** @type {Record<string, string>} */
export const SIGNS = { pending: "…", early: "…", near: "→", holds: "✓", fails: "✗", other: "~", elsewhere: "–", running: "…" }
/** @type {Record<string, string>} */
export const WORDS = {
  pending: "measuring", early: "too early", near: "on the way", holds: "holds", fails: "not yet",
  other: "not the claim's settings", elsewhere: "not measured yet", running: "running",
}

/** A lane's number as the quantity of a claim. @param {string} name @param {Estimate} lane @param {Estimate | null} other @returns {Estimate} */
export const quantity = (name, { value, error, exact }, other) => {
  if (name === "bias") return { value: exact === null ? NaN : value - exact, error, exact: 0 }
  if (name === "relative_bias") return exact ? { value: value / exact - 1, error: error && error / Math.abs(exact), exact: 0 } : { value: NaN, error: null, exact: 0 }
  if (!other) return { value, error, exact }
  const both = error !== null && other.error !== null
  if (name === "difference")
    return {
      value: value - other.value, error: both ? Math.hypot(error, /** @type {number} */ (other.error)) : null,
      exact: exact === null || other.exact === null ? null : exact - other.exact,
    }
  if (other.value === 0) return { value: NaN, error: null, exact: null }
  const ratio = value / other.value
  return {
    value: ratio, error: both ? Math.hypot(error, ratio * /** @type {number} */ (other.error)) / Math.abs(other.value) : null,
    exact: exact !== null && other.exact ? exact / other.exact : null,
  }
}

/** The mean over seeds; its error comes from the seeds' own errors, or, without them, from their spread. @param {Estimate[]} seeds @returns {Estimate} */
export const mean = (seeds) => {
  const n = seeds.length
  const value = seeds.reduce((sum, seed) => sum + seed.value, 0) / n
  const errors = seeds.map((seed) => seed.error).filter((error) => error !== null)
  let error = null
  if (errors.length === n) error = Math.hypot(...errors) / n
  else if (n > 1 && Number.isFinite(value)) error = Math.sqrt(seeds.reduce((sum, seed) => sum + (seed.value - value) ** 2, 0) / (n - 1) / n)
  return { value, error, exact: seeds[0].exact }
}

/** A goal's expectation in words; `expected` is its number, where that is known. @param {Goal} goal @param {number | null} expected */
export const inWords = ({ exact, above, below }, expected) => {
  if (expected !== null) return general(expected)
  if (exact) return EXACT
  if (above !== null && below !== null) return `${general(above)} to ${general(below)}`
  return above !== null ? `above ${general(above)}` : `below ${general(/** @type {number} */ (below))}`
}

/** The error of a number that is too inaccurate for a comparison with its goal; null otherwise.
 * @param {Goal} goal @param {Estimate} found @param {number | null} expected */
const chanceOf = ({ above, below, errors, tolerance, relative }, { value, error }, expected) => {
  const bounds = [above, below].filter((bound) => bound !== null)
  if (!Number.isFinite(value) || !(expected || bounds.length)) return null
  if (error === null) return errors !== null ? Infinity : null
  const chance = (errors || ERRORS) * error
  const enough = expected
    ? Math.max(SHARE * Math.abs(expected), tolerance ?? 0, (relative ?? 0) * Math.abs(expected))
    : Math.min(...bounds.map((bound) => Math.abs(value - bound)))
  return chance > enough ? chance : null
}

/** Judge a claim by its number for every seed; `trouble` is a sentence about a failure of the run, or empty.
 * @param {Goal} goal @param {Estimate[]} seeds @param {string} trouble @returns {Result} */
export const judge = (goal, seeds, trouble) => {
  const found = mean(seeds)
  const expected = goal.exact ? found.exact : goal.equals
  const margins = [goal.tolerance]
  if (goal.relative !== null && expected !== null) margins.push(goal.relative * Math.abs(expected))
  if (goal.errors !== null) margins.push(found.error === null ? null : goal.errors * found.error)
  const given = margins.filter((margin) => margin !== null)
  const allowed = given.length ? Math.max(...given) : null
  const reason = reasonOf(goal, found, expected, allowed, trouble)
  return {
    measured: found.value, error: found.error, expected: inWords(goal, expected), allowed, passed: !reason, reason,
    chance: chanceOf(goal, found, expected), later: "",
  }
}

/** Judge a claim at the reduced length. @param {Goals} goals @param {Estimate[]} seeds @param {string} trouble @returns {Result} */
export const judged = ({ goal, quick }, seeds, trouble) => {
  const result = judge(quick ?? goal, seeds, trouble)
  return quick ? { ...result, later: laterOf(goal, quick, result) } : result
}

/** The number that a claim's sentence expects at full length. @param {Goal} goal @param {Goal} quick @param {Result} result */
const laterOf = (goal, quick, { expected }) => {
  const words = inWords(goal, goal.equals)
  if (words !== inWords(quick, quick.equals)) return words
  let margin = goal.tolerance || 0
  if (goal.relative !== null && expected !== EXACT) margin = Math.max(margin, goal.relative * Math.abs(Number(expected)))
  return margin ? `within ${general(margin, 2)} of ${expected}` : words
}

/** The reason for a failure; empty where the number passes.
 * @param {Goal} goal @param {Estimate} found @param {number | null} expected @param {number | null} allowed @param {string} trouble */
const reasonOf = (goal, found, expected, allowed, trouble) => {
  if (Number.isNaN(found.value)) return trouble || "The run does not determine this number: it is too short, or its chains never moved."
  if (goal.errors !== null && found.error === null) return "The run is too short for a standard error."
  if (goal.exact && expected === null) return "The target's value of this number is not known; give the number instead of “exact”."
  if (expected !== null) {
    const off = Math.abs(found.value - expected)
    if (!(off <= /** @type {number} */ (allowed))) return `It is ${general(off, 3)} away from ${general(expected)}; the tolerance is ${general(/** @type {number} */ (allowed), 3)}.`
  }
  const slack = expected === null && allowed !== null ? allowed : 0
  const by = goal.errors && expected === null ? ` by ${general(goal.errors)} standard errors` : ""
  if (goal.above !== null && !(found.value - slack > goal.above)) return `It is not above ${general(goal.above)}${by}.`
  if (goal.below !== null && !(found.value + slack < goal.below)) return `It is not below ${general(goal.below)}${by}.`
  return ""
}

/** A claim's result in the runs of the step's own experiment.
 * @param {Claim} claim @param {Lanes} records @param {any} poisson @returns {LiveResult} */
export const liveResult = (claim, records, poisson) => {
  const runs = claim.lanes.map((lane) => records[lane].run)
  const counted = Math.min(...runs.map((run) => Math.max(run.steps - run.countedFrom, 0)))
  const stopped = runs.some((run) => run.divergence !== null)
  let result = null
  if (counted > 0 || stopped) {
    const lanes = runs.map((run, i) => {
      const { truth } = records[claim.lanes[i]]
      const found = measured(claim.measure, { run, truth, time: claim.times[i], cells: claim.cells, poisson })
      const exact = claim.perRoot === null ? claim.exact[i] : claim.perRoot / Math.sqrt(run.nEffective)
      return found ? { ...found, exact } : { value: NaN, error: null, exact: null }
    })
    const trouble = runs.find((run) => run.divergence)?.divergence?.message ?? ""
    const seeds = [quantity(claim.quantity, lanes[0], lanes[1] ?? null)]
    result = judge(claim.goal, seeds, trouble)
    if (counted < claim.full && !(result.passed && result.chance === null)) result = judged(claim, seeds, trouble)
  }
  const settled = stopped || counted >= claim.full || (counted >= claim.first && result !== null && result.chance === null)
  return { counted, settled, result }
}

/** Measured, expected and tolerance, in words. @param {Result} result */
export const detailOf = ({ measured: value, error, expected, allowed }) => {
  const spread = error && error > ROUNDING * Math.abs(value) ? ` ± ${general(error, 2)}` : ""
  const found = Number.isNaN(value) ? "no number" : `measured ${general(value, 5)}${spread}`
  return `${found}, expected ${expected}${allowed === null ? "" : `, tolerance ${general(allowed, 2)}`}`
}

/** The number of steps behind a final number; before that, the later expectation, if it is different.
 * @param {number} full @param {number} counted @param {Result} result */
const length = (full, counted, { later }) => {
  if (counted === full) return `, over all ${grouped(full)} steps`
  if (counted > full) return `, over ${grouped(counted)} steps (${grouped(full)} asked)`
  return later && `; ${later} after all ${grouped(full)} steps`
}

/** The check mark of a claim. @param {Claim} claim @param {LiveResult} found @param {Same} same @returns {Mark} */
export const markOf = (claim, found, same) => {
  const { result, counted, settled } = found
  if (!result) return { state: "pending", detail: `0 of ${grouped(claim.first)} steps` }
  if (!same.target || !same.lanes) return { state: "other", detail: isKnown(claim, same) && !Number.isNaN(result.measured) ? `measured ${general(result.measured, 5)}` : "" }
  const detail = detailOf(result) + length(claim.full, counted, result)
  if (!settled && counted < claim.first) {
    // Some numbers exist only after the first draws.
    const soFar = Number.isFinite(result.measured) ? ` · ${detail}` : ""
    return { state: "pending", detail: `${grouped(counted)} of ${grouped(claim.first)} steps${soFar}` }
  }
  if (!settled) {
    const known = result.chance !== null && Number.isFinite(result.chance)
    return { state: "early", detail: known ? `${detail}; chance may still move it by ${general(/** @type {number} */ (result.chance), 2)}` : detail }
  }
  return marked(result, detail)
}

/** A result's mark. @param {Result} result @param {string} detail @returns {Mark} */
const marked = ({ passed, later, reason }, detail) =>
  passed ? { state: later ? "near" : "holds", detail } : { state: "fails", detail: `${detail}. ${reason}` }

/** Whether the claim's number exists for other settings: the file has exact values of its own target and times of its own
 * lanes only. @param {Claim} claim @param {Same} same */
const isKnown = ({ measure, quantity: name }, { target, lanes }) =>
  (target || !(measure.key === "kl" || measure.key === "expectation" || name === "bias" || name === "relative_bias")) && (lanes || measure.values.unit !== "time")

/** How the claims of a step stand, in a sentence. @param {Mark[]} found */
export const summary = (found) => {
  const number = (/** @type {string[]} */ ...states) => found.filter(({ state }) => states.includes(state)).length
  /** @type {Array<[string, number]>} */
  const counts = [
    ["met", number("holds")], ["on the way", number("near")], ["still running", number("pending", "early", "running")], ["not met", number("fails")],
    ["with other settings", number("other")], ["not measured yet", number("elsewhere")],
  ]
  const said = counts.filter(([what, n]) => n || what === "met").map(([what, n]) => `${n} ${what}`)
  return found.length ? `Of ${found.length} claim${found.length > 1 ? "s" : ""} ${said.join(", ")}.` : ""
}

/** The mark of a claim on separate short runs. @param {Result} result @returns {Mark} */
export const separateMark = (result) =>
  marked(result, `${detailOf(result)}, in a separate short run${result.later && `; ${result.later} at full length`}`)

/** The live claims of a step, with their arrays in the engine's memory. */
export class Claims {
  /** @param {import("./engine.js").Engine} engine @param {{claims: Claim[], poisson: any, step: number}} given */
  constructor(engine, { claims, poisson, step }) {
    this.engine = engine
    this.step = step
    /** @type {Same} */
    this.same = { target: true, lanes: true }
    /** @type {any[]} */
    this.held = []
    const unpack = (/** @type {any} */ arrays) =>
      Object.fromEntries(Object.entries(arrays).map(([name, packed]) => {
        const array = engine.unpack(packed)
        this.held.push(array)
        return [name, array]
      }))
    this.poisson = poisson && unpack(poisson)
    this.claims = claims.map((claim) => ({ ...claim, cells: Object.fromEntries(Object.entries(claim.cells).map(([column, cells]) => [column, unpack(cells)])) }))
  }

  free() { this.engine.free(...this.held) }

  /** Let a new run make the sums that the claims about its lane need. @param {number} lane @param {import("./run.js").Run} run */
  follow(lane, run) {
    const needed = this.claims.flatMap(({ lanes, follows }) => follows.filter((one, i) => one !== null && lanes[i] === lane))
    const parts = /** @type {import("./followed.js").Follows[]} */ (needed)
    if (parts.length) run.follow({
      every: Math.max(...parts.map(({ every }) => every)),
      moments: Object.assign({}, ...parts.map(({ moments }) => moments)),
      gaps: parts.map(({ gaps }) => gaps).find(Boolean) ?? null,
    })
  }

  /** A mark for each claim, with its place in the step. @param {Lanes} records */
  marks(records) {
    // The reader may have removed a lane.
    const mark = (/** @type {Claim} */ claim) =>
      Math.max(...claim.lanes) < records.length ? markOf(claim, liveResult(claim, records, this.poisson), this.same) : { state: "other", detail: "" }
    return this.claims.map((claim) => ({ place: claim.place, ...mark(claim) }))
  }
}
