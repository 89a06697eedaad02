"""How true `lastmod` is: histories of documentation sites, one night a day, with the ways in which sites lie.

    .venv/bin/python benchmarks/lastmod.py [FOLDER] [--pages 200] [--nights 365] [--only NAME ...]

FOLDER has histories as JSON, as `benchmarks/histories/` does. Every page of every night goes through the
judge, the frontier (SQLite in memory) and the rules at the end of a run, as in a crawl; only HTTP and discovery are left out. For each setting:

precision  dates in the sitemap, each night anew, that are within a day of a change of their page
recall     changes of known pages that stand in the next sitemap with a date within a day
false      dates that move although their page did not change, per 1,000 page-nights

Beside it stands what a sitemap of header dates, of dates in pages, and of the day of the crawl would say.

With `--budget SHARE`, each night after the first visits that share of the pages, chosen as by the program: how many
of the edits that visits saw are dated between that visit and the one before, and the false moves.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lying_site import DAY, SETTINGS, SITE, Answer, Page, Setting, Site, iso, read

from crawler.engine.finish import dating
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.reasons import SeedKind
from crawler.model.reply import Headers, Response, RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.run import Terms
from crawler.model.seed import Seed
from crawler.model.settlement import Settlement
from crawler.model.visit import Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules import lastmod
from crawler.rules.judge import Judge, JudgeRules

SAMPLE = Path(__file__).parent / "histories"


Dates: TypeAlias = Mapping[Url, tuple[float, str]]


@dataclass
class Rules:
    """Judge, frontier and dating, as in a run."""

    now: float = 0.0
    frontier: SqliteFrontier = field(init=False)
    judge: Judge = field(default_factory=lambda: Judge(JudgeRules("x", Normaliser())))
    visited: list[Page] = field(default_factory=list)  # in the last run

    def __post_init__(self) -> None:
        self.frontier = SqliteFrontier(":memory:", clock=lambda: self.now)

    async def run(self, now: float, answers: Sequence[Answer], budget: int | None = None) -> Dates:
        """The dates of one night. `budget`: pages; None: all."""
        self.now, self.visited, frontier = now, [], self.frontier
        await frontier.begin("settings", "", Terms(max_pages=budget, max_age=30 * DAY))
        await frontier.store_robots(SITE, RobotsFile("none", fetched=now), 0)
        by_url = {one.page.url: one for one in answers}
        at = datetime.fromtimestamp(now, UTC)
        dated = {
            url: found
            for url, one in by_url.items()
            if one.sitemap is not None and (found := lastmod.from_sitemap(iso(one.sitemap), at))
        }
        seed = Seed(SeedKind.SITEMAP, f"{SITE}/sitemap.xml") if dated else None
        if seed:
            await frontier.add_seeds([seed], 10)
        await frontier.add([Visit(url) for url in by_url], seed, dated)
        while True:
            leases, settled = (await frontier.lease(1_000)).leases, []
            for lease in leases:
                if one := by_url.get(lease.visit.url):
                    self.visited.append(one.page)
                    reply = Response(200, Headers(one.fields), one.body.encode())
                else:
                    reply = Response(404, Headers(()), b"")
                settled.append(Settlement(lease, self.judge(lease, reply, at)))
            await frontier.settle(settled)
            if not leases and (budget is None or not (await frontier.advance()).released):
                break
        await dating.date(frontier, lastmod.DATE_SOURCES["auto"])
        await frontier.finish()
        found: dict[Url, tuple[float, str]] = {}
        async for rows in frontier.stream(reads.Pages()):
            found |= {row.url: (row.lastmod, row.source) for row in rows if row.lastmod and row.source}
        listed = [one.url async for chunk in frontier.stream(reads.ListedEntries()) for one in chunk]
        await frontier.mark_published(PublicationRow(len(listed)))
        await frontier.conclude(refused=False)
        return {url: found[url] for url in listed if url in found}


@dataclass
class Tally:
    """The counts of one setting."""

    page_nights: int = 0
    dates: Counter[str] = field(default_factory=Counter)  # by source
    right: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    seen: int = 0
    false: int = 0
    wrong: list[str] = field(default_factory=list)  # examples
    _before: dict[int, float | None] = field(default_factory=dict)
    _then: float = 0.0

    def night(self, now: float, number: int, dates: Mapping[Page, tuple[float, str] | None]) -> None:
        after: dict[int, float | None] = {}
        for page, dated in dates.items():
            self.page_nights += 1
            at, source = dated or (None, "")
            is_right = at is not None and any(
                abs(at - change) <= DAY + 60 for change in page.changes if change <= now
            )
            was = self._before.get(page.number)
            if at is not None:
                self.dates[source] += 1
                self.right[source] += is_right
                if at != was and not is_right:
                    self.false += 1
                    self.wrong.append(f"night {number} page {page.number} {source} {iso(at)}")
            if page.number in self._before and page.last(now) > self._then:
                self.changes += 1
                is_seen = at is not None and abs(at - page.last(now)) <= DAY + 60
                self.seen += is_seen
                if not is_seen:
                    self.wrong.append(f"night {number} page {page.number} missed: {source} {at and iso(at)}")
            after[page.number] = at
        self._before, self._then = after, now

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.page_nights + other.page_nights,
            self.dates + other.dates,
            self.right + other.right,
            self.changes + other.changes,
            self.seen + other.seen,
            self.false + other.false,
            self.wrong + other.wrong,
        )

    @property
    def cells(self) -> str:
        """Precision, recall, and false moves per 1,000 page-nights."""
        dates = self.dates.total()
        precision = f"{self.right.total() / dates:.4f}" if dates else "-"
        return f"{precision} | {self.seen / max(1, self.changes):.3f} | {1_000 * self.false / max(1, self.page_nights):.2f}"

    @property
    def sources(self) -> str:
        """The share of dates of each source, with its precision."""
        total = self.dates.total()
        return ", ".join(
            f"{source} {100 * count / total:.0f} % {self.right[source] / count:.3f}"
            for source, count in self.dates.most_common()
        )


Tallies: TypeAlias = dict[str, Tally]
WAYS = ("ours", "header", "page", "today")


async def measure(pages: Sequence[Page], setting: Setting, nights: int) -> Tallies:
    """One setting on one site."""
    site, program, tallies = Site(pages), Rules(), {way: Tally() for way in WAYS}
    for number in range(nights):
        now, answers = site.night(setting, number)
        ours = await program.run(now, answers)
        found: dict[str, dict[Page, tuple[float, str] | None]] = {
            "ours": {one.page: ours.get(one.page.url) for one in answers},
            "header": {one.page: (one.header, "header") if one.header else None for one in answers},
            "page": {one.page: (one.stated, "page") if one.stated else None for one in answers},
            "today": {one.page: (now, "today") for one in answers},
        }
        for way, dates in found.items():
            tallies[way].night(now, number, dates)
    await program.frontier.close()
    return tallies


async def measure_budget(pages: Sequence[Page], setting: Setting, nights: int, share: float) -> str:
    """What visits saw of one setting on one site, in a line."""
    site, program = Site(pages), Rules()
    seen, before = dict[Page, float](), dict[Page, float | None]()
    edits = dated = false = page_nights = 0
    for number in range(nights):
        now, answers = site.night(setting, number)
        there = {one.page.url: one.page for one in answers}
        found = await program.run(now, answers, ceil(share * len(there)) if number else None)
        edited = {page for page in program.visited if page.last(now) > seen.get(page, now)}
        for url, page in there.items():
            at, page_nights = found.get(url, (None, ""))[0], page_nights + 1
            if page in edited:
                edits += 1
                dated += at is not None and max(page.last(now), seen[page]) - DAY - 60 <= at <= now + 60
            elif at is not None and at != before.get(page, at if page not in seen else None):
                false += 1
            before[page] = at
        seen |= dict.fromkeys(program.visited, now)
    await program.frontier.close()
    return f"{dated} of {edits} edits dated, {1_000 * false / page_nights:.2f} false moves"


def one_budget(task: tuple[Path, int, int, int, float]) -> str:
    path, which, pages, nights, share = task
    logging.disable(logging.CRITICAL)
    line = anyio.run(measure_budget, read(path, pages), SETTINGS[which], nights, share)
    return f"{SETTINGS[which].name}, {path.stem}: {line}"


def one(task: tuple[Path, int, int, int]) -> tuple[int, Tallies]:
    path, which, pages, nights = task
    logging.disable(logging.CRITICAL)
    return which, anyio.run(measure, read(path, pages), SETTINGS[which], nights)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--pages", type=int, default=200, help="of each site (200)")
    parser.add_argument("--nights", type=int, default=365, help="(365)")
    parser.add_argument("--only", nargs="*", default=[""], help="settings whose names contain one of these")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--budget", type=float, help="share of the pages, a night")
    parser.add_argument("--wrong", type=int, default=0, help="print so many examples")
    chosen = parser.parse_args()
    which = [
        number for number, setting in enumerate(SETTINGS) if any(one in setting.name for one in chosen.only)
    ]
    tasks = [
        (path, number, chosen.pages, chosen.nights)
        for number in which
        for path in sorted(chosen.folder.glob("*.json"))
    ]
    if chosen.budget:
        with get_context("spawn").Pool(chosen.jobs) as pool:
            for line in pool.imap(one_budget, [(*task, chosen.budget) for task in tasks]):
                print(line, flush=True)
        return
    totals: dict[int, Tallies] = {}
    with get_context("spawn").Pool(chosen.jobs) as pool:
        for number, tallies in pool.imap_unordered(one, tasks):
            known = totals.setdefault(number, {way: Tally() for way in WAYS})
            totals[number] = {way: known[way] + tallies[way] for way in WAYS}
            print(SETTINGS[number].name, tallies["ours"].cells, file=sys.stderr, flush=True)
    print(
        "| setting | precision | recall | false moves | by source |",
        " | ".join(f"{way}: precision | recall | false" for way in WAYS[1:]),
        "|",
    )
    for number in which:
        rest = " | ".join(totals[number][way].cells for way in WAYS[1:])
        ours = totals[number]["ours"]
        print(f"| {SETTINGS[number].name} | {ours.cells} | {ours.sources} | {rest} |")
        for line in ours.wrong[: chosen.wrong]:
            print("   ", line)


if __name__ == "__main__":
    main()
