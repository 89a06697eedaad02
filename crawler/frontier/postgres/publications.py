"""The publications of the PostgreSQL frontier: the note of a new one, and the failing pages that stay listed since."""

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import given, table
from crawler.frontier.publications import last_publication
from crawler.model.rows import PublicationRow
from crawler.rules.record import patience_by_code

PATIENCE = ("failed", "kept", "seconds")

KEEP = f"""
UPDATE page SET outcome = CASE WHEN published >= :last AND :now - failing < k.seconds THEN k.kept ELSE k.failed END
FROM {table(PATIENCE, "k")}, url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome IN (k.failed, k.kept)
AND NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = page.id)
"""

_TYPES = {
    "files": "integer",
    "base": "text",
    "folder": "text",
    "delivered": "text",
    "files_changed": "double precision",
}
PUBLISH = f"""
INSERT INTO publication (run, fingerprint, at, {", ".join(PublicationRow._fields)})
SELECT number, fingerprint, :now::double precision,
    {", ".join(f":{value}::{_TYPES.get(value, 'bigint')}" for value in PublicationRow._fields)}
FROM run WHERE number = :run RETURNING number
"""

MARKED = "SELECT 1 FROM publication WHERE run = :run AND at = :at"

# URLs added, removed, or listed with another date since the last publication.
SINCE = """
SELECT count(*) FILTER (WHERE now AND NOT before), count(*) FILTER (WHERE before AND NOT now),
    count(*) FILTER (WHERE before AND now AND lastmod IS DISTINCT FROM was_lastmod)
FROM (
    SELECT (run = :run AND state = 3 AND (outcome = 'listed' OR outcome LIKE 'kept:%')) IS TRUE AS now,
        published IS NOT DISTINCT FROM :last AS before, lastmod, was_lastmod
    FROM known WHERE run = :run OR published = :last
) AS page
"""

MARK_PUBLISHED = """
UPDATE page SET published = :number FROM url AS u
WHERE u.id = page.id AND u.run = :run AND (outcome = 'listed' OR outcome LIKE 'kept:%')
"""


def mark_published(db: Database, published: PublicationRow, at: float) -> None:
    """See `ports.Runs.mark_published`. `at`: seconds since the epoch, the same when the call is tried again."""
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
    if last is not None:
        rows = set(patience_by_code(float(keep_failing)).values())
        db.do(KEEP, given(PATIENCE, rows) | {"run": db.run, "last": last, "now": db.now()})
