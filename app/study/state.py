"""The state of one browser session with a study: what the person has chosen, and the file that they brought."""

from collections.abc import Mapping
from typing import Any

import param

from app.page_state import PageState
from app.study.upload import KINDS, Upload
from app.study.views import STUDY_VIEWS, default_views
from app.study.views.base import AXES
from lessons import Step
from samplers.models import METHODS, MODELS
from samplers.models.base import UPLOADED
from samplers.models.study import MAX_METHODS, MAX_SEEDS, SEEDS, Study, default_methods, methods_of
from samplers.parameters import SpecError, check, declared


class StudyState(PageState):
    """Every change goes through a method that checks it; a refused one raises SpecError and changes nothing."""

    study = param.ClassSelector(class_=Study)
    upload = param.ClassSelector(class_=Upload, allow_None=True, default=None)
    axis = param.Selector(objects=list(AXES))
    seeds = param.Integer(1, bounds=(1, MAX_SEEDS))
    shown = param.Integer(0, bounds=(0, MAX_METHODS - 1), doc="The method whose inside the pictures show.")
    runs_what = "method"
    subject = "model"

    def __init__(self, study: Study):
        super().__init__(study=study, views=default_views(study))

    @property
    def seed(self) -> int:
        """The study's seed."""
        return self.study.seed

    def fitting_views(self) -> list[str]:
        """The views that have something to show of the study, in the order of the menu."""
        return [key for key, view in STUDY_VIEWS.items() if key not in self.hidden and view.fits(self.study)]

    def follow(self, step: Step) -> None:
        """Show a lesson's step: its study from the beginning, its views and its settings of the page."""
        with param.parameterized.batch_call_watchers(self):
            if isinstance(step.spec, Study):
                self.open(step.spec)
            axis = step.page.get("axis", AXES[0])
            self.axis = axis if axis in AXES else AXES[0]
            self.views = [key for key in step.views if key in self.fitting_views()]
            self.playing = isinstance(step.spec, Study) and not self.place.waiting
            self.resets += 1

    def open(self, study: Study) -> None:
        """Another study; what is on the page stays where it fits."""
        with param.parameterized.batch_call_watchers(self):
            other = study.model.key != self.study.model.key
            before = self.fitting_views()
            if other:
                self.upload = None
            self.study = study
            self.shown = min(self.shown, len(study.methods) - 1)
            if other:
                self.views = default_views(study)
            else:
                new = [key for key in default_views(study) if key not in before]
                self.views = [key for key in STUDY_VIEWS if key in {*self.views, *new}]

    def set_model(self, key: str) -> None:
        """Another model, with its defaults and the methods that its page begins with."""
        model = MODELS.find("model", key)
        if key != self.study.model.key:
            methods = default_methods(model.key)
            self.open(Study.from_dict({"model": {"key": key}, "methods": methods, "seed": self.study.seed}))

    def set_model_param(self, name: str, value: Any) -> None:
        """Another value of one of the model's parameters."""
        key = self.study.model.key
        if (name, value) == (MODELS[key].data_parameter, UPLOADED) and self.upload is None:
            raise SpecError(f"model.{name}", value, f"bring a file first, with the button {KINDS[key].label}")
        self.open(self._with_model(name, value))

    def set_method(self, place: int, key: str) -> None:
        """Another method in that place, with its defaults."""
        methods = self._methods()
        methods[place] = {"key": key}
        self._set(methods)

    def set_method_param(self, place: int, name: str, value: Any) -> None:
        """Another value of a parameter of a method."""
        methods = self._methods()
        methods[place]["params"][name] = value
        self._set(methods)

    def add_method(self) -> None:
        """A method more: the first that is not there yet, or else the last one again, to try another parameter."""
        methods = self._methods()
        if len(methods) >= MAX_METHODS:
            raise SpecError("methods", len(methods) + 1, f"allowed are 1 to {MAX_METHODS} methods")
        used = {method["key"] for method in methods}
        free = [key for key in methods_of(self.study.model.key) if key not in used]
        self._set([*methods, {"key": free[0]} if free else methods[-1]])

    def remove_method(self, place: int) -> None:
        """A method less; the last one stays."""
        methods = self._methods()
        if len(methods) > 1:
            del methods[place]
            with param.parameterized.batch_call_watchers(self):
                if self.shown > place:
                    self.shown -= 1
                self._set(methods)

    def set_seed(self, seed: int) -> None:
        """Another seed."""
        self.open(Study.from_dict({**self.study.to_dict(), "seed": seed}))

    def set_seeds(self, count: Any) -> None:
        """Another number of seeds for each method."""
        self.seeds = check(SEEDS, "seeds", count)

    def look_inside(self, place: int) -> None:
        """Let the pictures show that method."""
        if not 0 <= place < len(self.study.methods):
            raise SpecError("show", place + 1, f"allowed is a method from 1 to {len(self.study.methods)}")
        self.shown = place

    @property
    def own_data(self) -> Upload | None:
        """The person's file, where the study is of it."""
        return self.upload if self.study.of_own_data else None

    def bring(self, files: Mapping[str, bytes]) -> None:
        """Take files in place of the data that are there. What is wrong in them shows when they are read."""
        kind = KINDS[self.study.model.key]
        with param.parameterized.batch_call_watchers(self):
            self.upload = Upload(kind, files)
            self.open(self._with_model(kind.model.data_parameter, UPLOADED))

    def go_back(self, study: Study, upload: Upload | None, seeds: int) -> None:
        """Take up again what was there before something that could not be opened."""
        with param.parameterized.batch_call_watchers(self):
            self.open(study)
            self.upload, self.seeds = upload, seeds

    def method_titles(self) -> tuple[str, ...]:
        """A title for each method; one that is there twice is told apart by the first parameter that differs."""
        methods = self.study.methods
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

    def _with_model(self, name: str, value: Any) -> Study:
        data = self.study.to_dict()
        data["model"]["params"][name] = value
        return Study.from_dict(data)

    def _methods(self) -> list[dict[str, Any]]:
        return self.study.to_dict()["methods"]

    def _set(self, methods: list[dict[str, Any]]) -> None:
        self.open(Study.from_dict({**self.study.to_dict(), "methods": methods}))
