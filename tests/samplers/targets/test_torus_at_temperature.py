"""The posterior on the torus at another temperature, against sums in plain Python that take nothing from its class."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

from sgmcmc_lab.samplers import RunSpec
from sgmcmc_lab.samplers.choices import make_target
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.tempered import tempered
from sgmcmc_lab.samplers.targets.vmf_posterior import TemperedMisesPosterior
from tests.helpers.statistics import exact_start, failures, mean_verdict, start_with

FALSE_ALARM = 1e-4
FEW = {"items": 20, "concentration": 12.0, "data_seed": 5}
"""κ, the data and the box below are those of this setting."""
AT = (-0.4, 0.1, 0.5)
"""The places at which the CDF is compared."""


@cache
def by_sums(temperature):
    """Mean, variance and CDF of both angles, their covariance and log ∫ e^{−U/T}, by the rule of midpoints."""
    kappa, data = FEW["concentration"], TARGETS["mises_posterior"](**FEW).observations.tolist()
    angles = [math.atan2(y, x) for x, y in data]
    # 1 holds all but 1e-13 at T = 0.25; at T = 4 it is the whole torus.
    half, n = (1.0, 125) if temperature < 1 else (math.pi, 121)
    h = 2 * half / n
    points = [-half + (k + 0.5) * h for k in range(n)]
    rows, low = [], math.inf
    for one in points:
        row = []
        for two in points:
            mu = math.atan2(math.sin(one) + math.sin(two), math.cos(one) + math.cos(two))
            u = -kappa * (math.cos(one) + math.cos(two))
            for a in angles:
                u -= math.log(math.exp(kappa * math.cos(one - a)) + math.exp(kappa * math.cos(mu - a)))
            row.append(u)
        low = min(low, *row)
        rows.append(row)
    rows = [[math.exp((low - u) / temperature) for u in row] for row in rows]
    whole = sum(map(sum, rows))
    sides = [[sum(row) / whole for row in rows], [sum(column) / whole for column in zip(*rows, strict=True)]]
    found, means = [], []
    for side in sides:
        means.append(sum(p * x for p, x in zip(side, points, strict=True)))
        found.append([means[-1], sum(p * (x - means[-1]) ** 2 for p, x in zip(side, points, strict=True))])
        for at in AT:
            k = round((at + half) / h)
            # Up to the border of a cell, whose end correction is h²p′/24 for the density p.
            found[-1].append((k * h - half, sum(side[:k]) + (side[k] - side[k - 1]) / 24))
    cross = sum(
        rows[i][j] * (points[i] - means[0]) * (points[j] - means[1]) / whole for i in range(n) for j in range(n)
    )
    return found, cross, math.log(whole * h * h) - low / temperature


def answers_apart(target):
    """By how much the answers are off those of the sums."""
    found, cross, log_mass = by_sums(target.temperature)
    off = [target.moments[-2].exact / cross - 1, target._log_normaliser - log_mass]
    for column, (mean, variance, *shares) in zip(target.columns, found, strict=True):
        off += [column.mean - mean, column.variance / variance - 1]
        off += [float(column.cdf(np.array(x))) - share for x, share in shares]
    return float(np.abs(off).max())


class Whole(TemperedMisesPosterior):
    """Planted fault: the answers are those of U."""

    def _on_grid(self, grid, index=None):
        return self.temperature * super()._on_grid(grid, index)


class OfPrior(TemperedMisesPosterior):
    """Planted fault: T divides the prior alone."""

    def _on_grid(self, grid, index=None):
        prior = -self.concentration * (np.cos(grid)[:, None] + np.cos(grid))
        return prior + self.temperature * (super()._on_grid(grid, index) - prior)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_the_answers_are_those_of_sums_over_both_angles(temperature):
    base = TARGETS["mises_posterior"](**FEW)
    assert answers_apart(tempered(base, temperature)) < 1e-5
    for fault in (Whole, OfPrior):
        assert answers_apart(fault.made(base, temperature)) > 0.05


class Finer(TemperedMisesPosterior):
    """The same on a grid twice as fine."""

    @property
    def _cells(self):
        return (2 * super()._cells) | 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "temperatures"),
    [({}, (0.01,)), ({"items": 10, "concentration": 10.0, "data_seed": 16}, (0.01, 0.99, 4.0))],
)
def test_a_finer_grid_has_the_same_answers(values, temperatures):
    """At the ends of what is allowed: the narrowest modes, and the largest jump. No more than 1e-6 of total variation
    of a marginal is between the two."""
    base, x = TARGETS["mises_posterior"](**values), np.linspace(-np.pi, np.pi, 2001)
    for temperature in temperatures:
        target, finer = tempered(base, temperature), Finer.made(base, temperature)
        for one, two in zip(target.columns, finer.columns, strict=True):
            assert np.abs(np.diff(one.cdf(x) - two.cdf(x))).sum() / 2 < 1e-6
            assert one.mean == pytest.approx(two.mean, abs=1e-6 * two.variance**0.5)
            assert one.variance == pytest.approx(two.variance, rel=1e-5)
            # The density goes on across the seam at ±π.
            assert one.cdf(np.array([-np.pi, np.pi])) == pytest.approx([0, 1], abs=1e-12)
        assert target.mode_weight == pytest.approx(finer.mode_weight, abs=1e-6)


class OfOneSide(TemperedMisesPosterior):
    """Planted fault: the envelope of the draws takes U on one side of the jump at each point."""

    @property
    def _least(self):
        return self._grid[1]


def above_envelope(target, n=100_000):
    """By how much the log of the density, at random points of cells through which the jump goes, is above that of the
    envelope, at most."""
    rng, cells, (grid, _) = np.random.default_rng(7), target._cells, target._grid
    i = np.arange(cells)
    one, two = np.nonzero(np.abs(2 * np.abs(i[:, None] - i) - cells) == 1)
    k = rng.integers(len(one), size=n)
    angles = [grid[cell[k]] + rng.random(n) * (grid[1] - grid[0]) for cell in (one, two)]
    theta = np.stack([turn(x) for x in angles for turn in (np.cos, np.sin)], axis=-1)
    _, tops, largest = target._textbook_box
    # The masses are differences of their sums, which round: those of small ones are left aside.
    top = tops[one[k] * cells + two[k]]
    kept = top > 1e-6 * tops.max()
    return float((target.log_density(theta[kept]) - np.log(top[kept]) - largest).max())


@pytest.mark.slow
def test_the_envelope_of_draws_is_above_the_density_on_both_sides_of_the_jump():
    base = TARGETS["mises_posterior"](items=10, concentration=10.0, data_seed=16)
    assert above_envelope(tempered(base, 4.0)) < 0
    assert above_envelope(OfOneSide.made(base, 4.0)) > 0.02


def verdicts(made, temperature, n_steps=600):
    """Means and variances of both angles, by 64 chains from exact draws, against the sums."""
    state = start_with(made)
    exact_start(state)
    state.advance(n_steps // 3)
    kept = np.empty((64, n_steps, 2))
    for t in range(n_steps):
        state.advance(1)
        kept[:, t] = np.arctan2(state.position[:, 1::2], state.position[:, ::2])
    assert state.divergence is None
    found, _, _ = by_sums(temperature)
    return failures(
        [
            verdict
            for k, (mean, variance, *_) in enumerate(found)
            for verdict in (
                mean_verdict(f"mean {k + 1}", kept[..., k], mean, FALSE_ALARM, 4),
                mean_verdict(f"variance {k + 1}", (kept[..., k] - mean) ** 2, variance, FALSE_ALARM, 4),
            )
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_geodesic_monte_carlo_has_the_tempered_law(temperature):
    """The accept step leaves it invariant. Planted fault: chains at T = 1."""

    def spec(heat):
        return RunSpec.of(
            "mises_posterior", "gmc", target_params=FEW, temperature=heat, n_chains=64, n_steps=10, burn_in=10**8,
            sampler_params={"step_size": 0.06 * temperature**0.5, "n_leapfrog": 8},
        )  # fmt: skip

    assert verdicts(spec(temperature), temperature) == []
    assert verdicts(spec(1.0), temperature)


def unseen(target, n=81):
    """The total variation between the target and the law of a diffusion that passes the jump of U as if it were smooth.

    The diffusion is a chain on n² points, whose rates have e^{−U/T} as their law but for those across the jump, which
    take the mean of both sides' smooth continuations.
    """
    grid = -np.pi + 2 * np.pi * np.arange(n) / n
    one, two = np.meshgrid(grid, grid, indexing="ij")
    theta = np.stack([np.cos(one), np.sin(one), np.cos(two), np.sin(two)], axis=-1)
    here, beyond = -target._heights(theta), -target._heights(theta, -1.0)
    law = np.exp(here.min() - here)
    turns = (np.arange(n) - np.arange(n)[:, None] + n // 2) % n
    index, rates = np.arange(n * n).reshape(n, n), sparse.csr_matrix((n * n, n * n))
    for axis in (0, 1):
        to, across = np.roll(index, -1, axis).ravel(), np.abs(turns - np.roll(turns, -1, axis)) > 1
        rise = np.roll(here, -1, axis) - here
        smooth = (np.roll(beyond, -1, axis) - here + np.roll(here, -1, axis) - beyond) / 2
        rise = np.where(across, smooth, rise).ravel()
        for start, end, up in ((index.ravel(), to, rise), (to, index.ravel(), -rise)):
            rate = np.where(np.abs(up) < 1e-9, 1.0, up / np.expm1(np.where(up == 0, 1.0, up)))
            rates = rates + sparse.csr_matrix((rate, (end, start)), shape=rates.shape)
    rates = (rates - sparse.diags(np.asarray(rates.sum(axis=0)).ravel())).tolil()
    # The law is known up to a factor: it is 1 at the mode.
    mode = int(law.argmax())
    rates[mode] = 0
    rates[mode, mode] = 1
    found = linalg.spsolve(rates.tocsc(), np.eye(1, n * n, mode).ravel())
    return float(np.abs(found / found.sum() - law.ravel() / law.sum()).sum() / 2)


@pytest.mark.slow
def test_where_a_temperature_is_allowed_a_jump_that_no_gradient_shows_has_hardly_an_effect():
    base = TARGETS["mises_posterior"](items=10, concentration=10.0, data_seed=16)
    assert 0.0045 < tempered(base, 4.0).jump < 0.005
    assert unseen(tempered(base, 4.0)) < 3e-3
    with pytest.raises(SpecError, match=r"of 0\.0\d where v₂ = −v₁ and U jumps, .* allowed are lower temperatures"):
        tempered(base, 10.0)
    assert unseen(TemperedMisesPosterior.made(base, 10.0)) > 0.02


@pytest.mark.slow
def test_defaults_have_answers_at_every_temperature_and_narrow_ones_are_refused():
    for temperature in (0.01, 10.0):
        target = make_target(RunSpec.of("mises_posterior", "exact").target, temperature)
        assert target.temperature == temperature and np.isfinite(target.columns[0].variance)
    with pytest.raises(SpecError, match=r"no quadrature resolves Posterior of two directions \(torus\) there"):
        tempered(TARGETS["mises_posterior"](items=300, concentration=50.0, data_seed=5), 0.01)
