"""The cost and the messages of a link: its reading is bounded, and whatever it repeats is one message.

Work is counted, never timed.
"""

from unittest.mock import Mock
from urllib.parse import quote

import panel_material_ui as pmui
import pytest

from sgmcmc_lab.app import link
from sgmcmc_lab.app.page.notice import Notice
from sgmcmc_lab.app.page.notifications import MAX_LENGTH, MAX_MESSAGES, MAX_SENTENCES, Notifications, in_short
from sgmcmc_lab.app.page.session import Session
from sgmcmc_lab.app.state import AppState
from sgmcmc_lab.lessons import specs
from sgmcmc_lab.samplers import link as samplers_link
from sgmcmc_lab.samplers.link import MAX_FIELDS, MAX_QUERY
from sgmcmc_lab.samplers.parameters import SpecError, visible
from tests.helpers.cases import for_each

UNKNOWN = "?" + "&".join(f"f{i}=1" for i in range(60))


class Counted(pmui.NotificationArea):
    """The area of messages, and what they cost: the messages that were walked through at each change of the list."""

    def __init__(self):
        super().__init__()
        self.sent, self.walked = [], 0
        self.param.watch(self._count, "notifications", onlychanged=False)

    def _count(self, event):
        self.walked += len(event.new)

    def send(self, message, *args, **options):
        self.sent.append(message)
        return super().send(message, *args, **options)


@pytest.fixture
def area(monkeypatch):
    """The place of a session's messages."""
    made = Counted()
    monkeypatch.setattr("sgmcmc_lab.app.page.notifications.messages_area", lambda: made)
    return made


@pytest.fixture
def session():
    """A session without a page."""
    made = Session()
    made.state = AppState()
    made.notifications = Notifications(made.state)
    return made


def said(query):
    """The messages of a link."""
    return link.read_query(AppState(), query)


@pytest.mark.parametrize(
    "query", [UNKNOWN, "?" + "&".join(["hide=" + ",".join(f"x{i}" for i in range(60))])], ids=["fields", "hide"]
)
def test_the_sentences_of_a_link_are_one_message(area, session, query):
    """Fails where each sentence is a message of its own; 100 of them hung the server."""
    session.notifications.warn(said(query))
    assert len(area.sent) == 1
    assert len(area.sent[0]) < 1000
    assert f"and {60 - MAX_SENTENCES} more" in area.sent[0]
    assert area.walked == 1


@pytest.mark.slow
def test_messages_that_come_again_and_again_are_few(area, session):
    """Fails where refusals and divergences pile up: the list is checked as a whole at each of them."""
    for number in range(100):
        session.notifications.notify("error", f"step_size = {number}: allowed is less.")
    assert [message.message for message in area.notifications] == area.sent[-MAX_MESSAGES:]
    assert area.walked <= 2 * MAX_MESSAGES * 100


def test_an_error_stays_until_it_is_mended(area, session):
    """Fails where what was wrong is still said of what is right."""
    session.notifications.notify("warning", "The view was left out.")
    wrong = ["The first is wrong.", "The second is wrong."]
    for text in wrong:
        session.notifications.notify("error", text)
    assert [message.message for message in area.notifications] == ["The view was left out.", *wrong]
    session.controls = session.lesson_controls = Mock()
    session.clear_divergence()
    assert [message.message for message in area.notifications] == ["The view was left out."]


def test_messages_name_what_the_page_shows(area, session):
    """Fails where a person is told of a field whose name is nowhere on the page, or where another text changes.

    Planted fault: a field that nothing on the page has, which stays as it is.
    """
    lines = [
        str(SpecError("lane1.sampler.step_size", -1, "allowed is more")),
        *said("?axis=foo&speed=no&n_chains=-1&nothing=1"),
        "SGLD does not fit.",
    ]
    for some in (lines[:MAX_SENTENCES], lines[MAX_SENTENCES:]):
        session.notifications.notify("warning", "\n".join(some))
    first, *fields, last = "\n".join(area.sent).split("\n")
    assert first.startswith("Step size ε (lane1.sampler.step_size) = -1: ")
    assert [line.split(" = ")[0] for line in fields] == [
        "Chains (n_chains)",
        "nothing",
        "x axis (axis)",
        "Steps per frame (speed)",
    ]
    assert last == "SGLD does not fit."


def test_a_few_sentences_are_told_whole():
    assert in_short(["One.", "Two."]) == "One.\nTwo."
    assert in_short([f"{i}." for i in range(MAX_SENTENCES + 1)]).endswith("and 1 more.")
    assert len(in_short(["x" * 10_000] * 100)) < (MAX_SENTENCES + 1) * (MAX_LENGTH + 20)


@pytest.mark.parametrize("lines", [60, 1])
def test_a_message_is_bounded_wherever_it_comes_from(area, session, lines):
    """Messages of a lesson's file, a room or a table: sixty sentences, or one that names sixty fields."""
    session.notifications.notify(
        "warning", ("\n" if lines > 1 else ", ").join(f"field{i} is not one of these at all" for i in range(60))
    )
    assert area.sent[0].count("\n") <= MAX_SENTENCES and len(area.sent[0]) < MAX_SENTENCES * (MAX_LENGTH + 20)
    assert ("and 57 more." in area.sent[0]) == (lines > 1)


TURNED = "a\u202egpj.exe\u2066\x1b[31m\u200b\ufeff\u2028\x00\x85\ue000"
"""Controls of a text, none of which may reach a reader as it is."""


@pytest.mark.parametrize("shown", [visible, str])
def test_controls_of_a_text_are_written_out(area, session, shown, monkeypatch):
    """In a name, a value, a message and a notice. Fault: they are as they came."""
    monkeypatch.setattr("sgmcmc_lab.app.page.notifications.visible", shown)
    session.notifications.notify("warning", f"{TURNED} = 1.")
    controls = [one for one in area.sent[0] if one in TURNED[1:] and not one.isprintable()]
    assert bool(controls) == (shown is str)
    seen = visible(TURNED)
    assert seen.isprintable() and seen.startswith(r"a\u202egpj.exe\u2066\x1b[31m\u200b\ufeff")
    assert str(SpecError(TURNED, TURNED, "allowed is less")).isprintable()
    for sentence in said(f"?{quote(TURNED)}=1&n_chains={quote(TURNED)}"):
        assert sentence.isprintable(), sentence
    assert "\u202e" not in str(Notice(TURNED)._process_param_change({"object": TURNED}))
    assert visible("Größe θ̂ – 名前 😀\nשלום") == "Größe θ̂ – 名前 😀\nשלום"


def test_the_reading_of_a_link_is_bounded(monkeypatch):
    """Fails where the number of checks grows with what a link repeats."""
    checks = []
    real = specs.check_address
    monkeypatch.setattr(link, "check_address", lambda *args: checks.append(args) or real(*args))
    said("?hide=" + "x," * 3000)
    assert len(checks) == 1
    checks.clear()
    messages = said("?hide=" + ",".join(f"x{i}" for i in range(1500)))
    assert len(checks) <= link.MAX_PARTS
    assert any("1,500" in message and str(link.MAX_PARTS) in message for message in messages)
    assert len(said("?views=" + ",".join(f"x{i}" for i in range(1500)))) <= link.MAX_PARTS + 1


@pytest.mark.parametrize(
    ("query", "bound"), [("&".join(["lane=sgld"] * 400), MAX_FIELDS), ("x=" + "y" * 10_000, MAX_QUERY)]
)
def test_a_link_that_is_too_long_is_not_taken_apart(monkeypatch, query, bound):
    """Fails where the parts of such a link are read before they are counted."""
    parsed = []
    real = samplers_link.parse_choice
    monkeypatch.setattr("sgmcmc_lab.samplers.link.parse_choice", lambda *args: parsed.append(args) or real(*args))
    (message,) = said(f"?{query}")
    assert f"{bound:,}" in message
    assert not parsed


@for_each(
    "query",
    [
        "?axis=steps&axis=seconds",
        "?play=1&play=0",
        "?lesson=langevin&lesson=momentum",
        "?seed=1&seed=2",
        "?views=&views=state",
    ],
)
def test_a_field_that_is_given_twice_is_said_once(query):
    name = query[1:].partition("=")[0]
    assert sum("more than once" in message and message.startswith(name) for message in said(query)) == 1


def test_a_speed_that_is_given_twice_is_said():
    assert any("more than once" in message for message in said("?speed=5&speed=6"))


def test_a_long_name_is_cut():
    """Fails where a name that a link made up is repeated whole."""
    for query in ("?" + "n" * 5000 + "=1", "?target=gaussian(" + "n" * 5000 + ":1)", "?lane=sgld(" + "n" * 5000 + ")"):
        messages = said(query)
        assert messages
        assert all(len(message) < 300 for message in messages), messages


def test_what_a_link_answers_is_told_as_it_says_it():
    (message,) = said("?lesson=langevin&step=2&answer=17")
    assert "answer = '17'" in message
    assert "-1" not in message


def test_bounds_read_as_people_write_numbers():
    assert any("4,294,967,295" in message for message in said("?seed=-3"))
    assert not any("e+" in message for message in said("?seed=-3&n_steps=0"))
