"""Duplicates in the SQLite frontier: error pages (soft 404) at many URLs, and one page at several URLs.

The rules are in `rules.duplicates`, whose functions are registered with SQLite here.
"""

import json
import sqlite3
from collections.abc import Sequence

from crawler.frontier.sqlite.database import Database
from crawler.model.reasons import Why
from crawler.model.survey import SameContent
from crawler.parse.url import Url
from crawler.rules import duplicates

SAME_CONTENT = """
SELECT h.origin, u.content, count(*), min(u.url) FROM url AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.outcome = 'listed' AND u.content IS NOT NULL
GROUP BY u.host, u.content HAVING count(*) >= :least ORDER BY 3 DESC, 4 LIMIT 20
"""

WITHDRAW = """
UPDATE url SET outcome = 'unlisted:' || :why, detail = :detail
WHERE run = :run AND outcome = 'listed' AND url IN (SELECT value FROM json_each(:urls))
"""

WITHDRAW_SAME_CONTENT = """
UPDATE url SET outcome = 'unlisted:' || :why, detail = :detail
WHERE run = :run AND outcome = 'listed' AND content = :content
AND host = (SELECT id FROM host WHERE origin = :origin)
"""

# Of the pages with the same `unordered`, those whose URLs are sort orders of another, or equivalent spellings of it.

SORT_ORDERS = """
WITH pair AS MATERIALIZED (
    SELECT q.id, q.host, b.url AS base, j.key AS place, j.value ->> 1 AS sorting, q.content <> b.content AS reordered
    -- CROSS JOIN fixes the join order: all pages may be identical, but each URL has few candidates for its base.
    FROM url AS q CROSS JOIN json_each(unsorted(q.url)) AS j
    CROSS JOIN url AS b INDEXED BY sqlite_autoindex_url_1 ON b.url = j.value ->> 0
    WHERE q.run = :run AND q.state = 3 AND q.outcome = 'listed' AND q.unordered IS NOT NULL AND instr(q.url, '?')
    AND b.run = :run AND b.state = 3 AND b.outcome = 'listed'
    AND b.host = q.host AND b.unordered = q.unordered
)
UPDATE url SET outcome = 'unlisted:duplicate', detail = d.base
FROM (
    -- Some parameters are known to sort; others prove it on pages whose order differs.
    SELECT id, base, min(place) FROM pair
    WHERE sorting = '' OR (host, sorting) IN (SELECT host, sorting FROM pair WHERE reordered) GROUP BY id
) AS d
WHERE url.id = d.id
"""

SAME_RESOURCE = """
WITH named AS MATERIALIZED (
    SELECT id, resource(url, variant) AS name FROM url
    WHERE run = :run AND state = 3 AND outcome = 'listed' AND unordered IS NOT NULL
    AND (variant IS NOT NULL OR url LIKE '%/index.%' OR url LIKE '%/default.%')
),
resource_page AS (
    SELECT name, id FROM named
    UNION
    SELECT name, u.id FROM (SELECT DISTINCT name FROM named) JOIN url AS u ON u.url = name
    WHERE u.run = :run AND u.state = 3 AND u.outcome = 'listed' AND u.unordered IS NOT NULL
),
choice AS (
    SELECT u.id, u.url, first_value(u.url) OVER (
        PARTITION BY t.name, u.unordered
        ORDER BY u.url NOT IN (SELECT detail FROM url WHERE run = :run AND outcome = 'unlisted:canonical' AND detail IS NOT NULL), length(u.url), u.url
    ) AS best
    FROM resource_page AS t JOIN url AS u ON u.id = t.id
)
UPDATE url SET outcome = 'unlisted:duplicate', detail = c.best
FROM (SELECT id, min(best) AS best FROM choice WHERE best <> url GROUP BY id) AS c
WHERE url.id = c.id
"""


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the functions that the statements use."""
    connection.create_function("resource", 2, duplicates.resource, deterministic=True)
    connection.create_function(
        "unsorted", 1, lambda url: json.dumps(duplicates.unsorted(url)), deterministic=True
    )


def same_content(db: Database, least: int) -> Sequence[SameContent]:
    """See `ports.Record.same_content`."""
    rows = db.all(SAME_CONTENT, {"run": db.run, "least": least})
    return [SameContent(name, content, count, Url(example)) for name, content, count, example in rows]


def withdraw(db: Database, pages: Sequence[Url] | SameContent, why: Why, detail: str) -> None:
    """See `ports.Record.withdraw`."""
    given = {"run": db.run, "why": why.value, "detail": detail}
    if isinstance(pages, SameContent):
        db.do(WITHDRAW_SAME_CONTENT, given | {"content": pages.content, "origin": pages.origin})
    else:
        db.do(WITHDRAW, given | {"urls": json.dumps(pages)})


def unlist_duplicates(db: Database) -> None:
    """See `ports.Record.unlist_duplicates`."""
    for rule in (SORT_ORDERS, SAME_RESOURCE):
        db.do(rule, {"run": db.run})
