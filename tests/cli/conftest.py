"""A server of S3."""

import os
from collections.abc import Iterator

import pytest

from crawler.sitemap.publish import object_store
from tests.s3 import KEY, S3, SECRET, serving


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3]:
    with serving() as s3:
        yield s3


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server with an empty bucket, and the environment for it."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    s3_server.new_bucket()
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setattr(object_store, "RETRIES", 2)
    return s3_server
