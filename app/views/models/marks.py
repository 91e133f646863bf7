"""Marks of the views of models: colours of topics and communities, texts whose numbers frames send, names of
methods.
"""

from collections.abc import Sequence
from typing import Any

from bokeh.models import CustomJSTransform, Label, LinearColorMapper
from bokeh.palettes import Category20_20

from sgmcmc_lab.app.views.base import View

# The strong ones first, then their pale twins.
PALETTE = (*Category20_20[0::2], *Category20_20[1::2])


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


def shortened(text: str, length: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
