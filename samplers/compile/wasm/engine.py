"""The engine as one file: all functions of densities, samplers and gradients in one WebAssembly module.

``python -m sgmcmc_lab.samplers.compile.wasm`` builds it. A section of the module has the digest of the source of each
function (:func:`samplers.compile.content.source_digest_of`), so that a function whose source is another one by now is
refused by its name; and the versions of what built it, for the same versions build the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sgmcmc_lab.samplers.compile import content, jit
from sgmcmc_lab.samplers.compile.wasm import ModuleError

PATH = Path(__file__).parents[3] / "assets" / "engine.wasm"
COMMAND = "python -m sgmcmc_lab.samplers.compile.wasm"
SECTION = b"sgmcmc-lab"
"""The name of the section of digests and versions; a host does not read it."""
_HEAD = b"\0asm\1\0\0\0"
_CUSTOM, _IMPORTS = 0, 2
"""The numbers of kinds of sections."""
_FUNCTION, _TABLE, _GLOBAL = 0, 1, 3
"""The numbers of what is imported."""
_DIGITS = 16
"""Digits of a digest: by chance one in 10¹⁹ changes is not seen."""


class Engine(NamedTuple):
    """The engine's file."""

    module: bytes
    """The module as a page has it, without the section."""
    digests: dict[str, str]
    """The digest of the source of each function, by its name."""
    called: dict[str, list[str]]
    """The functions of libm that each calls: on these its last digits depend."""
    made_with: dict[str, str]
    """The version of each tool that built it."""

    def stale(self, functions: Iterable[Any]) -> list[str]:
        """The names of those of these functions in it whose source is another one now."""
        there = [function for function in functions if jit.name_of(function) in self.digests]
        return [name for name, digest in digests(there).items() if digest != self.digests[name]]

    def without(self, functions: Iterable[Any]) -> list[Any]:
        """Those of these functions that it does not have."""
        return [function for function in functions if jit.name_of(function) not in self.digests]


@cache
def engine() -> Engine:
    """The engine's file. Raises :class:`ModuleError`."""
    try:
        return parsed(PATH.read_bytes())
    except (OSError, ValueError) as error:
        raise ModuleError(f"{PATH.name} cannot be read ({error}). It is built by: {COMMAND}") from None


def check(functions: Sequence[Any]) -> None:
    """Raise :class:`ModuleError` where the source of one of these functions is another one than the engine's."""
    stale = engine().stale(functions)
    if stale:
        raise ModuleError(f"{PATH.name} has an older {', '.join(stale)}. It is built anew by: {COMMAND}")


def digests(functions: Iterable[Any]) -> dict[str, str]:
    """The digest of the source of each function, by its name. Raises :class:`ModuleError`."""
    out = {}
    for function in functions:
        try:
            out[jit.name_of(function)] = _digest(function)
        except content.UnknownContentError as error:
            raise ModuleError(f"{jit.name_of(function)}: {error}") from None
    return out


@cache
def _digest(function: Any) -> str:
    return content.source_digest_of(function, jit.signature_of(function), _TOLD)[:_DIGITS]


_TOLD: dict[Any, Any] = {}


def with_section(made: Engine) -> bytes:
    """The module with a section of all that stands beside it."""
    said = {"digests": made.digests, "called": made.called, "made with": made.made_with}
    content = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    return made.module + _section(_leb128(len(SECTION)) + SECTION + content)


def _section(body: bytes) -> bytes:
    """A section that hosts do not read."""
    return bytes([_CUSTOM]) + _leb128(len(body)) + body


def parsed(module: bytes) -> Engine:
    """A module that ends with such a section. Raises :class:`ValueError`."""
    for kind, body in _sections(module):
        size, start = _read_leb128(body, 0) if kind == _CUSTOM else (0, 0)
        if kind == _CUSTOM and body[start : start + size] == SECTION:
            said = json.loads(body[start + size :])
            return Engine(module.removesuffix(_section(body)), said["digests"], said["called"], said["made with"])
    raise ValueError(f"it has no section {SECTION.decode()}")


def imports(module: bytes) -> list[str]:
    """The names of the functions that a module or an object imports. Raises :class:`ValueError`."""
    out = []
    for kind, body in _sections(module):
        if kind != _IMPORTS:
            continue
        count, place = _read_leb128(body, 0)
        for _ in range(count):
            size, place = _read_leb128(body, place)  # the name of a module; that of the function follows
            size, place = _read_leb128(body, place + size)
            name, place = body[place : place + size], place + size
            what, place = body[place], place + 1
            if what == _FUNCTION:
                out.append(name.decode())
            place = _after_description(body, what, place)
    return out


def _after_description(body: bytes, what: int, place: int) -> int:
    """The place after the type of what is imported."""
    if what == _FUNCTION:
        return _read_leb128(body, place)[1]
    if what == _GLOBAL:
        return place + 2
    # A table has the type of its elements before its limits, a memory has limits alone.
    flags, place = _read_leb128(body, place + (what == _TABLE))
    for _ in range(1 + flags % 2):
        _, place = _read_leb128(body, place)
    return place


def _sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """The sections of a module: the number of the kind, and the content. Raises :class:`ValueError`."""
    if not module.startswith(_HEAD):
        raise ValueError("it is no WebAssembly module")
    place = len(_HEAD)
    while place < len(module):
        size, start = _read_leb128(module, place + 1)
        if start + size > len(module):
            raise ValueError("it is cut off")
        yield module[place], module[start : start + size]
        place = start + size


def _leb128(number: int) -> bytes:
    """A count as WebAssembly writes it: seven bits a byte, the lowest first."""
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


def _read_leb128(content: bytes, place: int) -> tuple[int, int]:
    """The count at this place, and the place after it. Raises :class:`ValueError`."""
    number = 0
    for k, byte in enumerate(content[place : place + 5]):
        number += (byte % 128) << (7 * k)
        if byte < 128:
            return number, place + k + 1
    raise ValueError("it is cut off")
