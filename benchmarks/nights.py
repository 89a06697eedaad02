"""Replays the history of a site, a night a day: how many days pass from a change to the sitemap, with a budget.

A history is a JSON file that says, for each page, the day on which it appeared, the day on which it went, and the days
on which it changed (`benchmarks/histories` has a small one). The site is served on loopback at the time of the night,
with true Last-Modified headers; the whole program visits it, and its clock is moved. A change has arrived when the
published sitemap has its date. The start page links to sections of 50 pages each, and these to the pages.

    python benchmarks/nights.py benchmarks/histories/*.json [--share 0.1] [--nights 365] [--sitemap true]
"""

import argparse
import asyncio
import json
import logging
import math
import re
import shutil
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

EPOCH = datetime(2024, 1, 1, 3, tzinfo=UTC).timestamp()  # day 0
DAY = 86_400.0  # seconds
SECTION = 50  # pages
MAX_AGE = 30 * DAY
ENTRY = re.compile(r"<loc>([^<]*)</loc>(?:\s*<lastmod>([^<]*)</lastmod>)?")


class PageHistory(NamedTuple):
    """Days, with their fraction."""

    number: int
    appeared: float
    went: float | None
    changes: list[float]

    @property
    def path(self) -> str:
        """On the site."""
        return f"/s{self.number // SECTION}/p{self.number}"

    def is_there(self, day: float) -> bool:
        """On that day."""
        return self.appeared <= day and (self.went is None or day < self.went)

    def changed(self, day: float) -> float:
        """When it last changed before that day."""
        place = bisect_right(self.changes, day)
        return self.changes[place - 1] if place else self.appeared or -1.0 - self.number % 997


@dataclass
class Delays:
    """Days from a change, and from the appearance of a page, to the sitemap."""

    changes: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    worst: int = 0  # nights that a page was not visited, at most
    lost: int = 0  # published pages that were there and missing from the sitemap, over all nights
    refused: int = 0  # nights whose sitemap was not published, as too many pages would have left

    def words(self) -> str:
        """In a line."""
        new = fmean(self.new) if self.new else 0.0
        return (
            f"{fmean(self.changes or [0.0]):5.2f} days to the sitemap ({len(self.changes):,} changes), "
            f"new pages {new:4.2f} ({len(self.new):,})"
        )


def read(path: Path) -> list[PageHistory]:
    """The pages of a history."""
    rows = json.loads(path.read_text())["rows"]
    return [PageHistory(number, *row) for number, row in enumerate(rows)]


def budget_of(pages: Iterable[PageHistory], day: float, share: float) -> int:
    """The pages of a night."""
    return max(1, math.ceil(share * sum(page.is_there(day) for page in pages)))


class Clock:
    """The time of the night: in this process, `time.time` says it."""

    def __init__(self) -> None:
        self.day, self._began = 0, time.monotonic()

    def set(self, day: int) -> None:
        """A night begins."""
        self.day, self._began = day, time.monotonic()

    def __call__(self) -> float:
        return EPOCH + self.day * DAY + time.monotonic() - self._began


class Served:
    """The site of a history on loopback, in a thread."""

    def __init__(self, pages: list[PageHistory], clock: Clock, *, sitemap: str | None) -> None:
        self.pages, self._clock, self._sitemap = pages, clock, sitemap
        self._by_path = {page.path: page for page in pages}
        self.requests = 0
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
                writer.write(self._answer(lines[0].split(" ")[1], fields))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, path: str, fields: Mapping[str, str]) -> bytes:
        day = float(self._clock.day)
        there = [page for page in self.pages if page.is_there(day)] if path.count("/") == 1 else []
        if path == "/":
            links = [f"/s{section}" for section in sorted({page.number // SECTION for page in there})]
        elif path == "/sitemap.xml" and self._sitemap:
            urls = "".join(
                f"<url><loc>{self.origin}{page.path}</loc>{self._dated(page, day)}</url>" for page in there
            )
            return _reply(200, f"<urlset>{urls}</urlset>", "application/xml")
        elif path.startswith("/s") and path[2:].isdigit():
            links = [page.path for page in there if page.number // SECTION == int(path[2:])]
        else:
            return self._page(path, fields, day)
        return _reply(
            200, f"<title>{path}</title>" + "".join(f'<a href="{link}">{link}</a> ' for link in links)
        )

    def _dated(self, page: PageHistory, day: float) -> str:
        """The `lastmod` of a page in the site's own sitemap."""
        at = day - 0.1 if self._sitemap == "build" else page.changed(day)
        text = datetime.fromtimestamp(int(EPOCH + at * DAY), UTC).isoformat()
        return (
            ""
            if self._sitemap == "undated"
            else f"<lastmod>{text[:10] if self._sitemap == 'days' else text}</lastmod>"
        )

    def _page(self, path: str, fields: Mapping[str, str], day: float) -> bytes:
        page = self._by_path.get(path)
        if page is None or not page.is_there(day):
            return _reply(404, "Not found")
        at = page.changed(day)
        modified = format_datetime(datetime.fromtimestamp(int(EPOCH + at * DAY), UTC), usegmt=True)
        if fields.get("if-modified-since") == modified.lower():
            return _reply(304, "", modified=modified)
        text = f"This is the page with the number {page.number}, as it was written on day {at:.3f}."
        return _reply(200, f"<title>Page {page.number}</title><p>{text}</p>", modified=modified)


def _reply(status: int, body: str, kind: str = "text/html", modified: str = "") -> bytes:
    dated = f"Last-Modified: {modified}\r\n" if modified else ""
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{dated}Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def replayed(pages: list[PageHistory], share: float, nights: int, *, sitemap: str | None) -> Delays:
    """A replay by the program."""
    clock = Clock()
    time.time = clock
    from crawler.app.job import open_job  # noqa: PLC0415 - after the clock is set
    from crawler.errors import PublishRefused  # noqa: PLC0415 - as above
    from crawler.settings.sections import Settings  # noqa: PLC0415 - as above

    site, delays = Served(pages, clock, sitemap=sitemap), Delays()
    folder, basis = Path(tempfile.mkdtemp()), Settings()
    listed = dict[str, str]()
    try:
        for day in range(nights + 1):
            clock.set(day)
            settings = replace(
                basis,
                scope=replace(
                    basis.scope,
                    start=(f"{site.origin}/",),
                    budget=budget_of(pages, day, share) if day else None,
                    max_age=MAX_AGE,
                    seed_sitemaps="auto" if sitemap else "off",
                ),
                pace=replace(basis.pace, rate=0.0),
                output=replace(basis.output, output=str(folder / "out"), gzip=False),
                state=replace(basis.state, state=str(folder / "state.db")),
            )
            async with open_job(settings) as job:
                await job.crawl()
                try:
                    await job.publish()
                except PublishRefused:
                    delays.refused += 1
            found = ENTRY.findall((folder / "out" / "sitemap.xml").read_text())
            # A date that is withdrawn for a night has not moved.
            before, listed = listed, {url: date or listed.get(url, "") for url, date in found}
            _compare(site, before, listed, day, delays)
    finally:
        shutil.rmtree(folder)
    return delays


def _compare(
    site: Served, before: Mapping[str, str], now: Mapping[str, str], day: int, delays: Delays
) -> None:
    for page in site.pages:
        then, dated = (urls.get(site.origin + page.path) for urls in (before, now))
        delays.lost += then is not None and dated is None and page.is_there(day)
        if dated is None or not day:
            continue
        if then is None:
            delays.new.append(day - page.appeared)
        elif dated > then:
            known, since = (
                (datetime.fromisoformat(text).timestamp() - EPOCH + 1) / DAY if text else 0.0
                for text in (dated, then)
            )
            delays.changes += [day - at for at in page.changes if since < at <= known]


def main() -> None:
    """Prints a line for each history and share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("history", nargs="+", type=Path)
    parser.add_argument(
        "--share", type=float, nargs="*", default=[0.05, 0.1, 0.2], help="of the pages, a night"
    )
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument(
        "--sitemap",
        choices=("undated", "true", "days", "build"),
        help="the site has a sitemap: without dates, with true ones, with their days, or with that of its build",
    )
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    for path in chosen.history:
        pages = read(path)
        for share in chosen.share:
            delays = asyncio.run(replayed(pages, share, chosen.nights, sitemap=chosen.sitemap))
            lost = f", {delays.lost} lost" if delays.lost else ""
            refused = f", nights refused: {delays.refused}" if delays.refused else ""
            print(f"{path.stem:10} {share:4.0%} a night: {delays.words()}{lost}{refused}", flush=True)


if __name__ == "__main__":
    main()
