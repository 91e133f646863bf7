"""Students of a room: raw connections that imitate the room's page, and a teacher in a real Chromium.

They request the room's page, join the room, and request the file of the teacher's experiment. They run and draw
nothing, because each student's experiment runs in her own browser. The teacher then moves a slider, asks a question
that all answer at once, and reveals the answers. Pages of the whole lab, opened within the same time, are the control.
Needs the extras ``bench`` and ``class``.
"""

import asyncio
import json
import math
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.app.server.serving import ARGUMENTS, Served, browser_path, needs, served, warm
from sgmcmc_lab.samplers.parameters import SpecError
from tests.benchmarks.classroom import Class, Opening, line, p95
from tests.benchmarks.page import COUNT_DRAWN, DRAWN, count_coming

MOST = 1500
"""Students at most, as many as a room takes."""
OVER = 10.0
"""Seconds over which they come."""
PATIENCE = 60.0
"""A student without the teacher's experiment after this many seconds has failed."""
CONTROL = 30
"""Pages of the whole lab."""
MOVES = 5
"""Times that the teacher moves a slider."""
BETWEEN = 4.0
"""Seconds between two actions of the teacher."""
NAME = "class.test"
"""The host of the teacher's page; to share a code, it must have a name that others can use."""


@dataclass(frozen=True)
class Reach:
    """Seconds until the students see an action of the teacher, or the confirmation of their own answers."""

    p95: float
    missing: int
    """Students that it did not reach."""

    @classmethod
    def of(cls, seconds: Sequence[float], students: int) -> "Reach":
        """From the times of the students that were reached."""
        return cls(p95(seconds) / 1000, students - len(seconds))


@dataclass(frozen=True)
class StudentsReport:
    """The measurements."""

    students: int
    failed: int
    """Students that the teacher's experiment did not reach."""
    came_seconds: float
    """From the first request until all were there; the requests are spread over :data:`OVER` seconds."""
    file_median: float
    file_p95: float
    """From a student's request to the file of the teacher's experiment."""
    kilobytes_each: float
    """Memory of the server."""
    server_ms_each: float
    follow: list[Reach]
    """From the teacher's key on a slider to the message, by move."""
    question: Reach
    """From the teacher's click to the question."""
    vote: Reach
    """From a student's answer to its confirmation; all answer at once."""
    revealed: Reach
    """From the teacher's click to the counted answers."""
    teacher_alone: float
    """Frames per second that the teacher's page draws before the students come."""
    teacher: float
    """The same from their first request to the last action."""
    errors: int
    control: Opening
    """Pages of the whole lab, opened over the same time."""
    control_megabytes_each: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def as_text(report: StudentsReport) -> str:
    """The report as lines to read."""
    follow = ", ".join(f"{one.p95:.2f}" for one in report.follow)
    missing = sum(one.missing for one in (*report.follow, report.question, report.vote, report.revealed))
    whole = report.control
    rows = [
        ("students", f"{report.students:d}", ""),
        ("without the experiment", f"{report.failed:d}", "0"),
        ("all there after", f"{report.came_seconds:.1f} s", f"{OVER:g} s"),
        ("request to file, median", f"{report.file_median:.2f} s", ""),
        ("request to file, p95", f"{report.file_p95:.2f} s", "under 1 s"),
        ("server memory each", f"{report.kilobytes_each:.0f} kB", "at most 100"),
        ("server time each", f"{report.server_ms_each:.1f} ms", ""),
        ("slider to message, p95", f"{follow} s", "under .5"),
        ("click to question, p95", f"{report.question.p95:.2f} s", "under .5"),
        ("answer to confirmation", f"{report.vote.p95:.2f} s", "p95 under .5"),
        ("click to answers, p95", f"{report.revealed.p95:.2f} s", "under .5"),
        ("messages missing", f"{missing:d}", "0"),
        ("teacher's frames alone", f"{report.teacher_alone:.1f} /s", ""),
        ("teacher's frames", f"{report.teacher:.1f} /s", "at least 20"),
        ("errors", f"{report.errors:d}", "0"),
        (f"{whole.pages} pages of the lab", f"{whole.failed:d} failed", ""),
        ("first frame, median", f"{whole.median_seconds:.2f} s", ""),
        ("first frame, slowest", f"{whole.slowest_seconds:.2f} s", ""),
        ("server memory each", f"{report.control_megabytes_each:.2f} MB", ""),
        ("server time each", f"{1000 * whole.server_seconds_per_page:.0f} ms", ""),
    ]
    return "\n".join(line(*row) for row in rows)


def measure(students: int, say: Callable[[str], None]) -> StudentsReport:
    """Serve the app, and let this many students join one room.

    Raises :class:`SpecError` for a number out of bounds, and where a package or a browser is missing.
    """
    if not 1 <= students <= MOST:
        raise SpecError("--class", students, f"allowed are from 1 to {MOST} students")
    needs("--class", "psutil", "tornado", "playwright", "ziglang")
    path = browser_path("--class")
    from tornado.httpclient import AsyncHTTPClient

    # By default the client makes only ten requests at a time.
    AsyncHTTPClient.configure(None, max_clients=2 * MOST)
    warm(say)
    with served("--class", name=NAME) as server:
        return asyncio.run(Hall(server, say).measured(students, path))


class Hall:
    """One room on one server."""

    def __init__(self, server: Served, say: Callable[[str], None]):
        self._server, self._say = server, say
        self._port = urlsplit(server.url).port

    async def measured(self, students: int, path: str) -> StudentsReport:
        """Measure all, with a teacher in the browser at ``path``."""
        from playwright.async_api import async_playwright

        async with async_playwright() as playwright:
            arguments = [*ARGUMENTS, f"--host-resolver-rules=MAP {NAME} 127.0.0.1"]
            browser = await playwright.chromium.launch(executable_path=path, headless=True, args=arguments)
            page = await browser.new_page(viewport={"width": 1280, "height": 720})
            teacher = Teacher(page, f"http://{NAME}:{self._port}/app")
            code = await teacher.open()
            await asyncio.sleep(BETWEEN)
            alone = await teacher.drawn() / BETWEEN
            self._say(f"{students} students within {OVER:g} s")
            memory, used, drawn = self._server.megabytes(), self._server.cpu(), await teacher.drawn()
            began = time.perf_counter()
            there = [Student(f"127.0.0.1:{self._port}", f"{NAME}:{self._port}", code) for _ in range(students)]
            seconds = await asyncio.gather(*(one.come(OVER * k / students) for k, one in enumerate(there)))
            came, used = time.perf_counter() - began, self._server.cpu() - used
            await asyncio.sleep(BETWEEN)
            memory = self._server.megabytes() - memory
            found = [one for one in seconds if math.isfinite(one)]
            inside = [one for one, at in zip(there, seconds, strict=True) if math.isfinite(at)]
            self._say("the teacher moves a slider, asks and reveals")
            follow = [await self._reached(inside, teacher.move(k), "page") for k in range(MOVES)]
            question = await self._reached(inside, teacher.press("Ask this question"), "bar", '"number"')
            vote = await self._vote(inside)
            revealed = await self._reached(inside, teacher.press("Reveal the answers"), "bar", '"right": true')
            frames = (await teacher.drawn() - drawn) / (time.perf_counter() - began)
            errors = self._server.errors() + teacher.errors
            for one in inside:
                one.close()
            await browser.close()
        self._say(f"the control: {CONTROL} pages of the whole lab within {OVER:g} s")
        before = self._server.megabytes()
        control, _, _ = await Class(LightPage, self._server, "", self._say).comes(CONTROL, OVER, 0.0, "")
        return StudentsReport(
            students=students,
            failed=students - len(found),
            came_seconds=came,
            file_median=statistics.median(found) if found else math.nan,
            file_p95=p95(found) / 1000,
            kilobytes_each=1000 * memory / students,
            server_ms_each=1000 * used / students,
            follow=follow,
            question=question,
            vote=vote,
            revealed=revealed,
            teacher_alone=alone,
            teacher=frames,
            errors=errors,
            control=control,
            control_megabytes_each=(self._server.megabytes() - before) / CONTROL,
        )

    async def _reached(self, students: Sequence["Student"], act: Any, kind: str, part: str = "") -> Reach:
        """Let the teacher act; the time until each student gets a message of this kind with this part."""
        await asyncio.sleep(BETWEEN)
        waiting = [one.expect(kind, part) for one in students]
        began = time.perf_counter()
        await act
        return await self._times(waiting, [began] * len(waiting), len(students))

    async def _vote(self, students: Sequence["Student"]) -> Reach:
        waiting, began = [], []
        for k, one in enumerate(students):
            waiting.append(one.expect("bar", f'"mine": {1 + k % 2}'))
            began.append(time.perf_counter())
            one.send("answer", 1 + k % 2)
        return await self._times(waiting, began, len(students))

    async def _times(self, waiting: Sequence["asyncio.Future[float]"], began: Sequence[float], n: int) -> Reach:
        await asyncio.wait(waiting, timeout=BETWEEN)
        pairs = zip(waiting, began, strict=True)
        return Reach.of([one.result() - at for one, at in pairs if one.done() and not one.cancelled()], n)


class Teacher:
    """The teacher's page in Chromium."""

    LESSON = "?lesson=langevin&step=2"
    """A step with a question."""

    def __init__(self, page: Any, url: str):
        self._page, self._url = page, url
        self.errors = 0
        page.on("pageerror", self._note)

    def _note(self, _: Any) -> None:
        self.errors += 1

    async def open(self) -> str:
        """Open a lesson and a room. Returns the room's code."""
        page = self._page
        await page.add_init_script(count_coming(LightPage))
        await page.goto(f"{self._url}{self.LESSON}", timeout=1000 * PATIENCE)
        await page.locator(".bk-Figure").first.wait_for(timeout=1000 * PATIENCE)
        await self._button("Skip").click()
        await self._button("Share").click()
        await self._button("Open a room").click()
        await page.wait_for_function("location.search.includes('room=')", timeout=1000 * PATIENCE)
        # The dialog takes the focus back a moment after its button is gone; before that it receives no key.
        while await page.locator(".address").is_visible():
            await page.keyboard.press("Escape")
            await asyncio.sleep(0.2)
        code = re.search("room=([^&]+)", await page.evaluate("location.search"))
        assert code is not None
        # Meanwhile the files for both positions of the slider are made.
        for k in range(2):
            await asyncio.sleep(2 * BETWEEN)
            await self.move(k)
        await asyncio.sleep(BETWEEN)
        await page.evaluate(COUNT_DRAWN)
        return code[1]

    def _button(self, name: str) -> Any:
        return self._page.get_by_role("button", name=re.compile(f"^{name}")).first

    async def move(self, k: int) -> None:
        """Press a key on a slider."""
        slider = self._page.get_by_role("slider", name=re.compile("Step size|Steps per frame")).first
        await slider.press("ArrowLeft" if k % 2 else "ArrowRight")

    async def press(self, name: str) -> None:
        """Press a button of the room."""
        await self._button(name).click()

    async def drawn(self) -> int:
        """Frames drawn since the room was opened."""
        return int(await self._page.evaluate(DRAWN))


class Student:
    """A connection that imitates a room's page."""

    def __init__(self, address: str, host: str, code: str):
        self._address, self._host, self._code = address, host, code
        self._waiting: list[tuple[str, str, asyncio.Future[float]]] = []
        self._socket: Any = None
        self._reading: asyncio.Task[None] | None = None

    async def come(self, delay: float) -> float:
        """Join; returns the seconds from the request to the file of the teacher's experiment, nan without one."""
        await asyncio.sleep(delay)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._come()
        except Exception:
            # After any error, this student is missing.
            return math.nan
        return time.perf_counter() - began

    async def _come(self) -> None:
        from tornado.httpclient import HTTPRequest
        from tornado.websocket import websocket_connect

        await self._get(f"/room/{self._code}")
        address = f"ws://{self._address}/room/{self._code}/socket"
        headers = {"Host": self._host, "Origin": f"http://{self._host}"}
        self._socket = await websocket_connect(HTTPRequest(address, headers=headers))
        page = self.expect("page", '"key"')
        self.key = ""
        self._reading = asyncio.create_task(self._read())
        self.send("hello", "", "", "")
        await page
        await self._get(f"/room/files/{self.key}.html")

    async def _get(self, path: str) -> None:
        from tornado.httpclient import AsyncHTTPClient, HTTPRequest

        headers = {"Host": self._host, "Accept-Encoding": "gzip"}
        request = HTTPRequest(
            f"http://{self._address}{path}", headers=headers, request_timeout=PATIENCE, decompress_response=False
        )
        await AsyncHTTPClient().fetch(request)

    async def _read(self) -> None:
        while (text := await self._socket.read_message()) is not None:
            now, message = time.perf_counter(), None
            for one in list(self._waiting):
                kind, part, future = one
                message = message or json.loads(text)
                if message["type"] != kind or part not in json.dumps(message):
                    continue
                if "key" in message:
                    self.key = message["key"]
                self._waiting.remove(one)
                if not future.done():
                    future.set_result(now)

    def expect(self, kind: str, part: str = "") -> "asyncio.Future[float]":
        """The time at which the next message of this kind with this part comes."""
        self._waiting = [one for one in self._waiting if one[0] != kind]
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((kind, part, future))
        return future

    def send(self, *message: Any) -> None:
        """Send an action."""
        self._socket.write_message(json.dumps(message))

    def close(self) -> None:
        """Leave."""
        if self._reading is not None:
            self._reading.cancel()
        self._socket.close()
