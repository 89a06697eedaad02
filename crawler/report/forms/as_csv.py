"""A report, or a list, as CSV (RFC 4180): UTF-8, always with a header, and safe from formula injection.

Titles and URLs come from the site: a cell that begins like a formula gets a leading apostrophe.
"""

import csv
from collections.abc import Iterator, Sequence
from typing import Any, Final

from crawler.parse.credentials import masked
from crawler.report.report import SiteReport

FIELDS: Final = ("severity", "code", "url", "status", "detail", "links", "source")
_FORMULA: Final = frozenset("=+-@\t\r")


def rendered(report: SiteReport) -> str:
    """The whole file: a row for each item and page that links to it; one row without such pages."""
    return "".join(line(row) for row in (FIELDS, *_rows(report)))


def _rows(report: SiteReport) -> Iterator[Sequence[Any]]:
    for finding in report.findings:
        for item in finding.items:
            for source in item.sources or ("",):
                code = finding.code
                yield code.severity.value, code.value, item.url, item.status, item.detail, item.links, source


class _Echo:
    """A file whose `write` returns the text, which the `csv.writer` then returns."""

    @staticmethod
    def write(text: str) -> str:
        return text


_WRITER: Final = csv.writer(_Echo())


def line(cells: Sequence[Any]) -> str:
    """One row."""
    row: Any = _WRITER.writerow(map(_cell, cells))
    return str(row)


def _cell(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else value


def cell(value: str) -> str:
    """A text that is safe in a spreadsheet: never read as a formula, and without lone surrogates."""
    text = masked(value)
    if not text.isascii() or "\0" in text:
        text = text.replace("\0", "").encode("utf-8", "backslashreplace").decode()
    return f"'{text}" if text[:1] in _FORMULA else text
