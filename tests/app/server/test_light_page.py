"""The page that watches a hostile run, and those of the bench, are ones that the server takes for pages."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest

from sgmcmc_lab.app.server.light_page import LightPage, models
from tests.browser import LIGHT_PAGE

DOCUMENT = b"\0" * 16
"""An array of a figure: its first byte is that of a frame, too."""
LIVE = '{"events":[{"kind":"MessageSent","msg_type":"bokeh_event","msg_data":{"name":"esm_event"}}]}'
CHANGE = '{"events":[{"kind":"ModelChanged","attr":"data","new":{"type":"bytes","data":{"id":"p1"}}}]}'
EDGES = b"source,target\na,b\nb,c\nc,a\nc,d\nd,e\n"


@pytest.mark.slow
def test_a_light_page_gets_frame_after_frame(server):
    """Fails where the server does not understand the answers of the bench's pages: it would wait after three frames."""

    async def twenty():
        page = LightPage()
        await page.open(server.url + LIGHT_PAGE)
        taking = asyncio.create_task(page.take())
        while page.frames < 20:
            await asyncio.sleep(0.1)
        taking.cancel()
        page.close()
        await asyncio.sleep(0.5)

    asyncio.run(asyncio.wait_for(twenty(), 120))


def test_arrays_of_figures_are_no_frames():
    """Fails where a page is said to move when its figures are there: with nothing compiled, 9 to 250 seconds too soon.

    Planted fault: whatever begins with the byte of a whole number, four messages in place of two.
    """
    frames = [np.array([1.0, number, 0, 1, 5]).tobytes() for number in (1, 3)]
    messages = [
        '{"id":"p1"}',
        DOCUMENT,
        LIVE,
        '{"id":"p2"}',
        frames[0],
        CHANGE,
        '{"id":"p3"}',
        DOCUMENT,
        LIVE,
        frames[1],
        None,
    ]
    page, numbers = LightPage(), []
    page.on_numbers = lambda found: numbers.append(found.tolist())
    page.answer = lambda number, generation: None
    left = iter(messages)
    page._socket = SimpleNamespace(read_message=lambda: asyncio.sleep(0, next(left)))
    asyncio.run(page.take())
    assert page.frames == 2 and numbers == [[1, 1, 0, 1, 5], [1, 3, 0, 1, 5]]
    assert sum(isinstance(one, bytes) and one[:1] == b"\0" for one in messages) == 4


@pytest.mark.slow
def test_a_file_that_a_light_page_brings_arrives(server):
    """Fails where it is not in a form that the guard takes: a hostile run would attack nothing.

    Planted fault: a message that is no mapping of Bokeh's; it comes before the right one, and is never heard of.
    """

    async def heard():
        page, said = LightPage(), []
        await page.open(f"{server.url}?target=network&play=0")
        page.on_text = said.append
        taking = asyncio.create_task(page.take())
        datas = (
            (model["id"], model["attributes"].get("data"))
            for model in models(json.loads(page.document))
            if "id" in model
        )
        (box,) = [
            name
            for name, data in datas
            if isinstance(data, dict) and data["attributes"].get("label", "").startswith("Your own")
        ]
        chunk = {"status": "upload_event", "chunk": 1, "name": "fault.csv", "total_chunks": 1, "data": list(EDGES)}
        page.event("data_event", {"model": {"id": box}, "data": chunk})
        page.upload(box, "edges.csv", EDGES)
        while not any("edges.csv" in text for text in said):
            await asyncio.sleep(0.1)
        taking.cancel()
        page.close()
        await asyncio.sleep(0.5)
        return "".join(said)

    assert "fault.csv" not in asyncio.run(asyncio.wait_for(heard(), 120))
