"""Two processes behind nginx, as the lab comes with it: pages keep their process, rooms are shared."""

import asyncio
import html
import re

import pytest

from sgmcmc_lab.app.room.rooms import Rooms
from sgmcmc_lab.app.room.store import Redis
from tests.helpers.hall import COOKIE, hall
from tests.helpers.raw_client import Client, get, run

LINK = "?target=gaussian&views=marginal&play=0"


@pytest.mark.slow
def test_a_room_of_two_processes_behind_nginx(tmp_path):
    async def ask(server):
        own = Redis(server.store)
        code, _ = await Rooms(own).open(LINK)
        # A new client gets a number, and all requests with that number go to the process that gave it.
        for _ in range(12):
            answer = await get(server, f"/s/{code}")
            assert answer.headers["Location"] == f"../room/{code}"
            number = re.search(f"{COOKIE}=([0-9a-f]+);", answer.headers["Set-Cookie"])[1]
            again = await get(server, f"/s/{code}", Cookie=f"{COOKIE}={number}")
            assert again.code == 302
            assert "Set-Cookie" not in again.headers
        page = await get(server, f"/app{LINK}", Cookie=f"{COOKIE}={number}")
        token = re.search(r'"token":\s*"([^"]+)"', html.unescape(page.body.decode()))[1]
        client = await Client.open(server, token, Cookie=f"{COOKIE}={number}")
        assert await client.acknowledged()
        client.socket.close()
        # It is written down when it has ended.
        while not any(uri == "/app/ws" for *_, uri in server.asked()):
            await asyncio.sleep(0.05)
        # Without the store, a short link ends in a sentence.
        await own._redis.shutdown(nosave=True)
        answer = await get(server, f"/s/{code}")
        (sentence,) = re.findall("<p[^>]*>(.+)</p>", answer.body.decode())
        assert (answer.code, sentence.count(".")) == (503, 2)
        await own._redis.aclose()

    with hall(tmp_path) as server:
        run(ask(server))
        seen = server.asked()
    processes = {address for address, *_ in seen}
    assert processes == {f"127.0.0.1:{port}" for port in server.behind}
    of_number = {}
    for address, number, *_ in seen:
        of_number.setdefault(number, set()).add(address)
    assert all(len(one) == 1 for one in of_number.values())
    assert [status for *_, status, uri in seen if uri == "/app/ws"] == ["101"]
