"""How many steps a frame has on a machine that is busy with something else."""

import asyncio
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from app import runner
from app.lanes import DensityLanes, Progress, densities, prepare
from app.state import AppState
from app.threads import workers

WAIT, STEP = 0.005, 2e-6


def test_waiting_is_not_taken_for_the_cost_of_a_step(monkeypatch):
    """Fails where chunks shrink because each of them is waited for. Planted fault: a clock that goes on meanwhile."""
    wall, own, chunks = [0.0], [0.0], []

    def advance(run, n):
        chunks.append(n)
        own[0] += STEP * n
        wall[0] += STEP * n + WAIT

    clocks = SimpleNamespace(perf_counter=lambda: wall[0], thread_time=lambda: own[0])
    monkeypatch.setattr(densities, "time", clocks)
    monkeypatch.setattr(densities.Run, "advance", advance)

    def last(clock):
        monkeypatch.setattr(clocks, "thread_time", clock)
        state = AppState()
        lanes = DensityLanes(state.experiment)
        for state.speed in (1,) * 20 + (1000,):
            chunks.clear()
            lanes.move(state, 0)
        return list(chunks)

    assert last(clocks.thread_time) == [1000]
    assert last(clocks.perf_counter) == [1] * 8


@pytest.mark.parametrize(("most", "in_thread"), [(runner.LIGHT, False), (0, True)])
def test_lanes_that_are_made_in_a_moment_do_not_wait_for_a_thread(most, in_thread, monkeypatch):
    """Fails where in a full class no page moves until all are made, for the loop leaves a thread no time before.

    Planted fault: no experiment is so light.
    """
    state, asked = AppState(), []
    prepare(Progress(), state.experiment, None)
    pool = workers(1, "test")
    monkeypatch.setattr(
        runner, "_LOADER", SimpleNamespace(submit=lambda *work: asked.append(work) or pool.submit(*work))
    )
    monkeypatch.setattr(runner, "LIGHT", most)

    async def begun():
        made = runner.Runner(state, Mock())
        await made._begin()
        return made.lanes

    assert len(asyncio.run(begun()).runs) == 1
    assert bool(asked) == in_thread
