"""Constrained Hamiltonian Monte Carlo on a sphere: leapfrog steps that a force across the sphere keeps on it."""

from math import exp, sqrt

import numpy as np

from samplers import jit, textbook
from samplers.kernels.gmc import GMC, energy_of, half_kick
from samplers.manifolds import Sphere
from samplers.parameters import Real


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


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, n_leapfrog, accept = params[0], int(params[1]), params[2] > 0
    x, v, grad = state.position, state.momentum, info.gradient
    n_chains, dim = x.shape
    before = np.empty_like(x)
    energy, proposed = np.empty(n_chains), np.empty(n_chains)
    possible = np.empty(n_chains, np.bool_)
    for t in range(n):
        for c in range(n_chains):
            possible[c] = True
            for i in range(dim):
                before[c, i] = x[c, i]
                v[c, i] = rng.standard_normal()
        model.project(x, v, model.shape)
        energy_of(model, x, v, energy)
        model.gradient(x, grad, model.params)
        for _ in range(n_leapfrog):
            half_kick(model, x, v, grad, step_size / 2)
            for c in range(n_chains):
                possible[c] = possible[c] and _constrained(x, v, c, step_size)
            model.gradient(x, grad, model.params)
            half_kick(model, x, v, grad, step_size / 2)
        energy_of(model, x, v, proposed)
        for c in range(n_chains):
            # A NaN energy compares false, and so is rejected.
            ratio = exp(energy[c] - proposed[c]) if possible[c] else 0.0
            if (possible[c] and not accept) or rng.random() < ratio:
                info.counts[jit.ACCEPTED] += 1
            else:
                x[c] = before[c]
            for i in range(dim):
                out[t, c, i] = x[c, i]


class CHMC(GMC):
    """Constrained Hamiltonian Monte Carlo (Brubaker, Salzmann & Urtasun 2012): what GMC is held against.

    Dynamics: as in GMC, but the sphere is the constraint ‖x‖² = 1 of motion in ℝᵈ. Integrator: RATTLE, L times
    v ← Λ(x)(v − (ε/2)∇U), then v ← v − λx, x ← x + εv with the multiplier λ that puts x back on the sphere, then
    v ← Λ(x)(v − (ε/2)∇U). Elsewhere λ takes an iteration in each step; here it is (1 − √(1 − ε²‖v‖²))/ε, and there is
    none where ε‖v‖ ≥ 1: such a proposal is rejected. A step turns by the angle arcsin(ε‖v‖), GMC's by ε‖v‖ itself. It
    preserves volume and is reversible: with the accept step e^{−U} is exactly invariant for every ε; without it the
    bias is O(ε²). Shapes: x, v (chains, d), d the dimension of the space around the sphere.
    """

    key = "chmc"
    title = "Constrained HMC"
    update = (
        r"\begin{aligned}v &\sim \Lambda(x)\,\mathcal N(0, I);\quad \text{then } L \text{ times:}\\"
        r"v &\leftarrow \Lambda(x)\bigl(v - \tfrac{\epsilon}{2}\nabla U(x)\bigr) - \lambda x,\quad x \leftarrow x + \epsilon v"
        r"\ \text{ with } \lVert x\rVert = 1,\quad v \leftarrow \Lambda(x)\bigl(v - \tfrac{\epsilon}{2}\nabla U(x)\bigr)\\"
        r"&\text{accept with probability } \min\bigl(1, e^{-\Delta H}\bigr)\end{aligned}"
    )
    integrator = "RATTLE, accept step optional"
    source = "Brubaker, Salzmann & Urtasun 2012; Liu, Zhu & Song 2016, Table 1"
    geometries = (Sphere,)
    advance = advance

    step_size = Real(0.15, bounds=(1e-4, 2.0), log=True, tex=r"\epsilon", label="Step size ε",
                     doc="The time of one leapfrog step. Steps that would be longer than the sphere's radius are rejected.")  # fmt: skip
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
        impossible = np.zeros(len(theta), dtype=bool)
        with run.part("leapfrog") as through:
            for _ in range(self.n_leapfrog):
                for half in range(2):
                    run.spend(len(theta))
                    gradient = run.target.gradient_at(theta)
                    for c in range(len(theta)):
                        r[c] = tangent(theta[c], r[c] - eps / 2 * gradient[c])
                        if half:
                            continue
                        impossible[c] |= eps * np.linalg.norm(r[c]) >= 1
                        if not impossible[c]:
                            # Newton's iteration for the multiplier, as where no formula is known.
                            multiplier = 0.0
                            for _ in range(60):
                                x = theta[c] + eps * (r[c] - multiplier * theta[c])
                                multiplier += (x @ x - 1) / (2 * eps * (x @ theta[c]))
                            r[c] -= multiplier * theta[c]
                            theta[c] = theta[c] + eps * r[c]
                through()
        change = -run.target.log_density(theta) + (r**2).sum(axis=1) / 2 - energy
        for c in range(len(theta)):
            sure = self.accept is not True and not impossible[c]
            textbook.accept(rng, run, c, theta, before, np.where(impossible, -np.inf, -change), sure=sure)
