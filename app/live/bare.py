"""Five plots of plain Bokeh, fed what a page of the lab was fed: what ``bench`` holds the page against.

``bokeh serve app/live/bare.py --args FED RATE``: the arrays of frames, as ``tests.benchmarks.control`` keeps them,
and frames a second. Where the lab writes a frame into one message, here each column and range is set as Bokeh's guide
has it. Columns of two or more are a line through their first two, a single one is vertical lines.
"""

import json
import sys
from itertools import cycle

import numpy as np
from bokeh.io import curdoc
from bokeh.layouts import column
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

PLOTS = 5
SIZE = {"width": 400, "height": 250}


class Bare:
    """The page of one document."""

    def __init__(self, path: str, rate: float):
        with np.load(path) as fed:
            self._feeds = json.loads(str(fed["feeds"]))
            self._frames = np.split(fed["numbers"], np.cumsum(fed["lengths"])[:-1])
        self._rate, self._number = rate, 0
        self._plots = [figure(**SIZE) for _ in range(PLOTS)]
        self._counted = ColumnDataSource({"frame": [0]})
        self._plots[0].scatter("frame", "frame", source=self._counted, alpha=0)
        plots, ranges = cycle(self._plots), cycle(one for plot in self._plots for one in (plot.x_range, plot.y_range))
        self._targets = [
            next(ranges) if operation == "range" else self._drawn(next(plots), columns)
            for columns, operation, _ in self._feeds
        ]
        document = curdoc()
        document.add_root(column(*self._plots))
        document.on_event("document_ready", lambda _: self._begin(document))

    def _drawn(self, plot, columns):
        source = ColumnDataSource({name: [] for name in columns})
        if len(columns) > 1:
            plot.line(*columns[:2], source=source)
        else:
            plot.vspan(x=columns[0], source=source)
        return source

    def _begin(self, document):
        document.add_periodic_callback(self._frame, round(1000 / self._rate))

    def _frame(self):
        numbers, at = self._frames[self._number % len(self._frames)], 2
        while at < len(numbers):
            index, length = int(numbers[at]), int(numbers[at + 1])
            columns, operation, rollover = self._feeds[index]
            parts = numbers[at + 2 : at + 2 + length * len(columns)].reshape(len(columns), length)
            at += 2 + parts.size
            if operation == "range":
                self._targets[index].update(start=parts[0, 0], end=parts[0, 1])
            elif operation == "stream":
                self._targets[index].stream(dict(zip(columns, parts, strict=True)), rollover)
            else:
                self._targets[index].data = dict(zip(columns, parts, strict=True))
        self._number += 1
        # The last of a frame's messages.
        self._counted.data = {"frame": [self._number]}


if __name__.startswith("bokeh_app"):
    Bare(sys.argv[1], float(sys.argv[2]))
