"""Random-walk Metropolis that is exact with a Poisson minibatch."""

from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.piecewise import distance, highest_slopes
from sgmcmc_lab.samplers.parameters import Flag, Real
from sgmcmc_lab.samplers.requirements import BATCH, ENERGIES, FULL, LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: s, χ, whether there are control variates; then θ̂, the largest |∂_jU_i(θ̂)| (with control
# variates |∂_jU(θ̂)|), C_j, and ∂_jU(θ̂).
_CHI, _CONTROL, _MODE = 1, 2, 3


@jit.helper
def _bound(x, y, params):
    """The bound on all |Δ_i|: Σ_j |y_j − x_j| (h_j + C_j(‖x − θ̂‖ + ‖y − θ̂‖)/2), symmetric in x and y."""
    dim = x.size
    mode = params[_MODE : _MODE + dim]
    away, total = (distance(x, mode) + distance(y, mode)) / 2, 0.0
    for j in range(dim):
        total += abs(y[j] - x[j]) * (params[_MODE + dim + j] + params[_MODE + 2 * dim + j] * away)
    return total


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    scale, chi, control, theta = params[0], params[_CHI], params[_CONTROL] > 0, state.position
    n_chains, dim = theta.shape
    n_data = state.data.size
    mode, slope = params[_MODE : _MODE + dim].copy().reshape(1, dim), params[_MODE + 3 * dim :]
    ends, energy, datum = np.empty((2, dim)), np.empty(2), np.empty(1, dtype=np.int64)
    here, there, at_mode = np.empty((1, dim + 1)), np.empty((1, dim + 1)), np.empty((1, dim))
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                ends[0, i] = theta[c, i]
                ends[1, i] = theta[c, i] + scale * rng.standard_normal()
            bound = _bound(ends[0], ends[1], params)
            rate = chi * bound * bound
            if rate + bound < n_data:
                log_ratio, drawn = 0.0, rng.poisson(rate + bound)
                for _ in range(drawn):
                    datum[0] = state.data[int(rng.random() * n_data)]
                    model.batch(ends[:1], datum, here, model.params)
                    model.batch(ends[1:], datum, there, model.params)
                    apart = there[0, dim] - here[0, dim]
                    if control:
                        model.batch(mode, datum, at_mode, model.params)
                        for i in range(dim):
                            apart -= (at_mode[0, i] - slope[i]) * (ends[1, i] - ends[0, i])
                    if 2 * rng.random() * (rate + bound) < 2 * rate + bound + apart:
                        log_ratio += log((2 * rate + bound - apart) / (2 * rate + bound + apart))
                info.counts[jit.GRADIENTS] += drawn
            else:
                model.potential(ends, energy, model.params)
                log_ratio = energy[0] - energy[1] if abs(energy[1]) < inf else -inf
                info.counts[jit.GRADIENTS] += n_data
            if rng.random() < exp(log_ratio):
                info.counts[jit.ACCEPTED] += 1
                for i in range(dim):
                    theta[c, i] = ends[1, i]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class TunaMH(Sampler):
    """TunaMH (Zhang, Cooper & De Sa 2020): an accept step that is exact with a Poisson minibatch.

    Proposal: θ' = θ + sN(0, I). U_i is the energy with data point i in place of all; U is the mean of the U_i. Let
    Δ_i = U_i(θ') − U_i(θ), and let G(θ, θ') = G(θ', θ) be a bound on all |Δ_i|: the paper's CM. Each data point enters
    the minibatch s_i ~ Poisson(μ_i) times, μ_i = (2λ + G + Δ_i)/2N with λ = χG², and θ' is accepted with probability
    min(1, Π_i ((2λ + G − Δ_i)/(2λ + G + Δ_i))^{s_i}). Thinning gives the numbers s_i: Poisson(λ + G) data points are
    drawn, and each is kept with probability (2λ + G + Δ_i)/(2λ + 2G).
    The bound is G = Σ_j |θ'_j − θ_j|(h_j + C_j(‖θ − θ̂‖ + ‖θ' − θ̂‖)/2). Here θ̂ is the mode, h_j the largest
    |∂_jU_i(θ̂)| and C_j the Lipschitz constant of ∂_jU_i, both of the worst data point: on average over the way from θ
    to θ' the gradient is at most the term in brackets. Control variates add (∇U(θ̂) − ∇U_i(θ̂))·(θ' − θ) to Δ_i, whose
    mean stays; h_j is then |∂_jU(θ̂)| = 0, and near the mode G no longer grows with N. They are not in the paper.
    If λ + G ≥ N, a step takes the energies of all data, as random-walk Metropolis does. The reverse move would do so,
    too, because G is symmetric.
    Invariant distribution: e^{−U}, exactly, for every s and χ: e^{−U(θ)}Π_i Poisson(s_i; μ_i) is Π_i μ_i^{s_i} times
    e^{−(U(θ) + U(θ'))/2} and other symmetric terms, and the accept step has the ratio of these products.
    A data point counts once for each time that it is drawn, whatever the number of its energies.
    """

    key = "tunamh"
    title = "TunaMH"
    update = (
        r"\begin{aligned}\theta' &= \theta_t + s\,\mathcal N(0, I),\quad s_i \sim \operatorname{Poisson}\Bigl(\tfrac{2\lambda + G + \Delta_i}{2N}\Bigr),\quad \lambda = \chi G^2,\quad |\Delta_i| \le G\\"
        r"&\text{accept with probability } \min\Bigl(1, \textstyle\prod_i \Bigl(\tfrac{2\lambda + G - \Delta_i}{2\lambda + G + \Delta_i}\Bigr)^{s_i}\Bigr),\quad \Delta_i = U_i(\theta') - U_i(\theta_t)\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a proposal and an accept step with a minibatch"
    source = "Zhang, Cooper & De Sa 2020, Algorithm 2"
    accepts = frozenset({FULL})
    requires = frozenset({BATCH, MODE, LIPSCHITZ, ENERGIES})
    moving = True
    gradient_age = None
    first_stride = 2.0
    counts_data = True
    advance = advance

    step_size = Real(
        0.2,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="Proposal's scale s",
        doc="The standard deviation of a proposal. The bound G, and with it the minibatch, grows with s.",
    )
    chi = Real(
        0.1,
        bounds=(1e-4, 10.0),
        log=True,
        tex=r"\chi",
        label="Size of the minibatch χ",
        doc="On average G + χG² data points are drawn. A larger χ costs more and accepts more proposals.",
    )
    control = Flag(
        False,
        label="Control variates",
        doc="Whether the linear part at the mode is subtracted from the differences of energies, which makes the bound G smaller near the mode.",
    )

    def packed(self, target: Target) -> NDArray[np.float64]:
        mode = np.asarray(target.mode, dtype=float)
        slope = target.gradient_at(mode[None])[0]
        highest = abs(slope) if self.control is True else highest_slopes(target)
        head = [self.step_size, self.chi, self.control]
        return np.concatenate([head, mode, highest, target.lipschitz_of_each, slope])

    def most_gradients(self, batch_size: int = 0) -> int:
        # At most N data points are drawn on average, each for three evaluations; the number varies.
        return 4

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 300

    parts = {
        "proposal": r"s\,\mathcal N(0, I)",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        target, n_data = run.target, len(data)
        mode = target.mode
        slopes = target.slopes_at(mode)
        highest = abs(slopes.mean(axis=0)) if self.control is True else abs(slopes).max(axis=0)
        for c in range(len(theta)):
            before = theta[c].copy()
            with run.part("proposal", c):
                theta[c] += [self.step_size * rng.standard_normal() for _ in before]
            move, ends = theta[c] - before, np.array([before, theta[c]])
            away = np.linalg.norm(ends - mode, axis=1).mean()
            bound = float((abs(move) * (highest + target.lipschitz_of_each * away)).sum())
            rate = self.chi * bound**2
            if rate + bound < n_data:
                ratio = 1.0
                for _ in range(rng.poisson(rate + bound)):
                    run.spend()
                    i = data[int(rng.random() * n_data)]
                    apart = target.textbook_energy(theta[c], i) - target.textbook_energy(before, i)
                    if self.control is True:
                        apart -= (slopes[i] - slopes.mean(axis=0)) @ move
                    up, down = rate + (bound + apart) / 2, rate + (bound - apart) / 2
                    if rng.random() * (rate + bound) < up:
                        ratio *= down / up
            else:
                ratio = np.exp(-np.diff(target.energies_at(ends))[0])
            u, chance = rng.random(), min(1.0, ratio)
            with run.part("accept", c, probability=chance, u=u, accepted=u < chance):
                if not u < chance:
                    theta[c] = before
