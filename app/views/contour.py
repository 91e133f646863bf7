"""The energies of draws by contour SGLD, and the probabilities of energies that it has learnt, beside exact ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.energies import Counted, add_steps, energies_of, energy_label, sampled_energies
from sgmcmc_lab.app.views.marks import lane_labels, no_draws, share
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.contour_sgld import ContourSGLD

LEAST = 1e-4
"""The least density on the axis, as a share of the largest there."""
FLOOR = 1e-10
"""The density of bins without draws, below any axis."""


def bins_of(run: Run) -> Array:
    """The ends of the bins of a lane with contour SGLD, (m + 1,), as energies above that of the target's start."""
    sampler = run.sampler
    return np.asarray(sampler.lowest + sampler.width * np.arange(sampler.n_bins + 1))


class Contour(View):
    """The density of U(θ): of exact draws, by the learnt p (mean over chains), and of the draws without weights."""

    key = "contour"
    title = "Flattened energies"
    hint = "grey: exact draws; thin: learnt p; thick: visited"
    help = (
        "U(θ) = −log density, above its value at the target's start. Contour SGLD learns the probability p of each bin of energies under the target, and then visits energies by e⁻ᵁ/pᶻ, where z is ζ. "
        "The thin line follows the grey energies of exact draws where it has learnt p. The thick line shows the draws without their weights: it is flat over the bins at ζ = 1, and follows the grey energies at ζ = 0. "
        "Each draw has the weight pᶻ; the caption gives the effective share of the draws with these weights."
    )
    every = 2
    follows_axis = False

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return any(isinstance(make_sampler(lane.sampler), ContourSGLD) for lane in experiment.lanes)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        target = scene.target
        self._first = float(target.energies_at(target.start()[None])[0])
        self._exact = sampled_energies(target) - self._first
        p = plot(colours, f"{energy_label(target)}, above the start", "density", (0, 1), (LEAST, 1), y_axis_type="log")
        exact = self.feed("exact", "x", "y")
        nothing = np.array([0.0, 1.0]), np.full(2, FLOOR)
        exact.data = dict(zip("xy", nothing, strict=True))
        p.varea_step(
            x="x", y1=FLOOR, y2="y", source=exact, step_mode="center", fill_color=colours.faint, fill_alpha=0.3
        )
        for i, _ in enumerate(scene.lanes):
            for name, width in ((f"lane {i}", 2.5), (f"learnt {i}", FINE)):
                add_steps(self, p, name, i, nothing, width)
        self.moving_range("x range", p.x_range)
        self.moving_range("y range", p.y_range)
        self._counted = [Counted() for _ in scene.lanes]
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        target = self.scene.target
        ends: list[float] = []
        tops: list[float] = []
        for i, (lane, counted) in enumerate(zip(lanes, self._counted, strict=True)):
            run = lane.run
            if not isinstance(run.sampler, ContourSGLD):
                continue
            edges = bins_of(run)
            centres, width = (edges[1:] + edges[:-1]) / 2, run.sampler.width
            if not ends:
                shares = np.histogram(self._exact, edges)[0] / len(self._exact)
                out["exact"] = centres, np.maximum(shares / width, FLOOR)
                tops.append(shares.max() / width)
            counted.add(energies_of(lane, target) - self._first, edges, run.counted_from)
            visited = counted.counts / max(counted.n, 1) / width
            learnt = ContourSGLD.learnt(run.momentum).mean(axis=0) / width
            out[f"lane {i}"] = centres, np.maximum(visited, FLOOR)
            out[f"learnt {i}"] = centres, np.maximum(learnt, FLOOR)
            ends += [edges[0], edges[-1]]
            tops += [visited.max(), learnt.max()]
        if ends:
            top = max(tops)
            out["x range"] = (np.array([min(ends), max(ends)]),)
            out["y range"] = (np.array([LEAST * top, 3 * top]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The step of the learning, or how many draws without weights the draws are worth."""
        out = {}
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            out[label.id] = f"{name}  {said(lane.run)}"
        return out


def said(run: Run) -> str:
    """The progress of learning, or the share of the draws that the weighted draws are worth."""
    if not isinstance(run.sampler, ContourSGLD):
        return "no weights of energies"
    if run.steps < run.burn_in:
        return f"learns, step {run.steps:,} of {run.burn_in:,}"
    statistics = run.statistics
    return no_draws(run) or f"worth {share(statistics.n_effective / statistics.n_draws)} of its draws"
