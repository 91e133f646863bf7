"""The page for people who do not see it, use no mouse, or ask for less motion, in a real headless Chromium.

axe-core (tests/browser/axe, MPL-2.0, unchanged) looks at every kind of page; what it cannot see is tested with keys.
"""

import re

import pytest

from sgmcmc_lab.samplers.targets import TARGETS
from tests.browser.lab import FOCUS, FOCUSED, WALK, Lab, wait_until

LESSON = r"""+++
title = "Signs"
minutes = 3
summary = "Of formulas."
+++

## One

In a line $$x_i^2$$, and below.

$$\frac{a}{\sqrt{b}} = \left(\begin{matrix} 1 & \theta \\ 0 & 1 \end{matrix}\right) \sum_{j=1}^{n} e^{-H}$$

```toml
views = ["marginal"]
controls = ["lane1.sampler.step_size"]
[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.05)~full"]
n_steps = 400
burn_in = 10

[question]
ask = "Which?"
options = ["This", "That"]
answer = 2
why = "It is so."
```

## Two

Another step.

```toml
[change]
lane1.sampler.step_size = 0.3
```
"""


@pytest.fixture(scope="module", autouse=True)
def school(server):
    """A lesson of formulas on the server."""
    path = server.lessons / "01-signs.md"
    path.write_text(LESSON, encoding="utf-8")
    yield
    path.unlink()


@pytest.fixture
def lab(page, server):
    """The app in an empty page."""
    return Lab(page, server)


def pictures(lab):
    """The role and the name of every figure, in order."""
    return lab.page.evaluate(
        f"() => {{ {WALK} return [...walk(document)].filter((one) => one.matches('.bk-Figure'))"
        ".map((one) => [one.getAttribute('role'), one.getAttribute('aria-label')]) }"
    )


def press(lab, *keys):
    for key in keys:
        lab.page.keyboard.press(key)


def gone(lab, selector):
    """Wait until nothing on the page matches, also where it is hidden from readers of the screen while it fades."""
    lab.until(lambda: lab.page.locator(selector).count() == 0, f"no {selector}")


def tab_to(lab, name, keys="Tab", most=60):
    """Press Tab until something with this name has the focus."""
    seen = []
    for _ in range(most):
        press(lab, keys)
        seen.append(lab.focus())
        if re.search(name, seen[-1]):
            return seen
    raise AssertionError(f"no Tab stop {name!r} among {seen}")


# Paused: axe takes seconds for a page that is drawn all the time beside it.
PAUSED = "?target=quartic&lane=sgld&play=0"
TARGETS_SHOWN = {"first": "quartic", "simplex": "dense_dirichlet", "circle": "von_mises", "globe": "fisher"}
OTHERS = {
    "workbench": "?lane=sgld&lane=recipe~full&play=0",
    "topics": "?target=topics&play=0",
    "network": "?target=network&play=0",
}


def background(lab):
    return lab.page.evaluate("getComputedStyle(document.body).backgroundColor")


def check_both_themes(lab):
    """By all rules in the theme that the page has, and by those of colours in the other, which it then keeps."""
    assert lab.axe() == []
    before = background(lab)
    lab.button("Toggle theme").click()
    lab.until(lambda: background(lab) != before, "the other theme")
    lab.until(lambda: len(pictures(lab)) >= len(lab.titles()), "its pictures")
    # Colours take a moment to change.
    lab.until(lambda: lab.axe("color-contrast") == [], lambda: lab.axe("color-contrast"))


def drawn(lab):
    """Wait for pictures and cards, of which these come last, a step after the start."""
    lab.until(lambda: lab.titles() and len(pictures(lab)) >= len(lab.titles()), "pictures")
    lab.step()
    lab.until(lambda: lab.page.locator("mjx-container").count() > 0, "formulas")
    # The mouse stands on the button that it pressed: while its help fades in, that has no contrast yet. The element
    # below the mouse may have been removed with its page, and its help then stays until Escape.
    lab.page.mouse.move(0, 0)
    press(lab, "Escape")
    lab.until(lambda: lab.page.locator(".MuiTooltip-tooltip").count() == 0, "no help")


@pytest.mark.parametrize("kind", TARGETS_SHOWN)
def test_axe_finds_nothing_on_a_page_of_a_target(walk, kind):
    lab = walk(PAUSED)
    target = TARGETS_SHOWN[kind]
    if kind != "first":
        lab.choose("Target", TARGETS[target].title)
        lab.until(lambda: lab.field("target").startswith(target), "the target")
        lab.until(lambda: lab.steps() == 0, "its start")
        drawn(lab)
        check_both_themes(lab)
        return
    drawn(lab)
    assert lab.axe() == []
    # axe sees into shadow roots: a button without its name is found.
    button = lab.button("Toggle theme").element_handle()
    button.evaluate("(one) => one.removeAttribute('aria-label')")
    assert any("button-name" in one for one in lab.axe("button-name"))
    button.evaluate("(one) => one.setAttribute('aria-label', 'Toggle theme')")


@pytest.mark.parametrize("kind", OTHERS)
def test_axe_finds_nothing(lab, kind):
    lab.open(OTHERS[kind])
    drawn(lab)
    check_both_themes(lab)


def test_a_menu_that_is_drawn_again_keeps_the_focus(walk):
    lab = walk(PAUSED)
    page = lab.page
    tab_to(lab, "Export")
    press(lab, "Enter")
    lab.until(lambda: lab.focus().startswith("menuitem"), "the focus in the menu")
    # As React does when it draws a list again: another element takes the focus.
    page.evaluate(f"""() => {{
      const item = ({FOCUSED})()
      const list = item.closest("[role=menu]")
      const again = list.cloneNode(true)
      list.replaceWith(again)
      again.children[[...list.children].indexOf(item)].focus()
    }}""")
    # The watch looks ten times a second.
    page.wait_for_timeout(500)
    assert lab.focus().startswith("menuitem"), "the focus stays in the menu that is open"
    press(lab, "Escape")
    lab.until(
        lambda: re.match(r"button\b.*\bExport$", lab.focus(), re.DOTALL),
        lambda: f"the focus back, not on {lab.focus()}",
    )
    gone(lab, "[role=menuitem]")


def test_pictures_say_what_they_show(walk):
    lab = walk()
    lab.moves()
    lab.until(lambda: all("mean of" in name for _, name in pictures(lab)[:2]), lambda: f"means in {pictures(lab)}")
    lab.until(
        lambda: re.search(r"KS distance, against .*KS 0\.\d+", pictures(lab)[2][1]),
        lambda: pictures(lab)[2],
    )
    assert {role for role, _ in pictures(lab)} == {"img"}
    first = pictures(lab)
    lab.until(lambda: all(now != was for now, was in zip(pictures(lab), first, strict=True)), "other numbers")
    assert lab.page.locator(".bk-events[tabindex]").count() == 0, "a canvas takes no keys and no focus"


def test_all_by_keyboard(walk):
    lab = walk()
    lab.moves()
    page = lab.page
    # The list of lessons: the focus goes into it, stays there, and comes back.
    tab_to(lab, "Lessons")
    press(lab, "Enter")
    page.get_by_role("dialog").wait_for()
    inside = "() => { let at = document.activeElement; let seen = false; while (at) { seen ||= !!at.closest('.MuiModal-root'); at = at.shadowRoot?.activeElement } return seen }"
    lab.until(lambda: page.evaluate(inside), "the focus in the dialog")
    tab_to(lab, "Signs|close")
    press(lab, "Tab", "Tab", "Tab", "Tab")
    assert page.evaluate(inside)
    press(lab, "Escape")
    lab.until(lambda: lab.focus().startswith("button Lessons"), lambda: f"the focus back, not on {lab.focus()}")
    # A menu.
    tab_to(lab, "Export")
    press(lab, "Enter")
    lab.until(lambda: lab.focus().startswith("menuitem"), "the focus in the menu")
    first = lab.focus()
    press(lab, "ArrowDown")
    lab.until(
        lambda: lab.focus().startswith("menuitem") and lab.focus() != first, lambda: f"the next item, not {lab.focus()}"
    )
    press(lab, "Escape")
    lab.until(
        lambda: re.match(r"button\b.*\bExport$", lab.focus(), re.DOTALL),
        lambda: f"the focus back, not on {lab.focus()}",
    )
    # While it closes a Tab would still go round in it.
    gone(lab, "[role=menuitem]")
    # Help is shown at its Tab stop, and goes with Escape.
    tab_to(lab, "to sample from")
    help_ = page.get_by_role("tooltip", name="The distribution to sample from")
    help_.wait_for()
    press(lab, "Escape")
    help_.wait_for(state="detached")
    # A slider, also where the run begins anew.
    tab_to(lab, "input Step size")
    lanes = lab.lanes()
    press(lab, "ArrowRight")
    lab.until(lambda: lab.lanes() != lanes, "another step size")
    tab_to(lab, "input Chains")
    before = page.evaluate_handle(FOCUSED)
    press(lab, "ArrowRight")
    lab.until(lambda: lab.field("n_chains") == "5", "a chain more")
    lab.moves()
    assert before.evaluate("(one) => one.isConnected"), "the same slider"
    assert lab.focus() == "input Chains"
    # A choice, by arrows; what is drawn again keeps the focus.
    tab_to(lab, "combobox Gaussian", "Shift+Tab")
    outline = page.evaluate(
        FOCUS.replace(
            'return [at?.getAttribute("role") ||',
            'return [getComputedStyle(at).outlineStyle, getComputedStyle(at.closest(".Mui-focused") ?? at).outlineStyle,',
        )
    )
    assert "solid" in outline, "the focus is seen"
    press(lab, "ArrowDown")
    lab.until(lambda: lab.focus().startswith("option") or lab.focus().startswith("menuitem"), lab.focus)
    before = page.locator("[role=combobox]").first.element_handle()
    # From the search box the first arrow leads to the target that is chosen.
    press(lab, "ArrowDown", "ArrowDown", "Enter")
    lab.until(lambda: lab.field("target").startswith("double_well"), "another target")
    gone(lab, "[role=menuitem], [role=option]")
    lab.until(lambda: not before.evaluate("(one) => one.isConnected"), "another menu")
    lab.until(lambda: lab.focus().startswith("combobox"), lambda: f"the focus on the menu, not on {lab.focus()}")
    # A view: the buttons are one stop, with arrows in it.
    tab_to(lab, "button State space|button Marginal histogram")
    tab_to(lab, "button Autocorrelation", "ArrowRight")
    press(lab, "Enter")
    lab.until(lambda: "Autocorrelation" in lab.titles(), "the view")


SIGNS = "?lesson=signs"


def test_formulas_are_read_as_formulas(walk):
    """While MathJax sets them, two elements may be one formula, before it and after."""
    lab = walk(SIGNS)
    formulas = f"() => {{ {WALK} return [...walk(document)].filter((one) => one.localName === 'math').map((one) => one.outerHTML) }}"

    def shown():
        return [re.sub(r' xmlns="[^"]*"|</?mstyle>|</?mrow>', "", one) for one in lab.page.evaluate(formulas)]

    expected = [
        "<math><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></math>",
        "<math><mfrac><mi>a</mi><msqrt><mi>b</mi></msqrt></mfrac><mo>=</mo><mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mi>θ</mi></mtd></mtr>"
        "<mtr><mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd></mtr></mtable><mo>)</mo>"
        "<munderover><mo>∑</mo><mi>j</mi><mo>=</mo><mn>1</mn><mi>n</mi></munderover><msup><mi>e</mi><mo>−</mo><mi>H</mi></msup></math>",
    ]
    lab.until(lambda: shown() == expected, lambda: f"two formulas, not {shown()}")


def test_axe_finds_nothing_in_a_lesson(walk):
    """Nor where it is presented."""
    lab = walk(SIGNS)
    lab.press("Present")
    lab.page.locator(".strip").wait_for()
    lab.until(lambda: lab.titles() and len(pictures(lab)) >= len(lab.titles()), "pictures")
    # The mouse stands on a button of the bar, whose tint for it is Material's, and a button's colours take a moment.
    lab.page.mouse.move(0, 0)
    lab.until(lambda: lab.axe() == [], lab.axe)
    press(lab, "Escape")
    lab.button("Toggle theme").wait_for()
    lab.until(lambda: len(pictures(lab)) >= len(lab.titles()), "its pictures")
    check_both_themes(lab)


BUSY = """
window.busy = []
const set = Element.prototype.setAttribute
Element.prototype.setAttribute = function (name, value) {
  if (name === "aria-busy") window.busy.push([String(value), this.querySelectorAll(".figure > *").length])
  return set.call(this, name, value)
}
"""


def test_the_figures_are_busy_until_all_of_them_are_there(new_page, server):
    """For a screen reader, and for all tests that open a page. Fails where the sign is missing or comes too early."""
    page = new_page()
    page.add_init_script(BUSY)
    lab = Lab(page, server).open(PAUSED)
    assert page.evaluate("busy") == [["true", 0], ["true", 0], ["false", 3]]
    lab.view("Trace")
    lab.until(lambda: page.evaluate("busy.slice(3)") == [["true", 3], ["false", 4]], lambda: page.evaluate("busy"))


def test_a_lesson_by_keyboard(walk):
    lab = walk(SIGNS)
    lab.until(lambda: lab.titles() == ["Marginal histogram"], "its view")
    tab_to(lab, "button That")
    press(lab, "Enter")
    lab.page.get_by_text("It is so.").first.wait_for()
    lab.moves()
    tab_to(lab, "Next")
    press(lab, "Enter")
    lab.until(lambda: lab.field("step") == "2", "the second step")
    lab.until(
        lambda: re.search("Next|All lessons", lab.focus()) is not None or "Back" in lab.focus(),
        lambda: f"the focus in the lesson, not on {lab.focus()}",
    )


def test_less_motion_opens_paused(kept_page, server):
    lab = Lab(kept_page(reduced_motion="reduce"), server).open()
    lab.says("asks for less motion")
    wait_until(lambda: lab.steps() >= 0, "a readout")
    assert lab.steps() == 0
    assert lab.page.evaluate(
        f"() => {{ {WALK} return [...walk(document)].filter((one) => one.tagName === 'BUTTON').every((one) => parseFloat(getComputedStyle(one).transitionDuration) <= 0.001) }}"
    )
    lab.press("Play")
    lab.moves()
