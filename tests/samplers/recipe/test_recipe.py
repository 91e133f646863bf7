"""The consequences of D and Q (Γ, the drift, the residual, the wrong laws) against numbers from other methods."""

import dataclasses
import itertools
import json
import random
import re

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import apply, evaluate, work_limit
from sgmcmc_lab.samplers.expressions import name as variable
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.recipe.flow import effective
from sgmcmc_lab.samplers.recipe.presets import PRESETS, SGHMC, Preset, preset
from sgmcmc_lab.samplers.recipe.recipe import KINDS, Layout, Recipe, canonical_curl, diagonal
from sgmcmc_lab.samplers.targets.quadrature import integrate
from tests.helpers.cases import for_each
from tests.helpers.naive_law import wrong_potential
from tests.helpers.work import calls_of

SEED = 11
WRONG = {"naive_sghmc", "naive_sgrhmc"}
CASES = [(key, dim) for key, cls in PRESETS.items() for dim in cls.dims if dim <= 2]
RIGHT = [case for case in CASES if case[0] not in WRONG]
DOUBLE_WELL = "theta^4 - 2*theta^2"
ONE_PEAK = "theta^2/2"

# Recipes of nobody, with every entry a function of everything.
TYPED = {
    "line": Recipe.from_text(Layout("theta", 1), "cosh(theta)", {"1,1": "1 + theta^2*exp(-U)"}, {}),
    "plane": Recipe.from_text(
        Layout("theta", 2), "theta1^4/4 + theta2^2 + theta1*theta2/2",
        {"1,1": "2 + sin(theta2)", "1,2": "0.5*cos(theta1*theta2)", "2,2": "1.5 + tanh(theta1)"},
        {"1,2": "exp(-U)*theta1 + atan(theta2)"},
    ),
    "momentum": Recipe.from_text(
        Layout("theta_r", 1), DOUBLE_WELL,
        {"1,1": "0.5 + r^2/4", "1,2": "0.1*sin(theta)*r", "2,2": "sqrt(1 + theta^2*r^2)"},
        {"1,2": "-1/(1 + theta^2) - r"},
    ),
    "five": Recipe.from_text(
        Layout("theta_r_xi", 2), "theta1^2/2 + theta2^4/4 + theta1*theta2/3",
        {"1,1": "1", "1,2": "theta2/9", "2,2": "2 + xi^2", "3,3": "1 + r2^2", "3,5": "theta1*xi/9", "4,4": "exp(r1/3)", "5,5": "1 + theta1^2"},
        {"1,2": "r1*r2", "1,3": "-1 - theta2^2", "2,4": "-cos(theta1)", "3,4": "xi*U", "3,5": "r1/2", "4,5": "r2/2 + theta2"},
        friction=0.7,
    ),
}  # fmt: skip


def points(recipe: Recipe, n: int = 40) -> dict[str, np.ndarray]:
    """Points where all of the presets are defined and smooth."""
    rng = np.random.default_rng(SEED)
    return {label: rng.uniform(0.3, 1.2, n) for label in recipe.layout.names}


def values(vector, at) -> np.ndarray:
    return np.array(evaluate(vector, **at))


def moved(at, label, step):
    return {**at, label: at[label] + step}


every_preset = for_each(("key", "dim"), CASES)
right_presets = for_each(("key", "dim"), RIGHT)
typed_recipes = for_each("which", TYPED)
ALL = {**{f"{key}-{dim}": preset(key, dim) for key, dim in CASES}, **TYPED}
all_recipes = for_each("which", ALL)


# ---------------------------------------------------------------- Γ and the drift


def gamma_error(recipe: Recipe, gamma) -> float:
    """The worst difference of Γ from central differences of D + Q, over its tolerance."""
    at, step = points(recipe), 1e-5
    expected = np.zeros((len(gamma), 40))
    for j, label in enumerate(recipe.layout.names):
        for i in range(len(gamma)):
            entry = [recipe.D[i][j], recipe.Q[i][j]]
            ahead, behind = (values(entry, moved(at, label, sign * step)).sum(axis=0) for sign in (1, -1))
            expected[i] += (ahead - behind) / (2 * step)
    return float((np.abs(values(gamma, at) - expected) / (1e-8 + 1e-7 * np.abs(expected))).max())


@all_recipes
def test_gamma_is_the_divergence_of_d_and_q(which):
    assert gamma_error(ALL[which], ALL[which].gamma) <= 1


@for_each("which", [which for which, r in ALL.items() if not all(e.is_zero for e in r.gamma)])
def test_fault_gamma_with_its_sign_flipped(which):
    assert gamma_error(ALL[which], [-entry for entry in ALL[which].gamma]) > 1e3


def test_fault_gamma_with_the_rows_of_q_for_its_columns():
    recipe = TYPED["plane"]
    wrong = dataclasses.replace(recipe, curl=tuple(zip(*recipe.curl, strict=True)))
    assert gamma_error(recipe, wrong.gamma) > 1e3


def metric(u, scale=1.5, shift=1.5):
    return scale * np.sqrt(np.abs(u + shift))


def metric_slope(u, du):
    """∇ G^{−1/2} by the chain rule."""
    return 0.25 * np.sqrt(1.5) * np.abs(u + 1.5) ** -0.75 * np.sign(u + 1.5) * du


# The SDEs as their papers write them: the drift from θ (d, n), r, ξ, U and ∇U, all arrays.
SDES = {
    "sgld": lambda theta, r, xi, u, du: [-du],
    "sgrld": lambda theta, r, xi, u, du: [1 - theta * du],
    "hmc": lambda theta, r, xi, u, du: [r, -du],
    "sghmc": lambda theta, r, xi, u, du: [r, -du - r],
    "naive_sghmc": lambda theta, r, xi, u, du: [r, -du],
    "sgnht": lambda theta, r, xi, u, du: [r, -du - xi * r, (r**2).mean(axis=0, keepdims=True) - 1],
    "gsgrhmc": lambda theta, r, xi, u, du: [
        metric(u) ** 0.5 * r,
        -(metric(u) ** 0.5) * du - metric(u) * r + metric_slope(u, du),
    ],
    "naive_sgrhmc": lambda theta, r, xi, u, du: [metric(u) ** 0.5 * r, -(metric(u) ** 0.5) * du - metric(u) * r],
    "curl_sgld": lambda theta, r, xi, u, du: [-du - np.array([du[1], -du[0]])],
    "sgfs": lambda theta, r, xi, u, du: [-du - (0.5 * du[::-1] if len(du) == 2 else 0)],
}
ENERGY_GRADIENTS = {
    1: lambda t: (t[0] ** 4 - 2 * t[0] ** 2, np.array([4 * t[0] ** 3 - 4 * t[0]])),
    2: lambda t: (
        t[0] ** 4 / 10 + (4 * (t[1] + 1.2) - t[0] ** 2) ** 2 / 2,
        np.array([0.4 * t[0] ** 3 - 2 * t[0] * (4 * (t[1] + 1.2) - t[0] ** 2), 4 * (4 * (t[1] + 1.2) - t[0] ** 2)]),
    ),
}


def drift_error(recipe: Recipe, key: str) -> float:
    at, dim = points(recipe), recipe.layout.dim
    theta = np.array([at[label] for label in recipe.layout.thetas])
    r = np.array([at[label] for label in recipe.layout.momenta])
    if key == "sgrld":
        u, du = None, 1 - np.array([1.5, 0.5])[:dim, None] / theta
    else:
        u, du = ENERGY_GRADIENTS[dim](theta)
    expected = np.concatenate(SDES[key](theta, r, at.get("xi"), u, du))
    return float((np.abs(values(recipe.drift, at) - expected) / (1e-11 * (1 + np.abs(expected)))).max())


@every_preset
def test_the_drift_is_that_of_the_sde(key, dim):
    assert drift_error(preset(key, dim), key) <= 1


@every_preset
def test_fault_another_presets_drift(key, dim):
    wrong = dataclasses.replace(preset(key, dim), edited=tuple(-entry for entry in preset(key, dim).drift))
    assert drift_error(wrong, key) > 1e3
    for other, cls in PRESETS.items():
        comparable = cls.kind == PRESETS[key].kind and dim in cls.dims and "sgrld" not in {key, other}
        if comparable and str(preset(other, dim).drift) != str(preset(key, dim).drift):
            assert drift_error(preset(other, dim), key) > 1e3, other


def test_presets_differ_in_their_drift_or_noise():
    """In one dimension SGFS is SGLD; HMC and naive SGHMC share drift and D: one redraws, one has a noisy gradient."""
    recipes = {(r.layout, r.drift, r.D, r.refresh) for r in (preset(key, dim) for key, dim in CASES)}
    assert len(recipes) == len(CASES) - 1


@all_recipes
def test_the_parts_of_the_drift_make_the_whole(which):
    recipe = ALL[which]
    at = points(recipe)
    total = values(recipe.circulation, at)
    if not recipe.dissipation_dropped:
        total = total + values(recipe.dissipation, at)
    if not recipe.gamma_dropped:
        total = total + values(recipe.gamma, at)
    np.testing.assert_allclose(values(recipe.drift, at), total, rtol=1e-11, atol=1e-12)


# ---------------------------------------------------------------- the residual


def relative_residual(recipe: Recipe) -> float:
    """The residual over the size of its parts."""
    at = points(recipe)
    size = np.abs(values(recipe.drift, at) * values(recipe.gradient, at)).max(axis=0) + 1
    return float((np.abs(recipe.residual.evaluate(**at)) / size).max())


@right_presets
def test_right_presets_leave_their_law_alone_symbolically(key, dim):
    assert preset(key, dim).residual.is_zero


@right_presets
def test_other_parameters_too(key, dim):
    rng = random.Random(SEED)
    for _ in range(5):
        chosen = {label: rng.uniform(0.3, 0.9) for label in parameters(PRESETS[key])}
        assert preset(key, dim, **chosen).residual.evaluate(**points(preset(key, dim))).max() <= 1e-10


def parameters(cls: type[Preset]) -> list[str]:
    return [label for label in cls.param.values() if label != "name"]


@typed_recipes
def test_what_the_recipe_writes_leaves_its_law_alone(which):
    assert relative_residual(TYPED[which]) < 1e-11


@for_each("key", sorted(WRONG))
@for_each("dim", [1, 2])
def test_naive_presets_do_not(key, dim):
    recipe = preset(key, dim)
    noise = GRADIENTS[PRESETS[key].gradient]().noise().variance
    assert relative_residual(effective(recipe, 0.1, noise)) > 1e-2
    # Of the two naive ones SGHMC has all its fault from the gradient's noise.
    assert (relative_residual(recipe) < 1e-11) == (key == "naive_sghmc")


@typed_recipes
def test_fault_gamma_dropped(which):
    assert relative_residual(dataclasses.replace(TYPED[which], gamma_dropped=True)) > 1e-2


@typed_recipes
def test_fault_gamma_subtracted_as_the_paper_prints(which):
    recipe = TYPED[which]
    printed = tuple(f - 2 * gamma for f, gamma in zip(recipe.drift, recipe.gamma, strict=True))
    assert relative_residual(dataclasses.replace(recipe, edited=printed)) > 1e-2


@for_each("which", ["plane", "momentum", "five"])
def test_fault_q_not_skew(which):
    recipe = TYPED[which]
    symmetric = tuple(tuple(q if j > i else -q for j, q in enumerate(row)) for i, row in enumerate(recipe.curl))
    with pytest.raises(SpecError, match="Q must be skew-symmetric"):
        dataclasses.replace(recipe, curl=symmetric)
    # Its drift, put in by hand.
    wrong = dataclasses.replace(
        recipe,
        curl=recipe.curl,
        diffusion=tuple(
            tuple(d + q for d, q in zip(*rows, strict=True)) for rows in zip(recipe.D, symmetric, strict=True)
        ),
    )
    assert relative_residual(dataclasses.replace(recipe, edited=wrong.drift)) > 1e-2


@pytest.mark.parametrize("dim", [1, 2])
def test_fault_a_half_lost(dim):
    """SGHMC's drift with the noise of D/2, and SGNHT in two dimensions with the printed (1/2d)(ξ − A)²."""
    recipe = preset("sghmc", dim)
    half = tuple(tuple(0.5 * entry for entry in row) for row in recipe.diffusion)
    assert relative_residual(dataclasses.replace(recipe, diffusion=half, edited=recipe.drift)) > 1e-2
    thermostat = preset("sgnht", 2)
    printed = dataclasses.replace(thermostat)
    printed.__dict__["hamiltonian"] = thermostat.hamiltonian - 0.75 * (variable("xi") - 1) ** 2
    assert relative_residual(dataclasses.replace(thermostat, edited=printed.drift)) > 1e-2
    kept = dataclasses.replace(thermostat, edited=thermostat.drift)
    kept.__dict__["hamiltonian"] = printed.hamiltonian
    assert relative_residual(kept) > 1e-2


def fokker_planck(recipe: Recipe, at, step: float) -> np.ndarray:
    """(1/p)[−Σ ∂_i(f_i p) + Σ ∂_i∂_j(D_ij p)] by central differences."""
    names = recipe.layout.names
    H0 = recipe.hamiltonian.evaluate(**at)

    def density(z):
        return np.exp(H0 - recipe.hamiltonian.evaluate(**z))

    total = np.zeros(len(H0))
    for i, a in enumerate(names):
        for sign in (1, -1):
            z = moved(at, a, sign * step)
            total -= sign * recipe.drift[i].evaluate(**z) * density(z) / (2 * step)
        for j, b in enumerate(names):
            d = recipe.D[i][j]
            if i == j:
                for k, weight in ((-1, 1), (0, -2), (1, 1)):
                    z = moved(at, a, k * step)
                    total += weight * d.evaluate(**z) * density(z) / step**2
            else:
                for s in (1, -1):
                    for t in (1, -1):
                        z = moved(moved(at, a, s * step), b, t * step)
                        total += s * t * d.evaluate(**z) * density(z) / (4 * step**2)
    return total


@all_recipes
@for_each("dropped", [False, True])
def test_the_residual_is_that_of_the_fokker_planck_equation(which, dropped):
    recipe = dataclasses.replace(ALL[which], gamma_dropped=dropped)
    at = points(recipe, 10)
    # Two steps, to take out the differences' error of second order.
    expected = (4 * fokker_planck(recipe, at, 1e-3) - fokker_planck(recipe, at, 2e-3)) / 3
    np.testing.assert_allclose(recipe.residual.evaluate(**at), expected, atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("dim", [1, 2])
def test_naive_sghmc_heats_at_a_constant_rate(dim):
    """Its mean energy grows by εVd/2 for ever, so it has no stationary law; SGHMC's does not."""
    naive = preset("naive_sghmc", dim)
    for eps, variance in ((0.1, 4.0), (0.05, 6.0)):
        rate = effective(naive, eps, variance).energy_rate.constant
        assert rate == pytest.approx(eps * variance / 2 * dim)
    assert naive.energy_rate.is_zero
    assert preset("sghmc", dim).energy_rate.constant is None
    assert preset("hmc", dim).energy_rate.is_zero


# ---------------------------------------------------------------- the law without Γ


# The check numbers of PAPERS.md: energy, C, E θ² of the naive law, KL(naive ‖ true).
NAIVE = [(ONE_PEAK, 0.5, 0.84359, 0.0076), (DOUBLE_WELL, 0.5, 0.80269, 0.0392), (DOUBLE_WELL, 1.5, 0.83825, 0.0053)]


# Where the double well with C = 0.5 has U + C = 0, and the naive law a pole |U + C|^−¼.
POLES = [sign * np.sqrt(1 + part * np.sqrt(0.5)) for sign, part in ((-1, 1), (-1, -1), (1, -1), (1, 1))]


def total(function) -> float:
    """The integral over the line, with points that crowd at the poles: x = a + (b − a) s(u), s′ ∝ (u(1 − u))³."""
    ends = [-12.0, *POLES, 12.0]

    def crowded(u, a, b):
        s = u**4 * (35 - 84 * u + 70 * u**2 - 20 * u**3)
        values = function(a + (b - a) * s)
        # Next to a pole x rounds to it; the weight there is 1e-12.
        return np.where(np.isfinite(values), values, 0) * (b - a) * 140 * (u * (1 - u)) ** 3

    return sum(integrate(lambda u, a=a, b=b: crowded(u, a, b), 0, 1) for a, b in itertools.pairwise(ends))


def law(potential):
    mass = total(lambda x: np.exp(-potential.evaluate(theta=x)))
    return lambda x: np.exp(-potential.evaluate(theta=x)) / mass


def naive_figures(recipe: Recipe, wrong) -> tuple[float, float]:
    """E θ² of the law e^{−wrong}, and its divergence from e^{−U}."""
    p, q = law(recipe.potential), law(wrong)
    tiny = 1e-300
    divergence = total(lambda x: q(x) * np.log(np.maximum(q(x), tiny) / np.maximum(p(x), tiny)))
    return total(lambda x: x**2 * q(x)), divergence


@for_each(("potential", "shift", "second", "divergence"), NAIVE)
def test_naive_sgrhmc_has_the_figures_of_its_closed_form(potential, shift, second, divergence):
    recipe = preset("naive_sgrhmc", 1, potential, shift=shift)
    got = naive_figures(recipe, wrong_potential(recipe))
    assert got[0] == pytest.approx(second, abs=6e-6)
    assert got[1] == pytest.approx(divergence, abs=6e-5)


def test_fault_the_naive_law_with_g_upside_down():
    recipe = preset("naive_sgrhmc", 1, ONE_PEAK, shift=0.5)
    upside_down = 2 * recipe.potential - wrong_potential(recipe)
    assert abs(naive_figures(recipe, upside_down)[0] - 0.84359) > 0.1


def test_the_true_law_of_the_double_well():
    potential = preset("sghmc").potential
    assert integrate(lambda x: np.exp(-potential.evaluate(theta=x)), -6, 6) == pytest.approx(5.365160, abs=5e-7)
    for power, moment in ((2, 0.832745), (4, 1.082745)):
        got = integrate(lambda x, k=power: x**k * law(potential)(x), -6, 6)
        assert got == pytest.approx(moment, abs=5e-7)


def same_as_for(recipe: Recipe, potential) -> bool:
    """Whether the drift is the one that the recipe writes for another energy, with the same D and Q."""
    other = dataclasses.replace(recipe, potential=potential, diffusion=recipe.D, curl=recipe.Q, gamma_dropped=False)
    assert relative_residual(other) < 1e-11
    at = points(recipe)
    f, g = values(recipe.drift, at), values(other.drift, at)
    return bool(np.abs(f - g).max() < 1e-12 * np.abs(f).max())


WITHOUT_GAMMA = {
    "naive_sgrhmc-1": preset("naive_sgrhmc", 1),
    "naive_sgrhmc-2": preset("naive_sgrhmc", 2),
    "sgrld-1": dataclasses.replace(preset("sgrld"), gamma_dropped=True),
    "line": dataclasses.replace(TYPED["line"], gamma_dropped=True),
}


@for_each("which", WITHOUT_GAMMA)
def test_without_gamma_the_process_is_the_recipe_of_another_energy(which):
    recipe = WITHOUT_GAMMA[which]
    assert same_as_for(recipe, wrong_potential(recipe))


@for_each("which", WITHOUT_GAMMA)
def test_fault_the_energy_itself_or_the_opposite_change(which):
    recipe = WITHOUT_GAMMA[which]
    assert not same_as_for(recipe, recipe.potential)
    assert not same_as_for(recipe, 2 * recipe.potential - wrong_potential(recipe))


# ---------------------------------------------------------------- B̂


def correction_at(recipe: Recipe, variance) -> np.ndarray:
    at = dict.fromkeys(recipe.layout.names, 0.7)
    return np.array([[float(entry.evaluate(**at)) for entry in row] for row in recipe.correction(variance)])


@all_recipes
def test_the_correction_is_the_noise_that_the_gradient_brings(which):
    """(D+Q) diag(V, 0) (D+Q)ᵀ, in NumPy."""
    recipe = ALL[which]
    n, dim = len(recipe.layout.names), recipe.layout.dim
    at = dict.fromkeys(recipe.layout.names, 0.7)
    noise = np.array([[2.0, 0.3], [0.3, 1.0]])[:dim, :dim]
    V = np.zeros((n, n))
    V[:dim, :dim] = noise
    both = np.array([[float(e.evaluate(**at)) for e in row] for row in recipe.Q])
    if not recipe.dissipation_dropped:
        both = both + np.array([[float(e.evaluate(**at)) for e in row] for row in recipe.D])
    np.testing.assert_allclose(correction_at(recipe, noise.tolist()), both @ V @ both.T, rtol=1e-12, atol=1e-13)


def test_the_corrections_that_the_papers_give():
    V = 3.0
    for key in ("sghmc", "sgnht"):
        expected = np.zeros_like(correction_at(preset(key), V))
        expected[1, 1] = V
        np.testing.assert_allclose(correction_at(preset(key), V), expected)
    u = 0.7**4 - 2 * 0.7**2
    np.testing.assert_allclose(correction_at(preset("gsgrhmc"), V), [[0, 0], [0, metric(u) * V]], rtol=1e-12)
    D = np.array([[2.0, 0.5], [0.5, 2.0]])
    sgfs = preset("sgfs", 2, diffusion_strength=2.0, correlation=0.25)
    np.testing.assert_allclose(correction_at(sgfs, V), D @ D * V)


def test_fault_the_correction_without_the_transpose():
    recipe = preset("curl_sgld", 2)
    both = np.array([[1.0, 1.0], [-1.0, 1.0]])
    assert np.abs(correction_at(recipe, 3.0) - 3 * both @ both).max() > 1


# ---------------------------------------------------------------- D on the domain


def test_the_smallest_eigenvalue_of_d():
    recipe = TYPED["five"]
    at = points(recipe)
    matrices = np.array([[e.evaluate(**at) for e in row] for row in recipe.D])
    expected = [np.linalg.eigvalsh(matrices[:, :, k])[0] for k in range(40)]
    np.testing.assert_allclose(recipe.smallest_eigenvalue(**at), expected, rtol=1e-12)


@every_preset
def test_presets_have_a_diffusion_that_is_positive_semidefinite(key, dim):
    recipe = preset(key, dim)
    low = 0.01 if PRESETS[key].positive else -3.0
    axes = np.meshgrid(*[np.linspace(low, 3, 5)] * len(recipe.layout.names))
    assert (recipe.check_on(**dict(zip(recipe.layout.names, axes, strict=True))) >= 0).all()


def test_a_diffusion_that_fails_names_its_worst_point():
    with pytest.raises(SpecError, match=r"at theta = -3 its smallest eigenvalue is -3"):
        preset("sgrld").check_on(theta=np.linspace(-3, 3, 7))
    plane = Layout("theta", 2)
    grid = dict(zip(("theta1", "theta2"), np.meshgrid([0.0, 1.0], [0.0, 0.5]), strict=True))
    indefinite = Recipe.from_text(plane, "theta1^2 + theta2^2", {"1,1": "1", "1,2": "2*theta1", "2,2": "1"}, {})
    with pytest.raises(SpecError, match=r"at theta1 = 1, theta2 = 0 its smallest eigenvalue is -1"):
        indefinite.check_on(**grid)
    infinite = Recipe.from_text(plane, "theta1^2 + theta2^2", {"1,1": "1/theta1", "2,2": "1"}, {})
    with pytest.raises(SpecError, match=r"at theta1 = 0, theta2 = 0 it is not finite"):
        infinite.check_on(**grid)


def test_a_singular_diffusion_passes():
    outer = Recipe.from_text(
        Layout("theta", 2),
        "theta1^2 + theta2^2",
        {"1,1": "theta1^2", "1,2": "theta1*theta2", "2,2": "theta2^2"},
        {},
    )
    rng = np.random.default_rng(SEED)
    assert (outer.check_on(theta1=rng.normal(size=1000), theta2=rng.normal(size=1000)) == 0).all()


# ---------------------------------------------------------------- texts


@all_recipes
def test_a_recipe_survives_json(which):
    recipe = ALL[which]
    again = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe and again.to_dict() == recipe.to_dict()


def test_what_was_typed_is_shown_as_it_was_typed():
    recipe = Recipe.from_text(
        Layout("theta_r", 1), "θ**2 / 2", {"2,2": "1.50*(U+1)"}, {"1,2": "-1"}, edited={"2": "−θ − 0.5·r"}
    )
    shown = recipe.to_dict()
    assert (shown["U"], shown["D"], shown["drift"]) == ("θ**2 / 2", {"2,2": "1.50*(U+1)"}, {"2": "−θ − 0.5·r"})
    assert str(recipe.drift[1]) in {"-theta - 0.5*r", "-0.5*r - theta"}
    assert str(recipe.drift[0]) == "r"


def test_a_recipe_built_in_python_is_the_one_typed():
    layout = Layout("theta_r", 2)
    potential = preset("sghmc", 2).potential
    assert Recipe(layout, potential, diagonal([0, 0, 1, 1]), canonical_curl(2)) == preset("sghmc", 2)
    curl = canonical_curl(1, apply("sqrt", variable("theta")))
    built = Recipe(Layout("theta_r", 1), preset("hmc").potential, diagonal([0, 0]), curl)
    assert Recipe.from_dict(built.to_dict()) == built


REFUSED = [
    ({"U": "theta^"}, "recipe.U", "at character 7"),
    ({"U": "r^2", "layout": "theta_r"}, "recipe.U", "no name “r”"),
    ({"U": "U + theta"}, "recipe.U", "no name “U”"),
    ({}, "recipe.U", "needs an energy"),
    ({"U": "theta^2", "D": {"1,1": "x"}}, "recipe.D[1,1]", "at character 1"),
    ({"U": "theta^2", "D": {"1,2": "1"}}, "recipe.D", "from 1 to 1"),
    ({"U": "theta^2", "D": {"one": "1"}}, "recipe.D", "from 1 to 1"),
    ({"U": "theta^2", "D": {"1,1": 1}}, "recipe.D[1,1]", "expected a text"),
    ({"U": "theta^2", "D": []}, "recipe.D", "row and column"),
    ({"U": "theta^2", "layout": "theta_r", "D": {"2,1": "1"}}, "recipe.D[2,1]", "upper triangle"),
    ({"U": "theta^2", "layout": "theta_r", "Q": {"1,1": "1"}}, "recipe.Q[1,1]", "without the diagonal"),
    ({"U": "theta^2", "layout": "theta_r", "Q": {"1,2": "(r"}}, "recipe.Q[1,2]", "never closed"),
    ({"U": "theta^2", "layout": "plane"}, "recipe.layout", "theta_r_xi"),
    ({"U": "theta^2", "dim": 13}, "recipe.dim", "1 to 12"),
    ({"U": "theta^2", "dim": [1]}, "recipe.dim", "1 to 12"),
    ({"U": "theta^2", "drift": {"2": "1"}}, "recipe.drift", "from 1 to 1"),
    ({"U": "theta^2", "drift": {"1": "1/0"}}, "recipe.drift[1]", "divided by zero"),
    ({"U": "theta^2", "friction": float("nan")}, "recipe.friction", "a number from"),
    ({"U": "theta^2", "gamma_dropped": 1}, "recipe.gamma_dropped", "true or false"),
    ({"U": "theta^2", "hat": 1}, "recipe.hat", "no such field"),
    ({"U": "1e12*theta^20", "D": {"1,1": "1e12*theta"}}, "recipe", "beyond 1e+12"),
]


@for_each(("given", "field", "why"), REFUSED)
def test_a_refusal_names_the_entry(given, field, why):
    with pytest.raises(SpecError, match=re.escape(why)) as caught:
        Recipe.from_dict(given)
    assert caught.value.field == field


@pytest.mark.slow
def test_whatever_a_link_holds_only_spec_errors_come():
    rng = random.Random(SEED)
    texts = ["theta^2", "theta1", "1", "U", "r", "(", "", "xi*r", "1/theta", 3, None, [], {}, True, float("inf")]
    accepted = 0
    for _ in range(3000):
        given = {
            "layout": rng.choice([*KINDS, *KINDS, *KINDS, rng.choice(texts)]),
            "dim": rng.choice([1, 1, 1, 2, rng.choice(texts)]),
            "U": rng.choice(["theta^2", rng.choice(texts)]),
        }
        for label in ("D", "Q", "drift"):
            if rng.random() < 0.4:
                given[label] = rng.choice(
                    [{rng.choice(["1,1", "1,2", "1", "2", "9,9", 5]): rng.choice(texts)}, rng.choice(texts)]
                )
        for label in ("friction", "gamma_dropped", "dissipation_dropped"):
            if rng.random() < 0.2:
                given[label] = rng.choice(texts)
        try:
            Recipe.from_dict(given)
            accepted += 1
        except SpecError:
            continue
    assert accepted > 100


HOSTILE = [
    ("theta_r", 1, "*".join(f"sin(theta + {i})" for i in range(23)), "1.5*sqrt(abs(U + 0.5))"),
    ("theta_r_xi", 2, "(theta1 + theta2 + 1)^20", "U*U*U*U"),
    ("theta_r_xi", 2, "tanh(" * 38 + "theta1*theta2" + ")" * 38, "exp(U)*sin(U)*cos(theta1*U)"),
    ("theta_r", 2, "sin(theta1)*cos(theta2)", "tanh(" * 20 + "U + r1*theta2" + ")" * 20),
    ("theta_r_xi", 2, "*".join(f"cos(theta1 + theta2*{i})" for i in range(16)), "sin(U)/(1 + U^2)"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "dim", "potential", "entry"), HOSTILE)
def test_a_hostile_recipe_is_worked_out_or_refused_in_time(kind, dim, potential, entry):
    """Each operation makes less than a million calls: 100 ms of an idle core, of the 200 that an edit may take. An
    evaluation on a grid makes ten thousand, each for 14,400 points."""
    layout = Layout(kind, dim)
    n = len(layout.names)
    everywhere = {f"{i + 1},{j + 1}": entry for i in range(n) for j in range(i + 1, n)}
    diagonal_too = {**everywhere, **{f"{i + 1},{i + 1}": "9" for i in range(n)}}
    made = []

    def counted(operation) -> int:
        def tried():
            try:
                made.append(operation())
            except SpecError as error:
                assert "too large" in str(error) or "beyond" in str(error)  # noqa: PT017

        return calls_of(tried)

    assert counted(lambda: Recipe.from_text(layout, potential, diagonal_too, everywhere)) < 1_000_000
    assert counted(lambda: Recipe.from_text(layout, potential, {}, {}, gamma_dropped=True)) < 1_000_000
    for recipe in made.copy():
        at = points(recipe, 120 * 120)
        for operation in (
            lambda r=recipe: r.residual,
            lambda r=recipe: r.energy_rate,
            lambda r=recipe: r.correction(1.0),
            lambda r=recipe: r.tex("drift"),
            lambda r=recipe: r.tex("gamma"),
            lambda r=recipe: r.to_dict(),
        ):
            assert counted(operation) < 1_000_000
        assert counted(lambda r=recipe, at=at: evaluate(r.drift, **at)) < 10_000


# ---------------------------------------------------------------- LaTeX


def test_latex_of_gamma():
    assert preset("sgrld").tex("gamma") == r"\Gamma = \begin{pmatrix}1\end{pmatrix}"
    assert preset("sgnht").tex("gamma") == r"\Gamma = \begin{pmatrix}0 \\ 0 \\ -1\end{pmatrix}"
    recipe = Recipe.from_text(Layout("theta_r", 1), ONE_PEAK, {"2,2": "1"}, {"1,2": "-sqrt(1 + theta^2)"})
    assert recipe.tex("gamma") == r"\Gamma = \begin{pmatrix}0 \\ \frac{\theta}{\sqrt{\theta^{2} + 1}}\end{pmatrix}"
    assert recipe.tex("H") == r"H = \frac{1}{2} \, \theta^{2} + \frac{1}{2} \, r^{2}"
    assert preset("gsgrhmc").tex("D").endswith(r"0 & \frac{3}{2} \, \sqrt{\left|U + \frac{3}{2}\right|}\end{pmatrix}")
    assert r"-4 \, \theta^{3} - r \, \xi + 4 \, \theta" in preset("sgnht").tex("drift")


# ---------------------------------------------------------------- presets


@pytest.mark.slow
def test_the_ten_presets():
    assert len(PRESETS) == 10
    for key, cls in PRESETS.items():
        assert cls.key == key and cls.title and cls.source and cls.__doc__
        assert cls.gradient in GRADIENTS
        for dim in {1, 2, 3, 12} & set(cls.dims):
            recipe = preset(key, dim)
            assert recipe.layout == Layout(cls.kind, dim)
            assert recipe.compiled == (dim > 2)
            assert (recipe.gamma_dropped, recipe.dissipation_dropped) == (cls.gamma_dropped, cls.dissipation_dropped)
            assert any(not e.is_zero for row in recipe.D for e in row) == bool(cls.diffusion)
            assert any(not e.is_zero for row in recipe.Q for e in row) == bool(cls.curl)


def test_presets_take_an_energy_and_parameters():
    recipe = preset("sghmc", 1, "cosh(theta)", friction=2.5)
    assert str(recipe.potential) == "cosh(theta)"
    assert recipe.D[1][1].constant == 2.5
    assert preset("sgnht", friction=2.5).friction == 2.5
    assert preset("sgld", diffusion_strength=0.1 + 0.2).D[0][0].constant == pytest.approx(0.3, rel=1e-15)
    assert SGHMC.recipe() == preset("sghmc")


@for_each(
    ("arguments", "values", "field"),
    [
        (("hmcmc",), {}, "preset"),
        (("curl_sgld", 1), {}, "preset.dim"),
        (("sghmc", 13), {}, "preset.dim"),
        (("sghmc",), {"friction": -1}, "preset.friction"),
        (("sghmc",), {"friction": "1) + (1"}, "preset.friction"),
        (("sghmc",), {"speed": 1}, "preset.speed"),
        (("sghmc", 1, "theta +"), {}, "recipe.U"),
    ],
)
def test_presets_refuse(arguments, values, field):
    with pytest.raises(SpecError) as caught:
        preset(*arguments, **values)
    assert caught.value.field == field


RANGES = {
    ("sgld", "diffusion_strength"): (0.01, 100.0),
    ("hmc", "refresh"): (0.0, 10.0),
    ("sghmc", "friction"): (0.01, 100.0),
    ("sgnht", "friction"): (0.01, 100.0),
    ("gsgrhmc", "scale"): (0.01, 100.0),
    ("gsgrhmc", "shift"): (0.0, 100.0),
    ("naive_sgrhmc", "scale"): (0.01, 100.0),
    ("naive_sgrhmc", "shift"): (0.0, 100.0),
    ("curl_sgld", "diffusion_strength"): (0.01, 100.0),
    ("curl_sgld", "curl_strength"): (-100.0, 100.0),
    ("sgfs", "diffusion_strength"): (0.01, 100.0),
    ("sgfs", "correlation"): (-0.99, 0.99),
}


@pytest.mark.slow
def test_what_presets_take_has_these_ranges():
    """Fails where a parameter has no range here, is refused at an end of it, or accepted beyond."""
    assert RANGES.keys() == {(key, label) for key, cls in PRESETS.items() for label, _ in declared(cls)}
    for (key, label), (low, high) in RANGES.items():
        for inside in (low, high):
            preset(key, 2, **{label: inside})
        for outside in (low - 1e-9, high + 1e-9):
            with pytest.raises(SpecError) as caught:
                preset(key, 2, **{label: outside})
            assert caught.value.field == f"preset.{label}"


def test_expressions_stay_inside_their_bound():
    """The largest preset uses a small part of what a recipe may."""
    with work_limit(10_000):
        recipe = preset("gsgrhmc", 2)
        assert recipe.residual.is_zero
