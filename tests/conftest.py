"""What every test starts from: an environment that says nothing, and both event loops that anyio knows."""

import os

import pytest


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
