// The page of a room: its bar with the question and the race, and the teacher's experiment as a live page in a frame.

import { render } from "../room.js"

/** Milliseconds until a lost connection is tried again, at first and at most; a random factor spreads a class. */
const [FIRST, MOST] = [1000, 15_000]
const LOST = "The connection to the room is lost; this page tries again. The experiment goes on."

const FOLLOWS = "This page follows your teacher's. Move a control to try something yourself."

/** Sentences that are cleared once the connection works. */
const PASSING = [LOST, "Joining the room …"]

const code = location.pathname.split("/").at(-1) ?? ""
/** @template {HTMLElement} T @param {string} id @returns {T} */
const element = (id) => /** @type {T} */ (document.getElementById(id))
/** @type {HTMLIFrameElement} */
const frame = element("live")
/** @type {HTMLAnchorElement} */
const lab = element("lab")

/** @type {WebSocket | null} */
let socket = null
let wait = FIRST
/** Whether the reader has left the room. */
let left = false
/** The key of the live page in the frame. */
let shown = ""
/** Shows a message in the bar. @type {(message: any) => void} */
let receive = () => {}
/** The bar's first message, which identifies the student; each connection begins with it. @type {any[]} */
let hello = []

const say = (/** @type {string} */ text) => { element("said").textContent = text }

/** @param {{key?: string, fragment?: string, said: string, former?: boolean, lab?: string}} message */
const place = ({ key, fragment, said, former, lab: whole }) => {
  say(said || (key && hello[3] !== "free" ? FOLLOWS : ""))
  if (whole) Object.assign(lab, { href: new URL(`../${whole}`, location.href).href, hidden: false })
  // Until the next page is there, the one before is of something else.
  frame.classList.toggle("former", Boolean(former))
  if (!key) return
  const address = `${new URL(`files/${key}.html`, location.href)}#${fragment}`
  if (key === shown) frame.contentWindow?.location.replace(address)
  else {
    frame.src = address
    frame.hidden = false
    shown = key
  }
}

/** A reader who moves a control of the experiment stops following. */
const letGo = () => {
  if (hello[3] === "free" || left) return
  hello[3] = "free"
  if (element("said").textContent === FOLLOWS) say("")
  send(["let_go"])
}
frame.onload = () => {
  const inside = frame.contentDocument
  if (!inside) return
  // The slider of a recording shows another moment of the same experiment.
  const moved = (/** @type {Event} */ { target }) => { if (!(/** @type {Element} */ (target).closest(".recording"))) letGo() }
  for (const kind of ["input", "change"]) inside.addEventListener(kind, moved)
  for (const id of ["play", "step", "slow", "reset", "seed", "free"]) inside.getElementById(id)?.addEventListener("click", letGo)
  inside.getElementById("views")?.addEventListener("pointerup", letGo)
  // The link opens a lab on the reader's own computer, and the sentence is about a page without a server.
  for (const id of ["open", "origin"]) {
    const part = inside.getElementById(id)
    if (part) part.hidden = true
  }
}

/** The experiment in the frame, as a link to the lab. */
const query = () => {
  const open = /** @type {HTMLAnchorElement | null} */ (frame.contentDocument?.getElementById("open"))
  return open ? new URL(open.href).search : ""
}

/** @param {any[]} message */
const send = (message) => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)) }

const connect = () => {
  socket = new WebSocket(`${location.href.split(/[?#]/)[0].replace(/^http/, "ws")}/socket`)
  socket.onopen = () => {
    wait = FIRST
    send(hello)
  }
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.type === "page") place(message)
    // After a reconnection the page is the same student.
    if (message.type === "keep") hello[1] = message.student
    if (message.type === "bar" && PASSING.includes(element("said").textContent ?? "")) say("")
    if (message.type !== "page") receive({ data: new TextEncoder().encode(data) })
  }
  socket.onclose = () => {
    if (left) return
    say(LOST)
    setTimeout(connect, wait * (0.5 + Math.random()))
    wait = Math.min(2 * wait, MOST)
  }
}

element("bar").append(render({
  model: {
    code,
    /** @param {any[]} message */
    send_msg: (message) => {
      if (message[0] === "hello") hello = message
      else if (message[0] === "leave") {
        left = true
        send(message)
        socket?.close()
        element("bar").hidden = true
        // The link loads the page again.
        element("back").hidden = false
        say("You have left the room. The experiment continues here.")
      } else {
        if (message[0] === "let_go") {
          letGo()
          return
        }
        if (message[0] === "follow") hello[3] = ""
        send(message[0] === "enter" ? ["enter", query()] : message)
      }
    },
    on: (/** @type {string} */ name, /** @type {(message: any) => void} */ heard) => { if (name === "msg:custom") receive = heard },
    off: () => {},
  },
}))
connect()
