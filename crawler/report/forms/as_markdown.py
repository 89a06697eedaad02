"""A report as Markdown, for job summaries and comments: a table of findings, and their first items.

It is shorter than `ROOM`, since a comment on GitHub is limited to 65,536 characters. Text from the network is
made printable and put in code spans, in which it is not read as markup.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from crawler.report.actions import actions
from crawler.report.actions import words as action_words
from crawler.report.formatting import minute
from crawler.report.forms.as_text import (
    ACTIONS,
    UNFINISHED,
    balance,
    detail,
    external,
    linked,
    mended,
    no_findings,
    partial,
    refusal,
    run_status,
    shown,
    standing,
)
from crawler.report.printable import printable
from crawler.report.report import Finding, Item, SiteReport, measure

ROOM: Final = 60_000  # characters
ITEMS: Final = 20  # items of each finding
CUT: Final = "\nThe rest did not fit: see `sitemap-crawler report`.\n"
_TICKS: Final = re.compile(r"`+")
_PLAIN: Final = re.compile(r"(?!\(?www\.)\(?[0-9a-z,.;:%'-]*[),.;:]*", re.IGNORECASE | re.ASCII)
"""A word that is no markup anywhere but at the beginning of a line."""


def text_of(report: SiteReport) -> str:
    """The whole document."""
    parts = [_head(report), *(_details(finding, report.known.site) for finding in report.findings)]
    if not report.known.run.complete:
        parts.append(f"\n{UNFINISHED}\n")
    text = ""
    for part in parts:
        if len(text) + len(part) + len(CUT) > ROOM:
            return text + CUT
        text += part
    return text


def _head(report: SiteReport) -> str:
    run = report.known.run
    refused = refusal(report)
    lines = [
        f"# {code(printable(report.known.name) + '/')}",
        "",
        f"Run {run.number}, {minute(run.started)}, {run_status(report)}: {', '.join(balance(report))}."
        + (f" Crawled at {code(printable(report.known.site) + '/')}." if report.known.is_copy else ""),
        "",
        (f"**Not published.** {plain(refused)} " if refused else "") + standing(report),
        "",
        *([words, ""] if (words := partial(report)) else []),
        *([f"{words}.", ""] if (words := external(report)) else []),
    ]
    if fixed := [f"- mended: {code(one.value)}, {words}" for one, words in mended(report, code)]:
        lines += [*fixed, ""]
    if not report.findings:
        return "\n".join([*lines, no_findings(report), ""])
    if firsts := actions(report)[:ACTIONS]:
        site = report.known.site
        lines += ["Do first:", ""]
        lines += [f"1. {_action(one.text, one.quoted, site)}: {action_words(one)}" for one in firsts]
        lines += [""]
    lines += ["| severity | finding | how many | |", "|---|---|---|---|"]
    lines += [
        f"| {f.code.severity.value} | {code(f.code.value)} | {measure(f)} | {f.code.says} |"
        for f in report.findings
    ]
    return "\n".join([*lines, ""])


def _action(text: str, quoted: Sequence[str], site: str) -> str:
    """What to do, with the parts that come from the site in code spans."""
    longest, *others = [*sorted(filter(None, quoted), key=len, reverse=True), ""]
    if not longest:
        return text
    return code(shown(longest, site, 400)).join(_action(own, others, site) for own in text.split(longest))


def _details(finding: Finding, site: str) -> str:
    items = finding.items[:ITEMS]
    if not items:
        return ""
    lines = ["", "<details>", f"<summary>{finding.code.heading}: {measure(finding)}</summary>", ""]
    lines += [f"- {', '.join(_words(finding, item, site))}" for item in items]
    more = finding.count - len(items)
    rest = (
        [f"- and {more:,} more: `sitemap-crawler list findings --only {finding.code.value}`"] if more else []
    )
    return "\n".join([*lines, *rest, "", "</details>", ""])


def _words(finding: Finding, item: Item, site: str) -> Iterator[str]:
    yield " ".join(
        filter(None, [str(item.status or ""), code(shown(item.url, site)), "**new**" if item.new else ""])
    )
    if item.detail:
        yield code(detail(finding.code, item, site))
    if item.sources or item.links:
        yield linked(item, site, finding.code, code)


def plain(text: str) -> str:
    """A sentence in which flags, and words that may come from the site, are in code spans."""
    return " ".join(map(_plain, text.split(" ")))


def _plain(word: str) -> str:
    if _PLAIN.fullmatch(word) and not word.startswith("--"):
        return word
    core = word.removeprefix("(").rstrip(",.;:)")
    before, after = word.split(core, 1) if core else ("", "")
    return f"{before}{code(core or word)}{after}"


def code(text: str) -> str:
    """A code span, safe for any text: its fence is longer than any in the text, and `|` is replaced."""
    text = text.replace("|", "¦") or " "
    fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
