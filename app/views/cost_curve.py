"""The distance from the target against the data that were looked at for it."""

from dataclasses import replace

from sgmcmc_lab.app.views.base import Scene, View
from sgmcmc_lab.app.views.ks import KS
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.requirements import BATCH
from sgmcmc_lab.samplers.targets import TARGETS


class Bought(KS):
    """The KS distance of each lane against data touched, whatever the other curves are drawn against."""

    key = "bought"
    title = "Accuracy per data point"
    follows_axis = False
    hint = "the lowest curve uses the data best"

    def __init__(self, scene: Scene, before: View | None = None):
        super().__init__(replace(scene, axis="data"), before)

    def describe(self) -> None:
        if not self.scene.target.exact_law:
            self.hint = "lowest: best use of the data; dotted: error of the target"

    @classmethod
    def fits(cls, experiment: Experiment) -> bool:
        return BATCH in TARGETS[experiment.target.key].provides
