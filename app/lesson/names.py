"""A step's names of its lanes, which the page shows as long as they hold for the running lanes."""

from sgmcmc_lab.lessons import Step
from sgmcmc_lab.lessons.specs import PARTS
from sgmcmc_lab.samplers import Experiment, Lane


def names(step: Step, running: Experiment) -> list[str]:
    """The step's name of each lane; empty where it has none, and where what the name tells it by was changed."""
    listed = step.names + ("",) * (len(running.lanes) - len(step.names))
    if step.spec is None or step.spec.target.key != running.target.key:
        return [""] * len(running.lanes)
    claimed = step.spec.lanes
    return [
        name if i < len(claimed) and _still(name, claimed[i], claimed, lane) else ""
        for i, (name, lane) in enumerate(zip(listed, running.lanes, strict=False))
    ]


def _still(name: str, claimed: Lane, siblings: tuple[Lane, ...], lane: Lane) -> bool:
    """Whether a lane has what sets it apart: sampler, gradient, and the values in which its siblings differ."""
    if any(getattr(lane, part).key != getattr(claimed, part).key for part in PARTS):
        return False
    before, now = _values(claimed), _values(lane)
    twins = [_values(other) for other in siblings if other is not claimed and other.sampler.key == claimed.sampler.key]
    telling = {key for key, value in before.items() if any(twin.get(key, value) != value for twin in twins)}
    # A name that tells a value, with nothing beside it to tell which, is of all of them.
    if not telling and "=" in name:
        telling = set(before)
    return all(now[key] == before[key] for key in telling)


def _values(lane: Lane) -> dict[str, object]:
    return {f"{part}.{name}": value for part in PARTS for name, value in getattr(lane, part).values().items()}
