"""How many connections the server holds and how long it waits, and what it answers to what is no request."""

import asyncio
import errno
import ssl

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from sgmcmc_lab.app.server import connections
from sgmcmc_lab.app.server.connections import AGAIN_SECONDS, MOST_OF_ADDRESS, WAITING_OF_ADDRESS, Bounded, Connections
from tests.helpers.cases import for_each

HOST = b"Host: localhost\r\n"


class Hello(RequestHandler):
    def get(self):
        self.write("hello")


class Held:
    """A connection, as far as it is counted."""

    def __init__(self, counted):
        self.counted, self.closed = counted, False

    def close(self):
        self.closed = True
        self.counted.end(self)


class Clock:
    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def held(counted, n, owner, heard=False):
    """So many connections of an owner, those that were taken; ``heard`` have asked for something."""
    found = []
    for one in (Held(counted) for _ in range(n)):
        if counted.begin(one, owner):
            found.append(one)
            if heard:
                counted.heard(one)
    return found


def test_the_oldest_that_waits_of_an_address_gives_way():
    """Fails where half-sent headers of one computer take what others need, or close what somebody uses."""
    counted = Connections(10_000, Clock())
    pages, other = held(counted, 50, "10.0.0.5", heard=True), held(counted, 1, "10.0.0.6")
    half = held(counted, WAITING_OF_ADDRESS + 100, "10.0.0.5")
    assert [one.closed for one in half] == [True] * 100 + [False] * WAITING_OF_ADDRESS
    assert not any(one.closed for one in (*pages, *other))
    # One that has asked and waits for its next request is the youngest again.
    counted.heard(half[100])
    counted.wait(half[100])
    held(counted, 1, "10.0.0.5")
    assert (half[100].closed, half[101].closed) == (False, True)


def test_a_class_behind_one_address_is_served():
    """400 pages, each with six connections at once while it opens."""
    counted = Connections(10_000, Clock())
    pages = held(counted, 400, "192.0.2.1", heard=True)
    for _ in range(400):
        loading = held(counted, 6, "192.0.2.1", heard=True)
        assert len(loading) == 6
        for one in loading:
            one.close()
    assert not any(one.closed for one in pages)


@for_each(("owner", "taken"), [("10.0.0.5", MOST_OF_ADDRESS), ("127.0.0.1", 3000), ("::1", 3000), ("", 3000)])
def test_an_address_has_a_bound_and_a_proxy_on_this_computer_none(owner, taken):
    counted = Connections(10_000, Clock())
    assert len(held(counted, 3000, owner, heard=True)) == taken
    assert len(held(counted, 10, "10.0.0.9", heard=True)) == 10


def test_all_have_a_bound_and_the_oldest_that_waits_gives_way():
    counted = Connections(20, Clock())
    used, first, second = (
        held(counted, 18, "10.0.0.1", heard=True),
        held(counted, 1, "10.0.0.2"),
        held(counted, 1, "10.0.0.3"),
    )
    assert held(counted, 1, "10.0.0.4", heard=True)
    assert (first[0].closed, second[0].closed) == (True, False)
    assert held(counted, 1, "10.0.0.4", heard=True) and second[0].closed
    assert not held(counted, 1, "10.0.0.4")
    used[0].close()
    assert held(counted, 1, "10.0.0.4")


def test_no_more_files_is_logged_once_in_a_while(caplog):
    """Fails where a server whose descriptors are at their end fills its log."""
    clock = Clock()
    counted = Connections(20, clock)
    waits = held(counted, 1, "10.0.0.2")
    assert all(counted.no_more_files(OSError(errno.EMFILE, "Too many open files")) for _ in range(20))
    assert waits[0].closed and len(caplog.records) == 1
    clock.now += AGAIN_SECONDS
    counted.no_more_files(OSError(errno.ENFILE, ""))
    assert len(caplog.records) == 2
    assert not counted.no_more_files(OSError(errno.ENOENT, "")) and not counted.no_more_files(None)


def asked(kind, *requests, wait=5.0):
    """The server's answer to each of these, before it closes or ``wait`` is over; None where it holds them open."""

    async def one(port, request):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        try:
            return await asyncio.wait_for(reader.read(), wait)
        except TimeoutError:
            return None
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async def whole():
        listener, port = bind_unused_port()
        server = kind(Application([("/", Hello)]))
        server.add_sockets([listener])
        try:
            return await asyncio.gather(*(one(port, request) for request in requests))
        finally:
            server.stop()
            await server.close_all_connections()

    return asyncio.run(whole())


@for_each("tls", [False, True])
def test_a_connection_with_tls_is_not_counted(tls):
    """A proxy should handle TLS, and SECURITY.md says so. Without TLS the connection is counted."""
    came = asyncio.Event()

    class Told(Bounded):
        def handle_stream(self, stream, address):
            super().handle_stream(stream, address)
            came.set()

    async def counted():
        listener, port = bind_unused_port()
        server = Told(
            Application([("/", Hello)]),
            ssl_options=ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if tls else None,
        )
        server.add_sockets([listener])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.wait_for(came.wait(), 60)
            return len(connections.OPEN._owners)
        finally:
            writer.close()
            server.stop()
            await server.close_all_connections()

    assert asyncio.run(counted()) == (not tls)


HALF = [b"GET / HTTP/1.1\r\n" + HOST, b"", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 10\r\n\r\nx"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Bounded, HTTPServer])
def test_half_a_request_is_not_waited_for(kind, monkeypatch):
    """Headers, nothing, and half a body. Fault: Tornado's own server, which waits for an hour."""
    monkeypatch.setattr(connections, "TIMEOUT", 0.3)
    found = asked(kind, *HALF, wait=30.0 if kind is Bounded else 2.0)
    assert found == ([b""] * 3 if kind is Bounded else [None] * 3)
    assert not connections.OPEN._owners


NONE = [
    b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 10000000\r\n\r\n",
]


@pytest.mark.parametrize("kind", [Bounded, HTTPServer])
def test_what_is_no_request_is_answered_in_a_sentence(kind):
    """Fault: Tornado's own server, whose answer is empty."""
    # Tornado takes the last, a body of 10 MB.
    wrong = NONE if kind is Bounded else NONE[:-1]
    for request, answer in zip(wrong, asked(kind, *wrong, wait=60.0), strict=True):
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 "), request
        assert (body.count(b".") == 1 and b"nosniff" in head) == (kind is Bounded), request
    assert asked(kind, b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")[0].endswith(b"hello")


def test_more_files_are_asked_for():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
        most = connections.raise_limit()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert soft > 200 and 3 * soft // 4 == most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
