"""The publications of the PostgreSQL frontier: what was published last, and which failing pages stay listed since."""

from collections.abc import Mapping

from crawler.frontier.postgres.database import Database
from crawler.frontier.postgres.rows import given, table
from crawler.rules import keep_failing as keeping

# The last publication under the settings of this run; or of any settings, if there is none yet.
LAST = """
SELECT number, urls FROM publication
ORDER BY fingerprint = (SELECT fingerprint FROM run WHERE number = :run) DESC NULLS LAST, number DESC LIMIT 1
"""

PATIENCE = ("failed", "kept", "seconds")

KEEP = f"""
UPDATE page SET outcome = CASE WHEN published >= :last AND :now - failing < k.seconds THEN k.kept ELSE k.failed END
FROM {table(PATIENCE, "k")}, url AS u
WHERE u.id = page.id AND u.run = :run AND page.outcome IN (k.failed, k.kept)
AND NOT EXISTS (SELECT 1 FROM visit WHERE visit.id = page.id)
"""

MARK_PUBLISHED = """
UPDATE page SET published = :number FROM url AS u
WHERE u.id = page.id AND u.run = :run AND (outcome = 'listed' OR outcome LIKE 'kept:%')
"""

CHANGED = """
SELECT CASE WHEN run = :run AND state = 3 THEN outcome ELSE '' END, count(*) FROM known WHERE published >= :last GROUP BY 1
"""


def last_publication(db: Database) -> int | None:
    """The number of the publication that this run is compared with."""
    row = db.one_or_none(LAST, {"run": db.run})
    return row[0] if row else None


def mark_published(db: Database, urls: int) -> None:
    """See `ports.Runs.mark_published`."""
    number = db.count(
        """INSERT INTO publication (run, fingerprint, at, urls)
           SELECT number, fingerprint, :now::double precision, :urls::bigint FROM run WHERE number = :run RETURNING number""",
        {"now": db.now(), "urls": urls, "run": db.run},
    )
    db.do(MARK_PUBLISHED, {"run": db.run, "number": number})


def keep(db: Database, keep_failing: float) -> None:
    """See `ports.Record.keep`. `keep_failing`: seconds."""
    last = last_publication(db)
    if last is not None:
        rows = [(*codes, float(seconds)) for codes, seconds in keeping.by_code(keep_failing).items()]
        db.do(KEEP, given(PATIENCE, rows) | {"run": db.run, "last": last, "now": db.now()})


def changed(db: Database) -> Mapping[str, int]:
    """See `ports.Record.changed`."""
    last = last_publication(db)
    return {} if last is None else dict(db.all(CHANGED, {"run": db.run, "last": last}))
