"""Sparse regression: its Gibbs samplers against the joint law, against quadrature, and against plain Python."""

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import integrate, special, stats

from sgmcmc_lab.lessons.papers import lasso_paths as paths
from sgmcmc_lab.lessons.papers import smolyakov_2018_figures_3_9_10 as scan
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.sparse import Sparse, minibatch_gibbs, textbook
from sgmcmc_lab.samplers.models.sparse.conditionals import sweeps
from sgmcmc_lab.samplers.models.sparse.minibatch_gibbs import sizes_of
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.own import Table
from tests.helpers import checks_methods
from tests.helpers.cases import for_each

KEYS = samplers_of("sparse")
KINDS = ["probit", "lasso"]
LIMIT = 5.0
"""Standard errors, of 40 batches: Student's t with 39 degrees of freedom is beyond 5 once in 80,000."""


def small(kind, n=6, d=2, shrinkage=1.5, seed=2):
    """A few made-up rows."""
    rng = np.random.default_rng(seed)
    x, noise = rng.standard_normal((n, d)), rng.standard_normal(n)
    y = x @ np.linspace(1.0, -0.5, d) + noise
    names = tuple("abcdefgh"[:d])
    table = Table(names, x, "y", np.sign(y), ("no", "yes")) if kind == "probit" else Table(names, x, "y", y)
    return Sparse(table, data="uploaded", shrinkage=shrinkage)


def method(key):
    return METHODS[key](**({"batch_size": 1, "cost_ratio": 1.0} if key == "sparse_minibatch" else {}))


# --- Geweke's joint test: unknowns and data, drawn in turn, have the joint law --------------------------------------


def numbers_of(w, precisions, variance, x, z):
    """Nine bounded numbers of each draw of unknowns and data, (draws, 9)."""
    bounded = [
        np.tanh(w),
        w**2 / (1 + w**2),
        1 / (1 + precisions),
        special.expit(np.log(variance))[:, None],
        np.tanh((x @ w[:, :, None])[:, :2, 0] * z[:, :2]),
    ]
    return np.concatenate(bounded, axis=1)


def from_the_prior(model, rng, n):
    """Independent draws of everything."""
    shape, rate = model.noise_prior
    d = model.x.shape[1]
    variance = np.ones(n) if model.probit else rate / rng.standard_gamma(shape, n)
    precisions = 1 / rng.exponential(2 / model.shrinkage**2, (n, d))
    w = rng.standard_normal((n, d)) * np.sqrt(variance[:, None] / precisions)
    return w, precisions, variance, *data_given(model.x, w, variance, model.probit, rng)


def data_given(x, w, variance, probit, rng):
    """x and z of each draw of w (n, d): of a probit lasso both times the sign of z."""
    z = w @ x.T + np.sqrt(variance)[:, None] * rng.standard_normal((len(w), len(x)))
    sign = np.sign(z) if probit else np.ones_like(z)
    return sign[:, :, None] * x, sign * z


def joint_z(kind, key, fault=lambda model, state: None, cycles=6000, shrinkage=1.5, n_sweeps=2):
    """The largest difference between the two ways to draw everything, in standard errors."""
    model, chosen = small(kind, shrinkage=shrinkage), method(key)
    model.noise_prior[:] = 3.0, 2.0
    jit.prepare(chosen.compiled)
    plain = model.x.copy()
    rng = Generator(SFC64(6))
    right = numbers_of(*from_the_prior(model, np.random.default_rng(1), 100_000))
    state = chosen.start(model, rng)
    w, precisions, variance, x, z = (part[0] for part in from_the_prior(model, np.random.default_rng(3), 1))
    state.w[:], state.precisions[:], state.scales[0] = w, precisions, variance
    found = []
    for _ in range(cycles):
        x, z = (part[0] for part in data_given(plain, state.w[None], state.scales[:1], model.probit, rng))
        model.x[:], state.z[:] = x, z
        state.linear[:], state.scales[1] = x.T @ z, z @ z
        fault(model, state)
        chosen.sweep(model, state, 1 if key == "sparse_minibatch" else model.n_data, n_sweeps, rng)
        found.append((state.w.copy(), state.precisions.copy(), state.scales[0], x, state.z.copy()))
    drawn = numbers_of(*map(np.array, zip(*found, strict=True)))
    means = drawn.reshape(40, -1, drawn.shape[1]).mean(axis=1)
    error = np.sqrt(means.var(axis=0, ddof=1) / 40 + right.var(axis=0) / len(right))
    # Of a probit lasso σ is 1.
    return float(np.abs((means.mean(axis=0) - right.mean(axis=0)) / np.maximum(error, 1e-12)).max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", KEYS)
def test_the_joint_law(key, kind):
    """z < 4: of 9 numbers beyond it by chance once in 400 (Student, 39 degrees), the seeds are fixed."""
    assert joint_z(kind, key) < 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_that_is_not_moved_on_breaks_the_joint_law(kind):
    def stale(model, state):
        state.linear *= 0.8

    assert joint_z(kind, "sparse_minibatch", stale, cycles=2000) > LIMIT


@pytest.mark.slow
def test_the_printed_scales_break_the_joint_law():
    """Eq (17) has τ_j for τ_j² on the diagonal of D."""

    def printed(model, state):
        state.precisions[:] = np.sqrt(state.precisions)

    assert joint_z("probit", "sparse_gibbs", printed, shrinkage=0.3, n_sweeps=1) > LIMIT


@pytest.mark.slow
def test_the_printed_shape_breaks_the_joint_law():
    """Eq (20) has (n − 1)/2 for n/2, which is right only with an intercept."""

    def printed(model, state):
        model.noise_prior[0] = 2.5

    assert joint_z("lasso", "sparse_gibbs", printed) > LIMIT


# --- one coefficient: quadrature --------------------------------------------------------------------------------------


def by_quadrature(model):
    """E w, E w² and E |w| of a model with one coefficient."""
    x, y, n = model.x[:, 0], model.y, len(model.x)
    if model.probit:

        def density(w):
            return np.exp(special.log_ndtr(x * w).sum() - model.shrinkage * abs(w))
    else:

        def density(w):
            loss, size = ((y - x * w) ** 2).sum(), model.shrinkage * abs(w)
            # Over σ: σ^{−n−2} e^{−loss/2σ² − λ|w|/σ}, where p(σ²)dσ² ∝ dσ/σ and the Laplace prior has λ/2σ.
            return integrate.quad(lambda v: v**n * np.exp(-loss * v * v / 2 - size * v), 0, 12)[0]

    def mean(f):
        return sum(integrate.quad(lambda w: f(w) * density(w), a, b, epsrel=1e-8)[0] for a, b in ((-9, 0), (0, 9)))

    whole = mean(lambda w: 1.0)
    return np.array([mean(f) / whole for f in (lambda w: w, lambda w: w * w, abs)])


@pytest.fixture(scope="module", params=KINDS)
def one(request):
    model = small(request.param, n=6, d=1)
    return model, by_quadrature(model)


def worst(model, chosen, exact, n=60_000):
    chain = ModelChain(model, chosen, Generator(SFC64(4)))
    size = min(model.n_data, 2) if chosen.chooses_batch_size else model.n_data
    w = chosen.sweep(model, chain.state, size, n, chain.rng)[:, 0]
    means = np.stack([w, w * w, np.abs(w)]).reshape(3, 40, -1).mean(axis=2)
    return float((np.abs(means.mean(axis=1) - exact) / (means.std(axis=1, ddof=1) / np.sqrt(40))).max())


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_one_coefficient_has_its_exact_posterior(key, one):
    """E w, E w², E |w|, with minibatches of two z of a probit lasso; the fault: a prior that is a tenth stronger."""
    model, exact = one
    assert worst(model, method(key), exact) < LIMIT
    wrong = Sparse(model.uploaded, data="uploaded", shrinkage=1.1 * model.shrinkage)
    assert worst(wrong, method(key), exact, n=200_000) > LIMIT


@pytest.mark.slow
def test_the_reference_is_the_exact_posterior(one):
    model, exact = one
    reference = model.reference
    assert abs(reference.mean[0] - exact[0]) < 0.02 * exact[1] ** 0.5
    assert reference.variance[0] + reference.mean[0] ** 2 == pytest.approx(exact[1], rel=0.02)
    assert np.abs(reference.draws[:, 0]).mean() == pytest.approx(exact[2], rel=0.02)
    stronger = Sparse(model.uploaded, data="uploaded", shrinkage=1.7)
    assert by_quadrature(stronger)[2] != pytest.approx(exact[2], rel=0.02)


# --- parts, and plain Python ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
def test_a_step_of_a_lasso_is_its_formula(key, monkeypatch):
    """As of the probit lasso, which is tested with all methods."""
    monkeypatch.setitem(checks_methods.SMALL, "sparse", lambda: small("lasso", n=9, d=5))
    checks_methods.check_step(key)


@for_each("mean", [2.0, 0.0, -0.44, -0.46, -7.0])
def test_a_tail_is_the_normals(mean):
    rng = np.random.default_rng(1)
    draws = [textbook.above_zero(rng, mean) for _ in range(4000)]
    assert stats.kstest(draws, stats.truncnorm(-mean, np.inf, loc=mean).cdf).pvalue > 1e-4
    assert stats.kstest(draws, stats.truncnorm(-mean, np.inf, loc=mean + 0.15).cdf).pvalue < 1e-4


@for_each("mean", [0.2, 3.0, 1e12])
def test_inverse_gaussian_draws(mean):
    """Also where the mean is so large that the difference in the usual form has no digit left."""
    rng = np.random.default_rng(1)
    draws = np.array([textbook.inverse_gaussian(rng, mean, 2.0) for _ in range(4000)])
    right = stats.invgauss(mean / 2, scale=2) if mean < 1e6 else stats.levy(scale=2.0)
    assert stats.kstest(draws, right.cdf).pvalue > 1e-4
    y = rng.standard_normal(4000) ** 2
    usual = mean + mean * (mean * y - np.sqrt(4 * mean * 2.0 * y + (mean * y) ** 2)) / (2 * 2.0)
    assert (stats.kstest(usual, right.cdf).pvalue < 1e-4) or mean < 1e6


def test_a_coefficient_at_0_is_no_end():
    """w = 0 has an infinite mean of 1/τ²; the first sweep of every method begins there."""
    model = small("lasso", n=9, d=5)
    chain = ModelChain(model, method("sparse_gibbs"), Generator(SFC64(1)))
    assert not chain.state.w.any()
    chain.advance()
    assert np.isfinite(chain.state.w).all() and (chain.state.precisions > 0).all()


def test_a_step_costs_as_much_as_a_sweep():
    model = small("probit", n=100, d=4)
    for size, n in ((1, 40), (50, 3), (100, 2)):
        chosen = METHODS["sparse_minibatch"](batch_size=size, cost_ratio=2.0)
        assert chosen.sweeps_in_step(model, size) == max(round(102 / (size + 2)), 1) != n + 5
        chain = ModelChain(model, chosen, Generator(SFC64(1)))
        chain.advance()
        assert chain.data_seen == size * chosen.sweeps_in_step(model, size)


def test_the_trials_are_the_papers_and_the_choice_stays():
    assert sizes_of(1200).tolist() == [1200, 251, 63, 16, 4, 1]
    assert sizes_of(10).tolist() == [10, 4, 1]
    model = small("probit", n=64, d=4)
    chosen = METHODS["sparse_minibatch"](trial=100, cost_ratio=4.0)
    chain = ModelChain(model, chosen, Generator(SFC64(1)))
    for _ in range(700):
        chosen.advance(model, chain.state, chain.rng)
    found = chosen.adaptation(model, chain.state)
    assert found.chosen == found.sizes[np.argmin(chain.snapshot()["objective"])]
    taus = list(found.taus)
    chain.advance()
    assert found.taus == taus and chain.data_seen % found.chosen == 0


def test_draws_of_one_size_are_never_counted_for_the_next(monkeypatch):
    """A step that a trial ends in has more sweeps of the old size."""
    seen = []
    monkeypatch.setattr(
        minibatch_gibbs.Adaptation,
        "record",
        lambda self, value, at: seen.append((self.size, value)) or self.taus.append(1.0),
    )
    model = small("probit", n=64, d=4)
    chosen = METHODS["sparse_minibatch"](cost_ratio=1.0)
    chain = ModelChain(model, chosen, Generator(SFC64(1)))
    for _ in range(3):
        chain.advance()
    assert [size for size, _ in seen] == [64, 63, 16]


# --- data -------------------------------------------------------------------------------------------------------------


def test_a_table_of_ones_own():
    rows = "\n".join(f"{k},{k * k % 7},{k % 5},{k % 3},{2 * k}" for k in range(20))
    table = Sparse.read({"t.csv": f"a,b,c,d,y\n{rows}".encode()})
    model = Sparse(table, data="uploaded")
    assert not model.probit and model.n_data == 4
    np.testing.assert_allclose(model.x.std(axis=0), 1)
    np.testing.assert_allclose(np.append(model.x.mean(axis=0), model.y.mean()), 0, atol=1e-12)
    with pytest.raises(FileError, match=r"has 2 columns.*allowed are 4 to 98"):
        Sparse.read({"t.csv": ("a,b,y\n" + "\n".join(f"{k},{k % 3},{k % 5}" for k in range(20))).encode()})
    with pytest.raises(SpecError, match="no file has been uploaded"):
        Sparse(data="uploaded")


def test_the_built_in_data_are_those_of_the_targets():
    from sgmcmc_lab.samplers.targets import TARGETS

    made, lasso = Sparse(), Sparse(data="diabetes")
    assert np.array_equal(made.x, TARGETS["probit_lasso"](items=1200).rows)
    assert np.array_equal(np.column_stack([lasso.x, lasso.y]), TARGETS["lasso"]().observations)
    assert not np.array_equal(Sparse(strength=0.5).x, made.x)
    assert (made.n_data, lasso.n_data) == (1200, 10)


def test_the_compiled_sweep_is_the_only_one():
    assert all(METHODS[key].compiled == (sweeps,) for key in KEYS)


# --- commands ---------------------------------------------------------------------------------------------------------


def test_paths_have_scikit_learns_lasso_beside_them():
    """α = λσ/N. With a weak prior the medians are least squares; with a strong one the band lies around 0."""
    from sklearn.linear_model import Lasso

    model = Sparse(data="diabetes")
    weak, strong = paths.path(model, (0.1, 100.0), sweeps=4000)
    for point in (weak, strong):
        alpha = point.shrinkage * point.sd / len(model.x)
        right, wrong = (
            Lasso(alpha=a, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(model.x, model.y).coef_
            for a in (alpha, 2 * alpha)
        )
        np.testing.assert_allclose(point.lasso, right, atol=1e-6)
        assert np.abs(point.lasso - wrong).max() > 1e-5
    least = np.linalg.lstsq(model.x, model.y, rcond=None)[0]
    assert np.abs(weak.quantiles[1] - least).max() < 0.1 < np.abs(strong.quantiles[1] - least).max()
    assert (weak.quantiles[0] < weak.quantiles[2]).all()
    gone = strong.lasso == 0
    assert 0 < gone.sum() < 10 and (strong.quantiles[0][gone] < 0).all() and (strong.quantiles[2][gone] > 0).all()
    assert "lasso: 6 of 10" in paths.as_text(model, [strong])
    with pytest.raises(SpecError, match="paths are of a lasso"):
        paths.path(Sparse())


def test_a_comparison_is_of_the_chosen_size_one_and_all(monkeypatch):
    """Costs of sweeps as they are counted here, not measured: m + 8. The errors fall as draws become more."""
    monkeypatch.setattr(scan, "seconds_of", lambda model, size, cost: 1e-6 * (size + 8))
    model = small("probit", n=100, d=2, shrinkage=12.0)
    found = scan.compare(model, trial=3000, chains=12, sweeps=200)
    assert found.trials.weights == pytest.approx((1e-6, 8e-6), rel=1e-6)
    chosen = found.trials.sizes[np.argmin(found.trials.costs)]
    assert {row.size for row in found.rows} == {chosen, 1, 100} and found.rows[0].size == chosen
    for row in found.rows:
        assert abs(row.sweeps - 200 * 108 / (row.size + 8)) <= 1
        assert row.errors[:, -1].mean() < row.errors[:, 0].mean()
        assert row.rhat[-1] < 1.2
    ratio, error = found.rows[1].against(found.rows[0])
    assert ratio == pytest.approx(found.rows[1].errors[:, -1].mean() / found.rows[0].errors[:, -1].mean()) and error > 0
    text = scan.as_text("small", model, found)
    assert "chosen" in text and "w_θ/w_z = 8" in text
