"""The course as a folder: live pages of every lesson, one of all densities, a glossary, handouts, a start page, and
BokehJS and the engine once. It also opens from a disk.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from html import escape
from multiprocessing import get_context
from pathlib import Path

from sgmcmc_lab.app.live_page import free
from sgmcmc_lab.app.live_page import lesson as lesson_part
from sgmcmc_lab.app.live_page.document import (
    ASSETS,
    BOKEH,
    ICON,
    ICON_SVG,
    LIVE_SCRIPT,
    document,
    engine_file,
    engine_script,
    live_script,
    script_of,
)
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.bundle import bundle
from sgmcmc_lab.lessons.glossary import Term, glossary
from sgmcmc_lab.lessons.handout import handout, sentence, terms
from sgmcmc_lab.lessons.lesson import Lesson, Step
from sgmcmc_lab.lessons.scripts import policy
from sgmcmc_lab.samplers.interrupts import begin_worker
from sgmcmc_lab.samplers.output import written
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS

HOME, GLOSSARY = "index.html", "glossary.html"
MANIFEST, ICON_FILE, OFFLINE = "site.webmanifest", "icon.svg", "offline.js"
_MANIFEST = {
    "name": "SG-MCMC Lab",
    "start_url": HOME,
    "display": "minimal-ui",
    "icons": [{"src": ICON_FILE, "sizes": "any", "type": "image/svg+xml"}],
}
MOST_DATA = 1_500_000
"""Bytes of a target's data that a page may hold, so that the whole course has at most 13 MB."""


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
    """Write every lesson, the free lab, a glossary, handouts and a start page into a folder; return a sentence for each
    page that cannot be written.

    ``progress(done, total, what)`` is called before each page. Raises
    :class:`~samplers.parameters.SpecError` where a file cannot be written.
    """
    problems: list[str] = []
    listed: list[Lesson] = []
    sizes: dict[str, int] = {}

    def write(name: str, text: str) -> None:
        with written(folder / name) as part:
            part.write_text(text, encoding="utf-8")
        sizes[name] = len(text.encode())

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError("site", str(folder), f"it cannot be made: {(error.strerror or str(error)).lower()}") from None
    for component in BOKEH:
        write(f"{component}.js", script_of(component))
    write(LIVE_SCRIPT, live_script())
    write(engine_file(), engine_script())
    keys, scripts = free.densities(), []
    total = len(lessons) + len(keys)
    pool = _workers()
    try:
        pages = [(lesson, pool.submit(lesson_page, lesson, True, HOME)) for lesson in lessons]
        steps = [(TARGETS[key].title, pool.submit(free.script, key)) for key in keys]
        for done, (lesson, made) in enumerate(pages):
            progress(done, total, lesson.title)
            try:
                write(f"{lesson.key}.html", made.result())
            except SpecError as error:
                problems.append(f"{lesson.title}: {error}")
                continue
            write(_handout_name(lesson), handout(lesson, {}))
            listed.append(lesson)
        for done, (title, step) in enumerate(steps, len(lessons)):
            progress(done, total, title)
            try:
                scripts.append(step.result())
            except SpecError as error:
                problems.append(f"{title}: {error}")
                continue
            write(scripts[-1].name, scripts[-1].text)
    finally:
        # Ctrl-C waits for the pages that are begun, and for no other.
        pool.shutdown(cancel_futures=True)
    if scripts:
        write(free.PAGE, free.page(scripts, HOME))
    write(GLOSSARY, _glossary(listed))
    write(ICON_FILE, ICON_SVG)
    write(MANIFEST, json.dumps(_MANIFEST))
    write(HOME, _index(listed, [one.key for one in scripts], sum(sizes.values())))
    write(OFFLINE, bundle("live/offline.js").replace("FILES = []", f"FILES = {json.dumps(['./', *sizes])}"))
    return problems


def _workers() -> Executor:
    """Processes that make pages, one on each processor."""
    return ProcessPoolExecutor(os.cpu_count() or 1, get_context("spawn"), begin_worker)


def _handout_name(lesson: Lesson) -> str:
    return f"{lesson.key}-handout.html"


def _index(listed: Sequence[Lesson], densities: Sequence[str], size: int) -> str:
    """The start page of a course whose files have ``size`` bytes in all."""
    links = ", ".join(f'<a href="{escape(free.address(key))}">{escape(TARGETS[key].title)}</a>' for key in densities)
    free_lab = (
        f"<h2>Free lab</h2><p>Run any sampler with any gradient that fits. Choose a density: {links}.</p>"
        if links
        else ""
    )
    items = "".join(
        f'<li><a href="{escape(lesson.key)}.html">{sentence(lesson.title)}</a> <span class="small">{lesson.minutes} minutes, '
        f'<a href="{escape(_handout_name(lesson))}">handout</a></span><br>{sentence(lesson.summary)}'
        f'<span class="done small" id="done-{lesson.key}"></span></li>'
        for lesson in listed
    )
    done = json.dumps([lesson_part.listed(lesson, [_is_live(step) for step in lesson.steps]) for lesson in listed])
    return _plain(
        "SG-MCMC Lab: the course",
        "<p>Lessons on stochastic-gradient MCMC. Each one runs in your browser: nothing is installed, and nothing is sent anywhere.</p>"
        f"<ol>{items}</ol>{free_lab}"
        f'<p><a href="{GLOSSARY}">Glossary</a></p>'
        f'<p><button type="button" id="keep" hidden>Save the course on this device ({size / 1e6:.0f} MB)</button> '
        '<span id="kept" class="small" role="status"></span></p>',
        done,
    )


def _glossary(listed: Sequence[Lesson]) -> str:
    """All terms, each with a link to the step that introduces it."""
    titles = {lesson.key: lesson.title for lesson in listed}
    items = "".join(
        f"<dt>{sentence(term.name)}</dt><dd>{sentence(term.says)}{_introduced(term, titles)}</dd>"
        for term in glossary()
    )
    return _plain("Glossary", f'<p><a href="{HOME}">All lessons</a></p><dl>{items}</dl>')


def _introduced(term: Term, titles: Mapping[str, str]) -> str:
    if term.lesson not in titles:
        return ""
    link = f"{escape(term.lesson)}.html#step={term.step}"
    return f' <span class="small"><a href="{link}">{sentence(titles[term.lesson])}, step {term.step}</a></span>'


def _plain(title: str, content: str, lessons: str = "[]") -> str:
    """A page without an experiment; ``lessons`` is JSON with the questions and claims of lessons."""
    style = (ASSETS / "live" / "page.css").read_text(encoding="utf-8")
    script = f"<script>{bundle('live/index.js')}</script>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(script).replace("img-src", "img-src 'self'")}; manifest-src 'self'; worker-src 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="{ICON}">
<style>{style}</style>
</head>
<body>
<main class="index">
<h1>{escape(title)}</h1>
{content}
</main>
<script type="application/json" id="lessons">{lessons}</script>
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
    state.position.open(lesson, step.number)
    shown = state.views
    state.follow(step)
    state.views = state.views or shown
    return state
