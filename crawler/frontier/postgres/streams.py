"""Statements and rows of `ports.Rows` in the PostgreSQL frontier: the whole state, sorted by URL. Read-only.

`frontier` reads the long ones through a cursor on the server. Fields that the state does not store are left at their
defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crawler.frontier import records
from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp
from crawler.model.facts import Version
from crawler.model.rows import EdgeRow, PageRow, RunRow
from crawler.parse.url import Url

_PAGES: Final = records.PAGES.format(urls="known")
PAGE_ROWS: Final = f"{_PAGES} ORDER BY u.url"
_ROWS_OF: Final = f"{_PAGES} WHERE u.id = ANY (:ids::bigint[])"
EDGE_ROWS: Final = """
SELECT u.id, u.url, u.links[coalesce(u.named, 0) + 1 :], CASE WHEN u.outcome = 'moved' THEN u.detail END, u.canonical
FROM known AS u
WHERE u.run = :run AND u.state = 3 AND (u.links IS NOT NULL OR u.outcome = 'moved' OR u.canonical IS NOT NULL)
ORDER BY u.url
"""
_IDS: Final = "SELECT url, id FROM url WHERE fp = ANY (:fps::uuid[])"
SUSPECT_ROWS: Final = f"{records.SUSPECTS} ORDER BY u.id".format(urls="known")
_VERSION: Final = records.VERSIONS.format(urls="known")
VERSION_ROWS: Final = f"{_VERSION} AND alternates IS NOT NULL ORDER BY url"
_VERSIONS: Final = f"{_VERSION} AND fp = ANY (:fps::uuid[])"
_DISCOVERED: Final = "(SELECT coalesce(sum(discovered), 0)::bigint FROM member WHERE run = r.number)"


def rows_of(db: Database, ids: Sequence[int]) -> Mapping[int, PageRow]:
    """See `ports.Rows.rows_of`."""
    return {row[0]: records.page(row) for row in db.all(_ROWS_OF, {"ids": list(ids)})}


def versions(db: Database, urls: Sequence[Url]) -> Mapping[Url, Version]:
    """See `ports.Rows.versions`."""
    rows = db.all(_VERSIONS, {"fps": [fp(url) for url in urls], "run": db.run})
    return {version.url: version for version in map(records.version, rows)}


def edges(db: Database, rows: Sequence[tuple[Any, ...]]) -> Sequence[EdgeRow]:
    """Rows of `EDGE_ROWS`, with the ids of redirect targets and canonicals."""
    named = {url for row in rows for url in row[3:] if url}
    ids = dict(db.all(_IDS, {"fps": [fp(url) for url in named]})) if named else {}
    return [
        EdgeRow(number, Url(url), links or (), ids.get(redirect, 0), ids.get(canonical, 0))
        for number, url, links, redirect, canonical in rows
    ]


def run_rows(db: Database, is_at_work: bool) -> Sequence[RunRow]:
    """See `ports.Rows.run_rows`. `is_at_work`: members are at work on the newest run."""
    return records.run_rows(db, _DISCOVERED, is_at_work=is_at_work)
