"""Contact sheets: every step of a lesson as the page shows it at the end of its quick run, in one picture; and what is
amiss in its layout.

The app is served in a process of its own and looked at by the machine's Chromium.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sgmcmc_lab.app.server.serving import ARGUMENTS, browser_path, served
from sgmcmc_lab.lessons.layout import faults
from sgmcmc_lab.lessons.lesson import Lesson, Step
from sgmcmc_lab.samplers import SpecError

OPTION = "contact-sheet"
SIZE = {"width": 1280, "height": 720}
FRAMES = 60
"""A quick run is made in about so many frames."""
PATIENCE = 60.0
"""Seconds that a step may take; a slower one is shown as far as it is."""
LOOK_SECONDS = 0.5
START_SECONDS = 300.0
"""The server compiles first what no cache has."""

_WALK = """const walk = function* (root) {
  for (const one of root.querySelectorAll("*")) { yield one; if (one.shadowRoot) yield* walk(one.shadowRoot) }
}"""
# The line that says how far it is, among the texts of the page.
_READOUT = f"""() => {{ {_WALK}
  for (const one of walk(document)) {{
    const own = one.children.length === 0 ? one.textContent.trim() : ""
    if (/^(paused at )?(step|burn-in) [0-9]/.test(own)) return own
  }}
  return ""
}}"""


def write(lessons: Sequence[Lesson], folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """``lesson-2.png`` of each step, with what is amiss there, and ``lesson.png`` of them all.

    Raises :class:`SpecError`.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SpecError(OPTION, str(folder), "it needs Playwright: pip install 'sgmcmc-lab[bench]'") from None
    browser = browser_path(OPTION)
    with served(OPTION, START_SECONDS) as server, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, headless=True, args=ARGUMENTS)
        for lesson in lessons:
            pictures = []
            for step in lesson.steps:
                pictures.append(folder / f"{lesson.key}-{step.number}.png")
                found = _picture(chromium, f"{server.url}{query(lesson, step)}", wanted(step), pictures[-1])
                yield pictures[-1], found
            sheet = folder / f"{lesson.key}.png"
            _sheet(chromium, pictures, sheet)
            yield sheet, []
        chromium.close()


def wanted(step: Step) -> int:
    """The steps of a step's quick run, burn-in included; 0 where it has no experiment."""
    spec = step.quick_spec
    return 0 if spec is None else spec.burn_in + max(run.n_steps for run in spec.runs())


def query(lesson: Lesson, step: Step) -> str:
    """The link of a step whose question is answered, fast enough for its quick run to be over soon."""
    answer = f"&answer={step.question.answer}" if step.question is not None else ""
    own = step.page.get("speed", 0)
    speed = "" if step.spec is None else f"&speed={min(max(own, -(-wanted(step) // FRAMES), 1), 1_000_000)}"
    return f"?lesson={lesson.key}&step={step.number}{answer}{speed}"


def _picture(chromium: Any, url: str, steps: int, path: Path) -> list[str]:
    page = chromium.new_page(viewport=SIZE)
    page.goto(url, timeout=1000 * PATIENCE)
    waited = 0.0
    while waited < PATIENCE and how_far(page.evaluate(_READOUT)) < steps:
        page.wait_for_timeout(1000 * LOOK_SECONDS)
        waited += LOOK_SECONDS
    # Captions and check marks come about once a second.
    page.wait_for_timeout(2000)
    page.screenshot(path=path)
    found = faults(page)
    page.close()
    return found


def how_far(readout: str) -> int:
    """The steps that a page's readout tells of."""
    found = re.search(r"(?:step|burn-in) ([0-9,]+)", readout)
    return int(found[1].replace(",", "")) if found else 0


def _sheet(chromium: Any, pictures: Sequence[Path], path: Path) -> None:
    """All steps of a lesson beside each other, at half their size."""
    shown = "".join(
        f"<img width='{SIZE['width'] // 2}' height='{SIZE['height'] // 2}' src='data:image/png;base64,{b64encode(picture.read_bytes()).decode()}'>"
        for picture in pictures
    )
    page = chromium.new_page(viewport={"width": SIZE["width"] + 24, "height": SIZE["height"]})
    page.set_content(
        f"<body style='margin:8px;display:flex;flex-wrap:wrap;align-items:flex-start;gap:8px;background:#8d99ae'>{shown}</body>"
    )
    page.screenshot(path=path, full_page=True)
    page.close()
