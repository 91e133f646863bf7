// Numbers in the lesson's text that follow the controls.
const walk = function* (root) {
  for (const element of root.querySelectorAll("*")) {
    yield element
    if (element.shadowRoot) yield* walk(element.shadowRoot)
  }
}

export function render({ model }) {
  const show = () => {
    for (const one of walk(document)) {
      if (one.classList.contains("live-number")) one.textContent = model.values[Number(one.dataset.n)] ?? one.textContent
    }
  }
  model.on("values", show)
  // The text may have been made for what ran before.
  setTimeout(show, 0)
  return document.createElement("div")
}
