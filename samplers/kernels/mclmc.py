"""Microcanonical Langevin Monte Carlo."""

from math import exp, expm1, log, sqrt

import numpy as np

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.kernels.adaptation import MADE, WANTED, Tuning
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.kernels.energy_adaptation import (
    ADAPT,
    ADAPTED,
    LENGTH,
    adapt_steps,
    auxiliary,
    begin_step,
    is_sound,
    learn,
)
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, batch_gradients
from sgmcmc_lab.samplers.parameters import Real
from sgmcmc_lab.samplers.requirements import BATCH, FULL, MEMORY, MODE, NOISE
from sgmcmc_lab.samplers.targets.base import FirstSteps, Target


@jit.helper
def _turn(u, grad, c, time):
    """The exact flow of u̇ = −P(u)∇U/(d − 1) at fixed ∇U: the unit vector u turns towards e = −∇U/‖∇U‖.

    u ← (u + (sinh δ + (e·u)(cosh δ − 1)) e)/(cosh δ + (e·u) sinh δ), δ = time·‖∇U‖/(d − 1), each term times 2e^{−δ},
    which overflows for no δ.
    """
    dim = grad.shape[1]
    norm = along = 0.0
    for i in range(dim):
        norm += grad[c, i] * grad[c, i]
        along -= grad[c, i] * u[c, i]
    norm = sqrt(norm)
    if norm == 0:
        return
    along /= norm
    shrunk = exp(-time * norm / (dim - 1))
    forward = 1 - shrunk * shrunk + along * (1 - shrunk) * (1 - shrunk)
    length = 0.0
    for i in range(dim):
        u[c, i] = 2 * shrunk * u[c, i] - forward * grad[c, i] / norm
        length += u[c, i] * u[c, i]
    for i in range(dim):
        u[c, i] /= sqrt(length)


@jit.helper
def _spread(step_size, length, dim):
    """ν, for a length of next to nothing a large number."""
    return sqrt(expm1(min(2 * step_size / length, 700.0)) / dim)


@jit.helper
def _gained(u, grad, c, time):
    """(d − 1) log(cosh δ + (e·u) sinh δ): what K gains in that turn, before it is made."""
    dim = grad.shape[1]
    norm = along = 0.0
    for i in range(dim):
        norm += grad[c, i] * grad[c, i]
        along -= grad[c, i] * u[c, i]
    norm = sqrt(norm)
    if norm == 0:
        return 0.0
    along /= norm
    delta = time * norm / (dim - 1)
    twice = exp(-2 * delta)
    inner = (1 + twice) / 2 + along * (1 - twice) / 2
    # Rounding can leave less than the least, e^{−2δ}, of a direction straight uphill.
    return (dim - 1) * (delta + log(inner)) if inner > twice else -(dim - 1) * delta


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    step_size, length_scale, adapting = params[0], params[1], int(params[2])
    theta, grad = state.position, info.gradient
    n_chains, dim = theta.shape
    # Behind the direction is the gradient of the last half turn, which the next one takes again.
    u, last, memory = state.momentum[:, :dim], state.momentum[:, dim : 2 * dim], state.momentum[:, 2 * dim :]
    noise_scale, each = sqrt(source.variance), np.empty((source.batch_size, dim))
    spread = _spread(step_size, length_scale, dim)
    kept = n_chains if adapting > 0 else 0
    before, change, energy, proposed = np.empty((kept, 3 * dim)), np.empty(kept), np.empty(kept), np.empty(kept)
    learns = adapting > 0 and memory[0, MADE] < adapting
    if learns:
        model.potential(theta, energy, model.params)
    for t in range(n):
        learns = adapting > 0 and memory[0, MADE] < adapting
        for c in range(n_chains):
            eps = step_size if adapting == 0 else begin_step(memory[c], step_size, length_scale)
            if learns:
                for i in range(dim):
                    before[c, i], before[c, dim + i], before[c, 2 * dim + i] = theta[c, i], u[c, i], last[c, i]
                change[c] = _gained(u, last, c, eps / 2) - energy[c]
            _turn(u, last, c, eps / 2)
            for i in range(dim):
                theta[c, i] += eps * u[c, i]
        if source.batch_size == 0:
            model.gradient(theta, grad, model.params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        else:
            batch_gradients(rng, state, model, source, each, grad)
        if learns:
            model.potential(theta, proposed, model.params)
        for c in range(n_chains):
            for i in range(dim):
                last[c, i] = grad[c, i]
            eps = step_size
            if adapting > 0:
                eps = begin_step(memory[c], step_size, length_scale)
                spread = _spread(eps, memory[c, LENGTH], dim)
            if learns:
                change[c] += _gained(u, grad, c, eps / 2) + proposed[c]
            _turn(u, grad, c, eps / 2)
            if learns:
                if is_sound(change[c]):
                    energy[c] = proposed[c]
                else:
                    for i in range(dim):
                        theta[c, i], u[c, i], last[c, i] = before[c, i], before[c, dim + i], before[c, 2 * dim + i]
                        grad[c, i] = last[c, i]
                learn(memory[c], theta[c], change[c], adapting)
            length = 0.0
            for i in range(dim):
                u[c, i] += spread * rng.standard_normal()
                length += u[c, i] * u[c, i]
            for i in range(dim):
                u[c, i] /= sqrt(length)
                out[t, c, i] = theta[c, i]


@jit.start
def start(rng, position, auxiliary, model, params):
    """A uniform direction u, and the whole gradient at the start."""
    n_chains, dim = position.shape
    grad = np.empty((n_chains, dim))
    model.gradient(position, grad, model.params)
    for c in range(n_chains):
        length = 0.0
        for i in range(dim):
            auxiliary[c, i], auxiliary[c, dim + i] = rng.standard_normal(), grad[c, i]
            length += auxiliary[c, i] * auxiliary[c, i]
        for i in range(dim):
            auxiliary[c, i] /= sqrt(length)


class MCLMC(Sampler):
    """Microcanonical Langevin Monte Carlo (Robnik, De Luca, Silverstein & Seljak 2023), without an accept step.

    SDE: dθ = u dt, du = P(u)(−∇U dt/(d − 1) + η dW), ‖u‖ = 1, P(u) = I − uuᵀ: the speed is constant, and the direction
    turns towards lower energies. It is no instance of the recipe in θ and a momentum of ℝᵈ: u is on a sphere.
    u turns for ε/2 by the exact flow at fixed ∇U, θ ← θ + εu, u turns for ε/2 with the gradient at the new θ, which
    the next step takes again; then u ← (u + νz)/‖u + νz‖, z ~ N(0, I), ν² = (e^{2ε/L} − 1)/d.
    Invariant distribution: e^{−U} for θ and the uniform one for u as ε → 0, for every L; the bias is O(ε²). It needs
    d ≥ 2, for in one dimension u cannot turn. Noise of the gradient heats the chain, and nothing subtracts it.
    In the first ``adapt_steps`` steps ε and L adapt, as in ``samplers/kernels/energy_adaptation.py``; each of these
    takes the energy of all data besides.
    Shapes: θ (chains, d), momentum (chains, 2d) with the last gradient behind u, and then the numbers that adapt.
    """

    key = "mclmc"
    title = "MCLMC"
    update = (
        r"\begin{aligned}u &\leftarrow \text{turned towards } -\nabla\tilde U(\theta) \text{ for } \tfrac{\epsilon}{2},\quad \theta \leftarrow \theta + \epsilon\, u\\"
        r"u &\leftarrow \text{turned towards } -\nabla\tilde U(\theta) \text{ for } \tfrac{\epsilon}{2}\\"
        r"u &\leftarrow (u + \nu z)/\lVert u + \nu z\rVert,\quad z \sim \mathcal N(0, I),\ \nu^2 = (e^{2\epsilon/L} - 1)/d"
        + ADAPT
        + r"\end{aligned}"
    )
    optional = {"adapt_steps": (ADAPT,)}
    diffusion = r"\text{of the direction alone}"
    curl = r"\text{none}"
    integrator = "Splitting: turn, move, turn, with a new direction in part"
    source = "Robnik et al. 2023, sections 3 and 4"
    accepts = frozenset({FULL, NOISE, BATCH, MODE, MEMORY})
    gradient_age = 0
    least_coordinates = 2
    moving = True
    momentum = KEPT
    advance, start = advance, start

    step_size = Real(
        0.2,
        bounds=(1e-5, 10.0),
        log=True,
        tex=r"\epsilon",
        label="Step size ε",
        doc="The distance of one step, for the speed is 1. The bias falls with its square.",
    )
    length = Real(
        3.0,
        bounds=(0.01, 1000.0),
        log=True,
        tex="L",
        label="Decoherence length L",
        doc="The distance over which the direction decorrelates. A good value is about √d times the target's width; the invariant distribution does not depend on L.",
    )
    adapt_steps = adapt_steps()
    adaptation = Tuning("energy error²/d", WANTED["mclmc"], goes_on=False, vectors=2, length=("L", LENGTH))

    @classmethod
    def first_values(cls, first: FirstSteps | None, gradient: str) -> dict[str, float]:
        """L falls with ε on a steep target: ten steps at least."""
        out = super().first_values(first, gradient)
        return {**out, "length": max(10 * out["step_size"], cls.param.length.bounds[0])} if out else out

    def auxiliary(self, target: Target) -> np.ndarray:
        return auxiliary(target, self.adapt_steps)

    @property
    def time_per_step(self) -> float:
        return 0.0

    bias_order = 2
    steps_to_test = 500

    parts = {
        "gradient": r"\text{turned towards } -\nabla\tilde U(\theta) \text{ for } \tfrac{\epsilon}{2}",
        "gradient noise": r"\text{turned towards } -\nabla\tilde U(\theta) \text{ for } \tfrac{\epsilon}{2}",
        "move": r"\theta + \epsilon\, u",
        "new gradient": r"\nabla\tilde U(\theta)",
        "new direction": r"(u + \nu z)/\lVert u + \nu z\rVert",
        "adaptation": ADAPTED,
    }

    def textbook_step(self, rng, run, theta, r, data):
        d = theta.shape[1]
        known = r[:, 2 * d :]
        eps, lengths = textbook.energy_adapted(run, known, self.step_size, self.length, self.adapt_steps)
        learns = bool(self.adapt_steps) and known[0, 0] < self.adapt_steps
        before, first, error = theta.copy(), r[:, : 2 * d].copy(), np.zeros(len(theta))

        def turn(c):
            u = r[c, :d].copy()
            for name, g in textbook.of_gradient(run, c, theta[c], r[c, d : 2 * d]):
                norm = np.linalg.norm(g)
                with run.part(name, c, gradient=g):
                    if norm > 0:
                        delta, e = eps[c] / 2 * norm / (d - 1), -g / norm
                        # Both are divided by cosh δ, for large δ.
                        turned = (
                            u / np.cosh(min(delta, 700.0))
                            + (np.tanh(delta) + e @ u * (1 - 1 / np.cosh(min(delta, 700.0)))) * e
                        )
                        r[c, :d] = turned / np.linalg.norm(turned)
            norm = np.linalg.norm(r[c, d : 2 * d])
            if learns and norm > 0:
                delta, along = eps[c] / 2 * norm / (d - 1), -u @ r[c, d : 2 * d] / norm
                error[c] += (d - 1) * np.logaddexp(delta + np.log1p(along), -delta + np.log1p(-along))
                error[c] -= (d - 1) * np.log(2)

        for c in range(len(theta)):
            turn(c)
            with run.part("move", c):
                theta[c] += eps[c] * r[c, :d]
        with run.part("new gradient"):
            r[:, d : 2 * d] = textbook.gradients(rng, run, theta, data)
        if learns:
            error += run.target.log_density(before) - run.target.log_density(theta)
        for c in range(len(theta)):
            turn(c)
            z = np.array([rng.standard_normal() for _ in range(d)])
            if learns:
                with run.part("adaptation", c):
                    if not abs(error[c]) < 1e50:
                        theta[c], r[c, : 2 * d] = before[c], first[c]
                    textbook.adapt_to_energy(known[c], theta[c], error[c], self.adapt_steps)
            turned = r[c, :d] + np.sqrt(np.expm1(np.minimum(2 * eps[c] / lengths[c], 700)) / d) * z
            with run.part("new direction", c, z=z):
                r[c, :d] = turned / np.linalg.norm(turned)
