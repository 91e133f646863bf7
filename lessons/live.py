"""Numbers in a lesson's text that follow the controls: ``{= 1/(1 - step_size/2) =}``. Data, never code."""

import math
import re
from collections.abc import Callable

from sgmcmc_lab.samplers import Experiment, SpecError
from sgmcmc_lab.samplers.expressions import evaluate, parse

LIVE = re.compile(r"\{=([^{}]{1,200})=\}")
"""A formula in a text."""
MOST = 20
"""The most formulas of a text."""


def values(spec: Experiment) -> dict[str, float]:
    """Names that a formula may use: numbers of the target, and of each lane with its number, ``step_size2``.

    Without a number a name is that of the first lane that has it.
    """
    out: dict[str, float] = {}
    for i, lane in enumerate(spec.lanes, 1):
        for name, value in (*lane.sampler.params, *lane.gradient.params, *lane.schedule.params):
            if isinstance(value, int | float) and not isinstance(value, bool):
                out[f"{name}{i}"] = float(value)
                out.setdefault(name, float(value))
    for name, value in spec.target.params:
        if isinstance(value, int | float) and not isinstance(value, bool):
            out.setdefault(name, float(value))
    return out


def formulas(text: str) -> list[str]:
    """The formulas of a text, in their order."""
    return [match[1].strip() for match in LIVE.finditer(text)]


def number(formula: str, spec: Experiment) -> str:
    """A formula's value at an experiment, with four digits, whole numbers with all. Raises :class:`SpecError`."""
    known = values(spec)
    (value,) = evaluate([parse(formula, known, "text")], **known)
    found = float(value)
    if not math.isfinite(found):
        raise SpecError("text", formula, "it has no finite value at these settings")
    shown = f"{found:,.0f}" if found == round(found) and abs(found) >= 1000 else f"{found:.4g}"
    return shown.replace("-", "−")


def filled(text: str, spec: Experiment, shown: Callable[[str], str] = str) -> str:
    """A text with its numbers at an experiment, each as it is ``shown``."""
    return LIVE.sub(lambda match: shown(number(match[1].strip(), spec)), text)


def check(text: str, spec: Experiment | None) -> None:
    """Raise :class:`SpecError` where a text has a formula that cannot be read, or too many of them."""
    listed = formulas(text)
    if text.count("{=") != len(listed):
        raise SpecError(
            "text",
            text[text.rindex("{=") :][:40],
            "a number is written {= formula =} in one line, without braces in it",
        )
    if len(listed) > MOST:
        raise SpecError("text", len(listed), f"allowed are {MOST} numbers that follow the controls")
    if listed and spec is None:
        raise SpecError("text", listed[0], "the step has no experiment whose values it could name")
    for formula in listed:
        assert spec is not None
        number(formula, spec)
