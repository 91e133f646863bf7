"""Gradients, data touched and time per step, by hand: no figure here comes from the class that it is compared with.

The tables are written from the algorithms' definitions. Beside them the evaluations themselves are counted, by a target
whose compiled functions count their calls.
"""

from dataclasses import dataclass, replace
from math import ceil, cos, exp

import numpy as np
import pytest
from numpy.random import SFC64, Generator
from scipy import linalg

from sgmcmc_lab.samplers.choices import Choice
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.experiment import RunSpec
from sgmcmc_lab.samplers.gradients import GRADIENTS
from sgmcmc_lab.samplers.kernels import SAMPLERS
from sgmcmc_lab.samplers.lanes import Change
from sgmcmc_lab.samplers.models import METHODS
from sgmcmc_lab.samplers.models.run import ModelChain
from sgmcmc_lab.samplers.models.topics.minibatch_gibbs import MinibatchGibbs as TopicsGibbs
from sgmcmc_lab.samplers.parameters import declared
from sgmcmc_lab.samplers.targets import TARGETS
from sgmcmc_lab.samplers.targets.linear_regression import LinearRegression
from tests.helpers.cases import for_each
from tests.helpers.checks_methods import small_model

# --- samplers × gradients: the tables -------------------------------------------------------------------------------

N = 60
"""Data of the regression."""
BATCH, PERIOD, LEAPFROG, RUNGS = 8, 5, 4, 3
"""The data of a minibatch, the gradients that an anchor of SVRG serves, the leapfrog steps of a trajectory, and rungs
of temperature. The batch divides neither the data nor twice the data."""


@dataclass(frozen=True)
class Cost:
    """The cost of one step of one chain."""

    gradients: float
    """Evaluations of the estimator."""
    full: float = 0.0
    """Gradients of all data that the step needs besides."""
    energies: float = 0.0
    """Energies of all data that stand for a gradient where there is none."""


STEP = {
    "sgld": Cost(1),
    "sghmc": Cost(1),
    "hmc": Cost(LEAPFROG + 1),  # one before the first half kick, one after each drift
    "sgrld": Cost(1),
    "scir": Cost(1),
    "cir": Cost(1),  # one look at the counts
    "mirrored_langevin": Cost(1),  # one look at the counts
    "geometric_ou": Cost(1),
    "sggmc": Cost(1),
    "gsgnht": Cost(1),
    "gmc": Cost(LEAPFROG + 1),
    "sggmc_euler": Cost(1),
    "gsgnht_euler": Cost(1),
    "geodesic_sgld": Cost(1),
    "normalised_sgld": Cost(1),
    "exact": Cost(0),
    "recipe": Cost(1),
    "baoab": Cost(1),  # the second half kick's gradient is the next first one's
    "msgnht": Cost(1),
    "cyclical_sgld": Cost(1),
    "psgld": Cost(1, full=2),  # Γ by a central difference
    "mala": Cost(1),  # that of an accepted proposal is kept
    "barker": Cost(1),
    "sg_barker": Cost(1),
    "rwm": Cost(0, energies=1),
    "svgd": Cost(1),
    "root_sgld": Cost(1),
    "chmc": Cost(LEAPFROG + 1),
    "rmhmc": Cost(LEAPFROG + 1),
    "resgld": Cost(RUNGS, full=2),  # the energies of the two that may swap
    "parallel_tempering": Cost(RUNGS),
    "obabo": Cost(LEAPFROG + 1, full=1),  # the energy of the accept step
    "amagold": Cost(LEAPFROG, full=1),
    "asgld": Cost(1),
    "badodab": Cost(1),
    "mclmc": Cost(1),
    "adaptive_metropolis": Cost(0, energies=1),
    "demcz": Cost(0, energies=1),
    "contour_sgld": Cost(1),  # and the energy of the same draws, as for MALA
}
COUNTED = {"nuts", "zigzag", "bps", "slice", "elliptical_slice", "austerity", "tunamh", "hmc_ecs", "chees"}
"""Samplers whose steps differ in length: what is reported is compared with the calls alone."""

PER_GRADIENT = {
    "full": N,
    "gaussian": N,
    "gaussian_corrected": N,
    "gaussian_estimated": N,
    "minibatch": BATCH,
    "minibatch_known": BATCH,
    "minibatch_fisher": BATCH,
    "minibatch_cv": BATCH,
    "minibatch_cv_fisher": BATCH,
    "minibatch_epochs": BATCH,
    "minibatch_svrg": BATCH + N / PERIOD,
    "minibatch_svrg_fisher": BATCH + N / PERIOD,
    "minibatch_saga": BATCH,
    "minibatch_saga_fisher": BATCH,
}
"""Data that one gradient touches on average. The data of a minibatch count once where control variates look at them
twice; what is done once, before the first gradient, is not counted."""

EPS, FRICTION = 1e-4, 2.0
TIME = {
    **dict.fromkeys(("sgld", "sghmc", "baoab", "msgnht", "psgld", "mala", "recipe", "sgrld", "scir", "cir"), EPS),
    **dict.fromkeys(("geometric_ou", "sggmc", "gsgnht", "sggmc_euler", "gsgnht_euler"), EPS),
    **dict.fromkeys(
        (
            "mirrored_langevin",
            "geodesic_sgld",
            "normalised_sgld",
            "root_sgld",
            "resgld",
            "parallel_tempering",
            "badodab",
            "asgld",
            "contour_sgld",
        ),
        EPS,
    ),
    **dict.fromkeys(("hmc", "gmc", "chmc", "rmhmc", "obabo", "amagold", "hmc_ecs"), LEAPFROG * EPS),
    "cyclical_sgld": EPS / 2,  # the mean of (ε/2)(1 + cos πk/M) but for its last half step
    **dict.fromkeys(("barker", "sg_barker"), EPS**2 / 2),  # noise N(0, s²) is that of √(2ε)
    **dict.fromkeys(("exact", "rwm", "nuts", "svgd", "zigzag", "bps"), 0.0),
    **dict.fromkeys(("mclmc", "adaptive_metropolis", "demcz", "slice", "elliptical_slice"), 0.0),
    **dict.fromkeys(("austerity", "tunamh", "chees"), 0.0),
}
"""The time of the SDE that a step advances; 0 where there is no SDE behind it, or no fixed time."""


def params_of(key):
    """The parameters at which the tables are true, of those that a sampler has."""
    ours = {"n_leapfrog": LEAPFROG, "step_size": EPS, "friction": FRICTION, "max_depth": 3, "rungs": RUNGS}
    return {name: value for name, value in ours.items() if name in dict(declared(SAMPLERS[key]))}


def gradient_params(key):
    ours = {"batch_size": BATCH, "period": PERIOD}
    return {name: value for name, value in ours.items() if name in dict(declared(GRADIENTS[key]))}


def target_of(key):
    """A target that the sampler fits: with data, where there is one."""
    return next(
        t
        for t in ("linear_regression", "gamma", "sparse_dirichlet", "lognormal", "vmf", "fisher", "matrix_langevin")
        if t in TARGETS and SAMPLERS[key].fits(TARGETS[t])
    )


def data_of(t):
    """The data of that target, by what its text says: sparse_dirichlet has 1,000 observed categories."""
    return {"linear_regression": N, "sparse_dirichlet": 1000}.get(t, 1)


PAIRS = [(s, g) for s in SAMPLERS for g in GRADIENTS if g in SAMPLERS[s].gradients_for(TARGETS[target_of(s)])]


def run_of(s, g, n_chains=3, **params):
    t = target_of(s)
    few = {"items": N} if t == "linear_regression" else {}
    return Run(
        RunSpec.of(
            t,
            s,
            g,
            target_params=few,
            sampler_params={**params_of(s), **params},
            gradient_params=gradient_params(g),
            n_chains=n_chains,
            seed=2,
        )
    )


def test_every_sampler_and_gradient_is_in_the_tables():
    """A new one needs its cost by hand; fails by name."""
    unpriced = sorted(set(SAMPLERS) ^ (set(STEP) | COUNTED))
    assert not unpriced, (
        f"a sampler is in SAMPLERS, and in STEP or COUNTED of this file; these are not in both: {unpriced}"
    )
    assert set(GRADIENTS) == set(PER_GRADIENT), set(GRADIENTS) ^ set(PER_GRADIENT)
    untimed = sorted(set(TIME) ^ set(SAMPLERS))
    assert not untimed, f"a sampler is in SAMPLERS and in TIME of this file; these are not in both: {untimed}"


@for_each(("s", "g"), [(s, g) for s, g in PAIRS if s in STEP])
def test_gradients_and_data_of_a_step(s, g):
    """Also in pieces. Fails for a step whose price is another sampler's, or for a chain's price for all of them."""
    run, t = run_of(s, g, n_chains=11), target_of(s)
    cost, n_data = STEP[s], data_of(t)
    per_gradient = PER_GRADIENT[g] if t == "linear_regression" else {N: n_data}.get(PER_GRADIENT[g], PER_GRADIENT[g])
    a_step = (cost.gradients + cost.energies) * per_gradient + cost.full * n_data
    for steps in (1, 7, 13):
        run.advance(steps)
    made = 11 * 21
    assert run.gradients == pytest.approx(made * a_step / per_gradient, abs=0.5)
    assert run.data_seen == pytest.approx(made * a_step, abs=0.5)
    assert (run.trace().gradients, run.trace().data_seen) == (run.gradients, run.data_seen)


@for_each("s", [s for s in SAMPLERS if s in TIME])
def test_time_of_a_step(s):
    assert SAMPLERS[s](**params_of(s)).time_per_step == pytest.approx(TIME[s], rel=1e-12)


@pytest.mark.parametrize("g", ["minibatch", "minibatch_svrg"])
def test_each_stretch_of_a_run_has_its_own_price(g):
    """A run of SGLD that goes on as pSGLD with another batch. Fails where a change prices what came before it."""
    run = run_of("sgld", g)
    run.advance(10)
    changed = replace(run.spec, gradient=Choice(g, tuple({**gradient_params(g), "batch_size": 20}.items())))
    run.change(Change(run.steps, Choice("psgld", (("step_size", EPS),)), changed.gradient))
    run.advance(4)
    anchors = N / PERIOD if g == "minibatch_svrg" else 0
    assert run.data_seen == round(3 * (10 * (BATCH + anchors) + 4 * (20 + anchors + 2 * N)))
    assert run.gradients == round(3 * (10 + 4 * (1 + 2 * N / (20 + anchors))))


# --- the calls themselves -------------------------------------------------------------------------------------------

_potential, _gradient, _batch = LinearRegression.potential, LinearRegression.gradient, LinearRegression.batch


@jit.potential
def counted_potential(theta, out, params):
    params[params.size - 3] += theta.shape[0]
    _potential(theta, out, params)


@jit.gradient
def counted_gradient(theta, out, params):
    params[params.size - 2] += theta.shape[0]
    _gradient(theta, out, params)


@jit.batch
def counted_batch(theta, data, each, params):
    params[params.size - 1] += data.size
    _batch(theta, data, each, params)


class Counting(LinearRegression):
    """Behind its parameters stand the energies, gradients and gradients of single data that were computed."""

    potential, gradient, batch = counted_potential, counted_gradient, counted_batch

    def packed(self):
        return np.append(super().packed(), np.zeros(3))


def calls(run, steps):
    """Energies, whole gradients and single data's gradients of all chains, in so many steps of a run under way."""
    before = run.target_params[-3:].copy()
    run.advance(steps)
    return run.target_params[-3:] - before


def counting(s, g):
    run = run_of(s, g)
    run.target = Counting(items=N)
    run.target_params = run.target.packed()
    run.gradient_params = run.gradient.packed(run.target)
    jit.prepare([counted_potential, counted_gradient, counted_batch])
    run.advance(PERIOD)
    return run


ON_DATA = [(s, g) for s, g in PAIRS if target_of(s) == "linear_regression" and s != "exact"]
PER_CALL = {"mala": 1, "barker": 1, "nuts": 1, "parallel_tempering": RUNGS}
"""So many first gradients of every chain they compute again for every piece of a run, which is no part of a step."""


@for_each(("s", "g"), ON_DATA)
def test_what_is_reported_is_what_is_computed(s, g):
    """The compiled functions' own calls, over whole periods of SVRG's anchor. Fails where a kernel computes more
    gradients than it says, or an estimator touches more data."""
    run = counting(s, g)
    steps = 4 * PERIOD
    before = run.gradients, run.data_seen
    energies, whole, single = calls(run, steps)
    reported, seen = run.gradients - before[0], run.data_seen - before[1]
    whole -= 3 * PER_CALL.get(s, 0)
    # Control variates look at each of a batch's data at the anchor, too.
    batches = single / (2 if "_cv" in g or "_svrg" in g else 1)
    if s in ("rwm", "adaptive_metropolis", "demcz", "amagold", "obabo"):
        # The energy where the chains are is computed again with every piece, too.
        energies -= 3
    if s in ("rwm", "adaptive_metropolis", "demcz", "slice", "elliptical_slice", "resgld", "amagold", "obabo"):
        # Energies of all data count as their gradients.
        whole += energies
    if s in ("austerity", "tunamh"):
        # Each data point at both ends of a proposal, or all energies there.
        assert seen == single / 2 + energies / 2 * N > 0
        assert reported == pytest.approx(seen / N, abs=1)
    elif s == "hmc_ecs":
        # 50 data before and after each leapfrog step, and 5 new ones; those at the mode count with them.
        made, block = 3 * steps * 50, 3 * steps * 5
        assert seen == (LEAPFROG + 1) * made + block == single - made - block
        assert whole == energies == 0 and reported == pytest.approx(seen / N, abs=1)
    elif g.startswith("minibatch"):
        assert seen == batches + whole * N
        # A full gradient counts for the evaluations that touch the same number of points; an anchor is part of its
        # evaluation.
        anchors = batches / BATCH / PERIOD if "_svrg" in g else 0
        assert reported == pytest.approx(batches / BATCH + (whole - anchors) * N / PER_GRADIENT[g], abs=1)
    else:
        assert single == 0 and reported == whole and seen == whole * N


def test_fault_a_gradient_that_nobody_counts(monkeypatch):
    """The planted faults: HMC that reports L gradients, Γ's two that count as minibatches, and an anchor for free."""
    monkeypatch.setattr(SAMPLERS["hmc"], "gradients_per_step", property(lambda self: self.n_leapfrog))
    monkeypatch.setattr(SAMPLERS["psgld"], "full_gradients_per_step", property(lambda self: 0))
    monkeypatch.setattr(GRADIENTS["minibatch_svrg"], "data_per_gradient", lambda self, target: self.batch_size)
    for s, g in (("hmc", "minibatch"), ("psgld", "minibatch"), ("sgld", "minibatch_svrg")):
        for check in (test_gradients_and_data_of_a_step, test_what_is_reported_is_what_is_computed):
            with pytest.raises(AssertionError):
                check(s, g)


# --- time: what a chain has forgotten after it ----------------------------------------------------------------------

WAITED = 1.0
"""The time after which the mean of chains that begin at the same place is compared."""


def left_of_the_start(s):
    """The remaining share of the mean on N(0, 1) after the waiting time, by the SDE."""
    if s in ("sghmc", "baoab", "msgnht", "sggmc", "gsgnht", "sggmc_euler", "gsgnht_euler"):
        # d(θ, r) = (r, −θ − Cr) dt, r = 0 on average; a thermostat starts at C and hardly moves at the right heat.
        return linalg.expm(WAITED * np.array([[0.0, 1.0], [-1.0, -FRICTION]]))[0, 0]
    if s in ("hmc", "gmc"):
        return cos(WAITED)  # one trajectory
    return exp(-WAITED)


SMALL = {"barker": 0.1, "sg_barker": 0.1, "mala": 0.01, "sgld": 0.01, "recipe": 0.01, "geodesic_sgld": 0.01}
SMALL |= dict.fromkeys(("sghmc", "baoab", "msgnht", "sggmc", "gsgnht", "sggmc_euler", "gsgnht_euler"), 0.01)
SMALL |= {"hmc": WAITED / LEAPFROG / 10, "cyclical_sgld": 0.02, "psgld": 0.01}
START = 3.0
ALIKE = 0.025
"""How far the mean may be from the SDE's, in units of the start: five standard errors of 10,000 chains that begin at
three standard deviations are below .017, a false alarm in two million, and what the step size adds is below .008."""


@for_each("factor", [1, 2])
@for_each("s", [s for s in SMALL if SAMPLERS[s].fits(TARGETS["gaussian"])])
def test_a_chain_forgets_its_start_in_the_time_that_its_steps_advance(s, factor):
    """The mean of chains from θ = 3 on N(0, 1) after t = 1: e⁻¹ of overdamped dynamics. The planted fault, a time per
    step that is doubled, makes half as many steps."""
    params = {**params_of(s), "step_size": SMALL[s]}
    if s == "hmc":
        params |= {"n_leapfrog": 10 * LEAPFROG, "accept": True}
    if s == "psgld":
        params |= {"decay": 0.99999, "gamma": False}  # v stays θ₀², so that G = 1/(λ + 3) = ¼
    if s == "cyclical_sgld":
        params |= {"period": 50}
    spec = RunSpec.of(
        "gaussian",
        s,
        target_params={"mean": 0.0, "sd": 1.0},
        sampler_params=params,
        n_chains=10_000,
        start=(START,),
        seed=3,
    )
    run = Run(spec)
    time = run.sampler.time_per_step * factor
    run.advance(round(WAITED / time * (1 + START if s == "psgld" else 1)))
    mean = float(run.position.mean()) / START
    assert (abs(mean - left_of_the_start(s)) < ALIKE) == (factor == 1), mean


# --- methods for models of data -------------------------------------------------------------------------------------


def whole(model, params, state):
    return model.n_data


def batch(model, params, state):
    return min(params["batch_size"], model.n_data)


def of_leapfrog(model, params, state):
    """The gradient at the start of a trajectory is that at the end of the one before."""
    return model.n_data * params["n_leapfrog"]


def of_gmc(model, params, state):
    """θ of every document is drawn once before the proposal, and again for each of its gradients but the first."""
    return model.n_data * (1 + params["n_leapfrog"])


def equal_cost(model, params, state):
    """Sweeps with m latent variables, as many as take the time (N w_z + w_θ) of one with all."""
    m, w = params["batch_size"], params["cost_ratio"]
    return m * max(round((model.n_data + w) / (m + w)), 1)


SEEN = {
    **dict.fromkeys(("collapsed_gibbs", "lda_scir", "lda_sgrld", "lda_sgrhmc", "lda_sghmc", "lda_sgld"), batch),
    "minibatch_gibbs": batch,
    **dict.fromkeys(("network_gibbs", "network_sgvb", "network_norm_sgvb", "network_map", "network_irm"), whole),
    "network_hmc": of_leapfrog,
    **dict.fromkeys(("factors_sgvb", "factors_gibbs", "factors_norm_sgvb"), whole),
    **dict.fromkeys(("cluster_collapsed", "cluster_slice", "sphere_collapsed", "sphere_slice"), whole),
    **dict.fromkeys(("cluster_minibatch", "sphere_minibatch"), batch),
    "mixture_gibbs": whole,
    **dict.fromkeys(("mixture_scir", "mixture_sgrld"), batch),
    **dict.fromkeys(("sparse_gibbs", "sparse_blocked"), whole),
    "sparse_minibatch": equal_cost,
    **dict.fromkeys(("spherical_sggmc", "spherical_gsgnht", "spherical_stovi"), batch),
    **dict.fromkeys(("spherical_gibbs", "spherical_gmc"), of_gmc),
    "spherical_vi": whole,
}


def test_every_method_is_in_the_table():
    assert set(METHODS) == set(SEEN), set(METHODS) ^ set(SEEN)


@for_each("key", SEEN)
def test_data_of_a_step_of_a_method(key):
    """At every setting that it is tried at, over several steps."""
    for values in METHODS[key].tried_at:
        model, method = small_model(METHODS[key]), METHODS[key](**values)
        chain = ModelChain(model, method, Generator(SFC64(4)))
        params = {name: getattr(method, name) for name, _ in declared(METHODS[key])}
        for _ in range(3):
            chain.advance()
        assert chain.data_seen == 3 * SEEN[key](model, params, chain.state), values


TRIAL, RATIO = 30, 5.0


@for_each("key", ["minibatch_gibbs", "cluster_minibatch", "sparse_minibatch"])
def test_a_trial_costs_what_all_data_cost(key):
    """Each size is tried for the price of ``trial`` steps with all data, N w_z + w_θ each, and the first after a tenth
    of them. Fails where w_θ is left out of the price: small sizes are then tried too briefly."""
    model = small_model(METHODS[key])
    method = METHODS[key](batch_size=0, trial=TRIAL, cost_ratio=RATIO)
    chain = ModelChain(model, method, Generator(SFC64(4)))
    adaptation = chain.state.extra["adaptation"]
    made, record = [], adaptation.record

    def counted(value, step):
        made.append(adaptation.size)
        record(value, step)

    adaptation.record = counted
    while not adaptation.chosen:
        chain.advance()
    n = model.training.n_documents if METHODS[key] is TopicsGibbs else model.n_data
    sizes = adaptation.sizes.tolist()
    assert max(sizes) == n and len(sizes) > 1
    expected = {m: ceil(TRIAL * (n + RATIO) / (m + RATIO) - 1e-9) for m in sizes}
    expected[sizes[0]] += TRIAL // 10
    assert {m: made.count(m) for m in sizes} == expected


@for_each(
    ("s", "g", "data"),
    [
        ("sgld", "full", N),
        ("sgld", "minibatch", BATCH),
        ("hmc", "minibatch", (LEAPFROG + 1) * BATCH),
        ("psgld", "full", 3 * N),
        ("psgld", "minibatch", BATCH + 2 * N),
        ("nuts", "full", 2**3 * N),
    ],
)
def test_what_a_step_may_look_at_is_bounded_by_what_it_costs(s, g, data):
    """Numbers of all chains, with two coordinates per data point: the bound of links and pages. Fails where Γ's two
    whole gradients are left out of the bound."""
    assert run_of(s, g).spec.numbers_per_step() == 3 * 2 * data
