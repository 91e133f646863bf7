"""Factors: the density and its gradient, the ELBO by quadrature, Gibbs against the joint law and by enumeration."""

from functools import cache

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import special, stats

from sgmcmc_lab.lessons.papers import knowles_2015_figures_4_to_6 as compare
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.models.factors import Factors, FactorsGamma, FactorsGibbs, FactorsNorm, baselines, gibbs
from sgmcmc_lab.samplers.models.factors import model as factors_model
from sgmcmc_lab.samplers.models.factors.amari import amari
from sgmcmc_lab.samplers.models.factors.data import MADE_HELD, Rows, made, read
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.variational import gamma
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

LIMIT = 5.0
"""Standard errors, of 40 batches: Student's t with 39 degrees of freedom is beyond 5 once in 80,000."""
SETTINGS = [("gamma process", True), ("gamma process", False), ("fixed", True), ("fixed", False)]


def small(prior="gamma process", learned=True, n=9, d=4, k=3, seed=1):
    """A few rows; their noise may be known."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((n + n // 3, 2)) @ rng.random((2, d)) + 0.5 * rng.standard_normal((n + n // 3, d))
    model = Factors(Rows(tuple("abcdefgh"[:d]), y), data="uploaded", n_factors=k, prior=prior)
    model.known_noise = None if learned else 0.4
    return model


# --- the density ------------------------------------------------------------------------------------------------------


def by_scipy(model, x):
    """log p(Y, x), row by row and prior by prior."""
    w, r, top, precision = model.parts(x)
    noise = model.known_noise if model.known_noise is not None else 1 / precision[0]
    total = stats.multivariate_normal.logpdf(model.y, np.zeros(len(w)), w @ w.T + noise * np.eye(len(w))).sum()
    if len(precision):
        total += stats.gamma.logpdf(precision[0], 0.1, scale=10.0)
    if not len(top):
        return total + stats.gamma.logpdf(w, 0.1).sum()
    g, mass, rate = top
    total += (
        stats.gamma.logpdf(w, g * r, scale=1 / g).sum() + stats.gamma.logpdf(r, mass / len(r), scale=1 / rate).sum()
    )
    return total + stats.gamma.logpdf(top, 1.0).sum()


@for_each(("prior", "learned"), SETTINGS)
def test_the_density_and_its_gradient(prior, learned):
    """The value by SciPy's densities, the gradient by central differences, also of factors that are nearly off."""
    model = small(prior, learned)
    x = np.random.default_rng(2).gamma(1.0, 1.0, model.n_unknowns)
    model.parts(x).r[:1] = 1e-9
    x[:3] = 1e-7
    log_x, grad, out = np.log(x), np.empty_like(x), np.empty_like(x)
    assert model.log_joint(log_x, grad) == pytest.approx(by_scipy(model, x), rel=1e-9)
    assert model.log_joint(log_x, grad) != pytest.approx(by_scipy(model, 1.001 * x), rel=1e-9)
    step = 1e-5 * np.eye(len(x))
    measured = [(model.log_joint(log_x + e, out) - model.log_joint(log_x - e, out)) / 2e-5 for e in step]
    np.testing.assert_allclose(grad, measured, rtol=1e-6, atol=1e-5)


def test_the_printed_sign_is_caught():
    """Eq (17) has +N/2 log|K|, and (18) +N K⁻¹W."""
    model = small()
    w, k = np.random.default_rng(2).random((4, 3)), np.eye(4)
    k = w @ w.T + 0.5 * k
    value, by_w, _ = factors_model.log_likelihood(w, 2.0, model.scatter, model.n_data)
    inverse = np.linalg.inv(k)
    rest = -np.trace(model.scatter @ inverse) / 2 - model.n_data * 4 * np.log(2 * np.pi) / 2
    right = -model.n_data * np.linalg.slogdet(k)[1] / 2
    assert value == pytest.approx(rest + right)
    assert value != pytest.approx(rest - right, rel=0.01)
    slope = inverse @ model.scatter @ inverse @ w
    np.testing.assert_allclose(by_w, slope - model.n_data * inverse @ w)
    assert np.abs(by_w - slope - model.n_data * inverse @ w).max() > 1


def test_rates_that_are_no_numbers_any_more():
    """If r underflows, the density is that of its logarithm."""
    model = small()
    log_x = np.zeros(model.n_unknowns)
    _, log_r, _, _ = model.parts(log_x)
    log_r[:] = -800.0, -5.0, 0.0
    grad = np.empty_like(log_x)
    assert np.isfinite(model.log_joint(log_x, grad)) and np.isfinite(grad).all()


# --- the ELBO, where one loading is all that is unknown ---------------------------------------------------------------


def one_loading():
    """One column, one factor, known noise, fixed prior."""
    model = small("fixed", False, n=30, d=1, k=1)
    jit.prepare([gamma.draw])
    return model


def exact_elbo(model, a, b, sign=-1.0):
    """∫ q(w) [log p(Y, w) − log q(w)] dw by the trapezoidal rule in log w."""
    log_y = np.linspace(-60 / a, np.log(a + 40 + 12 * a**0.5), 4000)
    weight = np.exp(a * log_y - np.exp(log_y) - special.gammaln(a)) * (log_y[1] - log_y[0])
    w = np.exp(log_y) / b
    variance = w**2 + 0.4
    log_p = (
        sign * model.n_data * np.log(variance) / 2
        - model.scatter[0, 0] / variance / 2
        - model.n_data * np.log(2 * np.pi) / 2
    )
    return float((weight * (log_p + stats.gamma.logpdf(w, 0.1) - stats.gamma.logpdf(w, a, scale=1 / b))).sum())


def elbo_z(model, a, b, sign=-1.0, n=4000):
    """ELBO and gradient of single draws beside quadrature's, in standard errors."""
    rng, shape, rate = Generator(SFC64(3)), np.array([a]), np.array([b])
    log_x, slope, grad, found = np.empty(1), np.empty(1), np.empty(1), []
    for _ in range(n):
        entropy = gamma.draw(rng, shape, rate, log_x, slope)
        value = model.log_joint(log_x, grad) + entropy
        found.append([value, *np.concatenate(gamma.path_gradient(grad, log_x, slope, shape, rate))])
    h = 1e-4
    exact = [
        exact_elbo(model, a, b, sign),
        (exact_elbo(model, a + h, b, sign) - exact_elbo(model, a - h, b, sign)) / (2 * h),
        (exact_elbo(model, a, b + h, sign) - exact_elbo(model, a, b - h, sign)) / (2 * h),
    ]
    found = np.array(found)
    return np.abs(found.mean(axis=0) - exact) / (found.std(axis=0) / n**0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(0.6, 1.2), (5.0, 6.0)])
def test_the_elbo_and_its_gradient_by_quadrature(a, b):
    """z < 4.5 of three; the faults: the printed sign, and another shape."""
    model = one_loading()
    assert elbo_z(model, a, b).max() < 4.5
    assert elbo_z(model, a, b, sign=1.0).max() > LIMIT
    assert abs(exact_elbo(model, a, b) - exact_elbo(model, 1.3 * a, b)) > 1e-2


@pytest.mark.slow
def test_a_fit_of_one_loading_finds_the_best_q():
    """The mean of w under the best gamma is the posterior's, within 3 %; with twice the noise it is another."""
    model = one_loading()
    chain = ModelChain(model, FactorsGamma(), Generator(SFC64(2)))
    for _ in range(3000):
        chain.advance()
    w = np.linspace(1e-4, 3, 20_000)

    def posterior_mean(noise):
        log_p = [stats.norm.logpdf(model.y[:, 0], 0, np.sqrt(x * x + noise)).sum() for x in w[::20]]
        p = np.exp(np.interp(w, w[::20], log_p) - max(log_p)) * stats.gamma.pdf(w, 0.1)
        return (w * p).sum() / p.sum()

    mean = chain.method.found(model, chain.state).loadings[0, 0]
    assert mean == pytest.approx(posterior_mean(0.4), rel=0.03)
    assert mean != pytest.approx(posterior_mean(0.8), rel=0.06)


# --- Gibbs: the joint law ---------------------------------------------------------------------------------------------

PRIORS = np.array([[3.0, 2.0], [2.0, 2.0], [2.0, 2.0]])
ROWS, COLUMNS = 4, 3


def from_the_prior(rng):
    """Loadings by the buffet, factors, and scales (1/σ², λ, α)."""
    scales = rng.gamma(PRIORS[:, 0], 1 / PRIORS[:, 1])
    z = np.zeros((COLUMNS, 0))
    for d in range(COLUMNS):
        old = rng.random(z.shape[1]) * (d + 1) < z.sum(axis=0)
        new = rng.poisson(scales[2] / (d + 1))
        z = np.hstack([z, np.zeros((COLUMNS, new))])
        z[d] = np.concatenate([old, np.ones(new)])
    g = z * rng.standard_normal(z.shape) / np.sqrt(scales[1])
    return g, rng.standard_normal((z.shape[1], ROWS)), scales


def numbers_of(g, scales, y):
    """Nine bounded numbers, which do not depend on the factors' order."""
    shared = (np.count_nonzero(g, axis=0) > 1).sum()
    several = [g.shape[1], np.count_nonzero(g), shared, (g**2).sum(), *scales, np.abs(y[0]).sum()]
    covariance = g @ g.T
    return [*(x / (1 + x) for x in several), np.tanh(covariance[0, 1] * y[0, 0] * y[1, 0])]


def data_of(g, x, scales, rng):
    return g @ x + rng.standard_normal((COLUMNS, ROWS)) / np.sqrt(scales[0])


@cache
def independent():
    """The numbers of 20,000 draws of everything."""
    rng, out = np.random.default_rng(1), []
    for _ in range(20_000):
        g, x, scales = from_the_prior(rng)
        out.append(numbers_of(g, scales, data_of(g, x, scales, rng)))
    return np.array(out)


def joint_z(fault="", cycles=16_000):
    """The largest difference between the two ways to draw everything, in standard errors."""
    jit.prepare(FactorsGibbs.compiled)
    rng = Generator(SFC64(2))
    g, x, scales = from_the_prior(np.random.default_rng(4))
    loadings, slots, used = np.zeros((COLUMNS, 60)), np.zeros((60, ROWS)), np.array([g.shape[1]])
    loadings[:, : used[0]], slots[: used[0]] = g, x
    priors = PRIORS * ([1.0, 1.2] if fault == "another prior" else [1.0, 1.0])
    found = []
    for _ in range(cycles):
        k = used[0]
        y = data_of(loadings[:, :k], slots[:k], scales, rng)
        given = scales.copy()
        if fault == "twice the mass":
            given[2] *= 2
        gibbs.sweep(rng, y * (0.8 if fault == "other data" else 1.0), loadings, slots, used, given, priors, True)
        scales[:] = given
        found.append(numbers_of(loadings[:, : used[0]], scales, y))
    right, found = independent(), np.array(found)
    means = found.reshape(40, -1, found.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / 40 + right.var(axis=0) / len(right))
    return np.abs((means.mean(axis=0) - right.mean(axis=0)) / error).max()


@pytest.mark.slow
def test_the_joint_law():
    """z < 4: of 9 numbers beyond it by chance once in 400 (Student, 39 degrees), the seeds are fixed."""
    assert joint_z() < 4


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["twice the mass", "other data", "another prior"])
def test_faults_break_the_joint_law(fault):
    assert joint_z(fault, cycles=4000) > LIMIT


# --- Gibbs: enumeration of one column, whose factors are all its own --------------------------------------------------


def numbers_by_enumeration(y, alpha, slab, noise, most=25):
    """E K and E Σg² of one column: K ~ Poisson(α), Σg² ~ χ²_K/λ, y_n ~ N(0, σ² + Σg²), summed over K."""
    v = np.linspace(1e-6, 60, 60_001) / slab
    log_l = -len(y) / 2 * np.log(noise + v) - (y**2).sum() / 2 / (noise + v)
    top = log_l.max()
    at_0 = np.exp(-len(y) / 2 * np.log(noise) - (y**2).sum() / 2 / noise - top)
    whole, first, size = stats.poisson.pmf(0, alpha) * at_0, 0.0, 0.0
    for k in range(1, most):
        # χ²₁ has a pole at 0: mass of cells.
        mass = np.diff(stats.chi2.cdf(np.append(v * slab, v[-1] * slab + 1e-3), k))
        p = stats.poisson.pmf(k, alpha) * np.exp(log_l - top) * mass
        whole, first, size = whole + p.sum(), first + k * p.sum(), size + (v * p).sum()
    return np.array([first, size]) / whole


@pytest.mark.slow
def test_one_column_has_its_enumerated_factors():
    """z < 5 of E K and E Σg²; the fault: a prior with half as many again."""
    jit.prepare(FactorsGibbs.compiled)
    y, (alpha, slab, noise) = np.array([[2.0, -1.5, 0.4, 1.1]]), (1.5, 0.8, 0.5)
    # So sure a prior holds λ and α where they are.
    priors = np.array([[1.0, 1.0], [1e9 * slab, 1e9], [1e9 * alpha, 1e9]])
    loadings, x, used = np.zeros((1, 40)), np.zeros((40, 4)), np.array([0])
    scales, rng, found = np.array([1 / noise, slab, alpha]), Generator(SFC64(5)), []
    for _ in range(40_000):
        gibbs.sweep(rng, y, loadings, x, used, scales, priors, False)
        found.append([used[0], (loadings**2).sum()])
    means = np.array(found).reshape(40, -1, 2).mean(axis=1)
    error = means.std(axis=0, ddof=1) / 40**0.5
    assert (np.abs(means.mean(axis=0) - numbers_by_enumeration(y[0], alpha, slab, noise)) < LIMIT * error).all()
    assert (np.abs(means.mean(axis=0) - numbers_by_enumeration(y[0], 1.5 * alpha, slab, noise)) > LIMIT * error).all()


def test_there_are_never_more_factors_than_slots():
    jit.prepare(FactorsGibbs.compiled)
    loadings, x, used, scales = np.zeros((3, 4)), np.zeros((4, 5)), np.array([0]), np.array([2.0, 1.0, 6.0])
    rng, y = Generator(SFC64(1)), np.random.default_rng(1).standard_normal((3, 5))
    seen = set()
    for _ in range(300):
        scales[2] = 6.0
        gibbs.sweep(rng, y, loadings, x, used, scales, PRIORS, True)
        seen.add(int(used[0]))
        assert not loadings[:, used[0] :].any() and (loadings[:, : used[0]] != 0).any(axis=0).all()
    assert max(seen) == 4


# --- Amari error, data, scores ----------------------------------------------------------------------------------------


def test_the_amari_error():
    """0 of the same loadings in another order, sign and scale; about .36 of random ones; more where one is missing."""
    rng = np.random.default_rng(1)
    known = made(10, 3).loadings
    turned = known[:, rng.permutation(10)] * rng.choice([-3.0, 0.2], 10)
    assert amari(turned, known) == pytest.approx(0, abs=1e-12)
    assert amari(np.hstack([turned, 1e-9 * rng.random((50, 5))]), known) == pytest.approx(0, abs=1e-12)
    missing = amari(turned[:, 1:], known)
    assert 0.02 < missing < 0.2
    random = [amari(rng.standard_normal((50, 10)), known) for _ in range(20)]
    assert np.mean(random) == pytest.approx(0.36, abs=0.03)
    assert amari(np.zeros((50, 0)), known) == pytest.approx(1.0)


def test_made_rows_have_the_covariance_they_are_made_with():
    """1,275 covariances of 10,000 rows, each within 5 standard errors √((c_ii c_jj + c_ij²)/n). A fifth of W is on."""
    found = made(10_000, 1)
    covariance = found.loadings @ found.loadings.T + 0.1 * np.eye(50)
    diagonal = np.diag(covariance)
    error = np.sqrt((np.outer(diagonal, diagonal) + covariance**2) / 10_000)
    assert (np.abs(found.y.T @ found.y / 10_000 - covariance) / error).max() < LIMIT
    assert (np.abs(found.y.T @ found.y / 10_000 - covariance - 0.02 * np.eye(50)) / error).max() > LIMIT
    assert abs((found.loadings > 0).mean() - 0.2) < LIMIT * np.sqrt(0.16 / 500)
    assert found.loadings.min() >= 0 and found.loadings.max() < 1
    few = made(100, 1)
    np.testing.assert_array_equal(few.y, found.y[:100])
    np.testing.assert_array_equal(few.held, found.held)
    assert not np.array_equal(made(100, 2).loadings, few.loadings)


@for_each(("data", "columns", "held"), [("wine", 13, 36), ("digits", 61, 359), ("made", 50, MADE_HELD)])
def test_built_in_data(data, columns, held):
    model = Factors(data=data, rows=10_000)
    assert (model.n_columns, model.n_held) == (columns, held)
    assert model.scatter == pytest.approx(model.y.T @ model.y)
    if data != "made":
        assert model.n_data == {"wine": 142, "digits": 1438}[data]
        assert model.total_variance == pytest.approx(columns)
        assert np.ptp(model.y.std(axis=0)) < 1e-9 or data == "digits"
        assert Factors(data=data, rows=30).n_data == 30


def test_the_score_is_the_mean_log_density():
    model = Factors(rows=20)
    covariance = model.truth @ model.truth.T + 0.1 * np.eye(50)
    held = made(20, 1).held
    right = stats.multivariate_normal.logpdf(held, np.zeros(50), covariance).mean()
    assert model.score(covariance) == pytest.approx(right)
    assert model.score(1.1 * covariance) < right
    assert model.score(np.ones((50, 50))) == -np.inf


def test_somebodys_own_rows():
    lines = ["a,b,c,kind", *(f"{k},{k * k % 7},{-k},{'x' if k % 2 else 'y'}" for k in range(12))]
    rows = read({"x.csv": "\n".join(lines).encode()})
    assert rows.names == ("a", "b", "c") and rows.y.shape == (12, 3)
    assert Factors(rows, data="uploaded").n_data == 10
    with pytest.raises(FileError, match="line 4"):
        read({"x.csv": "\n".join([*lines[:3], "5,x,1,y", *lines[4:]]).encode()})
    with pytest.raises(SpecError, match="no file has been uploaded"):
        Factors(data="uploaded")
    with pytest.raises(SpecError, match="is not known"):
        Factors(data="wine", noise="known")


# --- the comparison ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sparse_pca_is_the_same_of_fewer_rows_with_the_same_scatter():
    """R of Y = QR for Y; the fault, half of the rows, is seen. Of known loadings without noise it finds all."""
    model = Factors(rows=100)
    loadings, error = baselines.sparse_pca(model, 10)
    assert loadings.shape == (50, 10) and error == amari(loadings, model.truth) < 0.1
    other = Factors(rows=100)
    other.y = np.linalg.cholesky(model.scatter).T
    # As many rows as the penalty's √N counts.
    other.y = np.vstack([other.y, np.zeros((50, 50))])
    again, _ = baselines.sparse_pca(other, 10)
    assert amari(again, loadings) < 0.01
    other.y = model.y[:50]
    assert amari(baselines.sparse_pca(other, 10)[0], loadings) > 0.01


@pytest.mark.slow
def test_the_covariance_of_sparse_pca_is_that_of_what_it_fits():
    """The traces: what is fitted and what is left make up the rows. Two factors of two are found: the log density is
    within .2 of that of the covariance that the rows were made with. Fault: one factor.
    """
    rng = np.random.default_rng(3)
    w = np.kron(np.eye(2), np.ones((6, 1)))
    y = rng.standard_normal((500, 2)) @ w.T + 0.5 * rng.standard_normal((500, 12))
    rows = Rows(tuple(f"c{k}" for k in range(12)), y, alike=True)
    model = Factors(rows, data="uploaded", rows=400, n_factors=2)
    unit = float((y**2).mean())
    best = model.score((w @ w.T + 0.25 * np.eye(12)) / unit)
    found = baselines.sparse_pca_covariance(model)
    assert abs(model.score(found) - best) < 0.2
    assert (
        best - model.score(baselines.sparse_pca_covariance(Factors(rows, data="uploaded", rows=400, n_factors=1))) > 0.5
    )


def test_the_comparison_refuses_what_is_not_allowed(capsys, tmp_path):
    for arguments in (["--seeds", "0"], ["--most-rows", "9"], [str(tmp_path / "none.csv")]):
        assert compare.main(arguments) == 2
    errors = capsys.readouterr().err
    for part in ("seeds = 0: allowed is a whole number from 1 to 100", "most_rows = 9", "no such file"):
        assert part in errors


@pytest.mark.slow
def test_the_comparison_of_a_file(tmp_path):
    """Fewer rows than columns have no density of their own; what is there twice is printed once."""
    rng = np.random.default_rng(1)
    y = rng.standard_normal((40, 2)) @ rng.random((2, 30)) + 0.3 * rng.standard_normal((40, 30))
    rows = Rows(tuple(f"c{k}" for k in range(30)), y)
    found = compare.real("uploaded", rows, (20, 1000, 2000), (1, 2), 20, lambda _: None)
    few, all_of_them = (found[n].scores for n in (20, 32))
    assert list(found) == [20, 32] and few.shape == (2, 5)
    assert np.isinf(few[:, 4]).all() and np.isfinite(all_of_them).all()
    model = Factors(rows, data="uploaded", rows=20, split_seed=2)
    assert few[1, 3] == pytest.approx(-model.score(model.shrunk))
    # The last look is the end, and time does not go back.
    paths = found[20].paths
    assert paths.shape == (2, 2, compare.LOOKS, 2) and (paths[:, :, -1, 1] == few[:, :2]).all()
    assert (np.diff(paths[..., 0]) >= 0).all() and (paths[:, :, -1, 0] == found[20].seconds[:, :2]).all()
    text = compare.as_text("t", tuple("abcde"), {20: few, 32: all_of_them}, (2,) * 5)
    assert "no density" in text.splitlines()[2] and "no density" not in text.splitlines()[3]


def test_the_expected_covariance_is_that_of_draws():
    """Eq (20), by 20,000 draws of q: within 5 standard errors; without the variances it is another."""
    model = small()
    for cls in (FactorsGamma, FactorsNorm):
        chain = ModelChain(model, cls(), Generator(SFC64(2)))
        for _ in range(20):
            chain.advance()
        rng, state, n = np.random.default_rng(1), chain.state, 20_000
        if cls is FactorsGamma:
            shape, rate = np.logaddexp(0, state.theta)
            x = rng.gamma(shape, 1 / rate, (n, len(shape)))
        else:
            spread = np.logaddexp(0, state.raw_spread)
            x = np.logaddexp(0, state.centre + spread * rng.standard_normal((n, len(spread))))
        w = x[:, :12].reshape(n, 4, 3)
        found = chain.method.covariance(model, state) - np.eye(4) / x[:, -1].mean()
        drawn = w @ w.transpose(0, 2, 1)
        error = drawn.std(axis=0) / n**0.5
        assert (np.abs(drawn.mean(axis=0) - found) < LIMIT * error + 0.02 * np.eye(4)).all()
        means = w.mean(axis=0) @ w.mean(axis=0).T
        assert np.abs(np.diag(drawn.mean(axis=0) - means)).min() > 0.05
