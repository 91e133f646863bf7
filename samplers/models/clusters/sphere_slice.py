"""Slice sampling of the sticks of a Dirichlet process mixture on a sphere."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters.slice_gibbs import (
    SliceGibbs,
    add_density_of_family,
    density_type,
    step_of_family,
    step_type,
)


@jit.loop(step_type(jit.matrix))
def step(rng, x, z, proposals, known, drawn, weights, prior, alpha, shown, together):
    return step_of_family(rng, x, z, proposals, known, drawn, weights, prior, alpha, shown, together)


@jit.loop(density_type(jit.matrix))
def add_density(x, drawn, weights, prior, out):
    add_density_of_family(x, drawn, weights, prior, out)


class SphereSlice(SliceGibbs):
    """Slice sampling of the sticks (Walker 2007; Kalli, Griffin & Walker 2011) on a sphere.

    Update: that of :class:`SliceGibbs`, with μ_k ~ vMF(R_k/‖R_k‖, ‖R_k‖), R_k = κ₀m + κ Σ_{i: z_i = k} x_i, by Wood's
    rejection (1994), and μ_k ~ vMF(m, κ₀) of new sticks.
    Invariant distribution: p(z, μ, w, α | x), exactly, without a truncation.
    """

    key = "sphere_slice"
    model = "sphere_clusters"
    update = (
        r"\begin{aligned}(w_1,\ldots,w_K,\text{rest}) &\sim \mathrm{Dir}(N_1,\ldots,N_K,\alpha),\quad \mu_k \sim \mathrm{vMF}(R_k/\lVert R_k\rVert, \lVert R_k\rVert),\quad "
        r"R_k = \kappa_0 m + \kappa \textstyle\sum_{i: z_i=k} x_i\\"
        r"u_i &\sim \mathcal U(0, w_{z_i}),\quad p(z_i = k \mid \cdot) \propto \mathbb 1(w_k > u_i)\;\mathrm{vMF}(x_i;\mu_k,\kappa)\end{aligned}"
    )
    source = "Walker 2007; Kalli, Griffin & Walker 2011; Wood 1994; Dahl 2003"
    step = step
    add_density = add_density
    compiled = (step, add_density)

    tried_at = ({"split_merge": 0}, {"start_clusters": 4, "split_merge": 3})
