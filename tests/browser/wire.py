"""A network between browser and server that can fail: a proxy on a port of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Connection:
    """A browser's connection and that to the server, for which ``near`` and ``far`` are the ways to write."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter):
        self.near, self.far = near, far
        self.socket = self.forgotten = False

    def close(self) -> None:
        """Both ends learn of it."""
        self.near.close()
        self.far.close()


class Wire:
    """The traffic through ``port`` to the server's port, for as long as the connection exists."""

    port: int

    def __init__(self) -> None:
        self.target = 0
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._open: set[Connection] = set()
        self._ends: set[asyncio.StreamWriter] = set()

    def stall(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._do(self._whole.clear)

    def cut(self) -> None:
        """Close all connections, and every new one."""
        self._refuses = True
        self._do(lambda: [one.close() for one in self._open])

    def forget(self) -> None:
        """The server's ends close. The browser is not told of its websockets', as while its machine sleeps."""

        def forgotten() -> None:
            for one in self._open:
                one.forgotten = one.socket
                one.far.close() if one.socket else one.close()

        self._do(forgotten)

    def mend(self) -> None:
        """Held-back messages arrive, and new connections are made."""
        self._refuses = False
        self._do(self._whole.set)

    def _do(self, work: Callable[[], object]) -> None:
        async def now() -> None:
            work()

        asyncio.run_coroutine_threadsafe(now(), self._loop).result()

    async def _connect(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        self._ends.add(near)
        if self._refuses:
            near.close()
            return
        answers, far = await asyncio.open_connection("127.0.0.1", self.target)
        self._ends.add(far)
        connection = Connection(near, far)
        self._open.add(connection)
        await asyncio.gather(self._pump(connection, reader, far), self._pump(connection, answers, near))
        self._open.discard(connection)
        connection.close()

    async def _pump(self, connection: Connection, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                connection.socket |= b"Upgrade: websocket" in data
                await self._whole.wait()
                if not connection.forgotten:
                    to.write(data)
                    await to.drain()
        if not connection.forgotten:
            to.close()

    async def _serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        listening = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await end.wait()
        listening.close()
        # Unread bytes would keep a connection that is closed in the usual way open forever.
        for writer in self._ends:
            writer.transport.abort()
        await asyncio.sleep(0.1)  # until they are closed


@contextmanager
def wire() -> Iterator[Wire]:
    """A whole one; its ``target`` is set by who uses it."""
    made, ready, end = Wire(), threading.Event(), asyncio.Event()

    def serve() -> None:
        with asyncio.Runner(loop_factory=lambda: made._loop) as runner:
            runner.run(made._serve(ready, end))

    thread = threading.Thread(target=serve)
    thread.start()
    ready.wait()
    try:
        yield made
    finally:
        made.mend()
        made._do(end.set)
        thread.join()
