"""The common part of the views of recipes."""

from typing import ClassVar

from sgmcmc_lab.app.views.base import LaneFrame, Scene, View
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.recipe.recipe import Recipe

DRAWN = 2
"""Coordinates of θ with which a recipe's drift and densities can be drawn."""


def recipe_of(lane: LaneFrame) -> Recipe | None:
    """The recipe of a lane, None for other samplers."""
    sampler = lane.run.sampler
    return sampler.recipe(lane.run.sampled) if isinstance(sampler, RecipeSampler) else None


def layouts_of(experiment: Experiment) -> tuple[str, ...]:
    """The layout of each lane's recipe; empty for another sampler."""
    return tuple(
        str(lane.sampler.values()["layout"]) if lane.sampler.key == RecipeSampler.key else ""
        for lane in experiment.lanes
    )


class RecipeView(View):
    """A view of the lanes whose sampler is a recipe."""

    most: ClassVar[int | None] = None
    """It shows so many recipes, the first ones; None where it shows all of them."""

    def __init__(self, scene: Scene, before: View | None = None):
        super().__init__(scene, before)
        if self.most == 1 and sum(map(bool, scene.layouts)) > 1:
            self.hint += ", of the first recipe"

    @property
    def recipes(self) -> list[int]:
        """The lanes whose recipes it shows."""
        return [i for i, kind in enumerate(self.scene.layouts) if kind][: self.most]

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        recipe = any(lane.sampler.key == RecipeSampler.key for lane in experiment.lanes)
        return recipe and experiment.make_target().dim <= DRAWN
