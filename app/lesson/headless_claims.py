"""Claims that no live run shows, such as those of sweeps: a step's own short runs, once for all sessions."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from threading import Lock

from sgmcmc_lab.lessons import Step
from sgmcmc_lab.lessons.claims import Result
from sgmcmc_lab.lessons.headless import run_step
from sgmcmc_lab.lessons.lesson import Point
from sgmcmc_lab.lessons.measures.base import Estimate
from sgmcmc_lab.lessons.sweep import Row

log = logging.getLogger("sgmcmc-lab")

Submit = Callable[[Callable[[], None]], Future[None]]
MAX_PROOFS = 200
"""Steps whose results are kept. The same runs give the same numbers, so nobody has to make them twice."""
_PROOFS: "OrderedDict[int, Proof]" = OrderedDict()


class Proof:
    """The runs of one step: waiting, going on, or done."""

    def __init__(self, step: Step):
        self.step = step
        self.share = 0.0
        self.results: tuple[Result, ...] | None = None
        self.problem = ""
        self.waiting = 0
        """How many pages wait for it."""
        self.turns: list[Future[None]] = []
        """The turns of addresses that wait for it; the first to come is for all."""
        self._begun = Lock()
        self._found: dict[Point, list[Estimate]] = {}

    @property
    def running(self) -> bool:
        """Whether more will come."""
        return self.results is None and not self.problem

    @property
    def rows(self) -> list[Row]:
        """The numbers of a sweep so far."""
        # A copy at once: the worker's thread may add to it meanwhile.
        return [Row(point, tuple(found)) for point, found in list(self._found.items())]

    def make(self) -> None:
        """Run the step at reduced length, once, and judge its claims."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            if self.step.sweep is not None:
                # The library of its picture takes a second to load, during which no page may stand still.
                from sgmcmc_lab.lessons import figures

                figures.prepare("bokeh")
            self.results = run_step(
                replace(self.step, checks=()), quick=True, progress=self._progress, each=self._measured
            ).results
        except CancelledError:
            log.info("Nobody waits any more for the runs of a step")
        except Exception:
            log.exception("The runs of a lesson's step met an error")
            self.problem = "its runs met an error, which the server's log has"

    def _progress(self, what: str, done: int, total: int) -> None:
        if not self.waiting:
            raise CancelledError
        self.share = done / max(total, 1)

    def _measured(self, point: Point, estimate: Estimate) -> None:
        self._found.setdefault(point, []).append(estimate)


def begin(step: Step, submit: Submit) -> Proof:
    """Ask for the runs of a step; they may be there already. ``submit`` lets them wait for the turn of who asks."""
    made = _PROOFS.setdefault(id(step), Proof(step))
    # Before it begins: with nobody waiting it would end at once.
    made.waiting += 1
    if made.running:
        made.turns.append(submit(made.make))
    while len(_PROOFS) > MAX_PROOFS:
        _PROOFS.popitem(last=False)
    return made


def cancel(step: Step) -> None:
    """Wait no more for the runs of a step; where nobody else does, they end."""
    found = _PROOFS.get(id(step))
    if found is not None and found.running:
        found.waiting -= 1
        if not found.waiting:
            for turn in found.turns:
                turn.cancel()
            del _PROOFS[id(step)]


def of(step: Step) -> Proof | None:
    """The runs of a step, where somebody has asked for them."""
    return _PROOFS.get(id(step))
