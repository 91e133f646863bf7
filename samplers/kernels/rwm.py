"""Random-walk Metropolis, which takes no gradient."""

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.kernels.metropolis import accept
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import FULL


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, params, out, info = borrowed((state, model, params, out, info))
    scale, theta = params[0], state.position
    n_chains, dim = theta.shape
    before = np.empty_like(theta)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    model.potential(theta, energy, model.params)
    for t in range(n):
        for c in range(n_chains):
            for i in range(dim):
                before[c, i] = theta[c, i]
                theta[c, i] += scale * rng.standard_normal()
        model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            if accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, False):
                energy[c] = proposed[c]
            for i in range(dim):
                out[t, c, i] = theta[c, i]


class RWM(Sampler):
    """Random-walk Metropolis (Metropolis et al. 1953).

    Proposal: θ' = θ + sN(0, I), which is symmetric; accepted with probability min(1, e^{U(θ) − U(θ')}).
    Invariant distribution: e^{−U}, exactly, for every s. Each step takes the energy of all data and no
    gradient; the energy counts as one gradient, since it reads the same data. In d dimensions the best s falls as 1/√d,
    with about a quarter of the proposals accepted (Roberts, Gelman & Gilks 1997).
    """

    key = "rwm"
    title = "Random-walk Metropolis"
    update = (
        r"\begin{aligned}\theta' &= \theta_t + s\,\mathcal N(0, I)\\"
        r"&\text{accept with probability } \min\bigl(1, e^{U(\theta_t) - U(\theta')}\bigr)\end{aligned}"
    )
    diffusion = r"\text{none}"
    curl = r"\text{none}"
    integrator = "None: a proposal and an accept step"
    source = "Metropolis et al. 1953"
    accepts = frozenset({FULL})
    moving = True
    gradient_age = None
    first_stride = 2.0
    advance = advance

    step_size = Real(
        1.0,
        bounds=(1e-4, 100.0),
        log=True,
        tex="s",
        label="Proposal's scale s",
        doc="The standard deviation of a proposal. Small proposals are accepted, but move the chain little; large ones are rejected.",
    )

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = None
    steps_to_test = 1000

    parts = {
        "proposal": r"s\,\mathcal N(0, I)",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        before = theta.copy()
        for c in range(len(theta)):
            with run.part("proposal", c):
                theta[c] += [self.step_size * rng.standard_normal() for _ in theta[c]]
        energy = -run.target.log_density(theta)
        ratio = -run.target.log_density(before) - energy
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, ratio, energy)
