"""An experiment as one live page: a density runs in the browser; a model of data is shown as a recording."""

from collections.abc import Sequence
from html import escape
from typing import Any

from sgmcmc_lab.app.live_page import recording
from sgmcmc_lab.app.live_page.document import document
from sgmcmc_lab.app.state import AppState, default_views, first_coordinate
from sgmcmc_lab.app.state.upload import Upload
from sgmcmc_lab.app.views import VIEWS, axes_of
from sgmcmc_lab.samplers import Experiment
from sgmcmc_lab.samplers.parameters import SpecError
from sgmcmc_lab.samplers.settings import ANY_TARGET


def live_page(
    experiment: Experiment,
    title: str = "",
    shown: Sequence[str] = (),
    axis: str = "",
    upload: Upload | None = None,
    lab: str = "",
) -> str:
    """The text of one HTML file with the experiment and further samplers for its target. Raises :class:`SpecError`.

    ``axis`` is the x axis of a model's curves, ``upload`` holds the user's own data for a model, and ``lab`` is the
    address of the lab that makes the page.
    """
    for change in (change for lane in experiment.lanes for change in lane.changes if change.target is not None):
        raise SpecError("changes.target", f"at step {change.step}", "a live page has the figures of one target only")
    state = AppState(experiment=experiment, upload=upload)
    state.views = list(shown) or default_views(experiment)
    target = ANY_TARGET[experiment.target.key]
    title = title or f"{target.title}: {', '.join(state.lane_titles())}"
    if experiment.of_model:
        state.axis = axis or axes_of(experiment)[0]
        return model_page(state, title)
    state.coordinate = first_coordinate(experiment)
    return document(title, [state], menu=True, lab=lab).text


def model_page(state: AppState, title: str, text: str = "", beside: bool = False) -> str:
    """The page of a model of data: a recording below ``text``, which is HTML. Raises :class:`SpecError`."""
    found = recording.of_page(state)
    step: dict[str, Any] = {"claims": [], "separate": [], "sweep": None, "question": None, "values": {}}
    step["recording"] = found
    there = recording.html(1, " ".join([recording.OF_PAGE.format(steps=found["steps"][-1]), *_left_out(state, found)]))
    text = f"<section class='text' data-step='1'>{text}<div class='after'>{there}</div></section>"
    return document(title, [None], text, beside, lesson={"key": "", "steps": [step], "poisson": None}).text


def _left_out(state: AppState, found: dict[str, Any]) -> list[str]:
    """A sentence about the views that are too large to record."""
    there = {picture["key"] for picture in found["figures"]}
    left = [VIEWS[key].title_for(state.experiment) for key in state.shown_views() if key not in there]
    return [escape(f"Too large to record: {', '.join(left)}.")] if left else []
