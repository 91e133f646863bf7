"""The one look at a room for all pages of a process."""

import asyncio

import pytest

from sgmcmc_lab.app.room.hub import Hub


class Slow:
    """A slow store: its answer is the room at the time of the request."""

    def __init__(self):
        self.now, self.asked = 1, asyncio.Event()

    async def state_of(self, code):
        found = self.now
        self.asked.set()
        await asyncio.sleep(0.05)
        return found


class Late(asyncio.Event):
    """Planted fault: a change during a look is forgotten at the end of the look."""

    def clear(self):
        asyncio.get_running_loop().call_later(0.06, super().clear)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [False, True])
def test_a_change_during_a_look_is_seen_by_the_next_one(fault, monkeypatch):
    """Fails where the change waits for the next regular look, here after a minute."""
    monkeypatch.setattr("sgmcmc_lab.app.room.hub.SOONEST", 0.05)
    if fault:
        monkeypatch.setattr("sgmcmc_lab.app.room.hub.asyncio.Event", Late)

    async def use():
        slow, heard = Slow(), []
        hub = Hub(slow, seconds=60.0)
        leave = hub.join("code", heard.append)
        await slow.asked.wait()
        slow.now = 2
        hub.changed("code")
        await asyncio.sleep(0.5)
        leave()
        hub._tasks["code"].cancel()
        return heard

    assert asyncio.run(use()) == ([1] if fault else [1, 2])
