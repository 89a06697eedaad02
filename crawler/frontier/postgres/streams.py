"""All rows of the state in order of their URL, for `ports.Rows`: the statements, and what their rows mean. Nothing here writes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import fp
from crawler.model.facts import Version
from crawler.model.reasons import SeedKind
from crawler.model.rows import EdgeRow, HostRow, PageRow, PublicationRow, RunRow, Tallies
from crawler.model.seed import Seed
from crawler.parse.url import Url
from crawler.ports.rows import HOSTS

_COLUMNS: Final = """
SELECT u.id, u.url, u.run, CASE WHEN u.state = 3 THEN u.outcome ELSE '' END, u.detail,
       CASE WHEN u.attempts > 0 THEN u.status END, u.depth, u.was, u.lastmod, u.source, u.was_lastmod, u.content,
       s.kind, s.name, s.depth, u.title, u.type, u.bytes, u.took
FROM known AS u LEFT JOIN seed AS s ON s.id = u.seed
"""
PAGE_ROWS: Final = f"{_COLUMNS} ORDER BY u.url"
_ROWS_OF: Final = f"{_COLUMNS} WHERE u.id = ANY (:ids::bigint[])"
EDGE_ROWS: Final = """
SELECT u.id, u.url, u.links[coalesce(u.named, 0) + 1 :], CASE WHEN u.outcome = 'moved' THEN u.detail END, u.canonical
FROM known AS u
WHERE u.run = :run AND u.state = 3 AND (u.links IS NOT NULL OR u.outcome = 'moved' OR u.canonical IS NOT NULL)
ORDER BY u.url
"""
_IDS: Final = "SELECT url, id FROM url WHERE fp = ANY (:fps::uuid[])"
SUSPECT_ROWS: Final = """
SELECT u.id, u.outcome, u.was, s.kind FROM known AS u LEFT JOIN seed AS s ON s.id = u.seed
WHERE u.run = :run AND u.state = 3 AND u.outcome <> 'unlisted:offsite' AND (u.outcome <> 'listed' OR s.kind > 0)
ORDER BY u.id
"""
_VERSION: Final = "SELECT id, url, outcome, was, alternates FROM known"
VERSION_ROWS: Final = f"{_VERSION} WHERE run = :run AND state = 3 AND alternates IS NOT NULL ORDER BY url"
_VERSIONS: Final = f"{_VERSION} WHERE fp = ANY (:fps::uuid[]) AND run = :run AND state = 3"
_UNDATED: Final = """
SELECT count(*), count(*) FILTER (WHERE was IS NULL OR was_lastmod IS NOT NULL)
FROM known WHERE run = :run AND state = 3 AND outcome = 'listed' AND lastmod IS NULL
"""
_REPEATED: Final = """
SELECT count(*), coalesce(sum(pages), 0)::bigint FROM (
    SELECT count(*) AS pages FROM known
    WHERE run = :run AND state = 3 AND outcome = 'listed' AND {text} <> '' GROUP BY host, {text} HAVING count(*) > 1
) AS repeated
"""
_SEEDS: Final = {kind.value: Seed(kind) for kind in SeedKind}
_HOST_ROWS: Final = """
SELECT h.origin, u.urls, h.gap, h.robots, coalesce(h.robots_detail, '') FROM host AS h
JOIN (SELECT host, count(*) AS urls FROM url WHERE run = :run AND host IS NOT NULL GROUP BY host) AS u ON u.host = h.id
ORDER BY u.urls DESC, h.origin LIMIT :most
"""
_RUN_ROWS: Final = f"""
SELECT r.number, r.started, r.status, (SELECT coalesce(sum(discovered), 0)::bigint FROM member WHERE run = r.number),
    coalesce(r.ended, CASE WHEN r.status = 'concluded' THEN p.at END), r.exit,
    r.seconds, r.requests, r.bytes, r.outcomes, r.refused, r.succeeded,
    p.{", p.".join(PublicationRow._fields)}
FROM run AS r LEFT JOIN publication AS p ON p.number = (SELECT max(number) FROM publication WHERE run = r.number)
ORDER BY r.number
"""


def host_rows(db: Database) -> Sequence[HostRow]:
    """See `ports.Rows.host_rows`."""
    return [HostRow._make(row) for row in db.all(_HOST_ROWS, {"run": db.run, "most": HOSTS})]


def rows_of(db: Database, ids: Sequence[int]) -> Mapping[int, PageRow]:
    """See `ports.Rows.rows_of`."""
    return {row[0]: page(row) for row in db.all(_ROWS_OF, {"ids": list(ids)})}


def suspect(run: int, row: tuple[Any, ...]) -> PageRow:
    """A row of `SUSPECT_ROWS`."""
    number, outcome, was, kind = row
    return PageRow(number, Url(""), run, outcome, was=was, seed=None if kind is None else _SEEDS[kind])


def versions(db: Database, urls: Sequence[Url]) -> Mapping[Url, Version]:
    """See `ports.Rows.versions`."""
    rows = db.all(_VERSIONS, {"fps": [fp(url) for url in urls], "run": db.run})
    return {found.url: found for found in map(version, rows)}


def version(row: tuple[Any, ...]) -> Version:
    """A row of `VERSION_ROWS`."""
    number, url, outcome, was, alternates = row
    return Version(Url(url), outcome, alternates, number, was)


def tallies(db: Database) -> Tallies:
    """See `ports.Rows.tallies`."""
    counts = [
        db.all(statement, {"run": db.run})[0]
        for statement in (_UNDATED, *(_REPEATED.format(text=text) for text in ("content", "title")))
    ]
    return Tallies._make(number for row in counts for number in row)


def edges(db: Database, rows: Sequence[tuple[Any, ...]]) -> Sequence[EdgeRow]:
    """Rows of `EDGE_ROWS`, with the ids of what is named by its URL."""
    named = {url for row in rows for url in row[3:] if url}
    ids = dict(db.all(_IDS, {"fps": [fp(url) for url in named]})) if named else {}
    return [
        EdgeRow(number, Url(url), links or (), ids.get(redirect, 0), ids.get(canonical, 0))
        for number, url, links, redirect, canonical in rows
    ]


def run_rows(db: Database, is_at_work: bool) -> Sequence[RunRow]:
    """See `ports.Rows.run_rows`. `is_at_work`: a session is at work on the newest run."""
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


def page(row: tuple[Any, ...]) -> PageRow:
    """A row of `PAGE_ROWS`."""
    number, url, run, outcome, detail, *known, kind, name, nested, title, essence, size, took = row
    seed = None if kind is None else Seed(SeedKind(kind), name, nested)
    return PageRow._make(
        (number, Url(url), run, outcome or "", detail or "", *known, seed, title, essence, size, took)
    )
