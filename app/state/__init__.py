"""The state of one browser session: what the person has chosen. Views and controls only read it or ask it to change."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import param

from sgmcmc_lab.app.lesson.names import names
from sgmcmc_lab.app.lesson.position import CoursePosition
from sgmcmc_lab.app.lesson.rules import is_hidden
from sgmcmc_lab.app.state.upload import KINDS, Upload
from sgmcmc_lab.app.views import AXES, VIEWS, axes_of, coordinates, fitting
from sgmcmc_lab.app.views.base import COLUMNS
from sgmcmc_lab.app.views.theme import Theme, theme
from sgmcmc_lab.lessons import Step
from sgmcmc_lab.samplers import Experiment, Lane
from sgmcmc_lab.samplers.files import short_name
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.recipe import EULER, SEMI_IMPLICIT, RecipeSampler, parameters_of
from sgmcmc_lab.samplers.lanes import CONSTANT, first_lanes, max_lanes, samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.parameters import UPLOADED, SpecError, check_all, declared
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.recipe.recipe import THETA, THETA_R, THETA_R_XI
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.schedules import SCHEDULES
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, is_model
from sgmcmc_lab.samplers.targets import TARGETS, Target
from sgmcmc_lab.samplers.targets.base import MANIFOLD, POSITIVE, SIMPLEX, Array
from sgmcmc_lab.samplers.targets.drawn import energy_through

DEFAULT = Experiment.from_dict(
    {
        "target": "gaussian",
        "lanes": [{"sampler": "sgld"}],
    }
)
"""The first page's."""
LEFT_OUT = Experiment.from_dict({"target": "quartic", "lanes": [{"sampler": "sgld"}]})
"""The target and the lane of links that give other fields of an experiment and leave these out. The first page may
change; the meaning of a link does not.
"""
DEFAULT_VIEWS = ["state", "marginal", "ks"]
SIMPLEX_VIEWS = ["state", "components", "ks"]
"""The first views of a target on a simplex, or with more than two coordinates."""
MANIFOLD_VIEWS = ["circle", "globe", "torus", "frames", "components", "marginal", "ks", "temperature"]
"""The first views of a target on a manifold; a page has those that fit."""
WORKBENCH_VIEWS = ["drift", "marginal", "stationarity"]
MAX_SPEED = 1_000_000
FIRST_SPEED = 20
SLOWEST = 8
"""Seconds that a step takes at most."""
SOON = 150
"""Frames after which a lesson's claims shall have something to say: a few seconds."""


def default_views(experiment: Experiment) -> list[str]:
    """The views that a page begins with."""
    if experiment.of_model:
        return [key for key in fitting(experiment) if VIEWS[key].requires != COLUMNS]
    support = TARGETS[experiment.target.key].support
    if support == MANIFOLD:
        return [key for key in MANIFOLD_VIEWS if VIEWS[key].fits(experiment)]
    return list(SIMPLEX_VIEWS if VIEWS["components"].fits(experiment) else DEFAULT_VIEWS)


def first_coordinate(experiment: Experiment) -> int:
    """The coordinate that one-dimensional views begin with: on the simplex one whose category was not observed."""
    if experiment.of_model or TARGETS[experiment.target.key].support != SIMPLEX:
        return 0
    return min(4, experiment.make_target().n_values - 1)


class MissingTable(NamedTuple):
    """A link whose table is somebody's own, which is not there."""

    query: str
    table: str
    shown: Experiment
    """The experiment that the page has in its place."""


class AppState(param.Parameterized):
    """Every change goes through a method that checks it; a refused one raises SpecError and changes nothing."""

    experiment = param.ClassSelector(class_=Experiment, default=DEFAULT)
    upload = param.ClassSelector(class_=Upload, allow_None=True, default=None, doc="The file that the person brought.")
    brought = param.ClassSelector(
        class_=Upload, allow_None=True, default=None, doc="The last file that the person brought, which may be wrong."
    )
    playing = param.Boolean(True)
    speed = param.Integer(FIRST_SPEED, bounds=(1, MAX_SPEED), doc="Steps of each chain in one frame, at most.")
    slow = param.Integer(
        0, bounds=(0, SLOWEST), doc="Seconds a step, which is shown in its parts; 0 is as fast as speed says."
    )
    views = param.List(DEFAULT_VIEWS)
    axis = param.Selector(objects=list(AXES), doc="The x axis of the curves.")
    coordinate = param.Integer(0, bounds=(0, None), doc="The coordinate that one-dimensional views show.")
    shown = param.Integer(0, bounds=(0, None), doc="The lane whose state the pictures of a model show.")
    dark = param.Boolean(False)
    follows_device = param.Boolean(
        True, doc="Whether the device's preference decides if the page is dark: neither the link nor the person does."
    )
    hidden = param.List([], doc="Parts of the page that the link leaves out.")
    teacher = param.Boolean(False, doc="Whether a lesson shows its notes for the teacher, and solutions.")
    present = param.Boolean(False, doc="Presenter mode: large type, nothing but the lesson and the views.")
    room = param.String("", doc="The code of the room that the page is in.")
    resets = param.Integer(0, doc="Counts the resets; each starts the same runs again.")

    def __init__(self, **values: object):
        super().__init__(**values)
        self.position = CoursePosition()
        self.refused: list[str] = []
        """The requests of the link that are not shown, a sentence each."""
        self.led_resets: str | None = None
        """The resets of the page that this one follows, as the last link said."""
        self.missing_table: MissingTable | None = None
        """The request that waits for its file."""

    @property
    def seed(self) -> int:
        """The experiment's seed."""
        return self.experiment.seed

    @property
    def colours(self) -> Theme:
        """The theme that is on."""
        return theme(self.dark)

    @property
    def own_data(self) -> Upload | None:
        """The person's file, where the experiment is on it."""
        return self.upload if self.experiment.of_own_data else None

    def fitting_views(self) -> list[str]:
        """The views that have something to show of the experiment, in the order of the menu."""
        return [key for key in fitting(self.experiment) if key not in self.hidden]

    def shown_views(self) -> list[str]:
        """The views on the page: those of a lesson's step in the order in which it names them, then in the menu's."""
        named = self.position.step.views if self.position.step is not None else ()
        shown = [key for key in self.fitting_views() if key in self.views]
        return sorted(shown, key=lambda key: named.index(key) if key in named else len(named))

    def offered_views(self) -> list[str]:
        """The views in the menu: in a lesson those of its step, until the person asks for everything."""
        position = self.position
        few = set(
            self.fitting_views()
            if position.step is None or position.everything
            else (*position.step.views, *self.views)
        )
        return [key for key in self.fitting_views() if key in few]

    def has_default_views(self) -> bool:
        """Whether the views are those that a page of this target begins with."""
        return self.shown_views() == [key for key in default_views(self.experiment) if key not in self.hidden]

    def shows(self, name: str) -> bool:
        """Whether a control, an address or a word, is on the page: neither the link nor a lesson leaves it out."""
        return not is_hidden(name, self.hidden) and self.position.allows(name)

    @property
    def has_workbench(self) -> bool:
        """Whether a lane is a recipe, whose card stands above the views."""
        recipes = any(lane.sampler.key == RecipeSampler.key for lane in self.experiment.lanes)
        return recipes and self.shows("workbench")

    def set_pace(self, pace: int) -> None:
        """So many steps per frame, or, below 0, a step in so many seconds."""
        if pace < 0:
            self.slow = -pace
        else:
            self.param.update(slow=0, speed=pace)

    def reset(self) -> None:
        """Start again from the first state, with the same seed."""
        self.resets += 1

    def follow(self, step: Step) -> None:
        """Show a lesson's step: its experiment from the beginning, its views and its settings of the page."""
        with param.parameterized.batch_call_watchers(self):
            if step.spec is not None:
                self.open(step.spec)
                asked = step.page.get("coordinate", first_coordinate(step.spec) + 1)
                self.coordinate = min(asked, len(coordinates(step.spec))) - 1
                self.speed = step.page.get("speed", first_speed(step))
                self.slow = 0 if step.spec.of_model else step.page.get("slow", 0)
            axes = axes_of(self.experiment)
            axis = step.page.get("axis", axes[0])
            self.axis = axis if axis in axes else axes[0]
            self.views = [key for key in step.views if key in self.fitting_views()]
            self.playing = step.spec is not None and not self.position.waiting
            self.resets += 1

    def open(self, experiment: Experiment) -> None:
        """Another experiment; what is on the page stays where it fits."""
        other, of_model = experiment.target.key != self.experiment.target.key, self.experiment.of_model
        before, fitted = other and self.has_default_views(), self.fitting_views()
        with param.parameterized.batch_call_watchers(self):
            self.experiment = experiment
            self.slow *= not experiment.of_model
            self.shown = min(self.shown, len(experiment.lanes) - 1)
            if self.axis not in (axes := axes_of(experiment)) or experiment.of_model != of_model:
                self.axis = axes[0]
            if other:
                self.upload = self.brought = None
                self.coordinate = first_coordinate(experiment)
            self.coordinate = min(self.coordinate, len(coordinates(experiment)) - 1)
            # Views that the person has chosen stay, where the new target has them; models share only minor ones.
            if other and (before or experiment.of_model or not self.shown_views()):
                self.views = default_views(experiment)
            elif not other and (new := [key for key in default_views(experiment) if key not in fitted]):
                self.views = [key for key in fitting(experiment) if key in {*self.views, *new}]

    def go_back(self, experiment: Experiment, upload: Upload | None) -> None:
        """Take up again what was there before something that could not be opened."""
        with param.parameterized.batch_call_watchers(self):
            self.open(experiment)
            self.upload = upload

    def set_target(self, key: str) -> list[str]:
        """Another target with its defaults. Returns a sentence for each lane whose sampler does not fit it."""
        target = ANY_TARGET.find("target", key)
        if is_model(key) or self.experiment.of_model:
            if key != self.experiment.target.key:
                real = {target.data_parameter: target.real_data} if is_model(key) and target.real_data else {}
                self._set(target={"key": key, "params": real}, lanes=first_lanes(key))
            return []
        messages: list[str] = []
        lanes: list[dict[str, Any]] = []
        alone = {"target": key, "lanes": [{"sampler": "exact"}]}
        heat, before, refused = self.experiment.temperature, self.experiment.make_target(), list[str]()
        try:
            made = Experiment.from_dict({**alone, "temperature": heat}).make_target()
        except SpecError as error:
            if error.field != "temperature":
                raise
            refused.append(f"{str(error).removesuffix('.')}; 1 is used instead.")
            heat, made = 1.0, Experiment.from_dict(alone).make_target()
        for lane in self._lanes():
            sampler = SAMPLERS[lane["sampler"]["key"]]
            if sampler.fits(target) and sampler.takes(made.dim):
                had = _first(lane, before)
                _fit_recipe(lane, made)
                if lane["gradient"]["key"] not in sampler.gradients_for(target):
                    del lane["gradient"]
                _fit_step(lane, made, had)
                lanes.append(lane)
            else:
                messages.append(f"{sampler.title} does not fit {target.title}, so it is removed.")
        if not lanes:
            # The first in the menu: on spheres SGGMC.
            first = samplers_of(key, made)[0]
            lanes = [{"sampler": {"key": first}}]
            messages[-1:] = [
                f"{messages[-1].removesuffix(', so it is removed.')}; {SAMPLERS[first].title} takes its place."
            ]
        self._set(target={"key": key}, lanes=lanes, start=[], momentum=[], temperature=heat)
        return messages + refused

    def set_target_param(self, name: str, value: Any) -> list[str]:
        """Another value of one of the target's parameters. Returns what :meth:`set_target_params` does."""
        return self.set_target_params({name: value})

    def set_target_params(self, values: Mapping[str, Any]) -> list[str]:
        """Other values of some of the target's parameters. Returns a sentence for each method that does not fit."""
        choice = self.experiment.target
        params = (
            {**choice.values(), **values}
            if self.experiment.of_model
            else TARGETS[choice.key].completed(choice.values(), values)
        )
        target = {"key": choice.key, "params": params}
        lanes, messages = self._lanes(), list[str]()
        if self.experiment.of_model:
            name = MODELS[choice.key].data_parameter
            if values.get(name) == UPLOADED and self.upload is None:
                allowed = f"upload a file first, with the button {KINDS[choice.key].label}"
                raise SpecError(f"target.{name}", UPLOADED, allowed)
            fits = {key: METHODS[key].fits(target["params"]) for key in samplers_of(choice.key)}
            changed = ", ".join(f"{name} = {value}" for name, value in values.items())
            keys = [lane["sampler"]["key"] for lane in lanes]
            messages += [
                f"{METHODS[key].title} does not fit {changed}, so it is removed." for key in keys if not fits[key]
            ]
            lanes = [lane for lane, key in zip(lanes, keys, strict=True) if fits[key]]
            lanes = lanes or [{"sampler": {"key": next(key for key, fit in fits.items() if fit)}}]
        else:
            alone = {"target": target, "lanes": [{"sampler": "exact"}], "temperature": self.experiment.temperature}
            made = Experiment.from_dict(alone).make_target()
            before = self.experiment.make_target()
            for lane in lanes:
                had = _first(lane, before)
                _fit_recipe(lane, made)
                if made.first_steps != before.first_steps:
                    _fit_step(lane, made, had)
        self._set(target=target, lanes=lanes)
        return messages

    def bring(self, files: Mapping[str, bytes]) -> None:
        """Take files in place of the data that are there. Faults in them appear when they are read."""
        self._take(Upload(KINDS[self.experiment.target.key], files))

    def read_again(self, field: str, value: str) -> None:
        """Read the last file with another choice of its format; what is wrong then leaves the data as they are."""
        if self.brought is not None:
            self._take(self.brought.changed(field, value))

    def _take(self, upload: Upload) -> None:
        kind, files = upload.kind, upload.files
        try:
            # A table is small, and read at once: the experiment has its name.
            named = UPLOADED if self.experiment.of_model else upload.data().key
        finally:
            self.brought = upload
        before = self.upload
        asked = (
            self.missing_table
            if self.missing_table and self.missing_table.shown.target == self.experiment.target
            else None
        )
        if asked and asked.table != named:
            raise SpecError(
                f"target.{kind.model.data_parameter}",
                short_name(next(iter(files))),
                "it is not the file that the link was made with; upload that one, or first choose another table in the menu to start with a file of your own",
            )
        with param.parameterized.batch_call_watchers(self):
            self.upload = upload
            if asked:
                self.missing_table = None
                self.open(Experiment.from_query(asked.query, asked.shown)[0])
                return
            try:
                self.set_target_param(kind.model.data_parameter, named)
            except SpecError:
                self.upload = before
                raise

    def look_inside(self, lane: int) -> None:
        """Let the pictures of a model show that lane."""
        if not 0 <= lane < len(self.experiment.lanes):
            raise SpecError("show", lane + 1, f"allowed is a number from 1 to {len(self.experiment.lanes)}")
        self.shown = lane

    def set_sampler(self, lane: int, key: str) -> None:
        """Another sampler for a lane, with its defaults; its gradient stays where it fits."""
        lanes, target = self._lanes(), self.experiment.target.key
        gradient, schedule = lanes[lane].get("gradient"), lanes[lane].get("schedule")
        lanes[lane] = {"sampler": {"key": key}}
        if schedule is not None and "step_size" in ANY_SAMPLER.find("sampler", key).param:
            lanes[lane]["schedule"] = schedule
        if (
            gradient is not None
            and not self.experiment.of_model
            and gradient["key"] in SAMPLERS.find("sampler", key).gradients_for(TARGETS[target])
        ):
            lanes[lane]["gradient"] = gradient
        self._set(lanes=lanes)

    def set_gradient(self, lane: int, key: str) -> None:
        """Another gradient estimator for a lane, with its defaults."""
        lanes, target = self._lanes(), self.experiment.make_target()
        before = _first(lanes[lane], target)
        lanes[lane]["gradient"] = {"key": key}
        _fit_step(lanes[lane], target, before)
        self._set(lanes=lanes)

    def set_schedule(self, lane: int, key: str) -> None:
        """Another step-size schedule for a lane, with its defaults."""
        lanes = self._lanes()
        lanes[lane]["schedule"] = {"key": key}
        self._set(lanes=lanes)

    def set_lane_param(self, lane: int, part: str, name: str, value: Any) -> None:
        """Another value of a parameter of a lane's ``sampler``, ``gradient`` or ``schedule``."""
        lanes = self._lanes()
        lanes[lane][part]["params"][name] = value
        self._check_recipe(lanes[lane])
        self._set(lanes=lanes)

    def set_recipe(self, lane: int, **values: Any) -> None:
        """Other values of some parameters of a lane's recipe."""
        lanes = self._lanes()
        lanes[lane]["sampler"]["params"].update(values)
        self._check_recipe(lanes[lane])
        self._set(lanes=lanes)

    def _check_recipe(self, lane: Mapping[str, Any]) -> None:
        """Refuse a recipe with which the chain would stop: the last one goes on, and the link keeps it."""
        if lane["sampler"]["key"] == RecipeSampler.key:
            parameters = dict(check_all(RecipeSampler, "sampler", lane["sampler"]["params"]))
            RecipeSampler(**parameters).check_diffusion(self.experiment.make_target())

    def set_preset(self, lane: int, key: str) -> None:
        """The D, Q and switches of a named sampler for a lane's recipe."""
        target, preset, lanes = self.experiment.make_target(), PRESETS.find("preset", key), self._lanes()
        params = lanes[lane]["sampler"]["params"]
        params.update(parameters_of(preset.recipe(target.dim, target.formula())))
        if (first := target.first_steps) is not None:
            # On a steep target a momentum has longer steps, with which Euler's scheme would blow up.
            moving = preset.kind != THETA
            batch = BATCH in GRADIENTS[lanes[lane]["gradient"]["key"]].requires
            params["step_size"] = min(float(RecipeSampler.param.step_size.default), first.largest(moving, batch))
            params["scheme"] = SEMI_IMPLICIT if moving else EULER
        if lanes[lane]["gradient"]["key"] == "full":
            # Naive SGHMC has no noise but its gradient's.
            lanes[lane]["gradient"] = {"key": preset.gradient}
        self._set(lanes=lanes)

    def fitting_presets(self) -> list[str]:
        """The presets that exist for the target's dimension and support."""
        target = self.experiment.make_target()
        return [
            key
            for key, each in PRESETS.items()
            if target.dim in each.dims and (target.support == POSITIVE or not each.positive)
        ]

    def type_energy(self) -> None:
        """The same target as a typed energy, to be changed by hand."""
        target = self.experiment.make_target()
        extent = max(abs(end) for column in target.columns[: target.dim] for end in column.axis)
        params = {"energy": target.formula(), "extent": float(f"{1.2 * extent:.3g}")}
        coordinate, lanes = self.coordinate, self._lanes()
        for lane in lanes:
            # It has no data, and so no minibatches.
            if lane["gradient"]["key"] not in SAMPLERS[lane["sampler"]["key"]].gradients_for(TARGETS["typed"]):
                del lane["gradient"]
        with param.parameterized.batch_call_watchers(self):
            # The formula is that of U/T.
            self._set(target={"key": "typed", "params": params}, lanes=lanes, temperature=1.0)
            self.coordinate = coordinate

    def draw_energy(self, points: Array) -> None:
        """A typed energy through points (n, 2) that a person drew, θ and U; its box is found from it."""
        self.set_target_params({"energy": energy_through(points), "extent": 0.0})

    def open_workbench(self) -> None:
        """A recipe on the double well, or on the data that are there, with the pictures that go with it; lanes that are
        recipes stay.
        """
        before, key = self.has_default_views(), self.experiment.target.key
        target, moved = TARGETS["double_well"](), {"target": {"key": "double_well"}}
        if not self.experiment.of_model and BATCH in TARGETS[key].provides:
            data = self.experiment.make_target()
            if RecipeSampler.key in samplers_of(key, data):
                target, moved = data, {}
        with param.parameterized.batch_call_watchers(self):
            if not any(lane.sampler.key == RecipeSampler.key for lane in self.experiment.lanes):
                params = parameters_of(PRESETS["sghmc"].recipe(target.dim, target.formula()))
                lane = {"sampler": {"key": RecipeSampler.key, "params": {**params, "step_size": 0.05}}}
                _fit_step(lane, target, {})
                self._set(lanes=[lane], **moved)
            if before and WORKBENCH_VIEWS[0] in self.fitting_views():
                self.views = list(WORKBENCH_VIEWS)

    def add_lane(self) -> None:
        """A lane more: the first fitting sampler that has none yet, or a copy of the last lane: always of a recipe."""
        lanes, target = self._lanes(), self.experiment.target.key
        if len(lanes) >= (most := max_lanes(target)):
            raise SpecError("lanes", len(lanes) + 1, f"allowed are 1 to {most} samplers")
        used = {lane["sampler"]["key"] for lane in lanes}
        density = None if self.experiment.of_model else self.experiment.make_target()
        free = [key for key in samplers_of(target, density) if key not in used]
        if self.experiment.of_model:
            free = [key for key in free if METHODS[key].fits(self.experiment.target.values())]
        # Beside a recipe one wants the same recipe, to change one entry of it.
        if free and lanes[-1]["sampler"]["key"] != RecipeSampler.key:
            lanes.append({"sampler": {"key": free[0]}})
        else:
            lanes.append(lanes[-1])
        self._set(lanes=lanes)

    def remove_lane(self, lane: int) -> None:
        """A lane less; the last one stays. The pictures go on showing the same one."""
        lanes = self._lanes()
        if len(lanes) > 1:
            del lanes[lane]
            with param.parameterized.batch_call_watchers(self):
                self.shown -= self.shown > lane
                self._set(lanes=lanes)

    def set_seed(self, seed: int) -> None:
        """Another seed."""
        self._set(seed=seed)

    def set_temperature(self, temperature: float) -> None:
        """Let the chains sample e^{−U/T}. A lane with the old temperature's first step gets the new one's."""
        data, before = self.experiment.to_dict(), self.experiment.make_target()
        made = Experiment.from_dict({**data, "temperature": temperature}).make_target()
        lanes = self._lanes()
        if made.first_steps != before.first_steps:
            for lane in lanes:
                _fit_step(lane, made, _first(lane, before))
        self._set(temperature=temperature, lanes=lanes)

    def set_chains(self, n_chains: int) -> None:
        """Another number of chains."""
        self._set(n_chains=n_chains)

    def lane_titles(self) -> tuple[str, ...]:
        """A lesson's name of each lane, or its title; samplers that appear twice are told apart by what differs."""
        titles = (_method_titles if self.experiment.of_model else _kernel_titles)(self.experiment)
        step = self.position.step
        called = names(step, self.experiment) if step is not None else [""] * len(titles)
        return tuple(name or title for name, title in zip(called, titles, strict=True))

    def set_start(self, start: Sequence[float] | str) -> None:
        """Let all chains begin there; where the target has them begin where it is empty."""
        self._set(start=start)

    def set_momentum(self, momentum: Sequence[float] | str) -> None:
        """Let all chains begin with that momentum; with their sampler's own where it is empty."""
        self._set(momentum=momentum)

    def throw(self, start: Sequence[float], momentum: Sequence[float]) -> None:
        """Let all chains begin there with that momentum; with their sampler's own where it is empty."""
        self._set(start=start, momentum=momentum)

    def _lanes(self) -> list[dict[str, Any]]:
        return self.experiment.to_dict()["lanes"]

    def _set(self, **fields: Any) -> None:
        data = self.experiment.to_dict()
        if "target" in fields and is_model(fields["target"]["key"]) != self.experiment.of_model:
            # The other settings do not exist there, or have another meaning.
            data = {"seed": self.seed}
        elif "lanes" in fields:
            # A number of chains with which such an experiment begins is not chosen: other samplers begin with theirs.
            others = {name: value for name, value in data.items() if name != "n_chains"}
            if Experiment.from_dict(others).n_chains == self.experiment.n_chains:
                data = others
        try:
            made = Experiment.from_dict({**data, **fields})
        except SpecError as error:
            if error.field not in ("start", "momentum") or error.field in fields:
                raise
            # With another value of a parameter the target is in another space, and begins at its own start.
            made = Experiment.from_dict({**data, "start": [], "momentum": [], **fields})
        self.open(made)


def _kernel_titles(experiment: Experiment) -> tuple[str, ...]:
    """The samplers' titles. Those of the same sampler go on with what is not the same: gradient, values."""
    lanes, out = experiment.lanes, []
    for i, lane in enumerate(lanes):
        title, key = SAMPLERS[lane.sampler.key].title, lane.sampler.key
        twins = [other for j, other in enumerate(lanes) if other.sampler.key == key and j != i]
        if twins:
            title += f" {i + 1}" if key == RecipeSampler.key else _apart(lane, twins)
        out.append(title)
    return tuple(f"{title} ({i})" if out.count(title) > 1 else title for i, title in enumerate(out, start=1))


MAX_DIFFERENCES = 2
"""Values that differ are in a lane's title, at most so many."""


def _apart(lane: Lane, twins: Sequence[Lane]) -> str:
    """The differences of a lane from others with the same sampler."""
    kinds = {twin.gradient.key for twin in twins} - {lane.gradient.key}
    text = f" · {GRADIENTS[lane.gradient.key].title.removeprefix('Minibatch, ')}" if kinds else ""
    schedules = {twin.schedule.key for twin in twins} - {lane.schedule.key}
    if schedules:
        text += " · constant ε" if lane.schedule == CONSTANT else " · falling ε"
    numbers = 0
    for cls, part, apart in (
        (SAMPLERS[lane.sampler.key], "sampler", False),
        (GRADIENTS[lane.gradient.key], "gradient", bool(kinds)),
        (SCHEDULES[lane.schedule.key], "schedule", bool(schedules)),
    ):
        if apart:
            continue
        for name, parameter in declared(cls):
            value, others = getattr(lane, part).values()[name], [getattr(twin, part).values()[name] for twin in twins]
            if all(other == value for other in others) or numbers == MAX_DIFFERENCES:
                continue
            if isinstance(value, bool):
                label = parameter.label
                text += f" {label if len(label) == 1 else label.lower()} {'on' if value else 'off'}"
                numbers += 1
            elif isinstance(value, int | float):
                text += f" {SYMBOLS.get(parameter.tex, parameter.tex) or parameter.label}={value:g}"
                numbers += 1
    return text


SYMBOLS = {r"\epsilon": "ε", r"\tau": "τ", r"\gamma": "γ"}
"""The symbols of parameters as plain text."""


def _method_titles(experiment: Experiment) -> tuple[str, ...]:
    methods = [lane.sampler for lane in experiment.lanes]
    out = []
    for i, method in enumerate(methods):
        cls = ANY_SAMPLER[method.key]
        title = cls.title
        twins = [other.values() for j, other in enumerate(methods) if other.key == method.key and j != i]
        if twins:
            own, labels = method.values(), dict(declared(cls))
            differing = [name for name in own if any(twin[name] != own[name] for twin in twins)]
            if differing:
                value = own[differing[0]]
                number = f"{value:g}" if isinstance(value, float) else str(value)
                title += f", {labels[differing[0]].label} {number}"
            else:
                title += f" ({sum(other.key == method.key for other in methods[: i + 1])})"
        out.append(title)
    return tuple(out)


def first_speed(step: Step) -> int:
    """The steps per frame with which a lesson's step begins: enough to see its claims soon."""
    short, whole = step.quick_spec, step.spec
    needed = whole.burn_in + short.n_steps if short is not None and whole is not None else 0
    return min(max(FIRST_SPEED, int(float(f"{needed / SOON:.2g}"))), MAX_SPEED)


START_PRESETS = {THETA: "sgld", THETA_R: "sghmc", THETA_R_XI: "sgnht"}
"""The preset that a state begins with."""


def _fit_recipe(lane: dict[str, Any], target: Target) -> None:
    """Give a lane's recipe the entries for the target's dimension, where it has those for another one."""
    if lane["sampler"]["key"] != RecipeSampler.key or not RecipeSampler.takes(target.dim):
        return
    params = lane["sampler"]["params"]
    try:
        RecipeSampler(**params).check(target)
    except SpecError:
        made = PRESETS[START_PRESETS[params["layout"]]].recipe(target.dim, target.formula())
        params.update(parameters_of(made))


def _first(lane: Mapping[str, Any], target: Target) -> dict[str, float]:
    """The first values of the parameters of a lane's sampler that differ from the declared ones."""
    return SAMPLERS[lane["sampler"]["key"]].first_values(target.first_steps, lane.get("gradient", {}).get("key", ""))


def _fit_step(lane: dict[str, Any], target: Target, before: Mapping[str, float]) -> None:
    """Give a lane the first step and friction for a target where it still has those of ``before``.

    A step that was chosen is made small enough, a friction large enough.
    """
    params, first = lane["sampler"]["params"], _first(lane, target)
    defaults = {name: parameter.default for name, parameter in declared(SAMPLERS[lane["sampler"]["key"]])}
    for name in params.keys() & (first.keys() | before.keys()):
        if params[name] == before.get(name, defaults[name]):
            params[name] = first.get(name, defaults[name])
        elif name in first:
            params[name] = (min if name == "step_size" else max)(params[name], first[name])
