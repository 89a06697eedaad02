"""How true `lastmod` is: histories of documentation sites, one night a day, with the ways in which sites lie.

    .venv/bin/python benchmarks/lastmod.py [FOLDER] [--pages 200] [--nights 365] [--only NAME ...]

FOLDER has histories as JSON, as `benchmarks/histories/` does. Every page of every night goes through the
judge, the frontier (SQLite in memory) and the rules at the end of a run, as in a crawl; only HTTP and discovery are left out. For each setting:

precision  dates in the sitemap, each night anew, that are within a day of a change of their page
recall     changes of known pages that stand in the next sitemap with a date within a day
false      dates that move although their page did not change, per 1,000 page-nights

Beside it stands what a sitemap of header dates, of dates in pages, and of the day of the crawl would say.
"""

import argparse
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, TypeAlias

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crawler.engine.finish import dating
from crawler.frontier.sqlite.frontier import SqliteFrontier
from crawler.model.reasons import SeedKind
from crawler.model.reply import Headers, Response
from crawler.model.robots import RobotsFile
from crawler.model.rows import PublicationRow
from crawler.model.seed import Seed
from crawler.model.settlement import Settlement
from crawler.model.visit import Visit
from crawler.parse.normalise import Normaliser
from crawler.parse.url import Url
from crawler.ports import reads
from crawler.rules import lastmod
from crawler.rules.judge import Judge, JudgeRules

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY  # the start of day 0
SITE = "https://site.example"
SAMPLE = Path(__file__).parent / "histories"


# -- the histories
# -----------------------------------------------------------------------------------------


class Page(NamedTuple):
    """One page of a site. Times in seconds since the epoch."""

    number: int
    changes: tuple[float, ...]  # the first is its birth
    gone: float

    @property
    def url(self) -> Url:
        return Url(f"{SITE}/docs/page-{self.number}")

    def version(self, now: float) -> int:
        """How often it had changed."""
        return sum(at <= now for at in self.changes) - 1

    def last(self, now: float) -> float:
        """When it last changed."""
        return self.changes[self.version(now)]

    def is_there(self, now: float) -> bool:
        return self.changes[0] <= now < self.gone


def read(path: Path, most: int) -> list[Page]:
    """A history, with a sample of that many pages."""
    rows = json.loads(path.read_text())["rows"]
    chosen = sorted(random.Random(path.stem).sample(range(len(rows)), min(most, len(rows))))
    return [_page(number, *rows[number]) for number in chosen]


def _page(number: int, born: float, gone: float | None, changes: Sequence[float]) -> Page:
    # What is there on day 0 is older than that.
    birth = born or -30 - random.Random(number).random() * 900
    times = tuple(FIRST + DAY * at for at in (birth, *changes))
    return Page(number, times, FIRST + DAY * gone if gone is not None else float("inf"))


# -- the site
# ----------------------------------------------------------------------------------------------

WORDS = [
    line.split()
    for line in (
        "crawl map page link host index query token route cache socket frame parse tree node leaf graph batch",
        "der Weg ist weit und niemand kennt den Namen des Ortes an dem alles begann als es dunkel war",
        "le petit chat mange une pomme verte pendant que la pluie tombe sur les toits de la vieille ville",
    )
]


@cache
def sentence(*seed: object) -> str:
    made = random.Random(repr(seed))
    return " ".join(made.choices(made.choice(WORDS), k=made.randint(6, 18))).capitalize() + "."


@cache
def content(number: int, version: int) -> tuple[str, ...]:
    """The paragraphs of a page: each version edits, adds, or removes one, or counts up a number in it."""
    if version == 0:
        return tuple(sentence(number, place) for place in range(4 + number % 9))
    before, made = list(content(number, version - 1)), random.Random(number * 1_000 + version)
    place = made.randrange(len(before))
    match made.choice("eeeewnar" if len(before) > 3 else "eewna"):
        case "e":
            before[place] = sentence(number, place, version)
        case "w":
            before[place] = " ".join(
                [*before[place].split()[:-1], f"{sentence(number, version).split()[0]}."]
            )
        case "n":
            before[place] = f"{before[place].rstrip('.0123456789')} {version}."
        case "a":
            before.insert(place + 1, sentence(number, place, version))
        case "r":
            del before[place]
    return tuple(before)


class Moment(NamedTuple):
    """A page at the time of a visit, and what the site around it does."""

    page: Page
    now: float  # of the request
    night: int
    deployed: float  # when the site was last built anew: with each change of any page, and each Sunday
    template: float  # when the template last changed
    others: Sequence[Page]  # all pages that are there

    @property
    def last(self) -> float:
        return self.page.last(self.now)

    def made(self, *seed: object) -> random.Random:
        """Random numbers of this page."""
        return random.Random(repr((self.page.number, *seed)))


Text: TypeAlias = Callable[[Moment], str]
At: TypeAlias = Callable[[Moment], float | None]


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def day(at: float) -> str:
    return iso(at)[:10]


def stating(modified: Text | None = None, published: Text | None = None) -> Text:
    """JSON-LD."""

    def state(at: Moment) -> str:
        given = {"dateModified": modified, "datePublished": published}
        dates = {name: text(at) for name, text in given.items() if text}
        return f'<script type="application/ld+json">{json.dumps({"@type": "TechArticle"} | dates)}</script>'

    return state


def related(at: Moment) -> str:
    """Three other pages, chosen anew each night, with a line about each."""
    some = at.made("related", at.night).sample(at.others, min(3, len(at.others)))
    items = "".join(
        f'<li><a href="{page.url}">{sentence("title", page.number)}</a><p>{sentence("teaser", page.number)}'
        for page in some
    )
    return f"<div><h3>Vielleicht auch</h3><ul>{items}</ul></div>"


def latest(at: Moment) -> str:
    """The five pages that changed last, with what they say, in a plain list."""
    some = sorted(at.others, key=lambda page: page.last(at.now))[-5:]
    return "".join(
        f"<li><a href={page.url}>{sentence('title', page.number)}</a> {day(page.last(at.now))}"
        for page in some
    )


def clock(at: Moment) -> str:
    return f"<p>Es ist {datetime.fromtimestamp(at.now, UTC):%H:%M} Uhr am {day(at.now)}, Seite in 0,{at.made(at.night).randint(10, 99)} s gemacht"


def counter(at: Moment) -> str:
    return f"<p>Aufrufe bisher <b>{1_000 + at.night * 3 + at.made('hits', at.night).randint(0, 2) + at.page.number:,}</b> mal"


def nonce(at: Moment) -> str:
    token = f"{at.made('nonce', at.night).getrandbits(40):010x}"
    return f'<form><input type=hidden value="{token}"><i data-n="{token}">Vorgang {token[:6]}</i></form>'


def of_week(at: Moment) -> str:
    """Another sentence each Sunday, the same on all pages."""
    return f"<p>Wort der Woche: {sentence('week', (at.night + 3) // 7)}"


def sometimes(at: Moment) -> str:
    """An advertisement that changes now and then, on each page at another time."""
    while at.night and at.made("ad", at.night).random() > 0.2:
        at = at._replace(night=at.night - 1)
    return f"<div>Anzeige: {sentence('ad', at.made('which', at.night).randint(0, 30))}</div>"


def on(share: int, noise: Text) -> Text:
    """That noise on a share of the pages, in percent."""
    return lambda at: noise(at) if at.page.number * 37 % 100 < share else ""


def part_built(at: Moment) -> float:
    """A third of the files is written anew each night."""
    turn = (at.page.number - at.night) % 3
    return max(at.last, at.now - turn * DAY - 7_200)


class Setting(NamedTuple):
    """What the site sends and shows, beside its content."""

    name: str
    header: At = lambda _: None
    stated: Text = lambda _: ""
    noise: Text = lambda _: ""
    sitemap: At = lambda _: None


RIGHT = stating(lambda at: iso(at.last))
SETTINGS = (
    Setting("plain text"),
    Setting("header true", lambda at: at.last),
    Setting("header: build", lambda at: at.deployed),
    Setting("header: build each night", lambda at: at.now - 7_200),
    Setting("header: request", lambda at: at.now),
    Setting("header: template changes", lambda at: max(at.last, at.template)),
    Setting("header: built in parts", part_built),
    Setting("header: build, stated right", lambda at: at.deployed, RIGHT),
    Setting("header: request, noise", lambda at: at.now, noise=clock),
    Setting("header true, noise", lambda at: at.last, noise=clock),
    Setting("clock", noise=clock),
    Setting("counter", noise=counter),
    Setting("counter on a third", noise=on(33, counter)),
    Setting("related", noise=related),
    Setting("latest", noise=latest),
    Setting("latest on a third", noise=on(33, latest)),
    Setting("nonces", noise=nonce),
    Setting("of the week", noise=of_week),
    Setting("of the week on a third", noise=on(33, of_week)),
    Setting("of the week on a tenth", noise=on(10, of_week)),
    Setting("advertisements", noise=sometimes),
    Setting("advertisements on a tenth", noise=on(10, sometimes)),
    Setting("all noise", noise=lambda at: clock(at) + counter(at) + related(at) + nonce(at)),
    Setting("stated right", stated=RIGHT),
    Setting("stated right, bare day", stated=stating(lambda at: day(at.last))),
    Setting("stated right, noise", stated=RIGHT, noise=lambda at: clock(at) + related(at)),
    Setting("stated: build", stated=stating(lambda at: iso(at.deployed))),
    Setting("stated: request", stated=stating(lambda at: iso(at.now))),
    Setting("stated: today", stated=stating(lambda at: day(at.now))),
    Setting("stated: never moved", stated=stating(lambda at: iso(at.page.changes[0]))),
    Setting(
        "stated: to come",
        stated=stating(lambda at: iso(at.last + (5 * DAY if at.page.version(at.now) else 0))),
    ),
    Setting(
        "scheduled",
        stated=stating(
            lambda at: iso(at.last if at.page.version(at.now) else at.last - 12 * DAY),
            lambda at: iso(at.page.changes[0]),
        ),
    ),
    Setting("sitemap right", sitemap=lambda at: at.last),
    Setting("sitemap: build", sitemap=lambda at: at.deployed),
    Setting("sitemap: never moved", sitemap=lambda at: at.page.changes[0]),
)


class Answer(NamedTuple):
    """What the site answers for a page."""

    page: Page
    fields: tuple[tuple[str, str], ...]
    body: str
    header: float | None
    stated: float | None
    sitemap: float | None


def answer(setting: Setting, at: Moment) -> Answer:
    page, header, stated = at.page, setting.header(at), setting.stated(at)
    paragraphs = "".join(f"<p>{text}" for text in content(page.number, page.version(at.now)))
    fields = [("Content-Type", "text/html; charset=utf-8")]
    if header is not None:
        fields.append(
            ("Last-Modified", format_datetime(datetime.fromtimestamp(int(header), UTC), usegmt=True))
        )
    menu = "".join(
        f"<li><a href=/docs/page-{other.number}>Page {other.number}</a>" for other in at.others[:20]
    )
    body = (
        f'<!doctype html><html><head><meta charset="utf-8"><title>Page {page.number}</title>{stated}</head><body>'
        f'<div class="t{int(at.template) % 97}">{sentence("template", at.template)}</div><nav>{menu}</nav>'
        f"<h1>{sentence('title', page.number)}</h1>{paragraphs}{setting.noise(at)}<p>{sentence('end')}</body></html>"
    )
    texts = [value for value in json.loads(stated[35:-9]).values() if value[:2] == "20"] if stated else []
    dates = [datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() for text in texts]
    return Answer(page, tuple(fields), body, header, max(dates, default=None), setting.sitemap(at))


class Site:
    """A history as a site: its answers of one night."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = pages
        self.changes = sorted(at for page in pages for at in page.changes)

    def night(self, setting: Setting, number: int) -> tuple[float, list[Answer]]:
        """The time of a night, a few hours after the end of day `number`, and all answers."""
        now = float(FIRST + DAY * (number + 1) + 7 + number % 40)
        there = [page for page in self.pages if page.is_there(now)]
        sunday = FIRST + DAY * ((number + 3) // 7 * 7 - 3) + 3_600
        deployed = max(sunday, *(at for at in self.changes if at <= now))
        template = FIRST + DAY * ((number + 45) // 90 * 90 - 45) + 5_000
        return now, [
            answer(setting, Moment(page, now - place % 7, number, deployed, template, there))
            for place, page in enumerate(there)
        ]


# -- the program
# -------------------------------------------------------------------------------------------

Dates: TypeAlias = Mapping[Url, tuple[float, str]]


@dataclass
class Rules:
    """Judge, frontier and dating, as in a run."""

    now: float = 0.0
    frontier: SqliteFrontier = field(init=False)
    judge: Judge = field(default_factory=lambda: Judge(JudgeRules("x", Normaliser())))

    def __post_init__(self) -> None:
        self.frontier = SqliteFrontier(":memory:", clock=lambda: self.now)

    async def run(self, now: float, answers: Sequence[Answer]) -> Dates:
        """The dates of one night."""
        self.now, frontier = now, self.frontier
        await frontier.begin("settings")
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
        while leases := (await frontier.lease(1_000)).leases:
            settled = []
            for lease in leases:
                one = by_url[lease.visit.url]
                reply = Response(200, Headers(one.fields), one.body.encode())
                settled.append(Settlement(lease, self.judge(lease, reply, at)))
            await frontier.settle(settled)
        await dating.date(frontier, lastmod.DATE_SOURCES["auto"])
        await frontier.finish()
        found: dict[Url, tuple[float, str]] = {}
        async for rows in frontier.stream(reads.Pages()):
            found |= {row.url: (row.lastmod, row.source) for row in rows if row.lastmod and row.source}
        listed = [one.url async for chunk in frontier.stream(reads.ListedEntries()) for one in chunk]
        await frontier.mark_published(PublicationRow(len(listed)))
        await frontier.conclude(refused=False)
        return {url: found[url] for url in listed if url in found}


# -- the count
# ---------------------------------------------------------------------------------------------


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
