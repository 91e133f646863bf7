"""Native code from typed formulas: the stack machine's numbers to the bit, what its text may do, and its life.

Beside each test is a planted fault that it must catch.
"""

import ctypes
import gc
import re
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, types

from sgmcmc_lab.samplers import Change, RunSpec, SpecError
from sgmcmc_lab.samplers.engine import Run
from sgmcmc_lab.samplers.expressions import compiler, parse
from sgmcmc_lab.samplers.expressions.compiler import Code
from sgmcmc_lab.samplers.expressions.functions import OF_TWO
from sgmcmc_lab.samplers.expressions.inspection import ForbiddenError, inspect
from sgmcmc_lab.samplers.expressions.machine import LANES, program, workspace
from sgmcmc_lab.samplers.expressions.native import Loop, call, module
from sgmcmc_lab.samplers.expressions.program import Op
from tests.helpers.cases import for_each
from tests.helpers.machine import execute

NAMES = ("x", "y")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    3.0,
    -2.5,
    1e-310,
    -1e-310,
    1e300,
    -1e300,
    np.inf,
    -np.inf,
    np.nan,
    710.0,
    1e-8,
    4.0,
]
# Every pair of them, and as many numbers of usual size: 9 chains more than whole vectors hold.
POINTS = np.concatenate(
    [
        np.stack(np.meshgrid(SPECIAL, SPECIAL), axis=-1).reshape(-1, 2),
        np.random.default_rng(1).normal(scale=2, size=(40, 2)),
    ]
)


@njit(types.void(types.int64, types.float64[:, ::1], types.float64[:, ::1], types.int64))
def run_native(address, points, out, chains):
    """Call native code."""
    call(address, (points, out), 0, chains)


def by_machine(made, points):
    """A program's outputs (points, outputs) by the stack machine."""
    out, work = np.empty((len(points), int(made[2]))), np.zeros(workspace(made))
    for a in range(0, len(points), LANES):
        block = points[a : a + LANES]
        work.reshape(-1, LANES)[: len(NAMES), : len(block)] = block.T
        execute(made, work)
        rows = work.reshape(-1, LANES)[len(NAMES) : len(NAMES) + out.shape[1]]
        out[a : a + LANES] = rows[:, : len(block)].T
    return out


def as_loop(made):
    """A program as a function of points and outputs."""
    loop = Loop("outputs", {"points": len(NAMES), "out": int(made[2])})
    for k, value in enumerate(loop.run(made, lambda k: loop.load("points", k))):
        loop.store("out", k, value)
    return loop


def by_code(made, points):
    """The same by native code."""
    loop = as_loop(made)
    code, out = Code(module([loop]), [loop]), np.full((len(points), int(made[2])), 7.0)
    run_native(code.addresses["outputs"], points, out, len(points))
    return out


def same(a, b):
    """To the bit, signs of zeros too; what is not a number is one thing."""
    return bool(((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))).all())


def grown(leaf):
    """Texts of the grammar."""
    functions = (
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "abs",
        "atan",
        "log1p_exp",
        "inv_logit",
        "lgamma",
        "i1_over_i0",
    )
    return st.recursive(
        leaf,
        lambda inner: (
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
            | st.tuples(st.sampled_from(functions), inner).map(lambda t: f"{t[0]}({t[1]})")
            | st.tuples(inner, st.sampled_from(["2", "3", "7", "-1", "-2", "0.5", "1.5", "-0.3", "2.7"])).map(
                lambda t: f"({t[0]})^{t[1]}"
            )
        ),
        max_leaves=12,
    )


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(grown(st.sampled_from(["x", "y", "1.7", "0.3", "12"])))
def test_native_code_is_the_machine_to_the_bit(text):
    """Fails where an instruction, a constant or an order differs: values and slopes of formulas at 329 points."""
    try:
        formula = parse(text, NAMES, "text")
        made = program([formula, formula.diff("x"), formula.diff("y")], NAMES)
    except SpecError:
        return
    assert same(by_code(made, POINTS), by_machine(made, POINTS)), text


EVERY = [(op, x) for op in Op for x in {Op.POW_INT: (3, 4, 7), Op.POW: (0.3, 2.7)}.get(op, (1.7,))]


def with_op(op, x):
    """A program whose last instruction but one is this one, of x and y."""
    if op in {Op.CONST, Op.NAME, Op.STORE, Op.LOAD, Op.OUT}:
        rows = [(Op.NAME, 0), (Op.STORE, 0), (Op.CONST, x), (Op.ADD, 0), (Op.LOAD, 0), (Op.MUL, 0), (Op.OUT, 0)]
    elif op in {Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.ADDM} or op.name.lower() in OF_TWO:
        rows = [(Op.NAME, 0), (Op.NAME, 1), (op, x), (Op.OUT, 0)]
    else:
        rows = [(Op.NAME, 0), (op, x), (Op.OUT, 0)]
    return np.array([len(rows), 2, 1, 3, 1, *(float(number) for row in rows for number in row)])


@for_each(("op", "x"), EVERY, ids=lambda value: getattr(value, "name", value))
def test_every_instruction_to_the_bit(op, x):
    """Fails where one instruction differs from the machine's in one bit at some pair of 17 special numbers.

    Planted fault: the last bit of each number that native code read.
    """
    made = with_op(op, x)
    assert same(by_code(made, POINTS), by_machine(made, POINTS))
    moved = np.nextafter(POINTS, 10.0)
    assert op in {Op.SIGN} or not same(by_code(made, moved), by_machine(made, POINTS))


@for_each("n", [0, 1, 3, 4, 7, 8, 9, 33])
def test_no_chain_is_left_out(n):
    """Fails where a chain behind the last whole vector is left out, or one that is not there is written."""
    made = program([parse("x*y + x^2", NAMES, "text")], NAMES)
    loop = as_loop(made)
    code, out = Code(module([loop]), [loop]), np.full((40, 1), 7.0)
    points = np.ascontiguousarray(POINTS[-40:])
    run_native(code.addresses["outputs"], points, out, n)
    assert same(out[:n], by_machine(made, points)[:n])
    assert (out[n:] == 7.0).all()


# --- what the text may do ------------------------------------------------------------------------------------------

TEXT = program([parse("exp(x)*y + sqrt(abs(x))^3 + y^2.7", NAMES, "text")], NAMES)
PLANTED = [
    (r"double @exp\(", "double @system("),
    (r"declare double @exp\(double\)", "declare i32 @puts(ptr)"),
    ("%points, i64 %c, i64 1", "%points, i64 %c, i64 2"),
    ("%points, i64 %c, i64 1", "%points, i64 %c, i64 -1"),
    ("%points, i64 %c, i64 0", "%points, i64 %chains, i64 0"),
    ("%points, i64 %c, i64 0", "%points, i64 0, i64 0"),
    (r"\[2 x double\], ptr %points", "[3 x double], ptr %points"),
    (r"load double, ptr %v\d+", "load double, ptr %points"),
    (r"fmul double", "fmul fast double"),
    (r"= fmul .*", r"= inttoptr i64 4096 to ptr"),
    (r"(store double %v\d+, ptr %v\d+)", r"\1\n  store double 0x0000000000000000, ptr %points"),
    (r"(store double %v\d+, ptr) %v\d+", r"\1 inttoptr (i64 4096 to ptr)"),
    ("br i1 %more, label %chain", "br i1 true, label %chain"),
    ("icmp slt i64 %next, %chains", "icmp sle i64 %next, %chains"),
    ("add nuw nsw i64 %c, 1", "add nuw nsw i64 %c, 2"),
    (r"phi i64 \[ 0", "phi i64 [ -1"),
    ("define void @outputs", "define void @others"),
    (r"\Z", "@kept = global double 0.0\n"),
    (r"\Z", 'module asm "nop"\n'),
]


@for_each(("pattern", "fault"), PLANTED)
def test_the_inspection_finds(pattern, fault):
    """Fails where code passes that reads or writes elsewhere, calls something else, or does not end: planted in it."""
    loop = as_loop(TEXT)
    text, functions = module([loop]), {"outputs": (loop.arrays, loop.shared)}
    inspect(text, functions)
    planted = re.sub(pattern, fault, text, count=1)
    assert planted != text
    with pytest.raises(ForbiddenError):
        inspect(planted, functions)


# --- a run takes it ------------------------------------------------------------------------------------------------

QUARTIC = {"energy": "theta1^4/10 + (4*(theta2 + 1.2) - theta1^2)^2/2", "extent": 5.0}
WELL = {"energy": "theta^4 - 2*theta^2", "extent": 3.5}
SGHMC = {
    "layout": "theta_r",
    "diffusion_entries": ("0", "0", "1"),
    "curl_entries": ("-1",),
    "scheme": "semi_implicit",
    "step_size": 0.1,
}
RUNS = [
    ("typed", QUARTIC, {}, ""),
    ("typed", QUARTIC, {"curl_entries": ("theta1",)}, "gaussian"),
    ("typed", QUARTIC, {"diffusion_entries": ("1 + theta2^2", "0.5", "1")}, "gaussian_estimated"),
    ("typed", WELL, SGHMC, ""),
    ("typed", WELL, {**SGHMC, "refresh": 0.5}, ""),
    ("typed", WELL, {**SGHMC, "diffusion_entries": ("0", "0", "exp(theta)")}, ""),
    ("gamma", {"shape": 2.5}, {"diffusion_entries": ("theta",)}, ""),
    ("linear_regression", {}, {"step_size": 1e-4}, "minibatch_fisher"),
]


def run_of(target, target_params, sampler_params, gradient, n_chains=1, **values):
    """A run that keeps its draws."""
    return Run(
        RunSpec.of(
            target,
            "recipe",
            gradient,
            target_params=target_params,
            sampler_params=sampler_params,
            n_chains=n_chains,
            n_steps=600,
            seed=4,
            **values,
        ),
        keep_draws=True,
    )


def state_of(run):
    """Everything that a run leaves."""
    return [run.kept, run.position, run.momentum, run.last_gradient, run.counts]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "target_params", "params", "gradient"), RUNS)
@pytest.mark.parametrize("n_chains", [1, 9])
def test_a_run_goes_over_to_native_code_and_its_draws_stay(
    target, target_params, params, gradient, n_chains, monkeypatch
):
    """Fails where a draw, a momentum, a gradient or a count depends on which tier ran.

    Planted fault: native code that makes twice as much of each formula.
    """
    monkeypatch.setattr(compiler, "HOT", np.inf)
    slow = run_of(target, target_params, params, gradient, n_chains)
    slow.advance(200)
    slow.advance(400)
    assert not slow._tier.codes

    def taken_over():
        run = run_of(target, target_params, params, gradient, n_chains)
        run.advance(200)
        compiler.wait()
        run.advance(400)
        assert len(run._tier.codes) == 1 + (target == "typed")
        return run

    monkeypatch.setattr(compiler, "HOT", -1.0)
    for mine, other in zip(state_of(slow), state_of(taken_over()), strict=True):
        assert same(mine, other)
    whole = Loop.run
    monkeypatch.setattr(Loop, "run", lambda self, *to: [self.binary(Op.ADD, x, x) for x in whole(self, *to)])
    assert not same(slow.kept, taken_over().kept)


# --- its life ------------------------------------------------------------------------------------------------------


@pytest.fixture
def codes(monkeypatch):
    """The code that is there, with few modules kept that nothing uses."""
    made = weakref.WeakSet()
    build = Code.__init__

    def noted(self, *given):
        made.add(self)
        build(self, *given)

    monkeypatch.setattr(compiler, "HOT", -1.0)
    monkeypatch.setattr(compiler, "RECENT", 3)
    monkeypatch.setattr(Code, "__init__", noted)
    compiler._RECENT.clear()
    yield made
    compiler.wait()
    compiler._RECENT.clear()


def edit(run, number):
    """Type another D."""
    other = RunSpec.of("double_well", "recipe", sampler_params={"diffusion_entries": (f"{number + 1}",)})
    run.change(Change(0, other.sampler, other.gradient))


@pytest.mark.slow
def test_code_that_nothing_uses_is_freed(codes, monkeypatch):
    """Fails where the code of an edit stays when the next one has come, or that of a run that ended.

    Planted fault: what was compiled is kept.
    """

    def edits(n):
        run = run_of("double_well", {}, {"diffusion_entries": ("1",)}, "")
        for k in range(n):
            edit(run, k)
            run.advance(1)
            compiler.wait()
            run.advance(1)
            assert run._tier.codes
        return run

    run = edits(9)
    gc.collect()
    assert len(codes) <= 3 + 1
    del run
    compiler._RECENT.clear()
    gc.collect()
    assert len(codes) == 0
    monkeypatch.setattr(compiler, "RECENT", 100)
    edits(9)
    gc.collect()
    assert len(codes) > 3 + 1


def allocated():
    """The bytes that the process holds of its allocator, without those that were freed and are kept for later."""
    gc.collect()
    info = ctypes.CDLL(None).mallinfo2
    info.restype = type(
        "mallinfo2", (ctypes.Structure,), {"_fields_": [(f"part{k}", ctypes.c_size_t) for k in range(10)]}
    )
    found = info()
    # Mapped blocks, and those in use.
    return found.part4 + found.part7


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="only glibc says what is allocated"
)
def test_memory_is_level_while_formulas_are_edited(monkeypatch):
    """Fails where a module leaves more than 20 kB: 2 are LLVM's callbacks, which llvmlite has no handle of.

    Planted fault: lists of passes that nobody frees, 70 kB.
    """
    loop = as_loop(TEXT)
    text = module([loop])

    def left(n):
        before = allocated()
        for _ in range(n):
            Code(text, [loop])
        return (allocated() - before) / n

    left(5)
    assert left(20) < 20_000
    monkeypatch.setattr(compiler, "free_passes", lambda passes: passes.detach())
    assert left(20) > 40_000


@pytest.mark.slow
def test_of_a_session_s_edits_the_newest_is_compiled(codes, monkeypatch):
    """Fails where edits that were typed over are compiled, a run that was closed in the middle of its compilation
    leaves its code, or the thread lives on. Planted fault: nobody says that an edit is over."""
    begun, go_on = threading.Event(), threading.Event()
    compile_it, compiled = compiler._code, []

    def slowly(loops):
        compiled.append(loops)
        begun.set()
        go_on.wait(300)
        return compile_it(loops)

    monkeypatch.setattr(compiler, "_code", slowly)

    def count(run, kept):
        compiled.clear()
        begun.clear()
        go_on.clear()
        for k in range(12):
            edit(run, k)
            run.advance(1)
            kept.append(run._tier)
            if k == 0:
                assert begun.wait(300)
        go_on.set()
        compiler.wait()
        assert compiler.QUEUE.thread is None
        return len(compiled)

    run = run_of("double_well", {}, {"diffusion_entries": ("1",)}, "")
    assert count(run, []) == 2
    monkeypatch.setattr(compiler.Tier, "wanted", property(lambda self: True, lambda self, value: None), raising=False)
    assert count(run, []) == 12
    monkeypatch.undo()
    del run
    compiler._RECENT.clear()
    gc.collect()
    assert len(codes) == 0


def test_above_the_bound_the_machine_stays(codes, monkeypatch):
    """Fails where more operations than are allowed are compiled. Planted fault: a bound that is higher."""

    def tiers(most):
        monkeypatch.setattr(compiler, "MAX_OPERATIONS", most)
        run = run_of("typed", QUARTIC, {}, "")
        run.advance(1)
        compiler.wait()
        run.advance(1)
        return len(run._tier.codes)

    assert tiers(10) == 0
    assert tiers(1000) == 2


def test_what_cannot_be_compiled_stays_with_the_machine(codes, monkeypatch, caplog):
    """Fails where a run ends because there is no native code. Planted fault: code that the inspection refuses."""
    monkeypatch.setattr(Loop, "text", lambda self: "define void @rest(i64 %chains) { ret void }")
    run = run_of("typed", QUARTIC, {}, "")
    run.advance(1)
    compiler.wait()
    run.advance(100)
    assert run.steps == 101
    assert not run._tier.codes
    assert "No native code" in caplog.text
