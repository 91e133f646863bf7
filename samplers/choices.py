"""A choice: a registered name with its parameters, as plain data, and the object that it names."""

from functools import lru_cache
from typing import Any, NamedTuple, cast

from sgmcmc_lab.samplers.gradients import GRADIENTS, Estimator
from sgmcmc_lab.samplers.kernels import SAMPLERS, Sampler
from sgmcmc_lab.samplers.parameters import Value, check_all
from sgmcmc_lab.samplers.registry import Named
from sgmcmc_lab.samplers.schedules import SCHEDULES, Schedule
from sgmcmc_lab.samplers.targets import TARGETS, Target, own
from sgmcmc_lab.samplers.targets.tempered import tempered


class Choice(NamedTuple):
    """A registered name with all of its parameters."""

    key: str
    params: tuple[tuple[str, Value], ...]

    def values(self) -> dict[str, Value]:
        """The parameters by name."""
        return dict(self.params)


def default_choice(registry: Named[Any], key: str) -> Choice:
    """That entry with its defaults."""
    return Choice(key, check_all(registry[key], "", {}))


def choice_dict(choice: Choice) -> dict[str, Any]:
    """Plain data."""
    return {"key": choice.key, "params": {name: list(v) if isinstance(v, tuple) else v for name, v in choice.params}}


def make_target(choice: Choice, temperature: float = 1.0) -> Target:
    """The target e^{−U/T} at a temperature T as an object, shared by all who ask for the same one."""
    table = own.held(choice.values().get(own.OfTable.data_parameter))
    # Objects made from an uploaded table are released with it.
    if table is None:
        return _shared(choice, float(temperature))
    return table.target(choice, float(temperature), lambda: _make(choice, temperature))


def _make(choice: Choice, temperature: float) -> Target:
    if temperature == 1:
        return TARGETS[choice.key](**choice.values())
    return tempered(make_target(choice), temperature)


@lru_cache(maxsize=128)
def _shared(choice: Choice, temperature: float) -> Target:
    # A target's exact CDFs and quantiles take far longer to compute than a lane takes to start.
    return _make(choice, temperature)


def make_sampler(choice: Choice) -> Sampler:
    """The kernel as an object, shared by all who ask for the same one."""
    cls: Any = SAMPLERS[choice.key]
    return cast(Sampler, _made(cls, choice.params))


def make_gradient(choice: Choice) -> Estimator:
    """The gradient estimator as an object, shared by all who ask for the same one."""
    cls: Any = GRADIENTS[choice.key]
    return cast(Estimator, _made(cls, choice.params))


def make_schedule(choice: Choice) -> Schedule:
    """The step-size schedule as an object, shared by all who ask for the same one."""
    cls: Any = SCHEDULES[choice.key]
    return cast(Schedule, _made(cls, choice.params))


@lru_cache(maxsize=256)
def _made(cls: type[Any], params: tuple[tuple[str, Value], ...]) -> Any:
    # A change of one parameter asks for the lanes' samplers more than twenty times, and none is ever changed.
    return cls(**dict(params))
