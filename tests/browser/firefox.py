"""A headless Firefox with one page, driven by WebDriver BiDi over its own websocket."""

import asyncio
import itertools
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

BROWSERS = ("firefox-esr", "firefox")
PATIENCE = 600.0
"""Seconds until an answer is given up."""
LARGEST = 2**30
"""The largest message, in bytes."""
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PREFERENCES = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}


class FirefoxError(Exception):
    """Firefox does not start, or what was asked of its page failed; the message says why."""


def find_firefox() -> str | None:
    """The first Firefox on the path."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Page:
    """The page. Its calls block; the websocket has a loop of asyncio in a thread, for this one may have another."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: WebSocketClientConnection):
        self._loop, self._socket, self._numbers = loop, socket, itertools.count(1)
        self._ask("session.new", {"capabilities": {}})
        self._context = self._ask("browsingContext.getTree", {})["contexts"][0]["context"]

    def goto(self, url: str) -> None:
        """Open an address and wait until the page has loaded."""
        self._ask("browsingContext.navigate", {"context": self._context, "url": url, "wait": "complete"})

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, or of its promise: a string, a number, true, false, or None."""
        answer = self._ask(
            "script.evaluate", {"expression": expression, "target": {"context": self._context}, "awaitPromise": True}
        )
        if answer["type"] != "success":
            raise FirefoxError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return _done(self._loop, self._answer(method, params))

    async def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
        while (text := await self._socket.read_message()) is not None:
            answer = json.loads(text)
            # The messages between are events.
            if answer.get("id") == number:
                if answer["type"] == "error":
                    raise FirefoxError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]
        raise FirefoxError(f"{method}: Firefox closed the connection")


def _done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)


@contextmanager
def firefox_page(path: str) -> Iterator[Page]:
    """The page of a Firefox that ends with the block. Raises :class:`FirefoxError`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        lines = [f"user_pref({json.dumps(key)}, {json.dumps(value)});" for key, value in PREFERENCES.items()]
        (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [path, "--headless", "--no-remote", "--profile", name, "--remote-debugging-port", "0", "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            address = _address(process, folder / "log")
            socket = _done(loop, _connected(f"{address}/session"))
            yield Page(loop, socket)
            loop.call_soon_threadsafe(socket.close)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _connected(url: str) -> WebSocketClientConnection:
    return await websocket_connect(url, max_message_size=LARGEST)


def _address(process: subprocess.Popen, log: Path) -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        found = LISTENS.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.1)
    raise FirefoxError(f"Firefox does not listen: {log.read_text(encoding='utf-8', errors='replace')[-500:]}")
