"""A person's progress in the lessons. The browser keeps it; the server only tells it what is new."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import panel as pn
import param
from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import ASSETS
from sgmcmc_lab.lessons import Step

NONE, SKIPPED, WRONG, RIGHT = "none", "skipped", "wrong", "right"
"""The outcome of a step's question; none where it has no question, or no answer yet."""


class ProgressStore(JSComponent):
    """Lets the browser note what is new."""

    text = param.String(doc="The news, as JSON.")
    lessons = param.List([], doc="The lessons of a list that shows what is done; empty where nothing is shown.")

    _esm = ASSETS / "progress.js"

    def __init__(self, **params: Any):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, "sizing_mode": "fixed", **params})
        self._document = pn.state.curdoc

    @property
    def ids(self) -> list[str]:
        """The ids of the models that hold the text, for a message that changes the text alone."""
        data = None if self._document is None else self._document.get_model_by_name(self.name)
        return [] if data is None else [data.id]


def news(lesson: str, steps: Mapping[int, tuple[str, int]]) -> str:
    """The text that notes the answer to some steps' questions, and how many of their claims were met."""
    return json.dumps({"lesson": lesson, "steps": {str(number): list(found) for number, found in steps.items()}})


def outcome(step: Step, answer: int | None) -> str:
    """The outcome of the question of a step."""
    if step.question is None or answer is None:
        return NONE
    return SKIPPED if not answer else RIGHT if answer == step.question.answer else WRONG


class Contents(ProgressStore):
    """The list of lessons, with what is done of each; a click says which was meant."""

    _stylesheets = [
        """
:host { width: 100%; }
.contents { list-style: none; margin: 0; padding: 0; font: 15px/1.4 Roboto, sans-serif; }
.contents button { display: flex; gap: 14px; width: 100%; text-align: left; font: inherit; color: inherit; background: transparent; border: 0;
  border-radius: 6px; padding: 8px 10px; cursor: pointer; }
.contents button:hover, .contents button:focus-visible { background: color-mix(in srgb, currentColor 10%, transparent); }
.number { flex: 0 0 34px; height: 34px; line-height: 34px; border-radius: 50%; text-align: center; font-weight: 600;
  background: color-mix(in srgb, currentColor 16%, transparent); }
.number.done { background: #1b7a3d; color: #ffffff; }
.texts { display: flex; flex-direction: column; min-width: 0; }
.title { font-size: 16px; } .about { opacity: .8; } .progress { font-weight: 600; }
"""
    ]

    def __init__(self, chosen: Callable[[int], None], **params: Any):
        super().__init__(width=None, height=None, sizing_mode="stretch_width", **params)
        self._chosen = chosen

    def look_again(self) -> None:
        """Show what is done by now."""
        self._send_msg(None)

    def _handle_msg(self, message: Any) -> None:
        if type(message) is int and 0 <= message < len(self.lessons):
            self._chosen(message)
