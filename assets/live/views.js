// The live page's part of each view: the arrays of a frame, and its captions. The page contains the figures.

import { autocorrelation } from "./views/autocorrelation.js"
import { kl } from "./views/kl.js"
import { bought } from "./views/bought.js"
import { circle } from "./views/circle.js"
import { components } from "./views/components.js"
import { energy } from "./views/energy.js"
import { fit } from "./views/fit.js"
import { frames } from "./views/frames.js"
import { globe } from "./views/globe.js"
import { ks } from "./views/ks.js"
import { marginal } from "./views/marginal.js"
import { mgf } from "./views/mgf.js"
import { moments } from "./views/moments.js"
import { phase } from "./views/phase.js"
import { state } from "./views/state.js"
import { temperature } from "./views/temperature.js"
import { thermostat } from "./views/thermostat.js"
import { torus } from "./views/torus.js"
import { trace } from "./views/trace.js"

/** @typedef {Record<string, Array<ArrayLike<number>>>} Data Arrays for feeds, by the feed's name, one per column. */
/** @typedef {{data: any, coordinate: number, axis: keyof import("./lane.js").Position, names: string[], ensembles: any[]}} Scene */
/** @typedef {ReturnType<import("./lane.js").Lane["frame"]>} LaneFrame */
/** @typedef {{compute: (scene: Scene, lanes: LaneFrame[]) => Data, captions: (scene: Scene, lanes: LaneFrame[]) => string[], ofLanes?: boolean,
 *   background?: (scene: Scene, lanes: LaneFrame[]) => Array<import("./ensembles.js").Ensemble | null>}} LiveView */
// `ofLanes`: one caption per lane. `background`: the ensembles of the lanes, which the host advances in every frame; the
// scene has those of the frame before.

/** @type {Record<string, LiveView>} */
export const VIEWS = {
  state, energy, phase, circle, torus, globe, frames, components, fit, marginal, ks, kl, bought, temperature, thermostat, trace, autocorrelation,
  moments, mgf,
}
