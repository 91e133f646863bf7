"""The average over the later draws of a run, whose number is not known beforehand."""

import numpy as np

from samplers.targets.base import Array


class LaterAverage:
    """The average over about the last half to three quarters of the draws.

    Draws are summed in windows that end at the powers of two; the average is over the last whole window and the
    present one, so the start is forgotten at a fixed pace whatever the number of draws will be.
    """

    def __init__(self, size: int):
        """Of draws (size,)."""
        self.sums = np.zeros((2, size))
        self.draws = 0

    def next(self) -> Array:
        """The array that the next draw is to be added to."""
        if self.draws.bit_count() == 1:
            self.sums[0] = self.sums[1]
            self.sums[1] = 0.0
        self.draws += 1
        return self.sums[1]

    def mean(self) -> Array:
        """Of the draws that count, (size,)."""
        # The last whole window ends at the last power of two below their number, and begins at half of it.
        last = 2 ** ((self.draws - 1).bit_length() - 1) if self.draws > 1 else 0
        return self.sums.sum(axis=0) / (self.draws - last // 2)
