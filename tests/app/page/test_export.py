"""The files of the export menu, against the chains of the page that they are exported from."""

import csv

import numpy as np
import pytest

from sgmcmc_lab.app.live.lanes import DensityLanes
from sgmcmc_lab.app.page import export
from sgmcmc_lab.samplers import Change, Experiment, RunSpec

STEPS, LATER, CHAINS, ADAPTING = 90, 50, 2, 21


@pytest.mark.slow
def test_the_draws_of_a_page_are_those_of_its_chains(monkeypatch):
    """Thinned to fifty rows, with an adaptation, a change during the run, and a temperature.

    Planted faults: the draws of the step before, without the temperature, and without the change.
    """
    monkeypatch.setattr(export, "MAX_ROWS", 50)
    lane = {"sampler": {"key": "hmc", "params": {"adapt_steps": ADAPTING}}}
    data = {"target": "quartic", "lanes": [lane], "n_chains": CHAINS, "seed": 4, "temperature": 0.5}
    lanes, path = DensityLanes(Experiment.from_dict(data)), []
    (run,) = lanes.runs
    other = RunSpec.of("quartic", "hmc", sampler_params={"adapt_steps": ADAPTING, "n_leapfrog": 3})
    for step in range(STEPS):
        if step == LATER:
            lanes.change(0, Change(0, other.sampler, other.gradient))
        run.advance(1)
        path.append(run.position.copy())
    path = np.array(path).swapaxes(0, 1)
    saved = export.saved(lanes.recorded())
    assert (saved.n_steps, saved.thin) == (STEPS, 4), "180 draws in 50 rows"
    steps = np.arange(ADAPTING + 4, STEPS + 1, 4)

    def error(experiment, at):
        name, content = export.draws(experiment, ".csv")
        assert name == "lane-1-hmc.csv"
        header, *rows = csv.reader(content.decode().splitlines())
        assert header == ["chain", "draw", "theta_1", "theta_2"]
        found = np.array(rows, dtype=float).reshape(CHAINS, -1, 4)
        assert found[..., 1].tolist() == [list(range(len(steps)))] * CHAINS
        return float(np.abs(found[..., 2:] - path[:, at - 1]).max())

    assert error(saved, steps) == 0
    assert error(saved, steps - 1) > 0.1
    data = saved.to_dict()
    lane = {**data["lanes"][0], "changes": []}
    for fault in ({"temperature": 1.0}, {"lanes": [lane]}):
        assert error(Experiment.from_dict({**data, **fault}), steps) > 0.1
