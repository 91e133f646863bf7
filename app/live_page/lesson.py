"""A lesson on a live page: its text, its questions, its exercises, and the data that judge its claims."""

import json
from collections.abc import Sequence
from functools import partial
from html import escape
from string import ascii_uppercase
from typing import Any

from sgmcmc_lab.app.lesson.prose import paper
from sgmcmc_lab.app.live_page import recording, sweeping
from sgmcmc_lab.app.live_page.claims import described_claim, described_separately, is_measured, is_separate, poisson
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons.claims import in_words
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.handout import filled_text, sentence
from sgmcmc_lab.lessons.lesson import Claim, Lesson, Step
from sgmcmc_lab.lessons.live import number, values
from sgmcmc_lab.lessons.prose import as_html
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.expressions import Expression, parse

SWEEP = (
    "<div class='sweep' hidden><p><button type='button' class='sweep-run'>Measure them here</button> "
    "<button type='button' class='sweep-cancel' hidden>Cancel</button> <span class='sweep-far small' role='status'></span></p>"
    "<ul class='caption sweep-caption'></ul><div class='plot sweep-plot' hidden></div></div>"
)
"""The part of a step in which the script makes a sweep."""
NO_SWEEP = "The sweep of this step needs all draws, or different data: open the step in the lab."
ELSEWHERE = "This step needs Python: the page shows a recording. To change its settings, open the lesson in the lab."


def described(lesson: Lesson, states: Sequence[AppState | None]) -> dict[str, Any]:
    """A lesson's data for the page's script; ``states`` has None for a step without a live experiment."""
    steps = [
        _described_step(step, state) | {"recording": None if state is not None else recording.of_step(lesson, step)}
        for step, state in zip(lesson.steps, states, strict=True)
    ]
    swept = [step["sweep"]["given"] for step in steps if step["sweep"] is not None]
    divergent = any(part["cells"] for part in (*(claim for step in steps for claim in step["claims"]), *swept))
    return {"key": lesson.key, "steps": steps, "poisson": poisson() if divergent else None}


def listed(lesson: Lesson, live: Sequence[bool]) -> dict[str, Any]:
    """The questions and claims of a lesson, for the list of lessons."""
    steps = [
        {"question": step.question is not None, "claims": len(_live_claims(step, moves))}
        for step, moves in zip(lesson.steps, live, strict=True)
    ]
    return {"key": lesson.key, "steps": steps}


def specs(lesson: Lesson, states: Sequence[AppState | None]) -> list[RunSpec]:
    """The runs, except the steps' own experiments, whose functions the page needs."""
    live = [step for step, state in zip(lesson.steps, states, strict=True) if state is not None]
    return [spec for step in live for spec in sweeping.specs(step)]


def _described_step(step: Step, state: AppState | None) -> dict[str, Any]:
    claims = [described_claim(step, i) for i in _live_claims(step, state is not None)]
    separate = [described_separately(step, i) for i in _separate_claims(step, state is not None)]
    question = step.question
    return {
        "claims": claims,
        "separate": separate,
        "sweep": sweeping.described(step, state.lane_titles())
        if state is not None and sweeping.is_possible(step)
        else None,
        "values": {} if state is None or step.spec is None else values(step.spec),
        "question": None if question is None else {"answer": question.answer, "options": len(question.options)},
    }


def _live_claims(step: Step, live: bool) -> list[int]:
    """The places of the claims that the page checks on its run."""
    return [i for i, claim in enumerate(step.claims) if live and is_measured(step, claim)]


def _separate_claims(step: Step, live: bool) -> list[int]:
    """The places of the claims that the page checks on separate runs."""
    return [i for i, claim in enumerate(step.claims) if live and is_separate(claim)]


# --- the text --------------------------------------------------------------------------------------------------------


def step_html(lesson: Lesson, step: Step, live: bool) -> str:
    """A step as HTML; the page's script fills in its check marks, and hides all that follows an answer."""
    parts = [f"<h2>{step.number}. {sentence(step.title)}</h2>"]
    if step.spec is not None and not live:
        parts.append(f"<p class='small'>{ELSEWHERE}</p>")
    parts += [
        as_html(step.text, mathml, live=None if step.spec is None else partial(_number, step.spec, live)),
        _question(lesson, step),
    ]
    if step.watch:
        parts.append(f"<div class='after'><p><b>Watch this.</b> {sentence(filled_text(step.watch, step))}</p></div>")
    after = []
    if step.spec is not None and not live:
        after.append(recording.html(step.number, recording.OF_STEP))
    swept = live and sweeping.is_possible(step)
    after.append(_claims(step, live, swept))
    if swept:
        after.append(SWEEP)
    elif live and step.sweep is not None:
        after.append(f"<p class='small'>{NO_SWEEP}</p>")
    after += [f"<p><b>Exercise {n}.</b> {sentence(one.text)}</p>" for n, one in enumerate(step.exercises, 1)]
    if step.exercises or (step.spec is not None and not live) or (step.sweep is not None and not swept):
        after.append(
            "<p class='small'><a class='in-lab' hidden target='_blank' rel='noopener'>Open this step in the lab on this computer</a></p>"
        )
    # On a narrow screen the script puts the pictures and their controls into the slot.
    return f"<section class='text' data-step='{step.number}'>{''.join(parts)}<div class='slot'></div><div class='after'>{''.join(after)}</div></section>"


def _number(spec: Experiment, live: bool, formula: str) -> str:
    """A number of a text; on a live step with its formula, which the page's script evaluates at other settings."""
    found = number(formula, spec)
    if not live:
        return found
    tree = json.dumps(_tree(parse(formula, values(spec), "text")), separators=(",", ":"))
    return f"<span class='live-number' data-formula='{escape(tree)}' title='{escape(formula)}'>{found}</span>"


def _tree(node: Expression) -> list[Any]:
    """A formula as ``numbers.js`` takes it."""
    return [int(node.kind), node.value, node.label, [[weight, _tree(part)] for weight, part in node.parts]]


def _question(lesson: Lesson, step: Step) -> str:
    """A question; without a script its answer is folded."""
    question = step.question
    if question is None:
        return ""
    order = lesson.shuffled(step.number)
    options = "".join(
        f"<li><button type='button' class='option' data-option='{number}'>{sentence(question.options[number - 1])}</button>"
        f"{_reply(number, question.reply(number))}</li>"
        for number in order
    )
    right = ascii_uppercase[order.index(question.answer)]
    return (
        f"<div class='question'><p><b>Before you run it:</b> {sentence(question.ask)}</p><ol type='A'>{options}</ol>"
        "<p class='wait small' hidden><button type='button' class='skip'>Skip</button> The experiment waits for your answer.</p>"
        "<p class='verdict' role='status'></p>"
        f"<details class='why'><summary>Answer</summary><p><b>{right}.</b> {sentence(question.explanation)}</p></details></div>"
    )


def _reply(option: int, said: str) -> str:
    return f"<p class='reply' data-reply='{option}' hidden>{sentence(said)}</p>" if said else ""


def _claims(step: Step, live: bool, swept: bool) -> str:
    if not step.claims:
        return ""
    here = {
        *_live_claims(step, live),
        *_separate_claims(step, live),
        *(sweeping.claims_of(step) if swept else ()),
    }
    how = "checked live" if _live_claims(step, live) else "from separate runs"
    items = "".join(
        f"<li>{sentence(claim.says)}{paper(claim, sentence)}<p class='mark' data-claim='{i}'>{_unmeasured(claim) if i not in here else ''}</p></li>"
        for i, claim in enumerate(step.claims)
    )
    return f"<div class='claims'><p><b>Claims</b> <span class='small'>{how}</span></p><ul>{items}</ul><p class='standing small' role='status'></p></div>"


def _unmeasured(claim: Claim) -> str:
    """The text in place of a mark, for a claim that the page does not measure."""
    ours = None if claim.paper is None else claim.paper.ours
    expected = "the exact value" if claim.goal.exact else in_words(claim.goal, claim.goal.equals)
    if ours is None:
        return f"<b>– measured in the lab</b> expected {escape(expected)}"
    return f"<b>– recorded</b> measured {ours:.5g} at full length, expected {escape(expected)}"
