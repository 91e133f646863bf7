"""Rough answers of a target whose exact ones take seconds, and runs that go on when those come."""

import numpy as np
import pytest

from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.choices import make_target
from sgmcmc_lab.samplers.diagnostics import ks
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS


def silent(what, share):
    pass


@pytest.fixture(params=["schools", "outliers"])
def experiment(request):
    """One whose exact answers are a long run's, and one whose are a quadrature's."""
    params = PRESETS[request.param]._replace(table=request.param)._asdict()
    target = {"key": "posterior", "params": params}
    return Experiment.from_dict({"target": target, "lanes": [{"sampler": "sgld"}], "n_chains": 4, "seed": 1})


@pytest.mark.slow
def test_rough_answers_need_no_exact_ones(experiment):
    target = experiment.make_target()
    target.prepare(silent)
    early = target.early()
    assert early is target.early(), "they are computed once"
    assert early.uncertainty > 5 * target.uncertainty
    for exact, rough in zip(target.columns, early.columns, strict=True):
        assert abs(rough.mean - exact.mean) < 6 * early.uncertainty * np.sqrt(exact.variance)
        assert 0.2 < rough.variance / exact.variance < 5


@pytest.mark.slow
def test_a_run_that_began_early_is_the_run_that_knew_its_target(experiment):
    (spec,) = experiment.runs()
    target = make_target(spec.target)
    target.prepare(silent)
    early, late = Run(spec, early=target.early()), Run(spec)
    for run in (early, late):
        run.advance(300)
    rough = [ks.distance(early.statistics, k) for k in range(target.n_columns)]
    early.know(target.counted_like(early.target))
    assert np.array_equal(early.position, late.position)
    for k in range(target.n_columns):
        assert early.statistics.mean(k) == pytest.approx(late.statistics.mean(k), rel=1e-9)
        assert early.statistics.variance(k) == pytest.approx(late.statistics.variance(k), rel=1e-9)
    early_ks, late_ks = ([ks.distance(run.statistics, k) for k in range(target.n_columns)] for run in (early, late))
    # The bins are others, and no bin holds much.
    assert early_ks == pytest.approx(late_ks, abs=0.003)
    assert rough != pytest.approx(late_ks, abs=0.003), "the rough answers were others"
