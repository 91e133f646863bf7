"""The disk cache of compiled functions: a file for each, as :mod:`samplers.stored_files` keeps files.

Numba's own cache takes what it finds for what it wrote: an index that was cut ends every process that reads it, and
machine code that was changed is run. Here a function whose file is absent, damaged, of another Numba or of another
machine is compiled, and its file written anew. Numba turns a compiled function into bytes and back; it promises none
of the names for that. Where a release lacks one, each process compiles what it needs.
"""

import hashlib
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba

from sgmcmc_lab.samplers import stored_files

log = logging.getLogger(__name__)


class CompiledFile:
    """The cache file of a function compiled for its signature."""

    def __init__(self, folder: Path, function: Any, signature: Any):
        """Raises OSError where the source of the function is in no file."""
        plain = function.py_func
        # The file is read now: one that is edited later is not what this process compiles.
        source = hashlib.sha256(Path(plain.__code__.co_filename).read_bytes()).hexdigest()
        name = f"{plain.__module__}.{plain.__qualname__}".replace("<", "").replace(">", "")[:100]
        self._of = repr((name, plain.__code__.co_firstlineno, source, str(signature), _compiler()))
        self.path = folder / f"{name}-{hashlib.sha256(self._of.encode()).hexdigest()[:16]}.nbc"
        self._function, self._signature = function, signature

    def is_there(self) -> bool:
        """Whether it is there, and whole."""
        return stored_files.read(self.path, self._of) is not None

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
        except OSError as error:
            _warn(f"Compiled functions cannot be kept in {self.path.parent}: {error.strerror or error}")
        except Exception as error:
            _warn(f"Numba {numba.__version__} does not let compiled functions be kept: {type(error).__name__}: {error}")


def file_of(folder: Path, function: Any, signature: Any) -> CompiledFile | None:
    """The file of a declared function; None where it can have none, such as one that was typed into a notebook."""
    try:
        return CompiledFile(folder, function, signature)
    except OSError:
        return None
    except Exception as error:
        _warn(f"The dependencies of compiled functions are unknown: {type(error).__name__}: {error}")
        return None


@cache
def _compiler() -> tuple[Any, ...]:
    """The dependencies of machine code besides its source: versions, the processor, and the settings of Numba."""
    return (
        numba.__version__,
        llvmlite.__version__,
        sys.implementation.cache_tag,
        getattr(sys, "abiflags", ""),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_")),
    )


@cache
def _warn(text: str) -> None:
    """Say it once in a process, not once for each function."""
    log.warning(text)
