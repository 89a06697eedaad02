"""Writes sitemaps as a stream: entries in, files out, in a folder that nobody looks at yet.

The limits of sitemaps.org hold to the byte: a part never has more than `max_urls` entries or `max_bytes` before
compression, its closing tag included. The bytes depend on the entries alone: gzip carries no time and no name.
Which files replace which is for `publish`.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from crawler.dates import w3c
from crawler.errors import OutputError
from crawler.model import MAX_ENTRIES, MAX_LOC, NAMESPACE, Entry

MIN_LOC: Final = 12  # characters, by sitemap.xsd
BATCH: Final = 512  # entries compressed at a time
LEVEL: Final = 6  # twice as quick as 9, and 15 % larger

_LOC: Final = re.compile(r"[!-~]+")  # visible ASCII: what a URL is made of, and all of it fit for XML
_SPECIAL: Final = re.compile("[&<>\"']")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


@dataclass(frozen=True, slots=True)
class Form:
    """How entries are written down."""

    suffix: str
    head: str = ""
    tail: str = ""
    splits: bool = True


XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
FORMS: Final = {
    "xml": Form("xml", f'{XML}<urlset xmlns="{NAMESPACE}">\n', "</urlset>\n"),
    "txt": Form("txt"),
    "jsonl": Form("jsonl", splits=False),  # not a sitemap of the protocol: its limits are none of ours
}
INDEX: Final = Form("xml", f'{XML}<sitemapindex xmlns="{NAMESPACE}">\n', "</sitemapindex>\n")


@dataclass(frozen=True, slots=True)
class Style:
    """What the files look like."""

    form: str = "xml"
    gzip: bool = True
    max_urls: int = MAX_ENTRIES
    max_bytes: int = 52_428_800
    changefreq: str | None = None
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A file that was written. Sizes in bytes."""

    name: str
    urls: int
    size: int  # as it lies on the disk
    plain: int  # before compression
    sha256: str
    newest: datetime | None = None


def escape(text: str) -> str:
    """Text as XML content or attribute: the five characters that sitemaps.org wants escaped."""
    return _SPECIAL.sub(lambda match: _ENTITIES[match[0]], text) if _SPECIAL.search(text) else text


def refusal(loc: str) -> str | None:
    """Why a URL cannot stand in a sitemap; None when it can (sitemaps.org, sitemap.xsd)."""
    if len(loc) > MAX_LOC:
        return f"longer than {MAX_LOC:,} characters"
    if len(loc) < MIN_LOC:
        return f"shorter than {MIN_LOC} characters"
    return None if _LOC.fullmatch(loc) else "holds characters that a URL cannot have"


class Writer:
    """Entries in order of their URL go in by `add`; `finish` answers with the files, the entry point last.

    A context manager: on the way out it lets go of a file that was not finished.
    """

    def __init__(self, folder: Path, base: str, style: Style) -> None:
        """`base`: where the files will be found, as `https://example.com`; the index names them so."""
        self._folder, self._base, self._style = folder, base, style
        self._form = FORMS[style.form]
        self._fixed = _fixed_fields(style)
        self._parts: list[Part] = []
        self._open: _File | None = None
        self.refused = 0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Leave half a file as it is: its folder is thrown away."""
        if self._open:
            self._open.abandon()

    def add(self, entries: Iterable[Entry]) -> None:
        """Write entries. Those that no sitemap may hold are counted in `refused`."""
        for entry in entries:
            line = None if refusal(entry.url) else self._line(entry)
            if line is None or not self._write(line, entry):
                self.refused += 1

    def _line(self, entry: Entry) -> bytes:
        date = "" if entry.lastmod is None else w3c(entry.lastmod)
        match self._style.form:
            case "xml":
                dated = f"<lastmod>{date}</lastmod>" if date else ""
                return f"<url><loc>{escape(entry.url)}</loc>{dated}{self._fixed}</url>\n".encode()
            case "txt":
                return f"{entry.url}\n".encode()
        return (json.dumps({"loc": entry.url, "lastmod": date or None}) + "\n").encode()

    def _write(self, line: bytes, entry: Entry) -> bool:
        """Whether the line fits: into the open part, or else into a new one."""
        if self._open is None or not self._open.fits(line):
            self._close()
            number = len(self._parts) + 1
            if not _fits_alone(line, self._form, self._style):
                return False
            self._open = _File(self._folder / self._name(number), self._form, self._style)
        self._open.write(line, entry.lastmod)
        return True

    def _name(self, number: int | None) -> str:
        place = "" if number is None else f"-{number:05}"
        return f"sitemap{place}.{self._form.suffix}{'.gz' if self._style.gzip else ''}"

    def _close(self) -> None:
        if self._open:
            self._parts.append(self._open.close())
            self._open = None

    def finish(self) -> list[Part]:
        """Close the files. One part is the entry point itself; of several, an index is.

        Raises `OutputError` when there are more parts than an index may name.
        """
        self._close()
        if len(self._parts) == 1:
            [only] = self._parts
            (self._folder / only.name).rename(self._folder / self._name(None))
            return [_named(only, self._name(None))]
        if len(self._parts) > MAX_ENTRIES:
            raise OutputError(
                f"{len(self._parts):,} files are more than an index may name ({MAX_ENTRIES:,})."
            )
        return [*self._parts, self._index()] if self._parts else []

    def _index(self) -> Part:
        name = f"sitemap.xml{'.gz' if self._style.gzip else ''}"
        index = self._open = _File(self._folder / name, INDEX, self._style)
        for part in self._parts:
            dated = f"<lastmod>{w3c(part.newest)}</lastmod>" if part.newest else ""
            loc = escape(f"{self._base}/{part.name}")
            index.write(f"<sitemap><loc>{loc}</loc>{dated}</sitemap>\n".encode(), part.newest)
        done = index.close()
        self._open = None
        return _named(done, name, urls=0)


def _fits_alone(line: bytes, form: Form, style: Style) -> bool:
    return not form.splits or len(form.head) + len(line) + len(form.tail) <= style.max_bytes


def _fixed_fields(style: Style) -> str:
    often = f"<changefreq>{style.changefreq}</changefreq>" if style.changefreq else ""
    weight = "" if style.priority is None else f"<priority>{style.priority:.1f}</priority>"
    return often + weight


def _named(part: Part, name: str, urls: int | None = None) -> Part:
    return Part(name, part.urls if urls is None else urls, part.size, part.plain, part.sha256, part.newest)


class _File:
    """One file while it is written."""

    def __init__(self, path: Path, form: Form, style: Style) -> None:
        self._path, self._tail, self._limits = path, form.tail.encode(), form.splits
        self._max_urls, self._max_bytes = style.max_urls, style.max_bytes
        self._sum = _Summing(path)
        self._out: _Summing | gzip.GzipFile = self._sum
        if style.gzip:
            self._out = gzip.GzipFile("", "wb", LEVEL, self._sum, mtime=0)
        self._waiting = [form.head.encode()]
        self._plain, self._urls = len(self._waiting[0]), 0
        self._newest: datetime | None = None

    def fits(self, line: bytes) -> bool:
        """Whether the file stays within its limits with this line and its closing tag."""
        if not self._limits:
            return True
        whole = self._plain + len(line) + len(self._tail)
        return self._urls < self._max_urls and whole <= self._max_bytes

    def write(self, line: bytes, lastmod: datetime | None) -> None:
        self._waiting.append(line)
        self._plain += len(line)
        self._urls += 1
        if lastmod and (self._newest is None or lastmod > self._newest):
            self._newest = lastmod
        if len(self._waiting) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        self._out.write(b"".join(self._waiting))
        self._waiting.clear()

    def close(self) -> Part:
        self._waiting.append(self._tail)
        self._flush()
        self._out.close()
        self._sum.close()
        plain = self._plain + len(self._tail)
        return Part(self._path.name, self._urls, self._sum.size, plain, self._sum.hexdigest(), self._newest)

    def abandon(self) -> None:
        """Let go, whatever the disk says to it."""
        for file in (self._out, self._sum):
            with suppress(OSError):
                file.close()


class _Summing:
    """A new file that knows the sum of its bytes."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "xb")  # noqa: SIM115 - closed by `close`
        self._sha, self.size = hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._sha.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def hexdigest(self) -> str:
        return self._sha.hexdigest()
