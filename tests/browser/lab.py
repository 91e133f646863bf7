"""A page of the app as a person has it: what is seen, and what is done there.

The contents of a figure are read from its data sources in the page, never from pixels. No time decides a test: each
waits for what must come, and only a wait without an end fails.
"""

import re
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np

from tests.browser import PATIENCE, numbers, open_app

# The views on the screen, by the place of their cards; pages share the models of figures, whose numbers tell no order.
SHOWN = """
const place = (element) => {
  for (let one = element; one; one = one.parentElement ?? one.getRootNode().host)
    if (one.matches(".card")) return [...one.parentElement.children].indexOf(one)
  return -1
}
const shown = (type) => {
  const found = new Map()
  const visit = (view) => {
    if (view.model.type === type && view.el?.isConnected) found.set(view.model.id, [place(view.el), view.model])
    for (const child of view.children()) visit(child)
  }
  for (const root of window.Bokeh?.index.roots ?? []) visit(root)
  return [...found.values()].sort(([i, a], [j, b]) => i - j || Number(a.id.slice(1)) - Number(b.id.slice(1))).map(([, model]) => model)
}
"""
FIGURES = f"""
() => {{ {SHOWN} return shown("Figure").map((figure) => ({{
  x: [figure.x_range.start, figure.x_range.end], y: [figure.y_range.start, figure.y_range.end],
  fill: figure.background_fill_color?.value ?? figure.background_fill_color,
  label: figure.below[0].axis_label,
  glyphs: figure.renderers.filter((one) => one.glyph).map((one) => ({{
    type: one.glyph.type,
    data: Object.fromEntries(Object.entries(one.data_source.data).filter(([, column]) => typeof column[0] !== "object")
      .map(([name, column]) => [name, Array.from(column)])),
  }})),
}})) }}
"""
READOUT = f"""
() => {{ {SHOWN} return shown("Div").map((one) => one.text).find((text) => /step|burn-in/.test(text) && !/KS \\d/.test(text)) ?? "" }}
"""
WALK = """
const walk = function* (root) { for (const one of root.querySelectorAll("*")) { yield one; if (one.shadowRoot) yield* walk(one.shadowRoot) } }
"""
FOCUSED = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at
}"""
FOCUS = f"""() => {{
  const at = ({FOCUSED})()
  return [at?.getAttribute("role") || at?.tagName.toLowerCase() || "", at?.getAttribute("aria-label") || at?.innerText || ""].join(" ")
}}"""


def wait_until(condition, what, patience=PATIENCE):
    """The first true value of ``condition()``, which may look for what is not on the page yet."""
    end = time.monotonic() + patience
    while True:
        try:
            found = condition()
        except LookupError:
            found = False
        if found:
            return found
        assert time.monotonic() < end, f"{what() if callable(what) else what}: not in {patience:g} s"
        time.sleep(0.1)


AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("moderate", "serious", "critical")
MARKUP = "<i class=typed>*x*"
"""A typed entry is text, and becomes no part of the page: see :func:`check_text`."""


class Lab:
    """A page of the app, and what a person sees and does there."""

    def __init__(self, page, server):
        self.page, self.server = page, server

    def open(self, query=""):
        open_app(self.page, self.server, query)
        return self

    # Observations

    @property
    def url(self):
        """The link. Playwright's own ``page.url`` stays behind while nothing is asked of the page."""
        return self.page.evaluate("location.href")

    def steps(self):
        """The number of steps in the readout, or -1 where there is none yet."""
        found = re.search(r"(?:step|burn-in) ([\d,]+)", self.page.evaluate(READOUT))
        return int(found[1].replace(",", "")) if found else -1

    def titles(self):
        return self.page.locator(".view-title").all_inner_texts()

    def figures(self):
        """The figures, by the title of the view. Waits until titles and figures are of the same views."""

        def same():
            titles, figures = self.titles(), numbers(self.page, FIGURES)
            self._seen = (titles, figures)
            return len(titles) == len(figures) and titles == self.titles()

        wait_until(same, lambda: f"figures of the views {self._seen[0]}, not {len(self._seen[1])}")
        return dict(zip(*self._seen, strict=True))

    def glyphs(self, view, kind):
        return [one["data"] for one in self.figures()[view]["glyphs"] if one["type"] == kind]

    def heads(self):
        """Where the chains of each lane are in the state space, (chains, 2), by lane."""
        size = 1 if len(self.lanes()) > 1 else 4
        found = [g for g in self.glyphs("State space", "Scatter") if set(g) == {"x", "y"} and len(g["x"]) == size]
        return [np.array([g["x"], g["y"]]).T for g in found[: len(self.lanes())]]

    def lanes(self):
        return parse_qs(urlsplit(self.url).query).get("lane", [])

    def field(self, name):
        return parse_qs(urlsplit(self.url).query).get(name, [""])[0]

    def focus(self):
        """The role and the name of what has the focus."""
        return self.page.evaluate(FOCUS)

    # Actions

    def button(self, name):
        return self.page.get_by_role("button", name=name, exact=isinstance(name, str))

    def view(self, title):
        self.page.mouse.move(640, 2)
        self.button(title).click()

    def step(self, times=1):
        self.until(lambda: self.steps() >= 0, "a readout")
        for _ in range(times):
            goal = self.steps() + 1
            self.press("Step")
            self.until(lambda goal=goal: self.steps() == goal, f"step {goal}")

    def press(self, text):
        """Click the button with that visible text."""
        # The help of the button that was pressed last may lie over this one.
        self.until(lambda: self.steps() >= 0, "a page that listens")
        self.page.mouse.move(640, 2)
        self.page.get_by_role("button").filter(has_text=re.compile(f"{text}$")).click()

    def choose(self, label, option):
        wanted = self.page.get_by_role("menuitem", name=option, exact=True)

        def opened():
            # A list that is drawn anew closes its menu, and a person clicks again.
            if not wanted.is_visible():
                self.page.get_by_role("combobox", name=re.compile(f"^{label}")).click()
                time.sleep(0.5)
            return wanted.is_visible()

        self.until(opened, f"the menu {label}")
        wanted.click()

    def remove(self, what, place, of):
        """Remove a lane or a method, when the cards of all ``of`` of them are there."""
        # The cards are made anew a moment after the link has changed, and a click on an older one is lost.
        self.until(lambda: self.button(re.compile(f"^Remove {what}")).count() == of, f"{of} cards")
        self.button(f"Remove {what} {place}").click()

    def until(self, condition, what):
        said = what if callable(what) else lambda: what
        return wait_until(condition, lambda: f"{said()} (readout: {self.page.evaluate(READOUT)!r})")

    def moves(self, more=1):
        """Wait until the readout has grown."""
        start = self.steps()
        self.until(lambda: self.steps() >= max(start, 0) + more, "more steps")

    def axe(self, *rules):
        """The findings of axe on the page, by all or some of its rules."""
        if self.page.evaluate("!window.axe"):
            self.page.evaluate(AXE)
        # Until the font of the icons is there, axe reads the names of its ligatures as a button's text.
        self.page.evaluate(
            "() => Promise.all([...document.fonts].filter((font) => /Icons/.test(font.family)).map((font) => font.load()))"
        )
        # An element that fades in has another contrast on the way.
        self.page.wait_for_function("!document.getAnimations().some((one) => one instanceof CSSTransition)")
        # The rules that fetch style sheets and sounds once more are of what the lab has not, and are off.
        options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": list(rules)} if rules else {})}
        found = self.page.evaluate("(options) => axe.run(document, options)", options)["violations"]
        return [
            f"{one['impact']} {one['id']}: {node['html'][:300]}"
            for one in found
            if one["impact"] in SERIOUS
            for node in one["nodes"]
        ]

    def settled(self):
        """Wait until nothing moves any more, and return the step at which it rests."""
        last, same = None, 0

        def rests():
            nonlocal last, same
            now = (self.steps(), self.figures())
            last, same = now, same + 1 if now == last else 0
            time.sleep(0.4)
            return same >= 3

        self.until(rests, "rest")
        return last[0]

    def says(self, *parts):
        """Wait for a visible sentence that has all of these parts."""
        pattern = re.compile("".join(f"(?=[\\s\\S]*{re.escape(part)})" for part in parts))
        self.page.get_by_role("alert").filter(has_text=pattern).first.wait_for()


def check_finite(figures):
    """No NaN and no infinity reaches a plot."""
    for view, figure in figures.items():
        assert np.isfinite([*figure["x"], *figure["y"]]).all(), view
        for glyph in figure["glyphs"]:
            for name, column in glyph["data"].items():
                numbers = [x for x in column if not isinstance(x, str)]
                assert np.isfinite(np.array(numbers, dtype=float)).all(), (view, glyph["type"], name)


def check_inside(figure, places):
    """Heads that are on the axes."""
    places = np.concatenate(places)
    for k, side in enumerate("xy"):
        low, high = figure[side]
        assert (low <= places[:, k]).mean() > 0.5
        assert (places[:, k] <= high).mean() > 0.5


def check_text(page):
    """No element comes from :data:`MARKUP`, in any part of the page."""
    assert not page.locator(".typed").all()


def check_width(page):
    """Nothing is wider than the screen."""
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width


def check_whole(lab, most=130):
    """Header, transport and choosers take so many pixels at most, and every picture is seen whole, with its axes."""
    page = lab.page
    header, first = (page.locator(name).first.bounding_box() for name in (".header", ".wide"))
    # The first page without a link is none of the three.
    greeting = page.get_by_text("New here?").bounding_box()
    assert header["height"] + first["y"] - (greeting["y"] + greeting["height"]) <= most
    for figure in page.locator(".bk-Figure").all():
        box = figure.bounding_box()
        assert box["y"] + box["height"] <= page.viewport_size["height"]


def check_phone(lab):
    """At rest nothing is wider than the screen, and every view can be seen."""
    lab.moves()
    lab.button("Pause").click()
    lab.settled()
    page = lab.page
    check_width(page)
    for title in page.locator(".view-title").all():
        # A trial click fails where something, such as the sidebar, is in front.
        title.click(trial=True)
    for figure in page.locator(".bk-Figure").all():
        box = figure.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= page.viewport_size["width"]
