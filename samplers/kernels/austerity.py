"""Random-walk Metropolis whose accept step looks at no more data than a test needs."""

from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.gradients.minibatch import choose
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.parameters import Count, Real, Value
from sgmcmc_lab.samplers.requirements import BATCH, ENERGIES, FULL
from sgmcmc_lab.samplers.targets.base import Target

# The packed parameters: s, the number of data points that are added at a time, and for each test but the last the |t|
# above which it decides.
_SIZE, _LEVELS = 1, 2
_LARGEST = 1e300
"""A |t| that no test reaches."""


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    scale, size, theta, data = params[0], int(params[_SIZE]), state.position, state.data
    n_chains, dim = theta.shape
    n_data = data.size
    before, batch = np.empty_like(theta), np.empty(size, dtype=np.int64)
    here, there = np.empty((size, dim + 1)), np.empty((size, dim + 1))
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                before[c, i] = theta[c, i]
                theta[c, i] += scale * rng.standard_normal()
        for c in range(n_chains):
            # Accepted if the mean of U_i(θ') − U_i(θ) is below it; U_i has data point i in place of all.
            level = -log(rng.random())
            seen, tests, mean, scatter, decided = 0, 0, 0.0, 0.0, False
            while not decided:
                m = min(size, n_data - seen)
                last = seen + m == n_data
                for k in range(m):
                    # The last minibatch is all the data that are left.
                    batch[k] = data[seen + k] if last else choose(rng, data, seen + k, False)
                model.batch(before[c : c + 1], batch[:m], here, model.params)
                model.batch(theta[c : c + 1], batch[:m], there, model.params)
                for k in range(m):
                    seen += 1
                    apart = there[k, dim] - here[k, dim] - mean
                    mean += apart / seen
                    scatter += apart * (there[k, dim] - here[k, dim] - mean)
                if last:
                    decided = True
                else:
                    error = sqrt(scatter / (seen - 1) / seen * (1 - (seen - 1) / (n_data - 1)))
                    decided = abs(mean - level) > params[_LEVELS + tests] * error
                    tests += 1
            info.counts[jit.GRADIENTS] += seen
            if -inf < mean < level:
                info.counts[jit.ACCEPTED] += 1
            else:
                theta[c] = before[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class Austerity(Sampler):
    """Austerity in MCMC land (Korattikara, Chen & Welling 2014): an accept step by a sequential test.

    Proposal: θ' = θ + sN(0, I). Random-walk Metropolis accepts if U(θ') − U(θ) < −log u with u uniform. This is a test
    of the mean of N numbers Δ_i, each the difference of U with data point i in place of all. A minibatch without
    replacement estimates the mean. It grows by m data points until a t-test with n − 1 degrees of freedom errs with
    probability below ε. The standard error has the factor √(1 − (n − 1)/(N − 1)) of a finite population; at n = N there
    is no error. Each data point has an Nth of the prior.
    Invariant distribution: e^{−U} as ε → 0, where each step takes all data. Otherwise the chain has a bias, which grows
    with ε: the test is repeated, and the Δ_i of a small minibatch are not normal, so more decisions are wrong than ε
    says. Each data point that a step looks at counts once, though its energy is computed at θ and at θ'.
    """

    key = "austerity"
    title = "Austerity"
    update = (
        r"\begin{aligned}\theta' &= \theta_t + s\,\mathcal N(0, I),\quad u \sim \operatorname{Unif}(0, 1)\\"
        r"&\text{accept where } \operatorname{mean}_{i \in S} \Delta_i < -\log u,\quad \Delta_i = U_i(\theta') - U_i(\theta)\\"
        r"&S \text{ grows by } m \text{ until a } t\text{-test errs with probability} < \varepsilon\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a proposal and an accept step by a test"
    source = "Korattikara, Chen & Welling 2014, Algorithm 1"
    accepts = frozenset({FULL})
    requires = frozenset({BATCH, ENERGIES})
    moving = True
    gradient_age = None
    first_stride = 2.0
    counts_data = True
    known_bias = "Its accept step is a test on a part of the data, which can err; with ε = 0 it takes all data."
    advance = advance

    step_size = Real(
        1.0,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="Proposal's scale s",
        doc="The standard deviation of a proposal. Small proposals are accepted, but move the chain little; large ones are rejected.",
    )
    error = Real(
        0.01,
        bounds=(0.0, 0.5),
        tex=r"\varepsilon",
        label="Error of a test ε",
        doc="A test ends when its probability of error is below ε. With 0 each step takes all data and is exact.",
    )
    batch_size = Count(
        50,
        bounds=(2, 100_000),
        log=True,
        tex="m",
        label="Minibatch m of a test",
        doc="The number of data points that are added at a time, until the test decides. A test of few data points errs far more often than ε says.",
    )

    def packed(self, target: Target) -> NDArray[np.float64]:
        n_data = len(target.data())
        size = min(int(self.batch_size), n_data) if self.error > 0 else n_data
        seen = np.arange(size, n_data, size)
        return np.concatenate([[self.step_size, size], np.minimum(stats.t.isf(self.error, seen - 1), _LARGEST)])

    @classmethod
    def params_to_test(cls, step_size: float) -> dict[str, Value]:
        return {"step_size": step_size, "error": 0.0}

    def most_gradients(self, batch_size: int = 0) -> int:
        # At both ends of the proposal.
        return 2

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 200

    parts = {
        "proposal": r"s\,\mathcal N(0, I)",
        "accept": r"\text{accept where }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        before, n_data, target = theta.copy(), len(data), run.target
        size = self.batch_size if self.error > 0 else n_data
        for c in range(len(theta)):
            with run.part("proposal", c):
                theta[c] += [self.step_size * rng.standard_normal() for _ in theta[c]]
        for c in range(len(theta)):
            u = rng.random()
            found: list[float] = []
            while True:
                end = min(len(found) + size, n_data)
                for k in range(len(found), end):
                    if end < n_data:
                        i = k + int(rng.random() * (n_data - k))
                        data[k], data[i] = data[i], data[k]
                    run.spend()
                    found.append(target.textbook_energy(theta[c], data[k]) - target.textbook_energy(before[c], data[k]))
                if end == n_data:
                    break
                error = np.std(found, ddof=1) / sqrt(end) * sqrt(1 - (end - 1) / (n_data - 1))
                t = abs(np.mean(found) + log(u)) / error
                if stats.t.sf(t, end - 1) < self.error:
                    break
            mean = float(np.mean(found))
            chance = min(1.0, np.exp(-mean))
            with run.part("accept", c, probability=chance, u=u, accepted=u < chance):
                if not u < chance:
                    theta[c] = before[c]
