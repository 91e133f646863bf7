"""The speed of every sampler, beside the cost of its random numbers alone and beside other programs."""

import importlib.util
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import types
from numpy.random import SFC64, Generator

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import Array
from tests.benchmarks.timing import CHAINS, UNCOUNTED, Effort, Requirement, Work, in_turns, ratio_of

TABLE = 1024
"""Steps of a stationary chain from which the Poisson rates and gamma shapes are taken."""


@dataclass(frozen=True)
class SamplerRate:
    """One sampler on its default target."""

    sampler: str
    target: str
    gradient: str
    dim: int
    n_chains: int
    kernel: float
    """Draws only."""
    counted: float
    """With all running statistics, as the app runs it."""
    random_numbers: float | None
    """Only the normals, Poissons and gammas of the kernel; None where they are not described in RANDOM."""


@dataclass(frozen=True)
class PeerRate:
    """The same method by another program, on the same target and at the same step size."""

    method: str
    program: str
    n_chains: int
    rate: float | None
    note: str


PREFERRED = ("circle_mixture", "quartic", "sparse_dirichlet")
"""The targets of the benchmark; a sampler that fits none has the first one that it fits, exact draws the second."""


def default_spec(sampler: str, n_chains: int) -> RunSpec | None:
    """The sampler on its default target, with a minibatch where there can be one; None where no target fits."""
    cls = SAMPLERS[sampler]
    fitting = [key for key, target in TARGETS.items() if cls.fits(target)]
    if not fitting:
        return None
    key = next((key for key in PREFERRED[sampler == "exact" :] if key in fitting), fitting[0])
    gradient = "minibatch" if "minibatch" in cls.gradients_for(TARGETS[key]) else ""
    return RunSpec.of(key, sampler, gradient, n_chains=n_chains)


def sampler_rate(spec: RunSpec, effort: Effort) -> SamplerRate:
    """The rates of one sampler."""
    kernel = Run(replace(spec, burn_in=UNCOUNTED))
    counted = Run(spec)
    works: dict[str, tuple[Work, int]] = {
        "kernel": (kernel.advance, spec.n_chains),
        "counted": (counted.advance, spec.n_chains),
    }
    alone = random_numbers_alone(spec)
    if alone is not None:
        works["random"] = (alone, 1)
    rates = in_turns(works, effort)
    for run in (kernel, counted):
        if run.divergence is not None:
            raise RuntimeError(run.divergence.message)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return SamplerRate(
        spec.sampler.key,
        spec.target.key,
        spec.gradient.key,
        kernel.target.dim,
        spec.n_chains,
        medians["kernel"],
        medians["counted"],
        medians.get("random"),
    )


# --- random numbers alone ------------------------------------------------------------------------------------------


@jit.loop(types.float64(jit.rng_type, types.int64, types.int64, jit.matrix, jit.matrix))
def _draw_alone(rng, n, normals, rates, shapes):
    """``n`` times: so many normals, and Gamma(shape + Poisson(rate)) of the next row of ``rates`` and ``shapes``."""
    total = 0.0
    row = 0
    for _ in range(n):
        for _ in range(normals):
            total += rng.standard_normal()
        for j in range(rates.shape[1]):
            total += rng.standard_gamma(shapes[row, j] + rng.poisson(rates[row, j]))
        row += 1
        if row == rates.shape[0]:
            row = 0
    return total


def random_numbers_alone(spec: RunSpec) -> Work | None:
    """A loop that draws what one chain of the kernel draws, and nothing else; None where it is not described.

    The uniforms that pick a minibatch or accept a proposal are left out: the loop has only normals, Poissons and
    gammas.
    """
    describe = RANDOM.get(spec.sampler.key)
    if describe is None:
        return None
    normals, rates, shapes = describe(spec)
    jit.prepare([_draw_alone])
    rng = Generator(SFC64(spec.seed))

    def work(n: int) -> None:
        _draw_alone(rng, n, normals, rates, shapes)

    return work


Description = tuple[int, Array, Array]
"""Normals of a chain-step, and rows of Poisson rates and of shapes before the Poisson is added."""


def _normals(spec: RunSpec) -> Description:
    return spec.make_target().dim, np.empty((1, 0)), np.empty((1, 0))


def _poissons_and_gammas(spec: RunSpec) -> Description:
    """Rates θ_t e^{−h}/(1 − e^{−h}) and shapes â_t along a stationary stretch of the sampler itself."""
    target, h = spec.make_target(), spec.make_sampler().time_per_step
    every = max(1, round(0.5 / h))
    run = Run(replace(spec, n_chains=1, burn_in=20 * every, n_steps=TABLE * every, thin=every), keep_draws=True)
    run.advance(run.spec.burn_in + run.spec.n_steps)
    rates = run.kept[0] / np.expm1(h)
    rng = np.random.default_rng(spec.seed)
    prior, counts = np.split(target.packed(), 2)
    gradient = spec.gradient.values()
    if "batch_size" in gradient:
        size = int(gradient["batch_size"])  # type: ignore[arg-type]
        counts = rng.multinomial(size, counts / counts.sum(), size=TABLE) * counts.sum() / size
    return 0, np.ascontiguousarray(rates), np.broadcast_to(prior + counts, rates.shape).copy()


RANDOM: dict[str, Callable[[RunSpec], Description]] = {
    "sgld": _normals,
    "sghmc": _normals,
    "hmc": _normals,
    "sgrld": _normals,
    "root_sgld": _normals,
    "rmhmc": _normals,
    "geometric_ou": _normals,
    "sggmc": _normals,
    "gsgnht": _normals,
    "sggmc_euler": _normals,
    "gsgnht_euler": _normals,
    "geodesic_sgld": _normals,
    "normalised_sgld": _normals,
    "cir": _poissons_and_gammas,
    "scir": _poissons_and_gammas,
}
"""The random numbers of a step of each sampler with the gradient of :func:`default_spec`."""


# --- other programs ------------------------------------------------------------------------------------------------


def peer_rates(effort: Effort) -> tuple[list[PeerRate], dict[tuple[str, int], float]]:
    """SGLD on the quartic and SGGMC on the circle by other programs, and how many times as fast the engine is.

    They are measured in turns with the engine.
    """
    works: dict[str, tuple[Work, int]] = {}
    peers: list[tuple[str, int, str]] = []
    for n_chains in CHAINS:
        spec = RunSpec.of("quartic", "sgld", n_chains=n_chains)
        step_size = float(spec.sampler.values()["step_size"])  # type: ignore[arg-type]
        works[f"engine {n_chains}"] = Run(replace(spec, burn_in=UNCOUNTED)).advance, n_chains
        works[f"NumPy {n_chains}"] = _numpy_sgld(n_chains, step_size), n_chains
        peers.append(("NumPy", n_chains, "a Python loop over vectorised steps, float64"))
        if importlib.util.find_spec("blackjax"):
            works[f"blackjax {n_chains}"] = _blackjax_sgld(n_chains, step_size), n_chains
            peers.append(("blackjax", n_chains, f"jit of lax.scan{' of vmap' if n_chains > 1 else ''}, float32"))
        else:
            peers.append(("blackjax", n_chains, "not installed: pip install blackjax jax"))
    rates = in_turns(works, effort)
    out, ratios = [], {}
    for program, n_chains, note in peers:
        name = f"{program} {n_chains}"
        rate = statistics.median(rates[name]) if name in rates else None
        out.append(PeerRate("SGLD on the quartic", program, n_chains, rate, note))
        if name in rates:
            ratios[program, n_chains] = ratio_of(rates, f"engine {n_chains}", name)
    out.append(_mici_rate(effort))
    return out, ratios


def _mici_rate(effort: Effort) -> PeerRate:
    method = "SGGMC on the circle"
    if not importlib.util.find_spec("mici"):
        return PeerRate(method, "mici", 1, None, "not installed: pip install mici")
    spec = RunSpec.of("circle_mixture", "sggmc", n_chains=1)
    works: dict[str, tuple[Work, int]] = {
        "engine": (Run(replace(spec, burn_in=UNCOUNTED)).advance, 1),
        "mici": (_mici_sggmc(spec), 1),
    }
    rates = in_turns(works, effort)
    note = f"Newton's projection for the geodesic, in Python; the engine is {ratio_of(rates, 'engine', 'mici'):,.0f} times as fast"
    return PeerRate(method, "mici", 1, statistics.median(rates["mici"]), note)


def _mici_sggmc(spec: RunSpec) -> Work:
    """A step of mici's constrained leapfrog integrator, and a velocity partly drawn afresh: the same dynamics."""
    from mici.integrators import ConstrainedLeapfrogIntegrator
    from mici.states import ChainState
    from mici.systems import DenseConstrainedEuclideanMetricSystem
    from mici.transitions import CorrelatedMomentumTransition

    target, values = spec.make_target(), spec.sampler.values()
    step_size, friction = float(values["step_size"]), float(values["friction"])  # type: ignore[arg-type]
    centres, concentrations = target.centres, target.concentrations
    heights = target.packed()[2::5]

    def shares(x: Array) -> tuple[Array, float]:
        exponents = heights + concentrations * (centres @ x)
        largest = exponents.max()
        parts = np.exp(exponents - largest)
        return parts / parts.sum(), float(largest + np.log(parts.sum()))

    system = DenseConstrainedEuclideanMetricSystem(
        neg_log_dens=lambda x: -shares(x)[1],
        grad_neg_log_dens=lambda x: -(shares(x)[0] * concentrations) @ centres,
        constr=lambda x: np.array([x @ x - 1]),
        jacob_constr=lambda x: 2 * x[None],
    )
    integrator = ConstrainedLeapfrogIntegrator(system, step_size)
    refresh = CorrelatedMomentumTransition(
        system, mom_resample_coeff=float(np.sqrt(-np.expm1(-2 * friction * step_size)))
    )
    rng = np.random.default_rng(spec.seed)
    state = ChainState(pos=np.array(target.start()), mom=None, dir=1)
    state.mom = system.sample_momentum(state, rng)
    current = [state]

    def work(n: int) -> None:
        state = current[0]
        draws = np.empty((n, 2))
        for t in range(n):
            state, _ = refresh.sample(integrator.step(state), rng)
            draws[t] = state.pos
        current[0] = state

    return work


def _numpy_sgld(n_chains: int, step_size: float) -> Work:
    rng = np.random.default_rng(1)
    theta = np.tile([0.0, -1.2], (n_chains, 1))
    scale = np.sqrt(2 * step_size)

    def work(n: int) -> None:
        draws = np.empty((n, n_chains, 2))
        grad = np.empty_like(theta)
        for t in range(n):
            x, y = theta[:, 0], theta[:, 1]
            a = 4 * (y + 1.2) - x * x
            grad[:, 0] = 0.4 * x**3 - 2 * x * a
            grad[:, 1] = 4 * a
            theta[:] += -step_size * grad + scale * rng.standard_normal(theta.shape)
            draws[t] = theta

    return work


def _blackjax_sgld(n_chains: int, step_size: float) -> Work:
    import blackjax
    import jax
    import jax.numpy as jnp

    def log_density(theta: Any) -> Any:
        x, y = theta
        return -(x**4) / 10 - (4 * (y + 1.2) - x**2) ** 2 / 2

    gradient = jax.grad(log_density)
    sampler = blackjax.sgld(lambda position, minibatch: gradient(position))

    def one(key: Any, position: Any) -> Any:
        return sampler.step(key, position, 0.0, step_size)

    def split(key: Any) -> Any:
        return jax.random.split(key, n_chains) if n_chains > 1 else key

    step = jax.vmap(one) if n_chains > 1 else one
    start_at = jnp.array([0.0, -1.2])
    positions = jnp.tile(start_at, (n_chains, 1)) if n_chains > 1 else start_at

    def many(key: Any, position: Any, n: int) -> Any:
        def body(position: Any, key: Any) -> Any:
            position = step(split(key), position)
            return position, position

        return jax.lax.scan(body, position, jax.random.split(key, n))

    compiled = jax.jit(many, static_argnums=2)
    state = [jax.random.PRNGKey(1), positions]

    def work(n: int) -> None:
        state[0], key = jax.random.split(state[0])
        state[1], draws = compiled(key, state[1], n)
        draws.block_until_ready()

    return work


def requirements(rates: list[SamplerRate], ratios: dict[tuple[str, int], float]) -> list[Requirement]:
    """The speeds that the engine promises, for the kernels alone."""

    def share(sampler: str, n_chains: int) -> float | None:
        for rate in rates:
            if (rate.sampler, rate.n_chains) == (sampler, n_chains) and rate.random_numbers:
                return rate.kernel / rate.random_numbers
        return None

    out = []
    for n in CHAINS:
        chains = f"{n} chain{'s' if n > 1 else ''}"
        out += [
            Requirement(f"SGLD on the quartic over blackjax's jitted SGLD, {chains}", ratios.get(("blackjax", n)), 8.0),
            Requirement(f"SGLD on the quartic over its normals alone, {chains}", share("sgld", n), 0.5),
            Requirement(f"SCIR at d = 10 over its gammas and Poissons alone, {chains}", share("scir", n), 0.8),
        ]
    return out
