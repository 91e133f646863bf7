"""The command ``sgmcmc-lab``: the lab on this computer, for a class, or a check of what it needs."""

import argparse
import importlib.metadata
import os
import platform
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from sgmcmc_lab.app.server.checking import first_frame, patches_off, untested
from sgmcmc_lab.samplers import RunSpec, run
from sgmcmc_lab.samplers.compile import jit
from sgmcmc_lab.samplers.engine import functions

PORT = 5006
BAD_INPUT, FAILED = 2, 1
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence."""
        self.exit(BAD_INPUT, f"sgmcmc-lab: {message}.\n")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: allowed is a whole number from 1 to 65535")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = _Parser(prog="sgmcmc-lab", description="Open the lab on this computer, or serve it for a class.")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--class", dest="room", action="store_true", help="serve the network that this computer is in")
    kind.add_argument(
        "--check", action="store_true", help="versions, compiled functions, a page, and a self-test of seconds"
    )
    kind.add_argument("--version", action="version", version=f"sgmcmc-lab {importlib.metadata.version('sgmcmc-lab')}")
    parser.add_argument("--port", type=_port, default=PORT, help=f"where to listen; {PORT} without it")
    options = parser.parse_args(arguments)
    if options.check:
        return _check()
    if _taken(options.port):
        parser.error(f"argument --port: something listens on {options.port} already; name another one")
    return _serve(options.port, options.room)


def _taken(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def serve_arguments(port: int, room: bool, reached_by: Sequence[str]) -> list[str]:
    """The arguments of ``panel``; ``reached_by`` are names and addresses that other computers may use."""
    app = str(Path(__file__).parent.parent)
    where = ["--address", "localhost"]
    if room:
        where = [part for name in reached_by for part in ("--allow-websocket-origin", f"{name}:{port}")]
    return ["serve", app, "--port", str(port), *where, "--show"]


def _serve(port: int, room: bool) -> int:
    from panel.command import main as panel

    from sgmcmc_lab.app.room.network import addresses, qr_terminal

    reached_by: list[str] = []
    if room:
        found = addresses()
        if not found:
            print("sgmcmc-lab: this computer is in no network, so no other can open the lab.", file=sys.stderr)
            return FAILED
        name = socket.gethostname().lower()
        reached_by = [*found, *([name, f"{name.partition('.')[0]}.local"] if name else [])]
        print(qr_terminal(f"http://{found[0]}:{port}/"))
        print(f"For the class: {' or '.join(f'http://{one}:{port}/' for one in found)}")
        print("Share, in the header of the page, shows it for the experiment that is on the screen.", flush=True)
    # Panel reads what the process was called with, whatever it is given.
    sys.argv = ["panel", *serve_arguments(port, room, reached_by)]
    panel()
    return 0


def _check() -> int:
    """Print what is there, whether some samplers have the exact moments, and whether a page opens."""
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
        return FAILED
    return FAILED if wrong else 0


def _cache_lines() -> list[str]:
    """The state of the compile cache: its functions, its folder, and advice if it cannot be written."""
    importlib.import_module("sgmcmc_lab.samplers.models")
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


if __name__ == "__main__":
    sys.exit(main())
