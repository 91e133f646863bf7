"""The lanes of an experiment: a sampler with its gradient each, and the changes made on the way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sgmcmc_lab.samplers.choices import Choice, choice_dict
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.registry import METHODS
from sgmcmc_lab.samplers.schedules import Constant
from sgmcmc_lab.samplers.settings import is_model, settings_of
from sgmcmc_lab.samplers.targets import TARGETS, Target

OWN_GRADIENT = Choice("", ())
"""The gradient of a model's method, in place of an estimator: it brings its own."""
CONSTANT = Choice(Constant.key, ())
"""The schedule of a lane whose steps all have the same size."""


class Change(NamedTuple):
    """A change from ``step`` on (burn-in included): other parameters of the sampler, a gradient, and, if given, other
    parameters of the target.
    """

    step: int
    sampler: Choice
    gradient: Choice
    target: Choice | None = None
    """The target's parameters; None leaves them as before."""


@dataclass(frozen=True)
class Lane:
    """A sampler with its gradient, and the changes made on the way, some of which may be of the target."""

    sampler: Choice
    gradient: Choice
    changes: tuple[Change, ...] = ()
    n_steps: int | None = None
    """How many steps this lane makes, where it is not the experiment's number."""
    schedule: Choice = CONSTANT
    """How its step size falls; with it the draws are weighted by their step sizes."""


def max_lanes(target: str) -> int:
    """How many lanes an experiment with this target, by its key, may have."""
    # The state space draws a panel for each lane; scores of methods share one.
    return 6 if is_model(target) else 4


def samplers_of(target: str, density: Target | None = None) -> list[str]:
    """The keys of the samplers that fit a target, given by its key, in the order of the menu.

    With the ``density`` itself those that fit its settings, without it those that fit some.
    """
    if is_model(target):
        return [key for key, method in METHODS.items() if method.model == target]
    fitting = [key for key, sampler in SAMPLERS.items() if sampler.fits(TARGETS[target])]
    if density is None:
        return fitting
    return [key for key in fitting if SAMPLERS[key].takes(density.dim)]


def first_lanes(target: str) -> list[dict[str, Any]]:
    """The lanes that an experiment with this target, by its key, begins with: of a model the first three methods."""
    return [{"sampler": key} for key in samplers_of(target)[: 3 if is_model(target) else 1]]


def first_chains(target: str, samplers: Iterable[str]) -> int:
    """How many chains an experiment with this target and these samplers, by their keys, begins with."""
    usual = int(settings_of(target)["n_chains"].default)
    return usual if is_model(target) else max(usual, *(SAMPLERS[key].first_chains for key in samplers))


def lane_dict(lane: Lane) -> dict[str, Any]:
    """Plain data, complete and in a fixed order."""
    out: dict[str, Any] = {"sampler": choice_dict(lane.sampler)}
    if lane.gradient != OWN_GRADIENT:
        out["gradient"] = choice_dict(lane.gradient)
    if lane.n_steps is not None:
        out["n_steps"] = lane.n_steps
    if lane.schedule != CONSTANT:
        out["schedule"] = choice_dict(lane.schedule)
    if lane.changes:
        out["changes"] = [
            {"step": x.step, "sampler": choice_dict(x.sampler)}
            | ({"gradient": choice_dict(x.gradient)} if x.gradient != OWN_GRADIENT else {})
            | ({"target": choice_dict(x.target)} if x.target else {})
            for x in lane.changes
        ]
    return out
