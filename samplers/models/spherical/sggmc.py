"""Stochastic gradient geodesic Monte Carlo for topics on a sphere."""

from math import exp

from sgmcmc_lab.samplers.models.spherical.method import StochasticSpherical


class SphericalSGGMC(StochasticSpherical):
    """SGGMC of all topics, Algorithm 3 of Liu, Zhu & Song 2016.

    Step, with τ = √(K/(κN)): every topic along its great circle for hτ/2; v ← e^{−Ch/2}(e^{−Ch/2}v − hτΛ∇Ũ +
    ΛN(0, 2Ch)); great circles for hτ/2. ∇Ũ is eq (10): + ∇ log c_V(‖m̄‖), and −κ(N/S) Σ of the gradients of
    v_d·v̄ over a minibatch, averaged over draws of its θ by geodesic Monte Carlo on the simplex.
    V, the noise's variance, is taken for 0.
    Invariant distribution: p(β|v) as h → 0, with all documents, or with the minibatch's heat 1 + Vhτ²/2C; what the few
    draws of θ leave of their last place is a bias that N and η reduce.
    """

    key = "spherical_sggmc"
    title = "SGGMC"
    update = (
        r"\begin{aligned}(\beta, v) &\leftarrow \text{geodesic}_{h\tau/2}(\beta, v)\\"
        r"v &\leftarrow e^{-Ch/2}\Bigl(e^{-Ch/2} v - h\tau\,\Lambda\nabla\tilde U(\beta) + \Lambda\,\mathcal N(0,\ 2Ch)\Bigr)\\"
        r"(\beta, v) &\leftarrow \text{geodesic}_{h\tau/2}(\beta, v)\end{aligned}"
    )
    source = "Liu, Zhu & Song 2016, eqs (8) and (10), Algorithm 3"

    def damping(self, model, state):
        return exp(-self.friction * self.step_size / 2)

    tried_at = ({"batch_size": 3, "theta_draws": 2, "theta_leapfrog": 2}, {"batch_size": 100, "step_size": 0.3})
