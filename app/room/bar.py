"""The part of a page that shows its room."""

from collections.abc import Callable
from typing import Any

import param

from sgmcmc_lab.app.live.bus import Wire
from sgmcmc_lab.app.views.bundle import ASSETS

LOOK = (ASSETS / "room.css").read_text(encoding="utf-8")


class RoomBar(Wire):
    """Shows what it is sent, and says what was clicked."""

    code = param.String(doc="The room's.")

    _esm = ASSETS / "room.js"
    _stylesheets = [LOOK]

    def __init__(self, code: str, on_message: Callable[[list[Any]], None]):
        super().__init__(code=code, sizing_mode="stretch_width", margin=0)
        self._on_message = on_message

    def _handle_msg(self, message: Any) -> None:
        if isinstance(message, list) and message and isinstance(message[0], str) and len(message) <= 4:
            self._on_message(message)

    async def keep(self, student: str, secret: str) -> None:
        """Let the browser keep what makes this page one of the room's."""
        await self._send({"type": "keep", "student": student, "secret": secret})

    async def put(self, what: dict[str, Any]) -> None:
        """Show this in place of what is there."""
        await self._send(what)
