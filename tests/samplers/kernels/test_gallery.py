"""Laws of the samplers that libraries have beside those of the papers, and what a slip of each does to its law."""

import importlib

import pytest

from sgmcmc_lab.samplers.experiment import RunSpec
from tests.helpers.checks_samplers import triple_verdicts
from tests.helpers.edited import edited, faulty
from tests.helpers.statistics import failures

# Sampler, target, parameters, steps, and slips that its law shows, each as the right text and the wrong one.
CASES = [
    (
        "slice",
        "double_well",
        {},
        60,
        [
            ("level = current - log1p(-rng.random())", "level = current + 1.0"),
        ],
    ),
    (
        "slice",
        "gaussian_mixture",
        {"step_size": 1.5, "limit": 4},
        60,
        [
            ("times = int(most * rng.random())", "times = most // 4"),
        ],
    ),
    ("slice", "banana", {}, 60, [("theta[c, i], current = x[0, i], energy[0]", "theta[c, i] = x[0, i]")]),
    (
        "elliptical_slice",
        "skew_normal",
        {},
        60,
        [
            ("square / (2 * scale * scale)", "square / scale"),
            ("- log1p(-rng.random())", "+ 1.0"),
        ],
    ),
    (
        "adaptive_metropolis",
        "correlated_gaussian",
        {},
        3000,
        [("energy[c] - proposed[c], proposed[c]", "(energy[c] - proposed[c]) / 1.2, proposed[c]")],
    ),
    (
        "badodab",
        "correlated_gaussian",
        {"step_size": 0.1},
        500,
        [("(kinetic / dim - 1)", "(kinetic - 1)")],
    ),
    (
        "mclmc",
        "correlated_gaussian",
        {"step_size": 0.1},
        500,
        [("/ (dim - 1))", "/ dim)"), ("2 * shrunk * u[c, i]", "shrunk * u[c, i]")],
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("s", "t", "params", "steps", "slips"), CASES)
def test_the_law_of_a_sampler_and_of_its_slips(s, t, params, steps, slips, tmp_path):
    """Fails where moments or marginals of 1e5 draws of 1,000 chains are off by more than their errors explain (false
    alarms: 1e-3 in all, as in ``test_samplers``), or where a slip in the text of the kernel is not noticed so."""
    spec = RunSpec.of(t, s, "full", sampler_params=params, n_chains=1000, n_steps=1, seed=31)
    sampler = spec.make_sampler()
    assert not failures(triple_verdicts(spec, None, steps))
    for right, wrong in slips:
        kernel = edited(importlib.import_module(type(sampler).__module__), right, wrong, tmp_path).advance
        assert failures(triple_verdicts(spec, faulty(sampler, kernel), steps)), wrong
