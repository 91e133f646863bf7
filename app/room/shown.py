"""The bar of a room as a page shows it: its question with the votes, its race, and the buttons."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from textwrap import shorten
from typing import Any
from urllib.parse import unquote_plus

from sgmcmc_lab.app.lesson.course import lesson_of
from sgmcmc_lab.app.room import race
from sgmcmc_lab.app.room.rooms import AWAY, Ask, RoomState
from sgmcmc_lab.lessons import LessonError
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.lesson import Question
from sgmcmc_lab.lessons.prose import as_html, without_paragraph
from sgmcmc_lab.samplers.targets import TARGETS

LONGEST_VALUES = 80
"""Characters of a target's parameters beside its title."""
ROWS = 10
"""The rows of a race's table."""
GONE = "This room is gone: its teacher closed it, its server was started again, or a day is over. The page continues without it, and enters it again if the teacher reopens it."
LEFT = "You have left the room. The experiment continues here."
ENTERING = "The server reruns your first sampler, with the same number of chains and gradients for everyone …"
Button = list[Any]
"""Its action, its label, and whether it is the primary button."""


def bar(
    room_state: RoomState, student: str, mine: int | None, buttons: Sequence[Button], said: str, *, maker: bool = False
) -> dict[str, Any]:
    """The whole bar: of the votes only what this page may see. ``mine`` is its own answer."""
    ask = _question(room_state.asks) if room_state.asks is not None else None
    return {
        "maker": maker,
        "students": room_state.students,
        "buttons": list(buttons),
        "said": said,
        "ask": _asked(room_state, *ask, mine, maker) if ask is not None else None,
        "race": _raced(room_state, student, maker) if room_state.race is not None else None,
    }


def outside(why: str, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """The bar of a page that is not in the room now."""
    leave: Button = ["leave", "Leave", False]
    return {"students": None, "buttons": [*buttons, leave], "ask": None, "race": None, "said": why, "maker": False}


def buttons_of_student(room_state: RoomState, *, following: bool) -> list[Button]:
    """The buttons of a page that follows, or has stopped following."""
    follow: Button = ["let_go", "Stop following", False] if following else ["follow", "Follow the teacher", True]
    enter: list[Button] = [["enter", "Enter my sampler", True]] if room_state.racing is not None else []
    return [follow, *enter, ["leave", "Leave", False]]


def after_leaving() -> dict[str, Any]:
    """The bar of a page that has left the room."""
    back: Button = ["back", "Come back to the room", True]
    return {"students": None, "buttons": [back], "ask": None, "race": None, "said": LEFT, "maker": False}


def entered(entry: Mapping[str, Any]) -> str:
    """The result of a student's sampler in a race, as a sentence."""
    cost = entry["tau"]
    draws = (
        "the cost of an independent draw is not known yet"
        if cost is None
        else f"{_digits(cost)} gradients for one independent draw"
    )
    return f"Yours: KS distance {_digits(entry['ks'])}, {draws}."


def is_past(said: str, before: RoomState | None, room_state: RoomState | None) -> bool:
    """Whether a sentence is of a race that has given way, or of a store that answers again."""
    numbers = [one.race.number if one is not None and one.race is not None else 0 for one in (before, room_state)]
    return said == AWAY or numbers[0] != numbers[1]


def _asked(
    room_state: RoomState, question: Question, order: Sequence[int], mine: int | None, maker: bool
) -> dict[str, Any]:
    ask = room_state.ask
    assert ask is not None
    seen = maker or ask.shown
    now, before = room_state.bars(room_state.votes), room_state.bars(room_state.before)
    options = [
        {
            "number": n,
            "html": _sentence(question.options[n - 1]),
            "right": ask.shown and n == question.answer,
            "reply": _sentence(question.reply(n)) if ask.shown and n == mine else "",
            "now": now[n - 1] if seen else None,
            "before": before[n - 1] if seen and ask.first else None,
        }
        for n in order
    ]
    return {"html": _sentence(question.ask), "options": options, "open": ask.open, "mine": mine}


def _raced(room_state: RoomState, student: str, maker: bool) -> dict[str, Any]:
    assert room_state.race is not None
    by = (
        "smallest KS distance leads" if room_state.race.by == "ks" else "fewest gradients for one independent draw lead"
    )
    says = f"<b>Race</b> on {escape(_named(room_state.race.target))}: each student's first sampler, {race.CHAINS} chains with {race.GRADIENTS:,} gradients each; the {by}."
    if room_state.race.over:
        says += " The race is over."
    elif not maker:
        says += " Choose a sampler and its settings on this page, then enter it."
    # The teacher's page opens a row in a tab of its own.
    rows = [
        [entry["title"], _digits(entry["ks"]), _digits(entry["tau"]), who == student, entry["link"] if maker else ""]
        for who, entry in room_state.ranking()[:ROWS]
    ]
    return {"says": says, "rows": rows}


def _named(target: str) -> str:
    """A target of a link by its title, with what is chosen of it in short, and its temperature."""
    named, _, heat = target.partition("&temperature=")
    key, _, chosen = unquote_plus(named).partition("(")
    values = chosen.removesuffix(")").replace(":", " ").replace(";", ", ")
    title = TARGETS[key].title if key in TARGETS else key
    at = f" at T = {heat.removesuffix('.0')}" if heat else ""
    return f"{title}{f' ({shorten(values, LONGEST_VALUES)})' if values else ''}{at}"


def _question(ask: Ask) -> tuple[Question, tuple[int, ...]] | None:
    """The question that is asked, with the order of its options; None where this server's lesson has another one."""
    try:
        lesson = lesson_of(ask.lesson)
    except LessonError:
        lesson = None
    question = lesson.steps[ask.step - 1].question if lesson is not None and ask.step <= len(lesson.steps) else None
    if lesson is None or question is None or len(question.options) != ask.options:
        return None
    return question, lesson.shuffled(ask.step)


@lru_cache(256)
def _sentence(text: str) -> str:
    return without_paragraph(as_html(text, mathml))


def _digits(value: float | None) -> str:
    return "not known yet" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
