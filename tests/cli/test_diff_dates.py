"""Dates as `diff` compares them: a shortcut for those that this program writes agrees with the parser."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.cli.diff import _date
from crawler.parse.dates import read_w3c, w3c


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 30)))  # noqa: DTZ001 - gets its zone below
def test_dates_that_are_written_here_are_compared_as_they_are(at: datetime) -> None:
    text = w3c(at.replace(tzinfo=UTC))
    assert _date(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "2026-W05-6T23:59:59+00:00", "2026-01-31 23:59:59+00:00", "2026-02-31T23:59:59+00:00",
        "2026-01-31T23:59:59+01:00", "2026-01-31T23:59:59.250Z", "2026-01-31", "2026-01-31T23:59Z", "yesterday",
    ],
)  # fmt: skip
def test_other_dates_are_read(text: str) -> None:
    at = read_w3c(text)
    assert _date(text) == (w3c(at) if at else None)
