"""From a drift to its Q: what presets are made of is found again, and where there is none the reason is said."""

from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import ZERO
from sgmcmc_lab.samplers.recipe import theorem2
from sgmcmc_lab.samplers.recipe.flow import Flow
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.recipe.recipe import THETA, THETA_R, Layout, Recipe
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each


def forgotten(recipe):
    """The same drift, typed by hand, and no Q."""
    n = len(recipe.layout.names)
    return replace(recipe, curl=((ZERO,) * n,) * n, edited=recipe.drift, typed=())


def cases():
    for target in ("double_well", "quartic", "gaussian_mixture", "gamma"):
        for key, preset in PRESETS.items():
            dim = TARGETS[target]().dim
            positive = TARGETS[target]().support == "positive"
            # Draws of a minibatch are in naive SGHMC's D, which has no −D∇H: there is none of its drift with this D.
            if dim in preset.dims and preset.positive == positive and not preset.dissipation_dropped:
                yield target, key


@for_each(("target", "key"), list(cases()))
def test_the_curl_of_every_preset_is_found_again(target, key):
    target = TARGETS[target]()
    recipe = PRESETS[key].recipe(target.dim, target.formula())
    given = forgotten(recipe)
    if recipe.gamma_dropped:
        with pytest.raises(theorem2.NoCurlError, match="does not leave e⁻ᴴ invariant") as refused:
            theorem2.find(given, target)
        assert not refused.value.invariant
        return
    found = theorem2.find(given, target)
    assert found.D == recipe.D and not found.edited
    points = [np.linspace(0.3, 1.7, 7) + 0.1 * k for k in range(len(recipe.layout.names))]
    n = range(len(recipe.layout.names))
    entries = [[each.Q[i][j] for i in n for j in n] for each in (found, recipe)]
    np.testing.assert_allclose(*(theorem2.on_points(recipe, target, each, points) for each in entries), rtol=1e-7)
    # Planted fault: a Q that is a thousandth too large has another drift.
    if not all(entry.is_zero for row in recipe.curl for entry in row):
        larger = replace(recipe, curl=tuple(tuple(1.001 * entry for entry in row) for row in recipe.curl), typed=())
        assert not theorem2._same(larger, given, target, points)


PLANE = Layout(THETA, 2)
CURL = {"1,2": "1 + theta1*theta2"}


def plane(curl=CURL, edited=None):
    return Recipe.from_text(PLANE, "theta1^2/2 + theta2^4/4", {"1,1": "1", "2,2": "1"}, curl, edited=edited)


def test_polynomials_are_written_as_they_would_be_typed():
    target = TARGETS["correlated_gaussian"]()
    assert str(theorem2.find(forgotten(plane()), target).Q[0][1]) == "theta1*theta2 + 1"


def test_a_drift_that_is_off_by_little_has_no_curl():
    target = TARGETS["correlated_gaussian"]()
    right = forgotten(plane())
    off = replace(right, edited=(right.edited[0] + 1e-6, right.edited[1]))
    with pytest.raises(theorem2.NoCurlError, match="not leave e⁻ᴴ invariant"):
        theorem2.find(off, target)


def test_what_is_not_among_the_formulas_is_said_to_exist():
    target = TARGETS["correlated_gaussian"]()
    many = " + ".join(f"{f}(theta1)*{g}(theta2)" for f in ("sin", "exp", "atan") for g in ("cos", "tanh"))
    with pytest.raises(theorem2.NoCurlError, match="so there is a Q") as refused:
        theorem2.find(forgotten(plane({"1,2": many})), target)
    assert refused.value.invariant


def test_in_one_dimension_there_is_none():
    target = TARGETS["double_well"]()
    of = lambda drift: Recipe.from_text(  # noqa: E731
        Layout(THETA, 1), target.formula(), {"1,1": "1 + theta^2"}, {}, edited={"1": drift}
    )
    slope = "-(1 + theta^2)*(4*theta^3 - 4*theta)"
    assert not theorem2.find(of(f"{slope} + 2*theta"), target).edited
    with pytest.raises(theorem2.NoCurlError, match="in one dimension Q is 0"):
        theorem2.find(of(slope), target)


def test_the_stream_function_by_quadrature():
    """The error is of second order in the side of a cell, where e^{−H} is at least a thousandth of its maximum."""
    target = TARGETS["double_well"]()
    recipe = Recipe.from_text(
        Layout(THETA_R, 1), target.formula(), {"2,2": "1"}, {"1,2": "-sqrt(abs(theta) + 1) - r/3"}
    )
    errors = []
    for cells in (48, 96, 192):
        flow = Flow(forgotten(recipe), target, cells)
        p = flow.grid.stationary(flow.field(recipe.hamiltonian))
        exact = flow.grid.evaluate(flow.field(recipe.Q[0][1]))
        seen = p > 1e-3 * p.max()
        errors.append(np.abs(theorem2.stream(flow) - exact)[seen].max())
        # Planted fault: the sign of Q.
        assert np.abs(theorem2.stream(flow) + exact)[seen].max() > 1
    assert errors[2] < 0.02 and 3 < errors[0] / errors[1] < 5 and 3 < errors[1] / errors[2] < 5


def test_five_coordinates_are_the_most():
    target = TARGETS["lasso"]()
    recipe = PRESETS["sgld"].recipe(target.dim, "U")
    with pytest.raises(theorem2.NoCurlError, match="up to 5 coordinates"):
        theorem2.find(recipe, target)
