"""Duplicates: error pages (soft 404) at many URLs, and one page at several URLs.

The rules are in `rules.duplicates`; URLs are computed here, a chunk at a time, and looked up by their fingerprint.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crawler.frontier.database import CHUNK, Database
from crawler.model.reasons import Why
from crawler.model.survey import SameContent
from crawler.parse.url import Url
from crawler.rules import duplicates
from crawler.rules.record import SETTLED

SAME_CONTENT = """
SELECT h.origin, u.content, count(*), min(u.url) FROM known AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
GROUP BY h.origin, u.content HAVING count(*) >= :least ORDER BY 3 DESC, 4 LIMIT 20
"""

WITHDRAW = """
UPDATE page SET outcome = 'unlisted:' || :why, detail = :detail FROM url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome = 'listed' AND u.@key @any(keys, key)
"""

WITHDRAW_SAME_CONTENT = """
UPDATE page SET outcome = 'unlisted:' || :why, detail = :detail FROM url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome = 'listed' AND page.content = :content
AND u.host = (SELECT id FROM host WHERE origin = :origin)
"""

_LISTED = f"run = :run AND state = {SETTLED} AND outcome = 'listed' AND unordered IS NOT NULL"

QUERIES = (
    f"SELECT id, url FROM known WHERE {_LISTED} AND url LIKE '%?%' AND id > :after ORDER BY id LIMIT :limit"
)

# Of the pages with the same `unordered`, those whose URLs may be sort orders of another.
PAIRS = f"""
SELECT q.id, q.host, r.base, r.place, r.sorting, q.content <> b.content
FROM @rows(id, @key, base, place, sorting) JOIN known AS q ON q.id = r.id JOIN known AS b ON b.@key = r.@key
WHERE b.run = :run AND b.state = {SETTLED} AND b.outcome = 'listed' AND b.host = q.host AND b.unordered = q.unordered
"""

NAMED = f"""
SELECT id, url, variant FROM known
WHERE {_LISTED} AND (variant IS NOT NULL OR url LIKE '%/index.%' OR url LIKE '%/default.%')
AND id > :after ORDER BY id LIMIT :limit
"""

SAME_RESOURCE = f"""
WITH named AS MATERIALIZED (SELECT @key, id FROM @rows(id, @key)),
resource_page AS (
    SELECT @key, id FROM named
    UNION
    SELECT u.@key, u.id FROM (SELECT DISTINCT @key FROM named) AS n JOIN known AS u ON u.@key = n.@key
    WHERE u.run = :run AND u.state = {SETTLED} AND u.outcome = 'listed' AND u.unordered IS NOT NULL
),
choice AS (
    SELECT u.id, u.url, first_value(u.url) OVER (
        PARTITION BY t.@key, u.unordered
        ORDER BY u.url IN (SELECT detail FROM known WHERE run = :run AND outcome = 'unlisted:canonical' AND detail IS NOT NULL) DESC,
            length(u.url), u.url
    ) AS best
    FROM resource_page AS t JOIN known AS u ON u.id = t.id
)
SELECT id, min(best) FROM choice WHERE best <> url GROUP BY id
"""

UNLIST = """
UPDATE page SET outcome = 'unlisted:duplicate', detail = r.base FROM @rows(id, base) WHERE page.id = r.id
"""


class _Pair(NamedTuple):
    """A page, and another of which it may be a sort order."""

    id: int
    host: int
    base: str
    place: int
    sorting: str
    is_reordered: bool


def same_content(db: Database, least: int) -> Sequence[SameContent]:
    """See `ports.Record.same_content`."""
    rows = db.all(SAME_CONTENT, {"run": db.run, "least": least})
    return [SameContent(name, content, count, Url(example)) for name, content, count, example in rows]


def withdraw(db: Database, pages: Sequence[Url] | SameContent, why: Why, detail: str) -> None:
    """See `ports.Record.withdraw`."""
    values = {"run": db.run, "why": why.value, "detail": detail}
    if isinstance(pages, SameContent):
        db.do(WITHDRAW_SAME_CONTENT, values | {"content": pages.content, "origin": pages.origin})
    else:
        db.do(WITHDRAW, values | {"keys": db.dialect.keys(pages)})


def unlist_duplicates(db: Database) -> None:
    """See `ports.Record.unlist_duplicates`."""
    _unlist(db, _sort_orders(db))
    _unlist(db, _twins(db))


def _unlist(db: Database, duplicate_of: Sequence[tuple[int, str]]) -> None:
    if duplicate_of:
        db.do_rows(UNLIST, ("id", "base"), duplicate_of)


def _sort_orders(db: Database) -> list[tuple[int, str]]:
    pairs, order = list[_Pair](), ("id", db.dialect.column, "base", "place", "sorting")
    for chunk in _chunks(db, QUERIES):
        maybe = [
            (number, db.dialect.key_of(base), base, place, sorting)
            for number, url in chunk
            for place, (base, sorting) in enumerate(duplicates.unsorted(url))
        ]
        pairs += map(_Pair._make, db.all(PAIRS, db.dialect.given(order, maybe) | {"run": db.run}))
    # Some parameters are known to sort; others prove it on pages whose order differs.
    sorts = {(pair.host, pair.sorting) for pair in pairs if pair.is_reordered}
    found = [pair for pair in pairs if not pair.sorting or (pair.host, pair.sorting) in sorts]
    found.sort(key=lambda pair: pair.place, reverse=True)
    return list({pair.id: pair.base for pair in found}.items())


def _twins(db: Database) -> list[tuple[int, str]]:
    named = [
        (number, db.dialect.key_of(duplicates.resource(url, variant)))
        for chunk in _chunks(db, NAMED)
        for number, url, variant in chunk
    ]
    return (
        db.all(SAME_RESOURCE, db.dialect.given(("id", db.dialect.column), named) | {"run": db.run})
        if named
        else []
    )


def _chunks(db: Database, sql: str) -> Iterator[list[tuple[Any, ...]]]:
    after = 0
    while rows := db.all(sql, {"run": db.run, "after": after, "limit": CHUNK}):
        yield rows
        after = rows[-1][0]
