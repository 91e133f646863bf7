"""``python -m tests.hostile``: 10,000 hostile inputs to a running server, and a second page that must not notice.

Links, formulas, lesson files with hostile experiments in them, uploads and websocket messages are made of good ones by
mutation, with a fixed seed. In the end 150 pages are asked for at once. A page of its own, which does nothing but take
frames and answer them, tells what a student at another address meanwhile sees; she opens further pages, too. The
command exits 1 where the server logs an error, answers 500, runs what was typed, lets that page stand still, or lets
her wait for a page; while one is opened, gaps are measured apart, for each takes the server's one loop for a while.
"""

import argparse
import asyncio
import importlib
import json
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClosedError

from sgmcmc_lab.app.server.light_page import LightPage, mapping, models
from sgmcmc_lab.app.server.message_filter import SENDS
from sgmcmc_lab.app.server.page_queue import REST
from sgmcmc_lab.samplers.compile import jit
from tests.browser import Server, serve

STANDSTILL = 0.5
"""The longest time without a frame, in seconds, that a second page may see."""
SLOWEST = 5.0
"""The fewest frames a second that it may get, over any :data:`WINDOW`."""
OTHER = "127.0.0.2"
"""The student's address; Linux has it. The attacker's is 127.0.0.1."""
GETS = 150
"""Pages that the attacker asks for at once."""
GETS_SECONDS = 120.0
"""Seconds after which he gives up those that he has not got."""
EACH_SECONDS = 10.0
"""The student opens a page so long after the last one at least, and when her address has rested for it."""
MOST_DELAY = 2.0
"""The longest time that his pages may hold up one of hers, in seconds."""
FEWEST_FRAMES = 20.0
"""The fewest frames a second that her page gets while his pages are made."""
WINDOW = 5.0
TAKEN = 60.0
"""A server that takes no message for so many seconds hangs."""
OPENING = 10.0
"""A page that has no frames after so many seconds is open all the same: it may be paused."""
EVERY_KIND = {"message": 38, "sent": 12, "formula": 28, "lesson": 8, "upload": 10, "link": 4}
"""How many in a hundred are of each kind."""
CANARY = "canary"

LAB = "?target=typed&lane=recipe(layout:theta_r)&views=state,ks,drift"
LINKS = (
    "?target=quartic&lane=sgld(step_size:0.05)~full&seed=1&n_chains=4&views=state,marginal,ks&axis=steps&speed=20&theme=light",
    "?target=sparse_dirichlet(n_components:10;alpha:0.1)&lane=scir(step_size:0.5)~minibatch(batch_size:10)&lane=sgrld(step_size:0.005)~minibatch(batch_size:10)&coordinate=5",
    "?target=typed(energy:theta1^2/2+theta2^2/2+theta1^2*theta2^2)&lane=recipe(diffusion_entries:1,0,1;curl_entries:-1)~full&views=drift,stationarity",
    "?target=vmf_circle&lane=sggmc~noisy(sd:30)&hide=controls,export,ks&play=0",
    "?lesson=langevin&step=2&answer=1&try=1&present=1",
    "?target=topics(corpus:synthetic;n_topics:4)&lane=minibatch_gibbs(cost_ratio:35)&views=words,batch,scores&n_chains=2",
    "?model=network(graph:karate)&method=gibbs&method=gamma_sgvb(optimiser:adam)&show=2&seed=7",
)
FORMULAS = (
    "theta^4 - 2*theta^2 + theta/3",
    "exp(-theta^2/2)*cos(3*theta)",
    "1 + theta^2/(1 + abs(theta))",
    "-r/2",
    "sqrt(1 + theta^2)",
    "log(1 + exp(theta)) - min(theta, 1)^3",
    "((theta + 1)*(theta - 1))^2/4 + tanh(theta)",
    "1e-3 + 2.5E+2*sin(theta)^2",
)
LESSON = """+++
title = "A title"
minutes = 5
summary = "A summary."
+++

## A step

Some text with $$x^2$$ and a [link](https://example.org).

```toml
views = ["state", "ks"]
controls = ["sampler.step_size"]

[experiment]
target = "quartic(scale:1)"
lanes = [{ sampler = "sgld(step_size:0.05)", gradient = "full" }]
n_chains = 16
n_steps = 4000
burn_in = 200

[question]
ask = "What?"
options = ["This", "That"]
answer = 2
why = "So."

[[claim]]
says = "The mean."
measure = "mean"
equals = 0.1
errors = 5
```
"""
FILES = {
    "topics": {
        "letters.csv": b"id,text\n1,the cat sat on the mat\n2,dogs and cats and dogs\n3,a market of many shares\n4,shares fall and rise\n",
        "lines.txt": b"the cat sat on the mat\ndogs and cats and dogs\nmarkets rise\nshares fall\n",
        "corpus.ldac": b"3 0:1 1:2 4:1\n2 2:3 3:1\n",
    },
    "spherical": {"t.txt": b"one two\nthree four\none four\nthree two\ntwo four\n"},
    "mixture": {"web.data": b'A,1,1,"one","/a"\nA,2,1,"two","/b"\nC,"10",10\nV,1,1\nC,"11",11\nV,1,1\nV,2,1\n'},
    "network": {
        "edges.csv": b"source,target\na,b\nb,c\nc,a\nc,d\nd,e\ne,f\nf,d\n",
        "graph.graphml": b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" attr.name="name" attr.type="string"/><graph edgedefault="undirected"><node id="a"><data key="d0">A</data></node><node id="b"/><node id="c"/><edge source="a" target="b"/><edge source="b" target="c"/></graph></graphml>',
    },
}
SENT = (
    "x", None, 1, -1, 0.5, True, [], mapping({}), [[]], ["x"], [None, None, None], ["hello"], ["hello", 1, None, "free"], [0, 0, 0, 0, None], ["click", "joint", "0"],
    ["click", "nothing", 0], ["curve", "joint", *[1e308] * 500], 10**15, "x" * 5000, "listening", "chosen", "next", "leave", mapping({"type": None}),
    mapping({"type": "click"}), mapping({"type": "click", "item": None}), mapping({"type": "click", "item": -1}), mapping({"type": "click", "item": 10**6}),
    mapping({"type": "click", "item": "0"}), mapping({"type": "click", "item": [0, 0]}), mapping({"type": "action", "item": 0, "action": "x"}),
    mapping({"type": "toggle_item", "item": 0}), mapping({"type": "destroy"}), mapping({"type": "destroy", "uuid": None}), mapping({"type": "destroy", "uuid": [1]}),
    mapping({"status": "upload_event"}), mapping({"status": "upload_event", "chunk": "1", "name": 1, "total_chunks": None, "data": "x"}),
    mapping({"status": "finished"}), mapping({"status": "error", "error": mapping({})}), mapping({"status": ["finished"]}),
)  # fmt: skip
"""Messages that no component's script sends, or not that of every one."""
BITS = (
    "", "0", "-1", "1e308", "1e-308", "nan", "inf", "-0", "9" * 40, "0x10", "1_000", "１", "½", "٣", "true", "null", "None", "{}", "[]",
    "'", '"', "\\", "\0", "\x1b[2J", "\r\n", "\u2028", "\u202e", "\ud83d", "😀", "é", "e\u0301", "%", "%00", "%ff", "%u0041", "+", "&", "=", "&&==", ";", "#", "?", "~", ":", ",", "(", ")", "(" * 300, ")" * 300, "^" * 50, "^9^9^9^9^9", "**2", "/0", "theta", "theta1", "r", "xi",
    "__class__", "__import__('os').system('touch CANARY')", "open('CANARY','w')", "{{7*7}}", "${7*7}", "{0.__class__}", "%(x)s", "$(touch CANARY)", "`touch CANARY`", "; touch CANARY",
    "<script>document.title='CANARY'</script>", "<img src=x onerror=document.title='CANARY'>", "javascript:alert(1)", "[x](javascript:alert(1))", "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>", "&a;", "<y:ShapeNode/>",
    "../../../../etc/passwd", "/dev/zero", "file:///etc/passwd", "C:\\", "a" * 5000, "ä" * 3000, "theta+" * 400, "sin(" * 100, "\n" * 2000, "a." * 500, "[[" * 200, "x=1\n" * 300,
)  # fmt: skip


def mutated(rng: random.Random, text: str) -> str:
    """The text after one to four slips: parts cut, doubled, swapped, or replaced by something hostile."""
    for _ in range(rng.randint(1, 4)):
        i, j = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        j = min(j, i + rng.choice((1, 3, 12, 60)))
        bit = rng.choice(BITS)
        text = rng.choice(
            (
                lambda i=i, j=j, text=text: text[:i] + text[j:],
                lambda i=i, bit=bit, text=text: text[:i] + bit + text[i:],
                lambda i=i, j=j, bit=bit, text=text: text[:i] + bit + text[j:],
                lambda i=i, j=j, text=text: text[:j] + text[i:j] * rng.choice((1, 2, 40)) + text[j:],
                lambda i=i, j=j, text=text: text[j:] + text[i:j] + text[:i],
            )
        )()
    return text[:60_000]


def mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    """The same for a file, whose bytes need not be text."""
    out = mutated(rng, content.decode("latin-1")).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        i = rng.randrange(len(out) + 1)
        out = out[:i] + rng.randbytes(rng.choice((1, 4, 300))) + out[i:]
    return out


def any_value(rng: random.Random, depth: int = 0) -> Any:
    """Something that JSON can hold and a Bokeh message might."""
    simple: list[Callable[[], Any]] = [
        lambda: rng.choice(BITS),
        lambda: rng.choice((0, 1, -1, 2**31, 2**63, 10**40, 1e308, -0.5)),
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: {"id": "p" + str(rng.randint(1000, 9999))},
        lambda: {"type": "number", "value": "nan"},
        lambda: {"type": "object", "name": "CustomJS", "id": "h1", "attributes": {"code": "document.title='CANARY'"}},
        lambda: {
            "type": "ndarray",
            "array": {"type": "bytes", "data": "AAAA"},
            "shape": [10**9, 10**9],
            "dtype": "float64",
            "order": "little",
        },
        lambda: {"type": "map", "entries": [["md", "/etc/hostname"]]},
        lambda: {"md": "/usr/share/pixmaps/debian-logo.png"},
    ]
    if depth < 3 and rng.random() < 0.3:
        count = rng.choice((0, 1, 3, 200))
        if rng.random() < 0.5:
            return [any_value(rng, depth + 1) for _ in range(count)]
        return {rng.choice(BITS)[:50]: any_value(rng, depth + 1) for _ in range(count)}
    return rng.choice(simple)()


def _watching(url: str, asked: Connection) -> None:
    """The second page, in a process of its own: in that of the attacker it would stand still for his work."""

    async def open_others() -> None:
        while True:
            began = time.perf_counter()
            await _status(url, OTHER)
            had = time.perf_counter()
            asked.send((began, had))
            await asyncio.sleep(max(EACH_SECONDS, REST * (had - began)))

    async def watch() -> list[float]:
        times: list[float] = []
        page = LightPage()
        page.on_frame = lambda: times.append(time.perf_counter())
        await page.open(url, source=OTHER)
        tasks = [asyncio.create_task(page.take()), asyncio.create_task(open_others())]
        while not asked.poll():
            await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        page.close()
        return times

    asked.send(asyncio.run(watch()))


@dataclass
class Watch:
    """A page that only takes frames and answers them, and when they came; and how long others of its reader took."""

    url: str
    times: list[float] = field(default_factory=list)
    openings: list[tuple[float, float]] = field(default_factory=list)
    """When other pages were being opened."""
    gets: list[tuple[float, float]] = field(default_factory=list)
    """When the student asked for a page, and had it."""
    doing: list[tuple[float, str]] = field(default_factory=list)
    """When what kind of input was sent."""

    def __post_init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._ask, asked = spawn.Pipe()
        self._process = spawn.Process(target=_watching, args=(self.url, asked), daemon=True)
        self._process.start()
        while len(self.gets) < 2:
            assert self._ask.poll(120), "the second page did not open"
            self.hear()

    def hear(self) -> None:
        """Take what the student has had meanwhile."""
        while self._ask.poll():
            self.gets.append(self._ask.recv())

    def stop(self) -> None:
        """Close the page; its times are known then."""
        self._ask.send("stop")
        while isinstance(found := self._ask.recv(), tuple):
            self.gets.append(found)
        self.times = found
        self.openings += self.gets
        self._process.join()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """The time in here is measured separately."""
        began = time.perf_counter()
        yield
        self.openings.append((began, time.perf_counter()))

    def quiet_gaps(self) -> list[tuple[float, float]]:
        """Beginning and length of the time between two frames, where no page was being opened."""
        return [
            (a, b - a)
            for a, b in pairwise(self.times)
            if not any(begin < b and a < end for begin, end in self.openings)
        ]

    def stood_still(self) -> dict[str, float]:
        """The longest gaps above :data:`STANDSTILL`, by what was sent last before their ends."""
        out: dict[str, float] = {}
        for began, gap in self.quiet_gaps():
            if gap > STANDSTILL:
                what = " ".join([kind for at, kind in self.doing if began - 1 < at < began + gap][-3:])
                out[what] = max(out.get(what, 0.0), round(gap, 2))
        return out

    def frames(self, begin: float, end: float) -> tuple[float, float]:
        """Frames a second between these times, and the longest gap."""
        times = [at for at in self.times if begin < at < end]
        return len(times) / (end - begin), max(b - a for a, b in pairwise([begin, *times, end]))

    def delay(self, begin: float, end: float) -> float:
        """The longest that one of the student's pages took between these times, beyond the quickest one."""
        quickest = min(had - asked for asked, had in self.gets)
        return max((had - asked - quickest for asked, had in self.gets if begin < had and asked < end), default=0.0)

    def slowest(self) -> float:
        """The fewest frames a second over a :data:`WINDOW` in which no page was being opened, where there is one."""
        rates, inside = [], []
        for _, gap in self.quiet_gaps():
            inside.append(gap)
            while sum(inside[1:]) >= WINDOW:
                inside.pop(0)
            if sum(inside) >= WINDOW:
                rates.append(len(inside) / sum(inside))
        return min(rates, default=math.nan)


class Attacker:
    """A page that sends what no page of ours would. A connection that the server ends is opened again."""

    def __init__(self, url: str, rng: random.Random, watch: Watch):
        self.url, self.rng, self.watch = url, rng, watch
        self.opened = 0
        self.page: LightPage | None = None
        self._reader: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Open the page, where it is not open."""
        if self.page is not None and self._reader is not None and not self._reader.done():
            return
        self.close()
        with self.watch.opening():
            self.page = LightPage()
            await self.page.open(self.url)
            self._reader = asyncio.create_task(self.page.take())
            # The server may end the connection while a frame is answered.
            self._reader.add_done_callback(lambda done: done.cancelled() or done.exception())
            self.opened += 1
            # A page is open when it has had its first frames; its views are made before them.
            end = time.perf_counter() + OPENING
            while self.page.frames < 2 and not self._reader.done() and time.perf_counter() < end:
                await asyncio.sleep(0.05)
        self.all = [model for model in models(json.loads(self.page.document)) if "id" in model]
        self.labelled = {}
        for model in self.all:
            data = model["attributes"].get("data")
            if isinstance(data, dict) and "label" in data.get("attributes", {}):
                self.labelled[data["attributes"]["label"]] = model

    def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        if self.page is not None:
            self.page.close()

    def write(self, model: str, name: str, value: Any) -> None:
        """Ask the server to set a property."""
        self.page.patch({"kind": "ModelChanged", "model": {"id": model}, "attr": name, "new": value})

    def event(self, name: str, values: dict[str, Any]) -> None:
        """Let something happen to a model."""
        self.page.event(name, values)

    def formula(self) -> None:
        """Type something into one of the workbench's entries, or into the energy."""
        entries = [model for label, model in self.labelled.items() if label[:2] in ("D ", "Q ", "f ", "U", "En")]
        data = self.rng.choice(entries)["attributes"]["data"]["id"]
        text = mutated(self.rng, self.rng.choice(FORMULAS))
        self.write(data, "value_input", text)
        self.write(data, "value", text)

    def click(self, label: str) -> None:
        """Press a button."""
        self.page.click(self.labelled[label]["id"])

    def upload(self, kind: str) -> None:
        """Bring a file, or break off in the middle of it."""
        rng = self.rng
        box = next(model for label, model in self.labelled.items() if label.startswith("Your own"))
        name, content = rng.choice(list(FILES[kind].items()))
        chunk = mutated_bytes(rng, content)
        if rng.random() < 0.2:
            name = mutated(rng, name)
        parts = rng.choice((1, 1, 1, 2, 0, -1, 10**9))
        if rng.random() < 0.2:
            self.event("data_event", {"model": {"id": box["id"]}, "data": any_value(rng)})
        self.page.upload(box["id"], name, chunk, parts)

    def sent(self, number: int) -> None:
        """As the script of a component that may send, one after the other, in what it is not for."""
        senders = [model for model in self.all if _component(model) in SENDS]
        model = senders[number % len(senders)]
        self.event("data_event", {"model": {"id": model["id"]}, "data": SENT[number // len(senders) % len(SENT)]})

    def message(self) -> None:
        """Anything at all."""
        rng = self.rng
        model = rng.choice(self.all)
        kind = rng.randrange(8)
        if kind <= 2:
            names = list(model["attributes"]) or ["name"]
            self.write(
                model["id"],
                rng.choice((*names, "tags", "js_property_callbacks", "subscribed_events", *BITS[:30])),
                any_value(rng),
            )
        elif kind == 3:
            events = ("dom_event", "data_event", "button_click", "document_ready", "esm_event", "lod_start", *BITS[:20])
            self.event(
                rng.choice(events), {"model": {"id": model["id"]}, "node": rng.choice(BITS), "data": any_value(rng)}
            )
        elif kind == 4:
            self.page.patch(any_value(rng))
        elif kind == 5:
            what = rng.choice(
                (
                    "RootAdded",
                    "RootRemoved",
                    "TitleChanged",
                    "ColumnsStreamed",
                    "ColumnsPatched",
                    "ColumnDataChanged",
                    "MessageSent",
                    "Unknown",
                )
            )
            self.page.patch(
                {
                    "kind": what,
                    "model": {"id": model["id"]},
                    "title": any_value(rng),
                    "attr": "data",
                    "data": any_value(rng),
                    "new": any_value(rng),
                    "cols": any_value(rng),
                    "rollover": any_value(rng),
                    "patches": any_value(rng),
                    "msg_type": rng.choice(BITS),
                    "msg_data": any_value(rng),
                }
            )
        elif kind == 6:
            self.page.answer(rng.choice((-3, -2, -1, 0, 1, 10**6, 2**70)), rng.choice((-1, 0, 1, 2**70)))
        else:
            self.broken_fragments()

    def broken_fragments(self) -> None:
        """A message that is none; the server may end the connection for it."""
        rng = self.rng
        if rng.random() < 0.9:
            # Rare, for each costs a page to be opened again.
            self.page.send(
                rng.choice(("SERVER-INFO-REQ", "PULL-DOC-REQ", "OK", "ERROR", "ACK", "HELLO", "PATCH-DOC")),
                any_value(rng),
            )
            return
        for _ in range(rng.randint(1, 4)):
            # Half a character cannot be sent.
            text = mutated(rng, '{"msgid":"1","msgtype":"PATCH-DOC"}').encode(errors="replace").decode()
            self.page.raw(rng.choice((json.dumps(any_value(rng)), text, rng.randbytes(50))))


@dataclass
class Report:
    """The observations."""

    sent: Counter[str]
    opened: int
    """Connections that the server ended and that were opened again, and pages opened for links."""
    answers: Counter[int]
    """HTTP status of links."""
    hung: list[str]
    crashes: list[str]
    executed: bool
    alive: bool
    """Whether the second page still gets frames at the end."""
    seconds: float
    frames_per_second: float
    longest_gap: float
    longest_gap_while_opening: float
    quickest_get: float
    """The shortest time that a page of the other address took."""
    delay: float
    """The longest that the inputs held up a page of the other address."""
    delay_under_gets: float
    """The longest that :data:`GETS` pages, asked for at once, did."""
    frames_per_second_under_gets: float
    longest_gap_under_gets: float
    stood_still: dict[str, float]
    """The longest standstills, by the kinds of the inputs before them."""

    @property
    def problems(self) -> list[str]:
        """A sentence for each thing that must not be; timings are judged by the command, not by a test."""
        out = [*self.hung, *(f"the log has: {line}" for line in self.crashes[:20])]
        if self.executed:
            out.append("something that was typed was run: the canary file is there")
        if not self.alive:
            out.append("the second page gets no frames any more")
        out += [f"a link was answered with {status}" for status in self.answers if status >= 500]
        return out

    @property
    def slow(self) -> list[str]:
        """A sentence for each time that is too long."""
        out = []
        if self.frames_per_second < SLOWEST:
            out.append(
                f"the second page got {self.frames_per_second:.1f} frames/s over {WINDOW:.0f} s; asked are {SLOWEST:.0f}"
            )
        if self.longest_gap > STANDSTILL:
            out.append(f"the second page stood still for {self.longest_gap:.2f} s; allowed are {STANDSTILL}")
        if self.longest_gap_under_gets > STANDSTILL or self.frames_per_second_under_gets < FEWEST_FRAMES:
            out.append(
                f"while {GETS} pages were asked for, the second page got {self.frames_per_second_under_gets:.1f} frames/s, "
                f"with a gap of {self.longest_gap_under_gets:.2f} s; asked are {FEWEST_FRAMES:.0f}, and {STANDSTILL}"
            )
        if (delay := max(self.delay, self.delay_under_gets)) > MOST_DELAY:
            out.append(f"a page of another address came {delay:.1f} s late; allowed are {MOST_DELAY:.0f}")
        return out


async def attack(
    server: Server, n: int, seed: int, folder: Path, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Send ``n`` hostile inputs to a running server, whose lessons are in ``folder``."""
    rng = random.Random(seed)
    began = time.perf_counter()
    watch = Watch(f"http://127.0.0.1:{server.port}/app?views=state,marginal,ks")
    kinds = [kind for kind, share in EVERY_KIND.items() for _ in range(n * share // 100)]
    links, others = [k for k in kinds if k == "link"], [k for k in kinds if k != "link"]
    rng.shuffle(others)
    lab = Attacker(server.url + LAB, rng, watch)
    studies = {kind: Attacker(f"{server.url}?target={kind}", rng, watch) for kind in FILES}
    sent: Counter[str] = Counter()
    hung: list[str] = []
    for number, kind in enumerate(others):
        watch.doing.append((time.perf_counter(), kind))
        try:
            await _shoot(kind, lab, studies, folder, number)
            await asyncio.wait_for(_taken(lab, *studies.values()), TAKEN)
        except WebSocketClosedError:
            continue
        except TimeoutError:
            hung.append(f"after {number} inputs, the last one a {kind}, the server took no message for {TAKEN:.0f} s")
            break
        sent[kind] += 1
        await asyncio.sleep(0.01)
        if number % 500 == 0:
            say(f"{number} of {len(others)}")
    answers: Counter[int] = Counter()
    for _ in links:
        with watch.opening():
            answers[await _status(server.url + _link(rng))] += 1
        sent["link"] += 1
    with watch.opening():
        await _many_gets(server.url, watch)
    ended, gave_up = watch.openings[-1]
    await asyncio.sleep(3)
    for page in (lab, *studies.values()):
        page.close()
    end = time.perf_counter()
    watch.stop()
    alive = bool(watch.times) and watch.times[-1] > end - 3
    gaps = [b - a for a, b in pairwise(watch.times)]
    frames, gap = watch.frames(ended, gave_up)
    return Report(
        sent=sent,
        opened=lab.opened + sum(page.opened for page in studies.values()),
        answers=answers,
        hung=hung,
        crashes=server.crashes(),
        executed=any(CANARY in path.name for place in (folder, Path.cwd()) for path in place.iterdir()),
        alive=alive,
        seconds=time.perf_counter() - began,
        frames_per_second=watch.slowest(),
        longest_gap=max((gap for _, gap in watch.quiet_gaps()), default=0.0),
        longest_gap_while_opening=max(gaps, default=0.0),
        quickest_get=min(had - asked for asked, had in watch.gets),
        delay=watch.delay(began, ended),
        delay_under_gets=watch.delay(ended, gave_up),
        frames_per_second_under_gets=frames,
        longest_gap_under_gets=gap,
        stood_still=watch.stood_still(),
    )


async def _taken(*attackers: Attacker) -> None:
    """Wait until what was sent has gone: a client that never waits only fills its own connection."""
    for attacker in attackers:
        if attacker.page is not None and attacker.page.written is not None:
            await asyncio.shield(attacker.page.written)


async def _shoot(kind: str, lab: Attacker, studies: dict[str, Attacker], folder: Path, number: int) -> None:
    rng = lab.rng
    if kind == "formula":
        await lab.ready()
        lab.formula()
    elif kind == "sent":
        # The first page has a component of each kind that the others have, and more.
        await lab.ready()
        lab.sent(number)
    elif kind == "message":
        attacker = rng.choice((lab, *studies.values()))
        await attacker.ready()
        attacker.message()
    elif kind == "upload":
        model = rng.choice(list(studies))
        await studies[model].ready()
        studies[model].upload(model)
    else:
        (folder / f"hostile-{number % 20}.md").write_bytes(mutated_bytes(rng, LESSON.encode()))
        await lab.ready()
        lab.click("Lessons")


def _component(model: dict[str, Any]) -> str:
    """The class of a component, by its model as the page gets it; empty for another model."""
    data = model["attributes"].get("data")
    name = data.get("name", "") if isinstance(data, dict) else ""
    return str(name).rpartition(".")[2].rstrip("0123456789")


def _link(rng: random.Random) -> str:
    text = mutated(rng, rng.choice(LINKS))
    if rng.random() < 0.2:
        text += "".join(
            f"&{rng.choice(('f', 'hide', 'lane', 'target', 'method'))}{i}=x" for i in range(rng.choice((5, 100, 3000)))
        )
    return "?" + quote(text.lstrip("?"), safe="=&(),:;~%+", errors="replace")[:60_000]


async def _status(url: str, source: str | None = None) -> int:
    request = HTTPRequest(url, network_interface=source, request_timeout=120)
    response = await AsyncHTTPClient().fetch(request, raise_error=False)
    return response.code


async def _many_gets(url: str, watch: Watch) -> None:
    """Ask for so many pages at once, and leave when the student has asked for two meanwhile, and has had them."""
    client, began = AsyncHTTPClient(force_instance=True, max_clients=GETS), time.perf_counter()
    asked = [asyncio.ensure_future(client.fetch(url, request_timeout=GETS_SECONDS)) for _ in range(GETS)]
    while sum(at > began for at, _ in watch.gets) < 2 and not all(one.done() for one in asked):
        await asyncio.sleep(0.1)
        watch.hear()
    for one in asked:
        one.cancel()
    # An error is that of a page which did not come in time.
    await asyncio.gather(*asked, return_exceptions=True)
    client.close()


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="how many hostile inputs (default 10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (default 1)")
    options = parser.parse_args(arguments)
    # A first start on a machine compiles for a minute; that is not what is measured.
    importlib.import_module("sgmcmc_lab.samplers.models")
    jit.prepare(jit.declared())
    with tempfile.TemporaryDirectory() as where:
        lessons = Path(where) / "lessons"
        lessons.mkdir()
        with serve(Path(where), environment={"SGMCMC_LESSONS": str(lessons)}) as server:
            say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
            report = asyncio.run(attack(server, options.n, options.seed, lessons, say))
            log = server.log
    for name, value in vars(report).items():
        print(f"{name:28}{dict(value) if isinstance(value, Counter) else value}")
    if report.crashes:
        print(log[max(0, log.index(report.crashes[0]) - 500) :][:20_000], file=sys.stderr)
    for sentence in (*report.problems, *report.slow):
        print(f"PROBLEM: {sentence}")
    return 1 if report.problems or report.slow else 0


if __name__ == "__main__":
    sys.exit(main())
