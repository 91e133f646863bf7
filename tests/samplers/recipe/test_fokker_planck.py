"""The Fokker–Planck equation on a grid, against closed forms, finer grids and planted faults."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import linalg, sparse

from sgmcmc_lab.samplers.recipe import fokker_planck
from sgmcmc_lab.samplers.recipe.fokker_planck import (
    Evolution,
    Factor,
    Grid,
    Resolvent,
    gaussian_autocorrelation,
    gaussian_gap,
    gaussian_law,
    gaussian_rates,
    generator,
    integrated_time,
    optimal_curl,
    optimal_curl_gap,
    predicted_autocorrelation,
    spectrum,
    stationary,
)
from sgmcmc_lab.samplers.targets.quadrature import integrate
from tests.helpers.cases import for_each

SIGMA = np.array([[1.0, 0.9], [0.9, 1.0]])
BOX = Grid((-5.0, -5.0), (5.0, 5.0), (100, 100))
WELL = Grid((-2.6, -6.0), (2.6, 6.0), (120, 120))
LINE = Grid((-2.6,), (2.6,), (120,))
TIMES = np.linspace(0, 8, 33)


def J(q):
    return np.array([[0.0, -q], [q, 0.0]])


def normal(covariance):
    P = np.linalg.inv(covariance)
    return lambda x, y: (P[0, 0] * x * x + 2 * P[0, 1] * x * y + P[1, 1] * y * y) / 2


def phase(x, y):
    """The double well with momentum."""
    return x**4 - 2 * x**2 + y**2 / 2


def double_well(x):
    return x**4 - 2 * x**2


def steep(x, y):
    """Down to e⁻⁶⁹⁰ at the box's corners."""
    return 13.8 * (x * x + y * y)


RECIPES = {
    "constant": {"d11": 1.0, "d22": 0.3},
    "curl": {"d11": 1.0, "d22": 1.0, "q": 3.0},
    "underdamped": {"d11": 0.0, "d22": 1.0, "q": 1.0},
    "almost Hamiltonian": {"d11": 0.0, "d22": 1e-3, "q": 1.0},
    "Hamiltonian": {"d11": 0.0, "d22": 0.0, "q": 1.0},
    "correlated noise": {"d11": 1.0, "d12": -0.6, "d22": 0.5, "q": 1.0},
    "rank one": {"d11": 1.0, "d12": 1.3, "d22": 1.69, "q": 1.0},
    "all vary": {
        "d11": lambda x, y: 1 + 0.3 * np.sin(x + y),
        "d12": lambda x, y: 0.5 * np.cos(y) * np.sin(3 * x),
        "d22": lambda x, y: 1 + 0.2 * x * x,
        "q": lambda x, y: np.sin(x * y) + y,
    },
    "rank one that varies": {
        "d11": lambda x, y: np.sin(x) ** 2,
        "d12": lambda x, y: np.sin(x) * np.cos(x - y),
        "d22": lambda x, y: np.cos(x - y) ** 2,
    },
}


def imbalance(L, p):
    """|Lp| against the largest flow out of a cell."""
    return float(np.abs(L @ p.ravel()).max() / (np.abs(L.diagonal()) * p.ravel()).max())


# --- The generator


@for_each("energy", [normal(SIGMA), phase, steep], ids=["normal", "phase", "steep"])
@for_each("recipe", RECIPES)
def test_every_right_recipe_keeps_its_law_and_mass(recipe, energy):
    L = generator(BOX, energy, **RECIPES[recipe])
    pi = BOX.stationary(energy)
    assert np.isfinite(L.data).all()
    if energy is steep:
        assert 0 < pi.min() < 1e-290
    assert imbalance(L, pi) < 1e-14
    assert np.abs(L.sum(axis=0)).max() < 1e-13 * np.abs(L.diagonal()).max()


@for_each("recipe", RECIPES)
def test_nothing_grows_in_the_weighted_norm(recipe):
    grid = Grid((-2.5, -4.0), (2.5, 4.0), (18, 22))
    L = generator(grid, phase, **RECIPES[recipe]).toarray()
    root = np.sqrt(grid.stationary(phase)).ravel()
    A = L * root / root[:, None]
    top = np.linalg.eigvalsh((A + A.T) / 2)[-1]
    assert top < 1e-10 * np.abs(A).max()


def test_one_dimension_is_tridiagonal_with_positive_rates():
    L = generator(LINE, double_well, lambda x: 1 + x**2)
    assert imbalance(L, LINE.stationary(double_well)) < 1e-14
    dense = L.toarray()
    assert (np.abs(np.triu(dense, 2)) + np.abs(np.tril(dense, -2))).max() == 0
    assert (dense - np.diag(np.diag(dense))).min() == 0


SMOOTH = {
    "d11": (lambda x, y: 1 + 0.3 * np.sin(x), "1 + sin(x)*3/10"),
    "d12": (lambda x, y: 0.5 * np.cos(y - x), "cos(y - x)/2"),
    "d22": (lambda x, y: 1 + 0.2 * x * x, "1 + x**2/5"),
    "q": (lambda x, y: 1 + np.sin(x * y), "1 + sin(x*y)"),
}


def adjoint(d11, d12, d22, q, h, g=lambda x, y: np.sin(x) + y):
    """L*g = −(D + Q)∇H·∇g + Γ·∇g + D:∇∇g by central differences of functions, as the papers print it."""

    def dx(f, e=1e-4):
        return lambda x, y: (f(x + e, y) - f(x - e, y)) / (2 * e)

    def dy(f, e=1e-4):
        return lambda x, y: (f(x, y + e) - f(x, y - e)) / (2 * e)

    def out(x, y):
        hx, hy, gx, gy = dx(h)(x, y), dy(h)(x, y), dx(g)(x, y), dy(g)(x, y)
        f1 = -(d11(x, y) * hx + (d12(x, y) - q(x, y)) * hy) + dx(d11)(x, y) + dy(d12)(x, y) - dy(q)(x, y)
        f2 = -((d12(x, y) + q(x, y)) * hx + d22(x, y) * hy) + dx(d12)(x, y) + dx(q)(x, y) + dy(d22)(x, y)
        gxx, gxy, gyy = dx(dx(g, 1e-3), 1e-3)(x, y), dx(dy(g, 1e-3), 1e-3)(x, y), dy(dy(g, 1e-3), 1e-3)(x, y)
        return f1 * gx + f2 * gy + d11(x, y) * gxx + 2 * d12(x, y) * gxy + d22(x, y) * gyy

    return out


def action_error(n, fault=None):
    """The largest error of Lᵀg in the middle of the box."""
    grid = Grid((-3.0, -3.0), (3.0, 3.0), (n, n))
    d11, d12, d22, q = (SMOOTH[name][0] for name in ("d11", "d12", "d22", "q"))
    energy = normal(SIGMA + np.eye(2))
    typed = {"d11": d11, "d12": d12, "d22": d22, "q": q}
    if fault == "curl's sign":
        typed["q"] = lambda x, y: -q(x, y)
    elif fault == "D12's sign":
        typed["d12"] = lambda x, y: -d12(x, y)
    elif fault == "a half":
        typed = {k: (v if k == "q" else (lambda x, y, v=v: v(x, y) / 2)) for k, v in typed.items()}
    L = generator(grid, energy, **typed)
    x, y = grid.mesh()
    error = (L.T @ (np.sin(x) + y).ravel()).reshape(grid.cells) - adjoint(d11, d12, d22, q, energy)(x, y)
    cut = n // 6
    return float(np.abs(error[cut:-cut, cut:-cut]).max())


def test_the_generator_is_the_printed_one_and_of_second_order():
    errors = [action_error(n) for n in (48, 96, 192)]
    assert errors[2] < 4e-3
    for coarse, fine in pairwise(errors):
        assert 1.8 < np.log2(coarse / fine) < 2.3


@for_each("fault", ["curl's sign", "D12's sign", "a half"])
def test_fault_in_the_generator(fault):
    assert action_error(96, fault) > 0.3


@pytest.mark.slow
def test_arrays_in_place_of_callables():
    x, y = WELL.mesh()
    typed = generator(WELL, phase, lambda x, y: 1 + x * x, 0.2, 1.0, lambda x, y: y + 1)
    given = generator(WELL, phase(x, y), 1 + x * x, 0.2 + 0 * x, 1 + 0 * x, y + 1)
    pi = WELL.stationary(phase)
    assert imbalance(given, pi) < 1e-14
    assert spectrum(given, WELL, pi, 2).gap == pytest.approx(spectrum(typed, WELL, pi, 2).gap, rel=5e-3)


def test_an_extra_drift_moves_mass_and_keeps_it():
    for upwind in (False, True):
        L = generator(BOX, normal(SIGMA), 1.0, 0.0, 1.0, drift=(lambda x, y: np.cos(y), 0.5), upwind=upwind)
        assert np.abs(L.sum(axis=0)).max() < 1e-13 * np.abs(L.diagonal()).max()
        x, y = BOX.mesh()
        p = BOX.blob((0.5, -0.2), (0.4, 0.4)).ravel() * BOX.volume
        plain = generator(BOX, normal(SIGMA), 1.0, 0.0, 1.0)
        extra = (L - plain) @ p
        # d/dt E z is E g.
        assert (extra @ x.ravel()) == pytest.approx(p @ np.cos(y).ravel(), rel=1e-3 if not upwind else 0.02)
        assert (extra @ y.ravel()) == pytest.approx(0.5, rel=1e-3 if not upwind else 0.02)
    assert (L - sparse.diags_array(L.diagonal())).min() >= 0


# --- The law of wrong drifts


def metric(theta, c=1.5):
    """G^{−1/2} of Ma, Chen and Fox on the double well, with C = 1.5."""
    return np.sqrt(1.5 * np.sqrt(double_well(theta) + c))


def metric_slope(theta, e=1e-5):
    return (metric(theta + e) - metric(theta - e)) / (2 * e)


def test_naive_sgrhmc_has_the_law_in_closed_form():
    # Γ = (0, ∂q): dropping it is an extra drift −Γ, and gives θ the law ∝ e^{−U}G^{1/2}.
    L = generator(
        WELL,
        phase,
        0.0,
        0.0,
        lambda x, y: metric(x) ** 2,
        lambda x, y: metric(x) + 0 * y,
        drift=(0.0, lambda x, y: -metric_slope(x)),
    )
    p = stationary(L, WELL, WELL.stationary(phase))
    theta = WELL.centres[0]
    marginal = p.sum(axis=1) * WELL.steps[1]
    wrong = np.exp(-double_well(theta)) / metric(theta)
    wrong /= wrong.sum() * WELL.steps[0]
    assert np.abs(marginal - wrong).max() < 2e-3 * wrong.max()
    assert (marginal * theta**2).sum() * WELL.steps[0] == pytest.approx(0.83825, abs=1e-3)
    right = np.exp(-double_well(theta)) / integrate(lambda t: np.exp(-double_well(t)), -3, 3)
    divergence = (marginal * np.log(marginal / right)).sum() * WELL.steps[0]
    assert divergence == pytest.approx(0.0053, abs=1e-4)
    assert imbalance(L, WELL.stationary(phase)) > 1e-3


def test_one_dimension_without_gamma():
    # dθ = −D U' dt + √(2D) dW without Γ = D': the law is e^{−U}/D.
    def d(x):
        return 1 + x**2 / 2

    L = generator(LINE, double_well, d, drift=[lambda x: -x])
    expected = LINE.stationary(lambda x: double_well(x) + np.log(d(x)))
    p = stationary(L, LINE, LINE.stationary(double_well))
    np.testing.assert_allclose(p, expected, atol=1e-3 * expected.max())
    assert np.abs(p - LINE.stationary(double_well)).max() > 0.1 * expected.max()


# --- Spectrum and autocorrelation

GAUSSIAN = {
    "no curl": (SIGMA, np.eye(2), 0.0, 1e-3),
    "a curl": (SIGMA, np.eye(2), 1.0, 1e-3),
    "a strong curl": (SIGMA, np.eye(2), 5.0, 2e-3),
    "underdamped": (np.eye(2), np.diag([0.0, 1.0]), 1.0, 1e-3),
    "correlated noise": (np.array([[1.0, 0.5], [0.5, 0.8]]), np.array([[1.0, 0.4], [0.4, 0.5]]), 1.0, 5e-3),
}


def solve_gaussian(case, grid=BOX, sign=1.0, scale=1.0, d12=1.0):
    sigma, D, q, _ = GAUSSIAN[case]
    L = generator(grid, normal(sigma), scale * D[0, 0], d12 * D[0, 1], scale * D[1, 1], sign * q)
    return L, grid.stationary(normal(sigma))


@for_each("case", GAUSSIAN)
def test_the_gap_and_the_modes_of_a_gaussian(case):
    sigma, D, q, tolerance = GAUSSIAN[case]
    L, pi = solve_gaussian(case)
    found = spectrum(L, BOX, pi, 8)
    assert found.gap == pytest.approx(gaussian_gap(sigma, D, J(q)), rel=tolerance)
    rates = gaussian_rates(sigma, D, J(q))
    counts = np.stack(np.meshgrid(np.arange(9), np.arange(9)), axis=-1).reshape(-1, 2)[1:]
    exact = -(counts @ rates)
    # Each found one is exact, and each exact one inside of the radius was found.
    # (The walls at 5 standard deviations are felt by modes of high degree only.)
    reach = min(found.radius, 4.5 * abs(rates[0]))
    for value in found.values[np.abs(found.values) < reach]:
        assert np.abs(exact - value).min() < 0.02 * abs(value)
    for value in exact[np.abs(exact) < 0.97 * reach]:
        assert np.abs(found.values - value).min() < 0.02 * abs(value)


@pytest.mark.parametrize("fault", [{"scale": 0.5}, {"sign": 0.0}])
def test_fault_gap(fault):
    sigma, D, q, tolerance = GAUSSIAN["a curl"]
    L, pi = solve_gaussian("a curl", **fault)
    assert abs(spectrum(L, BOX, pi, 2).gap / gaussian_gap(sigma, D, J(q)) - 1) > 20 * tolerance


@pytest.mark.slow
def test_the_gap_with_a_rank_one_diffusion_and_a_curl(monkeypatch):
    """Fails where what damps rough modes across a curl damps the smooth ones, too: D of rank one has no noise in one
    direction, and the gap is 2. Planted fault: the damping counts all of a face's diffusion, and the gap is .6."""
    sigma, D, q = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -1.0], [-1.0, 1.0]]), 2.0
    exact = gaussian_gap(sigma, D, J(q))
    assert exact == pytest.approx(2.0)

    def gap():
        L = generator(BOX, normal(sigma), 1.0, -1.0, 1.0, q)
        return spectrum(L, BOX, BOX.stationary(normal(sigma)), 2).gap

    assert gap() == pytest.approx(exact, rel=5e-3)
    real = fokker_planck._damp_rough
    monkeypatch.setattr(fokker_planck, "_damp_rough", lambda rates, H, axis, d: real(rates, H, axis, d + 1.0))
    assert abs(gap() / exact - 1) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (1.0, -2.0)])
@pytest.mark.parametrize("case", GAUSSIAN)
def test_autocorrelation_of_a_gaussian(case, direction):
    sigma, D, q, tolerance = GAUSSIAN[case]
    L, pi = solve_gaussian(case)
    x, y = BOX.mesh()
    values = direction[0] * x + direction[1] * y
    exact = gaussian_autocorrelation(sigma, D, J(q), TIMES, direction)
    np.testing.assert_allclose(predicted_autocorrelation(L, BOX, pi, values, TIMES), exact, atol=tolerance)
    c, B = np.array(direction), (D + J(q)) @ np.linalg.inv(sigma)
    tau = 2 * c @ np.linalg.inv(B) @ sigma @ c / (c @ sigma @ c)
    assert integrated_time(L, BOX, pi, values) == pytest.approx(tau, rel=2 * tolerance, abs=1e-4)


@pytest.mark.slow
def test_fault_autocorrelation_with_a_half_lost_or_the_wrong_sign_of_d12():
    x, _ = BOX.mesh()
    for case, fault in (("a curl", {"scale": 0.5}), ("correlated noise", {"d12": -1.0})):
        sigma, D, q, tolerance = GAUSSIAN[case]
        L, pi = solve_gaussian(case, **fault)
        exact = gaussian_autocorrelation(sigma, D, J(q), TIMES, (1, 0))
        assert np.abs(predicted_autocorrelation(L, BOX, pi, x, TIMES) - exact).max() > 10 * tolerance


@pytest.mark.slow
def test_the_autocorrelation_is_that_of_the_matrix():
    grid = Grid((-2.5, -4.0), (2.5, 4.0), (24, 22))
    L = generator(grid, phase, 0.0, 0.0, 0.5, 1.0)
    pi = grid.stationary(phase)
    g = grid.mesh()[0].ravel() + grid.mesh()[1].ravel() ** 2
    w = pi.ravel() * grid.volume
    g = g - w @ g
    times = np.array([[0.0, 0.1], [1.0, 20.0]])
    exact = [g @ linalg.expm(L.toarray() * t) @ (w * g) / (w @ g**2) for t in times.ravel()]
    rho = predicted_autocorrelation(L, grid, pi, g.reshape(grid.cells) + 7, times)
    assert rho.shape == (2, 2)
    np.testing.assert_allclose(rho.ravel(), exact, atol=2e-6)
    fine = np.linspace(0, 80, 8001)
    whole = 2 * np.trapezoid(predicted_autocorrelation(L, grid, pi, g.reshape(grid.cells), fine), fine)
    assert integrated_time(L, grid, pi, g.reshape(grid.cells)) == pytest.approx(whole, rel=1e-4)


@pytest.mark.slow
def test_right_and_left_functions():
    L = generator(WELL, phase, 0.0, 0.0, 1.0, 1.0)
    pi = WELL.stationary(phase)
    found = spectrum(L, WELL, pi, 4, left=True)
    assert (np.diff(-found.values.real) >= -1e-9).all()
    for value, right, left in zip(found.values, found.right, found.left, strict=True):
        phi, psi = right.ravel(), left.ravel()
        assert np.linalg.norm(L @ phi - value * phi) < 1e-6 * np.linalg.norm(phi) * abs(L).max()
        assert abs(phi.sum()) < 1e-8 * np.abs(phi).sum()
        assert (psi * phi).sum() * WELL.volume == pytest.approx(1)
        heavy = (pi > 1e-4 * pi.max()).ravel()
        error = np.abs(L.T @ psi - value * psi)[heavy].max()
        assert error < 1e-4 * np.abs(psi[heavy]).max()
    # Complex ones are whole pairs.
    assert abs(found.values.imag.sum()) < 1e-6


@pytest.mark.slow
def test_no_mode_of_the_reversed_force():
    """Centred transport alone has modes that alternate from cell to cell and decay more slowly than all true ones."""
    L = generator(WELL, phase, 0.0, 0.0, 1.0, 1.0)
    pi = WELL.stationary(phase)
    found = spectrum(L, WELL, pi, 6)
    assert found.gap == pytest.approx(0.3005, rel=5e-3)
    for right in found.right:
        smooth = right / np.sqrt(pi)
        step = np.abs(np.diff(smooth, axis=0)) ** 2
        assert step.sum() < 0.5 * (np.abs(smooth) ** 2).sum()


def test_fault_the_mode_of_the_reversed_force(monkeypatch):
    monkeypatch.setattr("sgmcmc_lab.samplers.recipe.fokker_planck.ROUGH", 0.0)
    L = generator(WELL, phase, 0.0, 0.0, 1.0, 1.0)
    assert spectrum(L, WELL, WELL.stationary(phase), 3).gap == pytest.approx(0.189, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [0.2, 1.0, 5.0])
def test_underdamped_langevin_on_the_double_well_against_a_fine_grid(friction):
    gap, rho, tau = [], [], []
    for n in (120, 240):
        grid = Grid(WELL.low, WELL.high, (n, n))
        L = generator(grid, phase, 0.0, 0.0, friction, 1.0)
        pi = grid.stationary(phase)
        resolvent = Resolvent(L, grid, pi)
        theta = grid.mesh()[0]
        gap.append(spectrum(L, grid, pi, 2, resolvent=resolvent).gap)
        rho.append(predicted_autocorrelation(L, grid, pi, theta, 3 * TIMES, resolvent=resolvent))
        tau.append(integrated_time(L, grid, pi, theta, resolvent=resolvent))
    assert gap[0] == pytest.approx(gap[1], rel=5e-3)
    assert tau[0] == pytest.approx(tau[1], rel=5e-3)
    np.testing.assert_allclose(rho[0], rho[1], atol=3e-3)


def test_sgld_on_the_double_well():
    # The integrated time of θ in one dimension in closed form: with F(θ) = ∫_{−∞}^θ sπ(s)ds it is 2∫F²/π / Eθ².
    fine = np.linspace(-2.6, 2.6, 20001)
    pi = np.exp(-double_well(fine))
    pi /= np.trapezoid(pi, fine)
    step = fine[1] - fine[0]
    F = np.concatenate([[0], np.cumsum((fine * pi)[1:] + (fine * pi)[:-1]) * step / 2])
    exact = 2 * np.trapezoid(F**2 / pi, fine) / np.trapezoid(fine**2 * pi, fine)
    L = generator(LINE, double_well, 1.0)
    law = LINE.stationary(double_well)
    theta = LINE.centres[0]
    assert integrated_time(L, LINE, law, theta) == pytest.approx(exact, rel=3e-4)
    assert spectrum(L, LINE, law, 4).gap == pytest.approx(0.748682, rel=3e-4)
    rho = predicted_autocorrelation(L, LINE, law, theta, TIMES)
    assert rho[0] == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(np.diff(np.log(rho[-5:])) / TIMES[1], -0.748682, rtol=3e-4)


def test_the_gap_is_of_second_order():
    gaps = []
    for n in (60, 120, 240):
        grid = Grid(LINE.low, LINE.high, (n,))
        L = generator(grid, double_well, lambda x: 1 + x**2 / 3)
        gaps.append(spectrum(L, grid, grid.stationary(double_well), 2).gap)
    assert np.log2((gaps[1] - gaps[0]) / (gaps[2] - gaps[1])) == pytest.approx(2, abs=0.1)


# --- Closed forms


def test_the_optimal_curl():
    best = optimal_curl_gap(SIGMA)
    assert best == pytest.approx(np.trace(np.linalg.inv(SIGMA)) / 2)
    q = optimal_curl(SIGMA)
    assert gaussian_gap(SIGMA, np.eye(2), J(q)) == pytest.approx(best, rel=1e-6)
    assert gaussian_gap(SIGMA, np.eye(2), J(3 * q)) == pytest.approx(best)
    assert gaussian_gap(SIGMA, np.eye(2), J(0.9 * q)) < 0.7 * best
    assert gaussian_gap(SIGMA, np.eye(2)) == pytest.approx(1 / 1.9)
    L = generator(BOX, normal(SIGMA), 1.0, 0.0, 1.0, 1.2 * q)
    assert spectrum(L, BOX, BOX.stationary(normal(SIGMA)), 4).gap == pytest.approx(best, rel=2e-3)


@pytest.mark.slow
def test_gaussian_law_against_an_ode():
    D, Q = np.diag([0.0, 1.0]), J(1.0)
    B = (D + Q) @ np.linalg.inv(SIGMA)
    mean, cov = np.array([1.0, -0.5]), 0.1 * np.eye(2)
    got = gaussian_law(SIGMA, D, Q, mean, cov, 0.7)
    n = 20000
    for _ in range(n):
        mid = mean - 0.35 / n * B @ mean
        mean = mean - 0.7 / n * B @ mid
        half = cov + 0.35 / n * (2 * D - B @ cov - cov @ B.T)
        cov = cov + 0.7 / n * (2 * D - B @ half - half @ B.T)
    np.testing.assert_allclose(got[0], mean, atol=1e-7)
    np.testing.assert_allclose(got[1], cov, atol=1e-7)


# --- Evolution


def moments(grid, p):
    x, y = (c.ravel() for c in grid.mesh())
    w = p.ravel() * grid.volume
    mean = np.array([w @ x, w @ y])
    z = np.stack([x, y]) - mean[:, None]
    return mean, (z * w) @ z.T


EVOLVED = {
    "a curl": (np.array([[1.0, 0.5], [0.5, 1.0]]), np.eye(2), 1.0),
    "underdamped": (np.eye(2), np.diag([0.0, 1.0]), 1.0),
    "correlated noise": (np.array([[1.0, 0.5], [0.5, 0.8]]), np.array([[1.0, 0.4], [0.4, 0.5]]), 1.0),
}


def evolve(case, n=120, dt=0.02, time=1.0, sign=1.0, half=1.0, d12=1.0):
    sigma, D, q = EVOLVED[case]
    grid = Grid((-6.0, -6.0), (6.0, 6.0), (n, n))
    L = generator(grid, normal(sigma), half * D[0, 0], d12 * D[0, 1], half * D[1, 1], sign * q)
    run = Evolution(L, grid.blob((1.5, -1.0), (0.5, 0.4)), dt)
    p = run.advance(round(time / dt))
    assert run.time == pytest.approx(time)
    mean, cov = gaussian_law(sigma, D, J(q), (1.5, -1.0), np.diag([0.25, 0.16]), time)
    got = moments(grid, p)
    z = np.stack(grid.mesh(), axis=-1) - mean
    exact = np.exp(-np.einsum("...i,ij,...j", z, np.linalg.inv(cov), z) / 2) / (2 * np.pi * np.sqrt(np.linalg.det(cov)))
    error = float(np.abs(p - exact).sum() * grid.volume)
    return p.sum() * grid.volume, error, np.abs(got[0] - mean).max(), np.abs(got[1] - cov).max(), p.min() / p.max()


@pytest.mark.slow
@pytest.mark.parametrize("case", EVOLVED)
def test_a_blob_follows_the_exact_law(case):
    mass, error, mean, cov, lowest = evolve(case)
    assert mass == pytest.approx(1, abs=1e-12)
    assert error < 0.015
    assert mean < 5e-3 and cov < 8e-3
    assert lowest > -1e-4
    fine = evolve(case, 240, 0.01)
    assert 1.6 < np.log2(error / fine[1]) < 2.4


@for_each(
    ("case", "fault"),
    [
        ("a curl", {"sign": -1.0}),
        ("a curl", {"half": 0.5}),
        ("underdamped", {"sign": -1.0}),
        ("correlated noise", {"d12": -1.0}),
    ],
)
def test_fault_evolution(case, fault):
    assert evolve(case, **fault)[1] > 0.15


def test_time_steps_are_of_second_order_and_a_point_start_is_damped():
    L = generator(LINE, double_well, 1.0)
    start = LINE.point([0.7])
    exact = linalg.expm(L.toarray()) @ start
    errors = [np.abs(Evolution(L, start, dt).advance(round(1 / dt)) - exact).max() for dt in (0.1, 0.05, 0.025)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2, abs=0.3)
    # Without the damping steps what is rough in the start never goes.
    rough = np.abs(np.diff(Evolution(L, start, 0.1, startup=0).advance(10) - exact)).max()
    assert rough > 5 * np.abs(np.diff(Evolution(L, start, 0.1).advance(10) - exact)).max()


@pytest.mark.slow
def test_evolution_in_chunks_is_the_whole_and_ends_in_the_law():
    L = generator(WELL, phase, 0.0, 0.0, 1.0, 1.0)
    start = WELL.point((0.9, -1.0))
    mean, _ = moments(WELL, start)
    np.testing.assert_allclose(mean, (0.9, -1.0), atol=1e-12)
    run = Evolution(L, start, 0.05)
    run.advance(7)
    part = run.advance(13)
    run.restart(start)
    np.testing.assert_array_equal(run.advance(20), part)
    run.advance(1000)
    pi = WELL.stationary(phase)
    assert np.abs(run.density - pi).max() < 1e-5 * pi.max()
    assert run.density.sum() * WELL.volume == pytest.approx(1, abs=1e-11)


# --- Refusals


def test_factor_falls_back_to_pivoting():
    swap = sparse.csc_array(np.array([[1e-18, 1.0, 0.0], [1.0, 1e-18, 0.0], [0.0, 0.0, 2.0]]))
    factor = Factor(swap)
    assert factor.pivoted
    np.testing.assert_allclose(factor.solve(np.array([1.0, 2.0, 4.0])), [2.0, 1.0, 2.0])


@for_each(
    ("call", "message"),
    [
        (lambda: Grid((0.0,), (1.0, 2.0), (5,)), "one or two"),
        (lambda: Grid((0.0,), (1.0,), (2,)), "three cells"),
        (lambda: Grid((1.0,), (0.0,), (5,)), "in order"),
        (lambda: Grid((0.0,), (np.inf,), (5,)), "finite"),
        (lambda: LINE.point([3.0]), "outside"),
        (lambda: LINE.blob([900.0], [0.1]), "no mass"),
        (lambda: LINE.stationary(lambda x: np.where(x < 0, np.inf, x)), r"energy is not finite at z = \(-2\.5"),
        (lambda: LINE.stationary(np.log), "Not a number"),
        (lambda: LINE.stationary(np.zeros(7)), "shape"),
        (lambda: generator(LINE, double_well, lambda x: x), "below zero"),
        (lambda: generator(LINE, double_well, 1.0, q=1.0), "one dimension"),
        (lambda: generator(LINE, double_well, 1.0, drift=[0.0, 0.0]), "2 entries"),
        (lambda: generator(BOX, phase, 1.0, lambda x, y: 0.4 * x, 1.0), "not positive semidefinite"),
        (lambda: generator(BOX, phase, 1.0, 0.0, lambda x, y: 1 / (x * 0)), "D22 is not finite"),
        (lambda: Evolution(generator(LINE, double_well, 1.0), np.ones(7), 0.1), "7 cells"),
        (lambda: Evolution(generator(LINE, double_well, 1.0), np.ones(120), 0.0), "positive"),
        (lambda: spectrum(generator(LINE, double_well, 1.0), LINE, np.ones(120)), "not stationary"),
        (
            lambda: integrated_time(
                generator(LINE, double_well, 1.0), LINE, LINE.stationary(double_well), np.ones(120)
            ),
            "constant",
        ),
        (lambda: optimal_curl(np.eye(3)), "2 × 2"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
