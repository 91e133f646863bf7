// A click or a tap in a figure, as the figure's own script tells it: to the server goes which view it was, and where.
export function render({ model }) {
  const touched = (event) => model.send_msg(event.detail)
  document.addEventListener("lab-touch", touched)
  model.on("remove", () => document.removeEventListener("lab-touch", touched))
  return document.createElement("span")
}
