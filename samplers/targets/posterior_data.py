"""The tables of the typed posterior: published ones, and some that are made by a seed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgmcmc_lab.samplers.targets.own import Table


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
    """The effect of coaching in eight schools, and its standard error (Rubin 1981); s1 is 1 in the first school."""
    effect = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    error = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    names = ("error", *(f"s{k}" for k in range(1, 9)))
    return Table(names, np.column_stack([error, np.eye(8)]), "y", effect)


def funnel() -> Table:
    """Six groups of three data points each, whose means have an unknown spread; g1 is 1 in the first group."""
    rng = np.random.default_rng(11)
    mean = 0.3 * rng.standard_normal(6)
    y = np.round(np.repeat(mean, 3) + rng.standard_normal(18), 3)
    return Table(tuple(f"g{k}" for k in range(1, 7)), np.repeat(np.eye(6), 3, axis=0), "y", y)


def remission() -> Table:
    """Weeks of remission of 42 children with leukaemia, half of them with the drug 6-MP (Freireich et al. 1963).

    ``ended`` is 0 for a remission that outlasted the study: the weeks are then a lower bound.
    """
    drug = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
    placebo = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
    patients = f"{drug} {placebo}".split()
    ended = np.array([not each.endswith("+") for each in patients], dtype=float)
    weeks = np.array([float(each.rstrip("+")) for each in patients])
    return Table(("drug", "ended"), np.column_stack([np.repeat([1.0, 0.0], 21), ended]), "weeks", weeks)


class Preset(NamedTuple):
    """A table, and a model of it."""

    table: Callable[[], Table]
    parameters: str
    prior: str
    row: str
    curve: str = ""


_NORMALS = " + ".join(f"normal_lpdf(e{k}, {{0}})" for k in range(1, 9))
_MEANS = " + ".join(f"e{k}*s{k}" for k in range(1, 9))
_EFFECTS = ", ".join(f"e{k}" for k in range(1, 9))

PRESETS: dict[str, Preset] = {
    "doses": Preset(doses, "a, b", "normal_lpdf(a, 0, 5) + normal_lpdf(b, 0, 50)", "bernoulli_logit_lpmf(y, a + b*dose)", "inv_logit(a + b*dose)"),
    "counts": Preset(counts, "a, b", "normal_lpdf(a, 0, 3) + normal_lpdf(b, 0, 3)", "poisson_log_lpmf(y, a + b*x)", "exp(a + b*x)"),
    "outliers": Preset(line, "a, b, s > 0", "normal_lpdf(a, 0, 5) + normal_lpdf(b, 0, 5) + exponential_lpdf(s, 1)", "student_t_lpdf(y, 2, a + b*x, s)", "a + b*x"),
    "two_means": Preset(mixture, "a, b", "normal_lpdf(a, 0, 3.1623) + normal_lpdf(b, 0, 1)", "log_mix(0.5, normal_lpdf(y, a, 1.4142), normal_lpdf(y, a + b, 1.4142))"),
    "change_point": Preset(coal, "a, b, 0 < t0 < 111", "normal_lpdf(a, 0, 2) + normal_lpdf(b, 0, 2)", "poisson_log_lpmf(y, a + (b - a)*inv_logit(t - t0))", "exp(a + (b - a)*inv_logit(t - t0))"),
    "remission": Preset(remission, "a, b, k > 0", "normal_lpdf(a, 0, 5) + normal_lpdf(b, 0, 2) + exponential_lpdf(k, 0.5)", "ended*weibull_lpdf(weeks, k, exp(a + b*drug)) + (1 - ended)*weibull_lccdf(weeks, k, exp(a + b*drug))", "exp(a + b*drug + log(log(2))/k)"),
    "schools": Preset(schools, f"m, t > 0, {_EFFECTS}", "normal_lpdf(m, 0, 5) + cauchy_lpdf(t, 0, 5) + " + _NORMALS.format("m, t"), f"normal_lpdf(y, {_MEANS}, error)"),
    "schools_not_centred": Preset(schools, f"m, t > 0, {_EFFECTS}", "normal_lpdf(m, 0, 5) + cauchy_lpdf(t, 0, 5) + " + _NORMALS.format("0, 1"), f"normal_lpdf(y, m + t*({_MEANS}), error)"),
    "funnel": Preset(funnel, "v, " + ", ".join(f"x{k}" for k in range(1, 7)), "normal_lpdf(v, 0, 3) + " + " + ".join(f"normal_lpdf(x{k}, 0, exp(v/2))" for k in range(1, 7)),
                     "normal_lpdf(y, " + " + ".join(f"x{k}*g{k}" for k in range(1, 7)) + ", 1)"),
}  # fmt: skip
"""The first models, by the name of their table."""


def of_table(columns: tuple[str, ...]) -> dict[str, str]:
    """The formulas that a table of one's own begins with: a line through its last column and its first one."""
    x, y = columns[0], columns[-1]
    return {
        "parameters": "a, b, s > 0",
        "prior": "normal_lpdf(a, 0, 100) + normal_lpdf(b, 0, 100) + exponential_lpdf(s, 0.1)",
        "row": f"normal_lpdf({y}, a + b*{x}, s)",
        "curve": f"a + b*{x}",
    }
