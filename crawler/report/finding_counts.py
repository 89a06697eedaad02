"""Counts the findings of a run, without their items: for the summary of a crawl and `--fail-on`.

The passes are those of `findings`, over fewer rows: pages that are listed and were found by links are only
counted, by the state itself (`Tallies`). The counts are those of the whole report; a test compares them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from crawler.model.rows import Tallies
from crawler.report.catalogue import Code
from crawler.report.findings import Findings, PageFinding, site_findings
from crawler.report.report import Finding, Known

COUNTED: Final = frozenset({Code.NO_LASTMOD, Code.DUPLICATE_CONTENT, Code.DUPLICATE_TITLE})
"""Codes that the state counts."""


class FindingCounts:
    """`add` the findings of every suspect; then `findings`."""

    def __init__(self, known: Known, findings: Findings) -> None:
        self._known, self._findings = known, findings
        self._counts, self._new, self._links = Counter[Code](), Counter[Code](), Counter[Code]()

    def add(self, findings: Iterable[PageFinding]) -> None:
        """Count the findings of a page."""
        for found in findings:
            self._counts[found.code] += 1
            self._new[found.code] += found.new
            self._links[found.code] += found.links

    def findings(self, tallies: Tallies) -> Sequence[Finding]:
        """All findings without their items, the most severe first."""
        known = self._known
        every = {finding.code: finding for finding in site_findings(known)}
        if known.run.complete:
            every |= {finding.code: finding for finding in _counted(tallies, known.run.number)}
        every |= {code: self._finding(code) for code in self._counts if code not in COUNTED}
        return [every[code] for code in Code if code in every]

    def _finding(self, code: Code) -> Finding:
        pages = self._findings.pages_in(code)
        return Finding(code, self._counts[code], self._new[code], self._links[code], pages)


def _counted(tallies: Tallies, run: int) -> Sequence[Finding]:
    undated = Finding(Code.NO_LASTMOD, tallies.undated, tallies.newly_undated if run > 1 else 0)
    same_content = Finding(Code.DUPLICATE_CONTENT, tallies.content_groups, pages=tallies.content_pages)
    same_title = Finding(Code.DUPLICATE_TITLE, tallies.title_groups, pages=tallies.title_pages)
    return [finding for finding in (undated, same_content, same_title) if finding.count]
