"""What the live loop asks of the lanes of an experiment."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from app.state import AppState
from samplers import Change, Experiment
from samplers.models.files import EndedError

WORK_SECONDS = 0.04
"""Lanes move for so long between two frames; a single step that takes longer is made all the same."""


class Progress:
    """How far work in a thread is. Work that nobody waits for ends where it next tells."""

    def __init__(self) -> None:
        self.what = "Loading"
        self.share: float | None = None
        """Between 0 and 1; None where that is not known."""
        self.cancelled = False

    def tell(self, what: str, share: float | None = None) -> None:
        """Say what begins now. Raises :class:`~samplers.models.files.EndedError`."""
        if self.cancelled:
            raise EndedError
        self.what, self.share = what, share

    def compiling(self, done: int, total: int, what: str) -> None:
        """The same for the compiler."""
        if what:
            name = what.removeprefix("the main loop of the ").replace("_", " ")
            self.tell(f"First start on this machine: compiling {name}", done / total)


class Lanes:
    """The runs of an experiment, and what the page remembers of each."""

    records: Sequence[Any]
    """Of each lane its ``run``, its ``position`` on the axes, and its ``marks``: where parameters were changed."""
    heavy: ClassVar[bool]
    """Whether the arrays of a frame take so long that a thread computes them."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        """As it was begun."""

    @property
    def runs(self) -> list[Any]:
        """The run of each lane."""
        return [record.run for record in self.records]

    @property
    @abstractmethod
    def moving(self) -> bool:
        """Whether a lane can make another step."""

    @abstractmethod
    def recorded(self) -> Experiment:
        """The experiment with the changes made so far: run for as many steps it gives the same draws."""

    def facts(self) -> dict[str, str]:
        """What the data are, for the target's card."""
        return {}

    def change(self, lane: int, change: Change) -> None:
        """Go on with other parameters, from here."""
        record = self.records[lane]
        record.run.change(change)
        if record.marks[-1:] != [record.position]:
            record.marks.append(record.position)

    @abstractmethod
    def short(self, state: AppState, single: int) -> bool:
        """Whether moving takes less time than handing it to a thread."""

    @abstractmethod
    def move(self, state: AppState, single: int) -> None:
        """Steps for the next frame: as many as the state says while it plays, else ``single`` ones."""

    def forget_sent(self) -> None:
        """The page has new figures: what it was sent before is not in them."""

    @abstractmethod
    def frame(self, state: AppState) -> Any:
        """What views compute a frame from; what was in an earlier frame may be left out."""

    @abstractmethod
    def whole(self, state: AppState) -> Any:
        """The same for captions and for slow work, which take nothing out of the next frame."""

    @abstractmethod
    def readout(self, state: AppState, frames_a_second: float) -> str:
        """How far the lanes are, and how fast."""
