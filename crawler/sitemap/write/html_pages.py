"""The sitemap as HTML, for people: every page by folder, with its title and date; readable without scripts.

`sitemap.html` has all links of a small site. A large one has parts of at most `LINKS` links, which `shards`
assigns as it does for the files of the sitemap, and `sitemap.html` then names folders and parts: no file is
large, however many URLs there are. Text from the network is escaped, and the files are `noindex` and
not in the sitemap, as they would change it whenever it changes.
"""

import hashlib
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from crawler.errors import OutputError
from crawler.model.facts import Entry
from crawler.parse.dates import w3c
from crawler.parse.url import origin
from crawler.report.formatting import counted, folders_of, readable, short
from crawler.report.printable import printable
from crawler.sitemap.write.shards import FileLimits, Leaf, OldFiles, Shards
from crawler.sitemap.write.writer import HTML_PAGE, Part, described, refusal

LINKS: Final = 1_000  # in one file
SIZE: Final = 500_000  # bytes of what it shows, without markup
FOLDERS: Final = 10_000  # that are counted; others count together
SHOWN_FOLDERS: Final = 500  # those with most pages
SHOWN: Final = 120  # characters of a title or address
MARK: Final = b'<meta name="generator" content="sitemap-crawler">'  # by which our own files are known

_STYLE: Final = """
:root { color-scheme: light dark;
  --fg: #1c2024; --muted: #5b6470; --link: #2f6fde; --bg: #fff; --line: #d9dde3; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e6e8eb; --muted: #9aa2ad; --link: #6ea1ff; --bg: #14171b; --line: #343a42; }
}
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif;
  color: var(--fg); background: var(--bg); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 0.4rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); }
ul, ol { margin: 0; padding-left: 1.2rem; }
small, time, .count { color: var(--muted); font-size: 0.85rem; font-weight: normal; }
time, td { font-variant-numeric: tabular-nums; }
time { white-space: nowrap; }
table { border-collapse: collapse; }
th, td { padding: 0.15rem 1rem 0.15rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; }
@media print { a { color: inherit; } }
"""
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'"
)


class _Link(msgspec.Struct, array_like=True):
    """A page, as it waits for its file."""

    url: str
    day: str = ""
    title: str = ""


_DECODER: Final = msgspec.json.Decoder(_Link)
_ENCODER: Final = msgspec.json.Encoder()


@dataclass(eq=False, repr=False)
class _Tally:
    """The pages of a folder, or of a file."""

    first: str = ""  # URL
    last: str = ""
    pages: int = 0
    newest: str = ""

    def add(self, link: _Link) -> None:
        self.first, self.last = self.first or link.url, link.url
        self.pages += 1
        self.newest = max(self.newest, link.day)


@dataclass(eq=False, repr=False)
class HtmlPages:
    """Writes the files: `add` all entries sorted by URL; `finish` returns them, `sitemap.html` last.

    `base`: the URL where they are served. `old`: those of the last publication.
    """

    folder: Path
    base: str
    old: OldFiles
    _parts: list[Part] = field(default_factory=list)
    _tallies: dict[str, _Tally] = field(default_factory=dict)  # by file name
    _folders: dict[str, _Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._site = origin(f"{self.base}/")
        self._shards = Shards(self.old, FileLimits(LINKS, SIZE), lambda line: _DECODER.decode(line).url)
        self._all, self._others = _Tally(), _Tally()
        self._held: list[Leaf] | None = []  # while all links may be in one file

    def add(self, entries: Iterable[Entry]) -> None:
        """Writes entries; those that are not allowed in a sitemap are left out."""
        for entry in entries:
            if refusal(entry.url):
                continue
            day = w3c(entry.lastmod).partition("T")[0] if entry.lastmod else ""
            link = _Link(entry.url, day, (entry.title or "").strip())
            self._all.add(link)
            self._folder_of(link).add(link)
            self._take(self._shards.add(entry.url, _ENCODER.encode(link)))

    def _folder_of(self, link: _Link) -> _Tally:
        name = folders_of(link.url, self._site)[0]
        if name not in self._folders and len(self._folders) >= FOLDERS:
            return self._others
        return self._folders.setdefault(name, _Tally())

    def _take(self, leaves: Iterable[Leaf]) -> None:
        for leaf in leaves:
            if self._held is None:
                self._write_part(leaf)
            else:
                self._held.append(leaf)
        if self._held and self._all.pages > LINKS:
            held, self._held = self._held, None
            self._take(held)

    def finish(self) -> list[Part]:
        """Writes the rest. No file without a page."""
        self._take(self._shards.finish())
        if not self._all.pages:
            return []
        if self._held is not None and sum(leaf.size for leaf in self._held) <= SIZE:
            links = [_DECODER.decode(line) for leaf in self._held for line in leaf.lines]
            return [self._write(HTML_PAGE, self._linked(links))]
        for leaf in self._held or ():
            self._write_part(leaf)
        return [*self._parts, self._write(HTML_PAGE, self._overview())]

    def _write_part(self, leaf: Leaf) -> None:
        name = f"sitemap-{leaf.shard.number:05}.html"
        links = [_DECODER.decode(line) for line in leaf.lines]
        tally = self._tallies[name] = _Tally()
        for link in links:
            tally.add(link)
        back = f'<nav aria-label="Sitemap"><a href="{HTML_PAGE}">All folders and parts</a></nav>\n'
        self._parts.append(replace(self._write(name, self._linked(links), back), shard=leaf.shard))

    def _write(self, name: str, lines: Iterable[str], back: str = "") -> Part:
        host = escape(printable(self.base.partition("://")[2], SHOWN))
        tally = self._tallies.get(name, self._all)
        newest = f", the newest of {_time(tally.newest)}" if tally.newest else ""
        text = f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{MARK.decode()}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Sitemap of {host}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>Sitemap of {host}</h1>
<p>{counted(tally.pages, "page")}{newest}.</p>
{back}</header>
<main>
{"".join(lines)}</main>
</body>
</html>
"""
        (self.folder / name).write_bytes(text.encode())
        return described(self.folder / name, 0)

    def _linked(self, links: Sequence[_Link]) -> Iterator[str]:
        folders: dict[str, list[_Link]] = {}
        for link in links:
            folders.setdefault(self._path(f"{link.url.partition('?')[0].rpartition('/')[0]}/"), []).append(
                link
            )
        for name in sorted(folders):
            yield f"<h2>{name} <small>{counted(len(folders[name]), 'page')}</small></h2>\n<ul>\n"
            for link in folders[name]:
                path = self._path(link.url)
                title = escape(printable(link.title, SHOWN))
                where = (f" <small>{path}</small>" if title else "") + _time(link.day, " ")
                yield f'<li><a href="{escape(link.url)}">{title or path}</a>{where}</li>\n'
            yield "</ul>\n"

    def _overview(self) -> Iterator[str]:
        """The folders with most pages, and all parts."""
        parts = sorted(self._tallies.items(), key=lambda item: item[1].first)
        firsts = [tally.first for _, tally in parts]
        every = sorted(self._folders.items(), key=lambda item: (-item[1].pages, item[0]))
        yield '<h2>Folders</h2>\n<table>\n<thead><tr><th scope="col">Folder</th>'
        yield '<th scope="col">Pages</th><th scope="col">Newest</th></tr></thead>\n<tbody>\n'
        for name, tally in sorted(every[:SHOWN_FOLDERS]):
            part = parts[max(0, bisect_right(firsts, tally.first) - 1)][0]
            yield _row(f'<a href="{part}">{self._path(name)}</a>', tally.pages, tally.newest)
        if rest := [
            *(tally for _, tally in every[SHOWN_FOLDERS:]),
            *([self._others] * bool(self._others.pages)),
        ]:
            yield _row(
                "other folders", sum(tally.pages for tally in rest), max(tally.newest for tally in rest)
            )
        yield "</tbody>\n</table>\n<h2>Parts</h2>\n<ol>\n"
        for name, tally in parts:
            span = f"{self._path(tally.first)} … {self._path(tally.last)}"
            yield f'<li><a href="{name}">{span}</a> <small>{counted(tally.pages, "page")}</small></li>\n'
        yield "</ol>\n"

    def _path(self, url: str) -> str:
        return escape(printable(readable(short(url, self._site)), SHOWN))


def _row(name: str, pages: int, newest: str) -> str:
    return f'<tr><td>{name}</td><td class="number">{pages:,}</td><td>{_time(newest)}</td></tr>\n'


def _time(day: str, before: str = "") -> str:
    return f'{before}<time datetime="{day}">{day}</time>' if day else ""


def is_foreign(folder: Path) -> bool:
    """Whether there is a page that was not made here."""
    path = folder / HTML_PAGE
    return path.is_file() and MARK not in path.read_bytes()


def check_place(folder: Path, place: object = None) -> None:
    """Raises `OutputError` if a page that was not made here would be overwritten.

    `place`: what to call the folder, if it is a copy.
    """
    if is_foreign(folder):
        raise OutputError(
            f"{place or folder}/{HTML_PAGE} was not made by this program and would be overwritten: choose "
            "another place with --output, or move that file away."
        )
