"""Lessons and presenter mode in a real headless Chromium: a student goes through a lesson, a teacher shows it."""

import json
import re

import pytest

from lessons.library import VARIABLE
from tests.browser import serve
from tests.browser.lab import PATIENCE, WALK, Lab, check_finite, check_width, wait_until

MINE = """+++
title = "Mine"
minutes = 3
summary = "Of a teacher's own."
+++

## One

A formula, $$\\theta^2$$.

```toml
views = ["marginal", "ks"]
controls = ["lane1.sampler.step_size"]
watch = "The curve."

[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.05)~full"]
n_chains = 64
n_steps = 400
burn_in = 10

[question]
ask = "Which?"
options = ["This", "That"]
answer = 2
why = "It is so."

[[claim]]
says = "The variance is nearly 1."
measure = "variance"
above = 0.5
below = 1.5

[[claim]]
says = "The variance is 3."
measure = "variance"
equals = 3
tolerance = 0.1
```

## Two

The same at another step.

```toml
views = ["marginal", "trace"]
[change]
lane1.sampler.step_size = 0.3
```
"""


@pytest.fixture(scope="module")
def school(tmp_path_factory):
    """A server with a teacher's own folder: a good lesson, and a broken one."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "01-mine.md").write_text(MINE, encoding="utf-8")
    broken = MINE.replace("answer = 2", "answer = 7")
    (folder / "02-broken.md").write_text(broken, encoding="utf-8")
    line = next(n for n, row in enumerate(broken.splitlines(), 1) if "answer = 7" in row)
    with serve(tmp_path_factory.mktemp("school"), environment={VARIABLE: str(folder)}) as running:
        running.broken = f"02-broken.md:{line}"
        yield running


@pytest.fixture
def lab(page, school):
    """The app in an empty page; every array in every figure must be finite when the test ends."""
    made = Lab(page, school)
    yield made
    check_finite(made.figures())
    assert school.crashes() == []


def heading(lab):
    return lab.page.locator(".lesson").get_by_role("heading", level=2).all_inner_texts()


def answer(lab, text):
    lab.page.get_by_role("button", name=text, exact=True).click()


def shows(lab, text, patience=PATIENCE):
    lab.page.get_by_text(text).first.wait_for(timeout=1000 * patience)


def presenting(lab):
    return lab.page.locator(".strip").is_visible()


def test_a_student_goes_through_a_lesson(lab):
    lab.open()
    lab.moves()
    shows(lab, "Start the first lesson")
    # What stands in the browser's storage may be anything.
    stored = {
        "mine/1": ["right", 1e9],
        "mine/2": "<img src=x>",
        "mine/99": ["right", 1],
        "__proto__/1": ["right", 1],
        "gone/1": ["right", 1],
    }
    lab.page.evaluate("(text) => localStorage.setItem('sgmcmc-lab-lessons', text)", json.dumps(stored))
    lab.page.evaluate("window.sameDocument = true")
    # From the list, with the broken file's place in it.
    lab.press("Lessons")
    shows(lab, lab.server.broken)
    shows(lab, "3 minutes, 2 steps")
    assert lab.page.get_by_text("steps done").count() == 0
    lab.page.get_by_role("dialog").get_by_text("Mine", exact=True).click()
    lab.until(lambda: heading(lab) == ["One"], "the first step")
    lab.until(lambda: lab.titles() == ["Marginal histogram", "KS distance"], "its views")
    assert lab.field("lesson") == "mine"
    assert lab.page.locator(".lesson svg, .lesson mjx-container").count() > 0, "the formula is drawn"
    # Nothing runs before the answer.
    lab.until(lambda: lab.steps() == 0, "a new experiment at rest")
    lab.press("Play")
    shows(lab, "First answer the lesson's question")
    assert lab.settled() == 0
    assert lab.page.get_by_text("It is so.").count() == 0
    answer(lab, "This")
    shows(lab, "Not quite.")
    shows(lab, "It is so.")
    verdict = lab.page.get_by_text("Not quite.")
    lab.until(lambda: verdict.bounding_box()["y"] < 600, "the verdict, to which the panel scrolls")
    lab.moves()
    # Claims are judged on the run that is on the screen.
    shows(lab, "✓ holds")
    shows(lab, "✗ not yet")
    shows(lab, "expected 0.5 to 1.5")
    shows(lab, "Of 2 claims 1 met, 1 not met.")
    lab.press("Lessons")
    shows(lab, "1 of 2 steps done · 0 of 1 questions right · 1 of 2 check marks seen")
    lab.page.keyboard.press("Escape")
    lab.page.get_by_role("dialog").wait_for(state="hidden")
    # Only the step's own control is there, and what it moves is said to be other.
    assert lab.page.get_by_role("combobox").count() == 0
    assert lab.page.get_by_role("slider").count() == 1, "the step size"
    lab.press("Pause")
    # A reload keeps the place and the answer.
    link = lab.url
    lab.open("?" + link.partition("?")[2])
    lab.until(lambda: heading(lab) == ["One"], "the same step")
    shows(lab, "Not quite.")
    lab.page.evaluate("window.sameDocument = true")
    lab.press("Next")
    lab.until(lambda: heading(lab) == ["Two"], "the second step")
    lab.until(lambda: lab.titles() == ["Marginal histogram", "Trace"], "its views")
    lab.until(lambda: lab.field("step") == "2", "its link")
    lab.moves()
    # All controls, on this experiment.
    lab.press("Try it yourself")
    lab.page.get_by_role("combobox", name=re.compile("^Target")).wait_for(timeout=1000 * PATIENCE)
    lab.until(
        lambda: "sgld(step_size:0.3)" in lab.page.evaluate("document.title + location.href") or lab.field("try") == "1",
        "freed",
    )
    lab.press("Back to the step")
    lab.until(lambda: heading(lab) == ["Two"] and lab.field("try") == "", "the step again")
    assert lab.page.evaluate("window.sameDocument"), "no step reloads the page"


def test_a_teacher_presents_with_keys(lab):
    lab.open("?lesson=mine&present=1&hide=lane1.sampler.step_size,ks,export")
    lab.until(lambda: presenting(lab), "the strip of keys")
    assert not lab.page.locator(".header").is_visible()
    lab.until(lambda: lab.titles() == ["Marginal histogram"], "the view that the link leaves")
    lab.until(lambda: lab.steps() == 0, "an experiment at rest")
    shows(lab, "play or pause")
    size = lab.page.locator(".view-title").first.evaluate("(one) => parseFloat(getComputedStyle(one).fontSize)")
    assert size >= 20
    key = lab.page.keyboard.press
    answer(lab, "That")
    shows(lab, "Right.")
    lab.moves()
    key("Space")
    rest = lab.settled()
    assert rest > 0
    key("r")
    lab.until(lambda: lab.steps() == 0, "a reset")
    key("Space")
    lab.moves()
    key("ArrowRight")
    lab.until(lambda: heading(lab) == ["Two"], "the next step")
    key("PageUp")
    lab.until(lambda: heading(lab) == ["One"], "the step before")
    # One click, one picture.
    with lab.page.expect_download() as picture:
        lab.page.locator(".strip").get_by_text("save a picture").click()
    assert picture.value.suggested_filename.endswith(".png")
    # Keys are the person's own where she types.
    lab.page.evaluate("document.body.append(Object.assign(document.createElement('input'), {id: 'typed'}))")
    lab.page.locator("#typed").focus()
    lab.page.keyboard.type("nrb")
    assert lab.page.locator("#typed").input_value() == "nrb"
    lab.page.locator("#typed").evaluate("(one) => one.remove()")
    assert heading(lab) == ["One"]
    key("Escape")
    lab.until(lambda: not presenting(lab) and lab.page.locator(".header").is_visible(), "the whole page")
    lab.until(lambda: lab.field("present") == "", "its link")
    # Outside presenter mode keys do nothing.
    key("n")
    lab.moves()
    assert heading(lab) == ["One"]


def test_a_lesson_on_a_phone(phone, school):
    lab = Lab(phone, school).open("?lesson=mine")
    wait_until(lambda: heading(lab) == ["One"], "the step")
    phone.get_by_role("button", name="That", exact=True).click()
    shows(lab, "Right.")
    wait_until(lambda: len(lab.figures()) == 2, "the views")
    check_width(phone)
    text, figure = phone.locator(".lesson").bounding_box(), phone.locator(".bk-Figure").first.bounding_box()
    half = phone.viewport_size["height"] / 2
    assert text["width"] > 360
    assert text["y"] > 0.98 * half, "the text is a sheet in the lower half"
    assert figure["y"] + figure["height"] / 2 < half, "the first picture is in the upper one"
    cut_off = f"""() => {{ {WALK}
      return [...walk(document)].filter((one) => ["BUTTON", "P", "H2"].includes(one.tagName))
        .filter((one) => {{ const box = one.getBoundingClientRect(); return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) }})
        .map((one) => one.textContent)
    }}"""
    assert phone.evaluate(cut_off) == []
