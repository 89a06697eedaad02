"""Streams all rows of the state, sorted by URL, in chunks: `ports.Rows`. Read-only.

A chunk is one statement on the index of URLs that starts after the last URL of the chunk before. Fields that the state does
not store are left at their defaults.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from crawler.model.facts import Version
from crawler.model.reasons import SeedKind
from crawler.model.rows import EdgeRow, HostRow, PageRow, PublicationRow, RunRow, Tallies
from crawler.model.seed import Seed
from crawler.parse.url import Url
from crawler.ports.rows import HOSTS

_SEEDS: Final = {kind.value: Seed(kind) for kind in SeedKind}
PAGES: Final = 2_000  # rows of a chunk
EDGES: Final = 500
_COLUMNS: Final = """
SELECT u.id, u.url, u.run, CASE WHEN u.state = 3 THEN u.outcome ELSE '' END, u.detail,
       CASE WHEN u.attempts > 0 THEN u.status END, u.depth, u.was, u.lastmod, u.source, u.was_lastmod, u.content,
       s.kind, s.name, s.depth, u.title, u.type, u.bytes, u.took
FROM url AS u LEFT JOIN seed AS s ON s.id = u.seed
"""
_PAGE_ROWS: Final = f"{_COLUMNS} WHERE u.url > :after ORDER BY u.url LIMIT :limit"
_ROWS_OF: Final = f"{_COLUMNS} WHERE u.id IN (SELECT value FROM json_each(:ids))"
_EDGE_ROWS: Final = """
SELECT u.id, u.url, coalesce(u.links, '[]'), u.named, coalesce(r.id, 0), coalesce(c.id, 0) FROM url AS u
LEFT JOIN url AS r ON r.url = u.detail AND u.outcome = 'moved' LEFT JOIN url AS c ON c.url = u.canonical
WHERE u.url > :after AND u.run = :run AND u.state = 3
AND (u.links IS NOT NULL OR u.outcome = 'moved' OR u.canonical IS NOT NULL)
ORDER BY u.url LIMIT :limit
"""
_SUSPECT_ROWS: Final = """
SELECT u.id, u.outcome, u.was, s.kind FROM url AS u LEFT JOIN seed AS s ON s.id = u.seed
WHERE u.id > :after AND u.run = :run AND u.state = 3 AND u.outcome <> 'unlisted:offsite'
AND (u.outcome <> 'listed' OR s.kind > 0)
ORDER BY u.id LIMIT :limit
"""
_VERSION: Final = "SELECT id, url, outcome, was, alternates FROM url"
_VERSION_ROWS: Final = f"""
{_VERSION} WHERE url > :after AND run = :run AND state = 3 AND alternates IS NOT NULL ORDER BY url LIMIT :limit
"""
_VERSIONS: Final = f"""
{_VERSION} WHERE url IN (SELECT value FROM json_each(:urls)) AND run = :run AND state = 3
"""
_UNDATED: Final = """
SELECT count(*), count(*) FILTER (WHERE was IS NULL OR was_lastmod IS NOT NULL)
FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND lastmod IS NULL
"""
_REPEATED: Final = """
SELECT count(*), CAST(total(pages) AS INTEGER) FROM (
    SELECT count(*) AS pages FROM url
    WHERE run = :run AND state = 3 AND outcome = 'listed' AND {text} <> '' GROUP BY host, {text} HAVING count(*) > 1
)
"""
_HOST_ROWS: Final = """
SELECT h.origin, u.urls, h.gap, h.robots, coalesce(h.robots_detail, '') FROM host AS h
JOIN (SELECT host, count(*) AS urls FROM url WHERE run = :run AND host IS NOT NULL GROUP BY host) AS u ON u.host = h.id
ORDER BY u.urls DESC, h.origin LIMIT :most
"""
_RUN_ROWS: Final = f"""
SELECT r.number, r.started, r.status, r.discovered, coalesce(r.ended, iif(r.status = 'concluded', p.at, NULL)), r.exit,
    r.seconds, r.requests, r.bytes, r.outcomes, r.refused, r.succeeded,
    p.{", p.".join(PublicationRow._fields)}
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number) FROM publication WHERE run = r.number)
ORDER BY r.number
"""


class Readable(Protocol):
    """The interface of an open state that is needed here."""

    run: int

    def all(self, sql: str, given: Any = ()) -> list[tuple[Any, ...]]:
        """All rows."""
        ...


def page_rows(db: Readable, after: str) -> Sequence[PageRow]:
    """The next chunk of rows, after the URL `after`."""
    return [_page(row) for row in db.all(_PAGE_ROWS, {"after": after, "limit": PAGES})]


def suspect_rows(db: Readable, after: int) -> Sequence[PageRow]:
    """The next chunk of `ports.Rows.suspect_rows`, after the id `after`."""
    given = {"after": after, "run": db.run, "limit": PAGES}
    return [
        PageRow(number, Url(""), db.run, outcome, was=was, seed=None if kind is None else _SEEDS[kind])
        for number, outcome, was, kind in db.all(_SUSPECT_ROWS, given)
    ]


def version_rows(db: Readable, after: str) -> Sequence[Version]:
    """The next chunk of `ports.Rows.version_rows`, after the URL `after`."""
    return [_version(row) for row in db.all(_VERSION_ROWS, {"after": after, "run": db.run, "limit": EDGES})]


def versions(db: Readable, urls: Sequence[Url]) -> Mapping[Url, Version]:
    """See `ports.Rows.versions`."""
    rows = map(_version, db.all(_VERSIONS, {"urls": json.dumps(list(urls)), "run": db.run}))
    return {version.url: version for version in rows}


def _version(row: tuple[Any, ...]) -> Version:
    number, url, outcome, was, alternates = row
    return Version(Url(url), outcome, alternates, number, was)


def tallies(db: Readable) -> Tallies:
    """See `ports.Rows.tallies`."""
    counts = [
        db.all(statement, {"run": db.run})[0]
        for statement in (_UNDATED, *(_REPEATED.format(text=text) for text in ("content", "title")))
    ]
    return Tallies._make(number for row in counts for number in row)


def host_rows(db: Readable) -> Sequence[HostRow]:
    """See `ports.Rows.host_rows`."""
    return [HostRow._make(row) for row in db.all(_HOST_ROWS, {"run": db.run, "most": HOSTS})]


def rows_of(db: Readable, ids: Sequence[int]) -> Mapping[int, PageRow]:
    """See `ports.Rows.rows_of`."""
    return {row[0]: _page(row) for row in db.all(_ROWS_OF, {"ids": json.dumps(list(ids))})}


def edge_rows(db: Readable, after: str) -> Sequence[EdgeRow]:
    """The links of the next chunk of URLs of the newest run, after the URL `after`."""
    given = {"after": after, "run": db.run, "limit": EDGES}
    rows = db.all(_EDGE_ROWS, given)
    links = json.loads(f"[{','.join([row[2] for row in rows])}]")  # one call is faster than one for each row
    return [
        EdgeRow(number, Url(url), leads[named:] if named else leads, redirect, canonical)
        for (number, url, _, named, redirect, canonical), leads in zip(rows, links, strict=True)
    ]


def run_rows(db: Readable, is_at_work: bool) -> Sequence[RunRow]:
    """See `ports.Rows.run_rows`. `is_at_work`: a session is working on the newest run."""
    return [_run(row, is_at_work=is_at_work and row[0] == db.run) for row in db.all(_RUN_ROWS)]


def _run(row: tuple[Any, ...], *, is_at_work: bool) -> RunRow:
    number, started, status, discovered, ended, code, seconds, requests, size, outcomes, *told = row[:12]
    publication = PublicationRow(*row[12:])
    if ended is None and not is_at_work and status in {"crawling", "abandoned"}:
        status = "interrupted"
    counts = json.loads(outcomes) if outcomes else None
    known = None if publication.urls is None else publication
    return RunRow(
        number, started, status, discovered, ended, code, seconds, requests, size, counts, known, *told
    )


def _page(row: tuple[Any, ...]) -> PageRow:
    number, url, run, outcome, detail, *known, kind, name, nested, title, essence, size, took = row
    seed = None if kind is None else Seed(SeedKind(kind), name, nested)
    return PageRow._make(
        (number, Url(url), run, outcome or "", detail or "", *known, seed, title, essence, size, took)
    )
