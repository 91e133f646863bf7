"""Widgets drawn from the declared parameters; each asks the state to change, and shows what it says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui
import param

from app.state import AppState
from app.theme import theme
from samplers.gradients import GRADIENTS
from samplers.kernels import SAMPLERS
from samplers.parameters import Count, CountVector, Flag, Formula, Option, Real, SpecError, Value, declared
from samplers.spec import MAX_LANES, Settings
from samplers.targets import TARGETS

EDITED_ELSEWHERE = {
    "layout",
    "diffusion_entries",
    "curl_entries",
    "drift_entries",
    "thermostat",
    "gamma",
    "dissipation",
}
"""Parameters of a recipe that have their place in the workbench."""
PER_DECADE = 12
"""Places of a logarithmic slider in each power of ten: neighbours differ by a fifth."""

Apply = Callable[[Any], bool]
"""Takes a new value, and says whether it is allowed."""


def log_places(parameter: Real | Count, value: Value) -> list[float | int]:
    """The values of a logarithmic slider, and ``value`` among them."""
    low, high = (float(bound) for bound in parameter.bounds)
    n = max(2, round(PER_DECADE * np.log10(high / low)) + 1)
    raw = [float(f"{x:.2g}") for x in np.geomspace(low, high, n)]
    places = {min(max(x, low), high) for x in (*raw, low, high)} | {value}
    return sorted({int(x) for x in places} if isinstance(parameter, Count) else places)


def _shown(x: float | int) -> str:
    # All digits, for two places of a slider must not have the same label.
    return repr(x).removesuffix(".0") if isinstance(x, float) else f"{x:,}"


def widget(parameter: param.Parameter, value: Value, apply: Apply) -> Any:
    """The control of a parameter. ``apply`` is called with each new value."""
    common = {"label": parameter.label, "description": parameter.doc, "sizing_mode": "stretch_width", "margin": (4, 10)}
    if isinstance(parameter, Flag):
        made = pmui.Switch(value=bool(value), **common)
        watched = "value"
    elif isinstance(parameter, CountVector):
        made = pmui.TextInput(value=", ".join(map(str, value)), size="small", **common)
        watched = "value"
    elif isinstance(parameter, Formula):
        made = pmui.TextInput(value=str(value), size="small", sx={"& input": {"fontFamily": "monospace"}}, **common)
        watched = "value"
    elif isinstance(parameter, Option):
        made = pmui.Select(options=list(parameter.objects), value=value, size="small", **common)
        watched = "value"
    elif parameter.log:
        places = log_places(parameter, value)
        made = pmui.DiscreteSlider(
            options={_shown(x): x for x in places},
            value=value,
            size="small",
            **common,
        )
        watched = "value_throttled"
    else:
        low, high = parameter.bounds
        step = 1 if isinstance(parameter, Count) else float(f"{(high - low) / 200:.1g}")
        kind = pmui.IntSlider if isinstance(parameter, Count) else pmui.FloatSlider
        made = kind(start=low, end=high, step=step, value=value, size="small", **common)
        watched = "value_throttled"

    def changed(event: Any) -> None:
        # Of a DiscreteSlider, value_throttled is the place among the options; the value itself is up to date by then.
        taken = apply(made.value if watched == "value_throttled" else event.new)
        if isinstance(parameter, Formula):
            made.error_state = not taken

    made.param.watch(changed, watched)
    return made


class Controls:
    """The sidebar: target, lanes, seed and chains."""

    def __init__(self, state: AppState, notify: Callable[[str, str], None]):
        self.state, self.notify = state, notify
        self.panel = pn.Column(sizing_mode="stretch_width", margin=0)
        self._shape: Any = None
        self._errors: dict[int, str] = {}
        state.param.watch(lambda *_: self.refresh(), ["experiment", "dark"])
        self.refresh()

    def show_error(self, lane: int, message: str) -> None:
        """Put a sentence on a lane's card; a reset clears it."""
        self._errors[lane] = message
        self.refresh(force=True)

    def clear_errors(self, lane: int | None = None) -> None:
        """Take the sentences off a lane's card, or off all of them."""
        if self._errors if lane is None else lane in self._errors:
            self._errors = {} if lane is None else {i: text for i, text in self._errors.items() if i != lane}
            self.refresh(force=True)

    def refresh(self, force: bool = False) -> None:
        """Draw the widgets again where other ones are needed; a moved slider needs none."""
        experiment = self.state.experiment
        shape = (
            experiment.target.key, experiment.n_chains, self.state.dark, experiment.seed,
            tuple((lane.sampler.key, lane.gradient.key) for lane in experiment.lanes),
        )  # fmt: skip
        if shape != self._shape or force:
            self._shape = shape
            self.panel.objects = [self._target(), *self._lanes(), self._add(), self._settings()]

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

    def _target(self) -> Any:
        state = self.state
        choice = state.experiment.target
        target = TARGETS[choice.key]
        menu = pmui.Select(
            label="Target", options={cls.title: key for key, cls in TARGETS.items()}, value=choice.key, size="small",
            description="The law to sample from. " + (target.__doc__ or "").split("\n")[0], sizing_mode="stretch_width", margin=(10, 10, 4, 10),
        )  # fmt: skip
        menu.param.watch(lambda event: self._do(state.set_target, event.new), "value")
        values = choice.values()

        def change(name: str, parameter: param.Parameter) -> Apply:
            keep = isinstance(parameter, Formula)
            return lambda value: self._do(state.set_target_param, name, value, keep=keep)

        widgets = [widget(p, values[name], change(name, p)) for name, p in declared(target)]
        return pn.Column(menu, *widgets, sizing_mode="stretch_width", margin=0)

    def _lanes(self) -> list[Any]:
        state = self.state
        target = TARGETS[state.experiment.target.key]
        fitting = {cls.title: key for key, cls in SAMPLERS.items() if cls.accepts(target)}
        colours = theme(state.dark).lanes
        cards = []
        for i, lane in enumerate(state.experiment.lanes):
            sampler, gradient = SAMPLERS[lane.sampler.key], GRADIENTS[lane.gradient.key]
            menu = pmui.Select(
                label=f"Sampler {i + 1}", options=fitting, value=sampler.key, size="small", sizing_mode="stretch_width",
                description=(sampler.__doc__ or "").split("\n")[0], margin=(8, 4, 4, 10),
            )  # fmt: skip
            menu.param.watch(lambda event, i=i: self._do(state.set_sampler, i, event.new), "value")
            head: list[Any] = [menu]
            if len(state.experiment.lanes) > 1:
                remove = pmui.IconButton(icon="close", size="small", description=f"Remove lane {i + 1}", margin=(8, 4))
                remove.param.watch(lambda _, i=i: self._do(state.remove_lane, i), "clicks")
                head.append(remove)
            body = [
                widget(
                    p,
                    lane.sampler.values()[name],
                    lambda v, i=i, name=name: self._do(state.set_lane_param, i, "sampler", name, v),
                )
                for name, p in declared(sampler)
                if name not in EDITED_ELSEWHERE
            ]
            gradients = {GRADIENTS[key].title: key for key in GRADIENTS if key in sampler.gradients_for(target)}
            if len(gradients) > 1:
                choose = pmui.Select(
                    label="Gradient", options=gradients, value=gradient.key, size="small", sizing_mode="stretch_width",
                    description=(gradient.__doc__ or "").split("\n")[0], margin=(4, 10),
                )  # fmt: skip
                choose.param.watch(lambda event, i=i: self._do(state.set_gradient, i, event.new), "value")
                body.append(choose)
            body += [
                widget(
                    p,
                    lane.gradient.values()[name],
                    lambda v, i=i, name=name: self._do(state.set_lane_param, i, "gradient", name, v),
                )
                for name, p in declared(gradient)
            ]
            if i in self._errors:
                body.insert(
                    0, pmui.Alert(self._errors[i], severity="error", sizing_mode="stretch_width", margin=(4, 10))
                )
            cards.append(pn.Column(
                pn.Row(*head, sizing_mode="stretch_width", margin=0), *body, sizing_mode="stretch_width", margin=(8, 8, 0, 8),
                styles={"border-left": f"5px solid {colours[i]}", "border-radius": "4px"}, css_classes=["lane"],
            ))  # fmt: skip
        return cards

    def _add(self) -> Any:
        button = pmui.Button(
            label="Add a lane to compare", icon="add", variant="outlined", size="small", sizing_mode="stretch_width", margin=(10, 10),
            disabled=len(self.state.experiment.lanes) >= MAX_LANES,
            description=f"Add a lane to compare: another sampler on the same target with the same seed; up to {MAX_LANES}.",
        )  # fmt: skip
        button.on_click(lambda _: self._do(self.state.add_lane))
        return button

    def _settings(self) -> Any:
        parameters = dict(declared(Settings))
        experiment = self.state.experiment
        chains = widget(parameters["n_chains"], experiment.n_chains, lambda v: self._do(self.state.set_chains, v))
        seed = pmui.IntInput(
            label="Seed", value=experiment.seed, start=0, end=parameters["seed"].bounds[1], size="small",
            description=parameters["seed"].doc, sizing_mode="stretch_width", margin=(4, 10),
        )  # fmt: skip
        seed.param.watch(lambda event: self._do(self.state.set_seed, event.new), "value")
        bench = pmui.Button(
            label="Recipe workbench", icon="science", variant="outlined", size="small", sizing_mode="stretch_width", margin=(10, 10),
            description="Recipe workbench: type your own D(z) and Q(z), and see whether it is right and how fast it mixes.",
        )  # fmt: skip
        bench.on_click(lambda _: self._do(self.state.open_workbench))
        return pn.Column(chains, seed, bench, sizing_mode="stretch_width", margin=(0, 0, 20, 0))
