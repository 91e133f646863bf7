"""The bench of a class: who does not come is counted, what it does at work, and a number out of bounds is refused."""

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from playwright.async_api import Error
from tornado.websocket import WebSocketClosedError

from sgmcmc_lab.samplers.parameters import SpecError
from tests.benchmarks import classroom, closed
from tests.benchmarks.control import Fed
from tests.helpers.cases import for_each


class Pages:
    """Stands for the server: some pages are refused, some come and never move."""

    def __init__(self, refused=(), still=()):
        self.refused, self.still = refused, still
        self.number = count(-classroom.OPEN)

    def __call__(self):
        return Page(next(self.number), self)


class Page:
    """One page."""

    def __init__(self, number, pages):
        self.number, self.pages, self.on_frame, self.on_numbers = number, pages, None, None
        self.feeds = [["model", ["x", "y"], "replace", 0, []]]

    async def open(self, url):
        await asyncio.sleep(0)
        if self.number in self.pages.refused:
            raise ConnectionError

    async def take(self):
        while self.number not in self.pages.still:
            self.on_frame()
            if self.on_numbers is not None:
                self.on_numbers(np.array([1.0, 1, 0, 2, 1, 2, 3, 4]))
            await asyncio.sleep(0.001)


@pytest.fixture
def server(monkeypatch):
    """Costs nothing, and nobody waits."""
    for name, seconds in (("LATER", 0.0), ("PATIENCE", 0.3)):
        monkeypatch.setattr(classroom, name, seconds)
    return SimpleNamespace(url="", cpu=lambda: 0.0, megabytes=lambda: 1.0)


def comes(pages, server):
    made = classroom.Class(pages, server, "", lambda what: None)
    return asyncio.run(made.comes(5, 0.01, 0.0, ""))


@pytest.mark.parametrize(("refused", "still"), [((), ()), ((1,), (3, 4)), (range(5), ())])
def test_a_page_that_does_not_move_has_failed(refused, still, server):
    """Fails where the class is said to have come though some of it saw an error, or a picture that stood."""
    opening, working, fed = comes(Pages(refused, still), server)
    assert (opening.pages, opening.failed, working) == (5, len(refused) + len(still), None)
    assert opening.open_frames_per_second > 0
    # The control is fed the same as a page.
    assert fed.feeds == [[["x", "y"], "replace", 0]] and fed.frames[0][4:].tolist() == [1, 2, 3, 4]


COUNTS = classroom.Counts(
    seconds=20.0,
    frames=[100, 300, 400, 600],
    come=[150, 250],
    drawn=[140, 120],
    server_seconds=9.0,
    clicks=[0.01] * 19 + [classroom.LOST_CLICK],
    drawn_clicks=[0.2, 0.2, 0.2],
    megabytes=12.0,
    errors=3,
)


@for_each(
    ("figure", "right", "fault"),
    [
        ("minutes", 1 / 3, 20.0),
        ("fewest_frames", 5.0, 17.5),  # the median
        ("median_frames", 17.5, 350.0),  # not a second
        ("drawn_frames", 6.0, 6.5),  # the mean of both pages
        ("server_cores", 0.45, 9.0),  # seconds
        ("server_ms_per_frame", 5.0, 1000 * 9 / 1400),  # without the frames of the pages in Chromium
        ("click_ms", 259.5, 10.0),  # the median, or without the lost click
        ("drawn_click_ms", 200.0, 0.2),  # seconds
        ("clicks", 23, 20),  # those of the connections alone
        ("megabytes_per_page", 2.0, 3.0),  # of the connections alone
        ("errors", 3, 0),
    ],
)
def test_the_table_is_worked_out_from_what_was_counted(figure, right, fault):
    """Fails where a figure is of something else; beside each a fault that must be caught.

    The 95 % point of twenty clicks is .05 of the way from the nineteenth to the last.
    """
    found = getattr(COUNTS.working(), figure)
    assert found == pytest.approx(right) and found != pytest.approx(fault)


class Working:
    """A page in Chromium, which lets the class have its frames and ends a connection."""

    def __init__(self, pages, errors):
        self.pages, self.errors, self.took, self.counting = pages, errors, [], False

    async def count(self):
        self.counting = True

    async def run(self):
        assert self.counting
        self.took.append(0.25)
        for page, frames in zip(self.pages, (2, 4, 6), strict=True):
            page.frames += frames

    async def counted(self):
        return 9, 8


@pytest.mark.parametrize(("lost", "logged", "shown"), [(0, 0, 0), (2, 0, 0), (0, 3, 0), (0, 0, 4), (1, 1, 1)])
def test_what_a_class_does_at_work_is_counted(lost, logged, shown, monkeypatch):
    """Fails where frames from before the work count, or the server's time and memory of before.

    Faults: a lost connection, an error in the server's log and one in Chromium, each of which must be an error.
    """
    monkeypatch.setattr(classroom, "SETTLE", 0.0)
    monkeypatch.setattr(
        classroom, "Clicks", lambda page, delay: SimpleNamespace(took=[delay], run=lambda: asyncio.sleep(0))
    )
    pages = [SimpleNamespace(frames=1000, on_frame=print) for _ in range(3)]
    watched = [Working(pages, shown), Working(pages, 0)]

    @asynccontextmanager
    async def in_chromium(path, url, kind):
        # The cost of opening them does not count as the class's.
        used.append(5.0)
        yield watched
        used.append(-1.0)

    monkeypatch.setattr(classroom, "in_chromium", in_chromium)
    used = [2.0]
    server = SimpleNamespace(
        url="", cpu=lambda: (used.append(used[-1] + 0.5), used[-2])[1], megabytes=lambda: 110.0, errors=lambda: logged
    )
    made = classroom.Class(lambda: None, server, "", lambda what: None)

    async def works():
        made._tasks = [asyncio.create_task(asyncio.sleep(0 if k < lost else 60)) for k in range(5)]
        counts = await made._works(pages, 0.05 / 60, 100.0, "")
        for task in made._tasks:
            task.cancel()
        return counts

    counts = asyncio.run(works())
    assert (counts.frames, counts.come, counts.drawn) == ([4, 8, 12], [9, 9], [8, 8])
    assert (counts.server_seconds, counts.megabytes) == (0.5, 10.0)
    # They click one after the other.
    assert counts.clicks == pytest.approx([0, classroom.CLICK_SECONDS / 3, classroom.CLICK_SECONDS * 2 / 3])
    assert counts.drawn_clicks == [0.25, 0.25]
    assert counts.errors == lost + logged + shown
    assert counts.seconds >= 0.04


class Marked:
    """A page whose frames show the mark of a change so many seconds after it; after None never. Then it is gone."""

    document = json.dumps(
        {"id": "slider", "attributes": {"data": {"id": "data", "attributes": {"label": "Step size ε", "value": 30}}}}
    )
    feeds = (["marks", ["x"], "replace", 0, []], ["walk", ["x", "y"], "stream", 9, []])

    def __init__(self, *after):
        self.after, self.values, self.marks, self.on_numbers = list(after), [], [], None

    def set(self, model, name, value):
        assert model == "data"
        if name == "value_throttled":
            if not self.after:
                raise WebSocketClosedError
            self.values.append(value)
            self.frame()
            after = self.after.pop(0)
            if after is not None:
                asyncio.get_running_loop().call_later(after, self.mark, len(self.values))

    def mark(self, step):
        self.marks.append(step)
        self.frame()

    def frame(self):
        if self.on_numbers is not None:
            self.on_numbers(np.array([1.0, 1, 1, 1, 7, 8, 0, len(self.marks), *self.marks]))


class Unseen(Marked):
    """The planted fault: a mark that comes is not in the frames of its time."""

    def mark(self, step):
        self.marks.append(step)


def clicked(page, monkeypatch, lost):
    """The seconds that each click took, until the page is gone, which ends the clicks and not the bench."""
    monkeypatch.setattr(classroom, "CLICK_SECONDS", 0.1)
    monkeypatch.setattr(classroom, "LOST_CLICK", lost)

    async def run():
        clicks = classroom.Clicks(page, 0.0)
        await asyncio.wait_for(clicks.run(), 20)
        return clicks.took

    return asyncio.run(run())


@pytest.mark.slow
def test_a_click_takes_until_a_frame_marks_it(monkeypatch):
    """Fails where a step size is set that is there already, or, as in the planted fault, the next frame is taken for
    the effect."""
    page = Marked(0.2, 0.2, 0.2)
    assert all(0.19 < seconds < 2 for seconds in clicked(page, monkeypatch, 2.0))
    assert page.values == [29, 30, 29]
    marks = count()
    monkeypatch.setattr(classroom, "newest_mark", lambda numbers, feeds: next(marks))
    assert min(clicked(Marked(0.2, 0.2, 0.2), monkeypatch, 2.0)) < 0.19


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Marked, Unseen])
def test_a_click_without_an_effect_is_a_lost_one(kind, monkeypatch):
    """Fails where it is left out of the table, or where its mark, which comes too late, is taken for the next one's."""
    lost = clicked(kind(None, 0.15, None), monkeypatch, 0.1)
    assert (lost == [0.1, 0.1, 0.1]) == (kind is Marked)


class Shown:
    """A page in Chromium: what its script says of each key, in milliseconds, or nothing for None. Then it is gone."""

    def __init__(self, *said):
        self.said, self.keys, self.errors = list(said), [], []
        self.first = self

    def on(self, event, note):
        assert event == "pageerror"
        self.errors.append(note)

    def get_by_role(self, role, name):
        assert name.match("Step size ε")
        return self

    async def focus(self):
        pass

    async def press(self, key):
        self.keys.append(key)

    async def evaluate(self, script):
        if script != "window.edit":
            return None
        if not self.said:
            raise Error("the page is gone")
        said = self.said.pop(0)
        await asyncio.sleep(60 if said is None else 0)
        return said


def test_a_key_in_chromium_takes_until_its_picture(monkeypatch):
    """Fails where a key without an effect is left out or stops the others, or an error of the page is not counted.

    Planted faults: a page that never shows the effect, an error in its script, a page that is gone.
    """
    monkeypatch.setattr(classroom, "CLICK_SECONDS", 0.0)
    monkeypatch.setattr(classroom, "LOST_CLICK", 0.1)
    page = Shown(80, None, 120)
    watched = classroom.Watched(page)
    page.errors[0]("a script's")
    asyncio.run(watched.run())
    assert watched.took == [0.08, 0.1, 0.12]
    assert page.keys == ["ArrowRight", "ArrowLeft", "ArrowRight", "ArrowLeft"]
    assert watched.errors == 2


def working(**changed):
    figures = {
        "minutes": 1.0,
        "fewest_frames": 9.0,
        "median_frames": 10.0,
        "drawn_frames": 9.0,
        "server_cores": 0.5,
        "server_ms_per_frame": 3.0,
        "click_ms": 90.0,
        "drawn_click_ms": 120.0,
        "clicks": 40,
        "megabytes_per_page": 3.5,
        "errors": 0,
    }
    return classroom.Working(**figures | changed)


def test_the_control_is_beside_what_was_measured():
    """Fails where a ratio is upside down, or the table leaves one out."""
    came = classroom.Opening(30, 0, 6.0, 9.0, 0.35, 5.0, 0.6)
    bare = classroom.Opening(30, 0, 2.0, 3.0, 0.1, 10.0, 0.2)
    control = classroom._beside(came, working(), bare, working(drawn_frames=10.0, server_ms_per_frame=2.0))
    assert (control.frames, control.server, control.opening) == pytest.approx((0.9, 1.5, 3.0))
    # Where nobody works, it is what the pages that were open had, and what the class cost.
    control = classroom._beside(came, None, bare, None)
    assert (control.frames, control.server, control.opening) == pytest.approx((0.5, 3.5, 3.0))
    text = classroom.as_text(classroom.ClassReport(came, working(), control, 60.0))
    for line in ("within 60 s", "did not move", "first frame, slowest", "click to picture, p95", "errors", "opening"):
        assert line in text


def test_the_mark_of_a_change_is_found_in_a_frame():
    """Fails where a click is taken for done at the next frame, whatever is in it."""
    feeds = [["a", ["x", "y"], "stream", 9, []], ["b", ["ends"], "range", 0, []], ["c", ["x"], "replace", 0, []]]
    frame = [1.0, 7, 0, 2, 50, 60, 0.1, 0.2, 1, 2, 0, 99, 2]
    assert classroom.newest_mark(np.array([*frame, 0]), feeds) == -np.inf
    assert classroom.newest_mark(np.array([*frame, 2, 12, 34]), feeds) == 34
    # A fault that must be caught: taking the end of a range for a mark.
    assert (
        classroom.newest_mark(
            np.array([*frame, 0]), [["a", ["x", "y"], "stream", 9, []], ["b", ["ends"], "replace", 0, []], feeds[2]]
        )
        == 99
    )


def test_what_the_bare_page_is_fed_comes_back_from_its_file(tmp_path):
    """Fails where frames of different lengths run into each other."""
    frames = [np.arange(3.0), np.arange(5.0)]
    Fed([[["x"], "replace", 0]], frames).save(tmp_path / "fed.npz")
    with np.load(tmp_path / "fed.npz") as fed:
        again = np.split(fed["numbers"], np.cumsum(fed["lengths"])[:-1])
    assert [one.tolist() for one in again] == [one.tolist() for one in frames]


@for_each(
    ("given", "sentence"),
    [
        ({"pages": 0}, f"--pages = 0.*from 1 to {classroom.MOST} pages"),
        ({"pages": -1}, "--pages = -1"),
        ({"pages": classroom.MOST + 1}, "--pages = "),
        ({"pages": 2, "minutes": -1.0}, "--minutes = -1.*from 0 to 60"),
        ({"pages": 2, "minutes": float("nan")}, "--minutes = nan"),
        ({"pages": 2, "minutes": 1e9}, "--minutes = "),
        ({"pages": 2, "over": 0.0}, "--over = 0"),
        ({"pages": 2, "over": float("inf")}, "--over = inf.*up to 600 seconds"),
    ],
)
def test_a_number_out_of_bounds_is_refused(given, sentence):
    """Fails where the bench would open thousands of pages, divide by none, or not end."""
    with pytest.raises(SpecError, match=sentence):
        classroom.measure(say=lambda what: None, **given)


@pytest.mark.parametrize("pages", [closed.FIRST, closed.MOST + 1])
def test_a_number_of_closed_pages_out_of_bounds_is_refused(pages):
    with pytest.raises(SpecError, match=f"--closed = {pages}.*from {closed.FIRST + 1} to {closed.MOST} pages"):
        closed.measure(pages, lambda what: None)


def test_what_pages_leave_is_told_for_each():
    """Fails where the growth is upside down, or the first twenty count as what was left."""
    report = closed.ClosedReport(pages=220, first=500.0, last=520.0, seconds=0.3)
    assert report.growth == pytest.approx(1.04)
    assert "100 kB" in closed.as_text(report)
