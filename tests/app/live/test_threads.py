"""Threads of the server do not block its event loop."""

import os
import sys
import threading

import pytest

from sgmcmc_lab.app.live import loop, runner
from sgmcmc_lab.app.live.fair_executor import ProcessorShare
from sgmcmc_lab.app.page import export, measuring
from tests.helpers.cases import for_each

POOLS = [
    pool.of(ProcessorShare())
    for pool in (loop.POOL, loop.SLOW, runner._LOADER, runner._FINDER, export._WRITERS, measuring.WORKER)
]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
@for_each("pool", POOLS)
def test_workers_let_the_loop_go_first(pool):
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    assert pool.submit(niceness).result() > niceness()
