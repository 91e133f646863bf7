"""Topics on a sphere: Bessel functions, slopes by differences, quadrature, Geweke's joint test, data."""

from decimal import Decimal, getcontext
from math import lgamma, log

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import special

from sgmcmc_lab.lessons.papers import liu_2016_figure_5 as compare
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.spherical import Spherical
from sgmcmc_lab.samplers.models.spherical.bessel import log_bessel, log_c, mean_length
from sgmcmc_lab.samplers.models.spherical.data import known_topics, tf_idf
from sgmcmc_lab.samplers.models.spherical.proportions import COMPILED, packed
from sgmcmc_lab.samplers.models.spherical.proportions import gradient as theta_gradient
from sgmcmc_lab.samplers.models.spherical.proportions import potential as theta_potential
from sgmcmc_lab.samplers.models.spherical.variational import bound, slope_of_theta, slope_of_topics
from sgmcmc_lab.samplers.models.topics.corpus import read_upload
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

ANGLES = np.array([0.3, 1.4, 2.2])


def unit(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def tiny(documents=None, kappa=5.0, sigma=2.0, kappa0=1.5):
    """Two topics and three documents, on the circle unless others are given."""
    model = Spherical(n_topics=2, alpha=1.0)
    model.training = unit(ANGLES) if documents is None else documents
    model.held = model.training[:1]
    model.n_words = model.training.shape[1]
    model.mean = np.eye(model.n_words)[0]
    model.k, model.s, model.k0 = kappa, sigma, kappa0
    model.log_constant = log_c(model.n_words, kappa)
    return model


# Bessel functions


def by_series(order, x):
    """log I_ν(x) in 60 digits."""
    getcontext().prec = 60
    term = total = Decimal(1)
    k = 0
    while term > total * Decimal(10) ** -40:
        k += 1
        term *= Decimal(x) * Decimal(x) / 4 / (k * (Decimal(order) + k))
        total += term
    return order * log(x / 2) - lgamma(order + 1) + float(total.ln())


def leading(order, x):
    """A fault: the large-order expansion without its corrections."""
    root = np.sqrt(1 + (x / order) ** 2)
    return order * (root + np.log(x / order / (1 + root))) - np.log(2 * np.pi * order * root) / 2


@for_each(
    ("order", "x"),
    [
        (0.0, 3.0),
        (0.5, 0.3),
        (29.0, 1e-12),
        (30.5, 1e-9),
        (50.0, 1e-5),
        (400.0, 2.0),
        (499.0, 3000.0),
        (2499.0, 10.0),
        (2499.0, 3e4),
    ],
)
def test_log_bessel(order, x):
    """Against the series, for words up to 5000. Faults: no corrections of the expansion; SciPy's own, which is 0."""
    exact = by_series(order, x)
    assert log_bessel(order, x) == pytest.approx(exact, rel=1e-12, abs=1e-10)
    if special.ive(order, x) == 0 and order > 30:
        assert abs(leading(order, x) - exact) > 1e-5


def test_the_constant_and_the_mean_length():
    """On S² both have a closed form; A is minus the slope of log c_V, here with 5000 words."""
    assert log_c(3, 2.5) == pytest.approx(np.log(2.5 / (4 * np.pi * np.sinh(2.5))))
    assert mean_length(3, 2.5) == pytest.approx(1 / np.tanh(2.5) - 1 / 2.5)
    slope = (log_c(5000, 3e4 + 1) - log_c(5000, 3e4 - 1)) / 2
    assert mean_length(5000, 3e4) == pytest.approx(-slope, rel=1e-8)
    assert abs(mean_length(5000, 3e4) - mean_length(4998, 3e4)) > 1e-5


# Slopes


@pytest.fixture(scope="module")
def known():
    return Spherical(held_out=0.5)


def point(model, seed=1, n=6):
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal((model.n_topics, model.n_words)) + 1
    return beta, rng.dirichlet(np.ones(model.n_topics), size=(2, n)), rng.dirichlet(np.ones(model.n_topics), size=n) * 9


def difference(function, x, at, step=1e-5):
    up, down = x.copy(), x.copy()
    up[at] += step
    down[at] -= step
    return (function(up) - function(down)) / (2 * step)


def test_the_slope_of_the_energy(known):
    """U of eqs (9) and (10), by differences at ten places. Fault: log c_V with the sign that the density has."""
    beta, theta, _ = point(known)
    documents = known.training[:6]

    def energy(b):
        return known.prior_energy(b) - known.k * known.cosines(b, documents, theta).sum() / 2

    slope = known.prior_gradient(beta) + known.data_gradient(beta, documents, theta)
    wrong = slope - 2 * known.prior_gradient(beta)
    places = [(k % 4, 4 * k) for k in range(10)]
    exact = np.array([difference(energy, beta, at) for at in places])
    np.testing.assert_allclose([slope[at] for at in places], exact, rtol=1e-6, atol=1e-5)
    assert np.abs(np.array([wrong[at] for at in places]) - exact).max() > 1


def test_the_slope_of_a_documents_energy(known):
    """U(y) on the simplex. Fault: the exponent of Dir(α) itself, without the factor of the square root."""
    jit.prepare(COMPILED)
    beta, theta, _ = point(known)
    params, y = packed(beta, known.training[:6], 3.0, 0.7), np.sqrt(theta[0])

    def energy(x, c):
        out = np.empty(len(x))
        theta_potential(x, out, params)
        return out[c]

    found = np.empty_like(y)
    theta_gradient(y, found, params)
    exact = np.array([[difference(lambda x, c=c: energy(x, c), y, (c, k)) for k in range(4)] for c in range(6)])
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6)
    assert np.abs(found - 2 * (0.7 - 1) * -1 / y + (2 * 0.7 - 1) / y - exact).max() > 0.1
    by_hand = -3.0 * known.cosines(beta, known.training[:6], y**2) - 0.4 * np.log(y).sum(axis=1)
    np.testing.assert_allclose([energy(y, c) for c in range(6)], by_hand)


def test_the_slopes_of_the_bound(known):
    """In the topics and in λ, Fisher's matrix times the natural gradient. Fault: E θθᵀ for the product of the means."""
    beta, _, _ = point(known)
    beta /= np.linalg.norm(beta, axis=1, keepdims=True)
    lam = np.random.default_rng(2).gamma(2.0, 2.0, (known.n_data, 4))
    slope, _ = slope_of_topics(known, beta, known.training, lam, 1.0)
    for at in [(0, 3), (2, 17), (3, 39)]:
        assert slope[at] == pytest.approx(difference(lambda b: bound(known, b, lam), beta, at), rel=1e-5)
    fit = slope_of_theta(known, beta, known.training, lam)
    fisher = np.array([np.diag(special.polygamma(1, x)) - special.polygamma(1, x.sum()) for x in lam[:5]])
    whole = fit[:5] + np.einsum("dkl,dl->dk", fisher, known.alpha - lam[:5])
    for at in [(0, 0), (1, 2), (4, 3)]:
        exact = difference(lambda x: bound(known, beta, x), lam, at)
        assert whole[at] == pytest.approx(exact, rel=1e-5)
        assert fit[at] != pytest.approx(exact, rel=1e-3)


def test_the_score_is_the_density(known):
    """Against SciPy's density of vMF, averaged over the same θ."""
    from scipy.stats import vonmises_fisher

    beta, _, _ = point(known)
    means = known.scored_theta @ beta
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    exact = np.log(np.mean([np.exp(vonmises_fisher(m, known.k).logpdf(known.held[:3])) for m in means], axis=0))
    np.testing.assert_allclose(known.log_density(beta)[:3], exact, rtol=1e-9)


# Quadrature

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def numbers(beta):
    """Four numbers of the topics that do not depend on their labels, (..., 4); beta (..., 2, 2)."""
    mean, apart = beta.mean(axis=-2), (beta[..., 0, :] * beta[..., 1, :]).sum(axis=-1)
    product = beta[..., 0, 1] * beta[..., 1, 1]
    return np.stack([mean[..., 0], mean[..., 1], apart, product], axis=-1)


@pytest.fixture(scope="module")
def exact():
    """The posterior means of the numbers, by quadrature over two angles and over each document's θ."""
    grid = np.linspace(-np.pi, np.pi, 160, endpoint=False)
    beta = unit(np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1))
    pull = 1.5 * np.array([1.0, 0.0]) + 2.0 * beta.sum(axis=-2)
    density = special.i0(np.linalg.norm(pull, axis=-1))
    t, weights = (NODES + 1) / 2, WEIGHTS / 2
    means = t[:, None, None, None] * beta[:, :, 0] + (1 - t)[:, None, None, None] * beta[:, :, 1]
    means /= np.linalg.norm(means, axis=-1, keepdims=True)
    for v in unit(ANGLES):
        density = density * np.tensordot(weights, np.exp(5.0 * (means @ v)), axes=1)
    return np.einsum("ij,ijk->k", density, numbers(beta)) / density.sum()


def worst_z(model, method, exact, steps):
    """The largest |mean − exact| in standard errors, of 40 batches of steps, for the four numbers."""
    chain = ModelChain(model, method, Generator(SFC64(8)))
    draws = np.empty((steps, 4))
    for t in range(steps):
        method.advance(model, chain.state, chain.rng)
        draws[t] = numbers(chain.state.beta)
    means = draws.reshape(40, -1, 4).mean(axis=1)
    return float(np.abs((means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / np.sqrt(40))).max())


THETA = {"theta_step": 1.0, "theta_leapfrog": 3}
CASES = {
    "spherical_gibbs": (2400, {"step_size": 0.6, "n_leapfrog": 3, "theta_draws": 1}),
    "spherical_sggmc": (3600, {"step_size": 0.4, "friction": 1.0, "theta_draws": 5}),
    "spherical_gsgnht": (3600, {"step_size": 0.4, "friction": 1.0, "theta_draws": 5}),
    "spherical_gmc": (1200, {"step_size": 0.5, "n_leapfrog": 2, "theta_draws": 20}),
}
"""Steps and settings: all documents in a step, and where there is a bias one that is far below the error."""


class Backwards(Spherical):
    """A fault: log c_V enters the energy with the sign that the density has."""

    key = "backwards"

    def prior_energy(self, beta):
        return -super().prior_energy(beta)

    def prior_gradient(self, beta):
        return -super().prior_gradient(beta)


@pytest.mark.slow
@pytest.mark.parametrize("key", CASES)
def test_the_exact_posterior(key, exact):
    """Four means against quadrature; |t| of 39 degrees of freedom above 5 is a false alarm of 1.2e-5 each, 2e-4 for
    all sixteen. Fault: log c_V with the sign that the density has.
    """
    steps, params = CASES[key]
    method = METHODS[key](**params, **THETA)
    assert worst_z(tiny(), method, exact, steps) < 5
    wrong = tiny()
    wrong.__class__ = Backwards
    assert worst_z(wrong, method, exact, steps // 3 // 40 * 40) > 5


@pytest.mark.slow
@pytest.mark.parametrize("n_words", [2, 3])
def test_the_temperature_is_one(n_words):
    """E‖v‖²/m of gSGNHT up to a tenth, of which a third is the error. Fault: m counts the space around, V for V − 1."""

    def temperature(freedom_of):
        model = tiny(np.eye(3)[:, :n_words] + 0.0) if n_words == 3 else tiny()
        chain = ModelChain(model, METHODS["spherical_gsgnht"](step_size=0.3, friction=1.0), Generator(SFC64(8)))
        total = 0.0
        for _ in range(1500):
            model.n_words = freedom_of
            chain.method.advance(model, chain.state, chain.rng)
            total += (chain.state.velocity**2).sum() / (2 * (n_words - 1)) / 1500
        return total

    assert abs(temperature(n_words) - 1) < 0.1
    assert temperature(n_words + 1) > 1.3


# Geweke's joint test


def on_sphere(rng, means, kappa):
    """vMF on S² around each of the means (n, 3), by the inverse of the CDF of the height."""
    n = len(means)
    height = 1 + np.log(rng.random(n) * -np.expm1(-2 * kappa) + np.exp(-2 * kappa)) / kappa
    across = rng.standard_normal((n, 3))
    across -= (across * means).sum(axis=1, keepdims=True) * means
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return height[:, None] * means + np.sqrt(np.maximum(1 - height**2, 0))[:, None] * across


def documents_of(rng, model, beta, theta):
    means = (theta @ beta).reshape(-1, 3)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return on_sphere(rng, means, model.k).reshape((theta @ beta).shape)


def joint(v, beta, theta):
    """Six numbers of topics, proportions and documents together, (..., 6)."""
    mean = beta.mean(axis=-2)
    own = np.einsum("...k,...kw,...w->...", theta[..., 0, :], beta, v[..., 0, :])
    pairs = [(beta[..., 0, :], beta[..., 1, :]), (v[..., 0, :], v[..., 1, :]), (v.mean(axis=-2), mean)]
    products = [(a * b).sum(axis=-1) for a, b in pairs]
    return np.stack([mean[..., 0], (theta**2).sum(axis=(-2, -1)), own, *products], axis=-1)


def geweke(given, n_prior=20_000, n_steps=2000):
    """The largest |z| of the joint numbers: straight from the prior, and by Gibbs steps and new documents in turn.

    ``given`` is the model that the steps believe in; documents are always made in the same way.
    """
    model, rng = tiny(np.eye(3)), np.random.default_rng(3)
    centres = on_sphere(rng, np.tile(model.mean, (n_prior, 1)), model.k0)
    beta = np.stack([on_sphere(rng, centres, model.s) for _ in range(2)], axis=1)
    theta = rng.dirichlet(np.ones(2), size=(n_prior, 3))
    first = joint(documents_of(rng, model, beta, theta), beta, theta)
    method = METHODS["spherical_gibbs"](**CASES["spherical_gibbs"][1], **THETA)
    chain, second = ModelChain(given, method, Generator(SFC64(5))), np.empty((n_steps, 6))
    for t in range(n_steps):
        method.advance(given, chain.state, chain.rng)
        theta = chain.state.roots**2
        given.training = documents_of(rng, model, chain.state.beta, theta)
        second[t] = joint(given.training, chain.state.beta, theta)
    means = second.reshape(40, -1, 6).mean(axis=1)
    error = np.sqrt(first.var(axis=0) / n_prior + means.var(axis=0, ddof=1) / 40)
    return float(np.abs((first.mean(axis=0) - means.mean(axis=0)) / error).max())


@pytest.mark.slow
def test_gewekes_joint_test():
    """Six numbers; |z| above 4 by chance once in 2,600 seeds. Fault: the steps believe in another σ."""
    assert geweke(tiny(np.eye(3))) < 4
    assert geweke(tiny(np.eye(3), sigma=4.0)) > 4


# Methods


@pytest.mark.slow
def test_topics_stay_on_their_spheres(known):
    """After ten steps of each method. Fault: straight lines leave the sphere."""
    for key in samplers_of("spherical"):
        chain = ModelChain(known, METHODS[key](), Generator(SFC64(1)))
        for _ in range(10):
            chain.advance()
        beta, v = chain.state.beta, chain.state.velocity
        np.testing.assert_allclose((beta**2).sum(axis=1), 1, atol=1e-12)
        np.testing.assert_allclose((beta * v).sum(axis=1), 0, atol=1e-10)
        assert np.abs(((beta + 0.001 * np.ones_like(v)) ** 2).sum(axis=1) - 1).max() > 1e-6
        np.testing.assert_allclose((chain.state.roots**2).sum(axis=1), 1, atol=1e-12)


@pytest.mark.slow
def test_known_topics_are_found():
    """By SGGMC in 1500 steps: each known topic has one with a cosine of .95, and the score is within 1 of that of
    the known topics themselves. Fault: the start.
    """
    model = Spherical()
    chain = ModelChain(model, METHODS["spherical_sggmc"](step_size=0.3, theta_draws=2), Generator(SFC64(1)))
    assert (model.true_topics @ chain.state.beta.T).max(axis=1).min() < 0.9
    for _ in range(1500):
        chain.advance()
    assert (model.true_topics @ chain.state.beta.T).max(axis=1).min() > 0.95
    known_score = -model.log_density(model.true_topics).mean()
    assert abs(chain.scored() - known_score) < 1


@pytest.mark.slow
def test_variational_inference_climbs(known):
    """Every step raises the bound, until nothing is left to gain. Fault: steps down."""
    chain = ModelChain(known, METHODS["spherical_vi"](), Generator(SFC64(1)))
    bounds = []
    for _ in range(40):
        chain.advance()
        bounds.append(bound(known, chain.state.beta, chain.state.extra["lam"]))
    assert (np.diff(bounds) > 0).all()
    before = chain.state.beta.copy()
    chain.advance()
    back = 2 * before - chain.state.beta
    assert bound(known, back, chain.state.extra["lam"]) < bounds[-1]


def test_a_step_that_is_too_long_ends_in_a_sentence(known):
    chain = ModelChain(known, METHODS["spherical_gsgnht"](step_size=5.0, friction=0.01), Generator(SFC64(1)))
    chain.state.extra["xi"][0] = -1e300
    chain.advance()
    assert "step size is too large" in str(chain.divergence)


# Data


def test_tf_idf_by_hand():
    """tf·log(D/(1 + df)), of length 1; what is in all documents but one counts nothing. Fault: plain counts."""
    corpus = read_upload("t.txt", b"red red blue\nred green\ngreen teal teal\nteal lime\n")
    rows = tf_idf(corpus).rows
    weights = {
        "red": np.log(4 / 3),
        "blue": np.log(2),
        "green": np.log(4 / 3),
        "teal": np.log(4 / 3),
        "lime": np.log(2),
    }
    first = np.array([{"red": 2, "blue": 1}.get(w, 0) * weights[w] for w in corpus.vocabulary])
    np.testing.assert_allclose(rows[0], first / np.linalg.norm(first))
    counts = corpus.matrix()[0]
    assert np.abs(rows[0] - counts / np.linalg.norm(counts)).max() > 0.01
    np.testing.assert_allclose((rows**2).sum(axis=1), 1)


@pytest.mark.slow
def test_known_documents_are_drawn_around_their_topics():
    """The mean of v·v̄ with the best θ is about A(κ): each document is that close to the cone of the topics."""
    vectors = known_topics()
    assert vectors.rows.shape == (500, 40)
    from scipy.optimize import nnls

    fits = [1 - nnls(vectors.topics.T, v)[1] ** 2 for v in vectors.rows[:100]]
    assert np.mean(np.sqrt(fits)) == pytest.approx(mean_length(40, 240.0), abs=0.01)


def uploaded(text, **params):
    return Spherical(
        read_upload("t.txt", text), corpus="uploaded", n_topics=2, min_documents=1, max_share=1.0, **params
    )


def test_uploads(monkeypatch):
    """Somebody's own texts are tf-idf vectors; what does not fit is refused with its field."""
    lines = b"".join(b"%s %s\n" % (a, b) for a in (b"aa", b"bb", b"cc") for b in (b"xx", b"yy", b"zz"))
    model = uploaded(lines)
    assert model.n_data == 7 and model.n_words == 6 and len(model.held) == 2
    np.testing.assert_allclose(model.axes @ model.axes.T, np.eye(3), atol=1e-12)
    with pytest.raises(SpecError, match="no file has been uploaded"):
        Spherical(corpus="uploaded")
    with pytest.raises(SpecError, match=r"model\.held_out.*of 0 documents"):
        uploaded(b"aa bb\naa bb\n")
    with pytest.raises(SpecError, match=r"model\.max_share.*cut-offs"):
        Spherical(read_upload("t.txt", lines), corpus="uploaded", min_documents=9)
    monkeypatch.setattr("sgmcmc_lab.samplers.models.spherical.model.MAX_CELLS", 45)
    with pytest.raises(SpecError, match=r"model\.max_words.*with 9 documents allowed are at most 5"):
        uploaded(lines)
    monkeypatch.setattr("sgmcmc_lab.samplers.models.spherical.model.MAX_CELLS", 10**6)
    monkeypatch.setattr("sgmcmc_lab.samplers.models.spherical.model.MAX_WEIGHTS", 11)
    with pytest.raises(SpecError, match=r"model\.n_topics.*at most 1 topics with 6 words"):
        uploaded(lines)


def test_the_directions_are_those_of_the_documents():
    """The first is the mean; of contrasts all three are across it, and hold more
    of the documents' spread. Fault: the first three words.
    """
    one, other = Spherical(), Spherical(directions="contrasts")
    assert one.axes[0] @ one.mean == pytest.approx(1)
    rest = one.training - np.outer(one.training @ one.mean, one.mean)
    spread = [((rest @ axes.T) ** 2).sum() for axes in (other.axes, one.axes, np.eye(40)[:3])]
    assert spread[0] > 1.2 * spread[1] > 3 * spread[2]


@for_each("text", [b"one two two\none\ntwo one\ntwo\n" * 3, b"aa bb\ncc dd\nee ff\n"], ids=["words", "documents"])
@for_each("directions", ["documents", "contrasts"])
def test_few_words_and_few_documents_have_a_globe(text, directions):
    """With two words, or two documents to see, there are fewer than three directions: those that are missing have no
    length, and the others are orthonormal. Fault: one axis per direction, which no globe can show.
    """
    model = uploaded(text, directions=directions)
    assert model.axes.shape == (3, model.n_words) and model.shown.shape == (model.n_data, 3)
    products = model.axes @ model.axes.T
    np.testing.assert_allclose(products, np.diag(np.round(products.diagonal())), atol=1e-12)
    assert round(products.trace()) in (1, 2, 3)


@pytest.mark.slow
def test_the_comparison_makes_its_table(monkeypatch, tmp_path, capsys):
    """At toy length: every case has its row and each seed its own score, and the paper's order is printed for the cases
    that it tells apart. Faults: a file that is not there; a method that leaves the numbers has no score.
    """
    lines = "".join(f"w{'abcdef'[k % 6]} w{'abcdef'[k % 4]} wx w{'pqr'[k % 3]}\tlabel\n" for k in range(40))
    (tmp_path / "texts.tsv").write_text(lines, encoding="utf-8")
    few = (
        compare.Case("sampler", "spherical_sggmc", [{"step_size": 0.1}, {"step_size": 0.2}], 1),
        compare.Case("point", "spherical_vi", [{"step_size": 0.5}], 2),
    )
    monkeypatch.setattr(compare, "CASES", few)
    options = ["--seconds", "0.05", "--seeds", "2", "--topics", "3"]
    assert compare.main(["--texts", str(tmp_path / "texts.tsv"), *options]) == 0
    said = capsys.readouterr().out
    assert "40, of which 8 are held out" in said and "K: 3" in said and "sampler − point: " in said
    assert len([line for line in said.split("\n") if line.startswith(("sampler  ", "point  "))]) == 2
    assert compare.main(["--texts", str(tmp_path / "none.tsv"), *options]) == 2
    assert "none.tsv" in capsys.readouterr().err
    model = Spherical()
    one, two = (compare.run(model, "spherical_sggmc", {}, 0.03, 50, seed) for seed in (1, 2))
    assert np.isfinite(one.scores).all() and one.scores[1] != two.scores[1] and one.curve[-1] == one.scores[1]
    assert (
        compare.with_error(np.array([1.0, np.inf])) == "–" and compare.with_error(np.array([1.0, 3.0])) == "2.0 ± 1.0"
    )
