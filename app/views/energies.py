"""The energies of the draws against those of exact draws: all coordinates in one number."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels, no_draws
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.targets.at_temperature import AtTemperature
from sgmcmc_lab.samplers.targets.base import LINE, ByTarget, Target

BARS = 40
DRAWS = 20_000
"""Exact draws, of targets without data."""
WORK = 2_000_000
"""Energies of exact draws, times the data points that each looks at: some 30 ms."""
FEWEST = 1000
"""The least number of exact draws. A target on which they cost more than :data:`WORK` has no such picture."""
FRAME_WORK = 100_000
"""The energies of a lane's draws in one frame, times the data points of each."""
EDGES = 0.0005, 0.9975
"""The quantiles of the exact energies at which the axis ends. The upper one has more room beside it."""


class Exact(NamedTuple):
    """The energies of exact draws."""

    edges: Array
    """The edges of the bars."""
    density: Array
    mean: float
    error: float
    """The standard error of the mean."""


_SAMPLED: ByTarget[None, Array] = ByTarget()
_EXACT: ByTarget[None, Exact] = ByTarget()


def add_steps(view: View, figure: Any, name: str, lane: int, data: tuple[Array, Array], width: float = 2) -> None:
    """A histogram's outline in a lane's colour, with its feed, of x at the bars' centres and y."""
    source = view.feed(name, "x", "y")
    # Bokeh's step glyph loops for ever over an empty source.
    source.data = dict(zip("xy", data, strict=True))
    look = {"line_color": view.scene.colours.lanes[lane], "line_width": width, "line_dash": DASHES[lane]}
    figure.step(x="x", y="y", source=source, mode="center", **look)


def energy_label(target: Target) -> str:
    """The name of the energies that :func:`sampled_energies` returns."""
    return "U(θ)/T" if isinstance(target, AtTemperature) else "U(θ)"


def sampled_energies(target: Target) -> Array:
    """U of exact draws."""
    rows = max(len(target.data()), 1)
    return _SAMPLED.of(target, None, lambda: target.energies_at(target.sample(1, min(DRAWS, WORK // rows))))


def energies_of(lane: LaneFrame, target: Target) -> Array:
    """U of a lane's new draws that its statistics count, as many as a frame has time for."""
    run = lane.run
    # A frame may have draws from before a change, which the statistics do not count.
    fresh = lane.fresh[lane.fresh_x * run.steps > (max(run.counted_from, run.burn_in) + 0.5) * lane.x]
    draws = fresh.reshape(-1, target.dim)[-max(1, FRAME_WORK // max(len(target.data()), 1)) :]
    energies = target.energies_at(draws)
    return np.asarray(energies[np.isfinite(energies)])


def exact_energies(target: Target) -> Exact:
    """The histogram and the mean of U of exact draws."""
    energies = sampled_energies(target)
    low, high = np.quantile(energies, EDGES)
    edges = np.linspace(low, high + 0.4 * (high - low), BARS + 1)
    shares = np.histogram(energies, edges)[0] / len(energies)
    return Exact(edges, shares / np.diff(edges), float(energies.mean()), float(energies.std() / len(energies) ** 0.5))


class Counted:
    """The energies of a lane's draws since its statistics started."""

    def __init__(self) -> None:
        self._since, self._edges = -1, np.zeros(0)
        self.counts, self.n, self.above, self.total = np.zeros(0), 0, 0, 0.0

    def add(self, energies: Array, edges: Array, since: int) -> None:
        """Count more draws; ``since`` is the step at which the statistics started. They are counted anew where that or
        the edges are others.
        """
        if since != self._since or not np.array_equal(edges, self._edges):
            self._since, self._edges = since, edges
            self.counts, self.n, self.above, self.total = np.zeros(len(edges) - 1), 0, 0, 0.0
        self.counts += np.histogram(energies, edges)[0]
        self.n += len(energies)
        self.above += int((energies > edges[-1]).sum())
        self.total += float(energies.sum())


class Energies(View):
    """The histogram of U(θ) over draws of each lane, at most sixteen a frame of a few chains, and of exact draws."""

    key = "energies"
    title = "Energies of draws"
    hint = "grey: exact draws"
    help = (
        "U(θ) = −log density, up to a constant, of each draw (U/T at another temperature): one number for all coordinates together. Draws of the target have the energies in grey. "
        "A histogram further to the left shows chains that stay near the mode, as if they were colder; one further to the right shows chains that are too hot, or have not arrived."
    )
    every = 2
    follows_axis = False

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        # In one dimension the marginal histogram shows the same, and near the ends of other spaces U is unbounded.
        return target.dim > 1 and target.support == LINE and len(target.data()) * FEWEST <= WORK

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        self._exact = exact = _EXACT.of(scene.target, None, lambda: exact_energies(scene.target))
        self._centres = (exact.edges[1:] + exact.edges[:-1]) / 2
        self._top = 1.15 * float(exact.density.max())
        p = plot(colours, energy_label(scene.target), "density", (exact.edges[0], exact.edges[-1]), (0, self._top))
        p.varea_step(
            x=self._centres, y1=0, y2=exact.density, step_mode="center", fill_color=colours.faint, fill_alpha=0.3
        )
        for i, _ in enumerate(scene.lanes):
            add_steps(self, p, f"lane {i}", i, (self._centres, np.zeros(BARS)))
        self.moving_range("y", p.y_range)
        self._counted = [Counted() for _ in scene.lanes]
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        target, edges = self.scene.target, self._exact.edges
        highest = self._top
        for i, (lane, counted) in enumerate(zip(lanes, self._counted, strict=True)):
            counted.add(energies_of(lane, target), edges, lane.run.counted_from)
            density = counted.counts / max(counted.n, 1) / np.diff(edges)
            out[f"lane {i}"] = (self._centres, density)
            highest = max(highest, 1.15 * float(density.max()))
        out["y"] = (np.array([0.0, highest]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The mean energies, beside the exact one."""
        out = {}
        for label, name, lane, counted in zip(self._labels, self.scene.lanes, lanes, self._counted, strict=True):
            said = self._mean(counted, lane.run.sampler.weighs) if counted.n else no_draws(lane.run)
            out[label.id] = f"{name}  {said}".rstrip()
        return out

    def _mean(self, counted: Counted, weighs: bool) -> str:
        # Both end at the first digit of the error.
        digits = max(0, -int(np.floor(np.log10(self._exact.error))))
        mean, exact, error = counted.total / counted.n, self._exact.mean, self._exact.error
        unweighted = " without weights" * weighs
        text = f"mean {mean:.{digits}f}{unweighted}, exact {exact:.{digits}f} ± {error:.{digits}f}"
        share = counted.above / counted.n
        return f"{text}; {share:.0%} to the right" if share >= 0.05 else text
