"""Laws of the samplers that libraries have beside those of the papers, and what a slip of each does to its law."""

import importlib
import re

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.experiment import Experiment, RunSpec
from sgmcmc_lab.samplers.kernels.adaptive_metropolis import AdaptiveMetropolis
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.checks_samplers import reference_draws, triple_verdicts
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
        "demcz",
        "gaussian_mixture",
        {"step_size": 3.0},
        2000,
        [("energy[c] - proposed[c], proposed[c]", "(energy[c] - proposed[c]) / 1.2, proposed[c]")],
    ),
    (
        "amagold",
        "quartic",
        {"step_size": 0.5, "n_leapfrog": 4},
        100,
        [("+ work[c]", "+ 0 * work[c]"), ("before, r, first,", "before, r, -first,")],
    ),
    (
        "obabo",
        "quartic",
        {"step_size": 0.5, "n_leapfrog": 4},
        300,
        [
            ("- gained[c]", "- 0 * gained[c]"),
            ("before, r, first,", "before, r, -first,"),
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
    ("amagold", {"step_size": 0.2, "n_leapfrog": 3}, "+ work[c]", "+ 0 * work[c]"),
    ("obabo", {"step_size": 0.2, "n_leapfrog": 3}, "- gained[c]", "- 0 * gained[c]"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("s", "params", "right", "wrong"), WITH_MINIBATCHES)
def test_an_amortised_accept_step_is_exact_with_minibatches(s, params, right, wrong, tmp_path):
    """The same with a fifth of the data in a batch, of a linear regression.

    The planted fault: an accept step that leaves out the work of the noisy gradients.
    """
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
    """Fails where moments or marginals of 25,000 draws of 1,000 chains are off by more than their errors explain (false
    alarms: 1e-3 in all, as in ``test_samplers``), or where a slip in the text of the kernel is not noticed so."""
    spec = RunSpec.of(t, s, "full", sampler_params=params, n_chains=1000, n_steps=1, seed=31)
    sampler = spec.make_sampler()
    assert not failures(triple_verdicts(spec, None, steps))
    for right, wrong in slips:
        kernel = edited(importlib.import_module(type(sampler).__module__), right, wrong, tmp_path).advance
        assert failures(triple_verdicts(spec, faulty(sampler, kernel), steps)), wrong


@pytest.mark.slow
def test_adaptive_metropolis_is_as_biased_as_it_says():
    """Fails where a mean of its sentence is 4 standard errors from that of 1,000 other chains.

    The sentence has the means of 4,000 chains of seed 1, and of 1,000 of seed 2. Planted faults: a mean without bias,
    and that of a random walk, which has none.
    """
    sentence = " ".join(AdaptiveMetropolis.__doc__.split("\n\n")[0].split())
    exact, *said = map(float, re.findall(r"\d\.\d\d(?= ±|,)", sentence))
    steps = [int(n.replace(",", "")) for n in re.findall(r"first ([\d,]+\d)", sentence)]
    spec = RunSpec.of("banana", "adaptive_metropolis", "full", n_chains=1000, n_steps=max(steps), seed=51)
    run = engine.Run(spec, keep_draws=True)
    run.advance(spec.n_steps)
    assert round(run.target.columns[1].variance, 2) == exact
    walk = engine.Run(RunSpec.of("banana", "rwm", "full", n_chains=1000, n_steps=steps[0], seed=51), keep_draws=True)
    walk.advance(steps[0])

    def off(run, n, mean):
        """The distance of a mean from that of the first n steps, in standard errors of both."""
        found = (run.kept[:, :n, 1] ** 2).mean(axis=1)
        return abs(found.mean() - mean) / np.hypot(found.std() / np.sqrt(len(found)), 0.015)

    for n, mean in zip(steps, said, strict=True):
        assert off(run, n, mean) < 4 < off(run, n, exact)
    assert off(walk, steps[0], exact) < 4 < off(walk, steps[0], said[0])


@pytest.mark.slow
def test_the_archive_is_thinned_when_it_is_full():
    """Fails where the compiled archive is not the textbook's, before and after it is full, of two chains."""
    spec = RunSpec.of("correlated_gaussian", "demcz", "full", n_chains=2, n_steps=1300, seed=9)
    run = engine.Run(spec, keep_draws=True)
    expected = reference_draws(run, 1300)
    run.advance(1300)
    np.testing.assert_allclose(run.kept, expected, rtol=1e-8, atol=1e-10)
    # 10 at first, 90 more by step 900, then half of them, and at steps 910, 920, 940, …, 1300 one more.
    assert run.momentum[0, :3].tolist() == [1300, 50 + 1 + 20, 20]


@pytest.mark.parametrize(
    ("sampler", "target", "n_chains", "sentence"),
    [
        ("mclmc", {"key": "typed", "params": {"energy": "theta^2/2"}}, 4, "with its 1 coordinate, of which it needs 2"),
        ("demcz", {"key": "curve_network"}, 2000, "DE-MC-Z keeps 3,103 numbers a chain; allowed are 1351 chains"),
    ],
)
def test_what_a_chain_keeps_and_needs_is_bounded(sampler, target, n_chains, sentence):
    """Fails where a sampler runs on too few coordinates, or its chains keep as much as a client likes."""
    data = {"target": target, "lanes": [{"sampler": sampler}], "n_chains": n_chains}
    with pytest.raises(SpecError, match=sentence):
        Experiment.from_dict(data)
