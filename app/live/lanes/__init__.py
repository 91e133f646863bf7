"""The moving part of a page: the lanes of an experiment on a density, or on a model of data."""

from collections.abc import Sequence
from typing import Any

from sgmcmc_lab.app.live.lanes.base import Lanes, Progress
from sgmcmc_lab.app.live.lanes.densities import DensityLanes
from sgmcmc_lab.app.live.lanes.models import ModelLanes
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.app.state.upload import Upload
from sgmcmc_lab.samplers import Experiment

__all__ = ["DensityLanes", "Lanes", "ModelLanes", "Progress", "prepare", "scene_of"]


def prepare(
    progress: Progress, experiment: Experiment, upload: Upload | None, readings: Sequence[Any] | None = None
) -> Lanes:
    """The lanes of an experiment before their first step, which may take a while. Raises :class:`SpecError`.

    ``upload`` is the person's file, where the experiment is on it. A density waits for these readings, by default for
    all.
    """
    if experiment.of_model:
        return ModelLanes.prepare(progress, experiment, upload)
    return DensityLanes.prepare(progress, experiment, readings)


def scene_of(state: AppState, lanes: Lanes | None) -> Any:
    """The scene for which the views of a page are built; None while its data or its exact answers are not yet known."""
    if not state.experiment.of_model:
        return DensityLanes.scene(state, lanes)
    if isinstance(lanes, ModelLanes) and lanes.experiment.target == state.experiment.target:
        return lanes.scene(state)
    return None
