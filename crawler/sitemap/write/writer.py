"""Writes sitemaps as a stream of entries into files of a staging folder.

The limits of sitemaps.org are exact: a file never has more than `max_urls` entries, or `max_bytes` before
compression including its closing tag. The output depends only on the entries and the previous shards: gzip
headers have no time or name. `shards` assigns URLs to files; `publish` replaces the old files. Sections have
files of their own: their lines wait on the disk, so that one section at a time is in memory.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from crawler.errors import OutputError
from crawler.model.facts import Element, Entry, Extras
from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES, MAX_LOC, NAMESPACE
from crawler.parse.dates import read_w3c, w3c
from crawler.sitemap.write.shards import NO_FILES, FileLimits, Leaf, OldFiles, Shard, Shards

MIN_LOC: Final = 12  # characters, by sitemap.xsd
HTML_PAGE: Final = "sitemap.html"  # for people, by `html_pages`
ENTRIES_AT_ONCE: Final = 512  # entries compressed at a time
LEVEL: Final = 6  # twice as fast as 9, and 15 % larger

_LOC: Final = re.compile(r"[!-~]+")  # visible ASCII: the characters of a URL, all valid in XML
_END: Final = "</url>\n"
_SPECIAL: Final = re.compile("[&<>\"']")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


def _url_in_xml(line: bytes) -> str:
    text = line[len("<url><loc>") : line.index(b"</loc>")].decode()
    for char, entity in reversed(_ENTITIES.items()):  # & last
        text = text.replace(entity, char)
    return text


def _date_in(line: bytes) -> bytes:
    """The lastmod of a line, or b"". All are in UTC, to the second or day, and compare as text."""
    at = line.find(b"<lastmod>") + len("<lastmod>")
    return line[at : line.index(b"<", at)] if at >= len("<lastmod>") else b""


class FileForm(Struct, frozen=True):
    """A file format. `url_of`: returns the URL in a line."""

    suffix: str
    url_of: Callable[[bytes], str]
    head: str = ""
    tail: str = ""
    splits: bool = True


XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
FORMS: Final = {
    "xml": FileForm("xml", _url_in_xml, f'{XML}<urlset xmlns="{NAMESPACE}">\n', "</urlset>\n"),
    "txt": FileForm("txt", lambda line: line.decode().rstrip("\n")),
    # Not part of the protocol, so without its limits.
    "jsonl": FileForm("jsonl", lambda line: str(json.loads(line)["loc"]), splits=False),
}
INDEX: Final = FileForm("xml", _url_in_xml, f'{XML}<sitemapindex xmlns="{NAMESPACE}">\n', "</sitemapindex>\n")


class Style(Struct, frozen=True):
    """The format of the files."""

    form: str = "xml"
    gzip: bool = True
    max_urls: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES
    changefreq: str | None = None
    priority: float | None = None
    namespaces: tuple[tuple[str, str], ...] = ()  # prefix and URI of the elements that entries may have
    stylesheet: str | None = None  # file name of a stylesheet, for XML
    sections: tuple[str, ...] = ()  # names of those that have files of their own, in the order of the index


class Part(Struct, frozen=True):
    """A written file."""

    name: str
    urls: int
    size: int  # bytes on disk
    sha256: str
    newest: datetime | None = None
    shard: Shard | None = None  # its range of URLs, if there are several files


def escape(text: str) -> str:
    """Text as XML content or attribute, with the five characters escaped that sitemaps.org lists."""
    return _SPECIAL.sub(lambda match: _ENTITIES[match[0]], text) if _SPECIAL.search(text) else text


def refusal(loc: str) -> str | None:
    """Why a URL is not allowed in a sitemap; None if it is (sitemaps.org, sitemap.xsd)."""
    if len(loc) > MAX_LOC:
        return f"longer than {MAX_LOC:,} characters"
    if len(loc) < MIN_LOC:
        return f"shorter than {MIN_LOC} characters"
    return None if _LOC.fullmatch(loc) else "contains characters that are not allowed in a URL"


class Writer:
    """Writes entries: `add` them sorted by URL; `finish` returns the files, the entry point last."""

    def __init__(
        self, folder: Path, base: str, style: Style, old: Mapping[str, OldFiles] = MappingProxyType({})
    ) -> None:
        """`base`: the URL where the files are served, as `https://example.com`, for the index.

        `old`: the files of the last publication, by their section; "" for the others.
        """
        self._folder, self._base, self._style, self._old = folder, base, style, old
        self._form = FORMS[style.form]
        self._fixed = _fields(style.changefreq, style.priority)
        self._limits = _limits(self._form, style)
        self._shards = self._shards_of("")
        # While everything may still fit into one file.
        self._held: list[Leaf] | None = None if style.sections else []
        self._parts: list[Part] = []
        self._lines = self._bytes = 0
        self.refused = self.optional = 0

    def _shards_of(self, section: str) -> Shards:
        return Shards(self._old.get(section, NO_FILES), self._limits, self._form.url_of)

    def add(self, entries: Iterable[Entry], section: str = "") -> None:
        """Writes entries. Those that are not allowed in a sitemap are counted in `refused`.

        `section`: that all of them are in; "" for none.
        """
        if section:
            with open(self._waiting(section), "ab") as file:
                file.writelines(line for _, line in self._allowed(entries))
            return
        for url, line in self._allowed(entries):
            self._lines += 1
            self._bytes += len(line)
            if leaves := self._shards.add(url, line):
                self._take(leaves)
            elif self._held is not None and not self._limits.hold(self._lines, self._bytes):
                self._take(())

    def _allowed(self, entries: Iterable[Entry]) -> Iterator[tuple[str, bytes]]:
        for entry in entries:
            line = None if refusal(entry.url) else self._line(entry)
            if line is None or not self._limits.hold(1, len(line)):
                self.refused += 1
            else:
                yield entry.url, line

    def _waiting(self, section: str) -> Path:
        """The file in which the lines of a section wait."""
        return self._folder / f".{section}"

    def _line(self, entry: Entry) -> bytes:
        date = "" if entry.lastmod is None else w3c(entry.lastmod)
        date = date.partition("T")[0] if entry.is_day else date
        match self._style.form:
            case "xml":
                dated = f"<lastmod>{date}</lastmod>" if date else ""
                more = self._fixed if entry.extras is None else self._fields_of(entry.extras)
                line = f"<url><loc>{escape(entry.url)}</loc>{dated}{more}</url>\n"
                return (self._with_optional(line, entry.extras.elements) if entry.extras else line).encode()
            case "txt":
                return f"{entry.url}\n".encode()
        return (json.dumps({"loc": entry.url, "lastmod": date or None}) + "\n").encode()

    def _fields_of(self, extras: Extras) -> str:
        """The elements after lastmod, in the order of sitemap.xsd."""
        style = self._style
        priority = style.priority if extras.priority is None else extras.priority
        return _fields(extras.changefreq or style.changefreq, priority) + "".join(
            map(_xml, (element for element in extras.elements if not element.is_optional))
        )

    def _with_optional(self, line: str, elements: Iterable[Element]) -> str:
        """A line with its optional elements that fit into a file, without those that have no valid URL."""
        added, room = list[str](), self._limits.size - len(line)
        for element in elements:
            url = element.url
            if not element.is_optional or len(url) > MAX_LOC or not _LOC.fullmatch(url):
                continue
            room -= len(xml := _xml(element))
            if room < 0:
                break
            added.append(xml)
        self.optional += len(added)
        return f"{line.removesuffix(_END)}{''.join(added)}{_END}" if added else line

    def _take(self, leaves: Iterable[Leaf]) -> None:
        """Writes final leaves, or keeps them while everything may still fit into one file."""
        for leaf in leaves:
            if self._held is None:
                self._write(leaf)
            else:
                self._held.append(leaf)
        if self._held is not None and not self._limits.hold(self._lines, self._bytes):
            held, self._held = self._held, None
            for leaf in held:
                self._write(leaf)

    def _write(self, leaf: Leaf, section: str = "") -> None:
        if self._form.splits:
            part = self._part(self._name(leaf.shard.number, section), leaf.lines)
            self._parts.append(replace(part, shard=leaf.shard))
        else:  # one file of any length: a gzip member for each leaf
            self._parts = [self._part(self._name(None), leaf.lines)]

    def _write_section(self, section: str) -> None:
        path = self._waiting(section)
        if not path.exists():
            return
        shards = self._shards_of(section)
        with open(path, "rb") as file:
            for line in file:
                for leaf in shards.add(self._form.url_of(line), line):
                    self._write(leaf, section)
        for leaf in shards.finish():
            self._write(leaf, section)
        path.unlink()

    def _part(self, name: str, lines: Sequence[bytes]) -> Part:
        newest = max(map(_date_in, lines), default=b"") if self._form.suffix == "xml" else b""
        part = _write_file(self._folder / name, self._form, self._style, lines)
        return replace(part, newest=read_w3c(newest.decode()))

    def _name(self, number: int | None, section: str = "") -> str:
        name = f"sitemap-{section}" if section else "sitemap"
        place = "" if number is None else f"-{number:05}"
        return f"{name}{place}.{self._form.suffix}{'.gz' if self._style.gzip else ''}"

    def finish(self) -> list[Part]:
        """Writes the rest. A single file is the entry point; several get an index.

        Raises `OutputError` if there are more files than an index may list.
        """
        self._take(self._shards.finish())
        if self._held is not None:
            lines = [line for leaf in self._held for line in leaf.lines]
            return [self._part(self._name(None), lines)] if lines else []
        if not self._form.splits:
            return [replace(part, urls=self._lines) for part in self._parts]
        for section in self._style.sections:
            self._write_section(section)
        if not self._parts:
            return []
        if len(self._parts) > MAX_ENTRIES:
            raise OutputError(
                f"{len(self._parts):,} files are more than an index may list ({MAX_ENTRIES:,})."
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


def _limits(form: FileForm, style: Style) -> FileLimits:
    """The limits of the lines of one file, without its head and tail."""
    if not form.splits:  # a limit for the memory only
        return FileLimits(MAX_ENTRIES, MAX_BYTES)
    head = _head(form, style, style.namespaces)
    return FileLimits(style.max_urls, style.max_bytes - len(head) - len(form.tail))


def _fields(changefreq: str | None, priority: float | None) -> str:
    often = f"<changefreq>{changefreq}</changefreq>" if changefreq else ""
    weight = "" if priority is None else f"<priority>{priority:.1f}</priority>"
    return often + weight


def _write_file(path: Path, form: FileForm, style: Style, lines: Sequence[bytes]) -> Part:
    """Writes a file, compressed if configured, and describes it."""
    with open(path, "xb" if form.splits else "ab") as raw:
        out = gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) if style.gzip else raw
        with out:
            out.writelines(_pieces(form, style, lines))
    return described(path, len(lines))


def described(path: Path, urls: int) -> Part:
    """A written file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Part(path.name, urls, path.stat().st_size, digest)


def _xml(element: Element) -> str:
    return f"{element.before}{escape(element.url)}{element.after}"


def _head(form: FileForm, style: Style, namespaces: Iterable[tuple[str, str]] = ()) -> str:
    """The head of a file. `namespaces`: of elements in it."""
    attributes = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in namespaces)
    head = form.head.replace('">', f'"{attributes}>') if attributes else form.head
    if style.stylesheet is None:
        return head
    return head.replace(XML, f'{XML}<?xml-stylesheet type="text/css" href="{escape(style.stylesheet)}"?>\n')


def _pieces(form: FileForm, style: Style, lines: Sequence[bytes]) -> Iterator[bytes]:
    used = [
        (prefix, uri)
        for prefix, uri in style.namespaces
        if any(f"<{prefix}:".encode() in line for line in lines)
    ]
    yield _head(form, style, used).encode()
    for at in range(0, len(lines), ENTRIES_AT_ONCE):
        yield b"".join(lines[at : at + ENTRIES_AT_ONCE])
    yield form.tail.encode()
