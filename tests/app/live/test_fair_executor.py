"""Pages share the engine's threads by what each has had of the processor, whatever one piece of work takes."""

import asyncio
import threading
import time
from collections import Counter

import pytest

from sgmcmc_lab.app.live import fair_executor
from sgmcmc_lab.app.live.fair_executor import LONG_SECONDS, MOST_LONG, Pool, ProcessorShare, Queue

DEAR, CHEAP = 0.09, 0.01
"""Seconds that a step of the heavy page and one of a light page take."""


class InTurn(Queue):
    """The planted fault: first come, first served."""

    def end(self, work, cost):
        super().end(work, 0.0)


def served(queue, costs, seconds):
    """The time that each page has had of one place, on a clock that advances by the cost of work. All want more at
    once.
    """
    shares = [ProcessorShare() for _ in costs]
    had, now = Counter(), 0.0
    for share in shares:
        queue.put(share, lambda: None)
    while now < seconds:
        work = queue.take(now)
        page = shares.index(work.share)
        now += costs[page]
        had[page] += costs[page]
        queue.end(work, costs[page])
        queue.put(work.share, lambda: None)
    return had


@pytest.mark.parametrize("kind", [Queue, InTurn])
def test_pages_have_the_same_time_of_the_processor(kind):
    """To one piece of the dearest work. Fails where a page whose steps are dearer has more. Fault: a turn each."""
    had = served(kind(1), [DEAR, CHEAP, CHEAP], 3.0)
    spread = max(had.values()) - min(had.values())
    assert spread <= DEAR if kind is Queue else spread > 1.0


class Saving(Queue):
    """The planted fault: who was idle is given the time that the others had meanwhile."""

    def put(self, share, call):
        share.asked += 1
        return super().put(share, call)


@pytest.mark.parametrize("kind", [Queue, Saving])
def test_nobody_saves_up(kind):
    """Fails where a page that was paused for a minute keeps the others from the processor for as long."""
    queue = kind(1)
    late, other = ProcessorShare(), ProcessorShare()
    for _ in range(100):
        queue.put(other, lambda: None)
        queue.end(queue.take(0.0), DEAR)
    queue.put(late, lambda: None)
    queue.put(other, lambda: None)
    order = []
    for _ in range(10):
        work = queue.take(0.0)
        order.append(work.share)
        queue.end(work, DEAR)
        queue.put(work.share, lambda: None)
    assert (order.count(late) <= 6) == (kind is Queue)


@pytest.mark.parametrize("patience", [LONG_SECONDS, 1e9])
def test_a_step_of_minutes_holds_up_nobody(patience, monkeypatch):
    """Fails where two pages with such steps have both places until these have ended. Fault: work is never long."""
    monkeypatch.setattr(fair_executor, "LONG_SECONDS", patience)
    queue = Queue(2)
    for _ in range(2):
        queue.put(ProcessorShare(), lambda: None)
    assert queue.take(0.0) and queue.take(0.0)
    queue.put(ProcessorShare(), lambda: None)
    assert queue.take(0.0) is None and queue.due(0.0) == patience
    assert (queue.take(LONG_SECONDS) is not None) == (patience == LONG_SECONDS)


def test_no_more_than_so_many_run_at_a_time():
    """Fails where whoever opens a page with a step of minutes again and again has a thread for each."""
    queue, now = Queue(2), 0.0
    for _ in range(3 * MOST_LONG):
        queue.put(ProcessorShare(), lambda: None)
        queue.take(now)
        now += 2 * LONG_SECONDS
    assert len(queue.running) == MOST_LONG + 2 and queue.due(now) is None
    queue.end(queue.running[0], 1.0)
    assert queue.take(now) is not None


def test_threads_do_what_the_queue_says():
    """Fails where work is lost, its errors are, or it waits behind long work though nothing else holds it up."""
    pool = Pool(1, "test")
    free = threading.Event()

    async def all_work():
        loop = asyncio.get_running_loop()
        long = loop.run_in_executor(pool.of(ProcessorShare()), free.wait)
        shares = [pool.of(ProcessorShare()) for _ in range(5)]
        done = await asyncio.gather(
            *(loop.run_in_executor(one, divmod, 7, i) for i, one in enumerate(shares)), return_exceptions=True
        )
        assert isinstance(done[0], ZeroDivisionError) and done[1:] == [divmod(7, i) for i in range(1, 5)]
        assert not long.done()
        # A server that is asked to end does not wait for a step of minutes.
        assert (await loop.run_in_executor(shares[0], threading.current_thread)).daemon
        free.set()
        assert await long

    asyncio.run(asyncio.wait_for(all_work(), 60))


@pytest.mark.parametrize("kind", [Queue, Saving])
def test_nobody_saves_up_who_has_worked_before(kind):
    """Fails where a page that made a few steps, was paused for a minute and goes on keeps the others waiting: its
    pieces of work that have ended are no work of its any more."""
    queue = kind(1)
    paused, other = ProcessorShare(), ProcessorShare()
    for share in (paused, paused):
        queue.put(share, lambda: None)
        queue.end(queue.take(0.0), CHEAP)
    for _ in range(100):
        queue.put(other, lambda: None)
        queue.end(queue.take(0.0), DEAR)
    queue.put(paused, lambda: None)
    queue.put(other, lambda: None)
    order = []
    for _ in range(10):
        work = queue.take(0.0)
        order.append(work.share)
        queue.end(work, DEAR)
        queue.put(work.share, lambda: None)
    assert (order.count(paused) <= 6) == (kind is Queue)


def test_what_is_long_frees_its_place_once():
    """Work that has become long is waited for no more: whoever asks then waits for an end, not for a moment."""
    queue = Queue(1)
    queue.put(ProcessorShare(), lambda: None)
    queue.take(0.0)
    queue.put(ProcessorShare(), lambda: None)
    assert queue.due(0.4 * LONG_SECONDS) == pytest.approx(0.6 * LONG_SECONDS)
    assert queue.due(1.5 * LONG_SECONDS) is None


def test_a_page_is_charged_the_processors_time():
    """Not the clock's, and not another thread's: of a work that computes and one that waits as long."""
    pool, worked, waited = Pool(1, "test"), ProcessorShare(), ProcessorShare()

    def compute():
        began = time.thread_time()
        while time.thread_time() - began < 0.05:
            pass

    pool.submit(worked, compute).result(60)
    pool.submit(waited, lambda: time.sleep(0.05)).result(60)
    pool.submit(ProcessorShare(), lambda: None).result(60)
    # The queue's clock begins where the others are: what the second page has had beside it is its own work's.
    assert 0.05 <= worked.had < 0.5
    assert waited.had - worked.had < 0.04


def test_work_that_was_put_together_does_not_wait_for_the_first():
    """Two pieces before any thread looks: the one that takes the long one leaves another to look after the rest."""
    pool, free = Pool(1, "test"), threading.Event()
    with pool._changed:
        long, short = pool.submit(ProcessorShare(), free.wait), pool.submit(ProcessorShare(), lambda: 1)
    assert short.result(30) == 1 and not long.done()
    free.set()


def test_threads_do_not_become_more():
    """As many as have work at a time and one more, however much work there was."""
    pool = Pool(2, "counted")
    for _ in range(60):
        pool.submit(ProcessorShare(), lambda: None).result(60)
    assert sum(thread.name == "counted" for thread in threading.enumerate()) <= 4
