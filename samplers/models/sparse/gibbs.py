"""Gibbs sampling of a sparse regression, every latent variable in every sweep."""

from sgmcmc_lab.samplers.models.sparse.method import SparseMethod


class SparseGibbs(SparseMethod):
    """The Gibbs sampler of the probit lasso (Albert & Chib 1993; Park & Casella 2008), or of the lasso.

    Update, probit lasso: z_i ~ N(w·x_i, 1) on the side of 0 that y_i tells; w ~ N(A⁻¹Xᵀz, A⁻¹), A = XᵀX + D⁻¹; 1/τ_j² ~
    InverseGaussian(λ/|w_j|, λ²). Lasso: τ; then σ² ~ InverseGamma((N + d)/2, (‖y − Xw‖² + wᵀD⁻¹w)/2); then w.
    Invariant distribution: that of w and all latent variables given the data, exactly.
    """

    key = "sparse_gibbs"
    title = "Gibbs"
    update = (
        r"\begin{aligned}z_i &\sim \mathcal N(w\cdot x_i, 1)\text{ on } y_i\text{'s side of } 0, \quad i = 1\ldots N\\"
        r"w &\sim \mathcal N(A^{-1}X^\top z, \sigma^2 A^{-1}),\quad A = X^\top X + D_\tau^{-1}\\"
        r"1/\tau_j^2 &\sim \mathrm{InverseGaussian}\bigl(\lambda\sigma/|w_j|, \lambda^2\bigr)\end{aligned}"
    )
    source = "Albert & Chib 1993; Park & Casella 2008"


class BlockedGibbs(SparseMethod):
    """Gibbs sampling whose scale does not wait for w: a better global half.

    Update: as Gibbs, but the scale is drawn with w integrated out, and w after it. Lasso: σ² ~
    InverseGamma(N/2, R/2), R = yᵀy − yᵀXA⁻¹Xᵀy (Rajaratnam et al. 2019). Probit lasso: all z become g z with g² ~
    Gamma(N/2, rate R/2), R of z for y (Liu & Wu 1999; Roy & Hobert 2007), which is the move along their common scale.
    Invariant distribution: that of w and all latent variables given the data, exactly.
    """

    key = "sparse_blocked"
    title = "Blocked Gibbs"
    update = (
        r"\begin{aligned}z &\leftarrow g z,\quad g^2 \sim \mathrm{Gamma}(N/2, R/2),\quad R = z^\top z - z^\top X A^{-1}X^\top z\\"
        r"w &\sim \mathcal N(A^{-1}X^\top z, \sigma^2 A^{-1})\end{aligned}"
    )
    source = "Liu & Wu 1999; Roy & Hobert 2007; Rajaratnam et al. 2019"
    collapsed = True
