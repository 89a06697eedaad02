"""Fixtures of whole crawls."""

from typing import Final

import pytest

from crawler.frontier.sqlite import patterns, rounds
from crawler.rules import traps

# Batches a fifth of their real size, so that a site with a trap needs a quarter of the requests.
SMALL: Final = {"BATCH": 30, "FAMILY_BATCH": 120, "PAGES_FOR_NEWS": 15}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (traps, patterns, rounds):
        for name in SMALL.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, SMALL[name])
