// The start of chains after a click in a figure, and their momentum after a drag.

import { back } from "./marks.js"

/** @param {number[]} a @param {number[]} b */
const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0)

/** The same direction with length 1; null for the zero vector. @param {number[]} a */
const unit = (a) => (Math.hypot(...a) > 0 ? a.map((x) => x / Math.hypot(...a)) : null)

/** The point of the globe nearest to the eye at (x, y); null outside the globe. @param {any} tap @param {number[]} at */
const onGlobe = ({ turn, tilt }, [x, y]) => {
  const near = Math.sqrt(1 - x ** 2 - y ** 2)
  if (!(near >= 0)) return null
  const [a, b] = [(turn * Math.PI) / 180, (tilt * Math.PI) / 180]
  const right = [-Math.sin(a), Math.cos(a), 0]
  const up = [-Math.sin(b) * Math.cos(a), -Math.sin(b) * Math.sin(a), Math.cos(b)]
  const eye = [Math.cos(b) * Math.cos(a), Math.cos(b) * Math.sin(a), Math.sin(b)]
  return unit(right.map((_, k) => x * right[k] + y * up[k] + near * eye[k]))
}

/** θ by the kind of the figure; null where no chain can start there.
 * @type {Record<string, (tap: any, at: number[], before: number[]) => number[] | null>} */
const KINDS = {
  axes({ coordinates, scales, edges }, at, before) {
    const start = [...before]
    for (const [k, coordinate] of coordinates.entries()) {
      if (at[k] < edges[k][0] || at[k] > edges[k][1]) return null
      start[coordinate] = back(scales[k], at[k])
    }
    return start
  },
  phase: ({ coordinate, scales }, at, before) =>
    scales.every((/** @type {any} */ { range: [low, high] }, /** @type {number} */ k) => at[k] >= low && at[k] <= high)
      ? before.map((x, k) => (k === coordinate ? back(scales[0], at[0]) : x))
      : null,
  circle: (_, at) => unit(at),
  torus: ({ axes }, at) => (at.every((x, k) => x >= axes[k][0] && x <= axes[k][1]) ? at.flatMap((angle) => [Math.cos(angle), Math.sin(angle)]) : null),
  globe(tap, at) {
    const point = onGlobe(tap, at)
    // Every point of the sphere is a reflection of a point of the simplex.
    return point && tap.folds ? point.map(Math.abs) : point
  },
  frames(tap, at, before) {
    const first = onGlobe(tap, at)
    if (!first || tap.vectors === 1) return first
    // The component of the second vector orthogonal to the first; another vector's if it vanishes.
    const across = [before.filter((_, k) => k % 2), [1, 0, 0], [0, 1, 0], [0, 0, 1]].map((v) => v.map((x, k) => x - dot(v, first) * first[k]))
    const second = unit(across.find((v) => Math.hypot(...v) > 0.1) ?? across[1]) ?? [0, 0, 1]
    return first.flatMap((x, k) => [x, second[k]])
  },
}

/** @param {any} tap @param {number[]} at @param {number[]} before */
export const startAt = (tap, at, before) => KINDS[tap.kind](tap, at, before)

/** The difference of the values at two places, the second at most one axis length beyond the axis.
 * @param {import("./marks.js").Scale} scale @param {number} from @param {number} to */
const between = (scale, from, to) => {
  const [low, high] = scale.range
  return back(scale, Math.min(Math.max(to, 2 * low - high), 2 * high - low)) - back(scale, from)
}

/** The momentum of chains that start at `start` after a drag from one point to another; null without one.
 * @param {any} tap @param {number[]} from @param {number[]} to @param {number[]} start @returns {number[] | null} */
export const thrown = (tap, from, to, start) => {
  const clicked = from.every((x, k) => x === to[k])
  if (tap.kind === "phase") return tap.throws ? start.map((_, k) => (k === tap.coordinate ? to[1] : 0)) : null
  if (clicked || !tap.arrow) return null
  if (tap.kind === "axes") {
    // In one unit of time, this momentum moves a chain by the length of the drag.
    const momentum = start.map(() => 0)
    for (const [k, coordinate] of tap.coordinates.entries()) momentum[coordinate] = between(tap.scales[k], from[k], to[k])
    return momentum
  }
  // The tangential part of the drag, in the scale of the velocity arrows.
  const drag = to.map((x, k) => (x - from[k]) / tap.length)
  return drag.map((x, k) => x - dot(drag, start) * start[k])
}
