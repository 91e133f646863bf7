"""What the pages of a session share: its loop's life, messages, the transport's buttons and the frame around it all."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from bokeh.models import Div
from panel.io.state import set_curdoc

from app.live import Live

log = logging.getLogger("sgmcmc-lab")

# Panel's Column has a scroll button that would take a cell of the grid.
GRID = """
:host { display: grid !important; max-height: none !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 8px; width: calc(100% - 8px); }
.scroll-button { display: none; }
"""
_TITLE = """
.view-title { font-weight: 600; font-size: 15px; }
.hint { font-size: 14px; opacity: .8; }
"""
LATER_SECONDS = 0.08
"""After a change, formulas and the link wait so long for its first frame."""
NARROW = 900
"""Below this width, in pixels, the sidebar covers the views."""
ROW = {"align_items": "center", "gap": "2px", "sizing_mode": "stretch_width", "margin": (0, 4)}
"""How a line of the transport is laid out."""


class Session:
    """One browser session: its live loop begins with the page and ends with it."""

    runner: Live
    page: Any
    views: Any
    """The column that holds the figures."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._document = pn.state.curdoc
        self._waiting: list[Callable[[], None]] = []
        self._messages: list[str] = []
        """What the link said that is not so."""
        self.status = pmui.Alert("", severity="info", visible=False, sizing_mode="stretch_width", margin=6)
        self.views = pn.Column(stylesheets=[GRID], sizing_mode="stretch_width", margin=(0, 4))
        self.cards = pn.Column(stylesheets=[GRID], sizing_mode="stretch_width", margin=(0, 4))
        self.readout = Div(
            text="starting", width=270, styles={"font-size": "14px", "font-variant-numeric": "tabular-nums"}
        )

    def query(self) -> str:
        """The query of the link that opened the page."""
        return (pn.state.location.search or "") if pn.state.location else ""

    def write_link(self) -> None:
        """Put the whole state into the page's address."""

    def begin_with_the_page(self) -> None:
        """Let the loop begin when the page is there, and end when it has gone."""
        pn.state.onload(self._start)
        pn.state.on_session_destroyed(lambda _: self.stop())

    def notify(self, kind: str, message: str) -> None:
        """A message that goes away by itself, or stays where it is an error."""
        if pn.state.notifications is not None:
            getattr(pn.state.notifications, kind)(message, duration=0 if kind == "error" else 8000)

    def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()

    def show_status(self, what: str, share: float) -> None:
        """Say what is going on before anything moves; an empty text says nothing."""
        self.status.param.update(object=what, visible=bool(what))

    def fit_width(self, width: int) -> None:
        """On a phone the sidebar lies over the views; it starts closed there."""
        if width < NARROW and self.page.sidebar:
            self.page.sidebar_open = False

    def _start(self) -> None:
        for message in self._messages:
            self.notify("warning", message)
        self.write_link()
        self._task = asyncio.get_running_loop().create_task(self.runner.run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("The live loop ended", exc_info=task.exception())
            self.show_status("The live loop met an error and stopped; reload the page to go on.", 1.0)

    def later(self, work: Callable[[], None]) -> None:
        """Do what the browser may wait for after the frame that shows a change; asked for several times, do it once."""
        if self._task is None:
            work()
        elif work not in self._waiting:
            self._waiting.append(work)
            asyncio.get_running_loop().call_later(LATER_SECONDS, self._catch_up, work)

    def _catch_up(self, work: Callable[[], None]) -> None:
        self._waiting.remove(work)
        if self._task is not None and not self._task.done():
            with set_curdoc(self._document):
                work()

    def show_views(self, views: Sequence[Any]) -> None:
        """Put the views' figures on the page, the first one larger."""
        panes = []
        for i, view in enumerate(views):
            wide = view.tall or (i == 0 and len(views) > 2)
            title = pn.pane.HTML(
                f"<span class='view-title'>{view.title}</span> <span class='hint'>{view.hint}</span>",
                stylesheets=[_TITLE], sizing_mode="stretch_width", margin=(4, 8, 0, 8),
            )  # fmt: skip
            figure = pn.pane.Bokeh(
                view.figure, sizing_mode="stretch_both", min_height=0, margin=(0, 4, 4, 4), theme=None
            )
            panes.append(pmui.Paper(
                title, figure, height=516 if wide else 254, sizing_mode="stretch_width", margin=0, elevation=1,
                css_classes=["wide"] if wide else [], styles={"grid-row": "span 2"} if wide else {},
            ))  # fmt: skip
        self.views.objects = panes

    def _frame(self, state: Any, main: list[Any], sidebar: list[Any], header: list[Any]) -> Any:
        """The page around its parts."""
        page = pmui.Page(
            title="SG-MCMC Lab", main=main, sidebar=sidebar, sidebar_width=300,
            header=header, dark_theme=state.dark, theme_toggle=True,
            busy_indicator=None,
            # An interactive tooltip covers the next button and takes its click.
            theme_config={"components": {"MuiTooltip": {"defaultProps": {"disableInteractive": True}}}}, sx={".sidebar": {"padding": 0}, "& .main": {"padding": "4px"}},
        )  # fmt: skip
        with param.edit_constant(page):
            # Panel's count of what is going on would walk every model of the page, twice for every event.
            page.busy = False
        page.param.watch(lambda event: setattr(state, "dark", event.new), "dark_theme")
        return page

    def _transport_buttons(self, state: Any) -> list[Any]:
        """Play or pause, Step, Reset and New seed."""
        play = pmui.Button(label="Pause" if state.playing else "Play", icon="pause" if state.playing else "play_arrow", color="primary",
                           variant="contained", size="small", width=104, margin=(6, 4))  # fmt: skip

        def toggle(_: Any) -> None:
            state.playing = not state.playing

        def show(event: Any) -> None:
            play.param.update(label="Pause" if event.new else "Play", icon="pause" if event.new else "play_arrow")

        play.on_click(toggle)
        state.param.watch(show, "playing")

        def button(name: str, icon: str, help_: str, action: Any) -> Any:
            made = pmui.Button(
                label=name, icon=icon, variant="outlined", size="small", margin=(6, 2), description=help_
            )
            made.on_click(action)
            return made

        def one_step(_: Any) -> None:
            state.playing = False
            self.runner.step()

        return [
            play,
            button("Step", "skip_next", f"Step: one step of every {state.runs_what}, then a pause.", one_step),
            button(
                "Reset",
                "replay",
                "Reset: start again with the same seed, and so the same draws.",
                lambda _: state.reset(),
            ),
            button(
                "New seed",
                "casino",
                "New seed: start again with the next seed, and so other draws.",
                lambda _: state.set_seed(state.seed % (2**32 - 1) + 1),
            ),
        ]


def view_chooser() -> Any:
    """The buttons that put views on the page and take them off."""
    return pmui.CheckButtonGroup(
        size="small", margin=(6, 4), color="primary", styles={"flex": "1 1 320px"},
        sx={"& .MuiToggleButton-root": {"width": "auto", "flex": "0 0 auto", "textTransform": "none", "whiteSpace": "nowrap", "py": "3px"}, "flexWrap": "wrap"},
    )  # fmt: skip
