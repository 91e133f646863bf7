"""The bench beside a program that is missing."""

from tests.benchmarks import trajectories
from tests.benchmarks.timing import QUICK


def test_without_blackjax_the_bench_is_skipped_with_a_sentence(monkeypatch):
    monkeypatch.setattr(trajectories.importlib.util, "find_spec", lambda name: None)
    said = []
    needs = trajectories.trajectory_requirements(QUICK, said.append)
    assert said == [trajectories.MISSING] and len(needs) == 4
    assert all(need.met is None for need in needs)
