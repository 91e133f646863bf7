"""The recorded steps of a live page against steps that are taken apart while the compiled kernel makes them."""

from dataclasses import replace

import numpy as np
import pytest

from sgmcmc_lab.app.live_page import document, slow
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS, fitting
from sgmcmc_lab.app.views.base import Playing
from sgmcmc_lab.app.views.steps import numbers_of
from sgmcmc_lab.samplers import Experiment, Run
from sgmcmc_lab.samplers.step_terms import take_apart

CASES = [
    # A target, a sampler, its gradient, and the views that draw its steps.
    ("quartic", "sghmc", "gaussian", ["state", "phase"]),
    ("double_well", "sgld", "full", ["state"]),
    ("lasso", "hmc", "full", ["state", "phase"]),
    ("gaussian", "svgd", "full", ["state"]),
    ("von_mises", "geodesic_sgld", "full", ["circle"]),
    ("fisher", "sggmc", "full", ["globe"]),
]


def made(target, sampler, gradient, seed=3):
    """An experiment, what is recorded of it, and its views, whose numbers the recording did not meet."""
    lanes = [{"sampler": sampler, "gradient": gradient}]
    experiment = Experiment.from_dict({"target": target, "lanes": lanes, "n_chains": 3, "seed": seed})
    names = slow.names_of([experiment])
    scene = replace(document._scene(AppState(experiment=experiment)), lanes=document.NAMES[:1], parts=names, noted=0)
    keys = [key for key in document.LIVE if key in fitting(experiment)]
    recorded, fresh = ([view for view in (VIEWS[key](scene) for key in keys) if "parts" in view.feeds] for _ in "12")
    return experiment, slow.described(experiment, names, recorded, scene.coordinate), fresh


def apart(experiment, steps, views):
    """The differences between recorded steps and the first ones of the experiment's run."""
    run, out = Run(experiment.runs()[0]), []
    reach = getattr(run.sampler, "step_size", 0.0)
    for number, one in enumerate(steps):
        step = take_apart(run)
        said = [f"{part.name} {numbers_of(part, step, views[0].scene.coordinate)}".strip() for part in step.parts]
        if one["said"] != said:
            out.append(f"step {number}: {one['said']}, not {said}")
        if [views[0].scene.parts[kind] for kind in one["kinds"]] != [part.name for part in step.parts]:
            out.append(f"step {number}: other parts")
        frame = slow.Frame([slow.LaneFrame(run, 0.0, np.zeros((0, 1, step.dim)), np.zeros(0))])
        windows = tuple((float(k), k + 1.0) for k in range(len(step.parts)))
        frame.playing = Playing(step, windows, reach)
        for view in views:
            if view.key not in one["views"]:
                continue
            found, data = one["views"][view.key]["feeds"], view.compute(frame)
            ends = [np.array(columns)[:, np.array(columns)[-5] > 0] for columns in (found["parts"], data["parts"])]
            # Where an arrow ends, in columns x1, y1 and so on, which part it is, and when it is there.
            rows = [*range(1, len(ends[0]) - 5, 2), -4, -1]
            pairs = [(ends[0][rows], ends[1][rows])]
            pairs += [(found[name], data[name]) for name in found if name != "parts"]
            if any(np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=2e-3, atol=1e-9) for a, b in pairs):
                out.append(f"step {number}: {view.key}")
        run.advance(1)
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("target", "sampler", "gradient", "keys"), CASES)
def test_recorded_steps_are_those_of_the_run(target, sampler, gradient, keys):
    """A planted fault: those of another seed are seen to be others, in each view and in words."""
    experiment, steps, views = made(target, sampler, gradient)
    assert steps and list(steps[0]["views"]) == keys
    assert apart(experiment, steps, views) == []
    other = " ".join(apart(experiment, made(target, sampler, gradient, seed=4)[1], views))
    assert all(key in other for key in [*keys, "not"])


@pytest.mark.slow
def test_only_so_many_steps_are_recorded_as_a_file_has_room_for(monkeypatch):
    """Fails where one that is too large, or too long to be taken apart, is in the file."""
    steps = made("quartic", "sgld", "full")[1]
    assert len(steps) == slow.STEPS
    monkeypatch.setattr(slow, "MOST_BYTES", 1500)
    fewer = made("quartic", "sgld", "full")[1]
    assert 0 < len(fewer) < slow.STEPS and fewer == steps[: len(fewer)]
    monkeypatch.setattr(slow, "MOST_BYTES", 100)
    assert made("quartic", "sgld", "full")[1] == []
    monkeypatch.undo()
    monkeypatch.setattr("sgmcmc_lab.samplers.step_terms.MOST_MICROSECONDS", 1.0)
    assert made("quartic", "sgld", "full")[1] == []
