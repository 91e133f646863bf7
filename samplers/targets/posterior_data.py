"""The tables of the typed posterior: published ones, and some that are made by a seed."""

from collections.abc import Callable

import numpy as np

from samplers.targets.own import Table


def doses() -> Table:
    """Beetles that carbon disulphide killed (Bliss 1935): one row a beetle, (481,).

    The dose is its logarithm to the base of ten, less 1.79.
    """
    dose = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839]) - 1.79
    exposed = np.array([59, 60, 62, 56, 63, 59, 62, 60])
    killed = np.array([6, 13, 18, 28, 52, 53, 61, 60])
    x = np.repeat(dose, exposed)
    y = np.concatenate([np.arange(n) < k for n, k in zip(exposed, killed, strict=True)]).astype(float)
    return Table(("dose",), x[:, None], "y", y)


def line() -> Table:
    """Forty points about y = 1 + 2x, six of which are errors of another kind."""
    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1, 40)
    y = 1 + 2 * x + 0.3 * rng.standard_normal(40)
    y[rng.choice(40, 6, replace=False)] += 3 * rng.standard_normal(6) + 3
    return Table(("x",), x[:, None], "y", np.round(y, 3))


def counts() -> Table:
    """Counts whose logarithm grows with x, (60,)."""
    rng = np.random.default_rng(5)
    x = np.linspace(0, 2, 60)
    return Table(("x",), x[:, None], "y", rng.poisson(np.exp(0.3 + 0.7 * x)).astype(float))


def mixture() -> Table:
    """A hundred draws of ½N(0, 2) + ½N(1, 2), as Welling & Teh 2011, section 5.1, have them."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 100) + np.sqrt(2) * rng.standard_normal(100)
    return Table(("row",), np.arange(100.0)[:, None], "y", np.round(y, 3))


def coal() -> Table:
    """Disasters of British coal mines in each year from 1851 to 1962 (Jarrett 1979): t is the year less 1851."""
    text = (
        "4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3 1 "
        "0 3 2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 4 2 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1 0"
    )
    y = np.array(text.split(), dtype=float)
    return Table(("t",), np.arange(len(y), dtype=float)[:, None], "y", y)


def schools() -> Table:
    """The effect of coaching in eight schools, and its standard error (Rubin 1981)."""
    effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    school = np.arange(1.0, 9)
    return Table(("school", "error"), np.column_stack([school, error]), "y", effect)


BUILT_IN: dict[str, Callable[[], Table]] = {
    "doses": doses, "line": line, "counts": counts, "mixture": mixture, "coal": coal, "schools": schools,
}  # fmt: skip
