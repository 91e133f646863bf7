"""Claims about whole posteriors of data: the weights of two modes, the heat of a batch, and a network's band."""

import numpy as np
import pytest

from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.targets.curve_network import LOOKED_AT, CurveNetwork, _curves


def run_of(target, sampler, gradient, n_chains, burn_in, n_steps, seed=3):
    lane = {"sampler": sampler, "gradient": gradient}
    spec = {
        "target": target,
        "lanes": [lane],
        "n_chains": n_chains,
        "burn_in": burn_in,
        "n_steps": n_steps,
        "thin": n_steps,
        "seed": seed,
    }
    run = Run(Experiment.from_dict(spec).runs()[0])
    run.advance(burn_in + n_steps)
    assert run.divergence is None
    return run


def part(key, **params):
    return {"key": key, "params": params}


def right_of_zero(run):
    """P(θ₂ > 0) from the histogram, and the quadrature's; no edge need be at 0: both have the same bins."""
    from sgmcmc_lab.samplers.running_statistics import bin_edges

    column = run.target.columns[1]
    above = bin_edges(column)[:-1] >= 0
    counts = run.statistics.counts(1)
    inside = counts[1:-1][above].sum() + counts[-1]
    return inside / counts.sum()


@pytest.mark.slow
def test_both_modes_have_their_weight_as_the_step_goes_to_0():
    """Welling & Teh's mixture, batches of 10 from 50: P(θ₂ > 0) within .02 of quadrature at the smallest step. SE from
    the spread of 256 chains .004, so that 1 of 10⁵ seeds fails. At large steps the noise merges the modes."""
    errors = []
    for step_size, steps in ((0.02, 10_000), (0.002, 30_000)):
        run = run_of(
            part("tied_means", items=50),
            part("sgld", step_size=step_size),
            part("minibatch", batch_size=10),
            256,
            steps // 10,
            steps,
        )
        errors.append(
            (
                abs(right_of_zero(run) - run.target.weight),
                abs(run.statistics.variance(0) / run.target.columns[0].variance - 1),
            )
        )
    assert errors[1][0] < 0.02
    # Planted fault: the step ten times as large, whose variance is far from right.
    assert errors[0][1] > 5 * errors[1][1]


@pytest.mark.slow
def test_what_the_batch_says_of_its_noise_takes_the_heat_back():
    """The temperature of SGGMC is 1 within 1 % where B̂ of the batch is subtracted, and .1 above without. Its SE, from
    64 chains of 20,000 steps, is .001."""
    found = {}
    for gradient in ("full", "minibatch", "minibatch_fisher"):
        batch = {} if gradient == "full" else {"batch_size": 10}
        run = run_of(
            part("linear_regression", items=100),
            part("sggmc", step_size=0.003, friction=10.0),
            part(gradient, **batch),
            64,
            2000,
            20_000,
        )
        found[gradient] = run.temperature
    assert abs(found["full"] - 1) < 0.01
    assert found["minibatch"] > 1.1
    assert abs(found["minibatch_fisher"] - 1) < 0.01


def test_the_curve_is_followed_where_it_says():
    """The columns are f at nine points, in plain Python too; another θ at which hidden units have changed places and
    signs is the same curve."""
    target = CurveNetwork(hidden=3)
    rng = np.random.default_rng(1)
    theta = rng.standard_normal((4, 5, 10))
    values = target.values(theta)
    np.testing.assert_allclose(values.reshape(20, 9), _curves(theta.reshape(20, 1, 10), LOOKED_AT), rtol=1e-12)
    places = [2, 0, 1]
    turned = np.concatenate(
        [-theta[..., 0:3][..., places], -theta[..., 3:6][..., places], -theta[..., 6:9][..., places], theta[..., 9:]],
        axis=-1,
    )
    np.testing.assert_allclose(target.values(turned), values, rtol=1e-12)
