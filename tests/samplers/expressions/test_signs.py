"""The normal form takes for non-negative only what is: of every function, both signs of its values are tried."""

import numpy as np
import pytest

from sgmcmc_lab.samplers.expressions import evaluate, normal_form, parse
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from tests.helpers.cases import for_each

X = np.concatenate([np.linspace(-4.9, 4.9, 99) + 0.013, [-0.3, 0.3]])
FORMS = {
    "sqrt({f}^2)": np.abs,
    "({f}^2)^(3/2)": lambda f: np.abs(f) ** 3,
    "abs({f})": np.abs,
    "sqrt(({f})^2*(theta - 1)^4)": lambda f: np.abs(f) * (X - 1) ** 2,
    "({f}^4)^(1/4)": np.abs,
    "sqrt((-3*{f})^2)": lambda f: 3 * np.abs(f),
}
"""Texts with a function's value f, and what they are in NumPy."""


def outside(key):
    """How far the forms are from NumPy's, where the function is defined."""
    with np.errstate(all="ignore"):
        f = FUNCTIONS[key].evaluate(X)
        good = np.isfinite(f) & (np.abs(f) < 1e3)
        found = {text: evaluate([parse(text.format(f=f"{key}(theta)"), ["theta"], "f")], theta=X)[0] for text in FORMS}
        return max(
            float(np.max(np.abs(found[text][good] - of(f)[good]) / (1 + np.abs(of(f)[good]))))
            for text, of in FORMS.items()
        )


@for_each("key", FUNCTIONS)
def test_a_root_of_a_square_is_the_absolute_value(key):
    assert outside(key) < 1e-9


@pytest.mark.parametrize("key", [key for key in FUNCTIONS if key not in ("abs", "exp", "cosh", "inv_logit", "sqrt")])
def test_fault_a_function_taken_for_non_negative(key, monkeypatch):
    """The planted fault, for each function that has negative values: those that have none may be taken for it."""
    true = normal_form._nonnegative
    monkeypatch.setattr(normal_form, "_nonnegative", lambda node: true(node) or node.label == key)
    with np.errstate(all="ignore"):
        negative = (FUNCTIONS[key].evaluate(X) < 0).any()
    assert (outside(key) > 1e-3) == negative
