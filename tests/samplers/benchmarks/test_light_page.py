"""The page that watches a hostile run, and those of the bench, are ones that the server takes for pages."""

import asyncio

from samplers.benchmarks.light import LightPage
from tests.browser import LIGHT_PAGE


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
