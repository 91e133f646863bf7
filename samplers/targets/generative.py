"""A typed posterior read as a program that makes data: parameters by ancestral draws, then the rows."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import special

from sgmcmc_lab.samplers.expressions import Expression, name, parse
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.draws import LAWS, Law, Truncated
from sgmcmc_lab.samplers.expressions.grammar import tokens
from sgmcmc_lab.samplers.expressions.nodes import Kind
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.targets.base import Array
from sgmcmc_lab.samplers.targets.bounded import Bounded

MAX_TRIES = 200
"""Times as many draws as are wanted are made at most until enough are within their bounds."""
_FLAT = Law(
    lambda rng, shape, low, high: low + (high - low) * rng.random(shape),
    (
        lambda y, low, high: (y - low) / (high - low),
        lambda y, low, high: (high - y) / (high - low),
        lambda p, low, high: low + (high - low) * p,
        lambda p, low, high: high - (high - low) * p,
    ),
)
"""The distribution of a parameter between two bounds without a prior of its own."""


class Density(NamedTuple):
    """One density of one variable, given others."""

    variable: str
    law: Law
    arguments: tuple[Expression, ...]
    log_density: Expression
    """The log density, of the variable and of the variables in the arguments."""

    @property
    def parents(self) -> frozenset[str]:
        """The variables that must be drawn before."""
        return frozenset().union(*(each.names for each in self.arguments))

    @property
    def whole(self) -> bool:
        return self.law.whole

    def given(self, values: Mapping[str, Array]) -> list[Array]:
        """The arguments where these are the values."""
        return [value_of(each, values) for each in self.arguments]

    def draw(self, rng: Generator, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Draws of the variable; nan where an argument is not allowed."""
        with np.errstate(all="ignore"):
            return np.asarray(self.law.draw(rng, shape, *self.given(values)), dtype=float)


class Mixed(NamedTuple):
    """A mixture of two densities of one variable."""

    share: Expression
    first: "Density | Mixed"
    second: "Density | Mixed"

    @property
    def variable(self) -> str:
        return self.first.variable

    @property
    def parents(self) -> frozenset[str]:
        """The variables that must be drawn before."""
        return self.share.names | self.first.parents | self.second.parents

    @property
    def whole(self) -> bool:
        return self.first.whole or self.second.whole

    def draw(self, rng: Generator, values: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
        """Draws of the one or the other, by chance; nan where the share is none."""
        share, chance = value_of(self.share, values), rng.random(shape)
        one, other = self.first.draw(rng, values, shape), self.second.draw(rng, values, shape)
        return np.where((share >= 0) & (share <= 1), np.where(chance < share, one, other), np.nan)


Part = Density | Mixed


def value_of(expression: Expression, values: Mapping[str, Array]) -> Array:
    """Its values, of the names that it has in it."""
    if expression.kind == Kind.CONSTANT:
        return np.asarray(expression.value)
    return expression.evaluate(**{each: values[each] for each in expression.names})


class Generative:
    """The distribution of parameters and data that a prior and the log density of a row say.

    Both are sums of densities, each of one parameter or column, given others: ``normal_lpdf(a, 0, 5)``. A row may be
    a mixture, as ``log_mix(p, normal_lpdf(y, a, 1), normal_lpdf(y, b, 1))``. A parameter between two bounds of which
    the prior says nothing is uniform there. The prior is that of the parameters within their bounds: where a scale
    or a mean of a bounded one is itself drawn, the product of the densities on the bounds, as it is typed.
    """

    def __init__(self, bounded: Sequence[Bounded], columns: Mapping[str, Array], prior: str, row: str):
        self.bounded, self.columns = tuple(bounded), dict(columns)
        self._typed = prior, row

    @cached_property
    def prior(self) -> tuple[Part, ...]:
        """The distributions of the parameters, one after the other. Raises :class:`SpecError`."""
        text, names = self._typed[0], list(self._bounds)
        said = _parts(text, names, names, "target.prior")
        for part in said.values():
            _check_prior(part, self._bounds, text)
        for each in self.bounded:
            if each.name not in said:
                if not np.isfinite([each.low, each.high]).all():
                    raise SpecError(
                        "target.prior",
                        text,
                        f"it has no density of {each.name}, of which nothing can be drawn then; a density, or two bounds, are needed",
                    )
                said[each.name] = Density(
                    each.name, _FLAT, (_number(each.low), _number(each.high)), _number(-np.log(each.high - each.low))
                )
        return _ordered(said, frozenset(), text, "target.prior")

    @cached_property
    def rows(self) -> tuple[Part, ...]:
        """The distributions of the columns of a row, one after the other. Raises :class:`SpecError`."""
        text, names = self._typed[1], {*self._bounds, *self.columns}
        said = _parts(text, names, list(self.columns), "target.row")
        return _ordered(said, frozenset(names - said.keys()), text, "target.row")

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The columns that are drawn."""
        return tuple(part.variable for part in self.rows)

    @cached_property
    def _bounds(self) -> dict[str, Bounded]:
        return {each.name: each for each in self.bounded}

    @property
    def mapped(self) -> tuple[Density, ...] | None:
        """The prior as densities with an inverse distribution function; None where one has none."""
        found = tuple(part for part in self.prior if isinstance(part, Density) and part.law.tails)
        return found if len(found) == len(self.prior) else None

    def within(self, part: Density, values: Mapping[str, Array]) -> Truncated:
        """The prior of a parameter within its bounds, where these are the parameters that it depends on."""
        bounds = self._bounds[part.variable]
        return Truncated(part.law, bounds.low, bounds.high, part.given(values))

    def parameters(self, rng: Generator, n: int) -> dict[str, Array]:
        """Draws of the parameters from the prior, (n,) each. Raises :class:`SpecError` where few are within bounds."""
        kept: list[dict[str, Array]] = []
        made = found = 0
        while found < n and made < MAX_TRIES * n:
            size = min(2 * n, MAX_TRIES * n - made)
            values: dict[str, Array] = {}
            good = np.ones(size, dtype=bool)
            for part in self.prior:
                bounds = self._bounds[part.variable]
                if isinstance(part, Density) and part.law.tails and not part.parents:
                    # A distribution that is cut off, and is the same in every draw, by its inverse.
                    x = self.within(part, {}).at(special.ndtri(rng.random(size)))
                else:
                    x = part.draw(rng, values, (size,))
                    if isinstance(part, Density) and part.law.width < np.inf and np.isfinite(bounds.low):
                        x = bounds.low + (x - bounds.low) % part.law.width
                values[part.variable] = x
                good &= np.isfinite(x) & (x > bounds.low) & (x < bounds.high)
            made, found = made + size, found + int(good.sum())
            kept.append({each: x[good] for each, x in values.items()})
        if found < n:
            raise SpecError(
                "target.parameters",
                ", ".join(each.name for each in self.bounded),
                f"of {made:,} draws of the prior {found:,} lie within the bounds; other bounds are needed",
            )
        return {each.name: np.concatenate([some[each.name] for some in kept])[:n] for each in self.bounded}

    def data(
        self, rng: Generator, parameters: Mapping[str, Array], rows: slice | Array = slice(None)
    ) -> dict[str, Array]:
        """New outcomes at the covariates of some rows, (n, rows) each, of parameters (n,) each."""
        columns = {title: x[rows] for title, x in self.columns.items()}
        n, size = len(next(iter(parameters.values()))), len(next(iter(columns.values())))
        values = {each: x[:, None] for each, x in parameters.items()} | columns
        out = {}
        for part in self.rows:
            out[part.variable] = values[part.variable] = part.draw(rng, values, (n, size))
        return out


def coordinates(bounded: Sequence[Bounded], values: Mapping[str, Array]) -> Array:
    """θ (..., dim) of parameters (...): the inverse of :meth:`Bounded.value`."""
    return np.stack([each.coordinates(values[each.name]) for each in bounded], axis=-1)


def log_stretch(bounded: Sequence[Bounded], values: Mapping[str, Array]) -> Array:
    """log |∂θ/∂ parameters| (...): of the maps in :func:`coordinates`, by themselves and not by :class:`Bounded`."""
    total: Array = np.zeros(np.shape(next(iter(values.values()))))
    with np.errstate(all="ignore"):
        for each in bounded:
            x, low, high = values[each.name], each.low, each.high
            if np.isfinite(low) and np.isfinite(high):
                total = total + np.log(high - low) - np.log(x - low) - np.log(high - x)
            elif np.isfinite(low):
                total = total - np.log(x - low)
            elif np.isfinite(high):
                total = total - np.log(high - x)
    return total


def _number(value: float) -> Expression:
    return parse(repr(float(value)), (), "")


def _split(words: Sequence[str], at: str) -> list[list[str]]:
    """The words between those that part them outside of brackets."""
    out: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == at:
            out.append([])
        else:
            out[-1].append(word)
    return out


def _parts(text: str, names: Iterable[str], variables: Sequence[str], field: str) -> dict[str, Part]:
    """The densities that a sum has in it, by what they are of; numbers in it change nothing."""
    names = tuple(names)
    parse(text, names, field)
    out: dict[str, Part] = {}
    for words in _split([word for _, word in tokens(text)], "+"):
        if _is_number(words):
            continue
        part = _part(words, names, variables, field, text)
        if part.variable in out:
            raise SpecError(
                field,
                text,
                f"it has two densities of {part.variable}, whose product is none that can be drawn from; allowed is one",
            )
        out[part.variable] = part
    return out


def _is_number(words: Sequence[str]) -> bool:
    try:
        parse(" ".join(words), (), "")
    except SpecError:
        return False
    return True


def _part(words: list[str], names: tuple[str, ...], variables: Sequence[str], field: str, text: str) -> Part:
    called, inside = words[0], words[2:-1]
    # The bracket after the name has to end with the last word.
    depth = np.cumsum([(word == "(") - (word == ")") for word in words])
    if words[1:2] == ["("] and words[-1] == ")" and (depth[1:-1] > 0).all() and called not in names:
        given = _split(inside, ",")
        if called == "log_mix":
            share = parse(" ".join(given[0]), names, field)
            first, second = (_part(each, names, variables, field, text) for each in given[1:])
            if first.variable == second.variable:
                return Mixed(share, first, second)
            raise SpecError(
                field,
                text,
                f"it mixes a density of {first.variable} and one of {second.variable}; nothing can be drawn of it: allowed are two of one variable",
            )
        if called in LAWS and len(given[0]) == 1 and given[0][0] in variables:
            arguments = tuple(parse(" ".join(each), names, field) for each in given[1:])
            variable = given[0][0]
            return Density(variable, LAWS[called], arguments, DENSITIES[called].build(name(variable), *arguments))
    shown = "".join(words)
    shown = shown if len(shown) <= 40 else shown[:39] + "…"
    of = "a parameter" if field == "target.prior" else "a column"
    raise SpecError(
        field,
        text,
        f"{shown} is no density of {of} by itself, so that nothing can be drawn of it; a sum of densities as normal_lpdf({variables[0]}, 0, 5) can be drawn from",
    )


def _check_prior(part: Part, bounds: Mapping[str, Bounded], text: str) -> None:
    if isinstance(part, Mixed):
        _check_prior(part.first, bounds, text)
        _check_prior(part.second, bounds, text)
        return
    each, law = bounds[part.variable], part.law
    if law.whole:
        raise SpecError(
            "target.prior",
            text,
            f"the density of {each.name} is one of whole numbers, and {each.name} is any number; nothing can be drawn of it",
        )
    if each.low < law.low:
        raise SpecError(
            "target.prior",
            text,
            f"the density of {each.name} is 0 below {law.low:g}, where {each.name} may be; {each.name} > {law.low:g} can be drawn from",
        )
    if each.high - each.low > law.width * (1 + 1e-9):
        raise SpecError(
            "target.prior",
            text,
            f"{each.name} is an angle without bounds one turn apart; −3.141592653589793 < {each.name} < 3.141592653589793 can be drawn from",
        )


def _ordered(parts: Mapping[str, Part], known: frozenset[str], text: str, field: str) -> tuple[Part, ...]:
    """In an order in which each is drawn after what it depends on."""
    left, out = dict(parts), []
    while left:
        found = [variable for variable, part in left.items() if part.parents <= known]
        if not found:
            why = (
                "depend on each other, so that none can be drawn first"
                if len(left) > 1
                else "depends on itself, and so cannot be drawn"
            )
            raise SpecError(field, text, f"{' and '.join(left)} {why}")
        out += [left.pop(variable) for variable in found]
        known |= frozenset(found)
    return tuple(out)
