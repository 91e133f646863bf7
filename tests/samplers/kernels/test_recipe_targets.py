"""Recipes on targets whose energy is no formula, and with up to twelve coordinates: what is typed is the sampler.

Beside each test is a planted fault that it must catch. Seeds are fixed; nothing here is a matter of chance.
"""

import gc
import weakref

import numpy as np
import pytest

from sgmcmc_lab.samplers import Change, Experiment, RunSpec, SpecError, engine
from sgmcmc_lab.samplers.expressions import ZERO, evaluate
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler, parameters_of
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.recipe.flow import on_points
from sgmcmc_lab.samplers.recipe.presets import PRESETS, preset
from sgmcmc_lab.samplers.recipe.recipe import Layout, Recipe
from sgmcmc_lab.samplers.targets import TARGETS, Typed
from sgmcmc_lab.samplers.targets.base import Target
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import FEW_DATA, check_formula

DEFAULT = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})
COMPILED = [t for t, cls in TARGETS.items() if RecipeSampler.fits(cls) and cls.formula is Target.formula]
"""Targets that a recipe runs on by their compiled gradients."""
SETTINGS = FEW_DATA | {"logistic_large": {"items": 300, "features": 6}}


def test_every_target_in_rd_with_few_coordinates_has_recipes():
    """Fails where a target on ℝᵈ or (0, ∞) with up to twelve coordinates refuses recipes, or another takes them."""
    for t, cls in TARGETS.items():
        few = cls(**SETTINGS.get(t, {})).dim <= 12
        flat = cls.support in ("line", "positive")
        assert RecipeSampler.fits(cls) == (few and flat), t
    assert len(COMPILED) >= 10


def moves(t, sampler, params, gradient):
    spec = RunSpec.of(
        t, sampler, gradient, target_params=SETTINGS.get(t), sampler_params=params, n_chains=5, n_steps=15, seed=3
    )
    return engine.run(spec).draws - spec.first_position()


@pytest.mark.slow
@pytest.mark.parametrize("t", COMPILED)
def test_a_recipe_is_the_hand_written_sampler(t):
    """Fails where SGLD or SGHMC, typed, is not the compiled kernel on the same random numbers, to 1e-9 of its moves,
    with any of the gradients that the target offers. Planted faults: D, or the friction, smaller by 1e-4."""
    target = TARGETS[t](**SETTINGS.get(t, {}))
    slow, step = (1e-6, min(5e-4, target.first_steps.batch / 10)) if target.first_steps else (1e-4, 5e-3)
    typed = {
        "sgld": ("diffusion_strength", 1.0, {"step_size": slow}, {}),
        "sghmc": ("friction", 100.0, {"step_size": step, "friction": 100.0}, {"scheme": "semi_implicit"}),
    }
    seen = 0
    for s, (name, value, params, scheme) in typed.items():
        recipes = [
            {
                **parameters_of(preset(s, target.dim, target.formula(), **{name: x})),
                **scheme,
                "step_size": params["step_size"],
            }
            for x in (value, value * (1 - 1e-4))
        ]
        for gradient in RecipeSampler.gradients_for(TARGETS[t]) & SAMPLERS[s].gradients_for(TARGETS[t]):
            expected = moves(t, s, params, gradient)
            right, wrong = (moves(t, "recipe", recipe, gradient) for recipe in recipes)
            size = np.abs(expected).max()
            assert size > 0
            np.testing.assert_allclose(right, expected, rtol=0, atol=1e-9 * size, err_msg=f"{s} {gradient}")
            assert np.abs(wrong - expected).max() > 1e-7 * size, gradient
            seen += 1
    assert seen >= 2 * sum(
        GRADIENTS[g].requires <= TARGETS[t].provides for g in GRADIENTS if not g.endswith("estimated")
    )


OF_ENERGY = [
    # The energy, and a recipe in which it stands.
    ("theta^4 - 2*theta^2", {"layout": "theta", "diffusion_entries": ("1 + exp(-U)",)}),
    ("theta^4 - 2*theta^2", "gsgrhmc"),
    ("theta^4 - 2*theta^2", "sgnht"),
    ("theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2", "gsgrhmc"),
    (
        "theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2",
        {"curl_entries": ("exp(-U/9)",), "drift_entries": ("", "-theta2*U/9")},
    ),
]


def of_energy(energy, recipe, **values):
    dim = 2 if "theta1" in energy else 1
    return recipe if isinstance(recipe, dict) else parameters_of(preset(recipe, dim, energy, **values))


@pytest.mark.parametrize(("energy", "recipe"), OF_ENERGY)
@pytest.mark.parametrize("gradient", ["full", "gaussian_corrected"])
def test_values_and_slopes_of_a_compiled_energy_are_the_formula_s(monkeypatch, energy, recipe, gradient):
    """Fails where a typed energy that says it is no formula gives other draws, to 1e-8, with U, its slopes in Γ, and
    both before and after θ moves. Planted faults: an energy with 1e-3 more, of the same slopes; Γ left out."""

    def draws(text=energy, **more):
        params = {"step_size": 0.01, **of_energy(energy, recipe), **more}
        spec = RunSpec.of(
            "typed",
            "recipe",
            gradient,
            target_params={"energy": text},
            sampler_params=params,
            n_chains=6,
            n_steps=100,
            seed=5,
        )
        trace = engine.run(spec)
        assert trace.divergence is None
        return trace.draws

    expected = draws()
    monkeypatch.setattr(Typed, "formula", lambda self: "U")
    np.testing.assert_allclose(draws(), expected, rtol=1e-8, atol=1e-8)
    if recipe != "sgnht":
        assert not np.allclose(draws(f"{energy} + 1e-3"), expected, rtol=1e-8, atol=1e-8)
        assert not np.allclose(draws(gamma=False), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["full", "minibatch"])
def test_an_entry_of_the_energy_is_the_textbook_s_on_real_data(gradient):
    """The kernel against plain Python, on three coordinates with momentum, whose entries are typed for one of them."""
    t = "logistic_table"
    target = TARGETS[t](**FEW_DATA[t])
    assert Layout("theta_r", target.dim).alike
    params = {**parameters_of(preset("gsgrhmc", target.dim, target.formula(), scale=0.1)), "step_size": 0.002}
    check_formula("recipe", t, gradient, params, {})


def test_what_is_typed_for_one_coordinate_is_every_coordinate_s():
    """Fails where ``theta`` or ``r`` in an entry are another coordinate's, or an entry is missing or beside its place.

    Planted fault: the coordinates in another order.
    """
    d = 4
    layout = Layout("theta_r_xi", d)
    recipe = Recipe.from_text(
        layout, "U", {"1,1": "theta^2", "2,2": "1 + r^2 + theta2", "3,3": "xi^2"}, {"1,2": "-exp(theta)", "2,3": "r/4"}
    )
    z = np.random.default_rng(2).normal(size=2 * d + 1)
    at = dict(zip(layout.names, z, strict=True))
    n = len(z)
    D, Q = np.array(evaluate([e for matrix in (recipe.D, recipe.Q) for row in matrix for e in row], **at)).reshape(
        2, n, n
    )
    theta, r, xi = z[:d], z[d : 2 * d], z[-1]
    np.testing.assert_allclose(D, np.diag([*theta**2, *(1 + r**2 + theta[1]), xi**2]), rtol=1e-12)
    expected = np.zeros((n, n))
    expected[np.arange(d), d + np.arange(d)] = -np.exp(theta)
    expected[d : 2 * d, -1] = r / 4
    np.testing.assert_allclose(Q, expected - expected.T, rtol=1e-12)
    assert not np.allclose(D, np.diag([*theta[::-1] ** 2, *(1 + r**2 + theta[1]), xi**2]))
    # Γ of the thermostat: Σ_i ∂_{r_i}(−r_i/4), of every coordinate.
    assert recipe.gamma[-1].constant is None
    np.testing.assert_allclose(evaluate([recipe.gamma[-1]], **at)[0], 2 * xi - d / 4)
    texts = recipe.to_dict()
    assert Recipe.from_dict(texts) == recipe
    assert texts["D"] == {"1,1": "theta^2", "2,2": "1 + r^2 + theta2", "3,3": "xi^2"}


WIDE = [
    ("logistic_large", {"items": 1000, "features": 12}, {"layout": "theta_r_xi", "diffusion_entries": ("0", "0", "0", "1", "0", "0"), "curl_entries": ("-1", "0", "r/12")}),
    ("logistic_large", {"items": 1000, "features": 5}, {"diffusion_entries": ("2", "theta3/9", "0", "0", "0", "1", "0", "0", "0", "1", "0", "0", "1", "0", "1"), "drift_entries": ("", "", "", "", "-theta5")}),
    ("poisson_regression", {}, {"diffusion_entries": ("1 + theta1^2", "0", "1"), "curl_entries": ("U/99",)}),
    ("student_mean", {}, {"layout": "theta_r", "diffusion_entries": ("0", "0", "exp(-U^2) + 1"), "curl_entries": ("-1",)}),
]  # fmt: skip


@for_each(("t", "target_params", "params"), WIDE)
def test_wide_recipes_survive_links_and_files(t, target_params, params):
    """Fails where an entry is lost in a link or in JSON. Planted fault: another entry, whose link must be another."""
    texts = []
    for first in (params["diffusion_entries"][0], "7"):
        entries = (first, *params["diffusion_entries"][1:])
        lane = {"sampler": {"key": "recipe", "params": {**params, "diffusion_entries": entries}}}
        whole = Experiment.from_dict({"target": {"key": t, "params": target_params}, "lanes": [lane]})
        assert whole.lanes[0].sampler.values()["diffusion_entries"] == entries
        assert Experiment.from_json(whole.to_json()) == whole
        assert Experiment.from_query(whole.to_query(), DEFAULT) == (whole, [])
        texts.append(whole.to_query())
    assert texts[0] != texts[1]


REFUSED = [
    ({"key": "curve_network"}, {}, "with its 31 coordinates, of which it takes 12"),
    (
        {"key": "logistic_large", "params": {"features": 3, "items": 1000}},
        {"layout": "theta_r", "diffusion_entries": ("1",) * 21},
        "formulas of up to",
    ),
    (
        {"key": "logistic_large", "params": {"features": 3, "items": 1000}},
        {"layout": "theta_r", "diffusion_entries": ("1",)},
        "for the rows theta, r: 3 entries are needed",
    ),
    (
        {"key": "logistic_large", "params": {"features": 3, "items": 1000}},
        {"layout": "theta_r_xi", "diffusion_entries": ("0", "0", "0", "1", "0", "theta")},
        "theta",
    ),
    ({"key": "sparse_dirichlet"}, {}, "does not fit the target sparse_dirichlet"),
    ({"key": "student_mean"}, {"diffusion_entries": ("U1",)}, "U1"),
]


@for_each(("target", "params", "says"), REFUSED)
def test_what_has_no_recipe_is_refused_in_a_sentence(target, params, says):
    """Planted fault: the same target with few enough coordinates, or the right entries, which are taken."""
    with pytest.raises(SpecError, match=says) as caught:
        Experiment.from_dict({"target": target, "lanes": [{"sampler": {"key": "recipe", "params": params}}]})
    assert len(str(caught.value)) < 500
    query = f"target={target['key']}&lane=recipe"
    whole, messages = Experiment.from_query(query, DEFAULT)
    fits = "recipe" in samplers_of(target["key"], whole.make_target())
    assert (whole.lanes[0].sampler.key == "recipe") == fits == (not messages)


def test_a_change_of_the_target_keeps_recipes_within_their_bounds():
    small = {"key": "curve_network", "params": {"hidden": 3}}
    whole = Experiment.from_dict({"target": small, "lanes": [{"sampler": "recipe"}]})
    assert whole.make_target().dim == 10
    assert "recipe" in samplers_of("curve_network") and "recipe" not in samplers_of(
        "curve_network", TARGETS["curve_network"]()
    )


def test_the_residual_of_a_compiled_energy():
    """Fails where ∂p/∂t over p at p = e^{−H} differs from that of the same energy as a formula by over 1e-8; where
    a right recipe is not stationary; and where U″ is needed and made up. Planted fault: Γ left out, which shows."""
    energy = "theta1^2/2 + theta1*theta2/3 + cosh(theta2)"
    target = Typed(energy=energy)
    rng = np.random.default_rng(3)
    for layout, entries, curl, dropped in [
        ("theta", {"1,1": "1 + theta2^2", "1,2": "0.3*theta1", "2,2": "2"}, {"1,2": "sin(theta1)"}, True),
        ("theta", {"1,1": "1 + exp(-U)", "2,2": "2"}, {"1,2": "U"}, False),
        ("theta_r", {"3,3": "1 + theta1^2", "4,4": "1"}, {"1,3": "-1 - theta1^2", "2,4": "-1"}, True),
    ]:
        made = [
            Recipe.from_text(Layout(layout, 2), text, entries, curl, gamma_dropped=dropped) for text in (energy, "U")
        ]
        points = list(rng.normal(size=(len(made[0].layout.names), 50)))
        formula, compiled = (on_points(recipe, target, [recipe.residual, *recipe.drift], points) for recipe in made)
        np.testing.assert_allclose(compiled, formula, rtol=1e-8, atol=1e-8)
        assert made[1].residual.is_zero != dropped
        assert dropped == (not np.allclose(formula[0], 0, atol=1e-8))
    unknown = Recipe.from_text(Layout("theta", 2), "U", {"1,1": "1 + exp(-U)", "2,2": "1"}, {}, gamma_dropped=True)
    with pytest.raises(SpecError, match="second derivatives of an energy that is no formula are not known"):
        _ = unknown.residual
    assert unknown.gamma[0] != ZERO


def test_data_that_an_entry_looks_at_are_counted():
    """Fails where U in an entry is free: it touches all data at every step of each chain, beside the minibatch.

    Planted fault: the same recipe without U, and a change from one to the other.
    """
    n = 25
    shared = {"target_params": {"items": n}, "n_chains": 3, "n_steps": 100}
    specs = [
        RunSpec.of(
            "tied_means",
            "recipe",
            "minibatch",
            gradient_params={"batch_size": 5},
            sampler_params={"diffusion_entries": (entry, "0", "1"), "step_size": 1e-4},
            **shared,
        )
        for entry in ("1", "1 + exp(-U)")
    ]
    free, looking = (engine.Run(spec) for spec in specs)
    free.advance(10)
    looking.advance(10)
    assert free.data_seen == 3 * 10 * 5
    assert looking.data_seen == 3 * 10 * (5 + n)
    looking.change(Change(0, specs[0].sampler, specs[0].gradient))
    looking.advance(10)
    assert looking.data_seen == 3 * 10 * (5 + n) + 3 * 10 * 5


@pytest.mark.slow
def test_what_is_known_of_a_recipe_goes_with_its_target():
    """Fails where a kept answer holds a target whose page is gone, with the data of somebody. Planted fault: one that
    holds it."""
    target = TARGETS["tied_means"](items=20)
    sampler = RecipeSampler(diffusion_entries=("1", "2", "1"))
    assert "positive semidefinite" in sampler.refusal(target)
    kept, held = weakref.ref(target), [target]
    del target
    gc.collect()
    assert kept() is held.pop()
    gc.collect()
    assert kept() is None


@pytest.mark.slow
def test_presets_in_many_dimensions():
    """Every preset that is offered there is right, and has the entries of one coordinate alone."""
    for key, cls in PRESETS.items():
        if 12 in cls.dims:
            recipe = preset(key, 12, "U")
            params = parameters_of(recipe)
            rows = len(recipe.layout.rows)
            assert len(params["diffusion_entries"]) == rows * (rows + 1) // 2
            assert Recipe.from_dict(recipe.to_dict()) == recipe
            assert "theta12" not in recipe.tex("drift")
