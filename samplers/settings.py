"""The settings of a run beside its lanes, for densities and for models of data."""

from typing import Any, cast

import param

from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import Count, Real, RealVector, declared
from sgmcmc_lab.samplers.registry import METHODS, MODELS, Union
from sgmcmc_lab.samplers.targets import TARGETS

ANY_TARGET = Union("target", TARGETS, MODELS)
ANY_SAMPLER = Union("sampler", SAMPLERS, METHODS)


class Settings(param.Parameterized):
    """The settings of a run on a density, besides its target, sampler and gradient."""

    seed = Count(1, bounds=(0, 2**32 - 1), label="Seed", doc="The same seed gives the same draws.")
    temperature = Real(
        1.0,
        bounds=(0.01, 10.0),
        log=True,
        tex="T",
        label="Temperature T",
        doc="The chains sample e^(−U/T) in place of e^(−U). Cold chains, T < 1, stay near the modes; hot chains, T > 1, spread farther. All samplers accept a temperature; a target without exact answers at T refuses it.",
    )
    n_chains = Count(
        4,
        bounds=(1, 10_000),
        log=True,
        label="Chains",
        doc="Independent chains that move in lockstep. R-hat compares them.",
    )
    n_steps = Count(
        1000, bounds=(1, 1_000_000_000), log=True, label="Steps", doc="Steps of each chain after the burn-in."
    )
    burn_in = Count(
        0, bounds=(0, 1_000_000_000), label="Burn-in", doc="Steps of each chain that are made first and not counted."
    )
    thin = Count(
        1,
        bounds=(1, 1_000_000),
        log=True,
        label="Thin",
        doc="One draw in this many steps is kept; the statistics count every step.",
    )
    start = RealVector(
        label="Start",
        doc="The θ where all chains begin, one number for each coordinate, separated by commas; empty: where the target starts them, which is near each mode in turn if several are known.",
    )
    momentum = RealVector(
        label="Momentum",
        doc="The momentum that all chains begin with, one number for each coordinate, separated by commas; empty: the sampler draws it. Only for samplers that keep a momentum; on a manifold its tangent part counts.",
    )


class ModelSettings(param.Parameterized):
    """The settings of a run on a model of data, besides its model and method."""

    seed = Count(1, bounds=Settings.param.seed.bounds, label="Seed", doc=Settings.param.seed.doc)
    n_chains = Count(
        1,
        bounds=(1, 5),
        label="Runs of each method",
        doc="The number of runs of each method, with consecutive seeds. Curves show the mean of the runs, and a band from the lowest to the highest. The pictures show the first run.",
    )
    n_steps = Count(100, bounds=(0, 1_000_000_000), label="Steps", doc="Steps of each run, without a page to stop it.")


SETTINGS = tuple(name for name, _ in declared(Settings))


def is_model(target: Any) -> bool:
    """Whether that is the key of a model of data; it may be anything that a file holds."""
    return isinstance(target, str) and target in MODELS


def settings_of(target: str) -> dict[str, Count | Real | RealVector]:
    """The settings of a run on this target, by its key, besides target, sampler and gradient."""
    return cast(dict[str, Count | Real | RealVector], dict(declared(ModelSettings if is_model(target) else Settings)))
