"""The dates of pages: counts over headers, pages and earlier runs, and the choice of each lastmod.

The rules are those of `rules.lastmod` and `rules.builds`; the counts and the choice are statements over all pages.
"""

from collections.abc import Sequence

from crawler.frontier.database import Database
from crawler.model.reasons import Source
from crawler.model.survey import Build, Doubts, Evidence
from crawler.rules.record import SETTLED

EVIDENCE = f"""
SELECT h.origin, count(u.header), count(*) FILTER (WHERE u.fresh),
       count(CASE WHEN u.content = u.dated_content THEN u.header - u.dated_header END),
       count(*) FILTER (WHERE u.content = u.dated_content AND u.header <> u.dated_header),
       count(u.content = u.published_content), count(*) FILTER (WHERE u.content <> u.published_content)
FROM known AS u JOIN host AS h ON h.id = u.host
WHERE u.run = :run AND u.state = {SETTLED} AND u.outcome = 'listed' GROUP BY h.origin ORDER BY h.origin
"""

# For each origin, the window of time with the most dates.
BUILDS = f"""
WITH moment AS (
    SELECT host, header AS at, count(*) AS pages, count(stated) AS stating, count(*) FILTER (WHERE stated < header - CAST(:older AS bigint)) AS older
    FROM known WHERE run = :run AND state = {SETTLED} AND outcome = 'listed' AND header IS NOT NULL GROUP BY host, header
),
span AS (
    SELECT host, at, last_value(at) OVER near AS last, sum(pages) OVER near AS within,
           sum(stating) OVER near AS stating, sum(older) OVER near AS older, sum(pages) OVER (PARTITION BY host) AS dated
    FROM moment WINDOW near AS (PARTITION BY host ORDER BY at RANGE BETWEEN CURRENT ROW AND CAST(:window AS bigint) FOLLOWING)
),
ranked AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY within DESC, at) AS place FROM span)
SELECT h.origin, dated, at, last, within, stating, older FROM ranked JOIN host AS h ON h.id = ranked.host
WHERE place = 1 ORDER BY h.origin
"""

BUILD = ("origin", "first", "last")

DATE = f"""
WITH unreliable AS MATERIALIZED (SELECT id FROM host WHERE origin @any(unreliable, text)),
changing AS MATERIALIZED (SELECT id FROM host WHERE origin @any(changing, text)),
build AS MATERIALIZED (
    SELECT h.id AS host, r.first, r.last FROM @rows(origin, first, last) JOIN host AS h ON h.origin = r.origin
),
candidate AS (
    SELECT id,
           CASE WHEN :header AND host NOT IN (SELECT id FROM unreliable)
                AND NOT coalesce(content = dated_content AND header <> dated_header, false)
                AND NOT EXISTS (SELECT 1 FROM build AS b WHERE b.host = k.host AND header BETWEEN first AND last)
                THEN header END AS h,
           CASE WHEN :page THEN stated END AS s,
           CASE WHEN NOT :history THEN NULL
                -- Content that is unchanged, or has returned, keeps its date.
                WHEN content = dated_content THEN CASE WHEN NOT EXISTS
                    (SELECT 1 FROM build AS b WHERE b.host = k.host AND dated_lastmod BETWEEN first AND last) THEN dated_lastmod END
                WHEN content <> published_content AND host NOT IN (SELECT id FROM changing) THEN @whole(settled) END AS m
    FROM known AS k WHERE run = :run AND state = {SETTLED} AND outcome = 'listed' AND host IS NOT NULL
)
UPDATE page SET lastmod = d.at, source = d.source
FROM (
    SELECT id, coalesce(h, s, m) AS at,
           CASE WHEN h IS NOT NULL THEN 'header' WHEN s IS NOT NULL THEN 'page' WHEN m IS NOT NULL THEN 'history' END AS source
    FROM candidate
) AS d
WHERE page.id = d.id AND (page.lastmod IS DISTINCT FROM d.at
    OR page.source IS DISTINCT FROM d.source)
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
    all_of = db.dialect.all_of
    doubted = {"unreliable": all_of(doubts.unreliable), "changing": all_of(doubts.changing)}
    db.do_rows(DATE, BUILD, doubts.builds, run=db.run, **doubted, **wanted)
