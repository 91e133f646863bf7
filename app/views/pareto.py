"""Pareto k̂ of each row of a table: whether the posterior without the row can be told from the draws with it."""

from typing import Any, NamedTuple

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data
from sgmcmc_lab.app.views.history import OfHistory
from sgmcmc_lab.app.views.marks import MARKERS, lane_labels
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.diagnostics import pareto
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior

MAX_ROWS = 300
"""The most rows that are used, evenly spread over the table: each takes about a millisecond."""
MOST_DRAWS = 2_000
FEWEST_DRAWS = 100
"""The least number of draws: with fewer, the largest weights are too few for a fit."""


class Shapes(NamedTuple):
    """k̂ of rows."""

    values: Array
    elpd: float
    limit: float
    n_draws: int


class Pareto(OfHistory):
    """k̂ of each row, from importance sampling by 1/p(row | θ) (Vehtari, Gelman & Gabry 2017)."""

    key = "pareto"
    title = "Pareto k̂ of rows"
    hint = "dashed: above it, leaving out a row is unreliable"
    help = (
        "Leave-one-out cross-validation needs the posterior without each row; importance sampling estimates it from the draws with all rows. "
        "Pareto k̂ tells how heavy the tail of the weights is. A row above the dashed line moves the posterior by itself: it may be an outlier, or the model may not fit it. "
        "elpd is the sum of the log predictive densities of rows left out: the larger, the better the model predicts."
    )
    growth = 1.5
    of_column = False

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return issubclass(TARGETS[experiment.target.key], TypedPosterior)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        n = scene.target.n_data
        self._rows = np.linspace(0, n - 1, min(n, MAX_ROWS)).round().astype(int)
        p = plot(colours, "row", "Pareto k̂", (0.0, n + 1.0), (-0.5, 1.0))
        self.moving_range("y", p.y_range)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "y")
            # A lane of few draws has a lower one.
            limit = self.feed(f"limit {i}", "y")
            p.hspan(y="y", source=limit, line_color=colours.exact, line_width=1.5, line_dash="dashed")
            p.scatter("x", "y", source=source, size=6, marker=MARKERS[i], color=colours.lanes[i], alpha=0.8)
        self.labels = lane_labels(self, p)
        return p

    def read(self, history: Array) -> Shapes | str:
        draws = history.reshape(-1, history.shape[-1])
        most = min(MOST_DRAWS, pareto.MOST_NUMBERS // self.scene.target.n_data)
        some = draws[np.linspace(0, len(draws) - 1, min(len(draws), max(most, FEWEST_DRAWS))).astype(int)]
        if len(some) < FEWEST_DRAWS:
            return f"k̂ needs {FEWEST_DRAWS} draws"
        with np.errstate(all="ignore"):
            found = self.scene.target.log_likelihood(some)[:, self._rows]
        if not np.isfinite(found).all():
            return "a row has no finite density at some draws"
        values, elpd = pareto.shapes(found)
        return Shapes(values, elpd, pareto.limit(len(some)), len(some))

    def drawn(self) -> Data:
        out: Data = {}
        low, high = -0.5, 1.0
        for i, found in self.found.items():
            out[f"lane {i}"], out[f"limit {i}"] = (np.zeros(0), np.zeros(0)), (np.zeros(0),)
            if isinstance(found, Shapes):
                # If all weights of a row are equal, no tail can be fitted.
                good = np.isfinite(found.values)
                out[f"lane {i}"] = self._rows[good] + 1.0, found.values[good]
                out[f"limit {i}"] = (np.array([found.limit]),)
                low, high = min(low, *found.values[good] - 0.1), max(high, *found.values[good] + 0.1)
        out["y"] = (np.array([low, high]),)
        return out

    def said(self, found: Shapes) -> str:
        k = int(np.nanargmax(found.values)) if np.isfinite(found.values).any() else 0
        above = int((found.values > found.limit).sum())
        elpd = f", elpd {found.elpd:.1f}" if len(self._rows) == self.scene.target.n_data else ""
        return (
            f"k̂ up to {found.values[k]:.2f} (row {self._rows[k] + 1}), {above} of {len(self._rows)} rows above "
            f"{found.limit:.2g}{elpd}"
        )
