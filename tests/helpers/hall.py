"""A lecture hall: processes of the lab behind nginx, as its configuration has it, which share rooms through Redis."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from sgmcmc_lab.app.room.store import REDIS
from tests import browser

COOKIE = "sgmcmc_process"
AROUND = """
daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  log_format who '$upstream_addr $sgmcmc_process $status $uri'; access_log {folder}/who who;
  {lab}
}}
"""


def installed(name: str) -> str:
    """The program, or the test is skipped: both are Debian's, and need no setting up."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") or shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} is installed")
    return path


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen]:
    """A program, which ends with the context."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def listens(port: int) -> None:
    """Wait until somebody does."""
    end = time.monotonic() + 60
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < end, f"nobody listens on {port}"
        time.sleep(0.05)


@dataclass
class RedisServer:
    """Where it is, and what it is."""

    address: str
    process: subprocess.Popen


@contextmanager
def redis(folder: Path) -> Iterator["RedisServer"]:
    """A Redis server of its own, which writes nothing down."""
    command, port = installed("redis-server"), browser.free_port()
    started = [command, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with running(started, folder) as process:
        listens(port)
        yield RedisServer(f"redis://127.0.0.1:{port}", process)


def configuration(front: int, ports: Sequence[int], secure: tuple[int, Path] | None = None) -> str:
    """The configuration that comes with the lab, with other ports: plain, or ``secure`` with this port and the folder
    of a certificate, to which ``front`` leads.
    """
    text = (browser.ROOT / "assets" / "nginx.conf").read_text(encoding="utf-8")
    edits = list(zip(("127.0.0.1:5101;", "127.0.0.1:5102;"), (f"127.0.0.1:{one};" for one in ports), strict=True))
    if secure is None:
        leads = "    listen 80;\n    return 301 https://$http_host$request_uri;\n}\n\nserver {\n"
        edits += [(leads, ""), ("listen 443 ssl;", f"listen 127.0.0.1:{front};")]
        text = re.sub(r" +ssl_certificate.*\n", "", text)
    else:
        port, folder = secure
        edits += [("listen 80;", f"listen 127.0.0.1:{front};"), ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")]
        text = text.replace("/etc/ssl/sgmcmc-lab", str(folder))
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@dataclass
class Hall:
    """Two processes behind one port."""

    folder: Path
    port: int
    behind: tuple[int, int]
    store: str
    options: Sequence[str]
    environment: Mapping[str, str]
    processes: dict[int, ExitStack] = field(default_factory=dict)
    servers: dict[int, browser.Server] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the app."""
        return f"http://localhost:{self.port}/app"

    @property
    def log(self) -> str:
        """The error log of nginx; the processes have logs of their own."""
        return ""

    def crashes(self, start: int = 0) -> list[str]:
        """The errors in the processes' logs."""
        return [line for server in self.servers.values() for line in server.crashes()]

    def begin(self, port: int) -> None:
        """Start the process that listens on this port."""
        folder = self.folder / f"process-{port}-{len(list(self.folder.glob('process-*')))}"
        folder.mkdir()
        stack = self.processes[port] = ExitStack()
        self.servers[port] = stack.enter_context(
            browser.serve(folder, *self.options, port=port, environment=self.environment)
        )

    def end(self, port: int) -> None:
        """End that process."""
        self.processes.pop(port).close()

    def asked(self) -> list[tuple[str, str, str, str]]:
        """For each request that is answered: process, cookie, status and path. A page's connection is when it ends."""
        found = [line.rsplit(" ", 3) for line in (self.folder / "who").read_text().splitlines()]
        return [(one, number, status, uri) for one, number, status, uri in found]

    def cookies(self) -> dict[int, str]:
        """For each process a cookie by which nginx leads to it."""
        found: dict[int, str] = {}
        for number in range(64):
            urlopen(
                Request(
                    f"http://127.0.0.1:{self.port}/static/js/bokeh.min.js",
                    method="HEAD",
                    headers={"Cookie": f"{COOKIE}={number:032x}"},
                )
            ).close()
            # nginx writes its line when the answer is out.
            value, end = f"{number:032x}", time.monotonic() + 10
            while not (lines := [one for one, had, *_ in self.asked() if had == value]):
                assert time.monotonic() < end, "nginx has written nothing of a request"
                time.sleep(0.02)
            found.setdefault(int(re.sub(r".*:", "", lines[0])), value)
            if len(found) == len(self.behind):
                return found
        raise AssertionError("nginx leads everybody to one process")


@contextmanager
def hall(
    folder: Path, *options: str, port: int | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Hall]:
    """Two processes behind nginx, with Redis; the test is skipped where the machine has not both."""
    nginx = installed("nginx")
    front, first, second = port or browser.free_port(), browser.free_port(), browser.free_port()
    (folder / "nginx.conf").write_text(
        AROUND.format(folder=folder, lab=configuration(front, (first, second))), encoding="utf-8"
    )
    allowed = [part for one in ("127.0.0.1", "localhost") for part in ("--allow-websocket-origin", f"{one}:{front}")]
    with ExitStack() as stack:
        store = stack.enter_context(redis(folder)).address
        whole = {REDIS: store, "BOKEH_SECRET_KEY": "of both processes", **(environment or {})}
        made = Hall(folder, front, (first, second), store, ("--use-xheaders", *allowed, *options), whole)
        stack.callback(lambda: [one.close() for one in made.processes.values()])
        for one in made.behind:
            made.begin(one)
        stack.enter_context(running([nginx, "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")], folder))
        listens(front)
        yield made
