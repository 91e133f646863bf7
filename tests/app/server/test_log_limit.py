"""Lines of the log that clients cause are bounded, and those that are left out are counted."""

import asyncio
import logging
from contextvars import copy_context
from unittest.mock import Mock

import pytest
from tornado.routing import Rule
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from sgmcmc_lab.app.room.network import CALLER
from sgmcmc_lab.app.server import handlers, log_limit
from sgmcmc_lab.app.server.connections import Bounded
from sgmcmc_lab.app.server.handlers import Refused, _Refusable
from sgmcmc_lab.app.server.log_limit import CAUSED, MINUTE, MOST, MOST_KINDS, MOST_OF_ADDRESS, LogLimit


@pytest.fixture
def limited(caplog):
    """``limited.write(text, *values)`` writes with a limit on a clock of its own, ``limited.now``."""

    class Limited:
        now = 0.0

        def __init__(self):
            self.logger = logging.getLogger("sgmcmc-lab.test-of-limit")
            self.limit = LogLimit(lambda: self.now)
            self.logger.addFilter(self.limit)

        def write(self, text, *values):
            caplog.clear()
            self.logger.error(text, *values)
            return caplog.messages

    made = Limited()
    yield made
    made.logger.removeFilter(made.limit)


def said_by(address, limited, *line):
    """The lines that are written where somebody causes one."""

    def write():
        CALLER.set(address)
        return limited.write(*line)

    return copy_context().run(write)


def test_many_lines_of_one_kind_are_few_and_counted(limited):
    """The planted faults: each text with its values is a kind; what was left out is forgotten."""
    written = [limited.write("a connection %d", k) for k in range(300)]
    assert [len(one) for one in written] == [1] * MOST + [0] * (300 - MOST)
    # Of another kind there are none yet.
    assert limited.write("another line") == ["another line"]
    limited.now = MINUTE
    assert limited.write("a connection %d", 7) == [f"a connection 7 (before it, {300 - MOST} such lines were left out)"]
    assert limited.write("a connection %d", 8) == ["a connection 8"]
    assert limited.write("another line") == ["another line"]


@pytest.mark.parametrize("apart", [True, False])
def test_nobody_silences_lines_about_another_address(limited, apart):
    """Fails where whoever fills the log keeps another address out of it. Fault: both are one to the limit."""
    first, second = ("127.0.0.1", "127.0.0.2") if apart else ("", "")
    written = [said_by(first, limited, "a connection %d", k) for k in range(300)]
    assert sum(map(len, written)) == MOST
    assert said_by(second, limited, "a connection %d", 7) == ["a connection 7"] * apart


def test_an_address_has_so_many_lines_of_all_kinds(limited):
    """Fails where a client has as many lines as it likes, each with other words of its own in it."""
    written = [said_by("127.0.0.1", limited, f"a client's own words {k}") for k in range(300)]
    assert [len(one) for one in written] == [1] * MOST_OF_ADDRESS + [0] * (300 - MOST_OF_ADDRESS)
    assert said_by("127.0.0.2", limited, "another line") == ["another line"]
    limited.now = MINUTE
    (line,) = said_by("127.0.0.1", limited, "a line")
    assert line == f"a line (before it, {300 - MOST_OF_ADDRESS} such lines were left out)"


def test_kinds_are_bounded(limited):
    for k in range(2 * MOST_KINDS):
        limited.write(f"a client's own words {k}")
    assert len(limited.limit._kinds) == MOST_KINDS


@pytest.mark.parametrize("xheaders", [False, True])
def test_a_line_is_counted_for_whoever_asked(xheaders):
    """Fails where a proxy's readers are one to the limit, or what a request begins belongs to nobody."""
    asked = []

    class Asked(RequestHandler):
        def get(self):
            self.begun = asyncio.create_task(self.later())

        async def later(self):
            asked.append(CALLER.get())

    async def whole():
        listener, port = bind_unused_port()
        web = Application()
        web.default_router.rules.insert(0, Rule(_Refusable(Mock(refusal=lambda request: "")), Refused))
        web.add_handlers(".*", [("/", Asked)])
        server = Bounded(web, xheaders=xheaders)
        server.add_sockets([listener])
        try:
            for source in ("127.0.0.1", "127.0.0.2"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
                writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Real-IP: 10.0.0.7\r\n\r\n")
                await reader.readline()
                writer.close()
        finally:
            server.stop()
            await server.close_all_connections()

    asyncio.run(asyncio.wait_for(whole(), 60))
    assert asked == (["10.0.0.7"] * 2 if xheaders else ["127.0.0.1", "127.0.0.2"])
    assert CALLER.get() == ""


def test_the_server_limits_what_clients_cause():
    """Fails where each WebSocket writes a line. Fault: the limit is not installed with the server's handlers."""
    before = {name: list(logging.getLogger(name).filters) for name in CAUSED}
    try:
        for name in CAUSED:
            logging.getLogger(name).filters.clear()
        handlers.install()
        log_limit.install()
        found = [sum(isinstance(one, LogLimit) for one in logging.getLogger(name).filters) for name in CAUSED]
    finally:
        for name, filters in before.items():
            logging.getLogger(name).filters[:] = filters
    assert found == [1] * len(CAUSED)
