"""Which URLs belong to the site."""

from typing import Any

import pytest

from crawler.model.reasons import Why
from crawler.parse.url import Url
from crawler.rules.scope import SiteScope
from crawler.settings import sections


def scope(start: str = "https://example.com/", **chosen: object) -> SiteScope:
    return SiteScope.of([Url(start)], sections.Scope(**chosen))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reach", "start", "url", "belongs"),
    [
        ("host", "https://example.com/a/b", "https://example.com/z", True),
        ("host", "https://example.com/", "http://example.com/z", False),
        ("subdomains", "https://example.com/", "http://example.com/z", True),
        ("host", "https://example.com/", "https://example.com:8443/", False),
        ("host", "https://example.com/", "https://www.example.com/", False),
        ("host", "https://example.com/", "https://example.com.evil.net/", False),
        ("path", "https://example.com/docs/index.html", "https://example.com/docs/a?b", True),
        ("path", "https://example.com/docs/", "https://example.com/docs2", False),
        ("path", "https://example.com/docs", "https://example.com/x", True),
        ("subdomains", "https://www.example.com/", "https://a.b.example.com/", True),
        ("subdomains", "https://www.example.com/", "https://example.com/", True),
        ("subdomains", "https://blog.example.com/", "https://www.example.com/", False),
        ("subdomains", "https://example.com/", "https://notexample.com/", False),
        ("domain", "https://blog.example.co.uk/", "https://www.example.co.uk/", True),
        ("domain", "https://blog.example.co.uk/", "https://other.co.uk/", False),
        ("domain", "http://127.0.0.1:8000/", "http://127.0.0.2:8000/", False),
    ],
)
def test_the_reach_of_a_site(reach: str, start: str, url: str, belongs: bool) -> None:
    assert scope(start, scope=reach).belongs(Url(url)) is belongs


@pytest.mark.parametrize(
    ("chosen", "url", "why"),
    [
        ({}, "https://other.com/", Why.OFFSITE),
        ({"allow_host": ("other.com",)}, "https://other.com/", None),
        ({"exclude": ("/private/*",)}, "https://example.com/private/x", Why.EXCLUDED),
        ({"exclude": ("/private/*",)}, "https://example.com/privateer", None),
        ({"exclude": ("/private/*",)}, "https://example.com/x/private/y", None),
        ({"include": ("/blog/*", "re:^/news")}, "https://example.com/news/1", None),
        ({"include": ("/blog/*",)}, "https://example.com/shop", Why.EXCLUDED),
        ({"exclude": ("*?*sort=*",)}, "https://example.com/a?x=1&sort=up", Why.EXCLUDED),
        ({"max_depth": 1}, "https://example.com/a", Why.DEPTH),
        ({"max_depth": 2}, "https://example.com/a", None),
    ],
)
def test_discovered_urls_are_visited_or_filtered(chosen: dict[str, Any], url: str, why: Why | None) -> None:
    assert scope(**chosen).filtered(Url(url), 2) is why


def test_urls_outside_start_folder_are_excluded_hosts_offsite() -> None:
    narrow = scope("https://example.com/docs/", scope="path")
    assert narrow.filtered(Url("https://example.com/"), 1) is Why.EXCLUDED
    assert narrow.filtered(Url("https://other.com/docs/"), 1) is Why.OFFSITE


def test_www_and_without_are_one_site_only_if_one_redirects() -> None:
    start, to = Url("https://example.com/"), Url("https://www.example.com/")
    before = scope()
    assert not before.belongs(to)
    after = before.admitting(start, to)
    assert after.belongs(to)
    assert after.belongs(start)
    assert after.unlisted(to) is None


def test_start_url_that_redirects_to_https_moves_site_to_https() -> None:
    start, to = Url("http://example.com/"), Url("https://example.com/")
    after = scope("http://example.com/").admitting(start, to)
    assert after.unlisted(Url("https://example.com/a")) is None
    assert after.unlisted(Url("http://example.com/a")) is Why.SCHEME


@pytest.mark.parametrize(
    ("start", "chosen", "aliases"),
    [
        ("https://a.com/", {}, "http://a.com http://www.a.com https://www.a.com"),
        ("http://www.a.com:81/", {}, "http://a.com:81 https://a.com:81 https://www.a.com:81"),
        ("https://127.0.0.1/", {}, "http://127.0.0.1"),
        ("https://[::1]:81/", {}, "http://[::1]:81"),
        ("http://127.0.0.1/", {"allow_host": ("b.com:81",)}, "https://127.0.0.1 https://b.com:81"),
    ],
)
def test_aliases_of_a_site(start: str, chosen: dict[str, Any], aliases: str) -> None:
    assert " ".join(sorted(scope(start, **chosen).possible_aliases())) == aliases


def test_links_to_alias_that_redirects_pages_are_links_to_site() -> None:
    found = scope().with_aliases({"http://example.com": "https://example.com", "http://www.example.com": ""})
    assert found.ours(Url("http://example.com/a?b")) == "https://example.com/a?b"
    assert found.ours(Url("http://example.com.net/")) == "http://example.com.net/"
    assert found.ours(Url("http://www.example.com/a")) == "http://www.example.com/a"
    assert found.belongs(Url("http://www.example.com/a"))
    assert found.unlisted(Url("http://www.example.com/a")) is Why.SCHEME


def test_pages_served_by_alias_itself_are_not_listed() -> None:
    found = scope().with_aliases({"https://www.example.com": ""})
    assert found.unlisted(Url("https://www.example.com/a")) is Why.OFFSITE
    wide = scope(scope="subdomains").with_aliases({"https://www.example.com": ""})
    assert wide.unlisted(Url("https://www.example.com/a")) is None


def test_start_url_redirected_to_another_site_widens_no_scope() -> None:
    start, to = Url("https://example.com/"), Url("https://stranger.com/")
    assert not scope().admitting(start, to).belongs(to)


def test_a_start_url_not_in_include_is_visited_but_not_listed() -> None:
    chosen = scope(include=("/blog/*",))
    assert chosen.unlisted(Url("https://example.com/")) is Why.EXCLUDED
    assert chosen.unlisted(Url("https://example.com/blog/1")) is None


def test_no_list_no_fetch_and_length() -> None:
    chosen = scope(no_list=("/tag/*",), no_fetch=("*.pdf",))
    assert chosen.unlisted(Url("https://example.com/tag/x")) is Why.NO_LIST
    assert chosen.unfetched(Url("https://example.com/a.pdf"))
    assert not chosen.unfetched(Url("https://example.com/a"))
    base = "https://example.com/"
    assert chosen.unlisted(Url(base + "x" * (2047 - len(base)))) is None
    assert chosen.unlisted(Url(base + "x" * (2048 - len(base)))) is Why.TOO_LONG


def test_a_url_longer_than_servers_accept_is_not_fetched() -> None:
    site = "https://example.com/"
    scope = SiteScope.of((Url(site),), sections.Scope())
    assert scope.filtered(Url(site + "x" * (8_192 - len(site))), 1) is None
    assert scope.filtered(Url(site + "x" * 8_192), 1) is Why.TOO_LONG
