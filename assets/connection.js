// Sees when the server does not answer, says so, and goes on when it does: in the same session where that still
// listens, and otherwise by opening the page's address again, which holds the whole state.
const REST = 5_000
const PATIENCE = 8_000
const WAITS = [500, 1_000, 2_000, 4_000, 8_000]
const ASLEEP = 4 * REST
const SENTENCE =
  "The server does not answer. What you change now is not kept; this page goes on by itself, with the same experiment, as soon as it answers."

export function render({ model, view }) {
  const banner = document.createElement("div")
  banner.className = "lost"
  banner.hidden = true
  // In the page itself: a part of it may lie below a drawer. The page moves down by its height, so that it covers nothing.
  Object.assign(banner.style, {
    position: "fixed", inset: "0 0 auto 0", zIndex: 2000, boxSizing: "border-box", minHeight: "44px", padding: "8px 16px",
    alignItems: "center", justifyContent: "center", textAlign: "center", font: "600 15px/1.4 Roboto, sans-serif",
    background: "#ffd54f", color: "#1f2933", borderBottom: "2px solid #8f6b00",
  })
  document.body.append(banner)
  const sized = new ResizeObserver(() =>
    document.documentElement.style.setProperty("--lost", `${banner.offsetHeight}px`),
  )
  sized.observe(banner)
  banner.setAttribute("role", "alert")
  // The cheapest address: a script that the page has, of which only the head is asked for.
  const cheap = [...document.scripts].map((one) => one.src).find((src) => src.includes("/static/")) ?? location.href
  let closed = false
  let failures = 0
  let asked = Date.now()
  let busy = false
  let timer = null

  const show = (lost) => {
    banner.hidden = !lost
    banner.style.display = lost ? "flex" : "none"
    // A screen reader says what is put into an alert.
    banner.textContent = lost ? SENTENCE : ""
  }
  const answers = () =>
    fetch(cheap, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) }).then(
      (answer) => answer.ok,
      () => false,
    )
  // The server may answer others and have given up this page's session, whose connection says nothing of that.
  const listens = () =>
    new Promise((done) => {
      const heard = () => {
        model.off("heard", heard)
        clearTimeout(late)
        done(true)
      }
      const late = setTimeout(() => {
        model.off("heard", heard)
        done(false)
      }, PATIENCE)
      model.on("heard", heard)
      model.send_msg("listening")
    })

  const ask = async () => {
    clearTimeout(timer)
    if (busy || (document.hidden && !closed && !failures)) return
    busy = true
    const doubtful = failures > 0 || Date.now() - asked > ASLEEP
    if (await answers()) {
      if (closed || (doubtful && !(await listens()))) return location.reload()
      failures = 0
    } else failures++
    busy = false
    asked = Date.now()
    show(closed || failures > 0)
    // Many pages do not come back in the same moment.
    const wait = WAITS[Math.min(failures, WAITS.length) - 1] * (0.75 + Math.random() / 2)
    timer = setTimeout(ask, failures ? wait : REST)
  }
  const lost = () => {
    closed = true
    show(true)
    void ask()
  }
  const again = () => location.reload()
  const returned = (event) => event.persisted && again()

  view.model.document.on_event("connection_lost", lost)
  window.addEventListener("online", ask)
  document.addEventListener("visibilitychange", ask)
  // Back and forward: an entry's address holds the state; a page that the browser kept has no connection any more.
  window.addEventListener("popstate", again)
  window.addEventListener("pageshow", returned)
  model.on("remove", () => {
    clearTimeout(timer)
    sized.disconnect()
    banner.remove()
    document.documentElement.style.removeProperty("--lost")
    window.removeEventListener("online", ask)
    document.removeEventListener("visibilitychange", ask)
    window.removeEventListener("popstate", again)
    window.removeEventListener("pageshow", returned)
  })
  show(false)
  timer = setTimeout(ask, REST)
  return document.createElement("div")
}
