"""Links to other sites in reports: how many answer, in words and as JSON. Which are broken is a finding."""

from collections.abc import Mapping
from typing import Any

from crawler.model.external import BROKEN, OK, UNKNOWN, ExternalCheck, ExternalCounts
from crawler.report.formatting import counted

EXTERNAL_KINDS = (OK, BROKEN, UNKNOWN)
LEFT = {
    "images": ("image", "not checked"),
    "scripts": ("script", "not checked"),
    "styles": ("style sheet", "not checked"),
    "pages": ("page", "with broken links not read again for the text of these"),
}


def external_words(facts: Mapping[str, Any] | None) -> str:
    """`1,204 URLs on other sites: 1,190 answer, 3 broken, 11 unknown`, and what was not checked.

    `facts`: as of `external_json`. Empty if links were not checked.
    """
    if facts is None:
        return ""
    if not facts["urls"]:
        return "No links to other sites"
    sites = f"{counted(facts['urls'], 'URL')} on other sites"
    if facts["finished"] and facts["unasked"] == facts["urls"]:
        return f"{sites}, none of them checked yet ({facts['because'] or 'no answer'})"
    answered = facts[OK]
    parts = [f"{answered:,} {'answers' if answered == 1 else 'answer'}"]
    parts += [f"{facts[kind]:,} {kind}" for kind in (BROKEN, UNKNOWN)]
    left, because = facts["left"], facts["because"] or ""
    if facts["unasked"] and (not facts["finished"] or facts["unasked"] != left):
        parts.append(f"{facts['unasked']:,} not checked yet")
    words = f"{sites}: {', '.join(parts)}"
    if not facts["finished"]:
        return f"{words}; the check was interrupted, and the next run continues it"
    return f"{words}; {left:,} left to the next run ({because})" if left else words


def left_words(left_out: Mapping[str, tuple[int, str]]) -> str:
    """What else was not asked after the crawl; empty if that is nothing."""
    parts = (
        f"{counted(count, noun)} {words} ({because})"
        for kind, (count, because) in sorted(left_out.items())
        for noun, words in [LEFT.get(kind, (kind, "left out"))]
    )
    return "; ".join(parts)


def external_json(check: ExternalCheck | None, counts: ExternalCounts | None) -> dict[str, Any] | None:
    """What is known of the links to other sites; None if they were not checked."""
    if check is None or counts is None:
        return None
    return {
        "urls": sum(counts.codes.values()) + counts.unchecked,
        **{kind: counts.of(kind) for kind in EXTERNAL_KINDS},
        "unasked": counts.unchecked,
        "answers": dict(sorted(counts.codes.items())),
        "finished": check.finished,
        "left": check.left,
        "because": check.because or None,
    }
