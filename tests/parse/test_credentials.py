"""Credentials in URLs are masked in all output."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.cli.main import run
from crawler.parse.credentials import masked
from crawler.report.log import JsonLines, TextLines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://ann:secret@proxy:3128/", "http://***@proxy:3128/"),
        ("socks5://ann:s@cret@proxy", "socks5://***@proxy"),
        ("https://token@example.com/a@b", "https://***@example.com/a@b"),
        ("http://ann:se/cr#e?t@proxy:3128", "http://***@proxy:3128"),
        ("'http://ann:secret@host' and http://ben:other@host", "'http://***@host' and http://***@host"),
        ("//ann:secret@host/", "//***@host/"),
        ("'ann:secret@host'", "'***@host'"),
        ("https://a.example/s.xml?token=abc&page=2", "https://a.example/s.xml?token=***&page=2"),
        ("postgresql://ann@db:5433/crawls?sslkey=/k&sslpassword=x#docs", "postgresql://db:5433/crawls#docs"),
        ("no 'postgres://a:b/c@db/x?a=b' here", "no 'postgres://db/x' here"),
        ("postgresql://a:b?c#d@db/x", "postgresql://***@db/x"),
        ("/s.xml?page=2&API_KEY=abc#x", "/s.xml?page=2&API_KEY=***#x"),
        ("/s.xml?user[password]=x&client_secret=y&X-Amz-Signature=z", "/s.xml?user[password]=x&client_secret=***&X-Amz-Signature=***"),
    ],
)  # fmt: skip
def test_credentials_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://a.example:8080/@ann/a:b@c?page=2",
        "ann@example.com wrote to http://a.example/",
        "https://a.example/?tokens=3&author=ann&q=password",
        "a = b, token: none",
    ],
)
def test_text_without_credentials_is_unchanged(text: str) -> None:
    assert masked(text) == text


@given(st.text(alphabet="ab:/@?#\\=& token"))
def test_masking_is_idempotent(text: str) -> None:
    assert masked(masked(text)) == masked(text)


@given(st.text(alphabet="abc!$&'()*+,;=:@%._~-", min_size=1).filter(lambda word: "'" not in word))
def test_no_password_gets_through(word: str) -> None:
    assert masked(f"proxy http://ann:{word}@host/ failed") == "proxy http://***@host/ failed"


@pytest.mark.parametrize("form", [TextLines(), JsonLines()])
def test_logs_hold_no_credentials(form: logging.Formatter) -> None:
    record = logging.LogRecord("crawler", logging.INFO, "", 0, "asked http://ann:secret@host/", None, None)
    record.fields = {"url": "http://a.example/?token=secret", "more": [{"via": "//ann:secret@host"}]}
    error = ValueError("http://ann:secret@host/")
    record.exc_info = (type(error), error, None)
    line = form.format(record)
    assert "secret" not in line
    if isinstance(form, JsonLines):
        assert json.loads(line)["more"] == [{"via": "//***@host"}]


@pytest.mark.parametrize(
    "words",
    [
        ["crawl", "https://ann:secret@a.example/"],
        ["crawl", "https://ann:se#cret@a.example/"],
        ["crawl", "a.example", "--proxy", "ftp://ann:secret@proxy"],
        ["crawl", "a.example", "--auth-env", "ann:secret"],
        ["crawl", "a.example", "--header", "Authorization Bearer secret"],
        ["crawl", "a.example", "--publish-base", "https://ann:secret@a.example/"],
        ["crawl", "a.example", "--seed-sitemaps", "https://ann:secret@a.example/s.xml"],
        ["crawl", "a.example", "--allow-host", "ann:secret@a.example/"],
        ["crawl", "a.example", "--state", "postgresql://ann:secret@db/crawls"],
        ["https://ann:secret@a.example/"],
        ["status", "https://ann:secret@a.example/"],
        ["explain", "https://ann:secret@a.example/"],
        ["robots", "https://ann:secret@a.example/"],
        ["validate", "https://ann:secret@a.example/s.xml"],
        ["diff", "https://ann:secret@a.example/s.xml", "b.xml"],
    ],
)
def test_errors_hold_no_credentials(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = run(words)
    out, err = capsys.readouterr()
    assert code == 2, err
    assert "secret" not in out + err
    assert "Traceback" not in err


def test_config_shows_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(
        """
        [scope]
        start = ["https://ann:secret@a.example/?token=secret"]
        seed-sitemaps = "https://ann:secret@a.example/s.xml"
        include = ["*?api_key=secret&x=*"]
        [http]
        header = ["X-Key: secret"]
        proxy = "http://ann:sec/ret@proxy:3128"
        [state]
        state = "postgresql://ann:secret@db/crawls?password=secret"
        """
    )
    monkeypatch.chdir(tmp_path)
    assert run(["config", "--config", "c.toml"]) == 0
    out = capsys.readouterr().out
    assert "secret" not in out
    assert "ret@" not in out
    assert "http://***@proxy:3128" in out
