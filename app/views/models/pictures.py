"""The topics of the synthetic corpus as what they are: pictures of bars."""

from typing import Any

import numpy as np
from bokeh.models import LinearColorMapper

from sgmcmc_lab.app.views.base import Array, Data, Frame, View
from sgmcmc_lab.app.views.models.adjacency import shades
from sgmcmc_lab.app.views.planes import LiveImage
from sgmcmc_lab.app.views.theme import even_plot
from sgmcmc_lab.samplers import Experiment

COLUMNS = 5
SHOWN = 20
"""Topics in the picture."""


FOUND = 0.2
"""A true topic is found where some topic's probabilities differ from its own by at most this in total variation."""


class Pictures(View):
    """Each word is a pixel of a square, each topic a picture; the documents were drawn from rows and columns."""

    key = "pictures"
    title = "Topics as pictures"
    hint = "true topics are the rows and columns"
    requires = "topics"
    every = 2

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return experiment.target.values().get("corpus") in ("bars", "stream")

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        self._n = min(model.n_topics, SHOWN)
        self._side = max(int(number) for word in model.vocabulary for number in word.split(","))
        pixels = np.array([[int(number) - 1 for number in word.split(",")] for word in model.vocabulary])
        self._rows, self._columns = pixels[:, 0], pixels[:, 1]
        down = -(-self._n // COLUMNS)
        cells = (COLUMNS * (self._side + 1), down * (self._side + 1))
        # Below the pictures is room for a line of text.
        p = even_plot(colours, (-1, cells[0]), (cells[1] + 0.15 * cells[1], -1))
        mapper = LinearColorMapper(
            palette=shades(colours.grid, colours.lanes[0]), low=0.0, high=1.0, low_color=colours.surface
        )
        self._image = LiveImage(self, p, "topics", mapper, cells, (0, cells[0]), (0, cells[1]), level="image")
        self._cells = cells
        self._label = self.caption(p, y=2)
        return p

    def compute(self, lanes: Frame) -> Data:
        return self._image.data(self.sheet(lanes.snapshot()["phi"][: self._n]))

    def sheet(self, phi: Array) -> Array:
        """All topics on one sheet, (across, down); each beside its own largest probability, −1 between them."""
        sheet = np.full(self._cells, -1.0)
        for k, row in enumerate(phi):
            down, across = divmod(k, COLUMNS)
            step = self._side + 1
            sheet[across * step + self._columns, down * step + self._rows] = row / max(row.max(), 1e-300)
        return sheet

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many of the topics that the documents were drawn from have been found."""
        true = self.scene.target.true_topics
        if true is None:
            return {}
        distance = np.abs(true[:, None] - lanes.snapshot()["phi"]).sum(axis=2) / 2
        found = int((distance.min(axis=1) <= FOUND).sum())
        return {self._label.id: f"true topics found: {found} of {len(true)}"}
