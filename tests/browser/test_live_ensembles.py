"""Ensembles of many chains in a live page: those of Python's views, of the same batches, and their memory."""

import re
import time
from functools import lru_cache
from html import unescape

import numpy as np
import pytest

from sgmcmc_lab.app.live.lanes import scene_of
from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.live_page.document import document
from sgmcmc_lab.app.state import AppState, first_coordinate
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views import mgf as mgf_view
from sgmcmc_lab.app.views import moments as moments_view
from sgmcmc_lab.app.views.base import Frame
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.lanes import Change
from tests import live_memory
from tests.browser import PATIENCE
from tests.browser.live import ENSEMBLES, SETTLED, feeds, few_figures, first_step, sources

SIMPLEX = {"key": "sparse_dirichlet", "params": {"dimension": 5}}
CASES = {
    "gamma": ("gamma", ("cir", "full"), ("exact", "full")),
    "hot": ("gamma", ("cir", "full")),
    "simplex": (SIMPLEX, ("scir", "minibatch"), ("scir", "minibatch_cv"), ("sgrld", "minibatch")),
    "shares": (SIMPLEX, ("sgrld", "minibatch")),
    "lognormal": ("lognormal", ("geometric_ou", "full")),
    "quartic": ("quartic", ("sgld", "full"), ({"key": "sgld", "params": {"step_size": 2.0}}, "full"), ("svgd", "full")),
}
TEMPERATURES = {"hot": 4.0}
FEWER = ("const CHAINS = 20_000", "const CHAINS = 1_500")
"""Fewer chains of the page and of Python, three batches, for tests of all that goes by one batch after the other."""
COMPLETE = """(chains) => [...document.querySelectorAll("#views > figure:not([hidden]) li")]
  .every((line) => !/ starting$| [0-9,]+ chains(,|$)/.test(line.textContent) || line.textContent.includes(` ${chains} chains`))
  && [...document.querySelectorAll("#views > figure:not([hidden]) ul")].every((list) => list.children.length)"""
TITLES = """(ids) => ids
  .map((id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one).text)"""
CHANGE = live_memory.CHANGE


def coordinate_of(experiment):
    """On the simplex a coordinate whose share has a count: a minibatch's estimate of it has a variance."""
    counted = experiment.target.key == "sparse_dirichlet" and len(experiment.lanes) == len(CASES["simplex"]) - 1
    return 2 if counted else first_coordinate(experiment)


@lru_cache(maxsize=len(CASES))
@few_figures(*ENSEMBLES)
def made(name):
    target, *lanes = CASES[name]
    listed = [{"sampler": sampler, "gradient": gradient} for sampler, gradient in lanes]
    settings = {"seed": 5, "temperature": TEMPERATURES.get(name, 1.0)}
    experiment = Experiment.from_dict({"target": target, "lanes": listed, **settings})
    return experiment, document(
        "Ensembles", [AppState(experiment=experiment, coordinate=coordinate_of(experiment))]
    ).text


def keys_of(experiment):
    return [key for key in ENSEMBLES if key in fitting(experiment)]


def planted(text, *faults):
    """The file with other scripts, which its policy does not know."""
    for right, wrong in faults:
        assert right in text
        text = text.replace(right, wrong)
    return re.sub("<meta http-equiv=[^>]*>", "", text)


@pytest.fixture
def fewer(monkeypatch):
    """Python's ensembles are of so many chains as those of a page with :data:`FEWER`."""
    monkeypatch.setattr(moments_view, "CHAINS", 1500)
    monkeypatch.setattr(mgf_view, "CHAINS", 1500)


def shown(opened, text, keys):
    page = opened(text, still=True, fragment=f"#views={','.join(keys)}")
    page.wait_for_function(SETTLED)
    return page


def complete(page, chains="1,500"):
    """Wait until the ensembles have all chains, and let the page draw them afresh: ranges go by what was before."""
    page.wait_for_function(COMPLETE, arg=chains)
    other = "gradients" if page.locator("#axis").input_value() == "steps" else "steps"
    page.locator("#axis").select_option(other)
    page.wait_for_function(SETTLED)


class Python:
    """Python's views of complete ensembles."""

    def __init__(self, experiment, keys, changes=()):
        scene = scene_of(AppState(experiment=experiment, coordinate=coordinate_of(experiment)), None)
        self.records = [LaneRecord(Run(spec)) for spec in experiment.runs()]
        for record, change in zip(self.records, changes, strict=False):
            record.run.change(change)
        frame = Frame(record.frame("steps") for record in self.records)
        self.views = {key: VIEWS[key](scene) for key in keys}
        self.data, self.captions, self.titles = {}, {}, {}
        for key, view in self.views.items():
            while view.background(frame):
                pass
            self.data[key] = view.compute(frame)
            texts = view.captions(frame)
            box = max(texts.values(), key=len)
            self.titles[key] = [text for text in texts.values() if text is not box]
            self.captions[key] = unescape(re.sub("<span[^>]*>.</span>&nbsp;", "", box))


def differences(page, python):
    """The differences between a page and Python's views, by the view and the feed."""
    out, step = set(), first_step(page)
    for key, view in python.views.items():
        found = sources(page, feeds(step, key))
        for name, columns in python.data[key].items():
            for column, drawn, wanted in zip(view.feeds[name].columns, found[name], columns, strict=True):
                a, b = np.array(drawn, dtype=float), np.array(wanted, dtype=float)
                if a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max(initial=0)):
                    out.add((key, name, column))
        if " · ".join(page.locator(f"#caption-{key} li").all_text_contents()) != python.captions[key]:
            out.add((key, "caption"))
        titles = [feed["id"] for feed in feeds(step, key).values() if feed["operation"] == "text"]
        if page.evaluate(TITLES, titles) != python.titles[key]:
            out.add((key, "titles"))
    return out


@lru_cache(maxsize=len(CASES))
def expected(name):
    experiment, _ = made(name)
    return Python(experiment, keys_of(experiment))


@pytest.mark.parametrize("name", CASES)
def test_ensembles_are_pythons(opened, fewer, name):
    """Arrays, ranges, titles and captions of the same batches; lines of theory where Python has some."""
    experiment, text = made(name)
    python = expected(name)
    page = shown(opened, planted(text, FEWER), keys_of(experiment))
    complete(page)
    assert differences(page, python) == set()
    lines = {
        name
        for data in python.data.values()
        for name, columns in data.items()
        if name.startswith("theory") and len(columns[0])
    }
    assert bool(lines) == (name not in ("shares", "quartic"))


def test_what_captions_say():
    """The cases have every reason why a lane, or its line, is not shown."""
    said = " ".join(text for name in CASES for text in expected(name).captions.values())
    for reason in (
        "diverged, not shown",
        "not shown: its chains move each other",
        "not shown: its Σθ has another scale",
        "not shown: its transition is not the process's",
        "no line: control variates",
        "line: theory",
        "line: the discretised chain's",
    ):
        assert reason in said


def test_a_whole_ensemble_is_pythons(opened):
    """All batches of a file as it is."""
    experiment, text = made("gamma")
    page = shown(opened, text, ["moments", "mgf"])
    complete(page, "20,000")
    assert differences(page, Python(experiment, ["moments", "mgf"])) == set()


SEED = ("description.seed * 1000 + this.batches", "description.seed * 1000 + this.batches + 1")
STEP = ("h: sampler.step_size", "h: 1.01 * sampler.step_size")
UNIT = ("unit = params[2 * d] ?? 1", "unit = 1")
NOISE = ("p * (1 - p)", "p * (1 - 2 * p)")
SHARED = ("simplex && !lanes.some(", "simplex && lanes.some(")
VARIATES = ("if (gradient.control_variates) return", "if (!gradient) return")


@pytest.mark.parametrize(
    ("name", "fault", "wrong"),
    [
        ("simplex", SEED, {("moments", "lane 0", "mean"), ("moments", "lane 1", "variance"), ("mgf", "lane 1 0", "y"), ("mgf", "lane 2 1", "high")}),
        ("simplex", STEP, {("moments", "theory 0", "variance"), ("moments", "theory 1", "variance"), ("mgf", "theory 0 0", "y"), ("mgf", "theory 2 0", "y")}),
        ("simplex", NOISE, {("moments", "theory 0", "variance")}), ("gamma", STEP, {("moments", "theory 0", "variance"), ("mgf", "theory 0 0", "y")}),
        ("hot", UNIT, {("moments", "theory 0", "variance"), ("mgf", "theory 0 0", "y")}),
        ("simplex", VARIATES, {("mgf", "theory 1 1", "y"), ("mgf", "caption")}),
        ("shares", SHARED, {("moments", "titles"), ("moments", "exact", "mean"), ("moments", "caption")}),
        ("lognormal", SEED, {("moments", "lane 0", "mean")}),
    ],
)  # fmt: skip
def test_another_ensemble_is_seen(opened, fewer, name, fault, wrong):
    """Planted faults: seeds of other batches, theory of another h or T, another name, a line where there is none."""
    experiment, text = made(name)
    page = shown(opened, planted(text, FEWER, fault), keys_of(experiment))
    complete(page)
    found = differences(page, expected(name))
    assert wrong <= found
    if fault in (STEP, UNIT, VARIATES):
        assert not any("lane" in part[1] for part in found)


def moved(page, experiment):
    """Other values of the first lane's step size and of the second's batch, in the page and in Python's runs."""
    changes = []
    for i, (slider, name) in enumerate((("sampler", "step_size"), ("gradient", "batch_size"))):
        page.evaluate(CHANGE, [f"{slider}-{i}-{name}", "90"])
        value = float(page.locator(f"output[for={slider}-{i}-{name}]").text_content())
        lane = experiment.lanes[i]
        sampler, gradient = lane.sampler, lane.gradient
        if slider == "sampler":
            sampler = sampler._replace(params=tuple({**sampler.values(), name: value}.items()))
        else:
            gradient = gradient._replace(params=tuple({**gradient.values(), name: int(value)}.items()))
        changes.append(Change(0, sampler, gradient))
    page.wait_for_function(SETTLED)
    return changes


def after_sliders(opened, *faults):
    experiment, text = made("simplex")
    page = shown(opened, planted(text, FEWER, *faults), ENSEMBLES)
    page.wait_for_function(COMPLETE, arg="1,500")
    changes = moved(page, experiment)
    complete(page)
    return differences(page, Python(experiment, ENSEMBLES, changes))


def test_a_slider_begins_another_ensemble(opened, fewer):
    """Chains and lines are those of the new values; a planted fault, an ensemble that goes on, is seen."""
    assert after_sliders(opened) == set()
    found = after_sliders(opened, ("!one || !same(one.key, key)", "!one"))
    assert {("moments", "lane 0", "mean"), ("moments", "theory 0", "mean"), ("mgf", "lane 1 1", "y")} <= found


COUNTED = """
const {instantiate} = WebAssembly
window.held = new Set()
window.asked = 0
WebAssembly.instantiate = async (...all) => {
  const {instance} = await instantiate.apply(WebAssembly, all)
  const {malloc, free} = instance.exports
  const counted = {
    malloc: (n) => { const at = malloc(n); held.add(at); asked += 1; return at },
    free: (at) => { held.delete(at); free(at) },
  }
  return {instance: {exports: {...instance.exports, ...counted}}}
}
"""
"""The parts of the engine's memory that are given out, and how many were asked for."""
BEGUN = "[...document.querySelectorAll('#caption-moments li')].some((line) => / [1-9][0-9,]* chains/.test(line.textContent))"

GROWS = "(n) => asked > n"
HELD = """() => held.size > before
  && document.querySelector("#caption-moments").textContent.match(/ [1-9][0-9,]* chains/g)?.length === 2"""
"""Both lanes of SCIR have a batch, and the next one is being made."""


def begun(new_page, path, text):
    """A page that stands still with a view of ensembles, once they have chains."""
    page = new_page(bypass_csp=True, reduced_motion="reduce")
    page.add_init_script(live_memory.IN_THE_PAGE + COUNTED)
    path.write_text(text, encoding="utf-8")
    page.goto(f"{path.as_uri()}#views=ks")
    page.wait_for_function(SETTLED)
    page.evaluate("window.before = held.size")
    page.locator("#show-moments").click()
    page.wait_for_function(BEGUN)
    return page


def rests(page):
    """Whether no part of memory is asked for any more. The message that the page is hidden may wait for a while."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = page.evaluate("asked")
        page.wait_for_timeout(500)
        if page.evaluate("asked") == before:
            return True
    return False


def hide(page):
    page.locator("#show-moments").click()
    page.wait_for_function(SETTLED)


def seen(page, on):
    """Let the page be in a tab that nobody sees, or in one that is seen again."""
    page.evaluate(
        """(hidden) => {
      Object.defineProperty(document, "hidden", {value: hidden, configurable: true})
      document.dispatchEvent(new Event("visibilitychange"))
    }""",
        not on,
    )


def test_ensembles_rest_where_nobody_sees_them(new_page, tmp_path):
    """Nothing is computed, and a batch that is not complete leaves no memory.

    Planted faults: it goes on where its view is not shown, and its memory stays.
    """
    _, text = made("simplex")
    many = planted(text, ("const CHAINS = 20_000", "const CHAINS = 2e9"))
    file = tmp_path / "file.html"
    page = begun(new_page, file, many)
    page.wait_for_function(GROWS, arg=page.evaluate("asked"))
    seen(page, False)
    assert rests(page)
    seen(page, True)
    page.wait_for_function(GROWS, arg=page.evaluate("asked"))
    hide(page)
    assert rests(page)
    assert page.evaluate("held.size - before") == 0
    # No second batch is ever complete, so that there is memory to give back.
    endless = planted(
        many, ("if (yield* this._batch(run)) {", "if (yield* this._batch(run)) {\n        while (this.batches) yield")
    )
    page = begun(new_page, file, endless)
    page.wait_for_function(HELD)
    hide(page)
    assert page.evaluate("held.size - before") == 0
    page = begun(new_page, file, planted(endless, ("one?.rest()", "one?.version")))
    page.wait_for_function(HELD)
    hide(page)
    assert page.evaluate("held.size - before") > 0
    every = (
        "for (const key of this.shown) {\nconst { background }",
        "for (const key of ['moments']) {\nconst { background }",
    )
    page = begun(new_page, file, planted(many, every))
    hide(page)
    page.wait_for_function(GROWS, arg=page.evaluate("asked"))
