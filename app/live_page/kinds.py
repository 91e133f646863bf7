"""The kinds of lanes of a live page, each a sampler with a gradient. Each sampler and gradient is described once."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from sgmcmc_lab.app.views import fitting
from sgmcmc_lab.app.views.formulas import COMMAS, rows_of, short
from sgmcmc_lab.lessons.formulas import mathml
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.choices import Choice, make_gradient, make_sampler
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.kernels.exact import Exact
from sgmcmc_lab.samplers.lanes import CONSTANT, samplers_of
from sgmcmc_lab.samplers.link import choice_text, value_text
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.live.variations import variations
from sgmcmc_lab.samplers.parameters import Count, Flag, Option, Real, SpecError, Value, declared
from sgmcmc_lab.samplers.reader import chain_limits
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.targets.base import Target

MOST_LETTERS = 30.0
"""The width of a formula's row, in letters: for a phone, and for the column of controls on a wide screen."""
MOST_CHAINS = 100
"""Chains of a live page, which may run on a phone; a lesson may begin with more."""
MOST_TABLE = 200_000
"""The most bytes that the table of exact draws may have if a menu offers them."""
LIVE = (
    "state", "energy", "phase", "circle", "torus", "globe", "frames", "components", "fit", "marginal", "ks", "kl", "bought", "temperature",
    "thermostat", "trace", "autocorrelation", "moments", "mgf",
)  # fmt: skip
"""The views that move without a server, in the order of the page."""


def alone(experiment: Experiment, menu: bool) -> list[Experiment]:
    """Experiments of one lane each: one for each lane of the experiment and, with ``menu``, one for every other pair of
    a sampler and a gradient that fit. Exact draws from a large table are left out.
    """
    own = [replace(experiment, lanes=(lane,)) for lane in experiment.lanes]
    if not menu:
        return own
    target, used = experiment.make_target(), {(lane.sampler.key, lane.gradient.key) for lane in experiment.lanes}
    # The page has its own number of chains, within the limits of its lanes.
    data = {name: value for name, value in experiment.to_dict().items() if name != "n_chains"}
    more = []
    table = target.sampled.packed().nbytes - target.sampled.without_draws().nbytes
    for sampler in samplers_of(target.key, target):
        if sampler == Exact.key and table > MOST_TABLE:
            continue
        fit = SAMPLERS[sampler].gradients_for(type(target))
        for gradient in (key for key in GRADIENTS if key in fit and (sampler, key) not in used):
            # A gradient may remember too much, and a sampler may refuse a setting of the page.
            with suppress(SpecError):
                lane = {"sampler": {"key": sampler}, "gradient": {"key": gradient}}
                more.append(Experiment.from_dict({**data, "lanes": [lane]}))
    return own + more


class Part(NamedTuple):
    """A sampler or a gradient of a kind."""

    owner: Any
    choice: Choice

    def described(self, target: Target, values: Mapping[str, Value]) -> dict[str, Any]:
        """Its description with these values. Raises :class:`SpecError`."""
        choice = self.choice._replace(params=tuple(values.items()))
        if issubclass(self.owner, Sampler):
            sampler = make_sampler(choice)
            sampler.check(target)
            return description.of_sampler(sampler, target)
        gradient = make_gradient(choice)
        gradient.check(target)
        return description.of_gradient(gradient, target)

    def choices(self, target: Target) -> dict[str, Any]:
        """All its descriptions, in the form that ``parameters.js`` takes."""
        first = self.choice.values()
        found = variations(self.owner, first, partial(self.described, target))
        return {
            "key": self.owner.key,
            "title": self.owner.title,
            "first": {name: first[name] for name in found},
            "base": self.described(target, first),
            "parameters": [parameter_of(name, one) for name, one in declared(self.owner) if name in found],
            "variations": found,
            "texts": texts(first),
        }


class Kinds:
    """The kinds of lanes of a step, for its target."""

    def __init__(self, alone: Iterable[Experiment]) -> None:
        self.listed: list[dict[str, Any]] = []
        """The kinds, each with the places of its sampler, its gradient and its run."""
        self.choices: list[dict[str, Any]] = []
        """The samplers and the gradients, each once."""
        self.runs: list[dict[str, Any]] = []
        """The settings of the runs, each once."""
        self._parts: list[Part] = []
        self._specs: list[RunSpec] = []
        self._typed: dict[int, RunSpec] = {}
        """The kinds whose formulas have the target's parameters, by their places."""
        for one in alone:
            self.listed.append(self._kind(one))

    def choice(self, number: int, part: str) -> dict[str, Any]:
        """The ``sampler`` or the ``gradient`` of a kind."""
        return self.choices[self.listed[number][part]]

    def at(self, moved: Experiment) -> dict[str, dict[int, Any]]:
        """The choices, the runs and the formulas that differ for another target of the same class, by their places.

        A choice whose first values have the same description for both targets is the same at all values. Raises
        :class:`SpecError` where a choice does not fit the target.
        """
        target = moved.make_target()
        choices = {
            place: part.choices(target)
            for place, (part, before) in enumerate(zip(self._parts, self.choices, strict=True))
            if part.described(target, part.choice.values()) != before["base"]
        }
        specs = [_moved(spec, moved) for spec in self._specs]
        runs = {place: run for place, run in enumerate(map(_run, specs)) if run != self.runs[place]}
        kinds = {
            place: {"equations": _equations(_moved(spec, moved), target, self.choice(place, "sampler")["first"])}
            for place, spec in self._typed.items()
        }
        return {"choices": choices, "runs": runs, "kinds": kinds}

    def _kind(self, alone: Experiment) -> dict[str, Any]:
        (spec,) = alone.runs()
        target, run = spec.make_target(), _run(spec)
        if run not in self.runs:
            self.runs.append(run)
            self._specs.append(spec)
        sampler = self._place(Part(SAMPLERS[spec.sampler.key], spec.sampler), target)
        if SAMPLERS[spec.sampler.key].typed_formulas(spec.sampler.values(), target):
            self._typed[len(self.listed)] = spec
        limits = list(chain_limits(spec.sampler, spec.gradient, target))
        most = min(most for _, most, _ in limits)
        # Of a sampler with stops, for each of them.
        least = max(self._least(sampler), *(least for least, _, _ in limits))
        return {
            "sampler": sampler,
            "gradient": self._place(Part(GRADIENTS[spec.gradient.key], spec.gradient), target),
            "run": self.runs.index(run),
            "chains": [min(least, spec.n_chains), min(most, max(MOST_CHAINS, spec.n_chains))],
            "views": [key for key in LIVE if key in fitting(alone)],
            "schedule": choice_text(SCHEDULES, spec.schedule) if spec.schedule != CONSTANT else "",
            "equations": _equations(spec, target, self.choices[sampler]["first"]),
        }

    def _least(self, place: int) -> int:
        """The fewest chains that a sampler takes at all its stops."""
        first, found = self._parts[place].choice, self.choices[place]["variations"]
        values = [{name: value} for name, one in found.items() for value, _ in one.get("stops", [])]
        params = [tuple({**first.values(), **one}.items()) for one in values]
        return max([1, *(make_sampler(first._replace(params=one)).least_chains for one in params)])

    def _place(self, part: Part, target: Target) -> int:
        if part not in self._parts:
            self._parts.append(part)
            self.choices.append(part.choices(target))
        return self._parts.index(part)


def _moved(spec: RunSpec, to: Experiment) -> RunSpec:
    return replace(spec, target=to.target, temperature=to.temperature)


def _run(spec: RunSpec) -> dict[str, Any]:
    """The settings of a run, without those that are the page's own."""
    return {name: value for name, value in description.of_settings(spec).items() if name not in ("seed", "n_chains")}


def _equations(spec: RunSpec, target: Target, offered: Mapping[str, Value]) -> list[tuple[dict[str, Value], str]]:
    """The formulas of a step for all values of the flags that the page offers and that change them; those at the first
    values come last.
    """
    sampler, gradient = SAMPLERS[spec.sampler.key], GRADIENTS[spec.gradient.key]
    first, schedule = spec.sampler.values(), spec.make_schedule().equations
    own = {name: first[name] for name in sampler.optional if name in offered}
    found: list[dict[str, Value]] = [
        dict(zip(own, values, strict=True)) for values in product((True, False), repeat=len(own))
    ]
    return [
        (
            flags,
            "".join(
                mathml(line, alone=True)
                for formula in (
                    sampler.update_by(gradient, {**first, **flags}),
                    *short(sampler.typed_formulas({**first, **flags}, target)),
                    *schedule,
                )
                for line in rows_of(formula, COMMAS, MOST_LETTERS)
            ),
        )
        for flags in [*(one for one in found if one != own), {}]
    ]


def texts(values: Mapping[str, Value]) -> dict[str, str]:
    """The values of parameters as a link writes them."""
    return {name: value_text(value) for name, value in values.items() if value != ()}


def parameter_of(name: str, parameter: Any) -> dict[str, Any]:
    """A parameter, in the form that ``parameters.js`` takes."""
    kinds = {Count: "count", Real: "real", Flag: "flag", Option: "option"}
    bounds = getattr(parameter, "bounds", None)
    return {
        "name": name,
        "label": parameter.label,
        "doc": parameter.doc or "",
        "kind": next(kind for one, kind in kinds.items() if isinstance(parameter, one)),
        "bounds": list(bounds) if bounds else None,
        "log": getattr(parameter, "log", False),
    }
