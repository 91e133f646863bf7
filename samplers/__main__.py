"""``python -m samplers``: see :mod:`samplers.cli`."""

import sys

from samplers.cli import main

sys.exit(main())
