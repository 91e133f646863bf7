"""Pictures and films of the views as they are on the screen. The browser makes and saves them; none comes here."""

from panel.custom import JSComponent

from sgmcmc_lab.app.views.bundle import component

SECONDS = (5, 20)
"""How long a film may be."""


class Camera(JSComponent):
    """The invisible component that draws the figures of the page, with their titles, on a sheet of its own."""

    _esm = component("camera.js")

    def __init__(self) -> None:
        super().__init__(width=0, height=0, margin=0, sizing_mode="fixed")

    def take_picture(self, name: str, caption: str, background: str, ink: str) -> None:
        """Let the browser save the figures as one PNG; ``background`` and ``ink`` are colours."""
        self._send_msg({"name": name, "caption": caption, "background": background, "ink": ink, "seconds": 0})

    def take_film(self, name: str, caption: str, background: str, ink: str, seconds: int) -> None:
        """Let it record them for one of :data:`SECONDS`, and save the film as WebM."""
        assert seconds in SECONDS
        self._send_msg({"name": name, "caption": caption, "background": background, "ink": ink, "seconds": seconds})
