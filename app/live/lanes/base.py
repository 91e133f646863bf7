"""The interface of the lanes of an experiment to the live loop."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.base import FRESH, CurvePoint, Frame, LaneFrame, Position
from sgmcmc_lab.samplers import Change, Experiment
from sgmcmc_lab.samplers.files import EndedError
from sgmcmc_lab.samplers.running_statistics import TAIL

WORK_SECONDS = 0.04
"""Lanes move for so long between two frames; a single step that takes longer is made all the same."""


LOADING = "Loading"


class Progress:
    """How far work in a thread is. Work that nobody waits for ends where it next tells."""

    def __init__(self) -> None:
        self.what = LOADING
        self.share: float | None = None
        """Between 0 and 1; None where that is not known."""
        self.cancelled = False

    def tell(self, what: str, share: float | None = None) -> None:
        """Say what begins now. Raises :class:`~samplers.files.EndedError`."""
        if self.cancelled:
            raise EndedError
        self.what, self.share = what, share

    def compiling(self, done: int, total: int, what: str) -> None:
        """Report the compiler's progress; ``what`` is empty where nothing is compiled."""
        name = what.removeprefix("the main loop of the ").replace("_", " ")
        self.tell(f"First start on this machine: compiling {name}" if what else LOADING, done / max(total, 1))


class Record(ABC):
    """The page's record of a lane, besides its run's own statistics."""

    curve: Sequence[CurvePoint] = ()
    """The distance from the target so far, where there is one."""
    whole: Any = None
    """The run as it was when it had the experiment's length; None before that, and where none is kept."""

    def __init__(self, run: Any):
        self.run = run
        self.marks: list[Position] = []
        """The positions at which parameters were changed."""
        self.seen = 0

    @property
    @abstractmethod
    def position(self) -> Position:
        """The position of the lane on each axis."""

    @property
    @abstractmethod
    def made(self) -> int:
        """The steps whose draws the statistics have seen, or will not see."""

    def frame(self, axis: str) -> LaneFrame:
        """The lane for a frame; draws that an earlier frame had are not in it."""
        fresh, ages = self.run.statistics.fresh(self.made - self.seen, FRESH)
        steps = self.made - ages
        self.seen = self.made
        here = self.position.on(axis)
        return LaneFrame(
            run=self.run,
            x=here,
            fresh=fresh,
            fresh_x=here * steps / max(self.made, 1),
            curve=self.curve,
            marks=[mark.on(axis) for mark in self.marks],
        )

    def still(self) -> LaneFrame:
        """The lane for what takes no draws out of the next frame."""
        return LaneFrame(self.run, 0.0, np.zeros((0, 1, 1)), np.zeros(0), self.curve)


class Lanes(ABC):
    """The runs of an experiment, and what the page remembers of each."""

    records: Sequence[Any]
    """The :class:`Record` of each lane."""
    heavy: bool
    """Whether the arrays of a frame take so long that a thread computes them."""
    early = False
    """Whether the answers of their target are rough, for the exact ones are still being computed."""
    given_up = False
    """Whether their move is cancelled: it ends as soon as it can."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        """As it was begun."""

    @property
    def runs(self) -> list[Any]:
        """The run of each lane."""
        return [record.run for record in self.records]

    @property
    def judged(self) -> list[Any]:
        """The run of each lane that claims are compared with: at full length, and before that the present one."""
        return [record.whole or record.run for record in self.records]

    @property
    @abstractmethod
    def moving(self) -> bool:
        """Whether a lane can make another step."""

    @abstractmethod
    def recorded(self) -> Experiment:
        """The experiment with the changes made so far: run for as many steps it gives the same draws."""

    def facts(self) -> dict[str, str]:
        """Facts about the data, or about the computation of the target, for the target's card."""
        return {}

    def change(self, lane: int, change: Change) -> None:
        """Go on with other parameters, from here."""
        record = self.records[lane]
        record.run.change(change)
        record.whole = None
        if record.marks[-1:] != [record.position]:
            record.marks.append(record.position)

    @abstractmethod
    def short(self, state: AppState, single: int) -> bool:
        """Whether moving takes less time than handing it to a thread."""

    @abstractmethod
    def move(self, state: AppState, single: int) -> None:
        """Steps for the next frame: as many as the state says while it plays, else ``single`` ones."""

    def apart(self) -> Any:
        """The run whose steps can be taken apart, the first; None where no lane's can."""
        return None

    def forget_sent(self) -> None:
        """The page has new figures: what it was sent before is not in them."""
        for record in self.records:
            record.seen = max(0, record.made - TAIL)

    @abstractmethod
    def frame(self, state: AppState) -> Frame:
        """The input from which views compute a frame; what was in an earlier frame may be left out."""

    @abstractmethod
    def whole(self, state: AppState) -> Frame:
        """The input for captions and for slow work, which take nothing out of the next frame."""

    def doubts(self, state: AppState) -> str:
        """Why draws do not agree with the target yet, a sentence for each lane of which that is so."""
        return ""

    @abstractmethod
    def readout(self, state: AppState, frames_a_second: float) -> str:
        """How far the lanes are, and how fast."""
