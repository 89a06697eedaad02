"""The dates of pages in the SQLite frontier: counts over headers, pages and earlier runs, and the choice of each lastmod.

The rules are in `rules.lastmod` and `rules.builds`; the counts and the choice are SQL statements over all pages.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from crawler.frontier.sqlite.database import Database
from crawler.model.reasons import Source
from crawler.model.survey import Build, Doubts, Evidence

EVIDENCE = """
SELECT h.origin, count(u.header), total(u.fresh),
       count(CASE WHEN u.content = u.dated_content THEN u.header - u.dated_header END),
       total(u.content = u.dated_content AND u.header <> u.dated_header),
       count(u.content = u.published_content), total(u.content <> u.published_content)
FROM url AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.state = 3 AND u.outcome = 'listed' GROUP BY h.origin ORDER BY h.origin
"""

# For each origin, the window of time with the most dates.
BUILDS = """
WITH moment AS (
    SELECT host, header AS at, count(*) AS pages, count(stated) AS stating, total(stated < header - :older) AS older
    FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND header IS NOT NULL GROUP BY host, header
),
span AS (
    SELECT host, at, last_value(at) OVER near AS last, sum(pages) OVER near AS within,
           sum(stating) OVER near AS stating, sum(older) OVER near AS older, sum(pages) OVER (PARTITION BY host) AS dated
    FROM moment WINDOW near AS (PARTITION BY host ORDER BY at RANGE BETWEEN CURRENT ROW AND :window FOLLOWING)
),
ranked AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY within DESC, at) AS place FROM span)
SELECT h.origin, dated, at, last, within, stating, older FROM ranked JOIN host AS h ON h.id = ranked.host
WHERE place = 1 ORDER BY h.origin
"""

DATE = """
WITH unreliable AS MATERIALIZED (SELECT id FROM host WHERE origin IN (SELECT value FROM json_each(:unreliable))),
changing AS MATERIALIZED (SELECT id FROM host WHERE origin IN (SELECT value FROM json_each(:changing))),
build AS MATERIALIZED (
    SELECT h.id AS host, value ->> 1 AS first, value ->> 2 AS last
    FROM json_each(:builds) JOIN host AS h ON h.origin = value ->> 0
),
candidate AS (
    SELECT id,
           CASE WHEN :header AND host NOT IN unreliable
                AND coalesce(content = dated_content AND header <> dated_header, 0) = 0
                AND NOT EXISTS (SELECT 1 FROM build AS b WHERE b.host = url.host AND header BETWEEN first AND last)
                THEN header END AS h,
           CASE WHEN :page THEN stated END AS s,
           CASE WHEN NOT :history THEN NULL
                -- Content that is unchanged, or has returned, keeps its date.
                WHEN content = dated_content THEN CASE WHEN NOT EXISTS
                    (SELECT 1 FROM build AS b WHERE b.host = url.host AND dated_lastmod BETWEEN first AND last) THEN dated_lastmod END
                WHEN content <> published_content AND host NOT IN changing THEN CAST(settled AS INTEGER) END AS m
    FROM url WHERE run = :run AND state = 3 AND outcome = 'listed' AND host IS NOT NULL
)
UPDATE url SET lastmod = d.at, source = d.source
FROM (
    SELECT id, coalesce(h, s, m) AS at,
           CASE WHEN h IS NOT NULL THEN 'header' WHEN s IS NOT NULL THEN 'page' WHEN m IS NOT NULL THEN 'history' END AS source
    FROM candidate
) AS d
WHERE url.id = d.id AND (url.lastmod IS NOT d.at OR url.source IS NOT d.source)
"""


def evidence(db: Database) -> Sequence[Evidence]:
    """See `ports.Record.evidence`."""
    rows = db.all(EVIDENCE, {"run": db.run})
    return [Evidence(name, *map(int, counts)) for name, *counts in rows]


def builds(db: Database, window: int, older: int) -> Sequence[Build]:
    """See `ports.Record.builds`."""
    rows = db.all(BUILDS, {"run": db.run, "window": window, "older": older})
    return [Build(name, *map(int, numbers)) for name, *numbers in rows]


def date(db: Database, sources: Sequence[Source], doubts: Doubts) -> None:
    """See `ports.Record.date`."""
    wanted = {source.value: source in sources for source in Source}
    doubted = {name: json.dumps(some) for name, some in asdict(doubts).items()}
    db.do(DATE, {"run": db.run, **doubted, **wanted})
