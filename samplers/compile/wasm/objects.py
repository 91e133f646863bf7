"""Objects of compiled functions for WebAssembly, kept next to the native ones; a process compiles the missing ones."""

import hashlib
import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from sgmcmc_lab.samplers import stored_files
from sgmcmc_lab.samplers.compile import jit, numba_private
from sgmcmc_lab.samplers.compile.cache import VERSIONS, file_name
from sgmcmc_lab.samplers.compile.wasm import ModuleError

CROSS = Path(__file__).with_name("cross.py")


def objects(functions: Iterable[Any]) -> dict[str, bytes]:
    """The object of each function, by its name; those that are kept are not compiled. Raises :class:`ModuleError`."""
    wanted = {jit.name_of(function): function for function in functions}
    found = {name: _read(name, function) for name, function in wanted.items()}
    missing = [wanted[name] for name, content in found.items() if content is None]
    if missing:
        found |= compiled(missing)
    return {name: content for name, content in found.items() if content is not None}


def compiled(functions: Sequence[Any], progress: Callable[[int, int, str], None] = lambda *_: None) -> dict[str, bytes]:
    """The object of each function, by its name, compiled in one process: the same functions become the same bytes.

    ``progress(done, total, name)`` is called before each one. Raises :class:`ModuleError`.
    """
    names = [jit.name_of(function) for function in functions]
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
                # Numba orders some of its code by sets of names.
                env={**os.environ, "PYTHONHASHSEED": "0"},
            ) as process,
        ):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(
                "\n".join(f"{each.py_func.__module__} {name}" for name, each in zip(names, functions, strict=True))
            )
            process.stdin.close()
            progress(0, len(names), names[0])
            for line in process.stdout:
                name, digest = line.split()
                out[name] = (Path(folder) / f"{name}.o").read_bytes()
                _write(name, digest, out[name])
                if len(out) < len(names):
                    progress(len(out), len(names), names[len(out)])
        if process.returncode or len(out) < len(names):
            lines = log.read_text(errors="replace").strip().splitlines()
            raise ModuleError(
                f"Numba {numba.__version__} does not compile {names[min(len(out), len(names) - 1)]} for WebAssembly: "
                f"{lines[-1] if lines else f'exit code {process.returncode}'}"
            )
    return out


def _place(name: str, of: str) -> Path:
    assert jit.FOLDER is not None
    return jit.FOLDER / "wasm" / f"{file_name(name)}-{hashlib.sha256(of.encode()).hexdigest()[:16]}.o"


def _read(name: str, function: Any) -> bytes | None:
    digest = jit.digest_of(function)
    if jit.FOLDER is None or digest is None:
        return None
    of = f"{name} {digest} {_compiler()}"
    stored_files.mark_used(_place(name, of))
    return stored_files.read(_place(name, of), of)


def _write(name: str, digest: str, content: bytes) -> None:
    """Keep the object of a function, whose digest is of the files that the compiling process has read."""
    if jit.FOLDER is None or digest == "None":
        return
    of = f"{name} {digest} {_compiler()}"
    # Without a writable folder, the next page compiles again.
    with suppress(OSError):
        stored_files.write(_place(name, of), of, content)
        stored_files.keep_newest(jit.FOLDER / "wasm", f"{file_name(name)}-*.o", VERSIONS)


@cache
def _compiler() -> str:
    """Everything that an object depends on except the content of its function."""
    own = hashlib.sha256(
        (CROSS.read_text("utf-8") + inspect.getsource(numba_private.wasm_context)).encode()
    ).hexdigest()
    return f"{numba.__version__} {llvmlite.__version__} {np.__version__} {own}"
