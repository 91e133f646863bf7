"""The recipe itself: any D(z) and Q(z) that a person types."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from math import exp, sqrt
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sgmcmc_lab.samplers import textbook
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import borrowed, keep_alive
from sgmcmc_lab.samplers.expressions import ZERO, Expression, name
from sgmcmc_lab.samplers.expressions.machine import LANES, execute, program, workspace
from sgmcmc_lab.samplers.expressions.native import Loop, call
from sgmcmc_lab.samplers.expressions.program import Op
from sgmcmc_lab.samplers.gradients import Estimator
from sgmcmc_lab.samplers.kernels.base import KEPT, NO_MOMENTUM, Sampler
from sgmcmc_lab.samplers.kernels.noisy_gradient import add_noise, shorten
from sgmcmc_lab.samplers.parameters import Flag, Formulas, Option, Real, SpecError, Value
from sgmcmc_lab.samplers.recipe.flow import shown, values_at
from sgmcmc_lab.samplers.recipe.recipe import ENERGY, KINDS, MAX_DIM, MAX_REFRESH, THETA, Layout, Recipe
from sgmcmc_lab.samplers.requirements import REDRAWN, STOCHASTIC
from sgmcmc_lab.samplers.targets.base import LINE, POSITIVE, Array, ByTarget, Target


class Header(NamedTuple):
    """The first of the packed parameters, a slot of 64 bits each, in this order.

    Slots of floats come first. The others are integers: counts, flags, indices of packed parameters, and addresses of
    native code, which are 0 until the code is there. The coordinates that noise is injected into follow, as integers.
    """

    step_size: Any
    refresh: Any
    """The rate at which momenta are drawn afresh."""
    reflected: Any
    """Whether chains are reflected at 0."""
    n_first: Any
    """How many coordinates move before the gradient is taken."""
    n_noisy: Any
    """How many coordinates noise is injected into."""
    fixed: Any
    """Whether the noise is the same wherever the chain is."""
    unbalanced: Any
    """Whether B̂ asks to take noise away where none is injected."""
    of_energy: Any
    """Whether the programs read the values or the slopes of a compiled U."""
    first_program: Any
    rest_program: Any
    noise_program: Any
    batch_program: Any
    work: Any
    """The stack machine's memory."""
    first_code: Any = 0
    rest_code: Any = 0
    batch_code: Any = 0
    step_code: Any = 0
    """A whole step."""
    again_code: Any = 0
    """A whole step, and what the next one moves first."""


_SLOT = Header(*range(len(Header._fields)))
_FLOATS = 2
"""How many slots of the header are floats."""
# Numbers that all chains share: ε, B̂ and the rows of the factor of a noise that is the same everywhere.
_EPSILON, _B, _FACTOR = range(3)


EULER, SEMI_IMPLICIT = "euler", "semi_implicit"


class Arrays(NamedTuple):
    """The chains, and the memory of one step."""

    theta: Any
    other: Any
    """The momenta and thermostats."""
    grad: Any
    side: Any
    """The inputs V, U and ∇U of each chain."""
    injected: Any
    """The noise of each chain, or its normals."""
    shared: Any
    factor: Any
    """The Cholesky factor of a covariance of the noise."""
    heights: Any
    """U of all data."""
    exact: Any
    """∇U of all data."""
    each: Any
    """The gradients of the data of a minibatch."""
    made: Any
    """The outputs of a program at each chain."""


@jit.inlined
def _header(params):
    """The header, by name."""
    slots = params.view(np.int64)
    return Header(
        params[0], params[1], slots[2] != 0, slots[3], slots[4], slots[5] != 0, slots[6] != 0, slots[7] != 0, slots[8],
        slots[9], slots[10], slots[11], slots[12], slots[13], slots[14], slots[15], slots[16], slots[17],
    )  # fmt: skip


@jit.inlined
def _read(values, columns, first, n, row, work):
    """Copy columns of (chains, m) values of ``n`` chains from ``first`` on to rows of the machine's memory."""
    # Unsigned, for a place that might be negative is checked in every access.
    start = np.uint64(row * LANES)
    for c in range(np.uint64(n)):
        at = start + c
        for i in range(np.uint64(columns)):
            work[at] = values[np.uint64(first) + c, i]
            at += np.uint64(LANES)


@jit.inlined
def _write(work, row, columns, first, n, values):
    """The inverse of :func:`_read`."""
    start = np.uint64(row * LANES)
    for c in range(np.uint64(n)):
        at = start + c
        for i in range(np.uint64(columns)):
            values[np.uint64(first) + c, i] = work[at]
            at += np.uint64(LANES)


@jit.helper
def _evaluate(native, program, work, shared, theta, other, grad, side, inputs, made):
    """Leave a program's outputs at every chain in ``made``: by native code, where it is there, or the stack machine.

    It reads ``inputs`` numbers of ``side``.
    """
    n_chains, dim = theta.shape
    if native != 0:
        call(native, (shared, theta, other, grad, side, made), 0, n_chains)
        return
    n_state = dim + other.shape[1]
    outputs = int(program[1])
    for a in range(0, n_chains, LANES):
        n = min(LANES, n_chains - a)
        _read(theta, dim, a, n, 0, work)
        _read(other, n_state - dim, a, n, dim, work)
        _read(grad, dim, a, n, n_state, work)
        for c in range(LANES):
            work[np.uint64((n_state + dim) * LANES + c)] = shared[_B]
        _read(side, inputs, a, n, n_state + dim + 1, work)
        execute(program, work)
        _write(work, outputs, int(program[2]), a, n, made)


@jit.inlined
def _add(theta, other, c, k, by):
    """Add to coordinate k of a chain's z."""
    if k < theta.shape[1]:
        theta[c, k] += by
    else:
        other[c, k - theta.shape[1]] += by


@jit.helper
def _factorise(entries, step_size, factor):
    """The factor of ε(2D − εB̂) by Cholesky, of the lower triangle's entries; whether a pivot was clipped to zero."""
    clipped = False
    at = 0
    for k in range(factor.shape[0]):
        for j in range(k + 1):
            value = entry = step_size * entries[at]
            at += 1
            for i in range(j):
                value -= factor[k, i] * factor[j, i]
            if j < k:
                factor[k, j] = value / factor[j, j] if factor[j, j] > 0 else 0.0
            else:
                factor[k, k] = sqrt(max(value, 0.0))
                # Rounding may leave a semidefinite matrix a little below zero.
                if value < -1e-12 * abs(entry):
                    clipped = True
                    shorten(factor, k, value)
    return clipped


@jit.inlined
def _share(factor, shared):
    """Put the rows of a factor among what all chains share."""
    at = _FACTOR
    for k in range(factor.shape[0]):
        for j in range(k + 1):
            shared[at] = factor[k, j]
            at += 1


@jit.helper
def _take_batches(rng, state, model, source, each, grad, side, injected):
    """Draw a minibatch for each chain and the normals of the step's noise.

    They are drawn chain by chain, as the fast kernels do. A row of ``side`` gets the lower
    triangle of V: the correction on its diagonal, or, where it is estimated, the empirical Fisher information
    Cov(g_k)/S, for batches without replacement times the share of the data that is not in one.
    """
    x, size = state.position, source.batch_size
    left = 1.0 if source.replacement else 1 - size / state.data.size
    for c in range(x.shape[0]):
        source.estimate(rng, x[c : c + 1], grad[c : c + 1], each, model, state.data, source.params, state.memory[c])
        at = 0
        for i in range(x.shape[1]):
            for j in range(i + 1):
                total = 0.0
                if source.estimated:
                    for k in range(size):
                        total += (each[k, i] - grad[c, i]) * (each[k, j] - grad[c, j])
                side[c, at] = left * total / (size * max(size - 1, 1)) + (source.correction if i == j else 0.0)
                at += 1
        for k in range(injected.shape[1]):
            injected[c, k] = rng.standard_normal()


@jit.helper
def _shape_noise(injected, made, step_size, factor):
    """Make each chain's normals noise of the covariance ε(2D − εB̂); how many were clipped."""
    clipped = 0
    for c in range(made.shape[0]):
        clipped += _factorise(made[c], step_size, factor)
        for k in range(factor.shape[0] - 1, -1, -1):
            injected[c, k] *= factor[k, k]
            for j in range(k):
                injected[c, k] += factor[k, j] * injected[c, j]
    return clipped


@jit.helper
def _measure(model, theta, heights, exact, side):
    """Leave U and ∇U of all data in ``side``, behind V."""
    n_chains, dim = theta.shape
    at = dim * (dim + 1) // 2
    model.potential(theta, heights, model.params)
    model.gradient(theta, exact, model.params)
    for c in range(n_chains):
        side[c, at] = heights[c]
        for i in range(dim):
            side[c, at + 1 + i] = exact[c, i]


@jit.inlined
def _run(code, program, work, arrays, inputs):
    """Leave a program's outputs at every chain in ``made``."""
    theta, other, grad = arrays.theta, arrays.other, arrays.grad
    _evaluate(code, program, work, arrays.shared, theta, other, grad, arrays.side, inputs, arrays.made)


@jit.inlined
def _fix_noise(params, head, arrays, inputs):
    """Leave the factor of a noise that is the same everywhere in ``factor``; whether a pivot was clipped to zero."""
    theta, other, grad = arrays.theta[:1], arrays.other[:1], arrays.grad[:1]
    work = params[head.work :]
    _evaluate(
        0, params[head.noise_program :], work, arrays.shared, theta, other, grad, arrays.side, inputs, arrays.made
    )
    return _factorise(arrays.made[0], head.step_size, arrays.factor)


@jit.inlined
def _move_first(model, params, head, arrays, inputs):
    """θ ← θ + ε f̃(z) of the semi-implicit scheme."""
    if head.of_energy:
        _measure(model, arrays.theta, arrays.heights, arrays.exact, arrays.side)
    _run(head.first_code, params[head.first_program :], params[head.work :], arrays, inputs)
    for c in range(arrays.theta.shape[0]):
        for i in range(head.n_first):
            arrays.theta[c, i] += head.step_size * arrays.made[c, i]


@jit.inlined
def _redraw(rng, redrawn, theta, other):
    """Draw the momenta afresh, each chain's with that probability; no random numbers are spent where it is 0."""
    for c in range(theta.shape[0] if redrawn > 0 else 0):
        if rng.random() < redrawn:
            for i in range(theta.shape[1]):
                other[c, i] = rng.standard_normal()


@jit.inlined
def _estimate(rng, source):
    """The variance of the mean of n draws, estimated from the n draws: B̂ (n − 1)/V is χ² with n − 1 degrees."""
    freedom = source.sample_size - 1
    return source.correction * 2 * rng.standard_gamma(freedom / 2) / freedom


@jit.helper
def _native_steps(rng, model, source, params, head, arrays, draws, n):
    """Steps with a native code for all that follows the gradient; how many were clipped."""
    # A loop with little in it: then the processor is at the next step's normals while it waits for this gradient.
    params, arrays, draws = borrowed((params, arrays, draws))
    theta, grad, normals = arrays.theta, arrays.grad, arrays.injected.reshape(-1)
    gradient, target_params, noise_scale = model.gradient, borrowed(model.params), sqrt(source.variance)
    clipped = n * theta.shape[0] * _fix_noise(params, head, arrays, 0)
    _share(arrays.factor, arrays.shared)
    if head.n_first > 0:
        _move_first(model, params, head, arrays, 0)
    for t in range(n):
        gradient(theta, grad, target_params)
        if noise_scale > 0:
            add_noise(rng, grad, noise_scale)
        for k in range(normals.size):
            normals[k] = rng.standard_normal()
        code = head.again_code if head.n_first > 0 and t + 1 < n else head.step_code
        call(code, (arrays.shared, theta, arrays.other, grad, arrays.injected, draws), t * theta.size, theta.shape[0])
    if head.unbalanced and source.correction > 0:
        clipped += n * theta.shape[0]
    return clipped


@jit.helper
def _steps(rng, state, model, source, params, head, arrays, draws, n):
    """Steps program by program; how many were clipped."""
    params, arrays, draws = borrowed((params, arrays, draws))
    theta, other, grad, side, injected = arrays.theta, arrays.other, arrays.grad, arrays.side, arrays.injected
    shared, factor, made = arrays.shared, arrays.factor, arrays.made
    (n_chains, dim), n_state = theta.shape, theta.shape[1] + other.shape[1]
    rest_program, batch_program = params[head.rest_program :], params[head.batch_program :]
    work, noisy, normals = params[head.work :], params.view(np.int64)[len(_SLOT) :], injected.reshape(-1)
    batches, estimated = source.batch_size > 0, source.sample_size > 1
    inputs = side.shape[1] if batches or head.of_energy else 0
    noise_scale, target_params = sqrt(source.variance), borrowed(model.params)
    clipped, bad, redrawn = 0, False, 1 - exp(-head.refresh * head.step_size)
    for t in range(n):
        _redraw(rng, redrawn, theta, other)
        if head.n_first > 0:
            _move_first(model, params, head, arrays, inputs)
        # Entries with a compiled U need its value, and Γ its slopes, of all data whatever the gradient is.
        if head.of_energy:
            _measure(model, theta, arrays.heights, arrays.exact, side)
        if batches:
            _take_batches(rng, state, model, source, arrays.each, grad, side, injected)
        else:
            model.gradient(theta, grad, target_params)
            if noise_scale > 0:
                add_noise(rng, grad, noise_scale)
        if estimated:
            shared[_B] = _estimate(rng, source)
        if head.unbalanced and (shared[_B] > 0 or source.estimated):
            clipped += n_chains
        if batches:
            _run(head.batch_code, batch_program, work, arrays, inputs)
            clipped += _shape_noise(injected, made, head.step_size, factor)
        else:
            if head.fixed and (t == 0 or estimated):
                bad = _fix_noise(params, head, arrays, inputs)
            for k in range(normals.size):
                normals[k] = rng.standard_normal()
        _run(head.rest_code, rest_program, work, arrays, inputs)
        for c in range(n_chains):
            # The noise first: the next gradient waits for what the drift adds.
            if batches:
                for k in range(head.n_noisy):
                    _add(theta, other, c, noisy[k], injected[c, k])
            else:
                if not head.fixed:
                    bad = _factorise(made[c, n_state - head.n_first :], head.step_size, factor)
                clipped += bad
                for k in range(head.n_noisy):
                    for j in range(k + 1):
                        _add(theta, other, c, noisy[k], factor[k, j] * injected[c, j])
            for k in range(head.n_first, n_state):
                _add(theta, other, c, k, head.step_size * made[c, k - head.n_first])
            for i in range(dim):
                if head.reflected and theta[c, i] < 0:
                    theta[c, i] *= -1
                    # A momentum that carried the chain out carries it back in.
                    if n_state >= 2 * dim:
                        other[c, i] *= -1
                draws[t, c, i] = theta[c, i]
    return clipped


@jit.start
def start(rng, position, auxiliary, model, params):
    """A momentum that is redrawn starts with its distribution; others start at 0, a thermostat at its mean."""
    if params[_SLOT.refresh] > 0:
        for c in range(position.shape[0]):
            for i in range(position.shape[1]):
                auxiliary[c, i] = rng.standard_normal()


@jit.kernel
def advance(rng, state, model, source, params, out, n, info):
    head = _header(params)
    n_chains, dim = state.position.shape
    n_noisy, n_rest = head.n_noisy, dim + state.momentum.shape[1] - head.n_first
    triangle = n_noisy * (n_noisy + 1) // 2
    arrays = Arrays(
        state.position,
        state.momentum,
        info.gradient,
        np.zeros((n_chains, dim * (dim + 1) // 2 + 1 + dim)),
        np.zeros((n_chains, n_noisy)),
        np.zeros(_FACTOR + triangle),
        np.zeros((n_noisy, n_noisy)),
        np.empty(n_chains),
        np.empty((n_chains, dim)),
        np.empty((source.batch_size, dim)),
        np.zeros((n_chains, n_rest + max(head.n_first, triangle))),
    )
    arrays.shared[_EPSILON], arrays.shared[_B] = head.step_size, source.correction
    if head.step_code != 0:
        info.counts[jit.CLIPPED] += _native_steps(rng, model, source, params, head, arrays, out, n)
    else:
        info.counts[jit.CLIPPED] += _steps(rng, state, model, source, params, head, arrays, out, n)
    keep_alive(arrays)


_TYPED_DRIFT = r"\epsilon f(z_t)"


class RecipeSampler(Sampler):
    """Any sampler that the recipe writes: an energy, D(z) and Q(z), typed (Ma, Chen & Fox 2015, eqs 3 and 9).

    SDE: dz = f dt + √(2D) dW with f = −(D + Q)∇H + Γ, Γ_i = Σ_j ∂_j(D_ij + Q_ij).
    Euler–Maruyama: z ← z + ε f̃(z) + N(0, ε(2D − εB̂)), with B̂ = (D + Q) diag(V, 0) (D + Q)ᵀ, V a number or, estimated
    from a minibatch, a matrix; this corrects the sign of Γ in the printed eq (9). Semi-implicit: θ first, then the
    rest, with the gradient at the new θ. A typed row of f has no noisy gradient, and its row of B̂ is 0.
    With λ > 0 a step begins, with probability 1 − e^{−λε}, with a new momentum r ~ N(0, I), and so does the chain.
    Where the target's U is no formula ∇H is its compiled gradient, with every estimator of it; U in an entry, and its
    slopes in Γ, are those of all data at every step.
    Invariant distribution: e^{−H} as ε → 0, for every D that is positive semidefinite and every Q that is skew. Where
    2D − εB̂ is not positive semidefinite the noise is clipped, and the steps that it happened in are counted. On (0, ∞)
    a step that leaves is reflected at 0.
    """

    key = "recipe"
    title = "Recipe"
    update = (
        r"z_{t+1} = z_t - \epsilon D\nabla\tilde H - \epsilon Q\nabla\tilde H + \epsilon\,\Gamma + \mathcal N\bigl(0,\ \epsilon(2D - \epsilon\hat B)\bigr),"
        r"\quad \Gamma_i = \textstyle\sum_j \partial_j (D_{ij} + Q_{ij})"
    )
    optional = {
        "gamma": (r" + \epsilon\,\Gamma", r",\quad \Gamma_i = \textstyle\sum_j \partial_j (D_{ij} + Q_{ij})"),
        "dissipation": (r" - \epsilon D\nabla\tilde H",),
    }
    diffusion = "D = D(z)"
    curl = "Q = Q(z)"
    integrator = "Euler–Maruyama or semi-implicit Euler"
    source = "Ma, Chen & Fox 2015, eqs (3) and (9), the sign of Γ corrected"
    supports = frozenset({LINE, POSITIVE})
    accepts = STOCHASTIC | {REDRAWN}
    most_coordinates = MAX_DIM
    first_stride = 2.0
    advance, start = advance, start

    step_size = Real(
        0.02, bounds=(1e-6, 2.0), log=True, tex=r"\epsilon", label="Step size ε", doc="The time that one step advances."
    )
    scheme = Option(
        default=EULER,
        objects=[EULER, SEMI_IMPLICIT],
        label="Integrator",
        doc="Euler moves all of z at once. Semi-implicit moves θ first, and the rest with the gradient at the new θ.",
    )
    layout = Option(
        default=THETA,
        objects=list(KINDS),
        label="State z",
        doc="The variables of the sampler: θ alone, θ with a momentum r, or θ with a momentum and a thermostat ξ.",
    )
    diffusion_entries = Formulas(
        (),
        tex="D",
        label="D",
        doc="D row by row, from the diagonal on: formulas of the state's names, and of U. Without entries D is the identity. With more than five coordinates in all they are those of one coordinate of θ, named theta, and its momentum r, and every coordinate has them.",
    )
    curl_entries = Formulas(
        (),
        tex="Q",
        label="Q",
        doc="Q row by row, above the diagonal; below it the entries have the other sign. Without entries Q is zero.",
    )
    drift_entries = Formulas(
        (), tex="f", label="Drift f", doc="Components of the drift typed by hand; an empty one follows from D and Q."
    )
    thermostat = Real(
        1.0,
        bounds=(0.0, 100.0),
        tex="A",
        label="Mean A of ξ",
        doc="The mean of the thermostat: H has the term (d/2)(ξ − A)².",
    )
    refresh = Real(
        0.0,
        bounds=(0.0, MAX_REFRESH),
        tex=r"\lambda",
        label="Momentum redraws λ",
        doc="How often in a unit of time the momentum is drawn afresh from N(0, I), as HMC does; 0 is never.",
    )
    gamma = Flag(
        True, label="Γ in the drift", doc="Without Γ e^{−H} is not stationary wherever D or Q depends on the state."
    )
    dissipation = Flag(True, label="−D∇H in the drift", doc="Without −D∇H nothing balances the noise: naive SGHMC.")

    @classmethod
    def update_by(cls, gradient: type[Estimator], values: Mapping[str, Value]) -> str:
        entries = cast(tuple[str, ...], values["drift_entries"])
        typed = [str(row) for row, text in enumerate(entries, 1) if text]
        out = super().update_by(gradient, values)
        if typed and len(typed) == len(entries):
            out = rf"z_{{t+1}} = z_t + {_TYPED_DRIFT} + \mathcal N(0,\ 2\epsilon D)"
        elif typed:
            rows = f"row{'s' * (len(typed) > 1)} {', '.join(typed)}"
            out += rf",\quad\text{{with }} {_TYPED_DRIFT} \text{{ as the drift of {rows}}}"
        if values["scheme"] == SEMI_IMPLICIT:
            rest = [symbol for symbol, word in (("r", "_r"), (r"\xi", "_xi")) if word in str(values["layout"])]
            moved = ", ".join(f"{symbol}_t" for symbol in rest)
            out += rf",\quad z_t = (\theta_{{t+1}}, {moved}) \text{{ in the rows of }} {', '.join(rest)}"
        return out

    @classmethod
    def typed_formulas(cls, values: Mapping[str, Value], target: Target) -> tuple[str, ...]:
        """D, Q and f. Raises :class:`SpecError`, as :meth:`recipe` does."""
        made = cls(**values)
        recipe = made.recipe(target)
        drift = recipe.tex("drift") + r"\quad\text{(typed)}" * any(made.drift_entries)
        return recipe.tex("D"), recipe.tex("Q"), drift

    def recipe(self, target: Target) -> Recipe:
        """The recipe on a target. Raises :class:`SpecError` for an entry that is no formula of the state."""
        return _recipe(
            target.formula(),
            target.dim,
            self.layout,
            self.diffusion_entries,
            self.curl_entries,
            self.drift_entries,
            self.thermostat,
            self.refresh,
            self.gamma,
            self.dissipation,
        )

    @property
    def gradient_age(self) -> int:  # type: ignore[override]
        """The semi-implicit scheme takes the gradient at the θ that it has just moved to."""
        return 0 if self.scheme == SEMI_IMPLICIT else 1

    @property
    def momentum(self) -> str:  # type: ignore[override]
        return KEPT if str(self.layout) != THETA else NO_MOMENTUM

    def thermostats(self, target: Target) -> int:
        return len(Layout(self.layout, target.dim).thermostats)

    def _programs(self, target: Target) -> "Programs":
        batches = target.batch is not Target.batch
        return _programs(self.recipe(target), self.step_size, self.scheme, batches)

    def check(self, target: Target) -> None:
        self._programs(target)

    def refusal(self, target: Target) -> str:
        found = self._refused(target)
        return str(found) if found is not None else ""

    def check_diffusion(self, target: Target) -> None:
        """Raises :class:`~samplers.parameters.SpecError` where D is not positive semidefinite."""
        if (found := self._refused(target)) is not None:
            raise SpecError(found.field, found.value, found.allowed)

    def _refused(self, target: Target) -> SpecError | None:
        recipe = self.recipe(target)
        return _REFUSALS.of(target, recipe, lambda: _refusal(recipe, target))

    def data_beside(self, target: Target) -> int:
        return len(target.data()) if self._programs(target).of_energy else 0

    def auxiliary(self, target: Target) -> Array:
        layout = Layout(self.layout, target.dim)
        return np.array([0.0] * len(layout.momenta) + [self.thermostat] * len(layout.thermostats))

    def packed(self, target: Target) -> Array:
        made = self._programs(target)
        programs = (made.first, made.rest, made.noise, made.batch)
        starts = np.cumsum([len(_SLOT) + len(made.noisy), *map(len, programs)])
        header = Header(
            self.step_size,
            self.refresh if self.layout != THETA else 0.0,
            target.support == POSITIVE,
            made.moved_first,
            len(made.noisy),
            made.fixed,
            made.unbalanced,
            made.of_energy,
            *starts,
        )
        integers = np.array([*header[_FLOATS:], *made.noisy], dtype=np.int64)
        return np.concatenate([header[:_FLOATS], integers.view(float), *programs, np.zeros(workspace(*programs))])

    def native(self, target: Target, noise: jit.Noise) -> dict[int, Loop]:
        made, layout = self._programs(target), Layout(self.layout, target.dim)
        steady = made.fixed and not made.of_energy and noise.batch_size == 0 and noise.sample_size <= 1
        redrawn = self.refresh > 0 and self.layout != THETA
        return _loops(made, layout, target.support == POSITIVE, noise.batch_size > 0, steady and not redrawn)

    @classmethod
    def first_entries(cls, target: Target) -> dict[str, Value]:
        """On (0, ∞) SGRLD's D = θ, which vanishes at 0: reflected there, the steps of D = 1 have a large bias."""
        return {"diffusion_entries": ("theta",)} if target.support == POSITIVE and target.dim == 1 else {}

    bias_order = 1
    steps_to_test = 1000
    parts = {
        "redraw": r"z_t",
        "−εD∇H": r"- \epsilon D\nabla\tilde H",
        "−εQ∇H": r"- \epsilon Q\nabla\tilde H",
        "εΓ": r"\epsilon\,\Gamma",
        "gradient noise": r"\nabla\tilde H",
        "drift": _TYPED_DRIFT,
        "injected noise": r"\mathcal N\bigl(0,\ \epsilon(2D - \epsilon\hat B)\bigr)",
        "reflection": r"z_{t+1}",
    }
    textbook_step = textbook.recipe


@lru_cache(maxsize=64)
def _recipe(
    energy: str,
    dim: int,
    kind: str,
    diffusion: tuple[str, ...],
    curl: tuple[str, ...],
    drift: tuple[str, ...],
    thermostat: float,
    refresh: float,
    gamma: bool,
    dissipation: bool,
) -> Recipe:
    layout = Layout(kind, dim)
    n = len(layout.rows)
    on, above = [(i, j) for i in range(n) for j in range(i, n)], [(i, j) for i in range(n) for j in range(i + 1, n)]
    for what, given, indices in (("diffusion_entries", diffusion, on), ("curl_entries", curl, above)):
        if given and len(given) != len(indices):
            raise SpecError(
                f"sampler.{what}",
                ", ".join(given),
                f"for the rows {', '.join(layout.rows)}: {len(indices)} entries are needed",
            )
    if drift and len(drift) != n:
        raise SpecError(
            "sampler.drift_entries", ", ".join(drift), f"for the rows {', '.join(layout.rows)}: {n} entries are needed"
        )
    identity = tuple("1" if i == j else "0" for i, j in on)
    return Recipe.from_text(
        layout,
        energy,
        {f"{i + 1},{j + 1}": text for (i, j), text in zip(on, diffusion or identity, strict=True)},
        {f"{i + 1},{j + 1}": text for (i, j), text in zip(above, curl or ["0"] * len(above), strict=True)},
        friction=thermostat,
        gamma_dropped=not gamma,
        dissipation_dropped=not dissipation,
        refresh=refresh,
        edited={str(i + 1): text for i, text in enumerate(drift) if text},
    )


_REFUSALS: ByTarget[Recipe, SpecError | None] = ByTarget()


def _refusal(recipe: Recipe, target: Target) -> SpecError | None:
    """The error of a D that is not positive semidefinite on the part of the space that is shown; None without one."""
    n, ranges = len(recipe.layout.names), shown(recipe, target)
    entries = [entry for row in recipe.D for entry in row]
    names = set[str]().union(*(entry.names for entry in entries))
    if ENERGY in names or n > len(_POINTS):
        # A compiled U costs all data at each point, and on many axes a grid has too many: at random.
        grid: Sequence[Array]
        most = _MOST_NUMBERS // (max(len(target.data()), 1) * recipe.layout.dim) if names else 1
        low, high = np.array(ranges).T
        grid = list(np.random.default_rng(1).uniform(low, high, (min(_POINTS_AT_RANDOM, max(most, 1)), n)).T)
    else:
        axes = [np.linspace(low, high, _POINTS[n - 1]) for low, high in ranges]
        grid = np.meshgrid(*axes, indexing="ij")
    try:
        recipe.check_on(**values_at(recipe.layout, target, entries, grid))
    except SpecError as error:
        # The one that was raised holds the target, by its traceback.
        return SpecError(error.field, error.value, error.allowed)
    return None


_POINTS = (401, 61, 31, 13, 9)
"""Points a side where D is looked at, by the number of coordinates."""
_POINTS_AT_RANDOM, _MOST_NUMBERS = 1000, 10**7
"""Points elsewhere, and the most numbers of data that they may take."""


class Programs(NamedTuple):
    """A recipe as programs of the stack machine."""

    moved_first: int
    """How many coordinates move before the gradient is taken."""
    noisy: NDArray[np.int64]
    """The numbers of the coordinates that noise is injected into."""
    fixed: bool
    """Whether the noise is the same wherever the chain is."""
    unbalanced: bool
    """Whether B̂ asks to take noise away where none is injected."""
    of_energy: bool
    """Whether the values or the slopes of a compiled U are among the inputs that are read."""
    first: Array
    """The drift of what moves first."""
    rest: Array
    """The drift of the rest, and the lower triangle of 2D − εB̂ of the noisy coordinates unless that is fixed."""
    noise: Array
    """That triangle, where it is fixed."""
    batch: Array
    """That triangle with the matrix V of a minibatch, or of targets without data with its first entry for all."""


def _drift(recipe: Recipe, gradient: Sequence[Expression]) -> list[Expression]:
    """The drift −(D + Q)∇H + Γ, with that gradient of H, or the entries that a person typed."""
    drift: list[Expression] = []
    for i in range(len(gradient)):
        total = ZERO if recipe.gamma_dropped else recipe.gamma[i]
        for j in range(len(gradient)):
            if not recipe.Q[i][j].is_zero:
                total = total - recipe.Q[i][j] * gradient[j]
            if not (recipe.dissipation_dropped or recipe.D[i][j].is_zero):
                total = total - recipe.D[i][j] * gradient[j]
        own = recipe.edited[i] if recipe.edited else None
        drift.append(total if own is None else own)
    return drift


@lru_cache(maxsize=64)
def _programs(recipe: Recipe, step_size: float, scheme: str, batches: bool) -> Programs:
    # In the programs ∇Ũ has the names g₁, g₂ …, its variance the name B or, as a matrix, V₁₁, V₂₁, V₂₂ …; a compiled
    # U and its exact slopes have their own.
    dim, names = recipe.layout.dim, recipe.layout.names
    slopes = [name(f"g{i + 1}") for i in range(dim)]
    n = len(names)
    drift = _drift(recipe, [*slopes, *recipe.gradient[dim:]])
    spread = recipe.correction(1.0)
    matrix = [[f"V{max(i, j) + 1}{min(i, j) + 1}" for j in range(dim)] for i in range(dim)]
    noisy = [i for i in range(n) if not recipe.D[i][i].is_zero]
    unbalanced = any(not spread[i][i].is_zero for i in range(n) if i not in noisy)
    triangle = [2 * recipe.D[i][j] - step_size * name("B") * spread[i][j] for i in noisy for j in noisy if j <= i]
    fixed = all(entry.names <= {"B"} for entry in triangle)
    moved_first = dim if scheme == SEMI_IMPLICIT else 0
    if any(entry.names & {slope.label for slope in slopes} for entry in drift[:moved_first]) or any(
        i < moved_first for i in noisy
    ):
        raise SpecError(
            "sampler.scheme",
            scheme,
            f"θ must be moved by the momentum alone for it; with D or Q in θ's own block allowed is {EULER}",
        )
    # Without data an estimator of its own can only say one number for all coordinates.
    wide = (
        recipe.correction([[name(label) for label in row] for row in matrix])
        if batches
        else [[name("V11") * entry for entry in row] for row in spread]
    )
    of_batch = [2 * recipe.D[i][j] - step_size * wide[i][j] for i in noisy for j in noisy if j <= i]
    inputs = [
        *names,
        *(f"g{i + 1}" for i in range(dim)),
        "B",
        *(matrix[i][j] for i in range(dim) for j in range(i + 1)),
        ENERGY,
        *recipe.layout.slopes,
    ]
    of_energy = any(entry.names & {ENERGY, *recipe.layout.slopes} for entry in (*drift, *triangle, *of_batch))
    first = program(drift[:moved_first], inputs)
    rest = program([*drift[moved_first:], *([] if fixed else triangle)], inputs)
    constant = program(triangle if fixed else [], inputs)
    return Programs(
        moved_first,
        np.array(noisy, dtype=np.int64),
        fixed,
        unbalanced,
        of_energy,
        first,
        rest,
        constant,
        program(of_batch, inputs),
    )


def _input(columns_of: Sequence[tuple[str, int]], loop: Loop, k: int) -> str:
    """Input k of a program, whose inputs are in these arrays."""
    for array, columns in columns_of:
        if k < columns:
            return loop.load(array, _B if array == "shared" else k)
        k -= columns
    raise ValueError(k)


def _loops(made: Programs, layout: Layout, reflect: bool, batches: bool, steady: bool) -> dict[int, Loop]:
    """The programs as native code, or, where nothing but noise that is ``steady`` comes between them, a whole step.

    Where θ moves first that step has a second form, which ends with the beginning of the next one.
    """
    dim, n, first, noisy = layout.dim, len(layout.names), made.moved_first, made.noisy.tolist()
    triangle = [(k, j) for k in range(len(noisy)) for j in range(k + 1)]
    beside = dim * (dim + 1) // 2 + 1 + dim
    z_of = {"theta": dim, "other": n - dim, "grad": dim}
    shared = {"shared": _FACTOR + len(triangle)}

    given = partial(_input, [*z_of.items(), ("shared", 1), ("side", beside)])

    def outputs(title: str, program: Array) -> Loop:
        loop = Loop(title, {**z_of, "side": beside, "made": n - first + max(first, len(triangle))}, shared)
        for k, value in enumerate(loop.run(program, partial(given, loop))):
            loop.store("made", k, value)
        return loop

    def step(title: str, again: bool) -> Loop:
        loop = Loop(title, {**z_of, "injected": len(noisy), "out": dim}, shared)
        z = [given(loop, i) for i in range(n)]

        def move(program: Array, begin: int) -> None:
            here = [*z]
            for i, value in enumerate(loop.run(program, lambda k: here[k] if k < n else given(loop, k)), begin):
                z[i] = loop.binary(Op.ADD, pushed[i], loop.binary(Op.MUL, loop.load("shared", _EPSILON), value))

        pushed = [*z]
        for k, j in triangle:
            factor = loop.load("shared", _FACTOR + k * (k + 1) // 2 + j)
            by = loop.binary(Op.MUL, factor, loop.load("injected", j))
            pushed[noisy[k]] = loop.binary(Op.ADD, pushed[noisy[k]], by)
        z[:first] = pushed[:first]
        move(made.rest, first)
        for i in range(dim if reflect else 0):
            outside = loop.below_zero(z[i])
            for k in (i, dim + i) if n >= 2 * dim else (i,):
                z[k] = loop.choose(outside, loop.binary(Op.MUL, z[k], loop.constant(-1.0)), z[k])
        for i in range(dim):
            loop.store("out", i, z[i])
        if again:
            pushed = [*z]
            move(made.first, 0)
        for i in range(n):
            loop.store(*(("theta", i) if i < dim else ("other", i - dim)), z[i])
        return loop

    loops = {_SLOT.first_code: outputs("first", made.first)} if first else {}
    if steady:
        loops[_SLOT.step_code] = step("step", again=False)
        if first:
            loops[_SLOT.again_code] = step("again", again=True)
        return loops
    if batches:
        loops[_SLOT.batch_code] = outputs("batch", made.batch)
    return {**loops, _SLOT.rest_code: outputs("rest", made.rest)}


def parameters_of(recipe: Recipe) -> dict[str, Value]:
    """The parameters of a :class:`RecipeSampler` with this recipe."""
    texts = recipe.to_dict()
    n = len(recipe.layout.rows)
    return {
        "layout": recipe.layout.kind,
        "diffusion_entries": tuple(texts["D"].get(f"{i + 1},{j + 1}", "0") for i in range(n) for j in range(i, n)),
        "curl_entries": tuple(texts["Q"].get(f"{i + 1},{j + 1}", "0") for i in range(n) for j in range(i + 1, n)),
        "drift_entries": tuple(texts["drift"].get(str(i + 1), "") for i in range(n)) if texts["drift"] else (),
        "thermostat": recipe.friction,
        "refresh": recipe.refresh,
        "gamma": not recipe.gamma_dropped,
        "dissipation": not recipe.dissipation_dropped,
    }
