"""The publications of a state: what is read of them, and the note of a delivery."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from crawler.frontier.budget import WORDING
from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.frontier.schema import IN_SITEMAP, STILL
from crawler.model.rows import PublicationRow
from crawler.model.survey import AlikePages, Failures
from crawler.parse.url import Url
from crawler.rules.failures import COMPARED, FEWEST_FAILURES, FailedUrl, weigh
from crawler.rules.record import DUPLICATE, LISTED, SETTLED, Failing, RunTime, interval_of, patience_by_code

_NEVER: Final = (1 << 31) - 1  # later than any publication

# The last publication with the settings of this run; with any settings if there is none.
_LAST: Final = """
SELECT number FROM publication
ORDER BY fingerprint = (SELECT fingerprint FROM run WHERE number = :run) DESC NULLS LAST, number DESC LIMIT 1
"""
_NEWEST: Final = (
    f"SELECT {of('p', PublicationRow._fields)} FROM publication AS p ORDER BY p.number DESC LIMIT 1"
)
# In a partial run, what it visited, and what refused runs before it did: they visit what has left again, so
# that alone it would never be a small part.
_CHANGED: Final = f"""
SELECT CASE WHEN run = :run AND state = {SETTLED} THEN outcome ELSE '' END, count(*)
FROM known WHERE published >= :last AND (visited = :run OR coalesce(
    visited > (SELECT follows FROM run WHERE number = :run) AND facts_run IS NOT NULL,
    (SELECT follows FROM run WHERE number = :run) IS NULL))
GROUP BY 1
"""
_ALIKE: Final = f"""
SELECT CAST(coalesce(sum(pages), 0) AS bigint), min(first), CAST(coalesce(sum(earlier), 0) AS bigint) FROM (
    SELECT count(*) AS pages, min(url) AS first, count(*) FILTER (WHERE visited < :run) AS earlier FROM known
    WHERE run = :run AND published >= :last AND version <> published_content
        AND outcome IN ('{LISTED}', '{DUPLICATE}')
    GROUP BY {WORDING}
    HAVING count(*) >= {FEWEST_FAILURES} AND count(DISTINCT published_content) * 2 > count(*)
) AS alike
"""
_DELIVERED: Final = """
UPDATE publication
SET delivered = CASE WHEN number = (SELECT max(number) FROM publication) THEN CAST(:delivered AS text) END
"""


def last_publication(db: Database) -> int | None:
    """The number of the publication that this run is compared with."""
    row = db.one_or_none(_LAST, {"run": db.run})
    return row[0] if row else None


def newest(db: Database) -> PublicationRow | None:
    """See `ports.reads.LastPublication`."""
    row = db.one_or_none(_NEWEST)
    return PublicationRow(*row) if row else None


def mark_delivered(db: Database, delivered: str) -> None:
    """See `ports.Runs.mark_delivered`."""
    db.do(_DELIVERED, {"delivered": delivered})


def published_outcomes(db: Database) -> Mapping[str, int]:
    """See `ports.reads.PublishedOutcomes`."""
    last = last_publication(db)
    if last is None:
        return {}
    return dict(db.all(_CHANGED, {"run": db.run, "last": last}))


def turned_alike(db: Database) -> AlikePages:
    """See `ports.reads.PagesTurnedAlike`."""
    return AlikePages(*db.one(_ALIKE, {"run": db.run, "last": _last_or_never(db)}))


_FAILED: Final = f"""
SELECT id, outcome, url, via, seed IS NOT NULL, coalesce(published >= :last, false)
FROM known WHERE id > :after AND run = :run AND state = {SETTLED} AND outcome LIKE 'failed:%'
    AND visited = :run
ORDER BY id LIMIT :limit
"""
_SPREAD: Final = """
SELECT url FROM (
    SELECT url, row_number() OVER (ORDER BY url) - 1 AS place, count(*) OVER () AS pages
    FROM known WHERE CHOSEN
) AS page
WHERE place = 0 OR place * :most / pages > (place - 1) * :most / pages ORDER BY url
"""
_ANSWERING: Final = _SPREAD.replace(
    "CHOSEN", f"run = :run AND state = {SETTLED} AND outcome = '{LISTED}' AND status IS NOT NULL"
)
_LOST: Final = _SPREAD.replace("CHOSEN", "published >= :last AND run <> :run")
# Pages that came after the oldest of these publications, but for the first one to which a page led that says
# something else now, or came as late.
_PASSING: Final = f"""
SELECT url FROM (
    SELECT k.url, row_number() OVER (PARTITION BY k.via ORDER BY k.url) AS place
    FROM known AS k JOIN page AS p ON p.id = k.id JOIN page AS v ON v.id = k.via
    CROSS JOIN (SELECT at FROM publication ORDER BY number DESC LIMIT 1 OFFSET {COMPARED - 1}) AS oldest
    WHERE k.published >= :last AND k.run <> :run AND p.first_visit > oldest.at
        AND ((v.visited = :run AND v.outcome = '{LISTED}') OR v.first_visit > oldest.at)
) AS page
WHERE place > 1 ORDER BY url LIMIT :most
"""
_PUBLISHED_EXAMPLES: Final = f"""
SELECT url FROM known
WHERE published >= :last AND (CASE WHEN run = :run AND state = {SETTLED} THEN outcome ELSE '' END)
    @any(codes, text)
ORDER BY url LIMIT :limit
"""


def failures(db: Database) -> Failures:
    """See `ports.reads.FailuresOfRun`."""
    given = {"run": db.run, "last": _last_or_never(db)}
    return weigh(FailedUrl(*row[1:]) for rows in db.chunks(_FAILED, given) for row in rows)


def answering_pages(db: Database, most: int) -> Sequence[Url]:
    """See `ports.reads.AnsweringPages`."""
    return [Url(row[0]) for row in db.all(_ANSWERING, {"run": db.run, "most": most})]


def lost_pages(db: Database, most: int, passing: bool) -> Sequence[Url]:
    """See `ports.reads.LostPages`."""
    given = {"run": db.run, "last": _last_or_never(db), "most": most}
    return [Url(row[0]) for row in db.all(_PASSING if passing else _LOST, given)]


def published_examples(db: Database, outcome_codes: Collection[str], limit: int) -> Sequence[Url]:
    """See `ports.reads.PublishedExamples`."""
    given = {"run": db.run, "last": _last_or_never(db), "codes": db.dialect.all_of(list(outcome_codes))}
    return [Url(row[0]) for row in db.all(_PUBLISHED_EXAMPLES, given | {"limit": limit})]


def _last_or_never(db: Database) -> int:
    last = last_publication(db)
    return _NEVER if last is None else last


FAILING: Final = """
SELECT p.id, p.outcome, p.failing, p.failing_run, coalesce(b.until >= :last, false)
FROM page AS p JOIN url AS u ON u.id = p.id LEFT JOIN published AS b ON b.id = p.id
WHERE p.id > :after AND u.id > :after AND p.outcome @any(failures, text) AND u.run = :run AND p.visited = :run
AND NOT EXISTS (SELECT 1 FROM visit AS v WHERE v.id = p.id)
ORDER BY p.id LIMIT :limit
"""
KEEP: Final = "UPDATE page SET outcome = r.outcome FROM @rows(id, outcome) WHERE page.id = r.id"

_TYPES = {
    "files": "integer",
    "base": "text",
    "folder": "text",
    "delivered": "text",
    "files_changed": "double precision",
}
PUBLISH = f"""
INSERT INTO publication (run, fingerprint, at, {", ".join(PublicationRow._fields)})
SELECT number, fingerprint, CAST(:now AS double precision),
    {", ".join(f"CAST(:{value} AS {_TYPES.get(value, 'bigint')})" for value in PublicationRow._fields)}
FROM run WHERE number = :run
"""

MARKED = "SELECT 1 FROM publication WHERE run = :run AND at = :at"

# URLs added, removed, or listed with another date since the last publication.
SINCE = f"""
SELECT count(*) FILTER (WHERE now AND NOT before), count(*) FILTER (WHERE before AND NOT now),
    count(*) FILTER (WHERE before AND now AND lastmod IS DISTINCT FROM was_lastmod)
FROM (
    SELECT coalesce(run = :run AND state = {SETTLED} AND {IN_SITEMAP}, false) AS now,
        published IS NOT DISTINCT FROM {STILL} AS before, lastmod, was_lastmod
    FROM known WHERE run = :run OR published = {STILL}
) AS page
"""

# Only what enters or leaves is written, in a narrow table: on most nights that is little.
_LISTED_NOW = f"FROM page AS p JOIN url AS u ON u.id = p.id WHERE u.run = :run AND {IN_SITEMAP}"
MARK_LEFT = f"""
UPDATE published SET until = :last
WHERE until = {STILL} AND NOT EXISTS (SELECT 1 {_LISTED_NOW} AND p.id = published.id)
"""
MARK_BACK = f"""
UPDATE published SET until = {STILL}
WHERE until < {STILL} AND EXISTS (SELECT 1 {_LISTED_NOW} AND p.id = published.id)
"""
# Without ON CONFLICT, which costs PostgreSQL half as much log again; only the leader inserts.
MARK_NEW = f"""
INSERT INTO published (id, until) SELECT p.id, {STILL} {_LISTED_NOW}
    AND NOT EXISTS (SELECT 1 FROM published AS b WHERE b.id = p.id) ORDER BY p.id
"""


def mark_published(db: Database, published: PublicationRow, at: float) -> None:
    """See `ports.Runs.mark_published`. `at`: seconds since the epoch, the same when it is tried again."""
    if db.is_retry and db.one_or_none(MARKED, {"run": db.run, "at": at}):
        return  # it was committed, and the answer was lost
    last = db.one("SELECT max(number) FROM publication")[0]
    if last is not None:
        added, removed, changed = db.one(SINCE, {"run": db.run})
        published = published._replace(added=added, removed=removed, changed=changed)
        db.do(MARK_LEFT, {"run": db.run, "last": last})
        db.do(MARK_BACK, {"run": db.run})
    db.do(MARK_NEW, {"run": db.run})
    db.do(PUBLISH, published._asdict() | {"run": db.run, "now": at})


def run_time(db: Database) -> RunTime:
    """When the current run judges what fails."""
    if db.interval[0] != db.run:
        starts = db.all("SELECT started FROM run WHERE number <= :run ORDER BY number", {"run": db.run})
        db.interval = (db.run, interval_of([at for (at,) in starts]), starts[-1][0] if starts else 0.0)
    return RunTime(db.now(), *db.interval)


def keep_failing_pages(db: Database, keep_failing: float) -> None:
    """See `ports.SiteRule.KEEP_FAILING`. `keep_failing`: seconds."""
    last = last_publication(db)
    if last is None:
        return
    patience, at = patience_by_code(keep_failing), run_time(db)
    given = {"run": db.run, "last": last, "failures": db.dialect.all_of(patience)}
    for rows in db.chunks(FAILING, given):
        decided = [
            (
                number,
                before,
                patience[before].outcome(Failing.read(*first), at, is_published=bool(is_published)),
            )
            for number, before, *first, is_published in rows
        ]
        changed = [(number, outcome) for number, before, outcome in decided if outcome != before]
        if changed:
            db.do_rows(KEEP, ("id", "outcome"), changed)
