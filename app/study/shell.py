"""The page of a model of real data, its methods side by side."""

import re
from typing import Any

import panel as pn
import panel_material_ui as pmui

from app.equations import card, entry
from app.session import ROW, Session, view_chooser
from app.study import link
from app.study.controls import StudyControls, sentence
from app.study.export import StudyExport
from app.study.runner import StudyRunner
from app.study.views import STUDY_VIEWS
from app.theme import theme
from samplers.models import METHODS, MODELS, Model

GUIDES = {
    "topics": "Methods learn topics from these documents. <b>First</b>, watch the words of a topic come together. <b>Then</b> change a method or its step size in the menu (☰), and see whose curve of held-out perplexity falls fastest. <b>Or</b> bring your own documents.",
    "network": "Methods look for communities in this network. <b>First</b>, watch the nodes take colours. <b>Then</b> change a method or the number of communities in the menu (☰), and see which method predicts the held-out pairs best. <b>Or</b> bring your own network.",
}
"""What to do first, by model."""
READOUT = 350
"""The width of the line that says how far it is, in pixels: nearly that of a phone."""


def lines(tex: str) -> list[str]:
    r"""A formula in parts that are narrow enough for a card: cut where lines end, and at each ``,\quad``."""
    tex = tex.replace(r"\begin{aligned}", "").replace(r"\end{aligned}", "").replace("&", "")
    return [part.strip() for line in re.split(r"\\\\|\n", tex) for part in re.split(r",\\q?quad", line) if part.strip()]


class StudyPage(Session):
    """The widgets of a session, and the wires between them and the state."""

    of_study = True

    def __init__(self) -> None:
        pn.extension("mathjax", notifications=True, disconnect_notification="")
        super().__init__()
        self.state, self._messages = link.from_query(self.query())
        self.controls = StudyControls(self.state, self.notify)
        self.runner = StudyRunner(self.state, self)
        self.export = StudyExport(self.state, self.runner, self.notify)
        self.readout.width = READOUT
        self.runner.readout = self.readout
        self.add_lessons(StudyControls(self.state, self.notify, of_lesson=True))
        self._facts: dict[str, str] = {}
        self._shown_cards: Any = None
        self._told = False
        self.bar = pmui.LinearProgress(sizing_mode="stretch_width", margin=(2, 10), variant="indeterminate")
        self.work_text = pn.pane.HTML("", margin=(4, 10), styles={"font-size": "14px"})
        cancel = pmui.Button(label="Cancel", icon="close", size="small", variant="outlined", margin=(2, 8))
        cancel.on_click(lambda _: self.runner.cancel())
        self.work = pn.Column(
            pn.FlexBox(cancel, self.work_text, **ROW),
            self.bar,
            visible=False,
            sizing_mode="stretch_width",
            margin=(2, 4),
        )
        self.guide = pn.pane.HTML(sizing_mode="stretch_width", margin=(6, 12, 0, 12), styles={"font-size": "14px"})
        self.transport = self._transport()
        self.page = self._page()
        watch = self.state.param.watch
        watch(
            lambda *_: self.later(self.write_link),
            ["experiment", "playing", "views", "axis", "shown", "dark", "present"],
        )
        watch(lambda *_: self._show_guide(), "experiment")
        self.state.place.param.watch(lambda *_: self._show_guide(), ["lesson", "free"])
        self._show_guide()
        self.show_status("Loading the data.", 0.0)
        self.begin_with_the_page()

    def link(self) -> str:
        return link.to_query(self.state)

    def _page(self) -> Any:
        hidden = self.state.hidden
        main: list[Any] = [self.guide, self.say_refused(), self.status, self.work]
        if "transport" not in hidden:
            main.append(self.transport)
        main.append(self.views)
        if "equations" not in hidden:
            main.append(self.cards)
        return self._frame(self.state, main, [] if "export" in hidden else [self.export.panel])

    def running(self) -> tuple[Any, list[Any]]:
        return self.state.experiment, [record.run for record in self.runner.records]

    def _transport(self) -> Any:
        state = self.state
        inside = pmui.Select(
            label="Pictures show", size="small", width=190, margin=(6, 6),
            description="Pictures show: the method whose topics, or communities, are drawn. Curves are of all methods.",
        )  # fmt: skip
        axis = pmui.Select(
            label="x axis", size="small", width=215, margin=(6, 6),
            description="What curves are drawn against. The method that is furthest behind on it makes the next step.",
        )  # fmt: skip
        chooser = view_chooser()

        def refresh(*_: Any) -> None:
            data = MODELS[state.experiment.target.key].data_name
            axis.param.update(
                options={f"{data.capitalize()} seen": "data", "Steps": "steps", "Seconds": "seconds"}, value=state.axis
            )
            titles = state.lane_titles()
            inside.param.update(
                options={f"{i + 1}. {title}": i for i, title in enumerate(titles)},
                value=state.shown,
                visible=len(titles) > 1 and "show" not in state.hidden,
            )
            chooser.param.update(
                options={
                    STUDY_VIEWS[key].title_for(MODELS[state.experiment.target.key]): key
                    for key in state.fitting_views()
                },
                value=state.shown_views(),
            )

        inside.param.watch(lambda event: event.new is not None and state.look_inside(event.new), "value")
        axis.param.watch(lambda event: setattr(state, "axis", event.new), "value")
        chooser.param.watch(
            lambda event: setattr(state, "views", [key for key in STUDY_VIEWS if key in event.new]), "value"
        )
        state.param.watch(refresh, ["experiment", "views", "shown", "axis"])
        refresh()
        self.follow_visibility({"axis": axis, "views": chooser})
        readout = [] if "readout" in state.hidden else [pn.pane.Bokeh(self.readout, width=READOUT, margin=(8, 4))]
        return pn.Column(
            pn.FlexBox(*self._transport_buttons(state), inside, axis, **ROW), pn.FlexBox(chooser, *readout, **ROW),
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    def _show_guide(self) -> None:
        text = "" if self.state.place.restricted else GUIDES.get(self.state.experiment.target.key, "")
        self.guide.param.update(object=text, visible=bool(text))

    def moving(self) -> None:
        """Formulas take the browser a moment, so they come after the first frames."""
        self._told = True
        self.state.param.watch(lambda *_: self.later(self._refresh_cards), ["experiment", "dark"])
        self._refresh_cards()

    def show_work(self, what: str, share: float | None) -> None:
        self.show_status("", 1.0)
        self.work_text.object = what
        self.bar.param.update(
            variant="indeterminate" if share is None else "determinate", value=0 if share is None else int(100 * share)
        )
        self.work.visible = bool(what)

    def show_problem(self, message: str) -> None:
        self.show_status("", 1.0)
        for controls in (self.controls, self.lesson_controls):
            controls.show_problem(message)
        # The sentence stays in the sidebar, which on a phone may be closed.
        self.notify("warning", message)

    def show_model(self, model: Model) -> None:
        self.show_status("", 1.0)
        for controls in (self.controls, self.lesson_controls):
            controls.show_problem("")
        self._facts = dict(model.facts())
        if self._told:
            self.later(self._refresh_cards)

    def _refresh_cards(self) -> None:
        experiment, dark = self.state.experiment, self.state.dark
        model = MODELS[experiment.target.key]
        keys = [lane.sampler.key for lane in experiment.lanes]
        shown = dark, model.key, keys
        if shown != self._shown_cards:
            self._shown_cards = shown
            colours = theme(dark)
            out = [card(colours.faint, f"Model: {model.title}", lines(model.tex), "")]
            for key in dict.fromkeys(keys):
                method = METHODS[key]
                about = entry("Method", sentence(method)) + entry("Source", method.source)
                out.append(card(colours.lanes[keys.index(key)], method.title, lines(method.update), about))
            self.show_cards(out)
        # Formulas take the browser and the server a moment; other data change no formula.
        facts = "".join(entry(label.capitalize(), text) for label, text in self._facts.items())
        about = entry("Model", sentence(model)) + facts + entry("Source", model.source)
        self._formulas[0][-1].object = f"<dl>{about}</dl>"


def study_page() -> Any:
    """A new page, for a new session."""
    return StudyPage().page
