"""``panel`` as its authors ship it: every patch is off, or those of the places that are named.

``python unpatched.py [PLACE …] serve app``
"""

import sys

from panel.command import main

from app import patches

places = [word for word in sys.argv[1:] if ":" in word]
sys.argv[1:] = [word for word in sys.argv[1:] if ":" not in word]
for patch in patches.PATCHES:
    if not places or patch.place in places:
        patch.known.clear()
main()
