"""The common fixtures of the tests of rooms."""

import pytest

from sgmcmc_lab.app.room import rooms


@pytest.fixture(autouse=True)
def cheap_codes(monkeypatch):
    """Tests open hundreds of rooms: a code costs as little as can be."""
    monkeypatch.setattr(rooms, "COST", 2)
