"""Step-size schedules: the steps have the sizes of the formula, and the draws their weights."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.samplers import Change, Choice, Experiment, Run, RunSpec, SpecError, run
from sgmcmc_lab.samplers.choices import make_schedule
from sgmcmc_lab.samplers.diagnostics import autocorrelation, divergence, ks
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import CONSTANT
from sgmcmc_lab.samplers.step_terms import take_apart
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import OFFERED, SOON, dim_of

Z = 4.5
"""Standard errors that a mean may be off: seven in a million by chance."""


def polynomial(exponent, offset):
    return {"key": "polynomial", "params": {"exponent": exponent, "offset": offset}}


def one_target_each():
    """Each sampler with a step size on a target that it fits, with the gradient that comes first."""
    found = {}
    for s, t, g in OFFERED:
        if "step_size" in SAMPLERS[s].param and (s not in found or dim_of(found[s][0]) == 1 < dim_of(t)):
            found[s] = t, g
    found["recipe"] = "double_well", "full"
    return [(s, *pair) for s, pair in found.items()]


STEPPING = one_target_each()
REFRESHED = {"layout": "theta_r", "diffusion_entries": ("0", "0", "r^2/9"), "curl_entries": ("-1",), "refresh": 2.0}
"""A recipe in one dimension whose packed parameters hold more than the step size: the rate of new momenta."""
FAULTS = ("", "off by one", "exponent ignored")


def sizes(step_size, exponent, offset, n, fault=""):
    """ε_t of the first n steps."""
    t = np.arange(n) + (fault == "off by one")
    return step_size * (1 + t / offset) ** -(exponent * (fault != "exponent ignored"))


# --- the steps -----------------------------------------------------------------------------------


@pytest.mark.slow
@for_each("fault", FAULTS)
@for_each(("s", "t", "g"), STEPPING)
def test_a_schedule_is_a_change_of_the_step_size_at_each_step(s, t, g, fault):
    """Fails where the packed parameters depend on the step size in another way than by their first number.

    The other run packs all parameters anew before each step. Exponentials may differ in the last place.
    """
    n, exponent, offset = 24, 0.8, 3.0
    params = REFRESHED if s == "recipe" else SOON.get(s, {})
    spec = RunSpec.of(t, s, g, sampler_params=params, n_steps=n, n_chains=3, seed=4)
    first = spec.sampler.values()["step_size"]

    def with_size(size):
        return Choice(s, tuple((spec.sampler.values() | {"step_size": float(size)}).items()))

    changes = [
        Change(i, with_size(size), spec.gradient) for i, size in enumerate(sizes(first, exponent, offset, n, fault))
    ]
    scheduled = replace(spec, schedule=Choice("polynomial", tuple(polynomial(exponent, offset)["params"].items())))
    found, expected = run(scheduled), run(replace(spec, changes=tuple(changes)))
    if fault:
        assert not np.allclose(found.draws, expected.draws, rtol=1e-7, atol=1e-9)
    else:
        np.testing.assert_allclose(found.draws, expected.draws, rtol=1e-7, atol=1e-9)


@for_each(("s", "t", "g"), STEPPING)
def test_chunks_do_not_change_a_scheduled_run(s, t, g):
    """Fails where the number of a step, or the part of a weight that is carried on, is lost between two chunks."""
    spec = RunSpec.of(
        t, s, g, sampler_params=SOON.get(s, {}), n_steps=60, burn_in=7, n_chains=2, seed=3, schedule=polynomial(0.5, 2)
    )
    whole, parts = Run(spec, keep_draws=True), Run(spec, keep_draws=True)
    whole.advance(67)
    for chunk in (1, 1, 5, 13, 40, 7):
        parts.advance(chunk)
    np.testing.assert_array_equal(parts.kept, whole.kept)
    for name in ("clock", "bins", "joint"):
        np.testing.assert_array_equal(getattr(parts.statistics.sums, name), getattr(whole.statistics.sums, name))
    np.testing.assert_allclose(parts.statistics.sums.weights[0], whole.statistics.sums.weights[0])


def test_without_an_exponent_a_run_is_one_without_a_schedule():
    spec = RunSpec.of("quartic", "sgld", n_steps=500, n_chains=3)
    plain, same = run(spec), run(replace(spec, schedule=Choice("polynomial", (("exponent", 0.0), ("offset", 5.0)))))
    np.testing.assert_array_equal(plain.draws, same.draws)
    for name, value in plain.statistics.sums._asdict().items():
        np.testing.assert_array_equal(value, getattr(same.statistics.sums, name))
    assert plain.weights is None
    assert same.weights is None


# --- the weights ---------------------------------------------------------------------------------


@for_each("fault", ["", "weights dropped"])
@for_each("target", ["quartic", "correlated_gaussian", "gamma"])
def test_statistics_are_those_of_the_weighted_draws(target, fault):
    """Against NumPy's weighted averages of the stored draws.

    A weight has 20 binary digits of the first step's, and its rest goes to the next draw.
    """
    sampler = "sgrld" if target == "gamma" else "sgld"
    spec = RunSpec.of(
        target, sampler, "full", sampler_params={"step_size": 0.2}, n_steps=4000, burn_in=10, thin=1, n_chains=3,
        schedule=polynomial(1.0, 2),
    )  # fmt: skip
    trace = run(spec)
    found, values = trace.statistics, trace.target.values(trace.draws)
    weights = sizes(1.0, 1.0, 2.0, 4010)[10:]
    np.testing.assert_allclose(trace.weights, weights, rtol=1e-12)
    if fault:
        weights = np.ones(4000)
    pooled = np.tile(weights, 3)

    def compare():
        for k in range(len(found.columns)):
            x = values[..., k]
            by_chain = np.average(x, axis=1, weights=weights)
            np.testing.assert_allclose(found.chain_means(k), by_chain, atol=2e-4)
            mean = np.average(x, weights=np.tile(weights, (3, 1)))
            np.testing.assert_allclose(found.mean(k), mean, atol=2e-4)
            np.testing.assert_allclose(
                found.variance(k), np.average((x - mean) ** 2, weights=np.tile(weights, (3, 1))), rtol=2e-3
            )
            exact = ks.of_values(found.columns[k], x.ravel(), pooled)
            assert exact - 0.02 < ks.distance(found, k) < exact + 1e-3
            assert found.counts(k).sum() == found.total
        np.testing.assert_allclose(found.n_effective, pooled.sum() ** 2 / (pooled**2).sum(), rtol=1e-4)
        if trace.target.planar:
            assert found.sums.joint.sum() <= found.total
            x, y = values[..., 0].ravel(), values[..., 1].ravel()
            x0, per_x, y0, per_y = found.sums.joint_scales
            i, j = int((x[0] - x0) * per_x), int((y[0] - y0) * per_y)
            here = (np.floor((x - x0) * per_x) == i) & (np.floor((y - y0) * per_y) == j)
            np.testing.assert_allclose(
                found.sums.joint[i, j] / found.total, pooled[here].sum() / pooled.sum(), rtol=1e-3
            )

    if fault:
        with pytest.raises(AssertionError):
            compare()
    else:
        compare()


@pytest.mark.slow
def test_the_weight_of_all_draws_has_no_rounding_error():
    """Fails where the parts of a unit are dropped: late weights of a steep schedule are less than a unit."""
    spec = RunSpec.of("gaussian", "sgld", n_steps=300_000, n_chains=1, schedule=polynomial(1.0, 1))
    found = run(spec, keep_draws=False).statistics
    assert abs(found.weight / 2**20 - sizes(1.0, 1.0, 1.0, 300_000).sum()) < 1e-5


# --- the law of the weighted means ---------------------------------------------------------------

STEP, POWER, OFFSET, BEGIN, LENGTH = 0.5, 0.7, 2.0, 3.0, 30


def expected_moments(fault=""):
    """E of the weighted means of θ and θ² of SGLD on N(0, 1): θ_t = (1 − ε_t)θ_{t−1} + √(2ε_t) ξ_t, from BEGIN."""
    eps = sizes(STEP, POWER, OFFSET, LENGTH, fault)
    weights = np.ones(LENGTH) if fault == "weights dropped" else eps
    mean, variance, means, squares = BEGIN, 0.0, [], []
    for size in eps:
        mean, variance = (1 - size) * mean, (1 - size) ** 2 * variance + 2 * size
        means.append(mean)
        squares.append(variance + mean**2)
    return np.average(means, weights=weights), np.average(squares, weights=weights)


@for_each("fault", [*FAULTS, "weights dropped"])
def test_weighted_means_have_the_expectations_of_the_linear_chain(fault):
    """10,000 chains of 30 steps against the recursion by hand, within Z standard errors; each fault is found."""
    spec = RunSpec.of(
        "gaussian", "sgld", "full", sampler_params={"step_size": STEP}, n_steps=LENGTH, n_chains=10_000, start=(BEGIN,),
        schedule=polynomial(POWER, OFFSET), seed=8,
    )  # fmt: skip
    found = run(spec, keep_draws=False).statistics
    column = found.columns[0]
    assert (column.mean, column.variance) == (0.0, 1.0)
    by_chain = found.sums.powers[0] / found.weight
    off = []
    for p, expected in enumerate(expected_moments(fault)):
        error = by_chain[:, p].std(ddof=1) / np.sqrt(found.n_chains)
        off.append(abs(by_chain[:, p].mean() - expected) / error)
    assert (max(off) > Z) == bool(fault), off


# --- what the exponent buys ----------------------------------------------------------------------

LENGTHS = (1_000, 10_000, 100_000)
CHAINS = 300


def squared_errors(exponent):
    """The squared error of the estimate of E θ² = 1 in each chain after each of the lengths, (lengths, chains)."""
    spec = RunSpec.of(
        "gaussian", "sgld", "full", sampler_params={"step_size": 0.5}, n_steps=LENGTHS[-1], n_chains=CHAINS,
        schedule=polynomial(exponent, 1), seed=2,
    )  # fmt: skip
    going, out = Run(spec), []
    for n in LENGTHS:
        going.advance(n - going.steps)
        out.append((going.statistics.sums.powers[0, :, 1] / going.statistics.weight - 1) ** 2)
    return np.array(out)


def expected_error(exponent, n):
    """E of that squared error after n steps from 0, by hand.

    E θ_t² = v_t, and Cov(θ_s², θ_t²) = 2(v_s Π_{s<u≤t}(1 − ε_u))².
    """
    eps = sizes(0.5, exponent, 1, n)
    v, variances = 0.0, np.empty(n)
    for t, size in enumerate(eps):
        v = (1 - size) ** 2 * v + 2 * size
        variances[t] = v
    later, total = 0.0, 0.0
    for t in range(n - 1, -1, -1):
        total += 2 * eps[t] * variances[t] ** 2 * (eps[t] + 2 * later)
        later = (1 - eps[t]) ** 2 * (eps[t] + later)
    return (np.average(variances, weights=eps) - 1) ** 2 + total / eps.sum() ** 2


@pytest.mark.slow
def test_the_mean_squared_error_falls_with_the_power_two_thirds():
    """γ = 1/3: the exact error falls with a slope of −2/3. A constant step ends at its squared bias, 1/9.

    Measured errors of 300 chains agree with the exact ones within Z standard errors. Planted fault: the exponent is
    ignored.
    """
    falling, level = squared_errors(1 / 3), squared_errors(0.0)
    exact = [np.array([expected_error(exponent, n) for n in LENGTHS]) for exponent in (1 / 3, 0.0)]
    for measured, expected in ((falling, exact[0]), (level, exact[1])):
        error = measured.std(axis=1, ddof=1) / np.sqrt(CHAINS)
        assert np.all(np.abs(measured.mean(axis=1) - expected) < Z * error)
    error = falling.std(axis=1, ddof=1) / np.sqrt(CHAINS)
    assert np.all(np.abs(falling.mean(axis=1) - exact[1]) > 10 * error)
    slopes = [np.diff(np.log(of))[-1] / np.log(LENGTHS[-1] / LENGTHS[-2]) for of in exact]
    assert abs(slopes[0] + 2 / 3) < 0.03
    assert abs(slopes[1]) < 0.01
    assert abs(exact[1][-1] - 1 / 9) < 1e-3
    # Of the chains themselves, with its standard error.
    relative = error / falling.mean(axis=1)
    span = np.log(LENGTHS[-1] / LENGTHS[0])
    found = np.log(falling.mean(axis=1)[-1] / falling.mean(axis=1)[0]) / span
    assert abs(found - np.log(exact[0][-1] / exact[0][0]) / span) < Z * np.hypot(relative[0], relative[-1]) / span


# --- the schedule in specs, links and files ------------------------------------------------------


def test_a_schedule_survives_json_and_links():
    data = {
        "target": "gaussian",
        "lanes": [{"sampler": "sgld", "schedule": polynomial(0.25, 7)}, {"sampler": "sgld"}],
    }
    experiment = Experiment.from_dict(data)
    assert experiment.lanes[0].schedule == Choice("polynomial", (("exponent", 0.25), ("offset", 7.0)))
    assert experiment.lanes[1].schedule == CONSTANT
    assert Experiment.from_json(experiment.to_json()) == experiment
    again, messages = Experiment.from_query(
        experiment.to_query(), Experiment.from_dict({**data, "lanes": [{"sampler": "exact"}]})
    )
    assert (again, messages) == (experiment, [])
    assert "~polynomial(exponent:0.25;offset:7.0)" in experiment.to_query()
    first, second = experiment.runs()
    assert RunSpec.from_json(first.to_json()) == first
    assert "schedule" not in second.to_dict()


@for_each(
    ("lane", "said"),
    [
        ({"sampler": "exact", "schedule": "polynomial"}, "has no step size"),
        ({"sampler": "sgld", "schedule": "cosine"}, "there is no such schedule"),
        ({"sampler": "sgld", "schedule": polynomial(1.5, 1)}, "from 0 to 1"),
        ({"sampler": "sgld", "schedule": {"key": "constant", "params": {"exponent": 1}}}, "no such parameter"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused(lane, said):
    with pytest.raises(SpecError, match=said):
        Experiment.from_dict({"target": "gaussian", "lanes": [lane]})


def test_a_link_with_a_schedule_that_does_not_fit_is_mended():
    default = Experiment.from_dict({"target": "gaussian", "lanes": [{"sampler": "sgld"}]})
    found, messages = Experiment.from_query(
        "target=gaussian&lane=exact~~polynomial&lane=sgld~full~polynomial(exponent:3)", default
    )
    assert found.lanes[0].schedule == CONSTANT
    assert found.lanes[1].schedule.values()["exponent"] == 1.0
    assert len(messages) == 2


@pytest.mark.slow
def test_files_hold_the_weights(tmp_path):
    trace = run(RunSpec.of("gaussian", "sgld", n_steps=40, burn_in=5, thin=4, n_chains=2, schedule=polynomial(0.5, 3)))
    expected = sizes(1.0, 0.5, 3.0, 45)[8::4]
    tree = trace.to_arviz()
    np.testing.assert_allclose(tree["sample_stats"]["weight"].values, np.tile(expected, (2, 1)), rtol=1e-12)
    trace.save(tmp_path / "draws.csv")
    rows = list(csv.DictReader((tmp_path / "draws.csv").read_text().splitlines()))
    np.testing.assert_allclose([float(row["weight"]) for row in rows], np.tile(expected, 2), rtol=1e-12)


def test_a_lane_with_a_schedule_has_no_autocorrelation_time():
    """Its chains are not stationary. The divergence's bias is that of its effective number of draws."""
    found = run(
        RunSpec.of("gaussian", "sgld", n_steps=20_000, schedule=polynomial(0.5, 3)), keep_draws=False
    ).statistics
    assert np.isnan(autocorrelation.tau_int(found, 0))
    _, masses = divergence.cells(found.columns[0])
    np.testing.assert_allclose(divergence.kl_1d(found, 0).bias, divergence.expected(found.n_effective, masses))


def test_a_step_is_taken_apart_with_its_own_size():
    """The plain-Python step that the page shows in parts is the one that the chain makes next.

    Planted fault: a step of the size ε.
    """
    going = Run(
        RunSpec.of("quartic", "sgld", n_chains=1, sampler_params={"step_size": 0.2}, schedule=polynomial(0.9, 1))
    )
    going.advance(5)
    shown = take_apart(going)
    going.schedule, falling = make_schedule(CONSTANT), going.schedule
    wrong = take_apart(going)
    going.schedule = falling
    going.advance(1)
    np.testing.assert_allclose(shown.end[0], going.position[0, 0], rtol=1e-12)
    assert abs(wrong.end[0] - going.position[0, 0]) > 1e-3
