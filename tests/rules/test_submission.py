"""Which differences between the ledger and a run are a change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.ledger import LedgerRow, Mark
from crawler.parse.url import Url
from crawler.rules.submission import GONE_OUTCOMES, Change, change

URL = Url("https://www.example.com/a")


@pytest.mark.parametrize(
    ("submitted", "now", "expected"),
    [
        (None, "f1@", Change.ADDED),
        ("f1@", "f1@", None),
        ("f1@100", "f1@200", None),  # a date alone
        ("f1@100", "f2@100", Change.CHANGED),
        ("f1@100", "f2@", Change.CHANGED),
        ("=b1@100", "=b1@200", None),
        ("=b1@100", "f1@200", Change.CHANGED),
        ("=b1@100", "f1@100", None),  # a nonce, or a text that changed without a date
        ("=b1@100", "f1@50", None),
        ("=b1@100", "f1@", None),
        ("=b1@", "f1@100", Change.CHANGED),
        ("=b1@", "f1@", None),
        ("=b1@100", "=b2@200", Change.CHANGED),
        ("f1@100", "=b1@200", Change.CHANGED),
        ("f1@100", "=b1@100", None),
        ("@100", "@200", Change.CHANGED),  # a document: the date is all that is known
        ("@200", "@100", None),
        ("@", "@100", None),
        ("@", "f1@100", None),  # was not fetched before
        ("@100", "@", None),
    ],
)
def test_content_counts_or_a_date_where_it_cannot_be_compared(
    submitted: str | None, now: str, expected: Change | None
) -> None:
    assert change(LedgerRow(URL, submitted, now, "listed")) is expected


def test_fingerprints_of_pages_read_otherwise_need_later_date() -> None:
    assert change(LedgerRow(URL, "f1@100", "f2@100"), comparable=False) is None
    assert change(LedgerRow(URL, "f1@100", "f2@200"), comparable=False) is Change.CHANGED
    assert change(LedgerRow(URL, "f1@100", "f1@200"), comparable=False) is None


@pytest.mark.parametrize(
    ("outcome", "is_gone"),
    [
        ("", True),
        ("moved", True),
        ("failed:not-found", True),
        ("unlisted:noindex", True),
        ("unlisted:canonical", True),
        ("failed:server-error", False),
        ("failed:timeout", False),
        ("failed:forbidden", False),
        ("unlisted:robots", False),
        ("unlisted:excluded", False),
        ("unlisted:depth", False),
    ],
)
def test_only_definite_outcomes_count_as_removed(outcome: str, is_gone: bool) -> None:
    assert change(LedgerRow(URL, "f1@", None, outcome)) is (Change.GONE if is_gone else None)
    assert change(LedgerRow(URL, None, None, outcome)) is None


def test_a_page_that_was_not_looked_for_is_not_gone() -> None:
    """The run had another start URL or scope."""
    assert change(LedgerRow(URL, "f1@", None, ""), same_scope=False) is None
    assert change(LedgerRow(URL, "f1@", None, "failed:not-found"), same_scope=False) is Change.GONE


def test_everything_is_sent_again_on_request_but_what_is_unknown() -> None:
    assert change(LedgerRow(URL, "f1@", "f1@"), everything=True) is Change.AGAIN
    assert change(LedgerRow(URL, "f1@", None, "failed:timeout"), everything=True) is None
    assert "failed:timeout" not in GONE_OUTCOMES


MARKS = st.builds(Mark, st.sampled_from(["", "f1", "f2", "=b1", "=b2"]), st.none() | st.integers(-9, 9))


def text(mark: Mark) -> str:
    return f"{mark.content}@{'' if mark.date is None else mark.date}"


@given(MARKS)
def test_marks_round_trip_and_do_not_differ_from_themselves(mark: Mark) -> None:
    assert Mark.of(text(mark)) == mark
    for comparable in (True, False):
        assert change(LedgerRow(URL, text(mark), text(mark)), comparable=comparable) is None
