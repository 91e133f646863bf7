"""The bench of a class that comes: who does not come is counted, and a number out of bounds is refused."""

import asyncio
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from samplers.benchmarks import classroom, closed
from samplers.benchmarks.control import Fed
from samplers.parameters import SpecError


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
    return asyncio.run(made.comes(5, 0.01, 0.0, False, ""))


@pytest.mark.parametrize(("refused", "still"), [((), ()), ((1,), (3, 4)), (range(5), ())])
def test_a_page_that_does_not_move_has_failed(refused, still, server):
    """Fails where the class is said to have come though some of it saw an error, or a picture that stood."""
    opening, working, fed = comes(Pages(refused, still), server)
    assert (opening.pages, opening.failed, working) == (5, len(refused) + len(still), None)
    assert opening.open_frames_per_second > 0
    # What the control is fed is what a page was fed.
    assert fed.feeds == [[["x", "y"], "replace", 0]] and fed.frames[0][4:].tolist() == [1, 2, 3, 4]


def working(**changed):
    figures = {
        "minutes": 1.0, "fewest_frames": 9.0, "median_frames": 10.0, "drawn_frames": 9.0, "server_cores": 0.5,
        "server_ms_per_frame": 3.0, "click_ms": 90.0, "drawn_click_ms": 120.0, "clicks": 40, "megabytes_per_page": 3.5,
        "errors": 0,
    }  # fmt: skip
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
    text = classroom.as_text(classroom.ClassReport(came, working(), control, 60.0, False))
    for line in ("within 60 s", "did not move", "first frame, slowest", "click to picture, p95", "errors", "opening"):
        assert line in text


def test_the_mark_of_a_change_is_found_in_a_frame():
    """Fails where a click is taken for done at the next frame, whatever is in it."""
    feeds = [["a", ["x", "y"], "stream", 9, []], ["b", ["ends"], "range", 0, []], ["c", ["x"], "replace", 0, []]]
    frame = [1.0, 7, 0, 2, 50, 60, 0.1, 0.2, 1, 2, 0, 99, 2]
    assert classroom.newest_mark(np.array([*frame, 0]), feeds) == -np.inf
    assert classroom.newest_mark(np.array([*frame, 2, 12, 34]), feeds) == 34
    # A fault that must be caught: taking the end of a range for a mark.
    assert classroom.newest_mark(np.array([*frame, 0]), [["a", ["x", "y"], "stream", 9, []], ["b", ["ends"], "replace", 0, []], feeds[2]]) == 99  # fmt: skip


def test_what_the_bare_page_is_fed_comes_back_from_its_file(tmp_path):
    """Fails where frames of different lengths run into each other."""
    frames = [np.arange(3.0), np.arange(5.0)]
    Fed([[["x"], "replace", 0]], frames).save(tmp_path / "fed.npz")
    with np.load(tmp_path / "fed.npz") as fed:
        again = np.split(fed["numbers"], np.cumsum(fed["lengths"])[:-1])
    assert [one.tolist() for one in again] == [one.tolist() for one in frames]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"pages": 0}, f"--class = 0.*from 1 to {classroom.MOST} pages"),
        ({"pages": -1}, "--class = -1"),
        ({"pages": classroom.MOST + 1}, "--class = "),
        ({"pages": classroom.MOST_READY + 1, "ready": True}, f"from 1 to {classroom.MOST_READY} pages made ready"),
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
