"""Pages share the engine's threads by what each has had of the processor, whatever one piece of work takes."""

import asyncio
import threading
import time
from collections import Counter

import pytest

from sgmcmc_lab.app.live import fair_executor
from sgmcmc_lab.app.live.fair_executor import (
    LONG_SECONDS,
    MOST_LONG,
    MOST_OF_ADDRESS,
    AddressShare,
    FullError,
    Pool,
    ProcessorShare,
    Queue,
)
from tests.helpers.cases import for_each

DEAR, CHEAP = 0.09, 0.01
"""Seconds that a step of the heavy page and one of a light page take."""


class InTurn(Queue):
    """The planted fault: first come, first served."""

    def end(self, work, cost):
        super().end(work, 0.0)


def served(queue, shares, costs, seconds):
    """The time that each page has had of one place, on a clock that advances by the cost of work. All want more at
    once.
    """
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


def of_several(n):
    return [ProcessorShare() for _ in range(n)]


def of_one_address(n):
    address = AddressShare()
    return [ProcessorShare(address) for _ in range(n)]


@for_each("pages", [of_one_address, of_several])
@for_each("kind", [Queue, InTurn])
def test_pages_have_the_same_time_of_the_processor(kind, pages):
    """To one piece of the dearest work. Fails where a page whose steps are dearer has more. Fault: a turn each."""
    had = served(kind(1), pages(3), [DEAR, CHEAP, CHEAP], 3.0)
    spread = max(had.values()) - min(had.values())
    assert spread <= DEAR if kind is Queue else spread > 1.0


class Saving(Queue):
    """The planted fault: who was idle is given the time that the others had meanwhile."""

    def put(self, share, call):
        share.asked += 1
        share.address.asked += 1
        return super().put(share, call)


@for_each("pages", [of_one_address, of_several])
@for_each("kind", [Queue, Saving])
def test_nobody_saves_up(kind, pages):
    """Fails where a page that was paused for a minute keeps the others from the processor for as long."""
    queue = kind(1)
    late, other = pages(2)
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


@for_each("pages", [of_one_address, of_several])
@for_each("kind", [Queue, Saving])
def test_nobody_saves_up_who_has_worked_before(kind, pages):
    """Fails where a page that made a few steps, was paused for a minute and goes on keeps the others waiting: its
    pieces of work that have ended are no work of its any more."""
    queue = kind(1)
    paused, other = pages(2)
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
    assert 0.05 <= worked.had < 0.5
    assert waited.had < 0.04


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


@for_each("pages", [of_one_address, of_several])
def test_addresses_have_the_same_time_of_the_processor(pages):
    """To one piece of work. Fails where an address with thirty pages has thirty times as much as one with one page.

    Fault: each page is an address.
    """
    queue, many, one = Queue(1), pages(30), pages(1)
    had, now = Counter(), 0.0
    for share in (*many, *one):
        queue.put(share, lambda: None)
    while now < 6.0:
        work = queue.take(now)
        now += CHEAP
        had[work.share] += CHEAP
        queue.end(work, CHEAP)
        queue.put(work.share, lambda: None)
    assert (abs(had[one[0]] - sum(had[page] for page in many)) < 2 * CHEAP) == (pages is of_one_address)
    # Of one address each page has as much as another.
    assert max(had[page] for page in many) - min(had[page] for page in many) < 2 * CHEAP


@pytest.mark.parametrize("most", [2, MOST_LONG])
def test_an_address_has_few_pieces_of_work_at_a_time(most):
    """Thirty searches of minutes from one address, then one from another, which begins when a place is free.

    Fails where the thirty run at once: the other one has a thirtieth of the time. Fault: no bound for an address.
    """
    queue, many, one = Queue(2, most_of_address=most), of_one_address(30), of_one_address(1)
    for share in many:
        queue.put(share, lambda: None)
    begun = [queue.take(LONG_SECONDS * k) for k in range(40)]
    now = 40 * LONG_SECONDS
    assert sum(work is not None for work in begun) == min(most, 30)
    queue.put(*one, lambda: None)
    assert queue.take(now).share is one[0]
    # The next one of the first address comes when one of its own has ended.
    assert most > 2 or queue.take(now + 1.0) is None
    queue.end(begun[0], now)
    assert (queue.take(now + 1.0) is not None) == (most == 2)


def test_what_runs_counts_before_its_end():
    """Fails where an address begins ten long steps before another one's first, for none of them has ended."""
    queue, many, one = Queue(1), of_one_address(30), of_one_address(1)
    for share in (*many, *one):
        queue.put(share, lambda: None)
    order = [queue.take(now).share for now in (0.0, LONG_SECONDS, 2 * LONG_SECONDS)]
    assert order[1] is one[0] and order[2] in many


def test_other_addresses_have_places_beside_one():
    """Fails where one address has all the places for long work, and a second one waits for minutes."""
    assert 2 * MOST_OF_ADDRESS < MOST_LONG


def test_so_much_waits_for_an_address_and_no_more():
    """Another address comes in all the same, and what was cancelled counts no more. Fault: no bound."""
    queue, some, one = Queue(1, most_waiting=2), of_one_address(5), of_one_address(1)
    works = [queue.put(share, lambda: None) for share in some[:2]]
    with pytest.raises(FullError):
        queue.put(some[2], lambda: None)
    queue.put(*one, lambda: None)
    works[1].done.cancel()
    queue.put(some[2], lambda: None)
    assert works[1] not in queue.waiting and some[1].asked == 0
    # Running work does not wait.
    assert queue.take(0.0) is works[0]
    queue.put(some[3], lambda: None)


def test_pages_of_an_address_have_one_share_for_as_long_as_one_is_open():
    """Fails where each page is an address, or those that have left are kept for ever."""
    pool = Pool(1, "test")
    first, second, other = (pool.share(address) for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2"))
    assert first.address is second.address is not other.address
    del first, second
    assert list(pool._addresses) == ["127.0.0.2"]
