"""A step on a model of data on a live page: the recorded moments are those of the run that Python makes."""

from dataclasses import replace
from math import isnan

import pytest

from app.live_page import lesson_page, recording
from lessons.library import find
from tests.browser.lab import check_width
from tests.browser.live import pages_of, with_pages

STEPS = 12
COLUMNS = "(id) => Object.fromEntries(Object.entries(Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one).data).map(([name, column]) => [name, [...column]]))"


@pytest.fixture(scope="module")
def lesson():
    """A step of the lesson on networks, cut short."""
    found = find("network", [])
    step = found.steps[0]
    lanes = tuple(replace(lane, n_steps=STEPS) for lane in step.quick_spec.lanes)
    return replace(found, steps=(replace(step, quick_spec=replace(step.quick_spec, lanes=lanes)),))


@pytest.fixture(scope="module")
def text(lesson):
    return lesson_page(lesson)


def shown(page, lesson, there):
    """Where the page's figures are not as the run was at the moment on the slider; ``there`` is what the file has."""
    wanted = recording.described(lesson, lesson.steps[0])
    at, out = int(page.locator(".recording input").input_value()), []
    for i, (one, other) in enumerate(zip(wanted["figures"], there["figures"], strict=True)):
        moment = one["moments"][at]
        if page.locator(".recording ul.caption").nth(i).locator("li").all_text_contents() != moment["captions"]:
            out.append(f"captions of {one['title']}")
        for mine, (id_, columns) in zip(moment["data"].values(), other["moments"][at]["data"].items(), strict=True):
            found = page.evaluate(COLUMNS, id_)
            plain = {
                name: [None if isinstance(x, float) and isnan(x) else x for x in column]
                for name, column in found.items()
            }
            if plain != mine or columns.keys() != mine.keys():
                out.append(f"data of {one['title']}")
    return out


def open_at(opened, text, **options):
    page = opened(text, **options)
    page.locator(".skip").click()
    page.locator(".recording input").wait_for()
    page.wait_for_function("document.querySelector('.recording output').textContent")
    return page


def test_a_recording_shows_each_moment(opened, lesson, text):
    """The last moment at first, and others by the keyboard."""
    page, there = open_at(opened, text), pages_of(text)["lesson"]["steps"][0]["recording"]
    assert page.get_by_text("A recording: the step's run at its reduced length").is_visible()
    assert page.locator(".recording output").inner_text() == f"step {STEPS}"
    assert shown(page, lesson, there) == []
    for key, said in (("ArrowLeft", STEPS - 1), ("Home", 0)):
        page.locator(".recording input").press(key)
        assert page.locator(".recording output").inner_text() == f"step {said}"
        assert shown(page, lesson, there) == []


def test_another_moment_is_seen(opened, lesson, text):
    """A planted fault: the moments are in another order."""
    pages = pages_of(text)
    there = pages["lesson"]["steps"][0]["recording"]
    for figure in there["figures"]:
        figure["moments"].reverse()
    page = open_at(opened, with_pages(text, pages))
    assert shown(page, lesson, there)


def test_a_recording_on_a_telephone_in_the_dark(opened, text):
    page = open_at(opened, text, size=(390, 844), theme="dark")
    check_width(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("Bokeh.documents[0].roots()[0].background_fill_color") == "#1b2027"
