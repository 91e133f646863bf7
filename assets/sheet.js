// A sheet with a page's figures as the screen shows them, their titles and a caption.

/** Every element below one, including those in shadow roots. @param {Document | ShadowRoot} root @returns {Generator<Element>} */
export const walk = function* (root) {
  for (const element of root.querySelectorAll("*")) {
    yield element
    if (element.shadowRoot) yield* walk(element.shadowRoot)
  }
}

/** @param {string} name @param {Blob} blob */
export const download = (name, blob) => {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** @typedef {{layers: HTMLCanvasElement[], titles: Element[]}} Shown */

/** @returns {Shown} */
const find = () => {
  const shown = [...walk(document)].filter((element) => element.getBoundingClientRect().width > 0)
  return {
    layers: /** @type {HTMLCanvasElement[]} */ (shown.filter((element) => element.tagName === "CANVAS" && element.classList.contains("bk-layer"))),
    titles: shown.filter((element) => element.classList.contains("view-title")),
  }
}

/** @param {Shown} shown */
const edges = ({ layers, titles }) => {
  const boxes = [...layers, ...titles].map((element) => element.getBoundingClientRect())
  const left = Math.min(...boxes.map((box) => box.left)) - 12
  const top = Math.min(...boxes.map((box) => box.top)) - 12
  const right = Math.max(...boxes.map((box) => box.right)) + 12
  const bottom = Math.max(...boxes.map((box) => box.bottom)) + 36
  return { left, top, width: right - left, height: bottom - top }
}

/** A sheet `scale(width)` times as large as the views; null without views. Each `draw` copies their present pictures.
 * @param {{caption: string, background: string, ink: string}} look colours, and the line below @param {(width: number) => number} scale */
export const makeSheet = ({ caption, background, ink }, scale) => {
  let views = find()
  if (views.layers.length === 0) return null
  const { width, height } = edges(views)
  const times = scale(width)
  const sheet = document.createElement("canvas")
  // A video encoder may require even numbers.
  sheet.width = 2 * Math.round((width * times) / 2)
  sheet.height = 2 * Math.round((height * times) / 2)
  const context = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"))
  context.scale(times, times)
  const draw = () => {
    if (!views.layers.every((layer) => layer.isConnected)) views = find()
    const { left, top } = edges(views)
    context.fillStyle = background
    context.fillRect(0, 0, width, height)
    for (const layer of views.layers) {
      const box = layer.getBoundingClientRect()
      if (layer.width > 0 && layer.height > 0) context.drawImage(layer, box.left - left, box.top - top, box.width, box.height)
    }
    context.fillStyle = ink
    context.font = "bold 15px sans-serif"
    for (const title of views.titles) {
      const box = title.getBoundingClientRect()
      context.fillText(title.textContent ?? "", box.left - left, box.bottom - top - 4)
    }
    context.font = "13px sans-serif"
    context.fillText(caption, 12, height - 12)
  }
  draw()
  return { sheet, draw }
}
