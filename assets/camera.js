// Pictures and films of the figures as they are on the screen, with their titles, and the experiment in a line below.
import { download, makeSheet } from "./sheet.js"

const FRAMES = 30
const BITS = 8_000_000
const KINDS = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"]
// A film need not be sharper than a projector.
const MOST_PIXELS = 1920
const TOLD = 8_000

const takePicture = (data, say) => {
  const made = makeSheet(data, () => Math.max(window.devicePixelRatio, 2))
  if (!made) return say("There is no view to take a picture of.")
  made.sheet.toBlob((blob) => download(data.name, blob))
}

const takeFilm = async (data, say) => {
  const records = window.MediaRecorder && HTMLCanvasElement.prototype.captureStream
  const kind = records && KINDS.find((one) => MediaRecorder.isTypeSupported(one))
  if (!kind) return say("This browser cannot record a film in WebM. Recent versions of Chrome, Edge and Firefox can.")
  const made = makeSheet(data, (width) => Math.min(Math.max(window.devicePixelRatio, 1.5), MOST_PIXELS / width))
  if (!made) return say("There is no view to film.")
  const recorder = new MediaRecorder(made.sheet.captureStream(FRAMES), { mimeType: kind, videoBitsPerSecond: BITS })
  const pieces = []
  recorder.addEventListener("dataavailable", (event) => pieces.push(event.data))
  const ended = new Promise((done, failed) => {
    recorder.addEventListener("stop", done)
    recorder.addEventListener("error", failed)
  })
  const next = () => {
    if (recorder.state !== "recording") return
    made.draw()
    requestAnimationFrame(next)
  }
  recorder.start()
  say(`Recording the views for ${data.seconds} seconds …`, true)
  next()
  setTimeout(() => recorder.stop(), 1000 * data.seconds)
  try {
    await ended
  } catch {
    return say("The film could not be recorded.")
  }
  download(data.name, new Blob(pieces, { type: "video/webm" }))
  say(`The film of ${data.seconds} seconds is saved.`)
}

export function render({ model }) {
  const told = document.createElement("div")
  told.className = "film"
  told.setAttribute("role", "status")
  Object.assign(told.style, {
    position: "fixed", left: "50%", bottom: "48px", transform: "translateX(-50%)", zIndex: 2000, maxWidth: "90vw", boxSizing: "border-box",
    padding: "8px 16px", borderRadius: "6px", font: "500 15px/1.4 Roboto, sans-serif", background: "#37474f", color: "#ffffff", display: "none",
  })
  document.body.append(told)
  let hide = null
  let busy = false
  const say = (sentence, stays) => {
    clearTimeout(hide)
    told.textContent = sentence
    told.style.display = sentence ? "block" : "none"
    if (sentence && !stays) hide = setTimeout(() => say(""), TOLD)
  }
  const receive = async (message) => {
    const data = message.data ?? message
    if (data.seconds === 0) return takePicture(data, say)
    // The sentence says that one is being recorded.
    if (busy) return
    busy = true
    await takeFilm(data, say)
    busy = false
  }
  model.on("msg:custom", receive)
  model.on("remove", () => {
    clearTimeout(hide)
    told.remove()
    model.off("msg:custom", receive)
  })
  return document.createElement("span")
}
