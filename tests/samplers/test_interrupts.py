"""Ctrl-C at a moment in which compiled code reports another error."""

import signal
import subprocess
import sys
from contextlib import nullcontext

import pytest

from sgmcmc_lab.samplers.interrupts import interruptible
from tests.helpers.cases import for_each

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")


@pytest.fixture
def heard():
    """A test run in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def call(interrupted):
    """As a call of a compiled function reads its arguments."""
    try:
        if interrupted:
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise TypeError("missing 1 required positional argument")


@pytest.mark.usefixtures("heard")
@for_each(
    ("within", "interrupted", "raised"),
    [(interruptible, True, KeyboardInterrupt), (interruptible, False, TypeError), (nullcontext, True, TypeError)],
    ids=["interrupted", "an error alone", "planted fault"],
)
def test_an_interrupt_is_reported_as_one(within, interrupted, raised):
    """Fault: no context."""
    with pytest.raises(raised), within():
        call(interrupted)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_a_process_that_ignores_interrupts_goes_on_ignoring_them():
    """As one behind ``nohup`` does. Fails where the context hears them in every process."""
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += "from sgmcmc_lab.samplers.interrupts import interruptible\nwith interruptible():\n    signal.raise_signal(signal.SIGINT)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
