"""The formulas on the cards are those that run: read from their LaTeX and evaluated beside the compiled functions."""

import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers import textbook as steps
from sgmcmc_lab.samplers.expressions import displayed, grammar, parse
from sgmcmc_lab.samplers.expressions.densities import DENSITIES
from sgmcmc_lab.samplers.expressions.functions import FUNCTIONS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.manifolds import Euclidean, Sphere
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.step_terms import Play
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.base import LINE, Target
from sgmcmc_lab.samplers.targets.generative import log_stretch
from sgmcmc_lab.samplers.targets.posterior import TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_data import PRESETS
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_targets import cases_of, few_draws, make, potential_at
from tests.helpers.latex import execute, program, read, symbols, tokens, typed, with_definitions
from tests.helpers.set_noise import Set, linear

N_POINTS = 3
ROUNDING = 1e-9
DIFFERENCES, MOST_SLOPES = 1e-4, 6
"""The relative error of differences; and the largest number of directions for each energy."""
TYPED = ("typed", "posterior")
"""Targets whose formula is made of what is typed."""


def energy_error(target, tex):
    """The largest error of a displayed energy at random points, after its constant, over its size; and of its slopes
    at the first of them, by differences, over theirs, as a multiple of what differences leave.
    """
    if of_a_long_run(target.key):
        theta = np.random.default_rng(1).standard_normal((N_POINTS, target.dim))
    else:
        theta = few_draws(target, N_POINTS)
    found = np.array([displayed_energy(target, tex, point) for point in theta])
    wanted = potential_at(target, theta)
    return max(float(np.ptp(found - wanted) / max(1.0, np.ptp(wanted))), slope_error(target, tex, theta[0]) * ROUNDING)


def displayed_energy(target, tex, point):
    """A displayed energy at a point."""
    given = {**symbols(target), r"\theta": point if target.dim > 1 else point[0]}
    given |= getattr(target, "textbook_symbols", lambda theta: {})(point)
    energy, env = with_definitions(tex, given)
    return float(energy(env))


def slope_error(target, tex, point):
    """How far the compiled gradient is from differences of a displayed energy, over :data:`DIFFERENCES` of its size.

    On a curved manifold the energies agree on the manifold alone, and so do their slopes along it.
    """
    gradient, axes = target.gradient_at(point[None])[0], np.eye(target.dim)
    if target.geometry is not Euclidean:
        axes = np.linalg.svd(point[None])[2][1:] if issubclass(target.geometry, Sphere) else axes[:0]
    # Of positive coordinates a step stays far from 0.
    near = 1e-5 * (1.0 if target.support == LINE else min(1.0, np.abs(point).min()))
    worst = 0.0
    for axis in axes[np.linspace(0, len(axes) - 1, min(len(axes), MOST_SLOPES)).astype(int)]:
        step = near * axis
        ends = [displayed_energy(target, tex, point + sign * step) for sign in (1, -1)]
        found = (ends[0] - ends[1]) / (2 * np.linalg.norm(step))
        worst = max(worst, abs(found - gradient @ axis) / max(1.0, np.abs(gradient).max()))
    return worst / DIFFERENCES


def cases():
    """Each target at its defaults and at settings of its own; with few data only, where each has many terms."""
    out = []
    for key in TARGETS:
        own = [given for _, given in cases_of(key)[-1:]]
        if key not in TYPED:
            out += [(key, given) for given in dict.fromkeys(own if of_a_long_run(key) else [(), *own])]
    return out


@pytest.mark.slow
@for_each("case", cases())
def test_the_displayed_energy_is_the_compiled_one(case):
    target = make(case)
    assert energy_error(target, type(target).tex) < ROUNDING


@for_each(
    "energy",
    [
        "theta1^2/2 + (theta2 - theta1)^2",
        "theta1^4/4 + log(1 + exp(theta2)) + theta2^2/3 - cos(theta1*theta2)^2/5",
        "2*sqrt(1 + theta1^2)^3 + abs(theta2)^1.5 + tanh(theta1)/(2 + theta2^2) + theta2^2",
        "theta1^2*(1 + theta2^2) + theta2^2 - log(2 + sin(theta1))",
    ],
)
def test_a_typed_energy_is_displayed_as_it_runs(energy):
    target = TARGETS["typed"](energy=energy, extent=12.0)
    assert energy_error(target, target.tex) < ROUNDING


TEXTS = [
    *(text for preset in PRESETS.values() for text in (preset.prior, preset.row)),
    "cauchy_lpdf(x, m, 2) + laplace_lpdf(x, m, k) + gamma_lpdf(k, 2, n) + beta_lpdf(p, 2, n) + lognormal_lpdf(k, m, 2)",
    "binomial_logit_lpmf(3, 8, m) + neg_binomial_2_log_lpmf(3, m, k) + von_mises_lpdf(x, m, k) - poisson_log_lpmf(2, m)",
    "normal_lcdf(x, m, k) + normal_lccdf(x, m, k) + lognormal_lcdf(k, m, 2) + lognormal_lccdf(k, m, 2)",
    "exponential_lcdf(k, 2) + exponential_lccdf(k, 3) + weibull_lcdf(k, 2, 3) + weibull_lccdf(k, 2, 4)",
    "log_mix(p, normal_lpdf(m, 0, 1), cauchy_lpdf(m, 1, 2)) - zero_times(p, -exp(m)) + exponential_lpdf(k, 1/2)",
]
"""Priors and rows as they are typed: all densities, and each table's first model."""
SHARES, COUNTS = {"p", "ended"}, {"y"}
SIX_DIGITS = 2e-6
"""Numbers are displayed with so many."""


def text_error(text, replace=("", "")):
    """The largest error of the display of what was typed, at random values of its names, over its size."""
    names = sorted({word for kind, word in grammar.tokens(text) if kind == "name"} - {*DENSITIES, *FUNCTIONS})
    rng = np.random.default_rng(2)
    tex = displayed(text, names, "row")
    assert replace[0] in tex
    value = read(tokens(typed(tex.replace(*replace))))
    errors = []
    for _ in range(N_POINTS):
        values = {
            one: rng.integers(0, 2)
            if one in COUNTS
            else rng.uniform(0.1, 0.9)
            if one in SHARES
            else rng.uniform(0.5, 2)
            for one in names
        }
        wanted = float(parse(text, names, "row").evaluate(**values))
        errors.append(abs(float(value(with_latex_names(values))) - wanted) / max(1.0, abs(wanted)))
    return max(errors)


def with_latex_names(values):
    """Values by the symbols of their names: x_1 for x1, and a sign of its own for a word."""
    out = {}
    for name, value in values.items():
        letters = name.rstrip("0123456789")
        symbol = letters if len(letters) == 1 else rf"\w{letters}"
        out[f"{symbol}_{name[len(letters) :]}" if letters != name else symbol] = value
    return out


@for_each("text", TEXTS)
def test_what_is_typed_is_displayed_as_it_runs(text):
    assert text_error(text) < SIX_DIGITS


@for_each(
    ("part", "right", "planted"),
    [
        ("bernoulli", "logit}^{-1}", "sign}"),
        ("student_t", "s\\right)", "s^2\\right)"),
        ("von_mises", "\\log\\mathrm{Poisson}", "2 \\log\\mathrm{Poisson}"),
        ("normal_lpdf(m, 0, 5)", "t^{2}", "t"),
        ("weeks", "log S_", "log F_"),
        ("weeks", "(\\mathrm{ended} - 1", "(\\mathrm{ended} + 1"),
        ("zero_times", "\\left(-e^{m}\\right)", "-e^{m}"),
    ],
)
def test_another_display_is_seen(part, right, planted):
    assert text_error(next(text for text in TEXTS if part in text), (right, planted)) > 1e-4


def posterior_error(replace=("", "")):
    """The same of a posterior, rows, prior and Jacobian together."""
    target = TypedPosterior(**PRESETS["outliers"]._replace(table="outliers")._asdict())
    tex = typed(target.tex.replace(*replace).removeprefix(r"U(\theta) = "))
    before, _, inside = tex.partition(r"\sum_{i=1}^{N}")
    row, _, after = inside.partition(" - J")
    theta = 0.4 * np.random.default_rng(1).standard_normal((N_POINTS, target.dim))
    found = []
    for point in theta:
        values = dict(zip([each.name for each in target.bounded], map(float, target.constrained(point)), strict=True))
        env = {**with_latex_names(values), "J": -log_stretch(target.bounded, values), "Z": 0.0}
        of_row = read(tokens(row))
        for i in range(target.n_data):
            env["Z"] += of_row(env | with_latex_names({name: float(x[i]) for name, x in target.titles.items()}))
        found.append(float(read(tokens(f"{before} Z {'- J' if 'J' in tex else ''} {after}"))(env)))
    wanted = target.energies_at(theta)
    return float(np.abs(np.array(found) - wanted).max() / np.abs(wanted).max())


@pytest.mark.slow
def test_a_typed_posterior_is_displayed_as_it_runs():
    assert posterior_error() < ROUNDING
    for right in (r" - \log\lvert J\rvert", r"-\Bigl(\log", r"- \sum"):
        assert posterior_error((right, right.replace("-", "+"))) > 1e-4


def test_a_gradient_of_another_energy_is_seen():
    """Fails where the gradient is compared with itself: it is that of another width here."""
    target, other = make(("ring", ())), make(("ring", (("width", 0.6),)))
    point = few_draws(target, 1)[0]
    assert slope_error(target, type(target).tex, point) < 1
    with patch.object(type(target), "gradient_at", lambda self, theta: Target.gradient_at(other, theta)):
        assert slope_error(target, type(target).tex, point) > 10


@for_each(
    ("key", "right", "planted"),
    [
        ("ring", "2w^2", "w^2"),
        ("banana", r"\tfrac12", r"\tfrac13"),
        ("gaussian_mixture", r"/2\sigma^2", r"/\sigma^2"),
        ("sparse_dirichlet", r"(\alpha-1)", r"\alpha"),
        ("linear_table", "d + 2", "d + 1"),
        ("fisher", r"\sin\alpha\cos\beta", r"\cos\alpha\cos\beta"),
    ],
)
def test_another_displayed_energy_is_seen(key, right, planted):
    target = make((key, ()))
    tex = type(target).tex
    assert right in tex
    assert energy_error(target, tex.replace(right, planted)) > 1e-3


# A step's update

VARIANCE = 3.0
"""The variance of the gradient's noise: εB̂ is some per cent of the 2 or 2C from which it is subtracted."""
TARGET_OF = {"sgrld": "gamma", "root_sgld": "gamma", "geometric_ou": "lognormal"} | dict.fromkeys(
    ("sggmc", "gsgnht", "gmc", "sggmc_euler", "gsgnht_euler", "geodesic_sgld", "normalised_sgld"), "fisher"
)
"""The targets of samplers that do not move in the plane."""
SETTINGS = {
    "hmc": {"n_leapfrog": 1},
    "gmc": {"n_leapfrog": 1},
    "obabo": {"n_leapfrog": 1},
    "psgld": {"gamma": False},
    "resgld": {"rungs": 2, "hottest": 5.0},
    "parallel_tempering": {"rungs": 2, "hottest": 5.0},
}
MEMORY = {
    "psgld": lambda r, d: {"v": r[:d]},
    "asgld": lambda r, d: {"m": r[:d], "v": r[d:]},
}
"""The symbols of what a sampler keeps beside momenta and thermostats, and renews in a step."""
RUNGS = ("resgld", "parallel_tempering")
"""Samplers whose step is shown for the rung k; here of two, the hotter one first."""
GIVEN = {
    "cyclical_sgld": lambda theta, r: {"k": r[len(theta)]},
    "root_sgld": lambda theta, r: {"x_t": 2 * np.sqrt(theta)},
}
"""Symbols at the start of a step."""
UNREAD = {
    **dict.fromkeys(("scir", "cir"), "draws from Poisson and gamma distributions"),
    **dict.fromkeys(("barker", "sg_barker", "zigzag", "bps", "tunamh"), "jumps with probabilities or rates"),
    **dict.fromkeys(("slice", "elliptical_slice", "nuts", "adaptive_metropolis", "demcz"), "words, cases or sets"),
    **dict.fromkeys(("austerity", "hmc_ecs", "chees", "amagold", "mclmc"), "words in the midst of the step"),
    **dict.fromkeys(("chmc", "rmhmc"), "implicit equations"),
    **dict.fromkeys(("svgd", "mirrored_langevin", "contour_sgld"), "indices of chains, times and bins"),
    "recipe": "matrices that are typed: a test of its own reads it",
    "exact": "a draw from the target",
}
"""Updates that are not read, each with the reason: the textbook step alone holds these."""


def step_error(key, replace=("", ""), shown="", **target_params):
    """The largest difference of a displayed step and the textbook's in the mean and the covariance.

    It is the one on the sampler's card unless another is ``shown``.
    """
    cls = SAMPLERS[key]
    target = TARGET_OF.get(key, "banana")
    noisy = (
        (not shown or r"\tilde" in shown)
        and "gaussian_corrected" in cls.gradients_for(TARGETS[target])
        and key not in ("baoab", "badodab", "obabo")
    )
    gradient, given = ("gaussian_corrected", {"variance": VARIANCE}) if noisy else ("full", {})
    spec = RunSpec.of(
        target, key, gradient, sampler_params=SETTINGS.get(key, {}), gradient_params=given, n_chains=1, seed=5,
        target_params=target_params,
    )  # fmt: skip
    run = Run(spec)
    run.advance(3)
    d, v = run.target.dim, VARIANCE if noisy else 0.0
    kept = run.momentum[0]
    sampler = run.next_sampler
    tex = shown or cls.update_by(type(run.gradient), spec.sampler.values())
    assert replace[0] in tex
    step = program(tex.replace(*replace))
    names = ("x", "v") if target == "fisher" else (r"\theta", "r")

    def textbook(rng):
        play = Play(run)
        play.rng = rng
        with patch.object(steps, "swap"):
            play.step()
        return ends(play.theta[0], play.momentum[0])

    def ends(theta, r):
        parts = {names[0]: theta}
        n = sampler.thermostats(run.target)
        if r.size >= d and sampler.momentum and key not in MEMORY and key not in ("hmc", "gmc", "cyclical_sgld"):
            parts[names[1]] = r[:d]
        if n:
            parts[r"\xi"] = r[-n:] if n > 1 else r[-1]
        if key in RUNGS:
            parts["hot"] = r[:d]
        if key in MEMORY:
            parts |= MEMORY[key](r, d)
        ends.names = list(parts)
        return np.concatenate([np.atleast_1d(one) for one in parts.values()])

    def displayed(rng):
        found = {}

        def slope(at, estimated):
            x = np.atleast_1d(at)
            if (x.tobytes(), estimated) not in found:
                noise = [rng.standard_normal() for _ in x] if estimated and v else np.zeros(len(x))
                found[x.tobytes(), estimated] = run.target.gradient_at(x[None])[0] + np.sqrt(v) * np.array(noise)
            return found[x.tobytes(), estimated]

        manifold = run.manifold
        env = symbols(sampler) | (symbols(run.target) if key == "geometric_ou" else {}) | {
            "d": d, "m": d - 1, "I": np.eye(d), r"\hatB": v, r"\hat{B}": v, "V": v, "T_k": 1.0,
            "slope": slope, "normals": lambda: np.array([rng.standard_normal() for _ in range(d)]),
            "projection": lambda x: np.eye(d) - np.outer(x, x),
            "geodesic": lambda time, x, v: manifold.textbook_geodesic(x, v, time),
            "exponential": lambda x, v: manifold.textbook_geodesic(x, v, 1.0)[0],
            r"\xi_t": rng.standard_normal if d == 1 else lambda: rng.standard_normal(d),
        }  # fmt: skip
        parts = ends(run.coordinates[0], kept)
        at = 0
        for name in ends.names:
            size = 1 if name in (r"\xi", "k") and sampler.thermostats(run.target) <= 1 else d
            env[name] = parts[at : at + size] if size > 1 or d == 1 else parts[at]
            at += size
            if name != r"\xi" or target == "fisher":
                env[f"{name}_t"] = env[name]
        env[f"{names[0]}_k"] = env[names[0]]
        env |= GIVEN.get(key, lambda theta, r: {})(run.coordinates[0], kept)
        if key in RUNGS:
            hot = env | {f"{names[0]}_k": env["hot"], "T_k": SETTINGS[key]["hottest"]}
            execute(step, hot)
            env["hot"] = hot.get(f"{names[0]}'", hot[f"{names[0]}_k"])
        execute(step, env)
        if r"\log\theta_{t+h}" in env:
            env[names[0]] = np.exp(env[r"\log\theta_{t+h}"])
        last = {names[0]: [f"{names[0]}_k", f"{names[0]}'", names[0]]}
        out = []
        for name in ends.names:
            options = [one for one in last.get(name, [name]) if one in env and any(one in left for left, _ in step)]
            out.append(np.atleast_1d(env[options[0]] if options else env[name]))
        return np.concatenate(out)

    (middle, covariance), (wanted, spread) = linear(displayed), linear(textbook)
    size = max(1.0, np.abs(wanted).max())
    return max(
        float(np.abs(middle - wanted).max()) / size, float(np.abs(covariance - spread).max() / np.abs(spread).max())
    )


@for_each("key", list(SAMPLERS))
def test_the_displayed_step_is_the_textbooks(key):
    """And so the compiled one, which equals the textbook's in another test. The others are in the list."""
    assert (key in UNREAD) or step_error(key) < 1e-6


# D and Q

TINY = 1e-5
"""A step so small that (end − start)/ε is −(D + Q)∇H + Γ to three digits, and the covariance over ε is 2D."""
THERMOSTATS = {"msgnht": lambda sampler, d: 1.0, "badodab": lambda sampler, d: sampler.thermal_mass * d}
"""The mass M of the thermostats, with the term M(ξ − C)²/2 in H."""
OF_A_LIMIT = ("sgld", "mala", "sghmc", "baoab", "obabo", "msgnht", "badodab", "sgrld", "root_sgld", "geometric_ou")
NO_LIMIT = {
    **dict.fromkeys(("hmc", "nuts", "chmc", "rmhmc", "hmc_ecs", "chees", "gmc"), "the momentum is drawn anew in a step"),
    **dict.fromkeys(("sggmc", "gsgnht", "sggmc_euler", "gsgnht_euler", "geodesic_sgld", "normalised_sgld"), "the matrices of the embedding are singular on the sphere"),
    **dict.fromkeys(("scir", "cir"), "exact transitions in place of steps; their law is tested"),
    **dict.fromkeys(("barker", "sg_barker", "amagold"), "a jump with a probability"),
    **dict.fromkeys(("cyclical_sgld", "psgld", "asgld", "contour_sgld"), "D and the drift of SGLD, times what the sampler has learnt or the time says"),
    **dict.fromkeys(("resgld", "parallel_tempering"), "SGLD and MALA at T_k, whose steps are read above"),
    **dict.fromkeys(("svgd", "mirrored_langevin", "mclmc"), "words, or another space"),
    **dict.fromkeys(("rwm", "zigzag", "bps", "adaptive_metropolis", "demcz", "slice", "elliptical_slice", "austerity", "tunamh", "exact"), "no D or Q is displayed"),
    "recipe": "they are typed",
}  # fmt: skip
"""Samplers whose D and Q are not compared with the limit of small steps, each with the reason."""


def matrices(sampler, target, start):
    """D and Q as functions of z, from their LaTeX, with blocks for θ, the momentum and thermostats."""
    d, n = target.dim, len(start)
    n_xi = sampler.thermostats(target)
    sizes = [d, *([d] if n > d else []), *([n_xi] if n_xi else [])]

    def block(value, rows, columns):
        value = np.asarray(value, dtype=float)
        if value.shape in ((rows, columns), (rows, 1), (1, columns)):
            return value
        if value.ndim == 1 and columns == 1:
            return value[:, None]
        return value * np.eye(rows, columns)

    def evaluated(tex, z):
        env = symbols(sampler) | symbols(target) | {"I": np.eye(d), "d": d, "r": z[d : 2 * d]}
        env[r"\theta"] = z[:d]
        text = tex.partition("=")[2].strip().replace(r"\operatorname{diag} r", r"\operatorname{diag}(r)")
        if r"\begin" not in text:
            found = read(tokens(text))(env)
            return block(np.diag(found) if np.ndim(found) == 1 else found, n, n)
        inner = text.removeprefix(r"\begin{pmatrix}").removesuffix(r"\end{pmatrix}")
        entries = [[read(tokens(one))(env) for one in row.split("&")] for row in inner.split(r"\\")]
        # A row of a vector: what stands behind a transposition.
        return np.block(
            [[block(e, a, b) for e, b in zip(row, sizes, strict=True)] for row, a in zip(entries, sizes, strict=True)]
        )

    return lambda z: evaluated(sampler.diffusion, z), lambda z: evaluated(sampler.curl, z)


def limit_error(key, replace=("", "")):
    """How far small steps are from the drift and the noise of the displayed D and Q, over their sizes."""
    target = TARGET_OF.get(key, "banana")
    spec = RunSpec.of(
        target, key, "full", sampler_params={"step_size": 0.02, **SETTINGS.get(key, {})}, n_chains=1, seed=5
    )
    run = Run(spec)
    run.advance(3)
    tiny = max(TINY, dict(declared(SAMPLERS[key]))["step_size"].bounds[0])
    sampler, d = SAMPLERS[key](**{**spec.sampler.values(), "step_size": tiny}), run.target.dim
    n_xi = sampler.thermostats(run.target)

    def ends(theta, r):
        return np.concatenate([theta, r[:d] if sampler.momentum else [], r[len(r) - n_xi :]])

    start = ends(run.coordinates[0], run.momentum[0])

    def outcome(rng):
        play = Play(run)
        play.rng, play.sampler = rng, sampler
        play.step()
        return ends(play.theta[0], play.momentum[0])

    shown = SAMPLERS[key]
    with patch.multiple(shown, diffusion=shown.diffusion.replace(*replace), curl=shown.curl.replace(*replace)):
        diffusion, curl = matrices(sampler, run.target, start)
        both = lambda z: diffusion(z) + curl(z)  # noqa: E731
        slope = np.concatenate([run.target.gradient_at(start[None, :d])[0], start[d : 2 * d], start[2 * d :]])
        if len(start) > 2 * d:
            slope[2 * d :] = THERMOSTATS[key](sampler, d) * (start[2 * d :] - sampler.friction)
        steps = 1e-5 * np.eye(len(start))
        gamma = sum((both(start + h) - both(start - h))[:, j] / 2e-5 for j, h in enumerate(steps))
        drift, noise = -both(start) @ slope + gamma, 2 * diffusion(start)
    middle, covariance = linear(outcome)
    # Itô's term: the mean of a curve of the noise is not its value without noise.
    mean = middle.copy()
    for k in range(len(start)):
        mean += sum(outcome(Set([0.0] * k + [sign])) - middle for sign in (1.0, -1.0)) / 2
    return max(
        np.abs((mean - start) / tiny - drift).max() / np.abs(drift).max(),
        np.abs(covariance / tiny - noise).max() / np.abs(noise).max(),
    )


@for_each("key", list(SAMPLERS))
def test_the_displayed_matrices_are_those_of_small_steps(key):
    assert (key in NO_LIMIT) != (key in OF_A_LIMIT)
    assert key in NO_LIMIT or limit_error(key) < 1e-3


@for_each(
    ("key", "right", "planted"),
    [
        ("sgld", "D = I", "D = 2I"),
        ("sghmc", "0&C", "0&2C"),
        ("sghmc", "0&-I", "0&I"),
        ("msgnht", "-\\operatorname", "\\operatorname"),
        ("badodab", r"r^\top/(\mu d)", r"r^\top/\mu"),
        ("sgrld", r"\theta", r"2\theta"),
        ("geometric_ou", r"\theta^2", r"\theta"),
    ],
)
def test_another_displayed_matrix_is_seen(key, right, planted):
    assert limit_error(key, (right, planted)) > 0.01


# A recipe's update

WELL = {"layout": "theta_r", "curl_entries": ("-1",)}
RECIPES = {
    "derived": {**WELL, "diffusion_entries": ("1 + theta^2/4", "0", "2")},
    "without −D∇H": {**WELL, "diffusion_entries": ("1 + theta^2/4", "0", "2"), "dissipation": False},
    "without Γ": {**WELL, "diffusion_entries": ("1 + theta^2/4", "0", "2"), "gamma": False},
    "typed": {**WELL, "diffusion_entries": ("1", "0", "2"), "drift_entries": ("r - theta", "-theta^3 - 2*r")},
    "a typed row": {**WELL, "diffusion_entries": ("1 + theta^2/4", "0", "2"), "drift_entries": ("", "-theta^3 - 2*r")},
    "semi-implicit": {**WELL, "diffusion_entries": ("0", "0", "2 + theta^2"), "scheme": "semi_implicit"},
    "semi-implicit, typed": {**WELL, "diffusion_entries": ("0", "0", "2"), "drift_entries": ("", "-theta^3 - 2*r"), "scheme": "semi_implicit"},
}  # fmt: skip


def recipe_error(values, replace=("", "")):
    """The largest difference of the displayed step of a recipe and the textbook's in the mean and the covariance."""
    spec = RunSpec.of(
        "double_well", "recipe", "gaussian_corrected", n_chains=1, seed=5,
        sampler_params={"step_size": 0.05, **values}, gradient_params={"variance": VARIANCE},
    )  # fmt: skip
    run = Run(spec)
    run.advance(3)
    sampler = run.next_sampler
    recipe, start = sampler.recipe(run.target), np.concatenate([run.coordinates[0], run.momentum[0]])
    tex = type(sampler).update_by(type(run.gradient), spec.sampler.values())
    assert replace[0] in tex
    general, *remarks = tex.replace(*replace).replace(r"\nabla\tilde H", "g").replace("f(z_t)", "f").split(r",\quad")
    typed_row = next(
        (re.search(r"\}\s*(.*f) \\text\{ as the drift of rows? (\d)", one) for one in remarks if "drift" in one), None
    )
    ((_, step),) = program(general)
    own = typed_row and read(tokens(typed_row[1]))

    def textbook(rng):
        play = Play(run)
        play.rng = rng
        play.step()
        return np.concatenate([play.theta[0], play.momentum[0]])

    def displayed(rng):
        gradient_noise = np.sqrt(VARIANCE) * np.array([rng.standard_normal(), 0.0])
        normals = []

        def moved(z):
            given = dict(zip(recipe.layout.names, z, strict=True))
            d, q, typed = (
                np.array([[float(e.evaluate(**given)) for e in row] for row in matrix])
                for matrix in (recipe.D, recipe.Q, [recipe.drift])
            )
            g = np.array([float(e.evaluate(**given)) for e in recipe.gradient]) + gradient_noise
            enters = ((d if values.get("dissipation", True) else 0 * d) + q)[:, :1]
            for row, text in enumerate(values.get("drift_entries", ())):
                enters[row] *= not text
            noisy = np.flatnonzero(d.diagonal())

            def root(covariance):
                if not normals:
                    normals.extend(rng.standard_normal() for _ in noisy)
                out = np.zeros(2)
                out[noisy] = np.linalg.cholesky(covariance[np.ix_(noisy, noisy)]) @ normals
                return out

            env = {
                r"\epsilon": 0.05, "z_t": z, "D": d, "Q": q, "g": g, r"\hatB": VARIANCE * enters @ enters.T, "root": root,
                r"\Gamma": np.array([float(e.evaluate(**given)) for e in recipe.gamma]), "f": typed[0],
            }  # fmt: skip
            end = step(env)
            if own:
                k = int(typed_row[2]) - 1
                plain = program(r"z = z_t + \mathcal N\bigl(0, \epsilon(2D - \epsilon\hat B)\bigr)")[0][1](env)
                end[k] = plain[k] + own(env)[k]
            return end

        end = moved(start)
        if any(r"z_t = (\theta_{t+1}, r_t)" in one for one in remarks):
            end[1] = moved(np.array([end[0], start[1]]))[1]
        return end

    (middle, covariance), (wanted, spread) = linear(displayed), linear(textbook)
    return max(float(np.abs(middle - wanted).max()), float(np.abs(covariance - spread).max() / np.abs(spread).max()))


@for_each("case", RECIPES)
def test_the_displayed_step_of_a_recipe_is_the_textbooks(case):
    assert recipe_error(RECIPES[case]) < 1e-6


@for_each(
    ("case", "right", "planted"),
    [
        ("derived", "(2D -", "(D -"),
        ("derived", r"\epsilon Q\nabla", r"\epsilon D\nabla"),
        ("derived", r"+ \epsilon\,\Gamma", r"- \epsilon\,\Gamma"),
        ("typed", r"2\epsilon D", r"\epsilon D"),
        ("typed", r"+ \epsilon f", r"- \epsilon f"),
        ("a typed row", "row 2", "row 1"),
        ("semi-implicit", r"(\theta_{t+1}", r"(\theta_t"),
    ],
)
def test_another_displayed_step_of_a_recipe_is_seen(case, right, planted):
    assert recipe_error(RECIPES[case], (right, planted)) > 1e-4


@for_each(
    ("key", "right", "planted"),
    [
        ("sgld", "(2 -", "(1 -"),
        ("sgld", r"\epsilon\hat B", r"2\epsilon\hat B"),
        ("sghmc", r"\epsilon C)", r"C)"),
        ("sghmc", r"\tilde U(\theta_{t+1})", r"\tilde U(\theta_t)"),
        ("baoab", r"e^{-2C", r"e^{-C"),
        ("sggmc", r"V\epsilon^2", r"V\epsilon"),
        ("gsgnht", "2/m", "2"),
        ("resgld", "2T_k", "T_k"),
        ("resgld", "2T_k", "2"),
        ("parallel_tempering", "2\\epsilon T_k", "2\\epsilon"),
        ("psgld", r"\alpha v", "v"),
        ("sgrld", r"(1 - \theta_t", r"(2 - \theta_t"),
    ],
)
def test_another_displayed_step_is_seen(key, right, planted):
    assert step_error(key, (right, planted)) > 1e-4


# Equations of lessons

LESSONS = Path(__file__).parents[2] / "lessons" / "course"
LESSON_STEPS = {
    "01-langevin": ("sgld", {}, r"\sqrt{2\epsilon}", r"\sqrt{\epsilon}", [r"\theta_{t+1} = \theta_t - \epsilon\,\nabla U(\theta_t) + \sqrt{2\epsilon}\;\xi_t, \qquad \xi_t \sim \mathcal N(0, I)."]),
    "04-momentum": ("sghmc", {}, r"2C - \epsilon", r"C - \epsilon", [r"\theta \leftarrow \theta + \epsilon r,", r"r \leftarrow r - \epsilon\nabla\tilde U(\theta) - \epsilon C r + \mathcal N\bigl(0, \epsilon(2C - \epsilon\hat B)\bigr)."]),
    "12-boundary": ("sgrld", {"shape": 0.1}, "0.1 -", "0.2 -", [r"\theta_{t+1} = \Bigl|\,\theta_t + \epsilon\,(0.1 - \theta_t) + \sqrt{2\epsilon\,\theta_t}\;\xi_t\Bigr|."]),
}  # fmt: skip
"""The steps that lessons print: the sampler that makes them, its target's parameters, a planted fault, the equations.

Not read: the differential equations of continuous time, and the rules of acceptance, whose probabilities other tests
compare with the kernels' counts.
"""


@for_each("lesson", LESSON_STEPS)
def test_the_step_that_a_lesson_prints_is_the_textbooks(lesson):
    key, given, right, planted, equations = LESSON_STEPS[lesson]
    text = (LESSONS / f"{lesson}.md").read_text(encoding="utf-8")
    assert all(f"\n$${one}$$\n" in text for one in equations)
    # ξ_t is a draw of its own, which needs no equation.
    shown = r"\\".join(one.partition(r" \qquad")[0].rstrip(".,") for one in equations)
    assert step_error(key, shown=shown, **given) < 1e-6
    assert step_error(key, (right, planted), shown=shown, **given) > 1e-4


def test_the_energy_that_a_lesson_prints_is_the_compiled_one():
    tex = r"U(\theta) = \theta + 0.9 \log\theta"
    assert f"\n$${tex}, " in (LESSONS / "12-boundary.md").read_text(encoding="utf-8")
    target = make(("gamma", (("shape", 0.1),)))
    assert energy_error(target, tex) < ROUNDING
    assert energy_error(target, tex.replace("0.9", "0.8")) > 1e-3
