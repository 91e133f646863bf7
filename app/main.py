"""What `panel serve app` opens: a link with a model, or with a lesson of one, opens the page of studies."""

import logging

import panel as pn

from app.ending import leave_out
from app.lesson.place import opens_study

try:
    if opens_study(pn.state.session_args):
        from app.study.shell import study_page as page
    else:
        from app.shell import page

    page().servable()
    leave_out()
except Exception:
    # Bokeh would show the traceback, with the server's paths, to whoever opened the page.
    logging.getLogger("sgmcmc-lab").exception("A page could not be opened")
    pn.pane.HTML("<p>The lab could not open this page; the server's log says why.</p>").servable()
