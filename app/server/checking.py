"""The checks of ``sgmcmc-lab --check`` on an installation: its versions, its patches, and whether a page opens."""

import asyncio
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from sgmcmc_lab.app.server.compiling import declare_all
from sgmcmc_lab.app.server.light_page import LightPage
from sgmcmc_lab.samplers import RunSpec, run
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import functions

LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "llvmlite",
    "bokeh",
    "panel",
    "panel-material-ui",
    "param",
    "holoviews",
    "tornado",
)
"""The libraries whose versions ``--check`` prints."""
TESTED: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("gaussian", "mala", {}),
    ("quartic", "exact", {}),
    ("quartic", "hmc", {}),
    ("quartic", "barker", {}),
    ("gamma", "cir", {}),
)
"""Targets and samplers that leave them invariant at any step size: their moments are the exact ones."""
CHAINS = 50
LIMIT = 5.0
"""Standard errors, from the spread between chains, that a moment may be off; the seed is fixed."""

FRAME_SECONDS = 120.0
"""The first frame may wait for functions that are still to be compiled."""

CLOSING_SECONDS = 0.2


def untested(name: str = "sgmcmc-lab") -> Iterator[str]:
    """A sentence for each library that is missing, or whose version no test has run with."""
    for text in importlib.metadata.requires(name) or ():
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{need.name} is not installed: tested are {need.specifier}"
            continue
        if not need.specifier.contains(version, prereleases=True):
            yield f"{need.name} {version} lies outside the tested versions, {need.specifier}"


def patches_off() -> Iterator[str]:
    """A sentence for each patch whose function in a library is another than it was written for."""
    from sgmcmc_lab.app.server.patches import PATCHES

    for patch in PATCHES:
        if not patch.fits:
            yield f"{patch.without}: {patch.function} is unknown"


def first_frame() -> float:
    """Open the page as a browser does, in this process, and return the seconds until its first frame.

    Raises the error of whatever keeps the page from opening, or TimeoutError.
    """
    from bokeh.core.validation import silence
    from bokeh.core.validation.warnings import EMPTY_LAYOUT
    from bokeh.server.server import Server
    from panel.io.application import build_single_handler_application
    from tornado.ioloop import IOLoop

    from sgmcmc_lab.app.page import shell  # noqa: F401 - the seconds are those of a page, without its import
    from sgmcmc_lab.app.server import handlers, patches

    handlers.install()
    patches.install()
    # As panel serve does: a part of a page may be empty until somebody needs it.
    silence(EMPTY_LAYOUT)

    async def opened() -> float:
        application = build_single_handler_application(str(Path(__file__).parent.parent / "main.py"))
        server = Server({"/app": application}, port=0, address="127.0.0.1", io_loop=IOLoop.current())
        server.start()
        began, page, came = time.perf_counter(), LightPage(), asyncio.Event()
        page.on_frame = came.set
        try:
            await page.open(f"http://localhost:{server.port}/app")
            taking = asyncio.create_task(page.take())
            await asyncio.wait_for(came.wait(), FRAME_SECONDS)
            seconds = time.perf_counter() - began
            # A frame that is on its way would be answered after the end.
            taking.cancel()
            page.close()
            # The server has its end of the connection to close.
            await asyncio.sleep(CLOSING_SECONDS)
            return seconds
        finally:
            server.stop()

    return asyncio.run(opened())


def check() -> int:
    """Print what is there, whether some samplers have the exact moments, and whether a page opens; the exit code."""
    print(f"Python {sys.version.split()[0]} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors")
    for name in ("sgmcmc-lab", *LIBRARIES):
        try:
            print(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{name} is not installed")
    for sentence in untested():
        print(f"UNTESTED  {sentence}")
    for sentence in patches_off():
        print(f"OFF   {sentence}")
    print(*_cache_lines(), sep="\n", flush=True)
    needed = [f for target, sampler, params in TESTED for f in functions(_tested(target, sampler, params))]
    if not jit.is_ready(needed):
        began = time.perf_counter()
        jit.prepare(needed)
        print(
            f"The functions of the self-test were compiled or loaded in {time.perf_counter() - began:.1f} s", flush=True
        )
    began = time.perf_counter()
    off = {f"{target}, {sampler}": worst_moment(target, sampler, params) for target, sampler, params in TESTED}
    for what, z in off.items():
        print(f"{'ok' if z < LIMIT else 'WRONG':6}{what}: moments off by at most {z:.1f} standard errors")
    print(f"Self-test: {time.perf_counter() - began:.1f} s", flush=True)
    wrong = [what for what, z in off.items() if not z < LIMIT]
    if wrong:
        print(f"sgmcmc-lab: not the exact moments: {'; '.join(wrong)}.", file=sys.stderr)
    try:
        print(f"ok    page: the first frame came after {first_frame():.1f} s")
    except Exception as error:
        print("WRONG page")
        print(f"sgmcmc-lab: the page does not open: {type(error).__name__}: {error}.", file=sys.stderr)
        return 1
    return int(bool(wrong))


def compile_ahead() -> int:
    """Compile what was never compiled on this machine, on all of its processors, and print what is there."""
    from sgmcmc_lab.app.server.warmup import compile_apart

    declare_all()
    compile_apart([])
    print(*_cache_lines(), sep="\n")
    return int(jit.cache_folder() != jit.FOLDER or bool(jit.missing()))


def _cache_lines() -> list[str]:
    """The state of the compile cache: its functions, its folder, and advice if it cannot be written."""
    declare_all()
    declared, missing = len(jit.declared()), len(jit.missing())
    asked = jit.cache_folder()
    if jit.FOLDER is None:
        where = f"nowhere: neither {asked} nor a temporary folder can be written to"
    elif asked == jit.FOLDER:
        where = str(asked)
    else:
        where = f"{jit.FOLDER} until this command ends: {asked} cannot be written to"
    lines = [f"Compiled functions are kept in {where}"]
    if asked != jit.FOLDER:
        lines.append("Every start compiles the missing functions again. Set SGMCMC_LAB_CACHE to a writable folder")
    if jit.FOLDER is None or missing:
        rest = declared if jit.FOLDER is None else missing
        lines.append(
            f"{rest} of {declared} functions are still to be compiled: the first start does that, in a minute or two"
        )
    else:
        lines.append(f"All {declared} functions are compiled")
    return lines


def _tested(target: str, sampler: str, params: dict[str, float]) -> RunSpec:
    return RunSpec.of(target, sampler, sampler_params=params, n_steps=2000, burn_in=500, n_chains=CHAINS, seed=1)


def worst_moment(target: str, sampler: str, params: dict[str, float]) -> float:
    """The largest error of E z and E z² over all columns, in standard errors, z standardised by the exact moments."""
    statistics = run(_tested(target, sampler, params), keep_draws=False).statistics
    means = statistics.sums.powers[:, :, :2] / max(statistics.n_steps, 1)
    errors = (means.mean(1) - [0.0, 1.0]) / (means.std(1, ddof=1) / CHAINS**0.5)
    return float(abs(errors).max())
