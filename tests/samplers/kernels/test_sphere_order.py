"""Orders on the circle: the biases of each integrator's own law, without noise, and those that its kernel shows.

The laws are those of ``circle_law.py``, by linear algebra; the kernels are simulated and held against them.
"""

from functools import cache
from math import exp, sqrt
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.circle_law import TOY_BIAS, Law, overdamped_law, splitting_law
from tests.helpers.statistics import (
    at_rest_in_its_law,
    critical,
    followed,
    mean_and_error,
    power_of,
    put_sampler,
    uncounted,
)

WITHIN = 0.2
"""How far a slope may be from the order."""


@cache
def law_of(sampler: str, k: float, friction: float, eps: float, fault: str) -> Law:
    """The law of a sampler at κ = k. Its averages are computed once for several tests."""
    if not friction:
        return overdamped_law(
            lambda a: k * np.sin(a), lambda a: -k * np.cos(a), eps, normalise=sampler == "normalised_sgld"
        )
    thermostat, euler = sampler.startswith("gsgnht"), sampler.endswith("euler")
    return splitting_law(
        lambda a: k * np.sin(a),
        eps,
        friction,
        thermostat=thermostat,
        euler=euler,
        fault=fault,
        n_angles=28 if thermostat else 48,
    )


class Case(NamedTuple):
    """A sampler on a von Mises law, the step sizes, and what is averaged: ``cos``, ``temperature`` or ``drift``."""

    sampler: str
    kappa: float
    friction: float
    what: str
    sizes: tuple[float, ...]
    order: int
    total: float = 0.0
    """The time of each of 2000 chains."""

    def law(self, eps: float, fault: str = "") -> Law:
        """The sampler's own."""
        return law_of(self.sampler, self.kappa, self.friction, eps, fault)

    def bias(self, law: Law) -> float:
        """The bias of the law's expectation."""
        if self.what == "cos":
            return law.mean(np.cos) - special.ive(1, self.kappa) / special.i0e(self.kappa)
        return law.temperature - 1 if self.what == "temperature" else law.drift(np.sin)

    def biases(self, fault: str = "") -> np.ndarray:
        """At each step size."""
        return np.array([self.bias(self.law(eps, fault)) for eps in self.sizes])


def slope_of(sizes, biases):
    return float(np.polyfit(np.log(sizes), np.log(np.abs(biases)), 1)[0])


# At these step sizes the next power of ε has a share of the bias small enough for the slope, and the first one is large
# enough to be measured. Farther out that fails: gSGNHT's slope is 1.8 over the same steps with C = 4.
SGGMC = Case("sggmc", 2.0, 4.0, "cos", (0.28, 0.35, 0.42, 0.5, 0.6), 2, 450.0)
HEAT = Case("sggmc", 2.0, 4.0, "temperature", (0.1, 0.125, 0.15, 0.18, 0.215), 2, 200.0)
# With little friction the thermostat mixes slowly, and its law takes minutes: that is computed with more.
GSGNHT_LAW = Case("gsgnht", 4.0, 4.0, "cos", (0.05, 0.0625, 0.08, 0.1, 0.125), 2)
GSGNHT = Case("gsgnht", 4.0, 1.0, "cos", (0.15, 0.19, 0.24, 0.3, 0.36), 2, 600.0)
EULER = Case("sggmc_euler", 4.0, 1.0, "cos", (0.01, 0.015, 0.02, 0.03, 0.04), 1, 150.0)
EULER_HEAT = EULER._replace(what="temperature")
GSGNHT_EULER = Case("gsgnht_euler", 4.0, 2.5, "cos", (0.01, 0.015, 0.02, 0.03, 0.04), 1, 300.0)
SGLD = Case("geodesic_sgld", 4.0, 0.0, "cos", (0.01, 0.015, 0.02, 0.03, 0.04), 1, 100.0)
NORMALISED = Case("normalised_sgld", 8.0, 0.0, "cos", (0.01, 0.015, 0.02, 0.03, 0.04), 1, 50.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [SGGMC, HEAT, GSGNHT_LAW, EULER, EULER_HEAT, SGLD, NORMALISED],
    ids=str,
)
def test_order_of_the_law(case):
    """Fails where the slope of log |bias| over five step sizes is not 2.0 ± .2 for ABOBA, 1.0 ± .2 for Euler.

    There is no noise. The smaller half of the steps must not be farther from the order than the larger: the rest is the
    next power of ε.
    """
    y = case.biases()
    whole, small = slope_of(case.sizes, y), slope_of(case.sizes[:3], y[:3])
    print(case, y, whole, small)
    assert abs(whole - case.order) < WITHIN
    assert abs(small - case.order) < max(abs(whole - case.order), 0.03)


SMALL = (0.05, 0.0625, 0.08, 0.09, 0.1075)
FAULTS = [
    # A half step left out of ABOBA, and what is then of order 1.
    ("B", Case("sggmc", 2.0, 4.0, "cos", SMALL, 2)),
    ("B", Case("sggmc", 2.0, 4.0, "temperature", SMALL, 2)),
    ("A", Case("sggmc", 2.0, 4.0, "drift", SMALL, 2)),
]


@for_each(("fault", "case"), FAULTS, ids=str)
def test_aboba_without_a_half_step_is_of_first_order(fault, case):
    """The planted faults of the test above: its slope is 1.0 ± .2, so not 2.0 ± .2. With both halves it is not 1.

    Without the last half of A the law of x alone is still of second order; that of (x, v) is not: E ω sin φ must be 0,
    and with both halves is so to O(ε⁴).
    """
    assert abs(slope_of(case.sizes, case.biases(fault)) - 1) < WITHIN
    assert slope_of(case.sizes, case.biases()) > 2 - WITHIN


@pytest.mark.slow
def test_the_thermostat_has_temperature_1_at_every_step_size():
    """Fails where E ‖v‖² of gSGNHT's law is not 1 to 1e-5: a stationary ξ has no drift. Fault: SGGMC's is not 1."""
    law = GSGNHT_LAW.law(0.25)
    assert law.temperature == pytest.approx(1, abs=1e-5)
    assert abs(SGGMC.law(0.25).temperature - 1) > 0.1


def test_laws_do_not_depend_on_their_grids():
    """Fails where a finer grid moves a bias by more than 1e-3 of it."""
    k = 4.0
    one, two = (
        splitting_law(lambda a: k * np.sin(a), 0.1, 4.0, n_angles=n).mean(np.cos) - special.ive(1, k) / special.i0e(k)
        for n in (48, 72)
    )
    assert one == pytest.approx(two, rel=1e-3)
    short, long = (
        overdamped_law(lambda a: k * np.sin(a), lambda a: -k * np.cos(a), 0.01, normalise=True, n_angles=n).mean(np.cos)
        for n in (200, 320)
    )
    assert short == pytest.approx(long, abs=1e-9)


# --- the kernels ------------------------------------------------------------------------------------------------


def measured(case, kernel=None):
    """The kernel's bias at each step size and its standard error, from 2000 chains: by what is averaged."""
    exact = special.ive(1, case.kappa) / special.i0e(case.kappa)
    out = {"cos": [], "temperature": []}
    for eps in case.sizes:
        params = {"step_size": eps, **({"friction": case.friction} if case.friction else {})}
        spec = RunSpec.of(
            "von_mises",
            case.sampler,
            target_params={"angle": 1.0, "concentration": case.kappa},
            sampler_params=params,
            n_chains=2000,
            seed=int(1e5 * eps),
        )
        run = at_rest_in_its_law(spec)
        uncounted(run)
        if kernel is not None:
            put_sampler(
                run, type("Fault", (type(run.sampler),), {"advance": staticmethod(kernel)})(**spec.sampler.values())
            )
        every = max(1, round(0.25 / eps))
        values, temperature, _ = followed(run, int(10 / eps), int(case.total / every / eps), every)
        for what, x, expected in (("cos", np.cos(values[..., 0] - 1.0), exact), ("temperature", temperature, 1.0)):
            mean, error = mean_and_error(x)
            out[what].append((mean - expected, error))
    return {what: np.array(rows).T for what, rows in out.items()}


@jit.kernel
def undamped_noise(rng, state, model, noise, params, out, n, info):
    """SGGMC without the half of B after O: the kick and the noise are not damped."""
    step_size, friction = params[0], params[1]
    x, v, grad = state.position, state.momentum, info.gradient
    damping, scale = exp(-friction * step_size), sqrt(2 * friction * step_size)
    for t in range(n):
        model.flow(x, v, step_size / 2, model.shape)
        model.gradient(x, grad, model.params)
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                v[c, i] = damping * v[c, i] - step_size * grad[c, i] + scale * rng.standard_normal()
        model.project(x, v, model.shape)
        model.flow(x, v, step_size / 2, model.shape)
        for c in range(x.shape[0]):
            for i in range(x.shape[1]):
                out[t, c, i] = x[c, i]


@pytest.mark.slow
def test_gsgnht_has_its_own_law():
    """Fails where the bias of gSGNHT at a large step is not that of the law by linear algebra (false alarms: 1e-4).

    Planted fault: the target's law.
    """
    case = GSGNHT_LAW._replace(sizes=(0.2,), total=200.0)
    ((y,), (error,)) = measured(case)["cos"]
    print("gSGNHT", y, error, case.biases())
    assert abs(y - case.biases()[0]) < critical(1e-4, 1, 1999) * error
    assert abs(y) > critical(1e-4, 1, 1999) * error


@pytest.mark.slow
@pytest.mark.parametrize(
    "cases",
    [[SGGMC], [HEAT], [GSGNHT], [EULER, EULER_HEAT], [GSGNHT_EULER], [SGLD], [NORMALISED]],
    ids=lambda cases: str(cases[0]),
)
def test_measured_order(cases):
    """Fails where the kernel's slope, by weighted least squares from five step sizes with errors, is not the order
    ± .2, or a bias is not that of the law (five comparisons, false alarms: 1e-4 a sampler).

    The slope's standard error is at most .07: with slopes of the laws within .08 of the order, a right kernel fails at
    a rate below 5 %. The laws of gSGNHT at these parameters take minutes, and are left out; see the test below.
    """
    found = measured(cases[0])
    for case in cases:
        y, errors = found[case.what]
        slope, error = power_of(np.array(case.sizes), y, errors)
        print(case.sampler, case.what, np.round(y, 5), np.round(errors, 5), f"slope {slope:.3f} ± {error:.3f}")
        assert error < 0.07
        assert abs(slope - case.order) < WITHIN, (slope, error)
        if case.sampler.startswith("gsgnht"):
            continue
        own = case.biases()
        z = np.abs(y - own) / errors
        assert z.max() < critical(1e-4, 5, 1999), (z, y, own, errors)
        # Planted fault: the target's law in place of the sampler's.
        assert (np.abs(y) / errors).max() > critical(1e-4, 5, 1999)


@pytest.mark.slow
def test_a_kernel_without_a_half_step_is_seen():
    """The planted fault of the test above: ABOBA without its last damping has the slope 1, and the law that says so."""
    case = HEAT._replace(total=150.0)
    y, errors = measured(case, undamped_noise)["temperature"]
    slope, error = power_of(np.array(case.sizes), y, errors)
    assert abs(slope - 2) > WITHIN + 5 * error
    assert np.abs((y - case.biases("B")) / errors).max() < critical(1e-4, 5, 1999)
    assert np.abs((y - case.biases()) / errors).max() > critical(1e-4, 5, 1999)


@pytest.mark.slow
def test_the_law_of_the_toy():
    """Fails where the bias of SGGMC on the toy at ε = .005, C = 2.5 is above 1e-3, what test_sphere.py allows it.

    V = 1000 subtracted changes nothing: what is injected and what the gradient brings is 2Cε in all. The law is found
    at larger steps, where that is fast, and its bias taken to .005 by the order 2 that it has.
    """
    target = TARGETS["circle_mixture"]()

    def slope(a):
        x = np.stack([np.cos(a), np.sin(a)], axis=-1).reshape(-1, 2)
        return (target.gradient_at(x) * np.stack([-x[:, 1], x[:, 0]], axis=-1)).sum(axis=1).reshape(np.shape(a))

    found = []
    for eps in (0.08, 0.04):
        law = splitting_law(slope, eps, 2.5, n_angles=64)
        found.append([law.mean(lambda a, m=m: m.function(a[:, None])) - m.exact for m in target.moments[2:]])
    large, small = np.abs(found)
    stated = small * (0.005 / 0.04) ** 2
    print("bias of the toy at .005", stated)
    np.testing.assert_allclose(large / small, 4, rtol=0.15)
    assert (stated < TOY_BIAS).all()
