"""WebKitGTK with one page, driven by its WebDriver: the engine of Safari. Its windows are on a display of Xvfb."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests import browser

DRIVER, DISPLAY = "WebKitWebDriver", "Xvfb"
PLACES = "webkit2gtk-4.*/MiniBrowser"
"""The browser's program, below a folder of libraries: it is on no path."""
PATIENCE = 600.0
"""Seconds until an answer is given up."""


class WebKitError(Exception):
    """WebKit does not start, or what was asked of its page failed; the message says why."""


def find_webkit() -> tuple[str, str, str] | None:
    """The driver, the browser, and the display; None where one of them is missing."""
    browsers = sorted(str(path) for folder in ("/usr/lib", "/usr/libexec") for path in Path(folder).glob(f"*/{PLACES}"))
    found = (shutil.which(DRIVER), browsers[-1] if browsers else None, shutil.which(DISPLAY))
    return found if all(found) else None


class Page:
    """The page. Its calls block."""

    def __init__(self, address: str, binary: str):
        self._address, self._session = address, ""
        options = {"webkitgtk:browserOptions": {"binary": binary, "args": ["--automation"]}}
        made = self._ask("POST", "session", {"capabilities": {"alwaysMatch": options}})
        self._session = f"session/{made['sessionId']}/"
        limit = int(1000 * PATIENCE)
        self._ask("POST", "timeouts", {"script": limit, "pageLoad": limit})

    def goto(self, url: str) -> None:
        """Open an address and wait until the page has loaded. Raises :class:`WebKitError`."""
        self._ask("POST", "url", {"url": url})
        # The driver answers before the page has loaded its modules, most often where the computer is busy.
        # A live page has put its settings behind the address by then.
        loaded = f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'"
        end = time.monotonic() + PATIENCE
        while not self.evaluate(loaded):
            if time.monotonic() > end:
                raise WebKitError(f"{url} does not load")
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, or of its promise."""
        done = f"const done = arguments[arguments.length - 1]; Promise.resolve().then(() => {expression})"
        script = f"{done}.then((value) => done({{value}}), (error) => done({{error: String(error)}}))"
        answer = self._ask("POST", "execute/async", {"script": script, "args": []})
        if "error" in answer:
            raise WebKitError(answer["error"])
        return answer.get("value")

    def close(self) -> None:
        """End the browser."""
        self._ask("DELETE", "")

    def _ask(self, method: str, path: str, values: dict[str, Any] | None = None) -> Any:
        body = None if values is None else json.dumps(values).encode()
        url = f"{self._address}/{self._session}{path}".rstrip("/")
        request = Request(url, data=body, method=method, headers={"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise WebKitError(f"{path}: {json.load(error)['value'].get('message')}") from None


@contextmanager
def webkit_page(found: tuple[str, str, str]) -> Iterator[Page]:
    """The page of a WebKit that ends with the block. Raises :class:`WebKitError`."""
    driver, binary, display = found
    port = browser.free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Path(folder, "log").open("w+b") as log:
        screen = subprocess.Popen(
            [display, "-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert screen.stdout is not None
        number = screen.stdout.readline().decode().strip()
        # A home of its own: no cache or setting of this computer is its.
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "XDG_RUNTIME_DIR": folder, "DISPLAY": f":{number}"}
        driving = subprocess.Popen([driver, f"--port={port}"], env=environment, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address, driving)
            page = Page(address, binary)
            yield page
            with suppress(WebKitError):
                page.close()
        finally:
            for process in (driving, screen):
                process.terminate()
                process.wait(20)
            screen.stdout.close()


def _wait_for(address: str, driving: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and driving.poll() is None:
        with suppress(URLError, OSError), urlopen(f"{address}/status", timeout=5):
            return
        time.sleep(0.1)
    raise WebKitError("the driver does not listen")
