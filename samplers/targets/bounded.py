"""Parameters with bounds, and the coordinates that stand for them, which may be any numbers."""

import re
from typing import NamedTuple

import numpy as np

from sgmcmc_lab.samplers.expressions import Expression, apply, constant, name
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array

MAX_PARAMETERS = 10
MAX_NAME = 20
"""Characters of a parameter's name."""


class Bounded(NamedTuple):
    """A parameter of the model, and the coordinate that stands for it, which may be any number."""

    name: str
    low: float
    high: float

    @property
    def _free(self) -> bool:
        return self.low == -np.inf and self.high == np.inf

    @property
    def _between(self) -> bool:
        return self.low > -np.inf and self.high < np.inf

    def value(self, theta: Expression) -> Expression:
        """The parameter, of its coordinate."""
        if self._free:
            return theta
        if self._between:
            return self.low + (self.high - self.low) * apply("inv_logit", theta)
        return self.high - apply("exp", theta) if self.low == -np.inf else self.low + apply("exp", theta)

    def log_jacobian(self, theta: Expression) -> Expression:
        """log |d parameter / d coordinate|."""
        if self._free:
            return constant(0.0)
        if self._between:
            return float(np.log(self.high - self.low)) - apply("log1p_exp", theta) - apply("log1p_exp", -theta)
        return theta

    @property
    def log_slope(self) -> str:
        """log |d parameter / d coordinate| as a formula of the parameter, up to a constant; empty where it is 1."""
        ends = [f"log({self.name} - ({self.low!r}))"] if self.low > -np.inf else []
        ends += [f"log({self.high!r} - {self.name})"] if self.high < np.inf else []
        return " + ".join(ends)

    @property
    def declaration(self) -> str:
        """The text that declares it."""
        low, high = (repr(float(f"{bound:.15g}")).removesuffix(".0") for bound in (self.low, self.high))
        if self._between:
            return f"{low} < {self.name} < {high}"
        return self.name if self._free else f"{self.name} < {high}" if self.low == -np.inf else f"{self.name} > {low}"

    def constrained(self, theta: Array) -> Array:
        """The parameter at these values of its coordinate."""
        return np.broadcast_to(self.value(name("theta")).evaluate(theta=theta), np.shape(theta))

    def coordinates(self, value: Array) -> Array:
        """The coordinate at these values of the parameter; infinite at its bounds, and no number beyond them."""
        value = np.asarray(value, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._free:
                return value
            if self._between:
                return np.asarray(np.log(value - self.low) - np.log(self.high - value))
            return np.asarray(np.log(self.high - value) if self.low == -np.inf else np.log(value - self.low))

    @property
    def coordinate(self) -> str:
        """The coordinate, in words."""
        if self._free:
            return self.name
        if self._between:
            return f"logit {self.name}" if (self.low, self.high) == (0, 1) else f"scaled logit {self.name}"
        if self.low == -np.inf:
            return f"log({self.high:g} − {self.name})"
        return f"log {self.name}" if self.low == 0 else f"log({self.name} − {self.low:g})"

    @property
    def jacobian(self) -> str:
        """The contribution of the coordinate to the log density, in words; empty where it adds nothing."""
        if self._between:
            return f"log {self.high - self.low:g} − log(1 + e^θ) − log(1 + e^−θ)"
        return "" if self._free else "θ"


_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DECLARATION = re.compile(
    rf"(?:(?P<low>{_NUMBER})\s*<\s*)?(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    rf"(?:\s*(?P<sign>[<>])\s*(?P<bound>{_NUMBER}))?"
)
MAX_BOUND = 1e6
"""The largest size of a bound."""


def declarations(text: str, field: str) -> tuple[Bounded, ...]:
    """The parameters of a text as ``a, s > 0, 0 < p < 1``. Raises :class:`SpecError`."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_PARAMETERS:
        raise SpecError(field, text, f"there are {len(parts)} names; allowed are at most {MAX_PARAMETERS}")
    made: list[Bounded] = []
    for part in parts:
        found = _DECLARATION.fullmatch(part)
        if found is None:
            raise SpecError(
                field,
                part,
                "allowed are names with commas between them, each with numbers as bounds or without any, as in a, s > 0, 0 < p < 1",
            )
        low, high = -np.inf, np.inf
        if found["low"] is not None:
            low = float(found["low"])
        if found["sign"] == ">":
            if found["low"] is not None:
                raise SpecError(field, part, "it has two lower bounds; allowed is s > 0, s < 1 or 0 < s < 1")
            low = float(found["bound"])
        elif found["sign"] == "<":
            high = float(found["bound"])
        typed = [float(found[bound]) for bound in ("low", "bound") if found[bound] is not None]
        if not low < high or max(map(abs, typed), default=0.0) > MAX_BOUND:
            raise SpecError(
                field,
                part,
                f"allowed is a lower bound below the upper one, both from −{MAX_BOUND:g} to {MAX_BOUND:g}",
            )
        called = found["name"]
        if len(called) > MAX_NAME:
            raise SpecError(field, called, f"allowed are names of at most {MAX_NAME} characters")
        if called in FUNCTIONS or called in DENSITIES or called == "pi":
            raise SpecError(field, called, "it is the name of a function or a number; allowed is another name")
        if called in {each.name for each in made}:
            raise SpecError(field, called, "it is there twice; allowed are different names")
        made.append(Bounded(called, low, high))
    return tuple(made)
