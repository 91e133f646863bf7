"""The figures of a live page: a view's own figures as BokehJS reads them, in both themes, reduced in size."""

import gzip
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np
from bokeh.model import Model
from bokeh.models import ColumnDataSource, CustomJS, GlyphRenderer, Image, Label, LinearColorMapper, Plot, Widget
from numpy.typing import NDArray

from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import AXIS_LABELS, Scene, View
from sgmcmc_lab.app.views.embedding import as_json, standalone
from sgmcmc_lab.app.views.theme import palette_in
from sgmcmc_lab.samplers.targets.base import Target


@dataclass(frozen=True)
class Drawn:
    """A view's figure as BokehJS reads it."""

    view: View
    item: Any
    attributes: tuple[tuple[str, str, dict[str, Any]], ...]
    """The id, the kind and the attributes of each model, with references for models."""
    models: Mapping[str, Model]
    """The models by their ids."""

    @classmethod
    def of(cls, key: str, scene: Scene) -> "Drawn | None":
        """A view of the scene; None for a view that cannot be live."""
        view = VIEWS[key](scene)
        return cls.of_view(view) if view.live_data() is not None else None

    @classmethod
    def of_view(cls, view: View) -> "Drawn":
        """A view in its present state, with images reduced to the numbers of their colours."""
        models = view.figure.references()
        # The figure's own code makes the numbers of such an image.
        code = [model for model in models if isinstance(model, CustomJS)]
        made = {part.id for one in code for part in one.args.values() if isinstance(part, Model)}
        for model in models:
            if isinstance(model, Label):
                # A live page writes captions as text, which wraps and is read aloud.
                model.visible = False
            elif isinstance(model, Plot):
                model.min_border_top = 8
            elif (
                isinstance(model, GlyphRenderer) and isinstance(model.glyph, Image) and model.data_source.id not in made
            ):
                _reduce(model.data_source, model.glyph.color_mapper)
        item = smaller(standalone(view.figure))
        return cls(view, item, tuple(_attributes(item["doc"]["roots"])), {model.id: model for model in models})

    def turned(self, target: Target) -> "Turned | None":
        """The same figure for another target of its target's class; None where that needs a figure of its own."""
        view, was = self.view, self.view.scene.target
        attributes = {model: values for model, _, values in self.attributes}
        known = {
            (model, name): attributes[model][name] if name in attributes[model] else self.default(model, name)
            for model, name in view.aimed
        }
        if not view.aim_at(target):
            return None
        before: Changes = {}
        after: Changes = {}
        for (model, name), value in known.items():
            then = smaller(as_json(getattr(self.models[model], name)))
            if then != value:
                if name not in attributes[model]:
                    before.setdefault(model, {})[name] = value
                after.setdefault(model, {})[name] = then
        found = Turned(Difference(before, after), view.live_data(), view.live_tap())
        view.aim_at(was)
        return found

    @property
    def needs_widgets(self) -> bool:
        """Whether the figure has texts beside plots, which need a second part of BokehJS."""
        return any(isinstance(model, Widget) for model in self.models.values())

    def default(self, model: str, name: str) -> Any:
        """A property that the document omits. Raises :class:`StructureError` unless it is a number, a text or None."""
        value = getattr(self.models[model], name)
        if not isinstance(value, str | int | float | None):
            raise StructureError(f"{self.view.key}: {name}")
        return value

    def described(self) -> dict[str, Any]:
        """The view's data for the page: the figure, its feeds and constants."""
        feeds = {
            name: {"id": feed.model.id, "columns": feed.columns, "operation": feed.operation, "rollover": feed.rollover}
            | ({"names": feed.names} if feed.operation == "text" else {})
            for name, feed in self.view.feeds.items()
        }
        view = self.view
        return {"title": view.title, "hint": view.hint, "figure": self.item, "feeds": feeds, "data": view.live_data()}

    @property
    def axis_labels(self) -> list[tuple[str, str]]:
        """The models and properties that hold the label of the curves' x axis."""
        names = set(AXIS_LABELS.values())
        found = self.attributes if self.view.follows_axis else ()
        return [(model, "axis_label") for model, _, values in found if values.get("axis_label") in names]


def with_short_ids(step: dict[str, Any]) -> dict[str, Any]:
    """A step whose models are numbered anew within each view.

    A view then has the same ids, and often the same text, for any number of lanes and in any step. Two figures of one
    view are never on the page together.
    """
    ids: dict[str, str] = {}
    for figures in step["figures"].values():
        for key, view in figures["views"].items():
            listed = dict.fromkeys(model for model, _, _ in _attributes(view["figure"]["doc"]["roots"]))
            ids |= {model: f"{key} {number}" for number, model in enumerate(listed)}

    def renamed(node: Any) -> Any:
        if isinstance(node, str):
            return ids.get(node, node)
        if isinstance(node, (list, tuple)):
            return [renamed(part) for part in node]
        if isinstance(node, dict):
            return {ids.get(name, name): renamed(part) for name, part in node.items()}
        return node

    return {**step, "figures": renamed(step["figures"]), "stops": renamed(step["stops"])}


class Views:
    """The views of a file, each once. Those of one kind are together, where compression finds what they share."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._of: dict[str, list[Any]] = {}
        for step in steps:
            for figures in step["figures"].values():
                for key, view in figures["views"].items():
                    if view not in self._of.setdefault(key, []):
                        self._of[key].append(view)

    @property
    def listed(self) -> list[Any]:
        """All views, in the order of their places."""
        return [view for views in self._of.values() for view in views]

    def placed(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """A step with the places of its views."""
        firsts = dict(zip(self._of, accumulate(map(len, self._of.values()), initial=0), strict=False))
        return {
            **step,
            "figures": {
                n: {
                    **one,
                    "views": {key: firsts[key] + self._of[key].index(view) for key, view in one["views"].items()},
                }
                for n, one in step["figures"].items()
            },
        }


ENOUGH = 1e-4
"""The accuracy that a drawing needs, relative to an array's range."""


def smaller(node: Any) -> Any:
    """A document with 4-byte numbers where a drawing needs no more. Its arrays are not compressed, because the file is.

    BokehJS does not decode their base64: the page gives it the bytes.
    """
    if isinstance(node, list):
        return [smaller(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "ndarray" and isinstance(node["array"], dict):
        raw, dtype = gzip.decompress(b64decode(node["array"]["data"])), node["dtype"]
        if dtype.startswith("float") and (short := _short(np.frombuffer(raw, dtype).astype(float))) is not None:
            raw, dtype = short.tobytes(), "float32"
        return {**node, "array": {"type": "bytes", "data": b64encode(raw).decode()}, "dtype": dtype}
    return {name: smaller(part) for name, part in node.items()}


def _short(numbers: NDArray[np.float64]) -> NDArray[np.float32] | None:
    """The numbers in 4 bytes, to the bits that a drawing needs; None where it needs more.

    The other bits are 0, which compression leaves out. A number keeps its leading bits, so that small ones are right on
    a logarithmic axis, too.
    """
    inside = np.isfinite(numbers)
    if not inside.any():
        return None
    largest, wide = np.abs(numbers[inside]).max(), np.ptp(numbers[inside])
    if not largest < 1e38 or largest * 2.0**-24 > ENOUGH * wide:
        return None
    found = numbers.astype(np.float32)
    if wide > 0:
        # With k bits after the leading one, rounding has a relative error of at most 2^−(k+1).
        dropped = 23 - max(int(np.ceil(np.log2(largest / (ENOUGH * wide)))) - 1, 0)
        bits = found.view(np.uint32)
        bits[inside] = (bits[inside] + (1 << dropped >> 1)) >> dropped << dropped
    return found


def _reduce(source: ColumnDataSource, mapper: Any) -> None:
    """Replace the numbers of an image by the numbers of their colours."""
    if not isinstance(mapper, LinearColorMapper):
        return
    n, (name,) = len(mapper.palette), [name for name in source.data if name == "image"]
    pictures = [np.asarray(picture, dtype=float) for picture in source.data[name]]
    share = [(picture - mapper.low) / (mapper.high - mapper.low) * n for picture in pictures]
    source.data = {**source.data, name: [np.clip(np.floor(one), 0, n - 1).astype(np.uint8) for one in share]}
    # With bounds at half steps, rounding cannot change a colour.
    mapper.low, mapper.high = -0.5, n - 0.5


class StructureError(Exception):
    """Two figures that differ in more than values."""


DEFAULT = "default"
"""Stands for a value that a document omits."""
Changes = dict[str, dict[str, Any]]
"""Properties as BokehJS reads them, by the model's id."""


@dataclass(frozen=True)
class Difference:
    """The properties of a figure that differ in another theme, or for another target."""

    before: Changes
    """Values of the first figure that its document omits."""
    after: Changes

    @classmethod
    def between(cls, one: Drawn, other: Drawn) -> "Difference":
        """Every property that differs. Raises :class:`StructureError` where one has models that the other lacks."""
        kinds = [[kind for _, kind, _ in drawn.attributes] for drawn in (one, other)]
        if kinds[0] != kinds[1]:
            raise StructureError(one.view.key)
        pairs = list(zip(one.attributes, other.attributes, strict=True))
        ids = {twin: model for (model, _, _), (twin, _, _) in pairs}
        before: Changes = {}
        after: Changes = {}
        for (model, _, values), (twin, _, others) in pairs:
            for name in {**values, **others}:
                # A document omits default values.
                value = values[name] if name in values else one.default(model, name)
                then = _renamed(others[name], ids) if name in others else other.default(twin, name)
                if value == then:
                    continue
                if _has_models(value) or _has_models(then):
                    raise StructureError(f"{one.view.key}: {name}")
                if name not in values:
                    before.setdefault(model, {})[name] = value
                after.setdefault(model, {})[name] = then
        return cls(before, after)

    @classmethod
    def by_colour(cls, one: Drawn, known: Mapping[str, str]) -> "Difference":
        """Every property with a colour in ``known``, with the other colour."""
        before: Changes = {}
        after: Changes = {}
        for model, _, values in one.attributes:
            for name, value in values.items():
                if _has_models(value):
                    continue
                then = (
                    palette_in(value, known) if name == "palette" else json.loads(_recoloured(json.dumps(value), known))
                )
                if then != value:
                    after.setdefault(model, {})[name] = then
            # A document is without values that are a property's default.
            for name in _colours(cast(Hashable, type(one.models[model]))) - values.keys():
                value = getattr(one.models[model], name)
                if isinstance(value, str) and known.get(value, value) != value:
                    before.setdefault(model, {})[name] = value
                    after.setdefault(model, {})[name] = known[value]
        return cls(before, after)

    def carried(self, one: Drawn, to: Drawn) -> "Difference | None":
        """The difference for a figure of the same view with more or fewer lanes: a value changes as the same value of
        the same property does in ``one``.

        None where this does not determine every property.
        """
        became: dict[tuple[str, str, str], set[str]] = {}
        for model, kind, values in one.attributes:
            changed = self.after.get(model, {})
            for name in {**values, **changed}:
                then = changed.get(name, values.get(name))
                value = json.dumps(values[name]) if name in values else DEFAULT
                became.setdefault((kind, name, value), set()).add(json.dumps(then))
        before: Changes = {}
        after: Changes = {}
        for model, kind, values in to.attributes:
            defaults = [name for of, name, value in became if of == kind and value == DEFAULT and name not in values]
            for name in [*values, *defaults]:
                if _has_models(values.get(name)):
                    continue
                text = json.dumps(values[name]) if name in values else DEFAULT
                found = became.get((kind, name, text))
                if found is None:
                    if "ndarray" in text:
                        return None
                    continue
                if len(found) > 1:
                    return None
                value = values[name] if name in values else to.default(model, name)
                then = json.loads(next(iter(found)))
                if then != value:
                    if name not in values:
                        before.setdefault(model, {})[name] = value
                    after.setdefault(model, {})[name] = then
        return Difference(before, after)


@cache
def _colours(kind: Any) -> frozenset[str]:
    """The names of the properties of a kind of model that hold colours."""
    return frozenset(name for name in kind.properties() if "color" in name)


class Turned(NamedTuple):
    """A figure for another target."""

    change: Difference
    data: dict[str, Any] | None
    tap: dict[str, Any] | None


def _recoloured(text: str, known: Mapping[str, str]) -> str:
    """A value as JSON, with the ``known`` colours replaced, in its texts, too."""
    # In one pass: the dark text has the colour of the light lines.
    return re.sub("#[0-9a-f]{6}", lambda found: known.get(found[0], found[0]), text)


def _attributes(node: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The id, the kind and the attributes of each model in a document, with references in place of models."""
    if isinstance(node, list):
        for part in node:
            yield from _attributes(part)
    elif isinstance(node, dict):
        if node.get("type") == "object" and "id" in node:
            found = node.get("attributes", {})
            yield node["id"], node["name"], {name: _referred(value) for name, value in found.items()}
        for part in node.values():
            yield from _attributes(part)


def _referred(node: Any) -> Any:
    if isinstance(node, list):
        return [_referred(part) for part in node]
    if isinstance(node, dict):
        if node.get("type") == "object" and "id" in node:
            return {"id": node["id"]}
        return {name: _referred(part) for name, part in node.items()}
    return node


def _renamed(node: Any, ids: dict[str, str]) -> Any:
    if isinstance(node, list):
        return [_renamed(part, ids) for part in node]
    if isinstance(node, dict):
        return {name: ids.get(part, part) if name == "id" else _renamed(part, ids) for name, part in node.items()}
    return node


def _has_models(node: Any) -> bool:
    if isinstance(node, list):
        return any(map(_has_models, node))
    return isinstance(node, dict) and ("id" in node or any(map(_has_models, node.values())))
