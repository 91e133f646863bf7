"""The whole state of a study's page in the link; all but a file that the person brought."""

from app.lesson import place as places
from app.link import page_query, read_fields, read_page, whole
from app.study.state import StudyState
from app.study.upload import KINDS
from app.study.views import STUDY_VIEWS
from app.study.views.base import AXES
from samplers.migrations import VERSION
from samplers.models import MODELS
from samplers.models.study import LINK_FIELDS, MAX_SEEDS, Study
from samplers.parameters import declared


def to_query(state: StudyState) -> str:
    """The state as ``?model=…&method=…&seed=…&views=…``."""
    more = page_query(state, {"seeds": str(state.seeds), "show": str(state.shown + 1)})
    step = state.place.step
    whole = step is None or state.study != step.spec
    return f"?{state.study.to_query() if whole else f'v={VERSION}'}&{more}"


def from_query(query: str) -> tuple[StudyState, list[str]]:
    """The state of a link, and a sentence for everything that is not as the link says."""
    study, messages = Study.from_query(query)
    study = _without_upload(study, messages)
    state = StudyState(study)
    fields, problems = read_fields(query, LINK_FIELDS, ("seeds", "show"))
    state.refused = [*messages, *(elsewhere := places.read(state.place, fields))]
    messages += [*problems, *elsewhere]
    if state.place.step is not None:
        state.follow(state.place.step)
        if {"model", "method"} & set(fields):
            state.study = study
        elif "seed" in fields:
            state.set_seed(study.seed)
    study = state.study
    read_page(state, fields, STUDY_VIEWS, AXES, study, messages)
    state.seeds = whole(fields, "seeds", 1, MAX_SEEDS, 1, messages)
    state.shown = whole(fields, "show", 1, len(study.methods), 1, messages) - 1
    return state, messages


def _without_upload(study: Study, messages: list[str]) -> Study:
    """The same study with the built-in data, where the link was made of somebody's own file."""
    key = study.model.key
    if not study.of_own_data:
        return study
    name = MODELS[key].data_parameter
    built_in = dict(declared(MODELS[key]))[name].default
    messages.append(
        f"This link was made with somebody's own file, which no link holds: the {name} {built_in} is shown instead. Bring the file with the button {KINDS[key].label}."
    )
    data = study.to_dict()
    data["model"]["params"][name] = built_in
    return Study.from_dict(data)
