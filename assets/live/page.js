// The live page: controls, figures, and messages between them and the host.

import { Host } from "./host.js"
import { bytesOf } from "./engine.js"
import { find, put } from "./feeds.js"
import { described, scaleOf, written } from "./parameters.js"
import { startAt } from "./starts.js"

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id)

/** A new element with properties and children.
 * @param {string} tag @param {Record<string, any>} [properties] @param {Array<Node | string>} children */
const make = (tag, properties = {}, ...children) => {
  const out = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name in out) /** @type {any} */ (out)[name] = value
    else out.setAttribute(name, value)
  }
  out.append(...children)
  return out
}

// A frame without a right to storage or history throws where they are asked for.
/** @template T @param {() => T} ask @param {T} [otherwise] */
const allowed = (ask, otherwise) => {
  try {
    return ask()
  } catch {
    return otherwise
  }
}

/** A script element's content, which is compressed. @param {string} id @returns {Response} */
const unzipped = (id) => {
  const bytes = new Blob([/** @type {BlobPart} */ (bytesOf(element(id).textContent.trim()))])
  return new Response(bytes.stream().pipeThrough(new DecompressionStream("gzip")))
}

/** Everything of the file beside its compiled functions. @type {any} */
let file
/** The step that is shown: an experiment, and where its figures are; without an experiment it has no lanes. @type {any} */
let page
let number = 0

const first = () => ({
  seed: page.seed,
  n_chains: page.n_chains,
  start: /** @type {number[] | null} */ (null),
  // A telephone has room for one picture and its controls.
  views: /** @type {string[]} */ (matchMedia("(max-width: 560px)").matches ? page.shown.slice(0, 1) : [...page.shown]),
  axis: "steps",
  speed: page.speed,
  target: { ...page.target.first },
  lanes: page.lanes.map((/** @type {any} */ lane) => ({ sampler: { ...lane.sampler.first }, gradient: { ...lane.gradient.first } })),
})

/** What a person has chosen in this step. @type {ReturnType<typeof first>} */
let chosen
let dark = matchMedia("(prefers-color-scheme: dark)").matches
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches

/** @type {(message: any) => void} */
let tell = () => {}

// The state in the link.

/** Where the lab is while it runs on this computer. */
const LAB = "http://localhost:5006/app"

/** The experiment as the lab's link has it. */
const labQuery = () => {
  const words = new URLSearchParams({ target: page.target.query })
  page.lanes.forEach((/** @type {any} */ { sampler, gradient }, /** @type {number} */ i) => {
    words.append("lane", `${written(sampler, chosen.lanes[i].sampler)}~${written(gradient, chosen.lanes[i].gradient)}`)
  })
  words.set("seed", String(chosen.seed))
  words.set("n_chains", String(chosen.n_chains))
  if (chosen.start) words.set("start", chosen.start.join(","))
  words.set("views", chosen.views.join(","))
  return words
}

const KEYS = ["seed", "n_chains", "axis", "speed"]

const writeFragment = () => {
  const words = new URLSearchParams()
  if (file.steps.length > 1) words.set("step", String(number + 1))
  for (const key of KEYS) words.set(key, String(/** @type {any} */ (chosen)[key]))
  words.set("views", chosen.views.join(","))
  if (chosen.start) words.set("start", chosen.start.join(","))
  words.set("target", JSON.stringify(chosen.target))
  chosen.lanes.forEach((/** @type {any} */ lane, /** @type {number} */ i) => words.set(`lane${i}`, JSON.stringify(lane)))
  element("open").href = `${LAB}?${labQuery()}`
  allowed(() => history.replaceState(null, "", `#${words}`))
  return `${location.href.split("#")[0]}#${words}`
}

/** Whether a value is one that this parameter may have. @param {any} choice @param {string} name @param {any} value */
const fits = (choice, name, value) => {
  const variation = choice.variations[name]
  const parameter = choice.parameters.find((/** @type {any} */ one) => one.name === name)
  if (!variation || !parameter) return false
  if (variation.stops) return variation.stops.some((/** @type {any} */ [stop]) => stop === value)
  if (parameter.kind === "flag") return typeof value === "boolean"
  const [low, high] = parameter.bounds
  return typeof value === "number" && value >= low && value <= high && (parameter.kind !== "count" || Number.isInteger(value))
}

/** @param {any} choice @param {any} target @param {any} values @param {string[]} refused */
const takeValues = (choice, target, values, refused) => {
  for (const [name, value] of Object.entries(values ?? {})) {
    if (name in choice.first && value === choice.first[name]) target[name] = value
    else if (fits(choice, name, value)) target[name] = value
    else refused.push(name)
  }
}

/** The step that the link names, from 0. */
const stepOf = () => {
  const asked = Number(new URLSearchParams(location.hash.slice(1)).get("step") ?? 1)
  return Number.isInteger(asked) && asked >= 1 && asked <= file.steps.length ? asked - 1 : 0
}

/** What the link says of the step that is shown, where this file can do it. @returns {string[]} the names that were refused */
const readFragment = () => {
  const words = new URLSearchParams(location.hash.slice(1))
  /** @type {string[]} */
  const refused = []
  const whole = (/** @type {string} */ key, /** @type {number} */ low, /** @type {number} */ high) => {
    if (!words.has(key)) return undefined
    const value = Number(words.get(key))
    if (Number.isInteger(value) && value >= low && value <= high) return value
    refused.push(key)
    return undefined
  }
  chosen.seed = whole("seed", 0, page.most_seed) ?? chosen.seed
  chosen.n_chains = whole("n_chains", 1, page.most_chains) ?? chosen.n_chains
  chosen.speed = whole("speed", 1, page.most_speed) ?? chosen.speed
  if (words.has("axis")) {
    if (Object.hasOwn(page.axes, words.get("axis") ?? "")) chosen.axis = words.get("axis") ?? "steps"
    else refused.push("axis")
  }
  if (words.has("views")) {
    const asked = (words.get("views") ?? "").slice(0, 500).split(",")
    const known = asked.filter((key) => Object.hasOwn(page.views, key))
    if (known.length) chosen.views = known
    if (known.length < asked.length) refused.push("views")
  }
  if (words.has("start")) {
    const start = (words.get("start") ?? "").slice(0, 5000).split(",").map(Number)
    if (start.length === page.dim && start.every((x) => Number.isFinite(x) && Math.abs(x) <= 1e6)) chosen.start = start
    else refused.push("start")
  }
  const parsed = (/** @type {string} */ key) => {
    if (!words.has(key)) return {}
    const found = allowed(() => JSON.parse((words.get(key) ?? "").slice(0, 5000)))
    if (found && typeof found === "object") return found
    refused.push(key)
    return {}
  }
  takeValues(page.target, chosen.target, parsed("target"), refused)
  page.lanes.forEach((/** @type {any} */ lane, /** @type {number} */ i) => {
    const { sampler, gradient } = parsed(`lane${i}`)
    takeValues(lane.sampler, chosen.lanes[i].sampler, sampler, refused)
    takeValues(lane.gradient, chosen.lanes[i].gradient, gradient, refused)
  })
  return refused
}

// What runs.

const SIGNS = "●■▲◆"

const targetNow = () => described(page.target, chosen.target)

/** @param {number} i */
const laneNow = (i) => ({
  ...page.lanes[i].run,
  seed: chosen.seed,
  n_chains: chosen.n_chains,
  target: targetNow().run,
  sampler: described(page.lanes[i].sampler, chosen.lanes[i].sampler),
  gradient: described(page.lanes[i].gradient, chosen.lanes[i].gradient),
  ...(chosen.start ? { start: { shape: [page.dim], type: "f8", values: chosen.start } } : {}),
})

const open = () => {
  say("")
  tell({ type: "open", lanes: page.lanes.map((/** @type {any} */ _, /** @type {number} */ i) => laneNow(i)), truth: targetNow().truth })
  writeFragment()
}

const look = () => {
  const views = Object.fromEntries(Object.entries(page.views).map(([key, view]) => [key, { first: view.data, feeds: view.feeds, }]))
  tell({ type: "look", views, shown: chosen.views, coordinate: page.coordinate, axis: chosen.axis, names: page.names })
}

/** @param {string} text */
const say = (text) => {
  element("problem").textContent = text
  element("problem").hidden = !text
}

// Figures.

/** @type {Set<string>} */
const listening = new Set()
const models = new Map()

/** @param {string} id */
const model = (id) => {
  if (!models.has(id)) models.set(id, find(id))
  return models.get(id)
}

const dress = () => {
  document.documentElement.dataset.theme = dark ? "dark" : "light"
  for (const [id, properties] of Object.entries(dark ? page.dark : page.light)) model(id)?.setv(properties)
}

const labelAxes = () => {
  for (const [id, name] of page.axis_labels) model(id)?.setv({ [name]: page.axes[chosen.axis] })
}

/** Figures are made when their view is first shown. @type {Set<string>} */
const embedded = new Set()

const placeViews = () => {
  embedded.clear()
  listening.clear()
  element("views").replaceChildren(...Object.entries(page.views).map(([key, { title, hint }]) =>
    make("figure", { className: "view", id: `view-${key}` },
      make("figcaption", {}, make("b", {}, title), " ", make("span", { className: "hint" }, hint)),
      make("ul", { className: "caption", id: `caption-${key}` }),
      make("div", { className: "plot", id: `plot-${key}` }))))
}

const showViews = async () => {
  for (const key of Object.keys(page.views)) {
    element(`view-${key}`).hidden = !chosen.views.includes(key)
    element(`show-${key}`).setAttribute("aria-pressed", String(chosen.views.includes(key)))
  }
  for (const key of chosen.views.filter((one) => !embedded.has(one))) {
    embedded.add(key)
    const holder = element(`plot-${key}`)
    holder.replaceChildren()
    // @ts-ignore
    await Bokeh.embed.embed_item(page.views[key].figure, holder)
  }
  models.clear()
  for (const { tap, view } of page.taps) listen(view, tap)
  dress()
  labelAxes()
  look()
}

/** A click in a figure starts the chains there. @param {string} view @param {any} tap */
const listen = (view, tap) => {
  if (listening.has(view) || !embedded.has(view)) return
  listening.add(view)
  model(tap.figure).on_event("tap", (/** @type {any} */ event) => {
    const [turn, tilt] = [tap.turn, tap.tilt].map((id) => (id ? model(id).value : 0))
    const start = startAt({ ...tap, turn, tilt }, [event.x, event.y], chosen.start ?? page.start)
    if (!start) return
    chosen.start = start
    open()
  })
}

/** What a frame takes of the host's thread, in milliseconds, about the last ten. */
let hostMs = 0

/** @param {any} message */
const draw = ({ number, feeds, steps, took, seconds }) => {
  for (const [feed, arrays] of feeds) {
    const target = model(feed.id)
    if (target) put(target, feed, arrays)
  }
  element("steps").textContent = steps.toLocaleString("en-US")
  const burnIn = page.lanes[0].run.burn_in
  element("burn-in").textContent = steps < burnIn ? `of ${burnIn.toLocaleString("en-US")} of the burn-in: nothing is counted yet` : ""
  document.documentElement.dataset.frames = String(number)
  hostMs += 0.1 * (took - hostMs)
  Object.assign(document.documentElement.dataset, { hostMs: hostMs.toFixed(2), seconds: seconds.toFixed(4) })
  requestAnimationFrame(() => setTimeout(() => tell({ type: "answer", number }), 0))
}

/** @param {any} message */
const write = ({ items }) => {
  for (const [key, lines, ofLanes] of items) {
    const holder = element(`caption-${key}`)
    lines.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
      const line = holder.children[i] ?? holder.appendChild(make("li"))
      if (line.textContent !== text) line.textContent = text
      if (ofLanes && i < page.names.length) Object.assign(line.dataset, { lane: String(i), sign: SIGNS[i] })
      else for (const name of ["lane", "sign"]) delete line.dataset[name]
    })
    while (holder.children.length > lines.length) holder.lastChild.remove()
  }
}

/** @param {any} message */
const hear = (message) => {
  if (message.type === "frame") draw(message)
  else if (message.type === "text") write(message)
  else if (message.type === "diverged") say(message.message)
  else if (message.type === "draws") saveDraws(message.lanes)
  else if (message.type === "failed") say(`The engine stopped: ${message.message} Reset begins again.`)
}

// Files.

/** @param {string} name @param {Blob} blob */
const download = (name, blob) => {
  const link = /** @type {HTMLAnchorElement} */ (make("a", { href: URL.createObjectURL(blob), download: name }))
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

/** @param {any[]} lanes */
const saveDraws = (lanes) => {
  const head = ["lane", "chain", "step", ...page.columns]
  const rows = [head.map((word) => `"${word.replaceAll('"', '""')}"`).join(",")]
  lanes.forEach(({ shape: [chains, length, columns], kept, stride, values }, i) => {
    for (let c = 0; c < chains; c++)
      for (let t = 0; t < kept; t++)
        rows.push([`"${page.names[i]}"`, c + 1, t * stride + 1, ...values.subarray((c * length + t) * columns, (c * length + t + 1) * columns)].join(","))
  })
  download("draws.csv", new Blob([rows.join("\n")], { type: "text/csv" }))
}

// Controls.

/** @param {any} choice @param {Record<string, any>} values @param {string} prefix @param {() => void} moved */
const sliders = (choice, values, prefix, moved) =>
  choice.parameters
    .filter((/** @type {any} */ parameter) => choice.variations[parameter.name])
    .map((/** @type {any} */ parameter) => slider(parameter, choice.variations[parameter.name], values, prefix, moved))

/** @param {any} parameter @param {any} variation @param {Record<string, any>} values @param {string} prefix @param {() => void} moved */
const slider = (parameter, variation, values, prefix, moved) => {
  const { name, label, doc, kind } = parameter
  const id = `${prefix}-${name}`
  if (kind === "flag") {
    const input = make("input", { type: "checkbox", id, checked: values[name] })
    input.onchange = () => { values[name] = /** @type {HTMLInputElement} */ (input).checked; moved() }
    return make("div", { className: "control", title: doc }, make("label", { htmlFor: id }, input, ` ${label}`))
  }
  if (kind === "option") {
    const options = variation.stops.map((/** @type {any} */ [value]) => make("option", { value: String(value), selected: value === values[name] }, String(value)))
    const input = make("select", { id }, ...options)
    input.onchange = () => { values[name] = variation.stops[/** @type {HTMLSelectElement} */ (input).selectedIndex][0]; moved() }
    return make("div", { className: "control", title: doc }, make("label", { htmlFor: id }, label), input)
  }
  const { last, at, place } = scaleOf(parameter, variation)
  const shown = make("output", { htmlFor: id }, String(values[name]))
  const input = /** @type {HTMLInputElement} */ (make("input", { type: "range", id, min: "0", max: String(last), step: "1" }))
  input.value = String(place(values[name]))
  input.setAttribute("aria-valuetext", String(values[name]))
  input.oninput = () => {
    values[name] = at(Number(input.value))
    shown.textContent = String(values[name])
    input.setAttribute("aria-valuetext", String(values[name]))
    moved()
  }
  return make("div", { className: "control", title: doc }, make("label", { htmlFor: id }, label), shown, input)
}

const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000]

const showSpeed = () => {
  element("speed-now").textContent = chosen.speed.toLocaleString("en-US")
  element("speed").setAttribute("aria-valuetext", `${chosen.speed} steps a frame`)
}
const showPlay = () => {
  element("play").textContent = playing ? "Pause" : "Play"
  document.documentElement.dataset.playing = String(playing)
  tell({ type: "pace", playing: playing, speed: chosen.speed, hidden: document.hidden })
}
/** The controls of the step that is shown. */
const placeControls = () => {
  const lanes = page.lanes.map((/** @type {any} */ lane, /** @type {number} */ i) => {
    const changed = () => {
      const { sampler, gradient } = laneNow(i)
      tell({ type: "change", lane: i, change: { sampler, gradient } })
      writeFragment()
    }
    const all = [
      ...sliders(lane.sampler, chosen.lanes[i].sampler, `sampler-${i}`, changed),
      ...sliders(lane.gradient, chosen.lanes[i].gradient, `gradient-${i}`, changed),
    ]
    const equations = make("div", { className: "equations", tabIndex: 0, role: "group", "aria-label": "One step" })
    equations.innerHTML = lane.equations
    return make("section", { className: `lane lane-${i}` }, make("h2", {}, page.names[i]), equations, ...all)
  })
  const target = sliders(page.target, chosen.target, "target", open)
  element("lanes").replaceChildren(...lanes)
  element("target-controls").replaceChildren(...target)
  element("view-buttons").replaceChildren(...Object.entries(page.views).map(([key, { title }]) => {
    const button = make("button", { type: "button", id: `show-${key}`, "aria-pressed": "false" }, title)
    button.onclick = () => {
      const on = chosen.views.includes(key)
      if (on && chosen.views.length === 1) return
      chosen.views = Object.keys(page.views).filter((one) => (one === key ? !on : chosen.views.includes(one)))
      showViews()
      writeFragment()
    }
    return button
  }))
  element("seed-now").textContent = String(chosen.seed)
  const place = SPEEDS.findIndex((n) => n >= chosen.speed)
  element("speed").value = String(place < 0 ? SPEEDS.length - 1 : place)
  showSpeed()
  element("chains").replaceChildren(...[...new Set([1, 2, 4, 10, 50, 100, page.n_chains, chosen.n_chains])].filter((n) => n <= page.most_chains).sort((a, b) => a - b).map((n) => make("option", { value: String(n), selected: n === chosen.n_chains }, String(n))))
  element("axis").replaceChildren(...Object.entries(page.axes).map(([key, label]) => make("option", { value: key, selected: key === chosen.axis }, label)))
}

/** The controls that every step has. */
const build = () => {
  const play = element("play")
  const pause = (/** @type {boolean} */ on) => {
    playing = on
    showPlay()
  }
  play.onclick = () => pause(!playing)
  element("step").onclick = () => {
    pause(false)
    tell({ type: "step" })
  }
  element("reset").onclick = () => {
    chosen.start = null
    open()
    showPlay()
  }
  element("seed").onclick = () => {
    chosen.seed += 1
    element("seed-now").textContent = String(chosen.seed)
    open()
    showPlay()
  }
  const speed = element("speed")
  speed.max = String(SPEEDS.length - 1)
  speed.oninput = () => {
    chosen.speed = SPEEDS[Number(speed.value)]
    showSpeed()
    showPlay()
    writeFragment()
  }
  const chains = element("chains")
  chains.onchange = () => {
    chosen.n_chains = Number(chains.value)
    open()
    showPlay()
  }
  const axis = element("axis")
  axis.onchange = () => {
    chosen.axis = axis.value
    labelAxes()
    look()
    writeFragment()
  }
  element("theme").onclick = () => {
    dark = !dark
    allowed(() => localStorage.setItem("sgmcmc-lab-dark", String(dark)))
    dress()
  }
  element("copy").onclick = async () => {
    const link = writeFragment()
    const done = await allowed(() => navigator.clipboard?.writeText(link).then(() => true, () => false), Promise.resolve(false))
    element("copied").textContent = done ? "Copied." : link
  }
  element("draws").onclick = () => tell({ type: "draws" })
  document.addEventListener("visibilitychange", showPlay)
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /** @type {HTMLElement} */ (event.target).closest?.("input,select,button,textarea,summary,a")) return
    if (event.key === " ") {
      event.preventDefault()
      pause(!playing)
    } else if (event.key === "s") element("step").click()
    else if (event.key === "r") element("reset").click()
  })
}

/** The host, in a worker where that is allowed. @returns {(message: any) => void} */
const connect = () => {
  const local = () => {
    const host = new Host(hear)
    return (/** @type {any} */ message) => host.receive(structuredClone(message))
  }
  return allowed(() => {
    const worker = new Worker(URL.createObjectURL(new Blob([element("worker").textContent], { type: "text/javascript" })))
    worker.onmessage = ({ data }) => hear(data)
    return (/** @type {any} */ message) => worker.postMessage(message)
  }, undefined) ?? local()
}

/** Show a step, as the link has it or from its beginning. @param {number} to @param {boolean} [linked] */
const show = async (to, linked = false) => {
  number = to
  page = { ...file.steps[to], target: file.targets[file.steps[to].target] }
  chosen = first()
  const refused = linked ? readFragment() : []
  document.querySelectorAll("[data-step]").forEach((part) => {
    /** @type {HTMLElement} */ (part).hidden = Number(/** @type {HTMLElement} */ (part).dataset.step) !== to + 1
  })
  for (const [id, there] of [["back", to > 0], ["next", to < file.steps.length - 1]]) {
    const button = element(String(id))
    if (button) button.disabled = !there
  }
  if (element("place")) element("place").textContent = `${to + 1} of ${file.steps.length}`
  element("lab").hidden = !page.lanes.length
  placeViews()
  placeControls()
  if (page.lanes.length) {
    open()
    await showViews()
  } else {
    tell({ type: "open", lanes: [], truth: { cdf: [], ks_columns: [] } })
    say("")
    writeFragment()
  }
  showPlay()
  if (refused.length) say(`The link asks for what this file has not: ${[...new Set(refused)].slice(0, 5).join(", ")}. Everything else is as it says.`)
}

const begin = async () => {
  let module
  try {
    file = await unzipped("page").json()
    module = await WebAssembly.compile(await unzipped("module").arrayBuffer())
  } catch (error) {
    say(`This browser, or the page that holds this one, refuses WebAssembly, and nothing moves: ${error instanceof Error ? error.message : error}`)
    return
  }
  const kept = allowed(() => localStorage.getItem("sgmcmc-lab-dark"))
  if (kept) dark = kept === "true"
  build()
  tell = connect()
  tell({ type: "load", module, signatures: file.signatures, constants: file.constants })
  element("back")?.addEventListener("click", () => show(number - 1))
  element("next")?.addEventListener("click", () => show(number + 1))
  await show(stepOf(), true)
}

begin()
