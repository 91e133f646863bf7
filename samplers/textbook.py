"""Parts of steps in plain Python: what the compiled steps are tested against.

A sampler declares its own step, or one from here that it shares, as ``textbook_step(rng, run, theta, r, data)``. It
changes θ and r (chains, …), the data's order and ``run.memory`` in place, and takes the random numbers in the kernel's
order.
"""

from functools import lru_cache
from math import exp
from typing import Any

import numpy as np

from samplers.needs import MODE


def batch(rng, data, size, replacement):
    """A minibatch of the data; without replacement by a partial shuffle that stays."""
    out = []
    for k in range(size):
        i = int(rng.random() * len(data)) if replacement else k + int(rng.random() * (len(data) - k))
        if not replacement:
            data[k], data[i] = data[i], data[k]
            i = k
        out.append(data[i])
    return out


def slope(target, theta):
    """∇U, the mean over the data of what each would have if it stood for all."""
    return np.mean([target.textbook_slope(theta, datum) for datum in target.data()], axis=0)


@lru_cache(maxsize=8)
def slope_at_mode(target):
    """∇U(θ̂)."""
    return slope(target, target.mode)


def pick(p, u):
    """The index at the share u of the weights p."""
    return min(int(np.searchsorted(np.cumsum(p), u * p.sum(), side="right")), len(p) - 1)


def of_each_chain(rng, run, x, data):
    """The gradients (n, dim) whose mean is ∇Ũ, chain by chain."""
    for theta, memory in zip(x, run.memory, strict=True):
        yield run.gradient.textbook_gradients(rng, run.target, theta, data, memory)


def gradients(rng, run, x, data):
    """∇Ũ of every chain, (chains, dim)."""
    return np.array([each.mean(axis=0) for each in of_each_chain(rng, run, x, data)])


def subtracted(rng, run, each):
    """B̂, (dim, dim), as the estimator has it from the gradients (n, dim) whose mean it takes."""
    return run.gradient.textbook_subtracted(rng, each, len(run.data))


def kicks(rng, run, x, data, heat, step_size=None):
    """−ε∇Ũ + N(0, heat − ε²B̂) of every chain, not projected; ε is the sampler's, or another step size."""
    eps, dim = run.sampler.step_size if step_size is None else step_size, x.shape[1]
    one_by_one = of_each_chain(rng, run, x, data)
    # Without minibatches the kernels take the gradients of all chains before they inject any noise.
    every_chain = one_by_one if run.gradient.noise().batch_size else list(one_by_one)
    out = np.empty_like(x)
    for c, each in enumerate(every_chain):
        spread = subtracted(rng, run, np.array([run.manifold.textbook_tangent(x[c], g) for g in each]))
        root = np.linalg.cholesky(heat * np.eye(dim) - eps**2 * spread)
        out[c] = -eps * each.mean(axis=0) + root @ [rng.standard_normal() for _ in range(dim)]
    return out


def shapes(rng, run, data, theta):
    """a = α + N of a law with gamma components, with N̂_j = (N/n)·#{i in S: z_i = j} where there are minibatches.

    With control variates N̂_j is less by (θ_j/θ̂_j)(N̂_j − N_j), as long as that leaves a_j ≥ 0.
    """
    alpha, counts = run.target.packed().reshape(2, -1)
    noise = run.gradient.noise()
    if not noise.batch_size:
        return alpha + counts
    chosen = batch(rng, data, noise.batch_size, noise.replacement)
    found = np.bincount(chosen, minlength=len(alpha)) * len(data) / noise.batch_size
    if MODE not in run.gradient.needs:
        return alpha + found
    return np.maximum(alpha + found - theta / run.target.mode * (found - counts), 0.0)


def cir(self, rng, run, theta, r, data):
    """θ_j ← (1 − e^{−h})·Gamma(a_j + K), K ~ Poisson(θ_j e^{−h}/(1 − e^{−h}))."""
    h = self.step_size
    for c in range(len(theta)):
        for j, a in enumerate(shapes(rng, run, data, theta[c])):
            k = rng.poisson(theta[c, j] * exp(-h) / (1 - exp(-h)))
            theta[c, j] = (1 - exp(-h)) * rng.standard_gamma(a + k)


def aboba(self, rng, run, theta, r, data):
    """A for ε/2, v ← e^{−ξε/2}(e^{−ξε/2}v − εΛ∇Ũ + ΛN(0, 2Cε − Vε²)), A for ε/2; ξ = C, or a thermostat's."""
    eps, friction, d, m = self.step_size, self.friction, theta.shape[1], run.manifold.dim

    def half():
        for c in range(len(theta)):
            theta[c], r[c, :d] = run.manifold.textbook_geodesic(theta[c], r[c, :d], eps / 2)
            if self.thermostat:
                r[c, d] += ((r[c, :d] ** 2).sum() / m - 1) * eps / 2

    half()
    kick = kicks(rng, run, theta, data, 2 * friction * eps)
    for c in range(len(theta)):
        damping = exp(-(r[c, d] if self.thermostat else friction) * eps / 2)
        r[c, :d] = run.manifold.textbook_tangent(theta[c], damping * (damping * r[c, :d] + kick[c]))
    half()


def geodesic_euler(self, rng, run, theta, r, data):
    """Everything from the state before the step; the old kick is projected where it was made, and where it arrives."""
    eps, friction, d, m = self.step_size, self.friction, theta.shape[1], run.manifold.dim
    kick = kicks(rng, run, theta, data, 2 * friction * eps)
    for c in range(len(theta)):
        pushed, square = run.manifold.textbook_tangent(theta[c], kick[c]), (r[c, :d] ** 2).sum()
        xi = r[c, d] if self.thermostat else friction
        theta[c], v = run.manifold.textbook_geodesic(theta[c], r[c, :d], eps)
        r[c, :d] = run.manifold.textbook_tangent(theta[c], (1 - xi * eps) * v + pushed)
        if self.thermostat:
            r[c, d] += (square / m - 1) * eps


def recipe(self, rng, run, theta, r, data):
    """z ← z + ε[−(D + Q)∇H̃ + Γ] + N(0, ε(2D − εD²B̂)), H = U + r²/2, of the recipes that tests run.

    Of θ alone D is 1, or θ with Γ = 1 on (0, ∞). With a momentum −Q₁₂ = Q₂₁ = g and D₂₂ = g², g = 1 + tanh(θ)²/2:
    dθ = g r dt, dr = −g∇U dt + ∇g dt − g² r dt + √2 g dW.
    """
    eps, dim = self.step_size, theta.shape[1]
    one_by_one = of_each_chain(rng, run, theta, data)
    # Without minibatches the gradients of all chains come first, and then one B̂ for all of them.
    common = None
    chains: Any = one_by_one
    if not run.gradient.noise().batch_size:
        chains = list(one_by_one)
        common = subtracted(rng, run, np.array([each.mean(axis=0) for each in chains]))

    def noise(d, each, coefficients):
        """N(0, ε(2D − εB̂)) where the gradient enters with these coefficients."""
        v = subtracted(rng, run, each) if common is None else common
        covariance = eps * (2 * np.diag(d) - eps * np.outer(coefficients, coefficients) * v)
        return np.linalg.cholesky(covariance) @ [rng.standard_normal() for _ in range(dim)]

    for c, each in enumerate(chains):
        grad = each.mean(axis=0)
        if self.layout == "theta":
            positive = run.target.support == "positive"
            d = theta[c].copy() if positive else np.ones(dim)
            theta[c] += -eps * (d * grad - positive) + noise(d, each, d)
            if positive:
                theta[c] = abs(theta[c])
        else:
            tanh = np.tanh(theta[c])
            g = 1 + tanh**2 / 2
            slope = tanh * (1 - tanh**2)
            moved = theta[c] + eps * g * r[c]
            r[c] += eps * (slope - g * grad - g**2 * r[c]) + noise(g**2, each, g)
            theta[c] = moved
