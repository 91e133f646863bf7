// A reader's progress in the lessons, stored only in this browser and shown in the list of lessons. No server sees it.
const KEY = "sgmcmc-lab-lessons"
const ANSWERS = ["none", "skipped", "wrong", "right"]
const NAME = /^[a-z0-9][a-z0-9_-]{0,59}\/[0-9]{1,2}$/
const MOST = 2_000

// A browser's storage may contain anything: entries in a different form are ignored.
/** @param {[string, any]} stored */
const sound = ([name, entry]) =>
  NAME.test(name) && Array.isArray(entry) && entry.length === 2 && ANSWERS.includes(entry[0]) && Number.isInteger(entry[1]) && entry[1] >= 0 && entry[1] <= 20

/** The progress by lesson and step. @returns {Map<string, [string, number]>} */
export const read = () => {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "null")
    return new Map(Object.entries(found ?? {}).filter(sound).slice(-MOST))
  } catch {
    return new Map()
  }
}

/** @param {Map<string, [string, number]>} known */
const write = (known) => {
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(known)))
  } catch {
    // A browser may refuse storage: the list then shows no progress.
  }
}

/** Store new progress. @param {string} text as JSON: a lesson, with the answer and the check marks of some of its steps */
export const note = (text) => {
  if (!text) return
  const { lesson, steps } = JSON.parse(text)
  const known = read()
  for (const [number, [answer, met]] of Object.entries(/** @type {Record<string, [string, number]>} */ (steps))) {
    const name = `${lesson}/${number}`
    const [before, most] = known.get(name) ?? ["none", 0]
    known.set(name, [answer === "none" ? before : answer, Math.max(met, most)])
  }
  write(known)
}

/** Whether a lesson is complete, and a line about its progress.
 * @param {Map<string, [string, number]>} known @param {{key: string, steps: Array<{question: boolean, claims: number}>}} lesson */
export const progress = (known, { key, steps }) => {
  const seen = steps.flatMap((step, i) => {
    const found = known.get(`${key}/${i + 1}`)
    return found ? [{ ...step, found }] : []
  })
  const done = seen.filter((step) => !step.question || step.found[0] !== "none").length
  const asked = steps.filter((step) => step.question).length
  const right = seen.filter((step) => step.question && step.found[0] === "right").length
  const claims = steps.reduce((sum, step) => sum + step.claims, 0)
  const met = seen.reduce((sum, step) => sum + Math.min(step.found[1], step.claims), 0)
  if (seen.length === 0) return { done: false, said: "" }
  const parts = [`${done} of ${steps.length} steps done`]
  if (asked) parts.push(`${right} of ${asked} questions right`)
  if (claims) parts.push(`${met} of ${claims} check marks seen`)
  return { done: done === steps.length, said: parts.join(" · ") }
}

/** @param {string} tag @param {string} className @param {string} text */
const element = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text })

/** The items of the list, one for each lesson. @param {any} model */
const items = (model) => {
  const known = read()
  return model.lessons.map((/** @type {any} */ lesson, /** @type {number} */ i) => {
    const { done, said } = progress(known, lesson)
    const button = element("button", "lesson", "")
    const texts = element("span", "texts", "")
    texts.append(element("span", "title", lesson.title), element("span", "about", lesson.about))
    if (said) texts.append(element("span", "progress", said))
    const sign = element("span", done ? "number done" : "number", done ? "✓" : `${i + 1}`)
    if (done) sign.setAttribute("aria-label", `${i + 1}, done`)
    button.append(sign, texts)
    button.addEventListener("click", () => model.send_msg(i))
    const item = document.createElement("li")
    item.append(button)
    return item
  })
}

/** @param {{model: any}} given */
export function render({ model }) {
  const list = document.createElement("ol")
  list.className = "contents"
  const fill = () => {
    list.hidden = model.lessons.length === 0
    list.replaceChildren(...items(model))
  }
  model.on("text", () => note(model.text))
  model.on("lessons", fill)
  model.on("msg:custom", fill)
  fill()
  return list
}
