"""A lesson on a live page in a browser: its question, its check marks, its sweep, and what is done."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial

import pytest

from sgmcmc_lab.app.live_page import lesson_page, site, write_site
from sgmcmc_lab.lessons.lesson import Claim, Lesson, Question, Step, read
from sgmcmc_lab.lessons.live import number
from sgmcmc_lab.samplers import Experiment, SpecError
from tests.browser import until
from tests.browser.lab import AXE, check_width
from tests.browser.live import MOVES, SETTLED, STILL, pages_of, steps, with_pages
from tests.helpers.course import LESSONS

LESSON = """+++
title = "Marks"
minutes = 1
summary = "Of BAD."
+++

## One

```toml
views = ["marginal", "ks"]
controls = ["sampler.step_size", "speed"]
names = ["BAD"]
watch = "The curve."

[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.05)~full"]
n_chains = 64
n_steps = 400
burn_in = 10

[quick]
n_steps = 300

[question]
ask = "Which BAD?"
options = [{ text = "This one", reply = "That is less BAD." }, "BAD", { text = "Neither", reply = "It is one BAD." }]
by = "calculation"
answer = 2
why = "It is so BAD."

[[claim]]
says = "The variance is nearly 1."
measure = "variance"
above = 0.5
below = 1.5

[[claim]]
says = "The variance is 3 BAD."
measure = "variance"
equals = 3
tolerance = 0.1

[[claim]]
says = "All draws are needed."
measure = "chain_ks"
below = 1

[claim.paper]
figure = "Figure 1"
number = 0.5
ours = 0.5

[[exercise]]
text = "Do this."
solution = "Like that."
experiment = { target = "gaussian", lanes = ["sgld"] }
```

## Two

```toml
page = { speed = 70 }

[change]
lane1.sampler.step_size = 0.1
n_steps = 400

[sweep]
measure = "variance"
quantity = "bias"
[sweep.grid]
sampler.step_size = [0.1, 0.2, 0.4]

[[claim]]
says = "The bias is of first order."
sweep = "slope"
above = 0.5
below = 1.5
```

## Three

Words alone.
"""
STORE = "sgmcmc-lab-lessons"
HOSTILE = {
    "marks/1": ["right", 1e9],
    "marks/2": "<img src=x>",
    "marks/99": ["right", 1],
    "__proto__/1": ["right", 1],
    "gone/1": ["right", 1],
}


BAD = "</script><img src=x onerror=document.title='bad'>"
"""A text that the reader of lessons refuses."""


def hostile(part):
    """A part of a lesson with that in its texts."""
    if isinstance(part, str):
        return part.replace("BAD", BAD)
    if isinstance(part, tuple) and type(part) is tuple:
        return tuple(map(hostile, part))
    if not isinstance(part, (Lesson, Step, Question, Claim)):
        return part
    return replace(part, **{one.name: hostile(getattr(part, one.name)) for one in fields(part)})


SEES_MEASURING = """() => {
  const main = document.querySelector("main")
  const look = () => { window.measuring ||= main.innerText.includes("measuring") }
  new MutationObserver(look).observe(main, { subtree: true, childList: true, characterData: true })
}"""
"""A word that stands a second, seen however late the test looks."""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / "marks.md"
    path.write_text(LESSON, encoding="utf-8")
    return hostile(read(path))


@pytest.fixture(scope="module")
def text(lesson):
    return lesson_page(lesson)


def shows(page, words, patience=60):
    page.get_by_text(words).first.wait_for(timeout=1000 * patience)


def stored(page):
    return json.loads(page.evaluate(f"localStorage.getItem('{STORE}')") or "null")


def opens_with(page):
    """The steps per frame and the axis of the page's step."""
    page.wait_for_function(SETTLED)
    return page.locator("#speed-now").inner_text(), page.locator("#axis").input_value()


def test_a_step_opens_with_its_own_settings(opened, text, tmp_path):
    path, names = tmp_path / "marks.md", 'names = ["BAD"]'
    path.write_text(LESSON.replace(names, names + '\npage = { speed = 50, axis = "gradients" }'), encoding="utf-8")
    assert opens_with(opened(text)) == ("20", "steps")
    assert opens_with(opened(lesson_page(hostile(read(path))))) == ("50", "gradients")


OWN = """+++
title = "Controls"
minutes = 1
+++

## One

FORMULAS

```toml
views = ["marginal"]
controls = ["sampler.friction", "lane2.gradient.variance", "target.sd", "lanes"]
watch = "The histogram."

[experiment]
target = "gaussian"
lanes = ["sghmc~gaussian", "sghmc~gaussian"]

[[claim]]
says = "The variance is nearly 1."
measure = "variance"
above = 0.5

[[exercise]]
text = "Try it yourself."
solution = "So."
experiment = { target = "gaussian", lanes = ["sgld"] }
```

## Two

```toml
controls = ["sampler.step_size", "speed", "seed", "n_chains"]
```
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("lesson") / "controls.md"
    numbers = ", ".join(f"{{= {formula} =}}" for formula in FORMULAS)
    path.write_text(OWN.replace("FORMULAS", numbers), encoding="utf-8")
    return lesson_page(read(path))


FORMULAS = (
    "friction",
    "friction2",
    "sd",
    "-2000*sd^2",
    "log(friction2/friction)/7 - sqrt(variance2)",
    "1/(1 - step_size/2)",
    "1/(1 + variance2)^2",
)
KNOBS = ("sampler-0-friction", "sampler-1-friction", "gradient-1-variance", "target-sd")


def at_the_controls(page):
    """The experiment of the page's controls, by their texts."""
    first, second, variance, sd = (
        float(page.locator(f"output[for={knob}]").inner_text().replace("−", "-")) for knob in KNOBS
    )
    noises = [{"key": "gaussian"}, {"key": "gaussian", "params": {"variance": variance}}]
    lanes = [
        {"sampler": {"key": "sghmc", "params": {"friction": friction}}, "gradient": noise}
        for friction, noise in zip((first, second), noises, strict=True)
    ]
    return Experiment.from_dict({"target": {"key": "gaussian", "params": {"sd": sd}}, "lanes": lanes})


def numbers_apart(page):
    """The numbers of the text that are not those of the lab at the page's controls."""
    shown, experiment = page.locator(".live-number").all_inner_texts(), at_the_controls(page)
    found = []
    for formula, text in zip(FORMULAS, shown, strict=True):
        try:
            expected = number(formula, experiment)
        except SpecError:
            expected = "–"
        if text != expected:
            found.append((formula, text, expected))
    return found


def test_the_numbers_of_a_text_follow_the_controls(opened, own):
    """All operations, of both lanes and of the target. Planted fault: a formula of the other lane."""
    page = opened(own, still=True)
    page.wait_for_function(SETTLED)
    before = page.locator(".live-number").all_inner_texts()
    assert before == page.locator(".live-number").all_text_contents() and numbers_apart(page) == []
    for knob, key in zip(KNOBS, ("ArrowRight", "ArrowLeft", "ArrowRight", "ArrowRight"), strict=True):
        page.locator(f"#{knob}").press(key)
        assert numbers_apart(page) == []
    after = page.locator(".live-number").all_inner_texts()
    assert [a == b for a, b in zip(before, after, strict=True)] == [False] * 5 + [True, False]
    wrong = own.replace("&quot;friction2&quot;", "&quot;friction1&quot;")
    other = opened(wrong, still=True)
    other.wait_for_function(SETTLED)
    other.locator("#sampler-1-friction").press("ArrowRight")
    assert [formula for formula, *_ in numbers_apart(other)] == [one for one in FORMULAS if "friction2" in one]


INPUTS = "[...document.querySelectorAll('#lab input, #lab select, #seed')].filter((one) => one.offsetParent).map((one) => one.id)"


def test_a_step_shows_its_own_controls_until_the_reader_tries_himself(opened, own):
    """*Try it yourself* shows all that the file has, also by its link; *Back to the step* undoes all changes."""
    page = opened(own, still=True)
    page.wait_for_function(SETTLED)
    first = ["sampler-0-friction", "sampler-1-friction", "gradient-1-variance", "target-sd"]
    assert sorted(set(page.evaluate(INPUTS)) - {"axis"}) == sorted(first)
    assert page.locator("#elsewhere").inner_text() == "The lab has more controls for this step: more samplers."
    page.locator("#next").click()
    page.wait_for_function(SETTLED)
    second = ["sampler-0-step_size", "sampler-1-step_size", "speed", "seed", "chains"]
    assert sorted(set(page.evaluate(INPUTS)) - {"axis"}) == sorted(second)
    assert not page.locator("#elsewhere").is_visible()
    page.locator("#back").click()
    page.wait_for_function(SETTLED)
    page.get_by_role("button", name="Try it yourself").press("Enter")
    free = set(page.evaluate(INPUTS))
    assert free >= {*first, *second, "gradient-0-variance"}
    assert page.evaluate("document.activeElement.id") == "free"
    size = page.locator("output[for=sampler-0-step_size]")
    before = size.inner_text()
    page.locator("#sampler-0-step_size").press("ArrowRight")
    assert size.inner_text() != before
    again = opened(own, still=True, fragment=page.evaluate("location.hash"))
    again.wait_for_function(SETTLED)
    assert set(again.evaluate(INPUTS)) == free
    again.get_by_role("button", name="Back to the step").press("Enter")
    again.wait_for_function(SETTLED)
    assert sorted(set(again.evaluate(INPUTS)) - {"axis"}) == sorted(first)
    again.locator("#free").click()
    assert size.inner_text() != before and again.locator("output[for=sampler-0-step_size]").inner_text() == before


def test_a_file_that_shows_all_controls_is_seen(opened, own):
    """A planted fault: the file does not know which controls the step shows."""
    pages = pages_of(own)
    pages["steps"][0]["controls"] = None
    page = opened(with_pages(own, pages), still=True)
    page.wait_for_function(SETTLED)
    assert "sampler-0-step_size" in page.evaluate(INPUTS)


PLACES = """() => Object.fromEntries(Object.entries({watch: ".after p", lab: "#lab", claims: ".claims", picture: "#view-marginal", text: ".text"})
  .map(([name, which]) => [name, document.querySelector(which).getBoundingClientRect().toJSON()]))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_telephone_the_picture_is_in_the_text(opened, own, theme):
    """Between the sentence to watch and the claims; it stays on the screen with every control that is scrolled to."""
    page = opened(own, size=(390, 844), theme=theme)
    page.wait_for_function(MOVES)
    at = page.evaluate(PLACES)
    assert at["watch"]["bottom"] <= at["lab"]["top"] and at["lab"]["bottom"] <= at["claims"]["top"]
    check_width(page)
    for name in ("play", "sampler-0-friction", "gradient-1-variance", "target-sd", "free"):
        page.locator(f"#{name}").evaluate("(one) => one.scrollIntoView({block: 'end'})")
        picture = page.evaluate(PLACES)["picture"]
        box = page.locator(f"#{name}").bounding_box()
        assert picture["top"] >= 0 and picture["bottom"] <= 844, name
        assert box["y"] >= picture["bottom"] or box["y"] + box["height"] <= picture["top"], name
    page.set_viewport_size({"width": 1280, "height": 720})
    page.wait_for_function("document.querySelector('#lab').parentElement.localName === 'main'")
    at = page.evaluate(PLACES)
    assert at["lab"]["left"] >= at["text"]["right"] and at["picture"]["bottom"] <= 720


def test_a_student_answers_and_sees_the_marks(opened, text):
    """Nothing moves before the answer; then each claim is judged, and what is done is kept."""
    page = opened(text)
    page.wait_for_function(SETTLED)
    assert page.locator(".after:visible").count() == 0
    page.locator("#play").click()
    shows(page, "First answer the lesson's question, or skip it.")
    assert page.evaluate("document.activeElement.className") == "option"
    page.locator("#step").click()
    assert steps(page) == 0 and page.evaluate(STILL)
    assert not page.get_by_text("It is so").is_visible()
    assert page.locator(".reply:visible").count() == 0
    page.evaluate(SEES_MEASURING)
    page.get_by_text("This one").click()
    shows(page, "Not quite.")
    shows(page, "It is so")
    shows(page, "This follows by calculation.")
    (reply,) = page.locator(".reply:visible").all_inner_texts()
    assert reply.startswith("That is less"), "the reply to the chosen option, and no other"
    assert not page.get_by_text("First answer").is_visible()
    states = page.locator(".option").evaluate_all(
        "all => Object.fromEntries(all.map((one) => [one.dataset.option, one.dataset.state]))"
    )
    assert states == {"1": "wrong", "2": "right", "3": "other"}
    page.locator("[data-option='3']").click(force=True)
    assert "answers=1.1" in page.url
    page.wait_for_function(MOVES)
    page.wait_for_function("window.measuring")
    page.locator("#speed").press("End")
    shows(page, "✓ holds")
    shows(page, "✗ not yet")
    shows(page, re.compile(r"over all 400 steps|\(400 asked\)"))
    shows(page, "Of 2 claims 1 met, 1 not met.")
    shows(page, "recorded measured 0.5 at full length, expected below 1")
    assert page.get_by_text("Like that").count() == 0
    shows(page, "1 of 3 steps done · 0 of 1 questions right · 1 of 2 check marks seen")
    assert stored(page) == {"marks/1": ["wrong", 1]}
    page.locator("#sampler-0-step_size").press("ArrowLeft")
    shows(page, "~ not the claim's settings measured")
    shows(page, "Of 2 claims 0 met, 2 with other settings.")
    page.locator("#sampler-0-step_size").press("ArrowRight")
    assert stored(page) == {"marks/1": ["wrong", 1]}, "what was met stays met"
    page.reload()
    shows(page, "Not quite.")
    page.wait_for_function(MOVES)


def test_a_question_is_skipped_with_the_keyboard(opened, text):
    page = opened(text)
    page.locator(".skip").press("Enter")
    page.wait_for_function(MOVES)
    assert page.locator(".verdict").first.inner_text() == ""
    shows(page, "It is so")
    # The first mark may be met by now.
    assert stored(page)["marks/1"][0] == "skipped" and len(stored(page)) == 1


@pytest.mark.parametrize("fault", ["length", "exact"])
def test_another_claim_in_the_file_is_seen(opened, text, fault):
    """Planted faults: judged at once, and expected another number."""
    pages = pages_of(text)
    claim = pages["lesson"]["steps"][0]["claims"][0]
    if fault == "length":
        claim["full"] = 4
    else:
        claim["goal"]["below"] = 0.6
    page = opened(with_pages(text, pages), fragment="#answers=1.2")
    page.wait_for_function(MOVES)
    page.locator("#speed").press("End")
    if fault == "length":
        shows(page, re.compile(r"over all 4 steps|\(4 asked\)"))
    else:
        shows(page, "Of 2 claims 0 met, 2 not met.")


def test_a_broken_answer_in_the_link_is_a_sentence(opened, text):
    """One page opens with the first link, and follows the others, which it reads in the same way."""
    first, *others = ["9.1", "1.7", "2.1", "1.-1", "<img src=x>,__proto__.1", "x" * 7_000]
    page = opened(text, fragment=f"#answers={first}", still=True)
    for answers in (first, *others):
        if answers != first:
            page.evaluate("document.getElementById('problem').textContent = ''")
            page.evaluate("(answers) => { location.hash = `answers=${answers}` }", answers)
            page.wait_for_function("document.getElementById('problem').textContent !== ''")
        page.wait_for_function(SETTLED)
        said = page.locator("#problem").inner_text()
        assert said.startswith("This file does not have these settings of the link: answers."), answers
        shows(page, "The experiment waits for your answer.")


def test_anything_may_stand_in_the_storage(opened, text):
    """It is passed over, and nothing of it is shown."""
    page = opened(text)
    shows(page, "The experiment waits")
    for found in (json.dumps(HOSTILE), "[", "[1,2]"):
        page.evaluate("([key, text]) => localStorage.setItem(key, text)", [STORE, found])
        page.goto("about:blank")
        page.go_back()
        shows(page, "The experiment waits")
        assert page.locator("#done").inner_text() == ""
        page.locator(".skip").click()
        # Until the first mark is met; the page writes what it has found, and nothing after that.
        shows(page, "1 of 3 steps done · 0 of 1 questions right · 1 of 2 check marks seen")
        page.evaluate("location.hash = ''")
    assert page.title() == "Marks"


def test_in_a_frame_without_storage(opened, text):
    """It runs, and says nothing of it."""
    framed = text.replace("&", "&amp;").replace('"', "&quot;")
    page = opened(
        f'<!doctype html><meta charset="utf-8"><iframe sandbox="allow-scripts" width="1200" height="700" srcdoc="{framed}"></iframe>'
    )
    inner = page.frame_locator("iframe")
    inner.locator(".skip").click()
    inner.locator("html[data-frames]").wait_for(state="attached")
    until(page.frames[1], MOVES)
    assert not inner.locator("#problem").is_visible()


def test_texts_are_texts(opened, text):
    """No markup of a lesson is run."""
    page = opened(text, fragment="#answers=1.2")
    page.wait_for_function(MOVES)
    assert page.title() == "Marks"
    assert page.locator("img").count() == 0
    assert page.get_by_text("<img src=x").count() >= 3


def test_a_sweep_is_made_and_cancelled(opened, text):
    """The button makes the runs, the claim is judged by them, and a cancelled sweep leaves no mark."""
    page = opened(text, fragment="#step=2")
    assert page.locator("#speed-now").inner_text() == "70", "the step's own speed"
    run, cancel = page.get_by_role("button", name="Measure them here"), page.get_by_role("button", name="Cancel")
    shows(page, "– not measured yet")
    assert not cancel.is_visible() and not page.locator(".sweep-plot").is_visible()
    run.press("Enter")
    shows(page, "Measured.")
    shows(page, re.compile("slope "))
    mark = page.locator("[data-step='2'] .mark").inner_text()
    assert re.match(r"(✓ holds|✗ not yet) measured .* expected 0.5 to 1.5.*, in a separate short run", mark)
    sources = pages_of(text)["lesson"]["steps"][1]["sweep"]["sources"]
    drawn = page.evaluate(
        "(id) => [...Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one).data.x]", sources[0][2]
    )
    assert drawn == [0.1, 0.2, 0.4]
    page.locator("#next").click()
    shows(page, "Words alone.")
    page.locator("#back").click()
    shows(page, "– not measured yet")


@pytest.mark.parametrize(("size", "theme"), [((390, 844), "dark"), ((1280, 720), "light")])
def test_axe_finds_nothing_in_marks(opened, text, size, theme):
    """With marks of both kinds, an answer that is wrong, and a sweep; nothing is wider than the screen."""
    page = opened(text, size=size, theme=theme, fragment="#answers=1.1")
    page.wait_for_function(MOVES)
    page.locator("#speed").press("End")
    shows(page, "Of 2 claims 1 met, 1 not met.")
    check_width(page)
    page.evaluate(AXE)
    for looked in ("marks", "sweep"):
        found = page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
        assert [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]] == []
        if looked == "marks":
            page.locator("#next").click()
            page.get_by_role("button", name="Measure them here").click()
            shows(page, "Measured.")
            check_width(page)


def test_the_start_page_says_what_is_done(opened, lesson, tmp_path, monkeypatch):
    """The results of each lesson, from the browser's own storage."""
    monkeypatch.setattr(site.free, "densities", tuple)
    monkeypatch.setattr(site, "_workers", partial(ThreadPoolExecutor, 1))
    write_site([lesson], tmp_path / "site", lambda *_: None)
    page = opened("<!doctype html>")
    page.goto((tmp_path / "site" / "index.html").as_uri())
    assert page.locator("#done-marks").inner_text() == ""
    page.evaluate(
        "([key, text]) => localStorage.setItem(key, text)",
        [STORE, json.dumps({"marks/1": ["right", 2], "marks/3": ["none", 0]})],
    )
    page.reload()
    assert (
        page.locator("#done-marks").inner_text()
        == "2 of 3 steps done · 1 of 1 questions right · 2 of 2 check marks seen"
    )
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [STORE, json.dumps(HOSTILE)])
    page.reload()
    assert page.locator("#done-marks").inner_text() == ""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_start_page_is_dark_where_the_reader_prefers_it(opened, theme):
    """Fails where both themes have one background."""
    page = opened(site._index([], [], 0), theme=theme)
    red = page.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])")
    assert (red < 60) == (theme == "dark")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_pages_without_an_experiment(opened, theme):
    """The start page and the glossary, on a telephone."""
    lessons = list(LESSONS.values())
    for text in (site._index(lessons, [], 0), site._glossary(lessons)):
        page = opened(text, size=(390, 844), theme=theme)
        check_width(page)
        page.evaluate(AXE)
        found = page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
        assert [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]] == []
