"""Header fields and robots directives: tables, and arbitrary input."""

from datetime import UTC, datetime

import pytest

from crawler.parse import headers, robots_meta
from crawler.parse.robots_meta import Directives
from crawler.rules.indexing import Audience, indexing

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INDEX, FOLLOW = Directives(noindex=True), Directives(nofollow=True)
BOTH, NONE = Directives(noindex=True, nofollow=True), Directives()
NO_IMAGES = Directives(noimageindex=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, (None, None)),
        ("", (None, None)),
        ("text/html", ("text/html", None)),
        (" Text/HTML ; charset=UTF-8", ("text/html", "UTF-8")),
        ('text/html;charset="utf-8"', ("text/html", "utf-8")),
        ("text/html; x=y; charset=latin1", ("text/html", "latin1")),
        ('text/html; x="; charset=bad"; charset=good', ("text/html", "good")),
        ("text/html; charset=one; charset=two", ("text/html", "one")),
        ("text/html;charset", ("text/html", None)),
        ("text/html;charset=", ("text/html", None)),
        ('text/html;charset="a\\"b"', ("text/html", 'a"b')),
        ("text", (None, None)),
        ("text/html, text/plain", (None, None)),
        ("text/ht ml", (None, None)),
    ],
)
def test_content_type(value: str | None, expected: tuple[str | None, str | None]) -> None:
    assert headers.content_type(value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        (["</a>; rel=canonical"], [("/a", "canonical")]),
        (["</a>;rel=\"canonical\", </b>; rel='x'"], [("/a", "canonical"), ("/b", "'x'")]),
        (["</a>; rel=next", "</b>; rel=prev"], [("/a", "next"), ("/b", "prev")]),
        (['</a>; title="x, <y>; rel=no"; rel=next'], [("/a", "next")]),
        (['</a>; rel="NEXT prefetch"'], [("/a", "next prefetch")]),
        (["</a>; rel=next; rel=canonical"], [("/a", "next")]),
        (["</a,b;c>; rel=next"], [("/a,b;c", "next")]),
        (["</a>"], [("/a", "")]),
        (["</a>; rel"], [("/a", "")]),
        (['</a>; rel="canonical"; anchor="/other"'], []),
        (["nonsense, </a>; rel=next"], [("/a", "next")]),
        (["< /a >; rel = next"], [("/a", "next")]),
        (["</a; rel=next"], []),
    ],
)
def test_link(values: list[str], expected: list[tuple[str, str]]) -> None:
    found = [(link.target, link.rels) for link in headers.links(values)]
    assert found == [(target, frozenset(rels.split())) for target, rels in expected]


def test_the_number_of_header_links_is_limited() -> None:
    assert len(headers.links(["</a>; rel=next," * 2_000])) == headers.LINKS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", NONE),
        ("index, follow", NONE),
        ("noindex", INDEX),
        ("NoIndex , NOFOLLOW", BOTH),
        ("none", BOTH),
        ("noindex;nofollow", BOTH),
        ("all", NONE),
        ("max-snippet:20, noindex", INDEX),
        ("xnoindex", NONE),
        ("nofollow", FOLLOW),
        ("index, NoImageIndex", NO_IMAGES),
    ],
)
def test_meta_directives(content: str, expected: Directives) -> None:
    assert robots_meta.directives(content) == expected


def robots_tag(values: list[str], agent: str) -> Directives:
    """As the crawl reads them."""
    return indexing(robots_meta.addressed(values), Audience(agent, frozenset()), NOW).directives


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], NONE),
        (["noindex"], INDEX),
        (["noindex", "nofollow"], BOTH),
        (["googlebot: noindex"], NONE),
        (["sitemap-crawler: noindex"], INDEX),
        (["Sitemap-Crawler: none"], BOTH),
        (["*: noindex"], INDEX),
        (["otherbot: noindex, nofollow"], NONE),
        (["otherbot: noindex, sitemap-crawler: nofollow"], FOLLOW),
        (["noindex, otherbot: nofollow"], INDEX),
        (["unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"], INDEX),
        (["max-snippet: 5"], NONE),
        (["noimageindex", "otherbot: noindex"], NO_IMAGES),
    ],
)
def test_x_robots_tag_applies_to_all_agents_or_to_one(values: list[str], expected: Directives) -> None:
    assert robots_tag(values, "sitemap-crawler") == expected


@pytest.mark.parametrize("piece", ["<a>;", '<a>; rel="', '"\\', "<", ";charset", 'x/y;a="', "a:", ","])
def test_time_is_linear_in_the_length_of_a_field(piece: str) -> None:
    """A field of 64 KiB: a pattern that backtracks at every position would never finish."""
    value = "text/html;" + piece * (65_536 // len(piece))
    headers.links([value])
    headers.content_type(value)
    robots_tag([value], "sitemap-crawler")
