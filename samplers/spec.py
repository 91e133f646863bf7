"""The experiment as data: frozen, hashable, seeded; as JSON and as a link.

A :class:`RunSpec` is one run: target, sampler, gradient, seed and lengths. An :class:`Experiment` is one
to four *lanes* on the same target with the same seed. Both hold every parameter, defaults included,
so equal specs are equal experiments and give the same draws.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import param

from samplers.choices import (
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
)
from samplers.gradients import GRADIENTS, Estimator
from samplers.kernels import SAMPLERS, Sampler
from samplers.migrations import VERSION
from samplers.parameters import Count, SpecError, check, check_all, declared
from samplers.targets import TARGETS, Target

MAX_LANES = 4
MAX_CHANGES = 1000
# The largest full trace, in numbers: 2 GiB of draws.
MAX_DRAWS = 2**28


class Settings(param.Parameterized):
    """What a run has beside its target, sampler and gradient."""

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


_SETTINGS = dict(declared(Settings))

LINK_FIELDS = ("target", "lane", *_SETTINGS)
"""The fields of a link that belong to the experiment; beside them it has its version, ``v``."""
_LENGTHS = ("n_steps", "burn_in", "thin")


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
    changes: tuple[Change, ...] = ()

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
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    def to_json(self) -> str:
        """The spec's JSON, which also serves as the key of caches."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def make_target(self) -> Target:
        """The target as an object, shared by all who ask for the same one."""
        return make_target(self.target)

    def make_sampler(self) -> Sampler:
        """The sampler as an object, with the parameters of the start."""
        return SAMPLERS[self.sampler.key](**self.sampler.values())

    def make_gradient(self) -> Estimator:
        """The gradient estimator as an object, with the parameters of the start."""
        return GRADIENTS[self.gradient.key](**self.gradient.values())


@dataclass(frozen=True)
class Experiment:
    """One to four lanes: the same target and seed, different samplers."""

    target: Choice
    lanes: tuple[Lane, ...]
    seed: int = 1
    n_chains: int = 4
    n_steps: int = 1000
    burn_in: int = 0
    thin: int = 1

    def runs(self) -> tuple[RunSpec, ...]:
        """A run for each lane."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        return tuple(RunSpec(self.target, x.sampler, x.gradient, changes=x.changes, **settings) for x in self.lanes)

    def make_target(self) -> Target:
        """The target as an object, shared by all who ask for the same one."""
        return make_target(self.target)

    @classmethod
    def from_dict(cls, data: Any) -> "Experiment":
        """A checked experiment from plain data: one with lanes, or a single run.

        Raises :class:`~samplers.parameters.SpecError`.
        """
        data = mapping("spec", data)
        if "lanes" not in data:
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
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    def to_json(self) -> str:
        """The experiment as indented JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_query(self) -> str:
        """The experiment as a link's query: ``v=1&target=gamma(shape:0.5)&lane=cir(step_size:0.1)~full&seed=1``.

        Every parameter is named, so that an old link means the same when defaults change; run lengths where they are
        not the usual ones. Changes belong to saved files, not to links.
        """
        parts = [("v", str(VERSION)), ("target", choice_text(self.target))]
        parts += [("lane", f"{choice_text(x.sampler)}~{choice_text(x.gradient)}") for x in self.lanes]
        parts += [("seed", str(self.seed)), ("n_chains", str(self.n_chains))]
        lengths = {name: getattr(self, name) for name in _LENGTHS}
        parts += [(name, str(value)) for name, value in lengths.items() if value != _SETTINGS[name].default]
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
        messages = given_again(fields, ("v", "target", *_SETTINGS))
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
            elif name in _SETTINGS:
                data[name] = text
        if "target" not in data:
            data["target"] = choice_dict(default.target)
            if not data["lanes"]:
                data["lanes"] = [_lane_dict(lane) for lane in default.lanes]
        if not data["lanes"]:
            target = TARGETS.get(data["target"]["key"], next(iter(TARGETS.values())))
            data["lanes"] = [{"sampler": next(key for key, cls in SAMPLERS.items() if cls.accepts(target))}]
        return _Reader(messages).experiment(data), messages


@lru_cache(maxsize=128)
def make_target(choice: Choice) -> Target:
    """The target as an object, shared by all who ask for the same one."""
    # A target's exact CDFs and quantiles take far longer to compute than a lane takes to start.
    return TARGETS[choice.key](**choice.values())


class _Reader(Reader):
    """Reads experiments."""

    def experiment(self, data: Mapping[str, Any]) -> Experiment:
        data = self.migrated("experiment", data)
        known = {"target", "lanes", *_SETTINGS}
        for name in data:
            if name not in known:
                self.problem(
                    SpecError(name, data[name], f"there is no such field; there are: {', '.join(sorted(known))}"),
                    "nothing",
                )
        target, target_object = self.target(data.get("target"))
        lanes_data = data.get("lanes")
        if not isinstance(lanes_data, Sequence) or isinstance(lanes_data, str) or not 1 <= len(lanes_data) <= MAX_LANES:
            shown = len(lanes_data) if isinstance(lanes_data, list) else lanes_data
            used = f"the first {MAX_LANES}" if isinstance(lanes_data, list) and lanes_data else "one lane"
            self.problem(SpecError("lanes", shown, f"allowed are 1 to {MAX_LANES} lanes"), used)
            lanes_data = list(lanes_data)[:MAX_LANES] if isinstance(lanes_data, list) and lanes_data else [{}]
        lanes = tuple(self.lane(mapping("lane", lane), target_object) for lane in lanes_data)
        settings: dict[str, Any] = {}
        for name, parameter in _SETTINGS.items():
            settings[name] = self.value(parameter, name, data[name]) if name in data else parameter.default
        if settings["n_steps"] < settings["thin"]:
            used = settings["n_steps"]
            self.problem(SpecError("thin", settings["thin"], f"allowed is at most n_steps = {used}"), used)
            settings["thin"] = used
        a_step = settings["n_chains"] * target_object.dim
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
        return Experiment(target, lanes, **settings)

    def target(self, data: Any) -> tuple[Choice, Target]:
        choice = self.choice(TARGETS, "target", data, next(iter(TARGETS)))
        try:
            return choice, make_target(choice)
        except SpecError as error:
            self.problem(error, "the default")
            choice = default_choice(TARGETS, choice.key)
            return choice, make_target(choice)

    def lane(self, data: Mapping[str, Any], target: Target) -> Lane:
        for name in data:
            if name not in ("sampler", "gradient", "changes"):
                self.problem(
                    SpecError(f"lane.{name}", data[name], "a lane has sampler, gradient and changes"), "nothing"
                )
        fitting = [key for key, cls in SAMPLERS.items() if cls.accepts(type(target))]
        choice = self.choice(SAMPLERS, "sampler", data.get("sampler"), fitting[0])
        if choice.key not in fitting:
            self.problem(
                SpecError(
                    "sampler", choice.key, f"it does not fit the target {target.key}; these do: {', '.join(fitting)}"
                ),
                fitting[0],
            )
            choice = default_choice(SAMPLERS, fitting[0])
        try:
            SAMPLERS[choice.key](**choice.values()).check(target)
        except SpecError as error:
            self.problem(error, "the default")
            choice = default_choice(SAMPLERS, choice.key)
        gradient = self.gradient(data.get("gradient"), choice, target)
        choice = _with_first_values(choice, data.get("sampler"), gradient, target)
        changes = data.get("changes", ())
        if not isinstance(changes, Sequence) or isinstance(changes, str) or len(changes) > MAX_CHANGES:
            shown = len(changes) if isinstance(changes, (list, tuple)) else changes
            raise SpecError("changes", shown, f"allowed is a list of up to {MAX_CHANGES} changes")
        made: list[Change] = []
        for entry in changes:
            change = mapping("changes", entry)
            for name in change:
                if name not in Change._fields:
                    self.problem(
                        SpecError(f"changes.{name}", change[name], f"a change has {', '.join(Change._fields)}"),
                        "nothing",
                    )
            to = None
            if change.get("target") is not None:
                to, target = self.changed_target(change["target"], target)
            step = int(cast(int, check(_SETTINGS["burn_in"], "changes.step", change.get("step"))))
            if made and step < made[-1].step:
                raise SpecError(
                    "changes.step", step, f"changes are in the order of their steps; the last was at {made[-1].step}"
                )
            sampler = self.choice(SAMPLERS, "changes.sampler", change.get("sampler"), choice.key)
            if sampler.key != choice.key:
                raise SpecError("changes.sampler", sampler.key, f"a change keeps the lane's sampler, {choice.key}")
            SAMPLERS[sampler.key](**sampler.values()).check(target)
            made.append(Change(step, sampler, self.gradient(change.get("gradient"), choice, target), to))
        return Lane(choice, gradient, tuple(made))

    def changed_target(self, data: Any, before: Target) -> tuple[Choice, Target]:
        choice, target = self.target(data)
        if not target.succeeds(before):
            raise SpecError(
                "changes.target",
                choice.key,
                f"a change keeps the target, {before.key}, and its dimension, {before.dim}",
            )
        return choice, target

    def gradient(self, data: Any, sampler: Choice, target: Target) -> Choice:
        cls = SAMPLERS[sampler.key]
        fitting = [key for key in GRADIENTS if key in cls.gradients_for(type(target))]
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
            GRADIENTS[choice.key](**choice.values()).check(target)
        except SpecError as error:
            self.problem(error, "the nearest")
            return _fitting_default(choice.key, target)
        return choice


def _with_first_values(choice: Choice, data: Any, gradient: Choice, target: Target) -> Choice:
    """The sampler with values that fit the target, where ``data`` gives none."""
    given = data.get("params", {}) if isinstance(data, Mapping) else {}
    first = SAMPLERS[choice.key].first_values(type(target), gradient.key)
    values = {name: value for name, value in first.items() if name not in given}
    return Choice(choice.key, tuple({**choice.values(), **values}.items()))


def _fitting_default(key: str, target: Target) -> Choice:
    choice = default_choice(GRADIENTS, key)
    if "batch_size" in choice.values():
        size = min(int(choice.values()["batch_size"]), len(target.data()))  # type: ignore[arg-type]
        choice = Choice(key, check_all(GRADIENTS[key], "gradient", {**choice.values(), "batch_size": size}))
    return choice


def _lane_dict(lane: Lane) -> dict[str, Any]:
    out: dict[str, Any] = {"sampler": choice_dict(lane.sampler), "gradient": choice_dict(lane.gradient)}
    if lane.changes:
        out["changes"] = [
            {"step": x.step, "sampler": choice_dict(x.sampler), "gradient": choice_dict(x.gradient)}
            | ({"target": choice_dict(x.target)} if x.target else {})
            for x in lane.changes
        ]
    return out
