// Numbers in a lesson's text that follow the controls, as lessons/live.py has them.

import { general, grouped } from "./format.js"

/** A formula: the kind of a node, its number, its name, and its parts, as samplers/expressions/nodes.py has them.
 * @typedef {[number, number, string, Array<[number, any]>]} Node */

const [CONSTANT, NAME, SUM, PRODUCT] = [0, 1, 2, 3]
/** Functions of one argument that formulas may call. @type {Record<string, (x: number) => number>} */
const FUNCTIONS = { exp: Math.exp, log: Math.log, abs: Math.abs, sin: Math.sin, cos: Math.cos, tanh: Math.tanh, atan: Math.atan }

/** @param {Node} node @param {Record<string, number>} known @returns {number} */
export const evaluated = ([kind, value, label, parts], known) => {
  if (kind === CONSTANT) return value
  if (kind === NAME) return known[label]
  const found = parts.map(([weight, part]) => [weight, evaluated(part, known)])
  if (kind === SUM) return found.reduce((sum, [factor, term]) => sum + factor * term, value)
  if (kind === PRODUCT) return found.reduce((product, [power, base]) => product * base ** power, 1)
  return FUNCTIONS[label](found[0][1])
}

/** A number as the text shows it. @param {number} x */
export const shown = (x) => {
  if (!Number.isFinite(x)) return "–"
  return (Number.isInteger(x) && Math.abs(x) >= 1000 ? grouped(x) : general(x, 4)).replaceAll("-", "−")
}

/** The values that formulas may name, at other settings. @param {Record<string, number>} known at the step's own settings
 * @param {Array<Record<string, any>>} lanes the values of each lane @param {Record<string, any>} target */
export const valuesAt = (known, lanes, target) => {
  const out = { ...known }
  const set = (/** @type {string} */ name, /** @type {any} */ value) => { if (name in known && typeof value === "number") out[name] = value }
  const owner = (/** @type {string} */ name) => lanes.findIndex((_, i) => `${name}${i + 1}` in known)
  lanes.forEach((values, i) => {
    for (const [name, value] of Object.entries(values)) {
      set(`${name}${i + 1}`, value)
      if (owner(name) === i) set(name, value)
    }
  })
  for (const [name, value] of Object.entries(target)) if (owner(name) < 0) set(name, value)
  return out
}
