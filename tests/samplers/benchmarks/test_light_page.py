"""The page that watches a hostile run, and those of the bench, are ones that the server takes for pages."""

import asyncio
import json

from samplers.benchmarks.light import LightPage, models
from tests.browser import LIGHT_PAGE

EDGES = b"source,target\na,b\nb,c\nc,a\nc,d\nd,e\n"


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
