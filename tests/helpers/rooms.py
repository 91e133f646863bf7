"""The common part of tests of rooms without a browser."""

import asyncio

from sgmcmc_lab.app.room.store import Memory


class Store(Memory):
    """One that can be away."""

    away = False

    def __getattribute__(self, name):
        if name in ("make", "read", "write", "add", "has", "drop") and Store.away:
            raise OSError("nobody listens")
        return super().__getattribute__(name)


def count_threads():
    """Let :func:`rest` see what the running loop has given to threads."""
    loop = asyncio.get_running_loop()
    loop.in_threads, of_loop = set(), loop.run_in_executor

    def counted(*arguments):
        future = of_loop(*arguments)
        loop.in_threads.add(future)
        future.add_done_callback(loop.in_threads.discard)
        return future

    loop.run_in_executor = counted


async def rest():
    """Until all that was asked for is done, and was seen by everybody.

    Sixty turns of the loop, longer than any wait of a room here, with nothing in a thread: a thread has no time that
    a test could know.
    """
    loop, quiet = asyncio.get_running_loop(), 0
    while quiet < 60:
        await asyncio.sleep(0.001)
        quiet = 0 if loop.in_threads else quiet + 1


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)
