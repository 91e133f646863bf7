"""The experiment as data: frozen, hashable, seeded; as JSON and as a link.

A :class:`RunSpec` is one run: target, sampler, gradient, seed and lengths. An :class:`Experiment` is a few *lanes* on
the same target with the same seed. Both hold every parameter, defaults included, so equal specs are equal experiments
and give the same draws.

The target is a density, whose samplers are the kernels, or a model of data, whose samplers are the model's methods.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from sgmcmc_lab.samplers import link
from sgmcmc_lab.samplers.choices import Choice, choice_dict, make_gradient, make_sampler, make_schedule, make_target
from sgmcmc_lab.samplers.gradients import Estimator
from sgmcmc_lab.samplers.kernels import Sampler
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.lanes import CONSTANT, Change, Lane, first_lanes, lane_dict
from sgmcmc_lab.samplers.migrations import VERSION
from sgmcmc_lab.samplers.parameters import OWN, UPLOADED, SpecError
from sgmcmc_lab.samplers.reader import ExperimentReader, Parts, mapping, numbers_per_step, parse_json
from sgmcmc_lab.samplers.registry import MODELS
from sgmcmc_lab.samplers.schedules import Schedule
from sgmcmc_lab.samplers.settings import ANY_TARGET, SETTINGS, is_model, settings_of
from sgmcmc_lab.samplers.targets import TARGETS, Target, own
from sgmcmc_lab.samplers.targets.base import Array

_LANE_FIELDS = ("sampler", "gradient", "schedule", "changes")
"""The fields of a run that belong to its lane."""


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
    """The start of all chains; empty for the target's own start."""
    momentum: tuple[float, ...] = ()
    """The momentum of all chains there, where the sampler goes on with one; empty for the sampler's own."""
    changes: tuple[Change, ...] = ()
    stream: int | None = None
    """The number of the stream among the streams of random numbers that are spawned from the seed; None for the seed's
    own. Kernels side by side have the same random numbers, methods of a model each their own."""
    schedule: Choice = CONSTANT
    """How the step size falls; with it the draws are weighted by their step sizes."""
    temperature: float = 1.0
    """The T of e^{−U/T}, the target of the sampler."""

    @classmethod
    def of(
        cls,
        target: str,
        sampler: str,
        gradient: str = "",
        *,
        target_params: Mapping[str, Any] | None = None,
        sampler_params: Mapping[str, Any] | None = None,
        gradient_params: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> "RunSpec":
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
        lane_fields = set(_LANE_FIELDS)
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
            **lane_dict(Lane(self.sampler, self.gradient, self.changes, schedule=self.schedule)),
            **_settings_dict(self),
        }

    def to_json(self) -> str:
        """The spec's JSON, which also serves as the key of caches."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def make_target(self) -> Target:
        """The target as an object, shared by all who ask for the same one."""
        return make_target(self.target, self.temperature)

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

    def make_schedule(self) -> Schedule:
        """The step-size schedule as an object."""
        return make_schedule(self.schedule)

    def numbers_per_step(self) -> int:
        """How many numbers of data, or coordinates, the gradients of all chains look at in a step, at most."""
        return self.n_chains * numbers_per_step(self.make_gradient(), self.make_target(), self.make_sampler())

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
    """The start of all chains; empty for the target's own start, and of a model of data."""
    momentum: tuple[float, ...] = ()
    """The momentum of all chains there, where a sampler goes on with one; empty for the sampler's own."""
    temperature: float = 1.0
    """The T of e^{−U/T}, the target of every sampler."""

    @property
    def of_model(self) -> bool:
        """Whether the target is a model of data, which has scores where a density has exact answers."""
        return is_model(self.target.key)

    @property
    def density(self) -> tuple[Choice, float]:
        """The part that has exact answers: the target with its parameters, and the temperature."""
        return self.target, self.temperature

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
        cls,
        target: str,
        samplers: Mapping[str, Mapping[str, Any]],
        *,
        target_params: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> "Experiment":
        """A checked experiment from names and values; each sampler once. Raises :class:`SpecError`."""
        lanes = [{"sampler": {"key": key, "params": dict(values)}} for key, values in samplers.items()]
        choice = {"key": target, "params": dict(target_params or {})}
        return cls.from_dict({"target": choice, "lanes": lanes, **settings})

    def runs(self) -> tuple[RunSpec, ...]:
        """A run for each lane."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return tuple(
            RunSpec(
                self.target,
                lane.sampler,
                lane.gradient,
                changes=lane.changes,
                schedule=lane.schedule,
                stream=i if self.of_model else None,
                **{**settings, **({} if lane.n_steps is None else {"n_steps": lane.n_steps})},
            )
            for i, lane in enumerate(self.lanes)
        )

    def make_target(self) -> Target:
        """The density as an object, shared by all who ask for the same one."""
        return make_target(self.target, self.temperature)

    def make_model(self, uploaded: Any = None) -> Any:
        """The :class:`~samplers.models.base.Model` with its data loaded. Raises :class:`SpecError`.

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
            lane = {name: data[name] for name in _LANE_FIELDS if name in data}
            data = {**{name: value for name, value in data.items() if name not in lane}, "lanes": [lane]}
        return cls._of_parts(ExperimentReader(None).experiment(data))

    @classmethod
    def from_json(cls, text: str) -> "Experiment":
        """The inverse of :meth:`to_json`, for untrusted text. Raises :class:`SpecError`."""
        return cls.from_dict(parse_json(text))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, complete and in a fixed order."""
        return {
            "version": VERSION,
            "target": choice_dict(self.target),
            "lanes": [lane_dict(lane) for lane in self.lanes],
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
        return link.write_query(self.target, self.lanes, vars(self))

    @classmethod
    def from_query(cls, query: str, default: "Experiment") -> tuple["Experiment", list[str]]:
        """The experiment of a link, and a sentence for everything in it that had to be changed.

        A value that is not allowed becomes the nearest allowed one. Fields of other
        parts of the link are passed over. Fields that the link leaves out are as in ``default``, or fits the link's
        target.
        """
        try:
            data, messages = link.read_query(query)
        except SpecError as error:
            return default, [f"{str(error).removesuffix('.')}; the default is used instead."]
        if "target" not in data:
            data["target"] = choice_dict(default.target)
            for name in ("start", "momentum"):
                if getattr(default, name):
                    data.setdefault(name, getattr(default, name))
            if not data["lanes"]:
                data["lanes"] = [lane_dict(lane) for lane in default.lanes]
        if not data["lanes"]:
            target = data["target"]["key"]
            data["lanes"] = first_lanes(target if target in ANY_TARGET else next(iter(TARGETS)))
        return cls._of_parts(ExperimentReader(messages).experiment(data)), messages

    @classmethod
    def _of_parts(cls, parts: Parts) -> "Experiment":
        return cls(parts.target, parts.lanes, **parts.settings)


def _settings_dict(spec: RunSpec | Experiment) -> dict[str, Any]:
    values = {name: getattr(spec, name) for name in settings_of(spec.target.key)}
    if values.get("temperature") == 1:
        # Files of experiments at temperature 1 are as they were before there were others.
        del values["temperature"]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
