"""What `panel serve app` opens."""

from app.shell import page

page().servable()
