"""Fixtures of whole crawls."""

from typing import Final

import pytest

from crawler.frontier import patterns, rounds
from crawler.rules import traps

# Batches a fifth of their real size, so that a site with a trap needs a quarter of the requests.
SMALL: Final = {"FIRST_BATCH": 30, "FAMILY_BATCH": 120, "PAGES_PER_NEW": 15}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = (traps, patterns, rounds)
    for name, small in SMALL.items():
        using = [module for module in modules if name in vars(module)]
        assert len(using) > (name != "PAGES_PER_NEW"), f"{name} has moved"
        for module in using:
            monkeypatch.setattr(module, name, small)
