"""The laws of chains in closed form: discretised on Gaussians, and of the CIR process after any time."""

from math import exp

import numpy as np
from scipy import linalg, stats

from tests.helpers.statistics import start_with


def sgld_law(a, p, v, b):
    """x ← (I − εA)x + N(0, ε(2 − εB̂) + ε²V): the discrete Lyapunov equation."""
    eps, eye = p["step_size"], np.eye(len(a))
    return linalg.solve_discrete_lyapunov(eye - eps * a, (eps * (2 - eps * b) + eps**2 * v) * eye)


def sghmc_joint_law(a, p, v, b, old_position=False):
    """(x, r) ← (x + εr, (1 − εC)r − εA(x + εr) + N(0, ε(2C − εB̂) + ε²V)); explicit Euler has Ax for A(x + εr)."""
    eps, friction, d = p["step_size"], p["friction"], len(a)
    eye = np.eye(d)
    step = np.block([[eye, eps * eye], [-eps * a, (1 - eps * friction) * eye - (0 if old_position else eps**2) * a]])
    heat = linalg.block_diag(np.zeros((d, d)), (eps * (2 * friction - eps * b) + eps**2 * v) * eye)
    return linalg.solve_discrete_lyapunov(step, heat)


def sghmc_law(a, p, v, b):
    """The x-block."""
    return sghmc_joint_law(a, p, v, b)[: len(a), : len(a)]


def hmc_law(a, p, v, b):
    """L leapfrog steps as a linear map of (x, r, the L + 1 noises in the gradients), with a fresh r each time."""
    eps, d, n = p["step_size"], len(a), int(p["n_leapfrog"])
    x = np.hstack([np.eye(d), np.zeros((d, d * (n + 2)))])
    r = np.roll(x, d, axis=1)
    for k in range(n):
        r = r - eps / 2 * (a @ x + np.roll(np.hstack([np.eye(d), np.zeros((d, d * (n + 2)))]), d * (k + 2), axis=1))
        x = x + eps * r
        r = r - eps / 2 * (a @ x + np.roll(np.hstack([np.eye(d), np.zeros((d, d * (n + 2)))]), d * (k + 3), axis=1))
    scales = np.concatenate([np.ones(d), np.full(d * (n + 1), v)])
    return linalg.solve_discrete_lyapunov(x[:, :d], (x[:, d:] * scales) @ x[:, d:].T)


def cir_law(theta, a, h):
    """Mean, variance and CDF of θ_h given θ_0: (1 − e^{−h})/2 · χ²'(2a, 2θe^{−h}/(1 − e^{−h}))."""
    decay = exp(-h)
    scale = (1 - decay) / 2
    law = stats.ncx2(2 * a, 2 * theta * decay / (1 - decay), scale=scale)
    mean = theta * decay + a * (1 - decay)
    variance = 2 * theta * decay * (1 - decay) + a * (1 - decay) ** 2
    return mean, variance, law.cdf


def repeated_moves(spec, start, moves, repeats, sampler=None):
    """θ after ``moves`` steps from ``start``, 10,000 chains ``repeats`` times: (10,000·repeats, dim)."""
    run = start_with(spec, sampler)
    out = []
    for _ in range(repeats):
        run.position = start
        run.advance(moves)
        out.append(run.position.copy())
    return np.concatenate(out)
