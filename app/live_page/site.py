"""The course as a folder of live pages: every lesson, a start page, and BokehJS once. It also opens from a disk."""

import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from sgmcmc_lab.app.live_page import lesson as lesson_part
from sgmcmc_lab.app.live_page import sweeping
from sgmcmc_lab.app.live_page.document import ASSETS, BOKEH, LIVE_SCRIPT, document, live_script, script_of
from sgmcmc_lab.app.page.bundle import bundle
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons.handout import sentence, terms
from sgmcmc_lab.lessons.lesson import Lesson, Step
from sgmcmc_lab.lessons.scripts import policy
from sgmcmc_lab.samplers.compile.wasm.objects import CompileError, objects
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.output import written
from sgmcmc_lab.samplers.parameters import SpecError

MOST_DATA = 1_500_000
"""Bytes of a target's data that a page may hold, so that the whole course has at most 15 MB."""


def lesson_page(lesson: Lesson, beside: bool = False, home: str = "") -> str:
    """A lesson as one HTML file whose experiments on densities run. Raises :class:`SpecError`."""
    states = [_state(lesson, step) for step in lesson.steps]
    live = [state is not None for state in states]
    steps = "".join(lesson_part.step_html(lesson, step, moves) for step, moves in zip(lesson.steps, live, strict=True))
    back = f'<a href="{escape(home)}">All lessons</a>' if home else ""
    walk = (
        '<nav id="walk" aria-label="Steps"><button type="button" id="back">Back</button> <span id="place"></span> '
        f'<button type="button" id="next">Next</button> {back} <span id="done" class="small"></span></nav>'
    )
    return document(
        lesson.title,
        states,
        f"{steps}{walk}<details id='terms'><summary>Terms</summary>{terms(lesson)}</details>",
        beside,
        lesson=lesson_part.described(lesson, states),
        more=lesson_part.specs(lesson, states),
    ).text


def write_site(lessons: Sequence[Lesson], folder: Path, progress: Callable[[int, int, str], None]) -> list[str]:
    """Write every lesson and a start page into a folder; return a sentence for each lesson that cannot be written.

    ``progress(done, total, what)`` is called before each function is compiled and before each lesson. Raises
    :class:`~samplers.parameters.SpecError` where a file cannot be written.
    """
    # In one process, because each takes seconds to start.
    live = [step for lesson in lessons for step in lesson.steps if _is_live(step)]
    specs = [run for step in live if step.spec is not None for run in (*step.spec.runs(), *sweeping.specs(step))]
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
        f'<li><a href="{escape(name)}">{sentence(lesson.title)}</a> <span class="small">{lesson.minutes} minutes</span><br>{sentence(lesson.summary)}'
        f'<span class="done small" id="done-{lesson.key}"></span></li>'
        for name, lesson in listed
    )
    done = json.dumps([lesson_part.listed(lesson, [_is_live(step) for step in lesson.steps]) for _, lesson in listed])
    script = f"<script>{bundle('live/index.js')}</script>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SG-MCMC Lab: the course</title>
<style>{style}</style>
</head>
<body>
<main class="index">
<h1>SG-MCMC Lab: the course</h1>
<p>Lessons on stochastic-gradient MCMC. Each one runs in your browser: nothing is installed, and nothing is sent anywhere.</p>
<ol>{items}</ol>
</main>
<script type="application/json" id="lessons">{done}</script>
{script}
</body>
</html>
"""


def _is_live(step: Step) -> bool:
    """Whether a step has an experiment on a density whose data are small enough for a file, and whose fit moves."""
    if step.spec is None or step.spec.of_model:
        return False
    target = step.spec.make_target()
    fit = target.fit() if "fit" in step.views else None
    if fit is not None and fit.formula is None:
        return False
    return target.sampled.without_draws().nbytes <= MOST_DATA


def _state(lesson: Lesson, step: Step) -> AppState | None:
    """The page's state for a step; None without an experiment on a density."""
    if not _is_live(step):
        return None
    assert step.spec is not None
    state = AppState(experiment=step.spec)
    state.place.open(lesson, step.number)
    shown = state.views
    state.follow(step)
    state.views = state.views or shown
    return state
