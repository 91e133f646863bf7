"""The steps in plain Python: what the steps of the methods are tested against.

They take the random numbers in the same order, and change the state in place. Nothing of what the methods use is used
here but the model's numbers.
"""

import numpy as np
from scipy import special

from sgmcmc_lab.samplers.manifolds.simplex import Simplex
from sgmcmc_lab.samplers.manifolds.sphere import Sphere


def mean_of(beta, theta):
    """v̄ and its length before it is scaled."""
    mean = theta @ beta
    return mean / np.linalg.norm(mean), np.linalg.norm(mean)


def prior_slope(model, beta):
    """∂ log c_V(‖m̄‖)/∂β_k, by the ratio of two Bessel functions."""
    pull = model.k0 * model.mean + model.s * sum(beta)
    length, order = np.linalg.norm(pull), model.n_words / 2 - 1
    return -model.s * special.ive(order + 1, length) / special.ive(order, length) * pull / length


def slope(model, beta, theta, batch):
    """The estimate of ∂U/∂β; ``theta`` is a list of draws, each of a list of documents."""
    out = np.array([prior_slope(model, beta)] * len(beta))
    for draw in theta:
        for d, one in zip(batch, draw, strict=True):
            v, (mean, length) = model.training[d], mean_of(beta, one)
            for k in range(len(beta)):
                out[k] -= model.k * model.n_data / len(batch) / len(theta) * one[k] / length * (v - (v @ mean) * mean)
    return out


def theta_energy(model, beta, v, y):
    """U(y) of θ = y²."""
    return -model.k * (v @ mean_of(beta, y**2)[0]) - (2 * model.alpha - 1) * np.log(y).sum()


def theta_slope(model, beta, v, y):
    """∂U/∂y."""
    mean, length = mean_of(beta, y**2)
    return -2 * y * model.k * (beta @ (v - (v @ mean) * mean)) / length - (2 * model.alpha - 1) / y


def draw_theta(method, rng, model, state, batch, n_draws):
    """GMC of the documents' θ, in lockstep; a list of draws, each of a list of documents."""
    space, eps, out = Simplex(model.n_topics), method.theta_step / np.sqrt(model.k), []
    for _ in range(n_draws):
        velocities = [
            space.textbook_tangent(state.roots[d], np.array([rng.standard_normal() for _ in range(model.n_topics)]))
            for d in batch
        ]
        for d, first in zip(batch, velocities, strict=True):
            w, v, y = first, model.training[d], state.roots[d].copy()
            energy = theta_energy(model, state.beta, v, y) + w @ w / 2
            for _ in range(method.theta_leapfrog):
                w = space.textbook_tangent(y, w - eps / 2 * theta_slope(model, state.beta, v, y))
                y, w = space.textbook_geodesic(y, w, eps)
                w = space.textbook_tangent(y, w - eps / 2 * theta_slope(model, state.beta, v, y))
            if rng.random() < np.exp(energy - theta_energy(model, state.beta, v, y) - w @ w / 2):
                state.roots[d] = y
        out.append([state.roots[d] ** 2 for d in batch])
    return out


def flow(state, time):
    """All topics along their great circles."""
    space = Sphere(state.beta.shape[1])
    for k, (x, v) in enumerate(zip(state.beta, state.velocity, strict=True)):
        state.beta[k], state.velocity[k] = space.textbook_geodesic(x, v, time)


def project(state):
    """The tangent part of all velocities."""
    space = Sphere(state.beta.shape[1])
    for k, (x, v) in enumerate(zip(state.beta, state.velocity, strict=True)):
        state.velocity[k] = space.textbook_tangent(x, v)


def aboba(method, rng, model, state):
    """The step of SGGMC and of gSGNHT."""
    h, unit = method.step_size, (model.n_topics / model.k / model.n_data) ** 0.5
    state.batch = rng.choice(model.n_data, min(method.batch_size, model.n_data), replace=False, shuffle=False)
    freedom, thermostat = model.n_topics * (model.n_words - 1), state.extra.get("xi")
    for half in range(2):
        flow(state, h * unit / 2)
        if thermostat is not None:
            thermostat[0] += h / 2 * ((state.velocity**2).sum() / freedom - 1)
        if half == 0:
            theta = draw_theta(method, rng, model, state, state.batch, method.theta_draws)
            damp = np.exp(-h / 2 * (method.friction if thermostat is None else thermostat[0]))
            noise = np.sqrt(2 * method.friction * h) * rng.standard_normal(state.beta.shape)
            kick = -h * unit * slope(model, state.beta, theta, state.batch) + noise
            state.velocity = damp * (damp * state.velocity + kick)
            project(state)
    state.steps += 1
    return len(state.batch)


def log_c(model, beta):
    """log c_V(‖m̄‖), up to a constant."""
    length, order = np.linalg.norm(model.k0 * model.mean + model.s * sum(beta)), model.n_words / 2 - 1
    return order * np.log(length) - np.log(special.ive(order, length)) - length


def gmc(method, rng, model, state):
    """The step of the methods with an accept step."""
    eps = method.step_size * (model.n_topics / model.k / model.n_data) ** 0.5
    state.batch = np.arange(model.n_data)
    theta = draw_theta(method, rng, model, state, state.batch, method.theta_draws)
    exact = method.key == "spherical_gibbs"
    theta = theta[-1:] if exact else theta

    def here():
        return theta if exact else draw_theta(method, rng, model, state, state.batch, method.theta_draws)

    before, roots = state.beta.copy(), state.roots.copy()
    state.velocity = rng.standard_normal(before.shape)
    project(state)
    kinetic, now = (state.velocity**2).sum() / 2, slope(model, state.beta, here(), state.batch)
    for _ in range(method.n_leapfrog):
        state.velocity = state.velocity - eps / 2 * now
        project(state)
        flow(state, eps)
        now = slope(model, state.beta, here(), state.batch)
        state.velocity = state.velocity - eps / 2 * now
        project(state)
    rise = (state.velocity**2).sum() / 2 - kinetic + log_c(model, state.beta) - log_c(model, before)
    for d, v in enumerate(model.training):
        ratios = [np.exp(model.k * (v @ mean_of(state.beta, t[d])[0] - v @ mean_of(before, t[d])[0])) for t in theta]
        rise -= np.log(np.mean(ratios))
    if not rng.random() < np.exp(min(-rise, 0.0)):
        state.beta, state.roots = before, roots
    state.steps += 1
    return model.n_data * (1 + method.n_leapfrog)


def fit(model, beta, v, lam):
    """κA(σ) v·b E θ/(E‖βθ‖²)^{1/2} of one document, θ ~ Dir(λ), with E θθᵀ written out."""
    n, total = len(lam), sum(lam)
    order = model.n_words / 2 - 1
    a = special.ive(order + 1, model.s) / special.ive(order, model.s)
    square = 0.0
    for j in range(n):
        for k in range(n):
            moment = (lam[j] * lam[k] + (j == k) * lam[j]) / (total * (total + 1))
            square = square + moment * (1.0 if j == k else a * a * (beta[j] @ beta[k]))
    return model.k * a * (v @ (lam @ beta)) / total / np.sqrt(square)


def derivative(function, x):
    """By complex steps: exact to rounding."""
    out = np.empty(x.shape)
    for at in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[at] += 1e-30j
        out[at] = function(moved).imag / 1e-30
    return out


def variational(method, rng, model, state):
    """The step of both variational methods."""
    n, stochastic = model.n_data, method.key == "spherical_stovi"
    state.batch = rng.choice(n, min(method.batch_size, n), replace=False, shuffle=False) if stochastic else np.arange(n)
    order = model.n_words / 2 - 1
    a = special.ive(order + 1, model.s) / special.ive(order, model.s)
    for d in state.batch:
        v, lam = model.training[d], state.extra["lam"][d]
        for _ in range(method.sweeps):
            fisher = np.diag(special.polygamma(1, lam)) - special.polygamma(1, lam.sum())
            up = np.linalg.solve(fisher, derivative(lambda x, v=v: fit(model, state.beta, v, x), lam))
            lam *= np.exp(np.clip(method.step_size * (up + model.alpha - lam) / lam, -1, 1))
    old, factor = state.beta.copy(), model.n_data / len(state.batch)
    prior = -a * prior_slope(model, a * old)
    slopes = sum(
        derivative(lambda b, d=d: fit(model, b, model.training[d], state.extra["lam"][d]), old) for d in state.batch
    )
    weights = np.zeros(len(old))
    for d in state.batch:
        lam = state.extra["lam"][d]
        # κA(σ) E θ_k/(E‖βθ‖²)^{1/2}: the fit's slope along a document that only topic k meets.
        along = (model.training[d] @ (lam @ old)) / lam.sum()
        weights += fit(model, old, model.training[d], lam) / along * lam / lam.sum()
    rho = method.step_size * ((1 + state.steps / method.delay) ** -0.7 if stochastic else 1)
    for k, b in enumerate(old):
        slope_k = factor * slopes[k] + prior
        weight = factor * weights[k] + np.linalg.norm(prior)
        moved = b + rho * (slope_k - (slope_k @ b) * b) / weight
        state.beta[k] = moved / np.linalg.norm(moved)
    state.steps += 1
    return len(state.batch)
