"""Marks of the views of models: colours of topics and communities, texts whose numbers frames send, names of
methods.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from bokeh.models import CustomJSTransform, Label, LinearColorMapper
from bokeh.palettes import Category20_20

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, View
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.models.agreement import Labels, adjusted_rand, purity

# The strong ones first, then their pale twins.
PALETTE = (*Category20_20[0::2], *Category20_20[1::2])
NPMI = (
    "Coherence: how often two of a topic's ten most likely words share a document, compared with independent words. NPMI of a pair is log(P(i, j)/(P(i) P(j)))/(−log P(i, j)), averaged over the 45 pairs: "
    "1 for words that always occur together, 0 for independent words, −1 for words that never do. P is a share of the training documents; for a stream, of the test documents. "
    "NPMI is meant to agree with people's judgement of topics. Perplexity measures prediction: the two can disagree."
)
"""The coherence of a topic, for a first-time reader."""


def group_colour(column: str) -> dict[str, Any]:
    """The colour of a topic or community by its number, which the column holds."""
    n = len(PALETTE)
    cyclic = CustomJSTransform(
        args={"mapper": LinearColorMapper(palette=list(PALETTE), low=-0.5, high=n - 0.5)},
        v_func=f"return mapper.v_compute(Float64Array.from(xs, (x) => x % {n}))",
    )
    return {"field": column, "transform": cyclic}


def text_of(column: str, texts: Sequence[str]) -> dict[str, Any]:
    """The text with the number that the column holds."""
    chosen = CustomJSTransform(args={"texts": list(texts)}, v_func="return Array.from(xs, (i) => texts[i] ?? '')")
    return {"field": column, "transform": chosen}


def method_labels(view: View, figure: Any) -> list[Label]:
    """A label for each method, in its colour, in lines above the figure's frame: curves go everywhere in it."""
    scene = view.scene
    labels = [view.caption_above(figure, len(scene.lanes), i) for i, _ in enumerate(scene.lanes)]
    for label, colour in zip(labels, scene.colours.lanes, strict=False):
        label.text_color = colour
    return labels


class ModelGlobe(ABC):
    """A globe's part that is the same of all models: points of the data are spots in its shade. All pages of the model
    have it, and nobody moves anything on it.
    """

    tall = True
    spot_concentration: ClassVar[float]
    """The concentration of a point's spot in the globe's shade."""

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return True

    def folds(self) -> bool:
        return False

    def take_touches(self, figure: Any, point: str = "", **args: Any) -> None:
        """Unknowns of a model are put nowhere by hand."""

    @abstractmethod
    def spots(self) -> Array:
        """The points, (n, 3), of length 1."""

    def log_density(self, points: Array) -> Array:
        """The spots, which run into each other, relative to the darkest place."""
        near = np.exp(self.spot_concentration * (points @ self.spots().T - 1)).sum(axis=-1)
        return np.log(near / near.max() + 1e-12)


def on_globe(points: Array) -> Array:
    """Points (n, 3), scaled to length 1."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def agreement(found: Labels, known: Labels | None) -> str:
    """The end of a caption: how well clusters agree with known groups, on a line of its own; empty without groups."""
    if known is None:
        return ""
    rand, pure = adjusted_rand(found, known), purity(found, known)
    return f"; known groups: {len(np.unique(known))}\nadjusted Rand {rand:.3f}, purity {pure:.3f}"


def largest_clusters(sizes: Array) -> str:
    """How many clusters there are, and the sizes of the first ones."""
    return f"clusters: {len(sizes)}; points in the largest: " + ", ".join(f"{n:.0f}" for n in sizes[:MAX_NAMED])


def shortened(text: str, length: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
