"""The page that `panel serve app` opens."""

import logging

import panel as pn

from sgmcmc_lab.app.page.shell import page

try:
    page().servable()
except Exception:
    # Bokeh would show the traceback, with the server's paths, to whoever opened the page.
    logging.getLogger("sgmcmc-lab").exception("A page could not be opened")
    pn.pane.HTML("<p>The lab could not open this page; the server's log says why.</p>").servable()
