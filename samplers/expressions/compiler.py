"""Native code: made from the text of a module in a thread of its own, taken by a run between two frames, and freed.

A run's formulas run on the stack machine at first, so that an edit shows in the next frame. When they have taken
:data:`HOT` seconds there they are worth compiling, which takes about 15 ms for 30 operations: a :class:`Tier` stands
in a queue for the one thread that compiles, which is there only while something waits. The queue holds its tiers
weakly. Those of a run that was closed, or given other formulas, are never begun; the code of one that was closed in
the middle of it is dropped where it is ready. Formulas of more than :data:`MAX_OPERATIONS` operations stay with the
machine.

Code that no run uses is freed with its engine, but for the last few, to which a person may come back.
"""

import logging
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import ReferenceType, ref

import llvmlite.binding as llvm
import numpy as np
from numba import cfunc, types

from sgmcmc_lab.samplers.compile.numba_private import free_passes
from sgmcmc_lab.samplers.expressions import special
from sgmcmc_lab.samplers.expressions.functions import Array
from sgmcmc_lab.samplers.expressions.inspection import MAY_CALL, inspect
from sgmcmc_lab.samplers.expressions.native import LAB, Loop, module
from sgmcmc_lab.samplers.low_priority import step_back

HOT = 0.1
"""Seconds on the stack machine after which formulas are compiled."""
MAX_OPERATIONS = 1_500
"""Operations of the functions of one sampler or target; their code takes half a second."""
MAX_WAITING = 64
"""Tiers that wait for the compiler; where there are more the first one stays with the machine."""
RECENT = 16
"""Modules whose code is kept though nothing may use it."""

SPECIAL = {
    LAB + "lgamma": special.log_gamma,
    LAB + "digamma": special.digamma,
    LAB + "log1m_exp": special.log1m_exp,
    LAB + "log1p_square": special.log1p_square,
    LAB + "log_i0e": special.log_i0e,
    LAB + "log_i0e_slope": special.log_i0e_slope,
    LAB + "lgamma_half_step": special.lgamma_half_step,
    LAB + "lgamma_half_step_slope": special.lgamma_half_step_slope,
    LAB + "log_ndtr": special.log_ndtr,
    LAB + "log_ndtr_slope": special.log_ndtr_slope,
    LAB + "log_gamma_density": special.log_gamma_density,
    LAB + "log_sum_exp": special.log_sum_exp,
    LAB + "trigamma": special.trigamma,
    LAB + "log_i0": special.log_i0,
    LAB + "i1_over_i0": special.i1_over_i0,
}
"""The machine's own functions, by the names under which generated code calls them."""


@lru_cache
def _special(name: str) -> Any:
    """One of them as a function of C, compiled when a formula first has it in it, and kept."""
    function = SPECIAL[name]

    # A call, as the machine's is: what is compiled as a part of something else may come out with other last bits.
    def called(x):
        return function(x)

    def called_with_two(x, y):
        return function(x, y)

    if MAY_CALL[name] == 2:
        return cfunc(types.float64(types.float64, types.float64))(called_with_two)
    return cfunc(types.float64(types.float64))(called)


_log = logging.getLogger(__name__)


def _optimise(made: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Let LLVM improve the module, and make vector instructions of its loops."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    # The processor cannot at once load a pair of numbers as a vector that another function has just written one by one.
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(made, builder)
    free_passes(passes)


class Code:
    """The compiled functions of a module; their memory is freed with this object."""

    def __init__(self, text: str, loops: Sequence[Loop]):
        inspect(text, {loop.name: (loop.arrays, loop.shared) for loop in loops})
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
        )
        made = llvm.parse_assembly(text)
        made.verify()
        _optimise(made, machine)
        self._engine = llvm.create_mcjit_compiler(made, machine)
        for name in SPECIAL:
            if re.search(rf"call double @{name}\(", text):
                llvm.add_symbol(name, _special(name).address)
        # A name that the linker does not find ends the process.
        missing = [
            name for name in MAY_CALL if "." not in name and name not in SPECIAL and not llvm.address_of_symbol(name)
        ]
        if missing:
            raise RuntimeError(f"this system's C library has no {missing[0]}")
        self._engine.finalize_object()
        self.addresses = {loop.name: self._engine.get_function_address(loop.name) for loop in loops}
        """The address of each function."""

    def put_addresses(self, params: Array, loops: Mapping[int, Loop]) -> None:
        """Write the addresses into packed parameters, at these indices, as integers of 64 bits."""
        for index, loop in loops.items():
            params.view(np.int64)[index] = self.addresses[loop.name]


_RECENT: OrderedDict[str, Code] = OrderedDict()


def _code(loops: Sequence[Loop]) -> Code:
    """The code of these functions: the same for the same text, as long as it is among the last few."""
    text = module(loops)
    code = _RECENT.pop(text, None) or Code(text, loops)
    _RECENT[text] = code
    if len(_RECENT) > RECENT:
        _RECENT.popitem(last=False)
    return code


Formulas = Callable[[], dict[int, Loop]]
"""The functions that native code has of something, by the index of its packed parameters that takes the address."""


class Tier:
    """The native code of a run, compiled once that pays off."""

    def __init__(self, parts: Sequence[tuple[Array, Formulas]]):
        """Take packed parameters, with the functions whose addresses they hold."""
        self._parts = parts
        self._begun: float | None = None
        self._asked = False
        self.wanted = True
        """Set to False by whoever needs it no more."""
        self._ready: list[tuple[Code, dict[int, Loop]] | None] | None = None
        self.codes: list[Code] = []
        """The code to which the addresses in the parameters point."""

    def take(self, seconds: float) -> None:
        """Between two frames, after so many seconds of the run: ask for the code, or take it where it is ready."""
        if self._begun is None:
            self._begun = seconds
        if self._parts and not self._asked and seconds - self._begun >= HOT:
            self._asked = True
            QUEUE.ask(self)
        if self._ready is not None:
            for (params, _), found in zip(self._parts, self._ready, strict=True):
                if found is not None:
                    code, loops = found
                    self.codes.append(code)
                    code.put_addresses(params, loops)
            self._ready = None

    def compile(self) -> None:
        """Make the code, for :meth:`take`; this takes a while."""
        ready: list[tuple[Code, dict[int, Loop]] | None] = []
        for _, formulas in self._parts:
            loops = formulas()
            ready.append(None)
            if loops and self.wanted and sum(loop.operations for loop in loops.values()) <= MAX_OPERATIONS:
                ready[-1] = _code(list(loops.values())), loops
        self._ready = ready


class _Queue:
    """The tiers that wait for the thread that compiles; that is there only while there are some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[ReferenceType[Tier]] = deque(maxlen=MAX_WAITING)
        self.thread: threading.Thread | None = None

    def ask(self, tier: Tier) -> None:
        """Let it be compiled when its turn comes."""
        with self._lock:
            self._waiting.append(ref(tier))
            if self.thread is None:
                self.thread = threading.Thread(target=self._work, name="native code")
                self.thread.start()

    def _work(self) -> None:
        step_back()
        while True:
            with self._lock:
                if not self._waiting:
                    self.thread = None
                    return
                tier = self._waiting.popleft()()
            try:
                if tier is not None and tier.wanted:
                    tier.compile()
            except Exception:
                # The machine goes on with what it did so far.
                _log.exception("No native code")
            # Without this reference, a run that is closed meanwhile frees its code.
            tier = None


QUEUE = _Queue()


def wait() -> None:
    """Until nothing is being compiled."""
    thread = QUEUE.thread
    if thread is not None:
        thread.join()
