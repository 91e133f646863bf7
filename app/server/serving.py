"""A server in a process of its own, and what a bench of it needs of the machine."""

import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError

APP = Path(__file__).parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def needs(option: str, *packages: str) -> None:
    """Raise :class:`SpecError` for ``option`` where a package is missing."""
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise SpecError(option, name, 'it needs the extra bench: pip install -e ".[bench]"')


def warm(say: Callable[[str], None]) -> None:
    """Compile what the server would compile while it is measured: the page declares the models' functions, too."""
    say("warming the caches")
    importlib.import_module("sgmcmc_lab.samplers.models")
    jit.prepare(jit.declared())


def browser_path(option: str) -> str:
    """The browser that CHROMIUM names, or the first one on the path. Raises :class:`SpecError` for ``option``."""
    path = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)
    if path is None:
        raise SpecError(option, "no browser", f"it needs one of {', '.join(BROWSERS)} on the machine")
    return path


BEHIND = 10
"""How much nicer such processes are: beside the server's each gets a tenth of a core that both want."""


def children() -> set[int]:
    """The processes that this one has started, and those that they have."""
    import psutil

    return {process.pid for process in psutil.Process().children(recursive=True)}


def put_behind(processes: Iterable[int]) -> None:
    """Give these processes, and those that they will start, the lowest priority on the machine."""
    import psutil

    for number in processes:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            process = psutil.Process(number)
            # On Linux each thread has a priority of its own, which what it starts inherits.
            for each in [thread.id for thread in process.threads()] if sys.platform == "linux" else [number]:
                os.setpriority(os.PRIO_PROCESS, each, BEHIND)


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    url: str
    """The address of its page."""
    process: "subprocess.Popen[bytes]"
    log: Path

    def cpu(self) -> float:
        """Seconds of processor that it has taken, all of its threads together."""
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def megabytes(self) -> float:
        """Its resident memory."""
        return float(self._seen.memory_info().rss / 1e6)

    def errors(self) -> int:
        """Errors in its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return sum(" ERROR" in line or line.startswith(("ERROR", "Traceback")) for line in lines)

    @cached_property
    def _seen(self) -> Any:
        import psutil

        return psutil.Process(self.process.pid)


@contextmanager
def served(option: str, patience: float = 60.0, name: str = "") -> Iterator[Served]:
    """The app, served; by this computer's names and one more. Raises :class:`SpecError` for ``option``."""
    port = free_port()
    allowed = ["--allow-websocket-origin", f"{name}:{port}"] if name else []
    with serving(option, ["panel", "serve", str(APP), *allowed], "app", port, patience) as server:
        yield server


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def serving(option: str, arguments: Sequence[str], page: str, port: int, patience: float = 60.0) -> Iterator[Served]:
    """The server of a Python module with these arguments. Raises :class:`SpecError` for ``option``."""
    module, command, *others = arguments
    with TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sgmcmc_lab.app.server.child",
                module,
                command,
                "--port",
                str(port),
                "--address",
                "127.0.0.1",
                *others,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        url = f"http://localhost:{port}/{page}"
        try:
            deadline = time.monotonic() + patience
            while True:
                try:
                    with urlopen(url, timeout=patience):
                        break
                except (URLError, ConnectionError):
                    if time.monotonic() > deadline or process.poll() is not None:
                        raise SpecError(option, url, "the server did not start") from None
                    time.sleep(0.2)
            yield Served(url, process, Path(log.name))
        finally:
            process.terminate()
            process.communicate(timeout=20)
