"""Changes of a page's models by what is no event of the page: a task that waited for something."""

from collections.abc import Callable
from typing import Any


def on_page(document: Any, work: Callable[[], None]) -> None:
    """Do it when the page's lock is free, under which its models are changed; at once where there is none."""
    if document is not None and document.session_context is not None:
        document.add_next_tick_callback(work)
    else:
        work()
