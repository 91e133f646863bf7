"""Every target at another temperature: each thing that it says has T in it. The references are formulas of T = 1."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import parse
from sgmcmc_lab.samplers.requirements import ENERGIES, LIPSCHITZ
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import SIMPLEX, FirstSteps, no_data
from sgmcmc_lab.samplers.targets.tempered import tempered
from sgmcmc_lab.samplers.targets.vmf_posterior import TemperedMisesPosterior
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_targets import draw_error

HEAT = 2.5
"""The temperature."""
OTHERS = ("posterior", "probit_lasso")
"""Their U needs a mode, which takes seconds; ``test_tempered`` has the first one."""
KEYS = [
    key for key, kind in TARGETS.items() if kind.has_temperatures() and key not in OTHERS and not of_a_long_run(key)
]
FEW = {"logistic_large": {"items": 1000, "features": 2}, "sparse_dirichlet": {"dimension": 3, "observed": (30, 10)}}
"""Fewer data, where the targets' own make a test long."""


EXACT = [key for key in KEYS if TARGETS[key].exact_law and not TARGETS[key].tempers]


def both(key):
    base = TARGETS[key](**FEW.get(key, {}))
    return base, tempered(base, HEAT)


def places(base):
    """A few θ: exact draws, or beside the start where these take a long run."""
    if base.exact_law:
        return base.sample(3, 6)
    return base.start() + 0.2 * np.random.default_rng(3).standard_normal((6, base.dim))


def by_quadrature(key):
    return TARGETS[key].tempers or key in ("tied_means", "mises_posterior")


def uneven(values):
    """How far numbers are from being all the same, over their size."""
    return float(np.ptp(values) / (1 + np.abs(values).max()))


@for_each("key", KEYS, slow=by_quadrature)
def test_energy_gradient_and_formula_are_divided(key):
    """The formula, which can be typed and which recipes differentiate, is that of U/T too."""
    base, target = both(key)
    theta = places(base)
    # The state of a Dirichlet posterior is θ/T.
    there = HEAT * theta if base.support == SIMPLEX else theta
    energies = target.energies_at(theta)
    assert uneven(energies - base.energies_at(there) / HEAT) < 1e-10
    # Planted fault: the energy of T = 1.
    assert uneven(energies - base.energies_at(there)) > 1e-4
    slopes = base.gradient_at(there) / (1 if base.support == SIMPLEX else HEAT)
    np.testing.assert_allclose(target.gradient_at(theta), slopes, rtol=1e-9, atol=1e-9 * np.abs(slopes).max())
    if target.exact_law:
        assert uneven(target.log_density(theta) + energies) < 1e-9
    if (text := target.formula()) != "U":
        names = [f"theta{i + 1}" for i in range(base.dim)] if base.dim > 1 else ["theta"]
        found = parse(text, names, "U").evaluate(**dict(zip(names, theta.T, strict=True)))
        assert uneven(found - energies) < 1e-9
    assert (text == "U") == (base.formula() == "U")


@for_each(
    "key",
    [key for key in KEYS if TARGETS[key].batch is not no_data and TARGETS[key].support != SIMPLEX],
    slow=by_quadrature,
)
def test_what_each_data_point_says_is_divided(key):
    """Slopes, energies and Lipschitz constants, in compiled functions and in plain Python."""
    base, target = both(key)
    theta, other = places(base)[:2]
    rows = range(0, len(base.data()), max(1, len(base.data()) // 5))
    np.testing.assert_allclose(target.slopes_at(theta)[rows] * HEAT, base.slopes_at(theta)[rows], rtol=1e-9, atol=1e-9)
    for k in rows:
        slope = np.asarray(base.textbook_slope(theta, k))
        np.testing.assert_allclose(np.asarray(target.textbook_slope(theta, k)) * HEAT, slope, rtol=1e-9, atol=1e-9)
        if ENERGIES in base.provides:
            change, of_base = (x.textbook_energy(theta, k) - x.textbook_energy(other, k) for x in (target, base))
            assert change * HEAT == pytest.approx(of_base, rel=1e-9)
    if LIPSCHITZ in base.provides:
        assert target.lipschitz * HEAT == pytest.approx(base.lipschitz)
        assert target.lipschitz_of_each * HEAT == pytest.approx(base.lipschitz_of_each)


@for_each("key", EXACT, slow=by_quadrature)
def test_exact_draws_are_those_of_plain_python(key):
    target = tempered(TARGETS[key](**TARGETS[key].drawn_at), HEAT)
    assert draw_error(target, target.textbook_draw, 20) < 1e-9 * (1 + np.abs(target.sample(17, 20)).max())


@for_each("key", [key for key in EXACT if TARGETS[key].support != SIMPLEX], slow=by_quadrature)
def test_densities_are_normalised(key):
    """By d log Z/dβ = −E U at β = 1/T, with exact draws at both ends of a short way: Z = ∫e^{−βU}.

    Of 20 targets one is beyond 5.5 standard errors once in 10⁶ times. Planted fault: √T is left out once.
    """
    base = TARGETS[key]()
    log_z, means, errors = [], [], []
    for beta, target in ((1.0, base), (0.9, tempered(base, 1 / 0.9))):
        theta = target.sample(4, 4000)
        energies = base.energies_at(theta)
        log_z.append(-float(target.log_density(theta[:1])[0]) - beta * float(energies[0]))
        means.append(energies.mean())
        errors.append(0.05 * energies.std() / len(theta) ** 0.5)
    apart = log_z[1] - log_z[0] - 0.1 * np.mean(means)
    # The trapezoid is off by about d(Δβ)³/12.
    limit = 5.5 * np.hypot(*errors) + 2e-4 * (1 + base.dim)
    assert abs(apart) < limit < np.log(1 / 0.9) / 2


def test_a_stan_program_has_the_temperature():
    """It divides the prior and each row."""
    base = TARGETS["posterior"]()
    for hot, cold in zip(tempered(base, 4.0).stan().splitlines(), base.stan().splitlines(), strict=True):
        added = cold.partition("target += ")[2].removesuffix(";")
        assert hot == (cold.replace(added, f"({added}) / 4.0") if added else cold)


@for_each(
    ("heat", "expected"),
    [
        (4.0, FirstSteps(moving=0.06, batch=0.004, friction=20.0, other=0.002, heated=8e-4)),
        (0.25, FirstSteps(moving=0.01, batch=5e-4, friction=80.0, other=1e-4, heated=1.25e-5)),
    ],
)
def test_first_steps_go_with_the_temperature(heat, expected):
    """A step of a velocity goes with √T, another one with T. The noise of a minibatch has T² in its variance: on a cold
    target friction is larger, and steps are smaller. They have one digit."""
    base = TARGETS["mises_posterior"]()
    assert base.first_steps == FirstSteps(moving=0.03, batch=0.002, friction=20.0, other=5e-4, heated=2e-4)
    assert TemperedMisesPosterior.made(base, heat).first_steps == expected
