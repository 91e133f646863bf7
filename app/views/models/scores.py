"""The held-out score of every method, on one axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, VSpan

from sgmcmc_lab.app.views.base import SCORES, Array, Data, Frame, Position, View
from sgmcmc_lab.app.views.models.batch import chooses
from sgmcmc_lab.app.views.models.marks import method_labels
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.models import MODELS, Model
from sgmcmc_lab.samplers.models.run import ModelChain, Score


def curve(seeds: Sequence[Sequence[Score]], axis: str) -> tuple[Array, Array, Array, Array]:
    """(x, mean, lowest, highest) over the scores of the seeds, at the steps that all of them have reached.

    All seeds are scored at the same steps. The first score comes before the first step, which a log axis cannot show.
    """
    n = min(map(len, seeds))
    x = np.array([[_position(score).on(axis) for score in scores[:n]] for scores in seeds]).mean(axis=0)
    value = np.array([[score.value for score in scores[:n]] for scores in seeds])
    there = x > 0
    return x[there], value.mean(axis=0)[there], value.min(axis=0)[there], value.max(axis=0)[there]


def _position(score: Score) -> Position:
    return Position(score.step, float("nan"), score.data_seen, score.seconds)


def ends(values: Sequence[float], high_is_good: bool) -> tuple[float, float]:
    """The ends of the score's axis: round numbers around all values, so that they move rarely."""
    low, high = min(values), max(values)
    step = 10.0 ** np.floor(np.log10(max(high - low, 0.1 if high_is_good else 1.0)))
    first, last = np.floor(low / step), np.ceil(high / step)
    return round(float(first * step), 9), round(float(max(last, first + 1) * step), 9)


def title_of(model: type[Model]) -> str:
    """The name of the model's score, as a title."""
    return model.score_name[:1].upper() + model.score_name[1:]


def chosen(lanes: Frame, i: int, axis: str) -> tuple[float, int] | None:
    """Where the first chain of a method chose its batch size, and which; None where it has not, or does not."""
    if not chooses(lanes[i]):
        return None
    seen, scores = lanes.snapshot(i), lanes[i].run.chains[0].scores
    after, size = int(seen["chosen_after"][0]), int(seen["chosen"][0])
    if not size:
        return None
    return float(np.interp(after, [s.step for s in scores], [_position(s).on(axis) for s in scores])), size


class Scores(View):
    """The score of the running average over the draws, on data that no method has seen; one curve for each method.

    Where a method chooses its batch size, a dotted line parts the trials of the sizes from the sampling after them.
    """

    key = "scores"
    title = "Held-out score"
    requires = SCORES

    @classmethod
    def title_for(cls, experiment: Experiment) -> str:
        return title_of(MODELS[experiment.target.key])

    @property
    def high_is_good(self) -> bool:
        """Whether curves should rise."""
        return bool(self.scene.target.higher_is_better)

    def scores(self, chain: ModelChain) -> Sequence[Score]:
        """The scores of a chain."""
        return chain.scores

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        self.title = title_of(type(scene.target))
        self.hint = f"{'higher' if self.high_is_good else 'lower'} is better"
        # Its title says what is upwards.
        p = plot(colours, scene.axis_label, "", (1, 100), (0, 1), x_axis_type="log")
        # Bokeh labels the digits between powers of ten where an axis has few of them; they overlap.
        p.xaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-4, 11)])
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._shown, self._ends = (0.0, 0.0), (0.0, 0.0)
        for i, _ in enumerate(scene.lanes):
            colour = colours.lanes[i]
            band = self.feed(f"band {i}", "x", "low", "high")
            p.varea("x", "low", "high", source=band, fill_color=colour, fill_alpha=0.2)
            line = self.feed(f"method {i}", "x", "y")
            p.line("x", "y", source=line, line_color=colour, line_width=2.5, line_dash=DASHES[i])
            p.scatter("x", "y", source=line, color=colour, size=3)
            marks = self.feed(f"marks {i}", "x")
            p.add_glyph(marks, VSpan(x="x", line_color=colour, line_dash="dashed", line_alpha=0.6))
            sampling = self.feed(f"sampling {i}", "x")
            p.add_glyph(sampling, VSpan(x="x", line_color=colour, line_dash="dotted", line_width=2))
        self._labels = method_labels(self, p)
        return p

    def compute(self, lanes: Frame) -> Data:
        out: Data = {}
        shown_x, values = [], []
        axis = self.scene.axis
        for i, lane in enumerate(lanes):
            x, mean, low, high = curve([self.scores(chain) for chain in lane.run.chains], axis)
            out[f"method {i}"] = (x, mean)
            out[f"marks {i}"] = (np.array([at for at in lane.marks if at > 0]),)
            found = chosen(lanes, i, axis)
            out[f"sampling {i}"] = (np.array([found[0]] if found else []),)
            if len(lane.run.chains) > 1:
                out[f"band {i}"] = (x, low, high)
            if len(x):
                shown_x += [x[0], x[-1]]
                values += [low.min(), high.max()]
        if shown_x:
            # The axis ends at powers of ten, so that it moves rarely.
            shown = 10.0 ** np.floor(np.log10(min(shown_x))), 10.0 ** np.ceil(np.log10(max(shown_x) * 1.001))
            if shown != self._shown:
                self._shown = shown
                out["x"] = (np.array(shown),)
        if values and (axis_ends := ends(values, self.high_is_good)) != self._ends:
            self._ends = axis_ends
            out["y"] = (np.array(axis_ends),)
        return out

    def captions(self, lanes: Frame) -> dict[str, str]:
        """Each method's score now."""
        out = {}
        for i, lane in enumerate(lanes):
            last = [scores[-1].value for chain in lane.run.chains if (scores := self.scores(chain))]
            if last:
                value = f"{np.mean(last):.3f}" if self.high_is_good else f"{float(f'{np.mean(last):.4g}'):,g}"
                found = chosen(lanes, i, self.scene.axis)
                kept = f", with m = {found[1]:,} from the dots on" if found else ""
                out[self._labels[i].id] = f"{self.scene.lanes[i]}  {value}{kept}"
        return out
