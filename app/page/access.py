"""Names and keys that the page's libraries leave out, for people who do not see the page or use no mouse."""

from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import ASSETS


class Access(JSComponent):
    """The invisible component whose script mends each element of the page when it appears."""

    _esm = ASSETS / "access.js"

    def __init__(self) -> None:
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed")
