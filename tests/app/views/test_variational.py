"""Gamma SGVB beside draws: q's distances beside those of the chains, inside and outside the family of q."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from sgmcmc_lab.app.views import variational
from sgmcmc_lab.app.views.variational import Variational
from tests.helpers.checks_views import fitting, frames, records, scene_of


def advanced(made, view, steps):
    """The view after more steps of the lanes, when q has caught up."""
    for record in made:
        record.run.advance(steps)
    now = frames(made)
    while view.background(now):
        pass
    return view._found, view.compute(now), list(view.captions(now).values())


def staged(target, samplers, params=None, coordinate=0):
    made = records(target, samplers, target_params=params)
    return made, Variational(scene_of(made, coordinate))


@pytest.mark.slow
def test_inside_the_family_q_is_exact_where_a_minibatch_is_not():
    """Counts 8 and 1: after 3,000 steps q has KL(q‖p) below 1e-6. SCIR with batches of one and long steps draws from a
    wider law: its KS distance of ω₁ is more than twice that of CIR, which has all data and falls below .02.
    """
    small = {"dimension": 3, "alpha": 0.5, "observed": (8, 1)}
    made, view = staged("sparse_dirichlet", [("scir", {"step_size": 5.0}), ("cir", {"step_size": 5.0})], small)
    first, *_ = advanced(made, view, 10)
    found, _, said = advanced(made, view, 2990)
    assert first.divergence > 0.1 and abs(found.divergence) < 1e-6 and found.distance < 1e-4
    scir, cir = (float(text.split("KS ")[1]) for text in said[:2])
    assert cir < 0.02 and scir > 2 * cir
    assert found.shares.sum() == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_outside_the_family_q_keeps_its_distance_and_chains_come_nearer():
    """No gamma is nearer to a log-normal than KL .0192, or than KS .0181, by scipy's minimisation of each. The KS
    distance of exact draws passes below. Planted fault, a target in the family: that of q passes below as well.
    """
    x = np.exp(np.linspace(-3, 3, 4001))
    exact = stats.lognorm(0.5).cdf(x)
    least = optimize.minimize(
        lambda at: np.abs(special.gammainc(np.exp(at[0]), np.exp(at[1]) * x) - exact).max(),
        [1.5, 1.4],
        method="Nelder-Mead",
    ).fun
    assert least == pytest.approx(0.0181, abs=1e-4)
    made, view = staged("lognormal", ["geometric_ou", "exact"])
    seen = [advanced(made, view, steps) for steps in (300, 1200, 1500)]
    assert all(found.divergence > 0.01918 and found.distance > least for found, *_ in seen)
    ends = [[float(text.split("KS ")[1]) for text in said[:2]] for *_, said in (seen[0], seen[-1])]
    assert ends[-1][1] < least < seen[-1][0].distance
    assert ends[-1][0] < ends[0][0]
    made, view = staged("gamma", ["exact"])
    assert advanced(made, view, 1500)[0].distance < least / 10


def test_q_makes_the_steps_of_a_chain_and_begins_again_with_it(monkeypatch):
    monkeypatch.setattr(variational, "MOST_STEPS", 50)
    made, view = staged("gamma", ["cir"])
    found, data, said = advanced(made, view, 0)
    assert found.steps == 0 and said[0] == "CIR  no draws yet" and said[1].endswith("steps 0")
    assert len(data["q"][0]) == len(data["lane 0"][0])
    found, *_ = advanced(made, view, 30)
    assert found.steps == 30
    found, _, said = advanced(made, view, 300)
    assert found.steps == 50 and said[1].endswith("steps 50")
    again, _ = staged("gamma", ["cir"])
    after, *_ = advanced(again, view, 30)
    assert after.steps == 30
    # Another coordinate, or another theme, goes on with the same q.
    other = Variational(scene_of(again, dark=True), view)
    kept, *_ = advanced(again, other, 0)
    assert (kept.steps, kept.divergence, kept.distance) == (after.steps, after.divergence, after.distance)
    np.testing.assert_array_equal(kept.shares, after.shares)


def test_q_that_is_no_longer_finite_is_said(monkeypatch):
    def broken(fit, n):
        raise FloatingPointError

    made, view = staged("gamma", ["cir"])
    advanced(made, view, 5)
    monkeypatch.setattr(variational.GammaFit, "advance", broken)
    _, data, said = advanced(made, view, 5)
    assert said[-1] == "q diverged at step 6" and len(data["q"][0]) == 0


def test_it_is_offered_where_the_law_of_q_is_known():
    for target, params, there in (
        ("gamma", {}, True),
        ("lognormal", {}, True),
        ("dense_dirichlet", {}, True),
        ("dense_dirichlet", {"dimension": 30}, False),
        ("gaussian", {}, False),
        ("fisher", {}, False),
    ):
        made = records(target, ["exact"], target_params=params)
        assert (Variational in fitting(made)) is there, target
