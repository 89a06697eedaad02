"""What to do first: the findings as actions, each with how much of a finding it mends.

An action is merged over all items that it mends: a link in the template, a page with many faults, a folder
that holds most of the failing URLs. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from crawler.report.advice import ADVICE
from crawler.report.catalogue import GROUPED, Code, Severity
from crawler.report.formatting import counted
from crawler.report.report import Finding, SiteReport
from crawler.report.url_kind import LINK_CODES

MOST: Final = 20  # actions
LARGE: Final = 0.25  # a page or a folder with this share of a finding,
FEWEST: Final = 3  # and at least so many of its URLs, is an action of its own
SEVERITIES: Final = tuple(Severity)


class Action(Struct, frozen=True):
    """Something to do."""

    text: str
    mends: int
    of: int
    unit: str  # what is counted
    codes: Sequence[Code]
    page: str | None = None  # on which it is to be done
    target: str | None = None  # of the links, or the folder
    place: str | None = None  # of the links, on every page

    @property
    def severity(self) -> Severity:
        """That of the most severe finding that it mends."""
        return min((code.severity for code in self.codes), key=SEVERITIES.index)


def actions(report: SiteReport) -> Sequence[Action]:
    """At most `MOST`: errors and warnings, those that mend most first; then what is left of each finding."""
    serious = [finding for finding in report.findings if finding.code.severity is not Severity.INFO]
    large = [*_merged(one for finding in serious for one in _in_template(finding)), *_large(report, serious)]
    done = {code for action in large for code in action.codes if action.mends == action.of}
    rest = [_whole(finding) for finding in serious if finding.code not in done]
    return sorted([*large, *rest], key=lambda one: (-one.mends, SEVERITIES.index(one.severity), one.text))[
        :MOST
    ]


def _in_template(finding: Finding) -> Iterator[Action]:
    """A link on nearly every page: one change mends them all."""
    if finding.code not in LINK_CODES:
        return
    for item in finding.items:
        if item.site_wide:
            where = f"from the {item.place}" if item.place else "from the template"
            text = f"Correct or remove the link to {item.url} {where}"
            if finding.code is Code.REDIRECT_LINKED:
                text = f"Link to {item.detail} instead of {item.url} in the {item.place or 'template'}"
            yield Action(
                text, item.links, finding.links, "link", [finding.code], target=item.url, place=item.place
            )


def _merged(found: Iterator[Action]) -> Sequence[Action]:
    """Actions about the same target as one."""
    by_target: dict[str | None, Action] = {}
    for action in found:
        known = by_target.setdefault(action.target, action)
        if known is not action:
            codes = [*known.codes, *action.codes]
            by_target[action.target] = Action(
                known.text, known.mends, known.of, known.unit, codes, target=known.target, place=known.place
            )
    return list(by_target.values())


def _large(report: SiteReport, findings: Sequence[Finding]) -> Iterator[Action]:
    """Folders and pages with much of a finding."""
    for finding in findings:
        if finding.code not in LINK_CODES:
            continue
        for folder, urls in report.failing_folders.get(finding.code, ()):
            if _is_large(urls, finding.count):
                text = f"Look into {folder}: it holds {urls:,} of the {finding.count:,} URLs"
                yield Action(text, urls, finding.count, "URL", [finding.code], target=folder)
        local = finding.count - sum(item.site_wide for item in finding.items)
        for page, items in finding.by_page[:1]:
            if _is_large(items, local):
                text = f"Correct the links on {page}: {items:,} of them lead to such URLs"
                yield Action(text, items, finding.count, "URL", [finding.code], page=page)


def _is_large(some: int, every: int) -> bool:
    return some >= max(FEWEST, LARGE * every)


def _whole(finding: Finding) -> Action:
    advice = ADVICE[finding.code].partition(". ")[0].rstrip(".")
    unit = "group" if finding.code in GROUPED else "URL"
    only = finding.items[0].url if finding.count == 1 and finding.items else None
    text = f"{finding.code.heading}: {advice[0].lower()}{advice[1:]}"
    return Action(text, finding.count, finding.count, unit, [finding.code], target=only)


def words(action: Action) -> str:
    """`mends 286 of 331 links`."""
    of = "all" if action.mends == action.of and action.of > 1 else f"{action.mends:,} of"
    return f"mends {of} {counted(action.of, action.unit)}" if action.of > 1 else f"mends 1 {action.unit}"
