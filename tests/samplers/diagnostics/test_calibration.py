"""Simulation-based calibration: of every preset of the typed posterior, and of what is wrong with some.

Every test is at its seeds. A right sampler fails one with the false-alarm rate of its comparisons: 39 coordinates of
the presets, each at p > 1e-4, 0.4 %.
"""

from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.samplers.choices import make_target
from sgmcmc_lab.samplers.diagnostics import calibration
from sgmcmc_lab.samplers.diagnostics.calibration import (
    BINS,
    DRAWS,
    Calibration,
    Replicas,
    by_quadrature,
    chi_square,
    exact,
    main,
    refusal,
    with_rows,
)
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.expressions import ZERO
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.bounded import Bounded
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS

ALARM = 1e-4
RUNS, ROWS = 80, 8
"""Five runs for each bin of a histogram, with which χ² has a p."""


def preset(key, **values):
    first = RunSpec.of("posterior", "sgld").target.values()
    return TypedPosterior(**{**TypedPosterior.completed(first, {"table": key}), **values})


def smallest(found):
    return min(found.p_value(k) for k in range(len(found.names)))


@pytest.mark.slow
@pytest.mark.parametrize("key", [key for key in PRESETS if key != "remission"])
def test_ranks_of_each_preset_are_uniform(key):
    found = exact(with_rows(preset(key), ROWS), RUNS, seed=1)
    assert len(found.ranks) == RUNS and found.failed == 0
    assert smallest(found) > ALARM, calibration.as_text(found)


def test_nothing_is_drawn_where_the_end_of_the_study_is_no_part_of_the_model():
    with pytest.raises(SpecError, match="nothing can be drawn of it"):
        exact(preset("remission"), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "k", "runs"), [("outliers", 2, 240), ("change_point", 2, RUNS)])
def test_fault_a_jacobian_that_is_left_out(key, k, runs, monkeypatch):
    """The density of s > 0, and that of 0 < t0 < 111, is then taken for that of its coordinate."""
    target = preset(key)
    monkeypatch.setattr(Bounded, "log_jacobian", lambda self, theta: ZERO)
    found = exact(with_rows(target, ROWS), runs, seed=1)
    assert found.p_value(k) < ALARM, calibration.as_text(found)


@pytest.mark.slow
def test_quadrature_is_uniform_too(monkeypatch):
    """Ranks by exact distribution functions; not uniform if each data point counts four times, which halves the draws'
    width."""
    target = with_rows(preset("counts"), ROWS)
    assert smallest(by_quadrature(target, 110, seed=2)) > ALARM
    monkeypatch.setattr(calibration.Replica, "log_row", property(lambda self: 4 * TypedPosterior.log_row.func(self)))
    assert smallest(by_quadrature(target, 130, seed=2)) < ALARM


LINE = {
    "table": "outliers",
    "parameters": "a, b, s > 0",
    "prior": "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 1) + lognormal_lpdf(s, -1, 0.2)",
    "row": "normal_lpdf(y, a + b*x, s)",
    "curve": "a + b*x",
    "coordinates": "typed",
}


def sgld(step_size):
    return RunSpec.of("posterior", "sgld", "full", target_params=LINE, sampler_params={"step_size": step_size})


@pytest.mark.slow
def test_a_step_that_is_too_large_shows():
    """SGLD's stationary distribution is the target's but for O(ε); with six times the step too wide: a hump."""
    found = {}
    for step_size, thin, runs in ((5e-4, 25, 160), (3e-3, 5, 640)):
        replicas = Replicas(TypedPosterior(**LINE), sgld(step_size), thin, seed=1)
        while replicas.done < runs:
            replicas.advance(10**9)
        found[step_size] = replicas.found()
    assert smallest(found[5e-4]) > ALARM, calibration.as_text(found[5e-4])
    assert smallest(found[3e-3]) < ALARM, calibration.as_text(found[3e-3])
    assert found[3e-3].counts(0)[[0, -1]].max() < 20


def test_a_run_on_a_replica_looks_for_no_exact_answers():
    """Fails where the run makes a target of its own from the table: a quadrature for each of a thousand runs."""
    target = TypedPosterior(**LINE)
    replica = calibration.Replica.of(target, target.titles)
    assert make_target(replica.choice) is replica and len(replica.exact_draws()) == 0


@pytest.mark.slow
def test_some_steps_at_a_time_give_the_same_ranks():
    target = TypedPosterior(**LINE)
    whole, parts = (Replicas(target, sgld(5e-4), thin=3, seed=5) for _ in range(2))
    while whole.done < 2:
        whole.advance(10**9)
    while parts.done < 2:
        parts.advance(7)
    assert np.array_equal(whole.found().ranks, parts.found().ranks)


@pytest.mark.slow
def test_what_has_no_calibration_says_why():
    target = TypedPosterior(**LINE)
    assert "no exact answers" in refusal(target, RunSpec.of("posterior", "exact", target_params=LINE))
    assert "particles" in refusal(target, RunSpec.of("posterior", "svgd", target_params=LINE))
    assert "temperature 1" in refusal(target, replace(sgld(5e-4), temperature=2.0))
    assert refusal(target, sgld(5e-4)) == ""
    other = {**LINE, "prior": "-a^2 - b^2 - s"}
    assert "is no density of a parameter" in refusal(TypedPosterior(**other), sgld(5e-4))
    for wrong in (lambda: exact(target, 0), lambda: exact(target, 10**9), lambda: by_quadrature(preset("funnel"), 1)):
        with pytest.raises(SpecError, match=r"allowed|takes up to"):
            wrong()


@pytest.mark.slow
def test_the_command(capsys):
    assert main(["two_means", "--runs", "80", "--rows", "4"]) == 0
    said = capsys.readouterr().out
    assert "80 runs" in said and "θ₂ b" in said
    for wrong in (["--runs", "0"], ["--rows", "0"], ["--by", "nobody"]):
        with pytest.raises(SystemExit) as error:
            main(["two_means", *wrong])
        assert error.value.code == 2 and wrong[0][2:] in capsys.readouterr().err


def test_chi_square():
    """Ten in each bin but for 20 and 0 in two: χ² = 20 with 15 degrees of freedom."""
    counts = np.full(BINS, 10)
    assert chi_square(counts) == 1
    counts[:2] = 20, 0
    assert chi_square(counts) == pytest.approx(0.1719, abs=1e-4)
    assert np.isnan(chi_square(np.full(BINS, 4)))
    made = Calibration(("a",), np.arange(DRAWS + 1)[:, None])
    assert list(made.counts(0)) == [4] * BINS
