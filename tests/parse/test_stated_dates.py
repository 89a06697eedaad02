"""The dates that pages state, in the forms in which they do; none is before the day of publication."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse.dates import read_stated
from crawler.parse.extract import Extract
from crawler.parse.html import PageSource
from crawler.rules.lastmod import from_page

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", "2024-01-01T00:00:00"),
        ("2024-01-02", "2024-01-02T00:00:00"),
        (" 2024-01-02 03:04 ", "2024-01-02T03:04:00"),
        ("2024-01-02t03:04:05.123456789z", "2024-01-02T03:04:05"),
        ("2024-01-02T03:04:05,5+02", "2024-01-02T01:04:05"),
        ("2024-01-02T03:04:05 +0200", "2024-01-02T01:04:05"),
        ("20240102", "2024-01-02T00:00:00"),
        ("20240102T030405Z", "2024-01-02T03:04:05"),
        ("20240102T0304+0200", "2024-01-02T01:04:00"),
        ("Tue, 02 Jan 2024 03:04:05 GMT", "2024-01-02T03:04:05"),
        ("Tue, 2 Jan 2024 03:04:05 +0200", "2024-01-02T01:04:05"),
        ("tue, 2 jan 2024 03:04:05 EST", "2024-01-02T08:04:05"),
        ("2 Jan 2024 03:04", "2024-01-02T03:04:00"),
        ("Tue, 32 Jan 2024 03:04:05 GMT", None),
        ("Tue, 2 Xyz 2024 03:04:05 GMT", None),
        ("Tue, 2 Jan 24 03:04:05 GMT", None),
        ("2024-0102", None),
        ("20241302", None),
        ("2024010", None),
        ("1704164645", None),
        ("2024-01-02Z", None),
        ("02.01.2024", None),
        ("x" * 9_999, None),
    ],
)
def test_forms_in_which_pages_state_dates(text: str, expected: str | None) -> None:
    at = read_stated(text)
    assert (at.replace(tzinfo=None, microsecond=0).isoformat() if at else None) == expected


@given(st.text(max_size=80) | st.from_regex(r"\A[0-9T:Z+ ,-]{4,30}\Z"))
def test_any_text_can_be_read_as_a_stated_date(text: str) -> None:
    at = read_stated(text)
    assert at is None or at.tzinfo is UTC


def meta(name: str, date: str) -> str:
    return f'<meta property="{name}" content="{date}">'


def of_json(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


MODIFIED, PUBLISHED = "article:modified_time", "article:published_time"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", None),
        (meta("og:updated_time", "2017-09-01"), "2017-09-01"),
        (meta(MODIFIED, "Fri, 01 Sep 2017 10:00:00 +0000"), "2017-09-01"),
        ('<meta http-equiv="Last-Modified" content="Fri, 01 Sep 2017 10:00:00 GMT">', "2017-09-01"),
        ('<meta http-equiv=date content="2017-09-01">', None),
        ('<meta name="last-modified" content="2017-09-01">', "2017-09-01"),
        ('<meta name="DCTERMS.modified" content="2017-09-01">', "2017-09-01"),
        ('<meta itemprop="datemodified" content="2017-09-01">', "2017-09-01"),
        ('<meta name="revised" content="every night"><meta name="date" content="2017-09-01">', None),
        (
            of_json('{"@type": "Article", "headline": "two\nlines\t", "dateModified": "2017-09-01"}'),
            "2017-09-01",
        ),
        (of_json('{"dateModified": "20170901T100000Z"}'), "2017-09-01"),
        (of_json('{"dateModified": "2017-09-01"'), None),
        (meta(PUBLISHED, "2017-09-01"), None),  # it may have changed since
        (meta(MODIFIED, "2017-09-01") + meta(PUBLISHED, "2018-09-01"), "2018-09-01"),  # it was scheduled
        (meta(MODIFIED, "2017-09-01") + of_json('{"datePublished": "2018-09-01"}'), "2018-09-01"),
        (of_json('{"dateModified": "2017-09-01", "datePublished": "2018-09-01T08:00:00Z"}'), "2018-09-01"),
        (of_json('{"dateModified": "2017-09-01"}') + meta(PUBLISHED, "2018-09-01"), "2018-09-01"),
        (
            meta(MODIFIED, "2017-09-01")
            + meta(PUBLISHED, "2018-09-01T08:00:00Z")
            + of_json('{"datePublished": "2018-09-01"}'),
            "2018-09-01",
        ),
        (
            meta(MODIFIED, "2017-09-01")
            + meta(PUBLISHED, "2018-09-01")
            + '<time itemprop="datePublished" datetime="2019-01-01">of a comment</time>',
            "2018-09-01",
        ),
        (
            meta(MODIFIED, "2017-09-01")
            + of_json(json.dumps([{"datePublished": f"201{year}-01-01"} for year in (8, 9)])),  # of others
            "2017-09-01",
        ),
        (of_json('{"@type": "Comment", "dateModified": "2017-09-01"}'), None),
    ],
)
def test_a_page_is_not_older_than_the_publication_that_it_states(head: str, expected: str | None) -> None:
    page = PageSource(
        f"<head>{head}</head><p>text".encode(), "https://a.example/", wanted=frozenset({Extract.DATES})
    )
    at = from_page(page.read().dates, NOW)
    assert (at.date().isoformat() if at else None) == expected
