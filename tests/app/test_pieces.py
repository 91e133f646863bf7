"""What is done in pieces lets others have the loop, and nobody takes its document for theirs."""

import asyncio

import pytest
from bokeh.document import Document
from bokeh.io.doc import curdoc, patch_curdoc
from bokeh.models import Range1d
from greenlet import getcurrent
from panel.io.state import set_curdoc, state
from panel.layout.base import Panel

from app.guard import pieces


@pytest.fixture(autouse=True)
def at_every_chance(monkeypatch):
    """A piece is as short as it can be, so that no timing decides."""
    monkeypatch.setattr(pieces, "PIECE", 0.0)


def beside(work, other=lambda: None):
    """What the work returns; ``other`` is called in between, as often as the loop comes round."""

    async def both():
        async def others():
            while True:
                other()
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        await asyncio.sleep(0)
        try:
            return await pieces.in_pieces(work)
        finally:
            task.cancel()

    return asyncio.run(both())


@pytest.mark.parametrize("fault", [False, True])
def test_others_have_their_turn_between_two_models(fault, monkeypatch):
    """Fails where a page is made at one go. Planted fault: a piece never ends."""
    done = []
    if fault:
        monkeypatch.setattr(pieces, "PIECE", float("inf"))
    monkeypatch.setattr(Range1d, "__init__", pieces._breathing(getattr(Range1d, "__wrapped__", Range1d.__init__)))

    def work():
        for number in range(5):
            done.append(number)
            Range1d()
        return "made"

    assert beside(work, lambda: done.append("frame")) == "made"
    between = done[done.index(0) : done.index(4)].count("frame")
    assert between == 0 if fault else between >= 4


def test_an_error_is_raised_where_the_work_was_asked_for():
    def work():
        pieces.breathe()
        raise ValueError("not made")

    with pytest.raises(ValueError, match="not made"):
        beside(work)


def _leave():
    getcurrent().parent.switch()


@pytest.mark.parametrize("fault", [False, True])
def test_nobody_finds_anothers_document(fault, monkeypatch):
    """Fails where an event of one person would be done to the page that is made for another.

    Planted fault: the work is left as it stands.
    """
    mine, yours, found, seen = Document(), Document(), [], []
    if fault:
        monkeypatch.setattr(pieces, "breathe", _leave)

    def work():
        with patch_curdoc(mine), set_curdoc(mine):
            for _ in range(3):
                pieces.breathe()
                found.append((curdoc() is mine, state.curdoc is mine))

    def other():
        seen.append(state.curdoc is mine or curdoc() is mine)
        with patch_curdoc(yours):
            seen.append(curdoc() is mine)

    beside(work, other)
    assert found == [(True, True)] * 3
    assert any(seen) == fault


def test_a_switch_for_all_documents_is_not_left_on(monkeypatch):
    """Fails where others would find the libraries in the middle of a change of a page's layout."""
    seen = []

    def work():
        monkeypatch.setattr(Panel, "_batch_update", True)
        pieces.breathe()
        monkeypatch.setattr(Panel, "_batch_update", False)
        pieces.breathe()

    beside(work, lambda: seen.append(Panel._batch_update))
    assert len(seen) >= 2 and not any(seen)
