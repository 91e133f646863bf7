"""The live page: an experiment as one HTML file that moves without a server."""

from app.live_page.document import LiveError, live_page

__all__ = ["LiveError", "live_page"]
