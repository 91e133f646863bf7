"""Claims that no live run shows, such as those of sweeps: a step's own short runs, once for all sessions."""

import logging
from collections import OrderedDict

from app.threads import workers
from lessons import Step
from lessons.claims import Result
from lessons.headless import run_step

log = logging.getLogger("sgmcmc-lab")

KEPT = 200
"""Steps whose results are kept. The same runs give the same numbers, so nobody has to make them twice."""
_PROOFS: "OrderedDict[int, Proof]" = OrderedDict()
# One after the other: the pages' live runs go on meanwhile.
_WORKER = workers(1, "proof")


class Proof:
    """The runs of one step: waiting, going on, or done."""

    def __init__(self, step: Step):
        self.step = step
        self.share = 0.0
        self.results: tuple[Result, ...] | None = None
        self.problem = ""

    def make(self) -> None:
        """Run the step at reduced length, and judge its claims."""
        try:
            self.results = run_step(self.step, quick=True, progress=self._told).results
        except Exception:
            log.exception("The runs of a lesson's step met an error")
            self.problem = "its runs met an error, which the server's log has"

    def _told(self, what: str, done: int, total: int) -> None:
        self.share = done / max(total, 1)


def begin(step: Step) -> Proof:
    """Ask for the runs of a step; they may be there already."""
    if id(step) not in _PROOFS:
        _PROOFS[id(step)] = Proof(step)
        _WORKER.submit(_PROOFS[id(step)].make)
        while len(_PROOFS) > KEPT:
            _PROOFS.popitem(last=False)
    return _PROOFS[id(step)]


def of(step: Step) -> Proof | None:
    """The runs of a step, where somebody has asked for them."""
    return _PROOFS.get(id(step))
