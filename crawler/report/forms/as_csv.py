"""A report, or a list, as CSV (RFC 4180): UTF-8, a header always, and no cell that a spreadsheet would calculate.

Titles and URLs come from the site: a cell that begins as a formula does gets a leading apostrophe.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

from crawler.parse.credentials import masked
from crawler.report.report import Item, Report

FIELDS: Final = ("severity", "code", "url", "status", "detail", "links", "source")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def rendered(report: Report) -> str:
    """A row for each item and each page that links to it; an item that nothing names has one."""
    return "".join(line(row) for row in (FIELDS, *_rows(report)))


def _rows(report: Report) -> Iterator[Sequence[Any]]:
    for finding in report.findings:
        for item in finding.items:
            for source in item.sources or ("",):
                yield (finding.code.severity.value, finding.code.value, *_cells(item), source)


def _cells(item: Item) -> Sequence[Any]:
    return item.url, item.status, item.detail, item.links


def line(cells: Sequence[Any]) -> str:
    """One row."""
    out = io.StringIO()
    csv.writer(out).writerow([cell(value) for value in cells])
    return out.getvalue()


def cell(value: Any) -> Any:
    """A value as a spreadsheet may see it: text that begins as a formula is told to be text. No lone surrogates."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = masked(value).replace("\0", "").encode("utf-8", "backslashreplace").decode()
    return f"'{text}" if text.startswith(_FORMULA) else text
