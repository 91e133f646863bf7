"""Lessons and presenter mode in a real headless Chromium: a student goes through a lesson, a teacher shows it."""

import json
import re

import pytest

from tests.browser.lab import PATIENCE, WALK, Lab, check_finite, check_width, wait_until
from tests.helpers.course import LESSONS

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
def school(server):
    """The server, and a teacher's own folder with a good lesson, and a broken one."""
    broken = MINE.replace("answer = 2", "answer = 7")
    files = {"01-mine.md": MINE, "02-broken.md": broken}
    for name, text in files.items():
        (server.lessons / name).write_text(text, encoding="utf-8")
    line = next(n for n, row in enumerate(broken.splitlines(), 1) if "answer = 7" in row)
    server.broken = f"02-broken.md:{line}"
    yield server
    for name in files:
        (server.lessons / name).unlink()


@pytest.fixture
def lab(page, school):
    """The app in an empty page; every array in every figure must be finite when the test ends."""
    made, start = Lab(page, school), len(school.log)
    yield made
    check_finite(made.figures())
    assert school.crashes(start) == []


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
    # The browser's storage may contain anything.
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
    lab.until(lambda: not lab.page.get_by_text("New here?").is_visible(), "no greeting in a lesson")
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
    lab.page.get_by_role("combobox", name=re.compile("^Target")).wait_for()
    lab.until(
        lambda: "sgld(step_size:0.3)" in lab.page.evaluate("document.title + location.href") or lab.field("try") == "1",
        "freed",
    )
    lab.press("Back to the step")
    lab.until(lambda: heading(lab) == ["Two"] and lab.field("try") == "", "the step again")
    check_first_lesson(lab)
    assert lab.page.evaluate("window.sameDocument"), "no step reloads the page"


def check_first_lesson(lab):
    """The course's first step, as a student plays it, on a page that is open."""
    lab.press("Lessons")
    lab.page.get_by_role("dialog").get_by_text("From gradient descent to Langevin", exact=True).click()
    lab.until(lambda: heading(lab) == ["Downhill"], "the first step of the course")
    lab.until(lambda: lab.steps() == 0, "a new experiment at rest")
    answer(lab, "At the top: in the end the pull of the gradient wins")
    shows(lab, "Not quite.")
    shows(lab, "pulls inwards and the noise pushes outwards")
    # One step, slowly, and by hand.
    pace = lab.page.get_by_role("slider", name="Steps per frame")
    pace.press("Home")
    words = lambda: lab.page.locator(".parts").inner_text()  # noqa: E731
    lab.until(lambda: "Langevin dynamics, chain 1: step" in words(), "a step in its parts")
    lab.press("Pause")
    rest = lab.settled()
    for _ in range(4):
        lab.page.keyboard.press(".")
    lab.until(lambda: lab.steps() > rest, "the next step, part by part")
    # Fast: all claims are met before the step has run its length, or they never are.
    lab.press("Play")
    most = LESSONS["langevin"].steps[0].spec.n_steps
    while int(lab.field("speed") or 1) < 300:
        before = lab.url
        pace.press("ArrowRight")
        lab.until(lambda before=before: lab.url != before, "the next speed in the link")
    met = lab.page.get_by_text("Of 3 claims 3 met.").first
    lab.until(lambda: met.is_visible() or lab.steps() > 1.25 * most, "check marks")
    assert met.is_visible(), f"not met in {lab.steps()} steps"
    # Moved, ε is another one than the claim's.
    lab.press("Pause")
    lanes = lab.lanes()
    lab.page.get_by_role("slider", name="Step size ε").press("ArrowLeft")
    lab.until(lambda: lab.lanes() not in (lanes, []), "another ε in the link")
    lab.press("Play")
    shows(lab, "~ not the claim's settings")


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


def test_the_picture_that_a_step_names_first_is_the_first(phone, server):
    """On a phone and on a larger screen. Planted fault: the order of the menu, whose first is the histogram."""
    lab = Lab(phone, server).open("?lesson=thermostats&play=0")
    lab.until(lambda: len(lab.figures()) == 3, "the views")
    assert lab.titles() == ["Temperature", "Thermostat", "Marginal histogram"]

    def first():
        return (
            min(phone.locator(".card").all(), key=lambda one: one.bounding_box()["y"])
            .locator(".view-title")
            .inner_text()
        )

    assert first() == "Temperature"
    phone.set_viewport_size({"width": 1280, "height": 720})
    lab.until(lambda: phone.locator(".card").first.bounding_box()["width"] < 700, "the larger screen")
    assert first() == "Temperature"


def test_a_lesson_on_a_phone(phone, school):
    lab = Lab(phone, school).open("?lesson=langevin")
    wait_until(lambda: heading(lab) == ["Downhill"], "the step")
    phone.get_by_role("button", name=re.compile("^Nowhere")).click()
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
