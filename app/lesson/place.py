"""Where a person is in the course: lesson, step, answer, and whether all controls are free."""

import re
from typing import Any
from urllib.parse import parse_qsl

import param

from app.lesson.course import library, of_study
from app.lesson.rules import general
from lessons import Lesson, Step
from samplers.parameters import SpecError

SKIPPED = 0
"""The answer of somebody who did not want to predict."""
FIELDS = ("lesson", "step", "answer", "try")
"""What a link holds of it."""


class Place(param.Parameterized):
    """No lesson, or a step of one."""

    lesson = param.ClassSelector(class_=Lesson, default=None, allow_None=True)
    number = param.Integer(1, bounds=(1, None), doc="The step, counted from 1.")
    answer = param.Integer(None, allow_None=True, doc="The option that was chosen, counted from 1; 0 for skipped.")
    free = param.Boolean(False, doc="Whether the person has asked for all controls.")

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[tuple[str, int], int] = {}

    @property
    def step(self) -> Step | None:
        """The step that is open."""
        return self.lesson.steps[self.number - 1] if self.lesson is not None else None

    @property
    def waiting(self) -> bool:
        """Whether there is a question to be answered before anything runs."""
        return self.step is not None and self.step.question is not None and self.answer is None and not self.free

    @property
    def restricted(self) -> bool:
        """Whether only the step's own controls are there."""
        return self.lesson is not None and not self.free

    def allows(self, name: str) -> bool:
        """Whether the step leaves this control, an address or a word, to the student."""
        return not self.restricted or (self.step is not None and bool({name, general(name)} & set(self.step.controls)))

    def open(self, lesson: Lesson, number: int) -> None:
        """Another step."""
        with param.parameterized.batch_call_watchers(self):
            self.lesson, self.number, self.free = lesson, number, False
            self.answer = self._answers.get((lesson.key, number))

    def reply(self, answer: int) -> None:
        """Answer the question, or skip it."""
        question = self.step.question if self.step is not None else None
        if self.lesson is None or question is None or not SKIPPED <= answer <= len(question.options):
            raise SpecError("answer", answer, "allowed is the number of one of the step's options, or 0")
        self._answers[self.lesson.key, self.number] = answer
        self.answer = answer

    def try_it(self) -> None:
        """Free all controls."""
        self.free = True

    def leave(self) -> None:
        """No lesson any more."""
        with param.parameterized.batch_call_watchers(self):
            self.lesson, self.number, self.answer, self.free = None, 1, None, False

    def to_fields(self) -> dict[str, str]:
        """The link's part."""
        if self.lesson is None:
            return {}
        out = {"lesson": self.lesson.key, "step": str(self.number)}
        if self.answer is not None:
            out["answer"] = str(self.answer)
        return out | ({"try": "1"} if self.free else {})


def find(fields: dict[str, str], messages: list[str]) -> tuple[Lesson, int] | None:
    """The step that a link names, and a sentence for what is not as it says."""
    if "lesson" not in fields:
        messages += [
            f"{name} = {fields[name][:40]!r}: it goes with a lesson, and the link names none."
            for name in FIELDS[1:]
            if name in fields
        ]
        return None
    lessons = library().lessons
    lesson = lessons.get(fields["lesson"])
    if lesson is None:
        messages.append(
            f"lesson = {fields['lesson'][:40]!r}: there is no such lesson; there are: {', '.join(lessons)}."
        )
        return None
    text, n = fields.get("step", "1"), len(lesson.steps)
    number = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0
    if not 1 <= number <= n:
        nearest = min(max(number, 1), n)
        messages.append(f"step = {text[:40]!r}: this lesson has the steps 1 to {n}; step {nearest} is shown instead.")
        number = nearest
    return lesson, number


def read(place: Place, fields: dict[str, str], messages: list[str]) -> None:
    """Go where a link says."""
    found = find(fields, messages)
    if found is None:
        return
    place.open(*found)
    if "answer" in fields:
        text = fields["answer"]
        try:
            place.reply(int(text) if re.fullmatch(r"[0-9]", text) else -1)
        except SpecError as error:
            messages.append(str(error))
    if fields.get("try", "0") not in ("0", "1"):
        messages.append(f"try = {fields['try'][:40]!r}: allowed is one of 0, 1; 0 is used instead.")
    place.free = fields.get("try") == "1"


def opens_study(arguments: dict[str, Any]) -> bool:
    """Whether a link, by the arguments of its request, opens the page of studies."""
    fields = {name: values[-1].decode(errors="replace") for name, values in arguments.items() if values}
    found = find(fields, [])
    return of_study(*found) if found is not None else "model" in fields


def fields_of(query: str) -> dict[str, str]:
    """The fields of a link, each once; none of a link that is far too long."""
    return dict(parse_qsl(query.lstrip("?"), keep_blank_values=True)) if len(query) < 10_000 else {}
