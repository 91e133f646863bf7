"""Hamiltonian Monte Carlo whose trajectory length is learnt across chains, by the ChEES criterion."""

from math import ceil, exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.adaptation import (
    LEARNT,
    LOG_MEAN,
    MADE,
    STATISTIC,
    STEP_SIZE,
    VECTORS,
    WANTED,
    Tuning,
    average,
    probability,
    take_step_size,
)
from sgmcmc_lab.samplers.kernels.base import AFRESH, Sampler
from sgmcmc_lab.samplers.kernels.leapfrog import (
    draw_momenta,
    hamiltonian,
    kick,
    kick_and_drift,
    leapfrog,
    mark_divergent,
)
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT, accept
from sgmcmc_lab.samplers.parameters import Count, Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import FirstSteps, Target

LENGTH, SQUARE, LOG_LENGTH, GIVEN_LENGTH, FIXED = range(VECTORS, VECTORS + 5)
"""Beside the numbers of ``adaptation.py``: T, the mean square of the slopes, the mean of log T and the given T. LEARNT
counts the slopes."""
RATE, FORGET = 0.025, 0.95
"""Adam's learning rate and β₂; its β₁ is 0."""
MOST = 256
"""Leapfrog steps of a trajectory."""
LEAST = 1e-4
"""The acceptance probability above which a trajectory counts for T."""
_WANTED = WANTED["hmc"]

ADAPTED = r"\text{adapt } \epsilon \text{ and } T"
ADAPT = r"\\&" + ADAPTED + r"\text{, in the first steps}"


@jit.helper
def _begin_step(known, step_size, length, n):
    """ε and T of a chain's next step are among its numbers then; a new given value replaces the learnt one."""
    take_step_size(known, step_size, n)
    if known[GIVEN_LENGTH] != length:
        known[GIVEN_LENGTH] = known[LENGTH] = length
        known[LEARNT] = known[SQUARE] = known[LOG_LENGTH] = 0.0


@jit.helper
def _n_leapfrog(time, step_size):
    """⌈time/ε⌉, at least 1 and at most :data:`MOST`."""
    return ceil(min(max(time / step_size, 1.0), float(MOST)))


@jit.helper
def _slope(before, theta, r, alpha):
    """Σ α(‖θ' − m'‖² − ‖θ − m‖²)(θ' − m')·r'/Σ α over the chains; m is the mean of θ, m' that of θ' by weights α.

    Without the chains whose α is below the least, which may have ended in no number; 0 where fewer than two are left.
    """
    n_chains, dim = theta.shape
    total, left = 0.0, 0
    for c in range(n_chains):
        if alpha[c] > LEAST:
            total += alpha[c]
            left += 1
    if left < 2:
        return 0.0
    start, end = np.zeros(dim), np.zeros(dim)
    for c in range(n_chains):
        for i in range(dim):
            start[i] += before[c, i] / n_chains
            if alpha[c] > LEAST:
                end[i] += alpha[c] / total * theta[c, i]
    slope = 0.0
    for c in range(n_chains):
        if alpha[c] > LEAST:
            change = along = 0.0
            for i in range(dim):
                away = theta[c, i] - end[i]
                change += away * away - (before[c, i] - start[i]) ** 2
                along += away * r[c, i]
            slope += alpha[c] / total * change * along
    return slope


@jit.helper
def _harmonic_mean(alpha):
    """The harmonic mean of the chains' α; 0 if one of them is 0."""
    total = 0.0
    for c in range(alpha.size):
        if alpha[c] == 0:
            return 0.0
        total += 1 / alpha[c]
    return alpha.size / total


@jit.helper
def _learn(known, statistic, slope, n):
    """Adapt after one of the n adapting steps, to the α of the chains and the slope; later only α is kept."""
    known[STATISTIC] = statistic
    t = int(known[MADE])
    known[MADE] += 1
    if t >= n:
        return
    average(known, _WANTED - statistic)
    if slope != 0 and slope * slope < inf:
        known[LEARNT] += 1
        m = known[LEARNT]
        known[SQUARE] = FORGET * known[SQUARE] + (1 - FORGET) * slope * slope
        x = log(known[LENGTH]) + RATE * slope / sqrt(known[SQUARE] / (1 - FORGET**m))
        known[LOG_LENGTH] += (x - known[LOG_LENGTH]) / sqrt(m)
        known[LENGTH] = exp(x)
    if t + 1 == n:
        known[STEP_SIZE] = exp(known[LOG_MEAN])
        if known[LEARNT] > 0:
            known[LENGTH] = exp(known[LOG_LENGTH])


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, source, params, out, info = borrowed((state, model, source, params, out, info))
    adapting = int(params[2])
    potential, target_params = model.potential, model.params
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, each = np.empty_like(theta), np.empty((source.batch_size, dim))
    energy, proposed, alpha = np.empty(n_chains), np.empty(n_chains), np.empty(n_chains)
    for t in range(n):
        step_size, length = params[0], params[1]
        if adapting > 0:
            for c in range(n_chains):
                _begin_step(r[c, dim:], step_size, length, adapting)
            # All chains have learnt the same.
            step_size, length = r[0, dim + STEP_SIZE], r[0, dim + LENGTH]
        time = rng.random() * length
        n_leapfrog = _n_leapfrog(time, step_size)
        draw_momenta(rng, theta, r, before)
        hamiltonian(potential, target_params, theta, r, energy)
        leapfrog(kick_and_drift, kick, (), rng, state, model, source, each, grad, step_size, n_leapfrog)
        info.counts[jit.GRADIENTS] += n_chains * (n_leapfrog + 1)
        hamiltonian(potential, target_params, theta, r, proposed)
        if adapting > 0:
            for c in range(n_chains):
                alpha[c] = probability(energy[c] - proposed[c]) if abs(proposed[c]) < inf else 0.0
            # A trajectory of the most steps is no longer for a longer T.
            slope = time * _slope(before, theta, r, alpha) if n_leapfrog < MOST else 0.0
            statistic = _harmonic_mean(alpha)
            for c in range(n_chains):
                _learn(r[c, dim:], statistic, slope, adapting)
        for c in range(n_chains):
            accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, False)
            mark_divergent(info.counts, t, c, n_chains, energy[c], proposed[c])
            for i in range(dim):
                out[t, c, i] = theta[c, i]


def textbook_slope(time, before, end, r, alpha):
    """The slope of the criterion in log T in plain Python; 0 where fewer than two trajectories count."""
    some = alpha > 1e-4
    if some.sum() < 2:
        return 0.0
    after = end[some] - np.average(end[some], axis=0, weights=alpha[some])
    squares = (after**2).sum(axis=1) - ((before - before.mean(axis=0))[some] ** 2).sum(axis=1)
    return time * np.average(squares * (after * r[some]).sum(axis=1), weights=alpha[some])


class ChEES(Sampler):
    """ChEES-HMC (Hoffman, Radul & Sountsov 2021): HMC whose trajectory length is learnt across chains.

    Dynamics: dθ = r dt, dr = −∇U dt, with r ~ N(0, I) drawn afresh at the start of each step.
    Leapfrog: ⌈hT/ε⌉ steps, at most 256, with h ~ U(0, 1) drawn in each step, the same for all chains. The new state is
    kept with probability min(1, e^{−ΔH}), and e^{−H} is exactly invariant for every ε, T and h.
    In the first ``adapt_steps`` steps all chains share ε and T, which follow
    – dual averaging (``samplers/kernels/adaptation.py``), which moves the harmonic mean of the chains' acceptance
      probabilities α towards .651;
    – gradient ascent in log T on the criterion ¼E(‖θ' − Eθ'‖² − ‖θ − Eθ‖²)², the change in the estimator of the
      expected square, by Adam with β₁ = 0, β₂ = .95 and the rate .025. As dθ'/dt = r', its slope is estimated by
      hT Σ_c α_c(‖θ'_c − m'‖² − ‖θ_c − m‖²)(θ'_c − m')·r'_c/Σ_c α_c, where the means m and m' are those over the chains,
      m' with the weights α. log T̄ ← log T̄ + (log T − log T̄)/√m after m slopes.
    After them ε and T̄ are fixed. On N(0, diag σ²) the criterion at the time t is Σσ_i⁴ sin²(t/σ_i), and its mean over h
    Σσ_i⁴(½ − sin(2T/σ_i)/(4T/σ_i)). Means over n chains shrink it by (1 − 1/n)², and T is the same.
    Shapes: θ (chains, d), momentum (chains, d), behind it the numbers that adapt.
    """

    key = "chees"
    title = "ChEES-HMC"
    update = (
        r"\begin{aligned}r &\sim \mathcal N(0, I),\quad h \sim \mathcal U(0, 1);\quad \text{then } \lceil hT/\epsilon \rceil \text{ times:}\\"
        r"r &\leftarrow r - \tfrac{\epsilon}{2}\nabla U(\theta),\quad \theta \leftarrow \theta + \epsilon\, r,\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla U(\theta)"
        + ACCEPT
        + ADAPT
        + r"\end{aligned}"
    )
    optional = {"adapt_steps": (ADAPT,)}
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Leapfrog of random length, accept step"
    source = "Hoffman, Radul & Sountsov 2021"
    accepts = frozenset({FULL})
    gradient_age = None
    moving = True
    momentum = AFRESH
    diverges = True
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-4, 5.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The duration of one leapfrog step. Large values cause rejections.",
    )
    length = Real(
        3.0,
        bounds=(0.01, 1000.0),
        log=True,
        tex="T",
        label="Longest trajectory T",
        doc=f"A trajectory lasts hT, with h uniform on (0, 1), and takes at most {MOST} leapfrog steps. Each costs one gradient.",
    )
    adapt_steps = Count(
        0,
        bounds=(0, 10_000),
        label="Adaptation steps",
        doc=f"During these first steps all chains together adapt ε, to an acceptance of {_WANTED}, and T, to the ChEES criterion, from the values above. The steps are burn-in and need at least two chains. With a schedule, only T adapts. 0: no adaptation.",
    )
    adaptation = Tuning("acceptance", _WANTED, length=("T", LENGTH))

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """On a steep target T is shorter, but at least twenty steps."""
        out = super().first_values(first, gradient)
        bounds = cls.param.length.bounds
        return {**out, "length": min(max(20 * out["step_size"], bounds[0]), cls.param.length.default)} if out else out

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        """A momentum and, if steps adapt, the numbers that the chains learn, 0 at first."""
        return np.zeros(target.dim + (FIXED if self.steps_that_adapt else 0))

    @property
    def least_chains(self) -> int:
        return 2 if self.steps_that_adapt else 1

    @property
    def gradients_per_step(self) -> int:
        """None besides those that the kernel counts."""
        return 0

    def most_gradients(self, batch_size: int = 0) -> int:
        longest = MOST if self.steps_that_adapt else min(ceil(self.length / self.step_size), MOST)
        return longest + 1

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 100

    parts = {
        "new momentum": r"\mathcal N(0, I)",
        "leapfrog": r"\theta \leftarrow \theta + \epsilon\, r",
        "accept": r"\text{accept with probability }",
        "adaptation": ADAPTED,
    }

    def textbook_step(self, rng, run, theta, r, data):
        n, dim = theta.shape
        known, r = r[:, dim:], r[:, :dim]
        eps, length, adapts = self.step_size, self.length, bool(self.adapt_steps)
        if adapts:
            # Steps made, ε₀, m, H̄, x̄, ε, μ, α, slopes; T, their mean square, the mean of log T, T₀.
            with run.part("adaptation"):
                for k in known:
                    textbook.take_step_size(k, eps, self.adapt_steps)
                    if k[12] != length:
                        k[8], k[9:13] = 0, [length, 0, 0, length]
            eps, length = known[0, 5], known[0, 9]
        time = rng.random() * length
        steps = int(np.ceil(np.clip(time / eps, 1, 256)))
        with run.part("new momentum"):
            for c, i in np.ndindex(theta.shape):
                r[c, i] = rng.standard_normal()
        before = theta.copy()
        energy = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        gradient = textbook.gradients(rng, run, theta, data)
        with run.part("leapfrog") as through:
            for _ in range(steps):
                r -= eps / 2 * gradient
                theta += eps * r
                gradient = textbook.gradients(rng, run, theta, data)
                r -= eps / 2 * gradient
                through()
        end = theta.copy()
        proposed = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        for c in range(n):
            textbook.accept(rng, run, c, theta, before, energy - proposed, proposed)
        if not adapts:
            return
        alpha = np.exp(np.minimum(energy - proposed, 0))
        alpha[~np.isfinite(proposed) | np.isnan(alpha)] = 0
        slope = textbook_slope(time, before, end, r, alpha) if steps < 256 else 0.0
        with run.part("adaptation"):
            for k in known:
                k[7] = 1 / np.mean(1 / alpha) if alpha.all() else 0
                k[0] += 1
                if k[0] > self.adapt_steps:
                    continue
                textbook.average_step_size(k, 0.651)
                if slope != 0 and np.isfinite(slope**2):
                    k[8] += 1
                    k[10] += 0.05 * (slope**2 - k[10])
                    log_length = np.log(k[9]) + 0.025 * slope / np.sqrt(k[10] / (1 - 0.95 ** k[8]))
                    k[11] = k[8] ** -0.5 * log_length + (1 - k[8] ** -0.5) * k[11]
                    k[9] = np.exp(log_length)
                if k[0] == self.adapt_steps:
                    k[5] = np.exp(k[4])
                    k[9] = np.exp(k[11]) if k[8] else k[9]
