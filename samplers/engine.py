"""The engine: ``Run(spec)`` and its ``advance`` for live chunks, ``run(spec)`` for a whole run.

The same spec gives the same draws, in one piece or in chunks of any size, bit for bit: all randomness
comes from one seeded generator, and the kernels consume it in the order of the steps.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import NDArray

from sgmcmc_lab.samplers.choices import Choice, make_gradient, make_sampler, make_target
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.expressions.compiler import Formulas, Tier
from sgmcmc_lab.samplers.gradients import Estimator
from sgmcmc_lab.samplers.kernels.base import KEPT, Sampler
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.running_statistics import BLOCK, CHAINS, N_LAGS, Statistics, accumulate, sums_type
from sgmcmc_lab.samplers.schedules import share_of_step
from sgmcmc_lab.samplers.targets.base import MANIFOLD, SIMPLEX, Array, Target
from sgmcmc_lab.samplers.trace import Divergence, Trace

# A chain this many standard deviations from the target's mean has left it for good: an Euler step that
# overshoots grows from here at every step, and a double overflows soon after.
ESCAPE = 1e8

_LOOP = types.int64(
    jit.rng_type, jit.matrix, jit.matrix, jit.integers, jit.matrix,
    types.FunctionType(jit.POTENTIAL), types.FunctionType(jit.GRADIENT), types.FunctionType(jit.BATCH), types.FunctionType(jit.DRAW), jit.vector,
    jit.vector, jit.matrix, types.FunctionType(jit.PROJECT), types.FunctionType(jit.FLOW), jit.integers,
    types.FunctionType(jit.OBSERVE), types.FunctionType(jit.KERNEL), jit.vector, jit.noise_type, types.FunctionType(jit.ESTIMATE), jit.vector, jit.vector,
    jit.matrix, jit.vector, sums_type, types.boolean, jit.cube, jit.integers, jit.vector, types.int64, types.int64,
)  # fmt: skip

_BEGIN = types.void(
    jit.rng_type,
    jit.matrix,
    jit.matrix,
    types.FunctionType(jit.START),
    jit.vector,
    types.FunctionType(jit.POTENTIAL),
    types.FunctionType(jit.GRADIENT),
    types.FunctionType(jit.BATCH),
    types.FunctionType(jit.DRAW),
    jit.vector,
    types.FunctionType(jit.PROJECT),
    types.FunctionType(jit.FLOW),
    jit.integers,
)


@jit.loop(_BEGIN)
def begin(
    rng,
    position,
    auxiliary,
    start,
    params,
    potential,
    gradient,
    batch,
    draw,
    target_params,
    project,
    flow,
    shape,
):
    """Make the chains' first state of what is the same for all of them."""
    start(
        rng,
        position,
        auxiliary,
        jit.CompiledTarget(potential, gradient, batch, draw, target_params, project, flow, shape),
        params,
    )


@jit.helper
def _any_outside(draws, n, limit):
    """Whether a coordinate of the first ``n`` steps is not within ±limit: a count without a branch, hence fast."""
    flat = draws[:n].reshape(-1)
    outside = 0
    for j in range(flat.size):
        outside += not abs(flat[j]) < limit
    return outside > 0


@jit.helper
def _restore(draws, n, centre, factor):
    """Make θ = centre + factor z of the first ``n`` draws z; the factor is lower triangular."""
    for t in range(n):
        for c in range(draws.shape[1]):
            # From the last coordinate on: those before it are still z.
            for i in range(draws.shape[2] - 1, -1, -1):
                moved = 0.0
                for j in range(i + 1):
                    moved += factor[i, j] * draws[t, c, j]
                draws[t, c, i] = centre[i] + moved


@jit.helper
def _place_marks(counts, seen, draws, first):
    """Give the divergent transitions marked since there were ``seen`` their draws, from that of step ``first`` on."""
    n_chains, dim = draws.shape[1], draws.shape[2]
    made = int(counts[jit.DIVERGED])
    for k in range(max(seen, made - jit.N_MARKS), made):
        slot = k % jit.N_MARKS
        place = int(counts[jit.N_COUNTS + slot])
        to = jit.N_COUNTS + jit.N_MARKS + slot * dim
        for i in range(dim):
            counts[to + i] = draws[place // n_chains - first, place % n_chains, i]


@jit.loop(_LOOP)
def advance_all(
    rng, position, momentum, data, memory, potential, gradient, batch, draw, target_params, centre, factor, project, flow, shape, observe, kernel, params,
    noise, estimate, estimate_params, limits, last_gradient, counts, sums, counting, kept, kept_clock, schedule, first, n,
):  # fmt: skip
    """Advance all chains by ``n`` steps and count them; return the steps made before a chain left its limits.

    The kernel moves z, and what is counted is θ = ``centre`` + ``factor`` z; without rows of ``factor`` it moves θ.
    ``kept`` (chains, draws, dim) takes every ``kept_clock[1]``-th draw from index ``kept_clock[0]`` on, and its weight
    behind it where draws have weights of their own: a kernel leaves that of a chain's last draw as the last of the
    chain's auxiliary variables.
    With a ``schedule`` or such weights each step has its own call of the kernel; the first step has the number
    ``first``.
    """
    n_chains, dim = position.shape
    state = jit.State(position, momentum, data, memory)
    model = jit.CompiledTarget(potential, gradient, batch, draw, target_params, project, flow, shape)
    source = jit.Source(
        noise.variance,
        noise.correction,
        noise.sample_size,
        noise.batch_size,
        noise.replacement,
        noise.estimated,
        estimate,
        estimate_params,
    )
    info = jit.Info(last_gradient, counts)
    block = min(max(BLOCK // n_chains, 1), n)
    draws = np.empty((block, n_chains, dim))
    values = np.empty((sums.bins.shape[0], n_chains, block))
    scratch = np.empty((2, block + N_LAGS))
    scheduled = schedule.shape[0] > 0
    weighing = sums.weights.shape[0] > CHAINS
    shares, now = np.empty(block if scheduled else 0), params.copy()
    own, last = np.empty((block if weighing else 0, n_chains)), momentum.shape[1] - 1
    lowest = np.inf
    for i in range(dim):
        lowest = min(lowest, limits[i])
    done = 0
    while done < n:
        m = min(block, n - done)
        diverged = int(counts[jit.DIVERGED])
        counts[jit.CLOCK] = first + done
        if scheduled or weighing:
            for t in range(m):
                counts[jit.CLOCK] = first + done + t
                if scheduled:
                    shares[t] = share_of_step(schedule, first + done + t)
                    # The step size is the first parameter of every kernel that has one.
                    now[0] = params[0] * shares[t]
                kernel(rng, state, model, source, now, draws[t : t + 1], 1, info)
                if weighing:
                    share = shares[t] if scheduled else 1.0
                    for c in range(n_chains):
                        own[t, c] = share * momentum[c, last]
        else:
            kernel(rng, state, model, source, params, draws, m, info)
        if factor.shape[0] > 0:
            _restore(draws, m, centre, factor)
        if counts.size > jit.N_COUNTS and counts[jit.DIVERGED] > diverged:
            _place_marks(counts, diverged, draws, first + done)
        # It is the kernel's alone: nothing that is counted depends on the chunks.
        counts[jit.CLOCK] = 0.0
        good = m
        if _any_outside(draws, m, lowest):
            for t in range(m):
                for c in range(n_chains):
                    for i in range(dim):
                        if not abs(draws[t, c, i]) < limits[i]:
                            good = min(good, t)
                if good < m:
                    break
        if counting and good > 0:
            observe(draws, good, values)
            accumulate(sums, draws, values, good, scratch, shares, own)
            for t in range(good):
                if kept_clock[2] % kept_clock[1] == 0 and kept_clock[0] < kept.shape[1]:
                    for c in range(n_chains):
                        for i in range(dim):
                            kept[c, kept_clock[0], i] = draws[t, c, i]
                        if weighing:
                            kept[c, kept_clock[0], dim] = own[t, c]
                    kept_clock[0] += 1
                kept_clock[2] += 1
        done += good
        if good < m:
            break
    return done


class Divergent(NamedTuple):
    """Divergent transitions: those of a trajectory with an energy error that is too large."""

    steps: NDArray[np.int64]
    """The number of the step, from 1."""
    chains: NDArray[np.int64]
    theta: Array
    """Where the transitions ended, (n, dim): with an accept step of HMC also where they began."""


@dataclass
class Run:
    """A run in progress; what it needs is compiled when it is made.

    With ``keep_draws`` the full trace is kept, up to ``n_steps`` after the burn-in.
    """

    spec: RunSpec
    keep_draws: bool = False
    steps: int = 0
    """Steps made so far by each chain, burn-in included."""
    seconds: float = 0.0
    """Time spent in the compiled loop."""
    counted_from: int = 0
    """The step from which the statistics count."""
    divergence: Divergence | None = None
    changes: list[Change] = field(default_factory=list)
    """The changes made so far; with the spec they reproduce the run."""
    early: InitVar[Target | None] = None
    """The target with rough answers, until :meth:`know` brings the exact ones."""

    def __post_init__(self, early: Target | None) -> None:
        spec = self.spec
        jit.prepare(functions(spec))
        self.sampler, self.schedule = spec.make_sampler(), spec.make_schedule()
        self._aim(spec.target, early)
        self._touched_before, self._gradients_before, self._counted = 0.0, 0.0, 0
        self._gradients_per_step, self._data_per_gradient, self._priced_from = 0.0, 0.0, 0
        self._counts_of_gradient = 1.0
        self._estimate_by(spec.make_gradient())
        n, dim = spec.n_chains, self.target.dim
        self.rng = Generator(SFC64(SeedSequence(spec.seed)))
        first, momentum = spec.first_positions(), np.array(spec.momentum)
        if self.whitening is not None:
            first, momentum = self.whitening.z(first), self.whitening.velocity(momentum) if spec.momentum else momentum
        self.sampler_params = self.sampler.packed(self.sampled)
        self.coordinates, self.momentum = first_state(self.sampler, self.sampled, np.resize(first, (n, dim)), self.rng)
        if spec.momentum and self.sampler.momentum == KEPT:
            self.momentum[:, :dim] = self.manifold.projected(self.coordinates, np.tile(momentum, (n, 1)))
        self.last_gradient = np.zeros((n, dim))
        self._take_formulas()
        self._counted_and_marked = np.zeros(jit.N_COUNTS + jit.N_MARKS * (1 + dim))
        n_kept = spec.n_steps // spec.thin if self.keep_draws else 0
        self.kept_rows = np.empty((n, n_kept, dim + self.sampler.weighs))
        """The draws of the full trace, each with its weight behind it where draws have weights of their own."""
        # [draws kept, thin, number of the next counted step]: kept are the steps thin, 2·thin, … after the burn-in.
        self.kept_clock = np.array([0, spec.thin, 1], dtype=np.int64)
        self._gaps: list[tuple[int, int]] = []
        """The places at which counting begins, and goes on after a gap: the number of the counted step, and how many
        steps before it are not counted."""
        self._pending = list(spec.changes)
        self._adapting_from = 0
        self._redrawn_at = -1
        self._refuse()
        self._look_at_start()

    def _aim(self, choice: Choice, early: Target | None = None) -> None:
        """Take this target, with statistics of its own."""
        self._aimed = choice
        self.target = early or make_target(choice, self.spec.temperature)
        self.sampled, self.whitening = self.target.sampled, self.target.whitening
        self.data = self.target.data()
        self.target_params = self.sampled.packed()
        self.manifold = self.target.manifold
        self.shape = self.manifold.shape()
        self.limits = limits(self.target)
        self.statistics = Statistics.empty(
            self.target.columns, self.spec.n_chains, self.target.dim, self.target.planar, self.sampler.weighs
        )

    def _estimate_by(self, gradient: Estimator) -> None:
        """Take gradients by this estimator, which knows nothing of the chains yet."""
        self.gradient = gradient
        self._price()
        self.gradient_params = gradient.packed(self.sampled)
        self.memory = np.tile(gradient.first_memory(self.sampled), (self.spec.n_chains, 1))

    def _take_formulas(self) -> None:
        """Compile typed formulas to native code once that pays off."""
        target, sampler = self.sampled, self.sampler
        parts: list[tuple[Array, Formulas]] = []
        if target.native is not None:
            parts.append((self.target_params, target.native))
        if sampler.native is not None:
            parts.append((self.sampler_params, partial(sampler.native, target, self.gradient.noise())))
        self._tier = Tier(parts)

    def _price(self) -> None:
        """From here on, count the gradients of each step, and the data points that they and the step use."""
        since = self._gradients_since
        self._touched_before += since * self._data_per_gradient
        self._gradients_before += since
        self._priced_from, self._counted = self.steps, 0
        per_gradient, n_data = self.gradient.data_per_gradient(self.target), max(len(self.data), 1)
        full = self.sampler.full_gradients_per_step * n_data / per_gradient
        self._gradients_per_step = self.sampler.gradients_per_step + full
        self._data_per_gradient = per_gradient + self.sampler.data_beside(self.target) / max(
            self._gradients_per_step, 1
        )
        self._counts_of_gradient = per_gradient if self.sampler.counts_data else 1

    @property
    def position(self) -> Array:
        """θ of every chain, (chains, dim); to move chains it is set as a whole."""
        if self.whitening is None:
            return self.coordinates
        theta = self.whitening.theta(self.coordinates)
        # It is made here: what is written to it would move no chain.
        theta.flags.writeable = False
        return theta

    @position.setter
    def position(self, theta: Array | float) -> None:
        found = np.broadcast_to(theta, self.coordinates.shape)
        self.coordinates[:] = found if self.whitening is None else self.whitening.z(found)

    @property
    def kept(self) -> Array:
        """The full trace, (chains, draws, dim), as far as ``kept_clock`` says."""
        return self.kept_rows[..., : self.target.dim]

    @property
    def burn_in(self) -> int:
        """The steps before the statistics begin: those of the spec, and those in which the sampler adapts."""
        adapting = self.sampler.steps_that_adapt
        return max(self.spec.burn_in, self._adapting_from + adapting if adapting else 0)

    @property
    def interacting(self) -> bool:
        """Whether the chains interact, so that a single chain has no stationary distribution."""
        return self.sampler.interacting

    @property
    def now(self) -> RunSpec:
        """The spec of a run from the start with the present target, sampler and gradient."""
        last = self.changes[-1] if self.changes else self.spec
        return replace(self.spec, target=self._aimed, sampler=last.sampler, gradient=last.gradient, changes=())

    @property
    def next_sampler(self) -> Sampler:
        """The sampler with the size of the next step, or the smallest that it may have."""
        if not self.schedule.falls:
            return self.sampler
        values = self.now.sampler.values()
        size = float(values["step_size"]) * float(self.schedule.shares(np.array([self.steps]))[0])  # type: ignore[arg-type]
        return type(self.sampler)(**{**values, "step_size": max(size, self.sampler.param.step_size.bounds[0])})

    def advance(self, n: int) -> None:
        """Make ``n`` more steps of every chain, or fewer where one diverges. Releases the interpreter's lock."""
        goal = self.steps + n
        self._tier.take(self.seconds)
        while self.steps < goal and self.divergence is None:
            while self._pending and self._pending[0].step <= self.steps:
                self._apply(self._pending.pop(0))
            stop = goal
            if self.steps < self.burn_in:
                stop = min(stop, self.burn_in)
            if self._pending:
                stop = min(stop, self._pending[0].step)
            self._advance(stop - self.steps)

    def change(self, change: Change) -> None:
        """Go on with other parameters from here; the statistics start again, for they are of another distribution.

        The last of several changes at one step counts, unless one of them gave the chains other variables.
        """
        change, last = change._replace(step=self.steps), self.changes[-1] if self.changes else None
        again = last is not None and last.step == self.steps != self._redrawn_at
        self._apply(change)
        if again and last is not None and self._redrawn_at != self.steps:
            self.changes[-2:] = [change._replace(target=change.target or last.target)]

    def _apply(self, change: Change) -> None:
        before = self.now
        if change.target is not None:
            theta = self.position.copy()
            self._aim(change.target)
            self.position = theta
        sampler = make_sampler(change.sampler)
        if sampler.weighs != self.sampler.weighs:
            allowed = "a run goes on with samplers that all weight their draws, or none; allowed is a run of its own"
            raise SpecError("sampler", sampler.key, allowed)
        self.sampler = sampler
        self.sampler_params = self.sampler.packed(self.sampled)
        width = len(self.sampler.auxiliary(self.sampled))
        if width != self.momentum.shape[1]:
            # A recipe with other variables: what both have goes on, the rest starts afresh.
            self._redrawn_at = self._adapting_from = self.steps
            old = self.momentum
            _, self.momentum = first_state(self.sampler, self.sampled, self.coordinates, self.rng)
            shared = min(old.shape[1], width)
            self.momentum[:, :shared] = old[:, :shared]
        if change.target is not None or change.gradient != before.gradient:
            self._estimate_by(make_gradient(change.gradient))
        else:
            self._price()
        self._tier.wanted = False
        self._take_formulas()
        self.changes.append(change)
        self.restart_statistics()
        if self.divergence is not None and self.divergence.refused:
            self.divergence = None
        self._refuse()

    def _refuse(self) -> None:
        reason = self.sampler.refusal(self.sampled)
        if reason and self.divergence is None:
            self.divergence = Divergence(self.steps, reason, refused=True)

    def _look_at_start(self) -> None:
        # From a place without a density an accept step leads nowhere, and a drift anywhere.
        (energy,) = self.target.energies_at(self.position[:1])
        if self.divergence is None and not np.isfinite(energy):
            shown = ", ".join(f"{x:g}" for x in self.position[0, :4]) + ", …" * (self.target.dim > 4)
            message = f"U is {energy} at the start ({shown}) of {self.target.title}, where it must be finite. Choose another start."
            self.divergence = Divergence(0, message)

    def know(self, target: Target) -> None:
        """Hold what was counted against the exact answers of this target, whose histograms have the same bins."""
        self.target = target
        self.statistics.columns = target.columns

    def restart_statistics(self) -> None:
        """Forget the statistics, not the chain: what came before was burn-in."""
        self.statistics.restart()
        self.counts[:] = 0
        self.counted_from = self.steps

    def _advance(self, n: int) -> None:
        began = time.perf_counter()
        dim = self.target.dim
        number, counting = int(self.kept_clock[2]), self.steps >= self.burn_in
        if counting and (not self._gaps or self._gaps[-1][1] != self.steps + 1 - number):
            self._gaps.append((number, self.steps + 1 - number))
        done = advance_all(
            self.rng, self.coordinates, self.momentum, self.data, self.memory,
            self.target.potential, self.target.gradient, self.target.batch, self.sampled.draw, self.target_params,
            *(self.whitening or (np.zeros(dim), np.zeros((0, dim)))), self.manifold.project, self.manifold.flow, self.shape,
            self.target.observe, self.sampler.advance, self.sampler_params, self.gradient.noise(),
            self.gradient.estimate, self.gradient_params, self.limits, self.last_gradient, self._counted_and_marked, self.statistics.sums, counting,
            self.kept_rows, self.kept_clock, self.schedule.packed(), self.steps, n,
        )  # fmt: skip
        self.seconds += time.perf_counter() - began
        self.steps += done
        self._counted += int(self.counts[jit.GRADIENTS])
        self.counts[jit.GRADIENTS] = 0
        above = self.counts[jit.ABOVE] > 0
        if self.steps <= self.burn_in:
            self.counted_from = self.steps
            self.counts[:] = 0
        if done < n:
            self.divergence = Divergence.of(self.sampler, self.target, self.steps, above)
        elif self.target.watched:
            energies = self.target.energies_at(self.position)
            if np.isneginf(energies).any():
                # No accept step leaves such a place.
                self.divergence = Divergence(
                    self.steps, f"{self.target.title}: {self.target.unbounded_at(self.position[np.argmin(energies)])}."
                )

    @property
    def gradients(self) -> int:
        """Gradient evaluations so far, of all chains."""
        return round(self._gradients_before + self._gradients_since)

    @property
    def _gradients_since(self) -> float:
        """The evaluations since their cost last changed; from the total of steps, so that chunks do not round."""
        made = (self.steps - self._priced_from) * self.spec.n_chains
        return made * self._gradients_per_step + self._counted / self._counts_of_gradient

    @property
    def data_seen(self) -> int:
        """Data touched by gradients so far, of all chains."""
        return round(self._touched_before + self._gradients_since * self._data_per_gradient)

    @property
    def counted(self) -> int:
        """The steps that the statistics are of."""
        return max(self.steps - self.counted_from, 0)

    def share(self, index: int) -> float:
        """How often something was counted, by its index in the counts, in relation to the draws."""
        return float(self.counts[index]) / max(self.statistics.n_draws, 1)

    @property
    def counts(self) -> Array:
        """The running sums of :class:`~samplers.compile.jit.Info`, of the counted steps."""
        return self._counted_and_marked[: jit.N_COUNTS]

    @property
    def divergent(self) -> "Divergent":
        """The last divergent transitions of the counted steps, at most ``jit.N_MARKS``, oldest first."""
        made, dim = int(self.counts[jit.DIVERGED]), self.target.dim
        places, theta = np.split(self._counted_and_marked[jit.N_COUNTS :], [jit.N_MARKS])
        slots = np.arange(max(0, made - jit.N_MARKS), made) % jit.N_MARKS
        steps, chains = np.divmod(places[slots].astype(np.int64), self.spec.n_chains)
        # A chunk that ended early did not make all of its steps.
        good = steps < self.steps
        return Divergent(steps[good] + 1, chains[good], theta.reshape(-1, dim)[slots[good]])

    @property
    def temperature(self) -> float | None:
        """The mean of ‖v‖²/m over all chains and counted steps, m the manifold's dimension; None without a velocity."""
        made = (self.steps - self.counted_from) * self.spec.n_chains
        return (
            float(self.counts[jit.SQUARE]) / made / self.manifold.dim if made and self.counts[jit.SQUARE] > 0 else None
        )

    @property
    def thermostat(self) -> float | None:
        """The mean of ξ over all chains and counted steps; None for samplers without it."""
        made = (self.steps - self.counted_from) * self.spec.n_chains
        return (
            float(self.counts[jit.THERMOSTAT]) / made
            if made and getattr(self.sampler, "thermostat", False) is True
            else None
        )

    def standing(self) -> "Run":
        """A copy of the run as it is now, which later steps do not change."""
        other = copy.copy(self)
        other.statistics, other._counted_and_marked = self.statistics.copy(), self._counted_and_marked.copy()
        return other

    def _diverging(self) -> tuple[NDArray[np.bool_] | None, str]:
        """Whether the transition to each kept draw diverged, (chains, draws); None where that is not known, and why."""
        if not self.keep_draws or not self.sampler.diverges:
            return None, ""
        # Counted from the first kept step on.
        if self.kept_clock[2] - 1 != self.counted:
            return (
                None,
                f"left out: the run changed at step {self.counted_from:,}, and divergent transitions before it are not known",
            )
        made = int(self.counts[jit.DIVERGED])
        if made > jit.N_MARKS:
            return None, f"left out: of {made:,} divergent transitions only the last {jit.N_MARKS} are known"
        found, kept = self.divergent, int(self.kept_clock[0])
        draws, rest = np.divmod(found.steps - self.counted_from, self.spec.thin)
        good = (rest == 0) & (draws <= kept)
        out = np.zeros((self.spec.n_chains, kept), dtype=bool)
        out[found.chains[good], draws[good] - 1] = True
        return out, ""

    def _kept_at(self) -> NDArray[np.int64]:
        """The steps of the kept draws, from 1."""
        counted = self.spec.thin * np.arange(1, int(self.kept_clock[0]) + 1)
        firsts, before = np.array([(1, 0), *self._gaps]).T
        return np.asarray(counted + before[np.searchsorted(firsts, counted, side="right") - 1])

    def trace(self) -> Trace:
        """The trace so far. The statistics go on changing with the run; the draws are a copy."""
        made = self.kept_clock[0]
        diverging, unknown = self._diverging()
        return Trace(
            spec=self.spec,
            target=self.target,
            statistics=self.statistics,
            draws=self.kept[:, :made].copy() if self.keep_draws else None,
            drawn_at=self._kept_at() if self.keep_draws else None,
            steps=self.steps,
            counted_from=self.counted_from,
            gradients=self.gradients,
            data_seen=self.data_seen,
            seconds=self.seconds,
            accepted=int(self.counts[jit.ACCEPTED]),
            clipped=int(self.counts[jit.CLIPPED]),
            turned=int(self.counts[jit.TURNED]),
            divergence=self.divergence,
            divergent=int(self.counts[jit.DIVERGED]),
            diverging=diverging,
            diverging_unknown=unknown,
            own_weights=self.kept_rows[:, :made, self.target.dim].copy()
            if self.keep_draws and self.sampler.weighs
            else None,
        )


def functions(spec: RunSpec) -> list[object]:
    """The compiled functions that a run of ``spec`` needs."""
    sampler = spec.make_sampler()
    return [
        *spec.make_target().functions(),
        sampler.start,
        sampler.advance,
        spec.make_gradient().estimate,
        begin,
        advance_all,
    ]


def limits(target: Target) -> Array:
    """How far from 0 each coordinate of θ is where a chain has left the target for good, (dim,)."""
    if target.support == MANIFOLD or not (target.of_coordinates or target.support == SIMPLEX):
        # Only what is no number leaves a manifold. Where columns say nothing of coordinates, those are of scale 1.
        return np.full(target.dim, ESCAPE)
    if target.support == SIMPLEX:
        return np.full(target.dim, ESCAPE * max(1.0, float(target.packed().sum())))
    return np.array([abs(c.mean) + ESCAPE * np.sqrt(c.variance) for c in target.columns[: target.dim]])


def first_state(sampler: Sampler, target: Target, position: Array, rng: Generator) -> tuple[Array, Array]:
    """The chains' first θ (chains, dim) and auxiliary variables (chains, …) where they start at ``position``."""
    jit.prepare([*target.functions(), sampler.start, begin])
    theta = np.array(position, dtype=float)
    auxiliary = np.tile(sampler.auxiliary(target), (len(theta), 1))
    begin(
        rng,
        theta,
        auxiliary,
        sampler.start,
        sampler.packed(target),
        target.potential,
        target.gradient,
        target.batch,
        target.draw,
        target.packed(),
        target.manifold.project,
        target.manifold.flow,
        target.manifold.shape(),
    )
    return theta, auxiliary


def check_length(spec: RunSpec) -> None:
    """Raise :class:`~samplers.parameters.SpecError` where a whole run would keep no draw, for it adapts too long."""
    total, adapting = spec.burn_in + spec.n_steps, spec.make_sampler().steps_that_adapt
    most = total - spec.thin
    if adapting > most:
        allowed = f"a run of {total:,} steps would keep no draw after them; allowed are at most {most:,}"
        raise SpecError("sampler.adapt_steps", adapting, allowed)


def run(
    spec: RunSpec,
    *,
    keep_draws: bool = True,
    progress: Callable[[int, int], None] | None = None,
    chunk_seconds: float = 0.2,
) -> Trace:
    """The whole run of ``spec``: burn-in, then ``n_steps``.

    ``progress(steps made, steps in all)`` is called about every ``chunk_seconds``. A KeyboardInterrupt
    between two chunks ends the run there, and the trace holds what was drawn.

    Raises :class:`~samplers.parameters.SpecError`: see :func:`check_length`.
    """
    check_length(spec)
    state = Run(spec, keep_draws)
    total = spec.burn_in + spec.n_steps
    chunk = max(1, 10_000 // spec.n_chains)
    try:
        while state.steps < total and state.divergence is None:
            began = time.perf_counter()
            state.advance(min(chunk, total - state.steps))
            took = time.perf_counter() - began
            chunk = max(1, min(total, int(chunk * min(4.0, chunk_seconds / max(took, 1e-9)))))
            if progress is not None:
                progress(state.steps, total)
    except KeyboardInterrupt:
        pass
    return state.trace()
