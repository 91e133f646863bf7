// Formulas in a narrow column: their fonts are the system's, and some are wider than others.

/** A formula is not made smaller than this share of its size; beyond, its box scrolls. */
const LEAST = 0.7

/** Make each formula of a box as small as its width asks for. @param {HTMLElement} box */
export const fit = (box) => {
  const room = box.clientWidth
  for (const formula of box.querySelectorAll("math")) {
    formula.style.fontSize = ""
    const { width } = formula.getBoundingClientRect()
    // Sizes of letters are rounded.
    const share = Math.max((0.98 * room) / width, LEAST)
    if (room > 0 && width > room) formula.style.fontSize = `${share * parseFloat(getComputedStyle(formula).fontSize)}px`
  }
}
