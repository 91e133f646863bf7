"""The page of one session: header, sidebar, transport, views and cards."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param
from bokeh.models import Div
from panel.io.state import set_curdoc

from app import link
from app.controls import Controls, log_places
from app.equations import cards
from app.export import ExportMenu
from app.runner import Runner
from app.state import MAX_SPEED, AppState
from app.views import VIEWS
from app.views.base import View
from app.workbench import Workbench
from samplers.parameters import Count

log = logging.getLogger("sgmcmc-lab")

# Panel's Column has a scroll button that would take a cell of the grid.
_GRID = """
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
_SPEED = Count(20, bounds=(1, MAX_SPEED), log=True, label="Steps a frame", doc="")


class Page:
    """The widgets of a session, and the wires between them and the state."""

    def __init__(self) -> None:
        pn.extension("mathjax", notifications=True)
        self.state = AppState()
        query = pn.state.location.search if pn.state.location else ""
        self._messages = link.read_query(self.state, query or "")
        self.controls = Controls(self.state, self.notify)
        self.runner = Runner(self.state, self)
        self.status = pmui.Alert("", severity="info", visible=False, sizing_mode="stretch_width", margin=6)
        self.views = pn.Column(stylesheets=[_GRID], sizing_mode="stretch_width", margin=(0, 4))
        self.cards = pn.Column(stylesheets=[_GRID], sizing_mode="stretch_width", margin=(0, 4))
        self._task: asyncio.Task[None] | None = None
        self._document = pn.state.curdoc
        self._waiting: list[Callable[[], None]] = []
        self._shown_cards: Any = None
        self.workbench = Workbench(self.state, self.notify, self._later)
        self.export = ExportMenu(self.state, self.runner, self.notify)
        self.readout = Div(
            text="starting", width=270, styles={"font-size": "14px", "font-variant-numeric": "tabular-nums"}
        )
        self.runner.readout = self.readout
        self.transport = self._transport()
        self.page = self._page()
        watch = self.state.param.watch
        watch(
            lambda *_: self._later(self._write_link),
            ["experiment", "playing", "speed", "views", "axis", "coordinate", "dark"],
        )
        self.runner.build_views()
        pn.state.onload(self._start)
        pn.state.on_session_destroyed(lambda _: self._stop())

    def notify(self, kind: str, message: str) -> None:
        """A message that goes away by itself, or stays where it is an error."""
        if pn.state.notifications is not None:
            getattr(pn.state.notifications, kind)(message, duration=0 if kind == "error" else 8000)

    def _start(self) -> None:
        for message in self._messages:
            self.notify("warning", message)
        self._write_link()
        self._task = asyncio.get_running_loop().create_task(self.runner.run())
        self._task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("The live loop ended", exc_info=task.exception())
            self.show_status("The live loop met an error and stopped; reload the page to go on.", 1.0)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _later(self, work: Callable[[], None]) -> None:
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

    def _write_link(self) -> None:
        if pn.state.location is not None:
            pn.state.location.search = link.to_query(self.state)

    def _page(self) -> Any:
        state = self.state
        main: list[Any] = [self.status]
        if "transport" not in state.hidden:
            main.append(self.transport)
        if "controls" not in state.hidden:
            main.append(self.workbench.panel)
        main.append(self.views)
        if "equations" not in state.hidden:
            main.append(self.cards)
        main += [self.runner.bus]
        show_controls = "controls" not in state.hidden
        page = pmui.Page(
            title="SG-MCMC Lab", main=main, sidebar=[self.controls.panel] if show_controls else [], sidebar_width=300,
            header=[] if "export" in state.hidden else [self.export.panel], dark_theme=state.dark, theme_toggle=True,
            busy_indicator=None,
            # An interactive tooltip covers the next button and takes its click.
            theme_config={"components": {"MuiTooltip": {"defaultProps": {"disableInteractive": True}}}}, sx={".sidebar": {"padding": 0}, "& .main": {"padding": "4px"}},
        )  # fmt: skip
        with param.edit_constant(page):
            # Panel's count of what is going on would walk every model of the page, twice for every event.
            page.busy = False
        page.param.watch(lambda event: setattr(state, "dark", event.new), "dark_theme")
        return page

    def _transport(self) -> Any:
        state = self.state
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

        step = button("Step", "skip_next", "Step: one step of every chain, then a pause.", one_step)
        reset = button(
            "Reset", "replay", "Reset: start again with the same seed, and so the same draws.", lambda _: state.reset()
        )
        seed = button(
            "New seed",
            "casino",
            "New seed: start again with the next seed, and so other draws.",
            lambda _: state.set_seed(state.experiment.seed % (2**32 - 1) + 1),
        )
        speed = pmui.DiscreteSlider(
            label="Steps a frame", options={f"{x:,}": x for x in log_places(_SPEED, state.speed)}, value=state.speed, size="small", width=170,
            margin=(4, 16), description="How many steps every chain makes between two pictures.",
        )  # fmt: skip
        # Of a DiscreteSlider, value_throttled is the place among the options.
        speed.param.watch(lambda _: setattr(state, "speed", speed.value), "value_throttled")
        axis = pmui.Select(
            label="x axis", options={"Steps": "steps", "Gradient evaluations": "gradients", "Seconds": "seconds"}, value=state.axis, size="small",
            width=150, margin=(6, 6), description="What curves are drawn against: steps, gradient evaluations, or computing time.",
        )  # fmt: skip
        axis.param.watch(lambda event: setattr(state, "axis", event.new), "value")
        coordinate = pmui.Select(
            label="Coordinate",
            size="small",
            width=110,
            margin=(6, 6),
            description="Which coordinate the one-dimensional views show.",
        )
        chooser = pmui.CheckButtonGroup(
            size="small", margin=(6, 4), color="primary", styles={"flex": "1 1 320px"},
            sx={"& .MuiToggleButton-root": {"width": "auto", "flex": "0 0 auto", "textTransform": "none", "whiteSpace": "nowrap", "py": "3px"}, "flexWrap": "wrap"},
        )  # fmt: skip

        def refresh(*_: Any) -> None:
            columns = state.experiment.make_target().columns
            n = state.experiment.make_target().n_values
            options = {columns[k].name: k for k in range(n)}
            coordinate.param.update(options=options, value=state.coordinate, visible=n > 1)
            chooser.param.update(
                options={VIEWS[key].title: key for key in state.fitting_views()}, value=state.shown_views()
            )

        coordinate.param.watch(lambda event: event.new is not None and setattr(state, "coordinate", event.new), "value")
        chooser.param.watch(lambda event: setattr(state, "views", [key for key in VIEWS if key in event.new]), "value")
        state.param.watch(refresh, ["experiment", "coordinate", "views"])
        refresh()
        row = {"align_items": "center", "gap": "2px", "sizing_mode": "stretch_width", "margin": (0, 4)}
        return pn.Column(
            pn.FlexBox(play, step, reset, seed, speed, pn.pane.Bokeh(self.readout, width=270, margin=(14, 4)), **row),
            pn.FlexBox(chooser, coordinate, axis, **row),
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    def show_views(self, views: list[View]) -> None:
        """Put the views' figures on the page, the first one larger."""
        panes = []
        for i, view in enumerate(views):
            wide = i == 0 and len(views) > 2
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

    def clear_divergence(self, lane: int | None = None) -> None:
        """A lane goes on, or all start again; their cards say nothing more."""
        self.controls.clear_errors(lane)

    def moving(self) -> None:
        """Formulas take the browser a moment, so they come after the first frames."""
        self.state.param.watch(lambda *_: self._later(self._refresh_cards), ["experiment", "dark"])
        self._refresh_cards()

    def fit_width(self, width: int) -> None:
        """On a phone the sidebar lies over the views; it starts closed there."""
        if width < NARROW and self.page.sidebar:
            self.page.sidebar_open = False

    def show_status(self, what: str, share: float) -> None:
        if what and share < 1.0:
            self.status.param.update(
                object=f"First start on this machine: compiling {what}, {share:.0%} done. The chains move when it is ready.",
                visible=True,
            )
        else:
            self.status.param.update(object=what, visible=bool(what))

    def show_divergence(self, lane: int, message: str) -> None:
        self.controls.show_error(lane, message)
        self.notify("error", message)

    def _refresh_cards(self) -> None:
        experiment = self.state.experiment
        shown = (
            self.state.dark,
            experiment.target,
            tuple((lane.sampler.key, lane.gradient.key) for lane in experiment.lanes),
        )
        if shown != self._shown_cards:
            self._shown_cards = shown
            self.cards.objects = cards(self.state)


def page() -> Any:
    """A new page, for a new session."""
    return Page().page
