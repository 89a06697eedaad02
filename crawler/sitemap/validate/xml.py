"""Validates the structure of an XML sitemap by sitemaps.org and its schemas.

Uses expat, which is strict, streams, and knows line numbers; a document type ends validation before any
entity is expanded. The values of fields are validated in `values`.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

from crawler.model.protocol import MAX_IMAGES, MAX_LOC, NAMESPACE
from crawler.sitemap.validate import feeds, values
from crawler.sitemap.validate.extensions import ExtensionCheck, SitemapEntry
from crawler.sitemap.validate.feeds import FeedCheck
from crawler.sitemap.validate.findings import FaultCode

if TYPE_CHECKING:
    from crawler.sitemap.validate.file import Check

LONGEST_CONTENT: Final = 100_000  # characters of one field that are kept
ORDER: Final = {"url": ("loc", "lastmod", "changefreq", "priority"), "sitemap": ("loc", "lastmod")}
ROOTS: Final = {"urlset": "url", "sitemapindex": "sitemap"}

MISSED: Final = 16  # lines of one piece that are passed to the parser one by one
NEVER: Final = 1 << 60

# An entry on one line with only a URL, a date and images: the usual form, which needs no parser.
_IMAGE_LOC: Final = rb"https?://[a-z0-9.-]{1,253}+(?::[0-9]{1,5}+)?+/(?:[A-Za-z0-9._~:/?\[\]@!$\x27()*+,;=-]++|%[0-9A-Fa-f]{2}|&amp;)*+"
_PLAIN: Final = re.compile(
    rb"<url><loc>([!-%\x27-;=?-~]{1,4096})</loc>(?:<lastmod>([0-9T:.Z+-]{1,64})</lastmod>)?"
    rb"((?:<image:image><image:loc>" + _IMAGE_LOC + rb"</image:loc></image:image>)*+)</url>\n"
)
_BETWEEN_LOCS: Final = b"</image:loc></image:image><image:image><image:loc>"
MOST_ORIGINS: Final = 1_000  # of images that are remembered as valid


_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")  # UTF-16, which is not handled
_ENDS: Final = {b"<![CDATA[": b"]]>", b"<!--": b"-->", b"<?": b"?>"}
_MARK: Final = re.compile(
    rb"<!\[CDATA\[|<!--|<\?|&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)"
)


class Ended(Exception):  # noqa: N818 - caught by `file.Check`
    """The rest of the file cannot be validated."""


class XmlCheck:
    """Validates one file: `feed` its bytes, then `close`. Raises `Ended`."""

    def __init__(self, report: "Check", now: datetime) -> None:
        self._report, self._now = report, now
        self._path: list[str] = []  # names of the open elements
        self._misplaced_at = 0  # depth of a misplaced element, whose content is ignored; 0: none
        self._space = NAMESPACE  # the namespace that counts as that of sitemaps in this file
        self._entry: SitemapEntry | None = None
        self._extensions = ExtensionCheck(report)
        self._feed: FeedCheck | None = None  # None: no feed
        self._prefixes: dict[str | None, str] = {}  # namespaces that the root element declares
        self._origins: set[bytes] = set()  # valid ones of images
        self._text: list[str] = []
        self._chars = 0
        self._rest = b""
        self._begun = False
        self._escape = Ampersands()
        self._skipped = 0  # lines not passed to the parser
        self._passed = 0  # lines passed to the parser
        self._ends_in_tag = False  # the passed data ends with a tag and a line break
        self._open = 0  # tags passed to the parser and not yet reported by it
        parser = self._parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartNamespaceDeclHandler = self._prefix
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes) -> None:
        """Validates more bytes."""
        self._rest += chunk
        end = self._rest.rfind(b"\n") + 1
        at = missed = 0
        while at < end:
            if self._is_between():
                at = self._plain(at)
            if at < end:
                # A file in another form has no plain entries: its lines are passed together.
                line = end if missed > MISSED else self._rest.find(b"\n", at) + 1
                self._pass_on(self._rest[at:line])
                at, missed = line, missed + 1
        self._rest = self._rest[at:]
        if len(self._rest) > LONGEST_CONTENT:  # too long for a plain entry
            cut = whole(self._rest)
            self._pass_on(self._rest[:cut])
            self._rest = self._rest[cut:]

    def close(self) -> None:
        """Validates the end of the file."""
        self.abort()
        self._parse(b"", last=True)

    def free(self) -> None:
        """Breaks the cycle with the parser, which would keep its memory until garbage collection."""
        parser = self._parser
        parser.XmlDeclHandler = parser.StartDoctypeDeclHandler = parser.CharacterDataHandler = None
        parser.StartElementHandler = parser.EndElementHandler = parser.StartNamespaceDeclHandler = None

    def _is_between(self) -> bool:
        """Whether the next line certainly starts between two entries: the parser has reported all tags."""
        return (
            self._open == 0
            and len(self._path) == 1
            and self._path[0] == "urlset"
            and self._prefixes.get(None) == NAMESPACE
            and not self._misplaced_at
            and self._ends_in_tag
        )

    def _plain(self, at: int) -> int:
        """Checks the plain entries that follow; returns the start of the first other line."""
        report, now = self._report, self._now
        line = self._line
        while found := _PLAIN.match(self._rest, at):
            loc, date, images = found.groups()
            if images and not self._are_plainly_good(images):
                break
            report.count(line)
            report.loc(loc.decode("ascii"), line)
            if date is not None:
                report.date(text := date.decode("ascii"))
                if not values.is_plainly_past(text, now):
                    report.add_all(values.check_lastmod(text, now), line)
            at, line = found.end(), line + 1
        self._skipped += line - self._line
        return at

    def _are_plainly_good(self, images: bytes) -> bool:
        """A fast check that accepts nearly all valid images of an entry. Others need the parser."""
        if values.EXTENSIONS.get(self._prefixes.get("image", "")) is not values.IMAGES:
            return False
        locs = images[len("<image:image><image:loc>") : -len("</image:loc></image:image>")].split(
            _BETWEEN_LOCS
        )
        if len(locs) > MAX_IMAGES or len({*locs}) < len(locs) or max(map(len, locs)) > MAX_LOC:
            return False
        new = {loc[: loc.index(b"/", 8)] for loc in locs} - self._origins
        if not all(values.is_web_address(f"{origin.decode()}/") for origin in new):
            return False
        if len(self._origins) < MOST_ORIGINS:
            self._origins |= new
        return True

    def abort(self) -> None:
        """Validates the bytes received so far; there are no more."""
        self._pass_on(self._rest)
        self._rest = b""

    def _pass_on(self, data: bytes) -> None:
        if not data:
            return
        tags = data if self._begun else data.removeprefix(b"<?xml ")
        self._begun = True
        # A comment may contain text that looks like entries: from here on everything is passed to the parser.
        self._open += NEVER if b"<!" in tags or b"<?" in tags else tags.count(b"<") + tags.count(b"/>")
        tag = data.rfind(b"<")
        self._ends_in_tag = tag >= 0 and data.endswith(b">\n") and data.count(b">", tag) == 1
        line = 1 + self._passed + self._skipped
        self._passed += data.count(b"\n")
        data, bare = self._escape(data)
        for lines in bare:
            self._report.add(FaultCode.ESCAPING, line + lines)
        self._parse(data, last=False)

    @property
    def _line(self) -> int:
        """The line in the file: the parser does not count skipped ones."""
        return self._parser.CurrentLineNumber + self._skipped

    def _parse(self, chunk: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            words = f"{expat.errors.messages[error.code]} (column {error.offset + 1})"
            self._report.add(FaultCode.NOT_WELL_FORMED, error.lineno + self._skipped, words)
            raise Ended from error

    def _prefix(self, prefix: str | None, namespace: str) -> None:
        """Notes what the root element declares."""
        if not self._path:
            self._prefixes[prefix] = namespace

    def _declaration(self, _version: str, encoding: str | None, _alone: int) -> None:
        if encoding and encoding.lower() not in {"utf-8", "us-ascii"}:
            self._report.add(FaultCode.ENCODING, 1, encoding)

    def _doctype(self, *_: object) -> None:
        self._report.add(FaultCode.DOCTYPE, self._line)
        raise Ended

    def _characters(self, text: str) -> None:
        if self._chars < LONGEST_CONTENT:
            self._text.append(text)
        self._chars += len(text)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        self._open -= 1
        line = self._line
        depth = len(self._path)
        self._path.append(local)
        if self._feed:
            self._text, self._chars = [], 0
            self._feed.start(depth, local, attributes, line)
            return
        if self._misplaced_at:
            return
        self._stray(line)
        if depth == 0:
            self._root(space, local, line)
        elif depth == 1:
            self._begin(space, local, line)
        elif self._entry and (space != self._space or self._extensions.is_open):
            self._extensions.begin(self._entry, space, local, attributes, line)
        elif self._entry and depth == 2:
            self._field(local, line)
        else:
            self._misplaced(line, local, self._path[-2])

    def _end(self, name: str) -> None:
        local = name.rpartition(" ")[2]
        self._open -= 1
        text, self._text, self._chars = "".join(self._text), [], 0
        line = self._line
        self._path.pop()
        depth = len(self._path)
        if self._feed:
            self._feed.end(depth, local, text.strip(), line)
            return
        if self._misplaced_at:
            self._misplaced_at = 0 if depth < self._misplaced_at else self._misplaced_at
            return
        if depth == 1:
            self._stray_text(text, line)
            self._close()
        elif self._extensions.is_open and self._entry:
            self._extensions.end(self._entry, local, text.strip(), line)
        elif depth == 2 and self._entry:
            self._value(local, text, line)
        else:
            self._stray_text(text, line)

    def _stray(self, line: int) -> None:
        """Checks the text before a child element, which must be blank."""
        text, self._text, self._chars = "".join(self._text), [], 0
        if not self._extensions.is_open:
            self._stray_text(text, line)

    def _stray_text(self, text: str, line: int) -> None:
        if text.strip():
            self._report.add(FaultCode.TEXT, line, text.strip())

    def _root(self, space: str, local: str, line: int) -> None:
        if local in feeds.ROOTS and (space == feeds.ATOM) == (local == "feed"):
            self._report.kind, self._feed = "feed", FeedCheck(self._report, self._now)
            return
        if local not in ROOTS:
            self._report.add(FaultCode.ROOT, line, local)
            raise Ended
        self._report.kind = "index" if local == "sitemapindex" else "urlset"
        if space != NAMESPACE:
            self._report.add(FaultCode.NAMESPACE, line, space or "none")
            self._space = space

    def _misplaced(self, line: int, local: str, outer: str) -> None:
        self._report.add(FaultCode.ELEMENT, line, local, outer)
        self._misplaced_at = len(self._path)

    def _begin(self, space: str, local: str, line: int) -> None:
        if space == self._space and local == ROOTS[self._path[0]]:
            self._entry = SitemapEntry(line, local)
            self._report.count(line)
        elif space == self._space or space not in values.EXTENSIONS:
            self._misplaced(line, local, self._path[0])

    def _field(self, local: str, line: int) -> None:
        entry = self._entry
        assert entry is not None  # noqa: S101 - the caller looked
        order = ORDER[entry.name]
        if local not in order:
            self._misplaced(line, local, entry.name)
            return
        if local in entry.has:
            self._report.add(FaultCode.REPEATED, line, local)
        elif entry.last and order.index(local) < order.index(entry.last):
            self._report.add(FaultCode.ORDER, line, local, entry.last)
        else:
            entry.last = local
        entry.has.add(local)

    def _value(self, local: str, text: str, line: int) -> None:
        match local:
            case "loc":
                self._report.loc(text.strip(), line)
                if self._entry:
                    self._entry.loc = text.strip()
            case "lastmod":
                self._report.date(text.strip())
                self._report.add_all(values.check_lastmod(text.strip(), self._now), line)
            case "changefreq":
                self._report.add_all(values.check_changefreq(text.strip()), line)
            case "priority":
                self._report.add_all(values.check_priority(text.strip()), line)

    def _close(self) -> None:
        entry, self._entry = self._entry, None
        if entry and "loc" not in entry.has:
            self._report.add(FaultCode.LOC_MISSING, entry.line)
        elif entry and entry.versions:
            self._report.versions(entry.loc, entry.versions, entry.line)


def whole(data: bytes) -> int:
    """Where to cut a long piece without a line break: before the last < or &, which may start a token."""
    cut = max(data.rfind(b"<"), data.rfind(b"&"))
    return cut if cut > 0 else len(data.rstrip(b"]-?"))


class Ampersands:
    """Finds and escapes bare ampersands before the parser, so that the first one does not end validation.

    An & is bare if it starts neither one of the five entities of XML nor a character reference. In CDATA,
    comments and processing instructions it is allowed. Other entities count as bare, as document types are
    not supported. Called with the pieces of one file in order; each ends as `whole` says.
    """

    def __init__(self) -> None:
        self._wide: bool | None = None
        self._end = b""  # delimiter that ends the open section

    def __call__(self, data: bytes) -> tuple[bytes, list[int]]:
        """The piece with all bare ampersands escaped, and the line of each within the piece, from 0."""
        if self._wide is None:
            self._wide = data[:2] in _WIDE
        if self._wide or not (self._end or b"&" in data or b"<!" in data or b"<?" in data):
            return data, []
        out, bare, at = list[bytes](), list[int](), 0
        while at < len(data):
            at = self._section(data, at, out) if self._end else self._text(data, at, out, bare)
        return b"".join(out), bare

    def _section(self, data: bytes, at: int, out: list[bytes]) -> int:
        end = data.find(self._end, at)
        end, self._end = (len(data), self._end) if end < 0 else (end + len(self._end), b"")
        out.append(data[at:end])
        return end

    def _text(self, data: bytes, at: int, out: list[bytes], bare: list[int]) -> int:
        found = _MARK.search(data, at)
        if found is None:
            out.append(data[at:])
            return len(data)
        if found[0] == b"&":
            out += (data[at : found.end()], b"amp;")
            bare.append(data.count(b"\n", 0, found.start()))
        else:
            out.append(data[at : found.end()])
            self._end = _ENDS[found[0]]
        return found.end()
