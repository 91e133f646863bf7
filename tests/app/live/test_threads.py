"""Threads of the server do not block its event loop."""

import asyncio
import os
import sys
import threading
from unittest.mock import Mock

import numpy as np
import pytest

from sgmcmc_lab.app.live import loop, runner
from sgmcmc_lab.app.live.fair_executor import ProcessorShare
from sgmcmc_lab.app.live.lanes import DensityLanes
from sgmcmc_lab.app.page import export, measuring
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.samplers.diagnostics import divergence, ks
from sgmcmc_lab.samplers.targets import TARGETS, long_run
from tests.helpers.cases import for_each

POOLS = [
    pool.of(ProcessorShare())
    for pool in (loop.POOL, loop.SLOW, runner._LOADER, runner._FINDER, export._WRITERS, measuring.WORKER)
]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
@for_each("pool", POOLS)
def test_workers_let_the_loop_go_first(pool):
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert pool.submit(niceness).result() > niceness()


def test_a_thread_makes_a_figure_that_no_page_has_had(monkeypatch):
    """Fails where the event loop makes it: a figure takes as long as ten frames. The next page gets it at once."""
    made, loop_thread = [], threading.get_ident()
    build = VIEWS["state"].build
    monkeypatch.setattr(VIEWS["state"], "build", lambda view: (made.append(threading.get_ident()), build(view))[1])
    state = AppState()
    # No other test has this target.
    state.set_target_param("sd", 1.2345)
    state.views = ["state"]

    async def figures():
        page = runner.Runner(state, Mock())
        await page.build_views()
        return page.views[0].document

    first, second = asyncio.run(figures()), asyncio.run(figures())
    assert len(made) == 1 and made[0] != loop_thread
    assert first == second


def test_a_thread_computes_the_answers_that_a_frame_compares_draws_with():
    """Fails where the first frame of a target computes its exact masses, or its CDFs, on the event loop."""
    state = AppState()
    state.set_target("ring")
    state.set_target_param("radius", 2.3456)
    experiment = state.experiment
    target = experiment.make_target()
    assert not DensityLanes.compared(experiment)
    ks.prepare(target)
    assert not DensityLanes.compared(experiment)
    divergence.prepare(target)
    assert DensityLanes.compared(experiment)


def test_an_energy_of_many_points_leaves_the_interpreter_to_others_in_between(monkeypatch):
    """Fails where one compiled call, which keeps the interpreter's lock, looks at more data than a slice has.

    Planted fault: a slice of all points.
    """
    target = TARGETS["logistic_table"]()
    theta = np.random.default_rng(1).normal(size=(200, target.dim))
    seen, potential = [], target.potential

    def counted(points, out, params):
        seen.append(len(points))
        potential(points, out, params)

    monkeypatch.setattr(type(target), "potential", staticmethod(counted))
    monkeypatch.setattr(long_run.jit, "prepare", lambda functions: None)
    whole = {}
    for slice_ in (long_run._SLICE, 10 * target.gradient_work, 10**12):
        seen.clear()
        monkeypatch.setattr(long_run, "_SLICE", slice_)
        whole[slice_] = target._potentials(theta)
        assert sum(seen) == 200 and (max(seen) * target.gradient_work <= slice_)
    assert len(seen) == 1
    first, *others = whole.values()
    assert all(np.array_equal(first, other) for other in others)
