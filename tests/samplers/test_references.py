"""The references in plain Python borrow nothing from the classes that they check, and run longer than any period.

A reference that calls a helper of the class under test, or begins in a state that the class made, has the class's
faults. The first is found in its source; for the second every first state is compared with one written here.
"""

import ast
import builtins
import inspect
import textwrap
from itertools import groupby
from types import FunctionType, ModuleType

import numpy as np
import pytest
from scipy import stats

from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.kernels.base import Sampler
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.parameters import Count, declared
from sgmcmc_lab.samplers.targets import TARGETS
from tests.helpers.cases import for_each
from tests.helpers.checks_samplers import BY_PAIRS, FEW_DATA, N_COMPARED, draw_for_draw, period_of

PREFIX = "textbook"
SELVES = {"self", "cls", "method", "type(self)"}
"""The names of the class under test, or of an object of it, in a reference."""

CLASSES = list(
    dict.fromkeys(
        [
            *SAMPLERS.values(),
            *GRADIENTS.values(),
            *METHODS.values(),
            *TARGETS.values(),
            *(type(cls().manifold) for cls in TARGETS.values()),
        ]
    )
)

WHICH = "which of the algorithms that share a reference it is"
DATA = "the data, and how many there are"
LAW = "of a draw: the density and its envelope, which are compared with quadrature and with the gradient"
ALLOWED = {
    "self.key": WHICH,
    "self.collapsed": WHICH,
    "self.recipe": "D, Q, Γ and ∇H as formulas, which tests/samplers/recipe compare with differences",
    "evaluate": "the value of a formula, which tests/samplers/expressions compare with NumPy",
    "self.observations": DATA,
    "self.covariates": DATA,
    "self.rows": "the data, or the shape of a manifold",
    "self.y": DATA,
    "self.titles": DATA,
    "self.used": DATA,
    "self.n_data": DATA,
    "self.names": DATA,
    "DIFFERENCES": DATA,
    "EFFECTS": DATA,
    "ERRORS": DATA,
    "self.dim": "how many coordinates there are",
    "self.labels": "the names of the coordinates",
    "self.log_prior": "what was typed, as a formula",
    "self.log_row": "what was typed, as a formula",
    "self.temperature": "the T of e^{−U/T}, a setting of the run as parameters are",
    "self.mode": LAW,
    "self.energies": LAW,
    "self._energies": LAW,
    "self._ends": LAW,
    "self.histogram": LAW,
    "self._bound": LAW,
    "self.envelope": LAW,
    "self._log_envelope": LAW,
    "self.log_density": LAW,
    "self.columns": "the exact distribution of a draw, or the shape of a manifold",
    "self._answers": LAW,
    "self._textbook_box": LAW,
    "_points": "the point of two angles",
    "self.reference": "the draws of a long run, one of which is drawn",
    "self.size": "the shape of a manifold",
    "self.ambient": "the shape of a manifold",
    "self._parts": "the spheres of a product",
    "Sphere": "the reference of the sphere, for each sphere of a product",
    "Simplex": "the reference of the simplex, for proportions",
}
"""The attributes that references take from the classes of this project, besides parameters and other references, with
reasons."""


def is_reference(value):
    return isinstance(value, FunctionType) and (value.__name__.startswith(PREFIX) or PREFIX in value.__module__)


def references():
    """Every reference of a registered class, by its name, with its class, and the functions that they share."""
    found: dict = {}

    def take(function, name, cls):
        if function in found:
            return
        found[function] = name, cls
        for cell in function.__closure__ or ():
            if isinstance(cell.cell_contents, FunctionType):
                take(cell.cell_contents, f"{name} move", cls)
        for module in [value for value in function.__globals__.values() if isinstance(value, ModuleType)]:
            if module.__name__.startswith("sgmcmc_lab.samplers") and PREFIX in module.__name__:
                for other in vars(module).values():
                    if isinstance(other, FunctionType) and other.__module__ == module.__name__:
                        take(other, f"{module.__name__}.{other.__name__}", None)
        for other in list(function.__globals__.values()):
            if isinstance(other, FunctionType) and is_reference(other) and other.__module__ == function.__module__:
                take(other, f"{other.__module__}.{other.__name__}", None)

    for cls in CLASSES:
        for owner in cls.__mro__:
            for name, value in vars(owner).items():
                if name.startswith(PREFIX) and isinstance(value, FunctionType):
                    take(value, f"{owner.__name__}.{name}", cls)
    return {name: (function, cls) for function, (name, cls) in found.items()}


def parameters_of(cls):
    return {name for name, _ in declared(cls)} if hasattr(cls, "param") else set()


EVERY_PARAMETER = set().union(*map(parameters_of, CLASSES))


def borrowed(function, cls):
    """The names that the source of a reference takes from the class under test or from the code of the project."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    parameters = EVERY_PARAMETER if cls is None else parameters_of(cls)
    local = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | set(function.__code__.co_freevars)
    local |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in SELVES:
            if node.attr not in parameters and not node.attr.startswith(PREFIX):
                yield f"self.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("super", "getattr"):
            what = node.args[1] if node.args[1:] else None
            if not (isinstance(what, ast.Constant) and what.value in EVERY_PARAMETER):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in local:
            module = function.__globals__.get(node.value.id)
            if (
                isinstance(module, ModuleType)
                and module.__name__.startswith("sgmcmc_lab.samplers")
                and PREFIX not in module.__name__
            ):
                yield f"{module.__name__}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id not in local and not hasattr(builtins, node.id):
            value = function.__globals__.get(node.id)
            plain = isinstance(value, (ModuleType, int, float, str)) or is_reference(value)
            home = getattr(value, "__module__", None) or "sgmcmc_lab.samplers"
            if not plain and PREFIX not in home and home.startswith("sgmcmc_lab.samplers"):
                yield node.id


REFERENCES = references()


def test_there_are_references_of_everything():
    """Fails where the search finds none of some kind, and so would pass whatever they borrow."""
    names = set(REFERENCES)
    for one in ("BAOAB.textbook_step", "MinibatchSVRG.textbook_gradients", "SphericalVariational.textbook_step"):
        assert one in names
    for one in (
        "sgmcmc_lab.samplers.textbook.aboba",
        "sgmcmc_lab.samplers.models.spherical.textbook.variational",
        "SGLD.textbook_step move",
    ):
        assert one in names
    assert len(names) > 150


@for_each("name", REFERENCES)
def test_a_reference_borrows_nothing(name):
    taken = set(borrowed(*REFERENCES[name])) - set(ALLOWED)
    assert not taken, f"{name} takes {sorted(taken)} from what it is to check"


@pytest.mark.slow
def test_nothing_is_allowed_that_nothing_takes():
    used = {each for one in REFERENCES.values() for each in borrowed(*one)}
    assert set(ALLOWED) <= used, set(ALLOWED) - used


class Borrowing(Sampler):
    """The planted faults: a helper of the class, one of its module, its parent's step, and a name put together."""

    def helper(self):
        return 1.0

    def textbook_first(self, rng, run, theta, r, data):
        theta += self.helper()

    def textbook_second(self, rng, run, theta, r, data):
        theta += borrowed_helper()

    def textbook_third(self, rng, run, theta, r, data):
        super().textbook_first(rng, run, theta, r, data)

    def textbook_fourth(self, rng, run, theta, r, data):
        theta += getattr(self, "help" + "er")()


def borrowed_helper():
    return 1.0


borrowed_helper.__module__ = "sgmcmc_lab.samplers.kernels.planted"


@for_each("name", ["textbook_first", "textbook_second", "textbook_third", "textbook_fourth"])
def test_fault_a_reference_that_borrows(name):
    assert set(borrowed(getattr(Borrowing, name), Borrowing)) - set(ALLOWED)


# --- where references begin: what the run made ----------------------------------------------------------------------

MANY = 4000
"""Chains. A mean square of 4,000 normals is within .12 of 1 but for once in a hundred million."""
NORMAL, SIGNS, DIRECTION, ARCHIVE, NOTHING, INDICES = "normal", "signs", "direction", "archive", "nothing", "indices"
FRICTION = 1.7


def declares(cls):
    """The names that a sampler or a class between it and the base declares."""
    return {name for each in cls.__mro__ if each is not Sampler and issubclass(each, Sampler) for name in vars(each)}


def AT_START(run, g):
    return np.full(g.shape, 1.5)


def thermostat(run):
    return np.full(1, FRICTION)


FIRST: dict = {
    **{key: [] for key, cls in SAMPLERS.items() if "auxiliary" not in declares(cls) and "start" not in declares(cls)},
    **{key: [NOTHING] for key in ("hmc", "nuts", "mala", "chees")},  # they adapt nothing by default
    "svgd": [],  # its start moves θ alone
    "sghmc": [lambda run, g: np.zeros(g.shape[1])],  # Algorithm 2 begins at rest
    "sggmc": [NORMAL], "sggmc_euler": [NORMAL], "bps": [NORMAL], "amagold": [NORMAL],
    "obabo": [NORMAL],
    "zigzag": [SIGNS],
    "gsgnht": [NORMAL, lambda run, g: np.full(1, FRICTION)],
    "gsgnht_euler": [NORMAL, lambda run, g: np.full(1, FRICTION)],
    "msgnht": [NORMAL, lambda run, g: np.full(g.shape[1], FRICTION)],
    "baoab": [NORMAL, lambda run, g: g],
    "cyclical_sgld": [NOTHING, lambda run, g: np.zeros(1)],
    # U″ = 1/σ² in each coordinate.
    "asgld": [lambda run, g: g, lambda run, g: g**2],
    "psgld": [lambda run, g: g**2, lambda run, g: 2 * g * g.shape[1] / run.target.sd**2],
    **dict.fromkeys(("resgld", "parallel_tempering"), [AT_START, lambda run, g: np.zeros(2)] * 3),  # four rungs
    "badodab": [NORMAL, lambda run, g: g, lambda run, g: np.full(1, FRICTION)],
    "mclmc": [DIRECTION, lambda run, g: np.zeros(2)],  # at the mode of a correlated Gaussian
    "adaptive_metropolis": [lambda run, g: np.zeros(1 + g.shape[1] + g.shape[1] ** 2)],
    "demcz": [lambda run, g: np.array([0.0, 10.0, 10.0]), ARCHIVE],
    "recipe": [NOTHING, lambda run, g: np.full(1, FRICTION)],
    "hmc_ecs": [NOTHING, INDICES],
    # No step has learnt; 40 bins of equal weights; the weight 1.
    "contour_sgld": [lambda run, g: np.array([0.0, 40.0, 0.0, *np.full(40, -np.log(40)), 1.0])],
}  # fmt: skip
"""The auxiliary variables of a chain before its first step, part by part, as functions of the run and the gradient
∇U(θ₀) (chains, dim). A sampler that declares neither ``auxiliary`` nor ``start`` needs none: it keeps nothing beside θ,
or draws its momenta in each step.
"""


def test_every_sampler_has_its_first_state_here():
    lacking = sorted(set(SAMPLERS) - set(FIRST))
    assert not lacking, f"FIRST above lacks the auxiliary variables with which these samplers begin: {lacking}"
    assert set(FIRST) <= set(SAMPLERS), set(FIRST) - set(SAMPLERS)


def of_first_state(s, sphere=False):
    """A run before its first step."""
    target = next(
        t
        for t in (
            ("fisher",)
            if sphere
            else (
                "gaussian",
                "correlated_gaussian",
                "gamma",
                "lognormal",
                "sparse_dirichlet",
                "fisher",
                "linear_regression",
            )
        )
        if SAMPLERS[s].fits(TARGETS[t])
    )
    params = {"friction": FRICTION} if "friction" in dict(declared(SAMPLERS[s])) else {}
    if s == "recipe":
        params = {
            "layout": "theta_r_xi",
            "thermostat": FRICTION,
            "diffusion_entries": ("0", "0", "1", "0", "0", "0"),
            "curl_entries": ("-1", "0", "-r"),
        }
    where = {"gaussian": {"mean": 0.5, "sd": 2.0}}.get(target, {})
    return Run(
        RunSpec.of(
            target,
            s,
            target_params=where,
            sampler_params=params,
            n_chains=200 if SAMPLERS[s].interacting else MANY,
            start=(1.5,) if where else (),
            seed=3,
        )
    )


@for_each("s", FIRST)
def test_the_first_state(s):
    """Fails for half the gradient at BAOAB's start, a thermostat at rest, momenta of another heat, or a place in a
    cycle that is not its first."""
    run = of_first_state(s)
    n, dim = run.position.shape
    if s == "svgd":
        z = (run.position - run.spec.first_position()) / 0.5
        assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    else:
        np.testing.assert_array_equal(run.position, np.tile(run.spec.first_position(), (n, 1)))
    # On N(½, 2²) by hand, elsewhere nothing asks for it.
    gradient = (run.position - 0.5) / 4
    at = 0
    for part in FIRST[s]:
        if part is NORMAL:
            v = run.momentum[:, at : at + dim]
            assert abs((v**2).sum() / n / run.manifold.dim - 1) < 0.12
            assert run.manifold.dim < dim or stats.kstest(v.ravel(), "norm").pvalue > 1e-4
            at += dim
        elif part is SIGNS:
            v = run.momentum[:, at : at + dim]
            assert set(np.unique(v)) == {-1.0, 1.0} and abs(v.mean()) < 6 / np.sqrt(v.size)
            at += dim
        elif part is DIRECTION:
            v = run.momentum[:, at : at + dim]
            np.testing.assert_allclose((v**2).sum(axis=1), 1.0, rtol=1e-12)
            assert stats.kstest(np.arctan2(v[:, 1], v[:, 0]), "uniform", args=(-np.pi, 2 * np.pi)).pvalue > 1e-4
            at += dim
        elif part is ARCHIVE:
            first = run.momentum[:, at : at + 10 * dim] - run.spec.first_position()[0]
            assert stats.kstest(first.ravel(), "norm").pvalue > 1e-4
            assert not run.momentum[:, at + 10 * dim :].any()
            at = run.momentum.shape[1]
        elif part is INDICES:
            found = np.bincount(run.momentum[:, at:].astype(int).ravel(), minlength=len(run.data))
            assert (run.momentum[:, at:] % 1 == 0).all() and stats.chisquare(found).pvalue > 1e-4
            at = run.momentum.shape[1]
        elif part is NOTHING:
            assert not run.momentum[:, at : at + dim].any()
            at += dim
        else:
            expected = np.broadcast_to(part(run, gradient), (n, np.shape(part(run, gradient))[-1]))
            np.testing.assert_allclose(run.momentum[:, at : at + expected.shape[1]], expected, rtol=1e-9)
            at += expected.shape[1]
    assert not FIRST[s] or at == run.momentum.shape[1]


@for_each("s", [s for s in SAMPLERS if SAMPLERS[s].fits(TARGETS["fisher"]) and FIRST[s][:1] == [NORMAL]])
def test_the_first_velocity_is_tangent(s):
    run = of_first_state(s, sphere=True)
    v = run.momentum[:, :3]
    assert np.abs((v * run.position).sum(axis=1)).max() < 1e-12
    assert abs((v**2).sum() / len(v) / 2 - 1) < 0.12


N_DATA = 25
MEMORY = {
    "minibatch_epochs": [N_DATA, *range(N_DATA)],  # all are taken, so that the first batch shuffles
    **dict.fromkeys(("minibatch_svrg", "minibatch_svrg_fisher"), [0.0] * 5),  # no anchor, which serves no gradient
    **dict.fromkeys(("minibatch_saga", "minibatch_saga_fisher"), [0.0] * (1 + 2 * (N_DATA + 1))),  # no table yet
}


@for_each("g", GRADIENTS)
def test_the_first_memory(g):
    target = TARGETS["linear_regression"](items=N_DATA)
    np.testing.assert_array_equal(GRADIENTS[g]().first_memory(target), MEMORY.get(g, []))


# --- periods --------------------------------------------------------------------------------------------------------

SIZES = {
    "n_leapfrog",
    "max_depth",
    "batch_size",
    "sample_size",
    "sweeps",
    "start_clusters",
    "start_factors",
    "split_merge",
    "theta_draws",
    "theta_leapfrog",
    "rungs",
    "limit",
    "n_bins",
}
"""Whole numbers that say how much there is in every step, or at the start."""
PERIODS = {"period"}
"""Whole numbers that say after how many steps something recurs."""
TRIALS = {"trial", "adapt_steps", "round", "adapting"}
"""After so many a kernel or a method begins to do something else. Tests of their own run through each:
tests/samplers/test_costs.py, kernels/test_adaptation.py and models/test_choice_during_the_run.py."""


def test_every_whole_number_is_a_size_or_a_period():
    """A sampler with a new one says what it is; a period is then run through."""
    for cls in (*SAMPLERS.values(), *GRADIENTS.values(), *METHODS.values()):
        for name, parameter in declared(cls):
            known = name in SIZES | PERIODS | TRIALS
            assert known or not isinstance(parameter, Count), f"is {cls.__name__}.{name} a size or a period?"


def longest_run_through(n_compared=N_COMPARED):
    """For each sampler, target and gradient the fewest periods that one of its variants is compared over."""
    for triple, cases in groupby(draw_for_draw(BY_PAIRS), key=lambda case: case[:3]):
        s, t, g = triple
        few = FEW_DATA.get(t, {}) if g.startswith("minibatch") or not TARGETS[t].exact_law else {}
        n_data = len(TARGETS[t](**few).data()) if g.startswith("minibatch") else 1
        made = [(SAMPLERS[s](**params), GRADIENTS[g](**more)) for *_, params, more in cases]
        yield triple, max(n_compared / period_of(sampler, gradient, n_data) for sampler, gradient in made)


@pytest.mark.slow
def test_more_than_a_period_is_compared():
    """Twice around each cycle, anchor and epoch. Fails where nothing that is compared reaches the second time around:
    there a cycle that is a step too long looks right."""
    short = {triple: times for triple, times in longest_run_through() if times < 2}
    assert not short, short


@pytest.mark.slow
def test_fault_a_period_longer_than_what_is_compared():
    """The planted fault: fewer steps, which no cycle fits into twice."""
    assert {s for (s, _, _), times in longest_run_through(9) if times < 2} >= {"cyclical_sgld"}
