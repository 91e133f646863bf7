"""The free lab of a course: a page for all densities of the lab, each in a script that is loaded when it is chosen."""

from functools import cache
from hashlib import sha256
from html import escape
from inspect import getattr_static
from typing import NamedTuple

from sgmcmc_lab.app.live_page.document import document_of_scripts, script_of_step
from sgmcmc_lab.app.live_page.kinds import MOST_LETTERS
from sgmcmc_lab.app.state import AppState, default_views, first_coordinate
from sgmcmc_lab.app.views.formulas import COMMAS, rows_of
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import default_choice, make_target
from sgmcmc_lab.samplers.compile.wasm.engine import engine
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.targets import TARGETS

PAGE = "lab.html"
LANES = {
    "banana": ("hmc", "nuts"),
    "sparse_dirichlet": ("sgrld", "scir"),
    "dense_dirichlet": ("sgrld", "scir"),
    "fisher": ("sggmc", "gmc"),
}
"""The first samplers of a density, if they are not the first two of the menu."""


class Script(NamedTuple):
    """The file of a density."""

    key: str
    name: str
    text: str


@cache
def densities() -> tuple[str, ...]:
    """The keys of the densities whose functions the engine has, in the order of the menu. Densities that a user
    types are left out, because a page cannot change them.
    """
    given = [key for key, target in TARGETS.items() if not isinstance(getattr_static(target, "tex"), property)]
    own = {key: make_target(default_choice(TARGETS, key)).functions() for key in given}
    return tuple(key for key, functions in own.items() if not engine().without(functions))


def experiment(key: str) -> Experiment:
    """The experiment with which a density begins."""
    samplers = LANES.get(key) or samplers_of(key, make_target(default_choice(TARGETS, key)))[:2]
    return Experiment.from_dict({"target": key, "lanes": [{"sampler": sampler} for sampler in samplers]})


def script(key: str) -> Script:
    """The file of a density, with all samplers and gradients that fit. Raises :class:`SpecError`."""
    text = script_of_step(key, _state(key))
    return Script(key, f"{key.replace('_', '-')}-{sha256(text.encode()).hexdigest()[:12]}.js", text)


def address(key: str) -> str:
    """The page's address for a density."""
    return f"{PAGE}#target={key}"


def page(scripts: list[Script], home: str) -> str:
    """The page of these densities. Raises :class:`SpecError`."""
    options = "".join(f"<option value='{one.key}'>{escape(TARGETS[one.key].title)}</option>" for one in scripts)
    formulas = "".join(
        f"<div data-step='{number}' hidden><div class='formula'>{_formula(one.key)}</div></div>"
        for number, one in enumerate(scripts, 1)
    )
    text = (
        f"<div class='density'><label for='density'>Density</label><select id='density'>{options}</select>{formulas}"
        f"<a class='small' href='{escape(home)}'>All lessons</a></div>"
    )
    listed = [{"key": one.key, "script": one.name} for one in scripts]
    return document_of_scripts("Free lab", listed, text, _state(scripts[0].key))


def _state(key: str) -> AppState:
    state = AppState(experiment=experiment(key))
    state.views = default_views(state.experiment)
    state.coordinate = first_coordinate(state.experiment)
    return state


def _formula(key: str) -> str:
    return "".join(mathml(row, alone=True) for row in rows_of(TARGETS[key].tex, COMMAS, MOST_LETTERS))
