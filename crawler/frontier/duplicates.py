"""One page at several URLs: error pages (soft 404), sort orders, and other spellings of an address.

Which of them is listed is decided by `rules.spellings` and `rules.record`. The statements select the pages
that may be the same, far fewer than all, in chunks, and store what was decided. Each function is called
within a transaction.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice, starmap
from typing import Final

from msgspec.structs import replace

from crawler.frontier.budget import ANY_ECHOING, IS_POOR
from crawler.frontier.database import CHUNK, Database
from crawler.frontier.levels import REPEATS
from crawler.frontier.runs import start_numbers
from crawler.frontier.schema import IN_SITEMAP, settled
from crawler.model.outcome import Unlisted, code
from crawler.model.reasons import Why
from crawler.model.survey import DoubtfulPlace, RepeatedPage, SameContent, WithContent
from crawler.parse.url import Url
from crawler.rules import duplicates, soft_404
from crawler.rules.nonexistent_pages import NAME, has_shape, shapes_of
from crawler.rules.record import DUPLICATE, LISTED, SETTLED, SOFT_404, SortOrder, sort_orders
from crawler.rules.soft_404 import DOUBTFUL, FEW, is_calendar, title_words
from crawler.rules.spellings import (
    Copy,
    Repeat,
    copies,
    folded,
    places_of_sessions,
    sessions,
    unlisted_repeats,
    visitor_urls,
)

HASHES: Final = 1 << 18  # by which pairs of a place and a title are counted
_LISTED: Final = f"u.run = :run AND {settled('u')} AND u.outcome = '{LISTED}'"

SAME_CONTENT: Final = f"""
SELECT h.origin, u.version, count(*), min(u.url) FROM known AS u JOIN host AS h ON h.id = u.host
WHERE {_LISTED} AND u.version IS NOT NULL
GROUP BY h.origin, u.version HAVING count(*) >= :least ORDER BY 3 DESC, 4 LIMIT 200
"""
TITLES: Final = f"""
SELECT u.id, u.url, u.title, u.content, v.url, u.outcome
FROM known AS u LEFT JOIN url AS v ON v.id = u.via
WHERE u.id > :after AND u.run = :run AND u.state = {SETTLED} AND u.outcome IN ('{LISTED}', '{DUPLICATE}')
ORDER BY u.id LIMIT :limit
"""
_TITLED: Final = f"""
SELECT u.id, u.url, u.title FROM known AS u
WHERE u.id > :after AND {_LISTED} AND u.title IS NOT NULL ORDER BY u.id LIMIT :limit
"""
REPEATED: Final = f"""
SELECT h.origin, u.version, u.url, u.title, u.echoing FROM known AS u JOIN host AS h ON h.id = u.host
WHERE {_LISTED} AND u.version IS NOT NULL ORDER BY u.url LIMIT 20000
"""
# A page, read without what repeats its address, that says what one says that is read with it. Of a join with
# a LIMIT, PostgreSQL would compare each page with each.
ECHOED: Final = f"""
SELECT u.echoing FROM known AS u WHERE {_LISTED} AND u.echoing IS NOT NULL
INTERSECT
SELECT o.version FROM known AS o WHERE {ANY_ECHOING} AND o.run = :run AND o.outcome = '{LISTED}' LIMIT 1
"""
# Pages of one title may say the same, but for what they repeat of their addresses, or what is random on them.
SAME_TITLE: Final = f"""
SELECT 1 FROM known AS u WHERE {_LISTED} GROUP BY u.title HAVING count(*) > 1 LIMIT 1
"""
ANY_SAME_CONTENT: Final = f"""
SELECT 1 FROM known AS u WHERE {_LISTED} AND u.version IS NOT NULL
GROUP BY u.host, u.version HAVING count(*) > 1 LIMIT 1
"""
WITH_CONTENT: Final = f"""
SELECT u.url FROM known AS u JOIN host AS h ON h.id = u.host
WHERE {_LISTED} AND h.origin = :origin AND u.version = :content ORDER BY u.url LIMIT 1000
"""

_WITHDRAW: Final = f"""
UPDATE page SET outcome = :outcome, detail = :detail FROM url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome = '{LISTED}'
"""
WITHDRAW: Final = f"{_WITHDRAW} AND u.@key @any(keys, key)"
WITHDRAW_SAME_CONTENT: Final = f"""
{_WITHDRAW} AND (page.content = :content OR '=' || page.digest = :content)
AND u.host = (SELECT id FROM host WHERE origin = :origin)
AND substr(u.url, 1, :length) = :prefix AND NOT u.@key @any(spared, key)
"""

# Pages that may be sort orders of others, by their URLs; and these others, if they exist and say the same.
QUERIES: Final = f"""
SELECT u.id, u.url FROM known AS u
WHERE u.id > :after AND {_LISTED} AND u.unordered IS NOT NULL AND u.url LIKE '%?%' ORDER BY u.id LIMIT :limit
"""
PAIRS: Final = f"""
SELECT q.id, q.host, r.base, r.place, r.sorting, q.content <> u.content
FROM @rows(id, @key, base, place, sorting) JOIN known AS q ON q.id = r.id JOIN known AS u ON u.@key = r.@key
WHERE {_LISTED} AND u.host = q.host AND u.unordered = q.unordered
"""

# All listed pages with what shows that they are the same as another one; and how many pages link to them that
# say something else, and differ from each other: of one page, a stranger may make any number of addresses.
LISTED_PAGES: Final = f"""
SELECT u.id, u.url, u.digest, u.unordered, u.content, u.etag, u.modified, u.variant,
    u.version
FROM known AS u
WHERE u.id > :after AND {_LISTED} AND u.digest IS NOT NULL ORDER BY u.id LIMIT :limit
"""
LINKED: Final = f"""
SELECT j.value, @least(count(DISTINCT u.digest), count(DISTINCT coalesce(u.content, u.digest)))
FROM known AS u @each(u.links) JOIN page AS t ON t.id = j.value
WHERE u.run = :run AND u.state = {SETTLED} AND j.value @any(ids)
    AND u.digest IS DISTINCT FROM t.digest AND (u.content IS NULL OR u.content IS DISTINCT FROM t.content)
GROUP BY j.value
"""
PUBLISHED: Final = """
SELECT id FROM known
WHERE id @any(ids) AND published >= (SELECT max(number) FROM publication WHERE run < :run)
"""
CANONICAL: Final = f"""
SELECT u.id, u.detail FROM known AS u
WHERE u.id > :after AND u.run = :run AND u.outcome = '{code(Unlisted(Why.CANONICAL))}'
ORDER BY u.id LIMIT :limit
"""

LISTED_INSTEAD: Final = f"""
SELECT u.url, u.detail FROM known AS u
WHERE u.run = :run AND u.state = {SETTLED} AND u.outcome = '{DUPLICATE}'
"""

# Duplicates that this run visited; and which of the pages that were listed instead still are, or say nothing.
VISITED: Final = f"""
SELECT u.id, u.detail FROM known AS u
WHERE u.run = :run AND u.visited = :run AND u.state = {SETTLED} AND u.outcome = '{DUPLICATE}'
"""
STILL_LISTED: Final = f"""
SELECT u.url FROM known AS u
WHERE u.run = :run AND u.@key @any(keys, key) AND ({IN_SITEMAP} OR u.outcome IN ('{DUPLICATE}', '{SOFT_404}'))
"""
NEWS: Final = f"""
SELECT 1 FROM known AS u
WHERE {_LISTED} AND u.visited = :run AND u.published_content IS DISTINCT FROM u.version LIMIT 1
"""

_OUTCOME: Final = ("id", "outcome", "detail")
UNLIST: Final = f"""
UPDATE page SET outcome = r.outcome, detail = r.detail FROM @rows({", ".join(_OUTCOME)}) WHERE page.id = r.id
"""


def same_content(db: Database, least: int) -> Sequence[SameContent]:
    """See `ports.reads.SameContentGroups`."""
    rows = db.all(SAME_CONTENT, {"run": db.run, "least": least})
    return [SameContent(name, content, count, Url(example)) for name, content, count, example in rows]


def pages_with_content(db: Database, group: SameContent) -> Sequence[Url]:
    """See `ports.reads.PagesWithContent`."""
    given = {"run": db.run, "origin": group.origin, "content": group.content}
    return [Url(url) for (url,) in db.all(WITH_CONTENT, given)]


def withdraw(db: Database, pages: Sequence[Url] | WithContent, why: Why, detail: str) -> None:
    """See `ports.Record.withdraw`."""
    given = {"run": db.run, "outcome": code(Unlisted(why)), "detail": detail}
    if isinstance(pages, WithContent):
        same = {"content": pages.content, "origin": pages.origin, "prefix": pages.prefix}
        spared = {"length": len(pages.prefix), "spared": db.dialect.keys(pages.spared)}
        db.do(WITHDRAW_SAME_CONTENT, given | same | spared)
    else:
        db.do(WITHDRAW, given | {"keys": db.dialect.keys(pages)})


def doubtful_places(
    db: Database, known: Mapping[str, str | None], but: AbstractSet[str], *, alike: bool, only_dated: bool
) -> Mapping[str, DoubtfulPlace]:
    """See `ports.reads.DoubtfulPlaces`."""
    growing = dict.fromkeys(known, False) | dict(_growing(db, alike=alike, only_dated=only_dated))
    found = {place: DoubtfulPlace(is_small) for place, is_small in growing.items() if place not in but}
    # The ends of shapes by what they begin with; and what the addresses in other places begin with.
    ends, others = defaultdict[str, list[tuple[str, str]]](list), set[str]()
    contents = defaultdict[str, set[str | None]](set)
    for place in found:
        start, is_shape, end = place.partition(NAME)
        if is_shape:
            ends[start].append((end, place))
        else:
            others.add(start.partition("?")[0].partition("{")[0])
    starts, lengths = tuple(others), sorted({*map(len, ends)})
    for chunk in db.chunks(TITLES, {"run": db.run}) if found else ():
        for _, url, _, content, _, outcome in chunk:
            if outcome != LISTED:
                continue
            near = [
                shape
                for length in lengths
                for end, shape in ends.get(url[:length], ())
                if url.endswith(end) and has_shape(url, shape)
            ]
            if url.startswith(starts):
                near += found.keys() & soft_404.doubtful_places(url)
            for place in near:
                if content is None or content != known.get(place):
                    found[place].pages.append(Url(url))
                    contents[place].add(content)
    # Few pages that repeat each other bring nothing anyway.
    return {place: one for place, one in found.items() if not one.is_small or len(contents[place]) >= FEW}


def _growing(db: Database, *, alike: bool, only_dated: bool) -> Iterator[tuple[str, bool]]:
    """Places of which pages led to enough others with one title.

    Several folders may be like that, of which each has a few pages: the second value is true of these.
    Most sites have a title for each page, so a few bytes are kept of each, and only pairs of a place and a
    title that may be frequent are counted exactly: those whose hash is.
    """
    places, named, titles, times = dict[str, int](), array("I"), array("q"), array("I", [0]) * HASHES
    places_of = lru_cache(CHUNK)(soft_404.doubtful_places)  # one page leads to many
    for chunk in db.chunks(TITLES, {"run": db.run}):
        for _, url, title, _, via, _ in chunk:
            if via is None:
                continue
            at = places_of(via)
            is_day = is_calendar(at[-1])
            if only_dated and not is_day:
                continue
            near = {*shapes_of(url, via)} if alike and not is_day else set[str]()
            if is_day or url.startswith((*at, via)):
                near |= {via, *at}.intersection(soft_404.doubtful_places(url))
            if near:
                words = hash(title_words(url, title))
                for place in near:
                    number = places.setdefault(place, len(places))
                    named.append(number)
                    titles.append(words)
                    times[(number ^ words) % HASHES] += 1
    yield from _frequent([*places], named, titles, times)


def _frequent(
    places: Sequence[str], named: Sequence[int], titles: Sequence[int], times: Sequence[int]
) -> Iterator[tuple[str, bool]]:
    """The places with enough pages of one title, and whether each has few. `times`: of pairs, by hash."""
    times_of_title = array("I", [0]) * HASHES
    for words in titles:
        times_of_title[words % HASHES] += 1
    pairs = Counter(
        pair
        for pair in zip(named, titles, strict=True)
        if times_of_title[pair[1] % HASHES] >= DOUBTFUL and times[(pair[0] ^ pair[1]) % HASHES] >= FEW
    )
    large = {number for (number, _), count in pairs.items() if count >= DOUBTFUL}
    in_folders = Counter[int]()
    for (number, words), count in pairs.items():
        in_folders[words] += count if count >= FEW and "{" not in places[number] else 0
    for (number, words), count in pairs.items():
        is_one_of_many = in_folders[words] >= DOUBTFUL and "{" not in places[number]
        if number in large or (count >= FEW and is_one_of_many):
            yield places[number], number not in large


def named_errors(db: Database, most: int) -> Sequence[Url]:
    """See `ports.reads.NamedErrors`."""
    found = (
        Url(url)
        for chunk in db.chunks(_TITLED, {"run": db.run})
        for _, url, title in chunk
        if soft_404.names_error(title)
    )
    return [*islice(found, most)]


def repeated(db: Database) -> Sequence[RepeatedPage]:
    """See `ports.reads.RepeatedPages`."""
    run = {"run": db.run}
    is_likely = db.one(IS_POOR, run)[0] or db.all(ANY_SAME_CONTENT, run)
    if not (is_likely or db.all(ECHOED, run) or db.all(SAME_TITLE, run)):
        return []
    return [RepeatedPage(row[0], row[1], Url(row[2]), *row[3:]) for row in db.all(REPEATED, run)]


def unlist_duplicates(db: Database) -> None:
    """See `ports.SiteRule.DUPLICATES`."""
    _unlist(db, DUPLICATE, sort_orders(_sort_orders(db)))
    _unlist(db, DUPLICATE, _copies(db))
    run = {"run": db.run}
    if db.one(IS_POOR, run)[0] and (repeats := db.ask_whole(REPEATS, run)()):
        listed_instead = dict(db.all(LISTED_INSTEAD, {"run": db.run}))
        _unlist(db, DUPLICATE, unlisted_repeats(starmap(Repeat, repeats), listed_instead))


def has_news(db: Database) -> bool:
    """See `ports.reads.HasNews`."""
    return bool(db.all(NEWS, {"run": db.run}))


def relist(db: Database) -> None:
    """See `ports.SiteRule.RELIST`."""
    found = db.all(VISITED, {"run": db.run})
    keys = db.dialect.keys(Url(base) for _, base in found)
    there = {url for (url,) in db.all(STILL_LISTED, {"run": db.run, "keys": keys})} if found else set()
    _unlist(db, LISTED, {number: None for number, base in found if base not in there})


def _unlist(db: Database, outcome: str, details: Mapping[int, str | None]) -> None:
    rows = iter(details.items())
    while some := [(number, outcome, detail) for number, detail in islice(rows, CHUNK)]:
        db.do_rows(UNLIST, _OUTCOME, some)


def _sort_orders(db: Database) -> Iterator[SortOrder]:
    columns = ("id", db.dialect.column, "base", "place", "sorting")
    for chunk in db.chunks(QUERIES, {"run": db.run}):
        maybe = [
            (number, db.dialect.key_of(base), base, place, sorting)
            for number, url in chunk
            for place, (base, sorting) in enumerate(duplicates.unsorted(url))
        ]
        yield from map(SortOrder._make, db.all(PAIRS, db.dialect.given(columns, maybe) | {"run": db.run}))


def _copies(db: Database) -> Mapping[int, str]:
    """The listed pages that are the same as another one, with its URL."""
    pages, places = _candidates(db)
    found = copies(pages, places)
    if not found:
        return found
    best = set(found.values())
    some = {page.id: page for page in pages if page.id in found or page.url in best}
    given = {"run": db.run, "ids": db.dialect.all_of(some)}
    linked, published = dict(db.all(LINKED, given)), {number for (number,) in db.all(PUBLISHED, given)}
    urls = {page.url for page in some.values()}
    named = {url for chunk in db.chunks(CANONICAL, {"run": db.run}) for _, url in chunk if url in urls}
    starts = frozenset(start_numbers(db))
    return copies(
        [
            replace(
                page,
                is_canonical=page.url in named,
                linked=linked.get(page.id, 0),
                is_start=page.id in starts,
                is_published=page.id in published,
            )
            for page in some.values()
        ],
        places,
    )


def _candidates(db: Database) -> tuple[list[Copy], frozenset[str]]:
    """The listed pages whose evidence another one has, too; and the places of session ids in URLs."""
    seen, several = set[Hashable](), set[Hashable]()
    with_session = list[tuple[str, Sequence[Hashable], str]]()
    for chunk in db.chunks(LISTED_PAGES, {"run": db.run}):
        for _, url, *facts, _, text in chunk:
            for evidence in (known := _evidence(*facts)):
                (several if evidence in seen else seen).add(evidence)
            if any(sessions(url)):
                with_session.append((url, known, text))
    places = places_of_sessions((url, known) for url, known, _ in with_session)
    for_visitors = {(name, text) for url, _, text in with_session for name in visitor_urls(url, places)}
    pages = list[Copy]()
    for chunk in db.chunks(LISTED_PAGES, {"run": db.run}) if several else ():
        for number, url, *facts, variant, text in chunk:
            shared = tuple(filter(several.__contains__, _evidence(*facts)))
            if shared or (for_visitors and (folded(url), text) in for_visitors):
                pages.append(Copy(number, url, shared, variant, is_canonical=False, linked=0, text=text))
    return pages, places


def _evidence(
    digest: str, unordered: str | None, content: str | None, etag: str | None, modified: str | None
) -> tuple[Hashable, ...]:
    """What pages that are the same have in common: one of these."""
    found: list[Hashable] = [digest]
    if unordered is not None:
        found.append(("content and links", unordered))
    if content is not None:
        found += [(content, validator) for validator in (etag, modified) if validator]
    return tuple(map(hash, found))
