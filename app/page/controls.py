"""Widgets drawn from the declared parameters; each asks the state to change, and shows what it says."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any, NamedTuple

import numpy as np
import panel as pn
import panel_material_ui as pmui
import param

from sgmcmc_lab.app.page.formula_box import formula_box
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.page.parts import do
from sgmcmc_lab.app.page.upload import FileBox, FormatBox
from sgmcmc_lab.app.page.workbench import entry_boxes
from sgmcmc_lab.app.room.network import address_of
from sgmcmc_lab.app.state import DEFAULT, AppState
from sgmcmc_lab.app.state.upload import KINDS
from sgmcmc_lab.app.views.theme import theme
from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.lanes import OWN_GRADIENT, max_lanes, samplers_of
from sgmcmc_lab.samplers.models import MODELS, Method
from sgmcmc_lab.samplers.parameters import (
    Count,
    CountVector,
    Flag,
    Formula,
    Formulas,
    Option,
    Real,
    RealVector,
    Source,
    SpecError,
    Value,
    declared,
)
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, settings_of
from sgmcmc_lab.samplers.targets import TARGETS, Target
from sgmcmc_lab.samplers.targets.base import MANIFOLD, POSITIVE, SIMPLEX
from sgmcmc_lab.samplers.targets.own import OfTable
from sgmcmc_lab.samplers.targets.typed import Typed

EDITED_ELSEWHERE = {
    "layout",
    "diffusion_entries",
    "curl_entries",
    "drift_entries",
    "thermostat",
    "refresh",
    "gamma",
    "dissipation",
}
"""Parameters of a recipe that are set in the workbench."""
TYPED = (Formula, Formulas, CountVector, RealVector)
"""Parameters that are typed: a refused text stays in its box, to be mended."""
PER_DECADE = 12
"""Stops of a logarithmic slider in each power of ten: neighbours differ by a fifth."""

ONE_OR_TWO, BOUNDED, MANIFOLDS = "One or two variables", "Positive variables and proportions", "Circle, sphere, torus"
POSTERIORS, OWN, OF_DATA = "Posteriors", "Your own", "Models of data"
"""The groups of the menu of targets, in its order."""

Apply = Callable[[Any], bool]
"""Takes a new value, and says whether it is allowed."""
Make = Callable[[], list[Any]]
"""Makes the widgets of a part of a sidebar."""


def log_stops(parameter: Real | Count, value: float | int) -> list[float | int]:
    """The values of a logarithmic slider, and ``value`` among them."""
    low, high = (float(bound) for bound in parameter.bounds)
    n = max(2, round(PER_DECADE * np.log10(high / low)) + 1)
    raw = [float(f"{x:.2g}") for x in np.geomspace(low, high, n)]
    stops = {min(max(x, low), high) for x in (*raw, low, high)} | {value}
    return sorted({int(x) for x in stops} if isinstance(parameter, Count) else stops)


def _shown(x: float | int) -> str:
    # All digits, for two stops of a slider must not have the same label.
    return repr(x).removesuffix(".0") if isinstance(x, float) else f"{x:,}"


def slider(options: dict[str, Any], value: Any, chosen: Callable[[Any], Any], **common: Any) -> Any:
    """A slider over listed values. ``chosen`` is called with each value at which the mouse is released, or to which a
    key moves.
    """
    made = pmui.DiscreteSlider(options=options, value=value, size="small", tooltips=False, **common)

    def moved(event: Any) -> None:
        # A client may send anything; what counts is the value.
        if event.new != -1:
            forget()
            chosen(made.value)

    # In the page this is the index of the option, but begins as the value, and the same index again is no change.
    def forget() -> None:
        with param.edit_constant(made):
            made.value_throttled = -1

    forget()
    made.param.watch(moved, "value_throttled")
    return made


def sentence(cls: type) -> str:
    """The first paragraph of a class's docstring, in which another class is its plain name."""
    return re.sub(r":\w+:`[~\w.]*?(\w+)`", r"\1", " ".join((cls.__doc__ or "").split("\n\n")[0].split()))


def in_words(option: str) -> str:
    """An option's name as a person reads it."""
    words = option.replace("_", " ")
    return words if len(words) < 3 else words[0].upper() + words[1:]


def as_shown(parameter: param.Parameter, value: Value) -> Any:
    """A value as its widget holds it."""
    if isinstance(parameter, CountVector | RealVector) and isinstance(value, tuple):
        return ", ".join(str(x).removesuffix(".0") for x in value)
    return value


def widget(parameter: param.Parameter, value: Value, apply: Apply, own: str = "") -> Any:
    """The control of a parameter. ``apply`` is called with each new value.

    ``own`` is what a spec calls the table that the person brought.
    """
    common = {"label": parameter.label, "description": parameter.doc, "sizing_mode": "stretch_width", "margin": (4, 10)}
    if isinstance(parameter, Flag):
        made = pmui.Switch(value=bool(value), **common)
        watched = "value"
    elif isinstance(parameter, CountVector | RealVector):
        made = pmui.TextInput(value=as_shown(parameter, value), size="small", **common)
        watched = "value"
    elif isinstance(parameter, Formula):
        made = formula_box(str(value), room=28, **common)
        watched = "value"
    elif isinstance(parameter, Option):
        options = {in_words(option): option for option in parameter.objects}
        if isinstance(parameter, Source) and own:
            options["Your own"] = own
        made = pmui.Select(options=options, value=value, size="small", **common)
        watched = "value"
    elif parameter.log and isinstance(value, float | int):
        return slider({_shown(x): x for x in log_stops(parameter, value)}, value, apply, **common)
    else:
        low, high = parameter.bounds
        step = 1 if isinstance(parameter, Count) else float(f"{(high - low) / 200:.1g}")
        kind = pmui.IntSlider if isinstance(parameter, Count) else pmui.FloatSlider
        # The label says the value; a bubble with it would lie on the label.
        made = kind(start=low, end=high, step=step, value=value, size="small", tooltips=False, **common)
        watched = "value_throttled"

    def changed(event: Any) -> None:
        taken = apply(event.new)
        if isinstance(parameter, TYPED):
            made.error_state = not taken

    made.param.watch(changed, watched)
    return made


class _Part(NamedTuple):
    widgets: list[Any]
    following: list["_Followed"]


class _Followed:
    """A widget that shows what is true also where something else changed it."""

    def __init__(self, read: Callable[[], Any], make: Callable[[], Any]):
        self.read, self.make = read, make
        self._seen = read()
        self.slot = pn.Column(self._make(), sizing_mode="stretch_width", margin=0)

    def _make(self) -> Any:
        made = self.make()
        self._agree(made)
        if "value_throttled" in made.param:
            made.param.watch(lambda _: self._agree(made), "value_throttled")
        return made

    def _agree(self, made: Any) -> None:
        """This function knows the true value; the widget holds the requested one."""
        self._known, self._asked = self.read(), made.value

    def refresh(self) -> None:
        made: Any = self.slot[0]
        value = self.read()
        same, self._seen = value == self._seen, value
        if value == self._known and made.value != self._asked and "value_throttled" in made.param:
            # A hand has moved the slider on, and is not done.
            return
        # A refused text that can be corrected is left as it was typed, until something else changes the value.
        wrong = getattr(made, "error_state", False)
        if made.value == value and wrong:
            # Refused until something else was changed, too.
            made.error_state = False
        if made.value == value or (wrong and same):
            return
        # A slider over listed values is one of whole numbers, too, and shows its first value for one that it has not.
        listed = made.options.values() if isinstance(made, pmui.DiscreteSlider) else [value]
        if value in listed and isinstance(made, pmui.IntSlider | pmui.FloatSlider):
            made.value = value
            self._agree(made)
        else:
            # Another widget that is set twice in a moment sends its first value back, as if a person had chosen it.
            self.slot[0] = self._make()


class ControlPanel(ABC):
    """A sidebar: widgets that ask the state to change. A widget that is still needed stays, with its focus."""

    def __init__(self, state: Any, notify: Callable[[str, str], None], of_lesson: bool = False):
        """``of_lesson``: the controls that a lesson's step leaves to the student, which stand in its panel."""
        self.state, self.notify, self._of_lesson = state, notify, of_lesson
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self._made: dict[Any, _Part] = {}
        self._following: list[_Followed] = []
        """The followed widgets of the part that is being made."""
        self._errors: dict[int, str] = {}

    @abstractmethod
    def parts(self) -> dict[Any, Make]:
        """How each part is made, by what decides which widgets it has. A value decides nothing: they follow it."""

    def refresh(self, force: bool = False) -> None:
        """Make the parts that are needed now, and let the widgets of the others show what is true now."""
        position = self.state.position
        here = position.restricted == self._of_lesson
        step = (position.lesson.key, position.number) if position.restricted else None
        before, wanted = self._made, {(key, step): make for key, make in self.parts().items()} if here else {}
        self._made = {
            key: before[key] if key in before and not force else self._part(make) for key, make in wanted.items()
        }
        if force or list(self._made) != list(before):
            self.panel.objects = [widget for part in self._made.values() for widget in part.widgets]
        for part in self._made.values():
            for followed in part.following:
                followed.refresh()

    def _part(self, make: Make) -> "_Part":
        self._following = []
        return _Part(make(), self._following)

    def _follow(self, read: Callable[[], Any], make: Callable[[], Any]) -> Any:
        """The widget that ``make`` makes, to be kept at the value that ``read`` returns."""
        followed = _Followed(read, make)
        self._following.append(followed)
        return followed.slot

    def _widget(self, parameter: param.Parameter, read: Callable[[], Value], change: Callable[[Any], Any]) -> Any:
        """The control of a parameter whose value is read so, and changed so."""
        apply = self._apply(parameter, change)
        return self._follow(
            lambda: as_shown(parameter, read()), lambda: widget(parameter, read(), apply, self._own_table())
        )

    def _apply(self, parameter: param.Parameter, change: Callable[[Any], Any]) -> Apply:
        """The change as a widget makes it."""
        return partial(self._do, change, keep=isinstance(parameter, TYPED))

    def _own_table(self) -> str:
        """The name in a spec of the uploaded table; empty where there is none."""
        upload = self.state.upload
        return str(upload.data().key) if upload is not None and issubclass(upload.kind.model, OfTable) else ""

    def show_error(self, index: int, message: str) -> None:
        """Put a sentence on the card of a lane or a method; a reset clears it."""
        self._errors[index] = message
        self.refresh()

    def clear_errors(self, index: int | None = None) -> None:
        """Take the sentences off one card, or off all of them."""
        self._errors = {} if index is None else {i: text for i, text in self._errors.items() if i != index}
        self.refresh()

    def _do(self, change: Callable[..., Any], *args: Any, keep: bool = False) -> bool:
        """Make a change. A refused one is told, and the widgets go back; what is to be mended is kept instead."""
        try:
            messages = change(*args)
        except SpecError as error:
            self.notify("error", str(error))
            if not keep:
                self.refresh(force=True)
            return False
        for message in messages or []:
            self.notify("warning", message)
        return True

    def _clicked(self, change: Callable[[], Any], _: Any) -> None:
        self._do(change)

    def _card(
        self, index: int, colour: str, menu: Any, remove: Callable[[int], Any] | None, what: str, body: list[Any]
    ) -> Any:
        """The card of a lane or a method: its menu, a button that removes it, its error and its widgets."""
        head: list[Any] = [menu]
        if remove is not None:
            button = pmui.IconButton(
                icon="close", size="small", description=f"Remove {what} {index + 1}", margin=(8, 4)
            )
            button.param.watch(lambda _: self._do(remove, index), "clicks")
            head.append(button)
        if index in self._errors:
            body = [Notice(self._errors[index], margin=(4, 10)), *body]
        return pn.Column(
            pn.Row(*head, sizing_mode="stretch_width", margin=0),
            *body,
            sizing_mode="stretch_width",
            margin=(8, 8, 0, 8),
            styles={"border-left": f"5px solid {colour}", "border-radius": "4px"},
            css_classes=["lane"],
        )

    def _name(self, title: str) -> Any:
        """The heading of a card whose menu is left out."""
        style = {"font-weight": "600", "font-size": "15px"}
        return pn.pane.HTML(escape(title), sizing_mode="stretch_width", margin=(4, 10), styles=style)

    def _add_button(self, what: str, help_: str, add: Callable[[], Any], full: bool) -> Any:
        label = f"Add a {what} to compare"
        button = pmui.Button(
            label=label,
            icon="add",
            variant="outlined",
            size="small",
            sizing_mode="stretch_width",
            margin=(10, 10),
            disabled=full,
            description=f"{label}: {help_}",
        )
        button.on_click(partial(self._clicked, add))
        return button

    def _seed(self, doc: str) -> Any:
        def make() -> Any:
            # A field for numbers drops other text in the browser, and no sentence could name it.
            made = pmui.TextInput(
                label="Seed",
                value=str(self.state.seed),
                size="small",
                description=doc,
                sizing_mode="stretch_width",
                margin=(4, 10),
            )

            def changed(event: Any) -> None:
                made.error_state = not self._do(self.state.set_seed, event.new, keep=True)

            made.param.watch(changed, "value")
            return made

        return self._follow(lambda: str(self.state.seed), make)


def at_once(work: Callable[[], None]) -> None:
    """Do it now."""
    work()


FIRST = 2
"""Parameters of a model, its data among them, that stand above its methods; the others are seldom changed."""


def target_groups() -> dict[str, dict[str, str]]:
    """The titles and keys of all targets, by the groups of the menu."""
    groups: dict[str, dict[str, str]] = {
        group: {} for group in (ONE_OR_TWO, BOUNDED, MANIFOLDS, POSTERIORS, OWN, OF_DATA)
    }
    for key, target in TARGETS.items():
        groups[_group(target)][target.title] = key
    groups[OF_DATA] = {model.title: key for key, model in MODELS.items()}
    return groups


def _group(target: type[Target]) -> str:
    if issubclass(target, OfTable | Typed):
        return OWN
    if target.support == MANIFOLD:
        return MANIFOLDS
    if target.support in (POSITIVE, SIMPLEX):
        return BOUNDED
    return POSTERIORS if BATCH in target.provides else ONE_OR_TWO


class Controls(ControlPanel):
    """The sidebar: target, lanes, number of chains, seed."""

    state: AppState

    def __init__(
        self,
        state: AppState,
        notify: Callable[[str, str], None],
        of_lesson: bool = False,
        later: Callable[[Callable[[], None]], None] = at_once,
    ):
        """``later`` puts work off until the frame is out: new widgets take the server as long as all else together."""
        super().__init__(state, notify, of_lesson)
        self._boxes: dict[str, FileBox] = {}
        # Beside the box, not drawn again with it: a file may be on its way.
        self._own = FormatBox(lambda field, value: self._take(state.read_again, field, value))
        self._problem = Notice(margin=(4, 10))
        state.param.watch(lambda *_: later(self.refresh), ["experiment", "upload", "brought", "dark"])
        state.position.param.watch(lambda *_: later(self.refresh), ["lesson", "number", "free"])
        do(self.refresh)

    def show_problem(self, message: str) -> None:
        """Say below the data what is wrong with them; an empty text says nothing."""
        self._problem.say(message)

    def refresh(self, force: bool = False) -> None:
        """Draw the widgets again where other ones are needed. The others show what is true now.

        An experiment that is cancelled, or cannot be opened, is replaced by the one before, whose values differ.
        """
        super().refresh(force)
        self._own.put(self.state.upload, self.state.brought)

    def _take(self, change: Callable[..., None], *args: Any) -> None:
        """Take a file, or read it in another way; what is wrong with it is said below the data."""
        self.show_problem("")
        try:
            change(*args)
        except SpecError as error:
            self.show_problem(str(error))

    def parts(self) -> dict[Any, Make]:
        state, experiment = self.state, self.state.experiment
        target = experiment.target.key
        made: dict[Any, Make] = {("target", target): self._target}
        titles, alone = state.lane_titles(), len(experiment.lanes) == 1
        for i, lane in enumerate(experiment.lanes):
            name = "" if state.shows("sampler") else titles[i]
            # The entries of a lesson's recipe follow nothing, and another lane may come in this one's place.
            fixed = len(experiment.lanes) if self._of_lesson else alone
            key = (
                target,
                lane.sampler.key,
                lane.gradient.key,
                lane.schedule.key,
                name,
                state.dark,
                fixed,
                self._errors.get(i),
            )
            made["lane", i, *key] = partial(self._lane, i)
        made["add", len(experiment.lanes), experiment.of_model] = self._add
        made["settings", experiment.of_model, self._has_temperature()] = self._settings
        if experiment.carries_momentum and state.shows("momentum"):
            made["momentum",] = self._momentum
        if experiment.of_model:
            made["seldom", target] = self._seldom
        elif state.shows("workbench"):
            made["workbench",] = self._bench
        if state.shows("pages"):
            made["pages", target] = self._pages
        return made

    def _target(self) -> list[Any]:
        state = self.state
        choice = state.experiment.target
        target = ANY_TARGET[choice.key]
        parts = []
        if state.shows("target"):
            menu = pmui.Select(
                label="Target",
                groups=target_groups(),
                value=choice.key,
                size="small",
                searchable=True,
                description=f"The distribution to sample from, or a model of data. {sentence(target)}",
                sizing_mode="stretch_width",
                margin=(10, 10, 4, 10),
            )
            menu.param.watch(lambda event: self._do(state.set_target, event.new), "value")
            parts.append(menu)
        if choice.key in KINDS or state.experiment.of_model:
            # First the data, and after them the file of the person's own.
            parts += self._target_widgets(slice(0, 1))
            parts += self._upload() if state.shows("upload") else []
            parts += self._target_widgets(
                slice(1, FIRST if state.experiment.of_model and not self._of_lesson else None)
            )
        elif choice == DEFAULT.target and not self._of_lesson:
            # The first page shows few sliders.
            parts += self._folded("Parameters of the target", self._target_widgets(slice(0, None)))
        else:
            parts += self._target_widgets(slice(0, None))
        return [pn.Column(*parts, sizing_mode="stretch_width", margin=0)] if parts else []

    def _target_widgets(self, which: slice) -> list[Any]:
        state = self.state

        def made(name: str, parameter: param.Parameter) -> Any:
            def change(value: Any) -> list[str]:
                if not isinstance(parameter, Formula):
                    return state.set_target_param(name, value)
                # Formulas that need each other are refused until all are there, and then go together.
                typed[name] = value
                messages = state.set_target_params(dict(typed))
                typed.clear()
                return messages

            return self._widget(parameter, lambda: state.experiment.target.values()[name], change)

        typed: dict[str, Any] = {}

        listed = list(declared(ANY_TARGET[state.experiment.target.key]))[which]
        return [made(name, parameter) for name, parameter in listed if state.shows(f"target.{name}")]

    def _upload(self) -> list[Any]:
        key = self.state.experiment.target.key
        if key not in KINDS:
            return []
        if key not in self._boxes:
            whose = address_of(pn.state.curdoc)
            self._boxes[key] = FileBox(KINDS[key], partial(self._take, self.state.bring), self.show_problem, whose)
        return [self._boxes[key], self._problem, self._own]

    def _lane(self, i: int) -> list[Any]:
        state = self.state
        lane = state.experiment.lanes[i]
        sampler = ANY_SAMPLER[lane.sampler.key]
        body = []
        for name, p in declared(sampler):
            # A lesson may leave an entry of the workbench to the student, whom it does not show the workbench.
            elsewhere = sampler is RecipeSampler and name in EDITED_ELSEWHERE and not self._of_lesson
            if elsewhere or not state.shows(f"lane{i + 1}.sampler.{name}"):
                continue
            body += self._lane_widgets(i, "sampler", name, p)
        if lane.gradient != OWN_GRADIENT:
            body += self._gradient(i, sampler, GRADIENTS[lane.gradient.key])
            body += self._schedule(i, sampler)
        remove = state.remove_lane if len(state.experiment.lanes) > 1 and state.shows("lanes") else None
        return [self._card(i, theme(state.dark).lanes[i], self._lane_menu(i, sampler), remove, self._lane_word, body)]

    def _gradient(self, i: int, sampler: type[Sampler], gradient: type[Estimator]) -> list[Any]:
        state, made = self.state, []
        fitting = sampler.gradients_for(TARGETS[state.experiment.target.key])
        gradients = {GRADIENTS[key].title: key for key in GRADIENTS if key in fitting}
        if len(gradients) > 1 and state.shows("gradient"):
            choose = pmui.Select(
                label="Gradient",
                options=gradients,
                value=gradient.key,
                size="small",
                sizing_mode="stretch_width",
                description=sentence(gradient),
                margin=(4, 10),
            )
            choose.param.watch(lambda event: self._do(state.set_gradient, i, event.new), "value")
            made.append(choose)
        for name, p in declared(gradient):
            if state.shows(f"lane{i + 1}.gradient.{name}"):
                made += self._lane_widgets(i, "gradient", name, p)
        return made

    def _schedule(self, i: int, sampler: type[Sampler]) -> list[Any]:
        """The menu of schedules of a sampler with a step size, and the parameters of the one that is chosen."""
        if "step_size" not in dict(declared(sampler)):
            return []
        state, made = self.state, []
        schedule = SCHEDULES[state.experiment.lanes[i].schedule.key]
        if state.shows("schedule"):
            choose = pmui.Select(
                label="Step-size schedule",
                options={one.title: key for key, one in SCHEDULES.items()},
                value=schedule.key,
                size="small",
                sizing_mode="stretch_width",
                description=sentence(schedule),
                margin=(4, 10),
            )
            choose.param.watch(lambda event: self._do(state.set_schedule, i, event.new), "value")
            made.append(choose)
        for name, p in declared(schedule):
            if state.shows(f"lane{i + 1}.schedule.{name}"):
                made += self._lane_widgets(i, "schedule", name, p)
        return made

    @property
    def _lane_word(self) -> str:
        return "method" if self.state.experiment.of_model else "sampler"

    def _lane_menu(self, i: int, sampler: type[Sampler | Method]) -> Any:
        state = self.state
        if not state.shows("sampler"):
            return self._name(f"{i + 1}. {state.lane_titles()[i]}")
        menu = pmui.Select(
            label=f"{'Method' if state.experiment.of_model else 'Sampler'} {i + 1}",
            options={ANY_SAMPLER[key].title: key for key in samplers_of(state.experiment.target.key)},
            value=sampler.key,
            size="small",
            sizing_mode="stretch_width",
            description=sentence(sampler),
            margin=(8, 4, 4, 10),
        )
        menu.param.watch(lambda event: self._do(state.set_sampler, i, event.new), "value")
        return menu

    def _lane_widgets(self, i: int, part: str, name: str, parameter: param.Parameter) -> list[Any]:
        """The controls of one parameter of a lane's sampler, gradient or schedule."""
        change = partial(self.state.set_lane_param, i, part, name)
        if isinstance(parameter, Formulas):
            return entry_boxes(self.state, i, name, self._apply(parameter, change))
        return [self._widget(parameter, lambda: getattr(self.state.experiment.lanes[i], part).values()[name], change)]

    def _add(self) -> list[Any]:
        state = self.state
        if not state.shows("lanes"):
            return []
        most = max_lanes(state.experiment.target.key)
        what = (
            "another method on the same data"
            if state.experiment.of_model
            else "another sampler on the same target with the same seed"
        )
        full = len(state.experiment.lanes) >= most
        return [self._add_button(self._lane_word, f"{what}; up to {most}.", state.add_lane, full)]

    def _settings(self) -> list[Any]:
        state, parts = self.state, []
        settings = settings_of(state.experiment.target.key)
        if state.shows("n_chains"):
            parts.append(
                self._widget(
                    settings["n_chains"],
                    lambda: state.experiment.n_chains,
                    state.set_chains,
                )
            )
        if state.shows("seed"):
            parts.append(self._seed(settings["seed"].doc))
        if self._has_temperature():
            parts.append(
                self._widget(
                    settings["temperature"],
                    lambda: state.experiment.temperature,
                    state.set_temperature,
                )
            )
        if "start" in settings and state.shows("start"):
            parts.append(
                self._widget(
                    settings["start"],
                    lambda: state.experiment.start,
                    state.set_start,
                )
            )
        return [pn.Column(*parts, sizing_mode="stretch_width", margin=0)] if parts else []

    def _has_temperature(self) -> bool:
        """Whether the target has answers at other temperatures, and the page shows the control."""
        experiment = self.state.experiment
        if experiment.of_model or not self.state.shows("temperature"):
            return False
        return TARGETS[experiment.target.key].has_temperatures() or experiment.temperature != 1

    def _momentum(self) -> list[Any]:
        """The momentum of the chains at the start, for samplers that keep one."""
        setting, state = settings_of(self.state.experiment.target.key)["momentum"], self.state
        return [self._widget(setting, lambda: state.experiment.momentum, state.set_momentum)]

    def _seldom(self) -> list[Any]:
        """The parameters of a model that are seldom changed."""
        widgets = [] if self._of_lesson else self._target_widgets(slice(FIRST, None))
        return self._folded("More about the model", widgets)

    def _folded(self, title: str, widgets: list[Any]) -> list[Any]:
        """Widgets under a title that opens them."""
        if not widgets:
            return []
        folded = pn.Column(*widgets, sizing_mode="stretch_width", margin=0)
        return [pmui.Accordion((title, folded), title_variant="body1", sizing_mode="stretch_width", margin=(8, 6))]

    def _bench(self) -> list[Any]:
        bench = pmui.Button(
            label="Recipe workbench",
            icon="science",
            variant="outlined",
            size="small",
            sizing_mode="stretch_width",
            margin=(10, 10),
            description="Recipe workbench: type your own D(z) and Q(z), and see whether it is right and how fast it mixes.",
        )
        bench.on_click(partial(self._clicked, self.state.open_workbench))
        return [bench]

    def _pages(self) -> list[Any]:
        """The ways to the models of data, and from them to a density."""
        models = {model.title: key for key, model in MODELS.items() if key != self.state.experiment.target.key}
        menu = pmui.MenuButton(
            label="Models of data",
            icon="dataset",
            variant="outlined",
            size="small",
            sizing_mode="stretch_width",
            margin=(4, 10),
            items=[{"label": title} for title in models],
            description="Models of data: methods for a model of real data, side by side.",
        )

        def chosen(item: Any) -> None:
            self._do(self.state.set_target, models[item["label"]])

        menu.on_click(chosen)
        made = [menu]
        if self.state.experiment.of_model:
            back = pmui.Button(
                label="Known distributions",
                icon="functions",
                variant="outlined",
                size="small",
                sizing_mode="stretch_width",
                margin=(4, 10),
                description="Known distributions: samplers on distributions whose answers are known exactly.",
            )
            back.on_click(partial(self._clicked, partial(self.state.set_target, DEFAULT.target.key)))
            made.append(back)
        return made
