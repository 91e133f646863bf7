"""Axes for coordinates that are binned by their logarithm.

Values down to 1e-290 are drawn on a linear axis of log₁₀, with powers of ten as its labels: a browser's
own log axis would be asked to subtract numbers that differ by hundreds of powers of ten.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import CustomJSTickFormatter
from numpy.typing import NDArray

from sgmcmc_lab.samplers.targets.base import Column

Array = NDArray[np.float64]

_POWER = """
const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
const superscript = (n) => (n < 0 ? "⁻" : "") + [...String(Math.abs(n))].map((c) => digits[Number(c)]).join("")
return ticks.every(Number.isInteger) ? "10" + superscript(tick) : Number(Math.pow(10, tick).toPrecision(2)).toString()
"""
"""Powers of ten, or on an axis with ticks between them numbers alone."""


@dataclass(frozen=True)
class Scale:
    """How a column's values become positions on an axis."""

    log: bool
    range: tuple[float, float]

    @classmethod
    def of(cls, column: Column) -> "Scale":
        """The scale of a column, over the range that shows its bulk."""
        low, high = column.axis
        return cls(column.log, (float(np.log10(low)), float(np.log10(high))) if column.log else (low, high))

    def forward(self, values: Array) -> Array:
        """Positions on the axis."""
        if not self.log:
            return values
        return np.log10(np.maximum(values, np.finfo(float).tiny))

    def back(self, position: float) -> float:
        """The value at a position."""
        return float(10.0**position) if self.log else position

    def between(self, position: float, end: float) -> float:
        """From the value at a position to that at another one, which may be beyond the axis by its length."""
        low, high = self.range
        return self.back(float(np.clip(end, 2 * low - high, 2 * high - low))) - self.back(position)

    def label(self, name: str) -> str:
        """The axis label."""
        return f"{name}, log scale" if self.log else name

    def apply(self, axis: Any) -> None:
        """Label the ticks of a Bokeh axis."""
        if self.log:
            axis.formatter = CustomJSTickFormatter(code=_POWER)
