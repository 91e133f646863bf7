"""``bench --live``: what a live page costs, each figure beside a control in the same run.

The control of the opening is a page with one figure and no engine. That of the frames is BokehJS alone with the same
figures in the same sizes: at each animation frame of the browser it draws the arrays of a recorded frame, which it has
from the start. That of the engine is this process, in turns with a worker whose page draws nothing.
"""

import gzip
import json
import platform
import re
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from sgmcmc_lab.app.server.serving import ARGUMENTS, browser_path, needs
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.live.makers import maker

EXPERIMENT = {"target": "quartic", "lanes": [{"sampler": "sgld"}, {"sampler": "sghmc"}]}
SHOWN = ("state", "marginal", "ks")
REPEATS, QUICK_REPEATS = 7, 2
WARM, SECONDS = 5.0, 4.0
"""The seconds that a page and its control draw before their frames are counted, because V8 optimises code that runs
often; and the seconds in which they are counted."""
TURN, TURNS = 0.3, 5
"""How long each host makes steps before it is the other one's turn, and how often it is. The fastest turn counts: other
work on the machine makes the others slower, and now one host, now the other."""
FASTEST = ("wasm", "native")
RECORDED = 60
"""Frames that the control draws in turn."""
SIZE = {"width": 1280, "height": 720}
SCRIPT = re.compile(r"<script(?P<kind>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
COUNT = """
window.frames_drawn = 0
addEventListener("readystatechange", () => new MutationObserver((all) => { window.frames_drawn += all.length })
  .observe(document.documentElement, {attributeFilter: ["data-frames"]}), {capture: true, once: true})
"""
"""Before a page's scripts: how many frames were drawn, whose numbers begin again with each new figure."""
SECOND = "window.frames_drawn > 1"
EVERY = "[...document.querySelectorAll('figure.view:not([hidden]) .plot')].every((plot) => plot.firstElementChild)"
"""Whether every figure that is shown is there."""
BARE = """
Bokeh.embed.embed_item(parts.figures.ks, holder({width: 400, height: 300})).then(() =>
  requestAnimationFrame(() => setTimeout(() => { for (const n of [1, 2]) document.documentElement.dataset.frames = n }, 0)))
"""
CONTROL = """
const find = (id) => Bokeh.documents.map((one) => one.get_model_by_id(id)).find((one) => one)
const append = (old, fresh, most) => Float64Array.from([...old, ...fresh].slice(-most))
const put = ([feed, arrays]) => {
  const model = models.get(feed.id)
  if (feed.operation === "range") model.setv({start: arrays[0][0], end: arrays[0][1]})
  else model.data = {...model.data, ...Object.fromEntries(feed.columns.map((name, i) =>
    [name, feed.operation === "stream" ? append(model.data[name], arrays[i], feed.rollover) : arrays[i].slice()]))}
}
const models = new Map()
const frames = parts.frames.map((frame) => frame.map(([feed, arrays]) => [feed, arrays.map((one) => Float64Array.from(one))]))
const ready = Promise.all(Object.keys(parts.sizes).map((key) => Bokeh.embed.embed_item(parts.figures[key], holder(parts.sizes[key])))).then(() => {
  for (const [{id}] of frames.flat()) models.set(id, find(id))
})
let drawn = 0
const play = (seconds) => new Promise((done) => {
  let began
  const next = (now) => {
    began ??= now
    if (now - began >= 1000 * seconds) return done()
    frames[drawn % frames.length].forEach(put)
    drawn += 1
    requestAnimationFrame(next)
  }
  requestAnimationFrame(next)
})
"""
PAGE = """HEAD</head><body style="margin:0;display:flex;flex-wrap:wrap">
BOKEH
<script type="application/json" id="parts">PARTS</script>
<script>
const parts = JSON.parse(document.getElementById("parts").textContent)
const holder = ({width, height}) => document.body.appendChild(Object.assign(document.createElement("div"), {style: `width:${width}px;height:${height}px`}))
DO
</script>
</body></html>
"""
WATCH = """
window.recorded = []
window.told = []
window.painted = 0
const Plain = window.Worker
window.Worker = class extends Plain {
  constructor(...all) {
    super(...all)
    window.engine = () => new Plain(...all)
    this.addEventListener("message", ({data}) => {
      if (data.type === "frame" && window.recorded.length < RECORDED)
        window.recorded.push(data.feeds.map(([feed, arrays]) => [feed, arrays.map((one) => [...one])]))
    })
  }
  postMessage(message, ...more) {
    if (["load", "prepare", "open"].includes(message.type) && window.told.length < 3) window.told.push(structuredClone(message))
    super.postMessage(message, ...more)
  }
}
let last
const clear = CanvasRenderingContext2D.prototype.clearRect
CanvasRenderingContext2D.prototype.clearRect = function (...all) {
  if (document.timeline.currentTime !== last) window.painted += 1
  last = document.timeline.currentTime
  return clear.apply(this, all)
}
""".replace("RECORDED", str(RECORDED))
"""Before a page's scripts: what is told to its worker first, the arrays of its first frames, and how many of the
browser's frames have a canvas that was drawn anew."""
SIZES = """() => Object.fromEntries([...document.querySelectorAll("figure.view:not([hidden]) .plot")].map((plot) => {
  const {width, height} = plot.getBoundingClientRect()
  return [plot.id.replace("plot-", ""), {width, height}]
}))"""
ENGINE = """(seconds) => new Promise((done, fail) => {
  const worker = window.engine()
  let first
  worker.onmessage = ({data}) => {
    if (data.type === "failed") fail(new Error(data.message))
    if (data.type !== "frame") return
    // What is compiled while it runs is as fast as it gets.
    if (first === undefined && data.seconds > seconds / 2) first = data
    if (first === undefined || data.seconds < first.seconds + seconds) return worker.postMessage({type: "answer", number: data.number})
    worker.terminate()
    done((data.steps - first.steps) / (data.seconds - first.seconds))
  }
  for (const message of window.told) worker.postMessage(message)
  worker.postMessage({type: "look", views: {}, shown: [], coordinate: 0, axis: "steps", names: []})
  worker.postMessage({type: "pace", playing: true, speed: 1000000, hidden: false})
})"""
"""Steps of each chain and second of the engine's work, in a worker of its own that is told what the page's was."""


@dataclass(frozen=True)
class Report:
    """Medians, of the engine the fastest turn, and of each measurement that of its control."""

    megabytes: float
    """The size of the file."""
    compressed: float
    """Megabytes of it in gzip."""
    first_frame: float
    """Seconds from opening the file to a second frame."""
    figures: float
    """Seconds from opening the file until every figure is there."""
    bare: float
    """Seconds to the paint of a page with one empty figure."""
    frames: float
    """Frames of the browser in a second with a figure that was drawn anew."""
    replayed: float
    """The same of the control."""
    host_ms: float
    """Milliseconds of the host's thread for the arrays of a frame, with its steps."""
    wasm: float
    """Chain-steps a second of the engine with statistics, in the browser."""
    native: float
    """The same in Python's process."""
    drawing: float
    """The same in the browser while its page draws."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def measure(quick: bool, say: Callable[[str], None]) -> Report:
    """Measure in a headless browser. Raises :class:`~samplers.parameters.SpecError` where a page cannot be made."""
    needs("--live", "playwright")
    from playwright.sync_api import sync_playwright

    text = maker("page")(Experiment.from_dict(EXPERIMENT), shown=SHOWN)
    repeats = QUICK_REPEATS if quick else REPEATS
    found: dict[str, list[float]] = {field.name: [] for field in fields(Report)}
    found["megabytes"], found["compressed"] = [len(text.encode()) / 1e6], [len(gzip.compress(text.encode())) / 1e6]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        files = {kind: Path(name) / f"{kind}.html" for kind in ("live", "bare", "control")}
        files["live"].write_text(text, encoding="utf-8")
        files["bare"].write_text(control_page(text, BARE, {"ks": {}}), encoding="utf-8")

        def opened(kind: str, fragment: str = "", done: str = "true") -> Any:
            """A page of a browser of its own, and the seconds until this is so."""
            browser = playwright.chromium.launch(executable_path=browser_path("--live"), args=list(ARGUMENTS))
            # To wait for an expression Playwright makes a function of a text, which the page's policy forbids.
            page = browser.new_page(viewport=SIZE, bypass_csp=True)
            page.add_init_script(COUNT if done == SECOND else WATCH)
            began = time.perf_counter()
            page.goto(files[kind].as_uri() + fragment)
            page.wait_for_function(done)
            return page, time.perf_counter() - began, browser, began

        for turn in range(repeats):
            say(f"{turn + 1} of {repeats}")
            _, seconds, browser, _ = opened("bare", done=SECOND)
            found["bare"].append(seconds)
            browser.close()
            page, seconds, browser, began = opened("live", done=SECOND)
            found["first_frame"].append(seconds)
            page.wait_for_function(EVERY)
            found["figures"].append(time.perf_counter() - began)
            browser.close()
            page, _, browser, _ = opened("live")
            page.wait_for_function(f"window.recorded.length >= {RECORDED}")
            page.wait_for_timeout(1000 * WARM)
            found["frames"].append(painted(page, f"new Promise((done) => setTimeout(done, {1000 * SECONDS}))"))
            found["host_ms"].append(float(page.evaluate("Number(document.documentElement.dataset.hostMs)")))
            page.locator("#play").click()
            for _ in range(TURNS):
                found["native"].append(_native(TURN))
                found["wasm"].append(_chains() * page.evaluate(ENGINE, TURN))
            files["control"].write_text(
                control_page(text, CONTROL, page.evaluate(SIZES), page.evaluate("window.recorded")), encoding="utf-8"
            )
            browser.close()
            page, _, browser, _ = opened("control")
            page.evaluate("ready")
            page.evaluate(f"play({WARM})")
            found["replayed"].append(painted(page, f"play({SECONDS})"))
            browser.close()
            page, _, browser, _ = opened("live", "#speed=1000000", SECOND)
            page.wait_for_timeout(1000)
            seconds, steps = _seconds(page), _steps(page)
            page.wait_for_timeout(2000)
            found["drawing"].append(_chains() * (_steps(page) - steps) / (_seconds(page) - seconds))
            browser.close()
    return Report(**{name: (max if name in FASTEST else median)(values) for name, values in found.items()})


def as_text(report: Report) -> str:
    """The report as a table."""
    r = report
    rows = [
        ("file", f"{r.megabytes:.2f} MB, {1000 * r.compressed:.0f} kB in gzip", "2.2 MB, 800 kB"),
        ("second frame after opening, cold", f"{r.first_frame:.2f} s; a page with one figure {r.bare:.2f} s", "1.0 s"),
        ("every figure after opening, cold", f"{r.figures:.2f} s", ""),
        (
            "frames a second",
            f"{r.frames:.0f}; the control {r.replayed:.0f}, a ratio of {r.frames / r.replayed:.2f}",
            ".9, and 30 where the control has them",
        ),
        ("host's thread a frame", f"{r.host_ms:.1f} ms", "8 ms"),
        (
            "chain-steps a second, two lanes",
            f"{r.wasm:.2e}; native {r.native:.2e}, a ratio of {r.wasm / r.native:.2f}",
            ".6",
        ),
        ("the same while the page draws", f"{r.drawing:.2e}", ""),
    ]
    head = f"live page, two lanes, three views, {platform.machine()}"
    asked = {what: f" (asked: {asked})" if asked else "" for what, _, asked in rows}
    return "\n".join([head, *(f"  {what}: {found}{asked[what]}" for what, found, _ in rows)])


def control_page(text: str, script: str, sizes: Any, frames: Any = ()) -> str:
    """BokehJS and the figures of a live page's file that have a size, with another script, and arrays of frames."""
    bokeh = max((found["text"] for found in SCRIPT.finditer(text) if 'class="bokeh"' in found["kind"]), key=len)
    (step,), arrays = json.loads(_held(text, "page"))["steps"], _held(text, "arrays")
    views = step["figures"][str(len(step["lanes"]))]["views"]
    figures = {key: _restored(view["figure"], arrays) for key, view in views.items() if key in sizes}
    parts = json.dumps({"figures": figures, "sizes": sizes, "frames": frames}, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    head = re.sub("<meta http-equiv=[^>]*>", "", text.partition("<style>")[0])
    given = {"HEAD": head, "BOKEH": f"<script>{_unpacked(bokeh).decode()}</script>", "PARTS": parts, "DO": script}
    return re.sub("HEAD|BOKEH|PARTS|DO", lambda found: given[found[0]], PAGE)


def _held(text: str, name: str) -> bytes:
    """The content of a script element of a live page's file."""
    return _unpacked(next(found["text"] for found in SCRIPT.finditer(text) if f'id="{name}"' in found["kind"]))


def _unpacked(text: str) -> bytes:
    return gzip.decompress(b64decode(text))


def _restored(node: Any, arrays: bytes) -> Any:
    """A figure with its arrays' bytes in the place of where they are."""
    if isinstance(node, list):
        return [_restored(part, arrays) for part in node]
    if not isinstance(node, dict):
        return node
    if "pooled" in node:
        first, length = node["pooled"]
        return b64encode(gzip.compress(arrays[first : first + length])).decode()
    return {name: _restored(part, arrays) for name, part in node.items()}


def painted(page: Any, promise: str) -> float:
    """How many of the browser's frames in a second have a canvas that is drawn anew, in a page that is watched, until
    this is fulfilled.
    """
    count = "[window.painted, performance.now()]"
    before, began = page.evaluate(count)
    page.evaluate(promise)
    after, ended = page.evaluate(count)
    return 1000 * (after - before) / (ended - began)


def _seconds(page: Any) -> float:
    """The seconds of the lanes' own work."""
    return float(page.evaluate("Number(document.documentElement.dataset.seconds)"))


def _steps(page: Any) -> int:
    return int(page.locator("#steps").inner_text().replace(",", ""))


def _chains() -> int:
    return sum(spec.n_chains for spec in Experiment.from_dict(EXPERIMENT).runs())


def _native(seconds: float) -> float:
    """Chain-steps a second of both lanes in this process, as chunks of the same length."""
    runs = [Run(spec) for spec in Experiment.from_dict(EXPERIMENT).runs()]
    for run in runs:
        run.advance(5000)
    made, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for run in runs:
            run.advance(5000)
            made += 5000 * run.spec.n_chains
    return made / (time.perf_counter() - began)
