"""What a publication changes: URLs added and removed, and dates changed, between the old files and the new.

The files themselves are compared, as readers see them; the state may be new, or know another folder. Files
with the same digest are not read. The others are compared one by one, and what is left of each, as URLs move
from file to file, at the end. http and https, and a host with and without `www.`, are one site: such a move
removes nothing.
"""

import gzip
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

from crawler.model.protocol import MAX_BYTES
from crawler.parse.late import late
from crawler.sitemap.sniff import is_json, read_json

EXAMPLES: Final = 3  # removed URLs that are named
LONGEST_SHOWN: Final = 150  # characters of each
CANDIDATES: Final = 1_000  # URLs that seem to be removed, of which some may only have moved
_ENTRY: Final = late(rb"<loc>\s*+([^<\s]*+)\s*+</loc>(?:\s*+<lastmod>\s*+([^<\s]*+))?")


Entries = dict[bytes, bytes]  # dates by URL


class Difference(NamedTuple):
    """The difference between the published files and those that are to replace them."""

    before: int = 0  # URLs in the published files, as far as they were counted
    added: int = 0
    removed: int = 0
    changed: int = 0  # URLs with another date
    examples: tuple[str, ...] = ()  # of removed URLs, without scheme and `www.`


NO_DIFFERENCE: Final = Difference()


def compare(old: Mapping[str, Path], new: Mapping[str, Path], unchanged: int) -> Difference:
    """Compares files, by name. `unchanged`: the URLs of those that are the same, and are not given.

    Files that cannot be read count as far as they can.
    """
    before, changed = unchanged, 0
    gone, come = _Rest(), _Rest()
    for name in sorted({*old, *new}):
        theirs = _entries_in(old[name]) if name in old else {}
        ours = _entries_in(new[name]) if name in new else {}
        before += len(theirs)
        left, added = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
        changed += len(theirs.items() - ours.items()) - len(left)
        gone.add((url, theirs[url]) for url in left)
        come.add((url, ours[url]) for url in added)
    moved = gone.dates.keys() & come.dates.keys()
    changed += sum(gone.dates[key] != come.dates[key] for key in moved)
    examples = sorted(url for url in gone.some if hash(url) not in come.dates)[:EXAMPLES]
    return Difference(
        before,
        len(come.dates) - len(moved),
        len(gone.dates) - len(moved),
        changed,
        tuple(url.decode(errors="replace")[:LONGEST_SHOWN] for url in examples),
    )


class _Rest:
    """The URLs that only one side of a file has: hashes, since there may be millions of them."""

    def __init__(self) -> None:
        self.dates: dict[int, int] = {}  # hashes of dates, by hash of the URL
        self.some: list[bytes] = []  # the first URLs

    def add(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for url, date in entries:
            name = _site_relative(url)
            self.dates[hash(name)] = hash(date)
            if len(self.some) < CANDIDATES:
                self.some.append(name)


def _entries_in(path: Path) -> Entries:
    read = _in_lines if {".txt", ".jsonl"}.intersection(path.suffixes) else _in_xml
    try:
        with open(path, "rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            return read(gzip.GzipFile(fileobj=file) if is_gzip else file)
    except (OSError, EOFError, zlib.error):
        return {}


def _in_xml(file: IO[bytes] | gzip.GzipFile) -> Entries:
    return dict(_ENTRY.findall(file.read(MAX_BYTES)))


def _in_lines(file: IO[bytes] | gzip.GzipFile) -> Entries:
    found: Entries = {}
    for line in filter(bytes.strip, file.read(MAX_BYTES).splitlines()):
        if not is_json(line):
            found[line.strip()] = b""
        elif known := read_json(line):
            loc, lastmod = known
            found[loc.encode()] = (lastmod or "").encode()
    return found


def _site_relative(loc: bytes) -> bytes:
    if b"&" in loc:
        from html import unescape  # noqa: PLC0415 - has all entities of HTML, and few crawls need them

        loc = unescape(loc.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return loc.partition(b"://")[2].removeprefix(b"www.") or loc
