"""The mixture of von Mises–Fisher distributions: its normaliser, its law over partitions, its draws, and files."""

from itertools import combinations
from math import lgamma

import mpmath
import numba
import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import integrate, stats

from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.agreement import adjusted_rand
from sgmcmc_lab.samplers.models.clusters import sphere_textbook, split_merge, von_mises
from sgmcmc_lab.samplers.models.clusters.sphere import MAX_NUMBERS, SphereClusters
from sgmcmc_lab.samplers.models.clusters.sphere_points import Directions, made, read
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each
from tests.helpers.edited import edited

KEYS = tuple(samplers_of("sphere_clusters"))
BATCHES = 40


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def six_points(dim=3):
    """Six points in two loose groups, two more held out."""
    x = unit(np.random.default_rng(7).standard_normal((8, dim)) + np.array([[1.2] * dim, [-0.6] * dim] * 4))
    model = SphereClusters(
        Directions(tuple("abcdef"[:dim]), x), points="uploaded", held_out=0.25, kappa=4.0, kappa0=0.8
    )
    assert (len(model.x), len(model.held)) == (6, 2)
    return model


# The normaliser


def exact_log_c(dim, r):
    """By 40 digits."""
    with mpmath.workdps(40):
        order, r = mpmath.mpf(dim) / 2 - 1, mpmath.mpf(r)
        return float(order * mpmath.log(r) - mpmath.mpf(dim) / 2 * mpmath.log(2 * mpmath.pi) - mpmath.log(mpmath.besseli(order, r)))  # fmt: skip


@for_each("dim", [2, 3, 4, 5, 10, 50, 81, 82, 98, 300])
def test_the_normaliser(dim):
    """From r next to 0 to large ones, within 5e-10 or ten digits. Fault: a sphere of one more dimension."""
    for r in (1e-8, 1e-3, 0.3, 2.0, 17.0, 140.0, 3e3, 1e6):
        exact = exact_log_c(dim, r)
        assert von_mises.log_c(dim, r) == pytest.approx(exact, rel=1e-10, abs=5e-10), r
        assert exact_log_c(dim + 1, r) != pytest.approx(exact, rel=1e-6, abs=1e-6), r
    area = 2 * np.pi ** (dim / 2) / np.exp(lgamma(dim / 2))
    assert von_mises.log_c(dim, 0.0) == pytest.approx(-np.log(area), rel=1e-9)


def on_the_sphere(n=400):
    """Points (·, 3) and weights of a quadrature over S²."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    across = np.sqrt(1 - nodes**2)[:, None]
    points = np.stack([across * np.cos(angles), across * np.sin(angles), np.repeat(nodes[:, None], n, 1)], axis=-1)
    return points.reshape(-1, 3), np.repeat(weights * 2 * np.pi / n, n)


@pytest.mark.slow
def test_the_evidence_of_a_cluster_is_an_integral():
    """∫ vMF(μ; m, κ₀) Π vMF(x_i; μ, κ) dμ by quadrature over S², and the same one point after another; so is each next
    density one on the sphere. Fault: the normaliser C(κ₀) left out."""
    model = six_points()
    mu, weights = on_the_sphere()

    def vmf(dot, kappa):
        return kappa / (4 * np.pi * np.sinh(kappa)) * np.exp(kappa * dot)

    for n in (1, 2, 5):
        inside = vmf(mu @ model.prior_mean, 0.8) * vmf(mu @ model.x[:n].T, 4.0).prod(axis=1)
        known, exact = model.sums(np.r_[np.zeros(n, int), np.ones(6 - n, int)], 2)[0], np.log(inside @ weights)
        found = von_mises.log_evidence(known, model.prior)
        assert found == pytest.approx(exact, abs=1e-9)
        one_by_one = sum(np.log(sphere_textbook.next_density(model, model.x[:i], model.x[i])) for i in range(n))
        assert one_by_one == pytest.approx(exact, abs=1e-9)
        without = model.prior.copy()
        without[0, von_mises.LOG_C0] = 0.0
        assert von_mises.log_evidence(known, without) != pytest.approx(exact, abs=1e-3)
        fit = np.empty(3 + von_mises.MORE)
        von_mises.predict(known, model.prior, fit)
        log_next = [von_mises.next_log_density(x, fit) for x in mu]
        assert np.exp(log_next) @ weights == pytest.approx(1, abs=1e-9)


# The law


def partitions(n):
    """All partitions of n things, as labels in the order of first appearance."""
    out = [[0]]
    for _ in range(n - 1):
        out = [[*labels, k] for labels in out for k in range(max(labels) + 2)]
    return np.array(out)


def code_of(z):
    """A number of each partition (…, n), whatever its labels: which pairs are together."""
    pairs = np.array(list(combinations(range(z.shape[-1]), 2)))
    return (z[..., pairs[:, 0]] == z[..., pairs[:, 1]]) @ (1 << np.arange(len(pairs)))


def log_weight(model, z):
    """log Π_k Γ(N_k) p(x_k) of a partition, with each cluster's evidence by SciPy."""
    total = 0.0
    for k in range(z.max() + 1):
        mine = model.x[z == k]
        each = [np.log(sphere_textbook.next_density(model, mine[:i], mine[i])) for i in range(len(mine))]
        total += lgamma(len(mine)) + sum(each)
    return total


def enumerated(model):
    """The probabilities of all 203 partitions with α integrated out, (203,), E α/(1 + α), and the mean densities of the
    held-out points, (2,)."""
    n, all_z = len(model.x), partitions(len(model.x))

    def over_alpha(k, weight):
        def density(alpha):
            return np.exp(k * np.log(alpha) + lgamma(alpha) - lgamma(alpha + n) - alpha) * weight(alpha)

        return integrate.quad(density, 0, np.inf, epsabs=0, epsrel=1e-9)[0]

    one, share, old, new = (
        np.array([over_alpha(k, weight) for k in range(1, n + 1)])
        for weight in (lambda a: 1.0, lambda a: a / (1 + a), lambda a: 1 / (a + n), lambda a: a / (a + n))
    )
    clusters = all_z.max(axis=1)
    p = np.exp([log_weight(model, z) for z in all_z])
    alone = np.array([sphere_textbook.next_density(model, model.x[:0], x) for x in model.held])
    held = [
        sum(
            (z == k).sum() * np.array([sphere_textbook.next_density(model, model.x[z == k], x) for x in model.held])
            for k in range(z.max() + 1)
        )
        for z in all_z
    ]
    total = p @ one[clusters]
    densities = (p * old[clusters]) @ np.array(held) + (p @ new[clusters]) * alone
    return p * one[clusters] / total, p @ share[clusters] / total, densities / total


def worst_t(draws, exact):
    """The largest |mean − exact| of columns of draws (steps, columns), in standard errors of BATCHES batches."""
    means = draws.reshape(BATCHES, -1, draws.shape[1]).mean(axis=1)
    with np.errstate(divide="ignore"):
        error = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
        return float(np.abs((means.mean(axis=0) - exact) / error).max())


def of_partitions(z, p):
    """Indicators of the partitions that have a probability of .005 or more, (steps, …), and those probabilities."""
    common = np.flatnonzero(p >= 0.005)
    assert len(common) >= 15
    return code_of(z)[:, None] == code_of(partitions(z.shape[1]))[common], p[common]


def worst_of_method(model, method, exact, n_steps=20_000):
    """:func:`worst_t` of the partitions, α/(1 + α) and the densities of the held-out points."""
    p, share, densities = exact
    chain = ModelChain(model, method, Generator(SFC64(8)))
    z, alpha, logs = np.empty((n_steps, len(model.x)), int), np.empty(n_steps), np.full((n_steps, 2), -np.inf)
    for t in range(n_steps):
        method.advance(model, chain.state, chain.rng)
        method.density(model, chain.state, logs[t])
        z[t], alpha[t] = chain.state.z, chain.state.alpha[0]
    seen, expected = of_partitions(z, p)
    return worst_t(np.column_stack([seen, alpha / (1 + alpha), np.exp(logs)]), np.r_[expected, share, densities])


@pytest.fixture(scope="module")
def exact():
    return enumerated(six_points())


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_the_exact_posterior_over_partitions(key, exact):
    """Frequencies of all common partitions, with and without splits, against enumeration: |t| of 39 degrees of freedom
    above 5 is a false alarm of 1.2e-5 each, 1.7e-3 for all. Faults: the normaliser C(κ₀) times .6, which makes clusters
    dearer; a prior around another direction."""
    some = {"batch_size": 2} if key == "sphere_minibatch" else {}
    method, splits = METHODS[key](split_merge=0, **some), METHODS[key](split_merge=4, **some)
    assert worst_of_method(six_points(), method, exact) < 5
    assert worst_of_method(six_points(), splits, exact) < 5
    wrong = six_points()
    wrong.prior[0, von_mises.LOG_C0] += np.log(0.6)
    assert worst_of_method(wrong, splits, exact) > 5
    turned = six_points()
    turned.prior[0, von_mises.FIRST :] *= -1
    assert worst_of_method(turned, method, exact) > 5


def alone(split_or_merge, model, alpha, n_steps=100_000):
    """The partitions after every tenth of n_steps splits and merges and nothing else, from one cluster."""

    @numba.njit
    def loop(rng, x, z, known, prior, out):
        for t in range(out.shape[0]):
            for _ in range(10):
                split_or_merge(rng, x, z, known, prior, alpha)
            out[t] = z

    z, out = np.zeros(len(model.x), int), np.empty((n_steps // 10, len(model.x)), int)
    known = model.sums(z, len(z) + 1)
    loop(Generator(SFC64(3)), model.x, z, known, model.prior, out)
    np.testing.assert_allclose(known, model.sums(z, len(z) + 1), atol=1e-9)
    return out


FAULTS = {
    "the proposal is left out": (" - log_chance\n", "\n"),
    "a split costs nothing": ("gain = log(alpha) + ", "gain = "),
}


@pytest.mark.slow
def test_splits_and_merges_alone(tmp_path):
    """At α = .4, on the sphere in four dimensions: p(z | α, x) ∝ α^K Π Γ(N_k) p(x_k), to |t| < 5, a false alarm of
    1.2e-5 each, 4e-4 for all. Faults: an acceptance without the chance of the proposal; one without α."""
    model = six_points(4)
    all_z = partitions(6)
    logs = np.array([log_weight(model, z) + (z.max() + 1) * np.log(0.4) for z in all_z])
    p = np.exp(logs - logs.max())
    p /= p.sum()
    assert worst_t(*of_partitions(alone(split_merge.split_or_merge, model, 0.4), p)) < 5
    for right, wrong in FAULTS.values():
        faulty = edited(split_merge, right, wrong, tmp_path)
        assert worst_t(*of_partitions(alone(faulty.split_or_merge, model, 0.4), p)) > 5


# The draws of mean directions


@numba.njit
def many(rng, known, prior, out):
    for i in range(len(out)):
        von_mises.draw(rng, known, prior, out[i])


def along(mean, r, dim):
    """The exact CDF of w = μ·m, whose density is ∝ e^{rw} (1 − w²)^{(d−3)/2}."""
    w = np.linspace(-1, 1, 40_001)[1:-1]
    logs = r * w + (dim - 3) / 2 * np.log1p(-(w**2))
    cdf = np.cumsum(np.exp(logs - logs.max()))
    return lambda at: np.interp(at, w, cdf / cdf[-1])


@pytest.mark.slow
def test_a_drawn_direction():
    """20,000 draws of vMF(m, r): their part along m has the exact distribution, by Kolmogorov–Smirnov, with a false
    alarm of 1e-4 each; across m their mean is 0, to 5 standard errors. Fault: r larger by a tenth."""
    for dim, r in ((3, 5.0), (3, 300.0), (20, 30.0)):
        mean = unit(np.arange(1.0, dim + 1)[None])[0]
        draws = np.empty((20_000, dim))
        many(Generator(SFC64(2)), np.zeros(dim + 1), von_mises.prior_of(1.0, mean, r), draws)
        np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1)
        w = draws @ mean
        assert stats.kstest(w, along(mean, r, dim)).pvalue > 1e-4
        assert stats.kstest(w, along(mean, 1.1 * r, dim)).pvalue < 1e-4
        across = draws - w[:, None] * mean
        assert (np.abs(across.mean(axis=0)) < 5 * across.std(axis=0) / np.sqrt(len(draws))).all()


# Clusters and files


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_known_clusters_are_found(key):
    """From one cluster, in three seeds of made-up points: an adjusted Rand index of .95 within 100 sweeps over all
    of them. Fault: a κ a hundred times too small, for which the points are one cluster."""
    some = {"batch_size": 320} if key == "sphere_minibatch" else {}
    for seed in range(3):
        model, blind = SphereClusters(items=400, data_seed=seed), SphereClusters(items=400, data_seed=seed, kappa=0.4)
        best = [0.0, 0.0]
        for which, each in enumerate((model, blind)):
            chain = ModelChain(each, METHODS[key](**some), Generator(SFC64(seed)))
            for t in range(100):
                chain.advance()
                if t >= 80:
                    best[which] = max(best[which], adjusted_rand(chain.snapshot()["z"], model.groups))
        assert best[0] >= 0.95 > best[1] + 0.2, (seed, best)


def test_wines_are_directions_with_known_groups():
    model = SphereClusters(points="wine")
    assert model.n_data + len(model.held) == 178 and model.dim == 13 and model.groups.max() + 1 == 3
    np.testing.assert_allclose(np.linalg.norm(model.x, axis=1), 1)


def test_made_up_points_are_drawn_with_their_seed():
    one, two, other = made(50, 1), made(50, 1), made(50, 2)
    np.testing.assert_array_equal(one.x, two.x)
    assert not np.array_equal(one.x, other.x)
    np.testing.assert_allclose(np.linalg.norm(one.x, axis=1), 1)


def csv(x, words=()):
    rows = [",".join([*(f"{each:.12g}" for each in row), *words[i : i + 1]]) for i, row in enumerate(x)]
    return {"p.csv": "\n".join([",".join("abcdefgh"[: len(x[0])]) + ",kind" * bool(words), *rows]).encode()}


def test_rows_of_a_file_are_scaled_to_length_1():
    x = np.random.default_rng(3).standard_normal((20, 5)) + 0.5
    found = read(csv(x, ["u", "v"] * 10))
    np.testing.assert_allclose(found.x, unit(x))
    assert found.group_names == ("u", "v")
    model = SphereClusters(found, points="uploaded")
    lengths = np.linalg.norm(x, axis=1)
    assert model.facts()["lengths"] == f"{lengths.min():.3g} to {lengths.max():.3g} in the file, scaled to 1"
    assert "lengths" not in SphereClusters(read(csv(unit(x))), points="uploaded").facts()


def test_a_row_of_zeros_is_refused():
    x = np.random.default_rng(3).standard_normal((20, 3))
    x[6] = 0.0
    with pytest.raises(FileError, match=r"p\.csv has the length 0 in row 7 of its data, where the longest row has"):
        read(csv(x))


def test_points_that_are_not_there():
    with pytest.raises(SpecError, match=r"model\.points"):
        SphereClusters(points="uploaded")
    many_numbers = np.ones((MAX_NUMBERS // 50 + 1, 50))
    with pytest.raises(SpecError, match="allowed are 500,000 numbers in all"):
        SphereClusters(Directions(tuple(map(str, range(50))), many_numbers), points="uploaded")
