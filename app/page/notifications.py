"""Messages of a page: those that go away by themselves, and errors, which stay until they are mended."""

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn

from sgmcmc_lab.app.page.labels import with_labels
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.parameters import visible

MAX_MESSAGES = 4
"""Messages on the page at a time; the oldest gives way. At each new one the whole list is checked."""
MAX_SENTENCES = 3
"""Sentences of a message; of more than that their number is said."""
MAX_LENGTH = 400
"""Characters of such a sentence."""

Notify = Callable[[str, str], None]
"""``notify(kind, message)``: a message of the kind info, success, warning or error."""


class Notifications:
    """The messages of one page."""

    def __init__(self, state: AppState):
        self._state = state
        self._errors: list[Any] = []
        """The errors that are on the page, and some that were closed."""

    def notify(self, kind: str, message: str, seconds: int = 8) -> None:
        """A message that goes away by itself, or an error, which stays until it is mended."""
        area = messages_area()
        if area is None:
            return
        message = visible(with_labels(in_short(message.split("\n")), self._state.experiment))
        while len(area.notifications) >= MAX_MESSAGES:
            area.notifications[0].destroy()
        if kind == "error":
            self._errors = [*self._errors[1 - MAX_MESSAGES :], area.error(message, duration=0)]
        else:
            getattr(area, kind)(message, duration=1000 * seconds)

    def clear_errors(self) -> None:
        """Close the errors: another choice was made, or a stopped lane began again."""
        area = messages_area()
        for error in self._errors:
            if area is not None and error in area.notifications:
                error.destroy()
        self._errors = []

    def warn(self, sentences: Sequence[str]) -> None:
        """One message with all requests that were not met."""
        if sentences:
            # The page may still be being drawn.
            self.notify("warning", "\n".join(sentences), seconds=30)


def messages_area() -> Any:
    """The place of the page's messages; None where there is no page."""
    return pn.state.notifications


def in_short(sentences: Sequence[str]) -> str:
    """The first few sentences, each on a line, and how many more there are; of a long one its beginning."""
    more = len(sentences) - MAX_SENTENCES
    few = [one if len(one) <= MAX_LENGTH else f"{one[:MAX_LENGTH]}…" for one in sentences[:MAX_SENTENCES]]
    return "\n".join([*few, *([f"… and {more} more."] if more > 0 else [])])
