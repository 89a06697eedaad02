"""The dates of pages: counts over headers, pages and earlier runs, and the lastmod of each page.

The rules are in `rules.lastmod` and `rules.record`. Each function is called within a
transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.model.reasons import Source
from crawler.model.survey import Build, Doubts, Evidence
from crawler.rules.record import LISTED, SETTLED, Datable, Distrust

_LISTED: Final = f"u.run = :run AND u.state = {SETTLED} AND u.outcome = '{LISTED}'"

EVIDENCE: Final = f"""
SELECT h.origin, count(u.header), count(*) FILTER (WHERE u.fresh),
    count(CASE WHEN u.content = u.dated_content THEN u.header - u.dated_header END),
    count(*) FILTER (WHERE u.content = u.dated_content AND u.header <> u.dated_header),
    count(u.content = u.published_content), count(*) FILTER (WHERE u.content <> u.published_content)
FROM known AS u JOIN host AS h ON h.id = u.host WHERE {_LISTED} GROUP BY h.origin ORDER BY h.origin
"""

# For each origin, the window of time with the most dates.
BUILDS: Final = f"""
WITH moment AS (
    SELECT host, header AS at, count(*) AS pages, count(stated) AS stating,
        count(*) FILTER (WHERE stated < header - CAST(:older AS bigint)) AS older
    FROM known AS u WHERE {_LISTED} AND header IS NOT NULL GROUP BY host, header
),
span AS (
    SELECT host, at, last_value(at) OVER near AS last, sum(pages) OVER near AS within,
        sum(stating) OVER near AS stating, sum(older) OVER near AS older,
        sum(pages) OVER (PARTITION BY host) AS dated
    FROM moment WINDOW near AS (
        PARTITION BY host ORDER BY at RANGE BETWEEN CURRENT ROW AND CAST(:window AS bigint) FOLLOWING
    )
),
ranked AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY within DESC, at) AS place FROM span)
SELECT h.origin, dated, at, last, within, stating, older FROM ranked JOIN host AS h ON h.id = ranked.host
WHERE place = 1 ORDER BY h.origin
"""

# Not those that certainly keep the date of their header: it is trusted, and is that of the run before or the
# first.
DATABLE: Final = f"""
SELECT p.id, u.host, p.lastmod, p.source, {of("p", Datable._fields)}
FROM page AS p JOIN url AS u ON u.id = p.id
WHERE p.id > :after AND u.id > :after AND p.outcome = '{LISTED}' AND u.run = :run AND u.host IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM visit AS v WHERE v.id = p.id) AND NOT (
    :header AND u.host NOT IN (SELECT h.id FROM host AS h WHERE h.origin @any(distrusted, text))
    AND coalesce(p.source = 'header' AND p.lastmod = p.header, false)
    AND coalesce(p.header = p.dated_header, true)
)
ORDER BY p.id LIMIT :limit
"""
NO_DATE: Final = (None, None)
DATE: Final = """
UPDATE page SET lastmod = r.lastmod, source = r.source FROM @rows(id, lastmod, source) WHERE page.id = r.id
"""


def evidence(db: Database, window: int, older: int) -> tuple[Sequence[Evidence], Sequence[Build]]:
    """See `ports.reads.DateEvidence`."""
    counts = db.all(EVIDENCE, {"run": db.run})
    builds = db.all(BUILDS, {"run": db.run, "window": window, "older": older})
    return (
        [Evidence(origin, *map(int, numbers)) for origin, *numbers in counts],
        [Build(origin, *map(int, numbers)) for origin, *numbers in builds],
    )


def date(db: Database, sources: Sequence[Source], doubts: Doubts) -> None:
    """See `ports.Record.date`."""
    distrusted = _distrusted(doubts)
    origins = dict(db.all("SELECT id, origin FROM host"))
    trusted = Distrust()
    given = {"run": db.run, "header": Source.HEADER in sources, "distrusted": db.dialect.all_of(distrusted)}
    for rows in db.chunks(DATABLE, given):
        changed = []
        for number, host, lastmod, source, *known in rows:
            at, of_date = (
                Datable._make(known).date(sources, distrusted.get(origins[host], trusted)) or NO_DATE
            )
            named = of_date and of_date.value
            if (at, named) != (lastmod, source):
                changed.append((number, at, named))
        if changed:
            db.do_rows(DATE, ("id", "lastmod", "source"), changed)


def _distrusted(doubts: Doubts) -> Mapping[str, Distrust]:
    """What is not trusted, by origin."""
    origins = {*doubts.unreliable, *doubts.changing, *(name for name, _, _ in doubts.builds)}
    return {
        origin: Distrust(
            origin in doubts.unreliable,
            origin in doubts.changing,
            tuple((first, last) for name, first, last in doubts.builds if name == origin),
        )
        for origin in origins
    }
