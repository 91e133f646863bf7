"""Nothing on the page covers a curve, is cut off, or is too small to read: from the page's own layout boxes."""

import re

from sgmcmc_lab.lessons.layout import faults
from tests.browser import VIEWPORT
from tests.browser.lab import WALK, Lab, wait_until

CROWDED = (
    "?target=gaussian&lane=hmc(step_size:0.3)~full&lane=sghmc(step_size:0.1)~gaussian_corrected(variance:4)&lane=sgld(step_size:0.1)~full"
    "&views=state,marginal,ks,trace,autocorrelation,phase&speed=400"
)
"""Captions of three lanes in low pictures, curves that go everywhere, and the longest formulas."""
PHONE = {"width": 390, "height": 844}
FIND = """
const figures = []
const visit = (view) => { if (view.model.type === "Figure" && view.el?.isConnected) figures.push(view); for (const child of view.children()) visit(child) }
for (const root of Bokeh.index.roots) visit(root)
const trace = figures.find((one) => one.model.html_attributes["aria-label"].startsWith("Trace"))
"""
PLANTED = {
    "lies on a curve": "const label = [...trace.renderer_views.keys()].find((one) => one.type === 'Label' && one.text.includes('ESS')); label.y = trace.frame.bbox.height / 2; label.y_units = 'screen'",
    "lies on another text": "for (const one of trace.renderer_views.keys()) if (one.type === 'Label' && one.text.includes('ESS')) { one.y = 500; one.x = 8 }",
    "is cut off": "for (const one of trace.renderer_views.keys()) if (one.type === 'Label') one.x = -60",
    "it is wider than the screen": "trace.model.min_width = 2000",
    "its frame is": "trace.model.min_border_left = trace.canvas.bbox.width - 60",
    "a formula with letters of": "document.body.style.zoom = 0.5",
}
"""The change that is made to the page, by the fault that is then found."""


def test_nothing_covers_a_curve_and_nothing_is_cut_off(page, server):
    """At 1280 × 720 and 390 × 844, at rest.

    Planted faults: captions on a curve, on each other and beyond their figure; a figure wider than the screen, one with
    hardly any room, and formulas that are shrunk.
    """
    lab = Lab(page, server).open(CROWDED)
    wait_until(lambda: len(lab.glyphs("Autocorrelation", "Line")[0]["x"]) > 5 and lab.steps() > 1000, "curves")
    wait_until(lambda: page.locator("mjx-container svg").count() >= 4, "formulas")
    lab.press("Pause")
    lab.settled()
    assert faults(page) == []
    page.set_viewport_size(PHONE)
    lab.until(lambda: faults(page) == [], lambda: str(faults(page)))
    for what, plant in PLANTED.items():
        page.evaluate(f"() => {{ {FIND} {plant} }}")
        lab.until(lambda what=what: any(what in fault for fault in faults(page)), what)


PRESENTED = "?target=correlated_gaussian&lane=sggmc&slow=8&present=1"
"""The longest equation of a step above three pictures in large type."""
ABOVE_THE_KEYS = """() => {
  const walk = function* (root) { for (const one of root.querySelectorAll("*")) { yield one; if (one.shadowRoot) yield* walk(one.shadowRoot) } }
  const all = [...walk(document)], top = all.find((one) => one.matches(".strip")).getBoundingClientRect().top
  const ends = all.filter((one) => one.matches(".bk-Figure")).map((one) => one.getBoundingClientRect().bottom)
  return [ends.length, ends.every((end) => end <= top)]
}"""


def test_pictures_end_above_the_keys_of_presenter_mode(page, server):
    """Also while a step is taken apart, whose bar takes its height from the pictures.

    Planted fault: the height of the keys is not counted.
    """
    page.set_viewport_size(VIEWPORT)
    lab = Lab(page, server).open(PRESENTED)
    lab.until(lambda: page.locator(".line mjx-container").count() == 3, "an equation in three lines")
    lab.until(lambda: page.evaluate(ABOVE_THE_KEYS) == [3, True], lambda: str(page.evaluate(ABOVE_THE_KEYS)))
    assert faults(page) == []
    # The keys are buttons: the bar needs none of its own.
    assert lab.button("Part back").count() == 0
    page.evaluate("document.documentElement.style.setProperty('--strip', '-30px')")
    lab.until(lambda: page.evaluate(ABOVE_THE_KEYS) == [3, False], "pictures behind the keys")


NOTED = "?lesson=recipe-q&step=2&play=0"
"""Figures with a text of several lines below them, in a card of fixed height."""
LONG_TEXT = f"""() => {{
  {FIND}
  for (const one of figures) one.model.min_height = 300
}}"""


def test_texts_below_figures_stay_in_their_cards_on_a_phone(page, server):
    """Planted fault: a figure above a text that keeps more height than the card has for it."""
    page.set_viewport_size(PHONE)
    lab = Lab(page, server)
    for query in (NOTED, "?lesson=bias-variance&step=1&play=0", "?lesson=gamma&step=1&play=0"):
        lab.open(query)
        lab.until(lambda: page.locator(".card .bk-Div").count(), "a text")
        lab.until(lambda: faults(page) == [], lambda: str(faults(page)))
    lab.open(NOTED)
    lab.until(lambda: page.locator(".card .bk-Div").count() == 2, "the texts")
    page.evaluate(LONG_TEXT)
    lab.until(lambda: any("” is larger than its card" in fault for fault in faults(page)), lambda: str(faults(page)))


MEASURED = f"""() => {{
  {WALK}
  const width = (canvas) => {{ const pen = canvas.getContext("2d"); pen.save(); pen.font = "13px helvetica"; const {{ width }} = pen.measureText("dashed ξ/C: expected 2"); pen.restore(); return width }}
  const free = width(document.createElement("canvas"))
  return [...walk(document)].filter((one) => one.tagName === "CANVAS").map((one) => width(one) - free)
}}"""


def test_a_figure_draws_texts_as_wide_as_they_are_measured(page, server):
    """A caption that only just fits is otherwise cut off at the end. Planted fault: the page's letter spacing."""
    lab = Lab(page, server).open("?target=gaussian&views=marginal&play=0")
    lab.until(lambda: page.evaluate(MEASURED), "a canvas")
    assert max(map(abs, page.evaluate(MEASURED))) < 0.01
    page.locator(".card > .figure").first.evaluate("(one) => { one.style.letterSpacing = '0.15px' }")
    assert max(map(abs, page.evaluate(MEASURED))) > 1


LIT = f"""() => {{
  {WALK}
  const words = [...walk(document)].find((one) => one.matches(".parts"))
  if (!words?.querySelector("[data-lit=true]")) return []
  return [...words.children].map((one) => one.getBoundingClientRect()).filter(({{ width }}) => width).map(({{ right }}) => right)
}}"""


def test_on_a_phone_the_part_of_a_step_that_is_drawn_is_seen(page, server):
    """Its words end on the screen. Planted fault: the words of all parts in one line."""
    page.set_viewport_size(PHONE)
    lab = Lab(page, server).open("?lesson=dw&step=1&answer=2")
    ends = lab.until(lambda: page.evaluate(LIT), "a part that is drawn")
    assert len(ends) == 1
    assert ends[0] <= PHONE["width"]


PRINTED = """() => {
  const walk = function* (root) { for (const one of root.querySelectorAll("*")) { yield one; if (one.shadowRoot) yield* walk(one.shadowRoot) } }
  const found = []
  for (const card of [...walk(document)].filter((one) => one.matches(".card"))) {
    const box = card.getBoundingClientRect()
    for (const canvas of [...walk(card)].filter((one) => one.matches("canvas"))) {
      const { right, bottom } = canvas.getBoundingClientRect()
      if (right > box.right || bottom > box.bottom) found.push("a picture is larger than its card")
    }
    if (getComputedStyle(card).breakInside !== "avoid") found.push("a picture may be on two sheets")
    for (let one = card.parentElement; one; one = one.parentElement ?? one.getRootNode().host)
      if (getComputedStyle(one).overflow !== "visible" && one.scrollHeight > one.clientHeight) found.push(`${one.className} cuts it off`)
  }
  return found
}"""
SIZES = """() => { %s return [...walk(document)].filter((one) => one.matches(".card")).map((one) => [one.offsetWidth, one.offsetHeight]) }"""


def test_a_printed_page_has_all_pictures_whole(page, server):
    """Fails where sheets lack a picture or cut one: a page that is no longer than the screen has one sheet.

    Planted faults: a page as high as the screen, and a card that is narrower than on the screen, as its canvas is not.
    """
    lab = Lab(page, server).open("?target=quartic&lane=hmc&views=state,marginal,ks,trace,autocorrelation,kl,energies")
    lab.until(lambda: len(lab.figures()) == 7, "the figures")
    lab.press("Pause")
    lab.settled()
    before = page.evaluate(SIZES % WALK)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) >= 3
    page.emulate_media(media="print")
    lab.until(lambda: page.evaluate(PRINTED) == [], lambda: page.evaluate(PRINTED))
    assert page.evaluate(SIZES % WALK) == before
    card = page.locator(".card").last
    card.evaluate("(one) => one.style.setProperty('--width', '100px')")
    assert page.evaluate(SIZES % WALK) != before
    page.locator(".main").evaluate("(one) => Object.assign(one.style, { overflow: 'hidden', height: '100vh' })")
    assert any("cuts it off" in one for one in page.evaluate(PRINTED))
    page.emulate_media(media="screen")


LOOK = """(one) => {
  const { outlineStyle, outlineWidth, borderWidth, borderStyle, fontWeight } = getComputedStyle(one)
  return [outlineStyle, outlineWidth, borderWidth, borderStyle, fontWeight].join(" ")
}"""
"""The parts of a look that forced colours leave as they are."""


def test_what_is_chosen_is_seen_in_forced_colours(page, server):
    """Fails where a button that is pressed, or an answer that is right or wrong, differs from the others by a fill
    alone, as each does without forced colours."""
    lab = Lab(page, server).open("?lesson=langevin")
    lab.until(lambda: page.locator("button.answer").count() == 3, "answers")
    page.locator("button.answer").last.click()
    lab.until(lambda: page.locator(".answer[data-state=wrong]").count() == 1, "a reply")
    answers = page.locator("button.answer")
    assert len({answers.nth(i).evaluate(LOOK) for i in range(3)}) == 1
    page.emulate_media(forced_colors="active")
    states = {answers.nth(i).get_attribute("data-state"): answers.nth(i).evaluate(LOOK) for i in range(3)}
    assert len(states) == len(set(states.values())) == 3, states
    lab.open("?target=quartic&lane=sgld&play=0")
    chosen, others = (
        {one.evaluate(LOOK) for one in page.locator(f"button[aria-pressed={on}]").all()} for on in ("true", "false")
    )
    assert chosen and others and not chosen & others
    page.emulate_media(forced_colors="none")
    chosen, others = (
        {one.evaluate(LOOK) for one in page.locator(f"button[aria-pressed={on}]").all()} for on in ("true", "false")
    )
    assert chosen & others, "without forced colours the fill is enough"
