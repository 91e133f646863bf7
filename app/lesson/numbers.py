"""The numbers of a step's text that follow the controls: see :mod:`lessons.live`."""

from html import escape
from typing import Any

import param
from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import ASSETS
from sgmcmc_lab.lessons.live import number
from sgmcmc_lab.samplers import Experiment, SpecError

UNKNOWN = "–"
"""The text in place of a number that the running experiment does not have."""


class Numbers(JSComponent):
    """Knows the formulas of a text, and puts their values into it."""

    values = param.List([], doc="The number of each formula, as text.")

    _esm = ASSETS / "numbers.js"

    def __init__(self, experiment: Experiment, **params: Any):
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed", **params)
        self._experiment = experiment
        self._formulas: list[str] = []

    def html(self, formula: str) -> str:
        """A formula's value now, as the part of a text that will follow."""
        if formula not in self._formulas:
            self._formulas.append(formula)
            self.follow(self._experiment)
        n = self._formulas.index(formula)
        return f"<span class='live-number' data-n='{n}' title='{escape(formula)}'>{self.values[n]}</span>"

    def follow(self, experiment: Experiment) -> None:
        """Give the values at another experiment."""
        self._experiment = experiment
        self.values = [_value(formula, experiment) for formula in self._formulas]


def _value(formula: str, experiment: Experiment) -> str:
    try:
        return number(formula, experiment)
    except SpecError:
        return UNKNOWN
