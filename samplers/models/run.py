"""Runs on models of data: chains of a method, their scores, and the whole experiment without a page.

The same experiment gives the same draws, bit for bit, live or headless: each method has its own random numbers, is
scored at the same steps, and changed at the same ones.
"""

import csv
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.models import METHODS, Method, Model
from sgmcmc_lab.samplers.running_statistics import N_LAGS, Statistics, count_row
from sgmcmc_lab.samplers.targets.base import Array, Column
from sgmcmc_lab.samplers.trace import Divergence

SCORE_SPACING = 1.1
"""A method is scored at steps that are this much further on: evenly spaced on a log axis."""


class Score(NamedTuple):
    """The held-out score at one step, on each of the axes."""

    step: int
    data_seen: int
    seconds: float
    """Time spent in the method's steps; scoring is not counted."""
    value: float


def make_method(choice: Choice) -> Method:
    """The method as an object."""
    return METHODS[choice.key](**choice.values())


class ModelChain:
    """One of a lane's independent runs of its method. Raises :class:`~samplers.parameters.SpecError` where the method
    does not fit the model.
    """

    def __init__(self, model: Model, method: Method, rng: np.random.Generator):
        method.check(model)
        jit.prepare(functions(method))
        self.model, self.method, self.rng = model, method, rng
        self.steps = self.data_seen = 0
        self.seconds = 0.0
        self.scores: list[Score] = []
        self.divergence: Divergence | None = None
        self.state = method.start(model, rng)

    @property
    def due(self) -> bool:
        """Whether the score is to be taken now."""
        return not self.scores or self.steps >= max(self.scores[-1].step * SCORE_SPACING, self.scores[-1].step + 1)

    def advance(self) -> None:
        """One step, and the score where it is due; nothing where the method has blown up."""
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

    def snapshot(self) -> dict[str, Any]:
        """The snapshot that the views show."""
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


class Later:
    """Running statistics of the later steps: of the last half to three quarters.

    There are two, the younger one begun at the last power of two and the other at the one before, so that the start is
    forgotten at a fixed pace whatever the number of steps will be, as the score's running average forgets it.
    """

    def __init__(self, columns: tuple[Column, ...], n_chains: int):
        self._columns, self._n_chains = columns, n_chains
        self.rows = 0
        """The steps that all chains have made."""
        self.statistics, self._younger = self._empty(), self._empty()
        self._scratch = np.empty((2, 1 + N_LAGS))

    def _empty(self) -> Statistics:
        return Statistics.empty(self._columns, self._n_chains, len(self._columns))

    def add(self, values: Array) -> None:
        """Count a step, (columns, chains), unless a number is not finite: a histogram has no place for it."""
        self.rows += 1
        if self.rows.bit_count() == 1:
            self.statistics, self._younger = self._younger, self._empty()
        if not np.isfinite(values).all():
            return
        row, draws = np.ascontiguousarray(values[:, :, None]), np.ascontiguousarray(values.T[None])
        for statistics in (self.statistics, self._younger):
            count_row(statistics.sums, draws, row, self._scratch)


class ModelRun:
    """A lane in progress: a method with ``n_chains`` independent runs, which stay within a step of each other."""

    interacting = False
    """No chain of a method moves another."""

    def __init__(self, spec: RunSpec, model: Model):
        self.spec, self.model = spec, model
        self.changes: list[Change] = []
        """The changes made so far, and those that the spec still has to come; with the spec they reproduce the run."""
        method = make_method(spec.sampler)
        self.chains = [ModelChain(model, method, spec.generator(i)) for i in range(spec.n_chains)]
        self._later = Later(model.columns, spec.n_chains)
        self._pending = [list[Change]() for _ in self.chains]
        for change in spec.changes:
            make_method(change.sampler).check(model)
            self._add(change)

    @property
    def steps(self) -> int:
        """The steps that the furthest chain has made."""
        return max(chain.steps for chain in self.chains)

    @property
    def counted(self) -> int:
        """The same: every step counts."""
        return self.steps

    @property
    def statistics(self) -> Statistics:
        """The statistics of the numbers that the model follows, at the later steps; they stop when a chain stops."""
        return self._later.statistics

    @property
    def rows(self) -> int:
        """The steps that all chains have made."""
        return self._later.rows

    @property
    def next(self) -> ModelChain | None:
        """The chain that is furthest behind, which makes the next step; None where all have stopped."""
        moving = [chain for chain in self.chains if chain.divergence is None]
        return min(moving, key=lambda chain: chain.steps, default=None)

    @property
    def divergence(self) -> Divergence | None:
        """Why the first chain that stopped did so."""
        return next((chain.divergence for chain in self.chains if chain.divergence is not None), None)

    def advance(self, n: int) -> None:
        """Make ``n`` more steps of every chain, or fewer where one diverges."""
        goal = self.steps + n
        while (chain := self.next) is not None and chain.steps < goal:
            self.step(chain)

    def step(self, chain: ModelChain) -> None:
        """One step of a chain, with what holds from there on."""
        pending = self._pending[self.chains.index(chain)]
        while pending and pending[0].step <= chain.steps:
            chain.method = make_method(pending.pop(0).sampler)
        chain.advance()
        if all(one.steps > self.rows for one in self.chains):
            # None of them goes on before the others have made this step.
            self._later.add(np.array([one.method.follow(self.model, one.state) for one in self.chains]).T)

    def change(self, change: Change) -> None:
        """Go on with other values of the method's parameters, from here in all chains: one that is a step behind makes
        that step as before. The last of several changes at one step counts. Raises
        :class:`~samplers.parameters.SpecError`.
        """
        make_method(change.sampler).check(self.model)
        change = change._replace(step=self.steps)
        if self.changes and self.changes[-1].step == change.step:
            # No chain has made a step with that one.
            for pending in (self.changes, *self._pending):
                pending.pop()
        self._add(change)

    def _add(self, change: Change) -> None:
        self.changes.append(change)
        for pending in self._pending:
            pending.append(change)


def start(experiment: Experiment, model: Model) -> tuple[ModelRun, ...]:
    """The run of each lane, before its first step. Raises :class:`~samplers.parameters.SpecError`."""
    return tuple(ModelRun(spec, model) for spec in experiment.runs())


def functions(method: Method | type[Method]) -> list[Any]:
    """The compiled functions that a method needs: what it names, or else all that lies beside it."""
    package = method.__module__.rpartition(".")[0] + "."
    own = list(method.compiled) or [f for f in jit.declared() if f.py_func.__module__.startswith(package)]
    return [*own, count_row]


def needed(experiment: Experiment) -> list[Any]:
    """The compiled functions that an experiment needs, on a density or on a model."""
    if experiment.of_model:
        return [f for lane in experiment.lanes for f in functions(METHODS[lane.sampler.key])]
    return [f for spec in experiment.runs() for f in engine.functions(spec)]


def run_models(
    experiment: Experiment, uploaded: Any = None, progress: Callable[[int, int], None] | None = None
) -> tuple[ModelRun, ...]:
    """All steps of all lanes of an experiment on a model of data.

    ``uploaded`` is what the model's ``read`` made of somebody's own files. ``progress(steps made, steps in all)`` is
    called after every step; a KeyboardInterrupt from it ends the experiment there. Raises
    :class:`~samplers.parameters.SpecError`.
    """
    runs = start(experiment, experiment.make_model(uploaded))
    made, total = 0, sum(run.spec.n_steps * run.spec.n_chains for run in runs)
    try:
        for run in runs:
            before = made
            while run.next is not None and run.steps < run.spec.n_steps:
                run.advance(1)
                made += run.spec.n_chains
                if progress is not None:
                    progress(made, total)
            made = before + run.spec.n_steps * run.spec.n_chains
    except KeyboardInterrupt:
        pass
    return runs


def write_curves(file: IO[str], titles: Sequence[str], runs: Sequence[ModelRun]) -> None:
    """Every score of every chain as CSV, a row each."""
    model = runs[0].model
    writer = csv.writer(file)
    writer.writerow(["method", "seed", "step", f"{model.data_name} seen", "seconds", model.score_name])
    for title, run in zip(titles, runs, strict=True):
        for i, chain in enumerate(run.chains):
            seed = (run.spec.seed + i) % 2**32
            writer.writerows([title, seed, *score] for score in chain.scores)
