"""The sentences about a submission, for `submit` and for the summary of a crawl."""

from collections.abc import Iterator
from typing import Any, Final

from crawler.app.submission import Submitted
from crawler.parse import url as urls
from crawler.report.formatting import counted
from crawler.report.printable import printable
from crawler.rules.submission import Change
from crawler.settings.sections import Settings

HOSTS: Final = 5  # shown by name
NOT_GOOGLE: Final = (
    "IndexNow tells Bing, Yandex, Naver, Seznam and others; Google does not take part, and no longer accepts pings: for Google "
    "the sitemap itself is what counts."
)


def due_words(due: Submitted) -> str:
    """What is due, by change and by host."""
    if not due.due:
        return "Nothing changed since the last submission."
    if Change.AGAIN in due.changes:
        words = f"{counted(due.due, 'URL')} to submit, all that are listed"
        if gone := due.changes[Change.GONE]:
            words += f" and {gone:,} that are gone"
    else:
        kinds = ", ".join(f"{due.changes[kind]:,} {kind.value}" for kind in Change if due.changes[kind])
        words = f"{counted(due.due, 'URL')} changed since the last submission ({kinds})"
    hosts = [f"{printable(name)} {count:,}" for name, count in list(due.hosts.items())[:HOSTS]]
    more = f", and {len(due.hosts) - HOSTS:,} more hosts" if len(due.hosts) > HOSTS else ""
    return f"{words}: {', '.join(hosts)}{more}"


def result_words(submitted: Submitted, settings: Settings, *, dry: bool = False) -> Iterator[str]:
    """What was done."""
    if submitted.noted is not None:
        would = "would be" if dry else "are"
        yield (
            f"First submission: {counted(submitted.noted, 'listed URL')} {would} recorded as known, and nothing is sent; from "
            "now on, changes are. --all sends all of them."
        )
        yield NOT_GOOGLE
    elif submitted.due and dry:
        yield "nothing was sent (--dry-run)"
    elif submitted.due:
        engine = urls.netloc(settings.submit.indexnow_endpoint)
        checked = "; the key is still to be checked there" if submitted.pending else ""
        of = f"{submitted.sent:,} of " if submitted.sent < submitted.due else ""
        yield f"{of}{counted(submitted.due, 'URL')} submitted to {engine}{checked}"
    if submitted.unsure:
        yield (
            f"{counted(submitted.unsure, 'other page')} came with different bytes but no later date: whether the text changed "
            "is not known yet, so they count as unchanged"
        )


def facts(submitted: Submitted) -> dict[str, Any]:
    """The numbers of a submission, for JSON."""
    return {
        "due": {change.value: count for change, count in submitted.changes.items()},
        "hosts": dict(submitted.hosts),
        "submitted": submitted.sent,
        "pending": submitted.pending,
        "noted": submitted.noted,
        "unsure": submitted.unsure,
    }
