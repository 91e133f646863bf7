"""The live page: an experiment, a lesson or the course as HTML files that move without a server."""

from app.live_page.document import live_page
from app.live_page.site import lesson_page, write_site

__all__ = ["lesson_page", "live_page", "write_site"]
