"""Two processes behind nginx, as the lab comes with it: pages keep their process, rooms are shared."""

import asyncio
import html
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from app.room.rooms import Rooms
from app.room.store import REDIS, Redis
from tests import browser
from tests.raw_client import Client, get, run

LINK = "?target=gaussian&views=marginal&play=0"
COOKIE = "sgmcmc_process"
AROUND = """
daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  log_format who '$upstream_addr $sgmcmc_process $status $uri'; access_log {folder}/who who;
  {lab}
}}
"""


def installed(name):
    """The program, or the test is skipped: both are Debian's, and need no setting up."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") or shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} is installed")
    return path


@contextmanager
def running(command, folder):
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def listens(port):
    end = time.monotonic() + 60
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, f"nobody listens on {port}"
        time.sleep(0.05)


def configuration(front, ports):
    """What comes with the lab, with other ports."""
    text = (browser.ROOT / "assets" / "nginx.conf").read_text(encoding="utf-8")
    for old, new in [("listen 80;", f"listen 127.0.0.1:{front};"), *zip(("127.0.0.1:5101;", "127.0.0.1:5102;"), (f"127.0.0.1:{one};" for one in ports), strict=True)]:  # fmt: skip
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.slow
def test_a_room_of_two_processes_behind_nginx(tmp_path):
    nginx, redis = installed("nginx"), installed("redis-server")
    front, *behind, kept = (browser.free_port() for _ in range(4))
    store = f"redis://127.0.0.1:{kept}"
    (tmp_path / "nginx.conf").write_text(AROUND.format(folder=tmp_path, lab=configuration(front, behind)), encoding="utf-8")  # fmt: skip
    allowed = ("--use-xheaders", "--allow-websocket-origin", f"127.0.0.1:{front}")
    environment = {REDIS: store, "BOKEH_SECRET_KEY": "of both processes"}
    server = SimpleNamespace(port=front)

    async def ask():
        own = Redis(store)
        code, _ = await Rooms(own).open(LINK)
        await own._redis.aclose()
        # Who is new gets a number, and all that is asked for with it goes to the process that had it first.
        for _ in range(12):
            answer = await get(server, f"/s/{code}")
            assert answer.headers["Location"] == f"../app{LINK}&room={code}"
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
        while "/app/ws" not in (tmp_path / "who").read_text():
            await asyncio.sleep(0.05)

    with ExitStack() as stack:
        stack.enter_context(running([redis, "--port", str(kept), "--bind", "127.0.0.1", "--save", ""], tmp_path))
        for port in behind:
            stack.enter_context(browser.serve(tmp_path, *allowed, port=port, environment=environment))
        stack.enter_context(running([nginx, "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "errors")], tmp_path))  # fmt: skip
        for port in (kept, front):
            listens(port)
        run(ask())
    seen = [line.split() for line in (tmp_path / "who").read_text().splitlines()]
    processes = {address for address, *_ in seen}
    assert processes == {f"127.0.0.1:{port}" for port in behind}
    of_number = {}
    for address, number, *_ in seen:
        of_number.setdefault(number, set()).add(address)
    assert all(len(one) == 1 for one in of_number.values())
    assert [status for *_, status, uri in seen if uri == "/app/ws"] == ["101"]
