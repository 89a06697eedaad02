"""Reads URLs from sitemaps: urlset, index, text, RSS 2.0, Atom and JSON lines (`--format jsonl`), plain or
gzip.

Tolerant like search engines: namespaces may be wrong or missing, ampersands unescaped, and a broken file is
read up to the error. Strict for security: document types are refused, nothing is fetched, and at most `limit`
bytes are read. Does not validate. Memory use is constant.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, Literal

from lxml import etree
from msgspec import Struct

from crawler.model.protocol import MAX_BYTES
from crawler.parse import content_coding
from crawler.sitemap.sniff import LONGEST_LOC, SNIFFED, is_json, is_web_page, read_json

_BARE_AMPERSAND: Final = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)")
_TAIL: Final = len(b"&#x10FFFF;")
_CDATA: Final = (b"<![CDATA[", b"]]>")  # the end of text, and the end of CDATA
# Start of a token that a chunk may cut, for each of the two.
_BEGUN: Final = (re.compile(rb"[&<]"), re.compile(rb"\]"))
_DECLARATION: Final = b"<?xml "
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")
_ABSOLUTE: Final = re.compile(rb"https?://", re.IGNORECASE)
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d+)?(?:[/?#]|\Z)")
# As `write.writer` begins its files. Other programs rarely do.
_OURS: Final = re.compile(
    rb'<\?xml version="1\.0" encoding="UTF-8"\?>\n(?:<\?xml-stylesheet [^>]*\?>\n)?'
    rb'<urlset xmlns="http://www\.sitemaps\.org/schemas/sitemap/0\.9"[^>]*>\n<url><loc>'
)
# An entry on a line of its own in such a file, which needs no parser; and such lines, one after the other.
_ENTRY: Final = (
    r"<url><loc>([!-%\x27-;=?-~]{1,4096})</loc>(?:<lastmod>([0-9T:.Z+-]{1,64})</lastmod>)?</url>\n"
)
_LINE: Final = re.compile(_ENTRY)
_LINES: Final = re.compile(re.sub(r"\((?!\?)", "(?:", f"(?:{_ENTRY})*+"))
LONGEST_DATE: Final = 100  # characters, more than any date has
_PAGES: Final = frozenset({"url", "item", "entry"})
_INDEX: Final = frozenset({"sitemap"})
_ROOTS: Final = frozenset({"urlset", "sitemapindex", "rss", "rdf", "feed"})
_DATES: Final = frozenset({"lastmod", "updated"})


class Found(Struct, frozen=True):
    """One URL of a sitemap, as written."""

    kind: Literal["page", "sitemap"]
    loc: str
    lastmod: str | None = None


class SitemapReading:
    """Iterate over the entries; afterwards `malformed` tells what was wrong, if anything was.

    `is_sitemap` is false for a web page, and for a file with neither the root element of a sitemap nor an
    entry. `is_like_ours`, from the first entry on: it looks as if this program had written it.
    """

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self._chunks, self._limit = chunks, limit
        self.malformed: str | None = None
        self.is_sitemap = True
        self.is_like_ours = False
        self._root = ""  # of XML

    def __iter__(self) -> Iterator[Found]:
        """The readable entries in order. Raises nothing for an invalid file."""
        try:
            chunks = _plain(self._chunks, self._limit)
            head, chunks = _peek(chunks)
            if not head.strip():
                self.malformed = "is empty"
            elif is_web_page(head):
                self.malformed, self.is_sitemap = "is a web page", False
            elif _is_text(head):
                for line in _split(chunks):
                    yield from _line(line)
            elif is_json(head):
                self.is_like_ours = True
                yield from self._json(chunks)
            else:
                self.is_like_ours = _OURS.match(head) is not None
                yield from self._counted(self._xml(chunks, head))
        except (content_coding.BrokenCoding, content_coding.TooLarge) as error:
            self.malformed = f"could only be read in part: {error}"

    def _json(self, chunks: Iterable[bytes]) -> Iterator[Found]:
        for line in _split(chunks):
            if found := read_json(line):
                yield Found("page", *found)
            else:
                self.malformed = "has a line that is not a JSON object with a loc"

    def _counted(self, found: Iterable[Found]) -> Iterator[Found]:
        rest, has_any = iter(found), False
        for first in rest:
            has_any = True
            yield first
            yield from rest
        self.is_sitemap = has_any or self._root in _ROOTS

    def _xml(self, chunks: Iterable[bytes], head: bytes) -> Iterator[Found]:
        parser = _parser()
        wide = head[:2] in _WIDE
        try:
            if self.is_like_ours:
                chunks = yield from self._simple(chunks, head)
            for chunk in chunks if wide else _documents(_escaped(chunks)):
                if chunk is None:  # another sitemap follows in the same file
                    yield from self._end(parser)
                    parser = _parser()
                else:
                    parser.feed(chunk)
                    yield from self._entries(parser)
            yield from self._end(parser)
        except _Declares:
            self.malformed = "declares a document type"
        except (etree.XMLSyntaxError, ValueError) as error:
            self.malformed = f"is not well-formed: {error}"[:200]

    def _simple(self, chunks: Iterable[bytes], head: bytes) -> Generator[Found, None, Iterator[bytes]]:
        """The entries before the first line in another form; the file without them is returned."""
        self._root = "urlset"
        rest = iter(chunks)
        data, start, lines = next(rest), head.index(b"<url><loc>"), 0
        begun, at = data[:start], start
        while True:
            lines_here = data[at : data.rfind(b"\n") + 1].decode("latin-1")
            found = _LINE.findall(lines_here)
            if _length(found) < len(lines_here):  # there are other lines
                lines_here = (_LINES.match(lines_here) or [""])[0]
                found = _LINE.findall(lines_here)
            yield from [Found("page", loc[:LONGEST_LOC], date or None) for loc, date in found]
            at, lines = at + len(lines_here), lines + len(found)
            data = data[at:]
            more = next(rest, b"") if data.find(b"\n") < 0 and len(data) <= LONGEST_LOC else b""
            if not more:
                break
            data, at = data + more, 0
        return chain((begun, b"\n" * lines, data), rest)  # errors name lines

    def _end(self, parser: "etree.XMLPullParser[etree._Element]") -> Iterator[Found]:
        with suppress(etree.XMLSyntaxError):  # it is also in the error log
            parser.close()
        if self.malformed is None and len(parser.feed_error_log):
            self.malformed = f"is not well-formed: {parser.feed_error_log[0].message}"[:200]
        yield from self._entries(parser, is_cut=self.malformed is not None)

    def _entries(
        self, parser: "etree.XMLPullParser[etree._Element]", *, is_cut: bool = False
    ) -> Iterator[Found]:
        """`is_cut`: the file ended before its elements did, so that the text of the last is not whole."""
        for event, element in parser.read_events():
            if event == "start":
                if element.getparent() is None:
                    self._root = self._root or _local(element)
                    if element.getroottree().docinfo.internalDTD is not None:
                        raise _Declares
                continue
            if is_cut and not len(element):
                element.text = None
            name = _local(element)
            if name in _PAGES | _INDEX and not _is_in_loc(element):
                yield from _entry(element, "sitemap" if name in _INDEX else "page")
                _forget(element)


def _length(entries: Sequence[tuple[str, str]]) -> int:
    """The length of lines as of `_LINE`, which have these URLs and dates."""
    dated = sum(1 for _, date in entries if date)
    frames = len(entries) * len("<url><loc></loc></url>\n") + dated * len("<lastmod></lastmod>")
    return frames + sum(map(len, chain.from_iterable(entries)))


def _local(element: "etree._Element") -> str:
    """The name without its namespace; empty for what is no element."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


class _Declares(Exception):  # noqa: N818 - caught by the reader
    """The file declares a document type."""


def _parser() -> "etree.XMLPullParser[etree._Element]":
    return etree.XMLPullParser(
        ("start", "end"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def read(chunks: Iterable[bytes], limit: int = MAX_BYTES) -> SitemapReading:
    """A sitemap from its bytes. `limit`: bytes after decompression. Relative URLs are not resolved."""
    return SitemapReading(chunks, limit)


def _plain(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The decompressed bytes. gzip is recognised by its first bytes, not by the file name."""
    first, chunks = _peek(chunks)
    decoder = content_coding.decoder(["gzip"] if first.startswith(content_coding.MAGIC) else [], limit)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    decoder.finish()


def _peek(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and an iterator over all bytes."""
    rest = iter(chunks)
    head = b""
    for chunk in rest:
        head += chunk
        if len(head) >= SNIFFED:
            break

    def again() -> Iterator[bytes]:
        # XML must not begin with whitespace, but many files do.
        yield head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\t\n\r ")
        yield from rest

    return head, again()


def _is_text(head: bytes) -> bool:
    """Whether this is the text form, one URL per line: its first line starts with a URL or host name."""
    first = head.lstrip().split(b"\n", 1)[0].strip()
    return bool(_ABSOLUTE.match(first) or _HOST.match(first))


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The non-empty lines; long ones are truncated."""
    kept = b""
    for chunk in chunks:
        *whole, kept = re.split(rb"[\r\n]", kept + chunk)
        yield from filter(bytes.strip, whole)
        kept = kept[: 2 * LONGEST_LOC]
    if kept.strip():
        yield kept


def _line(line: bytes) -> Iterator[Found]:
    text = line.strip()
    if _HOST.match(text) and not _ABSOLUTE.match(text):
        text = b"//" + text  # a host without a scheme gets that of the sitemap
    if text and not text.startswith(b"#"):  # a comment, which the protocol does not have
        yield Found("page", text.decode("utf-8", "replace")[:LONGEST_LOC])


def _escaped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes with bare ampersands escaped, except in CDATA: the parser would drop them."""
    kept, is_cdata = b"", False
    for chunk in chunks:
        data = kept + chunk
        while (end := data.find(_CDATA[is_cdata])) >= 0:
            end += len(_CDATA[is_cdata])
            yield data[:end] if is_cdata else _BARE_AMPERSAND.sub(b"&amp;", data[:end])
            data, is_cdata = data[end:], not is_cdata
        begun = _BEGUN[is_cdata].search(data, max(0, len(data) - _TAIL))
        kept = data[begun.start() :] if begun else b""
        data = data[: len(data) - len(kept)]
        yield data if is_cdata else _BARE_AMPERSAND.sub(b"&amp;", data)
    yield kept if is_cdata else _BARE_AMPERSAND.sub(b"&amp;", kept)


def _documents(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    """The bytes, with None before each further XML declaration."""
    kept, begun = b"", False
    for chunk in chunks:
        data = kept + chunk
        while (at := data.find(_DECLARATION, 0 if begun else 1)) >= 0:
            yield data[:at]
            yield None
            data, begun = data[at:], False
        cut = max(0, len(data) - len(_DECLARATION) + 1)
        if cut:
            yield data[:cut]
            begun = True
        kept = data[cut:]
    yield kept


def _entry(element: "etree._Element", kind: Literal["page", "sitemap"]) -> Iterator[Found]:
    locs: list[str] = []
    guid = date = None
    for child in element.iterchildren("*"):
        name = _local(child)
        if name == "loc" or (name == "link" and not locs):  # the first of an entry's links is the page
            locs += filter(None, [_link(child, name)])
        elif name == "guid":
            guid = (child.text or "").strip()
        elif name in _DATES:
            date = (child.text or "").strip()[:LONGEST_DATE] or None
    if not locs and guid and guid.startswith(("http://", "https://")):
        locs = [guid]
    for loc in locs:
        yield Found(kind, loc[:LONGEST_LOC], date)


def _is_in_loc(element: "etree._Element") -> bool:
    """Whether a url element is inside a loc: some write <loc><url>https://…</url></loc>."""
    parent = element.getparent()
    return parent is not None and _local(parent) == "loc"


def _link(child: "etree._Element", name: str) -> str | None:
    """The text of a loc or RSS link; the href of an Atom link with rel alternate."""
    if name == "link" and child.get("href") is not None:
        return (child.get("href") or "").strip() if child.get("rel", "alternate") == "alternate" else None
    return "".join(child.itertext()).strip() or None


def _forget(element: "etree._Element") -> None:
    """Frees an element and its predecessors, so that memory does not grow with the file."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
