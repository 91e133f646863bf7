"""What the state of every page has: what is shown, whether it moves, and the place in a lesson."""

from abc import abstractmethod

import param

from app.lesson.place import Place
from app.lesson.rules import is_hidden
from lessons import Step


class PageState(param.Parameterized):
    """Every change goes through a method that checks it; a refused one raises SpecError and changes nothing."""

    playing = param.Boolean(True)
    views = param.List([])
    dark = param.Boolean(False)
    hidden = param.List([], doc="Parts of the page that the link leaves out.")
    present = param.Boolean(False, doc="Presenter mode: large type, nothing but the lesson and the views.")
    resets = param.Integer(0, doc="Counts the resets; each starts the same runs again.")
    runs_what: str
    """What a lane is called: a chain, a method."""
    subject: str
    """What is sampled: a target, a model."""

    def __init__(self, **values: object):
        super().__init__(**values)
        self.place = Place()
        self.refused: list[str] = []
        """What the link asked for and is not shown, a sentence each."""

    @property
    @abstractmethod
    def seed(self) -> int:
        """The seed of the runs."""

    @abstractmethod
    def set_seed(self, seed: int) -> None:
        """Another seed."""

    @abstractmethod
    def fitting_views(self) -> list[str]:
        """The views that have something to show, in the order of the menu."""

    @abstractmethod
    def follow(self, step: Step) -> None:
        """Show a lesson's step: its runs from the beginning, its views and its settings of the page."""

    def shown_views(self) -> list[str]:
        """The views on the page, in the order of the menu."""
        return [key for key in self.fitting_views() if key in self.views]

    def shows(self, name: str) -> bool:
        """Whether a control, an address or a word, is on the page: neither the link nor a lesson leaves it out."""
        return not is_hidden(name, self.hidden) and self.place.allows(name)

    def reset(self) -> None:
        """Start again from the first state, with the same seed."""
        self.resets += 1
