"""The bench of fairness: frames that a heavy page takes from the others are seen."""

import asyncio

import pytest

from tests.benchmarks import fairness


class Server:
    """Stands for the server: while a heavy page is open, light ones have frames only where it is fair."""

    def __init__(self, fair):
        self.fair, self.heavy = fair, 0


class Page:
    """One page."""

    def __init__(self, server):
        self.server, self.on_frame, self.is_heavy = server, None, False

    async def open(self, url):
        self.is_heavy = "10000" in url
        self.server.heavy += self.is_heavy
        await asyncio.sleep(0)

    async def take(self):
        while True:
            if self.is_heavy or self.server.fair or not self.server.heavy:
                self.on_frame()
            await asyncio.sleep(0.001)

    def close(self):
        self.server.heavy -= self.is_heavy


@pytest.mark.slow
@pytest.mark.parametrize("fair", [True, False])
def test_frames_that_are_lost_are_counted(fair, monkeypatch):
    """Fails where pages that stand still beside a heavy one would count as those that move."""
    server = Server(fair)
    monkeypatch.setattr(fairness, "LightPage", lambda: Page(server))
    monkeypatch.setattr(fairness, "SETTLED", 0.02)
    monkeypatch.setattr(fairness, "HEAVY", {"one": ("n_chains=10000",), "two": 2 * ("n_chains=10000",)})
    report = asyncio.run(fairness._beside_all("http://localhost/app", 0.2, lambda what: None))
    for found in report.beside.values():
        assert found.heavy_frames > 0
        assert all((kept > 0.3) == fair for kept in found.kept.values())
        assert all((gap > 0.15) != fair for gap in found.standstill.values())
    assert server.heavy == 0
    assert "asked: at least 80" in fairness.as_text(report)
