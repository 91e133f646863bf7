"""Recordings of runs that need Python on live pages: the recorded moments are those of the run that Python makes."""

import io
from base64 import b64decode
from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from PIL import Image

from sgmcmc_lab.app.live_page import lesson_page, live_page, recording, site
from sgmcmc_lab.lessons.library import find
from sgmcmc_lab.samplers import Experiment
from tests.browser import IDLE
from tests.browser.lab import check_width, wait_until
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


@pytest.fixture(scope="module")
def density_lesson():
    """A step on a density with more data than a page holds, cut short; its histogram begins without a point."""
    found = find("circle", [])
    step = found.steps[3]
    short = replace(step.quick_spec, n_steps=STEPS, burn_in=0, thin=1)
    return replace(found, steps=(replace(step, number=1, quick_spec=short),))


def in_order(figure, at):
    """The columns of a recorded moment with the ids of their models, in the order in which these were made."""
    return sorted((figure["fixed"] | figure["moments"][at]["data"]).items(), key=lambda one: int(one[0].strip("p")))


def shown(page, lesson, there):
    """Differences between the page's figures and the run at the slider's moment; ``there`` is the file's recording."""
    with pytest.MonkeyPatch.context() as patch:
        # No column of the reference is packed.
        patch.setattr(recording, "LONG", 10**9)
        patch.setattr(recording, "MOST_BYTES", 10**9)
        wanted = recording.of_step(lesson, lesson.steps[0])
    at, out = int(page.locator(".recording input").input_value()), []
    for i, (one, other) in enumerate(zip(wanted["figures"], there["figures"], strict=True)):
        moment = one["moments"][at]
        if page.locator(".recording ul.caption").nth(i).locator("li").all_text_contents() != [
            text for text, _ in moment["captions"]
        ]:
            out.append(f"captions of {one['title']}")
        for (_, mine), (id_, columns) in zip(in_order(one, at), in_order(other, at), strict=True):
            found = page.evaluate(COLUMNS, id_)
            plain = {
                name: [None if isinstance(x, float) and isnan(x) else x for x in column]
                for name, column in found.items()
            }
            long = {name for name, column in columns.items() if isinstance(column, dict)}
            near = all(plain[name] == pytest.approx(mine[name], abs=1e-3) for name in long)
            short = [{name: one[name] for name in one if name not in long} for one in (plain, mine)]
            if not near or short[0] != short[1] or columns.keys() != mine.keys():
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


def test_a_density_with_much_data_is_a_recording(opened, density_lesson, monkeypatch):
    """Its views are those of the step, each line of a caption with the sign of its lane."""
    monkeypatch.setattr(site, "MOST_DATA", 100)
    text = lesson_page(density_lesson)
    page, there = open_at(opened, text), pages_of(text)["lesson"]["steps"][0]["recording"]
    assert [one["key"] for one in there["figures"]] == list(density_lesson.steps[0].views)
    page.locator(".recording input").press("End")
    assert page.locator(".recording output").inner_text() == f"step {STEPS}"
    assert shown(page, density_lesson, there) == []
    signs = page.locator(".recording ul.caption").last.locator("li[data-sign]").all_text_contents()
    assert [said.startswith(name) for said, name in zip(signs, density_lesson.steps[0].names, strict=True)] == [
        True
    ] * 2
    page.locator(".recording input").press("Home")
    assert shown(page, density_lesson, there) == []


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


GROUNDS = "() => Bokeh.documents.flatMap((one) => one.roots()).flatMap((root) => [...root.references()]).filter((one) => one.type === 'LinearColorMapper').map((one) => one.palette[0])"


def test_recorded_images_are_of_the_theme(opened, density_lesson, monkeypatch):
    """The map of the torus has the ground of the page, also after a change of the theme."""
    monkeypatch.setattr(site, "MOST_DATA", 100)
    page = open_at(opened, lesson_page(density_lesson), theme="dark")
    assert "#1b2027" in page.evaluate(GROUNDS) and "#ffffff" not in page.evaluate(GROUNDS)
    dark = pixels(page)
    page.locator("#theme").click()
    assert "#ffffff" in page.evaluate(GROUNDS) and "#1b2027" not in page.evaluate(GROUNDS)
    page.wait_for_function(IDLE)
    assert np.median(dark) < 80 and np.median(pixels(page)) > 200


def pixels(page):
    """The first recorded picture."""
    return np.asarray(
        Image.open(io.BytesIO(page.locator(".recording .plot").first.screenshot())).convert("L"), dtype=float
    )


CELLS = """(ids) => ids.flatMap((id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one).data.image.flatMap((one) => [...one]))"""


@pytest.fixture(scope="module")
def model_text():
    """An experiment on a network as one file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "LONGEST_SECONDS", 0.5)
        experiment = Experiment.from_dict({"target": "network", "lanes": [{"sampler": "network_gibbs"}]})
        return live_page(experiment, shown=["graph", "scores", "adjacency"])


def images(node):
    """The sources of images in a figure, by their ids."""
    if isinstance(node, dict):
        if node.get("name") == "ColumnDataSource" and "'image'" in str(node["attributes"]["data"]):
            yield node["id"]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from images(part)


def unpacked(column):
    """The numbers of a packed column."""
    levels = np.frombuffer(b64decode(column["levels"]), dtype="<u2")
    return column["low"] + (column["high"] - column["low"]) * levels / 65_534


def cells(page, text):
    """The cells of a page's images, and those that were recorded for the moment on its slider."""
    listed = pages_of(text)["lesson"]["steps"][0]["recording"]["figures"]
    at = int(page.locator(".recording input").input_value())
    (figure,) = (one for one in listed if one["title"] == "Edge probabilities")
    ids = list(images(figure["figure"]))
    held = figure["fixed"] | figure["moments"][at]["data"]
    recorded = [unpacked(column["value"]) for column in held.values() if set(column) == {"value"}]
    return page.evaluate(CELLS, ids), recorded


def test_an_experiment_on_a_model_is_a_recording(opened, model_text):
    """Its images need code of ``CustomJS``; the file's policy allows only the functions in the file."""
    page = opened(model_text)
    page.get_by_text("A recording of the first").wait_for()
    # It is played once.
    page.wait_for_function("document.querySelector('.recorded-play').textContent === 'Pause'")
    page.wait_for_function("document.querySelector('.recorded-play').textContent === 'Play'")
    assert page.locator(".recording figcaption b").all_inner_texts() == [
        "Network",
        "Held-out AUC",
        "Edge probabilities",
    ]
    assert not page.locator("#lab").is_visible() and page.locator("#problem").inner_text() == ""
    drawn, recorded = cells(page, model_text)
    assert sorted(drawn) == pytest.approx(sorted(x for column in recorded for x in column), rel=1e-6) and any(drawn)
    assert page.locator(".recording input").input_value() == page.locator(".recording input").get_attribute("max")
    # The methods' captions have the colours of their curves.
    assert page.locator(".recording ul.caption").nth(1).locator("li").first.get_attribute("data-lane") == "0"
    assert page.locator(".recording").bounding_box()["x"] < 40, "no empty column at the left"


def test_a_recording_without_its_functions_is_seen(opened, model_text, page_log):
    """A planted fault: the file lacks the script with the functions."""
    text = model_text.replace("window.Function = new Proxy", "window.Forgotten = new Proxy")
    assert text != model_text
    opened(text).locator(".recording figcaption b").first.wait_for()
    wait_until(lambda: page_log.errors, "the browser's refusal")
    page_log.errors.clear()


def test_views_that_are_too_large_are_named():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "LONGEST_SECONDS", 0.1)
        patch.setattr(recording, "MOST_BYTES", 30_000)
        experiment = Experiment.from_dict({"target": "network", "lanes": [{"sampler": "network_gibbs"}]})
        text = live_page(experiment, shown=["scores", "adjacency"])
    assert "Too large to record: Edge probabilities." in text
