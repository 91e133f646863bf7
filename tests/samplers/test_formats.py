"""Links and saved files of every version so far open for ever, as what they were."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons.library import load_all
from sgmcmc_lab.samplers import Experiment, migrations
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.migrations import VERSION
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

FOLDER = Path(__file__).parent / "formats"
STORED = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
"""Written by the code of its time, and never changed: links with what they opened, and the text of files."""


def stored(kind):
    return [
        pytest.param(one, id=f"{version}: {one.get('kind', 'link')}, {one['what']}")
        for version, all_ in STORED.items()
        for one in all_[kind]
    ]


def open_link(query):
    """A link of the page of laws: the state, and what is not as it says."""
    state = AppState()
    return state, link.read_query(state, query)


RENAMED = {"methods": ["sampler", "lanes"], "model.graph": ["target.graph"], "seeds": ["n_chains"]}
"""Today's names of the controls that links of earlier versions hide."""


def now_called(hidden):
    return [today for name in hidden for today in RENAMED.get(name, [name])]


def check(one, state, spec, kind):
    """The state is what the link opened at its time; a lesson's own experiment is the lesson's to change."""
    page = one["page"]
    assert {name: value for name, value in state.position.to_fields().items() if name in page["place"]} == page["place"]
    assert [state.dark, state.present, state.hidden] == [page["dark"], page["present"], now_called(page["hidden"])]
    if not page["place"] or f"{kind}=" in one["query"]:
        then = Experiment.from_dict(one["experiment" if kind == "target" else "study"])
        if page["place"]:
            # Where the link does not say how long its runs are, they are as long as the lesson's.
            lesson = load_all([]).lessons[page["place"]["lesson"]].steps[int(page["place"]["step"]) - 1].spec
            lengths = {name: getattr(lesson, name) for name in ("n_steps", "burn_in") if f"{name}=" not in one["query"]}
            then = replace(then, **lengths)
        assert spec == then
        assert state.shown_views() == page["views"]
        own = ("speed", "coordinate") if kind == "target" else ("shown",)
        for name in ("axis", "playing", *own):
            assert getattr(state, name) == page[name], name


@for_each("one", stored("links"))
def test_a_link_of_any_version_opens_what_it_opened(one):
    state, messages = open_link(one["query"])
    if one["page"]["place"] and "target=" not in one["query"]:
        # The lesson may have another experiment; of the link's views the page says which do not fit its target.
        unfit = rf"views = '\w+': it does not fit the target {state.experiment.target.key};"
        messages = [message for message in messages if not re.match(unfit, message)]
    assert messages == []
    check(one, state, state.experiment, "target")


@for_each("one", stored("studies"))
def test_a_link_of_a_study_of_any_version_opens_what_it_opened(one):
    state, messages = open_link(one["query"])
    assert messages == []
    # The number of runs was the page's own, before it was the experiment's.
    n_chains = one["page"].get("seeds", 1)
    check(one, state, replace(state.experiment, n_chains=1), "model")
    assert state.experiment.n_chains == n_chains


@for_each("one", stored("files"))
def test_a_file_of_any_version_holds_what_it_held(one):
    """Every value that the file names is in what is read from it."""
    text = one["text"]
    if one["kind"] == "program":
        text = re.search(r'EXPERIMENT = r"""\n(.*)\n"""', text, re.DOTALL)[1]
    reader = RunSpec if one["kind"] == "run" else Experiment
    then = json.loads(text)
    if one["kind"] == "study":
        then["target"] = then.pop("model")
        then["lanes"] = [{"sampler": method} for method in then.pop("methods")]
        if "seeds" in then:
            then["n_chains"] = then.pop("seeds")
        for lane, n_steps in zip(then["lanes"], then.pop("n_steps", ()), strict=False):
            lane["n_steps"] = n_steps
        for change in then.pop("changes", ()):
            lane = then["lanes"][change["method"] - 1]
            made = {"step": change["step"], "sampler": {"key": lane["sampler"]["key"], "params": change["params"]}}
            lane.setdefault("changes", []).append(made)
    assert holds(reader.from_json(text).to_dict(), then)


def holds(now, then):
    """Whether all that was there is still there; more may be."""
    if isinstance(then, dict):
        return all(name == "version" or (name in now and holds(now[name], value)) for name, value in then.items())
    if isinstance(then, list):
        return len(now) == len(then) and all(map(holds, now, then))
    return bool(now == then)


def test_what_is_written_carries_the_version():
    state = AppState()
    assert f"v={VERSION}&" in link.to_query(state)
    assert link.to_query(state).count("v=") == 1
    study, _ = open_link("?target=network")
    assert f"v={VERSION}&" in link.to_query(study)
    lesson, _ = open_link("?lesson=langevin&step=2")
    assert f"v={VERSION}&" in link.to_query(lesson)
    for text in (state.experiment.to_json(), state.experiment.runs()[0].to_json(), study.experiment.to_json()):
        assert json.loads(text)["version"] == VERSION


def test_a_version_newer_than_ours_is_said_in_one_sentence():
    for query in ("?v=7&views=state", "?v=7&target=network"):
        (message,) = open_link(query)[1]
        assert "version = '7'" in message
        assert f"up to {VERSION}" in message
    for text in (AppState().experiment.to_json(), '{"model": "network", "methods": []}'):
        data = {**json.loads(text), "version": 7}
        with pytest.raises(SpecError, match="version = 7: this lab reads the versions up to"):
            Experiment.from_json(json.dumps(data))


@for_each("version", ["x", "-1", "1.5", "", "9" * 5000])
def test_a_version_that_is_none_is_said(version):
    state, messages = open_link(f"?v={version}&seed=3")
    assert any(message.startswith("version") for message in messages)
    assert state.experiment.seed == 3


def test_a_renamed_field_opens_by_its_migration(monkeypatch):
    """A table with one entry more; without it the link and the file are not what they were."""
    experiment = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}], "seed": 8})
    old_file = experiment.to_json().replace('"seed"', '"origin"')
    old_link = "?" + experiment.to_query().replace("seed=", "origin=") + "&pace=30"
    assert any("origin" in message for message in open_link(old_link)[1])

    names = {"origin": "seed", "pace": "speed"}
    table = migrations.MIGRATIONS
    for kind, rename in (
        ("link", lambda fields: [(names.get(name, name), text) for name, text in fields]),
        ("experiment", lambda data: {names.get(name, name): value for name, value in data.items()}),
    ):
        monkeypatch.setitem(table, kind, {**table[kind], VERSION: rename})
    for module in (f"sgmcmc_lab.samplers.{name}" for name in ("migrations", "reader", "link", "experiment")):
        monkeypatch.setattr(f"{module}.VERSION", VERSION + 1)
    state, messages = open_link(old_link)
    assert messages == []
    assert (state.experiment, state.speed) == (experiment, 30)
    assert Experiment.from_json(old_file) == experiment
