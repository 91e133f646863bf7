"""A parameter: declared once on its target or sampler, checked here, drawn by the app.

Targets, samplers and gradient estimators are ``param.Parameterized`` classes whose parameters hold
default, bounds, label, unit, LaTeX symbol and help. The values of an experiment travel in a frozen
:class:`~samplers.experiment.RunSpec`; this module turns them from untrusted input into checked values.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any
from unicodedata import category

import param


class SpecError(ValueError):
    """A value that a spec cannot hold: the field, the value, and what is allowed."""

    def __init__(self, field: str, value: Any, allowed: str):
        try:
            shown = repr(value)
        except RecursionError:
            shown = "what is nested too deeply"
        super().__init__(visible(f"{_cut(field)} = {_cut(shown)}: {allowed}."))
        self.field, self.value, self.allowed = field, value, allowed

    def __reduce__(self) -> tuple[Any, ...]:
        """As an error of another process is sent to this one."""
        return SpecError, (self.field, self.value, self.allowed)


def visible(text: str) -> str:
    """A text whose control characters are written as Python writes them, but for ends of lines.

    Some of them have no sign, and others turn round what stands after them.
    """
    return "".join(_escaped(one) if category(one) in _UNSEEN and one != "\n" else one for one in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of Unicode: controls and formats, what is no character, and ends of lines and paragraphs."""


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _cut(text: str) -> str:
    """A name or a value as a sentence can hold it."""
    return text if len(text) <= 60 else text[:57] + "…"


def written(number: float) -> str:
    """A number as people write it: 4,294,967,295 and 0.5."""
    return f"{number:,.12g}"


class Real(param.Number):
    """A real number with bounds. ``log`` puts its slider on a log scale; ``unit`` and ``tex`` label it."""

    __slots__ = ["log", "tex", "unit"]

    def __init__(self, default: float = 0.0, *, log: bool = False, tex: str = "", unit: str = "", **kw: Any):
        self.log, self.tex, self.unit = log, tex, unit
        super().__init__(default, **kw)


class Count(param.Integer):
    """An integer with bounds; fields as in :class:`Real`."""

    __slots__ = ["log", "tex", "unit"]

    def __init__(self, default: int = 0, *, log: bool = False, tex: str = "", unit: str = "", **kw: Any):
        self.log, self.tex, self.unit = log, tex, unit
        super().__init__(default, **kw)


class Flag(param.Boolean):
    """On or off."""


class Option(param.Selector):
    """One of a fixed list of names."""


UPLOADED = "uploaded"
"""The value of the parameter that names a model's data where they come from a person's own file."""
OWN = "own_"
"""The prefix of the name of an uploaded table; a digest of its numbers follows."""
_OWN_NAME = re.compile(OWN + "[0-9a-f]{16}")


class Source(Option):
    """One of a fixed list of tables, or somebody's own by its digest."""

    def _validate_value(self, value: Any, allow_None: Any = None) -> None:
        """A name that is not listed is that of a person's own table: :func:`check` has looked."""


class CountVector(param.Tuple):
    """A vector of counts, up to ``max_length`` of them, each from 0 to ``max_value``."""

    __slots__ = ["max_length", "max_value", "tex", "unit"]

    def __init__(
        self,
        default: tuple[int, ...] = (),
        *,
        max_length: int = 100,
        max_value: int = 1_000_000,
        tex: str = "",
        unit: str = "",
        **kw: Any,
    ):
        self.max_length, self.max_value, self.tex, self.unit = max_length, max_value, tex, unit
        super().__init__(default, length=None, **kw)

    def _validate_length(self, val: Any, length: Any) -> None:
        """A count vector has no fixed length."""


class RealVector(param.Tuple):
    """A vector of numbers, up to ``max_length`` of them, each from −``max_value`` to ``max_value``; it may be empty."""

    __slots__ = ["max_length", "max_value", "tex", "unit"]

    def __init__(
        self,
        default: tuple[float, ...] = (),
        *,
        max_length: int = 100,
        max_value: float = 1e6,
        tex: str = "",
        unit: str = "",
        **kw: Any,
    ):
        self.max_length, self.max_value, self.tex, self.unit = max_length, max_value, tex, unit
        super().__init__(default, length=None, **kw)

    def _validate_length(self, val: Any, length: Any) -> None:
        """A vector of numbers has no fixed length."""


class Formula(param.String):
    """A typed expression, as text; its owner parses it. It has none of the characters that separate a link's parts."""

    __slots__ = ["tex"]

    def __init__(self, default: str = "", *, tex: str = "", **kw: Any):
        self.tex = tex
        super().__init__(default, **kw)


class Formulas(param.Tuple):
    """Typed expressions, such as the entries of a matrix; up to ``max_length`` of them."""

    __slots__ = ["max_length", "tex"]

    def __init__(self, default: tuple[str, ...] = (), *, max_length: int = 15, tex: str = "", **kw: Any):
        self.max_length, self.tex = max_length, tex
        super().__init__(default, length=None, **kw)

    def _validate_length(self, val: Any, length: Any) -> None:
        """The number of entries depends on the state's layout."""


MAX_FORMULA = 400
"""Characters of a typed expression."""
_NO_FORMULA = ";:~&#"
"""The characters that separate the parts of a link; a comma does so in a list of formulas."""

Value = float | int | bool | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


def declared(owner: type[param.Parameterized]) -> Iterator[tuple[str, param.Parameter]]:
    """The parameters that ``owner`` declares, in order of declaration."""
    for name, parameter in owner.param.objects("existing").items():
        if name != "name":
            yield name, parameter


def allowed(parameter: param.Parameter) -> str:
    """The values that a parameter takes, as the end of a sentence."""
    if isinstance(parameter, Option):
        own = ", or a file of your own" if isinstance(parameter, Source) else ""
        return "allowed is one of " + ", ".join(map(str, parameter.objects)) + own
    if isinstance(parameter, Flag):
        return "allowed is true or false"
    if isinstance(parameter, CountVector):
        return (
            f"allowed are 1 to {parameter.max_length} whole numbers from 0 to "
            f"{parameter.max_value:,}, separated by commas"
        )
    if isinstance(parameter, RealVector):
        return (
            f"allowed are up to {parameter.max_length} numbers from {written(-parameter.max_value)} to "
            f"{written(parameter.max_value)}, separated by commas"
        )
    if isinstance(parameter, (Formula, Formulas)):
        what, comma = ("are formulas", ", ") if isinstance(parameter, Formulas) else ("is a formula", "")
        return f"allowed {what} of up to {MAX_FORMULA} characters, without {comma}; : ~ & and #"
    kind = "a whole number" if isinstance(parameter, Count) else "a number"
    low, high = parameter.bounds
    return f"allowed is {kind} from {written(low)} to {written(high)}"


def check(parameter: param.Parameter, field: str, value: Any) -> Value:
    """The value as the parameter's own type, or :class:`SpecError`."""
    try:
        converted = _convert(parameter, value)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise SpecError(field, value, allowed(parameter)) from None
    if isinstance(parameter, (Real, Count)):
        low, high = parameter.bounds
        if not low <= converted <= high:
            raise SpecError(field, value, allowed(parameter))
    return converted


def nearest(parameter: param.Parameter, value: Any) -> Value:
    """The nearest allowed value, or the default where nothing is near."""
    if isinstance(parameter, (Real, Count)):
        try:
            number = number_of(value)
        except (TypeError, ValueError, OverflowError):
            return parameter.default
        if math.isnan(number):
            return parameter.default
        low, high = parameter.bounds
        number = min(max(number, low), high)
        return round(number) if isinstance(parameter, Count) else number
    return parameter.default


def _convert(parameter: param.Parameter, value: Any) -> Value:
    if isinstance(parameter, Flag):
        words = {"true": True, "1": True, "false": False, "0": False}
        return words[str(value).lower()]
    if isinstance(parameter, Source) and isinstance(value, str) and _OWN_NAME.fullmatch(value):
        return value
    if isinstance(parameter, Option):
        return parameter.objects[parameter.objects.index(value)]
    if isinstance(parameter, CountVector):
        items = value.replace(" ", "").split(",") if isinstance(value, str) else list(value)
        counts = tuple(_whole(item) for item in items)
        if not 1 <= len(counts) <= parameter.max_length or max(counts) > parameter.max_value or min(counts) < 0:
            raise ValueError
        return counts
    if isinstance(parameter, RealVector):
        return _numbers(value, parameter)
    if isinstance(parameter, Formula):
        return _formula(value, _NO_FORMULA)
    if isinstance(parameter, Formulas):
        texts = (value.split(",") if value else []) if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or len(texts) > parameter.max_length:
            raise ValueError
        return tuple(_formula(text, "," + _NO_FORMULA) for text in texts)
    if isinstance(parameter, Count):
        return _whole(value)
    return _finite(value)


def _numbers(value: Any, parameter: RealVector) -> tuple[float, ...]:
    items = (value.split(",") if value.strip() else []) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or len(items) > parameter.max_length:
        raise ValueError
    numbers = tuple(_finite(item) for item in items)
    if any(abs(number) > parameter.max_value for number in numbers):
        raise ValueError
    return numbers


def _formula(value: Any, without: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_FORMULA or set(without) & set(value):
        raise ValueError
    return value.strip()


_TYPED = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


def number_of(value: Any) -> float:
    """A number, also as text in the digits 0 to 9. Python's float takes underscores and the digits of all scripts.

    Raises TypeError, ValueError or OverflowError where it is none.
    """
    if isinstance(value, str) and not _TYPED.fullmatch(value.strip()):
        raise ValueError
    return float(value)


def _finite(value: Any) -> float:
    number = number_of(value)
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return number


def _whole(value: Any) -> int:
    number = _finite(value)
    if not number.is_integer():
        raise ValueError
    return int(number)


def check_all(owner: type[param.Parameterized], field: str, values: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    """All of ``owner``'s parameters with their values, in order, defaults filled in.

    Raises :class:`SpecError` for a parameter that ``owner`` does not have and for a value that is
    not allowed.
    """
    known = dict(declared(owner))
    for name in values:
        if name not in known:
            names = ", ".join(known) or "none"
            raise SpecError(f"{field}.{name}", values[name], f"there is no such parameter; there are: {names}")
    return tuple(
        (name, check(parameter, f"{field}.{name}", values[name]) if name in values else parameter.default)
        for name, parameter in known.items()
    )
