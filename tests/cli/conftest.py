"""The program as a test of its commands calls it: in this process, by words, in an empty folder; and a server of S3."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawler.__main__ import main
from crawler.sitemap.publish import object_store
from tests.s3 import KEY, S3, SECRET, serving

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "SIGINT", signal.SIGINT)

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(words)
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return call


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
