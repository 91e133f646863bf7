"""Messages name a field as a link has it; the page says its label, too."""

import re

from sgmcmc_lab.lessons.specs import check_address
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.parameters import SpecError, declared
from sgmcmc_lab.samplers.settings import ANY_SAMPLER, ANY_TARGET, settings_of

OF_THE_PAGE = {
    "axis": "x axis",
    "coordinate": "Coordinate",
    "show": "Pictures show",
    "slow": "Steps per frame, at its slow end",
    "speed": "Steps per frame",
    "target": "Target",
    "sampler": "Sampler",
    "gradient": "Gradient",
}
"""The page's labels of fields that are no parameters."""
_FIELD = re.compile(r"^[A-Za-z][\w.]*(?= = )", re.MULTILINE)


def with_labels(message: str, experiment: Experiment) -> str:
    """A message whose sentences begin with fields, with the page's label before each that the page has."""

    def named(field: re.Match[str]) -> str:
        label = _label(field[0], experiment)
        return f"{label} ({field[0]})" if label else field[0]

    return _FIELD.sub(named, message)


def _label(field: str, experiment: Experiment) -> str:
    settings = settings_of(experiment.target.key)
    if field in settings:
        return str(settings[field].label)
    try:
        check_address(experiment, field)
    except SpecError:
        return OF_THE_PAGE.get(field, "")
    *_, part, name = field.split(".")
    lanes = experiment.lanes
    owners = {
        "target": [ANY_TARGET[experiment.target.key]],
        "sampler": [ANY_SAMPLER[lane.sampler.key] for lane in lanes],
        "gradient": [GRADIENTS[lane.gradient.key] for lane in lanes if lane.gradient.key in GRADIENTS],
    }[part]
    return next(str(dict(declared(owner))[name].label) for owner in owners if name in dict(declared(owner)))
