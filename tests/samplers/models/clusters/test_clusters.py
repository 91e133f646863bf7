"""The mixture of Gaussians: its exact answers by enumeration, planted clusters, agreement, and files."""

from math import lgamma

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import integrate, stats
from sklearn.metrics import adjusted_rand_score

from sgmcmc_lab.lessons.papers import smolyakov_2018_figures_5_and_6 as scan
from sgmcmc_lab.samplers.files import FileError
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.agreement import adjusted_rand, purity
from sgmcmc_lab.samplers.models.clusters import normal, textbook
from sgmcmc_lab.samplers.models.clusters.model import Clusters, expected
from sgmcmc_lab.samplers.models.clusters.points import MAX_POINTS, Points, read
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

KEYS = samplers_of("clusters")
SIX = np.array([[-1.0, 0.2], [-0.7, -0.3], [0.1, 0.9], [0.9, 0.1], [1.4, -0.2], [0.3, -1.1], [0.0, 0.3], [1.1, 1.2]])


def six_points():
    """Six points, two more held out."""
    model = Clusters(Points(("a", "b"), SIX), points="uploaded", held_out=0.25, cluster_sd=0.6, mean_weight=0.3)
    assert (len(model.x), len(model.held)) == (6, 2)
    return model


def partitions(n):
    """All partitions of n things, as labels in the order of first appearance."""
    out = [[0]]
    for _ in range(n - 1):
        out = [[*labels, k] for labels in out for k in range(max(labels) + 2)]
    return np.array(out)


def statistics(z, alpha, density):
    """Seven numbers of each draw, (draws, 7): how many clusters, who is together with whom, α, and two densities."""
    n_clusters = 1 + (np.diff(np.sort(z, axis=1), axis=1) > 0).sum(axis=1)
    pairs = [z[:, i] == z[:, j] for i, j in ((0, 1), (0, 5), (2, 3))]
    return np.column_stack([n_clusters, *pairs, alpha / (1 + alpha), density])


def enumerated(model):
    """The posterior means of the statistics: a sum over all 203 partitions, and a quadrature over α."""
    n = len(model.x)

    def evidence(mine):
        return np.sum([np.log(textbook.next_density(model, mine[:i], mine[i])) for i in range(len(mine))])

    def over_alpha(n_clusters, weight):
        def density(alpha):
            log = n_clusters * np.log(alpha) + lgamma(alpha) - lgamma(alpha + n) - alpha
            return np.exp(log) * weight(alpha)

        return integrate.quad(density, 0, np.inf, epsabs=0, epsrel=1e-9)[0]

    whole, total = 0.0, 0.0
    for z in partitions(n):
        groups = [model.x[z == k] for k in range(z.max() + 1)]
        p = np.exp(sum(lgamma(len(mine)) + evidence(mine) for mine in groups))
        known = [np.array([textbook.next_density(model, mine, x) for x in model.held]) for mine in groups]
        alone = np.array([textbook.next_density(model, model.x[:0], x) for x in model.held])
        k = len(groups)
        one, share, new = (over_alpha(k, f) for f in (lambda a: 1.0, lambda a: a / (1 + a), lambda a: a / (a + n)))
        old = over_alpha(k, lambda a: 1 / (a + n))
        density = old * sum(len(mine) * each for mine, each in zip(groups, known, strict=True)) + new * alone
        (row,) = one * statistics(z[None], np.zeros(1), np.zeros((1, 2)))
        row[4], row[5:] = share, density
        whole, total = whole + p * row, total + p * one
    return whole / total


def worst_z(model, method, exact, n_steps=20_000, fault=lambda state: None):
    """The largest |mean − exact| in standard errors, of 40 batches of steps, for seven statistics."""
    chain = ModelChain(model, method, Generator(SFC64(8)))
    z, alpha, logs = np.empty((n_steps, len(model.x)), int), np.empty(n_steps), np.full((n_steps, 2), -np.inf)
    for t in range(n_steps):
        method.advance(model, chain.state, chain.rng)
        fault(chain.state)
        method.density(model, chain.state, logs[t])
        z[t], alpha[t] = chain.state.z, chain.state.alpha[0]
    means = statistics(z, alpha, np.exp(logs)).reshape(40, -1, 7).mean(axis=1)
    with np.errstate(divide="ignore"):
        return float(np.abs((means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / np.sqrt(40))).max())


@pytest.fixture(scope="module")
def exact():
    return enumerated(six_points())


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_the_exact_posterior(key, exact):
    """Seven means against enumeration, without splits and with; |t| of 39 degrees of freedom above 5 is a false alarm
    of 1.2e-5 each, 5e-4 for all methods. Faults: α too small; the prior's mean counts for less.
    """
    some = {"batch_size": 2} if key == "cluster_minibatch" else {}
    method = METHODS[key](split_merge=0, **some)
    assert worst_z(six_points(), method, exact) < 5
    assert worst_z(six_points(), METHODS[key](split_merge=4, **some), exact) < 5

    def smaller(state):
        state.alpha *= 0.4

    assert worst_z(six_points(), method, exact, fault=smaller) > 5
    wrong = six_points()
    wrong.prior[0] *= 0.3
    assert worst_z(wrong, method, exact) > 5


def best_agreement(method, seed):
    """The largest adjusted Rand index with the made-up groups in the last 50 of 200 sweeps over all points."""
    model, best, drawn = Clusters(), 0.0, 0
    chain = ModelChain(model, method, Generator(SFC64(seed)))
    while drawn < 200 * model.n_data:
        drawn += method.advance(model, chain.state, chain.rng)
        if drawn >= 150 * model.n_data:
            best = max(best, adjusted_rand(chain.snapshot()["z"], model.groups))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("start", [1, 30])
@pytest.mark.parametrize("key", KEYS)
def test_five_clusters_are_found(key, start):
    """From one and from 30 clusters, within 200 sweeps, in each of five seeds: an adjusted Rand index of .98, which
    purity alone would have of thirty clusters, too. Without splits and merges the slice sampler does not.
    """
    some = {"start_clusters": start} | ({"batch_size": 250} if key == "cluster_minibatch" else {})
    for seed in range(5):
        assert best_agreement(METHODS[key](**some), seed) >= 0.98
        if key == "cluster_slice":
            assert best_agreement(METHODS[key](split_merge=0, **some), seed) < 0.98


@pytest.mark.slow
def test_the_command_looks_at_equal_times(monkeypatch):
    """By a clock of which a sweep takes one; what is looked at is the state that the chain then has."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(scan.time, "process_time", lambda: float(next(ticks)))
    monkeypatch.setattr(scan, "seconds_of", lambda model, size, splits: 1e-6 * (size + 100))
    model = Clusters(points="iris", first=3, second=4)
    trials = scan.try_sizes(model, 2, trial=300)
    assert trials.sizes[0] == model.n_data and trials.chosen in trials.sizes
    budget, found = scan.compare(model, [model.n_data, 20], 2, 30, sweeps=40, seeds=2)
    assert budget == 40 and list(found) == ["collapsed", f"minibatch, m = {model.n_data}", "minibatch, m = 20", "slice"]
    for title, curves in found.items():
        method = scan.methods([model.n_data, 20], 2, 30)[title]
        chain = ModelChain(model, method, Generator(SFC64(0)))
        while chain.data_seen < 12 * model.n_data:
            chain.advance()
        seen = chain.snapshot()
        right = adjusted_rand(seen["z"], model.groups), purity(seen["z"], model.groups), len(seen["sizes"])
        assert tuple(curves[0].at(12.5)[:3]) == right
        assert tuple(curves[0].at(13.5)[:3]) != right
    text = scan.as_text(budget, found, 40)
    assert all(title in text for title in found) and "nan" not in text


def test_the_error_of_means_is_of_the_best_matching():
    truth = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    assert scan.squared_error(truth[[2, 0, 1]] + [0.3, 0.4], truth) == pytest.approx(0.25)
    assert scan.squared_error(np.vstack([truth, [[9.0, 9.0]]]), truth) == 0
    assert scan.squared_error(truth[:1], truth) == pytest.approx((9 + 16) / 3)


def test_purity_alone_hides_the_number_of_clusters():
    known = np.repeat([0, 1], 50)
    many = np.arange(100) // 5
    assert purity(many, known) == 1.0
    assert adjusted_rand(many, known) < 0.2


def test_agreement_is_scikit_learns():
    rng = np.random.default_rng(4)
    for _ in range(20):
        a, b = rng.integers(rng.integers(1, 6), size=60), rng.integers(rng.integers(1, 6), size=60)
        assert adjusted_rand(a, b) == pytest.approx(adjusted_rand_score(b, a), abs=1e-12)
    assert adjusted_rand(a, a) == 1.0
    assert purity(np.array([0, 0, 0, 1]), np.array([2, 2, 1, 0])) == 0.75


@pytest.mark.slow
def test_ellipses_are_of_the_expected_clusters():
    """The posterior means of μ and Σ against draws of them: 20,000 of each, 5 standard errors."""
    model, rng = six_points(), np.random.default_rng(2)
    mine = model.x[:4]
    sums = textbook.known(model, np.array([0, 0, 0, 0, 1, 1]), 1)
    (mean,), (covariance,) = expected(sums, model.prior)
    draws = np.array([textbook.draw(rng, model, mine) for _ in range(20_000)])
    factors = np.zeros((len(draws), 2, 2))
    factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = draws[:, 2], draws[:, 3], draws[:, 4]
    sigma = np.linalg.inv(factors @ factors.transpose(0, 2, 1))
    for found, right in ((draws[:, :2], mean), (sigma, covariance)):
        error = found.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(found.mean(axis=0) - right) < 5 * error).all()
        assert (np.abs(found.mean(axis=0) - 1.1 * right - 0.1) > 5 * error).any(), "a fault of a tenth shows"


@pytest.mark.slow
def test_a_drawn_cluster_is_bartletts():
    """Σ⁻¹ of draws is Wishart: its mean ν S⁻¹, and the same by scipy.stats, to 5 standard errors."""
    model, rng = six_points(), np.random.default_rng(5)
    _, nu, _, spread = textbook.posterior(model, model.x[:3])
    draws = np.array([textbook.draw(rng, model, model.x[:3])[2:] for _ in range(4000)])
    determinant = np.log((draws[:, 0] * draws[:, 2]) ** 2)
    other = np.linalg.slogdet(stats.wishart(nu, np.linalg.inv(spread)).rvs(4000, random_state=rng))[1]
    assert stats.ks_2samp(determinant, other).pvalue > 1e-4
    assert (
        stats.ks_2samp(
            determinant, np.linalg.slogdet(stats.wishart(nu - 1, np.linalg.inv(spread)).rvs(4000, random_state=rng))[1]
        ).pvalue
        < 1e-4
    )


def test_a_run_with_too_many_sticks_ends_in_a_sentence(monkeypatch):
    monkeypatch.setattr("sgmcmc_lab.samplers.models.clusters.slice_gibbs.MAX_STICKS", 15)
    chain = ModelChain(six_points(), METHODS["cluster_slice"](), Generator(SFC64(1)))
    for _ in range(300):
        chain.state.alpha[:] = 1e4
        chain.advance()
    assert "more than 15 sticks" in str(chain.divergence)


def test_a_small_concentration_grows_again():
    """A gamma draw of the shape 1e-4 is 0 in floating point nearly always; α was then 0 for good."""
    chain = ModelChain(six_points(), METHODS["cluster_slice"](), Generator(SFC64(1)))
    chain.state.alpha[:] = 1e-4
    found = []
    for _ in range(200):
        chain.advance()
        found.append(chain.state.alpha[0])
    assert chain.divergence is None and min(found) > 0 and max(found) > 0.1


@for_each("key", KEYS)
def test_no_two_points_were_together_before_the_first_step(key):
    """Planted fault: the share of no steps is a division by zero."""
    together = ModelChain(six_points(), METHODS[key](), Generator(SFC64(1))).snapshot()["together"]
    assert not together.any()


def csv(*rows):
    return "\n".join(rows).encode()


ROWS = [f"{i},{i * i % 7},{'ab'[i % 2]}" for i in range(12)]


def test_a_file_of_points():
    found = read({"p.csv": csv("x,y,kind", *ROWS)})
    assert found.names == ("x", "y") and found.x.shape == (12, 2)
    assert found.group_names == ("a", "b") and list(found.groups[:3]) == [0, 1, 0]
    model = Clusters(found, points="uploaded")
    assert len(model.groups) == model.n_data == 10
    np.testing.assert_allclose(np.concatenate([model.x, model.held]).std(axis=0), 1)
    numbers = read({"p.csv": csv("x,y", *(row[:-2] for row in ROWS))})
    assert numbers.groups is None and numbers.names == ("x", "y")


BAD = {
    "a word": (csv("x,y,k", *ROWS[:5], "q,1,a", *ROWS), ["p.csv, line 7", "'q'", "'x'"]),
    "a short row": (csv("x,y,k", *ROWS, "1,2"), ["line 14", "2 fields", "3 names"]),
    "few rows": (csv("x,y,k", *ROWS[:4]), ["4 rows", "10 or more"]),
    "one row": (csv("x,y,k", *ROWS[:1]), ["has 1 row of data: ", "10 or more"]),
    "one column": (csv("x,k", *(row.split(",", 1)[0] + ",a" for row in ROWS)), ["one column"]),
    "constant": (csv("x,y", *(f"{i},3" for i in range(12))), ["same number", "'y'"]),
    "nearly constant": (csv("x,y", *(f"{i},{i}e-310" for i in range(12))), ["same number", "'y'", "nine digits"]),
    "hardly moving": (csv("x,y", *(f"{i},{1000000 - i * 1e-5}" for i in range(12))), ["same number", "'y'"]),
    "many columns": (csv(",".join(f"c{i}" for i in range(1000))), ["1,000 columns", "2 to 99", "known groups"]),
    "many": (csv("x,y", *["1,2"] * (MAX_POINTS + 1)), ["20,000 rows"]),
    "many groups": (
        csv("x,y,k", *(f"{i},{i * i % 7},id{i}" for i in range(101))),
        ["101 different values", "'k'", "at most 100"],
    ),
    "a digit mistyped": (
        csv("x,y,z", *(f"{i},{i * i % 7},{i}" for i in range(12)), "1,2,1O"),
        ["line 14", "'1O'", "'z'"],
    ),
}


@for_each(("content", "said"), BAD.values(), ids=BAD)
def test_a_bad_file_is_named_by_line_and_column(content, said):
    with pytest.raises(FileError) as caught:
        read({"p.csv": content})
    assert all(part in str(caught.value) for part in said), caught.value


@for_each(
    ("params", "field"),
    [
        ({"first": 2, "second": 2}, "model.second"),
        ({"second": 3}, "model.second"),
        ({"points": "uploaded"}, "model.points"),
    ],
)
def test_columns_that_are_not_there(params, field):
    with pytest.raises(SpecError, match=field):
        Clusters(**params)


@for_each(("points", "n", "groups"), [("iris", 150, 3), ("wine", 178, 3), ("five", 1250, 5)])
def test_built_in_points(points, n, groups):
    model = Clusters(points=points)
    assert model.n_data + len(model.held) == n
    assert model.groups.max() + 1 == groups


def far_shares(logs, seed=5):
    """How often each of two clusters of 1 and 3 points, and the free slot, takes a point with these log densities."""
    rng, known = Generator(SFC64(seed)), np.zeros((3, normal.KNOWN))
    known[:2, 0] = 1, 3
    chosen = [normal.seat(rng, known, np.array([*logs, 0.0]), 2, logs[-1] - 50.0)[0] for _ in range(4000)]
    return np.bincount(chosen, minlength=3) / 4000


@pytest.mark.slow
def test_a_point_far_from_all_clusters_is_seated_by_the_ratio_of_its_densities():
    """Densities e^−5000 and e^−5000 of clusters with 1 and 3 points: a quarter and three quarters, to four standard
    errors, .0274, as with densities of 1. Fault: densities that are not logs, all 0, which leave every point to the
    first slot."""
    for height in (0.0, -5000.0):
        assert np.abs(far_shares([height, height]) - [0.25, 0.75, 0.0]).max() < 0.0274
    weights = np.exp([-5000.0, -5000.0])
    assert normal.pick(Generator(SFC64(5)), weights, 2, weights.sum()) == 0
    assert normal.weigh(np.full(3, -np.inf), 3) == 0


@for_each("key", KEYS)
def test_a_held_out_point_far_away_has_a_finite_score(key):
    """The held-out points moved to 10⁹: their log density is the prior predictive's and the clusters', summed in logs.
    Fault: its exponential, which is 0 for the slice sampler's and is no score."""
    model = six_points()
    chain = ModelChain(model, METHODS[key](), Generator(SFC64(8)))
    model.held = np.full((2, 2), 1e9)
    chain.advance()
    value = chain.scored()
    assert np.isfinite(value)
    assert value < -60
