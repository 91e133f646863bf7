"""The declarations of every view.

A view is *compute* → arrays → glyphs made once. ``build`` makes the figure and names its feeds; for each
frame ``compute`` returns plain arrays for them. Tests look at the arrays. A view says what it needs of an experiment,
and fits every one that has it. A new view is one file and one line in ``app/views/__init__.py``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from html import unescape
from types import ModuleType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJS, GlyphRenderer, Label, Model, Node, Plot, Range1d
from numpy.typing import NDArray

from sgmcmc_lab.app.views.embedding import standalone
from sgmcmc_lab.app.views.theme import LARGE, Theme, enlarge, theme
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS, Snapshot
from sgmcmc_lab.samplers.models import Model as DataModel
from sgmcmc_lab.samplers.step_terms import ChainStep
from sgmcmc_lab.samplers.targets.base import Column, Target
from sgmcmc_lab.samplers.targets.own import OfTable

Array = NDArray[np.float64]

AXIS_LABELS = {
    "steps": "steps of each chain",
    "gradients": "gradient evaluations of each chain",
    "data": "data touched by each chain",
    "seconds": "seconds of computing",
}
"""The labels of the x axes of curves."""
LINE = 17
"""The height of a line of a caption, in pixels."""

COLUMNS, EXACT, SCORES, BATCH_SIZES, BOUND = "columns", "exact answers", "scores", "batch sizes", "evidence lower bound"


def offers(experiment: Experiment) -> frozenset[str]:
    """The features of an experiment that views may require: running statistics of columns, exact answers for them,
    held-out scores, batch sizes that a method chooses itself, the evidence lower bound that some method of the model
    climbs, or the snapshots of one model, by its key.
    """
    if experiment.of_model:
        chooses = any(METHODS[lane.sampler.key].chooses_batch_size for lane in experiment.lanes)
        climbs = any(METHODS[key].has_elbo for key in samplers_of(experiment.target.key))
        return frozenset({COLUMNS, SCORES, experiment.target.key, *[BATCH_SIZES] * chooses, *[BOUND] * climbs})
    return frozenset({COLUMNS, EXACT})


@dataclass(frozen=True)
class Feed:
    """A data source, or a range, that frames write to."""

    model: Model
    columns: tuple[str, ...]
    operation: Literal["replace", "stream", "range", "play", "text"] = "replace"
    """``play``: the page itself draws the rows one after the other, as :mod:`app.views.steps` says. ``text``: a number
    says which of the names a live page writes into the model.
    """
    rollover: int = 0
    names: tuple[str, ...] = ()
    """The names at the ends of played rows, by their column ``kind``; or the possible texts of a text."""


@dataclass(frozen=True)
class Scene:
    """The setting for which views are built; a new scene needs new views."""

    target: Any
    """The density, or the model with its data."""
    lanes: tuple[str, ...]
    """The title of each lane."""
    coordinate: int
    axis: str
    dark: bool
    layouts: tuple[str, ...] = ()
    """The layout of each lane's recipe; empty for another sampler."""
    large: bool = False
    """Whether the type is large, for viewers at a distance."""
    shown: int = 0
    """The lane whose state the pictures of a model show."""
    parts: tuple[str, ...] = ()
    """The parts of a step of the first lane's sampler."""
    throws: int = 0
    """The number of lanes whose chains keep a momentum, so that a drag can throw them."""
    noted: int = 0
    """The number of lanes with notes on facts that no picture shows: refused proposals, noise that is too large."""
    adapts: tuple[str, ...] = ()
    """The numbers that the adaptation of lanes follows, by name; none where no chains adapt."""
    diverges: bool = False
    """Whether some lane marks its divergent transitions."""
    live: bool = False
    """Whether it is for a live page, which has no server to tell of clicks and drags."""

    @property
    def colours(self) -> Theme:
        """The theme that is on."""
        return theme(self.dark)

    @property
    def column(self) -> Column:
        """The coordinate that one-dimensional views show."""
        return self.target.columns[self.coordinate]

    @property
    def axis_label(self) -> str:
        """The label of the x axis of curves."""
        if self.axis == "data" and isinstance(self.target, DataModel):
            return f"{self.target.data_name} seen"
        return AXIS_LABELS[self.axis]

    def values(self, draws: Array) -> Array:
        """The columns of draws: of a model they are what was drawn."""
        return self.target.values(draws) if isinstance(self.target, Target) else draws


class Position(NamedTuple):
    """The progress of a lane's run, on each axis."""

    steps: float
    gradients: float
    """The gradient evaluations of one chain; nan for a model, whose methods need not have any."""
    data: float
    """Touched by one chain."""
    seconds: float

    def on(self, axis: str) -> float:
        """The progress on one of the axes."""
        return float(getattr(self, axis))


class CurvePoint(NamedTuple):
    """The distance of a lane's draws from the target, at one position."""

    position: Position
    n_draws: float
    """Draws counted."""
    ks: float
    """The KS distance."""
    kl: float
    """The KL divergence; nan on the simplex, where there is none."""
    exact_kl: float
    """The KL divergence of as many i.i.d. draws."""


@dataclass
class LaneFrame:
    """One lane, as a frame finds it."""

    run: Any
    """Its :class:`~samplers.Run` or :class:`~samplers.models.run.ModelRun`; both have statistics of columns."""
    x: float
    """The position of the lane on the scene's axis."""
    fresh: Array
    """Draws since the last frame, at most ``FRESH`` of them, evenly spaced, (m, watched, dim)."""
    fresh_x: Array
    """Where they are on the scene's axis, (m,)."""
    curve: Sequence[CurvePoint] = ()
    """The distance from the target so far."""
    marks: Sequence[float] = ()
    """The positions on the scene's axis at which parameters were changed."""


class Playing(NamedTuple):
    """A step that is shown in its parts."""

    step: ChainStep
    windows: tuple[tuple[float, float], ...]
    """When each of the first parts begins to be drawn and when it is there, in seconds from now; later ones are not."""
    reach: float
    """An arrow of a momentum r is as long as this time takes a chain."""


class Frame(list[LaneFrame]):
    """All lanes, as a frame finds them."""

    def __init__(self, lanes: Iterable[LaneFrame], shown: int = 0, moving: bool = True, seconds: float = 0.0):
        super().__init__(lanes)
        self.shown = shown
        self.playing: Playing | None = None
        """The step of the first lane's first chain that is taken apart; None where none is."""
        self.moving = moving
        """Whether more frames will follow by themselves."""
        self.seconds = seconds
        """The time since the frame before."""
        self._snapshots: dict[int, Snapshot] = {}

    def snapshot(self, lane: int | None = None) -> Snapshot:
        """The snapshot of the first chain of a method; by default that of the lane that is shown."""
        lane = self.shown if lane is None else lane
        if lane not in self._snapshots:
            self._snapshots[lane] = self[lane].run.chains[0].snapshot()
        return self._snapshots[lane]


FRESH = 16
"""Draws that a frame adds to a path or a trace. More would not be told apart at 25 frames a second."""

MAX_NAMED = 8
"""A description of a picture names at most so many things of a kind."""

Data = dict[str, tuple[Array, ...]]


def in_words(text: str) -> str:
    """A caption as plain text, in one line."""
    lines = re.split("\n|<br>", text.strip())
    return ", ".join(" ".join(unescape(re.sub("<[^>]*>", " ", line)).split()) for line in lines)


CLICK, THROW, HANDLE, CURVE = "click", "throw", "handle", "curve"
"""The pointer events of a view, as :mod:`app.page.pointer_events` tells it."""
MOST = {CLICK: 3, THROW: 4, HANDLE: 3, CURVE: 400}
"""How many numbers tell of it at most: a point, on a globe of three coordinates; where a drag began and ended; which
handle, and where to; the points of a curve."""
TOUCH = 'document.dispatchEvent(new CustomEvent("lab-touch", {detail: ["click", key, ...point]}))'
"""The message of a figure's script about a click."""


class View(ABC):
    """A live picture of the lanes: a figure made once, and the sources in it that frames write to.

    ``before`` is the same view of the scene before this one; a view that computes for seconds keeps its results.
    """

    key: ClassVar[str]
    title: str
    requires: ClassVar[str] = EXACT
    """The feature of an experiment that it requires, one of those that :func:`offers`."""
    hint: str
    """How to read it, in a few words beside the title."""
    help: ClassVar[str] = ""
    """The meaning of its figures and lines, for a first-time reader."""
    every: ClassVar[int] = 1
    """The view is computed for every so many frames; the slow ones need fewer."""
    tall: ClassVar[bool] = False
    """Whether it needs the height of two, wherever it stands."""
    click: str = "click: start there"
    """The effects of a click, if the view takes one, and of a drag."""
    follows_axis: ClassVar[bool] = True
    """Whether curves are drawn against what the page says."""
    reads: ClassVar[tuple[ModuleType, ...]] = ()
    """The modules of :data:`app.live.readings.LATER` whose compiled readings its figure calls."""
    of_first: ClassVar[tuple[str, ...]] = ()
    """The feeds that show one lane alone, the first that has them. Where there are several lanes, the page says so."""

    aims: ClassVar[bool] = False
    """Whether :meth:`aim` sets everything in the figure that follows the parameters of the target."""

    def __init__(self, scene: Scene, before: "View | None" = None):
        self.scene = scene
        self.aimed: dict[tuple[str, str], tuple[Model, str]] = {}
        """The properties that follow the parameters of the target, by the model's id and their name."""
        self.feeds: dict[str, Feed] = {}
        self.fills: list[Callable[[], None]] = []
        """Each puts the last numbers into an image itself, for a page that runs no callback."""
        self.gestures: set[str] = set()
        """Its pointer events."""
        self.thrown_along = ""
        """The source of the arrow that a drag draws, by its id, in a figure where a drag throws the chains."""
        self.figure = self.build()
        self._name_figures()
        self._drop_glyphs()
        if scene.large:
            enlarge(self.figure)

    @classmethod
    def made(cls, scene: Scene, before: "View | None" = None) -> "View":
        """A view of the scene. Pages that open with the same scene share the models of its figure: a figure takes the
        server as long as a quarter of a page, and nothing changes it there.
        """
        place = cls._shared_place(scene, before)
        if place is None:
            return cls(scene, before)
        if not place:
            made = cls(scene)
            # Another thread that finds it has its document, too, which takes as long as the figure.
            _ = made.document
            place.append(made)
        first = place[0]
        shared = [scene, scene.target, first.document, *first.figure.references()]
        return deepcopy(first, {id(one): one for one in shared})

    @classmethod
    def is_made(cls, scene: Scene, before: "View | None" = None) -> bool:
        """Whether :meth:`made` takes a figure that is there, which is soon done."""
        return bool(cls._shared_place(scene, before))

    @classmethod
    def _shared_place(cls, scene: Scene, before: "View | None") -> "list[View] | None":
        """Where the view that other pages take is, once it has been made; None where each page has its own."""
        own = before is not None or not isinstance(scene.target, Target) or isinstance(scene.target, OfTable)
        return None if own else _place(cls, scene)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The figure as BokehJS embeds it."""
        return standalone(self.figure)

    @classmethod
    def title_for(cls, experiment: Experiment) -> str:
        """Its title beside the lanes of this experiment."""
        return cls.title

    constant_steps: ClassVar[bool] = False
    """Whether it holds for lanes whose steps all have the same size, and for no others."""

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        """Whether the view has something to show of an experiment that offers what it needs."""
        return True

    @classmethod
    def prepare(cls, model: Any) -> None:
        """Slow work for a new model, in a worker thread, before the view is built."""

    @abstractmethod
    def build(self) -> Any:
        """The figure, with what does not move drawn in; fills ``feeds``."""

    def put(self, model: Model, **values: Any) -> None:
        """Set properties that follow the parameters of the target."""
        for name, value in values.items():
            setattr(model, name, value)
        self.aimed.update({(model.id, name): (model, name) for name in values})

    def aim(self) -> None:
        """Put everything that follows the parameters of the target; ``build`` calls it last."""

    def aim_at(self, target: Any) -> bool:
        """Show another target, of the same class, in the same figure. Whether the figure can: else it is as it was."""
        was, now = (
            (of.exact_law, [(column.name, column.log, column.exact) for column in of.columns])
            for of in (self.scene.target, target)
        )
        if not self.aims or was != now:
            return False
        self.scene = replace(self.scene, target=target)
        self.aim()
        return True

    @abstractmethod
    def compute(self, lanes: Frame) -> Data:
        """Arrays for some of the feeds, by name; each has one array a column.

        The feed of one lane has the lane's number in its name, ``lane 0``: tests see by it that no lane shows another.
        """

    def captions(self, lanes: Frame) -> dict[str, str]:
        """Texts for labels, by the label's id; asked for about once a second, in a worker thread."""
        return {}

    def background(self, lanes: Frame) -> bool:
        """Slow work of the view's own, called a few times a second in a worker thread while it is shown.

        Returns whether there is something new to draw.
        """
        return False

    def words(self, lanes: Frame) -> str:
        """The contents of the picture that no caption states; asked for with the captions."""
        return ""

    def texts(self, lanes: Frame) -> list[tuple[str, str]]:
        """The captions, and the figure's description for people who do not see it, by the model's id."""
        captions = self.captions(lanes)
        said = [text for text in map(in_words, (self.words(lanes), *captions.values())) if text]
        return [*captions.items(), (self.figure.id, f"{self._name}. {'; '.join(said)}")]

    def live_data(self) -> dict[str, Any] | None:
        """The constants of the view's code in a live page, as JSON; ``assets/live/views`` has that code.

        Only for the views in :data:`app.live_page.document.LIVE`; others are fixed pictures there. None where a live
        page cannot have the view of this scene.
        """
        return {}

    def live_tap(self) -> dict[str, Any] | None:
        """The figure in which a click starts the chains, with the data for :file:`assets/live/starts.js`; None if a
        click does not start them.
        """
        return None

    def _drop_glyphs(self) -> None:
        """Nothing in a picture is ever selected or muted; bokeh.plotting makes two glyphs more of each for that."""
        for part in self._plots:
            for renderer in part.renderers:
                if isinstance(renderer, GlyphRenderer):
                    renderer.nonselection_glyph = renderer.muted_glyph = None

    @cached_property
    def _plots(self) -> list[Plot]:
        """The figure, or those in it."""
        if isinstance(self.figure, Plot):
            return [self.figure]
        return [part for part in self.figure.references() if isinstance(part, Plot)]

    def _name_figures(self) -> None:
        inner = [] if isinstance(self.figure, Plot) else self._plots
        for part in inner:
            part.html_attributes = {"role": "img", "aria-label": getattr(part.title, "text", "") or self.title}
        axes = [] if inner else [axis for axis in self.figure.xaxis if axis.visible]
        label = axes[0].axis_label if axes else ""
        self._name = f"{self.title}, against {label}" if label else self.title
        self.figure.html_attributes = {"role": "group" if inner else "img", "aria-label": self._name}

    def feed(self, name: str, *columns: str, rollover: int = 0) -> ColumnDataSource:
        """A new empty source, replaced in each frame, or streamed into where it has a rollover."""
        source = ColumnDataSource({column: np.zeros(0) for column in columns})
        self.feeds[name] = Feed(source, columns, "stream" if rollover else "replace", rollover)
        return source

    def take_touches(self, figure: Any, point: str = "const point = [cb_obj.x, cb_obj.y]", **args: Any) -> None:
        """Let a click on the figure be told. The script ``point`` finds the coordinates; ``args`` are what it needs."""
        if not self.scene.live:
            figure.js_on_event(Tap, CustomJS(args={"key": self.key, **args}, code=f"{point}\n{TOUCH}"))
        self.gestures.add(CLICK)

    def start_at(self, point: Sequence[float], before: Array) -> Array | None:
        """Where chains begin after a click at this point, and ``before`` it; None where none can.

        Raises :class:`~samplers.parameters.SpecError`.
        """
        return None

    def momentum_at(self, point: Sequence[float], end: Sequence[float], start: Array) -> Array | None:
        """The momentum of chains that begin at ``start`` after a drag from this point to that end.

        After a click both are the same point, and where it tells of no momentum there is None.
        """
        return None

    def moving_range(self, name: str, model: Range1d) -> None:
        """Let frames move a range; its data is one array, [start, end]."""
        self.feeds[name] = Feed(model, ("ends",), "range")

    def caption(self, figure: Any, y: int = 6) -> Label:
        """A label in the lower left corner of a figure; one line a lane."""
        colours = self.scene.colours
        label = Label(
            x=8,
            y=y,
            x_units="screen",
            y_units="screen",
            text="",
            text_font_size="13px",
            text_color=colours.text,
            background_fill_color=colours.surface,
            background_fill_alpha=0.8,
            text_baseline="bottom",
            text_line_height=1.25,
        )
        figure.add_layout(label)
        return label

    def caption_above(self, figure: Any, lines: int, line: int = 0) -> Label:
        """A label in one of so many lines above a figure's frame, where it covers nothing; in its corner where there
        are none.
        """
        label = self.caption(figure)
        if lines:
            height = LINE * (LARGE if self.scene.large else 1)
            label.x = Node(target="canvas", symbol="left", offset=8)
            # The label of a tick at the frame's top reaches some pixels above it.
            label.y = Node(target="frame", symbol="top", offset=round(-height * (lines - line)) - 7)
            label.text_baseline = "top"
            figure.min_border_top = round(12 + height * lines)
        return label

    def means(self, lanes: Sequence[LaneFrame], coordinates: Sequence[int]) -> str:
        """The means of coordinates so far, in words: all lanes, but of many coordinates the first few."""
        said = []
        for name, lane in zip(self.scene.lanes, lanes, strict=True):
            found, columns = lane.run.statistics, self.scene.target.columns
            each = [f"{columns[k].name} {found.mean(k):.3g}" for k in coordinates[:MAX_NAMED] if found.n_draws]
            said.append(f"{name}: " + ("mean of " + ", ".join(each) if each else "no draws yet"))
        return "; ".join(said)


@lru_cache(maxsize=64)
def _place(view: type[View], scene: Scene) -> list[View]:
    """The place of a view that no page has. Two threads may make it at once; the first one counts."""
    return []
