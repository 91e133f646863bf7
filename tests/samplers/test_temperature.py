"""The temperature of a run on its way: to other targets, to a person's own table, and from the command line."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.samplers import Change, Experiment, Run, RunSpec, SpecError, cli, run
from sgmcmc_lab.samplers.choices import Choice, make_target
from sgmcmc_lab.samplers.live import description
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.own import keep

HEAT = 4.0


def test_a_run_that_changes_its_target_keeps_its_temperature():
    """N(0, 1) at T = 4 has the variance 4, and N(0, 2²) has 16: in the engine and in a live page's file."""
    spec = RunSpec.of("gaussian", "sgld", temperature=HEAT)
    to = Choice("gaussian", (("mean", 0.0), ("sd", 2.0)))
    spec = replace(spec, changes=(Change(3, spec.sampler, spec.gradient, to),))
    made = Run(spec)
    assert made.target.columns[0].variance == pytest.approx(4)
    made.advance(4)
    assert made.target.columns[0].variance == pytest.approx(16)
    (change,) = description.of_run(spec)["changes"]
    assert change["target"] == description.of_target(TARGETS["gaussian"](sd=4.0), False)
    assert change["target"] != description.of_target(TARGETS["gaussian"](sd=2.0), False)


def test_a_run_does_not_change_to_a_target_without_answers_at_its_temperature():
    """Gamma(a) has none at T ≤ 1 − a: the experiment is refused, and not its chains in the midst of a run."""

    def data(a):
        lane = {"sampler": "sgrld", "gradient": "full"}
        change = {"step": 5, **lane, "target": {"key": "gamma", "params": {"shape": a}}}
        return {"target": {"key": "gamma", "params": {"shape": 0.5}}, "temperature": 0.75, **lane, "changes": [change]}

    assert RunSpec.from_dict(data(0.4)).changes[0].target.values()["shape"] == 0.4
    with pytest.raises(SpecError, match="no finite integral at 0"):
        RunSpec.from_dict(data(0.1))


def test_a_table_of_ones_own_has_targets_at_each_temperature():
    """Planted fault: the target of the temperature before."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 2))
    rows = [["one", "two", "y"], *np.column_stack([x, x.sum(axis=1) + rng.standard_normal(40)]).round(3).tolist()]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    table = keep(TARGETS["linear_table"].read({"mine.csv": text.encode()}))
    spec = RunSpec.of("linear_table", "sgld", target_params={"table": table.key})
    found = [make_target(spec.target, heat) for heat in (1.0, 0.5, 2.0)]
    assert [target.temperature for target in found] == [1.0, 0.5, 2.0]
    assert make_target(spec.target, 0.5) is found[1]


@pytest.mark.slow
def test_the_temperature_of_the_command_line_is_that_of_the_draws(tmp_path):
    spec = RunSpec.of("quartic", "sgld", n_steps=20, n_chains=2, seed=3)
    (tmp_path / "spec.json").write_text(spec.to_json())
    out = tmp_path / "draws.csv"
    assert cli.main(["run", str(tmp_path / "spec.json"), "--temperature", "4", "--out", str(out)]) == 0
    _, *rows = csv.reader(out.read_text().splitlines())
    found = np.array(rows, dtype=float)[:, 2:].reshape(2, 20, 2)
    np.testing.assert_array_equal(found, run(replace(spec, temperature=HEAT)).draws)
    assert np.abs(found - run(spec).draws).max() > 0.01


def test_an_experiment_says_what_its_answers_are_of():
    made = Experiment.of("gaussian", {"sgld": {}}, temperature=HEAT)
    assert made.density == (made.target, HEAT) != replace(made, temperature=1.0).density
