"""Stochastic gradient Riemann Hamiltonian Monte Carlo for topics."""

from math import sqrt

import numpy as np

from samplers import jit
from samplers.models.topics.stochastic_gradient import STEP, Array, StochasticGradient
from samplers.parameters import Real


@jit.loop(STEP)
def step(rng, theta, momentum, totals, counts, count_totals, factor, prior, n_topics, params):
    step_size, friction = params[0], params[1]
    floor = step_size * step_size
    pull = np.zeros(n_topics)
    for k in range(n_topics):
        pull[k] = 1 + factor * count_totals[k] / totals[k]
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            x, r = theta[w, k], momentum[w, k]
            force = (prior - 0.5 + factor * counts[w, k]) / sqrt(max(x, floor)) - sqrt(x) * pull[k]
            damping = step_size * friction * x
            r += step_size * force - damping * r + sqrt(2 * damping) * rng.standard_normal()
            x += step_size * sqrt(x) * r
            if x < 0:
                x, r = -x, -r
            theta[w, k], momentum[w, k] = x, r
            totals[k] += x
    return totals.sum()


class SGRHMC(StochasticGradient):
    """Stochastic gradient Riemann Hamiltonian Monte Carlo (Ma, Chen & Fox 2015, Algorithm 1), G(θ) = diag(θ)⁻¹.

    The recipe with H = U + r²/2, D = diag(0, Cθ), Q = [[0, −√θ], [√θ, 0]], and so Γ_r = ∂√θ/∂θ = 1/(2√θ):
    r ← r + ε((β − ½ + (D/n)B_kw)/√θ − √θ(1 + (D/n)B_k·/θ_k·)) − εCθr + √(2εCθ) ξ, θ ← θ + ε√θ r; where θ < 0 both
    change their sign. Corrects the signs of the printed eq (17); C = 1 is the paper's. The force grows without bound
    as θ → 0: below θ = ε², a region that one step crosses, it is that at ε².
    Invariant law: the posterior as ε → 0; the minibatch's noise is not subtracted and heats it.
    """

    key = "lda_sgrhmc"
    title = "SGRHMC"
    update = (
        r"\begin{aligned}r_{kw} &\leftarrow (1 - \epsilon C\theta_{kw})\,r_{kw} + \epsilon\Bigl(\tfrac{\beta - \frac12 + \frac Dn B_{kw}}{\sqrt{\theta_{kw}}} - \sqrt{\theta_{kw}}\bigl(1 + \tfrac{\frac Dn B_{k\cdot}}{\theta_{k\cdot}}\bigr)\Bigr) + \sqrt{2\epsilon C\theta_{kw}}\;\xi\\"
        r"\theta_{kw} &\leftarrow \bigl|\theta_{kw} + \epsilon\sqrt{\theta_{kw}}\,r_{kw}\bigr|\end{aligned}"
    )
    source = "Ma, Chen & Fox 2015, Algorithm 1 and section 4.2"
    has_momentum = True
    step = step

    step_size = Real(0.05, bounds=(1e-5, 1.0), log=True, tex=r"\epsilon", label="First step size ε", doc="The time that the first step advances.")  # fmt: skip
    friction = Real(1.0, bounds=(0.01, 1e3), log=True, tex="C", label="Friction C", doc="How fast the momentum forgets, in units of θ.")  # fmt: skip

    def packed(self, step_size: float) -> Array:
        return np.array([step_size, self.friction])
