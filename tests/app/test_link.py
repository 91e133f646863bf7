"""The contents of a link, field by field and to the letter; ``test_state.py`` has whole links and bad ones."""

from dataclasses import replace

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.lesson.course import library
from sgmcmc_lab.app.state import DEFAULT, AppState, default_views
from sgmcmc_lab.app.state.upload import KINDS, Upload
from sgmcmc_lab.app.views import VIEWS, coordinates
from sgmcmc_lab.samplers import Experiment
from tests.helpers.cases import for_each

pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")

LONG, CUT = "x" * 50, "x" * 40


def state_of(query):
    state = AppState()
    return state, link.read_query(state, query)


def fields_of(state):
    return dict(part.split("=", 1) for part in link.to_query(state).lstrip("?").split("&"))


@for_each(
    ("text", "used", "sentence"),
    [
        (None, 5, None),
        ("2", 2, None),
        ("9000", 9000, None),
        ("1", 2, "speed = '1': allowed is a whole number from 2 to 9,000; 2 is used instead."),
        ("9001", 9000, "speed = '9001': allowed is a whole number from 2 to 9,000; 9000 is used instead."),
        (LONG, 5, f"speed = '{CUT}': allowed is a whole number from 2 to 9,000; 5 is used instead."),
        ("1" * 50, 9000, f"speed = '{'1' * 40}': allowed is a whole number from 2 to 9,000; 9000 is used instead."),
    ],
)
def test_a_whole_number(text, used, sentence):
    messages = []
    assert link.whole({} if text is None else {"speed": text}, "speed", 2, 9000, 5, messages) == used
    assert messages == ([] if sentence is None else [sentence])


def test_one_of_several():
    messages = []
    assert link.one_of({}, "axis", ("a", "b"), "b", messages) == "b"
    assert link.one_of({"axis": "a"}, "axis", ("a", "b"), "b", messages) == "a"
    assert messages == []
    assert link.one_of({"axis": LONG}, "axis", ("a", "b"), "b", messages) == "b"
    assert messages == [f"axis = '{CUT}': allowed is one of a, b; b is used instead."]


def test_views_that_are_not_there_or_do_not_fit():
    state, messages = state_of(f"?target=quartic&lane=sgld&views={LONG},components,ks")
    fitting = ", ".join(state.fitting_views())
    assert messages == [
        f"views = '{CUT}': it is no view; there are: {fitting}.",
        f"views = 'components': it does not fit the target quartic; there are: {fitting}.",
    ]
    assert state.views == ["ks"]
    # If none is left, the page has its usual ones; where none was asked for it has none.
    assert (
        state_of("?target=quartic&lane=sgld&views=components")[0].views
        == state_of("?target=quartic&lane=sgld")[0].views
    )
    assert state_of("?target=quartic&lane=sgld&views=")[0].views == []


def test_parts_that_cannot_be_left_out_are_named():
    state, messages = state_of(f"?hide=ks,{LONG},controls,sampler.step_size")
    assert state.hidden == ["ks", "controls", "sampler.step_size"]
    (message,) = messages
    assert message.startswith(
        f"hide = '{CUT}': allowed are views, addresses of controls such as sampler.step_size, and controls,"
    )


def test_a_list_has_at_most_sixty_parts():
    """Fails where the bound is another one, or a part that is named twice counts twice."""
    names = [f"a{n}" for n in range(61)]
    messages = []
    assert link._parts({"hide": ",".join(names[:60] * 2)}, "hide", messages) == names[:60]
    assert messages == []
    assert link._parts({"hide": ",".join(names)}, "hide", messages) == names[:60]
    assert messages == ["hide = 61 parts: allowed are at most 60; the first 60 are read."]
    assert link._parts({}, "hide", messages) == []


@for_each(
    ("query", "coordinate"),
    [
        ("?target=quartic&lane=sgld", 0),
        ("?target=quartic&lane=sgld&coordinate=2", 1),
        ("?target=sparse_dirichlet&lane=scir", 4),
        ("?target=sparse_dirichlet(dimension:3)&lane=scir", 2),
        ("?target=sparse_dirichlet&lane=scir&coordinate=10", 9),
    ],
)
def test_the_first_coordinate_or_the_fifth_of_a_simplex(query, coordinate):
    state, _ = state_of(query)
    assert state.coordinate == min(coordinate, state.experiment.make_target().n_values - 1)
    assert fields_of(state)["coordinate"] == str(state.coordinate + 1)


def test_the_token_of_a_proxy_is_no_field_of_the_link():
    """Fails where a page on Binder begins with a message; another unknown field has one."""
    state = AppState()
    assert link.read_query(state, "?target=quartic&token=a1") == []
    assert "token" not in link.to_query(state)
    assert len(link.read_query(AppState(), "?target=quartic&tokens=a1")) == 1


def test_a_link_without_an_experiment_opens_the_first_one():
    for query in ("", "?", "?theme=dark", "?views=ks"):
        state, messages = state_of(query)
        assert messages == []
        assert state.experiment == DEFAULT
    assert state_of("?theme=light")[0].views == default_views(DEFAULT)


def test_a_link_that_leaves_out_the_target_means_what_it_always_meant():
    """The first page's experiment may change, the meaning of a link does not."""
    for query in ("?seed=3", "?lane=sgld(step_size:0.03)", "?v=2&n_chains=9", "?v=3&start=1,1"):
        state, messages = state_of(query)
        assert messages == []
        assert (state.experiment.target.key, state.experiment.lanes[0].sampler.key) == ("quartic", "sgld")
    assert state_of("?lane=hmc")[0].experiment.target.key == "quartic"


def test_a_page_follows_the_device_until_the_link_or_the_person_chooses():
    free, light = state_of("?views=ks")[0], state_of("?theme=light")[0]
    assert (free.follows_device, light.follows_device) == (True, False)
    free.dark = True
    assert "theme" not in fields_of(free)
    link.follow(free, "?theme=light&target=quartic&lane=sgld")
    assert (free.dark, free.follows_device) == (True, True)


def test_each_field_of_the_page_is_read_and_written():
    plain, _ = state_of("?target=quartic&lane=sgld")
    assert (plain.dark, plain.playing, plain.present, plain.hidden) == (False, True, False, [])
    assert not {"play", "present", "hide"} & set(fields_of(plain))
    assert "theme" not in fields_of(plain)
    assert fields_of(state_of("?theme=light")[0])["theme"] == "light"
    other, messages = state_of(
        "?target=quartic&lane=sgld&theme=dark&play=0&present=1&hide=ks,axis&axis=gradients&speed=7"
    )
    assert messages == []
    assert (other.dark, other.playing, other.present, other.hidden) == (True, False, True, ["ks", "axis"])
    assert (other.axis, other.speed) == ("gradients", 7)
    written = fields_of(other)
    assert {name: written[name] for name in ("theme", "play", "present", "hide", "axis", "speed")} == {
        "theme": "dark",
        "play": "0",
        "present": "1",
        "hide": "ks,axis",
        "axis": "gradients",
        "speed": "7",
    }
    assert set(written["views"].split(",")) <= set(VIEWS)


def test_a_lessons_step_brings_its_experiment_views_and_coordinate():
    """A link with a step alone means the step's own; what is beside the step changes only that."""
    state, messages = state_of("?lesson=langevin&step=2")
    step = state.position.step
    assert (messages, step.number) == ([], 2)
    assert state.experiment == step.spec
    followed = AppState()
    followed.position.open(state.position.lesson, 2)
    followed.follow(step)
    assert (state.views, state.coordinate) == (followed.views, followed.coordinate)
    assert not state.playing or not state.position.waiting
    written = fields_of(state)
    assert (written["lesson"], written["step"]) == ("langevin", "2")
    assert "lane" not in written
    # Run lengths and the seed that the link does not name are the step's.
    seeded, _ = state_of(f"?lesson=langevin&step=2&{step.spec.to_query()}")
    assert seeded.experiment == step.spec
    other, _ = state_of("?lesson=langevin&step=2&seed=99")
    assert other.experiment.seed == 99
    assert (other.experiment.burn_in, other.experiment.n_steps, other.experiment.thin) == (
        step.spec.burn_in,
        step.spec.n_steps,
        step.spec.thin,
    )
    assert fields_of(other)["seed"] == "99"
    # So is its seed, and every other setting.
    own = replace(step.spec, seed=7)
    assert link._experiment("?n_chains=8", {"n_chains": "8"}, own) == (replace(own, n_chains=8), [])
    # A value that was changed and changed back is the step's again.
    state.experiment = replace(step.spec)
    assert "lane" not in fields_of(state)


def test_a_link_to_a_step_has_its_coordinate():
    pages = {
        (key, step.number): (step.page["coordinate"], len(coordinates(step.spec)))
        for key, lesson in library().lessons.items()
        for step in lesson.steps
        if "coordinate" in step.page and isinstance(step.spec, Experiment)
    }
    assert any(1 < coordinate < n_values for coordinate, n_values in pages.values())
    for (key, number), (coordinate, _) in pages.items():
        assert state_of(f"?lesson={key}&step={number}")[0].coordinate == coordinate - 1


def test_the_lane_whose_inside_is_shown_and_the_coordinate_are_written_as_they_are_read():
    lanes = "?target=network(graph:florentine)&lane=network_gibbs&lane=network_map&lane=network_hmc"
    for asked, shown in (("", 0), ("&show=1", 0), ("&show=2", 1), ("&show=3", 2)):
        state, messages = state_of(lanes + asked)
        assert (messages, state.shown) == ([], shown)
        assert fields_of(state)["show"] == str(shown + 1)
    for asked, coordinate in (("", 0), ("&coordinate=1", 0), ("&coordinate=2", 1)):
        for target in ("?target=quartic&lane=sgld", lanes):
            state, messages = state_of(target + asked)
            assert (messages, state.coordinate) == ([], coordinate)
            assert fields_of(state)["coordinate"] == str(coordinate + 1)


def test_a_density_beside_a_step_on_a_model_has_its_own_settings():
    """Fails where it takes the step's number of runs for its number of chains, or a model the step's chains."""
    state, _ = state_of("?lesson=topics&step=1")
    assert state.experiment.of_model and state.experiment.n_chains != DEFAULT.n_chains
    beside, _ = state_of("?lesson=topics&step=1&target=quartic&lane=sgld")
    assert (beside.experiment.n_chains, beside.experiment.seed) == (DEFAULT.n_chains, DEFAULT.seed)
    chains = state_of("?lesson=langevin&step=2")[0].experiment.n_chains
    other, _ = state_of("?lesson=langevin&step=2&target=network(graph:florentine)&lane=network_gibbs")
    assert other.experiment.n_chains == 1 != chains


def test_a_link_on_a_table_that_another_page_has_asks_for_it():
    """Its formulas name columns that the built-in table has not."""
    lines = "\n".join(f"{i},{i % 3}" for i in range(12))
    table = Upload(KINDS["posterior"], {"mine.csv": f"mass,y\n{lines}\n".encode()}).data()
    query = f"?target=posterior(table:{table.key};parameters:a;prior:normal_lpdf(a,0,1);row:normal_lpdf(y,a*mass,1);curve:a*mass)&start=1"
    state, messages = state_of(query)
    assert "no link holds" in messages[0]
    assert not state.experiment.of_own_data


def test_what_a_link_says_of_the_page_field_by_field():
    """Fails where a field is written when it is not set, is taken beyond its bounds, or stops what is to play."""
    state = AppState()
    assert "slow=" not in link.to_query(state)
    state.slow = 2
    assert "slow=2" in link.to_query(state).split("&")
    state.playing = False
    assert link.read_query(state, "?target=quartic&play=1") == [] and state.playing
    (sentence,) = link.read_query(state, "?target=quartic&speed=0")
    assert state.speed == 1 and sentence.startswith("speed = '0': allowed is a whole number from 1")


def test_a_link_to_follow_has_nothing_of_the_person():
    state = AppState()
    state.present = state.teacher = state.dark = True
    state.hidden, state.room = ["export"], "k7mq2x9d"
    names = {part.partition("=")[0] for part in link.to_lead(state).removeprefix("?").split("&")}
    assert {"target", "lane", "axis", "speed", "views"} <= names
    assert not names & {"theme", "present", "teacher", "hide", "room", "answer", "answers"}
