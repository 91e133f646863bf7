"""The gradients of many minibatches around the whole one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import Range1d, Span

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS, lane_labels
from sgmcmc_lab.app.views.theme import plot
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.requirements import BATCH, MEMORY
from sgmcmc_lab.samplers.targets.base import LINE

BATCHES = 200
"""Minibatches of each lane in a frame."""
MOST = 500_000
"""N·d at most: a frame looks at the gradient of every data point."""
TURN = np.linspace(0, 2 * np.pi, 49)
NOTHING = 1e-12
"""The rounding error of gradients of data that are the same as at the anchor."""
WIDE = 3.0
"""Standard deviations that the axes reach at first."""
REACH = 2.0
"""Standard deviations at which an ellipse is drawn: 86 % of a Gaussian distribution of two coordinates are inside."""


class GradientNoise(View):
    """∇Ũ − ∇U of fresh minibatches at the first chain's θ, with the ellipse of their covariance, and that of the B̂ that
    the sampler subtracts.
    """

    key = "gradient_noise"
    title = "Gradient noise"
    hint = "at the first chain; solid: covariance, dashed: subtracted"
    every = 5

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        target = experiment.make_target()
        numbered = target.support == LINE and MEMORY in target.provides
        few = len(target.data()) * target.dim <= MOST
        return numbered and few and target.dim > 1 and any(map(_has_batches, experiment.lanes))

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        one, two = scene.target.column_names[:2] if scene.target.of_coordinates else ("θ₁", "θ₂")
        p = plot(colours, f"noise of ∂U along {one}", f"along {two}", (-1.0, 1.0), (-1.0, 1.0))
        for k, axis in enumerate((p.x_range, p.y_range)):
            assert isinstance(axis, Range1d)
            self.moving_range(f"range {k}", axis)
            p.add_layout(
                Span(location=0.0, dimension="height" if k == 0 else "width", line_color=colours.grid, line_width=1)
            )
        for i, _ in enumerate(scene.lanes):
            colour = colours.lanes[i]
            points = self.feed(f"lane {i}", "x", "y")
            p.scatter("x", "y", source=points, marker=MARKERS[i], size=4, color=colour, alpha=0.45)
            for name, dash in (("real", "solid"), ("subtracted", "dashed")):
                ellipse = self.feed(f"{name} {i}", "x", "y")
                p.line("x", "y", source=ellipse, line_color=colour, line_width=2, line_dash=dash)
        self._rng = np.random.default_rng(1)
        self._range = np.zeros(2)
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        largest = np.zeros(2)
        for i, lane in enumerate(lanes):
            found = _noise(lane)
            if found is None:
                continue
            apart, real, subtracted = found
            gradient = lane.run.gradient
            shown = apart[_batches(self._rng, len(apart), gradient)].mean(axis=1)
            out[f"lane {i}"] = (shown[:, 0], shown[:, 1])
            out[f"real {i}"] = _ellipse(real)
            out[f"subtracted {i}"] = _ellipse(subtracted)
            largest = np.maximum(largest, np.sqrt([real[0, 0], real[1, 1]]))
        # An axis that followed every frame would say that nothing changes.
        for k in range(2):
            if largest[k] > 0 and not 0.4 * self._range[k] < WIDE * largest[k] < self._range[k]:
                self._range[k] = 1.2 * WIDE * largest[k]
            if self._range[k] > 0:
                out[f"range {k}"] = (np.array([-self._range[k], self._range[k]]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        """The mean variance of a component, what is subtracted for it, and the heat that is left."""
        out = {}
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            found = _noise(lane)
            if found is None:
                out[label.id] = f"{name}  no minibatches"
                continue
            _, real, subtracted = found
            v, b = (float(np.trace(matrix)) / len(matrix) for matrix in (real, subtracted))
            out[label.id] = f"{name}  V {v:.3g}" + (f", subtracted {b:.3g}" if b > 0 else "")
        return out


def _has_batches(lane: Any) -> bool:
    return BATCH in GRADIENTS[lane.gradient.key].requires


def _noise(lane: LaneFrame) -> tuple[Array, Array, Array] | None:
    """The difference of each data point's estimate from the whole gradient (N, dim) at the first chain, the covariance
    of a batch's, and the sampler's estimate of it; None without minibatches.
    """
    run = lane.run
    if BATCH not in run.gradient.requires:
        return None
    each = run.gradient.contributions(run.sampled, run.coordinates[0], run.memory[0])
    if not np.isfinite(each).all():
        return None
    apart = each - each.mean(axis=0)
    if np.abs(apart).max() < NOTHING * np.abs(run.sampled.slopes_at(run.coordinates[0])).max():
        apart[:] = 0.0
    noise, n_data = run.gradient.noise(), len(each)
    spread = apart.T @ apart / n_data / noise.batch_size
    # As the sampler has it on average: unbiased with replacement, and without but for (N − n)/N in place of /(N − 1).
    left = 1.0 if noise.replacement else (n_data - noise.batch_size) / max(n_data - 1, 1)
    subtracted = left * spread if noise.estimated else noise.correction * np.eye(len(spread))
    return apart, left * spread, subtracted


def _batches(rng: np.random.Generator, n_data: int, gradient: Any) -> Any:
    """The data of many minibatches, (BATCHES, n)."""
    size = gradient.noise().batch_size
    if gradient.noise().replacement:
        return rng.integers(n_data, size=(BATCHES, size))
    return rng.permuted(np.tile(np.arange(n_data), (BATCHES, 1)), axis=1)[:, :size]


def _ellipse(covariance: Array) -> tuple[Array, Array]:
    """Where a distribution of two coordinates with this covariance, (2, 2) or the first of more, is two deviations from
    0.
    """
    values, vectors = np.linalg.eigh(covariance[:2, :2])
    x, y = vectors @ (REACH * np.sqrt(np.maximum(values, 0.0))[:, None] * np.stack([np.cos(TURN), np.sin(TURN)]))
    return x, y
