"""Which headers and credentials are sent to which host."""

import base64
from pathlib import Path

import pytest

from crawler.errors import ConfigError
from crawler.fetch.request_headers import CODINGS, RequestIdentity
from crawler.settings.sections import Http

HOME, AWAY = "https://example.com/a", "https://example.com:8443/a"


def identity(environ: dict[str, str] | None = None, **chosen: object) -> RequestIdentity:
    return RequestIdentity(Http(**chosen), ["https://example.com"], environ or {})  # type: ignore[arg-type]


def test_user_agent_is_sent_to_all_hosts() -> None:
    who = identity(user_agent="me/1 (+https://me.example)")
    for url in (HOME, AWAY):
        headers = who.headers(url)
        assert headers["user-agent"] == "me/1 (+https://me.example)"
        assert headers["accept-encoding"] == CODINGS


def test_headers_and_credentials_are_sent_to_start_origins_only() -> None:
    who = identity({"SECRET": "user:pass"}, header=("X-Key: k:v",), auth_env="SECRET")
    expected = "Basic " + base64.b64encode(b"user:pass").decode()
    assert who.headers(HOME)["authorization"] == expected
    assert who.headers(HOME)["x-key"] == "k:v"
    for elsewhere in (AWAY, "http://example.com/a", "https://example.com.evil.net/"):
        assert not {"authorization", "x-key"} & set(who.headers(elsewhere))


def test_auth_value_without_colon_is_bearer_token() -> None:
    assert identity({"T": " abc\n"}, auth_env="T").headers(HOME)["authorization"] == "Bearer abc"


def test_cookies_from_file_are_sent_to_their_host_only(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(
        "# Netscape HTTP Cookie File\nexample.com\tFALSE\t/\tFALSE\t4000000000\tsid\t42\n"
        "other.com\tFALSE\t/\tFALSE\t4000000000\tsid\t43\n"
    )
    who = identity(cookie_file=str(file))
    assert who.headers(HOME)["cookie"] == "sid=42"
    assert "cookie" not in who.headers("https://other.com/")


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"header": ("nonsense",)}, r"--header: \*\*\* must have the form 'Name: value'"),
        ({"header": ("a b: c",)}, "--header: 'a b' must have the form"),
        ({"header": ("Host: x",)}, "--header: 'Host' cannot be set; the crawler sets it itself"),
        ({"header": ("transfer-encoding: chunked",)}, "--header: 'transfer-encoding' cannot be set;"),
        ({"header": ("If-None-Match: *",)}, "--header: 'If-None-Match' cannot be set;"),
        (
            {"header": ("User-Agent: me",)},
            "--header: 'User-Agent' cannot be set here; --user-agent sets that",
        ),
        ({"auth_env": "MISSING"}, "--auth-env: the variable MISSING is not set"),
        ({"auth_env": "BAD"}, "contains control characters"),
        ({"cookie_file": "/nowhere"}, "--cookie-file: /nowhere cannot be read \\(No such"),
    ],
)
def test_unusable_header_settings_raise_without_secret(chosen: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        identity({"BAD": "to\nken"}, **chosen)
    assert "ken" not in str(caught.value).replace("token", "")
