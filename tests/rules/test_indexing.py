"""For which search engines a page may be indexed."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.parse.robots_meta import addressed, unavailable_after
from crawler.rules.indexing import Audience, indexing

NOW = datetime(2026, 11, 23, tzinfo=UTC)
AUDIENCE = Audience("sitemap-crawler", frozenset({"googlebot"}))


@pytest.mark.parametrize(
    ("rules", "noindex", "barred"),
    [
        ([], None, ""),
        ([("robots", "noindex")], "", ""),
        ([("*", "none")], "", ""),
        ([("sitemap-crawler", "noindex")], "", ""),
        ([("googlebot", "noindex")], "for googlebot", ""),
        ([("googlebot", "none")], "for googlebot", ""),
        ([("googlebot", "nofollow")], None, ""),
        ([("googlebot", "noindex"), ("robots", "noindex")], "", ""),
        ([("bingbot", "noindex")], None, "bingbot"),
        ([("yandex", "none"), ("bingbot", "noindex"), ("bingbot", "index")], None, "bingbot, yandex"),
        ([("googlebot", "noindex"), ("bingbot", "noindex")], "for googlebot", "bingbot"),
        ([("description", "noindex")], None, ""),
        ([("googlebot-image", "noindex")], None, ""),
        ([("otherbot", "noindex")], None, ""),
        ([("robots", "unavailable_after: 2026-11-22")], "unavailable after 2026-11-22", ""),
        ([("googlebot", "unavailable_after: 22 Nov 2026 10:00:00 GMT")], "unavailable after 2026-11-22 for googlebot", ""),
        ([("bingbot", "unavailable_after: 2026-11-22")], None, "bingbot"),
        ([("bingbot", "unavailable_after: 2027-11-22")], None, ""),
        ([("robots", "unavailable_after: soon")], None, ""),
    ],
)  # fmt: skip
def test_what_keeps_a_page_out(rules: list[tuple[str, str]], noindex: str | None, barred: str) -> None:
    said = indexing(rules, AUDIENCE, NOW)
    assert (said.noindex, said.barred) == (noindex, barred)
    assert indexing(rules[::-1], AUDIENCE, NOW) == said


def test_a_page_stops_being_indexed_at_the_earliest_moment() -> None:
    rules = [("robots", f"unavailable_after: {day}") for day in ("2026-12-24", "2026-11-24", "2027-01-01")]
    said = indexing(rules, AUDIENCE, NOW)
    assert (said.noindex, said.until) == (None, NOW + timedelta(days=1))
    assert indexing(rules, AUDIENCE, NOW + timedelta(days=1)).noindex == "unavailable after 2026-11-24"


def test_links_are_followed_by_what_is_said_to_this_crawler() -> None:
    said = indexing([("googlebot", "none"), ("robots", "noimageindex")], AUDIENCE, NOW)
    assert not said.directives.nofollow
    assert said.directives.noimageindex


def test_without_bots_all_of_them_are_others() -> None:
    said = indexing([("googlebot", "noindex")], Audience("x", frozenset()), NOW)
    assert (said.noindex, said.barred) == (None, "googlebot")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("unavailable_after: 2026-11-22", "2026-11-22T00:00:00+00:00"),
        ("unavailable_after: 2026-11-22T10:00:00+02:00", "2026-11-22T08:00:00+00:00"),
        ("unavailable_after: 2026-11-22 10:00", "2026-11-22T10:00:00+00:00"),
        ("Unavailable_After:25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00+00:00"),
        ("noarchive, unavailable_after: 25-Aug-2007 15:00:00 EST", "2007-08-25T20:00:00+00:00"),
        ("unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, nofollow", "2025-06-25T15:00:00+00:00"),
        ("unavailable_after: Wednesday, 25-Jun-25 15:00:00 GMT", "2025-06-25T15:00:00+00:00"),
        ("unavailable_after: 2027-01-01, unavailable_after: 2026-01-01", "2026-01-01T00:00:00+00:00"),
        ("unavailable_after", None),
        ("unavailable_after:", None),
        ("unavailable_after: 99999999-01-01", None),
        ("unavailable_after: 1 Jan 0000 00:00:00 -9999", None),
        ("unavailable_after: " + "9" * 100, None),
    ],
)
def test_the_date_has_many_forms(text: str, at: str | None) -> None:
    found = unavailable_after(text)
    assert (found.isoformat() if found else None) == at
    fields = [f"googlebot: {text}"]
    assert [unavailable_after(rules) for name, rules in addressed(fields) if name == "googlebot"] == [found]
