"""Hamiltonian Monte Carlo with a subsample that is part of the state, so that a trajectory conserves its energy."""

from math import exp

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import AFRESH, Sampler
from sgmcmc_lab.samplers.kernels.leapfrog import mark_divergent
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT, accept
from sgmcmc_lab.samplers.parameters import Count, Real, SpecError, Value
from sgmcmc_lab.samplers.requirements import BATCH, ENERGIES, FULL, MODE
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: ε, L, m, the number of indices that are drawn anew, N; then θ̂ and ∇U(θ̂).
_LEAPFROG, _SIZE, _BLOCK, _ITEMS, _MODE = 1, 2, 3, 4, 5
_FEW = 100
"""Subsamples of up to this size are always allowed, even larger than the data."""

_FIRST_SHARE = 20
"""With many data points, the first subsample has one in this many."""
_LARGE = 1.0
"""The variance of Û above which the page names a bias.

On the regressions with 20 and 100 data points, m = 4 and 6 exceed it, with KS .03 to .12. m = 16 has a variance of .13
to .46 and KS .007 to .017; m = 64 has less than .09 and .009.
"""
_WORK = 200_000
"""Energies of one data point that measure this variance."""


@jit.helper
def _differences(x, mode, each, at_mode, out):
    """d_k = U_k(x) − q_k(x) of each data point of a subsample, q_k the tangent of U_k at the mode."""
    dim = x.size
    for k in range(out.size):
        out[k] = each[k, dim] - at_mode[k, dim]
        for i in range(dim):
            out[k] -= at_mode[k, i] * (x[i] - mode[i])


@jit.helper
def _with_new(apart, new, first, out):
    """The d_k of a subsample in which those from ``first`` on are new."""
    for k in range(apart.size):
        out[k] = apart[k]
    for k in range(new.size):
        out[(first + k) % apart.size] = new[k]


@jit.helper
def _spread(apart):
    """The mean of these numbers, and the sum of their squared distances from it."""
    mean, scatter = 0.0, 0.0
    for k in range(apart.size):
        mean += apart[k] / apart.size
    for k in range(apart.size):
        scatter += (apart[k] - mean) ** 2
    return mean, scatter


@jit.helper
def _energy(x, mode, slope, apart):
    """Φ = Û + σ̂²/2, less U(θ̂)."""
    mean, scatter = _spread(apart)
    total = mean + scatter / (2 * apart.size * (apart.size - 1))
    for i in range(x.size):
        total += slope[i] * (x[i] - mode[i])
    return total


@jit.helper
def _gradient(slope, each, at_mode, apart, out):
    """∇Φ: that of σ̂²/2 gives each data point a weight of its own."""
    m = apart.size
    mean, _ = _spread(apart)
    for i in range(out.size):
        out[i] = slope[i]
        for k in range(m):
            out[i] += (1 + (apart[k] - mean) / (m - 1)) / m * (each[k, i] - at_mode[k, i])


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    step_size, n_leapfrog, m, block = params[0], int(params[_LEAPFROG]), int(params[_SIZE]), int(params[_BLOCK])
    n_data, theta, r, grad = int(params[_ITEMS]), state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    mode, slope = params[_MODE : _MODE + dim].copy().reshape(1, dim), params[_MODE + dim :]
    before, chosen, fresh = np.empty_like(theta), np.empty(m, dtype=np.int64), np.empty(block, dtype=np.int64)
    each, at_mode, apart = np.empty((m, dim + 1)), np.empty((m, dim + 1)), np.empty(m)
    new, new_at_mode = np.empty((block, dim + 1)), np.empty((block, dim + 1))
    new_apart, tried = np.empty(block), np.empty(m)
    for t in range(n):
        for c in range(n_chains):
            for k in range(m):
                # A target with more data leaves a longer list.
                chosen[k] = min(int(r[c, dim + k]), n_data - 1)
            model.batch(mode, chosen, at_mode, model.params)
            model.batch(theta[c : c + 1], chosen, each, model.params)
            _differences(theta[c], mode[0], each, at_mode, apart)
            energy = _energy(theta[c], mode[0], slope, apart)
            first = int(rng.random() * m)
            for k in range(block):
                fresh[k] = int(rng.random() * n_data)
            model.batch(mode, fresh, new_at_mode, model.params)
            model.batch(theta[c : c + 1], fresh, new, model.params)
            _differences(theta[c], mode[0], new, new_at_mode, new_apart)
            _with_new(apart, new_apart, first, tried)
            proposed = _energy(theta[c], mode[0], slope, tried)
            if rng.random() < exp(energy - proposed):
                energy = proposed
                for k in range(m):
                    apart[k] = tried[k]
                for k in range(block):
                    at = (first + k) % m
                    chosen[at] = fresh[k]
                    r[c, dim + at] = fresh[k]
                    for i in range(dim + 1):
                        each[at, i], at_mode[at, i] = new[k, i], new_at_mode[k, i]
            for i in range(dim):
                before[c, i] = theta[c, i]
                r[c, i] = rng.standard_normal()
                energy += r[c, i] ** 2 / 2
            _gradient(slope, each, at_mode, apart, grad[c])
            for _ in range(n_leapfrog):
                for i in range(dim):
                    r[c, i] -= step_size / 2 * grad[c, i]
                    theta[c, i] += step_size * r[c, i]
                model.batch(theta[c : c + 1], chosen, each, model.params)
                _differences(theta[c], mode[0], each, at_mode, apart)
                _gradient(slope, each, at_mode, apart, grad[c])
                for i in range(dim):
                    r[c, i] -= step_size / 2 * grad[c, i]
            proposed = _energy(theta[c], mode[0], slope, apart)
            for i in range(dim):
                proposed += r[c, i] ** 2 / 2
            mark_divergent(info.counts, t, c, n_chains, energy, proposed)
            accept(rng, c, theta, before, energy - proposed, proposed, info.counts, False)
            info.counts[jit.GRADIENTS] += (n_leapfrog + 1) * m + block
            for i in range(dim):
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """Every index is uniform on the data."""
    dim = position.shape[1]
    for c in range(position.shape[0]):
        for k in range(int(params[_SIZE])):
            auxiliary[c, dim + k] = int(rng.random() * int(params[_ITEMS]))


class HMCECS(Sampler):
    """HMC with energy-conserving subsampling (Dang, Quiroz, Kohn, Tran & Villani 2019).

    U_i is the energy with data point i in place of all; U is the mean of the U_i. The state has m indices u of data
    beside θ. Û = q + mean_k d_k estimates U, with d_k = U_{u_k} − q_{u_k} and q_i the tangent of U_i at the mode θ̂, q
    their mean: first-order control variates. σ̂² is the sample variance of the d_k, with divisor m − 1, over m.
    A step has two parts. First a share of the indices is drawn anew, uniformly, and accepted with probability
    min(1, e^{Φ(θ, u) − Φ(θ, u')}), Φ = Û + σ̂²/2. Then r ~ N(0, I) and L leapfrog steps of the Hamiltonian
    Φ(θ, u) + ‖r‖²/2 with the same u in all gradients and in the accept step, which takes no other data. The gradient is
    ∇Φ, not ∇Û: both are exact, and both cost the same; the first conserves the energy.
    Invariant distribution: e^{−Φ(θ, u)}, exactly, with u uniform on all Nᵐ subsamples. That of θ is the mean over them.
    The sign of σ̂²/2 follows from E e^{−Û} ≈ e^{−U + s²/2m}, s² the variance of the d_i. Then log E e^{−Φ} + U equals
    κ₃/3m² + O(1/m³), κ₃ the third cumulant of the d_i: ½Cov(Û, σ̂²) − κ₃/6m². It does not fall with N, because d_i
    at a standard deviation from θ̂ does not; with second-order control variates it would fall as N^{−3/2}.
    It assumes U_i ≥ q_i, which holds for convex U_i. Where U_i falls below its tangent, as in
    ``student_mean``, m equal indices have σ̂² = 0 and a low Φ far from θ̂, which a small m reaches.
    A step touches (L + 1)m data points and the new ones; the values at θ̂ count with them.
    Shapes: θ (chains, d), momentum and u (chains, d + m).
    """

    key = "hmc_ecs"
    title = "HMC-ECS"
    update = (
        r"\begin{aligned}u' &= u \text{ with a share drawn anew}\text{; kept with probability } \min\bigl(1, e^{\Phi(\theta, u) - \Phi(\theta, u')}\bigr)\\"
        r"r &\sim \mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"r &\leftarrow r - \tfrac{\epsilon}{2}\nabla\Phi(\theta, u),\quad \theta \leftarrow \theta + \epsilon\, r,\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla\Phi(\theta, u)"
        + ACCEPT
        + r"\\&\Phi = \hat U + \tfrac12\hat\sigma^2,\quad \hat U = q + \tfrac1m\textstyle\sum_k (U_{u_k} - q_{u_k})\end{aligned}"
    )
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Leapfrog with a fixed subsample, and an accept step with it"
    source = "Dang, Quiroz, Kohn, Tran & Villani 2019, Algorithm 1"
    accepts = frozenset({FULL})
    requires = frozenset({BATCH, MODE, ENERGIES})
    gradient_age = None
    moving = True
    momentum = AFRESH
    diverges = True
    # Given θ, the indices are not uniform, as they are at the start.
    stationary_start = False
    counts_data = True
    known_bias = (
        "Its invariant distribution differs from the target by O(1/m²). A larger subsample m reduces this bias."
    )
    advance, start = advance, start

    step_size = Real(
        0.15,
        bounds=(1e-4, 5.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The duration of one leapfrog step. Large values cause rejections.",
    )
    n_leapfrog = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal; each takes the gradients of the subsample.",
    )
    batch_size = Count(
        50,
        bounds=(2, 100_000),
        log=True,
        tex="m",
        label="Subsample m",
        doc="The number of data points in the subsample. The bias is O(1/m²), and the cost of a step grows with m.",
    )
    share = Real(
        0.1,
        bounds=(0.0, 1.0),
        label="Share drawn anew",
        doc="Each step proposes to replace this share of the subsample, at least one data point. Small shares are accepted more often.",
    )

    def _block(self) -> int:
        return max(1, round(self.share * self.batch_size))

    @classmethod
    def first_entries(cls, target: Target) -> dict[str, Value]:
        """A share of the data: where chains begin, far from θ̂, σ̂² of a small subsample is so large that none moves."""
        m, default = len(target.data()) // _FIRST_SHARE, cls.param.batch_size.default
        return {"batch_size": m} if m > default else {}

    def check(self, target: Target) -> None:
        n_data = len(target.data())
        if self.batch_size > max(n_data, _FEW):
            allowed = f"allowed is at most max(N, {_FEW}) = {max(n_data, _FEW)}, N the number of data"
            raise SpecError("sampler.batch_size", self.batch_size, allowed)

    def variance(self, target: Target, draws: NDArray[np.float64]) -> float:
        """The mean over draws (n, dim) of the variance of Û, s²/m, with s² the variance of the d_i over all data."""
        mode, n_data = np.asarray(target.mode, dtype=float)[None], len(target.data())
        params, items = target.packed(), np.arange(n_data)
        at_mode, each, apart = np.empty((n_data, target.dim + 1)), np.empty((n_data, target.dim + 1)), np.empty(n_data)
        target.batch(mode, items, at_mode, params)
        found = []
        for theta in draws:
            target.batch(np.array(theta, dtype=float)[None], items, each, params)
            _differences(theta, mode[0], each, at_mode, apart)
            found.append(apart.var() / self.batch_size)
        return float(np.mean(found))

    def bias_at(self, target: Target, draws: NDArray[np.float64]) -> str:
        few = draws[-max(_WORK // len(target.data()), 4) :]
        # Far from the mode the numbers may be too large for floating point.
        with np.errstate(all="ignore"):
            variance = self.variance(target, few)
        # The variance of few draws depends on the largest of them: the sentence has no number that would change.
        if not variance > _LARGE:
            return ""
        return (
            "The estimate of U has a variance above 1 at the draws, so the invariant distribution of HMC-ECS "
            "differs visibly from the target. A larger subsample m reduces the variance."
        )

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return np.zeros(target.dim + self.batch_size)

    def packed(self, target: Target) -> NDArray[np.float64]:
        mode = np.asarray(target.mode, dtype=float)
        head = [self.step_size, self.n_leapfrog, self.batch_size, self._block(), len(target.data())]
        return np.concatenate([head, mode, target.gradient_at(mode[None])[0]])

    def most_gradients(self, batch_size: int = 0) -> int:
        # With a subsample of all N data: at the start, for the new data, and after each leapfrog step; the number
        # varies.
        return self.n_leapfrog + 2

    @property
    def time_per_step(self) -> float:
        return self.step_size * self.n_leapfrog

    bias_order = None

    parts = {
        "subsample": r"u \text{ with a share drawn anew}",
        "new momentum": r"\mathcal N(0, I)",
        "leapfrog": r"\theta \leftarrow \theta + \epsilon\, r",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        target, n_data, m, dim = run.target, len(data), self.batch_size, theta.shape[1]
        mode, slope = target.mode, textbook.slope_at_mode(run.target)

        def of_each(x, indices):
            """d_k and ∇d_k of these data at x."""
            energies, slopes = [], []
            for i in indices:
                run.spend()
                tangent = target.textbook_slope(mode, i)
                energies.append(target.textbook_energy(x, i) - target.textbook_energy(mode, i) - tangent @ (x - mode))
                slopes.append(target.textbook_slope(x, i) - tangent)
            return np.array(energies), np.array(slopes)

        def phi(x, d):
            return slope @ (x - mode) + d.mean() + d.var(ddof=1) / m / 2

        for c in range(len(theta)):
            x, u = theta[c], np.minimum(r[c, dim:], n_data - 1).astype(int)
            d, slopes = of_each(x, u)
            first = int(rng.random() * m)
            fresh = [int(rng.random() * n_data) for _ in range(max(1, round(self.share * m)))]
            places = (first + np.arange(len(fresh))) % m
            d_fresh, slopes_fresh = of_each(x, fresh)
            tried, slopes_tried = d.copy(), slopes.copy()
            tried[places], slopes_tried[places] = d_fresh, slopes_fresh
            ratio = phi(x, d) - phi(x, tried)
            probability, coin, accepted = textbook.coin(rng, ratio, phi(x, tried))
            with run.part("subsample", c, probability=probability, u=coin, accepted=accepted):
                if accepted:
                    u[places], d, slopes = fresh, tried, slopes_tried
                    r[c, dim + places] = fresh
            with run.part("new momentum", c):
                r[c, :dim] = [rng.standard_normal() for _ in range(dim)]
            before, energy = theta.copy(), phi(x, d) + (r[c, :dim] ** 2).sum() / 2
            with run.part("leapfrog", c) as through:
                for k in range(self.n_leapfrog + 1):
                    if k > 0:
                        theta[c] += self.step_size * r[c, :dim]
                        d, slopes = of_each(theta[c], u)
                    gradient = slope + slopes.mean(axis=0) + (d - d.mean()) @ slopes / (m * (m - 1))
                    kicks = 1 if k in (0, self.n_leapfrog) else 2
                    for _ in range(kicks):
                        r[c, :dim] -= self.step_size / 2 * gradient
                    if k > 0:
                        through()
            proposed = phi(theta[c], d) + (r[c, :dim] ** 2).sum() / 2
            textbook.accept(rng, run, c, theta, before, {c: energy - proposed}, {c: proposed})
