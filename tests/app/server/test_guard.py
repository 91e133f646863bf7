"""The server's answers, and the messages that it accepts from a client.

The clients here are no browsers: they send what they like. ``test_guard_browser`` has the honest ones.
"""

import asyncio
import base64
import gzip
import json
import re
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import panel as pn
import panel_material_ui as pmui
import pytest
from bokeh.application import Application
from bokeh.core.properties import Any, List
from bokeh.document import Document
from bokeh.model import DataModel
from bokeh.server.connection import ServerConnection
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.state import set_curdoc
from panel.models.esm import DataEvent, ReactiveESM
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders
from tornado.websocket import WebSocketClosedError, websocket_connect

from sgmcmc_lab.app.live_page.document import engine_file
from sgmcmc_lab.app.room import network
from sgmcmc_lab.app.server.handlers import EmbedError, Guard, GuardedTornado, embedding_sites, install
from sgmcmc_lab.app.server.message_filter import MAX_EVENTS, MAX_NUMBERS, MAX_WORD, SENDS, WRITABLE, passed_on
from sgmcmc_lab.app.server.socket import (
    BURST,
    EXPIRED,
    FAILED,
    FAILURE_COSTS,
    MAX_TEXT,
    MOST_LOGGED,
    REFUSED,
    TOO_LONG,
    GuardedSocket,
    _errors_of,
)
from sgmcmc_lab.samplers.compile.wasm.engine import engine
from tests import hostile
from tests.browser import serve
from tests.helpers.cases import for_each
from tests.helpers.raw_client import Client, event, get, models, run, token, write

ROOT = Path(__file__).resolve().parents[3]
SECRETS = (str(ROOT), "site-packages", "Traceback", 'File "', ".py")
PAUSED = "?play=0"
PAGES = [
    PAUSED,
    "?lesson=langevin&play=0",
    "?target=topics(corpus:synthetic;n_topics:4)&play=0",
    "?target=network(graph:blocks;n_communities:6)&play=0",
]


def small_page():
    """A document with a text, a slider, a button, a file input's class name apart, and a figure."""
    document = Document()
    text, slider, button = pmui.TextInput(value="a"), pmui.FloatSlider(value=0.5), pmui.Button(label="b")
    pn.Column(text, slider, button, pn.pane.HTML("c")).server_doc(doc=document)
    data = {type(m).__name__.rstrip("0123456789"): m for m in document.models if isinstance(m, DataModel)}
    outer = {m.class_name: m for m in document.models if hasattr(m, "class_name")}
    return document, data, outer


def kept(document, *events, buffers=()):
    return passed_on(document, {"events": list(events)}, buffers)


# Messages that a browser may send


def test_a_write_is_known_by_component_and_property():
    document, data, _ = small_page()
    good = [write(data["TextInput"].id, "value", "x"), write(data["FloatSlider"].id, "value_throttled", 0.25)]
    assert kept(document, *good) == good
    for model in document.models:
        for name in model.properties():
            component = type(model).__name__
            component = component.rstrip("0123456789") if isinstance(model, DataModel) else component
            own = isinstance(model, DataModel) or component == "Location"
            may = name in WRITABLE.get(component, ()) and own
            value = {"FloatSlider": 0.5, "Location": "#" if name == "hash" else "?"}.get(component, "x")
            assert bool(kept(document, write(model.id, name, value))) == may, (component, name)
    assert not kept(document, write("p0", "value", "x"))
    # Of a mixed message what may be written is written.
    assert kept(document, write(data["TextInput"].id, "label", "x"), *good) == good


@for_each(
    "value",
    [
        {"id": "p1000"},
        {"type": "object", "name": "CustomJS", "id": "x1", "attributes": {"code": "1"}},
        {"type": "bytes", "data": base64.b64encode(gzip.compress(bytes(10**6), mtime=0)).decode()},
        {"type": "bytes", "data": {"id": "0"}},
        {"type": "bytes", "data": {"id": []}},
        {"type": "ndarray", "array": [1], "dtype": "O", "shape": [10**9], "order": "little"},
        {"type": "typed_array", "array": [1], "dtype": "float64", "order": "little"},
        {"type": "set", "entries": [1]},
        {"type": "slice", "start": 0, "stop": 1, "step": 1},
        {"type": "number", "value": "nan"},
        {"type": "map", "entries": [[{"type": "map"}, 1]]},
        {"a": 1},
        float("nan"),
        float("inf"),
        2**53 + 1,
        "x" * 70_000,
        [0] * 10_000,
        [[[[[[[[[[0]]]]]]]]]],
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_value_is_plain_and_small(value):
    document, data, _ = small_page()
    assert not kept(document, write(data["TextInput"].id, "value", value))
    assert not kept(document, write(data["TextInput"].id, "value", [value]))


def test_events_are_those_of_the_component():
    document, _, outer = small_page()
    text, slider, button = (outer[name].id for name in ("TextInput", "FloatSlider", "Button"))
    empty = {"type": "map"}
    good = [
        {**event("document_ready"), "msg_data": {"type": "event", "name": "document_ready", "values": empty}},
        event("dom_event", model=button, node="click", data=empty),
        event("dom_event", model=text, node="enter", data=empty),
    ]
    assert kept(document, *good) == good
    for bad in (
        event("dom_event", model=slider, node="click", data=empty),
        event("dom_event", model=button, node="msg", data=empty),
        event("dom_event", model=button, node="click", data=empty, more=1),
        event("data_event", model=button, data={"type": "map", "entries": [["type", "click"]]}),
        event("esm_event", model=button, data=1),
        event("connection_lost"),
        event("lodstart", model=button),
        {**event("document_ready"), "msg_type": "ipywidgets_bokeh"},
        {"kind": "TitleChanged", "title": "x"},
        {"kind": "RootAdded", "model": {"id": text}},
        {"kind": "RootRemoved", "model": {"id": text}},
        {"kind": "ColumnDataChanged", "model": {"id": text}, "attr": "value", "data": {}, "cols": []},
        {"kind": "ColumnsStreamed", "model": {"id": text}, "attr": "value", "data": {}, "rollover": 1},
        {**write(text, "value", "x"), "hint": 1},
        {},
        [],
        None,
        1,
        {"kind": []},
        {"kind": {"a": 1}},
        {"kind": "ModelChanged"},
        {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": {"type": "event", "name": [], "values": empty}},
        {
            "kind": "MessageSent",
            "msg_type": "bokeh_event",
            "msg_data": {"type": "event", "name": "x", "values": {"type": "map", "entries": 3}},
        },
        {"kind": "ModelChanged", "model": {"id": []}, "attr": [], "new": 1},
    ):
        assert not kept(document, bad), bad


def record(**values):
    """A mapping as Bokeh writes it."""
    return {"type": "map", "entries": [[key, value] for key, value in values.items()]}


PART = {"type": "bytes", "data": {"id": "0"}}
CHUNK = {
    "type": "status",
    "status": "upload_event",
    "chunk": 1,
    "data": PART,
    "name": "a",
    "total_chunks": 1,
    "mime_type": "",
}
SENT = {
    "Bus": [[1, 0, 1, 1280, True, False]],
    "Connection": ["listening"],
    "Contents": [0, 7],
    "FileBox": [
        record(**CHUNK),
        record(type="status", status="finished"),
        record(status="initializing", type="status"),
        record(status="error", error="it is too large", type="status"),
    ],
    "MenuButton": [record(type="click", item=1)],
    "NotificationArea": [record(type="destroy", uuid="f" * 32)],
    "Option": ["chosen"],
    "Presenter": ["next", "part_back"],
    "RoomBar": [["hello", "a" * 24, "", "free"], ["answer", 2], ["leave"]],
    "Touch": [["click", "joint", 0.5, -1], ["curve", "joint", *[0.1] * MAX_NUMBERS]],
}
"""The messages of the script of each component."""
UNSENT = [
    "x", None, 1, True, 0.5, -1, [], {}, record(), "x" * (MAX_WORD + 1), [[]], [1, 2, 3, 4, "5"], [0.5] * 5, ["click", "joint"],
    ["click", "joint", "0"], ["click", "joint", *[0] * (MAX_NUMBERS + 1)], ["x" * (MAX_WORD + 1)], ["answer", None], ["answer", 1, 2, 3, 4], record(type="click"),
    record(type="click", item=2), record(type="click", item=-1), record(type="click", item=[0]), record(type="click", item="0"), record(type="click", item=None),
    record(type="action", item=0, action="x"), record(type="destroy"), record(type="destroy", uuid=None), record(type="destroy", uuid=[]), record(item=0),
    record(**{**CHUNK, "name": "x" * 256}), record(**{**CHUNK, "name": None}), record(**{**CHUNK, "chunk": "1"}), record(**{**CHUNK, "chunk": -1}),
    record(**{**CHUNK, "data": "text"}), record(**{**CHUNK, "more": 1}), record(status="other"), record(status=["finished"]), record(status="error", error=1),
]  # fmt: skip
"""Messages that no script sends, each in the shape of some component."""


@cache
def kind(name):
    """The model of a component's data."""
    return type(name, (DataModel,), {"items": List(Any, default=[{}, {}])})


def sender(name):
    """A document with a component of this class, and the component's model."""
    document = Document()
    model = ReactiveESM(data=kind(name)(), esm="")
    document.add_root(model)
    return document, model


@for_each("name", SENDS)
def test_a_component_sends_what_its_script_sends_and_nothing_else(name):
    """The library's handlers look at nothing, and raise for a text in place of a mapping."""
    check_sends(name)


def check_sends(name):
    document, model = sender(name)

    def taken(data):
        return bool(kept(document, event("data_event", model=model.id, data=data), buffers=("0",)))

    assert all(map(taken, SENT[name]))
    others = [*UNSENT, *(data for other in SENT.keys() - {name} for data in SENT[other])]
    loose = {
        "Presenter": ("x", "listening", "chosen", "next", "part_back"),
        "Contents": (1, 0, 7),
        "RoomBar": (["leave"],),
    }
    of_words = name == "RoomBar"
    found = [data for data in others if taken(data) and data not in loose.get(name, ())]
    # An action of a room is a text and up to three more; a touch may look like that, and so may two words.
    assert all(of_words and isinstance(data, list) and 1 <= len(data) <= 4 for data in found), found


@pytest.mark.parametrize("loose", [False, True])
def test_what_the_hostile_client_sends_ends_in_no_handler_of_the_library(loose, monkeypatch):
    """Fault: a menu takes what comes, as the area of messages does; most of it raises in Panel's own handlers."""
    shapes = {"MenuButton": lambda *_: True, "NotificationArea": lambda *_: True} if loose else dict(SENDS)
    monkeypatch.setattr("sgmcmc_lab.app.server.message_filter.SENDS", shapes)
    raised = 0
    for component in (pmui.MenuButton(items=[{"label": "a"}, {"label": "b"}]), pmui.NotificationArea()):
        document = Document()
        component.server_doc(doc=document)
        model = next(iter(component._models.values()))[0]
        for data in hostile.SENT:
            for one in kept(document, event("data_event", model=model.id, data=data)):
                plain = dict(one["msg_data"]["values"]["entries"])["data"]
                try:
                    component._handle_msg(dict(plain["entries"]) if isinstance(plain, dict) else plain)
                except Exception:
                    raised += 1
    assert (raised == 0) != loose
    assert raised == 0 or raised > len(hostile.SENT)


@pytest.mark.parametrize("name", SENDS)
def test_a_shape_that_allows_everything_is_seen(name, monkeypatch):
    """The planted fault."""
    monkeypatch.setattr("sgmcmc_lab.app.server.message_filter.SENDS", {name: lambda model, value: True})
    with pytest.raises(AssertionError):
        check_sends(name)


@for_each("content", [None, [], 1, "x", {}, {"events": None}, {"events": {}}, {"events": 3}])
def test_a_message_without_events_has_none(content):
    assert passed_on(Document(), content, ()) == []


def test_a_model_that_is_written_out_is_known_by_its_id_alone():
    """As Bokeh's script sends it in its first message about a model that it was sent."""
    document, data, outer = small_page()
    whole = {"type": "object", "name": "panel.models.esm.ReactComponent", "attributes": {"esm": "worse"}}
    good = write(data["TextInput"].id, "value", "x")
    assert kept(document, {**good, "model": {**whole, "id": data["TextInput"].id}}) == [good]
    click = event("dom_event", model=outer["Button"].id, node="click", data=None)
    written = json.loads(
        json.dumps(click).replace(
            json.dumps({"id": outer["Button"].id}), json.dumps({**whole, "id": outer["Button"].id})
        )
    )
    assert written != click
    assert kept(document, written) == kept(document, click) == [click]
    assert kept(document, {**good, "model": {**whole, "id": "p0"}}, {**good, "model": {**whole, "id": 1}}) == []


def test_a_message_has_a_bounded_number_of_events():
    document, data, _ = small_page()
    assert len(kept(document, *[write(data["TextInput"].id, "value", "x")] * 5000)) == MAX_EVENTS


def other(value):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return value + "x" if isinstance(value, str) else "x"


@pytest.mark.slow
@pytest.mark.parametrize("query", PAGES, ids=["lab", "lesson", "topics", "network"])
def test_no_other_property_of_any_model_changes(server, query):
    """Writes to each property of each model of a page change those that a page must write, and no other."""

    async def attack():
        key = await token(server, query)
        client = await Client.open(server, key)
        assert await client.acknowledged()
        before = models((await client.ask("PULL-DOC-REQ", {}))[1])
        writes = []
        for name, (kind, attributes) in before.items():
            free = WRITABLE.get(kind.rpartition(".")[2].rstrip("0123456789"), ())
            names = {
                *attributes,
                "logo",
                "text",
                "code",
                "stylesheets",
                "css_classes",
                "tags",
                "name",
                "subscribed_events",
            }
            writes += [write(name, attr, other(attributes.get(attr))) for attr in names if attr not in free]
            writes.append({"kind": "RootRemoved", "model": {"id": name}})
        writes.append({"kind": "TitleChanged", "title": "x"})
        writes.append(
            {"kind": "RootAdded", "model": {"type": "object", "name": "Div", "id": "x1", "attributes": {"text": "x"}}}
        )
        for k in range(0, len(writes), 500):
            assert (await client.ask("PATCH-DOC", {"events": writes[k : k + 500]}))[0] == "OK"
        again = await Client.open(server, key)
        assert await again.acknowledged()
        kind, document = await again.ask("PULL-DOC-REQ", {})
        return len(writes), before, models(document), kind

    n, before, after, kind = run(attack())
    assert kind == "PULL-DOC-REPLY"
    assert n > 1000 and len(before) > 100
    # The page may go on by itself meanwhile: what counts is that nothing has become what was written.
    changed = [
        (kind, attr)
        for name, (kind, attributes) in before.items()
        for attr, value in attributes.items()
        if name in after and after[name][1].get(attr) == other(value) != value
    ]
    assert not changed
    assert not any(name == "x1" for name in after)
    assert before.keys() & after.keys() > set(list(before)[:10])


ODD = [
    None,
    True,
    -1,
    0.5,
    10**6,
    "",
    "x",
    [],
    ["x"],
    [None],
    [[-1]],
    {"type": "map"},
    {"type": "map", "entries": [["a", 1]]},
]
"""Values that no widget sends, or few of them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["?play=0&lane=recipe~full&lane=sgld~minibatch", "?target=topics&play=0"], ids=["lab", "topics"]
)
def test_no_value_of_a_property_that_may_be_written_is_an_error(server, query):
    """Fails where the server logs an error or stops answering, whatever a widget is set to."""
    start = len(server.log)

    async def attack():
        client = await Client.open(server, await token(server, query))
        assert await client.acknowledged()
        sent = 0
        for name, (kind, _) in models((await client.ask("PULL-DOC-REQ", {}))[1]).items():
            for attr in WRITABLE.get(kind.rpartition(".")[2].rstrip("0123456789"), ()):
                answer = await client.ask("PATCH-DOC", {"events": [write(name, attr, value) for value in ODD]})
                assert answer[0] == "OK", (kind, attr)
                sent += 1
        return sent

    assert run(attack()) > 20
    assert not server.crashes(start), server.log[start:]


@pytest.mark.slow
def test_what_a_widget_has_may_be_written():
    """Fails where a right value is refused, or one of another kind is not."""
    document = Document()
    options = {"One": 1, "Two": 2}
    widgets = [
        (pmui.Select(options=options), "value", ["One", "Two"], ["Three", 1, None, ["One"]]),
        (
            pmui.CheckButtonGroup(options=options),
            "value",
            [[], ["Two", "One"]],
            ["One", ["Three"], [1], None, [["One"]]],
        ),
        (pmui.DiscreteSlider(options=options), "value_throttled", [0, 1], [2, -1, 0.5, "One", None, True]),
        (pmui.FloatSlider(), "value", [1, 0.5], ["1", True, [1], None]),
        (pmui.IntSlider(), "value", [1, -1], ["1", True, 0.5, None]),
        (pmui.Switch(), "value", [True, False], [0, "x", None]),
        (pmui.TextInput(), "value", ["", "x"], [0, None, ["x"]]),
        (pmui.Accordion(pn.Column()), "active", [[], [0]], ["x", [0.5], [True], ["x"]]),
    ]
    pn.Column(*(widget for widget, *_ in widgets)).server_doc(doc=document)
    data = {type(m).__name__.rstrip("0123456789"): m for m in document.models if isinstance(m, DataModel)}
    for widget, name, right, wrong in widgets:
        made = data[type(widget).__name__]
        assert [value for value in right if not kept(document, write(made.id, name, value))] == []
        assert [value for value in wrong if kept(document, write(made.id, name, value))] == []


@pytest.mark.slow
def test_a_browser_reads_no_picture_of_the_server(server, tmp_path):
    """The page's logo was read from whatever path a client named, and sent to it."""
    picture = tmp_path / "secret.svg"
    picture.write_text("<svg>secret-of-the-server</svg>")

    async def attack():
        key = await token(server, PAUSED)
        client = await Client.open(server, key)
        await client.acknowledged()
        found = models((await client.ask("PULL-DOC-REQ", {}))[1])
        (page,) = [name for name, (kind, _) in found.items() if kind.startswith("Page")]
        for value in (str(picture), {"type": "map", "entries": [["md", str(picture)]]}):
            await client.ask("PATCH-DOC", {"events": [write(page, "logo", value)]})
        # The reply to a later message comes after whatever the writes would have led to.
        await client.ask("PATCH-DOC", {"events": [write(page, "sidebar_open", False)]})
        again = await Client.open(server, key)
        await again.acknowledged()
        sent = json.dumps((await again.ask("PULL-DOC-REQ", {}))[1])
        return sent

    sent = run(attack())
    assert base64.b64encode(picture.read_bytes()).decode()[:20] not in sent and "secret" not in sent
    # The write that is allowed was made, so the attack reached the document.
    assert re.search(r'"sidebar_open":\s*false', sent)


# Messages


@pytest.mark.slow
def test_only_the_messages_of_a_page_are_taken(server):
    async def attack():
        client = await Client.open(server, await token(server, PAUSED))
        await client.acknowledged()
        found = [await client.ask("PULL-DOC-REQ", {})]
        for kind, content in (
            ("PULL-DOC-REQ", {}),
            ("SERVER-INFO-REQ", {}),
            ("PUSH-DOC", {"doc": {"version": "3", "title": "x", "roots": []}}),
            ("OK", {}),
            ("ERROR", {"text": "x"}),
            ("ACK", {}),
        ):
            found.append(await client.ask(kind, content))
        # It is passed over, and the session goes on.
        found.append(await client.ask("PATCH-DOC", {"events": ["x" * 3 * MAX_TEXT]}))
        found.append(await client.ask("PATCH-DOC", {"events": []}))
        return found

    pulled, *refused, long, last = run(attack())
    assert long == ("ERROR", {"text": TOO_LONG, "traceback": None})
    assert pulled[0] == "PULL-DOC-REPLY" and last[0] == "OK"
    assert [kind for kind, _ in refused] == ["ERROR"] * 6
    assert [answer for _, answer in refused] == [{"text": REFUSED, "traceback": None}] * 6


BROKEN = {
    "no JSON": ["{", "{}", "{}"],
    "a list": ["[]", "{}", "{}"],
    "no type": ['{"msgid": "1"}', "{}", "{}"],
    "no name": ['{"msgtype": "PATCH-DOC"}', "{}", "{}"],
    "a long name": [json.dumps({"msgid": "x" * 1000, "msgtype": "PATCH-DOC"}), "{}", "{}"],
    "unknown": ['{"msgid": "1", "msgtype": "EVAL"}', "{}", "{}"],
    "bytes first": [b"{}"],
    "many buffers": ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1000000}', "{}", '{"events": []}'],
    "fewer than none": ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": -1}', "{}", '{"events": []}'],
    "a float": ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1.5}', "{}", '{"events": []}'],
    "a buffer without a name": ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1}', "{}", "{}", "[]"],
    "a buffer of a list": ['{"msgid": "1", "msgtype": "PATCH-DOC", "num_buffers": 1}', "{}", "{}", '{"id": []}', b"x"],
    "deep": ['{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}", "[" * 100_000],
    "a long number": ['{"msgid": "1", "msgtype": "PATCH-DOC"}', "{}", "9" * 100_000],
    "a long text for a name": ["x" * (MAX_TEXT + 1), "{}", "{}"],
    "five megabytes": [b"x" * 5_000_000],
}


@pytest.mark.slow
def test_what_is_no_message_closes_the_connection_and_nothing_else(server):
    async def attack():
        key = await token(server, PAUSED)
        found = {}
        for name, parts in BROKEN.items():
            client = await Client.open(server, key)
            assert await client.acknowledged(), name
            # Later messages, before the client hears of the end, are ignored.
            for part in [*parts, *(parts[-1:] * 50 if len(parts[-1]) < 1000 else ())]:
                with suppress(WebSocketClosedError):
                    await client.socket.write_message(part, binary=isinstance(part, bytes))
            while await client.part() is not None:
                pass
            found[name] = client.socket.close_code, client.socket.close_reason or ""
        return found

    start = len(server.log)
    found = run(attack())
    # A part beyond Tornado's limit ends the connection without a word, for the rest of it is not read.
    assert found.pop("five megabytes")[0] in (1009, None)
    assert {code for code, _ in found.values()} <= {1002, 1009}, found
    assert not any(secret in reason for _, reason in found.values() for secret in SECRETS)
    # The log tells of each in a line, and repeats nothing of it.
    assert len(server.log) - start < 20_000
    assert server.log[start:].count("an invalid message") <= len(BROKEN)
    assert not server.crashes(start)


def test_an_error_tells_a_client_nothing_of_the_server(caplog):
    """A failure on the server is in its log, with the traceback; the client gets a sentence and may go on."""
    socket = object.__new__(GuardedSocket)
    socket.connection = Mock(error=lambda message, text: text)
    socket._errors, socket.send_message, socket._wait = _errors_of(Document()), AsyncMock(), AsyncMock()
    socket._errors.charge(socket)
    socket._patch = AsyncMock(side_effect=OSError("a secret place"))
    asyncio.run(socket._take(Mock(msgtype="PATCH-DOC"), 1.0))
    socket.send_message.assert_awaited_once_with(FAILED)
    assert "a secret place" in caplog.text and "secret" not in FAILED
    # It costs the client a while.
    assert socket._credit.left == BURST - FAILURE_COSTS


@pytest.mark.parametrize("charged", [True, False])
def test_an_error_in_what_is_deferred_is_charged_to_its_page_and_logged_once(charged, caplog, monkeypatch):
    """A handler that Panel calls of itself raises a thousand times. Fault: Panel is left to raise it."""
    before = pn.config.exception_handler
    install()
    if not charged:
        pn.config.exception_handler = before
    document, socket, outer = Document(), object.__new__(GuardedSocket), pmui.MenuButton(items=[{"label": "a"}])
    outer.server_doc(doc=document)
    _errors_of(document).charge(socket)
    with suppress(AttributeError), set_curdoc(document):
        for _ in range(1000):
            outer._process_event(DataEvent(None, "x"))
    pn.config.exception_handler = before
    assert (socket._credit.left == BURST - 1000 * FAILURE_COSTS) == charged
    assert (caplog.text.count("Traceback") == 1) == charged


def test_a_page_has_few_errors_in_the_log(caplog):
    errors = _errors_of(Document())
    for k in range(10 * MOST_LOGGED):
        # Each in a place of its own.
        try:
            exec(compile("\n" * k + "1 / 0", "made", "exec"), {})  # noqa: S102
        except ZeroDivisionError as error:
            errors.note(error)
    assert caplog.text.count("Traceback") == MOST_LOGGED
    errors.close()
    assert f"caused {9 * MOST_LOGGED} more" in caplog.text


@pytest.mark.parametrize("kind", ["PATCH-DOC", "PULL-DOC-REQ", "ACK"])
def test_what_was_on_its_way_when_a_session_ended_is_no_error(kind, caplog):
    socket = object.__new__(GuardedSocket)
    socket.send_message = AsyncMock()
    for connection in (None, object.__new__(ServerConnection)):
        socket.connection = connection
        if connection is not None:
            connection._session = None
        asyncio.run(socket._take(Mock(msgtype=kind), 1.0))
    assert not caplog.records
    assert not socket.send_message.called


@pytest.mark.slow
def test_a_flood_of_messages_waits_its_turn(server):
    """While one client's 3,000 messages wait, another's is answered: it does not come after them."""

    async def attack():
        flooding = await Client.open(server, await token(server, PAUSED))
        honest = await Client.open(server, await token(server, PAUSED))
        await flooding.acknowledged()
        await honest.acknowledged()
        done = 0

        async def send():
            for _ in range(3000):
                await flooding.send("PATCH-DOC", {"events": []})

        async def count():
            nonlocal done
            while (found := await flooding.message()) is not None:
                done += found[0]["msgtype"] == "OK"

        tasks = [asyncio.ensure_future(work()) for work in (send, count)]
        while done < 100:
            await asyncio.sleep(0.01)
        answer = await honest.ask("PATCH-DOC", {"events": []})
        seen = done
        for task in tasks:
            task.cancel()
        return answer, seen

    answer, seen = run(attack())
    assert answer[0] == "OK"
    assert 100 <= seen < 2000


# Sessions


@pytest.mark.slow
def test_a_session_has_one_connection(server):
    async def attack():
        key = await token(server, PAUSED)
        first = await Client.open(server, key)
        assert await first.acknowledged()
        second = await Client.open(server, key)
        assert await second.acknowledged()
        while await first.part() is not None:
            pass
        answer = await second.ask("PATCH-DOC", {"events": []})
        return first.socket.close_code, answer

    code, answer = run(attack())
    assert code == 1008 and answer[0] == "OK"


@pytest.mark.slow
def test_a_token_is_the_servers_own(server):
    """Made up, unsigned, signed with another key, changed or too old: closed with a sentence. A reload then works."""
    key = b"another key that is long enough to be one"
    session = generate_session_id(key, signed=True)

    async def attack():
        good = await token(server, PAUSED)
        found = []
        for bad in (
            "x",
            "e30",
            "e30.e30",
            "W10",
            generate_jwt_token(generate_session_id(None, signed=False), signed=False),
            generate_jwt_token(session, key, signed=True),
            good.split(".")[0],
            good[:-2] + ("AA" if not good.endswith("AA") else "BB"),
        ):
            client = await Client.open(server, bad)
            assert not await client.acknowledged(), bad
            found.append((client.socket.close_code, client.socket.close_reason))
        client = await Client.open(server, good)
        assert await client.acknowledged()
        return found

    start = len(server.log)
    assert set(run(attack())) == {(1008, EXPIRED)}
    assert not server.crashes(start)


@pytest.mark.slow
def test_a_link_names_no_session(server):
    async def attack():
        key = await token(server, PAUSED)
        return [
            await get(server, "/app?bokeh-session-id=abc"),
            await get(server, f"/app?bokeh-token={key}"),
            await get(server, "/app", **{"Bokeh-Session-Id": "abc"}),
        ]

    for answer in run(attack()):
        assert answer.code == 403 and b"cannot name a session" in answer.body


@pytest.mark.slow
@pytest.mark.parametrize("name", ["theme", "target", "lesson", "play"])
def test_a_link_of_other_bytes_opens_a_page(server, name):
    """Panel itself reads the theme of a link, as UTF-8."""
    assert run(get(server, f"/app?{name}=light%ff%fe")).code == 200


def test_the_servers_address_leads_to_what_a_link_says(server):
    """Fails where ``http://host:5006/?lesson=...`` opens the opening page: Panel leads on without the query."""

    async def ask():
        return [(await get(server, path)).headers["Location"] for path in ("/?lesson=langevin&step=2", "/")]

    assert run(ask()) == ["./app?lesson=langevin&step=2", "./app"]


# Whom the server answers


@pytest.mark.slow
def test_only_its_own_names_are_answered(server):
    """A name that leads here but was not allowed, as after DNS rebinding, is refused by every handler."""
    port = server.port

    async def attack():
        good = [
            (await get(server, "/static/js/bokeh.min.js", Host=host)).code
            for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}")
        ]
        bad = [
            await get(server, path, Host=host)
            for host in (
                "evil.example",
                f"evil.example:{port}",
                f"localhost:{port + 1}",
                "localhost",
                f"localhost.:{port}",
                f"1.2.3.4:{port}",
            )
            for path in ("/app", "/", "/app/ws", "/static/js/bokeh.min.js", "/none", "/app/autoload.js")
        ]
        key = await token(server, PAUSED)
        host = f"evil.example:{port}"
        refused = []
        for headers in (
            {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"},
            {"Host": host, "Origin": f"http://{host}"},
            {"Origin": f"http://{host}"},
            {"Origin": f"http://{host}", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
        ):
            try:
                await Client.open(server, key, **headers)
            except Exception as reason:
                refused.append(getattr(reason, "code", reason))
            else:
                refused.append("opened")
        return good, bad, refused

    good, bad, refused = run(attack())
    assert good == [200] * 4
    assert {answer.code for answer in bad} == {403}
    assert b"panel serve app --allow-websocket-origin evil.example:" in bad[6].body
    assert refused == [403] * 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]"])
def test_a_page_opens_under_each_name_of_this_computer(server, name):
    """Fails where it says that it could not be opened: Panel takes a host apart at its only colon."""

    async def ask():
        client = await Client.open(server, await token(server, PAUSED, Host=f"{name}:{server.port}"))
        await client.acknowledged()
        return await client.ask("PULL-DOC-REQ", {})

    kind, content = run(ask())
    assert kind == "PULL-DOC-REPLY" and "could not open" not in json.dumps(content)


@pytest.mark.slow
def test_names_that_were_allowed(tmp_path):
    """``--allow-websocket-origin``, several and with a wildcard; this computer's names stay allowed."""
    options = ("--allow-websocket-origin", "lab.example.org", "--allow-websocket-origin", "*.school.example:8080")

    async def ask(server):
        found = {}
        for host in (
            "lab.example.org",
            "lab.example.org:80",
            "a.school.example:8080",
            "a.b.school.example:8080",
            "school.example:8080",
            "lab.example.org:81",
            f"localhost:{server.port}",
        ):
            found[host] = (await get(server, "/static/js/bokeh.min.js", Host=host)).code
        key = await token(server, PAUSED)
        client = await Client.open(server, key, Host="lab.example.org", Origin="https://lab.example.org")
        found["page"] = await client.acknowledged()
        # A token is good in every process.
        for _ in range(6):
            client = await Client.open(server, key)
            found["page"] &= await client.acknowledged()
            # A session that a connection makes, as in the other process, has its styles here, too.
            found["page"] &= "https://cdn" not in json.dumps(await client.ask("PULL-DOC-REQ", {}))
        return found

    with serve(tmp_path, *options, "--num-procs", "2") as server:
        assert list(run(ask(server)).values()) == [200, 200, 200, 403, 403, 403, 200, True]


def test_a_wildcard_allows_every_name():
    class Asked:
        host, uri, headers = "whatever.example:1", "/app", HTTPHeaders()

    assert Guard({"localhost:5006"}, ()).refusal(Asked)
    assert not Guard({"*"}, ()).refusal(Asked)


@pytest.mark.parametrize(
    ("origin", "named"),
    [
        ("http://localhost:5006", ""),
        ("http://LOCALHOST:5006", ""),
        ("https://lab.example.org", "lab.example.org"),
        ("http://localhost:5007", "localhost:5007"),
        ("null", "HOST:PORT"),
        ("", "HOST:PORT"),
        ("http://[x", "[x"),
        ("http://a b<script>", "HOST:PORT"),
    ],
)
def test_a_refused_connection_has_its_sentence(origin, named, monkeypatch):
    """Fails where a page is told of another name than Bokeh refuses, or what a client sends is said as it is."""
    guard = Guard({"localhost:5006"}, ())
    sentence = guard.refusal_of_connection(origin)
    assert sentence.endswith(f"--allow-websocket-origin {named}") if named else not sentence
    # Bokeh's variable replaces what the server was started with.
    monkeypatch.setenv("BOKEH_ALLOW_WS_ORIGIN", "other.example")
    sentence = guard.refusal_of_connection(origin)
    assert "one name more in BOKEH_ALLOW_WS_ORIGIN" in sentence and "--allow" not in sentence
    assert sentence.endswith(f": {named or 'localhost:5006'}")
    assert not guard.refusal_of_connection("http://other.example")


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
@pytest.mark.parametrize("size", ["Content-Length: 20000", "Transfer-Encoding: chunked\r\n\r\n4e20"])
def test_a_large_body_is_refused_before_it_is_sent(server, host, size):
    """Fails where the server takes 100 MB of each request of anybody, and keeps them. A small one has its answer."""
    start = f"POST /app HTTP/1.1\r\nHost: {host}:{server.port}\r\n"

    def answer(rest):
        with socket.create_connection(("127.0.0.1", server.port), timeout=300) as asked:
            asked.sendall(f"{start}{rest}".encode())
            return asked.recv(100).split(b"\r\n")[0]

    assert answer(f"{size}\r\n\r\n") == b"HTTP/1.1 400 Bad Request"
    assert answer("Content-Length: 1\r\n\r\nx") == (
        b"HTTP/1.1 200 OK" if host == "localhost" else b"HTTP/1.1 403 Forbidden"
    )


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("GET /app", f"X: {'a' * 70_000}", b"403"),
        ("GET /s/x", f"Cookie: {'a' * 900_000}", b"403"),
        (f"GET /app?{'a' * 70_000}", "X: 1", b"403"),
        ("GET /app", "Host: a@b", b"400"),
        ("GET /app here", "X: 1", b"400"),
    ],
    ids=["header", "cookie", "address", "two hosts", "line"],
)
def test_whatever_is_asked_for_is_answered_in_a_sentence(server, line, headers, status):
    """Fails where the connection is closed without a word, or the answer is empty."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as asked:
        host = f"Host: localhost:{server.port}"
        asked.sendall(f"{line} HTTP/1.1\r\n{host}\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := asked.recv(65_536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status and b"nosniff" in head
    assert body.count(b".") >= 1 and (b"allowed are 65,536" in body) == (status == b"403")


@pytest.mark.parametrize(
    ("line", "status", "sentence"),
    [
        ("GET /nothing<b>", b"404", b"The address /nothing&lt;b&gt; is no page of the lab. Its page is at /app."),
        ("GET /static/js/", b"403", b"The address /static/js/ is no page of the lab. Its page is at /app."),
        ("DELETE /app", b"405", b"The lab takes no DELETE requests at this address."),
    ],
    ids=["nothing", "folder", "method"],
)
def test_an_address_without_a_page_is_answered_in_a_sentence(server, line, status, sentence):
    """Fails where a page is Tornado's own, without the lab's headers, or of another length than it says."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as asked:
        asked.sendall(f"{line} HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := asked.recv(65_536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == status and b"nosniff" in head and b"Content-Security-Policy" in head
    assert sentence in body and f"Content-Length: {len(body)}".encode() in head


def test_other_sites_cannot_make_the_server_work(server):
    """A page of another site may link to the lab. It gets no script, picture, frame or text of it."""

    async def attack():
        asked = {}
        for site in ("cross-site", "same-site"):
            for kind in ("script", "image", "empty", "iframe", "object", "style", "worker"):
                headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": kind}
                asked[site, kind] = (await get(server, "/app", **headers)).code
        asked["autoload"] = (await get(server, "/app/autoload.js?bokeh-autoload-element=1")).code
        asked["metadata"] = (await get(server, "/app/metadata")).code
        asked["components"] = (await get(server, "/components/this/x/y/z")).code
        link = await get(
            server, "/static/js/bokeh.min.js", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
        )
        return asked, link.code

    start = len(server.log)
    asked, link = run(attack())
    assert link == 200
    assert {asked.pop(name) for name in ("autoload", "metadata", "components")} == {404}
    assert set(asked.values()) == {403}
    assert "Zen of Python" not in server.log[start:]


@pytest.mark.slow
def test_every_answer_has_the_headers(server):
    async def ask():
        return {
            path: await get(server, path, **headers)
            for path, headers in (
                ("/", {}),
                ("/app" + PAUSED, {}),
                ("/static/js/bokeh.min.js", {}),
                ("/favicon.ico", {}),
                ("/none", {}),
                ("/room/k7mq2x9d", {}),
                ("/room/files/room.js", {}),
                ("/room/files/none.html", {}),
                ("/app/ws", {}),
                ("/app?bokeh-session-id=1", {}),
                ("/app#host", {"Host": "evil.example"}),
            )
        }

    for path, answer in run(ask()).items():
        policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'", path
        assert "unsafe-inline" not in policy["script-src"] and "http" not in str(policy), path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
        assert answer.headers["Referrer-Policy"] == "no-referrer", path
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin", path
        assert "Access-Control-Allow-Origin" not in answer.headers and "Server" not in answer.headers, path
        assert path.startswith("/static") or not any(
            secret in answer.body.decode(errors="replace") for secret in SECRETS
        ), path


def test_a_students_socket_is_bounded(server):
    """Sockets come from this server's own pages, with small messages; codes have eight letters."""

    async def closed(code, *sent, origin=f"http://127.0.0.1:{server.port}"):
        url = f"ws://127.0.0.1:{server.port}/room/{code}/socket"
        try:
            socket = await websocket_connect(HTTPRequest(url, headers={"Origin": origin}))
        except HTTPClientError as error:
            return error.code
        for text in sent:
            await socket.write_message(text)
        while await asyncio.wait_for(socket.read_message(), 60) is not None:
            pass
        code = socket.close_code
        socket.close()
        return code

    async def ask():
        return [
            await closed("k7mq2x9d", origin="http://evil.example"),
            await closed("none"),
            await closed("k7mq2x9d", "[", "[" * 10_000, "3", json.dumps(["hello"]), "x" * 20_001),
        ]

    start = len(server.log)
    assert run(ask()) == [403, 1008, 1009]
    assert not server.crashes(start)


def test_a_script_of_rooms_is_sent_once(server):
    """Compressed. Fault: a tag that changes."""

    async def ask():
        first = await get(server, "/room/files/room.js", **{"Accept-Encoding": "gzip"})
        tag = {"If-None-Match": first.headers["Etag"]}
        return first, await get(server, "/room/files/room.js", **tag), await get(server, "/room/files/live.js", **tag)

    first, again, other = run(ask())
    assert (first.code, again.code, other.code) == (200, 304, 200) and not again.body
    # The client keeps the encoding that it has undone under this name.
    assert first.headers["X-Consumed-Content-Encoding"] == "gzip"


def test_the_engine_is_sent_for_good_under_the_name_of_its_content(server):
    """Fault: a name that stays where the content changes."""

    async def ask():
        return await get(server, f"/room/files/{engine_file()}"), await get(server, f"/room/files/engine-{'0' * 16}.js")

    sent, other = run(ask())
    assert sent.code == 200 and "immutable" in sent.headers["Cache-Control"]
    assert sha256(engine().module).hexdigest()[:16] in engine_file()
    held = gzip.decompress(base64.b64decode(sent.body.decode().split('"')[-2]))
    assert held == engine().module
    assert other.code == 404 and "immutable" not in other.headers.get("Cache-Control", "")


@for_each("text", ["moodle", "https://a.example; script-src *", "'self'", "*", "https://a.example/x", "http://a,b"])
def test_an_embedding_site_is_an_origin(text):
    with pytest.raises(EmbedError, match=r"^SGMCMC_EMBED has .*: allowed are origins such as"):
        embedding_sites(text)
    assert embedding_sites("https://moodle.example.org  http://*.school.example:8080") == (
        "https://moodle.example.org",
        "http://*.school.example:8080",
    )


# The start of the server


def application(**options):
    """The web application as ``panel serve`` makes it, without a port."""
    options = {"absolute_url": "http://localhost:5006/", "extra_websocket_origins": ["localhost:5006"], **options}
    return GuardedTornado({"/app": Application()}, **options)


def test_the_administrators_key_is_respected(monkeypatch):
    monkeypatch.delenv("BOKEH_SIGN_SESSIONS", raising=False)
    first, second = application(), application()
    assert first.sign_sessions and len(first.secret_key) >= 32 and first.secret_key != second.secret_key
    assert application(secret_key=b"mine").secret_key == b"mine"
    monkeypatch.setenv("BOKEH_SIGN_SESSIONS", "no")
    assert not application(sign_sessions=False).sign_sessions
    # Another limit of messages may be smaller, not larger.
    for given, held in ((10**9, 4_000_000), (1000, 1000)):
        made = application(websocket_max_message_size_bytes=given)
        assert made.settings["websocket_max_message_size"] == held


@pytest.mark.parametrize("allowed", [["192.168.1.7:5006"], []], ids=["one address", "this computer alone"])
def test_a_page_shares_the_addresses_that_the_server_answers_to(allowed, monkeypatch):
    """Fails where a code is shown that opens no page. Fault: the addresses of another port."""
    monkeypatch.setattr(network, "addresses", lambda patience: ["10.0.0.5", "192.168.1.7"])
    monkeypatch.setattr(network, "_checks", [])
    assert network.hosts(":5006") == [], "there is no server yet"
    application(extra_websocket_origins=["localhost:5006", *allowed])
    assert network.hosts(":5006") == allowed
    assert network.hosts(":5007") == []


def test_a_wrong_embedding_site_ends_the_start_with_a_sentence(monkeypatch):
    monkeypatch.setenv("SGMCMC_EMBED", "moodle.example.org")
    with pytest.raises(EmbedError, match=r"^SGMCMC_EMBED has 'moodle.example.org': allowed are origins"):
        install()


UNMADE = """
import json, sys
from types import SimpleNamespace
import sgmcmc_lab.app.app_hooks
from sgmcmc_lab.app.page import shell
from panel.io.application import build_single_handler_application
from panel.io.session import generate_session

root = sys.argv[1]

def fails():
    raise RuntimeError(f"in {root}/secret.py")

shell.page = fails
request = SimpleNamespace(arguments={}, cookies={}, headers={}, path="/app", protocol="http", host="localhost")
document = generate_session(build_single_handler_application(root + "/app"), request).document
print(json.dumps(document.to_json(deferred=False), default=str))
"""


@pytest.mark.slow
def test_a_page_that_cannot_be_made_says_so_and_nothing_of_the_server():
    """Also not its folder, which the library's file selector has as a default. As the server is started: in a process
    that imports the server's hooks first.
    """
    done = subprocess.run(
        [sys.executable, "-c", UNMADE, str(ROOT)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "could not open this page" in done.stdout
    assert not any(secret in done.stdout for secret in ("RuntimeError", "secret.py", str(ROOT), "Traceback"))
    assert "secret.py" in done.stderr
