"""The part of a lesson's panel for claims that no live run shows: a way to measure them, and what comes of it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from sgmcmc_lab.app.lesson import headless_claims
from sgmcmc_lab.app.lesson.sweeping import HEIGHT, TABLE_HEIGHT, SweepPicture
from sgmcmc_lab.app.live.fair_executor import Pool
from sgmcmc_lab.app.live.page_lock import on_page
from sgmcmc_lab.app.room.network import address_of
from sgmcmc_lab.app.views.theme import Theme
from sgmcmc_lab.lessons import Step

WORKER = Pool(1, "proof", most_of_address=1)
"""Runs for one address are made one after the other: the pages' live runs go on meanwhile."""
EACH_SECONDS = 0.3
"""The picture of a sweep has its new points so often."""
BRUSHING = "Drawn by HoloViews, with linked brushing: select points, by a click or a drag, or rows of the table."


class Measuring:
    """A button; while it measures how far it is, with a way to give it up; and the picture of a sweep."""

    def __init__(
        self,
        step: Step,
        names: Sequence[str],
        colours: Theme,
        command: str,
        do_later: Callable[[Coroutine[Any, Any, None]], None],
    ):
        self._step, self._command, self._do_later = step, command, do_later
        self._document = pn.state.curdoc
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self._names, self._colours = names, colours
        self.picture: SweepPicture | None = None
        self._share = pn.pane.HTML("", margin=(10, 4), styles={"font-size": "14px"})
        if headless_claims.of(step) is not None:
            self._wait()
        else:
            self._show()

    def begin(self) -> None:
        """Ask for the runs."""
        if headless_claims.of(self._step) is None:
            self._wait()

    def cancel(self) -> None:
        """Wait no more for them."""
        headless_claims.cancel(self._step)
        self.picture = None
        self._show()

    def _wait(self) -> None:
        self._proof = headless_claims.begin(
            self._step, partial(WORKER.submit, WORKER.share(address_of(self._document)))
        )
        self._show()
        self._draw()
        if self._proof.running:
            self._do_later(self._follow(self._proof))

    async def _follow(self, found: headless_claims.Proof) -> None:
        while found.running and headless_claims.of(self._step) is found:
            await asyncio.sleep(EACH_SECONDS)
            on_page(self._document, self._draw)
        on_page(self._document, self._end)

    def _end(self) -> None:
        self._draw()
        self._show()

    def _draw(self) -> None:
        found = headless_claims.of(self._step)
        if found is not None:
            self._share.object = f"{found.share:.0%} measured"
            rows = found.rows
            if self.picture is not None:
                self.picture.show(rows)
            elif rows and self._step.sweep is not None:
                self.picture = SweepPicture(self._step, rows, self._names, self._colours, table=True)
                self._show()

    def _show(self) -> None:
        found = headless_claims.of(self._step)
        picture = []
        if self.picture is not None and found is not None:
            parts = ((self.picture.figure, HEIGHT), (self.picture.table, TABLE_HEIGHT))
            picture = [
                pn.pane.Bokeh(part, height=height, sizing_mode="stretch_width", margin=(4, 8), theme=None)
                for part, height in parts
            ]
            picture.append(pn.pane.HTML(BRUSHING, margin=(0, 12), styles={"font-size": "13px"}))
        line: list[Any] = []
        if found is None:
            button = pmui.Button(
                label="Measure them here",
                icon="speed",
                size="small",
                variant="outlined",
                margin=(6, 12),
                description="Measure them here: the step's own runs, at reduced length; this takes from some seconds to a minute.",
            )
            button.on_click(lambda _: self.begin())
            line = [
                button,
                pn.pane.HTML(
                    f"or in a terminal: <code>{escape(self._command)}</code>",
                    margin=(10, 12),
                    styles={"font-size": "13px"},
                ),
            ]
        elif found.running:
            cancel = pmui.Button(label="Cancel", icon="close", size="small", variant="outlined", margin=(6, 12))
            cancel.on_click(lambda _: self.cancel())
            line = [cancel, self._share]
        rows = [pn.FlexBox(*line, align_items="center", sizing_mode="stretch_width", margin=0)] if line else []
        self.panel.objects = [*rows, *picture]
