"""A typed posterior as a program in Stan, read and worked out by scipy; its rows in a file of draws."""

import math
import re

import numpy as np
import pytest
import xarray
from arviz_stats import loo
from scipy import special, stats

from sgmcmc_lab.samplers import Experiment, run, trace
from sgmcmc_lab.samplers.expressions import name as coordinate
from sgmcmc_lab.samplers.targets import stan
from sgmcmc_lab.samplers.targets.own import Table, keep
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS
from tests.helpers.cases import for_each

KNOWN = {
    "normal_lpdf": stats.norm.logpdf,
    "student_t_lpdf": stats.t.logpdf,
    "cauchy_lpdf": stats.cauchy.logpdf,
    "double_exponential_lpdf": stats.laplace.logpdf,
    "exponential_lpdf": lambda y, rate: stats.expon.logpdf(y, scale=1 / rate),
    "gamma_lpdf": lambda y, shape, rate: stats.gamma.logpdf(y, shape, scale=1 / rate),
    "beta_lpdf": stats.beta.logpdf,
    "weibull_lpdf": lambda y, k, scale: stats.weibull_min.logpdf(y, k, scale=scale),
    "weibull_lcdf": lambda y, k, scale: stats.weibull_min.logcdf(y, k, scale=scale),
    "weibull_lccdf": lambda y, k, scale: stats.weibull_min.logsf(y, k, scale=scale),
    "normal_lcdf": stats.norm.logcdf,
    "normal_lccdf": stats.norm.logsf,
    "lognormal_lcdf": lambda y, mu, sigma: stats.lognorm.logcdf(y, sigma, scale=math.exp(mu)),
    "lognormal_lccdf": lambda y, mu, sigma: stats.lognorm.logsf(y, sigma, scale=math.exp(mu)),
    "exponential_lcdf": lambda y, rate: stats.expon.logcdf(y, scale=1 / rate),
    "exponential_lccdf": lambda y, rate: stats.expon.logsf(y, scale=1 / rate),
    "lognormal_lpdf": lambda y, mu, sigma: stats.lognorm.logpdf(y, sigma, scale=math.exp(mu)),
    "von_mises_lpdf": lambda y, mu, kappa: stats.vonmises.logpdf(y, kappa, mu),
    "log_sum_exp": np.logaddexp,
    "log_mix": lambda share, a, b: np.logaddexp(math.log(share) + a, math.log1p(-share) + b),
    "negative_infinity": lambda: -math.inf,
    "square": lambda x: x * x,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "digamma": special.digamma,
    "log1m_exp": lambda x: math.log(-math.expm1(x)),
    "log1p_exp": lambda x: np.logaddexp(0.0, x),
    "inv_logit": special.expit,
    "lgamma": special.gammaln,
    "pi": lambda: math.pi,
    "log_modified_bessel_first_kind": lambda order, x: math.log(special.iv(order, x)),
    **{
        name: getattr(math, name)
        for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan")
    },
    "abs": abs,
}
"""The functions that the programs here may call, by Stan's names."""


def whole(y):
    """Stan takes nothing else as a count."""
    assert isinstance(y, int), "a real number is counted"
    return y


COUNTED = {
    "bernoulli_logit_lpmf": lambda y, logit: stats.bernoulli.logpmf(whole(y), special.expit(logit)),
    "neg_binomial_2_log_lpmf": lambda y, eta, phi: stats.nbinom.logpmf(whole(y), phi, phi / (phi + math.exp(eta))),
    "poisson_log_lpmf": lambda y, log_rate: stats.poisson.logpmf(whole(y), math.exp(log_rate)),
}


_CALLED = r"\w+_l(?:p[dm]f|c?cdf)"


def python(text):
    """An expression of Stan in Python: one bar after the first argument of a density, and none elsewhere."""
    for called, bar in re.findall(rf"({_CALLED})\([^,|]*([,|])", text):
        assert bar == "|", f"{called} has no bar"
    assert text.count("|") == len(re.findall(rf"{_CALLED}\(", text))
    assert not re.search(r"(?<![\w.])\d+(?![\w.])", text), "a whole number"
    return text.replace("|", ",").replace("^", "**")


def read(program):
    """Blocks of a program: functions, data (name to type), parameters (name to bounds), and the two sums."""
    lines = [line for line in program.splitlines() if not line.startswith("//")]
    blocks = re.findall(r"^(\w+) \{\n(.*?)^\}", "\n".join(lines) + "\n", re.M | re.S)
    made = dict(blocks)
    assert [name for name, _ in blocks] == [
        *(["functions"] if "functions" in made else []),
        "data",
        "parameters",
        "model",
    ]
    data = {name: kind for kind, name in re.findall(r"^  (.*) (\w+);$", made["data"], re.M)}
    assert data.pop("N") == "int<lower=0>"
    parameters = {}
    for bounds, name in re.findall(r"^  real(?:<(.*)>)? (\w+);$", made["parameters"], re.M):
        ends = dict(end.split("=") for end in bounds.split(", ")) if bounds else {}
        parameters[name] = float(ends.get("lower", "-inf")), float(ends.get("upper", "inf"))
    prior, row = re.findall(r"target \+= (.*);", made["model"])
    functions = {}
    for line in made.get("functions", "").splitlines():
        name, arguments, body = re.fullmatch(r"  real (\w+)\((.*)\) \{ return (.*); \}", line).groups()
        body = re.sub(r"(.*) \? (.*) : (.*)", r"(\2) if \1 else (\3)", body).replace("||", "or").replace("|", ",")
        functions[name] = ", ".join(arguments.replace("real ", "").split(", ")), body
    return functions, data, parameters, python(prior), python(row)


def values(target, program, theta):
    """The program's density at θ, within bounds, on the data of the target, by scipy."""
    functions, data, parameters, prior, row = read(program)
    assert list(parameters.values()) == [(each.low, each.high) for each in target.bounded]
    at = dict(zip(parameters, map(float, target.constrained(theta)), strict=True))
    columns = dict(zip(re.findall(r"//   (\w+): column", program), re.findall(r": column (\w+)", program), strict=True))
    assert list(columns) == list(data)
    scope = {**KNOWN, **COUNTED}
    for name, (arguments, body) in functions.items():
        scope[name] = eval(f"lambda {arguments}: {body}", scope)  # noqa: S307
    total = eval(prior, scope, at)  # noqa: S307
    for i in range(target.n_data):
        rows = {name: {"n": i} for name in data}
        for name, kind in data.items():
            value = target.titles[columns[name]][i]
            rows[name] = {0: int(value) if kind == "array[N] int" else float(value)}
        total += eval(row.replace("[n]", "[0]"), scope, {**at, **rows})  # noqa: S307
    return total


def off(target, program):
    """How far the program is from the target, of densities of the parameters within bounds."""
    rng = np.random.default_rng(1)
    errors = []
    for theta in 0.3 * rng.standard_normal((2, target.dim)):
        given = dict(zip(target.labels, theta, strict=True))
        jacobian = sum(
            float(each.log_jacobian(coordinate(label)).evaluate(**given))
            for each, label in zip(target.bounded, target.labels, strict=True)
        )
        mine = float(target.log_prior.evaluate(**given)) - jacobian + target.log_likelihood(theta).sum()
        errors.append(abs(values(target, program, theta) / mine - 1))
    return max(errors)


def preset(key):
    return TypedPosterior(**PRESETS[key]._replace(table=key)._asdict())


@for_each("key", PRESETS)
def test_every_preset_is_a_program_of_the_same_density(key):
    target = preset(key)
    assert off(target, target.stan()) < 1e-9


X = np.linspace(-1, 2, 12)
TABLE = Table(("x", "int", "N"), np.column_stack([X, X**2, np.arange(12.0)]), "y", np.arange(12.0) % 2)
OTHERS = {
    "names that Stan has": ("N_, for, t < 2, 1 < mu < 4", "normal_lpdf(N_, 0, 1) + normal_lpdf(for, 0, 1) + exponential_lpdf(2 - t, 1) + gamma_lpdf(mu, 2, 3)", "laplace_lpdf(x, N_*int + N*for, mu - t)"),
    "whole numbers": ("a, b", "-a^2/2 - b^2/3 + 1/2", "poisson_log_lpmf(N, a + b*y) + bernoulli_logit_lpmf(1 - y, a) + bernoulli_logit_lpmf(y, b) + N/(3*pi)"),
    "counts of trials, and counts that spread": ("a, k > 0", "normal_lpdf(a, 0, 3) + weibull_lpdf(k, 2, 3)", "binomial_logit_lpmf(y, N + 1, a) + neg_binomial_2_log_lpmf(N, a, k) + neg_binomial_2_log_lpmf(N/2, a, k)"),
    "censored rows": ("a, k > 0", "normal_lpdf(a, 0, 3) + exponential_lpdf(k, 2)", "normal_lcdf(x, a, k) + normal_lccdf(x, a, k) + lognormal_lcdf(N + 1, a, k) + lognormal_lccdf(N + 1, a, k) + exponential_lcdf(N + 1, k) + exponential_lccdf(N + 1, k) + weibull_lcdf(N + 1, k, 2) + weibull_lccdf(N + 1, k, 2) + 0.1*log_ndtr(a) + 0.1*log_ndtr_slope(a)"),
    "functions of densities": ("a, k > 0", "log_i0e(k) + lgamma_half_step(k) - a^2 - k", "-log1p_square(a*x) + 0.1*log_i0e_slope(k) + 0.1*lgamma_half_step_slope(k + 1) + 0.1*log_gamma_density(k + 2, a) + if_nonnegative(y, zero_times(y, a)) + 0.1*log1m_exp(-1 - k) + 0.1*expm1(-a^2)*log1p(k)"),
    "functions": ("a, k > 0", "von_mises_lpdf(a, 0.5, 2) + normal_lpdf(a, 0, 3) + lognormal_lpdf(k, 0, 1)", "von_mises_lpdf(x, a, k) - normal_lpdf(y, log_i0(k*x), 1 + abs(x))**2·0.1"),
}  # fmt: skip


def of_others(what):
    parameters, prior, row = OTHERS[what]
    return TypedPosterior(table=keep(TABLE).key, parameters=parameters, prior=prior, row=row, curve="")


@for_each("what", OTHERS)
def test_a_program_of_all_that_may_be_typed(what):
    target = of_others(what)
    assert off(target, target.stan()) < 1e-9
    _, data, parameters, *_ = read(target.stan())
    assert not {*data, *parameters} & stan._RESERVED
    if what == "whole numbers":
        assert data == {"N_x": "array[N] int", "y": "array[N] int"}


def test_faults_in_a_program_are_seen():
    target = preset("change_point")
    program = target.stan()
    for wrong in (
        program.replace("0.0, 2.0", "0.0, 3.0", 1),
        program.replace("<lower=0.0, upper=111.0>", "<lower=0.0>"),
        program.replace("(y[n] |", "(y[n],"),
        program.replace("array[N] int", "vector[N]"),
        program.replace("2.0", "2", 1),
    ):
        assert wrong != program
        try:
            assert off(target, wrong) < 1e-9
        except AssertionError:
            continue
        pytest.fail("a fault is not seen")


# The rows in a file of draws


def of_run(n_steps=250, n_chains=2):
    model = PRESETS["counts"]._replace(table="counts")._asdict()
    spec = {
        "target": {"key": "posterior", "params": model},
        "lanes": [{"sampler": {"key": "sgld", "params": {"step_size": 1e-3}}}],
    }
    return run(
        Experiment.from_dict({**spec, "n_steps": n_steps, "n_chains": n_chains, "burn_in": 50, "seed": 2}).runs()[0]
    )


def row_error(tree, made):
    """How far the file's rows are from the Poisson regression written by hand."""
    data = made.target.contents
    mean = np.exp(made.draws[..., 0, None] + made.draws[..., 1, None] * data.x[:, 0])
    return np.abs(tree["log_likelihood"]["row"].to_numpy() - stats.poisson.logpmf(data.y, mean)).max()


@pytest.mark.slow
def test_a_file_of_draws_has_the_rows(tmp_path, monkeypatch):
    made = of_run()
    made.save(tmp_path / "draws.nc")
    with xarray.open_datatree(tmp_path / "draws.nc") as tree:
        assert tree["log_likelihood"]["row"].shape == (2, 250, 60)
        assert row_error(tree, made) < 1e-10
        # The elpd is below the log density at the mode by some two, the number of parameters.
        known = loo(tree, var_name="row")
        best = made.target.log_likelihood(made.target.mode).sum()
        assert best - 8 < known.elpd < best
    # Planted fault: the rows of other draws.
    monkeypatch.setattr(
        TypedPosterior,
        "log_likelihood",
        lambda self, theta, right=TypedPosterior.log_likelihood: right(self, theta[:, ::-1]),
    )
    assert row_error(made.to_arviz(), made) > 0.01


@pytest.mark.slow
def test_too_many_rows_are_left_out_and_said(monkeypatch):
    made = of_run(n_steps=5, n_chains=2)
    monkeypatch.setattr(trace, "MAX_LOG_LIKELIHOOD", 599)
    tree = made.to_arviz()
    assert "log_likelihood" not in tree.children
    assert (
        tree.attrs["log_likelihood"]
        == "left out: of 60 rows for every draw it has 600 numbers; allowed are 599, so thin the run"
    )
    monkeypatch.setattr(trace, "MAX_LOG_LIKELIHOOD", 600)
    assert made.to_arviz()["log_likelihood"]["row"].shape == (2, 5, 60)
