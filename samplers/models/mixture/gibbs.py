"""The full slice sampler for clusters of documents: the reference."""

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.models.mixture.method import MOVE, TINY, MixtureMethod


@jit.loop(MOVE)
def move(rng, x, prior, counts, factor, sizes, top, params):
    for r in range(len(x)):
        for k in range(top):
            x[r, k] = max(rng.standard_gamma(prior[r] + factor * counts[r, k]), TINY)


class MixtureGibbs(MixtureMethod):
    """Slice sampling with all documents (Walker 2007; Kalli, Griffin & Walker 2011).

    Update: α, the slices, new sticks and z of all documents; then θ_k ~ Dir(a + N_k·) and
    v_k ~ Beta(1 + N_k, α + Σ_{l>k} N_l).
    Invariant distribution: p(z, θ, w, α | x), exactly, without a truncation. A new cluster has words from the prior,
    and long documents fit none of those: so the clusters of the start matter for long.
    """

    key = "mixture_gibbs"
    title = "Slice Gibbs"
    update = (
        r"\begin{aligned}\theta_k &\sim \mathrm{Dir}(a + N_{k\cdot}),\quad v_k \sim \mathrm{Beta}\bigl(1+N_k,\;\alpha+\textstyle\sum_{l>k}N_l\bigr),\quad "
        r"w_k = v_k\textstyle\prod_{l<k}(1-v_l)\\"
        r"u_i &\sim \mathcal U(0, w_{z_i}),\quad p(z_i = k \mid \cdot) \propto \mathbb 1(w_k > u_i)\textstyle\prod_j\theta_{k x_{ij}}\end{aligned}"
    )
    source = "Walker 2007; Kalli, Griffin & Walker 2011; Baker et al. 2018, section 4.2"
    move = move

    tried_at = ({"start_clusters": 3}, {"start_clusters": 1})

    def textbook_move(self, rng, x, shape, pull, sticks):
        return rng.standard_gamma(shape)
