"""``python -m sgmcmc_lab.app.server.child MODULE …`` runs a module, which ends with the process that began this one.

That process holds the other end of standard input, and never writes to it.
"""

import os
import runpy
import sys
import threading
from io import FileIO


def _end_with(stream: FileIO) -> None:
    stream.read()
    os._exit(0)


def main() -> None:
    """Run the module that the command line names."""
    # Without a buffer, whose lock would be asked for when the module has done and Python ends.
    threading.Thread(target=_end_with, args=(FileIO(0, closefd=False),), daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
