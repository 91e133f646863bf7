"""Sweeps: many runs of a measure, in this process, in several, or on a Dask cluster; always with the same numbers.

A task is plain data: a run's spec and a measure. Its result depends on nothing else, and is kept in a folder under a
digest of the task and of the code, so that a sweep that was interrupted goes on where it stopped.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from sgmcmc_lab import samplers
from sgmcmc_lab.lessons.claims import mean, quantity
from sgmcmc_lab.lessons.document import is_number
from sgmcmc_lab.lessons.evidence import evidence, measured
from sgmcmc_lab.lessons.lesson import AT, BEST, BEST_AT, SLOPE, VALUE, Claim, Point, Step, Sweep
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.samplers import Experiment, RunSpec, stored_files
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.interrupts import begin_worker
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, settings_of

log = logging.getLogger(__name__)

Task = dict[str, Any]
"""``{"spec": …, "measure": {"key", "params"}, "quantity": …}``."""
Answer = list[float | None]
"""Value, standard error and exact value; None for what is not known, and for a number that is none."""
Work = Callable[[Sequence[Task]], Iterator[tuple[int, Answer]]]
"""Does tasks in any order, and gives the number and the answer of each."""


def work(task: Task, code: str | None = None) -> Answer:
    """Run one task; on another machine only with the same code, of which ``code`` is the digest."""
    if code not in (None, code_digest()):
        raise RuntimeError("a worker has another version of the lab, or of NumPy, than this machine")
    spec = RunSpec.from_dict(task["spec"])
    measure = MEASURES[task["measure"]["key"]](**task["measure"]["params"])
    found = quantity(task["quantity"], measured(measure, evidence(spec, {measure.requires})), None)
    return [None if x is None or not np.isfinite(x) else float(x) for x in (found.value, found.error, found.exact)]


def in_process(tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
    """One after the other, here."""
    for i, task in enumerate(tasks):
        yield i, work(task)


def in_threads(tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
    """Here, two at a time: the compiled loops release the interpreter's lock."""
    with ThreadPoolExecutor(2) as pool:
        yield from _as_they_come(pool, tasks)


@dataclass(frozen=True)
class Processes:
    """In processes of this machine."""

    n: int = 0
    """How many; 0 for one a core."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
        """Do the tasks in any order."""
        n = min(self.n or os.cpu_count() or 1, len(tasks))
        if n <= 1:
            yield from in_process(tasks)
            return
        # Fresh processes: a fork of one with threads may hang.
        with ProcessPoolExecutor(n, get_context("spawn"), begin_worker) as pool:
            yield from _as_they_come(pool, tasks)


def _as_they_come(pool: Executor, tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
    """The answers as they are done; after an interrupt nothing more is begun."""
    futures = {pool.submit(work, task): i for i, task in enumerate(tasks)}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


@dataclass(frozen=True)
class Cluster:
    """On the workers of a Dask cluster, which need this package."""

    client: Any
    """A ``distributed.Client``."""

    def __call__(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
        """Do the tasks in any order."""
        from distributed import as_completed as completed

        futures = self.client.map(work, tasks, code=code_digest(), pure=False)
        numbers = {future.key: i for i, future in enumerate(futures)}
        try:
            for future, answer in completed(futures, with_results=True):
                yield numbers[future.key], answer
        except RuntimeError as error:
            raise samplers.SpecError("cluster", self.client.scheduler.address, str(error)) from error
        finally:
            self.client.cancel(futures)


def connect(address: str) -> AbstractContextManager[Any]:
    """The client of a Dask scheduler, to be closed by ``with``. Raises :class:`~samplers.parameters.SpecError`."""
    try:
        from distributed import Client
    except ImportError:
        raise samplers.SpecError("cluster", address, "it needs Dask: pip install 'sgmcmc-lab[cluster]'") from None
    try:
        return Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise samplers.SpecError(
            "cluster", address, f"no scheduler answers there: {str(error) or type(error).__name__}"
        ) from None


# --- what was already done -------------------------------------------------------------------------------------------


def results_folder() -> Path:
    """The folder of the results of sweeps: below SGMCMC_LAB_CACHE, or the user's cache folder."""
    return Path(os.environ.get("SGMCMC_LAB_CACHE") or platformdirs.user_cache_dir("sgmcmc-lab")) / "sweeps"


def digest(task: Task) -> str:
    """A name for a task's result: of the task, and of all code that the numbers come from."""
    text = json.dumps(task, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(f"{code_digest()}\n{text}".encode()).hexdigest()


def code_digest() -> str:
    """A digest of all code that the numbers come from."""
    if "digest" not in _CODE:
        found = hashlib.sha256(np.__version__.encode())
        for package in (Path(samplers.__file__).parent, Path(__file__).parent):
            for path in sorted(package.rglob("*.py")):
                found.update(path.relative_to(package).as_posix().encode())
                found.update(path.read_bytes())
        _CODE["digest"] = found.hexdigest()
    return _CODE["digest"]


PATIENCE = "10s"
"""How long a scheduler may take to answer."""
_CODE: dict[str, str] = {}


class Results:
    """Answers in a folder, as JSON in a file each, which :mod:`samplers.stored_files` keeps."""

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, task: Task) -> Answer | None:
        """The answer of a task that was done before."""
        name = digest(task)
        content = stored_files.read(self.folder / f"{name}.json", name)
        return None if content is None else json.loads(content)["answer"]

    def put(self, task: Task, answer: Answer) -> None:
        """Keep an answer. Where that fails the log says why, and the sweep goes on."""
        name = digest(task)
        try:
            stored_files.write(
                self.folder / f"{name}.json", name, json.dumps({"task": task, "answer": answer}).encode()
            )
        except OSError as error:
            log.warning("A result of the sweep cannot be kept in %s: %s", self.folder, error.strerror or error)


# --- a whole sweep ---------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One point of the sweep with its seeds."""

    point: Point
    seeds: tuple[Estimate, ...]


@dataclass(frozen=True)
class Table:
    """A sweep's numbers."""

    sweep: Sweep
    rows: tuple[Row, ...]
    reused: int
    """How many runs had been done before."""


def run(
    sweep: Sweep,
    spec: Experiment,
    *,
    quick: bool,
    seeds: int,
    do: Work = in_process,
    results: Results | None = None,
    progress: Callable[[int, int], None] | None = None,
    each: "Each | None" = None,
) -> Table:
    """Every point with every seed, counted on from the experiment's own. ``progress(runs done, runs in all)``, and
    ``each`` of them as it is done.
    """
    points = sweep.points(spec, quick)
    tasks: list[Task] = []
    for point in points:
        for i in range(seeds):
            data = {**point.spec.to_dict(), "seed": (point.spec.seed + i) % 2**32}
            measure = {"key": sweep.measure.key, "params": sweep.measure.values()}
            tasks.append({"spec": data, "measure": measure, "quantity": sweep.quantity})
    answers: dict[int, Answer] = {}
    for i, task in enumerate(tasks):
        known = results.get(task) if results is not None else None
        if known is not None:
            answers[i] = known
    reused, waiting = len(answers), [i for i in range(len(tasks)) if i not in answers]
    if progress is not None:
        progress(len(answers), len(tasks))
    if waiting:
        for number, answer in do([tasks[i] for i in waiting]):
            answers[waiting[number]] = answer
            if each is not None:
                each(points[waiting[number] // seeds], _estimate(answer))
            if results is not None:
                results.put(tasks[waiting[number]], answer)
            if progress is not None:
                progress(len(answers), len(tasks))
    rows = []
    for k, point in enumerate(points):
        found = [answers[k * seeds + i] for i in range(seeds)]
        rows.append(Row(point, tuple(map(_estimate, found))))
    return Table(sweep, tuple(rows), reused)


Each = Callable[[Point, Estimate], None]
"""A function that is told of every finished run."""


def _estimate(answer: Answer) -> Estimate:
    value, error, exact = answer
    return Estimate(float("nan") if value is None else value, error, exact)


def reduced(claim: Claim, table: Table, lane: int) -> list[Estimate]:
    """The sweep as the claim's number: one estimate for every seed, or a single one."""
    where = dict(claim.where)
    rows = [row for row in table.rows if row.point.lane == lane and where.items() <= dict(row.point.values).items()]
    if claim.reduction == AT:
        return list(rows[0].seeds)
    if claim.reduction in (BEST, BEST_AT):
        row = min(rows, key=lambda row: _or_infinite(mean(row.seeds).value))
        if claim.reduction == BEST:
            return list(row.seeds)
        ((_, value),) = (item for item in row.point.values if item[0] not in where)
        return [Estimate(float(value))]
    free = next(name for name, _ in rows[0].point.values if name not in where)
    return [slope([float(dict(row.point.values)[free]) for row in rows], [mean(row.seeds) for row in rows])]


def _or_infinite(x: float) -> float:
    return x if np.isfinite(x) else float("inf")


def slope(x: Sequence[float], y: Sequence[Estimate]) -> Estimate:
    """The slope of log |y| against log x, by least squares: weighted where the errors of y are known."""
    values, at = np.array([e.value for e in y]), np.log(x)
    if not np.isfinite(values).all() or (values == 0).any():
        return Estimate(float("nan"))
    known = all(e.error for e in y)
    weight = (values / np.array([e.error for e in y], dtype=float)) ** 2 if known else np.ones(len(y))
    at = at - weight @ at / weight.sum()
    log = np.log(np.abs(values))
    spread = weight @ at**2
    found = float(weight @ (at * log) / spread)
    if known:
        return Estimate(found, float(1 / np.sqrt(spread)))
    rest = log - (weight @ log / weight.sum()) - found * at
    return Estimate(found, float(np.sqrt(rest @ rest / max(len(y) - 2, 1) / spread)))


class Curve(NamedTuple):
    """The numbers of a lane along one axis of a sweep, each with the range of its seeds."""

    lane: int
    at: tuple[Any, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    errors: tuple[float | None, ...]


def axis_of(step: Step) -> str:
    """The axis of a sweep's figure: the axis of the first slope, or one that the claims single out, or the last."""
    assert step.sweep is not None
    of_slope = next((claim for claim in step.claims if claim.reduction == SLOPE), None)
    if of_slope is not None:
        own = (axis.name for axis in step.sweep.axes if axis.has(of_slope.lane))
        return next(name for name in own if name not in dict(of_slope.where))
    singled = {name for claim in step.claims for name, _ in claim.where}
    names = list(dict.fromkeys(axis.name for axis in step.sweep.axes))
    return next((name for name in names if name in singled), names[-1])


def label_of(step: Step, axis: str) -> str:
    """The label in the controls of the value that an axis moves: ``Step size ε``."""
    assert isinstance(step.spec, Experiment)
    part, _, name = axis.rpartition(".")
    key = step.spec.target.key
    owners = {
        "target": [ANY_TARGET[key]],
        "sampler": [ANY_SAMPLER[lane.sampler.key] for lane in step.spec.lanes],
        "gradient": [GRADIENTS[lane.gradient.key] for lane in step.spec.lanes if lane.gradient.key],
    }
    labels = [p.label for owner in owners.get(part, ()) for known, p in declared(owner) if known == name]
    return str([*labels, *(p.label for known, p in settings_of(key).items() if known == name), name][0])


def quantity_of(sweep: Sweep) -> str:
    """The measure of a sweep, in words."""
    what = MEASURES[sweep.measure.key].title
    return what if sweep.quantity == VALUE else f"{what}: {sweep.quantity.replace('_', ' ')}"


FEWEST = 3
"""Points that a slope is told of."""


def slope_of(curve: Curve) -> float:
    """The slope of a curve on log axes; NaN where there are few points, or a value has no logarithm."""
    if len(curve.at) < FEWEST or not all(is_number(at) and at > 0 for at in curve.at):
        return float("nan")
    return slope(curve.at, [Estimate(*pair) for pair in zip(curve.middle, curve.errors, strict=True)]).value


def curves(axis: str, rows: Sequence[Row]) -> list[Curve]:
    """A curve a lane along an axis; over the others the best mean is taken."""
    out = []
    for lane in sorted({row.point.lane for row in rows}):
        best: dict[Any, Row] = {}
        for row in rows:
            at, value = dict(row.point.values).get(axis), mean(row.seeds).value
            if row.point.lane != lane or at is None or not np.isfinite(value):
                continue
            if at not in best or value < mean(best[at].seeds).value:
                best[at] = row
        found = [(at, mean(best[at].seeds), [seed.value for seed in best[at].seeds]) for at in sorted(best)]
        if found:
            columns = zip(*((at, one.value, min(each), max(each), one.error) for at, one, each in found), strict=True)
            out.append(Curve(lane, *columns))
    return out


def of_step(step: Step, **options: Any) -> Table:
    """The sweep of a step; ``options`` as in :func:`run`."""
    spec = step.quick_spec if options["quick"] else step.spec
    assert step.sweep is not None and isinstance(spec, Experiment)
    return run(step.sweep, spec, **options)
