"""The state of one browser session: what the person has chosen. Views and controls only read it or ask it to change."""

from typing import Any

import param

from app.page_state import PageState
from app.views import VIEWS
from app.views.base import AXIS_LABELS
from lessons import Step
from samplers import Experiment
from samplers.kernels import SAMPLERS
from samplers.kernels.recipe import RecipeSampler, parameters_of
from samplers.parameters import SpecError, declared
from samplers.recipe.presets import PRESETS
from samplers.recipe.recipe import THETA, THETA_R, THETA_R_XI
from samplers.spec import max_lanes
from samplers.targets import TARGETS, Target
from samplers.targets.base import MANIFOLD, POSITIVE, SIMPLEX

DEFAULT = Experiment.from_dict({
    "target": "quartic",
    "lanes": [{"sampler": "sgld"}],
})  # fmt: skip
DEFAULT_VIEWS = ["state", "marginal", "ks"]
SIMPLEX_VIEWS = ["state", "components", "ks"]
MANIFOLD_VIEWS = ["circle", "globe", "torus", "marginal", "ks", "temperature"]
"""Of which a page has those that fit: a picture of the manifold, where there is one, and the rest."""
WORKBENCH_VIEWS = ["drift", "marginal", "stationarity"]
MAX_SPEED = 1_000_000
FIRST_SPEED = 20
SOON = 150
"""Frames after which a lesson's claims shall have something to say: a few seconds."""


def default_views(target: type[Target], experiment: Experiment) -> list[str]:
    """The views that a page begins with."""
    if target.support == MANIFOLD:
        return [key for key in MANIFOLD_VIEWS if VIEWS[key].fits(experiment)]
    return list(SIMPLEX_VIEWS if target.support == SIMPLEX else DEFAULT_VIEWS)


class AppState(PageState):
    """Every change goes through a method that checks it; a refused one raises SpecError and changes nothing."""

    experiment = param.ClassSelector(class_=Experiment, default=DEFAULT)
    speed = param.Integer(FIRST_SPEED, bounds=(1, MAX_SPEED), doc="Steps of each chain in one frame.")
    views = param.List(DEFAULT_VIEWS)
    axis = param.Selector(objects=list(AXIS_LABELS))
    coordinate = param.Integer(0, bounds=(0, None))
    runs_what = "chain"
    subject = "target"

    @property
    def seed(self) -> int:
        """The experiment's seed."""
        return self.experiment.seed

    def fitting_views(self) -> list[str]:
        """The views that have something to show of the experiment, in the order of the menu."""
        return [key for key, view in VIEWS.items() if key not in self.hidden and view.fits(self.experiment)]

    def follow(self, step: Step) -> None:
        """Show a lesson's step: its experiment from the beginning, its views and its settings of the page."""
        with param.parameterized.batch_call_watchers(self):
            if step.spec is not None:
                self.experiment = step.spec
                target = step.spec.make_target()
                first = min(5, target.n_values) if target.support == SIMPLEX else 1
                self.coordinate = min(step.page.get("coordinate", first), target.n_values) - 1
                self.speed = step.page.get("speed", first_speed(step))
            axis = step.page.get("axis", "steps")
            self.axis = axis if axis in AXIS_LABELS else "steps"
            self.views = [key for key in step.views if key in self.fitting_views()]
            self.playing = step.spec is not None and not self.place.waiting
            self.resets += 1

    def has_default_views(self) -> bool:
        """Whether the views are those that a page of this target begins with."""
        return self.shown_views() == default_views(TARGETS[self.experiment.target.key], self.experiment)

    def set_target(self, key: str) -> list[str]:
        """Another target with its defaults. Returns a sentence for each lane whose sampler does not fit it."""
        target = TARGETS.find("target", key)
        messages: list[str] = []
        lanes: list[dict[str, Any]] = []
        for lane in self._lanes():
            if SAMPLERS[lane["sampler"]["key"]].accepts(target):
                _fit_recipe(lane, Experiment.from_dict({"target": key, "lanes": [{"sampler": "exact"}]}).make_target())
                gradients = SAMPLERS[lane["sampler"]["key"]].gradients_for(target)
                if lane["gradient"]["key"] not in gradients:
                    del lane["gradient"]
                lanes.append(lane)
            else:
                messages.append(
                    f"{SAMPLERS[lane['sampler']['key']].title} does not fit {target.title}, so its lane is gone."
                )
        if not lanes:
            # The first in the menu: on spheres SGGMC.
            fitting = next(name for name, cls in SAMPLERS.items() if cls.accepts(target))
            lanes = [{"sampler": {"key": fitting}}]
            messages[-1:] = [
                f"{messages[-1].removesuffix(', so its lane is gone.')}; {SAMPLERS[fitting].title} takes its place."
            ]
        for lane in lanes:
            _fit_step(lane, key)
        coordinate = 4 if target.support == SIMPLEX else 0
        before = self.has_default_views()
        with param.parameterized.batch_call_watchers(self):
            self._set(target={"key": key}, lanes=lanes)
            self.coordinate = min(coordinate, self.experiment.make_target().n_values - 1)
            # Views that the person has chosen stay, where the new target has them.
            if before or not self.shown_views():
                self.views = default_views(target, self.experiment)
        return messages

    def set_target_param(self, name: str, value: Any) -> None:
        """Another value of one of the target's parameters."""
        choice = self.experiment.target
        target = {"key": choice.key, "params": {**choice.values(), name: value}}
        made = Experiment.from_dict({"target": target, "lanes": [{"sampler": "exact"}]}).make_target()
        lanes = self._lanes()
        for lane in lanes:
            _fit_recipe(lane, made)
        with param.parameterized.batch_call_watchers(self):
            self._set(target=target, lanes=lanes)
            self.coordinate = min(self.coordinate, self.experiment.make_target().n_values - 1)

    def set_sampler(self, lane: int, key: str) -> None:
        """Another sampler for a lane, with its defaults; its gradient stays where it fits."""
        lanes = self._lanes()
        lanes[lane]["sampler"] = {"key": key}
        if lanes[lane]["gradient"]["key"] not in SAMPLERS[key].gradients_for(TARGETS[self.experiment.target.key]):
            del lanes[lane]["gradient"]
        _fit_step(lanes[lane], self.experiment.target.key)
        self._set(lanes=lanes)

    def set_gradient(self, lane: int, key: str) -> None:
        """Another gradient estimator for a lane, with its defaults."""
        lanes = self._lanes()
        lanes[lane]["gradient"] = {"key": key}
        _fit_step(lanes[lane], self.experiment.target.key)
        self._set(lanes=lanes)

    def set_lane_param(self, lane: int, part: str, name: str, value: Any) -> None:
        """Another value of a parameter of a lane's ``sampler`` or ``gradient``."""
        lanes = self._lanes()
        lanes[lane][part]["params"][name] = value
        self._set(lanes=lanes)

    def set_recipe(self, lane: int, **values: Any) -> None:
        """Other values of some parameters of a lane's recipe."""
        lanes = self._lanes()
        lanes[lane]["sampler"]["params"].update(values)
        self._set(lanes=lanes)

    def set_preset(self, lane: int, key: str) -> None:
        """The D, Q and switches of a named sampler for a lane's recipe."""
        target, preset, lanes = self.experiment.make_target(), PRESETS.find("preset", key), self._lanes()
        lanes[lane]["sampler"]["params"].update(parameters_of(preset.recipe(target.dim, target.formula())))
        if lanes[lane]["gradient"]["key"] == "full":
            # Naive SGHMC has no noise but its gradient's.
            lanes[lane]["gradient"] = {"key": preset.gradient}
        self._set(lanes=lanes)

    def fitting_presets(self) -> list[str]:
        """The presets that exist for the target's dimension and support."""
        target = self.experiment.make_target()
        return [
            key for key, each in PRESETS.items() if target.dim in each.dims and (target.support == POSITIVE or not each.positive)
        ]  # fmt: skip

    def type_energy(self) -> None:
        """The same target as a typed energy, to be changed by hand."""
        target = self.experiment.make_target()
        extent = max(abs(end) for column in target.columns[: target.dim] for end in column.axis)
        params = {"energy": target.formula(), "extent": float(f"{1.2 * extent:.3g}")}
        self._set(target={"key": "typed", "params": params})

    def open_workbench(self) -> None:
        """A recipe on the double well, with the pictures that go with it; lanes that are recipes stay."""
        before = self.has_default_views()
        with param.parameterized.batch_call_watchers(self):
            if not any(lane.sampler.key == RecipeSampler.key for lane in self.experiment.lanes):
                target = TARGETS["double_well"]()
                params = parameters_of(PRESETS["sghmc"].recipe(target.dim, target.formula()))
                lane = {"sampler": {"key": RecipeSampler.key, "params": {**params, "step_size": 0.05}}}
                self._set(target={"key": target.key}, lanes=[lane])
                self.coordinate = 0
            if before:
                self.views = list(WORKBENCH_VIEWS)

    def add_lane(self) -> None:
        """A lane more: the first fitting sampler that has none yet, or a copy of the last lane if that is a recipe."""
        lanes = self._lanes()
        if len(lanes) >= max_lanes(self.experiment.target.key):
            return
        target = TARGETS[self.experiment.target.key]
        used = {lane["sampler"]["key"] for lane in lanes}
        free = [key for key, cls in SAMPLERS.items() if cls.accepts(target) and key not in used]
        if lanes[-1]["sampler"]["key"] == RecipeSampler.key:
            # Beside a recipe one wants the same recipe, to change one entry of it.
            free = []
        new: dict[str, Any] = {"sampler": {"key": free[0]}} if free else lanes[-1]
        _fit_step(new, self.experiment.target.key)
        self._set(lanes=[*lanes, new])

    def remove_lane(self, lane: int) -> None:
        """A lane less; the last one stays."""
        lanes = self._lanes()
        if len(lanes) > 1:
            del lanes[lane]
            self._set(lanes=lanes)

    def set_seed(self, seed: int) -> None:
        """Another seed."""
        self._set(seed=seed)

    def set_chains(self, n_chains: int) -> None:
        """Another number of chains."""
        self._set(n_chains=n_chains)

    def lane_titles(self) -> tuple[str, ...]:
        """A title for each lane; samplers that appear twice are told apart by what differs."""
        lanes = self.experiment.lanes
        titles = [SAMPLERS[lane.sampler.key].title for lane in lanes]
        out: list[str] = []
        for i, (lane, title) in enumerate(zip(lanes, titles, strict=True)):
            if lane.sampler.key == RecipeSampler.key and titles.count(title) > 1:
                out.append(f"{title} {i + 1}")
            elif titles.count(title) > 1:
                symbols = {name: getattr(p, "tex", "") for name, p in declared(SAMPLERS[lane.sampler.key])}
                step = next(iter(lane.sampler.values().items()), None)
                extra = (
                    f" {'h' if symbols[step[0]] == 'h' else 'ε'}={step[1]:g}"
                    if step and isinstance(step[1], float)
                    else ""
                )
                size = lane.gradient.values().get("batch_size")
                out.append(title + extra + (f" n={size}" if size else ""))
            else:
                out.append(title)
        return tuple(out)

    def _lanes(self) -> list[dict[str, Any]]:
        return self.experiment.to_dict()["lanes"]

    def _set(self, **fields: Any) -> None:
        self.experiment = Experiment.from_dict({**self.experiment.to_dict(), **fields})


def first_speed(step: Step) -> int:
    """The steps a frame with which a lesson's step begins: enough to see its claims soon."""
    short, whole = step.quick_spec, step.spec
    needed = whole.burn_in + short.n_steps if short is not None and whole is not None else 0
    return min(max(FIRST_SPEED, int(float(f"{needed / SOON:.2g}"))), MAX_SPEED)


START_PRESETS = {THETA: "sgld", THETA_R: "sghmc", THETA_R_XI: "sgnht"}
"""The preset that a state begins with."""


def _fit_recipe(lane: dict[str, Any], target: Target) -> None:
    """Give a lane's recipe the entries for the target's dimension, where it has those for another one."""
    if lane["sampler"]["key"] != RecipeSampler.key:
        return
    params = lane["sampler"]["params"]
    try:
        RecipeSampler(**params).check(target)
    except SpecError:
        made = PRESETS[START_PRESETS[params["layout"]]].recipe(target.dim, target.formula())
        params.update(parameters_of(made))


def _fit_step(lane: dict[str, Any], target: str) -> None:
    """Make a lane's step small enough for a steep target, and its friction large enough for minibatches."""
    params = lane["sampler"].get("params", {})
    first = SAMPLERS[lane["sampler"]["key"]].first_values(TARGETS[target], lane.get("gradient", {}).get("key", ""))
    for name in params.keys() & first.keys():
        params[name] = (min if name == "step_size" else max)(params[name], first[name])
