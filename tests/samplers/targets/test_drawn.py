"""A drawn curve becomes a formula that can be typed: close to the curve, within the bounds, with a finite integral."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import parse
from sgmcmc_lab.samplers.parameters import MAX_FORMULA, SpecError
from sgmcmc_lab.samplers.targets.drawn import MOST_POINTS, energy_through
from sgmcmc_lab.samplers.targets.typed import Typed
from tests.helpers.cases import for_each

CURVES = {
    "a parabola": lambda t: 4 * t**2,
    "two wells": lambda t: 8 * (t**2 - 0.5) ** 2 + t,
    "three wells": lambda t: 3 - 2 * np.cos(3 * np.pi * t),
    "steep walls": lambda t: 8 * t**8,
    "a step": lambda t: 4 / (1 + np.exp(-12 * t)),
    "a hill alone": lambda t: 6 * np.exp(-8 * t**2),
    "a slope": lambda t: 5 * t,
    "a level line": lambda t: 0 * t + 2,
}
RANGES = [(-2.0, 2.0), (-30.0, 10.0)]


def energy_of(text):
    expression = parse(text, ("theta",), "target.energy")
    return lambda theta: expression.evaluate(theta=theta)


def drawn(curve, low, high, n=150, trembling=0.0, turns=0):
    """Points as a hand draws them: unevenly, with some trembling, and to and fro."""
    rng = np.random.default_rng(3)
    t = np.sort(rng.uniform(-1, 1, n))
    t[[0, -1]] = -1, 1
    if turns:
        t[n // 2 : n // 2 + turns] = t[n // 2 : n // 2 + turns][::-1]
    u = curve(t) + trembling * rng.standard_normal(n)
    return np.stack([(low + high) / 2 + (high - low) / 2 * t, u], axis=1)


@for_each(("low", "high"), RANGES)
@for_each("name", CURVES)
def test_the_formula_is_close_to_the_curve_and_is_a_law(name, low, high):
    """To 2.5 % of its range, at its very ends to 5 %. Fails where a sign, a width or a centre is written as another."""
    curve = CURVES[name]
    text = energy_through(drawn(curve, low, high, turns=4))
    assert len(text) <= MAX_FORMULA
    energy, t = energy_of(text), np.linspace(-1, 1, 301)
    theta = (low + high) / 2 + (high - low) / 2 * t
    allowed = np.where(np.abs(t) < 0.95, 0.025, 0.05) * max(np.ptp(curve(t)), 1.0)
    assert (np.abs(energy(theta) - curve(t)) < allowed).all()
    # It grows without bounds on both sides: already four widths away e^{−U} is nothing.
    assert energy(np.array([low - 4 * (high - low), high + 4 * (high - low)])).min() > curve(t).min() + 40
    # Planted fault: a formula with its bumps a tenth of the curve farther to the right.
    assert name == "a level line" or (np.abs(energy(theta + 0.1 * (high - low)) - curve(t)) > allowed).any()
    Typed(energy=text)


def test_no_well_opens_beyond_the_ends():
    """U goes on at the ends as it was drawn, and then rises: a curve that ends on high has no well outside."""
    for curve in (CURVES["steep walls"], CURVES["two wells"]):
        energy = energy_of(energy_through(drawn(curve, -1.0, 1.0)))
        beyond = energy(np.linspace(1.0, 4.0, 200)), energy(np.linspace(-1.0, -4.0, 200))
        assert all((np.diff(u) > -0.01).all() and (u[1:] > u[0] - 0.05).all() for u in beyond)


def test_a_trembling_hand_draws_a_smooth_curve():
    """Fails where the curve goes through every point: its second differences would be those of the trembling."""
    curve = CURVES["two wells"]
    points = drawn(curve, -1.0, 1.0, trembling=0.1)
    energy, t = energy_of(energy_through(points)), np.linspace(-0.95, 0.95, 301)
    assert np.abs(energy(t) - curve(t)).max() < 0.25
    assert np.abs(np.diff(energy(t), 2) - np.diff(curve(t), 2)).max() < 0.01 < np.abs(np.diff(points[:, 1], 2)).max()


@for_each(
    "points",
    [
        np.zeros((0, 2)),
        np.ones((1, 2)),
        np.ones((50, 2)),
        np.stack([np.zeros(50), np.arange(50.0)], axis=1),
        np.array([[0.0, 1.0], [1.0, 2.0], [2.0, np.nan], [3.0, 1.0], [4.0, 2.0], [5.0, 1.0]]),
        np.full((20, 2), np.inf),
        np.zeros((MOST_POINTS + 1, 2)),
        np.zeros((10**6, 2)),
        np.zeros(20),
    ],
    ids=["none", "one", "one place", "upright", "nan", "infinite", "too many", "a million", "no pairs"],
)
def test_what_is_no_curve_is_refused_in_a_sentence(points):
    with pytest.raises(SpecError, match=r"^curve = .*: allowed .*\.$"):
        energy_through(points)
