"""The command ``sgmcmc-lab``: the lab on this computer, for a class, or a check of what it needs.

The engine is imported only where it is needed: ``--version`` and a bad argument are answered at once.
"""

import argparse
import importlib.metadata
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PORT = 5006
BAD_INPUT, FAILED, STOPPED = 2, 1, 130


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
    kind.add_argument(
        "--compile",
        action="store_true",
        help="compile all functions now, which takes minutes, and not at the first start",
    )
    kind.add_argument(
        "--site", type=Path, metavar="FOLDER", help="write the course and a free lab there as pages that need no server"
    )
    kind.add_argument("--version", action="version", version=f"sgmcmc-lab {importlib.metadata.version('sgmcmc-lab')}")
    parser.add_argument("--port", type=_port, default=PORT, help=f"where to listen; {PORT} without it")
    options = parser.parse_args(arguments)
    if options.check:
        from sgmcmc_lab.app.server.checking import check

        return check()
    if options.compile:
        from sgmcmc_lab.app.server.checking import compile_ahead

        return compile_ahead()
    if options.site is not None:
        return _site(options.site)
    if _taken(options.port):
        parser.error(f"argument --port: something listens on {options.port} already; name another one")
    return _serve(options.port, options.room)


def _site(folder: Path) -> int:
    from sgmcmc_lab.app.live_page import write_site
    from sgmcmc_lab.lessons.library import load_all
    from sgmcmc_lab.samplers.parameters import SpecError

    def tell(done: int, total: int, title: str) -> None:
        print(f"{done + 1} of {total}: {title}", file=sys.stderr, flush=True)

    library = load_all([])
    try:
        problems = [*library.problems, *write_site(list(library.lessons.values()), folder, tell)]
    except SpecError as error:
        problems = [str(error)]
    except KeyboardInterrupt:
        print("stopped; the pages made so far are in the folder", file=sys.stderr)
        return STOPPED
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return BAD_INPUT if problems else 0


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
        # A code page without blocks has no QR code; the address follows.
        with suppress(UnicodeEncodeError):
            print(qr_terminal(f"http://{found[0]}:{port}/"))
        print(f"For the class: {' or '.join(f'http://{one}:{port}/' for one in found)}")
        print("Share, in the header of the page, shows it for the experiment that is on the screen.", flush=True)
    # Panel reads what the process was called with, whatever it is given.
    sys.argv = ["panel", *serve_arguments(port, room, reached_by)]
    panel()
    return 0


if __name__ == "__main__":
    sys.exit(main())
