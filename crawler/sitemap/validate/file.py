"""Validates one sitemap against the protocol (sitemaps.org), as a stream: bytes in, findings out, constant
memory.

Strict where `read` is tolerant. The caller opens the files; the sitemaps of an index are in `children`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from hashlib import blake2b
from itertools import chain
from typing import Any, Final

from msgspec import Struct, field

from crawler.model.protocol import MAX_BYTES, MAX_ENTRIES
from crawler.parse import content_coding
from crawler.sitemap.sniff import SNIFFED, is_json, is_web_page, read_json
from crawler.sitemap.validate import values
from crawler.sitemap.validate.findings import FaultCode, SitemapFinding, finding
from crawler.sitemap.validate.xml import LONGEST_CONTENT, Ended, XmlCheck

SEEN: Final = 1_000_000  # URLs remembered to find duplicates
FEWEST_DATED: Final = 10  # entries that may have one date by chance
WAITING: Final = 500_000  # links that may wait for their return link
MOST_BYTES_READ: Final = 4 * MAX_BYTES  # bytes read of a too large file, to report its other faults

_ABSOLUTE: Final = re.compile(rb"[\s]*https?://", re.IGNORECASE)
_BOM: Final = b"\xef\xbb\xbf"


class Seen(Struct, eq=False):
    """The URLs seen so far in the files of an index, as digests."""

    urls: set[bytes] = field(default_factory=set)

    def is_new(self, loc: str) -> bool:
        """Whether a URL was not seen before. Beyond `SEEN` URLs, further ones are not remembered."""
        digest = _digest(loc)
        if digest in self.urls:
            return False
        if len(self.urls) < SEEN:
            self.urls.add(digest)
        return True


class Returns(Struct, eq=False):
    """Links between language versions that wait for the return link, over the files of an index."""

    waiting: dict[tuple[bytes, bytes], SitemapFinding] = field(default_factory=dict)

    def add(self, place: str, loc: str, versions: Iterable[str], line: int) -> None:
        """The versions that an entry names. Beyond `WAITING` links, further ones are not checked."""
        own = _digest(loc)
        for url in versions:
            other = _digest(url)
            is_returned = self.waiting.pop((other, own), None) is not None
            if own != other and not is_returned and len(self.waiting) < WAITING:
                self.waiting[own, other] = finding(place, line, FaultCode.HREFLANG_RETURN, url)

    def left(self, seen: Seen) -> Iterator[SitemapFinding]:
        """Those without a return link, though the files contain the version."""
        return (found for (_, other), found in self.waiting.items() if other in seen.urls)


def _digest(loc: str) -> bytes:
    return blake2b(loc.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Check:
    """Validates one file: iterate over `run`; then `kind`, `entries`, `size` and `children` are known."""

    def __init__(
        self,
        place: str,
        *,
        home: str | None,
        now: datetime,
        seen: Seen | None = None,
        returns: Returns | None = None,
    ) -> None:
        """`place` is the file in findings; `home` its URL, if known; `seen` and `returns` are shared by the
        files of an index.
        """
        self._returns = returns
        self._place, self._home, self._now = place, home, now
        self._seen = seen or Seen()
        self._first: str | None = None  # the first URL: without `home`, the others must be on its host
        self._prefix = home[: home.rindex("/") + 1] if home else ""
        self.kind = ""
        self.is_web_page = False
        self.entries = self.size = 0
        self._date, self._dated = "", 0  # the first one, and the entries that have it
        self.children: list[str] = []
        self._out: list[SitemapFinding] = []

    def run(self, chunks: Iterable[bytes]) -> Iterator[SitemapFinding]:
        """The findings, up to the end of the file or an error after which the rest is unreadable."""
        try:
            yield from self._read(self._plain(chunks))
        except content_coding.BrokenCoding as error:
            self.add(FaultCode.BROKEN_GZIP, 0, str(error).removeprefix("gzip: "))
        except content_coding.TooLarge:
            self.size = max(self.size, MOST_BYTES_READ + 1)
        except Ended:
            pass
        if self.size > (MOST_BYTES_READ if self.kind == "json" else MAX_BYTES):
            self.add(FaultCode.TOO_LARGE, 0)
        if self.kind and not self.entries:
            self.add(FaultCode.EMPTY, 0)
        if self._dated == self.entries >= FEWEST_DATED and self.kind != "index":
            self.add(FaultCode.LASTMOD_UNIFORM, 0, self._date)
        yield from self._flush()

    # -- bytes --------------------------------------------------------------------------------------------

    def _plain(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The decompressed bytes; counts them."""
        rest = iter(chunks)
        first = next(rest, b"")
        while len(first) < 2 and (more := next(rest, b"")):
            first += more
        zipped, named = first.startswith(content_coding.MAGIC), self._place.partition("?")[0].endswith(".gz")
        if zipped != named:
            self.add(FaultCode.GZIP_NAME if zipped else FaultCode.NOT_GZIP, 0)
        decoder = content_coding.decoder(["gzip"] if zipped else [], MOST_BYTES_READ)
        for chunk in chain([first], rest):
            for piece in decoder.feed(chunk):
                self.size += len(piece)
                yield piece
        decoder.finish()

    def _read(self, chunks: Iterator[bytes]) -> Iterator[SitemapFinding]:
        head = b""
        for chunk in chunks:
            head += chunk
            if len(head.lstrip()) > SNIFFED:
                break
        if not head.strip():
            self.add(FaultCode.EMPTY, 0)
            return
        if head.startswith(_BOM):
            self.add(FaultCode.BYTE_ORDER_MARK, 1)
            head = head[len(_BOM) :]
        if is_web_page(head):
            self.is_web_page = True
            self.add(FaultCode.WEB_PAGE, 0)
        elif _ABSOLUTE.match(head):
            yield from self._lines(head, chunks, "text", self._line)
        elif is_json(head):
            yield from self._lines(head, chunks, "json", self._json)
        else:
            yield from self._xml(head, chunks)

    # -- text ---------------------------------------------------------------------------------------------

    def _lines(
        self, head: bytes, chunks: Iterator[bytes], kind: str, check: Callable[[bytes, int], None]
    ) -> Iterator[SitemapFinding]:
        self.kind = kind
        number, kept = 0, head
        for chunk in chunks:
            *whole, kept = kept.split(b"\n")
            for line in whole:
                number += 1
                check(line, number)
            kept = kept[:LONGEST_CONTENT] + chunk
            yield from self._flush()
        for line in kept.split(b"\n"):
            number += 1
            check(line, number)

    def _line(self, line: bytes, number: int) -> None:
        try:
            loc = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            self.add(FaultCode.ENCODING, number, "another encoding")
            return
        if loc.strip():
            self.count(number)
            self.loc(loc, number)

    def _json(self, line: bytes, number: int) -> None:
        if not line.strip():
            return
        self.count(number)
        found = read_json(line)
        if found is None:
            self.add(FaultCode.NOT_JSON, number)
            return
        loc, lastmod = found
        self.loc(loc, number)
        if lastmod is not None:
            self.date(lastmod)
            self.add_all(values.check_lastmod(lastmod, self._now), number)

    def _xml(self, head: bytes, chunks: Iterator[bytes]) -> Iterator[SitemapFinding]:
        xml = XmlCheck(self, self._now)
        try:
            for chunk in chain([head], chunks):
                xml.feed(chunk)
                yield from self._flush()
        except (content_coding.BrokenCoding, content_coding.TooLarge):
            xml.abort()
            raise
        else:
            xml.close()
        finally:
            xml.free()

    # -- called by the checks of XML, its extensions and feeds --------------------------------------------

    def loc(self, loc: str, line: int) -> None:
        if not values.is_plainly_good(loc, self._prefix):
            self._check_loc(loc, line)
        if not self._seen.is_new(loc):
            self.add(FaultCode.INDEX_LOOP if self.kind == "index" else FaultCode.DUPLICATE, line, loc)
        elif self.kind == "index":
            self.children.append(loc)

    def _check_loc(self, loc: str, line: int) -> None:
        self.add_all(values.check_loc(loc, self._home), line)
        if self._home is None:
            if self._first is None:
                self._first, self._prefix = loc, values.site_of(loc)
            if not values.same_site(loc, self._first):
                self.add(FaultCode.LOC_HOST, line, loc)

    def versions(self, loc: str, versions: Collection[str], line: int) -> None:
        if loc not in versions:
            self.add(FaultCode.HREFLANG_SELF, line, loc)
        if self._returns:
            self._returns.add(self._place, loc, versions, line)

    def count(self, line: int) -> None:
        self.entries += 1
        if self.entries == MAX_ENTRIES + 1 and self.kind != "json":  # JSON lines are not part of the protocol
            self.add(FaultCode.TOO_MANY, line)

    def date(self, text: str) -> None:
        if text == self._date:
            self._dated += 1
        elif not self._dated:
            self._date, self._dated = text, 1

    def add_all(self, faults: Iterable[values.Fault], line: int) -> None:
        for code, details in faults:
            self.add(code, line, *details)

    def add(self, code: FaultCode, line: int, *details: Any) -> None:
        self._out.append(finding(self._place, line, code, *details))

    def _flush(self) -> Iterator[SitemapFinding]:
        found, self._out = self._out, []
        yield from found
