"""How controls are named where a link or a lesson leaves some out: see :mod:`lessons.specs` for addresses."""

import re
from collections.abc import Iterable

from sgmcmc_lab.lessons import Step


def general(name: str) -> str:
    """An address without its lane: ``sampler.step_size``."""
    return re.sub(r"^lane[1-9]\.", "", name)


def shows(step: Step, name: str) -> bool:
    """Whether a step leaves this control, an address or a word, to the student."""
    return bool({name, general(name)} & set(step.controls))


def is_hidden(name: str, hidden: Iterable[str]) -> bool:
    """Whether a link leaves out this control: by its address, that of every lane, or the group that it is of."""
    shared = general(name)
    group = shared.partition(".")[0]
    return bool({name, shared, group} & set(hidden))
