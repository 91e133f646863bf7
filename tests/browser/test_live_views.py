"""Every view of a live page shows what Python's view shows of the same runs."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from sgmcmc_lab.app.live.lanes import scene_of
from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.live_page.document import LIVE, document
from sgmcmc_lab.app.state import AppState, first_coordinate
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import Frame
from sgmcmc_lab.app.views.bundle import bundle
from sgmcmc_lab.app.views.globe import turned
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.targets import TARGETS
from tests.browser import numbers
from tests.browser.live import ENSEMBLES, SETTLED, feeds, few_figures, first_step, pages_of, paused, sources, steps

WEIGHING = {"key": "contour_sgld", "params": {"adapt_steps": 5, "n_bins": 8, "zeta": 1.0, "step_size": 2e-4}}
CASES = {
    "quartic": ("quartic", ("sgld", "full"), ("sghmc", "gaussian")),
    "well": ("double_well", ({"key": "hmc", "params": {"step_size": 0.6}}, "full"), ("sghmc", "full")),
    "marks": ("quartic", ({"key": "hmc", "params": {"step_size": 0.42}}, "full")),
    "typed": ({"key": "typed", "params": {"energy": "theta^4/4 - theta^2"}}, ("sgld", "full"), ("hmc", "full")),
    "circle": ("von_mises", ("sggmc", "gaussian"), ("gsgnht", "gaussian")),
    "torus": ("mises_posterior", ("sggmc", "full"), ("gsgnht", "full")),
    "globe": ("fisher", ("sggmc", "gaussian"), ("gmc", "full")),
    "frames": ("matrix_langevin", ("sggmc", "full"), ("gsgnht", "full")),
    "simplex": ("sparse_dirichlet", ("scir", "minibatch"), ("sgrld", "minibatch")),
    "data": ("linear_regression", ("sgld", "minibatch"), ("sghmc", "minibatch")),
    "weights": ("linear_regression", (WEIGHING, "full"), ("sgld", "full")),
}
OF_ONE = {"marks": ["state", "trace"]}
"""The views compared on a page of one lane: others name the lane in their captions, which Python's do not."""
CHAINS = 6
SINGLE = 13
"""Steps that are made one by one from the start."""
AFTER = 3
"""Steps that are made one by one after the page has played: its frames before them are its own."""
BEFORE = {"torus": ("exact", "side"), "temperature": (), "trace": ("rug",)}
"""Feeds that go by the frames before, too."""
ANSWERED = "(n) => document.getElementById('steps').textContent.replaceAll(',', '') === String(n)"


@cache
@few_figures()
def made(name):
    target, *lanes = CASES[name]
    listed = [{"sampler": sampler, "gradient": gradient} for sampler, gradient in lanes]
    experiment = Experiment.from_dict({"target": target, "lanes": listed, "seed": 5, "n_chains": CHAINS})
    state = AppState(experiment=experiment, coordinate=first_coordinate(experiment))
    return experiment, document("Views", [state]).text


def step_on(page, n):
    """Make steps one by one, each with a frame of its own."""
    for _ in range(n):
        before = steps(page)
        page.locator("#step").click()
        page.wait_for_function(ANSWERED, arg=before + 1)
    page.wait_for_function(SETTLED)


class Python:
    """The same runs, and the same frames of them, as Python's views have them."""

    def __init__(self, experiment, keys):
        state = AppState(experiment=experiment, coordinate=first_coordinate(experiment))
        scene = replace(scene_of(state, None), live=True)
        self.views = {key: VIEWS[key](scene) for key in keys}
        self.records = [LaneRecord(Run(spec)) for spec in experiment.runs()]
        self.sources = {
            key: {
                name: [list(feed.model.data[c]) for c in feed.columns]
                if feed.operation != "range"
                else [[feed.model.start, feed.model.end]]
                for name, feed in view.feeds.items()
            }
            for key, view in self.views.items()
        }
        self.go(0)

    def go(self, n):
        """Make so many steps and a frame."""
        for record in self.records:
            record.run.advance(n)
            record.record(rests=True)
        frame = Frame(record.frame("steps") for record in self.records)
        self._frame = frame
        for key, view in self.views.items():
            view._turn = -1
            for name, columns in view.compute(frame).items():
                feed = view.feeds[name]
                if feed.operation == "stream":
                    old = self.sources[key][name]
                    self.sources[key][name] = [[*a, *b][-feed.rollover :] for a, b in zip(old, columns, strict=True)]
                else:
                    self.sources[key][name] = [list(column) for column in columns]

    def said(self, key):
        """The lines of a view's captions of the last frame."""
        said = "\n".join(self.views[key].captions(self._frame).values()).split("\n")
        return [line for line in said if line]


def differences(page, python, whole):
    """The differences between a page and Python's views; ``whole`` if it had all of their frames."""
    out, step = set(), first_step(page)
    for key, view in python.views.items():
        shown, expected = sources(page, feeds(step, key)), python.sources[key]
        assert shown.keys() == expected.keys(), key
        for name, columns in expected.items():
            operation = view.feeds[name].operation
            if not whole and (operation == "range" or name.split()[0] in BEFORE.get(key, ())):
                continue
            last = slice(None if whole or operation != "stream" else -AFTER, None)
            for column, found, wanted in zip(view.feeds[name].columns, shown[name], columns, strict=True):
                if not whole and column == "recent":
                    continue
                a, b = np.array(found[last], dtype=float), np.array(wanted[last], dtype=float)
                if a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max(initial=0)):
                    out.add(key)
        lines = page.locator(f"#caption-{key} li").all_text_contents()
        if lines != python.said(key):
            out.add(key)
    return out


def still(opened, text, keys):
    page = opened(text, still=True, fragment=f"#views={','.join(keys)}&n_chains={CHAINS}")
    page.wait_for_function(SETTLED)
    # Figures come one by one, and a scale may go by the frames that its figure had.
    for key in keys:
        page.locator(f"#plot-{key} .bk-Figure").first.wait_for(state="attached")
    return page


def live_keys(text):
    """The views that show something of the file's own lanes; those of ensembles have tests of their own."""
    (step,) = pages_of(text)["steps"]
    listed = step["figures"][str(len(step["lanes"]))]["views"]
    return [
        key
        for key in listed
        if key not in ENSEMBLES and any(key in step["kinds"][kind]["views"] for kind in step["lanes"])
    ]


def test_every_view_has_a_case():
    """No view of a live page is without a comparison."""
    found = set()
    for target, *lanes in CASES.values():
        listed = [{"sampler": sampler, "gradient": gradient} for sampler, gradient in lanes]
        found |= set(fitting(Experiment.from_dict({"target": target, "lanes": listed})))
    assert set(LIVE) <= found


@pytest.mark.parametrize("name", CASES)
def test_a_page_shows_what_python_shows(opened, name):
    """From the start everything, and after some hundred steps everything that does not go by earlier frames."""
    experiment, text = made(name)
    keys = OF_ONE.get(name) or live_keys(text)
    page = still(opened, text, keys)
    python = Python(experiment, keys)
    step_on(page, SINGLE)
    for _ in range(SINGLE):
        python.go(1)
    assert differences(page, python, whole=True) == set()
    page.locator("#play").click()
    page.wait_for_function("Number(document.getElementById('steps').textContent.replaceAll(',', '')) > 100")
    n = paused(page)
    step_on(page, AFTER)
    python = Python(experiment, keys)
    python.go(n)
    for _ in range(AFTER):
        python.go(1)
    assert differences(page, python, whole=False) == set()


SHIFTED = ("bins.pointer + 8 * n * k,", "bins.pointer + 8 * n * k + 8 * 40,")
TRUTH = ("k, cdf: cdf[k],", "k, cdf: cdf[0],")
FIRST = ("this.records.map((record) => record.frame(", "this.records.map((_, i) => this.records[i && 0].frame(")
TURNED = ("good.map((point) => point[k]))", "good.map((point) => point[(k + 1) % 3]))")
OTHER = ("this.scene = { coordinate,", "this.scene = { coordinate: 1,")
OTHER_CHAIN = ("chain: counts[COUNTS + slot] % n", "chain: (counts[COUNTS + slot] + 1) % n")
LATER = ("steps: found.map(({ step }) => step + 1)", "steps: found.map(({ step }) => step + 2)")
OTHER_PLACE = ("COUNTS + MARKS + slot * dim", "COUNTS + MARKS + (slot + 1) * dim")


FAULTS = [
    ("quartic", SHIFTED, {"marginal"}),
    ("quartic", TRUTH, {"ks"}),
    ("circle", SHIFTED, {"circle", "marginal"}),
    ("torus", SHIFTED, {"torus"}),
    ("simplex", SHIFTED, {"components"}),
    ("quartic", FIRST, {"state", "phase", "trace", "marginal"}),
    ("well", FIRST, {"energy"}),
    ("circle", FIRST, {"circle", "thermostat", "temperature"}),
    ("torus", FIRST, {"torus"}),
    ("globe", FIRST, {"globe"}),
    ("frames", FIRST, {"frames"}),
    ("simplex", FIRST, {"components", "bought"}),
    ("data", FIRST, {"fit"}),
    ("globe", TURNED, {"globe"}),
    ("frames", TURNED, {"frames"}),
    ("quartic", OTHER, {"marginal", "phase", "trace"}),
    ("well", OTHER_CHAIN, {"trace"}),
    ("well", LATER, {"trace"}),
    ("marks", OTHER_CHAIN, {"trace"}),
    ("marks", OTHER_PLACE, {"state"}),
]


@pytest.mark.parametrize(
    ("name", "fault", "wrong"),
    FAULTS,
)
def test_another_picture_is_seen(opened, name, fault, wrong):
    """Planted faults: a histogram shifted by a bar, another column's CDF, one lane for both, other coordinates, and
    divergent transitions of another chain, a step later, or at another one's place.
    """
    experiment, text = made(name)
    changed = text.replace(*fault)
    assert changed != text
    # Its policy knows the scripts as they are.
    changed = re.sub("<meta http-equiv=[^>]*>", "", changed)
    keys = sorted(wrong)
    page = still(opened, changed, keys)
    python = Python(experiment, keys)
    step_on(page, 5)
    for _ in range(5):
        python.go(1)
    assert differences(page, python, whole=True) == wrong


def in_page(page, entry, expression, *arguments):
    """The value of an expression in a module of the live page."""
    return page.evaluate(f"(given) => {{ {bundle(entry)}; return ({expression})(...given) }}", list(arguments))


def curves(page, target):
    fit = target.fit()
    theta = target.sample(3, 4)
    call = "(formula, draws, grid) => draws.map((theta) => grid.map((x) => module_live_views_fit.CURVES[formula.kind](formula, theta, x)))"
    return in_page(page, "live/views/fit.js", call, dict(fit.formula), theta.tolist(), fit.grid.tolist()), fit.curves(
        theta
    )


@pytest.mark.parametrize(
    "key",
    ["linear_regression", "lasso", "logistic_regression", "poisson_regression", "student_mean", "tied_means"],
)
def test_curves_are_the_targets(opened, key):
    """Each formula of a curve; a planted fault, draws in another order, is seen."""
    page = opened("<!doctype html>")
    shown, expected = curves(page, TARGETS[key]())
    assert np.allclose(shown, expected, rtol=1e-9)
    assert not np.allclose(shown[::-1], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("target", "sampler"),
    [
        ("von_mises", "sggmc"),
        ("mises_posterior", "sggmc"),
        ("fisher", "sggmc"),
        ("matrix_langevin", "sggmc"),
        ("double_well", "sgld"),
    ],
)
def test_a_click_starts_where_python_starts(opened, target, sampler):
    """At some points of the figure, and beside it; a planted fault, the point's mirror image, is seen."""
    experiment = Experiment.from_dict({"target": target, "lanes": [{"sampler": sampler}]})
    scene = scene_of(AppState(experiment=experiment), None)
    view = next(
        VIEWS[key](scene) for key in ("circle", "torus", "globe", "frames", "energy") if VIEWS[key].fits(experiment)
    )
    before = experiment.runs()[0].first_position()
    tap, page = view.live_tap(), opened("<!doctype html>")
    around = hasattr(view, "turn")
    if around:
        tap |= {"turn": view.turn.value, "tilt": view.tilt.value}
    call = "(tap, at, before) => module_live_starts.startAt(tap, at, before)"
    seen = 0
    for at in ([0.1, 0.15], [-0.2, 0.3], [40.0, 50.0]):
        shown = in_page(page, "live/starts.js", call, tap, at, before.tolist())
        near = 1 - at[0] ** 2 - at[1] ** 2
        point = (
            at
            if not around
            else np.array([*at, np.sqrt(near)]) @ turned(np.eye(3), tap["turn"], tap["tilt"]).T
            if near >= 0
            else []
        )
        expected = view.start_at(point, before)
        if expected is None:
            assert shown is None
            continue
        seen += 1
        assert np.allclose(shown, expected, rtol=1e-9, atol=1e-12)
        mirrored = in_page(page, "live/starts.js", call, tap, [-x for x in at], before.tolist())
        assert not np.allclose(mirrored, expected, rtol=1e-9, atol=1e-12)
    assert seen >= 2


PICTURE = """() => [...Bokeh.documents.flatMap((one) => one.roots()).flatMap((one) => [...one.references()])
  .find((one) => one.type === "ColumnDataSource" && one.data.image).data.image[0]]"""


def globe_turned(page):
    """Whether the picture of the globe is another after its slider moved."""
    before = numbers(page, PICTURE)
    handle = page.get_by_role("slider", name="Turn")
    handle.focus()
    for _ in range(5):
        handle.press("ArrowRight")
    page.wait_for_timeout(500)
    return not np.array_equal(before, numbers(page, PICTURE), equal_nan=True)


def test_no_function_is_made_of_a_text(opened, page_log, monkeypatch):
    """The policy allows none, and the globe turns; the planted fault is a page without its own functions."""
    experiment, text = made("globe")
    assert re.findall(r"'[a-z-]*eval'", text.partition("<title>")[0]) == ["'wasm-unsafe-eval'"]
    assert globe_turned(still(opened, text, ["globe"]))
    monkeypatch.setattr("sgmcmc_lab.app.live_page.document.functions", lambda texts: "")
    with few_figures("globe"):
        without = document("Views", [AppState(experiment=experiment)]).text
    assert not globe_turned(still(opened, without, ["globe"]))
    assert page_log.errors and all("unsafe-eval" in error for error in page_log.errors), page_log.errors
    page_log.errors.clear()
