"""Counts over the listed pages: those without a date, and groups of pages with one text or title.

The groups are those of `report.groups.Texts`, counted by the database; and which pages are in any.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.queries import OF_SUSPECTS, SHOWN_VERSION
from crawler.frontier.schema import settled
from crawler.model.rows import Tallies
from crawler.rules.record import LISTED

_OF_LISTED: Final = f"FROM known WHERE run = :run AND {settled('known')} AND outcome = '{LISTED}'"
_DATES: Final = f"""
SELECT count(*) - count(lastmod),
    count(*) FILTER (WHERE lastmod IS NULL AND (was IS NULL OR was_lastmod IS NOT NULL)) {_OF_LISTED}
"""
_ANY_TWICE: Final = f"SELECT 1 {_OF_LISTED} AND SAME <> '' GROUP BY SAME HAVING count(*) > 1"
_ANY_SAME_BYTES: Final = f"{_ANY_TWICE.replace('SAME', 'digest')} AND count(content) > 0 LIMIT 1"
_ANY_SAME_TITLE: Final = f"{_ANY_TWICE.replace('SAME', 'title')} LIMIT 1"
_SHOWN: Final = f"SELECT id, host, title, {SHOWN_VERSION} AS content {_OF_LISTED}"
# Pages with the same bytes have one text, though only some are fingerprinted.
_READ_OF: Final = f"""
LEFT JOIN (
    SELECT host AS site, digest AS body, min({SHOWN_VERSION}) FILTER (WHERE content IS NOT NULL) AS read
    {_OF_LISTED} GROUP BY host, digest HAVING count(*) > 1 AND count(content) > 0
) AS same ON site = host AND body = digest
WHERE
"""
_READ: Final = f"SELECT id, host, title, coalesce(read, {SHOWN_VERSION}) AS content {_OF_LISTED}".replace(
    "WHERE", _READ_OF, 1
)
_REPEATED: Final = """
SELECT count(*), CAST(coalesce(sum(pages), 0) AS bigint) FROM (
    SELECT count(*) AS pages FROM (TEXTS) AS texts
    WHERE SAME <> '' GROUP BY SAME, host HAVING count(*) > 1
) AS repeated
"""
_PAGES: Final = """
SELECT id, first FROM (
    SELECT id, min(id) OVER same AS first, count(*) OVER same AS pages, min(content) OVER same AS content,
        max(content) OVER same AS other, count(nullif(content, '')) OVER same AS known
    FROM (TEXTS) AS texts WHERE SAME <> '' WINDOW same AS (PARTITION BY SAME, host)
) AS grouped WHERE pages > 1 ORDER BY id
"""
# Where all pages with a title have one content, that is what is counted.
_APART: Final = "> 1 AND (min(content) <> max(content) OR count(nullif(content, '')) < count(*))"
_SAME_CONTENT, _SAME_TITLE = (
    {any_same: repeated.replace("TEXTS", texts) for any_same, texts in ((False, _SHOWN), (True, _READ))}
    for repeated in (
        _REPEATED.replace("SAME", "content"),
        _REPEATED.replace("SAME", "title").replace("> 1", _APART),
    )
)
_REPEATING: Final = " UNION ".join(
    f"SELECT id, url FROM shown WHERE {column} IN "
    f"(SELECT {column} FROM shown WHERE {column} <> '' GROUP BY {column} HAVING count(*) > 1)"
    for column in ("digest", "title", "content")
)
# Of conditions with OR, PostgreSQL would look through all rows of one for each of the other.
_WITH_FINDINGS: Final = f"""
WITH shown AS MATERIALIZED (
    SELECT id, url, lastmod, digest, title, {SHOWN_VERSION} AS content {_OF_LISTED}
)
SELECT id FROM (
    SELECT u.id, u.url {OF_SUSPECTS}
    UNION SELECT id, url FROM shown WHERE lastmod IS NULL
    UNION {_REPEATING}
    UNION SELECT id, url FROM url WHERE id @any(also)
) AS found ORDER BY url
"""

_CONTENT_PAGES, _TITLE_PAGES = (
    {any_same: pages.replace("TEXTS", texts) for any_same, texts in ((False, _SHOWN), (True, _READ))}
    for pages in (
        _PAGES.replace("SAME", "content"),
        _PAGES.replace("SAME", "title").replace("> 1", "> 1 AND (content <> other OR known < pages)"),
    )
)


def grouped_pages(db: Database) -> Mapping[str, Sequence[tuple[int, int]]]:
    """See `ports.reads.GroupedPages`."""
    run = {"run": db.run}
    is_read = bool(db.all(_ANY_SAME_BYTES, run))
    titled = db.ask_whole(_TITLE_PAGES[is_read], run)() if db.all(_ANY_SAME_TITLE, run) else []
    return {"content": list(db.ask_whole(_CONTENT_PAGES[is_read], run)()), "title": list(titled)}


def tallies(db: Database) -> Tallies:
    """See `ports.reads.ListedTallies`."""
    run = {"run": db.run}
    dates, same_bytes, any_title = (db.ask(sql, run) for sql in (_DATES, _ANY_SAME_BYTES, _ANY_SAME_TITLE))
    [(undated, newly)], is_read = dates(), bool(same_bytes())
    by_content = db.ask_whole(_SAME_CONTENT[is_read], run)
    by_title = db.ask_whole(_SAME_TITLE[is_read], run) if any_title() else lambda: [(0, 0)]
    [(contents, same_content)], [(titles, same_title)] = by_content(), by_title()
    return Tallies(undated, newly, contents, same_content, titles, same_title)


def with_findings(db: Database, also: Sequence[int]) -> "array[int]":
    """See `ports.reads.PagesWithFindings`."""
    rows = db.ask_whole(_WITH_FINDINGS, {"run": db.run, "also": db.dialect.all_of(also)})()
    return array("I", (number for (number,) in rows))
