"""HTTP dates, W3C datetimes, and which dates are credible."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.reply import Headers
from crawler.parse.dates import http_date, lengthened, shortened, w3c
from crawler.rules import lastmod
from crawler.rules.throttle import retry_after

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "-1", "now", "Sun, 30 Feb 2020 00:00:00 GMT", "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 10000 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 6 Nov 1994 08:49:37 GMT", "2024-01-01", "x" * 100_000,
        "Sun, 06 Xyz 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, Mon, 07 Nov 1994 08:49:37 GMT",
        "Sun, \u0660\u0666 Nov 1994 08:49:37 GMT",
    ],
)  # fmt: skip
def test_invalid_http_dates_are_none(text: str) -> None:
    assert http_date(text, NOW) is None


def test_a_two_digit_year_is_not_more_than_fifty_years_ahead() -> None:
    near = http_date("Saturday, 21-Nov-76 00:00:00 GMT", NOW)
    far = http_date("Sunday, 22-Nov-76 00:00:00 GMT", NOW)
    assert near is not None
    assert far is not None
    assert (near.year, far.year) == (2076, 1976)


def test_a_leap_second_is_the_second_after_it() -> None:
    at = http_date("Wed, 31 Dec 2008 23:59:60 GMT", NOW)
    assert at == datetime(2009, 1, 1, tzinfo=UTC)
    assert http_date("Fri, 31 Dec 9999 23:59:60 GMT", NOW) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["Fri, 20 Nov 2026 10:00:00 GMT"], "2026-11-20T10:00:00+00:00"),
        (["Sat, 21 Nov 2026 00:00:00 GMT"], "2026-11-21T00:00:00+00:00"),
        (["Sat, 21 Nov 2026 00:00:01 GMT"], None),  # the future
        (["Thu, 01 Jan 1970 00:00:00 GMT"], None),  # a clock that was never set
        (["Mon, 05 Aug 1991 23:59:59 GMT"], None),  # before the web
        (["Tue, 06 Aug 1991 00:00:00 GMT"], "1991-08-06T00:00:00+00:00"),
        (["garbage"], None),
        ([], None),
        (["Fri, 20 Nov 2026 10:00:00 GMT", "Thu, 19 Nov 2026 10:00:00 GMT"], None),
    ],
)
def test_only_a_credible_last_modified_is_used(values: list[str], expected: str | None) -> None:
    found = lastmod.from_header(Headers([("Last-Modified", value) for value in values]), NOW)
    assert (w3c(found) if found else None) == expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Sat, 21 Nov 2026 00:01:00 GMT", 60.0),
        ("Fri, 20 Nov 2026 00:01:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("1.5", None),
        ("", None),
        ("1" + "0" * 20, 1e19),
    ],
)
def test_retry_after_is_parsed_in_both_forms(value: str, seconds: float | None) -> None:
    assert retry_after(Headers([("Retry-After", value)]), NOW) == seconds


def test_no_retry_after_is_none() -> None:
    assert retry_after(Headers(), NOW) is None


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Wed, 01 Jan 0001 00:00:00 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "yesterday",
        "",
    ],
)
def test_a_date_is_stored_short_and_comes_back_as_it_was(text: str) -> None:
    short = shortened(text)
    assert short is not None
    assert lengthened(short) == text
    assert shortened("Sun, 06 Nov 1994 08:49:37 GMT") == "=2ebc98a1"


@given(st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis adds it
def test_any_second_is_stored_short(at: datetime) -> None:
    text = f"{at:%a}, {at.day:02} {at:%b} {at.year:04} {at:%H:%M:%S} GMT"
    assert lengthened(shortened(text) or "") == text
    assert (shortened(text) or "").startswith("=")


@given(st.text())
def test_no_text_comes_back_as_another_date(text: str) -> None:
    assert shortened(f"={text}") is None
    lengthened(f"={text}")
