"""Stochastic gradient Barker dynamics: the law of its chain on a Gaussian, and what a noisy gradient adds."""

import numpy as np

from sgmcmc_lab.samplers import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from tests.helpers.cases import for_each
from tests.helpers.statistics import at_rest_in_its_law


def variance(s, noise, seed=5):
    """The variance of 2000 chains on N(0, 1) after a time of 10, over so many steps that its error is .003."""
    gradient = "gaussian" if noise else "full"
    spec = RunSpec.of(
        "gaussian",
        "sg_barker",
        gradient,
        sampler_params={"step_size": s},
        gradient_params={"variance": noise} if noise else None,
        n_chains=2000,
        burn_in=round(20 / s**2),
        seed=seed,
    )
    run = at_rest_in_its_law(spec)
    run.advance(spec.burn_in)
    kept = []
    for _ in range(100):
        run.advance(max(round(0.5 / s**2), 1))
        kept.append(run.position[:, 0].copy())
    return float(np.mean(np.square(kept)))


@for_each(("s", "noise"), [(0.2, 0.0), (0.3, 0.0), (0.2, 2.0)])
def test_the_variance_is_that_of_its_expansion(s, noise):
    """Var θ = 1 + (3/2)ε(1 + V) + O(ε²), ε = s²/2, within .01 for errors of 2·10⁵ draws, a third of which count, and
    4 ((1 + V)ε)². SGLD of the same ε, 1 + ε(1 + V)/2, is outside."""
    eps = s**2 / 2
    found, allowed = variance(s, noise), 0.01 + 4 * ((1 + noise) * eps) ** 2
    assert abs(found - 1 - 1.5 * eps * (1 + noise)) < allowed
    if eps * (1 + noise) > 0.03:
        assert abs(found - 1 - 0.5 * eps * (1 + noise)) > allowed


def test_it_comes_back_where_sgld_is_lost():
    """Far out on the quartic's wall SGLD's step overshoots for good; this one's is never longer than its noise."""
    lost = {}
    for sampler, step_size in (("sgld", 0.1), ("sg_barker", 0.1**0.5)):
        run = Run(RunSpec.of("quartic", sampler, sampler_params={"step_size": step_size}, n_chains=8, seed=1))
        run.position = [6.0, 6.0]
        run.advance(2000)
        lost[sampler] = run.divergence is not None
        if sampler == "sg_barker":
            assert np.abs(run.position).max() < 6
    assert lost == {"sgld": True, "sg_barker": False}
