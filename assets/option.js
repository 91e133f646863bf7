// An answer to a lesson's question: a button whose whole face, formulas too, can be clicked.
export function render({ model }) {
  const button = document.createElement("button")
  button.className = "answer"
  button.append(model.get_child("content"))
  const show = () => {
    button.disabled = model.state !== "open"
    button.dataset.state = model.state
    button.setAttribute("aria-label", model.words + ({ right: " (right)", wrong: " (not right)" }[model.state] ?? ""))
  }
  button.addEventListener("click", () => model.send_msg("chosen"))
  model.on("state", show)
  model.on("shown", () => {
    button.scrollIntoView({ block: "center" })
    button.focus({ preventScroll: true, focusVisible: true })
  })
  show()
  return button
}
