"""Build the engine's file: ``python -m sgmcmc_lab.samplers.compile.wasm``, with the extra ``build``.

It compiles all functions anew, links them, makes them smaller by Binaryen's ``wasm-opt`` where this is installed, and
writes ``assets/engine.wasm``. That takes minutes. The same sources and versions become the same bytes.
"""

import hashlib
import importlib.metadata
import inspect
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from sgmcmc_lab.samplers.compile import jit, numba_private
from sgmcmc_lab.samplers.compile.wasm import ModuleError, engine
from sgmcmc_lab.samplers.compile.wasm.link import MISSING, RUNTIME, can_link, linked
from sgmcmc_lab.samplers.compile.wasm.objects import CROSS, compiled
from sgmcmc_lab.samplers.console import Parser
from sgmcmc_lab.samplers.live import description

SMALLER = (
    "-Oz", "--enable-bulk-memory", "--enable-mutable-globals", "--enable-nontrapping-float-to-int", "--enable-sign-ext",
    "--enable-simd",
)  # fmt: skip
"""Options of ``wasm-opt``: small, with the features of :data:`samplers.compile.wasm.cross.FEATURES`."""

LIBM = re.compile("(?!mem)[a-z][a-z0-9]*")
"""The names of libm's functions, among those that an object imports."""


def main(arguments: list[str] | None = None) -> int:
    """Build it; return the exit code."""
    parser = Parser(prog=engine.COMMAND, description="Build the engine of live pages.")
    parser.add_argument("--out", type=Path, default=engine.PATH, metavar="FILE", help="the file (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        options.out.write_bytes(build())
    except (ModuleError, OSError) as error:
        print(f"{options.out}: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")
    return 0


def build() -> bytes:
    """The engine's file. Raises :class:`ModuleError`."""
    if not can_link():
        raise ModuleError(MISSING)
    functions = sorted(description.engine_functions(), key=jit.name_of)
    digests = engine.digests(functions)
    with tqdm(total=len(functions), desc="compiling", file=sys.stderr, leave=False, disable=None) as bar:
        parts = compiled(functions, lambda done, total, name: bar.update(done - bar.n))
    # Functions of a similar size are often similar; compression finds that where they are neighbours, and saves 3 %.
    parts = dict(sorted(parts.items(), key=lambda part: (len(part[1]), part[0])))
    called = {name: sorted(filter(LIBM.fullmatch, engine.imports(content))) for name, content in parts.items()}
    return engine.with_section(engine.Engine(_smaller(linked(parts)), digests, called, made_with()))


def made_with() -> dict[str, str]:
    """The dependencies of the bytes besides the functions: versions, and a digest of what compiles and links."""
    packages = ("numba", "llvmlite", "numpy", "ziglang")
    found = {name: importlib.metadata.version(name) for name in packages}
    found |= {"python": ".".join(platform.python_version_tuple()[:2]), "binaryen": _binaryen()}
    return found | {"sources": sources()}


def sources() -> str:
    """The digest of the sources that compile and link."""
    code = [inspect.getsource(part) for part in (numba_private.wasm_context, linked)]
    texts = [path.read_text(encoding="utf-8") for path in (CROSS, RUNTIME)]
    return hashlib.sha256("".join([*code, *texts, *SMALLER]).encode()).hexdigest()[:16]


def _binaryen() -> str:
    """The version of ``wasm-opt``; empty where there is none."""
    tool = shutil.which("wasm-opt")
    if tool is None:
        return ""
    said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    return (re.findall(r"\d+", said) or [""])[0]


def _smaller(module: bytes) -> bytes:
    """The module after ``wasm-opt``, where there is one. Raises :class:`ModuleError`."""
    tool = shutil.which("wasm-opt")
    if tool is None:
        return module
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.wasm", Path(folder) / "after.wasm"
        before.write_bytes(module)
        done = subprocess.run(
            [tool, *SMALLER, str(before), "-o", str(after)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ModuleError(f"wasm-opt reports: {(done.stderr.splitlines() or ['nothing'])[-1]}")
        return after.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
