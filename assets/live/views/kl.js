// The Kullback–Leibler divergence from the target.

import { general } from "../format.js"
import { distanceView } from "./distance.js"

export const kl = distanceView(
  (point) => point.kl,
  (_, { exactKl }) => [exactKl],
  (_, point) => `KL ${general(point.kl, 2)}, i.i.d. ${general(point.exactKl, 2)}`,
)
