"""The step size and the acceptance of chains that adapt, along the run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels, number_axis, run_window
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.adaptation import MADE, STATISTIC, STEP_SIZE, WANTED, inverse_mass_of
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.energy_adaptation import LENGTH

WINDOW = 600
"""Frames that stay visible."""
LEAST = 1e-3
"""The least acceptance on the logarithmic axis."""


def of_step_size(sampler: Sampler) -> bool:
    """Whether chains of the sampler adapt their step size."""
    return sampler.key in WANTED and sampler.steps_that_adapt > 0


def learnt(run: Run) -> Any:
    """The numbers of every chain: behind its momentum, and with MCLMC behind the last gradient, too."""
    return run.momentum[:, run.target.dim * (2 if run.sampler.key == "mclmc" else 1) :]


def now(run: Run) -> tuple[float, float] | None:
    """The geometric mean of ε, and the mean of the last α or energy error, over the chains; None where none adapts."""
    if not of_step_size(run.sampler):
        return None
    known = learnt(run)
    if not known[:, STEP_SIZE].all():
        return None
    return float(np.exp(np.log(known[:, STEP_SIZE]).mean())), float(known[:, STATISTIC].mean())


def scales(run: Run, coordinate: int) -> float:
    """The scale of a coordinate that the chains have learnt: the root of the mean of M⁻¹ over the chains."""
    return float(np.sqrt(run.momentum[:, coordinate - run.target.dim].mean()))


def covariance(run: Run) -> Array | None:
    """M⁻¹ of the first chain in the coordinates of θ, (dim, dim); None where it learns no masses."""
    dim = run.target.dim
    if now(run) is None or run.sampler.key == "mclmc":
        return None
    variances = np.asarray(inverse_mass_of(run.momentum[0], dim))
    if not np.isfinite(variances).all():
        return None
    if run.whitening is None:
        return np.diag(variances)
    factor = run.whitening.factor
    return np.asarray((factor * variances) @ factor.T)


class Adaptation(View):
    """ε and the acceptance of the last step, means over the chains, and the acceptance wanted; one point per frame.

    In place of the acceptance MCLMC has the squared energy error of an adapting step, per dimension.
    """

    key = "adaptation"
    title = "Adaptation"
    hint = "thick: ε; thin: acceptance or energy error; dotted: wanted"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return any(of_step_size(make_sampler(lane.sampler)) for lane in experiment.lanes)

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, scene.axis_label, "ε, acceptance", (0, 1), (0.01, 1.2), y_axis_type="log")
        number_axis(p.xaxis)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "step_size", "acceptance", rollover=WINDOW)
            p.line("x", "step_size", source=source, line_color=colours.lanes[i], line_width=2.5)
            p.line("x", "acceptance", source=source, line_color=colours.lanes[i], line_width=FINE, line_join="bevel")
            wanted = self.feed(f"wanted {i}", "y")
            p.hspan(y="y", source=wanted, line_color=colours.lanes[i], line_dash="dotted", line_width=1.5)
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._shown: list[tuple[float, float]] = []
        self._steps = [-1] * len(scene.lanes)
        self._labels = lane_labels(self, p)
        return p

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        out: Data = {}
        for i, lane in enumerate(lanes):
            run, found = lane.run, now(lane.run)
            # A frame without a step shows nothing new.
            if found is None or run.steps == self._steps[i]:
                continue
            self._steps[i] = run.steps
            wanted = WANTED[run.sampler.key]
            shown = found[0], max(found[1], min(LEAST, wanted / 100))
            out[f"lane {i}"] = np.array([lane.x]), np.array([shown[0]]), np.array([shown[1]])
            out[f"wanted {i}"] = (np.array([wanted]),)
            self._shown += [(lane.x, y) for y in shown]
        if out:
            self._shown = self._shown[-2 * WINDOW * len(lanes) :]
            x, y = np.array(self._shown).T
            out["x"] = (np.array(run_window(x.min(), x.max(), self.scene.axis)),)
            out["y"] = (np.array([y.min() / 1.5, max(1.2, y.max() * 1.5)]),)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        out = {}
        for label, name, lane in zip(self._labels, self.scene.lanes, lanes, strict=True):
            found, run = now(lane.run), lane.run
            if found is None:
                out[label.id] = f"{name}  does not adapt"
                continue
            adapts = learnt(run)[0, MADE] < run.sampler.steps_that_adapt
            if run.sampler.key == "mclmc":
                other = f"L {learnt(run)[:, LENGTH].mean():.3g}"
            else:
                other = f"scale {scales(run, min(self.scene.coordinate, run.target.dim - 1)):.3g}"
            out[label.id] = f"{name}  {'adapts' if adapts else 'fixed'}: ε {found[0]:.3g}, {other}"
        return out
