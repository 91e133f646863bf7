"""A teacher's experiment as a live page for her students, who see it in the page of their room."""

from typing import Any, NamedTuple

from sgmcmc_lab.app.live_page.document import document
from sgmcmc_lab.app.live_page.experiment import model_page
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.lessons.handout import filled_text, sentence
from sgmcmc_lab.lessons.prose import as_html
from sgmcmc_lab.samplers.settings import ANY_TARGET


class Followed(NamedTuple):
    """A file, and the settings that the fragment of its link can hold."""

    text: str
    moves: list[tuple[dict[str, list[Any] | None], dict[str, list[Any] | None]]]
    """For each lane, the adjustable parameters of sampler and gradient with their values; None is the whole range."""
    views: list[str]
    most_chains: int


def followed_page(state: AppState, racing: bool = False) -> Followed:
    """The live page of a teacher's page, with the text of the lesson's step; in a race it offers more samplers.

    Raises :class:`SpecError`.
    """
    step = state.position.step
    parts = []
    if step is not None:
        parts = [f"<h2>{step.number}. {sentence(step.title)}</h2>", as_html(filled_text(step.text, step), mathml)]
        # The sentence may give away the answer to the question that the class is asked.
        if step.watch and step.question is None:
            parts.append(f"<p><b>Watch this.</b> {sentence(filled_text(step.watch, step))}</p>")
    title = (
        state.position.lesson.title
        if state.position.lesson is not None
        else ANY_TARGET[state.experiment.target.key].title
    )
    text = f"<section class='text' data-step='1'>{''.join(parts)}</section>" if parts else ""
    if state.experiment.of_model:
        text = model_page(state, title, "".join(parts), beside=True)
        return Followed(text, [], state.shown_views(), 1)
    page = document(title, [state], text, beside=True, menu=racing)
    (step_data,) = page.steps
    kinds, choices = [step_data["kinds"][number] for number in step_data["lanes"]], step_data["choices"]
    moves = [(_moves(choices[kind["sampler"]]), _moves(choices[kind["gradient"]])) for kind in kinds]
    return Followed(page.text, moves, list(step_data["figures"][len(kinds)]["views"]), step_data["most_chains"])


def _moves(choice: Any) -> dict[str, list[Any] | None]:
    stops = {name: variation.get("stops") for name, variation in choice["variations"].items()}
    return {name: None if found is None else [value for value, _ in found] for name, found in stops.items()}
