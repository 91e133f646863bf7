// Presenter mode: one key for each thing that a person in front of a class does, and a strip that shows the keys.
const KEYS = {
  ArrowRight: "next", PageDown: "next", n: "next", ArrowLeft: "back", PageUp: "back", b: "back", " ": "play",
  r: "reset", s: "picture", c: "controls", f: "full", Escape: "leave",
}
// Of a step that is taken apart, in presenter mode and without it.
const WAYS = { ".": "part", ",": "part_back", ">": "step", "<": "step_back" }
const STRIP = [
  ["next", "→", "next", true], ["back", "←", "back", true], ["play", "Space", "play or pause"], ["reset", "R", "reset"],
  ["picture", "S", "save a picture"], ["controls", "C", "controls"], ["full", "F", "full screen"], ["leave", "Esc", "leave"],
  ["part_back", ",", "part back", false, true], ["part", ".", "part", false, true], ["step_back", "<", "step back", false, true], ["step", ">", "step", false, true],
]
// In these, keys belong to what the person types or chooses.
const FIELDS = "input, textarea, select, [contenteditable], [role=combobox], [role=slider], [role=listbox], [role=menu], [role=dialog], [role=spinbutton]"
const PRESSED = "button, a, [role=button]"

export function render({ model }) {
  const strip = document.createElement("div")
  strip.className = "strip"
  const buttons = new Map()
  for (const [action, key, words] of STRIP) {
    const button = document.createElement("button")
    const name = document.createElement("kbd")
    name.textContent = key
    button.append(name, words)
    button.addEventListener("click", () => {
      // A button that keeps the focus would take the next key.
      button.blur()
      obey(action)
    })
    buttons.set(action, button)
    strip.append(button)
  }
  // Leaving full screen with the browser's own key is leaving presenter mode; with ours it is not.
  let ours = false

  const full = () => {
    if (document.fullscreenElement) {
      ours = true
      document.exitFullscreen()
    } else document.documentElement.requestFullscreen?.().catch(() => {})
  }
  const obey = (action) => (action === "full" ? full() : model.send_msg(action))
  const show = () => {
    strip.hidden = !model.on_screen
    strip.dataset.dark = model.dark
    for (const [action, , , lesson, slow] of STRIP) {
      buttons.get(action).hidden = (Boolean(lesson) && !model.lesson) || (Boolean(slow) && !model.slow)
    }
  }
  const changed = () => {
    show()
    if (model.on_screen && !document.fullscreenElement) full()
    if (!model.on_screen && document.fullscreenElement) document.exitFullscreen()
  }
  const pressed = (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return
    const action = (model.slow && WAYS[event.key]) || (model.on_screen && KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key])
    const path = event.composedPath().filter((one) => one instanceof Element)
    if (!action || path.some((one) => one.matches(FIELDS))) return
    if (event.key === " " && path.some((one) => one.matches(PRESSED))) return
    event.preventDefault()
    obey(action)
  }
  const left = () => {
    if (!document.fullscreenElement && model.on_screen && !ours) model.send_msg("leave")
    ours = false
  }
  // What is above it ends where it begins.
  const sized = new ResizeObserver(() => document.documentElement.style.setProperty("--strip", `${strip.offsetHeight}px`))
  sized.observe(strip)
  document.addEventListener("keydown", pressed)
  document.addEventListener("fullscreenchange", left)
  model.on("on_screen", changed)
  model.on("dark", show)
  model.on("lesson", show)
  model.on("slow", show)
  model.on("remove", () => {
    sized.disconnect()
    document.removeEventListener("keydown", pressed)
    document.removeEventListener("fullscreenchange", left)
  })
  show()
  return strip
}
