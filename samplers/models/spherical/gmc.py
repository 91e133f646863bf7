"""Geodesic Monte Carlo for topics on a sphere: blocked Gibbs, and with an approximate accept step."""

from math import exp

import numpy as np
from numpy.random import Generator

from sgmcmc_lab.samplers.manifolds import sphere
from sgmcmc_lab.samplers.models.spherical import textbook
from sgmcmc_lab.samplers.models.spherical.method import SHAPE, SphericalSampler, State
from sgmcmc_lab.samplers.models.spherical.model import Spherical
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.targets.base import Array


class SphericalGMC(SphericalSampler):
    """A method that moves all topics along great circles, and accepts or rejects."""

    step_size = Real(
        0.2,
        bounds=(1e-4, 5.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time of one leapfrog step, in units of τ = √(K/(κN)).",
    )
    n_leapfrog = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal of the topics; each looks at all documents.",
    )

    def slope(self, model: Spherical, state: State, rng: Generator, theta: Array) -> Array:
        """∂U/∂β at the present topics; ``theta`` (draws, documents, topics) was drawn at those before the proposal."""
        return self.gradient(model, state, theta, state.batch)

    def change(self, model: Spherical, before: Array, now: Array, theta: Array) -> float:
        """U at the topics ``now`` minus U at those ``before``."""
        raise NotImplementedError

    def advance(self, model: Spherical, state: State, rng: Generator) -> int:
        """θ of all documents, then a proposal of all topics."""
        time = self.step_size * self.unit(model)
        state.batch = np.arange(model.n_data)
        theta = self.draw_theta(model, state, rng, state.batch, int(self.theta_draws))
        theta = self.kept(theta)
        before, roots = state.beta.copy(), state.roots.copy()
        v = state.velocity = rng.standard_normal(before.shape)
        sphere.project(state.beta, v, SHAPE)
        energy = (v**2).sum() / 2
        slope = self.slope(model, state, rng, theta)
        for _ in range(self.n_leapfrog):
            v -= time / 2 * slope
            sphere.project(state.beta, v, SHAPE)
            sphere.flow(state.beta, v, time, SHAPE)
            slope = self.slope(model, state, rng, theta)
            v -= time / 2 * slope
            sphere.project(state.beta, v, SHAPE)
        rise = (v**2).sum() / 2 - energy + self.change(model, before, state.beta, theta)
        # A rise that is no number is no reason to accept.
        if not rng.random() < exp(min(-rise, 0.0)):
            state.beta, state.roots = before, roots
        state.steps += 1
        return model.n_data * (1 + self.n_leapfrog)

    def kept(self, theta: Array) -> Array:
        """The draws of θ that the proposal uses."""
        return theta

    def textbook_step(self, rng, model, state):
        return textbook.gmc(self, rng, model, state)


class SphericalGibbs(SphericalGMC):
    """GMC with blocked Gibbs: θ given β, and β given θ, each by geodesic Monte Carlo with its accept step.

    Step: N proposals of every document's θ from p(θ|β, v) on the simplex; then, with the last θ, v ~ ΛN(0, I), L
    leapfrog steps hτ along great circles with the full gradient of
    U = + log c_V(‖m̄‖) − κΣ_d v_d·v̄(β, θ_d), accepted with probability min(1, e^{−ΔH}).
    Invariant distribution: p(β, θ|v), exactly, for every step size.
    """

    key = "spherical_gibbs"
    title = "GMC, blocked Gibbs"
    update = (
        r"\begin{aligned}\theta &\sim \mathrm{GMC}\text{ for } p(\theta\mid\beta, v);\quad {v \sim \Lambda\,\mathcal N(0, I)};\quad \text{then } L \text{ times:}\\"
        r"v &\leftarrow v - \tfrac{h\tau}{2}\Lambda\nabla_{\!\beta} U(\beta,\theta),\quad (\beta, v) \leftarrow \text{geodesic}_{h\tau}(\beta, v),\quad v \leftarrow v - \tfrac{h\tau}{2}\Lambda\nabla_{\!\beta} U(\beta,\theta)\\"
        r"&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)\end{aligned}"
    )
    source = "Byrne & Girolami 2013; Liu, Zhu & Song 2016, section 5.3"

    def kept(self, theta):
        return theta[-1:]

    def change(self, model, before, now, theta):
        def energy(beta: Array) -> float:
            return model.prior_energy(beta) - model.k * float(model.cosines(beta, model.training, theta[0]).sum())

        return energy(now) - energy(before)

    tried_at = ({"theta_draws": 2, "theta_leapfrog": 2, "n_leapfrog": 2},)


class SphericalGMCApprox(SphericalGMC):
    """GMC for p(β|v) itself, with an accept step that estimates the ratio of its densities.

    The slope of U(β) = −log p(β|v) is that of eq (10) with all documents and N draws of θ, new ones at every leapfrog
    step. For the accept step p(v_d|β′)/p(v_d|β) = E[e^{κ v_d·(v̄(β′, θ) − v̄(β, θ))}] over p(θ|β, v_d) is the mean over
    N draws of θ. The paper's own estimate is in its appendix B, which its text leaves out.
    Invariant distribution: p(β|v) as N → ∞; with few draws the mean's log is too low, and proposals are rejected.
    """

    key = "spherical_gmc"
    title = "GMC, approximate accept step"
    update = (
        r"\begin{aligned}v &\sim \Lambda\,\mathcal N(0, I);\quad \text{then } L \text{ times, with new } \theta^{(n)} \sim p(\theta\mid\beta, v):\\"
        r"v &\leftarrow v - \tfrac{h\tau}{2}\Lambda\nabla\hat U(\beta),\quad (\beta, v) \leftarrow \text{geodesic}_{h\tau}(\beta, v),\quad v \leftarrow v - \tfrac{h\tau}{2}\Lambda\nabla\hat U(\beta)\\"
        r"&\text{accept with } e^{-\Delta H},\quad \Delta U \approx \Delta\log c_V - \textstyle\sum_d \log \tfrac1N\sum_n e^{\kappa v_d\cdot(\bar v' - \bar v)}\end{aligned}"
    )
    source = "Liu, Zhu & Song 2016, section 5.3; the ratio's estimate is ours"

    step_size = Real(
        0.1,
        bounds=(1e-4, 5.0),
        log=True,
        tex="h",
        label="Step size h",
        doc="The time of one leapfrog step, in units of τ = √(K/(κN)).",
    )
    n_leapfrog = Count(
        2,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal of the topics; each looks at all documents. Over long paths the estimate of the ratio fails, and nothing is accepted.",
    )

    def slope(self, model, state, rng, theta):
        fresh = self.draw_theta(model, state, rng, state.batch, int(self.theta_draws))
        return self.gradient(model, state, fresh, state.batch)

    def change(self, model, before, now, theta):
        gain = model.k * (model.cosines(now, model.training, theta) - model.cosines(before, model.training, theta))
        largest = gain.max(axis=0)
        ratio = largest + np.log(np.exp(gain - largest).mean(axis=0))
        return model.prior_energy(now) - model.prior_energy(before) - float(ratio.sum())

    tried_at = ({"theta_draws": 2, "theta_leapfrog": 2, "n_leapfrog": 2},)
