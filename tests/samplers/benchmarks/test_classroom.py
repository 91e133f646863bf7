"""The bench of a class that comes: who does not come is counted, and a number out of bounds is refused."""

import asyncio
from itertools import count

import pytest

from samplers.benchmarks import classroom
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
        self.number, self.pages, self.on_frame = number, pages, None

    async def open(self, url):
        await asyncio.sleep(0)
        if self.number in self.pages.refused:
            raise ConnectionError

    async def take(self):
        while self.number not in self.pages.still:
            self.on_frame()
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(("refused", "still"), [((), ()), ((1,), (3, 4)), (range(5), ())])
def test_a_page_that_does_not_move_has_failed(refused, still, monkeypatch):
    """Fails where the class is said to have come though some of it saw an error, or a picture that stood."""
    monkeypatch.setattr(classroom, "LightPage", Pages(refused, still))
    monkeypatch.setattr(classroom, "LATER", 0.0)
    monkeypatch.setattr(classroom, "SECOND", 0.01)
    monkeypatch.setattr(classroom, "PATIENCE", 0.3)
    report = asyncio.run(classroom._class_comes("", 5, lambda: 0.0, lambda what: None))
    assert (report.pages, report.failed) == (5, len(refused) + len(still))
    assert "did not move" in classroom.as_text(report)
    assert report.open_frames_per_second > 0


@pytest.mark.parametrize("pages", [0, -1, classroom.MOST + 1])
def test_a_number_of_pages_out_of_bounds_is_refused(pages):
    """Fails where the bench would open thousands of pages, or divide by none."""
    with pytest.raises(SpecError, match=rf"--class = {pages}.*from 1 to {classroom.MOST} pages"):
        classroom.measure(pages, lambda what: None)
