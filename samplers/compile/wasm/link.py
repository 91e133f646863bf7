"""One WebAssembly module of compiled functions, by the linker and libc of the package ``ziglang``.

One module instead of one per function: its functions share the memory and the table without imports, and it contains
their common code, libm and Numba's helpers, once.
"""

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from sgmcmc_lab.samplers.compile.wasm.objects import objects

RUNTIME = Path(__file__).with_name("runtime.c")
EXPORTS = ("malloc", "free", "seeded", "spawned", "generator_functions")
"""The runtime's functions that the page calls; each compiled function's address is exported under its name."""
MISSING = 'Live pages need a linker: pip install "sgmcmc-lab[live]"'


class LinkError(Exception):
    """A module cannot be made; the message says why, or what to install."""


def can_link() -> bool:
    """Whether the linker is installed."""
    return importlib.util.find_spec("ziglang") is not None


def module(functions: Iterable[Any], progress: Callable[[int, int, str], None] | None = None) -> bytes:
    """The module that holds these functions and what they need.

    Raises :class:`LinkError`, or :class:`~samplers.compile.wasm.objects.CompileError`.
    """
    if not can_link():
        raise LinkError(MISSING)
    return _linked(tuple(sorted(objects(functions, progress).items())))


@lru_cache(maxsize=32)
def _linked(parts: tuple[tuple[str, bytes], ...]) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place, (_, content) in enumerate(parts):
            (folder / f"{place}.o").write_bytes(content)
        # A reactor is a module that waits to be called. Without contraction a·b + c rounds twice, as in Python's host.
        command = [
            sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-O2", "-ffp-contract=off",
            "-o", str(folder / "out.wasm"), str(RUNTIME), *(str(folder / f"{place}.o") for place in range(len(parts))), "-lm",
            "-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--export-table",
            *(f"-Wl,--export={name}" for name in (*EXPORTS, *(name for name, _ in parts))),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            raise LinkError(f"The linker reports: {(lines or ['nothing'])[0]}")
        return (folder / "out.wasm").read_bytes()
