"""Constrained Hamiltonian Monte Carlo on a sphere: leapfrog steps that a normal force keeps on the sphere."""

from math import sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive
from sgmcmc_lab.samplers.kernels.gmc import GMC, tangent_kick
from sgmcmc_lab.samplers.kernels.leapfrog import draw_momenta, hamiltonian, leapfrog, mark_divergent
from sgmcmc_lab.samplers.kernels.metropolis import ACCEPT, accept
from sgmcmc_lab.samplers.manifolds import Sphere
from sgmcmc_lab.samplers.parameters import Real


@jit.helper
def _constrained(x, v, c, time):
    """x ← x + time · (v − λx) with the λ that makes ‖x‖ = 1; v ← v − λx. Whether there is one."""
    square = 0.0
    for i in range(x.shape[1]):
        square += (time * v[c, i]) ** 2
    if not square < 1:
        return False
    slack = (1 - sqrt(1 - square)) / time
    norm = 0.0
    for i in range(x.shape[1]):
        v[c, i] -= slack * x[c, i]
        x[c, i] += time * v[c, i]
        norm += x[c, i] ** 2
    for i in range(x.shape[1]):
        x[c, i] /= sqrt(norm)
    return True


@jit.inlined
def _begin(model, x, v, grad, step_size, more):
    """v ← Λ(v − (ε/2)∇U), then a step along v − λx that ends on the sphere, where there is one."""
    first, solved, _ = more
    first[:] = v
    tangent_kick(model, x, v, grad, step_size, ())
    for c in range(x.shape[0]):
        solved[c] = _constrained(x, v, c, step_size)


@jit.inlined
def _end(model, x, v, grad, step_size, more):
    """v ← Λ(v − (ε/2)∇U), or the first v turned around where there was no step."""
    first, solved, turned = more
    tangent_kick(model, x, v, grad, step_size, ())
    for c in range(x.shape[0]):
        if not solved[c]:
            turned[c] = True
            for i in range(x.shape[1]):
                v[c, i] = -first[c, i]


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    state, model, source, params, out, info = borrowed((state, model, source, params, out, info))
    step_size, n_leapfrog, sure = params[0], int(params[1]), params[2] == 0
    potential, target_params = model.potential, model.params
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    before, first, each = np.empty_like(x), np.empty_like(x), np.empty((0, dim))
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    solved, turned = np.empty(n_chains, np.bool_), np.empty(n_chains, np.bool_)
    more = borrowed((first, solved, turned))
    for t in range(n):
        turned[:] = False
        draw_momenta(rng, x, v, before)
        model.project(x, v, model.shape)
        hamiltonian(potential, target_params, x, v, energy)
        leapfrog(_begin, _end, more, rng, state, model, source, each, grad, step_size, n_leapfrog)
        hamiltonian(potential, target_params, x, v, proposed)
        for c in range(n_chains):
            info.counts[jit.TURNED] += turned[c]
            accept(rng, c, x, before, energy[c] - proposed[c], proposed[c], info.counts, sure)
            mark_divergent(info.counts, t, c, n_chains, energy[c], proposed[c])
            for i in range(dim):
                out[t, c, i] = x[c, i]
    keep_alive((first, solved, turned))


class CHMC(GMC):
    """Constrained Hamiltonian Monte Carlo (Brubaker, Salzmann & Urtasun 2012), the method to compare GMC with.

    Dynamics: as in GMC, but the sphere is the constraint ‖x‖² = 1 of motion in ℝᵈ. Integrator: RATTLE, L times
    v ← Λ(x)(v − (ε/2)∇U), then v ← v − λx, x ← x + εv with the multiplier λ that puts x back on the sphere, then
    v ← Λ(x)(v − (ε/2)∇U). Elsewhere λ takes an iteration in each step; here it is (1 − √(1 − ε²‖v‖²))/ε. A step turns
    by the angle arcsin(ε‖v‖), GMC's by ε‖v‖ itself. For ε‖v‖ ≥ 1 no λ exists: v is turned around instead, and the
    trajectory goes back; such trajectories are counted. Both maps preserve volume and are reversible: with the accept
    step e^{−U} is exactly invariant for every ε; without it the bias is O(ε²).
    Shapes: x, v (chains, d), d the dimension of the space around the sphere.
    """

    key = "chmc"
    title = "Constrained HMC"
    update = (
        r"\begin{aligned}v &\sim \Lambda(x)\,\mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"v &\leftarrow \Lambda(x)\bigl(v - \tfrac{\epsilon}{2}\nabla U(x)\bigr) - \lambda x,\quad x \leftarrow x + \epsilon v"
        r"\ \text{ with } \lVert x\rVert = 1,\quad v \leftarrow \Lambda(x)\bigl(v - \tfrac{\epsilon}{2}\nabla U(x)\bigr)"
        + ACCEPT
        + r"\end{aligned}"
    )
    integrator = "RATTLE, accept step optional"
    source = "Brubaker, Salzmann & Urtasun 2012; Liu, Zhu & Song 2016, Table 1"
    geometries = (Sphere,)
    advance = advance

    step_size = Real(
        0.15,
        bounds=(1e-4, 2.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The time of one leapfrog step. A trajectory turns back at a step that would be longer than the sphere's radius.",
    )
    parts = {
        "new velocity": r"\Lambda(x)\,\mathcal N(0, I)",
        "leapfrog": r"x \leftarrow x + \epsilon v",
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
                run.spend(2 * len(theta))
                start, slope = r.copy(), run.target.gradient_at(theta)
                r[:] = [tangent(x, v) for x, v in zip(theta, r - eps / 2 * slope, strict=True)]
                solved = eps * np.linalg.norm(r, axis=1) < 1
                for c in np.flatnonzero(solved):
                    # Newton's iteration for the multiplier, as where no formula is known.
                    multiplier = 0.0
                    for _ in range(60):
                        x = theta[c] + eps * (r[c] - multiplier * theta[c])
                        multiplier += (x @ x - 1) / (2 * eps * (x @ theta[c]))
                    r[c] -= multiplier * theta[c]
                    theta[c] = theta[c] + eps * r[c]
                slope = run.target.gradient_at(theta)
                for c in range(len(theta)):
                    r[c] = tangent(theta[c], r[c] - eps / 2 * slope[c]) if solved[c] else -start[c]
                through()
        proposed = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2
        for c in range(len(theta)):
            textbook.accept(rng, run, c, theta, before, energy - proposed, proposed, sure=self.accept is not True)
