"""A lesson and the reader of its file: see :mod:`lessons` for how to write one.

Everything is checked when it is read: a lesson that loads has experiments that run, claims that can be measured, and
answers that are among their options. A fault raises :class:`~lessons.document.LessonError` with file and line.
Views and the page's own settings are only names here; the page's tests hold them against what there is.
"""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from sgmcmc_lab.lessons import live
from sgmcmc_lab.lessons.document import MAX_PROSE, Fields, LessonError, Path_, Section, is_number, parse, text_of
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import DRAWS, FEWEST, STATISTICS, Measure
from sgmcmc_lab.lessons.specs import WORDS, changed, check_address, choice_data, experiment, leaves, put
from sgmcmc_lab.samplers import Choice, Experiment, RunSpec, SpecError
from sgmcmc_lab.samplers.migrations import control
from sgmcmc_lab.samplers.reader import Reader

MAX_CLAIMS = 20
MAX_CHECKS = 20
MAX_EXERCISES = 5
MAX_SEEDS = 100
MAX_POINTS = 2_000
"""Runs of a sweep, seeds included."""
MAX_KEPT = 2**26
"""Numbers of a full trace, for a measure that needs all draws."""
MAX_STEPS = 10_000_000
"""Steps of a lane on a model of data."""
VALUE, BIAS, RELATIVE_BIAS, RATIO, DIFFERENCE = "value", "bias", "relative_bias", "ratio", "difference"
LENGTHS = ("n_steps", "burn_in", "n_chains", "thin")
QUANTITIES = (VALUE, BIAS, RELATIVE_BIAS, RATIO, DIFFERENCE)
AT, BEST, BEST_AT, SLOPE = "at", "best", "best_at", "slope"
REDUCTIONS = (AT, BEST, BEST_AT, SLOPE)
ANSWER, WATCH = "answer", "watch"
SUPPORTED = (ANSWER, WATCH)
BEFORE = "before"
MEASURE, DEFINITION, CALCULATION = "measure", "definition", "calculation"
GROUNDS = {MEASURE: "", DEFINITION: "True by definition.", CALCULATION: "This follows by calculation."}
"""By what an answer is right, and the sentence that says so."""
TOO_DEEP = "its tables are nested too deeply."
PRINTED, FORMULA, FIGURE, SIMULATED = "printed", "formula", "figure", "simulated"
KINDS = {
    PRINTED: "printed",
    FORMULA: "computed from the paper's formula",
    FIGURE: "read off the figure",
    SIMULATED: "simulated with the paper's settings",
}
"""The sources of the numbers beside the lab's, in words."""
FIGURES = ("marginal", "joint", "trace", "autocorrelation", "sweep", "scores")


@dataclass(frozen=True)
class Goal:
    """The condition on a measured number: about ``equals``, or within the bounds."""

    equals: float | None = None
    exact: bool = False
    """Whether it must be about the target's value, in place of ``equals``."""
    above: float | None = None
    below: float | None = None
    tolerance: float | None = None
    relative: float | None = None
    errors: float | None = None
    """The margin in standard errors; with bounds, the number must lie within them by this margin."""


@dataclass(frozen=True)
class Paper:
    """The number of a paper, or one for a paper's figure, beside ours."""

    figure: str
    kind: str
    """One of ``KINDS``; empty in files of before there were kinds."""
    by: str
    """By whom and how often it was simulated; else empty."""
    number: float | str
    ours: float | None
    """The lab's number from a run at full length; later runs at full length compare their result with it."""
    reason: str
    """Why the two differ, in a sentence."""

    @property
    def written(self) -> str:
        """The number, or the words in its place."""
        return self.number if isinstance(self.number, str) else f"{self.number:g}"

    @property
    def proof(self) -> str:
        """Where the number comes from, in words."""
        return ", ".join(filter(None, (KINDS.get(self.kind, ""), self.by)))

    @property
    def with_source(self) -> str:
        """The number, and behind it where it comes from, if that is known."""
        return f"{self.written} ({self.proof})" if self.proof else self.written


@dataclass(frozen=True)
class Claim:
    """A sentence and the number that it stands or falls with."""

    says: str
    measure: Choice
    lane: int
    """Counted from 1."""
    against: int | None
    """The other lane of a ratio or a difference. Behind the lanes of a changed run, the unchanged ones are counted."""
    quantity: str
    reduction: str | None
    """The reduction of a sweep to one number."""
    where: tuple[tuple[str, Any], ...]
    """The values of a sweep's axes."""
    goal: Goal
    quick_goal: Goal
    paper: Paper | None
    line: int
    supports: tuple[str, ...] = ()
    """The part of the step that it proves: the marked answer, the watch sentence."""
    change: Mapping[str, Any] | None = field(default=None, hash=False)
    """The changes of a check's own run to the step's experiment."""
    quick_change: Mapping[str, Any] | None = field(default=None, hash=False)

    def experiment(self, spec: Experiment, quick: bool) -> Experiment:
        """The experiment on which it is measured; ``spec`` is the step's experiment at that length."""
        change = self.quick_change if quick else self.change
        return spec if change is None else _changed(spec, change)

    def make_measure(self) -> Measure:
        """The measure as an object."""
        return MEASURES[self.measure.key](**self.measure.values())

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lane it is about and, of a ratio or a difference, the other one; counted from 1."""
        return (self.lane,) if self.against is None else (self.lane, self.against)

    @property
    def live(self) -> bool:
        """Whether the running statistics of a live run are enough to look at it."""
        return self.reduction is None and self.make_measure().requires == STATISTICS


@dataclass(frozen=True)
class Question:
    """The question that the student answers before the run."""

    ask: str
    options: tuple[str, ...]
    replies: tuple[str, ...]
    """For each option the line that a student who chose it reads; empty for the right one."""
    answer: int
    """Counted from 1."""
    why: str
    by: str = MEASURE

    def reply(self, option: int) -> str:
        """The reply to an option, counted from 1; nothing of a question that was skipped."""
        return self.replies[option - 1] if option else ""

    @property
    def explanation(self) -> str:
        """Why the answer is right, and by what where no measure says so."""
        return f"{self.why} {GROUNDS[self.by]}".strip()


@dataclass(frozen=True)
class Exercise:
    """Something to be done after a step, and an experiment that solves it."""

    text: str
    solution: str
    experiment: Experiment


@dataclass(frozen=True)
class Axis:
    """Values of one address, for some lanes or all."""

    address: str
    values: tuple[Any, ...]
    quick_values: tuple[Any, ...]

    def has(self, lane: int) -> bool:
        """Whether it moves this lane, counted from 1."""
        own = re.match(r"lane([1-9])\.", self.address)
        return own is None or int(own[1]) == lane

    @property
    def name(self) -> str:
        """The address without the lane: ``sampler.step_size``."""
        return re.sub(r"^lane[1-9]\.", "", self.address)


@dataclass(frozen=True)
class Point:
    """One lane with values on the sweep's axes."""

    lane: int
    values: tuple[tuple[str, Any], ...]
    spec: RunSpec


@dataclass(frozen=True)
class Sweep:
    """A measure of every lane at every point of a grid, for several seeds."""

    measure: Choice
    quantity: str
    """The number itself, its bias or its relative bias."""
    axes: tuple[Axis, ...]

    def points(self, spec: Experiment, quick: bool) -> tuple[Point, ...]:
        """Every lane at every point of its own axes. Raises :class:`SpecError`."""
        out = []
        for lane in range(1, len(spec.lanes) + 1):
            axes = [axis for axis in self.axes if axis.has(lane)]
            for values in product(*(axis.quick_values if quick else axis.values for axis in axes)):
                data = spec.to_dict()
                data["lanes"] = [data["lanes"][lane - 1]]
                for axis, value in zip(axes, values, strict=True):
                    put(data, re.sub(r"^lane[1-9]", "lane1", axis.address), value)
                (run,) = Experiment.from_dict(data).runs()
                at = tuple((axis.name, value) for axis, value in zip(axes, values, strict=True))
                out.append(Point(lane, at, run))
        return tuple(out)


@dataclass(frozen=True)
class Step:
    """A text, an experiment to look at it with, a question before and claims about it."""

    number: int
    title: str
    line: int
    text: str
    spec: Experiment | None
    quick_spec: Experiment | None
    """The same at the reduced length."""
    seeds: int
    quick_seeds: int
    views: tuple[str, ...]
    controls: tuple[str, ...]
    page: Mapping[str, Any]
    question: Question | None
    watch: str
    claims: tuple[Claim, ...]
    checks: tuple[Claim, ...]
    """The checks of the marked answer and the watch sentence: judged like claims, and not shown."""
    sweep: Sweep | None
    figures: tuple[str, ...]
    names: tuple[str, ...]
    """The lesson's names of the lanes; empty where it leaves them their own titles."""
    teacher: str
    """A note for the teacher: what to say, and what students get wrong."""
    exercises: tuple[Exercise, ...]
    new_spec: bool
    """Whether this step brings an experiment or a change; else the last one goes on."""


@dataclass(frozen=True)
class Lesson:
    """A whole lesson."""

    key: str
    title: str
    minutes: int
    summary: str
    needs: tuple[str, ...]
    steps: tuple[Step, ...]
    file: str
    order: tuple[int, str] = field(default=(0, ""))

    def shuffled(self, number: int) -> tuple[int, ...]:
        """The options of a step's question, counted from 1, in the order in which they are shown.

        It depends on the lesson's key and the step alone, so that everybody in a class sees the same one.
        """
        question = self.steps[number - 1].question
        listed = list(range(1, len(question.options) + 1)) if question is not None else []
        random.Random(f"{self.key} {number}").shuffle(listed)
        return tuple(listed)


def read(path: Path) -> Lesson:
    """The lesson in a file. Raises :class:`LessonError`.

    A text that was read before is not read again: where a teacher saves one file, the course's others are as they were.
    """
    order = order_of(path)
    try:
        return _lesson(text_of(path), path.name, order)
    except RecursionError:
        raise LessonError(path.name, 1, TOO_DEEP) from None


def order_of(path: Path) -> tuple[int, str]:
    """The place in the course and the key, which a file's name gives. Raises :class:`LessonError`."""
    name = re.fullmatch(r"(?:(\d{1,4})[-_])?([a-z0-9][a-z0-9_-]{0,59})\.md", path.name)
    if name is None:
        raise LessonError(
            path.name, 1, "a lesson's file is named like 03-step-size.md: a number, small letters, digits and -."
        )
    return int(name[1] or 10_000), name[2]


@lru_cache(maxsize=64)
def _lesson(text: str, file: str, order: tuple[int, str]) -> Lesson:
    document = parse(text, file)
    title, minutes, summary, needs = front_matter(document.front)
    steps: list[Step] = []
    for number, section in enumerate(document.sections, 1):
        steps.append(_step(number, section, steps[-1] if steps else None))
    return Lesson(order[1], title, minutes, summary, needs, tuple(steps), file, order)


def front_matter(front: Fields) -> tuple[str, int, str, tuple[str, ...]]:
    """Title, minutes, summary, and the keys of the lessons that come before. Raises :class:`LessonError`."""
    front.needed("title")
    title = front.text("title")
    front.needed("minutes")
    minutes = front.count("minutes", None, 1, 300)
    summary = front.text("summary")
    needs = front.keys("needs", 20) or ()
    front.done()
    assert minutes is not None
    return title, minutes, summary, needs


def _step(number: int, section: Section, last: Step | None) -> Step:
    fields = section.settings
    spec, changes = _spec(fields, last)
    new = changes is None or bool(changes)
    lengths = _lengths(fields, spec)
    short = None if lengths or changes is None else _quick_lengths(last)
    spec = _with_lengths(spec, lengths)
    seeds = fields.count("seeds", 1, 1, MAX_SEEDS)
    quick = fields.table("quick")
    quick_seeds, quick_settings = 1, _quick_settings(last, changes)
    quick_grid: Mapping[str, Any] = {}
    if quick is not None:
        quick_seeds = quick.count("seeds", 1, 1, MAX_SEEDS) or 1
        quick_grid = quick.take("grid", {})
        short = _lengths(quick, spec) or short
        quick_settings |= {name: quick.take(name) for name in LENGTHS if name in quick}
        quick.done()
    quick_spec = _with_lengths(spec, short)
    try:
        quick_spec = quick_spec and Experiment.from_dict({**quick_spec.to_dict(), **quick_settings})
    except SpecError as error:
        raise fields.location.wrapped((*fields.path, "quick"), error) from None
    step = Step(
        number=number, title=section.title, line=section.line, text=section.text, spec=spec, quick_spec=quick_spec,
        seeds=seeds or 1, quick_seeds=quick_seeds,
        views=_names(fields, "views", 12, last.views if last else ()),
        controls=_controls(fields, spec, last), page=_page(fields, last), question=_question(fields),
        watch=fields.text("watch"), claims=(), checks=(), sweep=_sweep(fields, spec, quick_spec, quick_grid, quick, seeds or 1),
        figures=_figures(fields), names=_lane_names(fields, spec, last, new),
        teacher=fields.text("teacher", limit=MAX_PROSE), exercises=tuple(_exercises(fields)), new_spec=new,
    )  # fmt: skip
    claims = tuple(_claim(entry, step) for entry in fields.tables("claim", MAX_CLAIMS))
    checks = tuple(_check(entry, step) for entry in fields.tables("check", MAX_CHECKS))
    fields.done()
    for text, line in ((step.text, section.line), (step.watch, fields.location.line((*fields.path, "watch")))):
        try:
            live.check(text, spec)
        except SpecError as error:
            raise LessonError(fields.location.file, line, str(error)) from None
    return replace(step, claims=claims, checks=checks)


# --- the experiment --------------------------------------------------------------------------------------------------


def _spec(fields: Fields, last: Step | None) -> tuple[Experiment | None, frozenset[str] | None]:
    """The step's experiment, and which of the last one's fields it changes; None where it is a new one."""
    # Before version 2 of the format an experiment on a model of data was called a study.
    given = [name for name in ("experiment", "study", "change") if name in fields]
    if len(given) > 1:
        raise fields.error(given[1], "…", f"the step has {given[0]} already")
    if not given:
        return (last.spec if last else None), frozenset()
    (name,) = given
    data = fields.take(name)
    before = last.spec if last else None
    if name == "change" and (before is None or not isinstance(data, Mapping)):
        raise fields.error(name, data, "allowed is a table, after a step that has an experiment")
    try:
        if name != "change":
            return experiment(data), None
        assert before is not None
        return changed(before, data), frozenset(data)
    except SpecError as error:
        raise fields.location.wrapped((*fields.path, name), error) from None


def _quick_settings(last: Step | None, changes: frozenset[str] | None) -> dict[str, Any]:
    """The reduced lengths that go on from the step before: those that this step's own experiment does not set."""
    if last is None or changes is None or last.quick_spec is None:
        return {}
    return {
        name: getattr(last.quick_spec, name)
        for name in LENGTHS
        if getattr(last.quick_spec, name) != getattr(last.spec, name) and name not in changes
    }


Lengths = tuple[int | None, ...]
"""The steps of each lane on a model of data; None where they are the experiment's."""


def _quick_lengths(last: Step | None) -> Lengths | None:
    """Those that go on from the step before."""
    short = last.quick_spec if last else None
    return tuple(lane.n_steps for lane in short.lanes) if short and short.of_model else None


def _with_lengths(spec: Experiment | None, lengths: Lengths | None) -> Experiment | None:
    if spec is None or lengths is None or len(lengths) != len(spec.lanes):
        return spec
    return replace(spec, lanes=tuple(replace(lane, n_steps=n) for lane, n in zip(spec.lanes, lengths, strict=True)))


def _lengths(fields: Fields, spec: Experiment | None) -> Lengths | None:
    if spec is None or not spec.of_model or "n_steps" not in fields:
        return None
    value, n = fields.take("n_steps"), len(spec.lanes)
    listed = value if isinstance(value, list) else [value] * n
    if len(listed) != n or not all(
        isinstance(x, int) and not isinstance(x, bool) and 1 <= x <= MAX_STEPS for x in listed
    ):
        raise fields.error("n_steps", value, f"allowed is a whole number from 1 to {MAX_STEPS:,}, or a list of {n}")
    return tuple(listed)


# --- what the page shows ---------------------------------------------------------------------------------------------


def _names(fields: Fields, name: str, most: int, default: tuple[str, ...]) -> tuple[str, ...]:
    names = fields.keys(name, most)
    for i, key in enumerate(names or ()):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key):
            raise fields.location.error((*fields.path, name, i), key, "allowed is a name of small letters")
    return default if names is None else names


def _lane_names(fields: Fields, spec: Experiment | None, last: Step | None, new: bool) -> tuple[str, ...]:
    if "names" not in fields:
        return last.names if last and not new else ()
    value = fields.take("names")
    n = 0 if spec is None else len(spec.lanes)
    if not isinstance(value, list) or len(value) != n:
        raise fields.error("names", value, f"allowed is a list of {n} texts, one for every lane")
    return tuple(fields.prose(("names", i), name, 60) for i, name in enumerate(value))


def _controls(fields: Fields, spec: Experiment | None, last: Step | None) -> tuple[str, ...]:
    given = fields.keys("controls", 40)
    if given is None:
        return _still_there(spec, last.controls) if last else ()
    if spec is None:
        raise fields.error("controls", list(given), "the step has no experiment to control")
    names = []
    for i, name in enumerate(given):
        # One name of an older lesson may stand for two of today.
        for today in control(name).split(","):
            try:
                if today not in WORDS:
                    check_address(spec, today)
            except SpecError as error:
                words = ", ".join(WORDS)
                raise fields.location.error((*fields.path, "controls", i), name, f"{error.allowed}, {words}") from None
            names.append(today)
    return tuple(names)


def _still_there(spec: Experiment | None, names: tuple[str, ...]) -> tuple[str, ...]:
    out = []
    for name in names:
        try:
            if spec is not None and name not in WORDS:
                check_address(spec, name)
        except SpecError:
            continue
        out.append(name)
    return tuple(out)


def _page(fields: Fields, last: Step | None) -> Mapping[str, Any]:
    page = fields.table("page")
    if page is None:
        return last.page if last else {}
    out: dict[str, Any] = {}
    for name, (low, high) in {"coordinate": (1, 400), "speed": (1, 1_000_000), "slow": (1, 8)}.items():
        if name in page:
            out[name] = page.count(name, None, low, high)
    if "axis" in page:
        (out["axis"],) = _names(Fields({"axis": [page.take("axis")]}, page.location, page.path), "axis", 1, ())
    page.done()
    return out


def _question(fields: Fields) -> Question | None:
    question = fields.table("question")
    if question is None:
        return None
    for name in ("ask", "options", "answer", "why"):
        question.needed(name)
    ask, why = question.text("ask"), question.text("why", limit=MAX_PROSE)
    listed = question.take("options")
    if not isinstance(listed, list) or not 2 <= len(listed) <= 6:
        raise question.error("options", listed, "allowed is a list of 2 to 6 texts")
    options, replies = zip(*(_option(question, i, option) for i, option in enumerate(listed)), strict=True)
    answer = question.count("answer", None, 1, len(options))
    assert answer is not None
    if replies[answer - 1]:
        raise question.location.error(
            (*question.path, "options", answer - 1),
            replies[answer - 1],
            "the right option takes no reply: why explains it",
        )
    by = question.key("by", tuple(GROUNDS), MEASURE)
    question.done()
    return Question(ask, options, replies, answer, why, by)


def _option(question: Fields, place: int, option: Any) -> tuple[str, str]:
    """The text of an option, and its reply."""
    if not isinstance(option, Mapping):
        return question.prose(("options", place), option), ""
    fields = Fields(option, question.location, (*question.path, "options", place))
    fields.needed("text")
    text, reply = fields.text("text"), fields.text("reply")
    fields.done()
    return text, reply


def _exercises(fields: Fields) -> Iterator[Exercise]:
    for exercise in fields.tables("exercise", MAX_EXERCISES):
        for name in ("text", "solution", "experiment"):
            exercise.needed(name)
        text, solution = (exercise.text(name, limit=MAX_PROSE) for name in ("text", "solution"))
        data = exercise.take("experiment")
        exercise.done()
        try:
            yield Exercise(text, solution, experiment(data))
        except SpecError as error:
            raise exercise.location.wrapped((*exercise.path, "experiment"), error) from None


def _figures(fields: Fields) -> tuple[str, ...]:
    names = fields.keys("figures", len(FIGURES)) or ()
    for i, name in enumerate(names):
        if name not in FIGURES:
            raise fields.location.error((*fields.path, "figures", i), name, f"allowed is one of {', '.join(FIGURES)}")
    return names


# --- sweeps ----------------------------------------------------------------------------------------------------------


def _measure(fields: Fields, name: str, of_model: bool) -> Choice:
    fields.needed(name)
    value = fields.take(name)
    try:
        choice = Reader(None).choice(MEASURES, name, choice_data(name, value), "")
        fits = {key: cls.of_model if of_model else cls.of_density for key, cls in MEASURES.items()}
        if not fits[choice.key]:
            fitting = ", ".join(key for key in fits if fits[key])
            raise SpecError(name, choice.key, f"of {'a model' if of_model else 'a density'} there are: {fitting}")
        return choice
    except SpecError as error:
        raise fields.location.wrapped((*fields.path, name), error) from None


def _sweep(
    fields: Fields,
    spec: Experiment | None,
    quick_spec: Experiment | None,
    quick_grid: Any,
    quick: Fields | None,
    seeds: int,
) -> Sweep | None:
    sweep = fields.table("sweep")
    if sweep is None:
        if quick_grid and quick is not None:
            raise quick.error("grid", "…", "the step has no sweep")
        return None
    if spec is None or quick_spec is None or spec.of_model:
        raise fields.error("sweep", "…", "a sweep needs an experiment on a density")
    measure = _measure(sweep, "measure", of_model=False)
    quantity = sweep.key("quantity", (VALUE, BIAS, RELATIVE_BIAS), VALUE)
    sweep.needed("grid")
    grid = sweep.take("grid")
    if not isinstance(grid, Mapping):
        raise sweep.error("grid", grid, "allowed is a table of addresses, each with a list of values")
    short = {".".join(path): value for path, value in leaves(quick_grid, ())} if isinstance(quick_grid, Mapping) else {}
    axes = []
    for path, values in leaves(grid, ()):
        address = ".".join(path)
        for listed in (values, short.get(address, values)):
            if (
                not isinstance(listed, list)
                or not 1 <= len(listed) <= 100
                or not all(is_number(x) or isinstance(x, (str, bool)) for x in listed)
            ):
                raise sweep.location.error((*sweep.path, "grid", *path), listed, "allowed is a list of 1 to 100 values")
        axes.append(Axis(address, tuple(values), tuple(short.pop(address, values))))
    if short and quick is not None:
        raise quick.error(
            "grid",
            next(iter(short)),
            f"the sweep has no such axis; there are: {', '.join(axis.address for axis in axes)}",
        )
    sweep.done()
    made = Sweep(measure, quantity, tuple(axes))
    try:
        for axis in axes:
            try:
                check_address(spec, axis.address)
            except SpecError as error:
                parts: Path_ = (*sweep.path, "grid", *axis.address.split("."))
                raise sweep.location.error(parts, axis.address, error.allowed) from None
        for number in range(1, len(spec.lanes) + 1):
            names = [axis.name for axis in axes if axis.has(number)]
            if len(set(names)) < len(names):
                raise SpecError("grid", ", ".join(names), f"lane {number} has an axis twice")
        size = sum(_product(len(axis.values) for axis in axes if axis.has(i)) for i in range(1, len(spec.lanes) + 1))
        if size * seeds > MAX_POINTS:
            raise SpecError("grid", size, f"with {seeds} seeds allowed are at most {MAX_POINTS // seeds:,} points")
        for point in (*made.points(spec, False), *made.points(quick_spec, True)):
            MEASURES[measure.key](**measure.values()).fit(point.spec)
    except SpecError as error:
        raise sweep.location.wrapped(sweep.path, error) from None
    return made


def _product(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


# --- claims ----------------------------------------------------------------------------------------------------------


def _check(fields: Fields, step: Step) -> Claim:
    """A claim that is not shown, about the step's own run or a changed one."""
    fields.needed("supports")
    quick = fields.data.get("quick")
    change = fields.take("change")
    quick_change = change
    if isinstance(quick, Mapping) and "change" in quick:
        quick_change = quick["change"]
        fields.data["quick"] = {name: value for name, value in quick.items() if name != "change"}
    if change is None and quick_change is None:
        return _claim(fields, step)
    if step.spec is None or step.quick_spec is None:
        raise fields.error("change", "…", "the step has no experiment to change")
    specs = []
    for spec, values in ((step.spec, change), (step.quick_spec, quick_change)):
        if not isinstance(values, Mapping):
            raise fields.error("change", values, "allowed is a table, as of a step")
        try:
            specs.append(_changed(spec, values))
        except SpecError as error:
            raise fields.location.wrapped((*fields.path, "change"), error) from None
    claim = _claim(fields, replace(step, spec=specs[0], quick_spec=specs[1], sweep=None), before=step)
    return replace(claim, change=change, quick_change=quick_change)


def _changed(spec: Experiment, change: Mapping[str, Any]) -> Experiment:
    """A step's experiment with a change; of a model of data ``n_steps`` is that of every lane. Raises SpecError."""
    if not (spec.of_model and "n_steps" in change):
        return changed(spec, change)
    data = changed(spec, {name: value for name, value in change.items() if name != "n_steps"}).to_dict()
    if not isinstance(change["n_steps"], int) or not 1 <= change["n_steps"] <= MAX_STEPS:
        raise SpecError("n_steps", change["n_steps"], f"allowed is a whole number from 1 to {MAX_STEPS:,}")
    data["lanes"] = [{**lane, "n_steps": change["n_steps"]} for lane in data["lanes"]]
    return Experiment.from_dict(data)


def _supports(fields: Fields) -> tuple[str, ...]:
    names = fields.keys("supports", len(SUPPORTED)) or ()
    if not set(names) <= set(SUPPORTED):
        raise fields.error("supports", list(names), f"allowed is a list of {' and '.join(SUPPORTED)}")
    return names


def _claim(fields: Fields, step: Step, before: Step | None = None) -> Claim:
    """A claim about the step's run; ``before`` is the step without the change of a check."""
    if step.spec is None:
        raise fields.error("measure", "…", "the step has no experiment to claim anything of")
    fields.needed("says")
    says, supports = fields.text("says"), _supports(fields)
    n = len(step.spec.lanes)
    lane = fields.count("lane", 1, 1, n)
    assert lane is not None
    if before is not None and fields.data.get("against") == BEFORE:
        fields.take("against")
        against: int | None = n + lane
    else:
        against = fields.count("against", None, 1, n)
    swept = step.sweep is not None and "measure" not in fields
    if swept:
        assert step.sweep is not None
        measure = step.sweep.measure
    else:
        measure = _measure(fields, "measure", step.spec.of_model)
    quantities = (VALUE, RATIO, DIFFERENCE) if swept else QUANTITIES
    quantity = fields.key("quantity", quantities, VALUE if against is None else RATIO)
    if (against is not None) != (quantity in (RATIO, DIFFERENCE)):
        raise fields.error(
            "quantity",
            quantity,
            "ratio and difference need against, the number of the other lane; other quantities take none",
        )
    reduction, where = _reduction(fields, step, lane, against) if swept else (None, ())
    made = MEASURES[measure.key](**measure.values())
    chains = _check_measure(fields, made, step, before, lane, against) if not swept else (FEWEST, FEWEST)
    quick = fields.table("quick")
    full_given, quick_given = _goal_values(fields), _goal_values(quick) if quick is not None else {}
    if quick is not None:
        quick.done()
    # A kind of bound that the reduced run gives replaces all of that kind.
    kept = dict(full_given)
    for group in (("equals", "exact", "above", "below"), ("tolerance", "relative", "errors")):
        if any(name in quick_given for name in group):
            kept = {name: value for name, value in kept.items() if name not in group}
    has_error = made.has_error if not swept else reduction != BEST_AT
    goals = []
    for values, count, where_from in (
        (full_given, chains[0], fields),
        ({**kept, **quick_given}, chains[1], quick or fields),
    ):
        goals.append(_goal(where_from, values, has_error, count))
    paper = _paper(fields, goals[0])
    fields.done()
    line = fields.location.line(fields.path)
    return Claim(says, measure, lane, against, quantity, reduction, where, goals[0], goals[1], paper, line, supports)


def _check_measure(
    fields: Fields, made: Measure, step: Step, before: Step | None, lane: int, against: int | None
) -> tuple[int, int]:
    """Check that the lanes have such a number; the chains at full and at reduced length."""
    try:
        assert step.spec is not None and step.quick_spec is not None
        runs = step.spec.runs()
        if before is not None and before.spec is not None:
            runs = (*runs, *before.spec.runs())
        for number in (lane, against or lane):
            if number > len(runs):
                raise SpecError("against", BEFORE, f"the step's own run has no lane {lane}")
            run = runs[number - 1]
            made.fit(run)
            if made.of_model:
                continue
            kept = run.n_chains * (run.n_steps // run.thin) * run.make_target().dim
            if made.requires == DRAWS and kept > MAX_KEPT:
                raise SpecError("measure", made.key, f"it keeps {kept:,} numbers; allowed are {MAX_KEPT:,}: raise thin")
    except SpecError as error:
        raise fields.location.wrapped(fields.path, error) from None
    return step.spec.n_chains, step.quick_spec.n_chains


def _goal_values(fields: Fields) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if fields.data.get("equals") == "exact":
        fields.take("equals")
        out["exact"] = True
    for name in ("equals", "above", "below"):
        value = fields.number(name)
        if value is not None:
            out[name] = value
    for name in ("tolerance", "relative", "errors"):
        value = fields.number(name, 0.0, 1e12)
        if value is not None:
            out[name] = value
    return out


def _goal(fields: Fields, values: Mapping[str, Any], has_error: bool, n_chains: int) -> Goal:
    goal = Goal(**values)
    about = goal.equals is not None or goal.exact
    if about == (goal.above is not None or goal.below is not None):
        raise fields.error("equals", "…", "a claim has either equals, or above, below or both")
    margins = [name for name in ("tolerance", "relative", "errors") if getattr(goal, name) is not None]
    if about and not margins:
        raise fields.error("equals", values.get("equals", "exact"), "it needs tolerance, relative or errors")
    if not about and ("tolerance" in margins or "relative" in margins):
        raise fields.error(margins[0], values[margins[0]], "above and below allow no margin but errors")
    if goal.above is not None and goal.below is not None and not goal.above < goal.below:
        raise fields.error("above", goal.above, f"allowed is less than below = {goal.below:g}")
    if goal.errors is not None and not (has_error and n_chains >= FEWEST):
        raise fields.error(
            "errors", goal.errors, f"a standard error needs a measure that has one, and {FEWEST} chains or more"
        )
    return goal


def _reduction(fields: Fields, step: Step, lane: int, against: int | None) -> tuple[str, tuple[tuple[str, Any], ...]]:
    assert step.sweep is not None
    reduction = fields.key("sweep", REDUCTIONS, AT)
    given = fields.take("where", {})
    where = {".".join(path): value for path, value in leaves(given, ())} if isinstance(given, Mapping) else {}
    for number in (lane, against or lane):
        axes = {axis.name: axis for axis in step.sweep.axes if axis.has(number)}
        for name, value in where.items():
            if name not in axes or value not in axes[name].values or value not in axes[name].quick_values:
                there = "; ".join(f"{key} in {list(axis.values)}" for key, axis in axes.items())
                raise fields.error("where", f"{name} = {value}", f"allowed at full and at reduced length is {there}")
        free = [axis for name, axis in axes.items() if name not in where]
        numeric = [axis for axis in free if all(is_number(x) for x in (*axis.values, *axis.quick_values))]
        if reduction == AT and free:
            raise fields.error("where", dict(where), f"a value is needed for {', '.join(axis.name for axis in free)}")
        if reduction in (BEST, BEST_AT) and (not free or (reduction == BEST_AT and len(free) != 1)):
            raise fields.error(
                "where", dict(where), "an axis must be left to choose the best from, and for best_at just one"
            )
        if reduction == SLOPE and not (
            len(free) == len(numeric) == 1
            and min(len(free[0].values), len(free[0].quick_values)) > 2
            and min(free[0].values) > 0
        ):
            raise fields.error(
                "where", dict(where), "for a slope one axis of three or more positive numbers must be left"
            )
    return reduction, tuple(where.items())


def _paper(fields: Fields, goal: Goal) -> Paper | None:
    paper = fields.table("paper")
    if paper is None:
        return None
    paper.needed("figure")
    paper.needed("number")
    figure, number = paper.text("figure"), paper.take("number")
    kind = paper.key("kind", tuple(KINDS), "") if "kind" in paper else ""
    by = paper.text("by")
    if (kind == SIMULATED) != bool(by):
        raise paper.error("by", by, "it says who simulated the number and how often, of a number that is simulated")
    if isinstance(number, str):
        number = paper.prose(("number",), number)
    elif not is_number(number):
        raise paper.error("number", number, "allowed is a number, or a text for what is only seen in a picture")
    ours, reason = paper.number("ours"), paper.text("reason")
    paper.done()
    if is_number(number) and ours is not None and not reason:
        allowed = max(goal.tolerance or 0.0, (goal.relative or 0.0) * abs(number))
        if abs(ours - number) > max(allowed, 1e-12 * abs(number)):
            raise paper.error("reason", "", f"ours is {ours:g} and the other {number:g}: a sentence must say why")
    return Paper(figure, kind, by, number, ours, reason)
