"""The reference of ``bench --live`` for a live page, and the memory that a page uses after an hour."""

import math
from functools import lru_cache

import pytest

from tests import live_memory
from tests.benchmarks import live
from tests.live_memory import FIRST, Memory, problems, rounds

ROUNDS, FRAMES = FIRST + 3, 39
DIFFERENT = """() => parts.frames[(drawn - 1) % parts.frames.length].filter(([feed, arrays]) => {
  const model = models.get(feed.id)
  return model.data && feed.columns.some((name, i) => arrays[i].length && String([...model.data[name]].slice(-arrays[i].length)) !== String(arrays[i]))
}).map(([feed]) => feed.id)"""


@lru_cache(maxsize=1)
def text():
    return live_memory.text_of()


@pytest.fixture
def watched(new_page, tmp_path):
    """Opens a text as a file in a page that is watched; its policy is off, for faults are planted in scripts."""

    def open_text(content, *scripts, width=400):
        page = new_page(often=True, bypass_csp=True, viewport={"width": width, "height": 300})
        for script in (live.WATCH, *scripts):
            page.add_init_script(script)
        file = tmp_path / "file.html"
        file.write_text(content, encoding="utf-8")
        page.goto(file.as_uri())
        return page

    return open_text


# The controls


def recorded(watched):
    """The control of a live page, with its sizes and its recorded frames."""
    page = watched(text())
    page.wait_for_function("window.recorded.length >= 20")
    sizes, frames = page.evaluate(live.SIZES), page.evaluate("window.recorded.slice(0, 20)")
    return sizes, frames, live.control_page(text(), live.CONTROL, sizes, frames)


def test_the_control_draws_the_recorded_arrays_alone(watched):
    """Its figures have the live page's size and the arrays of its last frame; it has no worker and no engine.

    Planted fault: arrays that are not those that it was given.
    """
    sizes, frames, content = recorded(watched)
    assert set(sizes) == {"ks"} and frames[-1]
    page = watched(content)
    page.evaluate("ready")
    assert page.evaluate("window.told.length + window.recorded.length") == 0
    box = page.locator("div").first.bounding_box()
    assert (box["width"], box["height"]) == pytest.approx((sizes["ks"]["width"], sizes["ks"]["height"]), abs=1)
    before = page.evaluate("window.painted")
    page.evaluate("play(1)")
    assert page.evaluate("drawn") > 0 and page.evaluate("window.painted") > before
    assert page.evaluate(DIFFERENT) == []
    page.evaluate("() => { for (const [, arrays] of parts.frames.flat()) arrays[0][0] += 1 }")
    assert page.evaluate(DIFFERENT) != []


def test_only_frames_that_are_drawn_are_counted(watched):
    """A page that stands still paints none, and a moving one no more than it was given: Bokeh may draw two at once."""
    page = watched(text())
    page.wait_for_function("window.recorded.length >= 20")
    page.locator("#play").click()
    page.wait_for_timeout(1000)
    assert live.painted(page, "new Promise((done) => setTimeout(done, 500))") == 0
    page.locator("#play").click()
    drawn, painted = page.evaluate("[Number(document.documentElement.dataset.frames), window.painted]")
    page.wait_for_function(f"Number(document.documentElement.dataset.frames) > {drawn + 10}")
    page.locator("#play").click()
    page.wait_for_timeout(1000)
    now, after = page.evaluate("[Number(document.documentElement.dataset.frames), window.painted]")
    assert 0 < after - painted <= now - drawn + 2


def test_the_engine_of_a_page_is_measured_alone(watched):
    """In a worker that has the page's lanes. Planted fault: without them no step is made."""
    page = watched(text())
    page.wait_for_function("window.told.length >= 3")
    assert [message["type"] for message in page.evaluate("window.told")] == ["load", "prepare", "open"]
    assert page.evaluate(live.ENGINE, 0.05) > 0
    page.evaluate("window.told.pop()")
    page.evaluate(f"window.measured = ({live.ENGINE})(0.05).then(() => 'steps', () => 'none'); 0")
    assert (
        page.evaluate("Promise.race([window.measured, new Promise((done) => setTimeout(done, 1000, 'none'))])")
        == "none"
    )


# The opening


def test_the_host_begins_before_bokehs_script_and_figures_come_one_by_one(watched):
    """The lanes are told to the worker although no BokehJS ever comes. With it, the first frame finds one figure."""
    content = text()
    bokeh = max((found[0] for found in live.SCRIPT.finditer(content) if 'class="bokeh"' in found["kind"]), key=len)
    never = """
      const add = document.addEventListener
      document.addEventListener = (name, ...rest) => name === "DOMContentLoaded" || add.call(document, name, ...rest)
    """
    page = watched(content.replace(bokeh, ""), never)
    page.wait_for_function("window.told.length >= 3")
    assert page.evaluate("typeof Bokeh") == "undefined"
    # The picture of the target stays meanwhile.
    assert page.locator("#views .plot > svg path").count() > 3 and page.locator("#views > figure > svg").count() == 0
    count = """
      window.counted = []
      addEventListener("DOMContentLoaded", () => new MutationObserver(() =>
        window.counted.push([...document.querySelectorAll("figure.view:not([hidden]) .plot")].filter((plot) => plot.firstElementChild).length)
      ).observe(document.documentElement, {attributeFilter: ["data-frames"]}))
    """
    page = watched(live_memory.text_of(shown=("state", "marginal", "ks")), count, width=1280)
    page.wait_for_function("window.counted.at(-1) === 3")
    assert page.evaluate("window.counted[0]") == 1


# Memory


def memories(page):
    return list(rounds(page, ROUNDS, FRAMES))


def test_a_page_that_is_used_for_long_keeps_nothing(watched):
    """Resets, seeds, parameters, chains, axes, themes and views that come and go, in a few rounds."""
    page = watched(text(), live_memory.IN_THE_PAGE + live_memory.ENGINE)
    assert problems(memories(page), ROUNDS * FRAMES, allowed=1.0) == []


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("for (const record of this.records) record.free()", "", "the engine's memory"),
        (
            "const draw = (message) => {",
            "const kept = []\nconst draw = (message) => {\n  kept.push(new Float64Array(20000))",
            "JavaScript's memory",
        ),
        (
            "const line = holder.children[i] ??",
            "for (let j = 0; j < 40; j++) (globalThis.lost ??= []).push(make('li'))\n      const line = holder.children[i] ??",
            "nodes",
        ),
    ],
)
def test_what_a_page_keeps_is_found(watched, right, wrong, named):
    """Planted faults: runs that are not freed, arrays of frames and elements that are kept."""
    assert right in text()
    page = watched(text().replace(right, wrong), live_memory.IN_THE_PAGE + live_memory.ENGINE)
    found = problems(memories(page), ROUNDS * FRAMES, allowed=1.0)
    assert any(problem.startswith(named) for problem in found), found


def test_growth_is_named():
    """Growth of the memory after the first rounds is named, and of the last round alone."""
    still = [Memory(4.0 + k * (k < FIRST), 1.0, 1 << 20, 500, 90) for k in range(5)]
    assert not problems(still)
    grown = [*still, Memory(math.inf, 1.0, 1 << 21, 900, 190)]
    assert [problem.split(":")[0] for problem in problems(grown)] == [
        "the engine's memory",
        "JavaScript's memory",
        "nodes",
        "listeners",
    ]
