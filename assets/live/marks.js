// Texts and axis ranges that several views share, as in app/views/marks.py and scales.py.

import { grouped } from "./format.js"

/** The lanes' signs in a text. */
export const SIGNS = "●■▲◆▼★"
export const LONG = 64
export const FEWEST_LAGS = 20
export const TINY = 2.2250738585072014e-308

/** @param {string} name */
const letters = (name) => [...name].filter((letter) => !/\p{M}/u.test(letter)).length

/** A lane's name in at most `most` letters. @param {string} name @param {number} most */
export const brief = (name, most) =>
  letters(name) <= most ? name : `${name.slice(0, Math.max(most - 1, 0)).replace(/[ ,]+$/, "")}…`

/** A share as a caption writes it. @param {number} x */
export const share = (x) => (x >= 0.01 ? `${Math.round(100 * Math.min(x, 1))}%` : "under 1%")

/** The smallest of …, 1, 2, 5, 10, 20, … that is not below x > 0. @param {number} x */
export const roundUp = (x) => {
  const power = 10 ** Math.floor(Math.log10(x))
  return power * ([1, 2, 5].find((step) => x <= power * step * (1 + 1e-9)) ?? 10)
}

/** How many transitions of a lane's statistics diverged, and of which ones the places are known; nothing where none did.
 * @param {import("./run.js").Run} run */
export const diverged = (run) => {
  const known = run.diverged > run.constants.MARKS ? `; the last ${run.constants.MARKS} are marked` : ""
  return run.diverged ? `${grouped(run.diverged)} of ${grouped(run.nDraws)} transitions diverged${known}` : ""
}

/** Why a picture of a lane's draws is empty; nothing where it is not. @param {any} run */
export const noDraws = (run) => (run.nDraws ? "" : run.steps && run.steps <= run.burnIn ? "burn-in: no draws yet" : "no draws yet")

/** The length of an axis of a run that has made one step, where that is not 1. @type {Record<string, number>} */
const LEAST = { seconds: 1e-3 }

/** The ends of an axis of the run that shows all from `start` to `end`, and some more; of a single step a whole one.
 * @param {number} start @param {number} end @param {string} axis */
export const runWindow = (start, end, axis) => [start, end + (end > start ? 0.03 * (end - start) : LEAST[axis] ?? 1)]

/** @typedef {{log: boolean, range: [number, number]}} Scale */

/** A value's place on an axis. @param {Scale} scale @param {number} x */
export const forward = ({ log }, x) => (log ? Math.log10(Math.max(x, TINY)) : x)

/** The value at a place on an axis. @param {Scale} scale @param {number} x */
export const back = ({ log }, x) => (log ? 10 ** x : x)
