"""Plain data of an experiment, checked: every name, value and limit, with a sentence for what is not allowed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import param

from sgmcmc_lab.samplers.choices import Choice, default_choice, make_gradient, make_sampler, make_target
from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.lanes import CONSTANT, OWN_GRADIENT, Change, Lane, first_chains, max_lanes, samplers_of
from sgmcmc_lab.samplers.migrations import VERSION, migrated, version_of
from sgmcmc_lab.samplers.parameters import SpecError, Value, check, check_all, declared, nearest, written
from sgmcmc_lab.samplers.registry import Named
from sgmcmc_lab.samplers.requirements import MEMORY
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, Settings, is_model, settings_of
from sgmcmc_lab.samplers.targets import TARGETS, Target

MAX_JSON = 1_000_000
"""A saved experiment is a few kB."""
MAX_CHANGES = 1000
"""The most changes of a lane."""
# The largest full trace, in numbers: 2 GiB of draws.
MAX_DRAWS = 2**28
# The largest memory of a lane's gradients, and of its chains' auxiliary variables, in numbers: 32 MiB each.
MAX_MEMORY = 2**22
# The most numbers of data that the chains of a lane look at for one gradient each: a tenth of a second or two.
MAX_NUMBERS = 10**8
# The same for all gradients of a step of one chain: from two seconds, for a logistic regression, to
# half a minute, of a typed posterior. A thousand chains of NUTS on the presets' data take a thousand gradients at most.
MAX_STEP = 2 * 10**9
# The most interacting chains: 20,000 pairs in a step of a millisecond.
MAX_INTERACTING = 200

_STEP = Settings.param.burn_in


def mapping(field: str, data: Any) -> Mapping[str, Any]:
    """The data, if it has named fields. Raises :class:`SpecError`."""
    if not isinstance(data, Mapping):
        raise SpecError(field, data, "allowed is an object with named fields")
    return data


def parse_json(text: str) -> Any:
    """The contents of untrusted JSON. Raises :class:`SpecError`."""
    if len(text) > MAX_JSON:
        raise SpecError("spec", f"{len(text):,} characters", f"allowed are at most {MAX_JSON:,}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SpecError(
            "spec",
            text[max(error.pos - 20, 0) : error.pos + 20],
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
        ) from None
    except ValueError:
        raise SpecError("spec", text[:40], "it holds a whole number of thousands of digits") from None
    except RecursionError:
        raise SpecError("spec", text[:40], "its brackets are nested too deeply") from None


class Reader:
    """Reads plain data. It raises at the first problem, or, given a list, mends it and says so there."""

    def __init__(self, messages: list[str] | None):
        self.messages = messages

    def problem(self, error: SpecError, used: Any) -> None:
        """Raise the error, or say that ``used`` takes its place."""
        if self.messages is None:
            raise error
        used = written(used) if isinstance(used, int) and not isinstance(used, bool) else used
        used = "none" if used == () else used
        self.messages.append(f"{str(error).removesuffix('.')}; {used} is used instead.")

    def migrated(self, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Data of any version, without its number, in today's format."""
        version = 0
        if "version" in data:
            try:
                version = version_of(data["version"])
            except SpecError as error:
                version = VERSION
                self.problem(error, f"version {version}")
        rest = {name: value for name, value in data.items() if name != "version"}
        return cast(dict[str, Any], migrated(kind, rest, version))

    def choice(self, registry: Named[Any], field: str, data: Any, fallback: str) -> Choice:
        """A registered name with its parameters; ``fallback`` where the name is none."""
        data = {"key": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping):
            error = SpecError(field, data, "this field is needed") if data is None else registry.unknown(field, data)
            self.problem(error, fallback)
            return default_choice(registry, fallback)
        for name in data:
            if name not in ("key", "params"):
                self.problem(SpecError(f"{field}.{name}", data[name], "there are only key and params"), "nothing")
        try:
            cls = registry.find(field, data.get("key"))
        except SpecError as error:
            self.problem(error, fallback)
            return default_choice(registry, fallback)
        values = mapping(f"{field}.params", data.get("params", {}))
        if self.messages is None:
            return Choice(cls.key, check_all(cls, field, values))
        known = dict(declared(cls))
        for name in values:
            if name not in known:
                names = ", ".join(known) or "none"
                self.problem(
                    SpecError(f"{field}.{name}", values[name], f"there is no such parameter; there are: {names}"),
                    "nothing",
                )
        return Choice(
            cls.key,
            tuple(
                (name, self.value(p, f"{field}.{name}", values[name]) if name in values else p.default)
                for name, p in known.items()
            ),
        )

    def value(self, parameter: param.Parameter, field: str, value: Any) -> Value:
        """A parameter's value, or the nearest allowed one."""
        try:
            return check(parameter, field, value)
        except SpecError as error:
            used = nearest(parameter, value)
            self.problem(error, used)
            return used


class Parts(NamedTuple):
    """The parts of an experiment."""

    target: Choice
    lanes: tuple[Lane, ...]
    settings: dict[str, Any]


class ExperimentReader(Reader):
    """Reads experiments."""

    temperature = 1.0
    """The temperature of the experiment that is being read."""

    def experiment(self, data: Mapping[str, Any]) -> Parts:
        """The parts of an experiment with lanes, of any version."""
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
        density, self.temperature = None, 1.0
        if not is_model(target.key):
            heat = parameters["temperature"]
            if "temperature" in data:
                self.temperature = cast(float, self.value(heat, heat.name, data[heat.name]))
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
            given = name in data and name != "temperature"
            settings[name] = self.value(parameter, name, data[name]) if given else parameter.default
        if "n_chains" not in data:
            settings["n_chains"] = first_chains(target.key, [lane.sampler.key for lane in lanes])
        if density is not None:
            settings["temperature"] = self.temperature
            settings["start"] = self.start(settings["start"], density)
            settings["momentum"] = self.momentum(settings["momentum"], density)
            self.bound_chains(settings, lanes, density, given="n_chains" in data)
            self.bound_trace(settings, density.dim)
        return Parts(target, lanes, settings)

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
            stages: list[tuple[Lane | Change, Target]] = [(lane, target)]
            stages += [(x, make_target(x.target, self.temperature) if x.target else target) for x in lane.changes]
            for at, of in stages:
                for least, most, does in chain_limits(at.sampler, at.gradient, of):
                    n_chains, used = settings["n_chains"], min(max(settings["n_chains"], least), most)
                    if n_chains == used:
                        continue
                    settings["n_chains"] = used
                    if given or n_chains < least:
                        allowed = "allowed is 1 chain" if used == 1 else f"allowed are {used} chains"
                        more = " or more" if n_chains < least else ""
                        self.problem(SpecError("n_chains", n_chains, f"{does}; {allowed}{more}"), used)

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
        """That target as an object, or the default one where its values do not go together.

        If it has no exact answers at this temperature, the temperature is 1 instead.
        """
        try:
            return choice, make_target(choice, self.temperature)
        except SpecError as error:
            if error.field == "temperature":
                self.problem(error, 1)
                self.temperature = 1.0
                return self.density(choice)
            self.problem(error, "the default")
            return self.density(default_choice(TARGETS, choice.key))

    def lane(self, data: Mapping[str, Any], target: str, density: Target | None) -> Lane:
        """A lane on a target, given by its key; ``density`` is that target where it is one, None of a model."""
        fields = (
            ("sampler", "gradient", "schedule", "changes") if density is not None else ("sampler", "changes", "n_steps")
        )
        for name in data:
            if name not in fields:
                allowed = f"a lane on {target} has {', '.join(fields)}"
                self.problem(SpecError(f"lane.{name}", data[name], allowed), "nothing")
        fitting = samplers_of(target, density)
        choice = self.choice(ANY_SAMPLER, "sampler", data.get("sampler"), fitting[0])
        if choice.key not in fitting:
            wide = density is not None and choice.key in samplers_of(target)
            why = ""
            if density is not None and wide:
                least, dim = SAMPLERS[choice.key].least_coordinates, density.dim
                limit = f"needs {least}" if dim < least else f"takes {SAMPLERS[choice.key].most_coordinates}"
                why = f" with its {dim} coordinate{'s' * (dim > 1)}, of which it {limit}"
            allowed = f"it does not fit the target {target}{why}; these do: {', '.join(fitting)}"
            self.problem(SpecError("sampler", choice.key, allowed), fitting[0])
            choice = default_choice(ANY_SAMPLER, fitting[0])
        gradient, n_steps, schedule = OWN_GRADIENT, None, CONSTANT
        if density is not None:
            schedule = self.schedule(data.get("schedule"), choice)
            try:
                make_sampler(choice).check(density)
            except SpecError as error:
                self.problem(error, "the default")
                choice = default_choice(SAMPLERS, choice.key)
            gradient = self.gradient(data.get("gradient"), choice, density)
            choice = _with_first_values(choice, data.get("sampler"), gradient, density)
        elif data.get("n_steps") is not None:
            n_steps = cast(int, self.value(settings_of(target)["n_steps"], "lane.n_steps", data["n_steps"]))
        return Lane(choice, gradient, self.changes(data.get("changes", ()), choice, density), n_steps, schedule)

    def schedule(self, data: Any, sampler: Choice) -> Choice:
        """The lane's step-size schedule, for samplers that have a step size."""
        choice = CONSTANT if data is None else self.choice(SCHEDULES, "schedule", data, CONSTANT.key)
        if choice != CONSTANT and "step_size" not in sampler.values():
            allowed = f"{SAMPLERS[sampler.key].title} has no step size; allowed is {CONSTANT.key}"
            self.problem(SpecError("schedule", choice.key, allowed), CONSTANT.key)
            return CONSTANT
        return choice

    def changes(self, changes: Any, choice: Choice, density: Target | None) -> tuple[Change, ...]:
        """A lane's changes, in the order of their steps."""
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
        """The target of a change: the one before with other parameters."""
        choice, target = self.density(self.choice(TARGETS, "changes.target", data, before.key))
        if not target.succeeds(before):
            raise SpecError(
                "changes.target",
                choice.key,
                f"a change keeps the target, {before.key}, and its dimension, {before.dim}",
            )
        return choice, target

    def gradient(self, data: Any, sampler: Choice, target: Target) -> Choice:
        """The lane's gradient estimator, with a minibatch no larger than the data."""
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


def chain_limits(sampler: Choice, gradient: Choice, target: Target) -> Iterator[tuple[int, int, str]]:
    """The fewest and the most chains of a lane on a target, each with the reason, in words."""
    estimator, kernel = make_gradient(gradient), make_sampler(sampler)
    yield kernel.least_chains, Settings.param.n_chains.bounds[1], f"{kernel.title} adapts across chains"
    if kernel.interacting:
        yield 1, MAX_INTERACTING, f"{kernel.title} looks at all pairs of chains in a step"
    memory, variables = len(estimator.first_memory(target)), len(kernel.auxiliary(target))
    numbers = max(_numbers(estimator, target), kernel.data_beside(target) * target.dim)
    step = numbers_per_step(estimator, target, kernel)
    for each, most, does in (
        (memory, MAX_MEMORY, f"{estimator.title} keeps {memory:,} numbers a chain"),
        (variables, MAX_MEMORY, f"{kernel.title} keeps {variables:,} numbers a chain"),
        (numbers, MAX_NUMBERS, f"{estimator.title} looks at {numbers:,} numbers a chain"),
        (step, MAX_STEP, f"a step of {kernel.title} looks at {step:,} numbers a chain"),
    ):
        yield 1, max(1, most // max(each, 1)), does


def numbers_per_step(estimator: Estimator, target: Target, kernel: Sampler) -> int:
    """How many numbers of data, or coordinates, the gradients of one chain look at in a step, at most."""
    full = kernel.full_gradients_per_step * max(len(target.data()), 1) * target.dim
    return _numbers(estimator, target) * kernel.most_gradients(estimator.noise().batch_size) + full


def _fitting_default(key: str, target: Target) -> Choice:
    choice = default_choice(GRADIENTS, key)
    if "batch_size" in choice.values():
        size = min(int(choice.values()["batch_size"]), len(target.data()))  # type: ignore[arg-type]
        choice = Choice(key, check_all(GRADIENTS[key], "gradient", {**choice.values(), "batch_size": size}))
    return choice
