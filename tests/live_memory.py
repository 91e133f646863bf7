"""``python -m tests.live_memory``: the growth of the browser's memory in an hour of a live page.

An hour has 108,000 frames at 30 per second. The page draws one small figure as fast as it can, in less than an hour.
Between frames come a user's actions in turn: a reset, a new seed, a parameter, the number of chains, the axis, the
theme, a view hidden and shown again. The host runs in the page's own thread, so that all memory is in one heap. After
each round the page is reset, the garbage is collected, and the memory is read. The first rounds fill the buffers of
fixed size; the growth after them is compared with the allowed growth, and the command exits 1 if it is larger.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from sgmcmc_lab.app.live_page import live_page
from sgmcmc_lab.samplers import Experiment
from tests import browser

EXPERIMENT = {"target": "quartic", "lanes": [{"sampler": "sgld"}, {"sampler": "sghmc"}]}
HOUR = 108_000
"""Frames of an hour at 30 per second."""
ROUND = 1800
"""Frames of a round, which is a minute."""
FIRST = 3
"""Rounds that fill the buffers of fixed size."""
ALLOWED_MB = 1.0
"""The allowed growth of the JavaScript heap and its buffers in the hour after these rounds."""
IN_THE_PAGE = "window.Worker = undefined"
"""Runs before the page's scripts, so that the host runs in the page's thread."""
ENGINE = """
const {instantiate} = WebAssembly
WebAssembly.instantiate = async (...all) => {
  const made = await instantiate.apply(WebAssembly, all)
  window.engine = made.instance
  return made
}
"""
"""Makes the memory of the engine readable."""
FRAMES = """(n) => new Promise((done) => {
  let [seen, last] = [0, ""]
  const look = () => {
    const now = document.documentElement.dataset.frames
    if (now !== last) seen += 1
    last = now
    if (seen >= n) done()
    else requestAnimationFrame(look)
  }
  look()
})"""
CHANGE = """([id, value]) => {
  const input = document.getElementById(id)
  input.value = value
  input.dispatchEvent(new Event(input.tagName === "SELECT" ? "change" : "input"))
}"""


@dataclass(frozen=True)
class Memory:
    """The memory of a page after garbage collection."""

    heap: float
    """Megabytes of JavaScript objects."""
    buffers: float
    """Megabytes of array buffers, without WebAssembly's memory."""
    engine: int
    """Bytes of WebAssembly's memory."""
    nodes: int
    """Elements and texts, including those detached from the page."""
    listeners: int

    @property
    def megabytes(self) -> float:
        """Megabytes of JavaScript."""
        return self.heap + self.buffers


def actions(page: Any) -> Iterator[Any]:
    """A user's actions in order; they leave the page as it was."""
    for value in ("120", "100"):
        yield lambda value=value: page.evaluate(CHANGE, ["sampler-0-step_size", value])
        yield lambda: page.locator("#reset").click()
        yield lambda: page.locator("#seed").click()
        yield lambda value=value: page.evaluate(CHANGE, ["sampler-1-friction", value])
        yield lambda: page.locator("#theme").click()
    for key, values in {"chains": ("10", "4"), "axis": ("data", "steps")}.items():
        for value in values:
            yield lambda key=key, value=value: page.evaluate(CHANGE, [key, value])
    for _ in range(2):
        yield lambda: page.locator("#show-marginal").click()


def rounds(page: Any, n: int, frames: int = ROUND) -> Iterator[Memory]:
    """The memory after each of ``n`` rounds of ``frames`` frames."""
    session = page.context.new_cdp_session(page)
    page.wait_for_function("document.documentElement.dataset.frames > 2")
    todo = list(actions(page))
    for _ in range(n):
        for act in todo:
            act()
            page.evaluate(FRAMES, max(frames // len(todo), 1))
        page.locator("#reset").click()
        page.evaluate(FRAMES, 3)
        page.locator("#play").click()
        page.wait_for_timeout(300)
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        yield _memory(page, session)
        page.locator("#play").click()


def _memory(page: Any, session: Any) -> Memory:
    heap, counts = session.send("Runtime.getHeapUsage"), session.send("Memory.getDOMCounters")
    engine = int(page.evaluate("window.engine.exports.memory.buffer.byteLength"))
    buffers = heap["backingStorageSize"] / 1e6
    return Memory(heap["usedSize"] / 1e6, buffers, engine, counts["nodes"], counts["jsEventListeners"])


def problems(found: list[Memory], frames: int = HOUR, allowed: float = ALLOWED_MB) -> list[str]:
    """A line for each growth after the first rounds; ``allowed`` megabytes may be added in ``frames`` frames."""
    first, last = found[FIRST - 1], found[-1]
    out = []
    if last.engine > first.engine:
        out.append(f"the engine's memory: {first.engine} bytes, then {last.engine}")
    if last.megabytes - first.megabytes > allowed:
        out.append(f"JavaScript's memory: {first.megabytes:.2f} MB, then {last.megabytes:.2f} MB in {frames} frames")
    for name in ("nodes", "listeners"):
        before, after = getattr(first, name), getattr(last, name)
        if after > before + 50:
            out.append(f"{name}: {before}, then {after}")
    return out


def text_of(shown: Sequence[str] = ("ks",)) -> str:
    """The text of the opened file."""
    return live_page(Experiment.from_dict(EXPERIMENT), shown=shown)


def main() -> int:
    """Make the rounds, print a line for each, and report growth."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.live_memory", description=__doc__.split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--frames", type=int, default=HOUR, help=f"total number of frames, {HOUR:,} by default")
    given = parser.parse_args()
    path, found = browser.find_chromium(), []
    if path is None:
        parser.error("no Chromium is installed")
    began = time.perf_counter()
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "live.html"
        file.write_text(text_of(), encoding="utf-8")
        arguments = [*browser.arguments(), "--disable-frame-rate-limit", "--disable-gpu-vsync"]
        page = playwright.chromium.launch(executable_path=path, headless=True, args=arguments).new_page(
            viewport={"width": 400, "height": 300}, bypass_csp=True
        )
        page.add_init_script(IN_THE_PAGE + ENGINE)
        page.goto(file.as_uri())
        for memory in rounds(page, max(given.frames // ROUND, FIRST + 1)):
            found.append(memory)
            print(
                f"{ROUND * len(found):>7} frames, {time.perf_counter() - began:5.0f} s: heap {memory.heap:.2f} MB, buffers {memory.buffers:.2f} MB, "
                f"engine {memory.engine / 1e6:.2f} MB, {memory.nodes} nodes, {memory.listeners} listeners",
                flush=True,
            )
    grown = problems(found, given.frames, ALLOWED_MB * max(given.frames / HOUR, 0.2))
    print("\n".join(grown) or "Nothing grows.")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
