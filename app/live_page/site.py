"""The course as a folder of live pages: every lesson, a start page, and BokehJS once; it opens from a disk, too."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from string import ascii_uppercase

from app.live_page.document import ASSETS, BOKEH, LIVE_SCRIPT, document, live_script, script_of
from app.state import AppState
from lessons.formulas import mathml
from lessons.handout import filled_text, sentence, terms
from lessons.lesson import Lesson, Step
from lessons.prose import as_html
from lessons.scripts import policy
from samplers.output import written
from samplers.parameters import SpecError
from samplers.wasm import description
from samplers.wasm.objects import CompileError, objects

MOST_DATA = 1_500_000
"""Bytes of a target's data that a page may hold: the whole course is no more than 15 MB."""
RECORDED = "This step has a model of data, or more data than a page should hold: open the lesson in the lab."


def lesson_page(lesson: Lesson, beside: bool = False, home: str = "") -> str:
    """A lesson as one HTML file whose experiments on densities move. Raises :class:`SpecError`."""
    states = [_state(lesson, step) for step in lesson.steps]
    steps = "".join(_step(lesson, step, states[i] is not None) for i, step in enumerate(lesson.steps))
    back = f'<a href="{escape(home)}">All lessons</a>' if home else ""
    walk = (
        '<nav id="walk" aria-label="Steps"><button type="button" id="back">Back</button> <span id="place"></span> '
        f'<button type="button" id="next">Next</button> {back}</nav>'
    )
    return document(
        lesson.title,
        states,
        f"{steps}{walk}<details id='terms'><summary>Terms</summary>{terms(lesson)}</details>",
        beside,
    )


def write_site(lessons: Sequence[Lesson], folder: Path, progress: Callable[[int, int, str], None]) -> list[str]:
    """Write every lesson and a start page into a folder; return why lessons are not among them, a sentence each.

    ``progress(done, total, what)`` is called before each function that is compiled and before each lesson. Raises
    :class:`~samplers.parameters.SpecError` where a file cannot be written.
    """
    # In one process, which takes seconds to begin.
    specs = [
        run for lesson in lessons for step in lesson.steps if _is_live(step) and step.spec for run in step.spec.runs()
    ]
    functions = {id(one): one for spec in specs for one in description.functions(spec)}
    try:
        objects(functions.values(), lambda done, total, name: progress(done, total, f"compiling {name}"))
    except CompileError as error:
        raise SpecError("site", str(folder), str(error)) from error
    problems, listed = [], []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError("site", str(folder), f"it cannot be made: {(error.strerror or str(error)).lower()}") from None
    for component in BOKEH:
        _write(folder / f"{component}.js", script_of(component))
    _write(folder / LIVE_SCRIPT, live_script())
    for done, lesson in enumerate(lessons):
        progress(done, len(lessons), lesson.title)
        name = f"{lesson.key}.html"
        try:
            _write(folder / name, lesson_page(lesson, True, "index.html"))
        except SpecError as error:
            problems.append(f"{lesson.title}: {error}")
            continue
        listed.append((name, lesson))
    _write(folder / "index.html", _index(listed))
    return problems


def _write(path: Path, text: str) -> None:
    with written(path) as part:
        part.write_text(text, encoding="utf-8")


def _index(listed: Sequence[tuple[str, Lesson]]) -> str:
    style = (ASSETS / "live" / "page.css").read_text(encoding="utf-8")
    items = "".join(
        f'<li><a href="{escape(name)}">{sentence(lesson.title)}</a> <span class="small">{lesson.minutes} minutes</span><br>{sentence(lesson.summary)}</li>'
        for name, lesson in listed
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy("")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SG-MCMC Lab: the course</title>
<style>{style}</style>
</head>
<body>
<main class="index">
<h1>SG-MCMC Lab: the course</h1>
<p>Lessons on stochastic-gradient MCMC. Each one runs in this page: nothing is installed, and nothing is sent anywhere.</p>
<ol>{items}</ol>
</main>
</body>
</html>
"""


def _is_live(step: Step) -> bool:
    """Whether a step has an experiment on a density whose data are few enough for a file."""
    if step.spec is None or step.spec.of_model:
        return False
    return step.spec.make_target().sampled.packed().nbytes <= MOST_DATA


def _state(lesson: Lesson, step: Step) -> AppState | None:
    """What the page shows of a step; None where it has no experiment on a density."""
    if not _is_live(step):
        return None
    assert step.spec is not None
    state = AppState(experiment=step.spec)
    state.place.open(lesson, step.number)
    state.views = list(step.views) or state.views
    state.coordinate = int(step.page.get("coordinate", state.coordinate + 1)) - 1
    return state


def _step(lesson: Lesson, step: Step, live: bool) -> str:
    parts = [f"<h2>{step.number}. {sentence(step.title)}</h2>", as_html(filled_text(step.text, step), mathml)]
    if step.question is not None:
        order = lesson.shuffled(step.number)
        name = f"question-{step.number}"
        options = "".join(
            f'<li><label><input type="radio" name="{name}"> {sentence(step.question.options[number - 1])}</label></li>'
            for number in order
        )
        right = ascii_uppercase[order.index(step.question.answer)]
        parts.append(
            f"<div class='question'><p><b>Before you look:</b> {sentence(step.question.ask)}</p><ol type='A'>{options}</ol>"
            f"<details><summary>Answer</summary><p><b>{right}.</b> {sentence(step.question.why)}</p></details></div>"
        )
    if step.watch:
        parts.append(f"<p><b>Watch this.</b> {sentence(filled_text(step.watch, step))}</p>")
    if step.spec is not None and not live:
        parts.append(f"<p class='small'>{RECORDED}</p>")
    exercises = "".join(f"<p><b>Exercise {n}.</b> {sentence(one.text)}</p>" for n, one in enumerate(step.exercises, 1))
    return f"<section class='text' data-step='{step.number}'>{''.join(parts)}{exercises}</section>"
