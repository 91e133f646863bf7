"""The covariance of the columns: of the rows seen, as a method expects it, and another one."""

from typing import Any

import numpy as np
from bokeh.models import Label, LinearColorMapper

from sgmcmc_lab.app.views.base import Array, Data, Frame, View
from sgmcmc_lab.app.views.planes import LiveImage, signed
from sgmcmc_lab.app.views.theme import even_plot

GAP = 1.06
"""The start of the next square; each is of side 1."""


class Covariance(View):
    """Three squares on one scale, with the mean log density that each gives the held-out rows."""

    key = "covariance"
    title = "Covariance of the columns"
    hint = "below: held-out log density of each"
    requires = "factors"
    every = 6

    @classmethod
    def prepare(cls, model: Any) -> None:
        _ = model.shrunk

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        d = model.n_columns
        p = even_plot(colours, (0, 3 + 2 * (GAP - 1)), (-0.14, 1.12))
        seen = model.scatter / model.n_data
        other = model.shrunk if model.true_covariance is None else model.true_covariance
        titles = "rows seen", "method", "Ledoit–Wolf" if model.true_covariance is None else "true"
        self._most = float(np.abs(seen).max())
        mapper = LinearColorMapper(palette=signed(colours), low=-1.0, high=1.0)
        self._images = []
        for k, text in enumerate(titles):
            x = k * GAP
            p.add_layout(Label(x=x, y=1.02, text=text, text_font_size="12px", text_color=colours.faint))
            p.quad(x, x + 1, 1, 0, fill_color=None, line_color=colours.grid)
            self._images.append(LiveImage(self, p, text, mapper, (d, d), (x, x + 1), (0, 1), level="image"))
        self._fixed = {0: seen, 2: other}
        self._labels = []
        for k in range(3):
            label = Label(x=k * GAP, y=-0.13, text="", text_font_size="13px", text_color=colours.text)
            p.add_layout(label)
            self._labels.append(label)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        for k, image in enumerate(self._images):
            out |= image.data(self._sheet(self._fixed.get(k, lanes.snapshot()["covariance"])))
        return out

    def _sheet(self, covariance: Array) -> Array:
        # Rows of an image go upwards; a matrix is read downwards.
        return np.clip(covariance[:, ::-1] / self._most, -1.0, 1.0)

    def captions(self, lanes: Frame) -> dict[str, str]:
        """The score of each."""
        model, out = self.scene.target, {}
        for k, label in enumerate(self._labels):
            score = model.score(self._fixed.get(k, lanes.snapshot()["covariance"]))
            out[label.id] = f"{score:.2f}" if score > -1e6 else "no density"
        return out

    def words(self, lanes: Frame) -> str:
        """The meaning of the numbers."""
        return "held-out log density of the rows' own covariance, of the method's, and of the other"
