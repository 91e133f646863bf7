// The Kolmogorov–Smirnov distance from the target.

import { general } from "../format.js"
import { distanceView } from "./distance.js"

export const ks = distanceView(
  (point) => point.ks,
  (data, { draws }) => [data.band[0], data.band[1], data.mean].map((x) => x / Math.sqrt(draws)),
  (data, { ks: distance, kl, exactKl }) => {
    const text = `KS ${general(distance, 3)}`
    const above = kl - exactKl
    return Number.isFinite(above) ? `${text}  ${data.kl} ${above > 0 ? general(above, 2) : "within noise"}` : text
  },
)
