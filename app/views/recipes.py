"""What the views of recipes share."""

from app.views.base import LaneFrame, View
from samplers import Experiment
from samplers.kernels.recipe import RecipeSampler
from samplers.recipe.recipe import Recipe


def recipe_of(lane: LaneFrame) -> Recipe | None:
    """The recipe of a lane, None for other samplers."""
    sampler = lane.run.sampler
    return sampler.recipe(lane.run.target) if isinstance(sampler, RecipeSampler) else None


def layouts_of(experiment: Experiment) -> tuple[str, ...]:
    """The layout of each lane's recipe; empty for another sampler."""
    return tuple(
        str(lane.sampler.values()["layout"]) if lane.sampler.key == RecipeSampler.key else ""
        for lane in experiment.lanes
    )


class RecipeView(View):
    """A view of the lanes whose sampler is a recipe."""

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return any(lane.sampler.key == RecipeSampler.key for lane in experiment.lanes)
