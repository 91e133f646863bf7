"""The stationary distribution of the drift without Γ, in closed form."""

from sgmcmc_lab.samplers.expressions import apply
from sgmcmc_lab.samplers.recipe.recipe import Recipe


def wrong_potential(recipe: Recipe):
    """Ũ of the marginal of θ ∝ e^{−Ũ} without Γ: U + log g, with g = G^{−1/2} of Q's blocks ∓gI, or with D = gI."""
    d = recipe.layout.dim
    return recipe.potential + apply("log", -recipe.Q[0][d] if recipe.layout.momenta else recipe.D[0][0])
