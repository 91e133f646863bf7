"""This computer's own name, for which a name server may be asked, holds up no event loop."""

import threading

from sgmcmc_lab.app.room import network


def test_nobody_waits_for_a_name_server_but_a_terminal(monkeypatch):
    """Fails where a page or a refused request waits while a name server does not answer.

    Planted fault: an answer that comes only after the question for the addresses has been answered.
    """
    asked, answered = threading.Event(), threading.Event()

    def slow(*_):
        asked.set()
        answered.wait()
        return [(None, None, None, "", ("10.9.8.7", 0))]

    monkeypatch.setattr(network.socket, "getaddrinfo", slow)
    network._by_name.cache_clear()
    try:
        assert "10.9.8.7" not in network.addresses(patience=0)
        assert asked.wait(60)
        assert "10.9.8.7" not in network.addresses(patience=0)
        answered.set()
        assert "10.9.8.7" in network.addresses(patience=60)
    finally:
        answered.set()
        network._by_name.cache_clear()
