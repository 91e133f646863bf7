"""A view's picture of one lane does not depend on the other lanes: for every view, by exchanging the others.

A view gets the same frames in several arrangements. Where the two other lanes change places, or are replaced by copies
of the lane that is looked at, what the page holds of that lane and says of it stays the same, number for number.
"""

import inspect
import itertools
import json
import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from bokeh.models import GlyphRenderer

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.lanes import Progress
from sgmcmc_lab.app.live.lanes.densities import DensityLanes, LaneRecord
from sgmcmc_lab.app.live.lanes.models import load
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import (
    VIEWS,
    curl,
    evolution,
    fitting,
    mgf,
    moments,
    order,
    planes,
    spectrum,
    trace,
    variational,
    written,
)
from sgmcmc_lab.app.views.base import Frame, Position, Scene, View
from sgmcmc_lab.app.views.drift import CUT
from sgmcmc_lab.app.views.marks import no_draws
from sgmcmc_lab.app.views.models.scores import curve
from sgmcmc_lab.app.views.recipes import RecipeView, layouts_of
from sgmcmc_lab.samplers import Change, Choice, Experiment, Run, convergence, kolmogorov
from sgmcmc_lab.samplers.diagnostics import divergence
from sgmcmc_lab.samplers.diagnostics import ks as diagnostics_ks
from sgmcmc_lab.samplers.models.run import Score, start
from sgmcmc_lab.samplers.targets.base import ByTarget
from tests.helpers.cases import for_each
from tests.helpers.checks_views import DENSITY_VIEWS, MODEL_VIEWS, lane_of
from tests.helpers.stages import NAMES, STAGES, experiment_of, summary

BASE = (0, 1, 2)
RECORDS = Path(__file__).with_name("views.json")
"""The arrays of every view at every stage, as sums. A new view is recorded by itself; deleted, the file is written
anew, and Git says what differs."""


class Canvas:
    """In the place of a figure, which nobody looks at here and whose models take most of the time."""

    def __getattr__(self, name):
        self.__dict__[name] = found = Canvas()
        return found

    def __call__(self, *args, **options):
        return GLYPH


class Plain:
    """In the place of a label or a source: its name, and what a view puts there."""

    def __init__(self, *data, **given):
        self.__dict__.update(given, id=f"plain {next(NUMBERS)}")
        if data:
            (self.data,) = data

    def js_on_change(self, *script):
        pass


GLYPH, NUMBERS = GlyphRenderer(), itertools.count()


@pytest.fixture(scope="module", autouse=True)
def small_work():
    """The views' own work is counted, not timed, and little of it is enough; their figures are not drawn."""
    with pytest.MonkeyPatch.context() as patch:
        for view in VIEWS.values():
            for module in (
                inspect.getmodule(each) for each in view.__mro__ if each.__module__.startswith("sgmcmc_lab.app.views")
            ):
                for name in {"plot", "even_plot", "stack", "column", "row"} & vars(module).keys():
                    patch.setattr(module, name, lambda *args, **options: Canvas())
        patch.setattr(planes, "plot", lambda *args, **options: Canvas())
        patch.setattr(View, "_name_figures", lambda view: None)
        patch.setattr(View, "_drop_glyphs", lambda view: None)
        for module in (evolution, moments, order):
            patch.setattr(module, "WORK_SECONDS", 1e6)
        patch.setattr(evolution, "CHAINS", 300)
        patch.setattr(evolution, "CELLS", evolution.BLOCK * evolution.SHOWN)
        patch.setattr(moments, "CHAINS", 500)
        patch.setattr(mgf, "CHAINS", 500)
        patch.setattr(variational, "MOST_STEPS", 20)
        patch.setattr(written, "FINE", 32)
        patch.setitem(written.CELLS, 2, 32)
        patch.setattr(order, "CHAINS", 10)
        patch.setattr(order, "ENOUGH", order.FEWEST + 1)
        patch.setattr(order, "LADDER", (1.0, 2.0))
        # The ensembles are the same in every arrangement.
        patch.setattr(moments, "batch", cache(moments.batch))
        # So are the histories.
        known = cache(lambda shape, content, column: convergence.summary(np.frombuffer(content).reshape(shape), column))
        once = SimpleNamespace(
            refusal=convergence.refusal,
            FEWEST=convergence.FEWEST,
            summary=lambda history, column: known(history.shape, history.tobytes(), column),
        )
        patch.setattr(trace, "convergence", once)
        every = order.functions
        # The expectation that is shown is chosen by all lanes together, and named.
        patch.setattr(order, "functions", lambda target, coordinate: every(target, coordinate)[:1])
        patch.setattr(curl, "STRENGTHS", 3)
        patch.setattr(curl, "CELLS", 16)
        patch.setattr(planes, "CELLS", 32)
        patch.setattr(planes, "CELLS_WRONG", 32)
        spectrum._MIXING = ByTarget()
        yield
        # Results on small grids are not for other tests.
        spectrum._MIXING = ByTarget()


@contextmanager
def plain_models():
    """Sources and labels that are no models of Bokeh: those take most of the time that is left."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ColumnDataSource", "Label", "Node"):
            patch.setattr(inspect.getmodule(View), name, Plain)
        yield


def neighbours(cls):
    """The view with a planted fault: every lane is the next one."""

    def shifted(lanes):
        return Frame([*lanes[1:], lanes[0]])

    class Faulty(cls):
        def compute(self, lanes):
            return super().compute(shifted(lanes))

        def captions(self, lanes):
            return super().captions(shifted(lanes))

        def background(self, lanes):
            return super().background(shifted(lanes))

    return Faulty


class Page:
    """A view and what the page holds of it."""

    def __init__(self, cls, stage, order):
        self.order, self.layouts = order, tuple(stage.layouts[i] for i in order)
        names = tuple(NAMES[i] for i in order)
        self.view = cls(Scene(stage.target, names, stage.coordinate, stage.axis, False, self.layouts))
        self.held, self.said = {}, {}

    def show(self, frames):
        lanes = Frame(frames[i] for i in self.order)
        for _ in range(300):
            if not self.view.background(lanes):
                break
        else:
            raise AssertionError(f"{self.view.key} goes on working")
        for name, columns in self.view.compute(lanes).items():
            feed, before = self.view.feeds[name], self.held.get(name)
            fresh = [np.array(column, dtype=float) for column in columns]
            if feed.operation == "stream" and before is not None:
                fresh = [np.concatenate(pair) for pair in zip(before, fresh, strict=True)]
            self.held[name] = fresh
        self.said = self.view.captions(lanes)

    def owner(self, name):
        """The position of the lane that a feed is of, and the feed's name without it; None where it is of no lane."""
        if name in self.view.of_first or name.startswith(("mode", "slope")) or not (found := re.findall(r"\d+", name)):
            return None
        number = found[0] if " chain " in name else found[-1]
        at = int(number)
        if self.view.key in ("stationarity", "written"):
            at = self.view.recipes[at]
        return at, name.replace(number, "i", 1) if " chain " in name else "i".join(name.rsplit(number, 1))

    def shows(self, position):
        """Whether the view has a place for the lane: some show the first recipes only."""
        return not isinstance(self.view, RecipeView) or self.view.most is None or position in self.view.recipes

    def of(self, position):
        """The page's data about one lane."""
        out = {}
        for name, columns in self.held.items():
            owned = self.owner(name)
            if owned is not None and owned[0] == position and self.view.feeds[name].operation != "range":
                out[owned[1]] = columns
        return out

    def words(self, position):
        """The page's text about one lane."""
        names = self.view.scene.lanes
        # The colours and the signs are those of the position.
        lines = [re.split(r"\n|<br>", re.sub(r"<(?!br).*?>|&nbsp;|[●■▲◆]", "", text)) for text in self.said.values()]
        if not any(name in line for text in lines for line in text for name in names):
            return list(self.said.values())[position : position + 1] if len(self.said) >= len(names) else []
        out, last = [], ""
        for text in lines:
            for line in text:
                several = sum(line.count(name) for name in set(names)) > 1
                for part in line.split(" · ") if several else [line]:
                    # A line without a name goes on with the lane of the line before.
                    of_all = several or part.startswith("The first")
                    last = next((name for name in names if name in part), "" if of_all else last)
                    if last == names[position]:
                        out.append(part)
            last = ""
        return out

    def common(self):
        """The page's data about no lane, without ranges, which belong to all."""
        return {
            name: columns
            for name, columns in self.held.items()
            if self.owner(name) is None
            and name not in self.view.of_first
            and self.view.feeds[name].operation != "range"
        }


class Stage:
    """Lanes that run, and every view of them in several arrangements."""

    def __init__(self, name):
        self.name = name
        *_, self.axis, self.coordinate = STAGES[name]
        self.experiment = experiment_of(name)
        self.records = [LaneRecord(Run(spec)) for spec in self.experiment.runs()]
        self.target, self.layouts = self.records[0].run.target, layouts_of(self.experiment)
        solos = [(i, i, i) for i in BASE]
        swaps = [(0, 2, 1), (2, 1, 0), (1, 0, 2)]
        self.views = [VIEWS[key] for key in fitting(self.experiment)]
        self.pages = {(cls.key, o, False): Page(cls, self, o) for cls in self.views for o in (BASE, *swaps, *solos)}
        faulty = {cls.key: neighbours(cls) for cls in self.views}
        self.pages |= {(key, o, True): Page(cls, self, o) for key, cls in faulty.items() for o in (BASE, *swaps[:2])}

    def play(self):
        """Some frames, with a change of one lane on the way."""
        for steps in (3, 40, 400):
            for record in self.records:
                record.run.advance(steps)
            self.show()
        run = self.records[1].run
        values = {**run.spec.sampler.values()}
        if "step_size" in values:
            values["step_size"] *= 0.5
        run.change(Change(0, Choice(run.spec.sampler.key, tuple(values.items())), run.spec.gradient))
        self.records[1].marks.append(self.records[1].position)
        for steps in (5, 100):
            for record in self.records:
                record.run.advance(steps)
            self.show()
        return self

    def show(self):
        for i, record in enumerate(self.records):
            # The same clock in every run.
            record.run.seconds = 0.001 * (i + 1) * record.run.steps
            record.record()
        frames = [record.frame(self.axis) for record in self.records]
        for page in self.pages.values():
            page.show(frames)


@pytest.fixture(scope="module", params=STAGES)
def found(request, small_work):
    with plain_models():
        return Stage(request.param).play()


def prefix(a, b):
    n = min(map(len, (*a, *b)))
    return all(np.array_equal(x[:n], y[:n]) for x, y in zip(a, b, strict=True)) and n > 0


def directions(held, name):
    """Where the arrows of a feed stand and which way they point, whatever their common scale is."""
    out = {}
    for columns in (held[name], held[name + CUT]):
        x0, y0, x1, y1 = (column[: len(column) // 3] for column in columns)
        for a, b, angle in zip((x0 + x1) / 2, (y0 + y1) / 2, np.arctan2(y1 - y0, x1 - x0), strict=True):
            out[round(a, 9), round(b, 9)] = angle
    return out


def same_but_for_the_axes(key, name, a, b):
    """Whether one feed of two pages is the same where the axes, which are of all lanes, may differ."""
    if key == "drift" and name.startswith("sum") and len(a[name]) == 4:
        if name.endswith(CUT):
            return True
        one, two = directions(a, name), directions(b, name)
        shared = one.keys() & two.keys()
        return len(shared) > 100 and all(abs(np.sin(one[k] - two[k])) < 1e-9 for k in shared)
    if (key, name) in (("autocorrelation", "lane i"), ("spectrum", "measured i")):
        return prefix(a[name], b[name])
    if (key, name) == ("spectrum", "gap i"):
        return np.array_equal(a[name][0], b[name][0])
    return equal(a[name], b[name])


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def differences(first, second, position, axes=False):
    """The differences of two pages about the lane at a position, where both show it."""
    if not (first.shows(position) and second.shows(position)):
        return []
    a, b = first.of(position), second.of(position)
    out = [f"only one has {name}" for name in a.keys() ^ b.keys()]
    same = same_but_for_the_axes if axes else lambda _key, name, a, b: equal(a[name], b[name])
    out += [f"{name} differs" for name in a.keys() & b.keys() if not same(first.view.key, name, a, b)]
    one, two = (page.words(position) for page in (first, second))
    # Of two lanes of one name each line comes twice.
    own = NAMES[first.order[position]]
    if axes and own in "".join(one):
        two = two[: len(one)]
    if one != two:
        out.append(f"{one} is not {two}")
    return out


def swapped(position):
    order = list(BASE)
    i, j = (k for k in BASE if k != position)
    order[i], order[j] = order[j], order[i]
    return tuple(order)


@pytest.mark.slow
@for_each("key", list(DENSITY_VIEWS))
def test_a_lane_is_shown_as_it_would_be_with_others(found, key):
    if key not in [view.key for view in found.views]:
        return
    base = found.pages[key, BASE, False]
    for position in BASE:
        assert differences(base, found.pages[key, swapped(position), False], position) == [], NAMES[position]
        assert differences(base, found.pages[key, (position,) * 3, False], position, axes=True) == [], NAMES[position]
        other = found.pages[key, swapped(position), False]
        assert base.common().keys() == other.common().keys()
        assert [k for k, v in base.common().items() if not equal(v, other.common()[k])] == []


@pytest.mark.slow
def test_what_is_of_the_first_lane_alone_says_so(found):
    for view in found.views:
        base = found.pages[view.key, BASE, False].view
        recipe = issubclass(view, RecipeView)
        first = base.recipes[0] if recipe else 0
        alone = found.pages[view.key, (first,) * 3, False].held
        held = found.pages[view.key, BASE, False].held
        shown = [feed for feed in base.of_first if feed in held]
        # The drift's arrows have one scale for all lanes.
        if view.key != "drift":
            assert [feed for feed in shown if not equal(held[feed], alone[feed])] == [], view.key
        said = base.hint + "".join(found.pages[view.key, BASE, False].said.values())
        if (shown and not (recipe and len(base.recipes) == 1)) or (
            recipe and len(base.recipes) < sum(map(bool, found.layouts))
        ):
            assert "first" in said, view.key


@pytest.mark.slow
def test_a_view_that_shows_each_lane_as_the_next_is_caught(found):
    for view in found.views:
        if issubclass(view, RecipeView) and view.most and not all(found.layouts):
            # Of three lanes the first recipe is never another one in the same place.
            continue
        base = found.pages[view.key, BASE, True]
        assert any(differences(base, found.pages[view.key, swapped(p), True], p) for p in (0, 1)), view.key


# Against what was looked at


@pytest.mark.slow
def test_a_view_shows_what_it_showed(found):
    """Fails where a number in a view is off by 1e-7 of the column's sum, or a word differs."""
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    shown = {}
    for view in found.views:
        page = found.pages[view.key, BASE, False]
        numbers = {feed: [summary(column) for column in columns] for feed, columns in sorted(page.held.items())}
        shown[view.key] = {"numbers": numbers, "says": list(page.said.values())}
    recorded = records.get(found.name, {})
    if new := shown.keys() - recorded.keys():
        text = json.dumps({**records, found.name: {**shown, **recorded}}, ensure_ascii=False, sort_keys=True)
        RECORDS.write_text(re.sub(r'(], |{)(?=")', r"\1\n", text) + "\n", encoding="utf-8")
        pytest.fail(f"nothing was recorded of {', '.join(sorted(new))} on the {found.name}; it is now")
    assert shown.keys() == recorded.keys()
    for key, view in shown.items():
        was = recorded[key]
        assert view["says"] == was["says"], key
        assert view["numbers"].keys() == was["numbers"].keys(), key
        for feed, columns in was["numbers"].items():
            for now, before in zip(view["numbers"][feed], columns, strict=True):
                np.testing.assert_allclose(
                    now, before, rtol=1e-7, atol=1e-7 * before[2] + 1e-12, err_msg=f"{key} {feed}"
                )


# Against what is written out


def records(target, *samplers, axis=0, **settings):
    lanes = [{"sampler": {"key": key}} for key in samplers]
    experiment = Experiment.from_dict({"target": target, "lanes": lanes, "seed": 4, **settings})
    return [LaneRecord(Run(spec, keep_draws=True)) for spec in experiment.runs()]


def scene_of(made, axis="steps", coordinate=0):
    return Scene(made[0].run.target, tuple(record.run.sampler.title for record in made), coordinate, axis, False)


@for_each("axis", Position._fields)
def test_where_a_lane_is_on_each_axis(axis):
    """Gradients are those of one chain; a draw of a frame lies as far along as its step."""
    made = records("gaussian", "sgld", "hmc", n_chains=4)
    leaps = made[1].run.spec.sampler.values()["n_leapfrog"]
    per_step = [1, made[1].run.sampler.gradients_per_step]
    assert per_step[1] in (leaps, leaps + 1)
    trace, ks = VIEWS["trace"](scene_of(made, axis)), VIEWS["ks"](scene_of(made, axis))
    seen = [[], []]
    for steps in (30, 70):
        for record in made:
            record.run.advance(steps)
            record.record()
        frames = [record.frame(axis) for record in made]
        drawn, curves = trace.compute(frames), ks.compute(frames)
        for i, record in enumerate(made):
            gradients = record.run.steps * per_step[i]
            due = Position(record.run.steps, gradients, gradients, record.run.seconds)
            assert list(record.position) == pytest.approx(due)
            assert curves[f"lane {i}"][0][-1] == pytest.approx(due.on(axis))
            x, y = drawn[f"lane {i} chain 0"]
            first = record.run.steps - (len(x) - 1) * 5 if steps == 70 else record.run.steps - (len(x) - 1) * 2
            numbers = np.linspace(first, record.run.steps, len(x))
            assert x == pytest.approx(numbers * due.on(axis) / record.run.steps)
            seen[i] = record.run.trace().draws[0, numbers.astype(int) - 1, 0]
            assert y == pytest.approx(seen[i])


def test_the_band_of_the_sparse_simplex_is_that_of_nine_odds():
    made = records("sparse_dirichlet", "exact", n_chains=4)
    view = VIEWS["ks"](scene_of(made, coordinate=4))
    made[0].run.advance(250)
    made[0].record()
    _, low, high, mean = (column[-1] for column in view.compute([made[0].frame("steps")])["noise 0"])
    assert (low, high) == pytest.approx(kolmogorov.band(1000, columns=9))
    assert mean == pytest.approx(kolmogorov.baseline(1000))
    # Planted fault: all nineteen columns.
    assert high != pytest.approx(kolmogorov.band(1000, columns=19)[1], rel=0.01)


@pytest.mark.parametrize("key", ["ks", "kl"])
def test_a_change_restarts_the_noise_of_its_lane_alone(key):
    made = records("gaussian", "sgld", "hmc", n_chains=4)
    view = VIEWS[key](scene_of(made))
    assert "n of each" in view.hint
    for steps in (200, 50):
        if steps == 50:
            run = made[0].run
            run.change(Change(0, run.spec.sampler, run.spec.gradient))
        for record in made:
            record.run.advance(steps)
            record.record(rests=True)
        data = view.compute(Frame(record.frame("steps") for record in made))
    sizes = [record.run.statistics.n_draws for record in made]
    assert sizes == [4 * 50, 4 * 250]
    lowest = [data[f"noise {i}"][1][-1] for i in range(2)]
    due = [kolmogorov.band(n, columns=1)[0] if key == "ks" else made[i].curve[-1].exact_kl for i, n in enumerate(sizes)]
    assert lowest == pytest.approx(due)
    # Planted fault: both have the first lane's.
    assert lowest[1] != pytest.approx(due[0], rel=0.1)


@for_each("key", ["marginal", "ks", "kl", "circle"])
@for_each("samplers", [["sggmc"], ["sggmc", "gmc"]])
def test_an_empty_picture_says_why(key, samplers):
    """Before the first step, in the burn-in, and no longer when there are draws."""
    made = records("circle_mixture", *samplers, n_chains=4, burn_in=50)
    view, found = VIEWS[key](scene_of(made)), []
    for steps in (0, 20, 40):
        for record in made:
            record.run.advance(steps)
            record.record(rests=True)
        frame = Frame(record.frame("steps") for record in made)
        view.compute(frame)
        found.append("\n".join(view.captions(frame).values()))
    lines = 1 if key == "circle" else len(samplers)
    if key == "marginal" and len(samplers) > 1:
        assert found[1].count("(burn-in)") == lines
        # Two names share a line: the longest note that they have room for is "(cut off)".
        room = sum(len(name) for name in view.scene.lanes) + lines * len(" (cut off)") + 1
        assert all(len(text) <= room for text in found)
    else:
        first = 0 if key == "marginal" else lines
        assert [text.count("no draws yet") for text in found] == [first, lines, 0]
    assert ["burn-in" in text for text in found] == [False, True, False]


@for_each(
    ("steps", "burn_in", "says"),
    [(0, 50, "no draws yet"), (5, 50, "burn-in: no draws yet"), (5, 0, "no draws yet"), (60, 50, "no draws yet")],
)
def test_a_picture_without_draws_speaks_of_a_burn_in_where_there_is_one(steps, burn_in, says):
    """Fails where a run whose statistics have begun anew is said to be in a burn-in that it has not, or no more."""
    run = SimpleNamespace(statistics=SimpleNamespace(n_draws=0), steps=steps, burn_in=burn_in)
    assert no_draws(run) == says


def test_a_distance_says_what_it_is_of():
    """The KS distance is the mean over coordinates, the KL divergence that of a plane or of the first coordinate."""
    titles = {
        "gaussian": ("KS distance", "KL divergence", "KL"),
        "quartic": ("KS distance, mean over 2 coordinates", "KL divergence, joint", "KL"),
        "fisher": ("KS distance, mean over 3 coordinates", "KL divergence of x", "KL of x"),
        "sparse_dirichlet": ("KS distance, mean over 9 odds", None, None),
    }
    for target, (ks_title, kl_title, kl_name) in titles.items():
        made = records(target, "exact", n_chains=4)
        views = {key: VIEWS[key](scene_of(made)) for key in ("ks", "kl") if kl_title or key == "ks"}
        made[0].run.advance(100)
        made[0].record()
        frame = Frame([made[0].frame("steps")])
        assert views["ks"].title == ks_title
        (said,) = views["ks"].captions(frame).values()
        if kl_title:
            assert views["kl"].title == kl_title and f"  {kl_name} " in said
            # The title is true: the KL divergence of the first column alone does not see the others.
            exact = divergence.kl_1d(made[0].run.statistics, 0)[0]
            alone = made[0].curve[-1].kl == pytest.approx(exact)
            assert alone == (target != "quartic")
        else:
            assert "KL" not in said


def test_the_distance_of_a_single_column_is_no_mean():
    target = {"key": "sparse_dirichlet", "params": {"dimension": 2, "observed": "20,80"}}
    experiment = Experiment.from_dict({"target": target, "lanes": [{"sampler": "cir"}]})
    scene = DensityLanes.prepare(Progress(), experiment).scene(AppState(experiment=experiment))
    assert VIEWS["ks"](scene).title == "KS distance of the odds"


@for_each("n_chains", [9, 32, 130])
def test_all_chains_count(n_chains):
    """Views and statistics of many chains, recomputed from the draws themselves."""
    made = records("skew_normal", "exact", "sgld", n_chains=n_chains, n_steps=400)
    marginal, ks = VIEWS["marginal"](scene_of(made)), VIEWS["ks"](scene_of(made))
    for record in made:
        record.run.advance(400)
        record.record()
    frames = [record.frame("steps") for record in made]
    bars, curves = marginal.compute(frames), ks.compute(frames)
    for i, record in enumerate(made):
        draws = record.run.trace().draws[..., 0]
        assert draws.shape == (n_chains, 400)
        centres, heights = bars[f"lane {i}"]
        edges = np.append(centres - marginal._widths / 2, centres[-1] + marginal._widths[-1] / 2)
        counts = np.histogram(draws, edges)[0]
        assert heights == pytest.approx(
            counts / (draws.size * marginal._widths), abs=2 / draws.size / marginal._widths[0]
        )
        column, statistics = record.run.target.columns[0], record.run.statistics
        # The histogram's edges are as fine as a tenth of a per cent of the mass.
        assert curves[f"lane {i}"][1][-1] == pytest.approx(diagnostics_ks.of_values(column, draws.ravel()), abs=3e-3)
        assert statistics.mean(0) == pytest.approx(draws.mean())
        assert statistics.variance(0) == pytest.approx(draws.var())
        assert statistics.chain_means(0) == pytest.approx(draws.mean(axis=1))
        assert frames[i].fresh[:, :, 0] == pytest.approx(draws[:8, np.arange(399, -1, -25)[::-1]].T)


def test_the_paths_are_those_of_each_lanes_first_chain():
    made = records("quartic", "sgld", "hmc", n_chains=4, n_steps=16)
    view = VIEWS["state"](scene_of(made))
    for record in made:
        record.run.advance(16)
    data = view.compute(Frame(record.frame("steps") for record in made))
    for i, record in enumerate(made):
        draws = record.run.trace().draws
        assert pytest.approx(draws[0]) == np.array(data[f"path {i}"]).T
        assert pytest.approx(draws[:1, -1]) == np.array(data[f"heads {i}"]).T


# The views of studies


class StudyPage:
    """A view of a model and what the page holds of it; ``shown`` is a method, wherever it stands."""

    def __init__(self, cls, model, methods, order, shown, other_seeds=False):
        names = tuple(NAMES[i] for i in order)
        self.view, self.order = cls(Scene(model, names, 0, "data", False, shown=order.index(shown))), order
        chains = [(methods[i][0], methods[i][2 if other_seeds else 1]) for i in order]
        marked = zip(chains, order, strict=True)
        frame = Frame([lane_of(*both, marks=[i + 1.0]) for both, i in marked], order.index(shown))
        self.held = self.view.compute(frame)
        self.said = self.view.captions(frame)

    def of(self, method):
        at = self.order.index(method)
        out = {name[: -len(f" {at}")]: columns for name, columns in self.held.items() if name.endswith(f" {at}")}
        return out | {"said": [text for text in self.said.values() if NAMES[method] in text]}

    def common(self):
        ranges = [name for name, feed in self.view.feeds.items() if feed.operation == "range"]
        return {name: v for name, v in self.held.items() if name not in ranges and not re.search(r" \d$", name)}


STUDIES = {
    "topics": (
        "?target=topics(corpus:bars;n_topics:10)",
        ["collapsed_gibbs", "minibatch_gibbs(batch_size:0)", "lda_scir"],
    ),
    "network": ("?target=network(graph:florentine;n_communities:3)", ["network_gibbs", "network_map", "network_hmc"]),
    "clusters": (
        "?target=clusters(points:iris)",
        ["cluster_collapsed(start_clusters:4)", "cluster_minibatch(batch_size:0)", "cluster_slice(start_clusters:9)"],
    ),
    "sphere_clusters": (
        "?target=sphere_clusters(items:150)",
        ["sphere_collapsed(start_clusters:4)", "sphere_minibatch(batch_size:0)", "sphere_slice(start_clusters:9)"],
    ),
    "mixture": (
        "?target=mixture(documents:80)",
        ["mixture_gibbs(start_clusters:3)", "mixture_scir", "mixture_sgrld(start_clusters:9)"],
    ),
    "spherical": ("?target=spherical", ["spherical_sggmc", "spherical_gsgnht", "spherical_vi"]),
    "sparse": ("?target=sparse(items:100)", ["sparse_gibbs", "sparse_minibatch(batch_size:0)", "sparse_blocked"]),
    "factors": ("?target=factors(rows:30)", ["factors_gibbs", "factors_sgvb", "factors_norm_sgvb"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
@plain_models()
def test_a_method_is_shown_as_it_would_be_with_others(name):
    """Curves of a method do not depend on the others; pictures are of the method that is chosen, by its first chain."""
    query, keys = STUDIES[name]
    studies = [AppState() for _ in range(3)]
    for seed, state in enumerate(studies, 1):
        assert link.read_query(state, query + "".join(f"&lane={key}" for key in keys) + f"&seed={seed}") == []
    model = load(studies[0].experiment)
    seeds = [[run.chains[0] for run in start(each.experiment, model)] for each in studies]
    for chain in [chain for chains in seeds for chain in chains]:
        for _ in range(3):
            chain.advance()
    methods = list(zip(*seeds, strict=True))
    for key, cls in MODEL_VIEWS.items():
        if key not in fitting(studies[0].experiment):
            continue
        cls.prepare(model)
        pages = {shown: StudyPage(cls, model, methods, BASE, shown) for shown in BASE}
        # Each exchange of two lanes once, each with a chosen method that it moves.
        for shown, arranged in zip(BASE, ((1, 0, 2), (0, 2, 1), (2, 1, 0)), strict=True):
            base, other = pages[shown], StudyPage(cls, model, methods, arranged, shown)
            for method in BASE:
                one, two = base.of(method), other.of(method)
                assert one["said"] == two["said"], (key, method)
                assert one.keys() == two.keys()
                assert [n for n in one.keys() - {"said"} if not equal(one[n], two[n])] == [], (key, method)
            assert base.common().keys() == other.common().keys()
            assert [n for n, v in base.common().items() if not equal(v, other.common()[n])] == [], key
            alone = StudyPage(cls, model, methods, BASE, shown, other_seeds=True)
            changed = {n.split()[0] for n, v in base.held.items() if n not in alone.held or not equal(v, alone.held[n])}
            assert bool(changed - {"x", "y"}) == (key in ("scores", "coherence")), (key, changed)
        # Each method has its own, and so has each choice of the one whose inside is shown, but for a sampler's bound.
        first, second = pages[0].held, pages[1].held
        of_all = [n for n in base.held if n.endswith(" 0")]
        if of_all:
            assert not equal(base.held[of_all[0]], base.held[of_all[0].replace(" 0", " 2")]) or key == "elbo"
        elif key not in ("elbo", "batch"):
            assert any(not equal(first[n], second[n]) for n in first.keys() & second.keys()), key


def test_the_band_of_scores_is_that_of_all_seeds():
    seeds = [
        [Score(step, 10 * step, 0.5 * step, value) for step, value in enumerate(values)]
        for values in ((9, 4, 2), (9, 6, 8), (9, 8, 5))
    ]
    x, mean, low, high = curve(seeds, "data")
    assert x.tolist() == [10, 20]
    assert (mean.tolist(), low.tolist(), high.tolist()) == ([6, 5], [4, 2], [8, 8])
