"""The page of one session: header, sidebar, transport, views and cards."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document
from panel.io.resources import get_dist_path

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.runner import Runner
from sgmcmc_lab.app.page.controls import Controls, log_stops, slider
from sgmcmc_lab.app.page.equations import about, cards, description, formulas_of, of_card, update_of
from sgmcmc_lab.app.page.export import ExportMenu
from sgmcmc_lab.app.page.labels import with_labels
from sgmcmc_lab.app.page.notifications import Notifications
from sgmcmc_lab.app.page.parts import do
from sgmcmc_lab.app.page.session import ROW, Session, after_load, view_chooser
from sgmcmc_lab.app.page.step_bar import StepBar
from sgmcmc_lab.app.page.workbench import Workbench
from sgmcmc_lab.app.room.network import address_of
from sgmcmc_lab.app.state import MAX_SPEED, SLOWEST, AppState
from sgmcmc_lab.app.views import VIEWS, axes_of, coordinates
from sgmcmc_lab.app.views.base import COLUMNS
from sgmcmc_lab.samplers.models import MODELS
from sgmcmc_lab.samplers.parameters import Count

WELCOME = "New here? <b><a href='?lesson=langevin{}'>Start the first lesson</a></b>: from gradient descent to a sampler. Or turn the knobs yourself."
"""For somebody who comes without a link."""
GUIDES = {
    "topics": "Methods learn topics from these documents. <b>First</b>, watch the words of a topic come together. <b>Then</b> change a method or its step size in the menu (☰), and see whose curve of held-out perplexity falls fastest. <b>Or</b> bring your own documents.",
    "clusters": "Methods look for clusters among these points; their number is unknown. <b>First</b>, watch one cluster become several. <b>Then</b> change a method in the menu (☰), or let the points begin in 30 clusters, and see how many are left. <b>Or</b> bring your own points.",
    "sphere_clusters": "Methods look for clusters among these points of a sphere; their number is unknown. <b>First</b>, turn the globe and watch one cluster become several. <b>Then</b> change the concentration κ in the menu (☰): a larger one splits the clusters, a smaller one merges them; wines are three groups at κ = 6. <b>Or</b> bring your own directions, such as vectors of words.",
    "mixture": "Methods look for clusters among these documents; their number is unknown. <b>First</b>, watch each cluster find its words. <b>Then</b> change a method in the menu (☰), or let the documents begin in one cluster, and see what the samplers make of it. <b>Or</b> bring your own documents, or visits of web pages.",
    "factors": "Methods look for a few factors that make these columns vary together. <b>First</b>, watch the loadings sharpen, and the rates of factors that are not needed fall. <b>Then</b> change the factors K in the menu (☰), or choose the made-up data and change their rows N: gamma SGVB takes as long with all rows as with ten. <b>Or</b> bring your own rows.",
    "spherical": "Each document is an arrow of length 1 in a space with one dimension per word, and so is each topic. <b>First</b>, watch the topics turn towards their documents on the globe. <b>Then</b> change a method or its step size in the menu (☰), and see whose held-out curve falls lowest. <b>Or</b> choose documents whose topics are known, or bring your own.",
    "sparse": "Gibbs samplers of a regression that shrinks its coefficients. A sweep draws the hidden z of the data, then the coefficients: <b>first</b>, watch Minibatch Gibbs try how many z it should draw, and whether a smaller batch is cheaper than all. <b>Then</b> choose the made-up data in the menu (☰), with an effect of 0.1 and λ = 30, where it is. <b>Or</b> bring your own table.",
    "network": "Methods look for communities in this network. <b>First</b>, watch the nodes take colours. <b>Then</b> change a method or the number of communities in the menu (☰), and see which method predicts the held-out pairs best. <b>Or</b> bring your own network.",
}
"""Suggestions for the start, by target."""
_GUIDE = """
@media (max-width: 599px) {
  .guide { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
  .guide:focus { -webkit-line-clamp: none; }
}
"""
"""On a phone the pictures need the height: two lines, and the rest at a tap."""
_SPEED = Count(20, bounds=(1, MAX_SPEED), log=True, label="Steps per frame", doc="")
_AXES = {"steps": "Steps", "gradients": "Gradient evaluations", "data": "Data touched", "seconds": "Seconds"}
_MORE = "More …"
"""The button that offers all views, where a lesson has its own, and the workbench."""
LOW = {
    "& .MuiFormLabel-root": {"fontSize": "14px", "lineHeight": "18px", "whiteSpace": "nowrap"},
    "& .MuiSlider-root": {"py": "6px"},
    "& .MuiSelect-select": {"py": "4px"},
}
"""A slider or a menu that is no higher than a button."""


class Page(Session):
    """The widgets of a session, and the wires between them and the state."""

    def __init__(self) -> None:
        pn.extension("mathjax", notifications=True, browser_info=False, disconnect_notification="")
        super().__init__()
        self.state = AppState()
        self.notifications = Notifications(self.state)
        self._messages = link.read_query(self.state, self.query())
        self.controls = Controls(self.state, self.notifications.notify, later=self.later)
        self.runner = Runner(self.state, self, address_of(pn.state.curdoc))
        self._facts: tuple[Any, dict[str, str]] = (None, {})
        """A target, and the facts on its card."""
        self._shown_cards: Any = None
        self._told = False
        self.workbench = Workbench(self.state, self.notifications.notify, self.later, self.do_later)
        self.export = ExportMenu(self.state, self.runner, self.notifications.notify)
        self.runner.readout, self.runner.doubts = self.readout, self.doubts
        self.add_lessons(Controls(self.state, self.notifications.notify, of_lesson=True, later=self.later))
        self.work_text: Any = None
        self.work = pn.Column(visible=False, sizing_mode="stretch_width", margin=(2, 4))
        self.guide = pn.pane.HTML(
            sizing_mode="stretch_width", margin=(6, 12, 0, 12), styles={"font-size": "14px"}, stylesheets=[_GUIDE]
        )
        self.stepbar = StepBar(self.state, self.play_step)
        self.runner.say_step, self.runner.lit_step = self.stepbar.texts, self.stepbar.lit
        self.transport = pn.Column(sizing_mode="stretch_width", margin=0)
        do(lambda: self.transport.param.update(objects=self._transport()))
        self.page = self._page()
        watch = self.state.param.watch
        shown = ["experiment", "playing", "speed", "slow", "views", "axis", "coordinate", "shown", "dark", "present"]
        watch(lambda *_: self.later(self.write_link), shown)
        # Students need not wait until the teacher's page has drawn its controls again.
        watch(lambda *_: self.later(self.room.changed, 0.0), [*shown, "resets"])
        watch(lambda *_: self._show_guide(), "experiment")
        self.state.position.param.watch(lambda *_: self._show_guide(), ["lesson", "free"])
        self._show_guide()
        if self.state.experiment.of_model:
            self.show_status("Loading the data.")
        self.begin_with_the_page()

    def link(self) -> str:
        return link.to_query(self.state)

    def _work(self) -> list[Any]:
        """The progress of work, with a button to cancel it."""
        self.bar = pmui.LinearProgress(sizing_mode="stretch_width", margin=(2, 10), variant="indeterminate")
        self.work_text = pn.pane.HTML("", margin=(4, 10), styles={"font-size": "14px"})
        cancel = pmui.Button(label="Cancel", icon="close", size="small", variant="outlined", margin=(2, 8))
        cancel.on_click(lambda _: self.runner.cancel())
        return [pn.FlexBox(cancel, self.work_text, **ROW), self.bar]

    def _page(self) -> Any:
        state = self.state
        # Somebody who comes without a link may not know where to begin.
        newcomer = self.query().strip("?") in ("", "theme=dark", "theme=light") and "lessons" not in state.hidden
        self.welcome = self._welcome()
        main: list[Any] = [self.welcome] if newcomer else []
        refusal = self.say_refused()
        main += [self.guide, *[refusal] * bool(state.refused), self.status, self.work]
        if "transport" not in state.hidden:
            main.append(self.transport)
        if "controls" not in state.hidden:
            main.append(self.workbench.panel)
        main += [self.stepbar.panel, self.runner.bus]
        below = [] if "equations" in state.hidden else [self.cards]
        return self.frame_of(main, below, [] if "export" in state.hidden else [self.export.panel], [self.transport])

    def _welcome(self) -> Any:
        more = "" if self.state.follows_device else f"&theme={'dark' if self.state.dark else 'light'}"
        return pn.pane.HTML(
            WELCOME.format(more), sizing_mode="stretch_width", margin=(8, 12, 0, 12), styles={"font-size": "15px"}
        )

    def _show_guide(self) -> None:
        text = "" if self.state.position.restricted else GUIDES.get(self.state.experiment.target.key, "")
        text = text and f"<div class='guide' tabindex='0' role='note'>{text}</div>"
        if text != self.guide.object:
            self.guide.param.update(object=text, visible=bool(text))
        self.welcome.visible = not text and self.state.position.lesson is None

    def running(self) -> tuple[Any, list[Any]]:
        return self.state.experiment, self.runner.lanes.judged if self.runner.lanes is not None else []

    def _transport(self) -> list[Any]:
        """The lines of the transport: buttons and speed, the views, and what the exact answer cannot say."""
        state = self.state
        speed = slider(
            _paces(state.experiment.of_model, state.slow, state.speed),
            -state.slow or state.speed,
            state.set_pace,
            label="Steps per frame",
            width=150,
            margin=(0, 4),
            sx=LOW,
            description="The largest number of steps of every chain between two pictures. At the left end, one step of a density takes seconds and is shown in its parts.",
        )
        axis = pmui.Select(
            label="x axis",
            size="small",
            width=140,
            margin=(5, 4, 0, 4),
            sx=LOW,
            description="The x axis of the curves. For a model of data, the method that is furthest behind on it makes the next step.",
        )
        coordinate = pmui.Select(
            label="Coordinate",
            size="small",
            width=110,
            margin=(5, 6, 0, 6),
            sx=LOW,
            description="The coordinate in the one-dimensional views.",
        )
        inside = pmui.Select(
            label="Pictures show",
            size="small",
            width=190,
            margin=(5, 6, 0, 6),
            sx=LOW,
            description="Pictures show: the method whose topics or communities are drawn. Curves show all methods.",
        )
        # Other buttons are another widget: where one gets a button between two of its own, arrow keys lose their way.
        choosers = pn.Column(styles={"flex": "1 1 200px", "min-width": "0"}, margin=0)

        def offer_views(options: dict[str, str]) -> None:
            chooser: Any = choosers[0] if len(choosers) else None
            if chooser is None or chooser.options != options:
                chooser = view_chooser(options=options, value=state.shown_views())
                chooser.param.watch(choose, "value")
                choosers[:] = [chooser]
            chooser.value = state.shown_views()

        def refresh(*_: Any) -> None:
            experiment, titles = state.experiment, state.lane_titles()
            of_model = experiment.of_model
            names = coordinates(experiment)
            _offer(coordinate, {name: k for k, name in enumerate(names)}, min(state.coordinate, len(names) - 1))
            needs = {VIEWS[key].requires for key in state.shown_views()}
            one_of_them = not of_model or COLUMNS in needs
            coordinate.visible = len(names) > 1 and one_of_them and state.shows("coordinate")
            coordinate.width = min(max(110, 70 + 9 * max(map(len, names))), 300)
            _offer(inside, {f"{i + 1}. {title}": i for i, title in enumerate(titles)}, state.shown)
            inside.visible = experiment.target.key in needs and len(titles) > 1 and "show" not in state.hidden
            known = _AXES | (
                {"data": f"{MODELS[experiment.target.key].data_name.capitalize()} seen"} if of_model else {}
            )
            _offer(axis, {known[name]: name for name in axes_of(experiment)}, state.axis)
            axis.width = 200 if max(map(len, axis.options)) > 13 else 140
            offered = state.offered_views()
            more = {_MORE: _MORE} if offered != state.fitting_views() else {}
            offer_views({VIEWS[key].title_for(experiment): key for key in offered} | more)
            if speed.options != (paces := _paces(of_model, state.slow, state.speed)):
                speed.param.update(options=paces, value=-state.slow or state.speed)
                # The browser has the number of the option, which is another one although the value is not.
                speed.param.trigger("value")
            speed.value, speed.visible = -state.slow or state.speed, state.shows("speed")

        def follow(menu: pmui.Select, change: Callable[[Any], None]) -> None:
            def chosen(event: Any) -> None:
                if event.new is not None:
                    change(event.new)

            menu.param.watch(chosen, "value")

        follow(coordinate, partial(setattr, state, "coordinate"))
        follow(inside, state.look_inside)
        follow(axis, partial(setattr, state, "axis"))

        def choose(event: Any) -> None:
            state.position.everything |= _MORE in event.new
            state.views = [key for key in VIEWS if key in event.new]

        state.param.watch(refresh, ["experiment", "coordinate", "shown", "views", "axis", "speed", "slow"])
        state.position.param.watch(refresh, ["lesson", "number", "free", "everything"])
        refresh()
        self.follow_visibility({"axis": axis, "views": choosers})
        said = "readout" not in state.hidden
        readout = [pn.pane.Bokeh(self.readout, margin=(4, 4))] if said else []
        doubts = [pn.pane.Bokeh(self.doubts, sizing_mode="stretch_width", margin=(0, 12))] if said else []
        return [
            pn.FlexBox(*self._transport_buttons(state), speed, axis, *readout, **ROW),
            pn.FlexBox(choosers, _when_seen(coordinate), _when_seen(inside), **ROW),
            *doubts,
        ]

    def moving(self) -> None:
        """Formulas take the browser a moment, so they come after the first frames."""
        self._told = True
        self.state.param.watch(lambda *_: self.later(self._refresh_cards), ["experiment", "dark"])
        self._refresh_cards()

    @after_load
    def show_work(self, what: str, share: float | None) -> None:
        self.show_status("")
        # Few pages ever have it, so it is made where it is first seen.
        if self.work_text is None:
            if not what:
                return
            self.put(self.work, self._work())
        self.work_text.object = what
        self.bar.param.update(
            variant="indeterminate" if share is None else "determinate", value=0 if share is None else int(100 * share)
        )
        self.work.visible = bool(what)

    @after_load
    def show_problem(self, message: str) -> None:
        self.show_status("")
        for controls in (self.controls, self.lesson_controls):
            controls.show_problem(with_labels(message, self.state.experiment))
        if message:
            # The sentence stays in the sidebar, which on a phone may be closed.
            self.notifications.notify("warning", message)

    @after_load
    def show_facts(self, facts: dict[str, str]) -> None:
        self._facts = self.state.experiment.density, facts
        if self.state.upload is not None:
            self.later(self._show_formats)
        if self._told:
            self.later(self._refresh_cards)

    def _show_formats(self) -> None:
        """Say what a file was taken for, which is known once it has been read."""
        for controls in (self.controls, self.lesson_controls):
            controls.refresh()

    def _refresh_cards(self) -> None:
        state, experiment = self.state, self.state.experiment
        target = experiment.target.key if experiment.of_model else experiment.target
        shown = (
            state.dark,
            target,
            experiment.temperature,
            [
                (lane.sampler.key, lane.gradient.key, update_of(lane), *formulas_of(state, i))
                for i, lane in enumerate(experiment.lanes)
            ],
        )
        if shown != self._shown_cards:
            self._shown_cards = shown
            self.show_cards(cards(state))
        # Formulas take the browser and the server a moment; other data change no formula.
        of, facts = self._facts
        entries = about(of_card(experiment), facts if of == experiment.density else {}, experiment.temperature)
        self._formulas[0][-1].object = description(entries)


@lru_cache(maxsize=64)
def _paces(of_model: bool, slow: int, speed: int) -> dict[str, int]:
    """The stops of the speed: at the slow end, below 0, seconds a step, where a step can be taken apart."""
    seconds = set() if of_model else {SLOWEST, 4, 2, 1, slow or 1}
    return {f"1 in {n} s": -n for n in sorted(seconds, reverse=True)} | {
        f"{x:,}": int(x) for x in log_stops(_SPEED, speed)
    }


def _when_seen(made: Any) -> Any:
    """The place of a widget that few pages show: it is in the page from when it is first visible."""
    place = pn.Column(margin=0)

    def put(*_: Any) -> None:
        if made.visible and not len(place):
            place.objects = [made]
        place.visible = made.visible

    made.param.watch(put, "visible")
    put()
    return place


def _offer(menu: Any, options: dict[str, Any], value: Any) -> None:
    """Other options for a menu. Its value is sent again where they change: the browser holds its label."""
    if menu.options != options:
        menu.param.update(options=options, value=value)
        menu.param.trigger("value")
    else:
        menu.value = value


def page() -> Any:
    """A new page, for a new session."""
    # Panel knows where its styles are once it has written the HTML, which a session that is made anew for a connection
    # never has; until then it asks another host for them.
    document: Document = pn.state.curdoc
    document.template_variables["dist_url"] = get_dist_path()
    return Page().page
