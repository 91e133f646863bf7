"""Where short links and rooms are kept: mappings of texts under a key, each for a day, in memory or in Redis."""

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

REDIS = "SGMCMC_REDIS"
"""The environment variable with the address of a Redis server, by which several processes share rooms."""
DAY = 86_400
"""Seconds that a mapping lives."""


class FullError(Exception):
    """There is no room for another one."""


class Store(Protocol):
    """Mappings under keys such as ``room:k7mq2x9d``; what stands before the colon is their kind."""

    async def make(self, key: str, fields: Mapping[str, str], most: int) -> None:
        """A new mapping. Raises :class:`FullError` where there are ``most`` of its kind."""

    async def read(self, key: str) -> dict[str, str]:
        """The mapping; empty where there is none any more."""

    async def write(self, key: str, fields: Mapping[str, str]) -> None:
        """Other values of some fields of a mapping that is there."""

    async def add(self, key: str, field: str, value: str, most: int) -> bool:
        """A field that is not there yet, if there are fewer than ``most``; makes the mapping. Whether it was added."""

    async def drop(self, *keys: str) -> None:
        """Forget mappings."""


class Memory:
    """Of this process: gone with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._kept: dict[str, tuple[float, dict[str, str]]] = {}

    def _alive(self) -> dict[str, tuple[float, dict[str, str]]]:
        # They die in the order in which they were made.
        now = self._clock()
        for key, (dies, _) in list(self._kept.items()):
            if dies > now:
                break
            del self._kept[key]
        return self._kept

    async def make(self, key: str, fields: Mapping[str, str], most: int) -> None:
        kind = key.partition(":")[0] + ":"
        if sum(one.startswith(kind) for one in self._alive()) >= most:
            raise FullError
        self._kept[key] = self._clock() + DAY, dict(fields)

    async def read(self, key: str) -> dict[str, str]:
        return dict(self._alive().get(key, (0, {}))[1])

    async def write(self, key: str, fields: Mapping[str, str]) -> None:
        if key in self._alive():
            self._kept[key][1].update(fields)

    async def add(self, key: str, field: str, value: str, most: int) -> bool:
        fields = self._alive().setdefault(key, (self._clock() + DAY, {}))[1]
        if field in fields or len(fields) >= most:
            return False
        fields[field] = value
        return True

    async def drop(self, *keys: str) -> None:
        for key in keys:
            self._kept.pop(key, None)


class Redis:
    """Of all processes that name the same server."""

    PREFIX = "sgmcmc-lab:"

    def __init__(self, address: str):
        from redis.asyncio import from_url

        self._redis: Any = from_url(address, decode_responses=True, socket_timeout=5, socket_connect_timeout=5)

    async def make(self, key: str, fields: Mapping[str, str], most: int) -> None:
        index, now = f"{self.PREFIX}all:{key.partition(':')[0]}", time.time()
        await self._redis.zremrangebyscore(index, 0, now)
        if await self._redis.zcard(index) >= most:
            raise FullError
        await self._redis.zadd(index, {key: now + DAY})
        await self._put(key, fields)

    async def _put(self, key: str, fields: Mapping[str, str]) -> None:
        async with self._redis.pipeline(transaction=True) as both:
            both.hset(self.PREFIX + key, mapping=dict(fields))
            both.expire(self.PREFIX + key, DAY, nx=True)
            await both.execute()

    async def read(self, key: str) -> dict[str, str]:
        return dict(await self._redis.hgetall(self.PREFIX + key))

    async def write(self, key: str, fields: Mapping[str, str]) -> None:
        if await self._redis.exists(self.PREFIX + key):
            await self._put(key, fields)

    async def add(self, key: str, field: str, value: str, most: int) -> bool:
        if await self._redis.hlen(self.PREFIX + key) >= most:
            return False
        async with self._redis.pipeline(transaction=True) as both:
            both.hsetnx(self.PREFIX + key, field, value)
            both.expire(self.PREFIX + key, DAY, nx=True)
            added, _ = await both.execute()
        return bool(added)

    async def drop(self, *keys: str) -> None:
        for key in keys:
            await self._redis.zrem(f"{self.PREFIX}all:{key.partition(':')[0]}", key)
            await self._redis.delete(self.PREFIX + key)


@cache
def store() -> Store:
    """This server's."""
    address = os.environ.get(REDIS, "")
    return Redis(address) if address else Memory()
