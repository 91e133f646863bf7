"""Stochastic gradient Langevin dynamics for topics."""

from math import sqrt
from typing import Any

import numpy as np

from samplers import jit
from samplers.models.topics.stochastic_gradient import STEP, StochasticGradient
from samplers.parameters import Option, Real


@jit.loop(STEP)
def expanded_step(rng, theta, momentum, totals, counts, count_totals, factor, prior, n_topics, params):
    step_size = params[0]
    noise = sqrt(2 * step_size)
    pull = np.zeros(n_topics)
    for k in range(n_topics):
        pull[k] = 1 + factor * count_totals[k] / totals[k]
    totals[:] = 0
    for w in range(len(theta)):
        for k in range(n_topics):
            x = theta[w, k]
            gradient = (prior - 1 + factor * counts[w, k]) / x - pull[k]
            x = abs(x + step_size * gradient + noise * rng.standard_normal())
            theta[w, k] = x
            totals[k] += x
    return totals.sum()


@jit.loop(STEP)
def original_step(rng, theta, momentum, totals, counts, count_totals, factor, prior, n_topics, params):
    step_size = params[0]
    n_words = len(theta)
    noise = sqrt(2 * step_size)
    mean = np.zeros(n_topics)
    for w in range(n_words):
        for k in range(n_topics):
            phi = theta[w, k] / totals[k]
            move = step_size * (prior - 1 + factor * counts[w, k]) / phi + noise * rng.standard_normal()
            theta[w, k] = phi
            counts[w, k] = move
            mean[k] += move / n_words
    totals[:] = 0
    for w in range(n_words):
        for k in range(n_topics):
            x = abs(theta[w, k] + counts[w, k] - mean[k])
            theta[w, k] = x
            totals[k] += x
    total = totals.sum()
    for w in range(n_words):
        for k in range(n_topics):
            theta[w, k] /= totals[k]
    totals[:n_topics] = 1
    return total


class SGLD(StochasticGradient):
    """Stochastic gradient Langevin dynamics with reflection (Welling & Teh 2011; Patterson & Teh 2013).

    Expanded mean, on θ: θ ← |θ + ε((β − 1 + (D/n)B_kw)/θ − 1 − (D/n)B_k·/θ_k·) + √(2ε) ξ|.
    Original, on φ itself: the gradient (β − 1 + (D/n)B_kw)/φ and the noise are projected on the plane Σ_w φ_kw = 1,
    |·| reflects at 0, and the row is normalised again. Its step sizes are those of φ, about 1e-10.
    Invariant law: the posterior as ε → 0. Near 0 the gradient has no bound, and rare steps throw a small θ far: there
    the bias falls so slowly with ε that no ε is both right and fast.
    """

    key = "lda_sgld"
    title = "SGLD"
    update = (
        r"\theta_{kw} \leftarrow \Bigl|\,\theta_{kw} + \epsilon\Bigl(\tfrac{\beta - 1 + \frac Dn B_{kw}}{\theta_{kw}} - 1 - \tfrac{\frac Dn B_{k\cdot}}{\theta_{k\cdot}}\Bigr)"
        r" + \sqrt{2\epsilon}\;\xi\Bigr|"
    )
    source = "Welling & Teh 2011; Ma, Chen & Fox 2015, section 4.2"
    step = expanded_step
    compiled = (*StochasticGradient.compiled, expanded_step, original_step)

    parameterisation = Option(default="expanded_mean", objects=["expanded_mean", "original"], label="Parameterisation", doc="Expanded mean: θ > 0 with φ = θ/Σθ. Original: the topics φ themselves, on the simplex; its step sizes are much smaller.")  # fmt: skip
    step_size = Real(1e-4, bounds=(1e-14, 1.0), log=True, tex=r"\epsilon", label="First step size ε", doc="The time that the first step advances.")  # fmt: skip

    def compiled_step(self) -> Any:
        return expanded_step if self.parameterisation == "expanded_mean" else original_step
