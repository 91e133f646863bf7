"""A run as data: everything that the WebAssembly host needs to make the draws of a
:class:`~samplers.experiment.RunSpec`.

The host has no Python. It knows the arrays' layout, the seeds' generator and the order of
:class:`~samplers.engine.Run`; everything that depends on the target, the sampler and the gradient stands here: names of
compiled functions, packed parameters, first values, costs. A :func:`signature` says how a compiled function takes its
arguments.
"""

from base64 import b64encode
from collections.abc import Sequence
from itertools import accumulate as accumulated
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from sgmcmc_lab import samplers
from sgmcmc_lab.samplers import convergence, engine, models, running_statistics
from sgmcmc_lab.samplers.choices import Choice, make_gradient, make_sampler, make_target
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.borrowed_arrays import BorrowedArray
from sgmcmc_lab.samplers.diagnostics import autocorrelation, divergence, ks, moments
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import Estimator
from sgmcmc_lab.samplers.kernels import Sampler
from sgmcmc_lab.samplers.kernels.base import KEPT
from sgmcmc_lab.samplers.kernels.exact import Exact
from sgmcmc_lab.samplers.kernels.noisy_gradient import Moving
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.models.batch_size import scan_chain
from sgmcmc_lab.samplers.requirements import LIPSCHITZ, MODE
from sgmcmc_lab.samplers.targets import TARGETS, expectations, tempered
from sgmcmc_lab.samplers.targets.base import Array, Normals, Target
from sgmcmc_lab.samplers.targets.logistic_large import draw_normals
from sgmcmc_lab.samplers.trace import Divergence

READINGS = {
    reading.py_func.__name__: reading
    for reading in (
        ks.largest_gap, ks.odds_gap, divergence.column_divergence, divergence.joint_divergence, autocorrelation.correlations, autocorrelation.sokal,
        convergence.summarise, running_statistics.pick, running_statistics.chain_means, running_statistics.mean,
        moments.cir_means, moments.scir_variances, moments.scir_variances_cv, moments.geometric_ou_moments, moments.cir_mgfs,
        moments.scir_mgfs_expected, moments.spread_of_chains, moments.add_batch, moments.mean_of_batches, moments.add_exponentials,
        moments.mean_of_exponentials, expectations.sum_waves, expectations.sum_products, expectations.sum_ordered,
        convergence.mean_tau, scan_chain, draw_normals,
    )
}  # fmt: skip
"""The readings of running statistics, draws and ensembles that the host calls, a Gibbs sampler, and the normal
random numbers of a target's data, by their names."""
STEP, STEP_SIZE = "{step}", "{step_size}"
"""Placeholders in a sentence for the number of a step, and for the sampler's step size."""


def signature(function: Any, names: Sequence[str] = ()) -> dict[str, Any]:
    """How a declared function is called: its name, and the name and kind of each argument, nested for tuples.

    The arguments' names are the function's own, or ``names`` if the function is one of many of its type.
    """
    made = jit.signature_of(function)
    names = names or function.py_func.__code__.co_varnames[: len(made.args)]
    return {
        "name": jit.name_of(function),
        "arguments": [[name, _kind(argument)] for name, argument in zip(names, made.args, strict=True)],
        "result": None if made.return_type == types.void else str(made.return_type),
    }


def _kind(kind: Any) -> Any:
    if isinstance(kind, types.BaseNamedTuple):
        return [[name, _kind(part)] for name, part in zip(kind.fields, kind.types, strict=True)]
    if isinstance(kind, BorrowedArray):
        return "borrowed"
    if isinstance(kind, types.Array):
        return "array"
    if isinstance(kind, types.FunctionType):
        return "function"
    return "generator" if kind == jit.rng_type else str(kind)


FEW = 2000
"""An array of at most this many finite numbers is written out, so that a parameter in it can be replaced."""


def packed(array: Any, few: int = FEW) -> dict[str, Any]:
    """An array as JSON: its shape and its numbers, or, for more than ``few``, their 8 bytes each, little-endian, in
    base64.
    """
    found: NDArray[Any] = np.ascontiguousarray(array)
    kind = "i8" if found.dtype.kind in "iub" else "f8"
    head = {"shape": list(found.shape), "type": kind}
    if kind == "f8" and found.size <= few and np.isfinite(found).all():
        return head | {"values": found.ravel().tolist()}
    return head | {"data": b64encode(found.astype(f"<{kind}").tobytes()).decode()}


LEVELS = 2**44
"""A smooth array is rounded to this many levels between its smallest number and its largest."""
MOST_ORDER = 6
"""The largest order of differences: 2⁴⁴ levels have differences below 2⁵¹, and a browser's numbers hold 2⁵³."""


def smooth(array: Array) -> dict[str, Any]:
    """A smooth array (n,) as JSON: rounded to :data:`LEVELS`, as its differences of the order that makes them smallest.

    The first bytes of all differences precede all second ones, and so on; a difference's sign is its last bit. Such
    bytes compress to a tenth of the numbers' own.
    """
    low, high = float(array.min()), float(array.max())
    levels = np.rint((array - low) / ((high - low) or 1.0) * LEVELS).astype(np.int64)
    before = np.zeros(MOST_ORDER, dtype=np.int64)
    each = [np.diff(levels, n=order, prepend=before[:order]) for order in range(2, MOST_ORDER + 1)]
    differences = min(each, key=lambda one: float(np.log2(1.0 + np.abs(one)).sum()))
    folded = (differences << 1) ^ (differences >> 63)
    found = folded.astype("<i8").view(np.uint8).reshape(-1, 8).T
    head = {"shape": [len(array)], "type": "f8", "low": low, "high": high}
    order = 2 + next(k for k, one in enumerate(each) if one is differences)
    return head | {"order": order, "data": b64encode(found.tobytes()).decode()}


TAIL = 3.65
"""Larger normal random numbers may be computed by a logarithm, whose last digit depends on the library."""


def without_normals(array: Array, normals: Normals) -> dict[str, Any]:
    """An array (n,) with normal random numbers as JSON: the host draws them, and the array has 0 instead.

    The signs are bits, 1 for a number whose sign differs from the random number's. Numbers beyond :data:`TAIL` remain
    in the array.
    """
    seed, skipped, first, n = normals
    found, part = array.copy(), slice(first, first + n)
    drawn = np.random.Generator(np.random.SFC64(seed)).standard_normal(skipped + n)[skipped:]
    signs = np.packbits(np.signbit(drawn) != np.signbit(array[part]), bitorder="little")
    found[part][np.abs(drawn) < TAIL] = 0.0
    return packed(found, few=0) | {
        "normals": {
            "seed": seed,
            "skipped": skipped,
            "first": first,
            "n": n,
            "signs": b64encode(signs.tobytes()).decode(),
        }
    }


def signatures(spec: RunSpec) -> dict[str, dict[str, Any]]:
    """The signatures of the functions that the WebAssembly host itself calls."""
    target = spec.make_target()
    return {
        "loop": signature(engine.advance_all),
        "begin": signature(engine.begin),
        "potential": signature(target.potential, ("theta", "out", "params")),
        "gradient": signature(target.gradient, ("theta", "out", "params")),
        "observe": signature(target.observe, ("draws", "n", "out")),
        "project": signature(target.manifold.project, ("position", "momentum", "shape")),
        **{name: signature(reading) for name, reading in READINGS.items()},
    }


def constants() -> dict[str, int]:
    """The sizes of the arrays of running statistics, counts and marks."""
    names = ("N_BINS", "N_JOINT", "N_LAGS", "LAG_RATIO", "N_LEVELS", "WATCHED", "HISTORY", "TAIL")
    return {name: getattr(running_statistics, name) for name in names} | {
        "COUNTS": jit.N_COUNTS,
        "MARKS": jit.N_MARKS,
        "MOST_LAGS": autocorrelation.MOST_LAGS,
        "WORK": convergence.WORK,
    }


def functions(spec: RunSpec) -> list[Any]:
    """The compiled functions that a run in the WebAssembly host calls or passes on."""
    return [*engine.functions(spec), *READINGS.values()]


def engine_functions() -> list[Any]:
    """The compiled functions of all live pages: of every density at each temperature, sampler and gradient of the lab.

    Those of models of data are not among them, for models do not run in a live page, and neither are those of others'
    packages.
    """
    lab, of_models = (f"{module.__name__}." for module in (samplers, models))
    kinds: list[Any] = [kind for kind in TARGETS.values() if kind.tempers and kind.__module__.startswith(lab)]
    hot = [tempered.class_of(kind) for kind in kinds]
    own = {function for kind in hot for function in (kind.potential, kind.gradient, kind.batch)}
    found = []
    for function in jit.declared():
        module = function.py_func.__module__
        if module == tempered.__name__:
            belongs = function in own
        else:
            belongs = module.startswith(lab) and not module.startswith(of_models)
        if belongs or function in READINGS.values():
            found.append(function)
    return found


def of_run(spec: RunSpec) -> dict[str, Any]:
    """A run: its target, sampler and gradient, its settings, and where it starts."""
    target = spec.make_target()
    return {
        "target": of_target(target, draws_exactly(spec.sampler)),
        "sampler": of_sampler(spec.make_sampler(), target),
        "gradient": of_gradient(spec.make_gradient(), target),
        **of_settings(spec),
    }


def of_settings(spec: RunSpec) -> dict[str, Any]:
    """A run without its target, sampler and gradient: its settings, its changes, and where it starts."""
    target = spec.make_target()
    aimed = list(
        accumulated((change.target for change in spec.changes), lambda last, new: new or last, initial=spec.target)
    )
    first, momentum = spec.first_positions(), np.array(spec.momentum)
    if target.whitening is not None:
        first = target.whitening.z(first)
        momentum = target.whitening.velocity(momentum) if spec.momentum else momentum
    return {
        "seed": spec.seed,
        "n_chains": spec.n_chains,
        "n_steps": spec.n_steps,
        "burn_in": spec.burn_in,
        "thin": spec.thin,
        "start": packed(first),
        "momentum": packed(momentum) if spec.momentum and spec.make_sampler().momentum == KEPT else None,
        "schedule": packed(spec.make_schedule().packed()),
        "changes": [
            {"step": change.step, **of_change(change, at, spec.temperature)}
            for change, at in zip(spec.changes, aimed[1:], strict=True)
        ],
    }


def of_change(change: Change, target: Choice, temperature: float = 1.0) -> dict[str, Any]:
    """A change of a run on this target: the sampler and the gradient, as the engine sees them and as they are chosen,
    and the target where the change has one.
    """
    made = make_target(change.target or target, temperature)
    found = {
        "sampler": of_sampler(make_sampler(change.sampler), made),
        "gradient": of_gradient(make_gradient(change.gradient), made),
        "chosen": {
            name: {"key": one.key, "params": one.values()}
            for name, one in (("sampler", change.sampler), ("gradient", change.gradient))
        },
    }
    return found if change.target is None else found | {"target": of_target(made, draws_exactly(change.sampler))}


def draws_exactly(sampler: Choice) -> bool:
    """Whether a step of the sampler calls the target's ``draw``."""
    return sampler.key == Exact.key


def of_target(target: Target, with_draws: bool) -> dict[str, Any]:
    """A target as the engine sees it, with the parameters of its ``draw`` or without them."""
    sampled = target.sampled
    params = sampled.packed() if with_draws else sampled.without_draws()
    normals = sampled.normals if params.size > FEW else None
    centre, factor = target.whitening or (np.zeros(target.dim), np.zeros((0, target.dim)))
    statistics = running_statistics.Statistics.empty(target.columns, 1, target.dim, target.planar)
    return {
        "key": target.key,
        "dim": target.dim,
        "functions": {
            "potential": jit.name_of(target.potential),
            "gradient": jit.name_of(target.gradient),
            "batch": jit.name_of(target.batch),
            "draw": jit.name_of(sampled.draw),
            "observe": jit.name_of(target.observe),
            "project": jit.name_of(target.manifold.project),
            "flow": jit.name_of(target.manifold.flow),
        },
        "params": packed(params) if normals is None else without_normals(params, normals),
        "data": packed(target.data()),
        "shape": packed(target.manifold.shape()),
        "centre": packed(centre),
        "factor": packed(factor),
        "limits": packed(engine.limits(target)),
        "scales": packed(statistics.sums.scales),
        "joint_scales": packed(statistics.sums.joint_scales),
        "planar": target.planar,
        "watched": target.watched,
        "support": target.support,
        "manifold_dim": target.manifold.dim,
        "no_start": f"U is {{energy}} at the start ({{start}}) of {target.title}, where it must be finite. Choose another start.",
        "unbounded": f"{target.title}: the density is infinite where a chain is." if target.watched else "",
    }


def of_sampler(sampler: Sampler, target: Target) -> dict[str, Any]:
    """A sampler as the engine sees it."""
    return {
        "key": sampler.key,
        "process": sampler.process,
        "start": jit.name_of(sampler.start),
        "kernel": jit.name_of(sampler.advance),
        "params": packed(sampler.packed(target.sampled)),
        "auxiliary": packed(sampler.auxiliary(target.sampled)),
        "thermostat": getattr(sampler, "thermostat", False) is True,
        "steps_that_adapt": sampler.steps_that_adapt,
        "thermostats": sampler.thermostats(target),
        "momentum": sampler.momentum,
        "weighs": sampler.weighs,
        "moving": isinstance(sampler, Moving),
        "friction": getattr(sampler, "friction", None),
        "interacting": sampler.interacting,
        "accept": getattr(sampler, "accept", False) is True,
        "gradient_age": sampler.gradient_age,
        "gradients_per_step": sampler.gradients_per_step,
        "full_gradients_per_step": sampler.full_gradients_per_step,
        "data_beside": sampler.data_beside(target),
        "counts_data": sampler.counts_data,
        "refusal": sampler.refusal(target.sampled),
        "step_size": getattr(sampler, "step_size", None),
        "divergence": _when_it_diverges(sampler, target),
        "above": _when_it_diverges(sampler, target, above=True) if LIPSCHITZ in sampler.requires else "",
    }


def _when_it_diverges(sampler: Sampler, target: Target, above: bool = False) -> str:
    message = Divergence.of(sampler, target, 0, above).message.replace("at step 1:", f"at step {STEP}:")
    step_size = getattr(sampler, "step_size", None)
    return message if step_size is None else message.replace(f"than {step_size:g} and", f"than {STEP_SIZE} and")


def of_gradient(gradient: Estimator, target: Target) -> dict[str, Any]:
    """An estimator of the gradient as the engine sees it."""
    return {
        "key": gradient.key,
        "estimate": jit.name_of(gradient.estimate),
        "control_variates": MODE in gradient.requires,
        "noise": {name: float(value) for name, value in gradient.noise()._asdict().items()},
        "params": packed(gradient.packed(target.sampled)),
        "memory": packed(gradient.first_memory(target.sampled)),
        "data_per_gradient": gradient.data_per_gradient(target),
    }
