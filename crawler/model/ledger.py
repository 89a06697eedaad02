"""The ledger of submissions: what search engines were last told about each URL, beside what the newest run
found.

A mark stands for a version of a page: its content, and its date. The frontier stores and compares marks as
text; `rules.submission` decides what a difference means.
"""

from typing import Self

from msgspec import Struct

from crawler.parse.url import Url


class Mark(Struct, frozen=True):
    """One version of a page, with the text form `content@date`."""

    content: str  # a fingerprint, or after = a digest of the bytes (`parse.fingerprint.BYTES`); "" for none
    date: int | None  # its lastmod, in seconds since the epoch

    @classmethod
    def of(cls, text: str) -> Self:
        """The mark with this text form. Raises `ValueError`."""
        content, _, date = text.rpartition("@")
        return cls(content, int(date) if date else None)


class LedgerRow(Struct, frozen=True):
    """A URL that the ledger and the newest run disagree about. Marks are in their text form."""

    url: Url
    submitted: str | None  # the mark in the ledger; None: engines do not know the URL from us
    now: str | None  # its mark in the newest run; None: not listed
    outcome: str = ""  # its code in the newest run; "": not found


class LedgerHead(Struct, frozen=True):
    """The ledger as a whole."""

    base: str  # base of the published URLs that it is about
    comparable: bool = True  # the newest run reads pages as then, so that fingerprints can be compared
    same_scope: bool = True  # it searches the same site, so that a page that it did not find is gone
