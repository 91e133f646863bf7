"""Objects of compiled functions for WebAssembly, kept next to the native ones; a process compiles the missing ones."""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba

from sgmcmc_lab.samplers import stored_files
from sgmcmc_lab.samplers.compile import jit

CROSS = Path(__file__).with_name("cross.py")


class CompileError(Exception):
    """Numba does not compile for WebAssembly here; the message says why."""


def objects(functions: Iterable[Any], progress: Callable[[int, int, str], None] | None = None) -> dict[str, bytes]:
    """The object of each function, by its name.

    ``progress(done, total, name)`` is called before each one that is compiled. Raises :class:`CompileError`.
    """
    modules = {jit.name_of(function): function.py_func.__module__ for function in functions}
    found = {name: _read(name) for name in modules}
    missing = {name: modules[name] for name, content in found.items() if content is None}
    if missing:
        found |= _compile(missing, progress or (lambda *_: None))
    return {name: content for name, content in found.items() if content is not None}


def _compile(modules: dict[str, str], progress: Callable[[int, int, str], None]) -> dict[str, bytes]:
    """Compile these functions, given by their modules, in one process. Raises :class:`CompileError`."""
    names = list(modules)
    out: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("wb") as errors,
            subprocess.Popen(
                [sys.executable, "-P", str(CROSS), folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n".join(f"{module} {name}" for name, module in modules.items()))
            process.stdin.close()
            progress(0, len(names), names[0])
            for line in process.stdout:
                name = line.strip()
                out[name] = (Path(folder) / f"{name}.o").read_bytes()
                _write(name, out[name])
                if len(out) < len(names):
                    progress(len(out), len(names), names[len(out)])
        if process.returncode or len(out) < len(names):
            lines = log.read_text(errors="replace").strip().splitlines()
            raise CompileError(
                f"Numba {numba.__version__} does not compile {names[min(len(out), len(names) - 1)]} for WebAssembly: "
                f"{lines[-1] if lines else f'exit code {process.returncode}'}"
            )
    return out


def _place(name: str) -> Path | None:
    return None if jit.FOLDER is None else jit.FOLDER / "wasm" / f"{name}.o"


def _read(name: str) -> bytes | None:
    place = _place(name)
    return None if place is None else stored_files.read(place, f"{name} {_compiler()}")


def _write(name: str, content: bytes) -> None:
    # Without a writable folder, the next page compiles again.
    place = _place(name)
    if place is not None:
        try:
            stored_files.write(place, f"{name} {_compiler()}", content)
        except OSError:
            return


@cache
def _compiler() -> str:
    """Everything that an object depends on except the sources, whose digest names the cache folder."""
    own = hashlib.sha256(CROSS.read_bytes()).hexdigest()
    return f"{numba.__version__} {llvmlite.__version__} {own}"
