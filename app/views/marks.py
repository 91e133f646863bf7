"""The marks with which views draw the lanes: their markers and signs, labels, and round ends of axes."""

from typing import Any
from unicodedata import combining

import numpy as np
from bokeh.models import BasicTicker, Label, Node, NumeralTickFormatter

from sgmcmc_lab.app.views.base import View
from sgmcmc_lab.samplers.compile import jit

MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "star")
SIGNS = "●■▲◆▼★"
"""The same shapes as text."""
BRIEF = 24
"""Letters of a lane's name in half a figure's width."""
LONG = 64
"""Letters of a caption in the width of a figure: it gets smaller type there."""
SIGN = 18
"""The width of a lane's sign in a caption, in pixels."""
LEAST = {"seconds": 1e-3}
"""The length of an axis of a run that has made one step, where that is not 1."""
FEWEST_LAGS = 20.0
"""An axis of lags shows at least so many."""


def brief(name: str, most: int = BRIEF) -> str:
    """A lane's name in at most so many letters."""
    return name if _letters(name) <= most else f"{name[: most - 1].rstrip(' ,')}…"


def is_brief(name: str) -> bool:
    """Whether it has so few letters as it is."""
    return _letters(name) <= BRIEF


def _letters(name: str) -> int:
    """A hat on a letter is none of its own."""
    return sum(not combining(letter) for letter in name)


def share(x: float) -> str:
    """A share as a caption says it."""
    return f"{min(x, 1.0):.0%}" if x >= 0.01 else "under 1%"


def round_up(x: float) -> float:
    """The smallest of …, 1, 2, 5, 10, 20, … that is not below ``x`` > 0."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(next(power * step for step in (1, 2, 5, 10) if x <= power * step * (1 + 1e-9)))


def number_axis(axis: Any) -> None:
    """Let an axis of steps, of data or of seconds have few ticks, with as many digits as the shortest run needs."""
    axis.ticker = BasicTicker(desired_num_ticks=4, num_minor_ticks=0)
    axis.formatter = NumeralTickFormatter(format="0,0.[000000]")


def diverged(run: Any) -> str:
    """How many transitions of a lane's statistics diverged, and of which ones the places are known; nothing where none
    did.
    """
    found = round(run.counts[jit.DIVERGED]) if run.sampler.diverges else 0
    known = f"; the last {jit.N_MARKS} are marked" if found > jit.N_MARKS else ""
    return f"{found:,} of {run.statistics.n_draws:,} transitions diverged{known}" if found else ""


def no_draws(run: Any) -> str:
    """Why a picture of a lane's draws is empty; nothing where it is not."""
    if run.statistics.n_draws:
        return ""
    return "burn-in: no draws yet" if 0 < run.steps <= run.burn_in else "no draws yet"


def run_window(start: float, end: float, axis: str) -> tuple[float, float]:
    """The ends of an axis of the run that shows all from ``start`` to ``end``, and some more; of a single step a whole
    one.
    """
    return start, end + (0.03 * (end - start) if end > start else LEAST.get(axis, 1.0))


def lane_labels(view: View, figure: Any, more: int = 0, columns: int = 1) -> list[Label]:
    """A label for each lane, with the lane's sign before it where there are several, in lines above the figure's frame.

    Below them is room for some ``more`` lines.
    """
    colours, n = view.scene.colours, len(view.scene.lanes)
    lines, labels = -(-n // columns) + more, []
    for i in range(n):
        line, column = divmod(i, columns)
        label = view.caption_above(figure, lines, line)
        # Until there is something to be said of it.
        label.text = view.scene.lanes[i] if n > 1 else ""
        if n > 1:
            sign = view.caption_above(figure, lines, line)
            sign.text, sign.text_color = SIGNS[i], colours.lanes[i]
            symbol = "center" if column else "left"
            sign.x, label.x = (Node(target="canvas", symbol=symbol, offset=8 + wide) for wide in (0, SIGN))
        labels.append(label)
    return labels
