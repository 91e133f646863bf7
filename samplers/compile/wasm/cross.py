"""A process in which Numba compiles for WebAssembly instead of this machine; it runs nothing that it compiles.

It reads declared functions from standard input, a module and a name per line, and writes each as NAME.o, a relocatable
object for wasm32, into the folder named by its argument; then it prints the name and the digest of the function's
content. In the object the symbol NAME is a constant: the function's place in the table of functions.

Pointers have 32 bits, the integers in arrays 64. There is no wrapper for Python: functions keep Numba's own calling
convention, (result, error, arguments…) → status.

The script is run by its path, and runs :mod:`samplers.compile.numba_private` by its path, because an import of the
engine makes Numba's compiler for this machine.
"""

import hashlib
import runpy
import sys
from importlib import import_module
from pathlib import Path

import llvmlite.binding as llvm
from numba.core import cpu
from numba.core.compiler_lock import global_compiler_lock

TRIPLE = "wasm32-unknown-unknown"
"""WebAssembly with 32-bit addresses: not every browser has 64-bit ones."""
FEATURES = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext,+simd128"
"""Features of every browser that decompresses a page's own content. Vectors of two numbers sum a ``jit.reduction`` in a
different order from Python's longer ones; all other results are equal to the bit."""


def main() -> None:
    """Compile what standard input names."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    private = runpy.run_path(str(Path(__file__).parents[1] / "numba_private.py"))
    cpu.CPUContext = private["wasm_context"](TRIPLE, FEATURES)
    from sgmcmc_lab.samplers.compile import jit

    asked = sys.stdin.read()
    wanted = [line.split() for line in asked.splitlines()]
    for module, name in wanted:
        # Functions that a module declares for each class of targets are declared by their names.
        again = getattr(import_module(module), "declare_again", None)
        if again is not None:
            again(name)
    functions = {jit.name_of(function): function for function in jit.declared()}
    digests = {name: jit.digest_of(functions[name]) for _, name in wanted}
    # Objects of several processes are linked: see number_symbols. The same request has the same numbers again.
    content = f"{asked} {sorted(digests.items(), key=str)}"
    private["number_symbols"](int(hashlib.sha256(content.encode()).hexdigest()[:15], 16))
    for _, name in wanted:
        function, digest = functions[name], digests[name]
        signature = jit.signature_of(function)
        function.compile(signature)
        found = function.get_compile_result(signature)
        with global_compiler_lock:
            content = found.library.emit_object(found.fndesc.llvm_func_name, name)
        (Path(sys.argv[1]) / f"{name}.o").write_bytes(content)
        print(name, digest, flush=True)


if __name__ == "__main__":
    main()
