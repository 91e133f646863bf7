"""Collapsed Gibbs sampling of a Dirichlet process mixture on a sphere."""

from numba import types

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters.collapsed_gibbs import (
    CollapsedGibbs,
    add_density_of_family,
    sweep_of_family,
    sweep_type,
)


@jit.loop(sweep_type(jit.matrix))
def sweep(rng, x, z, proposals, known, prior, alpha, shown, together):
    sweep_of_family(rng, x, z, proposals, known, prior, alpha, shown, together)


@jit.loop(types.void(jit.matrix, jit.matrix, jit.matrix, types.float64, jit.vector))
def add_density(x, known, prior, alpha, out):
    add_density_of_family(x, known, prior, alpha, out)


class SphereCollapsed(CollapsedGibbs):
    """Collapsed Gibbs sampling (Neal 2000, Algorithm 3) on a sphere, with μ and w integrated out.

    Update: that of :class:`CollapsedGibbs`, with the densities of the next point C(κ) C(‖R_k‖)/C(‖R_k + κx_i‖), where
    R_k = κ₀m + κ Σ_{j: z_j = k} x_j and C is the normaliser of vMF.
    Invariant distribution: p(z, α | x), exactly.
    """

    key = "sphere_collapsed"
    model = "sphere_clusters"
    update = (
        r"\begin{aligned}p(z_i = k \mid z_{-i}, x) &\propto N_{k,-i}\; \frac{C(\kappa)\,C(\lVert R_k\rVert)}{C(\lVert R_k + \kappa x_i\rVert)},\quad "
        r"R_k = \kappa_0 m + \kappa \textstyle\sum_{j \ne i: z_j = k} x_j\\"
        r"p(z_i = \text{new} \mid z_{-i}, x) &\propto \alpha\; \frac{C(\kappa)\,C(\kappa_0)}{C(\lVert \kappa_0 m + \kappa x_i\rVert)}\end{aligned}"
    )
    source = "Neal 2000, Algorithm 3; Dahl 2003; Escobar & West 1995; Gopal & Yang 2014"
    sweep = sweep
    add_density = add_density
    compiled = (sweep, add_density)

    tried_at = ({"split_merge": 0}, {"start_clusters": 4, "split_merge": 3})
