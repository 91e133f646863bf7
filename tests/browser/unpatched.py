"""``panel`` and BokehJS as their authors ship them: every patch is off, or those of the places that are named.

``python unpatched.py [PLACE …] serve app``
"""

import sys

from panel.command import main

from sgmcmc_lab.app.live.bus import Bus
from sgmcmc_lab.app.server import patches

places = [word for word in sys.argv[1:] if ":" in word]
sys.argv[1:] = [word for word in sys.argv[1:] if ":" not in word]
for patch in patches.PATCHES:
    if not places or patch.function in places:
        patch.known.clear()
if not places:
    called = "\npatchBokeh()\n"
    assert Bus._esm.count(called) == 1
    Bus._esm = Bus._esm.replace(called, "\n")
main()
