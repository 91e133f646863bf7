"""The page of one session: header, sidebar, transport, views and cards."""

from typing import Any

import panel as pn
import panel_material_ui as pmui

from app import link
from app.controls import Controls, log_places, slider
from app.equations import cards
from app.export import ExportMenu
from app.runner import Runner
from app.session import ROW, Session, view_chooser
from app.state import MAX_SPEED, AppState
from app.views import VIEWS
from app.workbench import Workbench
from samplers.parameters import Count

WELCOME = "New here? <b><a href='?lesson=langevin{}'>Start the first lesson</a></b>: from gradient descent to a sampler. Or turn the knobs yourself."
"""For somebody who comes without a link."""
_SPEED = Count(20, bounds=(1, MAX_SPEED), log=True, label="Steps a frame", doc="")


class Page(Session):
    """The widgets of a session, and the wires between them and the state."""

    of_study = False

    def __init__(self) -> None:
        pn.extension("mathjax", notifications=True, disconnect_notification="")
        super().__init__()
        self.state = AppState()
        self._messages = link.read_query(self.state, self.query())
        self.controls = Controls(self.state, self.notify)
        self.runner = Runner(self.state, self)
        self._shown_cards: Any = None
        self.workbench = Workbench(self.state, self.notify, self.later)
        self.export = ExportMenu(self.state, self.runner, self.notify)
        self.runner.readout = self.readout
        self.add_lessons(Controls(self.state, self.notify, of_lesson=True))
        self.transport = self._transport()
        self.page = self._page()
        watch = self.state.param.watch
        watch(
            lambda *_: self.later(self.write_link),
            ["experiment", "playing", "speed", "views", "axis", "coordinate", "dark", "present"],
        )
        self.runner.build_views()
        for put in self.show_views(self.runner.views):
            put()
        self.begin_with_the_page()

    def link(self) -> str:
        return link.to_query(self.state)

    def _page(self) -> Any:
        state = self.state
        # Somebody who comes without a link may not know where to begin.
        newcomer = self.query().strip("?") in ("", "theme=dark") and "lessons" not in state.hidden
        main: list[Any] = [self._welcome()] if newcomer else []
        main += [self.say_refused(), self.status]
        if "transport" not in state.hidden:
            main.append(self.transport)
        if "controls" not in state.hidden:
            bench = pn.Column(self.workbench.panel, sizing_mode="stretch_width", margin=0)
            self.follow_visibility({"workbench": bench})
            main.append(bench)
        main.append(self.views)
        if "equations" not in state.hidden:
            main.append(self.cards)
        return self._frame(state, main, [] if "export" in state.hidden else [self.export.panel])

    def _welcome(self) -> Any:
        more = "&theme=dark" if self.state.dark else ""
        return pn.pane.HTML(
            WELCOME.format(more), sizing_mode="stretch_width", margin=(8, 12, 0, 12), styles={"font-size": "15px"}
        )

    def running(self) -> tuple[Any, list[Any]]:
        return self.state.experiment, [record.run for record in self.runner.lanes]

    def _transport(self) -> Any:
        state = self.state
        speed = slider(
            {f"{x:,}": x for x in log_places(_SPEED, state.speed)}, state.speed, lambda x: setattr(state, "speed", x),
            label="Steps a frame", width=170,
            margin=(4, 16), description="How many steps every chain makes between two pictures.",
        )  # fmt: skip
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
        chooser = view_chooser()

        def refresh(*_: Any) -> None:
            columns = state.experiment.make_target().columns
            n = state.experiment.make_target().n_values
            options = {columns[k].name: k for k in range(n)}
            coordinate.param.update(
                options=options, value=state.coordinate, visible=n > 1 and state.shows("coordinate")
            )
            chooser.param.update(
                options={VIEWS[key].title: key for key in state.fitting_views()}, value=state.shown_views()
            )

        coordinate.param.watch(lambda event: event.new is not None and setattr(state, "coordinate", event.new), "value")
        chooser.param.watch(lambda event: setattr(state, "views", [key for key in VIEWS if key in event.new]), "value")
        state.param.watch(refresh, ["experiment", "coordinate", "views"])
        state.param.watch(
            lambda event: speed.param.update(
                options={f"{x:,}": x for x in log_places(_SPEED, event.new)}, value=event.new
            ),
            "speed",
        )
        state.place.param.watch(refresh, ["lesson", "number", "free"])
        refresh()
        self.follow_visibility({"speed": speed, "axis": axis, "views": chooser})
        readout = [] if "readout" in state.hidden else [pn.pane.Bokeh(self.readout, width=270, margin=(14, 4))]
        return pn.Column(
            pn.FlexBox(*self._transport_buttons(state), speed, *readout, **ROW), pn.FlexBox(chooser, coordinate, axis, **ROW),
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    def moving(self) -> None:
        """Formulas take the browser a moment, so they come after the first frames."""
        self.state.param.watch(lambda *_: self.later(self._refresh_cards), ["experiment", "dark"])
        self._refresh_cards()

    def show_status(self, what: str, share: float) -> None:
        if what and share < 1.0:
            what = f"First start on this machine: compiling {what}, {share:.0%} done. The chains move when it is ready."
        super().show_status(what, share)

    def _refresh_cards(self) -> None:
        experiment = self.state.experiment
        shown = (
            self.state.dark,
            experiment.target,
            tuple((lane.sampler.key, lane.gradient.key) for lane in experiment.lanes),
        )
        if shown != self._shown_cards:
            self._shown_cards = shown
            self.show_cards(cards(self.state))


def page() -> Any:
    """A new page, for a new session."""
    return Page().page
