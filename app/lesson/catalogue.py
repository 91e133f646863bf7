"""The list of lessons, and what is wrong with those that did not load."""

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.lesson.course import known_problems, outlines
from sgmcmc_lab.app.lesson.progress import Contents
from sgmcmc_lab.app.lesson.prose import as_words
from sgmcmc_lab.lessons.glossary import glossary
from sgmcmc_lab.lessons.outline import Outline
from sgmcmc_lab.lessons.paths import paths


class Catalogue:
    """A dialog that is made when it is first asked for."""

    def __init__(self, go_to: Callable[[str], None], teacher: Callable[[], bool] = lambda: False):
        """``go_to`` opens a lesson by its key; ``teacher`` says whether the teacher's own is shown."""
        self._go_to, self._teacher = go_to, teacher
        self.panel = pn.Column(margin=0, width=0, height=0, sizing_mode="fixed")
        self._dialog: Any = None
        self._shown: tuple[dict[str, Outline], tuple[str, ...]] = ({}, ())

    def open(self) -> None:
        """Show the list as the files are now, and what is wrong with those that have been read."""
        if self._dialog is None:
            self._intro, self._ways, self._broken = _html(), _folded("", _WAYS), _html(css_classes=["lesson-problems"])
            self._menu = Contents(self._chosen)
            self._dialog = pmui.Dialog(
                self._intro,
                self._ways,
                terms(),
                self._broken,
                self._menu,
                title="Lessons",
                title_variant="h5",
                show_close_button=True,
                close_on_click=True,
                open=True,
                width_option="md",
                sizing_mode="stretch_width",
            )
            self._fill()
            self.panel.objects = [self._dialog]
        else:
            self._fill()
            self._menu.look_again()
            self._dialog.open = True

    def update(self) -> None:
        """Update the list on the page if more is known about the files than when the list was made."""
        if self._shown != (outlines(), known_problems()):
            self._fill()

    def _fill(self) -> None:
        # The dialog's children stay: one whose children are exchanged while it is drawn stays empty.
        self._shown = known, problems = outlines(), known_problems()
        minutes = sum(lesson.minutes for lesson in known.values())
        self._intro.object = f"Each step is a text, an experiment that runs beside it, and claims that are checked as it runs. The course takes about {hours(minutes)} in all."
        self._ways.object = ways(known) if self._teacher() else ""
        # Empty parts stay visible: Panel's HTML view fails where one is shown again before it is drawn.
        self._broken.object = broken(problems)
        self._menu.lessons = [item(lesson, known) for lesson in known.values()]

    def _chosen(self, number: int) -> None:
        self._dialog.open = False
        self._go_to(self._menu.lessons[number]["key"])


def hours(minutes: int) -> str:
    """A time in hours, to the half: 6½ hours."""
    halves = max(round(minutes / 30), 1)
    whole = "½" if halves == 1 else f"{halves // 2}{'½' * (halves % 2)}"
    return f"{whole} hour{'s' if halves > 2 else ''}"


def ways(known: Mapping[str, Outline]) -> str:
    """The teacher's paths through the course: each lecture with its steps and their minutes."""
    html = ""
    for path in paths():
        html += f"<details><summary><b>{escape(path.title)}</b></summary><p>{escape(path.says)}</p>"
        for lecture in path.lectures:
            listed = "".join(
                f"<li>{stop.minutes} min: <a href='?lesson={stop.lesson}&amp;step={stop.step}&amp;teacher=1'>{escape(as_words(known[stop.lesson].steps[stop.step - 1].title))}</a>"
                f" <span class='of'>{escape(as_words(known[stop.lesson].title))}, step {stop.step}</span></li>"
                for stop in lecture.stops
            )
            html += f"<p><b>{escape(lecture.title)}</b>, {lecture.minutes} minutes</p><ol>{listed}</ol>"
        html += "</details>"
    return html


def terms() -> Any:
    """The glossary, which opens where it is asked for."""
    listed = "".join(
        f"<dt><b>{escape(term.name)}</b></dt><dd>{escape(term.says)} <a href='{escape(term.link)}'>See its introduction</a></dd>"
        for term in glossary()
    )
    html = f"<details><summary><b>Glossary</b>: {len(glossary())} terms, each in a sentence</summary><dl>{listed}</dl></details>"
    return _folded(html, "dd { margin: 0 0 8px 0; }")


_WAYS = "ol { margin: 0 0 8px 0; padding-left: 1.8em; } p { margin: 6px 0 2px 0; } .of { opacity: .8; }"


def _folded(html: str, style: str) -> Any:
    """A part that opens where it is asked for."""
    return _html(html, stylesheets=[f"summary {{ cursor: pointer; }} a {{ color: inherit; }} {style}"])


def _html(html: str = "", **more: Any) -> Any:
    return pn.pane.HTML(html, sizing_mode="stretch_width", margin=(0, 10, 6, 10), styles={"font-size": "15px"}, **more)


def item(lesson: Outline, known: Mapping[str, Outline]) -> dict[str, Any]:
    """A lesson's entry in the list, with its outstanding steps."""
    steps = [{"question": step.question, "claims": step.live_claims} for step in lesson.steps]
    return {"key": lesson.key, "title": as_words(lesson.title), "about": about(lesson, known), "steps": steps}


def about(lesson: Outline, known: Mapping[str, Outline]) -> str:
    """Minutes, summary and what comes before."""
    steps = "1 step" if len(lesson.steps) == 1 else f"{len(lesson.steps)} steps"
    needs = ", ".join(known[key].title if key in known else key for key in lesson.needs)
    text = f"{lesson.minutes} minutes, {steps}. {lesson.summary}"
    return as_words(f"{text} Needs: {needs}." if needs else text)


def broken(problems: tuple[str, ...]) -> str:
    """A message with every problem; empty where there is none."""
    if not problems:
        return ""
    listed = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return (
        "<div style='border-left:4px solid #d3473d;padding:4px 10px;font-size:14px;overflow-wrap:anywhere'>"
        f"<b>Some lesson files have errors:</b><ul style='margin:4px 0;padding-left:1.2em'>{listed}</ul></div>"
    )
