"""The part of a page that shows its room."""

from collections.abc import Callable
from typing import Any

import param

from app.bundle import ASSETS
from app.bus import Wire

_LOOK = """
:host { display: block; width: 100%; }
.room { font: 15px/1.4 Roboto, sans-serif; margin: 6px 8px; padding: 6px 10px; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 6px; }
.line { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 10px; }
.line b { font-size: 17px; letter-spacing: .04em; }
p { margin: 6px 0; } .said:empty { display: none; } .said { font-weight: 600; overflow-wrap: anywhere; }
button { font: inherit; color: inherit; background: transparent; cursor: pointer; border: 1.5px solid color-mix(in srgb, currentColor 45%, transparent); border-radius: 6px; padding: 3px 10px; }
button.main { background: #1565c0; border-color: #1565c0; color: #ffffff; }
button:hover:enabled, button:focus-visible { outline: 2px solid #1976d2; }
button:disabled { cursor: default; }
button[aria-pressed="true"] { border-color: #1976d2; background: color-mix(in srgb, #1976d2 16%, transparent); font-weight: 600; }
.options { list-style: none; margin: 0; padding: 0; display: grid; gap: 6px; }
.options button { width: 100%; text-align: left; padding: 6px 10px; }
.options .text { display: block; font-size: 16px; } .right .text { font-weight: 600; }
.bar { display: flex; align-items: center; gap: 8px; height: 18px; margin: 2px 0; }
.full { display: block; height: 100%; border-radius: 0 4px 4px 0; min-width: 2px; max-width: calc(100% - 76px); transition: width .3s; }
.full.now { background: #1976d2; } .full.before { background: #8d99ae; }
.count { font-variant-numeric: tabular-nums; white-space: nowrap; font-size: 14px; }
table { border-collapse: collapse; } th, td { padding: 2px 10px 2px 0; text-align: left; font-variant-numeric: tabular-nums; } th { font-weight: 600; }
.mine { font-weight: 600; } .race { overflow-x: auto; }
@media (prefers-reduced-motion: reduce) { .full { transition: none; } }
"""


class RoomBar(Wire):
    """Shows what it is sent, and says what was clicked."""

    code = param.String(doc="The room's.")

    _esm = ASSETS / "room.js"
    _stylesheets = [_LOOK]

    def __init__(self, code: str, heard: Callable[[list[Any]], None]):
        super().__init__(code=code, sizing_mode="stretch_width", margin=0)
        self._heard = heard

    def _handle_msg(self, message: Any) -> None:
        if isinstance(message, list) and message and isinstance(message[0], str) and len(message) <= 4:
            self._heard(message)

    async def keep(self, student: str, secret: str) -> None:
        """Let the browser keep what makes this page one of the room's."""
        await self._send({"type": "keep", "student": student, "secret": secret})

    async def show(self, what: dict[str, Any]) -> None:
        """Show this in place of what is there."""
        await self._send(what)
