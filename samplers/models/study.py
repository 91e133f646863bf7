"""The study as data: a model, up to six methods, a seed; and its run.

The same study gives the same draws, bit for bit, live or headless: each method has its own generator, spawned from
the seed, and is scored at the same steps.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
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
    parse_choice,
    parse_json,
)
from samplers.migrations import VERSION
from samplers.models import METHODS, MODELS, Method, Model
from samplers.parameters import Count, SpecError
from samplers.trace import Divergence

MAX_METHODS = 6
LINK_FIELDS = ("model", "method", "seed")
"""The fields of a link that belong to the study."""
_SEED = Count(1, bounds=(0, 2**32 - 1), label="Seed", doc="The same seed gives the same draws.")
SCORE_SPACING = 1.1
"""A method is scored at steps that are this much further on: evenly spaced on a log axis."""


class Score(NamedTuple):
    """The held-out score at one step, on each of the axes."""

    step: int
    data_seen: int
    seconds: float
    """Time spent in the method's steps; scoring is not counted."""
    value: float


@dataclass(frozen=True)
class Study:
    """A model and methods side by side. Make it with :meth:`of`, :meth:`from_dict` or :meth:`from_query`."""

    model: Choice
    methods: tuple[Choice, ...]
    seed: int = 1

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
        """Plain data, complete and in a fixed order."""
        return {
            "version": VERSION,
            "model": choice_dict(self.model),
            "methods": [choice_dict(method) for method in self.methods],
            "seed": self.seed,
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

    def make_model(self, uploaded: Any = None) -> Model:
        """The model with its data loaded, which may take a moment. Raises :class:`SpecError`."""
        return MODELS[self.model.key](uploaded, **self.model.values())

    def runs(self, model: Model) -> tuple["StudyRun", ...]:
        """A run for each method, not yet started."""
        seeds = SeedSequence(self.seed).spawn(len(self.methods))
        return tuple(
            StudyRun(model, make_method(choice), seed) for choice, seed in zip(self.methods, seeds, strict=True)
        )


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

    def change(self, choice: Choice) -> None:
        """Go on from here with other values of the method's parameters. Raises :class:`SpecError`."""
        method = make_method(choice)
        method.check(self.model)
        self.method = method

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
            if name not in ("model", "methods", "seed"):
                self.problem(SpecError(name, data[name], "a study has model, methods and seed"), "nothing")
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
        return Study(model, tuple(methods), int(seed))  # type: ignore[arg-type]
