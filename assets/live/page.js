// The live page: controls, figures, and messages between them and the host.

import { Host } from "./host.js"
import { unzipped } from "./engine.js"
import { download, makeSheet } from "../sheet.js"
import { make } from "./elements.js"
import { decoded, empty, find, put } from "./feeds.js"
import { fit } from "./formulas.js"
import { LessonPage } from "./lesson.js"
import { alike, choiceIn, described, read, scaleOf, written } from "./parameters.js"
import { Slow } from "./slow.js"
import { startAt, thrown } from "./starts.js"

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id)

// A frame without permission for storage or history throws at every access.
/** @template T @param {() => T} ask @param {T} [otherwise] */
const allowed = (ask, otherwise) => {
  try {
    return ask()
  } catch {
    return otherwise
  }
}

/** BokehJS comes after this script: its text takes long to parse, and the host starts meanwhile. @type {Promise<void>} */
const bokeh = new Promise((/** @type {(value?: undefined) => void} */ done) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => done())
  else done()
}).then(async () => {
  for (const { textContent } of document.querySelectorAll("script.bokeh")) {
    const text = await unzipped(/** @type {string} */ (textContent)).text()
    document.head.append(Object.assign(document.createElement("script"), { textContent: text }))
  }
})

/** The file with its arrays in place of their offsets. @param {any} node @param {ArrayBuffer} arrays @returns {any} */
const restored = (node, arrays) => {
  if (node === null || typeof node !== "object") return node
  if (Array.isArray(node.pooled)) return new Uint8Array(arrays.slice(node.pooled[0], node.pooled[0] + node.pooled[1]))
  // In place: a copy of all figures takes six times as long.
  for (const name in node) if (typeof node[name] === "object") node[name] = restored(node[name], arrays)
  return node
}

/** What a file holds: its steps with their views and targets. @param {string} page @param {string} arrays @returns {Promise<any>} */
const opened = async (page, arrays) => {
  const held = restored(await unzipped(page).json(), await unzipped(arrays).arrayBuffer())
  for (const step of held.steps) {
    step.target = held.targets[step.target]
    for (const { views } of Object.values(step.figures)) for (const key in views) views[key] = held.views[views[key]]
  }
  return held
}

/** The whole file except its compiled functions. @type {any} */
let file
/** The present step: an experiment with its figures; a step without an experiment has no lanes. @type {any} */
let page
let number = 0

/** A phone has room for one picture and its controls: the first that moves. @returns {string[]} */
const firstViews = () => {
  if (!matchMedia("(max-width: 560px)").matches) return [...page.shown]
  const { views } = page.figures[page.lanes.length]
  return [...page.shown.filter((/** @type {string} */ key) => !views[key].recorded), ...page.shown].slice(0, 1)
}

const first = () => ({
  seed: page.seed,
  n_chains: page.n_chains,
  start: /** @type {number[] | null} */ (null),
  momentum: /** @type {number[] | null} */ (null),
  views: firstViews(),
  axis: /** @type {string} */ (page.axis),
  speed: page.speed,
  // The times that a teacher has begun the run again, whom this page follows.
  resets: 0,
  // Whether the reader has asked for the controls that a lesson's step hides.
  free: false,
  // For each parameter of the target, the stop that changes nothing.
  target: /** @type {Record<string, any>} */ (Object.fromEntries(Object.entries(page.stops).map(([name, { stops }]) => [name, stops.find((/** @type {any} */ [, stop]) => stop === null)[0]]))),
  lanes: /** @type {LaneChoice[]} */ (page.lanes.map(laneOf)),
})

/** A reader's choice for a lane: the number of its kind, and values. @typedef {{kind: number, sampler: Record<string, any>, gradient: Record<string, any>}} LaneChoice */
/** A lane of this kind with its first values. @param {number} kind @returns {LaneChoice} */
const laneOf = (kind) => ({ kind, sampler: { ...choiceOf(kind, "sampler").first }, gradient: { ...choiceOf(kind, "gradient").first } })
/** The sampler or the gradient of a kind, for the file's own target. @param {number} kind @param {"sampler" | "gradient"} part */
const choiceOf = (kind, part) => page.choices[page.kinds[kind][part]]

/** The reader's choices in this step. @type {ReturnType<typeof first>} */
let chosen
let dark = matchMedia("(prefers-color-scheme: dark)").matches
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches
/** Whether the browser refuses WebAssembly. */
let refused = false

/** @type {(message: any) => void} */
let post = () => {}

/** Messages that lead to a frame. */
const DRAWN = ["open", "look", "pace", "step", "change"]
/** Of these, messages after which the figures begin again. */
const BEGINNINGS = ["open", "look"]
/** The number of these messages sent to the host, the last beginning of the figures and that of the run (infinite before a
 * new one), and the last ones that the latest frame and the latest captions follow. */
const messages = { sent: 0, begun: 0, opened: 0, drawn: 0, written: 0 }
/** Changes of the page that are not complete. */
let changing = 0
/** Record in the document whether figures and captions match its controls. */
const mark = () => {
  const { sent, drawn, written } = messages
  document.documentElement.dataset.current = String(!changing && drawn === sent && written === sent)
}

/** @param {any} message */
const tell = (message) => {
  if (DRAWN.includes(message.type)) messages.sent += 1
  if (BEGINNINGS.includes(message.type)) messages.begun = messages.sent
  if (message.type === "open") messages.opened = messages.sent
  mark()
  post({ ...message, sequence: messages.sent })
}

/** A change that takes more than one task. @template T @param {() => Promise<T>} work */
const change = async (work) => {
  changing += 1
  mark()
  try {
    return await work()
  } finally {
    changing -= 1
    mark()
  }
}

/** The page's lesson, if it has one. @type {LessonPage} */
let lesson

// The state in the link.

/** The lab's address when it runs on this computer. */
const LAB = "http://localhost:5006/app"
const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]"]

/** The experiment and the page as a link has them, here and in the lab. */
const linked = () => {
  const { temperature: heat = page.target.temperature, ...target } = chosen.target
  const words = new URLSearchParams({ v: String(file.version), target: written(page.target, target) })
  chosen.lanes.forEach((lane, i) => {
    const { sampler, gradient, schedule } = kindNow(i)
    words.append("lane", `${written(sampler, lane.sampler)}~${written(gradient, lane.gradient)}${schedule && `~${schedule}`}`)
  })
  for (const key of ["seed", "n_chains"]) words.set(key, String(/** @type {any} */ (chosen)[key]))
  if (heat !== 1) words.set("temperature", String(heat))
  for (const [name, [value, usual]] of Object.entries(page.lengths)) if (value !== usual) words.set(name, String(value))
  for (const key of PLACES) {
    const place = chosen[key] ?? (chosen.start ? null : page.places[key])
    if (place?.length) words.set(key, place.join(","))
  }
  words.set("views", chosen.views.join(","))
  words.set("axis", chosen.axis)
  words.set("coordinate", String(page.coordinate + 1))
  words.set("speed", String(chosen.speed))
  return words
}

/** @type {["start", "momentum"]} */
const PLACES = ["start", "momentum"]
/** The most characters of a link, as in samplers/link.py. */
const MOST_LETTERS = 8000
const LONG = `This link has more than ${MOST_LETTERS.toLocaleString("en-US")} characters. None of its settings apply.`
/** The settings of a link that a live page takes, and those of the lab that belong to a person or to its own page. */
const KNOWN = ["v", "target", "temperature", "lane", "seed", "n_chains", "n_steps", "burn_in", "thin", "start", "momentum", "views", "axis", "coordinate", "speed", "lesson", "step", "try", "resets", "play"]
const OF_LAB = ["theme", "answer", "present", "teacher", "room", "hide", "slow", "show"]

/** The query of a link, without codes for characters that need none. @param {URLSearchParams} words */
const readable = (words) => String(words).replace(/%(28|29|2C|3A|3B|7E)/g, decodeURIComponent)

const writeFragment = () => {
  const words = page.lanes.length ? linked() : new URLSearchParams()
  element("open").href = `${file.lab || LAB}?${readable(words)}`
  if (!file.apart && file.steps.length > 1) words.set("step", String(number + 1))
  if (chosen.free) words.set("try", "1")
  lesson.writeTo(words)
  allowed(() => history.replaceState(null, "", `#${readable(words)}`))
  return `${location.href.split("#")[0]}#${readable(words)}`
}

/** The stop that the reader has chosen for the target; null for the file's own target. */
const stopNow = () => {
  for (const [name, value] of Object.entries(chosen.target)) {
    const stop = page.stops[name].stops.find((/** @type {any} */ [one]) => one === value)?.[1]
    if (stop) return stop
  }
  return null
}

/** A lane's kind with its sampler, its gradient and its settings, for the chosen target. @param {number} i */
const kindNow = (i) => {
  const { kind: number } = chosen.lanes[i]
  const stop = stopNow()
  const { sampler, gradient, run, ...kind } = { ...page.kinds[number], ...stop?.kinds[number] }
  const at = (/** @type {"choices" | "runs"} */ name, /** @type {number} */ place) => stop?.[name][place] ?? page[name][place]
  return { ...kind, sampler: at("choices", sampler), gradient: at("choices", gradient), run: at("runs", run) }
}

/** The number of the kind with this sampler and this gradient, by their keys, or with any gradient; undefined if there is none.
 * @param {string} sampler @param {string} [gradient] @param {number} [own] the number of the one that is preferred */
const kindOf = (sampler, gradient, own = -1) => {
  const fitting = page.kinds.map((/** @type {any} */ _, /** @type {number} */ kind) => kind)
    .filter((/** @type {number} */ kind) => choiceOf(kind, "sampler").key === sampler && (!gradient || choiceOf(kind, "gradient").key === gradient))
  return fitting.includes(own) ? own : fitting[0]
}

/** The fewest and the most chains that all lanes can have. */
const chainLimits = () => {
  const each = chosen.lanes.map(({ kind }) => page.kinds[kind].chains)
  return [Math.max(...each.map(([least]) => least)), Math.min(page.most_chains, ...each.map(([, most]) => most))]
}

/** The figures for the present number of lanes. */
const figuresNow = () => page.figures[chosen.lanes.length]

/** The keys of the views that apply to these lanes; those of the step come first, in its order. @returns {string[]} */
const views = () => [...new Set([...page.shown, ...Object.keys(figuresNow().views)])].filter((key) => figuresNow().views[key] && (figuresNow().views[key].recorded ? isFiles() : chosen.lanes.some(({ kind }) => page.kinds[kind].views.includes(key))))

/** Whether the lanes are the file's own, for which it has recorded pictures. */
const isFiles = () => String(chosen.lanes.map(({ kind }) => kind)) === String(page.lanes)

/** The lanes' names: those of the file for its own lanes, else the samplers' titles, with the gradient or a number where two are equal. */
const names = () => {
  if (isFiles()) return page.names
  const titles = chosen.lanes.map(({ kind }) => page.names[page.lanes.indexOf(kind)] ?? choiceOf(kind, "sampler").title)
  const gradients = chosen.lanes.map(({ kind }) => choiceOf(kind, "gradient").title.replace("Minibatch, ", ""))
  const apart = titles.map((title, i) => (titles.some((other, j) => other === title && gradients[j] !== gradients[i]) ? `${title} · ${gradients[i]}` : title))
  return apart.map((title, i) => (apart.indexOf(title) === apart.lastIndexOf(title) ? title : `${title} (${i + 1})`))
}

/** Whether a value is valid for this parameter. @param {any} choice @param {string} name @param {any} value */
const fits = (choice, name, value) => {
  const variation = choice.variations[name]
  const parameter = choice.parameters.find((/** @type {any} */ one) => one.name === name)
  if (!variation || !parameter) return false
  if (variation.stops) return variation.stops.some((/** @type {any} */ [stop]) => stop === value)
  if (parameter.kind === "flag") return typeof value === "boolean"
  const [low, high] = parameter.bounds
  return typeof value === "number" && value >= low && value <= high && (parameter.kind !== "count" || Number.isInteger(value))
}

/** Whether a link's values, as text, have what no control of the choice moves. @param {any} choice @param {Record<string, string>} given */
const isOf = ({ first, texts }, given) => Object.entries(given).every(([name, text]) => Object.hasOwn(first, name) || !Object.hasOwn(texts, name) || alike(text, texts[name]))

/** The parameters of a choice that have stops and are not at their first value: the engine has one such at a time.
 * @param {any} choice @param {Record<string, any>} values */
const atStops = ({ first, variations }, values) => Object.keys(variations).filter((name) => variations[name].stops && values[name] !== first[name])

/** Take a link's values, as text, of a sampler or a gradient. @param {any} choice @param {any} values @param {Record<string, string>} given @param {string[]} refused */
const takeValues = (choice, values, given, refused) => {
  for (const [name, text] of Object.entries(given)) {
    const value = Object.hasOwn(choice.first, name) ? read(text, choice.first[name]) : undefined
    const others = value === undefined || value === choice.first[name] || !choice.variations[name]?.stops ? [] : atStops(choice, values)
    if (value !== undefined && !others.length && (value === choice.first[name] || fits(choice, name, value))) values[name] = value
    else if (!Object.hasOwn(choice.texts, name) || !alike(text, choice.texts[name])) refused.push(name)
  }
}

/** The step that the link names, from 0. */
const stepOf = () => {
  const words = new URLSearchParams(location.hash.slice(1))
  // In the free lab the link's target names the step.
  if (file.apart) return Math.max(0, file.apart.findIndex((/** @type {any} */ { key }) => key === choiceIn(words.get("target") ?? "").key))
  const asked = Number(words.get("step") ?? 1)
  return Number.isInteger(asked) && asked >= 1 && asked <= file.steps.length ? asked - 1 : 0
}

/** Take the link's settings for the present step, as far as this file has them. @returns {string[]} the names of refused settings */
const readFragment = () => {
  const long = location.hash.length > MOST_LETTERS
  const words = new URLSearchParams(long ? "" : location.hash.slice(1))
  /** @type {string[]} */
  const refused = []
  if (long) return [LONG]
  const count = (/** @type {string} */ key, /** @type {number} */ low, /** @type {number} */ high) => {
    if (!words.has(key)) return undefined
    const value = Number(words.get(key))
    if (Number.isInteger(value) && value >= low && value <= high) return value
    refused.push(key)
    return undefined
  }
  chosen.seed = count("seed", 0, page.most_seed) ?? chosen.seed
  chosen.speed = count("speed", 1, page.most_speed) ?? chosen.speed
  chosen.resets = count("resets", 0, 999_999) ?? chosen.resets
  chosen.free = words.get("try") === "1"
  if (words.has("axis")) {
    if (Object.hasOwn(page.axes, words.get("axis") ?? "")) chosen.axis = words.get("axis") ?? "steps"
    else refused.push("axis")
  }
  for (const key of PLACES) {
    if (!words.has(key)) continue
    const place = (words.get(key) ?? "").split(",").map(Number)
    if (place.length === page.dim && place.every((x) => Number.isFinite(x) && Math.abs(x) <= 1e6)) chosen[key] = place
    else refused.push(key)
  }
  // Settings that have one value in this file.
  const fixed = { v: file.version, coordinate: page.coordinate + 1, lesson: file.lesson?.key ?? "" }
  for (const [key, value] of Object.entries(fixed)) if (words.has(key) && words.get(key) !== String(value)) refused.push(key)
  // A link with a target leaves out what is as usual.
  const isWhole = words.has("target")
  for (const [key, [value, usual]] of Object.entries(page.lengths)) if ((words.get(key) ?? String(isWhole ? usual : value)) !== String(value)) refused.push(key)
  for (const key of words.keys()) if (![...KNOWN, ...OF_LAB, ...lesson.keys].includes(key)) refused.push(key)
  const target = choiceIn(words.get("target") ?? page.target.key)
  if (target.key !== page.target.key) refused.push("target")
  else {
    const heat = words.get("temperature") ?? (isWhole ? "1" : null)
    for (const [name, text] of Object.entries(heat === null ? target.values : { ...target.values, temperature: heat })) {
      const stops = Object.hasOwn(page.stops, name) ? page.stops[name].stops : []
      const value = stops.find((/** @type {any} */ [one]) => alike(text, String(one)))?.[0]
      const own = Object.hasOwn(page.target.texts, name) ? page.target.texts[name] : undefined
      // One parameter moves at a time.
      if (value !== undefined && (value === chosen.target[name] || !stopNow())) chosen.target[name] = value
      else if (!alike(text, name === "temperature" ? String(page.target.temperature) : own)) refused.push(name)
    }
  }
  const lanes = words.getAll("lane")
  if (Object.hasOwn(page.figures, lanes.length)) chosen.lanes = lanes.map((_, i) => chosen.lanes[i] ?? laneOf(page.lanes[0]))
  else if (lanes.length) refused.push("lanes")
  chosen.lanes.forEach((_, i) => {
    if (i >= lanes.length) return
    const [sampler, gradient = { key: "", values: {} }] = lanes[i].split("~").map(choiceIn)
    const schedule = lanes[i].split("~")[2] ?? ""
    // Two lanes of the file may have the same sampler: its values that no control moves, and its schedule, tell them apart.
    const isOwn = (/** @type {number} */ kind) => page.kinds[kind].schedule === schedule && isOf(choiceOf(kind, "sampler"), sampler.values)
    const kind = kindOf(sampler.key, gradient.key, [page.lanes[i], ...page.lanes].find(isOwn))
    if (kind === undefined) {
      refused.push(kindOf(sampler.key) === undefined ? "sampler" : "gradient")
      return
    }
    chosen.lanes[i] = laneOf(kind)
    takeValues(choiceOf(kind, "sampler"), chosen.lanes[i].sampler, sampler.values, refused)
    takeValues(choiceOf(kind, "gradient"), chosen.lanes[i].gradient, gradient.values, refused)
    if (schedule !== page.kinds[kind].schedule) refused.push("schedule")
  })
  const [least, most] = chainLimits()
  chosen.n_chains = Math.min(Math.max(count("n_chains", least, most) ?? chosen.n_chains, least), most)
  if (words.has("views")) {
    const asked = (words.get("views") ?? "").split(",")
    const known = views().filter((key) => asked.includes(key))
    if (known.length) chosen.views = known
    if (known.length < asked.length) refused.push("views")
  }
  chosen.views = chosen.views.filter((key) => views().includes(key))
  if (words.has("play")) playing = words.get("play") === "1"
  if (!lesson.readFrom(words)) refused.push("answers")
  return refused
}

// The run.

const SIGNS = "●■▲◆"

const targetNow = () => stopNow()?.target ?? page.target.base

/** @param {number} i */
const laneNow = (i) => ({
  ...kindNow(i).run,
  seed: chosen.seed,
  n_chains: chosen.n_chains,
  target: targetNow(),
  sampler: described(kindNow(i).sampler, chosen.lanes[i].sampler),
  gradient: described(kindNow(i).gradient, chosen.lanes[i].gradient),
  ...(chosen.start ? { theta: chosen.start, momentum: null } : {}),
  ...(chosen.momentum ? { velocity: chosen.momentum } : {}),
})

/** Tell the host whether the settings are those of the step's claims. */
const compare = () => {
  const isFirst = (/** @type {any} */ values, /** @type {any} */ { first: start }) => Object.keys(start).every((name) => values[name] === start[name])
  const isClaimed = (/** @type {LaneChoice} */ { kind, sampler, gradient }, /** @type {number} */ i) =>
    kind === page.lanes[i] && isFirst(sampler, choiceOf(kind, "sampler")) && isFirst(gradient, choiceOf(kind, "gradient"))
  lesson.follow(chosen.lanes.map(({ sampler, gradient }) => ({ ...sampler, ...gradient })), chosen.target)
  tell({ type: "compare", same: { lanes: chosen.lanes.length === page.lanes.length && chosen.lanes.every(isClaimed), target: !stopNow() } })
}

/** Of lanes with a recorded change that was made, by their numbers, the values before it. @type {Map<number, LaneChoice>} */
const unchanged = new Map()

/** The controls show a recorded change that was made. @param {{lane: number, chosen: any}} message */
const follow = ({ lane: i, chosen: to }) => {
  const lane = chosen.lanes[i]
  const { sampler, gradient } = kindNow(i)
  if (to.sampler.key !== sampler.key || to.gradient.key !== gradient.key) return
  if (!unchanged.has(i)) unchanged.set(i, structuredClone(lane))
  Object.assign(lane.sampler, to.sampler.params)
  Object.assign(lane.gradient, to.gradient.params)
  const focused = document.activeElement?.id
  placeLanes()
  if (focused) element(focused)?.focus()
}

/** A run that begins again begins before its recorded changes. */
const forgetChanges = () => {
  if (!unchanged.size) return
  for (const [i, lane] of unchanged) if (chosen.lanes[i]) chosen.lanes[i] = lane
  unchanged.clear()
  placeLanes()
}

const open = () => {
  leaveSlow()
  if (!refused) say("")
  forgetChanges()
  compare()
  tell({ type: "open", lanes: chosen.lanes.map((_, i) => laneNow(i)) })
  writeFragment()
}

/** Begin the run again in the present figures. */
const restart = () => {
  open()
  look()
  showPlay()
}

const look = () => {
  leaveSlow()
  const data = figureStop()?.data ?? {}
  const moving = Object.entries(figuresNow().views).filter(([, view]) => !view.recorded)
  const scenes = Object.fromEntries(moving.map(([key, view]) => [key, { first: data[key] ?? view.data, feeds: view.feeds }]))
  for (const key of embedded) for (const feed of Object.values(figuresNow().views[key].feeds)) if (model(feed.id)) empty(model(feed.id), feed)
  tell({ type: "look", views: scenes, shown: chosen.views.filter((key) => embedded.has(key) && key in scenes), coordinate: page.coordinate, axis: chosen.axis, names: names() })
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

// Steps in their parts.

const slow = new Slow(model)
/** Whether the run moved before. */
let moved = false

/** The recorded steps of the first lane's kind. The file has them for its own lanes and its own target only. */
const slowSteps = () => (stopNow() || !chosen.lanes.length ? [] : page.slow_steps[chosen.lanes[0].kind] ?? [])

/** The figures that are shown and draw these steps. */
const slowFigures = () => {
  const [step] = slowSteps()
  const keys = chosen.views.filter((key) => step?.views[key] && embedded.has(key) && model(figuresNow().views[key].feeds.parts.id))
  return keys.map((key) => ({ key, feeds: figuresNow().views[key].feeds, words: element(`slow-${key}`) }))
}

/** Leave the recorded steps. */
const leaveSlow = () => {
  if (slow.on) slow.end()
  showSlow()
}

/** Stop the run, and show the recorded steps, if a figure draws them. */
const takeApart = () => {
  const figures = slowFigures()
  if (!figures.length) return
  moved = playing
  playing = false
  showPlay()
  slow.begin(slowSteps(), figures, page.parts, `${names()[0]}${page.n_chains > 1 ? ", chain 1" : ""}`)
  showSlow()
}

/** What the buttons say of recorded steps. */
const showSlow = () => {
  element("slow").hidden = !slow.on && !slowFigures().length
  element("slow").setAttribute("aria-pressed", String(slow.on))
  element("step").textContent = slow.on ? slow.next : "Step"
}

/** Whether figures have been in the dark theme. */
let darkened = false

const dress = () => {
  document.documentElement.dataset.theme = dark ? "dark" : "light"
  lesson.dress()
  const { before, after } = figuresNow().dark
  if (dark) redraw(after)
  // Figures come in the light theme.
  else if (darkened) undo(before, after)
  darkened ||= dark
}

/** The stop that the figures show: their differences from the file's figures. @type {any} */
let drawn = null
const figureStop = () => stopNow()?.figures[chosen.lanes.length] ?? null

/** @param {Record<string, Record<string, any>>} changes */
const redraw = (changes) => {
  for (const [id, properties] of Object.entries(changes)) {
    const found = model(id)
    if (found) found.setv(Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, decoded(value, found[name])])))
  }
}

/** The attributes of each model in the file's figures, by its id. @type {Map<string, Record<string, any>>} */
const attributes = new Map()
/** @param {any} node */
const gather = (node) => {
  if (node === null || typeof node !== "object" || ArrayBuffer.isView(node)) return
  if (node.type === "object" && node.attributes) attributes.set(node.id, node.attributes)
  for (const part of Object.values(node)) gather(part)
}

/** Restore the file's figures; `before` are values that the file omits.
 * @param {Record<string, any>} before @param {Record<string, any>} after */
const undo = (before, after) => {
  if (!attributes.size) gather(figuresNow().views)
  redraw(Object.fromEntries(Object.entries(after).map(([id, changed]) => [id, Object.fromEntries(Object.keys(changed).map((name) => [name, named(before[id]?.[name] ?? attributes.get(id)?.[name])]))])))
}

/** Show the figures of the chosen target. */
const aim = () => {
  if (drawn) undo(drawn.before, drawn.after)
  drawn = figureStop()
  if (drawn) redraw(drawn.after)
}

const labelAxes = () => {
  for (const [id, name] of figuresNow().axis_labels) model(id)?.setv({ [name]: page.axes[chosen.axis] })
}

/** Figures are made when their view is first shown. @type {Set<string>} */
const embedded = new Set()

/** A figure with the lanes' names. @param {any} node @returns {any} */
const named = (node) => {
  if (typeof node === "string") return node.replace(/⟪(\d)⟫/g, (_, i) => names()[i])
  if (Array.isArray(node)) return node.map(named)
  if (node === null || typeof node !== "object" || ArrayBuffer.isView(node)) return node
  return Object.fromEntries(Object.entries(node).map(([name, part]) => [name, named(part)]))
}

const RECORDED = "A picture of a run with the file's own settings: this view needs Python and does not move."
/** The number of times that the figures' places were made. */
let placed = 0
/** The figure that is being made. @type {Promise<any>} */
let embedding = Promise.resolve()
/** End the making of figures for the present places, and wait for the last one, because Bokeh cannot draw it elsewhere. */
const settled = async () => {
  placed += 1
  await embedding
}

const placeViews = () => {
  leaveSlow()
  placed += 1
  embedded.clear()
  listening.clear()
  models.clear()
  drawn = null
  attributes.clear()
  // Models of removed figures have the same ids.
  // @ts-ignore
  for (const document of globalThis.Bokeh?.documents.splice(0) ?? []) document.clear()
  const still = document.querySelector("#views > figure > svg")
  element("views").replaceChildren(...views().map((key) => {
    const { title, hint, recorded } = figuresNow().views[key]
    return make("figure", { className: "view", id: `view-${key}` },
      make("figcaption", {}, make("b", { className: "view-title" }, title), " ", make("span", { className: "hint" }, hint)),
      make("ul", { className: "caption", id: `caption-${key}` }, ...(recorded ?? []).map((/** @type {string} */ line) => make("li", {}, line))),
      ...(recorded ? [make("p", { className: "recorded" }, RECORDED)] : []),
      make("div", { className: "plot", id: `plot-${key}` }),
      make("div", { className: "angles", id: `angles-${key}` }),
      // A reader of the screen speaks what is put into a place that it knows.
      make("div", { className: "slow", id: `slow-${key}`, "aria-live": "polite" }))
  }))
  // The still picture stays until the first figure replaces it.
  if (still) element(`plot-${chosen.views[0]}`)?.append(still)
}

const showViews = () => change(async () => {
  leaveSlow()
  for (const key of views()) {
    element(`view-${key}`).hidden = !chosen.views.includes(key)
    element(`show-${key}`).setAttribute("aria-pressed", String(chosen.views.includes(key)))
  }
  await bokeh
  const mine = placed
  const missing = chosen.views.filter((one) => !embedded.has(one))
  for (const key of missing) {
    embedded.add(key)
    const holder = element(`plot-${key}`)
    holder.replaceChildren()
    // @ts-ignore
    await (embedding = Bokeh.embed.embed_item(named(figuresNow().views[key].figure), holder))
    if (placed !== mine) return
    take()
    // A figure moves before the next one is made.
    if (!refused) await Promise.race([new Promise((done) => { onFrame = () => requestAnimationFrame(() => setTimeout(done, 0)) }), new Promise((done) => setTimeout(done, LONGEST_WAIT))])
    if (placed !== mine) return
  }
  if (!missing.length) take()
})

/** Let the host draw into the present figures. */
const take = () => {
  models.clear()
  for (const view of Object.keys(figuresNow().taps)) listen(view)
  dress()
  aim()
  labelAxes()
  look()
  showPlay()
}

/** A slider that turns a globe: for keyboards, and for fingers, whose drags scroll the page.
 * @param {string} view @param {"turn" | "tilt"} name @param {number} most */
const angle = (view, name, most) => {
  const turned = model(figuresNow().taps[view][name])
  const id = `${name}-${view}`
  const shown = make("output", { htmlFor: id })
  const input = /** @type {HTMLInputElement} */ (make("input", { type: "range", id, min: String(-most), max: String(most), step: "1" }))
  const follow = () => {
    input.value = String(turned.value)
    shown.textContent = `${turned.value}°`
    input.setAttribute("aria-valuetext", `${turned.value} degrees`)
  }
  input.oninput = () => { turned.value = Number(input.value) }
  turned.properties.value.change.connect(follow)
  follow()
  return make("div", { className: "control" }, make("label", { htmlFor: id }, name === "turn" ? "Turn" : "Tilt"), shown, input)
}

/** A click in a figure starts the chains there, and a drag throws them. @param {string} view */
const listen = (view) => {
  if (listening.has(view) || !embedded.has(view) || !model(figuresNow().taps[view].figure)) return
  listening.add(view)
  const tap = () => {
    const found = (figureStop() ?? figuresNow()).taps[view]
    const [turn, tilt] = [found.turn, found.tilt].map((id) => (id ? model(id).value : 0))
    return { ...found, turn, tilt }
  }
  if (figuresNow().taps[view].turn) element(`angles-${view}`).replaceChildren(angle(view, "turn", 180), angle(view, "tilt", 90))
  const begin = (/** @type {number[]} */ from, /** @type {number[]} */ to) => {
    const start = startAt(tap(), from, chosen.start ?? page.start)
    if (!start) return
    chosen.start = start
    chosen.momentum = thrown(tap(), from, to, start)
    restart()
  }
  const figure = model(tap().figure)
  figure.on_event("tap", (/** @type {any} */ { x, y }) => begin([x, y], [x, y]))
  const arrow = tap().arrow && model(tap().arrow)
  // A finger's drag scrolls the page.
  if (!arrow || matchMedia("(pointer: coarse)").matches) return
  /** @type {number[] | null} */
  let from = null
  const end = (/** @type {any} */ { x, y }) => [x, tap().flat && from ? from[1] : y]
  const draw = (/** @type {number[]} */ a, /** @type {number[]} */ b) => { arrow.data = { x0: a.slice(0, 1), y0: a.slice(1), x1: b.slice(0, 1), y1: b.slice(1) } }
  figure.on_event("panstart", (/** @type {any} */ { x, y }) => { from = [x, y] })
  figure.on_event("pan", (/** @type {any} */ event) => { if (from) draw(from, end(event)) })
  figure.on_event("panend", (/** @type {any} */ event) => {
    if (from) begin(from, end(event))
    from = null
    draw([], [])
  })
}

/** The time of a frame in the host's thread, in milliseconds, averaged over about ten frames. */
let hostMs = 0
/** Called with each frame. @type {() => void} */
let onFrame = () => {}
/** Milliseconds; a hidden page has no frames. */
const LONGEST_WAIT = 1000

/** Whether a frame is not yet on the screen; later frames wait, because Bokeh would draw two at once. */
let drawing = false
/** @type {any[]} */
const waiting = []

/** Whether a message is for a run or figures that are gone. @param {{sequence: number}} message */
const isLate = ({ sequence }) => sequence < messages.begun

/** @param {any} message */
const draw = (message) => {
  if (isLate(message)) {
    post({ type: "answer", number: message.number })
    return
  }
  if (drawing) {
    waiting.push(message)
    return
  }
  drawing = true
  const { number, feeds, steps, burnIn, took, seconds, sequence } = message
  requestAnimationFrame(() => setTimeout(() => {
    drawing = false
    post({ type: "answer", number })
    while (waiting.length && !drawing) draw(waiting.shift())
  }, 0))
  for (const [feed, arrays] of feeds) {
    const target = model(feed.id)
    if (target && !slow.take(feed, arrays)) put(target, feed, arrays)
  }
  element("steps").textContent = steps.toLocaleString("en-US")
  element("burn-in").textContent = steps < burnIn ? `of ${burnIn.toLocaleString("en-US")} burn-in steps: no draws are counted yet` : ""
  document.documentElement.dataset.frames = String(number)
  onFrame()
  hostMs += 0.1 * (took - hostMs)
  Object.assign(document.documentElement.dataset, { hostMs: hostMs.toFixed(2), seconds: seconds.toFixed(4) })
  messages.drawn = sequence
  mark()
}

/** @param {any} message */
const write = ({ items, marks, step, sequence }) => {
  lesson.write(marks, step)
  for (const [key, lines, ofLanes] of items) {
    const holder = element(`caption-${key}`)
    lines.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
      const line = holder.children[i] ?? holder.appendChild(make("li"))
      if (line.textContent !== text) line.textContent = text
      if (ofLanes && i < chosen.lanes.length) Object.assign(line.dataset, { lane: String(i), sign: SIGNS[i] })
      else for (const name of ["lane", "sign"]) delete line.dataset[name]
    })
    while (holder.children.length > lines.length) holder.lastChild.remove()
  }
  messages.written = sequence
  mark()
}

/** Events of a run: the host posts each once, so that new figures of the same run must not lose it. */
const OF_RUN = ["diverged", "changed"]

/** @param {any} message */
const hear = (message) => {
  if (message.type === "frame") draw(message)
  else if (OF_RUN.includes(message.type) && message.sequence < messages.opened) return
  else if (message.type === "text") isLate(message) || write(message)
  else if (message.type === "marks") lesson.write(message.marks, message.step)
  else if (message.type === "swept") lesson.swept(message)
  else if (message.type === "diverged") say(message.message)
  else if (message.type === "changed") follow(message)
  else if (message.type === "draws") saveDraws(message.lanes)
  else if (message.type === "refused") {
    refused = true
    say(`This browser, or the page around this one, refuses WebAssembly, so nothing moves: ${message.message}`)
  } else if (message.type === "failed") say(`The engine stopped: ${message.message} Reset starts it again.`)
}

// Files.

const savePicture = () => {
  const { backgroundColor, color } = getComputedStyle(document.body)
  const heat = chosen.target.temperature ?? page.target.temperature
  const look = { caption: `${document.title}${heat === 1 ? "" : `, temperature T = ${heat}`}, seed ${chosen.seed}, step ${element("steps").textContent}`, background: backgroundColor, ink: color }
  makeSheet(look, () => Math.max(devicePixelRatio, 2))?.sheet.toBlob((blob) => { if (blob) download("sgmcmc-lab.png", blob) })
}

/** @param {any[]} lanes */
const saveDraws = (lanes) => {
  // Behind the columns is the weight of a draw: 1 where draws have none.
  const weighted = lanes.some(({ shape: [, length, width], kept, values }) => values.some((/** @type {number} */ x, /** @type {number} */ i) => i % width === width - 1 && Math.floor(i / width) % length < kept && x !== 1))
  const head = ["lane", "chain", "step", ...page.columns, ...(weighted ? ["weight"] : [])]
  const rows = [head.map((word) => `"${word.replaceAll('"', '""')}"`).join(",")]
  lanes.forEach(({ shape: [chains, length, width], kept, stride, values }, i) => {
    for (let c = 0; c < chains; c++)
      for (let t = 0; t < kept; t++)
        rows.push([`"${names()[i].replaceAll('"', '""')}"`, c + 1, t * stride + 1, ...values.subarray((c * length + t) * width, (c * length + t + 1) * width - (weighted ? 0 : 1))].join(","))
  })
  download("draws.csv", new Blob([rows.join("\n")], { type: "text/csv" }))
}

// Controls.

/** Whether a control is shown, by its address: a lesson's step shows its own until the reader asks for all. @param {string} address */
const shows = (address) => !page.controls || chosen.free || page.controls.includes(address)

/** Of the parameters with stops one at a time differs from its first value. @param {any} choice @param {Record<string, any>} values @param {string} prefix @param {string} address @param {() => void} change */
const sliders = (choice, values, prefix, address, change) =>
  choice.parameters
    .filter((/** @type {any} */ { name }) => choice.variations[name] && shows(`${address}.${name}`))
    .map((/** @type {any} */ parameter) => slider(parameter, choice.variations[parameter.name], values, prefix, () => {
      const { name } = parameter
      const others = choice.variations[name].stops ? atStops(choice, values).filter((other) => other !== name) : []
      for (const other of others) values[other] = choice.first[other]
      change()
      if (!others.length) return
      placeLanes()
      element(`${prefix}-${name}`).focus()
    }))

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
  element("speed").setAttribute("aria-valuetext", `${chosen.speed} steps per frame`)
}
const showPlay = () => {
  const moving = playing && !lesson.waiting
  element("play").textContent = moving ? "Pause" : "Play"
  document.documentElement.dataset.playing = String(moving)
  tell({ type: "pace", playing: moving, speed: chosen.speed, hidden: document.hidden })
}
/** A lane has other values. @param {number} i */
const changeLane = (i) => {
  unchanged.delete(i)
  const { sampler, gradient } = laneNow(i)
  compare()
  tell({ type: "change", lane: i, change: { sampler, gradient } })
  writeFragment()
}

/** Place the controls of every lane. */
const placeLanes = () => {
  const fixed = Object.keys(page.figures).length < 2
  const lanes = chosen.lanes.map((lane, i) => {
    const kind = kindNow(i)
    const equations = make("div", { className: "equations", tabIndex: 0, role: "group", "aria-label": "One step" })
    let written = ""
    const write = () => {
      // Flags change the formulas.
      const [, formulas] = kind.equations.find((/** @type {any} */ [flags]) => Object.keys(flags).every((name) => Boolean(lane.sampler[name]) === Boolean(flags[name])))
      if (formulas !== written) equations.innerHTML = written = formulas
      fit(equations)
    }
    const changed = () => {
      write()
      changeLane(i)
    }
    const all = [
      ...(fixed ? [] : gradientMenu(lane, i)),
      ...sliders(kind.sampler, lane.sampler, `sampler-${i}`, `lane${i + 1}.sampler`, changed),
      ...sliders(kind.gradient, lane.gradient, `gradient-${i}`, `lane${i + 1}.gradient`, changed),
    ]
    write()
    // Not at once: a formula that is made smaller makes its box lower, which the browser reports as a loop.
    new ResizeObserver(() => requestAnimationFrame(() => fit(equations))).observe(equations)
    return make("section", { className: `lane lane-${i}` }, make("div", { className: "head" }, make("h2", {}, ...(fixed ? [names()[i]] : choices(lane, i)))), equations, ...all)
  })
  element("lanes").replaceChildren(...lanes)
  element("add").hidden = fixed || !Object.hasOwn(page.figures, chosen.lanes.length + 1)
}

/** A menu of a lane. @param {string} id @param {string} label @param {any[]} listed choices @param {string} now the key of the present one @param {(key: string) => void} chose */
const menu = (id, label, listed, now, chose) => {
  const options = listed.map(({ key, title }) => make("option", { value: key, selected: key === now }, title))
  const select = make("select", { "aria-label": label, id }, ...options)
  select.onchange = () => chose(/** @type {HTMLSelectElement} */ (select).value)
  return select
}

/** Samplers or gradients, each once. @param {number[]} kinds @param {"sampler" | "gradient"} part @returns {any[]} */
const eachOnce = (kinds, part) => [...new Map(kinds.map((kind) => [choiceOf(kind, part).key, choiceOf(kind, part)])).values()]

/** The numbers of all kinds. @returns {number[]} */
const everyKind = () => page.kinds.map((/** @type {any} */ _, /** @type {number} */ kind) => kind)

/** Give a lane another kind. @param {number} i @param {LaneChoice} to @param {string} focus */
const putLane = (i, to, focus) => {
  chosen.lanes[i] = to
  rearrange(focus)
}

/** The controls that replace a lane's sampler, or remove the lane. @param {LaneChoice} lane @param {number} i */
const choices = (lane, i) => {
  const gradient = choiceOf(lane.kind, "gradient").key
  const select = menu(`kind-${i}`, `Sampler ${i + 1}`, eachOnce(everyKind(), "sampler"), choiceOf(lane.kind, "sampler").key,
    (key) => putLane(i, laneOf(kindOf(key, gradient) ?? kindOf(key)), `kind-${i}`))
  if (chosen.lanes.length === 1) return [select]
  const remove = make("button", { type: "button", "aria-label": `Remove ${names()[i]}`, title: "Remove this sampler" }, "×")
  remove.onclick = () => {
    chosen.lanes.splice(i, 1)
    rearrange("add")
  }
  return [select, remove]
}

/** The control that replaces a lane's gradient, where another one fits. @param {LaneChoice} lane @param {number} i */
const gradientMenu = (lane, i) => {
  const { key: sampler, first: before } = choiceOf(lane.kind, "sampler")
  const fitting = eachOnce(everyKind().filter((kind) => choiceOf(kind, "sampler").key === sampler), "gradient")
  if (fitting.length < 2) return []
  const id = `gradient-${i}`
  const select = menu(id, `Gradient of sampler ${i + 1}`, fitting, choiceOf(lane.kind, "gradient").key, (key) => {
    const to = laneOf(kindOf(sampler, key, page.lanes[i]))
    // Values that the reader has set remain.
    for (const [name, value] of Object.entries(lane.sampler)) if (value !== before[name]) to.sampler[name] = value
    putLane(i, to, id)
  })
  return [make("div", { className: "control" }, make("label", { htmlFor: id }, "Gradient"), select)]
}

/** Restart the run with new lanes. @param {string} focus the control that keeps the focus */
const rearrange = (focus) => change(async () => {
  messages.begun = messages.opened = Infinity
  unchanged.clear()
  const fitting = views()
  chosen.views = chosen.views.filter((key) => fitting.includes(key))
  if (!chosen.views.length) chosen.views = fitting.slice(0, 1)
  const [least, most] = chainLimits()
  const before = chosen.n_chains
  chosen.n_chains = Math.min(Math.max(before, least), most)
  await settled()
  placeViews()
  placeControls()
  element(focus)?.focus()
  open()
  if (chosen.n_chains !== before) say(`The number of chains is now ${chosen.n_chains}: the samplers on this page allow ${least} to ${most}.`)
  await showViews()
  showPlay()
})

/** Sliders of the target's parameters; one parameter at a time differs from its first value. */
const placeTarget = () => {
  const start = first().target
  const controls = Object.entries(page.stops).filter(([name]) => shows(name === "temperature" ? name : `target.${name}`)).map(([name, { parameter, stops }]) =>
    slider(parameter, { stops }, chosen.target, "target", () => {
      const others = Object.keys(start).filter((other) => other !== name && chosen.target[other] !== start[other])
      for (const other of others) chosen.target[other] = start[other]
      if (others.length) {
        placeTarget()
        element(`target-${name}`).focus()
      }
      aim()
      look()
      compare()
      chosen.lanes.forEach((_, i) => {
        const { sampler, gradient, target, start } = laneNow(i)
        tell({ type: "change", lane: i, change: { sampler, gradient, target, start } })
      })
      writeFragment()
    }))
  const heat = chosen.target.temperature ?? page.target.temperature
  // The caption of a temperature without a slider.
  if (heat !== 1 && !(page.stops.temperature && shows("temperature"))) controls.push(make("p", { className: "small", id: "heat" }, `The chains sample e^(−U/T) at temperature T = ${heat}.`))
  element("target-controls").replaceChildren(...controls)
}

/** Place the controls that the step shows, or all of them. */
const placeShown = () => {
  placeLanes()
  placeTarget()
  const { controls, elsewhere } = page
  Object.assign(element("free"), { hidden: !controls, textContent: chosen.free ? "Back to the step" : "Try it yourself" })
  element("free").title = chosen.free ? "The step's own experiment from its beginning, and its own controls" : "All controls of this file, on this experiment"
  const more = chosen.free ? [...elsewhere, "other targets, samplers and formulas"] : elsewhere
  Object.assign(element("elsewhere"), { hidden: !more.length, textContent: `The lab has more controls for this step: ${more.join(", ")}.` })
  element("seed").hidden = !shows("seed")
  for (const [id, address] of [["speed", "speed"], ["chains", "n_chains"]]) element(id).closest(".control").hidden = !shows(address)
}

/** Place the controls of the present step. */
const placeControls = () => {
  placeShown()
  element("view-buttons").replaceChildren(...views().map((key) => {
    const button = make("button", { type: "button", id: `show-${key}`, "aria-pressed": "false" }, figuresNow().views[key].title)
    button.onclick = () => {
      const on = chosen.views.includes(key)
      if (on && chosen.views.length === 1) return
      chosen.views = views().filter((one) => (one === key ? !on : chosen.views.includes(one)))
      showViews()
      writeFragment()
    }
    return button
  }))
  element("seed-now").textContent = String(chosen.seed)
  const place = SPEEDS.findIndex((n) => n >= chosen.speed)
  element("speed").value = String(place < 0 ? SPEEDS.length - 1 : place)
  showSpeed()
  const [least, most] = chainLimits()
  element("chains").replaceChildren(...[...new Set([1, 2, 4, 10, 50, 100, page.n_chains, chosen.n_chains])].filter((n) => n >= least && n <= most).sort((a, b) => a - b).map((n) => make("option", { value: String(n), selected: n === chosen.n_chains }, String(n))))
  element("axis").replaceChildren(...Object.entries(page.axes).map(([key, label]) => make("option", { value: key, selected: key === chosen.axis }, label)))
}

/** Connect the controls that every step has. */
const build = () => {
  const play = element("play")
  const waits = () => {
    if (!lesson.waiting) return false
    say("First answer the lesson's question, or skip it.")
    lesson.remind()
    return true
  }
  const pause = (/** @type {boolean} */ on) => {
    if (waits()) return
    leaveSlow()
    playing = on
    showPlay()
  }
  play.onclick = () => pause(!playing)
  element("step").onclick = () => {
    if (waits()) return
    if (slow.on) {
      slow.go()
      showSlow()
      return
    }
    pause(false)
    tell({ type: "step" })
  }
  element("slow").onclick = () => {
    if (slow.on) pause(moved)
    else if (!waits()) takeApart()
  }
  element("reset").onclick = () => {
    chosen.start = chosen.momentum = null
    restart()
  }
  element("seed").onclick = () => {
    chosen.seed += 1
    element("seed-now").textContent = String(chosen.seed)
    restart()
  }
  const speed = element("speed")
  speed.max = String(SPEEDS.length - 1)
  speed.oninput = () => {
    chosen.speed = SPEEDS[Number(speed.value)]
    if (slow.on) pause(moved)
    showSpeed()
    showPlay()
    writeFragment()
  }
  const chains = element("chains")
  chains.onchange = () => {
    chosen.n_chains = Number(chains.value)
    restart()
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
  element("picture").onclick = savePicture
  element("free").onclick = () => {
    // Back at the step, the experiment is the step's own.
    if (chosen.free) {
      show(number)
      return
    }
    chosen.free = true
    placeShown()
    writeFragment()
  }
  element("draws").onclick = () => tell({ type: "draws" })
  element("add").onclick = () => {
    const used = chosen.lanes.map(({ kind }) => choiceOf(kind, "sampler").key)
    const free = page.kinds.findIndex((/** @type {any} */ _, /** @type {number} */ kind) => !used.includes(choiceOf(kind, "sampler").key))
    chosen.lanes.push(laneOf(free < 0 ? chosen.lanes[used.length - 1].kind : free))
    rearrange(`kind-${chosen.lanes.length - 1}`)
  }
  document.addEventListener("visibilitychange", showPlay)
  narrow.addEventListener("change", placeLab)
  addEventListener("hashchange", relink)
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

/** @param {string[]} refused the names of a link's settings */
const sayRefused = (refused) => {
  if (!refused.length) return
  const names = [...new Set(refused)]
  const listed = [...names.slice(0, 5), ...(names.length > 5 ? ["and others"] : [])].join(", ")
  say(refused[0] === LONG ? LONG : `This file does not have these settings of the link: ${listed}. All others apply.`)
}

const narrow = matchMedia("(max-width: 999px)")
/** A narrow screen has the pictures and their controls within the text, before the claims; a wide one has them beside it. */
const placeLab = () => {
  for (const part of [...document.querySelectorAll(".recording"), element("lab")]) {
    const slot = narrow.matches && document.querySelector(`[data-step="${part.dataset.of ?? number + 1}"] .slot`)
    const holder = slot || document.querySelector("main")
    if (part.parentElement !== holder) holder?.append(part)
  }
}

/** The number of times that a step was asked for. */
let opens = 0

/** A step's experiment, from its own file where it has one. @param {number} to */
const stepAt = async (to) => {
  const own = file.apart?.[to]
  if (own && !file.steps[to]) {
    const missing = () => { throw new Error(`The file ${own.script} next to this page cannot be read, so the page cannot show this density. Choose another one.`) }
    await new Promise((done) => document.head.append(Object.assign(document.createElement("script"), { src: own.script, onload: done, onerror: done })))
    // @ts-ignore
    const held = await opened(...(globalThis.experiments?.[own.key] ?? [missing()]))
    file.steps[to] = held.steps[0]
  }
  return file.steps[to]
}

/** Show a step, with the link's settings or from its beginning. @param {number} to @param {boolean} [linked] */
const show = (to, linked = false) => change(async () => {
  const mine = ++opens
  let step
  try {
    step = await stepAt(to)
  } catch (error) {
    if (mine !== opens) return
    element("density").value = page ? file.apart[number].key : ""
    element("lab").hidden = !page
    say(/** @type {Error} */ (error).message)
    return
  }
  if (mine !== opens) return
  messages.begun = messages.opened = Infinity
  number = to
  unchanged.clear()
  page = step
  chosen = first()
  const refused = linked ? readFragment() : []
  lesson.show(to + 1)
  tell({ type: "claim", ...lesson.claims, target: page.target.base })
  document.querySelectorAll("[data-step]").forEach((part) => {
    /** @type {HTMLElement} */ (part).hidden = Number(/** @type {HTMLElement} */ (part).dataset.step) !== to + 1
  })
  for (const [id, there] of [["back", to > 0], ["next", to < file.steps.length - 1]]) {
    const button = element(String(id))
    if (button) button.disabled = !there
  }
  if (element("density")) element("density").value = file.apart[to].key
  if (element("place")) element("place").textContent = `${to + 1} of ${file.steps.length}`
  element("lab").hidden = !page.lanes.length
  placeLab()
  await settled()
  placeViews()
  placeControls()
  if (chosen.lanes.length) {
    open()
    sayRefused(refused)
    await showViews()
  } else {
    tell({ type: "open", lanes: [] })
    dress()
    say("")
    writeFragment()
    sayRefused(refused)
  }
  showPlay()
})

/** Show the settings of another link to this page: in place where the samplers and the target are the same. */
const relink = () => {
  const before = chosen
  if (stepOf() !== number) {
    show(stepOf(), true)
    return
  }
  // A step that is being loaded is not wanted any more.
  opens += 1
  chosen = first()
  const refused = readFragment()
  if (!page.lanes.length) {
    sayRefused(refused)
    return
  }
  const same = (/** @type {string} */ key) => JSON.stringify(/** @type {any} */ (before)[key]) === JSON.stringify(/** @type {any} */ (chosen)[key])
  const kinds = (/** @type {LaneChoice[]} */ lanes) => String(lanes.map(({ kind }) => kind))
  if (!same("target") || kinds(before.lanes) !== kinds(chosen.lanes)) {
    show(number, true)
    return
  }
  unchanged.clear()
  placeControls()
  labelAxes()
  if (["seed", "n_chains", "start", "momentum", "resets"].some((key) => !same(key))) restart()
  else chosen.lanes.forEach((lane, i) => { if (JSON.stringify(lane) !== JSON.stringify(before.lanes[i])) changeLane(i) })
  sayRefused(refused)
  showViews()
  showPlay()
}

const begin = async () => {
  const module = element("module").textContent
  // A lesson may have text only.
  if (module) {
    post = connect()
    tell({ type: "load", module })
  }
  try {
    file = await opened(element("page").textContent, element("arrays").textContent)
  } catch (error) {
    say(`This browser cannot read the contents of this file, so nothing moves: ${error instanceof Error ? error.message : error}`)
    return
  }
  tell({ type: "prepare", signatures: file.signatures, constants: file.constants })
  const kept = allowed(() => localStorage.getItem("sgmcmc-lab-dark"))
  if (kept) dark = kept === "true"
  lesson = new LessonPage(file.lesson, {
    bokeh,
    changed: writeFragment,
    tell: (message) => tell(message),
    target: () => page.target.base,
    dark: () => dark,
    run: () => {
      say("")
      playing = !matchMedia("(prefers-reduced-motion: reduce)").matches
      // Steps in their parts begin at step 0: no frame may come before them.
      if (page.slow) takeApart()
      showPlay()
    },
  })
  for (const link of document.querySelectorAll("a.in-lab")) {
    const part = /** @type {HTMLElement} */ (link.closest("[data-step]"))
    Object.assign(link, { href: `${LAB}?lesson=${file.lesson.key}&step=${part.dataset.step}`, hidden: false })
  }
  // Another reader's link to such an address opens a lab of his own, if he has one.
  if (OWN_NAMES.includes(new URL(file.lab || LAB).hostname)) element("open").textContent = "Open in the lab on this computer"
  build()
  const walk = (/** @type {number} */ to) => {
    show(to)
    element("text").scrollTo(0, 0)
    scrollTo(0, 0)
  }
  element("density")?.addEventListener("change", (/** @type {any} */ { target }) => show(target.selectedIndex))
  element("back")?.addEventListener("click", () => walk(number - 1))
  element("next")?.addEventListener("click", () => walk(number + 1))
  await show(stepOf(), true)
}

begin()
