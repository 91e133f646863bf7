"""The run of one lane, with what measures read of it."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sgmcmc_lab.lessons.measures.base import DRAWS, MOMENTA, NAN, OWN_RUN, Estimate, Evidence, Measure, OfColumn
from sgmcmc_lab.lessons.measures.diverged import Diverged
from sgmcmc_lab.samplers import Run, RunSpec

SNAPSHOTS = 400
"""Snapshots of the momenta in a run."""
CHUNK = 2_000_000
"""Chain-steps between two reports of progress."""
Report = Callable[[int], None]
"""``told(how far)`` within one run."""


def snapshot_interval(spec: RunSpec) -> int:
    """Steps from one snapshot of the momenta to the next."""
    return min(max(CHUNK // spec.n_chains, 1), max(spec.n_steps // SNAPSHOTS, 1))


def evidence(spec: RunSpec, needs: Iterable[str] = (), report: Report | None = None) -> Evidence:
    """The whole run of ``spec``, with what the measures need. ``report(chain-steps made)`` is called after a chunk."""
    needs = set(needs)
    if needs == {OWN_RUN}:
        # The measure makes its own run; of this one it reads the spec.
        return Evidence(Run(spec).trace())
    run = Run(spec, keep_draws=DRAWS in needs)
    size = max(CHUNK // spec.n_chains, 1)
    each = snapshot_interval(spec) if MOMENTA in needs else size
    snapshots = []
    for end, most in ((run.burn_in, size), (spec.burn_in + spec.n_steps, each)):
        while run.steps < end and run.divergence is None:
            run.advance(min(most, end - run.steps))
            if MOMENTA in needs and run.steps > run.burn_in and run.divergence is None:
                snapshots.append(run.momentum.copy())
            if report is not None:
                report(run.steps * spec.n_chains)
    return Evidence(run.trace(), np.array(snapshots) if MOMENTA in needs else None)


def measured(measure: Measure, lane: Any) -> Estimate:
    """The measure of a lane; nan where the lane blew up."""
    if lane.divergence is not None and not isinstance(measure, Diverged):
        return Estimate(NAN)
    counted = isinstance(lane, Evidence) or isinstance(measure, OfColumn)
    if counted and measure.requires != OWN_RUN and lane.statistics.n_steps == 0:
        return Estimate(NAN)
    return measure.of(lane)
