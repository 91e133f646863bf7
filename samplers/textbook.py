"""Parts of steps in plain Python: what the compiled steps are tested against.

A sampler declares its own step, or one from here that it shares, as ``textbook_step(rng, run, theta, r, data)``. It
changes θ and r (chains, …), the data's order and ``run.memory`` in place, and takes the random numbers in the kernel's
order. ``run`` is a :class:`~samplers.step_terms.Play`: the step names its parts there as it makes them.
"""

from functools import lru_cache
from math import ceil, exp, expm1, inf, sqrt
from typing import Any

import numpy as np

from sgmcmc_lab.samplers.expressions import evaluate
from sgmcmc_lab.samplers.requirements import MODE


def exponential(x):
    """eˣ, ∞ where it overflows, as it is to a compiled step."""
    try:
        return exp(x)
    except OverflowError:
        return inf


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
    return target.slopes_at(theta).mean(axis=0)


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
        run.spend()
        yield run.gradient.textbook_gradients(rng, run.target, theta, data, memory)


def gradients(rng, run, x, data):
    """∇Ũ of every chain, (chains, dim)."""
    return np.array([each.mean(axis=0) for each in of_each_chain(rng, run, x, data)])


def subtracted(rng, run, each):
    """B̂, (dim, dim), as the estimator has it from the gradients (n, dim) whose mean it takes."""
    return run.gradient.textbook_subtracted(rng, each, len(run.data))


def root(matrix):
    """Cholesky's factor; where the matrix is not positive definite no coordinate gets more noise than it says."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        out = np.zeros_like(matrix)
    for i, row in enumerate(matrix):
        for j in range(i):
            out[i, j] = (row[j] - out[i, :j] @ out[j, :j]) / out[j, j] if out[j, j] > 0 else 0.0
        length = out[i, :i] @ out[i, :i]
        out[i, i] = sqrt(max(row[i] - length, 0.0))
        if row[i] < length * (1 - 1e-12):
            out[i, :i] *= sqrt(max(row[i], 0.0) / length)
    return out


def gradient_and_noise(rng, run, x, data, heat, step_size):
    """∇Ũ and N(0, heat − ε²B̂) of every chain, both (chains, dim) and not projected."""
    dim = x.shape[1]
    one_by_one = of_each_chain(rng, run, x, data)
    # Without minibatches the kernels take the gradients of all chains before they inject any noise.
    every_chain = one_by_one if run.gradient.noise().batch_size else list(one_by_one)
    found, noise = np.empty_like(x), np.empty_like(x)
    for c, each in enumerate(every_chain):
        spread = subtracted(rng, run, np.array([run.manifold.textbook_tangent(x[c], g) for g in each]))
        found[c] = each.mean(axis=0)
        noise[c] = root(heat * np.eye(dim) - step_size**2 * spread) @ [rng.standard_normal() for _ in range(dim)]
    return found, noise


def of_gradient(run, c, theta, gradient):
    """∇Ũ at θ (dim,) in its parts, each by name with what the gradient is from there on: ∇U, then with its noise."""
    if run.noisy and run.shows(c):
        yield "gradient", run.target.gradient_at(theta[None])[0]
        yield "gradient noise", gradient
    else:
        yield "gradient", gradient


def descend(run, c, x, step_size, theta, gradient):
    """x ← x − ε∇Ũ(θ) of one chain."""
    start, theta = x.copy(), theta.copy()
    for name, g in of_gradient(run, c, theta, gradient):
        with run.part(name, c, gradient=g):
            x[:] = start - step_size * g


def inject(run, c, x, noise):
    """x ← x + noise of one chain."""
    with run.part("injected noise", c):
        x += noise


def add_increment(run, c, x, step_size, theta, gradient, noise, tangent=None):
    """x ← x + (−ε∇Ũ(θ) + noise) of one chain, in the order of the kernels; then its tangent."""
    start, theta = x.copy(), theta.copy()
    for name, g in of_gradient(run, c, theta, gradient):
        with run.part(name, c, gradient=g):
            x[:] = start - step_size * g if tangent is None else tangent(theta, start - step_size * g)
    with run.part("injected noise", c):
        end = start + (-step_size * gradient + noise)
        x[:] = end if tangent is None else tangent(theta, end)


def coin(rng, log_ratio, energy):
    """min(1, e^log_ratio), or 0 where the energy of the proposal is infinite or NaN; a uniform; whether it accepts."""
    possible = np.isfinite(energy) and not np.isnan(log_ratio)
    probability, u = float(possible and np.exp(min(log_ratio, 0.0))), rng.random()
    return probability, u, u < probability


def swap(rng, run, c, counts, cold, hot, exponent):
    """Swap two rungs of a chain (dim,) with probability min(1, e^exponent); ``counts`` begins with the swaps that were
    proposed and made. An exponent that is not finite swaps nothing.
    """
    probability, u, accepted = coin(rng, exponent, exponent)
    with run.part("swap", c, probability=probability, u=u, accepted=accepted):
        counts[0] += 1
        if accepted:
            counts[1] += 1
            cold[:], hot[:] = hot.copy(), cold.copy()


def softmax(y):
    """e^{y_j}/Σ e^{y_l}, at least 1e-300."""
    power = np.exp(y - y.max())
    return np.maximum(power / power.sum(), 1e-300)


def accept(rng, run, c, theta, before, log_ratio, energy, sure=False, turned=None):
    """Keep the proposal that θ of this chain is, with probability min(1, e^log_ratio), or go back to ``before``.

    One whose energy is infinite or NaN is rejected. ``sure`` is without an accept step, of which there is then no part.
    ``turned`` is the momentum r and the one before, of samplers that keep it: a rejection turns that around.
    """
    if sure:
        return
    probability, u, accepted = coin(rng, log_ratio[c], energy[c])
    with run.part("accept", c, probability=probability, u=u, accepted=accepted):
        if not accepted:
            theta[c] = before[c]
            if turned is not None:
                r, first = turned
                r[c] = -first[c]


def windows(n):
    """The windows, of n adapting steps, in which a chain learns the masses, as (first step, end)."""
    first, size, last = (75, 25, n - 50) if n >= 150 else (int(0.15 * n), n, n - int(0.1 * n))
    out: list[tuple[int, int]] = []
    while n >= 20 and first < last:
        end = min(first + size, last)
        # The rest would hold no window of twice the size.
        if out and end - 1 + 2 * size >= last:
            end = last
        out.append((first, end))
        first, size = end, 2 * size
    return out


def take_step_size(k, step_size, steps):
    """Begin at a new given ε₀, with the averages while steps adapt; the columns are those of :func:`adapted`."""
    if k[1] != step_size:
        if k[0] < steps:
            k[2:5], k[6] = 0, np.log(10 * step_size)
        k[1] = k[5] = step_size


def average_step_size(k, wanted):
    """A step of dual averaging, after one with the acceptance statistic α; the columns are those of :func:`adapted`."""
    k[2] += 1
    k[3] = (1 - 1 / (k[2] + 10)) * k[3] + (wanted - k[7]) / (k[2] + 10)
    log_eps = k[6] - np.sqrt(k[2]) / 0.05 * k[3]
    k[4] = k[2] ** -0.75 * log_eps + (1 - k[2] ** -0.75) * k[4]
    k[5] = np.exp(log_eps)


def adapted(run, known, theta, step_size, steps):
    """ε (chains,) and M⁻¹ (chains, dim) of the next step; ``known`` (chains, …) is the chains' own numbers.

    Its columns: steps made, ε₀, m, H̄, x̄, ε, μ, α, draws in the window; then their mean and scatter, and M⁻¹.
    """
    n_chains, dim = theta.shape
    if not steps:
        return np.full(n_chains, step_size), np.ones((n_chains, dim))
    with run.part("adaptation"):
        for k in known:
            if k[0] == 0 and k[1] != step_size:
                k[9 + 2 * dim :] = 1
            take_step_size(k, step_size, steps)
    return known[:, 5].copy(), known[:, 9 + 2 * dim :].copy()


def adapt(run, c, known, theta, log_ratio, wanted, steps):
    """Learn from a step of one chain with the acceptance statistic min(1, e^log_ratio); see :func:`adapted`."""
    if not steps:
        return
    k, x, dim = known[c], theta[c], theta.shape[1]
    with run.part("adaptation", c):
        k[7] = 0 if np.isnan(log_ratio) else np.exp(min(log_ratio, 0))
        t, k[0] = k[0], k[0] + 1
        if t >= steps:
            return
        average_step_size(k, wanted)
        for first, end in windows(steps):
            if first <= t < end:
                mean, scatter = k[9 : 9 + dim], k[9 + dim : 9 + 2 * dim]
                n = k[8] = k[8] + 1
                scatter += (x - mean) ** 2 * (n - 1) / n
                mean += (x - mean) / n
                if t == end - 1:
                    k[9 + 2 * dim :] = n / (n + 5) * scatter / (n - 1) + 1e-3 * 5 / (n + 5)
                    k[8 : 9 + 2 * dim], k[2:5], k[6] = 0, 0, np.log(10 * k[5])
        if k[0] == steps:
            k[5] = np.exp(k[4])


def energy_adapted(run, known, step_size, length, steps):
    """ε and L (chains,) of MCLMC's next step; ``known`` (chains, …) is the chains' own numbers.

    Its columns: steps made, ε₀, Σw, Σwξ/ε⁶, the bound of ε, ε, L, ΔE²/d, weight of the draws, L₀; then the mean and
    the scatter of the draws, and the sums of 64 batches.
    """
    if not steps:
        return np.full(len(known), step_size), np.full(len(known), length)
    with run.part("adaptation"):
        for k in known:
            if k[1] != step_size:
                k[1], k[2:5], k[5] = step_size, 0, step_size
            if k[9] != length:
                k[6] = k[9] = length
    return known[:, 5].copy(), known[:, 6].copy()


def adapt_to_energy(k, x, error, steps):
    """Learn from one of the adapting steps of a chain, to x with this energy error; see :func:`energy_adapted`."""
    dim, t, sound = len(x), k[0], abs(error) < 1e50
    k[0] += 1
    # All steps adapt ε where they are few.
    second, third = (steps // 3, 2 * steps // 3) if steps >= 60 else (steps, steps)
    mean, scatter, sums = k[10 : 10 + dim], k[10 + dim : 10 + 2 * dim], k[10 + 2 * dim :].reshape(-1, dim)
    if sound:
        k[7] = error**2 / dim
    if t >= second:
        w = k[5] if t < third else 1
        k[8] += w
        scatter += w * (x - mean) ** 2 * (k[8] - w) / k[8]
        mean += w * (x - mean) / k[8]
        size = ceil((steps - third) / 64)
        if t >= third:
            sums[int((t - third) // size)] += x
        if t == third - 1:
            k[6] = np.sqrt((scatter / k[8]).sum())
        if t == steps - 1:
            batches = sums[: (steps - third) // size] / size
            times = [size * long_run_variance(batches[:, i]) / (scatter[i] / k[8]) for i in range(dim)]
            k[6] = 0.4 * k[5] * np.maximum(times, 1).mean()
        if t in (third - 1, steps - 1):
            k[8], k[10:] = 0, 0
    if t < third and not sound:
        k[4] = k[5] = 0.8 * k[5]
    elif t < third:
        xi = error**2 / (dim * 5e-4) + 1e-8
        w = np.exp(-((np.log(xi) / 9) ** 2) / 2)
        k[2], k[3] = 149 / 151 * k[2] + w, 149 / 151 * k[3] + w * xi / k[5] ** 6
        k[5] = min((k[3] / k[2]) ** (-1 / 6), 2 * k[5], k[4] or np.inf)


def long_run_variance(y):
    """Σ of the autocovariances of a series at all lags, by Geyer's initial monotone sequence."""
    n, z = len(y), y - y.mean()
    covariances = [z[: n - k] @ z[k:] / n for k in range(n - n % 2)]
    pairs = np.add(covariances[::2], covariances[1::2])
    few = next((k for k, pair in enumerate(pairs) if pair <= 0), len(pairs))
    return 2 * np.minimum.accumulate(pairs[:few]).sum() - covariances[0]


def barker(rng, run, c, x, scale, gradient):
    """x_i ← x_i ± z_i with z ~ N(0, s²), and + with probability 1/(1 + e^{z_i ∂̃_iU}), of one chain."""
    z, plus = np.empty_like(x), np.empty_like(x)
    chance = np.empty_like(x)
    for i in range(len(x)):
        z[i] = scale * rng.standard_normal()
        chance[i] = 1 / (1 + np.exp(z[i] * gradient[i]))
        plus[i] = rng.random() < chance[i]
    run.aside("length", c, [x, x + z], z=z)
    with run.part("direction", c, gradient=gradient, probability=chance):
        x += np.where(plus, z, -z)


def shapes(rng, run, data, theta):
    """a = α + N of a distribution with gamma components, and, with minibatches, with N̂_j = (N/n)·#{i in S: z_i = j}
    for N.

    With control variates N̂_j is less by (θ_j/θ̂_j)(N̂_j − N_j), as long as that leaves a_j ≥ 0.
    """
    alpha, counts = run.target.packed()[: 2 * len(theta)].reshape(2, -1)
    noise = run.gradient.noise()
    if not noise.batch_size:
        return alpha + counts, alpha + counts
    run.spend()
    chosen = batch(rng, data, noise.batch_size, noise.replacement)
    found = np.bincount(chosen, minlength=len(alpha)) * counts.sum() / noise.batch_size
    if MODE not in run.gradient.requires:
        return alpha + counts, alpha + found
    return alpha + counts, np.maximum(alpha + found - theta / run.target.mode * (found - counts), 0.0)


def cir(self, rng, run, theta, r, data):
    """θ_j ← (1 − e^{−h})·Gamma(a_j + K), K ~ Poisson(θ_j e^{−h}/(1 − e^{−h})).

    It is taken apart by means: e^{−h}θ + (1 − e^{−h})a, that of the step, then (1 − e^{−h})(a + K), given K.
    Where the process has a scale, θ and h are divided by it.
    """
    unit = run.target.process_scale
    scale, rate = unit * -expm1(-self.step_size / unit), 1 / expm1(self.step_size / unit) / unit
    for c in range(len(theta)):
        exact, a = shapes(rng, run, data, theta[c])
        start = theta[c].copy()
        numbers, gammas = np.empty_like(start), np.empty_like(start)
        for j in range(len(start)):
            mean = rate * start[j]
            numbers[j] = rng.poisson(mean) if mean < 1e15 else mean
            gammas[j] = rng.standard_gamma(a[j] + numbers[j])
        with run.part("mean", c):
            theta[c] = scale * (exact + rate * start)
        if run.noisy:
            with run.part("gradient noise", c):
                theta[c] = scale * (a + rate * start)
        with run.part("Poisson", c, K=numbers):
            theta[c] = scale * (a + numbers)
        with run.part("gamma", c, gamma=gammas):
            theta[c] = scale * gammas


ARC = 24
"""How many pieces the path of a geodesic has."""


def geodesic(run, c, theta, v, time):
    """(θ, v) of one chain along its geodesic, in pieces where it is shown."""
    x, velocity = theta[c].copy(), v.copy()
    shares = np.linspace(0, 1, ARC + 1)[1:] if run.shows(c) else [1.0]
    with run.part("geodesic", c) as through:
        for share in shares:
            theta[c], v[:] = run.manifold.textbook_geodesic(x, velocity, time * share)
            through()


def aboba(self, rng, run, theta, r, data):
    """A for ε/2, v ← e^{−ξε/2}(e^{−ξε/2}v − εΛ∇Ũ + ΛN(0, 2Cε − Vε²)), A for ε/2; ξ = C, or a thermostat's."""
    eps, friction, d = self.step_size, self.friction, theta.shape[1]
    m = d if getattr(self, "embedding", False) is True else run.manifold.dim

    def half():
        for c in range(len(theta)):
            geodesic(run, c, theta, r[c, :d], eps / 2)
            if self.thermostat:
                with run.part("thermostat", c):
                    r[c, d] += ((r[c, :d] ** 2).sum() / m - 1) * eps / 2

    half()
    gradient, noise = gradient_and_noise(rng, run, theta, data, 2 * friction * eps, eps)
    for c in range(len(theta)):
        x, v, tangent = theta[c], r[c, :d], run.manifold.textbook_tangent
        damping = exponential(-(r[c, d] if self.thermostat else friction) * eps / 2)
        with run.part("friction, first half", c):
            v *= damping
        add_increment(run, c, v, eps, x, gradient[c], noise[c], tangent)
        with run.part("friction, second half", c):
            v[:] = tangent(x, damping * v)
    half()


def geodesic_euler(self, rng, run, theta, r, data):
    """Everything from the state before the step; the old kick is projected where it was made, and where it arrives."""
    eps, friction, d, m = self.step_size, self.friction, theta.shape[1], run.manifold.dim
    tangent = run.manifold.textbook_tangent
    gradient, noise = gradient_and_noise(rng, run, theta, data, 2 * friction * eps, eps)
    for c in range(len(theta)):
        v, before, square = r[c, :d], theta[c].copy(), (r[c, :d] ** 2).sum()
        xi = r[c, d] if self.thermostat else friction
        geodesic(run, c, theta, v, eps)
        if self.thermostat:
            with run.part("thermostat", c):
                r[c, d] += (square / m - 1) * eps
        with run.part("friction", c):
            v *= 1 - xi * eps
        start = v.copy()
        for name, g in of_gradient(run, c, before, gradient[c]):
            with run.part(name, c, gradient=g):
                v[:] = tangent(theta[c], start - eps * tangent(before, g))
        with run.part("injected noise", c):
            v[:] = tangent(theta[c], start + tangent(before, -eps * gradient[c] + noise[c]))


def recipe(self, rng, run, theta, r, data):
    """z ← z + ε[−(D + Q)∇H̃ + Γ] + N(0, ε(2D − εB̂)), with H, D, Q and Γ as they are typed and derived.

    The semi-implicit scheme moves θ first, and the rest from there.
    """
    eps, dim, made = self.step_size, theta.shape[1], self.recipe(run.target)
    names, n = made.layout.names, len(made.layout.names)
    if self.layout != "theta":
        for c in range(len(theta)):
            if self.refresh > 0 and rng.random() < -expm1(-self.refresh * eps):
                with run.part("redraw", c):
                    r[c, :dim] = [rng.standard_normal() for _ in range(dim)]

    def at(c):
        """D, Q, Γ, ∇H and what was typed in place of the drift, at the chain's z."""
        z = dict(zip(names, np.concatenate([theta[c], r[c]]), strict=True))
        if made.compiled:
            z |= zip(
                ("U", *made.layout.slopes),
                [*run.target.energies_at(theta[c][None]), *run.target.gradient_at(theta[c][None])[0]],
                strict=True,
            )
        own = made.edited or (None,) * n
        entries = [e for matrix in (made.D, made.Q) for row in matrix for e in row]
        typed = [e for e in own if e is not None]
        values = np.array(evaluate([*entries, *made.gamma, *made.gradient, *typed], **z))
        d, q = values[: 2 * n * n].reshape(2, n, n)
        gamma, slope, rest = values[2 * n * n :][:n], values[2 * n * n :][n : 2 * n], iter(values[2 * n * n + 2 * n :])
        drift = np.array([np.nan if e is None else next(rest) for e in own])
        return d * (not made.dissipation_dropped), q, gamma * (not made.gamma_dropped), slope, drift, d

    def move(c, rows, gradient):
        """The rows of z by their drift, with this gradient of U; the terms are those of the state before."""
        d, q, gamma, exact, own, _ = at(c)
        z = np.concatenate([theta[c], r[c]])
        noisy = np.concatenate([gradient, exact[dim:]])
        free = np.isnan(own) & rows
        seen = exact if run.noisy and run.shows(c) else noisy
        terms = [("−εD∇H", -d @ seen), ("−εQ∇H", -q @ seen), ("εΓ", gamma)]
        if seen is exact:
            terms.append(("gradient noise", -(d + q) @ (noisy - exact)))
        if made.edited:
            terms.append(("drift", np.where(rows & ~np.isnan(own), own, 0.0)))
        for name, f in terms:
            with run.part(name, c):
                z += eps * np.where(free | (name == "drift"), f, 0.0)
                theta[c], r[c] = z[:dim], z[dim:]

    implicit = self.scheme == "semi_implicit"
    first = np.arange(n) < (dim if implicit else 0)
    if implicit:
        for c in range(len(theta)):
            move(c, first, at(c)[3][:dim])
    one_by_one = of_each_chain(rng, run, theta, data)
    # Without minibatches the gradients of all chains come first, and then one B̂ for all of them.
    common = None
    chains: Any = one_by_one
    if not run.gradient.noise().batch_size:
        chains = list(one_by_one)
        common = subtracted(rng, run, np.array([each.mean(axis=0) for each in chains]))
    noisy = [i for i in range(n) if not made.D[i][i].is_zero]
    for c, each in enumerate(chains):
        d, q, _, _, own, whole = at(c)
        v = subtracted(rng, run, each) if common is None else common
        enters = (d + q)[:, :dim] * np.isnan(own)[:, None]
        covariance = eps * (2 * whole - eps * enters @ v @ enters.T)[np.ix_(noisy, noisy)]
        noise = np.zeros(n)
        noise[noisy] = root(covariance) @ [rng.standard_normal() for _ in noisy]
        move(c, ~first, each.mean(axis=0))
        with run.part("injected noise", c):
            theta[c] += noise[:dim]
            r[c] += noise[dim:]
        if run.target.support == "positive":
            with run.part("reflection", c):
                out = theta[c] < 0
                theta[c] = abs(theta[c])
                if n >= 2 * dim:
                    r[c, :dim] = np.where(out, -r[c, :dim], r[c, :dim])
