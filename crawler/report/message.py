"""The message about the end of a run: a short text for a chat, and the report without its lists.

A chat interprets what it is sent, so whatever may come from the network stands in a code span, without the
characters that could end it or that Slack reads as commands.
"""

from collections.abc import Sequence
from typing import Any, Final

from crawler.errors import SUCCESS, Exit
from crawler.model.rows import PublicationRow
from crawler.parse.credentials import masked
from crawler.report.catalogue import Severity
from crawler.report.formatting import counted
from crawler.report.forms import as_json
from crawler.report.forms.as_text import balance
from crawler.report.printable import printable
from crawler.report.report import Finding, Item, SiteReport

WHEN: Final = ("problem", "change", "always")
ITEMS: Final = 5
LONGEST: Final = 300  # characters of a URL or a sentence
_CHAT: Final = str.maketrans({"<": "(", ">": ")", "`": "'"})
ENDS: Final = {
    Exit.OK: "is complete",
    Exit.INTERNAL: "failed: internal error",
    Exit.USAGE: "did not start: wrong settings",
    Exit.STORAGE: "failed: something could not be written or read",
    Exit.UNREACHABLE: "failed: the start URL is unreachable",
    Exit.ROBOTS: "failed: robots.txt forbids the start URL",
    Exit.GUARD: "was refused by the publish guard; the old sitemap stays",
    Exit.PARTIAL: "is not complete; the next start resumes it",
    Exit.FINDINGS: "is complete, with findings that --fail-on names",
    Exit.BUSY: "did not start: another run is in progress",
    Exit.INTERRUPTED: "was interrupted",
    Exit.TERMINATED: "was terminated",
}


def is_due(when: str, code: Exit, findings: Sequence[Finding], published: PublicationRow | None) -> bool:
    """Whether a run that ended with `code` is worth a message. `published`: what this run published."""
    if when == "always" or code is not Exit.OK or _new_errors(findings):
        return True
    return when == "change" and code in SUCCESS and _has_changed(published)


def _has_changed(published: PublicationRow | None) -> bool:
    """Whether the publication differs from the one before; the first one does."""
    if published is None:
        return False
    changes = (published.added, published.removed, published.changed)
    return any(count is None or count > 0 for count in changes)


def _new_errors(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.code.severity is Severity.ERROR and finding.new]


def body(site: str, code: Exit, why: str, report: SiteReport | None) -> dict[str, Any]:
    """The object to post: `text`, and `report` as in docs/use/report.schema.json without its lists."""
    return {"text": text(site, code, why, report), "report": _without_lists(report)}


def text(site: str, code: Exit, why: str, report: SiteReport | None) -> str:
    """At most three lines, and up to five new errors. `why`: the sentence of an error, or of the guard."""
    run = f"run {report.known.run.number} of " if report else "the crawl of "
    lines = [f"sitemap-crawler: {run}{_code(site)} {ENDS[code]} (exit {code.value})"]
    details = [_code(why)] if why else []
    details += [" · ".join(balance(report))] if report else []
    lines += details[:1] if len(details) < 2 else [f"{details[0]} {details[1]}"]
    new = _new_errors(report.findings) if report else []
    if new:
        counts = ", ".join(f"{finding.code.value} {finding.new:,}" for finding in new)
        lines.append(f"New errors: {counts}")
        items = [item for finding in new for item in finding.items if item.new]
        lines += [_item(item) for item in items[:ITEMS]]
    return "\n".join(lines)


def _item(item: Item) -> str:
    where = f", linked from {counted(item.links, 'page')}" if item.links else ""
    return f"• {item.status or 'no answer'} {_code(item.url)}{where}"


def _code(text: str) -> str:
    """Text from the network as a code span: no markup, no link, and no mention of the whole channel."""
    return f"`{printable(masked(text), LONGEST).translate(_CHAT)}`"


def _without_lists(report: SiteReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    values = as_json.masked_json(report)
    for finding in values["findings"]:
        del finding["items"], finding["more"]
    for name in ("changes", "folders", "slowest", "largest", "traps"):
        del values[name]
    del values["robots"]["rules"]
    return values
