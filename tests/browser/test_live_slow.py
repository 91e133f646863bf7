"""Steps in their parts in a live page: what is drawn and said, in which order, and that the run goes on after them."""

from functools import lru_cache

import numpy as np
import pytest

from sgmcmc_lab.app.live_page import document, lesson_page
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.steps import numbers_of
from sgmcmc_lab.lessons.lesson import read
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.step_terms import take_apart
from tests.browser.lab import AXE, SERIOUS, check_width
from tests.browser.live import (
    MOVES,
    SETTLED,
    feeds,
    few_figures,
    pages_of,
    paused,
    same_as_python,
    sources,
    step_of,
    steps,
    with_pages,
)

PRESSES = 9
"""Presses of *Slow step*, and then of *Step*: more than a step of SGHMC has parts."""
DRAWN = """([id, rows]) => {
  const { data } = Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
  return data.x1.length === rows.length && rows.every((x, i) => Math.abs(x - data.x1[i]) < 1e-9)
}"""


@lru_cache(maxsize=1)
@few_figures("state", "phase", "trace", "marginal", "ks", stops=True)
def made():
    """Two lanes, the first one with a momentum and a noisy gradient, and every sampler that may stand in for one."""
    lanes = [{"sampler": "sghmc", "gradient": "gaussian"}, {"sampler": "sgld"}]
    experiment = Experiment.from_dict({"target": "correlated_gaussian", "lanes": lanes, "seed": 3, "n_chains": 4})
    state = AppState(experiment=experiment)
    state.views = ["state", "phase", "marginal", "ks"]
    return experiment, document.document("Steps in their parts", [state], menu=True).text


LESSON = """+++
title = "Arrows"
minutes = 1
summary = "Of a step."
+++

## One

```toml
page = { slow = 2 }
experiment = "target=correlated_gaussian&lane=sgld(step_size:0.02)~full&n_chains=4&n_steps=100"
views = ["state"]
controls = ["speed"]

[question]
ask = "Which?"
options = [{ text = "This", reply = "Not this." }, "That"]
by = "definition"
answer = 2
why = "It is so."
```
"""


def test_a_lesson_begins_with_steps_in_their_parts(opened, tmp_path):
    """Where the step asks for it, an answer begins with them; another speed lets the run move."""
    path = tmp_path / "arrows.md"
    path.write_text(LESSON, encoding="utf-8")
    page = opened(lesson_page(read(path)))
    page.wait_for_function(SETTLED)
    assert said(page) == []
    page.get_by_text("That").click()
    page.get_by_role("button", name="Next part").wait_for()
    assert len(said(page)) == 1 and steps(page) == 0
    page.locator("#speed").press("ArrowRight")
    page.wait_for_function(MOVES)
    assert said(page) == []


@lru_cache(maxsize=2)
def drawn(key):
    """The feeds of a view."""
    return feeds(step_of(pages_of(made()[1])), key)


def said(page):
    return page.locator("#slow-state li").all_inner_texts()


def apart(experiment, page, presses=PRESSES):
    """The differences between a still page at each press and the steps of Python's run."""
    run = Run(experiment.runs()[0])
    step, part, number, out = take_apart(run), 0, 1, []
    page.locator("#slow").click()
    for _ in range(presses):
        texts = [f"{one.name} {numbers_of(one, step, 0)}".strip() for one in step.parts]
        if said(page) != texts[: part + 1]:
            out.append(f"step {number}, part {part}: {said(page)}")
        if f"SGHMC, chain 1: step {number} of" not in page.locator("#slow-state").inner_text():
            out.append(f"step {number} is another")
        for key in ("state", "phase"):
            *_, head, kind, _, begin, end = map(np.array, sources(page, drawn(key))["parts"])
            if len(end) and (end.max() > part + 1 or begin.max() >= part + 1):
                out.append(f"step {number}, part {part}: {key} has later arrows")
            seen = [document.names_of([experiment])[int(k)] for k in kind[head > 0]]
            names = [one.name for one in step.parts[: part + 1]]
            if any(name not in names for name in seen) or (key == "phase" and seen != _moving(step, part)):
                out.append(f"step {number}, part {part}: {key} draws {seen}")
        here = np.ravel(sources(page, drawn("state"))["here"])
        if not np.allclose(here, run.position[0], rtol=1e-3, atol=1e-6):
            out.append(f"step {number} begins at {here}")
        part += 1
        last = part == len(step.parts)
        if page.locator("#step").inner_text() != ("Next step" if last else "Next part"):
            out.append(f"step {number}, part {part}: the button")
        if last:
            run.advance(1)
            step, part, number = take_apart(run), 0, number + 1
        page.locator("#step").click()
    return out


def _moving(step, part):
    """The parts up to this one that move the first coordinate or its momentum, as the phase plane draws them."""
    return [one.name for one in step.parts[: part + 1] if (one.end != one.start)[[0, 2]].any()]


def test_each_part_is_drawn_and_said_in_its_order(opened):
    """Without motion it is there at once; the steps are those of a run in Python, which the kernel makes."""
    experiment, text = made()
    page = opened(text, still=True)
    page.wait_for_function(SETTLED)
    page.wait_for_function("!document.getElementById('slow').hidden")
    assert apart(experiment, page) == []


@pytest.mark.parametrize("fault", ["order of the words", "order of the arrows", "steps"])
def test_another_order_is_seen(opened, fault):
    """Planted faults: the parts are said or drawn in another order, or the steps follow in another one."""
    experiment, text = made()
    pages = pages_of(text)
    recorded = pages["steps"][0]["slow_steps"][0]
    if fault == "order of the words":
        recorded[0]["said"].reverse()
    elif fault == "order of the arrows":
        for step in recorded:
            parts = step["views"]["state"]["feeds"]["parts"], step["views"]["phase"]["feeds"]["parts"]
            for columns in parts:
                n = len(step["said"])
                columns[-2:] = [n - x for x in columns[-1]], [n - x for x in columns[-2]]
    else:
        recorded.reverse()
    page = opened(with_pages(text, pages), still=True)
    page.wait_for_function(SETTLED)
    page.wait_for_function("!document.getElementById('slow').hidden")
    assert apart(experiment, page)


def test_the_run_goes_on_where_it_was(opened):
    """The figures have the run's arrays again, and after *Play* its draws are Python's of so many steps."""
    experiment, text = made()
    page = opened(text)
    page.wait_for_function(MOVES)
    page.wait_for_function("!document.getElementById('slow').hidden")
    n, before = paused(page), {key: sources(page, drawn(key)) for key in ("state", "phase")}
    slow = page.locator("#slow")
    slow.click()
    assert slow.get_attribute("aria-pressed") == "true"
    recorded = pages_of(text)["steps"][0]
    rows = recorded["slow_steps"][0][0]["views"]["phase"]["feeds"]["parts"]
    end, feed = rows[-1], drawn("phase")["parts"]["id"]
    slow.blur()
    for part in range(1, 5):
        page.keyboard.press("s")
        there = [x for x, t in zip(rows[1], end, strict=True) if t <= part + 1]
        page.wait_for_function(DRAWN, [feed, there])
    assert len(there) > 1
    assert steps(page) == n
    during = {key: sources(page, drawn(key)) for key in before}
    assert all(during[key]["heads 0"] != before[key]["heads 0"] and during[key]["path 0"] == [[], []] for key in before)
    slow.click()
    page.wait_for_function(SETTLED)
    assert {key: sources(page, drawn(key)) for key in before} == before
    assert slow.get_attribute("aria-pressed") == "false" and said(page) == []
    slow.click()
    page.locator("#play").click()
    page.wait_for_function(f"Number(document.getElementById('steps').textContent.replaceAll(',', '')) > {n}")
    paused(page)
    assert steps(page) > n and page.locator("#step").inner_text() == "Step"
    assert same_as_python(experiment, page) == []


def test_it_is_there_where_a_view_draws_it(opened):
    """Not in a histogram, nor for another target or sampler than the file's; its other lane has steps of its own."""
    page = opened(made()[1], still=True)
    page.wait_for_function(SETTLED)
    slow = page.locator("#slow")
    slow.click()
    page.locator("#show-state").click()
    page.locator("#show-phase").click()
    page.wait_for_function(SETTLED)
    assert not slow.is_visible() and not page.locator("#slow-state p").count()
    page.locator("#show-state").click()
    page.wait_for_function(SETTLED)
    page.locator("#kind-0").select_option(label="HMC")
    page.wait_for_function(SETTLED)
    assert not slow.is_visible()
    page.locator("#kind-0").select_option(label="SGLD")
    page.locator("#gradient-0").select_option(label="Full")
    page.wait_for_function(SETTLED)
    slow.click()
    assert said(page)[0].startswith("gradient")
    page.locator("#seed").click()
    assert slow.get_attribute("aria-pressed") == "false"
    page.locator("#target-controls input").first.press("End")
    page.wait_for_function(SETTLED)
    assert not slow.is_visible()


def test_on_a_telephone(opened):
    """The words are below the picture, on the same screen, in a live region; axe finds nothing."""
    page = opened(made()[1], size=(390, 844), theme="dark", still=True)
    page.wait_for_function(SETTLED)
    page.locator("#slow").click()
    page.locator("#step").click()
    check_width(page)
    picture, words = page.locator("#plot-state").bounding_box(), page.locator("#slow-state").bounding_box()
    assert picture["y"] + picture["height"] <= words["y"] and words["y"] + words["height"] <= 844
    assert page.locator("#slow-state").get_attribute("aria-live") == "polite"
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")["violations"]
    assert [one["id"] for one in found if one["impact"] in SERIOUS] == []
    assert page.get_by_text("Recorded steps with the file's own settings").is_visible()
