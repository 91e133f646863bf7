// Numbers in words, as Python's format language writes them, so that both hosts write the same text.

/** `{x:,}`. @param {number} x */
export const grouped = (x) => x.toLocaleString("en-US", { maximumFractionDigits: 20 })

/** Whether `digits`, the exact decimal digits of a number from some place on, are half a unit of the digit before, which is
 * even: Python then rounds down, and JavaScript up. @param {string} before @param {string} digits */
const downward = (before, digits) => /^50*$/.test(digits) && "02468".includes(before.slice(-1))

/** `{x:.{digits}f}`, with `,` where grouped. @param {number} x @param {number} digits @param {boolean} [groups] */
export const fixed = (x, digits, groups = false) => {
  const exact = x.toFixed(100)
  const end = exact.indexOf(".") + 1 + digits
  const down = downward(exact.slice(0, end).replace(/\.$/, ""), exact.slice(end))
  const text = down ? exact.slice(0, digits ? end : end - 1) : x.toFixed(digits)
  const [whole, ...part] = text.split(".")
  return [groups ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole, ...part].join(".")
}

/** `x.toExponential(digits)`, rounded as Python does. @param {number} x @param {number} digits */
const exponential = (x, digits) => {
  const [mantissa, power] = x.toExponential(100).split("e")
  const end = mantissa.indexOf(".") + 1 + digits
  const down = downward(mantissa.slice(0, end).replace(/\.$/, ""), mantissa.slice(end))
  return down ? [mantissa.slice(0, digits ? end : end - 1), power] : x.toExponential(digits).split("e")
}

/** `{x:.{digits}g}`. @param {number} x @param {number} [digits] */
export const general = (x, digits = 6) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf"
  if (x === 0) return "0"
  const [mantissa, exponent] = exponential(x, digits - 1)
  const power = Number(exponent)
  const short = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text)
  if (power < -4 || power >= digits) {
    const two = String(Math.abs(power)).padStart(2, "0")
    return `${short(mantissa)}e${power < 0 ? "-" : "+"}${two}`
  }
  return short(Number(`${mantissa}e${power}`).toFixed(Math.max(digits - 1 - power, 0)))
}
