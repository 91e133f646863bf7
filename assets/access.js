// What the page's libraries leave out for people who do not see it, or do not use a mouse: names, formulas as formulas,
// help that can be focused, a focus that is seen and comes back. Everything is done once, when an element appears.

// Formulas. MathJax draws them and keeps each part's kind and characters: enough to write them as MathML beside.
const MATHML = "http://www.w3.org/1998/Math/MathML"
const UNSEEN = "position:absolute;left:0;top:0;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap"
const LEAVES = ["mi", "mn", "mo", "mtext", "ms"]
// A tall bracket is drawn of parts, whose characters are these.
const BRACKETS = [["239b", "239d", "("], ["239e", "23a0", ")"], ["23a1", "23a3", "["], ["23a4", "23a6", "]"], ["23a7", "23aa", "{"], ["23ab", "23ad", "}"], ["23d0", "23d0", "|"]]
const character = (code) => {
  const at = parseInt(code, 16)
  const bracket = BRACKETS.find(([from, to]) => parseInt(from, 16) <= at && at <= parseInt(to, 16))
  return bracket ? bracket[2] : String.fromCodePoint(at).normalize("NFKC")
}
const parts = (drawn) => [...drawn.children].flatMap((one) => (one.dataset.mmlNode ? [one] : parts(one)))
const isRoot = (drawn) => drawn.dataset.mmlNode === "mo" && drawn.querySelector("[data-c='221A'], [data-c='23B7']")

export const mathml = (drawn) => {
  const kind = drawn.dataset.mmlNode
  const made = document.createElementNS(MATHML, kind === "TeXAtom" || kind === "mpadded" ? "mrow" : kind)
  if (LEAVES.includes(kind)) {
    const drawnOf = [...drawn.querySelectorAll("[data-c], text")].map((one) => (one.dataset.c ? character(one.dataset.c) : one.textContent))
    made.textContent = kind === "mo" ? [...new Set(drawnOf)].join("") : drawnOf.join("")
    return made
  }
  const found = parts(drawn).filter((one) => !(["msqrt", "mroot"].includes(kind) && isRoot(one)))
  // It draws an exponent before an index; MathML has them the other way round.
  if (kind === "msubsup" && found.length === 3) found.push(found.splice(1, 1)[0])
  made.append(...found.map(mathml))
  return made
}

const read = (formula) => {
  const drawing = formula.querySelector("svg")
  const root = drawing?.querySelector("[data-mml-node='math']")
  if (!root || formula.querySelector("math")) return
  drawing.setAttribute("aria-hidden", "true")
  const beside = document.createElement("span")
  beside.style = UNSEEN
  beside.append(mathml(root))
  formula.style.position = "relative"
  formula.append(beside)
  // A formula that is wider than its place is scrolled with arrows, once it has the focus.
  for (let one = formula; one instanceof Element; one = one.parentElement ?? one.getRootNode().host) {
    if (["auto", "scroll"].includes(getComputedStyle(one).overflowX)) {
      if (!one.matches(".lesson")) wide.observe(one)
      return
    }
  }
}
const wide = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const scrolls = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight
    if (scrolls) Object.entries({ tabindex: "0", role: "group", "aria-label": "Formula" }).forEach(([name, value]) => target.setAttribute(name, value))
    else ["tabindex", "role", "aria-label"].forEach((name) => target.removeAttribute(name))
  }
})

// Help: a sign whose text is shown to the mouse alone, and named on an empty element beside it.
const hover = (type) => new MouseEvent(type, { bubbles: true, composed: true, relatedTarget: document.body })
const help = (beside) => {
  const sign = beside.previousElementSibling
  Object.entries({ tabindex: "0", role: "button", "aria-label": beside.getAttribute("aria-label") }).forEach(([name, value]) => sign.setAttribute(name, value))
  sign.removeAttribute("aria-hidden")
  beside.removeAttribute("aria-label")
  sign.addEventListener("keydown", (event) => {
    if (event.key === "Escape") sign.dispatchEvent(hover("mouseout"))
    else if (["Enter", " "].includes(event.key)) sign.dispatchEvent(hover("mouseover"))
    else return
    event.preventDefault()
    event.stopPropagation()
  })
}

// Menus of choice open at a click alone.
const choice = (box) => {
  box.addEventListener("keydown", (event) => {
    if (!["Enter", " ", "ArrowDown", "ArrowUp"].includes(event.key) || box.getAttribute("aria-expanded") === "true") return
    event.preventDefault()
    box.click()
  })
}

const labelOf = (one) => one.closest(".MuiFormControl-root")?.querySelector("label")?.firstChild?.textContent ?? ""
const MENDED = {
  "mjx-container": read,
  "[role=combobox].MuiSelect-select": choice,
  // The frame of a box repeats its label, unseen.
  ":not(fieldset *) > svg + span[aria-label]:empty": help,
  ".MuiInputAdornment-positionStart > button:not([aria-label])": (one) => one.setAttribute("aria-label", `${labelOf(one)}: one less`),
  ".MuiInputAdornment-positionEnd > button:not([aria-label])": (one) => one.setAttribute("aria-label", `${labelOf(one)}: one more`),
  ".noUi-handle:not([aria-label])": (one) => one.setAttribute("aria-label", one.getRootNode().querySelector(".bk-slider-title")?.firstChild?.textContent.replace(/: ?$/, "") || "Slider"),
  "[role=dialog].sidebar:not([aria-label])": (one) => one.setAttribute("aria-label", "Target, samplers and their parameters"),
  "[role=progressbar]:not([aria-label])": (one) => one.setAttribute("aria-label", "Progress"),
  // The page's other parts have headings of the second level.
  ".MuiAccordion-heading": (one) => one.setAttribute("aria-level", "2"),
  // It is for the mouse alone, and an element that is nothing may have no name.
  "div[aria-label='Resize sidebar']": (one) => one.removeAttribute("aria-label"),
  // The figure itself has a name, and nothing in it takes keys.
  ".bk-events[tabindex]": (one) => one.removeAttribute("tabindex"),
}

// What has the focus is seen, and nothing moves by itself for somebody who has asked for that.
const sheet = new CSSStyleSheet()
sheet.replaceSync(`
  :focus-visible:not(input, textarea), .Mui-focusVisible { outline: 3px solid #f39c12 !important; outline-offset: 1px; }
  @media (prefers-reduced-motion: reduce) {
    *, ::before, ::after { animation-duration: 1ms !important; animation-iteration-count: 1 !important; transition-duration: 1ms !important; scroll-behavior: auto !important; }
    .MuiTouchRipple-root { display: none; }
  }
`)

const walk = function* (root) {
  for (const one of root.querySelectorAll("*")) {
    yield one
    if (one.shadowRoot) yield* walk(one.shadowRoot)
  }
}
const focus = () => {
  let here = document.activeElement
  while (here?.shadowRoot?.activeElement) here = here.shadowRoot.activeElement
  return here
}
const OVER = "[role=dialog], [role=menu], .MuiModal-root, [data-pmui-layer]"
const iconOf = (one) => one.querySelector(".material-icons, .MuiIcon-root")?.textContent ?? ""
const nameOf = (one) => `${one.tagName} ${one.getAttribute("aria-label") ?? (labelOf(one) || one.textContent.trim())}`

// A tooltip whose sign was drawn anew, or covered, under the pointer hears nothing of its leaving, and would stay for ever.
const AT_LEAST = 600
const makeSweeper = () => {
  let last = 0
  let stray = new Set()
  return (event) => {
    if (event.timeStamp - last < AT_LEAST) return
    last = event.timeStamp
    const near = [...event.composedPath(), focus()].map((one) => one instanceof Element && one.getAttribute("aria-label"))
    const found = [...walk(document)].filter((one) => one.matches(".MuiTooltip-popper") && !near.includes(one.textContent))
    // One that is on its way out is not there at the next look.
    for (const one of found) if (stray.has(one)) one.style.visibility = "hidden"
    stray = new Set(found)
  }
}

export function render({ model }) {
  const sweep = makeSweeper()
  // Where the keyboard is, apart from dialogs and menus: the focus comes back to it, or to what is drawn in its stead,
  // whose label may be another one: "Next" becomes "All lessons".
  let at = null
  let name = ""
  let icon = ""
  let over = null
  const keep = (one) => {
    at = one
    name = one ? nameOf(one) : ""
    icon = one ? iconOf(one) : ""
  }
  const layerOf = (one) => {
    while (one && !one.matches(OVER)) one = one.parentElement ?? one.getRootNode().host
    return one ?? null
  }
  const isOpen = (layer) => layer?.isConnected && layer.checkVisibility({ visibilityProperty: true })
  const focused = (event) => {
    const [here] = event.composedPath()
    const layer = layerOf(here)
    if (layer) {
      // The newest one: a menu may open while a dialog before it still fades out.
      if (!over) setTimeout(closed, 100)
      over = layer
    } else if (!over) {
      keep(here.matches(":focus-visible") ? here : null)
    }
  }
  // The libraries look for the place in the wrong tree, and come to the page's first button or to none.
  const closed = () => {
    // A layer may be made again while it is open: then the focus is in the new one, and stays there.
    if (!isOpen(over)) over = layerOf(focus())
    if (isOpen(over)) return setTimeout(closed, 100)
    over = null
    if (!at?.isConnected) return comeBack(20)
    at.focus()
    // What was chosen in the menu may be its name now.
    keep(at)
  }
  const comeBack = (tries) => {
    if (!at || at.isConnected || over) return
    const like = [...walk(document)].filter((one) => one.tagName === at.tagName && one.tabIndex >= 0 && one.checkVisibility())
    const found = like.find((one) => nameOf(one) === name) ?? (tries < 15 && icon && like.find((one) => iconOf(one) === icon))
    if (found) found.focus()
    else if (tries > 0) setTimeout(comeBack, 100, tries - 1)
  }

  const mend = (one) => {
    for (const [selector, work] of Object.entries(MENDED)) if (one.matches(selector)) work(one)
    if (one.shadowRoot) enter(one.shadowRoot)
  }
  const visit = (root) => {
    if (!(root instanceof Element || root instanceof ShadowRoot || root === document)) return
    if (root instanceof Element) mend(root)
    root.querySelectorAll("*").forEach(mend)
  }
  const entered = new WeakSet()
  const enter = (root) => {
    if (entered.has(root)) return
    entered.add(root)
    root.adoptedStyleSheets.push(sheet)
    observer.observe(root, { childList: true, subtree: true })
    // What moves the focus inside a shadow root is not told outside of it.
    root.addEventListener("focusin", focused)
    visit(root)
  }
  const observer = new MutationObserver((changes) => {
    for (const { addedNodes } of changes) addedNodes.forEach(visit)
    if (at && !at.isConnected) setTimeout(comeBack, 0, 20)
  })
  model.on("remove", () => {
    observer.disconnect()
    document.removeEventListener("focusin", focused)
    document.removeEventListener("pointermove", sweep)
  })
  document.addEventListener("pointermove", sweep)
  enter(document)
  return document.createElement("span")
}
