"""Changes of a page's models, in the thread of the server's event loop and under the page's lock.

The live loop, the watchers of widgets and Panel itself take turns in that thread, so nothing needs a lock of its own.
From 3.10 on Bokeh calls synchronous callbacks in another thread; coroutines it runs in the loop's.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

WAIT_SECONDS = 60.0
"""A thread waits so long for the loop's answer, so that none is left behind by a server that ends."""


def on_page(document: Any, work: Callable[[], None]) -> None:
    """Do it when the page's lock is free, under which its models are changed; at once where there is none."""

    async def under_lock() -> None:
        work()

    if document is not None and document.session_context is not None:
        document.add_next_tick_callback(under_lock)
    else:
        work()


def on_this_thread(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which runs in the thread of this loop from whichever thread it is called."""
    loop, own = asyncio.get_running_loop(), threading.get_ident()

    def there(*args: Any) -> Any:
        if threading.get_ident() == own:
            return work(*args)
        answer: Future[Any] = Future()
        context = copy_context()

        def run() -> None:
            try:
                answer.set_result(context.run(work, *args))
            except BaseException as error:
                answer.set_exception(error)

        loop.call_soon_threadsafe(run)
        return answer.result(WAIT_SECONDS)

    return there
