"""Histories of sites as sites: what a page answers in a night, with the ways in which sites lie; see `lastmod.py`."""

import json
import random
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from crawler.parse.url import Url

DAY = 86_400
FIRST = 1_700_000_000 // DAY * DAY  # the start of day 0
SITE = "https://site.example"


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


def in_stock(number: int, version: int) -> tuple[str, ...]:
    """The paragraphs of a product: what changes is whether it can be bought."""
    first, *others = content(number, 0)
    return first, ("In stock", "Sold out")[version % 2], *others


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


def rolled_out(at: Moment) -> str:
    """A banner that comes, changes and goes every two weeks, on each page in another of nine nights."""
    rolled = (at.night - at.page.number * 7 % 9 + 4) // 14
    return f"<p>{sentence('banner', rolled)}</p>" if rolled % 3 else ""


def ahead(at: Moment) -> float:
    """On a tenth of the pages, the header is a day of the first month from the beginning on."""
    to_come = FIRST + DAY * (3 + at.page.number % 28)
    return max(at.last, to_come) if at.page.number * 37 % 100 < 10 else at.last


def part_built(at: Moment) -> float:
    """A third of the files is written anew each night."""
    turn = (at.page.number - at.night) % 3
    return max(at.last, at.now - turn * DAY - 7_200)


def partly(one_in: int, lie: At) -> At:
    """That date on one page of so many; the others have theirs."""
    return lambda at: at.last if at.page.number % one_in else lie(at)


def monthly(at: Moment) -> float:
    """A build each month, that takes hours."""
    built = FIRST + DAY * ((at.night + 20) // 30 * 30 - 20) + at.page.number * 61
    return max(at.last, built)


def copied(at: Moment) -> float:
    """One of two servers, by chance, to which the files were copied on different days."""
    days = at.made("server", at.night).choice((40, 12))
    return max(at.last, FIRST - DAY * days + at.page.number)


def stating_at(when: At) -> Text:
    return stating(lambda at: iso(when(at) or at.last))


class Setting(NamedTuple):
    """What the site sends and shows, beside its content."""

    name: str
    header: At = lambda _: None
    stated: Text = lambda _: ""
    noise: Text = lambda _: ""
    sitemap: At = lambda _: None
    content: Callable[[int, int], Sequence[str]] = content  # of a page, by its versions


RIGHT = stating(lambda at: iso(at.last))
SETTINGS = (
    Setting("plain text"),
    Setting("in stock, sold out", content=in_stock),
    Setting("header true", lambda at: at.last),
    Setting("header: build", lambda at: at.deployed),
    Setting("header: build each night", lambda at: at.now - 7_200),
    Setting("header: request", lambda at: at.now),
    Setting("header: template changes", lambda at: max(at.last, at.template)),
    Setting("header: built in parts", part_built),
    Setting("header: to come on a tenth", ahead),
    Setting("header: some built each night", partly(2, lambda at: at.now - 7_200)),
    Setting("header: some built with each change", partly(10, lambda at: at.deployed)),
    Setting("header: some of the request", partly(3, lambda at: at.now)),
    Setting("header: some built each month", partly(5, monthly)),
    Setting("header: some of two servers", partly(3, copied)),
    Setting("header: build, stated right", lambda at: at.deployed, RIGHT),
    Setting("header: request, noise", lambda at: at.now, noise=clock),
    Setting("header true, noise", lambda at: at.last, noise=clock),
    Setting("clock", noise=clock),
    Setting("counter", noise=counter),
    Setting("counter on a third", noise=on(33, counter)),
    Setting("related", noise=related),
    Setting("related on a tenth", noise=on(10, related)),
    Setting("latest", noise=latest),
    Setting("latest on a third", noise=on(33, latest)),
    Setting("nonces", noise=nonce),
    Setting("of the week", noise=of_week),
    Setting("of the week on a third", noise=on(33, of_week)),
    Setting("of the week on a tenth", noise=on(10, of_week)),
    Setting("rolled out", noise=rolled_out),
    Setting("rolled out on a third", noise=on(33, rolled_out)),
    Setting("advertisements", noise=sometimes),
    Setting("advertisements on a tenth", noise=on(10, sometimes)),
    Setting("all noise", noise=lambda at: clock(at) + counter(at) + related(at) + nonce(at)),
    Setting("stated right", stated=RIGHT),
    Setting("stated right, bare day", stated=stating(lambda at: day(at.last))),
    Setting("stated right, noise", stated=RIGHT, noise=lambda at: clock(at) + related(at)),
    Setting("stated: build", stated=stating(lambda at: iso(at.deployed))),
    Setting("stated: request", stated=stating(lambda at: iso(at.now))),
    Setting("stated: today", stated=stating(lambda at: day(at.now))),
    Setting("stated: some today", stated=stating(lambda at: day(at.last if at.page.number % 2 else at.now))),
    Setting("stated: some of the request", stated=stating_at(partly(10, lambda at: at.now))),
    Setting("stated: some built each month", stated=stating_at(partly(5, monthly))),
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
    Setting("sitemap: some of the request", sitemap=partly(3, lambda at: at.now - 3_600)),
    Setting("sitemap: some built each month", sitemap=partly(5, monthly)),
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
    paragraphs = "".join(f"<p>{text}" for text in setting.content(page.number, page.version(at.now)))
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
