"""The publications of a state: what is read of them, and the note of a delivery."""

from collections.abc import Mapping
from typing import Final

from crawler.frontier.database import Database
from crawler.frontier.rows import of
from crawler.frontier.schema import IN_SITEMAP
from crawler.model.rows import PublicationRow
from crawler.rules.record import SETTLED, patience_by_code

# The last publication with the settings of this run; with any settings if there is none.
_LAST: Final = """
SELECT number FROM publication
ORDER BY fingerprint = (SELECT fingerprint FROM run WHERE number = :run) DESC NULLS LAST, number DESC LIMIT 1
"""
_NEWEST: Final = (
    f"SELECT {of('p', PublicationRow._fields)} FROM publication AS p ORDER BY p.number DESC LIMIT 1"
)
_CHANGED: Final = f"""
SELECT CASE WHEN run = :run AND state = {SETTLED} THEN outcome ELSE '' END, count(*)
FROM known WHERE published >= :last GROUP BY 1
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


FAILING: Final = """
SELECT p.id, p.outcome, p.failing, coalesce(p.published >= :last, false)
FROM page AS p JOIN url AS u ON u.id = p.id
WHERE p.id > :after AND u.id > :after AND p.outcome @any(failures, text) AND u.run = :run
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
FROM run WHERE number = :run RETURNING number
"""

MARKED = "SELECT 1 FROM publication WHERE run = :run AND at = :at"

# URLs added, removed, or listed with another date since the last publication.
SINCE = f"""
SELECT count(*) FILTER (WHERE now AND NOT before), count(*) FILTER (WHERE before AND NOT now),
    count(*) FILTER (WHERE before AND now AND lastmod IS DISTINCT FROM was_lastmod)
FROM (
    SELECT coalesce(run = :run AND state = {SETTLED} AND {IN_SITEMAP}, false) AS now,
        published IS NOT DISTINCT FROM :last AS before, lastmod, was_lastmod
    FROM known WHERE run = :run OR published = :last
) AS page
"""

MARK_PUBLISHED = f"""
UPDATE page SET published = :number FROM url AS u
WHERE u.id = page.id AND u.run = :run AND {IN_SITEMAP}
"""


def mark_published(db: Database, published: PublicationRow, at: float) -> None:
    """See `ports.Runs.mark_published`. `at`: seconds since the epoch, the same when it is tried again."""
    if db.is_retry and db.one_or_none(MARKED, {"run": db.run, "at": at}):
        return  # it was committed, and the answer was lost
    last = db.one("SELECT max(number) FROM publication")[0]
    if last is not None:
        added, removed, changed = db.one(SINCE, {"run": db.run, "last": last})
        published = published._replace(added=added, removed=removed, changed=changed)
    number = db.count(PUBLISH, published._asdict() | {"run": db.run, "now": at})
    db.do(MARK_PUBLISHED, {"run": db.run, "number": number})


def keep_failing_pages(db: Database, keep_failing: float) -> None:
    """See `ports.Record.keep_failing`. `keep_failing`: seconds."""
    last = last_publication(db)
    if last is None:
        return
    patience, now = patience_by_code(keep_failing), db.now()
    given = {"run": db.run, "last": last, "failures": db.dialect.all_of(patience)}
    for rows in db.chunks(FAILING, given):
        decided = [
            (number, before, patience[before].outcome(failing, now, is_published=bool(is_published)))
            for number, before, failing, is_published in rows
        ]
        changed = [(number, outcome) for number, before, outcome in decided if outcome != before]
        if changed:
            db.do_rows(KEEP, ("id", "outcome"), changed)
