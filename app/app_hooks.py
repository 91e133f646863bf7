"""The start of the server."""

# First of all: what comes after it takes seconds.
import sys

from sgmcmc_lab.app.server import life

life.begin()
print("SG-MCMC Lab: loading libraries and compiled functions …", file=sys.stderr, flush=True)

# ruff: noqa: E402
from contextlib import chdir

# The processes that compile begin while this one imports the rest, unless it will be forked.
from sgmcmc_lab.app.server import warmup

if "--num-procs" not in " ".join(sys.argv):
    warmup.begin()

# Its file selector writes the working directory of the import into every page, as a default.
with chdir("/"):
    import panel_material_ui  # noqa: F401

import threading

from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError

# The page, before there is one: a component whose class is made while another page is connected is sent
# in a way that leaves the first page with it empty (Panel 1.9.4, ReactiveESMMetaclass).
from sgmcmc_lab.app.page import shell  # noqa: F401
from sgmcmc_lab.app.server import patches
from sgmcmc_lab.app.server.connections import OPEN
from sgmcmc_lab.app.server.handlers import install

install()
patches.install()

SWITCH_SECONDS = 0.0005
"""How long a thread that reads a file may keep the loop waiting for the interpreter. The loop releases it at every
stat of a file and every send, some hundred times for a figure. With Python's .005 s the longest standstill while a
corpus of 20,000 documents was read was .56 and .59 s, with this .25 and .29 s, at the same rate of frames."""


def on_server_loaded(server_context):
    """Compile in the background, so that the first page finds its sampler ready; pages show the progress."""
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.Thread(target=warmup.compile_all, name="warm-up", daemon=True).start()
    loop = IOLoop.current()
    loop.asyncio_loop.set_exception_handler(_unless_gone)
    # Once the loop runs, for Bokeh has a handler of its own by then.
    loop.add_callback(life.stop_on_signals, loop)


def _unless_gone(loop, context):
    """Report an error that nobody waits for, but not that a page was closed while Panel was sending to it."""
    error = context.get("exception")
    if not isinstance(error, WebSocketClosedError) and not OPEN.no_more_files(error):
        loop.default_exception_handler(context)
