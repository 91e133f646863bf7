"""The gradient's estimators: what the kernels read of each, and what a link that only names one means."""

import numpy as np
import pytest

from sgmcmc_lab.samplers import Experiment, Run, RunSpec
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_gradients import check_gradient, missing
from tests.helpers.checks_samplers import FEW_DATA


def test_every_estimator_declares_what_its_tests_need():
    assert [line for cls in GRADIENTS.values() for line in missing(cls)] == []


@pytest.mark.slow
@pytest.mark.parametrize("key", GRADIENTS)
def test_an_estimator_is_its_words_and_its_textbook(key):
    check_gradient(key)


@for_each(
    ("key", "values", "noise"),
    [
        ("full", {}, (0.0, 0.0, 0, 0, True, False)),
        ("gaussian", {"variance": 3.0}, (3.0, 0.0, 0, 0, True, False)),
        ("gaussian_corrected", {"variance": 3.0}, (3.0, 3.0, 0, 0, True, False)),
        ("gaussian_estimated", {"variance": 3.0, "sample_size": 7}, (3.0, 3.0, 7, 0, True, False)),
        ("minibatch", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 0, 7, False, False)),
        ("minibatch_known", {"batch_size": 7, "variance": 3.0}, (0.0, 3.0, 0, 7, True, False)),
        ("minibatch_known", {"batch_size": 7, "variance": 3.0, "replacement": False}, (0.0, 3.0, 0, 7, False, False)),
        ("minibatch_fisher", {"batch_size": 7}, (0.0, 0.0, 0, 7, True, True)),
        ("minibatch_fisher", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 0, 7, False, True)),
        ("minibatch_cv", {"batch_size": 7}, (0.0, 0.0, 0, 7, True, False)),
        ("minibatch_cv_fisher", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 0, 7, False, True)),
        ("minibatch_epochs", {"batch_size": 7}, (0.0, 0.0, 0, 7, False, False)),
        ("minibatch_svrg", {"batch_size": 7}, (0.0, 0.0, 0, 7, True, False)),
        ("minibatch_svrg_fisher", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 0, 7, False, True)),
        ("minibatch_saga", {"batch_size": 7}, (0.0, 0.0, 0, 7, True, False)),
        ("minibatch_saga_fisher", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 0, 7, False, True)),
    ],
)
def test_what_the_kernels_read(key, values, noise):
    """V, B̂, the draws behind B̂, the batch size, whether with replacement, and whether B̂ is the batch's own."""
    assert tuple(GRADIENTS[key](**values).noise()) == noise


def test_the_data_that_a_gradient_touches():
    quartic, categories = TARGETS["quartic"](), TARGETS["dense_dirichlet"]()
    n_data = len(categories.data())
    assert n_data > 10
    for key in GRADIENTS:
        found = GRADIENTS[key]()
        anchors = n_data / 50 if "svrg" in key else 0
        assert found.data_per_gradient(categories) == (10 + anchors if key.startswith("minibatch") else n_data)
    assert GRADIENTS["full"]().data_per_gradient(quartic) == 1


def test_a_batch_is_at_most_the_data_and_for_a_spread_at_least_two():
    target = TARGETS["dense_dirichlet"]()
    n_data = len(target.data())
    for key in [key for key in GRADIENTS if key.startswith("minibatch")]:
        GRADIENTS[key](batch_size=n_data).check(target)
        with pytest.raises(SpecError, match=f"batch_size = {n_data + 1}.*at most N = {n_data}"):
            GRADIENTS[key](batch_size=n_data + 1).check(target)
    GRADIENTS["minibatch"](batch_size=1).check(target)
    GRADIENTS["minibatch_cv"](batch_size=1).check(target)
    GRADIENTS["minibatch_fisher"](batch_size=2).check(target)
    for key in ("minibatch_fisher", "minibatch_cv_fisher", "minibatch_svrg_fisher", "minibatch_saga_fisher"):
        with pytest.raises(SpecError, match=r"batch_size = 1\b.*at least 2"):
            GRADIENTS[key](batch_size=1).check(target)


@for_each(
    ("key", "name", "default", "bounds"),
    [
        ("gaussian", "variance", 4.0, (1e-3, 1e5)),
        ("gaussian_estimated", "sample_size", 10, (2, 10_000)),
        ("minibatch", "batch_size", 10, (1, 100_000)),
        ("minibatch_known", "variance", 5700.0, (1e-3, 1e7)),
        ("minibatch_svrg", "period", 50, (1, 100_000)),
    ],
)
def test_links_and_files_mean_the_same_as_when_they_were_made(key, name, default, bounds):
    """Fails where a default changes, which old links rely on, or a bound that they may have gone to."""
    parameter = GRADIENTS[key].param[name]
    assert (parameter.default, parameter.bounds, parameter.log) == (default, bounds, True)


def test_minibatches_are_drawn_with_replacement_where_nothing_is_said():
    assert all(getattr(GRADIENTS[key](), "replacement", True) is True for key in GRADIENTS)


# A chain's table of SAGA has a row for each.
ITEMS = 100
THETA, ELSEWHERE = np.array([0.7, -0.2]), np.array([0.9, 0.1])


def with_all_data():
    """Each estimator of minibatches, each target that it fits, and a sampler that takes both."""
    for key in [key for key in GRADIENTS if key.startswith("minibatch")]:
        for t, target in TARGETS.items():
            s = next((s for s in ("sgld", "geodesic_sgld") if SAMPLERS[s].fits(target)), None)
            if s is not None and {key, "full"} <= SAMPLERS[s].gradients_for(target):
                yield key, t, s


@pytest.mark.slow
@for_each(("key", "t", "s"), list(with_all_data()), apart=lambda key, t, s: t)
def test_all_of_the_data_as_a_batch_are_the_gradient(key, t, s):
    """Without replacement and to the last digits; all but two of them are not. So a sampler has with such a batch the
    law that it has with the gradient."""
    few = FEW_DATA.get(t) or ({"items": 25} if "items" in TARGETS[t].param else {})

    def used(gradient, **values):
        choice = {name: value for name, value in values.items() if name in GRADIENTS[gradient].param}
        run = Run(
            RunSpec.of(
                t,
                s,
                gradient,
                target_params=few,
                gradient_params=choice,
                sampler_params={"step_size": 1e-6},
                n_chains=1,
            )
        )
        # The stored gradients are those of another θ.
        for place in run.target.sample(3, 2):
            run.position = place
            run.advance(1)
        return run.last_gradient[0]

    n = len(TARGETS[t](**few).data())
    exact = used("full")
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(exact).max()}
    np.testing.assert_allclose(used(key, batch_size=n, replacement=False, variance=1e-3), exact, **close)
    assert not np.allclose(used(key, batch_size=n - 2, replacement=False, variance=1e-3), exact, **close)


def slopes(target, theta, gradient):
    """The terms of the data points in the estimate at θ, (N, 2), by the formula of the estimator."""
    x, y = target.observations[:, :2], target.observations[:, 2]

    def plain(at):
        return at / target.prior_sd**2 - target.items * (y - x @ at)[:, None] * x / target.noise_sd**2

    anchors = {"minibatch_cv": target.mean, "minibatch_svrg": ELSEWHERE, "minibatch_saga": ELSEWHERE}
    if gradient not in anchors:
        return plain(theta)
    return plain(theta) - plain(anchors[gradient]) + plain(anchors[gradient]).mean(axis=0)


@for_each(
    ("gradient", "replacement"),
    [
        *(
            (g, kind)
            for g in ("minibatch", "minibatch_cv", "minibatch_svrg", "minibatch_saga")
            for kind in (True, False)
        ),
        ("minibatch_epochs", False),
    ],
)
def test_a_minibatch_is_unbiased_and_as_noisy_as_its_formula_says(gradient, replacement):
    """10,000 chains at one θ: mean and covariance of their gradients, and that no chain's batch goes by another's.

    Their first gradients were elsewhere, which is where those with a memory have their anchors and tables.

    Each of nine numbers is within 4 standard errors (false alarms: 6e-4 in all). Planted faults: the covariance of the
    other kind of sample, which is twice or half as large, and that without, or with, control variates.
    """
    n, batch = 10_000, 50
    choice = {"batch_size": batch} | ({} if gradient == "minibatch_epochs" else {"replacement": replacement})
    spec = RunSpec.of(
        "linear_regression",
        "sgld",
        gradient,
        target_params={"items": ITEMS},
        sampler_params={"step_size": 1e-6},
        gradient_params=choice,
        n_chains=n,
        seed=5,
    )
    run = Run(spec)
    target = run.target
    for place in (ELSEWHERE, THETA):
        run.position = place
        run.advance(1)
    found, each = run.last_gradient, slopes(target, THETA, gradient)
    np.testing.assert_allclose(each.mean(axis=0), target.gradient_at(THETA[None])[0])

    def covariance(replacement, gradient=gradient):
        left = 1.0 if replacement else (target.items - batch) / (target.items - 1)
        return left * np.cov(slopes(target, THETA, gradient).T, ddof=0) / batch

    expected = covariance(replacement)
    sd = np.sqrt(np.diag(expected))
    assert (np.abs(found.mean(axis=0) - each.mean(axis=0)) < 4 * sd / np.sqrt(n)).all()
    error = np.sqrt((np.outer(sd, sd) ** 2 + expected**2) / n)
    assert (np.abs(np.cov(found.T) - expected) < 4 * error).all()
    other = "minibatch_cv" if gradient in ("minibatch", "minibatch_epochs") else "minibatch"
    for fault in (covariance(not replacement), covariance(replacement, other)):
        assert (np.abs(np.cov(found.T) - fault) > 4 * error).all()
    apart = (found - each.mean(axis=0)) / sd
    for chains in (apart[::2].T @ apart[1::2], apart[:-2:2].T @ apart[2::2]):
        assert (np.abs(chains) < 4 * np.sqrt(n / 2)).all()


def test_the_batches_of_an_epoch_are_all_of_the_data():
    """At one θ the gradients of an epoch have the whole one for their mean, in every chain, for two epochs; those of
    fresh batches without replacement do not. Without the shuffle between them the epochs would be the same."""

    def epochs(gradient, choice):
        run = Run(
            RunSpec.of(
                "linear_regression",
                "sgld",
                gradient,
                target_params={"items": ITEMS},
                sampler_params={"step_size": 1e-6},
                gradient_params={"batch_size": 20, **choice},
                n_chains=50,
                seed=5,
            )
        )
        found = np.empty((2, 5, 50, 2))
        for epoch, batch in np.ndindex(2, 5):
            run.position = THETA
            run.advance(1)
            found[epoch, batch] = run.last_gradient
        return found, run.target.gradient_at(THETA[None])[0]

    found, whole = epochs("minibatch_epochs", {})
    np.testing.assert_allclose(found.mean(axis=1) / whole, 1, rtol=1e-9)
    assert (np.abs(found[0] - found[1]) > 1e-3).any(axis=(0, 2)).all()
    assert (np.abs(np.diff(found[0, 0], axis=0)) > 1e-3).any(axis=1).all()
    fresh, _ = epochs("minibatch", {"replacement": False})
    assert (np.abs(fresh.mean(axis=1) / whole - 1) > 1e-3).any(axis=2).all()


def test_many_chains_do_not_remember_more_than_there_is_room_for():
    """Fails where a link may ask for 10,000 tables of 1,000 gradients: it gets the chains that fit, and a sentence
    says so; a file is refused."""
    asked = {
        "target": {"key": "linear_regression", "params": {"items": 1000}},
        "n_chains": 10_000,
        "lanes": [{"sampler": {"key": "sgld"}, "gradient": {"key": "minibatch_saga"}}],
    }
    with pytest.raises(SpecError, match=r"n_chains = 10000.*SAGA keeps 2,003 numbers a chain; allowed are 2094 chains"):
        Experiment.from_dict(asked)
    link = "target=linear_regression(items:1000)&lane=sgld()~minibatch_saga()&n_chains=10000"
    made, messages = Experiment.from_query(link, Experiment.from_dict({**asked, "n_chains": 2094}))
    assert made.n_chains == 2094
    assert any("2,003 numbers a chain" in message for message in messages)


def test_control_variates_leave_no_noise_at_the_mode_and_little_near_it():
    """The noise's standard deviation goes with the distance from the mode; that of a plain minibatch stays."""

    def spread(gradient, distance):
        run = Run(
            RunSpec.of("linear_regression", "sgld", gradient, sampler_params={"step_size": 1e-6}, n_chains=4000, seed=2)
        )
        run.position = run.target.mean + distance * np.array([0.6, 0.8])
        run.advance(1)
        return run.last_gradient.std(axis=0)

    assert (spread("minibatch_cv", 0.0) < 1e-9).all()
    near, far = spread("minibatch_cv", 0.1), spread("minibatch_cv", 0.2)
    np.testing.assert_allclose(far / near, 2, rtol=1e-6)
    plain = spread("minibatch", 0.1)
    assert (near < 0.3 * plain).all()
    np.testing.assert_allclose(spread("minibatch", 0.2) / plain, 1, atol=0.3)


@pytest.mark.slow
def test_the_heat_of_a_batch_does_not_grow_with_the_data_where_there_are_control_variates():
    """SGLD at ε = .02/N with batches of ten: what the noise adds to the variance of the chains, as a part of the
    posterior's, εV/2 where V is the noise's variance, with its error from 1000 chains.

    V of a plain batch is as N², so that the part grows as N; with control variates V is as N²|θ − θ̂|², and |θ − θ̂|² as
    1/N, so that it stays. Fails where a plain batch's heat is not ten times as large with ten times the data, to a
    fifth, or that with control variates is above .01 by more than 4 standard errors anywhere.
    """

    def excess(gradient, items):
        spec = RunSpec.of(
            "linear_regression",
            "sgld",
            gradient,
            target_params={"items": items},
            sampler_params={"step_size": 0.02 / items},
            n_chains=1000,
            seed=6,
        )
        run = Run(spec)
        target = run.target
        run.position = target.sample(8, 1000)
        run.advance(300)
        squares = []
        for _ in range(20):
            run.advance(30)
            apart = run.position - target.mean
            squares.append(np.einsum("ci,ij,cj->c", apart, target.precision, apart) / 2)
        mean = np.mean(squares, axis=0)
        wider = (1 / (1 - 0.01 / items * np.linalg.eigvalsh(target.precision))).mean()
        return mean.mean() - wider, mean.std() / np.sqrt(len(mean))

    (few, _), (many, _) = (excess("minibatch", items) for items in (100, 1000))
    variates = [excess("minibatch_cv", items) for items in (100, 1000)]
    print(few, many, variates)
    assert many / few == pytest.approx(10, rel=0.2)
    assert all(abs(heat) < 0.01 + 4 * error for heat, error in variates)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["sgld", "sghmc"])
def test_noise_that_is_estimated_and_subtracted_leaves_the_law(sampler):
    """Fails where a minibatch's own estimate of its noise, subtracted from what is injected, does not bring the spread
    back to the full gradient's within .01 and 4 standard errors. Planted fault: noise left alone, a tenth more."""
    params = {"sgld": {"step_size": 5e-4}, "sghmc": {"step_size": 0.01, "friction": 20.0}}[sampler]
    target = TARGETS["linear_regression"]()
    # SGLD's own law on a Gaussian is wider by 1/(1 − ελ/2) along each axis; SGHMC's θ is right to O(ε²).
    slopes = np.linalg.eigvalsh(target.precision)
    wider = (1 / (1 - params["step_size"] * slopes / 2)).mean() if sampler == "sgld" else 1.0

    def excess(gradient, chains):
        spec = RunSpec.of(
            "linear_regression",
            sampler,
            gradient,
            sampler_params=params,
            gradient_params={"batch_size": 30},
            n_chains=chains,
            seed=6,
        )
        run = Run(spec)
        run.position = target.sample(8, chains)
        run.advance(600)
        squares = []
        for _ in range(20):
            run.advance(60)
            apart = run.position - target.mean
            squares.append(np.einsum("ci,ij,cj->c", apart, target.precision, apart) / 2)
        mean = np.mean(squares, axis=0)
        return mean.mean() - wider, mean.std() / np.sqrt(len(mean))

    heat, error = excess("minibatch_fisher", 2000)
    print(sampler, heat, error)
    assert abs(heat) < 0.01 + 4 * error
    # So much more shows in a quarter of the chains.
    heat, error = excess("minibatch", 500)
    print(heat, error)
    assert heat > 0.05 + 4 * error


@pytest.mark.slow
def test_where_more_is_to_be_subtracted_than_injected_no_noise_explodes():
    """Batches of ten in steps so long that one in five is clipped: no coordinate gets more than its share.

    Planted fault: the row of a factor after a pivot near 0 as it comes; then one of 2,000 chains is 25 standard
    deviations out. Of 12,000 draws with 1.3 times the variance one is past 8 less than once in 1e6.
    """
    spec = RunSpec.of(
        "linear_regression", "sgld", "minibatch_fisher", sampler_params={"step_size": 5e-4}, n_chains=2000, seed=6
    )
    run = Run(spec)
    run.position = run.target.sample(8, 2000)
    farthest = 0.0
    for _ in range(6):
        run.advance(100)
        apart = run.position - run.target.mean
        farthest = max(farthest, np.einsum("ci,ij,cj->c", apart, run.target.precision, apart).max())
    assert run.counts[jit.CLIPPED] > 0.1 * 600 * 2000
    assert farthest < 8**2
