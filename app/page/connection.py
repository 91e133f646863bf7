"""A page whose server does not answer: it says so, and goes on with the same experiment when it does."""

from typing import Any

import param
from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import ASSETS


class Connection(JSComponent):
    """The banner, and what sees that it is needed."""

    heard = param.Integer(0, doc="Counts what the page asked of its session and was answered.")

    _esm = ASSETS / "connection.js"

    def __init__(self, **params: Any):
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed", **params)

    def _handle_msg(self, message: Any) -> None:
        self.heard += 1
