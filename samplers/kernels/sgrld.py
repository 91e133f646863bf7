"""Stochastic gradient Riemannian Langevin dynamics on positive coordinates."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.minibatch import estimate_counts
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL
from sgmcmc_lab.samplers.targets.base import POSITIVE, SIMPLEX


@jit.helper
def sgrld_step(x, drift, step_size, normal):
    """Euler–Maruyama of one coordinate with D = x, reflected at 0; the drift is 1 − x∇Ũ."""
    return abs(x + (step_size * drift + sqrt(2 * step_size * x) * normal))


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    gradient, target_params = model.gradient, model.params
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    estimate = target_params.copy()
    n_data = target_params[dim : 2 * dim].sum()
    for t in range(n):
        if source.batch_size == 0:
            gradient(theta, grad, target_params)
        for c in range(n_chains):
            if source.batch_size > 0:
                estimate_counts(rng, state.data, n_data, source.batch_size, source.replacement, estimate[dim:])
                gradient(theta[c : c + 1], grad[c : c + 1], estimate)
            for i in range(dim):
                drift = 1 - theta[c, i] * grad[c, i]
                theta[c, i] = sgrld_step(theta[c, i], drift, step_size, rng.standard_normal())
                out[t, c, i] = theta[c, i]


class SGRLD(Sampler):
    """Stochastic gradient Riemannian Langevin dynamics with reflection (Patterson & Teh 2013).

    SDE: dθ = (−θ∇U + 1) dt + √(2θ) dW, the recipe with D = diag(θ), Q = 0, Γ = 1.
    Euler–Maruyama with reflection at 0: θ ← |θ + ε(1 − θ∇Ũ) + √(2εθ) ξ|.
    On the Dirichlet posteriors, in expanded mean, the drift is ε(α − θ + N̂_j − ω_j N̂.). The SCIR
    paper's h is 2ε, and its released drift is wrong; this is the correct one.
    Invariant distribution: e^{−U} as ε → 0; near the boundary the bias of every ε > 0 is large.
    """

    key = "sgrld"
    title = "SGRLD"
    update = r"\theta_{t+1} = \Bigl|\,\theta_t + \epsilon\bigl(1 - \theta_t\nabla\tilde U(\theta_t)\bigr) + \sqrt{2\epsilon\theta_t}\;\xi_t\Bigr|"
    diffusion = r"D = \operatorname{diag}(\theta)"
    curl = "Q = 0"
    integrator = "Euler–Maruyama with reflection"
    source = "Patterson & Teh 2013; Baker et al. 2018, section 1.2"
    supports = frozenset({POSITIVE, SIMPLEX})
    accepts = frozenset({FULL, BATCH})
    known_bias = "Near 0 its Euler steps have a large bias; the lesson Boundary measures it."
    advance = advance

    step_size = Real(
        0.0025,
        bounds=(1e-6, 1.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances; half the step size h of the SCIR paper.",
    )

    bias_order = 1
    steps_to_test = 500

    parts = {
        "drift": r"\epsilon\bigl(1 - \theta_t\nabla\tilde U(\theta_t)\bigr)",
        "gradient noise": r"\epsilon\bigl(1 - \theta_t\nabla\tilde U(\theta_t)\bigr)",
        "injected noise": r"\sqrt{2\epsilon\theta_t}\;\xi_t",
        "reflection": r"\Bigl|",
    }

    def textbook_step(self, rng, run, theta, r, data):
        # Baker et al.: θ ← |θ + (h/2)(α − θ + N̂_j − ω_j N̂.) + √(hθ) ξ| with h = 2ε; elsewhere 1 − θ∇U is the drift.
        h = 2 * self.step_size
        for c in range(len(theta)):
            x = theta[c].copy()
            if run.target.support == SIMPLEX:
                alpha = run.target.alpha
                drifts = [a - x - x / x.sum() * (a - alpha).sum() for a in textbook.shapes(rng, run, data, x)]
            else:
                drifts = [1 - x * run.target.gradient_at(x[None])[0]]
            noise = np.array([sqrt(h * x[j]) * rng.standard_normal() for j in range(len(x))])
            if not run.noisy:
                drifts = drifts[-1:]
            for name, drift in zip(["drift", "gradient noise"], drifts, strict=False):
                with run.part(name, c):
                    theta[c] = x + h / 2 * drift
            with run.part("injected noise", c):
                theta[c] = x + (h / 2 * drifts[-1] + noise)
            with run.part("reflection", c):
                theta[c] = abs(theta[c])
