"""The gradient's estimators: what the kernels read of each, and what a link that only names one means."""

import pytest

from samplers.gradients import GRADIENTS
from samplers.parameters import SpecError
from samplers.targets import TARGETS

INFINITE = float("inf")


@pytest.mark.parametrize(
    ("key", "values", "noise"),
    [
        ("full", {}, (0.0, 0.0, 0, True)),
        ("gaussian", {"variance": 3.0}, (3.0, 0.0, 0, True)),
        ("gaussian_corrected", {"variance": 3.0}, (3.0, 3.0, 0, True)),
        ("gaussian_estimated", {"variance": 3.0, "sample_size": 7}, (3.0, 3.0, 7, True)),
        ("minibatch", {"batch_size": 7, "replacement": False}, (0.0, 0.0, 7, False)),
        ("minibatch_known", {"batch_size": 7, "variance": 3.0}, (0.0, 3.0, 7, True)),
        ("minibatch_known", {"batch_size": 7, "variance": 3.0, "replacement": False}, (0.0, 3.0, 7, False)),
        ("minibatch_fisher", {"batch_size": 7}, (0.0, INFINITE, 7, True)),
        ("minibatch_fisher", {"batch_size": 7, "replacement": False}, (0.0, INFINITE, 7, False)),
    ],
)
def test_what_the_kernels_read(key, values, noise):
    """V, B̂, the batch size or the draws behind B̂, and whether with replacement."""
    assert tuple(GRADIENTS[key](**values).noise()) == noise


def test_the_data_that_a_gradient_touches():
    quartic, categories = TARGETS["quartic"](), TARGETS["dense_dirichlet"]()
    n_data = len(categories.data())
    assert n_data > 10
    for key in GRADIENTS:
        found = GRADIENTS[key]()
        assert found.data_per_gradient(categories) == (10 if key.startswith("minibatch") else n_data)
    assert GRADIENTS["full"]().data_per_gradient(quartic) == 1


def test_a_batch_is_at_most_the_data_and_for_a_spread_at_least_two():
    target = TARGETS["dense_dirichlet"]()
    n_data = len(target.data())
    for key in ("minibatch", "minibatch_known", "minibatch_fisher"):
        GRADIENTS[key](batch_size=n_data).check(target)
        with pytest.raises(SpecError, match=f"batch_size = {n_data + 1}.*at most N = {n_data}"):
            GRADIENTS[key](batch_size=n_data + 1).check(target)
    GRADIENTS["minibatch"](batch_size=1).check(target)
    GRADIENTS["minibatch_fisher"](batch_size=2).check(target)
    with pytest.raises(SpecError, match=r"batch_size = 1\b.*at least 2"):
        GRADIENTS["minibatch_fisher"](batch_size=1).check(target)


@pytest.mark.parametrize(
    ("key", "name", "default", "bounds"),
    [
        ("gaussian", "variance", 4.0, (1e-3, 1e5)),
        ("gaussian_estimated", "sample_size", 10, (2, 10_000)),
        ("minibatch", "batch_size", 10, (1, 100_000)),
        ("minibatch_known", "variance", 5700.0, (1e-3, 1e7)),
    ],
)
def test_links_and_files_mean_the_same_as_when_they_were_made(key, name, default, bounds):
    """Fails where a default changes, which old links rely on, or a bound that they may have gone to."""
    parameter = GRADIENTS[key].param[name]
    assert (parameter.default, parameter.bounds, parameter.log) == (default, bounds, True)


def test_minibatches_are_drawn_with_replacement_where_nothing_is_said():
    assert all(GRADIENTS[key]().replacement is True for key in GRADIENTS if key.startswith("minibatch"))
