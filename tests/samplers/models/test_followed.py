"""The followed quantities of a model of data: the same in every chain, of the later steps, a coordinate on the page."""

import numpy as np
import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.lanes.models import MethodRecord
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import COLUMNS, Frame, Scene
from sgmcmc_lab.lessons.evidence import measured
from sgmcmc_lab.lessons.measures import MEASURES
from sgmcmc_lab.samplers import Change, Choice, Experiment, convergence
from sgmcmc_lab.samplers.cli import main
from sgmcmc_lab.samplers.diagnostics.autocorrelation import integrated_time
from sgmcmc_lab.samplers.lanes import samplers_of
from sgmcmc_lab.samplers.models import METHODS, MODELS
from sgmcmc_lab.samplers.models.run import Later, run_models, start
from sgmcmc_lab.samplers.models.topics import model as topics_model
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Column, unknown
from tests.helpers.cases import for_each
from tests.helpers.checks_views import check

FLORENTINE = {"graph": "florentine", "n_communities": 3}
COLUMN = Column("x", -8.0, 8.0, unknown, 0.0, 4.0)


def begun(n_chains=2, n_steps=40, key="network_gibbs", target="network", params=FLORENTINE):
    """A run, and what is followed at each of its steps, (steps, chains, columns)."""
    experiment = Experiment.of(target, {key: {}}, target_params=params, n_chains=n_chains, seed=3)
    (run,) = start(experiment, experiment.make_model())
    rows = []
    for _ in range(n_steps):
        run.advance(1)
        rows.append([chain.method.follow(run.model, chain.state) for chain in run.chains])
    return run, np.array(rows)


def later(values):
    """Those of ``values`` (steps, ...) from the power of two before the last one on."""
    n = len(values)
    first = 2 ** (n.bit_length() - 1) // 2
    return values[max(first, 1) - 1 :]


@for_each("n", [1, 2, 3, 4, 7, 8, 9, 31, 32, 40])
def test_statistics_are_of_the_last_half_to_three_quarters(n):
    run, rows = begun(n_steps=n)
    found, due = run.statistics, later(rows)
    assert n / 2 <= len(due) <= 3 * n / 4 + 2 or n < 8
    assert run.rows == n and found.n_steps == len(due)
    for k in range(4):
        assert found.mean(k) == pytest.approx(due[..., k].mean())
        assert found.variance(k) == pytest.approx(due[..., k].var(), abs=1e-12)
        assert found.chain_means(k) == pytest.approx(due[..., k].mean(axis=0))
        assert found.counts(k).sum() == due[..., k].size
        assert found.counts(k)[[0, -1]].sum() == 0, "no number is outside its range"
    np.testing.assert_array_equal(found.history(), np.swapaxes(due, 0, 1))
    np.testing.assert_array_equal(found.tail(5), due[-5:])


def test_the_start_is_forgotten():
    """Fails where a start far off stays in the mean. Fault: all steps counted."""
    values = np.concatenate([np.full(30, 7.0), np.zeros(100)])
    kept = Later((COLUMN,), 1)
    for value in values:
        kept.add(np.array([[value]]))
    assert kept.statistics.mean(0) == 0.0
    assert values.mean() > 1


def test_a_number_that_is_not_finite_is_not_counted():
    kept = Later((COLUMN,), 2)
    for row in ([1.0, 2.0], [np.nan, 1.0], [1.0, np.inf], [3.0, 2.0]):
        kept.add(np.array([row]))
    assert kept.rows == 4
    assert kept.statistics.n_steps == 1 or kept.statistics.mean(0) == 2.5


@pytest.mark.slow
def test_tau_and_r_hat_are_those_of_the_draws():
    """A chain of known memory, ρ = .8 and τ = 9, and one whose two chains are apart."""
    rng, n = np.random.default_rng(5), 2**15
    noise = rng.standard_normal((n, 2)) * np.sqrt(1 - 0.8**2)
    x, kept, apart = np.zeros(2), Later((COLUMN,), 2), Later((COLUMN,), 2)
    for row in noise:
        x = 0.8 * x + row
        kept.add(x[None])
        apart.add((x + np.array([2.0, -2.0]))[None])
    found = integrated_time(kept.statistics, 0)
    assert abs(found.tau - 9) < 4 * found.standard_error < 3
    assert convergence.summary(kept.statistics.history(), 0).rhat < 1.02
    assert convergence.summary(apart.statistics.history(), 0).rhat > 1.5


def test_chains_are_counted_when_all_have_made_the_step():
    """The order in which a page advances the chains does not matter."""
    run, _ = begun(n_chains=3, n_steps=9)
    experiment = Experiment.of("network", {"network_gibbs": {}}, target_params=FLORENTINE, n_chains=3, seed=3)
    (other,) = start(experiment, run.model)
    for made in range(27):
        assert other.rows == made // 3
        other.step(other.next)
    for a, b in zip(run.statistics.sums, other.statistics.sums, strict=True):
        np.testing.assert_array_equal(a, b)


def test_statistics_go_on_through_a_change_and_stop_with_a_chain():
    experiment = Experiment.of("network", {"network_hmc": {}}, target_params=FLORENTINE, n_chains=2)
    (run,) = start(experiment, experiment.make_model())
    run.advance(5)
    run.change(Change(0, Choice("network_hmc", (("step_size", 0.01), ("n_leapfrog", 3))), Choice("", ())))
    run.advance(5)
    assert run.rows == 10
    run.chains[1].method.advance = None

    def fails(*_):
        raise FloatingPointError("no longer finite")

    run.chains[1].method = type("Broken", (), {"advance": fails, "title": "Broken"})()
    run.advance(5)
    assert run.divergence is not None and run.chains[0].steps > 10
    assert run.rows == 10


@pytest.mark.slow
@for_each("key", [key for target in MODELS for key in samplers_of(target)], apart=lambda key: METHODS[key].model)
def test_every_method_is_followed_within_its_ranges(key):
    target = METHODS[key].model
    params = {"network": FLORENTINE, "topics": {"corpus": "bars", "n_topics": 5}}.get(target, {})
    run, rows = begun(n_steps=3, key=key, target=target, params=params)
    assert rows.shape == (3, 2, len(MODELS[target].followed))
    for values, column in zip(np.moveaxis(rows, 2, 0), run.model.columns, strict=True):
        assert column.exact == (target == "sparse")
        # Where the distribution is known, the histogram has its bulk, and a start may lie beyond.
        if not column.exact:
            assert (column.low <= values).all() and (values < column.high).all(), column.name
    # Each step moves what is followed of at least one chain.
    assert (np.ptp(rows, axis=0) > 0).any()


def test_the_topics_of_many_documents_are_those_of_the_first(monkeypatch):
    monkeypatch.setattr(topics_model, "FOLLOWED", 7)
    run, rows = begun(n_steps=1, key="collapsed_gibbs", target="topics", params={"corpus": "bars", "n_topics": 5})
    state, data = run.chains[0].state, run.model.training
    words = state.topics[: data.offsets[7]]
    shares = np.sort(np.bincount(words, minlength=5) / len(words))[::-1]
    assert rows[0, 0, 1:] == pytest.approx(shares[:3])


# On the page


@pytest.mark.slow
@pytest.mark.parametrize("n_chains", [1, 3])
def test_views_of_columns_show_what_is_followed(n_chains):
    """Trace, marginal and autocorrelation: the values of the chains, and no exact law."""
    run, rows = begun(n_chains=n_chains, n_steps=200)
    record = MethodRecord(run)
    for k in range(4):
        scene = Scene(run.model, ("Gibbs",), k, "steps", False)
        views = {key: view(scene) for key, view in VIEWS.items() if view.requires == COLUMNS}
        assert set(views) == {"trace", "marginal", "autocorrelation"}
        record.seen = 0
        frame = Frame([record.frame("steps")])
        found = {key: view.compute(frame) for key, view in views.items()}
        said = {key: " ".join(view.captions(frame).values()) for key, view in views.items()}
        for key, view in views.items():
            check(view, found[key])
            assert "exact" not in view.hint
        # The first is on a log axis.
        drawn = np.log10(rows[..., k]) if k == 0 else rows[..., k]
        x, y = found["trace"]["lane 0 chain 0"]
        np.testing.assert_array_equal(y, drawn[x.astype(int) - 1, 0])
        low, high = found["trace"]["y"][0]
        assert low < drawn[x.astype(int) - 1].min() and drawn[x.astype(int) - 1].max() < high
        centres, heights = found["marginal"]["lane 0"]
        assert (heights * views["marginal"]._widths).sum() == pytest.approx(1, abs=0.02)
        mean = (centres * heights * views["marginal"]._widths).sum()
        assert mean == pytest.approx(later(drawn).mean(), abs=float(views["marginal"]._widths.max()))
        low, high = found["marginal"]["x"][0]
        assert high - low < 3 * np.ptp(drawn) + 0.05
        assert f"mean {later(rows)[..., k].mean():.4g}" in said["marginal"]
        assert ("R̂ needs 2 chains" in said["trace"]) == (n_chains == 1)


def test_the_page_of_a_model_begins_without_them_and_its_link_keeps_the_coordinate():
    state = AppState()
    assert link.read_query(state, "?target=network(graph:florentine)") == []
    assert not {"trace", "marginal"} & set(state.shown_views())
    assert {"trace", "marginal", "autocorrelation"} <= set(fitting(state.experiment))
    assert not {"ks", "state", "order"} & set(fitting(state.experiment))
    state.coordinate = 2
    again = AppState()
    assert link.read_query(again, link.to_query(state)) == []
    assert again.coordinate == 2
    (message,) = link.read_query(again, "?target=network&coordinate=9")
    assert "coordinate" in message and "1 to 4" in message
    assert again.coordinate == 3


# Measures of claims


def test_claims_measure_what_is_followed():
    run, rows = begun(n_steps=100)
    due = later(rows)[..., 1]
    assert measured(MEASURES["mean"](column=2), run).value == pytest.approx(due.mean())
    assert measured(MEASURES["mean"](column=2), run).exact is None
    assert measured(MEASURES["variance"](column=2), run).value == pytest.approx(due.var())
    assert measured(MEASURES["rhat"](column=2), run).value == convergence.summary(run.statistics.history(), 1).rhat
    assert measured(MEASURES["tau"](column=2), run).value == pytest.approx(
        integrated_time(run.statistics, 1).tau, nan_ok=True
    )
    (fresh,) = start(Experiment.of("network", {"network_gibbs": {}}, target_params=FLORENTINE), run.model)
    assert np.isnan(measured(MEASURES["mean"](), fresh).value)


def test_a_column_that_is_not_followed_is_refused():
    (spec,) = Experiment.of("network", {"network_gibbs": {}}, target_params=FLORENTINE).runs()
    MEASURES["mean"](column=4).check(spec)
    with pytest.raises(SpecError, match="columns 1 to 4"):
        MEASURES["mean"](column=5).check(spec)
    with pytest.raises(SpecError, match="allowed is steps"):
        MEASURES["tau"](unit="time").check(spec)


@pytest.mark.slow
def test_the_command_says_means_memory_and_agreement(tmp_path, capsys):
    spec = Experiment.of("network", {"network_gibbs": {}}, target_params=FLORENTINE, n_chains=2, n_steps=900)
    (tmp_path / "spec.json").write_text(spec.to_json(), encoding="utf-8")
    assert main(["run", str(tmp_path / "spec.json"), "--out", str(tmp_path / "out.csv")]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (run,) = run_models(spec)
    known = []
    for k, name in enumerate(MODELS["network"].followed):
        (line,) = [line for line in lines if line.startswith(name)]
        tau = integrated_time(run.statistics, k).tau
        known.append(np.isfinite(tau))
        assert f"{run.statistics.mean(k):.5g}" in line
        assert (" ± " in line) == (f"τ {tau:.3g}" in line) == known[-1], "without τ there is no error"
        assert f"R̂ {convergence.summary(run.statistics.history(), k).rhat:.3f}" in line
    assert any(known)
