"""The step size of chains that adapt, and the number that it follows, along the run."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import lane_labels, number_axis, run_window
from sgmcmc_lab.app.views.theme import FINE, plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_sampler
from sgmcmc_lab.samplers.kernels.adaptation import MADE, STATISTIC, STEP_SIZE, Tuning, inverse_mass_of
from sgmcmc_lab.samplers.kernels.base import Sampler

WINDOW = 600
"""Frames that stay visible."""
LEAST = 1e-3
"""The least acceptance on the logarithmic axis."""


def followed(samplers: Iterable[Sampler]) -> tuple[str, ...]:
    """The names of the numbers that the adapting samplers' adaptation follows, and of the lengths that it learns, each
    once.
    """
    tunings = [sampler.adaptation for sampler in samplers if sampler.adaptation and sampler.steps_that_adapt]
    lengths = [tuning.length[0] for tuning in tunings if tuning.length]
    return tuple(dict.fromkeys([*(tuning.statistic for tuning in tunings), *lengths]))


def learnt(run: Run) -> Any:
    """The numbers that every chain has learnt, which follow its momentum and its other vectors."""
    return run.momentum[:, run.target.dim * declared(run).vectors :]


def declared(run: Run) -> Tuning:
    """The declaration of its sampler, which can adapt."""
    assert run.sampler.adaptation is not None
    return run.sampler.adaptation


def adapts(run: Run) -> bool:
    """Whether the next step adapts."""
    return bool(learnt(run)[0, MADE] < run.sampler.steps_that_adapt)


def now(run: Run) -> tuple[float, float] | None:
    """The geometric mean of ε over the chains, and the mean of the number that it followed in the last step; None where
    none adapts. After the last adapting step, NaN replaces a number that only adapting steps measure.
    """
    sampler = run.sampler
    if sampler.adaptation is None or not sampler.steps_that_adapt or not (known := learnt(run))[:, STEP_SIZE].all():
        return None
    measured = adapts(run) or declared(run).goes_on
    statistic = float(known[:, STATISTIC].mean()) if measured else float("nan")
    return float(np.exp(np.log(known[:, STEP_SIZE]).mean())), statistic


def scales(run: Run, coordinate: int) -> float:
    """The scale of a coordinate that the chains have learnt: the root of the mean of M⁻¹ over the chains."""
    return float(np.sqrt(run.momentum[:, coordinate - run.target.dim].mean()))


def covariance(run: Run) -> Array | None:
    """M⁻¹ of the first chain in the coordinates of θ, (dim, dim); None where it learns no masses."""
    dim = run.target.dim
    if now(run) is None or declared(run).length is not None:
        return None
    variances = np.asarray(inverse_mass_of(run.momentum[0], dim))
    if not np.isfinite(variances).all():
        return None
    if run.whitening is None:
        return np.diag(variances)
    factor = run.whitening.factor
    return np.asarray((factor * variances) @ factor.T)


class Adaptation(View):
    """ε, the number that it follows, both as means over the chains, and the goal of this number; one point per frame.

    ε follows the acceptance, or with MCLMC the squared energy error per dimension, which only adapting steps measure.
    """

    key = "adaptation"
    title = "Adaptation"
    hint = "thick: ε; thin: acceptance or energy error; dotted: goal"
    help = (
        "In the first steps of a run the sampler adapts its step size ε (thick) so that the mean of the acceptance (thin), or of the energy error, reaches its goal (dotted). "
        "All are means over the chains; for ChEES-HMC the acceptance is the harmonic mean. The dashed line is the length of a trajectory, T or L, where a sampler learns one. "
        "After these steps all are fixed, and only then draws count."
    )

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return bool(followed(make_sampler(lane.sampler) for lane in experiment.lanes))

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, scene.axis_label, ", ".join(("ε", *scene.adapts)), (0, 1), (0.01, 1.2), y_axis_type="log")
        number_axis(p.xaxis)
        for i, _ in enumerate(scene.lanes):
            source = self.feed(f"lane {i}", "x", "step_size", rollover=WINDOW)
            p.line("x", "step_size", source=source, line_color=colours.lanes[i], line_width=2.5)
            length = self.feed(f"length {i}", "x", "y", rollover=WINDOW)
            p.line("x", "y", source=length, line_color=colours.lanes[i], line_width=2, line_dash="dashed")
            follows = self.feed(f"followed {i}", "x", "y", rollover=WINDOW)
            p.line("x", "y", source=follows, line_color=colours.lanes[i], line_width=FINE, line_join="bevel")
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
            wanted = declared(run).wanted
            shown = [found[0]]
            if np.isfinite(found[1]):
                shown.append(max(found[1], min(LEAST, wanted / 100)))
            out[f"lane {i}"] = np.array([lane.x]), np.array(shown[:1])
            if len(shown) > 1:
                out[f"followed {i}"] = np.array([lane.x]), np.array(shown[1:])
            # A number that no step measures has no goal.
            out[f"wanted {i}"] = (np.full(len(shown) - 1, wanted),)
            if tuned := declared(run).length:
                shown.append(learnt(run)[:, tuned[1]].mean())
                out[f"length {i}"] = np.array([lane.x]), np.array(shown[-1:])
            self._shown += [(lane.x, y) for y in shown]
        if out:
            self._shown = self._shown[-3 * WINDOW * len(lanes) :]
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
            if length := declared(run).length:
                symbol, place = length
                other = f"{symbol} {learnt(run)[:, place].mean():.3g}"
            else:
                other = f"scale {scales(run, min(self.scene.coordinate, run.target.dim - 1)):.3g}"
            out[label.id] = f"{name}  {'adapts' if adapts(run) else 'fixed'}: ε {found[0]:.3g}, {other}"
        return out
