"""The sidebar of a model: its data, the methods, seeds."""

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui
import param

from app.controls import Apply, Make, Panel, elsewhere, widget
from app.notice import Notice
from app.study.state import StudyState
from app.study.upload import KINDS, FileBox
from app.theme import theme
from samplers.models import METHODS, MODELS
from samplers.parameters import Option, Value, declared
from samplers.spec import max_lanes, samplers_of, settings_of

FIRST = 1
"""Parameters of the model, after its data, that stand above the methods."""


def sentence(cls: type) -> str:
    """The first paragraph of a class's docstring."""
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def in_words(option: str) -> str:
    """An option's name as a person reads it."""
    words = option.replace("_", " ")
    return words if len(words) < 3 else words[0].upper() + words[1:]


class StudyControls(Panel):
    """The sidebar: model, data, methods, seeds."""

    state: StudyState

    def __init__(self, state: StudyState, notify: Callable[[str, str], None], of_lesson: bool = False):
        super().__init__(state, notify, of_lesson)
        self._boxes: dict[str, FileBox] = {}
        # Beside the box, not drawn again with it: a file may be on its way.
        self._own = pn.pane.HTML("", visible=False, margin=(0, 12, 6, 12))
        self._problem = Notice(margin=(4, 10))
        state.param.watch(lambda *_: self.refresh(), ["experiment", "upload", "dark"])
        state.place.param.watch(lambda *_: self.refresh(), ["lesson", "number", "free"])
        self.refresh()

    def show_problem(self, message: str) -> None:
        """Say below the data what is wrong with them; an empty text says nothing."""
        self._problem.say(message)

    def refresh(self, force: bool = False) -> None:
        """Draw the widgets again where other ones are needed. The others show what is true now.

        What is given up, or could not be opened, gives way to the experiment before, whose values are others.
        """
        super().refresh(force)
        upload = self.state.upload
        self._own.param.update(
            object="" if upload is None else f"Your own: <b>{escape(upload.name)}</b>", visible=upload is not None
        )

    def parts(self) -> dict[Any, Make]:
        state, experiment = self.state, self.state.experiment
        model = experiment.target.key
        made: dict[Any, Make] = {("model", model): self._model}
        titles, alone = state.lane_titles(), len(experiment.lanes) == 1
        for i, lane in enumerate(experiment.lanes):
            name = "" if state.shows("sampler") else titles[i]
            key = (model, lane.sampler.key, name, state.dark, alone, self._errors.get(i))
            made["method", i, *key] = partial(self._method, i)
        made["add", len(experiment.lanes)] = self._add
        made["seeds",] = self._seeds
        made["more", model, state.dark] = self._more
        return made

    def _model(self) -> list[Any]:
        state = self.state
        model = MODELS[state.experiment.target.key]
        menu = pmui.Select(
            label="Model", options={cls.title: key for key, cls in MODELS.items()}, value=model.key, size="small",
            description=sentence(model), sizing_mode="stretch_width", margin=(10, 10, 4, 10),
        )  # fmt: skip
        menu.param.watch(lambda event: self._do(state.set_target, event.new), "value")
        # First the data, and after them the file of the person's own.
        first = self._model_widgets(slice(0, 1))
        more = self._model_widgets(slice(1, None) if self._of_lesson else slice(1, 1 + FIRST))
        parts = [
            *([menu] if state.shows("target") else []),
            *first,
            *(self._upload() if state.shows("upload") else []),
            *more,
        ]
        return [pn.Column(*parts, sizing_mode="stretch_width", margin=0)] if parts else []

    def _model_widgets(self, which: slice) -> list[Any]:
        state = self.state

        def made(name: str, parameter: Any) -> Any:
            return self._widget(
                parameter,
                lambda: state.experiment.target.values()[name],
                lambda value: self._do(state.set_target_param, name, value),
            )

        listed = list(declared(MODELS[state.experiment.target.key]))[which]
        return [made(name, parameter) for name, parameter in listed if state.shows(f"target.{name}")]

    def _more(self) -> list[Any]:
        """What of the model is seldom changed, and the way to the other pages."""
        help_ = "the page of samplers on laws whose answer is known exactly."
        laws = elsewhere("Sampling known laws", "functions", "", self.state.dark, help_)
        widgets = [] if self._of_lesson else self._model_widgets(slice(1 + FIRST, None))
        seldom = pn.Column(*widgets, sizing_mode="stretch_width", margin=0)
        more = pmui.Accordion(
            ("More about the model", seldom), title_variant="body1", sizing_mode="stretch_width", margin=(8, 6)
        )
        parts = [*([more] if widgets else []), *([laws] if self.state.shows("pages") else [])]
        return [pn.Column(*parts, sizing_mode="stretch_width", margin=(0, 0, 20, 0))] if parts else []

    def _widget(self, parameter: param.Parameter, read: Callable[[], Value], apply: Apply) -> Any:
        if not isinstance(parameter, Option):
            return super()._widget(parameter, read, apply)

        def make() -> Any:
            made = widget(parameter, read(), apply)
            made.options = {in_words(option): option for option in parameter.objects}
            return made

        return self._follow(read, make)

    def _upload(self) -> list[Any]:
        kind = KINDS.get(self.state.experiment.target.key)
        if kind is None:
            return []

        def take(files: Mapping[str, bytes]) -> None:
            self.show_problem("")
            self._do(self.state.bring, files)

        key = self.state.experiment.target.key
        if key not in self._boxes:
            self._boxes[key] = FileBox(kind, take, self.show_problem)
        return [self._boxes[key], self._problem, self._own]

    def _method(self, i: int) -> list[Any]:
        state = self.state
        method = METHODS[state.experiment.lanes[i].sampler.key]
        menu: Any = self._name(f"{i + 1}. {state.lane_titles()[i]}")
        if state.shows("sampler"):
            menu = pmui.Select(
                label=f"Method {i + 1}", options={METHODS[key].title: key for key in samplers_of(method.model)}, value=method.key,
                size="small", sizing_mode="stretch_width", description=sentence(method), margin=(8, 4, 4, 10),
            )  # fmt: skip
            menu.param.watch(lambda event: self._do(state.set_sampler, i, event.new), "value")
        remove = state.remove_lane if len(state.experiment.lanes) > 1 and state.shows("lanes") else None
        return [self._card(i, theme(state.dark).lanes[i], menu, remove, "method", self._method_widgets(i, method))]

    def _method_widgets(self, i: int, method: type) -> list[Any]:
        state = self.state

        def made(name: str, parameter: Any) -> Any:
            return self._widget(
                parameter,
                lambda: state.experiment.lanes[i].sampler.values()[name],
                lambda value: self._do(state.set_lane_param, i, name, value),
            )

        return [made(name, p) for name, p in declared(method) if state.shows(f"lane{i + 1}.sampler.{name}")]

    def _add(self) -> list[Any]:
        state = self.state
        if not state.shows("lanes"):
            return []
        most = max_lanes(state.experiment.target.key)
        help_ = f"another method on the same data; up to {most}."
        return [self._add_button("method", help_, state.add_lane, len(state.experiment.lanes) >= most)]

    def _seeds(self) -> list[Any]:
        state, parts = self.state, []
        if state.shows("n_chains"):
            n_chains = settings_of(state.experiment.target.key)["n_chains"]
            read = lambda: state.experiment.n_chains  # noqa: E731
            parts.append(self._widget(n_chains, read, lambda value: self._do(state.set_chains, value)))
        if state.shows("seed"):
            parts.append(self._seed("The same seed gives the same draws.", 2**32 - 1))
        return [pn.Column(*parts, sizing_mode="stretch_width", margin=0)] if parts else []
