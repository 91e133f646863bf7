"""A process in which Numba compiles for WebAssembly instead of this machine; it runs nothing that it compiles.

It reads declared functions from standard input, a module and a name per line, and writes each as NAME.o, a relocatable
object for wasm32, into the folder named by its argument; then it prints the name and the digest of the function's
content. In the object the symbol NAME is a constant: the function's place in the table of functions.

Pointers have 32 bits, the integers in arrays 64. There is no wrapper for Python: functions keep Numba's own calling
convention, (result, error, arguments…) → status.

Numba guarantees none of the names replaced here: they are those of the releases in ``pyproject.toml``. The script is
run by its path, because an import of the engine makes Numba's compiler for this machine.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import codegen, cpu
from numba.core.compiler_lock import global_compiler_lock

TRIPLE = "wasm32-unknown-unknown"
"""WebAssembly with 32-bit addresses: not every browser has 64-bit ones."""
FEATURES = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext,+simd128"
"""Features of every browser that decompresses a page's own content. Vectors of two numbers sum a ``jit.reduction`` in a
different order from Python's longer ones; all other results are equal to the bit."""


class Library(codegen.AOTCodeLibrary):
    """The code of one function and of its helpers."""

    def get_pointer_to_function(self, name: str) -> int:
        """Numba asks for it where it would call the function; there is none."""
        return 0

    def emit_object(self, function: str, name: str) -> bytes:
        """The object, with the constant ``name`` that is the address of ``function``."""
        with global_compiler_lock:
            self._ensure_finalized()
            module = self._final_module
            # Several objects may define these symbols, and WebAssembly has no common linkage.
            for variable in module.global_variables:
                if variable.linkage == llvm.Linkage.common:
                    variable.linkage = llvm.Linkage.weak_any
            declared = str(module.get_function(function).global_value_type)
            result, arguments = declared.split(" ", 1)
            address = llvm.parse_assembly(
                f'target triple = "{TRIPLE}"\ntarget datalayout = "{module.data_layout}"\n'
                f'declare {result} @"{function}"{arguments}\n@"{name}" = constant ptr @"{function}"\n'
            )
            module.link_in(address)
            return bytes(self.codegen._tm.emit_object(module))


class Codegen(codegen.AOTCPUCodegen):
    """Numba's code generator with WebAssembly's target machine, and no engine that runs code."""

    _library_class = Library

    def _init(self, llvm_module: Any) -> None:
        machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=3, features=FEATURES)
        self._tm, self._tm_features, self._engine = machine, FEATURES, None
        self._target_data = machine.target_data
        self._data_layout = str(machine.target_data)
        self._loopvect, self._opt_level = False, 0

    def _create_empty_module(self, name: str) -> ir.Module:
        module = super()._create_empty_module(name)
        module.triple = TRIPLE
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


def main() -> None:
    """Compile what standard input names."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu.CPUContext = Context
    from sgmcmc_lab.samplers.compile import cache, jit

    cache.number_symbols(os.getpid())
    wanted = [line.split() for line in sys.stdin.read().splitlines()]
    for module, name in wanted:
        # Functions that a module declares for each class of targets are declared by their names.
        again = getattr(import_module(module), "declare_again", None)
        if again is not None:
            again(name)
    functions = {jit.name_of(function): function for function in jit.declared()}
    for _, name in wanted:
        function = functions[name]
        signature = jit.signature_of(function)
        digest = jit.digest_of(function)
        function.compile(signature)
        found = function.get_compile_result(signature)
        (Path(sys.argv[1]) / f"{name}.o").write_bytes(found.library.emit_object(found.fndesc.llvm_func_name, name))
        print(name, digest, flush=True)


if __name__ == "__main__":
    main()
