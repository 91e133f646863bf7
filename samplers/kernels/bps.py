"""The bouncy particle sampler: straight lines that are reflected at the gradient."""

from math import isnan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.kernels.noisy_gradient import start
from sgmcmc_lab.samplers.kernels.piecewise import (
    Piecewise,
    above,
    constants,
    distance,
    most_events,
    stop,
    textbook_gradient,
    textbook_rates,
    textbook_wait,
    waiting_time,
)
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.targets.base import FirstSteps, Target


@jit.helper
def dot(x, y):
    """x·y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@jit.helper
def bounce(v, gradient):
    """v ← v − 2 (v·g)g/‖g‖²."""
    along = 2 * dot(v, gradient) / dot(gradient, gradient)
    for i in range(v.size):
        v[i] -= along * gradient[i]


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    duration, refresh = params[0], params[1]
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    mode, highest, lipschitz = constants(source, params[2:], dim)
    each, most = np.empty((source.batch_size, dim)), most_events(source.batch_size)
    for t in range(n):
        for c in range(n_chains):
            v, left, events = r[c], duration, 0
            if source.batch_size == 0:
                model.gradient(theta[c : c + 1], grad[c : c + 1], model.params)
                info.counts[jit.GRADIENTS] += 1
            # A chain that was stopped makes no more events.
            while not isnan(theta[c, 0]):
                level, growth = dot(v, grad[c]) if source.batch_size == 0 else 0.0, 0.0
                away = distance(theta[c], mode) if source.batch_size > 0 else 0.0
                for i in range(dim):
                    if source.batch_size > 0:
                        level += abs(v[i]) * (highest[i] + lipschitz[i] * away)
                    growth += abs(v[i]) * lipschitz[i]
                growth *= sqrt(dot(v, v))
                first = waiting_time(level, growth, rng.standard_exponential())
                renewal = rng.standard_exponential() / refresh
                flight = min(first, renewal, left)
                for i in range(dim):
                    theta[c, i] += flight * v[i]
                if flight >= left:
                    break
                left -= flight
                if events == most:
                    stop(theta[c])
                    break
                events += 1
                if source.batch_size == 0:
                    model.gradient(theta[c : c + 1], grad[c : c + 1], model.params)
                    info.counts[jit.GRADIENTS] += 1
                if renewal < first:
                    for i in range(dim):
                        v[i] = rng.standard_normal()
                else:
                    if source.batch_size > 0:
                        source.estimate(
                            rng,
                            theta[c : c + 1],
                            grad[c : c + 1],
                            each,
                            model,
                            state.data,
                            source.params,
                            state.memory[c],
                        )
                        info.counts[jit.GRADIENTS] += 1
                    rate = dot(v, grad[c])
                    if above(rate, level, growth * first, theta[c], info.counts):
                        break
                    if rng.random() * (level + growth * first) < rate:
                        bounce(v, grad[c])
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class BouncyParticle(Piecewise):
    """The bouncy particle sampler (Bouchard-Côté, Vollmer & Doucet 2018).

    θ moves with a velocity v along a straight line. At the rate (v·∇U(θ))⁺ it bounces off the contour of U,
    v ← v − 2(v·∇U)∇U/‖∇U‖², and at the rate λ it starts anew, v ~ N(0, I): without that θ may never leave a part of
    the space, as on a Gaussian with equal variances. Bounces are proposed at the rate
    (v·∇U(θ) + ‖v‖Σ_i|v_i|C_i t)⁺ with the Lipschitz constant C_i of ∂_iU, and take place with the ratio of the two
    rates. A draw is the place after each time Δ; the number of draws in a time does not change their
    distribution.

    With minibatches ∇Ũ takes the place of ∇U in the rate and in the bounce, anew at each proposal, and
    Σ_i|v_i|(C_i‖θ − θ̂‖ + |∂_iŨ(θ̂)|) the place of v·∇U(θ) in the bound, θ̂ the mode, the constants those of the worst
    data point. As a bounce turns v·∇Ũ into −v·∇Ũ, and the mean of (v·∇Ũ)⁺ less that of (−v·∇Ũ)⁺ is v·∇U, a batch of
    one is exact.
    Invariant distribution: e^{−U}N(v; 0, I), exactly, for every Δ and λ.
    """

    key = "bps"
    title = "Bouncy particle"
    update = (
        r"\begin{aligned}\dot\theta &= v\ \text{ for the time } \Delta\\"
        r"v &\leftarrow v - 2\,\tfrac{v\cdot\nabla\tilde U}{\lVert\nabla\tilde U\rVert^2}\,\nabla\tilde U,\quad \text{at the rate } \bigl(v\cdot\nabla\tilde U(\theta)\bigr)^+\\"
        r"v &\sim \mathcal N(0, I)\ \text{ at the rate } \lambda\end{aligned}"
    )
    integrator = "None: straight lines, and events by thinning"
    source = "Bouchard-Côté, Vollmer & Doucet 2018; Bierkens, Fearnhead & Roberts 2019 for the bounds"
    momentum = KEPT
    advance, start = advance, start

    step_size = Real(
        0.25,
        bounds=(1e-5, 10.0),
        log=True,
        tex=r"\Delta",
        label="Time between draws Δ",
        doc="The time for which θ moves between two draws. The distribution of the draws is the same for each; a short time shows the path.",
    )
    refresh = Real(
        0.5,
        bounds=(1e-3, 1000.0),
        log=True,
        tex=r"\lambda",
        label="Refreshment rate λ",
        doc="The rate at which the velocity is redrawn. At a high rate θ diffuses; at a low one it stays on few contours.",
    )

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """One refreshment in eight draws, as with the declared values."""
        values = super().first_values(first, gradient)
        if values:
            values["refresh"] = float(f"{min(max(0.125 / values['step_size'], 0.5), 1000.0):.2g}")
        return values

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.concatenate([[self.step_size, self.refresh], self.bounds(target)])

    bias_order = None
    steps_to_test = 1000

    parts = {
        "flight": r"\text{ for the time } \Delta",
        "bounce": r"\leftarrow v - 2\,\tfrac{v\cdot\nabla\tilde U}{\lVert\nabla\tilde U\rVert^2}\,\nabla\tilde U",
        "refreshment": r"\sim \mathcal N(0, I)",
    }

    def textbook_step(self, rng, run, theta, r, data):
        mode, highest, lipschitz = textbook_rates(run)

        def inner(x, y):
            return sum(a * b for a, b in zip(x, y, strict=True))

        for c in range(len(theta)):
            x, v, left = theta[c], r[c], self.step_size
            found: Any = textbook_gradient(rng, run, c, x, data) if mode is None else None
            while left > 0:
                event = ""
                with run.part("flight", c):
                    while not event and left > 0:
                        if mode is None:
                            level = inner(v, found)
                        else:
                            away = sqrt(sum((x - mode) ** 2))
                            level = inner(abs(v), highest + lipschitz * away)
                        growth = inner(abs(v), lipschitz) * sqrt(inner(v, v))
                        first = textbook_wait(level, growth, rng.standard_exponential())
                        renewal = rng.standard_exponential() / self.refresh
                        flight = min(first, renewal, left)
                        x += flight * v
                        left -= flight
                        if left > 0:
                            if mode is None or first <= renewal:
                                found = textbook_gradient(rng, run, c, x, data)
                            if renewal < first:
                                event = "refreshment"
                            elif rng.random() * (level + growth * first) < inner(v, found):
                                event = "bounce"
                if event == "refreshment":
                    with run.part(event, c):
                        v[:] = [rng.standard_normal() for _ in v]
                elif event:
                    with run.part(event, c, gradient=found):
                        v -= 2 * inner(v, found) / inner(found, found) * found
