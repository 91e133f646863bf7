"""The store of short links and rooms: mappings of texts under a key, each for a day, in memory or in Redis."""

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

REDIS = "SGMCMC_REDIS"
"""The environment variable with the address of a Redis server, by which several processes share rooms."""
DAY = 86_400
"""Seconds that a mapping lives."""
CONNECTIONS = 16
"""The most connections of a process to Redis; further ones wait. Without a bound, 300 simultaneous answers open 300."""
PATIENCE = 5.0
"""Seconds until a Redis server that does not answer is taken to be away."""


class Store(Protocol):
    """Mappings under keys such as ``room:k7mq2x9d``; what stands before the colon is their kind."""

    async def make(self, key: str, fields: Mapping[str, str]) -> None:
        """A new mapping."""

    async def read(self, key: str) -> dict[str, str]:
        """The mapping; empty where there is none any more."""

    async def has(self, key: str, field: str) -> bool:
        """Whether the mapping is there, and has this field."""

    async def write(self, key: str, fields: Mapping[str, str]) -> None:
        """Other values of some fields of a mapping that is there."""

    async def add(self, key: str, field: str, value: str, most: int) -> bool:
        """A field that is not there yet, if there are fewer than ``most``; makes the mapping. Whether it was added."""

    async def remove(self, key: str, field: str) -> None:
        """Forget a field of a mapping."""

    async def drop(self, *keys: str) -> None:
        """Forget mappings."""

    async def announce(self, kind: str, name: str, value: str, seconds: float) -> None:
        """Let all processes know a text under a kind and a name, for so long."""

    async def announced(self, kind: str) -> dict[str, str]:
        """The known entries of a kind, by name."""


class Memory:
    """A store in this process, which ends with it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._kept: dict[str, tuple[float, dict[str, str]]] = {}
        self._known: dict[tuple[str, str], tuple[float, str]] = {}

    def _alive(self) -> dict[str, tuple[float, dict[str, str]]]:
        # They die in the order in which they were made.
        now = self._clock()
        for key, (dies, _) in list(self._kept.items()):
            if dies > now:
                break
            del self._kept[key]
        return self._kept

    async def make(self, key: str, fields: Mapping[str, str]) -> None:
        self._alive().pop(key, None)
        self._kept[key] = self._clock() + DAY, dict(fields)

    async def read(self, key: str) -> dict[str, str]:
        return dict(self._alive().get(key, (0, {}))[1])

    async def has(self, key: str, field: str) -> bool:
        return field in self._alive().get(key, (0, {}))[1]

    async def write(self, key: str, fields: Mapping[str, str]) -> None:
        if key in self._alive():
            self._kept[key][1].update(fields)

    async def add(self, key: str, field: str, value: str, most: int) -> bool:
        fields = self._alive().setdefault(key, (self._clock() + DAY, {}))[1]
        if field in fields or len(fields) >= most:
            return False
        fields[field] = value
        return True

    async def remove(self, key: str, field: str) -> None:
        self._alive().get(key, (0, {}))[1].pop(field, None)

    async def drop(self, *keys: str) -> None:
        for key in keys:
            self._kept.pop(key, None)

    async def announce(self, kind: str, name: str, value: str, seconds: float) -> None:
        self._known[kind, name] = self._clock() + seconds, value

    async def announced(self, kind: str) -> dict[str, str]:
        now = self._clock()
        self._known = {at: kept for at, kept in self._known.items() if kept[0] > now}
        return {name: value for (of, name), (_, value) in self._known.items() if of == kind}


class Redis:
    """A store that all processes with the same Redis server share."""

    PREFIX = "sgmcmc-lab:"

    def __init__(self, address: str):
        try:
            from redis.asyncio import BlockingConnectionPool
            from redis.asyncio import Redis as Client
        except ImportError:
            raise ImportError(f'{REDIS} needs the extra class: pip install -e ".[class]"') from None

        pool = BlockingConnectionPool.from_url(
            address,
            max_connections=CONNECTIONS,
            timeout=4 * PATIENCE,
            decode_responses=True,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
        )
        self._redis: Any = Client.from_pool(pool)

    async def make(self, key: str, fields: Mapping[str, str]) -> None:
        await self._put(key, fields)

    async def _put(self, key: str, fields: Mapping[str, str]) -> None:
        async with self._redis.pipeline(transaction=True) as both:
            both.hset(self.PREFIX + key, mapping=dict(fields))
            both.expire(self.PREFIX + key, DAY, nx=True)
            await both.execute()

    async def read(self, key: str) -> dict[str, str]:
        return dict(await self._redis.hgetall(self.PREFIX + key))

    async def has(self, key: str, field: str) -> bool:
        return bool(await self._redis.hexists(self.PREFIX + key, field))

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

    async def remove(self, key: str, field: str) -> None:
        await self._redis.hdel(self.PREFIX + key, field)

    async def drop(self, *keys: str) -> None:
        for key in keys:
            await self._redis.delete(self.PREFIX + key)

    async def announce(self, kind: str, name: str, value: str, seconds: float) -> None:
        key = f"{self.PREFIX}known:{kind}"
        await self._redis.hset(key, name, f"{time.time() + seconds} {value}")
        await self._redis.expire(key, DAY)

    async def announced(self, kind: str) -> dict[str, str]:
        key, now, known, gone = f"{self.PREFIX}known:{kind}", time.time(), {}, []
        for name, text in (await self._redis.hgetall(key)).items():
            dies, _, value = text.partition(" ")
            if float(dies) > now:
                known[name] = value
            else:
                gone.append(name)
        if gone:
            await self._redis.hdel(key, *gone)
        return known


@cache
def store() -> Store:
    """This server's."""
    address = os.environ.get(REDIS, "")
    return Redis(address) if address else Memory()
