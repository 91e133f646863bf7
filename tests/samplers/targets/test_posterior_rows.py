"""The rows of a typed posterior as native code: the stack machine's numbers to the bit.

Beside each test is a planted fault that it must catch.
"""

from functools import cache

import numpy as np
import pytest

from sgmcmc_lab.samplers import RunSpec
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.expressions import compiler
from sgmcmc_lab.samplers.expressions.compiler import Code
from sgmcmc_lab.samplers.expressions.native import module
from sgmcmc_lab.samplers.targets.own import Table, keep
from sgmcmc_lab.samplers.targets.posterior import PRESETS, TypedPosterior
from sgmcmc_lab.samplers.targets.posterior_rows import BLOCK, batch, gradient, potential
from tests.helpers.cases import for_each

# All rows of a block and of an instruction of the machine, one more, and one, two and three less.
SIZES = [10, BLOCK - 3, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5]
HELD = []


@cache
def line(items):
    """A line through so many points."""
    rng = np.random.default_rng(items)
    x = rng.normal(size=items)
    table = keep(Table(("x",), x[:, None], "y", (rng.random(items) < 0.3 + 0.4 * (x > 0)).astype(float)))
    HELD.append(table)
    return TypedPosterior(
        table=table.key,
        parameters="a, b",
        prior="normal_lpdf(a, 0, 2) + cauchy_lpdf(b, 0, 1)",
        row="bernoulli_logit_lpmf(y, a + b*x)",
        curve="",
    )


@cache
def preset(name):
    """One of those that are there to begin with."""
    return TypedPosterior(**PRESETS[name]._replace(table=name)._asdict())


def tiers(target, text=lambda text: text):
    """Parameters for the machine, and for the native code of this text, which the caller keeps."""
    loops = target.native()
    code = Code(text(module(list(loops.values()))), list(loops.values()))
    machine, native = target.without_draws(), target.without_draws()
    code.put_addresses(native, loops)
    return machine, native, code


def values(target, params, size):
    """The energy and its slopes at three places, and the slopes of a minibatch of so many."""
    jit.prepare([potential, gradient, batch])
    rng = np.random.default_rng(3)
    theta = rng.normal(size=(3, target.dim))
    heights, slopes, each = np.full(3, 7.0), np.full((3, target.dim), 7.0), np.full((size + 3, target.dim), 7.0)
    potential(theta, heights, params)
    gradient(theta, slopes, params)
    batch(theta[:1], rng.integers(target.n_data, size=size), each[:size], params)
    return np.concatenate([heights, slopes.ravel(), each.ravel()])


def same(a, b):
    """To the bit."""
    return bool((a.view(np.int64) == b.view(np.int64)).all())


@for_each("items", SIZES)
@for_each("size", [1, 3, 4, 7, BLOCK, BLOCK + 2])
def test_no_row_is_left_out(items, size):
    """Fails where a row at the end of a block, or behind the last four, is missing or is another one."""
    machine, native, _code = tiers(line(items))
    assert same(values(line(items), machine, size), values(line(items), native, size))


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_to_the_bit(name):
    """Fails where a sum, a constant or a function of a preset differs, with up to ten slopes."""
    machine, native, _code = tiers(preset(name))
    assert same(values(preset(name), machine, 9), values(preset(name), native, 9))


FIRST = "%c = phi i64 [ 0, %entry ], [ %next, %chain ]"
FAULTS = {
    "the first row left out": lambda text: text.replace("phi i64 [ 0, %entry ]", "phi i64 [ 1, %entry ]"),
    "the last row left out": lambda text: text.replace(
        "icmp slt i64 %next, %chains", "icmp slt i64 %next, %last"
    ).replace("entry:", "entry:\n  %last = sub i64 %chains, 1"),
    "fewer than four left out": lambda text: text.replace(
        "icmp slt i64 %next, %chains", "icmp slt i64 %next, %last"
    ).replace("entry:", "entry:\n  %last = and i64 %chains, -4"),
    "the lane beside it": lambda text: text.replace(FIRST, FIRST + "\n  %d = xor i64 %c, 1").replace(
        "%rows, i64 %c,", "%rows, i64 %d,"
    ),
    "another operation": lambda text: text.replace("fadd double", "fsub double"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("part", [slice(0, 3), slice(3, 9), slice(9, None)], ids=["energy", "slopes", "minibatch"])
def test_planted_faults_are_found(fault, part, monkeypatch):
    """Fails where the comparison would pass with a row left out, another one in its place, or an operation changed."""
    monkeypatch.setattr(compiler, "inspect", lambda text, functions: None)
    target = line(BLOCK + 1)
    machine, native, _code = tiers(target, FAULTS[fault])
    assert not same(values(target, machine, 7)[part], values(target, native, 7)[part])


RUNS = [
    ("sgld", {"step_size": 1e-3}, "minibatch", {"batch_size": 7}),
    ("sgld", {"step_size": 1e-3}, "full", {}),
    ("mala", {"step_size": 1e-3}, "full", {}),
    ("recipe", {"step_size": 1e-3}, "minibatch_fisher", {"batch_size": 7}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "params", "estimator", "gradient_params"), RUNS)
def test_a_run_goes_over_to_native_code_and_its_draws_stay(sampler, params, estimator, gradient_params, monkeypatch):
    """Fails where a draw depends on which tier ran. Planted fault: native code of a model with another prior."""
    given = PRESETS["counts"]._replace(table="counts")._asdict()
    spec = RunSpec.of(
        "posterior",
        sampler,
        estimator,
        target_params=given,
        sampler_params=params,
        gradient_params=gradient_params,
        n_chains=3,
        n_steps=60,
        seed=4,
    )
    monkeypatch.setattr(compiler, "HOT", np.inf)
    slow = Run(spec, keep_draws=True)
    slow.advance(60)
    assert not slow._tier.codes
    monkeypatch.setattr(compiler, "HOT", -1.0)

    def taken_over():
        run = Run(spec, keep_draws=True)
        run.advance(20)
        compiler.wait()
        run.advance(40)
        assert run._tier.codes
        return run.kept

    assert same(slow.kept, taken_over())
    other = TypedPosterior(**{**given, "prior": "normal_lpdf(a, 0, 2) + normal_lpdf(b, 0, 3)"})
    monkeypatch.setattr(TypedPosterior, "native", lambda self: other._programs.native(other.n_data))
    assert not same(slow.kept, taken_over())


@pytest.mark.slow
def test_two_runs_have_memory_of_their_own(monkeypatch):
    """Fails where two runs of one table, which two threads may advance, work in the same memory.

    Planted fault: what is packed once for all.
    """
    target = line(10)
    choice = {name: getattr(target, name) for name in ("table", "parameters", "prior", "row", "curve")}

    def shared(coordinates="typed"):
        params = {**choice, "coordinates": coordinates}
        runs = [Run(RunSpec.of("posterior", "sgld", target_params=params)) for _ in range(2)]
        return np.shares_memory(*(run.target_params for run in runs))

    assert not shared() and not shared("standardised")
    monkeypatch.setattr(TypedPosterior, "packed", lambda self: self._packed)
    assert shared()
