"""Geodesic Monte Carlo: Hamiltonian Monte Carlo on a manifold, with its accept step."""

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed
from sgmcmc_lab.samplers.kernels.base import AFRESH, Sampler
from sgmcmc_lab.samplers.kernels.leapfrog import draw_momenta, half_kick, hamiltonian, leapfrog, mark_divergent
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT, accept
from sgmcmc_lab.samplers.parameters import Count, Flag, Real
from sgmcmc_lab.samplers.requirements import FULL
from sgmcmc_lab.samplers.targets.base import MANIFOLD


@jit.inlined
def tangent_kick(model, x, v, grad, step_size, _):
    """v ← Λ(v − (ε/2)∇U)."""
    half_kick(v, grad, step_size)
    model.project(x, v, model.shape)


@jit.inlined
def _begin(model, x, v, grad, step_size, _):
    """v ← Λ(v − (ε/2)∇U), then both along their geodesics for the time ε."""
    tangent_kick(model, x, v, grad, step_size, ())
    model.flow(x, v, step_size, model.shape)


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, source, params, out, info = borrowed((state, model, source, params, out, info))
    step_size, n_leapfrog, sure = params[0], int(params[1]), params[2] == 0
    potential, target_params = model.potential, model.params
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    before, each = np.empty_like(x), np.empty((0, dim))
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    for t in range(n):
        draw_momenta(rng, x, v, before)
        model.project(x, v, model.shape)
        hamiltonian(potential, target_params, x, v, energy)
        leapfrog(_begin, tangent_kick, (), rng, state, model, source, each, grad, step_size, n_leapfrog)
        hamiltonian(potential, target_params, x, v, proposed)
        for c in range(n_chains):
            accept(rng, c, x, before, energy[c] - proposed[c], proposed[c], info.counts, sure)
            mark_divergent(info.counts, t, c, n_chains, energy[c], proposed[c])
            for i in range(dim):
                out[t, c, i] = x[c, i]


class GMC(Sampler):
    """Geodesic Monte Carlo (Byrne & Girolami 2013, Algorithm 1; Liu, Zhu & Song 2016, section 2).

    Dynamics: the geodesic equation of the manifold with the force −Λ∇U: the recipe with D = 0 and Q = [[0, −I], [I, 0]]
    in local coordinates (the print of the paper lost the minus sign), and the velocity drawn afresh, v ~ ΛN(0, I), at
    the start of each step. U is minus the log density on the embedded manifold (the Hausdorff measure).
    Integrator: L times v ← v − (ε/2)Λ∇U, the geodesic flow for ε, v ← v − (ε/2)Λ∇U. It preserves volume and is
    reversible, so that with the accept step, min(1, e^{−ΔH}) with H = U + ‖v‖²/2, e^{−U} is exactly invariant for
    every ε. Without it the bias is O(ε²). Shapes: x, v (chains, d), d the dimension of the space around the manifold.
    """

    key = "gmc"
    title = "GMC"
    update = (
        r"\begin{aligned}v &\sim \Lambda(x)\,\mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"v &\leftarrow v - \tfrac{\epsilon}{2}\Lambda\nabla U(x),\quad (x, v) \leftarrow \text{geodesic}_{\epsilon}(x, v),\quad v \leftarrow v - \tfrac{\epsilon}{2}\Lambda\nabla U(x)"
        + ACCEPT
        + r"\end{aligned}"
    )
    optional = {"accept": (ACCEPT,)}
    diffusion = "D = 0"
    curl = r"Q = \begin{pmatrix}0&-I\\I&0\end{pmatrix}"
    integrator = "Geodesic leapfrog, accept step optional"
    source = "Byrne & Girolami 2013; Liu, Zhu & Song 2016, section 2"
    supports = frozenset({MANIFOLD})
    accepts = frozenset({FULL})
    gradient_age = None
    moving = True
    momentum = AFRESH
    diverges = True
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-4, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time along the geodesic in one leapfrog step. If it is too large, proposals are rejected.",
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
        doc="The Metropolis test, with which the target is exactly invariant. It needs the full energy, which a minibatch cannot give.",
    )

    @property
    def gradients_per_step(self) -> int:
        return self.n_leapfrog + 1

    @property
    def time_per_step(self) -> float:
        return self.step_size * self.n_leapfrog

    bias_order = None

    parts = {
        "new velocity": r"\Lambda(x)\,\mathcal N(0, I)",
        "leapfrog": r"(x, v) \leftarrow \text{geodesic}_{\epsilon}(x, v)",
        "accept": r"\text{accept with probability }",
    }

    def textbook_step(self, rng, run, theta, r, data):
        eps, tangent = self.step_size, run.manifold.textbook_tangent
        with run.part("new velocity"):
            for c, i in np.ndindex(theta.shape):
                r[c, i] = rng.standard_normal()
            r[:] = [tangent(x, v) for x, v in zip(theta, r, strict=True)]
        before = theta.copy()
        energy = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        with run.part("leapfrog") as through:
            for _ in range(self.n_leapfrog):
                for half in range(2):
                    run.spend(len(theta))
                    gradient = run.target.gradient_at(theta)
                    for c in range(len(theta)):
                        r[c] = tangent(theta[c], r[c] - eps / 2 * gradient[c])
                        if not half:
                            theta[c], r[c] = run.manifold.textbook_geodesic(theta[c], r[c], eps)
                through()
        proposed = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, energy - proposed, proposed, sure=self.accept is not True)
