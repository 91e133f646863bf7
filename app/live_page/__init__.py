"""Live pages: an experiment, a lesson or the course as HTML files that run without a server."""

from sgmcmc_lab.app.live_page.experiment import live_page
from sgmcmc_lab.app.live_page.followed import Followed, followed_page
from sgmcmc_lab.app.live_page.site import lesson_page, write_site

__all__ = ["Followed", "followed_page", "lesson_page", "live_page", "write_site"]
