"""Hamiltonian Monte Carlo with the leapfrog, with and without the accept step."""

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive
from sgmcmc_lab.samplers.kernels.adaptation import (
    ADAPT,
    ADAPTED,
    WANTED,
    Tuning,
    adapt_steps,
    auxiliary,
    begin_steps,
    begin_stride,
    end_stride,
    learn,
    probability,
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
from sgmcmc_lab.samplers.parameters import Count, Flag, Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import Target

_WANTED = WANTED["hmc"]


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, source, params, out, info = borrowed((state, model, source, params, out, info))
    step_size, n_leapfrog, sure, adapting = params[0], int(params[1]), params[2] == 0, int(params[3])
    potential, target_params = model.potential, model.params
    theta, r, grad = state.position, state.momentum, info.gradient
    n_chains, dim = theta.shape
    before, each = np.empty_like(theta), np.empty((source.batch_size, dim))
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    strides = np.empty((n_chains if adapting > 0 else 0, dim))
    more = borrowed((strides,))
    for t in range(n):
        draw_momenta(rng, theta, r, before)
        hamiltonian(potential, target_params, theta, r, energy)
        if adapting > 0:
            begin_steps(state.momentum, more[0], step_size, adapting)
            leapfrog(begin_stride, end_stride, more, rng, state, model, source, each, grad, step_size, n_leapfrog)
        else:
            leapfrog(kick_and_drift, kick, (), rng, state, model, source, each, grad, step_size, n_leapfrog)
        hamiltonian(potential, target_params, theta, r, proposed)
        for c in range(n_chains):
            accept(rng, c, theta, before, energy[c] - proposed[c], proposed[c], info.counts, sure)
            mark_divergent(info.counts, t, c, n_chains, energy[c], proposed[c])
            if adapting > 0:
                learn(r[c, dim:], theta[c], probability(energy[c] - proposed[c]), _WANTED, adapting)
            for i in range(dim):
                out[t, c, i] = theta[c, i]
    keep_alive(strides)


class HMC(Sampler):
    """Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011).

    Dynamics: dθ = r dt, dr = −∇U dt: the recipe with D = 0, Q = [[0, −I], [I, 0]], and the momentum drawn
    afresh, r ~ N(0, I), at the start of each step.
    Leapfrog: L times r ← r − (ε/2)∇U, θ ← θ + εr, r ← r − (ε/2)∇U. With the accept step the new state is
    kept with probability min(1, e^{−ΔH}), and e^{−H} is exactly invariant for every ε. It stays so
    with a noisy gradient, from Gaussian noise or a fresh minibatch at every leapfrog step, because the noise and the
    choice of data are drawn without regard to the state, and on the way back have the same distribution; only more is
    rejected.
    The accept step takes the energy of all data. Without it the bias is O(ε²), and noise heats the chain.
    In the first ``adapt_steps`` steps ε and a diagonal mass matrix M adapt, as in ``samplers/kernels/adaptation.py``.
    The update with r ~ N(0, M) and θ ← θ + εM⁻¹r is the one above in the coordinates θ/√(M⁻¹), and is computed so, with
    the step size ε√(M⁻¹) for each coordinate.
    """

    key = "hmc"
    title = "HMC"
    update = (
        r"\begin{aligned}r &\sim \mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"r &\leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta),\quad \theta \leftarrow \theta + \epsilon\, r,\quad r \leftarrow r - \tfrac{\epsilon}{2}\nabla\tilde U(\theta)"
        + ACCEPT
        + ADAPT
        + r"\end{aligned}"
    )
    optional = {"accept": (ACCEPT,), "adapt_steps": (ADAPT,)}
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Leapfrog, accept step optional"
    source = "Neal 2011; Ma, Chen & Fox 2015, eq (10)"
    accepts = frozenset({FULL, NOISE, BATCH, MODE})
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
        doc="The time of one leapfrog step. If it is too large, proposals are rejected or, without the accept step, diverge.",
    )
    n_leapfrog = Count(
        10,
        bounds=(1, 1000),
        log=True,
        tex="L",
        label="Leapfrog steps L",
        doc="Leapfrog steps in one proposal; each costs one gradient.",
    )
    accept = Flag(
        True,
        label="Accept step",
        doc="The Metropolis test, with which the target is exactly invariant. It takes the energy of all data, with minibatches too.",
    )
    adapt_steps = adapt_steps(_WANTED)
    adaptation = Tuning("acceptance", _WANTED)

    def auxiliary(self, target: Target) -> NDArray[np.float64]:
        return auxiliary(target, self.adapt_steps)

    @property
    def gradients_per_step(self) -> int:
        return self.n_leapfrog + 1

    @property
    def time_per_step(self) -> float:
        return 0.0 if self.steps_that_adapt else self.step_size * self.n_leapfrog

    bias_order = None
    steps_to_test = 100

    parts = {
        "new momentum": r"\mathcal N(0, I)",
        "leapfrog": r"\theta \leftarrow \theta + \epsilon\, r",
        "accept": r"\text{accept with probability }",
        "adaptation": ADAPTED,
    }

    def textbook_step(self, rng, run, theta, r, data):
        dim = theta.shape[1]
        known, r = r[:, dim:], r[:, :dim]
        with run.part("new momentum"):
            for c, i in np.ndindex(theta.shape):
                r[c, i] = rng.standard_normal()
        eps, inverse_mass = textbook.adapted(run, known, theta, self.step_size, self.adapt_steps)
        eps = eps[:, None] * np.sqrt(inverse_mass)
        before = theta.copy()
        energy = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        gradient = textbook.gradients(rng, run, theta, data)
        with run.part("leapfrog") as through:
            for _ in range(self.n_leapfrog):
                r -= eps / 2 * gradient
                theta += eps * r
                gradient = textbook.gradients(rng, run, theta, data)
                r -= eps / 2 * gradient
                through()
        proposed = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, energy - proposed, proposed, sure=self.accept is not True)
            textbook.adapt(run, c, known, theta, energy[c] - proposed[c], 0.651, self.adapt_steps)
