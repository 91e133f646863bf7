"""The state of one browser session with a model of data: what the person has chosen, and the file that they brought."""

from collections.abc import Mapping
from typing import Any

import param

from app.page_state import PageState
from app.study.upload import KINDS, Upload
from app.study.views import STUDY_VIEWS, default_views
from app.study.views.base import AXES
from lessons import Step
from samplers import Experiment
from samplers.models import METHODS, MODELS
from samplers.models.base import UPLOADED
from samplers.parameters import SpecError, declared
from samplers.spec import first_lanes, max_lanes, samplers_of


class StudyState(PageState):
    """Every change goes through a method that checks it; a refused one raises SpecError and changes nothing."""

    experiment = param.ClassSelector(class_=Experiment)
    upload = param.ClassSelector(class_=Upload, allow_None=True, default=None)
    axis = param.Selector(objects=list(AXES))
    shown = param.Integer(0, bounds=(0, None), doc="The lane whose inside the pictures show.")
    runs_what = "method"
    subject = "model"

    def __init__(self, experiment: Experiment):
        super().__init__(experiment=experiment, views=default_views(experiment))

    @property
    def seed(self) -> int:
        """The experiment's seed."""
        return self.experiment.seed

    def fitting_views(self) -> list[str]:
        """The views that have something to show of the experiment, in the order of the menu."""
        return [key for key, view in STUDY_VIEWS.items() if key not in self.hidden and view.fits(self.experiment)]

    def follow(self, step: Step) -> None:
        """Show a lesson's step: its experiment from the beginning, its views and its settings of the page."""
        with param.parameterized.batch_call_watchers(self):
            if step.spec is not None:
                self.open(step.spec)
            axis = step.page.get("axis", AXES[0])
            self.axis = axis if axis in AXES else AXES[0]
            self.views = [key for key in step.views if key in self.fitting_views()]
            self.playing = step.spec is not None and not self.place.waiting
            self.resets += 1

    def open(self, experiment: Experiment) -> None:
        """Another experiment; what is on the page stays where it fits."""
        with param.parameterized.batch_call_watchers(self):
            other = experiment.target.key != self.experiment.target.key
            before = self.fitting_views()
            if other:
                self.upload = None
            self.experiment = experiment
            self.shown = min(self.shown, len(experiment.lanes) - 1)
            if other:
                self.views = default_views(experiment)
            else:
                new = [key for key in default_views(experiment) if key not in before]
                self.views = [key for key in STUDY_VIEWS if key in {*self.views, *new}]

    def set_target(self, key: str) -> None:
        """Another model, with its defaults and the methods that its page begins with."""
        model = MODELS.find("target", key)
        if key != self.experiment.target.key:
            seed = self.experiment.seed
            self.open(Experiment.from_dict({"target": key, "lanes": first_lanes(model.key), "seed": seed}))

    def set_target_param(self, name: str, value: Any) -> None:
        """Another value of one of the model's parameters."""
        key = self.experiment.target.key
        if (name, value) == (MODELS[key].data_parameter, UPLOADED) and self.upload is None:
            raise SpecError(f"target.{name}", value, f"bring a file first, with the button {KINDS[key].label}")
        self.open(self._with_target(name, value))

    def set_sampler(self, lane: int, key: str) -> None:
        """Another method for a lane, with its defaults."""
        lanes = self._lanes()
        lanes[lane] = {"sampler": {"key": key}}
        self._set(lanes=lanes)

    def set_lane_param(self, lane: int, name: str, value: Any) -> None:
        """Another value of a parameter of a lane's method."""
        lanes = self._lanes()
        lanes[lane]["sampler"]["params"][name] = value
        self._set(lanes=lanes)

    def add_lane(self) -> None:
        """A lane more: the first method that is not there yet, or else the last one again, to try another parameter."""
        lanes, target = self._lanes(), self.experiment.target.key
        if len(lanes) >= max_lanes(target):
            raise SpecError("lanes", len(lanes) + 1, f"allowed are 1 to {max_lanes(target)} lanes")
        used = {lane["sampler"]["key"] for lane in lanes}
        free = [key for key in samplers_of(target) if key not in used]
        self._set(lanes=[*lanes, {"sampler": free[0]} if free else lanes[-1]])

    def remove_lane(self, lane: int) -> None:
        """A lane less; the last one stays."""
        lanes = self._lanes()
        if len(lanes) > 1:
            del lanes[lane]
            with param.parameterized.batch_call_watchers(self):
                if self.shown > lane:
                    self.shown -= 1
                self._set(lanes=lanes)

    def set_seed(self, seed: int) -> None:
        """Another seed."""
        self._set(seed=seed)

    def set_chains(self, n_chains: Any) -> None:
        """Another number of runs of each method."""
        self._set(n_chains=n_chains)

    def look_inside(self, lane: int) -> None:
        """Let the pictures show that lane."""
        if not 0 <= lane < len(self.experiment.lanes):
            raise SpecError("show", lane + 1, f"allowed is a lane from 1 to {len(self.experiment.lanes)}")
        self.shown = lane

    @property
    def own_data(self) -> Upload | None:
        """The person's file, where the experiment is on it."""
        return self.upload if self.experiment.of_own_data else None

    def bring(self, files: Mapping[str, bytes]) -> None:
        """Take files in place of the data that are there. What is wrong in them shows when they are read."""
        kind = KINDS[self.experiment.target.key]
        with param.parameterized.batch_call_watchers(self):
            self.upload = Upload(kind, files)
            self.open(self._with_target(kind.model.data_parameter, UPLOADED))

    def go_back(self, experiment: Experiment, upload: Upload | None) -> None:
        """Take up again what was there before something that could not be opened."""
        with param.parameterized.batch_call_watchers(self):
            self.open(experiment)
            self.upload = upload

    def lane_titles(self) -> tuple[str, ...]:
        """A title for each method; one that is there twice is told apart by the first parameter that differs."""
        methods = [lane.sampler for lane in self.experiment.lanes]
        out = []
        for i, method in enumerate(methods):
            cls = METHODS[method.key]
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

    def _with_target(self, name: str, value: Any) -> Experiment:
        data = self.experiment.to_dict()
        data["target"]["params"][name] = value
        return Experiment.from_dict(data)

    def _lanes(self) -> list[dict[str, Any]]:
        return self.experiment.to_dict()["lanes"]

    def _set(self, **fields: Any) -> None:
        self.open(Experiment.from_dict({**self.experiment.to_dict(), **fields}))
