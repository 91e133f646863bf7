"""``python -m sgmcmc_lab.lessons``: see :mod:`lessons.cli`."""

import sys

from sgmcmc_lab.lessons.cli import main

# Processes of a sweep import this file and must not run it.
if __name__ == "__main__":
    sys.exit(main())
