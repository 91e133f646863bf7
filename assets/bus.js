// The page's end of the live loop: the figures, each a separate Bokeh document, and their frames. A frame arrives as
// one binary message and is written straight into the glyphs' data sources; once it is on the screen, its number goes back.
import { find, grown, put } from "./live/feeds.js"
import { patchBokeh } from "./patches.js"
import { download, walk } from "./sheet.js"

// Browsers open the clipboard to secure pages only; a page from a server on the classroom's network is not secure.
const copy = (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const field = document.createElement("textarea")
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand("copy")
  field.remove()
}

// The playback of a step: rows of a source grow, each in its time window, and words are highlighted with them. The
// picture at any time follows from the data alone; the server sends nothing meanwhile.
const makePlayer = (still) => {
  const played = new Map()
  let words = { at: 0, windows: [], elements: [], colours: [] }
  let asked = false

  const light = (now) => {
    const t = still ? Infinity : (now - words.at) / 1000
    let more = false
    words.windows.forEach(([begin, end], i) => {
      const on = t >= begin && t < end
      more ||= t < end
      for (const one of words.elements[i]) {
        one.style.color = one.style.fill = one.style.stroke = on ? words.colours[i] : ""
        one.style.fontWeight = on ? "bold" : ""
        // Letters of a formula are shapes, with a thousand units to the em: an outline makes them bold.
        one.style.strokeWidth = on ? "45" : ""
        one.dataset.lit = on
      }
    })
    return more
  }
  const tick = (now) => {
    asked = false
    let more = light(now)
    for (const one of played.values()) {
      if (one.done) continue
      const { data, more: growing } = grown(one.rows, one.names, still ? Infinity : (now - one.at) / 1000)
      one.source.setv({ data }, { sync: false })
      one.done = !growing
      more ||= growing
    }
    if (more) ask()
  }
  const ask = () => {
    if (!asked) requestAnimationFrame(tick)
    asked = true
  }
  return {
    play: (source, rows, names) => {
      played.set(source.id, { source, rows, names, at: performance.now(), done: false })
      ask()
    },
    say: (windows, colours) => {
      const all = [...walk(document)]
      words = { at: performance.now(), windows, colours, elements: windows.map((_, i) => all.filter((one) => one.classList?.contains(`part-${i}`))) }
      ask()
    },
    forget: () => played.clear(),
  }
}

// The most arrays that wait for figures: a page has some fifty feeds, and three frames are under way at a time.
const MOST_EARLY = 200

// The smallest readable type, in pixels.
const SMALLEST = 9
const sizes = new WeakMap()

const ruler = document.createElement("canvas").getContext("2d")

// A caption that is wider than its figure gets smaller type, and its own size again when there is room.
const fitLabels = () => {
  const visit = (view) => {
    if (view.model.type !== "Figure") return [...view.children()].forEach(visit)
    for (const model of view.model.references()) {
      if (model.type !== "Label" || model.x_units !== "screen" || !model.text) continue
      const now = parseFloat(model.text_font_size)
      const own = Math.max(sizes.get(model) ?? now, now)
      sizes.set(model, own)
      ruler.font = `${model.text_font_style} ${own}px ${model.text_font}`
      const width = Math.max(...model.text.split("\n").map((line) => ruler.measureText(line).width))
      // A caption above the frame begins at the figure's edge, one in a corner at the frame's.
      const left = model.x.offset ?? view.frame.bbox.left + model.x
      const room = view.canvas.bbox.width - left - 2
      const fitting = Math.max(SMALLEST, Math.min(own, Math.floor((2 * own * room) / width) / 2))
      if (fitting !== now) model.setv({ text_font_size: `${fitting}px` }, { sync: false })
    }
  }
  for (const root of Bokeh.index.roots) visit(root)
}

const make = (tag, className, html = "") => {
  const made = document.createElement(tag)
  made.className = className
  made.innerHTML = html
  return made
}

// A sign that shows what a figure means, and the text, which lies over the figure: nothing moves.
const explained = (title, help) => {
  const sign = make("button", "explain")
  sign.textContent = "?"
  const text = make("p", "explanation")
  text.textContent = help
  const show = (on) => {
    text.hidden = !on
    sign.setAttribute("aria-expanded", on)
  }
  sign.setAttribute("aria-label", `${title}: explanation`)
  sign.addEventListener("click", () => show(text.hidden))
  sign.addEventListener("keydown", (event) => event.key === "Escape" && show(false))
  sign.addEventListener("blur", () => show(false))
  show(false)
  return [sign, text]
}

const documentOf = (card) => Bokeh.documents.find((one) => one.get_model_by_id(card.dataset.figure))
// The sliders in a figure, such as those that turn a globe. They have names.
const slidersOf = (card) => (documentOf(card)?.roots() ?? []).flatMap((root) => [...root.references()]).filter((one) => one.type === "Slider")

// Removes a card and the document of its figure.
const end = (card) => {
  card.remove()
  const its = documentOf(card)
  if (!its) return
  its.clear()
  Bokeh.documents.splice(Bokeh.documents.indexOf(its), 1)
}

export function render({ model }) {
  patchBokeh()
  const grid = make("div", "grid")
  // For a screen reader, and for the tests: figures are still being made.
  const busy = (on) => grid.setAttribute("aria-busy", on)
  busy(true)
  let layout = { generation: -1, feeds: [], cards: [], classes: [] }
  let models = []
  let drawn = 0
  // Arrays for figures that are still being made, with the index of their feed.
  let early = []
  // The values of sliders in figures that were shown before, by the figure and the slider.
  const set = new Map()
  // The number of the frame to answer once all figures exist.
  let unanswered = 0
  let making = Promise.resolve()
  let complete = true

  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : 0
  const player = makePlayer(still === 1)
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)")
  const say = (number) => model.send_msg([number, document.hidden ? 1 : 0, layout.generation, window.innerWidth, still, prefersDark.matches ? 1 : 0])

  const place = (index, parts) => {
    const [id, columns, operation, rollover, names] = layout.feeds[index]
    const target = models[index]
    if (!target) {
      early = [...early.slice(-MOST_EARLY), [index, parts]]
    } else if (operation === "play") {
      player.play(target, Object.fromEntries(columns.map((name, i) => [name, parts[i].slice()])), names)
    } else {
      put(target, { id, columns, operation, rollover }, parts.map((part) => part.slice()))
    }
  }

  const catchUp = () => {
    models = layout.feeds.map(([id]) => find(id))
    const before = early
    early = []
    before.forEach(([index, parts]) => place(index, parts))
  }

  // Replaces the figures one after another by those of this layout; the old ones stay until their turn.
  const show = async (mine) => {
    const { cards } = mine
    const before = [...grid.children]
    for (const card of before) for (const { name, value } of slidersOf(card)) set.set(`${card.dataset.key} ${name}`, value)
    for (const [i, { key, title, hint, help, classes, style, figure }] of cards.entries()) {
      if (mine !== layout) return
      const card = make("div", ["card", ...classes].join(" "))
      card.style = style
      card.dataset.figure = figure.root_id
      card.dataset.key = key
      const heading = make("div", "heading")
      const name = make("h2", "view-title")
      name.textContent = title
      heading.append(name, " ")
      if (help) heading.append(...explained(title, help))
      heading.append(make("span", "hint", hint))
      const holder = make("div", "figure")
      card.append(heading, holder)
      if (before[i]) before[i].replaceWith(card)
      else grid.append(card)
      if (before[i]) end(before[i])
      await Bokeh.embed.embed_item(figure, holder)
      for (const one of slidersOf(card)) if (set.has(`${key} ${one.name}`)) one.value = set.get(`${key} ${one.name}`)
      if (mine === layout) catchUp()
    }
    before.slice(cards.length).forEach(end)
    complete = true
    if (mine === layout) busy(false)
    fitLabels()
    if (unanswered) answer(unanswered)
  }

  const apply = (numbers) => {
    let at = 2
    while (at < numbers.length) {
      const index = numbers[at]
      const length = numbers[at + 1]
      at += 2
      const parts = layout.feeds[index][1].map((_, i) => numbers.subarray(at + i * length, at + (i + 1) * length))
      at += parts.length * length
      place(index, parts)
    }
  }

  const receive = (message) => {
    const data = message.data ?? message
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    if (bytes[0] === "{".charCodeAt(0)) obey(JSON.parse(new TextDecoder().decode(bytes)))
    else draw(new Float64Array(bytes.slice().buffer))
  }

  const obey = (data) => {
    if (data.type === "layout") {
      layout = data
      drawn = unanswered = 0
      early = []
      models = []
      complete = false
      busy(true)
      player.forget()
      grid.className = ["grid", ...data.classes].join(" ")
      Object.entries(data.colours).forEach(([name, colour]) => grid.style.setProperty(`--${name}`, colour))
      making = making.then(() => show(data))
      say(0)
    } else if (data.type === "former") {
      grid.classList.toggle("former", data.former)
    } else if (data.type === "file") {
      download(data.name, new Blob([Uint8Array.from(atob(data.content), (c) => c.charCodeAt(0))]))
    } else if (data.type === "copy") {
      copy(location.href)
    } else if (data.type === "address") {
      const here = location.pathname + location.search + location.hash
      const there = location.pathname + data.query + location.hash
      if (there !== here) history[data.entry ? "pushState" : "replaceState"](null, "", there)
    } else if (data.type === "text" || data.type === "step") {
      for (const [id, text] of data.items) {
        const found = find(id)
        // A model without text is a picture, and gets a description.
        const role = found?.type === "Figure" ? "img" : "group"
        if (found) found.setv("text" in found ? { text } : { html_attributes: { role, "aria-label": text } }, { sync: false })
      }
      // The width of a figure is known once it is laid out.
      if (data.type === "text") setTimeout(fitLabels, 50)
      if (data.type === "step") player.say(data.windows, data.colours)
    }
  }

  // The next paint takes long; the answer is sent after it.
  const answer = (number) => requestAnimationFrame(() => setTimeout(() => say(number), 0))

  const draw = (numbers) => {
    const [generation, number] = numbers
    // A component may be rendered twice; the second copy has nothing left to draw.
    if (generation !== layout.generation || number <= drawn) return
    drawn = number
    apply(numbers)
    if (!complete) unanswered = number
    else if (number === 1 || number % 2 === 0) answer(number)
  }

  const keepSizes = () => {
    for (const card of grid.children) {
      card.style.setProperty("--width", `${card.offsetWidth}px`)
      card.style.setProperty("--height", `${card.offsetHeight}px`)
    }
  }
  const visibility = () => say(-1)
  model.on("msg:custom", receive)
  window.addEventListener("beforeprint", keepSizes)
  document.addEventListener("visibilitychange", visibility)
  prefersDark.addEventListener("change", visibility)
  model.on("remove", () => {
    model.off("msg:custom", receive)
    window.removeEventListener("beforeprint", keepSizes)
    document.removeEventListener("visibilitychange", visibility)
    prefersDark.removeEventListener("change", visibility)
    ;[...grid.children].forEach(end)
  })
  say(-2)
  return grid
}
