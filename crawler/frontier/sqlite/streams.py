"""Streams all rows of the state, sorted by URL, in chunks: `ports.Rows`. Read-only.

A chunk is one statement on the index of URLs that starts after the last URL of the chunk before. Fields that the state does
not store are left at their defaults.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier import records
from crawler.frontier.sqlite.database import Database
from crawler.model.facts import Version
from crawler.model.rows import EdgeRow, PageRow, RunRow
from crawler.parse.url import Url

PAGES: Final = 2_000  # rows of a chunk
EDGES: Final = 500
_PAGES: Final = records.PAGES.format(urls="url")
_PAGE_ROWS: Final = f"{_PAGES} WHERE u.url > :after ORDER BY u.url LIMIT :limit"
_ROWS_OF: Final = f"{_PAGES} WHERE u.id IN (SELECT value FROM json_each(:ids))"
_EDGE_ROWS: Final = """
SELECT u.id, u.url, coalesce(u.links, '[]'), u.named, coalesce(r.id, 0), coalesce(c.id, 0) FROM url AS u
LEFT JOIN url AS r ON r.url = u.detail AND u.outcome = 'moved' LEFT JOIN url AS c ON c.url = u.canonical
WHERE u.url > :after AND u.run = :run AND u.state = 3
AND (u.links IS NOT NULL OR u.outcome = 'moved' OR u.canonical IS NOT NULL)
ORDER BY u.url LIMIT :limit
"""
_SUSPECT_ROWS: Final = f"{records.SUSPECTS} AND u.id > :after ORDER BY u.id LIMIT :limit".format(urls="url")
_VERSION: Final = records.VERSIONS.format(urls="url")
_VERSION_ROWS: Final = f"{_VERSION} AND url > :after AND alternates IS NOT NULL ORDER BY url LIMIT :limit"
_VERSIONS: Final = f"{_VERSION} AND url IN (SELECT value FROM json_each(:urls))"


def page_rows(db: Database, after: str) -> Sequence[PageRow]:
    """The next chunk of rows, after the URL `after`."""
    return [records.page(row) for row in db.all(_PAGE_ROWS, {"after": after, "limit": PAGES})]


def suspect_rows(db: Database, after: int) -> Sequence[PageRow]:
    """The next chunk of `ports.Rows.suspect_rows`, after the id `after`."""
    given = {"after": after, "run": db.run, "limit": PAGES}
    return [records.suspect(row, db.run) for row in db.all(_SUSPECT_ROWS, given)]


def version_rows(db: Database, after: str) -> Sequence[Version]:
    """The next chunk of `ports.Rows.version_rows`, after the URL `after`."""
    given = {"after": after, "run": db.run, "limit": EDGES}
    return [records.version(row) for row in db.all(_VERSION_ROWS, given)]


def versions(db: Database, urls: Sequence[Url]) -> Mapping[Url, Version]:
    """See `ports.Rows.versions`."""
    rows = map(records.version, db.all(_VERSIONS, {"urls": json.dumps(list(urls)), "run": db.run}))
    return {version.url: version for version in rows}


def rows_of(db: Database, ids: Sequence[int]) -> Mapping[int, PageRow]:
    """See `ports.Rows.rows_of`."""
    return {row[0]: records.page(row) for row in db.all(_ROWS_OF, {"ids": json.dumps(list(ids))})}


def edge_rows(db: Database, after: str) -> Sequence[EdgeRow]:
    """The links of the next chunk of URLs of the newest run, after the URL `after`."""
    given = {"after": after, "run": db.run, "limit": EDGES}
    rows = db.all(_EDGE_ROWS, given)
    links = json.loads(f"[{','.join([row[2] for row in rows])}]")  # one call is faster than one for each row
    return [
        EdgeRow(number, Url(url), leads[named:] if named else leads, redirect, canonical)
        for (number, url, _, named, redirect, canonical), leads in zip(rows, links, strict=True)
    ]


def run_rows(db: Database, is_at_work: bool) -> Sequence[RunRow]:
    """See `ports.Rows.run_rows`. `is_at_work`: a session is working on the newest run."""
    return records.run_rows(db, "r.discovered", is_at_work=is_at_work)
