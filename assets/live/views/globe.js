// Points in space on a globe, which the figure itself places and turns; it is app/views/globe.py's.

import { notes } from "./state.js"

const SHOWN_CHAINS = 4

/** The coordinates of the finite points. @param {ArrayLike<number>[]} points */
export const columns = (points) => {
  const good = points.filter((point) => Array.from(point).every(Number.isFinite))
  return [0, 1, 2].map((k) => good.map((point) => point[k]))
}

/** The first chains' θ of the draws since the last frame. @param {any} fresh @param {number} dim @param {number} chains */
export const drawn = (fresh, dim, chains) =>
  Array.from({ length: fresh.n * fresh.chains }, (_, i) => fresh.theta.subarray(i * dim, (i + 1) * dim))
    .filter((_, i) => i % fresh.chains < chains)

/** @type {import("../views.js").LiveView} */
export const globe = {
  compute(_, lanes) {
    /** @type {import("../views.js").Data} */
    const out = {}
    const most = lanes.length === 1 ? SHOWN_CHAINS : 1
    lanes.forEach(({ run, fresh }, i) => {
      const theta = run.theta()
      const chains = Math.min(most, run.description.n_chains)
      out[`heads ${i}`] = columns(Array.from({ length: chains }, (_, c) => theta.subarray(3 * c, 3 * c + 3)))
      if (fresh.n) out[`draws ${i}`] = columns(drawn(fresh, 3, chains))
    })
    return out
  },
  captions: (_, lanes) => notes(lanes),
}
