"""How many steps a frame has on a machine that is busy with something else, and what is kept of a run."""

import asyncio
import threading
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from sgmcmc_lab.app.lesson import course
from sgmcmc_lab.app.live import runner
from sgmcmc_lab.app.live.lanes import DensityLanes, Lanes, Progress, densities, models, prepare
from sgmcmc_lab.app.state import DEFAULT, AppState
from sgmcmc_lab.app.views.base import View
from sgmcmc_lab.samplers import Change, Experiment, Run
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.low_priority import workers
from tests.helpers.cases import for_each

WAIT, STEP = 0.005, 2e-6


@pytest.fixture
def unhurried(monkeypatch):
    """A frame with time for all its steps, however busy the machine is."""
    monkeypatch.setattr(densities, "WORK_SECONDS", 1e6)


def test_what_was_compiled_before_does_not_stay_on_the_page():
    """Fails where a page says that it compiles while it loads what comes after."""
    progress = Progress()
    progress.compiling(0, 2, "the main loop of the sgld")
    assert progress.what == "First start on this machine: compiling sgld"
    progress.compiling(1, 2, "")
    assert (progress.what, progress.share) == ("Loading", 0.5)
    progress.compiling(0, 0, "")


def test_waiting_is_not_taken_for_the_cost_of_a_step(monkeypatch):
    """Fails where chunks shrink because each of them is waited for. Planted fault: a clock that goes on meanwhile."""
    wall, own, chunks = [0.0], [0.0], []

    def advance(run, n):
        chunks.append(n)
        own[0] += STEP * n
        wall[0] += STEP * n + WAIT

    clocks = SimpleNamespace(perf_counter=lambda: wall[0], thread_time=lambda: own[0])
    monkeypatch.setattr(densities, "time", clocks)
    monkeypatch.setattr(densities.Run, "advance", advance)

    def last(clock):
        monkeypatch.setattr(clocks, "thread_time", clock)
        state = AppState()
        lanes = DensityLanes(state.experiment)
        for state.speed in (1,) * 20 + (1000,):
            chunks.clear()
            lanes.move(state, 0)
        return list(chunks)

    assert last(clocks.thread_time) == [1000]
    assert last(clocks.perf_counter) == [1] * 8


@pytest.mark.parametrize("fault", [False, True])
def test_a_heavy_experiment_is_heavy_from_its_first_step(fault, monkeypatch):
    """Fails where the server's loop makes the first steps of 10,000 chains itself, 20 at one go, for .3 s each.

    Planted fault: what a step costs is not known before, and taken for nothing.
    """
    chunks, state = [], AppState()
    monkeypatch.setattr(densities.Run, "advance", lambda run, n: chunks.append(n))
    if fault:
        monkeypatch.setattr(densities, "NUMBER_SECONDS", 1e-12)
    experiment = Experiment.from_query("?target=quartic&lane=sgld", DEFAULT)[0]
    light = DensityLanes(experiment)
    heavy = DensityLanes(replace(experiment, n_chains=10_000))
    assert light.short(state, 0) and not light.heavy and heavy.heavy
    assert heavy.short(state, 0) == fault
    heavy.move(state, 0)
    assert chunks[0] == 1


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_a_step_with_many_data_is_not_taken_for_a_short_one(changed, fault, monkeypatch):
    """Fails where the server's loop makes the first step of one chain on a million data, of half a minute, or the first
    after more of them were chosen. Planted faults: data are not counted; what a step cost before is believed."""
    monkeypatch.setattr(densities.Run, "advance", lambda run, n: None)
    if fault:
        monkeypatch.setattr(
            *((densities, "LOOKED_AT", 1e12) if not changed else (DensityLanes, "change", Lanes.change))
        )
    state = AppState()
    large = Experiment.from_dict(
        {
            "target": {"key": "linear_regression", "params": {"items": 1000}},
            "sampler": {"key": "hmc", "params": {"n_leapfrog": 1000}},
            "n_chains": 10,
        }
    )
    last = large.runs()[0]
    small = replace(
        large.lanes[0],
        sampler=Experiment.from_dict(
            {"target": "linear_regression", "sampler": {"key": "hmc", "params": {"n_leapfrog": 1}}}
        )
        .lanes[0]
        .sampler,
    )
    lanes = DensityLanes(replace(large, lanes=(small,)) if changed else large)
    if changed:
        lanes.move(state, 0)
        assert lanes.short(state, 0)
        lanes.change(0, Change(0, last.sampler, last.gradient))
    assert lanes.short(state, 0) == fault


@pytest.mark.parametrize("fault", [False, True])
@pytest.mark.parametrize("ask", [lambda state: state.set_lane_param(0, "sampler", "step_size", 0.03), AppState.reset])
def test_nobody_waits_for_the_end_of_a_long_step(ask, fault, monkeypatch):
    """It is said, and what is asked for meanwhile begins anew. Planted fault: no step is long."""
    monkeypatch.setattr(runner, "LONG_SECONDS", 1e9 if fault else 0.02)
    state, screen, free, under_way = AppState(), Mock(), threading.Event(), threading.Event()
    made, lanes = runner.Runner(state, screen), DensityLanes(state.experiment)
    monkeypatch.setattr(lanes, "short", lambda *_: False)
    monkeypatch.setattr(lanes, "move", lambda *_: under_way.set() or free.wait(600))

    async def asked():
        made.lanes, made._restart, made._rebuild = lanes, False, False
        frame = asyncio.create_task(made._frame())
        while not under_way.is_set() or not (fault or screen.show_status.called):
            await asyncio.sleep(0.001)
        ask(state)
        ended, _ = await asyncio.wait({frame}, timeout=0.2 if fault else 600)
        free.set()
        await frame
        return bool(ended), made.lanes is None, lanes.given_up

    assert asyncio.run(asked()) == (not fault,) * 3
    said = [call.args[0] for call in screen.show_status.call_args_list]
    assert said == ([] if fault else [runner.LONG.format("more than a second"), ""])


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_a_view_does_not_wait_for_the_end_of_a_long_step(fault, monkeypatch):
    """Its figure is on the page meanwhile, and the frame at the step's end fills it. Planted fault: no step is long."""
    monkeypatch.setattr(runner, "LONG_SECONDS", 1e9 if fault else 0.02)
    state, screen, free, under_way = AppState(), Mock(), threading.Event(), threading.Event()
    screen.show_views.return_value = []
    made, lanes = runner.Runner(state, screen), DensityLanes(state.experiment)
    made.bus = Mock(set_layout=AsyncMock(), send_frame=AsyncMock())
    monkeypatch.setattr(lanes, "short", lambda *_: False)
    monkeypatch.setattr(lanes, "move", lambda *_: under_way.set() or free.wait(600))

    async def asked():
        made.lanes, made._restart = lanes, False
        await made._lay_out()
        made.frames_sent, made._redraw = 7, False
        frame = asyncio.create_task(made._frame())
        while not under_way.is_set():
            await asyncio.sleep(0.001)
        state.views = ["marginal"]
        for _ in range(20 if fault else 6000):
            await asyncio.sleep(0.01)
            if made.bus.set_layout.await_count == 2:
                break
        free.set()
        await frame
        return [view.key for view in made.views] == ["marginal"], frame.done()

    assert asyncio.run(asked()) == (not fault, True)
    assert made.bus.send_frame.await_count == (not fault)
    if not fault:
        number, data = made.bus.send_frame.await_args.args
        assert number == 1 and data


class Said(View):
    """A view that only notes what it is asked in, and whether the lanes stand still."""

    def __init__(self, standing):
        self.scene, self._standing, self.asked = SimpleNamespace(lanes=["sgld"]), standing, []

    def build(self):
        raise NotImplementedError

    compute = build

    def texts(self, lanes):
        self.asked.append(self._standing())
        return [("label", "caption")]


def test_lanes_stand_still_for_captions_but_not_for_those_of_others(readings, monkeypatch):
    """Captions of thirty pages wait for one thread. Fails where a page's lanes are held meanwhile: with thirty pages
    that was a fifth of each second. Fails, too, where a frame moves the lanes that a caption is made of.
    """
    state, free, asked, pool = AppState(), threading.Event(), [], workers(1, "test")
    monkeypatch.setattr(runner, "PATIENT_SECONDS", 60)
    slow = SimpleNamespace(submit=lambda *work: asked.append(work) or pool.submit(*work))
    monkeypatch.setattr(runner, "SLOW", SimpleNamespace(share=str, of=lambda share: slow))
    made = runner.Runner(state, Mock())
    made.lanes, made.bus = DensityLanes(state.experiment), Mock(generation=1, send_texts=AsyncMock())
    view = Said(made._engine.locked)
    made.views = [view]

    async def said():
        pool.submit(free.wait)
        turn = asyncio.create_task(made._slow_turn(1))
        while not asked:
            await asyncio.sleep(0)
        await asyncio.wait_for(made._engine.acquire(), 300)
        free.set()
        # As long as a frame has the lanes, no caption is made of them.
        done, _ = await asyncio.wait({turn}, timeout=0.05)
        assert not done and not view.asked
        made._engine.release()
        await asyncio.wait_for(turn, 300)
        await asyncio.sleep(0)

    try:
        asyncio.run(said())
    finally:
        free.set()
    assert view.asked == [True] and not made._engine.locked()
    made.bus.send_texts.assert_awaited_once_with([("label", "caption")])


@pytest.mark.parametrize("begins", ["before", "meanwhile", "never"])
def test_captions_of_other_pages_do_not_wait_for_a_long_step(begins, readings, monkeypatch):
    """All pages have one thread for captions. Fails where it is held until a page's step ends, be it half a minute, and
    where that page's readout says so long that it is paused. The control is a page that stands still.
    """
    state, said, pool = AppState(), [], workers(1, "test")
    monkeypatch.setattr(runner, "LONG_SECONDS", 0.02)
    monkeypatch.setattr(runner, "PATIENT_SECONDS", 0.02)
    monkeypatch.setattr(runner, "SLOW", SimpleNamespace(share=str, of=lambda share: pool))
    made = runner.Runner(state, Mock())
    made.lanes, made.readout = DensityLanes(state.experiment), SimpleNamespace(id="readout")
    made.bus = Mock(generation=1, send_texts=AsyncMock(side_effect=said.extend))
    made.views = [Said(made._engine.locked)]
    if begins == "meanwhile":
        monkeypatch.setattr(made, "_step_ends", AsyncMock(return_value=True))

    async def turns():
        if begins != "never":
            await made._engine.acquire()
        for turn in (1, 2):
            await asyncio.wait_for(made._slow_turn(turn), 60)

    asyncio.run(turns())
    assert [key for key, _ in said] == ["label"] * (begins == "never") + ["readout"]


def test_the_page_says_why_draws_do_not_agree_with_the_target(readings):
    """Each lane has a sentence, with its name where there are several. A lesson's step has none: it may ask that."""
    lanes = [{"sampler": {"key": "sgld", "params": {"step_size": 1.9}}}, {"sampler": "exact"}]
    for some in (lanes[:1], lanes):
        state, made = AppState(), runner.Runner(AppState(), Mock())
        state.open(Experiment.from_dict({"target": "gaussian", "lanes": some}))
        made.state, made.lanes, made.doubts = state, DensityLanes(state.experiment), SimpleNamespace(id="doubts")
        made.bus = Mock(generation=1, send_texts=AsyncMock())
        for said in ("", f"{'SGLD: ' * (len(some) > 1)}KS "):
            asyncio.run(made._slow_turn(1))
            ((key, text),) = made.bus.send_texts.await_args.args[0]
            assert key == "doubts" and (text.startswith(said) if said else text == "")
            for run in made.lanes.runs:
                run.advance(4_000)
        assert "exact" not in text.lower() and "the step size biases θ" in text
        state.position.open(course.lesson_of("langevin"), 1)
        assert state.position.restricted and made.lanes.doubts(state) == ""


def test_lanes_that_nobody_waits_for_make_no_further_step(monkeypatch):
    """Fails where a page that was reset a few times keeps the processor with what nobody sees."""
    lanes, made = DensityLanes(Experiment.from_dict({"target": "gaussian", "lanes": 4 * [{"sampler": "sgld"}]})), []
    monkeypatch.setattr(densities.Run, "advance", lambda run, n: made.append(run) or setattr(lanes, "given_up", True))
    lanes.move(AppState(), 0)
    assert made == lanes.runs[:1]


@pytest.mark.parametrize(("most", "in_thread"), [(runner.LIGHT, False), (0, True)])
def test_lanes_that_are_made_in_a_moment_do_not_wait_for_a_thread(most, in_thread, monkeypatch):
    """Fails where in a full class no page moves until all are made, for the loop leaves a thread no time before.

    Planted fault: no experiment is so light.
    """
    state, asked = AppState(), []
    prepare(Progress(), state.experiment, None)
    pool = workers(1, "test")
    loader = SimpleNamespace(submit=lambda *work: asked.append(work) or pool.submit(*work))
    monkeypatch.setattr(runner, "_LOADER", SimpleNamespace(share=str, of=lambda share: loader))
    monkeypatch.setattr(runner, "LIGHT", most)

    async def begun():
        made = runner.Runner(state, Mock())
        await made._begin()
        return made.lanes

    assert len(asyncio.run(begun()).runs) == 1
    assert bool(asked) == in_thread


def test_the_distance_of_a_run_that_rests_is_that_of_all_its_draws(unhurried):
    """While it moves, the curve gets a point when the run is longer by its spacing, and the caption has the last."""
    state = AppState(speed=1000)
    lanes = DensityLanes(state.experiment)
    for state.speed in (1000, 20):
        lanes.move(state, 0)
        (frame,) = lanes.frame(state)
    assert [point.position.steps for point in frame.curve] == [1000]
    state.playing = False
    for _ in range(2):
        (frame,) = lanes.frame(state)
    assert [point.position.steps for point in frame.curve] == [1000, 1020]
    run = lanes.runs[0]
    assert frame.curve[-1].ks == ks.mean_distance(run.statistics, run.target) != frame.curve[0].ks


@pytest.mark.slow
def test_what_a_claim_is_held_against_is_the_run_at_its_length(unhurried):
    """The result does not depend on the work between two frames. Fails where statistics go on with the run: the last
    number would move.

    Outside of lessons nothing is kept beside the run.
    """
    state = AppState(speed=70)
    plain = DensityLanes(replace(state.experiment, n_steps=50, burn_in=10))
    plain.move(state, 0)
    assert plain.judged == plain.runs and plain.runs[0].steps == 70
    state.position.open(course.library().lessons["langevin"], 1)
    experiment = replace(state.experiment, n_steps=50, burn_in=10)
    lanes, alone = DensityLanes(experiment), Run(experiment.runs()[0])
    alone.advance(60)
    for state.speed in (33, 33, 400):
        lanes.move(state, 0)
        standing = lanes.judged[0]
        assert standing.counted == min(lanes.runs[0].counted, 50)
    assert lanes.runs[0].steps == 466
    assert standing.statistics.mean(0) == pytest.approx(alone.statistics.mean(0), rel=1e-12)
    assert standing.statistics.mean(0) != lanes.runs[0].statistics.mean(0)
    # Other parameters have a length of their own, from where they were set.
    last = lanes.runs[0].spec
    lanes.change(0, Change(0, last.sampler, last.gradient))
    state.speed = 70
    lanes.move(state, 0)
    assert lanes.judged[0].counted == 50


@pytest.mark.parametrize("axis", ["steps", "data"])
def test_a_frame_of_methods_has_no_more_steps_than_the_page_says(axis, monkeypatch):
    """A frame has time for 40 steps. Fails where it has as many, or where a method steps in place of the one that has
    made its steps: 50 points at a time are then soon far behind all of them.
    """
    state = AppState(axis=axis)
    query = "?target=clusters&lane=cluster_collapsed&lane=cluster_minibatch&n_chains=2"
    lanes = prepare(Progress(), Experiment.from_query(query, DEFAULT)[0], None)
    ticks = count()
    monkeypatch.setattr(models, "time", SimpleNamespace(perf_counter=lambda: next(ticks) / 1000))
    sweep, minibatch = lanes.runs
    for state.speed in (1, 3, 1, 2, 1, 8):
        before = [run.steps for run in lanes.runs]
        lanes.move(state, 0)
        more = [run.steps - old for run, old in zip(lanes.runs, before, strict=True)]
        assert max(more) == state.speed
    if axis == "steps":
        assert sweep.steps == minibatch.steps == 16
    else:
        assert sweep.steps < minibatch.steps == 16
        assert sweep.chains[0].data_seen - minibatch.chains[0].data_seen <= lanes.model.n_data


@for_each(
    ("lane", "noted"),
    [
        ("sgld~full", 0),
        ("sgld~minibatch", 0),
        ("sgld~minibatch_svrg", 0),
        ("sgld~minibatch_fisher", 1),
        ("sgld~minibatch_known", 1),
        ("hmc~full", 1),
    ],
)
def test_a_picture_has_a_line_for_a_note_only_where_one_may_come(lane, noted):
    """Planted fault: every minibatch takes a line, and four lanes of them a third of a picture on a phone."""
    state = AppState(experiment=Experiment.from_query(f"?target=linear_regression&lane={lane}", DEFAULT)[0])
    assert DensityLanes.scene(state).noted == noted
