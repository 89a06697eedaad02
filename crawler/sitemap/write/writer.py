"""Writes sitemaps as a stream: entries in, files out, in a folder that nobody looks at yet.

The limits of sitemaps.org hold to the byte: a part never has more than `max_urls` entries or `max_bytes` before
compression, its closing tag included. The bytes depend on the entries and on the ranges of last time alone: gzip
carries no time and no name. Which URL goes into which file is for `shards`; which files replace which for `publish`.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from crawler.errors import OutputError
from crawler.model.facts import Entry
from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES, MAX_LOC, NAMESPACE
from crawler.parse.dates import read_w3c, w3c
from crawler.sitemap.write.shards import Leaf, Limits, Shard, Shards

MIN_LOC: Final = 12  # characters, by sitemap.xsd
BATCH: Final = 512  # entries compressed at a time
LEVEL: Final = 6  # twice as quick as 9, and 15 % larger

_LOC: Final = re.compile(r"[!-~]+")  # visible ASCII: what a URL is made of, and all of it fit for XML
_SPECIAL: Final = re.compile("[&<>\"']")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


def _url_in_xml(line: bytes) -> str:
    text = line[len("<url><loc>") : line.index(b"</loc>")].decode()
    for char, entity in reversed(_ENTITIES.items()):  # the ampersand last
        text = text.replace(entity, char)
    return text


def _date_in(line: bytes) -> bytes:
    """The lastmod of a line, which is one second in UTC; so later ones are greater texts. Nothing if there is none."""
    at = line.find(b"<lastmod>") + len("<lastmod>")
    return line[at : line.index(b"<", at)] if at >= len("<lastmod>") else b""


@dataclass(frozen=True, slots=True)
class Form:
    """How entries are written down. `url_of`: the URL in a line."""

    suffix: str
    url_of: Callable[[bytes], str]
    head: str = ""
    tail: str = ""
    splits: bool = True


XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
FORMS: Final = {
    "xml": Form("xml", _url_in_xml, f'{XML}<urlset xmlns="{NAMESPACE}">\n', "</urlset>\n"),
    "txt": Form("txt", lambda line: line.decode().rstrip("\n")),
    "jsonl": Form(
        "jsonl", lambda line: str(json.loads(line)["loc"]), splits=False
    ),  # not a sitemap of the protocol: its limits are none of ours
}
INDEX: Final = Form("xml", _url_in_xml, f'{XML}<sitemapindex xmlns="{NAMESPACE}">\n', "</sitemapindex>\n")


@dataclass(frozen=True, slots=True)
class Style:
    """What the files look like."""

    form: str = "xml"
    gzip: bool = True
    max_urls: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES
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
    shard: Shard | None = None  # the range of URLs it holds, if there are several


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
    """Entries in order of their URL go in by `add`; `finish` answers with the files, the entry point last."""

    def __init__(
        self,
        folder: Path,
        base: str,
        style: Style,
        old: Sequence[Shard] = (),
        taken: Collection[int] = (),
    ) -> None:
        """`base`: where the files will be found, as `https://example.com`; the index names them so.

        `old`: which range of URLs each file held the last time. `taken`: numbers that no new file may have.
        """
        self._folder, self._base, self._style = folder, base, style
        self._form = FORMS[style.form]
        self._fixed = _fixed_fields(style)
        self._limits = _limits(self._form, style)
        self._shards = Shards(old, self._limits, self._form.url_of, taken)
        self._held: list[Leaf] | None = []  # as long as all may fit one file
        self._parts: list[Part] = []
        self._lines = self._bytes = 0
        self.refused = 0

    def add(self, entries: Iterable[Entry]) -> None:
        """Write entries. Those that no sitemap may hold are counted in `refused`."""
        for entry in entries:
            line = None if refusal(entry.url) else self._line(entry)
            if line is None or not self._limits.hold(1, len(line)):
                self.refused += 1
                continue
            self._lines += 1
            self._bytes += len(line)
            if leaves := self._shards.add(entry.url, line):
                self._take(leaves)
            elif self._held is not None and not self._limits.hold(self._lines, self._bytes):
                self._take(())

    def _line(self, entry: Entry) -> bytes:
        date = "" if entry.lastmod is None else w3c(entry.lastmod)
        match self._style.form:
            case "xml":
                dated = f"<lastmod>{date}</lastmod>" if date else ""
                return f"<url><loc>{escape(entry.url)}</loc>{dated}{self._fixed}</url>\n".encode()
            case "txt":
                return f"{entry.url}\n".encode()
        return (json.dumps({"loc": entry.url, "lastmod": date or None}) + "\n").encode()

    def _take(self, leaves: Iterable[Leaf]) -> None:
        """Leaves that are done: kept while they may still become one file, else written."""
        for leaf in leaves:
            if self._held is None:
                self._write(leaf)
            else:
                self._held.append(leaf)
        if self._held is not None and not self._limits.hold(self._lines, self._bytes):
            held, self._held = self._held, None
            for leaf in held:
                self._write(leaf)

    def _write(self, leaf: Leaf) -> None:
        if self._form.splits:
            part = self._part(self._name(leaf.shard.number), leaf.lines)
            self._parts.append(replace(part, shard=leaf.shard))
        else:  # one file, however long: a gzip member for each leaf
            self._parts = [self._part(self._name(None), leaf.lines)]

    def _part(self, name: str, lines: Sequence[bytes]) -> Part:
        newest = max(map(_date_in, lines), default=b"") if self._form.suffix == "xml" else b""
        part = _write_file(self._folder / name, self._form, self._style, lines)
        return replace(part, newest=read_w3c(newest.decode()))

    def _name(self, number: int | None) -> str:
        place = "" if number is None else f"-{number:05}"
        return f"sitemap{place}.{self._form.suffix}{'.gz' if self._style.gzip else ''}"

    def finish(self) -> list[Part]:
        """Write what is left. One part is the entry point itself; of several, an index is.

        Raises `OutputError` when there are more parts than an index may name.
        """
        self._take(self._shards.finish())
        if self._held is not None:
            lines = [line for leaf in self._held for line in leaf.lines]
            return [self._part(self._name(None), lines)] if lines else []
        if not self._form.splits:
            return [replace(part, urls=self._lines) for part in self._parts]
        if len(self._parts) > MAX_ENTRIES:
            raise OutputError(
                f"{len(self._parts):,} files are more than an index may name ({MAX_ENTRIES:,})."
            )
        return [*self._parts, self._index()]

    def _index(self) -> Part:
        lines = []
        for part in self._parts:
            dated = f"<lastmod>{w3c(part.newest)}</lastmod>" if part.newest else ""
            lines.append(
                f"<sitemap><loc>{escape(f'{self._base}/{part.name}')}</loc>{dated}</sitemap>\n".encode()
            )
        name = f"sitemap.xml{'.gz' if self._style.gzip else ''}"
        return replace(_write_file(self._folder / name, INDEX, self._style, lines), urls=0)


def _limits(form: Form, style: Style) -> Limits:
    """Of the lines of one file: its head and tail take their part of the bytes."""
    if not form.splits:  # of what is kept in memory
        return Limits(MAX_ENTRIES, MAX_BYTES)
    return Limits(style.max_urls, style.max_bytes - len(form.head) - len(form.tail))


def _fixed_fields(style: Style) -> str:
    often = f"<changefreq>{style.changefreq}</changefreq>" if style.changefreq else ""
    weight = "" if style.priority is None else f"<priority>{style.priority:.1f}</priority>"
    return often + weight


def _write_file(path: Path, form: Form, style: Style, lines: Sequence[bytes]) -> Part:
    """A new file, compressed if wanted, and the facts on it."""
    plain = 0
    with open(path, "xb" if form.splits else "ab") as raw:
        out = gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) if style.gzip else raw
        with out:
            for piece in _pieces(form, lines):
                plain += len(piece)
                out.write(piece)
    data = hashlib.sha256()
    with open(path, "rb") as file:
        size = 0
        while chunk := file.read(1 << 20):
            size += len(chunk)
            data.update(chunk)
    return Part(path.name, len(lines), size, plain, data.hexdigest())


def _pieces(form: Form, lines: Sequence[bytes]) -> Iterator[bytes]:
    yield form.head.encode()
    for at in range(0, len(lines), BATCH):
        yield b"".join(lines[at : at + BATCH])
    yield form.tail.encode()
