from app.shell import page

page().servable()
