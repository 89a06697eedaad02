"""The dates of pages: counts over headers, pages and earlier runs, and the lastmod of each page.

The rules are in `rules.lastmod` and `rules.record`. Each function is called within a
transaction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.frontier.schema import VERSION_OF, settled
from crawler.model.reasons import Source
from crawler.model.survey import LATELY, Build, DatesSeen, Doubts, Evidence, NewBlock
from crawler.parse.extract import BYTES, WORDING_DIGITS
from crawler.rules.dated import Datable, Distrust
from crawler.rules.noise import HEAD, STILL, UNKNOWN_WAY, WAY, LastChange
from crawler.rules.record import DAY, LISTED

_LISTED: Final = f"u.run = :run AND {settled('u')} AND u.outcome = '{LISTED}'"


# See `parse.extract.wording`.
_WORDING, _PUBLISHED_WORDING, _DATED_WORDING = (
    f"CASE WHEN {version} LIKE '{BYTES}%' THEN {version} ELSE substr({version}, 1, {WORDING_DIGITS}) END"
    for version in ("u.version", "u.published_content", "u.dated_content")
)

# Whether a sitemap gives a page a later date than the page states, or than is known of its content.
_BOUND: Final = """u.sitemap_date > coalesce(u.stated + CAST(:older AS bigint),
        CASE WHEN u.version = u.dated_content THEN u.dated_lastmod END)"""

_KIND: Final = "substr(u.watched, 1, 1)"
_DISAGREES: Final = "abs(u.header - u.stated) > CAST(:older AS bigint)"
_RESTATED: Final = f"u.stated / {DAY} <> u.dated_stated / {DAY}"

EVIDENCE: Final = f"""
SELECT h.origin, count(u.header), count(*) FILTER (WHERE u.fresh),
    count(CASE WHEN {_WORDING} = {_DATED_WORDING} THEN u.header - u.dated_header END),
    count(*) FILTER (WHERE {_WORDING} = {_DATED_WORDING} AND u.header <> u.dated_header),
    count(CASE WHEN u.visited = :run OR u.version <> u.published_content THEN 1 END),
    count(*) FILTER (WHERE u.version <> u.published_content),
    count(*) FILTER (WHERE {_WORDING} <> {_PUBLISHED_WORDING}),
    count({_BOUND}), count(*) FILTER (WHERE {_BOUND}),
    count(*) FILTER (WHERE u.header > u.settled - {LATELY} AND coalesce({_DISAGREES}, true)),
    count(CASE WHEN {_WORDING} = {_DATED_WORDING} AND u.stated IS NOT NULL THEN u.dated_stated END),
    count(*) FILTER (WHERE {_WORDING} = {_DATED_WORDING} AND {_RESTATED}),
    count(*) FILTER (WHERE {_WORDING} <> {_PUBLISHED_WORDING} AND NOT {_RESTATED}),
    count(*) FILTER (WHERE {_WORDING} <> {_PUBLISHED_WORDING} AND {_RESTATED}),
    count(*) FILTER (WHERE {_KIND} IN ('{LastChange.LEARNED}', '{LastChange.NOISE}')),
    count(*) FILTER (WHERE u.visited = :run AND {_KIND} = '{LastChange.AGAIN}'),
    count(*) FILTER (WHERE u.visited = :run AND {_KIND} = '{LastChange.NEW}'),
    coalesce(min(CASE WHEN u.visited = :run THEN u.settled END), 0),
    coalesce(sum(CASE WHEN u.visited = :run AND w.visits > 0
        THEN (w.last_visit - w.first_visit) / w.visits END) / {DAY}, 0)
FROM known AS u JOIN host AS h ON h.id = u.host JOIN page AS w ON w.id = u.id
WHERE {_LISTED} GROUP BY h.origin ORDER BY h.origin
"""

_SINCE: Final = "SELECT coalesce(max(at), 0) FROM publication WHERE run < :run"

READ_ANEW: Final = """
SELECT count(*) FROM run AS r JOIN run AS p ON p.number =
    (SELECT max(run) FROM publication WHERE run < :run)
WHERE r.number = :run AND r.reading <> p.reading
"""


def _builds(date: str) -> str:
    """For each origin, the window of time with the most dates of that kind, a column."""
    return f"""
WITH moment AS (
    SELECT host, {date} AS at, count(*) AS pages, count(stated) AS stating,
        count(*) FILTER (WHERE stated < {date} - CAST(:older AS bigint)) AS older,
        count(*) FILTER (WHERE abs(stated - {date}) <= CAST(:older AS bigint)) AS agreeing,
        max(settled) AS read
    FROM known AS u WHERE {_LISTED} AND {date} IS NOT NULL GROUP BY host, {date}
),
span AS (
    SELECT host, at, last_value(at) OVER near AS last, sum(pages) OVER near AS within,
        sum(stating) OVER near AS stating, sum(older) OVER near AS older,
        sum(agreeing) OVER near AS agreeing, sum(pages) OVER (PARTITION BY host) AS dated,
        max(read) OVER (PARTITION BY host) AS read
    FROM moment WINDOW near AS (
        PARTITION BY host ORDER BY at RANGE BETWEEN CURRENT ROW AND CAST(:window AS bigint) FOLLOWING
    )
),
ranked AS (SELECT *, row_number() OVER (PARTITION BY host ORDER BY within DESC, at) AS place FROM span)
SELECT h.origin, dated, at, last, within, stating, older, agreeing, read - last
FROM ranked JOIN host AS h ON h.id = ranked.host WHERE place = 1 ORDER BY h.origin
"""


BUILDS: Final = _builds("header")
BUILDS_OF_SITEMAPS: Final = _builds("sitemap_date")
BUILDS_STATED: Final = _builds("stated")

# What was new and gone on pages that changed, and on how many it was, as their last change, in earlier runs.
_NOW: Final = "u.version <> u.published_content"
_WAY: Final = f"substr(u.watched, 2, {WAY})"
_CHANGED: Final = f"""{_KIND} IN (
    '{LastChange.FIRST}', '{LastChange.NEW}', '{LastChange.REPEATED}', '{LastChange.AGAIN}'
)"""
BLOCKS: Final = f"""
SELECT h.origin, min(CASE WHEN {_NOW} THEN substr(u.watched, 2, {HEAD - 1}) END),
    count(*) FILTER (WHERE {_NOW}), min(CASE WHEN {_NOW} THEN {_KIND} END),
    min(CASE WHEN {_NOW} THEN u.id END), count(*) FILTER (WHERE NOT {_NOW})
FROM known AS u JOIN host AS h ON h.id = u.host
WHERE {_LISTED} AND {_WAY} NOT LIKE '{UNKNOWN_WAY}%' AND u.version IS NOT NULL
    AND ({_CHANGED} OR (NOT {_NOW} AND {_KIND} IN ('{LastChange.UNKNOWN}', '{LastChange.NOISE}')
        AND u.watched NOT LIKE '{STILL}%'))
GROUP BY h.origin, {_WAY} HAVING count(*) FILTER (WHERE {_NOW}) > 0
ORDER BY count(*) DESC, h.origin, 2 LIMIT 1000
"""

_TRUSTED: Final = "u.host NOT IN (SELECT h.id FROM host AS h WHERE h.origin @any(distrusted, text))"
# Pages that certainly keep their date, which are most of a site: that of their header, if it is trusted and
# is that of the run before or the first; none, without header and date in the page, as no change is known;
# and that of a known change, as long as the content is the same.
_KEEPING: Final = (
    f"""
    :header AND {_TRUSTED} AND coalesce(p.source = 'header' AND p.lastmod = p.header, false)
    AND coalesce(p.header = p.dated_header, p.dated_content IS NULL)
    """,
    f"""
    p.header IS NULL AND p.stated IS NULL AND u.sitemap_date IS NULL
    AND p.lastmod IS NULL AND p.source IS NULL
    AND CASE WHEN {VERSION_OF} = p.dated_content THEN p.dated_lastmod IS NULL
        ELSE coalesce({VERSION_OF} = p.published_content, true) END
    """,
    f"""
    :history AND p.header IS NULL AND p.stated IS NULL AND u.sitemap_date IS NULL AND {_TRUSTED}
    AND coalesce(p.source = 'history' AND p.lastmod = p.dated_lastmod, false)
    AND coalesce({VERSION_OF} = p.dated_content, false)
    AND coalesce(substr(p.watched, 1, 1) <> '{LastChange.LEARNED}', true)
    AND NOT coalesce(substr(p.watched, 2, {WAY}) @any(rolled, text), false)
    """,
)
_KNOWN: Final = of("p", Datable._fields, content=VERSION_OF, sitemap_date="u.sitemap_date")
DATABLE: Final = f"""
SELECT p.id, u.host, p.lastmod, p.source, {_KNOWN}
FROM page AS p JOIN url AS u ON u.id = p.id
WHERE p.id > :after AND u.id > :after AND p.outcome = '{LISTED}' AND u.run = :run AND u.host IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM visit AS v WHERE v.id = p.id)
AND {" AND ".join(f"NOT ({keeping})" for keeping in _KEEPING)}
ORDER BY p.id LIMIT :limit
"""
# Dates that were believed when the clock was ahead.
_DATES: Final = ("lastmod", "header", "stated", "dated_lastmod", "dated_header", "dated_stated")
_WAS_AHEAD: Final = "SELECT count(*) FROM run WHERE @greatest(started, coalesce(ended, started)) > :now"
_FORGET: Final = (
    f"""
UPDATE page SET source = CASE WHEN lastmod <= :now THEN source END,
    {", ".join(f"{column} = CASE WHEN {column} <= :now THEN {column} END" for column in _DATES)}
WHERE {" OR ".join(f"{column} > :now" for column in _DATES)}
""",
    "UPDATE url SET sitemap_date = NULL WHERE sitemap_date > :now",
)
NO_DATE: Final = (None, None)
DATE: Final = """
UPDATE page SET lastmod = r.lastmod, source = r.source FROM @rows(id, lastmod, source) WHERE page.id = r.id
"""


def forget_future(db: Database) -> None:
    """After a run with a clock that was ahead: dates of the future, which `validate` refuses."""
    now = {"now": db.now()}
    if db.count(_WAS_AHEAD, now):
        for statement in _FORGET:
            db.do(statement, now)


def evidence(db: Database, window: int, older: int) -> DatesSeen:
    """See `ports.reads.DateEvidence`."""
    counts = db.ask(EVIDENCE, {"run": db.run, "older": older})
    given = {"run": db.run, "window": window, "older": older}
    builds = [db.ask(sql, given) for sql in (BUILDS, BUILDS_OF_SITEMAPS, BUILDS_STATED)]
    changes = db.ask(BLOCKS, {"run": db.run})
    headers, sitemaps, stated = (
        [Build(origin, *map(int, numbers)) for origin, *numbers in rows()] for rows in builds
    )
    origins = [Evidence(origin, *map(int, numbers)) for origin, *numbers in counts()]
    blocks = [NewBlock(*row) for row in changes()]
    return DatesSeen(origins, headers, sitemaps, stated, blocks)


def is_read_anew(db: Database) -> bool:
    """See `ports.reads.IsReadAnew`."""
    return db.count(READ_ANEW, {"run": db.run}) > 0


def date(db: Database, sources: Sequence[Source], doubts: Doubts) -> None:
    """See `ports.Record.date`."""
    distrusted = _distrusted(doubts)
    hosts, times = db.ask("SELECT id, origin FROM host"), db.ask(_SINCE, {"run": db.run})
    origins, trusted, [(since,)] = dict(hosts()), Distrust(), times()
    wanted = {source.value: source in sources for source in (Source.HEADER, Source.HISTORY)}
    rolled = [way for _, way, _ in doubts.rolled]
    given = (
        wanted
        | {"run": db.run}
        | {name: db.dialect.all_of(some) for name, some in (("distrusted", distrusted), ("rolled", rolled))}
    )
    for rows in db.chunks(DATABLE, given):
        changed = []
        for number, host, lastmod, source, *known in rows:
            at, of_date = (
                Datable._make(known).date(sources, distrusted.get(origins[host], trusted), since) or NO_DATE
            )
            named = of_date and of_date.value
            if (at, named) != (lastmod, source):
                changed.append((number, at, named))
        if changed:
            db.do_rows(DATE, ("id", "lastmod", "source"), changed)


def _distrusted(doubts: Doubts) -> Mapping[str, Distrust]:
    """What is not trusted, by origin."""
    origins = {
        *doubts.unreliable,
        *doubts.changing,
        *doubts.linking,
        *doubts.sitemaps,
        *doubts.stated,
        *doubts.stale,
        *doubts.noisy,
        *doubts.unseen,
        *(name for name, _ in doubts.blocks),
        *(name for name, _, _ in doubts.rolled),
        *(name for name, _, _ in (*doubts.builds, *doubts.stated_first)),
        *(name for name, _, _ in doubts.restless),
        *(name for name, _, _ in doubts.turning),
    }
    return {
        origin: Distrust(
            header=origin in doubts.unreliable,
            stated=origin in doubts.stated,
            stated_first=next(
                ((first, last) for name, first, last in doubts.stated_first if name == origin), None
            ),
            stale=origin in doubts.stale,
            changes=origin in doubts.changing,
            builds=tuple((first, last) for name, first, last in doubts.builds if name == origin),
            sitemap=origin in doubts.sitemaps,
            links=origin in doubts.linking,
            noisy=origin in doubts.noisy,
            unseen=origin in doubts.unseen,
            blocks=frozenset(new for name, new in doubts.blocks if name == origin),
            rolled={way: since for name, way, since in doubts.rolled if name == origin},
            everywhere=origin in doubts.everywhere,
            turning={new: is_first for name, new, is_first in doubts.turning if name == origin},
            restless=next(((first, last) for name, first, last in doubts.restless if name == origin), None),
        )
        for origin in origins
    }
