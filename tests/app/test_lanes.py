"""How many steps a frame has on a machine that is busy with something else."""

from types import SimpleNamespace

from app.lanes import DensityLanes, densities
from app.state import AppState

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
