"""Private names of Numba and llvmlite, and the only module of the engine with any.

No release promises them. Each function looks for its names when it is called, and :data:`WITHOUT` says what changes
where a release lacks them.

The module imports nothing of the lab: :mod:`samplers.compile.wasm.cross` runs it by its path.
"""

import itertools
import secrets
from typing import Any

import llvmlite.binding as llvm
from numba.core.bytecode import FunctionIdentity

WITHOUT = {
    "_unique_ids": "Compiled functions are not kept: each process compiles those that it needs.",
    "_dispose": "The passes of each module of typed formulas stay in memory: 70 kB.",
    **dict.fromkeys(
        [
            "_library_class",
            "_init",
            "_create_empty_module",
            "_module_pass_manager",
            "_internal_codegen",
            "_tm",
            "_tm_features",
            "_engine",
            "_target_data",
            "_data_layout",
            "_loopvect",
            "_opt_level",
            "_ensure_finalized",
            "_final_module",
        ],
        "The engine cannot be built, nor live pages with functions of other packages; all other live pages can.",
    ),
}
"""The private names, and what changes where one is absent."""


def number_symbols(first: int | None = None) -> None:
    """Number the symbols of this process from this number, or from a random one. Raises AttributeError.

    Numba numbers the symbols of each process from 1. Two closures of one name, or an old and a new function, that two
    processes have compiled under the same number are one function to a third process, which loads both.
    """
    if not hasattr(FunctionIdentity, "_unique_ids"):
        raise AttributeError("Numba's FunctionIdentity has no _unique_ids")
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60) if first is None else first)


def free_passes(passes: Any) -> None:
    """Free a list of passes, which llvmlite leaves behind: it is of two classes, and the first disposes of nothing."""
    manager = getattr(getattr(llvm, "newpassmanagers", None), "NewPassManager", None)
    dispose = getattr(manager, "_dispose", None)
    if dispose is not None:
        dispose(passes)
        passes.detach()


def wasm_context(triple: str, features: str) -> type:
    """Numba's compilation context for a machine with 32-bit addresses. Raises AttributeError.

    There is no Python on that machine: functions call each other in Numba's own convention.
    """
    from llvmlite import ir
    from numba.core import codegen, cpu

    # Under other names Numba would compile for this machine.
    for name in ("_library_class", "_init", "_create_empty_module", "_module_pass_manager"):
        if not hasattr(codegen.AOTCPUCodegen, name):
            raise AttributeError(f"Numba's AOTCPUCodegen has no {name}")

    class Library(codegen.AOTCodeLibrary):
        """The code of one function and of its helpers."""

        def get_pointer_to_function(self, name: str) -> int:
            """Numba asks for it where it would call the function; there is none."""
            return 0

        def emit_object(self, function: str, name: str) -> bytes:
            """The object, with the constant ``name`` that is the address of ``function``."""
            self._ensure_finalized()
            module = self._final_module
            # Several objects may define these symbols, and WebAssembly has no common linkage.
            for variable in module.global_variables:
                if variable.linkage == llvm.Linkage.common:
                    variable.linkage = llvm.Linkage.weak_any
            # A function that calls this one has a copy of this constant in its own object.
            declared = str(module.get_function(function).global_value_type)
            result, arguments = declared.split(" ", 1)
            address = llvm.parse_assembly(
                f'target triple = "{triple}"\ntarget datalayout = "{module.data_layout}"\n'
                f'declare {result} @"{function}"{arguments}\n@"{name}" = weak_odr constant ptr @"{function}"\n'
            )
            module.link_in(address)
            return bytes(self.emit_native_object())

    class Codegen(codegen.AOTCPUCodegen):
        """Numba's code generator with another target machine, and no engine that runs code."""

        _library_class = Library

        def _init(self, llvm_module: Any) -> None:
            machine = llvm.Target.from_triple(triple).create_target_machine(opt=3, features=features)
            self._tm, self._tm_features, self._engine = machine, features, None
            self._target_data = machine.target_data
            self._data_layout = str(machine.target_data)
            self._loopvect, self._opt_level = False, 0

        def _create_empty_module(self, name: str) -> ir.Module:
            module = super()._create_empty_module(name)
            module.triple = triple
            return module

        def _module_pass_manager(self, **settings: Any) -> Any:
            return super()._module_pass_manager(**{"slp_vectorize": False, **settings})

        def set_env(self, *_: Any) -> None:
            """Nothing here is called from Python."""

    class Context(cpu.CPUContext):
        """Numba's compilation context with that code generator."""

        def init(self) -> None:
            """Like the base class, for another machine."""
            self.is32bit = False
            self._internal_codegen = Codegen("numba.wasm")

        def create_cpython_wrapper(self, *_: Any, **__: Any) -> None:
            """None: there is no Python."""

        def create_cfunc_wrapper(self, *_: Any, **__: Any) -> None:
            """None: functions call each other in Numba's convention."""

        def get_executable(self, *_: Any) -> Any:
            """A new builtin that stands for the function: Numba finds functions by the object returned here."""
            return [].append

    return Context
