"""Preconditioned stochastic gradient Langevin dynamics."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Flag, Real, Value
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import FirstSteps, Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, decay, floor, gamma = params[0], params[1], params[2], params[3] > 0
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # Behind what would be a momentum are the running averages v and w.
    v, w = state.momentum[:, :dim], state.momentum[:, dim:]
    each, noise_scale = np.empty((source.batch_size, dim)), sqrt(source.variance)
    sign, curved = np.empty_like(theta), np.zeros_like(theta)
    ahead, behind, probe = np.empty_like(theta), np.empty_like(theta), np.empty_like(theta)
    length = np.empty_like(theta)
    for t in range(n):
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        for c in range(n_chains):
            for i in range(dim):
                length[c, i] = sqrt(2 * step_size / (floor + sqrt(v[c, i])))
        if gamma:
            for c in range(n_chains):
                for i in range(dim):
                    sign[c, i] = 1.0 if rng.random() < 0.5 else -1.0
                    probe[c, i] = theta[c, i] + length[c, i] * sign[c, i]
            model.gradient(probe, ahead, model.params)
            for c in range(n_chains):
                for i in range(dim):
                    probe[c, i] = theta[c, i] - length[c, i] * sign[c, i]
            model.gradient(probe, behind, model.params)
            for c in range(n_chains):
                for i in range(dim):
                    curved[c, i] = sign[c, i] * (ahead[c, i] - behind[c, i]) / (2 * length[c, i])
        for c in range(n_chains):
            for i in range(dim):
                g, root = grad[c, i], sqrt(v[c, i])
                metric = 1 / (floor + root)
                drift = -metric * g
                if gamma and root > 0:
                    drift -= metric * metric * w[c, i] / (2 * root)
                theta[c, i] += step_size * drift + length[c, i] * rng.standard_normal()
                v[c, i] = decay * v[c, i] + (1 - decay) * g * g
                w[c, i] = decay * w[c, i] + (1 - decay) * 2 * g * curved[c, i]
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """v = ∇U∘∇U at the start, and w = 2∇U∘diag(∇²U)."""
    step_size, floor = params[0], params[2]
    n_chains, dim = position.shape
    grad, probe = np.empty((n_chains, dim)), np.empty((n_chains, dim))
    ahead, behind = np.empty((n_chains, dim)), np.empty((n_chains, dim))
    signs = rng.integers(0, 2, (n_chains, dim))
    model.gradient(position, grad, model.params)
    for c in range(n_chains):
        for i in range(dim):
            probe[c, i] = (2 * signs[c, i] - 1) * sqrt(2 * step_size / (floor + abs(grad[c, i])))
    model.gradient(position + probe, ahead, model.params)
    model.gradient(position - probe, behind, model.params)
    for c in range(n_chains):
        for i in range(dim):
            auxiliary[c, i] = grad[c, i] ** 2
            auxiliary[c, dim + i] = grad[c, i] * (ahead[c, i] - behind[c, i]) / probe[c, i]


class PSGLD(Sampler):
    """Preconditioned SGLD (Li et al. 2016), with the term Γ that their experiments leave out, and without.

    SDE: dθ = (−G∇U + Γ) dt + √(2G) dW, the recipe with D = G = diag(1/(λ + √v_i)), Q = 0, where v is RMSprop's running
    average of the squared gradient, v ← αv + (1 − α)∇Ũ∘∇Ũ.
    Euler–Maruyama: θ ← θ − εG∇Ũ + εΓ + N(0, 2εG). A step's own gradient joins v after the step; the paper's joins
    before, and a metric that depends on the noise of the gradient it multiplies makes −G∇Ũ biased, for every ε.
    As ε → 0 the window of 1/(1 − α) steps becomes a moment, v follows θ, and G is a function of θ. So
    Γ_i = ∂_i G_ii = −G_ii² w_i/(2√v_i), with w_i the same average of ∂_i g_i² = 2 g_i ∂_i g_i. The printed Γ has a
    factor 1 − α more, as if only the newest gradient depended on θ; the two agree at α = 0. The diagonal ∂_i g_i is
    estimated by z_i(∇U(θ + δ∘z) − ∇U(θ − δ∘z))_i/2δ_i with random signs z (Hutchinson) and δ_i = √(2εG_ii), as far as
    the step's noise goes: its bias is O(ε) as the step's own, and a kink of U is rounded. It costs two full gradients.
    Invariant distribution: with Γ and the full gradient e^{−U} as ε → 0, for ε well below 1 − α. Without Γ it is
    e^{−U}/G in one dimension, however small the step: at α = 0 that is e^{−U}(λ + |U'|). It comes back towards e^{−U}
    where the window of 1/(1 − α) steps is so long that G is nearly constant while θ explores the target. With
    minibatches v also holds the variance of the gradient; where that depends on θ, Γ lacks its derivative.
    Shapes: θ (chains, d); v and w (chains, 2d) in the place of a momentum.
    """

    key = "psgld"
    title = "pSGLD"
    update = (
        r"\begin{aligned}\theta_{t+1} &= \theta_t - \epsilon\,G\,\nabla\tilde U(\theta_t) + \epsilon\,\Gamma + \mathcal N(0,\ 2\epsilon\,G)\\"
        r"G &= \operatorname{diag}\bigl(1/(\lambda + \sqrt{v})\bigr)\\"
        r"v &\leftarrow \alpha v + (1 - \alpha)\,\nabla\tilde U(\theta_t) \circ \nabla\tilde U(\theta_t)\end{aligned}"
    )
    optional = {"gamma": (r" + \epsilon\,\Gamma",)}
    diffusion = "D = G"
    curl = "Q = 0"
    integrator = "Euler–Maruyama"
    source = "Li, Chen, Carlson & Carin 2016"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    first_stride = 2.0
    advance, start = advance, start

    step_size = Real(
        0.02,
        bounds=(1e-6, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time that one step advances where G is 1. Small steps are accurate and slow.",
    )
    decay = Real(
        0.9,
        bounds=(0.0, 0.99999),
        tex=r"\alpha",
        label="Memory α",
        doc="The share of the average of the squared gradients that a step keeps; the average spans about 1/(1 − α) steps.",
    )
    floor = Real(
        1.0,
        bounds=(1e-5, 1000.0),
        log=True,
        tex=r"\lambda",
        label="Floor λ",
        doc="Added to the size of the gradient, so that G is at most 1/λ. The smaller it is, the more G depends on θ.",
    )
    gamma = Flag(
        True, label="Γ", doc="Whether Γ is added. Without it the target is not stationary, however small the step."
    )

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        # ``other`` is 0.1/κ: gradients are of the size √κ, and so is λ; a step moves at most as far as SGLD's.
        if first is None:
            return {}
        floor = max(cls.param.floor.default, float(f"{sqrt(0.1 / first.other):.1g}"))
        return {
            "floor": floor,
            "step_size": min(
                cls.param.step_size.default, float(f"{cls.stride_with(gradient) * first.other * floor:.1g}")
            ),
        }

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(2 * target.dim)

    @property
    def full_gradients_per_step(self) -> int:
        """The two of Γ's differences."""
        return 2 if self.gamma is True else 0

    bias_order = 1

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        # Without memory G is a function of θ. A curvature κ of 1/20 of the step makes gradients of the size √κ: with λ
        # as large G changes where U does, not in a narrow kink at the mode.
        floor = max(1.0, sqrt(0.05 / step_size))
        return {"decay": 0.0, "floor": floor, "step_size": step_size * floor}

    steps_to_test = 1000

    parts = {
        "gradient": r"- \epsilon\,G\,\nabla\tilde U(\theta_t)",
        "gradient noise": r"- \epsilon\,G\,\nabla\tilde U(\theta_t)",
        "Γ": r"\epsilon\,\Gamma",
        "injected noise": r"\mathcal N(0,\ 2\epsilon\,G)",
        "averages": r"\alpha v + (1 - \alpha)\,\nabla\tilde U(\theta_t) \circ \nabla\tilde U(\theta_t)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, d, full = self.step_size, theta.shape[1], run.target.gradient_at
        gradient = textbook.gradients(rng, run, theta, data)
        root = np.sqrt(r[:, :d])
        metric = 1 / (self.floor + root)
        length = np.sqrt(2 * eps * metric)
        curved = np.zeros_like(theta)
        if self.gamma is True:
            run.spend(2 * len(theta))
            probe = length * [[1.0 if rng.random() < 0.5 else -1.0 for _ in row] for row in theta]
            curved = (full(theta + probe) - full(theta - probe)) / (2 * probe)
        noise = np.array([[rng.standard_normal() for _ in row] for row in theta])
        for c in range(len(theta)):
            textbook.descend(run, c, theta[c], eps * metric[c], theta[c], gradient[c])
        if self.gamma is True:
            with run.part("Γ"):
                theta -= eps * metric**2 * r[:, d:] / (2 * np.where(root > 0, root, 1.0))
        with run.part("injected noise"):
            theta += length * noise
        with run.part("averages"):
            r[:, :d] = self.decay * r[:, :d] + (1 - self.decay) * gradient**2
            r[:, d:] = self.decay * r[:, d:] + (1 - self.decay) * 2 * gradient * curved
