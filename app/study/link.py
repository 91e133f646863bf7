"""The whole state of the page of a model in the link; all but a file that the person brought."""

from dataclasses import replace

from app.lesson import place as places
from app.link import page_query, read_fields, read_page, whole
from app.study.state import StudyState
from app.study.upload import KINDS
from app.study.views import STUDY_VIEWS
from app.study.views.base import AXES
from samplers import Experiment
from samplers.choices import choice_dict
from samplers.migrations import VERSION
from samplers.models import MODELS
from samplers.parameters import declared
from samplers.spec import LINK_FIELDS, first_lanes

DEFAULT = Experiment.from_dict({"target": next(iter(MODELS)), "lanes": first_lanes(next(iter(MODELS)))})


def to_query(state: StudyState) -> str:
    """The state as ``?target=…&lane=…&seed=…&views=…``."""
    more = page_query(state, {"show": str(state.shown + 1)})
    step = state.place.step
    whole = step is None or state.experiment != step.spec
    return f"?{state.experiment.to_query() if whole else f'v={VERSION}'}&{more}"


def from_query(query: str) -> tuple[StudyState, list[str]]:
    """The state of a link, and a sentence for everything that is not as the link says."""
    experiment, messages = Experiment.from_query(query, DEFAULT)
    if not experiment.of_model:
        if not any(message.startswith("target = ") for message in messages):
            messages.append(
                f"target = {experiment.target.key!r}: a lesson on data cannot be shown with it; it is left out."
            )
        experiment = DEFAULT
    experiment = _without_upload(experiment, messages)
    state = StudyState(experiment)
    fields, problems = read_fields(query, LINK_FIELDS, ("show",))
    state.refused = [*messages, *(elsewhere := places.read(state.place, fields))]
    messages += [*problems, *elsewhere]
    if state.place.step is not None:
        state.follow(state.place.step)
        if {"target", "lane"} & set(fields):
            state.experiment = experiment
        else:
            named = {name: getattr(experiment, name) for name in ("seed", "n_chains") if name in fields}
            state.experiment = replace(state.experiment, **named)
    experiment = state.experiment
    read_page(state, fields, STUDY_VIEWS, AXES, experiment, messages)
    state.shown = whole(fields, "show", 1, len(experiment.lanes), 1, messages) - 1
    return state, messages


def _without_upload(experiment: Experiment, messages: list[str]) -> Experiment:
    """The same experiment on the built-in data, where the link was made of somebody's own file."""
    if not experiment.of_own_data:
        return experiment
    key = experiment.target.key
    name = MODELS[key].data_parameter
    built_in = dict(declared(MODELS[key]))[name].default
    messages.append(
        f"This link was made with somebody's own file, which no link holds: the {name} {built_in} is shown instead. Bring the file with the button {KINDS[key].label}."
    )
    data = experiment.to_dict()
    data["target"] = choice_dict(experiment.target)
    data["target"]["params"][name] = built_in
    return Experiment.from_dict(data)
