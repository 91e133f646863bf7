"""The glossary: no term is used before the step that introduces it."""

from dataclasses import replace

import pytest

from sgmcmc_lab.lessons.glossary import Term, found, glossary, used
from tests.helpers.cases import for_each
from tests.helpers.course import LESSONS


def texts(step):
    """All that a student reads of a step."""
    question = step.question
    asked = [question.ask, *question.options, *question.replies, question.why] if question is not None else []
    more = [*(claim.says for claim in step.claims), *(exercise.text for exercise in step.exercises)]
    return [step.title, step.text, step.watch, *asked, *more, *step.names]


def too_early(lessons):
    """Terms that are used before they are introduced, and not spelled out there or before in the same lesson."""
    steps = [(lesson, step) for lesson in lessons for step in lesson.steps]
    order = {(lesson.key, step.number): i for i, (lesson, step) in enumerate(steps)}
    out = []
    for i, (lesson, step) in enumerate(steps):
        read = " ".join(text for before in lesson.steps[: step.number] for text in texts(before)).lower()
        for term in used(texts(step)):
            spelled = bool(term.long) and term.long.lower() in read
            if i < order[term.lesson, term.step] and not spelled:
                out.append(f"{lesson.file} {step.number}: {term.name}")
    return out


def test_no_term_is_used_before_it_is_introduced():
    assert too_early(LESSONS.values()) == []


@pytest.mark.slow
def test_a_term_that_comes_too_early_is_found():
    """The planted faults: an abbreviation in the first step, alone and spelled out; and a lesson put first."""
    first, *others = LESSONS.values()
    for text, faults in (("HMC.", ["HMC"]), ("Hamiltonian Monte Carlo (HMC).", []), ("$$HMC$$", [])):
        planted = replace(first, steps=(replace(first.steps[0], text=text), *first.steps[1:]))
        assert too_early([planted, *others]) == [f"{first.file} 1: {name}" for name in faults]
    assert too_early([others[-1], first, *others[:-1]])


@for_each("term", glossary(), ids=lambda term: term.name)
def test_a_term_is_introduced_where_the_glossary_says(term):
    step = LESSONS[term.lesson].steps[term.step - 1]
    in_formula = bool(term.formula) and term.formula in step.text
    assert in_formula or term in used(texts(step))
    assert term.says.endswith(".")
    assert len(term.says) < 250


def test_forms_belong_to_one_term_each():
    forms = [form for term in glossary() for form in (term.name, *term.also)]
    assert len(set(forms)) == len(forms)
    assert [term.name.lower() for term in glossary()] == sorted(term.name.lower() for term in glossary())


def test_the_longest_form_is_found_and_no_part_of_a_word():
    text = "A stationary distribution; Friction, frictionless, SGLD's and sgld, τ."
    at = [(text[start:end], term.name) for start, end, term in found(text)]
    assert at == [
        ("stationary distribution", "stationary distribution"),
        ("Friction", "friction"),
        ("SGLD's", "SGLD"),
        ("τ", "τ"),
    ]
    assert all(isinstance(term, Term) for term in used(["the friction"]))
