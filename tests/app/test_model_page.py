"""The state of the page of a model, its link, its uploads and its live loop; all without a browser."""

import asyncio
import collections
import csv
import gc
import gzip
import io
import itertools
import sys
import threading
import time
import weakref
from dataclasses import replace
from unittest.mock import AsyncMock, Mock, patch

import numpy as np
import panel_material_ui as pmui
import pytest

import sgmcmc_lab.app.live.lanes.models as running
from sgmcmc_lab.app import link
from sgmcmc_lab.app.live import loop, runner
from sgmcmc_lab.app.live.fair_executor import Pool
from sgmcmc_lab.app.live.lanes import DensityLanes, Progress, prepare
from sgmcmc_lab.app.live.runner import TOO_MANY, Runner, Screen
from sgmcmc_lab.app.page import upload
from sgmcmc_lab.app.page.controls import Controls, sentence
from sgmcmc_lab.app.page.export import ExportMenu
from sgmcmc_lab.app.page.upload import CHUNK_BYTES, MAX_BYTES, MAX_CHUNKS, FileBox
from sgmcmc_lab.app.state import AppState, default_views
from sgmcmc_lab.app.state.upload import KINDS, Upload
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import BATCH_SIZES, BOUND, COLUMNS, EXACT, SCORES
from sgmcmc_lab.samplers import Change, Experiment, choices
from sgmcmc_lab.samplers.cli import main
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.lanes import OWN_GRADIENT, max_lanes, samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.run import run_models, start
from sgmcmc_lab.samplers.models.topics.corpus import TOLD_EVERY
from sgmcmc_lab.samplers.models.topics.model import FIRST
from sgmcmc_lab.samplers.parameters import UPLOADED, Source, SpecError, declared
from sgmcmc_lab.samplers.reader import MAX_CHANGES
from sgmcmc_lab.samplers.settings import ANY_TARGET
from sgmcmc_lab.samplers.targets import own
from sgmcmc_lab.samplers.targets.logistic_tumours import TumoursLogistic
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from tests.helpers.cases import for_each

CORPUS = "?target=topics(corpus:bars;n_topics:10;min_documents:1;max_share:1)"
BARS = f"{CORPUS}&lane=collapsed_gibbs&lane=lda_scir"
BLOCKS = "?target=network(graph:blocks)&lane=network_gibbs&lane=network_sgvb"
CSV = b"title,text\none,cats and dogs\ntwo,dogs and mice\nthree,mice and cats\nfour,cats dogs mice\nfive,cats dogs birds\n"


def open_link(query):
    """The state of a link, and what is not as it says."""
    state = AppState()
    return state, link.read_query(state, query)


def opened(query=BARS):
    return open_link(query)[0]


def snapshot(state):
    return state.experiment, state.upload, list(state.views), state.axis, state.shown


# State


@for_each("key", MODELS)
def test_a_model_opens_with_methods_and_views_that_fit(key):
    state = opened(f"?target={key}")
    assert {METHODS[lane.sampler.key].model for lane in state.experiment.lanes} == {key}
    assert state.shown_views()
    assert state.shown_views() == state.views
    other = next(name for name in MODELS if name != key)
    state.set_target(other)
    assert state.experiment.target.key == other
    assert {METHODS[lane.sampler.key].model for lane in state.experiment.lanes} == {other}
    assert state.shown_views() == state.views, "no view of the other model is left"


REFUSED = {
    "no such model": lambda state: state.set_target("weather"),
    "too few topics": lambda state: state.set_target_param("n_topics", 0),
    "no file yet": lambda state: state.set_target_param("corpus", "uploaded"),
    "another model's method": lambda state: state.set_sampler(0, "network_gibbs"),
    "no such method": lambda state: state.set_sampler(0, "nonsense"),
    "a negative step": lambda state: state.set_lane_param(1, "sampler", "step_size", -1.0),
    "no such parameter": lambda state: state.set_lane_param(1, "sampler", "no_such", 1.0),
    "a negative seed": lambda state: state.set_seed(-1),
    "too many seeds": lambda state: state.set_chains(6),
    "no such place": lambda state: state.look_inside(2),
}


@for_each("change", REFUSED.values(), ids=REFUSED)
def test_a_refused_change_says_what_is_allowed_and_changes_nothing(change):
    state = opened()
    before = snapshot(state)
    with pytest.raises(SpecError) as error:
        change(state)
    assert (
        "allowed" in str(error.value)
        or "there is no such" in str(error.value)
        or "fit" in str(error.value)
        or "file" in str(error.value)
    )
    assert snapshot(state) == before


def test_methods_are_added_up_to_the_limit_and_told_apart():
    state = opened("?target=topics(corpus:bars)&lane=lda_scir")
    state.add_lane()
    assert state.experiment.lanes[1].sampler.key != "lda_scir"
    state.set_sampler(1, "lda_scir")
    assert state.lane_titles() == ("SCIR (1)", "SCIR (2)")
    state.set_lane_param(1, "sampler", "step_size", 0.25)
    assert [title.endswith(number) for title, number in zip(state.lane_titles(), (" 0.5", " 0.25"), strict=True)] == [
        True,
        True,
    ]
    while len(state.experiment.lanes) < max_lanes("topics"):
        state.add_lane()
    with pytest.raises(SpecError):
        state.add_lane()
    assert len({lane.sampler.key for lane in state.experiment.lanes}) >= max_lanes("topics") - 1
    state.look_inside(max_lanes("topics") - 1)
    state.remove_lane(0)
    assert state.shown == max_lanes("topics") - 2, "the pictures go on showing the same method"
    while len(state.experiment.lanes) > 1:
        state.remove_lane(0)
    state.remove_lane(0)
    assert len(state.experiment.lanes) == 1
    assert state.shown == 0


def test_a_corpus_with_pictures_brings_its_view():
    state = opened("?target=topics(corpus:synthetic)&views=scores")
    state.set_target_param("corpus", "bars")
    assert state.views == ["pictures", "scores"]
    state.set_target_param("corpus", "synthetic")
    assert state.shown_views() == ["scores"]


def test_a_stream_leaves_the_methods_that_need_no_document_twice():
    state = opened("?target=topics(corpus:bars)&lane=collapsed_gibbs&lane=lda_scir&lane=minibatch_gibbs&lane=lda_sgrld")
    messages = state.set_target_param("corpus", "stream")
    assert [lane.sampler.key for lane in state.experiment.lanes] == ["lda_scir", "lda_sgrld"]
    assert messages == [
        f"{title} does not fit corpus = stream, so it is removed." for title in ("Collapsed Gibbs", "Minibatch Gibbs")
    ]
    while len(state.experiment.lanes) < max_lanes("topics"):
        state.add_lane()
    assert all(METHODS[lane.sampler.key].takes_streams for lane in state.experiment.lanes)
    state = opened("?target=topics(corpus:bars)&lane=collapsed_gibbs")
    state.set_target_param("corpus", "stream")
    assert [lane.sampler.key for lane in state.experiment.lanes] == ["lda_scir"]
    assert state.set_target_param("corpus", "docstrings") == []


# The link


@pytest.mark.parametrize(
    "query",
    [
        "?target=topics(corpus:bars;n_topics:7)&lane=lda_scir(step_size:0.2)&lane=lda_sgrld&seed=9&views=words,scores&axis=seconds&n_chains=3&show=2&theme=dark&play=0",
        "?target=network(graph:karate;n_communities:4)&lane=network_gibbs&seed=2&views=&axis=steps&hide=equations",
    ],
)
def test_the_link_holds_the_whole_state(query):
    state, messages = open_link(query)
    assert not messages
    written = link.to_query(state)
    again, messages = open_link(written)
    assert not messages
    assert link.to_query(again) == written
    assert snapshot(again) == snapshot(state)
    assert (again.dark, again.playing, again.hidden) == (state.dark, state.playing, state.hidden)


@for_each(
    ("query", "parts"),
    [
        ("?model=topic", ["target", "'topic'", "topics"]),
        ("?target=network&lane=lda_scir", ["lda_scir", "network"]),
        ("?target=topics(n_topics:1)", ["n_topics", "1"]),
        ("?target=topics&views=graph", ["graph", "does not fit the target"]),
        ("?target=topics&n_chains=99", ["n_chains", "99", "1 to 5"]),
        ("?target=topics&show=7", ["show", "7"]),
        ("?target=topics&axis=miles", ["axis", "miles"]),
        ("?target=topics&colour=red", ["colour", "no such field"]),
        ("?target=topics(corpus:uploaded)", ["own file", FIRST, KINDS["topics"].label]),
        ("?target=network(graph:uploaded)", ["own file", KINDS["network"].label]),
    ],
)
def test_a_bad_link_is_mended_and_told(query, parts):
    state, messages = open_link(query)
    assert len(messages) == 1
    assert all(part in messages[0] for part in parts), messages
    assert state.own_data is None
    again, messages = open_link(link.to_query(state))
    assert not messages
    assert again.experiment == state.experiment


# Uploads


def test_every_kind_of_upload_is_of_a_model_or_a_target_and_names_its_data():
    for key, kind in KINDS.items():
        named, owner = kind.model.data_parameter, ANY_TARGET[key]
        assert kind.model is owner
        parameter = dict(declared(owner))[named]
        assert isinstance(parameter, Source) or UPLOADED in parameter.objects
        assert next(iter(dict(declared(owner)))) == named, "the box stands below the data"
    assert {key for key in ANY_TARGET if hasattr(ANY_TARGET[key], "data_parameter")} == set(KINDS)


def test_an_upload_is_read_once_and_in_another_way_where_a_choice_is_changed():
    upload = Upload(KINDS["topics"], {"pets.csv": CSV})
    assert not upload.read and upload.taken is None
    corpus = upload.data()
    assert corpus.n_documents == 5
    assert upload.data() is corpus and upload.taken is corpus.taken
    assert "title row: yes" in upload.taken.sentence
    other = upload.changed("column", "1")
    assert (other.data().n_documents, other.form.column, upload.form.column) == (5, "1", "")
    assert other.changed("title_row", "no").data().n_documents == 6, "earlier choices stay"
    wrong = upload.changed("column", "7")
    with pytest.raises(SpecError, match="names no column 7"):
        wrong.data()
    assert wrong.failed and not wrong.read
    with pytest.raises(SpecError, match="encoding = 'x'"):
        upload.changed("encoding", "x")


def test_pages_with_the_same_numbers_share_a_table_and_each_says_how_it_was_read():
    rows = [(k, k * k % 7, k % 5) for k in range(12)]
    commas, semicolons = (
        Upload(
            KINDS["linear_table"],
            {"a.csv": "\n".join(each.join(map(str, row)) for row in [("a", "b", "y"), *rows]).encode()},
        )
        for each in ",;"
    )
    assert commas.data() is semicolons.data()
    assert "separator: comma" in commas.taken.sentence and "separator: semicolon" in semicolons.taken.sentence


@for_each(
    ("model", "name", "content", "parts"),
    [
        ("topics", "pets.csv", CSV + b"six,one,two\n", ["pets.csv, line 7", "3 fields"]),
        ("topics", "pets.txt", b"cats dogs\nmice \xff\0\n", ["pets.txt, line 2", "zero byte"]),
        ("topics", "pets.exe", b"cats", ["pets.exe", ".txt"]),
        ("network", "pets.csv", b"cat,dog\ndog,mouse\nmouse\n", ["pets.csv, line 3", "one field", "2 fields"]),
        ("network", "pets.graphml", b"<graphml>\n<node/></graphml>", ["pets.graphml, line 2", "id"]),
        (
            "network",
            "pets.graphml",
            b"<!DOCTYPE g [<!ENTITY a 'b'>]><graphml>&a;</graphml>",
            ["document type and entities are not allowed"],
        ),
        (
            "mixture",
            "visits.data.gz",
            gzip.compress(bytes(MAX_BYTES + 1)),
            ["visits.data.gz has more than 30,000,000 bytes"],
        ),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(model, name, content, parts):
    with pytest.raises(SpecError) as error:
        Upload(KINDS[model], {name: content}).data()
    assert all(part in str(error.value) for part in parts), str(error.value)


def box(kind="topics", address="127.0.0.1"):
    taken, refused = [], []
    return FileBox(KINDS[kind], taken.append, refused.append, address), taken, refused


def send(target, name, content, size=CHUNK_BYTES):
    chunks = [content[i : i + size] for i in range(0, len(content), size)] or [b""]
    target._handle_msg({"status": "initializing"})
    for number, chunk in enumerate(chunks, 1):
        target._handle_msg(
            {
                "status": "upload_event",
                "name": name,
                "chunk": number,
                "total_chunks": len(chunks),
                "mime_type": "text/plain",
                "data": chunk,
            }
        )


def finish(target):
    target._send_msg = Mock()
    target._handle_msg({"status": "finished"})


def test_the_box_hands_files_on_and_keeps_nothing():
    target, taken, refused = box()
    send(target, "a.txt", b"cats and dogs\n" * 3, size=10)
    send(target, "b.txt", b"mice")
    finish(target)
    assert taken == [{"a.txt": b"cats and dogs\n" * 3, "b.txt": b"mice"}]
    assert not refused
    assert target.value is None
    assert not target._parts


@pytest.mark.parametrize("apart", [True, False])
def test_the_pages_of_an_address_hold_so_many_bytes_and_no_more(apart, monkeypatch):
    """Fails where one address fills the memory, or keeps another one from its file. Fault: both are one address."""
    monkeypatch.setattr(upload, "MOST_OF_ADDRESS", 100)
    monkeypatch.setattr(upload.Size, "all", weakref.WeakSet())
    boxes = [box(address=address) for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2" if apart else "127.0.0.1")]
    (first, taken, _), (second, _, refused), (other, others, _) = boxes
    # One has its file, whoever holds it; the file of the other is still arriving.
    send(first, "a.txt", bytes(60))
    finish(first)
    held = taken.pop()
    send(second, "b.txt", bytes(60), size=10)
    assert not second._parts, "nothing is kept of what is refused"
    finish(second)
    assert "hold as many files as they may" in refused.pop()
    send(other, "c.txt", bytes(60))
    finish(other)
    assert bool(others) == apart
    # A file that nobody has any more counts no more.
    del held
    gc.collect()
    send(second, "b.txt", bytes(60), size=10)
    finish(second)
    assert not refused


def test_a_file_in_many_small_chunks_costs_what_a_file_costs():
    """The bytes that are put together are those that were sent: the parent's way takes the square of the chunks."""
    target, taken, refused = box()
    send(target, "a.txt", b"cats " * 400, size=1)
    finish(target)
    assert len(taken[0]["a.txt"]) == 2000 and not refused
    send(target, "a.txt", b"c" * (MAX_CHUNKS + 1), size=1)
    assert not target._parts, "so many small ones are not kept"
    finish(target)
    assert len(taken) == 1 and "too many files" in refused[0]


@for_each("wrong", [
    {"data": 10**11}, {"data": None}, {"data": [1, 2]}, {"name": 7}, {"name": None}, {"chunk": 2}, {"chunk": "1"}, {"chunk": None},
    {"name": "a" * 300}, {"total_chunks": 2}, {"total_chunks": None}, {"total_chunks": 10**12}, {"status": "?"}, {"status": None},
])  # fmt: skip
def test_a_message_that_no_browser_sends_brings_no_file(wrong):
    target, taken, refused = box()
    good = {"status": "upload_event", "name": "a.txt", "chunk": 1, "total_chunks": 1, "mime_type": "", "data": b"cats"}
    target._handle_msg(good | wrong)
    target._handle_msg({})
    target._handle_msg("finished")
    finish(target)
    assert not taken and "was not sent completely" in refused[0]
    target._handle_msg(good)
    finish(target)
    assert taken == [{"a.txt": b"cats"}]


def test_the_server_itself_refuses_what_is_too_large():
    """A page that sends more than the browser's check allows."""
    target, taken, refused = box()
    for _ in range(MAX_BYTES // 10_000_000 + 1):
        send(target, "big.txt", bytes(10_000_000), size=10_000_000)
        assert sum(len(data) for _, some in target._parts.values() for data in some) <= MAX_BYTES
    assert not target._parts
    finish(target)
    assert not taken
    assert "allowed are at most 30 MB in all" in refused[0]
    send(target, "small.txt", b"cats")
    finish(target)
    assert taken == [{"small.txt": b"cats"}], "the next file is taken"


def test_what_the_browser_refuses_is_told():
    target, taken, refused = box()
    target._handle_msg({"status": "error", "error": "File big.txt is larger than 28 MB"})
    assert not taken
    assert "larger than 28 MB" in refused[0]


def test_an_empty_file_is_told():
    """The browser says that it is done, and has sent nothing."""
    target, taken, refused = box()
    target._handle_msg({"status": "initializing"})
    finish(target)
    assert not taken
    assert "the file is empty" in refused[0]


# The live loop


class Stage:
    """A runner with a page that is always there, and whose bus keeps what is sent."""

    def __init__(self, query, address=""):
        self.state = opened(query)
        self.screen = Mock(spec=Screen)
        # Panel itself holds a component that was never on a page.
        with patch("sgmcmc_lab.app.live.loop.Bus"):
            self.runner = Runner(self.state, self.screen, address)
        bus = Mock(HELLO=-2, generation=1, connected=True)
        bus.set_layout, bus.send_frame, bus.send_texts = AsyncMock(), AsyncMock(), AsyncMock()
        self.runner.bus = self.bus = bus

    async def ready(self):
        await self.runner._begin()
        await self.runner.build_views()
        await self.runner._send_layout()

    async def frames(self, n=1):
        for _ in range(n):
            await self.runner._frame()

    def runs(self):
        return [chain for record in self.runner.lanes.records for chain in record.run.chains]


@pytest.mark.slow
def test_nothing_is_computed_for_figures_that_are_being_replaced(monkeypatch):
    """Captions of old figures on new runs fail. Planted fault: the old figures count as good meanwhile."""
    monkeypatch.setattr(loop, "SLOW_SECONDS", 0.0)
    real = runner._drawn

    async def turns(fault):
        stage = Stage(BARS)
        await stage.ready()
        stage.runner._slow_turn = AsyncMock()
        slow = asyncio.create_task(stage.runner._slow_loop())
        begun, go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(runner, "_drawn", lambda *args: begun.set() or (go_on.wait(60) and real(*args)))
        build = asyncio.create_task(stage.runner.build_views())
        await asyncio.to_thread(begun.wait, 60)
        stage.runner._stale &= not fault
        for _ in range(5):
            await asyncio.sleep(0)
        before = stage.runner._slow_turn.await_count
        go_on.set()
        await build
        await stage.runner._send_layout()
        for _ in range(5):
            await asyncio.sleep(0)
        slow.cancel()
        return before, stage.runner._slow_turn.await_count > before

    assert asyncio.run(turns(False)) == (0, True)
    assert asyncio.run(turns(True))[0] > 0


def test_a_rate_is_read_while_the_engine_goes_on():
    """Fails where steps that a worker thread notes meanwhile are an error."""
    times, over = collections.deque([(loop.time.perf_counter(), 0)] * 60, maxlen=60), threading.Event()

    def note():
        while not over.is_set():
            times.append((loop.time.perf_counter(), len(times)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    engine = threading.Thread(target=note)
    engine.start()
    try:
        for _ in range(2000):
            loop.recent_rate(times)
    finally:
        over.set()
        engine.join()
        sys.setswitchinterval(before)


def test_two_frames_that_are_answered_at_once_are_no_rate():
    """Fails where a page that was held up is told thousands of frames a second."""
    now = time.perf_counter()
    assert loop.recent_rate([(now - 0.0002, 1), (now, 2)]) <= 10
    assert loop.recent_rate([(now - 1.0, 1), (now, 21)]) == pytest.approx(20)


@pytest.mark.slow
@pytest.mark.parametrize("query", [BARS, BLOCKS])
def test_the_loop_makes_the_draws_of_the_experiment(query):
    """Live, in slices, with two chains: the scores are those of the experiment without a page."""

    async def live():
        stage = Stage(f"{query}&n_chains=2&seed=5")
        await stage.ready()
        while min(run.steps for run in stage.runs()) < 3:
            await stage.frames()
        return stage

    stage = asyncio.run(live())
    for record, alone in zip(
        stage.runner.lanes.records, start(stage.state.experiment, stage.runner.lanes.model), strict=True
    ):
        alone.advance(record.run.steps)
        for here, there in zip(record.run.chains, alone.chains, strict=True):
            # One that was a step behind on the page is not any more.
            values = [score.value for score in here.scores]
            assert values == [score.value for score in there.scores][: len(values)]
    first, second = stage.runner.lanes.records[0].run.chains
    assert first.scores[-1].value != second.scores[-1].value
    sent = stage.bus.send_frame.await_args_list
    assert [call.args[0] for call in sent] == list(range(1, len(sent) + 1))
    assert all(np.isfinite(column).all() for call in sent for columns in call.args[1].values() for column in columns)


@pytest.mark.slow
def test_the_method_that_is_furthest_behind_makes_the_next_step():
    async def behind(axis, count, enough):
        stage = Stage(f"{CORPUS}&axis={axis}&lane=collapsed_gibbs(batch_size:50)&lane=lda_scir(batch_size:5)")
        await stage.ready()
        while getattr(stage.runs()[0], count) <= enough:
            await stage.frames()
        return stage.runs()

    for axis, count, slack in (("data", "data_seen", 50), ("steps", "steps", 1)):
        one, other = asyncio.run(behind(axis, count, 2 * slack))
        assert abs(getattr(one, count) - getattr(other, count)) <= slack


@pytest.mark.slow
def test_the_curves_file_holds_every_score_of_every_seed():
    async def live():
        stage = Stage(f"{BLOCKS}&n_chains=2&seed=7")
        await stage.ready()
        while min(run.steps for run in stage.runs()) < 2:
            await stage.frames()
        return stage

    stage = asyncio.run(live())
    _, content = saved(stage, "_curves")
    rows = list(csv.DictReader(io.StringIO(content)))
    assert len(rows) == sum(len(run.scores) for run in stage.runs())
    second = stage.runner.lanes.records[1].run.chains[1]
    own = [row for row in rows if (row["method"], row["seed"]) == (stage.state.lane_titles()[1], "8")]
    assert [
        (int(row["step"]), int(row["observed pairs seen"]), float(row["seconds"]), float(row["held-out AUC"]))
        for row in own
    ] == second.scores


def saved(stage, action):
    """The name and the text of the file that the page's menu gives."""
    stage.bus.send_file = AsyncMock()
    with patch("sgmcmc_lab.app.page.export.pmui"):
        menu = ExportMenu(stage.state, stage.runner, Mock())
    asyncio.run(getattr(menu, action)())
    name, content = stage.bus.send_file.await_args.args
    return name, content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "changed"),
    [(BARS, [(1, "step_size", 0.1), (0, "batch_size", 7)]), (BLOCKS, [(1, "step_size", 0.05), (1, "step_size", 0.2)])],
)
def test_the_saved_experiment_gives_the_scores_of_the_page(query, changed, tmp_path):
    """The scores of every method and seed, with the changes on the way. Without these, or at other steps, it fails."""

    async def live():
        stage = Stage(f"{query}&n_chains=2&seed=5")
        await stage.ready()
        for step, (place, name, value) in enumerate(changed, 2):
            while min(run.steps for run in stage.runs()) < 2 * step:
                await stage.frames()
            stage.state.set_lane_param(place, "sampler", name, value)
            await stage.frames()
        changed_at = max(run.steps for run in stage.runs())
        while min(run.steps for run in stage.runs()) < changed_at + 3:
            await stage.frames()
        return stage

    stage = asyncio.run(live())
    name, text = saved(stage, "_json")
    assert name == "experiment.json"
    saved_one = Experiment.from_json(text)
    assert sum(len(lane.changes) for lane in saved_one.lanes) == 2

    def scores(some):
        return [
            [(s.step, s.data_seen, s.value) for s in chain.scores] for run in run_models(some) for chain in run.chains
        ]

    shown = [[(s.step, s.data_seen, s.value) for s in run.scores] for run in stage.runs()]

    def agree(some):
        # A run that was a step behind on the page makes that one here.
        return all(
            there[: len(here)] == here and len(there) <= len(here) + 1
            for here, there in zip(shown, scores(some), strict=True)
        )

    def with_changes(change):
        lanes = tuple(replace(lane, changes=tuple(change(lane.changes))) for lane in saved_one.lanes)
        return replace(saved_one, lanes=lanes)

    assert agree(saved_one)
    assert not agree(with_changes(lambda changes: changes[:-1]))
    assert not agree(with_changes(lambda changes: [one._replace(step=one.step + 1) for one in changes]))
    # The command gives the same numbers.
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / name), "--out", str(tmp_path / "curves.csv")]) == 0
    with (tmp_path / "curves.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [(int(row[2]), int(row[3]), float(row[5])) for row in rows] == list(itertools.chain(*scores(saved_one)))
    assert {row[1] for row in rows} == {"5", "6"}


@pytest.mark.slow
def test_more_changes_than_a_file_may_hold_are_told():
    async def live():
        stage = Stage(f"{BARS}&play=0")
        await stage.ready()
        change = Change(0, stage.state.experiment.lanes[1].sampler, OWN_GRADIENT)
        stage.runner.lanes.records[1].run.changes = [change] * (MAX_CHANGES + 1)
        return stage

    stage = asyncio.run(live())
    notify = Mock()
    with patch("sgmcmc_lab.app.page.export.pmui"):
        menu = ExportMenu(stage.state, stage.runner, notify)
    asyncio.run(menu._clicked({"label": "Experiment (JSON)"}))
    kind, sentence = notify.call_args.args
    assert kind == "error" and "1001" in sentence and str(MAX_CHANGES) in sentence


@pytest.mark.slow
def test_what_a_refused_experiment_gives_way_to_is_what_runs():
    """Fails where the page goes back to values that were changed before the experiment that could not be opened."""

    async def live():
        stage = await _begun(BARS)
        stage.state.set_lane_param(1, "sampler", "step_size", 0.1)
        await stage.frames()
        stage.state.bring({"pets.csv": b"cats"})
        await stage.runner._begin()
        return stage

    stage = asyncio.run(live())
    assert stage.screen.show_problem.called
    assert stage.state.experiment.lanes[1].sampler.values()["step_size"] == 0.1
    assert stage.runner.lanes.runs[1].changes[-1].sampler.values()["step_size"] == 0.1


@pytest.mark.slow
def test_a_picture_that_was_made_is_sent_though_something_else_was_asked_for_meanwhile():
    """Fails where it is thrown away: views send nothing twice, and what is asked for may be refused."""

    async def live():
        stage = await _begun(f"{BARS}&play=0")
        made = stage.runner._picture

        def picture(*args):
            stage.runner._restart = True
            return made(*args)

        stage.runner._picture = picture
        await stage.frames()
        return stage

    assert asyncio.run(live()).bus.send_frame.await_count == 1


@pytest.mark.slow
def test_a_changed_parameter_goes_on_and_is_marked():
    async def change():
        stage = Stage(f"{BARS}&play=0")
        await stage.ready()
        stage.runner.step()
        await stage.frames()
        stage.state.set_lane_param(1, "sampler", "step_size", 0.1)
        assert not stage.runner._restart
        stage.runner.step()
        await stage.frames()
        return stage

    stage = asyncio.run(change())
    assert [run.steps for run in stage.runs()] == [2, 2]
    assert stage.runner.lanes.records[1].run.chains[0].method.step_size == 0.1
    assert [len(record.marks) for record in stage.runner.lanes.records] == [0, 1]
    assert stage.runner.lanes.records[1].marks[0].steps == 1


@pytest.mark.slow
def test_a_structural_change_starts_again():
    for change in (
        lambda state: state.set_sampler(0, "minibatch_gibbs"),
        lambda state: state.set_seed(3),
        lambda state: state.set_target_param("n_topics", 4),
        lambda state: state.set_chains(2),
        lambda state: state.reset(),
        lambda state: state.bring({"pets.csv": CSV}),
    ):
        stage = asyncio.run(_begun(BARS))
        assert not stage.runner._restart
        change(stage.state)
        assert stage.runner._restart


async def _begun(query):
    stage = Stage(query)
    await stage.ready()
    return stage


def test_no_page_waits_for_the_exact_law_of_another(monkeypatch):
    """Two long runs are under way, one for each thread of such runs and of all other pages' starts."""
    go_on, asked = threading.Event(), []
    longest = time.monotonic() + 60

    def found(self, tell):
        asked.append(self)
        while not go_on.is_set() and time.monotonic() < longest:
            tell("Looking", None)
            time.sleep(0.01)
        raise SpecError("target", self.key, "nothing was found")

    monkeypatch.setattr(TumoursLogistic, "prepare", found)
    monkeypatch.setattr(runner, "EARLY_SECONDS", 60.0)

    async def open_all():
        slow = [Stage(f"target=logistic_tumours(items:{n})&lane=sgld") for n in (51, 52)]
        waiting = [asyncio.create_task(stage.runner._begin()) for stage in slow]
        while len(asked) < 2:
            await asyncio.sleep(0.01)
        # Of a law that is not known there are no pictures yet.
        for stage in slow:
            await stage.runner.build_views()
        assert [stage.runner.views for stage in slow] == [[], []]
        quick = await _begun("target=gaussian&lane=sgld")
        await quick.frames(2)
        assert not any(task.done() for task in waiting)
        go_on.set()
        await asyncio.gather(*waiting)
        return quick, slow

    quick, slow = asyncio.run(open_all())
    assert quick.runner.lanes.runs[0].steps > 0
    for stage in slow:
        stage.screen.show_problem.assert_called_with("target = 'logistic_tumours': nothing was found.")


@pytest.mark.parametrize("most", [2, 30])
def test_no_address_waits_for_the_exact_answers_of_another(monkeypatch, most):
    """Four pages of 127.0.0.1 look for one of minutes, then one of 127.0.0.2. Fails where a third of the four begins:
    each that runs takes processor time from the other address. Fault: all of an address run at once.

    A page that comes when too many wait has a sentence, and one that is closed waits no more.
    """
    begun = []
    monkeypatch.setattr(runner, "_FINDER", Pool(2, "test", most_of_address=most, most_waiting=most))
    monkeypatch.setattr(runner, "EARLY_SECONDS", 60.0)
    longest = time.monotonic() + 60

    def found(self, tell):
        begun.append(self.items)
        while time.monotonic() < longest:
            tell("Looking", None)
            time.sleep(0.01)

    monkeypatch.setattr(TumoursLogistic, "prepare", found)

    async def opened_from(address, items):
        stage = Stage(f"target=logistic_tumours(items:{items})&lane=sgld", address)
        stage.runner._connected.set()
        task = asyncio.create_task(stage.runner.run())
        while stage.runner._search is None and not stage.screen.show_problem.called:
            await asyncio.sleep(0.01)
        return stage, task

    async def closed(*pages):
        for _, task in pages:
            task.cancel()
        await asyncio.gather(*(task for _, task in pages), return_exceptions=True)

    async def open_all():
        pages = [await opened_from("127.0.0.1", items) for items in (51, 52)]
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        pages += [await opened_from("127.0.0.1", items) for items in (53, 54)]
        pages.append(await opened_from("127.0.0.2", 61))
        while 61 not in begun or len(begun) < 1 + min(most, 4):
            await asyncio.sleep(0.01)
        assert sorted(begun) == [*range(51, 51 + min(most, 4)), 61]
        if most == 2:
            pages.append(await opened_from("127.0.0.1", 55))
            pages[-1][0].screen.show_problem.assert_called_with(TOO_MANY)
            await closed(*pages[2:4])
            pages.append(await opened_from("127.0.0.1", 56))
            await closed(pages[0])
            while 56 not in begun:
                await asyncio.sleep(0.01)
            assert not {53, 54, 55} & {*begun}
        await closed(*pages)

    asyncio.run(asyncio.wait_for(open_all(), 60))


class SlowAnswer:
    """Exact answers of typed posteriors that are there when the test wants, and the order in which things happen."""

    def __init__(self, monkeypatch, early=DensityLanes.prepare_early):
        self.happened, self.open, real = [], threading.Event(), TypedPosterior.prepare
        # Another test may have asked for the same posterior.
        choices._shared.cache_clear()
        monkeypatch.setattr(runner, "EARLY_SECONDS", 0.0)

        def prepare(target, tell):
            self.happened.append("search")
            while not self.open.wait(0.01):
                tell("A long run", 0.5)
            real(target, tell)
            self.happened.append("answer")

        def begin(experiment, readings):
            lanes = early(experiment, readings)
            # A page that does not begin early waits for the answer.
            if lanes is None:
                self.open.set()
            return lanes

        monkeypatch.setattr(TypedPosterior, "prepare", prepare)
        monkeypatch.setattr(DensityLanes, "prepare_early", begin)

    async def begun(self):
        stage = Stage("target=posterior&lane=sgld&views=marginal,ks,state,trace&play=1")
        stage.state.set_target_param("table", "schools")
        await stage.ready()
        await stage.frames(3)
        self.happened.append("frame")
        return stage


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_chains_move_before_the_exact_answer_is_there(monkeypatch, readings, fault):
    """Fails where the first frame waits for the long run. Planted fault: a page that cannot begin early."""
    answer = SlowAnswer(monkeypatch, (lambda experiment, readings: None) if fault else DensityLanes.prepare_early)

    async def live():
        stage = await answer.begun()
        if not fault:
            lanes = stage.runner.lanes
            assert lanes.early
            assert lanes.runs[0].steps > 0
            assert [view.key for view in stage.runner.views] == stage.state.shown_views(), "all pictures are there"
            stage.runner.checks = Mock(return_value=[])
            await stage.runner._slow_turn(1)
            stage.runner.checks.assert_not_called()
            while not stage.screen.show_work.called:
                await asyncio.sleep(0.01)
            assert "no claim is judged" in stage.screen.show_work.call_args.args[0]
            answer.open.set()
            await stage.runner._search_ends
            assert stage.runner.lanes is lanes, "the chains go on"
            assert not lanes.early
            before = stage.runner.views
            await stage.runner._lay_out()
            assert stage.runner.views[0] is not before[0]
            await stage.frames(2)
            await stage.runner._slow_turn(1)
            stage.runner.checks.assert_called_once()
            assert stage.screen.show_work.call_args.args == ("", None)
        return stage

    stage = asyncio.run(live())
    assert (answer.happened.index("frame") < answer.happened.index("answer")) is not fault
    (run,) = stage.runner.lanes.runs
    assert run.target.uncertainty < 0.03, "the answers are the exact ones now"
    assert np.isfinite(ks.mean_distance(run.statistics, run.target))


@pytest.mark.slow
def test_chains_begin_anew_where_the_exact_answer_has_another_mode(monkeypatch):
    """Fails where the pictures go on with the range of rough answers, which know one of two modes."""
    answer = SlowAnswer(monkeypatch)

    async def live():
        stage = await answer.begun()
        one = {"parameters": "k", "prior": "normal_lpdf(k, 0, 3)", "row": "normal_lpdf(y, k^2, 2)", "curve": ""}
        target = {"key": "posterior", "params": {"table": "counts", **one}}
        stage.state.open(Experiment.from_dict(stage.state.experiment.to_dict() | {"target": target}))
        await stage.runner._begin()
        rough = stage.runner.lanes
        assert rough.early
        answer.open.set()
        await stage.runner._search_ends
        assert stage.runner._restart
        await stage.runner._begin()
        return rough, stage.runner.lanes

    rough, lanes = asyncio.run(live())
    (column,) = lanes.runs[0].target.columns
    assert not lanes.early and lanes is not rough
    assert column.shown[0] < -1.5 and column.shown[1] > 1.5 and abs(column.cdf(0.0) - 0.5) < 1e-6
    assert rough.runs[0].target.columns[0].low > 0


@pytest.mark.slow
def test_reset_and_a_slider_do_not_begin_the_long_run_again(monkeypatch):
    answer = SlowAnswer(monkeypatch)

    async def live():
        stage = await answer.begun()
        first = stage.runner.lanes
        stage.state.set_lane_param(0, "sampler", "step_size", 0.03)
        assert not stage.runner._restart, "the chains go on with another step"
        await stage.frames()
        await stage.runner._begin()
        assert stage.runner.lanes is not first
        assert stage.runner.lanes.early
        answer.open.set()
        await stage.runner._search_ends
        assert not stage.runner.lanes.early
        assert first.early

    asyncio.run(live())
    assert answer.happened.count("search") == 1


@pytest.mark.slow
def test_another_temperature_has_a_search_of_its_own(monkeypatch):
    """Fails where the answers of T = 1 are waited for in place of those of T = 2, which nobody would have found."""
    answer = SlowAnswer(monkeypatch)

    async def live():
        stage = await answer.begun()
        first, shown = stage.runner._search, stage.runner.lanes
        stage.state.set_temperature(2.0)
        # The picture of T = 1 is not that of T = 2.
        assert DensityLanes.scene(stage.state, shown) is None
        await stage.runner._begin()
        search, lanes = stage.runner._search, stage.runner.lanes
        assert search is not first and first.progress.cancelled
        assert lanes.early and lanes.experiment.temperature == 2
        answer.open.set()
        await stage.runner._search_ends
        assert not lanes.early and lanes.experiment.make_target().ready

    asyncio.run(live())


@pytest.mark.slow
def test_a_long_run_that_is_cancelled_leaves_the_chains(monkeypatch):
    answer = SlowAnswer(monkeypatch)

    async def live():
        stage = await answer.begun()
        lanes = stage.runner.lanes
        stage.runner.cancel()
        await stage.runner._search_ends
        await stage.frames()
        assert stage.runner.lanes is lanes
        assert stage.screen.show_work.call_args.args == ("", None)
        with pytest.raises(asyncio.CancelledError):
            await stage.runner._search.job
        # Another beginning looks for it anew.
        answer.open.set()
        await stage.runner._begin()
        await stage.runner._search.job

    asyncio.run(live())
    assert answer.happened == ["search", "frame", "search", "answer"]


@pytest.mark.slow
def test_a_page_that_nobody_sees_or_that_is_paused_computes_nothing():
    stage = asyncio.run(_begun(BARS))
    runner = stage.runner
    runner._redraw = False
    assert runner._active()
    stage.bus.connected = False
    assert not runner._active()
    stage.bus.connected = True
    runner._answered(-1, True, 1, 0, False, False)
    assert not runner._active()
    runner._answered(-1, False, 1, 0, False, False)
    assert runner._active()
    stage.state.playing = False
    runner._redraw = False
    assert not runner._active()


class Gate:
    """A model that takes as long to load as the test wants."""

    def __init__(self, monkeypatch):
        self.open, self.entered = threading.Event(), threading.Event()
        self.threads = []
        real = running.load

        def load(experiment, uploaded=None):
            self.threads.append(threading.current_thread())
            self.entered.set()
            assert self.open.wait(600)
            return real(experiment, uploaded)

        monkeypatch.setattr(running, "load", load)


@pytest.mark.slow
def test_loading_leaves_the_event_loop_free_and_can_be_cancelled(monkeypatch):
    async def load():
        stage = await _begun(BARS)
        runs, before = stage.runs(), stage.state.experiment
        stage.screen.reset_mock()
        gate = Gate(monkeypatch)
        stage.state.set_target_param("n_topics", 4)
        loading = asyncio.create_task(stage.runner._begin())
        # On the event loop the gate could not be waited for: nobody would be there to open it.
        while not stage.screen.show_work.called:
            await asyncio.sleep(0.01)
        assert "so far" in stage.screen.show_work.call_args.args[0]
        stage.screen.show_former.assert_called_with(True)
        assert not loading.done()
        stage.runner.cancel()
        await loading
        assert gate.threads[0] is not threading.main_thread()
        assert stage.screen.show_work.call_args.args[0] == ""
        stage.screen.show_former.assert_called_with(False)
        assert stage.state.experiment == before, "what ran before comes back"
        assert stage.runs() == runs, "with its runs"
        assert not stage.runner._restart
        gate.open.set()
        # The event loop waits for its threads where it ends.

    asyncio.run(load())


def test_a_first_experiment_that_is_cancelled_or_gives_way_leaves_a_way_on(monkeypatch):
    async def load():
        stage = Stage(BARS)
        first = stage.state.experiment
        gate = Gate(monkeypatch)
        loading = asyncio.create_task(stage.runner._begin())
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)
        stage.runner.cancel()
        await loading
        assert "Reset" in stage.screen.show_status.call_args.args[0]
        gate.open.set()
        # A bad file, brought before anything has run: the experiment of the link is loaded.
        stage.state.bring({"pets.csv": CSV + b"six,one,two\n"})
        await stage.runner._begin()
        assert "line 7" in stage.screen.show_problem.call_args.args[0]
        assert stage.state.experiment == first
        assert stage.runner._restart
        await stage.runner._begin()
        assert stage.runner.lanes is not None

    asyncio.run(load())


@pytest.mark.slow
def test_a_page_goes_from_a_density_to_a_model_and_back(monkeypatch):
    """With figures of its own for each, and with the density's runs where the model is given up."""

    async def there_and_back():
        stage = await _begun("?target=gaussian&lane=sgld&lane=hmc&seed=3")
        await stage.frames(2)
        gate = Gate(monkeypatch)
        before, lanes = stage.state.experiment, stage.runner.lanes
        stage.state.set_target("topics")
        assert stage.runner._restart
        loading = asyncio.create_task(stage.runner._begin())
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)
        stage.runner.cancel()
        await loading
        assert stage.state.experiment == before
        assert stage.runner.lanes is lanes
        assert [view.key for view in stage.runner.views] == stage.state.shown_views()
        await stage.frames(2)
        gate.open.set()
        stage.state.set_target("topics")
        await stage.ready()
        await stage.frames(2)
        models = [view.key for view in stage.runner.views]
        assert models == default_views(stage.state.experiment)
        assert max(run.steps for run in stage.runs()) > 0
        assert (stage.state.axis, stage.state.seed, stage.state.experiment.n_chains) == ("data", 3, 1)
        stage.state.set_target("sparse_dirichlet")
        await stage.ready()
        await stage.frames(2)
        assert [view.key for view in stage.runner.views] == default_views(stage.state.experiment)
        assert (stage.state.axis, stage.state.coordinate) == ("steps", 4)
        assert min(run.steps for run in stage.runner.lanes.runs) > 0
        sent = [call.args[1] for call in stage.bus.send_frame.await_args_list]
        assert all(np.isfinite(column).all() for data in sent for columns in data.values() for column in columns)

    asyncio.run(there_and_back())


@pytest.mark.slow
def test_another_wish_while_loading_is_the_one_that_counts(monkeypatch):
    async def load():
        stage = await _begun(BARS)
        gate = Gate(monkeypatch)
        stage.state.set_target_param("n_topics", 4)
        loading = asyncio.create_task(stage.runner._begin())
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)
        stage.state.set_target_param("n_topics", 5)
        await loading
        assert stage.runner._restart
        gate.open.set()
        await stage.runner._begin()
        assert stage.runner.lanes.model.n_topics == 5

    asyncio.run(load())


@pytest.mark.slow
def test_a_bad_file_gives_its_sentence_and_what_ran_before_goes_on():
    async def bring(content):
        stage = await _begun(BARS)
        before = stage.state.experiment, stage.runs()
        stage.state.bring({"pets.csv": content})
        await stage.runner._begin()
        return stage, before

    async def cut_off():
        stage = await _begun("?target=topics(corpus:bars;max_share:0.2)")
        stage.state.bring({"pets.csv": CSV})
        await stage.runner._begin()
        return stage

    stage, (experiment, runs) = asyncio.run(bring(CSV + b"six,one,two\n"))
    assert "pets.csv, line 7" in stage.screen.show_problem.call_args.args[0]
    assert stage.state.experiment == experiment
    assert stage.state.upload is None
    assert stage.runs() == runs
    assert not stage.runner._restart

    stage, (experiment, runs) = asyncio.run(bring(CSV))
    assert {call.args[0] for call in stage.screen.show_problem.call_args_list} == {""}
    assert stage.state.own_data.name == "pets.csv"
    assert stage.runner.lanes.model.training.n_documents + stage.runner.lanes.model.folded.n_documents == 5
    # Where the file is good and the cut-offs are not, it need not be brought again.
    stage = asyncio.run(cut_off())
    assert "max_share" in stage.screen.show_problem.call_args.args[0]
    assert stage.state.own_data is None
    assert stage.state.upload.name == "pets.csv"
    stage.state.set_target_param("max_share", 1.0)
    stage.state.set_target_param("corpus", "uploaded")
    assert stage.state.own_data is not None
    # Back to built-in data, and to the file again without bringing it once more.
    stage.state.set_target_param("corpus", "bars")
    assert stage.state.own_data is None
    stage.state.set_target_param("corpus", "uploaded")
    assert stage.state.own_data is not None


@pytest.mark.slow
def test_an_error_that_nobody_thought_of_leaves_what_ran_before(monkeypatch, caplog):
    async def fail():
        stage = await _begun(BARS)
        before = stage.state.experiment, stage.runs()
        monkeypatch.setattr(running, "load", Mock(side_effect=ZeroDivisionError("a secret")))
        stage.state.set_target_param("n_topics", 4)
        await stage.runner._begin()
        return stage, before

    stage, (experiment, runs) = asyncio.run(fail())
    said = stage.screen.show_problem.call_args.args[0]
    assert "unexpected error" in said and "secret" not in said
    assert "a secret" in caplog.text
    assert stage.state.experiment == experiment
    assert stage.runs() == runs
    assert not stage.runner._restart


def controls_of(controls):
    """The widgets of a sidebar by their labels."""
    return {made.label: made for made in controls.panel.select(pmui.widgets.base.MaterialWidget) if made.label}


def rows(n=14, factor=1.5):
    return {
        "mine.csv": b"dose,age,effect\n"
        + b"".join(b"%d,%d,%g\n" % (k, k * k % 7, factor * k - k * k % 5) for k in range(n))
    }


@pytest.mark.slow
def test_a_table_of_ones_own_is_run_and_offered_and_goes_with_the_page():
    async def bring():
        stage = await _begun("?target=linear_table&lane=sgld&lane=sghmc")
        controls = Controls(stage.state, Mock())
        take = next(iter(controls._boxes.values()))._take
        take(rows())
        named = stage.state.experiment.target.values()["table"]
        await stage.runner._begin()
        assert [record.run.target.dim for record in stage.runner.lanes.records] == [4, 4]
        assert "14 rows; effect is explained by 2 columns" in stage.screen.show_facts.call_args.args[0]["Data"]
        assert controls_of(controls)["Data"].value == named
        assert f"table:{named}" in link.to_query(stage.state)
        # A fault in another file is reported below the box, and nothing changes.
        before = snapshot(stage.state)
        take({"mine.csv": rows()["mine.csv"] + b"1,2\n"})
        assert "mine.csv, line 16" in controls._problem.object
        take({"twin.csv": b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (k, 2 * k, k * k) for k in range(12))})
        assert "one column is nearly the sum of others" in controls._problem.object
        assert snapshot(stage.state) == before
        del before
        # To other data and back, without bringing it once more.
        stage.state.set_target_param("table", "diabetes")
        assert controls_of(controls)["Data"].options == {"Diabetes": "diabetes", "Your own": named}
        stage.state.set_target_param("table", named)
        await stage.runner._begin()
        take(rows(20))
        assert not controls._problem.object
        await stage.runner._begin()
        assert len(stage.runner.lanes.records[0].run.target.data()) == 20
        collect()
        assert own.held(named) is None, "the one before it is gone"
        return stage.state.experiment.target.values()["table"], stage

    named, stage = asyncio.run(bring())
    assert own.held(named) is not None
    shown, messages = open_link(f"?target=linear_table(table:{named})")
    assert len(messages) == 1
    assert "no link holds" in messages[0]
    assert shown.experiment.make_target().contents.answer == "progress", "a page's file is for nobody else"
    stage.state.set_target("gaussian")
    del stage
    collect()
    assert own.held(named) is None
    shown, messages = open_link(f"?target=linear_table(table:{named})")
    assert len(messages) == 1
    assert "bring the file again" in messages[0]
    assert shown.experiment.make_target().contents.answer == "progress"


def many(n):
    return {"many.txt": b"cats and dogs and mice and birds and foxes and hares\n" * n}


@pytest.mark.slow
def test_a_file_that_nobody_waits_for_any_more_is_not_read_on():
    n = 20_000
    upload, progress, shares = Upload(KINDS["topics"], many(n)), Progress(), []
    real = progress.tell

    def tell(what, share=None):
        progress.cancelled = len(shares) == 60
        real(what, share)
        if what == "Reading many.txt":
            shares.append(share)

    progress.tell = tell
    with pytest.raises(EndedError):
        prepare(progress, opened().experiment, upload)
    assert shares[-1] == pytest.approx(len(shares) * TOLD_EVERY / n, rel=0.05), "as far as it was read"
    assert shares == sorted(set(shares))
    assert len(shares) == 60, "a moving bar, and then the end"
    assert not upload.read, "the file is there for another try"
    progress.cancelled = False
    progress.tell = real
    assert upload.data(lambda share: real("Reading", share)).n_documents == n
    assert (progress.what, progress.share) == ("Reading", pytest.approx(1 - TOLD_EVERY / n, abs=0.03))


@pytest.mark.slow
def test_the_page_sees_how_far_a_file_is_read():
    """The reader stops in the middle until the page has been told."""
    halfway = threading.Event()

    class Slow(MODELS["topics"]):
        @classmethod
        def read(cls, files, tell, form):
            tell(0.5)
            assert halfway.wait(600)
            return super().read(files, tell, form)

    async def live():
        stage = await _begun(BARS)
        stage.screen.show_work.side_effect = lambda what, share: share == 0.5 and halfway.set()
        stage.state.bring({"pets.csv": CSV})
        stage.state.upload.kind = replace(stage.state.upload.kind, model=Slow)
        await stage.runner._begin()
        return stage

    stage = asyncio.run(live())
    assert any("Reading pets.csv" in call.args[0] for call in stage.screen.show_work.call_args_list)
    assert stage.state.own_data.name == "pets.csv"


@pytest.mark.slow
def test_an_experiment_that_is_given_up_leaves_the_figures_and_the_widgets_as_they_were(monkeypatch):
    async def load():
        stage = await _begun(BARS)
        controls = Controls(stage.state, Mock())
        widgets = controls_of(controls)
        figures = list(stage.runner.views)
        gate = Gate(monkeypatch)
        stage.state.bring({"pets.csv": CSV})
        stage.state.set_target_param("n_topics", 20)
        stage.state.set_target_param("alpha", list(widgets["Document prior α"].options.values())[-1])
        assert controls_of(controls)["Corpus"].value == "uploaded"
        assert widgets["Corpus"].value == "bars", "a menu is not set, for it would send that back"
        assert widgets["Topics K"].value == 20
        loading = asyncio.create_task(stage.runner._begin())
        while not gate.entered.is_set():
            await asyncio.sleep(0.01)
        stage.runner.cancel()
        await loading
        gate.open.set()
        return stage, controls, widgets, figures

    stage, controls, widgets, figures = asyncio.run(load())
    assert not stage.runner._rebuild
    assert stage.runner.views == figures
    shown = controls_of(controls)
    assert shown["Topics K"] is widgets["Topics K"], "the sidebar was not drawn anew for a cancel"
    assert shown["Seed"] is widgets["Seed"]
    assert (shown["Corpus"].value, shown["Topics K"].value) == ("bars", 10)
    assert shown["Document prior α"].value == 0.1
    # A value that the slider has no place for.
    stage.state.set_target_param("alpha", 0.123)
    shown = controls_of(controls)
    assert shown["Document prior α"].value == 0.123
    # Changes on the page in the meantime are drawn.
    stage.state.dark = True
    stage.runner._rebuild = False
    stage.runner._give_way("")
    assert stage.runner._rebuild


def collect():
    """Collect until nothing more is freed: an object that is freed may release others."""
    # A page leaves out of the collector's looks what is there when its loop looks at all.
    gc.unfreeze()
    while gc.collect():
        pass


@pytest.mark.slow
def test_the_data_of_a_session_end_with_it_and_no_other_session_sees_them():
    async def bring():
        stage = await _begun(BARS)
        stage.state.bring({"pets.csv": CSV})
        await stage.ready()
        await stage.frames()
        return (
            weakref.ref(stage.state.upload),
            weakref.ref(stage.state.upload.data()),
            weakref.ref(stage.runner.lanes.model),
        )

    held = asyncio.run(bring())
    collect()
    assert [ref() for ref in held] == [None, None, None]
    assert all(model.uploaded is None for model in running._MODELS.values())
    # A built-in set is there for the next session, so the check above can fail.
    stage = asyncio.run(_begun(BARS))
    kept = weakref.ref(stage.runner.lanes.model)
    del stage
    collect()
    assert kept() is not None


@pytest.mark.slow
def test_a_method_that_blows_up_says_so_and_the_others_go_on():
    async def blow():
        stage = await _begun(BARS)
        broken, other = stage.runs()

        def advance(*_):
            raise FloatingPointError("φ is no longer finite. Make the step size smaller.")

        broken.method.advance, before = advance, other.steps
        await stage.frames(3)
        return stage, broken, other, before

    stage, broken, other, before = asyncio.run(blow())
    stage.screen.show_divergence.assert_called_once_with(0, "φ is no longer finite. Make the step size smaller.")
    assert broken.divergence is not None
    assert other.steps > before
    assert stage.runner._active()


def test_every_method_is_offered_and_every_view_belongs_to_a_model():
    assert {key for model in MODELS for key in samplers_of(model)} == set(METHODS)
    assert {view.requires for view in VIEWS.values()} == {BATCH_SIZES, BOUND, COLUMNS, EXACT, SCORES, *MODELS}
    assert isinstance(opened(), AppState)


def test_what_a_card_says_of_a_class_is_text():
    """Fault: a docstring as it stands, of which several name another class by its role and its module."""
    said = [sentence(cls) for kind in (METHODS, MODELS, GRADIENTS) for cls in kind.values()]
    assert all(said) and [text for text in said if "`" in text or ":class" in text] == []
    assert any(":class:`" in (cls.__doc__ or "").split("\n\n")[0] for cls in GRADIENTS.values())
    assert sentence(type("X", (), {"__doc__": "As :class:`~a.b.C`, by :func:`f`.\n\nMore."})) == "As C, by f."
