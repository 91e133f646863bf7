"""The study as data: a model, up to six methods, a seed, and what was changed on the way; and its run.

The same study gives the same draws, bit for bit, live or headless: each method has its own generator, spawned from
the seed, is scored at the same steps, and changed at the same ones.
"""

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from samplers import jit
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
from samplers.migrations import VERSION
from samplers.models import METHODS, MODELS, Method, Model
from samplers.models.base import UPLOADED
from samplers.parameters import Count, SpecError, check, check_all
from samplers.trace import Divergence

MAX_METHODS = 6
MAX_SEEDS = 5
MAX_CHANGES = 1000
"""Over all methods."""
LINK_FIELDS = ("model", "method", "seed")
"""The fields of a link that belong to the study."""
_SEED = Count(1, bounds=(0, 2**32 - 1), label="Seed", doc="The same seed gives the same draws.")
SEEDS = Count(
    1, bounds=(1, MAX_SEEDS), label="Seeds of each method",
    doc="Each method runs with so many seeds: the seed, the next one, and so on. Curves show their mean, and a band from the lowest to the highest. The pictures are of the first.",
)  # fmt: skip
N_STEPS = Count(100, bounds=(0, 1_000_000_000), label="Steps", doc="Steps of a method, without a page to stop it.")
_METHOD = Count(1, bounds=(1, MAX_METHODS), label="Method", doc="Counted from 1.")
_STEP = Count(0, bounds=N_STEPS.bounds, label="Step", doc="Counted from 0.")
SCORE_SPACING = 1.1
"""A method is scored at steps that are this much further on: evenly spaced on a log axis."""


class Score(NamedTuple):
    """The held-out score at one step, on each of the axes."""

    step: int
    data_seen: int
    seconds: float
    """Time spent in the method's steps; scoring is not counted."""
    value: float


class MethodChange(NamedTuple):
    """From ``step`` on other values of a method's parameters."""

    method: int
    """Counted from 1."""
    step: int
    choice: Choice


@dataclass(frozen=True)
class Study:
    """A model and methods side by side. Make it with :meth:`of`, :meth:`from_dict` or :meth:`from_query`.

    A link has the first three fields; a saved file has besides what happened on the page.
    """

    model: Choice
    methods: tuple[Choice, ...]
    seed: int = 1
    seeds: int = 1
    """Runs of each method, with this seed and those after it."""
    n_steps: tuple[int, ...] = ()
    """Of each method; ``N_STEPS`` where it is empty."""
    changes: tuple[MethodChange, ...] = ()
    """Of each method in the order of their steps."""

    @classmethod
    def of(cls, model: str, methods: Mapping[str, Mapping[str, Any]], *, seed: int = 1, **model_params: Any) -> "Study":
        """A checked study from names and values; each method once. Raises :class:`SpecError`."""
        listed = [{"key": key, "params": dict(values)} for key, values in methods.items()]
        return cls.from_dict({"model": {"key": model, "params": model_params}, "methods": listed, "seed": seed})

    @classmethod
    def from_dict(cls, data: Any) -> "Study":
        """A checked study from plain data. Raises :class:`SpecError`."""
        if not isinstance(data, Mapping):
            raise SpecError("study", data, "allowed is an object with named fields")
        return _StudyReader(None).study(data)

    @classmethod
    def from_json(cls, text: str) -> "Study":
        """The inverse of :meth:`to_json`, for untrusted text. Raises :class:`SpecError`."""
        return cls.from_dict(parse_json(text))

    def to_dict(self) -> dict[str, Any]:
        """Plain data in a fixed order: all that a link has, and of the rest what is not the default."""
        changes = [
            {"method": x.method, "step": x.step, "params": choice_dict(x.choice)["params"]} for x in self.changes
        ]
        return {
            "version": VERSION,
            "model": choice_dict(self.model),
            "methods": [choice_dict(method) for method in self.methods],
            "seed": self.seed,
            **({"seeds": self.seeds} if self.seeds != SEEDS.default else {}),
            **({"n_steps": list(self.n_steps)} if self.n_steps else {}),
            **({"changes": changes} if changes else {}),
        }

    def to_json(self) -> str:
        """The study as indented JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def to_query(self) -> str:
        """The study as a link's query: ``v=1&model=topics(corpus:reuters)&method=lda_scir(step_size:0.5)&seed=1``."""
        parts = [("v", str(VERSION)), ("model", choice_text(self.model))]
        parts += [("method", choice_text(method)) for method in self.methods]
        parts += [("seed", str(self.seed))]
        return "&".join(f"{name}={quote(value, safe='(),:;~')}" for name, value in parts)

    @classmethod
    def from_query(cls, query: str) -> tuple["Study", list[str]]:
        """The study of a link, and a sentence for everything in it that had to be changed."""
        data: dict[str, Any] = {"methods": []}
        try:
            fields = link_fields(query)
            messages = given_again(fields, ("v", "model", "seed"))
        except SpecError as error:
            fields, messages = [], [f"{str(error).removesuffix('.')}; the default is used instead."]
        for name, text in fields:
            if name == "v":
                data["version"] = text
            elif name == "model":
                data["model"] = parse_choice("model", text, messages)
            elif name == "method":
                data["methods"].append(parse_choice("method", text, messages))
            elif name == "seed":
                data["seed"] = text
        data.setdefault("model", {"key": next(iter(MODELS))})
        if not data["methods"]:
            model = data["model"]["key"]
            data["methods"] = default_methods(model if model in MODELS else next(iter(MODELS)))
        return _StudyReader(messages).study(data), messages

    @property
    def of_own_data(self) -> bool:
        """Whether the model's data are somebody's own, which neither a link nor a saved study holds."""
        return self.model.values()[MODELS[self.model.key].data_parameter] == UPLOADED

    def make_model(self, uploaded: Any = None) -> Model:
        """The model with its data loaded, which may take a moment. Raises :class:`SpecError`."""
        return MODELS[self.model.key](uploaded, **self.model.values())

    def runs(self, model: Model) -> tuple["StudyRun", ...]:
        """A run of the study's own seed for each method, not yet started. Raises :class:`SpecError`."""
        seeds = SeedSequence(self.seed).spawn(len(self.methods))
        runs = tuple(
            StudyRun(model, make_method(choice), seed) for choice, seed in zip(self.methods, seeds, strict=True)
        )
        for number, step, choice in self.changes:
            runs[number - 1].change(choice, step)
        return runs

    def of_seeds(self) -> tuple["Study", ...]:
        """The study with each of its seeds alone."""
        return tuple(replace(self, seed=(self.seed + extra) % 2**32, seeds=1) for extra in range(self.seeds))


def make_method(choice: Choice) -> Method:
    """The method as an object."""
    return METHODS[choice.key](**choice.values())


def methods_of(model: str) -> list[str]:
    """The keys of the methods that a model has."""
    return [key for key, cls in METHODS.items() if cls.model == model]


def default_methods(model: str) -> list[dict[str, Any]]:
    """The methods that a page of this model begins with: the first three."""
    return [{"key": key} for key in methods_of(model)[:3]]


class StudyRun:
    """One method at work."""

    def __init__(self, model: Model, method: Method, seed: SeedSequence):
        self.model, self.method = model, method
        self.rng = Generator(SFC64(seed))
        self.steps = self.data_seen = 0
        self.seconds = 0.0
        self.scores: list[Score] = []
        self.divergence: Divergence | None = None
        self.changes: list[tuple[int, Choice]] = []
        """What was changed so far, with the steps made before it."""
        self._pending: list[tuple[int, Choice]] = []
        method.check(model)
        jit.prepare(method.compiled)
        self.state = method.start(model, self.rng)

    @property
    def due(self) -> bool:
        """Whether the score is to be taken now."""
        return not self.scores or self.steps >= max(self.scores[-1].step * SCORE_SPACING, self.scores[-1].step + 1)

    def advance(self) -> None:
        """One step, and the score where it is due. Nothing where the method has blown up."""
        if self.divergence is not None:
            return
        while self._pending and self._pending[0][0] <= self.steps:
            self._apply(self._pending.pop(0)[1])
        try:
            if self.steps == 0:
                self.score()
            began = time.perf_counter()
            seen = self.method.advance(self.model, self.state, self.rng)
            self.seconds += time.perf_counter() - began
            self.steps += 1
            self.data_seen += seen
            if self.due:
                self.score()
        except FloatingPointError as error:
            self.divergence = Divergence(self.steps, str(error))

    def change(self, choice: Choice, step: int = 0) -> None:
        """Go on with other values of the method's parameters, from here or from a later step on.

        Raises :class:`SpecError`.
        """
        make_method(choice).check(self.model)
        if step > self.steps:
            self._pending.append((step, choice))
        else:
            self._apply(choice)

    def _apply(self, choice: Choice) -> None:
        self.method = make_method(choice)
        self.changes.append((self.steps, choice))

    def snapshot(self) -> dict[str, Any]:
        """What the views show."""
        return self.method.snapshot(self.model, self.state)

    def scored(self) -> float:
        """The score at the present step, which is taken where it is not there yet."""
        if not self.scores or self.scores[-1].step < self.steps:
            self.score()
        return self.scores[-1].value

    def score(self) -> None:
        """Take the score now. Raises FloatingPointError where there is none."""
        value = float(self.method.score(self.model, self.state))
        if not np.isfinite(value):
            raise FloatingPointError(f"{self.method.title} has no finite score at step {self.steps:,}.")
        self.scores.append(Score(self.steps, self.data_seen, self.seconds, value))


class _StudyReader(Reader):
    """Reads studies."""

    def study(self, data: Mapping[str, Any]) -> Study:
        data = self.migrated("study", data)
        for name in data:
            if name not in ("model", "methods", "seed", "seeds", "n_steps", "changes"):
                allowed = "a study has model, methods, seed, seeds, n_steps and changes"
                self.problem(SpecError(name, data[name], allowed), "nothing")
        model = self.choice(MODELS, "model", data.get("model"), next(iter(MODELS)))
        fitting = methods_of(model.key)
        listed = data.get("methods")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not 1 <= len(listed) <= MAX_METHODS:
            shown = len(listed) if isinstance(listed, list) else listed
            self.problem(
                SpecError("methods", shown, f"allowed are 1 to {MAX_METHODS} methods"), f"the first {MAX_METHODS}"
            )
            listed = list(listed)[:MAX_METHODS] if isinstance(listed, list) and listed else [fitting[0]]
        methods = []
        for entry in listed:
            choice = self.choice(METHODS, "method", entry, fitting[0])
            if choice.key not in fitting:
                allowed = f"it does not fit the model {model.key}; these do: {', '.join(fitting)}"
                self.problem(SpecError("method", choice.key, allowed), fitting[0])
                choice = default_choice(METHODS, fitting[0])
            methods.append(choice)
        seed = self.value(_SEED, "seed", data.get("seed", 1))
        seeds = self.value(SEEDS, "seeds", data.get("seeds", 1))
        n_steps = self.n_steps(data.get("n_steps", ()), len(methods))
        changes = self.changes(data.get("changes", ()), methods)
        return Study(model, tuple(methods), int(seed), int(seeds), n_steps, changes)  # type: ignore[arg-type]

    def n_steps(self, data: Any, methods: int) -> tuple[int, ...]:
        listed = data if isinstance(data, (list, tuple)) else [data] * methods
        if listed and len(listed) != methods:
            raise SpecError("n_steps", f"{len(listed)} numbers", f"allowed is one for each of the {methods} methods")
        return tuple(int(check(N_STEPS, "n_steps", one)) for one in listed)  # type: ignore[arg-type]

    def changes(self, data: Any, methods: Sequence[Choice]) -> tuple[MethodChange, ...]:
        if not isinstance(data, (list, tuple)) or len(data) > MAX_CHANGES:
            shown = len(data) if isinstance(data, (list, tuple)) else data
            raise SpecError("changes", shown, f"allowed is a list of up to {MAX_CHANGES} changes")
        out: list[MethodChange] = []
        last = dict.fromkeys(range(1, len(methods) + 1), 0)
        for entry in data:
            change = mapping("changes", entry)
            for name in change:
                if name not in ("method", "step", "params"):
                    raise SpecError(f"changes.{name}", change[name], "a change has method, step and params")
            number = int(check(_METHOD, "changes.method", change.get("method")))  # type: ignore[arg-type]
            if number > len(methods):
                raise SpecError("changes.method", number, f"allowed is a method from 1 to {len(methods)}")
            step = int(check(_STEP, "changes.step", change.get("step")))  # type: ignore[arg-type]
            if step < last[number]:
                allowed = f"changes of a method are in the order of their steps; its last was at {last[number]}"
                raise SpecError("changes.step", step, allowed)
            last[number] = step
            key = methods[number - 1].key
            params = check_all(METHODS[key], "changes.params", mapping("changes.params", change.get("params", {})))
            out.append(MethodChange(number, step, Choice(key, params)))
        return tuple(out)


# --- the whole study without a page ----------------------------------------------------------------------------------


def functions(study: Study) -> list[Any]:
    """The compiled functions that the study's methods need: what they name, or else all that lies beside them."""
    found: list[Any] = []
    for choice in study.methods:
        method = METHODS[choice.key]
        package = method.__module__.rpartition(".")[0] + "."
        found += method.compiled or [f for f in jit.declared() if f.py_func.__module__.startswith(package)]
    return found


def run_study(
    study: Study, uploaded: Any = None, progress: Callable[[int, int], None] | None = None
) -> tuple[tuple["StudyRun", ...], ...]:
    """All steps of all methods: for each method its runs, one a seed.

    ``uploaded`` is what the model's ``read`` made of somebody's own files. ``progress(steps made, steps in all)`` is
    called after every step; a KeyboardInterrupt from it ends the study there. Raises :class:`SpecError`.
    """
    model = study.make_model(uploaded)
    lengths = study.n_steps or (N_STEPS.default,) * len(study.methods)
    seeds = [one.runs(model) for one in study.of_seeds()]
    methods = tuple(zip(*seeds, strict=True))
    made, total = 0, sum(lengths) * study.seeds
    try:
        for runs, length in zip(methods, lengths, strict=True):
            for run in runs:
                while run.steps < length and run.divergence is None:
                    run.advance()
                    made += 1
                    if progress is not None:
                        progress(made, total)
                if run.divergence is not None:
                    made += length - run.steps
    except KeyboardInterrupt:
        pass
    return methods


def write_curves(file: IO[str], study: Study, titles: Sequence[str], methods: Sequence[Sequence["StudyRun"]]) -> None:
    """Every score of every run as CSV, a row each."""
    model = methods[0][0].model
    writer = csv.writer(file)
    writer.writerow(["method", "seed", "step", f"{model.data_name} seen", "seconds", model.score_name])
    for title, runs in zip(titles, methods, strict=True):
        for one, run in zip(study.of_seeds(), runs, strict=True):
            writer.writerows([title, one.seed, *score] for score in run.scores)
