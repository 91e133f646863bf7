// A room on a page: its code, the question with its bars, the race with its table, and the buttons for them. What there
// is to show comes as a message; what was clicked goes back as one. This browser keeps what makes its page one of the
// room's: a student's mark, so that she counts once, or the secret of who opened it.
const KEY = "sgmcmc-lab-rooms"
const MOST = 20
const MARK = /^[A-Za-z0-9_-]{0,64}$/

/**
 * @typedef {{number: number, html: string, right: boolean, reply: string, now: number | null, before: number | null}} Option
 * @typedef {{html: string, open: boolean, mine: number | null, options: Option[]}} Ask
 * @typedef {{says: string, rows: [string, string, string, boolean, string][]}} Race
 * @typedef {[action: string, words: string, main: boolean]} Button
 * @typedef {{buttons: Button[], students: number | null, said: string, ask: Ask | null, race: Race | null, maker: boolean}} Shown
 * @typedef {{type?: undefined} & Shown | {type: "keep", student: string, secret: string}} Message
 * @typedef {object} Model  Panel's side of the page.
 * @property {string} code
 * @property {(message: unknown[]) => void} send_msg
 * @property {(event: string, call: any) => void} on
 * @property {(event: string, call: any) => void} off
 */

/** @param {[string, unknown]} entry */
const sound = ([code, kept]) => /^[a-z0-9]{8}$/.test(code) && Array.isArray(kept) && kept.length === 2 && kept.every((one) => typeof one === "string" && MARK.test(one))
/** @returns {Record<string, [student: string, secret: string]>} */
const read = () => {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "null") ?? {}).filter(sound).slice(-MOST))
  } catch {
    return {}
  }
}
/** @param {string} code @param {string} student @param {string} secret */
const keep = (code, student, secret) => {
  try {
    const { [code]: _, ...others } = read()
    localStorage.setItem(KEY, JSON.stringify({ ...others, [code]: [student, secret] }))
  } catch {
    // A browser that keeps nothing: after a reload the page comes in as somebody new.
  }
}

// Of this tab alone: whether it has let go of the teacher's page, and does so again after a reload.
const FREE = "sgmcmc-lab-free"
/** @param {string} code */
const isFree = (code) => {
  try {
    return sessionStorage.getItem(FREE) === code
  } catch {
    return false
  }
}
/** @param {string} code @param {boolean} free */
const setFree = (code, free) => {
  if (free === isFree(code)) return
  try {
    free ? sessionStorage.setItem(FREE, code) : sessionStorage.removeItem(FREE)
  } catch {
    // As above: after a reload the page follows.
  }
}

/** @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {string} className @param {string} [text] */
const element = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text ?? "" })
/** @param {string} tag @param {string} className @param {string} text */
const html = (tag, className, text) => Object.assign(document.createElement(tag), { className, innerHTML: text })
/** @param {number} n */
const people = (n) => (n === 1 ? "1 student" : `${n} students`)

/** @param {{model: Model}} page */
export function render({ model }) {
  const box = element("section", "room")
  box.tabIndex = -1
  box.setAttribute("aria-label", `Room ${model.code}`)
  /** @param {string} action @param {string} words @param {boolean} main @param {number[]} more */
  const press = (action, words, main, ...more) => {
    const button = element("button", main ? "main" : "", words)
    button.dataset.action = [action, ...more].join(" ")
    button.addEventListener("click", () => model.send_msg([action, ...more]))
    return button
  }

  /** @param {number} count @param {number} total @param {string} kind @param {string} said */
  const bar = (count, total, kind, said) => {
    const line = element("span", "bar")
    const full = element("span", `full ${kind}`)
    full.style.width = `${total ? (100 * count) / total : 0}%`
    line.append(full, element("span", "count", `${count}${said}`))
    return line
  }
  /** @param {Option[]} options @param {"now" | "before"} name */
  const sum = (options, name) => options.reduce((all, one) => all + (one[name] ?? 0), 0)

  /** @param {Ask} ask @param {boolean} maker */
  const question = (ask, maker) => {
    const part = element("div", "asked")
    part.append(html("p", "ask", ask.html))
    const counted = ask.options[0]?.now !== null
    const both = counted && ask.options[0]?.before !== null
    const totals = { now: sum(ask.options, "now"), before: sum(ask.options, "before") }
    const list = element("ul", "options")
    for (const one of ask.options) {
      const item = element("li", one.right ? "right" : "")
      if (ask.open && !maker) {
        const button = press("answer", "", false, one.number)
        button.append(html("span", "", one.html))
        button.disabled = ask.mine !== null
        button.setAttribute("aria-pressed", String(ask.mine === one.number))
        item.append(button)
      } else {
        item.append(html("span", "text", `${one.right ? "✓ " : ""}${one.html}${ask.mine === one.number ? " <i>(yours)</i>" : ""}`))
        if (one.reply) item.append(html("p", "reply", one.reply))
      }
      if (counted) {
        if (both) item.append(bar(one.before ?? 0, totals.before, "before", " first"))
        item.append(bar(one.now ?? 0, totals.now, "now", both ? " now" : ""))
      }
      list.append(item)
    }
    part.append(list)
    return part
  }

  /** @param {Race} found @param {boolean} maker */
  const race = (found, maker) => {
    const part = element("div", "race")
    part.append(html("p", "ask", found.says))
    if (found.rows.length > 0) {
      const table = element("table", "")
      const head = element("tr", "")
      for (const words of ["", "sampler", "KS distance", "gradients for one draw", ""]) head.append(element(words ? "th" : "td", "", words))
      table.append(head)
      found.rows.forEach(([title, ks, tau, mine, link], i) => {
        const row = element("tr", mine ? "mine" : "")
        row.append(element("td", "", `${i + 1}`), element("td", "", mine ? `${title} (yours)` : title), element("td", "", ks), element("td", "", tau))
        const cell = element("td", "")
        /** @param {HTMLElement} button @param {string} words */
        const named = (button, words) => {
          button.setAttribute("aria-label", `${words} number ${i + 1}, ${title}`)
          cell.append(button, " ")
        }
        if (link) named(Object.assign(element("a", "", "Open"), { href: link, target: "_blank", rel: "noopener" }), "Open")
        if (maker) named(press("open", "Show the class", false, i), "Show the class")
        else named(press("open", "Open", false, i), "Open")
        row.append(cell)
        table.append(row)
      })
      part.append(table)
    }
    return part
  }

  /** @param {Shown} data */
  const show = (data) => {
    const actions = data.buttons.map(([action]) => action)
    if (actions.includes("follow") || actions.includes("let_go")) setFree(model.code, actions.includes("follow"))
    const { activeElement } = /** @type {Document | ShadowRoot} */ (box.getRootNode())
    const focused = activeElement instanceof HTMLElement && box.contains(activeElement) ? activeElement.dataset.action : null
    const line = element("div", "line")
    line.append(element("b", "", `Room ${model.code}`))
    if (data.students !== null) line.append(element("span", "", people(data.students)))
    for (const [action, words, main] of data.buttons) line.append(press(action, words, main))
    const said = element("p", "said", data.said)
    said.setAttribute("role", "status")
    box.replaceChildren(line, ...(data.ask ? [question(data.ask, data.maker)] : []), ...(data.race ? [race(data.race, data.maker)] : []), said)
    // Where the button is gone the focus goes to the bar: on a neighbour the space bar would do something else.
    if (focused) ([...box.querySelectorAll("button")].find((one) => one.dataset.action === focused) ?? box).focus()
  }

  /** A message of a socket, or of Panel's component. @param {any} message */
  const receive = (message) => {
    const data = message.data ?? message
    const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    /** @type {Message} */
    const found = JSON.parse(new TextDecoder().decode(bytes))
    if (found.type === "keep") keep(model.code, found.student, found.secret)
    else show(found)
  }
  model.on("msg:custom", receive)
  model.on("remove", () => model.off("msg:custom", receive))
  model.send_msg(["hello", ...(read()[model.code] ?? ["", ""]), isFree(model.code) ? "free" : ""])
  return box
}
