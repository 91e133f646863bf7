"""Presenter mode: large type, nothing but the lesson and the views, one key for each thing to do; and the keys of a
step that is taken apart, which are there without it, too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import param
from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import ASSETS

_STRIP = """
.strip { position: fixed; left: 0; right: 0; bottom: 0; z-index: 1300; display: flex; flex-wrap: wrap; justify-content: center; gap: 0 6px;
  padding: 2px 8px; font: 15px/1.4 Roboto, sans-serif; background: #f2f4f7; color: #1f2933; border-top: 1px solid #8884; }
.strip[data-dark="true"] { background: #12161b; color: #e4e7eb; }
.strip[hidden], .strip button[hidden] { display: none; }
.strip button { font: inherit; color: inherit; background: none; border: 0; border-radius: 4px; padding: 3px 8px; cursor: pointer; }
.strip button:hover { background: #8883; }
.strip kbd { font: 600 13px/1.3 Roboto, sans-serif; border: 1px solid #8888; border-radius: 4px; padding: 0 6px; margin-right: 6px; }
@media print { .strip { display: none; } }
"""
SX = {
    "& .header": {"visibility": "hidden"},
    # The page's heading is there to be read.
    "& .header .title": {"visibility": "visible", "position": "absolute", "clipPath": "inset(50%)"},
    "& .main .MuiToolbar-root": {"display": "none"},
    "& .main-content": {"pb": "var(--strip, 34px)"},
}
"""The parts that the page's frame leaves out."""


class Presenter(JSComponent):
    """The keys of presenter mode, and the strip at the foot of the page that shows them."""

    on_screen = param.Boolean(False)
    lesson = param.Boolean(False, doc="Whether there are steps to go to.")
    dark = param.Boolean(False)
    slow = param.Boolean(False, doc="Whether a step is taken apart.")

    _esm = ASSETS / "present.js"
    _stylesheets = [_STRIP]

    def __init__(self, actions: Mapping[str, Callable[[], Any]], **params: Any):
        """``actions``: next, back, play, reset, picture, controls and leave; part, part_back, step and step_back."""
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed", **params)
        self._actions = dict(actions)

    def _handle_msg(self, message: Any) -> None:
        if isinstance(message, str) and message in self._actions:
            self._actions[message]()
