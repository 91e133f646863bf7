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
        "amagold",
        "quartic",
        {"step_size": 0.5, "n_inner": 4},
        100,
        [("+ work[c], proposed", "+ 0 * work[c], proposed"), ("r[c, i] = -first[c, i]", "r[c, i] = first[c, i]")],
    ),
    (
        "obabo",
        "quartic",
        {"step_size": 0.5, "n_inner": 4},
        300,
        [
            ("- gained[c], proposed", "- 0 * gained[c], proposed"),
            ("r[c, i] = -first[c, i]", "r[c, i] = first[c, i]"),
        ],
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

WITH_MINIBATCHES = [
    ("amagold", {"step_size": 0.2, "n_inner": 3}, "+ work[c], proposed", "+ 0 * work[c], proposed"),
    ("obabo", {"step_size": 0.2, "n_inner": 3}, "- gained[c], proposed", "- 0 * gained[c], proposed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("s", "params", "right", "wrong"), WITH_MINIBATCHES)
def test_an_amortised_accept_step_is_exact_with_minibatches(s, params, right, wrong, tmp_path):
    """The same with a fifth of the data in a batch, of a linear regression. The planted fault: an accept step that leaves
    out the work of the noisy gradients."""
    spec = RunSpec.of(
        "linear_regression",
        s,
        "minibatch",
        target_params={"items": 25},
        sampler_params=params,
        gradient_params={"batch_size": 5},
        n_chains=1000,
        n_steps=1,
        seed=31,
    )
    sampler = spec.make_sampler()
    assert not failures(triple_verdicts(spec, None, 200))
    kernel = edited(importlib.import_module(type(sampler).__module__), right, wrong, tmp_path).advance
    assert failures(triple_verdicts(spec, faulty(sampler, kernel), 200))


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
