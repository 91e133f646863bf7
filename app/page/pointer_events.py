"""Clicks, taps and drags in figures: where chains are to begin and how they are thrown, and what is drawn or moved."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from panel.custom import JSComponent

from sgmcmc_lab.app.page.notifications import Notify
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views.base import CLICK, CURVE, HANDLE, MOST, THROW
from sgmcmc_lab.app.views.bundle import ASSETS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import MANIFOLD

FARTHEST = 1e9
"""No axis goes farther."""


class Touch(JSComponent):
    """The invisible component that tells the server what was done with the pointer, in which view, and where."""

    _esm = ASSETS / "touch.js"

    def __init__(self, take: Mapping[str, Callable[[str, list[float]], Any]]):
        """``take`` has for each of what may be done what is called with the view's key and the numbers."""
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed")
        self._take = take

    def _handle_msg(self, message: Any) -> None:
        if not isinstance(message, list) or len(message) < 3:
            return
        done, key, *given = message
        if not (isinstance(done, str) and isinstance(key, str) and len(given) <= MOST.get(done, 0)):
            return
        if all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= FARTHEST for x in given):
            self._take[done](key, [float(x) for x in given])


class PointerEvents:
    """The meaning of clicks and drags in the views of one page."""

    def __init__(
        self, state: AppState, views: Callable[[], Sequence[Any]], question_first: Callable[[], bool], notify: Notify
    ):
        """``question_first`` says whether a lesson's question waits for its answer: nothing begins before it."""
        self._state, self._views = state, views
        self._question_first, self._notify = question_first, notify
        self.component = Touch(
            {CLICK: self.put_chains, THROW: self.throw_chains, HANDLE: self.move_handle, CURVE: self.draw_energy}
        )

    def put_chains(self, key: str, point: list[float]) -> None:
        """Let the chains begin where somebody clicked into a view."""
        self._in_view(CLICK, key, ["start"], lambda view: self._throw(view, point, point))

    def throw_chains(self, key: str, ends: list[float]) -> None:
        """Let them begin where somebody began to drag, with a momentum as the drag was."""
        half = len(ends) // 2
        self._in_view(THROW, key, ["start", "momentum"], lambda view: self._throw(view, ends[:half], ends[half:]))

    def move_handle(self, key: str, given: list[float]) -> None:
        """Move a well of the target: given are its number and where it is to be."""
        number, *point = given

        def move(_: Any) -> None:
            target = self._state.experiment.make_target()
            if len(point) == 2 and self._state.shows(f"target.{target.dragged}"):
                self._state.set_target_param(target.dragged, target.with_handle(number, rounded(point, exactly=False)))

        self._in_view(HANDLE, key, [], move)

    def draw_energy(self, key: str, given: list[float]) -> None:
        """Take a curve that somebody drew, θ and U by turns, as the energy."""
        points = np.array(given[: len(given) // 2 * 2]).reshape(-1, 2)
        self._in_view(CURVE, key, ["target.energy"], lambda view: self._state.draw_energy(points))

    def _in_view(self, done: str, key: str, needs: Sequence[str], do: Callable[[Any], None]) -> None:
        """Perform a pointer action in a view that supports it, if the page shows the controls that it replaces."""
        view = next((view for view in self._views() if view.key == key), None)
        if view is None or done not in view.gestures or self._state.experiment.of_model:
            return
        if not all(map(self._state.shows, needs)) or self._question_first():
            return
        try:
            do(view)
        except SpecError as error:
            self._notify("warning", str(error))

    def _throw(self, view: Any, point: list[float], end: list[float]) -> None:
        experiment = self._state.experiment
        start = view.start_at(point, experiment.runs()[0].first_position())
        if start is None:
            return
        exactly = experiment.make_target().support == MANIFOLD
        place = rounded(start, exactly)
        momentum = view.momentum_at(point, end, np.array(place))
        self._state.throw(place, [] if momentum is None else rounded(momentum, exactly))


def rounded(start: Any, exactly: bool) -> list[float]:
    """A place that a person pointed at, with as many digits as a link needs; a point of a manifold has to be on it."""
    return [round(float(x), 9) if exactly else float(f"{x:.4g}") for x in start]
