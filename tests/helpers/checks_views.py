"""The checks that every view has to pass; ``test_views`` runs them over the registry."""

import re
from types import SimpleNamespace

import numpy as np

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live.lanes.densities import LaneRecord
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views import fitting as fitting_keys
from sgmcmc_lab.app.views.adaptation import followed
from sgmcmc_lab.app.views.base import COLUMNS, EXACT, Frame, LaneFrame, Scene, View
from sgmcmc_lab.samplers import Change, Experiment, Lane, Run
from sgmcmc_lab.samplers.kernels.base import KEPT

DENSITY_VIEWS = {key: view for key, view in VIEWS.items() if view.requires in (COLUMNS, EXACT)}
MODEL_VIEWS = {key: view for key, view in VIEWS.items() if view.requires not in (COLUMNS, EXACT)}
"""The views of the inside of a model, and of its scores."""
SCENES = {
    "one lane": ("gaussian", ["sgld"], 4, {}),
    "one chain": ("double_well", ["sgld"], 1, {}),
    "four lanes": ("gaussian", ["sgld", "sghmc", "hmc", "exact"], 4, {}),
    "a plane": ("quartic", ["sgld", "hmc"], 4, {}),
    "heavy tails": ("funnel", ["sgld"], 4, {}),
    "particles": ("gaussian", ["svgd", "sgld"], 4, {}),
    "rungs and pairs": ("double_well", ["parallel_tempering", "rwm"], 4, {}),
    "many chains": ("gaussian", ["sgld"], 10_000, {}),
    "positive": ("gamma", ["cir", "sgrld"], 4, {}),
    "log-normal": ("lognormal", ["geometric_ou"], 4, {}),
    "simplex": ("sparse_dirichlet", ["scir", "sgrld", "cir", "exact"], 4, {}),
    "data on a line": ("poisson_regression", ["sgld", "hmc"], 4, {}),
    "a sample": ("student_mean", ["sgld"], 4, {}),
    "ten coefficients": ("lasso", ["hmc", "sgld"], 4, {}),
    "large simplex": ("dense_dirichlet", ["scir"], 4, {"dimension": 100, "alpha": 0.005}),
}


def records(target, samplers, n_chains=4, target_params=None, gradients=None, keep=False, **settings):
    """A record for each lane. A sampler is a name, or a name with parameters."""
    lanes = []
    for i, sampler in enumerate(samplers):
        key, params = (sampler, {}) if isinstance(sampler, str) else sampler
        lane = {"sampler": {"key": key, "params": params}}
        if gradients:
            lane["gradient"] = gradients[i]
        lanes.append(lane)
    target = {"key": target, "params": target_params or {}}
    experiment = Experiment.from_dict({"target": target, "lanes": lanes, "n_chains": n_chains, **settings})
    return [LaneRecord(Run(spec, keep_draws=keep)) for spec in experiment.runs()]


def scene_of(made, coordinate=0, dark=False, axis="steps"):
    titles = tuple(record.run.sampler.title for record in made)
    throws = sum(record.run.sampler.momentum == KEPT for record in made)
    adapts = followed(record.run.sampler for record in made)
    diverges = any(record.run.sampler.diverges for record in made)
    return Scene(made[0].run.target, titles, coordinate, axis, dark, throws=throws, adapts=adapts, diverges=diverges)


def frames(made, axis="steps"):
    for record in made:
        record.record()
    return Frame(record.frame(axis) for record in made)


def experiment_of(made):
    """The experiment whose lanes are recorded."""
    specs = [record.run.spec for record in made]
    settings = {name: getattr(specs[0], name) for name in ("seed", "n_chains", "n_steps", "burn_in", "thin")}
    return Experiment(specs[0].target, tuple(Lane(spec.sampler, spec.gradient) for spec in specs), **settings)


def fitting(made):
    return [VIEWS[key] for key in fitting_keys(experiment_of(made))]


def lane_of(*chains, marks=(), statistics=None):
    """A lane of a model with these chains, as a frame finds it."""
    run = SimpleNamespace(chains=chains, statistics=statistics, interacting=False)
    return LaneFrame(run, 0.0, np.zeros((0, 1, 1)), np.zeros(0), marks=marks)


def check(view, data):
    """The promise of every view; the bytes that a frame has for it."""
    size = 0
    for name, arrays in data.items():
        feed = view.feeds[name]
        assert isinstance(arrays, tuple)
        assert len(arrays) == len(feed.columns)
        assert len({len(array) for array in arrays}) == 1, name
        for array in arrays:
            sent = np.asarray(array, dtype=float)
            assert sent.ndim == 1
            assert np.isfinite(sent).all(), (view.key, name)
            size += sent.nbytes
        size += 16
        if feed.operation == "range":
            low, high = arrays[0]
            assert low < high
    return size


def missing(cls):
    """The missing declarations of a view's class, as sentences."""
    lacks = [name for name in ("title", "hint") if not hasattr(cls, name)]
    lacks += [name for name in ("build", "compute") if getattr(cls, name) is getattr(View, name)]
    return [f"{cls.__name__} declares no {name}" for name in lacks]


def check_words(cls):
    """A view says what it is in a line beside its title."""
    assert cls.title and 0 < len(cls.hint) < 60 and cls.every >= 1


def check_scene(name, dark, classes):
    """The arrays of these views for a scene, from before the first step on, and after the statistics start again."""
    target, samplers, n_chains, target_params = SCENES[name]
    made = records(target, samplers, n_chains, target_params)
    axis = "gradients" if dark else "steps"
    scene = scene_of(
        made, coordinate=len(made[0].run.target.columns[: made[0].run.target.n_values]) - 1, dark=dark, axis=axis
    )
    views = [cls(scene) for cls in fitting(made) if cls in classes]
    for steps in (0, 1, 2, 500, 3000 if n_chains < 100 else 10):
        for record in made:
            record.run.advance(steps)
        now = frames(made, axis)
        for view in views:
            view.background(now)
            check(view, view.compute(now))
            texts = view.texts(now)
            for _, text in texts:
                assert "nan" not in text and "inf" not in text
            assert texts[-1][0] == view.figure.id and texts[-1][1].startswith(view.title)
            # A picture says in words what its captions show; marks and lines are for the eye.
            assert not re.search(r"<|\n|&\w+;", texts[-1][1])
    # The statistics start again; the views must not trip.
    for record in made:
        record.run.change(Change(0, record.run.spec.sampler, record.run.spec.gradient))
        record.marks.append(record.position)
    for view in views:
        check(view, view.compute(frames(made, axis)))
        view.captions(frames(made, axis))


def open_link(query):
    """The state of a link, and what is not as it says."""
    state = AppState()
    return state, link.read_query(state, query)


def build(key, state, model, dark=False, axis="data"):
    VIEWS[key].prepare(model)
    return VIEWS[key](Scene(model, state.lane_titles(), 0, axis, dark))
