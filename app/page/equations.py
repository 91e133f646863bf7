"""The card of a sampler: its update, its place on the grid recipe × integrator × gradient, and its source."""

from collections.abc import Mapping
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.page.controls import sentence
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.formulas import COMMAS, in_lines, short
from sgmcmc_lab.app.views.theme import theme
from sgmcmc_lab.samplers.choices import make_schedule, make_target
from sgmcmc_lab.samplers.experiment import Experiment
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import OWN_GRADIENT, Lane
from sgmcmc_lab.samplers.requirements import MEMORY
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET
from sgmcmc_lab.samplers.targets import Target


def _formula(tex: str) -> Any:
    return pn.pane.LaTeX(
        f"$${in_lines(tex, COMMAS)}$$",
        renderer="mathjax",
        sizing_mode="stretch_width",
        margin=(0, 4),
        styles={"font-size": "15px", "overflow-x": "auto"},
    )


def entry(label: str, text: str) -> str:
    """A line of a card."""
    return f"<dt>{label}</dt><dd>{text}</dd>"


_STYLE = """
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; margin: 4px 4px; font-size: 14px; }
dt { opacity: .7; } dd { margin: 0; }
h2 { margin: 8px 4px 2px; font-size: 16px; }
"""


def _what_it_is(target: Any, temperature: float) -> str:
    """The name of a target's first sentence, which is about T = 1."""
    if not isinstance(target, Target):
        return "Model"
    return "Distribution" if temperature == 1 else "Distribution at T = 1"


def of_card(experiment: Experiment) -> Any:
    """The model of an experiment, or its target at T = 1: a Gaussian at another temperature has other parameters."""
    return ANY_TARGET[experiment.target.key] if experiment.of_model else make_target(experiment.target)


def energy_of(experiment: Experiment) -> str:
    """The energy of an experiment's target in LaTeX, with the distribution at a temperature other than 1."""
    tex, heat = str(of_card(experiment).tex), experiment.temperature
    return tex if heat == 1 else rf"{tex},\quad p(\theta) \propto e^{{-U(\theta)/T}},\ T = {heat:g}"


def cards(state: AppState) -> list[Any]:
    """A card for the target and one for each different sampler and gradient of the lanes."""
    experiment, colours = state.experiment, theme(state.dark)
    target, heat = of_card(experiment), experiment.temperature
    what = "Model" if experiment.of_model else "Target"
    out = [card(colours.faint, f"{what}: {target.title}", [energy_of(experiment)], about(target, {}, heat))]
    seen = set()
    for i, (lane, title) in enumerate(zip(experiment.lanes, state.lane_titles(), strict=True)):
        own, sampler = formulas_of(state, i), ANY_SAMPLER[lane.sampler.key]
        falling = make_schedule(lane.schedule).equations
        if (which := (lane.sampler.key, lane.gradient.key, update_of(lane), *falling, *own)) in seen:
            continue
        seen.add(which)
        named = sampler.title
        if own:
            named = escape(title if title.startswith(named) else f"{named}: {title}")
        if lane.gradient == OWN_GRADIENT:
            formulas = [update_of(lane)]
            details = entry("Method", sentence(sampler)) + entry("Source", sampler.source)
        else:
            gradient = GRADIENTS[lane.gradient.key]
            # For categorical data a minibatch gives only counts.
            tex = gradient.tex if MEMORY in target.provides else gradient.tex_of_categories or gradient.tex
            # A sampler that is no process has neither D nor Q.
            formulas = [
                x
                for x in (update_of(lane), *falling, *(own or (sampler.diffusion, sampler.curl)), tex)
                if x != r"\text{none}"
            ]
            details = (
                entry("Integrator", sampler.integrator)
                + entry("Gradient", gradient.title)
                + entry("Source", sampler.source)
            )
        out.append(
            card(
                colours.lanes[i],
                named,
                formulas,
                details,
            )
        )
    return out


def update_of(lane: Lane) -> str:
    """One step of a lane, at its parameters."""
    sampler = ANY_SAMPLER[lane.sampler.key]
    if lane.gradient == OWN_GRADIENT:
        return sampler.update
    return sampler.update_by(GRADIENTS[lane.gradient.key], lane.sampler.values())


def formulas_of(state: AppState, lane: int) -> tuple[str, ...]:
    """The D, Q and f of a lane that is a recipe; none of another, and none of what is too long to be read."""
    experiment = state.experiment
    if experiment.of_model:
        return ()
    choice = experiment.lanes[lane].sampler
    return short(SAMPLERS[choice.key].typed_formulas(choice.values(), experiment.make_target()))


def about(target: Any, facts: Mapping[str, str], temperature: float = 1.0) -> str:
    """The entries of a target's card: what it is, what its data are, where it comes from."""
    of_data = "".join(entry(label.capitalize(), text) for label, text in facts.items())
    return (
        entry(_what_it_is(target, temperature), sentence(target))
        + of_data
        + (entry("Source", target.source) if target.source else "")
    )


def description(entries: str) -> str:
    """The entries of a card as a list."""
    return f"<dl>{entries}</dl>"


def card(colour: str, title: str, formulas: list[str], details: str) -> Any:
    """A card: displayed formulas, and entries below them."""
    return pmui.Paper(
        pn.pane.HTML(f"<h2>{title}</h2>", stylesheets=[_STYLE], margin=0, sizing_mode="stretch_width"),
        _formula("\n".join(formulas)),
        pn.pane.HTML(description(details), stylesheets=[_STYLE], margin=0, sizing_mode="stretch_width"),
        sizing_mode="stretch_width",
        margin=6,
        elevation=1,
        styles={"border-left": f"5px solid {colour}"},
    )
