"""The numbers of a race, recomputed from the draws by NumPy alone: budget, τ of the slowest column, ranking."""

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from sgmcmc_lab.app.room import race, shown
from sgmcmc_lab.app.room.rooms import RoomState
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.diagnostics import autocorrelation
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import SpecError

SLOW = {"key": "correlated_gaussian", "params": {"rho": 0.0, "sd1": 0.5, "sd2": 2.0}}
"""θ₂ moves sixteen times as slowly as θ₁."""


def racing(lane, target=SLOW):
    experiment = Experiment.from_dict({"target": target, "lanes": [lane]})
    return race.raced(experiment, race.target_text(experiment))


def sgld(step_size, gradient="full"):
    return {"sampler": {"key": "sgld", "params": {"step_size": step_size}}, "gradient": gradient}


def draws_of(made, n_steps):
    """All draws (chains, steps, dim) of the run that was raced, made again."""
    run = Run(replace(made.runs()[0], n_steps=n_steps), keep_draws=True)
    run.advance(n_steps)
    return run.kept


def sokal(values):
    """τ of chains (chains, n) with their common mean, by Sokal's window of 5τ over every lag, in plain NumPy."""
    apart = values - values.mean()
    n = values.shape[1]
    tau, rho, lag = 1.0, [1.0], 0
    variance = (apart**2).mean()
    while lag < 5 * tau:
        lag += 1
        rho.append(float((apart[:, lag:] * apart[:, : n - lag]).mean() / variance))
        tau = 1 + 2 * sum(rho[1:])
    return tau


@pytest.mark.parametrize("swapped", [False, True])
def test_gradients_for_a_draw_are_those_of_the_slowest_column(swapped):
    """The largest τ, wherever it is, times the gradients of a step; by hand from the draws, to a tenth. The mean of the
    two is .53 of it."""
    sds = {"sd1": 2.0, "sd2": 0.5} if swapped else {"sd1": 0.5, "sd2": 2.0}
    made = racing(sgld(0.05), {"key": "correlated_gaussian", "params": {"rho": 0.0, **sds}})
    found = race.measure(made)
    draws = draws_of(made, race.GRADIENTS)
    taus = sorted(sokal(draws[..., k]) for k in range(2))
    assert taus[1] > 10 * taus[0]
    assert found["tau"] == pytest.approx(taus[1], rel=0.1)
    assert abs(found["tau"] / np.mean(taus) - 1) > 0.7
    # AR(1): τ = (1 + a)/(1 − a), a = 1 − ε/σ².
    assert found["tau"] == pytest.approx((2 - 0.05 / 4) / (0.05 / 4), rel=0.2)


@pytest.mark.parametrize("n_leapfrog", [2, 5])
def test_gradients_for_a_draw_count_those_of_a_step(n_leapfrog):
    made = racing({"sampler": {"key": "hmc", "params": {"step_size": 0.3, "n_leapfrog": n_leapfrog}}})
    per_step = n_leapfrog + 1
    steps = race.GRADIENTS // per_step
    draws = draws_of(made, steps)
    assert race.measure(made)["tau"] == pytest.approx(per_step * max(sokal(draws[..., k]) for k in range(2)), rel=0.1)


def test_a_race_has_a_temperature():
    """On a hot double well chains change modes at once. Planted fault: the race has a target alone."""
    hot, own = (
        Experiment.from_dict({"target": "double_well", "lanes": [sgld(0.05)], "temperature": t}) for t in (4, 1)
    )
    text, cold = race.target_text(hot), race.target_text(own)
    assert race.raced(hot, text).temperature == 4 and race.raced(own, cold).temperature == 1
    for experiment, other in ((hot, cold), (own, text)):
        with pytest.raises(SpecError, match="allowed is the target of the race"):
            race.raced(experiment, other)
    found = race.measure_link(hot.to_query(), text)
    assert "&temperature=4" in found["link"]
    assert found["ks"] == race.measure(race.raced(hot, text))["ks"] != race.measure(race.raced(own, cold))["ks"]
    assert shown._named(text) == "Double well at T = 4" and shown._named(cold) == "Double well"


def test_ks_is_the_mean_over_the_columns():
    """From all chains' draws; within the largest mass of a bin."""
    made = racing(sgld(0.05))
    draws = draws_of(made, race.GRADIENTS)
    by_hand = []
    for k, sd in enumerate((0.5, 2.0)):
        u = special.ndtr(np.sort(draws[..., k].ravel()) / sd)
        rank = np.arange(len(u) + 1) / len(u)
        by_hand.append(max((rank[1:] - u).max(), (u - rank[:-1]).max()))
    assert race.measure(made)["ks"] == pytest.approx(np.mean(by_hand), abs=2e-3)
    assert abs(by_hand[0] - by_hand[1]) > 0.005


LANES = {
    "sgld": (sgld(0.05), 1),
    "hmc": ({"sampler": {"key": "hmc", "params": {"n_leapfrog": 4}}}, 5),
    "rwm": ({"sampler": "rwm"}, 1),
    "psgld": ({"sampler": "psgld"}, 3),
}


@pytest.mark.parametrize("key", [*LANES, "nuts", "free"])
def test_every_sampler_has_the_same_budget(key, monkeypatch):
    """20,000 gradients of each of eight chains, within a step of each; a step without one counts as one. Fails for a
    budget of all chains that one has, or a sampler without gradients that goes on eight times as long."""
    seen = []
    monkeypatch.setattr(race.ks, "mean_distance", lambda statistics, target: seen.append(statistics.n_steps) or 0.1)
    if key == "free":
        # A sampler of somebody's own whose steps take no gradient.
        monkeypatch.setattr(SAMPLERS["rwm"], "gradients_per_step", 0)
    lane, per_step = LANES.get("rwm" if key == "free" else key, ({"sampler": key}, None))
    runs = []
    monkeypatch.setattr(race, "Run", lambda spec: runs.append(Run(spec)) or runs[-1])
    race.measure(racing(lane))
    (run,) = runs
    assert run.spec.n_chains == 8 and seen == [run.steps]
    if key == "nuts":
        assert 20_000 * 8 <= run.gradients <= 20_000 * 8 + 8 * 2**8 and run.steps < 20_000
    else:
        assert 20_000 <= run.steps * per_step < 20_000 + per_step


def test_minibatches_cost_the_data_that_they_touch():
    """A race of full gradients of many data points is refused by its own arithmetic: 20,000 · 8 · N."""
    data = {"key": "logistic_large", "params": {"items": 10_000, "features": 2}}
    with pytest.raises(race.SpecError, match="1,600,000,000 data points"):
        racing({"sampler": "sgld"}, data)
    assert racing({"sampler": "sgld", "gradient": "minibatch"}, data).n_chains == 8


def ranked(by, entries):
    made = object.__new__(RoomState)
    object.__setattr__(made, "race", type("Race", (), {"by": by})())
    object.__setattr__(made, "entries", entries)
    return [who for who, _ in RoomState.ranking(made)]


def test_the_ranking_by_hand():
    """The smallest first by either number; 0 is known, and what is not known comes last."""
    entries = {
        "a": {"ks": 0.3, "tau": 5.0},
        "b": {"ks": 0.1, "tau": None},
        "c": {"ks": 0.2, "tau": 0.0},
        "d": {"ks": 0.05, "tau": 7.5},
    }
    assert ranked("ks", entries) == ["d", "b", "c", "a"]
    assert ranked("tau", entries) == ["c", "a", "d", "b"]


@pytest.mark.parametrize("fault", ["mean", "spent"])
def test_faults_of_a_race(fault, monkeypatch):
    """The planted faults: the mean τ for the largest, and steps without gradients at an eighth of their price."""
    if fault == "mean":
        true, asked = autocorrelation.tau_int, []

        def averaged(statistics, k):
            asked.append(k)
            return float(np.mean([true(statistics, j) for j in range(2)]))

        monkeypatch.setattr(race.autocorrelation, "tau_int", averaged)
        with pytest.raises(AssertionError):
            test_gradients_for_a_draw_are_those_of_the_slowest_column(False)
        assert asked == [0, 1]
    else:
        monkeypatch.setattr(race, "_spent", lambda run: max(run.gradients, run.steps))
        with pytest.MonkeyPatch.context() as inner, pytest.raises(AssertionError):
            test_every_sampler_has_the_same_budget("free", inner)


def test_so_many_samplers_wait_to_be_measured_and_no_more(monkeypatch):
    """A sentence refuses one more. Fault: the places are not given back."""
    monkeypatch.setattr(race, "WAITING", 3)
    measuring = threading.Event()

    async def do():
        asked = [asyncio.ensure_future(race.measured(lambda: measuring.wait(60) and {})) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(SpecError, match="3 samplers wait to be measured"):
            await race.measured(dict)
        measuring.set()
        await asyncio.gather(*asked)
        assert await race.measured(lambda: {"ks": 0.1}) == {"ks": 0.1}

    asyncio.run(do())
