"""Trajectories of Hamiltonian Monte Carlo: new momenta, leapfrog steps, and the energy of the chains.

A sampler says how a leapfrog step begins, up to the new position, and how it ends, with the gradient there.
"""

from math import inf, sqrt

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients

TOO_FAR = 1000.0
"""A transition diverges where its trajectory's energy error is above this, as in Stan: the leapfrog cannot be trusted
there. Nor can it where the energy is −∞ or NaN."""


@jit.inlined
def mark(counts, t, c, n_chains):
    """Count a divergent transition, of chain c in step t of this call, and note its place where there is room."""
    k = int(counts[jit.DIVERGED]) % jit.N_MARKS
    counts[jit.DIVERGED] += 1
    if counts.size > jit.N_COUNTS:
        counts[jit.N_COUNTS + k] = (counts[jit.CLOCK] + t) * n_chains + c


@jit.inlined
def mark_divergent(counts, t, c, n_chains, energy, proposed):
    """Mark a transition between these energies H if it diverges; a NaN compares false."""
    if not -inf < proposed - energy < TOO_FAR:
        mark(counts, t, c, n_chains)


@jit.inlined
def draw_momenta(rng, theta, r, before):
    """Draw r ~ N(0, I) for every chain, and copy the first point of its trajectory to ``before``."""
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            before[c, i] = theta[c, i]
            r[c, i] = rng.standard_normal()


@jit.helper
def hamiltonian(potential, target_params, theta, r, out):
    """H = U(θ) + ‖r‖²/2 of every chain."""
    potential(theta, out, target_params)
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            out[c] += r[c, i] ** 2 / 2


@jit.inlined
def half_kick(r, grad, step_size):
    """r ← r − (ε/2)∇U of every chain."""
    for c in range(r.shape[0]):
        for i in range(grad.shape[1]):
            r[c, i] -= step_size / 2 * grad[c, i]


@jit.inlined
def kick_and_drift(model, theta, r, grad, step_size, _):
    """The first part of a leapfrog step with unit masses: r ← r − (ε/2)∇Ũ, θ ← θ + εr."""
    for c in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            r[c, i] -= step_size / 2 * grad[c, i]
            theta[c, i] += step_size * r[c, i]


@jit.inlined
def kick(model, theta, r, grad, step_size, _):
    """The last part: r ← r − (ε/2)∇Ũ."""
    half_kick(r, grad, step_size)


@jit.inlined
def leapfrog(begin, end, more, rng, state, model, source, each, grad, step_size, n):
    """Make n leapfrog steps of every chain; ``more`` holds the variables of a sampler's own.

    The tuples are :func:`~samplers.compile.borrowed_arrays.borrowed`: the references of ordinary ones are counted at
    every call.
    """
    theta, r, gradient, target_params = state.position, state.momentum, model.gradient, model.params
    noise_scale = sqrt(source.variance)
    for k in range(n + 1):
        if k > 0:
            begin(model, theta, r, grad, step_size, more)
        if source.batch_size == 0:
            gradient(theta, grad, target_params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        if k > 0:
            end(model, theta, r, grad, step_size, more)
