"""What `panel serve app` opens: a link with a model opens the page of studies, any other one the page of laws."""

import panel as pn

if "model" in pn.state.session_args:
    from app.study.shell import study_page as page
else:
    from app.shell import page

page().servable()
