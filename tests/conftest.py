"""What every test starts from: an environment that says nothing, and both event loops that anyio knows."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from crawler.fetch.politeness import Politeness

# An example takes as long as it takes: the machine may be busy with other things.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, proxies and colours of whoever runs the tests are none of ours."""
    for name in list(os.environ):
        if (
            name.startswith("SITEMAP_CRAWLER_")
            or name.lower().endswith("_proxy")
            or name in {"NO_COLOR", "FORCE_COLOR"}
        ):
            monkeypatch.delenv(name)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes start without coverage, for tests of what a process imports, and when: coverage imports, too."""
    for name in list(os.environ):
        if name.startswith("COVERAGE_"):
            monkeypatch.delenv(name)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the requests of this process were let go (seconds since the epoch), as `Politeness` took it down.

    What a server notes, a busy machine notes late, and then the next request seems close.
    """
    taken: list[float] = []
    real = Politeness.__call__

    async def call(self: Politeness, origin: str, at: float) -> None:
        await real(self, origin, at)
        taken.append(self._last[origin][1])

    monkeypatch.setattr(Politeness, "__call__", call)
    return taken


@pytest.fixture(autouse=True)
def _fresh_log() -> Iterator[None]:
    """The command line configures our logger for the whole process; the next test starts from none."""
    yield
    log = logging.getLogger("crawler")
    log.handlers.clear()
    log.propagate = True
    log.setLevel(logging.NOTSET)
