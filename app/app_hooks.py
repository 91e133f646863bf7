"""What the server does once, at its start."""

import threading

from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

from app import warmup


def on_server_loaded(server_context):
    """Compile in the background, so that the first page finds its sampler ready; pages show the progress."""
    threading.Thread(target=warmup.compile_all, name="warm-up", daemon=True).start()
    IOLoop.current().asyncio_loop.set_exception_handler(_unless_gone)


def _unless_gone(loop, context):
    """Report an error that nobody waits for, but not that a page was closed while Panel was sending to it."""
    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)
