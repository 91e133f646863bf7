"""The first minute of a newcomer: the page opens, says what to do, and shows what a change does.

Steps and frames are counted, not seconds.
"""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from tests.browser.lab import Lab, wait_until

DARK, LIGHT = "#1b2027", "#ffffff"
"""The surface of figures."""
QUESTION = "?lesson=langevin&step=2"
UNEQUAL = """
() => {
  const found = []
  const visit = (view) => { if (view.model.type === "Figure" && view.el?.isConnected) found.push(view); for (const child of view.children()) visit(child) }
  for (const root of Bokeh.index.roots) visit(root)
  const state = found.find((one) => one.model.html_attributes["aria-label"].startsWith("State space"))
  const { x_range, y_range } = state.model, { width, height } = state.frame.bbox
  return (width / (x_range.end - x_range.start)) / (height / (y_range.end - y_range.start))
}
"""


def spread(lab):
    """The variance of the histogram."""
    (bars,) = [one for one in lab.glyphs("Marginal histogram", "Step") if sum(one["y"]) > 0]
    x, y = np.array(bars["x"]), np.array(bars["y"])
    return float((y * x**2).sum() / y.sum())


def fill(lab):
    return lab.figures()["State space"]["fill"]


def test_a_newcomer_opens_the_page_changes_one_thing_and_sees_a_difference(page, server):
    """A Gaussian, one sampler, three pictures and three sliders, all on the screen; with a larger step the histogram is
    wider than the target. Planted fault: the page's former experiment.
    """
    lab = Lab(page, server).open()
    lab.moves()
    assert lab.titles() == ["State space", "Marginal histogram", "KS distance"]
    assert lab.field("target").startswith("gaussian(") and len(lab.lanes()) == 1
    assert page.get_by_text("New here?").is_visible()
    sliders = [one for one in page.get_by_role("slider").all() if one.locator("..").is_visible()]
    assert len(sliders) == 4
    for seen in (*(one.locator("..") for one in sliders), *page.locator(".card").all(), lab.button("Pause")):
        box = seen.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"]

    # The words that are new stand explained where they are used, by the mouse and by keys.
    sign = lab.button("KS distance: explanation")
    text = page.locator(".explanation", has_text="Kolmogorov–Smirnov")
    assert not text.is_visible()
    sign.focus()
    page.keyboard.press("Enter")
    text.wait_for()
    said = text.inner_text()
    assert all(word in said for word in ("KS", "KL", "i.i.d.", "band"))
    page.keyboard.press("Escape")
    lab.until(lambda: not text.is_visible(), "the explanation closes")

    lab.moves(2000)
    before = spread(lab)
    assert before < 1.5
    step = page.get_by_role("slider", name=re.compile("^Step size")).first
    step.focus()
    for _ in range(40):
        if re.search(r"step_size:(1|2)\.", lab.lanes()[0]):
            break
        was = lab.lanes()
        page.keyboard.press("ArrowRight")
        lab.until(lambda was=was: lab.lanes() != was, "a larger step in the link")
    # Of SGLD on N(0, 1) the variance is 1 / (1 - ε / 2).
    lab.moves(2000)
    lab.until(lambda: spread(lab) > 1.5, "a wider histogram")


def test_the_menu_of_targets_is_grouped_and_searched(page, server):
    """Planted fault: an entry of a group that the server does not take from the browser."""
    lab = Lab(page, server).open()
    lab.moves()
    page.get_by_role("combobox", name=re.compile("^Target")).click()
    page.get_by_text("Models of data", exact=True).last.wait_for()
    page.get_by_text("Circle, sphere, torus", exact=True).wait_for()
    search = page.get_by_placeholder("Search...")
    search.fill("well")
    assert page.get_by_role("menuitem", name="Gaussian", exact=True).count() == 0
    search.press("Enter")
    lab.until(lambda: lab.field("target") == "double_well", "the target that was found")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_page_follows_the_device_until_somebody_chooses(kept_page, server, scheme):
    colours = {"dark": DARK, "light": LIGHT}
    other = {"dark": "light", "light": "dark"}[scheme]
    lab = Lab(kept_page(color_scheme=scheme), server).open()
    lab.until(lambda: fill(lab) == colours[scheme], scheme)
    lab.moves()
    assert "theme" not in parse_qs(urlsplit(lab.url).query)
    lab.page.emulate_media(color_scheme=other)
    lab.until(lambda: fill(lab) == colours[other], other)
    lab.page.get_by_role("button", name=re.compile("theme", re.IGNORECASE)).click()
    lab.until(lambda: fill(lab) == colours[scheme] and lab.field("theme") == scheme, "the choice, in the link")
    lab.open("?theme=" + scheme)
    lab.until(lambda: fill(lab) == colours[scheme], "the link's, whatever the device prefers")


def test_play_always_does_something(page, server):
    """It starts again after every lane has stopped; before an answer it shows the question."""
    lab = Lab(page, server).open("?target=quartic&lane=sgld(step_size:2.0)~full")
    lab.button("Play").wait_for()
    step = page.get_by_role("slider", name=re.compile("^Step size")).first
    step.focus()
    page.keyboard.press("Home")
    lab.until(lambda: "step_size:2.0" not in lab.lanes()[0], "a smaller step")
    lab.button("Play").click()
    lab.button("Pause").wait_for()
    lab.moves(20)

    lab.open(QUESTION)
    lab.until(lambda: lab.steps() == 0, "a step at rest")
    lab.press("Play")
    answers = page.locator("button.answer")
    lab.until(lambda: lab.focus() == f"button {answers.first.get_attribute('aria-label')}", "the focus on an answer")


def test_a_phone_has_picture_and_control_in_one_screen(phone, server):
    """Both axes of a plane have the same scale. Planted fault: ranges that fill the figure."""
    lab = Lab(phone, server).open("?target=quartic&lane=sgld")
    lab.moves()
    assert phone.evaluate(UNEQUAL) == pytest.approx(1, rel=0.01)
    play, first = lab.button("Pause").bounding_box(), phone.locator(".card").first.bounding_box()
    assert play["y"] >= 0 and first["y"] + first["height"] <= 844
    assert first["y"] <= 220


CUT = """() => { const found = []
  const visit = (root) => { for (const one of root.querySelectorAll("*")) {
    if (one.classList.contains("bk-panel-models-markup-HTML") && one.scrollHeight > one.clientHeight + 1) found.push(one.scrollHeight - one.clientHeight)
    if (one.shadowRoot) visit(one.shadowRoot)
  } }
  visit(document.querySelector(".lesson") ?? document)
  return found
}"""
"""By how much texts are higher than the place that they have."""


@pytest.mark.parametrize("step", ["langevin&step=1", "dw&step=1"])
def test_a_step_on_a_phone_has_its_first_picture_above_its_text(phone, server, step):
    """Also where the parts of a step stand above it; and a text that is higher than the sheet lies on nothing."""
    lab = Lab(phone, server).open(f"?lesson={step}")
    phone.locator("button.answer").first.wait_for()
    lesson = phone.locator(".lesson").first
    wait_until(lambda: lesson.evaluate("(one) => one.scrollHeight > one.clientHeight"), "a text that is higher")
    wait_until(lambda: phone.evaluate(CUT) == [], "texts that are whole")
    # Before that a message above the views says what is compiled or computed.
    lab.until(lambda: lab.steps() == 0, "a step at rest")
    wait_until(lambda: below(lab, lesson), "the first picture, whole")


def below(lab, lesson):
    first, text = lab.page.locator(".card").first.bounding_box(), lesson.bounding_box()
    return first["height"] > 150 and first["y"] + first["height"] <= text["y"] + 1


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)])
@pytest.mark.parametrize("layout", ["theta", "theta_r", "theta_r_xi"])
def test_a_recipe_is_typed_and_watched_at_once(kept_page, server, size, layout):
    """Above a whole picture there is an entry of D, for each kind of state."""
    width, height = size
    lab = Lab(kept_page(viewport={"width": width, "height": height}), server)
    lab.open(f"?target=quartic&lane=recipe(layout:{layout})")
    lab.moves()
    entry = lab.page.get_by_label("D θ₁ θ₁", exact=True)
    entry.wait_for()
    bench = lab.page.locator(".workbench")

    def places():
        return entry.bounding_box(), lab.page.locator(".card").first.bounding_box()

    wait_until(lambda: bench.bounding_box()["height"] > 100, "the card")
    typed, picture = places()
    assert typed["y"] + typed["height"] <= picture["y"]
    assert picture["y"] + picture["height"] <= height + 20
    assert picture["height"] >= 200


@pytest.mark.parametrize(
    ("query", "scheme", "dark"),
    [("?theme=dark", "light", True), ("", "dark", True), ("?theme=light", "dark", False), ("", "light", False)],
)
def test_a_dark_page_is_dark_before_its_scripts_have_run(kept_page, server, query, scheme, dark):
    """Fails where it flashes white: without scripts it stays as it was painted first."""
    page = kept_page(color_scheme=scheme, java_script_enabled=False)
    page.goto(f"{server.url}{query}", wait_until="domcontentloaded")
    colour = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert colour == ("rgb(18, 18, 18)" if dark else "rgba(0, 0, 0, 0)")
