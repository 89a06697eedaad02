"""Which pages are submitted to search engines: those whose content changed since they were last submitted.
Pure.

IndexNow asks for URLs that were added, updated or deleted since the last submission, and engines ignore a
site that sends unchanged ones. So a new date alone is not a change. The content of most pages is compared by
their fingerprint. Where one side has only a digest of the bytes (`content_digest`), or pages were read with
other settings meanwhile, a difference may be a nonce: there the date, which `lastmod` has checked over the
whole site, must have changed as well.
"""

from enum import Enum
from typing import Final

from crawler.model.ledger import LedgerRow, Mark
from crawler.model.reasons import Cause, Why
from crawler.parse import fingerprint


class Change(Enum):
    """Why a URL is submitted."""

    ADDED = "added"
    CHANGED = "changed"
    GONE = "gone"
    AGAIN = "again"  # only if everything is submitted


GONE_OUTCOMES: Final = frozenset({
    "", "moved", f"failed:{Cause.NOT_FOUND.value}",
    *(f"unlisted:{why.value}" for why in (
        Why.NOINDEX, Why.CANONICAL, Why.DUPLICATE, Why.EMPTY, Why.SOFT_404, Why.TYPE,
    )),
})  # fmt: skip
"""Outcomes submitted as removed. With others, such as a server error, the page may be unchanged."""


def change(
    row: LedgerRow, *, comparable: bool = True, same_scope: bool = True, everything: bool = False
) -> Change | None:
    """Why the URL is due; None if it is not. `comparable`, `same_scope`: see `LedgerHead`."""
    if row.now is None and not (row.outcome or same_scope):
        return None  # it was not looked for
    if row.now is None:
        return Change.GONE if row.submitted is not None and row.outcome in GONE_OUTCOMES else None
    if row.submitted is None:
        return Change.ADDED
    if differs(Mark.of(row.submitted), Mark.of(row.now), comparable=comparable):
        return Change.CHANGED
    return Change.AGAIN if everything else None


def differs(submitted: Mark, now: Mark, *, comparable: bool) -> bool:
    """Whether the content is another one, as far as can be known."""
    if submitted.content == now.content:
        return not now.content and _is_later(submitted, now)  # a document: its date is all that is known
    if comparable and _is_text(submitted) and _is_text(now):
        return True
    return _is_later(submitted, now)


def _is_text(mark: Mark) -> bool:
    return bool(mark.content) and not mark.content.startswith(fingerprint.BYTES)


def _is_later(submitted: Mark, now: Mark) -> bool:
    """Whether the date moved; the first date of a page counts if its content was known before."""
    if now.date is None:
        return False
    return bool(submitted.content) if submitted.date is None else now.date > submitted.date
