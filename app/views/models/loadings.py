"""The loadings of the factors as a picture, beside those that made-up data were drawn with."""

from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Label, LinearColorMapper
from scipy.optimize import linear_sum_assignment

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, Data, Frame, View
from sgmcmc_lab.app.views.planes import LiveImage, signed
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers.models.factors.amari import amari

GAP = 2.0
"""Rows between the known loadings and those that are found; the labels of the two lie there."""


class Loadings(View):
    """Each row is a factor, each column one of the data's; factors from the one that explains most, or as the known."""

    key = "loadings"
    title = "Loadings W"
    hint = "a row: a factor; colour: its weight in a column"
    requires = "factors"
    every = 3
    tall = True

    def build(self) -> Any:
        colours, model = self.scene.colours, self.scene.target
        self._known = model.truth
        n, columns = 0 if self._known is None else self._known.shape[1], model.n_columns
        self._n = max(model.n_factors, n)
        p = plot(colours, "column of the data", "factor", (0, columns), (0, self._n + (n + 2 * GAP if n else 0.0)))
        p.grid.grid_line_color = None
        p.yaxis.visible = False
        p.xaxis.ticker = FixedTicker(ticks=list(range(0, columns + 1, 10 if columns > 20 else 2)))
        mapper = LinearColorMapper(palette=signed(colours), low=-1.0, high=1.0)
        self._image = LiveImage(
            self, p, "loadings", mapper, (columns, self._n), (0, columns), (0, self._n), level="image"
        )
        if self._known is not None:
            bottom = self._n + GAP
            sheet = sheet_of(self._known, n)
            p.image(image=[sheet.T], x=0, y=bottom, dw=columns, dh=n, color_mapper=mapper, level="image")
            for y, text in ((self._n, "found, matched to the known ones in order"), (bottom + n, "known")):
                p.add_layout(Label(x=0, y=y + 0.15, text=text, text_font_size="12px", text_color=colours.faint))
        self._label = self.caption_above(p, 1)
        return p

    def compute(self, lanes: Frame) -> Data:
        seen = lanes.snapshot()
        return self._image.data(sheet_of(in_order(seen["W"], seen["explained"], self._known), self._n))

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How many factors are in use, and how far the loadings are from the known ones."""
        found = lanes[lanes.shown].run.chains[0]
        used = found.method.follow(found.model, found.state)[0]
        text = f"{self.scene.lanes[lanes.shown]}: {used:.1f} factors in use"
        if self._known is not None:
            text += f", Amari error {amari(lanes.snapshot()['W'], self._known):.3f}"
        return {self._label.id: text}

    def words(self, lanes: Frame) -> str:
        """The column in which each of the largest factors has most weight."""
        w = lanes.snapshot()["W"]
        order = np.argsort(-lanes.snapshot()["explained"], kind="stable")[:MAX_NAMED]
        names = self.scene.target.names
        return "largest factors, by their main column: " + ", ".join(names[np.abs(w[:, k]).argmax()] for k in order)


def sheet_of(w: Array, n: int) -> Array:
    """The first ``n`` factors as an image, the first on top, (D, n), beside the largest loading."""
    sheet = np.zeros((len(w), n))
    kept = w[:, :n]
    sheet[:, n - kept.shape[1] :] = kept[:, ::-1] / max(np.abs(kept).max(initial=0.0), 1e-12)
    return sheet


def in_order(w: Array, explained: Array, known: Array | None) -> Array:
    """Factors by what they explain, with the sign that makes their sum positive; where some are known, first those that
    are most alike them, in the order of these.
    """
    order = np.argsort(-explained, kind="stable")
    w = w[:, order] * np.where(w[:, order].sum(axis=0) < 0, -1.0, 1.0)
    if known is None or not w.shape[1]:
        return w
    alike = known.T @ w / np.maximum(np.sqrt((known**2).sum(axis=0)[:, None] * (w**2).sum(axis=0)), 1e-300)
    rows, columns = linear_sum_assignment(-alike)
    first = np.zeros_like(known)
    first[:, rows] = w[:, columns]
    return np.hstack([first, np.delete(w, columns, axis=1)])
