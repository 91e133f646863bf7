"""Stein variational gradient descent: the chains are particles that push each other apart."""

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import Target

_ONE_PLACE = 1e-9
"""Particles whose median distance is no larger are in one place, but for rounding, which the push would blow up."""


@jit.helper
def _distances(theta, out):
    """Write the distance of every pair of rows, those of i < j from place j(j − 1)/2 on."""
    place = 0
    for j in range(theta.shape[0]):
        for i in range(j):
            square = 0.0
            for k in range(theta.shape[1]):
                square += (theta[i, k] - theta[j, k]) ** 2
            out[place] = sqrt(square)
            place += 1


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, theta, grad = params[0], state.position, info.gradient
    n_chains, dim = theta.shape
    each, noise_scale = np.empty((source.batch_size, dim)), sqrt(source.variance)
    apart, move = np.empty(n_chains * (n_chains - 1) // 2), np.empty((n_chains, dim))
    for t in range(n):
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        _distances(theta, apart)
        # 1/h. A particle alone, or all in one place, are not pushed.
        median = np.median(apart) if n_chains > 1 else 0.0
        narrow = log(n_chains) / (median * median) if median > _ONE_PLACE else 0.0
        for c in range(n_chains):
            for i in range(dim):
                move[c, i] = -grad[c, i]
        place = 0
        for b in range(n_chains):
            for a in range(b):
                near = exp(-apart[place] * apart[place] * narrow)
                place += 1
                for i in range(dim):
                    push = 2 * narrow * (theta[a, i] - theta[b, i])
                    move[a, i] += near * (push - grad[b, i])
                    move[b, i] -= near * (push + grad[a, i])
        for c in range(n_chains):
            for i in range(dim):
                theta[c, i] += step_size / n_chains * move[c, i]
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """N(start, s²I)."""
    for c in range(position.shape[0]):
        for i in range(position.shape[1]):
            position[c, i] += params[1] * rng.standard_normal()


class SVGD(Sampler):
    """Stein variational gradient descent (Liu & Wang 2016), the n chains as its particles.

    θ_a ← θ_a + (ε/n) Σ_b [−k(θ_b, θ_a)∇Ũ(θ_b) + ∇_{θ_b} k(θ_b, θ_a)], k(x, y) = e^{−‖x−y‖²/h}, with h = m²/log n, m the
    median distance of two particles, new at every step. The first term goes down U, each particle with the gradients of
    its neighbours; the second drives neighbours apart. It is the recipe's drift for all particles at once, with D made
    of k and its Γ, and without the noise that goes with D.

    So it draws nothing. With the full gradient it is deterministic, and comes to rest at n points where for every a
    Σ_b [−k∇U(θ_b) + ∇_{θ_b}k] = 0: they stand for e^{−U}, better with more particles, but are n points, however many
    steps are made, and too close together: two particles on N(0, σ²) rest at ±σ√(log 2), so that their variance is
    .69σ². A single one is gradient descent, and rests at the mode. Minibatches only make the points tremble.

    Particles begin around the start, for in one place they would stay together. Chains are not independent:
    errors, R̂ and ESS, which are taken across chains or along them, mean nothing here.
    """

    key = "svgd"
    title = "SVGD"
    update = (
        r"\begin{aligned}\theta_a &\leftarrow \theta_a + \tfrac{\epsilon}{n}\textstyle\sum_{b=1}^{n}\bigl[-k(\theta_b, \theta_a)\,\nabla\tilde U(\theta_b) + \nabla_{\theta_b} k(\theta_b, \theta_a)\bigr]\\"
        r"k(x, y) &= e^{-\lVert x - y\rVert^2/h},\quad h = \operatorname{median}_{a<b}\lVert\theta_a - \theta_b\rVert^2/\log n\end{aligned}"
    )
    diffusion = r"D_{ab} = \tfrac1n k(\theta_a, \theta_b)\,I,\ \text{its noise left out}"
    curl = "Q = 0"
    integrator = "Euler, all particles at once"
    source = "Liu & Wang 2016, Algorithm 1"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    interacting = True
    first_chains = 50
    # Without noise a step has no heat.
    first_stride = 10.0
    advance, start = advance, start

    step_size = Real(
        0.05,
        bounds=(1e-6, 10.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The length of the particles' steps. Their final positions do not depend on it; with a large one they never come to rest.",
    )

    def packed(self, target: Target) -> NDArray[np.float64]:
        """ε, and the standard deviation of the start: ½, or on a steep target about its narrowest width."""
        first = target.first_steps
        return np.array([self.step_size, 0.5 if first is None else min(sqrt(10 * first.other), 0.5)])

    @property
    def time_per_step(self) -> float:
        return 0.0

    parts = {
        "gradients": r"-k(\theta_b, \theta_a)\,\nabla\tilde U(\theta_b)",
        "repulsion": r"\nabla_{\theta_b} k(\theta_b, \theta_a)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        gradients, n = textbook.gradients(rng, run, theta, data), len(theta)
        apart = [np.linalg.norm(theta[a] - theta[b]) for a in range(n) for b in range(a)]
        together = n == 1 or np.median(apart) <= _ONE_PLACE
        h = np.inf if together else np.median(apart) ** 2 / log(n)
        pulled, pushed = np.zeros_like(theta), np.zeros_like(theta)
        for a, b in np.ndindex(n, n):
            k = np.exp(-np.sum((theta[b] - theta[a]) ** 2) / h)
            # The gradient of k by its first argument.
            pulled[a] -= k * gradients[b]
            pushed[a] -= 2 * (theta[b] - theta[a]) / h * k
        with run.part("gradients"):
            theta += self.step_size / n * pulled
        with run.part("repulsion"):
            theta += self.step_size / n * pushed
