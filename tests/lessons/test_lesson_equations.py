"""The equations that lessons print on lines of their own: read from their LaTeX, beside what runs in the lesson.

Each is read, here or in :mod:`tests.samplers.test_displayed_formulas`, or in a list with the reason why not.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from sgmcmc_lab.samplers import Run, RunSpec
from sgmcmc_lab.samplers.expressions import parse
from sgmcmc_lab.samplers.kernels.recipe import RecipeSampler
from sgmcmc_lab.samplers.recipe.presets import PRESETS
from sgmcmc_lab.samplers.schedules import Polynomial
from sgmcmc_lab.samplers.step_terms import Play
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_targets import potential_at
from tests.helpers.latex import read, tokens
from tests.helpers.set_noise import linear

COURSE = Path(__file__).parents[2] / "lessons" / "course"
TEXTS = {path.stem[:2]: path.read_text(encoding="utf-8") for path in sorted(COURSE.glob("*.md"))}
EQUATIONS = [
    (number, tex) for number, text in TEXTS.items() for tex in re.findall(r"(?<=\n\n)\$\$(.+?)\$\$(?=\n\n)", text, re.S)
]
RNG = np.random.default_rng(3)


def value(tex, **symbols):
    """The value of an expression; names with a backslash as ``backslash_name``."""
    env = {rf"\{name[1:]}" if name.startswith("_") else name: each for name, each in symbols.items()}
    return read(tokens(tex))(env)


def sides(tex):
    """The sides of an equation, without the name on the left and the stop at the end."""
    return [one.strip().rstrip(".,") for one in re.split(r",?\s*\\qquad", tex)[0].split("=")][1:]


def step(target, sampler, gradient="full", **values):
    """The mean factor of θ in a step of a sampler on a Gaussian with the mean 0, and the variance of its noise."""
    spec = RunSpec.of(target[0], sampler, gradient, target_params=target[1], n_chains=1, seed=5, **values)
    run = Run(spec)

    def outcome(rng, start=0.0):
        play = Play(run)
        play.rng, play.theta[:] = rng, start
        play.step()
        return play.theta[0].copy()

    middle, variance = linear(outcome)
    end, _ = linear(lambda rng: outcome(rng, 1.0))
    return float((end - middle)[0]), float(variance[0, 0])


def stationary(*args, **values):
    """The variance that the recursion of these steps has in the end."""
    factor, variance = step(*args, **values)
    return variance / (1 - factor**2)


def apart(found, wanted):
    """The largest difference, over the size."""
    wanted = np.asarray(wanted, dtype=float)
    return float(np.abs(np.asarray(found, dtype=float) - wanted).max() / max(np.abs(wanted).max(), 1e-12))


def same_matrix(tex, entries, *names):
    """How far a displayed vector or matrix is from entries that lanes of the lesson have, row by row."""
    theta = RNG.uniform(-1, 1, 2)
    given = {"theta1": theta[0], "theta2": theta[1]}
    wanted = [[parse(one, tuple(given), "entry").evaluate(**given) for one in row] for row in entries]
    return apart(value(tex, _theta=theta), np.array(wanted, dtype=float))


GAUSSIAN = ("gaussian", {})


def variance_of_diffusion(tex, text):
    wanted = stationary(
        GAUSSIAN, "recipe",
        sampler_params={"step_size": 0.05, "diffusion_entries": ("1/2",), "drift_entries": ("-theta",)},
    )  # fmt: skip
    return max(apart(value(one, D=0.5, _epsilon=0.05), wanted) for one in sides(tex))


def variance_of_step(tex, text):
    wanted = stationary(GAUSSIAN, "sgld", sampler_params={"step_size": 0.4})
    return apart(value(sides(tex)[0], _epsilon=0.4), wanted)


def variance_of_noise(tex, text):
    wanted = stationary(
        GAUSSIAN, "sgld", "gaussian", sampler_params={"step_size": 0.3}, gradient_params={"variance": 2.0}
    )
    return max(apart(value(one, V=2.0, _epsilon=0.3), wanted) for one in sides(tex))


def variance_of_scale(tex, text):
    wanted = stationary(("gaussian", {"sd": 0.6**0.5}), "sgld", sampler_params={"step_size": 0.2})
    return apart(value(tex.rstrip("."), s=0.6, _epsilon=0.2), wanted)


def descent(tex, text):
    factor, _ = step(GAUSSIAN, "sgld", sampler_params={"step_size": 0.3})
    shown = sides(tex)[0].replace(r"\nabla U(\theta_t)", r"\theta_t")
    return apart(value(shown, _epsilon=0.3, **{r"_theta_t": 1.0}), factor)


def autocorrelation_time(tex, text):
    factor, _ = step(GAUSSIAN, "sgld", sampler_params={"step_size": 0.3})
    return apart(value(sides(tex)[0], _epsilon=0.3), (1 + factor) / (1 - factor))


def schedule(tex, text):
    t = np.array([0, 7, 1000])
    wanted = 0.1 * Polynomial(exponent=0.4, offset=50.0).shares(t)
    return apart([value(sides(tex)[0], _epsilon=0.1, t=float(k), b=50.0, _gamma=0.4) for k in t], wanted)


def metric(tex, text):
    assert '"1.5*sqrt(theta^2/2 + 1/2)"' in text
    wanted = parse("1.5*sqrt(theta^2/2 + 1/2)", ("theta",), "D").evaluate(theta=0.7)
    return apart(value(sides(tex)[0].replace(r"U(\theta)", "U"), U=0.7**2 / 2, C=0.5), wanted)


def diffusion(tex, text):
    first = "exp(theta1/4)" if "/4" in tex else "1"
    assert f'diffusion_entries = ["{first}", "0", "exp(theta1)"]' in text
    return same_matrix(sides(tex)[0], [[first, "0"], ["0", "exp(theta1)"]])


def divergence(tex, text):
    recipe = RecipeSampler(diffusion_entries=("exp(theta1/4)", "0", "exp(theta1)")).recipe(TARGETS["banana"]())
    wanted = recipe.gamma[0].evaluate(theta1=0.4, theta2=0.1)
    shown = sides(tex)[1]
    return apart(value(shown, _theta=np.array([0.4, 0.1])), wanted)


def drift(tex, text):
    assert 'drift_entries = ["-theta1 - theta1*theta2", "-theta2 + theta1^2 - 1"]' in text
    entries = [["-theta1 - theta1*theta2"], ["-theta2 + theta1^2 - 1"]]
    return same_matrix(sides(tex)[0], entries)


def curl(tex, text):
    assert "curl_sgld(curl_strength:2)" in text
    made = PRESETS["curl_sgld"].recipe(2, curl_strength=2.0)
    return apart(value(sides(tex)[0], q=2.0), [[float(e.evaluate()) for e in row] for row in made.Q])


def found_recipe(tex, text):
    """Three digits are displayed of the numbers."""
    entries = ("3.4169*exp(-0.98274/(1 + 1.2*theta^2))", "-0.41709*exp(1.4353/(1 + 1.2*theta^2))")
    assert all(f'["{one}"]' in text or f'"{one}"]' in text for one in entries)
    of_d, of_q, of_b = tex.replace(r"b(\theta)", "b").rstrip(".").split(r", \quad ")
    b = value(of_b.split("=")[1], _theta=0.6)
    wanted = [parse(one, ("theta",), "D").evaluate(theta=0.6) for one in entries]
    return apart([value(one.split("=")[1], b=b) for one in (of_d, of_q)], wanted) / 1e4


def hamiltonian(tex, text):
    recipe = RecipeSampler(layout="theta_r_xi", thermostat=1.5).recipe(TARGETS["banana"]())
    z = dict(zip(recipe.layout.names, RNG.standard_normal(5), strict=True))
    energy = recipe.potential.evaluate(**{name: z[name] for name in ("theta1", "theta2")})
    r = np.array([z["r1"], z["r2"]])
    found = value(sides(tex)[0].replace(r"\tfrac d2", r"\tfrac{d}{2}"), U=energy, r=r, d=2, A=1.5, _xi=z["xi"])
    return apart(found, recipe.hamiltonian.evaluate(**z))


def quartic(tex, text):
    theta = RNG.uniform(-1, 1, (4, 2))
    found = np.array([value(sides(tex)[0], _theta=point) for point in theta])
    return float(np.ptp(found - potential_at(TARGETS["quartic"](), theta)))


def great_circle(tex, text):
    run = Run(RunSpec.of("fisher", "gmc", "full", n_chains=1, seed=5))
    x, time = run.coordinates[0], 0.4
    v = np.linalg.svd(x[None])[2][1] * 1.7
    shown = sides(tex)[0].replace("x(0)", "x").replace("v(0)", "v").replace(r"\alpha t", r"(\alpha t)")
    found = value(shown, x=x, v=v, t=time, _alpha=np.linalg.norm(v))
    return apart(found, run.manifold.textbook_geodesic(x, v, time)[0])


SCIR = {"h": 0.3, "_theta": 0.7, "a": 0.4}


def rate(tex):
    """The mean of K."""
    inner = tex.split(r"\mathrm{Poisson}\Bigl(")[1].split(r"\Bigr)")[0]
    return value(inner, h=SCIR["h"], _theta=SCIR["_theta"])


def poisson(tex, text):
    """The process has the mean θe⁻ʰ + a(1 − e⁻ʰ) (Cox, Ingersoll & Ross 1985)."""
    h, theta, a = SCIR.values()
    return apart((1 - np.exp(-h)) * (a + rate(tex)), theta * np.exp(-h) + a * (1 - np.exp(-h)))


def mean_of_step(tex, text):
    h, theta, a = SCIR.values()
    of_k = next(one for number, one in EQUATIONS if number == "13" and one.startswith("K"))
    found = value(sides(tex)[0].replace(r"\hat a", "a"), h=h, _theta=theta, a=a)
    return apart(found, (1 - np.exp(-h)) * (a + rate(of_k)))


def mean_of_steps(tex, text):
    h, theta, a = SCIR.values()
    wanted = theta
    for _ in range(5):
        wanted = np.exp(-h) * wanted + (1 - np.exp(-h)) * a
    return apart(value(sides(tex)[0], h=h, k=5, a=a, **{r"_theta_0": theta}), wanted)


def variance_of_steps(tex, text):
    h, wanted = 0.3, 0.0
    for _ in range(5):
        wanted = np.exp(-2 * h) * wanted + (1 - np.exp(-h)) ** 2 * 1.7
    shown = tex.removeprefix(r"\qquad =").replace(r"\operatorname{Var}\hat a", "v").rstrip(".")
    return apart(value(shown, h=h, k=5, v=1.7), wanted)


def near_zero(tex, text):
    """It is the limit ε → 0: at ε = 10⁻⁴ the relative error is ε/11."""
    shown = tex.split(r"\approx")[1].replace(r"\Gamma(1.1)", repr(float(special.gamma(1.1)))).rstrip(".")
    return apart(value(shown, _epsilon=1e-4), stats.gamma.cdf(1e-4, 0.1)) / 1e5


def relative_spread(tex, text):
    law = stats.binom(30, 0.2)
    return apart(value(tex.rstrip("."), n=30, p=0.2), law.std() / law.mean())


READ = {
    ("01", r"\theta_{t+1} = \theta_t - \epsilon\,\nabla U(\theta_t)."): (descent, "- ", "- 2"),
    ("01", r"\operatorname{Var}"): (variance_of_diffusion, r"1-\epsilon/2", r"1-\epsilon"),
    ("02", r"\operatorname{Var}"): (variance_of_step, r"\epsilon/2", r"\epsilon/3"),
    ("03", r"\operatorname{Var}"): (variance_of_noise, r"\epsilon V/2", r"\epsilon V"),
    ("08", "Q ="): (curl, "-q & 0", "q & 0"),
    ("09", "G^{-1}"): (metric, "1.5", "1.6"),
    ("11", r"D(\theta) = \begin{pmatrix} 1"): (diffusion, r"e^{\theta_1}", r"e^{\theta_2}"),
    ("11", r"D(\theta) = \begin{pmatrix} e"): (diffusion, r"\theta_1/4", r"\theta_2/4"),
    ("11", r"\Gamma_1"): (divergence, r"\tfrac14\,e", r"\tfrac12\,e"),
    ("12", "P("): (near_zero, "0.1", "0.2"),
    ("13", "K "): (poisson, "{1 - e", "{2 - e"),
    ("13", r"\sqrt"): (relative_spread, "1 - p", "1 + p"),
    ("14", r"\mathbb E[\theta'"): (mean_of_step, r"(1 -", r"(2 -"),
    ("14", r"\mathbb E\,"): (mean_of_steps, "e^{-kh}", "e^{-h}"),
    ("14", r"\qquad = (1"): (variance_of_steps, "e^{-2kh}", "e^{-kh}"),
    ("15", "x(t)"): (great_circle, r"{\alpha}", r"{2}"),
    ("17", r"\tau = \frac"): (autocorrelation_time, "2 -", "1 -"),
    ("24", "f ="): (drift, "- 1 \\end", "+ 1 \\end"),
    ("28", r"\epsilon_t"): (schedule, "t/b", "2t/b"),
    ("29", r"\frac{s}"): (variance_of_scale, "/2s", "/s"),
    ("33", "D_{rr}"): (found_recipe, "3.42", "3.32"),
    ("40", "H ="): (hamiltonian, r"\tfrac d2", r"\tfrac12"),
    ("41", "U ="): (quartic, "1.2", "1.3"),
}
"""By the lesson and the beginning of the equation: how it is compared, and a planted fault."""
WITH_THE_CARDS = [
    ("01", r"\theta_{t+1} = \theta_t - \epsilon\,\nabla U(\theta_t) +"), ("04", r"\theta \leftarrow"), ("04", "r "),
    ("12", "U("), ("12", r"\theta_{t+1}"),
]  # fmt: skip
"""The others that are read."""
UNREAD = {
    "differential equations of continuous time, of which the recipe is tested": [("06", r"d\theta"), ("07", "dz"), ("09", "dz"), ("10", r"d\theta"), ("13", r"d\theta"), ("15", r"d\xi")],
    "the same step as on the card, which is read, with words below its terms or for a part of it": [("06", r"\theta_{t+1}"), ("15", "v ")],
    "definitions, and identities of two random numbers": [("03", r"\nabla"), ("06", r"\sqrt"), ("17", r"\tau = 1"), ("27", "p ="), ("28", r"\frac{\sum"), ("29", r"\pi_T"), ("33", r"\text")],
    "estimates of gradients and of counts, whose own tests compare them with sums over the data": [("13", r"\hat a_j"), ("20", r"\nabla"), ("44", r"\hat a_j")],
    "probabilities and rates of jumps, whose counts are tested": [("30", r"\lambda_i"), ("30", r"\min\bigl"), ("30", r"\min\Bigl"), ("31", r"\min")],
    "models, whose cards are read": [("18", r"\pi_d"), ("19", "P("), ("22", "p("), ("23", "z_i"), ("25", "y_n ="), ("25", "W_{dk}"), ("25", r"y_n \sim"), ("26", "v_d"), ("21", "f(x)")],
    "a model that the reader types in the same step, and another form of it": [("27", r"\log"), ("27", r"e_k \sim"), ("27", "e_k =")],
    "approximations and orders, which the step's claims measure": [("04", r"\tau"), ("14", r"\text"), ("15", "T ="), ("17", "C ="), ("26", "1 +"), ("22", r"\mathrm{E}"), ("11", "1 -")],
    "costs and the best sizes of batches, which the step's claims measure": [("17", "f(n)"), ("17", r"\tau(m)"), ("23", "f(m)"), ("23", r"\hat\tau")],
    "what a theorem says of any D and Q; the recipe's tests check it by expressions": [("09", r"\tilde U"), ("24", "g ="), ("24", r"\nabla")],
    "the eigenvalues of one matrix, which the step's claims measure": [("08", "q^*")],
    "a sum with dots, whose value the next line has": [("14", "(1 - e")],
    "the paper's generating functions and variances: tests of the views draw them beside draws": [("44", "M("), ("44", r"M_{"), ("44", r"\operatorname"), ("44", r"\qquad")],
}  # fmt: skip
"""Equations that are not read, by the reason."""


def of(key):
    """The equation, and the text of its lesson."""
    number, start = key
    (tex,) = [one for at, one in EQUATIONS if at == number and one.startswith(start)]
    return tex, TEXTS[number]


def test_every_equation_is_read_or_has_its_reason():
    keys = [*READ, *WITH_THE_CARDS, *(key for listed in UNREAD.values() for key in listed)]
    for number, tex in EQUATIONS:
        assert sum(at == number and tex.startswith(start) for at, start in keys) == 1, (number, tex)
    for key in keys:
        of(key)


@pytest.mark.slow
@for_each("key", READ)
def test_an_equation_is_what_runs(key):
    tex, text = of(key)
    assert READ[key][0](tex, text) < 1e-6


@pytest.mark.slow
@for_each("key", READ)
def test_another_equation_is_seen(key):
    tex, text = of(key)
    compare, right, planted = READ[key]
    assert right in tex
    assert compare(tex.replace(right, planted), text) > 1e-6
