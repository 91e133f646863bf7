"""Targets from functions that somebody compiled, without a class of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.requirements import ADDED, DATA, MODE
from sgmcmc_lab.samplers.targets.base import subscript
from sgmcmc_lab.samplers.targets.climbed import Climbed


class OfFunctions(Climbed):
    """A distribution on ℝᵈ with the energy U(θ) of a compiled function; the exact answers are those of a long run."""

    tex = r"U(\theta)"
    source = "From functions"

    n_data = 0

    @property
    def column_names(self) -> tuple[str, ...]:
        return ("θ",) if self.dim == 1 else tuple(f"θ{subscript(k + 1)}" for k in range(self.dim))


def of_functions(
    key: str,
    energy: Callable,
    gradient: Callable,
    of_one: Callable | None = None,
    *,
    dim: int,
    params: Any = (),
    n_data: int = 0,
    start: Any = None,
    title: str = "",
) -> type[OfFunctions]:
    """Make a target of functions that Numba can compile, and register it in place of an older one made so.

    ``energy(theta, params)`` returns U at θ (dim,), ``gradient(theta, params, out)`` writes ∂U/∂θ to ``out`` (dim,),
    and ``of_one(theta, params, i, out)`` the same with data point i in place of all ``n_data``: the gradient is the
    mean of those. ``params`` are the numbers that they read, such as the data, as one vector.

    The exact answers are those of a long run of Hamiltonian Monte Carlo that begins around the mode nearest to
    ``start``: of a distribution with modes far apart they would be those of one. Raises :class:`SpecError` where no
    mode is found, and ValueError where what is given does not fit, or a target of another kind has the name.
    """
    from sgmcmc_lab.samplers.targets import TARGETS

    start_at = np.zeros(dim) if start is None else np.array(start, dtype=float)
    if start_at.shape != (dim,):
        raise ValueError(f"start has the shape {start_at.shape}; allowed is ({dim},), for dim = {dim} coordinates")
    if (of_one is None) != (n_data == 0):
        raise ValueError(f"n_data is {n_data}; allowed is the number of data where of_one is given, else 0")
    members = {
        "key": key,
        "title": title or key,
        "__doc__": energy.__doc__ or f"The distribution with the energy {energy.__name__}.",
        "params": np.array(params, dtype=float).ravel(),
        "start_at": start_at,
        "n_data": n_data,
        "provides": DATA | {MODE} if n_data else ADDED,
        "__module__": __name__,
        **_compiled(energy, gradient, of_one),
    }
    made = type("OfFunctions", (OfFunctions,), members)
    found = made()
    _check_gradients(found)
    if key in TARGETS and issubclass(TARGETS[key], OfFunctions):
        TARGETS.remove(key)
    TARGETS.add(made)
    return made


def _compiled(energy: Callable, gradient: Callable, of_one: Callable | None) -> dict[str, Any]:
    """The functions for all chains at once, which keep the draws at the end of the parameters to themselves."""
    u, slope, one = (f if isinstance(f, Dispatcher) else jit.helper(f) for f in (energy, gradient, of_one or energy))

    def of_chains(theta, out, params):
        own = params[: int(params[params.size - 1])]
        for c in range(theta.shape[0]):
            out[c] = u(theta[c], own)

    def slopes(theta, out, params):
        own = params[: int(params[params.size - 1])]
        for c in range(theta.shape[0]):
            slope(theta[c], own, out[c])

    def of_data(theta, data, each, params):
        own = params[: int(params[params.size - 1])]
        for k in range(data.size):
            one(theta[0], own, data[k], each[k])

    made = {"potential": jit.potential(of_chains), "gradient": jit.gradient(slopes)}
    return made if of_one is None else made | {"batch": jit.batch(of_data)}


def _check_gradients(target: OfFunctions) -> None:
    """Raise :class:`SpecError` where the gradient is not that of the energy, or not the mean over the data."""
    rng = np.random.default_rng(0)
    spread = np.linalg.cholesky(np.linalg.inv(target.curvature))
    for _ in range(3):
        theta = target.mode + spread @ rng.standard_normal(target.dim)
        slope, towards = target._at(theta)[1], spread @ rng.standard_normal(target.dim)
        rise = (target._at(theta + 1e-5 * towards)[0] - target._at(theta - 1e-5 * towards)[0]) / 2e-5
        if not abs(rise - slope @ towards) < 1e-3 * (1 + abs(rise)):
            raise SpecError(
                "target",
                target.key,
                f"at {theta} the gradient along {towards} is {slope @ towards:.6g}, and differences of the energy are {rise:.6g}",
            )
        if target.n_data:
            mean = target.slopes_at(theta).mean(axis=0)
            if not np.allclose(mean, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max() + 1e-9):
                raise SpecError(
                    "target",
                    target.key,
                    f"at {theta} the gradient is {slope}, and the mean of what of_one says of the {target.n_data} data {mean}",
                )
