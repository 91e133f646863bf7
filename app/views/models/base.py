"""What every view of a model declares.

As for the views of laws: ``build`` makes the figure and names its feeds; for each frame ``compute`` returns plain
arrays for them. ``compute`` runs in a worker thread while no method moves.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from app.theme import Theme, theme
from app.views.base import Data, Drawing
from samplers import Experiment
from samplers.models import Model, Snapshot
from samplers.models.run import ModelChain, Score


class ModelPosition(NamedTuple):
    """How far a run is, on each axis."""

    data: float
    """Data seen."""
    steps: float
    seconds: float

    def on(self, axis: str) -> float:
        """How far it is on one of them."""
        return float(getattr(self, axis))


MODEL_AXES = ModelPosition._fields
"""What curves are drawn against. The method that is furthest behind on this axis makes the next step."""


@dataclass(frozen=True)
class ModelScene:
    """What a view is built for; another scene means new views."""

    model: Model
    """With its data."""
    methods: tuple[str, ...]
    """The title of each method."""
    shown: int
    """The method whose inside the pictures show."""
    axis: str
    dark: bool
    large: bool = False
    """Whether type is large, for people who sit far from it."""

    @property
    def colours(self) -> Theme:
        """The theme that is on."""
        return theme(self.dark)

    @property
    def axis_label(self) -> str:
        """What curves are drawn against."""
        return {"data": f"{self.model.data_name} seen", "steps": "steps", "seconds": "seconds of computing"}[self.axis]


@dataclass
class MethodFrame:
    """One method, as a frame finds it."""

    runs: Sequence[ModelChain]
    """One for each seed."""
    marks: Sequence[ModelPosition] = ()
    """Where the first run was when parameters were changed."""

    def scores(self) -> list[Sequence[Score]]:
        """The scores of each seed."""
        return [run.scores for run in self.runs]


@dataclass
class ModelFrame:
    """All methods, as a frame finds them."""

    methods: Sequence[MethodFrame]
    shown: int
    moving: bool = True
    """Whether more frames will follow by themselves."""
    seconds: float = 0.0
    """The time since the frame before."""
    _snapshots: dict[int, Snapshot] = field(default_factory=dict)

    def snapshot(self, place: int | None = None) -> Snapshot:
        """What a method's first run looks like inside; by default that of the method that is shown."""
        place = self.shown if place is None else place
        if place not in self._snapshots:
            self._snapshots[place] = self.methods[place].runs[0].snapshot()
        return self._snapshots[place]


class ModelView(Drawing):
    """A live picture of the methods."""

    scene: ModelScene
    model: ClassVar[str | None] = None
    """The key of the model that it is for; None for all."""
    first: ClassVar[bool] = True
    """Whether a page begins with it."""

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        """Whether the view has something to show of this experiment."""
        return cls.model in (None, experiment.target.key)

    @classmethod
    def prepare(cls, model: Model) -> None:
        """Slow work for a new model, in a worker thread, before the view is built."""

    @abstractmethod
    def compute(self, frame: ModelFrame) -> Data:
        """Arrays for some of the feeds, by name; each has one array a column."""
