"""The average over the later draws of a run, whose number is not known beforehand."""

from typing import ClassVar

import numpy as np

from sgmcmc_lab.samplers.targets.base import Array


class LaterAverage:
    """The average over about the last half to three quarters of the draws.

    Draws are summed in windows that end at the powers of two; the average is over the last whole window and the
    present one, so the start is forgotten at a fixed pace whatever the number of draws will be.
    """

    NOTHING: ClassVar[float] = 0.0
    """The first value of a sum."""

    def __init__(self, size: int):
        """Average draws (size,)."""
        self.sums = np.full((2, size), self.NOTHING)
        self.draws = 0

    def next(self) -> Array:
        """The array that the next draw is to be added to."""
        if self.draws.bit_count() == 1:
            self.sums[0] = self.sums[1]
            self.sums[1] = self.NOTHING
        self.draws += 1
        return self.sums[1]

    def counted(self) -> int:
        """How many draws count."""
        # The last whole window ends at the last power of two below their number, and begins at half of it.
        last = 2 ** ((self.draws - 1).bit_length() - 1) if self.draws > 1 else 0
        return self.draws - last // 2

    def mean(self) -> Array:
        """The mean of the draws that count, (size,)."""
        return self.sums.sum(axis=0) / self.counted()


class LaterLogAverage(LaterAverage):
    """The average of numbers that underflow, by their logarithms."""

    NOTHING = -1e300

    def add(self, logs: Array) -> None:
        """Count a draw, by its logs (size,)."""
        sums = self.next()
        np.logaddexp(sums, logs, out=sums)

    def mean(self) -> Array:
        """The log of the average of the draws that count, (size,)."""
        return np.logaddexp(*self.sums) - np.log(self.counted())
