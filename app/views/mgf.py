"""The moment-generating function of many chains after a few steps, against Theorem 3.1 of the SCIR paper."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from bokeh.layouts import row

from sgmcmc_lab.app.views.base import Data, LaneFrame, View
from sgmcmc_lab.app.views.marks import MARKERS, SIGNS
from sgmcmc_lab.app.views.moments import CHAINS, LAW, chains_of, fill
from sgmcmc_lab.app.views.planes import box, stack
from sgmcmc_lab.app.views.theme import DASHES, plot
from sgmcmc_lab.samplers import Experiment, Run, RunSpec
from sgmcmc_lab.samplers.diagnostics import moments
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.requirements import MODE
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import Array, Target

AFTER = (1, 6, 30)
"""Steps after which it is drawn."""
POINTS = 25
"""Values of s."""
LOWEST = 0.02
"""The smallest s is where the target's own function is this small …"""
FURTHEST = -100.0
"""… or this, where a small shape has it fall slowly."""


@dataclass
class Ensemble:
    """The sums of e^{sθ} over the chains so far, after each of AFTER steps."""

    spec: RunSpec
    chains: int = 0
    batches: int = 0
    diverged: bool = False
    sums: Array = field(default_factory=lambda: np.zeros((2, len(AFTER), POINTS)))
    """The sums of the values and of their squares."""

    @property
    def wanted(self) -> bool:
        """Whether there is more to run."""
        return not self.diverged and self.chains < CHAINS

    def add(self, j: int, s: Array) -> None:
        """Run one more batch of chains."""
        seed = (self.spec.seed * 1000 + self.batches) % 2**32
        run = Run(replace(self.spec, seed=seed, burn_in=AFTER[-1]))
        sums = self.sums.copy()
        for k, steps in enumerate(AFTER):
            run.advance(steps - run.steps)
            if run.divergence is not None:
                self.diverged = True
                return
            moments.add_to_mgf(sums, k, s, run.position, j)
        self.sums = sums
        self.batches += 1
        self.chains += self.spec.n_chains

    def table(self) -> tuple[Array, Array]:
        """The means and their standard errors, (steps, s)."""
        return moments.of_mgf(self.sums, self.chains)


def shape_of(target: Target, j: int) -> float:
    """a of the Gamma(a, 1) that is the target of θ_j/c, c the scale of the process."""
    return float(target.packed()[: 2 * target.dim].reshape(2, -1)[:, j].sum())


def grid(a: float) -> Array:
    """The values of cs, from below up to 0: (1 − cs)^{−a} is LOWEST at the first."""
    first = max(1 - LOWEST ** (-1 / a), FURTHEST) if a > 0.15 else FURTHEST
    return np.linspace(first, 0.0, POINTS)


@lru_cache(maxsize=64)
def theory(spec: RunSpec, j: int) -> Array | None:
    """E e^{sθ_j} after each of AFTER steps where it is known: of CIR, and of SCIR by Theorem 3.1.

    Over the minibatches, too.
    """
    target, sampler, gradient = spec.make_target(), spec.make_sampler(), spec.make_gradient()
    if sampler.process != LAW or MODE in gradient.requires:
        return None
    prior, counts = target.packed()[: 2 * target.dim].reshape(2, -1)[:, j]
    a, unit, noise = float(prior + counts), target.process_scale, gradient.noise()
    first, h = float(spec.first_position()[j]) / unit, sampler.time_per_step / unit
    if not noise.batch_size:
        return np.array([moments.cir_mgf_curve(grid(a), a, first, h * steps) for steps in AFTER])
    n_data, heat = len(target.data()), target.temperature
    return np.array(
        [
            moments.scir_mgf_expected_curve(
                grid(a),
                float(prior),
                first,
                h,
                steps,
                n_data,
                round(counts * heat),
                noise.batch_size,
                noise.replacement,
                heat,
            )
            for steps in AFTER
        ]
    )


class MGF(View):
    """E e^{sθ_j} after 1, 6 and 30 steps from one start, over thousands of chains, with Theorem 3.1 as a line."""

    key = "mgf"
    reads = (moments,)
    constant_steps = True
    title = "MGF"
    hint = "E eˢᶿ after 1, 6 and 30 steps; line: Theorem 3.1"
    every = 4

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        of_lanes = [SAMPLERS[lane.sampler.key].process for lane in experiment.lanes]
        return TARGETS[experiment.target.key].process == LAW and LAW in of_lanes

    def build(self) -> Any:
        scene, colours = self.scene, self.scene.colours
        self._results: list[Ensemble | None] = [None] * len(scene.lanes)
        self._sent: Any = None
        self._a = shape_of(scene.target, scene.coordinate)
        unit = scene.target.process_scale
        self._s = s = grid(self._a) / unit
        self._text = box(scene, 2 + len(scene.lanes) // 2)
        figures = []
        for k, steps in enumerate(AFTER):
            title = f"after {steps} step{'s' if steps > 1 else ''}"
            p = plot(colours, "s", "", (1.02 * s[0], -0.02 * s[0]), (-0.03, 1.05), title=title)
            p.min_width = 110
            p.title.text_font_size, p.title.text_font_style, p.title.text_color = "13px", "normal", colours.faint
            p.xaxis.ticker.desired_num_ticks = 3
            p.line(s, (1 - unit * s) ** -self._a, line_color=colours.exact, line_width=1.5, line_dash="dashed")
            for i, _ in enumerate(scene.lanes):
                line = self.feed(f"theory {k} {i}", "x", "y")
                dots = self.feed(f"lane {k} {i}", "x", "y", "low", "high")
                colour = colours.lanes[i]
                p.line("x", "y", source=line, line_color=colour, line_width=2, line_dash=DASHES[i])
                p.segment("x", "low", "x", "high", source=dots, line_color=colour, line_width=1.5)
                p.scatter("x", "y", source=dots, marker=MARKERS[i], size=5, fill_color=colour, line_color=colour)
            figures.append(p)
        # The caption of a live page is text of the page.
        return row(*figures, sizing_mode="stretch_both") if scene.live else stack(figures, self._text)

    def live_data(self) -> dict[str, Any]:
        return {"batch": chains_of(self.scene.target), "s": self._s.tolist(), "after": list(AFTER)}

    def background(self, lanes: Sequence[LaneFrame]) -> bool:
        results = list(self._results)
        for i, lane in enumerate(lanes):
            if lane.run.sampler.process != LAW:
                results[i] = None
                continue
            spec = replace(lane.run.now, n_chains=chains_of(self.scene.target))
            if (found := results[i]) is None or found.spec != spec:
                results[i] = Ensemble(spec)
                theory(spec, self.scene.coordinate)  # kept, so that no frame waits for it
        progress = fill(results, lambda found: found.add(self.scene.coordinate, self._s))
        self._results = results
        return progress

    def compute(self, lanes: Sequence[LaneFrame]) -> Data:
        results = self._results
        version = [None if found is None else (found.spec, found.batches, found.diverged) for found in results]
        if version == self._sent:
            return {}
        self._sent = version
        out: Data = {}
        # Lanes show different s, so that their marks stand beside each other.
        stride = 2 * len(results)
        for i, found in enumerate(results):
            shown = found is not None and not found.diverged and found.batches > 0
            known = theory(found.spec, self.scene.coordinate) if found is not None and shown else None
            mean, error = found.table() if found is not None and shown else (None, None)
            for k in range(len(AFTER)):
                out[f"theory {k} {i}"] = (np.zeros(0),) * 2 if known is None else (self._s, known[k])
                if mean is None or error is None:
                    out[f"lane {k} {i}"] = (np.zeros(0),) * 4
                    continue
                at = slice(2 * i, None, stride)
                y, bar = mean[k, at], 2 * error[k, at]
                out[f"lane {k} {i}"] = (self._s[at], y, y - bar, y + bar)
        return out

    def captions(self, lanes: Sequence[LaneFrame]) -> dict[str, str]:
        parts = []
        for i, (name, found) in enumerate(zip(self.scene.lanes, self._results, strict=True)):
            sign = f'<span style="color:{self.scene.colours.lanes[i]}">{SIGNS[i]}</span>&nbsp;{html.escape(name)} '
            if found is None:
                said = "not shown: its transition is not the process's"
            elif found.diverged:
                said = "diverged, not shown"
            else:
                said = f"{found.chains:,} chains"
                if found.batches and theory(found.spec, self.scene.coordinate) is None:
                    said += ", no line: control variates"
            parts.append(sign + said)
        return {self._text.id: " · ".join([*parts, "dashed: target", "bars ±2 standard errors"])}
