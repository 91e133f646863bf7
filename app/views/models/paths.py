"""The coefficients of a lasso against λ, with credible bands, beside the lasso's own."""

import time
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Span

from sgmcmc_lab.app.views.base import MAX_NAMED, Array, Data, Frame, Scene, View
from sgmcmc_lab.app.views.models.marks import PALETTE, shortened, text_of
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.models.sparse import Sparse
from sgmcmc_lab.samplers.models.sparse.paths import Point, Posterior
from sgmcmc_lab.samplers.parameters import declared

SHOWN = 10
"""The most coefficients that are drawn, the first ones."""
N_LAMBDAS, SWEEPS, AT_ONCE = 25, 3000, 100
"""Along the axis; sweeps at each λ after the burn-in, and those between two looks at the clock."""
WORK_SECONDS = 0.1


def shrinkages() -> list[float]:
    """All λ, evenly on the log axis, in the order in which they fill it."""
    low, high = dict(declared(Sparse))["shrinkage"].bounds
    values = np.geomspace(low, high, N_LAMBDAS)
    order = sorted(range(N_LAMBDAS), key=lambda k: (f"{k:05b}"[::-1], k))
    return [float(values[k]) for k in order]


def apart(values: Array, least: float) -> list[int]:
    """The largest of these, each at least so far from the others: names there do not overlap."""
    out: list[int] = []
    for k in map(int, np.argsort(-np.abs(values), kind="stable")):
        if all(abs(values[k] - values[j]) >= least for j in out):
            out.append(k)
    return out


class Paths(View):
    """Medians and bands from 5 to 95 % of the posterior at each λ, and the mode as the lasso has it (dashed).

    They need other runs at other λ, by blocked Gibbs, which go on while the view is looked at.
    """

    key = "paths"
    title = "Coefficients against λ"
    hint = "band: 5 to 95 %; dashed: lasso"
    requires = "sparse"
    tall = True

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        """A probit lasso has no path; for an uploaded file the caption says whether it is one."""
        return experiment.target.values()["data"] != "made"

    def __init__(self, scene: Scene, before: View | None = None):
        self._points: dict[float, Point] = {}
        self._left = [] if scene.target.probit else shrinkages()
        self._posterior: Posterior | None = None
        if (
            isinstance(before, Paths)
            and before.scene.target.data == scene.target.data
            and before.scene.target.uploaded is scene.target.uploaded
        ):
            self._points = dict(before._points)
            self._left = [x for x in self._left if x not in self._points]
        self._fresh = True
        super().__init__(scene, before)

    def build(self) -> Any:
        model, colours = self.scene.target, self.scene.colours
        low, high = dict(declared(Sparse))["shrinkage"].bounds
        p = plot(colours, "shrinkage λ", "coefficient w", (low / 1.1, high * 1.1), (-1, 1), x_axis_type="log")
        p.xaxis.ticker = FixedTicker(ticks=[0.1, 1, 10, 100])
        self.moving_range("y", p.y_range)
        self._names = [shortened(name, 16) for name in model.names[:SHOWN]]
        for colour, name in zip(PALETTE, self._names, strict=False):
            band, line = (
                self.feed(f"band of {name}", "x", "low", "high"),
                self.feed(f"path of {name}", "x", "y", "lasso"),
            )
            p.varea("x", "low", "high", source=band, fill_color=colour, fill_alpha=0.15)
            p.line("x", "y", source=line, line_color=colour, line_width=2)
            p.line("x", "lasso", source=line, line_color=colour, line_width=1.5, line_dash="dashed")
        names = self.feed("names", "x", "y", "name")
        p.text(
            "x",
            "y",
            text=text_of("name", self._names),
            source=names,
            text_color=colours.text,
            text_font_size="12px",
            x_offset=6,
            text_baseline="middle",
        )
        p.add_layout(Span(location=model.shrinkage, dimension="height", line_color=colours.faint, line_dash="dotted"))
        self._label = self.caption_above(p, 2)
        return p

    def background(self, lanes: Frame) -> bool:
        """The next sweeps; True where a λ is done."""
        if not self._left and self._posterior is None:
            return False
        began = time.perf_counter()
        if self._posterior is None:
            self._posterior = Posterior(self.scene.target, self._left.pop(0), SWEEPS)
        while self._posterior.left and time.perf_counter() - began < WORK_SECONDS:
            self._posterior.advance(AT_ONCE)
        if self._posterior.left:
            return False
        found, self._posterior = self._posterior.point(), None
        self._points[found.shrinkage] = found
        self._fresh = True
        return True

    def compute(self, lanes: Frame) -> Data:
        if not self._fresh or len(self._points) < 2:
            return {}
        self._fresh = False
        points = [self._points[x] for x in sorted(self._points)]
        x = np.array([point.shrinkage for point in points])
        quantiles = np.array([point.quantiles for point in points])
        lasso = np.array([point.lasso for point in points])
        out: Data = {}
        for k, name in enumerate(self._names):
            out[f"band of {name}"] = x, quantiles[:, 0, k], quantiles[:, 2, k]
            out[f"path of {name}"] = x, quantiles[:, 1, k], lasso[:, k]
        low, high = float(quantiles[..., :SHOWN].min()), float(quantiles[..., :SHOWN].max())
        room = 0.05 * max(high - low, 1e-9)
        out["y"] = (np.array([low - room, high + room]),)
        named = apart(quantiles[0, 1, :SHOWN], 0.08 * (high - low))
        out["names"] = np.full(len(named), x[0]), quantiles[0, 1, named], np.array(named, dtype=float)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """How far it is, and what the nearest λ says."""
        if self.scene.target.probit:
            return {self._label.id: "binary responses: a probit lasso, for which no path is drawn"}
        if not self._points:
            return {self._label.id: f"simulating: 0 of {N_LAMBDAS} values of λ"}
        done = len(self._points)
        state = f"simulating: {done} of {N_LAMBDAS} values of λ" if done < N_LAMBDAS else f"{SWEEPS:,} sweeps at each λ"
        near = min(self._points.values(), key=lambda p: abs(np.log(p.shrinkage / self.scene.target.shrinkage)))
        zeros = int((near.lasso == 0).sum())
        return {self._label.id: f"{state}\nat λ = {near.shrinkage:.3g} the lasso has {zeros} of {len(near.lasso)} at 0"}

    def words(self, lanes: Frame) -> str:
        """The coefficients at the smallest λ."""
        if not self._points:
            return ""
        first = self._points[min(self._points)]
        said = ", ".join(
            f"{name} {value:.2g}"
            for name, value in list(zip(self._names, first.quantiles[1], strict=False))[:MAX_NAMED]
        )
        return f"medians at λ = {first.shrinkage:.3g}: {said}"
