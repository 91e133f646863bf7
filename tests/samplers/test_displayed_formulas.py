"""The formulas on the cards are those that run: read from their LaTeX and evaluated beside the compiled functions."""

from unittest.mock import patch

import numpy as np
import pytest

from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers import textbook as steps
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.step_terms import Play
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each, of_a_long_run
from tests.helpers.checks_targets import cases_of, few_draws, make, potential_at
from tests.helpers.latex import execute, program, with_definitions

N_POINTS = 3
ROUNDING = 1e-9
TYPED = ("typed", "posterior")
"""Targets whose formula is made of what is typed."""


def symbols(thing):
    """The values of the symbols that the parameters of a target or a sampler have in formulas."""
    out = {r"\pi": np.pi}
    for name, parameter in declared(type(thing)):
        if tex := getattr(parameter, "tex", ""):
            value = getattr(thing, name)
            symbol, squared, _ = tex.partition("^2")
            if value != ():  # not set: the formula says what is taken then
                out[symbol] = np.sqrt(value) if squared else value
    return out


def energy_error(target, tex):
    """The largest error of a displayed energy at random points, after its constant, over its size."""
    if of_a_long_run(target.key):
        theta = np.random.default_rng(1).standard_normal((N_POINTS, target.dim))
    else:
        theta = few_draws(target, N_POINTS)
    found = []
    for point in theta:
        given = {**symbols(target), r"\theta": point if target.dim > 1 else point[0]}
        given |= getattr(target, "textbook_symbols", lambda theta: {})(point)
        energy, env = with_definitions(tex, given)
        found.append(float(energy(env)))
    wanted = potential_at(target, theta)
    apart = np.array(found) - wanted
    return float(np.ptp(apart) / max(1.0, np.ptp(wanted)))


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
    "recipe": "matrices that are typed; tests/samplers/recipe reads them entry by entry",
    "exact": "a draw from the target",
}
"""Updates that are not read, each with the reason: the textbook step alone holds these."""


class Set:
    """Random numbers that are set: normal ones from a list, and every proposal is accepted, no swap made."""

    def __init__(self, normals):
        self.normals, self.used = normals, 0

    def standard_normal(self, size=None):
        if size is not None:
            return np.reshape([self.standard_normal() for _ in range(np.prod(size))], size)
        self.used += 1
        return self.normals[self.used - 1] if self.used <= len(self.normals) else 0.0

    def random(self):
        return 1e-300


def linear(outcome):
    """The end of a step without noise, and its covariance for standard normal noise: a linearisation at 0.

    ``outcome(rng)`` gives the end as a vector.
    """
    counter = Set([])
    middle = outcome(counter)
    rows = []
    for k in range(counter.used):
        ends = [outcome(Set([0.0] * k + [h])) for h in (1e-4, -1e-4)]
        rows.append((ends[0] - ends[1]) / 2e-4)
    return middle, np.array(rows).T @ np.array(rows)


def step_error(key, replace=("", "")):
    """The largest difference of the displayed step and the textbook's in the mean and the covariance."""
    cls = SAMPLERS[key]
    target = TARGET_OF.get(key, "banana")
    noisy = "gaussian_corrected" in cls.gradients_for(TARGETS[target]) and key not in ("baoab", "badodab", "obabo")
    gradient, given = ("gaussian_corrected", {"variance": VARIANCE}) if noisy else ("full", {})
    spec = RunSpec.of(
        target, key, gradient, sampler_params=SETTINGS.get(key, {}), gradient_params=given, n_chains=1, seed=5
    )
    run = Run(spec)
    run.advance(3)
    d, v = run.target.dim, VARIANCE if noisy else 0.0
    kept = run.momentum[0]
    sampler = run.next_sampler
    tex = cls.update_by(type(run.gradient), spec.sampler.values())
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
            r"\xi_t": rng.standard_normal,
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
