"""A live page in a browser: opened from a disk, without a server and without a network."""

import gzip
import re
from dataclasses import replace
from functools import cache
from math import inf
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from PIL import Image

from sgmcmc_lab.app.live_page import document, kinds, lesson_page, live_page
from sgmcmc_lab.lessons import read
from sgmcmc_lab.samplers import Experiment, RunSpec
from sgmcmc_lab.samplers.choices import default_choice
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.own import keep
from sgmcmc_lab.samplers.targets.own import read as read_table
from tests.browser import until
from tests.browser.lab import AXE, check_width, wait_until
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
from tests.helpers.course import LESSONS

LESSON = """+++
title = "A live lesson"
minutes = 1
+++

## One

The energy is $U(\\theta)$.

```toml
views = ["marginal", "ks"]

[experiment]
target = "linear_regression"
lanes = ["sgld(step_size:0.001)", "sgld(step_size:0.002)"]
n_chains = 8
n_steps = 20

[question]
ask = "What is it?"
options = ["This", "That"]
answer = 1
why = "Because of it."
```

## Two

Words alone.
"""


plain_page = cache(few_figures("state", "trace", "marginal", "ks")(live_page))
bare_page = few_figures("marginal")(live_page)
"""A file with one view, for what is not in figures."""


@cache
def made(target="quartic", *lanes):
    make = plain_page if lanes else live_page
    lanes = lanes or (("sgld", "full"), ("sghmc", "gaussian"))
    listed = [{"sampler": sampler, "gradient": gradient} for sampler, gradient in lanes]
    experiment = Experiment.from_dict({"target": target, "lanes": listed, "seed": 3})
    return experiment, make(experiment, title="A <b>bold</b> </script> title\u2028\u202e")


def test_a_file_moves_and_its_numbers_are_the_engines(opened):
    """Two lanes, one with a noisy gradient, from a disk: draws, histogram, KS and its caption as Python has them."""
    experiment, text = made()
    page = opened(text)
    page.wait_for_function(MOVES)
    paused(page)
    assert same_as_python(experiment, page) == []


@pytest.mark.parametrize("fault", ["seed", "parameter", "truth"])
def test_another_number_in_the_file_is_seen(opened, fault):
    """A planted fault: the file has another seed, step size or CDF than the experiment that it is compared with."""
    experiment, text = made()
    pages = pages_of(text)
    (step,), (target,) = pages["steps"], pages["targets"]
    if fault == "seed":
        step["seed"] = 4
    elif fault == "parameter":
        step["choices"][0]["first"]["step_size"] = 0.021
    else:
        target["base"]["truth"]["ks_columns"] = [1, 1]
    text = with_pages(text, pages)
    assert text != made()[1]
    page = opened(text)
    page.wait_for_function(MOVES)
    paused(page)
    assert same_as_python(experiment, page)


def rearranged(page):
    """HMC as a third lane, then NUTS in its stead, and the first lane away."""
    page.wait_for_function(MOVES)
    page.locator("#add").click()
    page.locator("#kind-2").select_option(label="NUTS")
    page.locator("section.lane-0 button").click()
    page.wait_for_function(MOVES)
    paused(page)


def test_lanes_are_added_changed_and_removed(opened):
    """A planted fault: beside HMC the page's NUTS is seen to be another."""
    experiment, text = made()
    page = opened(text)
    rearranged(page)
    lanes = [{"sampler": "sghmc", "gradient": "gaussian"}, {"sampler": "nuts"}]
    left = Experiment.from_dict({**experiment.to_dict(), "lanes": lanes})
    assert same_as_python(left, page) == []
    other = Experiment.from_dict({**experiment.to_dict(), "lanes": [lanes[0], {"sampler": "hmc"}]})
    assert same_as_python(other, page)
    shown = page.locator("#caption-ks li").all_inner_texts()
    assert [line.split()[0] for line in shown] == ["SGHMC", "NUTS"]
    query = urlsplit(page.locator("#open").get_attribute("href")).query
    reopened, problems = Experiment.from_query(query, experiment)
    assert not problems
    assert [lane.sampler.key for lane in reopened.lanes] == ["sghmc", "nuts"]
    again = opened(text, fragment=page.evaluate("location.hash"))
    again.wait_for_function(MOVES)
    paused(again)
    assert same_as_python(left, again) == []


def test_another_temperature_has_its_own_draws_and_answers(opened):
    """The temperature of the file, and that of the slider. A planted fault: they are not those of T = 1."""
    hot = Experiment.from_dict({"target": "quartic", "lanes": [{"sampler": "sgld"}], "seed": 3, "temperature": 2.0})
    text = few_figures("marginal", "ks", stops=True)(live_page)(hot, shown=["marginal", "ks"])
    page = opened(text, fragment="#views=marginal,ks&speed=100")
    page.wait_for_function(MOVES)
    paused(page)
    assert same_as_python(hot, page) == []
    assert same_as_python(replace(hot, temperature=1.0), page)
    assert "temperature=2" in page.locator("#open").get_attribute("href")
    page.locator("#play").click()
    slider = page.locator("#target-temperature")
    slider.focus()
    slider.press("ArrowRight")
    page.locator("#reset").click()
    page.wait_for_function(MOVES)
    paused(page)
    assert same_as_python(replace(hot, temperature=4.0), page) == []
    assert "temperature=4" in page.locator("#open").get_attribute("href")


def test_a_targets_parameter_moves_the_chains_and_the_picture(opened):
    """The chains, their distance and the drawn density are those of the new target, and then of the first again.

    A planted fault: they are not those of another value.
    """
    lanes = [{"sampler": "sgld"}, {"sampler": "sghmc", "gradient": "gaussian"}]
    experiment = Experiment.from_dict({"target": "gaussian", "lanes": lanes, "seed": 3})
    text = few_figures("marginal", "ks", stops=True)(live_page)(experiment, shown=["marginal", "ks"])
    page = opened(text, fragment="#views=marginal,ks&speed=100")
    page.wait_for_function(MOVES)
    slider = page.locator("#target-sd")
    slider.focus()
    slider.press("ArrowRight")
    sd = float(page.locator("#target-controls output").nth(1).inner_text())
    assert sd > 1
    page.locator("#reset").click()
    page.wait_for_function(MOVES)
    paused(page)
    target = {"key": "gaussian", "params": {"mean": 0.0, "sd": sd}}
    moved = Experiment.from_dict({**experiment.to_dict(), "target": target})
    assert same_as_python(moved, page) == []
    other = {"key": "gaussian", "params": {"mean": 0.0, "sd": 1.01 * sd}}
    assert same_as_python(Experiment.from_dict({**experiment.to_dict(), "target": other}), page)
    drawn = "() => Bokeh.documents.flatMap((one) => one.roots()).flatMap((root) => [...root.references()]).filter((one) => one.type === 'ColumnDataSource').map((one) => one.data).filter(({x, y}) => x && y && x.length > 50).map(({x, y}) => [[...x], [...y]])"
    curves = [np.array(curve) for curve in page.evaluate(drawn)]
    assert any(np.allclose(y, np.exp(-((x / sd) ** 2) / 2) / sd / np.sqrt(2 * np.pi), atol=2e-3) for x, y in curves)
    slider.press("ArrowLeft")
    page.wait_for_function(SETTLED)
    curves = [np.array(curve) for curve in page.evaluate(drawn)]
    assert any(np.allclose(y, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), atol=2e-3) for x, y in curves)
    assert "target=gaussian(mean:0;sd:1)&" in page.evaluate("location.hash")


HOLD = """<script>
window.Worker = class extends Worker {
  set onmessage(hear) { super.onmessage = (event) => { if (window.held && (window.only ?? event.data.type) === event.data.type) window.held.push(() => hear(event)); else hear(event) } }
}
</script>"""
"""Messages of the worker, or those of one type, wait while there is a list for them."""
RELEASE = "() => { const late = window.held; window.held = null; for (const hear of late) hear() }"
LATE = {
    "": ("", ""),
    "no frame is late": ("sequence < messages.begun", "false"),
    "figures keep their points": ("{\nopen()\nlook()\n", "{\nopen()\n"),
}


@pytest.mark.parametrize("fault", LATE)
def test_a_late_frame_is_not_drawn(opened, fault):
    """*Reset* while frames of the old run are on their way: no point of it remains. Two planted faults."""
    right, wrong = LATE[fault]
    assert not fault or made()[1].count(right) == 1
    text = re.sub("<meta http-equiv=[^>]*>", HOLD, made()[1]).replace(right, wrong)
    page = opened(text, fragment="#views=ks,trace")
    page.wait_for_function("Number(document.getElementById('steps').textContent.replaceAll(',', '')) > 100")
    page.evaluate("window.held = []")
    page.wait_for_function("window.held.length > 1")
    page.locator("#play").click()
    page.locator("#reset").click()
    page.evaluate(RELEASE)
    page.wait_for_function(SETTLED)
    assert steps(page) == 0
    step = step_of(pages_of(text))
    left = [
        len(sources(page, feeds(step, key))[name][0]) for key, name in (("ks", "lane 0"), ("trace", "lane 0 chain 0"))
    ]
    assert (left == [0, 0]) == (not fault)


@pytest.mark.parametrize("fault", ["", "the number of draws for their weight"])
def test_weights_of_draws_are_counted_said_and_in_the_file(fault, opened, tmp_path):
    """Contour SGLD beside SGLD: histograms and distances are Python's, and the downloaded draws have their weights."""
    right, wrong = ("this.ownWeights ? this._weight :", "false ? this._weight :") if fault else ("", "")
    params = {"step_size": 0.05, "adapt_steps": 40, "n_bins": 12}
    lanes = [{"sampler": {"key": "contour_sgld", "params": params}}, {"sampler": {"key": "sgld"}}]
    experiment = Experiment.from_dict({"target": "double_well", "lanes": lanes, "seed": 3})
    text = plain_page(experiment)
    assert right in text
    text = re.sub("<meta http-equiv=[^>]*>", "", text).replace(right, wrong)
    page = opened(text, fragment="#views=marginal,ks,trace")
    page.wait_for_function("Number(document.getElementById('steps').textContent.replaceAll(',', '')) > 200")
    n = paused(page)
    assert (same_as_python(experiment, page) == []) == (not fault)
    if fault:
        return
    first, second, *_ = page.locator("#caption-trace li").all_inner_texts()
    assert "its draws have weights: no ESS" in first and "ESS" in second and "weights" not in second
    with page.expect_download() as download:
        page.locator("#draws").click()
    download.value.save_as(tmp_path / "draws.csv")
    head, *rows = (tmp_path / "draws.csv").read_text().splitlines()
    assert head.endswith(',"weight"')
    found = np.array([row.rpartition('",')[2].split(",") for row in rows], dtype=float)
    for spec in experiment.runs():
        run = Run(spec)
        run.advance(n)
        kept, weights = run.statistics.history(), run.statistics.history_weights()
        here, found = np.split(found, [weights.size])
        np.testing.assert_allclose(here[:, -1], weights.ravel(), rtol=1e-9)
        np.testing.assert_allclose(here[:, 2:-1], kept.reshape(weights.size, -1), rtol=1e-9)
    assert len(found) == 0


@pytest.mark.parametrize("fault", ["", "new figures lose events of their run"])
def test_a_change_is_shown_when_the_figures_begin_again_before_it_comes(fault, opened):
    """The host posts a recorded change once. The planted fault treats it as a frame."""
    right, wrong = ("message.sequence < messages.opened", "isLate(message)") if fault else ("", "")
    lane = {"sampler": {"key": "sghmc"}, "gradient": {"key": "full"}}
    change = {"step": 40, "sampler": {"key": "sghmc", "params": {"step_size": 0.05}}}
    text = plain_page(Experiment.from_dict({"target": "gaussian", "lanes": [{**lane, "changes": [change]}], "seed": 3}))
    assert not fault or text.count(right) == 1
    page = opened(re.sub("<meta http-equiv=[^>]*>", HOLD, text).replace(right, wrong), still=True)
    page.wait_for_function(SETTLED)
    page.evaluate("[window.held, window.only] = [[], 'changed']")
    page.locator("#play").click()
    page.wait_for_function("window.held.length")
    page.locator("#axis").select_option(index=1)
    page.evaluate(RELEASE)
    paused(page)
    shown = page.locator("#sampler-0-step_size + output, output[for=sampler-0-step_size]")
    assert (shown.inner_text() == "0.05") == (not fault)


def test_changes_on_the_way_are_in_the_file(opened):
    """A recorded run, whose step size changes, has Python's draws after it; one whose target changes is refused."""
    lane = {"sampler": {"key": "sghmc"}, "gradient": {"key": "full"}}
    change = {"step": 40, "sampler": {"key": "sghmc", "params": {"step_size": 0.05}}}
    experiment = Experiment.from_dict({"target": "gaussian", "lanes": [{**lane, "changes": [change]}], "seed": 3})
    page = opened(plain_page(experiment))
    page.wait_for_function("Number(document.getElementById('steps').textContent.replaceAll(',', '')) > 100")
    paused(page)
    assert same_as_python(experiment, page) == []
    without = Experiment.from_dict({"target": "gaussian", "lanes": [lane], "seed": 3})
    assert same_as_python(without, page)
    # Its slider shows the change, until the run begins again; the link is that of the beginning.
    shown = page.locator("#sampler-0-step_size + output, output[for=sampler-0-step_size]")
    shown.filter(has_text="0.05").wait_for()
    assert '"step_size":0.05' not in unquote(page.evaluate("location.hash"))
    page.locator("#reset").click()
    page.wait_for_function(SETTLED)
    assert shown.inner_text() != "0.05"
    change["target"] = {"key": "gaussian", "params": {"mean": 1.0, "sd": 2.0}}
    with pytest.raises(SpecError, match="step 40"):
        plain_page(Experiment.from_dict({"target": "gaussian", "lanes": [{**lane, "changes": [change]}]}))


def test_the_formulas_follow_the_accept_step(opened):
    """Planted fault: the file has the formulas of its first values alone."""
    _, text = made("gaussian", ("hmc", "full"))
    pages = pages_of(text)
    kind = pages["steps"][0]["kinds"][0]
    # With the adaptation, and without the accept step with and without it; the first values come last.
    assert ["accept" in formulas for _, formulas in kind["equations"]] == [True, False, False, True]
    kind["equations"] = kind["equations"][-1:]
    for content, follows in ((text, True), (with_pages(text, pages), False)):
        page = opened(content, still=True)
        page.wait_for_function(SETTLED)
        formulas, accept = page.locator(".equations").first, page.locator("#sampler-0-accept")
        assert "accept" in formulas.inner_text()
        accept.uncheck()
        assert ("accept" not in formulas.inner_text()) == follows
        accept.check()
        assert "accept" in formulas.inner_text()


def test_adapting_steps_are_burn_in_on_the_page(opened):
    """Planted fault: a sampler whose description has none."""
    hmc = {"key": "hmc", "params": {"adapt_steps": 300}}
    text = bare_page(Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": hmc}, {"sampler": "sgld"}]}))
    pages = pages_of(text)
    first = pages["steps"][0]["choices"][0]["base"]
    assert first["steps_that_adapt"] == 300
    first["steps_that_adapt"] = 0
    for content, words in (
        (text, "of 300 burn-in steps: no draws are counted yet"),
        (with_pages(text, pages), ""),
    ):
        page = opened(content, still=True)
        page.wait_for_function(SETTLED)
        assert page.locator("#burn-in").inner_text() == words


def test_a_drag_throws_the_chains(opened):
    """The start and the momentum of a drag are in the link, and what runs is what Python makes of that link."""
    experiment, text = made("gaussian", ("sghmc", "full"))
    page = opened(text, fragment="#views=state,marginal,ks")
    page.wait_for_function(MOVES)
    box = page.locator("#plot-state").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 290, box["y"] + 140, steps=4)
    page.mouse.up()
    page.wait_for_function(MOVES)
    paused(page)
    query = urlsplit(page.locator("#open").get_attribute("href")).query
    thrown, problems = Experiment.from_query(query, experiment)
    assert not problems
    assert thrown.momentum[0] > 0
    assert same_as_python(thrown, page) == []
    assert same_as_python(replace(thrown, momentum=()), page)


def test_a_view_that_needs_python_stands_still(opened):
    """It has its captions and says that it does not move; with other samplers it is away, for it is not of them."""
    experiment = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})
    page = opened(plain_page(experiment, shown=("state", "order")))
    page.wait_for_function(MOVES)
    page.get_by_text("this view needs Python and does not move").wait_for()
    assert "slope" in page.locator("#caption-order").inner_text()
    assert page.locator("#plot-order canvas").count()
    page.locator("#add").click()
    page.wait_for_function("document.getElementById('view-order') === null")
    page.wait_for_function(MOVES)
    assert not page.locator("#problem").is_visible()


def test_a_picture_is_saved(opened):
    """It is as large as the views, and not of one colour."""
    page = opened(made()[1], still=True)
    page.wait_for_function(SETTLED)
    with page.expect_download() as waiting:
        page.locator("#picture").click()
    picture = np.asarray(Image.open(waiting.value.path()).convert("RGB"))
    assert picture.shape[1] > 1000
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20


def test_a_picture_of_the_target_stands_before_any_script(opened):
    """The figures take its place, where WebAssembly is refused, too."""
    _, text = made()
    assert text.index("The exact density of Correlated quartic") < text.index("<script")
    refused = text.replace("WebAssembly.instantiate", "WebAssembly.refuse")
    page = opened(re.sub("<meta http-equiv=[^>]*>", "", refused))
    page.get_by_text("refuses WebAssembly").wait_for()
    page.locator("#plot-ks .bk-Figure").wait_for()
    assert page.locator("#views .plot > svg").count() == 0
    page = opened(text)
    page.wait_for_function(MOVES)
    assert page.locator("#views .plot > svg").count() == 0


def test_a_slider_moves_the_run_and_the_link_keeps_it(opened):
    """The link has the value of the step-size slider, and a page opened by the link begins there."""
    _, text = made()
    page = opened(text, still=True)
    page.wait_for_function(SETTLED)
    slider = page.locator("#sampler-0-step_size")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowRight")
    value = page.locator("section.lane-0 output").first.inner_text()
    assert float(value) > 0.02
    fragment = page.evaluate("location.hash")
    query = urlsplit(page.locator("#open").get_attribute("href")).query
    reopened, problems = Experiment.from_query(
        query, Experiment.from_dict({"target": "gamma", "lanes": [{"sampler": "cir"}]})
    )
    assert not problems
    assert reopened.lanes[0].sampler.values()["step_size"] == float(value)
    assert (reopened.target.key, reopened.seed, reopened.lanes[1].gradient.key) == ("quartic", 3, "gaussian")
    page.locator("#seed").click()
    again = opened(text, still=True, fragment=fragment.replace("seed=3", "seed=7"))
    again.wait_for_function(SETTLED)
    assert again.locator("section.lane-0 output").first.inner_text() == value
    assert again.locator("#seed-now").inner_text() == "7"


@pytest.mark.parametrize("fault", [None, "lengths", "places"])
def test_a_link_to_the_lab_has_the_whole_experiment(opened, fault):
    """Planted faults: a file that does not know its burn-in, or its start."""
    lanes = [{"sampler": "sgld", "schedule": "polynomial"}, {"sampler": "sghmc", "gradient": "gaussian"}]
    settings = {"seed": 5, "n_chains": 6, "n_steps": 500, "burn_in": 30, "thin": 2, "temperature": 2.0}
    experiment = Experiment.from_dict({"target": "quartic", "lanes": lanes, "start": [1.0, -1.0], **settings})
    text = plain_page(experiment)
    if fault:
        pages = pages_of(text)
        pages["steps"][0][fault] = {}
        text = with_pages(text, pages)
    page = opened(text, still=True)
    page.wait_for_function(SETTLED)
    query = urlsplit(page.locator("#open").get_attribute("href")).query
    reopened, problems = Experiment.from_query(
        query, Experiment.from_dict({"target": "gamma", "lanes": [{"sampler": "cir"}]})
    )
    assert not problems
    assert (reopened == experiment) == (fault is None)


@pytest.mark.parametrize("fault", [False, True])
def test_two_lanes_of_one_sampler_stay_two(opened, fault):
    """The first lane is removed, and the link of the second one keeps its schedule. Planted fault: a file whose lanes
    differ in nothing that their link says."""
    lanes = [{"sampler": "sgld"}, {"sampler": "sgld", "schedule": "polynomial"}]
    text = bare_page(Experiment.from_dict({"target": "gaussian", "lanes": lanes}))
    if fault:
        pages = pages_of(text)
        pages["steps"][0]["kinds"][1]["schedule"] = ""
        text = with_pages(text, pages)
    page = opened(text, still=True)
    page.wait_for_function(SETTLED)
    page.locator("section.lane-0 button").click()
    page.wait_for_function(SETTLED)
    again = opened(text, still=True, fragment=page.evaluate("location.hash"))
    again.wait_for_function(SETTLED)
    assert again.locator("#problem").inner_text() == ""
    assert ("polynomial" in again.evaluate("location.hash")) == (not fault)
    assert ("\U0001d6fe" in again.locator(".equations").inner_text()) == (not fault)


def test_of_the_parameters_with_stops_one_differs(opened):
    """HMC's steps and its adaptation have a description each, and none together: a link's second one is refused, and
    a slider puts the other one back."""
    text = bare_page(Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "hmc"}]}))
    (hmc,) = (one for one in pages_of(text)["steps"][0]["choices"] if one["key"] == "hmc")
    leaps, adapting = (
        [value for value, _ in hmc["variations"][name]["stops"]] for name in ("n_leapfrog", "adapt_steps")
    )
    page = opened(text, still=True, fragment=f"#lane=hmc(n_leapfrog:{leaps[-1]};adapt_steps:{adapting[-1]})~full")
    page.wait_for_function(SETTLED)
    assert "settings of the link: adapt_steps." in page.locator("#problem").inner_text()
    shown = page.locator("section.lane-0 output")
    assert shown.all_inner_texts()[1:] == [str(leaps[-1]), "0"]
    page.locator("#sampler-0-adapt_steps").press("End")
    assert shown.all_inner_texts()[1:] == [str(hmc["first"]["n_leapfrog"]), str(adapting[-1])]
    assert page.evaluate("document.activeElement.id") == "sampler-0-adapt_steps"


BROKEN = [
    ("seed=-1&views=nothing&axis=__proto__&start=1,2,3&lane=null", ("seed", "axis", "start", "sampler", "views")),
    ("seed=1e99", ("seed",)),
    ("n_chains=100000000", ("n_chains",)),
    ("views=constructor", ("views",)),
    ("start=1e300,0", ("start",)),
    ("lane=%7B", ("sampler",)),
    ("lane=constructor(x:1)~full", ("sampler",)),
    ("lane=sgld~minibatch", ("gradient",)),
    ("lane=sgld~full~polynomial", ("schedule",)),
    ("lane0={}", ("lane0",)),
    ("lane=sgld&lane=hmc&lane=nuts&lane=mala", ("lanes",)),
    ("temperature=3", ("temperature",)),
    ("target=quartic(constructor:1;__proto__:2)", ("constructor", "__proto__")),
    ("v=1", ("v",)),
    ("n_steps=7", ("n_steps",)),
    ("momentum=%00", ("momentum",)),
    ("target=[%E2%80%A8", ("target",)),
    ("lane=sgld(step_size:1e9)", ("step_size",)),
    ("lane=sgld(__proto__:1;x:2)", ("__proto__", "x")),
    ("speed=0.5", ("speed",)),
]


def follow(page, fragment):
    """Go to another link of the page that is open."""
    page.evaluate("document.getElementById('problem').textContent = ''")
    page.evaluate("(fragment) => { location.hash = fragment }", fragment)
    page.wait_for_function("document.getElementById('problem').textContent !== ''")


def test_a_broken_link_is_one_sentence(opened):
    """Values that this file cannot have are named, and the page runs as it would without them: one page opens with the
    first link, and follows the others, which it reads in the same way.
    """
    _, text = made()
    page = opened(text, fragment="#" + BROKEN[0][0])
    for fragment, named in BROKEN:
        if fragment != BROKEN[0][0]:
            follow(page, fragment)
        frames = page.evaluate("Number(document.documentElement.dataset.frames ?? 0)")
        page.wait_for_function(f"{MOVES} && Number(document.documentElement.dataset.frames) > {frames + 2}")
        said = page.locator("#problem").inner_text()
        start, end = "This file does not have these settings of the link: ", ". All others apply."
        assert said.startswith(start) and said.endswith(end), fragment
        assert said[len(start) : -len(end)] == ", ".join(named), fragment
    follow(page, f"seed={'1' * 9000}")
    assert (
        page.locator("#problem").inner_text() == "This link has more than 8,000 characters. None of its settings apply."
    )


def test_a_title_is_text(opened):
    """A title with markup, an end of a script and a separator of lines is shown as it is."""
    page = opened(made()[1], still=True)
    assert page.locator("h1").inner_text().startswith("A <b>bold</b> </script> title")
    assert page.title().startswith("A <b>bold</b> </script> title")


MARKUP = "</script><b>\u2028\u202e"


def test_a_name_in_a_table_is_text(opened):
    """A column's name has markup, an end of a script, a separator of lines and a change of direction."""
    rows = "\n".join(f"{k},{0.5 * k + k % 3:.1f}" for k in range(1, 21))
    table = keep(read_table({"rows.csv": f"{MARKUP},y\n{rows}".encode()}, two_kinds=False))
    target = {"key": "linear_table", "params": {"table": table.key}}
    experiment = Experiment.from_dict({"target": target, "lanes": [{"sampler": "sgld", "gradient": "full"}]})
    assert any("</script><b>" in column.name for column in experiment.make_target().columns)
    page = opened(plain_page(experiment), still=True)
    page.wait_for_function(SETTLED)
    assert page.evaluate("document.querySelectorAll('#lab b:not([class]):not([id]), body > b').length") == 0
    assert page.locator("#problem").inner_text() == ""
    with page.expect_download() as waiting:
        page.locator("#draws").click()
    assert MARKUP[:12] in waiting.value.path().read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize("policy", ["sandbox", "csp", "csp without wasm"])
def test_in_a_frame(opened, page_log, policy):
    """In a frame without rights it moves; where WebAssembly is refused one sentence says so."""
    _, text = made()
    if policy != "sandbox":
        wasm = " 'wasm-unsafe-eval'" if policy == "csp" else ""
        rule = f"default-src 'none'; script-src 'unsafe-inline'{wasm}; style-src 'unsafe-inline'; worker-src blob:; img-src data: blob:"
        text = text.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{rule}">', 1)
    frame = f'<iframe sandbox="allow-scripts" width="1200" height="700" srcdoc="{text.replace("&", "&amp;").replace(chr(34), "&quot;")}"></iframe>'
    page = opened(f"<!doctype html><meta charset='utf-8'>{frame}")
    inner = page.frame_locator("iframe")
    if policy == "csp without wasm":
        inner.get_by_text("refuses WebAssembly").wait_for()
        page_log.errors.clear()
    else:
        inner.locator("html[data-frames]").wait_for(state="attached")
        page.wait_for_function("true")
        frame = page.frames[1]
        until(frame, MOVES)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_telephone(opened, theme):
    """Nothing is wider than the screen, and a picture and the first slider are on it together."""
    page = opened(made()[1], size=(390, 844), theme=theme)
    page.wait_for_function(MOVES)
    check_width(page)
    picture, slider = page.locator("#plot-state").bounding_box(), page.locator("#sampler-0-step_size").bounding_box()
    assert picture["y"] >= 0 and slider["y"] + slider["height"] <= 844
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    figure = page.evaluate("Bokeh.documents[0].roots()[0].background_fill_color")
    assert (colour, figure) == (
        ("rgb(255, 255, 255)", "#ffffff") if theme == "light" else ("rgb(27, 32, 39)", "#1b2027")
    )


@pytest.mark.parametrize(
    ("most", "size", "fits"),
    [
        (kinds.MOST_LETTERS, 1.02, True),
        (kinds.MOST_LETTERS, 1.2, True),
        (kinds.MOST_LETTERS, 1.2, False),
        (inf, 1.02, True),
    ],
    ids=["as it is", "another font", "another font as it comes", "in one row"],
)
def test_the_formulas_of_a_step_fit_a_telephone(opened, monkeypatch, most, size, fits):
    """Those of every sampler, without scrolling, also in a font that is a sixth wider. Planted faults: formulas that
    are not cut before a sign, and none that is made smaller."""
    monkeypatch.setattr(kinds, "MOST_LETTERS", most)
    style = (document.ASSETS / "live" / "page.css").read_text(encoding="utf-8")
    style += f".equations math {{ font-size: {size}em }}"
    script = (document.ASSETS / "live" / "formulas.js").read_text(encoding="utf-8").replace("export ", "")
    script += "document.querySelectorAll('.equations').forEach(fit)" if fits else ""
    spec = RunSpec.of("gaussian", "sgld")
    target = spec.make_target()
    formulas = {}
    for key in SAMPLERS:
        choice = default_choice(SAMPLERS, key)
        formulas[key] = kinds._equations(replace(spec, sampler=choice), target, choice.values())
    lanes = "".join(
        f"<section class='lane lane-0'><div class='equations' id='{key}'>{formula}</div></section>"
        for key, listed in formulas.items()
        for _, formula in listed
    )
    page = opened(
        f"<!doctype html><meta charset='utf-8'><style>{style}</style><main>{lanes}</main><script>{script}</script>",
        size=(390, 844),
    )
    wide = page.evaluate(
        "[...document.querySelectorAll('.equations')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id)"
    )
    assert bool(wide) == (most == inf or not fits), wide


def test_a_lesson_has_its_text_before_any_script_and_its_steps(opened, tmp_path):
    """The question is asked, its answer is told after it, and the next step goes on with the experiment."""
    (tmp_path / "live.md").write_text(LESSON, encoding="utf-8")
    text = lesson_page(read(tmp_path / "live.md"))
    assert text.index("Words alone.") < text.index("<script")
    page = opened(text)
    page.get_by_text("The experiment waits for your answer.").wait_for()
    assert page.locator("math").first.is_visible()
    assert not page.get_by_text("Because of it.").is_visible()
    page.get_by_text("This", exact=True).click()
    page.wait_for_function(MOVES)
    assert page.get_by_text("Because of it.").is_visible()
    assert page.locator("#view-marginal").is_visible() and page.locator("#view-ks").is_visible()
    page.locator("#next").click()
    page.get_by_text("Words alone.").wait_for()
    assert not page.get_by_text("The energy is").is_visible()
    assert "step=2" in page.evaluate("location.hash")
    page.locator("#back").click()
    page.wait_for_function(MOVES)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_formula_is_made_smaller_without_a_loop(opened, at_once):
    """Fault: the size is changed while the browser tells of sizes, which it reports as an error of the page."""
    text = made("double_well", ("sghmc", "full"))[1]
    later = "requestAnimationFrame(() => fit(equations))"
    assert later in text
    text = text.replace(later, "fit(equations)") if at_once else text
    listening = "<script>var errors = []; addEventListener('error', (event) => errors.push(event.message))</script>"
    style = "<style>main .equations math { font-size: 1.9em }</style>"
    # Its policy knows the page as it is.
    text = re.sub("<meta http-equiv=[^>]*>", "", text).replace("</head>", f"{listening}{style}</head>", 1)
    page = opened(text, still=True, size=(390, 844))
    page.wait_for_function("[...document.querySelectorAll('.equations math')].some((one) => one.style.fontSize)")
    for width in (360, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(300)
    assert any("ResizeObserver" in one for one in page.evaluate("errors")) == at_once


def test_the_file_is_small():
    """Two lanes and their figures, and a globe, whose density is a large array: 2.2 MB, 1 MB compressed."""
    globe = {"target": "fisher", "lanes": [{"sampler": "sggmc"}, {"sampler": "gmc"}], "seed": 3}
    for text in (made()[1], live_page(Experiment.from_dict(globe))):
        assert len(text.encode()) < 2.2e6
        assert len(gzip.compress(text.encode())) < 1e6
        assert pages_of(text)["steps"][0]["seed"] == 3


@cache
def langevin():
    return lesson_page(LESSONS["langevin"])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(opened, theme):
    """A lesson, with its text, controls and pictures."""
    page = opened(langevin(), still=True, theme=theme)
    page.wait_for_function(SETTLED)
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    assert [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]] == []


def test_a_file_has_a_policy(opened, page_log):
    """Only the file's own scripts run, and nothing is loaded; a planted fault, another letter in a script, stops it."""
    _, text = made()
    assert "script-src 'sha256-" in text and "default-src 'none'" in text
    page = opened(text.replace('"use strict"' + "\n", '"use strict"' + ";\n"))
    refused = lambda: any("Content Security Policy" in error for error in page_log.errors)  # noqa: E731
    wait_until(lambda: page.evaluate("document.readyState === 'complete'") and refused(), "a script that is refused")
    assert page.evaluate("document.documentElement.dataset.frames") is None
    page_log.errors.clear()


COLOURS = """() => Bokeh.documents.flatMap((one) => one.roots()).flatMap((one) => [...one.references()])
  .flatMap((one) => ["background_fill_color", "axis_label_text_color", "line_color", "fill_color", "palette"].map((name) => String(one[name]?.value ?? one[name] ?? "")))"""


def test_a_theme_comes_back(opened):
    """After the dark theme the figures have their first colours, those of a view that was shown meanwhile, too."""
    page = opened(made()[1], still=True)
    page.wait_for_function(SETTLED)
    page.locator("#show-trace").click()
    page.wait_for_function(SETTLED)
    light = page.evaluate(COLOURS)
    page.reload()
    page.wait_for_function(SETTLED)
    page.locator("#show-trace").click()
    page.locator("#theme").click()
    page.locator("#show-trace").click()
    page.wait_for_function(SETTLED)
    dark = page.evaluate(COLOURS)
    assert len(dark) == len(light) and sum(a != b for a, b in zip(light, dark, strict=True)) > 20
    page.locator("#theme").click()
    assert page.evaluate(COLOURS) == light


@pytest.mark.parametrize(
    ("lab", "address", "words"),
    [
        ("", "http://localhost:5006/app", "Open in the lab on this computer"),
        ("http://127.0.0.1:5017/app", "http://127.0.0.1:5017/app", "Open in the lab on this computer"),
        ("https://lab.example/app", "https://lab.example/app", "Open in the lab"),
    ],
)
def test_the_link_to_the_lab_leads_to_the_server_that_made_the_page(opened, lab, address, words):
    """Where no server made it, the link says whose lab it opens."""
    page = opened(bare_page(made()[0], lab=lab))
    link = page.locator("#open")
    wait_until(lambda: link.get_attribute("href"), "a link")
    assert link.get_attribute("href").partition("?")[0] == address
    assert link.inner_text() == words
