"""The links to other sites in reports: how many answer, in words and as JSON. Which are broken is a finding."""

from typing import Any

from crawler.model.external import BROKEN, OK, UNKNOWN, ExternalCheck, ExternalCounts
from crawler.report.formatting import counted

KINDS = (OK, BROKEN, UNKNOWN)


def external_words(check: ExternalCheck, counts: ExternalCounts) -> str:
    """`1,204 URLs on other sites: 1,190 answer, 3 broken, 11 unknown`, and what was not checked."""
    answered = counts.of(OK)
    parts = [f"{answered:,} {'answers' if answered == 1 else 'answer'}"]
    parts += [f"{counts.of(kind):,} {kind}" for kind in (BROKEN, UNKNOWN)]
    parts += [f"{counts.unchecked:,} not checked yet"] if counts.unchecked else []
    words = f"{counted(total(counts), 'URL')} on other sites: {', '.join(parts)}"
    if not check.finished:
        return f"{words}; the check was interrupted, and the next run continues it"
    return f"{words}; {check.left:,} left to the next run ({check.because})" if check.left else words


def total(counts: ExternalCounts) -> int:
    """How many URLs these are."""
    return sum(counts.codes.values()) + counts.unchecked


def external_json(check: ExternalCheck | None, counts: ExternalCounts | None) -> dict[str, Any] | None:
    """The same for programs; None if links were not checked."""
    if check is None or counts is None:
        return None
    return {
        "urls": total(counts),
        **{kind: counts.of(kind) for kind in KINDS},
        "unasked": counts.unchecked,
        "answers": dict(sorted(counts.codes.items())),
        "finished": check.finished,
        "left": check.left,
        "because": check.because or None,
    }
