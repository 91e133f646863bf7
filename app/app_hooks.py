"""What the server does once, at its start."""

import threading

from app import warmup


def on_server_loaded(server_context):
    """Compile in the background, so that the first page finds its sampler ready; pages show the progress."""
    threading.Thread(target=warmup.compile_all, name="warm-up", daemon=True).start()
