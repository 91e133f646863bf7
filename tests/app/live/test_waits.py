"""Each lock that is taken and each wait for a thread, a process or a name server, with the reason why it is short or
off the event loop.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WAITS = {"acquire", "check_output", "communicate", "getaddrinfo", "recv", "result", "run_until_complete", "sleep", "urlopen", "wait"}  # fmt: skip
"""Names of functions that wait, unless they are awaited. ``join`` without an argument is a thread's, not a text's."""

ENDED = "the future has ended: asyncio.wait, or the loop around it, saw that"
THREAD = "no coroutine calls it: "
# fmt: off
LISTED = {
    "app/lesson/course.py library: with _LOCK": THREAD + "the warm-up and the one reader of all lessons do, and both need all of them",
    "app/lesson/headless_claims.py Proof.make: self._begun.acquire": "does not wait: whoever comes second leaves",
    "app/live/fair_executor.py Pool.submit: with self._changed": "held for a look at a list, and at most for the start of a thread",
    "app/live/fair_executor.py Pool._work: with self._changed": "held for a look at a list; the work is done without it",
    "app/live/fair_executor.py Pool._work: self._changed.wait": THREAD + "a thread of the pool waits there for work",
    "app/live/page_lock.py on_this_thread.there: answer.result": THREAD + "on the loop's own thread the work is done at once",
    "app/live/runner.py Search.of.tell: go_on.wait": THREAD + "a finder waits there, without a lock, for the loop",
    "app/live/runner.py Runner._patiently: job.result": ENDED,
    "app/live/runner.py Runner._end_search: search.job.result": ENDED,
    "app/live/runner.py Runner._move: job.result": ENDED,
    "app/live/runner.py Runner._texts: self._engine.acquire": "a coroutine, which the loop runs for at most .1 s",
    "app/live/runner.py Runner._texts: asyncio.run_coroutine_threadsafe(still, loop).result": THREAD + "the thread of captions waits there for the loop, which never waits for it",
    "app/live_page/site.py write_site: made.result": THREAD + "a command waits there for its processes",
    "app/live_page/site.py write_site: step.result": THREAD + "a command waits there for its processes",
    "app/room/network.py _by_name.ask: socket.getaddrinfo": THREAD + "it has a thread of its own",
    "app/room/network.py addresses: _by_name().result": "on the loop the patience is 0; a terminal waits 5 s",
    "app/room/student.py Audience._make: making.result": ENDED,
    "app/server/connections.py Connections.begin: self.wait": "begins to count seconds, and returns",
    "app/server/connections.py Bounded.start_request: OPEN.wait": "begins to count seconds, and returns",
    "app/server/serving.py serving: urlopen": THREAD + "a command that opens a browser does",
    "app/server/serving.py serving: time.sleep": THREAD + "a command that opens a browser does",
    "app/server/serving.py serving: process.communicate": THREAD + "a command that opens a browser does",
    "app/server/socket.py GuardedSocket.send_framed: with await self.write_lock.acquire()": "a lock of the loop, which serves others meanwhile",
    "app/server/warmup.py begin.wait: early.join": THREAD + "a thread of the warm-up does",
    "app/server/warmup.py compile_all: time.sleep": THREAD + "the warm-up is a thread",
    "app/server/warmup.py compile_all: apart.join": THREAD + "the warm-up is a thread",
    "app/server/warmup.py compile_apart: with _alone(jit.FOLDER / LOCK)": "the lock of a file is tried, and never waited for",
    "app/server/warmup.py compile_apart: time.sleep": THREAD + "a thread of the warm-up does",
    "app/server/warmup.py _run: process.wait": THREAD + "a thread of the warm-up does",
    "lessons/headless.py _at_once: future.result": THREAD + "a command and the worker that proves claims do",
    "lessons/sweep.py _as_they_come: future.result": THREAD + "a command and the worker that proves claims do",
    "samplers/compile/cache.py CompiledFile.load: with global_compiler_lock": "see jit.prepare, its only caller",
    "samplers/compile/jit.py prepare: with _COMPILING": "the loop comes here only with functions that are ready, for which no lock is asked; a thread waits, as Numba compiles one function at a time in a process",
    "samplers/compile/jit.py _wait_for_others: time.sleep": "see jit.prepare, its only caller",
    "samplers/compile/wasm/cross.py main: with global_compiler_lock": THREAD + "the thread that makes a file does",
    "samplers/compile/wasm/link.py linked: subprocess.run": THREAD + "the thread that makes a file does",
    "samplers/compile/wasm/__main__.py _binaryen: subprocess.run": THREAD + "a command does",
    "samplers/compile/wasm/__main__.py _smaller: subprocess.run": THREAD + "a command does",
    "samplers/expressions/compiler.py _Queue.ask: with self._lock": "held for a look at a list, and at most for the start of a thread",
    "samplers/expressions/compiler.py _Queue._work: with self._lock": "held for a look at a list; code is compiled without it",
    "samplers/expressions/compiler.py wait: thread.join": THREAD + "commands and tests do",
    "samplers/interrupts.py _end_with: parent.join": THREAD + "it has a thread of its own, in a process of its own",
    "samplers/targets/long_run.py LongRun.prepare: with _CLAIMING": "held for a look at two attributes; the run is made without it",
    "samplers/targets/long_run.py LongRun.prepare: ends.wait": "a target that is ready returns before; others are prepared in a thread",
}
# fmt: on
"""The reason why each wait holds up no page, by file, function and text."""


def waits(source):
    """The waits in a module: function and text of each."""
    found = set()

    def visit(node, where, awaited):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = [*where, node.name]
        elif isinstance(node, ast.Await):
            awaited = True
        elif isinstance(node, ast.Lambda):
            awaited = False
        elif isinstance(node, ast.With):
            for one in (item.context_expr for item in node.items):
                # A name, or an awaited call, is a lock.
                if not isinstance(one, ast.Call) or re.search(r"(?<!b)lock\b", ast.unparse(one).lower()):
                    found.add(f"{'.'.join(where)}: with {ast.unparse(one)}")
        elif isinstance(node, ast.Call) and not awaited:
            text = ast.unparse(node.func)
            name = text.rpartition(".")[2]
            if (name in WAITS and text != "result") or text == "subprocess.run" or (name == "join" and not node.args):
                found.add(f"{'.'.join(where)}: {text}")
        for child in ast.iter_child_nodes(node):
            visit(child, where, awaited)

    visit(ast.parse(source), [], False)
    return found


def test_each_lock_and_each_wait_is_listed_with_its_reason():
    """Fails where a lock or a wait is added, or taken away, and the list stays as it is."""
    found = {
        f"{path.relative_to(ROOT).as_posix()} {one}"
        for room in ("app", "lessons", "samplers")
        for path in (ROOT / room).rglob("*.py")
        for one in waits(path.read_text(encoding="utf-8"))
    }
    assert found == LISTED.keys()
    assert all(LISTED.values())


def test_waits_of_each_kind_are_found():
    """Fails where the search does not see one of the kinds. A text's join and an awaited wait are none."""
    source = """
class Page:
    def look(self):
        with self._lock, open("a"), held_lock("b"):
            return ", ".join(self.thread.join() for _ in range(3))

    async def wait(self):
        await self.event.wait()
        await asyncio.sleep(1)
        return self.job.result(), result(1), lock.acquire(), (lambda: time.sleep(1))
"""
    assert waits(source) == {
        "Page.look: with self._lock",
        "Page.look: with held_lock('b')",
        "Page.look: self.thread.join",
        "Page.wait: self.job.result",
        "Page.wait: lock.acquire",
        "Page.wait: time.sleep",
    }
