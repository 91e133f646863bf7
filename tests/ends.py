"""The functions and densities that may be typed at their ends, against mpmath: ``python -m tests.ends`` prints a table.

Each case is a formula of parameters with bounds, the log-Jacobian of these included, as a typed posterior has it. Its
value and its gradient are computed by the machine and by NumPy at coordinates far out, and compared with the textbook's
formula in :data:`DIGITS` digits, which no subtraction exhausts. An error is relative to the right value. Where a
relative error ε in a coordinate or in a column changes the right value by more, no algorithm does better: the
condition number Σ|x ∂f/∂x|/|f| says so, and what is allowed is :data:`ALLOWED` or a few ε of it.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import mpmath
import numpy as np
from mpmath import mpf

from sgmcmc_lab.samplers.expressions import Expression, name, parse
from sgmcmc_lab.samplers.expressions.machine import LANES, execute, program, workspace
from sgmcmc_lab.samplers.targets.bounded import declarations

DIGITS = 420
"""e^−700 has 304 zeros, and some 60 digits are left of 1 − p; differences then have 40 right ones."""
ALLOWED = 1e-12
ROUNDINGS = 8
"""Times the rounding error that coordinates, columns and the terms of a formula are off together."""
_STEP = mpf(10) ** -30
_LARGEST = mpf(np.finfo(float).max)
_NOTHING = mpf(10) ** -290
"""Below this the right value is as good as 0: numbers that small lose their digits."""

LOGITS = (-700.0, -37.0, 0.3, 36.5, 36.9, 700.0)
LOGS = (-690.0, -40.0, 0.3, 40.0, 690.0)


@dataclass(frozen=True)
class Case:
    """A formula, what it is in a textbook, and where it is looked at."""

    title: str
    parameters: str
    text: str
    exact: Callable[..., mpf]
    """A function of the parameters within their bounds, then of the columns."""
    at: tuple[tuple[float, ...], ...]
    """Coordinates, of each parameter."""
    columns: dict[str, tuple[float, ...]] = field(default_factory=dict)
    allowed: float = ALLOWED
    """Another one has its reason beside it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of coordinates."""
        return tuple(f"theta{k + 1}" for k in range(len(self.at)))

    def typed(self) -> Expression:
        """The formula of the coordinates, with the log-Jacobian."""
        bounded = declarations(self.parameters, "parameters")
        inside = {each.name: each.value(name(label)) for each, label in zip(bounded, self.names, strict=True)}
        formula = parse(self.text, (*inside, *self.columns), "text").substitute(inside)
        for each, label in zip(bounded, self.names, strict=True):
            formula += each.log_jacobian(name(label))
        return formula

    def right(self, *at: mpf) -> mpf:
        """The textbook's value, of coordinates and columns."""
        inside, jacobian = [], mpf(0)
        for each, theta in zip(declarations(self.parameters, "parameters"), at, strict=False):
            low, high, e = mpf(each.low), mpf(each.high), mpmath.exp(theta)
            if mpmath.isinf(low) and mpmath.isinf(high):
                inside.append(theta)
            elif mpmath.isinf(low) or mpmath.isinf(high):
                inside.append(high - e if mpmath.isinf(low) else low + e)
                jacobian += theta
            else:
                low, high = mpf(repr(each.low)), mpf(repr(each.high))
                inside.append(low + (high - low) * e / (1 + e))
                jacobian += mpmath.log((high - low) * e / (1 + e) ** 2)
        return self.exact(*inside, *at[len(inside) :]) + jacobian

    def points(self) -> Iterator[tuple[float, ...]]:
        """All coordinates and columns."""
        return itertools.product(*self.at, *self.columns.values())


def by_machine(formulas: list[Expression], names: tuple[str, ...], points: np.ndarray) -> np.ndarray:
    """The values of the machine at points (n, names), (outputs, n)."""
    made, out = program(formulas, names), np.empty((len(formulas), len(points)))
    for first in range(0, len(points), LANES):
        work, block = np.zeros(workspace(made)), points[first : first + LANES]
        work.reshape(-1, LANES)[: len(names), : len(block)] = block.T
        execute(made, work)
        rows = work.reshape(-1, LANES)[len(names) : len(names) + len(formulas)]
        out[:, first : first + LANES] = rows[:, : len(block)]
    return out


def by_numpy(formulas: list[Expression], names: tuple[str, ...], points: np.ndarray) -> np.ndarray:
    """The same by :meth:`Expression.evaluate`."""
    return np.array([formula.evaluate(**dict(zip(names, points.T, strict=True))) for formula in formulas])


def _slope(of: Callable[..., mpf], at: tuple[mpf, ...], k: int) -> mpf:
    step = _STEP * (min(abs(at[k]), 1) or 1)
    ahead, behind = (of(*at[:k], at[k] + sign * step, *at[k + 1 :]) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


def relative(found: float, right: mpf) -> float:
    """The relative error; 0 where both are beyond a number, or both nothing."""
    if abs(right) > _LARGEST:
        return 0.0 if found == np.inf * float(mpmath.sign(right)) else np.inf
    if not np.isfinite(found):
        return np.inf
    if abs(right) < _NOTHING:
        return 0.0 if abs(found) < 1e-280 else np.inf
    return float(abs(mpf(found) - right) / abs(right))


@dataclass(frozen=True)
class Worst:
    """The largest error of a case, as a multiple of what is allowed there."""

    share: float
    error: float
    condition: float
    at: tuple[float, ...]


def worst(case: Case) -> tuple[Worst, Worst]:
    """The worst value and the worst slope of a case, by the machine or by NumPy."""
    with mpmath.workdps(DIGITS):
        names, dim = (*case.names, *case.columns), len(case.at)
        typed = case.typed()
        points = list(case.points())
        formulas = [typed, *(typed.diff(label) for label in case.names)]
        found = [compute(formulas, names, np.array(points)) for compute in (by_machine, by_numpy)]
        values, slopes = [], []
        for i, at in enumerate(points):
            exact = tuple(map(mpf, at))
            for k in range(dim + 1):
                of = case.right if k == 0 else lambda *x, k=k: _slope(case.right, x, k - 1)
                right = of(*exact)
                error, condition = max(relative(each[k, i], right) for each in found), 1.0
                if error > case.allowed and np.isfinite(error):
                    moved = mpmath.fsum(abs(x * _slope(of, exact, j)) for j, x in enumerate(exact) if x)
                    condition = float(moved / abs(right))
                allowed = max(case.allowed, ROUNDINGS * np.finfo(float).eps * condition)
                (values if k == 0 else slopes).append(Worst(error / allowed, error, condition, at))
    return max(values, key=lambda each: each.share), max(slopes, key=lambda each: each.share)


def log_beta(a: mpf, b: mpf) -> mpf:
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def normal(y, mu, s):
    return -(((y - mu) / s) ** 2) / 2 - mpmath.log(s) - mpmath.log(2 * mpmath.pi) / 2


def student(y, nu, mu, s):
    return (
        mpmath.loggamma((nu + 1) / 2)
        - mpmath.loggamma(nu / 2)
        - mpmath.log(nu * mpmath.pi) / 2
        - mpmath.log(s)
        - (nu + 1) / 2 * mpmath.log(1 + ((y - mu) / s) ** 2 / nu)
    )


def cauchy(y, mu, s):
    return -mpmath.log(mpmath.pi * s * (1 + ((y - mu) / s) ** 2))


def laplace(y, mu, s):
    return -abs(y - mu) / s - mpmath.log(2 * s)


def gamma(y, a, rate):
    return a * mpmath.log(rate) - mpmath.loggamma(a) + (a - 1) * mpmath.log(y) - rate * y


def beta(p, a, b):
    return (a - 1) * mpmath.log(p) + (b - 1) * mpmath.log(1 - p) - log_beta(a, b)


def bernoulli_logit(y, logit):
    return -mpmath.log(1 + mpmath.exp(-logit if y == 1 else logit))


def log_binomial(y, n, logit):
    return (
        mpmath.loggamma(n + 1)
        - mpmath.loggamma(y + 1)
        - mpmath.loggamma(n - y + 1)
        - y * mpmath.log(1 + mpmath.exp(-logit))
        - (n - y) * mpmath.log(1 + mpmath.exp(logit))
    )


def negative_binomial(y, eta, phi):
    m = mpmath.exp(eta)
    choices = mpmath.loggamma(y + phi) - mpmath.loggamma(phi) - mpmath.loggamma(y + 1)
    return choices + y * (eta - mpmath.log(m + phi)) + phi * mpmath.log(phi / (m + phi))


def log_ndtr(x):
    return mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)


def weibull(y, k, s):
    return mpmath.log(k / s) + (k - 1) * mpmath.log(y / s) - (y / s) ** k


def log1m_exp(x):
    return mpmath.log(-mpmath.expm1(x))


def poisson_log(y, eta):
    return y * eta - mpmath.exp(eta) - mpmath.loggamma(y + 1)


def log_i0e(k):
    """By the series in 1/k beyond 200, which is right to 60 digits there."""
    with mpmath.workdps(80):
        return +mpmath.log(mpmath.besseli(0, k) * mpmath.exp(-abs(k))) if abs(k) < 1e12 else mpf(0)


def von_mises(y, mu, k):
    return k * (mpmath.cos(y - mu) - 1) - mpmath.log(2 * mpmath.pi) - log_i0e(k)


def log_sum_exp(a, b):
    return mpmath.log(mpmath.exp(a) + mpmath.exp(b))


def log_mix(share, a, b):
    return mpmath.log(share * mpmath.exp(a) + (1 - share) * mpmath.exp(b))


FAR = (-1e8, -3.0, 0.25, 1e8)
TINY = (-1e-8, 1e-300, 1e-8, 0.3)
SHAPES = tuple(float(np.log(x)) for x in (1e-3, 0.7, 30.0, 1e6))
CONCENTRATIONS = tuple(float(np.log(x)) for x in (1e-8, 0.3, 25.0, 1e8))

FUNCTIONS = (
    Case("exp", "x", "exp(x)", mpmath.exp, ((-700.0, 1e-9, 700.0),)),
    Case("expm1", "x", "expm1(x)", mpmath.expm1, ((-700.0, -1e-9, 1e-300, 0.7, 700.0),)),
    Case("log", "x", "log(x)", mpmath.log, ((1e-300, 0.7, 1e300),)),
    Case("log1p", "x", "log1p(x)", mpmath.log1p, ((-0.999, -1e-9, 1e-300, 0.7, 1e300),)),
    Case("log1p_square", "x", "log1p_square(x)", lambda x: mpmath.log(1 + x * x), ((-1e300, -1e-9, 1e-100, 0.7, 2e9, 1e300),)),
    Case("log1m_exp", "x", "log1m_exp(x)", lambda x: mpmath.log(1 - mpmath.exp(x)), ((-600.0, -0.7, -1e-9, -1e-300),)),
    Case("log_ndtr", "x", "log_ndtr(x)", log_ndtr, ((-1e8, -37.0, -10.01, -9.99, -0.3, 0.3, 8.0, 30.0),)),
    # Of its slope, −m(x + m) with m near −x, x² rounding errors are left.
    Case("log_ndtr_slope", "x", "log_ndtr_slope(x)", lambda x: mpmath.exp(-x * x / 2 - log_ndtr(x)) / mpmath.sqrt(2 * mpmath.pi), ((-30.0, -10.01, -9.99, 0.3, 30.0),)),
    Case("sqrt", "x", "sqrt(x)", mpmath.sqrt, ((1e-300, 0.7, 1e300),)),
    Case("sin", "x", "sin(x)", mpmath.sin, ((1e-300, -1e-9, 0.7, 1e8),)),
    Case("cos", "x", "cos(x)", mpmath.cos, ((1e-9, 0.7, 1e8),)),
    Case("tan", "x", "tan(x)", mpmath.tan, ((1e-300, -1e-9, 0.7, 1e8),)),
    Case("sinh", "x", "sinh(x)", mpmath.sinh, ((-700.0, -1e-9, 1e-300, 700.0),)),
    Case("cosh", "x", "cosh(x)", mpmath.cosh, ((-700.0, -1e-9, 0.7, 700.0),)),
    Case("tanh", "x", "tanh(x)", mpmath.tanh, ((-300.0, -20.0, 1e-9, 20.0, 300.0),)),
    Case("atan", "x", "atan(x)", mpmath.atan, ((-1e100, -1e-9, 0.7, 1e100),)),
    Case("abs", "x", "abs(x)", abs, ((-1e300, -1e-300, 0.7, 1e300),)),
    Case("sign", "x", "x*sign(x)", abs, ((-1e300, -1e-300, 0.7, 1e300),)),
    Case("log1p_exp", "x", "log1p_exp(x)", lambda x: mpmath.log(1 + mpmath.exp(x)), ((-600.0, -37.0, 1e-9, 37.0, 700.0),)),
    Case("inv_logit", "x", "inv_logit(x)", lambda x: 1 / (1 + mpmath.exp(-x)), ((-600.0, -37.0, 1e-9, 37.0, 600.0),)),
    Case("lgamma", "x", "lgamma(x)", mpmath.loggamma, ((1e-300, 1e-3, 0.7, 30.0, 1e6, 1e12),)),
    Case("digamma", "x", "digamma(x)", mpmath.digamma, ((1e-100, 1e-3, 0.7, 30.0, 1e6, 1e12),)),
    Case("trigamma", "s > 0", "digamma(s)", mpmath.digamma, ((-200.0, -7.0, 0.3, 3.4, 14.0, 27.0),)),
    Case("lgamma_half_step", "x", "lgamma_half_step(x)", lambda x: mpmath.loggamma(x + mpf(1) / 2) - mpmath.loggamma(x) - mpmath.log(x) / 2, ((1e-300, 1e-3, 0.7, 19.9, 20.0, 1e6, 5e9),)),
    Case("lgamma_half_step_slope", "x", "lgamma_half_step_slope(x)", lambda x: mpmath.digamma(x + mpf(1) / 2) - mpmath.digamma(x) - 1 / (2 * x), ((1e-3, 0.7, 5.0),)),
    Case("log_i0", "x", "log_i0(x)", lambda x: x + log_i0e(x), ((1e-8, 0.3, 0.99, 1.01, 19.9, 20.1, 1e3, 1e8),)),
    Case("log_i0e", "x", "log_i0e(x)", log_i0e, ((1e-8, 0.3, 0.99, 1.01, 19.9, 20.1, 1e3, 1e8),)),
    Case("i1_over_i0", "x", "i1_over_i0(x)", lambda x: mpmath.besseli(1, x) / mpmath.besseli(0, x), ((1e-8, 0.3, 5.0),)),
    Case("log_i0e_slope", "x", "log_i0e_slope(x)", lambda x: mpmath.besseli(1, x) / mpmath.besseli(0, x) - 1, ((1e-8, 0.3, 5.0),)),
    Case("log_sum_exp", "a, b", "log_sum_exp(a, b)", log_sum_exp, ((-700.0, 0.3, 700.0), (-700.0, 0.2, 700.0))),
    Case("log_gamma_density", "s > 0, x", "log_gamma_density(s, x)", lambda s, x: (s - 1) * x - mpmath.exp(x) - mpmath.loggamma(s) , (SHAPES, (-700.0, -7.0, 3.0, 13.8)),),
    Case("zero_times", "a, b", "zero_times(a, b)", lambda a, b: a * b, ((0.0, 1e-300, 3.0), (-1e8, 2.0))),
    Case("if_nonnegative", "a, b", "if_nonnegative(a, b)", lambda a, b: b, ((0.0, 1e-300, 3.0), (-1e8, 2.0))),
)  # fmt: skip
"""Each function, alone."""

TRANSFORMS = (
    Case("unbounded", "a", "normal_lpdf(a, 0, 3)", lambda a: normal(a, 0, 3), (FAR,)),
    Case("s > 0", "s > 0", "log(s) - s", lambda s: mpmath.log(s) - s, (LOGS,)),
    Case("s > 2", "s > 2", "-log(s) + 3*log(s - 2) - (s - 2)/7", lambda s: -mpmath.log(s) + 3 * mpmath.log(s - 2) - (s - 2) / 7, (LOGS,)),
    Case("s < 3", "s < 3", "2*log(3 - s) - (3 - s)/5", lambda s: 2 * mpmath.log(3 - s) - (3 - s) / 5, (LOGS,)),
    Case("s < 0", "s < 0", "2*log(-s) + s", lambda s: 2 * mpmath.log(-s) + s, (LOGS,)),
    Case("0 < p < 1", "0 < p < 1", "3*log(p) + 0.1*log(1 - p) + (1 - p)^3 - p^2", lambda p: 3 * mpmath.log(p) + mpf(0.1) * mpmath.log(1 - p) + (1 - p) ** 3 - p**2, (LOGITS,)),
    Case("2 < a < 5", "2 < a < 5", "log(a - 2) + 4*log(5 - a) + 1/a", lambda a: mpmath.log(a - 2) + 4 * mpmath.log(5 - a) + 1 / a, (LOGITS,)),
    Case("-0.1 < a < 0.3", "-0.1 < a < 0.3", "2*log(0.3 - a) + 0.5*log(a + 0.1)", lambda a: 2 * mpmath.log(mpf("0.3") - a) + mpmath.log(a + mpf("0.1")) / 2, (LOGITS,)),
    Case("complement", "0 < p < 1", "log(1 - p)", lambda p: mpmath.log(1 - p), (LOGITS,)),
    Case("logit-normal by hand", "0 < p < 1", "-log(p/(1 - p))^2/8", lambda p: -(mpmath.log(p / (1 - p)) ** 2) / 8, (LOGITS,)),
    Case("power of a complement", "0 < p < 1", "log(1 - p^3)", lambda p: mpmath.log(1 - p**3), (LOGITS,)),
    Case("two complements", "0 < p < 1, 0 < q < 1", "log(1 - p*q) + log(1 - p)", lambda p, q: mpmath.log(1 - p * q) + mpmath.log(1 - p), (LOGITS, (-30.0, 600.0))),
    Case("bernoulli by hand", "0 < p < 1", "y*log(p) + (1 - y)*log(1 - p)", lambda p, y: mpmath.log(p if y == 1 else 1 - p), (LOGITS,), {"y": (0.0, 1.0)}),
    Case("logistic by hand", "a", "-log(1 + exp(-a))", lambda a: -mpmath.log(1 + mpmath.exp(-a)), ((-700.0, 0.3, 37.0, 600.0),)),
    Case("cloglog by hand", "s > 0", "log(1 - exp(-s))", lambda s: mpmath.log(1 - mpmath.exp(-s)), ((-690.0, -37.0, 0.3, 6.0),)),
    Case("mixture by hand", "0 < p < 1, a", "log(p*exp(normal_lpdf(y, a, 1)) + (1 - p)*exp(normal_lpdf(y, 0, 1)))", lambda p, a, y: log_mix(p, normal(y, a, 1), normal(y, 0, 1)), (LOGITS, (-30.0, 40.0)), {"y": (-50.0, 0.3)}),
    Case("half-Cauchy by hand", "s > 0", "-log(1 + (s/5)^2)", lambda s: -mpmath.log(1 + (s / 5) ** 2), (LOGS,)),
    Case("inverse gamma by hand", "s > 0", "-3*log(s) - 2/s", lambda s: -3 * mpmath.log(s) - 2 / s, (LOGS,)),
    Case("a power by hand", "s > 0", "s^2/(1 + s^2)", lambda s: s**2 / (1 + s**2), ((-300.0, 0.3, 300.0),)),
    Case("1 - tanh by hand", "a", "log(1 - tanh(a))", lambda a: mpmath.log(1 - mpmath.tanh(a)), ((-100.0, 0.3, 100.0, 300.0),)),
)  # fmt: skip
"""Each transform, and what is typed of its parameter."""

DENSITIES = (
    Case("normal_lpdf", "a, s > 0", "normal_lpdf(y, a, s)", lambda a, s, y: normal(y, a, s), (FAR, LOGS), {"y": (0.25, -1e8)}),
    Case("student_t_lpdf", "a, s > 0", "student_t_lpdf(y, 4, a, s)", lambda a, s, y: student(y, 4, a, s), (FAR, LOGS), {"y": (0.25, 7.0)}),
    Case("student_t_lpdf, ν", "s > 0, n > 0", "student_t_lpdf(y, n, 0, s)", lambda s, n, y: student(y, n, 0, s), (LOGS, (-7.0, 1.0, 12.0)), {"y": (0.25, 7.0)}),
    Case("student_t_lpdf, 1e10", "a, s > 0", "student_t_lpdf(y, 10000000000, a, s)", lambda a, s, y: student(y, mpf(10) ** 10, a, s), ((-3.0, 0.25), (-2.0, 0.3, 40.0)), {"y": (0.25, 7.0)}),
    Case("cauchy_lpdf", "a, s > 0", "cauchy_lpdf(y, a, s)", lambda a, s, y: cauchy(y, a, s), (FAR, LOGS), {"y": (0.25, 7.0)}),
    Case("laplace_lpdf", "a, s > 0", "laplace_lpdf(y, a, s)", lambda a, s, y: laplace(y, a, s), (FAR, LOGS), {"y": (0.5, 7.0)}),
    Case("exponential_lpdf", "s > 0, t > 0", "exponential_lpdf(t, s)", lambda s, t: mpmath.log(s) - s * t, (LOGS, (-300.0, 0.3, 40.0))),
    Case("gamma_lpdf", "s > 0, t > 0", "gamma_lpdf(y, s, t)", lambda s, t, y: gamma(y, s, t), (SHAPES, LOGS), {"y": (1e-300, 0.7, 1e6)}),
    Case("gamma_lpdf, .001", "s > 0", "gamma_lpdf(s, 0.001, 0.001)", lambda s: gamma(s, mpf(0.001), mpf(0.001)), (LOGS,)),
    Case("gamma_lpdf, 1e6", "s > 0", "gamma_lpdf(s, 1000000, 1000)", lambda s: gamma(s, mpf(10) ** 6, 1000), ((-690.0, 6.9, 6.908, 40.0),)),
    Case("beta_lpdf", "0 < p < 1", "beta_lpdf(p, 0.1, 0.1)", lambda p: beta(p, mpf(0.1), mpf(0.1)), (LOGITS,)),
    Case("beta_lpdf, .001", "0 < p < 1", "beta_lpdf(p, 0.001, 1000000)", lambda p: beta(p, mpf(0.001), mpf(10) ** 6), (LOGITS,)),
    Case("beta_lpdf, 1e6", "0 < p < 1", "beta_lpdf(p, 1000000, 1000000)", lambda p: beta(p, mpf(10) ** 6, mpf(10) ** 6), ((-700.0, -0.001, 0.001, 36.9, 700.0),)),
    Case("beta_lpdf, shapes", "0 < p < 1, s > 0, t > 0", "beta_lpdf(p, s, t)", beta, ((-700.0, 0.3, 36.9, 700.0), SHAPES[:3], SHAPES[:3])),
    Case("beta_lpdf, large shapes", "0 < p < 1, s > 0, t > 0", "beta_lpdf(p, s, t)", beta, ((-700.0, -0.001, 700.0), (13.0, 14.0), (13.5, 14.0))),
    # Of the slope by the larger of two unequal shapes, ψ(a + b) − ψ(b), nine digits cancel.
    Case("beta_lpdf, unequal shapes", "0 < p < 1, s > 0, t > 0", "beta_lpdf(p, s, t)", beta, ((-700.0, 0.3, 700.0), SHAPES[:1], SHAPES[3:]), allowed=1e-8),
    Case("lognormal_lpdf", "a, s > 0, t > 0", "lognormal_lpdf(t, a, s)", lambda a, s, t: normal(mpmath.log(t), a, s) - mpmath.log(t), ((-3.0, 700.0), LOGS, LOGS)),
    Case("bernoulli_logit_lpmf", "a", "bernoulli_logit_lpmf(y, a)", lambda a, y: bernoulli_logit(y, a), ((-600.0, -37.0, 0.3, 37.0, 600.0),), {"y": (0.0, 1.0)}),
    Case("poisson_log_lpmf", "a", "poisson_log_lpmf(y, a)", lambda a, y: poisson_log(y, a), ((-600.0, -1.0, 6.9, 13.815, 700.0),), {"y": (0.0, 1.0, 30.0, 1e6)}),
    Case("binomial_logit_lpmf", "a", "binomial_logit_lpmf(y, n, a)", lambda a, y, n: log_binomial(y, n, a), ((-600.0, -13.0, 0.3, 37.0, 600.0),), {"y": (0.0, 1.0, 30.0), "n": (30.0, 1e6)}),
    Case("binomial_logit_lpmf, all", "a", "binomial_logit_lpmf(y, n, a)", lambda a, y, n: log_binomial(y, n, a), ((-37.0, 0.3, 600.0),), {"y": (1e6,), "n": (1e6,)}),
    Case("binomial_logit_lpmf, half", "a", "binomial_logit_lpmf(y, n, a)", lambda a, y, n: log_binomial(y, n, a), ((-1e-4, 1e-3, 5.0),), {"y": (5e8,), "n": (1e9,)}),
    Case("neg_binomial_2_log_lpmf", "a, s > 0", "neg_binomial_2_log_lpmf(y, a, s)", lambda a, s, y: negative_binomial(y, a, s), ((-600.0, -1.0, 6.9, 300.0), (-30.0, 0.3, 2.0)), {"y": (0.0, 1.0, 30.0, 1e6)}),
    # Towards Poisson's distribution the slope by log φ, of the size m²/φ, is a difference of terms of the size φ.
    Case("neg_binomial_2_log_lpmf, large φ", "a, s > 0", "neg_binomial_2_log_lpmf(y, a, s)", lambda a, s, y: negative_binomial(y, a, s), ((-1.0, 2.0), (7.0, 10.0)), {"y": (0.0, 30.0)}, allowed=1e-6),
    Case("weibull_lpdf", "s > 0, t > 0", "weibull_lpdf(y, s, t)", lambda s, t, y: weibull(y, s, t), ((-7.0, 0.3, 2.0), (-40.0, 0.3, 40.0)), {"y": (1e-30, 0.7, 1e6)}),
    Case("weibull_lcdf", "s > 0, t > 0", "weibull_lcdf(y, s, t)", lambda s, t, y: log1m_exp(-((y / t) ** s)), ((-7.0, 0.3, 2.0), (-40.0, 0.3, 40.0)), {"y": (1e-30, 0.7, 1e6)}),
    Case("weibull_lccdf", "s > 0, t > 0", "weibull_lccdf(y, s, t)", lambda s, t, y: -((y / t) ** s), ((-7.0, 0.3, 2.0), (-40.0, 0.3, 40.0)), {"y": (1e-30, 0.7, 1e6)}),
    Case("normal_lcdf", "a, s > 0", "normal_lcdf(y, a, s)", lambda a, s, y: log_ndtr((y - a) / s), ((-1e8, -3.0, 0.25, 37.0, 1e8), (-2.0, 0.3, 40.0)), {"y": (0.25, -7.0)}),
    Case("normal_lccdf", "a, s > 0", "normal_lccdf(y, a, s)", lambda a, s, y: log_ndtr((a - y) / s), ((-1e8, -37.0, 0.25, 3.0, 1e8), (-2.0, 0.3, 40.0)), {"y": (0.25, -7.0)}),
    Case("lognormal_lcdf", "a, s > 0", "lognormal_lcdf(y, a, s)", lambda a, s, y: log_ndtr((mpmath.log(y) - a) / s), ((-3.0, 0.25, 700.0), (-2.0, 0.3, 40.0)), {"y": (1e-300, 0.7)}),
    Case("lognormal_lccdf", "a, s > 0", "lognormal_lccdf(y, a, s)", lambda a, s, y: log_ndtr((a - mpmath.log(y)) / s), ((-700.0, 0.25, 3.0), (-2.0, 0.3, 40.0)), {"y": (1e-300, 0.7)}),
    Case("exponential_lcdf", "s > 0", "exponential_lcdf(y, s)", lambda s, y: log1m_exp(-s * y), ((-300.0, -40.0, 0.3, 5.0),), {"y": (1e-9, 0.7)}),
    Case("exponential_lccdf", "s > 0", "exponential_lccdf(y, s)", lambda s, y: -s * y, (LOGS,), {"y": (1e-9, 0.7)}),
    Case("von_mises_lpdf", "a, k > 0", "von_mises_lpdf(y, a, k)", lambda a, k, y: von_mises(y, a, k), ((-3.0, 0.25, 0.2501), CONCENTRATIONS), {"y": (0.25, 3.0)}),
    Case("log_mix", "0 < p < 1, a, b", "log_mix(p, normal_lpdf(y, a, 1), normal_lpdf(y, b, 1))", lambda p, a, b, y: log_mix(p, normal(y, a, 1), normal(y, b, 1)), (LOGITS, (-30.0, 0.3), (-0.5, 40.0)), {"y": (0.25, -5.0)}),
    Case("log_mix, a regression", "a, b", "log_mix(inv_logit(a + b), -1, -2)", lambda a, b: log_mix(1 / (1 + mpmath.exp(-a - b)), mpf(-1), mpf(-2)), ((-600.0, 600.0), (-3.0, 40.0))),
)  # fmt: skip
"""Each density, its parameters at their ends."""

CASES = (*FUNCTIONS, *TRANSFORMS, *DENSITIES)


def main() -> None:
    """Print the worst relative errors of each case."""
    print(f"{'':26} {'value':>9} {'allowed':>9}  {'slope':>9} {'allowed':>9}   where the slope is worst")
    for case in CASES:
        value, slope = worst(case)
        allowed = [each.error / each.share if each.share else case.allowed for each in (value, slope)]
        where = ", ".join(f"{x:.4g}" for x in slope.at)
        bad = "  <<<" if max(value.share, slope.share) > 1 else ""
        print(
            f"{case.title:26} {value.error:9.1e} {allowed[0]:9.1e}  {slope.error:9.1e} {allowed[1]:9.1e}   {where}{bad}",
            flush=True,
        )


if __name__ == "__main__":
    main()
