"""Every marked answer and every watch sentence of the course is held against a run: a claim or a check supports it."""

from dataclasses import replace

import pytest

from sgmcmc_lab.lessons import read
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.lesson import ANSWER, MEASURE, WATCH
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS
from tests.helpers.seen import SEEN, measured, named

READ = {view for views in SEEN.values() for view in views.split()}
"""Views of which some measure reads a number."""


def unsupported(step):
    """The step's statements on its run that neither a claim nor a check supports, and wrong options without a reply."""
    claims = {what: [one for one in (*step.claims, *step.checks) if what in one.supports] for what in (ANSWER, WATCH)}
    out = []
    question = step.question
    if question is not None:
        out += [
            f"reply: {text}"
            for n, text in enumerate(question.options, 1)
            if n != question.answer and not question.reply(n)
        ]
        if question.by == MEASURE and not claims[ANSWER]:
            out.append("the answer")
    if step.watch and not claims[WATCH]:
        return [*out, "the watch sentence"]
    seen = {view for key in measured(claims[WATCH]) for view in SEEN[key].split()}
    # Of a picture that no measure reads, any number of the run that supports the sentence will do.
    return out + [
        f"watch: {word}" for word, views in named(step.watch, step.views).items() if views & READ and not views & seen
    ]


def of_lesson(lesson):
    return [f"{step.number}, {one}" for step in lesson.steps for one in unsupported(step)]


@for_each("key", LESSONS)
def test_answers_and_watch_sentences_are_supported(key):
    """Fails where a sentence has no support."""
    found = of_lesson(LESSONS[key])
    assert not found, "\n".join(found)


def test_a_sentence_without_support_is_found():
    """Planted faults: no support of the answer, of the sentence, of its view; no reply; one more view."""
    step = LESSONS["step-size"].steps[0]
    none = tuple(replace(claim, supports=()) for claim in step.claims)
    assert unsupported(step) == []
    assert unsupported(replace(step, claims=none, checks=())) == ["the answer", "the watch sentence"]
    assert unsupported(replace(step, claims=none, checks=(replace(step.checks[0], supports=(ANSWER,)),))) == [
        "the watch sentence"
    ]
    by_definition = replace(step, question=replace(step.question, by="definition"))
    assert unsupported(replace(by_definition, claims=none, checks=())) == ["the watch sentence"]
    of_variance = replace(step.claims[0], supports=(ANSWER, WATCH))
    assert unsupported(replace(step, claims=(of_variance,), checks=())) == ["watch: KS"]
    assert unsupported(replace(step, watch=f"{step.watch} See the trace.", views=(*step.views, "trace"))) == [
        "watch: trace"
    ]
    mute = replace(step.question, replies=("", *step.question.replies[1:]))
    assert unsupported(replace(step, question=mute)) == [f"reply: {mute.options[0]}"]


WAS = """+++
title = "As it was"
minutes = 1
+++
## A step too far
```toml
[experiment]
target = "gaussian"
lanes = ["sgld(step_size:0.05)~full", "sgld(step_size:0.8)~full"]
n_chains = 64
n_steps = 200000
burn_in = 400

[[check]]
says = "The KS distance of the small step goes on falling: ten times the steps have less than half of it."
supports = ["answer", "watch"]
change = { n_steps = 20000 }
measure = "ks"
against = "before"
above = 2

[[check]]
says = "It stays at the floor of 0.0031."
supports = ["answer"]
measure = "ks"
equals = 0.0031
tolerance = 0.0008
```
"""


@pytest.mark.slow
def test_a_distance_that_was_said_to_go_on_falling_is_caught(tmp_path):
    """The planted fault: the course once marked as right that the small step's distance goes on falling."""
    path = tmp_path / "was.md"
    path.write_text(WAS, encoding="utf-8")
    falling, floor = run_step(read(path).steps[0]).checks
    assert not falling.passed, f"{falling.measured:g}"
    assert floor.passed, f"{floor.measured:g}"
