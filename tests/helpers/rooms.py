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


async def rest():
    """Until all that was asked for is done, and was seen by everybody."""
    for _ in range(60):
        await asyncio.sleep(0.001)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.002)
