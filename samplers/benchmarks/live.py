"""``bench --live``: what a live page costs, each figure beside a control in the same run.

The control of the frames is a page with the same figures that draws the arrays of recorded frames and computes none.
"""

import gzip
import platform
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from samplers import Experiment, Run
from samplers.benchmarks.serving import ARGUMENTS, browser_path, needs
from samplers.live import maker

EXPERIMENT = {"target": "quartic", "lanes": [{"sampler": "sgld"}, {"sampler": "sghmc"}]}
SHOWN = ("state", "marginal", "ks")
REPEATS, QUICK_REPEATS = 7, 2
SECONDS = 4.0
"""How long frames are counted."""
RECORDED = 60
"""Frames that the control draws in turn."""
FIRST = "Number(document.documentElement.dataset.frames) > 1"
LAST_SCRIPT = re.compile(r"<script>(?!.*<script>).*?</script>", re.DOTALL)
BARE = """<script>
const bytes = Uint8Array.from(atob(document.getElementById("page").textContent.trim()), (c) => c.charCodeAt(0))
new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json().then(async ({steps: [{figures}]}) => {
  const holder = Object.assign(document.createElement("div"), {style: "width:400px;height:300px"})
  document.body.prepend(holder)
  await Bokeh.embed.embed_item(figures[2].views.ks.figure, holder)
  requestAnimationFrame(() => setTimeout(() => { document.documentElement.dataset.frames = 2 }, 0))
})
</script>"""
"""In place of the page's script: one figure, and no engine."""
RECORD = """
window.recorded = []
const Plain = window.Worker
window.Worker = class extends Plain {
  constructor(...all) {
    super(...all)
    this.addEventListener("message", ({data}) => {
      if (data.type === "frame" && window.recorded.length < RECORDED) window.recorded.push(data.feeds.map(([feed, arrays]) => [feed, arrays.map((one) => one.slice())]))
    })
  }
}
""".replace("RECORDED", str(RECORDED))
REPLAY = """(seconds) => new Promise((done) => {
  const find = (id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
  const models = new Map(window.recorded.flat().map(([feed]) => [feed.id, find(feed.id)]))
  const append = (old, fresh, most) => Float64Array.from([...old, ...fresh].slice(-most))
  const began = performance.now()
  let n = 0
  const draw = () => {
    for (const [feed, arrays] of window.recorded[n % window.recorded.length]) {
      const model = models.get(feed.id)
      if (!model) continue
      if (feed.operation === "range") model.setv({start: arrays[0][0], end: arrays[0][1]})
      else model.data = {...model.data, ...Object.fromEntries(feed.columns.map((name, i) => [name, feed.operation === "stream" ? append(model.data[name], arrays[i], feed.rollover) : arrays[i].slice()]))}
    }
    n += 1
    if (performance.now() - began < 1000 * seconds) requestAnimationFrame(() => setTimeout(draw, 0))
    else done(n / ((performance.now() - began) / 1000))
  }
  draw()
})"""


@dataclass(frozen=True)
class Report:
    """Medians, and of each pair the control's."""

    megabytes: float
    """Of the file."""
    compressed: float
    """Megabytes of it in gzip."""
    first_frame: float
    """Seconds from opening the file to a second frame."""
    bare: float
    """Seconds to the paint of a page with one empty figure."""
    frames: float
    """Frames a second."""
    replayed: float
    """The same of the control."""
    host_ms: float
    """Milliseconds of the host's thread for the arrays of a frame, with its steps."""
    wasm: float
    """Chain-steps a second of the engine's time with statistics, in the browser."""
    native: float
    """The same in Python's process."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def measure(quick: bool, say: Callable[[str], None]) -> Report:
    """Measure in a headless browser. Raises :class:`~samplers.parameters.SpecError` where a page cannot be made."""
    needs("--live", "playwright")
    from playwright.sync_api import sync_playwright

    text = maker("page")(Experiment.from_dict(EXPERIMENT), shown=SHOWN)
    repeats = QUICK_REPEATS if quick else REPEATS
    opened: list[float] = []
    bare: list[float] = []
    frames, replayed, hosts, speeds = [], [], [], []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        page_file, bare_file = Path(name) / "live.html", Path(name) / "bare.html"
        page_file.write_text(text, encoding="utf-8")
        bare_file.write_text(_without_engine(text), encoding="utf-8")
        for turn in range(repeats):
            say(f"{turn + 1} of {repeats}")
            for file, found in ((bare_file, bare), (page_file, opened)):
                browser = playwright.chromium.launch(executable_path=browser_path("--live"), args=list(ARGUMENTS))
                page = browser.new_page(viewport={"width": 1280, "height": 720})
                began = time.perf_counter()
                page.goto(file.as_uri())
                page.wait_for_function(FIRST)
                found.append(time.perf_counter() - began)
                browser.close()
            browser = playwright.chromium.launch(executable_path=browser_path("--live"), args=list(ARGUMENTS))
            page = browser.new_page(viewport={"width": 1280, "height": 720})
            page.add_init_script(RECORD)
            page.goto(page_file.as_uri())
            page.wait_for_function(f"window.recorded.length >= {RECORDED}")
            before, began = _frames(page), time.perf_counter()
            page.wait_for_timeout(1000 * SECONDS)
            frames.append((_frames(page) - before) / (time.perf_counter() - began))
            hosts.append(float(page.evaluate("Number(document.documentElement.dataset.hostMs)")))
            page.locator("#play").click()
            page.wait_for_timeout(500)
            replayed.append(float(page.evaluate(REPLAY, SECONDS)))
            browser.close()
        page = playwright.chromium.launch(executable_path=browser_path("--live"), args=list(ARGUMENTS)).new_page()
        page.goto(page_file.as_uri() + "#speed=1000000")
        page.wait_for_function(FIRST)
        for _ in range(repeats):
            began, before = _seconds(page), _steps(page)
            page.wait_for_timeout(2000)
            speeds.append(8 * (_steps(page) - before) / (_seconds(page) - began))
    return Report(
        len(text.encode()) / 1e6, len(gzip.compress(text.encode())) / 1e6, median(opened), median(bare), median(frames), median(replayed),
        median(hosts), median(speeds), median(_native() for _ in range(repeats)),
    )  # fmt: skip


def as_text(report: Report) -> str:
    """The report as a table."""
    r = report
    rows = [
        ("file", f"{r.megabytes:.2f} MB, {1000 * r.compressed:.0f} kB in gzip", "2.2 MB, 800 kB"),
        ("second frame after opening, cold", f"{r.first_frame:.2f} s; a bare Bokeh page {r.bare:.2f} s", "1.0 s"),
        (
            "frames a second",
            f"{r.frames:.0f}; the control {r.replayed:.0f}, a ratio of {r.frames / r.replayed:.2f}",
            ".9",
        ),
        ("host's thread a frame", f"{r.host_ms:.1f} ms", "8 ms"),
        (
            "chain-steps a second, two lanes",
            f"{r.wasm:.2e}; native {r.native:.2e}, a ratio of {r.wasm / r.native:.2f}",
            ".6",
        ),
    ]
    head = f"live page, two lanes, three views, {platform.machine()}"
    return "\n".join([head, *(f"  {what}: {found} (asked: {asked})" for what, found, asked in rows)])


def _without_engine(text: str) -> str:
    """The same file with one figure that does not move."""
    text = re.sub("<meta http-equiv=[^>]*>", "", text)
    return BARE.join(text.rsplit(LAST_SCRIPT.findall(text)[-1], 1))


def _frames(page: Any) -> int:
    return int(page.evaluate("Number(document.documentElement.dataset.frames)"))


def _seconds(page: Any) -> float:
    """Of the lanes' own work."""
    return float(page.evaluate("Number(document.documentElement.dataset.seconds)"))


def _steps(page: Any) -> int:
    return int(page.locator("#steps").inner_text().replace(",", ""))


def _native() -> float:
    """Chain-steps a second of both lanes in this process, as chunks of the same length."""
    runs = [Run(spec) for spec in Experiment.from_dict(EXPERIMENT).runs()]
    made, began = 0, time.perf_counter()
    while time.perf_counter() - began < 1.0:
        for run in runs:
            run.advance(5000)
            made += 5000 * run.spec.n_chains
    return made / (time.perf_counter() - began)
