"""Findings in the order of the report, for a list of all of them: by code, then the most linked ones or the
largest groups first, then by URL.

It holds two numbers for each finding, and not the finding, which its caller makes again from the page.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from crawler.report.catalogue import GROUPED, Code
from crawler.report.clicks import numbers
from crawler.report.findings import PageFinding


@dataclass(eq=False, repr=False, slots=True)
class _OfCode:
    """The findings with one code, as they came: by URL."""

    pages: "array[int]" = field(default_factory=lambda: array("I"))
    keys: "array[int]" = field(default_factory=lambda: array("I"))  # the group, or how many pages link there


class FindingOrder:
    """`add` every finding, then ask for the `pages` of each code."""

    def __init__(self) -> None:
        self._codes: defaultdict[Code, _OfCode] = defaultdict(_OfCode)

    def add(self, found: PageFinding) -> None:
        """Add a finding. Pages come by URL; several findings of a page with one code count as one."""
        known = self._codes[found.code]
        if known.pages and known.pages[-1] == found.page.id:
            return
        known.pages.append(found.page.id)
        known.keys.append(found.links if found.group is None else found.group)

    def pages(self, code: Code) -> Sequence[int]:
        """The ids of the pages with that code. Those of a group follow each other."""
        known = self._codes[code]
        counts = Counter(known.keys)  # in the order of the first page of each
        is_grouped = code in GROUPED
        ranked = sorted(counts, key=lambda key: -(counts[key] if is_grouped else key))
        following = dict(zip(ranked, accumulate((counts[key] for key in ranked), initial=0), strict=False))
        ordered = numbers(len(known.pages))
        for page, key in zip(known.pages, known.keys, strict=True):
            ordered[following[key]] = page
            following[key] += 1
        return ordered
