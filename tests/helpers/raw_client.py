"""A client of the page's server that is no browser: it sends what it likes."""

import asyncio
import html
import json
import re
import uuid
from urllib.parse import quote

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

PATIENCE = 300
"""Seconds after which a client that still waits has failed."""


def run(attack):
    """The result of the coroutine; the connections that it opened are closed then."""

    async def whole():
        try:
            return await asyncio.wait_for(attack, PATIENCE)
        finally:
            for client in Client.opened:
                client.socket.close()
            Client.opened.clear()

    return asyncio.run(whole())


async def get(server, path="/app", **headers):
    """The answer to a request, whatever its status."""
    request = HTTPRequest(
        f"http://127.0.0.1:{server.port}{quote(path, safe='/?=&:;.()*,%')}",
        headers=headers,
        request_timeout=240,
        follow_redirects=False,
    )
    return await AsyncHTTPClient().fetch(request, raise_error=False)


async def token(server, query="", **headers):
    """The token in a new page."""
    answer = await get(server, "/app" + query, **headers)
    assert answer.code == 200, answer.body
    return re.search(r'"token":\s*"([^"]+)"', html.unescape(answer.body.decode()))[1]


class Client:
    """One connection, of a page with this token."""

    opened = []

    def __init__(self, socket):
        self.socket, self.closed = socket, False
        self.opened.append(self)

    @classmethod
    async def open(cls, server, token, **headers):
        url = f"ws://127.0.0.1:{server.port}/app/ws"
        headers = {"Origin": f"http://127.0.0.1:{server.port}", **headers}
        made = cls(await websocket_connect(HTTPRequest(url, headers=headers), subprotocols=["bokeh", token]))
        return made

    async def part(self):
        """The next part, or nothing when the connection is closed; Tornado says that once, and waits for ever then."""
        if self.closed:
            return None
        found = await self.socket.read_message()
        self.closed = found is None
        return found

    async def message(self):
        """The next message: its header and its content; nothing when the connection is closed."""
        parts = [await self.part() for _ in range(3)]
        if None in parts:
            return None
        header = json.loads(parts[0])
        for _ in range(2 * header.get("num_buffers", 0)):
            await self.part()
        return header, json.loads(parts[2])

    async def send(self, kind, content, buffers=(), **header):
        """Send a message, and return its identifier."""
        name = uuid.uuid4().hex
        if buffers:
            header["num_buffers"] = len(buffers)
        for part in ({"msgid": name, "msgtype": kind, **header}, {}, content):
            await self.socket.write_message(json.dumps(part))
        for key, data in buffers:
            await self.socket.write_message(json.dumps({"id": key}))
            await self.socket.write_message(data, binary=True)
        return name

    async def ask(self, kind, content, **options):
        """Send a message, and return the reply to it: its type and its content."""
        name = await self.send(kind, content, **options)
        while True:
            found = await self.message()
            if found is None:
                return None, self.socket.close_code
            header, answer = found
            if header.get("reqid") == name:
                return header["msgtype"], answer

    async def acknowledged(self):
        """Wait for the server's first message; whether it came."""
        found = await self.message()
        return found is not None and found[0]["msgtype"] == "ACK"


def write(model, attr, new):
    """An event that sets a property."""
    return {"kind": "ModelChanged", "model": {"id": model}, "attr": attr, "new": new}


def event(name, **values):
    """An event that a page sends, of a model where ``model`` names one."""
    entries = [[key, {"id": x} if key == "model" else x] for key, x in values.items()]
    sent = {"type": "event", "name": name, "values": {"type": "map", "entries": entries}}
    return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": sent}


def models(document):
    """Every model in a document as JSON: its type and its attributes, by its identifier."""
    found = {}

    def visit(value):
        if isinstance(value, dict):
            if value.get("type") == "object" and "id" in value:
                found[value["id"]] = (value["name"], value.get("attributes", {}))
            for part in value.values():
                visit(part)
        elif isinstance(value, list):
            for part in value:
                visit(part)

    visit(document)
    return found
