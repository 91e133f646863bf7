"""The zig-zag process: exact with minibatches of a single data point."""

from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
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
from sgmcmc_lab.samplers.targets.base import Target


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    duration, theta, v, grad = params[0], state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    mode, highest, lipschitz = constants(source, params[1:], dim)
    each, speed, most = np.empty((source.batch_size, dim)), sqrt(dim), most_events(source.batch_size)
    for t in range(n):
        for c in range(n_chains):
            left, events = duration, 0
            if source.batch_size == 0:
                model.gradient(theta[c : c + 1], grad[c : c + 1], model.params)
                info.counts[jit.GRADIENTS] += 1
            while True:
                away = distance(theta[c], mode) if source.batch_size > 0 else 0.0
                first, which, start_rate, grown = inf, 0, 0.0, 0.0
                for i in range(dim):
                    level = highest[i] + lipschitz[i] * away if source.batch_size > 0 else v[c, i] * grad[c, i]
                    growth = lipschitz[i] * speed
                    time = waiting_time(level, growth, rng.standard_exponential())
                    if time < first:
                        first, which, start_rate, grown = time, i, level, growth * time
                flight = min(first, left)
                for i in range(dim):
                    theta[c, i] += flight * v[c, i]
                if first >= left:
                    break
                left -= first
                if events == most:
                    stop(theta[c])
                    break
                events += 1
                if source.batch_size == 0:
                    model.gradient(theta[c : c + 1], grad[c : c + 1], model.params)
                else:
                    source.estimate(
                        rng, theta[c : c + 1], grad[c : c + 1], each, model, state.data, source.params, state.memory[c]
                    )
                info.counts[jit.GRADIENTS] += 1
                rate = v[c, which] * grad[c, which]
                if above(rate, start_rate, grown, theta[c], info.counts):
                    break
                if rng.random() * (start_rate + grown) < rate:
                    v[c, which] = -v[c, which]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """v_i = ±1 with equal probabilities."""
    for c in range(position.shape[0]):
        for i in range(position.shape[1]):
            auxiliary[c, i] = 1.0 if rng.random() < 0.5 else -1.0


class ZigZag(Piecewise):
    """The zig-zag process (Bierkens, Fearnhead & Roberts 2019).

    θ moves with a velocity v ∈ {−1, 1}ᵈ along a straight line. Each v_i changes its sign at the rate (v_i ∂_iU(θ))⁺.
    Events are proposed at a rate that is nowhere below it, (v_i ∂_iU(θ) + C_i√d t)⁺ with the Lipschitz constant C_i of
    ∂_iU, and take place with the ratio of the two rates. A draw is the place after each time Δ; the number of
    draws in a time does not change their distribution.

    With minibatches ∂_iŨ takes the place of ∂_iU, anew at each proposal, and C_i‖θ − θ̂‖ + |∂_iŨ(θ̂)| the place of
    v_i ∂_iU(θ) in the bound, θ̂ the mode, the constants those of the worst data point. The mean of (v_i ∂_iŨ)⁺ less that
    of (−v_i ∂_iŨ)⁺ is v_i ∂_iU, which is all that the distribution needs: a batch of one is exact. With control
    variates ∂_iŨ(θ̂) is ∂_iU(θ̂) = 0, and the bound small near the mode: the data looked at in an independent draw do not
    grow with N. Without them the bound grows with N, and v changes its sign so often that θ diffuses.
    Invariant distribution: e^{−U}, v uniform, exactly, for every Δ.
    """

    key = "zigzag"
    title = "Zig-zag"
    update = (
        r"\begin{aligned}\dot\theta &= v,\quad v \in \{-1, 1\}^d,\quad \text{for the time } \Delta\\"
        r"v_i &\leftarrow -v_i\ \text{ at the rate } \bigl(v_i\,\partial_i\tilde U(\theta)\bigr)^+\end{aligned}"
    )
    integrator = "None: straight lines, and events by thinning"
    source = "Bierkens, Fearnhead & Roberts 2019, Algorithms 2 and 3"
    advance, start = advance, start

    step_size = Real(
        0.25,
        bounds=(1e-5, 10.0),
        log=True,
        tex=r"\Delta",
        label="Time between draws Δ",
        doc="The time for which θ moves between two draws. The distribution of the draws is the same for every Δ; a short Δ shows the path.",
    )

    def packed(self, target: Target) -> NDArray[np.float64]:
        return np.concatenate([[self.step_size], self.bounds(target)])

    bias_order = None
    steps_to_test = 1000

    parts = {
        "flight": r"\text{for the time } \Delta",
        "switch": r"\leftarrow -v_i",
    }

    def textbook_step(self, rng, run, theta, r, data):
        mode, highest, lipschitz = textbook_rates(run)
        dim = theta.shape[1]
        for c in range(len(theta)):
            x, v, left = theta[c], r[c], self.step_size
            found: Any = textbook_gradient(rng, run, c, x, data) if mode is None else None
            while left > 0:
                switched = -1
                with run.part("flight", c):
                    while switched < 0 < left:
                        if mode is None:
                            level = v * found
                        else:
                            level = highest + lipschitz * sqrt(sum((x - mode) ** 2))
                        growth = lipschitz * sqrt(dim)
                        waits = [
                            textbook_wait(*each, rng.standard_exponential()) for each in zip(level, growth, strict=True)
                        ]
                        i = int(np.argmin(waits))
                        x += min(waits[i], left) * v
                        left -= waits[i]
                        if left > 0:
                            found = textbook_gradient(rng, run, c, x, data)
                            if rng.random() * (level[i] + growth[i] * waits[i]) < v[i] * found[i]:
                                switched = i
                if switched >= 0:
                    with run.part("switch", c, gradient=found):
                        v[switched] = -v[switched]
