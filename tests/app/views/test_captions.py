"""Every number that a view prints, and the bands that it draws, recomputed from raw draws by NumPy alone.

Each view has its recomputation in :data:`RECOMPUTED`; a new one without fails by name. One of a density is shown beside
two lanes of twelve chains each, more than are watched, after a burn-in; the second lane was changed on the way, so that
its statistics began anew. One of a model is shown after some steps, for each of its methods. The test compares the very
digits on the screen: the whole text of the caption, which is put together here from the raw numbers.
"""

import re
from dataclasses import replace
from itertools import combinations
from math import comb, floor, log, log10, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import linear_sum_assignment

from sgmcmc_lab.app.live.lanes.models import MethodRecord, load
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Frame
from sgmcmc_lab.app.views.models.words import HUNDREDTHS
from sgmcmc_lab.app.views.order import FEWEST, Found
from sgmcmc_lab.app.views.recipes import layouts_of
from sgmcmc_lab.samplers import Change, Run
from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.diagnostics.calibration import Calibration
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.models.variational.gamma import GammaAscent, around
from sgmcmc_lab.samplers.running_statistics import bin_edges
from tests.helpers.checks_views import build, experiment_of, frames, open_link, records, scene_of

N_CHAINS, BURN_IN, BEFORE, AFTER = 12, 40, 300, 400
"""Chains; steps that are not counted; steps until the second lane is changed, and after it."""
WATCHED = 8
"""Chains of which the order of the draws is kept."""
NUMBER = re.compile(r"\d")

# --- a stage of two lanes, and its raw draws ------------------------------------------------------------------------


class Raw:
    """The draws of a lane since its statistics began, (chains, n, dim), and where the chains were just before."""

    def __init__(self, record, before):
        run = record.run
        n = run.steps - run.counted_from
        kept = run.kept[:, : BEFORE + AFTER]
        self.run, self.name, self.before = run, "", before
        self.theta = kept[:, kept.shape[1] - n :].copy()
        self.values = run.target.values(self.theta)
        self.velocity = None

    def mean(self, k):
        return float(self.values[..., k].mean())

    @property
    def history(self):
        """The history in order: every draw of the watched chains, as long as these are fewer than 1,024."""
        return self.values[:WATCHED]


def changed(run, **values):
    sampler = Choice(run.spec.sampler.key, tuple({**run.spec.sampler.values(), **values}.items()))
    run.change(Change(run.steps, sampler, run.spec.gradient))


def stage(key, target, samplers, params=None, change=None, gradients=None, each=False, coordinate=0):
    """The view, the frame, and the raw draws of both lanes; ``each`` keeps the velocities of every step, too."""
    made = records(
        target, samplers, N_CHAINS, params, gradients, keep=True, burn_in=BURN_IN, n_steps=BEFORE + AFTER, seed=11
    )
    view = VIEWS[key].made(scene_of(made, coordinate))
    before, velocity = {}, {i: [] for i in range(len(made))}

    def advance(n):
        for i, record in enumerate(made):
            for _ in range(n if each else 1):
                record.run.advance(1 if each else n)
                velocity[i].append(record.run.momentum.copy())

    for record in made:
        record.run.advance(BURN_IN)
    before = [record.run.position.copy() for record in made]
    advance(BEFORE)
    changed(made[1].run, **(change or {"step_size": made[1].run.sampler.step_size / 2}))
    before[1] = made[1].run.position.copy()
    velocity[1] = []
    advance(AFTER)
    raw = [Raw(record, start) for record, start in zip(made, before, strict=True)]
    for i, one in enumerate(raw):
        one.name, one.velocity = view.scene.lanes[i], np.array(velocity[i])
    assert [one.theta.shape[:2] for one in raw] == [(N_CHAINS, BEFORE + AFTER), (N_CHAINS, AFTER)]
    return SimpleNamespace(view=view, frame=frames(made), raw=raw, records=made, target=made[0].run.target)


def captions(made):
    return list(made.view.captions(made.frame).values())


def words(made):
    return made.view.words(made.frame)


def means(made, coordinates):
    """The description of the lanes."""
    names = made.target.column_names
    return "; ".join(
        f"{one.name}: mean of " + ", ".join(f"{names[k]} {one.mean(k):.3g}" for k in coordinates) for one in made.raw
    )


def near(text, expected, rel):
    """The same words, and numbers that are alike: where a grid stands between the formula and the screen."""
    digits = r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?"
    text, expected = text.replace("−", "-"), expected.replace("−", "-")
    assert re.sub(digits, "#", text) == re.sub(digits, "#", expected)
    found, right = ([float(x.replace(",", "")) for x in re.findall(digits, each)] for each in (text, expected))
    np.testing.assert_allclose(found, right, rtol=rel, atol=1e-12)


# --- the diagnostics again, in NumPy ----------------------------------------------------------------------------------


def split(draws):
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def ranked(draws):
    """Normal scores of the ranks of all draws (Vehtari et al. 2021, eq 14)."""
    ranks = stats.rankdata(draws).reshape(draws.shape)
    return special.ndtri((ranks - 0.375) / (draws.size + 0.25))


def split_rhat(draws):
    n = draws.shape[1]
    within, between = draws.var(axis=1, ddof=1).mean(), n * draws.mean(axis=1).var(ddof=1)
    return sqrt((between / within + n - 1) / n)


def rhat(draws):
    """The larger one of bulk and folded (ibid., section 3)."""
    whole = split(draws)
    return max(split_rhat(ranked(whole)), split_rhat(ranked(np.abs(whole - np.median(whole)))))


def effective(draws):
    """Geyer's initial monotone sequence over split chains (ibid., eqs 10–13)."""
    chains, n = draws.shape
    apart = draws - draws.mean(axis=1, keepdims=True)
    covariance = np.array([(apart[:, : n - t] * apart[:, t:]).sum(axis=1) / n for t in range(n)]).T
    within = covariance[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + draws.mean(axis=1).var(ddof=1)
    rho = 1 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    pairs, t = [rho[0] + rho[1]], 2
    while t < n - 2 and rho[t] + rho[t + 1] >= 0:
        pairs.append(min(pairs[-1], rho[t] + rho[t + 1]))
        t += 2
    tau = -1 + 2 * sum(pairs) + max(rho[t], 0.0)
    return chains * n / max(tau, 1 / log10(chains * n))


def ess_tail(draws):
    whole = split(draws)
    return min(effective((whole <= np.quantile(draws, p)).astype(float)) for p in (0.05, 0.95))


def memory(draws):
    """Lags and ρ of chains (chains, n): 0…15, then 16…60 in fours of every fourth draw, and so on, to a tenth of n."""
    n, lags, rho = draws.shape[1], [], []
    for level in range(12):
        stride = 4**level
        z = draws[:, ::stride]
        here = z.shape[1]
        for lag in range(0 if level == 0 else 4, 16):
            if lag * stride > n // 10:
                return np.array(lags), np.array(rho)
            m = z.mean()
            at = lambda k: ((z[:, k:] - m) * (z[:, : here - k] - m)).mean()  # noqa: B023, E731
            lags.append(lag * stride)
            rho.append(at(lag) / at(0))
    return np.array(lags), np.array(rho)


def integrated(draws):
    """τ by Sokal's window of 5τ with trapezoids between the lags, and its standard error τ√(2(2M + 1)/n)."""
    lags, rho = memory(draws)
    tau = [1.0, *(2 * np.trapezoid(rho[: i + 1], lags[: i + 1]) + rho[i] for i in range(1, len(lags)))]
    window = next((i for i in range(len(lags)) if lags[i] >= 5 * tau[i]), None)
    if window is None:
        return None
    return tau[window], tau[window] * sqrt(2 * (2 * lags[window] + 1) / draws.size)


def ks_by_hand(column, values):
    """sup |F_n − F| over the edges of 2,048 bins."""
    edges = np.linspace(column.low, column.high, 2049)
    below = np.searchsorted(np.sort(values.ravel()), edges, side="left") / values.size
    return float(np.abs(below - column.cdf(edges)).max())


def kl_by_hand(column, values):
    """Σ p̂ log(p̂/p) over cells between the edges next to F = sin²(πj/128), and what exact draws would have."""
    edges = np.linspace(column.low, column.high, 2049)
    cdf = column.cdf(edges)
    cuts = np.unique([int(np.argmax(cdf >= np.sin(np.pi / 128 * j) ** 2)) for j in range(1, 64)])
    masses = np.diff(np.concatenate([[0.0], cdf[cuts], [1.0]]))
    counts = np.diff(np.searchsorted(np.sort(values.ravel()), edges[cuts], side="left"), prepend=0, append=values.size)
    n, full = values.size, counts > 0
    p = counts[full] / n
    value = float((p * np.log(p / masses[full])).sum())
    k = np.arange(1, 400)
    rates = n * masses[:, None]
    terms = np.where(
        rates[:, 0] < 100,
        (stats.poisson.pmf(k, np.minimum(rates, 100)) * k * np.log(k / rates)).sum(axis=1),
        0.5 + 1 / (12 * rates[:, 0]),
    )
    return value, float((terms.sum() - 0.5) / n)


# --- views of densities -----------------------------------------------------------------------------------------------

RECOMPUTED = {}


def recomputes(*keys):
    """Register what follows as the recomputation of these views."""

    def register(function):
        RECOMPUTED.update(dict.fromkeys(keys, function))
        return function

    return register


GAUSSIAN = {"mean": 0.5, "sd": 1.5}
TWO = ["sgld", "hmc"]


def both(key, step_size=0.2, **more):
    lanes = [("sgld", {"step_size": step_size}), ("hmc", {"step_size": 1.4, "n_leapfrog": 2})]
    return stage(key, "gaussian", lanes, GAUSSIAN, **more)


@recomputes("trace")
def trace(key):
    made = both(key)
    expected = []
    for one in made.raw:
        x = one.history[..., 0]
        expected.append(f"{one.name}  R̂ {rhat(x):.3f}  ESS {effective(ranked(split(x))):,.0f} / {ess_tail(x):,.0f}")
    assert captions(made) == [*expected, f"ESS bulk / tail, of {WATCHED} × {AFTER:,} to {BEFORE + AFTER:,} kept draws"]


@recomputes("autocorrelation")
def autocorrelation(key):
    made = both(key, step_size=1.2)
    expected = []
    for one in made.raw:
        tau, error = integrated(one.history[..., 0])
        places = min(max(0, 1 - floor(log10(error))), 3)
        expected.append(f"{one.name}  τ = {tau:.{places}f} ± {error:.{places}f}")
    assert captions(made) == expected
    data = made.view.compute(made.frame)
    for i, one in enumerate(made.raw):
        lags, rho = memory(one.history[..., 0])
        shown = len(data[f"lane {i}"][0])
        np.testing.assert_array_equal(data[f"lane {i}"][0], lags[:shown])
        np.testing.assert_allclose(data[f"lane {i}"][1], rho[:shown], atol=1e-9)


@recomputes("ks", "kl")
def distances(key):
    made = both(key)
    column, expected = made.target.columns[0], []
    for one in made.raw:
        d, (kl, noise) = ks_by_hand(column, one.values), kl_by_hand(column, one.values)
        above = f"{kl - noise:.2g}" if kl > noise else "within noise"
        said = f"KS {d:.3g}  KL {above}" if key == "ks" else f"KL {kl:.2g}, i.i.d. {noise:.2g}"
        expected.append(f"{one.name}  {said}")
    assert captions(made) == expected
    data, n = made.view.compute(made.frame), made.raw[0].values.size
    np.testing.assert_allclose(
        data["lane 1"][1], (ks_by_hand if key == "ks" else lambda *a: kl_by_hand(*a)[0])(column, made.raw[1].values)
    )
    if key == "ks":
        # Kolmogorov's distribution: P(√n D ≤ x) is .05 and .95 at the ends, and its mean is √(π/2) log 2.
        low, high, mean = (float(x[0]) * sqrt(n) for x in data["noise 0"][1:])
        k = np.arange(1, 200)
        for x, level in ((low, 0.05), (high, 0.95)):
            assert 1 - 2 * ((-1.0) ** (k - 1) * np.exp(-2 * k**2 * x**2)).sum() == pytest.approx(level, abs=1e-6)
        assert mean == pytest.approx(sqrt(np.pi / 2) * log(2))


def stein_by_hand(theta):
    """The V-statistic's root with c = 1 and β = −½ of N(.5, 1.5²), in its standard deviations, and its diagonal's."""
    x = (theta - GAUSSIAN["mean"]) / GAUSSIAN["sd"]
    delta = x[:, None] - x
    u = 1 + delta**2
    # s = −x, and of two of them the difference is −δ.
    terms = x[:, None] * x * u**-0.5 - delta**2 * u**-1.5 + u**-1.5 - 3 * delta**2 * u**-2.5
    return sqrt(terms.sum()) / len(x), sqrt((x**2 + 1).sum()) / len(x)


@recomputes("ksd")
def discrepancy(key):
    made = both(key)
    made.view.compute(made.frame)
    assert made.view.background(made.frame)
    expected = []
    for one in made.raw:
        n, most = one.theta.shape[1], 1000 // WATCHED
        drawn = one.theta[:WATCHED, np.arange(1, most + 1) * n // most - 1, 0].ravel()
        expected.append(stein_by_hand(drawn))
    lines = [f"{one.name}  KSD {a:.2g}, i.i.d. {b:.2g}" for one, (a, b) in zip(made.raw, expected, strict=True)]
    assert captions(made) == lines
    data = made.view.compute(made.frame)
    for i, (value, chance) in enumerate(expected):
        np.testing.assert_allclose(data[f"lane {i}"], [[BURN_IN + BEFORE + AFTER], [value]], rtol=1e-9)
        np.testing.assert_allclose(data[f"noise {i}"], [[BURN_IN + BEFORE + AFTER], [chance]], rtol=1e-9)


@recomputes("ranks")
def ranks(key):
    made = both(key)
    made.view.compute(made.frame)
    assert made.view.background(made.frame)
    expected, heights, bands = [], [], []
    for one in made.raw:
        x = one.history[..., 0]
        n, every = x.shape[1], np.sort(x.ravel())
        # Refused proposals repeat a draw, whose copies have their mean rank.
        rank = (np.searchsorted(every, x) + np.searchsorted(every, x, side="right") + 1) / 2
        counts = np.array([np.histogram((row - 0.5) * 20 / x.size, np.arange(21))[0] for row in rank])
        m = x.size // 20
        law = np.cumsum([comb(n, k) * comb(x.size - n, m - k) / comb(x.size, m) for k in range(m)])
        low, high = (int(np.argmax(law >= p)) for p in (0.005, 0.995))
        outside = int(((counts < low) | (counts > high)).sum())
        expected.append(f"{one.name}  {WATCHED} × {n:,} draws, {outside} of 160 counts outside the band")
        heights.append(counts * 160 / x.size)
        bands.append(np.array([low, high]) * 160 / x.size)
    assert captions(made) == expected
    assert any(" 0 of" not in line for line in expected)
    data = made.view.compute(made.frame)
    for i, each in enumerate(heights):
        for c in range(4):
            np.testing.assert_allclose(data[f"lane {i} chain {c}"][1][::2], each[c])
    np.testing.assert_allclose(
        [data["band"][1][0], data["band"][2][0]], [min(b[0] for b in bands), max(b[1] for b in bands)]
    )


@recomputes("quantile_ess")
def quantile_sizes(key):
    made = both(key)
    made.view.compute(made.frame)
    assert made.view.background(made.frame)
    expected, curves, levels = [], [], [k / 20 for k in range(1, 20)]
    for one in made.raw:
        x = one.history[..., 0]
        sizes = [effective((split(x) <= np.quantile(x, p)).astype(float)) for p in levels]
        k = int(np.argmin(sizes))
        expected.append(f"{one.name}  ESS {sizes[9]:,.0f} of the median, least {sizes[k]:,.0f} at {levels[k]:.0%}")
        curves.append(sizes)
    assert captions(made) == expected
    data = made.view.compute(made.frame)
    for i, sizes in enumerate(curves):
        np.testing.assert_allclose(data[f"lane {i}"], [levels, sizes], rtol=1e-9)


@recomputes("ess_growth")
def growth(key):
    made = both(key)
    made.view.compute(made.frame)
    assert made.view.background(made.frame)
    expected, curves = [], []
    for one in made.raw:
        x = one.history[..., 0]
        parts = [x[:, : k * x.shape[1] // 10] for k in range(1, 11)]
        bulk, tail = (
            [size(part) for part in parts] for size in (lambda part: effective(ranked(split(part))), ess_tail)
        )
        expected.append(f"{one.name}  ESS bulk / tail {bulk[-1]:,.0f} / {tail[-1]:,.0f}, of {x.size:,} kept draws")
        curves.append(([part.size for part in parts], bulk, tail))
    assert captions(made) == expected
    data = made.view.compute(made.frame)
    for i, (at, bulk, tail) in enumerate(curves):
        # Of few draws the last pair of Geyer's sequence, which ArviZ cuts in another way, counts for some per cent.
        for name, sizes in (("bulk", bulk), ("tail", tail)):
            np.testing.assert_allclose(data[f"{name} {i}"], [at, sizes], rtol=0.08)
            np.testing.assert_allclose(data[f"{name} {i}"][1][-1], sizes[-1], rtol=1e-9)


def pareto_by_hand(row):
    """k̂ of log p(row | θ) (draws,): Zhang & Stephens' fit to the largest 3√n weights, with ArviZ's prior."""
    weights = np.exp(-row - (-row).max())
    order, m = np.argsort(-row), floor(3 * sqrt(len(row)))
    cut, tail = weights[order[-m - 1]], weights[order[-m:]]
    y, points = tail - cut, 30 + int(sqrt(m))
    b = 1 / y[-1] + (1 - np.sqrt(points / (np.arange(points) + 0.5))) / (3 * y[int(m / 4 + 0.5) - 1])
    k = np.array([np.log1p(-one * y).mean() for one in b])
    score = m * (np.log(-b / k) - k - 1)
    share = np.exp(score - score.max())
    share = np.where(share / share.sum() < 10 * np.finfo(float).eps, 0, share)
    fitted = np.log1p(-(b * share).sum() / share.sum() * y).mean()
    return (m * fitted + 5) / (m + 10)


@recomputes("pareto")
def pareto(key):
    made = stage(key, "posterior", [("hmc", {"step_size": 0.3}), ("hmc", {"step_size": 0.2})])
    made.view.compute(made.frame)
    assert made.view.background(made.frame)
    n, expected = made.target.n_data, []
    rows = np.linspace(0, n - 1, 300).round().astype(int)
    for one in made.raw:
        draws = one.theta[:WATCHED].reshape(-1, made.target.dim)
        some = draws[np.linspace(0, len(draws) - 1, min(len(draws), 2000, 1_000_000 // n)).astype(int)]
        found = np.array([pareto_by_hand(row) for row in made.target.log_likelihood(some)[:, rows].T])
        k, limit = int(np.argmax(found)), min(1 - 1 / log10(len(some)), 0.7)
        above = int((found > limit).sum())
        expected.append(
            f"{one.name}  k̂ up to {found[k]:.2f} (row {rows[k] + 1}), {above} of 300 rows above {limit:.2g}"
        )
    assert captions(made) == expected
    data = made.view.compute(made.frame)
    np.testing.assert_allclose(data["lane 1"], [rows + 1, found], rtol=1e-8)
    # The dashed line is the caption's limit: of so few draws .698, where .7 would be a fault.
    assert limit < 0.699
    np.testing.assert_allclose(data["limit 1"], [[limit]], rtol=1e-12)


@recomputes("bought")
def bought(key):
    lanes = [("sgld", {"step_size": 1e-3}), ("sgld", {"step_size": 1e-3})]
    made = stage(key, "linear_regression", lanes, {"items": 40}, gradients=["minibatch", "full"])
    columns, expected = made.target.columns, []
    for one in made.raw:
        d = np.mean([ks_by_hand(columns[k], one.values[..., k]) for k in range(2)])
        expected.append(f"{one.name}  KS {d:.3g}")
    assert [text.split("  KL")[0] for text in captions(made)] == expected
    data = made.view.compute(made.frame)
    steps = BURN_IN + BEFORE + AFTER
    assert data["lane 0"][0][-1] == steps * 10 and data["lane 1"][0][-1] == steps * 40


@recomputes("marginal")
def marginal(key):
    made = both(key)
    assert words(made) == means(made, [0])
    assert not any(map(NUMBER.search, captions(made)))
    data, column = made.view.compute(made.frame), made.target.columns[0]
    for i, one in enumerate(made.raw):
        x, heights = data[f"lane {i}"]
        width = x[1] - x[0]
        inside = [((one.values >= at - width / 2) & (one.values < at + width / 2)).mean() / width for at in x]
        np.testing.assert_allclose(heights, inside, atol=1e-9)
    assert width == pytest.approx((column.high - column.low) / 2048 * round(width / (column.high - column.low) * 2048))


@recomputes("variational")
def variational(key):
    """q by the steps in plain Python, with AdaGrad by hand, and KL(q‖p) of a gamma from a log-normal by its formula."""
    made = stage(key, "lognormal", ["geometric_ou", "sgrld"], {"mu": 0.3})
    while made.view.background(made.frame):
        pass
    mu, sigma, first = 0.3, 0.5, np.exp(0.3)
    steps = BURN_IN + BEFORE + AFTER

    class Model:
        n_data = 0

        @staticmethod
        def log_joint(log_x, grad):
            grad[:] = -1 - (log_x - mu) / sigma**2
            return 0.0

    class ByHand(GammaAscent):
        def textbook_change(self, ascent, g):
            ascent.velocity = 0.9 * ascent.velocity + 0.1 * g
            ascent.squares = ascent.squares + ascent.velocity**2
            return ascent.velocity / (1e-6 + np.sqrt(ascent.squares))

    ByHand.__abstractmethods__ = frozenset()
    method, state, rng = ByHand(), around(np.array([first])), np.random.Generator(np.random.SFC64(11))
    for _ in range(steps):
        method.textbook_step(rng, Model, state)
    (a,), (b,) = np.log(1 + np.exp(state.theta))
    m, v = special.digamma(a) - log(b), special.polygamma(1, a)
    log_p = -m - ((m - mu) ** 2 + v) / (2 * sigma**2) - log(sqrt(2 * np.pi) * sigma)
    kl = a * log(b) - special.gammaln(a) + (a - 1) * m - a - log_p
    column = made.target.columns[0]
    edges = bin_edges(column)
    gap = np.abs(special.gammainc(a, b * edges) - special.ndtr((np.log(edges) - mu) / sigma)).max()
    expected = []
    for one in made.raw:
        below = np.searchsorted(np.sort(one.values.ravel()), edges, side="left") / one.values.size
        expected.append(f"{one.name}  KS {np.abs(below - column.cdf(edges)).max():.2g}")
    assert captions(made) == [*expected, f"q  KL(q‖p) {kl:.2g}, KS {gap:.2g}, steps {steps:,}"]
    x, heights = made.view.compute(made.frame)["q"]
    density = stats.gamma(a, scale=1 / b).pdf(10**x) * 10**x * log(10)
    np.testing.assert_allclose(heights, density, atol=0.02 * density.max())


@recomputes("energies")
def energies(key):
    """U = θᵀΣ⁻¹θ/2 by hand, of the watched chains at the steps of the frame that the statistics count."""
    made = stage(key, "correlated_gaussian", [("sgld", {"step_size": 0.1}), "hmc"], {"rho": 0.6, "sd2": 1.5})
    inverse = np.linalg.inv([[1.0, 0.9], [0.9, 2.25]])

    def energy(x):
        return np.einsum("ni,ij,nj->n", x, inverse, x) / 2

    exact = energy(made.target.sample(1, 20_000))
    error = exact.std() / sqrt(len(exact))
    digits = -floor(log10(error))
    data, said = made.view.compute(made.frame), []
    for i, (one, lane) in enumerate(zip(made.raw, made.frame, strict=True)):
        n = one.theta.shape[1]
        at = np.rint(lane.fresh_x).astype(int) - (one.run.steps - n) - 1
        # The second lane's statistics began anew; the frame has older draws, too.
        assert (at.min() < 0) == (i == 1) and 0 < at.max() < n
        found = energy(one.theta[:WATCHED, at[at >= 0]].reshape(-1, 2))
        centres, heights = data[f"lane {i}"]
        width = centres[1] - centres[0]
        inside = [((found >= c - width / 2) & (found < c + width / 2)).mean() / width for c in centres]
        np.testing.assert_allclose(heights, inside, atol=1e-9)
        right = (found > centres[-1] + width / 2).mean()
        assert right < 0.05
        said.append(f"{one.name}  mean {found.mean():.{digits}f}, exact {exact.mean():.{digits}f} ± {error:.{digits}f}")
    assert captions(made) == said


def accepted(one):
    """The share of steps after which a chain is elsewhere."""
    path = np.concatenate([one.before[:, None], one.theta], axis=1)
    return float((path[:, 1:] != path[:, :-1]).any(axis=2).mean())


@recomputes("energy", "state")
def notes(key):
    if key == "energy":
        made = both(key)
        coordinates = [0]
    else:
        made = stage(key, "banana", [("sgld", {"step_size": 0.05}), ("hmc", {"step_size": 0.6, "n_leapfrog": 3})])
        coordinates = [0, 1]
    assert words(made) == means(made, coordinates)
    share = accepted(made.raw[1])
    assert 0.2 < share < 0.995
    assert captions(made)[0].split("\n")[0] == f"■ accepts {share:.0%}"


def clipped(step_size, b_hat, friction=None):
    """Whether no noise is left to be injected: 2ε < ε²B̂, or 2Cε < ε²B̂."""
    return step_size**2 * b_hat > 2 * step_size * (1 if friction is None else friction)


@recomputes("phase")
def phase(key):
    lanes = [("sggmc", {"step_size": 0.1, "friction": 1.0}), ("sggmc", {"step_size": 0.1, "friction": 1.0})]
    noise = {"key": "gaussian_corrected", "params": {"variance": 30.0}}
    made = stage(key, "gaussian", lanes, GAUSSIAN, gradients=["full", noise], change={"step_size": 0.08})
    assert words(made) == means(made, [0])
    assert clipped(0.08, 30.0, 1.0)
    assert captions(made) == ["■ injected noise set to 0 in 100% of steps: B̂ is too large"]


@recomputes("temperature")
def temperature(key):
    lanes = [("sggmc", {"step_size": 0.1, "friction": 1.5}), ("gsgnht", {"step_size": 0.1, "friction": 1.5})]
    noise = {"key": "gaussian", "params": {"variance": 8.0}}
    made = stage(key, "gaussian", lanes, GAUSSIAN, gradients=[noise, noise], each=True)
    made.view.compute(made.frame)
    one, two = made.raw
    heat = [float((raw.velocity[..., 0] ** 2).mean()) for raw in made.raw]
    # (2Cε + Vε²)/2Cε, with the halved step of the second lane.
    ratio = [1 + 8.0 * eps / (2 * 1.5) for eps in (0.1, 0.05)]
    xi = float(two.velocity[..., 1].mean())
    assert captions(made) == [
        f"{one.name}  ‖v‖²/m {heat[0]:.2f} (expected {ratio[0]:.2f})",
        f"{two.name}  ‖v‖²/m {heat[1]:.2f}  dashed ξ/C: ξ {xi:.3g}, C 1.5 (expected {1.5 * ratio[1]:.3g})",
        "",
    ]


@recomputes("thermostat")
def thermostat(key):
    lanes = [("gsgnht", {"step_size": 0.1, "friction": 1.5}), ("sgld", {"step_size": 0.1})]
    made = stage(key, "gaussian", lanes, GAUSSIAN)
    xi = made.raw[0].run.momentum[0, 1]
    assert captions(made) == [f"{made.raw[0].name}  ξ = {xi:.3g}", f"{made.raw[1].name}  no ξ"]
    first = made.view.compute(made.frame)["first 0"][0]
    np.testing.assert_array_equal(first, [1.5])


@recomputes("adaptation")
def adaptation(key):
    """In the state of HMC's chains the steps made, ε₀, m, H̄, x̄, ε stand behind the momentum, and last the variances."""
    lanes = [("hmc", {"adapt_steps": BURN_IN}), ("sgld", {"step_size": 0.1})]
    made = stage(key, "gaussian", lanes, GAUSSIAN)
    known = made.raw[0].run.momentum[:, 1:]
    made_so_far = BURN_IN + BEFORE + AFTER
    assert (known[:, 0] == made_so_far).all()
    eps, scale = stats.gmean(known[:, 5]), np.sqrt(known[:, -1].mean())
    name = made.raw[0].name
    assert captions(made) == [f"{name}  fixed: ε {eps:.3g}, scale {scale:.3g}", f"{made.raw[1].name}  does not adapt"]
    data = made.view.compute(made.frame)
    np.testing.assert_allclose([data["lane 0"][1][0], data["followed 0"][1][0]], [eps, known[:, 7].mean()])
    np.testing.assert_array_equal(data["wanted 0"][0], [0.651])
    assert made.view.compute(made.frame) == {}
    # Of MCLMC's chains behind the direction and the gradient; L is the seventh number.
    made = stage(key, "correlated_gaussian", [("mclmc", {"adapt_steps": BURN_IN}), lanes[1]])
    known = made.raw[0].run.momentum[:, 4:]
    eps, length = stats.gmean(known[:, 5]), known[:, 6].mean()
    assert captions(made)[0] == f"{made.raw[0].name}  fixed: ε {eps:.3g}, L {length:.3g}"
    data = made.view.compute(made.frame)
    # Later steps measure no energy error.
    np.testing.assert_allclose([data["lane 0"][1], data["length 0"][1]], [[eps], [length]])
    assert "followed 0" not in data
    assert data["wanted 0"][0].size == 0 and np.isfinite(data["y"][0]).all()


@recomputes("rungs")
def rungs(key):
    """A swap of every chain is proposed at every step, the burn-in's too; a view that saw no change counts all."""
    lanes = [("parallel_tempering", {"rungs": 3, "hottest": 4.0}), ("resgld", {"rungs": 2, "hottest": 9.0})]
    made = stage(key, "double_well", lanes)
    data, expected = made.view.compute(made.frame), []
    for i, (one, heat) in enumerate(zip(made.raw, ("1, 2, 4", "1, 9"), strict=True)):
        # θ of a hotter rung, the swaps proposed, those made.
        blocks = one.run.momentum.reshape(N_CHAINS, -1, 3)
        proposed, swaps = blocks[..., 1].sum(axis=0), blocks[..., 2].sum(axis=0)
        assert (
            proposed.sum() == N_CHAINS * (BURN_IN + BEFORE + AFTER) and (swaps > 0).all() and (swaps < proposed).all()
        )
        expected.append(f"{one.name}  T {heat}; swaps {', '.join(f'{x:.0%}' for x in swaps / proposed)}")
        x = np.column_stack([one.theta[:, -1, 0], blocks[..., 0]])[:WATCHED]
        np.testing.assert_array_equal(data[f"lane {i}"][0], x.ravel())
        np.testing.assert_array_equal(np.round(data[f"lane {i}"][1]), np.tile(np.arange(x.shape[1]) + 1, len(x)))
    assert captions(made) == expected
    # From a change that it saw on it counts anew, and joins the rungs that have swapped since.
    run, base = made.raw[0].run, made.raw[0].run.momentum.reshape(N_CHAINS, -1, 3)[..., 1:].sum(axis=0)
    changed(run, hottest=8.0)
    run.advance(30)
    before = made.view._before[0][0, :, -1].copy()
    data = made.view.compute(frames(made.records))
    blocks = run.momentum.reshape(N_CHAINS, -1, 3)
    share = (blocks[..., 2].sum(axis=0) - base[:, 1]) / (blocks[..., 1].sum(axis=0) - base[:, 0])
    said = made.view.captions(made.frame).values()
    assert next(iter(said)) == f"{made.raw[0].name}  T 1, 2.83, 8; swaps {', '.join(f'{x:.0%}' for x in share)}"
    assert len(data["swaps 0"][0]) == (blocks[0, :, 2] > before).sum()


@recomputes("contour")
def contour(key):
    """U = θᵀΣ⁻¹θ/2 by hand; p and the weights of the draws from the auxiliary variables of each chain.

    The weight of a draw is Ψᶻ at its energy: log Ψ is linear between the upper ends of the bins.
    """
    params = {
        "step_size": 0.05,
        "adapt_steps": BURN_IN,
        "n_bins": 8,
        "width": 0.5,
        "zeta": 0.9,
        "rate": 10.0,
        "delay": 20.0,
    }
    made = stage(
        key, "correlated_gaussian", [("contour_sgld", params), "hmc"], {"rho": 0.6, "sd2": 1.5}, {"step_size": 0.02}
    )
    inverse = np.linalg.inv([[1.0, 0.9], [0.9, 2.25]])

    def energy(x):
        return np.einsum("...i,ij,...j->...", x, inverse, x) / 2

    data, edges, one = made.view.compute(made.frame), np.arange(9) / 2, made.raw[0]
    levels = one.run.momentum[:, 3:11]
    p = np.exp(levels) / np.exp(levels).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(data["learnt 0"], [edges[:-1] + 0.25, p.mean(axis=0) / 0.5])
    exact = np.histogram(energy(made.target.sample(1, 20_000)), edges)[0] / 20_000 / 0.5
    np.testing.assert_allclose(data["exact"][1], exact, atol=1e-9)
    at = np.rint(made.frame[0].fresh_x).astype(int) - (one.run.steps - one.theta.shape[1]) - 1
    found = energy(one.theta[:WATCHED, at[at >= 0]].reshape(-1, 2))
    np.testing.assert_allclose(data["lane 0"][1], np.histogram(found, edges)[0] / found.size / 0.5, atol=1e-9)
    w = np.array([np.exp(0.9 * np.interp(energy(x), edges[1:], own)) for x, own in zip(one.theta, levels, strict=True)])
    worth = w.sum() ** 2 / (w**2).sum() / w.size
    assert worth < 0.9 and "lane 1" not in data
    said = [f"{one.name}  worth {worth:.0%} of its draws", f"{made.raw[1].name}  no weights of energies"]
    assert captions(made) == said
    other = VIEWS["energies"].made(scene_of(made.records))
    other.compute(made.frame)
    assert ["without weights" in text for text in other.captions(made.frame).values()] == [True, False]
    before = records("correlated_gaussian", [("contour_sgld", params), "hmc"], N_CHAINS, {"rho": 0.6, "sd2": 1.5})
    before[0].run.advance(3)
    assert next(iter(made.view.captions(frames(before)).values())).endswith(f"learns, step 3 of {BURN_IN}")


@recomputes("coupling")
def coupling(key):
    """The mean of the estimates of all batches but the first, its error, and the histogram of all meeting times."""
    made = stage(key, "correlated_gaussian", ["rwm", "mala"], coordinate=1)
    view = made.view
    while any(view._made.get(i) is None or view._made[i].n < 100 for i in range(2)):
        view.background(made.frame)
    expected, data = [], view.compute(made.frame)
    for i, one in enumerate(made.raw):
        found = view._made[i]
        # The moments are E θ₁, Var θ₁, E θ₂, …
        each = np.concatenate(found.estimates)[:, 2]
        error = sqrt(((each - each.mean()) ** 2).sum() / (len(each) - 1) / len(each))
        k = max(found.meeting[0]) + 1
        said = f"{len(each)} pairs, k = {k}, m = {5 * k}: E θ₂ {each.mean():.3f} ± {error:.3f}, exactly 0.000"
        expected.append(f"{'●■'[i]}\u00a0{one.name}: {said}")
        x, height = data[f"lane {i}"]
        times = np.concatenate(found.meeting)
        inside = (times <= x[-1]).mean()
        assert height[::2].sum() == pytest.approx(inside) and inside > 0.9
    (text,) = captions(made)
    assert re.sub("<[^>]*>", "", text.replace("<br>", "\n")).replace("&nbsp;", "\u00a0").split("\n") == expected
    # The pair that is shown ends where both chains are at the same place.
    while len(view._path) == 0 or view._frame < len(view._path):
        data = view.compute(made.frame)
    np.testing.assert_array_equal(data["first"][0][-1], data["second"][0][-1])
    assert data["first"][0][0] != data["second"][0][0]


@recomputes("circle", "globe", "torus", "frames")
def on_manifolds(key):
    target, params = {
        "circle": ("von_mises", None),
        "globe": ("fisher", None),
        "torus": ("mises_posterior", None),
        "frames": ("matrix_langevin", None),
    }[key]
    step = 0.02 if key == "torus" else 0.8
    made = stage(key, target, [("sggmc", {"step_size": 0.02}), ("gmc", {"step_size": step, "n_leapfrog": 3})], params)
    share = accepted(made.raw[1])
    assert captions(made)[0].split("\n")[0] == f"■ accepts {share:.0%}"
    if words(made):
        assert words(made) == means(made, range(made.target.n_values))


@recomputes("components")
def components(key):
    made = stage(key, "sparse_dirichlet", ["scir", "sgrld"])
    assert words(made) == means(made, range(8))
    assert captions(made) == []
    data = made.view.compute(made.frame)
    for i, one in enumerate(made.raw):
        _, *quantiles, _ = data[f"lane {i}"]
        logs = np.log10(np.maximum(one.values.reshape(-1, made.target.n_values), 1e-300))
        inside = logs.min(axis=0) > np.log10(made.target.columns[0].low) + 0.1
        for level, found in zip((0.05, 0.25, 0.5, 0.75, 0.95), quantiles, strict=True):
            # To a bin of the log axis and what draws leave between two ranks.
            exact = np.quantile(logs, level, axis=0)
            assert (
                np.abs(found - exact)[inside & (exact > np.log10(made.target.columns[0].low) + 0.1)].max(initial=0.0)
                < 0.06
            )


@recomputes("fit")
def fit(key):
    """Two groups of chains that stand still far apart: the band is of all of them, not of the last."""
    made = stage(
        key, "linear_regression", [("sgld", {"step_size": 1e-3}), ("sgld", {"step_size": 1e-3})], {"items": 40}
    )
    assert words(made) == f"{len(made.target.fit().data)} data; {means(made, [0, 1])}"
    for record in made.records:
        record.run.position[:4], record.run.position[4:] = [3.0, 3.0], [-3.0, -3.0]
        changed(record.run, step_size=1e-6)
        record.run.advance(500)
    data, fitted = made.view.compute(frames(made.records)), made.target.fit()
    mean = made.target.mean
    for i, record in enumerate(made.records):
        draws = record.run.kept  # no longer kept: their number is that of the first stretch
        assert draws.shape[1] == BEFORE + AFTER
        theta = np.concatenate([np.full((4, 2), 3.0), np.full((4, 2), -3.0)])
        # A line through 0 along the posterior's mean: θ·m/‖m‖² at 1.
        curves = (theta @ mean / (mean @ mean))[:, None] * fitted.grid
        low, high = np.quantile(curves, (0.05, 0.95), axis=0)
        np.testing.assert_allclose(data[f"band {i}"][1], low, atol=0.2)
        np.testing.assert_allclose(data[f"band {i}"][2], high, atol=0.2)
        assert (high - low).max() > 1.5


@recomputes("gradient_noise")
def gradient_noise(key):
    lanes = [("sgld", {"step_size": 1e-4}), ("sgld", {"step_size": 1e-4})]
    batch = [
        {"key": "minibatch", "params": {"batch_size": 5}},
        {"key": "minibatch_fisher", "params": {"batch_size": 8, "replacement": False}},
    ]
    made = stage(key, "linear_regression", lanes, {"items": 40}, gradients=batch)
    expected = []
    for one, n, replacement in zip(made.raw, (5, 8), (True, False), strict=True):
        (x, y), theta = (made.target.observations[:, :2], made.target.observations[:, 2]), one.theta[0, -1]
        # Each data point's gradient, in place of all 40; the prior is the same in each.
        each = -40 * (y - x @ theta)[:, None] * x
        v = each.var(axis=0).mean() / n * (1.0 if replacement else (40 - n) / 39)
        expected.append(f"{one.name}  V {v:.3g}" + ("" if replacement else f", subtracted {v:.3g}"))
    assert captions(made) == expected


LINE = {
    "table": "outliers",
    "parameters": "a, b, s > 0",
    "prior": "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 1) + lognormal_lpdf(s, -1, 0.2)",
    "row": "normal_lpdf(y, a + b*x, s)",
    "curve": "a + b*x",
}
COUNTS = {
    "table": "counts",
    "parameters": "a",
    "prior": "normal_lpdf(a, 0, 3)",
    "row": "poisson_log_lpmf(y, a)",
    "curve": "",
}


@recomputes("posterior_predictive", "prior_predictive")
def predictive(key):
    """From the data sets that it made: with counts the least and the largest often tie with the data's."""
    for params in (LINE, COUNTS):
        made = stage(key, "posterior", [("sgld", {"step_size": 1e-3}), ("sgld", {"step_size": 1e-3})], params)
        taken, take = {}, made.view.take
        made.view.take = lambda i, sets, taken=taken, take=take: taken.update({i: sets}) or take(i, sets)
        made.view.background(made.frame)
        y = made.view.y
        expected, tied = [], False
        for i, sets in sorted(taken.items()):
            said = []
            for name, of in (("mean", np.mean), ("sd", np.std), ("min", np.min), ("max", np.max)):
                mine = np.array([of(one) for one in sets])
                tied |= bool((mine == of(y)).any())
                said.append(f"{name} {np.mean([a > of(y) or a == of(y) for a in mine]):.2f}")
            lane = f"{made.raw[i].name}  " if key == "posterior_predictive" else ""
            expected.append(f"{lane}p  {', '.join(said)}")
        assert captions(made) == expected
        assert tied == (params is COUNTS)
        if key == "prior_predictive":
            low, high = np.quantile(np.concatenate(taken[0]), (0.05, 0.95))
            assert (
                words(made)
                == f"nine tenths of {made.view.outcome} lie from {low:.3g} to {high:.3g}; those of the data from {y.min():.3g} to {y.max():.3g}"
            )


def binomial_quantile(level, n, p):
    below = 0.0
    for k in range(n + 1):
        below += comb(n, k) * p**k * (1 - p) ** (n - k)
        if below >= level:
            return k
    return n


@recomputes("calibration")
def calibration(key):
    """The ranks of 200 and of 150 runs, which are given to the lanes; .99 of the heights are in the band by chance."""
    made = stage(key, "posterior", [("sgld", {"step_size": 1e-3}), ("sgld", {"step_size": 1e-3})], LINE)
    view, rng, k = made.view, np.random.default_rng(3), made.view.scene.coordinate
    ranks = [rng.integers(64, size=(n, 3)) for n in (200, 150)]
    for i, each in enumerate(ranks):
        found = Calibration(tuple("abs"), each)
        view._replicas[i] = SimpleNamespace(ranks=list(each), failed=3 * i, done=1000, found=lambda found=found: found)
    view._fresh = True
    expected, data = [], view.compute(made.frame)
    for i, each in enumerate(ranks):
        n = len(each)
        # Sixteen bins of four of the 64 ranks.
        counts = np.array([sum(4 * b <= rank < 4 * b + 4 for rank in each[:, k]) for b in range(16)])
        p = special.gammaincc(15 / 2, ((counts - n / 16) ** 2 / (n / 16)).sum() / 2)
        expected.append(f"{made.raw[i].name}  {n} runs, p {p:.2g}" + ("; 3 diverged" if i else ""))
        np.testing.assert_allclose(data[f"lane {i}"][1], np.repeat(counts / n * 16, 2))
    assert captions(made) == expected
    low, high = (binomial_quantile(level, 150, 1 / 16) / 150 * 16 for level in (0.005, 0.995))
    np.testing.assert_allclose([data["band"][1][0], data["band"][2][0]], [low, high], rtol=1e-12)
    assert binomial_quantile(0.99, 150, 1 / 16) != binomial_quantile(0.995, 150, 1 / 16)


@recomputes("moments")
def ensembles(key):
    made = stage(key, "sparse_dirichlet", ["scir", "sgrld"], {"dimension": 4, "alpha": 1.0, "observed": (20, 10)})
    made.view.background(made.frame)
    made.view.background(made.frame)
    found = made.view._results[0]
    n = found.key.spec.n_chains
    assert f"{found.batches * n:,} chains" in re.sub("<[^>]*>", "", captions(made)[0])
    assert n == 500
    data = made.view.compute(made.frame)
    # The same chains again, all at once: the means of batches of one size are those of all.

    positions = []
    for b in range(found.batches):
        run = Run(replace(found.key.spec, seed=(found.key.spec.seed * 1000 + b) % 2**32, burn_in=1000))
        run.advance(10)
        positions.append(run.position[:, 0].copy())
    x = np.array(positions)
    at = list(data["lane 0"][0]).index(10.0)
    _, mean, low, high, variance, *_ = (column[at] for column in data["lane 0"])
    assert mean == pytest.approx(x.mean()) and variance == pytest.approx(x.var(axis=1, ddof=1).mean())
    error = sqrt((x.var(axis=1, ddof=1) / n).sum()) / len(x)
    np.testing.assert_allclose([low, high], [mean - 2 * error, mean + 2 * error], rtol=1e-9)


@recomputes("mgf")
def generating(key):
    made = stage(key, "sparse_dirichlet", ["scir", "cir"], {"dimension": 4, "alpha": 1.0, "observed": (20, 10)})
    made.view.background(made.frame)
    said = re.sub("<[^>]*>", "", captions(made)[0])
    for found in made.view._results:
        assert f"{found.batches * found.spec.n_chains:,} chains" in said

    found, values = made.view._results[0], []
    data = made.view.compute(made.frame)
    s = data["lane 1 0"][0]
    for b in range(found.batches):
        run = Run(replace(found.spec, seed=(found.spec.seed * 1000 + b) % 2**32, burn_in=1000))
        run.advance(6)
        values.append(np.exp(s[:, None] * run.position[:, 0]))
    values = np.concatenate(values, axis=1)
    _, mean, low, high = data["lane 1 0"]
    error = values.std(axis=1) / sqrt(values.shape[1])
    np.testing.assert_allclose(mean, values.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose([low, high], [mean - 2 * error, mean + 2 * error], rtol=1e-6, atol=1e-9)


@recomputes("order")
def order(key):
    """Biases that are exactly .7ε² and .02ε, known to a hundredth: slopes of 2 and of 1, by least squares by hand."""
    made = both(key)
    steps = np.array([0.1, 0.14, 0.2, 0.28])
    found = []
    for power, size in ((2, 0.7), (1, 0.02)):
        bias = size * steps**power
        good = np.ones((len(steps), 2), dtype=bool)
        found.append(Found(steps, np.column_stack([bias, bias]), 0.01 * np.column_stack([bias, bias]), good, good))
    made.view._found, made.view._fresh = found, True
    made.view._rungs = [[SimpleNamespace(means=[0] * FEWEST, run=SimpleNamespace(divergence=None))] for _ in found]
    x = np.log(steps) - np.log(steps).mean()
    # A bias that is known better than to a twentieth counts as if to that.
    error = 0.05 / sqrt((x**2).sum())
    lines = captions(made)[0].split("\n")
    assert [line.split("slope ")[1][:11] for line in lines[1:]] == [f"{p:.2f} ± {error:.2f}" for p in (2, 1)]
    data = made.view.compute(made.frame)
    np.testing.assert_allclose(data["dots 1"][1], 0.02 * steps)
    np.testing.assert_allclose(data["bars 0"][2] - data["bars 0"][1], 4 * 0.01 * 0.7 * steps**2)


# --- views of models: from the state of each chain, or from what was drawn, as the snapshot has it --------------------

BARS = "?target=topics(corpus:bars;n_topics:10)"
NETWORK = "?target=network(graph:blocks;n_communities:6)"
IRIS = "?target=clusters(points:iris)"
ON_SPHERE = "?target=sphere_clusters(items:150)"
MIXTURE = "?target=mixture(documents:80)"
FACTORS = "?target=factors(rows:30;n_factors:12)"
SPHERICAL = "?target=spherical"


def page(key, query, methods, n_steps=6, axis="data"):
    """The view with each of these methods in a lane, after so many steps; the second lane is the one that is shown."""
    state = open_link(query + "".join(f"&lane={name}" for name in methods))[0]
    model = load(state.experiment)
    runs = start(state.experiment, model)
    for run in runs:
        run.advance(n_steps)
    view = build(key, state, model, axis=axis)
    frame = Frame((MethodRecord(run).frame(axis) for run in runs), min(1, len(runs) - 1))
    view.compute(frame)
    return SimpleNamespace(
        view=view,
        frame=frame,
        model=model,
        states=[run.chains[0].state for run in runs],
        runs=runs,
        seen=[frame.snapshot(i) for i in range(len(frame))],
        names=view.scene.lanes,
    )


def order_of(values):
    """Places from the largest value to the smallest; of equal ones the first comes first."""
    return sorted(range(len(values)), key=lambda k: (-values[k], k))


def agreement_of(found, known):
    """The adjusted Rand index, pair of points by pair of points, and the purity."""
    both = one = two = 0
    n = len(found)
    for i, j in combinations(range(n), 2):
        a, b = found[i] == found[j], known[i] == known[j]
        both, one, two = both + (a and b), one + a, two + b
    chance = one * two / (n * (n - 1) / 2)
    rand = (both - chance) / ((one + two) / 2 - chance)
    pure = sum(max(np.sum((found == k) & (known == g)) for g in np.unique(known)) for k in np.unique(found)) / n
    return rand, pure


def mutual_information(found, known):
    """2 I(A; B)/(H(A) + H(B)), from shares counted one by one."""
    n = len(found)
    joint = {}
    for pair in zip(found.tolist(), known.tolist(), strict=True):
        joint[pair] = joint.get(pair, 0) + 1 / n
    a, b = (
        {k: sum(p for pair, p in joint.items() if pair[at] == k) for k in {pair[at] for pair in joint}} for at in (0, 1)
    )
    entropies = [-sum(p * log(p) for p in each.values()) for each in (a, b)]
    shared = sum(p * log(p / a[x] / b[y]) for (x, y), p in joint.items())
    return 2 * shared / sum(entropies)


def npmi_of(model, top_words):
    """The mean NPMI over the pairs of a topic's words, by the definition, training document by training document."""
    offsets, n = model.training.offsets, model.training.n_documents
    documents = [set(model.training.words[offsets[d] : offsets[d + 1]].tolist()) for d in range(n)]
    found = []
    for i, j in combinations(top_words.tolist(), 2):
        one, other, both = (sum(some <= document for document in documents) / n for some in ({i}, {j}, {i, j}))
        found.append(log(both / (one * other)) / -log(both) if both else -1.0)
    return sum(found) / len(found)


@recomputes("words")
def topic_words(key):
    made = page(key, BARS, ["lda_scir", "collapsed_gibbs"])
    state, phi, vocabulary = made.states[1], made.seen[1]["phi"], made.model.vocabulary
    shares = np.array([(state.topics == k).mean() for k in range(10)])
    npmi = [npmi_of(made.model, words) for words in made.seen[1]["top_words"]]
    expected = [
        f"topic {k + 1}, {shares[k]:.1%}, NPMI {npmi[k]:.2f}: {', '.join(vocabulary[w] for w in order_of(phi[k])[:5])}"
        for k in order_of(shares)[:8]
    ]
    found = words(made).split("; ")
    assert [each.split(":")[0] for each in found] == [each.split(":")[0] for each in expected]
    # Of words that are as likely the order is free.
    for one, two in zip(found, expected, strict=True):
        k = int(one.split(",")[0].split()[1]) - 1
        chances = [[phi[k][vocabulary.index(w)] for w in each.split(": ")[1].split(", ")] for each in (one, two)]
        np.testing.assert_allclose(*chances, rtol=1e-9)
    data = made.view.compute(made.frame)
    heads, (right, y, shown) = data["heads"], data["coherences"]
    np.testing.assert_array_equal(heads[4], np.round(1000 * shares[heads[2].astype(int)]))
    np.testing.assert_array_equal([right, y], [heads[3], heads[1]])
    texts = [HUNDREDTHS[int(place)].rstrip() for place in shown]
    assert texts == [short(f"{npmi[int(k)]:.2f}") for k in heads[2]]


def short(number):
    """A number of hundredths without the 0 before its point."""
    return number.replace("-", "−").replace("0.", ".")


@recomputes("coherence")
def coherence(key):
    made = page(key, BARS, ["lda_scir", "collapsed_gibbs"])
    data = made.view.compute(made.frame)
    for i, (seen, said) in enumerate(zip(made.seen, captions(made), strict=True)):
        value = sum(npmi_of(made.model, words) for words in seen["top_words"]) / 10
        assert said == f"{made.names[i]}  {value:.3f}"
        # A point for each score but the one before the first step, which a log axis cannot show.
        x, y = data[f"method {i}"]
        assert x.tolist() == [score.data_seen for score in made.runs[i].chains[0].scores[1:]]
        assert y[-1] == pytest.approx(value)


@recomputes("pictures")
def pictures(key):
    made = page(key, BARS, ["lda_scir", "collapsed_gibbs"], n_steps=60)
    phi, true = made.seen[1]["phi"], made.model.true_topics
    found = sum(any(0.5 * abs(row - one).sum() <= 0.2 for one in phi) for row in true)
    assert captions(made) == [f"true topics found: {found} of {len(true)}"] and len(true) == 10


@recomputes("sparsity")
def sparsity(key):
    made = page(key, BARS, ["lda_scir", "collapsed_gibbs"])
    for i, (seen, said) in enumerate(zip(made.seen, captions(made), strict=True)):
        edges, counts = seen["sparsity_edges"], seen["sparsity"]
        tiny = sum(c for c, right in zip(counts, edges[1:], strict=True) if right <= -10 + 1e-12) / sum(counts)
        assert said == f"{made.names[i]}  {tiny:.1%} below 10⁻¹⁰"
    assert made.seen[0]["sparsity"].sum() == made.seen[0]["phi"].size


@recomputes("documents")
def documents(key):
    made = page(key, BARS, ["lda_scir", "collapsed_gibbs"])
    seen = made.seen[1]
    first = {int(d): row for d, row in zip(seen["documents"], seen["proportions"], strict=True)}
    shown = [d for d in first if d < made.view._n][:8]
    titles = made.model.training.titles
    assert words(made) == "; ".join(
        f"{titles[d]}: topic {int(np.argmax(first[d])) + 1}, {max(first[d]):.0%}" for d in shown
    )
    if made.model.training.labels is None:
        assert captions(made) == []
    made.view._labels = np.arange(made.model.training.n_documents) % 3
    made.view._caption = made.view.caption(made.view.figure)
    commonest = np.array([np.argmax(row[:10]) for row in made.states[1].counts])
    made.frame.snapshot(1)["document_topics"] = commonest
    nmi = mutual_information(commonest, made.view._labels)
    assert captions(made) == [f"commonest topic and label of all documents: NMI {nmi:.2f}"]


@recomputes("scores")
def scores(key):
    for query, methods in ((BARS, ["lda_scir", "collapsed_gibbs"]), (NETWORK, ["network_gibbs", "network_irm"])):
        made = page(key, query, methods)
        for i, run in enumerate(made.runs):
            values = [chain.scores[-1].value for chain in run.chains]
            value = sum(values) / len(values)
            shown = f"{value:.3f}" if made.model.higher_is_better else f"{float(f'{value:.4g}'):,g}"
            assert captions(made)[i] == f"{made.names[i]}  {shown}"


@recomputes("batch")
def batch(key):
    made = page(key, "?target=clusters(points:iris)", ["cluster_minibatch(batch_size:0;trial:20)"], n_steps=4000)
    seen = made.seen[0]
    # f(m) = (m + w_θ/w_z)τ.
    ratio = made.runs[0].chains[0].method.cost_ratio
    f = (seen["batch_sizes"] + ratio) * seen["tau"]
    np.testing.assert_allclose(seen["objective"], f)
    known = [k for k in range(len(f)) if np.isfinite(f[k])]
    best = min(known, key=lambda k: f[k]) if known else int(np.argmax(seen["batch_sizes"]))
    slow = len(f) - len(known)
    whole = int(np.argmax(seen["batch_sizes"]))
    text = f"chosen: m = {seen['batch_sizes'][best]}"
    if whole in known:
        text += (
            "; none smaller is cheaper"
            if best == whole
            else f"; using all costs {f[whole] / f[best]:.2g} ×"
            if f[whole] >= 1.25 * f[best]
            else "; using all costs hardly more"
        )
    text += f"\n{len(f)} tried" + (f"; {slow} mixed too slowly to tell (△)" if slow else "")
    assert captions(made) == [text]
    if known:
        data = made.view.compute(made.frame)
        assert data["best"][0][0] == seen["batch_sizes"][best] and data["best"][1][0] == f[best]


@recomputes("adjacency")
def adjacency(key):
    made = page(key, NETWORK, ["network_irm", "network_gibbs"])
    seen, n = made.seen[1], len(made.model.shown)
    of = seen["community"][made.model.shown]
    inside = [seen["P"][i, j] for i in range(n) for j in range(n) if i != j and of[i] == of[j]]
    outside = [seen["P"][i, j] for i in range(n) for j in range(n) if of[i] != of[j]]
    assert (
        words(made)
        == f"mean probability of an edge: {np.mean(inside):.2g} within communities, {np.mean(outside):.2g} between them"
    )
    state = made.states[1]
    rate = sum(state.r[k] * state.w[made.model.shown[0], k] * state.w[made.model.shown[1], k] for k in range(6))
    assert seen["P"][0, 1] == pytest.approx(1 - np.exp(-rate))


@recomputes("graph")
def graph(key):
    made = page(key, NETWORK, ["network_irm", "network_gibbs"])
    state = made.states[1]
    # Through which community a node has most edges: r_k w_ik Σ_j w_jk.
    of = np.array([np.argmax([state.r[k] * w[k] * state.w[:, k].sum() for k in range(6)]) for w in state.w])
    groups = made.model.data.groups
    nmi = mutual_information(of, groups)
    assert captions(made) == [
        f"communities with nodes: {len(set(of.tolist()))}\nagreement with the {len(set(groups.tolist()))} known groups: {nmi:.2f} of 1"
    ]


@recomputes("rates")
def rates(key):
    made = page(key, NETWORK, ["network_irm", "network_gibbs"])
    state = made.states[1]
    pairs = [(i, j) for i in range(len(state.w)) for j in range(i)]
    edges = [state.r[k] * sum(state.w[i, k] * state.w[j, k] for i, j in pairs) for k in range(6)]
    assert captions(made)[1] == f"{made.names[1]}  {sum(e >= 0.5 for e in edges)} of 6 in use"
    heights = made.view.compute(made.frame)["method 1"][1]
    np.testing.assert_allclose(
        heights, np.clip(np.log10(sorted(np.maximum(edges, 1e-300), reverse=True)), -12, 4), atol=1e-6
    )


@recomputes("weights")
def weights(key):
    made = page(key, NETWORK, ["network_irm", "network_gibbs"])
    state = made.states[1]
    total, square = state.w.sum(axis=0), (state.w**2).sum(axis=0)
    edges = state.r * (total**2 - square) / 2
    said = ", ".join(f"{k + 1}: {edges[k]:.3g}" for k in order_of(edges)[:8])
    assert words(made) == f"edges that communities explain: {said}"


@recomputes("elbo")
def elbo(key):
    made = page(key, NETWORK, ["network_gibbs", "network_sgvb"], n_steps=20)
    assert captions(made) == [f"{made.names[1]}  {made.seen[1]['elbo'][-1]:,.0f}"]
    steps, values = made.seen[1]["elbo_steps"], np.array(made.states[1].elbo)
    assert steps[-1] == 20 and len(values) == 20
    last = values[-max(1, 20 // len(steps)) :].mean() if len(steps) < 20 else values[-1]
    assert made.seen[1]["elbo"][-1] == pytest.approx(last, rel=0.5)


@recomputes("cluster_points")
def cluster_points(key):
    made = page(key, IRIS, ["cluster_minibatch", "cluster_collapsed"])
    state, known = made.states[1], made.model.groups
    sizes = sorted((int((state.z == k).sum()) for k in np.unique(state.z)), reverse=True)
    rand, pure = agreement_of(state.z, known)
    assert captions(made) == [
        f"α = {state.alpha[0]:.2g}; known groups: {len(set(known.tolist()))}\n"
        f"adjusted Rand {rand:.3f}, purity {pure:.3f}"
    ]
    assert words(made) == f"clusters: {len(sizes)}; points in the largest: " + ", ".join(map(str, sizes[:8]))
    # An ellipse of a Gaussian that holds .9 of it: χ² with two degrees of freedom.
    data = made.view.compute(made.frame)
    x0, y0, *_ = data["ellipses"]
    # The number that is drawn is that of the same frame's ellipses, whenever captions are written.
    assert [len(x0) / 40] == list(data["number"][2]) == [len(sizes)]
    apart = np.column_stack([x0[:40], y0[:40]]) - made.seen[1]["means"][0]
    square = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(made.seen[1]["covariances"][0]), apart)
    np.testing.assert_allclose(square, stats.chi2.ppf(0.9, 2))


@recomputes("sphere_points")
def sphere_points(key):
    made = page(key, ON_SPHERE, ["sphere_minibatch", "sphere_collapsed"])
    state, known, x = made.states[1], made.model.groups, made.model.x
    sizes = sorted((int((state.z == k).sum()) for k in np.unique(state.z)), reverse=True)
    rand, pure = agreement_of(state.z, known)
    assert captions(made) == [
        f"clusters: {len(sizes)}, α = {state.alpha[0]:.2g}; known groups: {len(set(known.tolist()))}\n"
        f"adjusted Rand {rand:.3f}, purity {pure:.3f}"
    ]
    assert words(made) == f"clusters: {len(sizes)}; points in the largest: " + ", ".join(map(str, sizes[:8]))
    data = made.view.compute(made.frame)
    assert [len(data[f"cluster {letter}"][0]) for letter in "abcdefghij"] == (sizes + [0] * 10)[:10]
    assert len(data["others"][0]) == sum(sizes[10:])
    # On S² the globe's directions are the columns; the largest cluster's ring is where its prior and points pull it.
    largest = max(np.unique(state.z), key=lambda k: (state.z == k).sum())
    pull = 0.1 * made.model.prior_mean + 40 * x[state.z == largest].sum(axis=0)
    rings = np.array(data["means"]).T
    assert np.abs(rings - pull / np.linalg.norm(pull)).sum(axis=1).min() < 1e-9
    crosses = [x[known == k].mean(axis=0) for k in np.unique(known)]
    np.testing.assert_allclose(np.array(data["truth"]).T, [each / np.linalg.norm(each) for each in crosses])


CLUSTER_PAGES = {
    "cluster": (IRIS, ["cluster_minibatch", "cluster_collapsed"]),
    "sphere": (ON_SPHERE, ["sphere_minibatch", "sphere_collapsed"]),
    "mixture": (MIXTURE, ["mixture_scir", "mixture_gibbs"]),
}


@recomputes("cluster_sizes", "sphere_sizes", "mixture_sizes")
def cluster_sizes(key):
    query, methods = CLUSTER_PAGES[key.split("_")[0]]
    made = page(key, query, methods)
    expected, groups = [], made.model.groups
    for name, state in zip(made.names, made.states, strict=True):
        text = f"{name}  K = {len(set(state.z.tolist()))}, α = {state.alpha[0]:.2g}"
        if key == "mixture_sizes" and groups is not None:
            text += f", adjusted Rand {round(agreement_of(state.z, groups)[0], 2) + 0.0:.2f}"
        expected.append(text)
    assert captions(made) == expected
    z = made.states[1].z
    sizes = sorted(((z == k).mean() for k in np.unique(z)), reverse=True)[:20]
    np.testing.assert_allclose(made.view.compute(made.frame)["method 1"][1], np.maximum(np.log10(sizes), -4))


@recomputes("together", "sphere_together", "mixture_together")
def together(key):
    query, methods = CLUSTER_PAGES["cluster" if key == "together" else key.split("_")[0]]
    state = open_link(query + "".join(f"&lane={name}" for name in methods))[0]
    model = load(state.experiment)
    runs = start(state.experiment, model)
    shown, pairs = model.shown, {}
    for _ in range(15):
        for run in runs:
            run.advance(1)
        z = runs[1].chains[0].state.z
        for i, j in combinations(range(len(shown)), 2):
            pairs[i, j] = pairs.get((i, j), 0) + (z[shown[i]] == z[shown[j]])
    view = build(key, state, model)
    frame = Frame((MethodRecord(run).frame("data") for run in runs), 1)
    unsure = np.mean([0.05 < times / 15 < 0.95 for times in pairs.values()])
    assert list(view.captions(frame).values()) == [
        f"{len(shown)} {model.data_name}; pairs together in 5 to 95 % of the steps: {unsure:.0%}"
    ]


@recomputes("mixture_words")
def mixture_words(key):
    made = page(key, MIXTURE, ["mixture_scir", "mixture_gibbs"])
    state, vocabulary = made.states[1], made.model.vocabulary
    labels = sorted(set(state.z.tolist()), key=lambda k: (-(state.z == k).sum(), k))
    found = words(made).split("; ")
    assert len(found) == min(8, len(labels))
    shares = sorted(((state.z == k).mean() for k in labels), reverse=True)
    assert [each.split(", ")[1].split(":")[0] for each in found] == [f"{share:.1%}" for share in shares[:8]]
    for one, k in zip(found, labels, strict=False):
        theta = state.theta[:, k]
        mine = [theta[vocabulary.index(w)] for w in one.split(": ")[1].split(", ")]
        if (np.bincount(state.z)[k] == np.bincount(state.z)).sum() == 1:
            np.testing.assert_allclose(mine, sorted(theta, reverse=True)[:5])


def amari_of(found, known):
    n = known.shape[1]
    kept = np.zeros((len(known), n))
    largest = order_of((found**2).sum(axis=0))[:n]
    kept[:, : len(largest)] = found[:, largest]
    p = np.abs(np.linalg.pinv(kept) @ known)
    rows = sum((p[i].sum() / p[i].max() if p[i].max() > 1e-12 else n) - 1 for i in range(n))
    columns = sum((p[:, j].sum() / p[:, j].max() if p[:, j].max() > 1e-12 else n) - 1 for j in range(n))
    return (rows + columns) / (2 * n * (n - 1))


@recomputes("loadings")
def loadings(key):
    made = page(key, FACTORS, ["factors_sgvb", "factors_gibbs"])
    state = made.states[1]
    g = state.loadings[:, : state.used[0]]
    shares = (g**2).sum(axis=0) / (g**2).sum()
    used = np.exp(-sum(p * log(p) for p in shares if p > 0))
    assert captions(made) == [
        f"{made.names[1]}: {used:.1f} factors in use, Amari error {amari_of(g, made.model.truth):.3f}"
    ]
    names = [made.model.names[int(np.argmax(np.abs(g[:, k])))] for k in order_of(shares)[:8]]
    assert words(made) == "largest factors, by their main column: " + ", ".join(names)
    known = made.model.truth
    alike = np.abs(known.T @ g) / np.sqrt(np.outer((known**2).sum(axis=0), (g**2).sum(axis=0)))
    assert linear_sum_assignment(-alike)[0].size == min(known.shape[1], g.shape[1])


@recomputes("factor_rates")
def factor_rates(key):
    made = page(key, FACTORS, ["factors_sgvb", "factors_gibbs"])
    state, y = made.states[1], made.model.y
    g = state.loadings[:, : state.used[0]]
    explained = (g**2).sum(axis=0) / ((y**2).sum() / len(y))
    assert captions(made)[1] == f"{made.names[1]}  {sum(x >= 0.01 for x in explained)} of {g.shape[1]} explain 1 %"
    heights = made.view.compute(made.frame)["method 1"][1]
    np.testing.assert_allclose(heights, np.clip(np.log10(sorted(explained, reverse=True)), -5, 1)[: len(heights)])


@recomputes("covariance")
def covariance(key):
    made = page(key, FACTORS, ["factors_sgvb", "factors_gibbs"])
    model, state = made.model, made.states[1]
    held = model.held_scatter / model.n_held

    def score(sigma):
        """The mean of log N(y; 0, Σ) over the held-out rows, by their scatter."""
        sign, logdet = np.linalg.slogdet(sigma)
        if sign <= 0 or np.linalg.cond(sigma) > 1e12:
            return -np.inf
        return -(len(sigma) * log(2 * np.pi) + logdet + np.trace(np.linalg.solve(sigma, held))) / 2

    seen = model.y.T @ model.y / len(model.y)
    own = state.average.mean().reshape(seen.shape)
    expected = [score(seen), score(own), score(model.true_covariance)]
    found = captions(made)
    for text, value in zip(found, expected, strict=True):
        assert text == (f"{value:.2f}" if value > -1e6 else "no density")


@recomputes("spherical_globe")
def spherical_globe(key):
    for methods in (["spherical_vi", "spherical_sggmc"], ["spherical_sggmc", "spherical_vi"]):
        made = page(key, SPHERICAL, methods)
        state, axes = made.states[1], made.model.axes
        inside = np.mean([sum((axis @ topic) ** 2 for axis in axes) for topic in state.beta])
        # A velocity in the tangent space of K unit spheres has K(V − 1) components.
        heat = (state.velocity**2).sum() / (state.beta.shape[0] * (state.beta.shape[1] - 1))
        warm = f"; ‖v‖²/m = {heat:.2f}" if methods[1] == "spherical_sggmc" else ""
        assert captions(made) == [f"in these directions: {inside:.0%} of the topics' length²{warm}"]
        arrows = [[axis @ topic for axis in axes] for topic in state.beta[:8]]
        names = made.view.axis_names
        assert words(made) == "; ".join(
            f"topic {k + 1}: " + ", ".join(f"{n} {x:.2f}" for n, x in zip(names, row, strict=True))
            for k, row in enumerate(arrows)
        )
        data = made.view.compute(made.frame)["topics"]
        np.testing.assert_allclose(np.array(data).T[:8], [np.array(row) / np.linalg.norm(row) for row in arrows])


@recomputes("spherical_words")
def spherical_words(key):
    made = page(key, SPHERICAL, ["spherical_vi", "spherical_sggmc"])
    state, vocabulary = made.states[1], made.model.vocabulary
    shares = (state.roots**2).mean(axis=0)
    found = words(made).split("; ")
    assert [each.split(":")[0] for each in found] == [f"topic {k + 1}, {shares[k]:.1%}" for k in order_of(shares)[:8]]
    for one, k in zip(found, order_of(shares), strict=False):
        assert one.split(": ")[1].split(", ") == [vocabulary[w] for w in order_of(state.beta[k])[:5]]


@recomputes("paths")
def paths(key):
    """The λ that is nearest on the log axis, where another is nearest on the line; zeros of the lasso counted."""
    state = open_link("?target=sparse(data:diabetes;shrinkage:5)&lane=sparse_gibbs")[0]
    model = load(state.experiment)
    view = build(key, state, model)
    zeros = {2.0: 1, 8.5: 4, 11.0: 7}
    names = model.names
    view._points = {
        x: SimpleNamespace(
            shrinkage=x, lasso=np.r_[np.zeros(n), np.ones(10 - n)], quantiles=x + np.arange(30.0).reshape(3, 10)
        )
        for x, n in zeros.items()
    }
    nearest = min(zeros, key=lambda x: abs(log(x) - log(5)))
    assert nearest == 8.5 and min(zeros, key=lambda x: abs(x - 5)) == 2.0
    frame = Frame([])
    assert list(view.captions(frame).values()) == [
        "simulating: 3 of 25 values of λ\nat λ = 8.5 the lasso has 4 of 10 at 0"
    ]
    assert view.words(frame) == "medians at λ = 2: " + ", ".join(
        f"{name} {12.0 + k:.2g}" for k, name in enumerate(names[:8])
    )
    data = view.compute(frame)
    np.testing.assert_array_equal(data[f"band of {names[3]}"], [[2, 8.5, 11], [5, 11.5, 14], [25, 31.5, 34]])


# --- views of recipes: what a formula says of a Gaussian, whose numbers a grid finds ---------------------------------

PLANE = {"rho": 0.6, "sd1": 1.0, "sd2": 1.0}
RECIPE = ("recipe", {"diffusion_entries": ("1",)})
FLAT = ("recipe", {"diffusion_entries": ("1", "0", "1"), "curl_entries": ("0.5",)})
GRID = 0.03
"""The values on a grid are compared to this, relative to themselves."""


def of_recipe(key, target, recipe, params):
    """The view beside two lanes of one recipe, with its background work done."""

    made = records(target, [recipe, recipe], N_CHAINS, params)
    for record in made:
        record.run.advance(50)
    scene = scene_of(made)
    object.__setattr__(scene, "layouts", layouts_of(experiment_of(made)))
    view, frame = VIEWS[key](scene), frames(made)
    for _ in range(12):
        view.background(frame)
        view.compute(frame)
    return SimpleNamespace(view=view, frame=frame, records=made, target=made[0].run.target)


def plain(text):
    return re.sub("<[^>]*>", "", text).replace("&nbsp;", " ")


@recomputes("spectrum")
def spectrum(key):
    made = of_recipe(key, "gaussian", RECIPE, GAUSSIAN)
    # dθ = −θ/σ² dt + √2 dW forgets at the rate 1/σ².
    for text in plain(captions(made)[0]).split("\n")[:1]:
        near(text.split("gap ")[1].split(" ")[0], f"{1 / 1.5**2:.3g}", GRID)
        assert f"closed form {1 / 1.5**2:.3g}" in plain(captions(made)[0])


@recomputes("modes")
def modes(key):
    made = of_recipe(key, "gaussian", RECIPE, GAUSSIAN)
    slow, following, note = (plain(text) for text in captions(made))
    near(slow, f"slowest, e^(−{1 / 1.5**2:.3g} t)", GRID)
    near(following, f"next, e^(−{2 / 1.5**2:.3g} t)", GRID)
    near(note.split("t = ")[1].rstrip("."), f"{log(2) * 1.5**2:.3g}", GRID)


@recomputes("curl")
def curl(key):
    made = of_recipe(key, "correlated_gaussian", FLAT, PLANE)
    # The gap of D = I is the smallest 1/λ of Σ; the maximum over Q is half the trace of Σ⁻¹ (Lelièvre et al.).
    precision = np.linalg.inv([[1.0, 0.6], [0.6, 1.0]])
    drift = (np.eye(2) + np.array([[0.0, 0.5], [-0.5, 0.0]])) @ precision
    now = min(np.linalg.eigvals(drift).real)
    best = np.trace(precision) / 2
    grid = np.linspace(0, 5, 200_001)
    turned = [
        min(np.linalg.eigvals((np.eye(2) + q * np.array([[0.0, 1.0], [-1.0, 0.0]])) @ precision).real)
        for q in grid[::200]
    ]
    enough = float(grid[::200][np.argmax(np.array(turned) > best - 1e-4)])
    found = plain(captions(made)[0])
    near(
        found.split("closed form")[1].split("<")[0].split("●")[0].split("■")[0],
        f": {now:.3g} now; the maximum over Q is {best:.3g}, for |q| ≥ {enough:.3g}",
        0.02,
    )


@recomputes("stationarity")
def stationarity(key):
    wrong = ("recipe", {"diffusion_entries": ("1+theta^2",), "gamma": False})
    made = of_recipe(key, "gaussian", wrong, {"mean": 0.0, "sd": 1.0})
    # ∂p/∂t = −(fp)′ + (Dp)″ with f = −DU′, of N(0, 1) with D = 1 + θ²: that is (D′p)′ = (2θp)′ = 2(1 − θ²)p.
    text = plain(captions(made)[0])
    largest = 2 / sqrt(2 * np.pi)
    near(text.split("up to ")[1].split(" at")[0], f"{largest:.2g}", 0.05)
    assert abs(float(text.split("θ = ")[1].split(" ")[0].replace("−", "-").rstrip("·,"))) < 0.1
    low, high = text.split("min λ(D) from ")[1].split(" ")[0], text.split(" to ")[2].split("●")[0].split("■")[0]
    end = made.view._planes[0].x[1] if hasattr(made.view._planes[0], "x") else None
    assert float(low) == pytest.approx(1.0, abs=0.01)
    if end is not None:
        assert float(high) == pytest.approx(1 + end**2, rel=0.05)


@recomputes("written")
def written(key):
    made = of_recipe(key, "correlated_gaussian", FLAT, PLANE)
    text = plain(captions(made)[0])
    assert "Q₁₂ = 0.5" in text or "Q₁₂ = 1/2" in text
    near(text.split("up to ")[1].split("●")[0].split("■")[0].strip(), f"{0.5:.2g}", 0.05)


@recomputes("evolution")
def evolution(key):
    made = of_recipe(key, "gaussian", RECIPE, {"mean": 0.0, "sd": 1.0})
    view, text = made.view, plain(captions(made)[0])
    snapshot, run = view._snapshot, view._simulation.run
    t = snapshot.steps * run.sampler.step_size
    assert f"t = {t:.2f}, {snapshot.steps:,} steps" in text

    def kl(p, q):
        p, q = np.maximum(p, 0.0) / np.maximum(p, 0.0).sum(), np.maximum(q, 1e-9) / np.maximum(q, 1e-9).sum()
        return max(sum(a * log(a / b) for a, b in zip(p.ravel(), q.ravel(), strict=True) if a > 0), 0.0)

    wanted = view._simulation.wanted
    noise = max(int((snapshot.exact * run.spec.n_chains > 1).sum()) - 1, 0) / (2 * run.spec.n_chains)
    assert f"KL chains ‖ exact {kl(snapshot.chains, snapshot.exact):.2g}, by chance {noise:.2g}" in text
    assert text.endswith(f"KL exact ‖ e⁻ᴴ {kl(snapshot.exact, wanted):.2g}")
    # The exact density: e⁻ᵗ of the start's mean is left, so that KL falls to 0 as e⁻²ᵗ.
    assert kl(snapshot.exact, wanted) < 5


def silent(key, target, recipe, params=None):
    """A view whose captions have no number."""
    made = of_recipe(key, target, recipe, params)
    for text in (*captions(made), words(made)):
        # The limit and the value of Γ are so by definition.
        assert not NUMBER.search(plain(text).replace("ε → 0", "").replace("Γ = 0", "")), text


@recomputes("drift", "place")
def without_numbers(key):
    silent(key, "correlated_gaussian", FLAT, PLANE)


# --- the registry -----------------------------------------------------------------------------------------------------


def test_every_view_has_its_recomputation():
    """A new view needs one; fails by name."""
    lacking = sorted(set(VIEWS) - set(RECOMPUTED))
    assert not lacking, f"no function here, with @recomputes above it, computes anew what these views print: {lacking}"
    assert set(RECOMPUTED) <= set(VIEWS), set(RECOMPUTED) - set(VIEWS)


@pytest.mark.slow
@pytest.mark.parametrize("key", RECOMPUTED)
def test_what_a_view_prints_is_what_the_draws_say(key):
    RECOMPUTED[key](key)
