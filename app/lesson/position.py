"""A person's position in the course: lesson, step, answer, and whether all controls are free."""

import re

import param

from sgmcmc_lab.app.lesson.course import lesson_of, outlines
from sgmcmc_lab.app.lesson.rules import shows
from sgmcmc_lab.lessons import Lesson, LessonError, Step
from sgmcmc_lab.samplers.parameters import SpecError

SKIPPED = 0
"""The answer of somebody who did not want to predict."""
FIELDS = ("lesson", "step", "answer", "answers", "try")
"""The part of it that a link holds."""


class CoursePosition(param.Parameterized):
    """No lesson, or a step of one."""

    lesson = param.ClassSelector(class_=Lesson, default=None, allow_None=True)
    number = param.Integer(1, bounds=(1, None), doc="The step, counted from 1.")
    answer = param.Integer(None, allow_None=True, doc="The option that was chosen, counted from 1; 0 for skipped.")
    free = param.Boolean(False, doc="Whether the person has asked for all controls.")
    everything = param.Boolean(False, doc="Whether she has then asked for all views and the workbench, too.")

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[tuple[str, int], int] = {}

    @property
    def step(self) -> Step | None:
        """The step that is open."""
        return self.lesson.steps[self.number - 1] if self.lesson is not None else None

    @property
    def waiting(self) -> bool:
        """Whether a question must be answered before the experiment runs."""
        return self.step is not None and self.step.question is not None and self.answer is None and not self.free

    @property
    def restricted(self) -> bool:
        """Whether only the step's own controls are there."""
        return self.lesson is not None and not self.free

    def allows(self, name: str) -> bool:
        """Whether the step leaves this control, an address or a word, to the student."""
        if name == "workbench" and self.lesson is not None:
            return self.free and self.everything
        return not self.restricted or (self.step is not None and shows(self.step, name))

    def open(self, lesson: Lesson, number: int) -> None:
        """Another step."""
        with param.parameterized.batch_call_watchers(self):
            self.lesson, self.number, self.free, self.everything = lesson, number, False, False
            self.answer = self._answers.get((lesson.key, number))

    def reply(self, answer: int) -> None:
        """Answer the question, or skip it."""
        if self.lesson is None or self.step is None or not allows(self.step, answer):
            raise SpecError("answer", answer, "allowed is the number of one of the step's options, or 0")
        self.remember(self.lesson, self.number, answer)
        self.answer = answer

    def remember(self, lesson: Lesson, number: int, answer: int) -> None:
        """The answer to a step's question, for when the step is opened again."""
        self._answers[lesson.key, number] = answer

    def answers(self, lesson: str) -> dict[int, int]:
        """The answers that were given in a lesson, by step."""
        return {number: answer for (key, number), answer in self._answers.items() if key == lesson}

    def try_it(self) -> None:
        """Free all controls."""
        self.free = True

    def leave(self) -> None:
        """No lesson any more."""
        with param.parameterized.batch_call_watchers(self):
            self.lesson, self.number, self.answer, self.free, self.everything = None, 1, None, False, False

    def to_fields(self) -> dict[str, str]:
        """The link's part."""
        if self.lesson is None:
            return {}
        out = {"lesson": self.lesson.key, "step": str(self.number)}
        if self.answer is not None:
            out["answer"] = str(self.answer)
        others = [f"{n}.{a}" for n, a in sorted(self.answers(self.lesson.key).items()) if n != self.number]
        if others:
            out["answers"] = ",".join(others)
        return out | ({"try": "2" if self.everything else "1"} if self.free else {})


def find_step(fields: dict[str, str], messages: list[str]) -> tuple[Lesson, int] | None:
    """The step that a link names, and a sentence for what is not as it says."""
    if "lesson" not in fields:
        messages += [
            f"{name} = {fields[name][:40]!r}: it goes with a lesson, and the link names none."
            for name in FIELDS[1:]
            if name in fields
        ]
        return None
    try:
        lesson = lesson_of(fields["lesson"])
    except LessonError as error:
        messages.append(f"lesson = {fields['lesson'][:40]!r}: its file has an error. {error}")
        return None
    if lesson is None:
        # Appendices would make a long list longer.
        named = [key for key, outline in outlines().items() if not outline.title.startswith("Appendix: ")]
        messages.append(f"lesson = {fields['lesson'][:40]!r}: there is no such lesson; there are: {', '.join(named)}.")
        return None
    text, n = fields.get("step", "1"), len(lesson.steps)
    number = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0
    if not 1 <= number <= n:
        nearest = min(max(number, 1), n)
        messages.append(f"step = {text[:40]!r}: this lesson has the steps 1 to {n}; step {nearest} is shown instead.")
        number = nearest
    return lesson, number


def follow_link(position: CoursePosition, fields: dict[str, str]) -> list[str]:
    """Go where a link says. Returns a sentence for everything that is not as it says."""
    messages: list[str] = []
    found = find_step(fields, messages)
    if found is None:
        return messages
    lesson, number = found
    for text in [part for part in fields.get("answers", "").split(",") if part]:
        step, _, answer = text.partition(".")
        whole = re.fullmatch(r"[0-9]{1,3}\.[0-9]", text) and 1 <= int(step) <= len(lesson.steps)
        if whole and allows(lesson.steps[int(step) - 1], int(answer)):
            position.remember(lesson, int(step), int(answer))
        else:
            messages.append(
                f"answers = {text[:40]!r}: allowed is step.answer, such as 2.1 for the first option of step 2."
            )
    position.open(lesson, number)
    if "answer" in fields:
        text = fields["answer"]
        try:
            position.reply(int(text) if re.fullmatch(r"[0-9]", text) else -1)
        except SpecError as error:
            messages.append(str(SpecError("answer", text, error.allowed)))
    if fields.get("try", "0") not in ("0", "1", "2"):
        messages.append(f"try = {fields['try'][:40]!r}: allowed is one of 0, 1, 2; 0 is used instead.")
    position.free, position.everything = fields.get("try") in ("1", "2"), fields.get("try") == "2"
    return messages


def allows(step: Step, answer: int) -> bool:
    """Whether a step has a question with that answer."""
    return step.question is not None and SKIPPED <= answer <= len(step.question.options)
