// The KS distance against the data touched; its figure is app/views/cost_curve.py's.

import { ks } from "./ks.js"

/** @type {import("../views.js").LiveView} */
export const bought = { ...ks, compute: (scene, lanes) => ks.compute({ ...scene, axis: "data" }, lanes) }
