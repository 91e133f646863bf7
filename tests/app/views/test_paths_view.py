"""Coefficients of a lasso against λ, and where a batch size is chosen in the curve of the scores."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from sgmcmc_lab.app.live.lanes.models import MethodRecord
from sgmcmc_lab.app.views import VIEWS
from sgmcmc_lab.app.views.base import Frame, Scene
from sgmcmc_lab.app.views.models import paths as module
from sgmcmc_lab.samplers.models.run import start
from sgmcmc_lab.samplers.models.sparse import Sparse
from sgmcmc_lab.samplers.targets.own import Table
from tests.helpers.checks_views import build, open_link


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(module, "N_LAMBDAS", 5)
    monkeypatch.setattr(module, "SWEEPS", 600)


def finished(view):
    while view._left or view._posterior:
        view.background(Frame([]))
    return view.compute(Frame([]))


def scene(model):
    return Scene(model, ("one",), 0, "data", False)


@pytest.mark.slow
def test_paths_are_the_posteriors_and_scikit_learns_lasso(few):
    """The mode at the σ of each point; the medians shrink; names are at the left end, apart from each other."""
    model = Sparse(data="diabetes")
    view = VIEWS["paths"](scene(model))
    assert "0 of 5" in next(iter(view.captions(Frame([])).values()))
    data = finished(view)
    assert list(data["path of bmi"][0]) == pytest.approx(np.geomspace(0.1, 100, 5))
    for k, name in enumerate(model.names):
        _, median, lasso = data[f"path of {name}"]
        _, low, high = data[f"band of {name}"]
        assert ((low <= median) & (median <= high)).all()
        for point, at in zip(sorted(view._points.values(), key=lambda p: p.shrinkage), range(5), strict=True):
            alpha = point.shrinkage * point.sd / len(model.x)
            right = Lasso(alpha=alpha, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(model.x, model.y).coef_[k]
            assert lasso[at] == pytest.approx(right, abs=1e-6)
    ends = np.array([data[f"path of {name}"][1][[0, -1]] for name in model.names])
    assert np.abs(ends[:, 1]).sum() < 0.5 * np.abs(ends[:, 0]).sum()
    assert np.diff(np.sort(data["names"][1])).min() > 0.03
    assert "6 of 10 at 0" in next(
        iter(VIEWS["paths"](scene(Sparse(data="diabetes", shrinkage=100.0)), view).captions(Frame([])).values())
    )


@pytest.mark.slow
def test_paths_are_kept_while_the_data_are_the_same(few):
    view = VIEWS["paths"](scene(Sparse(data="diabetes")))
    finished(view)
    again = VIEWS["paths"](scene(Sparse(data="diabetes", shrinkage=7.0)), view)
    assert not again.background(Frame([])) and "path of bmi" in again.compute(Frame([]))
    x = np.random.default_rng(1).standard_normal((30, 4))
    other = VIEWS["paths"](scene(Sparse(Table(tuple("abcd"), x, "y", x @ [1, 0, 0, 2.0]), data="uploaded")), view)
    assert other.compute(Frame([])) == {} and len(other._left) == 5


def test_of_a_probit_lasso_there_is_none():
    fits = VIEWS["paths"].fits
    assert fits(open_link("?target=sparse(data:diabetes)&lane=sparse_gibbs")[0].experiment)
    assert not fits(open_link("?target=sparse&lane=sparse_gibbs")[0].experiment)
    x = np.random.default_rng(1).standard_normal((30, 4))
    yes = Table(tuple("abcd"), x, "y", np.sign(x[:, 0]), ("no", "yes"))
    view = VIEWS["paths"](scene(Sparse(yes, data="uploaded")))
    assert not view.background(Frame([])) and "probit" in next(iter(view.captions(Frame([])).values()))


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["steps", "data"])
def test_a_dotted_line_is_where_the_size_was_chosen(axis):
    """Its step, told by the run itself; before it, and of a method that is told its size, there is none."""
    state = open_link(
        "?target=sparse(items:60)&lane=sparse_minibatch(batch_size:0;trial:60)&lane=sparse_minibatch(batch_size:4)"
    )[0]
    model = state.experiment.make_model()
    runs = start(state.experiment, model)
    view = build("scores", state, model, axis=axis)
    while True:
        before = runs[0].steps
        for run in runs:
            run.advance(50)
        seen = view.compute(Frame(MethodRecord(run).frame(axis) for run in runs))
        if seen["sampling 0"][0].size:
            break
    chain = runs[0].chains[0]
    assert before < chain.state.extra["adaptation"].chosen_after <= chain.steps
    at, scores = float(seen["sampling 0"][0][0]), chain.scores
    if axis == "steps":
        assert at == chain.state.extra["adaptation"].chosen_after
    else:
        assert scores[0].data_seen < at <= chain.data_seen
    assert not seen["sampling 1"][0].size
    labels = view.captions(Frame(MethodRecord(run).frame(axis) for run in runs))
    assert [f"m = {chain.state.extra['adaptation'].chosen}" in text for text in labels.values()] == [True, False]
