"""The free lab of a course: a live page for each of some densities, without a lesson."""

from html import escape

from sgmcmc_lab.app.live_page.document import COMPANIONS, MOST_LETTERS, document
from sgmcmc_lab.app.state import AppState, default_views, first_coordinate
from sgmcmc_lab.app.views.formulas import COMMAS, rows_of
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.targets import TARGETS

DENSITIES = {
    "gaussian": ("sgld", "sghmc"),
    "double_well": ("sgld", "sghmc"),
    "gaussian_mixture": ("sgld", "sghmc"),
    "banana": ("hmc", "nuts"),
    "sparse_dirichlet": ("sgrld", "scir"),
    "linear_regression": ("sgld", "sghmc"),
    "fisher": ("sggmc", "gmc"),
}
"""The densities, each with the samplers that its page begins with; the course has at most 13 MB."""


def experiment(key: str) -> Experiment:
    """The experiment with which the page of a density begins."""
    return Experiment.from_dict({"target": key, "lanes": [{"sampler": sampler} for sampler in DENSITIES[key]]})


def file_name(key: str) -> str:
    """The name of the page of a density."""
    return f"free-{key.replace('_', '-')}.html"


def links(keys: list[str]) -> str:
    """Links to the pages of these densities."""
    return ", ".join(f'<a href="{escape(file_name(key))}">{escape(TARGETS[key].title)}</a>' for key in keys)


def free_page(key: str, home: str) -> str:
    """The page of a density, with its energy and links to the others. Raises :class:`SpecError`."""
    state = AppState(experiment=experiment(key))
    state.views = default_views(state.experiment)
    state.coordinate = first_coordinate(state.experiment)
    target = TARGETS[key]
    formula = "".join(mathml(row, alone=True) for row in rows_of(target.tex, COMMAS, MOST_LETTERS))
    others = links([other for other in DENSITIES if other != key])
    text = (
        f"<div class='formula'>{formula}</div><details class='small'><summary>Other densities</summary>{others}</details>"
        f"<p class='small'><a href='{escape(home)}'>All lessons</a></p>"
    )
    return document(f"Free lab: {target.title}", [state], text, beside=True, companions=COMPANIONS).text
