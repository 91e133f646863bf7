// Numbers in words, as Python's format language writes them, so that both hosts write the same text.

/** `{x:,}`. @param {number} x */
export const grouped = (x) => x.toLocaleString("en-US", { maximumFractionDigits: 20 })

/** `exact`, all decimal digits of a number, cut off after so many where Python rounds down and JavaScript up: where the rest is
 * half a unit of an even digit. Otherwise null. @param {string} exact @param {number} digits */
const cutAtTie = (exact, digits) => {
  const end = exact.indexOf(".") + 1 + digits
  const cut = exact.slice(0, digits ? end : end - 1)
  return /^50*$/.test(exact.slice(end)) && "02468".includes(cut.slice(-1)) ? cut : null
}

/** `{x:.{digits}f}`, with `,` where grouped. @param {number} x @param {number} digits @param {boolean} [groups] */
export const fixed = (x, digits, groups = false) => {
  const [whole, ...part] = (cutAtTie(x.toFixed(100), digits) ?? x.toFixed(digits)).split(".")
  return [groups ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole, ...part].join(".")
}

/** `x.toExponential(digits)`, rounded as Python does. @param {number} x @param {number} digits */
const exponential = (x, digits) => {
  const [mantissa, power] = x.toExponential(100).split("e")
  const cut = cutAtTie(mantissa, digits)
  return cut === null ? x.toExponential(digits).split("e") : [cut, power]
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
