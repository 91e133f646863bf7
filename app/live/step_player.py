"""The step that is taken apart on the page, its part on the screen, and the times at which parts are drawn."""

import time

from sgmcmc_lab.app.views.base import Playing
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.step_terms import ChainStep, TooLongError, take_apart

MAX_STEPS = 50
"""Steps that one can go back."""
ALONE = 0.9
"""Seconds that a part takes which is asked for by itself."""
FILLED = 0.85
"""The share of a step's time in which its parts are drawn; in the rest it stands."""


class StepPlayer:
    """The coming step of the first lane's first chain, in its parts, and the last few before it.

    To go back shows what was; the run stays where it is.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all steps."""
        self._steps: list[tuple[int, ChainStep, float]] = []
        self._at = 0
        self.shown = 0
        """How many parts of the step are there or on their way."""
        self._first, self._began, self._seconds = 0, 0.0, 0.0
        self.problem = ""
        """Why there is no step, in a sentence."""

    @property
    def step(self) -> ChainStep | None:
        """The step that is on the screen."""
        return self._steps[self._at][1] if self._steps else None

    @property
    def number(self) -> int:
        """The number of the step, counted from 1."""
        return self._steps[self._at][0] if self._steps else 0

    @property
    def behind(self) -> int:
        """How many steps the run is further than what is shown."""
        return max(len(self._steps) - 1 - self._at, 0)

    @property
    def whole(self) -> bool:
        """Whether all parts of the step are shown, so that the next thing to happen is that the chain moves."""
        return self.step is None or self.shown >= len(self.step.parts)

    def look(self, run: Run) -> bool:
        """Take the run's next step apart, unless it is the newest one here. Whether there is a new one."""
        z = [*run.position[0], *run.momentum[0]]
        if self._steps and run.steps == self._steps[-1][0] - 1 and list(self._steps[-1][1].start) == z:
            return False
        try:
            step, self.problem = take_apart(run), ""
        except TooLongError as error:
            self.clear()
            self.problem = str(error)
            return False
        same = bool(self._steps) and self._steps[-1][0] == run.steps + 1
        if self._steps and (run.steps < self._steps[-1][0] - 1 or len(step.start) != len(self._steps[-1][1].start)):
            self.clear()
        entry = run.steps + 1, step, getattr(run.sampler, "step_size", 0.0)
        self._steps = [*(self._steps[:-1] if same else self._steps), entry][-MAX_STEPS:]
        self._at = len(self._steps) - 1
        self.rest()
        return True

    def forget_newest(self) -> None:
        """Something was changed: the step that would have come does not."""
        self._steps = self._steps[:-1]
        self._at = max(len(self._steps) - 1, 0)

    def rest(self) -> None:
        """All parts are there, and nothing grows."""
        self.shown = self._first = len(self.step.parts) if self.step else 0

    def play(self, seconds: float) -> None:
        """All parts of the newest step, one after the other, in this time."""
        self._at = max(len(self._steps) - 1, 0)
        self.rest()
        self._grow(0, FILLED * seconds)

    def hide(self) -> None:
        """No part is there yet."""
        self.shown = self._first = 0

    def part_forward(self) -> bool:
        """A part more; where all are there, the step after it. Whether the chain has to move for that."""
        if not self.whole:
            self.shown += 1
            self._grow(self.shown - 1, ALONE)
        elif self.behind:
            self._at += 1
            self.hide()
        else:
            return True
        return False

    def part_back(self) -> None:
        """A part less; where none is there, the step before."""
        if self.shown:
            self.shown -= 1
            self._first = self.shown
        else:
            self.step_back()

    def step_back(self) -> None:
        """The step before, whole."""
        self._at = max(self._at - 1, 0)
        self.rest()

    def step_forward(self) -> bool:
        """The step after, whole. Whether the chain has to move for that."""
        if not self.behind:
            return True
        self._at += 1
        self.rest()
        return False

    def _grow(self, first: int, seconds: float) -> None:
        self._first, self._began, self._seconds = first, time.perf_counter(), seconds

    def playing(self) -> Playing | None:
        """The part of it that a frame shows."""
        if self.step is None:
            return None
        _, step, reach = self._steps[self._at]
        growing = max(self.shown - self._first, 0)
        passed = time.perf_counter() - self._began
        each = self._seconds / max(growing, 1)
        windows = [(0.0, 0.0)] * min(self._first, self.shown)
        windows += [(k * each - passed, (k + 1) * each - passed) for k in range(growing)]
        return Playing(step, tuple(windows), reach)
