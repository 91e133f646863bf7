"""The targets, one a file, in the order of the menu."""

from samplers.registry import Registry
from samplers.targets.base import Target
from samplers.targets.dirichlet import DenseDirichlet, SparseDirichlet
from samplers.targets.gamma import Gamma
from samplers.targets.quartic import Quartic

TARGETS: Registry[type[Target]] = Registry(
    "target",
    Quartic,
    Gamma,
    SparseDirichlet,
    DenseDirichlet,
)
