"""Langevin dynamics of the square root: the coordinate in which the CIR process has constant noise."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.minibatch import estimate_counts
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL
from sgmcmc_lab.samplers.targets.base import POSITIVE, SIMPLEX


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size = params[0]
    gradient, target_params = model.gradient, model.params
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    noise = sqrt(2 * step_size)
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
                x = 2 * sqrt(theta[c, i])
                x = abs(x + (step_size * (1 / x - x / 2 * grad[c, i]) + noise * rng.standard_normal()))
                theta[c, i] = x * x / 4
                out[t, c, i] = theta[c, i]


class RootSGLD(Sampler):
    """Stochastic gradient Langevin dynamics of x = 2√θ with reflection (Baker et al. 2018, Theorem 2.1).

    SDE: dx = (1/x − (x/2)∇U(x²/4)) dt + √2 dW, which is dθ = (−θ∇U + 1) dt + √(2θ) dW by Itô's formula: the recipe
    with D = diag(θ), Q = 0. For Gamma(a, 1) it is the CIR process, and x has a generalised gamma distribution,
    x^{2a−1} e^{−x²/4}. Euler–Maruyama with reflection at 0: x ← |x + ε(1/x − (x/2)∇Ũ) + √(2ε) ξ|, θ = x²/4.
    Invariant distribution: e^{−U} as ε → 0. With a < ½ the drift (2a − 1)/x points to 0 without bound, and a chain
    that comes near is thrown far away: the constant noise does not help where the posterior is sparse.
    """

    key = "root_sgld"
    title = "SGLD of 2√θ"
    update = r"x_{t+1} = \Bigl|\,x_t + \epsilon\bigl(\tfrac{1}{x_t} - \tfrac{x_t}{2}\nabla\tilde U(\theta_t)\bigr) + \sqrt{2\epsilon}\;\xi_t\Bigr|,\quad \theta = \tfrac{x^2}{4}"
    diffusion = r"D = \operatorname{diag}(\theta)"
    curl = "Q = 0"
    integrator = "Euler–Maruyama of 2√θ, with reflection"
    source = "Baker et al. 2018, Theorem 2.1"
    supports = frozenset({POSITIVE, SIMPLEX})
    accepts = frozenset({FULL, BATCH})
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
        "drift": r"\epsilon\bigl(\tfrac{1}{x_t} - \tfrac{x_t}{2}\nabla\tilde U(\theta_t)\bigr)",
        "gradient noise": r"\epsilon\bigl(\tfrac{1}{x_t} - \tfrac{x_t}{2}\nabla\tilde U(\theta_t)\bigr)",
        "injected noise": r"\sqrt{2\epsilon}\;\xi_t",
        "reflection": r"\Bigl|",
    }

    def textbook_step(self, rng, run, theta, r, data):
        # The drift of x is (2â_j − 1)/x − x/2 where θ_j is of Gamma(a_j, 1), and of the simplex has (x/2)N̂./Σθ for x/2.
        h = self.step_size
        for c in range(len(theta)):
            x = 2 * np.sqrt(theta[c])
            if run.target.support == SIMPLEX:
                alpha = run.target.alpha
                drifts = [
                    (2 * a - 1) / x - x / 2 - x / 2 * (a - alpha).sum() / theta[c].sum()
                    for a in textbook.shapes(rng, run, data, theta[c])
                ]
            else:
                drifts = [1 / x - x / 2 * run.target.gradient_at(theta[c][None])[0]]
            noise = np.array([sqrt(2 * h) * rng.standard_normal() for _ in x])
            if not run.noisy:
                drifts = drifts[-1:]
            for name, drift in zip(["drift", "gradient noise"], drifts, strict=False):
                with run.part(name, c):
                    theta[c] = np.sign(x + h * drift) * (x + h * drift) ** 2 / 4
            with run.part("injected noise", c):
                moved = x + (h * drifts[-1] + noise)
                theta[c] = np.sign(moved) * moved**2 / 4
            with run.part("reflection", c):
                theta[c] = abs(theta[c])
