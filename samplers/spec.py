"""The experiment as data: frozen, hashable, seeded; as JSON and as a link.

A :class:`RunSpec` is one run: target, sampler, gradient, seed and lengths. An :class:`Experiment` is a few *lanes* on
the same target with the same seed. Both hold every parameter, defaults included, so equal specs are equal experiments
and give the same draws.

The target is a density, whose samplers are the kernels, or a model of data, whose samplers are the model's methods.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import numpy as np
import param
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.samplers.choices import (
    Choice,
    Reader,
    choice_dict,
    choice_text,
    default_choice,
    given_again,
    link_fields,
    mapping,
    parse_choice,
    parse_json,
    value_text,
)
from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.migrations import VERSION
from sgmcmc_lab.samplers.models import METHODS, MODELS, Model
from sgmcmc_lab.samplers.models.base import UPLOADED
from sgmcmc_lab.samplers.parameters import OWN, Count, RealVector, SpecError, Value, check, check_all, declared
from sgmcmc_lab.samplers.registry import Union
from sgmcmc_lab.samplers.requirements import MEMORY
from sgmcmc_lab.samplers.targets import TARGETS, Target, own
from sgmcmc_lab.samplers.targets.base import Array

MAX_CHANGES = 1000
"""Of a lane."""
# The largest full trace, in numbers: 2 GiB of draws.
MAX_DRAWS = 2**28
# The most that the gradients of a lane remember, in numbers: 32 MiB.
MAX_MEMORY = 2**22
# The most numbers of data that the chains of a lane look at for one gradient each: a tenth of a second or two.
MAX_NUMBERS = 10**8
# The same for all gradients that a step may take, of one chain always: from two seconds, of a logistic regression, to
# half a minute, of a typed posterior. A thousand chains of NUTS on the presets' data take a thousand gradients at most.
MAX_STEP = 2 * 10**9
# The most chains that move each other: 20,000 pairs in a step, of a millisecond.
MAX_INTERACTING = 200

OWN_GRADIENT = Choice("", ())
"""What a model's method has in place of a gradient estimator: it brings its own."""

ANY_TARGET = Union("target", TARGETS, MODELS)
ANY_SAMPLER = Union("sampler", SAMPLERS, METHODS)


class Settings(param.Parameterized):
    """What a run on a density has beside its target, sampler and gradient."""

    seed = Count(1, bounds=(0, 2**32 - 1), label="Seed", doc="The same seed gives the same draws.")
    n_chains = Count(
        4,
        bounds=(1, 10_000),
        log=True,
        label="Chains",
        doc="Independent chains that move in lockstep. R-hat compares them.",
    )
    n_steps = Count(
        1000, bounds=(1, 1_000_000_000), log=True, label="Steps", doc="Steps of each chain after the burn-in."
    )
    burn_in = Count(
        0, bounds=(0, 1_000_000_000), label="Burn-in", doc="Steps of each chain that are made first and not counted."
    )
    thin = Count(
        1,
        bounds=(1, 1_000_000),
        log=True,
        label="Thin",
        doc="Only every so many steps a draw is kept; the statistics count all of them.",
    )
    start = RealVector(
        label="Start",
        doc="The θ where all chains begin, one number for each coordinate, separated by commas; empty: where the target starts them, which is near each mode in turn if several are known.",
    )
    momentum = RealVector(
        label="Momentum",
        doc="The momentum that all chains begin with, one number for each coordinate, separated by commas; empty: as the sampler has it. Of samplers that go on with a momentum; on a manifold the part along it counts.",
    )


class ModelSettings(param.Parameterized):
    """What a run on a model of data has beside its model and method."""

    seed = Count(1, bounds=Settings.param.seed.bounds, label="Seed", doc=Settings.param.seed.doc)
    n_chains = Count(
        1,
        bounds=(1, 5),
        label="Runs of each method",
        doc="Each method runs so many times, with the seed, the next one, and so on. Curves show the mean of the runs, and a band from the lowest to the highest. The pictures are of the first.",
    )
    n_steps = Count(100, bounds=(0, 1_000_000_000), label="Steps", doc="Steps of each run, without a page to stop it.")


SETTINGS = tuple(name for name, _ in declared(Settings))
LINK_FIELDS = ("target", "lane", *SETTINGS)
"""The fields of a link that belong to the experiment; beside them it has its version, ``v``."""
_SELDOM = ("n_steps", "burn_in", "thin", "start", "momentum")
"""The settings that a link has only where they are not the usual ones."""
_STEP = Settings.param.burn_in


def is_model(target: Any) -> bool:
    """Whether that is the key of a model of data; it may be anything that a file holds."""
    return isinstance(target, str) and target in MODELS


def settings_of(target: str) -> dict[str, Count | RealVector]:
    """What a run on this target, by its key, has beside target, sampler and gradient."""
    return cast(dict[str, Count | RealVector], dict(declared(ModelSettings if is_model(target) else Settings)))


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
    return [key for key in fitting if density is None or not SAMPLERS[key].too_small_for(density.dim)]


def first_lanes(target: str) -> list[dict[str, Any]]:
    """The lanes that an experiment with this target, by its key, begins with: of a model the first three methods."""
    return [{"sampler": key} for key in samplers_of(target)[: 3 if is_model(target) else 1]]


def first_chains(target: str, samplers: Iterable[str]) -> int:
    """How many chains an experiment with this target and these samplers, by their keys, begins with."""
    usual = int(settings_of(target)["n_chains"].default)
    return usual if is_model(target) else max(usual, *(SAMPLERS[key].first_chains for key in samplers))


class Change(NamedTuple):
    """From ``step`` on (burn-in included) other parameters of the same sampler, a gradient, and perhaps other
    parameters of the same target.
    """

    step: int
    sampler: Choice
    gradient: Choice
    target: Choice | None = None
    """The same as before where it is None."""


@dataclass(frozen=True)
class Lane:
    """A sampler with its gradient, and the changes made on the way, some of which may be of the target."""

    sampler: Choice
    gradient: Choice
    changes: tuple[Change, ...] = ()
    n_steps: int | None = None
    """How many steps this lane makes, where it is not the experiment's number."""


@dataclass(frozen=True)
class RunSpec:
    """One run. Make it with :meth:`of` or :meth:`from_dict`, which check it."""

    target: Choice
    sampler: Choice
    gradient: Choice
    seed: int = 1
    n_chains: int = 4
    n_steps: int = 1000
    burn_in: int = 0
    thin: int = 1
    start: tuple[float, ...] = ()
    """Where all chains begin; empty for the target's own start."""
    momentum: tuple[float, ...] = ()
    """The momentum of all chains there, where the sampler goes on with one; empty for the sampler's own."""
    changes: tuple[Change, ...] = ()
    stream: int | None = None
    """Which of the streams of random numbers that are spawned from the seed; None for the seed's own. Kernels side by
    side have the same random numbers, methods of a model each their own."""

    @classmethod
    def of(
        cls, target: str, sampler: str, gradient: str = "", *, target_params: Mapping[str, Any] | None = None,
        sampler_params: Mapping[str, Any] | None = None, gradient_params: Mapping[str, Any] | None = None, **settings: Any,
    ) -> "RunSpec":  # fmt: skip
        """A checked spec from names and keyword arguments; what is left out has its default.

        Without a ``gradient`` the sampler's first fitting one is taken. Raises
        :class:`~samplers.parameters.SpecError`.
        """
        data: dict[str, Any] = {
            "target": {"key": target, "params": dict(target_params or {})},
            "sampler": {"key": sampler, "params": dict(sampler_params or {})},
            **settings,
        }
        if gradient:
            data["gradient"] = {"key": gradient, "params": dict(gradient_params or {})}
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Any) -> "RunSpec":
        """A checked spec from plain data. Raises :class:`~samplers.parameters.SpecError`."""
        data = mapping("spec", data)
        lane_fields = {"sampler", "gradient", "changes"}
        lane = {name: value for name, value in data.items() if name in lane_fields}
        rest = {name: value for name, value in data.items() if name not in lane_fields}
        if "lanes" in rest:
            raise SpecError("lanes", "…", "a run has one sampler; an experiment has lanes")
        (run,) = Experiment.from_dict({**rest, "lanes": [lane]}).runs()
        return run

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """The inverse of :meth:`to_json`, for untrusted text. Raises :class:`SpecError`."""
        return cls.from_dict(parse_json(text))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, complete and in a fixed order."""
        return {
            "version": VERSION,
            "target": choice_dict(self.target),
            **_lane_dict(Lane(self.sampler, self.gradient, self.changes)),
            **_settings_dict(self),
        }

    def to_json(self) -> str:
        """The spec's JSON, which also serves as the key of caches."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def make_target(self) -> Target:
        """The target as an object, shared by all who ask for the same one."""
        return make_target(self.target)

    def first_position(self) -> Array:
        """Where the first chain begins, (dim,)."""
        return self.first_positions()[0]

    def first_positions(self) -> Array:
        """Where chains begin, in turn, (k, dim)."""
        return np.array([self.start]) if self.start else self.make_target().starts()

    def make_sampler(self) -> Sampler:
        """The kernel as an object, with the parameters of the start."""
        return make_sampler(self.sampler)

    def make_gradient(self) -> Estimator:
        """The gradient estimator as an object, with the parameters of the start."""
        return make_gradient(self.gradient)

    def numbers_per_step(self) -> int:
        """How many numbers of data, or coordinates, the gradients of all chains look at in a step, at most."""
        return self.n_chains * _numbers_per_step(self.make_gradient(), self.make_target(), self.make_sampler())

    def generator(self, chain: int = 0) -> Generator:
        """The random numbers of all chains of a kernel, or of one run of a method."""
        seed = SeedSequence((self.seed + chain) % 2**32)
        if self.stream is not None:
            seed = seed.spawn(self.stream + 1)[self.stream]
        return Generator(SFC64(seed))


@dataclass(frozen=True)
class Experiment:
    """A few lanes: the same target and seed, different samplers."""

    target: Choice
    lanes: tuple[Lane, ...]
    seed: int = 1
    n_chains: int = 4
    n_steps: int = 1000
    burn_in: int = 0
    thin: int = 1
    start: tuple[float, ...] = ()
    """Where all chains begin; empty for the target's own start, and of a model of data."""
    momentum: tuple[float, ...] = ()
    """The momentum of all chains there, where a sampler goes on with one; empty for the sampler's own."""

    @property
    def of_model(self) -> bool:
        """Whether the target is a model of data, which has scores where a density has exact answers."""
        return is_model(self.target.key)

    @property
    def of_own_data(self) -> bool:
        """Whether the data are somebody's own, which neither a link nor a saved file holds."""
        if self.of_model:
            return self.target.values()[MODELS[self.target.key].data_parameter] == UPLOADED
        return str(self.target.values().get(own.OfTable.data_parameter, "")).startswith(OWN)

    @property
    def carries_momentum(self) -> bool:
        """Whether the chains of a lane go on with a momentum."""
        return not self.of_model and any(make_sampler(lane.sampler).momentum == KEPT for lane in self.lanes)

    @classmethod
    def of(
        cls, target: str, samplers: Mapping[str, Mapping[str, Any]], *, target_params: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> "Experiment":  # fmt: skip
        """A checked experiment from names and values; each sampler once. Raises :class:`SpecError`."""
        lanes = [{"sampler": {"key": key, "params": dict(values)}} for key, values in samplers.items()]
        choice = {"key": target, "params": dict(target_params or {})}
        return cls.from_dict({"target": choice, "lanes": lanes, **settings})

    def runs(self) -> tuple[RunSpec, ...]:
        """A run for each lane."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return tuple(
            RunSpec(self.target, lane.sampler, lane.gradient, changes=lane.changes, stream=i if self.of_model else None,
                    **{**settings, **({} if lane.n_steps is None else {"n_steps": lane.n_steps})})
            for i, lane in enumerate(self.lanes)
        )  # fmt: skip

    def make_target(self) -> Target:
        """The density as an object, shared by all who ask for the same one."""
        return make_target(self.target)

    def make_model(self, uploaded: Any = None) -> Model:
        """The model with its data loaded, which may take a moment. Raises :class:`SpecError`.

        ``uploaded`` is what the model's ``read`` made of somebody's own files.
        """
        return MODELS[self.target.key](uploaded, **self.target.values())

    @classmethod
    def from_dict(cls, data: Any) -> "Experiment":
        """A checked experiment from plain data: one with lanes, or a single run.

        Raises :class:`~samplers.parameters.SpecError`.
        """
        data = mapping("spec", data)
        if "lanes" not in data and "methods" not in data:
            lane = {name: data[name] for name in ("sampler", "gradient", "changes") if name in data}
            data = {**{name: value for name, value in data.items() if name not in lane}, "lanes": [lane]}
        return _Reader(None).experiment(data)

    @classmethod
    def from_json(cls, text: str) -> "Experiment":
        """The inverse of :meth:`to_json`, for untrusted text. Raises :class:`SpecError`."""
        return cls.from_dict(parse_json(text))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, complete and in a fixed order."""
        return {
            "version": VERSION,
            "target": choice_dict(self.target),
            "lanes": [_lane_dict(lane) for lane in self.lanes],
            **_settings_dict(self),
        }

    def to_json(self) -> str:
        """The experiment as indented JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_query(self) -> str:
        """The experiment as a link's query: ``v=3&target=gamma(shape:0.5)&lane=cir(step_size:0.1)~full&seed=1``.

        Every parameter but an empty list is named, so that an old link means the same when defaults change; run
        lengths, the start and the momentum where they are not the usual ones. Changes belong to saved files, not to
        links.
        """
        parts = [("v", str(VERSION)), ("target", choice_text(ANY_TARGET, self.target))]
        parts += [
            (
                "lane",
                choice_text(ANY_SAMPLER, lane.sampler)
                + (f"~{choice_text(GRADIENTS, lane.gradient)}" if lane.gradient.key else ""),
            )
            for lane in self.lanes
        ]
        parts += [("seed", str(self.seed)), ("n_chains", str(self.n_chains))]
        known = settings_of(self.target.key)
        seldom = {name: getattr(self, name) for name in _SELDOM if name in known}
        parts += [(name, value_text(value)) for name, value in seldom.items() if value != known[name].default]
        return "&".join(f"{name}={quote(value, safe='(),:;~')}" for name, value in parts)

    @classmethod
    def from_query(cls, query: str, default: "Experiment") -> tuple["Experiment", list[str]]:
        """The experiment of a link, and a sentence for everything in it that had to be changed.

        A value that is not allowed becomes the nearest allowed one. Fields of other
        parts of the link are passed over. What the link leaves out is as in ``default``, or fits the link's target.
        """
        try:
            fields = link_fields(query)
        except SpecError as error:
            return default, [f"{str(error).removesuffix('.')}; the default is used instead."]
        messages = given_again(fields, ("v", "target", *SETTINGS))
        data: dict[str, Any] = {"lanes": []}
        for name, text in fields:
            if name == "v":
                data["version"] = text
            elif name == "target":
                data["target"] = parse_choice("target", text, messages)
            elif name == "lane":
                sampler, _, gradient = text.partition("~")
                lane = {"sampler": parse_choice("sampler", sampler, messages)}
                if gradient:
                    lane["gradient"] = parse_choice("gradient", gradient, messages)
                data["lanes"].append(lane)
            elif name in SETTINGS:
                data[name] = text
        if "target" not in data:
            data["target"] = choice_dict(default.target)
            for name in ("start", "momentum"):
                if getattr(default, name):
                    data.setdefault(name, getattr(default, name))
            if not data["lanes"]:
                data["lanes"] = [_lane_dict(lane) for lane in default.lanes]
        if not data["lanes"]:
            target = data["target"]["key"]
            data["lanes"] = first_lanes(target if target in ANY_TARGET else next(iter(TARGETS)))
        return _Reader(messages).experiment(data), messages


def make_target(choice: Choice) -> Target:
    """The target as an object, shared by all who ask for the same one."""
    table = own.held(choice.values().get(own.OfTable.data_parameter))
    # What is made of somebody's own table goes when that goes.
    return _shared(choice) if table is None else table.target(choice, lambda: _make(choice))


def _make(choice: Choice) -> Target:
    return TARGETS[choice.key](**choice.values())


@lru_cache(maxsize=128)
def _shared(choice: Choice) -> Target:
    # A target's exact CDFs and quantiles take far longer to compute than a lane takes to start.
    return _make(choice)


def make_sampler(choice: Choice) -> Sampler:
    """The kernel as an object, shared by all who ask for the same one."""
    cls: Any = SAMPLERS[choice.key]
    return cast(Sampler, _made(cls, choice.params))


def make_gradient(choice: Choice) -> Estimator:
    """The gradient estimator as an object, shared by all who ask for the same one."""
    cls: Any = GRADIENTS[choice.key]
    return cast(Estimator, _made(cls, choice.params))


@lru_cache(maxsize=256)
def _made(cls: type[Any], params: tuple[tuple[str, Value], ...]) -> Any:
    # A change of one parameter asks for the lanes' samplers more than twenty times, and none is ever changed.
    return cls(**dict(params))


class _Reader(Reader):
    """Reads experiments."""

    def experiment(self, data: Mapping[str, Any]) -> Experiment:
        data = self.migrated("experiment", data)
        target = self.choice(ANY_TARGET, "target", data.get("target"), next(iter(TARGETS)))
        parameters = settings_of(target.key)
        known = {"target", "lanes", *parameters}
        for name in data:
            if name not in known:
                self.problem(
                    SpecError(name, data[name], f"there is no such field; there are: {', '.join(sorted(known))}"),
                    "nothing",
                )
        density = None
        if not is_model(target.key):
            target, density = self.density(target)
        lanes_data, most = data.get("lanes"), max_lanes(target.key)
        if not isinstance(lanes_data, Sequence) or isinstance(lanes_data, str) or not 1 <= len(lanes_data) <= most:
            shown = len(lanes_data) if isinstance(lanes_data, list) else lanes_data
            used = f"a list of the first {most}" if isinstance(lanes_data, list) and lanes_data else "one lane"
            self.problem(SpecError("lanes", shown, f"allowed are 1 to {most} lanes"), used)
            lanes_data = list(lanes_data)[:most] if isinstance(lanes_data, list) and lanes_data else [{}]
        lanes = tuple(self.lane(mapping("lane", lane), target.key, density) for lane in lanes_data)
        settings: dict[str, Any] = {}
        for name, parameter in parameters.items():
            settings[name] = self.value(parameter, name, data[name]) if name in data else parameter.default
        if "n_chains" not in data:
            settings["n_chains"] = first_chains(target.key, [lane.sampler.key for lane in lanes])
        if density is not None:
            settings["start"] = self.start(settings["start"], density)
            settings["momentum"] = self.momentum(settings["momentum"], density)
            self.bound_chains(settings, lanes, density, given="n_chains" in data)
            self.bound_trace(settings, density.dim)
        return Experiment(target, lanes, **settings)

    def start(self, start: tuple[float, ...], target: Target) -> tuple[float, ...]:
        """That start, or the target's own where no chain can begin there."""
        try:
            if start:
                target.check_start(start)
        except SpecError as error:
            self.problem(error, "the target's own start")
            return ()
        return start

    def momentum(self, momentum: tuple[float, ...], target: Target) -> tuple[float, ...]:
        """That momentum, or the sampler's own where it is one of another space."""
        if len(momentum) not in (0, target.dim):
            error = SpecError("momentum", list(momentum), target.numbers_needed)
            self.problem(error, "the sampler's own momentum")
            return ()
        return momentum

    def bound_chains(self, settings: dict[str, Any], lanes: Sequence[Lane], target: Target, *, given: bool) -> None:
        """Keep what each lane's gradients remember, and what a step looks at, as little as it may be.

        A number of chains that was not ``given`` is lowered without a word.
        """
        for lane in lanes:
            sampler, n_chains = SAMPLERS[lane.sampler.key], settings["n_chains"]
            if sampler.interacting and n_chains > MAX_INTERACTING:
                allowed = (
                    f"{sampler.title} looks at all pairs of chains in a step; allowed are {MAX_INTERACTING} chains"
                )
                self.problem(SpecError("n_chains", n_chains, allowed), MAX_INTERACTING)
                settings["n_chains"] = MAX_INTERACTING
            stages: list[tuple[Lane | Change, Target]] = [(lane, target)]
            stages += [(x, make_target(x.target) if x.target else target) for x in lane.changes]
            for at, of in stages:
                estimator, kernel = make_gradient(at.gradient), make_sampler(at.sampler)
                memory, a_gradient = len(estimator.first_memory(of)), _numbers(estimator, of)
                numbers, step = (
                    max(a_gradient, kernel.data_beside(of) * of.dim),
                    _numbers_per_step(estimator, of, kernel),
                )
                for each, most, does in (
                    (memory, MAX_MEMORY, f"{estimator.title} keeps {memory:,} numbers a chain"),
                    (numbers, MAX_NUMBERS, f"{estimator.title} looks at {numbers:,} numbers a chain"),
                    (step, MAX_STEP, f"a step of {sampler.title} looks at {step:,} numbers a chain"),
                ):
                    n_chains, used = settings["n_chains"], max(1, most // max(each, 1))
                    if n_chains <= used:
                        continue
                    settings["n_chains"] = used
                    if given:
                        allowed = "allowed is 1 chain" if used == 1 else f"allowed are {used} chains"
                        self.problem(SpecError("n_chains", n_chains, f"{does}; {allowed}"), used)

    def bound_trace(self, settings: dict[str, Any], dim: int) -> None:
        """Keep the full trace as small as it may be."""
        if settings["n_steps"] < settings["thin"]:
            used = settings["n_steps"]
            self.problem(SpecError("thin", settings["thin"], f"allowed is at most n_steps = {used}"), used)
            settings["thin"] = used
        a_step = settings["n_chains"] * dim
        kept = a_step * (settings["n_steps"] // settings["thin"])
        if kept > MAX_DRAWS:
            used = MAX_DRAWS // a_step * settings["thin"]
            self.problem(
                SpecError(
                    "n_steps",
                    settings["n_steps"],
                    f"the full trace would hold {kept:,} numbers; allowed are {MAX_DRAWS:,}: raise thin or lower n_chains",
                ),
                used,
            )
            settings["n_steps"] = used

    def density(self, choice: Choice) -> tuple[Choice, Target]:
        try:
            return choice, make_target(choice)
        except SpecError as error:
            self.problem(error, "the default")
            choice = default_choice(TARGETS, choice.key)
            return choice, make_target(choice)

    def lane(self, data: Mapping[str, Any], target: str, density: Target | None) -> Lane:
        """A lane on a target, given by its key; ``density`` is that target where it is one, None of a model."""
        fields = ("sampler", "gradient", "changes") if density is not None else ("sampler", "changes", "n_steps")
        for name in data:
            if name not in fields:
                allowed = f"a lane on {target} has {', '.join(fields)}"
                self.problem(SpecError(f"lane.{name}", data[name], allowed), "nothing")
        fitting = samplers_of(target, density)
        choice = self.choice(ANY_SAMPLER, "sampler", data.get("sampler"), fitting[0])
        if choice.key not in fitting:
            wide = density is not None and choice.key in samplers_of(target)
            why = (
                f" with its {density.dim} coordinates, of which it takes {SAMPLERS[choice.key].most_coordinates}"
                if density is not None and wide
                else ""
            )
            allowed = f"it does not fit the target {target}{why}; these do: {', '.join(fitting)}"
            self.problem(SpecError("sampler", choice.key, allowed), fitting[0])
            choice = default_choice(ANY_SAMPLER, fitting[0])
        gradient, n_steps = OWN_GRADIENT, None
        if density is not None:
            try:
                make_sampler(choice).check(density)
            except SpecError as error:
                self.problem(error, "the default")
                choice = default_choice(SAMPLERS, choice.key)
            gradient = self.gradient(data.get("gradient"), choice, density)
            choice = _with_first_values(choice, data.get("sampler"), gradient, density)
        elif data.get("n_steps") is not None:
            n_steps = cast(int, self.value(settings_of(target)["n_steps"], "lane.n_steps", data["n_steps"]))
        return Lane(choice, gradient, self.changes(data.get("changes", ()), choice, density), n_steps)

    def changes(self, changes: Any, choice: Choice, density: Target | None) -> tuple[Change, ...]:
        if not isinstance(changes, Sequence) or isinstance(changes, str) or len(changes) > MAX_CHANGES:
            shown = len(changes) if isinstance(changes, (list, tuple)) else changes
            raise SpecError("changes", shown, f"allowed is a list of up to {MAX_CHANGES} changes")
        made: list[Change] = []
        fields = Change._fields if density is not None else ("step", "sampler")
        for entry in changes:
            change = mapping("changes", entry)
            for name in change:
                if name not in fields:
                    error = SpecError(f"changes.{name}", change[name], f"a change has {', '.join(fields)}")
                    self.problem(error, "nothing")
            to = None
            if density is not None and change.get("target") is not None:
                to, density = self.changed_target(change["target"], density)
            step = int(cast(int, check(_STEP, "changes.step", change.get("step"))))
            if made and step < made[-1].step:
                raise SpecError(
                    "changes.step", step, f"changes are in the order of their steps; the last was at {made[-1].step}"
                )
            sampler = self.choice(ANY_SAMPLER, "changes.sampler", change.get("sampler"), choice.key)
            if sampler.key != choice.key:
                raise SpecError("changes.sampler", sampler.key, f"a change keeps the lane's sampler, {choice.key}")
            gradient = OWN_GRADIENT
            if density is not None:
                make_sampler(sampler).check(density)
                gradient = self.gradient(change.get("gradient"), choice, density)
            made.append(Change(step, sampler, gradient, to))
        return tuple(made)

    def changed_target(self, data: Any, before: Target) -> tuple[Choice, Target]:
        choice, target = self.density(self.choice(TARGETS, "changes.target", data, before.key))
        if not target.succeeds(before):
            raise SpecError(
                "changes.target",
                choice.key,
                f"a change keeps the target, {before.key}, and its dimension, {before.dim}",
            )
        return choice, target

    def gradient(self, data: Any, sampler: Choice, target: Target) -> Choice:
        cls = SAMPLERS[sampler.key]
        fits = cls.gradients_for(type(target))
        fitting = [key for key in GRADIENTS if key in fits]
        if data is None:
            return _fitting_default(fitting[0], target)
        choice = self.choice(GRADIENTS, "gradient", data, fitting[0])
        if choice.key not in fitting:
            self.problem(
                SpecError(
                    "gradient",
                    choice.key,
                    f"it does not fit {sampler.key} on {target.key}; these do: {', '.join(fitting)}",
                ),
                fitting[0],
            )
            return _fitting_default(fitting[0], target)
        try:
            make_gradient(choice).check(target)
        except SpecError as error:
            self.problem(error, "the nearest")
            choice = _fitting_default(choice.key, target)
        kept = len(make_gradient(choice).first_memory(target))
        if kept > MAX_MEMORY:
            allowed = f"it would keep {kept:,} numbers of N = {len(target.data()):,} data; allowed are {MAX_MEMORY:,}"
            self.problem(SpecError("gradient", choice.key, allowed), fitting[0])
            return _fitting_default(fitting[0], target)
        return choice


def _with_first_values(choice: Choice, data: Any, gradient: Choice, target: Target) -> Choice:
    """The sampler with values that fit the target, where ``data`` gives none."""
    given = data.get("params", {}) if isinstance(data, Mapping) else {}
    first: dict[str, Value] = {**SAMPLERS[choice.key].first_values(target.first_steps, gradient.key)}
    if not given:
        first = {**SAMPLERS[choice.key].first_entries(target), **first}
    values = {name: value for name, value in first.items() if name not in given}
    return Choice(choice.key, tuple({**choice.values(), **values}.items()))


def _numbers(estimator: Estimator, target: Target) -> int:
    """How many numbers of data one gradient of a chain looks at, at most: what remembers begins with all data."""
    batch = estimator.noise().batch_size
    if MEMORY not in target.provides:
        # Categories, of which the whole gradient needs the counts alone.
        return max(batch, target.dim)
    return (len(target.data()) if MEMORY in estimator.requires else batch or len(target.data())) * target.dim


def _numbers_per_step(estimator: Estimator, target: Target, kernel: Sampler) -> int:
    """How many numbers of data, or coordinates, the gradients of one chain look at in a step, at most."""
    full = kernel.full_gradients_per_step * max(len(target.data()), 1) * target.dim
    return _numbers(estimator, target) * kernel.most_gradients + full


def _fitting_default(key: str, target: Target) -> Choice:
    choice = default_choice(GRADIENTS, key)
    if "batch_size" in choice.values():
        size = min(int(choice.values()["batch_size"]), len(target.data()))  # type: ignore[arg-type]
        choice = Choice(key, check_all(GRADIENTS[key], "gradient", {**choice.values(), "batch_size": size}))
    return choice


def _settings_dict(spec: RunSpec | Experiment) -> dict[str, Any]:
    values = {name: getattr(spec, name) for name in settings_of(spec.target.key)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _lane_dict(lane: Lane) -> dict[str, Any]:
    out: dict[str, Any] = {"sampler": choice_dict(lane.sampler)}
    if lane.gradient != OWN_GRADIENT:
        out["gradient"] = choice_dict(lane.gradient)
    if lane.n_steps is not None:
        out["n_steps"] = lane.n_steps
    if lane.changes:
        out["changes"] = [
            {"step": x.step, "sampler": choice_dict(x.sampler)}
            | ({"gradient": choice_dict(x.gradient)} if x.gradient != OWN_GRADIENT else {})
            | ({"target": choice_dict(x.target)} if x.target else {})
            for x in lane.changes
        ]
    return out
