"""Patches of faults in libraries, and the only module with private names of libraries.

Each patch has digests of the source that it was written for, by version of the library. At the start they are compared
with the installed source. If none matches, the patch is off, a line of the log says so, and the page works with the
fault. ``python -m sgmcmc_lab.app.server.patches`` prints the places and digests of the installed versions.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from inspect import getattr_static
from types import FunctionType
from typing import Any

log = logging.getLogger("sgmcmc-lab")

ABSENT, UNREADABLE = "absent", "unreadable"


@dataclass(frozen=True, eq=False)
class Patch:
    """A replacement of one function of a library."""

    function: str
    """The function, as ``module:Class.name``."""
    known: Mapping[str, str]
    """A digest of its source, by the version of the library."""
    without: str
    """The fault as a user meets it, for the line of the log when the patch is off."""
    report: str
    """The fault as reported to the library's authors."""
    make: Callable[[Any], Any]
    """The replacement, made from the function."""

    @cached_property
    def fits(self) -> bool:
        """Whether the installed function is one that the patch was written for."""
        return digest(self.function) in self.known.values()

    def put(self) -> None:
        """Replace the function if it is known; otherwise log a line. A second call changes nothing."""
        if self in _PUT:
            return
        _PUT.append(self)
        if self.fits:
            setattr(*owner(self.function), self.make(found(self.function)))
        else:
            log.warning("%s: %s is unknown (%s).", self.without, self.function, library(self.function))


_PUT: list[Patch] = []


@cache
def found(function: str) -> Any:
    """The original function at ``module:Class.name``, unbound; ``ABSENT`` where there is none."""
    module, _, path = function.partition(":")
    try:
        at: Any = import_module(module)
        for name in path.split("."):
            at = getattr_static(at, name)
    except (ImportError, AttributeError):
        return ABSENT
    return at


def digest(function: str) -> str:
    """A digest of the source of the original function."""
    at = found(function)
    if at is ABSENT:
        return ABSENT
    at = inspect.unwrap(at) if callable(at) else at
    if not isinstance(at, FunctionType | type):
        return type(at).__name__
    try:
        return hashlib.sha256(inspect.getsource(at).encode()).hexdigest()[:12]
    except (OSError, TypeError):
        return UNREADABLE


def owner(function: str) -> tuple[Any, str]:
    """The module or class with the function, and its name there."""
    module, _, path = function.partition(":")
    *owners, name = path.split(".")
    at: Any = import_module(module)
    for step in owners:
        at = getattr(at, step)
    return at, name


def library(function: str) -> str:
    """The installed library of a place, with its version."""
    name = function.partition(":")[0].partition(".")[0]
    return f"{name} {version(name)}"


def _dispatch(original: Any) -> Any:
    from panel.io import document

    async def dispatch(doc: Any) -> None:
        if any(doc in getattr(document, waiting, ()) for waiting in ("_WRITE_MSGS", "_WRITE_EVENTS")):
            document._WRITE_BLOCK[doc] = True
        await original(doc)

    return dispatch


def _drain(original: Any) -> Any:
    from bokeh.document.events import DocumentPatchedEvent, MessageSentEvent

    def drain(doc: Any, lock: Any) -> list[Any]:
        held = list(doc.callbacks._held_events)
        kept = list(original(doc, lock))
        session = getattr(doc.session_context, "session", None)
        if session is not None and session.connection_count:
            kept += [
                one for one in held if isinstance(one, DocumentPatchedEvent) and not isinstance(one, MessageSentEvent)
            ]
        return kept

    return drain


def _destroy(original: Any) -> Any:
    from panel.io.state import state

    def destroy(self: Any, session_context: Any) -> None:
        document = session_context._document
        original(self, session_context)
        for ref in [ref for ref, (_, _, of, _) in state._views.items() if of is document]:
            del state._views[ref]

    return destroy


PATCHES = [
    Patch(
        "panel.io.document:_dispatch_msgs",
        {"panel 1.9.4": "06084fe04469", "panel 1.10.0": "a8bfe013801b"},
        "A change may wait for the next one",
        "Two changes within the time of one write: the second task of _dispatch_msgs finds _WRITE_BLOCK deleted by the "
        "first and returns, and its messages stay in _WRITE_MSGS until the next change of the document.",
        _dispatch,
    ),
    Patch(
        "panel.io.document:_drain_unconnected_events",
        {"panel 1.9.4": "3af857c238df", "panel 1.10.0": "3af857c238df"},
        "A change while a page is drawn may be lost",
        "A document is pulled, and a change is held until the page is loaded: _drain_unconnected_events drops it as part "
        "of a serialization that is still to come, though the browser has the document already.",
        _drain,
    ),
    Patch(
        "panel.viewable:Viewable._server_destroy",
        {"panel 1.9.4": "b6f4cb8b0817", "panel 1.10.0": "b6f4cb8b0817"},
        "The memory of closed pages is not freed",
        "A document with several roots, such as a page and its notifications: _server_destroy deletes the entry of one "
        "root in state._views; the others keep the whole document.",
        _destroy,
    ),
]


OWN = {"value", "value_throttled", "active", "busy", "dark_theme"}
"""Parameters with bounds that differ between components, or set on one alone, or referred to by another parameter."""


def share_parameters() -> None:
    """Let components share the parameters of their class, by param's documented ``per_instance``: copying them takes a
    fifth of the server's time for a page (.43 s with sharing, .55 s without; two runs each on 2026-11-26).
    """
    from panel.viewable import Layoutable
    from panel_material_ui.base import MaterialComponent
    from param import Parameter

    for cls in _classes_below(Layoutable):
        for name, parameter in vars(cls).items():
            material = issubclass(cls, MaterialComponent) and isinstance(parameter, Parameter)
            if name in Layoutable.param or (material and name not in OWN):
                parameter.per_instance = False


def _classes_below(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _classes_below(child)


def install() -> None:
    """Apply every patch, before the first page is made. A second call changes nothing."""
    for patch in PATCHES:
        patch.put()
    share_parameters()


if __name__ == "__main__":
    for patch in PATCHES:
        print(f'{patch.function}: {{"{library(patch.function)}": "{digest(patch.function)}"}}')
