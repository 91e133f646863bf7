"""SGLD with an adaptive drift, as the optimisers Adam and momentum have it."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Flag, Real, Value
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, bias, m_decay, v_decay, floor = params[0], params[1], params[2], params[3], params[4]
    scaled = params[5] > 0
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # In the place of a momentum are the running averages m and v.
    m, v = state.momentum[:, :dim], state.momentum[:, dim:]
    each, noise_scale = np.empty((source.batch_size, dim)), sqrt(source.variance)
    length = sqrt(2 * step_size)
    for t in range(n):
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        for c in range(n_chains):
            for i in range(dim):
                g, drift = grad[c, i], m[c, i]
                if scaled:
                    drift = drift / sqrt(v[c, i] + floor)
                theta[c, i] = theta[c, i] - step_size * g - step_size * bias * drift + length * rng.standard_normal()
                m[c, i] = m_decay * m[c, i] + (1 - m_decay) * g
                v[c, i] = v_decay * v[c, i] + (1 - v_decay) * g * g
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """m = ∇U and v = ∇U∘∇U at the start."""
    grad = np.empty_like(position)
    model.gradient(position, grad, model.params)
    for c in range(position.shape[0]):
        for i in range(position.shape[1]):
            auxiliary[c, i] = grad[c, i]
            auxiliary[c, position.shape[1] + i] = grad[c, i] ** 2


class ASGLD(Sampler):
    """SGLD with Adam's step, or with momentum's, as a second drift (Kim, Song & Liang 2020: ASGLD and MSGLD).

    SDE: dθ = −(∇U + a m/√(v + λ)) dt + √2 dW with the running averages m ← β₁m + (1 − β₁)∇Ũ and
    v ← β₂v + (1 − β₂)∇Ũ∘∇Ũ; without the root dθ = −(∇U + a m) dt + √2 dW. No recipe: the drift has a part that neither
    D, Q nor Γ accounts for.
    Euler–Maruyama: θ ← θ − ε(∇Ũ + a m/√(v + λ)) + N(0, 2ε). As in the paper, m and v hold the gradients of earlier
    steps, not the step's own. They begin with the gradient at the start; in the paper with 0, from which v needs
    1/(1 − β₂) steps, during which the drift is up to (1 − β₁)/√(1 − β₂) too long.
    Invariant distribution: not e^{−U}, unless a = 0; no smaller step helps. As ε → 0 the averages follow θ. Then MSGLD
    draws from e^{−(1 + a)U}, a temperature of 1/(1 + a), and ASGLD, in one dimension, from exp(−U − a∫U′/√(U′² + λ)):
    on N(0, 1) exp(−θ²/2 − a√(θ² + λ)). Where v is so slow that it stands at E U′², and m follows θ, the temperature of
    coordinate i is 1/(1 + a/√(v_i + λ)): on N(0, 1) with a = 1 and λ → 0 the standard deviation solves s² + s = 1,
    which is the golden ratio's 0.618. The bias is small where gradients are large beside a, as in posteriors with long
    tables, and there the second drift does little, too. The paper has no term against it: the drift helps the chain out
    of flat places and saddles.
    On a Gaussian (θ, m) of MSGLD is a linear chain, whose covariance solves a Lyapunov equation.
    Shapes: θ (chains, d); m and v (chains, 2d) in the place of a momentum.
    """

    key = "asgld"
    title = "ASGLD"
    update = (
        r"\begin{aligned}\theta_{t+1} &= \theta_t - \epsilon\,\nabla\tilde U(\theta_t) - \epsilon\,a\,m \oslash \sqrt{v + \lambda} + \mathcal N(0,\ 2\epsilon)\\"
        r"m &\leftarrow \beta_1 m + (1 - \beta_1)\,\nabla\tilde U(\theta_t)\\"
        r"v &\leftarrow \beta_2 v + (1 - \beta_2)\,\nabla\tilde U(\theta_t) \circ \nabla\tilde U(\theta_t)\end{aligned}"
    )
    optional = {
        "scaled": (
            r" \oslash \sqrt{v + \lambda}",
            r"\\v &\leftarrow \beta_2 v + (1 - \beta_2)\,\nabla\tilde U(\theta_t) \circ \nabla\tilde U(\theta_t)",
        )
    }
    diffusion = "D = I"
    curl = "Q = 0"
    integrator = "Euler–Maruyama"
    source = "Kim, Song & Liang 2020"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    known_bias = (
        "Its second drift, with the weight a, narrows the distribution, however small the step; a = 0 makes it SGLD."
    )
    first_stride = 2.0
    advance, start = advance, start

    step_size = Real(
        0.02,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances. A smaller one leaves the bias of the second drift as it is.",
    )
    bias = Real(
        0.1,
        bounds=(0.0, 100.0),
        tex="a",
        label="Weight a",
        doc="The weight of the second drift. With 0 the chain is SGLD; the larger it is, the narrower the draws.",
    )
    m_decay = Real(
        0.9,
        bounds=(0.0, 0.99999),
        tex=r"\beta_1",
        label="Memory β₁",
        doc="The share of the average of the gradients that a step keeps; the average spans about 1/(1 − β₁) steps.",
    )
    v_decay = Real(
        0.999,
        bounds=(0.0, 0.99999),
        tex=r"\beta_2",
        label="Memory β₂",
        doc="The share of the average of the squared gradients that a step keeps; the average spans about 1/(1 − β₂) steps.",
    )
    floor = Real(
        1e-8,
        bounds=(1e-12, 1000.0),
        log=True,
        tex=r"\lambda",
        label="Floor λ",
        doc="Added to v below the root, so that the second drift is at most a|m|/√λ.",
    )
    scaled = Flag(
        True,
        label="Divide by √v",
        doc="Whether the second drift is Adam's, m divided by √(v + λ). Without it the drift is the momentum m: MSGLD.",
    )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(2 * target.dim)

    bias_order = 1

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        # The target's law has no second drift; tests/samplers/kernels/test_asgld.py has the laws with it.
        return {"bias": 0.0, "step_size": step_size}

    steps_to_test = 1000

    parts = {
        "gradient": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "gradient noise": r"- \epsilon\,\nabla\tilde U(\theta_t)",
        "second drift": r"- \epsilon\,a\,m \oslash \sqrt{v + \lambda}",
        "injected noise": r"\mathcal N(0,\ 2\epsilon)",
        "averages": r"\beta_1 m + (1 - \beta_1)\,\nabla\tilde U(\theta_t)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, d = self.step_size, theta.shape[1]
        gradient = textbook.gradients(rng, run, theta, data)
        m, v = r[:, :d].copy(), r[:, d:].copy()
        noise = np.array([[rng.standard_normal() for _ in row] for row in theta])
        for c in range(len(theta)):
            textbook.descend(run, c, theta[c], eps, theta[c], gradient[c])
        with run.part("second drift"):
            theta -= eps * self.bias * (m / np.sqrt(v + self.floor) if self.scaled is True else m)
        with run.part("injected noise"):
            theta += sqrt(2 * eps) * noise
        with run.part("averages"):
            r[:, :d] = self.m_decay * m + (1 - self.m_decay) * gradient
            r[:, d:] = self.v_decay * v + (1 - self.v_decay) * gradient * gradient
