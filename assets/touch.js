// What was done with the pointer in a figure, as its own script tells it: to the server go what, in which view, and where.
export function render({ model }) {
  const touched = (event) => model.send_msg(event.detail)
  document.addEventListener("lab-touch", touched)
  model.on("remove", () => document.removeEventListener("lab-touch", touched))
  return document.createElement("span")
}
