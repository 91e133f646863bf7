"""What views draw the lanes with: their markers and signs, labels, and round ends of axes."""

from typing import Any

import numpy as np
from bokeh.models import Label, Node

from app.views.base import View

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "star")
SIGNS = "●■▲◆▼★"
"""The same shapes as text."""
BRIEF = 20
"""Letters of a lane's name in a caption that says something more of it."""
LINE = 17
"""The height of a line of a caption, in pixels."""
FEWEST_LAGS = 20.0
"""An axis of lags shows at least so many."""


def brief(name: str) -> str:
    """A lane's name as a caption has room for it."""
    return name if len(name) <= BRIEF else f"{name[: BRIEF - 1].rstrip(' ,')}…"


def round_up(x: float) -> float:
    """The smallest of …, 1, 2, 5, 10, 20, … that is not below ``x`` > 0."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(next(power * step for step in (1, 2, 5, 10) if x <= power * step * (1 + 1e-9)))


def lane_labels(view: View, figure: Any, top: bool) -> list[Label]:
    """A label for each lane, with the lane's sign before it where there are several.

    They are lines at the top right of the figure, or at its lower left, above one more line.
    """
    colours, n = view.scene.colours, len(view.scene.lanes)
    labels = []
    for i in range(n):
        label = view.caption(figure, y=6 + LINE * (n - i))
        texts = [label]
        if n > 1:
            sign = view.caption(figure, y=label.y)
            sign.text, sign.text_color = SIGNS[i], colours.lanes[i]
            texts.append(sign)
            label.x = 26
        if top:
            for text in texts:
                text.x = Node(target="frame", symbol="right", offset=-text.x)
                text.y = Node(target="frame", symbol="top", offset=4 + LINE * i)
                text.text_align, text.text_baseline = "right", "top"
        labels.append(label)
    return labels
