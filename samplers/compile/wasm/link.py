"""One WebAssembly module of compiled functions: the engine's file, or one that is linked for functions beside it.

One module instead of one per function: its functions share the memory and the table without imports, and it contains
their common code, libm and Numba's helpers, once. The linker and libc are those of the package ``ziglang``.
"""

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.compile.wasm import ModuleError, engine
from sgmcmc_lab.samplers.compile.wasm.objects import objects

RUNTIME = Path(__file__).with_name("runtime.c")
EXPORTS = ("malloc", "free", "seeded", "spawned", "generator_functions")
"""The runtime's functions that the page calls; each compiled function's address is exported under its name."""
MISSING = 'The linker is missing: pip install "sgmcmc-lab[build]"'


def can_link() -> bool:
    """Whether the linker is installed."""
    return importlib.util.find_spec("ziglang") is not None


def module(functions: Iterable[Any]) -> bytes:
    """A module that holds these functions and what they need: the engine, where it has them all.

    Raises :class:`ModuleError`.
    """
    wanted = list({id(function): function for function in functions}.values())
    engine.check(wanted)
    others = engine.engine().without(wanted)
    if not others:
        return engine.engine().module
    if not can_link():
        names = ", ".join(map(jit.name_of, others))
        raise ModuleError(f"{engine.PATH.name} does not have {names}. {MISSING}")
    return _kept(tuple(sorted(objects(wanted).items())))


@lru_cache(maxsize=4)
def _kept(parts: tuple[tuple[str, bytes], ...]) -> bytes:
    return linked(dict(parts))


def linked(parts: Mapping[str, bytes]) -> bytes:
    """The module of these objects, by their names. Raises :class:`ModuleError`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, content in enumerate(parts.values()):
            (folder / f"{place}.o").write_bytes(content)
        # A reactor is a module that waits to be called. Without contraction a·b + c rounds twice, as in Python's host.
        command = [
            sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-O2", "-ffp-contract=off",
            "-o", str(folder / "out.wasm"), str(RUNTIME), *(str(folder / f"{place}.o") for place in range(len(parts))), "-lm",
            "-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--export-table",
            *(f"-Wl,--export={name}" for name in (*EXPORTS, *parts)),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            raise ModuleError(f"The linker reports: {(lines or ['nothing'])[0]}")
        return (folder / "out.wasm").read_bytes()
