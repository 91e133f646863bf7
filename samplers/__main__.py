"""``python -m sgmcmc_lab.samplers``: see :mod:`samplers.cli`."""

import sys

from sgmcmc_lab.samplers.cli import main

sys.exit(main())
