"""Data that a typed posterior makes, and ranks as calibration goes on."""

import numpy as np
import pytest

from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.predictive import LETTERS
from sgmcmc_lab.samplers import Change, Experiment
from sgmcmc_lab.samplers.diagnostics import calibration
from sgmcmc_lab.samplers.expressions import draws
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from tests.helpers.checks_views import check, experiment_of, frames, records, scene_of

KEYS = ("prior_predictive", "posterior_predictive", "calibration")
LINE = {
    "table": "outliers",
    "parameters": "a, b, s > 0",
    "prior": "normal_lpdf(a, 0, 1) + normal_lpdf(b, 0, 1) + lognormal_lpdf(s, -1, 0.2)",
    "row": "normal_lpdf(y, a + b*x, s)",
    "curve": "a + b*x",
    "coordinates": "typed",
}


def of(values, samplers=("sgld",), steps=2000, n_chains=16):
    made = records("posterior", list(samplers), n_chains, values)
    for record in made:
        record.run.advance(steps)
    return made


def preset(key):
    return TypedPosterior.completed(Experiment.of("posterior", {"sgld": {}}).target.values(), {"table": key})


@pytest.mark.slow
def test_they_are_of_typed_posteriors_alone():
    made = records("posterior", ["sgld"], 1, LINE)
    assert set(KEYS) <= set(fitting(experiment_of(made)))
    for other in ("gaussian", "poisson_regression", "typed"):
        assert not set(KEYS) & set(fitting(Experiment.of(other, {"sgld": {}})))


def predictive(key, made, frames_of=1):
    view = VIEWS[key].made(scene_of(made))
    now = frames(made)
    for _ in range(frames_of):
        view.background(now)
    data = view.compute(now)
    check(view, data)
    return view, data, now


def share_inside(monkeypatch, scale=1.0):
    """The share of new data in the band, nine tenths, for a line whose errors are normal with sd .37."""
    normal = draws.LAWS["normal_lpdf"]
    monkeypatch.setitem(
        draws.LAWS,
        "normal_lpdf",
        normal._replace(draw=lambda rng, shape, mu, sigma: normal.draw(rng, shape, mu, scale * sigma)),
    )
    made = of(LINE, ["exact"])
    _, data, _ = predictive("posterior_predictive", made)
    monkeypatch.undo()
    target = made[0].run.target
    x, low, high = data["band 0"]
    theta = target.sample(1, 4000)
    a, b, s = target.constrained(theta)
    y = a[:, None] + b[:, None] * x + s[:, None] * np.random.default_rng(2).standard_normal((4000, len(x)))
    return ((y > low) & (y < high)).mean()


@pytest.mark.slow
def test_a_band_of_the_posterior_holds_nine_tenths_of_new_data(monkeypatch):
    """In 12 groups of 3 or 4 rows, 400 data sets: each end is a quantile of 1,200 numbers or more, and x of the rows in
    a group differ by a tenth of its slope, which makes the band a little wide. Off by .03 is 8 standard errors."""
    assert abs(share_inside(monkeypatch) - 0.9) < 0.03
    assert abs(share_inside(monkeypatch, scale=0.8) - 0.9) > 0.03


@pytest.mark.slow
def test_p_of_the_largest_shows_outliers_that_a_normal_line_does_not_make():
    view, _, now = predictive(
        "posterior_predictive", of({**LINE, "row": "student_t_lpdf(y, 2, a + b*x, s)"}, ["exact"])
    )
    said = next(iter(view.captions(now).values()))
    assert said.startswith("Exact i.i.d.  p  mean ")
    view, _, now = predictive("prior_predictive", of(LINE, ["exact"]))
    # Of a prior that has never seen them a largest y of 8.4 is rare.
    assert float(next(iter(view.captions(now).values())).split("max ")[1]) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("key", ["doses", "counts", "two_means"])
def test_each_preset_has_both(key):
    """Chains, exact draws and the prior make finite data; those of the posterior are nearer to the data."""
    made = of(preset(key), ["hmc"], 500, 4)
    for name in KEYS[:2]:
        view, data, now = predictive(name, made, 3)
        assert not view.problem and {"band 0", "now 0"} <= data.keys()
        assert "p  mean" in next(iter(view.captions(now).values()))
        assert view.background(now) and view.compute(now).keys() == data.keys()
        assert view.compute(now) == {}


@pytest.mark.slow
def test_why_nothing_is_made_is_said():
    row = of({**LINE, "row": "-0.5*(y - a - b*x)^2/s^2 - log(s)"})
    prior = of({**LINE, "prior": "-a^2 - b^2 - s"})
    for name, made in (
        ("posterior_predictive", row),
        ("prior_predictive", row),
        ("prior_predictive", prior),
        ("calibration", prior),
    ):
        view, data, now = predictive(name, made)
        lines = next(iter(view.captions(now).values())).split("\n")
        assert max(map(len, lines)) <= LETTERS, "a line that is cut off"
        said = " ".join(lines)
        assert "is no density of a" in said and "can be drawn from" in said
        assert not any(len(arrays[0]) for feed, arrays in data.items() if "0" in feed)
        bands = [
            each.data_source.data for each in view.figure.renderers if {"low", "x"} <= each.data_source.data.keys()
        ]
        if name != "calibration":
            assert bands and all((each["high"] < view.figure.y_range.start).all() for each in bands), (
                "a line of no data"
            )


def ranked(made, runs, before=None, coordinate=0):
    view = VIEWS["calibration"](scene_of(made, coordinate), before)
    for _ in range(1000):
        view.background(frames(made))
        if view._replicas and all(each.done >= runs for each in view._replicas.values()):
            break
    else:
        pytest.fail(f"too few runs: {view.captions(frames(made))}")
    data = view.compute(frames(made))
    check(view, data)
    return view, data


@pytest.mark.slow
def test_ranks_grow_in_the_background_and_are_those_without_a_screen():
    made = of(LINE, [("sgld", {"step_size": 2e-3})], 20_000)
    view, data = ranked(made, 20)
    replicas = view._replicas[0]
    assert replicas.thin == calibration.thinning(made[0].run)
    again = calibration.Replicas(made[0].run.target, replicas.spec, replicas.thin)
    while again.done < replicas.done:
        again.advance(10**9)
    assert np.array_equal(again.found().ranks, replicas.found().ranks)
    heights = data["lane 0"][1][::2]
    assert np.allclose(heights, again.found().counts(0) / len(again.ranks) * calibration.BINS)
    # Another coordinate shows other ranks of the same runs; another step size begins anew.
    other, _ = ranked(made, 20, view, coordinate=1)
    assert other._replicas[0] is replicas
    run = made[0].run
    sampler = Experiment.of("posterior", {"sgld": {"step_size": 3e-3}}).lanes[0].sampler
    run.change(Change(0, sampler, run.spec.gradient))
    other.background(frames(made))
    assert 0 not in other._replicas and "waits" in next(iter(other.captions(frames(made)).values()))
