"""Minibatch Gibbs sampling of a Dirichlet process mixture on a sphere."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.clusters.minibatch_gibbs import (
    MinibatchGibbs,
    add_density_of_family,
    density_type,
    step_of_family,
    step_type,
)


@jit.loop(step_type(jit.matrix))
def step(rng, x, chosen, proposals, z, known, drawn, prior, alpha, shown, together):
    return step_of_family(rng, x, chosen, proposals, z, known, drawn, prior, alpha, shown, together)


@jit.loop(density_type(jit.matrix))
def add_density(x, known, drawn, prior, alpha, out):
    add_density_of_family(x, known, drawn, prior, alpha, out)


class SphereMinibatch(MinibatchGibbs):
    """Minibatch Gibbs sampling (Smolyakov, Liu & Fisher, Algorithm 3) on a sphere, its batch size by their Algorithm 1.

    Update: that of :class:`MinibatchGibbs`, with vMF(x_i; μ_k, κ) for N(x_i; μ_k, Σ_k), and given all points of each
    cluster μ_k ~ vMF(R_k/‖R_k‖, ‖R_k‖), R_k = κ₀m + κ Σ_{i: z_i = k} x_i.
    Invariant distribution: p(z, μ, α | x), exactly, for every fixed m. With m = 0 the batch size is chosen by the
    autocorrelation of Σ_i (1 − μ_{z_i}·x_i)/N.
    """

    key = "sphere_minibatch"
    model = "sphere_clusters"
    update = (
        r"\begin{aligned}p(z_i = k \mid \cdot) &\propto N_{k,-i}\;\mathrm{vMF}(x_i;\mu_k,\kappa),\quad "
        r"p(z_i = \text{new} \mid \cdot) \propto \alpha\; p(x_i)\quad\text{for } m \text{ points } i\\"
        r"\mu_k &\sim \mathrm{vMF}(R_k/\lVert R_k\rVert, \lVert R_k\rVert),\quad "
        r"R_k = \kappa_0 m + \kappa \textstyle\sum_{i: z_i = k} x_i\end{aligned}"
    )
    source = "Smolyakov, Liu & Fisher, Algorithms 1 and 3; Neal 2000, Algorithm 2; Dahl 2003; Wood 1994"
    step = step
    add_density = add_density
    compiled = (step, add_density)

    tried_at = ({"batch_size": 3}, {"batch_size": 8, "start_clusters": 4, "split_merge": 5})
