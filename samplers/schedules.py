"""Step-size schedules: the step size of each step of a lane, as a share of the sampler's own.

With a schedule the draws are weighted by their step sizes: E φ ≈ Σ ε_t φ(θ_t) / Σ ε_t (Welling & Teh 2011). θ_t is the
state in which the step with ε_t ends. Teh, Thiéry & Vollmer 2016 weight the state in which it begins; the limit is the
same.
"""

from math import exp, log1p
from typing import ClassVar

import numpy as np
import param
from numpy.typing import NDArray

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.parameters import Real, Value, check_all, declared
from sgmcmc_lab.samplers.registry import Registry


@jit.helper
def share_of_step(schedule, t):
    """ε_t/ε of the step with the number ``t``, counted from 0."""
    return exp(-schedule[1] * log1p(t / schedule[0]))


class Schedule(param.Parameterized):
    """A rule for the step sizes of a lane. Instances are never changed after they are made."""

    key: ClassVar[str]
    title: ClassVar[str]
    update: ClassVar[str]
    """ε_t, in LaTeX."""

    def __init__(self, **values: Value):
        """Raises :class:`~samplers.parameters.SpecError` for a value that is not allowed."""
        super().__init__(**dict(check_all(type(self), "schedule", values)))

    def packed(self) -> NDArray[np.float64]:
        """The parameters as :func:`share_of_step` reads them; empty where all steps have the same size."""
        return np.zeros(0)

    def shares(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """ε_t/ε of the steps with these numbers, counted from 0."""
        return np.ones(len(steps))

    @property
    def falls(self) -> bool:
        """Whether the step size falls along the run, so that the draws have weights."""
        return len(self.packed()) > 0

    @property
    def equations(self) -> tuple[str, ...]:
        """:attr:`update` and its numbers where the step size falls, beside the update of the sampler."""
        if not self.falls:
            return ()
        values = [(parameter, getattr(self, name)) for name, parameter in declared(type(self))]
        return (self.update, r",\ ".join(rf"{parameter.tex} = {value:.3g}" for parameter, value in values))


class Constant(Schedule):
    """All steps have the same size, and all draws the same weight."""

    key = "constant"
    title = "Constant"
    update = r"\epsilon_t = \epsilon"


class Polynomial(Schedule):
    """Step t has the size ε(1 + t/b)^−γ, and its draw has that weight.

    This is a(b + t)^−γ of Welling & Teh 2011 with a = εb^γ: ε is the first step. With γ > 0 the bias vanishes as the
    run goes on, and the chain slows down. For a method of weak order 1 the mean squared error falls fastest, as n^−2/3,
    with γ = 1/3 (Teh, Thiéry & Vollmer 2016, whose abstract gives n^−1/3, the rate of its root); with a constant step
    it ends at a plateau, the square of the bias.
    """

    key = "polynomial"
    title = "Polynomial"
    update = r"\epsilon_t = \epsilon\,(1 + t/b)^{-\gamma}"

    exponent = Real(
        1 / 3,
        bounds=(0.0, 1.0),
        tex=r"\gamma",
        label="Exponent γ",
        doc="The power with which the step size falls; 0 leaves it constant. The means converge for every exponent up to 1.",
    )
    offset = Real(
        100.0,
        bounds=(1.0, 1e6),
        log=True,
        tex="b",
        label="Offset b",
        doc="The number of steps during which the step size stays near ε; at t = b it has fallen by 2^−γ.",
    )

    def packed(self) -> NDArray[np.float64]:
        """b and γ; empty where γ is 0."""
        return np.array([self.offset, self.exponent]) if self.exponent > 0 else np.zeros(0)

    def shares(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """(1 + t/b)^−γ."""
        return np.asarray(np.exp(-self.exponent * np.log1p(steps / self.offset)))


SCHEDULES: Registry[type[Schedule]] = Registry("schedule", Constant, Polynomial)
