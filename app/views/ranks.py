"""The ranks of each chain's draws among those of all chains of its lane."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data
from sgmcmc_lab.app.views.history import OfHistory
from sgmcmc_lab.app.views.marks import lane_labels, round_up
from sgmcmc_lab.app.views.theme import DASHES, FINE, plot
from sgmcmc_lab.samplers.diagnostics import ranks
from sgmcmc_lab.samplers.running_statistics import WATCHED

SHOWN_CHAINS = 4
"""Chains of each of several lanes; of one lane all that are watched are shown."""
EDGES = np.repeat(np.arange(ranks.BINS + 1) / ranks.BINS, 2)[1:-1]
LEVEL = 0.99


class Counts(NamedTuple):
    """The rank histograms of a lane's chains."""

    counts: NDArray[np.int64]
    """(chains, bins)."""
    band: tuple[float, float]

    @property
    def even(self) -> float:
        """The count of a bin where all are the same."""
        return self.counts.sum() / self.counts.size


class Ranks(OfHistory):
    """Rank histograms: every chain's is even where the chains agree (Vehtari et al. 2021)."""

    key = "ranks"
    title = "Rank plot"
    hint = "each chain's ranks; grey: 99 % for i.i.d. draws"
    help = (
        "All draws of a lane's chains are ranked together, from 0, the smallest, to 1. Each line is the histogram of one chain's ranks, relative to an even one. "
        "Chains that agree have lines near 1. A slope says that a chain lies to one side of the others, a ∪ that it is wider, a hump that it is narrower. "
        "The grey band holds 99 % of the counts of independent, identically distributed (i.i.d.) draws; correlated draws leave it more often."
    )

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        name = scene.target.column_names[scene.coordinate]
        p = plot(colours, f"rank of {name}, as a share of all", "rel. frequency", (0.0, 1.0), (0.0, 2.0))
        self.moving_range("y", p.y_range)
        band = self.feed("band", "x", "low", "high")
        band.data = {"x": np.array([0.0, 1.0]), "low": np.ones(2), "high": np.ones(2)}
        p.varea(x="x", y1="low", y2="high", source=band, fill_color=colours.faint, fill_alpha=0.3)
        p.line([0.0, 1.0], [1.0, 1.0], line_color=colours.faint, line_dash="dotted")
        self._shown = WATCHED if len(scene.lanes) == 1 else SHOWN_CHAINS
        for i, _ in enumerate(scene.lanes):
            for c in range(self._shown):
                source = self.feed(f"lane {i} chain {c}", "x", "y")
                p.line(
                    "x",
                    "y",
                    source=source,
                    line_color=colours.lanes[i],
                    line_width=FINE if c else 2 * FINE,
                    line_dash=DASHES[i],
                )
        self.labels = lane_labels(self, p)
        return p

    def read(self, history: Array) -> Counts | str:
        chains, n = history.shape[:2]
        if chains < 2:
            return "ranks need 2 chains"
        return Counts(ranks.counts(history[..., self.scene.coordinate]), ranks.band(chains, n, LEVEL))

    def drawn(self) -> Data:
        out: Data = {}
        highest, widest = 2.0, (1.0, 1.0)
        for i, found in self.found.items():
            heights = found.counts / found.even if isinstance(found, Counts) else np.zeros((0, ranks.BINS))
            for c in range(self._shown):
                there = c < len(heights)
                out[f"lane {i} chain {c}"] = (EDGES, np.repeat(heights[c], 2)) if there else (np.zeros(0), np.zeros(0))
            if isinstance(found, Counts):
                low, high = np.array(found.band) / found.even
                widest = (min(widest[0], low), max(widest[1], high))
                highest = max(highest, float(heights.max()))
        out["band"] = np.array([0.0, 1.0]), np.full(2, widest[0]), np.full(2, widest[1])
        out["y"] = (np.array([0.0, round_up(highest)]),)
        return out

    def said(self, found: Counts) -> str:
        chains, bins = found.counts.shape
        low, high = found.band
        outside = int(((found.counts < low) | (found.counts > high)).sum())
        return f"{chains} × {found.counts[0].sum():,} draws, {outside} of {chains * bins} counts outside the band"
