"""By which addresses other computers of the network reach this one."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from io import BytesIO, StringIO
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import segno

PROBES = ("8.8.8.8", "192.168.255.254", "10.255.255.254", "172.31.255.254")
"""One address outside, where the way of most networks goes, and one in each private network: the system says from which
of its own it would write there."""
NAME_SECONDS = 5.0
"""A terminal waits so long for the addresses that go with this computer's name."""


@cache
def _by_name() -> Future[list[str]]:
    """The addresses that go with this computer's own name; a thread asks for them once.

    A name server may take seconds, for which no event loop may wait.
    """
    found: Future[list[str]] = Future()

    def ask() -> None:
        try:
            entries = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        except OSError:
            # Some computers do not know their own name.
            entries = []
        found.set_result([str(entry[4][0]) for entry in entries])

    threading.Thread(target=ask, name="own name", daemon=True).start()
    return found


def addresses(patience: float = NAME_SECONDS) -> list[str]:
    """The addresses of this computer in its networks, the likeliest first; none without a network.

    For those that go with its name it waits so many seconds at most, and on an event loop not at all.
    """
    found = []
    for probe in PROBES:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            try:
                # A datagram's socket only takes the address: no packet is sent.
                asked.connect((probe, 9))
                found.append(asked.getsockname()[0])
            except OSError:
                continue
    with suppress(TimeoutError):
        found += _by_name().result(patience)
    return [one for one in dict.fromkeys(found) if not one.startswith(("127.", "0.", "169.254."))]


CALLER: ContextVar[str] = ContextVar("caller", default="")
"""The owner of the request that this code answers, also later in a task; empty where there was none."""

_checks: list[Callable[[str], bool]] = []
"""The server's check of a host: one that it refuses is no way to reach it."""


def answers_to(check: Callable[[str], bool]) -> None:
    """Use the check of the server of this process."""
    _checks[:] = [check]
    _by_name()


def hosts(port: str) -> list[str]:
    """The addresses with this port to which the server of this process answers; none where there is no server."""
    return [host for one in addresses(patience=0) if any(check(host := f"{one}{port}") for check in _checks)]


def whose(address: str) -> str:
    """The computer, house or school that an address is of: of IPv6 each has a network of 2⁶⁴ addresses."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(known, IPv6Address):
        return str(known.ipv4_mapped or ip_network((known, 64), strict=False).network_address)
    return str(known)


def address_of(document: Any) -> str:
    """The owner of a document's page; one text for all that have none."""
    context = document.session_context if document is not None else None
    request = context.request if context is not None else None
    return whose(getattr(request, "remote_ip", None) or "")


def qr_svg(text: str) -> str:
    """A QR code as SVG, which is as large as its place. Its light border belongs to it."""
    out = BytesIO()
    segno.make(text, micro=False, error="m").save(
        out, kind="svg", dark="#000000", light="#ffffff", omitsize=True, xmldecl=False, svgns=False, nl=False, border=3
    )
    return out.getvalue().decode()


def qr_terminal(text: str) -> str:
    """The QR code for a terminal, two rows a line."""
    out = StringIO()
    segno.make(text, micro=False, error="l").terminal(out, border=2, compact=True)
    return out.getvalue()
