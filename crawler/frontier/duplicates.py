"""One page at several URLs: error pages (soft 404), sort orders and other names, repeats of a crawler trap.

Which of them is listed is decided by `rules.duplicates` and `rules.record`. The statements select the pages
that may be the same, far fewer than all, in chunks, and store what was decided. Each function is called
within a transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from crawler.frontier.database import CHUNK, Database
from crawler.model.outcome import Unlisted, code
from crawler.model.reasons import Why
from crawler.model.survey import SameContent
from crawler.parse.url import Url
from crawler.rules import duplicates
from crawler.rules.record import (
    DUPLICATE,
    LISTED,
    REPEAT,
    SETTLED,
    Patterned,
    SortOrder,
    Twin,
    repeats,
    sort_orders,
    twins,
)

_LISTED: Final = f"u.run = :run AND u.state = {SETTLED} AND u.outcome = '{LISTED}'"

SAME_CONTENT: Final = f"""
SELECT h.origin, u.content, count(*), min(u.url) FROM known AS u JOIN host AS h ON h.id = u.host
WHERE {_LISTED} AND u.content IS NOT NULL
GROUP BY h.origin, u.content HAVING count(*) >= :least ORDER BY 3 DESC, 4 LIMIT 20
"""

_WITHDRAW: Final = f"""
UPDATE page SET outcome = :outcome, detail = :detail FROM url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome = '{LISTED}'
"""
WITHDRAW: Final = f"{_WITHDRAW} AND u.@key @any(keys, key)"
WITHDRAW_SAME_CONTENT: Final = f"""
{_WITHDRAW} AND page.content = :content AND u.host = (SELECT id FROM host WHERE origin = :origin)
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

# Pages with a name that others may have too; and the page whose URL is that name.
NAMED: Final = f"""
SELECT u.id, u.url, u.unordered, u.variant FROM known AS u
WHERE u.id > :after AND {_LISTED} AND u.unordered IS NOT NULL
AND (u.variant IS NOT NULL OR lower(u.url) LIKE '%/index.%' OR lower(u.url) LIKE '%/default.%')
ORDER BY u.id LIMIT :limit
"""
OF_NAME: Final = f"""
SELECT u.id, u.url, u.unordered FROM known AS u
WHERE u.@key @any(keys, key) AND {_LISTED} AND u.unordered IS NOT NULL
"""
CANONICAL: Final = f"""
SELECT u.id, u.detail FROM known AS u
WHERE u.id > :after AND u.run = :run AND u.outcome = '{code(Unlisted(Why.CANONICAL))}'
ORDER BY u.id LIMIT :limit
"""

ANY_CLOSED: Final = "SELECT EXISTS (SELECT 1 FROM trap WHERE run = :run AND closed)"
# Pages of closed patterns, and all pages of their families with the same content.
_OF_FAMILY: Final = f"""
FROM trap AS f JOIN trap AS t ON t.family = f.id JOIN known AS u ON u.trap = t.id
WHERE f.run = :run AND {_LISTED} AND u.content IS NOT NULL
"""
PATTERNED: Final = f"""
WITH shut AS MATERIALIZED (SELECT DISTINCT f.pattern, u.content {_OF_FAMILY} AND t.closed)
SELECT u.id, u.url, f.pattern, u.content, t.closed, u.round IS NOT NULL, t.named {_OF_FAMILY}
AND (f.pattern, u.content) IN (SELECT pattern, content FROM shut)
"""
WITHOUT_QUERY: Final = f"""
SELECT u.id, u.url, f.pattern, u.content FROM trap AS f JOIN known AS u ON u.@key = f.bare
WHERE f.run = :run AND f.family IS NULL AND f.batch > 0 AND NOT f.named AND f.kind = 'query'
AND {_LISTED} AND u.content IS NOT NULL
"""

_OUTCOME: Final = ("id", "outcome", "detail")
UNLIST: Final = f"""
UPDATE page SET outcome = r.outcome, detail = r.detail FROM @rows({", ".join(_OUTCOME)}) WHERE page.id = r.id
"""


def same_content(db: Database, least: int) -> Sequence[SameContent]:
    """See `ports.reads.SameContentGroups`."""
    rows = db.all(SAME_CONTENT, {"run": db.run, "least": least})
    return [SameContent(name, content, count, Url(example)) for name, content, count, example in rows]


def withdraw(db: Database, pages: Sequence[Url] | SameContent, why: Why, detail: str) -> None:
    """See `ports.Record.withdraw`."""
    given = {"run": db.run, "outcome": code(Unlisted(why)), "detail": detail}
    if isinstance(pages, SameContent):
        db.do(WITHDRAW_SAME_CONTENT, given | {"content": pages.content, "origin": pages.origin})
    else:
        db.do(WITHDRAW, given | {"keys": db.dialect.keys(pages)})


def unlist_duplicates(db: Database) -> None:
    """See `ports.Record.unlist_duplicates`."""
    _unlist(db, DUPLICATE, sort_orders(_sort_orders(db)))
    _unlist(db, DUPLICATE, twins(_twins(db)))


def unlist_repeats(db: Database) -> int:
    """See `ports.Record.unlist_repeats`."""
    run = {"run": db.run}
    if not db.one(ANY_CLOSED, run)[0]:
        return 0
    pages = [
        Patterned(number, url, (family, content), int(closed), bool(waited), bool(named))
        for number, url, family, content, closed, waited, named in db.all(PATTERNED, run)
    ]
    groups = {page.group for page in pages}
    pages += [
        Patterned(number, url, (family, content), -1, waited=False, named=False)
        for number, url, family, content in db.all(WITHOUT_QUERY, run)
        if (family, content) in groups
    ]
    found = repeats(pages)
    _unlist(db, REPEAT, {number: f"same content as {best}" for number, best in found.items()})
    return len(found)


def _unlist(db: Database, outcome: str, details: Mapping[int, str]) -> None:
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


def _twins(db: Database) -> list[Twin]:
    found = set[tuple[int, str, tuple[str, str]]]()
    for chunk in db.chunks(NAMED, {"run": db.run}):
        names = {number: duplicates.resource(url, variant) for number, url, _, variant in chunk}
        found.update((number, url, (names[number], words)) for number, url, words, _ in chunk)
        same = db.all(OF_NAME, {"keys": db.dialect.keys(set(names.values())), "run": db.run})
        found.update((number, url, (url, words)) for number, url, words in same)
    urls = {url for _, url, _ in found}
    named = db.chunks(CANONICAL, {"run": db.run}) if urls else ()
    canonical = {url for chunk in named for _, url in chunk if url in urls}
    return [Twin(number, url, group, url in canonical) for number, url, group in found]
