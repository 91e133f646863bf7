"""The order of an integrator: how the bias falls with the step size, from separate runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from bokeh.models import FixedTicker
from numpy.typing import NDArray

from sgmcmc_lab.app.views.base import Array, Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import Choice, make_sampler
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.running_statistics import bin_edges
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import MANIFOLD, SIMPLEX, Target

Flags = NDArray[np.bool_]
LADDER = tuple(2 ** (k / 2) for k in range(7))
"""Step sizes, as multiples of the lane's own."""
CHAINS = 200
SETTLED = 12.0
"""The time that chains have to forget their start."""
BATCH = 20.0
"""The time of a batch; errors are those of the mean of batches."""
FEWEST, ENOUGH = 10, 400
"""Batches that an error needs, and with which a run ends."""
WORK_SECONDS = 0.1
CLEAR = 3.0
"""A bias counts for the slope when it is so many standard errors."""
STEEPEST = 4.0
"""No integrator here is of such an order."""
SURE = 0.05
"""A bias that is known better than to this share of itself counts no more: it has terms of higher orders, too."""
FLOOR, TOP = 1e-5, 1.0
SMALL = 0.1
"""A bias of at most this share of the function's standard deviation counts: beyond, higher orders of ε have a part."""
STUCK = 0.5
"""Means of batches one after the other that correlate so much are of chains that hardly move."""
FEWEST_POINTS = 3
"""The least number of points of a slope."""


def _of_values(function: Callable[[Array], Array], values: Array) -> Array:
    return function(values[:, None])


def functions(target: Target, coordinate: int) -> list[tuple[str, Callable[[Array], Array], float]]:
    """Expectations of one column that are known exactly: the name, the function of its values, the value."""
    if len(target.columns) == 1 and target.support == MANIFOLD:
        return [(m.name, partial(_of_values, m.function), m.exact) for m in target.moments]
    column = target.columns[coordinate]
    return [
        (f"E {column.name}", lambda x: x, column.mean),
        (f"Var {column.name}", lambda x: (x - column.mean) ** 2, column.variance),
    ]


def fitted(steps: Array, bias: Array, error: Array) -> Flags:
    """The biases to which a slope is fitted: the clear ones, up to the first that rises faster than any power of ε
    here.

    ``steps`` ascend. A bias that rises so fast belongs to a diverging run, as do all later ones.
    """
    clear = np.flatnonzero(np.abs(bias) > CLEAR * error)
    x, y, relative = (
        np.log(steps[clear]),
        np.log(np.abs(bias[clear])),
        (error / np.abs(bias))[clear] if len(clear) else error[clear],
    )
    rise = np.diff(y) - CLEAR * np.hypot(relative[1:], relative[:-1])
    kept = int(np.append(rise > STEEPEST * np.diff(x), True).argmax()) + 1
    out = np.zeros(len(steps), dtype=bool)
    out[clear[:kept]] = True
    return out


def slope(steps: Array, bias: Array, error: Array) -> tuple[float, float] | None:
    """The exponent p of bias ∝ εᵖ and its standard error, by the :func:`fitted` biases; None from fewer than three."""
    kept = fitted(steps, bias, error)
    if kept.sum() < FEWEST_POINTS:
        return None
    x, y = np.log(steps[kept]), np.log(np.abs(bias[kept]))
    weight = 1 / np.maximum(error[kept] / np.abs(bias[kept]), SURE) ** 2
    x = x - weight @ x / weight.sum()
    spread = weight @ x**2
    return float(weight @ (x * y) / spread), float(1 / np.sqrt(spread))


def settled(means: Array) -> bool:
    """Whether the batch means (batches,) come from chains that have reached their distribution, and move in it.

    If most proposals are refused, successive means are close to each other, or all the same.
    """
    apart = means - means.mean()
    total = float(apart @ apart)
    # Constant up to rounding.
    if total <= len(means) * (1e-12 * max(1.0, float(np.abs(means).max()))) ** 2:
        return False
    return float(apart[1:] @ apart[:-1]) < STUCK * total


class Found(NamedTuple):
    """The results of the rungs of a lane, for every function."""

    steps: Array
    """(rungs,), ascending."""
    bias: Array
    """(rungs, functions)."""
    error: Array
    settled: Flags
    """Whether the chains move in their distribution."""
    small: Flags
    """Whether the bias is small beside the function's standard deviation."""

    def slope(self, k: int) -> tuple[tuple[float, float] | None, Flags]:
        """The slope for one function, and which rungs it is of (rungs,)."""
        usable = np.flatnonzero(self.settled[:, k] & self.small[:, k])
        steps, bias, error = self.steps[usable], self.bias[usable, k], self.error[usable, k]
        kept = np.zeros(len(self.steps), dtype=bool)
        kept[usable[fitted(steps, bias, error)]] = True
        return slope(steps, bias, error), kept


@dataclass
class Rung:
    """A run with one step size, and the means of its batches."""

    step: float
    run: Run
    time: float = 0.0
    means: list[Array] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether it has batches enough, or blew up."""
        return len(self.means) >= ENOUGH or self.run.divergence is not None

    def advance(self, read: Callable[[Run], Array | None]) -> None:
        """One more batch, of which ``read`` gives the means of the functions, or None."""
        if not self.time:
            self.run.advance(int(np.ceil(SETTLED / self.step)))
        self.run.restart_statistics()
        self.run.advance(int(np.ceil(BATCH / self.step)))
        self.time += BATCH
        found = read(self.run) if self.run.divergence is None else None
        if found is not None:
            self.means.append(found)


def _unbounded(target: Target) -> bool:
    """Whether it is a distribution on the line or the plane, known exactly, whose start is soon forgotten."""
    usual = target.support not in (MANIFOLD, SIMPLEX) and target.of_coordinates and target.dim <= 2
    return usual and target.exact_law and target.first_steps is None


class Order(View):
    """|bias| against ε on log axes; a line of slope p is an error O(εᵖ).

    The slope is of the asymptotic range alone: of biases that are clear of their noise, that are at most a tenth of the
    function's standard deviation, and of chains that move. The others are crosses.
    """

    key = "order"
    constant_steps = True
    title = "Order"
    hint = "bias against ε; grey: slopes 1 and 2; ×: not in the fit"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        stepping = any("step_size" in dict(declared(SAMPLERS[lane.sampler.key])) for lane in experiment.lanes)
        return stepping and (TARGETS[experiment.target.key].support == MANIFOLD or _unbounded(experiment.make_target()))

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        p = plot(colours, "step size ε", "|bias|", (1e-2, 1.0), (FLOOR, TOP), x_axis_type="log", y_axis_type="log")
        p.xaxis.ticker = FixedTicker(ticks=[a * 10.0**k for k in range(-5, 2) for a in (1, 2, 5)])
        p.yaxis.ticker = FixedTicker(ticks=[10.0**k for k in range(-6, 2)])
        for k in (1, 2):
            lines = self.feed(f"slope {k}", "x", "y")
            p.line(
                "x", "y", source=lines, line_color=colours.faint, line_width=1.5, line_dash=("dashed", "dotted")[k - 1]
            )
        for i, _ in enumerate(scene.lanes):
            bars = self.feed(f"bars {i}", "x", "low", "high")
            p.segment("x", "low", "x", "high", source=bars, line_color=colours.lanes[i], line_width=1.5)
            dots = self.feed(f"dots {i}", "x", "y")
            p.line("x", "y", source=dots, line_color=colours.lanes[i], line_dash=DASHES[i], line_alpha=0.6)
            p.scatter("x", "y", source=dots, size=7, marker=MARKERS[i], color=colours.lanes[i])
            crosses = self.feed(f"crosses {i}", "x", "y")
            p.scatter("x", "y", source=crosses, size=10, marker="x", line_width=2, color=colours.lanes[i])
        self.moving_range("x", p.x_range)
        self.moving_range("y", p.y_range)
        self._functions = functions(scene.target, scene.coordinate)
        edges = bin_edges(scene.target.columns[scene.coordinate])
        middles = (edges[1:] + edges[:-1]) / 2
        self._values = np.stack([np.broadcast_to(f(middles), middles.shape) for _, f, _ in self._functions])
        self._exact = np.array([exact for *_, exact in self._functions])
        mass = np.diff(scene.target.columns[scene.coordinate].cdf(edges))
        centred = self._values - (self._values @ mass / mass.sum())[:, None]
        self._spread = np.sqrt(centred**2 @ mass / mass.sum())
        self._specs: list[RunSpec | None] = [None] * len(scene.lanes)
        self._rungs: list[list[Rung]] = [[] for _ in scene.lanes]
        self._found: list[Found | None] = [None] * len(scene.lanes)
        self._chosen = 0
        self._fresh = False
        self._label = self.caption_above(p, len(scene.lanes) + 1)
        return p

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        for i, lane in enumerate(lanes):
            spec = replace(lane.run.now, n_chains=CHAINS, burn_in=0)
            if spec != self._specs[i]:
                self._specs[i], self._found[i], self._fresh = spec, None, True
                self._rungs[i] = list(self._ladder(spec)) if hasattr(lane.run.sampler, "step_size") else []
        began = time.perf_counter()
        rungs = [rung for rungs in self._rungs for rung in rungs if not rung.ended]
        worked = False
        while rungs and time.perf_counter() - began < WORK_SECONDS:
            least = min(rungs, key=lambda rung: rung.time)
            least.advance(self._from_histogram if self.scene.target.support == MANIFOLD else self._from_sums)
            worked = True
            rungs = [rung for rung in rungs if not rung.ended]
        if worked:
            self._evaluate()
        return worked

    def _from_histogram(self, run: Run) -> Array | None:
        """The functions' means, with their values in the middle of the bins."""
        counts = run.statistics.counts(self.scene.coordinate)[1:-1]
        return self._values @ counts / counts.sum() if counts.sum() else None

    def _from_sums(self, run: Run) -> Array:
        """Mean and variance: no histogram holds the tails of what is unbounded, which much of a bias comes from."""
        j = self.scene.coordinate
        mean = run.statistics.mean(j)
        spread = run.statistics.variance(j) + (mean - run.target.columns[j].mean) ** 2
        return np.array([mean, spread][: len(self._functions)])

    def _ladder(self, spec: RunSpec) -> Sequence[Rung]:
        values, first, rungs = spec.sampler.values(), make_sampler(spec.sampler).step_size, []
        highest = dict(declared(SAMPLERS[spec.sampler.key]))["step_size"].bounds[1]
        for factor in LADDER:
            step = float(first) * factor
            if step <= highest:
                choice = Choice(spec.sampler.key, tuple({**values, "step_size": step}.items()))
                rungs.append(Rung(step, Run(replace(spec, sampler=choice))))
        return rungs

    def _evaluate(self) -> None:
        """The biases and errors of every lane; shown is the expectation whose biases are clearest."""
        found: list[Found | None] = []
        for rungs in self._rungs:
            good = [rung for rung in rungs if len(rung.means) >= FEWEST]
            if not good:
                found.append(None)
                continue
            means = [np.array(rung.means) for rung in good]
            bias = np.array([m.mean(axis=0) - self._exact for m in means])
            error = np.array([m.std(axis=0, ddof=1) / np.sqrt(len(m)) for m in means]) + 1e-12
            moving = np.array([[settled(each) for each in m.T] for m in means])
            found.append(
                Found(np.array([rung.step for rung in good]), bias, error, moving, np.abs(bias) <= SMALL * self._spread)
            )
        clearness = sum(
            (np.minimum(np.abs(each.bias) / each.error, 50) * (each.settled & each.small)).sum(axis=0)
            for each in filter(None, found)
        )
        if np.ndim(clearness):
            self._chosen = int(np.argmax(clearness))
        self._found, self._fresh = found, True

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        if not self._fresh:
            return {}
        self._fresh = False
        out: Data = {}
        every: list[tuple[Array, Array]] = []
        k = self._chosen
        for i, found in enumerate(self._found):
            out[f"dots {i}"], out[f"crosses {i}"], out[f"bars {i}"] = (
                (np.zeros(0),) * 2,
                (np.zeros(0),) * 2,
                (np.zeros(0),) * 3,
            )
            if found is None:
                continue
            steps, bias, error = found.steps, np.abs(found.bias[:, k]), found.error[:, k]
            kept = found.slope(k)[1]
            out[f"dots {i}"] = steps[kept], np.maximum(bias[kept], FLOOR)
            out[f"crosses {i}"] = steps[~kept], np.maximum(bias[~kept], FLOOR)
            out[f"bars {i}"] = steps, np.maximum(bias - 2 * error, FLOOR), np.maximum(bias + 2 * error, FLOOR)
            every.append((steps, np.maximum(bias, error)))
        if every:
            x, y = (np.concatenate(parts) for parts in zip(*every, strict=True))
            low, high = float(x.min()) / 1.3, float(x.max()) * 1.3
            top = 10 ** np.ceil(np.log10(max(float(y.max()) * 2, 10 * FLOOR)))
            bottom = 10 ** np.floor(np.log10(max(float(y.min()) / 4, FLOOR)))
            out["x"], out["y"] = (np.array([low, high]),), (np.array([bottom, top]),)
            line = np.array([low, high])
            for order in (1, 2):
                # Through the middle of the axes, for only their slope matters.
                out[f"slope {order}"] = line, np.sqrt(bottom * top) * (line / np.sqrt(low * high)) ** order
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        lines = [f"bias of {self._functions[self._chosen][0]}"]
        for name, rungs, found in zip(self.scene.lanes, self._rungs, self._found, strict=True):
            if not rungs:
                continue
            fit, kept = (None, np.zeros(0, dtype=bool)) if found is None else found.slope(self._chosen)
            fewest = min((len(rung.means) for rung in rungs if rung.run.divergence is None), default=0)
            if fit is not None:
                text = f"slope {fit[0]:.2f} ± {fit[1]:.2f}, of {kept.sum()} of {len(rungs)} points"
            elif fewest < FEWEST:
                text = f"simulating: {fewest} of {FEWEST} batches"
            else:
                text = self._without(found, rungs, fewest)
            lines.append(f"{name}  {text}")
        return {self._label.id: "\n".join(lines)}

    def _without(self, found: Found | None, rungs: Sequence[Rung], fewest: int) -> str:
        """Why there is no slope."""
        stuck, large, k = 0, 0, self._chosen
        if found is not None:
            stuck = int((~found.settled[:, k]).sum())
            large = int((found.settled[:, k] & ~found.small[:, k]).sum())
        large += sum(rung.run.divergence is not None and len(rung.means) < FEWEST for rung in rungs)
        said = [f"at {stuck} of {len(rungs)} steps the chains hardly move"] if stuck else []
        said += [f"{large} of {len(rungs)} points above a tenth of the spread"] if large else []
        if said and len(rungs) - stuck - large < FEWEST_POINTS:
            return f"no slope: {', '.join(said)}; smaller steps are needed"
        if fewest < ENOUGH:
            return f"no clear bias yet ({fewest} of {ENOUGH} batches)"
        # A line of a narrow figure has no room for both.
        return f"no clear bias; {', '.join(said)}" if said else "no clear bias: larger steps have more"
