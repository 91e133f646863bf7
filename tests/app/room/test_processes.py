"""Two processes behind nginx, as the lab comes with it: pages keep their process, rooms are shared."""

import asyncio
import html
import re
import ssl
import subprocess
import threading
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sgmcmc_lab.app.room.rooms import Rooms
from sgmcmc_lab.app.room.store import Redis
from tests.browser import free_port
from tests.helpers.hall import AROUND, COOKIE, configuration, hall, installed, listens, running
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


@pytest.mark.slow
@pytest.mark.parametrize("limited", [True, False])
def test_nginx_encrypts_and_limits_the_connections_of_an_address(limited, tmp_path):
    """As it comes with the lab, with a limit of one. Planted fault: without its limit."""
    plain, secure, behind = free_port(), free_port(), free_port()
    asked, answers = threading.Semaphore(0), threading.Event()

    class Lab(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.release()
            answers.wait(60)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    key = [installed("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    key += ["-keyout", str(tmp_path / "privkey.pem"), "-out", str(tmp_path / "fullchain.pem")]
    subprocess.run(key, check=True, capture_output=True)
    text = configuration(plain, (behind, behind), (secure, tmp_path))
    shipped = "limit_conn sgmcmc_connections 2000;"
    assert text.count(shipped) == 1
    text = text.replace(shipped, shipped.replace("2000", "1") if limited else "")
    (tmp_path / "nginx.conf").write_text(AROUND.format(folder=tmp_path, lab=text), encoding="utf-8")
    trusts = ssl.create_default_context(cafile=str(tmp_path / "fullchain.pem"))
    trusts.check_hostname = False

    def ask(connection, path="/app"):
        opened.enter_context(closing(connection)).request("GET", path)
        return connection

    def get_page():
        return ask(HTTPSConnection("127.0.0.1", secure, context=trusts, timeout=60))

    with ThreadingHTTPServer(("127.0.0.1", behind), Lab) as lab, ExitStack() as opened:
        threading.Thread(target=lab.serve_forever, daemon=True).start()
        command = [installed("nginx"), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "errors")]
        with running(command, tmp_path):
            listens(secure)
            answer = ask(HTTPConnection("127.0.0.1", plain, timeout=60), "/app?target=ring").getresponse()
            first = get_page()
            assert asked.acquire(timeout=60)
            second = get_page()
            if limited:
                assert second.getresponse().status == 503
            else:
                assert asked.acquire(timeout=60)
            answers.set()
            assert first.getresponse().status == 204
        lab.shutdown()
    assert (answer.status, answer.headers["Location"]) == (301, f"https://127.0.0.1:{plain}/app?target=ring")
