"""The engine's two hosts beside each other: what a run holds in Python, and in a browser's WebAssembly.

A small server hands the page of ``hosts.js`` the project's own modules of JavaScript, the compiled functions, and
nothing else; a Chromium, a Firefox or a WebKit opens it. :func:`compare` says where two runs differ.
"""

import json
import threading
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright

from sgmcmc_lab.samplers import engine, running_statistics
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.wasm import link
from sgmcmc_lab.samplers.compile.wasm.engine import engine as engine_file
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.targets import Target
from tests import browser
from tests.browser.firefox import find_firefox, firefox_page
from tests.browser.webkit import find_webkit, webkit_page

CHROMIUM, FIREFOX, WEBKIT = "chromium", "firefox", "webkit"
OTHERS: dict[str, tuple[Callable[[], Any], Callable[[Any], AbstractContextManager[Any]]]] = {
    FIREFOX: (find_firefox, firefox_page),
    WEBKIT: (find_webkit, webkit_page),
}
"""Browsers without Playwright: each is found, and has a page."""
LIVE = browser.ROOT / "assets" / "live"
SOURCES = {
    **{
        f"{name}.js": LIVE / f"{name}.js"
        for name in (
            "claims",
            "engine",
            "ensembles",
            "followed",
            "format",
            "lane",
            "marks",
            "measures",
            "run",
            "separate",
            "sweeps",
            "truth",
        )
    },
    "hosts.js": browser.ROOT / "tests/browser/hosts.js",
}
PAGE = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>Runs</title><script type="module" src="hosts.js"></script>'
MODULE = "functions.wasm"
HELD = "held"
"""Among the moves of a run: hand over what there is."""
ALLOWED = 1e-12
"""How far a number may be off, relative to the largest of its kind."""
ROUNDING = 4e-16
GROWTH = 1000
"""How many times further apart two hosts may be than Python's own runs from a start and from a rounded one: where a
pivot is as good as 0, its root turns one rounding of 1e-16 into 1e-8 at once."""
EDGES = 4
"""How many counts may be in another bin where values are not the same to the bit."""
CHAOTIC = ("kept", "position", "momentum", "last_gradient", "memory")
"""Arrays whose differences grow from step to step."""
COUNTED = ("clock", "bins", "joint")
VALUES = ("history", "tail", "lag_recent", "lag_first", "level_sums")
FIELDS = {
    "steps": "steps",
    "counted_from": "countedFrom",
    "gradients": "gradients",
    "data_seen": "dataSeen",
    "temperature": "temperature",
    "thermostat": "thermostat",
    "total": "total",
    "mean_weight": "meanWeight",
    "why_weighted": "whyWeighted",
}
"""The results asked of a run and of its statistics, by their names in the two hosts."""


# --- the page ------------------------------------------------------------------------------------------------------


class Page(Protocol):
    """A page of some browser."""

    def goto(self, url: str) -> Any: ...
    def evaluate(self, expression: str) -> Any: ...


Edits = Mapping[str, Callable[[str], str]]
"""The change to the text of a source, by its name, before a page has it."""


@dataclass
class Site:
    """Where the page is, what it is asked, and its answers, which are too long for the messages of a driver."""

    url: str
    asked: bytes = b""
    answers: list[bytes] = field(default_factory=list)


@contextmanager
def serve(module: bytes, edits: Edits | None = None) -> Iterator[Site]:
    """The page, on a server of its own."""
    none: Callable[[str], str] = str
    files = {
        f"/{name}": ("text/javascript", (edits or {}).get(name, none)(path.read_text(encoding="utf-8")).encode())
        for name, path in SOURCES.items()
    }
    files |= {"/": ("text/html", PAGE.encode()), f"/{MODULE}": ("application/wasm", module)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, content = (
                ("application/json", site.asked) if self.path == "/asked" else files.get(self.path, ("", b""))
            )
            self._answer(kind, content)

        def do_POST(self) -> None:
            site.answers.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer("text/plain", b"")

        def _answer(self, kind: str, content: bytes) -> None:
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(content)))
            # A page that is kept meets a port again, with another text of a script.
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def open_page(name: str) -> Iterator[Page]:
    """An empty page of this browser."""
    if name in OTHERS:
        find, page_of = OTHERS[name]
        found = find()
        assert found, f"no {name} is installed"
        with page_of(found) as page:
            yield page
        return
    path = browser.find_chromium()
    assert path, "no Chromium is installed"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, headless=True, args=browser.arguments())
        yield chromium.new_page()
        chromium.close()


class Host:
    """The WebAssembly host in a page."""

    def __init__(self, page: Page, site: Site):
        self._page, self._site = page, site
        page.goto(site.url)

    def made(self, jobs: Sequence["Job"]) -> list["Made"]:
        """Make these runs, each in a memory of its own."""
        found = self._of_jobs("made", jobs) if jobs else []
        return [Made([Held.of(each) for each in one["found"]], one.get("error", "")) for one in found]

    def claimed(self, spec: RunSpec, jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The verdicts of each step's claims after so many steps, and the state of its runs."""
        signatures = description.signatures(spec)
        return self._call("claimed", module=MODULE, signatures=signatures, constants=description.constants(), jobs=jobs)

    def swept(self, spec: RunSpec, jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The rows, marks and curves of each sweep."""
        signatures = description.signatures(spec)
        return self._call("swept", module=MODULE, signatures=signatures, constants=description.constants(), jobs=jobs)

    def separate(self, spec: RunSpec, jobs: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The claims of each step on separate runs: marks and numbers."""
        signatures = description.signatures(spec)
        return self._call(
            "separate", module=MODULE, signatures=signatures, constants=description.constants(), jobs=jobs
        )

    def sizes(self, jobs: Sequence["Job"]) -> list[int]:
        """The size of the memory in bytes after each of these runs, made one after the other in the same one."""
        return self._of_jobs("sizes", jobs)

    def _of_jobs(self, name: str, jobs: Sequence["Job"]) -> Any:
        return self._call(
            name,
            module=MODULE,
            signatures=description.signatures(jobs[0].spec),
            constants=description.constants(),
            jobs=[{"description": job.described(), "moves": job.described_moves()} for job in jobs],
        )

    def streams(self, spec: RunSpec, seeds: Sequence[int], n: int) -> list[list[list[str]]]:
        """The first ``n`` numbers of 64 bits, of 32, and doubles, of each seed's stream."""
        signatures = description.signatures(spec)
        return self._call("streams", module=MODULE, signatures=signatures, seeds=list(seeds), n=n)

    def children(self, spec: RunSpec, seed: int, n: int) -> list[list[str]]:
        """The first numbers of 64 bits of each of the first ``n`` children of a seed."""
        return self._call("children", module=MODULE, signatures=description.signatures(spec), seed=seed, n=n)

    def _call(self, name: str, **values: Any) -> Any:
        self._site.asked, self._site.answers = json.dumps(values).encode(), []
        self._page.evaluate(f"live.answer({json.dumps(name)})")
        return [json.loads(each) for each in self._site.answers]


# --- runs ----------------------------------------------------------------------------------------------------------

Edit = Callable[[dict[str, Any]], None]


@dataclass
class Job:
    """A run and its moves: steps to make, changes, and :data:`HELD`."""

    spec: RunSpec
    moves: Sequence[int | str | Change]
    edit: Edit | None = None
    """The change to the description before a page has it: a planted fault."""

    @property
    def n_steps(self) -> int:
        """All steps that are asked for."""
        return sum(move for move in self.moves if isinstance(move, int))

    def described(self) -> dict[str, Any]:
        """The run as the page has it."""
        found = description.of_run(self.spec)
        found["keep"] = self.spec.n_steps // self.spec.thin
        if self.edit is not None:
            self.edit(found)
        return found

    def described_moves(self) -> list[Any]:
        """The moves as the page has them."""
        target, out = self.spec.target, []
        for move in self.moves:
            if isinstance(move, Change):
                out.append(description.of_change(move, target, self.spec.temperature))
                target = move.target or target
            else:
                out.append(move)
        return out

    def here(self, *, rounded: bool = False) -> list["Held"]:
        """The result of Python's host; or of one whose start is ``rounded`` to another last digit."""
        out, run = [], engine.Run(self.spec, keep_draws=True)
        if rounded:
            run.coordinates += ROUNDING * np.maximum(np.abs(run.coordinates), 0.1)
        for move in self.moves:
            if isinstance(move, Change):
                run.change(move)
            elif move == HELD:
                out.append(Held.by(run))
            else:
                run.advance(int(move))
        return out

    def target(self) -> Target:
        """The target, as it is after all changes."""
        changed = [move.target for move in self.moves if isinstance(move, Change) and move.target]
        return engine.make_target(changed[-1] if changed else self.spec.target, self.spec.temperature)


@dataclass
class Held:
    """The contents of a run."""

    arrays: dict[str, NDArray[Any]]
    fields: dict[str, Any]

    @classmethod
    def by(cls, run: engine.Run) -> "Held":
        """The state of a run in Python's host."""
        arrays = {
            "position": run.coordinates,
            "momentum": run.momentum,
            "last_gradient": run.last_gradient,
            "memory": run.memory,
            "data": run.data,
            **_split(run._counted_and_marked),
            "kept": run.kept_rows[:, : run.kept_clock[0]],
            "kept_clock": run.kept_clock,
            **run.statistics.sums._asdict(),
        }
        fields = {name: getattr(run if hasattr(run, name) else run.statistics, name) for name in FIELDS}
        fields |= {"acceptance": run.share(jit.ACCEPTED), "clipped": run.share(jit.CLIPPED)}
        stopped = run.divergence
        fields["divergence"] = stopped and {
            "step": stopped.step,
            "message": stopped.message,
            "refused": stopped.refused,
        }
        return cls({name: np.array(array) for name, array in arrays.items()}, fields)

    @classmethod
    def of(cls, found: dict[str, Any]) -> "Held":
        """The state of a run in the page."""
        arrays = {name: unpacked(packed) for name, packed in found["arrays"].items()}
        arrays["kept"] = arrays["kept"][:, : arrays["kept_clock"][0]]
        arrays |= _split(arrays["counts"])
        fields = {name: found["fields"][there] for name, there in FIELDS.items()}
        fields |= {name: found["fields"][name] for name in ("acceptance", "clipped", "divergence")}
        return cls(arrays, fields)


def _split(counts: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The counts, and the places and draws of the last divergent transitions, which are behind them."""
    counts, places, theta = np.split(counts, [jit.N_COUNTS, jit.N_COUNTS + jit.N_MARKS])
    return {"counts": counts, "places": places, "diverged": theta}


@dataclass
class Made:
    """The page's result of a job."""

    held: list[Held]
    error: str = ""


def unpacked(packed: dict[str, Any]) -> NDArray[Any]:
    """An array that the page has packed."""
    size = int(np.prod(packed["shape"]))
    out = np.zeros(size, dtype=f"<{packed['type']}")
    given = np.frombuffer(b64decode(packed["data"]), dtype=out.dtype)
    out[: len(given)] = given
    return out.reshape(packed["shape"])


# --- the comparison ------------------------------------------------------------------------------------------------


@dataclass
class Difference:
    """How two hosts' runs differ."""

    equal: bool = True
    """Whether all draws and the state are the same to the bit."""
    worst: float = 0.0
    """The largest relative difference of draws and state."""
    problems: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """One more thing that is not as it must be."""
        self.problems.append(text)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether they are equal, any two that are no numbers included."""
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def apart(a: NDArray[Any], b: NDArray[Any], scale: Any = None) -> float:
    """The largest difference, relative to ``scale``, or to the largest number of the last axis's coordinate."""
    if a.shape != b.shape:
        return np.inf
    if same(a, b):
        return 0.0
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    if scale is None:
        scale = np.abs(a).max(axis=tuple(range(a.ndim - 1)))
    return float((np.abs(a - b) / np.maximum(scale, 1e-300)).max())


def compare(here: Held, there: Held, target: Target, *, chaotic: bool = False) -> Difference:
    """Where the page's run, ``there``, is not Python's.

    After many steps a run may be ``chaotic``: where its draws are not the same to the bit, the statistics are then
    compared with those that Python makes of the page's own draws.
    """
    out = Difference()
    for name in CHAOTIC:
        a, b = here.arrays[name], there.arrays[name]
        if not same(a, b):
            out.equal, found = False, apart(a, b)
            out.worst = max(out.worst, found)
            if found > ALLOWED and not chaotic:
                out.add(f"{name}: {found:.1e} apart")
    if chaotic and not out.equal:
        all_kept = there.arrays["kept"].shape[1] == there.arrays["clock"][running_statistics.STEPS]
        if all_kept and there.arrays["kept"].shape[2] == there.arrays["tail"].shape[2]:
            _compare_statistics(recounted(there, target), there.arrays, out)
        return out
    for name in ("data", "kept_clock"):
        if not same(here.arrays[name], there.arrays[name]):
            out.add(f"{name} differ")
    if here.fields["divergence"] != there.fields["divergence"]:
        out.add(f"divergence: {here.fields['divergence']} there {there.fields['divergence']}")
    for name in (*FIELDS, "acceptance", "clipped"):
        a, b = here.fields[name], there.fields[name]
        if a != b and (a is None or b is None or isinstance(a, int | str) or not abs(a - b) <= ALLOWED * abs(a)):
            out.add(f"{name}: {a} there {b}")
    found = apart(here.arrays["counts"][:, None].T, there.arrays["counts"][:, None].T)
    if found > ALLOWED:
        out.add(f"counts: {found:.1e} apart")
    if not same(here.arrays["places"], there.arrays["places"]):
        out.add("places of divergent transitions differ")
    ended = here.arrays["diverged"]
    if (found := apart(ended, there.arrays["diverged"], np.abs(ended).max(initial=0.0))) > ALLOWED:
        out.add(f"draws of divergent transitions: {found:.1e} apart")
    _compare_statistics(here.arrays, there.arrays, out)
    return out


def _compare_statistics(here: Mapping[str, NDArray[Any]], there: Mapping[str, NDArray[Any]], out: Difference) -> None:
    values_equal = same(here["history"], there["history"]) and same(here["tail"], there["tail"])
    for name in COUNTED:
        a, b = here[name], there[name]
        if a.shape != b.shape or np.abs(a - b).sum() > (0 if values_equal or name == "clock" else EDGES):
            out.add(f"{name} differ")
    for name in VALUES:
        found = apart(here[name], there[name])
        if found > ALLOWED:
            out.add(f"{name}: {found:.1e} apart")
    # Of sums of numbers that cancel, the magnitude is that of the sum of their absolute values.
    p, weights, n = np.abs(here["powers"]), here["weights"][running_statistics.CHAINS :], here["powers"].shape[1]
    # The weight of the steps of each chain: their number where draws have no weights.
    total = np.maximum(weights[:n] if len(weights) else float(here["clock"][running_statistics.WEIGHT]), 1.0)
    scale = np.stack(
        [np.sqrt(total * p[..., 1]), p[..., 1], np.sqrt(p[..., 1] * p[..., 3]), p[..., 3]],
        axis=-1,
    )
    for name in ("powers", "weights"):
        found = apart(here[name], there[name], scale if name == "powers" else here[name].max())
        if found > ALLOWED:
            out.add(f"{name}: {found:.1e} apart")
    watched = here["lag_sums"].shape[1]
    found = apart(here["lag_sums"], there["lag_sums"], p[:, :watched, 1, None])
    if found > ALLOWED:
        out.add(f"lag_sums: {found:.1e} apart")


def recounted(there: Held, target: Target) -> dict[str, NDArray[Any]]:
    """The statistics that Python makes of the page's draws without weights, all of which were kept."""
    draws = np.ascontiguousarray(there.arrays["kept"].transpose(1, 0, 2))
    n, n_chains, dim = draws.shape
    statistics = running_statistics.Statistics.empty(target.columns, n_chains, dim, target.planar)
    jit.prepare([running_statistics.count_row, target.observe])
    values = np.empty((len(target.columns), n_chains, 1))
    scratch = np.empty((2, 1 + running_statistics.N_LAGS))
    for t in range(n):
        target.observe(draws[t : t + 1], 1, values)
        running_statistics.count_row(statistics.sums, draws[t : t + 1], values, scratch)
    return statistics.sums._asdict()


# --- compiled functions --------------------------------------------------------------------------------------------

GENERATOR = frozenset({"exp", "log1p"})
"""The functions of libm that the tails of normal random numbers need."""
ELSEWHERE = frozenset({"fmod", "log10"})
"""Functions of libm, too, but exact, or in the text of an exception alone."""


def libm(function: Any) -> frozenset[str]:
    """The functions of libm that a function of the engine calls."""
    called = engine_file().called[jit.name_of(function)]
    return frozenset(called) - ELSEWHERE


def module_of(specs: Iterable[RunSpec]) -> bytes:
    """One module of all that these runs need."""
    return link.module(dict.fromkeys(function for spec in specs for function in description.functions(spec)))
