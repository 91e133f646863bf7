"""The course as a folder: its files, and what stands in them."""

import copy
import gc
import gzip
import re
from base64 import b64decode
from collections.abc import ValuesView
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.app.live_page import document, free, recording, site, write_site
from sgmcmc_lab.app.live_page.figures import Drawn
from sgmcmc_lab.app.live_page.kinds import Kinds, alone
from sgmcmc_lab.app.live_page.lesson import step_html
from sgmcmc_lab.app.state import AppState, default_views
from sgmcmc_lab.app.views.base import Scene, View
from sgmcmc_lab.lessons.lesson import Lesson, Step
from sgmcmc_lab.lessons.library import load_all
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.cli import main
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.targets.logistic_large import draw_normals
from sgmcmc_lab.samplers.targets.own import keep, read
from tests import sizes
from tests.browser.live import pages_of
from tests.helpers.cases import for_each


@pytest.mark.slow
def test_a_folder_has_its_scripts_once_and_relative_links(tmp_path, monkeypatch):
    """Two lessons, one of them of a step on models of data, and a density without sliders of its own: pages without the
    scripts in them, whose links lead to files of the folder.
    """
    lessons, progress = load_all([]).lessons, []
    monkeypatch.setattr(free, "densities", lambda: ("gaussian",))
    monkeypatch.setattr(document, "_stops", lambda *_: {})
    monkeypatch.setattr(site, "_workers", lambda: ThreadPoolExecutor(1))
    topics = replace(lessons["topics"], steps=lessons["topics"].steps[:1])
    problems = write_site([lessons["langevin"], topics], tmp_path, lambda *said: progress.append(said))
    assert problems == []
    (density,) = tmp_path.glob("gaussian-*.js")
    assert {path.name for path in tmp_path.iterdir()} == {
        density.name,
        "bokeh.js",
        "bokeh-widgets.js",
        "live.js",
        document.engine_file(),
        "index.html",
        "langevin.html",
        "topics.html",
        "lab.html",
        "site.webmanifest",
        "icon.svg",
        "offline.js",
        "glossary.html",
        "langevin-handout.html",
        "topics-handout.html",
    }
    for path in tmp_path.glob("*.html"):
        for link in re.findall(r'<a href="([^"#]*)', path.read_text(encoding="utf-8")):
            assert not link or (tmp_path / link).is_file(), (path.name, link)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="langevin.html"' in index and 'href="topics.html"' in index
    page = (tmp_path / "langevin.html").read_text(encoding="utf-8")
    assert 'src="bokeh.js"' in page and 'src="live.js"' in page and len(page) < 300_000
    assert f'src="{document.engine_file()}"' in page
    kinds = pages_of(page)["steps"][0]["kinds"]
    assert [kind["equations"][-1][1].count("<math") for kind in kinds] == [2, 4], "D, Q and f have rows of their own"
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "").replace(
        "http%3A//www.w3.org", ""
    )
    assert "open the lesson in the lab" in (tmp_path / "topics.html").read_text(encoding="utf-8")
    assert progress[-1][:2] == (2, 3)
    glossary = (tmp_path / "glossary.html").read_text(encoding="utf-8")
    assert 'href="langevin.html#step=' in glossary and "momentum.html" not in glossary
    assert "<script" not in (tmp_path / "topics-handout.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_texts_of_the_start_page_are_texts():
    """A title with markup, an end of a script, a separator of lines and a change of direction."""
    bad = "</script><img src=x>\u2028\u202e"
    page = site._index([replace(load_all([]).lessons["langevin"], title=bad, summary=bad)], [], 0)
    assert "<img" not in page and page.count("&lt;/script&gt;&lt;img src=x&gt;") == 2


@for_each("key", free.densities())
def test_a_density_of_the_free_lab_has_two_samplers(key):
    """They fit it, and the views that its page begins with move."""
    experiment = free.experiment(key)
    assert len(experiment.lanes) == 2
    assert set(default_views(experiment)) <= set(document.LIVE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "number", "name", "label"),
    [
        ("diagnostics-mislead", 1, "radius", None),
        ("riemannian", 3, "scale", None),
        ("control-variates", 3, "items", "Data N"),
    ],
)
def test_a_step_whose_target_moves_has_its_values_or_names_them(key, number, name, label, monkeypatch):
    """Data sets of other sizes have no room in the file. Fails where the page has neither a slider nor the sentence."""
    monkeypatch.setattr(document, "recorded", lambda *_: [])
    monkeypatch.setattr(document, "described", lambda *_: None)
    lesson = load_all([]).lessons[key]
    state = site._state(lesson, lesson.steps[number - 1])
    page = document._page(state, alone(state.experiment, False), False)
    assert "lane1.sampler.step_size" in page["controls"]
    assert (f"target.{name}" in page["controls"]) == (label is None)
    assert len(page["stops"].get(name, {"stops": []})["stops"]) >= 3 * (label is None)
    assert page["elsewhere"] == ([] if label is None else [label])


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "there"), [("sggmc", False), ("exact", True)])
def test_a_file_has_the_table_of_exact_draws_where_a_lane_makes_them(sampler, there):
    """Two megabytes of the posterior of two directions. The other of the two files is the planted fault."""
    experiment = Experiment.from_dict(
        {"target": "mises_posterior", "lanes": [{"sampler": "gmc"}, {"sampler": sampler}]}
    )
    state = AppState(experiment=experiment)
    page = document._page(state, alone(experiment, False), False)
    (n,) = page["target"]["base"]["params"]["shape"]
    assert n == (len(experiment.make_target().packed()) if there else 6 + 2 * 100)


@for_each(("key", "number", "live"), [("own", 1, False), ("gap", 1, False), ("circle", 4, True)])
def test_a_step_is_live_where_its_fit_moves(key, number, live):
    """A fit without a formula is Python's. Fails where a page would lack the picture that its text names."""
    assert site._is_live(load_all([]).lessons[key].steps[number - 1]) == live


def test_a_smooth_array_is_rounded_and_small():
    """To 2⁻⁴⁴ of its range. Planted fault: a digit that the rounding loses."""
    x = np.linspace(-6, 6, 2001)
    array = 3 * special.ndtr(x) - 1

    def restored(packed):
        planes = np.frombuffer(b64decode(packed["data"]), np.uint8).reshape(8, -1)
        folded = planes.T.copy().view("<i8")[:, 0]
        levels = (folded >> 1) ^ -(folded & 1)
        for _ in range(packed["order"]):
            levels = np.cumsum(levels)
        return packed["low"] + (packed["high"] - packed["low"]) * levels / description.LEVELS

    packed = description.smooth(array)
    assert np.abs(restored(packed) - array).max() < 1e-13
    assert len(gzip.compress(b64decode(packed["data"]))) < len(gzip.compress(array.tobytes())) / 6
    assert restored(description.smooth(np.full(9, 0.5))).tolist() == [0.5] * 9
    assert np.abs(restored(description.smooth(array + 1e-12 * (x > 0))) - array).max() > 5e-13


LARGEST = {
    "scir": (document, "smooth", document.packed),
    "control-variates": (description, "without_normals", lambda array, _: document.packed(array)),
    "gamma": (document.Pool, "pooled", lambda _, node: node),
}
"""The lessons with the largest files, each with a fault: arrays that are not rounded, not drawn, not stored once."""


def named(part):
    """The name of an argument of a figure, a recording or a module: it is the same in a second build."""
    match part:
        case Scene():
            values = (getattr(part.target, name) for name, _ in declared(type(part.target)))
            heat = getattr(part.target, "temperature", 1.0)
            return replace(part, target=None), type(part.target), heat, *values
        case AppState():
            return named(part.position.step)
        case list() | tuple() | ValuesView():
            return tuple(map(named, part))
        case Lesson() | View():
            return part.key
        case Step():
            return part.number
    return part


class Once:
    """A function whose results of the first build a second one has again, for the same arguments."""

    def __init__(self, function):
        self.function, self.made, self.second = function, {}, False

    def __call__(self, *given):
        name = tuple(map(named, given))
        if not (self.second and name in self.made):
            self.made[name] = self.function(*given)
        return self.made[name]


@pytest.mark.slow
@pytest.mark.parametrize("key", LARGEST)
def test_the_file_of_a_lesson_is_small(key, monkeypatch):
    """``python -m tests.sizes`` measures those of all lessons. The faults are planted: their files have the figures,
    the recordings and the module of the first one, which are the same."""
    lesson, parts = load_all([]).lessons[key], []
    for owner, name in (
        (Drawn, "of"),
        (document, "recorded"),
        (document, "described"),
        (document, "module"),
        (recording, "of_step"),
    ):
        parts.append(Once(getattr(owner, name)))
        monkeypatch.setattr(owner, name, parts[-1])
    assert sizes.fits(sizes.measured(site.lesson_page(lesson)))
    for part in parts:
        part.second = True
    owner, name, wrong = LARGEST[key]
    with mock.patch.object(owner, name, wrong):
        assert not sizes.fits(sizes.measured(site.lesson_page(lesson)))


@pytest.mark.slow
def test_random_data_are_those_of_their_seed():
    """Those that the file draws and those that it has are the target's, to the bit. Planted fault: another seed."""
    target = Experiment.from_dict({"target": "logistic_large", "lanes": [{"sampler": "sgld"}]}).make_target()
    packed = description.of_target(target, with_draws=False)["params"]
    normals = packed["normals"]

    def restored(seed):
        array, drawn = np.frombuffer(b64decode(packed["data"])).copy(), np.empty(normals["skipped"] + normals["n"])
        draw_normals(np.random.Generator(np.random.SFC64(seed)), drawn)
        signs = np.unpackbits(
            np.frombuffer(b64decode(normals["signs"]), np.uint8), count=normals["n"], bitorder="little"
        )
        data = array[normals["first"] : normals["first"] + normals["n"]]
        assert 0 < np.count_nonzero(data) < 100
        data[:] = np.where(data == 0, np.where(signs == 1, -1.0, 1.0) * drawn[normals["skipped"] :], data)
        return array

    assert np.array_equal(restored(normals["seed"]), target.packed())
    assert not np.array_equal(restored(normals["seed"] + 1), target.packed())


@pytest.mark.slow
def test_a_claim_that_is_measured_in_the_lab_says_what_is_expected():
    lesson = load_all([]).lessons["gap"]
    said = step_html(lesson, lesson.steps[0], live=False)
    assert "expected below 0.02" in said and "expected the exact value" in said


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="it cannot be made"):
        write_site([], tmp_path / "file" / "folder", lambda *_: None)


@pytest.mark.slow
def test_the_command_makes_a_page_of_a_persons_own_table(tmp_path, capsys):
    """The page holds the table, and a note says so; without the file the answer is a sentence."""
    rows = tmp_path / "rows.csv"
    rows.write_text("y,x\n" + "\n".join(f"{0.5 * k:.1f},{k}" for k in range(1, 21)), encoding="utf-8")
    table = keep(read({"rows.csv": rows.read_bytes()}, two_kinds=False))
    spec = tmp_path / "spec.json"
    experiment = Experiment.from_dict(
        {"target": {"key": "linear_table", "params": {"table": table.key}}, "lanes": [{"sampler": "sgld"}]}
    )
    spec.write_text(experiment.to_json(), encoding="utf-8")
    del table, experiment
    gc.collect()
    out = tmp_path / "live.html"
    assert main(["live", str(spec), "--out", str(out), "--data", str(rows)]) == 0
    assert "everyone who has" in capsys.readouterr().err and out.stat().st_size > 1e6
    gc.collect()
    assert main(["live", str(spec), "--out", str(out)]) == 2


def test_a_flag_that_the_page_does_not_offer_leaves_no_term_out():
    """A recipe with a typed row that neither Γ nor −D∇H changes: a page without these flags shows both terms."""
    params = {
        "layout": "theta_r", "curl_entries": ["-1"], "diffusion_entries": ["0", "0", "2"], "drift_entries": ["", "-theta - 2*r"],
    }  # fmt: skip
    experiment = Experiment.from_dict(
        {"target": "gaussian", "lanes": [{"sampler": {"key": "recipe", "params": params}, "gradient": "full"}]}
    )
    kinds = Kinds([experiment])
    (kind,), at = kinds.listed, kinds.choice(0, "sampler")["first"]
    fitting = [
        formulas
        for flags, formulas in kind["equations"]
        if all(bool(at.get(name)) == bool(value) for name, value in flags.items())
    ]
    assert not {"gamma", "dissipation"} & at.keys()
    assert fitting == [kind["equations"][-1][1]] and fitting[0].count("∇") >= 2 and "Γ" in fitting[0]


@pytest.mark.slow
def test_a_page_that_cannot_be_made_is_one_sentence(tmp_path, monkeypatch):
    """The others are written. Its error comes from another process; planted fault: an error that cannot be sent."""
    error = SpecError("step_size", 3, "allowed is at most 2")
    sent = copy.copy(error)
    assert (str(sent), sent.field, sent.value) == (str(error), "step_size", 3)
    with mock.patch.object(SpecError, "__reduce__", ValueError.__reduce__), pytest.raises(TypeError):
        copy.copy(error)
    monkeypatch.setattr(free, "densities", tuple)
    monkeypatch.setattr(site, "_workers", lambda: ThreadPoolExecutor(1))
    monkeypatch.setattr(site, "lesson_page", mock.Mock(side_effect=[error, "<html>"]))
    lessons = load_all([]).lessons
    assert write_site([lessons["langevin"], lessons["momentum"]], tmp_path, lambda *_: None) == [
        f"{lessons['langevin'].title}: {error}"
    ]
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "momentum.html" in index and "langevin.html" not in index
