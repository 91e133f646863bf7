"""The disk cache of compiled functions: a file for each, as :mod:`samplers.stored_files` keeps files.

Numba's own cache takes what it finds for what it wrote: an index that was cut ends every process that reads it, and
machine code that was changed is run. Here a function whose file is absent, damaged, of another Numba or of another
machine is compiled, and its file written anew. A file's name has a digest of the function's content, as
:mod:`samplers.compile.content` says, and of the compiler. Numba turns a compiled function into bytes and back; it
promises none of the names for that. Where a release lacks one, each process compiles what it needs.
"""

import hashlib
import logging
import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

from sgmcmc_lab.samplers import stored_files
from sgmcmc_lab.samplers.compile import numba_private
from sgmcmc_lab.samplers.compile.content import UnknownContentError, digest_of

log = logging.getLogger(__name__)


VERSIONS = 8
"""The most files of functions of one name: of other versions, branches and processors."""
MAX_FILES = 3000
"""The most files of all functions: names go out of use, too."""
UNUSED_DAYS = 180
"""A file goes that no process has loaded for so many days: more than there are between two courses."""
OLD_DAYS = 14
"""The same of a file in a folder of an earlier version, which another checkout may still use."""
MAX_BYTES = 500_000_000
"""The most bytes of all functions; a version has 60 MB."""
LOCK = "compiling.lock"
"""A file that the server whose processes compile holds; the system releases it when that server ends."""
CLAIMS = "claims"
"""The folder in which processes that share their work claim functions."""
NOT_OF_CODE = re.compile(
    r"CUDA|CACHE|THREAD|DUMP|PRINT|TRACE|WARN|COLOR|HELP|HTML|ANNOTATE|DIFF_IR|TIMINGS|COVERAGE|STATS|DIAGNOSTICS|MONITORING"
    r"|GDB|YAML|PROFILER|DEVELOPER|TYPEINFER|MEMORY_MANAGER|^DEBUG$|DEBUG_FRONTEND|DEBUG_INLINE_CLOSURE|DEBUG_ARRAY_OPT$"
)
"""Settings of Numba, ``NUMBA_*``, that change what it says, where it keeps files, its threads, and graphics cards. All
others count: those of the optimiser and the processor, the checks of bounds, and what is printed by compiled code."""


class CompiledFile:
    """The cache file of a function compiled for its signature."""

    def __init__(self, folder: Path, function: Any, signature: Any, told: dict[Any, Any] | None = None):
        """Raises :class:`UnknownContentError`."""
        number_symbols(os.getpid())
        plain = function.py_func
        self._name = file_name(f"{plain.__module__}.{plain.__qualname__}")
        self._of = repr((self._name, digest_of(function, signature, told), _machine(), _settings()))
        self.path = folder / f"{self._name}-{hashlib.sha256(self._of.encode()).hexdigest()[:16]}.nbc"
        self._function, self._signature = function, signature

    def is_there(self) -> bool:
        """Whether it is there, and whole."""
        return stored_files.read(self.path, self._of) is not None

    def claim(self) -> bool:
        """Whether this process is the first of those that share their work to begin with the function.

        They claim a function in a folder that one of them has made for that; without it each compiles for itself.
        """
        try:
            (self.path.parent / CLAIMS / self.path.stem).touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError:
            return True
        return True

    def load(self) -> bool:
        """Give the function the machine code that is kept. Whether it is there and this Numba takes it."""
        content = stored_files.read(self.path, self._of)
        if content is None:
            return False
        try:
            from numba.core.caching import CompileResultCacheImpl
            from numba.core.compiler_lock import global_compiler_lock
            from numba.core.serialize import loads

            context = self._function.targetctx
            with global_compiler_lock:
                context.refresh()
                # The method needs nothing of an instance, which would look for a folder of its own.
                found = CompileResultCacheImpl.rebuild(None, context, loads(content))
                context.insert_user_function(found.entry_point, found.fndesc, [found.library])
                self._function.add_overload(found)
            stored_files.mark_used(self.path)
        except Exception as error:
            _warn(f"Numba {numba.__version__} does not load what it compiled: {type(error).__name__}: {error}")
            return False
        return True

    def save(self) -> None:
        """Keep the compiled function. Where that fails the log says why, once, and the next process compiles again."""
        try:
            from numba.core.caching import CompileResultCacheImpl
            from numba.core.serialize import dumps

            found = self._function.get_compile_result(self._signature)
            # Such code holds addresses of this process.
            if not found.library.has_dynamic_globals:
                stored_files.write(self.path, self._of, dumps(CompileResultCacheImpl.reduce(None, found)))
                stored_files.keep_newest(self.path.parent, f"{self._name}-*.nbc", VERSIONS)
                stored_files.keep_newest(self.path.parent, "*.nbc", MAX_FILES)
        except OSError as error:
            _warn(f"Compiled functions cannot be kept in {self.path.parent}: {error.strerror or error}")
        except Exception as error:
            _warn(f"Numba {numba.__version__} does not let compiled functions be kept: {type(error).__name__}: {error}")


def tidy(folder: Path) -> None:
    """Remove files that no process has used for long, and the longest unused beyond :data:`MAX_BYTES`.

    Earlier versions kept functions in folders beside this one, which are named by a digest. Files of others stay. A
    running process has read its files whole.
    """
    stored_files.remove_unused(_kept_in(folder), UNUSED_DAYS, MAX_BYTES)
    stored_files.remove_unused(folder.glob("**/.*.part"), 1)
    for old in folder.parent.glob("[0-9a-f]" * 16):
        files = [] if old.is_symlink() else _kept_in(old)
        stored_files.remove_unused(files, OLD_DAYS)
        if files and not any(path.exists() for path in files):
            with suppress(OSError):
                (old / LOCK).unlink(missing_ok=True)
                if (old / "wasm").is_dir():
                    (old / "wasm").rmdir()
                old.rmdir()


def _kept_in(folder: Path) -> list[Path]:
    """The files of native functions, and of those for WebAssembly."""
    return [*folder.glob("*.nbc"), *folder.glob("wasm/*.o")]


def file_of(folder: Path, function: Any, signature: Any, told: dict[Any, Any] | None = None) -> CompiledFile | None:
    """The file of a declared function; None where it can have none, for it reaches something of unknown content.

    For several functions at once ``told`` keeps what is found of those that they share.
    """
    try:
        return CompiledFile(folder, function, signature, told)
    except UnknownContentError:
        return None
    except Exception as error:
        _warn(f"Compiled functions are not kept: {type(error).__name__}: {error}")
        return None


def file_name(name: str) -> str:
    """The beginning of a file's name, of the name of a function."""
    return re.sub(r"[^\w.]", "", name)[:100]


@cache
def _machine() -> tuple[Any, ...]:
    """The dependencies of machine code besides its content: versions and the processor."""
    return (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.implementation.cache_tag,
        getattr(sys, "abiflags", ""),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )


def _settings() -> list[tuple[str, str]]:
    """The settings of Numba that change machine code."""
    found = vars(numba.config).items()
    return sorted((name, repr(value)) for name, value in found if name.isupper() and not NOT_OF_CODE.search(name))


@cache
def number_symbols(process: int) -> None:
    """Let this process, by its number, name what it compiles as no other one does. Raises AttributeError."""
    numba_private.number_symbols()


@cache
def _warn(text: str) -> None:
    """Say it once in a process, not once for each function."""
    log.warning(text)
