"""The button *Improve* of a recipe's card: D and Q with a larger gap per gradient, typed in as they are found."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from math import isnan
from typing import Any, Literal, cast

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.live.fair_executor import Pool
from sgmcmc_lab.app.live.page_lock import on_page
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.room.network import address_of
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.search import (
    FAMILIES,
    VARYING,
    Check,
    Found,
    check,
    climb,
    parameters,
)

POOL = Pool(1, "search")
"""One thread for all pages, which take turns after each recipe that is tried."""
SHOWN_SECONDS = 0.8
"""The fields have a new recipe so often at most, so that it can be seen."""

LONGEST_SECONDS = 120.0
"""A search ends after so long: a recipe on many rows takes seconds."""

DoLater = Callable[[Coroutine[Any, Any, None]], None]


class Improving:
    """A search for a lane's recipe: its controls, its progress, and the sentence at its end."""

    def __init__(self, state: AppState, lane: int, do_later: DoLater):
        self._state, self._lane, self._do_later = state, lane, do_later
        self._document = pn.state.curdoc
        self._share = POOL.share(address_of(self._document))
        self._stopped = False
        """Whether the person has ended the search, whose best recipe stays."""
        self._given_up = False
        """Whether the lane has another recipe by now, or is gone."""
        self._set: dict[str, Any] = {}
        """The parameters of the sampler that the search has typed last."""
        self._measured: Any = None
        """The recipe and the target of the result's figures; None where it has none."""
        self.family = pmui.Select(
            label="Family",
            options={title: kind for kind, title in FAMILIES.items()},
            value=VARYING,
            width=160,
            size="small",
            margin=(2, 6),
            description="The recipes among which Improve searches.",
        )
        self.button = pmui.Button(
            label="Improve",
            icon="trending_up",
            size="small",
            variant="outlined",
            margin=(2, 6),
            description="Improve: search D and Q for the largest spectral gap per gradient, and put them into the grids.",
        )
        self.button.on_click(lambda _: self._press())
        self.bar = pmui.LinearProgress(
            value=0, variant="determinate", visible=False, sizing_mode="stretch_width", margin=(2, 10)
        )
        self.result = Notice(severity="info", margin=(2, 6))
        self.running = False

    def _press(self) -> None:
        if self.running:
            self._stopped = True
            self.result.say("Ending the search…")
        else:
            self._begin()

    def give_up(self) -> None:
        """End the search, for its card is gone."""
        self._given_up = True

    def refresh(self) -> None:
        """Take the result away when its figures are of another recipe, step size or target."""
        if self._measured is not None and self._measured != self._shown():
            self._measured = None
            self.result.say("")

    def _shown(self) -> Any:
        experiment = self._state.experiment
        sampler = experiment.lanes[self._lane].sampler if self._lane < len(experiment.lanes) else None
        return sampler, experiment.density

    def _begin(self) -> None:
        state = self._state
        self._measured = None
        choice = state.experiment.lanes[self._lane].sampler
        target = state.experiment.make_target()
        recipe = cast(RecipeSampler, make_sampler(choice)).recipe(target)
        self._set, self._stopped, self._given_up = dict(choice.values()), False, False
        self._show(True, "Searching…")
        search = climb(recipe, target, self.family.value, seconds=LONGEST_SECONDS)
        self._do_later(self._follow(search, state.experiment.target, state.experiment.temperature))

    def _show(
        self, running: bool, text: str, severity: Literal["info", "success", "warning"] = "info", share: float = 0.0
    ) -> None:
        self.running = running
        self.button.param.update(label="Stop" if running else "Improve", icon="close" if running else "trending_up")
        self.family.disabled = running
        self.bar.param.update(visible=running, value=round(100 * share))
        self.result.severity = severity
        self.result.say(text)

    async def _follow(self, search: Iterator[Found], target: Any, temperature: float) -> None:
        """Take what the search finds, one recipe after the other, until it ends or is ended."""
        work = asyncio.get_running_loop().run_in_executor
        thread = POOL.of(self._share)
        first: Found | None = None
        last: Found | None = None
        shown, waits = 0.0, False
        try:
            while not self._over and (found := await work(thread, next, search, None)) is not None:
                first, last = first or found, found
                waits |= found.improved and found is not first
                if waits and time.perf_counter() - shown > SHOWN_SECONDS:
                    shown, waits = time.perf_counter(), False
                    self._on_page(self._type, found)
                self._on_page(self._say, first, found)
            before = after = None
            if first is not None and last is not None:
                self._on_page(self._type, last)
            if first is not None and last is not None and not self._over:
                self._on_page(self._show, True, "Checking by chains…", "info", 1.0)
                checked = partial(check, temperature=temperature)
                before = await work(thread, checked, first.recipe, target, first.score.step_size)
                if not self._over:
                    after = await work(thread, checked, last.recipe, target, last.score.step_size)
            self._on_page(self._end, first, last, before, after)
        except (ValueError, RuntimeError, ArithmeticError) as error:
            self._on_page(self._show, False, str(error), "warning")

    @property
    def _over(self) -> bool:
        return self._stopped or self._given_up

    def _on_page(self, work: Callable[..., None], *args: Any) -> None:
        on_page(self._document, lambda: work(*args))

    def _mine(self) -> bool:
        """Whether the lane still has what the search has typed."""
        lanes = self._state.experiment.lanes
        return self._lane < len(lanes) and dict(lanes[self._lane].sampler.values()) == self._set

    def _type(self, found: Found) -> None:
        """Put a recipe and its step into the lane, unless it has another one by now."""
        self._given_up |= not self._mine()
        if self._given_up:
            return
        try:
            self._state.set_recipe(self._lane, **parameters(found.recipe, found.score.step_size))
        except SpecError:
            self._given_up = True
            return
        self._set = dict(self._state.experiment.lanes[self._lane].sampler.values())

    def _say(self, first: Found, found: Found) -> None:
        if not self._over:
            text = f"{_count(found.tried)} {_gaps(first, found)}"
            self._show(True, text, share=found.tried / found.most)

    def _end(self, first: Found | None, last: Found | None, before: Check | None, after: Check | None) -> None:
        # A recipe that was changed while chains checked the found one has none of these figures.
        self._given_up |= not self._mine()
        if first is None or last is None:
            self._show(False, "")
        elif self._given_up:
            self._show(False, f"The search ended: the recipe was changed. {_gaps(first, last)}")
        else:
            better = "" if last.recipe != first.recipe else "No recipe of the family is better. "
            step = f"ε = {last.score.step_size:.3g} is the stable step."
            times = " ".join(
                _times(when, found) for when, found in (("before", before), ("now", after)) if found is not None
            )
            self._show(
                False,
                f"{better}{_gaps(before or first, after or last)} {_count(last.tried)} {step} {times}".strip(),
                "success",
            )
            self._measured = self._shown()
            # The statistics would mix all recipes on the way.
            self._state.reset()


def _count(tried: int) -> str:
    return f"{tried} recipes tried." if tried != 1 else "1 recipe tried."


def _gaps(first: Found | Check, found: Found | Check) -> str:
    old, new = first.score.per_gradient, found.score.per_gradient
    return f"Gap per gradient {old:.3g} → {new:.3g}, × {new / old:.3g}."


def _times(when: str, found: Check) -> str:
    tau = found.measured
    measured = "not measured" if isnan(tau.tau) else f"{tau.tau:.3g} ± {tau.standard_error:.2g} measured"
    return f"τ {when}: {found.predicted:.3g} steps predicted, {measured}."
