"""The bias and the variance of many chains as they leave the start, against theory."""

import html
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from bokeh.layouts import row
from bokeh.models import BasicTicker, Div

from sgmcmc_lab.app.views.base import LINE, Data, Feed, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS, SIGNS, round_up
from sgmcmc_lab.app.views.planes import stack
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers.diagnostics import moments
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.requirements import MODE
from sgmcmc_lab.samplers.targets.base import SIMPLEX, Array, Target

STEPS = 50
CHAINS = 20_000
"""Chains of the whole ensemble."""
BATCH = 5000
"""A batch has this many coordinates, in at most 500 chains: 5 to 30 ms."""
WORK_SECONDS = 0.02
"""Batches are added until so much time has gone."""
LAW = "cir"
"""The process whose moments Corollary 3.2 gives."""


class Key(NamedTuple):
    """The lanes of an ensemble; with another key it starts again."""

    spec: RunSpec
    share: bool
    """Whether it is of ω_j rather than of θ_j."""


@dataclass
class Ensemble:
    """The sums of the batches so far, of one coordinate, after 0…STEPS steps."""

    key: Key
    batches: int = 0
    chains: int = 0
    diverged: bool = False
    sums: Array = field(default_factory=lambda: np.zeros((4, STEPS + 1)))
    """The sums of batch means, their squared standard errors, batch variances, their squared standard errors."""

    @property
    def wanted(self) -> bool:
        """Whether there is more to run."""
        return not self.diverged and self.chains < CHAINS

    def add(self, j: int) -> None:
        """Run one more batch."""
        spec = self.key.spec
        rows = batch(replace(spec, seed=(spec.seed * 1000 + self.batches) % 2**32), j, self.key.share)
        if rows.shape[1] < STEPS + 1 or not np.isfinite(rows).all():
            self.diverged = True
            return
        self.sums = moments.with_batch(self.sums, rows)
        self.batches += 1
        self.chains += spec.n_chains

    def table(self) -> Array:
        """Mean, its standard error, variance, its standard error, (4, STEPS + 1)."""
        return moments.of_batches(self.sums, self.batches)


def batch(spec: RunSpec, j: int, share: bool) -> Array:
    """Mean and variance of θ_j, or of ω_j, over the chains after 0, 1, … steps, with standard errors: (4, steps + 1).

    Fewer columns where a chain diverged.
    """
    if not share:
        found = moments.ensemble(spec, STEPS)
        first = spec.first_position()[j]
        table = np.array([found.mean, found.mean_error, found.variance, found.variance_error])[:, :, j]
        return np.concatenate([[[first], [0.0], [0.0], [0.0]], table], axis=1)
    state = Run(replace(spec, burn_in=STEPS))
    columns = []
    for step in range(STEPS + 1):
        if step:
            state.advance(1)
        if state.divergence is not None:
            break
        columns.append(moments.spread(state.target.values(state.position))[:, j])
    return np.array(columns).T


def chains_of(target: Target) -> int:
    """Chains of a batch."""
    return min(500, max(20, BATCH // target.dim))


def fill(results: list[Any], add: Callable[[Any], None]) -> bool:
    """Add batches to the ensembles that want more, to the one with the fewest chains first, for WORK_SECONDS.

    Returns whether any was added. Arrays that a frame may be reading are left unchanged: an ensemble is replaced by its
    copy.
    """
    began, progress = time.perf_counter(), False
    while time.perf_counter() - began < WORK_SECONDS:
        waiting = [i for i, found in enumerate(results) if found is not None and found.wanted]
        if not waiting:
            break
        least = min(waiting, key=lambda i: results[i].chains)
        results[least] = replace(results[least])
        add(results[least])
        progress = True
    return progress


def theory(spec: RunSpec, j: int, steps: Array) -> tuple[Array, Array] | None:
    """Mean and variance of θ_j after ``steps`` steps from the start, where they are known.

    CIR and SCIR: Theorem 3.1 and Corollary 3.2 of Baker et al. 2018, or with control variates the same with the noise
    that they leave; θ and h are in units of the process. Geometric OU: those of the log-normal.
    """
    target, sampler, first = spec.make_target(), spec.make_sampler(), float(spec.first_position()[j])
    if sampler.process == LAW:
        prior, counts = target.packed()[: 2 * target.dim].reshape(2, -1)
        unit = target.process_scale
        a, first, h = float(prior[j] + counts[j]), first / unit, sampler.time_per_step / unit
        gradient = spec.make_gradient()
        noise, var_a_hat = gradient.noise(), 0.0
        if noise.batch_size:
            heat = target.temperature
            n_data, count = len(target.data()), round(counts[j] * heat)
            var_a_hat = moments.var_a_hat(n_data, count, noise.batch_size, noise.replacement) / heat**2
        if MODE in gradient.requires:
            variance = moments.scir_variance_cv(a, first, h, int(steps.max()), var_a_hat)[steps.astype(int)]
        else:
            variance = moments.scir_variance(a, first, h, steps, var_a_hat)
        return unit * moments.cir_mean(a, first, h * steps), unit**2 * variance
    if sampler.process == "geometric_ou":
        mu, sigma = target.packed()[:2]
        return moments.geometric_ou(mu, sigma, first, sampler.time_per_step * steps)
    return None


def fit(low: float, high: float, now: tuple[float, float]) -> tuple[float, float]:
    """A range that holds both, at whole steps; the one there is ``now``, unless it is too narrow or much too wide."""
    if now[0] <= low and high <= now[1] and high - low > 0.55 * (now[1] - now[0]):
        return now
    span = max(high - low, 1e-6 * max(abs(low), abs(high)), 1e-300)
    step = round_up(span / 10)
    return float(np.floor(low / step) * step), float(np.ceil(high / step + 0.5) * step)


class Moments(View):
    """Mean and variance over an ensemble that starts at one point, with theory where it is known."""

    key = "moments"
    reads = (moments,)
    constant_steps = True
    title = "Bias and variance"
    hint = "of thousands of chains; dashed: exact"
    aims = True
    every = 4

    def build(self) -> Any:
        scene = self.scene
        colours = scene.colours
        self._results: list[Ensemble | None] = [None] * len(scene.lanes)
        self._omitted: dict[int, str] = {}
        self._share = False
        self._sent: Any = None
        self._ranges = {"mean": (0.0, 1.0), "variance": (0.0, 1.0)}
        exact = self.feed("exact", "x", "mean", "variance")
        theories = [self.feed(f"theory {i}", "x", "mean", "variance") for i, _ in enumerate(scene.lanes)]
        dots = [
            self.feed(f"lane {i}", "x", "mean", "mean_low", "mean_high", "variance", "variance_low", "variance_high")
            for i, _ in enumerate(scene.lanes)
        ]
        figures = []
        for what in ("mean", "variance"):
            p = plot(colours, "steps", "", (-1, STEPS + 1), (0, 1), title=self._title(what))
            p.min_width, p.yaxis.axis_label = 140, None
            p.yaxis.ticker = BasicTicker(desired_num_ticks=5)
            p.title.text_font_size, p.title.text_font_style, p.title.text_color = "13px", "normal", colours.faint
            p.line("x", what, source=exact, line_color=colours.exact, line_width=1.5, line_dash="dashed")
            for i, _ in enumerate(scene.lanes):
                colour = colours.lanes[i]
                p.line("x", what, source=theories[i], line_color=colour, line_width=2, line_dash=DASHES[i])
                p.segment("x", f"{what}_low", "x", f"{what}_high", source=dots[i], line_color=colour, line_width=1.5)
                p.scatter("x", what, source=dots[i], marker=MARKERS[i], size=5, fill_color=colour, line_color=colour)
            self.moving_range(f"{what} range", p.y_range)
            figures.append(p)
        self._figures = dict(zip(("mean", "variance"), figures, strict=True))
        # Whole lines, for it must not change its height when its text comes.
        self._caption = Div(
            text="",
            height=LINE * (2 + len(scene.lanes) // 2),
            sizing_mode="stretch_width",
            margin=(0, 8, 0, 8),
            styles={"font-size": "13px", "line-height": f"{LINE}px", "color": colours.text, "overflow": "hidden"},
        )
        if scene.live:
            for what, p in self._figures.items():
                titles = tuple(self._title(what, share) for share in (False, True))
                self.feeds[f"{what} title"] = Feed(p.title, ("share",), "text", names=titles)
            # Its caption is text of the page.
            return row(*figures, sizing_mode="stretch_both")
        return stack(figures, self._caption)

    def _title(self, what: str, share: bool = False) -> str:
        name = self.scene.column.name
        return f"{what} of {name if share else name.replace('ω', 'θ')}"

    def live_data(self) -> dict[str, Any]:
        exact = [self._exact(share) for share in (False, True)]
        return {
            "batch": chains_of(self.scene.target),
            "simplex": self.scene.target.support == SIMPLEX,
            "exact": {what: [values[what] for values in exact] for what in ("mean", "variance")},
        }

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        runs = [lane.run for lane in lanes]
        simplex = self.scene.target.support == SIMPLEX
        laws = [run.sampler.process == LAW or run.sampler.key == "exact" for run in runs]
        # On the simplex only the CIR samplers have θ_j ~ Gamma(a_j); ω is what all can be compared by.
        self._share = simplex and not any(run.sampler.process == LAW for run in runs)
        results = list(self._results)
        self._omitted = {
            i: "not shown: its Σθ has another scale"
            for i, law in enumerate(laws)
            if simplex and not self._share and not law
        }
        # A thousand particles are not a thousand times one.
        self._omitted |= {i: "not shown: its chains move each other" for i, run in enumerate(runs) if run.interacting}
        for i, run in enumerate(runs):
            key = self._key(run)
            if i in self._omitted:
                results[i] = None
            elif (known := results[i]) is None or known.key != key:
                results[i] = Ensemble(key)
        progress = fill(results, lambda found: found.add(self.scene.coordinate))
        self._results = results
        return progress

    def _key(self, run: Run) -> Key:
        return Key(replace(run.now, n_chains=chains_of(self.scene.target)), self._share)

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        results = self._results
        version = [None if found is None else (found.key, found.batches, found.diverged) for found in results]
        if all(found is None or not (found.batches or found.diverged) for found in results) or version == self._sent:
            return {}
        self._sent = version
        out: Data = {}
        exact = self._exact(self._share)
        held: dict[str, list[Array]] = {what: [np.array([value])] for what, value in exact.items()}
        out["exact"] = (np.array([-1.0, STEPS + 1.0]), np.repeat(exact["mean"], 2), np.repeat(exact["variance"], 2))
        # Lanes show different steps, so that their bars stand beside each other.
        n = len(results)
        stride = 2 if n <= 2 else 4
        for i, found in enumerate(results):
            out[f"lane {i}"], out[f"theory {i}"] = (np.zeros(0),) * 7, (np.zeros(0),) * 3
            if found is None or found.diverged or not found.batches:
                continue
            at = np.arange(i, STEPS + 1, stride)
            mean, mean_error, variance, variance_error = found.table()[:, at]
            bars = [mean, mean - 2 * mean_error, mean + 2 * mean_error]
            bars += [variance, variance - 2 * variance_error, variance + 2 * variance_error]
            out[f"lane {i}"] = (at.astype(float), *bars)
            held["mean"] += bars[:3]
            held["variance"] += bars[3:]
            line = self.theory(found.key)
            if line is not None:
                out[f"theory {i}"] = (np.arange(STEPS + 1.0), *line)
                held["mean"].append(line[0])
                held["variance"].append(line[1])
        for what, values in held.items():
            together = np.concatenate(values)
            self._ranges[what] = fit(float(together.min()), float(together.max()), self._ranges[what])
            out[f"{what} range"] = (np.array(self._ranges[what]),)
        return out

    def _exact(self, share: bool) -> dict[str, float]:
        """The target's moments."""
        column, target = self.scene.column, self.scene.target
        if target.support == SIMPLEX and not share:
            shape = float(target.packed().reshape(2, -1)[:, self.scene.coordinate].sum())
            return {"mean": shape, "variance": shape}
        return {"mean": column.mean, "variance": column.variance}

    def theory(self, key: Key) -> tuple[Array, Array] | None:
        """The line of an ensemble."""
        if key.share:
            return None
        return theory(key.spec, self.scene.coordinate, np.arange(STEPS + 1.0))

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        parts, known = [], []
        for i, (name, found) in enumerate(zip(self.scene.lanes, self._results, strict=True)):
            sign = f'<span style="color:{self.scene.colours.lanes[i]}">{SIGNS[i]}</span>&nbsp;'
            if i in self._omitted:
                text = self._omitted[i]
            elif found is None:
                text = "starting"
            elif found.diverged:
                text = "diverged, not shown"
            else:
                text = f"{found.chains:,} chains"
                if self.theory(found.key) is not None:
                    spec = found.key.spec
                    known.append(
                        spec.sampler.key != "geometric_ou" and MODE not in GRADIENTS[spec.gradient.key].requires
                    )
            parts.append(f"{sign}{html.escape(name)} {text}")
        if known:
            parts.append("line: theory" if all(known) else "line: the discretised chain's")
        parts.append("dashed: target")
        parts.append("bars ±2 standard errors")
        return {
            self._caption.id: " · ".join(parts),
            **{figure.title.id: self._title(what, self._share) for what, figure in self._figures.items()},
        }
