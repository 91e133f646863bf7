"""A document is touched by one thread: that of the server's event loop.

The live loop, the watchers of widgets and Panel itself take turns there, so nothing needs a lock. From 3.10 on Bokeh
hands what a browser sends to a thread of its own. A page's loop then could not begin, for a thread has no event loop,
and its figures stayed empty; an edit would have changed an experiment in the middle of a frame, and a figure's data
while they were being written out.
"""

from collections.abc import Callable
from typing import Any

from bokeh.server import session


def keep() -> None:
    """Let sessions do at once what Bokeh would hand to a thread; one before 3.10 does, and has neither name."""
    session._run_in_executor = _at_once
    session.ServerSession._run_in_executor = staticmethod(_at_once)


async def _at_once(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return work(*args, **named)
