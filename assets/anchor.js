// A place in the lesson's text that the panel scrolls to by itself when it is new.
const SETTLED = 250

// The box that scrolls this element, through shadow roots; null where only the page does.
const box = (element) => {
  for (let one = element; one; one = one.assignedSlot ?? one.parentNode ?? one.host) {
    if (one instanceof Element && ["auto", "scroll"].includes(getComputedStyle(one).overflowY)) return one
  }
  return null
}

export function render({ model }) {
  const here = document.createElement("div")
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches
  const scroll = () => {
    const found = box(here)
    if (!found || !here.isConnected) return
    const top = found.scrollTop + here.getBoundingClientRect().top - found.getBoundingClientRect().top
    found.scrollTo({ top: Math.max(top - 6, 0), behavior: still ? "auto" : "smooth" })
  }
  // Formulas above it take their height a moment later.
  if (model.fresh) setTimeout(scroll, SETTLED)
  return here
}
