// Frames of vectors in space on a globe; its figure is app/views/frames.py's.

import { columns, drawn } from "./globe.js"
import { notes } from "./state.js"

const SHOWN_CHAINS = 4

/** @type {import("../views.js").LiveView} */
export const frames = {
  compute({ data: { vectors } }, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    const each = [...Array(vectors).keys()]
    const dim = 3 * vectors
    const vector = (/** @type {ArrayLike<number>} */ theta, /** @type {number} */ k) => [0, 1, 2].map((j) => theta[j * vectors + k])
    lanes.forEach(({ run, fresh }, i) => {
      // The frames of several chains would be unreadable.
      const now = run.theta().subarray(0, dim)
      const heads = now.every(Number.isFinite) ? [now] : []
      const centre = [0, 0, 0]
      out[`frames ${i}`] = columns(heads.flatMap((head) => [centre, ...each.map((k) => vector(head, k)), centre]))
      const some = drawn(fresh, dim, lanes.length === 1 ? SHOWN_CHAINS : 1)
      for (const k of each) {
        out[`heads ${k} ${i}`] = columns(heads.map((head) => vector(head, k)))
        if (fresh.n) out[`draws ${k} ${i}`] = columns(some.map((theta) => vector(theta, k)))
      }
    })
    return out
  },
  captions: (_, lanes) => notes(lanes),
}
