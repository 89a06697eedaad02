"""The browser for these tests: skipped at home where it is missing, an error in CI."""

import os
import shutil
from importlib.util import find_spec

import pytest

from crawler.fetch.render import chromium


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of the system's browser."""
    found = next(filter(None, map(shutil.which, chromium.NAMES)), None)
    if found is None or find_spec("playwright") is None:
        missing = "no Chromium, or no playwright: see .ci/services"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@pytest.fixture
def browser_with_windows(browser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are both, not the shell, which has less that could be attacked or cost something."""
    assert browser
    monkeypatch.setattr(chromium, "NAMES", sorted(chromium.NAMES, key=lambda name: "headless" in name))
