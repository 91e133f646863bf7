"""Lines of the log that clients cause are bounded, and those that are left out are counted."""

import logging

import pytest

from sgmcmc_lab.app.server import handlers, log_limit
from sgmcmc_lab.app.server.log_limit import CAUSED, MINUTE, MOST, MOST_KINDS, LogLimit


@pytest.fixture
def limited(caplog):
    """``limited.write(text, *values)`` writes with a limit on a clock of its own, ``limited.now``."""

    class Limited:
        now = 0.0

        def __init__(self):
            self.logger = logging.getLogger("sgmcmc-lab.test-of-limit")
            self.limit = LogLimit(lambda: self.now)
            self.logger.addFilter(self.limit)

        def write(self, text, *values):
            caplog.clear()
            self.logger.error(text, *values)
            return caplog.messages

    made = Limited()
    yield made
    made.logger.removeFilter(made.limit)


def test_many_lines_of_one_kind_are_few_and_counted(limited):
    """The planted faults: each text with its values is a kind; what was left out is forgotten."""
    written = [limited.write("a connection %d", k) for k in range(300)]
    assert [len(one) for one in written] == [1] * MOST + [0] * (300 - MOST)
    # Of another kind there are none yet.
    assert limited.write("another line") == ["another line"]
    limited.now = MINUTE
    assert limited.write("a connection %d", 7) == [f"a connection 7 (before it, {300 - MOST} such lines were left out)"]
    assert limited.write("a connection %d", 8) == ["a connection 8"]
    assert limited.write("another line") == ["another line"]


def test_kinds_are_bounded(limited):
    for k in range(2 * MOST_KINDS):
        limited.write(f"a client's own words {k}")
    assert len(limited.limit._kinds) == MOST_KINDS


def test_the_server_limits_what_clients_cause():
    """Fails where each WebSocket writes a line. Fault: the limit is not installed with the server's handlers."""
    before = {name: list(logging.getLogger(name).filters) for name in CAUSED}
    try:
        for name in CAUSED:
            logging.getLogger(name).filters.clear()
        handlers.install()
        log_limit.install()
        found = [sum(isinstance(one, LogLimit) for one in logging.getLogger(name).filters) for name in CAUSED]
    finally:
        for name, filters in before.items():
            logging.getLogger(name).filters[:] = filters
    assert found == [1] * len(CAUSED)
