// Numbers in words, as Python's format language writes them, so that both hosts write the same text.

/** `{x:,}`. @param {number} x */
export const grouped = (x) => x.toLocaleString("en-US", { maximumFractionDigits: 20 })

/** `{x:.{digits}f}`, with `,` where grouped. @param {number} x @param {number} digits @param {boolean} [groups] */
export const fixed = (x, digits, groups = false) =>
  groups ? x.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : x.toFixed(digits)

/** `{x:.{digits}g}`. @param {number} x @param {number} [digits] */
export const general = (x, digits = 6) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf"
  if (x === 0) return "0"
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e")
  const power = Number(exponent)
  const short = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text)
  if (power < -4 || power >= digits) {
    const two = String(Math.abs(power)).padStart(2, "0")
    return `${short(mantissa)}e${power < 0 ? "-" : "+"}${two}`
  }
  return short(x.toFixed(Math.max(digits - 1 - power, 0)))
}
