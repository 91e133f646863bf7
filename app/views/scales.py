"""Axes for coordinates that are binned by their logarithm.

Values down to 1e-290 are drawn on a linear axis of log₁₀, with powers of ten as its labels: a browser's
own log axis would be asked to subtract numbers that differ by hundreds of powers of ten.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import CustomJSTicker, CustomJSTickFormatter
from numpy.typing import NDArray

from sgmcmc_lab.samplers.targets.base import Column

Array = NDArray[np.float64]

_TICKS = """
const low = Math.min(cb_data.range.start, cb_data.range.end), high = Math.max(cb_data.range.start, cb_data.range.end)
const inside = (places) => places.filter((place) => low <= place && place <= high)
const multiples = (step, from, to) => Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, i) => (Math.ceil(from / step) + i) * step)
if (!(high - low > 1e-9 && high - low < 1e4)) return []
if (high - low > 3) return multiples([1, 2, 5, 10, 20, 50, 100].find((step) => 7 * step > high - low) ?? 1000, low, high)
const digits = high - low > 1.5 ? [1, 3] : [1, 2, 5]
const found = inside(multiples(1, Math.floor(low), high).flatMap((power) => digits.map((digit) => power + Math.log10(digit))))
if (found.length > 2) return found
const [least, most] = [10 ** low, 10 ** high]
const power = 10 ** Math.floor(Math.log10((most - least) / 2))
const step = [5, 2, 1].map((digit) => digit * power).find((one) => 2 * one <= most - least) ?? power
return inside(multiples(step, least, most).map(Math.log10))
"""
"""Powers of ten where the axis spans more than three decades; on less, 1 and 3 or 1, 2 and 5 times them; on one with
fewer than three of these, multiples of a round number."""
_NUMBER = """
const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
const superscript = (n) => (n < 0 ? "⁻" : "") + [...String(Math.abs(n))].map((c) => digits[Number(c)]).join("")
return ticks.every(Number.isInteger) ? "10" + superscript(tick) : Number(Math.pow(10, tick).toPrecision(6)).toString()
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
        """Place the ticks of a Bokeh axis, and label them."""
        if self.log:
            axis.ticker = CustomJSTicker(major_code=_TICKS)
            axis.formatter = CustomJSTickFormatter(code=_NUMBER)
