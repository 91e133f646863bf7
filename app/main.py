"""What `panel serve app` opens: a link with a model, or with a lesson of one, opens the page of studies."""

import panel as pn

from app.lesson.place import opens_study

if opens_study(pn.state.session_args):
    from app.study.shell import study_page as page
else:
    from app.shell import page

page().servable()
