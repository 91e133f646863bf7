"""Nothing waits on the server's event loop, and nothing computes on it for long: a spy times each of its handles."""

import asyncio
import gc
import sys
import threading
import time
from concurrent.futures import Future
from functools import partial

import numba
import numpy as np
import pytest

from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.samplers.models import MODELS
from sgmcmc_lab.samplers.targets import TARGETS
from tests.browser import PATIENCE, serve
from tests.helpers import loop_spy
from tests.helpers.cases import for_each
from tests.helpers.loop_spy import LIMIT, Handle, SpiedLoop, faults, read

MARGIN = 2.0
"""Processor time for the same work differs by up to so much, where another program has the other half of the core."""
PARTS = 4
"""Servers that share the targets: on a busy machine one would take longer than a test may."""
LONGER = {
    # The first page of a server, which imports what pages need; a later one takes .4 s.
    "RequestHandler._execute": 3.5,
    # A page's document is sent, which Bokeh writes in one piece, in .3 s.
    "GuardedSocket.on_message": 0.8,
    # A part of a page: the largest, a model's lane, takes .2 s.
    "ServerSession.with_document_locked": 0.5,
}
"""The limits of handles of libraries that take longer, once for each page. None of them may wait."""
CAPTIONS = 1.3
"""Captions come after a second of frames."""


def limit(handle):
    return LONGER.get(handle.what, LIMIT * MARGIN)


async def visit(url, query, frames=4):
    """Open a page and stay until it has moved and has captions. A page that nothing moves on is left, too."""
    page = LightPage()
    await page.open(url + query)
    taking = asyncio.create_task(page.take())
    try:
        async with asyncio.timeout(5 * PATIENCE):
            while page.frames < frames:
                await asyncio.sleep(0.02)
        await asyncio.sleep(CAPTIONS)
    finally:
        taking.cancel()
        page.close()


async def visits(url, queries, open_at):
    """Pages one after the other; ``open_at`` gets the times of each."""
    for query in queries:
        began = time.time()
        await visit(url, query)
        open_at.append((query, began, time.time()))


def spied(folder, cache):
    """A server on a spied loop, and the file of its long handles."""
    path = folder / "handles.txt"
    command = [sys.executable, "-m", "tests.helpers.loop_spy", str(path)]
    return serve(folder, command=command, environment={"SGMCMC_LAB_CACHE": str(cache)}), path


def told(handles, open_at):
    """A line for each handle, with the pages that were open."""
    return "\n".join(
        f"{one.cpu:.2f} s of processor, {one.waited:.2f} s waited: {one.what}, {one.where}, "
        + " and ".join(query for query, began, ended in open_at if began < one.began < ended)
        for one in sorted(handles, key=lambda one: -max(one.cpu, one.waited))
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_target_holds_up_another_page(part, tmp_path, compile_cache):
    """Fails where a handle waits for another thread for .1 s, or computes for so long, while two pages with different
    targets are open; each target is opened twice, unknown and known.

    The compiled functions are there: a first start has them from processes of its own. Exact answers are not, for the
    server is a new one. How long a handle takes by the clock decides nothing, for a busy machine stops it anywhere.
    Planted faults are those of the next test.
    """
    serving, path = spied(tmp_path, compile_cache)
    open_at = []
    with serving as server:
        until = time.monotonic() + 10 * PATIENCE
        while not any(one.what == loop_spy.WARM for one in read(path)):
            assert time.monotonic() < until, server.log
            time.sleep(0.5)
        warm = time.time()
        pages = [f"?target={key}" for key in [*TARGETS, *MODELS][part::PARTS] for _ in ("unknown", "known")]
        half = len(pages) // 4 * 2

        async def both():
            await asyncio.gather(visits(server.url, pages[:half], open_at), visits(server.url, pages[half:], open_at))

        asyncio.run(both())
        assert not server.crashes()
    handles = [one for one in read(path) if one.began > warm]
    assert len(open_at) == len(pages)
    assert {one.what for one in handles} >= {"RequestHandler._execute", loop_spy.CONTROL}, "the spy sees the loop"
    found = faults(handles, limit)
    assert not found, told(found, open_at)


@pytest.mark.slow
def test_a_first_start_compiles_nothing_on_the_loop(tmp_path):
    """Fails where the loop compiles or loads a function, or waits for a thread that does, on an empty cache."""
    serving, path = spied(tmp_path, tmp_path / "cache")
    open_at = []
    with serving as server:

        async def both():
            await asyncio.gather(visits(server.url, [""], open_at), visits(server.url, ["?target=ring"], open_at))

        asyncio.run(both())
    handles = read(path)
    assert any(one.what == "RequestHandler._execute" for one in handles)
    found = [one for one in handles if one.waited > LIMIT or compiles(one)]
    assert not found, told(found, open_at)


def compiles(handle):
    """Whether it compiled a function, or loaded one."""
    return handle.saw("numba/core/compiler") or handle.saw("compile/cache.py")


def spy_on(path, work):
    """The handles that are noted while the loop runs this coroutine function."""
    with asyncio.Runner(loop_factory=partial(SpiedLoop, path)) as runner:
        runner.run(work())
    return read(path)


def until_seen(done):
    """In a thread: wait until the spy has seen the handle that waits twenty times over .1 s, and end it."""
    loop = asyncio.get_running_loop()

    def wait():
        while len(loop.stacks) < 3 * LIMIT / loop_spy.LOOK:
            time.sleep(loop_spy.LOOK)
        done()

    return threading.Thread(target=wait)


async def wait_for_a_lock():
    lock = threading.Lock()
    lock.acquire()
    thread = until_seen(lock.release)
    thread.start()
    with lock:
        thread.join()


async def wait_for_an_answer():
    answer = Future()
    until_seen(lambda: answer.set_result(None)).start()
    answer.result()


async def wait_for_a_thread():
    thread = until_seen(lambda: None)
    thread.start()
    thread.join()


async def compute():
    began = time.thread_time()
    once = loop_spy.control()
    while time.thread_time() - began < 3 * LIMIT * max(once / loop_spy.STANDARD, 1):
        pass


async def compile_a_function():
    numba.njit(lambda x: np.sort(x)[0])(np.ones(3))


async def leave_it_to_a_thread():
    gc.collect()
    await asyncio.get_running_loop().run_in_executor(None, lambda: [loop_spy.control() for _ in range(20)])
    await asyncio.sleep(3 * LIMIT)


@for_each("work", [wait_for_a_lock, wait_for_an_answer, wait_for_a_thread, compute], ids=lambda work: work.__name__)
def test_the_spy_sees_a_loop_that_waits_or_computes(work, tmp_path):
    """Each of these is a planted fault; the next test has none."""
    found = faults(spy_on(tmp_path / f"{work.__name__}.txt", work), limit)
    assert [one.what.rpartition(".")[2] for one in found] == [work.__name__]
    assert (found[0].waited > LIMIT) == (work is not compute)
    assert found[0].saw(work.__name__)


def test_the_spy_sees_no_fault_in_a_loop_that_serves(tmp_path):
    """Fails where what a thread computes, or a coroutine awaits, is taken for work of the loop."""
    assert faults(spy_on(tmp_path / "handles.txt", leave_it_to_a_thread), limit) == []


def test_the_spy_sees_a_loop_that_compiles(tmp_path):
    """The planted fault of a first start."""
    found = [one for one in spy_on(tmp_path / "handles.txt", compile_a_function) if compiles(one)]
    assert [one.what for one in found] == ["compile_a_function"]


def test_a_slow_machine_is_no_fault():
    """Fails where the limit does not follow the control, or where a wait does: it is as long on any machine."""
    control = Handle(0.0, 0.0, 3 * loop_spy.STANDARD, 0.0, loop_spy.CONTROL, [])
    at = f"{__file__}:{test_a_slow_machine_is_no_fault.__code__.co_firstlineno}:0 wait"
    slow = Handle(0.0, 0.5, 0.2, 0.0, "slow", [[at]] * 20)
    assert faults([slow]) == [slow]
    assert faults([control, slow]) == []
