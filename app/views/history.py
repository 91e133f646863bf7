"""The common part of the views that compute for some milliseconds from the thinned history of each lane's chains."""

from abc import abstractmethod
from typing import Any, ClassVar

from bokeh.models import Label

from sgmcmc_lab.app.views.base import Array, Data, Frame, Scene, View
from sgmcmc_lab.samplers import convergence


class OfHistory(View):
    """A picture of the history of one coordinate, or of θ, of each lane.

    A frame takes a copy of the history where it has become enough longer; it is read beside the frames.
    """

    reads = (convergence,)
    growth: ClassVar[float] = 1.1
    """The history is read again when the run is this many times as long."""
    of_column: ClassVar[bool] = True
    """Whether it is of the scene's coordinate, which then must vary."""
    of_ess: ClassVar[bool] = False
    """Whether it shows an ESS, which weighted draws do not have."""
    labels: list[Label]
    """The caption of each lane, which ``build`` makes."""

    def __init__(self, scene: Scene, before: View | None = None):
        self._taken: dict[int, Array | str] = {}
        self._steps: dict[int, tuple[Any, int]] = {}
        self.found: dict[int, Any] = {}
        """The results of each lane; a text says why there are none."""
        self._fresh = False
        super().__init__(scene, before)

    @abstractmethod
    def read(self, history: Array) -> Any:
        """The results of draws (chains, n, columns)."""

    @abstractmethod
    def drawn(self) -> Data:
        """The results as arrays."""

    @abstractmethod
    def said(self, found: Any) -> str:
        """The results in words."""

    def _take(self, i: int, run: Any) -> None:
        known, before = self._steps.get(i, (None, -1))
        now = run.statistics.n_steps
        if known is run and (now == before or before < now < self.growth * before):
            return
        self._steps[i] = run, now
        # A later copy takes the place of one that has not been read.
        self._taken[i] = self._refusal(run) or run.statistics.history().copy()

    def _refusal(self, run: Any) -> str:
        if run.interacting:
            return "interacting particles are not chains"
        why = run.statistics.why_weighted
        return f"{why}: no ESS" if self.of_ess and why else ""

    def background(self, lanes: Frame) -> bool:
        worked = bool(self._taken)
        for i in list(self._taken):
            history = self._taken.pop(i)
            self.found[i] = self._read(history)
        self._fresh |= worked
        return worked

    def _read(self, history: Array | str) -> Any:
        if isinstance(history, str):
            return history
        why = convergence.refusal(history, self.scene.coordinate) if self.of_column else ""
        return why or self.read(history)

    def compute(self, lanes: Frame) -> Data:
        for i, lane in enumerate(lanes):
            self._take(i, lane.run)
        if not self._fresh:
            return {}
        self._fresh = False
        return self.drawn()

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The results of each lane, or the reason why there are none."""
        out = {}
        for i, (label, name) in enumerate(zip(self.labels, self.scene.lanes, strict=True)):
            found = self.found.get(i, "no draws yet")
            out[label.id] = f"{name}  {found if isinstance(found, str) else self.said(found)}"
        return out
