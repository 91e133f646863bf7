"""A link of somebody's own file and formulas: what it shows until the file is there, and then."""

import gc

import pytest

from sgmcmc_lab.app.link import read_query, to_query
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.parameters import SpecError

# Columns that no table of the lab has: without the file the link's formulas cannot be read.
TRIAL = b"quantity,died\n" + b"".join(b"%d,%d\n" % (k, k % 2) for k in range(20))
OTHER = TRIAL.replace(b"\n19,", b"\n18,")
FORMULAS = {
    "parameters": "a, 0 < b < 9, c",
    "prior": "normal_lpdf(a, 0, 5) + normal_lpdf(c, 0, 5)",
    "row": "bernoulli_logit_lpmf(died, a + b*(quantity - c))",
    "curve": "inv_logit(a + b*(quantity - c))",
}


def sent():
    """The link of a page, which is closed then, and the experiment that it had."""
    state = AppState()
    state.set_target("posterior")
    state.bring({"trial.csv": TRIAL})
    state.set_target_params(FORMULAS)
    link, experiment = to_query(state), state.experiment
    del state
    gc.collect()
    return link, experiment


def opened(link):
    state = AppState()
    return state, read_query(state, link)


@pytest.mark.slow
def test_a_link_asks_for_its_file_and_goes_on_with_it():
    link, experiment = sent()
    state, messages = opened(link)
    assert "somebody's own file" in messages[0] and "bring the file again" in messages[0]
    # A model that can be run is there in its place.
    assert state.experiment.target.key == "posterior" and state.experiment.target.values()["table"] == "doses"
    assert state.experiment.make_target().dim == 2
    shown = state.experiment
    with pytest.raises(SpecError, match=r"other\.csv.*not the file that the link was made with"):
        state.bring({"other.csv": OTHER})
    assert state.experiment == shown and state.upload is None
    state.bring({"trial.csv": TRIAL})
    assert state.experiment == experiment and state.experiment.make_target().dim == 3
    # It was opened paused, as every link with something to say.
    assert to_query(state).removesuffix("&play=0") == link
    # Once it is there, another file is one's own choice.
    state.bring({"other.csv": OTHER})
    assert state.experiment.target.values()["row"] == FORMULAS["row"]


@pytest.mark.slow
def test_another_table_is_chosen_and_the_link_is_forgotten():
    state, _ = opened(sent()[0])
    state.set_target_param("table", "counts")
    state.bring({"other.csv": OTHER})
    assert state.experiment.target.values()["table"].startswith("own_")


@pytest.mark.slow
def test_fault_a_link_that_forgets_what_it_asked_for():
    """Its file is then anybody's, and begins with a line."""
    link, experiment = sent()
    state, _ = opened(link)
    state.missing_table = None
    state.bring({"trial.csv": TRIAL})
    assert state.experiment != experiment
