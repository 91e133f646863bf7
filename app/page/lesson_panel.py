"""The panel of a lesson: text, question, controls, claims, and the ways on."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from bokeh.models import Div
from panel.custom import Child, JSComponent

from sgmcmc_lab.app.lesson.marks import Mark, marks, summary
from sgmcmc_lab.app.lesson.numbers import Numbers
from sgmcmc_lab.app.lesson.position import SKIPPED, CoursePosition
from sgmcmc_lab.app.lesson.progress import ProgressStore, news, outcome
from sgmcmc_lab.app.lesson.prose import as_html, as_words, in_line, paper
from sgmcmc_lab.app.page.measuring import Measuring
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.bundle import ASSETS
from sgmcmc_lab.app.views.theme import Theme, theme
from sgmcmc_lab.lessons import Lesson, Step
from sgmcmc_lab.lessons.glossary import Term

WIDTH = 390
"""The width of the panel beside the views, in pixels."""

BESIDE = f"""
:host {{ display: flex !important; flex-direction: row; align-items: flex-start; max-height: none !important; }}
.lesson {{ flex: 0 0 {WIDTH}px; box-sizing: border-box; position: sticky; top: 0; max-height: calc(100vh - 56px - var(--lost, 0px)); overflow-y: auto;
  border-right: 1px solid color-mix(in srgb, currentColor 18%, transparent); }}
.lesson.present {{ flex-basis: 30vw; max-height: calc(100vh - var(--strip, 34px) - 8px - var(--lost, 0px)); }}
.beside {{ flex: 1 1 0; min-width: 0; }}
.scroll-button {{ display: none; }}
:host(.free) {{ flex-direction: column; align-items: stretch; }}
.lesson.free {{ flex: none; position: static; max-height: none; border-right: none; }}
.lesson.free ~ .beside {{ flex: none; }}
@media (max-width: 899px) {{
  :host {{ flex-direction: column-reverse; align-items: stretch; }}
  :host(.guided) {{ --wide-height: 220px; }}
  .lesson, .lesson.present {{ flex: none; top: auto; bottom: 0; z-index: 5; max-height: 50vh; border-right: none;
    background: var(--mui-palette-background-paper, Canvas); border-top: 2px solid color-mix(in srgb, currentColor 30%, transparent); }}
  :host(.apart) .lesson {{ max-height: 40vh; }}
  :host(.free) .lesson {{ position: static; }}
  .beside {{ flex: none; }}
}}
@media print {{
  :host, .beside {{ display: block !important; }}
  .lesson {{ position: static !important; max-height: none !important; border: none !important; }}
}}
"""
"""The lesson beside the views; on a narrow page a sheet in the lower half of the screen, below which they scroll, and
lower where the parts of a step stand above the views.
"""

_TEXT = """
:host { position: relative; max-height: none !important; font-size: calc(var(--size, 1) * 15.5px); line-height: 1.5; overflow-wrap: anywhere; }
h2 { font-size: 1.3em; line-height: 1.25; margin: 0 0 .4em; }
p { margin: 0 0 .65em; } p:last-child { margin-bottom: 0; }
ul, ol { margin: 0 0 .65em; padding-left: 1.4em; }
table { border-collapse: collapse; margin: 0 0 .65em; } th, td { padding: 2px 8px; border-bottom: 1px solid #8884; text-align: left; }
code { font-size: .92em; } svg { max-width: 100%; } mjx-container[display="true"] svg { max-width: none; } a { color: inherit; }
mjx-container[display="true"], .MathJax { overflow-x: auto; overflow-y: hidden; }
.term { font-style: inherit; border-bottom: 1px dotted; cursor: help; }
.tip { display: none; position: absolute; left: 0; right: 0; z-index: 6; margin-top: 1.5em; padding: 6px 10px; border-radius: 4px;
  font-size: .92em; font-weight: 400; background: #37474f; color: #ffffff; }
.term:hover .tip, .term:focus .tip, .term:focus-within .tip { display: block; }
.live-number { font-weight: 600; font-variant-numeric: tabular-nums; }
.small { font-size: .88em; opacity: .8; } .where { font-size: .9em; opacity: .8; }
"""
_WAYS = """
.ways { position: sticky; bottom: 0; z-index: 2; padding: 4px 8px; background: var(--mui-palette-background-paper, Canvas); }
:host(:not(.free)) .ways { border-top: 1px solid #8883; align-self: stretch; }
.scroll-button { display: none; }
"""
"""The ways on stay in sight while the text is scrolled."""
_SLIM = """
:host { display: flex; flex-flow: row wrap; align-items: center; }
.head { flex: 1 1 280px; width: auto; } .ways { flex: 0 1 auto; width: auto; }
"""
"""The style of the panel in *Try it yourself*: a line above the page."""
_OPTION = """
.answer { display: block; width: 100%; text-align: left; font: inherit; color: inherit; background: transparent; cursor: pointer;
  border: 1.5px solid color-mix(in srgb, currentColor 35%, transparent); border-radius: 6px; padding: 6px 10px; }
.answer:hover:enabled, .answer:focus-visible { border-color: #1976d2; background: color-mix(in srgb, #1976d2 10%, transparent); }
.answer:disabled { cursor: default; }
.answer[data-state="right"] { border-color: #2e9e57; background: color-mix(in srgb, #2e9e57 16%, transparent); }
.answer[data-state="wrong"] { border-color: #d3473d; background: color-mix(in srgb, #d3473d 14%, transparent); }
.answer[data-state="other"] { opacity: .65; }
@media (forced-colors: active) { .answer[data-state="right"] { border-width: 4px; } .answer[data-state="wrong"] { border-style: dashed; } }
"""


class Anchor(JSComponent):
    """Where something new begins, which the panel scrolls to."""

    fresh = param.Boolean(False, doc="Whether it is new to the person.")

    _esm = ASSETS / "anchor.js"

    def __init__(self, **params: Any):
        super().__init__(height=0, margin=0, sizing_mode="stretch_width", **params)


class Option(JSComponent):
    """An answer that can be chosen."""

    content = Child()
    words = param.String(doc="The answer as a screen reader says it.")
    state = param.Selector(default="open", objects=["open", "right", "wrong", "other"])
    shown = param.Integer(0, doc="Counts how often it is scrolled to and given the focus.")

    _esm = ASSETS / "option.js"
    _stylesheets = [_OPTION]

    def __init__(self, chosen: Callable[[], None], **params: Any):
        super().__init__(**params)
        self._chosen = chosen

    def _handle_msg(self, message: Any) -> None:
        if message == "chosen" and self.state == "open":
            self._chosen()


class LessonPanel:
    """The widgets of the open step, and what its live claims say."""

    def __init__(
        self,
        state: AppState,
        controls: Any,
        go: Callable[[Lesson, int], None],
        go_to: Callable[[str], None],
        follow: Callable[[], str | None],
        contents: Callable[[], None],
        do_later: Callable[[Coroutine[Any, Any, None]], None],
    ):
        """``go`` opens a step, and ``go_to`` a lesson by its key; ``follow`` is the key of the lesson after this one;
        ``contents`` shows the list; what takes a while is left to ``do_later``.
        """
        self.state, self.controls = state, controls
        self._go, self._go_to, self._follow, self._contents = go, go_to, follow, contents
        self._do_later = do_later
        self.panel = pn.Column(visible=False, margin=0, css_classes=["lesson"], stylesheets=[_WAYS])
        self._divs: list[Div] = []
        self._standing = Div(text="")
        self.progress = ProgressStore()
        """Lets the browser note what is done."""
        self._reading: tuple[Any, list[Any], set[Term]] = (None, [], set())
        """The step, its head and text on the page, and the terms explained there; an answer does not change them."""
        self._explained: set[Term] = set()
        self._numbers = Numbers(state.experiment)
        self._answered = False
        self._withheld = False
        self.position.param.watch(lambda *_: self._refresh(), ["lesson", "number", "answer", "free"])
        state.param.watch(lambda *_: self._refresh(), ["dark", "present", "teacher"])
        state.param.watch(lambda event: self._numbers.follow(event.new), "experiment")
        self._refresh()

    @property
    def position(self) -> CoursePosition:
        """The person's position in the course."""
        position: CoursePosition = self.state.position
        return position

    @property
    def colours(self) -> Theme:
        """The theme that is on."""
        return theme(self.state.dark)

    def texts(self, spec: Any, runs: Sequence[Any]) -> list[tuple[str, str]]:
        """The check marks' texts now, by their model's id."""
        step, divs = self.position.step, self._divs
        if step is None or self.position.waiting or len(divs) != len(step.claims):
            return []
        found = marks(step, spec, runs)
        texts = [(div.id, mark.html(self.colours)) for div, mark in zip(divs, found, strict=True)]
        return [*texts, (self._standing.id, escape(summary(found))), *self._news(found)]

    def _news(self, found: Sequence[Mark]) -> list[tuple[str, str]]:
        """News for the browser to store: the answers given in this lesson, and the claims of this step that are met."""
        lesson, here = self.position.lesson, self.position.number
        if lesson is None:
            return []
        met = sum(mark.state == "holds" for mark in found)
        answers = {here: self.position.answer, **self.position.answers(lesson.key)}
        outcomes = {n: (outcome(lesson.steps[n - 1], answer), met if n == here else 0) for n, answer in answers.items()}
        return [(model, news(lesson.key, outcomes)) for model in self.progress.ids]

    def withhold(self, asked: bool) -> None:
        """Leave the step's question to the room, which answers it first; or take it back."""
        if asked != self._withheld:
            self._withheld = asked
            self._refresh()

    def next(self) -> None:
        """The next step, or after the last one the next lesson."""
        lesson, number = self.position.lesson, self.position.number
        if lesson is None:
            return
        if number < len(lesson.steps):
            self._go(lesson, number + 1)
        elif (following := self._follow()) is not None:
            self._go_to(following)
        else:
            self._contents()

    def back(self) -> None:
        """The step before."""
        if self.position.lesson is not None and self.position.number > 1:
            self._go(self.position.lesson, self.position.number - 1)

    # The contents

    def _refresh(self) -> None:
        lesson, step = self.position.lesson, self.position.step
        if lesson is None or step is None:
            self._divs = []
            self.panel.param.update(objects=[], visible=False)
            return
        if self.position.free:
            self._divs = []
            row = pn.Row(
                self._head(lesson), self._ways(lesson), stylesheets=[_SLIM], sizing_mode="stretch_width", margin=0
            )
            self.panel.param.update(objects=[row], visible=True, css_classes=["lesson", "free"], styles=self._size())
            return
        of = (lesson, step.number, self.state.present)
        if self._reading[0] != of:
            terms: set[Term] = set()
            self._numbers = Numbers(self.state.experiment)
            text = self._text(f"<h2>{in_line(step.title)}</h2>{as_html(step.text, terms, self._numbers.html)}")
            self._reading = (of, [Anchor(fresh=True), self._head(lesson), text, self._numbers], terms)
        parts: list[Any] = [*self._reading[1]]
        self._explained = set(self._reading[2])
        if step.question is not None:
            parts += self._question_parts(step)
        if not self.position.waiting:
            if step.watch:
                parts.append(
                    self._box(
                        "visibility", f"<b>Watch this.</b> {in_line(step.watch, self._explained, self._numbers.html)}"
                    )
                )
            if self.position.restricted and self.controls is not None:
                parts.append(self.controls.panel)
            parts += self._claims(step)
            parts += self._exercises(step)
        self._divs = self._divs if not self.position.waiting else []
        parts.append(self._ways(lesson))
        present = self.state.present
        self.panel.param.update(
            objects=parts,
            visible=True,
            css_classes=["lesson", "present"] if present else ["lesson"],
            styles=self._size(),
        )

    def _size(self) -> dict[str, str]:
        return {"--size": "1.4" if self.state.present else "1"}

    def _text(self, html: str, **options: Any) -> Any:
        margins = {"margin": (4, 12), **options}
        return pn.pane.HTML(html, disable_math=False, stylesheets=[_TEXT], sizing_mode="stretch_width", **margins)

    def _box(self, icon: str, html: str) -> Any:
        return self._text(
            html,
            margin=(6, 12),
            styles={
                "border-left": "4px solid #1976d2",
                "padding": "4px 10px",
                "background": "color-mix(in srgb, #1976d2 8%, transparent)",
            },
        )

    def _head(self, lesson: Lesson) -> Any:
        contents = pmui.IconButton(
            icon="toc", size="small", description="Lessons: the list of all of them", margin=(2, 2, 2, 6)
        )
        contents.on_click(lambda _: self._contents())
        leave = pmui.IconButton(
            icon="close", size="small", description="Leave the lesson; the experiment stays", margin=(2, 6, 2, 2)
        )
        leave.on_click(lambda _: self.position.leave())
        where = self._text(
            f"<span class='where'><b>{in_line(lesson.title)}</b> · step {self.position.number} of {len(lesson.steps)}</span>",
            margin=(6, 0),
        )
        return pn.Row(contents, where, leave, sizing_mode="stretch_width", margin=0, css_classes=["head"])

    def _question_parts(self, step: Step) -> list[Any]:
        question, answer, lesson = step.question, self.position.answer, self.position.lesson
        assert question is not None
        assert lesson is not None
        if self._withheld:
            return [
                self._text(
                    "<b>The room is asked this step's question.</b> Answer it at the top of the page.", margin=(8, 12)
                )
            ]
        parts: list[Any] = [
            self._text(f"<b>Before you run it:</b> {in_line(question.ask, self._explained)}", margin=(8, 12, 4, 12))
        ]
        for number in lesson.shuffled(step.number):
            text, state = question.options[number - 1], "open"
            if not self.position.waiting:
                # The chosen option and the right one stay in sight.
                if number in (answer, question.answer) and not any(isinstance(part, Anchor) for part in parts):
                    parts.append(Anchor(fresh=self._answered))
                state = "right" if number == question.answer else "wrong" if number == answer else "other"
            parts.append(
                Option(
                    partial(self.reply, number),
                    state=state,
                    words=as_words(text),
                    sizing_mode="stretch_width",
                    margin=(3, 12),
                    content=self._text(in_line(text), margin=0),
                )
            )
            if number == answer and question.reply(number):
                said = in_line(question.reply(number), self._explained)
                parts.append(
                    self._text(
                        said, margin=(0, 12, 6, 12), styles={"border-left": "4px solid #d3473d", "padding-left": "10px"}
                    )
                )
        if self.position.waiting:
            skip = pmui.Button(
                label="Skip",
                size="small",
                variant="text",
                margin=(0, 8),
                description="Skip: run it without a prediction.",
            )
            skip.on_click(lambda _: self.reply(SKIPPED))
            note = self._text("<span class='small'>The experiment waits for your answer.</span>", margin=(8, 12))
            parts.append(pn.Row(skip, note, sizing_mode="stretch_width", margin=0))
        else:
            verdict = "" if not answer else "<b>Right.</b> " if answer == question.answer else "<b>Not quite.</b> "
            parts.append(self._text(verdict + in_line(question.explanation, self._explained), margin=(4, 12, 8, 12)))
            self._answered = False
        return parts

    def show_question(self) -> None:
        """Scroll to the step's question, and give its first answer the focus."""
        options = [part for part in self.panel.objects if isinstance(part, Option)]
        if options:
            options[0].shown += 1

    def reply(self, answer: int) -> None:
        """Answer the question, or skip it, and let the experiment run."""
        self._answered = True
        self.position.reply(answer)
        self.state.playing = True

    def _claims(self, step: Step) -> list[Any]:
        self._divs = [
            Div(
                text="",
                sizing_mode="stretch_width",
                margin=(0, 12, 2, 12),
                styles={"font-size": f"{14 * (1.4 if self.state.present else 1):g}px"},
            )
            for _ in step.claims
        ]
        if not step.claims:
            return []
        how = "checked live" if any(claim.live for claim in step.claims) else "from separate runs"
        parts: list[Any] = [self._text(f"<b>Claims</b> <span class='small'>{how}</span>", margin=(10, 12, 2, 12))]
        for claim, div, mark in zip(step.claims, self._divs, marks(step, None, []), strict=True):
            div.text = (Mark("pending") if claim.live else mark).html(self.colours)
            parts.append(
                self._text(in_line(claim.says, self._explained) + paper(claim, in_line), margin=(6, 12, 0, 12))
            )
            parts.append(pn.pane.Bokeh(div, sizing_mode="stretch_width", margin=0))
        if not all(claim.live for claim in step.claims):
            assert self.position.lesson is not None
            command = f"python -m sgmcmc_lab.lessons {self.position.lesson.key}"
            parts.append(Measuring(step, self.state.lane_titles(), self.colours, command, self._do_later).panel)
        return parts

    def _exercises(self, step: Step) -> list[Any]:
        """The task that remains; for the teacher with solutions and a note."""
        parts: list[Any] = []
        for number, exercise in enumerate(step.exercises, 1):
            html = f"<b>Exercise {number}.</b> {in_line(exercise.text, self._explained)}"
            if self.state.teacher:
                link = escape(f"?{exercise.experiment.to_query()}")
                html += f"<br><b>Solution.</b> {in_line(exercise.solution, self._explained)} <a href='{link}'>Open the experiment</a>"
            parts.append(self._text(html, margin=(8, 12)))
        if step.teacher and self.state.teacher:
            parts.append(self._box("school", f"<b>For the teacher.</b> {as_html(step.teacher, self._explained)}"))
        return parts

    def _ways(self, lesson: Lesson) -> Any:
        last = self.position.number == len(lesson.steps)
        back = pmui.Button(
            label="Back",
            icon="arrow_back",
            size="small",
            variant="outlined",
            disabled=self.position.number == 1,
            margin=(6, 4),
        )
        back.on_click(lambda _: self.back())
        following = self._follow() if last else None
        label = "Next" if not last else "Next lesson" if following is not None else "All lessons"
        forward = pmui.Button(label=label, icon="arrow_forward", size="small", variant="contained", margin=(6, 4))
        forward.on_click(lambda _: self.next())
        free = pmui.Button(
            label="Try it yourself",
            icon="tune",
            size="small",
            variant="outlined",
            margin=(6, 4),
            description="Try it yourself: all controls, on this experiment.",
        )
        if self.position.free:
            free.param.update(
                label="Back to the step",
                icon="undo",
                description="Back to the step: its own experiment from the beginning, and its controls.",
            )
        free.on_click(
            lambda _: self._go(lesson, self.position.number) if self.position.free else self.position.try_it()
        )
        # The verdict on the claims stands beside the button for the next step, wherever the text is scrolled to.
        self._standing = Div(
            text="", sizing_mode="stretch_width", styles={"font-size": f"{13 * (1.4 if self.state.present else 1):g}px"}
        )
        standing = (
            [pn.pane.Bokeh(self._standing, sizing_mode="stretch_width", margin=(2, 4, 0, 4))] if self._divs else []
        )
        return pn.Column(
            *standing, pn.FlexBox(back, free, forward, margin=0, gap="2px"), margin=0, css_classes=["ways"]
        )
