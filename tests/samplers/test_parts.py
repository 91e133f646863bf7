"""A step taken apart. That its parts add up to the move, for every sampler, target and gradient, is held beside the
comparison draw for draw; here is what the parts are, and that to look at them changes nothing."""

import copy

import numpy as np
import pytest

from sgmcmc_lab.samplers import engine
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.step_terms import Play, TooLongError, take_apart
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import riemannian

WITH_ALL_PARTS = {
    # Where a part is made only there, the sampler's parameters.
    "recipe": {"layout": "theta_r", "refresh": 10.0, "step_size": 2.0, "drift_entries": ("r", "")},
    # Long enough for every kind of event.
    "zigzag": {"step_size": 10.0},
    "bps": {"step_size": 10.0},
    **{key: {"adapt_steps": 20} for key in ("hmc", "mala", "nuts", "mclmc", "chees")},
}


def started(s, t=None, g=None, params=None, **settings):
    """A run of a sampler on its first target, or on this one, with a noisy gradient where it takes one."""
    t = t or next(key for key, target in TARGETS.items() if SAMPLERS[s].fits(target))
    fit = SAMPLERS[s].gradients_for(TARGETS[t])
    g = g or next(key for key in ("gaussian", "minibatch", "full") if key in fit)
    spec = RunSpec.of(
        t,
        s,
        g,
        sampler_params=params or {},
        n_chains=settings.get("n_chains", 2),
        seed=3,
        gradient_params=settings.get("gradient_params", {}),
    )
    return engine.Run(spec)


def after(run, chain):
    """A chain's position after the compiled kernel's next step."""
    run.advance(1)
    return np.concatenate([run.position[chain], run.momentum[chain]])


@for_each("s", list(SAMPLERS))
def test_every_declared_part_is_played(s):
    """Fails where a part is declared that no step has, or a step has one that is not declared."""
    params = dict(WITH_ALL_PARTS.get(s, {}))
    t = "gaussian" if s == "recipe" else "sparse_dirichlet" if s in ("sgrld", "root_sgld") else None
    played = {part.name for part in take_apart(started(s, t, params=params)).parts}
    if s == "recipe":
        gamma = {"step_size": 0.01, "diffusion_entries": ("theta",)}
        played |= {part.name for part in take_apart(started(s, "gamma", "full", gamma)).parts}
    unlike = sorted(played ^ set(SAMPLERS[s].parts))
    assert not unlike, (
        f"textbook_step makes a part under run.part or by samplers/textbook.py, and parts declares it; not both: {unlike}"
    )


def test_to_look_at_a_step_changes_nothing():
    """Fails where a run that was taken apart makes another step than one that was not."""
    for g in ("minibatch_saga", "minibatch_epochs"):
        run = started("sgld", "linear_regression", g, n_chains=3)
        run.advance(3)
        other = copy.deepcopy(run)
        steps = [take_apart(run, chain) for chain in range(3)]
        run.advance(1)
        other.advance(1)
        np.testing.assert_array_equal(run.position, other.position)
        np.testing.assert_array_equal(run.memory, other.memory)
        np.testing.assert_array_equal(run.data, other.data)
        for step, x in zip(steps, run.position, strict=True):
            np.testing.assert_allclose(step.end[: step.dim], x, rtol=1e-13)


def test_an_exact_draw_is_one_part():
    run = started("exact", "quartic", n_chains=2)
    step = take_apart(run, 1)
    assert [part.name for part in step.parts] == ["draw"]
    np.testing.assert_array_equal(step.end, after(run, 1))


def test_the_terms_of_a_recipe_are_those_of_its_matrices():
    """Fails where −D∇H, −Q∇H or Γ is not what D = g², Q = ∓g make of it by hand, with g = 1 + tanh(θ)²/2."""
    eps = 0.03
    run = started("recipe", "quartic", "full", {**riemannian(TARGETS["quartic"]().dim), "step_size": eps})
    run.advance(5)
    theta, r = run.position[0].copy(), run.momentum[0].copy()
    tanh, slope, d = np.tanh(theta), run.target.gradient_at(run.position)[0], len(theta)
    g = 1 + tanh**2 / 2
    by_hand = {
        "−εD∇H": (np.zeros(d), -eps * g**2 * r),
        "−εQ∇H": (eps * g * r, -eps * g * slope),
        "εΓ": (np.zeros(d), eps * tanh * (1 - tanh**2)),
    }
    moves = {part.name: part.end - part.start for part in take_apart(run).parts}
    for name, both in by_hand.items():
        np.testing.assert_allclose(moves[name], np.concatenate(both), atol=1e-14)


def test_a_proposal_is_refused_where_its_coin_says_so():
    """Fails where the probability and the coin that are shown do not decide."""
    run = started("hmc", "quartic", params={"step_size": 0.35})
    seen = set()
    for _ in range(40):
        *_, path, coin = take_apart(run).parts
        probability, u = coin.numbers["probability"], coin.numbers["u"]
        assert bool(coin.numbers["accepted"]) == (u < probability)
        assert len(path.path) == run.sampler.n_leapfrog + 2
        np.testing.assert_array_equal(coin.end[:2], path.end[:2] if u < probability else path.start[:2])
        np.testing.assert_array_equal(coin.end, after(run, 0))
        seen.add(bool(u < probability))
    assert seen == {True, False}


def test_what_a_minibatch_adds_is_the_difference_of_two_gradients():
    run = started("sgld", "linear_regression", "minibatch", {"step_size": 1e-4})
    gradient, noise, _ = take_apart(run).parts
    slope = run.target.gradient_at(run.position)[0]
    np.testing.assert_allclose((gradient.end - gradient.start)[:2], -1e-4 * slope, rtol=1e-9)
    run.advance(1)
    np.testing.assert_allclose((noise.end - noise.start)[:2], -1e-4 * (run.last_gradient[0] - slope), rtol=1e-9)


def test_a_poisson_number_and_its_gamma_make_the_step():
    run = started("scir", "sparse_dirichlet", "minibatch")
    mean, _, poisson, gamma = take_apart(run).parts
    scale = -np.expm1(-run.sampler.step_size)
    assert (poisson.numbers["K"] == np.round(poisson.numbers["K"])).all()
    np.testing.assert_allclose(gamma.end[:10], scale * gamma.numbers["gamma"])
    alpha, counts = run.target.packed().reshape(2, -1)
    np.testing.assert_allclose(mean.end[:10], (1 - scale) * mean.start[:10] + scale * (alpha + counts), rtol=1e-12)


@pytest.mark.parametrize(
    ("t", "g", "gradient_params", "n_chains"),
    [("linear_regression", "minibatch", {"batch_size": 100}, 100), ("quartic", "full", {}, 10_000)],
)
def test_a_step_that_takes_too_long_is_refused_in_a_sentence(t, g, gradient_params, n_chains):
    with pytest.raises(TooLongError, match=f"{n_chains:,} chains"):
        take_apart(started("sgld", t, g, n_chains=n_chains, gradient_params=gradient_params))


def test_what_an_estimator_remembers_is_not_copied_where_it_is_large():
    run = started("sgld", "linear_regression", "minibatch_saga")
    run.memory = np.lib.stride_tricks.as_strided(np.zeros(1), (10_000, 1000), (0, 0))
    with pytest.raises(TooLongError, match="80,000,000 bytes"):
        Play(run)
