"""A crawl with a login fetches no logout links; the forms in which a login is accepted."""

import base64
import itertools
from pathlib import Path

import pytest

from crawler.cli.commands import cli
from crawler.cli.demo.site import Site
from crawler.cli.options import typed
from crawler.errors import ConfigError
from crawler.fetch.request_headers import RequestIdentity
from crawler.rules.logout import ends_session, names_login
from crawler.settings import load
from crawler.settings.sections import Http, Settings
from tests.engine.test_crawl import crawl, settings

SITE = "https://a.example"


@pytest.mark.parametrize(
    "target",
    [
        "/logout", "/Logout/", "/log-out", "/log_out.php", "/account/logout?next=/", "/logoff.aspx", "/signout", "/users/sign_out",
        "/sign-out", "/wp-login.php?action=logout&_wpnonce=1", "/?logout", "/?logout=1", "/doku.php?id=start&do=logout",
        "/index.php?title=Special:UserLogout&returnto=x", "/index.php?title=Special%3AUserLogout", "/wiki/Special:UserLogout",
        "/user/logout", "/session/destroy", "/sessions/delete", "/j_logout", "/logout;x=1", "/a?b=%2Flogout", "/auth/logout/",
        "/ucp.php?mode=logout", "/abmelden",
    ],
)  # fmt: skip
def test_logout_urls_are_recognised_by_name(target: str) -> None:
    assert ends_session(SITE + target)


@pytest.mark.parametrize(
    "target",
    [
        "/", "/login", "/how-to-log-out", "/blog/logout-is-broken", "/layout", "/checkout", "/session/new", "/sessions/12",
        "/a?q=how+to+logout", "/destroy", "/log/out", "/about", "/?outlog=1", "/signouts",
    ],
)  # fmt: skip
def test_other_urls_are_not_logouts(target: str) -> None:
    assert not ends_session(SITE + target)
    assert names_login(SITE + target) is (target == "/login")


def test_time_is_linear_in_the_length_of_a_url() -> None:
    assert not ends_session(SITE + "/" + "logout-" * 1_000 + "?" + "a=logou&" * 900)


def members() -> Site:
    site = Site()
    site.page("/", links=["/a", "/logout", "/wp-login.php?action=logout", "/out"])
    site.redirect("/out", "/users/sign_out")
    for path in ("/a", "/logout", "/wp-login.php?action=logout", "/users/sign_out"):
        site.page(path)
    return site


COOKIES = "# Netscape HTTP Cookie File\n"


@pytest.mark.system
@pytest.mark.anyio
@pytest.mark.parametrize("how", ["auth_env", "cookie_file", "header", None])
async def test_logout_urls_are_not_fetched_with_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str | None
) -> None:
    monkeypatch.setenv("LOGIN", "Bearer x")
    (tmp_path / "c").write_text(COOKIES + "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t42\n")
    chosen: dict[str | None, object] = {
        "auth_env": "LOGIN",
        "cookie_file": str(tmp_path / "c"),
        "header": ("Cookie: a=b",),
    }
    with members().serve() as origin:
        given = {how: chosen[how]} if how else {}
        result = await crawl(settings(origin, tmp_path, **given))
    if how:
        assert result.listed == ["/", "/a"]
        assert result.counts == {"listed": 2, "unlisted:logout": 3, "moved": 1}
    else:
        assert result.counts == {"listed": 5, "moved": 1}


def authorization(secret: str) -> str:
    return RequestIdentity(Http(auth_env="X"), [SITE], {"X": secret}).headers(f"{SITE}/")["authorization"]


@pytest.mark.parametrize(
    ("secret", "sent"),
    [
        ("Bearer abc", "Bearer abc"),
        ("bearer a:b", "bearer a:b"),
        (" Bearer   abc\n", "Bearer abc"),
        ("Authorization: Bearer abc", "Bearer abc"),
        ("Basic dTpw", "Basic dTpw"),
        ("Token abc", "Token abc"),
        ("ApiKey id:key", "ApiKey id:key"),
        ("X-Scheme abc", "X-Scheme abc"),
        ("abc.def-ghi=", "Bearer abc.def-ghi="),
        ("user:pass", None),
        ("user:pass word", None),
        ("user:Bearer x", None),
        ("two words:pass", None),
        ("user:", None),
        ("usér:päss", None),
    ],
)
def test_credentials_are_accepted_in_their_usual_forms(secret: str, sent: str | None) -> None:
    basic = "Basic " + base64.b64encode(secret.encode()).decode()
    assert authorization(secret) == (sent or basic)


def test_a_token_invalid_in_a_header_is_reported_in_one_sentence() -> None:
    with pytest.raises(ConfigError, match="contains characters that are not allowed in a token"):
        authorization("Bearer gehe\u00efm")


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("a.example\tFALSE\t/\tTRUE\t0\tsid\t1", "sid=1"),
        ("#HttpOnly_a.example\tFALSE\t/\tTRUE\t0\tsid\t1", "sid=1"),
        ("#HttpOnly_.a.example\tTRUE\t/\tTRUE\t4000000000\tsid\t1", "sid=1"),
        ("a.example\tFALSE\t/\tFALSE\t\tsid\t1", "sid=1"),
        ("a.example\tFALSE\t/\tFALSE\t-1\tsid\t1", "sid=1"),
        ("a.example\tFALSE\t/\tFALSE\t1000000000\tsid\t1", None),
        ("a.example\tFALSE\t/other\tFALSE\t0\tsid\t1", None),
        ("# a.example\tFALSE\t/\tFALSE\t0\tsid\t1", None),
    ],
)
def test_session_cookies_are_sent_and_expired_ones_are_not(
    tmp_path: Path, line: str, sent: str | None
) -> None:
    (tmp_path / "c").write_text(f"{COOKIES}\n{line}\n")
    who = RequestIdentity(Http(cookie_file=str(tmp_path / "c")), [SITE], {})
    assert who.headers(f"{SITE}/").get("cookie") == sent


def taken(*words: str) -> Settings:
    command = cli.commands["crawl"]
    return load.resolve(None, {}, typed(command.make_context("crawl", list(words)).params))[0]


LISTS = {
    "types": ("html", "pdf"), "no-rule": ("noindex", "canonical"), "allow-trap": ("query", "path"),
    "allow-host": ("a.example", "b.example"), "allow-address": ("10.0.0.0/8", "192.168.0.0/16"),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_repeated_or_separated_by_commas(name: str) -> None:
    one, two = LISTS[name]
    flag, field = f"--{name}", name.replace("-", "_")
    for words in ([flag, one, flag, two], [flag, f"{one},{two}"], [flag, f"{one}, {two}"]):
        chosen = taken(*words)
        sections = [getattr(chosen, section) for section in vars(chosen)]
        assert next(getattr(section, field) for section in sections if hasattr(section, field)) == (one, two)
    for text in (f"{one},{two}", f"{one} {two}"):
        chosen = load.resolve(None, {f"SITEMAP_CRAWLER_{field.upper()}": text}, {})[0]
        values = itertools.chain.from_iterable(
            [getattr(getattr(chosen, section), field, None)] for section in vars(chosen)
        )
        assert (one, two) in values
