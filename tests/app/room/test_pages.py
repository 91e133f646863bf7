"""The teacher's page as a live page: the settings that a file serves, and their fragment."""

import asyncio
import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.live_page import Followed, recording
from sgmcmc_lab.app.room import pages as module
from sgmcmc_lab.app.room.pages import Page, Pages, make, shown_by
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.samplers.parameters import SpecError
from tests.helpers.cases import for_each

pytestmark = pytest.mark.filterwarnings("ignore:Both 'name' and 'label' were provided:PendingDeprecationWarning")

FIRST = "?target=quartic&lane=sgld(step_size:0.02)&lane=hmc&views=marginal,ks&seed=3"
HELD = re.compile('id="page">([^<]*)<')
MADE = Followed("", [({"step_size": None}, {}), ({"n_leapfrog": [5, 10]}, {})], ["state", "marginal", "ks"], 100)


def page_of(query, made=MADE):
    return Page("0" * 32, shown_by(query), b"", "", made)


def words(fragment):
    return {name: value[-1] for name, value in parse_qs(fragment).items()}


def test_the_fragment_has_the_values_after_all_changes():
    """As on a teacher's page whose slider was moved during the run."""
    teacher = AppState()
    assert link.read_query(teacher, FIRST) == []
    teacher.set_lane_param(0, "sampler", "step_size", 0.05)
    teacher.playing, teacher.speed = False, 7
    fragment = page_of(FIRST).fragment(shown_by(link.to_lead(teacher)))
    found, lanes = words(fragment), parse_qs(fragment)["lane"]
    assert lanes == ["sgld(step_size:0.05)~full", "hmc(step_size:0.15;n_leapfrog:10;accept:true;adapt_steps:0)~full"]
    assert (found["seed"], found["speed"], found["play"], found["views"]) == ("3", "7", "0", "marginal,ks")
    assert words(page_of(FIRST).fragment(shown_by(FIRST)))["play"] == "1"
    assert found["resets"] == "0"
    teacher.reset()
    assert words(page_of(FIRST).fragment(shown_by(link.to_lead(teacher))))["resets"] == "1"
    assert shown_by(f"{FIRST}&resets={'9' * 50}").resets == 0


@for_each(
    ("query", "serves"),
    [
        (FIRST.replace("0.02", "0.07"), True),
        (FIRST.replace("seed=3", "seed=4&start=1,-1&n_chains=8&axis=gradients"), True),
        (FIRST.replace("lane=hmc", "lane=hmc(n_leapfrog:5)"), True),
        (f"{FIRST}&n_steps=7", True),
        (f"{FIRST}&burn_in=7", False),
        (FIRST.replace("lane=hmc", "lane=hmc(n_leapfrog:7)"), False),
        (FIRST.replace("lane=hmc", "lane=hmc(step_size:0.3)"), False),
        (FIRST.replace("lane=hmc", "lane=mala"), False),
        (FIRST.replace("&lane=hmc", ""), False),
        (FIRST.replace("quartic", "gaussian"), False),
        (FIRST.replace("marginal,ks", "marginal,trace"), False),
        (f"{FIRST}&temperature=4", False),
        (f"{FIRST}&coordinate=2", False),
        ("?lesson=langevin&step=2", False),
    ],
)
def test_a_file_serves_what_moves_in_it_and_nothing_else(query, serves):
    assert (page_of(FIRST).fragment(shown_by(query)) is not None) == serves


def test_a_start_a_momentum_and_many_chains_are_in_the_fragment():
    found = words(page_of(FIRST).fragment(shown_by(FIRST.replace("seed=3", "start=1,-1&n_chains=400"))))
    assert (found["start"], found["n_chains"]) == ("1.0,-1.0", "100")


def test_a_view_that_no_file_can_have_is_left_out():
    """Otherwise each look would make the file anew."""
    query = FIRST.replace("marginal,ks", "marginal,order")
    assert words(page_of(query).fragment(shown_by(query)))["views"] == "marginal"


def test_a_file_of_the_teacher_is_on_her_page_alone():
    with pytest.raises(SpecError, match="the teacher's own file"):
        shown_by(f"?target=posterior(table:own_{'0123456789abcdef' * 4})&lane=sgld")


NETWORK = "?target=network&lane=network_gibbs&views=graph,scores&seed=3"


@for_each(
    ("query", "serves"),
    [
        (f"{NETWORK}&play=0", True),
        (NETWORK.replace("seed=3", "seed=4"), False),
        (NETWORK.replace("graph,scores", "scores"), False),
        (NETWORK.replace("network&", "network(n_communities:5)&"), False),
        (f"{NETWORK}&axis=steps", False),
        ("?lesson=network&step=1", False),
        (FIRST, False),
    ],
)
def test_a_recording_serves_one_experiment(query, serves):
    assert (page_of(NETWORK, Followed("", [], ["graph", "scores"], 1)).fragment(shown_by(query)) is not None) == serves


@pytest.mark.slow
def test_a_model_of_data_is_recorded(monkeypatch):
    """With the text of its lesson's step, within the time that a class waits; a planted fault is the whole run."""
    monkeypatch.setattr(recording, "LONGEST_SECONDS", 0.2)
    query = "?lesson=network&step=1&views=scores"
    content, policy, made = make(query)
    text = gzip.decompress(content).decode()
    assert "default-src 'none'" in policy and 'src="live.js"' in text and "A recording of the first" in text
    assert made.views == ["scores"] and page_of(query, made).fragment(shown_by(query)) == ""
    title = AppState()
    link.read_query(title, query)
    assert f"1. {title.position.step.title}" in text
    found = recording.of_page(title)
    assert found["steps"][0] == 0 < found["steps"][-1] < recording.MOST_FRAMES * title.speed
    assert found["steps"] == sorted(found["steps"]) and len(found["figures"]) == 1


@pytest.mark.slow
def test_a_made_file_has_the_step_and_what_moves():
    """The claims and the question are the room's; a planted fault is a file of another step."""
    content, policy, made = make("?lesson=langevin&step=2&views=marginal")
    text = gzip.decompress(content).decode()
    step = shown_by("?lesson=langevin&step=2&views=marginal")
    assert "default-src 'none'" in policy and policy in text.replace("&#x27;", "'")
    assert 'src="bokeh.js"' in text and 'src="live.js"' in text
    title = AppState()
    link.read_query(title, "?lesson=langevin&step=2")
    assert f"2. {title.position.step.title}" in text and "class='question'" not in text
    assert page_of("?lesson=langevin&step=2&views=marginal", made).fragment(step) is not None
    moved = replace(step, experiment=replace(step.experiment, seed=9))
    assert words(page_of("?lesson=langevin&step=2&views=marginal", made).fragment(moved))["seed"] == "9"
    assert page_of("?lesson=langevin&step=1", made).fragment(step) is None


@pytest.fixture
def counted(monkeypatch):
    """``Pages`` whose files are made at once, with the links that were made."""
    asked = []

    async def made(self, query, racing):
        asked.append(query)
        await asyncio.sleep(0)
        return b"", "", MADE

    monkeypatch.setattr(Pages, "_made", made)
    return Pages(), asked


def test_a_file_is_made_once_for_all_who_ask(counted):
    pages, asked = counted

    async def ask():
        return await asyncio.gather(*(pages.of(FIRST) for _ in range(50)))

    found = asyncio.run(ask())
    assert len(asked) == 1 and len({page.key for page, _ in found}) == 1
    _, fragment = asyncio.run(pages.of(FIRST.replace("0.02", "0.03")))
    assert len(asked) == 1 and "0.03" in fragment


def test_a_race_has_a_file_with_other_samplers_of_which_a_recording_has_none(counted):
    """The file of a race serves afterwards, too."""
    pages, asked = counted
    for query, racing in [
        (FIRST, False),
        (FIRST, True),
        (FIRST, True),
        (FIRST, False),
        (NETWORK, False),
        (NETWORK, True),
    ]:
        asyncio.run(pages.of(query, racing))
    assert asked == [FIRST, FIRST, NETWORK]


@pytest.mark.slow
def test_a_reader_of_a_race_can_choose_other_samplers():
    """Planted fault: a file without a race has the teacher's sampler alone."""
    kinds = []
    for racing in (False, True):
        content, _, made = make("?target=gaussian&lane=sgld&views=marginal", racing)
        page = json.loads(gzip.decompress(b64decode(HELD.search(gzip.decompress(content).decode())[1])))
        kinds.append([step["choices"][kind["sampler"]]["key"] for step in page["steps"] for kind in step["kinds"]])
        assert len(made.moves) == 1
    assert kinds[0] == ["sgld"] and len(kinds[1]) > 3 and kinds[1][0] == "sgld"


def test_a_pause_while_a_file_is_made_makes_no_other(counted):
    """Nor does another step size. Planted fault: one file for each link."""
    pages, asked = counted

    async def ask():
        links = [
            FIRST,
            f"{FIRST}&play=0",
            f"{FIRST}&resets=2",
            FIRST.replace("0.02", "0.03"),
            FIRST.replace("lane=hmc", "lane=mala"),
        ]
        return await asyncio.gather(*map(pages.of, links))

    found = asyncio.run(ask())
    assert len(asked) == 2 and len({page.key for page, _ in found[:4]}) == 1
    assert [words(fragment)["play"] for _, fragment in found[:2]] == ["1", "0"] and "0.03" in found[3][1]


def test_few_files_are_kept(counted, monkeypatch):
    pages, asked = counted
    monkeypatch.setattr(module, "MOST", 2)
    for sampler in ("hmc", "mala", "sghmc", "hmc", "hmc"):
        asyncio.run(pages.of(FIRST.replace("lane=hmc", f"lane={sampler}")))
    assert len(asked) == 4 and len(pages._kept) == 2
    # The page that a room shows stays.
    (first, _), (second, _) = (
        asyncio.run(pages.of(FIRST.replace("lane=hmc", f"lane={sampler}"))) for sampler in ("baoab", "mala")
    )
    pages.shown["k7mq2x9d"] = first.key
    asyncio.run(pages.of(FIRST.replace("lane=hmc", "lane=nuts")))
    assert pages.kept(first.key) is first and pages.kept(second.key) is None


def test_a_file_that_cannot_be_made_is_tried_again(counted, monkeypatch):
    pages, _ = counted

    async def fails(self, query, racing):
        raise SpecError("live", "quartic", "the linker is missing")

    with monkeypatch.context() as patch:
        patch.setattr(Pages, "_made", fails)
        with pytest.raises(SpecError, match="linker"):
            asyncio.run(pages.of(FIRST))
    assert asyncio.run(pages.of(FIRST))[0].key


def test_few_files_wait_to_be_made(counted, monkeypatch):
    pages, asked = counted
    monkeypatch.setattr(module, "MOST_WAITING", 2)

    async def ask():
        waiting = [FIRST.replace("lane=hmc", f"lane={sampler}") for sampler in ("hmc", "mala", "sghmc")]
        return await asyncio.gather(*(pages.of(query) for query in waiting), return_exceptions=True)

    found = asyncio.run(ask())
    assert isinstance(found[2], SpecError) and "try again" in str(found[2]) and len(asked) == 2


def test_a_file_that_nobody_waits_for_is_not_begun(monkeypatch, caplog):
    """As when a slider moves: of its experiments, only the one under way and the last one are made."""
    begun, made = [], Followed("", [], ["graph", "scores"], 1)
    free = asyncio.Event()

    async def slow(self, query, racing):
        begun.append(query)
        await free.wait()
        return b"", "", made

    monkeypatch.setattr(Pages, "_made", slow)

    async def ask():
        pages = Pages()
        asked = [asyncio.create_task(pages.of(NETWORK.replace("seed=3", f"seed={n}"))) for n in range(1, 6)]
        await asyncio.sleep(0)
        for task in asked[1:-1]:
            task.cancel()
        await asyncio.sleep(0)
        free.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [type(one) for one in found], pages

    kinds, pages = asyncio.run(ask())
    assert [query[-1] for query in begun] == ["1", "5"]
    assert kinds == [tuple, *[asyncio.CancelledError] * 3, tuple] and not pages._waiting and not pages._making
    assert caplog.records == [], "a task that nobody asked about"
